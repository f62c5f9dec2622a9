"""Arms on platforms that move: the input base_motion, and what follows from it or without it."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from geometry_msgs.msg import Inertia, Point, Pose, Quaternion, Twist, Vector3
from geometry_msgs.msg import Wrench as WrenchMessage
from hodyn_msgs.msg import (
    BaseMotion,
    JointEffort,
    MotionEstimate,
    WrenchMotion,
)
from hodyn_msgs.srv import ComputeInverseDynamics, RetimeTrajectory, SetPayload
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from support import robots
from support.messages import (
    EFFORTS,
    FIELDS,
    MOTION,
    NAMES,
    joint_motion,
    joint_trajectory,
    rows,
    stamp_of,
    time_of,
)
from support.oracles import taylor_rnea
from support.ros_harness import Harness, dict_of
from trajectory_msgs.msg import JointTrajectory

from hodyn_ros import RobotModel, Wrench, inverse_dynamics, moving_base_inverse_dynamics
from hodyn_ros.dynamics.inverse import effort_deviations
from hodyn_ros.errors import MotionError
from hodyn_ros.lie.so3 import hat
from hodyn_ros.ros.base import qos
from hodyn_ros.ros.base.inputs import BaseMotionMessages as BaseMotions
from hodyn_ros.ros.base.node_settings import NodeSettings
from hodyn_ros.ros.base.parameters import make_settings
from hodyn_ros.streams.base_motion import efforts_on

SECOND = 10**9
BEGIN = 1000 * SECOND
GRAVITY = np.array([0.0, 0.0, -9.81])
MODEL = RobotModel.from_urdf(robots.TWO_LINK, gravity=GRAVITY)
PAYLOAD = 2.0, (0.05, -0.02, 0.1), np.diag([0.01, 0.02, 0.015])
TURN = Rotation.from_rotvec([0.4, -0.3, 0.9])
TWIST = np.random.default_rng(4).normal(size=(4, 6)) * [[1.0], [2.0], [4.0], [8.0]]
RISE = np.zeros((4, 6))  # of a base that accelerates and does not turn
RISE[1, 3:] = 0.7, -1.3, 2.0


def base_message(stamp=BEGIN, turn=TURN, twist=TWIST, link='base', **fields):
    x, y, z, w = turn.as_quat()
    pose = Pose(
        position=Point(x=3.0, y=-2.0, z=0.5), orientation=Quaternion(x=x, y=y, z=z, w=w)
    )
    rows = [
        Twist(
            angular=Vector3(**dict(zip('xyz', row[:3]))),
            linear=Vector3(**dict(zip('xyz', row[3:]))),
        )
        for row in np.asarray(twist, dtype=float).tolist()
    ]
    message = BaseMotion(**{'child_frame_id': link, 'pose': pose, 'twist': rows, **fields})
    message.header.stamp, message.header.frame_id = time_of(stamp), 'map'
    return message


def pose(turn=TURN):
    made = np.eye(4)
    made[:3, :3] = turn.as_matrix()
    return made


def expected(turn=TURN, twist=TWIST, motion=MOTION, model=MODEL, wrench=None):
    return moving_base_inverse_dynamics(model, motion, (pose(turn), twist), wrench).effort


def assert_close(given, wanted, tolerance=1e-12):
    assert given.shape == wanted.shape
    scale = np.abs(wanted).max(axis=1, keepdims=True)
    assert np.all(np.abs(given - wanted) <= tolerance * scale), np.abs(given - wanted).max()


class Platform(Harness):
    """A node with the two-link arm on a platform, whose motion a client sends."""

    def __init__(self, **parameters):
        far = {'base_motion_timeout': 60.0, 'wrench_timeout': 60.0, 'input_timeout': 0.0}
        super().__init__({'base_motion': True, **far, **parameters})
        self.describe_and_wait(robots.TWO_LINK)
        self.base_motion = self.advertise(BaseMotion, 'base_motion')
        self.joint_states = self.advertise(JointState, 'joint_states')
        self.sent = {'base_motion': 0, 'joint_states': 0}
        self.instant = BEGIN

    def later(self):
        """Begin of another time, to which nothing of before belongs."""
        self.instant += 1000 * SECOND
        return self.instant

    def send(self, topic, message):
        """Send a message and wait until it has been taken or refused."""
        getattr(self, topic).publish(message)
        self.sent[topic] += 1

        def is_taken():
            total = self.node.diagnostics.input(topic).total
            return total['received'] + total['refused'] == self.sent[topic]

        self.wait(is_taken, f'{topic} taken')

    def answer(self, stamp, motion=MOTION):
        """Efforts at an instant."""
        self.publishers['joint_motion'].publish(joint_motion(motion, stamp=stamp))
        name = 'hodyn_node/joint_effort'

        def find():
            return [item for item in self.messages[name] if stamp_of(item) == stamp]

        return self.wait(find, 'efforts')[-1]

    def held_back(self, stamp):
        """Why there are no efforts at an instant; none were published."""
        count = self.node.diagnostics.output.total['held back']
        before = len(self.messages['/diagnostics'])
        self.publishers['joint_motion'].publish(joint_motion(stamp=stamp))

        def find():
            for message in self.messages['/diagnostics'][before:]:
                for status in message.status:
                    found = dict_of(status)
                    if (
                        int(found.get('held back', 0)) > count
                        and found['held back because']
                    ):
                        return status
            return None

        status = self.wait(find, 'efforts held back')
        assert status.level == status.ERROR
        assert stamp not in map(stamp_of, self.messages['hodyn_node/joint_effort'])
        return dict_of(status)['held back because']


@pytest.fixture(scope='module')
def platform():
    noise, sent = {'estimator.noise': 1e-6}, {'command.effort': 'without_gravity'}
    made = Platform(answer_all=True, **noise, **sent)
    yield made
    made.close()


# Efforts


def test_efforts_are_those_on_the_base_that_moves(platform):
    seed, start = 3, platform.later()
    random = np.random.default_rng(seed)
    turn, twist = Rotation.random(random_state=seed), random.normal(size=(4, 6)) * 3.0
    platform.send('base_motion', base_message(start, turn, twist))
    answer = platform.answer(start)
    assert (answer.valid_order, answer.continuous_order) == (2, 2)
    assert_close(rows(answer), expected(turn, twist))
    assert not np.allclose(rows(answer), inverse_dynamics(MODEL, MOTION), rtol=0.01)


def test_the_imu_convention_is_that_of_proper_acceleration(platform):
    """A base at rest on a slope and one that accelerates, by a base at rest in other gravity."""
    start = platform.later()
    for number, twist in enumerate((np.zeros((4, 6)), RISE)):
        platform.send('base_motion', base_message(start + number, twist=twist))
        # An accelerometer on the base reads the opposite of the gravity that the arm feels.
        reading = RISE[1, 3:] * number - TURN.inv().apply(GRAVITY)
        assert number or reading @ TURN.inv().apply([0.0, 0.0, 1.0]) == pytest.approx(9.81)
        wanted = taylor_rnea(robots.TWO_LINK, NAMES, tuple(-reading), MOTION)
        assert_close(rows(platform.answer(start + number)), wanted.astype(float))


def test_derivatives_of_the_base_that_are_not_known_have_no_efforts(platform):
    more = np.concatenate([TWIST, np.full((2, 6), 1e3)])
    for count in (2, 3, 4, 6):
        start = platform.later()
        platform.send('base_motion', base_message(start, twist=more[:count]))
        answer = platform.answer(start)
        order = min(count, 4) - 2
        assert answer.valid_order == answer.continuous_order == order
        assert_close(rows(answer), expected()[: order + 1])


def test_between_messages_the_base_goes_on_by_its_derivatives(platform):
    start, age = platform.later(), 0.3
    steady = np.concatenate([TWIST[:1], np.zeros((3, 6))])
    turned = TURN * Rotation.from_rotvec(age * TWIST[0, :3])
    platform.send('base_motion', base_message(start, twist=steady))
    answer = rows(platform.answer(start + 3 * SECOND // 10))
    assert_close(answer, expected(turned, steady))
    # The next one holds from its stamp on; motions that lag have the one before.
    platform.send('base_motion', base_message(start + SECOND // 2))
    assert_close(rows(platform.answer(start + SECOND // 2)), expected())
    assert_close(rows(platform.answer(start + 300_000_000)), answer)


def test_the_rotation_between_messages_is_that_of_the_angular_velocity():
    bases, age = BaseMotions(), 0.01
    bases.take(base_message(), 'base', BEGIN, 0.0)
    powers = [age**k / math.factorial(k) for k in range(4)]

    def rate(t, R):
        w = sum(TWIST[k, :3] * t**k / math.factorial(k) for k in range(4))
        return (R.reshape(3, 3) @ hat(w)).ravel()

    end = solve_ivp(rate, (0.0, age), TURN.as_matrix().ravel(), rtol=1e-12, atol=1e-14).y[
        :, -1
    ]
    there, twist = bases.motion_at(BEGIN + SECOND // 100, 1.0)
    np.testing.assert_allclose(there[:3, :3].ravel(), end, atol=2e-8)
    for k in range(4):
        np.testing.assert_allclose(twist[k], powers[: 4 - k] @ TWIST[k:], atol=1e-14)


def test_wrenches_act_beside_the_motion_of_the_base(platform):
    start, load = platform.later(), np.random.default_rng(2).normal(size=(3, 6))
    message = WrenchMotion(expressed_in=WrenchMotion.SPATIAL)
    message.header.frame_id, message.header.stamp = 'tool', time_of(start)
    message.wrench, message.wrench_dot, message.wrench_ddot = (
        WrenchMessage(
            torque=Vector3(**dict(zip('xyz', row[:3]))),
            force=Vector3(**dict(zip('xyz', row[3:]))),
        )
        for row in load
    )
    platform.send('base_motion', base_message(start))
    platform.publishers['wrench_motion'].publish(message)
    platform.wait(lambda: platform.wrenches.sources, 'wrench taken')
    wanted = expected(wrench=Wrench('tool', load, 'spatial'))
    assert_close(rows(platform.answer(start)), wanted)
    platform.have(platform.wrenches.clear)


def test_payloads_are_taken_up_on_a_base_that_moves():
    platform = Platform()
    mass, com, inertia = PAYLOAD
    keys = {'ixx': inertia[0, 0], 'iyy': inertia[1, 1], 'izz': inertia[2, 2]}
    body = Inertia(m=mass, com=Vector3(**dict(zip('xyz', com))), **keys)
    try:
        request = SetPayload.Request(link='tool', inertia=body, transition_time=2.0)
        start = platform.ask(SetPayload, 'hodyn_node/set_payload', request).start
        start = start.sec * SECOND + start.nanosec
        before, after = expected(), expected(model=MODEL.with_payload('tool', *PAYLOAD))
        change = after - before
        # In the middle of the quintic the share is 1/2, its rate 15/8 and its slope zero.
        rate = 15.0 / 8.0 / 2.0
        middle = before + np.array(
            [
                change[0] / 2,
                change[1] / 2 + rate * change[0],
                change[2] / 2 + 2 * rate * change[1],
            ]
        )
        for number, wanted in enumerate((before, middle, after)):
            stamp = start + number * SECOND
            platform.send('base_motion', base_message(stamp))
            assert_close(rows(platform.answer(stamp)), wanted)
    finally:
        platform.close()


def test_measured_motions_have_the_base_of_their_instant(platform):
    start = platform.later()
    platform.listen(MotionEstimate, 'hodyn_node/motion_estimate')
    estimates = platform.messages['hodyn_node/motion_estimate']
    platform.send('base_motion', base_message(start))
    count, period = 200, 5_000_000
    for number in range(count):
        state = JointState(name=list(NAMES))
        state.header.stamp = time_of(start + number * period)
        state.position = [0.4 * math.sin(0.015 * number), 0.6 * math.cos(0.02 * number)]
        platform.send('joint_states', state)
    efforts = platform.messages['hodyn_node/joint_effort']
    last = start + (count - 1) * period

    def pairs():
        found = {stamp_of(item): item for item in estimates if stamp_of(item) > start}
        return [
            (found[stamp_of(item)], item)
            for item in efforts
            if item.source == JointEffort.SOURCE_JOINT_STATES and stamp_of(item) in found
        ]

    platform.wait(
        lambda: pairs() and last - stamp_of(pairs()[-1][0]) < 110_000_000,
        'the last estimate',
    )
    bases = BaseMotions()
    bases.take(base_message(start), 'base', start, 0.0)
    for estimate, effort in pairs()[-3:]:
        motion = np.array(
            [getattr(estimate, field) for field in FIELDS[: effort.valid_order + 3]]
        )
        there, twist = bases.motion_at(stamp_of(estimate), 60.0)
        wanted = moving_base_inverse_dynamics(MODEL, motion, (there, twist)).effort
        assert_close(rows(effort), wanted)
        assert len(effort.effort_std) == 2


def test_standard_deviations_are_those_on_the_base_that_moves():
    """On a slope they are those of a base at rest in other gravity."""
    deviations = 1e-3 * np.random.default_rng(1).normal(size=(6, 5, 2))
    on_slope = partial(efforts_on, (pose(), np.zeros((4, 6))))
    tilted = replace(MODEL, gravity=TURN.inv().apply(GRAVITY))
    found = effort_deviations(
        MODEL, MOTION, on_slope(MODEL, MOTION), [], deviations, dynamics=on_slope
    )
    wanted = effort_deviations(
        tilted, MOTION, inverse_dynamics(tilted, MOTION), [], deviations
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


# Trajectories and services


def trajectory(goal=(0.5, -0.4), begin=(0.0, 0.0), end=0.6):
    return joint_trajectory((begin, goal), (0.3, end))


def test_trajectories_are_streamed_on_the_base_that_moves_and_nothing_else_is(platform):
    for_controller, commands, goal = [], [], (0.5, -0.4)
    for kind, name, kept, profile in (
        (JointTrajectory, 'controller_trajectory', for_controller, qos.EFFORT_TRAJECTORY),
        (Float64MultiArray, 'commands', commands, qos.OUTPUT),
    ):
        platform.client.create_subscription(
            kind, f'hodyn_node/{name}', kept.append, profile
        )
    command = next(p for p in platform.node.publishers if 'commands' in p.topic_name)
    platform.wait(command.get_subscription_count, 'match commands')
    now = platform.instant = platform.node.get_clock().now().nanoseconds
    platform.send('base_motion', base_message(now, twist=RISE))
    platform.publishers['joint_trajectory'].publish(trajectory(goal))
    (answer,) = platform.received('effort_trajectory')
    assert len(answer.position) == 2 * len(answer.time_from_start) > 0
    assert not any(len(getattr(answer, field)) for field in EFFORTS)
    assert (answer.valid_order, answer.continuous_order) == (0, -1)
    assert 'are for one at rest' in answer.remarks[-1]
    end = stamp_of(answer) + 600_000_000

    def streamed():
        efforts = platform.messages['hodyn_node/joint_effort']
        return [item for item in efforts if stamp_of(item) == end]

    (last,) = platform.wait(streamed, 'the end of the stream')
    assert last.source == JointEffort.SOURCE_JOINT_TRAJECTORY
    rest = np.zeros((3, 2))
    rest[0] = goal
    tilted = TURN.inv().apply(GRAVITY) - RISE[1, 3:]
    wanted = taylor_rnea(robots.TWO_LINK, NAMES, tuple(tilted), rest).astype(float)
    assert_close(rows(last)[:1], wanted, 1e-9)
    # Controllers of robots that compensate gravity get what the acceleration of the base needs.
    sources = [item.source for item in platform.messages['hodyn_node/joint_effort']]
    count = sources.count(JointEffort.SOURCE_JOINT_TRAJECTORY)
    platform.wait(lambda: len(commands) >= count, 'commands')
    wanted = taylor_rnea(robots.TWO_LINK, NAMES, tuple(-RISE[1, 3:]), rest).astype(float)
    assert_close(np.array([commands[-1].data]), wanted, 1e-9)
    # An empty one stops what moves, and is answered likewise.
    platform.forget()
    platform.publishers['joint_trajectory'].publish(trajectory(begin=goal, end=60.0))
    platform.received('effort_trajectory')
    platform.publishers['joint_trajectory'].publish(JointTrajectory())
    _, stop = platform.received('effort_trajectory', 2)
    assert len(stop.position) and not len(stop.effort)
    assert 'are for one at rest' in stop.remarks[-1]
    assert for_controller == []


def test_a_stream_is_held_back_until_the_base_is_known():
    platform = Platform()
    try:
        platform.publishers['joint_trajectory'].publish(trajectory(end=60.0))
        status = platform.status(
            'joint_effort',
            lambda s: 'No base_motion' in dict_of(s).get('held back because', ''),
        )
        assert status.level == status.ERROR
        assert not platform.messages['hodyn_node/joint_effort']
        assert 'No base_motion has come yet' in platform.held_back(platform.later())
        platform.send('base_motion', base_message(0))  # stamped with its arrival
        platform.received('joint_effort')
    finally:
        platform.close()


def test_services_answer_for_a_base_at_rest_and_say_so(platform):
    request = ComputeInverseDynamics.Request(motion=[joint_motion(stamp=BEGIN)])
    response = platform.call(request)
    assert_close(
        rows(response.effort_trajectory).reshape(3, 2), inverse_dynamics(MODEL, MOTION)
    )
    assert any('here are for one at rest' in text for text in response.warnings)
    retime = RetimeTrajectory.Request(trajectory=trajectory(), slower_only=True)
    answer = platform.ask(RetimeTrajectory, 'hodyn_node/retime', retime)
    assert answer.success, answer.message
    assert len(answer.trajectory.points) > 2
    assert not any(len(point.effort) for point in answer.trajectory.points)
    assert any('here are for one at rest' in text for text in answer.warnings)


# What is missing, late or cannot be used


def test_a_base_motion_that_is_too_far_away_has_no_efforts(platform):
    start = platform.later()
    platform.send('base_motion', base_message(start))
    for seconds in (0, 59):
        assert platform.answer(start + seconds * SECOND).valid_order == 2
    why = platform.held_back(start + 61 * SECOND)
    assert 'The base motion is 61.000 s away' in why
    assert 'more than base_motion_timeout (60.0 s)' in why
    platform.send('base_motion', base_message(start + 61 * SECOND))
    assert_close(rows(platform.answer(start + 61 * SECOND)), expected())


def test_the_first_base_motion_may_be_late_by_no_more_than_the_time_out():
    bases = BaseMotions()
    bases.take(base_message(), 'base', BEGIN, 0.0)
    before = bases.motion_at(BEGIN - SECOND // 2, 1.0)
    np.testing.assert_allclose(before.twist[2], TWIST[2] - 0.5 * TWIST[3], atol=1e-14)
    with pytest.raises(MotionError, match=r'-2\.000 s away'):
        bases.motion_at(BEGIN - 2 * SECOND, 1.0)


def test_a_base_motion_of_before_the_newest_is_left_out(platform):
    start = platform.later()
    platform.send('base_motion', base_message(start))
    platform.send('base_motion', base_message(start - 1, twist=3.0 * TWIST))
    assert_close(rows(platform.answer(start)), expected())
    assert platform.node.diagnostics.input('base_motion').total['dropped late samples'] >= 1


NOT_FINITE = np.where(np.arange(24).reshape(4, 6) == 9, np.nan, TWIST)


UNUSABLE = [
    ({'twist': TWIST[:0]}, 'twist has 0 entries, expected the twist and its first'),
    ({'twist': TWIST[:1]}, 'None is taken as zero'),
    ({'twist': NOT_FINITE}, 'all values must be finite'),
    ({'pose': Pose(position=Point(x=math.inf))}, 'all values must be finite'),
    ({'pose': Pose(orientation=Quaternion(w=math.nan))}, 'all values must be finite'),
    ({'pose': Pose(orientation=Quaternion(x=0.1))}, 'length 1.00499, expected 1'),
    ({'pose': Pose(orientation=Quaternion(w=0.0))}, 'length 0, expected 1'),
    ({'pose': Pose(orientation=Quaternion(w=1e200))}, 'length 1e+200, expected 1'),
    ({'link': 'upper'}, "child_frame_id is 'upper', expected the base link 'base'"),
    ({'link': ''}, "child_frame_id is '', expected"),
]


def test_what_cannot_be_used_is_refused_and_changes_nothing(platform):
    start = platform.later()
    platform.send('base_motion', base_message(start))
    for fields, reason in UNUSABLE:
        platform.send('base_motion', base_message(start + 1, **fields))
        status = platform.refuses('base_motion', reason)
        assert int(dict_of(status)['refused as invalid']) > 0
    assert_close(rows(platform.answer(start)), expected())


def test_stamps_that_are_none_or_far_from_the_clock_are_refused():
    bases, message = BaseMotions(), base_message(BEGIN)
    for age in (-0.6, 0.6):
        with pytest.raises(MotionError, match=r'the stamp lies 0\.600 s .* input_timeout'):
            bases.take(message, 'base', BEGIN + round(age * SECOND), 0.5)
    message.header.stamp.nanosec = SECOND
    with pytest.raises(MotionError, match='nanoseconds below'):
        bases.take(message, 'base', BEGIN, 0.5)
    assert len(bases) == 0
    assert bases.take(base_message(0), 'base', BEGIN, 0.5)
    assert bases.at(BEGIN)[0] == BEGIN


def test_numbers_that_overflow_are_never_published(platform):
    start = platform.later()
    platform.send('base_motion', base_message(start, twist=np.full((4, 6), 1e300)))
    refused = platform.node.diagnostics.input('joint_motion').total
    for number in range(2):
        count = refused['refused']
        platform.publishers['joint_motion'].publish(
            joint_motion(stamp=start + number * SECOND)
        )
        platform.wait(lambda c=count: refused['refused'] > c, 'refused')
    assert not [
        m for m in platform.messages['hodyn_node/joint_effort'] if stamp_of(m) >= start
    ]
    platform.send('base_motion', base_message(start + 2 * SECOND))
    assert_close(rows(platform.answer(start + 2 * SECOND)), expected())


def test_another_base_link_and_another_time_have_another_motion():
    platform = Platform()
    try:
        start = platform.later()
        platform.send('base_motion', base_message(start))
        assert_close(rows(platform.answer(start)), expected())
        platform.have(platform.node.on_time_jump, 'time jumped back')
        assert 'No base_motion has come yet' in platform.held_back(platform.later())
        start = platform.later()
        platform.send('base_motion', base_message(start))
        assert platform.answer(start).valid_order == 2
        platform.describe_and_wait(robots.TWO_LINK.replace('"base"', '"stand"'))
        assert 'No base_motion has come yet' in platform.held_back(start + 1)
        platform.send('base_motion', base_message(start, link='stand'))
        assert_close(rows(platform.answer(start + 2)), expected(), 1e-6)
    finally:
        platform.close()


# The parameter


def test_without_the_parameter_the_base_is_at_rest_and_nothing_listens():
    harness = Harness({'input_timeout': 0.0})
    try:
        harness.describe_and_wait(robots.TWO_LINK)
        topics = {item.topic_name.rpartition('/')[2] for item in harness.node.subscriptions}
        assert 'joint_motion' in topics
        assert 'base_motion' not in topics
        harness.publishers['joint_motion'].publish(joint_motion(stamp=BEGIN))
        (answer,) = harness.received('joint_effort')
        assert_close(rows(answer), inverse_dynamics(MODEL, MOTION))
    finally:
        harness.close()


def test_the_weight_of_a_tool_is_not_taken_out_on_a_base_that_moves():
    with pytest.raises(
        ValueError, match='base_motion and wrench.tool_mass exclude each other'
    ):
        make_settings(NodeSettings, {'base_motion': True, 'wrench.tool_mass': 1.0})
    assert make_settings(NodeSettings, {'base_motion': True}).base_motion_timeout == 0.1
