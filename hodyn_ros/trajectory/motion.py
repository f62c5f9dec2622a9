"""Motions that are polynomials between their knots: evaluation and extreme positions.

Every segment is kept as its derivatives at both of its ends, so that it can be expanded from the
nearer one: what is given at a waypoint is met to the bit, and derivatives are as accurate in
segments of a millisecond as in those of a minute.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, factorial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.display import shown
from hodyn_ros.errors import TrajectoryError
from hodyn_ros.trajectory.waypoints import Immutable, real_numbers
from hodyn_ros.typing import Array, Indices

DEGREE = 9
"""Highest degree of a segment."""

HIGHEST_DERIVATIVE = 4
"""Time derivative of the position that the second derivative of efforts needs."""

BLOCK = 2048
"""Times that are evaluated together: enough to hide the cost of Python, few enough for the
cache."""

_EPSILON = float(np.finfo(np.float64).eps)
_ORDERS = range(DEGREE + 1)
_FACTORIALS = np.array([float(factorial(k)) for k in _ORDERS])
# _BINOMIALS[k, j]: k-th derivative of x^j at x = 1, divided by k!.
_BINOMIALS = np.array([[float(comb(j, k)) for j in _ORDERS] for k in _ORDERS])
# Power of the offset by which the j-th derivative (column) adds to the k-th (row).
_TAYLOR = np.arange(DEGREE + 1) - np.arange(DEGREE + 1)[:, None]
_TAYLOR[_TAYLOR < 0] = DEGREE + 1
# Part of a segment by which Newton's method may move the time of an extreme position.
_LARGEST_STEP = 1e-5


@shown
@dataclass(frozen=True, eq=False)
class PiecewiseMotion(Immutable):
    """Motion of n joints, a polynomial between any two of its N knots; immutable.

    It is a `MotionSpline` or a `JtcMotion`.

    Examples
    --------
    Position, velocity and acceleration at a time:

    >>> from hodyn_ros.trajectory import fit_spline
    >>> motion = fit_spline([0.0, 1.0, 2.0], [[0.0], [1.0], [0.5]])
    >>> motion.end_time, motion.continuous_derivative
    (2.0, 4)
    >>> motion(0.5, highest_derivative=2).round(3)
    array([[0.197],
           [1.364],
           [5.112]])
    """

    times: Array
    """Times of the waypoints, shape (N,) [s]."""
    expansions: Array
    """Derivatives 0 to d of the polynomials, of odd degree d, at the start and at the end of every
    segment, shape (N - 1, 2, d + 1, n) [rad/s^k] or [m/s^k]."""
    continuous_derivative: int
    """Highest time derivative of the positions, of the first four, up to which none jumps from the
    first waypoint to the last; 0 if the velocity does. Jumps that rounding of the waypoints would
    cause do not count."""

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

    def __call__(self, t: ArrayLike, highest_derivative: int = HIGHEST_DERIVATIVE) -> Array:
        """Motion at given times.

        Parameters
        ----------
        t : array-like, shape (...)
            Times from `start_time` to `end_time` [s].
        highest_derivative : int
            Highest time derivative wanted, 0 to 9. Those beyond `continuous_derivative` jump at
            waypoints, where the value behind the waypoint is returned, at the end of the motion
            the one before it.

        Returns
        -------
        ndarray, shape (..., highest_derivative + 1, n)
            `[..., k, :]` is the k-th time derivative of the positions [rad/s^k] or [m/s^k].

        Raises
        ------
        TrajectoryError
            If a time lies outside of the motion or the order of the derivative is impossible.
        """
        if highest_derivative not in range(DEGREE + 1):
            raise TrajectoryError(
                f'highest_derivative is {highest_derivative!r}, expected an integer from 0 to '
                f'{DEGREE}, the highest degree of a motion.'
            )
        time = real_numbers(t, 't')
        flat = time.reshape(-1)
        # Written such that NaN is outside.
        inside = (flat >= self.times[0]) & (flat <= self.times[-1])
        if not inside.all():
            raise TrajectoryError(
                f'The time {float(flat[np.argmin(inside)])!r} s lies outside of the motion, which '
                f'lasts from {self.start_time!r} s to {self.end_time!r} s.'
            )
        # The last segment holds its end too.
        segment = self.times[1:-1].searchsorted(flat, side='right')
        # Evaluation from the nearer end reproduces the states at both ends exactly and keeps the
        # powers, and with them the rounding, small.
        before, behind = self.times[segment], self.times[segment + 1]
        from_end = behind - flat < flat - before
        offset = flat - np.where(from_end, behind, before)
        side = from_end.astype(np.intp)
        shape = (int(highest_derivative) + 1, self.expansions.shape[-1])
        motion = np.empty((len(flat), *shape))
        for start in range(0, len(flat), BLOCK):
            block = slice(start, start + BLOCK)
            weights = taylor_weights(offset[block], shape[0], self.expansions.shape[2])
            motion[block] = weights @ self.expansions[segment[block], side[block]]
        return motion.reshape(*time.shape, *shape)

    def within(self, segments: Indices, parts: Array) -> Array:
        """Motion at the same parts (L,) of the durations of some segments (M,): (M, L, 5, n).

        Parameters
        ----------
        segments : ndarray of int, shape (M,)
            Indices of segments.
        parts : ndarray, shape (L,)
            From 0 to 1.

        Returns
        -------
        ndarray, shape (M, L, 5, n)
            Position to snap [rad/s^k] or [m/s^k].
        """
        segments, parts = np.asarray(segments, dtype=np.intp), np.asarray(parts)
        size, n = self.expansions.shape[2:]
        durations = self.times[segments + 1] - self.times[segments]
        scale = (durations[:, None] ** np.arange(float(size)))[..., None]
        M, K = len(segments), HIGHEST_DERIVATIVE + 1
        motion = np.empty((M, len(parts), K, n))
        for side in (0, 1):
            nearer = (parts > 0.5) == side
            weights = taylor_weights(parts[nearer] - side, K, size).reshape(-1, size)
            expansions = self.expansions[segments, side] * scale
            motion[:, nearer] = (weights @ expansions).reshape(M, -1, K, n)
        motion /= scale[:, None, :K]
        return motion


def taylor_weights(offset: Array, K: int, size: int) -> Array:
    """What `size` derivatives add to the first K ones at offsets (M,): shape (M, K, size).

    Parameters
    ----------
    offset : ndarray, shape (M,)
        [s]
    K : int
        Derivatives that are wanted, the zeroth included.
    size : int
        Derivatives that are known, the zeroth included; at most 10.

    Returns
    -------
    ndarray, shape (M, K, size)
        offset^(j - k) / (j - k)! for j >= k, else zero.
    """
    # powers[:, m] is offset^m / m!; the last column stays zero.
    powers = np.zeros((len(offset), DEGREE + 2))
    powers[:, 0] = 1.0
    np.divide(offset[:, None], np.arange(1.0, DEGREE + 1.0), out=powers[:, 1:-1])
    np.multiply.accumulate(powers[:, :-1], axis=1, out=powers[:, :-1])
    weights: Array = powers[:, _TAYLOR[:K, :size]]
    return weights


def hermite(durations: Array, start: Array, end: Array) -> Array:
    """Polynomials of degree 2 m - 1 that meet m derivatives at both ends of segments.

    Parameters
    ----------
    durations : ndarray, shape (M,)
        [s]
    start, end : ndarray, shape (M, m, n)
        Derivatives 0 to m - 1, m <= 5 [rad/s^k] or [m/s^k].

    Returns
    -------
    ndarray, shape (M, 2, 2 m, n)
        Expansions, see `PiecewiseMotion`.
    """
    m = start.shape[1]
    # Coefficients of powers of (t - t_i) / h; the inverse consists of whole numbers.
    scale = durations[:, None, None] ** np.arange(2.0 * m)[:, None]
    scale /= _FACTORIALS[: 2 * m, None]
    inverse = np.rint(np.linalg.inv(_BINOMIALS[:m, m : 2 * m]))
    first, last = start * scale[:, :m], end * scale[:, :m]
    # The difference is exact for values that are close together.
    missed = last - first - (_BINOMIALS[:m, :m] - np.eye(m)) @ first
    first = np.concatenate([first, inverse @ missed], axis=1)
    last = _BINOMIALS[: 2 * m, : 2 * m] @ first
    expansions = np.stack([first / scale, last / scale], axis=1)
    expansions[:, 0, :m], expansions[:, 1, :m] = start, end
    return expansions


class Extremes(NamedTuple):
    """Lowest and highest position of each joint, with any of the times at which it is met.

    Examples
    --------
    >>> from hodyn_ros.trajectory import fit_spline, position_extremes
    >>> spline = fit_spline([0.0, 1.0, 2.0], [[0.0], [1.0], [0.8]])
    >>> found = position_extremes(spline)
    >>> found.highest.round(3), found.highest_time.round(3)
    (array([1.077]), array([1.16]))
    """

    lowest: Array
    """Shape (n,) [rad] or [m]."""
    highest: Array
    """Shape (n,) [rad] or [m]."""
    lowest_time: Array
    """Shape (n,) [s]."""
    highest_time: Array
    """Shape (n,) [s]."""


def position_extremes(motion: PiecewiseMotion) -> Extremes:
    """Lowest and highest positions of a `MotionSpline` or `JtcMotion`, exact up to rounding.

    Half a segment lies in the convex hull of its control points in Bernstein form; so only where
    these exceed the positions at all knots and middles is the velocity asked for its zeros.

    Parameters
    ----------
    motion : PiecewiseMotion
        Of n joints.

    Returns
    -------
    Extremes

    Examples
    --------
    >>> from hodyn_ros.trajectory import fit_spline, position_extremes
    >>> spline = fit_spline([0.0, 1.0, 2.0], [[0.0], [1.0], [0.8]])
    >>> lowest, highest, _, highest_time = position_extremes(spline)
    >>> lowest, highest.round(3), highest_time.round(3)
    (array([0.]), array([1.077]), array([1.16]))
    """
    times, (size, n) = motion.times, motion.expansions.shape[2:]
    points = _control_points(np.diff(times), motion.expansions)
    # Control points of the first half (de Casteljau); the last one is the middle.
    first = _BINOMIALS[:size, :size].T / 2.0 ** np.arange(size)[:, None]
    known = np.concatenate([points[:, 0], points[-1:, -1], first[-1] @ points])
    known = np.concatenate([known, -known], axis=-1)
    best = known.argmax(axis=0)
    value = known[best, np.arange(2 * n)]
    time = np.concatenate([times, (times[:-1] + times[1:]) / 2.0])[best]
    hull = np.concatenate([points.max(axis=1), -points.min(axis=1)], axis=-1)
    rounding = 8.0 * _EPSILON * np.tile(hull.reshape(-1, n).max(axis=0), 2)
    segment, column = np.nonzero(hull > value + rounding)
    sign = np.where(column < n, 1.0, -1.0)
    own = sign * points[segment, :, column % n].T
    hull = (np.concatenate([first, first[::-1, ::-1]]) @ own).max(axis=0)
    keep = hull > (value + rounding)[column]
    segment, column, sign = segment[keep], column[keep], sign[keep, None]
    at = _turns(motion, segment, column % n)
    found = sign * motion(at, 0)[np.arange(len(at)), :, 0, column % n]
    best = found.argmax(axis=1)[:, None]
    found, at = (np.take_along_axis(each, best, axis=1)[:, 0] for each in (found, at))
    # Of a repeated column only the last one is taken, so the largest comes last.
    order = found.argsort(kind='stable')
    order = order[found[order] > value[column[order]]]
    value[column[order]], time[column[order]] = found[order], at[order]
    return Extremes(-value[n:], value[:n], time[n:], time[:n])


def _control_points(durations: Array, expansions: Array) -> Array:
    """Control points (M, d + 1, n) in Bernstein form of segments.

    The i-th one from an end collects what the first i derivatives there contribute.
    """
    d = expansions.shape[2] - 1
    m = (d + 1) // 2
    weights = _BINOMIALS[:m, :m].T * (_FACTORIALS[d - m + 1 : d + 1][::-1] / _FACTORIALS[d])
    powers = durations[:, None, None] ** np.arange(float(m))[:, None]
    left = weights @ (expansions[:, 0, :m] * powers)
    right = weights @ (expansions[:, 1, :m] * powers * (-1.0) ** np.arange(m)[:, None])
    return np.concatenate([left, right[:, ::-1]], axis=1)


def _turns(motion: PiecewiseMotion, segment: Indices, joint: Indices) -> Array:
    """Times (L, d - 1) in segments (L,) at which the velocities of joints (L,) may be zero.

    They are the real parts of the zeros of the polynomials, all of them, moved into the segment.
    """
    before, behind = motion.times[segment], motion.times[segment + 1]
    d = motion.expansions.shape[2] - 1
    k = np.arange(d)
    powers = (behind - before)[:, None] ** k / _FACTORIALS[:d]
    velocity = motion.expansions[segment, 0, 1:, joint] * powers
    # A polynomial of a lower degree than its neighbours, but for rounding.
    least = _EPSILON * np.abs(velocity).max(axis=1)
    small = np.abs(velocity[:, -1]) < least
    velocity[small, -1] = least[small]
    companion = np.zeros((len(segment), d - 1, d - 1))
    companion[:, k[1:-1], k[:-2]] = 1.0
    companion[:, :, -1] = -velocity[:, :-1] / velocity[:, -1:]
    parts = np.linalg.eigvals(companion).real.clip(0.0, 1.0)
    return (before[:, None] + parts * (behind - before)[:, None]).clip(
        before[:, None], behind[:, None]
    )
