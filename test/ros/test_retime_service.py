"""The service ~/retime on real middleware: as in Python, within the limits, or refused."""

import math

import numpy as np
import pytest
from builtin_interfaces.msg import Duration, Time
from hodyn_msgs.msg import JointLimit
from hodyn_msgs.srv import RetimeTrajectory
from support.records import changed
from support.ros_harness import TIMEOUT, Harness
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.analysis import find_violations, motion_limits
from hodyn_ros.resources import share_file
from hodyn_ros.trajectory import jtc_motion

pinocchio = pytest.importorskip('pinocchio')

Request, Response = RetimeTrajectory.Request, RetimeTrajectory.Response
URDF = share_file('urdf/two_link.urdf')
MODEL = RobotModel.from_urdf(URDF)
NAMES = ('elbow', 'shoulder')  # not in the order of the model
POINTS = ((0.0, 0.0), (0.5, 0.4), (0.2, 0.9))
LIMITS = {'shoulder': {'effort_dot': 900.0, 'jerk': 900.0}, 'elbow': {'effort_dot': 400.0}}


@pytest.fixture(scope='module')
def harness():
    made = Harness(
        {'max_waiting_requests': 2}
        | {
            f'limits.{joint}.{quantity}': value
            for joint, own in LIMITS.items()
            for quantity, value in own.items()
        }
    )
    made.describe_and_wait(URDF.read_text())
    yield made
    made.close()


@pytest.fixture(scope='module')
def call(harness):
    client = harness.client.create_client(RetimeTrajectory, 'hodyn_node/retime')
    assert client.wait_for_service(TIMEOUT)

    def call(message=None, **fields):
        given = message or trajectory()
        future = client.call_async(Request(trajectory=given, **fields))
        harness.wait(future.done, 'response')
        return future.result()

    call.client = client
    return call


def trajectory(points=POINTS, names=NAMES, step=1.0, start=0.0):
    message = JointTrajectory(joint_names=names)
    message.header.stamp, message.header.frame_id = Time(sec=7, nanosec=5), 'here'
    for number, positions in enumerate(points):
        nanosec = round(1e9 * (start + number * step))
        point = JointTrajectoryPoint(positions=positions)
        point.time_from_start = Duration(sec=nanosec // 10**9, nanosec=nanosec % 10**9)
        message.points.append(point)
    return message


def content(message):
    """Times (N,), motion (N, 3, n) and efforts (N, n) in the order of the model."""
    order = [list(message.joint_names).index(name) for name in MODEL.joint_names]
    times = [
        p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in message.points
    ]
    rows = [(p.positions, p.velocities, p.accelerations, p.effort) for p in message.points]
    rows = np.array(rows)[:, :, order]
    return np.array(times), rows[:, :3], rows[:, 3]


def pinocchio_efforts(motion):
    model = pinocchio.buildModelFromUrdf(str(URDF))
    assert tuple(model.names)[1:] == MODEL.joint_names
    data = model.createData()
    return np.array([pinocchio.rnea(model, data, *sample).copy() for sample in motion])


def assert_kept(response, limits):
    """Limits are kept as the trajectory is executed, and the efforts are the exact ones."""
    times, motion, effort = content(response.trajectory)
    np.testing.assert_allclose(effort, pinocchio_efforts(motion), rtol=1e-9, atol=1e-9)
    played = jtc_motion(times, *motion.swapaxes(0, 1))
    t = np.linspace(times[0], times[-1], 20_001)
    executed = played(t)
    exact = inverse_dynamics(MODEL, executed)
    names = ('velocity', 'acceleration', 'jerk', 'effort', 'effort_dot')
    beyond = {name: getattr(limits, name) * (1.0 + 1e-7) for name in names}
    limits = changed(limits, **beyond)
    assert find_violations(MODEL, limits, executed, exact) == ()
    linear = np.stack([np.interp(t, times, column) for column in effort.T], axis=1)
    error = np.abs(linear - exact[:, 0]).max()
    assert 0.0 < error <= response.effort_error * (1.0 + 1e-3) + 1e-9
    return times


@pytest.mark.parametrize('timing', [Request.PATH, Request.UNIFORM])
@pytest.mark.parametrize(('step', 'slower_only'), [(0.1, False), (0.1, True), (1.0, True)])
def test_limits_are_kept_as_the_answer_is_executed(call, timing, step, slower_only):
    response = call(trajectory(step=step), timing=timing, slower_only=slower_only)
    assert response.success, response.message
    times = assert_kept(response, motion_limits(MODEL, LIMITS))
    assert times[0] == 0.0
    if slower_only:
        assert times[-1] >= 2.0 * step - 2e-9
        assert (step == 1.0) == (response.duration == response.duration_before)
    else:
        (limiting,) = response.limiting
        assert abs(limiting.value) == pytest.approx(abs(limiting.limit), rel=1e-6)
        assert 0.0 <= limiting.time_from_start <= response.duration
    assert response.trajectory.header.frame_id == 'here'
    assert response.trajectory.header.stamp == Time(sec=7, nanosec=5)
    assert tuple(response.trajectory.joint_names) == NAMES
    end = response.trajectory.points[-1].positions
    np.testing.assert_allclose(end, POINTS[-1], rtol=0.0, atol=1e-9)


def limit(name='', quantity='velocity', value=1.0):
    return JointLimit(joint_name=name, quantity=quantity, limit=value)


BAD_REQUESTS = [
    ({}, {'timing': 7}, 'INVALID_REQUEST', 'timing is 7'),
    ({}, {'timing': 1, 'drop_standstills': True}, 'INVALID_REQUEST', 'drop_standstills'),
    ({}, {'limits': [limit(quantity='speed')]}, 'INVALID_REQUEST', "'speed'"),
    ({}, {'limits': [limit(), limit(value=-1.0)]}, 'INVALID_REQUEST', 'limits[1].limit is'),
    ({}, {'limits': [limit('wrist')]}, 'INVALID_JOINTS', "'wrist', expected one of"),
    ({}, {'effort_tolerance': math.nan}, 'INVALID_REQUEST', 'effort_tolerance'),
    ({}, {'effort_tolerance': 1e-9}, 'INVALID_REQUEST', 'would do'),
    ({'names': ('elbow', 'elbow')}, {}, 'INVALID_JOINTS', 'repeated: elbow'),
    ({'points': ((0.0, 0.0), (0.5, math.nan))}, {}, 'INVALID_MOTION', 'nan'),
    ({'points': (POINTS[1],) * 3}, {}, 'INVALID_MOTION', 'does not move'),
    ({'step': 1e6}, {'timing': 1}, 'INVALID_MOTION', 'cut it into parts'),
]


def test_bad_requests_are_refused_with_their_code(call):
    for given, fields, code, said in BAD_REQUESTS:
        response = call(trajectory(**given), **fields)
        assert (response.success, response.error_code) == (False, getattr(response, code))
        assert said in response.message
        assert not response.trajectory.points and not response.limiting
