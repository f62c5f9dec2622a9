"""The node as a process: motions, wrenches, robots and requests in, efforts or a reason out."""

from __future__ import annotations

import itertools
import math
import os
import signal
import time

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Inertia, Vector3
from hodyn_msgs.msg import (
    JointEffort,
    JointEffortTrajectory,
    JointMotion,
    WrenchMotion,
)
from hodyn_msgs.srv import ComputeInverseDynamics, RetimeTrajectory, SetPayload
from rclpy.serialization import serialize_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from support import other_rclpy, robots
from support.messages import (
    EFFORTS,
    FIELDS,
    GRAVITY,
    MOTION,
    NAMES,
    joint_motion,
    joint_trajectory,
    motion_trajectory,
    rows,
    samples,
    stamp_of,
    time_of,
)
from support.nodes import LATCHED, TIMEOUT, Client, Process, dict_of
from support.oracles import taylor_rnea
from support.random_trees import WrenchCase
from trajectory_msgs.msg import JointTrajectory

WRENCH = np.array(
    [[0.1, -0.2, 0.3, 4.0, -5.0, 6.0], [1.0, 2.0, -1.0, 3.0, 0.0, -2.0], np.arange(6.0)]
)
USUAL = {
    'input_timeout': 0.0,  # stamps are those of the tests
    'diagnostics_period': 0.05,
    'trajectory_timeout': TIMEOUT,
    'answer_all': True,
    'publish_rate': 250.0,
    'trajectory_sample_period': 0.001,
}
WAYPOINTS, TIMES = ((0.0, 0.0), (0.5, -0.4), (0.2, 0.3)), (0.0, 0.3, 0.6)


class Node(Client):
    """A running `hodyn_node` and a client of it."""

    def __init__(self, xml=robots.TWO_LINK, environment=None, **parameters):
        super().__init__()
        for topic, kind in (
            ('joint_motion', JointMotion),
            ('joint_trajectory', JointTrajectory),
            ('position_chunk', JointTrajectory),
            ('joint_states', JointState),
            ('wrench_motion', WrenchMotion),
        ):
            self.offer(kind, topic)
        self.descriptions = self.offer(String, 'robot_description', LATCHED)
        self.efforts = self.keep(JointEffort, 'hodyn_node/joint_effort')
        # Latched: the first answer may be given before the node knows who listens.
        whole = 'hodyn_node/effort_trajectory'
        self.wholes = self.keep(JointEffortTrajectory, whole, LATCHED)
        self.keep(DiagnosticArray, '/diagnostics')
        self._stamps = itertools.count(10**18)
        given = {**USUAL, **parameters}
        self.process = Process('hodyn_node', self, given, environment=environment)
        if xml:
            self.describe(xml)
        self.match()

    def describe(self, xml):
        self.descriptions.publish(String(data=xml))

    def says(self, part, text, key=None):
        """Wait until diagnostics of a part, or a value of theirs, say a text; a newer report."""
        self.messages['/diagnostics'].clear()
        found = self.status(
            'hodyn_node',
            part,
            lambda s: text in (s.message if key is None else dict_of(s).get(key, '')),
        )
        return dict_of(found)

    def refuses(self, topic, reason):
        return self.says(topic, reason, 'last error')

    def send(self, motion=MOTION, stamp=None, **fields):
        stamp = next(self._stamps) if stamp is None else stamp
        self.publishers['joint_motion'].publish(joint_motion(motion, stamp=stamp, **fields))
        return stamp

    def answer(self, *given, **fields):
        """Answer to a motion; sent again and again while nobody may hear it yet."""
        stamp = self.send(*given, **fields)

        def find():
            return [m for m in list(self.efforts) if stamp_of(m) == stamp]

        return self.wait(find, 'answer')[0]

    def until(self, expected, stamp=None):
        """Send a motion again and again until the answer is this one: a robot is made ready."""

        def fits():
            self.send(stamp=stamp)
            return self.efforts and np.allclose(rows(self.efforts[-1]), expected, 1e-9)

        self.wait(fits, 'efforts of the robot')

    def rest(self):
        """Wait for the end of the motion."""
        self.says('planning', '0', 'waiting trajectories')
        self.says('planning', 'idle', 'stream of motions')

    def planned(self, message):
        """Whole answer to a trajectory; one that is refused is sent again."""
        count, refused = len(self.wholes), 0

        def find():
            nonlocal refused
            said = [s for m in list(self.messages['/diagnostics'])[-1:] for s in m.status]
            told = [dict_of(s) for s in said if s.name.endswith(': joint_trajectory')]
            if told and int(told[0]['refused']) > refused or not refused:
                refused = int(told[0]['refused']) if told else 0
                self.publishers['joint_trajectory'].publish(message)
                refused = refused or 0.5
            return len(self.wholes) > count

        self.wait(find, 'whole answer')
        return self.wholes[-1]

    def compute(self, **fields):
        kind = ComputeInverseDynamics
        return self.ask(kind, 'hodyn_node/compute_inverse_dynamics', kind.Request(**fields))

    def set(self, **values):
        return self.set_of('hodyn_node', **values)

    def close(self):
        try:
            self.process.close()
        finally:
            super().close()


