"""Time from a motion that is sent to the efforts that come back, beside a node that only relays.

Each sample is a JointMotion of the Franka Panda, answered with a JointEffort. The node and the
relay (a node in the SingleThreadedExecutor of rclpy that computes nothing) run in processes of
their own; a client in this process sends samples at a fixed rate whether or not the ones before
are answered, to one of them at a time and in turn, so that what disturbs the machine disturbs
both. The ratio to the relay is what the node adds to rclpy and the middleware, or saves.

Motions are within and beyond the limits; then what is taken while nothing comes; then beside
clients of the service and a process that never pauses; then the rate from which on samples are
left out. What the node says of itself in its diagnostics stands beside: how many samples it left
out for newer ones. (The relay leaves samples out in the same way.)
"""

from __future__ import annotations

import gc
import os
import random
import signal
import struct
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from hodyn_msgs.msg import JointEffort, JointMotion
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.serialization import serialize_message
from rclpy.time import Time
from std_msgs.msg import String

from benchmarks.cases import ROOT
from benchmarks.ros_peers import joint_motion
from benchmarks.tables import Benchmark, Table
from hodyn_ros.resources import share_file
from hodyn_ros.ros.base import qos

END_TIME = 10.0  # s, for a process to end
TIMEOUT = 60.0  # s
QUIET = 3.0  # s without an answer after which what is missing is lost
STAMP = struct.Struct('<iI')
STAMP_AT = 4  # behind the four bytes that say how a message is encoded
# A rate is sustained if no larger share of its samples is left out: now and then one is.
LEFT_OUT = 0.01
TRIES = 4  # for a step, of which the best counts: others on the machine cost samples too
CONTESTANTS = ('relay', 'node')
BEYOND = 'node, limits exceeded'  # the node again, with motions that exceed limits
SAMPLES_OF_CALLERS = 10_000
# What runs beside, by what the tables call it: names in `ros_peers`.
LOADS = {
    'nothing': (),
    'motion samples': ('motion',),
    'trajectories': ('trajectory',),
    'busy process': ('loop',),
    'motion samples and busy process': ('motion', 'loop'),
}


class Size(NamedTuple):
    """How much is measured."""

    rates: tuple[int, ...]  # Hz
    rounds: int
    seconds: float  # of a round
    busy_rates: tuple[int, ...]  # Hz
    busy_rounds: int
    loads: tuple[str, ...]
    highest: int  # Hz
    idle_seconds: float


SIZES = {
    'tiny': Size((1000,), 1, 0.1, (200,), 1, ('nothing',), 1000, 0.1),
    'quick': Size((1000,), 2, 2.0, (1000,), 1, tuple(LOADS), 64_000, 5.0),
    'full': Size((100, 500, 1000), 3, 2.0, (100, 1000), 2, tuple(LOADS), 64_000, 10.0),
}


class Stream(NamedTuple):
    """Samples that were sent at one rate, and what came back."""

    latencies: np.ndarray
    """From sending to receiving, shape (answered,) [s]."""
    lost: int
    """Samples without an answer."""
    rate: float
    """That the client reached [Hz]."""
    cpu: float
    """Time of a processor that the process of the contestant took [s]."""
    left_out: int
    """Samples that the node says to have left out."""


