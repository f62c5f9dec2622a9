"""Measured joint states on real middleware: what is estimated, vouched for and refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hodyn_msgs.msg import JointEffort, MotionEstimate
from sensor_msgs.msg import JointState
from support import robots
from support.ros_harness import Harness

from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.ros.base.inputs import JointStateMessages as MeasuredMotion
from hodyn_ros.ros.base.node_settings import NodeSettings
from hodyn_ros.ros.base.parameters import make_settings

NAMES = ['shoulder', 'elbow']
FIELDS = ('position', 'velocity', 'acceleration', 'jerk', 'snap')
EFFORTS = ('effort', 'effort_dot', 'effort_ddot')
BEGIN = 1000 * 10**9
PERIOD = 10**6 * 2  # ns
NOISE = 1e-6
BURST = 50


@pytest.fixture(scope='module')
def harness():
    made = Harness({'input_timeout': 0.0, 'answer_all': True})
    made.describe_and_wait(robots.TWO_LINK)
    made.sent, made.base = 0, BEGIN
    made.joint_states = made.advertise(JointState, 'joint_states')
    made.listen(MotionEstimate, 'hodyn_node/motion_estimate')
    yield made
    made.close()


@pytest.fixture
def fresh(harness):
    """Harness whose node has taken all measurements and forgotten them."""
    settle(harness)
    harness.base += 1000 * 10**9  # what arrives of before is recognised by its stamp
    harness.set(estimator__enabled=False)
    harness.set(estimator__enabled=True)
    harness.forget()
    return harness


def true_motion(time):
    """Motion (5, 2) at a time in seconds."""
    k = np.arange(5)[:, None]
    omega = np.array([3.0, 4.0])
    amplitude = np.array([0.4, 0.6])
    return amplitude * omega**k * np.sin(omega * time + 0.5 * math.pi * k)


def stamps(harness, count):
    return [harness.base + number * PERIOD for number in range(count)]


def phase(stamp):
    """Time in the motion [s]."""
    return stamp % (1000 * 10**9) / 1e9


def joint_state(stamp, names=NAMES, **fields):
    message = JointState(name=list(names))
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)
    motion = true_motion(phase(stamp))
    values = dict(zip(NAMES, motion[0]))
    message.position = [values.get(name, 0.1) for name in names]
    for field, value in fields.items():
        setattr(message, field, value)
    return message


def send(harness, message):
    harness.joint_states.publish(message)
    harness.sent += 1
    if harness.sent % BURST == 0:
        settle(harness)  # the input asks for best effort: more at once might be lost


def settle(harness):
    """Wait until everything that was sent has been taken or refused."""

    def is_settled():
        total = harness.node.diagnostics.input('joint_states').total
        return total['received'] + total['refused'] == harness.sent

    if harness.sent:
        harness.wait(is_settled, 'all joint states taken')


def stream(harness, count, **options):
    random = np.random.default_rng(1)
    for stamp in stamps(harness, count):
        message = joint_state(stamp, **options)
        message.position = (
            np.array(message.position)
            + NOISE * random.standard_normal(len(message.position))
        ).tolist()
        send(harness, message)


def stamp_of(message):
    return message.header.stamp.sec * 10**9 + message.header.stamp.nanosec


def since(harness, topic):
    """Messages whose stamp belongs to this test."""
    messages = harness.messages[f'hodyn_node/{topic}']
    return [message for message in messages if stamp_of(message) >= harness.base]


def efforts(harness):
    found = since(harness, 'joint_effort')
    assert all(message.source == JointEffort.SOURCE_JOINT_STATES for message in found)
    return found


def estimates(harness):
    return since(harness, 'motion_estimate')


def wait_for_last(harness, messages, count):
    """Wait for messages up to near the end of a stream."""
    end = harness.base + (count - 80) * PERIOD  # the estimates lag behind
    harness.wait(
        lambda: (found := messages(harness)) and stamp_of(found[-1]) >= end, 'the last ones'
    )
    return messages(harness)


def arrays(message, fields, suffix=''):
    rows = [getattr(message, name + suffix) for name in fields]
    return np.array([row for row in rows if len(row)])


def test_efforts_are_those_of_the_motion_as_far_as_it_is_vouched_for(fresh):
    stream(fresh, 1500)
    found = wait_for_last(fresh, efforts, 1500)
    model = RobotModel.from_urdf(robots.TWO_LINK)
    settled = [m for m in found if phase(stamp_of(m)) > 1.0]
    assert len(settled) > 700
    ratios = []
    for message in settled:
        true = inverse_dynamics(model, true_motion(phase(stamp_of(message))))
        estimated, std = arrays(message, EFFORTS), arrays(message, EFFORTS, '_std')
        assert len(estimated) == message.valid_order + 1 == len(std)
        assert message.delay > 0.0
        ratios.append(np.abs(estimated - true[: len(estimated)])[0] / std[0])
    # Nearly always within three standard deviations, and these are not excessive.
    assert np.mean(np.array(ratios) < 3.0) > 0.95
    last = settled[-1]
    assert np.abs(arrays(last, EFFORTS, '_std')[0]).max() < 0.1 * 50.0


def test_bad_measurement_is_refused_and_the_next_one_is_taken(fresh):
    for fields, reason in (
        ({'names': ['shoulder']}, 'missing: elbow'),
        ({'names': ['shoulder', 'elbow', 'elbow']}, 'repeated: elbow'),
        ({'position': [1.0]}, 'position has 1 values, expected 2'),
        ({'position': [1.0, math.nan]}, "joint 'elbow' is nan"),
        ({'position': [math.inf, 0.0]}, "joint 'shoulder' is inf"),
    ):
        send(fresh, joint_state(BEGIN, **fields))
        fresh.refuses('joint_states', reason)
    # Those of other joints alone are passed over.
    refused = fresh.node.diagnostics.input('joint_states').total['refused']
    for stamp in stamps(fresh, 3):
        send(fresh, joint_state(stamp, names=['gripper']))
    settle(fresh)
    assert fresh.node.diagnostics.input('joint_states').total['refused'] == refused
    assert not estimates(fresh)
    stream(fresh, 400)
    found = wait_for_last(fresh, estimates, 400)
    assert len(found) > 100
    for estimate in found:
        assert np.isfinite(arrays(estimate, FIELDS)).all()


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
        message = JointState(
            name=NAMES, position=[math.remainder(angle, 2.0 * math.pi), 0.3]
        )
        stamp = BEGIN + number * 5_000_000
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)
        estimate = motion.update(message, stamp, 0.0)
        wrapped += abs(message.position[0]) > 3.1
        if estimate is not None and time > 3.0:
            past = (estimate.time - BEGIN) / 1e9
            assert estimate.valid_order >= 2
            assert abs(estimate.motion[1, 0] - 1.5 - 0.4 * math.cos(2.0 * past)) < 1e-3
    assert wrapped > 10


def test_motions_start_where_the_robot_is_and_not_where_it_was():
    motion = measured(('revolute', 'revolute'))
    for number in range(600):
        stamp = BEGIN + number * 5_000_000
        message = JointState(name=NAMES, position=[0.005 * number, 0.3])
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)
        motion.update(message, stamp, 0.0)
    now = stamp + 3_000_000
    state = motion.state(now, 0.5)
    np.testing.assert_allclose(state.motion[0], [(now - BEGIN) / 1e9, 0.3], atol=1e-4)
    np.testing.assert_allclose(state.motion[1], [1.0, 0.0], atol=1e-2)
    assert not state.in_progress
    assert state.time == stamp
    assert motion.state(stamp + 10**9, 0.5) is None
