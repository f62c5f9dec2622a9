"""The node and a client of it, on real middleware in one process.

Both have executors of their own that spin in threads; waiting is done on a condition that every
arriving message signals, never by sleeping.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import rclpy
import rclpy.timer
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from hodyn_msgs.msg import (
    JointEffort,
    JointEffortTrajectory,
    JointMotion,
    MotorReference,
    StiffnessMotion,
    WrenchMotion,
)
from hodyn_msgs.srv import ComputeInverseDynamics
from rcl_interfaces.msg import SetParametersResult
from rclpy.context import Context
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher
from std_msgs.msg import String
from support.nodes import TIMEOUT, Client, dict_of, next_domain, spin_to_end
from support.planning_forks import SUBPROCESS
from trajectory_msgs.msg import JointTrajectory

from hodyn_ros import planning_start
from hodyn_ros.ros.base import qos
from hodyn_ros.ros.base.executor import StreamExecutor
from hodyn_ros.ros.nodes.hodyn_node import HodynNode

planning_start.subprocess = SUBPROCESS

# Timers do not tell when they are due, and the middleware does not number messages.
IS_BEFORE_KILTED = not hasattr(rclpy.timer, 'TimerInfo')


@contextmanager
def own_domain() -> Iterator[Context]:
    """Context of ROS in a domain of its own."""
    context = Context()
    rclpy.init(context=context, domain_id=next_domain())
    yield context
    rclpy.try_shutdown(context=context)


@contextmanager
def node_maker(context: Context) -> Iterator[Callable[..., HodynNode]]:
    """Makes the real node, with arguments as on a command line."""
    made = []

    def make(*arguments: str, **options: Any) -> HodynNode:
        cli = ['--ros-args', *arguments] if arguments else None
        made.append(HodynNode(context=context, cli_args=cli, **options))
        return made[-1]

    yield make
    for node in made:
        node.destroy_node()


class Peer(Client):
    """A node in a domain of its own and a client of it, each spinning in a thread."""

    def __init__(self, node_name: str) -> None:
        super().__init__()
        self.node_name = node_name
        self._spinning: list[tuple[Any, threading.Thread, tuple[Node, ...]]] = []
        self.node: Any = None

    def spin(self, node: Node, kind: type = StreamExecutor) -> None:
        """Spin a node in a thread."""
        executor = kind(context=self.context)
        executor.add_node(node)
        self.spin_by(executor, node)

    def spin_by(self, executor: Any, *nodes: Node) -> None:
        """Spin an executor in a thread; the nodes are destroyed in the end."""
        thread = threading.Thread(target=spin_to_end, args=(executor,), daemon=True)
        self._spinning.append((executor, thread, nodes))
        thread.start()

    def run(self, kind: type, parameters: dict[str, Any], **options: Any) -> None:
        """Make the node, and wait until it and the client know each other."""
        overrides = [Parameter(name, value=value) for name, value in parameters.items()]
        self.node = kind(
            context=self.context,
            namespace=self.namespace,
            parameter_overrides=overrides,
            **options,
        )
        self.spin(self.node)
        self.match()
        own = {publisher.topic_name for publisher in self.node.publishers}
        for topic in self.subscriptions:
            if self.subscriptions[topic].topic_name in own:
                self._match_output(topic)

    def _match_output(self, topic: str) -> None:
        # Both sides find each other at times of their own, and what comes in between is lost.
        matches = [self.subscriptions[topic].get_publisher_count]
        matches += [
            publisher.get_subscription_count
            for publisher in self.node.publishers
            if publisher.topic_name.endswith(f'/{topic.lstrip("/")}')
        ]
        self.wait(lambda: all(count() for count in matches), f'match {topic}')

    def advertise(self, kind: type, topic: str) -> Publisher:
        """Publisher on another input of the node, which listens to it."""
        self.offer(kind, topic)
        self.match()
        return self.publishers[topic]

    def listen(self, kind: type, topic: str) -> None:
        """Keep the messages on another output of the node, which has found this client."""
        self.keep(kind, topic)
        self._match_output(topic)

    def log(self, capfd: Any, holds: Callable[[str], Any]) -> str:
        """Wait until what has been logged since the last look at it holds, and return it."""
        text = []

        def condition() -> Any:
            text.append(capfd.readouterr().err)
            return holds(''.join(text))

        self.wait(condition, 'lines of the log')
        return ''.join(text)

    def status(
        self, part: str, condition: Callable[[DiagnosticStatus], bool]
    ) -> DiagnosticStatus:
        """Wait for a diagnostic status of one part of the node that meets a condition."""
        return super().status(self.node_name, part, condition)

    def refusal(self, topic: str) -> str:
        """Wait until an input was refused and return the reason."""
        status = self.status(topic, lambda s: dict_of(s)['refused'] != '0')
        return dict_of(status)['last error']

    def refuses(self, topic: str, reason: str) -> DiagnosticStatus:
        """Wait until an input was refused for a reason, and return the status that says so."""
        return self.status(topic, lambda s: reason in dict_of(s)['last error'])

    def have(self, call: Callable[..., Any], *arguments: Any) -> None:
        """Have the thread of the node call something, and wait until it has."""
        called: list[Any] = []
        self.node.soon(lambda: called.append(call(*arguments)))
        self.wait(lambda: called, 'the call')

    def set(self, **values: Any) -> SetParametersResult:
        """Set parameters of the node together; a double underscore stands for a dot."""
        return self.node.set_parameters_atomically(
            [Parameter(name.replace('__', '.'), value=v) for name, v in values.items()]
        )

    def close(self) -> None:
        """Stop everything."""
        for executor, _, _ in self._spinning:
            executor.shutdown()
        for _, thread, _ in self._spinning:
            thread.join(TIMEOUT)
        for _, _, nodes in reversed(self._spinning):
            for node in nodes:
                node.destroy_node()
        super().close()


class Harness(Peer):
    """A running node and everything that a client of it needs."""

    def __init__(
        self,
        parameters: dict[str, Any] | None = None,
        description_first: str | None = None,
        cli_args: list[str] | None = None,
    ) -> None:
        super().__init__('hodyn_node')
        self.offer(String, 'robot_description', qos.ROBOT_DESCRIPTION)
        for topic, kind in (
            ('joint_motion', JointMotion),
            ('joint_trajectory', JointTrajectory),
            ('wrench_motion', WrenchMotion),
            ('stiffness_motion', StiffnessMotion),
        ):
            self.offer(kind, topic)
        self.keep(JointEffort, 'hodyn_node/joint_effort')
        self.keep(MotorReference, 'hodyn_node/motor_reference')
        whole = 'hodyn_node/effort_trajectory'
        self.keep(JointEffortTrajectory, whole, qos.EFFORT_TRAJECTORY)
        self.keep(DiagnosticArray, '/diagnostics')
        self.service = self.client.create_client(
            ComputeInverseDynamics, 'hodyn_node/compute_inverse_dynamics'
        )
        if description_first is not None:
            self.describe(description_first)
        # On a busy machine the planning process takes long to start.
        values = {'diagnostics_period': 0.1, 'trajectory_timeout': TIMEOUT}
        values |= {
            name.format(namespace=self.namespace): value
            for name, value in (parameters or {}).items()
        }
        self.run(HodynNode, values, cli_args=cli_args)
        if values.get('robot_description'):
            self.wait_until_in_use(values['robot_description'])

    def describe(self, urdf: str) -> None:
        """Publish a robot description."""
        self.publishers['robot_description'].publish(String(data=urdf))

    def describe_and_wait(self, urdf: str) -> None:
        """Publish a robot description and wait until the node uses it."""
        self.describe(urdf)
        self.wait_until_in_use(urdf)

    def wait_until_in_use(self, urdf: str) -> None:
        """Wait until the node uses a robot description."""
        self.wait(
            lambda: self.node.robot is not None and self.node.robot.description == urdf,
            'description taken',
        )

    def received(self, topic: str, count: int = 1) -> list[Any]:
        """Wait for messages on an output."""
        super().received(f'hodyn_node/{topic}', count)
        return self.messages[f'hodyn_node/{topic}']

    def settled(self) -> list[JointEffort]:
        """Efforts along trajectories, when the motion is over and all of them have come."""
        for key, value in (('waiting trajectories', '0'), ('stream of motions', 'idle')):
            self.messages['/diagnostics'].clear()
            self.status('planning', lambda s, k=key, v=value: dict_of(s).get(k) == v)
        # The answer to one more motion comes behind all that is still on its way.
        names = self.node.robot.model.joint_names
        stamp = self.client.get_clock().now().to_msg()
        last = JointMotion(joint_names=names)
        last.header.stamp = stamp
        last.position = last.velocity = last.acceleration = [0.0] * len(names)
        self.publishers['joint_motion'].publish(last)
        kept = self.messages['hodyn_node/joint_effort']
        self.wait(lambda: any(m.header.stamp == stamp for m in list(kept)), 'silence')
        return [m for m in kept if m.source == JointEffort.SOURCE_JOINT_TRAJECTORY]

    def call(
        self, request: ComputeInverseDynamics.Request
    ) -> ComputeInverseDynamics.Response:
        """Call the service, once it is there, and wait for the answer."""
        name = 'hodyn_node/compute_inverse_dynamics'
        return self.ask(ComputeInverseDynamics, name, request)
