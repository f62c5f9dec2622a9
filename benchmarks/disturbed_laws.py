"""Control laws on a robot, sensors, drives and a bus of which nothing is as it should be.

    python -m benchmarks.disturbed_laws [--size full] [--include doc/benchmarks/disturbed_laws.inc]

A Panda with springs in its joints follows one motion of 2.6 s; for the walls, its tip goes down.
benchmarks/elastic_plant.py simulates it: links of Pinocchio, the rest equations of its own. There
are encoders of 20 bits at the links and of 14 bits before a gear of 100 at the motors. Laws that
want velocities get differences over the time between two measurements, behind a low pass of
600 rad/s.

One rule tunes the laws whose bandwidth is not given: the smallest RMS error on another motion with
springs 5 % softer, 1 kg of payload, 1 N m of Coulomb friction in the motors and a delay of 2 ms
that no law is told, among the bandwidths with which no torque reaches its limit or changes by more
than 1000 N m/s in the last tenth of a second, at rest. If there is none, the smallest error. It is
applied once for each sample rate. Without the delay it would choose bandwidths that leave no
margin for any.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import textwrap
import time
import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.comparison_laws import make_compared
from benchmarks.elastic_plant import LINKS, MOTORS, SPEEDS, ElasticPlant, Faults, Friction
from benchmarks.report import folder_options, grid, write_tables
from hodyn_ros import ModelWarning, RobotModel
from hodyn_ros.actuators import Actuators, SeriesElastic
from hodyn_ros.control import (
    Command,
    GravityCompensation,
    Guards,
    Law,
    tracking_controller,
    warm_up,
)
from hodyn_ros.dynamics.matrices import gravity_effort
from hodyn_ros.errors import HodynError

# The tests, which are no package, are on the path since `benchmarks.report` imports `cases`.
from support.control_cases import (  # isort: skip
    HOME,
    LINK_STEP,
    MOTION,
    MOTOR_INERTIA,
    MOTOR_STEP,
    PANDA,
    PERIOD,
    STIFFNESS,
    TORQUE_LIMITS,
    TUNING_MOTION,
    PointToPoint,
)

Array = NDArray[np.float64]

SEED = 2024
TIP = 'panda_link8'
BANDWIDTHS = (10.0, 15.0, 20.0, 30.0, 40.0, 60.0, 80.0, 110.0)  # rad/s
LARGEST_RATE = 1000.0  # N m/s, what the interface of the Franka robots permits
FILTER = 600.0  # rad/s, of differences
REST = 0.2  # s, behind a motion
AT_REST = 0.1  # s, at the end, in which torques should rest
PUSHED = 0.5  # s, when the push begins; it lasts
GLITCH = 0.8  # s
BRAKED = (0.4, 0.9)  # s
WITHOUT_DRIVES = (0.6, 0.75)  # s
TOUCH = 0.2  # m/s, speed of the tip at the wall
WAY = 0.15  # m, of the tip
LEFT_ALONE = 3.0  # s, of a robot under gravity compensation
DAMPING = 0.5  # N m s/rad, of gravity compensation
AWAY = np.pi  # rad, from which on a joint that should follow counts as diverged
FAR_AWAY = 10.0  # rad, the same of one that is left alone

GUARDS = Guards(max_external_torque=0.6 * TORQUE_LIMITS)
RELEASED = 1.5  # s, when a robot whose brakes or drives were off is told to follow again


@cache
def panda() -> RobotModel:
    """Give the robot that the laws know, compiled."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        model = RobotModel.from_urdf(PANDA)
    warm_up(model)
    return model


@cache
def going_down() -> tuple[PointToPoint, float]:
    """Motion on which the tip goes down, and its height [m] where it does so at `TOUCH`."""
    plant = ElasticPlant(PANDA, STIFFNESS, MOTOR_INERTIA, TORQUE_LIMITS, TIP)
    start = np.array(HOME)
    end = start + np.linalg.pinv(plant.tip(start)[1]) @ [0.0, 0.0, -WAY]
    once = PointToPoint((start, end), (0.0, 1.0))
    q, qd = once(np.array([0.5]))[0, :2]
    place, J = plant.tip(q)
    return PointToPoint((start, end), (0.0, -float(J[2] @ qd) / TOUCH)), float(place[2])


