"""Series elastic joints and rigid drives: orders, dampers, and what is refused."""

import numpy as np
import pytest
from support import robots
from support.power_series import Series, tanh

from hodyn_ros import ModelWarning, RobotModel, friction
from hodyn_ros.actuators import (
    Actuators,
    CubicSpring,
    RigidDrive,
    SeriesElastic,
    motor_motion,
)
from hodyn_ros.errors import ActuatorError, MotionError

MODEL = RobotModel.from_urdf(
    robots.robot(
        '<link name="base"/>', robots.link('a'), robots.joint('joint', 'base', 'a')
    )
)


def test_rigid_drive_adds_inertia_and_friction_with_their_derivatives():
    law = friction.Viscous(0.3) + friction.Coulomb(1.5, 0.4)
    q, effort = np.array([0.1, 0.2, -0.3, 0.4, -0.5]), np.array([7.0, -8.0, 9.0])
    found, v = RigidDrive(0.2, law).motors(q, effort), Series(q[1:])
    losses = (0.3 * v + 1.5 * tanh(v / 0.4)).derivatives
    np.testing.assert_allclose(
        found.torque[0], effort + 0.2 * q[2:] + losses[:3], rtol=1e-13
    )
    np.testing.assert_array_equal(found.position[0], q)


def test_dampers_that_are_slow_for_the_motion_are_told_with_their_error():
    t, m = np.linspace(0.0, 3.0, 400)[:, None], np.arange(3)
    w, k, damping = 4.0, 1000.0, 12.0
    effort = (20.0 * w**m * np.sin(w * t + 0.5 * np.pi * m))[..., None]
    actuators = Actuators(MODEL, {'joint': SeriesElastic(k, 0.1, damping)})
    with pytest.warns(ModelWarning, match=r"'joint'.* 0.012 s.* up to 0.1 %"):
        found = motor_motion(actuators, np.zeros((400, 5, 1)), effort)
    transfer = 20.0 / (k + 1j * w * damping)
    truth = np.imag(transfer * np.exp(1j * w * t))[:, 0]
    error = np.abs(found.deflection[:, 0, 0] - truth).max() / np.abs(truth).max()
    assert 0.5e-4 < error < 2e-4


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('K', 'orders'), [(3, (1, 0)), (4, (2, 0)), (5, (3, 1)), (7, (5, 3))]
)
def test_orders_of_the_motors_are_what_the_motion_determines(K, orders):
    actuators = Actuators(MODEL, {'joint': SeriesElastic(1000.0, 0.1)})
    result = motor_motion(actuators, np.zeros((K, 1)), order=None)
    assert (result.position.shape[0], result.torque.shape[0]) == orders
    needed = 5 + orders[1]
    with pytest.raises(MotionError, match=rf'torques .*K = {K}.*expected K >= {needed}'):
        motor_motion(actuators, np.zeros((K, 1)), order=orders[1])


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('make', 'reason'),
    [
        (lambda: SeriesElastic(0.0, 0.1), 'expected a finite number above 0'),
        (lambda: SeriesElastic(100.0, np.nan), 'motor_inertia is .* above 0'),
        (lambda: SeriesElastic(100.0, 0.1, -1.0), 'damping is -1.0, .* from 0 on'),
        (lambda: SeriesElastic(100.0, 0.1, 0.0, 0.3), 'friction is 0.3, expected a frict'),
        (
            lambda: SeriesElastic(CubicSpring(300.0, 3e4), 0.5, damping=2.0),
            r'damping is 2.0 beside a .*LinearSpring\(stiff',
        ),
        (
            lambda: SeriesElastic(100.0, 0.1).motors([0.0], [0.0], [100.0]),
            'cannot choose it; leave it out',
        ),
    ],
)
def test_parameters_that_cannot_be_used_are_refused(make, reason):
    with pytest.raises(ActuatorError, match=reason):
        make()
