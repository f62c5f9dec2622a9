"""Garbage in every field of every input and of the service: refused or answered, never fatal.

After whatever is sent, the node lives, a good sample is answered rightly, and nothing that is not
finite has been published. What happens to be a valid sample must be answered rightly too.
"""

from __future__ import annotations

import itertools
import struct

import numpy as np
import pytest
from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import Vector3, WrenchStamped
from geometry_msgs.msg import Wrench as WrenchMessage
from hodyn_msgs.msg import JointEffort, JointMotion, JointMotionTrajectory, WrenchMotion
from hodyn_msgs.srv import ComputeInverseDynamics
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from support import fault_tools, robots
from support.fault_tools import INPUTS, Pair, Stream, motion_bytes
from support.messages import (
    EFFORTS,
    FIELDS,
    GRAVITY,
    MOTION,
    NAMES,
    joint_motion,
    joint_trajectory,
    motion_trajectory,
    nanoseconds,
)
from support.oracles import taylor_rnea
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

Request, Response = ComputeInverseDynamics.Request, ComputeInverseDynamics.Response

TOPICS = tuple(INPUTS)
LINKS = ('base', 'upper', 'fore', 'tool')
NUMBERS = itertools.count(1)
FAR_AWAY = 'The robot cannot get from where it is', 'The trajectory begins elsewhere'
# No shorter example is looked for: each that fails takes as long as the longest wait.
fuzz = settings(
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.generate),
)

special = st.sampled_from(
    [
        0.0,
        -0.0,
        np.nan,
        np.inf,
        -np.inf,
        5e-324,
        -5e-324,
        1e-308,
        1.7e308,
        -1.7e308,
        1e154,
        1e16,
    ]
)
ordinary = st.floats(-10.0, 10.0)
number = st.one_of(ordinary, ordinary, special, st.floats(width=64))
row = st.one_of(
    st.lists(ordinary, min_size=2, max_size=2),
    st.lists(ordinary, min_size=2, max_size=2),
    st.lists(number, min_size=2, max_size=2),
    st.lists(number, max_size=4),
)
# No lone surrogates: they cannot be encoded, so they cannot be sent.
text = st.one_of(
    st.sampled_from(
        [
            '',
            'shoulder',
            'elbow',
            'base',
            'tool',
            'Elbow',
            'elbow ',
            '\u202eelbow',
            'é' * 300,
        ]
    ),
    st.text(st.characters(exclude_categories=['Cs'], exclude_characters='\0'), max_size=20),
)
names = st.one_of(
    st.sampled_from([['shoulder', 'elbow'], ['elbow', 'shoulder']]),
    st.sampled_from([['shoulder', 'elbow'], ['elbow', 'shoulder'], ['elbow', 'elbow'], []]),
    st.lists(text, max_size=4),
)
seconds = st.one_of(st.sampled_from([0, 1, -1, 2**31 - 1, -(2**31)]), st.integers(-5, 5))
stamps = st.builds(
    Time, sec=seconds, nanosec=st.sampled_from([0, 1, 10**9 - 1, 10**9, 2**32 - 1])
)


@st.composite
def motions(draw):
    message = JointMotion(joint_names=draw(names))
    message.header.frame_id = draw(text)
    orders = draw(st.integers(0, 5))
    for field in FIELDS[:orders]:
        setattr(message, field, draw(row))
    return message


@st.composite
def points(draw):
    point = JointTrajectoryPoint(positions=draw(row))
    for field in ('velocities', 'accelerations', 'effort'):
        if draw(st.booleans()) and draw(st.booleans()):
            setattr(point, field, draw(row))
    point.time_from_start = Duration(
        sec=draw(seconds),
        nanosec=draw(st.sampled_from([0, 1, 10**9 - 1, 10**9, 2**32 - 1])),
    )
    return point


@st.composite
def trajectories(draw):
    message = JointTrajectory(joint_names=draw(names))
    message.header.frame_id = draw(text)
    message.points = draw(st.lists(points(), max_size=4))
    if draw(st.booleans()):  # of which some are valid
        for index, point in enumerate(message.points):
            point.time_from_start = Duration(sec=0, nanosec=100_000_000 * index)
            point.velocities, point.accelerations = [], []
    message.header.stamp = draw(stamps)
    return message


vectors = st.builds(Vector3, x=number, y=number, z=number)
wrench_values = st.builds(WrenchMessage, force=vectors, torque=vectors)


