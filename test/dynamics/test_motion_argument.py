"""A motion is one array; positions, velocities and accelerations apart are met with help."""

import re

import numpy as np
import pytest
from support import robots

from hodyn_ros import RobotModel, coriolis_matrix, inverse_dynamics, mass_matrix
from hodyn_ros.errors import MotionError, WrenchError

MODEL = RobotModel.from_urdf(robots.TWO_LINK)


@pytest.mark.parametrize(
    ('call', 'meant'),
    [
        (lambda q: inverse_dynamics(MODEL, q), 'np.stack([q, v, a], axis=-2)'),
        (lambda q: inverse_dynamics(MODEL, q, q, q), 'np.stack([q, v, a], axis=-2)'),
        (
            lambda q: inverse_dynamics(MODEL, [q] * 9, [q] * 9, [q] * 9),
            'np.stack([q, v, a]',
        ),
        (
            lambda q: inverse_dynamics(MODEL, np.array([q] * 9), np.array([q] * 9)),
            'np.stack([',
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


def test_the_call_that_is_meant_is_right():
    q, v, a = np.random.default_rng(0).normal(size=(3, 5, MODEL.n_joints))
    together = inverse_dynamics(MODEL, np.stack([q, v, a], axis=-2))
    for i in range(5):
        one = inverse_dynamics(MODEL, np.stack([q[i], v[i], a[i]], axis=-2))
        np.testing.assert_allclose(one, together[i], rtol=1e-13, atol=1e-13)