@dataclass(frozen=True)
class Case:
    """What is not as it should be, and the motion."""

    faults: Faults = Faults()
    period: float = PERIOD
    """Between two measurements [s]."""
    dropped: float = 0.0
    """Share of calls that are left out; the drives hold their torques."""
    jitter: float = 0.0
    """Of the times of measurements, both ways, uniformly distributed, by the period."""
    delay: float = 0.0
    """From a measurement until its torques act [s]."""
    glitch: tuple[str, int, float] | None = None
    """Encoder ('link' or 'motor'), joint and error [rad] of one sample."""
    brakes: bool = False
    """Whether the motors are held for a while."""
    drives_off: bool = False
    """Whether there is no torque for a while."""
    push: float = 0.0
    """Sideways at the tip [N]."""
    known_inertia: float = 1.0
    """Motor inertia that the law knows, by the true one."""
    motor_scale: float = 1.0
    """Factor of the motor positions that are measured."""
    knows_limits: bool = True
    """Whether the law is given the torque limits."""
    motion: PointToPoint | None = field(default=MOTION)
    """None for a robot that is left alone."""
    rest: float = REST
    """Behind the motion [s]."""

    @property
    def duration(self) -> float:
        """Of the motion and the rest [s]."""
        return LEFT_ALONE if self.motion is None else self.motion.duration + self.rest


def wall(stiffness: float) -> Case:
    """Case of a wall [N/m] that the tip meets."""
    motion, height = going_down()
    return Case(Faults(wall=(height, stiffness)), motion=motion, rest=1.0)


STRIBECK = Faults(motor_friction=Friction(1.0, 1.5), link_friction=Friction(0.5, 0.75))
ALL = Faults(stiffness=-0.05, payload=1.0, motor_friction=Friction(1.0))
TUNING = Case(ALL, delay=2e-3, motion=TUNING_MOTION)
WALLS = {'wall, 1e4 N/m': 1e4, 'wall, 1e5 N/m': 1e5}

CASES: dict[str, Case] = {
    'exact': Case(),
    'calls dropped 5 %': Case(dropped=0.05),
    'calls dropped 10 %': Case(dropped=0.1),
    'calls dropped 20 %': Case(dropped=0.2),
    'jitter 0.3 ms': Case(jitter=0.3),
    'glitch 1 rad, link': Case(glitch=('link', 3, 1.0)),
    'glitch 0.15 rad, motor': Case(glitch=('motor', 3, 0.15)),
    'glitch NaN, link': Case(glitch=('link', 3, np.nan)),
    'glitch NaN, motor': Case(glitch=('motor', 3, np.nan)),
    'brakes 0.5 s': Case(brakes=True, rest=1.5),
    'drives off 0.15 s': Case(drives_off=True, rest=1.5),
    **{name: wall(stiffness) for name, stiffness in WALLS.items()},
    'push 50 N': Case(push=50.0),
    **{
        f'K {k:+d} %': Case(Faults(stiffness=k / 100.0))
        for k in (-30, -20, -10, 10, 20, 30)
    },
    'payload 3 kg': Case(Faults(payload=3.0)),
    'Stribeck friction': Case(STRIBECK),
    'hysteresis 0.5 N m': Case(Faults(hysteresis=0.5)),
    'current loop 300 Hz': Case(Faults(current_loop=300.0)),
    **{f'delay {ms} ms, unknown': Case(delay=1e-3 * ms) for ms in (1, 2, 3, 4)},
    '250 Hz': Case(period=4e-3),
    '500 Hz': Case(period=2e-3),
    '4 kHz': Case(period=2.5e-4),
    '250 Hz, all': Case(ALL, period=4e-3),
    '500 Hz, all': Case(ALL, period=2e-3),
    '1 kHz, all': Case(ALL),
    '4 kHz, all': Case(ALL, period=2.5e-4),
    **{f'motor inertia x {b:g}': Case(known_inertia=b) for b in (0.1, 0.5, 2.0)},
    'motors x 100': Case(motor_scale=100.0),
    'motors x 100, limits not given': Case(motor_scale=100.0, knows_limits=False),
    'motors x -1': Case(motor_scale=-1.0),
    'motors x -1, limits not given': Case(motor_scale=-1.0, knows_limits=False),
}

