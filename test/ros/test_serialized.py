"""Motions and efforts as bytes are those that rclpy packs and unpacks."""

import numpy as np
import pytest
from hodyn_msgs.msg import JointEffort
from rclpy.serialization import deserialize_message, serialize_message
from support import robots
from support.messages import joint_motion, stamp_of

from hodyn_ros import RobotModel
from hodyn_ros.errors import HodynError
from hodyn_ros.ros.base.conversions import (
    message_of_joints,
    motion_from_message,
    write_efforts,
)
from hodyn_ros.ros.base.serialized import EffortWriter, MotionReader

NAMES = ('shoulder', 'elbow')


@pytest.fixture(scope='module')
def model():
    return RobotModel.from_urdf(robots.TWO_LINK)


def test_motions_are_read_as_rclpy_unpacks_them(model, monkeypatch):
    unpacked = []
    name = 'hodyn_ros.ros.base.serialized.deserialize_message'
    monkeypatch.setattr(
        name, lambda *given: unpacked.append(1) or deserialize_message(*given)
    )
    reader, rng = MotionReader(), np.random.default_rng(5)
    for number in range(400):
        motion = rng.normal(size=(rng.choice([3, 4, 5], p=[0.1, 0.1, 0.8]), 2))
        names = NAMES[:: rng.choice([1, -1], p=[0.8, 0.2])]
        if number % 17 == 0:
            motion[-1, rng.integers(2)] = rng.choice([np.nan, np.inf])
        if number % 19 == 0:
            names = ('wrist', *names[1:])
        message = joint_motion(motion, names, stamp=10**18 + number)
        message.header.frame_id = 'x' * (number // 40)
        data = serialize_message(message)
        if number % 23 == 0:
            data = data[: rng.integers(len(data))]
        try:
            message = deserialize_message(data, type(message))
            expected = motion_from_message(model, message), stamp_of(message)
        except Exception as error:
            with pytest.raises(type(error)) as refused:
                reader.read(data, model)
            assert str(refused.value) == str(error)
            continue
        found = reader.read(data, model)
        np.testing.assert_array_equal(found[0], expected[0])
        assert found[0].flags.c_contiguous and found[1] == expected[1]
    assert len(unpacked) < 350, 'numbers were read where they stand'


def test_fields_of_other_lengths_are_not_taken_for_each_other(model):
    reader = MotionReader()
    message = joint_motion(np.ones((5, 2)), NAMES)
    reader.read(serialize_message(message), model)
    message.jerk, message.snap = [1.0], [1.0, 2.0, 3.0]
    with pytest.raises(HodynError, match='jerk has 1 values, expected 2'):
        reader.read(serialize_message(message), model)


def test_efforts_are_written_as_rclpy_packs_them(model):
    writer, rng = EffortWriter(model), np.random.default_rng(6)
    message = message_of_joints(JointEffort, model)
    for number in range(200):
        effort = rng.normal(size=(rng.integers(1, 4), 2))
        std = rng.random(effort.shape) if number % 5 == 0 else None
        given = effort, 10**18 + number, int(rng.integers(4)), 2, std, 0.1 * (number % 3)
        write_efforts(message, *given)
        found = writer.message(*given)
        if isinstance(found, bytes):
            found = deserialize_message(found, JointEffort)
        assert found == message
