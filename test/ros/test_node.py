"""The node on real middleware: each input, each output, and everything that it must refuse."""

from __future__ import annotations

import math

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Vector3
from geometry_msgs.msg import Wrench as WrenchMessage
from hodyn_msgs.msg import WrenchMotion
from hodyn_msgs.srv import ComputeInverseDynamics
from support import robots
from support.messages import (
    MOTION,
    NAMES,
    joint_motion,
    joint_trajectory,
    motion_trajectory,
    time_of,
)
from support.ros_harness import Harness

from hodyn_ros import RobotModel

Response = ComputeInverseDynamics.Response

WRENCH = np.array(
    [[0.1, -0.2, 0.3, 4.0, -5.0, 6.0], [1.0, 2.0, -1.0, 3.0, 0.0, -2.0], np.arange(6.0)]
)


@pytest.fixture(scope='module')
def shared_harness():
    # The machine may be slow: only messages that are meant to be old are too old.
    harness = Harness({'input_timeout': 60.0})
    harness.describe_and_wait(robots.TWO_LINK)
    yield harness
    harness.close()


@pytest.fixture
def harness(shared_harness):
    """Node with the two-link arm, freed of what the test before has sent."""
    # Another robot in between ends what still runs.
    shared_harness.describe_and_wait(robots.OTHER_JOINTS)
    shared_harness.describe_and_wait(robots.TWO_LINK)
    shared_harness.settled()
    shared_harness.forget()
    return shared_harness


@pytest.fixture
def start():
    """Make a node of its own with parameters."""
    made = []

    def make(*args, **kwargs):
        made.append(Harness(*args, **kwargs))
        return made[-1]

    yield make
    for harness in made:
        harness.close()


@pytest.fixture(scope='module')
def model():
    return RobotModel.from_urdf(robots.TWO_LINK)


def trajectory(
    positions=((0.0, 0.0), (0.5, -0.4), (0.2, 0.3)), times=(0.0, 0.2, 0.4), names=NAMES
):
    return joint_trajectory(positions, times, names)


def wrench_motion(values=WRENCH, link='tool', expressed_in=WrenchMotion.BODY, acting=0):
    message = WrenchMotion(expressed_in=expressed_in, acting=acting)
    message.header.frame_id = link
    for field, (mx, my, mz, fx, fy, fz) in zip(
        ('wrench', 'wrench_dot', 'wrench_ddot'), values
    ):
        wrench = WrenchMessage(
            torque=Vector3(x=mx, y=my, z=mz), force=Vector3(x=fx, y=fy, z=fz)
        )
        setattr(message, field, wrench)
    return message


def test_what_is_doubtful_is_said_as_soon_as_the_robot_is_known(start, capfd):
    text = robots.TWO_LINK.replace(
        '<limit lower="-2" upper="2" velocity="3" effort="50"/>', ''
    )
    text = text.replace('</robot>', '<belt name="b"/></robot>')
    harness = start(
        {
            'robot_description': text,
            'wrench.link': 'hand',
            'publish_rate': 50,
            'limits.elbow.jerk': 7,
            'limits.elbwo.jerk': 7.0,
        }
    )
    said = (
        "wrench.link is 'hand'",
        "Joints 'shoulder', 'elbow': a revolute joint without <limit>",
        "Element 'b': <belt> in <robot> is no element of URDF",
        'Parameters of limits for elbwo have no effect',
    )
    log = harness.log(capfd, lambda text: all(words in text for words in said))
    assert 'limits for elbow' not in log
    # Whole numbers are numbers.
    assert harness.node.settings.publish_rate == 50.0
    assert harness.node.robot.limits.jerk[1] == 7.0


def test_time_that_is_none_is_refused(harness):
    for bad in (Time(sec=1, nanosec=4_000_000_000), Time(sec=-5), Time(sec=2**31 - 1)):
        message, waypoints = joint_motion(), trajectory()
        message.header.stamp = waypoints.header.stamp = bad
        harness.forget()
        harness.publishers['joint_motion'].publish(message)
        harness.publishers['joint_trajectory'].publish(waypoints)
        for topic in ('joint_motion', 'joint_trajectory'):
            harness.refuses(topic, 'The stamp is')
        response = harness.call(request(trajectory=waypoints))
        assert (response.error_code, response.success) == (Response.INVALID_MOTION, False)
        assert not harness.messages['hodyn_node/joint_effort']


