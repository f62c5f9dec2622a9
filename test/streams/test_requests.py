"""What is taken of a serialized trajectory, whose head is read without unpacking it."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rclpy.serialization import serialize_message
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from hodyn_ros import HodynError
from hodyn_ros.streams.motion_stream import CHUNK
from hodyn_ros.streams.requests import request_of, trajectory_head


def trajectory(n_points=0, names=(), frame_id='', seconds=0, nanoseconds=0):
    message = JointTrajectory(joint_names=list(names))
    message.header.frame_id = frame_id
    message.header.stamp.sec, message.header.stamp.nanosec = seconds, nanoseconds
    message.points = [JointTrajectoryPoint(positions=[1.0] * len(names))] * n_points
    return message


@given(
    n_points=st.integers(0, 20),
    names=st.lists(
        st.text(st.characters(exclude_categories=['Cs']), max_size=9), max_size=9
    ),
    frame_id=st.text(st.characters(exclude_categories=['Cs']), max_size=9),
    seconds=st.integers(-(2**31), 2**31 - 1),
    nanoseconds=st.integers(0, 2**32 - 1),
)
def test_head_is_that_of_the_message(n_points, names, frame_id, seconds, nanoseconds):
    names, frame_id = [name.replace('\0', '') for name in names], frame_id.replace('\0', '')
    message = trajectory(n_points, names, frame_id, seconds, nanoseconds)
    head = trajectory_head(serialize_message(message))
    assert (head.stamp.sec, head.stamp.nanosec) == (seconds, nanoseconds)
    assert (head.n_names, head.n_points) == (len(names), n_points)


@given(st.binary(max_size=64))
def test_head_of_anything_is_read_or_refused(data):
    try:
        trajectory_head(data)
    except ValueError:
        pass


@pytest.mark.parametrize('length', [0, 3, 8, 20])
def test_message_that_is_cut_off_is_refused(length):
    data = serialize_message(trajectory(1, ['a', 'b']))[:length]
    with pytest.raises(ValueError, match='cut off|not in plain CDR'):
        trajectory_head(data)


def test_message_in_the_other_byte_order_is_read():
    header = struct.pack('>iI', 5, 6) + struct.pack('>I', 1) + b'\0\0\0\0'
    names = struct.pack('>I', 1) + struct.pack('>I', 2) + b'a\0\0\0'
    data = b'\0\0\0\0' + header + names + struct.pack('>I', 77)
    head = trajectory_head(data)
    assert (head.stamp.sec, head.stamp.nanosec, head.n_names, head.n_points) == (
        5,
        6,
        1,
        77,
    )


def test_so_many_names_are_not_looked_through():
    head = trajectory_head(serialize_message(trajectory(0, ['a'] * 5000)))
    assert (head.n_names, head.n_points) == (5000, None)


# What is taken of them


def serialized(n_points, seconds=0):
    return serialize_message(trajectory(n_points, ('a', 'b'), seconds=seconds))


def test_stamp_and_content_are_kept():
    data = serialized(3, 7)
    assert request_of(data, 5) == (data, 7 * 10**9, 'joint_trajectory')


def test_trajectory_without_points_is_a_stop():
    assert request_of(serialized(0), 5).data == b''


def test_chunk_without_points_is_refused():
    with pytest.raises(HodynError, match='to stop, send an empty trajectory'):
        request_of(serialized(0), 5, CHUNK)


def test_too_many_points_are_refused_before_they_are_unpacked():
    with pytest.raises(HodynError, match='6 points, more than max_trajectory_points'):
        request_of(serialized(6), 5)


@pytest.mark.parametrize('data', [b'', b'\0\1\0\0', b'\0\1\0\0' + b'\xff' * 50])
def test_bytes_that_are_no_trajectory_are_refused(data):
    with pytest.raises(HodynError):
        request_of(data, 5)
