"""More than the node can take: floods, huge messages, too many requests, cycles without end."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest
from hodyn_msgs.srv import ComputeInverseDynamics
from rclpy.subscription import RCLError
from support import fault_tools, robots
from support.fault_tools import (
    Client,
    Pair,
    Stream,
    check,
    motion_bytes,
    motion_with_names_bytes,
    trajectory_bytes,
)
from support.messages import MOTION, NAMES, joint_motion, joint_trajectory

Request, Response = ComputeInverseDynamics.Request, ComputeInverseDynamics.Response
MEGABYTE = 2**20
PEERS = Path(__file__).resolve().parents[1] / 'support' / 'fault_peers.py'


@pytest.fixture(scope='module')
def shared_pair():
    with Pair(robots.TWO_LINK, max_waiting_requests=2, max_samples=60_000) as made:
        yield made


@pytest.fixture
def pair(shared_pair):
    yield shared_pair
    shared_pair.check_health()


# Floods


def flood(client: Client, count: int = 4_000) -> tuple[int, list[int]]:
    """Send samples as fast as they go; return their number and the stamps of the answers."""
    client.wait_for_report()
    before = len(client.order)
    received = client.count('joint_motion', 'received')
    stamps = [client.new_stamp() for _ in range(count)]
    template = bytearray(motion_bytes(stamp=stamps[0]))
    publish = client.publishers['joint_motion'].publish
    sent = 0
    for stamp in stamps:
        fault_tools.put_stamp(template, stamp)
        # A publisher that waits too long for the reader gives up this sample.
        with contextlib.suppress(RCLError):
            publish(bytes(template))
            sent += 1
    client.ask_until_answered(robot=robots.TWO_LINK)
    client.wait_for_report()
    client.wait(
        lambda: (
            len(client.order) - before
            == client.count('joint_motion', 'received') - received
        ),
        'an answer to all that was taken',
    )
    answers = client.order[before:]
    assert answers == sorted(set(answers)), 'twice or out of order'
    assert client.status('joint_motion')['refused'] == '0'
    for stamp in answers[::200]:
        check(client.efforts[stamp][0], MOTION, NAMES, robots.TWO_LINK)
    return sent + client.new_stamp() - stamps[-1] - 1, answers


def test_what_the_node_takes_of_a_flood_it_answers_once_and_in_order(pair):
    _, answers = flood(pair.client)
    assert len(answers) >= 1000, 'at least what a full queue holds'
    for _ in range(100):  # none is lost any more
        pair.client.ask(robot=robots.TWO_LINK)


def test_flood_leaves_no_queue_behind_and_what_is_left_out_is_counted():
    pair = Pair(robots.TWO_LINK, answer_all=False)
    try:
        client = pair.client
        client.ask(robot=robots.TWO_LINK)
        sent, answers = flood(client)
        missing = 'left out', 'lost by the middleware'
        left_out = sum(client.count('joint_motion', key) for key in missing)
        assert left_out == sent - len(answers) > 0
        for _ in range(100):
            client.ask(robot=robots.TWO_LINK)
        pair.check_health()
    finally:
        pair.close()


# Huge messages


HUGE = {
    'trajectory of a million points': ('joint_trajectory', trajectory_bytes, 'points'),
    'motion with a million joint names': ('joint_motion', motion_with_names_bytes, ''),
    'trajectory with a million joint names': (
        'joint_trajectory',
        lambda n: trajectory_bytes(1, [b'j'] * n),
        '',
    ),
}


@pytest.mark.parametrize('what', HUGE)
def test_huge_message_is_refused_with_bounded_memory_beside_a_stream(pair, what):
    topic, make, reason = HUGE[what]
    client, pid = pair.client, pair.node.pid
    message = make(1_000_000)
    client.wait_for_report()
    refused = client.count(topic, 'refused')
    before = pair.node.memory()
    fault_tools.forget_peak(pid)
    with Stream(client, robots.TWO_LINK):
        client.publishers[topic].publish(message)
        client.wait(lambda: client.count(topic, 'refused') == refused + 1, 'refusal')
        client.wait_for_report()
    assert reason in client.status(topic)['last error']
    # The middleware puts the parts together and hands over a copy; Python objects would take
    # twenty times as much.
    growth = fault_tools.memory(pid, 'VmHWM') - before
    assert growth < 6 * len(message) + 20 * MEGABYTE, f'{growth / MEGABYTE:.0f} MB'


# Too many requests


def test_overloaded_service_answers_every_client_and_refuses_what_cannot_wait(pair):
    client = pair.client
    # Each takes the node a moment.
    request = Request(
        trajectory=joint_trajectory(times=(0.0, 50.0, 100.0)), sample_period=0.002
    )
    clients = [client, *(Client(pair.node.domain) for _ in range(4))]
    try:
        for other in clients[1:]:
            other.match()
        with Stream(client, robots.TWO_LINK):
            futures = [c.service.call_async(request) for _ in range(5) for c in clients]
            client.wait(lambda: all(future.done() for future in futures), 'all answers')
        responses = [future.result() for future in futures]
    finally:
        for other in clients[1:]:
            other.close()
    codes = [response.error_code for response in responses]
    assert set(codes) == {Response.SUCCESS, Response.BUSY}
    # One is being answered and two wait.
    assert codes.count(Response.SUCCESS) >= 3
    for response in responses:
        if response.success:
            assert len(response.effort_trajectory.time_from_start) == 50_001
            assert fault_tools.is_finite(response.effort_trajectory)
        else:
            assert 'max_waiting_requests' in response.message
    assert client.call(Request(motion=[joint_motion()])).success
    pair.check_health()


@pytest.mark.parametrize('what', ['flood', 'calls'])
def test_peer_killed_in_mid_sentence_leaves_the_others_served(pair, what):
    environment = fault_tools.environment(pair.node.domain)
    with subprocess.Popen(
        [sys.executable, str(PEERS), what],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        assert process.stdout.readline() == 'begun\n'
        process.kill()
    with Stream(pair.client, robots.TWO_LINK):
        response = pair.client.call(Request(motion=[joint_motion()]))
        assert response.error_code in (Response.SUCCESS, Response.BUSY)
    pair.client.wait(
        lambda: pair.client.call(Request(motion=[joint_motion()])).success, 'a free place'
    )
