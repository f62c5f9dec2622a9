"""The motion of joint_trajectory_controller as an object: its polynomials and its continuity."""

import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from hodyn_ros.errors import TrajectoryError
from hodyn_ros.trajectory import Waypoints, fit_spline, jtc_motion

NAN = np.nan


def random_rows(seed, K, N=8, n=3):
    """Times, and K rows of derivatives at every waypoint."""
    rng = np.random.default_rng(seed)
    times = 0.3 + np.cumsum(rng.uniform(0.2, 1.5, N))
    return times, *rng.standard_normal((K, N, n))


def polynomial_rows(degree, times, K):
    """K rows of derivatives of a random polynomial for each of two joints."""
    rng = np.random.default_rng(0)
    joints = [np.polynomial.Polynomial(rng.standard_normal(degree + 1)) for _ in range(2)]
    return [np.stack([p.deriv(k)(times) for p in joints], axis=1) for k in range(K)]


# Continuity


def test_one_poor_segment_spoils_the_continuity_of_all():
    times, q, v, a = random_rows(5, 3)
    a[3] = NAN
    assert jtc_motion(times, q, v, a).continuous_derivative == 1
    v[3] = NAN
    assert jtc_motion(times, q, v, a).continuous_derivative == 0


@pytest.mark.parametrize('K', [3, 2])
@pytest.mark.parametrize(('first', 'shortest'), [(0.0, 1e-3), (1.7e9, 0.2)])
def test_samples_of_one_polynomial_are_continuous_in_spite_of_rounding(K, first, shortest):
    rng = np.random.default_rng(K)
    times = np.cumsum(rng.uniform(shortest, 2.0 * shortest, 50))
    rows = polynomial_rows(2 * K - 1, times / times[-1], K)
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


# Refusals


def test_accelerations_without_velocities_are_refused_with_their_waypoints():
    times, q, v, a = random_rows(0, 3)
    v[4] = NAN
    with pytest.raises(
        TrajectoryError, match=r'Waypoints 3 and 4, at .* s, have accelerations'
    ):
        jtc_motion(times, q, v, a)


# Values that travel between processes


def some_objects():
    times, *rows = random_rows(3, 3)
    waypoints = Waypoints(('a', 'b', 'c'), times, *rows)
    return [jtc_motion(times, *rows), fit_spline(times, *rows), waypoints]


@pytest.mark.parametrize('original', some_objects(), ids=lambda value: type(value).__name__)
def test_motions_of_another_process_are_equal_and_immutable(original):
    other = pickle.loads(pickle.dumps(original))
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
