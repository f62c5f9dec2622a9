"""The flatness controller over real middleware: one command for each pair of measurements."""

import threading
import time
import uuid
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from hodyn_msgs.msg import JointMotion
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from support.robots import HEAVIER_TWO_LINK, OTHER_JOINTS, TWO_LINK
from support.ros_harness import TIMEOUT, dict_of, next_domain, spin_to_end
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from hodyn_ros import RobotModel
from hodyn_ros.actuators import Actuators, RigidDrive, SeriesElastic
from hodyn_ros.control import FeedForwardController, FlatnessController, motor_gains
from hodyn_ros.ros.base import qos
from hodyn_ros.ros.base.conversions import time_message
from hodyn_ros.ros.nodes import flatness_controller
from hodyn_ros.ros.nodes.flatness_controller import FlatnessControllerNode
from hodyn_ros.ros.nodes.flatness_settings import ControlSettings
from hodyn_ros.streams import laws
from hodyn_ros.streams.inputs import LINKS, MOTORS

# The laws warn of what the tests want.
pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.control.ControlWarning')

NAMES = ('shoulder', 'elbow')
PARAMETERS = {
    'robot_description': TWO_LINK,
    'actuators.shoulder.type': 'sea',
    'actuators.shoulder.stiffness': 200.0,
    'actuators.shoulder.motor_inertia': 0.3,
    'actuators.elbow.type': 'rigid',
    'actuators.elbow.motor_inertia': 0.1,
    'controller': 'flatness',
    'bandwidth': 12.0,
    'max_tracking_error': 100.0,  # this robot does not move
    'max_gap': 1e6,  # and is measured now and then
    'measurement_timeout': 0.0,  # stamps are the time
    'diagnostics_period': 0.05,
}
MODEL = RobotModel.from_urdf(TWO_LINK)
DRIVES = Actuators(MODEL, {'shoulder': SeriesElastic(200.0, 0.3), 'elbow': RigidDrive(0.1)})
LIMIT = 50.0  # N m, of the robot description
STEP = 1_000_000  # ns


