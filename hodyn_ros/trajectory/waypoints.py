"""Waypoints: their checks, and between which of them a motion stands still."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.display import shown
from hodyn_ros.errors import TrajectoryError
from hodyn_ros.typing import Array, Flags

STANDSTILL = float(np.finfo(np.float32).eps)
"""Velocity [rad/s] and acceleration [rad/s^2] up to which an end of the motion counts as resting;
joint_trajectory_controller uses the same value for the velocity at the end."""

# Difference of positions, relative to the largest one of the joint, up to which it is rounding.
_LARGEST_ROUNDING = 4096.0 * float(np.finfo(np.float64).eps)


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
class Waypoints(Immutable):
    """Points of a joint trajectory; immutable.

    Raises
    ------
    TrajectoryError
        If there is no joint or no point, shapes do not fit, times do not increase strictly, a
        point has no positions, or a value is infinite or NaN where its row is given.

    Examples
    --------
    >>> from hodyn_ros.trajectory import Waypoints
    >>> waypoints = Waypoints(('shoulder', 'elbow'), [0.0, 1.0], [[0.0, 0.1], [0.5, 0.2]])
    >>> waypoints.positions.shape, waypoints.velocities
    ((2, 2), array([[nan, nan],
           [nan, nan]]))
    """

    joint_names: tuple[str, ...]
    """Names of the n joints, in the order of the columns."""
    times: Array
    """Times from the start of the N points, shape (N,) [s]."""
    positions: Array
    """Shape (N, n) [rad] or [m]."""
    velocities: Array = None  # type: ignore[assignment]
    """Shape (N, n) [rad/s] or [m/s]; rows of NaN where a point has none. None: all such rows."""
    accelerations: Array = None  # type: ignore[assignment]
    """Shape (N, n) [rad/s^2] or [m/s^2]; likewise."""

    def __post_init__(self) -> None:
        names = tuple(self.joint_names)
        if not names:
            raise TrajectoryError(
                'joint_names is empty, expected the name of at least one joint.'
            )
        times = checked_times(self.times, fewest=1)
        shape = (len(times), len(names))
        fields = {
            'times': times,
            'positions': checked_positions(self.positions, len(times), names),
            'velocities': checked_rows(self.velocities, 'velocities', shape, names)[0],
            'accelerations': checked_rows(
                self.accelerations, 'accelerations', shape, names
            )[0],
        }
        object.__setattr__(self, 'joint_names', names)
        for field, array in fields.items():
            object.__setattr__(self, field, array)
        super().__post_init__()

    @property
    def rows(self) -> tuple[Array, Array, Array]:
        """Positions, velocities and accelerations.

        Returns
        -------
        positions, velocities, accelerations : ndarray, shape (N, n)
            Rows of NaN where a point has none.
        """
        return self.positions, self.velocities, self.accelerations


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
    n_joints = None if joint_names is None else len(joint_names)
    array, given = checked_rows(positions, 'positions', (n_points, n_joints), joint_names)
    if not given.all():
        raise TrajectoryError(
            f'Waypoint {int(np.argmin(given))} has no positions, which every waypoint needs; '
            'velocities and accelerations alone are not integrated.'
        )
    return array


def checked_rows(
    values: ArrayLike | None,
    name: str,
    shape: tuple[int, int | None],
    joint_names: Sequence[str] | None = None,
) -> tuple[Array, Flags]:
    """Values that may leave whole rows open, and the rows that are given.

    Parameters
    ----------
    values : array-like, optional
        Rows of NaN are not given; None: no row is.
    name : str
        Of the values, for messages.
    shape : tuple of int
        Wanted, (N, n); n is None if any number of columns but zero will do.
    joint_names : sequence of str, optional
        Of the n columns, for messages.

    Returns
    -------
    values : ndarray, shape (N, n)
        With rows of NaN where nothing is given.
    given : ndarray of bool, shape (N,)

    Raises
    ------
    TrajectoryError
        If they have another shape, or a value is not finite where its row is given.
    """
    N, n = shape
    array = np.full((N, n or 0), np.nan) if values is None else real_numbers(values, name)
    if (
        array.ndim != 2
        or len(array) != N
        or array.shape[1] != (n or max(1, array.shape[-1]))
    ):
        raise TrajectoryError(
            f'{name} has shape {array.shape}, expected ({N}, {n or "n"}): one column for each '
            'joint, with rows of NaN where nothing is given.'
        )
    given: Flags = ~np.all(np.isnan(array), axis=1)
    bad = np.argwhere(given[:, None] & ~np.isfinite(array)).tolist()
    if bad:
        row, column = bad[0]
        joint = f' (joint {joint_names[column]})' if joint_names is not None else ''
        raise TrajectoryError(
            f'{name}[{row}, {column}] is {array[row, column]}{joint}; a row is either given with '
            'finite values or all NaN.'
        )
    return array, given


def standing(times: Array, values: Array, given: Flags) -> Flags:
    """Find the waypoints between which the motion stands still, see `fit_spline`; shape (N,)."""
    with np.errstate(over='ignore'):
        h, steps = np.diff(times)[:, None], np.diff(values[:, 0], axis=0)
    can_rest = np.all(np.abs(values[:, 1:]) <= STANDSTILL, axis=(1, 2))
    rounding = _LARGEST_ROUNDING * np.abs(values[:, 0]).max(axis=0)
    still = np.all(np.abs(steps) <= rounding, axis=1) & can_rest[:-1] & can_rest[1:]
    # Single ones between two moving segments on both sides may be where the motion turns back.
    single = 2 + np.flatnonzero(still[2:-2] & ~still[1:-3] & ~still[3:-1])
    at_rest = given[:, 1] & can_rest
    single = single[~(at_rest[single] & at_rest[single + 1])]
    turns = np.ones(len(single), dtype=np.bool_)
    with np.errstate(all='ignore'):
        for side in (-1, 1):
            near, far = single + side, single + 2 * side
            rate, farther = steps[near] / h[near], steps[far] / h[far]
            lead = (h[near] + h[single]) / (h[near] + h[far])
            missed = np.linalg.norm(rate + lead * (rate - farther), axis=1)
            turns &= missed <= 0.5 * np.linalg.norm(rate, axis=1)
    still[single[turns]] = False
    standing: Flags = np.append(still, False) | np.insert(still, 0, False)
    return standing
