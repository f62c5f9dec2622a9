"""What a control loop takes: measurements of links and motors, and the reference.

The time of stamps may begin anew, and their period may be another one than that of a law. The
reference is of trajectories, a stream, or of rest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import pairwise
from statistics import median
from time import monotonic
from typing import NamedTuple

import numpy as np

from hodyn_ros.control.guards import AT_REST
from hodyn_ros.control.values import shifted
from hodyn_ros.errors import StaleError
from hodyn_ros.streams.timeline import NANOSECONDS, PlannedMotion, State, Timeline, at_rest
from hodyn_ros.trajectory.motion import PiecewiseMotion
from hodyn_ros.trajectory.spline import stop_motion
from hodyn_ros.typing import Array

ELASTIC_STATE = 'elastic_state'  # topic of the measurements

# Older stamps are dropped as late. If only older stamps arrive for so long, and so many of them,
# the clock was reset.
RESET_TIME = 1.0  # s
_RESET_COUNT = 3

HOLD = 'hold'
"""What happens without a reference; otherwise no command is sent."""

NEWER, LATE, RESET = 'newer', 'late', 'reset'

STREAM = 'stream'

_MOST_AHEAD = 1000  # motions of a stream
_SHORTEST_REST = 1_000_000  # ns, behind a stop


class Measured(NamedTuple):
    """State of links and motors at one instant.

    Attributes
    ----------
    stamp : int
        [ns]
    state : ndarray, shape (4, n)
        Positions and velocities of the links, then those of the motors.
    spring_torque : ndarray, shape (n,), optional
        Of torque sensors.
    begins_anew : bool
        The time of the stamps has gone back, and nothing of before is true.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros.streams import Measured
    >>> measured = Measured(stamp=1_000_000, state=np.zeros((4, 2)))
    >>> measured.spring_torque is None, measured.begins_anew
    (True, False)
    """

    stamp: int
    state: Array
    spring_torque: Array | None = None
    begins_anew: bool = False


class Stamps:
    """Order of the stamps of measurements: late ones, and a clock that was reset.

    Parameters
    ----------
    steady_time : callable
        Time that never goes back [s].

    Attributes
    ----------
    behind : float
        How much older than the answered measurement the latest ones are [s]; of a single one, and
        of newer ones, zero.

    Examples
    --------
    >>> from hodyn_ros.streams import Stamps
    >>> stamps = Stamps()
    >>> stamps.answer(2_000_000)
    >>> stamps.judge(3_000_000), stamps.judge(1_000_000)
    ('newer', 'late')
    """

    def __init__(self, steady_time: Callable[[], float] = monotonic) -> None:
        self._steady_time = steady_time
        self._answered = self._past_count = self._past_stamp = 0
        self._past_since = 0.0
        self.behind: float = 0.0

    def judge(self, stamp: int) -> str:
        """Order of a measurement.

        Parameters
        ----------
        stamp : int
            [ns]

        Returns
        -------
        str
            `NEWER` than the answered one; `LATE`; or `RESET`, which forgets what was before.
        """
        self.behind = 0.0
        if stamp > self._answered:
            self._past_count = 0
            return NEWER
        now = self._steady_time()
        if not self._past_count or stamp < self._past_stamp:
            self._past_count, self._past_since = 0, now
        self._past_count, self._past_stamp = self._past_count + 1, stamp
        if self._past_count > 1:
            self.behind = (self._answered - stamp) / NANOSECONDS
        if self._past_count < _RESET_COUNT or now - self._past_since < RESET_TIME:
            return LATE
        self.clear()
        return RESET

    def answer(self, stamp: int) -> None:
        """Note that a measurement is answered [ns]: neither it nor older ones are newer."""
        self._answered = stamp

    def clear(self) -> None:
        """Forget everything: time has jumped."""
        self._answered = self._past_count = 0
        self.behind = 0.0


INTERVALS = 20
"""How many intervals between stamps tell the period of the measurements."""
_DEVIATION = 0.2  # from the expected period, as a part of it


class Pace:
    """The latest stamps, and where the robot was."""

    def __init__(self) -> None:
        self._seen: deque[tuple[int, Array]] = deque(maxlen=INTERVALS + 1)

    def note(self, stamp: int, position: Array) -> None:
        """Note a measurement.

        Parameters
        ----------
        stamp : int
            Later than the one before [ns].
        position : ndarray, shape (n,)
            Of the links [rad] or [m].
        """
        self._seen.append((stamp, position))

    def clear(self) -> None:
        """Forget everything: time has jumped."""
        self._seen.clear()

    def wrong(self, period: float) -> str:
        """Why a law cannot do its work at this pace; empty if it can.

        Lost measurements make some intervals longer, not the median.

        Parameters
        ----------
        period : float
            For which the law was made [s].
        """
        if len(self._seen) <= INTERVALS:
            return ''
        stamps = [stamp for stamp, _ in self._seen]
        typical = median(b - a for a, b in pairwise(stamps)) / NANOSECONDS
        if abs(typical - period) <= _DEVIATION * period:
            return ''
        cause = (
            'this machine or the robot does not keep up, or sample_period is another one'
            if typical > period
            else 'sample_period is not that of the robot'
        )
        return (
            f'A measurement is answered every {typical:.6g} s (median of {INTERVALS}), but '
            f'sample_period is {period:.6g} s: {cause}.'
        )

    def unrest(self) -> str:
        """Why a robot without commands is not at rest, by its positions; empty if it is."""
        if len(self._seen) <= INTERVALS:
            return 'it has not been measured for long enough.'
        moved = np.ptp([position for _, position in self._seen], axis=0)
        speed = NANOSECONDS * moved.max() / (self._seen[-1][0] - self._seen[0][0])
        return '' if speed <= AT_REST else f'a joint still moves at {speed:.3g}.'


class _Sample(NamedTuple):
    """A motion of the stream.

    Attributes
    ----------
    stamp : int
        [ns]
    motion : ndarray, shape (5, n)
    """

    stamp: int
    motion: Array


class References:
    """The reference at any time: of trajectories, of a stream of motions, or of rest.

    Parameters
    ----------
    timeline : Timeline
        Of the trajectories.
    end_trajectories : callable
        Called when a stream takes their place; clears the timeline.

    Attributes
    ----------
    origin : str
        Where the latest reference has come from: `STREAM`, `trajectory`, `rest`, or empty
        before the first one.

    Examples
    --------
    Without a trajectory and a stream the robot is held where it rests:

    >>> import numpy as np
    >>> from hodyn_ros.streams import References, Timeline
    >>> timeline = Timeline()
    >>> references = References(timeline, timeline.clear)
    >>> references.use_joints(('elbow',))
    >>> references.hold(np.array([0.5]), 1_000_000_000)
    >>> references.at(2_000_000_000, np.array([0.501]), 0.1, None)[0], references.origin
    (array([0.5]), 'rest')
    """

    def __init__(self, timeline: Timeline, end_trajectories: Callable[[], object]) -> None:
        self._timeline, self._end_trajectories = timeline, end_trajectories
        self._joint_names: tuple[str, ...] = ()
        self._stream: deque[_Sample] = deque(maxlen=_MOST_AHEAD)
        self._latest: Array | None = None
        self._held: Array | None = None  # where a robot is that has never had a reference
        self.origin: str = ''

    def use_joints(self, names: tuple[str, ...]) -> None:
        """Forget everything and take references for these joints."""
        self._joint_names = names
        self.clear()

    def clear(self) -> None:
        """Forget all but the timeline, which is cleared by its owner."""
        self.end_stream()
        self._latest = self._held = None

    def end_stream(self) -> None:
        """Forget the stream: a trajectory takes its place."""
        self._stream.clear()

    def hold(self, position: Array, time: int) -> None:
        """Hold a robot where it rests, as behind a trajectory, until there is a reference.

        Parameters
        ----------
        position : ndarray, shape (n,)
            [rad] or [m]
        time : int
            From which on [ns].
        """
        self.clear()
        self._latest = rest = at_rest(position)
        spline = stop_motion(rest, _SHORTEST_REST / NANOSECONDS)
        self._move(spline, time - _SHORTEST_REST)

    def take(self, stamp: int, motion: Array, oldest: int) -> None:
        """Take a motion of a stream.

        Parameters
        ----------
        stamp : int
            Its time [ns]; those that were to come behind it are dropped.
        motion : ndarray, shape (5, n)
            Position to snap.
        oldest : int
            Earliest time that is taken [ns].

        Raises
        ------
        StaleError
            If it is for before that.
        """
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
        """The reference at a time.

        A robot that has never had one is held where it is measured; one whose stream has ended is
        brought to rest.

        Parameters
        ----------
        time : int
            [ns]
        measured : ndarray, shape (n,)
            Positions of the links.
        timeout : float
            For how long a motion of the stream goes on by its derivatives [s].
        rest : float, optional
            Time in which the robot is brought to rest where the stream ends [s]; None: it is not
            held without a reference.

        Returns
        -------
        ndarray, shape (5, n)
            Position to snap [rad/s^k] or [m/s^k].

        Raises
        ------
        StaleError
            If there is no reference, and `rest` is None.
        """
        streamed = self._streamed(time, timeout, rest) if self._stream else None
        if streamed is not None:
            if self._timeline or self.origin != STREAM:
                self._end_trajectories()
            self.origin, self._latest = STREAM, streamed
            return streamed
        self._timeline.sample(time)  # drops what is over
        state = self._timeline.state(time)
        if state is None:
            if rest is None:
                raise StaleError(
                    'There is no reference: publish a trajectory or a stream of motions, or set '
                    'without_reference to hold.'
                )
            self._held = measured if self._held is None else self._held
            state = State(at_rest(self._held), False, time, 'held')
        self.origin = 'trajectory' if state.in_progress else 'rest'
        self._latest = state.motion
        return state.motion

    def state(self, time: int) -> State | None:
        """Where a trajectory starts that no other one precedes: at the latest reference.

        Parameters
        ----------
        time : int
            For which it is asked [ns].

        Returns
        -------
        State or None
            None if there was no reference yet.
        """
        latest = self._latest
        return None if latest is None else State(latest, False, time, 'of the reference')

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
