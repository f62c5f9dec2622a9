"""What the fault tests share: a node in a process of its own, a client of it, and bad messages.

The node runs as a user runs it, so that it can be killed and its memory measured. The client
counts and checks all that the node publishes; waiting is done on conditions that arriving messages
signal.
"""

from __future__ import annotations

import itertools
import os
import resource
import struct
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import WrenchStamped
from hodyn_msgs.msg import (
    JointEffort,
    JointMotion,
    WrenchMotion,
)
from hodyn_msgs.srv import ComputeInverseDynamics
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from support.messages import (
    EFFORTS,
    GRAVITY,
    MOTION,
    NAMES,
    joint_motion,
    nanoseconds,
)
from support.nodes import TIMEOUT, Process, dict_of, next_domain
from support.nodes import Client as Listener
from support.oracles import taylor_rnea
from trajectory_msgs.msg import JointTrajectory

from hodyn_ros.ros.base import qos

# Of a node [B]; one that wants more shall fail and not take the machine down.
ADDRESS_SPACE = 6 * 2**30

# Other test processes on the machine may have the same domain, but not the same names.
NAMESPACE = os.environ.get('FAULT_NAMESPACE') or f'faults_{os.getpid()}'

# What the client cannot take at once shall wait and not look as if it had never been sent.
EVERYTHING = QoSProfile(depth=100_000, reliability=ReliabilityPolicy.RELIABLE)
INPUTS = {
    'robot_description': (String, qos.ROBOT_DESCRIPTION),
    'joint_motion': (JointMotion, qos.OUTPUT),
    'joint_trajectory': (JointTrajectory, qos.OUTPUT),
    'position_chunk': (JointTrajectory, qos.OUTPUT),
    'wrench_motion': (WrenchMotion, qos.OUTPUT),
    'joint_states': (JointState, qos.OUTPUT),
    'wrench': (WrenchStamped, qos.OUTPUT),
}


# Processes


def children(pid: int) -> list[int]:
    """Processes that a process and its children have started and that have not ended."""
    found = []
    for path in Path(f'/proc/{pid}/task').glob('*/children'):
        try:
            direct = [int(word) for word in path.read_text().split()]
        except OSError:
            continue
        for child in direct:
            found += [child, *children(child)]
    return [child for child in found if is_alive(child)]


def is_alive(pid: int) -> bool:
    """Whether a process runs."""
    try:
        # The name in parentheses may hold anything.
        state = Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0]
    except (OSError, IndexError):
        return False
    return state not in 'ZX'


def command(pid: int) -> str:
    """Command line of a process."""
    try:
        return Path(f'/proc/{pid}/cmdline').read_bytes().decode(errors='replace')
    except OSError:
        return ''


def planning_of(pid: int) -> list[int]:
    """Processes that plan for a node."""
    return [child for child in children(pid) if 'ros.planner' in command(child)]


def memory(pid: int, field: str = 'VmRSS') -> int:
    """Memory of a process [B]: VmRSS as it is, VmHWM at its highest; 0 if it has ended."""
    try:
        lines = Path(f'/proc/{pid}/status').read_text().splitlines()
    except OSError:
        return 0
    return next(
        (1024 * int(line.split()[1]) for line in lines if line.startswith(field)), 0
    )


def environment(domain: int) -> dict[str, str]:
    """Environment of a process that lives in a ROS domain and says at once what it says."""
    return {
        **os.environ,
        'PYTHONPATH': os.pathsep.join(sys.path),
        'PYTHONUNBUFFERED': '1',
        'RCUTILS_LOGGING_BUFFERED_STREAM': '0',
        'ROS_DOMAIN_ID': str(domain),
        'FAULT_NAMESPACE': NAMESPACE,
    }


def forget_peak(pid: int) -> None:
    """Have VmHWM begin anew."""
    Path(f'/proc/{pid}/clear_refs').write_text('5')


