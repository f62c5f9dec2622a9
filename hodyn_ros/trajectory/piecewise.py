"""What motions that are polynomials between their knots have in common, and their evaluation.

Every segment is kept as its derivatives at both of its ends, so that it can be expanded from the
nearer one.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.errors import TrajectoryError
from hodyn_ros.trajectory.timeline import real_numbers, segments_at

Array = NDArray[np.float64]

DEGREE = 9
"""Highest degree of a segment."""

HIGHEST_DERIVATIVE = 4
"""Time derivative of the position that the second derivative of efforts needs."""

# The m-th power of an offset over m! is the product of its first m quotients by these.
_DIVISORS = np.arange(1.0, DEGREE + 1.0)
# Power of the offset by which the j-th derivative (column) adds to the k-th (row).
_TAYLOR = np.arange(DEGREE + 1) - np.arange(DEGREE + 1)[:, None]
_TAYLOR[_TAYLOR < 0] = DEGREE + 1

# Jump of a derivative, relative to the size of the motion next to it, up to which it is rounding:
# that of the waypoints, which the coefficients of degree 5 enlarge by some hundreds.
_ROUNDING = 1e4 * float(np.finfo(np.float64).eps)

# Times that are evaluated together: enough to hide the cost of Python, few enough for the cache.
BLOCK = 2048


class Motion(Protocol):
    """Motion of n joints through N knots, polynomial between them.

    `hodyn_ros.trajectory.spline.MotionSpline` and `hodyn_ros.trajectory.jtc.JtcMotion` are such
    motions.
    """

    @property
    def times(self) -> Array:
        """Times of the knots, shape (N,) [s]."""

    @property
    def expansions(self) -> Array:
        """Derivatives 0 to d of the segments, of odd degree d, at their starts and ends.

        Shape (N - 1, 2, d + 1, n) [rad/s^k] or [m/s^k].
        """

    @property
    def start_time(self) -> float:
        """Time of the first knot [s]."""

    @property
    def end_time(self) -> float:
        """Time of the last knot [s]."""

    @property
    def duration(self) -> float:
        """Time from the first to the last knot [s]."""

    @property
    def continuous_derivative(self) -> int:
        """Highest derivative of the positions, of the first four, up to which none ever jumps.

        From the first knot to the last; 0 if the velocity jumps.
        """

    def __call__(self, t: ArrayLike, highest_derivative: int = HIGHEST_DERIVATIVE) -> Array:
        """Motion at times (...), shape (..., highest_derivative + 1, n)."""


class Knots:
    """What follows from the times of a motion alone; a mixin."""

    times: Array

    @property
    def start_time(self) -> float:
        """Time of the first waypoint [s]."""
        return float(self.times[0])

    @property
    def end_time(self) -> float:
        """Time of the last waypoint [s]."""
        return float(self.times[-1])

    @property
    def duration(self) -> float:
        """Time from the first to the last waypoint [s]."""
        return self.end_time - self.start_time


def evaluate(times: Array, expansions: Array, t: ArrayLike, highest_derivative: int) -> Array:
    """Evaluate a piecewise polynomial.

    Parameters
    ----------
    times : ndarray, shape (N,)
        Of the knots, increasing [s].
    expansions : ndarray, shape (N - 1, 2, d + 1, n)
        Derivatives 0 to d at the start and at the end of every segment.
    t : array-like, shape (...)
        Times from the first to the last knot [s].
    highest_derivative : int
        0 to 9.

    Returns
    -------
    ndarray, shape (..., highest_derivative + 1, n)
        Derivatives that jump have the value behind the knot, at the last one that before it.

    Raises
    ------
    TrajectoryError
        If a time lies outside or the order of the derivative is impossible.
    """
    if highest_derivative not in range(DEGREE + 1):
        raise TrajectoryError(
            f'highest_derivative is {highest_derivative!r}, expected an integer from 0 to '
            f'{DEGREE}, the highest degree of a motion.'
        )
    time = real_numbers(t, 't')
    flat = time.reshape(-1)
    segment = segments_at(times, flat)
    # Evaluation from the nearer end reproduces the states at both ends exactly and keeps the
    # powers, and with them the rounding, small.
    before, behind = times[segment], times[segment + 1]
    from_end = behind - flat < flat - before
    offset = flat - np.where(from_end, behind, before)
    side = from_end.astype(np.intp)
    shape = (int(highest_derivative) + 1, expansions.shape[-1])
    if len(flat) <= BLOCK:
        motion = expanded(expansions, segment, side, offset, shape[0])
    else:
        motion = np.empty((len(flat), *shape))
        for start in range(0, len(flat), BLOCK):
            block = slice(start, start + BLOCK)
            motion[block] = expanded(
                expansions, segment[block], side[block], offset[block], shape[0]
            )
    return motion.reshape(*time.shape, *shape)


def expanded(
    expansions: Array, segment: NDArray[np.intp], side: NDArray[np.intp], offset: Array, K: int
) -> Array:
    """Taylor expansions about the ends of segments.

    Parameters
    ----------
    expansions : ndarray, shape (N - 1, 2, d + 1, n)
    segment, side : ndarray of int, shape (M,)
        Which end: 0 the start of the segment, 1 its end.
    offset : ndarray, shape (M,)
        Time from that end [s].
    K : int
        How many derivatives, the zeroth included.

    Returns
    -------
    ndarray, shape (M, K, n)
    """
    # powers[:, m] is offset^m / m!; the last column stays zero.
    powers = np.zeros((len(offset), DEGREE + 2))
    powers[:, 0] = 1.0
    np.divide(offset[:, None], _DIVISORS, out=powers[:, 1:-1])
    np.multiply.accumulate(powers[:, :-1], axis=1, out=powers[:, :-1])
    taylor = _TAYLOR[:K, : expansions.shape[2]]
    motion: Array = powers[:, taylor] @ expansions[segment, side]
    return motion


def continuous_derivative(times: Array, expansions: Array) -> int:
    """Find the highest derivative, of the first four, up to which none jumps at a knot.

    Parameters
    ----------
    times : ndarray, shape (N,)
    expansions : ndarray, shape (N - 1, 2, d + 1, n)

    Returns
    -------
    int
        0 to 4. Jumps that rounding of the waypoints would cause do not count.
    """
    durations = np.diff(times)[:, None]
    size = np.zeros((len(durations), expansions.shape[-1]))
    for k in range(expansions.shape[2]):
        np.maximum(size, np.abs(expansions[:, :, k]).max(axis=1) * durations**k, out=size)
    # A duration is as uncertain as the times that it is the difference of.
    size += np.abs(times).max() * np.abs(expansions[:, :, 1]).max(axis=1)
    size = np.maximum(size[:-1], size[1:])
    shortest = np.minimum(durations[:-1], durations[1:])
    for k in range(1, HIGHEST_DERIVATIVE + 1):
        jump = np.abs(expansions[1:, 0, k] - expansions[:-1, 1, k])
        if np.any(jump > _ROUNDING * size / shortest**k):
            return k - 1
    return HIGHEST_DERIVATIVE
