"""What is taken of a serialized trajectory, whose head is read without unpacking it."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rclpy.serialization import serialize_message
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from hodyn_ros import HodynError
from hodyn_ros.streams.received import request_of

CHUNK = 'position_chunk'


def trajectory(n_points=0, names=(), frame_id='', seconds=0, nanoseconds=0):
    message = JointTrajectory(joint_names=list(names))
    message.header.frame_id = frame_id
    message.header.stamp.sec, message.header.stamp.nanosec = seconds, nanoseconds
    message.points = [JointTrajectoryPoint(positions=[1.0] * len(names))] * n_points
    return message


TEXT = st.text(
    st.characters(exclude_categories=['Cs'], exclude_characters='\0'), max_size=9
)


@given(
    n_points=st.integers(0, 20),
    names=st.lists(TEXT, max_size=9),
    frame_id=TEXT,
    seconds=st.integers(0, 2**31 - 2**20),
    nanoseconds=st.integers(0, 10**9 - 1),
)
def test_stamp_and_number_of_points_are_read(
    n_points, names, frame_id, seconds, nanoseconds
):
    data = serialize_message(trajectory(n_points, names, frame_id, seconds, nanoseconds))
    request = request_of(data, n_points)
    assert request.stamp == seconds * 10**9 + nanoseconds
    assert request.data == (data if n_points else b'')
    if n_points:
        with pytest.raises(HodynError, match=f'it has {n_points} points, more than'):
            request_of(data, n_points - 1)


@pytest.mark.parametrize(('seconds', 'nanoseconds'), [(-1, 0), (2**31 - 1, 0), (0, 10**9)])
def test_stamp_that_no_motion_can_follow_is_refused(seconds, nanoseconds):
    message = trajectory(1, ('a',), '', seconds, nanoseconds)
    with pytest.raises(HodynError, match='The stamp is'):
        request_of(serialize_message(message), 5)


def whole():
    return serialize_message(trajectory(3, ('a', 'b'), seconds=7))


def test_message_that_is_cut_off_or_of_other_bytes_is_refused():
    good = whole()
    damaged = [good[:length] for length in range(44)]  # before the number of points
    damaged += [b'\0\1\0\0' + b'\xff' * 50, b'\0\2' + good[2:], b'\1\1' + good[2:]]
    for data in damaged:
        with pytest.raises(HodynError, match='cut off|not in plain CDR'):
            request_of(data, 5)


def test_message_in_the_other_byte_order_is_read():
    header = struct.pack('>iI', 5, 6) + struct.pack('>I', 1) + b'\0\0\0\0'
    names = struct.pack('>I', 1) + struct.pack('>I', 2) + b'a\0\0\0'
    data = b'\0\0\0\0' + header + names + struct.pack('>I', 77)
    assert request_of(data, 77) == (data, 5 * 10**9 + 6, 'joint_trajectory')
    with pytest.raises(HodynError, match='77 points'):
        request_of(data, 76)


def test_more_names_than_any_robot_has_are_refused_unread():
    head = struct.pack('<iIIxxxxI', 5, 6, 1, 10**9)
    with pytest.raises(HodynError, match='1000000000 joint names'):
        request_of(b'\0\1\0\0' + head, 5)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('n_points', 'most', 'topic', 'reason'),
    [
        (0, 5, CHUNK, 'to stop, send an empty trajectory'),
        (3, 2, 'joint_trajectory', '3 points, more than max_trajectory_points'),
    ],
)
def test_what_a_stream_cannot_take_is_refused_unread(n_points, most, topic, reason):
    with pytest.raises(HodynError, match=reason):
        request_of(serialize_message(trajectory(n_points, ('a',))), most, topic)


def test_stamp_and_content_are_kept_and_without_points_it_is_a_stop():
    assert request_of(whole(), 5) == (whole(), 7 * 10**9, 'joint_trajectory')
    assert request_of(serialize_message(trajectory(0, ('a',))), 5).data == b''
