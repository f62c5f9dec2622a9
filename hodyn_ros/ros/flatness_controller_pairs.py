"""Measurements of links and motors that belong together, by their stamps."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sensor_msgs.msg import JointState

from hodyn_ros.errors import JointNameError, MotionError
from hodyn_ros.names import listed
from hodyn_ros.ros.conversions import NANOSECONDS, nanoseconds

Array = NDArray[np.float64]

LINKS, MOTORS = 'joint_states', 'motor_states'

# Measurements that wait for their other half.
MOST_WAITING = 64

# Stamps behind those that were answered are of messages that came late, unless nothing else has
# come for this time, and so many pairs of them: then time has begun anew.
BEGIN_ANEW_AFTER = 1.0  # s
BEGIN_ANEW_PAIRS = 3


class Measured(NamedTuple):
    """State of links and motors at one instant."""

    stamp: int
    """[ns]"""
    state: Array
    """Shape (4, n): positions and velocities of the links, then those of the motors."""
    begins_anew: bool = False
    """Whether the time of the stamps has gone back, so that nothing of before is true any more."""


class Pairs:
    """Brings measurements of links and motors with equal stamps together.

    Parameters
    ----------
    joint_names, motor_names : sequence of str
        In the order wanted.
    steady_time : callable
        Time that never goes back [s].
    """

    def __init__(
        self,
        joint_names: Sequence[str],
        motor_names: Sequence[str],
        steady_time: Callable[[], float] = time.monotonic,
    ) -> None:
        self._steady_time = steady_time
        self._names = {LINKS: tuple(joint_names), MOTORS: tuple(motor_names)}
        self._orders: dict[str, tuple[tuple[str, ...], list[int]]] = {}
        self._waiting: dict[str, dict[int, Array]] = {LINKS: {}, MOTORS: {}}
        self._answered = 0
        # Pairs older than those that were answered, with nothing newer in between.
        self._past: Pairs | None = None
        self._past_count = self._past_stamp = 0
        self._past_since = 0.0
        self.behind = 0.0
        """By how much a pair that has just come is older than an answered one [s], or zero.

        A single pair is late; several are not answered until it is clear that time has begun anew.
        """
        self.dropped = {LINKS: 0, MOTORS: 0}
        """Measurements without their other half, or that came after later ones were answered."""

    def take(self, topic: str, message: JointState) -> Measured | None:
        """Take a measurement.

        Parameters
        ----------
        topic : str
            `LINKS` or `MOTORS`.
        message : sensor_msgs.msg.JointState
            Further names are ignored.

        Returns
        -------
        Measured or None
            None if the other half is not there yet, or if it is too late.

        Raises
        ------
        JointNameError
            If names are missing or repeated.
        MotionError
            If there is no stamp, positions or velocities are missing, or are not finite.
        """
        stamp = nanoseconds(message.header.stamp)
        if not stamp:
            raise MotionError(
                f'{topic}: there is no stamp, by which measurements of links and motors are '
                'brought together.'
            )
        values = self._values(topic, message)
        self.behind = 0.0
        if stamp <= self._answered:
            self.dropped[topic] += 1
            return self._begin_anew(topic, message)
        self._past = None
        own = self._waiting[topic]
        own[stamp] = values
        other = self._waiting[MOTORS if topic == LINKS else LINKS].get(stamp)
        if other is None:
            if len(own) > MOST_WAITING:
                del own[min(own)]
                self.dropped[topic] += 1
            return None
        self._forget(stamp)
        together = (values, other) if topic == LINKS else (other, values)
        return Measured(stamp, np.concatenate(together))

    def _begin_anew(self, topic: str, message: JointState) -> Measured | None:
        """Take a measurement of the past: a late one, or one of a time that has begun anew."""
        if self._past is None:
            self._past, self._past_count = Pairs(*self._names.values()), 0
        measured, now = self._past.take(topic, message), self._steady_time()
        if measured is None:
            return None
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
        self._answered, self._past, self.behind = 0, None, 0.0
        for waiting in self._waiting.values():
            waiting.clear()

    def _forget(self, stamp: int) -> None:
        """Forget measurements up to a pair: without their other half they are of no use."""
        for topic, waiting in self._waiting.items():
            for key in [key for key in waiting if key <= stamp]:
                del waiting[key]
                self.dropped[topic] += key < stamp

    def _values(self, topic: str, message: JointState) -> Array:
        names = tuple(message.name)
        known = self._orders.get(topic)
        if known is None or known[0] != names:
            known = self._orders[topic] = (names, _order(topic, names, self._names[topic]))
        rows = []
        for field in ('position', 'velocity'):
            values = getattr(message, field)
            if len(values) != len(names):
                raise MotionError(
                    f'{topic}: {field} has {len(values)} values, expected {len(names)}, one for '
                    'each of name.'
                )
            rows.append(values)
        found = np.array(rows)[:, known[1]]
        if not np.isfinite(found).all():
            row, j = np.argwhere(~np.isfinite(found))[0]
            raise MotionError(
                f'{topic}: the {("position", "velocity")[row]} of {self._names[topic][j]!r} is '
                f'{found[row, j]}; all values must be finite.'
            )
        return found


def _order(topic: str, given: tuple[str, ...], wanted: tuple[str, ...]) -> list[int]:
    missing = [name for name in wanted if name not in given]
    repeated = [name for name in wanted if given.count(name) > 1]
    if missing or repeated:
        what = f'missing: {listed(missing)}' if missing else f'repeated: {listed(repeated)}'
        raise JointNameError(
            f'{topic}: names do not fit ({what}); expected each of {listed(wanted)} once.'
        )
    return [given.index(name) for name in wanted]
