"""Extreme positions of motions: nothing between samples is missed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hodyn_ros.trajectory.jtc import jtc_motion
from hodyn_ros.trajectory.piecewise import position_extremes
from hodyn_ros.trajectory.planning import Waypoints, deviation_from_jtc
from hodyn_ros.trajectory.spline import fit_spline


def random_case(seed, N=12, n=3, velocities=True, accelerations=True):
    rng = np.random.default_rng(seed)
    times = 0.7 + np.cumsum(10.0 ** rng.uniform(-1.0, 0.3, N))
    rows = [rng.uniform(-2.0, 2.0, (N, n))]
    for wanted in (velocities, accelerations):
        rows.append(rng.standard_normal((N, n)) if wanted else None)
    return times, rows


def extremes_from_roots(motion):
    """Lowest and highest positions from the roots of the velocity of every segment."""
    n = motion.expansions.shape[-1]
    lowest, highest = np.full(n, np.inf), np.full(n, -np.inf)
    for h, (start, _) in zip(np.diff(motion.times), motion.expansions):
        for joint in range(n):
            # From derivatives at the start to a polynomial of the part of the segment.
            scaled = start[:, joint] * h ** np.arange(len(start))
            factorials = np.cumprod([1.0, *range(1, len(start))])
            position = np.polynomial.Polynomial(scaled / factorials)
            velocity = np.trim_zeros(position.deriv().coef[::-1], 'f')
            roots = np.roots(velocity) if len(velocity) else np.empty(0)
            real = roots.real[np.abs(roots.imag) < 1e-6]
            x = np.concatenate([[0.0, 1.0], np.clip(real, 0.0, 1.0)])
            lowest[joint] = min(lowest[joint], position(x).min())
            highest[joint] = max(highest[joint], position(x).max())
    return lowest, highest


def assert_consistent(motion, extremes):
    """Values are positions at their times, which no sample exceeds."""
    joints = np.arange(motion.expansions.shape[-1])
    t = np.linspace(motion.start_time, motion.end_time, 50_001)
    position = motion(np.concatenate([t, motion.times]), 0)[:, 0]
    tolerance = 1e-13 * np.abs(position).max()
    assert np.all(position <= extremes.highest + tolerance)
    assert np.all(position >= extremes.lowest - tolerance)
    for value, time in (
        (extremes.highest, extremes.highest_time),
        (extremes.lowest, extremes.lowest_time),
    ):
        there = motion(time, 0)[joints, 0, joints]
        np.testing.assert_allclose(there, value, atol=tolerance, rtol=0)


@pytest.mark.parametrize('seed', range(12))
@pytest.mark.parametrize(
    ('velocities', 'accelerations'), [(False, False), (True, False), (True, True)]
)
@pytest.mark.parametrize('make', [fit_spline, jtc_motion])
def test_extremes_match_the_roots_of_the_velocity(make, velocities, accelerations, seed):
    times, rows = random_case(seed, velocities=velocities, accelerations=accelerations)
    motion = make(times, *rows)
    extremes = position_extremes(motion)
    lowest, highest = extremes_from_roots(motion)
    size = max(np.abs(lowest).max(), np.abs(highest).max())
    np.testing.assert_allclose(extremes.lowest, lowest, atol=1e-11 * size, rtol=0)
    np.testing.assert_allclose(extremes.highest, highest, atol=1e-11 * size, rtol=0)
    assert_consistent(motion, extremes)


@pytest.mark.parametrize('seed', range(5))
def test_joints_stand_still_at_the_times_of_inner_extremes(seed):
    times, (q, *_) = random_case(seed)
    motion = fit_spline(times, q)
    largest = np.abs(motion(np.linspace(times[0], times[-1], 2000), 1)[:, 1]).max(axis=0)
    extremes = position_extremes(motion)
    for time in (extremes.lowest_time, extremes.highest_time):
        velocity = motion(time, 1)[[0, 1, 2], 1, [0, 1, 2]]
        # Halving alone finds the times to eight digits, and these to the root of that.
        assert np.all(np.abs(velocity) < 1e-12 * largest)


@st.composite
def narrow_bumps(draw):
    """A segment whose velocity has up to four pairs of roots close to each other."""
    roots = draw(st.lists(st.floats(0.001, 0.999), min_size=1, max_size=4))
    gap = 10.0 ** draw(st.floats(-6.0, -0.5))
    velocity = np.polynomial.Polynomial.fromroots([r for x in roots for r in (x, x + gap)])
    return velocity.integ() * draw(st.sampled_from([-1.0, 1.0]))


@given(narrow_bumps())
def test_narrow_bumps_between_samples_are_found(position):
    states = [position.deriv(k)(np.array([0.0, 1.0]))[:, None] for k in range(5)]
    ends = np.array([[row[i] for row in states[1:]] for i in (0, 1)])
    motion = fit_spline([0.0, 1.0], states[0], start=ends[0], end=ends[1])
    extremes = position_extremes(motion)
    lowest, highest = extremes_from_roots(motion)
    size = np.abs(motion.expansions[..., 0]).max() * 1e-9 + 1e-13
    np.testing.assert_allclose(extremes.highest, highest, atol=size, rtol=0)
    np.testing.assert_allclose(extremes.lowest, lowest, atol=size, rtol=0)


def test_known_extremes_of_a_parabola():
    """A cubic segment with its vertex at a third of its time."""
    motion = jtc_motion([1.0, 4.0], [[0.0, 0.0], [-3.0, 3.0]], [[2.0, -2.0], [-4.0, 4.0]])
    extremes = position_extremes(motion)
    np.testing.assert_allclose(extremes.highest, [1.0, 3.0], rtol=1e-14)
    np.testing.assert_allclose(extremes.lowest, [-3.0, -1.0], rtol=1e-14)
    np.testing.assert_allclose(extremes.highest_time, [2.0, 4.0], rtol=1e-14)
    np.testing.assert_allclose(extremes.lowest_time, [4.0, 2.0], rtol=1e-14)


def test_corners_of_straight_lines_are_extremes():
    motion = jtc_motion([0.0, 1.0, 3.0, 4.0], [[0.0], [2.0], [-1.0], [0.5]])
    extremes = position_extremes(motion)
    assert extremes.highest == [2.0]
    assert extremes.highest_time == [1.0]
    assert extremes.lowest == [-1.0]
    assert extremes.lowest_time == [3.0]


def test_standing_joint_has_one_position():
    extremes = position_extremes(fit_spline([0.0, 1.0, 2.0], [[0.3], [0.3], [0.3]]))
    assert extremes.lowest == extremes.highest == [0.3]


def test_many_equal_peaks_cost_no_accuracy():
    times = np.arange(5001.0)
    velocities = np.where(times % 2.0, -1.0, 1.0)[:, None]
    extremes = position_extremes(jtc_motion(times, np.zeros_like(velocities), velocities))
    np.testing.assert_allclose(
        [extremes.lowest, extremes.highest], [[-0.25], [0.25]], rtol=1e-15
    )
    np.testing.assert_allclose(extremes.highest_time % 2.0, 0.5, rtol=1e-11)
    np.testing.assert_allclose(extremes.lowest_time % 2.0, 1.5, rtol=1e-11)


def test_extremes_do_not_depend_on_where_blocks_of_segments_end():
    rng = np.random.default_rng(0)
    times = np.arange(5000.0)
    q = rng.standard_normal((5000, 2))
    for peak in (2047, 2048, 2049, 4095, 4999):
        q[peak] += 20.0
        motion = fit_spline(times, q)
        expected = motion(np.linspace(times[peak - 1], times[min(peak + 1, 4999)], 5001), 0)
        extremes = position_extremes(motion)
        np.testing.assert_allclose(extremes.highest, expected[:, 0].max(axis=0), rtol=1e-5)
        assert np.all(extremes.highest >= expected[:, 0].max(axis=0) * (1.0 - 1e-13))
        joints = np.arange(2)
        reached = motion(extremes.highest_time, 0)[joints, 0, joints]
        np.testing.assert_allclose(reached, extremes.highest, rtol=1e-13)
        q[peak] -= 20.0


# The same search finds the deviation from the controller


@pytest.mark.parametrize('seed', range(8))
@pytest.mark.parametrize(
    ('velocities', 'accelerations'), [(False, False), (True, False), (True, True)]
)
def test_deviation_is_the_largest_difference_at_any_time(velocities, accelerations, seed):
    times, rows = random_case(seed, velocities=velocities, accelerations=accelerations)
    spline, jtc = fit_spline(times, *rows), jtc_motion(times, *rows)
    deviation = deviation_from_jtc(spline, Waypoints(('a', 'b', 'c'), times, *rows))
    difference = 0.0
    for before, behind in zip(times[:-1], times[1:]):
        t = np.linspace(before, behind, 2001)
        difference = np.maximum(
            difference, np.abs(spline(t, 0) - jtc(t, 0))[:, 0].max(axis=0)
        )
    assert np.all(deviation >= difference * (1.0 - 1e-12))
    np.testing.assert_allclose(deviation, difference, rtol=1e-5)