ALONE: dict[str, Case] = {
    'exact': Case(motion=None),
    'K -20 %': Case(Faults(stiffness=-0.2), motion=None),
    'K -5 %': Case(Faults(stiffness=-0.05), motion=None),
    'K +5 %': Case(Faults(stiffness=0.05), motion=None),
    'payload 0.3 kg': Case(Faults(payload=0.3), motion=None),
    'payload 3 kg': Case(Faults(payload=3.0), motion=None),
    'motor Coulomb 0.5 N m, K -5 %': Case(
        Faults(stiffness=-0.05, motor_friction=Friction(0.5)), motion=None
    ),
    'delay 4 ms, unknown': Case(delay=4e-3, motion=None),
}
"""Of a robot that is left alone under gravity compensation."""


class Robot(NamedTuple):
    """What a law knows of the robot."""

    actuators: Actuators
    period: float
    """[s]"""
    limits: Array | None
    """Shape (n,) [N m]."""


def known(case: Case) -> Robot:
    """Say what a law knows of the robot of a case."""
    model = panda()
    rows = zip(model.joint_names, STIFFNESS.tolist(), MOTOR_INERTIA.tolist())
    springs = {name: SeriesElastic(k, case.known_inertia * b) for name, k, b in rows}
    limits = TORQUE_LIMITS if case.knows_limits else None
    return Robot(Actuators(model, springs), case.period, limits)


def recommended(robot: Robot, w: float | None) -> Any:
    """Make the tracking law, with its default bandwidth if none is given."""
    return tracking_controller(
        robot.actuators,
        robot.period,
        bandwidth=w,
        torque_limits=robot.limits,
        guards=GUARDS,
        resolution=(LINK_STEP, MOTOR_STEP),
    )


def of_kind(kind: str) -> Callable[[Robot, float], Any]:
    """Return what makes a law without memory by its name."""

    def make(robot: Robot, w: float) -> Any:
        model = robot.actuators.model
        return make_compared(
            model, kind, robot.actuators, w, robot.limits, 0.5 * robot.period
        )

    return make


def without_weight(robot: Robot, w: float) -> Any:
    """Make the gravity compensation of the package."""
    return GravityCompensation(
        robot.actuators,
        robot.period,
        damping=DAMPING,
        torque_limits=robot.limits,
        guards=GUARDS,
    )


class WeightAhead(Law):
    """Weight of the measured position of the links, and damped motors: g(q) - D theta'."""

    lead = 0.0

    def __init__(self, robot: Robot, w: float) -> None:
        super().__init__(robot.actuators)
        self.limit(np.inf if robot.limits is None else robot.limits)

    def evaluate(
        self, desired: Array, q: Array, qd: Array, theta: Array, thetad: Array, **more: Any
    ) -> Command:
        """Torques (n,) [N m] for a measured state, each (n,) [rad, rad/s]."""
        demand: Array = gravity_effort(self.model, q[None])[0] - DAMPING * thetad
        return Command(np.clip(demand, -self.torque_limits, self.torque_limits), demand)


class Kind(NamedTuple):
    """How a law is made and called."""

    make: Callable[[Robot, float], Any]
    is_tuned: bool = True
    """Whether the bandwidth is chosen by the rule; otherwise it is that of the law."""


LAWS = {
    'tracking': Kind(recommended, False),
    'FF + PD': Kind(of_kind('feed_forward_2')),
    'computed torque': Kind(of_kind('rigid_computed_torque')),
    'PD + gravity': Kind(of_kind('pd_gravity')),
}
LEADING = {
    'GravityCompensation': Kind(without_weight, False),
    'g(q) fed forward': Kind(WeightAhead, False),
}
KINDS = {**LAWS, **LEADING}


class Refused(Exception):
    """A law that has never given a torque."""


