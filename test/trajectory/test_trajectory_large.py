"""Ten thousand waypoints of seven joints: as smooth, as exact, and with as little memory each."""

import tracemalloc

import numpy as np

from hodyn_ros.trajectory.piecewise import position_extremes
from hodyn_ros.trajectory.planning import Waypoints, deviation_from_jtc
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


# Their benchmark