@pytest.fixture(scope='module')
def shared():
    made = Node()
    made.until(efforts(MOTION))
    made.planned(joint_trajectory(WAYPOINTS, TIMES))  # compiled code is there from now on
    yield made
    made.close()


@pytest.fixture
def node(shared):
    """The node with the two-link arm and its first parameters, at rest."""
    shared.describe(robots.OTHER_JOINTS)  # which ends what is known of the arm
    shared.says('model', 'rail', 'joints')
    shared.describe(robots.TWO_LINK)
    shared.says('model', 'shoulder', 'joints')
    first = {
        'input_timeout': 0.0,
    }
    assert shared.set(**first).successful
    shared.rest()
    shared.until(efforts(MOTION))
    shared.answer()  # behind all that is on its way
    shared.forget()
    return shared


@pytest.fixture
def start():
    """Start nodes of one test."""
    made = []
    yield lambda *given, **options: made.append(Node(*given, **options)) or made[-1]
    for one in made:
        one.close()


def efforts(motion, xml=robots.TWO_LINK, wrenches=()):
    return taylor_rnea(xml, NAMES, GRAVITY, motion, wrenches)


def wrench_motion(values=WRENCH, link='tool', **fields):
    message = WrenchMotion(**fields)
    message.header.frame_id = link
    for name, (*moment, x, y, z) in zip(('wrench', 'wrench_dot', 'wrench_ddot'), values):
        wrench = getattr(message, name)
        wrench.torque = Vector3(**dict(zip('xyz', moment)))
        wrench.force = Vector3(x=x, y=y, z=z)
    return message


def assert_smooth(times, values, tolerance=1e-4):
    """Every derivative (N, K, n) is that of the one before: nothing jumps between samples."""
    # On a busy machine samples are left out; the rule is as good as the cube of the step.
    near = np.diff(times) < 0.008
    assert near.sum() > 10
    half = 0.5 * np.diff(times)[:, None, None]
    bend = np.abs(np.diff(values[:, 1:], axis=0))
    # Where a derivative has a kink between two samples, its slope is that of the steps beside.
    bend[1:-1] = np.maximum.reduce([bend[:-2], bend[1:-1], bend[2:]])
    mean = half * (values[1:, 1:] + values[:-1, 1:])
    missed = (np.abs(np.diff(values[:, :-1], axis=0) - mean) - half * bend)[near]
    assert np.all(missed.max((0, 2)) < tolerance * np.abs(values).max((0, 2))[:-1])


