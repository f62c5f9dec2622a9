"""The control loop without ROS: what is commanded, and when the robot is stopped."""

import struct
from types import SimpleNamespace

import numpy as np
import pytest
from support.robots import TWO_LINK
from support.stream_host import Host, control_settings, model_of

from hodyn_ros import inverse_dynamics
from hodyn_ros.errors import ControlError, HodynError, ModelError, MotionError, StaleError
from hodyn_ros.streams.control_loop import ControlLoop
from hodyn_ros.streams.inputs import LINKS, MOTORS
from hodyn_ros.streams.laws import elastic_robot, make_laws
from hodyn_ros.streams.motion_stream import Plan
from hodyn_ros.streams.supervisor import (
    FLOATING,
    FOLLOWING,
    INTERVALS,
    LEAVING,
    SILENT,
    STOPPING,
    SUSPENDED,
)
from hodyn_ros.streams.timeline import PlannedMotion
from hodyn_ros.trajectory.spline import fit_spline

# The laws warn of what the tests want.
pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.control.ControlWarning')

STIFFNESS, PERIOD = 3000.0, 1_000_000
DRIVE = {
    'type': 'sea',
    'stiffness': STIFFNESS,
    'motor_inertia': 0.3,
    'max_motor_torque': 200.0,
}
DRIVES = tuple((joint, *item) for joint in ('shoulder', 'elbow') for item in DRIVE.items())
START = np.array([0.3, -0.4])
BYTES = b'\0\1\0\0' + struct.pack('<iI4xII', 0, 0, 0, 1)  # a head: no names, one point


class Planner:
    """Plans the same motion from where the robot is, whatever is asked for."""

    def __init__(self):
        self.goal, self.tasks = START + 0.3, []

    def plan(self, task):
        self.tasks.append(task)

    def accept(self, number, start):
        pass

    def publish(self, planned, remark):
        pass


class World:
    """A loop, and a robot that does what its reference says but for a distance."""

    def __init__(self, has_velocities=True, **values):
        self.has_velocities = has_velocities
        self.host = Host(control_settings(actuators=DRIVES, **values))
        self.planner = Planner()
        self.control = ControlLoop(self.host, self.planner, elastic_robot, make_laws)
        self.stamp, self.model = 10**9, model_of(TWO_LINK)
        self.control.preparation.request(TWO_LINK)

    def set(self, **values):
        """Other settings, as a node takes them over: checked before."""
        before, after = self.host.settings, control_settings(actuators=DRIVES, **values)
        self.control.check_settings(after)
        self.host.settings = after
        self.control.on_settings(before)

    def measure(self, off=0.0, stamp=None):
        """The next measurement; links as their reference wants, `off` from it."""
        self.stamp = self.stamp + PERIOD if stamp is None else stamp
        latest = self.control.references.state(self.stamp)
        motion = np.zeros((5, 2))
        motion[0] = START
        if latest is not None:
            motion = latest.motion
        links = motion[:2] + np.array([[1.0], [0.0]]) * off
        # Motors are ahead of the links by what the springs carry.
        motors = links + inverse_dynamics(self.model, motion)[:2] / STIFFNESS
        fields = self.control.fields(LINKS, self.has_velocities)
        count = len(fields)
        self.control.take(LINKS, self.stamp, fields, links[:count])
        return self.control.take(MOTORS, self.stamp, fields, motors[:count])

    def step(self, **how):
        self.measure(**how)
        answer = self.control.answer_newest()
        if answer is not None:
            self.control.note_sent(answer)
        return answer

    def run(self, count, **how):
        return [self.step(**how) for _ in range(count)][-1]

    def send(self, seconds=1.0):
        """A trajectory, which is planned at once."""
        self.control.take_trajectory(BYTES)
        (task,) = self.planner.tasks[-1:]
        way = np.linspace(task.known.motion[0], self.planner.goal, 5)
        spline = fit_spline(np.linspace(0.0, seconds, 5), way)
        planned = PlannedMotion(('shoulder', 'elbow'), spline, task.start, 4)
        self.control.stream.on_plan(Plan(task.number, planned), self.control.instant())


@pytest.fixture
def world():
    return World()


def test_robot_without_a_reference_is_held_where_it_is(world):
    answer = world.run(3)
    assert world.control.supervisor.state == FOLLOWING
    assert world.control.report()['reference'] == 'rest'
    np.testing.assert_array_equal(answer.error, [0.0, 0.0])
    assert np.isfinite(answer.command.torque).all()
    assert answer.stamp == world.stamp


