"""The service ~/retime on real middleware: refusals, answers word for word, and margins."""

import math

import pytest
from hodyn_msgs.msg import JointLimit
from hodyn_msgs.srv import ComputeInverseDynamics, RetimeTrajectory
from support.messages import joint_trajectory
from support.ros_harness import Harness, dict_of

from hodyn_ros.resources import share_file

Request, Response = RetimeTrajectory.Request, RetimeTrajectory.Response
NAMES = ('elbow', 'shoulder')  # not in the order of the model
POINTS = ((0.0, 0.0), (0.5, 0.4), (0.2, 0.9))


@pytest.fixture(scope='module')
def call():
    harness = Harness()
    harness.describe_and_wait(share_file('urdf/two_link.urdf').read_text())

    def call(points=POINTS, names=NAMES, step=1.0, **fields):
        times = [step * number for number in range(len(points))]
        given = joint_trajectory(points, times, names, 7 * 10**9 + 5)
        given.header.frame_id = 'here'
        request = Request(trajectory=given, **fields)
        return given, harness.ask(RetimeTrajectory, 'hodyn_node/retime', request)

    yield call
    harness.close()


def test_a_slow_trajectory_keeps_its_duration_and_what_it_is_called(call):
    given, response = call(step=9.0, slower_only=True, timing=Request.UNIFORM)
    assert response.success, response.message
    assert response.duration == response.duration_before == 18.0
    made = response.trajectory
    assert (made.header, made.joint_names) == (given.header, given.joint_names)
    assert list(made.points[-1].positions) == pytest.approx(POINTS[-1], abs=1e-9)


def limit(name='', quantity='velocity', value=1.0):
    return JointLimit(joint_name=name, quantity=quantity, limit=value)


BAD_REQUESTS = [
    ({'timing': 7}, 'INVALID_REQUEST', 'timing is 7'),
    ({'timing': 1, 'drop_standstills': True}, 'INVALID_REQUEST', 'drop_standstills'),
    ({'limits': [limit(quantity='speed')]}, 'INVALID_REQUEST', "'speed'"),
    ({'limits': [limit(), limit(value=-1.0)]}, 'INVALID_REQUEST', 'limits[1].limit is'),
    ({'limits': [limit('wrist')]}, 'INVALID_JOINTS', "'wrist', expected one of"),
    ({'effort_tolerance': math.nan}, 'INVALID_REQUEST', 'effort_tolerance'),
    ({'effort_tolerance': 1e-9}, 'INVALID_REQUEST', 'would do'),
    ({'names': ('elbow', 'elbow')}, 'INVALID_JOINTS', 'repeated: elbow'),
    ({'points': ((0.0, 0.0), (0.5, math.nan))}, 'INVALID_MOTION', 'nan'),
    ({'points': (POINTS[1],) * 3}, 'INVALID_MOTION', 'does not move'),
    ({'step': 1e6, 'timing': 1}, 'INVALID_MOTION', 'cut it into parts'),
]


def test_bad_requests_are_refused_with_their_code(call):
    for fields, code, said in BAD_REQUESTS:
        _, response = call(**fields)
        assert (response.success, response.error_code) == (False, getattr(response, code))
        assert said in response.message
        assert not response.trajectory.points and not response.limiting


MARGINS = {
    'margins.velocity': '20%',
    'margins.effort_dot': 0.25,
    'margins.motor_torque': 0.5,
    'limits.elbow.effort_dot': 40.0,
    'actuators.elbow.type': 'sea',
    'actuators.elbow.stiffness': 300.0,
    'actuators.elbow.motor_inertia': 0.1,
    'actuators.elbow.max_motor_torque': 40.0,
}
SAID = 'less margins of 25 % (torque rate), 50 % (motor torque), 20 % (velocity)'


def test_planning_and_checks_use_what_margins_leave_and_say_so():
    harness = Harness(MARGINS)
    try:
        _retimes_within_margins(harness)
    finally:
        harness.close()


def _retimes_within_margins(harness):
    harness.describe_and_wait(share_file('urdf/two_link.urdf').read_text())
    harness.status('model', lambda s: SAID in dict_of(s).get('limits', ''))
    given = joint_trajectory(POINTS, (0.0, 1.0, 2.0), NAMES, 0)

    def ask(*limits):
        request = Request(trajectory=given, limits=list(limits))
        return harness.ask(RetimeTrajectory, 'hodyn_node/retime', request)

    def fastest(response):
        return max(abs(v) for point in response.trajectory.points for v in point.velocities)

    free = [limit(quantity='effort_dot', value=math.inf)]
    response = ask(limit(value=0.5), *free)  # a requested limit has the margin too
    assert response.success, response.message
    assert 0.39 < fastest(response) <= 0.4 + 1e-9
    assert any(SAID in text for text in response.warnings)
    refused = ask(limit(quantity='effort', value=0.01))
    assert refused.error_code == Response.LIMITS_EXCEEDED
    assert SAID in refused.message
    # Limits of joints and motors in a whole answer.
    hasty = joint_trajectory(POINTS, (0.0, 0.2, 0.4), NAMES, 0)
    request = ComputeInverseDynamics.Request(trajectory=hasty)
    answer = harness.ask(
        ComputeInverseDynamics, 'hodyn_node/compute_inverse_dynamics', request
    )
    assert answer.success, answer.message
    beyond = answer.effort_trajectory.limit_violations
    limits = {(item.quantity, item.joint_name): abs(item.limit) for item in beyond}
    assert limits['effort_dot', 'elbow'] == pytest.approx(30.0)
    assert limits['velocity', 'elbow'] == pytest.approx(4.8)
    assert limits['motor_torque', 'elbow'] == pytest.approx(20.0)
    assert any(SAID in text for text in answer.warnings)
    harness.publishers['joint_trajectory'].publish(hasty)
    (whole,) = harness.received('effort_trajectory')
    assert any(SAID in text for text in whole.remarks)
