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

from hodyn_ros.lie.jets import Jet, compose
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
    h = 1e-3 * abs(torque[0]) + 1e-6
    ends = permitted(torque[0] + h * np.array([-1.0, 0.0, 1.0]))
    least, most = (1.0 + _LOWER) ** 2 * ends[0][1], ends[1][1] / (1.0 + _UPPER) ** 2
    if least <= wanted[0] <= most:
        return wanted
    lowest, highest = (_along(values, h, Jet(torque)) for values in ends)
    lower, upper = (1.0 + _LOWER) * lowest, highest / (1.0 + _UPPER)
    if not lower[0] <= upper[0]:
        return wanted
    taken = _at_least(Jet(wanted), lower, _LOWER)
    if np.isfinite(upper[0]) and taken[0] > upper[0] / (1.0 + _UPPER):
        taken = 1.0 / _at_least(1.0 / taken, 1.0 / upper, _UPPER)
    return taken.array(0)


def _along(values: Array, h: float, torque: Jet) -> Jet:
    """Stiffness with two time derivatives, from values (3,) at torques h below, at and above."""
    before, now, after = values
    slope = bend = 0.0
    if np.isfinite(before) and np.isfinite(after):
        slope, bend = (after - before) / (2.0 * h), (after - 2.0 * now + before) / h**2
    return compose([now, slope, bend], torque)


def _at_least(values: Jet, least: Jet, width: float) -> Jet:
    """Larger of two quantities, smooth where they differ by a share."""
    x = (values[0] / least[0] - 1.0) / width
    if x >= 1.0:
        return values
    if x <= -1.0:
        return least
    slope, bend = 0.25 * (x + 1.0) ** 2 * (2.0 - x), 0.75 * (1.0 - x * x) / width
    above = width * (x + 1.0) ** 3 * (3.0 - x) / 16.0
    return least * compose([1.0 + above, slope, bend], values / least)
