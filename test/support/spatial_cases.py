"""Robots and motions for twists, momenta and wrenches of bodies."""

import warnings
from pathlib import Path

import numpy as np
from support.interpolation import derivatives_at_zero, taylor
from support.random_trees import (
    helical_model,
    random_gravity,
    random_motion,
    random_robot,
    random_wrenches,
)

from hodyn_ros import (
    ModelWarning,
    RobotModel,
    Wrench,
    forward_kinematics,
)
from hodyn_ros.dynamics.wrenches import wrenches_on_bodies
from hodyn_ros.kinematics.joints import body_coordinates

PANDA = (Path(__file__).resolve().parents[2] / 'urdf' / 'panda.urdf').read_text()
SEEDS = range(8)
K = 5
SUFFIXES = ('', 'd', '2d', '3d')


def tree(seed):
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        return RobotModel.from_urdf(random_robot(seed).xml, gravity=random_gravity(seed))


MODELS = {
    'Panda': lambda: RobotModel.from_urdf(PANDA),
    **{f'tree {seed}': lambda seed=seed: tree(seed) for seed in SEEDS},
    **{f'helical {seed}': lambda seed=seed: helical_model(seed) for seed in SEEDS},
}


def make_case(name):
    """Model, motion of the independent joints, and the same of the joints of all bodies."""
    model = MODELS[name]()
    motion = random_motion(sum(map(ord, name)), model.n_joints, K)
    return model, motion, body_coordinates(model, motion[None])


def link_of_body(model, body):
    return next(
        name
        for name, frame in model.links.items()
        if frame.body == body and np.array_equal(frame.pose, np.eye(4))
    )


def assert_derivatives(actual, function, motion, tolerance=1e-10):
    """Compare the orders on the first axis with derivatives of the zeroth along the motion."""
    expected = derivatives_at_zero(
        lambda times: function(taylor(motion, times)), len(actual) - 1
    )
    scale = max(1.0, np.abs(actual).max())
    for order, value in enumerate(actual):
        np.testing.assert_allclose(
            value, expected[order], rtol=0, atol=tolerance * scale * 10**order
        )


def assert_close(actual, expected, tolerance):
    """Compare order by order, which the first axis counts, relative to the largest value."""
    for order in range(len(expected)):
        scale = max(1e-300, np.abs(expected[order]).max())
        np.testing.assert_allclose(
            actual[order],
            expected[order],
            rtol=0,
            atol=tolerance * scale,
            err_msg=f'{order}',
        )


def assert_twists_of_links(name, kinematics_of, expressed_in):
    """Compare poses and twists of all bodies with those of their links."""
    model, motion, coordinates = make_case(name)
    kinematics = kinematics_of(model, coordinates)
    for i in range(model.n_bodies):
        link = forward_kinematics(model, motion, link_of_body(model, i), expressed_in)
        np.testing.assert_allclose(kinematics.C[0, i], link.pose, atol=1e-13)
        twists = [getattr(kinematics, 'V' + suffix)[0, i] for suffix in SUFFIXES]
        assert_close(twists, link.twist, 1e-12)


def assert_differentiated(name, kinematics_of, fields):
    """Compare derivatives of fields, to the order that each has, with those along the motion."""
    model, motion, coordinates = make_case(name)
    kinematics = kinematics_of(model, coordinates)
    for field, highest in fields.items():

        def zeroth(motions, field=field):
            return getattr(kinematics_of(model, body_coordinates(model, motions)), field)

        orders = [
            getattr(kinematics, field + suffix)[0] for suffix in SUFFIXES[: highest + 1]
        ]
        assert_derivatives(np.array(orders), zeroth, motion)


def random_case_with_wrenches(seed):
    robot = random_robot(seed)
    model = tree(seed)
    motion = random_motion(seed, model.n_joints, K)
    cases = random_wrenches(seed, robot.links[1:], K)
    coordinates = body_coordinates(model, motion[None])
    applied = wrenches_on_bodies(
        model, coordinates, [(Wrench(*case), case.values[None]) for case in cases]
    )
    return robot, model, motion, cases, coordinates, applied
