"""Time laws on the same paths: uniform, `retime`, and TOPP-RA, which knows no torque rate.

    python -m benchmarks.retiming [--size full] [-o doc/benchmarks/retiming.inc]

Paths of the Panda are smooth curves through five random configurations, with Franka's limits up
to jerk and torque rate. Beside the duration stands how far the torque rate goes: the largest
change of a torque in a step of 1 ms, the period of the robot's controller, and in one of 0.1 ms,
over the step. Where a torque jumps, the second is ten times the first.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import ROOT
from benchmarks.peers import toppra_law
from benchmarks.report import grid
from benchmarks.timing import NotInstalled
from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.analysis.retiming import RestingPath, retime
from hodyn_ros.analysis.scaling import StretchedMotion, uniform_scaling
from hodyn_ros.model.limits import MotionLimits, motion_limits
from hodyn_ros.resources import share_file
from hodyn_ros.trajectory.spline import MotionSpline, fit_spline

Array = NDArray[np.float64]

# Source: https://frankaemika.github.io/docs/control_parameters.html (limits for Panda); the
# others are in urdf/panda.urdf.
ACCELERATION = (15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0)
JERK = (7500.0, 3750.0, 5000.0, 6250.0, 7500.0, 10000.0, 10000.0)
EFFORT_DOT = 1000.0

STEPS = (1e-3, 1e-4)
"""Over which torques are differenced [s]."""

POINTS = 5
SIZES = {'tiny': (1, 8), 'quick': (4, 128), 'full': (20, 128)}
"""Number of paths, intervals of our time law."""


class Played(NamedTuple):
    """A time law on a path."""

    duration: float
    rates: tuple[float, ...]
    """Largest torque rate by differences over `STEPS` [N m/s]."""
    seconds: float
    """Of a processor, to compute it."""


class Method(NamedTuple):
    """A way to find a time law."""

    name: str
    solve: Callable[[MotionSpline], tuple[float, Callable[[Array], Array]]]
    """From a path to the duration and the motion (N, >= 3, n) at times (N,)."""


def panda() -> tuple[RobotModel, MotionLimits]:
    """Return the Panda and its limits."""
    model = RobotModel.from_urdf(share_file('urdf/panda.urdf'))
    extra = {
        name: {'acceleration': acceleration, 'jerk': jerk, 'effort_dot': EFFORT_DOT}
        for name, acceleration, jerk in zip(model.joint_names, ACCELERATION, JERK)
    }
    return model, motion_limits(model, extra)


def paths(model: RobotModel, count: int) -> list[MotionSpline]:
    """Smooth curves through random configurations, parametrised by their chords."""
    random = np.random.default_rng(0)
    middle = 0.5 * (model.limits.lower + model.limits.upper)
    half = 0.5 * (model.limits.upper - model.limits.lower)
    open_end = np.full((4, model.n_joints), np.nan)
    found: list[MotionSpline] = []
    while len(found) < count:
        points = middle + 0.5 * half * random.uniform(-1.0, 1.0, (POINTS, model.n_joints))
        chords = np.linalg.norm(np.diff(points, axis=0), axis=1)
        spline = fit_spline(
            np.append(0.0, np.cumsum(chords)), points, start=open_end, end=open_end
        )
        q = spline(np.linspace(0.0, spline.end_time, 1001), 0)[:, 0]
        if np.all((q > model.limits.lower) & (q < model.limits.upper)):
            found.append(spline)
    return found


def methods(model: RobotModel, limits: MotionLimits, intervals: int) -> list[Method]:
    """List who takes part; raises NotInstalled in `solve` where a package is missing."""
    endless = np.full(model.n_joints, np.inf)
    no_rates = limits._replace(jerk=endless, effort_dot=endless)

    def uniform(path: MotionSpline) -> tuple[float, Callable[[Array], Array]]:
        motion = RestingPath(path)
        factor = uniform_scaling(model, motion, limits).factor
        return factor * motion.end_time, StretchedMotion(motion, factor)

    def ours(given: MotionLimits) -> Callable[..., tuple[float, Callable[[Array], Array]]]:
        def solve(path: MotionSpline) -> tuple[float, Callable[[Array], Array]]:
            motion = retime(model, path, given, intervals=intervals).motion
            return motion.duration, motion

        return solve

    def theirs(only_torque: bool) -> Callable[..., tuple[float, Callable[[Array], Array]]]:
        def solve(path: MotionSpline) -> tuple[float, Callable[[Array], Array]]:
            law = toppra_law.solver(model, limits, only_torque)(path)
            return law.duration, law

        return solve

    return [
        Method('uniform_scaling, from rest to rest', uniform),
        Method('retime, all limits', ours(limits)),
        Method('retime without jerk and torque rate', ours(no_rates)),
        Method('toppra: velocity, acceleration, torque', theirs(False)),
        Method('toppra: torque alone', theirs(True)),
    ]


def torque_rate(
    model: RobotModel, motion: Callable[[Array], Array], duration: float, step: float
) -> float:
    """Largest change of a torque in a step, over the step [N m/s]."""
    t = np.append(np.arange(0.0, duration, step), duration)
    torque = inverse_dynamics(model, motion(t)[:, :3])[:, 0]
    return float(np.abs(np.diff(torque[:-1], axis=0)).max() / step)


def measure(
    count: int, intervals: int, say: Callable[[str], None]
) -> tuple[dict[str, list[Played]], dict[str, str]]:
    """Time laws of all methods on all paths, and who is absent for which reason."""
    model, limits = panda()
    model.warm_up(3)
    found: dict[str, list[Played]] = {}
    absent: dict[str, str] = {}
    curves = paths(model, count)
    for method in methods(model, limits, intervals):
        say(method.name)
        for path in curves:
            start = time.process_time()
            try:
                duration, motion = method.solve(path)
            except NotInstalled as reason:
                absent[method.name] = str(reason)
                break
            seconds = time.process_time() - start
            rates = tuple(torque_rate(model, motion, duration, step) for step in STEPS)
            found.setdefault(method.name, []).append(Played(duration, rates, seconds))
    return found, absent


def text_of(found: dict[str, list[Played]], absent: dict[str, str]) -> str:
    """Table of the means; of the torque rates the largest."""
    reference = np.array([played.duration for played in found['retime, all limits']])
    lines = [
        ['time law', 'duration', 'relative', 'rate over 1 ms', 'rate over 0.1 ms', 'computed in'],
    ]
    for name, laws in found.items():
        durations = np.array([played.duration for played in laws])
        relative = np.exp(np.mean(np.log(durations / reference)))
        rates = np.array([played.rates for played in laws]).max(axis=0)
        seconds = np.median([played.seconds for played in laws])
        lines.append(
            [
                name,
                f'{durations.mean():.3f} s',
                f'{relative:.3f}',
                *(f'{rate:.0f} N m/s' for rate in rates),
                f'{seconds:.2f} s',
            ]
        )
    text = grid(lines)
    count = len(reference)
    text += (
        f'\nMeans over {count} path{"s" if count > 1 else ""}, the geometric one of the durations '
        'relative to that with all limits, the median of the processor times; torque rates by '
        f'differences are the largest on all paths, their limit is {EFFORT_DOT:.0f} N m/s.\n'
    )
    for name, reason in absent.items():
        text += f'\nNot measured: {name} ({reason}).\n'
    return text


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table and write it."""
    parser = argparse.ArgumentParser(
        prog='python -m benchmarks.retiming',
        description='Durations and torque rates of time laws on paths of the Panda.',
    )
    parser.add_argument('--size', choices=SIZES, default='quick', help='number of paths')
    parser.add_argument(
        '-o',
        '--output',
        type=Path,
        default=ROOT / 'build' / 'bench' / 'retiming.inc',
        help='file to write to',
    )
    options = parser.parse_args(arguments)
    start = time.monotonic()
    found, absent = measure(*SIZES[options.size], lambda text: print(text, flush=True))
    text = text_of(found, absent)
    print('\n' + text)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(text, encoding='utf-8')
    print(f'{time.monotonic() - start:.0f} s. Written: {options.output}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
