"""The motion of joint_trajectory_controller through waypoints, exactly.

The rules are those of `Trajectory::interpolate_between_points` and, for positions alone on
request, `fill_cubic_spline_velocities` of ros2_controllers (commit 94e74de35, August 2026), with
interpolation method `splines`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import finite_array
from hodyn_ros.display import shown
from hodyn_ros.errors import TrajectoryError
from hodyn_ros.trajectory.motion import HIGHEST_DERIVATIVE, PiecewiseMotion, hermite
from hodyn_ros.trajectory.waypoints import checked_positions, checked_rows, checked_times
from hodyn_ros.typing import Array, Indices
from hodyn_ros.units import NANOSECONDS

_DEGREE = 5

# Jump of a derivative, relative to the size of the motion next to it, up to which it is rounding:
# that of the waypoints, which the coefficients of degree 5 enlarge by some hundreds.
_ROUNDING = 1e4 * float(np.finfo(np.float64).eps)


@shown
@dataclass(frozen=True, eq=False)
class JtcMotion(PiecewiseMotion):
    """Motion of joint_trajectory_controller through waypoints; immutable. Made by `jtc_motion`.

    It is continuous up to the position with segments of degree 1, the velocity with degree 3 and
    the acceleration with degree 5, higher where neighbouring segments happen to fit. At its end it
    is the value before it, while the controller commands the last waypoint there, with zeros for
    what that does not give.

    Examples
    --------
    >>> from hodyn_ros.trajectory import jtc_motion
    >>> motion = jtc_motion([0.0, 1.0, 2.0], [[0.0], [1.0], [0.5]])
    >>> motion([0.0, 0.7]).shape, motion.continuous_derivative
    ((2, 5, 1), 0)
    """

    degrees: Indices
    """Degree of every segment: 1, 3 or 5, shape (N - 1,)."""


def jtc_motion(
    times: ArrayLike,
    positions: ArrayLike,
    velocities: ArrayLike | None = None,
    accelerations: ArrayLike | None = None,
    *,
    positions_upsampling: bool = False,
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
    positions_upsampling : bool
        As with `positions_upsampling.enable` of the controller: waypoints of which none has a
        velocity or an acceleration are joined by the cubic spline of class C2 from rest to rest.

    Returns
    -------
    JtcMotion
        Its `degrees` say which segments are of degree 1, 3 and 5.

    Raises
    ------
    TrajectoryError
        If shapes do not fit, values are not finite, times do not increase strictly, or two
        neighbours both have accelerations but not both have velocities, for which the controller
        has no interpolation.

    Examples
    --------
    Straight lines without velocities, a cubic polynomial with them:

    >>> from hodyn_ros.trajectory import jtc_motion
    >>> jtc_motion([0.0, 1.0], [[0.0], [1.0]]).degrees
    array([1])
    >>> motion = jtc_motion([0.0, 1.0], [[0.0], [1.0]], velocities=[[0.0], [0.0]])
    >>> motion.degrees, motion(0.25, highest_derivative=1).round(3)
    (array([3]), array([[0.156],
           [1.125]]))
    """
    times = checked_times(times, fewest=2)
    positions = checked_positions(positions, len(times))
    velocities, _ = checked_rows(velocities, 'velocities', positions.shape)
    accelerations, _ = checked_rows(accelerations, 'accelerations', positions.shape)
    if positions_upsampling:
        velocities = upsampled_velocities(times, positions, velocities, accelerations)
    degrees = segment_degrees(velocities, accelerations)
    if np.any(degrees == 0):
        index = int(np.argmin(degrees))
        raise TrajectoryError(
            f'Waypoints {index} and {index + 1}, at {float(times[index])!r} s and '
            f'{float(times[index + 1])!r} s, have accelerations but not both have velocities; '
            'joint_trajectory_controller does not interpolate between such points. Give '
            'velocities too, leave the accelerations out, or use the spline.'
        )
    h, states = np.diff(times), np.stack([positions, velocities, accelerations], axis=1)
    expansions = np.zeros((len(h), 2, _DEGREE + 1, positions.shape[1]))
    with np.errstate(all='ignore'):
        for m in (1, 2, 3):
            which = np.flatnonzero(degrees == 2 * m - 1)
            rows = states[which, :m], states[which + 1, :m]
            expansions[which, :, : 2 * m] = hermite(h[which], *rows)
    if not np.all(np.isfinite(expansions)):
        raise TrajectoryError(
            'The motion through these waypoints cannot be computed in double precision: the '
            f'shortest time between waypoints is {float(np.diff(times).min())!r} s. Check the '
            'units and merge waypoints that are too close.'
        )
    return JtcMotion(times, expansions, _continuous(times, expansions), degrees)


