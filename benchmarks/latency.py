"""Time from a motion that is sent to the efforts that come back, beside a node that only relays.

Each sample is a JointMotion of the Franka Panda, answered with a JointEffort. The node and the
relay (a node in rclpy that computes nothing) run in processes of their own; a client in this
process sends samples at a fixed rate whether or not the ones before are answered, to one of them
at a time and in turn, so that what disturbs the machine disturbs both. The ratio to the relay is
what the node adds to rclpy and the middleware.

    python -m benchmarks.latency --size quick

measures in about two minutes at 100 Hz, 500 Hz and 1 kHz, then beside clients of the service, then
the rate from which on samples are lost.
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
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import numpy as np
import rclpy
from hodyn_msgs.msg import JointEffort, JointMotion
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.serialization import serialize_message
from std_msgs.msg import String

from benchmarks import report
from benchmarks.cases import ROOT
from benchmarks.latency_peers import joint_motion
from hodyn_ros.resources import share_file
from hodyn_ros.ros import qos

TIMEOUT = 60.0  # s
QUIET = 3.0  # s without an answer after which what is missing is lost
STAMP = struct.Struct('<iI')
STAMP_AT = 4  # behind the four bytes that say how a message is encoded
# Fewer answers than that share of a second's samples may be on their way when the last sample is
# sent; with more, the contestant falls behind and the queues only hide it for a while.
BEHIND = 0.05
CONTESTANTS = ('relay', 'node')


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


SIZES = {
    'tiny': Size((100, 1000), 1, 0.1, (200,), 200, 1, 2000, 0.05),
    'quick': Size((100, 500, 1000), 5, 2.0, (100, 1000), 10_000, 2, 64_000, 2.0),
    'full': Size((100, 500, 1000), 10, 10.0, (100, 500, 1000), 10_000, 3, 64_000, 5.0),
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
    pending : int
        Answers on their way when the last sample was sent.
    rate : float
        Rate that the client reached [Hz].
    """

    latencies: np.ndarray
    lost: int
    pending: int
    rate: float


@dataclass(frozen=True)
class Latency:
    """Latencies of one contestant at one rate; all rounds together [s]."""

    contestant: str
    service: str
    rate: int
    samples: int
    lost: int
    p50: float
    p99: float
    p999: float
    largest: float


@dataclass(frozen=True)
class Sustained:
    """The highest rate at which nothing was lost [Hz], and what ended the climb."""

    contestant: str
    rate: int
    end: str


@dataclass(frozen=True)
class Calls:
    """Calls of the service beside the stream."""

    service: str
    answered: int
    seconds: float  # median of a call


@dataclass(frozen=True)
class Results:
    """Everything that was measured."""

    idle: list[Latency]
    sustained: list[Sustained]
    busy: list[Latency]
    calls: list[Calls]


class Probe:
    """The measuring client: one thread that sends and receives without an executor in between."""

    def __init__(self, domain: int, namespace: str) -> None:
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
            self._publishers[name] = self._node.create_publisher(JointMotion, inputs, qos.INPUT)
            self._subscriptions[name] = self._node.create_subscription(
                JointEffort, outputs, lambda _: None, qos.OUTPUT, raw=True
            )
        self._wait_set = rclpy_implementation.WaitSet(1, 0, 0, 0, 0, 0, self._context.handle)
        values = 0.2 * np.sin(np.arange(35.0)).reshape(5, 7)
        self._bytes = bytearray(serialize_message(joint_motion(values)))
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
        publish = self._publishers[contestant].publish
        subscription = self._subscriptions[contestant].handle
        # Stragglers of a stream before bear other seconds.
        self._streams += 1
        identity = self._streams
        sent = np.zeros(samples)
        arrived = np.full(samples, np.nan)
        number = answered = pending = 0
        clock = time.perf_counter
        gc.collect()
        gc.disable()
        begin = latest = clock()
        while answered < samples:
            now = clock()
            wait = QUIET + latest - now
            if number < samples:
                wait = begin + number / rate - now
                if wait <= 0.0:
                    STAMP.pack_into(self._bytes, STAMP_AT, identity, number)
                    sent[number] = latest = clock()
                    publish(bytes(self._bytes))
                    number += 1
                    pending = number - answered
            elif wait <= 0.0:
                break
            if not self._is_ready(subscription, max(wait, 0.0)):
                continue
            while (taken := subscription.take_message(JointEffort, True)) is not None:
                latest = clock()
                seconds, index = STAMP.unpack_from(taken[0], STAMP_AT)
                if seconds == identity and np.isnan(arrived[index]):
                    arrived[index] = latest
                    answered += 1
                if number < samples and latest >= begin + number / rate:
                    break  # the next sample is due
        gc.enable()
        latencies = (arrived - sent)[np.isfinite(arrived)]
        reached = (samples - 1) / max(sent[-1] - begin, 1e-9)
        return Stream(latencies, samples - answered, pending, reached)

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
        running.communicate(timeout=TIMEOUT)