class Harness:
    """A running flatness controller and a robot that only talks."""

    def __init__(self, **parameters):
        self.messages = defaultdict(list)
        self._arrived = threading.Condition()
        self.context = Context()
        rclpy.init(context=self.context, domain_id=next_domain())
        self.namespace = f'test_{uuid.uuid4().hex}'
        self.client = Node('robot', context=self.context, namespace=self.namespace)
        self.publishers = {
            topic: self.client.create_publisher(kind, topic, profile)
            for topic, kind, profile in (
                (LINKS, JointState, qos.OUTPUT),
                (MOTORS, JointState, qos.OUTPUT),
                ('flatness_controller/reference', JointMotion, qos.INPUT),
                ('joint_trajectory', JointTrajectory, qos.INPUT),
                ('robot_description', String, qos.ROBOT_DESCRIPTION),
            )
        }
        for topic, kind in (
            ('flatness_controller/motor_command', JointState),
            ('/diagnostics', DiagnosticArray),
        ):
            self.client.create_subscription(kind, topic, self._keeper(topic), qos.OUTPUT)
        values = {**PARAMETERS, **parameters}
        self.node = FlatnessControllerNode(
            context=self.context,
            namespace=self.namespace,
            parameter_overrides=[
                Parameter(name, value=value) for name, value in values.items()
            ],
        )
        self._executors = [SingleThreadedExecutor(context=self.context) for _ in range(2)]
        self._threads = []
        for executor, node in zip(self._executors, (self.client, self.node)):
            executor.add_node(node)
            thread = threading.Thread(target=spin_to_end, args=(executor,), daemon=True)
            self._threads.append(thread)
            thread.start()
        for name, publisher in self.publishers.items():
            self.wait(lambda p=publisher: p.get_subscription_count() > 0, f'match {name}')
        self.wait(lambda: self.node._publisher.get_subscription_count() > 0, 'match output')

    def _keeper(self, topic):
        def keep(message):
            with self._arrived:
                self.messages[topic].append(message)
                self._arrived.notify_all()

        return keep

    def wait(self, condition, what):
        deadline = time.monotonic() + TIMEOUT
        with self._arrived:
            while not (value := condition()):
                self._arrived.wait(0.02)
                assert time.monotonic() < deadline, f'timed out: {what}'
            return value

    def wait_for_robot(self):
        self.wait(lambda: self.node.control.laws is not None, 'robot')

    def measure(self, stamp, state, names=NAMES, topics=(LINKS, MOTORS)):
        for topic, rows in ((LINKS, state[:2]), (MOTORS, state[2:])):
            if topic in topics:
                message = JointState(
                    name=list(names), position=list(rows[0]), velocity=list(rows[1])
                )
                message.header.stamp = time_message(stamp)
                self.publishers[topic].publish(message)

    @property
    def commands(self):
        return self.messages['flatness_controller/motor_command']

    def command(self, stamp):
        """Wait for the command that answers a measurement."""

        def find():
            found = [m for m in self.commands if stamp_of(m) == stamp]
            return found and found[0]

        return self.wait(find, f'command of {stamp}')

    def answer(self, stamp, state):
        """Torques that answer a measurement."""
        self.measure(stamp, state)
        return np.array(self.command(stamp).effort)

    def refer(self, stamp, motion, names=NAMES):
        message = JointMotion(joint_names=list(names))
        message.header.stamp = time_message(stamp)
        for field, row in zip(
            ('position', 'velocity', 'acceleration', 'jerk', 'snap'), motion
        ):
            setattr(message, field, list(row))
        self.publishers['flatness_controller/reference'].publish(message)

    def status(self, part, condition):
        name = f'{self.namespace}/flatness_controller: {part}'

        def find():
            for message in self.messages['/diagnostics']:
                for status in message.status:
                    if status.name == name and condition(status):
                        return status
            return None

        return self.wait(find, f'diagnostics of {part}')

    def close(self):
        for executor in self._executors:
            executor.shutdown()
        for thread in self._threads:
            thread.join(TIMEOUT)
        self.node.destroy_node()
        self.client.destroy_node()
        rclpy.shutdown(context=self.context)


def stamp_of(message):
    return message.header.stamp.sec * 10**9 + message.header.stamp.nanosec


@pytest.fixture
def start():
    harnesses = []

    def make(**parameters):
        harnesses.append(Harness(**parameters))
        harnesses[-1].wait_for_robot()
        return harnesses[-1]

    yield make
    for harness in harnesses:
        harness.close()


STATE = np.array([[0.3, -0.4], [0.1, 0.2], [0.35, -0.4], [0.15, 0.2]])
REFERENCE = np.array([[0.3, -0.5], [0.2, 0.1], [1.0, -0.5], [2.0, 3.0], [40.0, -20.0]])


LEAD = 0.5e-3  # s, half of the default of sample_period


def flatness(bandwidth=12.0):
    return FlatnessController(MODEL, DRIVES, bandwidth, torque_limits=LIMIT, lead=LEAD)


def send_and_wait(harness, stamp, motion):
    """Send a reference and wait until it is taken."""
    harness.refer(stamp, motion)
    harness.wait(
        lambda: any(s.stamp == stamp for s in harness.node.control.references._stream),
        'reference',
    )


def test_every_pair_is_answered_once_by_the_law(start):
    harness = start()
    stamps = [10**9 + k * STEP for k in range(20)]
    send_and_wait(harness, stamps[0], REFERENCE)
    controller = flatness()
    for k, stamp in enumerate(stamps):
        reference = np.array(
            [
                [np.polyval(poly, k * 1e-3 + LEAD) for poly in polys]
                for polys in taylor(REFERENCE)
            ]
        )
        state = STATE + 1e-3 * k
        state[2:, 1] = state[:2, 1]
        np.testing.assert_allclose(
            harness.answer(stamp, state), controller.command(reference, *state), rtol=1e-9
        )
    harness.measure(stamps[-1], STATE)  # once more, and an older one
    harness.measure(stamps[3], STATE)
    harness.answer(stamps[-1] + STEP, STATE)
    assert [stamp_of(message) for message in harness.commands] == [
        *stamps,
        stamps[-1] + STEP,
    ]
    assert list(harness.commands[0].name) == list(NAMES)


