"""Calls of the service with many samples, beside a bare service that echoes arrays of that size.

A call lasts from NumPy arrays to NumPy arrays: the request is built, sent and answered, and the
efforts are read. The samples of a motion of the Franka Panda go in flat arrays and in a list of
messages. The echo is a service in rclpy that returns the flat arrays of its request, and computes
nothing; it runs in a process of its own like the node, and all are called in turn. Then a
trajectory of many waypoints with positions is answered with as many samples: processor time and
memory of the process that answers, beside the time in which rclpy deserialises the request.

    python -m benchmarks.service --size quick

measures in about a minute.
"""

from __future__ import annotations

import argparse
import array
import os
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import rclpy
from hodyn_msgs.msg import JointMotionTrajectory
from hodyn_msgs.srv import ComputeInverseDynamics
from rclpy.node import Node
from rclpy.serialization import deserialize_message, serialize_message
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from benchmarks import latency_peers, report
from benchmarks.cases import ROOT
from benchmarks.latency import TIMEOUT, cpu_time, process, session
from hodyn_ros.ros.base.life import main as run
from hodyn_ros.ros.nodes.reference_publisher import JOINT_NAMES
from hodyn_ros.trajectory.references import panda_sinusoids

Request = ComputeInverseDynamics.Request

EFFORTS = ('effort', 'effort_dot', 'effort_ddot')
NODE = 'hodyn_node/compute_inverse_dynamics'
MEGABYTE = 2**20


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    samples: int
    rounds: int
    waypoints: int


SIZES = {
    'tiny': Size(100, 1, 100),
    'quick': Size(10_000, 20, 100_000),
    'full': Size(10_000, 100, 100_000),
}


class Echo(Node):
    """Answers with the arrays of the request."""

    def __init__(self) -> None:
        super().__init__('echo')
        self.create_service(ComputeInverseDynamics, '~/call', self._on_request)

    def _on_request(
        self, request: Request, response: ComputeInverseDynamics.Response
    ) -> ComputeInverseDynamics.Response:
        given, answer = request.motion_trajectory, response.effort_trajectory
        answer.time_from_start = given.time_from_start
        answer.velocity, answer.acceleration = given.velocity, given.acceleration
        answer.effort, answer.effort_dot = given.position, given.jerk
        answer.effort_ddot = given.snap
        response.success = True
        return response


def flat_request(times: np.ndarray, motion: np.ndarray) -> Request:
    """Request with a motion (N, 5, 7) at times (N,) in flat arrays."""
    samples = JointMotionTrajectory(joint_names=list(JOINT_NAMES))
    samples.time_from_start = array.array('d', times.tobytes())
    for k, field in enumerate(latency_peers.FIELDS):
        setattr(samples, field, array.array('d', motion[:, k].tobytes()))
    return Request(motion_trajectory=samples)


def waypoints_request(count: int) -> Request:
    """Request with waypoints of the Panda that is answered with as many samples."""
    times = np.cumsum(np.random.default_rng(0).uniform(0.005, 0.015, count))
    nanoseconds = np.round(1e9 * times).astype(int).tolist()
    trajectory = JointTrajectory(joint_names=list(JOINT_NAMES))
    for instant, positions in zip(
        nanoseconds, panda_sinusoids().motion(times)[:, 0].tolist()
    ):
        point = JointTrajectoryPoint(positions=positions)
        point.time_from_start.sec, point.time_from_start.nanosec = divmod(instant, 10**9)
        trajectory.points.append(point)
    period = 1e-9 * (nanoseconds[-1] - nanoseconds[0]) / (count - 1)
    return Request(trajectory=trajectory, sample_period=period)


class Caller:
    """Calls services in a ROS domain and waits for the answers."""

    def __init__(self, domain: int, namespace: str) -> None:
        rclpy.init(domain_id=domain)
        self._node = Node('caller', namespace=namespace)
        self._clients = {
            name: self._node.create_client(ComputeInverseDynamics, name)
            for name in (NODE, 'echo/call')
        }

    def close(self) -> None:
        """Leave the domain."""
        self._node.destroy_node()
        rclpy.shutdown()

    def call(self, name: str, request: Request) -> ComputeInverseDynamics.Response:
        """Answer of a service; RuntimeError if there is none, or it is a refusal."""
        client = self._clients[name]
        if not client.wait_for_service(TIMEOUT):
            raise RuntimeError(f'There is no service {name}.')
        future = client.call_async(request)
        rclpy.spin_until_future_complete(self._node, future, timeout_sec=TIMEOUT)
        response = future.result()
        if response is None or not response.success:
            raise RuntimeError(f'{name}: {response.message if response else "no answer"}')
        return response


