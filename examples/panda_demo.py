"""Torques of the Franka Panda with their derivatives, over real ROS 2 topics, checked and drawn.

Starts the node as a process of its own, publishes the robot description and a joint trajectory,
receives the efforts, compares their derivatives with finite differences of the received torques,
prints the extremes beside the limits of the robot and writes build/demo/panda_efforts.png.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import matplotlib

matplotlib.use('Agg')
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
import rclpy  # noqa: E402
import yaml  # noqa: E402
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus  # noqa: E402
from hodyn_msgs.msg import JointEffort, JointEffortTrajectory  # noqa: E402
from rclpy.node import Node  # noqa: E402
from scipy.interpolate import CubicSpline  # noqa: E402
from std_msgs.msg import String  # noqa: E402
from trajectory_msgs.msg import JointTrajectory  # noqa: E402

from hodyn_ros import RobotModel  # noqa: E402
from hodyn_ros.model.violations import motion_limits  # noqa: E402
from hodyn_ros.resources import share_file  # noqa: E402
from hodyn_ros.ros.base import qos  # noqa: E402
from hodyn_ros.ros.nodes.reference_publisher import JOINT_NAMES, joint_trajectory  # noqa: E402
from hodyn_ros.streams.timeline import (
    NANOSECONDS,  # noqa: E402
    nanoseconds,  # noqa: E402
)
from hodyn_ros.trajectory.references import panda_sinusoids  # noqa: E402

PICTURE = Path('build/demo/panda_efforts.png')
WAYPOINT_PERIOD = 0.05  # s
SAMPLE_PERIOD = 0.001  # s
PUBLISH_RATE = 100.0  # Hz
TIMEOUT = 60.0  # s
# Of finite differences, relative to the largest value of the order.
TOLERANCES = (1e-7, 1e-5)

# Central differences of eighth order.
FIRST = np.array([1 / 280, -4 / 105, 1 / 5, -4 / 5, 0, 4 / 5, -1 / 5, 4 / 105, -1 / 280])
SECOND = np.array(
    [-1 / 560, 8 / 315, -1 / 5, 8 / 5, -205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560]
)
STRIDE = 1  # samples between the points of a difference


class Client(Node):
    """Sends the description and the trajectory and keeps what comes back."""

    def __init__(self, urdf: str) -> None:
        super().__init__('demo_client')
        self.model_is_loaded = False
        self.streamed: list[JointEffort] = []
        self.whole: JointEffortTrajectory | None = None
        self.create_subscription(
            DiagnosticArray, '/diagnostics', self._on_diagnostics, qos.INPUT
        )
        self.create_subscription(
            JointEffort, '/hodyn_node/joint_effort', self.streamed.append, qos.INPUT
        )
        self.create_subscription(
            JointEffortTrajectory,
            '/hodyn_node/effort_trajectory',
            self._on_whole,
            qos.EFFORT_TRAJECTORY,
        )
        self.trajectory_publisher = self.create_publisher(
            JointTrajectory, 'joint_trajectory', qos.INPUT
        )
        self._description_publisher = self.create_publisher(
            String, 'robot_description', qos.ROBOT_DESCRIPTION
        )
        self._description_publisher.publish(String(data=urdf))

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        self.model_is_loaded = any(
            status.name == 'hodyn_node: model' and status.level == DiagnosticStatus.OK
            for status in message.status
        )

    def _on_whole(self, message: JointEffortTrajectory) -> None:
        self.whole = message


def wait_until(
    condition: Callable[[], object],
    node: Node,
    process: subprocess.Popen,
    timeout: float,
    what: str,
) -> None:
    """Spin until the condition holds; leave with a message if it does not."""
    deadline = time.monotonic() + timeout
    while not condition():
        rclpy.spin_once(node, timeout_sec=0.05)
        if process.poll() is not None:
            sys.exit(
                f'error: the node ended with exit code {process.returncode}, see above.'
            )
        if time.monotonic() > deadline:
            sys.exit(f'error: {what} within {timeout:.0f} s.')


def receive(urdf: str) -> tuple[JointEffortTrajectory, list[JointEffort]]:
    """Run the node and the trajectory; return the whole answer and the streamed messages."""
    reference = panda_sinusoids()
    print('Starting hodyn_node for the Panda.')
    process = subprocess.Popen(
        [
            *(sys.executable, '-m', 'hodyn_ros.ros.nodes.hodyn_node', '--ros-args'),
            *('--params-file', str(share_file('config/panda.yaml'))),
            *('-p', f'publish_rate:={PUBLISH_RATE}'),
            *('-p', f'trajectory_sample_period:={SAMPLE_PERIOD}'),
            *(
                '-p',
                f'trajectory_timeout:={TIMEOUT}',
            ),  # also on a machine that has much to do
        ]
    )
    rclpy.init()
    client = Client(urdf)
    try:
        wait_until(
            lambda: (
                client.model_is_loaded
                and client.trajectory_publisher.get_subscription_count() > 0
            ),
            client,
            process,
            TIMEOUT,
            'the node did not load the robot description',
        )
        print(f'Sending a trajectory of {reference.duration:.0f} s.')
        client.trajectory_publisher.publish(
            joint_trajectory(reference, JOINT_NAMES, WAYPOINT_PERIOD)
        )
        wait_until(
            lambda: client.whole is not None,
            client,
            process,
            TIMEOUT,
            'no answer came on /hodyn_node/effort_trajectory',
        )
        end = nanoseconds(client.whole.header.stamp) + round(
            reference.duration * NANOSECONDS
        )
        print('Receiving torques in real time.')
        wait_until(
            lambda: (
                client.streamed and nanoseconds(client.streamed[-1].header.stamp) >= end
            ),
            client,
            process,
            reference.duration + TIMEOUT,
            'the stream on /hodyn_node/joint_effort did not reach the end of the trajectory',
        )
        process.send_signal(signal.SIGINT)
        if process.wait(timeout=10.0) != 0:
            sys.exit(f'error: the node ended with exit code {process.returncode}.')
    finally:
        if process.poll() is None:
            process.kill()
        client.destroy_node()
        rclpy.shutdown()
    return client.whole, client.streamed


def differences(stencil: np.ndarray, Q: np.ndarray, order: int) -> np.ndarray:
    """Finite differences of samples (N, n) in the middle of the stencil."""
    half = len(stencil) // 2 * STRIDE
    rows = [
        weight * Q[k * STRIDE : len(Q) - 2 * half + k * STRIDE]
        for k, weight in enumerate(stencil)
    ]
    return sum(rows) / (STRIDE * SAMPLE_PERIOD) ** order


def draw(
    limits: tuple[np.ndarray, ...],
    times: np.ndarray,
    orders: list[np.ndarray],
    stream_times: np.ndarray,
    streamed: list[np.ndarray],
) -> None:
    """Write a picture of all orders of all joints."""
    titles = ('torque [N m]', 'torque rate [N m/s]', 'second derivative [N m/s²]')
    figure, axes = plt.subplots(len(JOINT_NAMES), 3, figsize=(13, 15), sharex=True)
    for j, name in enumerate(JOINT_NAMES):
        for order, axis in enumerate(axes[j]):
            axis.plot(times, orders[order][:, j], color='tab:blue', lw=1.2)
            axis.plot(
                stream_times[::8], streamed[order][::8, j], '.', ms=3, color='tab:orange'
            )
            axis.grid(alpha=0.3)
            limit = limits[order][j]
            if np.abs(orders[order][:, j]).max() > 0.5 * limit:
                for sign in (-1, 1):
                    axis.axhline(sign * limit, color='tab:red', lw=1, ls='--')
        axes[j, 0].set_ylabel(name)
    for axis, title in zip(axes[0], titles):
        axis.set_title(title)
    for axis in axes[-1]:
        axis.set_xlabel('time [s]')
    figure.suptitle(
        'Franka Panda: whole answer (blue), streamed messages (orange), limit (red)'
    )
    figure.tight_layout(rect=(0, 0, 1, 0.985))
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PICTURE, dpi=80)


def effort_limits(urdf: str) -> tuple[np.ndarray, ...]:
    """Limits of torque, torque rate and its derivative (there is none)."""
    model = RobotModel.from_urdf(urdf)
    parameters = yaml.safe_load(share_file('config/panda.yaml').read_text(encoding='utf-8'))
    limits = motion_limits(model, parameters['/**']['ros__parameters']['limits'])
    return limits.effort, limits.effort_dot, np.full(model.n_joints, np.inf)


def main() -> int:
    """Run the demonstration; return 0 if everything is as it should be."""
    # A domain of its own keeps other nodes on this machine out.
    os.environ['ROS_DOMAIN_ID'] = str(random.SystemRandom().randrange(1, 100))
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    urdf = share_file('urdf/panda.urdf').read_text(encoding='utf-8')
    limits = effort_limits(urdf)
    whole, stream = receive(urdf)

    times = np.array(whole.time_from_start)
    orders = [
        np.array(values).reshape(len(times), -1)
        for values in (whole.effort, whole.effort_dot, whole.effort_ddot)
    ]
    start = nanoseconds(whole.header.stamp)
    stream_times = (
        np.array([nanoseconds(m.header.stamp) - start for m in stream]) / NANOSECONDS
    )
    streamed = [
        np.array([getattr(message, field) for message in stream])
        for field in ('effort', 'effort_dot', 'effort_ddot')
    ]

    half = len(FIRST) // 2 * STRIDE
    inner = slice(half, -half)
    errors = [
        np.abs(differences(stencil, orders[0], order) - orders[order][inner]).max(axis=0)
        / np.abs(orders[order]).max(axis=0)
        for order, stencil in ((1, FIRST), (2, SECOND))
    ]
    stream_errors = [
        np.abs(CubicSpline(times, whole_order)(stream_times) - stream_order).max()
        / np.abs(whole_order).max()
        for whole_order, stream_order in zip(orders, streamed)
    ]

    print(
        f'\nReceived {len(times)} samples at once and {len(stream)} messages in real time.'
    )
    print(
        'Largest values, limits, and relative difference to finite differences of the torque:\n'
    )
    print(
        f'{"joint":14}{"|Q| [N m]":>16}{"|Qd| [N m/s]":>18}{"|Qdd| [N m/s2]":>17}', end=''
    )
    print(f'{"Qd - FD":>12}{"Qdd - FD":>12}')
    peaks = [np.abs(order).max(axis=0) for order in orders]
    for j, name in enumerate(JOINT_NAMES):
        print(
            f'{name:14}{peaks[0][j]:9.2f} / {limits[0][j]:<4.0f}'
            f'{peaks[1][j]:10.1f} / {limits[1][j]:<5.0f}{peaks[2][j]:17.1f}'
            f'{errors[0][j]:12.1e}{errors[1][j]:12.1e}'
        )
    draw(limits, times, orders, stream_times, streamed)
    print(f'\nPicture: {PICTURE}')

    faults = [
        f'derivative {order + 1} differs from finite differences by {error.max():.1e}'
        for order, (error, tolerance) in enumerate(zip(errors, TOLERANCES))
        if not error.max() <= tolerance
    ]
    faults += [
        f'the streamed order {order} differs from the whole answer by {error:.1e}'
        for order, error in enumerate(stream_errors)
        if not error <= 1e-6
    ]
    faults += [
        f'the {violation.quantity} limit of {violation.joint_name} is exceeded'
        for violation in whole.limit_violations
    ]
    for fault in faults:
        print(f'error: {fault}', file=sys.stderr)
    if not faults:
        print('All derivatives agree with finite differences and all limits are kept.')
    return 1 if faults else 0


if __name__ == '__main__':
    sys.exit(main())
