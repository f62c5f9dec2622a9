"""Signals beside the motion of the joints: in order, kept for motions that lag, and how they end.

After the last message a signal goes on by its derivatives for a while, and then comes to rest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import TypeVar

import numpy as np

from hodyn_ros.streams.timeline import NANOSECONDS
from hodyn_ros.typing import Array

T = TypeVar('T')

ORDERS = 3

_KEPT = NANOSECONDS  # for how long messages are kept
_MOST_KEPT = 1000

STIFFNESS_TIMEOUT = 0.1  # s for which a wanted stiffness goes on by its derivatives
STIFFNESS_REST_TIME = 0.5  # s in which it then comes to rest
_MOST_CHANGE = 0.1  # of the stiffness meanwhile, as a part of it
# Parts of time |rate| and time^2 |second derivative| by which a signal leaves the value at which
# it comes to rest.
_LEAVING = np.array([16.0 / 81.0, 0.01728])

# Rows: polynomials in x, lowest power first, with the value, the slope or the second derivative 1
# at x = 0; the other two are zero there, and all three are at x = 1. Then their derivatives.
_HERMITE = np.array(
    [
        [1.0, 0.0, 0.0, -10.0, 15.0, -6.0],
        [0.0, 1.0, 0.0, -6.0, 8.0, -3.0],
        [0.0, 0.0, 0.5, -1.5, 1.5, -0.5],
    ]
)
_RATE = np.diag(np.arange(1.0, 6.0), -1)
_RATES = np.stack([_HERMITE, _HERMITE @ _RATE, _HERMITE @ _RATE @ _RATE])


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
    rest = np.zeros_like(values)
    rest[0] = 0.0 if to_zero else values[0]
    if time >= duration:
        return rest
    scale = duration ** np.arange(ORDERS)[:, None]
    rates = _RATES @ (time / duration) ** np.arange(6)
    found: Array = rest + rates @ ((values - rest) * scale) / scale
    return found


class Recent(deque[tuple[int, T]]):
    """Stamps [ns] and contents of the messages of the last second, kept for motions that lag."""

    def take(self, stamp: int, content: T) -> bool:
        """Keep a message; whether it is kept, since no newer one has come before."""
        if self and stamp < self[-1][0]:
            return False
        self.append((stamp, content))
        while len(self) > _MOST_KEPT or (len(self) > 1 and stamp - self[1][0] > _KEPT):
            self.popleft()
        return True

    def before(self, time: int) -> tuple[int, T]:
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


class Stiffness(dict[str, tuple[int, Array]]):
    """Stamps [ns] and series (3,) of the latest wish for each joint of variable stiffness.

    A wish goes on by its derivatives for `STIFFNESS_TIMEOUT`, and then comes to rest within
    `STIFFNESS_REST_TIME`, or sooner if the stiffness would leave its value by more than a tenth.
    """

    def take(self, stamp: int, wanted: Mapping[str, Array]) -> bool:
        """Take a wish for a time [ns]: stiffness and two derivatives, by joint [N m/(rad s^k)].

        Returns whether no newer one came before for any of the joints; otherwise it is dropped.
        """
        if any(stamp < self[name][0] for name in wanted if name in self):
            return False
        self.update((name, (stamp, series)) for name, series in wanted.items())
        return True

    def at(self, time: int, joints: Iterable[str]) -> dict[str, Array]:
        """Stiffness and two derivatives (3,) at a time [ns], of those joints that have a wish."""
        return {name: self._at(time, *self[name]) for name in joints if name in self}

    @staticmethod
    def _at(time: int, stamp: int, series: Array) -> Array:
        age = max((time - stamp) / NANOSECONDS, 0.0)
        late = age - STIFFNESS_TIMEOUT
        now = continued(series[:, None], np.array([min(age, STIFFNESS_TIMEOUT)]))[0]
        if late > 0.0:
            duration = STIFFNESS_REST_TIME
            value, *rates = np.abs(now[:, 0])
            while _LEAVING * (duration, duration**2) @ rates > _MOST_CHANGE * value:
                duration *= 0.5
            now = brought_to_rest(now, late, duration, to_zero=False)
        found: Array = now[:, 0]
        return found
