"""The spline through waypoints: what it meets, how smooth it is and what it refuses."""

from fractions import Fraction
from math import factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import make_interp_spline

from hodyn_ros.errors import TrajectoryError
from hodyn_ros.trajectory.spline import fit_spline

ORDER = 5
FREE = np.full((4, 1), np.nan)


def random_waypoints(seed, N, n=2, shortest=0.5, longest=1.5):
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.uniform(shortest, longest, N))
    return times, rng.uniform(-2.0, 2.0, (N, n))


def sine(t, frequency=1.0, highest=9):
    """Derivatives of sin(frequency t), shape (..., highest + 1, 1)."""
    k = np.arange(highest + 1)
    t = np.asarray(t, dtype=float)[..., None]
    return (frequency**k * np.sin(frequency * t + 0.5 * np.pi * k))[..., None]


def assert_close_by_order(actual, expected, tolerance):
    """Every derivative relative to its largest value over all times and joints."""
    scale = np.abs(expected).max(axis=(0, 2), keepdims=True)
    error = np.abs(actual - expected) / np.where(scale > 0.0, scale, 1.0)
    assert error.max() <= tolerance


# What the motion meets


@st.composite
def waypoints(draw, shortest=1e-3, smallest_N=2):
    """Times, positions, and velocities and accelerations at some of the waypoints."""
    N = draw(st.integers(smallest_N, 12))
    exponents = draw(
        st.lists(st.floats(np.log10(shortest), 0.5), min_size=N - 1, max_size=N - 1)
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    times = np.concatenate([[0.0], np.cumsum(10.0 ** np.array(exponents))])
    rows = []
    for share in (
        draw(st.sampled_from([0.0, 0.5, 1.0])),
        draw(st.sampled_from([0.0, 0.5, 1.0])),
    ):
        values = rng.standard_normal((N, 3))
        values[rng.random(N) >= share] = np.nan
        rows.append(values)
    return times, rng.uniform(-3.0, 3.0, (N, 3)), *rows


@given(waypoints())
def test_everything_given_is_met_exactly(case):
    times, positions, velocities, accelerations = case
    spline = fit_spline(*case)
    for motion in (spline(times), spline.states):
        np.testing.assert_array_equal(motion[:, 0], positions)
        for k, rows in ((1, velocities), (2, accelerations)):
            is_given = ~np.isnan(rows[:, 0])
            np.testing.assert_array_equal(spline.given[:, k], is_given)
            np.testing.assert_array_equal(motion[is_given, k], rows[is_given])
    assert spline.given[:, 0].all()
    assert not spline.given[:, 3:].any()


# Smoothness


def exact_spline(times, values, is_given):
    """Free derivatives that minimise the energy, in rational arithmetic. One joint."""
    # The energy of a segment of duration 1 is z' E z for the states z at both ends. Monomial
    # coefficients follow from the states, the energy from those by integration.
    rows = [[Fraction(factorial(k) if j == k else 0) for j in range(10)] for k in range(5)]
    rows += [
        [
            Fraction(factorial(j), factorial(j - k)) if j >= k else Fraction(0)
            for j in range(10)
        ]
        for k in range(5)
    ]
    to_monomials = solve_exactly(
        rows, [[Fraction(int(i == j)) for j in range(10)] for i in range(10)]
    )
    fifth = [
        [to_monomials[j][i] * Fraction(factorial(j), factorial(j - 5)) for i in range(10)]
        for j in range(5, 10)
    ]
    E = [
        [
            sum(fifth[a][i] * fifth[b][j] / (a + b + 1) for a in range(5) for b in range(5))
            for j in range(10)
        ]
        for i in range(10)
    ]
    index = {(int(i), int(k)): c for c, (i, k) in enumerate(np.argwhere(~is_given))}
    matrix = [[Fraction(0)] * len(index) for _ in index]
    right = [[Fraction(0)] for _ in index]
    for i in range(len(times) - 1):
        h = Fraction(float(times[i + 1])) - Fraction(float(times[i]))
        keys = [(i + side, k) for side in range(2) for k in range(5)]
        for a, first in enumerate(keys):
            if first not in index:
                continue
            for b, second in enumerate(keys):
                entry = E[a][b] * h ** (first[1] + second[1] - 9)
                if second in index:
                    matrix[index[first]][index[second]] += entry
                else:
                    right[index[first]][0] -= entry * Fraction(float(values[second]))
    solution = solve_exactly(matrix, right)
    states = values.copy()
    for key, c in index.items():
        states[key] = float(solution[c][0])
    return states


def solve_exactly(matrix, right):
    rows = [list(a) + list(b) for a, b in zip(matrix, right)]
    n = len(matrix)
    for c in range(n):
        pivot = next(r for r in range(c, n) if rows[r][c] != 0)
        rows[c], rows[pivot] = rows[pivot], rows[c]
        rows[c] = [value / rows[c][c] for value in rows[c]]
        for r in range(n):
            if r != c and rows[r][c] != 0:
                factor = rows[r][c]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[c])]
    return [row[n:] for row in rows]