@contextmanager
def session() -> Iterator[tuple[Probe, int]]:
    """Node, relay and client, all of them ready; with the ROS domain in which they meet."""
    domain = random.randint(1, 100)
    # Others on the machine may have the same domain, but not the same names.
    os.environ['LATENCY_NAMESPACE'] = namespace = f'latency_{uuid.uuid4().hex}'
    place = ('--ros-args', '-r', f'__ns:=/{namespace}', '--log-level', 'error')
    with (
        process(domain, 'hodyn_ros.ros.node', *place, '-p', 'input_timeout:=0.0') as node_process,
        process(domain, 'benchmarks.latency_peers', 'relay', *place) as relay_process,
    ):
        probe = Probe(domain, namespace)
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
    probe: Probe, rates: Sequence[int], rounds: int, seconds: float, service: str
) -> list[Latency]:
    """Latencies of both contestants at all rates, in turn."""
    streams: dict[tuple[str, int], list[Stream]] = {}
    for _ in range(rounds):
        for rate in rates:
            for contestant in random.sample(CONTESTANTS, len(CONTESTANTS)):
                samples = max(round(rate * seconds), 2)
                streams.setdefault((contestant, rate), []).append(
                    probe.stream(contestant, rate, samples)
                )
    rows = []
    for (contestant, rate), found in sorted(streams.items(), key=lambda item: item[0][1]):
        values = np.concatenate([stream.latencies for stream in found])
        lost = sum(stream.lost for stream in found)
        p50, p99, p999 = np.percentile(values, [50.0, 99.0, 99.9]) if len(values) else [np.nan] * 3
        rows.append(
            Latency(
                contestant,
                service,
                rate,
                len(values) + lost,
                lost,
                *(float(value) for value in (p50, p99, p999, values.max(initial=0.0))),
            )
        )
    return rows


def sustained_rate(probe: Probe, contestant: str, size: Size) -> Sustained:
    """Double the rate until samples are lost, answers pile up, or the client cannot keep up."""
    best, rate, end = 0, 1000, f'not tried beyond {size.highest} Hz'
    while rate <= size.highest:
        stream = probe.stream(contestant, rate, round(rate * size.step_seconds))
        if stream.lost:
            share = stream.lost / (stream.lost + len(stream.latencies))
            end = f'{rate} Hz: {100 * share:.2g} % lost'
            break
        # A run of a few milliseconds has hardly a rate; in tiny runs the bounds mean nothing.
        if stream.pending > max(BEHIND * rate, 100):
            end = f'{rate} Hz: falls behind'
            break
        if stream.rate < 0.95 * rate:
            end = f'{rate} Hz: the client sends {stream.rate:.0f} Hz at most'
            break
        best, rate = rate, 2 * rate
    return Sustained(contestant, best, end)


