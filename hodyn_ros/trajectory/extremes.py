"""Lowest and highest positions of piecewise polynomials, between samples too.

A polynomial lies in the convex hull of its control points in Bernstein form. So a piece whose
control points do not exceed what has been found elsewhere holds no extremum. The others are
halved (de Casteljau), which brings the control points closer to the polynomial, until the two
agree up to rounding. Nothing is missed, however many extrema there are.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import comb, factorial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.trajectory.piecewise import BLOCK, Motion, expanded

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# Rounding of a control point, relative to the largest one of its column.
_ROUNDING = 8.0 * float(np.finfo(np.float64).eps)
# Halvings after which a piece is shorter than the resolution of its extreme value by far.
_MOST_HALVINGS = 40
# Part of a segment by which Newton's method may move the time that halving has found.
_LARGEST_STEP = 1e-5


class Extremes(NamedTuple):
    """Lowest and highest position of each joint, with any of the times at which it is met."""

    lowest: Array
    """Shape (n,) [rad] or [m]."""
    highest: Array
    """Shape (n,) [rad] or [m]."""
    lowest_time: Array
    """Shape (n,) [s]."""
    highest_time: Array
    """Shape (n,) [s]."""


class Maxima(NamedTuple):
    """Largest values of piecewise polynomials, and where they are."""

    value: Array
    """Shape (n,)."""
    segment: Indices
    """Shape (n,)."""
    part: Array
    """Place in the segment from 0 to 1, shape (n,)."""


def position_extremes(motion: Motion) -> Extremes:
    """Lowest and highest positions of a motion, exact up to rounding.

    Parameters
    ----------
    motion : Motion
        `MotionSpline` or `JtcMotion`, n joints.

    Returns
    -------
    Extremes
        Of values and times, each of shape (n,).
    """
    n = motion.expansions.shape[-1]
    maxima = largest_values(_both_signs(motion))
    columns = np.tile(np.arange(n), 2)
    sign = np.repeat([1.0, -1.0], n)
    before, behind = motion.times[maxima.segment], motion.times[maxima.segment + 1]
    times = np.clip(before + maxima.part * (behind - before), before, behind)
    times, values = _polished(motion, maxima.segment, columns, sign, times, maxima.value)
    return Extremes(-values[n:], values[:n], times[n:], times[:n])


def _both_signs(motion: Motion) -> Iterable[Array]:
    """Control points of a motion and of its mirror image, shape (M, d + 1, 2 n) a block."""
    durations = np.diff(motion.times)
    for start in range(0, len(durations), BLOCK):
        block = slice(start, start + BLOCK)
        points = control_points(durations[block], motion.expansions[block])
        yield np.concatenate([points, -points], axis=-1)


def control_points(durations: Array, expansions: Array) -> Array:
    """Bernstein form of polynomials of odd degree d.

    Parameters
    ----------
    durations : ndarray, shape (M,)
        [s]
    expansions : ndarray, shape (M, 2, d + 1, n)
        Derivatives 0 to d at the start and at the end. Only the first half of them is used, which
        determines the polynomial.

    Returns
    -------
    ndarray, shape (M, d + 1, n)
    """
    d = expansions.shape[2] - 1
    half = (d + 1) // 2
    # The i-th control point from an end collects what the first i derivatives there contribute.
    weights = np.array(
        [
            [comb(i, j) * factorial(d - j) / factorial(d) if j <= i else 0.0 for j in range(half)]
            for i in range(half)
        ]
    )
    powers = durations[:, None, None] ** np.arange(float(half))[:, None]
    signs = (-1.0) ** np.arange(half)[:, None]
    points = np.empty((len(durations), d + 1, expansions.shape[-1]))
    points[:, :half] = weights @ (expansions[:, 0, :half] * powers)
    points[:, half:] = (weights @ (expansions[:, 1, :half] * powers * signs))[:, ::-1]
    return points


def largest_values(blocks: Iterable[Array]) -> Maxima:
    """Find the largest value of each column of piecewise polynomials.

    Parameters
    ----------
    blocks : iterable of ndarray, each of shape (M, d + 1, n)
        Control points of successive segments; M may differ, and there is at least one segment.

    Returns
    -------
    Maxima
    """
    search: _Search | None = None
    first = 0
    for points in blocks:
        if search is None:
            search = _Search(points.shape[-1])
        search.add(points, first)
        first += len(points)
    assert search is not None
    return search.result()


class _Search:
    """Largest values found so far, and the pieces that may hold larger ones."""

    def __init__(self, n: int) -> None:
        self._value = np.full(n, -np.inf)
        self._segment = np.zeros(n, dtype=np.intp)
        self._part = np.zeros(n)
        self._size = np.zeros(n)
        self._pieces: list[tuple[Array, Indices, Indices]] = []

    def add(self, points: Array, first: int) -> None:
        """Look through whole segments, control points (M, d + 1, n), and keep some for later."""
        np.maximum(self._size, np.abs(points).max(axis=(0, 1)), out=self._size)
        # The middle is the mean of the control points with binomial weights.
        d = points.shape[1] - 1
        binomial = np.array([comb(d, i) for i in range(d + 1)]) / 2.0**d
        middles = np.einsum('i,min->mn', binomial, points)
        for part, values in ((0.0, points[:, 0]), (0.5, middles), (1.0, points[:, -1])):
            best = values.argmax(axis=0)
            self._improve(
                np.arange(len(best)), values[best, np.arange(len(best))], first + best, part
            )
        segment, column = np.nonzero(points.max(axis=1) > self._bound())
        self._pieces.append((points[segment, :, column], first + segment, column))

    def _bound(self) -> Array:
        """Value of each column beyond which a control point is worth a look."""
        return self._value + _ROUNDING * self._size

    def _improve(
        self, columns: Indices, values: Array, segments: Indices, parts: float | Array
    ) -> None:
        """Take over values; of a repeated column only the last one, so the largest comes last."""
        better = values > self._value[columns]
        chosen = columns[better]
        self._value[chosen] = values[better]
        self._segment[chosen] = segments[better]
        self._part[chosen] = np.broadcast_to(parts, values.shape)[better]

    def result(self) -> Maxima:
        """Halve all pieces until none is left."""
        points, segment, column = (np.concatenate(each) for each in zip(*self._pieces))
        self._pieces.clear()
        start = np.zeros(len(points))
        for halving in range(1, _MOST_HALVINGS + 1):
            keep = points.max(axis=1) > self._bound()[column]
            points, segment, column, start = (
                each[keep] for each in (points, segment, column, start)
            )
            if not len(points):
                break
            width = 0.5**halving
            left, right = _halves(points)
            middle = left[:, -1]
            order = np.argsort(middle, kind='stable')
            self._improve(column[order], middle[order], segment[order], (start + width)[order])
            points = np.concatenate([left, right])
            segment, column = np.tile(segment, 2), np.tile(column, 2)
            start = np.concatenate([start, start + width])
        return Maxima(self._value, self._segment, self._part)


def _halves(points: Array) -> tuple[Array, Array]:
    """Control points (M, d + 1) of both halves."""
    left, right = np.empty_like(points), np.empty_like(points)
    d = points.shape[1] - 1
    for i in range(d + 1):
        left[:, i], right[:, d - i] = points[:, 0], points[:, -1]
        points = 0.5 * (points[:, 1:] + points[:, :-1])
    return left, right


def _polished(
    motion: Motion, segment: Indices, columns: Indices, sign: Array, times: Array, values: Array
) -> tuple[Array, Array]:
    """Move times at which the position is extreme to where the velocity vanishes.

    The position says where it is extreme only up to the root of the rounding error. Where the
    extremum is an end of a segment in motion, its time stays.
    """
    before, behind = motion.times[segment], motion.times[segment + 1]
    rows = np.arange(len(columns))
    for _ in range(3):
        from_end = behind - times < times - before
        offset = times - np.where(from_end, behind, before)
        state = expanded(motion.expansions, segment, from_end.astype(np.intp), offset, 3)
        position, velocity, acceleration = (state[rows, k, columns] for k in range(3))
        values = np.maximum(values, sign * position)
        with np.errstate(all='ignore'):
            moved = times - velocity / acceleration
            small = np.abs(moved - times) <= _LARGEST_STEP * (behind - before)
        small &= (sign * acceleration < 0.0) & (moved >= before) & (moved <= behind)
        times = np.where(small, moved, times)
    return times, values
