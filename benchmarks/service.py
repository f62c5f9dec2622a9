"""Calls of the service with many samples, beside a bare service that echoes arrays of that size.

A call lasts from NumPy arrays to NumPy arrays: the request is built, sent and answered, and the
efforts are read. The samples of a motion of the Franka Panda go in flat arrays and in a list of
messages. The echo is a service in rclpy that returns the flat arrays of its request, and computes
nothing; it runs in a process of its own like the node, and all are called in turn. Then a
trajectory of many waypoints with positions is answered with as many samples: processor time and
memory of the process that answers, beside the time in which rclpy deserialises the request.
"""

from __future__ import annotations

import array
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import rclpy
from hodyn_msgs.msg import JointMotionTrajectory
from hodyn_msgs.srv import ComputeInverseDynamics
from rclpy.node import Node
from rclpy.serialization import deserialize_message, serialize_message

from benchmarks import ros_peers
from benchmarks.latency import TIMEOUT, Session, children, cpu_time, process, session
from benchmarks.ros_peers import SERVICE, Request
from benchmarks.tables import Benchmark, Table
from benchmarks.timing import Contestant, Effort, race
from hodyn_ros.ros.nodes.reference_publisher import JOINT_NAMES
from hodyn_ros.trajectory.references import panda_sinusoids

EFFORTS = ('effort', 'effort_dot', 'effort_ddot')
ECHO = 'echo/call'
MEGABYTE = 2**20


class Size(NamedTuple):
    """How much is measured."""

    samples: int
    effort: Effort
    waypoints: int


SIZES = {
    'tiny': Size(100, Effort(3, 0.0, 0.0), 100),
    'quick': Size(10_000, Effort(20, 0.0, 60.0), 100_000),
    'full': Size(10_000, Effort(100, 0.0, 600.0), 100_000),
}


def flat_request(times: np.ndarray, motion: np.ndarray) -> Request:
    """Request with a motion (N, 5, 7) at times (N,) in flat arrays."""
    samples = JointMotionTrajectory(joint_names=list(JOINT_NAMES))
    samples.time_from_start = array.array('d', times.tobytes())
    for k, field in enumerate(ros_peers.FIELDS):
        setattr(samples, field, array.array('d', motion[:, k].tobytes()))
    return Request(motion_trajectory=samples)


def waypoints_request(count: int) -> Request:
    """Request with waypoints of the Panda that is answered with as many samples."""
    times = np.cumsum(np.random.default_rng(0).uniform(0.005, 0.015, count))
    period = round(1e9 * (times[-1] - times[0])) / (count - 1) * 1e-9
    positions = panda_sinusoids().motion(times)[:, 0]
    return ros_peers.trajectory_request(times, positions, period)


class Caller:
    """Calls services in a ROS domain and waits for the answers."""

    def __init__(self, meeting: Session) -> None:
        rclpy.init(domain_id=meeting.domain)
        self._node = Node('caller', namespace=meeting.namespace)
        self._clients = {
            name: self._node.create_client(ComputeInverseDynamics, name)
            for name in (SERVICE, ECHO)
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

    def efforts(self, name: str, make: Callable[[], Request]) -> np.ndarray:
        """Efforts (N, 3, 7) that a service answers."""
        answer = self.call(name, make()).effort_trajectory
        return np.stack([np.reshape(getattr(answer, k), (-1, 7)) for k in EFFORTS], axis=1)


def calls(caller: Caller, size: Size) -> Table:
    """Times of calls, in turn."""
    times = np.linspace(0.0, ros_peers.DURATION, size.samples)
    flat = partial(flat_request, times, panda_sinusoids().motion(times))
    ways = {
        'echo': (ECHO, flat),
        'node, flat arrays': (SERVICE, flat),
        'node, list of messages': (
            SERVICE,
            partial(ros_peers.motion_request, size.samples),
        ),
    }
    # Waiting for the answer is a part of the time, as with more than one thread.
    contestants = [
        Contestant(name, 2, 1, partial(caller.efforts, *way), np.array, threads=2)
        for name, way in ways.items()
    ]
    timings = race(contestants, size.effort)
    echo = timings['echo'].median
    rows = [
        [name, f'{1e3 * timing.median:.3g}', f'{timing.median / echo:.2f}']
        for name, timing in timings.items()
    ]
    title = f'Calls with {size.samples} samples'
    return Table(title, ['', 'p50 [ms]', 'p50 / echo'], rows)


def long_answer(caller: Caller, planner: int, waypoints: int) -> Table:
    """Have a long trajectory answered by the process with an id."""
    request = waypoints_request(waypoints)
    data = serialize_message(request)
    unpacking = []
    for _ in range(3):
        begin = time.process_time()
        deserialize_message(data, Request)
        unpacking.append(time.process_time() - begin)
    Path(f'/proc/{planner}/clear_refs').write_text('5')  # the peak from now on
    before, cpu = memory(planner, 'VmRSS'), cpu_time(planner)
    response = caller.call(SERVICE, request)
    cpu, peak = cpu_time(planner) - cpu, memory(planner, 'VmHWM') - before
    size = len(serialize_message(response)) / MEGABYTE
    rows = [
        [name, f'{value:.3g}', f'{unit:.3g}', f'{value / unit:.1f}']
        for name, value, unit in (
            ('CPU [s], to deserialise', cpu, min(unpacking)),
            ('peak [MiB], the message', peak, size),
        )
    ]
    title = f'Answer to a trajectory of {waypoints} waypoints'
    return Table(title, ['', 'answer', 'of it', 'ratio'], rows)


def memory(pid: int, key: str) -> float:
    """Memory of a process by its key in the status file [MiB]."""
    lines = Path(f'/proc/{pid}/status').read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key)) / 1024


def measure(size: Size) -> list[Table]:
    """Call the services."""
    with (
        session() as meeting,
        process(meeting.domain, 'benchmarks.ros_peers', 'echo', *meeting.place),
    ):
        caller = Caller(meeting)
        try:
            (planner,) = children(meeting.probe.processes['node'])
            return [calls(caller, size), long_answer(caller, planner, size.waypoints)]
        finally:
            caller.close()


BENCHMARKS = {'service': Benchmark('Calls of the service', SIZES, measure)}
