"""Series elastic joints of a robot: both equations of motion hold.

The torques of the links come from power series in time (oracles.py); the laws of springs and
friction are written out here.
"""

from pathlib import Path

import numpy as np
import pytest
from support import oracles

from hodyn_ros import RobotModel, friction, inverse_dynamics
from hodyn_ros.actuators import (
    Actuators,
    CubicSpring,
    LinearSpring,
    PolynomialSpring,
    RigidDrive,
    SeriesElastic,
    TableSpring,
    motor_motion,
)
from hodyn_ros.errors import ActuatorError, DeflectionError, MotionError

PANDA = (Path(__file__).resolve().parents[2] / 'urdf' / 'panda.urdf').read_text()
MODEL = RobotModel.from_urdf(PANDA)
NAMES = MODEL.joint_names
INERTIA = np.array([0.61, 0.61, 0.46, 0.46, 0.21, 0.21, 0.21])
SMOOTH = friction.Viscous(0.3) + friction.Coulomb(1.5, 0.4)


def smooth_friction(velocity):
    return 0.3 * velocity + 1.5 * np.tanh(velocity / 0.4)


# Springs and their laws, from stiff to soft.
LAWS = {
    'linear': (LinearSpring(9000.0), lambda d: 9000.0 * d),
    'hardening': (CubicSpring(600.0, 4e5), lambda d: 600.0 * d + 4e5 * d**3),
    'polynomial': (
        PolynomialSpring((700.0, 30.0, 2e5), 1.0),
        lambda d: 700.0 * d + 30.0 * d**2 + 2e5 * d**3,
    ),
    'table': (
        # A cubic polynomial is its own cubic spline.
        TableSpring(
            np.linspace(-0.6, 0.6, 9),
            400.0 * np.linspace(-0.6, 0.6, 9) + 300.0 * np.linspace(-0.6, 0.6, 9) ** 3,
        ),
        lambda d: 400.0 * d + 300.0 * d**3,
    ),
}


def joint_motion(times, K):
    """Smooth motion of the seven joints, shape (N, K, 7)."""
    t = np.asarray(times)[:, None]
    omega, phase = np.linspace(1.1, 2.3, 7), np.arange(7.0)
    shift = [0.0, -0.4, 0.2, -1.8, 0.1, 1.9, 0.5]
    return np.stack(
        [
            0.4 * omega**k * np.sin(omega * t + phase + k * np.pi / 2)
            + (shift if k == 0 else 0.0)
            for k in range(K)
        ],
        axis=1,
    )


def link_efforts(motion):
    return oracles.taylor_rnea(PANDA, NAMES, MODEL.gravity, motion)


def elastic(spring, law=None):
    return Actuators(
        MODEL,
        {
            name: SeriesElastic(spring, INERTIA[j], friction=law)
            for j, name in enumerate(NAMES)
        },
    )


@pytest.mark.parametrize(('spring', 'law'), LAWS.values(), ids=LAWS)
def test_both_equations_of_motion_hold_to_rounding(spring, law):
    times = np.linspace(0.0, 3.0, 40)
    motion = joint_motion(times, 5)
    theta, tau, delta = motor_motion(elastic(spring, SMOOTH), motion)
    assert theta.shape == (40, 3, 7)
    assert tau.shape == (40, 1, 7)
    Q = link_efforts(motion)[:, 0]
    scale = np.abs(Q).max()
    # The positions are rounded, which a stiff spring turns into a torque.
    slope = 3.0 * spring.derivatives(delta[:, 0], 1)[..., 1].max()
    link_side = Q - law(theta[:, 0] - motion[:, 0])
    assert np.abs(link_side).max() <= 1e-14 * (scale + slope * np.abs(theta[:, 0]).max())
    assert np.abs(Q - law(delta[:, 0])).max() <= 1e-13 * scale
    motor_side = INERTIA * theta[:, 2] + Q + smooth_friction(theta[:, 1]) - tau[:, 0]
    assert np.abs(motor_side).max() <= 1e-13 * (scale + np.abs(INERTIA * theta[:, 2]).max())


def test_rigid_drive_adds_inertia_and_friction_with_their_derivatives():
    drives = {name: RigidDrive(INERTIA[j], SMOOTH) for j, name in enumerate(NAMES)}
    theta, tau, _ = motor_motion(Actuators(MODEL, drives), joint_motion([0.8], 6))
    motion = joint_motion([0.8], 6)[0]
    np.testing.assert_array_equal(theta[0], motion)
    losses = SMOOTH.effort(motion[1:5].T).T
    np.testing.assert_allclose(losses[0], smooth_friction(motion[1]), rtol=1e-13)
    expected = link_efforts(motion) + INERTIA * motion[2:] + losses
    scale = np.abs(expected).max(axis=-1, keepdims=True)
    np.testing.assert_allclose(tau[0] / scale, expected / scale, rtol=0.0, atol=1e-12)


