"""Highest derivative that an estimate reports: up to which it is exact beside its size."""

from __future__ import annotations

from math import exp

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.typing import Array
from hodyn_ros.units import NANOSECONDS

# Time over which the size of a derivative is averaged [s].
_SCALE_MEMORY = 5.0
# Angular frequency of the smallest motion of interest [rad/s].
_SMALLEST_FREQUENCY = 10.0
# A derivative that is reported may have a standard deviation larger by this factor; one that is
# not must be exact enough for this time before [s].
_HYSTERESIS, _HOLD = 1.5, 0.3
# Time over which large standard deviations are remembered [s]; how large over what is allowed,
# and after a value that has jumped: then it is gone in ln 2 of the time.
_PEAK_MEMORY, _LARGEST_PEAK, _PEAK_OF_JUMP = 2.0, 4.0, 2.0


class ReportedOrders:
    """Highest derivative of n components that is reported, from the latest estimates.

    The k-th derivative is reported if, for each component, its standard deviation is at most a
    fraction of its RMS, and those of lower orders are reported.

    Parameters
    ----------
    n, K : int
        Components and orders, the value included.
    fraction : float
        Largest standard deviation, relative to the RMS.
    smallest_motion : float
        Amplitude of an oscillation at 10 rad/s, which no RMS is smaller than [unit].

    Attributes
    ----------
    highest : int
        Order that is reported; -1: not even the value.
    """

    def __init__(self, n: int, K: int, fraction: float, smallest_motion: float) -> None:
        self.highest = -1
        self._fraction = fraction
        powers = _SMALLEST_FREQUENCY ** np.arange(float(K))[:, None]
        self._smallest = smallest_motion * powers
        self._allowed = np.broadcast_to(fraction * self._smallest, (K, n))
        # Forgetting sum of the squares of the derivatives, and of ones.
        self._power, self._number = np.zeros((K, n)), 0.0
        # Largest standard deviations of late, over what is allowed, of the orders that were
        # reported at any time.
        self._peak, self._orders_known = np.zeros(K), 0
        # Stamps [ns]: of the latest estimate; since when a higher order is exact enough.
        self._judged: int | None = None
        self._rising_since: int | None = None

    def judge(self, time: int, motion: Array, std: Array, noise: Array) -> None:
        """Take an estimate.

        Parameters
        ----------
        time : int
            [ns]
        motion, std : ndarray, shape (K, n)
            With standard deviations [unit/s^k].
        noise : ndarray, shape (n,)
            Standard deviation of the measurements [unit].
        """
        seconds = 0.0 if self._judged is None else 1e-9 * (time - self._judged)
        self._judged = time
        forget = exp(-seconds / _SCALE_MEMORY)
        # The square of an estimate is larger than that of the truth by its variance.
        self._power = forget * self._power + (motion**2 - std**2)
        self._number = forget * self._number + 1.0
        size = np.sqrt(np.maximum(self._power, 0.0) / self._number)
        self._allowed = self._fraction * np.maximum(size, self._smallest)
        # The value itself is as good as its measurement.
        self._allowed[0] = np.maximum(self._fraction * self._smallest[0], noise)
        excess = self._excess(std)
        self.highest = self.highest_with(std)
        # How a motion sets in shows only when it has left the noise. So an order that was lost in
        # a motion does not come back in every pause.
        self._peak *= exp(-seconds / _PEAK_MEMORY)
        known = slice(0, self._orders_known)
        self._peak[known] = np.maximum(self._peak[known], excess[known])
        np.minimum(self._peak, _LARGEST_PEAK, out=self._peak)
        deserved = _leading(np.maximum(self._peak, excess) <= 1.0) - 1
        if deserved <= self.highest:
            self._rising_since = None
        elif self._rising_since is None:
            self._rising_since = time
        elif time - self._rising_since >= NANOSECONDS * _HOLD:
            self.highest, self._rising_since = deserved, None
            self._orders_known = max(self._orders_known, deserved + 1)

    def highest_with(self, std: Array) -> int:
        """Highest order that is reported and whose standard deviation is not too large.

        Parameters
        ----------
        std : ndarray, shape (K, n)
            [unit/s^k]
        """
        return min(self.highest, _leading(self._excess(std) <= _HYSTERESIS) - 1)

    def drop(self) -> None:
        """Report no derivative for a while: the values have jumped."""
        self.highest = min(self.highest, 0)
        self._rising_since = None
        np.maximum(self._peak[1:], _PEAK_OF_JUMP, out=self._peak[1:])

    def _excess(self, std: Array) -> Array:
        """Largest standard deviation of each order over what is allowed, (K,)."""
        return np.asarray((std / self._allowed).max(axis=1))


def _leading(flags: NDArray[np.bool_]) -> int:
    """Return how many flags are true before the first one that is not."""
    return len(flags) if flags.all() else int(flags.argmin())