def taylor(motion):
    """Polynomials in time, for numpy.polyval, of all derivatives of a motion (5, n)."""
    polys = [np.array(column[::-1]) / [24.0, 6.0, 2.0, 1.0, 1.0] for column in motion.T]
    return [[np.polyder(poly, k) for poly in polys] for k in range(5)]


def test_halves_that_do_not_belong_together_are_not_answered(start):
    harness = start(without_reference='hold')
    harness.measure(10**9, STATE, topics=[LINKS])
    harness.measure(10**9 + STEP, STATE, topics=[MOTORS])
    harness.answer(10**9 + 2 * STEP, STATE)
    assert len(harness.commands) == 1
    for topic in (LINKS, MOTORS):
        harness.status(topic, lambda s: dict_of(s)['dropped late samples'] == '1')


def test_names_may_come_in_any_order_and_with_others(start):
    harness = start(without_reference='hold')
    expected = harness.answer(10**9, STATE)
    extra = np.hstack((STATE[:, ::-1], np.full((4, 1), 9.0)))
    harness.measure(10**9 + STEP, extra, names=('elbow', 'shoulder', 'gripper'))
    found = harness.command(10**9 + STEP)
    np.testing.assert_allclose(found.effort, expected, rtol=1e-12)


def test_a_fault_of_the_law_is_an_error_and_never_an_old_command(start, monkeypatch):
    harness = start(without_reference='hold')
    harness.answer(10**9, STATE)

    def fail(*_, **options):
        raise np.linalg.LinAlgError('Singular matrix')

    monkeypatch.setattr(FlatnessController, 'evaluate', fail)
    harness.measure(10**9 + STEP, STATE)
    status = harness.status('motor_command', lambda s: s.level == DiagnosticStatus.ERROR)
    assert 'Singular matrix' in status.message
    monkeypatch.undo()
    harness.answer(10**9 + 2 * STEP, STATE)
    assert [stamp_of(message) for message in harness.commands] == [10**9, 10**9 + 2 * STEP]


def test_without_a_reference_nothing_is_commanded(start):
    harness = start()
    harness.measure(10**9, STATE)
    status = harness.status('motor_command', lambda s: s.level == DiagnosticStatus.ERROR)
    assert 'There is no reference' in dict_of(status)['held back because']
    assert not harness.commands


def test_without_a_reference_the_robot_may_be_held_where_it_is(start):
    harness = start(without_reference='hold')
    reference = np.zeros((5, 2))
    reference[0] = STATE[0]
    for stamp, state in ((10**9, STATE), (10**9 + STEP, STATE + 0.01)):
        state = state.copy()
        state[2:, 1] = state[:2, 1]
        np.testing.assert_allclose(
            harness.answer(stamp, state), flatness().command(reference, *state), rtol=1e-9
        )


def test_a_stream_that_ends_ends_the_commands(start):
    harness = start(reference_timeout=0.01)
    send_and_wait(harness, 10**9, REFERENCE)
    harness.answer(10**9 + 9 * STEP, STATE)
    harness.measure(10**9 + 11 * STEP, STATE)
    status = harness.status('motor_command', lambda s: s.level == DiagnosticStatus.ERROR)
    assert 'The stream of references has ended' in dict_of(status)['held back because']
    assert len(harness.commands) == 1
    send_and_wait(harness, 10**9 + 20 * STEP, REFERENCE)  # and goes on with the stream
    harness.answer(10**9 + 20 * STEP, STATE)


