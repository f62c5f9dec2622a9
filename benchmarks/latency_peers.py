"""What the latency benchmark starts as other processes: a relay, callers of the service, a load.

    python -m benchmarks.latency_peers relay [--ros-args ...]
    python -m benchmarks.latency_peers motion 10000
    python -m benchmarks.latency_peers trajectory 10000
    python -m benchmarks.latency_peers loop

The relay receives a JointMotion and publishes a JointEffort of the same size, with no computation,
in a SingleThreadedExecutor: what rclpy and the middleware take by themselves. A caller calls the
service again and again, and prints how long each call took [s]; it finds the service in the
namespace that the environment variable LATENCY_NAMESPACE names. The loop has nothing to do with
ROS and never pauses. All run until they are terminated.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence

import numpy as np
import rclpy
from hodyn_msgs.msg import JointEffort, JointMotion
from hodyn_msgs.srv import ComputeInverseDynamics
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from hodyn_ros.ros.base import qos
from hodyn_ros.ros.base.conversions import time_message
from hodyn_ros.ros.base.life import bound_memory
from hodyn_ros.ros.nodes.reference_publisher import JOINT_NAMES
from hodyn_ros.trajectory.references import panda_sinusoids

FIELDS = ('position', 'velocity', 'acceleration', 'jerk', 'snap')
DURATION = 10.0  # s


class Relay(Node):
    """Answers at once, with the fewest operations that rclpy needs."""

    def __init__(self) -> None:
        super().__init__('relay')
        self._publisher = self.create_publisher(JointEffort, '~/joint_effort', qos.OUTPUT)
        self.create_subscription(JointMotion, '~/joint_motion', self._on_motion, qos.NEWEST)
        self._effort = JointEffort(valid_order=2)

    def _on_motion(self, motion: JointMotion) -> None:
        effort = self._effort
        effort.header, effort.joint_names = motion.header, motion.joint_names
        effort.effort = motion.position
        effort.effort_dot = motion.velocity
        effort.effort_ddot = motion.acceleration
        self._publisher.publish(effort)


def relay(arguments: Sequence[str]) -> None:
    """Run the relay as most nodes of rclpy are run, until the process is terminated."""
    rclpy.init(args=arguments)
    bound_memory()
    executor = SingleThreadedExecutor()
    executor.add_node(Relay())
    try:
        executor.spin()
    except ExternalShutdownException:
        pass


def joint_motion(values: np.ndarray) -> JointMotion:
    """Motion of shape (5, 7) of the Panda as a message."""
    message = JointMotion(joint_names=list(JOINT_NAMES))
    for field, row in zip(FIELDS, values):
        setattr(message, field, row.tolist())
    return message


def motion_request(samples: int) -> ComputeInverseDynamics.Request:
    """Request with the samples of a motion of the Panda."""
    request = ComputeInverseDynamics.Request()
    times = np.linspace(0.0, DURATION, samples)
    for instant, values in zip(times, panda_sinusoids().motion(times)):
        request.motion.append(joint_motion(values))
        request.motion[-1].header.stamp = time_message(10**9 + round(instant * 1e9))
    return request


def trajectory_request(samples: int) -> ComputeInverseDynamics.Request:
    """Request with a trajectory of the Panda that is answered with about as many samples."""
    trajectory = JointTrajectory(joint_names=list(JOINT_NAMES))
    for second in range(round(DURATION) + 1):
        point = JointTrajectoryPoint(positions=[0.3 * np.sin(second)] * len(JOINT_NAMES))
        point.time_from_start.sec = second
        trajectory.points.append(point)
    return ComputeInverseDynamics.Request(
        trajectory=trajectory, sample_period=DURATION / (samples - 1)
    )


REQUESTS = {'motion': motion_request, 'trajectory': trajectory_request}


def call(request: ComputeInverseDynamics.Request) -> None:
    """Call the service back to back and print how long each call took [s]."""
    rclpy.init()
    node = Node('caller', namespace=os.environ.get('LATENCY_NAMESPACE', ''))
    client = node.create_client(
        ComputeInverseDynamics, 'hodyn_node/compute_inverse_dynamics'
    )
    client.wait_for_service()
    while True:
        begin = time.perf_counter()
        future = client.call_async(request)
        rclpy.spin_until_future_complete(node, future)
        response = future.result()
        if not response.success:
            sys.exit(f'error: the service refused the request: {response.message}')
        print(time.perf_counter() - begin, flush=True)


def main(arguments: Sequence[str]) -> int:
    """Run what is asked for."""
    if arguments[0] == 'relay':
        relay(arguments[1:])
        return 0
    if arguments[0] == 'loop':
        print('running', flush=True)
        while True:
            pass
    call(REQUESTS[arguments[0]](int(arguments[1])))
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
