"""A node that plays a planner: it sends a smooth joint trajectory for the Franka Panda."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
from hodyn_msgs.msg import JointEffortTrajectory
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.time import Time
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from hodyn_ros.ros import qos
from hodyn_ros.ros.conversions import NANOSECONDS, flat
from hodyn_ros.ros.process import run
from hodyn_ros.trajectory.references import Sinusoids, panda_sinusoids

JOINT_NAMES = tuple(f'panda_joint{number}' for number in range(1, 8))

PAUSE = 1.0  # s between two runs


def joint_trajectory(
    reference: Sinusoids, joint_names: Sequence[str], waypoint_period: float
) -> JointTrajectory:
    """Trajectory message with positions, velocities and accelerations at equal distances.

    Parameters
    ----------
    reference : Sinusoids
    joint_names : sequence of str
    waypoint_period : float
        Distance of the waypoints [s]; shortened so that a whole number of them fits.
    """
    intervals = int(np.ceil(reference.duration / waypoint_period))
    times = np.linspace(0.0, reference.duration, intervals + 1)
    message = JointTrajectory(joint_names=list(joint_names))
    for time, motion in zip(times, reference.motion(times)):
        point = JointTrajectoryPoint(
            positions=flat(motion[0]), velocities=flat(motion[1]), accelerations=flat(motion[2])
        )
        point.time_from_start.sec, point.time_from_start.nanosec = divmod(
            round(time * NANOSECONDS), NANOSECONDS
        )
        message.points.append(point)
    return message


class ReferencePublisher(Node):
    """Publishes the trajectory as soon as somebody listens, again and again if asked to.

    A motion begins when it has been planned, which the answer of the hodyn node tells: the next
    trajectory is sent some time after the end of the motion, not after that of its sending.
    """

    def __init__(self, **node_options: object) -> None:
        super().__init__('reference_publisher', **node_options)
        self._repeat = self.declare_parameter('repeat', True).value
        waypoint_period = self.declare_parameter('waypoint_period', 0.1).value
        if not 1e-3 <= waypoint_period <= 1.0:
            raise ValueError(
                f'waypoint_period is {waypoint_period} s, expected 0.001 s to 1 s.'
            )
        reference = panda_sinusoids()
        self._message = joint_trajectory(reference, JOINT_NAMES, waypoint_period)
        self._pause = reference.duration + PAUSE
        self._sent = self._next = self.get_clock().now()
        self._publisher = self.create_publisher(JointTrajectory, 'joint_trajectory', qos.INPUT)
        self.create_subscription(
            JointEffortTrajectory,
            'hodyn_node/effort_trajectory',
            self._on_answer,
            qos.INPUT,  # not the answer to what was sent before this node was there
        )
        self._timer = self.create_timer(0.2, self._on_timer)

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
        if not self._repeat:
            self._timer.cancel()


if __name__ == '__main__':
    sys.exit(run(ReferencePublisher))