class Contestant:
    """One law in its loop: calls it, finds velocities for it, and keeps what it says.

    Parameters
    ----------
    kind : Kind
    robot : Robot
    bandwidth : float
        [rad/s]

    Attributes
    ----------
    lead : float
        How much later than the measurement the wanted motion is to be [s].
    said : tuple of float and str, or None
        When the law first refused a measurement or gave a reason [s], and the text.
    state : str
        That of the last command, if the law has any.
    """

    def __init__(self, kind: Kind, robot: Robot, bandwidth: float) -> None:
        try:
            self._law = kind.make(robot, bandwidth)
        except HodynError as reason:
            raise Refused(str(reason)) from None
        self.lead: float = self._law.lead
        self.said: tuple[float, str] | None = None
        self.state = ''
        self._before: tuple[float, Array, Array] | None = None
        self._torque: Array | None = None

    def answer(self, t: float, desired: Array, q: Array, theta: Array) -> Array:
        """Torques (n,) [N m] for a measurement at a time [s]; held if the law refuses it.

        `desired` is (5, n), positions of links and motors are (n,) [rad].
        """
        elapsed = None if self._before is None else t - self._before[0]
        velocities = np.zeros((2, len(q)))
        if self._before is not None and elapsed:
            _, places, velocities = self._before
            share = 1.0 - np.exp(-FILTER * elapsed)
            found = (np.array([q, theta]) - places) / elapsed
            velocities = velocities + share * (found - velocities)
        qd, thetad = (None, None) if self._law.estimates else velocities
        try:
            command = self._law.evaluate(desired, q, qd, theta, thetad, elapsed=elapsed)
        except HodynError as reason:
            if self._torque is None:
                raise Refused(str(reason)) from None
            self._hear(t, str(reason))
            return self._torque
        self._hear(t, command.reason)
        self.state = self._law.state if self._law.estimates else ''
        self._before = t, np.array([q, theta]), velocities
        self._torque = np.array(command.torque)
        return self._torque

    def release(self) -> None:
        """Let a robot that its law has stopped follow again, as soon as it rests."""
        if self.state == 'stopped':
            with contextlib.suppress(HodynError):
                self._law.release()

    def _hear(self, t: float, reason: str) -> None:
        if reason and self.said is None:
            self.said = t, reason


class Run(NamedTuple):
    """Record of N samples of n joints; without any if the law has refused."""

    period: float
    """[s]"""
    times: Array
    """Of the states, shape (N + 1,) [s]."""
    error: Array
    """Links beside the motion or where they began, shape (N + 1, n) [rad]."""
    speed: Array
    """Of the links, shape (N + 1, n) [rad/s]."""
    torque: Array
    """Commanded, shape (N, n) [N m]."""
    force: Array
    """Of the wall, shape (N + 1,) [N]."""
    said: tuple[float, str] | None
    """When the law first refused or gave a reason [s], and the text."""
    state: str
    """Of the last command, if laws have any."""
    diverged: bool

    @property
    def refused(self) -> bool:
        """Whether there was no torque at all."""
        return len(self.torque) == 0

    @property
    def rms(self) -> float:
        """Over samples and joints [mrad]."""
        return 1e3 * float(np.sqrt(np.mean(self.error**2)))

    @property
    def peak(self) -> float:
        """Largest error of a joint [mrad]."""
        return 1e3 * float(np.abs(self.error).max())

    @property
    def at_end(self) -> float:
        """Largest error of a joint in the last 50 ms [mrad]."""
        return 1e3 * float(np.abs(self.error[self.times > self.times[-1] - 0.05]).max())

    @property
    def saturated(self) -> float:
        """Share of samples in which a torque is not below the limit of its motor."""
        return float(np.mean(np.any(np.abs(self.torque) >= TORQUE_LIMITS, axis=1)))

    @property
    def velocity(self) -> float:
        """Largest speed of a joint, by its limit."""
        return float((np.abs(self.speed).max(axis=0) / panda().limits.velocity).max())

    @property
    def _rates(self) -> tuple[Array, int]:
        """Changes of torques (N - 1,) [N m/s], and how many of them are at rest."""
        steps = np.abs(np.diff(self.torque, axis=0)).max(axis=1) / self.period
        return steps, min(round(AT_REST / self.period), len(steps))

    @property
    def rate_in_motion(self) -> float:
        """Largest change of a torque from one sample to the next, without the end [N m/s]."""
        steps, count = self._rates
        return float(steps[: len(steps) - count].max(initial=0.0))

    @property
    def rate_at_rest(self) -> float:
        """The same in the last tenth of a second."""
        steps, count = self._rates
        return float(steps[len(steps) - count :].max(initial=0.0))


