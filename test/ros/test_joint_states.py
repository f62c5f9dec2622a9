"""Measured joint states on real middleware: what is estimated, vouched for and refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hodyn_msgs.msg import JointEffort, MotionEstimate
from sensor_msgs.msg import JointState
from support import robots
from support.ros_harness import Harness, dict_of

from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.ros.base.inputs import JointStateMessages as MeasuredMotion
from hodyn_ros.ros.base.node_settings import NodeSettings
from hodyn_ros.ros.base.parameters import make_settings
from hodyn_ros.ros.planner.answers import in_nearest_turn
from hodyn_ros.trajectory.planning import Waypoints

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


def test_nothing_above_the_vouched_order_is_published(fresh):
    stream(fresh, 400)
    found = wait_for_last(fresh, efforts, 400)
    wait_for_last(fresh, estimates, 400)
    for message in estimates(fresh):
        for order, name in enumerate(FIELDS):
            expected = 2 if order <= message.valid_order else 0
            assert len(getattr(message, name)) == expected
            assert len(getattr(message, f'{name}_std')) == expected
    orders = {stamp_of(message): message.valid_order for message in estimates(fresh)}
    assert len(found) > 100
    for message in found:
        assert message.valid_order == orders.get(stamp_of(message), 4) - 2
        for number, name in enumerate(EFFORTS):
            assert bool(len(getattr(message, name))) == (number <= message.valid_order)


def test_highest_order_is_bounded_by_the_parameter(fresh):
    fresh.set(estimator__highest_order=0)
    try:
        stream(fresh, 400)
        assert {m.valid_order for m in wait_for_last(fresh, efforts, 400)} == {0}
    finally:
        fresh.set(estimator__highest_order=2)


def test_joints_are_matched_by_name_and_others_are_ignored(fresh):
    stream(fresh, 400, names=['gripper', 'elbow', 'lamp', 'shoulder'])
    last = wait_for_last(fresh, estimates, 400)[-1]
    assert list(last.joint_names) == NAMES
    true = true_motion(phase(stamp_of(last)))[0]
    np.testing.assert_allclose(last.position, true, atol=1e-4)


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


def test_measurement_of_another_time_is_refused(fresh):
    assert fresh.set(input_timeout=0.5).successful
    try:
        now = fresh.client.get_clock().now().nanoseconds
        for stamp in (now - 10**10, now + 10**10):
            fresh.forget()
            send(fresh, joint_state(stamp))
            assert dict_of(fresh.refuses('joint_states', 'input_timeout'))[
                'refused as stale'
            ]
    finally:
        fresh.set(input_timeout=0.0)


def test_samples_in_the_wrong_order_do_no_harm(fresh):
    random = np.random.default_rng(2)
    order = np.argsort(np.arange(600) + random.uniform(0.0, 4.0, 600))
    for number in order:
        send(fresh, joint_state(stamps(fresh, 600)[number]))
    found = wait_for_last(fresh, estimates, 600)
    for estimate in found[200:]:
        true = true_motion(phase(stamp_of(estimate)))
        np.testing.assert_allclose(estimate.position, true[0], atol=1e-4)
    assert np.all(np.diff([stamp_of(estimate) for estimate in found]) >= 0)


def test_estimation_can_be_switched_off(fresh):
    fresh.set(estimator__enabled=False)
    try:
        stream(fresh, 400)
        settle(fresh)
        assert not estimates(fresh)
    finally:
        fresh.set(estimator__enabled=True)


WHEEL = """<robot name="wheel"><link name="base"/><link name="rim"><inertial>
<mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="wheel" type="continuous"><parent link="base"/><child link="rim"/></joint></robot>"""


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


def test_revolute_joint_does_not_wrap_around():
    motion = measured(('revolute', 'revolute'))
    found = []
    for number in range(1000):
        message = JointState(
            name=NAMES, position=[math.remainder(0.02 * number, 6.28), 0.3]
        )
        stamp = BEGIN + number * 5_000_000
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)
        found.append(motion.update(message, stamp, 0.0))
    assert found[-1].motion[0, 0] < 4.0
    assert min(estimate.valid_order for estimate in found[300:] if estimate) == 0


def test_a_gap_is_told_once_when_the_estimate_starts_anew():
    motion = measured()
    gaps = []
    for number in range(400):
        stamp = BEGIN + number * 5_000_000 + (10**9 if number >= 200 else 0)
        message = JointState(name=NAMES, position=[0.1, 0.3 + 1e-5 * number])
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)
        motion.update(message, stamp, 0.0)
        if motion.is_behind_gap:
            gaps.append(number)
    assert gaps == [201]  # when a second one has followed


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


def test_measured_position_counts_also_where_nothing_can_be_estimated():
    motion = measured(('revolute', 'revolute'))
    for number in range(3):  # too rare for the estimator
        stamp = BEGIN + number * 250_000_000
        message = JointState(name=NAMES, position=[0.2, 0.3])
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)
        motion.update(message, stamp, 0.0)
    state = motion.state(stamp + 1000, 0.5)
    np.testing.assert_array_equal(state.motion[0], [0.2, 0.3])
    assert np.isnan(state.motion[1:]).all()


def test_start_state_of_a_continuous_joint_is_in_the_turn_of_the_first_waypoint():
    model = RobotModel.from_urdf(WHEEL)
    waypoints = Waypoints(('wheel',), [1.0], [[0.5]])
    motion = np.array([[13.0], [0.2], [0.0], [0.0], [0.0]])
    near = in_nearest_turn(model, motion, waypoints)
    np.testing.assert_allclose(near[0], 13.0 - 4.0 * math.pi)
    np.testing.assert_array_equal(near[1:], motion[1:])
