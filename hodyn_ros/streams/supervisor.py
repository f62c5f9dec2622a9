"""What a robot does under a control law: it follows, is brought to rest, floats, or gets nothing.

A supervisor looks at each measurement and is in one of the states of `TRANSITIONS`. Why it has
left `FOLLOWING` it keeps as data, until a trajectory releases the robot. A law cannot stop a robot
at a rate for which it was not made: then nothing is commanded, and the brakes of the robot close.
"""

from __future__ import annotations

from collections import deque
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hodyn_ros.streams.timeline import NANOSECONDS
from hodyn_ros.typing import Array

if TYPE_CHECKING:
    from hodyn_ros.streams.guard import Guard


FOLLOWING, STOPPING, LEAVING = 'following', 'stopping on the path', 'leaving the path'
FLOATING, SILENT, SUSPENDED = 'floating', 'silent', 'suspended'

ON_PATH = 'a bound is exceeded on the path'
OFF_PATH = 'a bound is exceeded off the path'
TOUCHED = 'a collision, and the robot is to float'
OFF_PERIOD = 'the period of the law is not kept'
RELEASED = 'a trajectory comes, at rest'
NO_COMMAND = 'there is no command'
COMMAND = 'there is a reference, or a command'

TRANSITIONS = {
    (FOLLOWING, COMMAND): FOLLOWING,
    (FOLLOWING, OFF_PERIOD): SUSPENDED,
    (FOLLOWING, NO_COMMAND): SILENT,
    (FOLLOWING, ON_PATH): STOPPING,
    (FOLLOWING, OFF_PATH): LEAVING,
    (FOLLOWING, TOUCHED): FLOATING,
    (SILENT, COMMAND): FOLLOWING,
    (SILENT, NO_COMMAND): SILENT,
    (STOPPING, COMMAND): STOPPING,
    (STOPPING, OFF_PERIOD): SUSPENDED,
    (STOPPING, NO_COMMAND): STOPPING,
    (STOPPING, OFF_PATH): LEAVING,
    (STOPPING, RELEASED): FOLLOWING,
    (LEAVING, COMMAND): LEAVING,
    (LEAVING, OFF_PERIOD): SUSPENDED,
    (LEAVING, NO_COMMAND): LEAVING,
    (LEAVING, OFF_PATH): LEAVING,
    (LEAVING, RELEASED): FOLLOWING,
    (FLOATING, COMMAND): FLOATING,
    (FLOATING, OFF_PERIOD): SUSPENDED,
    (FLOATING, NO_COMMAND): FLOATING,
    (FLOATING, OFF_PATH): LEAVING,
    (FLOATING, RELEASED): FOLLOWING,
    (SUSPENDED, NO_COMMAND): SUSPENDED,
    (SUSPENDED, RELEASED): FOLLOWING,
}
"""The state that follows a state and an event; another event cannot happen in that state."""

HOLD, FLOAT = 'hold', 'float'
"""What may happen without a reference, and after a collision."""

GO, REPEAT, STOP, SUSPEND = 'go', 'repeat', 'stop', 'suspend'
"""Verdicts: compute a command, give the last one again, begin to stop, command nothing more."""

# How many intervals of the stamps tell the period of the measurements, and how far it may be from
# the one that is expected, as a part of it.
INTERVALS = 20
_DEVIATION = 0.2

# A stop leaves the path where a joint is farther from it than this part of the largest error.
_AT_PATH = 0.99


class Watch(NamedTuple):
    """What a supervisor takes for a fault.

    Attributes
    ----------
    max_gap : float
        Longest time without a measurement while the robot moves [s].
    saturation_time : float
        Longest time for which a motor may be at its torque limit [s].
    violation_samples : int
        Measurements beyond a bound, one after the other, that stop the robot.
    sample_period : float, optional
        Period of the measurements that the law was made for [s]; None: any.
    floats : bool
        Whether the robot floats after a collision, instead of being brought to rest.
    """

    max_gap: float
    saturation_time: float
    violation_samples: int
    sample_period: float | None = None
    floats: bool = False


