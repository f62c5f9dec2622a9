"""Time laws on the same paths: uniform, `retime`, and TOPP-RA, which knows no torque rate.

    python -m benchmarks.retiming [--size full] [-o doc/benchmarks/retiming.inc]

Paths of the Panda and the ur5 are smooth curves through five random configurations, with Franka's
limits up to jerk and torque rate and with some that are chosen here. Beside the duration stands
how far the torque rate goes: the largest change of a torque in a step of 1 ms, the period of the
robot's controller, and in one of 0.1 ms, over the step. Where a torque jumps, the second is ten
times the first. What `retime` finds is checked against its limits at 20 places in each
millisecond, with torques from Pinocchio. Times are those of a second call on the same path.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers import toppra_law
from benchmarks.report import grid, options
from benchmarks.timing import NotInstalled
from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.actuators import Actuators, SeriesElastic
from hodyn_ros.actuators.limits import motor_limits
from hodyn_ros.model.limits import MotionLimits, motion_limits
from hodyn_ros.resources import share_file
from hodyn_ros.retiming.path import RestingPath
from hodyn_ros.retiming.retiming import retime
from hodyn_ros.retiming.scaling import StretchedMotion, uniform_scaling
from hodyn_ros.trajectory.jtc import JtcMotion
from hodyn_ros.trajectory.spline import MotionSpline, fit_spline

Array = NDArray[np.float64]

# Source: https://frankaemika.github.io/docs/control_parameters.html (limits for Panda); the
# others are in urdf/panda.urdf.
ACCELERATION = (15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0)
JERK = (7500.0, 3750.0, 5000.0, 6250.0, 7500.0, 10000.0, 10000.0)
EFFORT_DOT = 1000.0

_UR5 = 'ur_description/urdf/ur5_robot.urdf'
_OF_UR5 = {'acceleration': 15.0, 'jerk': 5000.0, 'effort_dot': EFFORT_DOT}

STIFFNESS, INERTIA, MOTOR_RATE = 1e4, 0.6, 40.0
"""Of the drives [N m/rad], [kg m^2], and the limit of their torque rate over that of the torque,
which is the one of the joint [1/s]."""

STEPS = (1e-3, 1e-4)
"""Over which torques are differenced [s]."""

POINTS = 5
TOPPRA = 'toppra: velocity, acceleration, torque'
SIZES = {'tiny': (1, 0, 8), 'quick': (4, 1, 128), 'full': (20, 5, 128)}
"""Number of paths of the Panda and the ur5, intervals of our time law."""


class Played(NamedTuple):
    """A time law on a path."""

    duration: float
    rates: tuple[float, ...]
    """Largest torque rate by differences over `STEPS` [N m/s]."""
    seconds: float
    """Of a processor, to compute it."""
    of_limits: float
    """Largest quotient of a quantity and its limit; NaN if that is not checked."""


class Method(NamedTuple):
    """A way to find a time law."""

    name: str
    solve: Callable[[MotionSpline], tuple[float, Callable[[Array], Array]]]
    """From a path to the duration and the motion (N, >= 3, n) at times (N,)."""
    limits: MotionLimits | None = None
    """Which the motion keeps at any instant."""


class Pinocchio:
    """Torques of a robot from `pin.rnea`."""

    def __init__(self, description: Path, joint_names: Sequence[str]) -> None:
        try:
            import pinocchio
        except ImportError as error:
            raise NotInstalled('pinocchio is not installed') from error
        self._rnea = pinocchio.rnea
        self._model = pinocchio.buildModelFromUrdf(str(description))
        self._data = self._model.createData()
        ids = [self._model.getJointId(name) for name in joint_names]
        self._columns = [self._model.joints[number].idx_v for number in ids]

    def torques(self, motion: Array) -> Array:
        """Torques (N, n) of a motion (N, 3, n)."""
        rows = np.zeros((len(motion), 3, self._model.nv))
        rows[..., self._columns] = motion
        found = [self._rnea(self._model, self._data, *row) for row in rows]
        return np.array(found)[:, self._columns]


def finely(pinocchio: Pinocchio, limits: MotionLimits, motion: JtcMotion) -> float:
    """Largest quotient of a quantity and its limit at 20 places between any two knots.

    The torque rate is the change of Pinocchio's torques from one place to the next.
    """
    t = np.linspace(0.0, motion.duration, 20 * len(motion.times) + 1)
    rows = motion(t, 3)
    torques = pinocchio.torques(rows[:, :3])
    found = [
        np.abs(rows[:, 1]) / limits.velocity,
        np.abs(rows[:, 2]) / limits.acceleration,
        np.abs(rows[:, 3]) / limits.jerk,
        np.abs(torques) / limits.effort,
        np.abs(np.diff(torques, axis=0)) / (t[1] * limits.effort_dot),
    ]
    return float(max(each.max() for each in found))


def _example(name: str) -> Path:
    try:
        files = metadata.distribution('example-robot-data').files or []
    except metadata.PackageNotFoundError as error:
        raise NotInstalled('example-robot-data is not installed') from error
    for file in files:
        if str(file).endswith(name):
            return Path(str(file.locate()))
    raise NotInstalled(f'example-robot-data has no {name}')


def ur5() -> tuple[Path, RobotModel, MotionLimits]:
    """Return a description, the ur5 and limits that are chosen here."""
    description = _example(_UR5)
    model = RobotModel.from_urdf(description)
    return (
        description,
        model,
        motion_limits(model, {name: _OF_UR5 for name in model.joint_names}),
    )


def through(model: RobotModel, seed: int, at_rest: bool = False) -> MotionSpline:
    """Smooth curve through random configurations in the middle of the joint ranges."""
    source = np.random.default_rng(seed)
    lower, upper = np.maximum(model.limits.lower, -2.5), np.minimum(model.limits.upper, 2.5)
    points = 0.5 * (lower + upper) + 0.35 * 0.5 * (upper - lower) * source.uniform(
        -1.0, 1.0, (POINTS, model.n_joints)
    )
    chords = np.linalg.norm(np.diff(points, axis=0), axis=1)
    ends = None if at_rest else np.full((4, model.n_joints), np.nan)
    return fit_spline(np.append(0.0, np.cumsum(chords)), points, start=ends, end=ends)


def panda() -> tuple[Path, RobotModel, MotionLimits]:
    """Return the description, the Panda and its limits."""
    description = Path(share_file('urdf/panda.urdf'))
    model = RobotModel.from_urdf(description)
    extra = {
        name: {'acceleration': acceleration, 'jerk': jerk, 'effort_dot': EFFORT_DOT}
        for name, acceleration, jerk in zip(model.joint_names, ACCELERATION, JERK)
    }
    return description, model, motion_limits(model, extra)


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

    def ours(name: str, given: MotionLimits, with_motors: bool = False) -> Method:
        drives = Actuators(
            model, {name: SeriesElastic(STIFFNESS, INERTIA) for name in model.joint_names}
        )
        torques = zip(model.joint_names, model.limits.effort.tolist())
        bounds = motor_limits(
            drives,
            {
                name: {'motor_torque': torque, 'motor_torque_rate': MOTOR_RATE * torque}
                for name, torque in torques
            },
        )
        motors = {'actuators': drives, 'motor_limits': bounds} if with_motors else {}

        def solve(path: MotionSpline) -> tuple[float, Callable[[Array], Array]]:
            motion = retime(model, path, given, intervals=intervals, **motors).motion
            return motion.duration, motion

        return Method(name, solve, given)

    def theirs(only_torque: bool) -> Callable[..., tuple[float, Callable[[Array], Array]]]:
        def solve(path: MotionSpline) -> tuple[float, Callable[[Array], Array]]:
            law = toppra_law.solver(model, limits, only_torque)(path)
            return law.duration, law

        return solve

    return [
        Method('uniform_scaling, from rest to rest', uniform),
        ours('retime, all limits', limits),
        ours('retime, all limits and those of motors', limits, with_motors=True),
        ours('retime without jerk and torque rate', no_rates),
        Method(TOPPRA, theirs(False)),
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
    description: Path,
    model: RobotModel,
    limits: MotionLimits,
    curves: Sequence[MotionSpline],
    intervals: int,
    say: Callable[[str], None],
) -> tuple[dict[str, list[Played]], dict[str, str]]:
    """Time laws of all methods on all paths, and who is absent for which reason."""
    model.warm_up(3)
    found: dict[str, list[Played]] = {}
    absent: dict[str, str] = {}
    for method in methods(model, limits, intervals):
        say(f'{model.name}: {method.name}')
        for path in curves:
            try:
                method.solve(path)
                start = time.process_time()
                duration, motion = method.solve(path)
            except NotInstalled as reason:
                absent[method.name] = str(reason)
                break
            seconds = time.process_time() - start
            rates = tuple(torque_rate(model, motion, duration, step) for step in STEPS)
            of_limits = np.nan
            if method.limits is not None:
                try:
                    pinocchio = Pinocchio(description, model.joint_names)
                    of_limits = finely(pinocchio, method.limits, motion)  # type: ignore[arg-type]
                except NotInstalled as reason:
                    absent['the check of limits'] = str(reason)
            found.setdefault(method.name, []).append(
                Played(duration, rates, seconds, of_limits)
            )
    return found, absent


def text_of(name: str, found: dict[str, list[Played]], absent: dict[str, str]) -> str:
    """Table of the means; of torque rates and quotients the largest."""
    reference = np.array([played.duration for played in found['retime, all limits']])
    header = (
        'duration',
        'relative',
        'rate over 1 ms',
        'rate over 0.1 ms',
        'of limits',
        'time',
    )
    lines = [[f'{name}: time law', *header, 'of TOPP-RA']]
    peer = np.array([played.seconds for played in found.get(TOPPRA, [])])
    for method, laws in found.items():
        durations = np.array([played.duration for played in laws])
        relative = durations / reference
        rates = np.array([played.rates for played in laws]).max(axis=0)
        of_limits = max(played.of_limits for played in laws)
        seconds = np.array([played.seconds for played in laws])
        lines.append(
            [
                method,
                f'{durations.mean():.3f} s',
                f'{np.exp(np.mean(np.log(relative))):.4f} (to {relative.max():.4f})',
                *(f'{rate:.0f} N m/s' for rate in rates),
                '' if np.isnan(of_limits) else f'{of_limits:.6f}',
                f'{np.median(seconds):.3f} s',
                f'{np.median(seconds / peer):.2f}' if len(peer) else '',
            ]
        )
    text = grid(lines)
    count = len(reference)
    text += (
        f'\nMeans over {count} path{"s" if count > 1 else ""}, the geometric one and the largest '
        'of the durations relative to that with all limits; medians of the processor times and of '
        'their quotients to those of TOPP-RA with velocity, acceleration and torque, of second '
        'calls on the same path. Torque rates by differences are the largest on all paths, their '
        f'limit is {EFFORT_DOT:.0f} N m/s. "Of limits" is the largest quotient of any quantity '
        'and its limit at 20 places in each millisecond, with torques from Pinocchio.\n'
    )
    for method, reason in absent.items():
        text += f'\nNot measured: {method} ({reason}).\n'
    return text


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table and write it."""
    description = 'Durations and torque rates of time laws on paths of the Panda.'
    meaning = 'number of paths'
    chosen = options(arguments, 'retiming', description, SIZES, meaning)
    start = time.monotonic()
    of_panda, of_ur5, intervals = SIZES[chosen.size]
    robot = panda()
    robots = [('Panda', *robot, paths(robot[1], of_panda))]
    if of_ur5:
        robot = ur5()
        robots.append(('ur5', *robot, [through(robot[1], seed) for seed in range(of_ur5)]))
    texts = []
    for name, *case in robots:
        found = measure(*case, intervals, lambda text: print(text, flush=True))  # type: ignore
        texts.append(text_of(name, *found))
    text = '\n'.join(texts)
    print('\n' + text)
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    chosen.output.write_text(text, encoding='utf-8')
    print(f'{time.monotonic() - start:.0f} s. Written: {chosen.output}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