def streamed(node):
    found = [m for m in node.efforts if m.source == JointEffort.SOURCE_JOINT_TRAJECTORY]
    stamps = np.array([stamp_of(m) for m in found])
    return stamps, np.array([rows(m) for m in found])


# Motions and wrenches


def test_a_motion_is_answered_to_the_order_that_it_determines(node):
    for K in (3, 4, 5):
        message = node.answer(MOTION[:K, ::-1], names=NAMES[::-1])
        assert (message.valid_order, list(message.joint_names)) == (K - 3, list(NAMES))
        assert (message.source, message.header.frame_id) == (1, 'base')
        np.testing.assert_allclose(rows(message), efforts(MOTION[:K]), rtol=1e-9)
        assert not any(getattr(message, name) for name in EFFORTS[K - 2 :])


def test_wrenches_add_to_the_efforts_until_zeros_end_them(node):
    now = time.time_ns()
    for kind, acting in itertools.product(
        ('body', 'spatial', 'hybrid'), ('on_environment', 'on_robot')
    ):
        codes = (getattr(WrenchMotion, word.upper()) for word in (kind, acting))
        fields = dict(zip(('expressed_in', 'acting'), codes))
        for values in (WRENCH, 0.0 * WRENCH):
            now += 1_000_000
            sent = wrench_motion(values, **fields)
            sent.header.stamp = time_of(now)
            node.publishers['wrench_motion'].publish(sent)
            expected = efforts(MOTION, wrenches=[WrenchCase('tool', values, kind, acting)])
            node.until(expected, now)


def test_a_wrench_that_is_stale_holds_the_output_back(node):
    sent, later = wrench_motion(), time.time_ns() + 10**9
    sent.header.stamp = time_of(later - 10**9)
    node.publishers['wrench_motion'].publish(sent)
    node.says('joint_effort', '', 'wrench on tool')
    node.says('joint_effort', 's', 'wrench on tool')
    node.forget()
    node.send(stamp=later)
    node.says('joint_effort', 'wrench_timeout', 'held back because')
    assert not node.efforts
    node.publishers['wrench_motion'].publish(wrench_motion(np.zeros((3, 6))))
    node.until(efforts(MOTION))


def test_measured_positions_are_answered_with_efforts_and_their_deviations(node):
    begin, rate = time.time_ns(), np.array([2.0, 3.0])
    for k in range(400):
        phase = 0.005 * k * rate
        message = JointState(name=NAMES, position=0.3 * np.sin(phase))
        message.header.stamp = time_of(begin + 5_000_000 * k)
        node.publishers['joint_states'].publish(message)
        if k % 50 == 49:
            node.says('joint_states', str(k + 1), 'received')
    found = [m for m in node.efforts if m.source == JointEffort.SOURCE_JOINT_STATES]
    assert len(found) > 300 and found[-1].valid_order >= 1
    for message in found[300::20]:
        phase = 1e-9 * (stamp_of(message) - begin) * rate
        motion = (
            0.3
            * rate ** np.arange(5)[:, None]
            * np.sin(phase + 0.5 * math.pi * np.arange(5)[:, None])
        )
        off = np.abs(rows(message)[0] - efforts(motion)[0])
        assert np.all(off < 5.0 * np.array(message.effort_std) + 1e-6)
        assert off.max() < 0.2


# Trajectories