def sampled(case: Case) -> tuple[Array, NDArray[np.bool_]]:
    """Times (N + 1,) of the measurements [s], and whether the law is called (N,)."""
    rng = np.random.default_rng(SEED)
    count = round(case.duration / case.period)
    moved = case.jitter * rng.uniform(-1.0, 1.0, count + 1)
    moved[[0, -1]] = 0.0
    called = rng.random(count) >= case.dropped
    called[0] = True
    return case.period * (np.arange(count + 1) + moved), called


def measured(case: Case, state: Array, glitches: bool) -> tuple[Array, Array]:
    """Positions of links and motors (n,) as encoders give them [rad]."""
    q = np.round(state[LINKS] / LINK_STEP) * LINK_STEP
    theta = case.motor_scale * np.round(state[MOTORS] / MOTOR_STEP) * MOTOR_STEP
    if glitches and case.glitch is not None:
        encoder, joint, error = case.glitch
        (q if encoder == 'link' else theta)[joint] += error
    return q, theta


def is_within(t: float, span: tuple[float, float]) -> bool:
    """Whether a time lies in a span [s]."""
    return span[0] - 1e-9 <= t < span[1] - 1e-9


class Bus:
    """Brings torques to the drives, perhaps late, while the robot moves."""

    def __init__(self, case: Case, plant: ElasticPlant, torque: Array) -> None:
        self._case, self._plant, self._acting = case, plant, torque
        self._under_way: deque[tuple[float, Array]] = deque()

    def send(self, t: float, torque: Array) -> None:
        """Take torques (n,) at a time [s]."""
        self._under_way.append((t + self._case.delay, torque))

    def advance(self, state: Array, t: float, until: float) -> Array:
        """State (6, n) at a later time [s]."""
        case, plant, waiting = self._case, self._plant, self._under_way
        plant.locked = case.brakes and is_within(t, BRAKED)
        plant.is_on = not (case.drives_off and is_within(t, WITHOUT_DRIVES))
        plant.force[1] = case.push * (t >= PUSHED)
        while t < until - 1e-9:
            while waiting and waiting[0][0] <= t + 1e-9:
                self._acting = waiting.popleft()[1]
            then = min(until, waiting[0][0]) if waiting else until
            state = plant.advance(state, self._acting, then - t)
            t = then
        return state


def wanted_motion(case: Case, times: Array) -> Array:
    """Wanted motion (N, 5, n) at some times (N,) [s], in rad/s^k."""
    if case.motion is not None:
        return np.array(case.motion(times))
    resting = np.zeros((len(times), 5, len(HOME)))
    resting[:, 0] = HOME
    return resting


def refusal(case: Case, reason: str) -> Run:
    """Record of a law that does not begin."""
    none = np.zeros((0, len(HOME)))
    return Run(
        case.period, none[:, 0], none, none, none, none[:, 0], (0.0, reason), '', False
    )


def follow(law: str, case: Case, bandwidth: float) -> Run:
    """Let a robot follow the motion of a case, or be left alone."""
    step = 2.5e-4 if case.faults.wall else 5e-4
    plant = ElasticPlant(
        PANDA, STIFFNESS, MOTOR_INERTIA, TORQUE_LIMITS, TIP, case.faults, step
    )
    try:
        contestant = Contestant(KINDS[law], known(case), bandwidth)
        return _follow(contestant, case, plant)
    except Refused as reason:
        return refusal(case, str(reason))


