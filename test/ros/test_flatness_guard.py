"""The guard of the flatness controller: what it refuses, and how it stops a robot.

The node answers a simulated robot in lock step, by its callbacks: every run is the same.
"""

import time
import types

import numpy as np
import pytest

rclpy = pytest.importorskip('rclpy')
pytest.importorskip('mujoco')

from diagnostic_msgs.msg import DiagnosticStatus  # noqa: E402
from hodyn_msgs.msg import JointMotion  # noqa: E402
from rclpy.context import Context  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402
from rclpy.serialization import serialize_message  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from support.robots import HEAVIER_TWO_LINK, TWO_LINK  # noqa: E402
from support.ros_harness import TIMEOUT, dict_of, next_domain  # noqa: E402
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint  # noqa: E402

from hodyn_ros import RobotModel  # noqa: E402
from hodyn_ros.actuators import SeriesElastic  # noqa: E402
from hodyn_ros.control import TrackingController  # noqa: E402
from hodyn_ros.errors import ControlError, MotionError  # noqa: E402
from hodyn_ros.kinematics import jacobian  # noqa: E402
from hodyn_ros.ros.base.conversions import MOTION_FIELDS, time_message  # noqa: E402
from hodyn_ros.ros.nodes.flatness_controller import (  # noqa: E402
    OBSERVED,
    FlatnessControllerNode,
)
from hodyn_ros.simulation.plant import ElasticPlant  # noqa: E402
from hodyn_ros.simulation.sampling import SampledPlant  # noqa: E402
from hodyn_ros.streams.inputs import LINKS, MOTORS  # noqa: E402
from hodyn_ros.streams.supervisor import FLOATING, STOPPING  # noqa: E402

# The laws warn of what the tests want.
pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.control.ControlWarning')

NAMES = ('shoulder', 'elbow')
LIMIT, SPEED, EFFORT = 2.0, 3.0, 50.0  # of the robot description
STEP = 10**6  # ns
REST = 0.05  # rad/s; the springs have no damping
STIFFNESS, INERTIA = 1000.0, 0.3
DRIVES = {
    f'actuators.{joint}.{key}': value
    for joint in NAMES
    for key, value in {
        'type': 'sea',
        'stiffness': STIFFNESS,
        'motor_inertia': INERTIA,
    }.items()
}
START = np.array([0.3, -0.4])


class Kept:
    """Takes the place of a publisher and keeps the latest message."""

    effort = None

    def publish(self, message):
        self.effort = np.array(message.effort)