def test_a_trajectory_is_answered_as_a_whole_and_streamed_to_its_end(node):
    begin = time.time_ns() + 3 * 10**9
    sent = joint_trajectory(np.array(WAYPOINTS)[:, ::-1], TIMES, NAMES[::-1], stamp=begin)
    whole = node.planned(sent)
    assert (stamp_of(whole), whole.valid_order) == (begin, 2)
    times, motion = np.array(whole.time_from_start), samples(whole, FIELDS)
    for at, position in zip(TIMES, WAYPOINTS):
        np.testing.assert_allclose(motion[np.abs(times - at).argmin(), 0], position, 1e-6)
    np.testing.assert_allclose(motion[[0, -1], 1:3], 0.0, atol=1e-6)
    assert_smooth(times, motion)
    np.testing.assert_allclose(samples(whole), efforts(motion), rtol=1e-7, atol=1e-7)
    end = begin + round(1e9 * TIMES[-1])
    node.wait(lambda: node.efforts and stamp_of(node.efforts[-1]) == end, 'the end')
    stamps, given = streamed(node)
    assert stamps[0] >= begin and np.all(np.diff(stamps) > 0)
    nearest = np.abs(times - 1e-9 * (stamps - begin)[:, None]).argmin(1)
    step = (1e-9 * (stamps - begin) - times[nearest])[:, None, None]
    powers = step ** np.arange(5)[:, None] / [[math.factorial(k)] for k in range(5)]
    for order in (0, 1):
        part = motion[nearest, : 5 - order]
        moved = [
            (powers[:, : 5 - k] * motion[nearest, k:]).sum(1) for k in range(3 + order)
        ]
        expected = efforts(np.stack(moved, 1))[:, order]
        scale = np.abs(expected).max()
        np.testing.assert_allclose(given[:, order], expected, rtol=0, atol=1e-3 * scale)
        assert part.shape[0] == len(stamps)


def test_trajectories_and_chunks_that_follow_each_other_are_one_continuous_motion(node):
    far = joint_trajectory(((0.0, 0.0), (0.8, -0.8)), (0.0, 4.0))
    node.planned(far)
    node.wait(lambda: len(streamed(node)[0]) > 50, 'motion')
    node.planned(joint_trajectory(((0.3, 0.4), (0.0, 0.5)), (1.0, 1.5)))
    count = len(streamed(node)[0])
    node.wait(lambda: len(streamed(node)[0]) > count + 50, 'next motion')
    chunk = joint_trajectory(np.linspace((0.1, 0.4), (0.5, -0.1), 30), np.arange(30) / 25.0)
    node.publishers['position_chunk'].publish(chunk)
    node.says('position_chunk', '1', 'received')
    node.rest()
    stamps, given = streamed(node)
    assert_smooth(1e-9 * (stamps - stamps[0]), given[:, :2], 0.01)
    still = np.zeros((5, 2))
    still[0] = 0.5, -0.1
    np.testing.assert_allclose(given[-1, :2], efforts(still)[:2], atol=0.05)


def test_an_empty_trajectory_brings_the_motion_to_rest(node):
    node.planned(joint_trajectory(((0.0, 0.0), (1.0, -1.0)), (0.0, 20.0)))
    node.wait(lambda: len(streamed(node)[0]) > 100, 'motion')
    whole = node.planned(JointTrajectory())
    node.rest()
    stamps, given = streamed(node)
    assert stamps[-1] - stamps[0] < 10 * 10**9
    assert_smooth(1e-9 * (stamps - stamps[0]), given[:, :2], 0.01)
    motion = samples(whole, FIELDS)[-1]
    assert 0.0 < motion[0, 0] < 1.0 and np.abs(motion[1:3]).max() < 1e-9
    np.testing.assert_allclose(given[-1], efforts(motion), atol=1e-6)


def test_limits_are_parameters_and_what_exceeds_them_is_told(start):
    node = start(**{'limits.elbow.effort_dot': 0.5})
    node.until(efforts(MOTION))
    fast = joint_trajectory(((0.0, 0.0), (0.0, 2.5)), (0.0, 1.0))
    found = {(v.joint_name, v.quantity): v for v in node.planned(fast).limit_violations}
    assert abs(found['elbow', 'effort_dot'].limit) == 0.5
    position = found['elbow', 'position']
    assert (position.value, position.limit) == (pytest.approx(2.5), 2.0)
    assert ('elbow', 'velocity') in found and ('shoulder', 'position') not in found


# Services


