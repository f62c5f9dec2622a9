"""A node under all faults for as long as wanted, and a stream whose answers are checked.

    python test/soak.py --seconds 600

A stream of samples (JointMotion of the Franka Panda) at a fixed rate. Each answer is compared with
power series, which share no code with the package. Beside it, another process commits faults at
random (test/support/fault_peers.py), and the memory of the node and its planning is sampled.
The report at the end says what was sent, answered, left out and lost, the latencies, the faults,
the refusals as the node's diagnostics tell them, and the memory.

A latency goes from the publication of a sample to the moment at which the checker gets its answer.
Of a hundred, one may be as late as it likes: machine and middleware stand still now and then. A
queue in the node would make all of them late.

All processes run as doc/behaviour.rst advises those who control a robot: with the profile of the
package for Fast DDS, and without its shared memory, for which it holds up the processes of a
machine for up to two seconds when one that used it has been killed. With --shared-memory they use
it.

The exit code is 1 if more samples are missing than the node says it has left out, an answer was
wrong or out of order, one of a hundred later than half a second, anything was published that is
not finite, the node died, or its memory grew.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from hodyn_msgs.msg import JointEffort, JointMotion
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.serialization import deserialize_message, serialize_message
from std_msgs.msg import String
from support import fault_tools
from support.fault_tools import EVERYTHING, Client, NodeProcess
from support.messages import EFFORTS, GRAVITY, joint_motion, nanoseconds
from support.oracles import taylor_rnea
from support.ros_harness import IS_BEFORE_KILTED, next_domain

from hodyn_ros import RobotModel
from hodyn_ros.resources import share_file
from hodyn_ros.ros.base.life import bound_memory

MEGABYTE = 2**20
QUIET = 10.0  # s without an answer after which what is missing is lost
DIFFERENT_SAMPLES = 64
FIRST_SECOND = 500_000_000  # of the stamps; nobody else sends such
SAMPLING_PERIOD = 0.25  # s, of the memory
# Samples under way, of the 1000 that wait for a busy node: on a machine that is too slow for the
# rate, the rate goes down and nothing is lost.
WINDOW = 500
TOLERANCE = 1e-9  # relative to the largest effort of the order
# s. On a machine that is busy with the faults, samples and checks included. An old sample is worth
# nothing, so the node is not later than it was held up; a queue would show as seconds.
ALLOWED_LATENCY = 0.5
PEERS = [sys.executable, str(Path(__file__).parent / 'support' / 'fault_peers.py')]
# Where only processes of this machine are found, ROS 2 chooses the transports itself.
NO_SHARED_MEMORY = {
    'FASTDDS_BUILTIN_TRANSPORTS': 'UDPv4',
    'ROS_AUTOMATIC_DISCOVERY_RANGE': 'SUBNET',
}


@dataclass
class Report:
    """What has happened."""

    sent: int = 0
    answered: int = 0
    wrong: int = 0
    left_out: int = 0
    """As the node counts them, of all publishers; those that it may leave out."""
    not_finite: int = 0
    latencies: list[float] = field(default_factory=list)
    node_died: bool = False
    faults: dict[str, dict[str, int]] = field(default_factory=dict)
    refusals: dict[str, int] = field(default_factory=dict)
    memory: list[tuple[float, float]] = field(default_factory=list)
    """Of the node and of its planning [MB]."""
    allowed_growth: float = 64.0
    allowed_latency: float = ALLOWED_LATENCY

    @property
    def lost(self) -> int:
        """Samples that are missing though the node does not say so."""
        return max(self.sent - self.answered - self.left_out, 0)

    def latency(self, percent: float) -> float:
        """Percentile of the latencies [s]."""
        return float(np.percentile(self.latencies or [0.0], percent))

    def memory_at_ends(self, column: int) -> tuple[float, float]:
        """Memory after the warm-up and at the end [MB], of the node (0) or its planning (1).

        The first is the largest of a quarter of the time, for a planning that has just been killed
        and restarted has little; the second the median of the last tenth.
        """
        values = [sample[column] for sample in self.memory] or [0.0]
        first, last = max(len(values) // 4, 1), max(len(values) // 10, 1)
        return max(values[:first]), float(np.median(values[-last:]))

    def failures(self) -> list[str]:
        """What must not have happened."""
        growth = max(end - begin for begin, end in map(self.memory_at_ends, (0, 1)))
        found = {
            f'{self.lost} samples were lost': self.lost,
            'no sample was answered': not self.answered,
            f'{self.wrong} answers were wrong': self.wrong,
            f'one answer of a hundred came after {self.latency(99.0):.3f} s, at most '
            f'{self.allowed_latency} s are allowed': self.latency(99.0)
            > self.allowed_latency,
            f'{self.not_finite} messages were not finite': self.not_finite,
            'the node died': self.node_died,
            'no planning process was seen': not self.memory_at_ends(1)[1],
            'no fault was committed': not self.faults.get('committed'),
            f'the memory grew by {growth:.1f} MB': growth > self.allowed_growth,
        }
        return [text for text, is_true in found.items() if is_true]

    def text(self) -> str:
        """Report for a reader."""
        lines = [
            f'samples          {self.sent} sent, {self.answered} answered, '
            f'{self.sent - self.answered - self.lost} left out, {self.lost} lost, '
            f'{self.wrong} wrong',
            f'left out         {self.left_out} of all inputs of the topic, as the node counts',
            f'not finite       {self.not_finite}',
            f'latency          p50 {1e3 * self.latency(50.0):.1f} ms, '
            f'p99 {1e3 * self.latency(99.0):.1f} ms '
            f'(at most {1e3 * self.allowed_latency:.0f} ms), '
            f'largest {1e3 * self.latency(100.0):.1f} ms',
        ]
        for title, values in (
            *((name, counts) for name, counts in self.faults.items()),
            ('refusals', self.refusals),
        ):
            counts = ', '.join(f'{name} {count}' for name, count in sorted(values.items()))
            lines.append(f'{title:16} {counts}')
        for column, name in enumerate(('memory of node', 'of planning')):
            begin, end = self.memory_at_ends(column)
            lines.append(f'{name:16} {begin:.1f} MB after warm-up, {end:.1f} MB at the end')
        found = self.failures()
        lines.append('failed           ' + '; '.join(found) if found else 'passed')
        return '\n'.join(lines)


class Checker:
    """Sends the stream and checks what comes back, in one thread without an executor."""

    def __init__(self, client: Client, urdf: str, rate: float, report: Report) -> None:
        self._rate, self._report = rate, report
        self._node = Node(
            'checker', context=client.context, namespace=fault_tools.NAMESPACE
        )
        self._publisher = self._node.create_publisher(
            JointMotion, 'joint_motion', EVERYTHING
        )
        self._subscription = self._node.create_subscription(
            JointEffort, 'hodyn_node/joint_effort', lambda _: None, EVERYTHING, raw=True
        )
        self._wait_set = rclpy_implementation.WaitSet(
            1, 0, 0, 0, 0, 0, client.context.handle
        )
        self.names = RobotModel.from_urdf(urdf).joint_names
        size = DIFFERENT_SAMPLES, 5, len(self.names)
        motions = np.random.default_rng(3).normal(size=size)
        self._messages = [
            bytearray(serialize_message(joint_motion(motion, self.names)))
            for motion in motions
        ]
        self._expected = [
            taylor_rnea(urdf, self.names, GRAVITY, motion) for motion in motions
        ]
        client.wait(self._publisher.get_subscription_count, 'match of the checker')
        client.wait(
            lambda: self._node.count_publishers('hodyn_node/joint_effort'),
            'match of the node',
        )

    def close(self) -> None:
        """Leave the middleware."""
        self._node.destroy_node()

    def run(self, goes_on) -> None:
        """Send and check until it is over and all answers are there, or none comes any more."""
        report, clock = self._report, time.perf_counter
        open_samples: dict[int, float] = {}
        due = latest = clock()
        self._last_answered = -1
        gc.disable()  # a collection now and then would count as latency of the node
        while True:
            now = clock()
            wait = due - now
            if not goes_on():
                wait = QUIET + latest - now
                if wait < 0.0 or not open_samples:
                    break
            elif report.sent - self._last_answered > WINDOW:
                due = now + 1.0 / self._rate
                wait = 1.0 / self._rate
                if now > latest + QUIET:
                    break
            elif wait <= 0.0:
                number = report.sent
                due += 1.0 / self._rate
                message = self._messages[number % DIFFERENT_SAMPLES]
                stamp = 10**9 * FIRST_SECOND + number
                fault_tools.put_stamp(message, stamp)
                open_samples[stamp] = clock()
                self._publisher.publish(bytes(message))
                report.sent += 1
            self._wait_set.clear_entities()
            self._wait_set.add_subscription(self._subscription.handle)
            self._wait_set.wait(int(1e9 * min(max(wait, 0.0), 0.1)))
            while taken := self._subscription.handle.take_message(JointEffort, True):
                now = clock()
                message = deserialize_message(taken[0], JointEffort)
                if self._check(message, open_samples, now):
                    latest = now
                if now >= due:
                    break  # the next sample waits
        gc.enable()

    def _check(
        self, message: JointEffort, open_samples: dict[int, float], arrived: float
    ) -> bool:
        """Check an output; return whether it answers a sample of the stream."""
        report = self._report
        report.not_finite += not fault_tools.is_finite(message)
        stamp = nanoseconds(message.header.stamp)
        number = stamp - 10**9 * FIRST_SECOND
        if not 0 <= number < report.sent:
            return False
        sent = open_samples.pop(stamp, None)
        expected = self._expected[number % DIFFERENT_SAMPLES]
        given = np.array([getattr(message, name) for name in EFFORTS])
        scale = np.abs(expected).max(axis=1, keepdims=True)
        fits = given.shape == expected.shape and tuple(message.joint_names) == self.names
        if (
            sent is None  # answered twice, or after a newer one
            or not fits
            or not np.all(np.abs(given - expected) <= TOLERANCE * scale)
        ):
            report.wrong += 1
        if sent is not None:
            report.answered += 1
            report.latencies.append(arrived - sent)
            # What was sent before is not answered any more: the newest first, and in order.
            for left_out in range(self._last_answered + 1, number):
                open_samples.pop(10**9 * FIRST_SECOND + left_out, None)
            self._last_answered = max(self._last_answered, number)
        return True


def soak(
    seconds: float,
    rate: float = 1000.0,
    seed: int = 1,
    allowed_growth: float = 64.0,
    allowed_latency: float = ALLOWED_LATENCY,
) -> Report:
    """Run a node under faults.

    Parameters
    ----------
    seconds : float
        For how long, after every fault has been committed once.
    rate : float
        Of the stream [Hz].
    seed : int
        Of the faults.
    allowed_growth : float
        Of the memory [MB].
    allowed_latency : float
        Of an answer [s].

    Returns
    -------
    Report
    """
    path = share_file('urdf/panda.urdf')
    urdf = Path(path).read_text(encoding='utf-8')
    report = Report(allowed_growth=allowed_growth, allowed_latency=allowed_latency)
    domain = next_domain()
    client = Client(domain, takes_efforts=False)
    client.publishers['robot_description'].publish(String(data=urdf))
    node = NodeProcess(
        client,
        use_sim_time=True,
        diagnostics_period=1.0,
        answer_all=False,
    )
    client.match()
    client.wait_for_model()
    checker = Checker(client, urdf, rate, report)
    is_over = threading.Event()
    with tempfile.TemporaryFile('w+') as log:
        chaos = subprocess.Popen(
            [*PEERS, 'chaos', str(path), str(node.pid), str(seed)],
            env=fault_tools.environment(domain),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )

        outputs: list[str] = []

        def watch() -> None:
            begun = chaos.stdout.readline()
            begin = time.monotonic()
            while begun and chaos.poll() is None and time.monotonic() < begin + seconds:
                report.memory.append(
                    (
                        fault_tools.memory(node.pid) / MEGABYTE,
                        node.planning_memory() / MEGABYTE,
                    )
                )
                if not node.is_alive():
                    break
                is_over.wait(SAMPLING_PERIOD)
            is_over.set()
            chaos.stdin.close()
            outputs.append(chaos.stdout.read())

        watching = threading.Thread(target=watch)
        watching.start()
        checker.run(lambda: not is_over.is_set())
        watching.join()
        chaos.wait(fault_tools.TIMEOUT)
        chaos.stdout.close()
        if outputs[0]:
            report.faults = json.loads(outputs[0])
        else:
            log.seek(0)
            print(log.read(), file=sys.stderr)
    report.node_died = not node.is_alive()
    if not report.node_died:
        client.wait_for_report()
        report.refusals = {
            part: int(values['refused'])
            for part, values in client.statuses.items()
            if 'refused' in values
        }
        missing = ('left out', 'lost by the middleware')
        report.left_out = sum(client.count('joint_motion', key) for key in missing)
    report.not_finite += len(client.not_finite)
    if report.failures():
        print(node.log()[-10_000:], file=sys.stderr)
    checker.close()
    client.close()
    node.close()
    return report


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and print the report."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--seconds', type=float, default=600.0)
    parser.add_argument('--rate', type=float, default=1000.0, help='of the stream [Hz]')
    parser.add_argument('--seed', type=int, default=1, help='of the faults')
    parser.add_argument(
        '--shared-memory', action='store_true', help='have Fast DDS use its shared memory'
    )
    options = parser.parse_args(arguments)
    if IS_BEFORE_KILTED:
        parser.error(
            'the middleware of this ROS does not number messages, so that those left out cannot '
            'be told from lost ones: make DISTRO=kilted soak'
        )
    if not options.shared_memory:
        os.environ.update(NO_SHARED_MEMORY)
    bound_memory()  # here and in all processes that are started
    report = soak(options.seconds, options.rate, options.seed)
    print(report.text())
    return 1 if report.failures() else 0


if __name__ == '__main__':
    sys.exit(main())
