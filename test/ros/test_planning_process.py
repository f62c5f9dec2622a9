"""Trajectories and the service in a process of their own, on real middleware."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import threading
import time

import pytest
from hodyn_msgs.srv import ComputeInverseDynamics
from rclpy.serialization import serialize_message
from support import robots
from support.messages import joint_trajectory
from support.ros_harness import TIMEOUT, Harness, dict_of

from hodyn_ros import planning_start
from hodyn_ros.ros.base.node_settings import NodeSettings
from hodyn_ros.ros.planner import planner
from hodyn_ros.ros.planner.answers import plan_trajectory
from hodyn_ros.streams.motion_stream import Task
from hodyn_ros.streams.robot_in_use import robot_of

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


class Planner(planner.Planner):
    """Plans as the process does, and keeps its reports."""

    def __init__(self):
        self.events = queue.Queue()
        report, log = (lambda *event: self.events.put(event)), print
        super().__init__(robot_of, NodeSettings(), report, log)

    def planned(self, robot, task, settings):
        return plan_trajectory(robot, task, settings)[0], None


@pytest.fixture
def alone(monkeypatch):
    """A planner whose robots are never compiled."""
    ended = threading.Event()
    monkeypatch.setattr(planner, 'warm_up', lambda robot: ended.wait())
    made = Planner()
    yield made
    ended.set()
    made.close(TIMEOUT)


def test_trajectories_are_planned_while_code_for_the_robot_is_compiled(alone):
    data = serialize_message(trajectory())
    alone.use(1, robots.TWO_LINK, True, NodeSettings())
    alone.plan(Task(7, data, 0, 0, None, 0))
    alone.use(2, robots.TWO_LINK, False, NodeSettings(interpolation='jtc'))
    alone.plan(Task(8, data, 0, 0, None, 0))
    events = [alone.events.get(timeout=TIMEOUT) for _ in range(4)]
    assert [event[0] for event in events] == ['ready', 'planned'] * 2
    (_, first, _), (_, second, _) = events[1::2]
    assert (first.number, first.error, second.number, second.error) == (7, '', 8, '')
    # Each with the settings that were told before it.
    assert first.planned.continuous_derivative == 4 > second.planned.continuous_derivative


def test_robot_that_cannot_be_made_takes_the_place_of_the_one_before(alone):
    other = NodeSettings(trajectory_sample_period=0.5)
    alone.use(1, robots.TWO_LINK, False, NodeSettings())
    alone.use(2, '<robot', False, other)
    alone.plan(Task(1, serialize_message(trajectory()), 0, 0, None, 0))
    *_, (_, plan, _) = [alone.events.get(timeout=TIMEOUT) for _ in range(3)]
    assert plan.planned is None and 'no robot model' in plan.error
    assert alone.in_use == (None, other) and alone.is_settled
