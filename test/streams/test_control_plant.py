"""The control loop beside a simulated robot with elastic joints, which its torques move."""

import struct
import warnings

import numpy as np
import pytest
from support.robots import HEAVIER_TWO_LINK, TWO_LINK
from support.stream_host import Host, control_settings

from hodyn_ros import RobotModel
from hodyn_ros.actuators import SeriesElastic
from hodyn_ros.errors import ControlError
from hodyn_ros.streams import laws
from hodyn_ros.streams.control_loop import ControlLoop
from hodyn_ros.streams.inputs import LINKS, MOTORS
from hodyn_ros.streams.motion_stream import Plan
from hodyn_ros.streams.supervisor import FLOATING, STOPPING
from hodyn_ros.streams.timeline import PlannedMotion
from hodyn_ros.trajectory.spline import fit_spline

pytest.importorskip('mujoco')

from hodyn_ros.simulation.mjcf import link_joint  # noqa: E402
from hodyn_ros.simulation.plant import ElasticPlant  # noqa: E402
from hodyn_ros.simulation.sampling import SampledPlant  # noqa: E402

# The laws warn of what the tests want.
pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.control.ControlWarning')

NAMES = ('shoulder', 'elbow')
LIMIT, SPEED = 2.0, 3.0  # of the robot description
REST = 0.1  # rad/s; the springs have no damping
PERIOD = 1_000_000  # ns
STIFFNESS, INERTIA = 1000.0, 0.3
DRIVE = {'type': 'sea', 'stiffness': STIFFNESS, 'motor_inertia': INERTIA}
START = np.array([0.3, -0.4])
VIOLENT = START + [2.0, 0.0]  # if it is to be there in 0.2 s
AWAY = START + [0.8, -0.8]
SLIP = np.array([[0.5, 0.0], [0.0, 0.0]] * 2)  # of the encoders of the shoulder


class Robot:
    """A loop and the robot that it controls, sample by sample."""

    def __init__(self, urdf=TWO_LINK, drive=DRIVE, has_velocities=True, **values):
        self.has_velocities, self.tasks, self.record = has_velocities, [], []
        drives = tuple((joint, *item) for joint in NAMES for item in drive.items())
        self.host = Host(control_settings(actuators=drives, **values))
        self.control = ControlLoop(self.host, self, laws.elastic_robot, laws.make_laws)
        self.control.preparation.request(TWO_LINK)
        springs = dict.fromkeys(NAMES, SeriesElastic(STIFFNESS, INERTIA))
        plant = ElasticPlant(RobotModel.from_urdf(urdf), springs)
        joints = [plant.mujoco_model.joint(link_joint(name)) for name in NAMES]
        self.links = [joint.dofadr[0] for joint in joints]
        self.plant = SampledPlant(plant, 1e-3)
        self.plant.reset(START, torque=plant.holding_torque(START))
        self.stamp = 10**9
        self.run(0.05)

    def plan(self, task):
        self.tasks.append(task)

    def accept(self, number, start):
        pass

    def publish(self, planned, remark):
        pass

    @property
    def why(self):
        return self.control.supervisor.why

    @property
    def q(self):
        return np.array([sample[0] for sample in self.record])

    @property
    def qd(self):
        return np.array([sample[1] for sample in self.record])

    def send(self, *goal, seconds=1.0):
        """Send a trajectory to a goal, or an empty one."""
        data = b'\0\1\0\0' + struct.pack('<I4xIII', 0, 0, 0, len(goal))
        self.control.take_trajectory(data)
        if goal:
            (task,) = self.tasks[-1:]
            x = np.linspace(0.0, 1.0, 9)[:, None]
            begin = task.known.motion[0]
            way = begin + (goal[0] - begin) * x**3 * (10.0 - 15.0 * x + 6.0 * x**2)
            motion = fit_spline(seconds * x[:, 0], way)
            planned = PlannedMotion(NAMES, motion, task.start, 4)
            self.control.stream.on_plan(Plan(task.number, planned), self.control.instant())

    def sample(self, change=0.0, push=0.0, force=(0.0, 0.0)):
        """Measure the robot, perhaps with a fault, and let it move by the answer.

        A push is on the motors, a force, in joint torques, on the links.
        """
        found = self.plant.measurement
        state = np.array([found.q, found.qd, found.theta, found.thetad]) + change
        for topic, rows in ((LINKS, state[:2]), (MOTORS, state[2:])):
            fields = self.control.fields(topic, self.has_velocities)
            self.control.take(topic, self.stamp, fields, rows[: len(fields)])
        answer = self.control.answer_newest()
        self.control.note_sent(answer)
        torque = answer.command.torque
        self.record.append((found.q, found.qd, torque))
        self.stamp += PERIOD
        self.plant.plant.mujoco_data.qfrc_applied[self.links] = force
        self.plant.advance(torque + push)
        return answer

    def run(self, seconds, **options):
        for _ in range(round(1e3 * seconds)):
            self.sample(**options)

    def run_until_stopped(self, **options):
        for _ in range(3000):
            self.sample(**options)
            if self.why:
                return
        raise AssertionError('it was not stopped')

    def lose(self, count):
        """The robot moves on with the torque it has, and nothing is measured."""
        for _ in range(count):
            self.stamp += PERIOD
            self.plant.advance(self.record[-1][2])

    def set(self, **values):
        """Other settings, as a node takes them over: checked before."""
        before = self.host.settings
        after = control_settings(**{**vars(before), **values})
        self.control.check_settings(after)
        self.host.settings = after
        self.control.on_settings(before)


