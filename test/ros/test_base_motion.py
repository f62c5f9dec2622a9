"""Arms on platforms that move: the input base_motion, and what follows from it or without it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from geometry_msgs.msg import Point, Pose, Quaternion, Twist, Vector3
from hodyn_msgs.msg import (
    BaseMotion,
    JointEffort,
)
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import JointState
from support import robots
from support.messages import (
    EFFORTS,
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

from hodyn_ros import RobotModel, moving_base_inverse_dynamics
from hodyn_ros.streams.surroundings import BASE_TIMEOUT as TIMEOUT

SECOND = 10**9
BEGIN = 1000 * SECOND
GRAVITY = np.array([0.0, 0.0, -9.81])
MODEL = RobotModel.from_urdf(robots.TWO_LINK, gravity=GRAVITY)
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
        far = {'wrench_timeout': 60.0, 'input_timeout': 0.0}
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
    made = Platform(answer_all=True, **{'command.effort': 'without_gravity'})
    yield made
    made.close()


# Efforts


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
    start, age = platform.later(), 0.09
    steady = np.concatenate([TWIST[:1], np.zeros((3, 6))])
    turned = TURN * Rotation.from_rotvec(age * TWIST[0, :3])
    platform.send('base_motion', base_message(start, twist=steady))
    later = start + round(age * SECOND)
    answer = rows(platform.answer(later))
    assert_close(answer, expected(turned, steady))
    # The next one holds from its stamp on; motions that lag have the one before.
    platform.send('base_motion', base_message(start + SECOND // 2))
    assert_close(rows(platform.answer(start + SECOND // 2)), expected())
    assert_close(rows(platform.answer(later)), answer)


# Trajectories and services


def trajectory(goal=(0.5, -0.4), begin=(0.0, 0.0), end=0.6):
    return joint_trajectory((begin, goal), (0.3, end))


def test_trajectories_are_streamed_on_the_base_that_moves_and_nothing_else_is(platform):
    goal = 0.5, -0.4
    for_controller = platform.keep(JointTrajectory, 'hodyn_node/controller_trajectory')
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
        # Its acceleration alone matters.
        now = platform.node.get_clock().now().nanoseconds
        platform.base_motion.publish(base_message(now, twist=RISE))
        platform.sent['base_motion'] += 1
        efforts = platform.messages['hodyn_node/joint_effort']
        return [item for item in efforts if stamp_of(item) == end]

    (last,) = platform.wait(streamed, 'the end of the stream')
    assert last.source == JointEffort.SOURCE_JOINT_TRAJECTORY
    rest = np.zeros((3, 2))
    rest[0] = goal
    tilted = TURN.inv().apply(GRAVITY) - RISE[1, 3:]
    wanted = taylor_rnea(robots.TWO_LINK, NAMES, tuple(tilted), rest).astype(float)
    assert_close(rows(last)[:1], wanted, 1e-9)
    assert for_controller == []


# What is missing, late or cannot be used


def test_a_base_motion_that_is_too_far_away_has_no_efforts(platform):
    start = platform.later()
    platform.send('base_motion', base_message(start))
    for share in (0.0, 0.99):
        time = start + round(share * TIMEOUT * SECOND)
        assert platform.answer(time).valid_order == 2
    late = start + SECOND // 8
    why = platform.held_back(late)
    assert 'The base motion is 0.125 s away' in why
    assert f'more than {TIMEOUT} s' in why
    platform.send('base_motion', base_message(late))
    assert_close(rows(platform.answer(late)), expected())


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
        assert int(dict_of(status)['refused']) > 0
    assert_close(rows(platform.answer(start)), expected())
