"""The spline through waypoints: what it meets, how smooth it is and what it refuses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import BPoly, make_interp_spline

from hodyn_ros.errors import TrajectoryError
from hodyn_ros.trajectory import fit_spline

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


def energy(times, states):
    """Integral of the squared fifth derivative of the Hermite polynomials through the states."""
    polynomial = BPoly.from_derivatives(times, states)
    x, w = np.polynomial.legendre.leggauss(9)
    h = np.diff(times)[:, None]
    t = times[:-1, None] + 0.5 * h * (1.0 + x)
    return float(np.sum(0.5 * h * w * polynomial(t, 5)[..., 0] ** 2))


@given(waypoints(shortest=0.1))
def test_any_change_of_a_free_derivative_costs_smoothness(case):
    times, positions, velocities, accelerations = (array[..., :1] for array in case)
    times = case[0]
    free = np.full((4, 1), np.nan)
    spline = fit_spline(times, positions, velocities, accelerations, start=free, end=free)
    least = energy(times, spline.states)
    for i, k in np.argwhere(~spline.given):
        h = np.diff(times)[max(i - 1, 0) : i + 1].min()
        changed = [spline.states.copy(), spline.states.copy()]
        step = max(1.0, np.sqrt(least) * h ** (k - 4.5)) / h**k
        changed[0][i, k] += step
        changed[1][i, k] -= step
        more, less = (energy(times, states) for states in changed)
        # A parabola with its lowest point at the spline.
        curvature = more + less - 2.0 * least
        assert curvature > 0
        assert abs(more - less) < 1e-5 * curvature


def test_derivatives_stay_close_to_the_smooth_motion_that_unequal_samples_come_from():
    rng = np.random.default_rng(11)
    times = np.concatenate([[0.0], np.cumsum(10.0 ** rng.uniform(-4, -0.5, 60))])
    exact = sine(times, frequency=2.0)
    spline = fit_spline(times, exact[:, 0], start=exact[0, 1:5], end=exact[-1, 1:5])
    t = np.linspace(times[0], times[-1], 1000)
    error = np.abs(spline(t) - sine(t, 2.0, highest=4)).max(axis=(0, 2))
    assert np.all(error < [1e-7, 1e-6, 1e-5, 1e-3, 5e-2])


# Invariances


def test_large_time_offset_costs_no_accuracy():
    times, positions = random_waypoints(4, 50, shortest=0.01, longest=0.1)
    late = times + 1.7e9
    spline, reference = fit_spline(late, positions), fit_spline(late - late[0], positions)
    np.testing.assert_array_equal(spline.states, reference.states)
    t = np.linspace(late[0], late[-1], 1000)
    np.testing.assert_array_equal(spline(t), reference(t - late[0]))


# Ends


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


def test_only_a_standstill_of_all_joints_is_one():
    times, positions = random_waypoints(3, 6)
    positions[3, 0] = positions[2, 0]
    motion = fit_spline(times, positions)(np.linspace(times[2], times[3], 101))
    assert np.abs(motion[1:-1, 1, 0]).max() > 1e-2


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
    'velocities': ([0.5, 2.0], [1.0, 0.5, -2.0, 0.25], ((1, 0), (1, -1))),
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


# Many waypoints, which are solved in windows


@pytest.mark.parametrize('rate', [1.0, 100.0])
def test_spline_through_many_positions_is_that_of_scipy(rate):
    rng = np.random.default_rng(4)
    times = np.cumsum(rng.uniform(0.5, 1.5, 3000)) / rate
    positions = np.sin(times[:, None] * rate / [3.0, 20.0])
    ends = [(k, np.zeros(2)) for k in range(1, 5)]
    expected = make_interp_spline(times, positions, 9, bc_type=(ends, ends))
    spline = fit_spline(times, positions)
    t = np.sort(rng.uniform(times[0], times[-1], 5000))
    for k in range(5):
        right = expected(t, k)
        largest = np.abs(right).max()
        np.testing.assert_allclose(
            spline(t, k)[:, k], right, rtol=0.0, atol=1e-10 * largest
        )
    assert not spline.states[[0, -1], 1:].any()


@pytest.mark.every_case
@pytest.mark.parametrize('largest', [1.0, 3.0, 30.0])  # ratio of durations
def test_spline_through_many_samples_of_a_smooth_motion_is_that_motion(largest):
    rng = np.random.default_rng(6)
    times = np.cumsum(0.02 * largest ** rng.uniform(size=4000) / largest)
    w = np.array([1.0, 2.5])
    motion = np.stack([w**k * np.sin(times[:, None] * w + k * np.pi / 2) for k in range(5)])
    velocities = np.full_like(motion[1], np.nan)
    velocities[2700] = motion[1, 2700]
    ends = motion[1:, 0], motion[1:, -1]
    spline = fit_spline(times, motion[0], velocities, start=ends[0], end=ends[1])
    t = rng.uniform(times[0], times[-1], 5000)
    for k in range(5):
        exact = w**k * np.sin(t[:, None] * w + k * np.pi / 2)
        # Rounding, which grows with each derivative, and with how different the durations are.
        bound = 1e-12 * (150.0 * largest**0.4) ** k
        np.testing.assert_allclose(spline(t, k)[:, k], exact, rtol=0.0, atol=bound)


def test_spline_through_dense_samples_is_the_motion_that_was_sampled():
    motion = fit_spline([0.0, 3.0], [[1.7], [1.701]])
    times = 1e-3 * np.arange(3001)
    spline = fit_spline(times, motion(times, 0)[:, 0])
    t = 1e-3 * np.arange(3000) + 4e-4
    off = np.abs(spline(t) - motion(t))[200:-200].max(axis=(0, 2))
    # By the rounding of 1.7, a thousand times as much with each derivative.
    assert np.all(off < 1e-13 * 1e3 ** np.arange(5))


# Errors

TIMES = [0.0, 1.0, 2.0]
POSITIONS = [[0.0, 0.0], [1.0, 2.0], [2.0, 0.0]]
NAN = np.nan


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        ((['0', '1', '2'], POSITIONS), 'times has elements of type'),
        ((TIMES, [[0.0], [1.0, 2.0], [2.0]]), 'cannot be made an array|type object'),
        (
            (TIMES, POSITIONS, [[0, 0], [NAN, 1], [0, 0]]),
            r'velocities\[1, 0\] is nan; a row is',
        ),
        (
            (TIMES, POSITIONS, np.ones((3, 2)), None, np.zeros((4, 2))),
            r'start asks for the velocity \[0.0, 0.0\], but the waypoint there has \[1.0, 1.0\]',
        ),
        ((TIMES, [[0.0], [1e308], [-1e308]]), 'cannot be computed in double precision'),
        (
            (np.arange(2000.0), 1e308 * np.cos(np.pi * np.arange(2000.0))[:, None]),
            'cannot be computed in double precision',
        ),
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


@pytest.mark.every_case
@pytest.mark.parametrize('t', [-1e-9, NAN, [0.5, 3.0]])
def test_times_outside_of_the_motion_are_refused(t):
    spline = fit_spline(TIMES, POSITIONS)
    with pytest.raises(
        TrajectoryError, match='outside of the motion, which lasts from 0.0 s'
    ):
        spline(t)


@pytest.mark.every_case
@pytest.mark.parametrize('order', [-1, 10, 2.5])
def test_impossible_derivatives_are_refused(order):
    spline = fit_spline(TIMES, POSITIONS)
    with pytest.raises(TrajectoryError, match='integer from 0 to 9'):
        spline(0.5, order)
