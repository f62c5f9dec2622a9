"""What limits of jerk and torque rate do to a simulated robot: power, torques, tracking errors.

The measures are those of Lee, Bylard, Sun and Sentis 2024, "On the Performance of Jerk-Constrained
Time-Optimal Trajectory Planning for Industrial Manipulators", arXiv:2404.07889: peak power, RMS
torque and tracking error on the same paths with and without limits of the third order. Their robot
is a real one; here MuJoCo moves the Panda and the iiwa 14 with springs in their joints. The links
are heavier than the model says, motors have dry friction, and torques act one cycle late. The
controller is PD on the motors with feed-forward torques of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.retiming import (
    EFFORT_DOT,
    STIFFNESS,
    Law,
    Motion,
    Robot,
    described,
    ours,
    panda,
    paths,
    toppra,
)
from benchmarks.tables import Benchmark, Table, say
from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.actuators import Actuators, SeriesElastic
from hodyn_ros.simulation import ElasticPlant, Imperfections, Tracking, simulate_tracking
from hodyn_ros.trajectory.spline import MotionSpline

Array = NDArray[np.float64]

# Of the iiwa 14, see config/iiwa14.yaml. No limits of its jerk and torque rate are published: the
# torque rate and the quotient of jerk and acceleration are those of the Panda.
ACCELERATION = np.array((8.57, 8.57, 8.74, 11.36, 12.23, 15.72, 15.72))
JERK_BY_ACCELERATION = 500.0

# Of the motors, reflected to the joints, see config/panda_sea.yaml [kg m^2]; of both robots.
INERTIA = np.array((0.606, 0.606, 0.462, 0.462, 0.206, 0.206, 0.206))
DAMPING = 3.0
"""Beside the springs [N m s/rad]."""
HEAVIER, FRICTION = 0.05, 0.5
"""Relative error of all inertias, and dry friction of the motors [N m]; the model has neither."""
BANDWIDTH = 50.0
"""Of the controller [rad/s]."""
PERIOD, TIME_STEP, REST = 1e-3, 2.5e-4, 0.2
"""Of the controller and of the simulation, and behind the motion [s]."""
BISECTIONS, SMALLEST_SHARE = 6, 1e-2
"""With which the share of the jerk limits is looked for, and from which on."""


def iiwa() -> Robot:
    """Give the iiwa 14."""
    jerk = JERK_BY_ACCELERATION * ACCELERATION
    return described('iiwa 14', 'iiwa14.urdf', ACCELERATION, jerk)


class Size(NamedTuple):
    """How much is measured: paths of each robot, intervals of our time law, robots."""

    paths: int
    intervals: int
    robots: Sequence[Callable[[], Robot]]


SIZES = {
    'tiny': Size(1, 16, [panda]),
    'quick': Size(3, 128, [panda, iiwa]),
    'full': Size(20, 128, [panda, iiwa]),
}


# --- Timings ----------------------------------------------------------------------------------


def tuned_share(robot: Robot, curves: Sequence[MotionSpline], intervals: int) -> float:
    """Largest share of the jerk limits, one for all, with which all paths keep the torque rate."""

    def largest(law: Law) -> float:
        found = []
        for duration, motion in map(law.solve, curves):
            rows = motion(np.arange(0.0, duration, 0.25 * PERIOD))[:, :4]
            found.append(np.abs(inverse_dynamics(robot.model, rows)[:, 1]).max())
        return float(max(found))

    low, high = SMALLEST_SHARE, 1.0
    for _ in range(BISECTIONS):
        share = float(np.sqrt(low * high))
        exceeds = largest(jerk_law(robot, share, intervals)) > EFFORT_DOT
        low, high = (low, share) if exceeds else (share, high)
    return low


def jerk_law(robot: Robot, share: float, intervals: int) -> Law:
    """`retime` with limits up to the jerk, of which it has a share; the torque rate is free."""
    free = robot.limits._replace(effort_dot=np.full(robot.model.n_joints, np.inf))
    return ours(robot, free._replace(jerk=share * free.jerk), intervals)


def timings(robot: Robot, share: float, intervals: int) -> dict[str, Law]:
    """Timings by name; raises NotInstalled without TOPP-RA."""
    return {
        'TOPP-RA: velocity, acceleration, torque': toppra(robot),
        'retime: velocity, acceleration, torque': jerk_law(robot, np.inf, intervals),
        'retime: with jerk': jerk_law(robot, 1.0, intervals),
        'retime: with tuned jerk': jerk_law(robot, share, intervals),
        'retime: with jerk and torque rate': ours(robot, robot.limits, intervals),
    }


# --- On the robot -----------------------------------------------------------------------------


class FeedForward:
    """PD on the motors around what the model says of them.

    Torques are those of links and motors as one, Q + B q''. Motors are wanted where springs with
    Q put them, and as fast as the links: the rate of Q is infinite where a timing lets it jump.
    """

    def __init__(self, model: RobotModel) -> None:
        self._model = model

    def command(
        self, desired: Array, q: Array, qd: Array, theta: Array, thetad: Array
    ) -> Array:
        """Motor torques (n,) [N m]."""
        torque: Array = inverse_dynamics(self._model, desired[:3])[0]
        error = desired[0] + torque / STIFFNESS - theta
        wanted = BANDWIDTH**2 * error + 2.0 * BANDWIDTH * (desired[1] - thetad)
        return torque + INERTIA * (desired[2] + wanted)


def plant_of(robot: Robot) -> ElasticPlant:
    """Simulate a robot that is not quite its model."""
    model, names = robot.model, robot.model.joint_names
    faults = Imperfections(
        inertia_error=HEAVIER,
        coulomb=FRICTION,
        damping=DAMPING,
        torque_limit=dict(zip(names, model.limits.effort.tolist())),
    )
    springs = {
        name: SeriesElastic(STIFFNESS, b) for name, b in zip(names, INERTIA.tolist())
    }
    return ElasticPlant(model, Actuators(model, springs), TIME_STEP, imperfections=faults)


def follow(robot: Robot, plant: ElasticPlant, duration: float, motion: Motion) -> Tracking:
    """Let a robot follow a motion, and rest."""

    def until_rest(t: Array) -> Array:
        rows = motion(np.minimum(t, duration))
        rows[t >= duration, 1:] = 0.0
        # Some timings have no derivatives beyond the acceleration; the controller takes none.
        return np.pad(rows[:, :3], ((0, 0), (0, 2), (0, 0)))

    def start(sampled: Any) -> None:
        sampled.reset(begin, torque=plant.holding_torque(begin))

    begin, law = until_rest(np.zeros(1))[0, 0], FeedForward(robot.model)
    return simulate_tracking(
        plant, law, until_rest, duration + REST, PERIOD, command_delay=1, start=start
    )


def measures(duration: float, run: Tracking, limits: Array) -> Array:
    """Values of a record in the order of `HEADER`, of motors with torque limits (n,)."""
    torque = np.clip(run.torque, -limits, limits)
    power = np.abs(torque * run.thetad[:-1]).sum(axis=1).max()
    rate = np.abs(np.diff(torque, axis=0)).max() / PERIOD
    errors = 1e3 * run.rms_error, 1e3 * run.peak_error
    return np.array([duration, power, np.sqrt(np.mean(torque**2)), *errors, rate])


# --- Tables -----------------------------------------------------------------------------------

HEADER = ['timing', 'duration [s]', 'peak power [W]', 'RMS torque [N m]']
HEADER += ['RMS error [mrad]', 'peak error [mrad]', 'torque rate [N m/s]']
NOTE = (
    'Medians over the paths and, in brackets, medians of the quotients to the first line on the '
    'same path. Power is the sum of the magnitudes of torque times velocity, the torque rate '
    'the largest change of a motor torque in 1 ms, feedback included, over it; errors are those '
    'of the links. Tuned jerk limits are a share of those of the line above, one for all joints '
    'and paths, with which the torque rates of the model stay below '
    f'{EFFORT_DOT:.0f} N m/s on all paths.'
)


def table(robot: Robot, size: Size) -> Table:
    """What a robot makes of its timings."""
    robot.model.warm_up(2)
    curves, plant = paths(robot.model, size.paths), plant_of(robot)
    say(f'{robot.name}: tuned jerk')
    share = tuned_share(robot, curves, size.intervals)
    found = dict[str, Array]()
    for name, law in timings(robot, share, size.intervals).items():
        say(f'{robot.name}: {name}')
        timed = [law.solve(path) for path in curves]
        runs = [(given[0], follow(robot, plant, *given)) for given in timed]
        found[name] = np.array([measures(*run, robot.model.limits.effort) for run in runs])
    first, rows = next(iter(found.values())), []
    for name, values in found.items():
        medians, ratios = np.median(values, axis=0), np.median(values / first, axis=0)
        pairs = zip(medians[:-1], ratios)
        cells = [f'{median:.3g} ({ratio:.3f})' for median, ratio in pairs]
        rows.append([name, *cells, f'{medians[-1]:.0f} ({ratios[-1]:.3f})'])
    notes = [f'Tuned jerk limits: {100.0 * share:.2g} % of those of the line above.']
    return Table(f'{robot.name}, {len(curves)} paths', HEADER, rows, notes)


def measure(size: Size) -> Sequence[Table]:
    """Tables of the robots."""
    found = [table(make(), size) for make in size.robots]
    found[-1] = replace(found[-1], notes=[*found[-1].notes, NOTE])
    return found


BENCHMARKS = {'jerk_limits': Benchmark('Limits of jerk and torque rate', SIZES, measure)}
