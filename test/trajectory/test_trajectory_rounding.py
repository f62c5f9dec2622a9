"""Waypoints whose numbers are rounded, or that are too dense for double precision."""

import numpy as np
import pytest

from hodyn_ros.errors import TrajectoryError
from hodyn_ros.trajectory import Waypoints, fit_spline, fit_waypoints, plan_motion

TIMES = [0.0, 0.7, 1.1, 1.9, 2.4]
PATH = fit_spline(TIMES, [[0.3, 0.0], [0.5, -0.4], [0.2, -0.3], [0.8, 0.1], [0.31, 0.2]])


def sampled(period, orders):
    """Times, and as many orders of the path."""
    times = np.linspace(0.0, PATH.end_time, round(PATH.duration / period) + 1)
    return times, list(np.swapaxes(PATH(times)[:, :orders], 0, 1))


@pytest.mark.parametrize('orders', [3, 2])
def test_rounded_rows_of_derivatives_give_the_motion_and_not_the_rounding(orders):
    times, rows = sampled(1e-3, orders)
    motion = fit_waypoints(times, *(row.round(6) for row in rows)).motion
    fine = np.linspace(0.0, PATH.end_time, 5000)
    snap, found = (np.abs(each(fine)[:, 4]).max(axis=0) for each in (PATH, motion))
    assert (found < 1.3 * snap + 1.0).all()


@pytest.mark.parametrize('orders', [1, 2, 3])
@pytest.mark.parametrize('period', [1e-3, 0.1])
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


@pytest.mark.parametrize('period', [1e-3, 1e-2])
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
    with pytest.raises(TrajectoryError, match=expected) as refused:
        plan_motion(waypoints, ('a', 'b'))
    # What has positions alone is not told to send them.
    assert str(refused.value).endswith('Send more digits or fewer waypoints.')


def test_more_digits_bring_the_motion_closer_and_none_of_three_or_more_is_refused():
    """The jerk jumps at both ends, which must not be taken for rounding with eight digits."""
    times = np.linspace(0.0, 2.0, 2001)
    turned = (times / 2.0) ** 3 * (10.0 - 7.5 * times + 1.5 * times**2)
    positions = (turned + 0.2 * np.sin(4.0 * np.pi * turned))[:, None]
    largest = np.abs(np.gradient(np.gradient(positions[:, 0], times), times)).max()
    for digits in (3, 5, 8, 9):
        fitted = fit_waypoints(times, positions.round(digits))
        found = fitted.motion(times, 2)
        # A message has a resolution of a nanosecond, in which it moves on by up to 3e-9 rad.
        assert np.abs(found[:, 0] - positions).max() < 2.5 * 10.0**-digits + 3e-9
        assert np.abs(found[:, 2]).max() == pytest.approx(largest, rel=0.1)
        assert len(fitted.kept) < 250
        assert fitted.remarks
