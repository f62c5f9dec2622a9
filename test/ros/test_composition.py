"""Several nodes in one process: each has its own robot, parameters, names and health."""

from __future__ import annotations

import threading
from contextlib import contextmanager

import numpy as np
import pytest
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from hodyn_msgs.msg import JointEffort, JointMotion
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from support import robots
from support.ros_harness import TIMEOUT, next_domain, spin_to_end

from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.ros.base import qos
from hodyn_ros.ros.nodes.hodyn_node import HodynNode

ROBOTS = {'left': robots.TWO_LINK, 'right': robots.OTHER_JOINTS}


class Company:
    """Two nodes of ours and one of someone else's, on one executor."""

    def __init__(self, parameters):
        self.context = Context()
        rclpy.init(context=self.context, domain_id=next_domain())
        self.arrived = threading.Condition()
        self.efforts = {name: [] for name in ROBOTS}
        self.statuses = []
        self.other = Node('other', context=self.context)
        self.publishers = {}
        for name in ROBOTS:
            self.publishers[name] = self.other.create_publisher(
                JointMotion, f'/{name}/joint_motion', qos.INPUT
            )
            self.other.create_subscription(
                JointEffort,
                f'/{name}/hodyn_node/joint_effort',
                lambda message, name=name: self._keep(self.efforts[name], [message]),
                qos.OUTPUT,
            )
        self.other.create_subscription(
            DiagnosticArray,
            '/diagnostics',
            lambda message: self._keep(self.statuses, message.status),
            qos.OUTPUT,
        )
        self.nodes = {
            name: HodynNode(
                context=self.context,
                namespace=name,
                parameter_overrides=[
                    Parameter(key, value=value)
                    for key, value in {
                        'robot_description': description,
                        'diagnostics_period': 0.1,
                        **parameters.get(name, {}),
                    }.items()
                ],
            )
            for name, description in ROBOTS.items()
        }
        self.executor = SingleThreadedExecutor(context=self.context)
        for node in (self.other, *self.nodes.values()):
            self.executor.add_node(node)
        self.thread = threading.Thread(
            target=spin_to_end, args=(self.executor,), daemon=True
        )
        self.thread.start()

    def _keep(self, where, items):
        with self.arrived:
            where.extend(items)
            self.arrived.notify_all()

    def wait(self, condition):
        with self.arrived:
            assert self.arrived.wait_for(condition, TIMEOUT)
            return condition()

    def status(self, name, part):
        """Latest status of a part of a node."""
        wanted = f'{name}/hodyn_node: {part}'
        found = [status for status in self.statuses if status.name == wanted]
        return found[-1] if found else None

    def close(self):
        self.executor.shutdown()
        self.thread.join(TIMEOUT)
        for node in (self.other, *self.nodes.values()):
            node.destroy_node()
        rclpy.shutdown(context=self.context)


@contextmanager
def running(**parameters):
    """Company whose nodes are ready."""
    made = Company(parameters)
    try:
        for name in ROBOTS:
            made.wait(
                lambda name=name: (
                    (status := made.status(name, 'model'))
                    and status.message == 'model loaded'
                )
            )
            made.wait(made.publishers[name].get_subscription_count)
        yield made
    finally:
        made.close()


@pytest.fixture(scope='module')
def company():
    with running(left={'publish_rate': 20.0, 'limits.elbow.jerk': 3.0}) as made:
        yield made


def motion_of(model):
    return np.random.default_rng(7).normal(size=(5, model.n_joints))


def send(company, name, model, motion):
    fields = ('position', 'velocity', 'acceleration', 'jerk', 'snap')
    values = {field: list(row) for field, row in zip(fields, motion)}
    company.publishers[name].publish(JointMotion(joint_names=model.joint_names, **values))


def test_two_nodes_answer_for_their_own_robots(company):
    made = company
    for efforts in made.efforts.values():
        efforts.clear()
    models = {name: RobotModel.from_urdf(text) for name, text in ROBOTS.items()}
    for name, model in models.items():
        send(made, name, model, motion_of(model))
    for name, model in models.items():
        made.wait(lambda name=name: made.efforts[name])
        (effort,) = made.efforts[name]
        assert tuple(effort.joint_names) == model.joint_names
        expected = inverse_dynamics(model, motion_of(model))
        np.testing.assert_allclose(
            [effort.effort, effort.effort_dot, effort.effort_ddot],
            expected,
            rtol=1e-9,
            atol=1e-9,
        )


def test_one_node_ends_and_the_other_goes_on():
    with running() as made:
        gone = made.nodes.pop('left')
        made.executor.remove_node(gone)
        gone.destroy_node()
        model = RobotModel.from_urdf(robots.OTHER_JOINTS)
        send(made, 'right', model, motion_of(model))
        made.wait(lambda: made.efforts['right'])
        assert not made.efforts['left']