def test_the_service_answers_motions_with_wrenches(node):
    rng = np.random.default_rng(2)
    times, motions = [0.1, 0.2, 0.4], rng.normal(size=(3, 5, 2))
    values = rng.normal(size=(3, 3, 6))
    given = motion_trajectory(times, motions[..., ::-1], NAMES[::-1])
    response = node.compute(
        motion_trajectory=given, wrenches=[wrench_motion(v) for v in values]
    )
    assert response.success, response.message
    whole = response.effort_trajectory
    assert list(whole.time_from_start) == times
    expected = efforts(
        motions, wrenches=[WrenchCase('tool', values, 'body', 'on_environment')]
    )
    np.testing.assert_allclose(samples(whole), expected, rtol=1e-9)
    listed = [joint_motion(m, stamp=round(1e9 * (5 + t))) for t, m in zip(times, motions)]
    whole = node.compute(motion=listed).effort_trajectory
    np.testing.assert_allclose(samples(whole), efforts(motions), rtol=1e-9)
    at = [0.0, 0.05, 0.3, 0.6]
    given = joint_trajectory(WAYPOINTS, TIMES)
    whole = node.compute(trajectory=given, sample_times=at).effort_trajectory
    assert list(whole.time_from_start) == at and not streamed(node)[0].size
    motion = samples(whole, FIELDS)
    np.testing.assert_allclose(motion[[0, 2, 3], 0], WAYPOINTS, atol=1e-9)
    np.testing.assert_allclose(samples(whole), efforts(motion), rtol=1e-7, atol=1e-7)


def test_the_service_tells_what_a_bad_request_lacks(node):
    kind = ComputeInverseDynamics.Response
    flat, path = motion_trajectory([0.0, 0.1], [MOTION] * 2), joint_trajectory()
    for fields, code, reason in (
        ({}, kind.INVALID_REQUEST, 'no motion'),
        ({'trajectory': path, 'motion_trajectory': flat}, kind.INVALID_REQUEST, 'holds'),
        (
            {'trajectory': path, 'sample_period': -1.0},
            kind.INVALID_REQUEST,
            'sample_period',
        ),
        ({'motion': [joint_motion(names='ab')]}, kind.INVALID_JOINTS, 'Joint names'),
        ({'motion': [joint_motion(MOTION * np.nan)]}, kind.INVALID_MOTION, 'nan'),
        (
            {'motion_trajectory': flat, 'wrenches': [wrench_motion(link='hand')]},
            kind.INVALID_WRENCH,
            "'hand'",
        ),
    ):
        response = node.compute(**fields)
        assert (response.success, response.error_code) == (False, code)
        assert reason in response.message
        assert not response.effort_trajectory.effort


def test_a_retimed_trajectory_keeps_its_path_and_the_limits(node):
    request = RetimeTrajectory.Request(
        trajectory=joint_trajectory(WAYPOINTS, (0.0, 1.0, 2.5))
    )
    request.timing = request.UNIFORM
    uniform = node.ask(RetimeTrajectory, 'hodyn_node/retime', request)
    request.timing = request.PATH
    response = node.ask(RetimeTrajectory, 'hodyn_node/retime', request)
    assert response.success, response.message
    assert response.duration < 0.7 * uniform.duration < uniform.duration_before == 2.5
    points = response.trajectory.points
    times = [p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in points]
    rates = np.array([(p.positions, p.velocities, p.accelerations) for p in points])
    assert_smooth(np.array(times), rates, 0.01)
    assert 2.9 < np.abs(rates[:, 1]).max() <= 3.0 + 1e-9  # rad/s, of the description
    given = np.array([p.effort for p in points])
    np.testing.assert_allclose(given, efforts(rates)[:, 0], rtol=1e-7, atol=1e-7)
    off = np.abs(rates[:, 0] - np.array(WAYPOINTS)[:, None]).max(2).min(1)
    assert off.max() < 0.02
    request.trajectory.points[1].positions[0] = 7.0
    response = node.ask(RetimeTrajectory, 'hodyn_node/retime', request)
    assert (response.success, response.error_code) == (False, 9)
    assert 'shoulder' in response.message


