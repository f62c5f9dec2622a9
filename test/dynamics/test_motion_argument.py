"""A motion is one array of any batch shape; what is none is refused, what is meant is said."""

import re

import numpy as np
import pytest
from support import robots
from support.random_trees import random_motion

from hodyn_ros import (
    RobotModel,
    coriolis_matrix,
    gravity_effort,
    inverse_dynamics,
    inverse_dynamics_derivatives,
    joint_regressor,
    kinetic_energy,
    mass_matrix,
    potential_energy,
    regressor,
)
from hodyn_ros.errors import MotionError, WrenchError
from hodyn_ros.model.friction import Offset

MODEL = RobotModel.from_urdf(robots.TWO_LINK)


def terms(model, motion):
    return joint_regressor(model, motion, ['armature', Offset(1.0)])


def no_terms(model, motion):
    return joint_regressor(model, motion, [])


# With the lowest K, and shapes for K = 4 and a robot of two joints.
QUANTITIES = (
    (mass_matrix, 1, (4, 2, 2)),
    (coriolis_matrix, 2, (3, 2, 2)),
    (gravity_effort, 1, (4, 2)),
    (kinetic_energy, 2, (3,)),
    (potential_energy, 1, (4,)),
    (regressor, 3, (2, 2, 20)),
    (terms, 3, (2, 2, 4)),
    (no_terms, 3, (2, 2, 0)),
    (inverse_dynamics_derivatives, 3, (2, 2, 4, 2)),
)


@pytest.mark.parametrize('shape', [(), (0,), (1,), (2, 0), (2, 3)])
@pytest.mark.parametrize(('quantity', 'expected'), [(f, last) for f, _, last in QUANTITIES])
def test_any_leading_shape_is_kept(quantity, expected, shape):
    motion = random_motion(0, 2, 4, shape)
    assert quantity(MODEL, motion).shape == (*shape, *expected)


@pytest.mark.every_case
@pytest.mark.parametrize(('quantity', 'least'), [(f, K) for f, K, _ in QUANTITIES])
def test_a_motion_that_does_not_fit_is_refused(quantity, least):
    if least > 1:
        with pytest.raises(MotionError, match=f'K >= {least}'):
            quantity(MODEL, np.zeros((least - 1, 2)))
    for motion, message in (
        (np.zeros((3, 6)), r'shape \(3, 6\), expected .* 2 joints'),
        (np.where(np.eye(3, 2), np.nan, 0.0), 'nan at index'),
    ):
        with pytest.raises(MotionError, match=message):
            quantity(MODEL, motion)
    with pytest.raises(MotionError, match='RobotModel'):
        quantity('panda', np.zeros((3, 2)))


@pytest.mark.parametrize(
    'quantity',
    [coriolis_matrix, kinetic_energy, regressor, inverse_dynamics_derivatives],
)
def test_a_result_that_overflows_is_refused(quantity):
    with pytest.raises(MotionError, match='overflows'):
        quantity(MODEL, np.full((3, 2), 1e300))


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('call', 'meant'),
    [
        (lambda q: inverse_dynamics(MODEL, q), 'np.stack([q, v, a], axis=-2)'),
        (lambda q: inverse_dynamics(MODEL, q, q, q), 'np.stack([q, v, a], axis=-2)'),
        (
            lambda q: inverse_dynamics(MODEL, [q] * 9, [q] * 9, [q] * 9),
            'np.stack([q, v, a]',
        ),
        (lambda q: mass_matrix(MODEL, q), 'np.stack([q], axis=-2)'),
        (lambda q: coriolis_matrix(MODEL, q, q), 'np.stack([q, v], axis=-2)'),
    ],
)
def test_positions_velocities_and_accelerations_apart_are_met_with_the_call_that_is_meant(
    call, meant
):
    with pytest.raises((MotionError, WrenchError), match=re.escape(meant)):
        call(np.zeros(MODEL.n_joints))


@pytest.mark.every_case
@pytest.mark.parametrize('quantity', [quantity for quantity, *_ in QUANTITIES])
def test_positions_over_time_are_not_taken_for_derivatives_of_one_instant(quantity):
    over_time = np.zeros((200, MODEL.n_joints))
    with pytest.raises(MotionError, match='Samples go first.*fit_spline.*np.newaxis'):
        quantity(MODEL, over_time)


def test_many_derivatives_are_computed_if_a_leading_axis_says_that_they_are_meant():
    # cos(t) and its derivatives of a joint that turns about a vertical axis: inertia times motion.
    phase = 0.3 + 0.5 * np.pi * np.arange(12)
    motion = np.zeros((1, 12, MODEL.n_joints))
    motion[0, :, 0] = np.cos(phase)
    effort = inverse_dynamics(MODEL, motion)
    short = inverse_dynamics(MODEL, motion[0, :5])
    np.testing.assert_allclose(effort[0, :3], short, rtol=1e-12, atol=1e-12)
    assert effort.shape == (1, 10, MODEL.n_joints)