class Loop:
    """A controller node and a simulated robot, which follows its commands in lock step."""

    def __init__(
        self,
        urdf=TWO_LINK,
        start=START,
        *,
        has_velocities=True,
        has_sensors=False,
        **parameters,
    ):
        self.has_velocities, self.has_sensors, self.restore = (
            has_velocities,
            has_sensors,
            [],
        )
        self.context = Context()
        rclpy.init(context=self.context, domain_id=next_domain())
        values = {
            'robot_description': TWO_LINK,
            'measurement_timeout': 0.0,
            'without_reference': 'hold',
            **DRIVES,
            **parameters,
        }
        self.node = FlatnessControllerNode(
            context=self.context,
            parameter_overrides=[
                Parameter(name, value=value) for name, value in values.items()
            ],
        )
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self.spin_until(lambda: self.node.control.laws is not None)
        self.publisher, self.node._publisher = self.node._publisher, Kept()
        plant = ElasticPlant(
            RobotModel.from_urdf(urdf),
            dict.fromkeys(NAMES, SeriesElastic(STIFFNESS, INERTIA)),
        )
        self.robot = SampledPlant(plant, 1e-3)
        self.robot.reset(start, torque=plant.holding_torque(start))
        self.stamp = 10**9
        self.record = []  # links and torques of all samples

    def spin_until(self, condition):
        deadline = time.monotonic() + TIMEOUT
        while not condition():
            self.executor.spin_once(timeout_sec=0.02)
            assert time.monotonic() < deadline

    def close(self):
        self.executor.shutdown()
        self.node._publisher = self.publisher
        for name, publisher in self.restore:
            setattr(self.node, name, publisher)
        self.node.destroy_node()
        rclpy.shutdown(context=self.context)

    def lose(self, count):
        """The robot moves on with the torque it has, and nothing is measured."""
        for _ in range(count):
            self.stamp += STEP
            self.robot.advance(self.record[-1][2])

    def sample(self, change=None, push=0.0, force=(0.0, 0.0)):
        """One sample: the robot is measured, perhaps with a fault, and moves by the answer.

        A push is on the motors, a force, in joint torques, on the links.
        """
        measured = self.robot.measurement
        state = np.array([measured.q, measured.qd, measured.theta, measured.thetad])
        if change is not None:
            state = state + change
        kept = self.node._publisher
        kept.effort = None
        for topic, rows in ((LINKS, state[:2]), (MOTORS, state[2:])):
            message = JointState(name=NAMES, position=rows[0])
            if self.has_velocities:
                message.velocity = rows[1]
            if self.has_sensors and topic == LINKS:
                message.effort = STIFFNESS * (measured.theta - measured.q)
            message.header.stamp = time_message(self.stamp)
            self.node._take(topic, message)
            self.node._control_newest()
        torque = kept.effort
        self.record.append((measured.q, measured.qd, torque))
        self.stamp += STEP
        plant = self.robot.plant
        plant.mujoco_data.qfrc_applied[plant._link] = force
        self.robot.advance((np.zeros(2) if torque is None else torque) + push)
        return torque

    def run(self, seconds, **options):
        for _ in range(round(1e3 * seconds)):
            self.sample(**options)

    def run_until_stopped(self, seconds=3.0, **options):
        for _ in range(round(1e3 * seconds)):
            self.sample(**options)
            if self.node.supervisor.why:
                return
        raise AssertionError('it was not stopped')

    def send(self, *points, seconds=1.0):
        """Send a trajectory and wait for what becomes of it; refused at once, it raises."""
        message = JointTrajectory(joint_names=NAMES)
        for k, positions in enumerate(points):
            point = JointTrajectoryPoint(positions=[float(value) for value in positions])
            nanoseconds = round(1e9 * seconds * (k + 1))
            point.time_from_start.sec, point.time_from_start.nanosec = divmod(
                nanoseconds, 10**9
            )
            message.points.append(point)
        self.node.control.take_trajectory(serialize_message(message))
        self.spin_until(lambda: self.node.stream._open is None)

    def refer(self, motion):
        message = JointMotion(joint_names=NAMES)
        message.header.stamp = time_message(self.stamp)
        for field, row in zip(MOTION_FIELDS, motion):
            setattr(message, field, [float(value) for value in row])
        self.node._take_reference(message)

    def status(self, part='motor_command'):
        report = self.node.statuses()
        return next(s for s in report if s.name.endswith(f': {part}'))

    @property
    def q(self):
        return np.array([sample[0] for sample in self.record])

    @property
    def qd(self):
        return np.array([sample[1] for sample in self.record])


@pytest.fixture
def start():
    loops = []

    def make(*arguments, **parameters):
        loops.append(Loop(*arguments, **parameters))
        loops[-1].run(0.05)
        return loops[-1]

    yield make
    for loop in loops:
        loop.close()


VIOLENT = START + [2.0, 0.0]


def test_a_trajectory_that_exceeds_limits_is_refused(start):
    loop = start()
    loop.send(VIOLENT, seconds=0.2)
    status = loop.status('joint_trajectory')
    error = dict_of(status)['last error']
    assert 'exceeds' in error and 'limits' in error
    assert 'allow_limit_violations' in error
    assert 'effort_trajectory' not in error  # a topic of another node
    loop.run(0.5)
    np.testing.assert_allclose(loop.q[-1], START, atol=1e-3)


@pytest.mark.parametrize(
    ('key', 'value', 'words'),
    [
        ('max_motor_torque', 9.0, 'motor_torque of shoulder'),
        ('max_deflection', 0.012, 'deflections'),
    ],
)
def test_limits_of_the_motors_and_springs_count(start, key, value, words):
    loop = start(**{f'actuators.shoulder.{key}': value})
    loop.send(START + [0.5, 0.0], seconds=0.4)
    error = dict_of(loop.status('joint_trajectory'))['last error']
    assert words in error and 'shoulder' in error
    assert not loop.node.stream.timeline


