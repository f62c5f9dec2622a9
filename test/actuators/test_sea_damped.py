"""Linear springs with a damper: the deflection along a torque, against closed forms."""

import numpy as np
import pytest
from support.damped_joint import first_deflection, follow_torque

from hodyn_ros.actuators import (
    CubicSpring,
    LinearSpring,
    PolynomialSpring,
    SeriesElastic,
    TableSpring,
)
from hodyn_ros.errors import ActuatorError, DeflectionError

OMEGA = np.array([3.0, 1.7])
AMPLITUDE = np.array([20.0, 9.0])


def torque(times, E=3):
    """Sum of two oscillations and its derivatives, shape (..., E)."""
    t = np.asarray(times, dtype=float)[..., None, None]
    k = np.arange(E)[:, None]
    return (AMPLITUDE * OMEGA**k * np.cos(OMEGA * t + k * np.pi / 2)).sum(axis=-1)


def along(spring, damping, times, Q, start=None):
    """Deflection along a torque, from the beginning on."""
    first = first_deflection(spring, damping, Q[0], start)
    return follow_torque(spring, damping, np.asarray(times), Q, first)


def next_deflection(spring, damping, step, effort, before):
    """Deflection a step later, from what the step before has left alone."""
    unknown = np.full_like(effort, np.nan)
    return follow_torque(spring, damping, [0.0, step], np.stack((unknown, effort)), before)[
        1
    ]


def test_linear_spring_follows_the_closed_solution():
    stiffness, damping, start = 800.0, 40.0, -0.02
    times = np.linspace(0.0, 1.5, 301)
    # D x' + k x = a cos(w t): the real part of a / (k + i w D) exp(i w t), and what decays.
    gain = AMPLITUDE / (stiffness + 1j * OMEGA * damping)
    steady = np.stack(
        [
            (gain * (1j * OMEGA) ** m * np.exp(1j * OMEGA * times[:, None]))
            .sum(axis=-1)
            .real
            for m in range(4)
        ],
        axis=-1,
    )
    rate = -stiffness / damping
    decaying = (start - steady[0, 0]) * np.exp(rate * times)
    exact = steady + decaying[:, None] * rate ** np.arange(4)
    joint = LinearSpring(stiffness), damping
    found = along(*joint, times, torque(times), start)
    assert found.shape == (301, 4)
    error = np.abs(found - exact).max(axis=0) / np.abs(exact).max(axis=0)
    assert np.all(error <= 1e-9)


@pytest.mark.parametrize('damping', [1e-12, 1e-6, 1e-3, 1.0, 50.0, 1e4])
@pytest.mark.parametrize('step', [1e-3, 0.04])
def test_equation_of_the_spring_and_its_derivatives_hold_to_rounding(damping, step):
    times = step * np.arange(60)
    Q = torque(times)
    d = along(LinearSpring(1000.0), damping, times, Q)
    spring, damper = 1000.0 * d[:, :3], damping * d[:, 1:]
    terms = (np.abs(Q) + np.abs(spring) + np.abs(damper)).max(axis=0)
    assert np.all(np.abs(Q - spring - damper) <= 1e-13 * terms)


@pytest.mark.parametrize('orders', [1, 3])
@pytest.mark.parametrize('load', [0.0, 12.0])
def test_motion_at_rest_begins_and_stays_at_rest(orders, load):
    effort = np.zeros((3, orders))
    effort[:, 0] = load
    found = along(LinearSpring(300.0), 20.0, [0.0, 0.1, 0.2], effort)
    np.testing.assert_allclose(found[:, 0], load / 300.0, rtol=1e-14)
    assert np.abs(found[:, 1:]).max() <= 1e-13 * load


def test_slow_solution_is_close_to_the_motion_that_has_forgotten_its_beginning():
    stiffness = 800.0
    errors = []
    for damping in (8.0, 4.0):
        gain = AMPLITUDE / (stiffness + 1j * OMEGA * damping)
        exact = (gain * np.exp(0.4j * OMEGA)).sum().real
        joint = LinearSpring(stiffness), damping
        errors.append(abs(first_deflection(*joint, torque(0.4))[0] - exact))
    assert errors[0] / errors[1] == pytest.approx(8.0, rel=0.1)  # (D / k)^E


def test_one_sample_has_the_deflection_of_the_beginning():
    joint = LinearSpring(1000.0), 2.0
    found = along(*joint, [0.3], torque([0.3]))
    np.testing.assert_array_equal(found, first_deflection(*joint, torque(0.3))[None])


@pytest.mark.parametrize('E', [1, 2, 4, 5])
def test_every_order_of_the_torque_is_used(E):
    times = np.linspace(0.0, 2.0, 2001)
    found = along(LinearSpring(800.0), 8.0, times, torque(times, E))
    gain = AMPLITUDE / (800.0 + 8j * OMEGA)
    exact = (gain * np.exp(1j * OMEGA * times[:, None])).sum(axis=-1).real
    late = times > 0.5
    error = np.abs(found[late, 0] - exact[late]).max() / np.abs(exact).max()
    assert found.shape == (2001, E + 1)
    assert error <= {1: 1e-2, 2: 1e-7}.get(E, 1e-12)


def test_deflection_may_stay_within_its_range_while_the_torque_exceeds_that_of_the_spring():
    joint = LinearSpring(100.0, 0.1), 50.0
    times = np.linspace(0.0, 0.02, 21)
    pulse = np.zeros((21, 3))
    pulse[:, 0] = 12.0
    d = along(*joint, times, pulse, 0.0)
    assert 0.0 < d[-1, 0] < 0.1
    with pytest.raises(DeflectionError, match='deflection of'):
        along(*joint, np.linspace(0.0, 20.0, 21), pulse, 0.0)
    with pytest.raises(DeflectionError, match='deflection of 0.2'):
        first_deflection(*joint, pulse[0], 0.2)
    with pytest.raises(DeflectionError):
        next_deflection(
            *joint, 0.01, np.array([500.0, 0.0, 0.0]), np.array([0.0999, 1.0, 0, 0])
        )


def test_damped_joint_refuses_to_guess_the_past():
    joint = SeriesElastic(100.0, 0.5, 1.0)
    with pytest.raises(ActuatorError, match='differential equation.*motor_motion'):
        joint.motors(np.zeros(5), np.zeros(3))


@pytest.mark.parametrize(
    'spring',
    [
        CubicSpring(300.0, 3e4),
        PolynomialSpring((300.0, 10.0), 0.1),
        TableSpring((-1, 0, 1), (-90, 0, 99)),
    ],
    ids=lambda spring: type(spring).__name__,
)
def test_damper_beside_a_spring_that_is_not_linear_is_refused(spring):
    with pytest.raises(
        ActuatorError, match=r'damping is 2.0 beside a .*LinearSpring\(stiff'
    ):
        SeriesElastic(spring, 0.5, damping=2.0)
