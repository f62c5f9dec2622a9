"""Motions that begin where the robot is, or are refused if the way to their waypoints is too hard.

A plan may come late, and its first waypoints may be elsewhere than the robot. The way from there
to the first waypoint that is left must not ask for more than the robot is known to do, or, where
that is not known, for much more than the waypoints themselves do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
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
from hodyn_ros.typing import Array, Indices

MULTIPLE = 10.0
"""How many times what the waypoints or a stop ask for a way may ask for, without a limit."""

STOP = 0.5
"""Time of that stop, and least time in which a way is compared with one from rest to rest [s]. The
way may pass over the waypoints of this time that come too soon for it."""

_LOOKS, _FIRST = (np.arange(32) + 0.5) / 32, np.array([0])
_MOST_SEGMENTS = 1000  # of which efforts are looked at
_SAME_TIME = 0.5e-9  # s
_ROUNDING = 1e-6
# A way that is too hard is tried again with so many times the time.
_LONGER = 1.5
_MOST_PLANS = 3  # of all waypoints, since each of them takes its time
# With their units, and how often these are derived.
_QUANTITIES = ('velocity', 'rad', 1), ('effort', 'N m', 0), ('effort rate', 'N m', 1)
# What is never too much, whatever the waypoints ask for.
_SLIGHT = np.array([[0.1], [0.1], [10.0]])


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

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.streams import plan_from_state
    >>> from hodyn_ros.trajectory import Waypoints
    >>> model = RobotModel.from_urdf('two_link')
    >>> waypoints = Waypoints(model.joint_names, [0.0, 1.0], [[0.0, 0.0], [0.5, 0.2]])
    >>> plan = plan_from_state(model, model.limits, waypoints, start=None, tolerance=0.01)
    >>> plan.motion.duration, plan.continuous_derivative
    (1.0, 4)
    """
    names = model.joint_names
    check_joint_names(waypoints, names, options.get('allow_partial_joints', False))
    if start is None:
        return plan_motion(waypoints, names, start=None, **options)
    passed = int(np.sum(waypoints.times <= start.time + _SAME_TIME))
    remaining = waypoints
    if not start.in_progress and 0 < passed < len(waypoints.times):
        _check_distance(model, waypoints, start, tolerance, origin)
        remaining = _from(waypoints, passed)
    plan = plan_motion(remaining, names, start=start, **options)
    way = _Way(model, limits, waypoints, start, options)
    fault = way.fault(plan.motion) if plan.motion.start_time == start.time else ''
    if not fault:
        return plan
    plans = 0
    for first in _later(remaining.times, start.time, float(plan.motion.times[1])):
        if plans == _MOST_PLANS or way.fault(way.to(float(remaining.times[first]))):
            continue
        plans += 1
        rest = _from(remaining, first)
        plan = plan_motion(rest, names, start=start, **options)
        if not way.fault(plan.motion):
            count = int(np.sum(waypoints.times < rest.times[0]) - passed)
            return replace(plan, remarks=(*plan.remarks, _passed_over(count, start, rest)))
    raise TrajectoryError(fault)


def _from(waypoints: Waypoints, first: int) -> Waypoints:
    """Waypoints from one on."""
    names = 'times', 'positions', 'velocities', 'accelerations'
    return replace(waypoints, **{name: getattr(waypoints, name)[first:] for name in names})


def _later(times: Array, begin: float, reached: float) -> Iterator[int]:
    """Yield waypoints that may be joined in place of one, ever later (at most some ten)."""
    while True:
        wanted = begin + _LONGER * (reached - begin) - _SAME_TIME
        index = int(np.searchsorted(times, wanted))
        if index >= len(times) or times[index] > begin + STOP:
            return
        reached = float(times[index])
        yield index


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
    tolerance: float,
    origin: str,
) -> None:
    """Refuse waypoints that take for granted that the robot is elsewhere."""
    names, times = waypoints.joint_names, waypoints.times
    places = [model.joint_names.index(name) for name in names]
    is_at = start.motion[0, places]
    reached = np.array([np.interp(start.time, times, x) for x in waypoints.positions.T])
    distance = np.abs(reached - is_at)
    j = int(distance.argmax())
    if distance[j] <= tolerance:
        return
    unit = unit_of('rad', model.joint_types[places[j]] == 'prismatic')
    taken = (
        'No joint_states have come, so it is taken to rest where its last motion has ended, '
        f'{names[j]} at {is_at[j]:.4g} {unit}; publish them, or begin there. '
        if origin == LAST_END
        else ''
    )
    raise TrajectoryError(
        f'The trajectory begins elsewhere: at {start.time:.3g} s its waypoints have '
        f'{names[j]} at {reached[j]:.4g} {unit}, the robot is {distance[j]:.3g} {unit} away from '
        f'that, more than path_tolerance ({tolerance:g}). {taken}Begin where the robot is, or '
        'give the first waypoint the time to get there.'
    )


