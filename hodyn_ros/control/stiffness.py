"""The stiffness that a joint gets where its springs cannot have the one that is wanted.

At a torque Q springs have stiffnesses from K_l(Q) to K_h(Q). Near the lowest one the motors move
as the root of K / K_l - 1, so infinitely fast at it: there a law stays away from it by a tenth,
and goes over to that smoothly, with the derivatives of what it takes. Both ends move with the
torque.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.typing import Array

# Shares by which a stiffness stays away from the lowest and the highest one.
_LOWER, _UPPER = 0.1, 0.01


def possible_stiffness(
    permitted: Callable[[ArrayLike], tuple[Array, Array]], wanted: Array, torque: Array
) -> Array:
    """Stiffness that is wanted, or the nearest that motors can follow, with two derivatives.

    Parameters
    ----------
    permitted : callable
        Lowest and highest stiffness (...,) at torques (...,).
    wanted : ndarray, shape (3,)
        Stiffness and two time derivatives [N m/rad].
    torque : ndarray, shape (3,)
        Of the springs, and two time derivatives [N m].

    Returns
    -------
    ndarray, shape (3,)
        Equal to what is wanted from 1.21 times the lowest to 0.98 times the highest one; also
        where no stiffness is possible.
    """
    lowest, highest = _ends(permitted, torque)
    lower, upper = (1.0 + _LOWER) * lowest, highest / (1.0 + _UPPER)
    if not lower[0] <= upper[0]:
        return wanted
    taken = _at_least(wanted, lower, _LOWER)
    if np.isfinite(upper[0]) and taken[0] > upper[0] / (1.0 + _UPPER):
        taken = _inverse(_at_least(_inverse(taken), _inverse(upper), _UPPER))
    return taken


def _ends(
    permitted: Callable[[ArrayLike], tuple[Array, Array]], torque: Array
) -> tuple[Array, Array]:
    """Lowest and highest stiffness (3,) with two time derivatives, by differences.

    Parameters
    ----------
    permitted, torque
        See `possible_stiffness`.
    """
    h = 1e-3 * abs(torque[0]) + 1e-6
    found = []
    for before, now, after in permitted(torque[0] + h * np.array([-1.0, 0.0, 1.0])):
        slope = bend = 0.0
        if np.isfinite(before) and np.isfinite(after):
            slope, bend = (after - before) / (2.0 * h), (after - 2.0 * now + before) / h**2
        rates = slope * torque[1], bend * torque[1] ** 2 + slope * torque[2]
        found.append(np.array([now, *rates]))
    return found[0], found[1]


def _at_least(values: Array, least: Array, width: float) -> Array:
    """Larger of two quantities (3,) with two derivatives, smooth where they differ by a share."""
    y = _product(values, _inverse(least))
    x = (y[0] - 1.0) / width
    if x >= 1.0:
        return values
    if x <= -1.0:
        return least
    slope, bend = 0.25 * (x + 1.0) ** 2 * (2.0 - x), 0.75 * (1.0 - x * x) / width
    above = width * (x + 1.0) ** 3 * (3.0 - x) / 16.0
    ratio = 1.0 + above, slope * y[1], bend * y[1] ** 2 + slope * y[2]
    return _product(least, np.array(ratio))


def _product(a: Array, b: Array) -> Array:
    """Product of two quantities (3,) with two derivatives."""
    return np.array(
        [
            a[0] * b[0],
            a[1] * b[0] + a[0] * b[1],
            a[2] * b[0] + 2.0 * a[1] * b[1] + a[0] * b[2],
        ]
    )


def _inverse(a: Array) -> Array:
    """One over a quantity (3,) with two derivatives."""
    y = 1.0 / a[0]
    rate = -a[1] * y * y
    return np.array([y, rate, -(2.0 * a[1] * rate + a[2] * y) * y])
