"""How fast measurements come, beside the period for which a control law was made."""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from statistics import median

import numpy as np

from hodyn_ros.control.guards import AT_REST
from hodyn_ros.streams.timeline import NANOSECONDS
from hodyn_ros.typing import Array

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
