"""Peers that are killed in mid-sentence, a node that is killed itself, and time that jumps."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from hodyn_msgs.srv import ComputeInverseDynamics
from rosgraph_msgs.msg import Clock
from support import fault_tools, robots
from support.fault_tools import (
    Client,
    Pair,
    Stream,
    children,
    is_alive,
)
from support.messages import FIELDS, GRAVITY, NAMES, joint_motion, joint_trajectory, samples
from support.oracles import taylor_rnea
from trajectory_msgs.msg import JointTrajectory

Request, Response = ComputeInverseDynamics.Request, ComputeInverseDynamics.Response
NUMBERS = itertools.count(1)
PEERS = Path(__file__).resolve().parents[1] / 'support' / 'fault_peers.py'


@pytest.fixture(scope='module')
def shared_pair():
    with Pair(robots.TWO_LINK, publish_rate=500.0, stop_duration=0.1) as made:
        yield made


@pytest.fixture
def pair(shared_pair):
    yield shared_pair
    stop_trajectory(shared_pair)
    shared_pair.check_health()
    shared_pair.client.forget()


@pytest.fixture(scope='module')
def shared_timed_pair():
    with Pair(robots.TWO_LINK, publish_rate=500.0, use_sim_time=True) as made:
        yield made


@pytest.fixture
def timed_pair(shared_timed_pair):
    yield shared_timed_pair
    shared_timed_pair.check_health()
    shared_timed_pair.client.forget()


def stop_trajectory(pair):
    """End what is streamed."""
    client = pair.client
    client.publishers['joint_trajectory'].publish(JointTrajectory())
    client.wait(lambda: is_silent(client), 'end of the motion')


def is_silent(client):
    """Whether nothing is streamed any more."""
    before = client.streamed
    client.wait_for_report()
    return client.streamed == before


def run_and_kill(pair, what):
    """Start a peer and kill it in the middle of what it does."""
    with subprocess.Popen(
        [sys.executable, str(PEERS), what],
        stdout=subprocess.PIPE,
        text=True,
        env=fault_tools.environment(pair.node.domain),
    ) as process:
        assert process.stdout.readline() == 'begun\n'
        process.kill()


def answers_to_trajectory(pair):
    """Send a trajectory, wait for the whole answer and check it."""
    client = pair.client
    stop_trajectory(pair)  # it would be continued
    hold, there_and_back = ((0.0, 0.0),) * 2, ((0.0, 0.0), (0.5, -0.4), (0.0, 0.0))
    for positions, times in ((hold, [1.0, 1.1]), (there_and_back, [0.0, 0.1, 0.2])):
        # By its end the answer is known among those to what was sent before.
        times[-1] += 1e-6 * next(NUMBERS)
        client.publishers['joint_trajectory'].publish(joint_trajectory(positions, times))

        def find(end=times[-1]):
            found = [
                t for t in client.trajectories if abs(t.time_from_start[-1] - end) < 1e-8
            ]
            return found and found[0]

        whole = client.wait(find, 'whole answer')
        client.wait(lambda: is_silent(client), 'end of the motion')
    motion, efforts = samples(whole, FIELDS), samples(whole)
    np.testing.assert_allclose(motion[0, 0], 0.0, atol=1e-9)
    np.testing.assert_allclose(motion[-1, 0], 0.0, atol=1e-9)
    for sample, given in zip(motion[::5], efforts[::5]):
        expected = taylor_rnea(robots.TWO_LINK, NAMES, GRAVITY, sample)
        np.testing.assert_allclose(given, expected, rtol=1e-8, atol=1e-8)


def answers_until_whole(pair):
    """Send trajectories until one is answered: those that a killed process had are lost."""
    client = pair.client
    before = len(client.trajectories)
    client.wait(
        lambda: (
            client.publishers['joint_trajectory'].publish(joint_trajectory()),
            len(client.trajectories) > before,
        )[1],
        'whole answer',
    )
    client.wait_for_report()


def call_until_answered(client):
    """Call the service until it answers: it may still be on its way back."""
    futures, begin = [], client.reports

    def answered():
        done = [future.result() for future in futures if future.done()]
        good = next((response for response in done if response.success), None)
        # What is sent before the middleware knows the next process is lost. One call in ten
        # reports leaves those before it the time to be answered.
        if good is None and client.reports >= begin + 10 * len(futures):
            futures.append(client.service.call_async(Request(motion=[joint_motion()])))
        return good

    return client.wait(answered, 'answer of the service')


# Peers


def test_peer_killed_in_mid_sentence_leaves_the_others_served(pair):
    run_and_kill(pair, 'calls')
    with Stream(pair.client, robots.TWO_LINK):
        response = pair.client.call(Request(motion=[joint_motion()]))
        assert response.success
        answers_to_trajectory(pair)


def test_client_that_vanishes_before_its_answer_costs_only_its_answer(pair):
    request = Request(
        trajectory=joint_trajectory(times=(0.0, 50.0, 100.0)), sample_period=0.005
    )
    for _ in range(3):
        other = Client(pair.node.domain)
        other.match()
        other.service.call_async(request)
        other.close()
    assert pair.client.call(Request(motion=[joint_motion()])).success


# The node


def test_killed_node_comes_back_under_load_with_the_latched_description(pair):
    client = pair.client
    client.publishers['joint_trajectory'].publish(
        joint_trajectory(times=(0.0, 50.0, 100.0))
    )
    client.wait(lambda: client.trajectories, 'whole answer')
    first = len(client.order)
    client.service.call_async(
        Request(trajectory=joint_trajectory(times=(0.0, 50.0, 100.0)), sample_period=0.001)
    )
    client.wait(lambda: len(client.order) > first + 10, 'stream of the trajectory')
    family = children(pair.node.pid)
    pair.node.kill()
    client.wait(lambda: not any(is_alive(pid) for pid in family), 'end of its processes')
    lost = [client.send() for _ in range(500)]
    pair.node.start()
    # Nobody describes the robot again: the description comes from the middleware.
    client.ask_until_answered(robot=robots.TWO_LINK)
    assert not any(stamp in client.efforts for stamp in lost), (
        'what was sent to nobody is gone'
    )
    for _ in range(50):
        client.ask(robot=robots.TWO_LINK)
    assert call_until_answered(client).success
    answers_to_trajectory(pair)


def test_killed_planning_process_is_replaced_and_the_stream_does_not_notice(pair):
    client = pair.client
    long = joint_trajectory(times=(0.0, 50.0, 100.0))
    answers_to_trajectory(pair)
    killed = children(pair.node.pid)
    assert killed, 'the node plans in a process of its own'
    with Stream(client, robots.TWO_LINK):
        # What it is at is lost with it, but no more than that.
        client.service.call_async(Request(trajectory=long, sample_period=0.001))
        client.publishers['joint_trajectory'].publish(long)
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        client.wait(lambda: set(children(pair.node.pid)) - set(killed), 'next process')
        assert call_until_answered(client).success
    answers_until_whole(pair)
    answers_to_trajectory(pair)


# Time


def test_clock_that_jumps_changes_nothing_for_stamped_samples(timed_pair):
    client = timed_pair.client
    clock = client.node.create_publisher(Clock, '/clock', 10)
    client.wait(clock.get_subscription_count, 'match of the clock')

    def set_clock(seconds):
        clock.publish(Clock(clock=Time(sec=seconds)))

    with Stream(client, robots.TWO_LINK):
        for seconds in (100, 200, 50, 10**9, 1, 0, 2**31 - 1, 100):
            set_clock(seconds)
            client.ask(robot=robots.TWO_LINK)
            answers = len(client.trajectories)
            client.publishers['joint_trajectory'].publish(joint_trajectory())
            if seconds < 2**31 - 1:  # else the motion would end beyond all time messages
                client.wait(lambda n=answers: len(client.trajectories) > n, 'whole answer')