def _follow(contestant: Contestant, case: Case, plant: ElasticPlant) -> Run:
    times, called = sampled(case)
    desired = wanted_motion(case, times + contestant.lead)
    wanted = wanted_motion(case, times)[:, 0]
    state = plant.at_rest(wanted[0])
    bus = Bus(case, plant, state[-1].copy())
    far = FAR_AWAY if case.motion is None else AWAY
    states, torques, torque = [state[:2]], [], state[-1]
    for k, t in enumerate(times[:-1]):
        if called[k]:
            glitches = k == round(GLITCH / case.period)
            if (case.brakes or case.drives_off) and t > RELEASED:
                contestant.release()
            torque = contestant.answer(t, desired[k], *measured(case, state, glitches))
            bus.send(t, torque)
        torques.append(torque)
        state = bus.advance(state, t, times[k + 1])
        states.append(state[:2])
        if not np.abs(state[LINKS] - wanted[k + 1]).max() < far:
            break
    diverged, count = len(torques) < len(called), len(states)
    positions, speeds = np.array(states).transpose(1, 0, 2)[[LINKS, SPEEDS]]
    force = np.zeros(count)
    if case.faults.wall is not None:
        force[:] = [plant.wall_force(plant.tip(q)[0][2]) for q in positions]
    return Run(
        case.period,
        times[:count],
        positions - wanted[:count],
        speeds,
        np.array(torques),
        force,
        contestant.said,
        contestant.state,
        diverged,
    )


class Job(NamedTuple):
    """One run."""

    law: str
    bandwidth: float
    case: Case


def run(job: Job) -> Run:
    """Do one run."""
    with warnings.catch_warnings(), np.errstate(over='ignore', invalid='ignore'):
        warnings.simplefilter('ignore', RuntimeWarning)  # of robots that run away
        return follow(job.law, job.case, job.bandwidth)


def run_all(
    jobs: Sequence[Job], workers: int = 1, say: Callable[[str], object] = print
) -> list[Run]:
    """Do runs, by one process or more."""
    start, found = time.monotonic(), []

    def collect(runs: Any) -> list[Run]:
        for result in runs:
            found.append(result)
            if len(found) % 20 == 0 or len(found) == len(jobs):
                say(f'{len(found)} of {len(jobs)} runs, {time.monotonic() - start:.0f} s')
        return found

    if workers == 1:
        return collect(map(run, jobs))
    with ProcessPoolExecutor(workers, get_context('spawn')) as pool:
        return collect(pool.map(run, jobs))


def chosen(tried: Mapping[float, Run]) -> float:
    """Choose the bandwidth [rad/s] of a law among those that have been tried, by the rule."""
    there = {
        w: result for w, result in tried.items() if not (result.refused or result.diverged)
    }
    calm = [
        w
        for w, result in there.items()
        if not result.saturated and result.rate_at_rest <= LARGEST_RATE
    ]
    return min(calm or there or tried, key=lambda w: tried[w].rms)


class Size(NamedTuple):
    """What is run."""

    cases: tuple[str, ...]
    alone: tuple[str, ...]
    bandwidths: tuple[float, ...]


QUICK = (
    'exact',
    'calls dropped 5 %',
    'glitch 1 rad, link',
    'brakes 0.5 s',
    'drives off 0.15 s',
    'wall, 1e4 N/m',
    'push 50 N',
    'payload 3 kg',
    'delay 4 ms, unknown',
    'motor inertia x 0.1',
    'motors x 100, limits not given',
)
SIZES = {
    'tiny': Size(('exact', 'wall, 1e4 N/m', 'motors x 100'), ('exact',), BANDWIDTHS[2:3]),
    'quick': Size(QUICK, ('exact', 'K -5 %'), (20.0, 40.0, 60.0)),
    'full': Size(tuple(CASES), tuple(ALONE), BANDWIDTHS),
}

Bandwidths = Mapping[tuple[str, float], float]
"""By law and sample period [s], in rad/s."""
Found = Mapping[tuple[str, str], Run]
"""By law and name of the case."""


def tuned(
    size: Size, workers: int = 1, say: Callable[[str], object] = print
) -> dict[tuple[str, float], float]:
    """Bandwidths of the laws."""
    periods = sorted({CASES[name].period for name in size.cases} | {PERIOD})
    found, jobs = {}, []
    for law, kind in KINDS.items():
        for period in periods:
            if not kind.is_tuned:
                found[law, period] = recommended(known(Case(period=period)), None).bandwidth
            else:
                case = replace(TUNING, period=period)
                jobs += [Job(law, w, case) for w in size.bandwidths]
    tried: dict[tuple[str, float], dict[float, Run]] = {}
    for job, result in zip(jobs, run_all(jobs, workers, say)):
        tried.setdefault((job.law, job.case.period), {})[job.bandwidth] = result
    return found | {key: chosen(runs) for key, runs in tried.items()}