def test_what_is_allowed_is_stopped_when_the_robot_cannot_follow(start):
    loop = start(allow_limit_violations=True)
    loop.send(VIOLENT, seconds=0.2)
    assert loop.node.stream.timeline
    loop.run_until_stopped()
    stopped = len(loop.record)
    status = loop.status()
    assert status.level == DiagnosticStatus.ERROR
    assert status.message.startswith('the robot has been stopped: The ')
    reason = dict_of(status)['stopped because']
    assert 'of shoulder is' in reason
    assert 'max_tracking_error' in reason or 'velocity_margin' in reason
    loop.run(2.5)
    # It stays within its limits, rests, and is held against its weight.
    assert abs(loop.q).max() < LIMIT
    assert abs(loop.qd[-100:]).max() < REST
    assert np.ptp(loop.q[-500:], axis=0).max() < 2e-3
    assert len(loop.record) - stopped == 2500
    assert loop.status().level == DiagnosticStatus.ERROR  # and stays stopped


def test_until_it_rests_nothing_is_taken_and_then_a_trajectory_is(start):
    loop = start(allow_limit_violations=True)
    loop.send(VIOLENT, seconds=0.2)
    loop.run_until_stopped()
    for _ in range(3):
        with pytest.raises(
            ControlError, match='It does not move on yet: the motion to rest'
        ):
            loop.send(START)
        with pytest.raises(ControlError, match='also an empty one'):
            loop.refer(np.zeros((5, 2)))
        loop.run(0.01)
    loop.run(1.5)
    rested = len(loop.record)
    loop.send(START, seconds=1.5)
    assert loop.status().level != DiagnosticStatus.ERROR
    loop.run(1.8)
    np.testing.assert_allclose(loop.q[-1], START, atol=1e-3)
    assert dict_of(loop.status())['stops'] == '1'
    assert abs(loop.qd[rested:]).max() < SPEED


def test_a_robot_that_is_moved_after_the_stop_is_not_let_go(start):
    loop = start(allow_limit_violations=True)
    loop.send(VIOLENT, seconds=0.2)
    loop.run_until_stopped()
    loop.run(1.5)
    loop.run(0.05, push=[40.0, 0.0])
    with pytest.raises(ControlError, match='shoulder still moves'):
        loop.send(START)


def test_an_empty_trajectory_ends_the_stop_for_a_stream(start):
    loop = start()
    loop.run_until_stopped(change=np.array([[0.5, 0.0]] * 4) * [[1.0], [0.0], [1.0], [0.0]])
    loop.run(1.0)
    loop.send()
    held = np.zeros((5, 2))
    held[0] = loop.q[-1]
    loop.refer(held)
    loop.sample()
    assert loop.node.control.references.origin == 'stream'
    assert not loop.node.supervisor.why


def test_the_end_of_a_stop_is_held_as_that_of_a_trajectory(start):
    loop = start(without_reference='stop')
    loop.send(START + 0.2)
    loop.run(0.3)
    loop.run_until_stopped(change=np.array([[0.5, 0.0], [0.0, 0.0]] * 2))
    loop.run(1.0)
    loop.send()
    loop.run(0.2)
    assert all(torque is not None for _, _, torque in loop.record[-1000:])
    assert not loop.node.supervisor.why


@pytest.mark.parametrize('quantity', range(2))
def test_a_single_bad_sample_neither_stops_nor_jerks_the_robot(start, quantity):
    loop = start()
    loop.send(START + 0.3)
    loop.run(0.4)
    for samples in (1, 2):  # of three that it takes
        before = loop.sample()
        bad = np.zeros((4, 2))
        bad[quantity::2, 0] = [0.7, 9.0][quantity]
        for _ in range(samples):
            np.testing.assert_array_equal(loop.sample(bad), before)
        loop.run(0.05)
    assert not loop.node.supervisor.why
    assert dict_of(loop.status())['measurements beyond a bound'] == '3'
    loop.run(1.0)
    np.testing.assert_allclose(loop.q[-1], START + 0.3, atol=2e-3)


