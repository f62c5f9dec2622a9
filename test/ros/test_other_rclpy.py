"""Nodes answer whatever rclpy is called inside: messages, services, actions, each as a process."""

from __future__ import annotations

import re
import signal
from contextlib import contextmanager

import numpy as np
import pytest
from hodyn_msgs.msg import JointEffort, JointMotion
from hodyn_msgs.srv import ComputeInverseDynamics
from support import other_rclpy, robots
from support.messages import GRAVITY, MOTION, NAMES, joint_motion, rows
from support.nodes import Client, Process
from support.oracles import taylor_rnea

# What rclpy does not document and the nodes use, or have used.
USED = (
    'WaitSet',
    '_tasks',
    '_is_shutdown',
    '_callback_type',
    '_take_service',
    'send_response',
    'notify_execute',
    '_guard',
    '_context',
    '_cb_iter',
    '_executor_event',
    '_executor_triggered',
    '__slots__',
    'CallbackType',
    'take_message',
    'pointer',
    'is_timer_ready',
    'call_timer',
    'get_num_entities',
    'get_ready_entities',
)
# Without these the executor of this package cannot work, and says so. Nothing that a node waits
# for has entities of its own: `get_num_entities` is asked of events alone, and rclpy does that.
NEEDED = {
    '__slots__',
    'WaitSet',
    'pointer',
    'get_ready_entities',
    'take_message',
    'is_timer_ready',
    'call_timer',
}
LEFT = 'The executor of rclpy is used from now on'

pytestmark = pytest.mark.skipif(
    not other_rclpy.fits(), reason='this rclpy has the newer form already'
)


@contextmanager
def running(folder, **other):
    """A node in a process whose rclpy is another one, and a client of it."""
    client = Client()
    process = Process(
        'hodyn_node',
        client,
        {'robot_description': robots.TWO_LINK},
        environment=other_rclpy.environment(folder, **other),
    )
    try:
        yield client, process
    finally:
        process.close()
        client.close()


def assert_lives(client, process, is_left):
    """The node answers messages and services of both of its processes, and says one thing."""
    motions = client.offer(JointMotion, 'joint_motion')
    efforts = client.keep(JointEffort, 'hodyn_node/joint_effort')
    client.wait(lambda: motions.publish(joint_motion()) or len(efforts) > 5, 'efforts')
    np.testing.assert_allclose(
        rows(efforts[-1]), taylor_rnea(robots.TWO_LINK, NAMES, GRAVITY, MOTION), rtol=1e-9
    )
    request = ComputeInverseDynamics.Request(motion=[joint_motion()])
    name = 'hodyn_node/compute_inverse_dynamics'
    assert client.ask(ComputeInverseDynamics, name, request).success
    assert process.end(signal.SIGTERM) == 0
    assert 'Traceback' not in process.log()
    assert process.log().count(LEFT) == is_left


@pytest.mark.parametrize('name', USED)
def test_the_node_answers_without_each_name_and_says_so(tmp_path, name):
    with running(tmp_path, names=(name,)) as (client, process):
        assert_lives(client, process, name in NEEDED)
        assert name not in NEEDED or name in re.search(rf'{LEFT}.*', process.log())[0]


def test_a_node_without_an_executor_ends_with_a_reason(tmp_path):
    """Nothing is left to wait with; a node that says it goes on would wait for ever."""
    names = ('wait_for_ready_callbacks',)
    with running(tmp_path, names=names) as (_, process):
        assert process.end() == 1
        text = process.log()
    assert 'FATAL' in text and 'has failed 10 times in a row' in text
