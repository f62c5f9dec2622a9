"""Time from a motion that is sent to the efforts that come back, beside a node that only relays.

Each sample is a JointMotion of the Franka Panda, answered with a JointEffort. The node and the
relay (a node in the SingleThreadedExecutor of rclpy that computes nothing) run in processes of
their own; a client in this process sends samples at a fixed rate whether or not the ones before
are answered, to one of them at a time and in turn, so that what disturbs the machine disturbs
both. The ratio to the relay is what the node adds to rclpy and the middleware, or saves.

    python -m benchmarks.latency --size quick

measures in about six minutes at 100 Hz, 500 Hz and 1 kHz, with motions within and beyond the
limits; what is taken while nothing comes; then beside clients of the service and a process that
never pauses, then the rate from which on samples are left out. What the node says of itself in
its diagnostics stands beside: how late it was, and how many samples it left out for newer ones.
(The relay leaves samples out in the same way.) --size short does so at 1 kHz in two minutes.
"""

from __future__ import annotations

import argparse
import gc
import json
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
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from hodyn_msgs.msg import JointEffort, JointMotion
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.serialization import serialize_message
from rclpy.time import Time
from std_msgs.msg import String

from benchmarks import report
from benchmarks.cases import ROOT
from benchmarks.latency_peers import joint_motion
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
# What runs beside, by what the tables call it: arguments of `latency_peers`.
LOADS = {
    'nothing': (),
    'motion samples': ('motion',),
    'trajectories': ('trajectory',),
    'busy process': ('loop',),
    'motion samples and busy process': ('motion', 'loop'),
}


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    rates: tuple[int, ...]  # Hz
    rounds: int
    seconds: float  # of a round
    busy_rates: tuple[int, ...]  # Hz
    busy_samples: int
    busy_rounds: int
    highest: int  # Hz
    step_seconds: float
    report_period: float  # s, of the diagnostics
    idle_seconds: float


SIZES = {
    'tiny': Size((100, 1000), 1, 0.1, (200,), 200, 1, 2000, 0.05, 0.1, 0.1),
    'short': Size((1000,), 2, 2.0, (1000,), 10_000, 1, 64_000, 1.0, 1.0, 5.0),
    'quick': Size((100, 500, 1000), 3, 2.0, (100, 1000), 10_000, 2, 64_000, 2.0, 1.0, 10.0),
    'full': Size(
        (100, 500, 1000), 10, 10.0, (100, 500, 1000), 10_000, 3, 64_000, 5.0, 1.0, 60.0
    ),
}


@dataclass(frozen=True)
class Stream:
    """Samples that were sent at one rate, and what came back.

    Attributes
    ----------
    latencies : ndarray, shape (answered,)
        From sending to receiving [s].
    lost : int
        Samples without an answer.
    rate : float
        Rate that the client reached [Hz].
    cpu : float
        Time of a processor that the process of the contestant took [s].
    left_out : int
        Samples that the node says to have left out.
    lateness : list of (float, float)
        Its p50 and p99 in every report of the node [s].
    """

    latencies: np.ndarray
    lost: int
    rate: float
    cpu: float = 0.0
    left_out: int = 0
    lateness: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class Latency:
    """Latencies of one contestant at one rate; all rounds together [s].

    What the node says of itself is NaN and 0 for the relay; `late50` and `late99` are the medians
    of its reports.
    """

    contestant: str
    beside: str
    rate: int
    samples: int
    lost: int
    p50: float
    p99: float
    p999: float
    largest: float
    cpu: float  # of a sample
    left_out: int
    late50: float
    late99: float


@dataclass(frozen=True)
class Sustained:
    """The highest rate at which hardly a sample was left out [Hz], and what ended the climb."""

    contestant: str
    rate: int
    end: str


@dataclass(frozen=True)
class Calls:
    """Calls of the service beside the stream."""

    beside: str
    answered: int
    seconds: float  # median of a call


@dataclass(frozen=True)
class Results:
    """Everything that was measured."""

    idle: list[Latency]
    sustained: list[Sustained]
    resting: dict[str, float]  # share of a processor that each takes while nothing comes
    busy: list[Latency]
    calls: list[Calls]