@dataclass
class _Way:
    """Way from a start state to the waypoints, and what it may ask for."""

    model: RobotModel
    limits: MotionLimits
    waypoints: Waypoints
    start: StartState
    options: dict[str, Any]

    def fault(self, motion: PiecewiseMotion) -> str:
        """Why the first segment of a motion asks for more than it may; empty: it does not."""
        model, limits = self.model, self.limits
        known = np.array([limits.velocity, limits.effort, limits.effort_dot])
        way, is_known = self._demand(motion), np.isfinite(known)
        if is_known.all() and (way <= known).all():
            return ''
        own = np.maximum(self._own, self._easy(motion))
        most = np.where(is_known, np.maximum(known, own), MULTIPLE * own)
        excess = way / np.maximum(most, _SLIGHT)
        row, j = np.unravel_index(int(excess.argmax()), excess.shape)
        if excess[row, j] <= 1.0 + _ROUNDING:
            return ''
        why = (
            'its limit, or what the motion itself asks for beyond that'
            if is_known[row, j]
            else f'{MULTIPLE:g} times what the motion itself asks for; it has no limit'
        )
        what, angular, order = _QUANTITIES[row]
        unit = unit_of(angular, model.joint_types[j] == 'prismatic', order)
        return (
            f'The robot cannot get from where it is at {self.start.time:.4g} s to the waypoint at '
            f'{motion.times[1]:.4g} s: {what} of {model.joint_names[j]} would be '
            f'{way[row, j]:.4g} {unit}, more than {most[row, j]:.4g} ({why}). Send waypoints '
            'that begin later, or where the robot is.'
        )

    def to(self, time: float) -> PiecewiseMotion:
        """Way from the start state to the motion that the waypoints ask for by themselves."""
        start, goal = self.start, self._motion(time)
        ends = [start.motion[0], goal[0]]
        return fit_spline([start.time, time], ends, start=start.motion[1:], end=goal[1:])

    def _demand(
        self,
        motion: PiecewiseMotion,
        segments: Indices = _FIRST,
        looks: Array = _LOOKS,
    ) -> Array:
        """Largest absolute velocity, effort and effort rate in some segments, shape (3, n)."""
        samples = motion.within(segments, looks)
        samples = samples.reshape(-1, *samples.shape[-2:])[:, :4]
        effort = inverse_dynamics(self.model, samples)
        rows = samples[:, 1], effort[:, 0], effort[:, 1]
        return np.array([np.abs(row).max(axis=0) for row in rows])

    def _easy(self, motion: PiecewiseMotion) -> Array:
        """What a way from rest to rest asks for, shape (3, n)."""
        start, time = self.start, float(motion.times[1])
        duration = max(time - start.time, STOP)
        ends = [start.motion[0], motion(time, 0)[0]]
        return self._demand(fit_spline([0.0, duration], ends))

    @cached_property
    def _motion(self) -> PiecewiseMotion:
        """Motion that the waypoints ask for by themselves."""
        names, waypoints, begin = self.model.joint_names, self.waypoints, None
        rest = at_rest(np.nan_to_num(self.start.motion[0]))
        if len(waypoints.times) == 1:  # the same way, from rest and begun in time
            begin = StartState(min(self.start.time, 0.0), rest, False)
        elif not set(names) <= set(waypoints.joint_names):
            # Joints that the waypoints leave out are held where they are.
            begin = StartState(float(waypoints.times[0]), rest, False)
        return plan_motion(waypoints, names, start=begin, **self.options).motion

    @cached_property
    def _own(self) -> Array:
        """What the waypoints ask for by themselves, and a stop from the start, shape (3, n)."""
        last = len(self._motion.times) - 2
        segments = np.unique(np.linspace(0, last, _MOST_SEGMENTS).astype(int))
        looks = _LOOKS if len(segments) < len(_LOOKS) else _LOOKS[::4]
        own = self._demand(self._motion, segments, looks)
        if not self.start.in_progress:
            return own
        stop = stop_motion(np.nan_to_num(self.start.motion), STOP)
        return np.maximum(own, self._demand(stop))