def test_a_measured_state_that_jumps_for_good_stops_where_it_is(start):
    loop = start()
    jump = np.array([[0.5, 0.0], [0.0, 0.0]] * 2)
    loop.run(0.01, change=jump)
    assert 'The tracking error of shoulder is -0.5' in loop.node.supervisor.why
    loop.run(1.0, change=jump)
    # The sensor has slipped, not the robot.
    np.testing.assert_allclose(loop.q[-1], START, atol=0.02)


def test_a_robot_that_was_silent_while_its_trajectory_went_on_is_stopped(start):
    loop = start()
    loop.send(START + 0.8)
    loop.run(0.4)
    begin, loop.stamp = len(loop.record), loop.stamp + 2 * 10**9
    loop.run(1.0)
    assert 'The tracking error of' in loop.node.supervisor.why
    # It does not rush after what it has missed.
    assert abs(loop.qd[begin:]).max() < 1.1 * abs(loop.qd[:begin]).max()
    assert abs(loop.qd[-1]).max() < REST


def test_a_joint_that_is_pushed_too_fast_is_stopped(start):
    loop = start(max_tracking_error=10.0)
    loop.run_until_stopped(push=[90.0, 0.0])
    assert 'The velocity of shoulder is 3.' in loop.node.supervisor.why
    assert 'expected -3.6 to 3.6 (velocity_margin)' in loop.node.supervisor.why
    loop.run(1.5)
    assert abs(loop.qd[-1]).max() < REST


def test_a_joint_beyond_its_limit_is_stopped_and_may_return(start):
    loop = start(start=np.array([LIMIT + 0.1, -0.4]))
    assert 'The position of shoulder is 2.1' in loop.node.supervisor.why
    loop.run(0.6)
    home = np.array([LIMIT - 0.5, -0.4])
    with pytest.raises(ControlError, match='expected -2.05 to 2.05 .position_margin'):
        loop.send(home)
    # As the message says: with a margin in which it is already, it may leave it to the inside.
    (result,) = loop.node.set_parameters([Parameter('position_margin', value=0.2)])
    assert result.successful
    loop.sample()
    loop.send([LIMIT + 0.15, -0.4])
    assert 'exceeds a limit' in dict_of(loop.status('joint_trajectory'))['last error']
    loop.send(home)
    loop.run(1.5)
    np.testing.assert_allclose(loop.q[-1], home, atol=1e-3)


def test_a_stop_that_saturates_drags_its_reference_along(start):
    weak = {f'actuators.{joint}.max_motor_torque': 14.0 for joint in NAMES}
    loop = start(
        max_tracking_error=0.1, stop_duration=0.05, allow_limit_violations=True, **weak
    )
    loop.send(START + [1.2, 0.0], seconds=0.8)
    loop.run_until_stopped(push=[6.0, 0.0])
    ahead, torques = [], []
    for _ in range(2000):
        torques.append(loop.sample())
        ahead.append(loop.node.control.references._latest.motion[0] - loop.q[-1])
    assert (abs(np.array(torques)) == 14.0).any()  # the stop is more than the motor can do
    # And yet nothing pulls it back from afar.
    assert abs(np.array(ahead)).max() < 0.1 + 1e-9
    assert abs(loop.qd[-1]).max() < REST
    assert abs(loop.q).max() < LIMIT


def test_of_the_pairs_that_wait_the_newest_is_answered(start):
    loop = start()
    node, sent = loop.node, []
    node._publisher.publish = lambda message: sent.append(message.header.stamp.nanosec)
    for k in range(3):
        for topic in (LINKS, MOTORS):
            message = JointState(name=NAMES, position=START, velocity=np.zeros(2))
            message.header.stamp = time_message(loop.stamp + k * STEP)
            node._take(topic, message)
    node._control_newest()
    node._control_newest()
    assert sent == [(loop.stamp + 2 * STEP) % 10**9]
    assert int(dict_of(loop.status(LINKS))['dropped late samples']) == 2


def test_an_error_of_ours_while_a_robot_is_made_refuses_it(start, monkeypatch):
    loop = start()

    def fails(*_):
        raise RuntimeError('no law today')

    monkeypatch.setattr('hodyn_ros.streams.laws.make_controller', fails)
    before = loop.node.control.laws
    loop.node.describe(HEAVIER_TWO_LINK)
    preparation = loop.node.control.preparation
    loop.spin_until(lambda: preparation.error)
    assert 'no law today' in preparation.error
    assert loop.node.control.laws is before and not preparation.wanted


