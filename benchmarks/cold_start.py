"""How long users wait for the first answer, and what a stream feels while something is compiled.

Everything is measured in fresh processes, the node over real middleware, with the Franka Panda:
cold with an empty cache directory, cached with one that a run before has filled. All figures are
medians over the runs; a stream's largest delay is the largest one of a run.

    python benchmarks/cold_start.py [--runs 5]
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from hodyn_msgs.msg import JointEffort, JointMotion
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from hodyn_ros.resources import share_file
from hodyn_ros.ros.base import qos
from hodyn_ros.ros.base.conversions import time_message
from hodyn_ros.ros.nodes.reference_publisher import JOINT_NAMES
from hodyn_ros.streams.timeline import nanoseconds

TIMEOUT = 60.0  # s
POLL = 0.002  # s
RATES = (1000, 100)  # Hz
QUIET = 2.0  # s of a stream before another description comes

PLAIN = """
import time, warnings
begin = time.perf_counter()
from hodyn_ros import RobotModel, inverse_dynamics
print('import hodyn_ros', time.perf_counter() - begin)
import numpy as np
warnings.simplefilter('ignore')
begin = time.perf_counter()
model = RobotModel.from_urdf({urdf!r})
print('RobotModel.from_urdf', time.perf_counter() - begin)
motion = np.full((5, model.n_joints), 0.2)
for name in ('first', 'second'):
    begin = time.perf_counter()
    inverse_dynamics(model, motion)
    print(name + ' inverse_dynamics without warm_up', time.perf_counter() - begin)