class Seen(NamedTuple):
    """A measurement beside what it should be.

    Attributes
    ----------
    stamp : int
        [ns]
    state : ndarray, shape (2, n)
        Positions and velocities of the links.
    reference : ndarray, shape (5, n)
        Position to snap, later by the lead of the law.
    error : ndarray, shape (n,)
        Reference at the stamp minus the position.
    yields : bool
        Whether the law gives way to forces: then the error is none.
    external : ndarray, shape (n,), optional
        Torques on the links that the model lacks, if they are known.
    fault : str
        Why it is not to be trusted; empty if it is.
    leaves : bool
        Whether the robot cannot be stopped on its path because of that.
    """

    stamp: int
    state: Array
    reference: Array
    error: Array
    yields: bool = False
    external: Array | None = None
    fault: str = ''
    leaves: bool = False


class Supervisor:
    """Decides measurement by measurement whether a robot goes on, and how it is stopped.

    Attributes
    ----------
    state : str
        One of the states of `TRANSITIONS`.
    why : str
        Why the robot has been stopped; empty if it has not.
    doubt : str
        Bound that the latest measurement exceeds; empty if it exceeds none.
    stops : int
        How often the robot has been stopped.
    beyond : int
        Measurements beyond a bound so far.
    """

    def __init__(self) -> None:
        self.state = FOLLOWING
        self.why = ''
        self.doubt = ''
        self.stops = 0
        self.beyond = 0
        self._violations = 0  # by measurements one after the other
        self._intervals: deque[int] = deque(maxlen=INTERVALS)  # of the stamps [ns]
        # Stamp from which on a motor is at its limit [ns]; 0: none is.
        self._limited_since = 0

    @property
    def has_stopped(self) -> bool:
        """Whether the robot has been stopped and waits for a trajectory."""
        return self.state in (STOPPING, LEAVING, FLOATING, SUSPENDED)

    def begin_anew(self) -> None:
        """Forget what has been counted in another time, but not why the robot stands."""
        self._intervals.clear()
        self._limited_since = self._violations = 0

    def note_interval(self, interval: int) -> None:
        """Note the time between the latest two measurements [ns]."""
        self._intervals.append(interval)

    def note_command(self, stamp: int, is_limited: bool) -> None:
        """Note a command.

        Parameters
        ----------
        stamp : int
            Of the measurement that it answers [ns].
        is_limited : bool
            Whether a motor is at its torque limit.
        """
        self._on(COMMAND)
        self._limited_since = (self._limited_since or stamp) if is_limited else 0

    def note_silence(self) -> None:
        """Note that there was no command for a measurement."""
        self._on(NO_COMMAND)

    def note_no_reference(self) -> None:
        """Note that there is nothing to compare with: violations count one after the other."""
        self._violations = 0

    def release(self) -> bool:
        """Let the robot move on.

        Returns
        -------
        bool
            Whether it has floated.

        Raises
        ------
        KeyError
            If it has not been stopped.
        """
        floated = self.state == FLOATING
        self._on(RELEASED)
        self.why = ''
        return floated

    def stop(self, event: str, why: str) -> None:
        """Have the robot stopped.

        Parameters
        ----------
        event : str
            `ON_PATH`, `OFF_PATH`, `TOUCHED` or `OFF_PERIOD`, which says how.
        why : str
        """
        self._on(event)
        self.why, self._violations, self._limited_since = why, 0, 0
        self.stops += 1

    def judge(self, guard: Guard, watch: Watch, seen: Seen) -> str:
        """What is to be done about a measurement.

        Parameters
        ----------
        guard : Guard
            Bounds of the measured state.
        watch : Watch
        seen : Seen

        Returns
        -------
        str
            `GO`, `REPEAT`, `STOP` or `SUSPEND`. With `STOP` the state says how the robot is
            brought to rest, and `why` for what reason; with `REPEAT` `doubt` says which bound is
            exceeded. `SUSPEND` comes once: there is nothing to judge any more.
        """
        self.doubt = ''
        if self.state == SILENT:
            self._on(COMMAND)
        off = self.off_period(watch)
        if self.has_stopped and not off:
            off = self._gap(watch, seen)  # the second one: not even the stop is kept up
        if off:
            self.stop(OFF_PERIOD, off)
            return SUSPEND
        if self.has_stopped:
            return self._judge_stop(guard, seen)
        watched = np.zeros_like(seen.error) if seen.yields else seen.error
        fault = self._fault(watch, seen)
        self.doubt = fault or guard.violation(seen.state, watched, seen.external)
        if not self.doubt:
            self._violations = 0
            return GO
        self._violations += 1
        self.beyond += 1
        if not fault and self._violations < watch.violation_samples:
            return REPEAT
        follows = bool(fault) or not guard.violation(seen.state, watched)
        # By its own fault or that of others; where it moves otherwise than it should, the path is
        # no help.
        on_path = TOUCHED if watch.floats and not fault else ON_PATH
        self.stop(on_path if follows and _is_on_path(guard, seen) else OFF_PATH, self.doubt)
        return STOP

    def _judge_stop(self, guard: Guard, seen: Seen) -> str:
        """What is to be done about a measurement behind a stop."""
        is_lost = seen.leaves and self.why != seen.fault
        if not is_lost and (self.state != STOPPING or not _is_off(seen.error, guard)):
            return GO
        self.beyond += 1
        # It cannot even follow the stop.
        self.stop(OFF_PATH, seen.fault if is_lost else self.why)
        return STOP

    def _fault(self, watch: Watch, seen: Seen) -> str:
        """Say what does not let the robot move on, whatever it measures; empty if it may."""
        if seen.fault:
            return seen.fault
        if gap := self._gap(watch, seen):
            return gap
        limited = (seen.stamp - (self._limited_since or seen.stamp)) / NANOSECONDS
        if limited > watch.saturation_time:
            return f'A motor was at its torque limit for {limited:.3f} s (saturation_time).'
        return ''

    def _gap(self, watch: Watch, seen: Seen) -> str:
        """Say that a robot moved for too long without a command; empty if it did not."""
        gap = self._intervals[-1] / NANOSECONDS if self._intervals else 0.0
        if gap <= watch.max_gap or not seen.reference[1:].any():
            return ''
        return (
            f'While it moved, no measurement was answered for {gap:.3f} s (max_gap): none came, '
            'or this node was held up.'
        )

    def off_period(self, watch: Watch) -> str:
        """Why a law cannot do its work at the rate of the latest measurements; empty if it can.

        Parameters
        ----------
        watch : Watch

        Returns
        -------
        str
            Measurements that are lost now and then make some intervals longer, not the median.
        """
        T, intervals = watch.sample_period, self._intervals
        if T is None or len(intervals) < INTERVALS:
            return ''
        typical = median(intervals) / NANOSECONDS
        if abs(typical - T) <= _DEVIATION * T:
            return ''
        cause = (
            'this machine or the robot does not keep up, or sample_period is another one'
            if typical > T
            else 'sample_period is not that of the robot'
        )
        return (
            f'A measurement is answered every {typical:.6g} s (median of {INTERVALS}), but '
            f'sample_period is {T:.6g} s: {cause}.'
        )

    def _on(self, event: str) -> None:
        self.state = TRANSITIONS[self.state, event]


def _is_on_path(guard: Guard, seen: Seen) -> bool:
    """Whether the path can lead a robot to rest."""
    return not (seen.leaves or _is_off(seen.reference[0] - seen.state[0], guard))


def _is_off(distance: Array, guard: Guard) -> bool:
    """Whether a joint is so far from the path that the path is no help."""
    return bool((np.abs(distance) >= _AT_PATH * guard.max_error).any())
