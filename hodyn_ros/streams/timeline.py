"""Motions in time: the one in progress and those that follow it, by integer nanoseconds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hodyn_ros.errors import MotionError, RequestError, StaleError, TrajectoryError
from hodyn_ros.trajectory.motion import PiecewiseMotion
from hodyn_ros.typing import Array, Flags

NANOSECONDS = 1_000_000_000  # in a second

# Beyond it a motion of any length would leave the range of time messages (the year 2038).
_LATEST = (2**31 - 1 - 10**6) * NANOSECONDS

_TURN = 2.0 * np.pi  # rad

_HIGHEST_SPEED = 1000.0  # %

LATE_FOR_LOAD = 1.0
"""Age of a sample that is late because there is much to do, not because of its clock [s]."""

MOST_PENDING = 64  # motions that may wait for the time at which they start


class PlannedMotion(NamedTuple):
    """A motion that is placed in time.

    Attributes
    ----------
    joint_names : tuple of str
        Order of the joints in the motion.
    motion : PiecewiseMotion
    start : int
        Time at which the time of the motion is zero [ns].
    continuous_derivative : int
        Highest derivative of the positions that is continuous, from the join on.
    cut : int, optional
        Time at which it ends, though it is not over [ns].

    Examples
    --------
    >>> from hodyn_ros.streams import PlannedMotion
    >>> from hodyn_ros.trajectory import fit_spline
    >>> spline = fit_spline([0.0, 1.0], [[0.0], [0.5]])
    >>> planned = PlannedMotion(('elbow',), spline, start=5_000_000_000, continuous_derivative=4)
    >>> planned.last, planned.at(5_500_000_000)[0].round(3)
    (6000000000, array([0.25]))
    """

    joint_names: tuple[str, ...]
    motion: PiecewiseMotion
    start: int
    continuous_derivative: int
    cut: int | None = None

    @property
    def first(self) -> int:
        """Time of the first sample [ns]."""
        return self.start + round(self.motion.start_time * NANOSECONDS)

    @property
    def last(self) -> int:
        """Time of the last sample [ns]."""
        end = self.start + round(self.motion.end_time * NANOSECONDS)
        return end if self.cut is None else min(end, self.cut)

    def at(self, time: int) -> Array:
        """Motion at a time; before its first and behind its last sample these are kept.

        Parameters
        ----------
        time : int
            [ns]

        Returns
        -------
        ndarray, shape (5, n)
            Position to snap [rad/s^k] or [m/s^k].
        """
        seconds = (time - self.start) / NANOSECONDS
        motion = self.motion
        return motion(min(max(seconds, motion.start_time), motion.end_time))


class State(NamedTuple):
    """State of the motions at an instant.

    Attributes
    ----------
    motion : ndarray, shape (5, n)
        Position to snap [rad/s^k] or [m/s^k]; NaN where it is not known.
    in_progress : bool
        Otherwise the joints rest, as far as is known.
    time : int
        When this was so [ns].
    origin : str
        Where it is known from, in words.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros.streams import State
    >>> state = State(np.zeros((5, 1)), in_progress=False, time=0, origin='the measured state')
    >>> state.motion[0], state.origin
    (array([0.]), 'the measured state')
    """

    motion: Array
    in_progress: bool
    time: int
    origin: str


LAST_END = 'where the last motion has ended'
"""Origin of a state that nothing but the end of a motion tells."""


def at_rest(position: Array) -> Array:
    """Motion (5, n), position to snap, of joints that rest in a position (n,) [rad] or [m]."""
    motion = np.zeros((5, len(position)))
    motion[0] = position
    return motion


def nearest_turn(position: Array, near: Array, continuous: Flags) -> Array:
    """Positions (n,) [rad] of joints, continuous ones in the turn that is nearest to others (n,).

    A continuous joint is at the same place after each turn; others stay as they are.
    """
    turned: Array = position + continuous * (_TURN * np.round((near - position) / _TURN))
    return turned


class Timeline:
    """The motion in progress and those that follow it at their times.

    Examples
    --------
    The second motion takes over at its first sample:

    >>> from hodyn_ros.streams import PlannedMotion, Timeline
    >>> from hodyn_ros.trajectory import fit_spline
    >>> spline, timeline = fit_spline([0.0, 2.0], [[0.0], [0.5]]), Timeline()
    >>> for start in (0, 1_000_000_000):
    ...     _ = timeline.add(PlannedMotion(('elbow',), spline, start, 4))
    >>> [timeline.under_way(time).start for time in (500_000_000, 1_500_000_000)]
    [0, 1000000000]
    >>> timeline.under_way(4_000_000_000) is None
    True
    """

    def __init__(self) -> None:
        self._motions: list[PlannedMotion] = []
        self._ended: PlannedMotion | None = None

    def __bool__(self) -> bool:
        """Whether there is a motion that has not ended."""
        return bool(self._motions)

    def add(self, planned: PlannedMotion) -> int:
        """Let a motion replace all that others would do from its first sample on.

        Parameters
        ----------
        planned : PlannedMotion

        Returns
        -------
        int
            How many motions will not even begin.

        Raises
        ------
        TrajectoryError
            If `MOST_PENDING` wait already.
        """
        kept = [motion for motion in self._motions if motion.first < planned.first]
        if len(kept) > MOST_PENDING:
            raise TrajectoryError(
                f'{MOST_PENDING} trajectories wait already for the time at which they start; send '
                'this one later, or an empty one to drop them.'
            )
        dropped = len(self._motions) - len(kept)
        self._motions = [*kept, planned]
        return dropped

    def under_way(self, time: int) -> PlannedMotion | None:
        """Motion that is in progress at a time [ns].

        Parameters
        ----------
        time : int
            [ns]

        Returns
        -------
        PlannedMotion or None
            The latest one that has begun and not ended.
        """
        begun = (item for item in reversed(self._motions) if item.first <= time < item.last)
        return next(begun, None)

    def later(self, time: int) -> PlannedMotion | None:
        """First motion that begins at a time [ns] or later."""
        return next((item for item in self._motions if item.first >= time), None)

    def drop_behind(self, time: int) -> None:
        """Drop all motions that would begin after a time [ns]."""
        self._motions = [motion for motion in self._motions if motion.first <= time]

    def cut(self, time: int) -> None:
        """End the motion under way at a time [ns], and drop those that would begin later."""
        self._motions = [
            motion._replace(cut=time) if motion.last > time else motion
            for motion in self._motions
            if motion.first < time
        ]

    def clear(self) -> bool:
        """Drop all motions; return whether there was one."""
        was_active = bool(self._motions)
        self._motions.clear()
        self._ended = None
        return was_active

    def state(self, time: int) -> State | None:
        """State at a time [ns]; None if no motion has begun by then.

        Parameters
        ----------
        time : int
            [ns]; a motion that has ended by then is known until the timeline is cleared.

        Returns
        -------
        State or None
            Of the motion in progress, or at rest where the last one has ended.
        """
        begun = [planned for planned in self._motions if planned.first <= time]
        if begun and time < begun[-1].last:
            return State(begun[-1].at(time), True, time, 'of the motion in progress')
        ended = begun[-1] if begun else self._ended
        if ended is None:
            return None
        rest = at_rest(ended.at(ended.last)[0])
        return State(rest, False, ended.last, LAST_END)

    def moves_between(self, begin: int, end: int) -> bool:
        """Whether a motion is under way at some time between two [ns]."""
        return any(
            planned.first < end and planned.last > begin for planned in self._motions
        )

    def sample(self, now: int) -> tuple[PlannedMotion, int] | None:
        """Motion in progress and the time [ns] to sample it at; its end comes exactly once.

        Parameters
        ----------
        now : int
            [ns]; motions that are over by then are dropped.

        Returns
        -------
        tuple of (PlannedMotion, int), optional
            None if no motion is in progress.
        """
        motions = self._motions
        while len(motions) > 1 and now >= motions[1].first:
            replaced = motions.pop(0)
            if replaced.last < motions[0].first:  # it was over before
                self._ended = replaced
                return replaced, replaced.last
        if not motions or now < motions[0].first:
            return None
        planned = motions[0]
        if now >= planned.last:
            self._ended = motions.pop(0)
            return planned, planned.last
        return planned, now


class _Speed(NamedTuple):
    """Speed from a time of the node on [ns], and how far motions were behind then [ns]."""

    speed: float
    since: int
    delay: int


class ScaledClock:
    """Clock of the motions of a controller that scales their speed, by the speeds that it reports.

    As with ``scaled_joint_trajectory_controller``, motions go on by that part of the time that
    passes, and so does the time until the stamp of one. A speed holds until another one comes.

    It may be read in other threads than the one that takes speeds.

    Examples
    --------
    >>> from hodyn_ros.streams import ScaledClock
    >>> clock = ScaledClock()
    >>> clock.take(30.0, time=1_000_000_000)
    >>> clock.at(3_000_000_000), clock.delay(3_000_000_000)
    (1600000000, 1400000000)
    """

    def __init__(self) -> None:
        self._latest = _Speed(1.0, 0, 0)
        self._heard: int | None = None

    @property
    def speed(self) -> float:
        """Speed of motions; 1: as planned."""
        return self._latest.speed

    @property
    def since(self) -> int:
        """Time of the node from which on the speed holds [ns]."""
        return self._latest.since

    def take(self, percent: float, time: int) -> None:
        """Take a speed [%] that has come at a time of the node [ns].

        Raises
        ------
        RequestError
            If it is not between 0 and 1000.
        """
        if not 0.0 <= percent <= _HIGHEST_SPEED:
            raise RequestError(
                f'The speed is {percent} %, expected a number from 0 to {_HIGHEST_SPEED:g}.'
            )
        self._heard = time
        if percent / 100.0 != self.speed:
            self._latest = _Speed(percent / 100.0, time, self.delay(time))

    def restart(self, time: int) -> None:
        """Have no delay at a time of the node [ns], since nothing is in progress."""
        self._latest = _Speed(self.speed, time, 0)

    def delay(self, time: int) -> int:
        """How far motions are behind a time of the node [ns]."""
        speed, since, delay = self._latest
        return delay + round((1.0 - speed) * (time - since))

    def at(self, time: int) -> int:
        """Time of motions at a time of the node near now [ns]."""
        return time - self.delay(time)

    def executed(self, motion: Array) -> Array:
        """Motion (K, n) as it takes place at the present speed, which is taken for constant."""
        return motion * self.speed ** np.arange(float(len(motion)))[:, None]

    def check(self, now: int, timeout: float) -> None:
        """Refusal of a speed that is not known at a time of the node [ns].

        Raises
        ------
        StaleError
            If none has come, or none within a timeout [s]; 0: any age.
        """
        heard = self._heard
        if heard is not None and not (timeout and now - heard > timeout * NANOSECONDS):
            return
        since = '' if heard is None else f' for {(now - heard) / NANOSECONDS:.3f} s'
        raise StaleError(
            f'No speed_scaling has come{since}, so the speed of the motion is not known. Is '
            'speed_scaling_state_broadcaster active, and the topic speed_scaling remapped to its '
            'topic? For a controller that does not scale, set the parameter speed_scaling to '
            'false.'
        )


class Stamp(NamedTuple):
    """Time of a message that is not unpacked."""

    sec: int
    nanosec: int


def nanoseconds(time: Any) -> int:
    """Time of a message in nanoseconds.

    Parameters
    ----------
    time : object
        With `sec` and `nanosec`.

    Returns
    -------
    int
        [ns]

    Raises
    ------
    MotionError
        If `nanosec` is 10^9 or more, or no motion can follow the time: it is negative, or less
        than 10^6 s before the end of the range of time messages (the year 2038).
    """
    seconds, nanosec = time.sec, time.nanosec
    value: int = seconds * NANOSECONDS + nanosec
    if not (nanosec < NANOSECONDS and 0 <= value <= _LATEST):
        raise MotionError(
            f'The stamp is {seconds} s and {nanosec} ns; expected nanoseconds below 10^9 and a '
            f'time from 0 to {_LATEST // NANOSECONDS} s.'
        )
    return value


def check_age(
    what: str, stamp: int, now: int, timeout: float, parameter: str, waited: float = 0.0
) -> None:
    """Refusal of a stamp that is too far from now.

    Parameters
    ----------
    what : str
        What has the stamp, for the message.
    stamp, now : int
        [ns]
    timeout : float
        Largest distance, into the past or future [s]; 0: any.
    parameter : str
        Name of the parameter that sets it, for the message.
    waited : float
        How long the message has waited since its arrival [s].

    Raises
    ------
    StaleError
        If the stamp is farther away.
    """
    age = (now - stamp) / NANOSECONDS
    if not timeout or abs(age) <= timeout:
        return
    where = f'{abs(age):.3f} s in the {"past" if age > 0.0 else "future"}'
    cause = (
        'The clocks of sender and node must agree. For recorded or simulated data, set '
        f'use_sim_time and play the clock, or set {parameter} to 0.'
    )
    if 0.0 < age <= timeout + waited:
        cause = (
            f'It has waited {waited:.3f} s for the node: that or its machine has too much to do, '
            'or was held up.'
        )
    elif 0.0 < age <= LATE_FOR_LOAD:
        cause = (
            'Sender, network or this machine have too much to do: have samples come less '
            f'often, or set a larger {parameter}. If it is always as much, the clocks of '
            'sender and node differ by that.'
        )
    raise StaleError(
        f'{what}: the stamp lies {where}, more than {parameter} ({timeout} s) away. {cause}'
    )
