"""Retimed motions as joint_trajectory_controller executes them, with torques from Pinocchio.

    python -m benchmarks.execution [--size full] [-o doc/benchmarks/execution.inc]

Every motion is retimed, and only what a file holds of it is used: positions, velocities and
accelerations at its samples. Between these the controller moves with polynomials of degree 5, or,
without the accelerations, of degree 3; here they come from SciPy. Each millisecond, in step with
the samples and 0.37 ms behind them, Pinocchio computes the torques for the commanded positions,
velocities and accelerations; their change per millisecond is set against the limit of the torque
rate.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BPoly

from benchmarks.report import grid, options
from benchmarks.retiming import Pinocchio, finely, panda, through, ur5
from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.model.limits import MotionLimits
from hodyn_ros.retiming.retiming import retime
from hodyn_ros.trajectory.spline import MotionSpline, fit_spline

Array = NDArray[np.float64]

PERIOD = 1e-3
"""Of the controller [s]."""
PHASES = (0.0, 0.37e-3)
"""Of its cycles to the samples [s]."""
SIZES = {'tiny': (2, 16), 'full': (13, 128)}
"""Number of motions, intervals of the time law."""


class Case(NamedTuple):
    """A motion to be retimed."""

    name: str
    description: Path
    model: RobotModel
    limits: MotionLimits
    path: MotionSpline


class Executed(NamedTuple):
    """What came out."""

    duration: float
    standstill: float
    steps: tuple[float, float]
    """Largest change of a torque per cycle over its limit, for degree 5 and 3."""
    of_limits: float
    """Largest quotient of a quantity and its limit, see `finely`."""
    at_ends: float
    """Largest magnitude of all derivatives up to the snap and of the torques' at both ends."""
    second: float
    """Largest second derivative of a torque [N m/s^2]."""
    deviation: float
    """Largest distance from the path [rad]."""


def eased(durations: Sequence[float], points: Array, rate: float) -> tuple[Array, Array]:
    """Compute samples of moves of least jerk from point to point."""
    times = np.append(0.0, np.cumsum(durations))
    t = np.arange(round(times[-1] * rate) + 1) / rate
    segment = np.clip(np.searchsorted(times, t, side='right') - 1, 0, len(durations) - 1)
    x = np.clip((t - times[segment]) / np.asarray(durations)[segment], 0.0, 1.0)[:, None]
    share = x**3 * (10.0 - 15.0 * x + 6.0 * x**2)
    return t, points[segment] + share * (points[segment + 1] - points[segment])


