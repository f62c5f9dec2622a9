"""Measured joint states on real middleware: what is estimated, vouched for and refused."""

from __future__ import annotations

import math

import numpy as np
from sensor_msgs.msg import JointState
from support import robots
from support.ros_harness import Harness, dict_of

from hodyn_ros.ros.base.node_settings import NodeSettings
from hodyn_ros.ros.base.parameters import make_settings
from hodyn_ros.streams.measured import MeasuredMotion

NAMES = ['shoulder', 'elbow']
BEGIN = 1000 * 10**9


def joint_state(names=NAMES, position=(0.1, 0.2)):
    message = JointState(name=list(names), position=list(position))
    message.header.stamp.sec = 1000
    return message


def test_bad_measurement_is_refused_and_those_of_other_joints_are_passed_over():
    harness = Harness({'input_timeout': 0.0})
    try:
        harness.describe_and_wait(robots.TWO_LINK)
        states = harness.advertise(JointState, 'joint_states')
        for fields, reason in (
            ({'names': ['shoulder']}, 'missing: elbow'),
            ({'names': [*NAMES, 'elbow'], 'position': [0.1] * 3}, 'repeated: elbow'),
            ({'position': [1.0]}, 'position has 1 values, expected 2'),
            ({'position': [1.0, math.nan]}, "joint 'elbow' is nan"),
            ({'position': [math.inf, 0.0]}, "joint 'shoulder' is inf"),
        ):
            states.publish(joint_state(**fields))
            harness.refuses('joint_states', reason)
        refused = harness.node.diagnostics.input('joint_states').total['refused']
        states.publish(joint_state(['gripper'], [0.1]))
        states.publish(joint_state())
        found = dict_of(
            harness.status('joint_states', lambda s: dict_of(s)['received'] != '0')
        )
        assert int(found['refused']) == refused
    finally:
        harness.close()


def measured(types=('continuous', 'revolute')):
    made = MeasuredMotion()
    made.use(make_settings(NodeSettings, {}).estimator, tuple(NAMES), types)
    return made


def test_continuous_joint_may_wrap_around():
    motion = measured()
    wrapped = 0
    for number in range(2000):
        time = 0.005 * number
        angle = 1.5 * time + 0.2 * math.sin(2.0 * time)
        position = np.array([math.remainder(angle, 2.0 * math.pi), 0.3])
        stamp = BEGIN + number * 5_000_000
        estimate = motion.take(position, stamp)
        wrapped += abs(position[0]) > 3.1
        if estimate is not None and time > 3.0:
            past = (estimate.time - BEGIN) / 1e9
            assert estimate.valid_order >= 2
            assert abs(estimate.motion[1, 0] - 1.5 - 0.4 * math.cos(2.0 * past)) < 1e-3
    assert wrapped > 10


def test_motions_start_where_the_robot_is_and_not_where_it_was():
    motion = measured(('revolute', 'revolute'))
    for number in range(600):
        stamp = BEGIN + number * 5_000_000
        motion.take(np.array([0.005 * number, 0.3]), stamp)
    now = stamp + 3_000_000
    state = motion.state(now, 0.5)
    np.testing.assert_allclose(state.motion[0], [(now - BEGIN) / 1e9, 0.3], atol=1e-4)
    np.testing.assert_allclose(state.motion[1], [1.0, 0.0], atol=1e-2)
    assert not state.in_progress
    assert state.time == stamp
    assert motion.state(stamp + 10**9, 0.5) is None
