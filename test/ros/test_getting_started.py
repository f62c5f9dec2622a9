"""The robot of the first page runs in the node, by the files that the page makes."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from diagnostic_msgs.msg import DiagnosticArray
from hodyn_msgs.msg import JointEffortTrajectory
from std_msgs.msg import String
from support.messages import joint_trajectory
from support.nodes import LATCHED, Client, Process, dict_of
from support.oracles import taylor_rnea
from support.scripts import load
from trajectory_msgs.msg import JointTrajectory

DOC = Path(__file__).resolve().parents[2] / 'doc'
run_examples = load(DOC / 'run_examples.py')
NAMES = ['yaw', 'shoulder', 'elbow']


@pytest.fixture
def folder(tmp_path):
    """Files of the page, without its report."""
    text = (DOC / 'getting_started.rst').read_text(encoding='utf-8')
    unseen = [line for line in text.splitlines() if 'hodyn plot' not in line]
    run_examples.with_outputs_of_commands('\n'.join(unseen) + '\n', tmp_path)
    return tmp_path


def test_node_answers_the_retimed_motion_of_the_first_page(folder):
    xml = (folder / 'arm.urdf').read_text()
    points = yaml.safe_load((folder / 'retimed.yaml').read_text())['points']
    times = [
        point['time_from_start']['sec'] + 1e-9 * point['time_from_start']['nanosec']
        for point in points
    ]
    message = joint_trajectory([p['positions'] for p in points], times, NAMES)
    for made, point in zip(message.points, points):
        made.velocities, made.accelerations = point['velocities'], point['accelerations']

    client = Client()
    answers = client.keep(JointEffortTrajectory, 'hodyn_node/effort_trajectory', LATCHED)
    client.offer(JointTrajectory, 'joint_trajectory')
    client.offer(String, 'robot_description', LATCHED).publish(String(data=xml))
    parameters = ['--params-file', str(folder / 'arm.yaml')]
    client.keep(DiagnosticArray, '/diagnostics')
    node = Process('hodyn_node', client, {'diagnostics_period': 0.05}, *parameters)
    try:
        client.match()
        client.status(
            'hodyn_node', 'model', lambda s: 'elbow' in dict_of(s).get('joints', '')
        )
        client.publishers['joint_trajectory'].publish(message)
        client.wait(lambda: answers, 'whole answer')
    finally:
        node.close()
        client.close()
    answer = answers[0]
    assert answer.joint_names == NAMES
    assert answer.time_from_start[-1] == pytest.approx(times[-1], abs=1e-9)
    assert [violation.joint_name for violation in answer.limit_violations] == []
    ends = [points[0]['positions'], points[-1]['positions']]
    held = [
        taylor_rnea(xml, NAMES, (0, 0, -9.81), [q, np.zeros(3), np.zeros(3)]) for q in ends
    ]
    effort = np.reshape(answer.effort, (-1, 3))
    np.testing.assert_allclose(effort[[0, -1]], np.array(held)[:, 0], atol=1e-6)