@st.composite
def wrenches(draw):
    message = WrenchMotion(
        expressed_in=draw(st.integers(0, 255) | st.integers(0, 2)),
        acting=draw(st.integers(0, 255) | st.integers(0, 1)),
        wrench=draw(wrench_values),
        wrench_dot=draw(wrench_values),
        wrench_ddot=draw(wrench_values),
    )
    message.header.frame_id = draw(text)
    message.header.stamp = draw(stamps)
    return message


@st.composite
def motion_trajectories(draw):
    times = draw(st.sampled_from([[], [0.0], [0.0, 0.1]]) | st.lists(number, max_size=3))
    message = JointMotionTrajectory(joint_names=draw(names), time_from_start=times)
    size = 2 * len(times)
    values = st.lists(number, min_size=size, max_size=size) | st.lists(number, max_size=4)
    for field in FIELDS[: draw(st.integers(0, 5))]:
        setattr(message, field, draw(values))
    message.header.stamp = draw(stamps)
    return message


@st.composite
def requests(draw):
    request = Request(
        sample_period=draw(st.just(0.0) | number),
        sample_times=draw(st.just([]) | st.lists(number, max_size=4)),
        interpolation=draw(st.sampled_from(['', 'spline', 'jtc', 'jtc_upsampled']) | text),
    )
    if draw(st.booleans()):
        request.trajectory = draw(trajectories())
    if draw(st.booleans()):
        request.motion = draw(st.lists(motions(), max_size=3))
        for index, message in enumerate(request.motion):
            message.header.stamp = Time(sec=index)
    if draw(st.booleans()):
        request.motion_trajectory = draw(motion_trajectories())
    if draw(st.booleans()) and draw(st.booleans()):
        request.wrenches = draw(st.lists(wrenches(), max_size=3))
    if draw(st.booleans()) and draw(st.booleans()):
        request.start_state = draw(st.lists(motions(), max_size=1))
    return request


@pytest.fixture(scope='module')
def pair():
    with Pair(robots.TWO_LINK, diagnostics_period=0.02) as made:
        yield made


@pytest.fixture(autouse=True)
def health(pair):
    yield
    pair.check_health()
    assert 'Traceback' not in pair.node.log(), pair.node.log()


def expected_efforts(message):
    """Efforts that a motion message calls for; None if it is not valid."""
    rows = [list(getattr(message, field)) for field in FIELDS]
    known = next((k for k, values in enumerate(rows) if not values), len(rows))
    if known < 3 or any(rows[known:]) or sorted(message.joint_names) != sorted(NAMES):
        return None
    if (
        any(len(values) != 2 for values in rows[:known])
        or not np.isfinite(rows[:known]).all()
    ):
        return None
    order = [list(message.joint_names).index(name) for name in NAMES]
    motion = np.array(rows[:known])[:, order]
    with np.errstate(all='ignore'):
        return taylor_rnea(robots.TWO_LINK, NAMES, GRAVITY, motion)


def check_answer(message, given):
    """An answer to a valid sample is right; where power series overflow, finite is enough."""
    expected = expected_efforts(given)
    assert expected is not None, f'answered, but not valid: {given}'
    assert message.valid_order == len(expected) - 1
    if (
        np.abs(list(map(list, (given.position, given.velocity, given.acceleration)))).max()
        < 1e3
    ):
        efforts = np.array([getattr(message, f) for f in EFFORTS[: len(expected)]])
        scale = np.abs(expected).max(axis=1, keepdims=True)
        assert np.all(np.abs(efforts - expected) <= 1e-9 * scale + 1e-300), (
            efforts,
            expected,
        )


# Messages with valid structure


