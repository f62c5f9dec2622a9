"""What the fault tests share: a node in a process of its own, a client of it, and bad messages.

The node runs as a user runs it, so that it can be killed and its memory measured. The client
counts and checks all that the node publishes; waiting is done on conditions that arriving messages
signal.
"""

from __future__ import annotations

import itertools
import os
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import defaultdict
from pathlib import Path

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import WrenchStamped
from hodyn_msgs.msg import (
    JointEffort,
    JointEffortTrajectory,
    JointMotion,
    WrenchMotion,
)
from hodyn_msgs.srv import ComputeInverseDynamics
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
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
from support.oracles import taylor_rnea
from support.ros_harness import next_domain, spin_to_end
from trajectory_msgs.msg import JointTrajectory

from hodyn_ros.ros.base import qos

MODULE = 'hodyn_ros.ros.nodes.hodyn_node'

TIMEOUT = 240.0  # s, only ever reached by a failing test
# Of a node [B]; one that wants more shall fail and not take the machine down.
ADDRESS_SPACE = 6 * 2**30

# Other test processes on the machine may have the same domain, but not the same names.
NAMESPACE = os.environ.get('FAULT_NAMESPACE') or f'faults_{uuid.uuid4().hex}'

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


class NodeProcess:
    """The node in a process of its own, restarted in the same place if wanted."""

    def __init__(self, domain: int, **parameters: object) -> None:
        self.domain = domain
        # Clients count answers, and some have many samples under way.
        values = {
            'input_timeout': 0.0,
            'diagnostics_period': 0.04,
            'answer_all': True,
            'trajectory_timeout': TIMEOUT,
            **parameters,
        }
        self._arguments = [
            word
            for name, value in values.items()
            for word in ('-p', f'{name}:={_yaml(value)}')
        ]
        self._arguments += ['-r', f'__ns:=/{NAMESPACE}']
        self._log = tempfile.TemporaryFile('w+')
        self.start()

    def start(self) -> None:
        """Start the process."""
        self.process = subprocess.Popen(
            [sys.executable, '-m', MODULE, '--ros-args', *self._arguments],
            stdout=self._log,
            stderr=subprocess.STDOUT,
            env=environment(self.domain),
        )
        resource.prlimit(
            self.process.pid, resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE)
        )

    @property
    def pid(self) -> int:
        """Process id."""
        return self.process.pid

    def is_alive(self) -> bool:
        """Whether the node runs."""
        return self.process.poll() is None

    def log(self) -> str:
        """Return what the node has said."""
        self._log.seek(0)
        return self._log.read()

    def memory(self) -> int:
        """Memory of the node and its children [B]."""
        return sum(memory(pid) for pid in (self.pid, *children(self.pid)))

    def planning_memory(self) -> int:
        """Memory of the process that plans [B]; compilers come and go beside it."""
        return sum(
            memory(pid) for pid in children(self.pid) if 'ros.planning' in command(pid)
        )

    def kill(self) -> None:
        """End the process as a crash would."""
        self.process.kill()
        self.process.wait(TIMEOUT)

    def close(self) -> None:
        """End the process in order; kill it if it does not end."""
        if self.is_alive():
            self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        finally:
            self._log.close()


def _yaml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# Client


