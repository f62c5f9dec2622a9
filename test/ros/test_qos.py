"""Quality of service: the profiles of the topics, and overriding them by parameters."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import rclpy
from diagnostic_msgs.msg import DiagnosticStatus
from hodyn_msgs.msg import JointEffort, JointMotion
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile, ReliabilityPolicy
from std_msgs.msg import String
from support import robots
from support.ros_harness import TIMEOUT, Harness, node_maker, own_domain, spin_to_end

from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.ros.base import qos

BEST_EFFORT = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)


@pytest.fixture
def context():
    with own_domain() as made:
        yield made


@pytest.fixture
def hodyn_node(context):
    with node_maker(context) as make:
        yield make


def parameter(name, value):
    return Parameter(name, value=value)


def test_override_lets_the_node_hear_a_best_effort_publisher(context, hodyn_node):
    node = hodyn_node(
        parameter_overrides=[
            parameter('robot_description', robots.TWO_LINK),
            parameter(
                'qos_overrides./joint_motion.subscription.reliability', 'best_effort'
            ),
        ]
    )
    client = Node('client', context=context)
    heard, arrived = [], threading.Event()

    def keep(message):
        heard.append(message)
        arrived.set()

    client.create_subscription(JointEffort, '/hodyn_node/joint_effort', keep, qos.OUTPUT)
    publisher = client.create_publisher(JointMotion, '/joint_motion', BEST_EFFORT)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    executor.add_node(client)
    spinning = threading.Thread(target=spin_to_end, args=(executor,), daemon=True)
    spinning.start()
    model = RobotModel.from_urdf(robots.TWO_LINK)
    motion = np.random.default_rng(5).normal(size=(3, 2))
    fields = dict(zip(('position', 'velocity', 'acceleration'), motion.tolist()))
    # Best effort: what is sent before both know each other is lost, as may be any other.
    for _ in range(round(TIMEOUT / 0.1)):
        publisher.publish(JointMotion(joint_names=model.joint_names, **fields))
        if arrived.wait(0.1):
            break
    executor.shutdown()
    spinning.join(TIMEOUT)
    client.destroy_node()
    assert heard
    np.testing.assert_allclose(heard[0].effort, inverse_dynamics(model, motion)[0])


def test_publishers_that_do_not_fit_are_named_with_the_reason():
    harness = Harness({'robot_description': robots.TWO_LINK})
    context = Context()  # a process has one type for each topic
    rclpy.init(context=context, domain_id=harness.context.get_domain_id())
    other = Node('other', context=context, namespace=harness.namespace)
    start = f'/{harness.namespace}/other publishes /{harness.namespace}/'
    try:
        other.create_publisher(JointMotion, 'joint_motion', BEST_EFFORT)
        # The client of the harness publishes the same topic and is heard.
        status = harness.status('joint_motion', lambda s: 'unheard' in s.message)
        assert (status.level, status.message) == (
            DiagnosticStatus.WARN,
            f'{start}joint_motion unheard: Best effort publisher and reliable subscription',
        )
        other.create_publisher(String, 'wrench', 10)
        status = harness.status('wrench', lambda s: 'unheard' in s.message)
        assert status.message == (
            f'{start}wrench unheard: it sends std_msgs/msg/String, expected '
            'geometry_msgs/msg/WrenchStamped'
        )
    finally:
        other.destroy_node()
        rclpy.shutdown(context=context)
        harness.close()