@fuzz
@given(message=motions())
@example(joint_motion(0.1 * MOTION[:4], names=NAMES[::-1]))
@example(joint_motion(np.full((5, 2), 1.7e308)))
@example(joint_motion(np.full((5, 2), 5e-324)))
def test_motion_of_any_content_is_answered_rightly_or_refused(pair, message):
    client = pair.client
    stamp = client.new_stamp()
    message.header.stamp = Time(sec=stamp // 10**9, nanosec=stamp % 10**9)
    client.publishers['joint_motion'].publish(message)
    # Answers come in order: with the next one, this one is decided.
    client.ask(robot=robots.TWO_LINK)
    expected = expected_efforts(message)
    if client.efforts.get(stamp):
        check_answer(client.efforts[stamp][0], message)
    elif expected is not None:
        assert not np.abs(expected).max() < 1e100, f'not answered: {message}'
    assert not client.not_finite


@fuzz
@given(stamp=stamps)
def test_motion_with_any_stamp_is_answered_with_it_or_refused(pair, stamp):
    client = pair.client
    message = joint_motion()
    message.header.stamp = stamp
    before = len(client.order)
    client.publishers['joint_motion'].publish(message)
    client.ask(robot=robots.TWO_LINK)
    value = nanoseconds(stamp)
    if stamp.nanosec < 10**9 and 0 < value < 2 * 10**18:
        assert client.order[before] == value
    elif value != 0:
        assert value not in client.order[before:]


@fuzz
@given(message=trajectories())
def test_trajectory_of_any_content_is_decided_and_the_next_one_is_answered(pair, message):
    client = pair.client
    publish = client.publishers['joint_trajectory'].publish
    status = client.statuses.get('joint_trajectory', {})
    refused = int(status.get('refused', 0))
    publish(message)
    # By its end the answer is known. It is not over by the time a busy machine has planned it.
    end = 4.0 + 1e-6 * next(NUMBERS)
    publish(joint_trajectory(times=(0.0, 2.0, end)))

    def is_decided():
        if any(abs(t.time_from_start[-1] - end) < 1e-8 for t in client.trajectories):
            return True
        # The first one may have begun to go far away, from where this one cannot be reached.
        now = client.statuses.get('joint_trajectory', {})
        is_refused = int(now.get('refused', 0)) > refused
        return is_refused and any(why in now['last error'] for why in FAR_AWAY)

    client.wait(is_decided, f'answer to the trajectory behind {message}', 60.0)
    assert not client.not_finite


@fuzz
@given(message=wrenches())
def test_wrench_of_any_content_is_taken_or_refused_and_zeros_end_it(pair, message):
    client = pair.client
    publish = client.publishers['wrench_motion'].publish
    publish(message)
    for link in LINKS:
        zeros = WrenchMotion()
        zeros.header.frame_id = link
        publish(zeros)
    client.ask_until_answered(robot=robots.TWO_LINK)
    assert not client.not_finite


@pytest.fixture
def without_wrenches(pair):
    """Robots without the links of a measured wrench end it; nothing else does."""
    yield
    pair.client.describe(robots.OTHER_JOINTS)
    pair.client.describe(robots.TWO_LINK)
    pair.client.ask_until_answered(robot=robots.TWO_LINK)


@fuzz
@given(message=wrenches())
def test_measured_wrench_of_any_content_does_no_harm(pair, without_wrenches, message):
    client = pair.client
    if message.header.frame_id == 'base':  # which all robots here have
        message.header.frame_id = 'tool'
    stamped = WrenchStamped(header=message.header, wrench=message.wrench)
    client.publishers['wrench'].publish(stamped)
    # On another topic, samples are answered or held back.
    client.send()
    assert pair.node.is_alive()
    assert not client.not_finite


@fuzz
@given(message=motions(), stamp=stamps)
def test_measured_joint_states_of_any_content_do_no_harm(pair, message, stamp):
    client = pair.client
    message.header.stamp = stamp
    client.publishers['joint_states'].publish(
        JointState(
            header=message.header,
            name=message.joint_names,
            position=message.position,
            velocity=message.velocity,
            effort=message.acceleration,
        )
    )
    client.ask(robot=robots.TWO_LINK)
    assert not client.not_finite


def samples_of(request):
    """Samples of the flat arrays of a request."""
    flat, samples = request.motion_trajectory, []
    for index in range(len(flat.time_from_start)):
        samples.append(JointMotion(joint_names=flat.joint_names))
        for field in FIELDS:
            setattr(samples[-1], field, getattr(flat, field)[2 * index : 2 * index + 2])
    return samples


@fuzz
@given(request=requests())
@example(Request(motion_trajectory=motion_trajectory([0.0, 1.0], [[[0.5, -0.5]] * 5] * 2)))
@example(Request(motion=[joint_motion(np.full((5, 2), 1.7e308))]))
def test_request_of_any_content_is_answered_rightly_or_refused_with_a_reason(pair, request):
    response = pair.client.call(request)
    assert response.error_code != Response.INTERNAL_ERROR, response.message
    assert response.success == (response.error_code == Response.SUCCESS)
    if not response.success:
        assert response.message
        return
    whole = response.effort_trajectory
    assert fault_tools.is_finite(whole)
    if (samples := request.motion or samples_of(request)) and not request.wrenches:
        for index, sample in enumerate(samples):
            part = slice(2 * index, 2 * index + 2)
            message = JointEffort(valid_order=whole.valid_order)
            for field in EFFORTS:
                setattr(message, field, getattr(whole, field)[part])
            check_answer(message, sample)


# Bytes


GOOD = {
    'robot_description': serialize_message(String(data=robots.HEAVIER_TWO_LINK)),
    'joint_motion': motion_bytes(stamp=5),
    'joint_trajectory': serialize_message(joint_trajectory()),
    'position_chunk': serialize_message(joint_trajectory()),
    'wrench_motion': serialize_message(WrenchMotion()),
    'wrench': serialize_message(WrenchStamped()),
    'joint_states': serialize_message(JointState(name=list(NAMES), position=[0.1, 0.2])),
}


@st.composite
def corrupted(draw, good):
    data = bytearray(good)
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(data) - 4))
        kind = draw(st.sampled_from(['byte', 'word', 'number']))
        if kind == 'byte':
            data[place] = draw(st.integers(0, 255))
        elif kind == 'word':  # a length that lies, if it happens to be one
            word = draw(st.sampled_from([0, 1, 255, 10**6, 2**31 - 1, 2**32 - 1]))
            data[place : place + 4] = struct.pack('<I', word)
        elif len(data) - place >= 8:
            data[place : place + 8] = struct.pack('<d', draw(special))
    # Without a byte it is no message: the middleware has the publisher wait for nothing.
    end = draw(st.just(len(data)) | st.integers(1, len(data)))
    return bytes(data[:end])


