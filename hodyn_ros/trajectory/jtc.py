"""The motion of joint_trajectory_controller through waypoints, exactly.

The rules are those of ros2_controllers (`Trajectory::interpolate_between_points`, interpolation
method `splines`): a polynomial of degree 1, 3 or 5 between two waypoints, depending on what both
of them have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import factorial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.errors import TrajectoryError
from hodyn_ros.trajectory.immutable import Immutable
from hodyn_ros.trajectory.piecewise import (
    HIGHEST_DERIVATIVE,
    Knots,
    continuous_derivative,
    evaluate,
)
from hodyn_ros.trajectory.timeline import Flags, checked_positions, checked_rows, checked_times

Array = NDArray[np.float64]

_DEGREE = 5

# _DERIVATIVE[k, j]: k-th derivative of x^j at x = 1.
_DERIVATIVE = np.array(
    [
        [factorial(j) / factorial(j - k) if j >= k else 0.0 for j in range(_DEGREE + 1)]
        for k in range(_DEGREE + 1)
    ]
)


@dataclass(frozen=True, eq=False)
class JtcMotion(Immutable, Knots):
    """Motion of joint_trajectory_controller through waypoints; immutable. Made by `jtc_motion`.

    Examples
    --------
    >>> from hodyn_ros.trajectory.jtc import jtc_motion
    >>> motion = jtc_motion([0.0, 1.0, 2.0], [[0.0], [1.0], [0.5]])
    >>> motion([0.0, 0.7]).shape, motion.continuous_derivative
    ((2, 5, 1), 0)
    """

    times: Array
    """Times of the N waypoints, shape (N,) [s]."""
    degrees: NDArray[np.intp]
    """Degree of every segment: 1, 3 or 5, shape (N - 1,)."""
    expansions: Array
    """Derivatives 0 to 5 of the polynomial of every segment at its start and at its end, shape
    (N - 1, 2, 6, n) [rad/s^k] or [m/s^k]."""
    continuous_derivative: int
    """Highest time derivative of the positions, of the first four, up to which all are continuous
    from the first waypoint to the last: 0 with segments of degree 1, 1 with degree 3 and 2 with
    degree 5, more where neighbouring segments happen to fit. Jumps that rounding of the waypoints
    would cause do not count."""

    def __call__(self, t: ArrayLike, highest_derivative: int = HIGHEST_DERIVATIVE) -> Array:
        """Motion at given times.

        Parameters
        ----------
        t : array-like, shape (...)
            Times from `start_time` to `end_time` [s].
        highest_derivative : int
            Highest time derivative wanted, 0 to 9. Those beyond `continuous_derivative` jump at
            waypoints, where the value behind the waypoint is returned.

        Returns
        -------
        ndarray, shape (..., highest_derivative + 1, n)
            `[..., k, :]` is the k-th time derivative of the positions [rad/s^k] or [m/s^k]. At
            the end of the motion it is the value before it, while the controller commands the
            last waypoint there, with zeros for what that does not give.

        Raises
        ------
        TrajectoryError
            If a time lies outside of the motion or the order of the derivative is impossible.
        """
        return evaluate(self.times, self.expansions, t, highest_derivative)


def jtc_motion(
    times: ArrayLike,
    positions: ArrayLike,
    velocities: ArrayLike | None = None,
    accelerations: ArrayLike | None = None,
) -> JtcMotion:
    """Motion of joint_trajectory_controller through waypoints (interpolation method splines).

    Between two waypoints that both have velocities and accelerations it is of degree 5, if both
    have velocities but not both have accelerations of degree 3, otherwise of degree 1.

    Parameters
    ----------
    times : array-like, shape (N,)
        Strictly increasing, N >= 2 [s].
    positions : array-like, shape (N, n)
        [rad] or [m]
    velocities, accelerations : array-like, shape (N, n), optional
        [rad/s] or [m/s] and their rates. A row of NaN is not given.

    Returns
    -------
    JtcMotion

    Raises
    ------
    TrajectoryError
        If shapes do not fit, values are not finite, times do not increase strictly, or two
        neighbours both have accelerations but not both have velocities, for which the controller
        has no interpolation.
    """
    times = checked_times(times, fewest=2)
    positions = checked_positions(positions, len(times))
    velocities, has_velocity = checked_rows(velocities, 'velocities', positions.shape)
    accelerations, has_acceleration = checked_rows(accelerations, 'accelerations', positions.shape)
    degrees = segment_degrees(has_velocity, has_acceleration)
    if np.any(degrees == 0):
        index = int(np.argmin(degrees))
        raise TrajectoryError(
            f'Waypoints {index} and {index + 1}, at {float(times[index])!r} s and '
            f'{float(times[index + 1])!r} s, have accelerations but not both have velocities; '
            'joint_trajectory_controller does not interpolate between such points. Give '
            'velocities too, leave the accelerations out, or use the spline.'
        )
    expansions = jtc_expansions(times, positions, velocities, accelerations)
    if not np.all(np.isfinite(expansions)):
        raise TrajectoryError(
            'The motion through these waypoints cannot be computed in double precision: the '
            f'shortest time between waypoints is {float(np.diff(times).min())!r} s. Check the '
            'units and merge waypoints that are too close.'
        )
    return JtcMotion(times, degrees, expansions, continuous_derivative(times, expansions))


def spline_of_degree_5(coefficients: ArrayLike, step: float) -> JtcMotion:
    """Spline of class C4 with knots at equal distances, as the controller executes it.

    It is made of the positions, velocities and accelerations at its knots. Each derivative is a
    mean of neighbouring differences of the coefficients, of that order.

    Parameters
    ----------
    coefficients : array-like, shape (M, n)
        Of its B-splines, M >= 6 [rad] or [m]. Five equal ones in a row are an instant of rest.
    step : float
        Between knots, a whole number of nanoseconds [s].

    Returns
    -------
    JtcMotion
        With M - 4 knots, the first one at zero.
    """
    c = np.asarray(coefficients, dtype=np.float64)
    second, third = (np.diff(c, k, axis=0) for k in (2, 3))
    fourth = np.diff(third, axis=0)
    slopes = c[1:-1] + second / 12.0
    motion = jtc_motion(
        np.arange(len(fourth)) * round(1e9 * step) / 1e9,
        c[2:-2] + second[1:-1] / 4.0 + fourth / 120.0,
        (slopes[2:] - slopes[:-2]) / (2.0 * step),
        (second[1:-1] + fourth / 6.0) / step**2,
    )
    expansions = motion.expansions.copy()
    # At the knots these are exact; the controller's formulas round them.
    for k, values in ((3, (third[1:] + third[:-1]) / 2.0), (4, fourth)):
        expansions[:, 0, k], expansions[:, 1, k] = values[:-1] / step**k, values[1:] / step**k
    return replace(motion, expansions=expansions, continuous_derivative=4)


def segment_degrees(has_velocity: Flags, has_acceleration: Flags) -> NDArray[np.intp]:
    """Degree of every segment; 0 where the controller has no interpolation.

    Parameters
    ----------
    has_velocity, has_acceleration : ndarray of bool, shape (N,)
        What the waypoints have.

    Returns
    -------
    ndarray of int, shape (N - 1,)
    """
    velocities = has_velocity[:-1] & has_velocity[1:]
    accelerations = has_acceleration[:-1] & has_acceleration[1:]
    degrees: NDArray[np.intp] = np.where(
        velocities, np.where(accelerations, 5, 3), np.where(accelerations, 0, 1)
    ).astype(np.intp)
    return degrees


def jtc_expansions(
    times: Array, positions: Array, velocities: Array, accelerations: Array
) -> Array:
    """Compute derivatives 0 to 5 at both ends of every segment.

    Parameters
    ----------
    times : ndarray, shape (N,)
    positions, velocities, accelerations : ndarray, shape (N, n)
        NaN where not given.

    Returns
    -------
    ndarray, shape (N - 1, 2, 6, n)
        NaN in segments that the controller does not interpolate.
    """
    degrees = segment_degrees(~np.isnan(velocities[:, 0]), ~np.isnan(accelerations[:, 0]))
    h = np.diff(times)[:, None]
    with np.errstate(all='ignore'):
        coefficients = _coefficients(h, positions, velocities, accelerations, degrees)
        expansions = np.empty((len(h), 2, _DEGREE + 1, positions.shape[1]))
        for k in range(_DEGREE + 1):
            expansions[:, 0, k] = factorial(k) * coefficients[:, k] / h**k
            expansions[:, 1, k] = (_DERIVATIVE[k] @ coefficients) / h**k
    # What both ends have is met without rounding.
    defined = degrees > 0
    for k, rows in ((0, positions), (1, velocities), (2, accelerations)):
        met = defined & (degrees > 2 * k)
        expansions[met, 0, k] = rows[:-1][met]
        expansions[met, 1, k] = rows[1:][met]
    return expansions


def _coefficients(
    h: Array, positions: Array, velocities: Array, accelerations: Array, degrees: NDArray[np.intp]
) -> Array:
    """Coefficients of every segment in (t - t_i) / h, shape (N - 1, 6, n), lowest degree first."""
    rise = np.diff(positions, axis=0)
    coefficients = np.zeros((len(h), _DEGREE + 1, positions.shape[1]))
    coefficients[:, 0] = positions[:-1]
    coefficients[:, 1] = rise

    # What the polynomial that starts as the first point does misses of the second one.
    v = velocities[:-1] * h
    p_gap, v_gap = rise - v, velocities[1:] * h - v
    cubics = v, 3.0 * p_gap - v_gap, v_gap - 2.0 * p_gap
    is_cubic = degrees == 3
    for k, values in enumerate(cubics, start=1):
        coefficients[is_cubic, k] = values[is_cubic]

    a = accelerations[:-1] * h**2
    p_gap, v_gap = p_gap - 0.5 * a, v_gap - a
    a_gap = accelerations[1:] * h**2 - a
    quintics = (
        v,
        0.5 * a,
        10.0 * p_gap - 4.0 * v_gap + 0.5 * a_gap,
        -15.0 * p_gap + 7.0 * v_gap - a_gap,
        6.0 * p_gap - 3.0 * v_gap + 0.5 * a_gap,
    )
    is_quintic = degrees == 5
    for k, values in enumerate(quintics, start=1):
        coefficients[is_quintic, k] = values[is_quintic]
    coefficients[degrees == 0] = np.nan
    return coefficients
