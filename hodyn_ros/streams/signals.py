"""How signals go on after the last message: by their derivatives, or to rest."""

from __future__ import annotations

from collections import deque
from typing import TypeVar

import numpy as np

from hodyn_ros.streams.timeline import NANOSECONDS
from hodyn_ros.typing import Array

T = TypeVar('T')

ORDERS = 3

_KEPT = NANOSECONDS  # for how long messages are kept
_MOST_KEPT = 1000

# Rows: polynomials in x, lowest power first, with the value, the slope or the second derivative 1
# at x = 0; the other two are zero there, and all three are at x = 1.
_HERMITE = np.array(
    [
        [1.0, 0.0, 0.0, -10.0, 15.0, -6.0],
        [0.0, 1.0, 0.0, -6.0, 8.0, -3.0],
        [0.0, 0.0, 0.5, -1.5, 1.5, -0.5],
    ]
)
_CONSTANT = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0])


def continued(values: Array, times: Array) -> Array:
    """Signal as it goes on with constant second derivatives.

    Parameters
    ----------
    values : ndarray, shape (3, c)
        Its c components and their first and second derivatives at time zero.
    times : ndarray, shape (N,)
        From zero on [s].

    Returns
    -------
    ndarray, shape (N, 3, c)
    """
    t = times[:, None]
    x, xd, x2d = values
    constant = np.broadcast_to(x2d, (len(t), len(x2d)))
    return np.stack([x + t * xd + 0.5 * t**2 * x2d, xd + t * x2d, constant], axis=1)


def brought_to_rest(values: Array, time: float, duration: float, to_zero: bool) -> Array:
    """Signal that ends smoothly: its derivatives become zero, and it too if wanted.

    Parameters
    ----------
    values : ndarray, shape (3, c)
        Its c components, their first and second derivatives at time zero, as is what is returned.
    time : float
        From zero on [s].
    duration : float
        After it all derivatives are zero [s].
    to_zero : bool
        Whether the signal ends as zero; otherwise it ends with the value that it has at time zero.
    """
    x = min(time / duration, 1.0)
    # derivatives[m, k] is the m-th derivative of x^k.
    derivatives = np.zeros((ORDERS, 6))
    powers = np.arange(6)
    factor = np.ones(6)
    for m in range(ORDERS):
        derivatives[m, m:] = factor[m:] * x ** powers[: 6 - m]
        factor = factor * (powers - m)
    basis = _HERMITE.copy()
    if not to_zero:
        basis[0] = _CONSTANT
    scale = duration ** np.arange(ORDERS)
    shape: Array = (derivatives @ basis.T) * scale / scale[:, None]
    if x == 1.0:
        # Exactly, not to rounding.
        shape[:] = 0.0
        shape[0, 0] = 0.0 if to_zero else 1.0
    return shape @ values


class Recent(deque[tuple[int, T]]):
    """Stamps [ns] and contents of the messages of the last second, kept for motions that lag."""

    def add(self, stamp: int, content: T) -> None:
        """Take a message; their stamps do not decrease."""
        self.append((stamp, content))
        while len(self) > _MOST_KEPT or (len(self) > 1 and stamp - self[1][0] > _KEPT):
            self.popleft()

    def at(self, time: int) -> tuple[int, T]:
        """Last message before a time.

        Parameters
        ----------
        time : int
            [ns]

        Returns
        -------
        stamp : int
            [ns]
        content : object
            Of the first message if none is before the time.

        Raises
        ------
        IndexError
            If there is no message.
        """
        before = (item for item in reversed(self) if item[0] <= time)
        return next(before, self[0])