def test_a_stream_that_ends_may_end_at_rest(start):
    harness = start(reference_timeout=0.01, without_reference='hold', stop_duration=0.5)
    send_and_wait(harness, 10**9, REFERENCE)
    harness.answer(10**9, STATE)
    for stamp in (10**9 + 11 * STEP, 10**9 + 400 * STEP):
        harness.answer(stamp, STATE)
    late = 2 * 10**9
    first, second = harness.answer(late, STATE), harness.answer(late + 100 * STEP, STATE)
    np.testing.assert_array_equal(first, second)  # the reference rests
    # Up to the timeout the stream is continued, and then the motion without a jump.
    harness.status('motor_command', lambda s: dict_of(s)['reference'] == 'rest')


def test_a_trajectory_is_followed_and_its_end_is_held(start):
    harness = start(without_reference='hold', **{'bandwidths.elbow': 5.0})
    now = 5 * 10**9
    harness.answer(now, STATE)
    message = JointTrajectory(joint_names=['elbow', 'shoulder'])
    for k, positions in enumerate(([-0.2, 0.4], [0.1, 0.6])):
        point = JointTrajectoryPoint(positions=positions)
        point.time_from_start.sec = k + 1
        message.points.append(point)
    message.header.stamp = time_message(now)
    harness.publishers['joint_trajectory'].publish(message)
    harness.wait(lambda: harness.node.stream.timeline, 'planned')
    controller = FlatnessController(
        MODEL, DRIVES, [12.0, 5.0], torque_limits=LIMIT, lead=LEAD
    )
    state = STATE.copy()
    state[2:, 1] = state[:2, 1]
    via = np.zeros((5, 2))
    planned = harness.node.stream.timeline.later(0)
    for stamp, positions in ((now + 10**9, [0.4, -0.2]), (now + 4 * 10**9, [0.6, 0.1])):
        found = harness.answer(stamp, state)
        via[0] = positions
        if stamp == now + 10**9:
            np.testing.assert_allclose(planned.at(stamp)[0], positions, atol=1e-9)
            motion = planned.at(stamp + round(1e9 * LEAD))
        else:
            motion = via
        np.testing.assert_allclose(found, controller.command(motion, *state), rtol=1e-6)


def test_a_stream_that_begins_later_leaves_the_trajectory_alone_until_then(start):
    harness = start(without_reference='hold', reference_timeout=0.01)
    now = 5 * 10**9
    harness.answer(now, STATE)
    harness.publishers['joint_trajectory'].publish(trajectory(STATE[0], *[[0.6, 0.2]] * 9))
    harness.wait(lambda: harness.node.stream.timeline, 'planned')
    begin = now + 10**9
    send_and_wait(harness, begin, REFERENCE)
    origins = []
    for stamp in (now + STEP, begin - 100 * STEP, begin, begin + STEP):
        harness.answer(stamp, STATE)
        origins.append(harness.node.control.references.origin)
    assert origins == ['trajectory', 'trajectory', 'stream', 'stream']
    assert not harness.node.stream.timeline
    harness.refer(begin - 50 * STEP, REFERENCE)
    status = harness.status('~/reference', lambda s: dict_of(s)['refused'] == '1')
    assert 'older than the measurements' in dict_of(status)['last error']


def test_time_that_jumps_back_begins_anew(start):
    harness = start(use_sim_time=True, measurement_timeout=0.1, without_reference='hold')
    clock = harness.client.create_publisher(Clock, '/clock', 10)

    def set_clock(stamp):
        def is_there():
            clock.publish(Clock(clock=time_message(stamp)))
            return harness.node.get_clock().now().nanoseconds == stamp

        harness.wait(is_there, 'clock')

    set_clock(10**10)
    first = harness.answer(10**10, STATE)
    set_clock(5 * 10**9)
    moved = STATE + 0.01
    moved[2:, 1] = moved[:2, 1]
    second = harness.answer(5 * 10**9, moved)
    assert abs(second - first).max() > 0.0
    reference = np.zeros((5, 2))
    reference[0] = moved[0]
    # Held where it is now, not where it was before.
    np.testing.assert_allclose(second, flatness().command(reference, *moved), rtol=1e-9)