class NodeProcess(Process):
    """The node in a process of its own, whose memory is bounded."""

    def __init__(self, client: Client, **parameters: object) -> None:
        # Clients count answers, and some have many samples under way.
        values = {
            'input_timeout': 0.0,
            'diagnostics_period': 0.04,
            'answer_all': True,
            'trajectory_timeout': TIMEOUT,
            **parameters,
        }
        self.domain = client.domain
        super().__init__('hodyn_node', client, values)
        bounds = ADDRESS_SPACE, ADDRESS_SPACE
        resource.prlimit(self.pid, resource.RLIMIT_AS, bounds)

    def is_alive(self) -> bool:
        """Whether the node runs."""
        return self.process.poll() is None

    def memory(self) -> int:
        """Memory of the node and its children [B]."""
        return sum(memory(pid) for pid in (self.pid, *children(self.pid)))

    def planning_memory(self) -> int:
        """Memory of the process that plans [B]; compilers come and go beside it."""
        return sum(map(memory, planning_of(self.pid)))


# Client


class Client(Listener):
    """Everything that a client of a node needs; it counts and checks what comes."""

    def __init__(self, domain: int, takes_efforts: bool = True) -> None:
        super().__init__(domain, NAMESPACE)
        self.efforts: dict[int, list[JointEffort]] = defaultdict(list)
        self.order: list[int] = []  # stamps of the answers as they came
        self.statuses: dict[str, dict[str, str]] = {}
        self.reports = 0
        self.not_finite: list[object] = []
        self._stamps = itertools.count(10**18)  # each sample has its own
        for topic, (kind, profile) in INPUTS.items():
            self.offer(kind, topic, profile)
        if takes_efforts:
            self._hear(
                JointEffort, 'hodyn_node/joint_effort', self._keep_effort, EVERYTHING
            )
        self._hear(DiagnosticArray, '/diagnostics', self._keep_diagnostics, qos.OUTPUT)
        # With the default of ten, a burst of answers, be they for others, pushes its own ones out.
        self.service = self.client.create_client(
            ComputeInverseDynamics,
            'hodyn_node/compute_inverse_dynamics',
            qos_profile=QoSProfile(depth=1000, reliability=ReliabilityPolicy.RELIABLE),
        )

    def _hear(self, kind: type, topic: str, keep, profile) -> None:
        def hear(message) -> None:
            with self.arrived:
                keep(message)
                self.arrived.notify_all()

        self.client.create_subscription(kind, topic, hear, profile)

    def _keep_effort(self, message: JointEffort) -> None:
        stamp = nanoseconds(message.header.stamp)
        self.efforts[stamp].append(message)
        self.order.append(stamp)
        if not is_finite(message):
            self.not_finite.append(message)

    def _keep_diagnostics(self, message: DiagnosticArray) -> None:
        self.reports += any(s.name.startswith(NAMESPACE) for s in message.status)
        for status in message.status:
            name, _, part = status.name.partition(': ')
            if name == f'{NAMESPACE}/hodyn_node':
                self.statuses[part] = {**dict_of(status), 'message': status.message}

    def match(self) -> None:
        """Wait until the node hears this client and is heard by it."""
        super().match()
        assert self.service.wait_for_service(TIMEOUT)
        self.wait(lambda: self.client.count_publishers('hodyn_node/joint_effort'), 'match')

    def wait_for_model(self) -> None:
        """Wait until the node has a model and prepares none."""
        # What is said of the model in a report that was on its way already does not count.
        self.wait_for_report()

        def is_there() -> bool:
            said = self.status('model')
            return said.get('in preparation') == 'no' and bool(said.get('robot'))

        self.wait(is_there, 'model')

    def wait_for_report(self) -> None:
        """Wait for a report of the node that was begun from now on."""
        before = self.reports
        self.wait(lambda: self.reports >= before + 2, 'report')

    def status(self, part: str) -> dict[str, str]:
        """Return what the latest report says of a part of the node."""
        return self.statuses.get(part, {})

    def count(self, part: str, key: str) -> int:
        """Return a number of the latest report."""
        return int(self.status(part).get(key, 0))

    def new_stamp(self) -> int:
        """Return a stamp that no other sample has [ns]."""
        return next(self._stamps)

    def send(self, motion=MOTION, names=NAMES) -> int:
        """Send a sample and return its stamp."""
        stamp = self.new_stamp()
        self.publishers['joint_motion'].publish(joint_motion(motion, names, stamp))
        return stamp

    def answer(self, stamp: int) -> JointEffort:
        """Wait for the answer to a sample."""
        return self.wait(lambda: self.efforts.get(stamp), f'answer to {stamp}')[0]

    def ask(self, motion=MOTION, names=NAMES, robot: str = '') -> None:
        """Send a sample, and check that it is answered, once and rightly."""
        stamp = self.send(motion, names)
        check(self.answer(stamp), motion, names, robot)
        assert len(self.efforts[stamp]) == 1

    def ask_until_answered(self) -> None:
        """Send samples until one is answered."""
        stamps: list[int] = []

        def answered() -> bool:
            stamps.append(self.send())
            return any(self.efforts.get(stamp) for stamp in stamps)

        self.wait(answered, 'an answer of the robot')

    def call(self, request):
        """Call the service and wait for the answer."""
        future = self.service.call_async(request)
        self.wait(future.done, 'answer of the service')
        return future.result()


