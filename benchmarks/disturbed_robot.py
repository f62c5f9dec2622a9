"""A Panda with elastic joints, its sensors, drives and bus, of which nothing is as it should be.

The robot is that of test/support/control_plant.py: links of Pinocchio, motors and springs of
equations of its own. Added here are, per joint,

    Q = K d + z,   z' = s (d' - |d'| z / F),   d = theta - q,

Dahl's hysteresis of the springs of the height F, a current loop of the first order, brakes,
drives that are off, and a wall under the tip. Encoders have 20 bits at the links and 14 bits at
the motors, before a gear of 100. Laws that want velocities get differences over the time between
two measurements, behind a low pass.
"""

from __future__ import annotations

import contextlib
import warnings
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pinocchio
from numpy.typing import NDArray

from benchmarks import cases  # noqa: F401 - puts the tests, which are no package, on the path
from hodyn_ros import ModelWarning, RobotModel
from hodyn_ros.control import warm_up
from hodyn_ros.errors import HodynError

from support.control_cases import (  # isort: skip
    HOME,
    JOINTS,
    LINK_STEP,
    MOTION,
    MOTOR_INERTIA,
    MOTOR_STEP,
    PANDA,
    PERIOD,
    STIFFNESS,
    TORQUE_LIMITS,
    PointToPoint,
)
from support.control_plant import Plant  # isort: skip

Array = NDArray[np.float64]

LINKS, SPEEDS, MOTORS, MOTOR_SPEEDS = range(4)
"""Rows of a state (4, n): q, q', theta, theta' [rad, rad/s]."""

SEED = 2024
TIP = 'panda_link8'
PRESLIDING = 1e-3  # rad, over which the hysteresis of a spring builds up
FILTER = 600.0  # rad/s, of differences
PUSHED = 0.5  # s, when the push begins; it lasts
GLITCH = 0.8  # s
BRAKED = (0.4, 0.9)  # s
WITHOUT_DRIVES = (0.6, 0.75)  # s
RELEASED = 1.5  # s, when a robot whose brakes or drives were off is told to follow again
AT_REST = 0.1  # s, at the end, in which torques should rest
AWAY = np.pi  # rad, from which on a joint counts as diverged


