"""Trajectories and the service in a process of their own, on real middleware."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest
from hodyn_msgs.srv import ComputeInverseDynamics
from support import robots
from support.messages import joint_trajectory
from support.ros_harness import TIMEOUT, Harness, dict_of

from hodyn_ros import planning_start

Response = ComputeInverseDynamics.Response


@pytest.fixture(scope='module', autouse=True)
def started_as_users_do():
    """Nodes start a process, which is no fork of one of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning_start, 'subprocess', subprocess)
        yield


@pytest.fixture(scope='module')
def harness(started_as_users_do):
    made = Harness()
    made.describe_and_wait(robots.TWO_LINK)
    yield made
    made.close()


def trajectory():
    return joint_trajectory(((0.0, 0.0), (0.2, -0.4), (0.0, 0.0)), (0.0, 1.0, 2.0))


def pid_of(harness):
    """Process that plans now."""
    harness.messages['/diagnostics'].clear()
    found = harness.status('planning', lambda s: dict_of(s)['process'] == 'running')
    return int(dict_of(found)['process id'])


def call_again(harness):
    """Call the service until it answers: what is sent while there is none is lost.

    Of what is sent while it gets ready, so much may wait that it is busy.
    """
    response, deadline, patience = None, time.monotonic() + TIMEOUT, 0.2
    while response is None or response.error_code == Response.BUSY:
        assert time.monotonic() < deadline
        request = ComputeInverseDynamics.Request(trajectory=trajectory())
        future = harness.service.call_async(request)
        until, patience = time.monotonic() + patience, 1.5 * patience
        harness.wait(
            lambda f=future, u=until: f.done() or time.monotonic() > u, 'an answer'
        )
        response = future.result()
    return response


def test_signals_are_for_the_node_alone_and_parameters_for_both(harness):
    before = pid_of(harness)
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(before, number)
        assert call_again(harness).success
    assert pid_of(harness) == before
    for _ in range(5):
        for period, count in ((0.5, 5), (0.01, 201)):
            assert harness.set(trajectory_sample_period=period).successful
            asked = ComputeInverseDynamics.Request(trajectory=trajectory())
            found = harness.call(asked).effort_trajectory
            assert len(found.time_from_start) == count


def test_process_that_hangs_is_reported_killed_and_its_trajectory_never_begins(capfd):
    harness = Harness({'robot_description': robots.TWO_LINK, 'trajectory_timeout': 2.0})
    try:
        assert call_again(harness).success
        harness.forget()
        before = pid_of(harness)
        os.kill(before, signal.SIGSTOP)
        harness.publishers['joint_trajectory'].publish(trajectory())
        status = harness.status('planning', lambda s: 'does not answer' in s.message)
        assert status.level == status.ERROR
        assert dict_of(status)['process'] == 'silent'
        assert dict_of(status)['waiting trajectories'] == '1'
        assert 'has waited for 2' in harness.refusal('joint_trajectory')
        harness.wait(lambda: pid_of(harness) != before, 'another process')
        assert call_again(harness).success
        assert not harness.messages['hodyn_node/joint_effort']
        text = harness.log(capfd, lambda text: 'is running again' in text)
        for words in (
            'Planning does not answer since',
            'started again: it did not answer for',
        ):
            assert words in text
    finally:
        harness.close()
