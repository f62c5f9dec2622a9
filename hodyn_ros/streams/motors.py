"""Wanted stiffness of joints of variable stiffness along a stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from hodyn_ros.streams.signals import continued
from hodyn_ros.streams.timeline import NANOSECONDS
from hodyn_ros.typing import Array

MOST_CHANGE = 0.1  # of the stiffness, while it stops changing; as a part of it


TIMEOUT = 0.1  # s for which a wish goes on by its derivatives
REST_TIME = 0.5  # s in which a stiffness then comes to rest


class Stiffness:
    """The latest wish for every joint of variable stiffness.

    A wish goes on by its derivatives for `TIMEOUT`, and then stops changing within `REST_TIME`, or
    sooner if the stiffness would change by more than a tenth until then.
    """

    def __init__(self) -> None:
        self._wanted: dict[str, tuple[int, Array]] = {}  # stamps and series (3, 1)

    def take_wish(self, wanted: Mapping[str, Array], stamp: int) -> bool:
        """Take a wish.

        Parameters
        ----------
        wanted : mapping of str to ndarray, shape (3,)
            Stiffness and two derivatives, by joint [N m/(rad s^k)].
        stamp : int
            Its time [ns].

        Returns
        -------
        bool
            Whether no newer one came before for any of the joints; otherwise it is dropped.
        """
        if any(name in self._wanted and self._wanted[name][0] > stamp for name in wanted):
            return False
        for name, series in wanted.items():
            self._wanted[name] = stamp, series[:, None]
        return True

    def at(self, stamp: int, joints: Iterable[str]) -> Mapping[str, Array]:
        """What was wished for, at an instant.

        Parameters
        ----------
        stamp : int
            Of the instant [ns].
        joints : iterable of str
            Those that are asked for.

        Returns
        -------
        dict of str to ndarray, shape (3,)
            Stiffness and two derivatives, of the joints for which there was a wish.
        """
        found = {}
        for name in joints:
            if name in self._wanted:
                since, series = self._wanted[name]
                age = max((stamp - since) / NANOSECONDS, 0.0)
                values: Array = continued(series, np.array([min(age, TIMEOUT)]))[0, :, 0]
                is_over = age > TIMEOUT
                found[name] = _stopped(values, age - TIMEOUT) if is_over else values
        return found

    def keep_only(self, joints: Iterable[str]) -> None:
        """Forget what concerns other joints."""
        self._wanted = {name: self._wanted[name] for name in joints if name in self._wanted}

    def clear(self) -> None:
        """Forget everything."""
        self._wanted.clear()


def _stopped(series: Array, time: float) -> Array:
    """Value and derivatives some time after the beginning of a smooth stop.

    The rate falls to zero along a cubic: nothing jumps, and the value does not turn back. The
    longest duration, `REST_TIME`, is halved until the value changes by no more than a tenth.

    Parameters
    ----------
    series : ndarray, shape (3,)
        Value and two derivatives at the beginning.
    time : float
        Since then [s].

    Returns
    -------
    ndarray, shape (3,)
    """
    value, rate, slope = series
    duration = REST_TIME
    while abs(rate) * duration / 2 + abs(slope) * duration**2 / 12 > MOST_CHANGE * abs(
        value
    ):
        duration *= 0.5
    x = min(time / duration, 1.0)
    a, b = rate * duration, slope * duration**2
    return np.array(
        [
            value + a * (x - x**3 + 0.5 * x**4) + b * (x**2 / 2 - 2 * x**3 / 3 + x**4 / 4),
            (a * (1 - 3 * x**2 + 2 * x**3) + b * (x - 2 * x**2 + x**3)) / duration,
            (a * (6 * x**2 - 6 * x) + b * (1 - 4 * x + 3 * x**2)) / duration**2,
        ]
    )
