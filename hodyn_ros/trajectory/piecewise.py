"""Motions that are polynomials between their knots: evaluation, extremes, checks of waypoints.

Every segment is kept as its derivatives at both of its ends, so that it can be expanded from the
nearer one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from math import comb, factorial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.display import shown
from hodyn_ros.errors import TrajectoryError
from hodyn_ros.typing import Array, Flags, Indices

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

BLOCK = 2048
"""Times that are evaluated together: enough to hide the cost of Python, few enough for the
cache."""

# Rounding of a control point, relative to the largest one of its column.
_ROUNDING_OF_POINTS = 8.0 * float(np.finfo(np.float64).eps)
# Halvings after which a piece is shorter than the resolution of its extreme value by far.
_MOST_HALVINGS = 40
# Part of a segment by which Newton's method may move the time that halving has found.
_LARGEST_STEP = 1e-5


class Immutable:
    """Base of frozen dataclasses: closes the arrays in their fields, and keeps them closed.

    Arrays come out of a pickle or a copy writeable, so both make a new object.
    """

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        names = (field.name for field in fields(self))  # type: ignore[arg-type]
        return type(self), tuple(getattr(self, name) for name in names)


@shown
@dataclass(frozen=True, eq=False)
class PiecewiseMotion(Immutable):
    """Motion of n joints, a polynomial between any two of its N knots; immutable.

    It is a `MotionSpline` or a `JtcMotion`.
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
    np.divide(offset[:, None], _DIVISORS, out=powers[:, 1:-1])
    np.multiply.accumulate(powers[:, :-1], axis=1, out=powers[:, :-1])
    weights: Array = powers[:, _TAYLOR[:K, :size]]
    return weights