def test_a_law_that_diverges_is_stopped_by_another_one(start):
    # Exact linearisation with a tool that it does not know.
    loop = start(HEAVIER_TWO_LINK, controller='flatness', bandwidth=15.0)
    loop.send(START + 0.8)
    loop.run_until_stopped()
    loop.run(1.5)
    assert abs(loop.qd[-200:]).max() < REST
    assert abs(loop.q).max() < LIMIT


def test_references_that_exceed_limits_are_refused_unless_it_is_allowed(start):
    loop = start()
    for row, value, text in (
        (0, 2.1, 'position of elbow is 2.1, its limit 2'),
        (1, -3.1, 'velocity of elbow is -3.1, its limit -3'),
        (2, 900.0, 'effort of shoulder is'),
    ):
        motion = np.zeros((5, 2))
        motion[0] = START
        motion[row, 1] = value
        with pytest.raises(MotionError, match=text):
            loop.refer(motion)
    (result,) = loop.node.set_parameters([Parameter('allow_limit_violations', value=True)])
    assert result.successful
    loop.refer(motion)


def test_time_that_begins_anew_does_not_end_the_stop(start):
    loop = start()
    jump = np.array([[0.5, 0.0], [0.0, 0.0]] * 2)
    loop.run(0.01, change=jump)
    reason = loop.node.supervisor.why
    assert reason
    loop.node.on_time_jump('time jumped back')
    loop.stamp = 10**8
    loop.run(1.0)
    assert loop.node.supervisor.why == reason
    assert dict_of(loop.status())['reference'] == 'stop'
    np.testing.assert_allclose(loop.q[-1], START, atol=0.02)


def test_bounds_of_single_joints(start):
    loop = start(controller='feed_forward_2', **{'max_tracking_errors.elbow': 0.01})
    loop.run(0.05, change=np.array([[0.05, 0.0], [0.0, 0.0]] * 2))
    assert not loop.node.supervisor.why
    loop.run(0.05, change=np.array([[0.0, 0.05], [0.0, 0.0]] * 2))
    assert 'tracking error of elbow' in loop.node.supervisor.why
    for value, expected in ((-1.0, 'expected 0 or a number from'), ([], 'expected 0 or')):
        (result,) = loop.node.set_parameters(
            [Parameter('max_tracking_errors.elbow', value=value)]
        )
        assert not result.successful and expected in result.reason
    (result,) = loop.node.set_parameters(
        [Parameter('max_tracking_errors.elbow', value=0.0)]
    )
    assert result.successful


def test_default_is_the_tracking_law_at_1_khz(start):
    loop = start()
    settings, law = loop.node.settings, loop.node.control.laws.controller
    assert isinstance(law, TrackingController)
    assert (law.bandwidth, law.sample_period) == (50.0, 0.001)
    assert settings.lead == law.lead == 0.0005


def test_what_a_law_warns_of_is_logged(start, monkeypatch):
    import warnings

    from hodyn_ros.streams import laws

    made = laws.make_controller

    def warning(*arguments):
        warnings.warn('It is soft.', stacklevel=2)
        return made(*arguments)

    loop = start()
    said = []
    monkeypatch.setattr(laws, 'make_controller', warning)
    monkeypatch.setattr(
        type(loop.node.get_logger()), 'warning', lambda self, text, **_: said.append(text)
    )
    (result,) = loop.node.set_parameters([Parameter('bandwidth', value=15.0)])
    assert result.successful
    assert 'It is soft.' in said


def test_tracking_follows_a_heavier_robot_without_velocities(start):
    loop = start(HEAVIER_TWO_LINK, has_velocities=False)
    loop.send(START + [0.6, -0.3], seconds=1.0)
    loop.run(0.5)
    now = loop.node.control.references._latest.motion[0]
    np.testing.assert_allclose(loop.q[-1], now, atol=5e-3)
    loop.run(2.0)
    assert not loop.node.supervisor.why
    np.testing.assert_allclose(loop.q[-1], START + [0.6, -0.3], atol=1e-4)


