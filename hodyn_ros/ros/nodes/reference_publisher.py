"""A node that plays a planner: it sends a smooth joint trajectory for the Franka Panda."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from hodyn_msgs.msg import JointEffortTrajectory
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.time import Time
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from hodyn_ros.ros.base import qos
from hodyn_ros.ros.base.conversions import flat
from hodyn_ros.ros.base.life import main
from hodyn_ros.streams.timeline import NANOSECONDS
from hodyn_ros.trajectory.references import Sinusoids, panda_sinusoids

JOINT_NAMES = tuple(f'panda_joint{number}' for number in range(1, 8))

PAUSE = 1.0  # s between two runs
WAYPOINT_PERIOD = 0.1  # s


def joint_trajectory(
    reference: Sinusoids, joint_names: Sequence[str], waypoint_period: float
) -> JointTrajectory:
    """Trajectory with velocities and accelerations.

    Parameters
    ----------
    reference : Sinusoids
    joint_names : sequence of str
    waypoint_period : float
        Largest distance of the waypoints [s].

    Returns
    -------
    JointTrajectory
    """
    intervals = int(np.ceil(reference.duration / waypoint_period))
    times = np.linspace(0.0, reference.duration, intervals + 1)
    message = JointTrajectory(joint_names=list(joint_names))
    for time, motion in zip(times, reference.motion(times)):
        point = JointTrajectoryPoint(
            positions=flat(motion[0]),
            velocities=flat(motion[1]),
            accelerations=flat(motion[2]),
        )
        start = point.time_from_start
        start.sec, start.nanosec = divmod(round(time * NANOSECONDS), NANOSECONDS)
        message.points.append(point)
    return message


class ReferencePublisher(Node):
    """Node that publishes a trajectory as soon as somebody listens, again and again.

    The next one is sent some time after the end of the motion, whose begin the answer tells.

    Parameters
    ----------
    **node_options
        Of `rclpy.node.Node`.
    """

    def __init__(self, **node_options: Any) -> None:
        super().__init__('reference_publisher', **node_options)
        reference = panda_sinusoids()
        self._message = joint_trajectory(reference, JOINT_NAMES, WAYPOINT_PERIOD)
        self._pause = reference.duration + PAUSE
        self._sent = self._next = self.get_clock().now()
        self._publisher = self.create_publisher(
            JointTrajectory, 'joint_trajectory', qos.INPUT
        )
        # Not the answer to what was sent before this node was there.
        answer, profile = 'hodyn_node/effort_trajectory', qos.INPUT
        self.create_subscription(JointEffortTrajectory, answer, self._on_answer, profile)
        self.create_timer(0.2, self._on_timer)

    def _on_answer(self, message: JointEffortTrajectory) -> None:
        begin = Time.from_msg(message.header.stamp)
        self._next = max(self._next, begin + Duration(seconds=self._pause))

    def _on_timer(self) -> None:
        now = self.get_clock().now()
        if now < self._sent:  # time has begun anew
            self._next = now
        if now < self._next or self._publisher.get_subscription_count() == 0:
            return
        self._publisher.publish(self._message)
        self.get_logger().info(
            f'Sent a trajectory of {len(self._message.points)} points to '
            f'{self._publisher.topic_name}.'
        )
        self._sent, self._next = now, now + Duration(seconds=self._pause)


if __name__ == '__main__':
    sys.exit(main(ReferencePublisher))
