"""The motion of joint_trajectory_controller as an object: its polynomials and its continuity."""

import copy
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from scipy.interpolate import BPoly

from hodyn_ros.errors import TrajectoryError
from hodyn_ros.trajectory.jtc import jtc_expansions, jtc_motion
from hodyn_ros.trajectory.piecewise import PiecewiseMotion
from hodyn_ros.trajectory.planning import Waypoints
from hodyn_ros.trajectory.spline import fit_spline

NAN = np.nan


def random_rows(seed, K, N=8, n=3):
    """Times, and K rows of derivatives at every waypoint."""
    rng = np.random.default_rng(seed)
    times = 0.3 + np.cumsum(rng.uniform(0.2, 1.5, N))
    return times, *rng.standard_normal((K, N, n))


def polynomial_rows(degree, times, K, seed=0):
    """K rows of derivatives of a random polynomial for each of two joints."""
    rng = np.random.default_rng(seed)
    joints = [np.polynomial.Polynomial(rng.standard_normal(degree + 1)) for _ in range(2)]
    return [np.stack([p.deriv(k)(times) for p in joints], axis=1) for k in range(K)]


@pytest.mark.parametrize('seed', range(4))
@pytest.mark.parametrize('K', [1, 2, 3])
def test_segments_are_hermite_polynomials_with_all_their_derivatives(seed, K):
    times, *rows = random_rows(seed, K)
    motion = jtc_motion(times, *rows)
    states = np.stack(rows, axis=1)
    for i in range(len(times) - 1):
        polynomial = BPoly.from_derivatives(times[i : i + 2].copy(), states[i : i + 2])
        t = np.linspace(times[i], times[i + 1], 12)[:-1]
        expected = np.stack([polynomial(t, nu) for nu in range(2 * K)], axis=1)
        scale = np.abs(expected).max(axis=(0, 2), keepdims=True)
        actual = motion(t, 9)
        assert np.abs((actual[:, : 2 * K] - expected) / scale).max() < 1e-11
        assert np.abs(actual[:, 2 * K :]).max() < 1e-9 * scale.max()
    np.testing.assert_array_equal(motion.degrees, 2 * K - 1)


def test_waypoints_are_met_without_rounding_from_both_sides():
    times, *rows = random_rows(1, 3)
    motion = jtc_motion(times, *rows)
    np.testing.assert_array_equal(motion(times)[:, :3], np.stack(rows, axis=1))
    np.testing.assert_array_equal(motion.expansions[:, 1, :3], np.stack(rows, axis=1)[1:])


@pytest.mark.parametrize('seed', range(20))
def test_mixed_waypoints_fall_back_to_what_both_ends_have(seed):
    times, q, v, a = random_rows(seed, 3)
    rng = np.random.default_rng(seed)
    v[rng.random(len(v)) >= 0.7] = NAN
    a[rng.random(len(a)) >= 0.6] = NAN
    has_v, has_a = (~np.isnan(rows[:, 0]) for rows in (v, a))
    expansions = jtc_expansions(times, q, v, a)
    motion = PiecewiseMotion(times, expansions, 0)
    for i in range(len(times) - 1):
        t = np.linspace(times[i], times[i + 1], 9)[1:-1]
        both_v, both_a = (has[i] and has[i + 1] for has in (has_v, has_a))
        if both_a and not both_v:
            # The controller returns zeros here, which is no interpolation.
            assert np.isnan(motion(t, 2)).all()
            continue
        states = np.stack([q, v, a][: 1 + both_v + both_a], axis=1)[i : i + 2]
        polynomial = BPoly.from_derivatives(times[i : i + 2].copy(), states)
        expected = np.stack([polynomial(t, nu) for nu in range(3)], axis=1)
        np.testing.assert_allclose(motion(t, 2), expected, rtol=1e-10, atol=1e-10)


# Continuity


@pytest.mark.parametrize('seed', range(4))
@pytest.mark.parametrize('K', [1, 2, 3])
def test_continuous_up_to_what_the_waypoints_give(seed, K):
    assert jtc_motion(*random_rows(seed, K)).continuous_derivative == K - 1