def continuous_derivative(times: Array, expansions: Array) -> int:
    """Highest derivative, of the first four, up to which none jumps; see `PiecewiseMotion`.

    Parameters
    ----------
    times : ndarray, shape (N,)
        Of the knots [s].
    expansions : ndarray, shape (N - 1, 2, d + 1, n)
        See `PiecewiseMotion`.

    Returns
    -------
    int
        From 0 to 4; jumps that rounding would cause do not count.
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


def position_extremes(motion: PiecewiseMotion) -> Extremes:
    """Lowest and highest positions of a `MotionSpline` or `JtcMotion`, exact up to rounding.

    Parameters
    ----------
    motion : PiecewiseMotion
        Of n joints.

    Returns
    -------
    Extremes
    """
    n, durations = motion.expansions.shape[-1], np.diff(motion.times)
    blocks = (slice(i, i + BLOCK) for i in range(0, len(durations), BLOCK))
    values, segment, part = largest_values(
        ((durations[block], motion.expansions[block]) for block in blocks), n
    )
    before, behind = motion.times[segment], motion.times[segment + 1]
    times = np.clip(before + part * (behind - before), before, behind)
    # The position says where it is extreme only up to the root of the rounding error, so the time
    # moves to where the velocity vanishes; at an end of a segment in motion it stays.
    rows, columns, sign = (
        np.arange(2 * n),
        np.tile(np.arange(n), 2),
        np.repeat([1.0, -1.0], n),
    )
    for _ in range(3):
        from_end = behind - times < times - before
        offset = times - np.where(from_end, behind, before)
        weights = taylor_weights(offset, 3, motion.expansions.shape[2])
        state = weights @ motion.expansions[segment, from_end.astype(np.intp)]
        position, velocity, acceleration = (state[rows, k, columns] for k in range(3))
        values = np.maximum(values, sign * position)
        with np.errstate(all='ignore'):
            moved = times - velocity / acceleration
            small = np.abs(moved - times) <= _LARGEST_STEP * (behind - before)
        small &= (sign * acceleration < 0.0) & (moved >= before) & (moved <= behind)
        times = np.where(small, moved, times)
    return Extremes(-values[n:], values[:n], times[n:], times[:n])


def largest_values(
    blocks: Iterable[tuple[Array, Array]], n: int
) -> tuple[Array, Indices, Array]:
    """Largest values (2 n,) of piecewise polynomials and then of their mirror images.

    The blocks are durations (M,) and expansions (M, 2, d + 1, n) of successive segments, one at
    least. Behind the values come their segments and the places in these, from 0 to 1.

    A polynomial lies in the convex hull of its control points in Bernstein form. So a piece whose
    control points do not exceed what has been found elsewhere holds no extremum. The others are
    halved (de Casteljau), which brings the control points closer to the polynomial, until the two
    agree up to rounding. Nothing is missed, however many extrema there are.

    Returns
    -------
    values : ndarray, shape (2 n,)
        Largest values, then negative lowest ones.
    segments : ndarray of int, shape (2 n,)
        Counted through all blocks.
    parts : ndarray, shape (2 n,)
    """
    value, part, rounding = np.full(2 * n, -np.inf), np.zeros(2 * n), np.zeros(2 * n)
    segment = np.zeros(2 * n, dtype=np.intp)
    pieces: list[tuple[Array, Indices, Indices]] = []

    def improve(columns: Indices, values: Array, segments: Indices, parts: Array) -> None:
        # Of a repeated column only the last one is taken, so the largest comes last.
        better = values > value[columns]
        chosen = columns[better]
        for known, found in ((value, values), (segment, segments), (part, parts)):
            known[chosen] = found[better]

    first, every = 0, np.arange(2 * n)
    for durations, expansions in blocks:
        points = _control_points(durations, expansions)
        points, d = np.concatenate([points, -points], axis=-1), points.shape[1] - 1
        size = np.abs(points).max(axis=(0, 1))
        np.maximum(rounding, _ROUNDING_OF_POINTS * size, out=rounding)
        # The middle is the mean of the control points with binomial weights.
        binomial = np.array([comb(d, i) for i in range(d + 1)]) / 2.0**d
        middles = np.einsum('i,min->mn', binomial, points)
        for place, values in ((0.0, points[:, 0]), (0.5, middles), (1.0, points[:, -1])):
            best = values.argmax(axis=0)
            improve(every, values[best, every], first + best, np.full(2 * n, place))
        row, column = np.nonzero(points.max(axis=1) > value + rounding)
        pieces.append((points[row, :, column], first + row, column))
        first += len(points)

    points, row, column = (np.concatenate(each) for each in zip(*pieces))
    start, width = np.zeros(len(points)), 1.0
    for _ in range(_MOST_HALVINGS):
        keep = points.max(axis=1) > (value + rounding)[column]
        points, row, column, start = points[keep], row[keep], column[keep], start[keep]
        if not len(points):
            break
        width *= 0.5
        left, right = np.empty_like(points), np.empty_like(points)
        d = points.shape[1] - 1
        for i in range(d + 1):
            left[:, i], right[:, d - i] = points[:, 0], points[:, -1]
            points = 0.5 * (points[:, 1:] + points[:, :-1])
        middle = left[:, -1]
        order = np.argsort(middle, kind='stable')
        improve(column[order], middle[order], row[order], (start + width)[order])
        points = np.concatenate([left, right])
        start = np.concatenate([start, start + width])
        row, column = np.tile(row, 2), np.tile(column, 2)
    return value, segment, part


def _control_points(durations: Array, expansions: Array) -> Array:
    """Control points (M, d + 1, n) in Bernstein form of segments.

    The i-th one from an end collects what the first i derivatives there contribute; half of the
    derivatives at both ends determine the polynomial.

    Parameters
    ----------
    durations : ndarray, shape (M,)
        [s]
    expansions : ndarray, shape (M, 2, d + 1, n)
        See `PiecewiseMotion`.

    Returns
    -------
    ndarray, shape (M, d + 1, n)
        [rad] or [m]
    """
    d = expansions.shape[2] - 1
    half = np.arange((d + 1) // 2)
    weights = np.array(
        [[comb(i, j) * factorial(d - j) / factorial(d) for j in half] for i in half]
    )
    powers = durations[:, None, None] ** half[:, None].astype(np.float64)
    left = weights @ (expansions[:, 0, : len(half)] * powers)
    right = weights @ (expansions[:, 1, : len(half)] * powers * (-1.0) ** half[:, None])
    return np.concatenate([left, right[:, ::-1]], axis=1)


def real_numbers(values: ArrayLike, name: str) -> Array:
    """Values as a new float64 array; raises TrajectoryError where they are no real numbers.

    Parameters
    ----------
    values : array-like
        Of any shape.
    name : str
        For messages.

    Returns
    -------
    ndarray

    Raises
    ------
    TrajectoryError
        If they are no integers or floating-point numbers, are masked, or are rows of
        different lengths.
    """
    if np.ma.is_masked(values):
        raise TrajectoryError(
            f'{name} is a masked array with masked values; fill them, with NaN where nothing is '
            'given.'
        )
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise TrajectoryError(
            f'{name} cannot be made an array ({error}); expected rows of equal length.'
        ) from error
    if array.dtype.kind not in 'fiu':
        raise TrajectoryError(
            f'{name} has elements of type {array.dtype}, expected real numbers.'
        )
    return array.astype(np.float64)


def checked_times(times: ArrayLike, fewest: int, name: str = 'times') -> Array:
    """Return times (N,) of at least `fewest` waypoints: finite, strictly increasing, copied.

    Parameters
    ----------
    times : array-like, shape (N,)
        [s]
    fewest : int
        Least number of them, 1 or 2.
    name : str
        For messages.

    Returns
    -------
    ndarray, shape (N,)
        [s]

    Raises
    ------
    TrajectoryError
        If there are fewer, or they are not finite or do not increase strictly.
    """
    array = real_numbers(times, name)
    if array.ndim != 1:
        raise TrajectoryError(f'{name} has shape {array.shape}, expected (N,).')
    if len(array) < fewest:
        number = 'is one waypoint' if len(array) == 1 else 'are no waypoints'
        expected = 'one' if fewest == 1 else 'two'
        raise TrajectoryError(f'There {number}, expected at least {expected}.')
    if not np.all(np.isfinite(array)):
        index = int(np.argmin(np.isfinite(array)))
        raise TrajectoryError(
            f'{name}[{index}] is {array[index]}; all times must be finite.'
        )
    increases = array[1:] > array[:-1]
    if not np.all(increases):
        index = int(np.argmin(increases))
        first, second = float(array[index]), float(array[index + 1])
        raise TrajectoryError(
            f'{name} must increase strictly, but {name}[{index}] = {first!r} s is followed by '
            f'{name}[{index + 1}] = {second!r} s; remove or move one of them.'
        )
    return array


def divided_times(times: Array, rate: float) -> Array:
    """Times (N,) with as many more between them, equally far apart, as make a rate [Hz].

    Parameters
    ----------
    times : ndarray, shape (N,)
        Increasing [s].
    rate : float
        At least so many a second [Hz].

    Returns
    -------
    ndarray
        Increasing, with the given ones among them [s].
    """
    counts = np.maximum(1, np.ceil(np.diff(times) * rate - 1e-9)).astype(int)
    parts = map(
        partial(np.linspace, endpoint=False), times[:-1], times[1:], counts.tolist()
    )
    return np.concatenate([*parts, times[-1:]])


def checked_positions(
    positions: ArrayLike, n_points: int, joint_names: Sequence[str] | None = None
) -> Array:
    """Positions of all waypoints as a new array (n_points, n) of finite values.

    Parameters
    ----------
    positions : array-like, shape (n_points, n)
        [rad] or [m].
    n_points : int
        Number of waypoints.
    joint_names : sequence of str, optional
        Of the n columns.

    Returns
    -------
    ndarray, shape (n_points, n)

    Raises
    ------
    TrajectoryError
        If they have another shape, a row is missing, or a value is not finite.
    """
    array = real_numbers(positions, 'positions')
    n_joints = None if joint_names is None else len(joint_names)
    fits = array.ndim == 2 and len(array) == n_points and array.shape[1] > 0
    if not fits or n_joints not in (None, array.shape[1]):
        raise TrajectoryError(
            f'positions has shape {array.shape}, expected ({n_points}, {n_joints or "n"}): one '
            f'row for each of the {n_points} times, one column for each joint.'
        )
    missing = np.all(np.isnan(array), axis=1)
    if np.any(missing):
        raise TrajectoryError(
            f'Waypoint {int(np.argmax(missing))} has no positions, which every waypoint needs; '
            'velocities and accelerations alone are not integrated.'
        )
    if not np.isfinite(array).all():
        rule = 'all positions must be finite'
        _refuse(~np.isfinite(array), array, 'positions', rule, joint_names)
    return array


def checked_rows(
    values: ArrayLike | None,
    name: str,
    shape: tuple[int, ...],
    joint_names: Sequence[str] | None = None,
) -> tuple[Array, Flags]:
    """Values that may leave whole rows open, and the rows that are given.

    The values are those given, of the given shape, with rows of NaN where nothing is; None: no row
    is. `name` and `joint_names`, of the columns, are for messages.

    Parameters
    ----------
    values : array-like, optional
        Of the given shape; rows of NaN are not given.
    name : str
        Of the values.
    shape : tuple of int
        (N, n)
    joint_names : sequence of str, optional
        Of the n columns.

    Returns
    -------
    values : ndarray, shape (N, n)
    given : ndarray of bool, shape (N,)

    Raises
    ------
    TrajectoryError
        If they have another shape, or a value is not finite where its row is given.
    """
    if values is None:
        return np.full(shape, np.nan), np.zeros(shape[0], dtype=np.bool_)
    array = real_numbers(values, name)
    if array.shape != shape:
        raise TrajectoryError(
            f'{name} has shape {array.shape}, expected {shape} with rows of NaN where nothing is '
            'given.'
        )
    given = ~np.all(np.isnan(array), axis=1)
    bad = given[:, None] & ~np.isfinite(array)
    if bad.any():
        rule = 'a row is either given with finite values or all NaN'
        _refuse(bad, array, name, rule, joint_names)
    return array, given


def _refuse(
    bad: Flags, array: Array, name: str, rule: str, joint_names: Sequence[str] | None
) -> None:
    """Refuse an array for the first value that is bad, with the rule that it breaks."""
    row, column = (int(index) for index in np.argwhere(bad)[0])
    joint = f' (joint {joint_names[column]})' if joint_names is not None else ''
    raise TrajectoryError(
        f'{name}[{row}, {column}] is {array[row, column]}{joint}; {rule}.'
    )