def test_limits_between_the_samples_are_checked(harness):
    """The only two samples of this motion are its ends, at rest."""
    harness.publishers['joint_trajectory'].publish(
        trajectory(positions=((0.0, 0.0), (1.0, 1.0)), times=(0.0, 0.01))
    )
    whole = harness.received('effort_trajectory')[-1]
    assert len(whole.time_from_start) == 2
    exceeded = {(v.joint_name, v.quantity) for v in whole.limit_violations}
    for name in NAMES:
        assert exceeded >= {(name, 'velocity'), (name, 'effort')}
    assert all(0.0 < v.time_from_start < 0.01 for v in whole.limit_violations)


def request(**fields):
    return ComputeInverseDynamics.Request(**fields)


def stamped_motions(times, motions=None):
    messages = []
    for index, time in enumerate(times):
        messages.append(joint_motion(MOTION if motions is None else motions[index]))
        messages[-1].header.stamp = time_of(5 * 10**9 + round(time * 1e9))
    return messages


def flat(times, motions=(MOTION, MOTION), names=NAMES, **others):
    return request(motion_trajectory=motion_trajectory(times, motions, names), **others)


def along(*given, **others):
    """Request for a trajectory, of which some values are given."""
    return request(trajectory=trajectory(*given), **others)


def with_points(**fields):
    asked = along()
    for name, values in fields.items():
        setattr(asked.trajectory.points[1], name, values)
    return asked


BAD_REQUESTS = {
    Response.INVALID_REQUEST: (
        (flat([0.0, 0.1], motion=[joint_motion()]), 'holds motion and motion_trajectory;'),
        (flat([0.0, 0.1], sample_times=[0.1]), 'leave it empty'),
        (along(sample_period=math.nan), 'sample_period'),
        (along(sample_period=1e-9), 'more than 100000'),
        (along(sample_times=[0.1, 0.1]), 'increasing'),
        (along(sample_times=[0.1, 0.9]), 'lasts from'),
        (along(sample_times=[0.1], sample_period=0.1), 'not both'),
    ),
    Response.INVALID_JOINTS: (
        (flat([0.0], [MOTION], ('a', 'b')), 'Joint names do not fit'),
        (along(((0.0,), (1.0,)), (0.0, 1.0), ['elbow']), 'shoulder'),
    ),
    Response.INVALID_MOTION: (
        (flat([]), 'time_from_start is empty'),
        (flat([0.0, 0.1], [MOTION]), 'position has 2 values, expected 4'),
        (flat([0.0, 0.0]), 'time_from_start[0] = 0.0 s is followed by'),
        (flat([0.0, math.nan]), 'time_from_start[1] is nan'),
        (flat([0.0], [MOTION[:2]]), 'acceleration has 0 values, expected 2'),
        (request(motion=stamped_motions([0.0, 0.0])), 'stamps must increase strictly'),
        (
            request(motion=[joint_motion(), joint_motion(MOTION[:4])]),
            'Sample 1 holds 4 orders',
        ),
        (with_points(positions=[]), 'point 1 has 0 positions'),
        (with_points(accelerations=[math.inf, 0.0]), 'finite'),
        (along(((0.0, 0.0),), (0.0,)), 'waypoint'),
    ),
    Response.INVALID_WRENCH: (
        (flat([0.0, 0.1], wrenches=[wrench_motion()] * 3), 'one per sample'),
        (flat([0.0, 0.1], wrenches=[wrench_motion(acting=2)]), 'expected one of 0'),
    ),
}


def test_service_answers_a_bad_request_with_the_reason(harness):
    for code, requests in BAD_REQUESTS.items():
        for message, reason in requests:
            response = harness.call(message)
            assert (response.success, response.error_code) == (False, code)
            assert reason in response.message
            assert len(response.effort_trajectory.time_from_start) == 0