@pytest.mark.parametrize('wrong', [10**18, 8 * 10**9])
def test_stamps_that_go_back_begin_anew_where_they_are_the_time(start, wrong):
    harness = start(without_reference='hold')
    far = STATE + 1.0
    harness.answer(wrong, far)
    reference = np.zeros((5, 2))
    reference[0] = STATE[0]
    deadline, stamp = time.monotonic() + TIMEOUT, 5 * 10**9
    while len(harness.commands) < 2:
        stamp += STEP
        harness.measure(stamp, STATE)
        time.sleep(0.01)
        assert time.monotonic() < deadline
    # Held where it is now, not where it was in that other time.
    for command in harness.commands[1:]:
        assert stamp_of(command) <= stamp
        expected = flatness().command(reference, *STATE)
        np.testing.assert_allclose(command.effort, expected, rtol=1e-9)
    status = harness.status(
        'motor_command', lambda s: 'behind one that was answered' in str(s.values)
    )
    assert 'begins anew' in dict_of(status)['held back because']


def test_a_trajectory_that_comes_before_the_robot_is_ready_is_followed(monkeypatch):
    # A busy machine takes long to make a robot ready.
    planning = ControlSettings.planning.func
    patient = property(lambda self: replace(planning(self), trajectory_timeout=TIMEOUT))
    monkeypatch.setattr(ControlSettings, 'planning', patient)
    harness = Harness(
        robot_description='', measurement_timeout=10.0, without_reference='hold'
    )
    try:
        harness.publishers['joint_trajectory'].publish(trajectory([0.5, 0.5]))
        status = harness.status('joint_trajectory', lambda s: dict_of(s)['refused'] == '1')
        assert 'There is no robot model yet' in dict_of(status)['last error']
        harness.publishers['robot_description'].publish(String(data=TWO_LINK))
        control = harness.node.control
        harness.wait(lambda: control.preparation.wanted or control.laws, 'wanted')
        # It stays where the robot is, however late that is measured.
        harness.publishers['joint_trajectory'].publish(
            trajectory(*[STATE[0].tolist()] * 100)
        )
        harness.wait(lambda: harness.node.stream.timeline, 'planned')
        harness.answer(harness.node.get_clock().now().nanoseconds, STATE)
        harness.status('motor_command', lambda s: dict_of(s)['reference'] == 'trajectory')
    finally:
        harness.close()


def trajectory(*positions):
    """Trajectory of the shoulder and the elbow with a waypoint each second, from now on."""
    message = JointTrajectory(joint_names=list(NAMES))
    for k, values in enumerate(positions):
        point = JointTrajectoryPoint(positions=values)
        point.time_from_start.sec = k
        message.points.append(point)
    return message


def test_the_law_and_its_gains_can_be_changed_while_it_runs(start):
    harness = start(without_reference='hold')
    state = STATE.copy()
    state[2:, 1] = state[:2, 1]
    reference = np.zeros((5, 2))
    reference[0] = STATE[0]
    harness.answer(10**9, state)
    moved = state + 0.02
    results = harness.node.set_parameters(
        [
            Parameter('bandwidth', value=20.0),
            Parameter('controller', value='feed_forward_2'),
        ]
    )
    assert all(result.successful for result in results)
    gains = motor_gains(MODEL, DRIVES, 20.0, np.zeros(2))
    law = FeedForwardController(MODEL, DRIVES, gains, 2, torque_limits=LIMIT)
    np.testing.assert_allclose(
        harness.answer(10**9 + STEP, moved), law.command(reference, *moved), rtol=1e-9
    )
    for name, value, message in (
        ('controller', 'magic', 'expected one of'),
        ('bandwidth', -1.0, ''),  # rclpy's own words
        ('sample_period', 'soon', 'expected a number from'),
        ('bandwidths.elbow', 1e-6, 'expected 0 or a number'),
    ):
        (result,) = harness.node.set_parameters([Parameter(name, value=value)])
        assert not result.successful
        assert name in result.reason and message in result.reason
    np.testing.assert_allclose(
        harness.answer(10**9 + 2 * STEP, moved), law.command(reference, *moved), rtol=1e-9
    )


