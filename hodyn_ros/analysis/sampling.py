"""Samples of a motion between which joint_trajectory_controller keeps close to its efforts.

That controller moves along polynomials of degree 5 between points with positions, velocities and
accelerations, and interpolates the efforts of the points linearly. Over a time h the error of that
is at most h^2 max|d^2 Q / dt^2| / 8, and the exact second derivative says how long h may be.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hodyn_ros.checks import checked_number
from hodyn_ros.display import shown
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.errors import RequestError, TrajectoryError
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.trajectory.jtc import JtcMotion, jtc_motion
from hodyn_ros.trajectory.motion import BLOCK, PiecewiseMotion
from hodyn_ros.typing import Array, Indices
from hodyn_ros.units import NANOSECONDS

MOST_POINTS = 100_000

# Part of the tolerance that the choice of the period leaves for the third derivative of efforts.
_AIM = 0.85
# Part of it that the errors found between the samples may take: there may be larger ones nearby.
_FOUND = 0.98
# Parts of a segment at which its curvature is looked at, and of an interval at which its error is.
_LOOKS = np.arange(9) / 8
_BETWEEN = np.arange(1, 8) / 8
# Times of messages are whole nanoseconds; a motion is not sampled at less than some of them.
_SHORTEST = 1e-6
_LARGEST = 1e12  # tolerance, with which nothing is left but waypoints


@shown
class ControllerTrajectory(NamedTuple):
    """Points of a motion for joint_trajectory_controller, with feed-forward efforts.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.analysis import controller_trajectory
    >>> from hodyn_ros.trajectory import fit_spline
    >>> spline = fit_spline([0.0, 1.0], [[0.0, 0.0], [1.0, 0.5]])
    >>> points = controller_trajectory(RobotModel.from_urdf('two_link'), spline, tolerance=1.0)
    >>> points.motion.shape, points.effort.shape, points.error < 1.0
    ((22, 3, 2), (22, 2), True)
    """

    times: Array
    """Whole nanoseconds, increasing, shape (N,) [s]."""
    motion: Array
    """Positions, velocities and accelerations, shape (N, 3, n) [rad/s^k] or [m/s^k]."""
    effort: Array
    """Shape (N, n) [N m] or [N]."""
    error: float
    """Largest distance of the efforts, interpolated linearly, from exact ones, as found at seven
    places between any two points [N m] or [N]."""


def controller_trajectory(
    model: RobotModel,
    motion: PiecewiseMotion,
    tolerance: float,
    *,
    max_points: int = MOST_POINTS,
) -> ControllerTrajectory:
    """Points with efforts that are close to the exact ones between the points too.

    Exact are the efforts of the given motion, and those of the motion of degree 5 that the
    controller makes of the points; both are kept. The knots of motions that are less than four
    times continuously differentiable, and of those of degree 5, are among the points.

    Parameters
    ----------
    model : RobotModel
        Its efforts, of any content: without gravity for robots that add that themselves.
    motion : MotionSpline or JtcMotion
    tolerance : float
        [N m] or [N]
    max_points : int

    Returns
    -------
    ControllerTrajectory

    Raises
    ------
    TrajectoryError
        If the efforts of the motion jump, since its accelerations do.
    RequestError
        If the tolerance is not positive, or needs more points than `max_points`.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.analysis import controller_trajectory
    >>> from hodyn_ros.trajectory import fit_spline
    >>> model = RobotModel.from_urdf('two_link')
    >>> spline = fit_spline([0.0, 1.0], [[0.0, 0.0], [1.0, 0.5]])
    >>> for tolerance in (1.0, 0.1):
    ...     print(len(controller_trajectory(model, spline, tolerance).times))
    22
    69
    """
    tolerance = checked_number('tolerance', tolerance, RequestError, above=0.0)
    if motion.continuous_derivative < 2:
        raise TrajectoryError(
            'The accelerations of the motion jump at its waypoints, and with them the efforts, '
            'which no interpolation follows. Use the interpolation spline, or waypoints with '
            'velocities and accelerations.'
        )
    ends = _whole(motion.times)
    if not isinstance(motion, JtcMotion) and motion.continuous_derivative > 3:
        ends = ends[[0, -1]]
    if len(ends) < 2:
        raise TrajectoryError('The motion takes less than a nanosecond.')
    looks, phase = _phase(model, motion, ends, tolerance)
    # Intervals, which may be beyond counting.
    wanted = np.diff(np.interp(ends, looks, phase))
    most, needed = max_points - 1, tolerance
    if np.ceil(wanted).clip(1.0).sum() <= most:
        times = _divided(ends, looks, phase, np.ceil(wanted).clip(1.0).astype(np.intp))
        times, errors, needed = _refined(model, motion, times, tolerance, most)
        if len(times) <= max_points and not (errors > _FOUND * tolerance).any():
            states = _motion(motion, times)[:, :3]
            effort = inverse_dynamics(model, states)[:, 0]
            return ControllerTrajectory(times, states, effort, float(errors.max()))
    needed *= 2.0
    wanted *= np.sqrt(tolerance / needed)
    while np.ceil(wanted).clip(1.0).sum() > 0.8 * most and needed < _LARGEST:
        wanted, needed = wanted / np.sqrt(1.25), 1.25 * needed
    would = (
        f'{needed:.2g} would do' if needed < _LARGEST else 'its waypoints alone are as many'
    )
    raise RequestError(
        f'An effort tolerance of {tolerance:g} N m needs more points than {max_points} for this '
        f'motion of {motion.duration:.3f} s; {would}.'
    )


def _refined(
    model: RobotModel, motion: PiecewiseMotion, times: Array, tolerance: float, most: int
) -> tuple[Array, Array, float]:
    """Times with as many more in the middle of intervals as the errors of the efforts ask for.

    Parameters
    ----------
    model : RobotModel
    motion : PiecewiseMotion
    times : ndarray, shape (N,)
        Of the points [s].
    tolerance : float
        Of the efforts [N m] or [N].
    most : int
        Intervals from which on no more are added.

    Returns
    -------
    times : ndarray, shape (M,)
        [s]
    errors : ndarray, shape (M - 1,)
        Of each interval [N m] or [N]; too large where there are too many times, or nothing is
        left but rounding.
    needed : float
        The tolerance, or what rounding leaves of it [N m] or [N].
    """
    errors = _errors(model, motion, times, np.arange(len(times) - 1))
    while len(bad := np.flatnonzero(errors > _FOUND * tolerance)) and len(times) <= most:
        # Rounding is all that is left of the error.
        if np.diff(times)[bad].min() < _SHORTEST:
            return times, errors, errors.max()
        times = np.insert(times, bad + 1, _whole((times[bad] + times[bad + 1]) / 2.0))
        errors = np.insert(errors, bad + 1, 0.0)
        halves = np.repeat(bad + np.arange(len(bad)), 2) + np.tile([0, 1], len(bad))
        errors[halves] = _errors(model, motion, times, halves)
    return times, errors, tolerance


def _whole(times: Array) -> Array:
    """Different times of messages next to some times; at the ends they may lie outside."""
    return np.unique(np.round(times * NANOSECONDS)) / NANOSECONDS


def _motion(motion: PiecewiseMotion, times: Array) -> Array:
    """Position to snap (N, 5, n) at times that may lie outside by rounding."""
    return motion(times.clip(motion.start_time, motion.end_time))


def _phase(
    model: RobotModel, motion: PiecewiseMotion, ends: Array, tolerance: float
) -> tuple[Array, Array]:
    """Times (L,), and how many intervals there should be up to each.

    Parameters
    ----------
    model : RobotModel
    motion : PiecewiseMotion
    ends : ndarray
        Times that have to be among the points [s].
    tolerance : float
        Of the efforts [N m] or [N].

    Returns
    -------
    times : ndarray, shape (L,)
        [s]
    phase : ndarray, shape (L,)
        Increasing from zero.
    """
    knots = motion.times
    times = (knots[:-1, None] + _LOOKS[:-1] * np.diff(knots)[:, None]).ravel()
    times = np.unique(np.concatenate([times, knots[-1:], ends]))
    curvature = np.empty(len(times))
    for start in range(0, len(times), BLOCK):
        block = slice(start, start + BLOCK)
        effort = inverse_dynamics(model, _motion(motion, times[block]))
        curvature[block] = np.abs(effort[:, 2]).max(axis=1)
    wanted = np.sqrt(curvature / (8.0 * _AIM * tolerance))
    wanted = np.maximum(wanted[:-1], wanted[1:]) * np.diff(times)
    # What has no curvature has places in it too.
    return times, np.concatenate([[0.0], np.cumsum(wanted + 1e-9)])


def _divided(ends: Array, times: Array, phase: Array, counts: Indices) -> Array:
    """Times that divide what lies between two ends in so many intervals of equal phase."""
    first = np.interp(ends, times, phase)
    index = np.repeat(np.arange(len(counts)), counts)
    place = np.arange(len(index)) - np.repeat(np.cumsum(counts) - counts, counts)
    wanted = first[index] + place / counts[index] * np.diff(first)[index]
    found = np.interp(wanted, phase, times)
    found[place == 0] = ends[:-1]
    return _whole(np.append(found, ends[-1]))


def _errors(
    model: RobotModel, motion: PiecewiseMotion, times: Array, chosen: Indices
) -> Array:
    """Largest error of efforts that are interpolated linearly, in some intervals.

    Parameters
    ----------
    model : RobotModel
    motion : PiecewiseMotion
    times : ndarray, shape (N,)
        Of the points [s].
    chosen : ndarray of int, shape (C,)
        Intervals between them.

    Returns
    -------
    ndarray, shape (C,)
        Largest of all joints at seven places, against the given and the executed motion [N
        m] or [N].
    """
    states = _motion(motion, times)
    executed = jtc_motion(times, *np.moveaxis(states[:, :3], 1, 0))
    effort = inverse_dynamics(model, states[:, :3])[:, 0]
    errors = np.empty(len(chosen))
    for start in range(0, len(chosen), BLOCK // len(_BETWEEN)):
        block = slice(start, start + BLOCK // len(_BETWEEN))
        index, part = chosen[block], _BETWEEN[:, None]
        between = times[index, None] + _BETWEEN * (times[index + 1] - times[index])[:, None]
        linear = (1.0 - part) * effort[index, None] + part * effort[index + 1, None]
        found = [
            np.abs(inverse_dynamics(model, states[:, :, :3])[:, :, 0] - linear).max(
                axis=(1, 2)
            )
            for states in (_motion(motion, between), executed.within(index, _BETWEEN))
        ]
        errors[block] = np.maximum(*found)
    return errors
