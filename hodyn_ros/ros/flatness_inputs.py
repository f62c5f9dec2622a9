"""What the flatness controller takes: parameters, measurements, references, and their bounds."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from hodyn_msgs.msg import JointMotion
from numpy.typing import NDArray
from sensor_msgs.msg import JointState

from hodyn_ros.control.controller import shifted
from hodyn_ros.control.laws import CONTROLLERS
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.errors import JointNameError, MotionError, StaleError
from hodyn_ros.model.limits import LimitCheck, find_violations
from hodyn_ros.names import listed
from hodyn_ros.ros.conversions import (
    MOTION_FIELDS,
    NANOSECONDS,
    motion_from_message,
    nanoseconds,
)
from hodyn_ros.ros.joint_states import values_of
from hodyn_ros.ros.node_settings import NodeSettings
from hodyn_ros.ros.parameters import Triple, Values, entry, joint_values, per_joint, same
from hodyn_ros.ros.robot import Robot
from hodyn_ros.ros.trajectories import PlannedMotion, State, Timeline
from hodyn_ros.trajectory.piecewise import PiecewiseMotion
from hodyn_ros.trajectory.spline import stop_motion

Array = NDArray[np.float64]

LINKS, MOTORS = 'joint_states', 'motor_states'
HOLD = 'hold'
STREAM, STOP = 'stream', 'stop'

MOST_WAITING = 64  # measurements without their other half

# Stamps behind those that were answered are of messages that came late, unless nothing else has
# come for this time, and so many pairs of them: then time has begun anew.
BEGIN_ANEW_AFTER = 1.0  # s
BEGIN_ANEW_PAIRS = 3

_MOST_AHEAD = 1000  # motions of a stream
_SHORTEST_REST = 1e-3  # s, behind a stop

_QUANTITIES = ('position', 'velocity', 'tracking error')
_PARAMETERS = ('position_margin', 'velocity_margin', 'max_tracking_error')

# A stop takes at least this share of stop_duration, however little room there is.
_SHORTEST_STOP = 0.1
# Speed up to which a joint that is stopped is at rest [rad/s, m/s].
_AT_REST = 0.05

_same = partial(same, NodeSettings, read_only=True)


@dataclass(frozen=True)
class ControlSettings:
    """Parameters of the flatness controller."""

    base_link: str = _same('base_link')
    tip_link: str = _same('tip_link')
    gravity: Triple = _same('gravity')
    diagnostics_period: float = _same('diagnostics_period')
    max_trajectory_points: int = _same('max_trajectory_points')
    max_message_size: int = _same('max_message_size')
    allow_partial_joints: bool = _same('allow_partial_joints')
    controller: str = entry(
        'feed_forward_2', 'Control law: feed_forward_0 to 2 (with the joint torque and that many '
        'of its derivatives), flatness (exact linearisation), rigid_computed_torque, or '
        'pd_gravity.', choices=CONTROLLERS,
    )
    bandwidth: float = entry(
        20.0, 'Where the poles of the error dynamics lie in the left half plane [rad/s], for '
        'joints without a bandwidths.<joint>.', 1e-2, 1e4,
    )
    lead: float = entry(
        0.0005, 'How much later than the measurement the torque acts, in the mean: half of the '
        'period of the measurements [s]. Delays are no part of it.', 0.0, 0.1,
    )
    limit_torques: bool = entry(
        True, 'Torques are cut at the limits of the motors, max_motor_torque of the actuators, or '
        'else at the efforts of the robot description.',
    )
    measurement_timeout: float = entry(
        0.1, 'A measurement whose stamp is farther from now than this is not answered [s]; 0: any '
        'stamp is taken, and the stamps are the time.', 0.0, 1e6,
    )
    reference_timeout: float = entry(
        0.05, 'A reference is continued by its derivatives for this time at most [s].', 1e-6, 10.0
    )
    without_reference: str = entry(
        'stop', 'What happens without a reference, or when the stream of references ends: stop '
        '(no command is sent) or hold (the robot is brought to rest and held).',
        choices=('stop', HOLD),
    )
    stop_duration: float = entry(
        0.5, 'Time in which the motion is brought to rest by an empty trajectory, or by '
        'without_reference: hold [s].', 0.01, 60.0,
    )
    allow_limit_violations: bool = entry(
        False, 'Trajectories and references that exceed limits of the robot description are '
        'executed all the same.',
    )
    max_tracking_error: float = entry(
        0.2, 'The robot is stopped if a joint is farther than this from its reference [rad, m], '
        'for joints without a max_tracking_errors.<joint>.', 1e-6, 1e6,
    )
    velocity_margin: float = entry(
        0.2, 'The robot is stopped if a joint is faster than its limit by more than this share of '
        'it.', 0.0, 1e6,
    )
    position_margin: float = entry(
        0.05, 'The robot is stopped if a joint is beyond a limit of its position by more than '
        'this [rad, m].', 0.0, 1e6,
    )
    violation_samples: int = entry(
        3, 'How many measurements one after the other must exceed a bound until the robot is '
        'stopped; during those before, the torque stays as it is.', 1, 20,
    )
    bandwidths: Values = per_joint(
        'bandwidths', 'bandwidth of joint {joint}; 0: that of all.', 1e-2, 1e4
    )
    max_tracking_errors: Values = per_joint(
        'max_tracking_errors', 'max_tracking_error of joint {joint}; 0: that of all.', 1e-6, 1e6
    )
    actuators: Values = _same('actuators')

    def of_joints(self, start: str, of_all: str, joint_names: Sequence[str]) -> Array:
        """Values (n,) of a family of parameters, and of the parameter of all."""
        own = joint_values(start, getattr(self, start), joint_names)
        return np.array([own.get(name, getattr(self, of_all)) for name in joint_names])

    @cached_property
    def planning(self) -> NodeSettings:
        """Settings for planning trajectories."""
        return NodeSettings(
            max_trajectory_points=self.max_trajectory_points,
            allow_partial_joints=self.allow_partial_joints,
            stop_duration=self.stop_duration,
        )


class Measured(NamedTuple):
    """State of links and motors at one instant."""

    stamp: int  # [ns]
    state: Array  # (4, n): positions and velocities of the links, then those of the motors
    begins_anew: bool = False  # the time of the stamps has gone back, nothing of before is true


class Pairs:
    """Brings measurements of links and motors with equal stamps together.

    `drop` is called with the topic of every measurement that stays without its other half, or
    comes after later ones were answered; `steady_time` never goes back [s].
    """

    def __init__(
        self,
        joint_names: Sequence[str],
        motor_names: Sequence[str],
        drop: Callable[[str], object],
        steady_time: Callable[[], float] = time.monotonic,
    ) -> None:
        self._drop, self._steady_time = drop, steady_time
        self._names = {LINKS: tuple(joint_names), MOTORS: tuple(motor_names)}
        self._waiting: dict[str, dict[int, Array]] = {LINKS: {}, MOTORS: {}}
        self._answered = 0
        # Pairs older than those that were answered, with nothing newer in between.
        self._past_count = self._past_stamp = 0
        self._past_since = 0.0
        self.behind = 0.0
        """How much older pairs that come are than an answered one [s]; of a single one, zero."""

    def take(self, topic: str, message: JointState) -> Measured | None:
        """Take a measurement on `LINKS` or `MOTORS`, in which further names are ignored.

        Returns None if the other half is not there yet, or if it is too late. Raises
        JointNameError or MotionError if it cannot be used.
        """
        stamp = nanoseconds(message.header.stamp)
        if not stamp:
            raise MotionError(f'{topic}: there is no stamp, by which links and motors are paired.')
        values = values_of(topic, message, ('position', 'velocity'), self._names[topic])
        if values is None:
            raise JointNameError(f'{topic}: expected names {listed(self._names[topic])}.')
        self.behind, answered = 0.0, self._answered
        if stamp <= answered:
            self._drop(topic)
        else:
            self._past_count = 0
            self._forget(answered)  # halves of the past that was none
        own, other = self._waiting[topic], self._waiting[MOTORS if topic == LINKS else LINKS]
        own[stamp] = values
        if stamp not in other:
            if len(own) > MOST_WAITING:
                self._forget(min(own))
            return None
        halves = (values, other[stamp]) if topic == LINKS else (other[stamp], values)
        del own[stamp], other[stamp]
        self._forget(stamp)  # measurements up to a pair are of no use without their other half
        measured = Measured(stamp, np.concatenate(halves))
        return measured if stamp > answered else self._of_the_past(measured)

    def _forget(self, stamp: int) -> None:
        """Drop what has waited up to a stamp; halves of the past have been counted before."""
        for topic, waiting in self._waiting.items():
            for key in [key for key in waiting if key <= stamp]:
                del waiting[key]
                if key > self._answered:
                    self._drop(topic)

    def _of_the_past(self, measured: Measured) -> Measured | None:
        """Take a pair that is late, or of a time that has begun anew."""
        now = self._steady_time()
        if not self._past_count or measured.stamp < self._past_stamp:
            self._past_count, self._past_since = 0, now
        self._past_count, self._past_stamp = self._past_count + 1, measured.stamp
        if self._past_count > 1:
            self.behind = (self._answered - measured.stamp) / NANOSECONDS
        if self._past_count < BEGIN_ANEW_PAIRS or now - self._past_since < BEGIN_ANEW_AFTER:
            return None
        self.clear()
        return measured._replace(begins_anew=True)

    def answer(self, stamp: int) -> None:
        """Note that a pair is answered: it is not returned again, nor is an older one [ns]."""
        self._answered = stamp

    def clear(self) -> None:
        """Forget everything: time has jumped."""
        self._answered = self._past_count = 0
        self.behind = 0.0
        for waiting in self._waiting.values():
            waiting.clear()


class _Sample(NamedTuple):
    """A motion of the stream."""

    stamp: int  # [ns]
    motion: Array  # (5, n)


class References:
    """Gives the reference at any time: of trajectories, of a stream of motions, or of rest.

    `end_trajectories` is called when a stream takes their place, and clears the timeline.
    """

    def __init__(self, timeline: Timeline, end_trajectories: Callable[[], object]) -> None:
        self._timeline, self._end_trajectories = timeline, end_trajectories
        self._joint_names: tuple[str, ...] = ()
        self._stream: deque[_Sample] = deque(maxlen=_MOST_AHEAD)
        self._latest: _Sample | None = None
        self._held: Array | None = None  # where a robot is that has never had a reference
        self._slip: Array | None = None  # how far the motion of a stop has been dragged along
        self._most_ahead = np.zeros(0)
        self.origin = ''
        """Where the latest reference has come from."""

    def use_joints(self, names: tuple[str, ...]) -> None:
        """Forget everything and take references for these joints."""
        self._joint_names = names
        self.clear()

    def clear(self) -> None:
        """Forget all but the timeline, which is cleared by its owner."""
        self.end_stream()
        self._latest = self._held = self._slip = None

    def end_stream(self) -> None:
        """Forget the stream: a trajectory takes its place."""
        self._stream.clear()

    @property
    def is_stopping(self) -> bool:
        """Whether the robot is stopped, or has been and is held where it rests."""
        return self._slip is not None

    def stop(self, motion: PiecewiseMotion, time: int, most_ahead: Array) -> None:
        """Bring the robot to rest from a time on [ns], whatever it was to do.

        The motion may be no farther from the measured positions than `most_ahead` (n,): a robot
        that cannot follow drags it along, instead of being pulled back to it.
        """
        self.clear()
        self._move(motion, time)
        self._slip, self._most_ahead = np.zeros_like(most_ahead), most_ahead

    def has_stopped(self, time: int) -> bool:
        """Whether the motion to rest is over at a time [ns]."""
        state = self._timeline.state(time)
        return state is not None and not state.in_progress

    def end_stop(self) -> None:
        """Hold the robot where it rests, as behind a trajectory, until there is a reference."""
        assert self._latest is not None
        self._slip, rest = None, _at_rest(self._latest.motion[0])
        self._move(stop_motion(rest, _SHORTEST_REST), self._latest.stamp)

    def take(self, message: JointMotion, guard: Guard, orders: int, now: int, oldest: int) -> None:
        """Take a motion of a stream; without a stamp it is for now [ns].

        Stamps before `oldest` [ns] are of no use. The control law needs as many orders of the
        motion, the position included. What cannot be used raises HodynError.
        """
        model = guard.robot.model
        given = motion_from_message(model, message)
        if len(given) < orders:
            raise MotionError(
                f'JointMotion: {MOTION_FIELDS[len(given)]} is empty, but the control law needs '
                f'everything up to {MOTION_FIELDS[orders - 1]}.'
            )
        motion = np.zeros((5, model.n_joints))
        motion[: len(given)] = given
        guard.check_reference(motion)
        stamp = nanoseconds(message.header.stamp) or now
        if stamp < oldest:
            raise StaleError(
                'The reference is older than the measurements by more than reference_timeout: '
                f'{(oldest - stamp) / NANOSECONDS:.3f} s.'
            )
        # Also a stream that has begun anew has rising stamps.
        while self._stream and self._stream[-1].stamp >= stamp:
            self._stream.pop()
        self._stream.append(_Sample(stamp, motion))

    def at(self, time: int, measured: Array, timeout: float, rest: float | None) -> Array:
        """Give the reference (5, n) at a time [ns].

        A robot that has never had one is held at the measured positions (n,). A motion of the
        stream is continued over `timeout` at most [s]; where the stream ends, the robot is brought
        to rest in a time [s]. With `rest` None it is not held without a reference: StaleError.
        """
        streamed = self._streamed(time, timeout, rest) if self._stream else None
        if streamed is not None:
            if self._timeline or self.origin != STREAM:
                self._end_trajectories()
            return self._used(STREAM, time, streamed)
        self._timeline.sample(time)  # drops what is over
        state = self._timeline.state(time)
        if state is None:
            if rest is None:
                raise StaleError(
                    'There is no reference: publish a trajectory or a stream of motions, or set '
                    'without_reference to hold.'
                )
            self._held = measured if self._held is None else self._held
            state = State(_at_rest(self._held), False, time, 'held')
        motion, origin = state.motion, 'trajectory' if state.in_progress else 'rest'
        if self._slip is not None:
            origin = STOP
            ahead = motion[0] + self._slip - measured
            kept = np.clip(ahead, -self._most_ahead, self._most_ahead)
            self._slip += kept - ahead
            motion[0] = measured + kept
        return self._used(origin, time, motion)

    def state(self, time: int) -> State | None:
        """Where a trajectory starts that no other one precedes: at the latest reference."""
        latest = self._latest
        return latest and State(latest.motion, False, time, 'of the reference')

    def _streamed(self, time: int, timeout: float, rest: float | None) -> Array | None:
        """Motion of the stream; where that has ended, have the robot brought to rest."""
        stream = self._stream
        while len(stream) > 1 and stream[1].stamp <= time:
            stream.popleft()
        around = (stream[0], stream[min(1, len(stream) - 1)])
        nearest = min(around, key=lambda sample: abs(time - sample.stamp))
        ahead = (time - nearest.stamp) / NANOSECONDS
        if abs(ahead) <= timeout:
            return shifted(nearest.motion, ahead)
        if time > stream[-1].stamp:
            last = stream[-1]
            stream.clear()
            if rest is None:
                raise StaleError(
                    f'The stream of references has ended: for more than {timeout:.6g} s '
                    '(reference_timeout) there was no other one.'
                )
            begin = last.stamp + round(timeout * NANOSECONDS)
            self._move(stop_motion(shifted(last.motion, timeout), rest), begin)
        return None

    def _move(self, motion: PiecewiseMotion, begin: int) -> None:
        self._timeline.add(PlannedMotion(self._joint_names, motion, begin, 4))

    def _used(self, origin: str, time: int, motion: Array) -> Array:
        self.origin = origin
        self._latest = _Sample(time, motion)
        return motion


def _at_rest(position: Array) -> Array:
    motion = np.zeros((5, len(position)))
    motion[0] = position
    return motion


class Guard:
    """Bounds of references and of the measured state, and the motion that stops the robot."""

    def __init__(self, robot: Robot, settings: ControlSettings) -> None:
        self.robot, self._settings = robot, settings
        limits = robot.limits
        self._check = LimitCheck(robot.model, limits)
        self.max_error = settings.of_joints(
            'max_tracking_errors', 'max_tracking_error', robot.model.joint_names
        )
        """Largest tracking error, shape (n,) [rad] or [m]."""
        speed = (1.0 + settings.velocity_margin) * limits.velocity
        margin = settings.position_margin
        self._lowest = np.vstack((limits.lower - margin, -speed, -self.max_error))
        self._highest = np.vstack((limits.upper + margin, speed, self.max_error))

    def check_reference(self, motion: Array) -> None:
        """Raise MotionError if a reference (5, n) exceeds limits, unless the settings allow it."""
        if self._settings.allow_limit_violations:
            return
        motion, model = motion[:3], self.robot.model
        effort = inverse_dynamics(model, motion)
        if self._check.look(motion, effort):
            first = find_violations(model, self.robot.limits, motion[None], effort[None])[0]
            raise MotionError(
                f'The reference exceeds a limit: {first.quantity} of {first.joint_name} is '
                f'{first.value:.6g}, its limit {first.limit:.6g}. allow_limit_violations has it '
                'executed all the same.'
            )

    def violation(self, state: Array, error: Array) -> str:
        """Say which bound positions and velocities (2, n) or errors (n,) exceed, if any."""
        values = np.vstack((state, error))
        outside = ~((values >= self._lowest) & (values <= self._highest))  # NaN is outside
        if not outside.any():
            return ''
        row, j = np.argwhere(outside)[0]
        return (
            f'The {_QUANTITIES[row]} of {self.robot.model.joint_names[j]} is '
            f'{values[row, j]:.6g}, expected {self._lowest[row, j]:.6g} to '
            f'{self._highest[row, j]:.6g} ({_PARAMETERS[row]}).'
        )

    def unrest(self, state: Array) -> str:
        """Say why a robot that has been stopped must not move on yet; empty if it may."""
        speed = np.abs(state[1])
        if not (speed <= _AT_REST).all():
            j = int(speed.argmax())
            return f'{self.robot.model.joint_names[j]} still moves at {state[1, j]:.3g}.'
        return self.violation(state, np.zeros_like(speed))

    def stopping(self, state: Array) -> PiecewiseMotion:
        """Motion from a measured state (2, n) to rest, within the limits if there is room."""
        q, limits = state[0], self.robot.limits
        # A velocity out of all proportion is a fault of the measurement.
        qd = np.clip(state[1], -limits.velocity, limits.velocity)
        room = np.where(qd > 0.0, limits.upper - q, q - limits.lower)
        # The way to rest is half of what it would be at constant speed.
        # One that hardly moves, such as a joint at its limit, does not hurry the others.
        moves = abs(qd) > _AT_REST
        times = np.divide(2.0 * room, abs(qd), out=np.full_like(q, np.inf), where=moves)
        longest = self._settings.stop_duration
        duration = float(np.clip(times.min(), _SHORTEST_STOP * longest, longest))
        return stop_motion(np.vstack((q, qd, np.zeros((3, len(q))))), duration)