@pytest.mark.parametrize(
    ('field', 'value', 'message'),
    [
        ('position', [0.1, float('nan')], "position of joint 'elbow' is nan"),
        ('velocity', [], 'velocity has 0 values, expected 2'),
        ('name', ['shoulder', 'wrist'], 'missing: elbow'),
        ('name', ['shoulder', 'elbow', 'elbow'], 'repeated: elbow'),
        ('name', ['hip', 'knee'], 'expected names shoulder, elbow'),
        ('stamp', 0, 'there is no stamp'),
    ],
)
def test_bad_measurements_are_refused_and_nothing_is_commanded(
    start, field, value, message
):
    harness = start(without_reference='hold')
    bad = JointState(name=list(NAMES), position=[0.0, 0.0], velocity=[0.0, 0.0])
    bad.header.stamp = time_message(10**9)
    if field == 'stamp':
        bad.header.stamp = time_message(value)
    else:
        setattr(bad, field, value)
        if field == 'name' and len(value) == 3:
            bad.position, bad.velocity = [0.0] * 3, [0.0] * 3
    harness.measure(10**9, STATE, topics=[LINKS])
    harness.publishers[MOTORS].publish(bad)
    status = harness.status(MOTORS, lambda s: dict_of(s)['refused'] == '1')
    assert message in dict_of(status)['last error']
    assert not harness.commands
    harness.answer(10**9 + STEP, STATE)  # and the loop goes on


@pytest.mark.parametrize(
    ('motion', 'message'),
    [
        (REFERENCE[:4], 'snap is empty, but the control law needs everything up to snap'),
        (np.full((5, 2), np.nan), 'must be finite'),
    ],
)
def test_bad_references_are_refused(start, motion, message):
    harness = start()
    harness.refer(10**9, motion)
    status = harness.status('~/reference', lambda s: dict_of(s)['refused'] == '1')
    assert message in dict_of(status)['last error']


def test_a_lower_law_takes_a_reference_of_lower_order(start):
    harness = start(controller='feed_forward_0')
    send_and_wait(harness, 10**9, REFERENCE[:3])
    harness.answer(10**9, STATE)


def test_measurements_of_another_time_are_not_answered(start):
    harness = start(measurement_timeout=0.1, without_reference='hold')
    harness.measure(10**9, STATE)
    status = harness.status('motor_command', lambda s: s.level == DiagnosticStatus.ERROR)
    assert 's in the past' in dict_of(status)['held back because']
    now = harness.node.get_clock().now().nanoseconds
    harness.measure(now + 10**10, STATE)
    harness.status(
        'motor_command', lambda s: 's in the future' in dict_of(s)['held back because']
    )
    assert not harness.commands
    harness.answer(harness.node.get_clock().now().nanoseconds, STATE)


def test_limited_torques_are_reported(start):
    harness = start()
    far = REFERENCE.copy()
    far[4, 0] = 1e5
    send_and_wait(harness, 10**9, far)
    torque = harness.answer(10**9, STATE)
    assert abs(torque[0]) == LIMIT
    status = harness.status(
        'motor_command',
        lambda s: 'samples beyond the limit of torque of shoulder' in dict_of(s),
    )
    assert status.level == DiagnosticStatus.WARN


