"""The publisher of a reference trajectory waits for the end of the motion, not only of a time."""

import threading
import time

import pytest
import rclpy
from hodyn_msgs.msg import JointEffortTrajectory
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.time import Time
from support.ros_harness import TIMEOUT, next_domain, spin_to_end
from trajectory_msgs.msg import JointTrajectory

from hodyn_ros.ros.base import qos
from hodyn_ros.ros.nodes.reference_publisher import PAUSE, ReferencePublisher
from hodyn_ros.streams.timeline import NANOSECONDS
from hodyn_ros.trajectory.references import panda_sinusoids


@pytest.fixture
def nodes():
    """A publisher and a planner in its place that answers when it likes."""
    context = Context()
    rclpy.init(context=context, domain_id=next_domain())
    made = ReferencePublisher(context=context), Node('planner', context=context)
    executor = SingleThreadedExecutor(context=context)
    for node in made:
        executor.add_node(node)
    thread = threading.Thread(target=spin_to_end, args=(executor,), daemon=True)
    thread.start()
    yield made
    executor.shutdown()
    thread.join(TIMEOUT)
    for node in made:
        node.destroy_node()
    rclpy.shutdown(context=context)


def wait_for(condition):
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_next_trajectory_is_sent_after_the_end_of_the_motion(nodes):
    publisher, planner = nodes
    answers = planner.create_publisher(
        JointEffortTrajectory, 'hodyn_node/effort_trajectory', qos.EFFORT_TRAJECTORY
    )
    received = []
    planner.create_subscription(
        JointTrajectory, 'joint_trajectory', received.append, qos.INPUT
    )
    wait_for(lambda: received)
    last = received[0].points[-1].time_from_start
    assert last.sec + last.nanosec / NANOSECONDS == pytest.approx(
        panda_sinusoids().duration
    )
    # Planned late: the motion begins long after the trajectory has been sent.
    begin = Time(nanoseconds=planner.get_clock().now().nanoseconds + 1000 * NANOSECONDS)
    answer = JointEffortTrajectory()
    answer.header.stamp = begin.to_msg()
    answers.publish(answer)
    end = begin.nanoseconds + round((panda_sinusoids().duration + PAUSE) * NANOSECONDS)
    wait_for(lambda: publisher._next.nanoseconds == end)
    assert len(received) == 1
