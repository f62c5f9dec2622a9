"""Standard deviations of a motion and of wrenches, carried over to the efforts."""

import numpy as np
from support import robots
from support.random_trees import random_motion

from hodyn_ros import RobotModel, Wrench, inverse_dynamics
from hodyn_ros.dynamics.inverse import effort_deviations
from hodyn_ros.trajectory import Estimate


def test_deviations_of_the_effort_are_those_of_random_motions():
    model = RobotModel.from_urdf(robots.TWO_LINK)
    random = np.random.default_rng(3)
    factor = 1e-4 * np.tril(random.standard_normal((2, 5, 5)))
    motion = random_motion(2, 2, 5)
    std, noise = np.linalg.norm(factor, axis=2).T, np.zeros(2)
    estimate = Estimate(0, motion, std, factor, 4, 0.0, noise)
    effort = inverse_dynamics(model, motion)
    claimed = effort_deviations(model, motion, effort, [], estimate.deviations(5))
    disturbances = np.einsum('jkl,Njl->Nkj', factor, random.standard_normal((20_000, 2, 5)))
    actual = inverse_dynamics(model, motion + disturbances).std(axis=0)
    np.testing.assert_allclose(claimed, actual, rtol=0.03)


def test_deviations_of_the_effort_are_those_of_random_wrenches_too():
    model = RobotModel.from_urdf(robots.TWO_LINK)
    random = np.random.default_rng(5)
    motion = random_motion(2, 2, 5)
    values, other = random.standard_normal((2, 3, 6))
    deviations = 0.1 * random.standard_normal((18, 3, 6))
    exact = Wrench('tool', other, 'spatial')

    def wrenches(values):
        return [exact, Wrench('tool', values, 'body', 'on_robot')]

    effort = inverse_dynamics(model, motion, wrenches(values))
    claimed = effort_deviations(
        model, motion, effort, wrenches(values), None, [None, deviations]
    )
    draws = np.einsum('skx,Ns->Nkx', deviations, random.standard_normal((20_000, 18)))
    motions = np.broadcast_to(motion, (20_000, 5, 2))
    actual = inverse_dynamics(model, motions, wrenches(values + draws)).std(axis=0)
    np.testing.assert_allclose(claimed, actual, rtol=0.03)
    assert effort_deviations(model, motion, effort, wrenches(values)) is None