begin = time.perf_counter()
model.warm_up()
print('warm_up, import of Numba included', time.perf_counter() - begin)
inverse_dynamics(model, motion)
begin = time.perf_counter()
inverse_dynamics(model, motion)
print('inverse_dynamics after warm_up', time.perf_counter() - begin)
begin = time.perf_counter()
other = RobotModel.from_urdf({other!r})
other.warm_up()
print('from_urdf and warm_up of a second robot', time.perf_counter() - begin)
"""


class Delays(NamedTuple):
    """What a stream felt: its largest delay [s] and the samples that are missing."""

    largest: float
    missing: int


class Client(Node):
    """Describes robots, sends motions and keeps the efforts that come back."""

    def __init__(self, context: rclpy.Context) -> None:
        super().__init__('cold_start', context=context)
        self.efforts: list[tuple[float, JointEffort]] = []
        self.robot = ''
        self.create_subscription(
            JointEffort,
            '/hodyn_node/joint_effort',
            lambda message: self.efforts.append((time.perf_counter(), message)),
            qos.OUTPUT,
        )
        self.create_subscription(DiagnosticArray, '/diagnostics', self._on_diagnostics, 10)
        self.description = self.create_publisher(
            String, 'robot_description', qos.ROBOT_DESCRIPTION
        )
        self.motion = self.create_publisher(JointMotion, 'joint_motion', qos.INPUT)
        self.trajectory = self.create_publisher(
            JointTrajectory, 'joint_trajectory', qos.INPUT
        )

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name == 'hodyn_node: model':
                self.robot = {item.key: item.value for item in status.values}.get(
                    'robot', ''
                )


class Session:
    """A node in a process of its own and a client of it."""

    def __init__(self, cache: str, *parameters: str, description: str = '') -> None:
        domain = random.randint(1, 100)
        self._context = rclpy.Context()
        rclpy.init(context=self._context, domain_id=domain)
        self.client = Client(self._context)
        if description:
            self.client.description.publish(String(data=description))
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.client)
        self._thread = threading.Thread(target=self._executor.spin, daemon=True)
        self._thread.start()
        arguments = [word for parameter in parameters for word in ('-p', parameter)]
        self.process = subprocess.Popen(
            [
                sys.executable,
                '-m',
                'hodyn_ros.ros.nodes.hodyn_node',
                '--ros-args',
                *arguments,
            ],
            env={**os.environ, 'NUMBA_CACHE_DIR': cache, 'ROS_DOMAIN_ID': str(domain)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        client = self.client
        for publisher in (client.description, client.motion, client.trajectory):
            self.wait(lambda p=publisher: p.get_subscription_count() > 0)
        self.wait(lambda: client.count_publishers('/hodyn_node/joint_effort') > 0)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait(TIMEOUT)
        self._executor.shutdown()
        self._thread.join()
        self.client.destroy_node()
        rclpy.shutdown(context=self._context)

    def wait(self, condition: Callable[[], object]) -> None:
        """Wait until a condition holds."""
        deadline = time.monotonic() + TIMEOUT
        while not condition():
            time.sleep(POLL)
            if time.monotonic() > deadline or self.process.poll() is not None:
                sys.exit('error: the node did not answer.')

    def first_answer(self) -> None:
        """Send motions until one is answered."""

        def answered() -> bool:
            self.client.motion.publish(joint_motion())
            return bool(self.client.efforts)

        self.wait(answered)


def joint_motion() -> JointMotion:
    """Return some motion of the Panda."""
    message = JointMotion(joint_names=list(JOINT_NAMES))
    for field in ('position', 'velocity', 'acceleration', 'jerk', 'snap'):
        setattr(message, field, [0.2] * len(JOINT_NAMES))
    return message


def joint_trajectory() -> JointTrajectory:
    """Return some motion of the Panda that takes a minute."""
    message = JointTrajectory(joint_names=list(JOINT_NAMES))
    for seconds in (0, 60):
        point = JointTrajectoryPoint(positions=[seconds / 100.0] * len(JOINT_NAMES))
        point.time_from_start.sec = seconds
        message.points.append(point)
    return message


def plain_times(cache: str, urdf: str, other: str) -> dict[str, float]:
    """Measure a fresh Python process."""
    output = subprocess.run(
        [sys.executable, '-c', PLAIN.format(urdf=urdf, other=other)],
        env={**os.environ, 'NUMBA_CACHE_DIR': cache},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return {
        name: float(value)
        for name, value in (line.rsplit(' ', 1) for line in output.splitlines())
    }


def node_times(cache: str, urdf: str) -> dict[str, float]:
    """Measure a fresh node that has been waiting for a description to its first answer."""
    with Session(cache) as session:
        time.sleep(2.0)
        begin = time.perf_counter()
        session.client.description.publish(String(data=urdf))
        session.first_answer()
        took = session.client.efforts[0][0] - begin
    return {'node, from the description to the first answer': took}


class Change(NamedTuple):
    """Times [s] on the client's clock: of a robot's change, and around it."""

    quiet: float
    described: float
    in_use: float


def change_robot(session: Session, other: str) -> Change:
    """Have another robot taken up while a stream runs that has been quiet for a while."""
    client = session.client
    session.wait(lambda: client.efforts)
    time.sleep(1.0)
    before, quiet = client.robot, time.time()
    time.sleep(QUIET)
    described = time.time()
    client.description.publish(String(data=other))
    session.wait(lambda: client.robot != before)
    in_use = time.time()
    time.sleep(0.5)
    return Change(quiet, described, in_use)


def trajectory_delays(
    cache: str, urdf: str, other: str, rate: int
) -> tuple[Delays, Delays, float]:
    """Largest gaps of a trajectory in quiet and while another description is compiled.

    The samples bear the time at which the node took them, so the client's delays do not count.
    """
    parameters = (f'publish_rate:={rate}.0', 'diagnostics_period:=0.05')
    with Session(cache, *parameters, description=urdf) as session:
        client = session.client
        session.wait(lambda: client.robot)
        client.trajectory.publish(joint_trajectory())
        change = change_robot(session, other)
        stamps = np.array(
            [nanoseconds(effort.header.stamp) for _, effort in client.efforts]
        )

    def delays(first: float, last: float) -> Delays:
        seconds = stamps * 1e-9
        distances = np.diff(seconds[(seconds >= first) & (seconds <= last)])
        return Delays(distances.max(), round(distances.sum() * rate) - len(distances))

    took = change.in_use - change.described
    return (
        delays(change.quiet, change.described),
        delays(change.described, change.in_use + 0.2),
        took,
    )


def motion_delays(
    cache: str, urdf: str, other: str, rate: int
) -> tuple[Delays, Delays, float]:
    """Largest delays of the answers to single motions, from sending to receiving."""
    sent: list[tuple[int, float, float]] = []
    ended = threading.Event()

    def send() -> None:
        message, begin = joint_motion(), time.perf_counter()
        while not ended.is_set():
            due = begin + len(sent) / rate
            time.sleep(max(0.0, due - time.perf_counter()))
            stamp = 10**9 + len(sent)
            message.header.stamp = time_message(stamp)
            sent.append((stamp, time.time(), time.perf_counter()))
            client.motion.publish(message)

    parameters = ('input_timeout:=0.0', 'diagnostics_period:=0.05')
    with Session(cache, *parameters, description=urdf) as session:
        client = session.client
        session.wait(lambda: client.robot)
        thread = threading.Thread(target=send, daemon=True)
        thread.start()
        change = change_robot(session, other)
        ended.set()
        thread.join()
        time.sleep(1.0)
        received = {
            nanoseconds(effort.header.stamp): arrival for arrival, effort in client.efforts
        }

    def delays(first: float, last: float) -> Delays:
        part = [(stamp, begin) for stamp, at, begin in sent if first <= at <= last]
        answered = [received[stamp] - begin for stamp, begin in part if stamp in received]
        return Delays(max(answered), len(part) - len(answered))

    return (
        delays(change.quiet, change.described),
        delays(change.described, change.in_use + 0.2),
        change.in_use - change.described,
    )


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--runs', type=int, default=5)
    runs = parser.parse_args().runs
    sys.setswitchinterval(1e-4)  # the client's threads hinder each other less
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    urdf = Path(share_file('urdf/panda.urdf')).read_text()
    # Other constants, so that nothing in the cache fits it.
    other = re.sub(r'<robot name="[^"]*"', '<robot name="changed"', urdf)
    other = re.sub(
        r'<mass value="([^"]*)"', lambda m: f'<mass value="{1.1 * float(m[1])!r}"', other
    )
    times: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as directory:

        def empty() -> str:
            return tempfile.mkdtemp(dir=directory)

        filled = empty()
        for number in range(-1, runs):
            for kind, cache in (('cold', empty()), ('cached', filled)):
                results = plain_times(cache, urdf, other)
                if kind == 'cold':
                    cache = empty()
                results |= node_times(cache, urdf)
                if number < 0:
                    continue  # fills the cache and warms up the file system
                for name, value in results.items():
                    times.setdefault(name, {}).setdefault(kind, []).append(value)
        print(f'| median of {runs} runs [ms] | cold | cached |\n| --- | --- | --- |')
        for name, by_kind in times.items():
            cold, cached = (1e3 * median(by_kind[kind]) for kind in ('cold', 'cached'))
            print(f'| {name} | {cold:#.3g} | {cached:#.3g} |', flush=True)
        print(
            '\n| stream while another description is compiled (cold), median of '
            f'{runs} runs | largest delay [ms] in quiet | while compiling | missing samples in '
            'quiet | while compiling | until the new robot is in use [s] |\n'
            '| --- | --- | --- | --- | --- | --- |'
        )
        for name, measure in (
            ('single motions, to the answer', motion_delays),
            ('trajectory, between samples', trajectory_delays),
        ):
            for rate in RATES:
                results = [measure(empty(), urdf, other, rate) for _ in range(runs)]
                quiet, busy, took = zip(*results)
                print(
                    f'| {name}, {rate} Hz | {1e3 * median(d.largest for d in quiet):.1f} | '
                    f'{1e3 * median(d.largest for d in busy):.1f} | '
                    f'{median(d.missing for d in quiet):.0f} | '
                    f'{median(d.missing for d in busy):.0f} | {median(took):.2f} |',
                    flush=True,
                )


if __name__ == '__main__':
    main()
