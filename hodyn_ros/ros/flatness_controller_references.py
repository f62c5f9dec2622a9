"""What the robot is to do: planned trajectories or a stream of motions, and rest behind them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from hodyn_msgs.msg import JointMotion
from numpy.typing import NDArray

from hodyn_ros.control.controller import shifted
from hodyn_ros.errors import MotionError, StaleError
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.ros.conversions import (
    MOTION_FIELDS,
    NANOSECONDS,
    motion_from_message,
    nanoseconds,
)
from hodyn_ros.ros.timeline import PlannedMotion, State, Timeline
from hodyn_ros.trajectory.piecewise import Motion
from hodyn_ros.trajectory.stopping import stop_motion

Array = NDArray[np.float64]

# Motions of a stream that may be ahead of the measurements.
MOST_AHEAD = 1000


STREAM, STOP = 'stream', 'stop'

_SHORTEST = 1e-3  # s, of the rest behind a stop


class Sample(NamedTuple):
    """A motion of the stream."""

    stamp: int
    """[ns]"""
    motion: Array
    """Shape (5, n)."""


class References:
    """Gives the reference at any time.

    Parameters
    ----------
    timeline : Timeline
        Of the planned trajectories; rest is put there as well.
    end_trajectories : callable
        Is called when a stream takes their place; clears the timeline.
    """

    def __init__(self, timeline: Timeline, end_trajectories: Callable[[], object]) -> None:
        self._timeline, self._end_trajectories = timeline, end_trajectories
        self._joint_names: tuple[str, ...] = ()
        self._stream: deque[Sample] = deque(maxlen=MOST_AHEAD)
        self._latest: Sample | None = None
        self._held: Array | None = None
        self._stop: PlannedMotion | None = None
        self._slip = self._most_ahead = np.zeros(0)
        self.origin = ''
        """Where the latest reference has come from."""

    def use_joints(self, names: tuple[str, ...]) -> None:
        """Forget everything and take references for these joints."""
        self._joint_names = names
        self.clear()

    def clear(self) -> None:
        """Forget all but the timeline, which is cleared by its owner."""
        self.end_stream()
        self._latest = self._held = self._stop = None

    def end_stream(self) -> None:
        """Forget the stream: a trajectory takes its place."""
        self._stream.clear()

    @property
    def is_stopping(self) -> bool:
        """Whether the robot is stopped, or has been and is held where it rests."""
        return self._stop is not None

    def stop(self, motion: Motion, time: int, most_ahead: Array) -> None:
        """Bring the robot to rest, whatever it was to do.

        Parameters
        ----------
        motion : Motion
        time : int
            When it begins [ns].
        most_ahead : ndarray, shape (n,)
            Farthest that it may be from the measured positions: a robot that cannot follow drags
            it along, instead of being pulled back to it.
        """
        self.clear()
        self._stop = PlannedMotion(self._joint_names, motion, time, 4)
        self._slip, self._most_ahead = np.zeros_like(most_ahead), most_ahead

    def has_stopped(self, time: int) -> bool:
        """Whether the motion to rest is over at a time [ns]."""
        return self._stop is not None and time >= self._stop.last

    def end_stop(self) -> None:
        """Hold the robot where it rests, as behind a trajectory, until there is a reference."""
        rest = np.zeros_like(self._latest.motion)
        rest[0] = self._latest.motion[0]
        motion = stop_motion(rest, _SHORTEST)
        self._timeline.add(PlannedMotion(self._joint_names, motion, self._latest.stamp, 4))
        self._stop = None

    def take(
        self,
        model: RobotModel,
        message: JointMotion,
        now: int,
        oldest: int,
        orders: int,
        check: Callable[[Array], None],
    ) -> None:
        """Take a motion of a stream.

        Parameters
        ----------
        model : RobotModel
        message : hodyn_msgs.msg.JointMotion
            Without a stamp it is for now.
        now : int
            [ns]
        oldest : int
            Oldest stamp that is of use [ns].
        orders : int
            How many of its derivatives, the position included, the control law needs.
        check : callable
            Raises HodynError against motions (5, n) that are not to be executed.

        Raises
        ------
        HodynError
            If it cannot be used or is too old.
        """
        given = motion_from_message(model, message)
        if len(given) < orders:
            raise MotionError(
                f'JointMotion: {MOTION_FIELDS[len(given)]} is empty, but the control law needs '
                f'everything up to {MOTION_FIELDS[orders - 1]}.'
            )
        motion = np.zeros((5, model.n_joints))
        motion[: len(given)] = given
        check(motion)
        stamp = nanoseconds(message.header.stamp) or now
        if stamp < oldest:
            raise StaleError(
                'The reference is older than the measurements by more than reference_timeout: '
                f'{(oldest - stamp) / NANOSECONDS:.3f} s.'
            )
        # Also a stream that has begun anew has rising stamps.
        while self._stream and self._stream[-1].stamp >= stamp:
            self._stream.pop()
        self._stream.append(Sample(stamp, motion))

    def at(self, time: int, measured: Array, timeout: float, rest: float | None) -> Array:
        """Give the reference (5, n) at a time.

        Parameters
        ----------
        time : int
            [ns]
        measured : ndarray, shape (n,)
            Positions at which the robot is held if it has never had a reference.
        timeout : float
            Longest time over which a motion of the stream is continued [s].
        rest : float or None
            Time in which the robot is brought to rest where the stream ends [s]; None: it is not
            held without a reference.

        Raises
        ------
        StaleError
            If there is no reference and the robot is not to be held.
        """
        if self._stop is not None:
            motion = self._stop.at(time)
            ahead = motion[0] + self._slip - measured
            kept = np.clip(ahead, -self._most_ahead, self._most_ahead)
            self._slip += kept - ahead
            motion[0] = measured + kept
            return self._used(STOP, time, motion)
        if self._stream:
            motion = self._streamed(time, timeout)
            if motion is not None:
                if self._timeline or self.origin != STREAM:
                    self._end_trajectories()
                return self._used(STREAM, time, motion)
            if time > self._stream[-1].stamp:
                self._end(timeout, rest)
        self._timeline.sample(time)  # drops what is over
        state = self._timeline.state(time)
        if state is not None:
            origin = 'trajectory' if state.in_progress else 'rest behind a motion'
            return self._used(origin, time, state.motion)
        if rest is None:
            raise StaleError(
                'There is no reference: publish a trajectory or a stream of motions, or set '
                'without_reference to hold.'
            )
        if self._held is None:
            self._held = measured.copy()
        motion = np.zeros((5, len(self._held)))
        motion[0] = self._held
        return self._used('rest', time, motion)

    def state(self, time: int) -> State | None:
        """Where a trajectory starts that no other one precedes: at the latest reference."""
        if self._latest is None:
            return None
        return State(self._latest.motion, False, time, 'of the reference')

    def _streamed(self, time: int, timeout: float) -> Array | None:
        stream = self._stream
        while len(stream) > 1 and stream[1].stamp <= time:
            stream.popleft()
        around = (stream[0], stream[min(1, len(stream) - 1)])
        nearest = min(around, key=lambda sample: abs(time - sample.stamp))
        ahead = (time - nearest.stamp) / NANOSECONDS
        return shifted(nearest.motion, ahead) if abs(ahead) <= timeout else None

    def _end(self, timeout: float, rest: float | None) -> None:
        """Bring the motion of a stream to rest that has ended, or leave no reference."""
        last = self._stream[-1]
        self._stream.clear()
        if rest is None:
            age = f'{timeout:.6g} s'
            raise StaleError(
                f'The stream of references has ended: for more than {age} (reference_timeout) '
                'there was no other one.'
            )
        begin = last.stamp + round(timeout * NANOSECONDS)
        motion = stop_motion(shifted(last.motion, timeout), rest)
        self._timeline.add(PlannedMotion(self._joint_names, motion, begin, 4))

    def _used(self, origin: str, time: int, motion: Array) -> Array:
        self.origin = origin
        self._latest = Sample(time, motion)
        return motion