def test_one_poor_segment_spoils_the_continuity_of_all():
    times, q, v, a = random_rows(5, 3)
    a[3] = NAN
    assert jtc_motion(times, q, v, a).continuous_derivative == 1
    v[3] = NAN
    assert jtc_motion(times, q, v, a).continuous_derivative == 0


@pytest.mark.parametrize('K', [1, 2, 3])
def test_single_segment_is_continuous_up_to_the_snap(K):
    times, *rows = random_rows(0, K, N=2)
    assert jtc_motion(times, *rows).continuous_derivative == 4


@pytest.mark.parametrize('seed', range(5))
@pytest.mark.parametrize('K', [1, 2, 3])
@pytest.mark.parametrize(('first', 'shortest'), [(0.0, 0.2), (0.0, 1e-3), (1.7e9, 0.2)])
def test_samples_of_one_polynomial_are_continuous_in_spite_of_rounding(
    K, seed, first, shortest
):
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.uniform(shortest, 2.0 * shortest, 50))
    rows = polynomial_rows(2 * K - 1, times / times[-1], K, seed)
    rows = [row / times[-1] ** k for k, row in enumerate(rows)]
    assert jtc_motion(first + times, *rows).continuous_derivative == 4


@pytest.mark.parametrize('k', [3, 4])
def test_small_jump_is_not_taken_for_rounding(k):
    times = np.array([0.0, 1.0, 2.0])
    rows = polynomial_rows(5, times, 3)
    # Behind the waypoint in the middle this is added, which its own rows do not show.
    jump = np.polynomial.Polynomial([0.0] * k + [1e-6])
    for order, row in enumerate(rows):
        row[2] += jump.deriv(order)(1.0)
    assert jtc_motion(times, *rows).continuous_derivative == k - 1


def test_spline_is_continuous_up_to_the_snap():
    times, q = random_rows(0, 1)
    assert fit_spline(times, q).continuous_derivative == 4


# Refusals


def test_accelerations_without_velocities_are_refused_with_their_waypoints():
    times, q, v, a = random_rows(0, 3)
    v[4] = NAN
    with pytest.raises(
        TrajectoryError, match=r'Waypoints 3 and 4, at .* s, have accelerations'
    ):
        jtc_motion(times, q, v, a)


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (([0.0], [[1.0]]), 'is one waypoint, expected at least two'),
        (([0.0, 1.0], [[1.0], [2.0]], [[1.0]]), r'velocities has shape \(1, 1\)'),
        (([0.0, 1e-200], [[1.0], [2.0]]), 'double precision'),
    ],
)
def test_unusable_waypoints_are_refused_with_the_reason(arguments, message):
    with pytest.raises(TrajectoryError, match=message):
        jtc_motion(*arguments)


# Values that travel between processes


def some_objects():
    times, *rows = random_rows(3, 3)
    waypoints = Waypoints(('a', 'b', 'c'), times, *rows)
    return [jtc_motion(times, *rows), fit_spline(times, *rows), waypoints]


@pytest.mark.parametrize('original', some_objects(), ids=lambda value: type(value).__name__)
@pytest.mark.parametrize(
    'duplicate', [lambda x: x, lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy]
)
def test_motions_and_their_duplicates_are_equal_and_immutable(original, duplicate):
    other = duplicate(original)
    assert type(other) is type(original)
    for name, value in vars(original).items():
        np.testing.assert_array_equal(getattr(other, name), value)
        if isinstance(value, np.ndarray):
            assert not getattr(other, name).flags.writeable
    with pytest.raises(FrozenInstanceError):
        other.times = np.zeros(2)
    if not isinstance(original, Waypoints):
        t = np.linspace(original.start_time, original.end_time, 50)
        np.testing.assert_array_equal(other(t), original(t))
        assert other.continuous_derivative == original.continuous_derivative
        assert other.duration == original.duration
