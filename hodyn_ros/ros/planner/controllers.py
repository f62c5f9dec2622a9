"""What controllers of ros2_control take: trajectories with efforts, and streams of commands."""

from __future__ import annotations

import array
from typing import TYPE_CHECKING

import numpy as np
from builtin_interfaces.msg import Duration
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from hodyn_ros.analysis.sampling import ControllerTrajectory, controller_trajectory
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.errors import HodynError, TrajectoryError
from hodyn_ros.ros.base import qos
from hodyn_ros.ros.base.conversions import time_message
from hodyn_ros.streams.motion_stream import LEAD_IN
from hodyn_ros.streams.robot import Robot
from hodyn_ros.streams.timeline import NANOSECONDS, PlannedMotion
from hodyn_ros.typing import Array

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rclpy.node import Node

    from hodyn_ros.ros.base.node_settings import NodeSettings

# Effort that is worth a word if a controller drops it [N m] or [N].
_NOTICEABLE = 0.1


def controller_message(
    joint_names: Sequence[str], points: ControllerTrajectory, stamp: int, shift: int = 0
) -> JointTrajectory:
    """Points as the message that joint_trajectory_controller takes.

    Parameters
    ----------
    joint_names : sequence of str
    points : ControllerTrajectory
    stamp : int
        Of the message [ns].
    shift : int
        By which the times of the points are later [ns].

    Returns
    -------
    JointTrajectory
        With positions, velocities, accelerations and efforts.
    """
    message = JointTrajectory(joint_names=list(joint_names))
    message.header.stamp = time_message(stamp)
    rows = np.concatenate([points.motion, points.effort[:, None]], axis=1)
    size = 8 * rows.shape[-1]
    times = np.round(points.times * NANOSECONDS).astype(int) + shift
    for time, data in zip(times.tolist(), rows):
        values = data.tobytes()
        position, velocity, acceleration, effort = (
            array.array('d', values[start : start + size])
            for start in range(0, 4 * size, size)
        )
        sec, nanosec = divmod(time, NANOSECONDS)
        message.points.append(
            JointTrajectoryPoint(
                positions=position,
                velocities=velocity,
                accelerations=acceleration,
                effort=effort,
                time_from_start=Duration(sec=sec, nanosec=nanosec),
            )
        )
    return message


def planned_for_controller(
    robot: Robot, planned: PlannedMotion, settings: NodeSettings
) -> tuple[JointTrajectory | None, str, str]:
    """Trajectory for a controller.

    Parameters
    ----------
    robot : Robot
    planned : PlannedMotion
    settings : NodeSettings

    Returns
    -------
    message : JointTrajectory or None
        Its stamp is left open; it lies `LEAD_IN` before the first sample of the motion. None if
        the settings want none, the base moves, or it cannot be made.
    remark : str
        On it.
    warning : str
        Why it is not there but should be.
    """
    command = settings.command
    if not command.effort_tolerance or settings.base_motion:
        return None, '', ''
    try:
        points = controller_trajectory(
            robot.sent,
            planned.motion,
            command.effort_tolerance,
            max_points=settings.max_trajectory_points,
        )
    except TrajectoryError as error:
        return None, f'There is no trajectory for a controller. {error}', ''
    except HodynError as error:
        return None, '', f'There is no trajectory for a controller. {error}'
    # Whatever stamp the waypoints had: one that has passed is "now" for a controller.
    shift = planned.start - planned.first + round(LEAD_IN * NANOSECONDS)
    message = controller_message(planned.joint_names, points, 0, shift)
    message.header.frame_id = robot.model.base_link
    return message, _cancelling(robot, points), ''


def _cancelling(robot: Robot, points: ControllerTrajectory) -> str:
    """Say by how much efforts step where joint_trajectory_controller is made to hold still."""
    still = np.zeros_like(points.motion)
    still[:, 0] = points.motion[:, 0]
    held = np.abs(inverse_dynamics(robot.sent, still)[:, 0]).max(axis=0)
    if held.max() < _NOTICEABLE:
        return ''
    worst = int(held.argmax())
    return (
        'If joint_trajectory_controller is cancelled, it holds with a feed-forward effort of 0: a '
        f'step of up to {held[worst]:.3g} N m in {robot.model.joint_names[worst]}, unless the '
        'robot compensates gravity itself (command.effort: without_gravity).'
    )


class CommandStream:
    """Publishes the efforts that a controller is to apply at an instant, if someone listens.

    Parameters
    ----------
    node : Node
        Publishes them on ~/commands.
    """

    def __init__(self, node: Node) -> None:
        self._values = Float64MultiArray()
        self._publisher = qos.create_publisher(
            node, Float64MultiArray, '~/commands', qos.OUTPUT
        )

    @property
    def is_wanted(self) -> bool:
        """Whether someone listens."""
        return bool(self._publisher.get_subscription_count())

    def publish(self, effort: Array) -> None:
        """Publish the efforts of an instant.

        Parameters
        ----------
        effort : ndarray, shape (n,)
            In the order of the joints of the model [N m] or [N].
        """
        self._values.data = array.array('d', effort.tobytes())
        self._publisher.publish(self._values)


def to_stamp(planned: PlannedMotion) -> int:
    """Time from the start of a motion to the stamp of what a controller gets of it [ns]."""
    return planned.first - planned.start - round(LEAD_IN * NANOSECONDS)
