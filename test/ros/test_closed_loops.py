"""The node with a robot that has closed loops in its description."""

import numpy as np
import pytest
from hodyn_msgs.msg import JointMotion
from hodyn_msgs.srv import ComputeInverseDynamics
from sensor_msgs.msg import JointState
from support import robots
from support.messages import joint_trajectory
from support.ros_harness import Harness, dict_of

from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.kinematics import complete_motion

FIELDS = ('position', 'velocity', 'acceleration', 'jerk', 'snap')
JOINTS = ['left', 'left_elbow', 'right', 'right_elbow']
STATES = 'hodyn_node/joint_states'
MOTION = np.array([[0.1, -0.2], [1.0, 0.5], [-2.0, 1.0], [3.0, -1.0], [0.5, 7.0]])
MODEL = RobotModel.from_urdf(robots.FIVE_BAR)


ELBOW = 0.1  # largest position of the left one in `LIMITED`
LIMITED = robots.FIVE_BAR.replace(
    '<joint name="left_elbow" type="continuous">',
    '<joint name="left_elbow" type="revolute">'
    f'<limit lower="-1" upper="{ELBOW}" velocity="9" effort="9"/>',
)


def make(**parameters):
    harness = Harness({'input_timeout': 60.0, **parameters})
    harness.listen(JointState, STATES)
    harness.advertise(JointState, 'joint_states')
    harness.describe_and_wait(robots.FIVE_BAR)
    return harness


@pytest.fixture(scope='module')
def shared():
    harness = make()
    yield harness
    harness.close()


@pytest.fixture
def harness(shared):
    shared.have(shared.node.on_time_jump, 'a test begins')
    shared.forget()
    return shared


def send_motion(harness, motion=MOTION):
    harness.publishers['joint_motion'].publish(
        JointMotion(joint_names=['left', 'right'], **dict(zip(FIELDS, map(list, motion))))
    )


def measure(harness, names, *rows):
    values = {field: list(map(float, row)) for field, row in zip(FIELDS, rows)}
    harness.publishers['joint_states'].publish(JointState(name=names, **values))


def state(harness, count=1):
    """State of all joints in the latest of so many messages."""
    harness.wait(lambda: len(harness.messages[STATES]) >= count, 'states')
    message = harness.messages[STATES][count - 1]
    assert list(message.name) == JOINTS and not message.effort
    return [row for row in (message.position, message.velocity) if row]


def test_motions_of_the_independent_joints_are_answered(harness):
    send_motion(harness)
    answers = harness.messages['hodyn_node/joint_effort']
    harness.wait(lambda: answers, 'efforts')
    expected = inverse_dynamics(MODEL, MOTION)
    found = [answers[0].effort, answers[0].effort_dot, answers[0].effort_ddot]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-9)
    assert list(answers[0].joint_names) == ['left', 'right']


def test_limits_of_joints_that_loops_move_are_checked():
    points = np.array([[0.0, 0.0], [-0.2, 0.2], [0.0, 0.0]])
    highest = complete_motion(MODEL, points[1:2])[0, 1]
    assert highest > ELBOW  # where the motors turn back
    harness = Harness()
    try:
        harness.describe_and_wait(LIMITED)
        send_motion(harness, np.vstack([points[:2][::-1], np.zeros((3, 2))]))
        beyond = 'samples beyond the limit of position of left_elbow'
        harness.status('joint_effort', lambda s: dict_of(s).get(beyond) == '1')
        message = joint_trajectory(points, (0.0, 1.0, 2.0), ['left', 'right'])
        harness.publishers['joint_trajectory'].publish(message)
        of_topic = harness.received('effort_trajectory')[-1]
        response = harness.call(ComputeInverseDynamics.Request(trajectory=message))
        for answer in (of_topic, response.effort_trajectory):
            (found,) = answer.limit_violations
            assert (found.joint_name, found.quantity) == ('left_elbow', 'position')
            assert (found.value, found.limit) == (pytest.approx(highest, rel=1e-6), ELBOW)
            assert found.time_from_start == pytest.approx(1.0, abs=0.01)
    finally:
        harness.close()


def test_joint_states_are_those_that_are_measured_or_else_those_asked_for(harness):
    send_motion(harness)
    expected = complete_motion(MODEL, MOTION[:2])
    np.testing.assert_allclose(state(harness), expected, rtol=1e-12)
    measured = np.array([[0.05, 0.1], [0.3, -0.4]])
    measure(harness, ['right', 'finger', 'left'], *np.insert(measured[:, ::-1], 1, 9.0, 1))
    expected = complete_motion(MODEL, measured)
    np.testing.assert_allclose(state(harness, 2), expected, rtol=1e-12)
    # From now on those of motions are not shown.
    harness.forget()
    send_motion(harness)
    harness.received('joint_effort')
    measure(harness, ['left', 'right'], *measured)
    np.testing.assert_allclose(state(harness), expected, rtol=1e-12)


@pytest.mark.parametrize('as_file', [False, True])
def test_loops_are_given_beside_a_description_or_left_open(as_file, tmp_path):
    xml, loop = robots.FIVE_BAR.split('<loop')
    tips = ''.join(
        f'<link name="{side}_tip"/><joint name="{side}_end" type="fixed">'
        f'<parent link="{side}_rod"/><child link="{side}_tip"/><origin xyz="0.5 0 0"/></joint>'
        for side in ('left', 'right')
    )
    text = 'closed_loop: [[left_tip, right_tip]]\ntype: [3d]\nname_mot: [left, right]'
    if as_file:
        (tmp_path / 'loops.yaml').write_text(text)
    given = str(tmp_path / 'loops.yaml') if as_file else text
    harness = Harness({'loops': given, 'input_timeout': 60.0})
    try:
        harness.describe_and_wait(f'{xml}{tips}</robot>')
        model = harness.node.robot.model
        assert model.joint_names == ('left', 'right')
        expected = complete_motion(MODEL, MOTION)
        np.testing.assert_allclose(complete_motion(model, MOTION), expected, atol=1e-9)
    finally:
        harness.close()