@pytest.mark.parametrize('topic', TOPICS)
@fuzz
@given(data=st.data())
def test_corrupt_bytes_do_no_harm(pair, topic, data):
    client = pair.client
    client.publishers[topic].publish(data.draw(corrupted(GOOD[topic])))
    publish = client.publishers['wrench_motion'].publish
    for link in LINKS:  # a wrench may have become a valid one
        zeros = WrenchMotion()
        zeros.header.frame_id = link
        publish(zeros)
    if topic == 'robot_description':
        client.publishers[topic].publish(String(data=robots.TWO_LINK))
        client.ask_until_answered_by(robots.TWO_LINK)  # a robot may have become another one
    client.ask_until_answered(robot=robots.TWO_LINK)
    assert pair.node.is_alive()
    assert not client.not_finite


def test_names_that_are_no_text_are_refused(pair):
    client = pair.client
    for name in (
        b'\xff\xfe',  # not UTF-8
        b'elb\xc3',  # cut off within a character
        b'el\0bow',
        b'\xed\xa0\x80',  # a lone surrogate
    ):
        client.wait_for_report()
        refused = client.count('joint_motion', 'refused')
        data = motion_bytes((b'shoulder', name), stamp=6)
        client.publishers['joint_motion'].publish(data)
        client.ask(robot=robots.TWO_LINK)
        client.wait_for_report()
        assert client.count('joint_motion', 'refused') == refused + 1
        assert client.status('joint_motion')['last error']
        assert 6 not in client.efforts


def test_description_that_is_no_text_leaves_the_robot_in_use(pair):
    client = pair.client
    for data in (b'\xff\xfe\0', b'<robot name="\xff"/>', b'<robot\0>', b''):
        size = struct.pack('<I', len(data) + 1)
        client.publishers['robot_description'].publish(b'\0\1\0\0' + size + data + b'\0')
    client.wait(
        lambda: client.status('model').get('refused description'),
        'refusal of the description',
    )
    client.ask(robot=robots.TWO_LINK)
    client.describe(robots.TWO_LINK)


# Descriptions in a row


def test_flapping_descriptions_leave_the_last_valid_one_in_use_and_the_stream_whole(pair):
    client = pair.client
    publish = client.publishers['robot_description'].publish
    invalid = ('', '<robot', robots.TWO_LINK.replace('revolute', 'floating'), '\u2603')
    with Stream(client, robots.TWO_LINK):
        for number in range(60):
            publish(String(data=invalid[number % len(invalid)]))
            publish(String(data=robots.TWO_LINK))
            client.answer(client.send())
        client.wait_for_model()
    for number in range(20):
        publish(String(data=invalid[number % len(invalid)]))
        publish(String(data=robots.HEAVIER_TWO_LINK))
    client.ask_until_answered_by(robots.HEAVIER_TWO_LINK)
    client.wait(
        lambda: client.status('model')['in preparation'] == 'no', 'last description'
    )
    client.ask(robot=robots.HEAVIER_TWO_LINK)
    publish(String(data=robots.TWO_LINK))
    client.ask_until_answered_by(robots.TWO_LINK)