def measure(
    size: Size,
    bandwidths: Bandwidths,
    workers: int = 1,
    say: Callable[[str], object] = print,
) -> tuple[Found, Found]:
    """Do all runs of robots that follow and of those that are left alone."""
    moved = {(law, name): CASES[name] for name in size.cases for law in LAWS}
    alone = {(law, name): ALONE[name] for name in size.alone for law in LEADING}
    jobs = [
        Job(law, bandwidths[law, case.period], case)
        for (law, _), case in [*moved.items(), *alone.items()]
    ]
    results = run_all(jobs, workers, say)
    count = len(moved)
    return dict(zip(moved, results[:count])), dict(zip(alone, results[count:]))


def shown(value: float) -> str:
    """Write a number with two digits or all before its point, with an exponent from 1e6 on."""
    return f'{value:.0f}' if 100.0 <= value < 1e6 else f'{value:.2g}'


def errors(result: Run) -> str:
    """Write RMS and peak error, and that at the end [mrad]."""
    if result.diverged:
        return f'diverges at {result.times[-1]:.2f} s'
    return ' / '.join(map(shown, (result.rms, result.peak, result.at_end)))


def rates(result: Run) -> str:
    """Write torque rates in motion and at rest [N m/s]."""
    at_rest = '-' if result.diverged else shown(result.rate_at_rest)
    return f'{shown(result.rate_in_motion)} / {at_rest}'


def violations(result: Run) -> str:
    """Write largest speed by its limit and share of samples at a torque limit, if too much."""
    speed, share = result.velocity, 100.0 * result.saturated
    parts = []
    if speed > 1.005:
        parts.append(f'speed x {speed:.2f}' if speed < 10.0 else f'speed x {shown(speed)}')
    if share:
        digits = (
            '< 0.1' if share < 0.1 else f'{share:.1f}' if share < 10.0 else f'{share:.0f}'
        )
        parts.append(f'torque {digits} %')
    return ', '.join(parts) or 'none'


def heard(result: Run) -> str:
    """Write when a law has refused or given a reason [s], and its last state."""
    when = 'silent' if result.said is None else f'{result.said[0]:.3f} s'
    return f'{when}, {result.state}' if result.state else when


def has_spoken(found: Found, name: str) -> bool:
    """Whether any law has refused or given a reason in a case."""
    return any(
        result.said is not None for (_, other), result in found.items() if other == name
    )


def contact(result: Run) -> str:
    """Write peak force, mean and standard deviation of the last 0.3 s [N]."""
    last = result.force[-round(0.3 / result.period) :]
    peak = shown(float(result.force.max()))
    if result.diverged:
        return f'{peak}, diverges'
    return f'{peak} / {last.mean():.0f} / {last.std():.1f}'


def left_alone(result: Run) -> str:
    """Write how far a joint has gone after 3 s [rad], and the largest speed of one [rad/s]."""
    drift = np.abs(result.error[-1]).max()
    away = f'{shown(float(drift))} / {shown(float(np.abs(result.speed).max()))}'
    return f'{away} after {result.times[-1]:.1f} s' if result.diverged else away


TABLES: dict[str, Callable[[Run], str]] = {
    'RMS / peak error of the links, largest one in the last 50 ms [mrad]': errors,
    'Largest change of a motor torque in motion / at rest [N m/s]': rates,
    'Limits that are exceeded: largest speed of a joint by its limit if 0.5 % above it, '
    'share of samples in which a torque is at its limit': violations,
    'When the law first refused a measurement or gave a reason, in cases where one did': heard,
}
LEGEND = (
    'Columns are laws with their bandwidths at 1 kHz [rad/s]: the recommended tracking law; the '
    'feed-forward of the torques and two derivatives with PD of the motors; computed torque of a'
    ' rigid robot; PD of the motors with weight. The tracking law has its default bandwidth. The'
    ' others get, at each sample rate, that with the smallest RMS error of "all" with an unknown'
    ' delay of 2 ms in another motion, of {bandwidths} rad/s, with which no torque reaches its '
    'limit or, at rest, changes by more than {rate:.0f} N m/s. "All" is K -5 %, a payload of 1 '
    'kg and 1 N m of Coulomb friction in the motors. All rows have encoders, none has stops of '
    'the joints; a robot diverges when a joint is more than {away:.2f} rad off. A law that '
    'refuses a measurement has its last torques held; "refused" is one that gave none. Seed '
    '{seed}.'
)