SHORT = 2.0**-13  # about 1e-4; exact in binary, which keeps the fractions small
SPACINGS = {
    'uniform': [1, 1, 1, 1, 1, 1],
    'one short': [1, 1, SHORT, 1, 1, 1],
    'two short': [1, 1, SHORT, SHORT, 1, 1],
    'short at the end': [1, 1, 1, 1, 1, SHORT],
    'alternating': [1, SHORT, 1, SHORT, 1, SHORT],
    'geometric': [1, 2.0**-3, 2.0**-6, 2.0**-8, 2.0**-11, SHORT],
}


@pytest.mark.parametrize('spacing', SPACINGS)
@pytest.mark.parametrize('pattern', ['positions', 'velocities', 'mixed', 'free ends'])
def test_derivatives_are_exact_even_where_times_differ_by_a_factor_of_ten_thousand(
    spacing, pattern
):
    times = np.concatenate([[0.0], np.cumsum(SPACINGS[spacing])])
    rng = np.random.default_rng(5)
    values = rng.standard_normal((len(times), 5))
    is_given = np.zeros(values.shape, dtype=bool)
    is_given[:, 0] = True
    if pattern == 'velocities':
        is_given[1:-1, 1] = True
    elif pattern == 'mixed':
        is_given[[1, 2, 4], 1] = True
        is_given[[2, 3, 4], 2] = True
    if pattern != 'free ends':
        is_given[[0, -1]] = True
        values[[0, -1], 1:] = 0.0
    rows = [np.where(is_given[:, k], values[:, k], np.nan)[:, None] for k in (1, 2)]
    ends = FREE if pattern == 'free ends' else np.zeros((4, 1))
    spline = fit_spline(times, values[:, :1], *rows, start=ends, end=ends)
    expected = exact_spline(times, values, is_given)
    # Each derivative relative to its size at the waypoint and its neighbours.
    size = np.abs(expected)
    padded = np.pad(size, ((1, 1), (0, 0)))
    size = np.maximum(size, np.maximum(padded[2:], padded[:-2]))
    assert np.all(np.abs(spline.states[..., 0] - expected) <= 1e-10 * size)


# Invariances


@given(waypoints(shortest=1e-2), st.integers(-3, 6), st.floats(0.1, 10.0))
def test_slower_motion_has_the_same_shape(case, exponent, factor):
    times, positions, velocities, accelerations = case
    reference = fit_spline(*case).states
    for scale in (2.0**exponent, factor):
        scaled = fit_spline(
            times * scale, positions, velocities / scale, accelerations / scale**2
        )
        states = scaled.states * scale ** np.arange(5.0)[:, None]
        if scale == 2.0**exponent:
            np.testing.assert_array_equal(states, reference)
        else:
            size = np.abs(reference).max(axis=(0, 2), keepdims=True)
            assert np.all(np.abs(states - reference) <= 1e-6 * size)


def test_large_time_offset_costs_no_accuracy():
    times, positions = random_waypoints(4, 50, shortest=0.01, longest=0.1)
    late = times + 1.7e9
    spline, reference = fit_spline(late, positions), fit_spline(late - late[0], positions)
    np.testing.assert_array_equal(spline.states, reference.states)
    t = np.linspace(late[0], late[-1], 1000)
    np.testing.assert_array_equal(spline(t), reference(t - late[0]))


def test_large_position_offset_costs_no_accuracy_of_derivatives():
    times, positions = random_waypoints(4, 50)
    positions = np.round(positions * 2**20) / 2**20
    near, far = (
        fit_spline(times, positions).states,
        fit_spline(times, positions + 2.0**20).states,
    )
    np.testing.assert_array_equal(far[:, 1:], near[:, 1:])


# Scale