def cases() -> list[Case]:
    """List the motions; raises NotInstalled where a description is missing."""
    description, model, limits = panda()
    home = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.5, 0.5])
    away = home + [0.8, 0.3, -0.3, 0.5, 0.2, 0.4, 0.0]
    aside = home + [-0.5, 0.2, 0.4, -0.3, 0.5, 0.3, 0.6]
    alone = home + [0.9, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    random = np.random.default_rng(7)

    def sampled(
        durations: Sequence[float], points: Sequence[Array], noise: float = 0.0
    ) -> MotionSpline:
        t, q = eased(durations, np.array(points), 100.0)
        free = np.full((4, q.shape[1]), np.nan)
        return fit_spline(t, q + noise * random.normal(size=q.shape), start=free, end=free)

    three = [home, home, away, away, aside, aside, home, home]
    recorded = sampled([0.5, 2.0, 0.5, 1.5], [home, home, away, away, home], 1e-6)
    twice = fit_spline([0.0, 1.0, 1.3, 2.3], [home, away, away, home])
    motions = [
        ('one move of 1 s, sampled at 100 Hz', sampled([1.0], [home, away])),
        (
            'the same, 0.3 s of rest at its ends',
            sampled([0.3, 1, 0.3], [home, home, away, away]),
        ),
        ('three moves with rests', sampled([0.5, 1, 0.5, 1, 0.5, 1, 0.5], three)),
        (
            'violent: there and back in 0.5 s',
            fit_spline([0.0, 0.2, 0.5], [home, away, home]),
        ),
        ('slow: there and back in 60 s', sampled([30.0, 30.0], [home, away, home])),
        ('recorded: noise of 1e-6 rad, with rests', recorded),
        ('waypoints, one of them twice', twice),
        ('tiny: 2 mrad', fit_spline([0.0, 1.0], [home, home + 0.002])),
        ('one joint there and back', fit_spline([0.0, 1.0, 2.0], [home, alone, home])),
        ('five waypoints, in motion at the ends', through(model, 0)),
        ('five waypoints, at rest at the ends', through(model, 2, at_rest=True)),
    ]
    found = [
        Case(f'Panda, {name}', description, model, limits, path) for name, path in motions
    ]
    description, model, limits = ur5()
    low = np.array([0.0, -1.2, 1.0, -0.5, 0.3, 0.0])
    with_rest = sampled([1.0, 0.5, 1.0], [low, low + 0.5, low + 0.5, low - 0.2])
    curve = through(model, 3, at_rest=True)
    motions = [('five waypoints', curve), ('two moves with a rest', with_rest)]
    found += [
        Case(f'ur5, {name}', description, model, limits, path) for name, path in motions
    ]
    return found


def largest_step(case: Case, times: Array, rows: Array) -> float:
    """Largest change of a torque per cycle over its limit, as the controller moves.

    Parameters
    ----------
    case : Case
    times : ndarray, shape (N,)
    rows : ndarray, shape (N, 2 or 3, n)
        What it is given at these times: positions, velocities and accelerations.
    """
    robot = Pinocchio(case.description, case.model.joint_names)
    played = BPoly.from_derivatives(times, rows)
    worst = 0.0
    for phase in PHASES:
        t = np.arange(times[0] + phase, times[-1], PERIOD)
        torques = robot.torques(np.stack([played(t, k) for k in range(3)], axis=1))
        limit = case.limits.effort_dot * PERIOD
        worst = max(worst, float((np.abs(np.diff(torques, axis=0)) / limit).max()))
    return worst


def executed(case: Case, intervals: int) -> Executed:
    """Retime a motion and execute it."""
    found = retime(case.model, case.path, case.limits, intervals=intervals)
    times = found.motion.times
    rows = found.motion(times)
    t = np.linspace(0.0, found.duration, 20 * len(times))
    effort = inverse_dynamics(case.model, found.motion(t))
    ends = (
        np.abs(found.motion([0.0, found.duration])[:, 1:]).max(),
        np.abs(effort[[0, -1], 1:]),
    )
    return Executed(
        found.duration,
        found.standstill,
        (largest_step(case, times, rows[:, :3]), largest_step(case, times, rows[:, :2])),
        finely(
            Pinocchio(case.description, case.model.joint_names), case.limits, found.motion
        ),
        max(float(ends[0]), float(ends[1].max())),
        float(np.abs(effort[:, 2]).max()),
        float(found.deviation.max()),
    )


def text_of(found: Sequence[tuple[Case, Executed]]) -> str:
    """Table of all motions."""
    columns = 'motion', 'given', 'retimed', 'at rest', 'degree 5', 'degree 3'
    lines = [[*columns, 'limits', 'ends', "Q''", 'off']]
    for case, result in found:
        lines.append(
            [
                case.name,
                f'{case.path.duration:.3f} s',
                f'{result.duration:.3f} s',
                f'{result.standstill:.3g} s',
                *(f'{step:.3f}' for step in (*result.steps, result.of_limits)),
                f'{result.at_ends:.0e}',
                f'{result.second:.2g} N m/s²',
                f'{result.deviation:.0e} rad',
            ]
        )
    return grid(lines) + (
        '\nThe columns "degree 5" and "degree 3" hold the largest change of a torque per '
        'millisecond over its limit; "limits" the largest quotient of any quantity from velocity '
        'to torque rate and its limit at 20 places in each millisecond; "ends" the largest of '
        'velocity to snap and of the first two derivatives of the torques at both ends, in SI '
        "units; Q'' the largest second derivative of a torque anywhere; "
        '"off" the largest distance from the path.\n'
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table and write it."""
    description = 'Retimed motions as joint_trajectory_controller executes them.'
    meaning = 'number of motions'
    chosen = options(arguments, 'execution', description, SIZES, meaning, size='full')
    start = time.monotonic()
    count, intervals = SIZES[chosen.size]
    found = []
    for case in cases()[:count]:
        print(case.name, flush=True)
        found.append((case, executed(case, intervals)))
    text = text_of(found)
    print('\n' + text)
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    chosen.output.write_text(text, encoding='utf-8')
    print(f'{time.monotonic() - start:.0f} s. Written: {chosen.output}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