def test_single_lost_measurements_are_bridged_and_long_pauses_stop_it_on_its_path(start):
    loop = start()
    loop.send(START + [0.8, -0.8], seconds=1.0)
    for _ in range(20):
        loop.run(0.02)
        loop.lose(2)
    assert not loop.node.supervisor.why
    loop.lose(60)
    loop.sample()
    assert (
        'no measurement' in loop.node.supervisor.why
        and 'max_gap' in loop.node.supervisor.why
    )
    assert (
        loop.node.control.references.is_stopping and loop.node.supervisor.state == STOPPING
    )
    loop.run(1.5)
    # It rests on the way, a line on which the elbow moves as far as the shoulder.
    moved = loop.q[-1] - START
    assert 0.05 < moved[0] < 0.79
    np.testing.assert_allclose(moved[1], -moved[0], atol=2e-3)
    assert abs(loop.qd[-1]).max() < REST
    loop.send(START + [0.8, -0.8], seconds=1.0)  # resumes on request
    loop.run(1.5)
    assert not loop.node.supervisor.why
    np.testing.assert_allclose(loop.q[-1], START + [0.8, -0.8], atol=1e-3)


def test_a_trajectory_from_before_the_simulated_time_begins_with_it(start):
    loop = start()
    assert change(loop, measurement_timeout=0.1).successful
    loop.node.control.measured, loop.node.now = None, lambda: 0
    message = JointTrajectory(joint_names=NAMES)
    message.points.append(JointTrajectoryPoint(positions=[0.8, -0.9]))
    message.points[0].time_from_start.sec = 1
    loop.node.control.take_trajectory(serialize_message(message))
    assert loop.node.stream._open is None
    loop.node.now = lambda: loop.stamp
    loop.sample()
    loop.spin_until(lambda: loop.node.stream.timeline)
    loop.run(2.0)
    assert not loop.node.supervisor.why
    np.testing.assert_allclose(loop.q[-1], [0.8, -0.9], atol=1e-3)


def test_a_pause_at_rest_does_not_stop_it(start):
    loop = start()
    loop.lose(200)
    loop.run(0.5)
    assert not loop.node.supervisor.why
    np.testing.assert_allclose(loop.q[-1], START, atol=1e-3)


def test_saturation_that_lasts_stops_it(start):
    loop = start(saturation_time=0.05, max_tracking_error=1e6, velocity_margin=1e6)
    loop.run(0.04, push=[100.0, 0.0])
    assert not loop.node.supervisor.why
    loop.run(0.04, push=[100.0, 0.0])
    assert 'torque limit' in loop.node.supervisor.why


def test_measurements_at_another_rate_than_it_was_told_stop_it(start):
    loop = start(sample_period=0.004)
    assert 'sample_period is 0.004' in loop.node.supervisor.why
    assert 'every 0.001 to 0.001 s' in loop.node.supervisor.why


def test_a_collision_stops_it_along_its_path(start):
    loop = start(max_external_torque=30.0, **{'max_external_torques.elbow': 4.0})
    loop.send(START + [0.8, -0.8], seconds=1.5)
    loop.run(0.4)
    assert not loop.node.supervisor.why
    loop.run(0.3, force=[0.0, 6.0])
    assert 'external torque of elbow' in loop.node.supervisor.why
    assert loop.node.supervisor.state == STOPPING
    loop.run(1.5)
    moved = loop.q[-1] - START
    assert 0.05 < moved[0] < 0.7
    np.testing.assert_allclose(moved[1], -moved[0], atol=5e-3)


def test_what_is_observed_is_published(start):
    loop = start(tool_link='tool')
    seen, wrenches = [], []
    for name, into in (('_observed', seen), ('_wrench', wrenches)):
        kept = getattr(loop.node, name)
        fake = types.SimpleNamespace(publish=into.append, get_subscription_count=lambda: 1)
        setattr(loop.node, name, fake)
        loop.restore.append((name, kept))
    loop.run(0.3, force=[3.0, 1.0])
    state, wrench = seen[-1], wrenches[-1]
    assert list(state.joint_names) == list(state.motor_names) == list(NAMES)
    assert state.header.stamp == wrench.header.stamp == time_message(loop.stamp - STEP)
    np.testing.assert_allclose(state.external_torque, [3.0, 1.0], rtol=0.05)
    np.testing.assert_allclose(state.position, loop.q[-1], atol=1e-4)
    assert wrench.header.frame_id == 'tool'
    J = jacobian(
        loop.node.control.laws.robot.model, np.array(state.position)[None], 'tool'
    )[0]
    torque, force = wrench.wrench.torque, wrench.wrench.force
    acts = [torque.x, torque.y, torque.z, force.x, force.y, force.z]
    np.testing.assert_allclose(J.T @ acts, state.external_torque, atol=1e-9)
    assert all(len(getattr(state, name)) == 2 for name in OBSERVED)


