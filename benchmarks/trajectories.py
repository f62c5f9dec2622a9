"""Time and memory of motions through many waypoints: python -m benchmarks.trajectories.

Waypoints of seven joints, unevenly spaced, half of them with velocities and half with
accelerations. Times are the shortest of several runs, memory is what is allocated at most beside
the waypoints (tracemalloc counts the arrays of NumPy). The evaluation takes the positions to the
snap at ten times a waypoint, and its memory holds the result.
"""

from __future__ import annotations

import argparse
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.report import grid
from hodyn_ros.trajectory.jtc import jtc_motion
from hodyn_ros.trajectory.piecewise import position_extremes
from hodyn_ros.trajectory.planning import Waypoints, deviation_from_jtc
from hodyn_ros.trajectory.spline import fit_spline

ROOT = Path(__file__).resolve().parents[1]
JOINTS = 7
COUNTS = (10, 100, 1000, 10_000, 100_000)
SAMPLES = 10  # times a waypoint at which the motion is evaluated
MEGABYTE = 1e6


class Cost(NamedTuple):
    """Of a call."""

    seconds: float
    bytes: int


def example(count: int, seed: int = 0) -> Waypoints:
    """Sample sums of sinusoids at random times."""
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.uniform(0.05, 0.15, count))
    omega, phase = rng.uniform(0.3, 3.0, (4, JOINTS)), rng.uniform(0.0, 6.0, (4, JOINTS))
    waves = times[:, None, None] * omega + phase
    rows = [(omega**k * np.sin(waves + 0.5 * k * np.pi)).sum(axis=1) for k in range(3)]
    for row in rows[1:]:
        row[rng.random(count) < 0.5] = np.nan
    names = tuple(f'joint{i}' for i in range(JOINTS))
    return Waypoints(names, times, *rows)


def measure(run: Callable[[], object], runs: int) -> Cost:
    """Shortest time of some runs, and the peak of the memory of another one."""
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    tracemalloc.start()
    try:
        run()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return Cost(min(seconds), peak)


def costs(count: int, runs: int = 3) -> dict[str, Cost]:
    """Measure everything that is done with waypoints.

    Parameters
    ----------
    count : int
        How many waypoints.
    runs : int
        Of which the shortest counts.

    Returns
    -------
    dict of str to Cost
    """
    points = example(count)
    rows = points.positions, points.velocities, points.accelerations
    spline = fit_spline(points.times, *rows)
    # The controller does not interpolate between accelerations without velocities.
    controlled = Waypoints(points.joint_names, points.times, *rows[:2])
    t = np.linspace(spline.start_time, spline.end_time, SAMPLES * count)
    return {
        'fit': measure(lambda: fit_spline(points.times, *rows), runs),
        'deviation': measure(lambda: deviation_from_jtc(spline, controlled), runs),
        'extremes': measure(lambda: position_extremes(spline), runs),
        'jtc': measure(lambda: jtc_motion(points.times, *rows[:2]), runs),
        'evaluation': measure(lambda: spline(t), runs),
    }


def table(counts: Sequence[int], runs: int = 3) -> str:
    """Format milliseconds and megabytes over the number of waypoints."""
    lines: list[list[str]] = []
    for count in counts:
        measured = costs(count, runs)
        if not lines:
            lines.append(['waypoints', *(f'{name}: ms (MB)' for name in measured)])
        cells = (
            f'{_rounded(c.seconds * 1e3)} ({_rounded(c.bytes / MEGABYTE)})'
            for c in measured.values()
        )
        lines.append([str(count), *cells])
    return grid(lines)


def _rounded(value: float) -> str:
    return f'{value:.0f}' if value >= 99.5 else f'{value:.2g}'


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table and write it into a file."""
    parser = argparse.ArgumentParser(
        prog='python -m benchmarks.trajectories',
        description='Time and memory of motions through many waypoints of seven joints.',
    )
    parser.add_argument(
        'counts', nargs='*', type=int, help=f'of waypoints, at least 2; by default {COUNTS}'
    )
    parser.add_argument('--runs', type=int, default=3, help='of which the shortest counts')
    parser.add_argument(
        '-o',
        '--output',
        type=Path,
        default=ROOT / 'build' / 'bench',
        help='folder to write to',
    )
    options = parser.parse_args(arguments)
    counts = options.counts or list(COUNTS)
    if min(counts) < 2 or options.runs < 1:
        parser.error('expected at least two waypoints and one run')
    text = table(counts, options.runs)
    print(text)
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / 'trajectories.inc').write_text(text, encoding='utf-8')
    return 0


if __name__ == '__main__':
    sys.exit(main())