def test_one_joint_alone_needs_no_robot():
    spring = CubicSpring(50.0, 900.0, 0.5)
    joint = SeriesElastic(spring, 0.2, friction=friction.Viscous(0.4))
    q, effort = np.array([0.1, 0.2, -0.3, 0.4, -0.5]), np.array([7.0, -8.0, 9.0])
    position, torque = joint.motors(q, effort)
    assert position.shape == (1, 3)
    assert torque.shape == (1, 1)
    d = position[0] - q[:3]
    assert 50.0 * d[0] + 900.0 * d[0] ** 3 == pytest.approx(7.0, rel=1e-13)
    assert (50.0 + 2700.0 * d[0] ** 2) * d[1] == pytest.approx(-8.0, rel=1e-12)
    expected = 0.2 * position[0, 2] + 7.0 + 0.4 * position[0, 1]
    assert torque[0, 0] == pytest.approx(expected, rel=1e-14)
    np.testing.assert_allclose(joint.deflection(q, joint.motors(q, effort)), d, atol=1e-15)


@pytest.mark.parametrize(
    ('K', 'orders'), [(3, (1, 0)), (4, (2, 0)), (5, (3, 1)), (7, (5, 3))]
)
def test_orders_of_the_motors_are_what_the_motion_determines(K, orders):
    motion = joint_motion([0.3], K)[0]
    result = motor_motion(elastic(1000.0), motion, order=None)
    assert (result.position.shape[0], result.torque.shape[0]) == orders
    assert result.deflection.shape == result.position.shape


@pytest.mark.parametrize(
    ('K', 'order', 'needed'), [(4, 0, 5), (3, 0, 5), (5, 1, 6), (5, 2, 7)]
)
def test_motion_of_too_low_an_order_is_refused_with_the_order_that_is_needed(
    K, order, needed
):
    motion = joint_motion([0.3], K)[0]
    what = f'Derivative {order} of the motor' if order else 'The motor'
    with pytest.raises(
        MotionError, match=rf'{what} torques .*K = {K}.*expected K >= {needed}'
    ):
        motor_motion(elastic(1000.0), motion, **({'order': order} if order else {}))
    enough = motor_motion(elastic(1000.0), joint_motion([0.3], needed)[0], order=order)
    assert enough.torque.shape[0] == order + 1


def test_deflection_beyond_the_range_names_joint_and_sample():
    motion = np.zeros((4, 3, 5, 7))
    motion[2, 1, 2, 3] = 50.0
    limit = 1.1 * np.abs(inverse_dynamics(MODEL, np.zeros((5, 7)))[0, 3]) + 5.0
    for spring in (
        LinearSpring(100.0, limit / 100.0),
        PolynomialSpring((100.0,), limit / 100.0),
    ):
        actuators = Actuators(MODEL, {NAMES[3]: SeriesElastic(spring, 0.5)})
        with pytest.raises(
            DeflectionError, match=rf"Joint '{NAMES[3]}'.*reaches"
        ) as caught:
            motor_motion(actuators, motion)
        assert caught.value.joint == NAMES[3]
        assert caught.value.sample == (2, 1)


@pytest.mark.parametrize('bad', [0.0, -3.0, np.nan, np.inf, 'soft', None, True])
def test_stiffness_and_inertia_must_be_positive(bad):
    with pytest.raises(ActuatorError, match='expected a finite number above 0'):
        SeriesElastic(bad, 0.1)
    with pytest.raises(ActuatorError, match='motor_inertia is .* above 0'):
        SeriesElastic(100.0, bad)


def test_inertia_must_be_given():
    with pytest.raises(TypeError, match='motor_inertia'):
        SeriesElastic(100.0)


@pytest.mark.parametrize(
    ('make', 'reason'),
    [
        (lambda: SeriesElastic(100.0, 0.1, -1.0), 'damping is -1.0, .* from 0 on'),
        (lambda: SeriesElastic(100.0, 0.1, np.inf), 'damping is inf'),
        (
            lambda: SeriesElastic(100.0, 0.1, 0.0, 0.3),
            'friction is 0.3, expected a friction law',
        ),
        (lambda: RigidDrive(-0.1), 'motor_inertia is -0.1'),
        (lambda: RigidDrive(0.1, 'oil'), 'friction is'),
    ],
)
def test_other_parameters_that_cannot_be_used_are_refused(make, reason):
    with pytest.raises(ActuatorError, match=reason):
        make()
