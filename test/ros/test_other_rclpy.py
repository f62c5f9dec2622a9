"""Nodes answer whatever rclpy is called inside: messages, services, actions, each as a process."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager

import pytest
import rclpy
from hodyn_msgs.msg import JointEffort, JointEffortTrajectory, JointMotion
from hodyn_msgs.srv import ComputeInverseDynamics
from rcl_interfaces.srv import GetParameters
from rclpy.action import ActionClient, ActionServer
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from sensor_msgs.msg import JointState
from support import other_rclpy, robots
from support.messages import joint_motion, joint_trajectory
from support.ros_harness import TIMEOUT, next_domain
from trajectory_msgs.msg import JointTrajectory

from hodyn_ros.ros.base import qos

try:
    from control_msgs.action import FollowJointTrajectory
except ImportError:
    FollowJointTrajectory = None

# What rclpy does not document and the nodes use, or have used.
NAMES = (
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
    'WaitSet',
    'take_message',
    'pointer',
    'is_timer_ready',
    'call_timer',
    'get_num_entities',
    'get_ready_entities',
)
# Without these the executor of this package cannot work, and says so.
NEEDED = {
    '__slots__',
    'WaitSet',
    'pointer',
    'get_num_entities',
    'get_ready_entities',
    'take_message',
    'is_timer_ready',
    'call_timer',
}
LEFT = 'The executor of rclpy is used from now on'
SEA = ('flatness_controller', 'simulated_robot', 'reference_publisher')

pytestmark = pytest.mark.skipif(
    not other_rclpy.fits(), reason='this rclpy has the newer form already'
)


class Client(Node):
    """A client of nodes that run in processes of their own."""

    def __init__(self):
        self.domain = next_domain()
        self.own_context = rclpy.Context()
        rclpy.init(context=self.own_context, domain_id=self.domain)
        super().__init__('client', context=self.own_context)
        self.spinning = SingleThreadedExecutor(context=self.own_context)
        self.spinning.add_node(self)
        self.logs, self.processes = {}, {}

    def until(self, condition, what, often=None):
        """Wait until a condition holds; meanwhile something is done ten times a second."""
        deadline, next_time = time.monotonic() + TIMEOUT, 0.0
        while not (value := condition()):
            if often is not None and time.monotonic() >= next_time:
                often()
                next_time = time.monotonic() + 0.1
            self.spinning.spin_once(timeout_sec=0.02)
            ended = [name for name, run in self.processes.items() if run.poll() is not None]
            assert not ended, f'{ended} ended\n{self.said()}'
            assert time.monotonic() < deadline, f'no {what}\n{self.said()}'
        return value

    def said(self):
        return '\n'.join(path.read_text() for path in self.logs.values())

    def ask(self, kind, name, request):
        client = self.create_client(kind, name)
        self.until(client.service_is_ready, name)
        future = client.call_async(request)
        self.until(future.done, f'answer of {name}')
        return future.result()

    def heard(self, kind, topic, profile=qos.INPUT):
        messages = []
        self.create_subscription(kind, topic, messages.append, profile)
        return messages


@contextmanager
def running(folder, nodes, parameters, **other):
    """Nodes in processes whose rclpy is another one, and a client of theirs."""
    client = Client()
    file = folder / 'parameters.yaml'
    file.write_text(json.dumps({'/**': {'ros__parameters': parameters}}))
    environment = other_rclpy.environment(folder, **other)
    environment['ROS_DOMAIN_ID'] = str(client.domain)
    with ExitStack() as stack:
        for name in nodes:
            client.logs[name] = folder / f'{name}.log'
            log = stack.enter_context(open(client.logs[name], 'w'))
            code = f'import sys; from hodyn_ros.commands import {name}; sys.exit({name}())'
            given = ['--params-file', str(file), '-r', '~/motor_command:=motor_command']
            run = [sys.executable, '-c', code, '--ros-args', *given]
            client.processes[name] = subprocess.Popen(run, env=environment, stderr=log)
        try:
            yield client
            for process in client.processes.values():
                process.terminate()
            codes = {name: run.wait(TIMEOUT) for name, run in client.processes.items()}
            assert not any(codes.values()), (codes, client.said())
        finally:
            for process in client.processes.values():
                process.kill()
                process.wait()
            client.spinning.shutdown()
            client.destroy_node()
            rclpy.shutdown(context=client.own_context)


def lives(client):
    """Have the node hodyn_node answer messages and services of both of its processes."""
    efforts = client.heard(JointEffort, 'hodyn_node/joint_effort', qos.INPUT)
    motions = client.create_publisher(JointMotion, 'joint_motion', qos.OUTPUT)
    planned = client.heard(
        JointEffortTrajectory, 'hodyn_node/effort_trajectory', qos.EFFORT_TRAJECTORY
    )
    trajectories = client.create_publisher(JointTrajectory, 'joint_trajectory', qos.OUTPUT)
    client.until(
        lambda: len(efforts) > 5, 'efforts', lambda: motions.publish(joint_motion())
    )
    request = GetParameters.Request(names=['input_timeout'])
    assert client.ask(GetParameters, 'hodyn_node/get_parameters', request).values
    trajectory = joint_trajectory(((0.0, 0.0), (0.2, -0.4)), (0.0, 1.0))
    request = ComputeInverseDynamics.Request(trajectory=trajectory)
    name = 'hodyn_node/compute_inverse_dynamics'
    assert client.ask(ComputeInverseDynamics, name, request).success
    client.until(trajectories.get_subscription_count, 'match')
    trajectories.publish(trajectory)
    client.until(lambda: planned, 'planned trajectory')


def asserts_one_remark(client, is_left):
    for text in (path.read_text() for path in client.logs.values()):
        assert 'Traceback' not in text, text
        assert text.count(LEFT) == is_left, text


def hodyn_node(folder, **other):
    return running(folder, ['hodyn_node'], {'robot_description': robots.TWO_LINK}, **other)


def test_the_node_answers_with_tasks_as_newer_releases_keep_them(tmp_path):
    with hodyn_node(tmp_path, is_newer=True) as client:
        lives(client)
    asserts_one_remark(client, False)


@pytest.mark.parametrize('name', ['WaitSet', 'take_message'])
def test_the_node_answers_in_the_way_of_rclpy_and_says_so(tmp_path, name):
    with hodyn_node(tmp_path, names=(name,)) as client:
        lives(client)
    asserts_one_remark(client, True)
    assert name in re.search(rf'{LEFT}.*', client.said())[0]


@pytest.mark.slow
@pytest.mark.parametrize('name', NAMES)
def test_the_node_answers_without_each_name(tmp_path, name):
    with hodyn_node(tmp_path, names=(name,)) as client:
        lives(client)
    asserts_one_remark(client, name in NEEDED)


@pytest.mark.slow
@pytest.mark.parametrize('names', [(), ('WaitSet',)])
def test_the_nodes_of_an_elastic_robot_answer_each_other(tmp_path, names):
    pytest.importorskip('mujoco')
    spring = {'type': 'sea', 'stiffness': 2000.0, 'motor_inertia': 0.5}
    given = {
        'robot_description': robots.TWO_LINK,
        'actuators': {'shoulder': spring, 'elbow': spring},
        'without_reference': 'hold',
        'mode': 'real_time',
        'sample_period': 0.002,
    }
    with running(tmp_path, SEA, given, names=names, is_newer=True) as client:
        states = client.heard(JointState, 'joint_states')
        trajectories = client.heard(JointTrajectory, 'joint_trajectory')
        commands = client.heard(JointState, 'motor_command')
        for name in SEA:
            request = GetParameters.Request(names=['use_sim_time'])
            assert client.ask(GetParameters, f'{name}/get_parameters', request).values
        client.until(
            lambda: len(states) > 10 and trajectories and len(commands) > 10, 'messages'
        )
    asserts_one_remark(client, bool(NEEDED & {*names}))


@pytest.mark.skipif(FollowJointTrajectory is None, reason='control_msgs is not installed')
@pytest.mark.slow
@pytest.mark.parametrize('names', [(), ('WaitSet',), ('notify_execute',)])
def test_goals_of_the_proxy_are_answered(tmp_path, names):
    def execute(handle):
        handle.succeed()
        return FollowJointTrajectory.Result(error_string='arrived')

    nodes, given = (
        ('hodyn_node', 'trajectory_proxy'),
        {'robot_description': robots.TWO_LINK},
    )
    with running(tmp_path, nodes, given, names=names, is_newer=True) as client:
        kind, action = FollowJointTrajectory, 'follow_joint_trajectory'
        name = f'joint_trajectory_controller/{action}'
        server = ActionServer(client, kind, name, execute)
        goals = ActionClient(client, kind, f'trajectory_proxy/{action}')
        client.until(goals.server_is_ready, 'proxy')
        trajectory = joint_trajectory(((0.0, 0.0), (0.2, -0.4)), (0.0, 1.0))
        request = ComputeInverseDynamics.Request(trajectory=trajectory)
        name = 'hodyn_node/compute_inverse_dynamics'
        assert client.ask(ComputeInverseDynamics, name, request).success
        answers = []
        while answers.count('arrived') < 2:  # what the proxy does not find yet is refused
            sent = goals.send_goal_async(kind.Goal(trajectory=trajectory))
            client.until(sent.done, 'acceptance')
            result = sent.result().get_result_async()
            client.until(result.done, 'result')
            answers.append(result.result().result.error_string)
            assert len(answers) < 100, answers
        goals.destroy()
        server.destroy()
    asserts_one_remark(client, bool(NEEDED & {*names}))


def test_a_node_without_an_executor_ends_with_a_reason(tmp_path):
    """Nothing is left to wait with; a node that says it goes on would wait for ever."""
    names = ('wait_for_ready_callbacks',)
    with pytest.raises(AssertionError), hodyn_node(tmp_path, names=names) as client:
        assert client.processes['hodyn_node'].wait(TIMEOUT) == 1
    text = client.said()
    assert 'FATAL' in text and 'has failed 10 times in a row' in text
