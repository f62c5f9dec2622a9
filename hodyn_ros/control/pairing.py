"""Measurements of links and motors with equal stamps brought together, and time that goes back."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.trajectory.timeline import NANOSECONDS

Array = NDArray[np.float64]

LINKS, MOTORS = 'joint_states', 'motor_states'

MOST_WAITING = 64  # measurements without their other half

# Stamps behind those that were answered are of messages that came late, unless nothing else has
# come for this time, and so many pairs of them: then time has begun anew.
BEGIN_ANEW_AFTER = 1.0  # s
BEGIN_ANEW_PAIRS = 3


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
        drop: Callable[[str], object],
        steady_time: Callable[[], float] = time.monotonic,
    ) -> None:
        self._drop, self._steady_time = drop, steady_time
        self._waiting: dict[str, dict[int, Array]] = {LINKS: {}, MOTORS: {}}
        self._answered = 0
        # Pairs older than those that were answered, with nothing newer in between.
        self._past_count = self._past_stamp = 0
        self._past_since = 0.0
        self.behind = 0.0
        """How much older pairs that come are than an answered one [s]; of a single one, zero."""

    def take(self, topic: str, stamp: int, values: Array) -> Measured | None:
        """Take positions and velocities (2, n) of the `LINKS` or the `MOTORS`, with a stamp [ns].

        Returns None if the other half is not there yet, or if it is too late.
        """
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