def test_ten_thousand_waypoints_are_as_accurate_as_ten():
    rng = np.random.default_rng(0)
    times = np.cumsum(rng.uniform(0.05, 0.15, 10_000))
    frequencies = np.array([0.5, 1.0, 2.0])
    exact = np.concatenate([sine(times, f, highest=4) for f in frequencies], axis=-1)
    spline = fit_spline(times, exact[:, 0], start=exact[0, 1:], end=exact[-1, 1:])
    assert_close_by_order(spline.states, exact, 1e-6)
    t = np.linspace(times[0], times[-1], 50_000)
    expected = np.concatenate([sine(t, f, highest=4) for f in frequencies], axis=-1)
    assert_close_by_order(spline(t), expected, 1e-6)


def test_many_times_give_the_same_as_each_alone():
    times, positions = random_waypoints(2, 20, n=3)
    spline = fit_spline(times, positions)
    t = np.random.default_rng(0).uniform(times[0], times[-1], (2, 3000))
    motion = spline(t)
    assert motion.shape == (2, 3000, 5, 3)
    for index in ((0, 0), (0, 2047), (0, 2048), (1, 2999)):
        single = spline(t[index])
        assert single.shape == (5, 3)
        np.testing.assert_allclose(motion[index], single, rtol=1e-13, atol=1e-13)


# Ends


def test_motion_rests_at_both_ends_unless_told_otherwise():
    times, positions = random_waypoints(0, 6)
    spline = fit_spline(times, positions)
    np.testing.assert_array_equal(spline(times[[0, -1]])[:, 1:], 0.0)
    assert not spline.given[[0, -1], 1:].any()


@pytest.mark.parametrize('quantity', ['velocities', 'accelerations'])
def test_end_that_is_given_at_rest_stays_at_rest(quantity):
    times, positions = random_waypoints(0, 6)
    rows = np.full((6, 2), np.nan)
    # Planners return the standstill with rounding.
    rows[0], rows[-1] = 0.0, 1e-9
    spline = fit_spline(times, positions, **{quantity: rows})
    np.testing.assert_array_equal(spline.states[-1, 3:], 0.0)
    np.testing.assert_array_equal(spline.states[0, 1:], 0.0)
    k = {'velocities': 1, 'accelerations': 2}[quantity]
    np.testing.assert_array_equal(spline.states[-1, k], 1e-9)


def test_boundary_states_are_met_and_free_rows_are_free():
    times, positions = random_waypoints(0, 6)
    start = np.array([[0.1, 0.2], [np.nan, np.nan], [0.5, -0.5], [np.nan, np.nan]])
    spline = fit_spline(times, positions, start=start, end=np.ones((4, 2)))
    np.testing.assert_array_equal(spline.states[0, [1, 3]], start[[0, 2]])
    np.testing.assert_array_equal(spline.states[-1, 1:], 1.0)
    np.testing.assert_array_equal(spline.given[0], [True, True, False, True, False])
    assert spline.given[-1].all()
    assert np.all(spline.states[0, [2, 4]] != 0.0)


# Standstills


@pytest.mark.parametrize('rows', [None, 0.0])
@pytest.mark.parametrize('ends', [None, np.full((4, 2), np.nan)])
@pytest.mark.parametrize('noise', [0.0, 1e-16])
def test_motion_stands_still_between_equal_waypoints(rows, ends, noise):
    times = np.array([0.0, 1.0, 1.3, 2.3, 2.5, 2.7, 3.5])
    positions = np.array([0.0, 0.8, 0.8, 0.1, 0.1, 0.1, 0.5])[:, None] * [1.0, -0.5]
    positions += noise * np.random.default_rng(0).uniform(-1.0, 1.0, positions.shape)
    given = None if rows is None else np.zeros_like(positions)
    spline = fit_spline(times, positions, given, start=ends, end=ends)
    for first, last, value in ((1.0, 1.3, 0.8), (2.3, 2.7, 0.1)):
        motion = spline(np.linspace(first, last, 101))
        np.testing.assert_allclose(motion[:, 0, 0], value, rtol=0.0, atol=10.0 * noise)
        assert np.abs(motion[:, 1:]).max() <= 1e7 * noise
        assert spline.continuous_derivative == 4
    # What moves on one side does not depend on the other.
    alone = fit_spline(times[2:4], positions[2:4])
    t = np.linspace(1.3, 2.3, 101)
    if rows is None:
        np.testing.assert_allclose(spline(t), alone(t), rtol=0.0, atol=1e-9)


