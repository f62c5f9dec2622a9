"""Series elastic joints and rigid drives: orders, dampers, and what is refused."""

import numpy as np
import pytest
from support import robots

from hodyn_ros import RobotModel, friction
from hodyn_ros.actuators import (
    Actuators,
    CubicSpring,
    LinearSpring,
    RigidDrive,
    SeriesElastic,
    motor_motion,
)
from hodyn_ros.errors import ActuatorError, DeflectionError, MotionError

MODEL = RobotModel.from_urdf(
    robots.robot(
        '<link name="base"/>', robots.link('a'), robots.joint('joint', 'base', 'a')
    )
)
OMEGA, AMPLITUDE = np.array([3.0, 1.7]), np.array([20.0, 9.0])


def torque(times, E=3):
    """Sum of two oscillations and its derivatives, shape (N, E, 1)."""
    t, k = np.asarray(times)[:, None, None], np.arange(E)[:, None]
    terms = AMPLITUDE * OMEGA**k * np.cos(OMEGA * t + k * np.pi / 2)
    return terms.sum(axis=-1, keepdims=True)


def along(drive, times, effort, start=None):
    """Deflections (N, E) of a joint at rest along a torque."""
    actuators = Actuators(MODEL, {'joint': drive})
    given = {} if start is None else {'initial_deflection': {'joint': start}}
    still = np.zeros((len(times), effort.shape[1] + 2, 1))
    return motor_motion(
        actuators, still, effort, times=times, order=None, **given
    ).deflection[..., 0]


@pytest.mark.parametrize('E', [3, 1, 2, 5])
def test_damped_spring_follows_the_closed_solution(E):
    stiffness, damping, start = 800.0, 8.0, -0.02
    times = np.linspace(0.0, 1.5, 1501)
    # D x' + k x = a cos(w t): the real part of a / (k + i w D) exp(i w t), and what decays.
    gain = AMPLITUDE / (stiffness + 1j * OMEGA * damping)
    steady = (gain * np.exp(1j * OMEGA * times[:, None])).sum(axis=-1).real
    exact = steady + (start - steady[0]) * np.exp(-stiffness / damping * times)
    found = along(SeriesElastic(stiffness, 1.0, damping), times, torque(times, E), start)
    error = np.abs(found[:, 0] - exact).max() / np.abs(exact).max()
    assert error <= {1: 1e-2, 2: 1e-6, 3: 1e-9, 5: 1e-12}[E]


@pytest.mark.parametrize('damping', [1e4, 1e-12, 1e-3, 50.0])
def test_equation_of_the_damped_spring_and_its_derivatives_hold_to_rounding(damping):
    times = 0.04 * np.arange(60)
    Q = torque(times)[..., 0]
    d = along(SeriesElastic(1000.0, 1.0, damping), times, Q[..., None])
    spring, damper = 1000.0 * d[:, :3], damping * d[:, 1:4]
    terms = (np.abs(Q) + np.abs(spring))[:, : damper.shape[1]].max(axis=0)
    count = damper.shape[1]
    residual = np.abs(Q[:, :count] - spring[:, :count] - damper)
    assert np.all(residual <= 1e-13 * (terms + np.abs(damper).max(axis=0)))


def test_damped_spring_at_rest_begins_and_stays_at_rest():
    effort = np.zeros((3, 3, 1))
    effort[:, 0] = 12.0
    found = along(SeriesElastic(300.0, 1.0, 20.0), [0.0, 0.1, 0.2], effort)
    np.testing.assert_allclose(found[:, 0], 0.04, rtol=1e-14)
    assert np.abs(found[:, 1:]).max() <= 1e-12


def test_unknown_beginning_is_that_of_a_slow_motion():
    """Without its past, the deflection is known up to (D / k)^E."""
    errors = []
    for damping in (8.0, 4.0):
        gain = AMPLITUDE / (800.0 + 1j * OMEGA * damping)
        exact = (gain * np.exp(0.4j * OMEGA)).sum().real
        found = along(SeriesElastic(800.0, 1.0, damping), [0.4], torque([0.4]))
        errors.append(abs(found[0, 0] - exact))
    assert errors[0] / errors[1] == pytest.approx(8.0, rel=0.1)


def test_damped_spring_may_stay_in_its_range_while_the_torque_exceeds_it():
    joint, pulse = SeriesElastic(LinearSpring(100.0, 0.1), 1.0, 50.0), np.zeros((21, 3, 1))
    pulse[:, 0] = 12.0
    assert 0.0 < along(joint, np.linspace(0.0, 0.02, 21), pulse, 0.0)[-1, 0] < 0.1
    with pytest.raises(DeflectionError, match='deflection of') as caught:
        along(joint, np.linspace(0.0, 20.0, 21), pulse, 0.0)
    assert caught.value.joint == 'joint'
    with pytest.raises(DeflectionError, match='deflection of 0.2'):
        along(joint, [0.0], pulse[:1], 0.2)


def test_rigid_drive_adds_inertia_and_friction_with_their_derivatives():
    law = friction.Viscous(0.3) + friction.Coulomb(1.5, 0.4)
    q = np.array([0.1, 0.2, -0.3, 0.4, -0.5])
    effort = np.array([7.0, -8.0, 9.0])
    found = RigidDrive(0.2, law).motors(q, effort)
    dry = np.tanh(q[1] / 0.4)
    rate = 0.3 * q[2] + 1.5 * (1.0 - dry**2) * q[2] / 0.4
    expected = [7.0 + 0.2 * q[2] + 0.3 * q[1] + 1.5 * dry, -8.0 + 0.2 * q[3] + rate]
    np.testing.assert_allclose(found.torque[0, :2], expected, rtol=1e-13)
    np.testing.assert_array_equal(found.position[0], q)


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
        (lambda: SeriesElastic(True, 0.1), 'expected a finite number above 0'),
        (lambda: SeriesElastic(100.0, np.nan), 'motor_inertia is .* above 0'),
        (lambda: SeriesElastic(100.0, 0.1, -1.0), 'damping is -1.0, .* from 0 on'),
        (lambda: SeriesElastic(100.0, 0.1, 0.0, 0.3), 'friction is 0.3, expected a frict'),
        (lambda: RigidDrive(-0.1), 'motor_inertia is -0.1'),
        (lambda: RigidDrive(0.1, 'oil'), 'friction is'),
        (
            lambda: SeriesElastic(CubicSpring(300.0, 3e4), 0.5, damping=2.0),
            r'damping is 2.0 beside a .*LinearSpring\(stiff',
        ),
        (
            lambda: SeriesElastic(100.0, 0.5, 1.0).motors(np.zeros(5), np.zeros(3)),
            'differential equation.*motor_motion',
        ),
    ],
)
def test_parameters_that_cannot_be_used_are_refused(make, reason):
    with pytest.raises(ActuatorError, match=reason):
        make()
