"""What the efforts of this package are worth to joint_trajectory_controller.

    python -m benchmarks.controller_feedforward [--size full]
        [-o doc/benchmarks/controller_feedforward.inc]

A Panda in MuJoCo with rotors in its rigid joints and torque commands is moved at 1 kHz by a model
of that controller (test/support/jtc_model.py), which adds the efforts of the trajectory to a PID.
All get the same motion, and the same gains by one rule: for each joint by itself, with its largest
inertia in many configurations, two poles at `BANDWIDTH` and one at a fifth of it.

The robot stands, held by the PID for long; a trajectory of two points lets it stand on, now with
its efforts; then comes the motion; it stands again, and the controller is made to hold as on a
cancelled goal.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import retiming
from benchmarks.report import grid, options
from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.analysis import ControllerTrajectory, controller_trajectory
from hodyn_ros.dynamics.matrices import mass_matrix
from hodyn_ros.errors import ScalingError
from hodyn_ros.model.limits import MotionLimits
from hodyn_ros.retiming import uniform_scaling
from hodyn_ros.simulation import ElasticPlant, Imperfections
from hodyn_ros.trajectory.spline import MotionSpline, fit_spline

Array = NDArray[np.float64]

# The tests, which are no package, are on the path since `benchmarks.cases` is imported.
from support.control_cases import MOTOR_INERTIA  # noqa: E402
from support.jtc_model import SECOND, Jtc, Point  # noqa: E402

BANDWIDTH = 20.0  # rad/s
PERIOD = 1e-3
STEPS = 4
"""Of the simulation in a period."""
STANDING, RESTING, HELD = 2.0, 0.5, 0.5
"""Time with efforts before the motion, behind it, and after the cancelling [s]."""
SPARSE = 0.5
TOLERANCE = 0.1

PLANTS = {
    'as its model': Imperfections(),
    'other masses': Imperfections(inertia_error=0.05, payload={'panda_link7': 0.5}),
    'friction': Imperfections(viscous=0.5, coulomb=0.5),
}


class Contestant(NamedTuple):
    """What is sent to which robot."""

    compensates: bool
    """Whether the robot adds the gravity of its model itself, like those of Franka."""
    effort: str
    """Content: none, full or without_gravity."""
    sparse: bool = False
    """Points every `SPARSE` seconds, and not as the tolerance asks for."""


CONTESTANTS = (
    Contestant(False, 'none'),
    Contestant(False, 'full'),
    Contestant(True, 'none'),
    Contestant(True, 'without_gravity'),
    Contestant(False, 'full', sparse=True),
    Contestant(True, 'without_gravity', sparse=True),
    Contestant(True, 'full'),
)
COUNTS = (7, 4, 4)
"""How many of them meet on each of the plants."""
SIZES = {'tiny': (1, (2,)), 'quick': (1, COUNTS), 'full': (4, COUNTS)}
"""Number of motions, and of contestants."""


class Result(NamedTuple):
    """Of one motion."""

    began: float
    """Largest change of a command in a period when efforts begin [N m]."""
    error: Array
    """Of the positions during the motion, (N, n) [rad]."""
    rate: float
    """Largest change of a command in a period of the motion, over that [N m/s]."""
    cancelled: float
    """Largest change of a command in a period from the cancelling on [N m]."""
    left: float
    """Largest distance from the place of the cancelling [rad]."""
    points: int


def motions_of(model: RobotModel, limits: MotionLimits, count: int) -> list[MotionSpline]:
    """Splines through random configurations from rest to rest, as fast as limits permit."""
    found: list[MotionSpline] = []
    for seed in itertools.count():
        if len(found) == count:
            break
        path = retiming.through(model, seed, at_rest=True)
        try:
            factor = uniform_scaling(model, path, limits).factor
        except ScalingError:  # it swings out of the range of a joint
            continue
        found.append(fit_spline(factor * path.times, path.states[:, 0]))
    return found


def points_of(
    model: RobotModel, motion: MotionSpline, sparse: bool
) -> ControllerTrajectory:
    """Points of a motion, with the efforts of a model."""
    if not sparse:
        return controller_trajectory(model, motion, TOLERANCE)
    times = np.append(
        np.arange(0.0, motion.duration - 0.5 * SPARSE, SPARSE), motion.duration
    )
    times = np.round(times, 9)
    rows = motion(times.clip(0.0, motion.end_time))[:, :3]
    return ControllerTrajectory(times, rows, inverse_dynamics(model, rows)[:, 0], np.nan)


def taken(points: ControllerTrajectory, with_effort: bool) -> list[Point]:
    """Points as the controller takes them."""
    whole = np.round(points.times * SECOND).astype(int).tolist()
    efforts = points.effort if with_effort else [None] * len(whole)
    rows = zip(whole, points.motion, efforts)
    return [Point(at, *motion, effort) for at, motion, effort in rows]


def largest_inertia(model: RobotModel) -> Array:
    """Largest entries (n,) of the diagonal of the mass matrix in random configurations."""
    lower, upper = model.limits.lower, model.limits.upper
    q = np.random.default_rng(0).uniform(lower, upper, (200, model.n_joints))
    matrices = mass_matrix(model, q[:, None])[:, 0]
    largest: Array = np.diagonal(matrices, axis1=1, axis2=2).max(axis=0)
    return largest


class Arm:
    """A robot with its controller, held by it for long."""

    def __init__(
        self, model: RobotModel, faults: Imperfections, compensates: bool, q: Array
    ):
        self.plant = ElasticPlant(model, {}, PERIOD / STEPS, imperfections=faults)
        self.plant.reset(q)
        self.model, self.compensates = model, compensates
        inertia, w = largest_inertia(model), BANDWIDTH
        self.controller = Jtc(
            model.joint_names,
            round(PERIOD * SECOND),
            p=1.4 * w**2 * inertia,
            i=0.2 * w**3 * inertia,
            d=2.2 * w * inertia,
        )
        self.controller.integral = self.plant.weight(q) - self.added(q)
        self.now = SECOND
        self.step()

    def added(self, q: Array) -> Array:
        """Torques that the robot adds to those that are commanded."""
        at_rest = np.stack([q, 0.0 * q, 0.0 * q])
        return inverse_dynamics(self.model, at_rest)[0] * self.compensates

    def step(self) -> tuple[Array, Array]:
        """Let a period pass; what is commanded, and the error at its beginning."""
        plant = self.plant
        q = plant.q
        command = self.controller.update(self.now, q, plant.qd)['effort']
        plant.step(command + self.added(q), STEPS)
        self.now += self.controller.period
        return command, self.controller.desired.positions - q

    def run(self, duration: float) -> tuple[Array, Array]:
        """Commands, the one before included, and errors."""
        before = self.controller.effort
        found = [self.step() for _ in range(round(duration / PERIOD))]
        commands, errors = map(np.array, zip(*found))
        return np.concatenate([before[None], commands]), errors

    def follow(self, points: list[Point], duration: float) -> tuple[Array, Array]:
        """Run along points that come and begin now."""
        self.controller.take_points(points, 0, self.now)
        return self.run(duration)


def change(commands: Array) -> float:
    """Largest change of a command in a period."""
    return float(np.abs(np.diff(commands, axis=0)).max())


def measure(
    model: RobotModel, faults: Imperfections, who: Contestant, motion: MotionSpline
) -> Result:
    """Let a robot stand, move, stand and hold."""
    weightless = replace(model, gravity=np.zeros(3))
    sent = weightless if who.effort == 'without_gravity' else model
    points = points_of(sent, motion, who.sparse)
    first = points.motion[0]
    stay = ControllerTrajectory(
        np.array([0.0, STANDING]),
        np.stack([first] * 2),
        np.stack([points.effort[0]] * 2),
        0.0,
    )
    with_effort = who.effort != 'none'
    arm = Arm(model, faults, who.compensates, first[0])
    began, _ = arm.follow(taken(stay, with_effort), STANDING)
    commands, errors = arm.follow(taken(points, with_effort), motion.duration)
    arm.run(RESTING)
    arm.controller.cancel()
    cancelled, left = arm.run(HELD)
    return Result(
        change(began),
        errors,
        change(commands) / PERIOD,
        change(cancelled),
        float(np.abs(left).max()),
        len(points.times),
    )


def text_of(found: dict[str, dict[Contestant, list[Result]]]) -> str:
    """Table of all results: means over the motions of RMS errors and points, else the largest."""
    header = [
        'robot',
        'adds its gravity',
        'effort field',
        'points',
        'RMS',
        'peak',
        'torque rate',
        'efforts begin',
        'cancelled',
        'moves by',
    ]
    lines = [header]
    count = 0
    for plant, results in found.items():
        for who, runs in results.items():
            count = len(runs)
            rms = np.mean([np.sqrt(np.mean(run.error**2)) for run in runs])
            spaced = f', every {SPARSE:g} s' if who.sparse else ''
            lines.append(
                [
                    plant,
                    'yes' if who.compensates else 'no',
                    who.effort + spaced,
                    f'{np.mean([run.points for run in runs]):.0f}',
                    f'{shown(1e3 * rms)} mrad',
                    f'{shown(1e3 * max(np.abs(run.error).max() for run in runs))} mrad',
                    f'{max(run.rate for run in runs):.0f} N m/s',
                    f'{shown(max(run.began for run in runs))} N m',
                    f'{shown(max(run.cancelled for run in runs))} N m',
                    f'{shown(1e3 * max(run.left for run in runs))} mrad',
                ]
            )
    text = grid(lines)
    text += (
        f'\nMeans of RMS errors over {count} motion{"s" if count > 1 else ""} from rest to rest, '
        'otherwise the largest values. Errors and torque rate are those of the motion, the rate '
        f'from one period of {1e3 * PERIOD:g} ms to the next. "Efforts begin": largest step of a '
        'command from one period to the next when a robot that the PID alone has held gets a '
        'trajectory with efforts; "cancelled": the same when the controller is made to hold, and '
        'how far the robot moves then. Points are as dense as a tolerance of '
        f'{TOLERANCE:g} N m asks for, unless they are every {SPARSE:g} s. '
        'What the model does not know: "other masses", 5 % more inertia and 0.5 kg at the last '
        'link; "friction", 0.5 N m of Coulomb and 0.5 N m s/rad of viscous friction in every '
        'joint.\n'
    )
    return text


def shown(value: float) -> str:
    """Write a number with two digits, and no exponent."""
    return (
        f'{value:.0f}'
        if value >= 10.0
        else f'{value:.1f}'
        if value >= 1.0
        else f'{value:.2g}'
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table and write it."""
    description = 'Tracking of joint_trajectory_controller with and without efforts.'
    meaning = 'number of motions'
    chosen = options(arguments, 'controller_feedforward', description, SIZES, meaning)
    start = time.monotonic()
    _, links, limits = retiming.panda()
    model = links.with_armature(dict(zip(links.joint_names, MOTOR_INERTIA)))
    count, contestants = SIZES[chosen.size]
    motions = motions_of(model, limits, count)
    found: dict[str, dict[Contestant, list[Result]]] = {}
    for plant, number in zip(PLANTS, contestants):
        for who in CONTESTANTS[:number]:
            print(f'{plant}: {who}', flush=True)
            runs = [measure(model, PLANTS[plant], who, motion) for motion in motions]
            found.setdefault(plant, {})[who] = runs
    text = text_of(found)
    print('\n' + text)
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    chosen.output.write_text(text, encoding='utf-8')
    print(f'{time.monotonic() - start:.0f} s. Written: {chosen.output}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
