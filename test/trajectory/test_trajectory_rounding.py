"""Waypoints whose numbers are rounded, or that are too dense for double precision."""

import numpy as np
import pytest

from hodyn_ros.errors import TrajectoryError
from hodyn_ros.trajectory import Waypoints, fit_spline, fit_waypoints, plan_motion

TIMES = [0.0, 0.7, 1.1, 1.9, 2.4]
PATH = fit_spline(TIMES, [[0.3, 0.0], [0.5, -0.4], [0.2, -0.3], [0.8, 0.1], [0.31, 0.2]])


def sampled(period, orders, rounded=lambda x: x, path=PATH):
    """Times, and as many orders of a path, each rounded."""
    times = np.linspace(path.start_time, path.end_time, round(path.duration / period) + 1)
    motion = path(times)[:, :orders]
    return times, [rounded(motion[:, k]) for k in range(orders)]


def decimals(count):
    return lambda values: values.round(count)


def in_degrees(values):
    return np.deg2rad(np.rad2deg(values).round(4))


def digits(count):
    def rounded(values):
        texts = [format(value, f'.{count}g') for value in values.ravel()]
        return np.array(texts, dtype=float).reshape(values.shape)

    return rounded


@pytest.mark.parametrize('orders', [1, 2, 3])
@pytest.mark.parametrize(
    ('period', 'rounded', 'miss'),
    [
        (1e-3, decimals(9), 2e-9),
        (1e-3, decimals(6), 2e-6),
        (1e-3, decimals(4), 2e-4),
        (1e-3, digits(6), 2e-5),
        (1e-3, in_degrees, 4e-6),
        (1e-3, lambda values: values.astype(np.float32).astype(float), 2e-7),
        (1e-2, decimals(4), 2e-4),
        (5e-5, lambda values: values, 2e-9),
    ],
)
def test_the_motion_is_the_one_that_was_rounded(period, rounded, miss, orders):
    times, rows = sampled(period, orders, rounded)
    motion = fit_waypoints(times, *rows).motion
    assert np.abs(motion(times, 0)[:, 0] - rows[0]).max() <= miss + 5e-9
    fine = np.linspace(0.0, PATH.end_time, 5000)
    snap = np.abs(PATH(fine)[:, 4])
    assert (np.abs(motion(fine)[:, 4]).max(axis=0) < 1.3 * snap.max(axis=0) + 1.0).all()


@pytest.mark.parametrize('orders', [1, 2, 3])
@pytest.mark.parametrize('period', [1e-3, 1e-2, 0.1])
def test_exact_numbers_are_met_as_before(period, orders):
    times, rows = sampled(period, orders)
    fitted = fit_waypoints(times, *rows)
    np.testing.assert_array_equal(fitted.motion.states, fit_spline(times, *rows).states)
    assert not fitted.remarks


@pytest.mark.parametrize('decimals_given', [1, 2, 3, 9])
def test_waypoints_of_a_person_are_met_however_few_their_decimals(decimals_given):
    random = np.random.default_rng(2)
    times = np.cumsum(random.uniform(0.3, 1.0, 20)).round(2)
    positions = random.uniform(-1.0, 1.0, (20, 3)).round(decimals_given)
    assert len(fit_waypoints(times, positions).kept) == 20


def trapezoid(period, acceleration=5.0):
    """Acceleration that jumps at few places: what a motion asks for and no rounding."""
    times = np.arange(0.0, 1.2, period)
    t, back = times[:, None], 1.2 - times[:, None]
    position = np.where(t < 0.2, acceleration * t**2 / 2.0, acceleration * 0.2 * (t - 0.1))
    down = acceleration * (0.2 - back**2 / 2.0)
    return times, np.where(back < 0.2, down, position)


@pytest.mark.parametrize('period', [1e-3, 4e-4, 1e-2])
def test_jumps_of_the_acceleration_are_not_taken_for_rounding(period):
    times, positions = trapezoid(period)
    assert len(fit_waypoints(times, positions).kept) == len(times)


def test_digits_that_are_too_coarse_to_be_smoothed_are_refused_with_joint_time_and_value():
    """No motion within 1 mrad of all of them follows from numbers with two decimals."""
    times, (positions,) = sampled(1e-3, 1)
    positions[:, 1] = positions[:, 1].round(2)
    waypoints = Waypoints(('a', 'b'), times, positions)
    expected = (
        r'too dense .*between 0\.\d+ s and .*the snap of b is .*rounded to about 0\.01'
    )
    with pytest.raises(TrajectoryError, match=expected):
        plan_motion(waypoints, ('a', 'b'))