class Probe:
    """The measuring client: one thread that sends and receives without an executor in between."""

    def __init__(self, domain: int, namespace: str, processes: dict[str, int]) -> None:
        self.processes = {**processes, BEYOND: processes['node']}
        self._status = f'{namespace}/hodyn_node: joint_motion'
        self._context = rclpy.Context()
        rclpy.init(context=self._context, domain_id=domain)
        self._node = node = Node('probe', context=self._context, namespace=namespace)
        self._description = node.create_publisher(
            String, 'robot_description', qos.ROBOT_DESCRIPTION
        )
        self._publishers: dict[str, Any] = {}
        self._subscriptions: dict[str, Any] = {}
        for name, inputs, outputs in (
            ('node', 'joint_motion', 'hodyn_node/joint_effort'),
            ('relay', 'relay/joint_motion', 'relay/joint_effort'),
        ):
            self._publishers[name] = node.create_publisher(JointMotion, inputs, qos.OUTPUT)
            self._subscriptions[name] = node.create_subscription(
                JointEffort, outputs, lambda _: None, qos.OUTPUT, raw=True
            )
        for of_contestants in (self._publishers, self._subscriptions):
            of_contestants[BEYOND] = of_contestants['node']
        self._diagnostics = node.create_subscription(
            DiagnosticArray, '/diagnostics', lambda _: None, qos.OUTPUT
        )
        self._wait_set = rclpy_implementation.WaitSet(
            1, 0, 0, 0, 0, 0, self._context.handle
        )
        values = 0.2 * np.sin(np.arange(35.0)).reshape(5, 7)
        values[0, [3, 5]] = -1.5, 1.5  # where zero is out of the range of the joint
        beyond = values + 10.0 * np.eye(5)[0][:, None]
        self._bytes = {
            name: bytearray(
                serialize_message(joint_motion(beyond if name == BEYOND else values))
            )
            for name in self.processes
        }
        self._streams = self._left_out = 0

    def close(self) -> None:
        """Leave the middleware."""
        self._node.destroy_node()
        rclpy.shutdown(context=self._context)

    def describe(self, urdf: str) -> None:
        """Publish a robot description."""
        self._description.publish(String(data=urdf))

    def is_matched(self, contestant: str) -> bool:
        """Whether a contestant hears this client and is heard by it."""
        return (
            self._publishers[contestant].get_subscription_count() > 0
            and self._node.count_publishers(self._subscriptions[contestant].topic_name) > 0
        )

    def stream(self, contestant: str, rate: float, samples: int) -> Stream:
        """Send samples at a rate, receive the answers, and wait for those that are late."""
        publish, data = self._publishers[contestant].publish, self._bytes[contestant]
        subscription = self._subscriptions[contestant].handle
        # Stragglers of a stream before bear other seconds.
        self._streams += 1
        identity = self._streams
        sent = np.zeros(samples)
        arrived = np.full(samples, np.nan)
        number = 0
        clock = time.perf_counter
        gc.collect()
        gc.disable()
        cpu = cpu_time(self.processes[contestant])
        begin = latest = clock()
        # Answers come in order, and the newest sample is never left out.
        while np.isnan(arrived[-1]):
            now = clock()
            wait = QUIET + latest - now
            if number < samples:
                wait = begin + number / rate - now
                if wait <= 0.0:
                    STAMP.pack_into(data, STAMP_AT, identity, number)
                    sent[number] = latest = clock()
                    publish(bytes(data))
                    number += 1
            elif wait <= 0.0:
                break
            if not self._is_ready(subscription, max(wait, 0.0)):
                continue
            while (taken := subscription.take_message(JointEffort, True)) is not None:
                latest = clock()
                seconds, index = STAMP.unpack_from(taken[0], STAMP_AT)
                if seconds == identity and np.isnan(arrived[index]):
                    arrived[index] = latest
                if number < samples and latest >= begin + number / rate:
                    break  # the next sample is due
        gc.enable()
        cpu = cpu_time(self.processes[contestant]) - cpu
        latencies = (arrived - sent)[np.isfinite(arrived)]
        reached = (samples - 1) / max(sent[-1] - begin, 1e-9)
        said = 0 if contestant == 'relay' else self._new_left_out()
        return Stream(latencies, samples - len(latencies), reached, cpu, said)

    def resting(self, contestant: str, seconds: float) -> float:
        """Share of a processor that a contestant takes while nothing is sent."""
        pid = self.processes[contestant]
        before = cpu_time(pid, with_children=True)
        time.sleep(seconds)
        return (cpu_time(pid, with_children=True) - before) / seconds

    def _new_left_out(self) -> int:
        """Samples left out since the last call, by the next report."""
        before = self._left_out
        now = self._node.get_clock().now().nanoseconds
        stamp, deadline = 0, time.monotonic() + TIMEOUT
        while stamp < now:
            if time.monotonic() > deadline:
                raise RuntimeError('The node sends no diagnostics.')
            if not self._is_ready(self._diagnostics.handle, 0.1):
                continue
            message, _ = self._diagnostics.handle.take_message(DiagnosticArray, False)
            for status in message.status:
                if status.name == self._status:
                    stamp = Time.from_msg(message.header.stamp).nanoseconds
                    values = {item.key: item.value for item in status.values}
                    self._left_out = int(values['left out'])
        return self._left_out - before

    def _is_ready(self, subscription: object, seconds: float) -> bool:
        wait_set = self._wait_set
        wait_set.clear_entities()
        wait_set.add_subscription(subscription)
        wait_set.wait(int(seconds * 1e9))
        return bool(wait_set.get_ready_entities('subscription'))


# --- Processes --------------------------------------------------------------------------------