def calls(caller: Caller, size: Size) -> dict[str, list[float]]:
    """Times of calls [s] by what is called."""
    times = np.linspace(0.0, latency_peers.DURATION, size.samples)
    motion = panda_sinusoids().motion(times)
    ways = {
        'echo': ('echo/call', lambda: flat_request(times, motion)),
        'node, flat arrays': (NODE, lambda: flat_request(times, motion)),
        'node, list of messages': (
            NODE,
            lambda: latency_peers.motion_request(size.samples),
        ),
    }
    found: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(size.rounds + 1):
        for name in random.sample(list(ways), len(ways)):
            service, make = ways[name]
            begin = time.perf_counter()
            answer = caller.call(service, make()).effort_trajectory
            efforts = np.stack(
                [np.reshape(getattr(answer, k), (-1, 7)) for k in EFFORTS], axis=1
            )
            seconds = time.perf_counter() - begin
            assert efforts.shape == (size.samples, 3, 7)
            if number:  # the first call waits for what is imported and compiled
                found[name].append(seconds)
    return found


@dataclass(frozen=True)
class Answer:
    """What the answer to a long trajectory takes of the process that gives it."""

    cpu: float  # [s]
    unpacking: float  # of the same request in this process [s]
    peak: float  # above the memory before [MiB]
    size: float  # of the answer [MiB]


def long_answer(caller: Caller, planner: int, waypoints: int) -> Answer:
    """Have a trajectory answered by the process with an id."""
    request = waypoints_request(waypoints)
    data = serialize_message(request)
    unpacking = []
    for _ in range(3):
        begin = time.process_time()
        deserialize_message(data, Request)
        unpacking.append(time.process_time() - begin)
    Path(f'/proc/{planner}/clear_refs').write_text('5')  # the peak from now on
    before, cpu = memory(planner, 'VmRSS'), cpu_time(planner)
    response = caller.call(NODE, request)
    cpu, peak = cpu_time(planner) - cpu, memory(planner, 'VmHWM') - before
    return Answer(cpu, min(unpacking), peak, len(serialize_message(response)) / MEGABYTE)


def memory(pid: int, key: str) -> float:
    """Memory of a process by its key in the status file [MiB]."""
    lines = Path(f'/proc/{pid}/status').read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key)) / 1024


def child(pid: int) -> int:
    """Id of the only child of a process."""
    tasks = Path(f'/proc/{pid}/task').glob('*/children')
    (found,) = [int(one) for path in tasks for one in path.read_text().split()]
    return found


def tables(found: dict[str, list[float]], answer: Answer, size: Size) -> str:
    """Tables of what was measured, with the ratios."""
    echo = median(found['echo'])
    lines = [[f'{size.samples} samples', 'p50 [ms]', 'fastest [ms]', 'p50 / echo']]
    for name, seconds in found.items():
        p50 = median(seconds)
        row = f'{1e3 * p50:.3g}', f'{1e3 * min(seconds):.3g}', f'{p50 / echo:.2f}'
        lines.append([name, *row])
    head = [f'{size.waypoints} waypoints', 'answer', 'of it', 'ratio']
    rows = [
        ['CPU [s], to deserialise', *_quotient(answer.cpu, answer.unpacking)],
        ['peak [MiB], the message', *_quotient(answer.peak, answer.size)],
    ]
    return report.grid(lines) + '\n' + report.grid([head, *rows])


def _quotient(value: float, unit: float) -> tuple[str, str, str]:
    return f'{value:.3g}', f'{unit:.3g}', f'{value / unit:.1f}'


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the tables and write them into a file."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given[:1] == ['echo']:
        return run(Echo, given[1:])
    parser = argparse.ArgumentParser(
        prog='python -m benchmarks.service',
        description='Calls of the service with many samples, beside a service that echoes arrays.',
    )
    parser.add_argument('--size', choices=SIZES, default='quick')
    parser.add_argument(
        '-o',
        '--output',
        type=Path,
        default=ROOT / 'build' / 'bench',
        help='folder to write to',
    )
    options = parser.parse_args(given)
    size = SIZES[options.size]
    with session(report_period=1.0) as (probe, domain):
        namespace = os.environ['LATENCY_NAMESPACE']
        place = ('--ros-args', '-r', f'__ns:=/{namespace}', '--log-level', 'error')
        with process(domain, 'benchmarks.service', 'echo', *place):
            caller = Caller(domain, namespace)
            try:
                found = calls(caller, size)
                answer = long_answer(caller, child(probe.processes['node']), size.waypoints)
            finally:
                caller.close()
    text = tables(found, answer, size)
    print(text)
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / 'service.inc').write_text(text, encoding='utf-8')
    return 0


if __name__ == '__main__':
    sys.exit(main())
