"""The node with a robot that has closed loops in its description."""

import numpy as np
import pytest
from hodyn_msgs.msg import JointMotion
from support import robots
from support.ros_harness import Harness

from hodyn_ros import RobotModel, inverse_dynamics


@pytest.fixture(scope='module')
def harness():
    harness = Harness({'input_timeout': 60.0})
    harness.describe_and_wait(robots.FIVE_BAR)
    yield harness
    harness.close()


def test_motions_of_the_independent_joints_are_answered(harness):
    motion = np.array([[0.1, -0.2], [1.0, 0.5], [-2.0, 1.0], [3.0, -1.0], [0.5, 7.0]])
    fields = ('position', 'velocity', 'acceleration', 'jerk', 'snap')
    message = JointMotion(
        joint_names=['left', 'right'], **dict(zip(fields, map(list, motion)))
    )
    harness.publishers['joint_motion'].publish(message)
    answers = harness.messages['hodyn_node/joint_effort']
    harness.wait(lambda: answers, 'efforts')
    expected = inverse_dynamics(RobotModel.from_urdf(robots.FIVE_BAR), motion)
    found = [answers[0].effort, answers[0].effort_dot, answers[0].effort_ddot]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-9)
    assert list(answers[0].joint_names) == ['left', 'right']
