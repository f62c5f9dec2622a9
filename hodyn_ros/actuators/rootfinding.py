"""Roots of increasing functions, many at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Bisection alone would need about 60 steps for a double, 1100 if it had to find its exponent too.
_MOST_STEPS = 1200


def increasing_root(
    function: Callable[[Array], tuple[Array, Array]],
    value: Array,
    lower: Array,
    upper: Array,
    guess: Array,
) -> Array:
    """Where increasing functions have given values: Newton's method, kept inside of brackets.

    A step that would leave the bracket, or that does not halve the one before, is replaced by a
    bisection, so that the search always ends.

    Parameters
    ----------
    function : callable
        From arguments of shape (...) to values and slopes of the same shape.
    value : ndarray, shape (...)
    lower, upper : ndarray, shape (...)
        Brackets: function(lower) <= value <= function(upper).
    guess : ndarray, shape (...)
        Where to begin.

    Returns
    -------
    ndarray, shape (...)
        Exact to rounding.
    """
    lower, upper, x = (
        np.array(np.broadcast_to(a, value.shape), dtype=np.float64) for a in (lower, upper, guess)
    )
    last = upper - lower
    with np.errstate(divide='ignore', invalid='ignore', over='ignore'):
        for _ in range(_MOST_STEPS):
            f, slope = function(x)
            excess = f - value
            lower = np.where(excess <= 0.0, x, lower)
            upper = np.where(excess >= 0.0, x, upper)
            step = -excess / slope
            there = x + step
            # A comparison with NaN is false, so that an unusable step becomes a bisection.
            is_good = (there >= lower) & (there <= upper) & (2.0 * np.abs(step) <= np.abs(last))
            there = np.where(is_good, there, lower + 0.5 * (upper - lower))
            last = there - x
            x = there
            if np.all(np.abs(last) <= 4.0 * np.spacing(np.abs(x))):
                return x
    return x
