"""Messages that are written as bytes hold what was given; motions suit compiled code."""

from __future__ import annotations

import numpy as np
import pytest
from hodyn_msgs.msg import JointEffort, JointMotion
from rclpy.serialization import deserialize_message
from support import robots

from hodyn_ros import RobotModel
from hodyn_ros.ros.conversions import (
    EFFORT_FIELDS,
    MOTION_FIELDS,
    EffortWriter,
    effort_mirror,
    motion_from_message,
)

MODELS = [RobotModel.from_urdf(text) for text in (robots.TWO_LINK, 'panda')]


@pytest.mark.parametrize('model', MODELS)
def test_written_efforts_are_read_back_whatever_was_written_before(model):
    writer = EffortWriter(model)
    random = np.random.default_rng(1)
    for _ in range(200):
        orders = int(random.integers(1, 4))
        effort = random.normal(size=(orders, model.n_joints))
        std = random.random(effort.shape) if random.random() < 0.5 else None
        stamp, delay = int(random.integers(0, 2**31 * 10**9)), random.normal()
        source, continuous = int(random.integers(0, 4)), int(random.integers(-1, 3))
        data = writer.write(effort, stamp, source, continuous, std, delay)
        message = deserialize_message(data, JointEffort)
        assert message.header.frame_id == model.base_link
        assert tuple(message.joint_names) == model.joint_names
        assert message.header.stamp.sec * 10**9 + message.header.stamp.nanosec == stamp
        for values, suffix in ((effort, ''), (() if std is None else std, '_std')):
            for order, field in enumerate(EFFORT_FIELDS):
                written = list(values[order]) if order < len(values) else []
                assert list(getattr(message, field + suffix)) == written
        assert message.valid_order == orders - 1
        assert message.continuous_order == min(continuous, orders - 1)
        assert (message.source, message.delay) == (source, delay)


def test_what_is_written_later_does_not_change_what_was_written():
    writer = EffortWriter(MODELS[0])
    first = writer.write(np.ones((3, 2)), 1, 1, 2)
    writer.write(np.zeros((3, 2)), 2, 1, 2)
    assert list(deserialize_message(first, JointEffort).effort) == [1.0, 1.0]


def test_mirror_holds_one_order():
    mirror = effort_mirror(MODELS[0], 3 * 10**9 + 4, np.array([1.0, 2.0]))
    assert (mirror.header.stamp.sec, mirror.header.stamp.nanosec) == (3, 4)
    assert mirror.header.frame_id == MODELS[0].base_link
    assert (tuple(mirror.name), list(mirror.effort)) == (MODELS[0].joint_names, [1.0, 2.0])


def test_motion_of_joints_in_another_order_needs_no_copy_for_compiled_code():
    model = MODELS[1]
    values = np.random.default_rng(2).normal(size=(5, model.n_joints))
    message = JointMotion(joint_names=list(reversed(model.joint_names)))
    for field, row in zip(MOTION_FIELDS, values):
        setattr(message, field, row.tolist())
    motion = motion_from_message(model, message)
    np.testing.assert_array_equal(motion, values[:, ::-1])
    assert motion.flags.c_contiguous
