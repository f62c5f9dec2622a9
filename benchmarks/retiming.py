"""Time laws on the same paths: uniform, `retime`, and TOPP-RA, which knows no torque rate.

Paths of the Panda and the ur5 are smooth curves through five random configurations, with Franka's
limits up to jerk and torque rate and with some that are chosen here. Beside the duration stands
how far the torque rate goes: the largest change of a torque in a step of 1 ms, the period of the
robot's controller, and in one of 0.1 ms, over the step. Where a torque jumps, the second is ten
times the first. What `retime` finds is checked against its limits at 20 places in each
millisecond, with torques from Pinocchio.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from benchmarks.peers import toppra_law
from benchmarks.peers.pinocchio_python import pinocchio
from benchmarks.tables import Benchmark, Table, say
from benchmarks.timing import Contestant, Effort, NotInstalled, race
from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.actuators import Actuators, SeriesElastic
from hodyn_ros.actuators.limits import motor_limits
from hodyn_ros.model.limits import MotionLimits
from hodyn_ros.model.violations import motion_limits
from hodyn_ros.resources import share_file
from hodyn_ros.retiming.path import RestingPath
from hodyn_ros.retiming.scaling import stretched, uniform_scaling
from hodyn_ros.retiming.timing import retime
from hodyn_ros.trajectory.spline import MotionSpline, fit_spline

Array = NDArray[np.float64]
Motion = Callable[[Array], Array]
"""From times (N,) to a motion (N, >= 3, n)."""

# Source: https://frankaemika.github.io/docs/control_parameters.html (limits for Panda); the
# others are in urdf/panda.urdf.
ACCELERATION = (15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0)
JERK = (7500.0, 3750.0, 5000.0, 6250.0, 7500.0, 10000.0, 10000.0)
EFFORT_DOT = 1000.0
OF_ALL = {'effort_dot': EFFORT_DOT}
OF_UR5 = {'acceleration': 15.0, 'jerk': 5000.0, **OF_ALL}

STIFFNESS, INERTIA, MOTOR_RATE = 1e4, 0.6, 40.0
"""Of the drives [N m/rad], [kg m^2], and the limit of their torque rate over that of the torque,
which is the one of the joint [1/s]."""

STEPS = (1e-3, 1e-4)
"""Over which torques are differenced [s]."""

POINTS = 5
RETIME, TOPPRA = 'retime, all limits', 'toppra: velocity, acceleration, torque'


class Size(NamedTuple):
    """How much is measured."""

    pandas: int
    """Paths of the Panda."""
    ur5s: int
    intervals: int
    """Of our time law."""
    effort: Effort


SIZES = {
    'tiny': Size(1, 0, 8, Effort(3, 0.0, 0.0)),
    'quick': Size(4, 1, 128, Effort(3, 0.0, 10.0)),
    'full': Size(20, 5, 128, Effort(5, 0.0, 10.0)),
}


class Robot(NamedTuple):
    """A robot and its limits."""

    name: str
    description: Path
    model: RobotModel
    limits: MotionLimits


def described(name: str, file: str, acceleration: ArrayLike, jerk: ArrayLike) -> Robot:
    """Give a robot of this package, with limits (n,) beside those of its description."""
    description = Path(share_file(f'urdf/{file}'))
    model = RobotModel.from_urdf(description)
    limits = motion_limits(model, {name: OF_ALL for name in model.joint_names})
    own = {'acceleration': np.array(acceleration), 'jerk': np.array(jerk)}
    return Robot(name, description, model, limits._replace(**own))


def panda() -> Robot:
    """Give the Panda."""
    return described('Panda', 'panda.urdf', ACCELERATION, JERK)


def ur5() -> Robot:
    """Give the ur5, with limits that are chosen here; raises NotInstalled."""
    try:
        files = metadata.distribution('example-robot-data').files or []
        found = next(file for file in files if str(file).endswith('urdf/ur5_robot.urdf'))
    except (metadata.PackageNotFoundError, StopIteration):
        raise NotInstalled('example-robot-data with its ur5 is not installed') from None
    description = Path(str(found.locate()))
    model = RobotModel.from_urdf(description)
    limits = motion_limits(model, {name: OF_UR5 for name in model.joint_names})
    return Robot('ur5', description, model, limits)


def paths(model: RobotModel, count: int) -> list[MotionSpline]:
    """Smooth curves through random configurations, parametrised by their chords."""
    random = np.random.default_rng(0)
    lower, upper = np.maximum(model.limits.lower, -3.0), np.minimum(model.limits.upper, 3.0)
    middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
    open_end = np.full((4, model.n_joints), np.nan)
    found: list[MotionSpline] = []
    while len(found) < count:
        points = middle + 0.5 * half * random.uniform(-1.0, 1.0, (POINTS, model.n_joints))
        chords = np.linalg.norm(np.diff(points, axis=0), axis=1)
        times = np.append(0.0, np.cumsum(chords))
        spline = fit_spline(times, points, start=open_end, end=open_end)
        q = spline(np.linspace(0.0, spline.end_time, 1001), 0)[:, 0]
        if np.all((q > lower) & (q < upper)):
            found.append(spline)
    return found


class Law(NamedTuple):
    """A way to find a time law."""

    solve: Callable[[MotionSpline], tuple[float, Motion]]
    """From a path to the duration and the motion; raises NotInstalled."""
    limits: MotionLimits | None = None
    """Which the motion keeps at any instant."""


def ours(robot: Robot, given: MotionLimits, intervals: int, **motors: Any) -> Law:
    """`retime` within some limits."""

    def solve(path: MotionSpline) -> tuple[float, Motion]:
        motion = retime(robot.model, path, given, intervals=intervals, **motors).motion
        return motion.duration, motion

    return Law(solve, given)


def toppra(robot: Robot, only_torque: bool = False) -> Law:
    """TOPP-RA within limits of velocity, acceleration and torque."""

    def solve(path: MotionSpline) -> tuple[float, Motion]:
        law = toppra_law.solver(robot.model, robot.limits, only_torque)(path)
        return law.duration, law

    return Law(solve)


def laws(robot: Robot, intervals: int) -> dict[str, Law]:
    """Who takes part, by name."""
    model, limits = robot.model, robot.limits
    endless = np.full(model.n_joints, np.inf)
    names = model.joint_names
    drives = Actuators(model, {name: SeriesElastic(STIFFNESS, INERTIA) for name in names})
    bounds = {
        name: {'motor_torque': torque, 'motor_torque_rate': MOTOR_RATE * torque}
        for name, torque in zip(names, model.limits.effort.tolist())
    }

    def uniform(path: MotionSpline) -> tuple[float, Motion]:
        motion = RestingPath(path, path.start_time, path.end_time)
        factor = uniform_scaling(model, motion, limits).factor
        return factor, lambda t: stretched(motion(np.minimum(t / factor, 1.0)), factor)

    with_motors = {'actuators': drives, 'motor_limits': motor_limits(drives, bounds)}
    free = limits._replace(jerk=endless, effort_dot=endless)
    return {
        'uniform_scaling, from rest to rest': Law(uniform),
        RETIME: ours(robot, limits, intervals),
        'retime, all limits and those of motors': ours(
            robot, limits, intervals, **with_motors
        ),
        'retime without jerk and torque rate': ours(robot, free, intervals),
        TOPPRA: toppra(robot),
        'toppra: torque alone': toppra(robot, only_torque=True),
    }


def of_limits(robot: Robot, limits: MotionLimits, motion: Any) -> float:
    """Largest quotient of a quantity and its limit at 20 places between any two knots.

    The torque rate is the change of Pinocchio's torques from one place to the next.
    """
    rnea, model = pinocchio().rnea, pinocchio().buildModelFromUrdf(str(robot.description))
    data = model.createData()
    columns = [model.joints[model.getJointId(n)].idx_v for n in robot.model.joint_names]
    t = np.linspace(0.0, motion.duration, 20 * len(motion.times) + 1)
    rows = motion(t, 3)
    theirs = np.zeros((len(t), 3, model.nv))
    theirs[..., columns] = rows[:, :3]
    torques = np.array([rnea(model, data, *row) for row in theirs])[:, columns]
    found = [
        np.abs(rows[:, 1]) / limits.velocity,
        np.abs(rows[:, 2]) / limits.acceleration,
        np.abs(rows[:, 3]) / limits.jerk,
        np.abs(torques) / limits.effort,
        np.abs(np.diff(torques, axis=0)) / (t[1] * limits.effort_dot),
    ]
    return float(max(each.max() for each in found))


def torque_rate(model: RobotModel, motion: Motion, duration: float, step: float) -> float:
    """Largest change of a torque in a step, over the step [N m/s]."""
    t = np.append(np.arange(0.0, duration, step), duration)
    torque = inverse_dynamics(model, motion(t)[:, :3])[:, 0]
    return float(np.abs(np.diff(torque[:-1], axis=0)).max() / step)


class Played(NamedTuple):
    """A time law on a path."""

    duration: float
    rates: tuple[float, ...]
    """Largest torque rate by differences over `STEPS` [N m/s]."""
    of_limits: float
    """Largest quotient of a quantity and its limit; NaN if that is not checked."""
    seconds: float
    """Of a processor, to find it."""


def play(
    robot: Robot, field: dict[str, Law], path: MotionSpline, effort: Effort
) -> dict[str, Played]:
    """Time laws of all on a path."""
    latest: dict[str, tuple[float, Motion]] = {}

    def run(name: str) -> None:
        latest[name] = field[name].solve(path)

    timings = race(
        [Contestant(name, 0, 1, partial(run, name), latest.copy) for name in field], effort
    )
    found = {}
    for name, (duration, motion) in latest.items():
        limits = field[name].limits
        rates = tuple(torque_rate(robot.model, motion, duration, step) for step in STEPS)
        share = np.nan if limits is None else of_limits(robot, limits, motion)
        # Of a processor: what takes long has to wait for others on the machine.
        seconds = timings[name].median * timings[name].processors
        found[name] = Played(duration, rates, share, seconds)
    return found


def table(robot: Robot, count: int, size: Size) -> Table:
    """Means over paths; of torque rates and quotients the largest."""
    robot.model.warm_up(3)
    field, absent, played = laws(robot, size.intervals), [], []
    curves = paths(robot.model, count)
    for name in list(field):
        try:
            field[name].solve(curves[0])
        except NotInstalled as reason:
            absent.append(f'- {name} is not measured: {reason}')
            del field[name]
    for i, path in enumerate(curves):
        say(f'{robot.name}, path {i + 1} of {count}')
        played.append(play(robot, field, path, size.effort))
    rows = []
    for name in field:
        own, ours = [path[name] for path in played], [path[RETIME] for path in played]
        relative = np.array([a.duration / b.duration for a, b in zip(own, ours)])
        rates = np.array([law.rates for law in own]).max(axis=0)
        share = max(law.of_limits for law in own)
        peers = [path[TOPPRA].seconds for path in played if TOPPRA in path]
        seconds = [law.seconds for law in own]
        rows.append(
            [
                name,
                f'{np.mean([law.duration for law in own]):.3f} s',
                f'{np.exp(np.mean(np.log(relative))):.4f} (to {relative.max():.4f})',
                *(f'{rate:.0f} N m/s' for rate in rates),
                '' if np.isnan(share) else f'{share:.6f}',
                f'{np.median(seconds):.3f} s',
                f'{np.median(np.divide(seconds, peers)):.2f}' if peers else '',
            ]
        )
    header = ['time law', 'duration', 'relative', 'rate over 1 ms', 'rate over 0.1 ms']
    header += ['of limits', 'time', 'of TOPP-RA']
    return Table(f'{robot.name}, {count} paths', header, rows, absent)


NOTE = (
    'Durations are means, relative ones the geometric mean and the largest beside all limits; '
    'times and quotients to those of TOPP-RA with velocity, acceleration and torque are '
    'medians. Torque rates by differences are the largest on all paths, their limit is '
    f'{EFFORT_DOT:.0f} N m/s. "Of limits" is the largest quotient of any quantity and its '
    'limit at 20 places in each millisecond, with torques from Pinocchio.'
)


def measure(size: Size) -> Sequence[Table]:
    """Tables of the robots."""
    counts = [(panda, size.pandas), (ur5, size.ur5s)]
    # All of them before the first takes its time.
    robots = [(make(), count) for make, count in counts if count]
    tables = [table(robot, count, size) for robot, count in robots]
    tables[-1] = replace(tables[-1], notes=[NOTE, *tables[-1].notes])
    return tables


BENCHMARKS = {'retiming': Benchmark('Time laws on the same paths', SIZES, measure)}