class Probe:
    """The measuring client: one thread that sends and receives without an executor in between."""

    def __init__(self, domain: int, namespace: str, processes: dict[str, int]) -> None:
        self.processes = processes
        self._status = f'{namespace}/hodyn_node: joint_motion'
        self._context = rclpy.Context()
        rclpy.init(context=self._context, domain_id=domain)
        self._node = Node('probe', context=self._context, namespace=namespace)
        self._description = self._node.create_publisher(
            String, 'robot_description', qos.ROBOT_DESCRIPTION
        )
        self._publishers, self._subscriptions = {}, {}
        for name, inputs, outputs in (
            ('node', 'joint_motion', 'hodyn_node/joint_effort'),
            ('relay', 'relay/joint_motion', 'relay/joint_effort'),
        ):
            self._publishers[name] = self._node.create_publisher(
                JointMotion, inputs, qos.OUTPUT
            )
            self._subscriptions[name] = self._node.create_subscription(
                JointEffort, outputs, lambda _: None, qos.OUTPUT, raw=True
            )
        self._diagnostics = self._node.create_subscription(
            DiagnosticArray, '/diagnostics', lambda _: None, qos.OUTPUT
        )
        self._left_out = 0
        self._wait_set = rclpy_implementation.WaitSet(
            1, 0, 0, 0, 0, 0, self._context.handle
        )
        for of_contestants in (self._publishers, self._subscriptions, processes):
            of_contestants[BEYOND] = of_contestants['node']
        values = 0.2 * np.sin(np.arange(35.0)).reshape(5, 7)
        values[0, [3, 5]] = -1.5, 1.5  # where zero is out of the range of the joint
        within, beyond = values.copy(), values
        beyond[0] += 10.0
        self._bytes = {
            name: bytearray(
                serialize_message(joint_motion(beyond if name == BEYOND else within))
            )
            for name in processes
        }
        self._streams = 0

    def close(self) -> None:
        """Leave the middleware."""
        self._node.destroy_node()
        rclpy.shutdown(context=self._context)

    def describe(self, urdf: str) -> None:
        """Publish a robot description."""
        self._description.publish(String(data=urdf))

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
        left_out, lateness = (0, []) if contestant == 'relay' else self._reports()
        lost = samples - len(latencies)
        return Stream(latencies, lost, reached, cpu, left_out, tuple(lateness))

    def resting(self, seconds: float) -> dict[str, float]:
        """Share of a processor that each contestant takes while nothing is sent."""
        before = {name: cpu_time(self.processes[name], True) for name in CONTESTANTS}
        time.sleep(seconds)
        return {
            name: (cpu_time(self.processes[name], True) - before[name]) / seconds
            for name in CONTESTANTS
        }

    def _reports(self) -> tuple[int, list[tuple[float, float]]]:
        """Wait for the next report; return samples left out since the last call, and lateness."""
        lateness = []
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
                    late = [values[f'lateness p{share} [ms]'] for share in (50, 99)]
                    if all(late):  # empty: nothing came
                        lateness.append((1e-3 * float(late[0]), 1e-3 * float(late[1])))
        return self._left_out - before, lateness

    def _is_ready(self, subscription: object, seconds: float) -> bool:
        wait_set = self._wait_set
        wait_set.clear_entities()
        wait_set.add_subscription(subscription)
        wait_set.wait(int(seconds * 1e9))
        return bool(wait_set.get_ready_entities('subscription'))

    def is_matched(self, contestant: str) -> bool:
        """Whether a contestant hears this client and is heard by it."""
        return (
            self._publishers[contestant].get_subscription_count() > 0
            and self._node.count_publishers(self._subscriptions[contestant].topic_name) > 0
        )


