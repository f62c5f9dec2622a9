"""Points on a timeline: their checks, and the segments between them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.errors import TrajectoryError

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

_NUMBERS = ('none', 'one', 'two')


def real_numbers(values: ArrayLike, name: str) -> Array:
    """Values as a new float64 array.

    Raises
    ------
    TrajectoryError
        If they are no array of real numbers, or some are masked.
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
        raise TrajectoryError(f'{name} has elements of type {array.dtype}, expected real numbers.')
    return array.astype(np.float64)


def checked_times(times: ArrayLike, fewest: int) -> Array:
    """Return the times of at least `fewest` waypoints as a new array of shape (N,).

    Raises
    ------
    TrajectoryError
        If they have another shape, are not finite or do not increase strictly.
    """
    array = real_numbers(times, 'times')
    if array.ndim != 1:
        raise TrajectoryError(f'times has shape {array.shape}, expected (N,).')
    if len(array) < fewest:
        number = 'is one waypoint' if len(array) == 1 else 'are no waypoints'
        raise TrajectoryError(f'There {number}, expected at least {_NUMBERS[fewest]}.')
    if not np.all(np.isfinite(array)):
        index = int(np.argmin(np.isfinite(array)))
        raise TrajectoryError(f'times[{index}] is {array[index]}; all times must be finite.')
    increases = array[1:] > array[:-1]
    if not np.all(increases):
        index = int(np.argmin(increases))
        first, second = float(array[index]), float(array[index + 1])
        raise TrajectoryError(
            f'times must increase strictly, but times[{index}] = {first!r} s is followed '
            f'by times[{index + 1}] = {second!r} s; remove or move one of the waypoints.'
        )
    return array


def checked_positions(
    positions: ArrayLike, n_points: int, joint_names: Sequence[str] | None = None
) -> Array:
    """Positions of all waypoints as a new array of shape (n_points, n).

    Raises
    ------
    TrajectoryError
        If they have another shape or are not finite.
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
    _refuse(~np.isfinite(array), array, 'positions', 'all positions must be finite', joint_names)
    return array


def checked_rows(
    values: ArrayLike | None,
    name: str,
    shape: tuple[int, ...],
    joint_names: Sequence[str] | None = None,
) -> tuple[Array, Flags]:
    """Values that whole rows may leave open, and the rows that are given.

    Parameters
    ----------
    values : array-like of the given shape, or None
        A row of NaN is not given; None: no row is.
    name : str
        What the values are called in error messages.
    shape : tuple
    joint_names : sequence of str, optional
        Names of the columns in error messages.

    Returns
    -------
    values : ndarray
        NaN where not given.
    given : ndarray of bool, shape (shape[0],)

    Raises
    ------
    TrajectoryError
        If the shape is another one, a value is infinite or a row is NaN only in part.
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
    rule = 'a row is either given with finite values or all NaN'
    _refuse(given[:, None] & ~np.isfinite(array), array, name, rule, joint_names)
    return array, given


def _refuse(
    bad: Flags, array: Array, name: str, rule: str, joint_names: Sequence[str] | None
) -> None:
    if not np.any(bad):
        return
    row, column = (int(index) for index in np.argwhere(bad)[0])
    joint = f' (joint {joint_names[column]})' if joint_names is not None else ''
    raise TrajectoryError(f'{name}[{row}, {column}] is {array[row, column]}{joint}; {rule}.')


def segments_at(times: Array, t: Array) -> NDArray[np.intp]:
    """Index i of the segment `times[i] <= t < times[i + 1]`; the last one holds its end too.

    Parameters
    ----------
    times : ndarray, shape (N,)
        Increasing, N >= 2 [s].
    t : ndarray, shape (M,)
        [s]

    Raises
    ------
    TrajectoryError
        If a time is NaN or lies before the first or behind the last of `times`.
    """
    # Written such that NaN is outside.
    inside = (t >= times[0]) & (t <= times[-1])
    if not inside.all():
        outside = float(t[np.argmin(inside)])
        raise TrajectoryError(
            f'The time {outside!r} s lies outside of the motion, which lasts from '
            f'{float(times[0])!r} s to {float(times[-1])!r} s.'
        )
    segments: NDArray[np.intp] = times[1:-1].searchsorted(t, side='right')
    return segments