class Client:
    """Everything that a client of a node needs, in a thread of its own."""

    def __init__(self, domain: int, takes_efforts: bool = True) -> None:
        self.efforts: dict[int, list[JointEffort]] = defaultdict(list)
        self.order: list[int] = []  # stamps of the answers as they came
        self.streamed = 0  # efforts along trajectories
        self.trajectories: list[JointEffortTrajectory] = []
        self.statuses: dict[str, dict[str, str]] = {}
        self.reports = 0
        self.not_finite: list[object] = []
        self._stamps = itertools.count(10**18)  # each sample has its own
        self._arrived = threading.Condition()
        self.context = rclpy.Context()
        rclpy.init(context=self.context, domain_id=domain)
        self.node = Node(
            f'client_{uuid.uuid4().hex}', context=self.context, namespace=NAMESPACE
        )
        self.publishers = {
            topic: self.node.create_publisher(kind, topic, profile)
            for topic, (kind, profile) in INPUTS.items()
        }
        for topic, kind, keep, profile in (
            ('hodyn_node/joint_effort', JointEffort, self._keep_effort, EVERYTHING),
            (
                'hodyn_node/effort_trajectory',
                JointEffortTrajectory,
                self._keep_trajectory,
                qos.EFFORT_TRAJECTORY,
            ),
            ('/diagnostics', DiagnosticArray, self._keep_diagnostics, qos.OUTPUT),
        ):
            if takes_efforts or kind is not JointEffort:
                self.node.create_subscription(kind, topic, keep, profile)
        # With the default of ten, a burst of answers, be they for others, pushes its own ones out.
        self.service = self.node.create_client(
            ComputeInverseDynamics,
            'hodyn_node/compute_inverse_dynamics',
            qos_profile=QoSProfile(depth=1000, reliability=ReliabilityPolicy.RELIABLE),
        )
        self._executor = SingleThreadedExecutor(context=self.context)
        self._executor.add_node(self.node)
        self._thread = threading.Thread(
            target=spin_to_end, args=(self._executor,), daemon=True
        )
        self._thread.start()

    def _keep_effort(self, message: JointEffort) -> None:
        with self._arrived:
            stamp = nanoseconds(message.header.stamp)
            self.efforts[stamp].append(message)
            self.order.append(stamp)
            self.streamed += message.source == JointEffort.SOURCE_JOINT_TRAJECTORY
            self._check_finite(message)
            self._arrived.notify_all()

    def _keep_trajectory(self, message: JointEffortTrajectory) -> None:
        with self._arrived:
            self.trajectories.append(message)
            self._check_finite(message)
            self._arrived.notify_all()

    def _check_finite(self, message: object) -> None:
        if not is_finite(message):
            self.not_finite.append(message)

    def _keep_diagnostics(self, message: DiagnosticArray) -> None:
        with self._arrived:
            self.reports += any(s.name.startswith(NAMESPACE) for s in message.status)
            for status in message.status:
                name, _, part = status.name.partition(': ')
                if name != f'{NAMESPACE}/hodyn_node':
                    continue
                values = {item.key: item.value for item in status.values}
                self.statuses[part] = {**values, 'message': status.message}
            self._arrived.notify_all()

    def wait(self, condition, what: str, timeout: float = TIMEOUT):
        """Wait until a condition holds and return its value."""
        deadline = time.monotonic() + timeout
        with self._arrived:
            while not (value := condition()):
                # The bound covers conditions that no message signals.
                self._arrived.wait(0.02)
                if time.monotonic() > deadline:
                    raise AssertionError(f'timed out: {what}; {self.errors()}')
            return value

    def errors(self) -> dict[str, str]:
        """Return what the latest report says of inputs that were refused."""
        found = {part: values.get('last error') for part, values in self.statuses.items()}
        return {part: error for part, error in found.items() if error}

    def match(self) -> None:
        """Wait until the node hears this client and is heard by it."""
        for topic, publisher in self.publishers.items():
            self.wait(lambda p=publisher: p.get_subscription_count() > 0, f'match {topic}')
        assert self.service.wait_for_service(TIMEOUT)
        for topic in ('joint_effort', 'effort_trajectory'):
            name = f'hodyn_node/{topic}'
            self.wait(lambda n=name: self.node.count_publishers(n) > 0, f'match {topic}')

    def describe(self, urdf: str) -> None:
        """Publish a robot description and wait until it is in use."""
        self.publishers['robot_description'].publish(String(data=urdf))
        self.wait_for_model()

    def wait_for_model(self) -> None:
        """Wait until the node has a model and prepares none."""
        # What is said of the model in a report that was on its way already does not count.
        self.wait_for_report()
        self.wait(
            lambda: (
                self.status('model').get('in preparation') == 'no'
                and self.status('model').get('robot')
            ),
            'model',
        )

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

    def skip_stamps(self, count: int) -> None:
        """Leave stamps to others."""
        self._stamps = itertools.count(next(self._stamps) + count)

    def forget(self) -> None:
        """Drop the answers received so far."""
        with self._arrived:
            self.efforts.clear()
            self.order.clear()
            self.trajectories.clear()

    def send(self, motion=MOTION, names=NAMES) -> int:
        """Send a sample and return its stamp."""
        stamp = self.new_stamp()
        self.publishers['joint_motion'].publish(joint_motion(motion, names, stamp))
        return stamp

    def answer(self, stamp: int, timeout: float = TIMEOUT) -> JointEffort:
        """Wait for the answer to a sample."""
        return self.wait(lambda: self.efforts.get(stamp), f'answer to {stamp}', timeout)[0]

    def ask(self, motion=MOTION, names=NAMES, robot: str = '') -> None:
        """Send a sample, and check that it is answered, once and rightly."""
        stamp = self.send(motion, names)
        check(self.answer(stamp), motion, names, robot)
        assert len(self.efforts[stamp]) == 1

    def ask_until_answered(self, motion=MOTION, names=NAMES, robot: str = '') -> None:
        """Send samples until one is answered, and check it: for nodes that have just started."""
        stamps: list[int] = []

        def answered():
            stamps.append(self.send(motion, names))
            return next((self.efforts[s] for s in stamps if s in self.efforts), None)

        check(self.wait(answered, 'first answer')[0], motion, names, robot)

    def ask_until_answered_by(self, robot: str, motion=MOTION, names=NAMES) -> None:
        """Send samples until one is answered as this robot does: others may be in use before."""

        def is_in_use():
            stamp = self.send(motion, names)
            self.wait_for_report()
            try:
                for message in self.efforts.get(stamp, []):
                    check(message, motion, names, robot)
                    return True
            except AssertionError:
                pass
            return False

        self.wait(is_in_use, 'the robot')

    def call(self, request, timeout: float = TIMEOUT):
        """Call the service and wait for the answer."""
        future = self.service.call_async(request)
        self.wait(future.done, 'answer of the service', timeout)
        return future.result()

    def close(self) -> None:
        """Leave the middleware."""
        self._executor.shutdown()
        self._thread.join(TIMEOUT)
        self.node.destroy_node()
        rclpy.shutdown(context=self.context)