def test_only_a_standstill_of_all_joints_is_one():
    times, positions = random_waypoints(3, 6)
    positions[3, 0] = positions[2, 0]
    motion = fit_spline(times, positions)(np.linspace(times[2], times[3], 101))
    assert np.abs(motion[1:-1, 1, 0]).max() > 1e-2
    oracle = make_interp_spline(
        times, positions, k=9, bc_type=([(k, np.zeros(2)) for k in range(1, ORDER)],) * 2
    )
    expected = oracle(np.linspace(times[2], times[3], 101))
    np.testing.assert_allclose(motion[:, 0], expected, atol=1e-10)


@pytest.mark.parametrize('quantity', ['velocities', 'accelerations'])
def test_what_is_given_between_equal_waypoints_is_met(quantity):
    rows = np.full((4, 1), np.nan)
    rows[1] = 0.5
    spline = fit_spline(range(4), [[0.0], [1.0], [1.0], [0.0]], **{quantity: rows})
    k = {'velocities': 1, 'accelerations': 2}[quantity]
    assert spline.states[1, k] == 0.5
    assert np.abs(spline(np.linspace(1.0, 2.0, 11))[:, 0] - 1.0).max() > 1e-3


def test_two_equal_samples_where_a_motion_turns_back_are_no_standstill():
    # Samples of a sine on both sides of its peak are the same numbers.
    times = 0.1 * np.arange(-20, 20) + 0.05
    exact = sine(times + 0.5 * np.pi)
    exact[:20, 0] = exact[:19:-1, 0]
    spline = fit_spline(times, exact[:, 0], start=exact[0, 1:5], end=exact[-1, 1:5])
    t = np.linspace(times[0], times[-1], 400)
    expected = sine(t + 0.5 * np.pi, highest=4)
    assert np.all(
        np.abs(spline(t) - expected).max(axis=(0, 2)) < [1e-9, 1e-8, 1e-7, 1e-5, 1e-4]
    )
    # Unless it is said that they are one.
    rest = np.full((40, 1), np.nan)
    rest[19:21] = 0.0
    still = fit_spline(times, exact[:, 0], rest, start=exact[0, 1:5], end=exact[-1, 1:5])
    assert not still(np.linspace(-0.05, 0.05, 11))[:, 1:].any()


# Too little for a unique answer

FEW = {
    # Times, coefficients, and what is given besides positions: the k-th derivative at an end.
    'line': ([0.0, 2.0], [1.0, 0.5], ()),
    'parabola': ([0.0, 0.5, 2.0], [1.0, 0.5, -2.0], ()),
    'cubic': ([0.0, 0.5, 1.5, 2.0], [1.0, 0.5, -2.0, 0.25], ()),
    'velocities': ([0.5, 2.0], [1.0, 0.5, -2.0, 0.25], ((1, 0), (1, -1))),
    'accelerations': ([0.5, 2.0], [1.0, 0.5, -2.0, 0.25], ((2, 0), (2, -1))),
    'just enough': ([0.5, 1.0, 2.0], [1.0, 0.5, -2.0, 0.25, 0.1], ((2, 0), (4, 0))),
}


@pytest.mark.parametrize('few', FEW)
def test_few_values_are_met_by_the_polynomial_of_lowest_degree(few):
    times, coefficients, more = FEW[few]
    times, polynomial = 3.0 + np.array(times), np.polynomial.Polynomial(coefficients)
    ends = {0: FREE.copy(), -1: FREE.copy()}
    for k, end in more:
        ends[end][k - 1] = polynomial.deriv(k)(times[end] - 3.0)
    positions = polynomial(times - 3.0)[:, None]
    spline = fit_spline(times, positions, start=ends[0], end=ends[-1])
    t = np.linspace(times[0], times[-1], 50)
    expected = np.stack([polynomial.deriv(k)(t - 3.0) for k in range(5)], axis=1)[..., None]
    np.testing.assert_allclose(spline(t), expected, atol=1e-12)
    assert spline.given[:, 1:].sum() == len(more)


# Use


# Errors