def test_a_payload_is_taken_up_smoothly(node):
    keys, values = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz'), (0.01, 0, 0, 0.02, 0, 0.015)
    inertia = Inertia(
        m=2.0, com=Vector3(x=0.05, z=0.1), **dict(zip(keys, map(float, values)))
    )
    request = SetPayload.Request(link='tool', inertia=inertia, transition_time=2.0)
    response = node.ask(SetPayload, 'hodyn_node/set_payload', request)
    assert response.success, response.message
    tensor = ' '.join(f'{key}="{value}"' for key, value in zip(keys, values))
    heavy = robots.TWO_LINK.replace(
        '<link name="tool"/>',
        '<link name="tool"><inertial><origin xyz="0.05 0 0.1"/><mass value="2.0"/>'
        f'<inertia {tensor}/></inertial></link>',
    )
    empty, full = efforts(MOTION[:3]), efforts(MOTION[:3], heavy)
    begin = response.start.sec * 10**9 + response.start.nanosec
    assert np.abs(full - empty).max() > 1.0
    for seconds, share in ((-0.1, 0.0), (1.0, 0.5), (2.1, 1.0)):
        found = rows(node.answer(MOTION[:3], stamp=begin + round(1e9 * seconds)))
        np.testing.assert_allclose(found, empty + share * (full - empty), rtol=1e-9)
    request.inertia.m, request.transition_time = 0.0, 0.0
    assert not node.ask(SetPayload, 'hodyn_node/set_payload', request).success
    request.allow_step = True
    assert node.ask(SetPayload, 'hodyn_node/set_payload', request).success


# What is refused


def bad_path(**fields):
    message = joint_trajectory()
    for name, value in fields.items():
        setattr(message.points[1], name, value)
    return message


def test_bad_messages_are_refused_with_the_reason_and_the_node_goes_on(node):
    assert node.set(input_timeout=60.0).successful
    for topic, message, reason in (
        ('joint_motion', joint_motion(names=('shoulder', 'wrist')), 'unknown: wrist'),
        ('joint_motion', joint_motion(names=('elbow', 'elbow')), 'repeated: elbow'),
        ('joint_motion', joint_motion(velocity=[1.0]), 'velocity has 1 values, expected 2'),
        ('joint_motion', joint_motion(jerk=[]), 'jerk is empty'),
        (
            'joint_motion',
            joint_motion(snap=[0.0, math.inf]),
            "snap of joint 'elbow' is inf",
        ),
        ('joint_motion', joint_motion(velocity=[1e300, 1e300]), 'overflow'),
        ('joint_motion', joint_motion(stamp=10**9), 'input_timeout'),
        ('joint_trajectory', joint_trajectory(names=()), 'joint_names is empty'),
        ('joint_trajectory', bad_path(positions=[0.1]), 'point 1 has 1 positions'),
        ('joint_trajectory', bad_path(velocities=[math.nan] * 2), 'finite'),
        ('joint_trajectory', joint_trajectory(times=(0.0, 0.2, 0.1)), 'increas'),
        ('joint_trajectory', joint_trajectory(stamp=10**9), 'ended'),
        ('position_chunk', joint_trajectory(((math.nan, 0.0),), (0.0,)), 'finite'),
        ('wrench_motion', wrench_motion(link='hand'), "'hand'"),
        ('wrench_motion', wrench_motion(WRENCH * math.nan), 'finite'),
        ('wrench_motion', wrench_motion(expressed_in=7), 'expected one'),
        ('joint_states', JointState(name=NAMES, position=[math.nan, 0.0]), 'nan'),
    ):
        before = int(node.says(topic, '', 'refused')['refused'])
        node.publishers[topic].publish(message)
        assert int(node.refuses(topic, reason)['refused']) >= before + 1
    assert not node.efforts and not node.wholes
    assert node.set(input_timeout=0.0).successful
    np.testing.assert_allclose(rows(node.answer()), efforts(MOTION), rtol=1e-9)