class Pair:
    """A node with a robot and a client of it."""

    def __init__(self, urdf: str, **parameters: object) -> None:
        domain = next_domain()
        self.client = Client(domain)
        self.client.publishers['robot_description'].publish(String(data=urdf))
        self.node = NodeProcess(domain, **parameters)
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


class _Writer:
    """Serialized message, value by value, in little-endian plain CDR."""

    def __init__(self) -> None:
        self.data = bytearray(b'\x00\x01\x00\x00')

    def align(self, size: int) -> None:
        self.data += bytes(-(len(self.data) - 4) % size)

    def numbers(self, code: str, *values: float) -> None:
        for value in values:
            self.align(struct.calcsize(code))
            self.data += struct.pack('<' + code, value)

    def text(self, value: bytes) -> None:
        self.numbers('I', len(value) + 1)
        self.data += value + b'\0'

    def texts(self, values) -> None:
        self.numbers('I', len(values))
        for value in values:
            self.text(value)

    def array(self, values) -> None:
        self.numbers('I', len(values))
        self.numbers('d', *values)


def motion_bytes(
    names=(b'shoulder', b'elbow'), rows=MOTION, stamp: int = 0, frame: bytes = b''
) -> bytes:
    """Serialized JointMotion, with names as bytes of any kind."""
    writer = _Writer()
    writer.numbers('i', stamp // 10**9)
    writer.numbers('I', stamp % 10**9)
    writer.text(frame)
    writer.texts(names)
    for row in rows:
        writer.array(row)
    return bytes(writer.data)


def put_stamp(data: bytearray, stamp: int) -> None:
    """Give a serialized message that begins with a header another stamp [ns]."""
    struct.pack_into('<iI', data, 4, stamp // 10**9, stamp % 10**9)


def motion_with_names_bytes(count: int) -> bytes:
    """Serialized JointMotion with very many joint names and no values."""
    head = motion_bytes(names=(), rows=())[:-4]
    return head + struct.pack('<I', count) + b'\2\0\0\0j\0\0\0' * count + bytes(20)


def trajectory_bytes(count: int, names=(b'shoulder', b'elbow')) -> bytes:
    """Serialized JointTrajectory with very many points, a second from each to the next."""
    writer = _Writer()
    writer.numbers('i', 0)
    writer.numbers('I', 0)
    writer.text(b'')
    writer.texts(names)
    writer.numbers('I', count)
    ends = []
    for _ in range(3):  # the first one may begin at another alignment than all others
        writer.array([0.1] * len(names))
        writer.numbers('I', 0, 0, 0)
        writer.numbers('i', 0)
        writer.numbers('I', 0)
        ends.append(len(writer.data))
    first, point = bytes(writer.data[: ends[0]]), writer.data[ends[1] : ends[2]]
    points = np.tile(np.frombuffer(bytes(point), np.uint8), (count - 1, 1))
    seconds = np.arange(1, count, dtype='<i4').view(np.uint8).reshape(-1, 4)
    points[:, -8:-4] = seconds
    return first + points.tobytes()


# Load


class Stream:
    """Samples at a rate, sent by a thread, of which each must be answered once and rightly."""

    def __init__(self, client: Client, urdf: str, rate: float = 200.0, names=NAMES) -> None:
        self._client, self._urdf, self._rate, self._names = client, urdf, rate, names
        self._motions = np.random.default_rng(7).normal(size=(16, 5, len(names)))
        self._sent: list[int] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Stream:
        self._thread.start()
        self._client.wait(lambda: len(self._sent) > 2, 'begin of the stream')
        return self

    def __exit__(self, kind, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if kind is None:
            self.check()

    def _run(self) -> None:
        while not self._stop.wait(1.0 / self._rate):
            self._sent.append(
                self._client.send(self._motions[len(self._sent) % 16], self._names)
            )

    def check(self) -> None:
        """Wait for all answers and check them."""
        client = self._client
        client.wait(
            lambda: all(stamp in client.efforts for stamp in self._sent), 'all answers'
        )
        for number, stamp in enumerate(self._sent):
            (message,) = client.efforts[stamp]
            if number < 64:  # they repeat, but for their stamps
                check(message, self._motions[number % 16], self._names, self._urdf)
            else:
                earlier = client.efforts[self._sent[number % 16]][0]
                for field in EFFORTS:
                    assert np.allclose(
                        getattr(message, field), getattr(earlier, field), 1e-9
                    )