class Pair:
    """A node with a robot and a client of it."""

    def __init__(self, urdf: str, **parameters: object) -> None:
        self.client = Client(next_domain())
        self.client.publishers['robot_description'].publish(String(data=urdf))
        self.node = NodeProcess(self.client, **parameters)
        self.urdf = urdf
        self.client.match()
        self.client.wait_for_model()

    def __enter__(self) -> Pair:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def check_health(self) -> None:
        """Check that the node lives, answers rightly and has never published nonsense."""
        assert self.node.is_alive(), self.node.log()
        self.client.ask(robot=self.urdf)
        assert not self.client.not_finite

    def close(self) -> None:
        """End both."""
        self.client.close()
        self.node.close()


# Messages


def is_finite(message: object) -> bool:
    """Whether all arrays of numbers in an output are finite."""
    # A trajectory says NaN where joint_trajectory_controller has no interpolation.
    fields = set(message.get_fields_and_field_types()) - {'deviation_from_jtc'}
    return all(
        np.isfinite(getattr(message, field)).all()
        for field, kind in message.get_fields_and_field_types().items()
        if field in fields and kind == 'sequence<double>'
    )


def check(message: JointEffort, motion, names, robot: str) -> None:
    """Check efforts against power series, which share no code with the package."""
    motion = np.asarray(motion, dtype=float)
    assert tuple(message.joint_names) == tuple(names)
    assert message.valid_order == len(motion) - 3
    given = np.array([getattr(message, field) for field in EFFORTS[: len(motion) - 2]])
    expected = taylor_rnea(robot, names, GRAVITY, motion)
    scale = np.abs(expected).max(axis=1, keepdims=True) + 1e-300
    assert np.all(np.abs(given - expected) <= 1e-9 * scale), (given, expected)


def put_stamp(data: bytearray, stamp: int) -> None:
    """Give a serialized message that begins with a header another stamp [ns]."""
    struct.pack_into('<iI', data, 4, stamp // 10**9, stamp % 10**9)


def motion_with_names_bytes(count: int) -> bytes:
    """Serialized JointMotion with very many joint names and no values."""
    header = serialize_message(JointMotion())[:20]
    return header + struct.pack('<I', count) + b'\2\0\0\0j\0\0\0' * count + bytes(20)


def trajectory_bytes(count: int) -> bytes:
    """Serialized JointTrajectory with very many points, a second from each to the next."""
    head = serialize_message(JointTrajectory(joint_names=NAMES))[
        :52
    ]  # all of it but the count
    points = np.zeros(count, 'u4, 2f8, 3u4, i4, u4')
    points['f0'], points['f1'], points['f3'] = 2, 0.1, np.arange(count)
    return head + struct.pack('<I', count) + points.tobytes()