def test_garbage_changes_no_answer_and_nothing_that_is_not_finite_is_published(node):
    rng = np.random.default_rng(5)
    good = {
        'joint_motion': serialize_message(joint_motion(stamp=5)),
        'joint_trajectory': serialize_message(joint_trajectory(stamp=10**9)),
        'robot_description': serialize_message(String(data=robots.TWO_LINK)),
        'wrench_motion': serialize_message(wrench_motion(link='hand')),
    }
    for topic, data in good.items():
        for _ in range(15):
            bad = bytearray(data[: rng.integers(5, len(data))])
            for place in rng.integers(4, max(len(bad), 5), size=3):
                bad[min(place, len(bad) - 1)] = rng.integers(256)
            node.publishers[topic].publish(bytes(bad))
        np.testing.assert_allclose(rows(node.answer()), efforts(MOTION), rtol=1e-9)
    assert all(np.isfinite(rows(message)).all() for message in node.efforts)


def test_parameters_that_do_not_fit_are_refused_together(node):
    for values, reason in (
        ({'publish_rate': -1.0}, 'publish_rate'),
        ({'publish_rate': 'fast'}, 'expected a number'),
        ({'interpolation': 'cubic'}, "'spline', 'jtc', 'jtc_upsampled'"),
        ({'gravity': [0.0, 0.0, 0.0]}, 'read-only'),
        ({'publish_rat': 1.0}, 'publish_rate'),
        ({'wrench.link': 'hand'}, "'hand'"),
        ({'limits.elbow.jerk': 1.0}, 'limits.<joint>.<key> is read at the start'),
        ({'robot_description': '<robot'}, 'not XML'),
        ({'stop_duration': 1.5, 'publish_rate': 0.0}, 'publish_rate'),
    ):
        result = node.set(**values)
        assert not result.successful
        assert reason in result.reason
    np.testing.assert_allclose(rows(node.answer()), efforts(MOTION), rtol=1e-9)


# Robots


def test_a_changed_description_changes_the_efforts_and_a_bad_one_does_not(node):
    expected = efforts(MOTION, robots.HEAVIER_TWO_LINK)
    assert np.abs(expected - efforts(MOTION)).max() > 1.0
    assert node.set(robot_description=robots.HEAVIER_TWO_LINK).successful
    node.until(expected)
    node.describe(robots.TWO_LINK)
    node.until(efforts(MOTION))
    node.describe(robots.HEAVIER_TWO_LINK)
    node.until(expected)
    for xml, reason in (
        ('<robot', 'not XML'),
        (robots.robot('<link name="base"/>'), 'no moving joints'),
        (robots.TWO_LINK.replace('value="0.7"', 'value="-0.7"'), 'negative mass'),
        (robots.TWO_LINK.replace('value="0.7"', 'value="nan"'), 'finite'),
    ):
        node.describe(xml)
        node.says('model', reason, 'refused description')
        np.testing.assert_allclose(rows(node.answer()), expected, rtol=1e-9)
    node.describe(robots.OTHER_JOINTS)
    node.says('model', 'rail', 'joints')
    node.send()
    node.refuses('joint_motion', 'unknown: shoulder, elbow')


# Processes and time