def test_robot_that_cannot_follow_is_stopped_until_it_rests_and_is_sent_elsewhere():
    robot = Robot()
    robot.send(VIOLENT, seconds=0.2)
    robot.run_until_stopped()
    assert 'max_tracking_error' in robot.why or 'velocity_margin' in robot.why
    with pytest.raises(ControlError, match='does not move on yet: the motion to rest'):
        robot.send(START)
    robot.run(2.5)
    # It stays within its limits, rests, and is held against its weight.
    assert abs(robot.q).max() < LIMIT
    assert abs(robot.qd[-100:]).max() < REST
    assert np.ptp(robot.q[-500:], axis=0).max() < 2e-3
    robot.run(0.05, push=[40.0, 0.0])
    with pytest.raises(ControlError, match='shoulder still moves'):
        robot.send(START)
    robot.run(1.5)
    rested = len(robot.record)
    robot.send(START, seconds=1.5)
    robot.run(1.8)
    np.testing.assert_allclose(robot.q[-1], START, atol=1e-3)
    assert abs(robot.qd[rested:]).max() < SPEED


def test_measured_state_that_jumps_for_good_stops_where_it_is_until_an_empty_trajectory():
    robot = Robot()
    robot.run(0.01, change=SLIP)
    assert 'The tracking error of shoulder is -0.5' in robot.why
    robot.control.begin_anew('time jumped back')
    robot.stamp = 10**8
    robot.run(1.0, change=SLIP)
    # The sensor has slipped, not the robot.
    np.testing.assert_allclose(robot.q[-1], START, atol=0.02)
    assert robot.why
    robot.send()
    robot.run(0.2, change=SLIP)
    assert not robot.why
    np.testing.assert_allclose(robot.q[-1], START, atol=0.02)
    held = np.zeros((5, 2))
    held[0] = robot.q[-1] + SLIP[0]
    robot.control.check_reference()
    robot.control.take_reference(held, robot.stamp)
    robot.sample(change=SLIP)
    assert robot.control.references.origin == 'stream'


def test_few_bad_samples_neither_stop_nor_jerk_the_robot():
    robot = Robot()
    robot.send(START + 0.3)
    robot.run(0.4)
    for quantity, value in ((0, 0.7), (1, 9.0)):
        before = robot.sample().command.torque
        bad = np.zeros((4, 2))
        bad[quantity::2, 0] = value
        for _ in range(2):  # of three that it takes
            np.testing.assert_array_equal(robot.sample(bad).command.torque, before)
        robot.run(0.05)
    assert not robot.why
    robot.run(1.0)
    np.testing.assert_allclose(robot.q[-1], START + 0.3, atol=2e-3)


def test_robot_that_was_silent_while_its_trajectory_went_on_does_not_rush_after_it():
    robot = Robot()
    robot.send(START + 0.8)
    robot.run(0.4)
    begin, robot.stamp = len(robot.record), robot.stamp + 2 * 10**9
    robot.run(1.0)
    assert 'The tracking error of' in robot.why
    assert abs(robot.qd[begin:]).max() < 1.1 * abs(robot.qd[:begin]).max()
    assert abs(robot.qd[-1]).max() < REST


def test_stop_that_saturates_drags_its_reference_along():
    weak = {**DRIVE, 'max_motor_torque': 14.0}
    robot = Robot(drive=weak, max_tracking_error=0.1, stop_duration=0.05)
    robot.send(START + [1.2, 0.0], seconds=0.8)
    robot.run_until_stopped(push=[6.0, 0.0])
    answers = [robot.sample() for _ in range(2000)]
    # The stop is more than the motor can do, and yet nothing pulls it back from afar.
    assert (abs(np.array([answer.command.torque for answer in answers])) == 14.0).any()
    assert abs(np.array([answer.error for answer in answers])).max() < 0.1 + 1e-9
    assert abs(robot.qd[-1]).max() < REST
    assert abs(robot.q).max() < LIMIT


def test_law_that_diverges_is_stopped_by_another_one():
    # Exact linearisation with a tool that it does not know.
    robot = Robot(HEAVIER_TWO_LINK, controller='flatness', bandwidth=15.0)
    robot.send(START + 0.8)
    robot.run_until_stopped()
    robot.run(1.5)
    assert abs(robot.qd[-200:]).max() < REST
    assert abs(robot.q).max() < LIMIT


