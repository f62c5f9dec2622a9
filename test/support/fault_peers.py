"""Processes that make trouble for a node, to be killed in the middle of it or to go on for hours.

    python test/support/fault_peers.py flood                 publish samples without end
    python test/support/fault_peers.py calls                 call the service without end
    python test/support/fault_peers.py chaos URDF PID SEED   one fault after the other, at random

`chaos` commits every fault once, says so, and goes on until its standard input ends; then it
prints what it has done as JSON. None of its faults is a reason to lose or to falsify a sample that
another publisher sends: the descriptions describe the same robot, and wrenches are invalid or
zero.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
import rclpy
from builtin_interfaces.msg import Time
from hodyn_msgs.msg import WrenchMotion
from hodyn_msgs.srv import ComputeInverseDynamics
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import serialize_message
from rosgraph_msgs.msg import Clock
from std_msgs.msg import String
from support.fault_tools import (
    INPUTS,
    NAMESPACE,
    motion_with_names_bytes,
    planning_of,
    trajectory_bytes,
)
from support.messages import joint_motion, joint_trajectory

from hodyn_ros import RobotModel

SERVICE = 'hodyn_node/compute_inverse_dynamics'
QUEUE = QoSProfile(depth=1000, reliability=ReliabilityPolicy.RELIABLE)
TIMEOUT = 10.0  # s, for answers that are still on their way
PAUSE = 0.05  # s, between two faults
START = 20.0  # s, of a process
LIFE = 20.0  # s, of the planning between two kills


def flood() -> None:
    """Publish samples as fast as possible, some of them valid."""
    rclpy.init()
    node = Node('flood', namespace=NAMESPACE)
    kind, profile = INPUTS['joint_motion']
    publisher = node.create_publisher(kind, 'joint_motion', profile)
    while not publisher.get_subscription_count():
        time.sleep(0.01)
    data = serialize_message(joint_motion(stamp=77))
    for number in range(10**9):
        publisher.publish(data if number % 2 else data[: number % len(data) or 1])
        if number == 100:
            print('begun', flush=True)
        if number % 10 == 0:
            time.sleep(0.001)


def calls() -> None:
    """Call the service with many requests at a time and wait for no answer."""
    rclpy.init()
    node = Node('calls', namespace=NAMESPACE)
    client = node.create_client(ComputeInverseDynamics, SERVICE)
    client.wait_for_service()
    request = ComputeInverseDynamics.Request(motion=[joint_motion(stamp=10**9)] * 20_000)
    for _ in range(3):
        client.call_async(request)
    print('begun', flush=True)
    while True:
        rclpy.spin_until_future_complete(node, client.call_async(request))


class Chaos:
    """Commits faults against a node that others use at the same time.

    Parameters
    ----------
    urdf : str
        Description of the robot that the node has.
    node_pid : int
        Process of the node; of its children one is killed now and then.
    seed : int
    """

    def __init__(self, urdf: str, node_pid: int, seed: int) -> None:
        self._urdf, self._pid, self._random = urdf, node_pid, random.Random(seed)
        model = RobotModel.from_urdf(urdf)
        self._names, self._link = model.joint_names, list(model.links)[-1]
        self.committed: Counter[str] = Counter()
        self.answers: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._open = 0
        self._killed: float | None = None
        rclpy.init()
        self._node = Node('chaos', namespace=NAMESPACE)
        self._publishers = {
            topic: self._node.create_publisher(kind, topic, profile)
            for topic, (kind, profile) in INPUTS.items()
        }
        self._clock = self._node.create_publisher(Clock, '/clock', 10)
        self._client = self._node.create_client(
            ComputeInverseDynamics,
            SERVICE,
            qos_profile=QUEUE,
        )
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self._node)
        threading.Thread(target=self._executor.spin, daemon=True).start()
        self._client.wait_for_service()
        while not all(p.get_subscription_count() for p in self._publishers.values()):
            time.sleep(0.01)
        self._huge = {
            'joint_trajectory': trajectory_bytes(200_000),
            'joint_motion': motion_with_names_bytes(300_000),
        }
        self.faults = {
            name[len('_fault_') :]: getattr(self, name)
            for name in sorted(dir(self))
            if name.startswith('_fault_')
        }

    def commit(self, name: str) -> None:
        """Commit one fault."""
        self.faults[name]()
        self.committed[name] += 1

    def run(self, go_on: threading.Event) -> None:
        """Commit faults at random."""
        names = sorted(self.faults)
        # What costs a second of a processor shall not leave the others without a turn.
        rare = {'killed_publisher', 'killed_client', 'huge_message', 'killed_planning'}
        weights = [1 if name in rare else 8 for name in names]
        while go_on.is_set():
            self.commit(self._random.choices(names, weights)[0])
            time.sleep(PAUSE * 2.0 * self._random.random())

    def close(self) -> None:
        """Wait until all calls are answered, and leave."""
        # What has no answer by then went to a planning that was killed.
        deadline = time.monotonic() + TIMEOUT
        while self._open and time.monotonic() < deadline:
            time.sleep(0.01)
        self.answers['unanswered'] = self._open
        self._executor.shutdown()
        self._node.destroy_node()
        rclpy.shutdown()

    def _call(self, request: ComputeInverseDynamics.Request) -> None:
        def done(future) -> None:
            response = future.result()
            values = np.array(response.effort_trajectory.effort_ddot)
            with self._lock:
                self._open -= 1
                self.answers[str(response.error_code)] += 1
                self.answers['not finite'] += int(not np.isfinite(values).all())

        with self._lock:
            self._open += 1
        self._client.call_async(request).add_done_callback(done)

    def _some_motion(self) -> np.ndarray:
        return np.array(
            [[self._random.gauss(0.0, 1.0) for _ in self._names] for _ in range(5)]
        )

    def _good_trajectory(self):
        row = [0.5 * self._random.random() for _ in self._names]
        return joint_trajectory(
            ([0.0] * len(row), row, [0.2] * len(row)), (0.0, 0.2, 0.4), self._names
        )

    def _fault_bad_motions(self) -> None:
        publish = self._publishers['joint_motion'].publish
        motion = self._some_motion()
        publish(joint_motion(motion[:2], self._names))
        publish(joint_motion(motion, self._names[1:]))
        publish(joint_motion(motion, [*self._names[1:], '\u2603']))
        for value in (np.nan, np.inf, 1e308):
            motion[self._random.randrange(5), 0] = value
            publish(joint_motion(motion, self._names))

    def _fault_corrupt_bytes(self) -> None:
        for topic, publisher in self._publishers.items():
            # The stream keeps its samples to itself: what is corrupt bears another stamp.
            if topic == 'robot_description':
                data = serialize_message(String(data='<robot name="☃"/>'))
            elif topic == 'joint_motion':
                data = serialize_message(joint_motion(self._some_motion(), self._names))
            elif topic == 'joint_trajectory':
                data = serialize_message(self._good_trajectory())
            else:
                data = serialize_message(INPUTS[topic][0]())
            cut = bytearray(data[: self._random.randint(5, len(data))])
            for _ in range(3):
                cut[self._random.randrange(12, max(len(cut), 13)) % len(cut)] = 0xFF
            publisher.publish(bytes(cut))

    def _fault_huge_message(self) -> None:
        topic = self._random.choice(sorted(self._huge))
        self._publishers[topic].publish(self._huge[topic])

    def _fault_trajectories(self) -> None:
        publish = self._publishers['joint_trajectory'].publish
        for _ in range(5):
            publish(self._good_trajectory())
        message = self._good_trajectory()
        message.points[1].positions = [np.nan] * len(self._names)
        publish(message)

    def _fault_bad_wrenches(self) -> None:
        for link in ('no link', self._link):
            message = WrenchMotion()
            message.header.frame_id = link
            if link != 'no link':
                message.wrench.force.x = np.nan
            self._publishers['wrench_motion'].publish(message)

    def _fault_flapping_description(self) -> None:
        # The same robot in other words must be compiled anew, or is remembered.
        other = self._urdf + f'<!-- {self._random.randrange(4)} -->'
        for text in ('<robot', self._urdf, 'no robot', other, self._urdf):
            self._publishers['robot_description'].publish(String(data=text))

    def _fault_requests(self) -> None:
        Request = ComputeInverseDynamics.Request
        samples = [
            joint_motion(self._some_motion(), self._names, 10**9 * number)
            for number in range(1, 4)
        ]
        self._call(Request(motion=samples))
        self._call(Request(motion=samples[::-1]))
        self._call(Request(trajectory=self._good_trajectory(), sample_period=1e-4))
        self._call(Request(trajectory=self._good_trajectory(), sample_period=1e-9))
        self._call(Request(trajectory=self._good_trajectory(), motion=samples))

    def _fault_clock_jumps(self) -> None:
        for seconds in (1000, 2000, 10, 1500):
            self._clock.publish(
                Clock(clock=Time(sec=seconds, nanosec=self._random.randrange(10**9)))
            )

    def _fault_killed_publisher(self) -> None:
        self._kill('flood')

    def _fault_killed_client(self) -> None:
        self._kill('calls')

    def _kill(self, what: str) -> None:
        with subprocess.Popen(
            [sys.executable, __file__, what], stdout=subprocess.PIPE, text=True
        ) as process:
            # Fast DDS waits for ever for the shared memory of a process that was killed while it
            # made it.
            if not select.select([process.stdout], [], [], START)[0]:
                self.committed['stuck in the middleware'] += 1
            process.kill()

    def _fault_killed_planning(self) -> None:
        # Which takes a while to be back, and what is asked of it meanwhile is lost.
        if self._killed is not None and time.monotonic() < self._killed + LIFE:
            return
        self._killed = time.monotonic()
        for pid in planning_of(self._pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def chaos(path: str, pid: str, seed: str) -> None:
    """Commit every fault once, then faults at random until the standard input ends."""
    made = Chaos(Path(path).read_text(encoding='utf-8'), int(pid), int(seed))
    for name in made.faults:
        made.commit(name)
    print('begun', flush=True)
    go_on = threading.Event()
    go_on.set()

    def until_the_end() -> None:
        sys.stdin.read()
        go_on.clear()

    threading.Thread(target=until_the_end, daemon=True).start()
    made.run(go_on)
    made.close()
    print(json.dumps({'committed': made.committed, 'answers': made.answers}))


if __name__ == '__main__':
    {'flood': flood, 'calls': calls, 'chaos': chaos}[sys.argv[1]](*sys.argv[2:])
