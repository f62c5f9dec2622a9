"""The node on real middleware: each input, each output, and everything that it must refuse."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Vector3
from geometry_msgs.msg import Wrench as WrenchMessage
from hodyn_msgs.msg import JointEffort, WrenchMotion
from hodyn_msgs.srv import ComputeInverseDynamics
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from support import robots
from support.messages import (
    EFFORTS,
    FIELDS,
    MOTION,
    NAMES,
    joint_motion,
    joint_trajectory,
    motion_trajectory,
    rows,
    samples,
    time_of,
)
from support.ros_harness import TIMEOUT, Harness, dict_of, next_domain
from trajectory_msgs.msg import JointTrajectory

from hodyn_ros import RobotModel, Wrench, inverse_dynamics

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
    # The answer to one more message comes behind all that is still on its way.
    last = joint_motion()
    last.header.stamp = time_of(now(shared_harness))
    shared_harness.publishers['joint_motion'].publish(last)
    shared_harness.wait(
        lambda: any(
            message.header.stamp == last.header.stamp
            for message in shared_harness.messages['hodyn_node/joint_effort']
        ),
        'silence',
    )
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


def now(harness):
    return harness.client.get_clock().now().nanoseconds


def answered(harness, message):
    """Publish a joint motion and return its efforts."""
    count = len(harness.messages['hodyn_node/joint_effort'])
    harness.publishers['joint_motion'].publish(message)
    return harness.received('joint_effort', count + 1)[-1]


# Robot description


def test_node_without_a_robot_says_so_and_takes_the_first_that_comes(start, model, capfd):
    harness = start({'max_message_size': 6000})
    harness.status('model', lambda s: s.message == 'no valid robot description yet')
    assert 'refused' not in capfd.readouterr().err
    harness.publishers['joint_motion'].publish(joint_motion())
    harness.publishers['joint_trajectory'].publish(trajectory())
    harness.publishers['wrench_motion'].publish(wrench_motion())
    for topic in ('joint_motion', 'joint_trajectory', 'wrench_motion'):
        assert 'no robot model yet' in harness.refusal(topic)
    response = harness.call(ComputeInverseDynamics.Request(motion=[joint_motion()]))
    assert (response.success, response.error_code) == (False, Response.NO_MODEL)
    assert 'robot_description' in response.message
    assert not harness.messages['hodyn_node/joint_effort']
    harness.describe('<robot>' + 7000 * ' ' + '</robot>')
    assert 'no more than max_message_size (6000)' in harness.refusal('robot_description')
    harness.describe_and_wait(robots.TWO_LINK)
    np.testing.assert_allclose(
        rows(answered(harness, joint_motion())), inverse_dynamics(model, MOTION)
    )
    harness.status('model', lambda s: s.message == 'model loaded')


def test_description_parameter_is_used_and_can_be_changed(start):
    harness = start({'robot_description': robots.TWO_LINK})

    def set_description(text):
        value = Parameter('robot_description', value=text).to_parameter_msg()
        request = SetParameters.Request(parameters=[value])
        return harness.ask(SetParameters, 'hodyn_node/set_parameters', request).results[0]

    assert set_description(robots.HEAVIER_TWO_LINK).successful
    harness.wait_until_in_use(robots.HEAVIER_TWO_LINK)
    expected = inverse_dynamics(RobotModel.from_urdf(robots.HEAVIER_TWO_LINK), MOTION)
    np.testing.assert_allclose(rows(answered(harness, joint_motion())), expected)
    refused = set_description('<robot name="empty"/>')
    assert not refused.successful
    assert 'no links' in refused.reason
    np.testing.assert_allclose(rows(answered(harness, joint_motion())), expected)
    # Other joints bring other limits, which are parameters themselves.
    assert set_description(robots.OTHER_JOINTS).successful
    assert harness.node.get_parameter('limits.rail.jerk').value == math.inf


def test_changed_description_changes_the_efforts(harness):
    before = rows(answered(harness, joint_motion()))
    harness.describe_and_wait(robots.HEAVIER_TWO_LINK)
    after = rows(answered(harness, joint_motion()))
    model = RobotModel.from_urdf(robots.HEAVIER_TWO_LINK)
    np.testing.assert_allclose(after, inverse_dynamics(model, MOTION))
    assert np.abs(after - before).max() > 1.0


INVALID_DESCRIPTIONS = [
    ('shoulder', 'not XML'),
    ('/etc/hostname', 'not XML'),
    ('', 'not XML'),
    ('<robot', 'not XML'),
    (robots.robot('<link name="base"/>'), 'no moving joints'),
    (
        robots.robot(
            robots.link('a'),
            robots.link('b'),
            robots.joint('x', 'a', 'b'),
            robots.joint('y', 'b', 'a'),
        ),
        'loop',
    ),
    (
        robots.TWO_LINK.replace('"revolute"', '"spherical"'),
        'spherical (not a joint type',
    ),
    (robots.TWO_LINK.replace('axis xyz="0 1 0"', 'axis xyz="0 0 0"'), 'axis is zero'),
    (robots.TWO_LINK.replace('value="0.7"', 'value="-0.7"'), 'negative mass'),
    (
        robots.TWO_LINK.replace('ixx="0.01"', 'ixx="-0.01"'),
        'not positive semi-definite',
    ),
    (robots.TWO_LINK.replace('value="0.7"', 'value="nan"'), 'finite'),
]


def test_invalid_description_is_refused_and_the_last_good_model_stays(harness):
    for urdf, reason in INVALID_DESCRIPTIONS:
        harness.forget()
        harness.describe(urdf)
        status = harness.status('model', lambda s: 'refused description' in dict_of(s))
        assert reason in dict_of(status)['refused description']
        assert 'stays in use' in status.message
        assert rows(answered(harness, joint_motion())).shape == (3, 2)
        # The next one is refused once this one is forgotten.
        harness.describe_and_wait(robots.HEAVIER_TWO_LINK)
        harness.describe_and_wait(robots.TWO_LINK)
        harness.messages['/diagnostics'].clear()
        harness.status('model', lambda s: 'refused description' not in dict_of(s))


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
        'Parameter limits.elbwo.jerk limits nothing',
    )
    log = harness.log(capfd, lambda text: all(words in text for words in said))
    assert 'limits.elbow.jerk limits nothing' not in log
    # Whole numbers are numbers.
    assert harness.node.settings.publish_rate == 50.0
    assert harness.node.robot.limits.jerk[1] == 7.0


def test_limits_of_parameters_are_heeded(harness):
    assert harness.set(limits__elbow__jerk=0.5, limits__elbow__effort_dot=0.5).successful
    try:
        answered(harness, joint_motion())
        beyond = 'samples beyond the limit of jerk of elbow'
        harness.status('joint_effort', lambda s: dict_of(s).get(beyond) == '1')
        harness.publishers['joint_trajectory'].publish(trajectory())
        violations = harness.received('effort_trajectory')[-1].limit_violations
        found = {
            (v.joint_name, abs(v.limit)) for v in violations if v.quantity == 'effort_dot'
        }
        assert found == {('elbow', 0.5)}
        exceeded = 'limits are exceeded'
        harness.status('joint_effort', lambda s: s.message.startswith(exceeded))
    finally:
        harness.set(limits__elbow__jerk=math.inf, limits__elbow__effort_dot=math.inf)


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


def test_every_refused_trajectory_is_logged(harness, capfd):
    for _ in range(3):
        harness.publishers['wrench_motion'].publish(wrench_motion(link='hand'))
        harness.publishers['joint_trajectory'].publish(trajectory(times=(0.0, 0.2, 0.2)))
        harness.log(capfd, lambda text: 'joint_trajectory refused' in text)
    harness.refuses('joint_trajectory', 'increas')


def test_running_trajectory_ends_when_the_new_robot_has_other_joints(harness):
    harness.publishers['joint_trajectory'].publish(trajectory(times=(0.0, 30.0, 60.0)))
    harness.received('joint_effort', 3)
    harness.describe_and_wait(robots.OTHER_JOINTS)
    harness.wait(lambda: not harness.node.stream.timeline, 'the end of the motion')


# Joint motion


def test_joint_motion_is_answered_to_the_order_that_it_determines(harness, model):
    for K in (3, 4, 5):
        sent = joint_motion(MOTION[:K])
        sent.header.stamp = time_of(now(harness))
        message = answered(harness, sent)
        assert message.valid_order == K - 3
        assert message.source == JointEffort.SOURCE_JOINT_MOTION
        assert message.header.stamp == sent.header.stamp
        assert message.header.frame_id == 'base'
        assert list(message.joint_names) == list(NAMES)
        np.testing.assert_allclose(rows(message), inverse_dynamics(model, MOTION[:K]))
        assert all(len(getattr(message, field)) == 0 for field in EFFORTS[K - 2 :])
    # Without a stamp it is that of now; joints are matched by name.
    before = now(harness)
    message = answered(harness, joint_motion(MOTION[:, ::-1], NAMES[::-1]))
    np.testing.assert_allclose(rows(message), inverse_dynamics(model, MOTION))
    assert before <= message.header.stamp.sec * 10**9 + message.header.stamp.nanosec


def test_joint_motion_far_ahead_is_answered_with_a_warning(start, capfd):
    # A node of its own: what another test has had refused would be said first.
    harness = start({'robot_description': robots.TWO_LINK})
    sent = joint_motion(stamp=now(harness) + 120 * 10**9)
    assert answered(harness, sent).header.stamp == sent.header.stamp
    sending = harness.status('joint_effort', lambda s: 'longest age [ms]' in dict_of(s))
    assert -120e3 <= float(dict_of(sending)['longest age [ms]']) < -60e3
    status = harness.status('joint_motion', lambda s: dict_of(s)['stamps far ahead'] == '1')
    assert 'more than a minute ahead' in status.message
    assert 'lies 120 s in the future' in capfd.readouterr().err


def long_motion():
    message = joint_motion()
    message.header.frame_id = 'x' * 300_000
    return message


def old_motion():
    message = joint_motion()
    message.header.stamp = Time(sec=1000)
    return message


BAD_MOTIONS = [
    (joint_motion(names=('shoulder', 'wrist')), 'unknown: wrist; missing: elbow'),
    (
        joint_motion(names=('shoulder', 'shoulder')),
        'repeated: shoulder; missing: elbow',
    ),
    (joint_motion(MOTION[:, :1], ('elbow',)), 'missing: shoulder'),
    (joint_motion(names=()), 'missing: shoulder, elbow'),
    (joint_motion(velocity=[1.0]), 'velocity has 1 values, expected 2'),
    (joint_motion(snap=[1.0, 2.0, 3.0]), 'snap has 3 values, expected 2'),
    (joint_motion(acceleration=[]), 'acceleration has 0 values, expected 2'),
    (joint_motion(jerk=[]), 'snap is given but jerk is empty'),
    (joint_motion(position=[math.nan, 0.0]), "position of joint 'shoulder' is nan"),
    (joint_motion(snap=[0.0, math.inf]), "snap of joint 'elbow' is inf"),
    (joint_motion(velocity=[1e300, 1e300]), 'overflow'),
    (old_motion(), 'input_timeout'),
    (long_motion(), 'a message about one instant may have (262144)'),
]


def test_bad_joint_motion_is_refused_and_the_node_goes_on(harness):
    for message, reason in BAD_MOTIONS:
        harness.publishers['joint_motion'].publish(message)
        assert harness.refuses('joint_motion', reason).level in (b'\x01', b'\x02')
    assert not harness.messages['hodyn_node/joint_effort']
    assert np.isfinite(rows(answered(harness, joint_motion()))).all()


# Trajectories


def test_trajectory_is_answered_as_a_whole(harness, model):
    harness.publishers['joint_trajectory'].publish(
        trajectory(names=NAMES[::-1], times=(0.0, 0.2, 0.5))
    )
    whole = harness.received('effort_trajectory')[-1]
    times = np.array(whole.time_from_start)
    np.testing.assert_allclose(times, np.linspace(0.0, 0.5, 51), atol=1e-12)
    motion = samples(whole, FIELDS)
    np.testing.assert_allclose(motion[0], np.zeros((5, 2)), atol=1e-9)
    np.testing.assert_allclose(motion[20, 0], [-0.4, 0.5], atol=1e-9)
    np.testing.assert_allclose(motion[-1, 0], [0.3, 0.2], atol=1e-9)
    np.testing.assert_allclose(
        samples(whole), inverse_dynamics(model, motion), rtol=1e-9, atol=1e-12
    )
    assert whole.source == JointEffort.SOURCE_JOINT_TRAJECTORY
    assert whole.valid_order == 2


def test_trajectory_is_streamed_from_its_start_stamp_to_its_end(harness, model):
    begin = now(harness) + 10**8
    sent = trajectory()
    sent.header.stamp = time_of(begin)
    harness.publishers['joint_trajectory'].publish(sent)
    end = time_of(begin + 4 * 10**8)
    streamed = harness.wait(
        lambda: (
            (messages := harness.messages['hodyn_node/joint_effort'])
            and messages[-1].header.stamp == end
            and messages
        ),
        'last sample of the trajectory',
    )
    stamps = [m.header.stamp.sec * 10**9 + m.header.stamp.nanosec - begin for m in streamed]
    assert stamps[0] >= 0
    assert np.all(np.diff(stamps) > 0)
    whole = harness.received('effort_trajectory')[-1]
    assert whole.header.stamp == sent.header.stamp
    np.testing.assert_allclose(
        rows(streamed[-1]), samples(whole)[-1], rtol=1e-9, atol=1e-12
    )
    at_rest = np.zeros((5, 2))
    at_rest[0] = [0.2, 0.3]
    np.testing.assert_allclose(
        rows(streamed[-1]), inverse_dynamics(model, at_rest), atol=1e-6
    )


def test_trajectory_that_exceeds_limits_says_where(harness):
    harness.publishers['joint_trajectory'].publish(
        trajectory(positions=((0.0, 0.0), (0.0, 2.5)), times=(0.0, 1.0))
    )
    violations = harness.received('effort_trajectory')[-1].limit_violations
    found = {(v.joint_name, v.quantity): v for v in violations}
    position = found['elbow', 'position']
    assert (position.value, position.limit) == (pytest.approx(2.5), 2.0)
    assert position.time_from_start == pytest.approx(1.0)
    assert ('elbow', 'velocity') in found
    assert not any(joint == 'shoulder' and kind == 'position' for joint, kind in found)


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


def past_trajectory():
    message = trajectory()
    message.header.stamp = Time(sec=1000)
    return message


def trajectory_with(field, values, point=1):
    message = trajectory()
    setattr(message.points[point], field, values)
    return message


BAD_TRAJECTORIES = [
    (JointTrajectory(), 'joint_names is empty'),
    (JointTrajectory(joint_names=list(NAMES)), 'no points'),
    (trajectory(names=['shoulder', 'wrist']), 'wrist'),
    (trajectory(names=['shoulder', 'shoulder']), 'shoulder'),
    (trajectory(((0.0,), (1.0,)), names=['elbow']), 'shoulder'),
    (trajectory_with('positions', [0.1]), 'point 1 has 1 positions, expected 2'),
    (trajectory_with('positions', []), 'point 1 has 0 positions'),
    (trajectory_with('velocities', [0.1, 0.2, 0.3]), 'point 1 has 3 velocities'),
    (trajectory_with('positions', [math.nan, 0.0]), 'finite'),
    (trajectory_with('accelerations', [math.inf, 0.0]), 'finite'),
    (trajectory_with('velocities', [math.nan, math.nan]), 'finite'),
    (trajectory(times=(0.0, 0.2, 0.2)), 'increas'),
    (trajectory(times=(0.0, 0.2, 0.1)), 'increas'),
    (trajectory(positions=((0.0, 0.0),), times=(0.0,)), 'waypoint'),
    (trajectory(times=(0.0, 1e4, 1e5)), 'max_samples'),
]


def test_bad_trajectory_is_refused_and_the_node_goes_on(harness):
    for message, reason in (
        (trajectory(names=[]), 'joint_names is empty'),
        # An empty one stops.
        *(item for item in BAD_TRAJECTORIES if item[0].points),
        (past_trajectory(), 'ended'),
    ):
        harness.publishers['joint_trajectory'].publish(message)
        harness.refuses('joint_trajectory', reason)
        harness.messages['/diagnostics'].clear()
    assert not harness.messages['hodyn_node/effort_trajectory']
    assert not harness.messages['hodyn_node/joint_effort']
    harness.publishers['joint_trajectory'].publish(trajectory())
    assert np.isfinite(samples(harness.received('effort_trajectory')[-1])).all()


def test_empty_trajectory_stops_the_motion_smoothly(harness):
    harness.publishers['joint_trajectory'].publish(trajectory(times=(0.0, 5.0, 10.0)))
    harness.received('joint_effort', 5)
    harness.received('effort_trajectory')  # of which only the latest is kept
    harness.publishers['joint_trajectory'].publish(JointTrajectory())
    whole = harness.received('effort_trajectory', 2)[-1]
    assert 'brings the motion to rest' in whole.remarks[0]
    rest = samples(whole)[-1]
    harness.wait(
        lambda: np.allclose(
            rows(harness.messages['hodyn_node/joint_effort'][-1]), rest, atol=1e-9
        ),
        'the end of the stop',
    )
    assert not harness.node.stream.timeline


# Wrenches


def test_wrench_adds_to_the_efforts(harness, model):
    total = harness.node.diagnostics.input('wrench_motion').total
    for expressed_in in ('body', 'spatial', 'hybrid'):
        for acting in ('on_environment', 'on_robot'):
            kinds = (getattr(WrenchMotion, kind.upper()) for kind in (expressed_in, acting))
            sent, motion = wrench_motion(WRENCH, 'tool', *kinds), joint_motion()
            sent.header.stamp = motion.header.stamp = time_of(now(harness))
            count = total['received']
            harness.publishers['wrench_motion'].publish(sent)
            harness.wait(lambda count=count: total['received'] > count, 'wrench')
            wrench = Wrench('tool', WRENCH, expressed_in, acting)
            np.testing.assert_allclose(
                rows(answered(harness, motion)),
                inverse_dynamics(model, MOTION, wrench),
                rtol=1e-9,
            )


def test_stale_wrench_stops_the_output_until_zeros_end_it(harness, model):
    sent, motion = wrench_motion(), joint_motion()
    sent.header.stamp = time_of(now(harness))
    motion.header.stamp = time_of(now(harness) + 200_000_000)
    harness.publishers['wrench_motion'].publish(sent)
    harness.wait(lambda: harness.wrenches.sources, 'wrench')
    harness.publishers['joint_motion'].publish(motion)
    status = harness.status(
        'joint_effort', lambda s: 'the output is held back' in s.message
    )
    assert 'wrench_timeout' in dict_of(status)['held back because']
    assert not harness.messages['hodyn_node/joint_effort']
    harness.publishers['wrench_motion'].publish(wrench_motion(np.zeros((3, 6))))
    harness.wait(lambda: not harness.wrenches.sources, 'end of the wrench')
    np.testing.assert_allclose(
        rows(answered(harness, motion)), inverse_dynamics(model, MOTION)
    )


BAD_WRENCHES = [
    (wrench_motion(link='hand'), "'hand'"),
    (wrench_motion(link=''), 'unknown link'),
    (wrench_motion(np.full((3, 6), math.nan)), 'finite'),
    (wrench_motion(expressed_in=7), 'expected one of 0 (body)'),
    (wrench_motion(acting=2), 'expected one of 0 (on_environment)'),
]


def test_bad_wrench_is_refused_and_the_node_goes_on(harness, model):
    for message, reason in BAD_WRENCHES:
        harness.publishers['wrench_motion'].publish(message)
        harness.refuses('wrench_motion', reason)
    np.testing.assert_allclose(
        rows(answered(harness, joint_motion())), inverse_dynamics(model, MOTION)
    )


# Service


def request(**fields):
    return ComputeInverseDynamics.Request(**fields)


def stamped_motions(times, motions=None):
    messages = []
    for index, time in enumerate(times):
        messages.append(joint_motion(MOTION if motions is None else motions[index]))
        messages[-1].header.stamp = time_of(5 * 10**9 + round(time * 1e9))
    return messages


def test_service_answers_a_trajectory(harness, model):
    response = harness.call(request(trajectory=trajectory(), sample_period=0.03))
    assert (response.success, response.error_code, response.message) == (True, 0, '')
    whole = response.effort_trajectory
    times = np.array(whole.time_from_start)
    assert len(times) == 15
    assert times[-1] == 0.4
    assert np.diff(times).max() <= 0.03 + 1e-12
    motion = samples(whole, FIELDS)
    np.testing.assert_allclose(
        samples(whole), inverse_dynamics(model, motion), rtol=1e-9, atol=1e-12
    )
    assert not harness.messages['hodyn_node/joint_effort'], (
        'the service must not move anything'
    )


def test_service_warns_of_a_motion_that_swings_far_out_between_waypoints(harness):
    even = harness.call(request(trajectory=trajectory()))
    assert even.warnings == []
    uneven = trajectory(
        positions=((0.0, 0.0), (0.5, 0.1), (0.1, 0.2), (0.4, 0.3)),
        times=(0.0, 0.05, 1.0, 1.1),
    )
    response = harness.call(request(trajectory=uneven))
    assert response.success
    (warning,) = response.warnings
    assert 'evenly spaced' in warning
    assert 'shoulder' in warning


def test_service_samples_a_trajectory_at_given_times(harness):
    times = [0.0, 0.05, 0.2, 0.4]
    response = harness.call(request(trajectory=trajectory(), sample_times=times))
    assert list(response.effort_trajectory.time_from_start) == times
    np.testing.assert_allclose(
        samples(response.effort_trajectory, FIELDS)[2, 0], [0.5, -0.4], atol=1e-9
    )


def test_service_answers_motion_samples(harness, model):
    motions = np.random.default_rng(1).normal(size=(4, 5, 2))
    response = harness.call(request(motion=stamped_motions([0.0, 0.1, 0.2, 0.4], motions)))
    assert response.success, response.message
    whole = response.effort_trajectory
    np.testing.assert_allclose(whole.time_from_start, [0.0, 0.1, 0.2, 0.4])
    np.testing.assert_allclose(samples(whole), inverse_dynamics(model, motions), rtol=1e-9)


def test_service_answers_a_motion_in_flat_arrays_like_its_samples(harness, model):
    motions = np.random.default_rng(1).normal(size=(4, 5, 2))
    times = [0.5, 0.6, 0.7, 0.9]
    turned = motion_trajectory(times, motions[..., ::-1], NAMES[::-1], stamp=5 * 10**9)
    response = harness.call(request(motion_trajectory=turned))
    assert response.success, response.message
    whole = response.effort_trajectory
    assert whole.header.stamp == time_of(5 * 10**9)
    assert list(whole.time_from_start) == times
    assert whole.joint_names == list(NAMES)
    assert np.array_equal(samples(whole, FIELDS), motions)
    np.testing.assert_allclose(samples(whole), inverse_dynamics(model, motions), rtol=1e-9)
    listed = harness.call(request(motion=stamped_motions(times, motions))).effort_trajectory
    assert np.array_equal(samples(whole), samples(listed))
    assert (whole.source, whole.limit_violations) == (
        listed.source,
        [
            type(item)(
                quantity=item.quantity,
                joint_name=item.joint_name,
                value=item.value,
                limit=item.limit,
                time_from_start=item.time_from_start + times[0],
            )
            for item in listed.limit_violations
        ],
    )


def test_service_answers_flat_arrays_without_jerk_or_snap_up_to_the_known_order(
    harness, model
):
    motions = np.random.default_rng(3).normal(size=(3, 5, 2))
    for K in (3, 4):
        flat = motion_trajectory([0.0, 0.1, 0.2], motions[:, :K])
        whole = harness.call(request(motion_trajectory=flat)).effort_trajectory
        assert whole.valid_order == K - 3
        assert [len(getattr(whole, name)) for name in EFFORTS] == [6] * (K - 2) + [0] * (
            5 - K
        )
        expected = inverse_dynamics(model, motions[:, :K])
        np.testing.assert_allclose(
            np.reshape(whole.effort, (3, 2)), expected[:, 0], rtol=1e-9
        )


def test_service_takes_wrenches_with_flat_arrays_as_with_a_list(harness):
    times = np.array([0.0, 0.1, 0.2])
    motions = np.random.default_rng(4).normal(size=(3, 5, 2))
    each = [
        wrench_motion(v, 'tool') for v in np.random.default_rng(2).normal(size=(3, 3, 6))
    ]
    start = wrench_motion(WRENCH, 'upper', WrenchMotion.HYBRID, WrenchMotion.ON_ROBOT)
    flat, listed, free = (
        samples(harness.call(asked).effort_trajectory)
        for asked in (
            request(
                motion_trajectory=motion_trajectory(times, motions), wrenches=[*each, start]
            ),
            request(motion=stamped_motions(times, motions), wrenches=[*each, start]),
            request(motion_trajectory=motion_trajectory(times, motions)),
        )
    )
    np.testing.assert_allclose(flat, listed, rtol=1e-12, atol=1e-12)
    assert np.abs(flat - free).min() > 0.0


def test_service_takes_wrenches_for_every_sample_and_for_the_start(harness, model):
    times = np.array([0.0, 0.1, 0.2])
    values = np.random.default_rng(2).normal(size=(3, 3, 6))
    each = [wrench_motion(v, 'tool', WrenchMotion.SPATIAL) for v in values]
    start = wrench_motion(WRENCH, 'upper', WrenchMotion.HYBRID, WrenchMotion.ON_ROBOT)
    response = harness.call(request(motion=stamped_motions(times), wrenches=[*each, start]))
    assert response.success, response.message
    t = times[:, None]
    continued = np.stack(
        [
            WRENCH[0] + t * WRENCH[1] + t**2 / 2 * WRENCH[2],
            WRENCH[1] + t * WRENCH[2],
            np.tile(WRENCH[2], (3, 1)),
        ],
        axis=1,
    )
    expected = inverse_dynamics(
        model,
        np.tile(MOTION, (3, 1, 1)),
        [
            Wrench('tool', values, 'spatial'),
            Wrench('upper', continued, 'hybrid', 'on_robot'),
        ],
    )
    np.testing.assert_allclose(samples(response.effort_trajectory), expected, rtol=1e-9)


def test_service_returns_remarks_on_the_model(harness):
    massless = robots.TWO_LINK.replace(robots.link('fore', 0.7), '<link name="fore"/>')
    harness.describe_and_wait(massless)
    response = harness.call(request(motion=[joint_motion()]))
    assert response.success
    assert any('elbow' in warning for warning in response.warnings)


FLAT = motion_trajectory([0.0, 0.1], [MOTION] * 2)
BAD_REQUESTS = [
    (request(), Response.INVALID_REQUEST, 'no motion'),
    (
        request(trajectory=trajectory(), motion=[joint_motion()]),
        Response.INVALID_REQUEST,
        'trajectory and motion;',
    ),
    *(
        (request(motion_trajectory=flat, **others), code, reason)
        for flat, others, code, reason in (
            (
                FLAT,
                {'motion': [joint_motion()]},
                Response.INVALID_REQUEST,
                'holds motion and motion_trajectory;',
            ),
            (FLAT, {'sample_times': [0.1]}, Response.INVALID_REQUEST, 'leave it empty'),
            (
                motion_trajectory([0.0], [MOTION], ('a', 'b')),
                {},
                Response.INVALID_JOINTS,
                'Joint names do not fit',
            ),
            (
                motion_trajectory([], [MOTION]),
                {},
                Response.INVALID_MOTION,
                'time_from_start is empty',
            ),
            (
                motion_trajectory([0.0, 0.1], [MOTION]),
                {},
                Response.INVALID_MOTION,
                'position has 2 values, expected 4, one for each of joint_names in each of 2',
            ),
            (
                motion_trajectory([0.0, 0.0], [MOTION] * 2),
                {},
                Response.INVALID_MOTION,
                'time_from_start[0] = 0.0 s is followed by time_from_start[1] = 0.0',
            ),
            (
                motion_trajectory([0.0, math.nan], [MOTION] * 2),
                {},
                Response.INVALID_MOTION,
                'time_from_start[1] is nan',
            ),
            (
                motion_trajectory([0.0], [MOTION[:2]]),
                {},
                Response.INVALID_MOTION,
                'acceleration has 0 values, expected 2',
            ),
            (
                motion_trajectory([0.0, 0.1], [MOTION, MOTION * [1.0, math.inf]]),
                {},
                Response.INVALID_MOTION,
                "sample 1: position of joint 'elbow' is -inf",
            ),
            (
                FLAT,
                {'wrenches': [wrench_motion()] * 3},
                Response.INVALID_WRENCH,
                'one per sample',
            ),
        )
    ),
    (
        request(trajectory=trajectory(), sample_period=math.nan),
        Response.INVALID_REQUEST,
        'sample_period',
    ),
    (
        request(trajectory=trajectory(), sample_period=-0.1),
        Response.INVALID_REQUEST,
        'sample_period',
    ),
    (
        request(trajectory=trajectory(), sample_period=1e-9),
        Response.INVALID_REQUEST,
        'max_samples',
    ),
    (
        request(trajectory=trajectory(), sample_times=[0.1, 0.1]),
        Response.INVALID_REQUEST,
        'increasing',
    ),
    (
        request(trajectory=trajectory(), sample_times=[0.1, 0.9]),
        Response.INVALID_REQUEST,
        'lasts from',
    ),
    (
        request(trajectory=trajectory(), sample_times=[0.1], sample_period=0.1),
        Response.INVALID_REQUEST,
        'not both',
    ),
    (
        request(motion=[joint_motion()], sample_period=0.1),
        Response.INVALID_REQUEST,
        'leave it empty',
    ),
    (
        request(motion=[joint_motion(names=('a', 'b'))]),
        Response.INVALID_JOINTS,
        'Sample 0: Joint names do not fit',
    ),
    (
        request(motion=stamped_motions([0.0, 0.0])),
        Response.INVALID_MOTION,
        'stamps must increase strictly, but stamps[0] = 0.0 s',
    ),
    (
        request(motion=[joint_motion(), joint_motion(MOTION[:4])]),
        Response.INVALID_MOTION,
        'Sample 1 holds 4 orders',
    ),
    (
        request(motion=[joint_motion(snap=[math.nan, 0.0])]),
        Response.INVALID_MOTION,
        'nan',
    ),
    *(
        (
            request(motion=[joint_motion()], wrenches=[message]),
            Response.INVALID_WRENCH,
            reason,
        )
        for message, reason in BAD_WRENCHES
        if message.header.frame_id
    ),
    (
        request(motion=stamped_motions([0.0, 0.1, 0.2]), wrenches=[wrench_motion()] * 2),
        Response.INVALID_WRENCH,
        'one per sample',
    ),
    *(
        (request(trajectory=message), None, reason)
        for message, reason in BAD_TRAJECTORIES
        if message.joint_names or message.points
    ),
]


def test_service_answers_a_bad_request_with_the_reason(harness):
    for message, code, reason in BAD_REQUESTS:
        response = harness.call(message)
        assert not response.success
        assert response.error_code not in (Response.SUCCESS, Response.INTERNAL_ERROR)
        assert code in (None, response.error_code)
        assert reason in response.message
        assert len(response.effort_trajectory.time_from_start) == 0


def test_stream_goes_on_while_the_service_computes(start):
    harness = start({'robot_description': robots.TWO_LINK, 'max_samples': 2_000_000})
    harness.publishers['joint_trajectory'].publish(trajectory(times=(0.0, 300.0, 600.0)))
    harness.received('joint_effort', 2)
    assert harness.service.wait_for_service(TIMEOUT)
    future = harness.service.call_async(
        request(trajectory=trajectory(times=(0.0, 50.0, 100.0)), sample_period=0.002)
    )
    before = len(harness.messages['hodyn_node/joint_effort'])
    harness.wait(future.done, 'service response')
    during = len(harness.messages['hodyn_node/joint_effort']) - before
    assert future.result().success
    assert len(future.result().effort_trajectory.time_from_start) == 50_001
    assert during >= 2


# Process


def run_node(*arguments, **options):
    return subprocess.Popen(
        [sys.executable, '-m', 'hodyn_ros.ros.nodes.hodyn_node', '--ros-args', *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={
            **os.environ,
            'PYTHONUNBUFFERED': '1',
            'RCUTILS_LOGGING_BUFFERED_STREAM': '0',
            'ROS_DOMAIN_ID': str(next_domain()),
        },
        **options,
    )


def end_of(process, number, times):
    """Send a signal and return the exit code and all that the process still says."""
    lines = []
    reader = threading.Thread(target=lambda: lines.extend(process.stdout))
    reader.start()
    for _ in range(times):
        process.send_signal(number)
    code = process.wait(TIMEOUT)
    reader.join(TIMEOUT)
    process.stdout.close()
    return code, ''.join(lines)


# Further interrupts do not cut the end short.
@pytest.mark.parametrize(('number', 'times'), [(signal.SIGTERM, 1), (signal.SIGINT, 3)])
def test_signal_ends_the_node_with_exit_code_0_and_no_traceback(number, times):
    process = run_node()
    assert 'Waiting for a robot description' in process.stdout.readline()
    code, output = end_of(process, number, times)
    assert code == 0
    assert 'Traceback' not in output


@pytest.mark.parametrize(
    ('argument', 'reason'),
    [
        ('publish_rate', 'cannot start'),
        ('friction.joint1.viscous:=-1', 'friction.joint1.viscous is -1, expected'),
    ],
)
def test_bad_parameter_ends_the_node_with_a_message(argument, reason):
    process = run_node('-p', argument)
    output, _ = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 1
    assert reason in output
    assert 'Traceback' not in output


def test_efforts_are_mirrored_for_plotting_tools_if_asked_for(start, model):
    harness = start({'mirror_efforts': True})
    for order in range(3):
        harness.listen(JointState, f'hodyn_node/joint_effort/order_{order}')
    harness.describe_and_wait(robots.TWO_LINK)
    harness.publishers['joint_motion'].publish(joint_motion(MOTION[:4]))
    (whole,) = harness.received('joint_effort')
    for order in range(2):
        (message,) = harness.received(f'joint_effort/order_{order}')
        assert message.header == whole.header
        assert list(message.name) == list(NAMES)
        assert message.effort == getattr(whole, EFFORTS[order])
    assert not harness.messages['hodyn_node/joint_effort/order_2'], 'the motion has no snap'
