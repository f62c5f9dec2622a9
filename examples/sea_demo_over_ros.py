"""The part of sea_demo.py that runs over ROS: two nodes in lock step, and a client.

The simulated robot publishes what is measured, the controller node answers with motor torques, and
the client sends the reference to the controller ahead of time and keeps everything.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from hodyn_msgs.msg import JointMotion
from rclpy.node import Node
from sea_demo import (
    CONTROLLERS,
    MOTOR_INERTIAS,
    TIME_STEP,
    Run,
)
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from hodyn_ros import RobotModel
from hodyn_ros.ros import qos
from hodyn_ros.ros.conversions import MOTION_FIELDS, flat, nanoseconds, time_message
from hodyn_ros.simulation.tracking import Motion
from hodyn_ros.trajectory.timeline import NANOSECONDS

START = 1.0  # s, of the simulated time
AHEAD = 900  # samples by which the reference is ahead; the controller keeps a few more
TIMEOUT = 60.0  # s
# Compiled code and NumPy round differently, and what they round acts on the robot.
TOLERANCE = 1e-9  # relative to the largest value


class Client(Node):
    """Sends the reference and keeps what is measured and commanded."""

    def __init__(
        self, urdf: str, joint_names: tuple[str, ...], desired: np.ndarray, lead: int
    ) -> None:
        super().__init__('demo_client')
        self._names, self._desired, self._lead = list(joint_names), desired, lead
        self._sent = 0
        self._controller_is_ready = False
        self.arrivals = 0
        self.measured: dict[int, np.ndarray] = {}
        self.torque: dict[int, np.ndarray] = {}
        self.health: dict[str, str] = {}
        self._publisher = self.create_publisher(
            JointMotion, 'flatness_controller/reference', qos.INPUT
        )
        self._description = self.create_publisher(
            String, 'robot_description', qos.ROBOT_DESCRIPTION
        )
        self._description.publish(String(data=urdf))
        self.create_subscription(JointState, 'joint_states', self._on_links, qos.OUTPUT)
        self.create_subscription(JointState, 'motor_command', self._on_command, qos.OUTPUT)
        self.create_subscription(DiagnosticArray, '/diagnostics', self._on_health, qos.OUTPUT)

    @property
    def is_heard(self) -> bool:
        """Whether the controller has the robot and takes references."""
        return self._controller_is_ready and self._publisher.get_subscription_count() > 0

    def send(self, last: int, period: int) -> None:
        """Send the references up to a sample."""
        while self._sent < min(last, len(self._desired)):
            stamp = round(START * NANOSECONDS) + self._sent * period + self._lead
            message = JointMotion(joint_names=self._names)
            message.header.stamp = time_message(stamp)
            for name, values in zip(MOTION_FIELDS, self._desired[self._sent]):
                setattr(message, name, flat(values))
            self._publisher.publish(message)
            self._sent += 1

    def _on_links(self, message: JointState) -> None:
        self.arrivals += 1
        self.measured[nanoseconds(message.header.stamp)] = np.array(message.position)

    def _on_command(self, message: JointState) -> None:
        self.torque[nanoseconds(message.header.stamp)] = np.array(message.effort)

    def _on_health(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name == 'simulated_robot: simulation':
                self.health = {item.key: item.value for item in status.values}
            elif status.name == 'flatness_controller: model':
                self._controller_is_ready = status.level == DiagnosticStatus.OK


def start_nodes(run: Run, model: RobotModel, q: np.ndarray, period: float) -> list:
    """Start the simulated robot and the controller as processes."""
    shared: dict[str, object] = {}
    for joint, inertia in zip(model.joint_names, MOTOR_INERTIAS):
        shared[f'actuators.{joint}.type'] = 'sea'
        shared[f'actuators.{joint}.stiffness'] = run.stiffness
        shared[f'actuators.{joint}.motor_inertia'] = inertia
    robot = {
        'sample_period': period,
        'time_step': TIME_STEP,
        'start_time': START,
        'command_timeout': 1.0,
        'diagnostics_period': 0.1,
        **{f'initial_position.{joint}': value for joint, value in zip(model.joint_names, q)},
    }
    control = {
        'controller': CONTROLLERS[run.controller][0],
        'bandwidth': run.bandwidth,
        'lead': period / 2.0,
        'measurement_timeout': 0.0,
        # A reference that is late is not to be replaced by another one.
        'reference_timeout': period / 4.0,
        'diagnostics_period': 0.1,
        # None of them may get lost.
        'qos_overrides./joint_states.subscription.reliability': 'reliable',
        'qos_overrides./motor_states.subscription.reliability': 'reliable',
    }
    remap = ['-r', '~/motor_command:=/motor_command']
    return [
        _start('simulated_robot', {**shared, **robot}, []),
        _start('flatness_controller', {**shared, **control}, remap),
    ]


def _start(module: str, parameters: dict[str, object], remap: list[str]) -> subprocess.Popen:
    given = [
        word
        for name, value in parameters.items()
        for word in ('-p', f'{name}:={value if isinstance(value, str) else float(value)!r}')
    ]
    return subprocess.Popen(
        [
            *(sys.executable, '-m', f'hodyn_ros.ros.{module}', '--ros-args'),
            # While they wait for each other, they say so all the time.
            *('--log-level', 'fatal', *given, *remap),
        ]
    )


def receive(urdf: str, run: Run, model: RobotModel, motion: Motion, period: float) -> Client:
    """Let one controller follow the motion over topics."""
    step = round(period * NANOSECONDS)
    count = len(run.tracking.torque)
    desired = motion(period * np.arange(count) + period / 2.0)
    processes = start_nodes(run, model, run.tracking.q[0], period)
    client = Client(urdf, model.joint_names, desired, step // 2)
    try:
        wait_until(lambda: client.is_heard, client, processes)
        # The robot repeats its first sample until the first command. Right after one of them there
        # is time to send what the controller needs before it answers the next one.
        before = client.arrivals
        wait_until(lambda: client.arrivals > before, client, processes)
        last = round(START * NANOSECONDS) + count * step

        def arrived() -> bool:
            latest = (max(client.measured) - round(START * NANOSECONDS)) // step
            client.send(latest + AHEAD, step)
            return last in client.measured and len(client.torque) >= count

        wait_until(arrived, client, processes)
        wait_until(lambda: int(client.health.get('samples', 0)) >= count, client, processes)
    finally:
        for process in processes:
            process.send_signal(signal.SIGINT)
        for process in processes:
            try:
                process.wait(timeout=10.0)
            except subprocess.TimeoutExpired:
                process.kill()
        client.destroy_node()
    return client


def wait_until(condition: Callable[[], object], node: Node, processes: list) -> None:
    """Spin until the condition holds; leave with a message if it does not."""
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        rclpy.spin_once(node, timeout_sec=0.05)
        for process in processes:
            if process.poll() is not None:
                sys.exit(f'error: a node ended with exit code {process.returncode}, see above.')
        if time.monotonic() > deadline:
            sys.exit(f'error: the nodes did not come to an end within {TIMEOUT:.0f} s.')


def compare(
    urdf: str, model: RobotModel, motion: Motion, runs: list[Run], period: float
) -> int:
    """Run everything over ROS and compare; return 0 if it comes out the same."""
    print('\nThe same over ROS topics in lock step:')
    faults = 0
    rclpy.init()
    for run in runs:
        begin = time.monotonic()
        client = receive(urdf, run, model, motion, period)
        count = len(run.tracking.torque)
        first, step = round(START * NANOSECONDS), round(period * NANOSECONDS)
        stamps = [first + k * step for k in range(count + 1)]
        q = np.array([client.measured[stamp] for stamp in stamps])
        torque = np.array([client.torque[stamp] for stamp in stamps[:-1]])
        differences = [
            np.abs(values - expected).max() / np.abs(expected).max()
            for values, expected in ((q, run.tracking.q), (torque, run.tracking.torque))
        ]
        held = client.health.get('samples without a command')
        error = q - run.tracking.desired[:, 0]
        print(
            f'{run.stiffness:10.0f} {run.controller:25} RMS {1e3 * np.sqrt(np.mean(error**2)):.5f}'
            f' mrad; differences: positions {differences[0]:.1e}, torques {differences[1]:.1e}; '
            f'{count / (time.monotonic() - begin):.0f} samples/s',
            flush=True,
        )
        if held != '0' or not max(differences) <= TOLERANCE:
            faults += 1
            print(
                f'error: this is not the same ({held} samples without a command)', file=sys.stderr
            )
    rclpy.shutdown()
    if not faults:
        print('All agree with those in one process.')
    return 1 if faults else 0
