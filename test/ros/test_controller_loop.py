"""From a trajectory on a topic to a robot that follows it: node, controller and MuJoCo.

Time is simulated: it passes when the robot moves, and stands while messages are on their way.
"""

import numpy as np
import pytest
from builtin_interfaces.msg import Duration, Time
from rclpy.executors import SingleThreadedExecutor
from rosgraph_msgs.msg import Clock
from support import robots
from support.jtc_model import SECOND, Jtc
from support.jtc_node import JtcNode
from support.ros_harness import Harness
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.simulation import ElasticPlant

pytest.importorskip('mujoco')

NAMES = ('shoulder', 'elbow')
PERIOD = SECOND // 1000
START = 100 * SECOND
HOLD = {0.0: (0.0, 0.0), 0.1: (0.0, 0.0)}
POINTS = {0.5: (0.6, -0.5), 1.0: (0.2, 0.4)}


class Cell:
    """A robot that its controller moves, and the node that tells the controller how."""

    def __init__(self, content, compensates, with_effort=True):
        self.compensates = compensates
        self.plant = ElasticPlant(RobotModel.from_urdf(robots.TWO_LINK), {}, 2.5e-4)
        self.plant.reset(np.zeros(2))
        self.harness = Harness(
            {'use_sim_time': True, 'command.effort': content},
            cli_args=[
                '--ros-args',
                '-r',
                '~/controller_trajectory:=controller/joint_trajectory',
            ],
        )
        controller = Jtc(NAMES, PERIOD, p=100.0, i=500.0, d=10.0)
        controller.integral = self.plant.weight(self.plant.q) - self.added()
        self.node = JtcNode(
            controller,
            START,
            with_effort,
            context=self.harness.context,
            namespace=self.harness.namespace,
            cli_args=['--ros-args', '-r', '__node:=controller'],
        )
        self.executor = SingleThreadedExecutor(context=self.harness.context)
        self.executor.add_node(self.node)
        self.clock = self.harness.advertise(Clock, '/clock')
        self.harness.describe_and_wait(robots.TWO_LINK)
        self.tick()
        self.step()

    def added(self):
        """What the robot adds to its commands itself."""
        motion = np.stack([self.plant.q, np.zeros(2), np.zeros(2)])
        return inverse_dynamics(self.plant.model, motion)[0] * self.compensates

    def tick(self):
        """Tell the node the time."""
        time = Time(sec=self.node.now // SECOND, nanosec=self.node.now % SECOND)
        self.clock.publish(Clock(clock=time))
        clock = self.harness.node.get_clock()
        self.harness.wait(lambda: clock.now().nanoseconds == self.node.now, 'time')

    def send(self, points):
        """Send waypoints to the node, and wait until the controller has what it makes of them."""
        self.tick()
        message = JointTrajectory(joint_names=list(NAMES))
        for time, positions in points.items():
            after = Duration(sec=int(time), nanosec=round(time % 1.0 * SECOND))
            message.points.append(
                JointTrajectoryPoint(positions=list(positions), time_from_start=after)
            )
        count = len(self.node.messages) + 1
        self.harness.publishers['joint_trajectory'].publish(message)

        def is_taken():
            self.executor.spin_once(timeout_sec=0.01)
            return len(self.node.messages) == count or self.node.refusals

        self.harness.wait(is_taken, 'trajectory for the controller')
        assert not self.node.refusals

    def step(self):
        """Let a period pass: what is desired, its velocity and the error."""
        q = self.plant.q
        command = self.node.step(q, self.plant.qd)['effort']
        self.plant.step(command + self.added(), 4)
        desired = self.node.controller.desired
        return np.stack([desired.positions, desired.velocities, desired.positions - q])

    def run(self, duration):
        """Let periods pass, the node too knows of them; shape (N, 3, n)."""
        rows = []
        for _ in range(round(duration * SECOND / PERIOD)):
            rows.append(self.step())
            if len(rows) % 200 == 0:
                self.tick()
        return np.array(rows)

    def close(self):
        self.executor.shutdown()
        self.node.destroy_node()
        self.harness.close()


@pytest.fixture
def cell():
    made = []

    def make(*arguments, **options):
        made.append(Cell(*arguments, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.mark.parametrize(
    ('content', 'compensates'),
    [('without_gravity', True), ('full', False)],
)
def test_robot_follows_waypoints_by_the_efforts_that_come_with_them(
    cell, content, compensates
):
    errors = []
    for with_effort in (True, False):
        made = cell(content, compensates, with_effort)
        made.send(HOLD)
        made.run(3.0)  # the integral gives up what the efforts bring
        made.send(POINTS)
        rows = made.run(1.2)
        np.testing.assert_allclose(rows[-1, 0], POINTS[1.0], atol=1e-9)
        assert np.all(rows[-1, 1] == 0.0)
        errors.append(np.abs(rows[:, 2]).max())
    assert errors[0] < 0.05 * errors[1]
