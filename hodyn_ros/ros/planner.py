"""From the message of a trajectory to a motion placed in time and its whole answer."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hodyn_msgs.msg import JointEffort, JointEffortTrajectory
from numpy.typing import NDArray
from rclpy.serialization import deserialize_message
from trajectory_msgs.msg import JointTrajectory

from hodyn_ros.errors import TrajectoryError
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.ros.answers import (
    Robot,
    describe_plan,
    effort_trajectory,
    ready,
    sample_times,
)
from hodyn_ros.ros.conversions import NANOSECONDS, continuous_order, waypoints_from_message
from hodyn_ros.ros.diagnostics import refusal_kind
from hodyn_ros.ros.measured_motion import TURN
from hodyn_ros.ros.settings import Settings
from hodyn_ros.ros.timeline import PlannedMotion, State
from hodyn_ros.ros.worker import reason
from hodyn_ros.trajectory.planning import StartState, plan_motion
from hodyn_ros.trajectory.waypoints import Waypoints

Array = NDArray[np.float64]


class Task(NamedTuple):
    """A trajectory that is to be planned."""

    number: int
    """By which the plan refers to it."""
    data: bytes
    """Serialized JointTrajectory with at least one point."""
    start: int
    """Node's time at which the time of the trajectory is zero [ns]."""
    now: int
    """Node's time by which it must not have ended [ns]."""
    known: State | None
    """State of the joints at `known_time`, if it is known."""
    known_time: int
    """[ns]"""


class Plan(NamedTuple):
    """What has become of a task."""

    number: int
    planned: PlannedMotion | None
    """None if the trajectory is refused or stops what is there."""
    remarks: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    error: str = ''
    """Why it is refused; empty if it is not."""
    kind: str = 'invalid'
    """Kind of the refusal."""
    duration: float = 0.0
    """How long planning has taken [s]."""


def refused_plan(task: Task, error: BaseException) -> Plan:
    """Return what has become of a task that has failed."""
    return Plan(task.number, None, error=reason(error), kind=refusal_kind(error))


def plan_trajectory(
    robot: Robot | None, task: Task, settings: Settings
) -> tuple[Plan, JointEffortTrajectory]:
    """Plan a trajectory and compute its whole answer.

    Parameters
    ----------
    robot : Robot or None
        None if there is none yet.
    task : Task
    settings : Settings

    Raises
    ------
    HodynError
        If the trajectory cannot be used.
    """
    robot = ready(robot)
    try:
        message = deserialize_message(task.data, JointTrajectory)
    except Exception as error:
        raise TrajectoryError(f'The message cannot be unpacked: {error}') from error
    names = robot.model.joint_names
    waypoints = waypoints_from_message(message)
    start = None
    if task.known is not None:
        motion, in_progress = task.known.motion, task.known.in_progress
        if not in_progress:
            motion = in_nearest_turn(robot.model, motion, waypoints)
        seconds = (task.known_time - task.start) / NANOSECONDS
        start = StartState(seconds, motion, in_progress)
    plan = plan_motion(
        waypoints,
        names,
        start=start,
        interpolation=settings.interpolation,
        allow_partial_joints=settings.allow_partial_joints,
    )
    planned = PlannedMotion(names, plan.motion, task.start, plan.continuous_derivative)
    if planned.last <= task.now:
        raise TrajectoryError(
            f'The trajectory ended {(task.now - planned.last) / NANOSECONDS:.3f} s ago; set the '
            'stamp to the time at which it starts, or to zero for now.'
        )
    # The whole answer first: a motion whose efforts cannot be computed never starts.
    whole = _efforts_along(robot, planned, settings)
    describe_plan(whole, plan, robot)
    if start is not None and plan.motion.start_time == start.time:
        whole.remarks = [*whole.remarks, f'The start state is the one {task.known.origin}.']
    return Plan(task.number, planned, plan.remarks, plan.warnings), whole


def exceeded_limits(message: JointEffortTrajectory, hint: str) -> tuple[str, ...]:
    """Say how many limits a motion exceeds, and which one most; a hint says what to do."""
    violations = message.limit_violations
    if not violations:
        return ()
    worst = max(violations, key=lambda item: abs(item.value) / max(abs(item.limit), 1e-12))
    count = 'a limit' if len(violations) == 1 else f'{len(violations)} limits, most of all one'
    return (
        f'The trajectory exceeds {count}: {worst.quantity} of {worst.joint_name} is '
        f'{worst.value:.6g} at {worst.time_from_start:.3f} s, its limit {worst.limit:.6g}. {hint}',
    )


def in_nearest_turn(model: RobotModel, motion: Array, waypoints: Waypoints) -> Array:
    """Motion (5, n) whose continuous joints are in the turn nearest to the first waypoint.

    As with joint_trajectory_controller, such a joint takes the shorter way.
    """
    motion = motion.copy()
    for j, (name, kind) in enumerate(zip(model.joint_names, model.joint_types)):
        if kind == 'continuous' and name in waypoints.joint_names:
            first = waypoints.positions[0, waypoints.joint_names.index(name)]
            motion[0, j] += TURN * np.round((first - motion[0, j]) / TURN)
    return motion


def whole_answer(
    robot: Robot, planned: PlannedMotion, settings: Settings, remark: str
) -> JointEffortTrajectory:
    """Efforts along a motion that has been planned elsewhere."""
    message = _efforts_along(robot, planned, settings)
    message.continuous_order = continuous_order(planned.continuous_derivative)
    message.remarks = [remark]
    return message


def _efforts_along(
    robot: Robot, planned: PlannedMotion, settings: Settings
) -> JointEffortTrajectory:
    motion, source = planned.motion, JointEffort.SOURCE_JOINT_TRAJECTORY
    times = sample_times(motion, settings.trajectory_sample_period, settings.max_samples)
    return effort_trajectory(robot, times, motion(times), (), planned.start, source, motion)