def beside_calls(
    probe: Probe, domain: int, kind: str, size: Size
) -> tuple[list[Latency], Calls]:
    """Latencies while a client calls the service back to back."""
    caller = ('benchmarks.latency_peers', kind, str(size.busy_samples))
    with process(domain, *caller) as running:
        first = running.stdout.readline()  # the first call is answered: all is compiled
        if not first:
            raise RuntimeError(f'The service does not answer: {running.stderr.read()}')
        rows = latencies(probe, size.busy_rates, size.busy_rounds, size.seconds, kind)
        if running.poll() is not None:
            raise RuntimeError(f'The client of the service ended: {running.stderr.read()}')
        running.send_signal(signal.SIGTERM)
        # A line that the signal has cut off has no end.
        lines = running.stdout.read().splitlines(keepends=True)
    durations = [float(line) for line in [first, *lines] if line.endswith('\n')]
    return rows, Calls(kind, len(durations), median(durations))


def measure(size: Size) -> Results:
    """Measure everything."""
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    with session() as (probe, domain):
        for contestant in CONTESTANTS:  # the first messages of a process are slower
            probe.stream(contestant, 1000, round(500 * size.seconds))
        idle = latencies(probe, size.rates, size.rounds, size.seconds, '')
        busy = latencies(probe, size.busy_rates, size.busy_rounds, size.seconds, '')
        calls = []
        for kind in ('motion', 'trajectory'):
            rows, called = beside_calls(probe, domain, kind, size)
            busy += rows
            calls.append(called)
        sustained = [sustained_rate(probe, contestant, size) for contestant in CONTESTANTS]
    return Results(idle, sustained, busy, calls)


def text(results: Results) -> str:
    """Tables as reStructuredText."""
    return '\n'.join(
        [
            '.. rubric:: From sending a motion to receiving its efforts [µs]\n',
            idle_table(results),
            '.. rubric:: Highest rate without a lost sample\n',
            sustained_table(results),
            '.. rubric:: Beside a client of the service that calls it back to back [µs]\n',
            busy_table(results),
        ]
    )


def idle_table(results: Results) -> str:
    """Percentiles at each rate, with the ratio to the relay."""
    lines = [['rate', '', 'p50', 'p99', 'p99.9', 'samples', 'lost']]
    by_rate = {(row.rate, row.contestant): row for row in results.idle}
    for rate in sorted({row.rate for row in results.idle}):
        relay, node = (by_rate[rate, contestant] for contestant in CONTESTANTS)
        for row in (relay, node):
            lines.append(
                [
                    f'{rate} Hz',
                    row.contestant,
                    *(_microseconds(value) for value in (row.p50, row.p99, row.p999)),
                    str(row.samples),
                    str(row.lost),
                ]
            )
        ratios = (node.p50 / relay.p50, node.p99 / relay.p99, node.p999 / relay.p999)
        lines.append([f'{rate} Hz', 'ratio', *(f'{ratio:.2f}' for ratio in ratios), '', ''])
    return report.grid(lines)


def sustained_table(results: Results) -> str:
    """Highest rates."""
    lines = [['', 'sustained', 'next step']]
    lines += [[row.contestant, f'{row.rate} Hz', row.end] for row in results.sustained]
    return report.grid(lines)


def busy_table(results: Results) -> str:
    """Percentiles with and without clients of the service."""
    lines = [['service', 'rate', '', 'p50', 'p99', 'largest', 'lost', 'a call takes']]
    calls = {row.service: f'{1e3 * row.seconds:.0f} ms' for row in results.calls}
    names = {'': 'idle', 'motion': 'motion samples', 'trajectory': 'trajectories'}
    for row in sorted(results.busy, key=lambda row: (list(names).index(row.service), row.rate)):
        lines.append(
            [
                names[row.service],
                f'{row.rate} Hz',
                row.contestant,
                *(_microseconds(value) for value in (row.p50, row.p99, row.largest)),
                str(row.lost),
                calls.get(row.service, ''),
            ]
        )
    return report.grid(lines)


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
        help='quick: some minutes; full: more repetitions; tiny: to see that all works',
    )
    parser.add_argument(
        '-o', '--output', type=Path, default=ROOT / 'build' / 'bench', help='folder to write to'
    )
    parser.add_argument(
        '--include', type=Path, metavar='FILE', help='write the tables for the documentation too'
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
