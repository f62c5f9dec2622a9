"""What is taken of trajectories as messages, before they are unpacked."""

import pytest
from rclpy.serialization import serialize_message
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from hodyn_ros import HodynError
from hodyn_ros.streams.motion_stream import CHUNK
from hodyn_ros.streams.requests import request_of


def message(n_points, stamp=0):
    made = JointTrajectory(joint_names=['a', 'b'])
    made.header.stamp.sec = stamp
    made.points = [JointTrajectoryPoint(positions=[0.0, 1.0]) for _ in range(n_points)]
    return serialize_message(made)


def test_stamp_and_content_are_kept():
    data = message(3, stamp=7)
    assert request_of(data, 5) == (data, 7 * 10**9, 'joint_trajectory')


def test_trajectory_without_points_is_a_stop():
    assert request_of(message(0), 5).data == b''


def test_chunk_without_points_is_refused():
    with pytest.raises(HodynError, match='to stop, send an empty trajectory'):
        request_of(message(0), 5, CHUNK)


def test_too_many_points_are_refused_before_they_are_unpacked():
    with pytest.raises(HodynError, match='6 points, more than max_trajectory_points'):
        request_of(message(6), 5)


@pytest.mark.parametrize('data', [b'', b'\0\1\0\0', b'\0\1\0\0' + b'\xff' * 50])
def test_bytes_that_are_no_trajectory_are_refused(data):
    with pytest.raises(HodynError):
        request_of(data, 5)