def cpu_time(pid: int, with_children: bool = False) -> float:
    """Time of a processor that a process has taken [s], by itself or with those it has started."""
    fields = Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
    seconds = (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')
    started = Path(f'/proc/{pid}').glob('task/*/children') if with_children else ()
    children = [child for path in started for child in path.read_text().split()]
    return seconds + sum(cpu_time(int(child), with_children) for child in children)


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


@contextmanager
def session(report_period: float) -> Iterator[tuple[Probe, int]]:
    """Node, relay and client, all of them ready; with the ROS domain in which they meet."""
    domain = random.randint(1, 100)
    # Others on the machine may have the same domain, but not the same names.
    os.environ['LATENCY_NAMESPACE'] = namespace = f'latency_{uuid.uuid4().hex}'
    place = ('--ros-args', '-r', f'__ns:=/{namespace}', '--log-level', 'error')
    parameters = ('-p', 'input_timeout:=0.0', '-p', f'diagnostics_period:={report_period}')
    with (
        process(
            domain, 'hodyn_ros.ros.nodes.hodyn_node', *place, *parameters
        ) as node_process,
        process(domain, 'benchmarks.latency_peers', 'relay', *place) as relay_process,
    ):
        processes = {'node': node_process.pid, 'relay': relay_process.pid}
        probe = Probe(domain, namespace, processes)
        try:
            probe.describe(Path(share_file('urdf/panda.urdf')).read_text(encoding='utf-8'))
            for name, running in (('node', node_process), ('relay', relay_process)):
                deadline = time.monotonic() + TIMEOUT
                while not probe.is_matched(name) or probe.stream(name, 1000, 1).lost:
                    if running.poll() is not None:
                        raise RuntimeError(f'The {name} has ended: {running.stderr.read()}')
                    if time.monotonic() > deadline:
                        raise RuntimeError(f'The {name} does not answer.')
                    time.sleep(0.01)
            yield probe, domain
        finally:
            probe.close()


def latencies(
    probe: Probe,
    rates: Sequence[int],
    rounds: int,
    seconds: float,
    beside: str = 'nothing',
    contestants: Sequence[str] = CONTESTANTS,
) -> list[Latency]:
    """Latencies of the contestants at all rates, in turn."""
    streams: dict[tuple[str, int], list[Stream]] = {}
    for _ in range(rounds):
        for rate in rates:
            for contestant in random.sample(contestants, len(contestants)):
                samples = max(round(rate * seconds), 2)
                streams.setdefault((contestant, rate), []).append(
                    probe.stream(contestant, rate, samples)
                )
    rows = []
    for (contestant, rate), found in sorted(streams.items(), key=lambda item: item[0][1]):
        values = np.concatenate([stream.latencies for stream in found])
        lost = sum(stream.lost for stream in found)
        p50, p99, p999 = (
            np.percentile(values, [50.0, 99.0, 99.9]) if len(values) else [np.nan] * 3
        )
        samples = len(values) + lost
        late = [pair for stream in found for pair in stream.lateness] or [(np.nan, np.nan)]
        rows.append(
            Latency(
                contestant,
                beside,
                rate,
                samples,
                lost,
                *(float(value) for value in (p50, p99, p999, values.max(initial=0.0))),
                sum(stream.cpu for stream in found) / samples,
                sum(stream.left_out for stream in found),
                *(float(value) for value in np.median(late, axis=0)),
            )
        )
    return rows


def sustained_rate(probe: Probe, contestant: str, size: Size) -> Sustained:
    """Double the rate until samples are left out, or the client cannot keep up."""
    best, rate, end = 0, 1000, f'not tried beyond {size.highest} Hz'
    while rate <= size.highest:
        for _ in range(TRIES):
            stream = probe.stream(contestant, rate, round(rate * size.step_seconds))
            share = stream.lost / (stream.lost + len(stream.latencies))
            if share <= LEFT_OUT:
                break
        else:
            end = f'{rate} Hz: {100 * share:.2g} % left out'
            break
        if stream.rate < 0.95 * rate:
            end = f'{rate} Hz: the client sends {stream.rate:.0f} Hz at most'
            break
        best, rate = rate, 2 * rate
    return Sustained(contestant, best, end)


def beside_load(
    probe: Probe, domain: int, beside: str, size: Size
) -> tuple[list[Latency], list[Calls]]:
    """Latencies while other processes have something to do, and the calls of those that call."""
    calls = []
    with ExitStack() as stack:
        running = []
        for kind in LOADS[beside]:
            peer = ('benchmarks.latency_peers', kind, str(size.busy_samples))
            running.append(stack.enter_context(process(domain, *peer)))
        # The first call is answered: all is compiled.
        firsts = [peer.stdout.readline() for peer in running]
        if not all(firsts):
            raise RuntimeError('The service does not answer, or a process has not started.')
        rows = latencies(probe, size.busy_rates, size.busy_rounds, size.seconds, beside)
        for kind, peer, first in zip(LOADS[beside], running, firsts):
            if peer.poll() is not None:
                raise RuntimeError(f'The process {kind} has ended: {peer.stderr.read()}')
            peer.send_signal(signal.SIGTERM)
            # A line that the signal has cut off has no end.
            lines = [first, *peer.stdout.read().splitlines(keepends=True)]
            if kind != 'loop':
                durations = [float(line) for line in lines if line.endswith('\n')]
                calls.append(Calls(beside, len(durations), median(durations)))
    return rows, calls


def measure(size: Size) -> Results:
    """Measure everything."""
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    with session(size.report_period) as (probe, domain):
        for contestant in CONTESTANTS:  # the first messages of a process are slower
            probe.stream(contestant, 1000, round(500 * size.seconds))
        everyone = (*CONTESTANTS, BEYOND)
        idle = latencies(probe, size.rates, size.rounds, size.seconds, contestants=everyone)
        resting = probe.resting(size.idle_seconds)
        busy, calls = [], []
        for beside in LOADS:
            rows, called = beside_load(probe, domain, beside, size)
            busy += rows
            calls += called
        sustained = [sustained_rate(probe, contestant, size) for contestant in CONTESTANTS]
    return Results(idle, sustained, resting, busy, calls)


def text(results: Results) -> str:
    """Tables as reStructuredText."""
    return '\n'.join(
        [
            '.. rubric:: From sending a motion to receiving its efforts [µs]\n',
            idle_table(results),
            '.. rubric:: Highest rate at which no more than 1 % of the samples are left out\n',
            sustained_table(results),
            '.. rubric:: Beside what other processes do [µs]\n',
            busy_table(results),
        ]
    )


def idle_table(results: Results) -> str:
    """Percentiles at each rate, with the ratio to the relay."""
    lines = [['rate', '', 'p50', 'p99', 'p99.9', 'CPU per sample', 'samples', 'unanswered']]
    by_rate = {(row.rate, row.contestant): row for row in results.idle}
    for rate in sorted({row.rate for row in results.idle}):
        relay, *nodes = (by_rate[rate, contestant] for contestant in (*CONTESTANTS, BEYOND))
        for row in (relay, *nodes):
            lines.append(
                [
                    f'{rate} Hz',
                    row.contestant,
                    *(
                        _microseconds(value)
                        for value in (row.p50, row.p99, row.p999, row.cpu)
                    ),
                    str(row.samples),
                    str(row.lost),
                ]
            )
        for node in nodes:
            ratios = (_ratio(node, relay, name) for name in ('p50', 'p99', 'p999', 'cpu'))
            lines.append([f'{rate} Hz', f'{node.contestant} / relay', *ratios, '', ''])
    return report.grid(lines)


def sustained_table(results: Results) -> str:
    """Highest rates, and what is taken while nothing comes."""
    lines = [['', 'sustained', 'next step', 'at rest, of a core']]
    for row in results.sustained:
        share = f'{100 * results.resting[row.contestant]:.2f} %'
        lines.append([row.contestant, f'{row.rate} Hz', row.end, share])
    return report.grid(lines)


def busy_table(results: Results) -> str:
    """Percentiles with and without other processes, and what the node says of itself."""
    lines = [
        [
            *('beside', 'rate', '', 'p50', 'p99', 'largest', 'unanswered'),
            *(
                'p50 / relay',
                'p99 / relay',
                'late p50',
                'late p99',
                'left out',
                'a call takes',
            ),
        ]
    ]
    calls = {row.beside: f'{1e3 * row.seconds:.0f} ms' for row in results.calls}
    names = list(LOADS)
    relays = {
        (row.beside, row.rate): row
        for row in results.busy
        if row.contestant == CONTESTANTS[0]
    }
    for row in sorted(results.busy, key=lambda row: (names.index(row.beside), row.rate)):
        relay = relays[row.beside, row.rate]
        said = (_ratio(row, relay, 'p50'), _ratio(row, relay, 'p99'))
        said += (_microseconds(row.late50), _microseconds(row.late99), str(row.left_out))
        lines.append(
            [
                row.beside,
                f'{row.rate} Hz',
                row.contestant,
                *(_microseconds(value) for value in (row.p50, row.p99, row.largest)),
                f'{100 * row.lost / row.samples:.2g} %',
                *(said if row is not relay else len(said) * ('',)),
                calls.get(row.beside, ''),
            ]
        )
    return report.grid(lines)


def _ratio(row: Latency, relay: Latency, name: str) -> str:
    return f'{getattr(row, name) / max(getattr(relay, name), 1e-9):.2f}'


def _microseconds(seconds: float) -> str:
    return f'{1e6 * seconds:.0f}'


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the tables and write them."""
    parser = argparse.ArgumentParser(
        prog='python -m benchmarks.latency', description=__doc__.split('\n')[0]
    )
    parser.add_argument(
        '--size',
        choices=SIZES,
        default='quick',
        help='short: 1 kHz alone; quick: some minutes; full: more repetitions; tiny: '
        'to see that all works',
    )
    parser.add_argument(
        '-o',
        '--output',
        type=Path,
        default=ROOT / 'build' / 'bench',
        help='folder to write to',
    )
    parser.add_argument(
        '--include',
        type=Path,
        metavar='FILE',
        help='write the tables for the documentation too',
    )
    options = parser.parse_args(arguments)
    results = measure(SIZES[options.size])
    tables = text(results)
    print(tables)
    options.output.mkdir(parents=True, exist_ok=True)
    files = [options.output / 'latency.rst', options.output / 'latency.json']
    files[0].write_text(tables, encoding='utf-8')
    values = {'machine': report.machine(), **asdict(results)}
    files[1].write_text(json.dumps(values, indent=1) + '\n', encoding='utf-8')
    if options.include:
        options.include.write_text(tables, encoding='utf-8')
        files.append(options.include)
    print('Written:', *files, sep='\n  ')
    return 0


if __name__ == '__main__':
    sys.exit(main())
