"""Springs with a damper: the deflection along a torque, against closed forms and SciPy."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from support.damped_joint import first_deflection, follow_torque
from support.examples import EXPENSIVE

from hodyn_ros.actuators import CubicSpring, LinearSpring, SeriesElastic, TableSpring
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
    return follow_torque(spring, damping, [0.0, step], np.stack((unknown, effort)), before)[1]


def law_of_cubic(d):
    return 300.0 * d + 3e4 * d**3


def test_linear_spring_follows_the_closed_solution():
    stiffness, damping, start = 800.0, 40.0, -0.02
    times = np.linspace(0.0, 1.5, 301)
    # D x' + k x = a cos(w t): the real part of a / (k + i w D) exp(i w t), and what decays.
    gain = AMPLITUDE / (stiffness + 1j * OMEGA * damping)
    steady = np.stack(
        [
            (gain * (1j * OMEGA) ** m * np.exp(1j * OMEGA * times[:, None])).sum(axis=-1).real
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


@pytest.mark.parametrize('damping', [0.5, 5.0, 500.0])
def test_nonlinear_spring_follows_an_independent_integration(damping):
    times = np.linspace(0.0, 2.0, 401)
    joint = CubicSpring(300.0, 3e4), damping
    found = along(*joint, times, torque(times), 0.01)
    solution = solve_ivp(
        lambda t, d: (torque(t, 1)[..., 0] - law_of_cubic(d)) / damping,
        (0.0, 2.0), [0.01], method='Radau', rtol=1e-11, atol=1e-13, t_eval=times,
    )  # fmt: skip
    # Shortly after the start the steps are no shorter than the transient of the light dampers.
    late = times > 0.1
    assert np.abs(found[late, 0] - solution.y[0, late]).max() <= 1e-8 * np.abs(found[:, 0]).max()


@pytest.mark.parametrize('damping', [1e-12, 1e-6, 1e-3, 1.0, 50.0, 1e4])
@pytest.mark.parametrize('step', [1e-3, 0.04])
@pytest.mark.parametrize('kind', ['linear', 'cubic'])
def test_equation_of_the_spring_and_its_derivatives_hold_to_rounding(damping, step, kind):
    spring = {'linear': LinearSpring(1000.0), 'cubic': CubicSpring(300.0, 3e4)}[kind]
    times = step * np.arange(60)
    Q = torque(times)
    d = along(spring, damping, times, Q)
    x, v, a, j = d.T
    if kind == 'linear':
        force = [1000.0 * x, 1000.0 * v, 1000.0 * a]
    else:
        slope = 300.0 + 9e4 * x**2
        force = [law_of_cubic(x), slope * v, slope * a + 1.8e5 * x * v**2]
    for m, (f, rate) in enumerate(zip(force, (v, a, j))):
        terms = np.abs(Q[:, m]) + np.abs(f) + np.abs(damping * rate)
        assert np.all(np.abs(Q[:, m] - f - damping * rate) <= 1e-13 * terms.max())


@pytest.mark.parametrize(('damping', 'power'), [(2.0, 4.4), (20.0, 4.9), (200.0, 4.9)])
def test_error_falls_with_the_fifth_power_of_the_step_unless_it_spans_many_time_constants(
    damping, power
):
    joint = CubicSpring(300.0, 3e4), damping

    def last(count):
        times = np.linspace(0.0, 2.0, count)
        return along(*joint, times, torque(times))[-1, 0]

    exact = last(3201)
    ratio = abs(last(51) - exact) / abs(last(101) - exact)
    assert ratio > 2.0**power


@pytest.mark.parametrize('spring', [LinearSpring(1000.0), CubicSpring(300.0, 3e4)])
def test_vanishing_damping_leads_to_the_algebraic_joint_in_all_orders(spring):
    times = np.linspace(0.0, 2.0, 201)
    exact = spring.deflection_series(torque(times))
    scale = np.abs(exact).max(axis=0)
    for damping in (1e-4, 1e-7, 1e-10):
        found = along(spring, damping, times, torque(times))
        error = np.abs(found[:, :3] - exact).max(axis=0) / scale
        # D / f' times the derivatives, and the rounding of a second derivative from samples.
        assert np.all(error <= 0.1 * damping + 1e-10)


def test_derivatives_of_the_deflection_are_its_derivatives():
    nodes = np.polynomial.chebyshev.chebpts2(24)
    times = 1.0 + 0.2 * nodes
    joint = CubicSpring(300.0, 3e4), 3.0
    before = np.linspace(0.0, 0.8, 400, endpoint=False)
    every = np.concatenate((before, np.linspace(0.8, 1.2, 800)))
    every = np.unique(np.concatenate((every, times)))
    found = along(*joint, every, torque(every))
    place = np.searchsorted(every, times)
    fit = np.polynomial.chebyshev.chebfit(nodes, found[place, 0], 23)
    for order in (1, 2, 3):
        slope = np.polynomial.chebyshev.chebder(fit, order) / 0.2**order
        inner = slice(4, -4)
        numeric = np.polynomial.chebyshev.chebval(nodes, slope)[inner]
        exact = found[place, order][inner]
        assert np.abs(numeric - exact).max() <= 10.0 ** (order - 9) * np.abs(exact).max()


def test_motion_at_rest_begins_at_rest():
    joint = CubicSpring(300.0, 3e4), 20.0
    first = first_deflection(*joint, np.array([12.0, 0.0, 0.0]))
    assert law_of_cubic(first[0]) == pytest.approx(12.0, rel=1e-13)
    assert np.abs(first[1:]).max() <= 1e-12
    stay = along(*joint, [0.0, 0.1, 0.2], np.tile([12.0, 0.0, 0.0], (3, 1)))
    np.testing.assert_allclose(stay[:, 0], first[0], rtol=1e-14)


@pytest.mark.parametrize('orders', [1, 3])
def test_joint_that_carries_nothing_stays_undeflected(orders):
    joint = CubicSpring(300.0, 3e4), 20.0
    found = along(*joint, [0.0, 0.1, 0.2], np.zeros((3, orders)))
    assert np.all(found == 0.0)


def test_slow_solution_is_close_to_the_motion_that_has_forgotten_its_beginning():
    stiffness = 800.0
    errors = []
    for damping in (8.0, 4.0):
        gain = AMPLITUDE / (stiffness + 1j * OMEGA * damping)
        exact = (gain * np.exp(0.4j * OMEGA)).sum().real
        joint = LinearSpring(stiffness), damping
        errors.append(abs(first_deflection(*joint, torque(0.4))[0] - exact))
    assert errors[0] / errors[1] == pytest.approx(8.0, rel=0.1)  # (D / k)^E


def test_initial_deflection_is_forgotten_with_the_time_constant_of_the_joint():
    joint = LinearSpring(1000.0), 100.0
    times = np.linspace(0.0, 0.5, 101)
    usual, other = (along(*joint, times, torque(times), start) for start in (None, 0.1))
    assert other[0, 0] == 0.1
    expected = (0.1 - usual[0, 0]) * np.exp(-times * 1000.0 / 100.0)
    np.testing.assert_allclose(other[:, 0] - usual[:, 0], expected, rtol=1e-5)


@pytest.mark.parametrize(
    'spring',
    [LinearSpring(1000.0), CubicSpring(300.0, 3e4), TableSpring((-1, 0, 1), (-90, 0, 99))],
)
def test_sample_by_sample_is_the_same_as_all_at_once(spring):
    joint = spring, 2.0
    times = np.cumsum(np.random.default_rng(2).uniform(0.001, 0.01, 40))
    Q = torque(times)
    together = along(*joint, times, Q)
    series = first_deflection(*joint, Q[0])
    for i in range(1, 40):
        series = next_deflection(*joint, times[i] - times[i - 1], Q[i], series)
        scale = np.abs(together).max(axis=0)
        assert np.all(
            np.abs(series - together[i]) <= 1e-10 * scale + 1e-15 * 100.0 ** np.arange(4)
        )


@pytest.mark.parametrize('spring', [LinearSpring(1000.0), CubicSpring(300.0, 3e4)])
def test_one_sample_has_the_deflection_of_the_beginning(spring):
    joint = spring, 2.0
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
        next_deflection(*joint, 0.01, np.array([500.0, 0.0, 0.0]), np.array([0.0999, 1.0, 0, 0]))


def test_damped_joint_refuses_to_guess_the_past():
    joint = SeriesElastic(100.0, 0.5, 1.0)
    with pytest.raises(ActuatorError, match='differential equation.*motor_motion'):
        joint.motors(np.zeros(5), np.zeros(3))


@EXPENSIVE
@given(
    st.lists(st.floats(-1.0, 2.5), min_size=4, max_size=8),
    st.floats(-5.0, 3.5),
    st.floats(-3.0, -1.0),
    st.floats(0.0, 1.2),
    st.integers(1, 3),
)
@example([0.0, 1.46875, -1.0, 0.375, 0.0, 0.0], -3.0, -2.5, 0.0, 3)  # far from its zero torque
def test_springs_with_sudden_bends_are_followed_in_long_steps(rises, damping, step, rate, E):
    # Exponents of ten: slopes that change a thousandfold from knot to knot, and steps of up to
    # a tenth of a second in motions of up to 16 rad/s.
    x = np.linspace(-0.6, 0.6, len(rises))
    y = np.cumsum(10.0 ** np.array(rises))
    spring = TableSpring(x, y)
    D, h, w = 10.0**damping, 10.0**step, 10.0**rate
    k = np.arange(E)
    middle, swing = 0.5 * (y[0] + y[-1]), 0.4 * (y[-1] - y[0])
    Q = swing * w**k * np.cos(w * h * np.arange(10)[:, None] + k * np.pi / 2)
    Q[:, 0] += middle
    try:
        d = along(spring, D, h * np.arange(10), Q)
    except DeflectionError:
        # What the damper carries at the beginning may be too much for the spring.
        return
    force = spring.series(d[:, :E])
    terms = (
        np.abs(Q) + np.abs(force) + np.abs(D * d[:, 1:]) + spring.derivatives(d[:, 0], 1)[:, 1:]
    )
    size = np.abs(d).max(axis=0)[1:] * spring.derivatives(x, 1)[:, 1].max() + terms.max(axis=0)
    assert np.all(np.abs(Q - force - D * d[:, 1:]) <= 1e-9 * size)


def test_steps_that_are_too_long_for_the_equations_are_divided():
    spring, times = CubicSpring(3.1, 5e6), 0.036 * np.arange(60)
    joint = spring, 6.9

    def hard(t):
        return torque(5.0 * np.asarray(t), 2) * [1.5, 7.5]

    coarse = along(*joint, times, hard(times))
    fine_times = 0.036 / 40.0 * np.arange(59 * 40 + 1)
    fine = along(*joint, fine_times, hard(fine_times))[::40]
    assert np.abs(coarse[:, 0] - fine[:, 0]).max() <= 1e-3 * np.abs(fine[:, 0]).max()
