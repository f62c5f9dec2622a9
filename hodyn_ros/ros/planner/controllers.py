"""What controllers of ros2_control take: trajectories with efforts, and streams of commands."""

from __future__ import annotations

import array
from typing import TYPE_CHECKING, Any

import numpy as np
from builtin_interfaces.msg import Duration
from numpy.typing import NDArray
from std_msgs.msg import Float64MultiArray, MultiArrayDimension
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from hodyn_ros.analysis.sampling import ControllerTrajectory, controller_trajectory
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.errors import HodynError, JointNameError, TrajectoryError, WrenchError
from hodyn_ros.names import listed
from hodyn_ros.ros.base import qos
from hodyn_ros.ros.base.conversions import time_message
from hodyn_ros.streams.motion_stream import LEAD_IN
from hodyn_ros.streams.robot import Robot
from hodyn_ros.streams.timeline import NANOSECONDS, PlannedMotion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rclpy.node import Node

    from hodyn_ros.ros.base.node_settings import CommandSettings, NodeSettings

Array = NDArray[np.float64]

# Where each interface is found in the motion (False) or the efforts (True), and its order.
_INTERFACES = {
    'position': (False, 0),
    'velocity': (False, 1),
    'effort': (True, 0),
    'effort_dot': (True, 1),
}
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
    """Publishes what controllers are to do at an instant, if someone listens.

    On ~/commands, and on ~/multi_dof_command where control_msgs is installed.

    Parameters
    ----------
    node : Node
    """

    def __init__(self, node: Node) -> None:
        self._values = Float64MultiArray()
        self._publisher = qos.create_publisher(
            node, Float64MultiArray, '~/commands', qos.OUTPUT
        )
        self._reference: Any = None
        try:
            from control_msgs.msg import MultiDOFCommand
        except ImportError:  # it is on no package registry
            return
        self._reference = MultiDOFCommand()
        name = '~/multi_dof_command'
        self._reference_publisher = qos.create_publisher(
            node, MultiDOFCommand, name, qos.OUTPUT
        )

    def use(self, robot: Robot, settings: CommandSettings) -> None:
        """Send for a robot from now on.

        Parameters
        ----------
        robot : Robot
        settings : CommandSettings

        Raises
        ------
        JointNameError
            If it has not all of the joints, or joints or interfaces are repeated.
        """
        self._columns = command_columns(robot, settings)
        self._rows = [_INTERFACES[name] for name in settings.interfaces]
        self._highest_order = max(of_effort * order for of_effort, order in self._rows)
        self._joints = [robot.model.joint_names[column] for column in self._columns]
        sizes = len(self._columns), len(self._rows)
        self._values.layout.dim = [
            MultiArrayDimension(label='joints', size=sizes[0], stride=sizes[0] * sizes[1]),
            MultiArrayDimension(label='interfaces', size=sizes[1], stride=sizes[1]),
        ]

    @property
    def is_wanted(self) -> bool:
        """Whether someone listens."""
        others = (
            self._reference is not None
            and self._reference_publisher.get_subscription_count()
        )
        return bool(self._publisher.get_subscription_count() or others)

    def publish(self, motion: Array, effort: Array) -> None:
        """Publish the commands of an instant.

        Parameters
        ----------
        motion : ndarray, shape (K, n)
        effort : ndarray, shape (orders, n)

        Raises
        ------
        WrenchError
            If the commands have derivatives of the efforts that are not there.
        """
        if len(effort) <= self._highest_order:
            raise WrenchError(
                'The commands have effort_dot, which wrenches or base motion do not determine.'
            )
        rows = [(effort if of_effort else motion)[order] for of_effort, order in self._rows]
        values = np.array(rows).T[self._columns]
        self._values.data = array.array('d', values.tobytes())
        self._publisher.publish(self._values)
        if self._reference is not None and len(effort) > 1:
            chosen = effort[:2, self._columns]
            self._reference.dof_names = self._joints
            self._reference.values = array.array('d', chosen[0].tobytes())
            self._reference.values_dot = array.array('d', chosen[1].tobytes())
            self._reference_publisher.publish(self._reference)


def command_columns(robot: Robot, settings: CommandSettings) -> list[int]:
    """Joints of a robot in the order of commands.

    Parameters
    ----------
    robot : Robot
    settings : CommandSettings

    Returns
    -------
    list of int
        Places in the order of the model.

    Raises
    ------
    JointNameError
        If joints or interfaces are repeated, or joints are not of the robot.
    """
    names = robot.model.joint_names
    wanted = list(names) if settings.joints == ('',) else list(settings.joints)
    for what, given in (('joints', wanted), ('interfaces', settings.interfaces)):
        if len({*given}) < len(given):
            raise JointNameError(
                f'Parameter command.{what} is {listed(given)}: one is repeated.'
            )
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise JointNameError(
            f'Parameter command.joints has {listed(map(repr, unknown))}; the joints of the robot '
            f'are {listed(names)}.'
        )
    return [names.index(name) for name in wanted]


def to_stamp(planned: PlannedMotion) -> int:
    """Time from the start of a motion to the stamp of what a controller gets of it [ns]."""
    return planned.first - planned.start - round(LEAD_IN * NANOSECONDS)