@pytest.mark.parametrize(
    ('parameters', 'message'),
    [
        ({'actuators.shoulder.stiffness': -3.0}, 'stiffness'),
        ({'robot_description': '<robot'}, ''),
        ({'bandwidths.wrist': 3.0}, 'bandwidths.wrist is for no joint'),
    ],
)
def test_unusable_robots_and_actuators_are_refused(parameters, message):
    harness = Harness(**parameters)
    try:
        status = harness.status('robot_description', lambda s: dict_of(s)['refused'] == '1')
        assert message in dict_of(status)['last error']
        harness.measure(10**9, STATE)
        harness.status(LINKS, lambda s: dict_of(s)['refused'] == '1')
        assert not harness.commands
    finally:
        harness.close()


def test_entries_are_declared_with_descriptions_and_ranges(start):
    harness = start()
    for name in (
        *(
            'controller',
            'bandwidth',
            'sample_period',
            'without_reference',
            'bandwidths.elbow',
        ),
        *('allow_limit_violations', 'max_tracking_error', 'max_tracking_errors.elbow'),
        *('velocity_margin', 'position_margin', 'violation_samples'),
    ):
        assert harness.node.describe_parameter(name).description
    for joint in NAMES:
        described = harness.node.describe_parameter(f'actuators.{joint}.motor_inertia')
        assert described.read_only
        assert '[kg m^2]: Inertia of the motor' in described.description
    assert harness.node.describe_parameter('bandwidth').floating_point_range


def test_a_new_description_changes_the_robot_and_a_bad_one_does_not(start):
    harness = start(without_reference='hold')
    state = STATE.copy()
    state[2:, 1] = state[:2, 1]
    before = harness.answer(10**9, state)
    loop = harness.node.control.laws
    (result,) = harness.node.set_parameters(
        [Parameter('robot_description', value=HEAVIER_TWO_LINK)]
    )
    assert result.successful
    harness.wait(lambda: harness.node.control.laws is not loop, 'new robot')
    heavier = harness.answer(10**9 + STEP, state)
    assert abs(heavier - before).max() > 1.0
    harness.publishers['robot_description'].publish(String(data=OTHER_JOINTS))
    status = harness.status('robot_description', lambda s: dict_of(s)['refused'] == '1')
    assert 'unknown joints: elbow, shoulder' in dict_of(status)['last error']
    np.testing.assert_array_equal(harness.answer(10**9 + 2 * STEP, state), heavier)


FAULTS = [ZeroDivisionError('a fault of ours'), MemoryError(), SystemExit(3)]


@pytest.mark.parametrize('error', FAULTS, ids=lambda error: type(error).__name__)
def test_it_refuses_what_fails_beside_the_control_and_goes_on(monkeypatch, error):
    def fail_once(name, module=flatness_controller):
        whole = getattr(module, name)

        def fail(*_):
            monkeypatch.setattr(module, name, whole)
            raise error

        monkeypatch.setattr(module, name, fail)

    def refusal(topic):
        status = harness.status(topic, lambda status: dict_of(status)['last error'])
        return dict_of(status)['last error']

    fail_once('assemble', laws)
    harness = Harness(robot_description='')
    try:
        harness.publishers['robot_description'].publish(String(data=TWO_LINK))
        assert refusal('robot_description') == f'Internal error: {error!r}'
        harness.publishers['robot_description'].publish(String(data=TWO_LINK))
        harness.wait_for_robot()
        fail_once('plan_trajectory')
        harness.measure(10**9, np.zeros((4, 2)))
        harness.wait(lambda: harness.node.control.measured, 'a measurement')
        message = JointTrajectory(joint_names=NAMES)
        message.points.append(JointTrajectoryPoint(positions=[0.1, 0.2]))
        message.points[0].time_from_start.sec = 1
        harness.publishers['joint_trajectory'].publish(message)
        assert refusal('joint_trajectory') == f'Internal error: {error!r}'
        harness.publishers['joint_trajectory'].publish(message)
        harness.wait(lambda: harness.node.stream.timeline, 'planned')
    finally:
        harness.close()