def test_torque_sensors_are_used_where_there_are_any(start):
    loop = start(torque_sensors=True, has_sensors=True)
    loop.run(0.3)
    np.testing.assert_allclose(loop.q[-1], START, atol=1e-3)
    assert loop.node.control.measured.spring_torque is not None


def change(loop, **values):
    return loop.node.set_parameters_atomically(
        [Parameter(k, value=v) for k, v in values.items()]
    )


def test_laws_are_changed_at_rest_without_a_step(start):
    loop = start(tool_link='tool', joint_stiffness=60.0)
    loop.run(1.0, force=[2.0, 1.0])
    for law in (
        'joint_impedance',
        'cartesian_impedance',
        'gravity_compensation',
        'tracking',
    ):
        before = loop.record[-1][2]
        assert change(loop, controller=law).successful
        loop.sample(force=[2.0, 1.0])
        np.testing.assert_allclose(loop.record[-1][2], before, atol=0.1)
        loop.run(0.02 if law == 'gravity_compensation' else 0.6, force=[2.0, 1.0])
    assert not loop.node.supervisor.why
    # Of one and the same observer, which was never at a loss.
    np.testing.assert_allclose(
        loop.node.control.laws.controller.observer.state().external_torque,
        [2.0, 1.0],
        rtol=0.2,
    )


def test_impedance_yields_by_its_stiffness(start):
    loop = start(
        controller='joint_impedance',
        joint_stiffness=50.0,
        max_external_torque=1e-3,
        **{'joint_stiffnesses.elbow': 20.0},
    )
    loop.run(1.2, force=[2.5, 1.0])
    assert not loop.node.supervisor.why
    moved = loop.q[-1] - START
    np.testing.assert_allclose(moved, [2.5 / 50.0, 1.0 / 20.0], rtol=0.05)


def test_a_robot_that_is_led_by_hand_stays_where_it_is_left(start):
    loop = start(controller='gravity_compensation')
    with pytest.raises(ControlError, match='led by hand'):
        loop.send(START)
    loop.run(0.6, force=[1.0, 0.3])
    loop.run(3.0)
    there = loop.q[-1]
    assert abs(there - START).max() > 0.02
    assert abs(loop.qd[-1]).max() < REST
    assert change(loop, controller='tracking').successful
    loop.run(0.5)
    np.testing.assert_allclose(loop.q[-1], there, atol=5e-3)
    loop.send(START, seconds=1.0)
    loop.run(1.5)
    np.testing.assert_allclose(loop.q[-1], START, atol=1e-3)


def test_a_robot_that_collides_may_float_until_the_next_trajectory(start):
    loop = start(collision_reaction='float', **{'max_external_torques.elbow': 4.0})
    loop.send(START + [0.8, -0.8], seconds=1.5)
    loop.run(0.4)
    loop.run(0.1, force=[0.0, 8.0])
    assert 'external torque of elbow' in loop.node.supervisor.why
    assert loop.node.supervisor.state == FLOATING
    loop.run(1.5)
    led = loop.q[-1]
    loop.run(0.3, force=[0.0, 1.0])
    assert loop.q[-1][1] - led[1] > 0.02  # it gives way
    loop.run(1.5)
    loop.send(START, seconds=1.0)
    assert not loop.node.supervisor.why
    loop.run(1.3)
    np.testing.assert_allclose(loop.q[-1], START, atol=1e-3)


