"""Roots of increasing functions, many at a time, or one quickly."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Bisection alone would need about 60 steps for a double, 1100 if it had to find its exponent too.
_MOST_STEPS = 1200


def increasing_root(
    function: Callable[[Array], tuple[Array, Array]],
    lower: Array,
    upper: Array,
    guess: Array | None = None,
    value: Array | float = 0.0,
) -> Array:
    """Where increasing functions have given values: Newton's method, kept inside of brackets.

    A step that would leave the bracket, or that does not halve the one before, is replaced by a
    bisection, so that the search always ends.

    Parameters
    ----------
    function : callable
        From arguments of shape (...) to values and slopes of the same shape. Values may be
        infinite.
    lower, upper : ndarray, shape (...)
        Brackets, finite: function(lower) <= value <= function(upper).
    guess : ndarray, shape (...), optional
        Where to begin; by default in the middle.
    value : ndarray, shape (...), optional

    Returns
    -------
    ndarray, shape (...)
        Exact to rounding. The bound that is nearer to the root, where it is not between them.
    """
    if guess is None:
        guess = lower + 0.5 * (upper - lower)
    lower, upper, x, _ = map(np.array, np.broadcast_arrays(lower, upper, guess, value))
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


def increasing_root_of_one(
    function: Callable[[float], tuple[float, float]],
    lower: float,
    upper: float,
    guess: float,
    value: float,
) -> float:
    """Do what `increasing_root` does, for one number: much faster, as no arrays are made.

    Parameters
    ----------
    function : callable
        From a number to value and slope.
    lower, upper, guess, value : float
        See `increasing_root`.

    Returns
    -------
    float
    """
    x, last = guess, upper - lower
    for _ in range(_MOST_STEPS):
        f, slope = function(x)
        excess = f - value
        if excess <= 0.0:
            lower = x
        if excess >= 0.0:
            upper = x
        step = -excess / slope if slope else math.inf
        there = x + step
        if not (lower <= there <= upper and 2.0 * abs(step) <= abs(last)):
            there = lower + 0.5 * (upper - lower)
        last = there - x
        x = there
        if abs(last) <= 4.0 * math.ulp(x):
            return x
    return x
