"""Motions that begin where the robot is, or are refused if the way to their waypoints is too hard.

A plan may come late, and its first waypoints may be elsewhere than the robot. The way from there
to the first waypoint that is left must not ask for more than the robot is known to do, or, where
that is not known, for much more than the waypoints themselves do.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.errors import TrajectoryError
from hodyn_ros.model.limits import MotionLimits
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.streams.timeline import at_rest
from hodyn_ros.trajectory.piecewise import PiecewiseMotion
from hodyn_ros.trajectory.planning import MotionPlan, StartState, Waypoints, plan_motion
from hodyn_ros.trajectory.spline import fit_spline, stop_motion
from hodyn_ros.typing import Array

MULTIPLE = 10.0
"""How many times what the waypoints or a stop ask for a way may ask for, without a limit."""

STOP = 0.5
"""Time of that stop, and least time in which a way is compared with one from rest to rest [s]."""

_LOOKS = (np.arange(32) + 0.5) / 32
_MOST_SEGMENTS = 1000  # of which efforts are looked at
_SAME_TIME = 0.5e-9  # s
_ROUNDING = 1e-6
_QUANTITIES = ('velocity', 'effort', 'effort rate')
_UNITS = ('rad/s or m/s', 'N m or N', 'N m/s or N/s')
# What is never too much, whatever the waypoints ask for.
_SLIGHT = np.array([[0.1], [0.1], [10.0]])


def _demand(model: RobotModel, motion: Array) -> Array:
    """Largest absolute values of velocity, effort and effort rate, shape (3, n).

    Parameters
    ----------
    model : RobotModel
    motion : ndarray, shape (..., K, n), K >= 4
        Samples with position to jerk.
    """
    samples = motion.reshape(-1, *motion.shape[-2:])[:, :4]
    effort = inverse_dynamics(model, samples)
    rows = samples[:, 1], effort[:, 0], effort[:, 1]
    return np.array([np.abs(row).max(axis=0) for row in rows])


def plan_from_state(
    model: RobotModel,
    limits: MotionLimits,
    waypoints: Waypoints,
    *,
    start: StartState | None,
    tolerance: float,
    **options: Any,
) -> MotionPlan:
    """Motion through waypoints from where the robot is, without a jump, if it can get there.

    Parameters
    ----------
    model : RobotModel
    limits : MotionLimits
        Those that are infinite are not known: then `MULTIPLE` times what the waypoints by
        themselves ask for is allowed, or a stop within `STOP`, or the way from rest to rest in its
        time, which is taken for no shorter than that.
    waypoints : Waypoints
    start : StartState, optional
        None: not known; the motion begins at the first waypoint.
    tolerance : float
        Largest distance of a robot at rest from a first waypoint that has passed, in place of
        which its motion begins where it is [rad] or [m].
    options : dict
        Further arguments of `plan_motion`.

    Raises
    ------
    TrajectoryError
        If the robot is too far away, the way from where it is asks for too much, or
        `plan_motion` finds no motion.
    """
    if start is None:
        return plan_motion(waypoints, model.joint_names, start=None, **options)
    passed = int(np.sum(waypoints.times <= start.time + _SAME_TIME))
    remaining = waypoints
    if not start.in_progress and 0 < passed < len(waypoints.times):
        _check_distance(model, waypoints, start, passed - 1, tolerance)
        rows = {
            name: getattr(waypoints, name)[passed:]
            for name in ('times', 'positions', 'velocities', 'accelerations')
        }
        remaining = replace(waypoints, **rows)
    plan = plan_motion(remaining, model.joint_names, start=start, **options)
    if plan.motion.start_time == start.time:
        _check_way(model, limits, plan.motion, waypoints, start, options)
    return plan


def _check_distance(
    model: RobotModel,
    waypoints: Waypoints,
    start: StartState,
    passed: int,
    tolerance: float,
) -> None:
    """Refuse waypoints that take for granted that the robot is elsewhere."""
    names = [name for name in waypoints.joint_names if name in model.joint_names]
    places = [model.joint_names.index(name) for name in names]
    columns = [waypoints.joint_names.index(name) for name in names]
    reached = _between(waypoints, start.time, passed)[columns]
    distance = np.abs(reached - start.motion[0, places])
    j = int(distance.argmax()) if len(distance) else 0
    if len(distance) and distance[j] > tolerance:
        raise TrajectoryError(
            f'The trajectory begins elsewhere: at {start.time:.3g} s its waypoints have '
            f'{names[j]} at {reached[j]:.4g}, the robot is {distance[j]:.3g} rad or m away from '
            f'that, more than path_tolerance ({tolerance:g}). Begin where the robot is, or give '
            'the first waypoint the time to get there.'
        )


def _between(waypoints: Waypoints, time: float, index: int) -> Array:
    """Positions of all joints of waypoints, on the line from one of them to the next.

    Parameters
    ----------
    waypoints : Waypoints
    time : float
        [s]; kept between the times of the two.
    index : int
        Of the waypoint before.
    """
    times, positions = (
        waypoints.times[index : index + 2],
        waypoints.positions[index : index + 2],
    )
    part = min(max((time - times[0]) / (times[1] - times[0]), 0.0), 1.0)
    reached: Array = positions[0] + part * (positions[1] - positions[0])
    return reached


def _check_way(
    model: RobotModel,
    limits: MotionLimits,
    motion: PiecewiseMotion,
    waypoints: Waypoints,
    start: StartState,
    options: dict[str, Any],
) -> None:
    """Refuse a way to the first waypoint that asks for more than it may."""
    way = _demand(model, motion.within(np.array([0]), _LOOKS))
    known = np.array([limits.velocity, limits.effort, limits.effort_dot])
    if (way <= known).all() and np.isfinite(known).all():
        return
    own = _own_demand(model, waypoints, motion, start, options)
    most = np.where(np.isfinite(known), np.maximum(known, own), MULTIPLE * own)
    excess = way / np.maximum(most, _SLIGHT)
    if (excess <= 1.0 + _ROUNDING).all():
        return
    row, j = np.unravel_index(int(excess.argmax()), excess.shape)
    limited = np.isfinite(known[row, j])
    why = (
        'its limit, or what the motion itself asks for beyond that'
        if limited
        else f'{MULTIPLE:g} times what the motion itself asks for; it has no limit'
    )
    raise TrajectoryError(
        f'The robot cannot get from where it is at {start.time:.3g} s to the waypoint at '
        f'{motion.times[1]:.3g} s: {_QUANTITIES[row]} of {model.joint_names[j]} would be '
        f'{way[row, j]:.4g} {_UNITS[row]}, more than {most[row, j]:.4g} ({why}). Send waypoints '
        'that begin later, or where the robot is.'
    )


def _own_demand(
    model: RobotModel,
    waypoints: Waypoints,
    motion: PiecewiseMotion,
    start: StartState,
    options: dict[str, Any],
) -> Array:
    """What the waypoints ask for by themselves, a stop from the start, and an easy way.

    Returns
    -------
    ndarray, shape (3, n)
        Largest velocity, effort and effort rate of any of these.
    """
    state, time = np.nan_to_num(start.motion), float(motion.times[1])
    goal = motion(time, 0)[0]
    easy = fit_spline([0.0, max(time - start.time, STOP)], [state[0], goal])
    compared = [easy, stop_motion(state, STOP)] if start.in_progress else [easy]
    demands = [_demand(model, item.within(np.array([0]), _LOOKS)) for item in compared]
    if len(waypoints.times) > 1:
        # Joints that the waypoints leave out are held where they are.
        missing = not set(model.joint_names) <= set(waypoints.joint_names)
        rest = StartState(float(waypoints.times[0]), at_rest(state[0]), False)
        begin = rest if missing else None
        own = plan_motion(waypoints, model.joint_names, start=begin, **options).motion
    else:  # the same way, from rest and begun in time
        rest = StartState(min(start.time, 0.0), at_rest(state[0]), False)
        own = plan_motion(waypoints, model.joint_names, start=rest, **options).motion
    segments = np.unique(np.linspace(0, len(own.times) - 2, _MOST_SEGMENTS).astype(int))
    looks = _LOOKS if len(segments) < len(_LOOKS) else _LOOKS[::4]
    demands.append(_demand(model, own.within(segments, looks)))
    largest: Array = np.max(demands, axis=0)
    return largest
