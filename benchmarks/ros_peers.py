"""Processes beside the one that measures nodes: a relay, an echo, callers of the service, a load.

    python -m benchmarks.ros_peers relay|echo [--ros-args ...]
    python -m benchmarks.ros_peers motion|trajectory 10000
    python -m benchmarks.ros_peers loop

The relay receives a JointMotion and publishes a JointEffort of the same size, with no computation,
in a SingleThreadedExecutor: what rclpy and the middleware take by themselves. The echo is a
service that returns the flat arrays of its request. A caller calls the service of the node again
and again, and prints how long each call took [s]; it finds the service in the namespace that the
environment variable BENCHMARK_NAMESPACE names. The loop has nothing to do with ROS and never
pauses. All run until they are terminated.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable

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

Request = ComputeInverseDynamics.Request

FIELDS = ('position', 'velocity', 'acceleration', 'jerk', 'snap')
SERVICE = 'hodyn_node/compute_inverse_dynamics'
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


class Echo(Node):
    """Answers with the arrays of the request."""

    def __init__(self) -> None:
        super().__init__('echo')
        self.create_service(ComputeInverseDynamics, '~/call', self._on_request)

    def _on_request(
        self, request: Request, response: ComputeInverseDynamics.Response
    ) -> ComputeInverseDynamics.Response:
        given, answer = request.motion_trajectory, response.effort_trajectory
        answer.time_from_start = given.time_from_start
        answer.velocity, answer.acceleration = given.velocity, given.acceleration
        answer.effort, answer.effort_dot = given.position, given.jerk
        answer.effort_ddot = given.snap
        response.success = True
        return response


def spin(make: Callable[[], Node], arguments: list[str]) -> None:
    """Run a node as most nodes of rclpy are run, until the process is terminated."""
    rclpy.init(args=arguments)
    bound_memory()
    executor = SingleThreadedExecutor()
    executor.add_node(make())
    with contextlib.suppress(ExternalShutdownException):
        executor.spin()


def joint_motion(values: np.ndarray) -> JointMotion:
    """Motion of shape (5, 7) of the Panda as a message."""
    rows = {field: row.tolist() for field, row in zip(FIELDS, values)}
    return JointMotion(joint_names=list(JOINT_NAMES), **rows)


def motion_request(samples: int) -> Request:
    """Request with the samples of a motion of the Panda."""
    request = Request()
    times = np.linspace(0.0, DURATION, samples)
    for instant, values in zip(times, panda_sinusoids().motion(times)):
        request.motion.append(joint_motion(values))
        request.motion[-1].header.stamp = time_message(10**9 + round(instant * 1e9))
    return request


def trajectory_request(times: np.ndarray, positions: np.ndarray, period: float) -> Request:
    """Request with waypoints (N, 7) of the Panda at times (N,) [s]."""
    trajectory = JointTrajectory(joint_names=list(JOINT_NAMES))
    for instant, row in zip(np.round(1e9 * times).astype(int).tolist(), positions.tolist()):
        point = JointTrajectoryPoint(positions=row)
        point.time_from_start.sec, point.time_from_start.nanosec = divmod(instant, 10**9)
        trajectory.points.append(point)
    return Request(trajectory=trajectory, sample_period=period)


def short_trajectory(samples: int) -> Request:
    """Request with few waypoints that is answered with about as many samples."""
    times = np.arange(DURATION + 1.0)
    positions = np.tile(0.3 * np.sin(times)[:, None], len(JOINT_NAMES))
    return trajectory_request(times, positions, DURATION / (samples - 1))


REQUESTS = {'motion': motion_request, 'trajectory': short_trajectory}


def call(request: Request) -> None:
    """Call the service back to back and print how long each call took [s]."""
    rclpy.init()
    node = Node('caller', namespace=os.environ.get('BENCHMARK_NAMESPACE', ''))
    client = node.create_client(ComputeInverseDynamics, SERVICE)
    client.wait_for_service()
    while True:
        begin = time.perf_counter()
        future = client.call_async(request)
        rclpy.spin_until_future_complete(node, future)
        response = future.result()
        if not response.success:
            sys.exit(f'error: the service refused the request: {response.message}')
        print(time.perf_counter() - begin, flush=True)


def main(name: str, *arguments: str) -> None:
    """Run what is asked for."""
    if name in ('relay', 'echo'):
        spin(Relay if name == 'relay' else Echo, list(arguments))
    elif name == 'loop':
        print('running', flush=True)
        while True:
            pass
    else:
        call(REQUESTS[name](int(arguments[0])))


if __name__ == '__main__':
    main(*sys.argv[1:])
