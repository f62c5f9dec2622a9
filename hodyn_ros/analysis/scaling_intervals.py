"""Where polynomials exceed their limits, and what the union of such intervals leaves free.

All roots of all polynomials are found at once: between two extrema a polynomial is monotone, so a
change of sign holds exactly one root, and the extrema are the roots of its derivative, found in
the same way. Nothing is divided by a leading coefficient, so it may vanish.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Halvings after which a root is known to rounding.
_HALVINGS = 55
# Gaps that are narrower than this, relative to where they are, are rounding.
_NARROWEST = 1e-12


class Intervals(NamedTuple):
    """Open intervals on the positive axis."""

    start: Array
    end: Array


def outside(coefficients: Array, limit: Array) -> Intervals:
    """Where any of some polynomials is larger than its limit, in magnitude.

    Parameters
    ----------
    coefficients : ndarray, shape (M, P)
        Entry k belongs to the k-th power of s.
    limit : ndarray, shape (M,)
        May be infinite.

    Returns
    -------
    Intervals
        Of s > 0, in no order and perhaps overlapping; their union is the answer.
    """
    limited = np.isfinite(limit)
    coefficients, limit = coefficients[limited], limit[limited]
    is_static = ~coefficients[:, 1:].any(axis=1)
    if np.any(np.abs(coefficients[is_static, 0]) > limit[is_static]):
        return Intervals(np.zeros(1), np.full(1, np.inf))
    coefficients, limit = coefficients[~is_static], limit[~is_static]
    last = _last_root(coefficients, limit).min(initial=np.inf)
    if not np.isfinite(last):
        return Intervals(np.zeros(0), np.zeros(0))
    scaled = coefficients * last ** np.arange(coefficients.shape[1])
    # Most polynomials stay away from their limits before the first of them leaves its own for
    # good.
    near = np.abs(scaled).sum(axis=1) > limit
    start, end = _outside_of_unit(scaled[near], limit[near])
    return Intervals(np.append(start * last, last), np.append(end * last, np.inf))


def _last_root(coefficients: Array, limit: Array) -> Array:
    """Bound beyond which each polynomial exceeds its limit for ever.

    Fujiwara's bound on the roots of p - limit and p + limit.
    """
    M, P = coefficients.shape
    result = np.full(M, np.inf)
    size = np.abs(coefficients)
    degree = P - 1 - np.argmax(coefficients[:, ::-1] != 0.0, axis=1)
    for d in range(1, P):
        rows = degree == d
        with np.errstate(over='ignore'):
            ratios = size[rows, :d] / size[rows, d : d + 1]
            ratios[:, 0] = 0.5 * (size[rows, 0] + limit[rows]) / size[rows, d]
            result[rows] = 2.0 * (ratios ** (1.0 / np.arange(d, 0, -1.0))).max(axis=1)
    return result


def _outside_of_unit(coefficients: Array, limit: Array) -> tuple[Array, Array]:
    """Intervals of [0, 1] in which a polynomial exceeds its limit."""
    M, P = coefficients.shape
    ends = np.zeros((M, 1)), np.ones((M, 1))
    points = np.concatenate(ends, axis=1)
    for derivative in range(P - 2, 0, -1):
        factors = np.array(
            [np.prod(np.arange(k - derivative + 1, k + 1)) for k in range(derivative, P)]
        )
        roots = _roots_between(coefficients[:, derivative:] * factors, points)
        points = np.concatenate((ends[0], roots, ends[1]), axis=1)
    crossings = [*ends]
    for bound in (limit, -limit):
        shifted = coefficients.copy()
        shifted[:, 0] -= bound
        crossings.append(_roots_between(shifted, points))
    edges = np.sort(np.concatenate(crossings, axis=1), axis=1)
    start, end = edges[:, :-1], edges[:, 1:]
    middle = _evaluate(coefficients[:, None], 0.5 * (start + end))
    is_outside = (np.abs(middle) > limit[:, None]) & (end > start)
    return start[is_outside], end[is_outside]


def _roots_between(coefficients: Array, points: Array) -> Array:
    """Root between each two neighbouring points (M, m), between which a polynomial is monotone.

    Returns
    -------
    ndarray, shape (M, m - 1)
        Increasing; the second of the points where there is no root between them.
    """
    before, behind = points[:, :-1].copy(), points[:, 1:].copy()
    first = _evaluate(coefficients[:, None], before)
    second = _evaluate(coefficients[:, None], behind)
    row, column = np.nonzero((first < 0.0) != (second < 0.0))
    chosen = coefficients[row]
    low, high, rising = before[row, column], behind[row, column], first[row, column] < 0.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        is_before = (_evaluate(chosen, middle) < 0.0) == rising
        low, high = np.where(is_before, middle, low), np.where(is_before, high, middle)
    behind[row, column] = 0.5 * (low + high)
    return behind


def _evaluate(coefficients: Array, x: Array) -> Array:
    """Values of polynomials by Horner's scheme; the last axis holds the coefficients."""
    result = coefficients[..., -1] + 0.0 * x
    for k in range(coefficients.shape[-1] - 2, -1, -1):
        result = result * x + coefficients[..., k]
    return np.asarray(result)


def free(*occupied: Intervals) -> tuple[tuple[float, float], ...]:
    """Find what intervals leave free of the positive axis.

    Parameters
    ----------
    occupied : Intervals

    Returns
    -------
    tuple of (float, float)
        Increasing; the first may begin with zero, the last may end with infinity.
    """
    start = np.concatenate([item.start for item in occupied])
    end = np.concatenate([item.end for item in occupied])
    order = np.argsort(start, kind='stable')
    start = np.append(start[order], np.inf)
    reached = np.maximum.accumulate(np.insert(end[order], 0, 0.0))
    gaps = np.flatnonzero(start > reached * (1.0 + _NARROWEST))
    return tuple((float(reached[i]), float(start[i])) for i in gaps)
