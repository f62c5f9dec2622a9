"""Planning of trajectories for a robot with elastic joints that a law controls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hodyn_ros.control.guards import Guards
from hodyn_ros.errors import TrajectoryError
from hodyn_ros.ros.planner.answers import exceeded_limits, plan_trajectory
from hodyn_ros.ros.planner.planner import Planner
from hodyn_ros.streams.loop_laws import elastic_robot
from hodyn_ros.streams.motion_stream import Plan, Task
from hodyn_ros.streams.robot_in_use import Robot

if TYPE_CHECKING:
    from hodyn_ros.ros.nodes.flatness_settings import ControlSettings


class ElasticPlanner(Planner['ControlSettings']):
    """Plans motions of a `flatness_controller`: no node, no topics."""

    def __init__(self, *options: Any) -> None:
        super().__init__(elastic_robot, *options)

    def planned(
        self, robot: Robot | None, task: Task, settings: ControlSettings
    ) -> tuple[Plan, None]:
        """Plan of a trajectory, refused if it exceeds limits."""
        if robot is not None and task.known is not None:
            # Positions in which the robot is already, up to the margin, it may leave.
            limits, margin, q = robot.limits, Guards.position_margin, task.known.motion[0]
            lower = np.minimum(limits.lower, np.maximum(q, limits.lower - margin))
            upper = np.maximum(limits.upper, np.minimum(q, limits.upper + margin))
            robot = robot._replace(limits=limits._replace(lower=lower, upper=upper))
        if robot is not None:
            robot = robot.within(settings.planning.shares())
        plan, whole = plan_trajectory(robot, task, settings.planning)
        hint = 'Keep the limits, or give it more time.', *settings.planning.headroom()
        if exceeded := exceeded_limits(whole, ' '.join(hint)):
            raise TrajectoryError(exceeded[0])
        return plan, None
