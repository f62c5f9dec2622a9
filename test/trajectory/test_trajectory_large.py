"""Ten thousand waypoints of seven joints: as smooth, as exact, and with as little memory each."""

import tracemalloc

import numpy as np
import pytest

from hodyn_ros.trajectory.piecewise import position_extremes
from hodyn_ros.trajectory.planning import Waypoints, deviation_from_jtc, plan_motion
from hodyn_ros.trajectory.spline import fit_spline

N, JOINTS = 10_000, 7
NAMES = tuple(f'joint{i}' for i in range(JOINTS))
GIVEN = ['positions', 'velocities', 'accelerations', 'mixed']


def waypoints(pattern, N=N, seed=0):
    """Unevenly spaced samples of sums of sinusoids, each with some noise of its own."""
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.uniform(0.05, 0.15, N))
    omega, phase = rng.uniform(0.3, 3.0, (4, JOINTS)), rng.uniform(0.0, 6.0, (4, JOINTS))
    waves = times[:, None, None] * omega + phase
    rows = [(omega**k * np.sin(waves + 0.5 * k * np.pi)).sum(axis=1) for k in range(3)]
    # What a planner rounds, and what makes the spline bend.
    rows = [
        row + noise * rng.standard_normal(row.shape)
        for row, noise in zip(rows, (1e-4, 1e-3, 1e-2))
    ]
    for k in (1, 2):
        if pattern == 'mixed':
            rows[k][rng.random(N) < 0.5] = np.nan
        elif GIVEN.index(pattern) < k:
            rows[k] = None
    return Waypoints(NAMES, times, *rows)


def fitted(points):
    return fit_spline(
        points.times, points.positions, points.velocities, points.accelerations
    )


def one_sided_limits(motion):
    """State at both ends of every segment, expanded from its middle: (before, behind) a knot."""
    h = np.diff(motion.times)
    middle = motion.times[:-1] + 0.5 * h
    derivatives = motion(middle, 9)
    limits = []
    for end in (motion.times[1:], motion.times[:-1]):
        offset = (end - middle)[:, None]
        states = []
        for k in range(5):
            # Horner's scheme for the Taylor series of the k-th derivative.
            value = np.zeros_like(derivatives[:, 0])
            for j in range(9, k - 1, -1):
                value = derivatives[:, j] + value * offset / (j - k + 1)
            states.append(value)
        limits.append(np.stack(states, axis=1))
    before, behind = limits
    return before[:-1], behind[1:]


@pytest.mark.parametrize('pattern', ['positions', 'mixed'])
def test_position_to_snap_are_continuous_at_every_waypoint(pattern):
    points = waypoints(pattern)
    spline = fitted(points)
    before, behind = one_sided_limits(spline)
    assert before.shape == (N - 2, 5, JOINTS)
    size = np.abs(spline.expansions).max(axis=(0, 1, 3))[:5, None]
    assert np.abs((before - behind) / size).max() < 1e-12
    # The waypoints themselves are met from both sides.
    for k, rows in enumerate((points.positions, points.velocities, points.accelerations)):
        inner = rows[1:-1]
        given = ~np.isnan(inner)
        for limit in (before, behind):
            assert np.all(np.abs(limit[:, k] - inner)[given] < 1e-11 * size[k])


def peak_memory(run):
    tracemalloc.start()
    try:
        result = run()
        return tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()


def test_memory_grows_in_proportion_to_the_waypoints_and_no_faster():
    few, many = waypoints('mixed', 2000), waypoints('mixed', 10_000)
    small, _ = peak_memory(lambda: fitted(few))
    large, spline = peak_memory(lambda: fitted(many))
    assert large < 5.5 * small
    # So many numbers per waypoint and joint, of which the result itself has 26.
    assert large < 75 * 8 * N * JOINTS
    deviation, _ = peak_memory(lambda: deviation_from_jtc(spline, many))
    extremes, _ = peak_memory(lambda: position_extremes(spline))
    # Blocks of segments, whatever their number.
    assert max(deviation, extremes) < 0.3 * large


def test_plan_of_ten_thousand_waypoints_is_that_of_its_parts():
    points = waypoints('accelerations')
    plan = plan_motion(points, NAMES[::-1])
    spline = fitted(points)
    size = np.abs(spline.expansions).max(axis=(0, 1, 3))[:, None]
    assert (
        np.abs((plan.motion.expansions[..., ::-1] - spline.expansions) / size).max() < 1e-11
    )
    extremes = position_extremes(spline)
    for actual, expected in zip(plan.extremes, extremes):
        np.testing.assert_allclose(actual[::-1], expected, rtol=1e-11)
    deviation = deviation_from_jtc(spline, points)
    np.testing.assert_allclose(plan.deviation_from_jtc[::-1], deviation, rtol=1e-9)
