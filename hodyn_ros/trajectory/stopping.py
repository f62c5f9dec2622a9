"""Motion of class C4 from any state to rest."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.errors import TrajectoryError
from hodyn_ros.trajectory.spline import ORDER, MotionSpline, fit_spline
from hodyn_ros.trajectory.timeline import real_numbers

Array = NDArray[np.float64]

# Integral over [0, 1] of the polynomial of degree 7 with the k-th derivative 1 at 0 and the other
# first four derivatives, the zeroth included, zero at 0 and at 1.
_INTEGRALS = np.array([1.0 / 2.0, 3.0 / 28.0, 1.0 / 84.0, 1.0 / 1680.0])


def stop_motion(state: ArrayLike, duration: float, start_time: float = 0.0) -> MotionSpline:
    """Motion from a state to rest, all derivatives up to the snap continuous.

    The velocity is the polynomial of degree 7 that starts with the given velocity, acceleration,
    jerk and snap and ends with zeros. Where the motion ends follows from that.

    Parameters
    ----------
    state : array-like, shape (5, n)
        Position to snap at the start [rad/s^k] or [m/s^k].
    duration : float
        Time until the joints rest [s].
    start_time : float
        [s]

    Returns
    -------
    MotionSpline
        Of degree 8, from `start_time` to `start_time + duration`.

    Raises
    ------
    TrajectoryError
        If the state has another shape or is not finite, a time is no number, or the duration is
        not positive or too short for the derivatives to be computed.
    """
    values = real_numbers(state, 'state')
    if values.ndim != 2 or len(values) != ORDER or not values.shape[1]:
        raise TrajectoryError(
            f'state has shape {values.shape}, expected (5, n): position, velocity, acceleration, '
            'jerk and snap of the joints.'
        )
    if not np.all(np.isfinite(values)):
        row, column = (int(index) for index in np.argwhere(~np.isfinite(values))[0])
        raise TrajectoryError(
            f'state[{row}, {column}] is {values[row, column]}; all values must be finite.'
        )
    is_time = real_numbers([start_time, duration], 'start_time with duration').shape == (2,)
    if not (is_time and np.isfinite(duration) and duration > 0.0):
        raise TrajectoryError(f'duration is {duration!r}, expected a positive time in seconds.')
    times = [start_time, start_time + duration]
    powers = float(duration) ** np.arange(1.0, ORDER)
    end = values[0] + (_INTEGRALS * powers) @ values[1:]
    rest = np.zeros_like(values[1:])
    return fit_spline(times, [values[0], end], start=values[1:], end=rest)