def test_a_killed_planning_process_is_replaced_and_the_stream_goes_on(node):
    node.planned(joint_trajectory(((0.0, 0.0), (0.5, -0.4)), (0.0, 60.0)))
    killed = int(node.says('planning', 'running', 'process')['process id'])
    node.forget()
    os.kill(killed, signal.SIGKILL)
    node.wait(lambda: len(streamed(node)[0]) > 50, 'stream')
    np.testing.assert_allclose(rows(node.answer()), efforts(MOTION), rtol=1e-9)
    node.status(
        'hodyn_node',
        'planning',
        lambda s: dict_of(s)['process'] == 'running' and dict_of(s)['restarts'] != '0',
    )
    assert int(node.says('planning', 'running', 'process')['process id']) != killed
    stamps, given = streamed(node)
    assert_smooth(1e-9 * (stamps - stamps[0]), given[:, :2], 0.01)
    node.planned(JointTrajectory())
    node.rest()
    whole = node.planned(joint_trajectory(WAYPOINTS, (1.0, 2.0, 3.0)))
    np.testing.assert_allclose(samples(whole, FIELDS)[-1, 0], WAYPOINTS[-1], atol=1e-9)


def test_a_node_waits_for_a_robot_and_a_killed_one_finds_it_again(start):
    node = start('')
    node.says('model', 'no valid robot description yet')
    node.send()
    node.refuses('joint_motion', 'no robot model yet')
    response = node.compute(motion=[joint_motion()])
    assert (response.success, response.error_code) == (False, response.NO_MODEL)
    node.describe(robots.TWO_LINK)
    node.until(efforts(MOTION))
    planner = int(node.says('planning', 'running', 'process')['process id'])
    node.process.kill()
    node.wait(lambda: not is_alive(planner), 'end of its planning')
    node.forget()
    node.process.start()
    node.until(efforts(MOTION))
    assert node.process.end(signal.SIGINT, signal.SIGINT) == 0
    assert 'Traceback' not in node.process.log()


def is_alive(pid):
    try:
        with open(f'/proc/{pid}/stat') as file:
            return file.read().rpartition(')')[2].split()[0] not in 'ZX'
    except OSError:
        return False


def test_a_clock_that_jumps_back_ends_the_motion_and_no_stamped_sample(start):
    node = start(use_sim_time=True)
    clock = node.offer(Clock, '/clock')
    node.until(efforts(MOTION))

    def tell(seconds):
        clock.publish(Clock(clock=time_of(round(1e9 * seconds))))
        return node.answer()

    tell(100.0)
    node.says('planning', 'running', 'process')
    node.planned(joint_trajectory(WAYPOINTS, (1.0, 2.0, 3.0), stamp=101 * 10**9))
    ticks = (101.0 + 0.01 * k for k in itertools.count())
    node.wait(lambda: tell(next(ticks)) and len(streamed(node)[0]) > 5, 'motion')
    assert np.all(np.diff(streamed(node)[0]) > 0)
    tell(5.0)
    node.says('planning', 'idle', 'stream of motions')
    node.says('node', '1', 'time jumps')
    np.testing.assert_allclose(rows(tell(6.0)), efforts(MOTION), rtol=1e-9)


@pytest.mark.skipif(not other_rclpy.fits(), reason='this rclpy has the newer form already')
def test_a_node_answers_with_the_rclpy_of_newer_releases(start, tmp_path):
    node = start(environment=other_rclpy.environment(tmp_path, is_newer=True))
    node.until(efforts(MOTION))
    assert node.compute(motion=[joint_motion()]).success
    assert node.planned(joint_trajectory(WAYPOINTS, (1.0, 1.3, 1.6))).effort
    node.process.end(signal.SIGTERM)
    assert 'Traceback' not in node.process.log()


@pytest.mark.parametrize('name', ['hodyn_node', 'flatness_controller'])
def test_a_node_with_a_bad_parameter_ends_with_one_sentence_and_exit_code_1(name):
    client = Client()
    process = Process(name, client, {'stop_duration': -1.0, 'robot_description': ''})
    assert process.end() == 1
    assert 'stop_duration is -1.0, expected a number' in process.log()
    assert 'Traceback' not in process.log()
    process.close()
    client.close()
