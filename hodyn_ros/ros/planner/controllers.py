"""What controllers of ros2_control take: trajectories with efforts, and streams of commands."""

from __future__ import annotations

import array
import struct
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from builtin_interfaces.msg import Duration
from hodyn_msgs.msg import JointMotionTrajectory
from rclpy.serialization import deserialize_message, serialize_message
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from hodyn_ros.analysis.sampling import ControllerTrajectory, controller_trajectory
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.errors import HodynError, TrajectoryError
from hodyn_ros.ros.base import qos
from hodyn_ros.ros.base.conversions import MOTION_FIELDS, fill, flat, time_message
from hodyn_ros.ros.base.worker import Worker
from hodyn_ros.ros.planner.planner import ForController
from hodyn_ros.streams.motion_stream import LEAD_IN, TRAJECTORY
from hodyn_ros.streams.robot_in_use import Robot
from hodyn_ros.streams.timeline import NANOSECONDS, PlannedMotion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hodyn_ros.ros.base.node import StreamNode
    from hodyn_ros.ros.base.node_settings import NodeSettings

# Effort that is worth a word if a controller drops it [N m] or [N].
_NOTICEABLE = 0.1
# Between two trajectories for a controller [s]: a few of the cycles of any.
SPACING = 0.004


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
    for instant, data in zip(times.tolist(), rows):
        values = data.tobytes()
        position, velocity, acceleration, effort = (
            array.array('d', values[start : start + size])
            for start in range(0, 4 * size, size)
        )
        sec, nanosec = divmod(instant, NANOSECONDS)
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


def motion_message(planned: PlannedMotion) -> JointMotionTrajectory | None:
    """Knots of a motion, through which polynomials of degree 9 are exactly the motion.

    Parameters
    ----------
    planned : PlannedMotion

    Returns
    -------
    JointMotionTrajectory or None
        Its stamp is left open. None for a motion whose derivatives up to the snap jump, as with
        ``interpolation: jtc``: a knot has one value of each.
    """
    motion = planned.motion
    if planned.continuous_derivative < len(MOTION_FIELDS) - 1:
        return None
    message = JointMotionTrajectory(joint_names=list(planned.joint_names))
    message.time_from_start = flat(motion.times)
    fill(message, MOTION_FIELDS, np.swapaxes(motion(motion.times), 0, 1))
    return message


def planned_for_controller(
    robot: Robot, planned: PlannedMotion, settings: NodeSettings
) -> tuple[ForController, str, str]:
    """Messages on a motion for controllers.

    Parameters
    ----------
    robot : Robot
    planned : PlannedMotion
    settings : NodeSettings

    Returns
    -------
    made : ForController
        The stamp of its points lies `LEAD_IN` before the first sample of the motion. Without
        points if the base moves, or there are none.
    remark : str
        On the points.
    warning : str
        Why they are not there but should be.
    """
    # Whatever stamp the waypoints had: one that has passed is "now" for a controller.
    offset = planned.first - planned.start - round(LEAD_IN * NANOSECONDS)
    points, remark, warning = b'', '', ''
    command = settings.command
    if not settings.base_motion:
        try:
            found = controller_trajectory(
                robot.sent,
                planned.motion,
                command.spacing_tolerance,
                max_points=settings.max_trajectory_points,
            )
        except HodynError as error:
            why = f'There is no trajectory for a controller. {error}'
            is_warning = not isinstance(error, TrajectoryError)
            remark, warning = ('', why) if is_warning else (why, '')
        else:
            message = controller_message(planned.joint_names, found, 0, -offset)
            message.header.frame_id = robot.model.base_link
            if command.effort_tolerance:
                remark = _cancelling(robot, found)
            else:
                for point in message.points:
                    point.effort = []
            points = serialize_message(message)
    knots = motion_message(planned)
    motion = b'' if knots is None else serialize_message(knots)
    return ForController(points, motion, offset, time.monotonic()), remark, warning


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


class ControllerOutput:
    """Sends motions to controllers, one after the other, beside the stream.

    On ~/controller_trajectory with efforts, on ~/planned_motion as they are.

    Parameters
    ----------
    node : StreamNode
        Whose topics they are; its stream learns how long it takes.
    """

    def __init__(self, node: StreamNode[Any]) -> None:
        self._node = node
        topic = node.resolve_topic_name('~/controller_trajectory')
        self._points = None
        if topic != node.resolve_topic_name(TRAJECTORY):
            self._points = node.advertise(JointTrajectory, topic, qos.EFFORT_TRAJECTORY)
        else:
            node.get_logger().error(
                f'No trajectories for a controller are published: {topic} is where the node gets '
                'its own ones. Have planners send theirs to another topic (joint_trajectory).'
            )
        self._motions = node.advertise(
            JointMotionTrajectory, '~/planned_motion', qos.NEWEST
        )
        self._worker = Worker('controller', node.get_logger().error)
        self._sent = 0.0  # when the latest one was, of a steady clock [s]

    def send(self, made: ForController, start: int) -> None:
        """Publish messages on a motion whose time is zero at a time of the stream [ns]."""
        self._worker.put(lambda: self._publish(made, start))

    def send_stop(self, planned: PlannedMotion) -> None:
        """Compute and publish messages on a motion to rest."""
        since, node = time.monotonic(), self._node
        robot, settings = node.preparation.robot, node.settings
        if robot is None or robot.model.joint_names != planned.joint_names:
            return

        def send() -> None:
            made, _, warning = planned_for_controller(robot, planned, settings)
            if warning:
                node.get_logger().error(warning)
            self._publish(made._replace(since=since), planned.start)

        self._worker.put(send)

    def close(self) -> None:
        """Send what waits, and end."""
        self._worker.close(drop=False)

    def _publish(self, made: ForController, start: int) -> None:
        # A controller that gets two in one of its cycles drops the first.
        time.sleep(max(self._sent + SPACING - time.monotonic(), 0.0))
        clock, now = self._node.clock, self._node.now()
        start += clock.delay(now)
        stamp, points = start + made.offset, made.points
        if points and clock.speed != 1.0 and stamp > now:
            # Some controllers scale the time until a stamp, others do not, and all of them scale
            # the times of points.
            points, stamp = _later(points, stamp - now), now
        is_followed = made.motion and self._motions.get_subscription_count()
        if is_followed:
            self._motions.publish(_stamped(made.motion, start))
        if points and self._points is not None:
            self._points.publish(_stamped(points, stamp))
        elif not is_followed:
            return
        self._sent = time.monotonic()
        note = self._node.stream.leads.note_delivery
        self._node.soon(note, self._sent - made.since)


def _later(data: bytes, shift: int) -> bytes:
    """Serialized JointTrajectory whose points are later after its stamp [ns]."""
    message = deserialize_message(data, JointTrajectory)
    for point in message.points:
        time_ = point.time_from_start
        instant = time_.sec * NANOSECONDS + time_.nanosec + shift
        time_.sec, time_.nanosec = divmod(instant, NANOSECONDS)
    shifted: bytes = serialize_message(message)
    return shifted


def _stamped(data: bytes, stamp: int) -> bytes:
    """Serialized message that begins with a header, with another stamp [ns]."""
    order = '<' if data[1] & 1 else '>'
    # It stands behind the four bytes that say how a message is encoded.
    at = struct.pack(f'{order}iI', *divmod(stamp, NANOSECONDS))
    return data[:4] + at + data[4 + len(at) :]
