"""Robots are made ready beside the stream: compiled from the first answer on, none is missed."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hodyn_msgs.srv import ComputeInverseDynamics
from support import robots
from support.messages import MOTION, joint_motion, joint_trajectory
from support.processes import run_python
from support.ros_harness import TIMEOUT, Harness, dict_of, next_domain

from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.engine.engine import unavailable
from hodyn_ros.streams import preparation as robot

FAST = 'nth_order' if unavailable() else 'compiled_robot'


@pytest.fixture
def start():
    """Make a node of its own with parameters."""
    made = []

    def make(**parameters):
        made.append(Harness({'input_timeout': 0.0, **parameters}))
        return made[-1]

    yield make
    for harness in made:
        harness.close()


class Gate:
    """Holds descriptions back before they are made ready, and notes them."""

    def __init__(self, monkeypatch):
        self.seen = []
        self.opened = threading.Event()
        assemble = robot.assemble

        def held(xml, *options):
            self.seen.append(xml)
            assert self.opened.wait(TIMEOUT)
            return assemble(xml, *options)

        monkeypatch.setattr(robot, 'assemble', held)


@pytest.fixture
def gate(monkeypatch):
    made = Gate(monkeypatch)
    yield made
    made.opened.set()


def sample(number=0):
    return joint_motion(stamp=10**9 + number)


def trajectory():
    return joint_trajectory(((0.0, 0.0), (0.6, 0.0)), (0.0, 60.0))


def request():
    return ComputeInverseDynamics.Request(motion=[sample()])


def efforts(urdf):
    return inverse_dynamics(RobotModel.from_urdf(urdf), MOTION, algorithm='nth_order')


def efforts_of(message):
    return np.array([message.effort, message.effort_dot, message.effort_ddot])


def model_values(harness, **expected):
    """Wait for diagnostics of the model with these values and return all of them."""
    wanted = {name.replace('_', ' '): value for name, value in expected.items()}
    return dict_of(harness.status('model', lambda s: wanted.items() <= dict_of(s).items()))


def test_first_answer_is_computed_by_compiled_code(start):
    harness = start()
    harness.describe(robots.TWO_LINK)
    answers = harness.messages['hodyn_node/joint_effort']

    def answered():
        harness.publishers['joint_motion'].publish(sample())
        return answers

    harness.wait(answered, 'first answer')
    np.testing.assert_allclose(efforts_of(answers[0]), efforts(robots.TWO_LINK), rtol=1e-9)
    harness.status('model', lambda s: s.message == 'model loaded')
    # No report says that a slower algorithm was in use.
    used = {
        dict_of(status).get('algorithm')
        for message in harness.messages['/diagnostics']
        for status in message.status
        if status.name.endswith('hodyn_node: model')
    }
    assert used <= {None, FAST}
    model_values(harness, algorithm=FAST, in_preparation='no')


def test_input_that_comes_before_the_first_robot_is_ready_is_refused_or_waits(start, gate):
    harness = start()
    harness.describe(robots.TWO_LINK)
    harness.status('model', lambda s: s.message == 'the model is being made ready')
    harness.publishers['joint_motion'].publish(sample())
    assert 'being made ready' in harness.refusal('joint_motion')
    harness.publishers['joint_trajectory'].publish(trajectory())
    assert harness.service.wait_for_service(TIMEOUT)
    answer = harness.service.call_async(request())
    gate.opened.set()
    harness.wait(answer.done, 'answer of the service')
    assert answer.result().success, answer.result().message
    harness.received('effort_trajectory')
    harness.received('joint_effort')


def test_stream_misses_no_sample_while_another_robot_is_made_ready(start):
    harness = start(robot_description=robots.TWO_LINK, answer_all=True)
    answers = harness.messages['hodyn_node/joint_effort']
    sent = 0

    def send(count):
        nonlocal sent
        for _ in range(count):
            harness.publishers['joint_motion'].publish(sample(sent))
            sent += 1
            time.sleep(0.002)

    send(50)
    harness.describe(robots.HEAVIER_TWO_LINK)
    deadline = time.monotonic() + TIMEOUT
    while harness.node.robot.description != robots.HEAVIER_TWO_LINK:
        send(1)
        assert time.monotonic() < deadline
    send(50)
    harness.received('joint_effort', sent)
    assert [message.header.stamp.nanosec for message in answers] == list(range(sent))
    for message, urdf in (
        (answers[0], robots.TWO_LINK),
        (answers[49], robots.TWO_LINK),
        (answers[-1], robots.HEAVIER_TWO_LINK),
    ):
        np.testing.assert_allclose(efforts_of(message), efforts(urdf), rtol=1e-9)
    model_values(harness, algorithm=FAST, in_preparation='no')


PROCESS = """
from support import fault_tools, robots
from support.messages import MOTION, joint_trajectory
from support.ros_harness import Harness, dict_of
from test_node_warm_up import efforts, efforts_of, sample
import numpy as np

harness = Harness({'robot_description': robots.TWO_LINK, 'input_timeout': 0.0})
for urdf in (robots.TWO_LINK, robots.HEAVIER_TWO_LINK):
    harness.describe_and_wait(urdf)
    harness.forget()
    harness.publishers['joint_motion'].publish(sample())
    np.testing.assert_allclose(
        efforts_of(harness.received('joint_effort')[0]), efforts(urdf), rtol=1e-9
    )
values = dict_of(harness.status('model', lambda s: dict_of(s)['in preparation'] == 'no'))
print(values['algorithm'], values.get('no compiled code because'))
harness.close()
"""


def test_node_compiles_without_a_directory_to_keep_the_code_in(tmp_path):
    nowhere = dict.fromkeys(('NUMBA_CACHE_DIR', 'XDG_CACHE_HOME', 'HOME'))
    folders = [str(Path(__file__).parent), *filter(None, sys.path)]
    said, log = run_python(
        PROCESS,
        ROS_DOMAIN_ID=str(next_domain()),
        PYTHONPATH=os.pathsep.join(folders),
        ROS_LOG_DIR=str(tmp_path),
        **nowhere,
    )
    assert said.strip() == f'{FAST} {unavailable()}'
    assert ('without compiled code' in log) == bool(unavailable())
