"""What a robot does under a control law: it follows, is brought to rest, floats, or gets nothing.

A supervisor looks at each measurement and is in one of the states of `TRANSITIONS`. Why it has
left `FOLLOWING` it keeps as data, until a trajectory releases the robot.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hodyn_ros.streams.timeline import NANOSECONDS
from hodyn_ros.typing import Array

if TYPE_CHECKING:
    from hodyn_ros.streams.guard import Guard


FOLLOWING, STOPPING, LEAVING = 'following', 'stopping on the path', 'leaving the path'
FLOATING, SILENT = 'floating', 'silent'

ON_PATH = 'a bound is exceeded on the path'
OFF_PATH = 'a bound is exceeded off the path'
TOUCHED = 'a collision, and the robot is to float'
RELEASED = 'a trajectory comes, at rest'
NO_COMMAND = 'there is no command'
COMMAND = 'there is a reference, or a command'

TRANSITIONS = {
    (FOLLOWING, COMMAND): FOLLOWING,
    (FOLLOWING, NO_COMMAND): SILENT,
    (FOLLOWING, ON_PATH): STOPPING,
    (FOLLOWING, OFF_PATH): LEAVING,
    (FOLLOWING, TOUCHED): FLOATING,
    (SILENT, COMMAND): FOLLOWING,
    (SILENT, NO_COMMAND): SILENT,
    (STOPPING, COMMAND): STOPPING,
    (STOPPING, NO_COMMAND): STOPPING,
    (STOPPING, OFF_PATH): LEAVING,
    (STOPPING, RELEASED): FOLLOWING,
    (LEAVING, COMMAND): LEAVING,
    (LEAVING, NO_COMMAND): LEAVING,
    (LEAVING, OFF_PATH): LEAVING,
    (LEAVING, RELEASED): FOLLOWING,
    (FLOATING, COMMAND): FLOATING,
    (FLOATING, NO_COMMAND): FLOATING,
    (FLOATING, OFF_PATH): LEAVING,
    (FLOATING, RELEASED): FOLLOWING,
}
"""The state that follows a state and an event; another event cannot happen in that state."""

HOLD, FLOAT = 'hold', 'float'
"""What may happen without a reference, and after a collision."""

GO, REPEAT, STOP = 'go', 'repeat', 'stop'
"""Verdicts: compute a command, give the last one again, begin to stop."""

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
    """

    stamp: int
    state: Array
    reference: Array
    error: Array
    yields: bool = False
    external: Array | None = None
    fault: str = ''


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
        return self.state in (STOPPING, LEAVING, FLOATING)

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
            `ON_PATH`, `OFF_PATH` or `TOUCHED`, which says how.
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
            `GO`, `REPEAT` or `STOP`. With `STOP` the state says how the robot is brought to rest,
            and `why` for what reason; with `REPEAT` `doubt` says which bound is exceeded.
        """
        self.doubt = ''
        if self.has_stopped:
            if self.state != STOPPING or not _is_off(seen.error, guard):
                return GO
            self.beyond += 1
            self.stop(OFF_PATH, self.why)  # it cannot even follow the stop
            return STOP
        watched = np.zeros_like(seen.error) if seen.yields else seen.error
        if self.state == SILENT:
            self._on(COMMAND)
        fault = self._fault(watch, seen)
        self.doubt = fault or guard.violation(seen.state, watched, seen.external)
        if not self.doubt:
            self._violations = 0
            return GO
        self._violations += 1
        self.beyond += 1
        if not fault and self._violations < watch.violation_samples:
            return REPEAT
        # By its own fault or that of others; where it moves otherwise than it should, the path is
        # no help.
        follows = bool(fault) or not guard.violation(seen.state, watched)
        if not follows or _is_off(seen.reference[0] - seen.state[0], guard):
            event = OFF_PATH
        else:
            event = TOUCHED if watch.floats and not fault else ON_PATH
        self.stop(event, self.doubt)
        return STOP

    def _fault(self, watch: Watch, seen: Seen) -> str:
        """Say what does not let the robot move on, whatever it measures; empty if it may."""
        if seen.fault:
            return seen.fault
        intervals = self._intervals
        gap = intervals[-1] / NANOSECONDS if intervals else 0.0
        if gap > watch.max_gap and seen.reference[1:].any():
            return f'There was no measurement for {gap:.3f} s while it moved (max_gap).'
        limited = (seen.stamp - (self._limited_since or seen.stamp)) / NANOSECONDS
        if limited > watch.saturation_time:
            return f'A motor was at its torque limit for {limited:.3f} s (saturation_time).'
        T = watch.sample_period
        if len(intervals) == INTERVALS and T is not None:
            # Samples that are lost make some intervals longer, not all.
            shortest, longest = min(intervals) / NANOSECONDS, max(intervals) / NANOSECONDS
            if shortest > (1.0 + _DEVIATION) * T or longest < (1.0 - _DEVIATION) * T:
                return (
                    f'A measurement comes every {shortest:.6g} to {longest:.6g} s, sample_period '
                    f'is {T:.6g} s.'
                )
        return ''

    def _on(self, event: str) -> None:
        self.state = TRANSITIONS[self.state, event]


def _is_off(distance: Array, guard: Guard) -> bool:
    """Whether a joint is so far from the path that the path is no help."""
    return bool((np.abs(distance) >= _AT_PATH * guard.max_error).any())