def legend(size: Size) -> str:
    """Say what the tables show."""
    listed = ', '.join(f'{w:.0f}' for w in size.bandwidths)
    text = LEGEND.format(bandwidths=listed, rate=LARGEST_RATE, away=AWAY, seed=SEED)
    return textwrap.fill(text, 99) + '\n\n'


def table(
    title: str,
    header: Sequence[str],
    found: Found,
    laws: Sequence[str],
    names: Sequence[str],
    write: Callable[[Run], str],
) -> str:
    """Write one table, with a row for each case."""
    lines = [header]
    for name in names:
        results = [found[law, name] for law in laws]
        lines.append([name, *('refused' if r.refused else write(r) for r in results)])
    return textwrap.fill(f'{title}:', 99) + '\n\n' + grid(lines) + '\n'


def sayings(law: str, found: Found) -> str:
    """Write the first thing that a law has said in each case, if any."""
    texts = [
        textwrap.fill(f'- {name}: {result.said[1]}', 99, subsequent_indent='  ')
        for (other, name), result in found.items()
        if law == other and result.said is not None
    ]
    if not texts:
        return f'{law}: refused nothing.\n'
    return f'{law}: what it said first:\n\n' + '\n'.join(texts) + '\n'


def tables(size: Size, bandwidths: Bandwidths, moved: Found, alone: Found) -> str:
    """Write all results."""
    header = ['case', *(f'{law}, {bandwidths[law, PERIOD]:.0f}' for law in LAWS)]
    texts = [legend(size)]
    for title, write in TABLES.items():
        names = [
            name for name in size.cases if write is not heard or has_spoken(moved, name)
        ]
        texts.append(table(title, header, moved, list(LAWS), names, write))
    walls = [name for name in size.cases if name in WALLS]
    if walls:
        title = (
            f'Contact at {TOUCH:g} m/s: peak force / mean / standard deviation in the last '
            '0.3 s [N]'
        )
        texts.append(table(title, header, moved, list(LAWS), walls, contact))
    title = (
        f'Left alone under gravity compensation: largest drift of a joint after {LEFT_ALONE:g} s '
        '[rad] / largest speed of one [rad/s]'
    )
    texts.append(
        table(title, ['case', *LEADING], alone, list(LEADING), size.alone, left_alone)
    )
    others = sorted({key[1] for key in bandwidths} - {PERIOD})
    if others:
        rows = [
            ', '.join(f'{law} {bandwidths[law, period]:.0f}' for law in LAWS)
            + f' at {1.0 / period:.0f} Hz'
            for period in others
        ]
        texts.append(
            textwrap.fill('Bandwidths [rad/s]: ' + '; '.join(rows) + '.', 99) + '\n\n'
        )
    said = [
        sayings(next(iter(laws)), found)
        for laws, found in ((LAWS, moved), (LEADING, alone))
    ]
    return ''.join(texts) + '\n'.join(said)


def main(arguments: Sequence[str] | None = None) -> int:
    """Tune, run, print the tables and write them."""
    parser = argparse.ArgumentParser(
        prog='python -m benchmarks.disturbed_laws',
        description='Control laws of elastic joints under faults of robot, sensors and drives.',
    )
    parser.add_argument(
        '--size', choices=SIZES, default='quick', help='cases and bandwidths'
    )
    parser.add_argument('--workers', type=int, default=1, help='processes')
    folder_options(parser)
    options = parser.parse_args(arguments)
    size, start = SIZES[options.size], time.monotonic()

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    bandwidths = tuned(size, options.workers, say)
    found = measure(size, bandwidths, options.workers, say)
    files = write_tables(tables(size, bandwidths, *found), 'disturbed_laws', options)
    print(f'{time.monotonic() - start:.0f} s. Written: {", ".join(map(str, files))}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
