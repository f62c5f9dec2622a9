"""Standard deviations of a motion and of wrenches, carried over to the efforts."""

import numpy as np
from support import robots
from support.random_trees import random_motion

from hodyn_ros import RobotModel, Wrench, inverse_dynamics
from hodyn_ros.streams.acting_wrenches import WrenchesAt
from hodyn_ros.streams.surroundings import Circumstances, deviations
from hodyn_ros.trajectory import Estimate


def test_deviations_of_the_effort_are_those_of_random_motions_and_wrenches():
    model = RobotModel.from_urdf(robots.TWO_LINK)
    random, motion = np.random.default_rng(3), random_motion(2, 2, 5)
    factor = 1e-4 * np.tril(random.standard_normal((2, 5, 5)))
    std = np.linalg.norm(factor, axis=2).T
    estimate = Estimate(0, motion, std, factor, 4, 0.0, np.zeros(2))
    values, other = random.standard_normal((2, 3, 6))
    steps = 1e-4 * random.standard_normal((18, 3, 6))

    def wrenches(values):
        exact = Wrench('tool', other, 'spatial')
        return [exact, Wrench('tool', values, 'body', 'on_robot')]

    effort = inverse_dynamics(model, motion, wrenches(values))
    draws = random.standard_normal((20_000, 28))
    motions = np.einsum('jkl,Njl->Nkj', factor, draws[:, :10].reshape(-1, 2, 5))
    loads = np.einsum('skx,Ns->Nkx', steps, draws[:, 10:])
    for moved, loaded in ((1.0, 0.0), (0.0, 1.0), (1.0, 1.0)):
        acting = WrenchesAt(wrenches(values), 2, [None, steps if loaded else None])
        claimed = deviations(
            model,
            Circumstances(0, motion, acting),
            effort,
            estimate.deviations(5) if moved else None,
        )
        drawn = motion + moved * motions, wrenches(values + loaded * loads)
        np.testing.assert_allclose(
            claimed, inverse_dynamics(model, *drawn).std(axis=0), rtol=0.03
        )
    exact = Circumstances(0, motion, WrenchesAt(wrenches(values), 2, [None, None]))
    assert deviations(model, exact, effort) is None