def test_motor_whose_encoder_stands_still_is_left_to_the_weight_of_its_links():
    robot = Robot(controller='tracking')
    robot.send(AWAY)
    robot.run(0.4)
    stands, change = robot.plant.measurement.theta[0], np.zeros((4, 2))
    for _ in range(600):
        change[2, 0] = stands - robot.plant.measurement.theta[0]
        robot.sample(change=change)
    assert "encoder of motor 'shoulder' stands still" in robot.why
    assert 'brakes must close' in robot.why
    assert abs(robot.qd).max() < 3.0 * SPEED


def lost(robot):
    for _ in range(10):  # bridged
        robot.run(0.02)
        robot.lose(2)
    assert not robot.why
    robot.lose(60)
    robot.sample()


def hit(robot):
    robot.run(0.4)
    assert not robot.why
    robot.run(0.3, force=[0.0, 6.0])


@pytest.mark.parametrize(
    ('happens', 'why'), [(lost, 'no measurement'), (hit, 'external torque of elbow')]
)
def test_lost_measurements_and_collisions_stop_it_on_its_path(happens, why):
    own = (('elbow', 'max_external_torques', 4.0),)
    robot = Robot(max_external_torque=30.0, max_external_torques=own)
    robot.send(AWAY, seconds=1.5)
    happens(robot)
    assert why in robot.why
    assert robot.control.supervisor.state == STOPPING
    robot.run(1.0)
    # It rests on the way, a line on which the elbow moves as far as the shoulder.
    moved = robot.q[-1] - START
    assert 0.05 < moved[0] < 0.79
    np.testing.assert_allclose(moved[1], -moved[0], atol=5e-3)
    assert abs(robot.qd[-1]).max() < REST
    robot.send(AWAY)  # resumes on request
    robot.run(0.2)
    assert not robot.why


def test_robot_that_collides_may_float_until_the_next_trajectory():
    own = (('elbow', 'max_external_torques', 4.0),)
    robot = Robot(collision_reaction='float', max_external_torques=own)
    robot.send(AWAY, seconds=1.5)
    robot.run(0.4)
    robot.run(0.1, force=[0.0, 8.0])
    assert 'external torque of elbow' in robot.why
    assert robot.control.supervisor.state == FLOATING
    robot.run(0.8)
    led = robot.q[-1]
    robot.run(0.3, force=[0.0, 1.0])
    assert robot.q[-1][1] - led[1] > 0.02  # it gives way
    robot.run(1.5)
    robot.send(START)
    assert not robot.why


def test_tracking_follows_a_heavier_robot_without_velocities():
    robot = Robot(HEAVIER_TWO_LINK, has_velocities=False)
    robot.send(START + [0.6, -0.3])
    robot.run(0.5)
    assert abs(robot.sample().error).max() < 5e-3
    robot.run(1.0)
    assert not robot.why
    np.testing.assert_allclose(robot.q[-1], START + [0.6, -0.3], atol=1e-3)


def test_laws_are_changed_at_rest_without_a_step():
    robot = Robot(tool_link='tool', joint_stiffness=60.0)
    robot.run(1.0, force=[2.0, 1.0])
    for law in (
        'joint_impedance',
        'cartesian_impedance',
        'gravity_compensation',
        'tracking',
    ):
        before = robot.record[-1][2]
        robot.set(controller=law)
        answer = robot.sample(force=[2.0, 1.0])
        np.testing.assert_allclose(answer.command.torque, before, atol=0.1)
        robot.run(0.02 if law == 'gravity_compensation' else 0.6, force=[2.0, 1.0])
    assert not robot.why
    # Of one and the same observer, which was never at a loss.
    observed = robot.control.observed(robot.stamp - PERIOD)
    np.testing.assert_allclose(observed.external_torque, [2.0, 1.0], rtol=0.2)
    robot.send(AWAY)
    robot.run(0.5)
    with pytest.raises(ControlError, match='at rest, but .* still moves'):
        robot.set(controller='gravity_compensation')


def test_impedance_yields_by_its_stiffness():
    own = (('elbow', 'joint_stiffnesses', 20.0),)
    robot = Robot(controller='joint_impedance', joint_stiffness=50.0, joint_stiffnesses=own)
    robot.run(1.2, force=[2.5, 1.0])
    moved = robot.q[-1] - START
    np.testing.assert_allclose(moved, [2.5 / 50.0, 1.0 / 20.0], rtol=0.05)


def test_what_a_law_warns_of_is_logged(monkeypatch):
    made = laws.make_controller

    def warning(*arguments):
        warnings.warn('It is soft.', stacklevel=2)
        return made(*arguments)

    robot = Robot()
    monkeypatch.setattr(laws, 'make_controller', warning)
    robot.set(bandwidth=15.0)
    assert 'It is soft.' in robot.host.texts('warning')
