"""Ten thousand waypoints of seven joints need as little memory each as a few."""

import tracemalloc

import numpy as np

from hodyn_ros.trajectory import (
    Waypoints,
    deviation_from_jtc,
    fit_spline,
    position_extremes,
)

JOINTS = 7
NAMES = tuple(f'joint{i}' for i in range(JOINTS))


def waypoints(count):
    """Samples of sinusoids at uneven times, half of them with velocities and accelerations."""
    rng = np.random.default_rng(0)
    times = np.cumsum(rng.uniform(0.05, 0.15, count))
    rows = np.sin(times[:, None] * rng.uniform(0.3, 3.0, JOINTS)) + np.zeros((3, 1, 1))
    rows += 1e-3 * rng.standard_normal(rows.shape)
    rows[1:, rng.random(count) < 0.5] = np.nan
    return Waypoints(NAMES, times, *rows)


def peak_memory(run):
    tracemalloc.start()
    try:
        result = run()
        return tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()


def test_memory_grows_in_proportion_to_the_waypoints_and_no_faster():
    few, many = waypoints(2000), waypoints(10_000)
    small, _ = peak_memory(lambda: fit_spline(few.times, *few.rows))
    large, spline = peak_memory(lambda: fit_spline(many.times, *many.rows))
    assert large < 5.5 * small
    # So many numbers per waypoint and joint, of which the result itself has 26.
    assert large < 75 * 8 * 10_000 * JOINTS
    deviation, _ = peak_memory(lambda: deviation_from_jtc(spline, many))
    extremes, _ = peak_memory(lambda: position_extremes(spline))
    # Blocks of segments, whatever their number.
    assert max(deviation, extremes) < 0.5 * large
