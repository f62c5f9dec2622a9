"""Motions that begin where the robot is, or are refused if the way to their waypoints is too hard.

A plan may come late, and its first waypoints may be elsewhere than the robot. The way from there
to the first waypoint that is left must not ask for more than the robot is known to do, or, where
that is not known, for much more than the waypoints themselves do.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.errors import TrajectoryError
from hodyn_ros.model.limits import MotionLimits
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import unit_of
from hodyn_ros.streams.timeline import LAST_END, at_rest
from hodyn_ros.trajectory.motion import PiecewiseMotion
from hodyn_ros.trajectory.planning import (
    MotionPlan,
    StartState,
    check_joint_names,
    plan_motion,
)
from hodyn_ros.trajectory.spline import fit_spline, stop_motion
from hodyn_ros.trajectory.waypoints import Waypoints
from hodyn_ros.typing import Array

MULTIPLE = 10.0
"""How many times what the waypoints or a stop ask for a way may ask for, without a limit."""

STOP = 0.5
"""Time of that stop, and least time in which a way is compared with one from rest to rest [s]. The
way may pass over the waypoints of this time that come too soon for it."""

_LOOKS = (np.arange(32) + 0.5) / 32
_MOST_SEGMENTS = 1000  # of which efforts are looked at
_SAME_TIME = 0.5e-9  # s
_ROUNDING = 1e-6
# A way that is too hard is tried again with so many times the time.
_LONGER = 1.5
_MOST_PLANS = 3  # of all waypoints, since each of them takes its time
_QUANTITIES = ('velocity', 'effort', 'effort rate')
_UNITS = (('rad', 1), ('N m', 0), ('N m', 1))  # and how often they are derived
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
    origin: str = '',
    **options: Any,
) -> MotionPlan:
    """Motion through waypoints from where the robot is, without a jump, if it can get there.

    Where the next waypoints come too soon, the motion joins a later one, at most `STOP` behind the
    start state, and a remark says so.

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
    origin : str
        Where the start state comes from, see `State`.
    options : dict
        Further arguments of `plan_motion`.

    Raises
    ------
    JointNameError
        See `plan_motion`.
    TrajectoryError
        If the robot is too far away, the way from where it is asks for too much, or
        `plan_motion` finds no motion.
    """
    check_joint_names(
        waypoints, model.joint_names, options.get('allow_partial_joints', False)
    )
    if start is None:
        return plan_motion(waypoints, model.joint_names, start=None, **options)
    passed = int(np.sum(waypoints.times <= start.time + _SAME_TIME))
    remaining = waypoints
    if not start.in_progress and 0 < passed < len(waypoints.times):
        _check_distance(model, waypoints, start, passed - 1, tolerance, origin)
        remaining = _rows(waypoints, slice(passed, None))
    plan = plan_motion(remaining, model.joint_names, start=start, **options)
    if plan.motion.start_time != start.time:
        return plan
    way = _Way(model, limits, waypoints, start, options)
    fault = way.fault(plan.motion)
    if not fault:
        return plan
    plans = 0
    for first in _later(remaining.times, start.time, float(plan.motion.times[1])):
        if plans == _MOST_PLANS:
            break
        if way.fault(way.to(float(remaining.times[first]))):
            continue
        plans += 1
        rest = _rows(remaining, slice(first, None))
        plan = plan_motion(rest, model.joint_names, start=start, **options)
        if not way.fault(plan.motion):
            count = int(np.sum(waypoints.times < rest.times[0]) - passed)
            return replace(plan, remarks=(*plan.remarks, _passed_over(count, start, rest)))
    raise TrajectoryError(fault)


def _rows(waypoints: Waypoints, rows: slice) -> Waypoints:
    """Some of the waypoints."""
    names = ('times', 'positions', 'velocities', 'accelerations')
    return replace(waypoints, **{name: getattr(waypoints, name)[rows] for name in names})


def _later(times: Array, begin: float, reached: float) -> list[int]:
    """Waypoints that may be joined in place of one, ever later: indices (at most some ten)."""
    found, wanted = list[int](), reached
    while True:
        wanted = begin + _LONGER * (wanted - begin)
        index = int(np.searchsorted(times, wanted - _SAME_TIME))
        if index >= len(times) or times[index] > begin + STOP:
            return found
        wanted = float(times[index])
        found.append(index)


def _passed_over(count: int, start: StartState, rest: Waypoints) -> str:
    """Remark on waypoints that come too soon."""
    which = 'a waypoint is' if count == 1 else f'{count} waypoints are'
    return (
        f'From {start.time:.4g} s on {which} passed over, since the robot cannot get to the next '
        f'ones in their time; it joins the waypoints at {rest.times[0]:.4g} s.'
    )


def _check_distance(
    model: RobotModel,
    waypoints: Waypoints,
    start: StartState,
    passed: int,
    tolerance: float,
    origin: str,
) -> None:
    """Refuse waypoints that take for granted that the robot is elsewhere."""
    names = waypoints.joint_names
    places = [model.joint_names.index(name) for name in names]
    reached = _between(waypoints, start.time, passed)
    distance = np.abs(reached - start.motion[0, places])
    j = int(distance.argmax())
    if distance[j] <= tolerance:
        return
    unit = unit_of('rad', model.joint_types[places[j]] == 'prismatic')
    taken = (
        'No joint_states have come, so it is taken to rest where its last motion has ended, '
        f'{names[j]} at {start.motion[0, places[j]]:.4g} {unit}; publish them, or begin there. '
        if origin == LAST_END
        else ''
    )
    raise TrajectoryError(
        f'The trajectory begins elsewhere: at {start.time:.3g} s its waypoints have '
        f'{names[j]} at {reached[j]:.4g} {unit}, the robot is {distance[j]:.3g} {unit} away from '
        f'that, more than path_tolerance ({tolerance:g}). {taken}Begin where the robot is, or '
        'give the first waypoint the time to get there.'
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


class _Way:
    """Way from a start state to the waypoints, and what it may ask for."""

    def __init__(
        self,
        model: RobotModel,
        limits: MotionLimits,
        waypoints: Waypoints,
        start: StartState,
        options: dict[str, Any],
    ) -> None:
        self._model, self._waypoints, self._start = model, waypoints, start
        self._options = options
        self._known = np.array([limits.velocity, limits.effort, limits.effort_dot])

    def fault(self, motion: PiecewiseMotion) -> str:
        """Why the first segment of a motion asks for more than it may; empty: it does not."""
        model, known, start = self._model, self._known, self._start
        way = _demand(model, motion.within(np.array([0]), _LOOKS))
        if (way <= known).all() and np.isfinite(known).all():
            return ''
        own = np.maximum(self._own, self._easy(motion))
        most = np.where(np.isfinite(known), np.maximum(known, own), MULTIPLE * own)
        excess = way / np.maximum(most, _SLIGHT)
        if (excess <= 1.0 + _ROUNDING).all():
            return ''
        row, j = np.unravel_index(int(excess.argmax()), excess.shape)
        limited = np.isfinite(known[row, j])
        why = (
            'its limit, or what the motion itself asks for beyond that'
            if limited
            else f'{MULTIPLE:g} times what the motion itself asks for; it has no limit'
        )
        angular, order = _UNITS[row]
        unit = unit_of(angular, model.joint_types[j] == 'prismatic', order)
        return (
            f'The robot cannot get from where it is at {start.time:.4g} s to the waypoint at '
            f'{motion.times[1]:.4g} s: {_QUANTITIES[row]} of {model.joint_names[j]} would be '
            f'{way[row, j]:.4g} {unit}, more than {most[row, j]:.4g} ({why}). Send waypoints '
            'that begin later, or where the robot is.'
        )

    def _easy(self, motion: PiecewiseMotion) -> Array:
        """What a way from rest to rest asks for, shape (3, n)."""
        start, time = self._start, float(motion.times[1])
        duration = max(time - start.time, STOP)
        easy = fit_spline([0.0, duration], [start.motion[0], motion(time, 0)[0]])
        return _demand(self._model, easy.within(np.array([0]), _LOOKS))

    def to(self, time: float) -> PiecewiseMotion:
        """Way from the start state to the motion that the waypoints ask for by themselves."""
        start, goal = self._start, self._motion(time)
        ends = [start.motion[0], goal[0]]
        return fit_spline([start.time, time], ends, start=start.motion[1:], end=goal[1:])

    @cached_property
    def _motion(self) -> PiecewiseMotion:
        """Motion that the waypoints ask for by themselves."""
        names, waypoints, begin = self._model.joint_names, self._waypoints, None
        state = np.nan_to_num(self._start.motion)
        if len(waypoints.times) == 1:  # the same way, from rest and begun in time
            begin = StartState(min(self._start.time, 0.0), at_rest(state[0]), False)
        elif not set(names) <= set(waypoints.joint_names):
            # Joints that the waypoints leave out are held where they are.
            begin = StartState(float(waypoints.times[0]), at_rest(state[0]), False)
        return plan_motion(waypoints, names, start=begin, **self._options).motion

    @cached_property
    def _own(self) -> Array:
        """What the waypoints ask for by themselves, and a stop from the start, shape (3, n)."""
        own, demands = self._motion, []
        if self._start.in_progress:
            stop = stop_motion(np.nan_to_num(self._start.motion), STOP)
            demands.append(_demand(self._model, stop.within(np.array([0]), _LOOKS)))
        segments = np.unique(np.linspace(0, len(own.times) - 2, _MOST_SEGMENTS).astype(int))
        looks = _LOOKS if len(segments) < len(_LOOKS) else _LOOKS[::4]
        demands.append(_demand(self._model, own.within(segments, looks)))
        largest: Array = np.max(demands, axis=0)
        return largest