TIMES = [0.0, 1.0, 2.0]
POSITIONS = [[0.0, 0.0], [1.0, 2.0], [2.0, 0.0]]
NAN, INF = np.nan, np.inf


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (([], np.zeros((0, 2))), 'are no waypoints, expected at least two'),
        (([0.0], [[0.0]]), 'is one waypoint, expected at least two'),
        ((0.0, [[0.0]]), r'times has shape \(\), expected \(N,\)'),
        (
            ([0.0, 1.0, 1.0], POSITIONS),
            r'times\[1\] = 1.0 s is followed by times\[2\] = 1.0 s',
        ),
        (
            ([0.0, -1.0, 1.0], POSITIONS),
            r'times\[0\] = 0.0 s is followed by times\[1\] = -1.0 s',
        ),
        (([0.0, NAN, 1.0], POSITIONS), r'times\[1\] is nan'),
        (([0.0, 1.0, INF], POSITIONS), r'times\[2\] is inf'),
        ((['0', '1', '2'], POSITIONS), 'times has elements of type'),
        ((TIMES, [0.0, 1.0, 2.0]), r'positions has shape \(3,\), expected \(3, n\)'),
        ((TIMES, POSITIONS[:2]), r'positions has shape \(2, 2\), expected \(3, n\)'),
        ((TIMES, np.zeros((3, 0))), r'positions has shape \(3, 0\)'),
        (
            (TIMES, [[0.0], [1.0, 2.0], [2.0]]),
            'positions cannot be made an array|type object',
        ),
        ((TIMES, [[0, 0], [NAN, 2], [2, 0]]), r'positions\[1, 0\] is nan'),
        ((TIMES, [[0, 0], [INF, 2], [2, 0]]), r'positions\[1, 0\] is inf'),
        ((TIMES, [[0, 0], [NAN, NAN], [2, 0]]), 'Waypoint 1 has no positions'),
        ((TIMES, POSITIONS, [[0, 0]]), r'velocities has shape \(1, 2\), expected \(3, 2\)'),
        (
            (TIMES, POSITIONS, [[0, 0], [NAN, 1], [0, 0]]),
            r'velocities\[1, 0\] is nan; a row is',
        ),
        ((TIMES, POSITIONS, [[0, 0], [1, -INF], [0, 0]]), r'velocities\[1, 1\] is -inf'),
        (
            (TIMES, POSITIONS, None, [[0, 0], [1, NAN], [0, 0]]),
            r'accelerations\[1, 1\] is nan',
        ),
        (
            (TIMES, POSITIONS, None, None, [0, 0]),
            r'start has shape \(2,\), expected \(4, 2\)',
        ),
        ((TIMES, POSITIONS, None, None, None, [[0, INF]] * 4), r'end\[0, 1\] is inf'),
        (
            (TIMES, POSITIONS, np.ones((3, 2)), None, np.zeros((4, 2))),
            r'start asks for the velocity \[0.0, 0.0\], but the waypoint there has \[1.0, 1.0\]',
        ),
        (
            (TIMES, POSITIONS, None, np.ones((3, 2)), None, np.zeros((4, 2))),
            r'end asks for the acceleration \[0.0, 0.0\], but the waypoint there has \[1.0, 1.0\]',
        ),
        (([0.0, 1e-60, 2e-60], POSITIONS), 'cannot be computed in double precision'),
        (([0.0, 1e-40, 1e40], POSITIONS), 'cannot be computed in double precision'),
        ((TIMES, [[0.0], [1e308], [-1e308]]), 'cannot be computed in double precision'),
    ],
)
def test_unusable_waypoints_are_refused_with_the_reason(arguments, message):
    with pytest.raises(TrajectoryError, match=message):
        fit_spline(*arguments)


def test_spacing_beyond_the_reach_of_double_precision_is_refused():
    times = np.concatenate([[0.0], np.cumsum([1.0, 1e-12] * 6)])
    positions = np.random.default_rng(3).standard_normal((13, 1))
    with pytest.raises(TrajectoryError, match='merge waypoints that are too close'):
        fit_spline(times, positions)


@pytest.mark.parametrize('t', [-1e-9, 2.0000001, NAN, [0.5, 3.0], INF])
def test_times_outside_of_the_motion_are_refused(t):
    spline = fit_spline(TIMES, POSITIONS)
    with pytest.raises(
        TrajectoryError, match='outside of the motion, which lasts from 0.0 s'
    ):
        spline(t)


@pytest.mark.parametrize('order', [-1, 10, 2.5, None, 'two'])
def test_impossible_derivatives_are_refused(order):
    spline = fit_spline(TIMES, POSITIONS)
    with pytest.raises(TrajectoryError, match='integer from 0 to 9'):
        spline(0.5, order)
