"""Trajectories that replace each other when the one before is nearly over, and stops, on a node.

    python -m benchmarks.replacements [--size full] [-o doc/benchmarks/replacements.inc]

The Franka Panda. A client sends trajectories of 60 points without stamps from where it knows the
robot to be, each 5 to 80 ms before the one before is over: too late to be planned by then. Then it
stops motions in their middle. It notes when `~/controller_trajectory` comes, beside its stamp and
the time of its first point, and the efforts that are streamed, beside their limits. All of it once
for each number of processes that never pause.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from hodyn_msgs.msg import JointEffort
from numpy.typing import NDArray
from rclpy.node import Node
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from benchmarks.report import grid, options
from hodyn_ros import RobotModel
from hodyn_ros.resources import share_file
from hodyn_ros.ros.base import qos
from hodyn_ros.streams.timeline import NANOSECONDS, nanoseconds

Array = NDArray[np.float64]


class Size(NamedTuple):
    """How much is measured."""

    trajectories: int
    stops: int
    busy: tuple[int, ...]


SIZES = {
    'tiny': Size(4, 2, (0,)),
    'quick': Size(30, 8, (0, 1, 3)),
    'full': Size(100, 20, (0, 1, 3)),
}
HOME = np.array([0.0, -0.4, 0.0, -2.0, 0.0, 1.6, 0.8])
REACH = 0.3  # rad, around home
POINTS, DURATION = 60, 0.8  # s
EARLIEST, LATEST = 0.080, 0.005  # s before the end of the motion before
RATE = 500.0  # Hz, of the stream
TIMEOUT = 60.0  # s
MISSING = 3.0  # s, after which a trajectory is not answered any more


class Found(NamedTuple):
    """What came of a number of trajectories or stops."""

    sent: int
    margins: list[float]
    """From the arrival of a trajectory for the controller to its stamp [s]."""
    to_first: list[float]
    """From there to its first point [s]."""
    refused: int
    effort: float
    """Largest effort that was streamed, beside its limit."""


class Client:
    """Sends trajectories of the Panda and notes what comes back."""

    def __init__(self, context: rclpy.Context, namespace: str) -> None:
        self.node = Node('client', context=context, namespace=namespace)
        self.answers: list[tuple[int, JointTrajectory]] = []
        self.efforts: list[JointEffort] = []
        self.is_ready, self.refused = False, 0
        text = share_file('urdf/panda.urdf').read_text()
        self.model = RobotModel.from_urdf(text)
        self._name = f'{namespace}/hodyn_node: '
        self._executor = rclpy.executors.SingleThreadedExecutor(context=context)
        self._executor.add_node(self.node)
        listen = self.node.create_subscription
        listen(
            JointTrajectory,
            'hodyn_node/controller_trajectory',
            lambda message: self.answers.append((time.time_ns(), message)),
            qos.EFFORT_TRAJECTORY,
        )
        listen(JointEffort, 'hodyn_node/joint_effort', self.efforts.append, qos.OUTPUT)
        listen(DiagnosticArray, '/diagnostics', self._on_diagnostics, qos.OUTPUT)
        self._publisher = self.node.create_publisher(
            JointTrajectory, 'joint_trajectory', qos.INPUT
        )
        self._description = self.node.create_publisher(
            String, 'robot_description', qos.ROBOT_DESCRIPTION
        )
        self._description.publish(String(data=text))
        self.wait(
            lambda: self.is_ready and self._publisher.get_subscription_count(), TIMEOUT
        )

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            values = {item.key: item.value for item in status.values}
            if status.name == f'{self._name}planning':
                self.is_ready = self.is_ready or values.get('process') == 'running'
            elif status.name == f'{self._name}joint_trajectory':
                self.refused = int(values.get('refused', 0))

    def wait(self, condition: Callable[[], object], longest: float) -> bool:
        """Wait until a condition holds; whether it does in time."""
        end = time.monotonic() + longest
        while not condition():
            if time.monotonic() > end:
                return False
            self._executor.spin_once(timeout_sec=0.002)
        return True

    def pause(self, end: float) -> None:
        """Let time pass up to one of time.time [s]."""
        self.wait(lambda: time.time() >= end, TIMEOUT)

    def send(self, begin: Array, end: Array) -> JointTrajectory | None:
        """Send a trajectory from rest to rest; what the controller gets, if anything."""
        message = JointTrajectory(joint_names=list(self.model.joint_names))
        for x in np.linspace(0.0, 1.0, POINTS):
            share = x**3 * (10.0 - 15.0 * x + 6.0 * x**2)
            point = JointTrajectoryPoint(positions=(begin + share * (end - begin)).tolist())
            point.time_from_start.nanosec = round(x * DURATION * NANOSECONDS)
            message.points.append(point)
        return self.publish(message)

    def publish(self, message: JointTrajectory) -> JointTrajectory | None:
        """Publish a trajectory, or a stop; what the controller gets, if anything."""
        count = len(self.answers)
        self._publisher.publish(message)
        self.wait(lambda: len(self.answers) > count, MISSING)
        return self.answers[-1][1] if len(self.answers) > count else None

    def found(self, sent: int, answers: int, efforts: int, refused: int) -> Found:
        """What came of what has been sent, behind so many answers, efforts and refusals."""
        margins, to_first = [], []
        for arrival, message in self.answers[answers:]:
            margins.append((nanoseconds(message.header.stamp) - arrival) / NANOSECONDS)
            to_first.append(margins[-1] + _seconds(message, 0))
        # Diagnostics that are newer than all that has been sent.
        self.pause(time.time() + 2.5)
        limits = self.model.limits.effort
        largest = max(
            (
                float(np.max(np.abs(item.effort) / limits))
                for item in self.efforts[efforts:]
            ),
            default=0.0,
        )
        return Found(sent, margins, to_first, self.refused - refused, largest)


def _seconds(message: JointTrajectory, index: int) -> float:
    time_ = message.points[index].time_from_start
    return float(time_.sec + time_.nanosec / NANOSECONDS)


def end_of(message: JointTrajectory) -> float:
    """When a motion for the controller is over, in time.time [s]."""
    return nanoseconds(message.header.stamp) / NANOSECONDS + _seconds(message, -1)


def replaced(client: Client, count: int, seed: int) -> Found:
    """Replace trajectories when they are nearly over."""
    draw, counts = (
        random.Random(seed),
        (len(client.answers), len(client.efforts), client.refused),
    )
    random_positions = np.random.default_rng(seed)
    there = HOME
    client.send(there, there + 0.01)
    there = there + 0.01
    for _ in range(count):
        if client.answers:
            client.pause(end_of(client.answers[-1][1]) - draw.uniform(LATEST, EARLIEST))
        goal = HOME + random_positions.uniform(-REACH, REACH, len(HOME))
        if client.send(there, goal) is not None:
            there = goal
    client.pause(end_of(client.answers[-1][1]) + 0.1)
    return client.found(count, counts[0] + 1, counts[1], counts[2])


def stopped(client: Client, count: int) -> Found:
    """Stop motions in their middle."""
    found, efforts, refused = [], len(client.efforts), client.refused
    for number in range(count):
        there = np.array(client.answers[-1][1].points[-1].positions)
        sign = 1.0 if number % 2 else -1.0
        moving = client.send(there, there + 0.1 * sign)
        if moving is None:
            continue
        client.pause(end_of(moving) - 0.5 * DURATION)
        answers = len(client.answers)
        if client.publish(JointTrajectory()) is not None:
            found.append(client.answers[answers])
        client.pause(end_of(client.answers[-1][1]) + 0.1)
    client.answers += found  # once more, at the end
    return client.found(count, len(client.answers) - len(found), efforts, refused)


@contextmanager
def processes(busy: int, namespace: str) -> Iterator[None]:
    """A node, and processes that never pause."""
    module, where = 'hodyn_ros.ros.nodes.hodyn_node', f'__ns:={namespace}'
    node = [sys.executable, '-m', module, '--ros-args', '-r', where]
    node += ['-p', f'publish_rate:={RATE}', '-p', 'diagnostics_period:=0.5']
    node += ['--log-level', 'fatal']
    commands = [node, *[[sys.executable, '-c', 'while True: pass']] * busy]
    started = [subprocess.Popen(command) for command in commands]
    try:
        yield
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(TIMEOUT)


def measured(size: Size, busy: int) -> tuple[Found, Found]:
    """Trajectories and stops beside so many processes that never pause."""
    namespace = f'/bench_{uuid.uuid4().hex}'
    context = rclpy.Context()
    rclpy.init(context=context)
    try:
        with processes(busy, namespace):
            client = Client(context, namespace)
            found = (
                replaced(client, size.trajectories, seed=busy),
                stopped(client, size.stops),
            )
            client.node.destroy_node()
        return found
    finally:
        rclpy.shutdown(context=context)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table and write it."""
    description = 'Trajectories that replace each other, and stops, on a node.'
    chosen = options(
        arguments, 'replacements', description, SIZES, 'how many, beside how much'
    )
    size = SIZES[chosen.size]
    lines = [
        [
            'beside',
            'sent',
            'for the controller',
            'before its stamp',
            'before its first point',
            'least margin',
            'refused',
            'largest effort / limit',
        ]
    ]
    for busy in size.busy:
        for what, found in zip(('trajectories', 'stops'), measured(size, busy)):
            taken = max(len(found.margins), 1)
            lines.append(
                [
                    f'{busy} busy processes',
                    f'{found.sent} {what}',
                    f'{len(found.margins)}',
                    f'{100.0 * sum(m > 0.0 for m in found.margins) / taken:.0f} %',
                    f'{100.0 * sum(m > 0.0 for m in found.to_first) / taken:.0f} %',
                    f'{1e3 * min(found.margins, default=np.nan):.1f} ms',
                    f'{found.refused}',
                    f'{found.effort:.2f}',
                ]
            )
    text = grid(lines)
    text += (
        f'\nTrajectories of {POINTS} points for the Panda without stamps, each sent '
        f'{1e3 * LATEST:.0f} to {1e3 * EARLIEST:.0f} ms before the one before is over; stops in '
        'the middle of motions. The margin is from the arrival at a subscriber to the stamp. '
        f'Efforts are those of the stream at {RATE:.0f} Hz.\n'
    )
    print(text)
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    chosen.output.write_text(text, encoding='utf-8')
    return 0


if __name__ == '__main__':
    sys.exit(main())