def test_without_a_reference_there_is_no_command_if_so_asked():
    world = World(without_reference='stop')
    with pytest.raises(StaleError, match='There is no reference'):
        world.step()
    assert world.control.supervisor.state == SILENT


def test_noise_that_does_not_fit_the_resolution_is_said_once():
    world = World(resolution=SimpleNamespace(pair=(1e-6, 1e-6)))
    for noise in 1e-4 * np.random.default_rng(3).standard_normal(400):
        world.step(off=noise)
    said = [text for text in world.host.texts('warning') if 'times as noisy' in text]
    assert len(said) == 1
    assert 'times as noisy as its resolution says' in world.control.report()['remark']


def test_no_measurement_no_command(world):
    assert world.control.answer_newest() is None


def test_only_the_newest_of_several_measurements_is_answered(world):
    world.measure()
    world.measure()
    assert world.control.answer_newest().stamp == world.stamp
    assert world.control.answer_newest() is None
    assert world.host.diagnostics.input(LINKS).total['dropped late samples'] == 1


def test_trajectory_is_followed_to_its_end(world):
    world.step()
    world.send()
    world.run(500)
    assert world.control.report()['reference'] == 'trajectory'
    world.run(600)
    state = world.control.references.state(world.stamp)
    np.testing.assert_allclose(state.motion[0], world.planner.goal, atol=1e-9)
    assert world.control.supervisor.state == FOLLOWING


def test_trajectory_needs_a_measurement_where_stamps_are_the_time(world):
    with pytest.raises(StaleError, match='There is no measurement yet'):
        world.control.take_trajectory(BYTES)


@pytest.mark.parametrize('off', [0.3, 1.0])
def test_robot_far_from_its_reference_is_stopped_after_three_measurements(world, off):
    world.run(5)
    world.step(off=off)
    repeated = world.step(off=off)
    assert world.control.supervisor.state == FOLLOWING, 'the command is given again'
    assert np.isfinite(repeated.command.torque).all()
    world.step(off=off)
    assert world.control.supervisor.state == LEAVING
    assert 'The tracking error of' in world.control.report()['stopped because']
    assert any(
        text.startswith('The robot is being stopped') for text in world.host.texts('error')
    )


def test_gap_in_a_motion_stops_it_on_its_path_until_a_trajectory_comes():
    # This robot moves by its reference, not by its torques.
    world = World(saturation_time=100.0)
    world.step()
    world.send()
    world.run(300)
    world.stamp += 60 * PERIOD
    world.step()
    control = world.control
    assert control.supervisor.state == STOPPING
    with pytest.raises(
        ControlError, match='does not move on yet: the motion to rest is not over'
    ):
        control.take_trajectory(BYTES)
    with pytest.raises(ControlError, match='A trajectory ends that'):
        control.check_reference()
    with pytest.raises(
        ControlError, match='changed at rest, but the robot has been stopped'
    ):
        world.set(controller='joint_impedance')
    world.run(600)
    assert control.report()['reference'] == 'stop'
    world.send()
    assert control.supervisor.state == FOLLOWING
    assert world.host.texts('info')[-1].startswith('Trajectory taken')
    world.run(3)
    assert control.report()['stopped because'] == ''


@pytest.mark.parametrize('has_velocities', [True, False])
def test_law_that_cannot_keep_its_period_commands_nothing_until_it_can(has_velocities):
    # This robot moves by its reference, not by its torques.
    world = World(has_velocities, saturation_time=100.0)
    world.step()
    world.send()
    world.run(300)
    begin = world.stamp
    with pytest.raises(ControlError, match='gets no commands, so that its brakes close'):
        for _ in range(INTERVALS):
            world.step(stamp=world.stamp + 2 * PERIOD)
    assert world.stamp > begin + 2 * PERIOD
    control = world.control
    report = control.report()
    assert (report['state'], report['stops']) == (SUSPENDED, '1')
    assert 'answered every 0.0015 s (median of 20)' in report['stopped because']
    assert not control.stream.timeline
    for period, why in ((2, 'answered every 0.002 s'), (1, '')):
        for _ in range(2 * INTERVALS):
            with pytest.raises(ControlError, match='gets no commands'):
                world.step(stamp=world.stamp + period * PERIOD)
        if why:
            with pytest.raises(ControlError, match=f'does not move on yet: .*{why}'):
                control.take_trajectory(BYTES)
    world.send()
    assert world.run(5) is not None
    assert (control.supervisor.state, control.report()['reference']) == (
        FOLLOWING,
        'trajectory',
    )


