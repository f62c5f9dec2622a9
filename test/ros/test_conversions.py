"""Messages of efforts hold what was given; motions suit compiled code."""

from __future__ import annotations

import numpy as np
import pytest
from hodyn_msgs.msg import JointEffort, JointMotion
from support import robots

from hodyn_ros import RobotModel
from hodyn_ros.ros.base.conversions import (
    EFFORT_FIELDS,
    MOTION_FIELDS,
    message_of_joints,
    motion_from_message,
    write_efforts,
)

MODELS = [RobotModel.from_urdf(text) for text in (robots.TWO_LINK, 'panda')]


@pytest.mark.parametrize('model', MODELS)
def test_message_holds_the_efforts_whatever_it_held_before(model):
    message = message_of_joints(JointEffort, model)
    random = np.random.default_rng(1)
    for _ in range(200):
        orders = int(random.integers(1, 4))
        effort = random.normal(size=(orders, model.n_joints))
        std = random.random(effort.shape) if random.random() < 0.5 else None
        stamp, delay = int(random.integers(0, 2**31 * 10**9)), random.normal()
        source, continuous = int(random.integers(0, 4)), int(random.integers(-1, 3))
        write_efforts(message, effort, stamp, source, continuous, std, delay)
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


def test_motion_of_joints_in_another_order_needs_no_copy_for_compiled_code():
    model = MODELS[1]
    values = np.random.default_rng(2).normal(size=(5, model.n_joints))
    message = JointMotion(joint_names=list(reversed(model.joint_names)))
    for field, row in zip(MOTION_FIELDS, values):
        setattr(message, field, row.tolist())
    motion = motion_from_message(model, message)
    np.testing.assert_array_equal(motion, values[:, ::-1])
    assert motion.flags.c_contiguous
