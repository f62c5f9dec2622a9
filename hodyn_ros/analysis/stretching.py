"""Motions as functions of time, and the same motions played slower or faster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.actuators.composition import compose
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import MotionError, WrenchError
from hodyn_ros.trajectory.timeline import real_numbers

Array = NDArray[np.float64]

WrenchFunction = Callable[[Array, int], 'Wrench | Sequence[Wrench]']
"""Wrenches as a function of time or of a path parameter: from its values (N,) and a number of
orders to wrenches whose values have the shape (N, orders, 6), derivatives with respect to it."""


class TimedMotion(Protocol):
    """Motion of n joints as a function of time, such as a `MotionSpline`."""

    @property
    def start_time(self) -> float:
        """Time at which it begins [s]."""

    @property
    def end_time(self) -> float:
        """Time at which it ends [s]."""

    def __call__(self, t: ArrayLike, highest_derivative: int = 4) -> Array:
        """Motion at times (...), shape (..., highest_derivative + 1, n)."""


def knots_of(motion: TimedMotion) -> Array | None:
    """Read the times between which a motion is smooth, its array `times`, if it has one.

    Returns
    -------
    ndarray, shape (N,) or None
        From its start to its end [s].
    """
    times = getattr(motion, 'times', None)
    if not isinstance(times, np.ndarray) or times.ndim != 1 or times.dtype.kind not in 'fiu':
        return None
    ends = float(motion.start_time), float(motion.end_time)
    inside = times[(times > ends[0]) & (times < ends[1])]
    return np.unique(np.concatenate((ends, inside)))


def at_rate(series: Array, s: float) -> Array:
    """Series of shape (..., K, n) of what is played at the rate s."""
    return series * s ** np.arange(float(series.shape[-2]))[:, None]


def wrenches_along(wrench: WrenchFunction, parameter: Array) -> tuple[Wrench, ...]:
    """Wrenches along a moving parameter.

    Parameters
    ----------
    wrench : callable
    parameter : ndarray, shape (N, E)
        Series of the parameter.

    Returns
    -------
    tuple of Wrench
        With values of shape (N, E, 6), time derivatives.

    Raises
    ------
    WrenchError
        If the function returns something else, or too few orders.
    """
    E = parameter.shape[1]
    given = wrench(parameter[:, 0], E)
    found = []
    for item in (given,) if isinstance(given, Wrench) else given:
        values = np.asarray(item.values) if isinstance(item, Wrench) else np.zeros(0)
        if values.ndim not in (2, 3) or values.shape[-2] != E:
            raise WrenchError(
                f'The function wrench(parameter, {E}) gave {type(item).__name__} with values of '
                f'shape {values.shape}, expected wrenches with values of shape '
                f'({len(parameter)}, {E}, 6): derivatives with respect to its parameter.'
            )
        series = compose(np.swapaxes(values, -1, -2), parameter[:, None, :])
        found.append(replace(item, values=np.swapaxes(series, -1, -2)))
    return tuple(found)


def stretched(motion: ArrayLike, factor: float) -> Array:
    """Play samples of a motion with a time factor.

    Parameters
    ----------
    motion : array-like, shape (..., K, n)
    factor : float
        Above zero.

    Returns
    -------
    ndarray, shape (..., K, n)
        `[..., k, :]` is divided by factor^k. The times of the samples take the factor, too.

    Raises
    ------
    MotionError
        If the factor is not positive or the motion has no such shape.
    """
    array = np.asarray(motion, dtype=np.float64)
    if array.ndim < 2:
        raise MotionError(f'The motion has shape {array.shape}, expected (..., K, n).')
    return at_rate(array, 1.0 / _checked_factor(factor))


@dataclass(frozen=True)
class StretchedMotion:
    """A motion that is played with a time factor, from the same start time.

    Attributes
    ----------
    motion : function of time
        Such as a `MotionSpline`.
    factor : float
        Above zero.

    Raises
    ------
    MotionError
        If the factor is not positive.
    """

    motion: TimedMotion
    factor: float

    def __post_init__(self) -> None:
        object.__setattr__(self, 'factor', _checked_factor(self.factor))

    @property
    def start_time(self) -> float:
        """Time at which it begins [s]."""
        return self.motion.start_time

    @property
    def end_time(self) -> float:
        """Time at which it ends [s]."""
        return self.start_time + self.duration

    @property
    def duration(self) -> float:
        """Time that it takes [s]."""
        return self.factor * (self.motion.end_time - self.motion.start_time)

    @property
    def times(self) -> Array:
        """Times of its knots [s]: those of the motion, or only start and end if it has none."""
        knots = knots_of(self.motion)
        if knots is None:
            return np.array([self.start_time, self.end_time])
        return self.start_time + self.factor * (knots - self.start_time)

    def __call__(self, t: ArrayLike, highest_derivative: int = 4) -> Array:
        """Motion at given times; see `MotionSpline`."""
        offset = (real_numbers(t, 't') - self.start_time) / self.factor
        # The last time must not end up behind the end by rounding.
        time = self.start_time + offset
        end = self.motion.end_time
        time = np.where(np.abs(time - end) <= 4.0 * np.spacing(abs(end)), end, time)
        return stretched(self.motion(time, highest_derivative), self.factor)


def _checked_factor(factor: float) -> float:
    if not (np.isfinite(factor) and factor > 0.0):
        raise MotionError(f'The time factor is {factor!r}, expected a positive finite number.')
    return float(factor)