@cache
def panda() -> RobotModel:
    """Give the robot that the laws know, compiled."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        model = RobotModel.from_urdf(PANDA)
    warm_up(model)
    return model


@dataclass(frozen=True)
class Case:
    """What is not as it should be, and the motion."""

    plant: Mapping[str, Any] = field(default_factory=dict)
    """Options of `support.control_plant.Plant`; of the payload its mass [kg]."""
    stiffness: float = 0.0
    """Relative error of the springs."""
    spring: float | None = None
    """Stiffness of all of them instead of that of config/panda_sea.yaml [N m/rad]."""
    hysteresis: float = 0.0
    """Height F of that of every spring [N m]."""
    current_loop: float = 0.0
    """Its bandwidth [Hz]; 0: torques act at once."""
    wall: tuple[float, float] | None = None
    """Height of its surface [m] and stiffness [N/m]."""
    brakes: bool = False
    """Whether the motors are held for a while."""
    drives_off: bool = False
    """Whether there is no torque for a while."""
    push: float = 0.0
    """Sideways at the tip [N]."""
    offset: float = 0.0
    """By which links and motors start off the motion [rad]."""
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
    motor_scale: float = 1.0
    """Factor of the motor positions that are measured."""
    known_inertia: float = 1.0
    """Motor inertia that the law knows, by the true one."""
    knows_limits: bool = True
    """Whether the law is given the torque limits."""
    knows_delay: bool = False
    """Whether the law is given the delay."""
    is_identified: bool = False
    """Whether the law knows stiffness, payload and friction to 1 %."""
    motion: PointToPoint = field(default=MOTION)
    rest: float = 0.2
    """Behind the motion [s]."""

    @property
    def duration(self) -> float:
        """Of the motion and the rest [s]."""
        return self.motion.duration + self.rest

    @property
    def nominal_stiffness(self) -> Array:
        """Of the springs, as the maker of the robot says (n,) [N m/rad]."""
        return STIFFNESS if self.spring is None else np.full(len(STIFFNESS), self.spring)


class Robot(Plant):  # type: ignore[misc]
    """The robot of a case.

    Attributes
    ----------
    sideways : float
        Push at the tip [N], to be set.
    locked, is_on : bool
        Whether the brakes hold the motors, and whether the drives give any torque; to be set.
    """

    def __init__(self, case: Case = Case()) -> None:  # noqa: B008 - it is frozen
        options = dict(case.plant)
        if 'payload' in options:
            options['payload'] = TIP, options['payload']
        stiffness = (1.0 + case.stiffness) * case.nominal_stiffness
        super().__init__(
            PANDA, JOINTS, stiffness, MOTOR_INERTIA, limits=TORQUE_LIMITS, **options
        )
        self.case, self.step = case, 2.5e-4 if case.wall else 5e-4
        self.sideways, self.locked, self.is_on = 0.0, False, True
        self._hysteresis = np.zeros(self.n)

    def tip(self, q: Array) -> tuple[Array, Array]:
        """Position (3,) [m] and Jacobian (3, n) [m/rad] of the tip at q (n,)."""
        configuration = np.zeros(self.model.nq)  # with rotors behind the joints
        configuration[: self.n] = q
        frame = self.model.getFrameId(TIP)
        axes = pinocchio.ReferenceFrame.LOCAL_WORLD_ALIGNED
        J = pinocchio.computeFrameJacobian(
            self.model, self.data, configuration, frame, axes
        )
        return self.data.oMf[frame].translation.copy(), J[:3, : self.n]

    def wall_force(self, height: float) -> float:
        """Force of the wall, upwards, on a tip at a height [N]."""
        if self.case.wall is None:
            return 0.0
        surface, stiffness = self.case.wall
        return stiffness * max(surface - height, 0.0)

    def accelerations(
        self, q: Array, qd: Array, theta: Array, thetad: Array, tau: Array, *dry: Any
    ) -> tuple[Array, Array]:
        """Of links and motors (n,) [rad/s^2], with the hysteresis and what touches the tip."""
        self.push = self._hysteresis
        if self.sideways or self.case.wall is not None:
            place, J = self.tip(q)
            force = np.array([0.0, self.sideways, self.wall_force(place[2])])
            self.push = self.push + J.T @ force
        tau = tau - self._hysteresis
        q2d, theta2d = super().accelerations(q, qd, theta, thetad, tau, *dry)
        return q2d, np.zeros(self.n) if self.locked else theta2d

    def advance(self, state: Array, wanted: Array, duration: float) -> Array:
        """State (4, n) some time [s] later, in which the drives are asked for torques (n,)."""
        asked = np.clip(wanted, -self.limits, self.limits) * self.is_on
        count = max(int(np.ceil(duration / self.step - 1e-6)), 1)
        h, share = duration / count, 1.0
        if self.case.current_loop and self.is_on:
            share = 1.0 - np.exp(-2.0 * np.pi * self.case.current_loop * h)
        if self.locked:
            state = state.copy()
            state[MOTOR_SPEEDS] = 0.0
        for _ in range(count):
            deflection = state[MOTORS] - state[LINKS]
            state = self.hold(state, self.torque + share * (asked - self.torque), h, 1)
            turned = state[MOTORS] - state[LINKS] - deflection
            edge = self.case.hysteresis * np.sign(turned)
            self._hysteresis = edge + (self._hysteresis - edge) * np.exp(
                -np.abs(turned) / PRESLIDING
            )
        return state


class Refused(Exception):
    """A law that has never given a torque."""


class Contestant:
    """One law in its loop: calls it, finds velocities for it, and keeps what it says.

    Parameters
    ----------
    law
        With `evaluate`, `lead` and `estimates`.

    Attributes
    ----------
    said : tuple of float and str, or None
        When the law first refused a measurement or gave a reason [s], and the text.
    state : str
        That of the last command, if the law has any.
    """

    def __init__(self, law: Any) -> None:
        self.law = law
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
        qd, thetad = (None, None) if self.law.estimates else velocities
        try:
            command = self.law.evaluate(desired, q, qd, theta, thetad, elapsed=elapsed)
        except HodynError as reason:
            if self._torque is None:
                raise Refused(str(reason)) from None
            self._hear(t, str(reason))
            return self._torque
        self._hear(t, command.reason)
        self.state = self.law.state if self.law.estimates else ''
        self._before = t, np.array([q, theta]), velocities
        self._torque = np.array(command.torque)
        return self._torque

    def release(self) -> None:
        """Let a robot that its law has stopped follow again, as soon as it rests."""
        if self.state == 'stopped':
            with contextlib.suppress(HodynError):
                self.law.release()

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
    """Links beside the motion, shape (N + 1, n) [rad]."""
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
    def rates(self) -> tuple[float, float]:
        """Largest change of a torque in a period, before the end and at rest [N m/s]."""
        steps = np.abs(np.diff(self.torque, axis=0)).max(axis=1) / self.period
        moving = max(len(steps) - round(AT_REST / self.period), 0)
        return tuple(float(part.max(initial=0.0)) for part in np.split(steps, [moving]))  # type: ignore[return-value]


def refusal(period: float, reason: str) -> Run:
    """Record of a law that does not begin."""
    none = np.zeros((0, len(HOME)))
    return Run(period, none[:, 0], none, none, none, none[:, 0], (0.0, reason), '', False)


def _sampled(case: Case) -> tuple[Array, NDArray[np.bool_]]:
    """Times (N + 1,) of the measurements [s], and whether the law is called (N,)."""
    rng = np.random.default_rng(SEED)
    count = round(case.duration / case.period)
    moved = case.jitter * rng.uniform(-1.0, 1.0, count + 1)
    moved[[0, -1]] = 0.0
    called = rng.random(count) >= case.dropped
    called[0] = True
    return case.period * (np.arange(count + 1) + moved), called


def _measured(case: Case, state: Array, glitches: bool) -> tuple[Array, Array]:
    """Positions of links and motors (n,) as encoders give them [rad]."""
    q = np.round(state[LINKS] / LINK_STEP) * LINK_STEP
    theta = case.motor_scale * np.round(state[MOTORS] / MOTOR_STEP) * MOTOR_STEP
    if glitches and case.glitch is not None:
        encoder, joint, error = case.glitch
        (q if encoder == 'link' else theta)[joint] += error
    return q, theta


class _Bus:
    """Brings torques to the drives, perhaps late, while the robot moves."""

    def __init__(self, robot: Robot) -> None:
        self._robot, self._acting = robot, robot.torque
        self._under_way: deque[tuple[float, Array]] = deque()

    def send(self, t: float, torque: Array) -> None:
        """Take torques (n,) at a time [s]."""
        self._under_way.append((t + self._robot.case.delay, torque))

    def advance(self, state: Array, t: float, until: float) -> Array:
        """State (4, n) at a later time [s]."""
        robot, case, waiting = self._robot, self._robot.case, self._under_way

        def within(span: tuple[float, float]) -> bool:
            return span[0] - 1e-9 <= t < span[1] - 1e-9

        robot.locked = case.brakes and within(BRAKED)
        robot.is_on = not (case.drives_off and within(WITHOUT_DRIVES))
        robot.sideways = case.push * (t >= PUSHED)
        while t < until - 1e-9:
            while waiting and waiting[0][0] <= t + 1e-9:
                self._acting = waiting.popleft()[1]
            then = min(until, waiting[0][0]) if waiting else until
            state = robot.advance(state, self._acting, then - t)
            t = then
        return state


def follow(law: Any, case: Case) -> Run:
    """Let a robot follow the motion of a case under a law; raises Refused."""
    contestant, robot = Contestant(law), Robot(case)
    times, called = _sampled(case)
    desired = case.motion(times + law.lead)
    wanted = case.motion(times)[:, 0]
    state = robot.at_rest(wanted[0])
    state[[LINKS, MOTORS]] += case.offset
    bus = _Bus(robot)
    states, torques, torque = [state[:2]], [], robot.torque
    for k, t in enumerate(times[:-1]):
        if called[k]:
            glitches = k == round(GLITCH / case.period)
            if (case.brakes or case.drives_off) and t > RELEASED:
                contestant.release()
            torque = contestant.answer(t, desired[k], *_measured(case, state, glitches))
            bus.send(t, torque)
        torques.append(torque)
        state = bus.advance(state, t, times[k + 1])
        states.append(state[:2])
        if not np.abs(state[LINKS] - wanted[k + 1]).max() < AWAY:
            break
    positions, speeds = np.array(states).transpose(1, 0, 2)
    force = np.zeros(len(states))
    if case.wall is not None:
        force[:] = [robot.wall_force(robot.tip(q)[0][2]) for q in positions]
    return Run(
        case.period,
        times[: len(states)],
        positions - wanted[: len(states)],
        speeds,
        np.array(torques),
        force,
        contestant.said,
        contestant.state,
        diverged=len(torques) < len(called),
    )