def spline_of_degree_5(coefficients: ArrayLike, step: float) -> JtcMotion:
    """Spline of class C4 with knots at equal distances, as the controller executes it.

    Parameters
    ----------
    coefficients : array-like, shape (M, n)
        Of its B-splines, M >= 6 [rad] or [m]. Five equal ones in a row are an instant of rest.
    step : float
        Between its M - 4 knots, the first one at zero; a whole number of nanoseconds [s].

    Returns
    -------
    JtcMotion
        From the time zero on, continuous up to the snap.

    Raises
    ------
    TrajectoryError
        If there are too few coefficients, or some are not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros.trajectory import spline_of_degree_5
    >>> coefficients = np.array([0.0] * 5 + [0.5] + [1.0] * 5)[:, None]
    >>> motion = spline_of_degree_5(coefficients, 0.1)
    >>> motion.end_time, motion.continuous_derivative, motion(0.3, 0).round(3)
    (0.6, 4, array([[0.5]]))
    """
    c = finite_array('coefficients', coefficients, TrajectoryError)
    if c.ndim != 2 or len(c) <= _DEGREE:
        raise TrajectoryError(
            f'coefficients has shape {c.shape}, expected (M, n) with M >= 6.'
        )
    # Each derivative is a mean of neighbouring differences of the coefficients, of that order.
    second, third, fourth, fifth = (np.diff(c, k, axis=0) for k in (2, 3, 4, 5))
    slopes = c[1:-1] + second / 12.0
    at_knots = (
        c[2:-2] + second[1:-1] / 4.0 + fourth / 120.0,
        (slopes[2:] - slopes[:-2]) / 2.0,
        second[1:-1] + fourth / 6.0,
        (third[1:] + third[:-1]) / 2.0,
        fourth,
    )
    expansions = np.empty((len(fifth), 2, _DEGREE + 1, c.shape[1]))
    for k, values in enumerate(at_knots):
        expansions[:, 0, k], expansions[:, 1, k] = (
            values[:-1] / step**k,
            values[1:] / step**k,
        )
    expansions[:, :, _DEGREE] = fifth[:, None] / step**_DEGREE
    times = np.arange(len(fourth)) * round(NANOSECONDS * step) / NANOSECONDS
    return JtcMotion(times, expansions, 4, np.full(len(fifth), _DEGREE))


def upsampled_velocities(
    times: Array, positions: Array, velocities: Array, accelerations: Array
) -> Array:
    """Compute what the controller gives waypoints with positions alone, shape (N, n).

    The velocities that make the acceleration of the cubics continuous, zero at both ends. Those
    that are given if any velocity or acceleration is, or if there is one waypoint only.

    Parameters
    ----------
    times : ndarray, shape (N,)
        [s]
    positions : ndarray, shape (N, n)
        [rad] or [m].
    velocities, accelerations : ndarray, shape (N, n)
        Rows of NaN are not given.

    Returns
    -------
    ndarray, shape (N, n)
        [rad/s] or [m/s].
    """
    from scipy.interpolate import CubicSpline

    if len(times) < 2 or not np.all(np.isnan([velocities, accelerations])):
        return velocities
    supplied: Array = CubicSpline(times, positions, bc_type='clamped')(times, 1)
    supplied[[0, -1]] = 0.0  # without rounding
    return supplied


def segment_degrees(velocities: Array, accelerations: Array) -> Indices:
    """Degree of every segment, by which rows are not NaN; 0 where there is no interpolation.

    Parameters
    ----------
    velocities, accelerations : ndarray, shape (N, n)
        Of the waypoints; rows of NaN are not given.

    Returns
    -------
    ndarray of int, shape (N - 1,)
        0, 1, 3 or 5.
    """
    has_velocity, has_acceleration = (
        ~np.isnan(rows[:-1, 0]) & ~np.isnan(rows[1:, 0])
        for rows in (velocities, accelerations)
    )
    degrees: Indices = np.where(
        has_velocity, np.where(has_acceleration, 5, 3), np.where(has_acceleration, 0, 1)
    ).astype(np.intp)
    return degrees


def _continuous(times: Array, expansions: Array) -> int:
    """Highest derivative, of the first four, up to which none jumps; see `PiecewiseMotion`."""
    h = np.diff(times)[:, None]
    powers = h[:, None] ** np.arange(expansions.shape[2])[:, None]
    size = (np.abs(expansions).max(axis=1) * powers).max(axis=1)
    # A duration is as uncertain as the times that it is the difference of.
    size += np.abs(times).max() * np.abs(expansions[:, :, 1]).max(axis=1)
    size = np.maximum(size[:-1], size[1:])
    orders = slice(1, HIGHEST_DERIVATIVE + 1)
    jump = np.abs(expansions[1:, 0, orders] - expansions[:-1, 1, orders])
    jump *= np.minimum(powers[:-1, orders], powers[1:, orders])
    fits = np.all(jump <= _ROUNDING * size[:, None], axis=(0, 2))
    return int(np.logical_and.accumulate(fits).sum())