def test_reference_is_followed_and_then_the_robot_is_brought_to_rest(world):
    world.step()
    motion = np.zeros((5, 2))
    motion[0] = START
    world.control.take_reference(motion, world.stamp + PERIOD)
    world.step()
    assert world.control.report()['reference'] == 'stream'
    world.run(700)
    assert world.control.report()['reference'] == 'rest'
    with pytest.raises(StaleError, match='older than the measurements'):
        world.control.take_reference(motion, world.stamp - 10**9)
    motion[1] = 1e3
    with pytest.raises(MotionError):
        world.control.take_reference(motion, world.stamp)


def test_robot_that_is_led_by_hand_takes_no_motion_and_is_held_where_it_was_led(world):
    world.run(3)
    world.set(controller='gravity_compensation')
    world.run(3, off=0.5)
    assert world.control.supervisor.state == FOLLOWING, (
        'nothing is too far from no reference'
    )
    for move in (
        world.control.check_reference,
        lambda: world.control.take_trajectory(BYTES),
    ):
        with pytest.raises(ControlError, match='The robot is led by hand'):
            move()
    with pytest.raises(ControlError, match='set without_reference to hold first'):
        world.set(controller='tracking', without_reference='stop')
    world.set(controller='tracking')
    assert world.step().error == pytest.approx([0.0, 0.0])


def test_law_without_memory_holds_a_robot_where_it_was_led(world):
    world.run(3)
    world.set(controller='gravity_compensation')
    world.run(3, off=0.5)
    world.set(controller='feed_forward_2')
    assert world.step(off=0.5).error == pytest.approx([0.0, 0.0])
    assert world.control.supervisor.state == FOLLOWING
    assert world.control.observed(world.stamp) is None


def test_collision_lets_the_robot_float_if_so_asked():
    world = World(
        collision_reaction='float', max_external_torque=5.0, max_tracking_error=10.0
    )
    world.run(5)
    for step in range(
        400
    ):  # at a speed that a link can have: a jump would be no measurement
        world.step(off=np.array([min(1e-3 * step, 0.01), 0.0]))
        if world.control.supervisor.state != FOLLOWING:
            break
    assert world.control.supervisor.state == FLOATING
    assert 'external torque' in world.control.report()['stopped because']


def test_state_of_the_observer_is_that_of_the_answered_measurement(world):
    answer = world.run(5)
    state = world.control.observed(answer.stamp)
    np.testing.assert_allclose(state.position, START, atol=1e-9)
    assert world.control.observed(answer.stamp - PERIOD) is None
    wrench = world.control.external_wrench(state, 'tool')
    assert wrench.shape == (6,)


def test_time_that_jumps_begins_anew_and_ends_the_motion(world):
    world.step()
    world.send()
    world.run(100)
    world.control.begin_anew('time jumped back')
    assert world.control.measured is None
    assert not world.control.stream.timeline
    (text,) = world.host.texts('error')
    assert text == 'The running trajectory is stopped: time jumped back.'
    world.stamp = 10**8
    assert world.step() is not None, 'stamps of before are taken'


def test_measurements_that_are_too_old_have_no_command():
    world = World(measurement_timeout=0.1)
    world.host.time = 2 * 10**9
    with pytest.raises(StaleError, match='Measurement: the stamp lies 0.999 s in the past'):
        world.step()
    assert world.control.supervisor.state == SILENT
    world.host.time = world.stamp + 130 * PERIOD  # late by less than clocks differ
    with pytest.raises(StaleError, match='have too much to do') as late:
        world.step()
    assert 'use_sim_time' not in str(late.value)
    world.host.time = world.stamp + PERIOD
    assert world.step() is not None


def test_trajectory_from_before_the_simulated_time_is_taken_when_it_begins():
    world = World(measurement_timeout=0.1)
    for count in range(3):
        world.control.take_trajectory(BYTES)
        overtaken = [text for text in world.host.texts('info') if 'overtaken' in text]
        assert len(overtaken) == count
    assert not world.planner.tasks
    world.host.time = world.stamp + PERIOD
    world.step()
    assert len(world.planner.tasks) == 1


def test_description_for_which_there_is_no_law_is_refused():
    world = World(controller='cartesian_impedance')
    assert 'cartesian_impedance needs tool_link' in world.control.preparation.error
    with pytest.raises(ModelError):
        world.control.ready()


def test_settings_for_which_there_is_no_law_change_nothing(world):
    before = world.control.laws
    with pytest.raises(HodynError, match="no link 'hand'"):
        world.set(tool_link='hand')
    assert world.control.laws is before