def cpu_time(pid: int, with_children: bool = False) -> float:
    """Time of a processor that a process has taken [s], by itself or with those it has started."""
    fields = Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
    seconds = (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')
    return seconds + sum(cpu_time(one, True) for one in children(pid) if with_children)


def children(pid: int) -> list[int]:
    """Processes that a process has started."""
    tasks = Path(f'/proc/{pid}/task').glob('*/children')
    return [int(one) for path in tasks for one in path.read_text().split()]


@contextmanager
def process(domain: int, *arguments: str) -> Iterator[subprocess.Popen]:
    """Run a module of Python beside this process, which finds the modules that this one finds."""
    running = subprocess.Popen(
        [sys.executable, '-m', *arguments],
        cwd=ROOT,
        env={
            **os.environ,
            'PYTHONPATH': os.pathsep.join([str(ROOT), *sys.path]),
            'ROS_DOMAIN_ID': str(domain),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield running
    finally:
        running.send_signal(signal.SIGTERM)
        try:
            running.communicate(timeout=END_TIME)
        # An executor of rclpy misses a signal now and then.
        except subprocess.TimeoutExpired:
            running.kill()
            running.communicate()


class Session(NamedTuple):
    """Node, relay and client, all of them ready, and where they meet."""

    probe: Probe
    domain: int
    namespace: str
    place: tuple[str, ...]
    """Arguments of nodes that join them."""


@contextmanager
def session() -> Iterator[Session]:
    """Start node, relay and client."""
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    domain = random.randint(1, 100)
    # Others on the machine may have the same domain, but not the same names.
    os.environ['BENCHMARK_NAMESPACE'] = namespace = f'benchmark_{uuid.uuid4().hex}'
    place = ('--ros-args', '-r', f'__ns:=/{namespace}', '--log-level', 'error')
    parameters = ('-p', 'input_timeout:=0.0', '-p', 'diagnostics_period:=1.0')
    node = ('hodyn_ros.ros.nodes.hodyn_node', *place, *parameters)
    with (
        process(domain, *node) as node_process,
        process(domain, 'benchmarks.ros_peers', 'relay', *place) as relay_process,
    ):
        started = {'node': node_process, 'relay': relay_process}
        probe = Probe(domain, namespace, {name: one.pid for name, one in started.items()})
        try:
            probe.describe(Path(share_file('urdf/panda.urdf')).read_text(encoding='utf-8'))
            for name, running in started.items():
                deadline = time.monotonic() + TIMEOUT
                while not probe.is_matched(name) or probe.stream(name, 1000, 1).lost:
                    if running.poll() is not None:
                        raise RuntimeError(f'The {name} has ended: {running.stderr.read()}')
                    if time.monotonic() > deadline:
                        raise RuntimeError(f'The {name} does not answer.')
                    time.sleep(0.01)
            yield Session(probe, domain, namespace, place)
        finally:
            probe.close()


# --- Measuring --------------------------------------------------------------------------------


class Latency(NamedTuple):
    """Latencies of one contestant at one rate; all rounds together [s]."""

    contestant: str
    rate: int
    samples: int
    lost: int
    p50: float
    p99: float
    p999: float
    largest: float
    cpu: float
    """Of a sample."""
    left_out: int
    """What the node says; 0 for the relay."""

    def ratios(self, relay: Latency, *names: str) -> list[str]:
        """Quotients to the relay."""
        return [f'{getattr(self, k) / max(getattr(relay, k), 1e-9):.2f}' for k in names]


def latencies(
    probe: Probe,
    rates: Sequence[int],
    rounds: int,
    seconds: float,
    contestants: Sequence[str] = CONTESTANTS,
) -> dict[int, list[Latency]]:
    """Latencies of the contestants at all rates, in turn; the relay first."""
    streams: dict[tuple[int, str], list[Stream]] = {}
    for _ in range(rounds):
        for rate in rates:
            for contestant in random.sample(contestants, len(contestants)):
                stream = probe.stream(contestant, rate, max(round(rate * seconds), 2))
                streams.setdefault((rate, contestant), []).append(stream)
    rows: dict[int, list[Latency]] = {}
    for rate in rates:
        for contestant in contestants:
            found = streams[rate, contestant]
            values = np.concatenate([stream.latencies for stream in found])
            lost = sum(stream.lost for stream in found)
            samples = len(values) + lost
            shares = [np.nan] * 4
            if len(values):
                shares = np.percentile(values, (50.0, 99.0, 99.9, 100.0)).tolist()
            row = Latency(
                *(contestant, rate, samples, lost, *shares),
                sum(stream.cpu for stream in found) / samples,
                sum(stream.left_out for stream in found),
            )
            rows.setdefault(rate, []).append(row)
    return rows


def sustained_rate(probe: Probe, contestant: str, size: Size) -> tuple[int, str]:
    """Double the rate until samples are left out or the client cannot keep up; what ended it."""
    best, rate = 0, 1000
    while rate <= size.highest:
        for _ in range(TRIES):
            stream = probe.stream(contestant, rate, round(rate * size.seconds))
            share = stream.lost / (stream.lost + len(stream.latencies))
            if share <= LEFT_OUT:
                break
        else:
            return best, f'{rate} Hz: {100 * share:.2g} % left out'
        if stream.rate < 0.95 * rate:
            return best, f'{rate} Hz: the client sends {stream.rate:.0f} Hz at most'
        best, rate = rate, 2 * rate
    return best, f'not tried beyond {size.highest} Hz'


def beside(
    meeting: Session, load: str, size: Size
) -> tuple[dict[int, list[Latency]], float | None]:
    """Latencies while other processes have something to do, and the median of a call [s]."""
    took: list[float] = []
    with ExitStack() as stack:
        running = {}
        for kind in LOADS[load]:
            peer = ('benchmarks.ros_peers', kind, str(SAMPLES_OF_CALLERS))
            running[kind] = stack.enter_context(process(meeting.domain, *peer))
        # The first call is answered: all is compiled.
        firsts = [peer.stdout.readline() for peer in running.values()]
        if not all(firsts):
            raise RuntimeError('The service does not answer, or a process has not started.')
        rows = latencies(meeting.probe, size.busy_rates, size.busy_rounds, size.seconds)
        for first, (kind, peer) in zip(firsts, running.items()):
            if peer.poll() is not None:
                raise RuntimeError(f'The process {kind} has ended: {peer.stderr.read()}')
            peer.send_signal(signal.SIGTERM)
            # A line that the signal has cut off has no end.
            lines = [first, *peer.stdout.read().splitlines(keepends=True)]
            if kind != 'loop':
                took += [float(line) for line in lines if line.endswith('\n')]
    return rows, median(took) if took else None


def idle_table(found: dict[int, list[Latency]]) -> Table:
    """Percentiles at each rate, with the ratio to the relay."""
    rows = []
    for rate, (relay, *nodes) in found.items():
        for row in (relay, *nodes):
            times = map(_microseconds, (row.p50, row.p99, row.p999, row.cpu))
            rows.append(
                [f'{rate} Hz', row.contestant, *times, f'{row.samples}', f'{row.lost}']
            )
        for node in nodes:
            ratios = node.ratios(relay, 'p50', 'p99', 'p999', 'cpu')
            rows.append([f'{rate} Hz', f'{node.contestant} / relay', *ratios, '', ''])
    header = ['rate', '', 'p50', 'p99', 'p99.9', 'CPU per sample', 'samples', 'unanswered']
    return Table('From sending a motion to receiving its efforts [µs]', header, rows)


def busy_rows(
    load: str, found: dict[int, list[Latency]], call: float | None
) -> list[list[str]]:
    """Percentiles beside a load, and what the node says of itself."""
    took, rows = '' if call is None else f'{1e3 * call:.0f} ms', []
    for rate, (relay, *nodes) in found.items():
        for row in (relay, *nodes):
            said = [
                *row.ratios(relay, 'p50', 'p99'),
                str(row.left_out),
            ]
            times = map(_microseconds, (row.p50, row.p99, row.largest))
            share = f'{100 * row.lost / row.samples:.2g} %'
            rows.append([load, f'{rate} Hz', row.contestant, *times, share])
            rows[-1] += [*(said if row is not relay else [''] * 3), took]
    return rows


def _microseconds(seconds: float) -> str:
    return f'{1e6 * seconds:.0f}'


def measure(size: Size) -> list[Table]:
    """Measure everything."""
    with session() as meeting:
        probe = meeting.probe
        for contestant in CONTESTANTS:  # the first messages of a process are slower
            probe.stream(contestant, 1000, round(500 * size.seconds))
        everyone = (*CONTESTANTS, BEYOND)
        idle = latencies(probe, size.rates, size.rounds, size.seconds, everyone)
        resting = {name: probe.resting(name, size.idle_seconds) for name in CONTESTANTS}
        busy = [row for k in size.loads for row in busy_rows(k, *beside(meeting, k, size))]
        sustained = {name: sustained_rate(probe, name, size) for name in CONTESTANTS}
    rows = [
        [name, f'{rate} Hz', end, f'{100 * resting[name]:.2f} %']
        for name, (rate, end) in sustained.items()
    ]
    busy_header = ['beside', 'rate', '', 'p50', 'p99', 'largest', 'unanswered']
    busy_header += ['p50 / relay', 'p99 / relay', 'left out']
    return [
        idle_table(idle),
        Table(
            'Highest rate at which no more than 1 % of the samples are left out',
            ['', 'sustained', 'next step', 'at rest, of a core'],
            rows,
        ),
        Table('Beside what other processes do [µs]', [*busy_header, 'a call takes'], busy),
    ]


BENCHMARKS = {'latency': Benchmark('Latency of the node, beside a relay', SIZES, measure)}