def test_laws_are_not_changed_while_the_robot_moves_or_is_stopped(start):
    loop = start()
    loop.send(START + [0.8, 0.0], seconds=1.0)
    loop.run(0.5)
    result = change(loop, controller='gravity_compensation')
    assert not result.successful and 'still moves' in result.reason
    result = change(loop, controller='cartesian_impedance')
    assert not result.successful and 'needs tool_link' in result.reason
    loop.lose(60)
    loop.run(1.5)
    result = change(loop, controller='joint_impedance')
    assert not result.successful and 'has been stopped' in result.reason
    result = change(loop, controller='joint_impedance', joint_stiffness=1e5)
    assert not result.successful and 'stiffness' in result.reason


@pytest.mark.parametrize(
    ('values', 'message'),
    [
        ({'bandwidth': 150.0, 'delay': 0.02}, 'would'),
        ({'bandwidths.elbow': 30.0}, 'tracking has one bandwidth'),
        ({'tool_link': 'hand'}, "no link 'hand'"),
        ({'sample_period': 0.0}, 'out of range'),
        ({'controller': 'magic'}, 'expected one of'),
    ],
)
def test_settings_that_do_not_fit_are_refused(start, values, message):
    node = start().node
    result = node.set_parameters_atomically(
        [Parameter(k, value=v) for k, v in values.items()]
    )
    assert not result.successful and message in result.reason


@pytest.mark.slow
def test_over_topics_a_robot_in_lock_step_is_stopped_and_moves_on():
    simulated_robot = pytest.importorskip('hodyn_ros.ros.nodes.simulated_robot')
    context = Context()
    rclpy.init(context=context, domain_id=next_domain())
    shared = {'robot_description': TWO_LINK, **DRIVES}
    reliable = {
        f'qos_overrides./{topic}.subscription.reliability': 'reliable'
        for topic in (LINKS, MOTORS)
    }
    nodes = [
        kind(
            context=context,
            cli_args=['--ros-args', '-r', '~/motor_command:=motor_command'],
            parameter_overrides=[
                Parameter(name, value=value) for name, value in {**shared, **own}.items()
            ],
        )
        for kind, own in (
            (
                FlatnessControllerNode,
                {
                    'measurement_timeout': 0.0,
                    'without_reference': 'hold',
                    'allow_limit_violations': True,
                    **reliable,
                },
            ),
            (
                simulated_robot.SimulatedRobot,
                {
                    'command_timeout': 2.0,
                    'publish_clock': False,
                    'initial_position.elbow': -0.4,
                },
            ),
        )
    ]
    controller, robot = nodes
    planner = rclpy.create_node('planner', context=context)
    publisher = planner.create_publisher(JointTrajectory, 'joint_trajectory', 1)
    executor = SingleThreadedExecutor(context=context)
    for node in nodes:
        executor.add_node(node)
    speeds = []

    def spin_until(condition):
        deadline = time.monotonic() + 3 * TIMEOUT
        while not condition():
            executor.spin_once(timeout_sec=0.02)
            speeds.append(abs(robot._robot.plant.qd).max())
            assert time.monotonic() < deadline

    def send(positions, nanoseconds):
        message = JointTrajectory(joint_names=NAMES)
        message.points.append(JointTrajectoryPoint(positions=positions))
        message.points[0].time_from_start.sec = nanoseconds // 10**9
        message.points[0].time_from_start.nanosec = nanoseconds % 10**9
        publisher.publish(message)

    def samples(count):
        last = robot._robot.count + count
        spin_until(lambda: robot._robot.count >= last)

    try:
        spin_until(lambda: publisher.get_subscription_count() > 0)
        spin_until(lambda: robot._robot.count > 0)
        send([2.0, -0.4], 2 * 10**8)
        spin_until(lambda: controller.supervisor.why)
        samples(1500)
        assert controller.supervisor.why
        assert abs(robot._robot.plant.q).max() < LIMIT
        assert abs(robot._robot.plant.qd).max() < REST
        speeds.clear()
        send([0.0, -0.4], 2 * 10**9)
        spin_until(lambda: not controller.supervisor.why)
        spin_until(lambda: controller.stream.timeline)
        samples(2500)
        np.testing.assert_allclose(robot._robot.plant.q, [0.0, -0.4], atol=2e-3)
        assert max(speeds) < SPEED
    finally:
        executor.shutdown()
        for node in (*nodes, planner):
            node.destroy_node()
        rclpy.shutdown(context=context)
