"""Simulated time: pauses, other speeds, and jumps, on real middleware."""

from __future__ import annotations

import numpy as np
import pytest
from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import Vector3
from hodyn_msgs.msg import JointMotion, WrenchMotion
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from support import robots
from support.ros_harness import Harness, dict_of
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

NAMES = ['shoulder', 'elbow']
SECOND = 10**9


class Simulation:
    """A node that follows the time that this publishes."""

    def __init__(self, **parameters):
        self.harness = Harness({'use_sim_time': True, **parameters})
        self.clock = self.harness.advertise(Clock, '/clock')
        self.joint_states = self.harness.advertise(JointState, 'joint_states')
        self.harness.describe_and_wait(robots.TWO_LINK)
        self.at(100.0)

    def at(self, seconds):
        """Set the time and wait until the node has it."""
        time = stamp(seconds)
        self.clock.publish(Clock(clock=time))
        node = self.harness.node
        self.harness.wait(lambda: node.get_clock().now().to_msg() == time, 'time')

    def run(self, begin, end, step=0.01):
        """Let time go on; the stream follows."""
        for seconds in np.arange(begin, end + 0.5 * step, step):
            self.at(seconds)

    def streamed(self):
        return [seconds_of(m) for m in self.harness.messages['hodyn_node/joint_effort']]


@pytest.fixture(scope='module')
def shared():
    made = Simulation(publish_rate=20.0, wrench_timeout=5.0)
    yield made
    made.harness.close()


@pytest.fixture
def simulation(shared):
    """A simulation at 100 s in which nothing moves."""
    shared.harness.describe_and_wait(robots.OTHER_JOINTS)
    shared.harness.describe_and_wait(robots.TWO_LINK)
    shared.at(100.0)
    shared.harness.have(shared.harness.node.on_time_jump, 'a test begins')
    flush(shared, 100.0)
    shared.harness.forget()
    return shared


def stamp(seconds):
    nanoseconds = round(seconds * SECOND)
    return Time(sec=nanoseconds // SECOND, nanosec=nanoseconds % SECOND)


def seconds_of(message):
    return message.header.stamp.sec + message.header.stamp.nanosec / 1e9


def trajectory(start, seconds=10):
    message = JointTrajectory(joint_names=NAMES)
    message.header.stamp = stamp(start)
    for number in range(3):
        point = JointTrajectoryPoint(positions=[0.1 * number, 0.2 * number])
        point.time_from_start = Duration(sec=number * seconds // 2)
        message.points.append(point)
    return message


def started(simulation, start=101.0):
    """Start a trajectory and let it go on for a while."""
    simulation.harness.publishers['joint_trajectory'].publish(trajectory(start))
    simulation.harness.received('effort_trajectory')
    simulation.run(start, start + 0.5, 0.05)
    simulation.harness.received('joint_effort', 3)


def send_motion(simulation, seconds):
    message = JointMotion(joint_names=NAMES, position=[0.1, 0.2])
    message.velocity, message.acceleration = [0.0, 0.0], [0.0, 0.0]
    message.header.stamp = stamp(seconds)
    simulation.harness.publishers['joint_motion'].publish(message)


def flush(simulation, seconds):
    """Wait until all that was sent before has been taken."""
    send_motion(simulation, seconds)
    simulation.harness.wait(lambda: seconds in simulation.streamed(), 'an answer')


def test_jump_back_leaves_nothing_of_before(simulation):
    started(simulation)
    wrench = WrenchMotion()
    wrench.header.frame_id, wrench.header.stamp = 'tool', stamp(101.5)
    wrench.wrench.force = Vector3(x=1.0)
    simulation.harness.publishers['wrench_motion'].publish(wrench)
    acts = lambda s: any(key.startswith('wrench on') for key in dict_of(s))  # noqa: E731
    simulation.harness.status('joint_effort', acts)
    # A further trajectory waits for its time.
    simulation.harness.publishers['joint_trajectory'].publish(trajectory(105.0))
    simulation.harness.received('effort_trajectory', 2)

    jumps = dict_of(simulation.harness.status('node', bool))['time jumps']
    simulation.at(50.0)
    simulation.harness.status('node', lambda s: dict_of(s)['time jumps'] != jumps)
    simulation.harness.forget()
    simulation.run(50.0, 50.5, 0.05)
    simulation.run(101.0, 110.0, 0.5)
    flush(simulation, 110.0)
    assert simulation.streamed() == [110.0]
    simulation.harness.messages['/diagnostics'].clear()
    simulation.harness.status('joint_effort', lambda s: not acts(s))
    # Trajectories of after the jump are streamed.
    simulation.at(50.0)
    simulation.harness.forget()
    started(simulation, 51.0)
    assert 51.0 <= simulation.streamed()[0] <= 51.1
