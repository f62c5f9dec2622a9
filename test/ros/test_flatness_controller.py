"""The flatness controller on real middleware: its topics, its parameters, and what it refuses.

How robots are stopped is tested without a node, in test/contract/test_control_loop.py.
"""

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray
from hodyn_msgs.msg import ElasticState, JointMotion
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from support.messages import NAMES, joint_motion, joint_trajectory, stamp_of, time_of
from support.robots import HEAVIER_TWO_LINK, OTHER_JOINTS, TWO_LINK
from support.ros_harness import Peer, dict_of
from trajectory_msgs.msg import JointTrajectory

from hodyn_ros import RobotModel
from hodyn_ros.actuators import Actuators, RigidDrive, SeriesElastic
from hodyn_ros.control import FeedForwardController, FlatnessController, motor_gains
from hodyn_ros.ros.base import qos
from hodyn_ros.ros.nodes.flatness_controller import FlatnessControllerNode

# The laws warn of what the tests want.
pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.control.ControlWarning')

MEASURED = 'elastic_state'
COMMAND = 'flatness_controller/motor_command'
REFERENCES = 'flatness_controller/reference'
USUAL = {
    'controller': 'flatness',
    'bandwidth': 12.0,
    'without_reference': 'stop',
    'tool_link': '',
    'torque_sensors': False,
    'max_tracking_error': 100.0,  # this robot does not move
    'max_external_torque': 1e6,
    'max_drive_error': 1e6,
    'measurement_timeout': 0.0,  # stamps are the time
}
MIXED = {
    'actuators.shoulder.type': 'sea',
    'actuators.shoulder.stiffness': 200.0,
    'actuators.shoulder.motor_inertia': 0.3,
    'actuators.elbow.type': 'rigid',
    'actuators.elbow.motor_inertia': 0.1,
}
WEAK = {
    **{f'actuators.{name}.type': 'sea' for name in NAMES},
    **{f'actuators.{name}.stiffness': 1000.0 for name in NAMES},
    **{f'actuators.{name}.motor_inertia': 0.3 for name in NAMES},
    'actuators.shoulder.max_motor_torque': 9.0,
}
MODEL = RobotModel.from_urdf(TWO_LINK)
DRIVES = Actuators(MODEL, {'shoulder': SeriesElastic(200.0, 0.3), 'elbow': RigidDrive(0.1)})
LIMIT = 50.0  # N m, of the robot description
STEP = 1_000_000  # ns
LEAD = 0.5e-3  # s, half of the default of sample_period
STATE = np.array([[0.3, -0.4], [0.1, 0.2], [0.35, -0.4], [0.1, 0.2]])
STILL = np.array([[0.3, -0.4], [0.0, 0.0], [0.3, -0.4], [0.0, 0.0]])
REFERENCE = np.array([[0.3, -0.5], [0.2, 0.1], [1.0, -0.5], [2.0, 3.0], [40.0, -20.0]])


class Robot(Peer):
    """A running flatness controller and a robot that only talks."""

    def __init__(self, **parameters):
        super().__init__('flatness_controller')
        self.stamp = 10**9
        self.offer(ElasticState, MEASURED)
        self.offer(JointMotion, REFERENCES, qos.INPUT)
        self.offer(JointTrajectory, 'joint_trajectory', qos.INPUT)
        self.offer(String, 'robot_description', qos.ROBOT_DESCRIPTION)
        self.keep(JointState, COMMAND)
        self.keep(DiagnosticArray, '/diagnostics')
        given = {'robot_description': TWO_LINK, **MIXED, **parameters}
        self.run(FlatnessControllerNode, {**USUAL, **given})

    def wait_for_robot(self):
        self.wait(lambda: self.node.control.laws is not None, 'robot')
        return self

    def measure(self, state, stamp=None, names=NAMES, **fields):
        """Tell of a state at a stamp, by default a period later than the latest."""
        self.stamp = self.stamp + STEP if stamp is None else stamp
        q, qd, theta, thetad = np.asarray(state).tolist()
        values = {'joint_names': names, 'position': q, 'velocity': qd}
        values |= {'motor_names': names, 'motor_position': theta, 'motor_velocity': thetad}
        message = ElasticState(**{**values, **fields})
        message.header.stamp = time_of(self.stamp)
        self.publishers[MEASURED].publish(message)
        return self.stamp

    @property
    def commands(self):
        return self.messages[COMMAND]

    def command(self, stamp):
        """Torques that answer a measurement."""

        def find():
            found = [m for m in self.commands if stamp_of(m) == stamp]
            return found and found[0]

        return np.array(self.wait(find, f'command of {stamp}').effort)

    def answer(self, state, **options):
        return self.command(self.measure(state, **options))

    def refer(self, motion, names=NAMES):
        message = joint_motion(motion, names, self.stamp + STEP)
        self.publishers[REFERENCES].publish(message)

    def follow(self, motion):
        """Send a reference and wait until it is taken."""
        total = self.node.diagnostics.input('~/reference').total
        count = total['received']
        self.refer(motion)
        self.wait(lambda: total['received'] > count, 'reference')

    def send(self, *points, seconds=1.0):
        """Send a trajectory of a waypoint each that many seconds."""
        times = [seconds * (k + 1) for k in range(len(points))]
        rows = np.array(points, dtype=float).tolist()
        self.publishers['joint_trajectory'].publish(joint_trajectory(rows, times))

    def says(self, part, key, text):
        """Wait until the diagnostics of a part say something, and forget what they said."""
        found = self.status(part, lambda s: text in dict_of(s).get(key, ''))
        self.messages['/diagnostics'].clear()
        return found

    def refuses(self, topic, text):
        self.says(topic, 'last error', text)


@pytest.fixture(scope='module')
def shared():
    made = Robot().wait_for_robot()
    yield made
    made.close()


@pytest.fixture
def robot(shared):
    """A controller that knows of no measurement, reference and trajectory."""
    shared.have(shared.node.on_time_jump, 'a test begins')
    assert shared.set(**USUAL).successful
    shared.forget()
    shared.stamp += 10**9
    return shared


@pytest.fixture
def start():
    made = []

    def make(**parameters):
        made.append(Robot(**parameters))
        return made[-1]

    yield make
    for robot in made:
        robot.close()


def flatness(bandwidth=12.0):
    return FlatnessController(MODEL, DRIVES, bandwidth, torque_limits=LIMIT, lead=LEAD)


def held(q=STATE[0]):
    motion = np.zeros((5, 2))
    motion[0] = q
    return motion


# Commands


def taylor(motion, t):
    """Motion (5, n) that goes on by its derivatives for a time."""
    polys = [np.array(column[::-1]) / [24.0, 6.0, 2.0, 1.0, 1.0] for column in motion.T]
    return np.array([[np.polyval(np.polyder(p, k), t) for p in polys] for k in range(5)])


def test_every_measurement_is_answered_once_by_the_law(robot):
    robot.follow(REFERENCE)
    controller, stamps = flatness(), []
    for k in range(20):
        state = STATE + 1e-3 * k
        found = robot.answer(state)
        reference = taylor(REFERENCE, 1e-3 * k + LEAD)
        np.testing.assert_allclose(found, controller.command(reference, *state), rtol=1e-9)
        stamps.append(robot.stamp)
    # Once more, and an older one; other names among those of the robot.
    robot.measure(STATE, stamps[-1])
    robot.measure(STATE, stamps[3])
    stamps.append(robot.measure(STATE, stamps[-1] + STEP))
    expected = robot.command(stamps[-1])
    assert list(robot.commands[0].name) == list(NAMES)
    assert [stamp_of(message) for message in robot.commands] == stamps
    robot.have(robot.node.on_time_jump, 'a step back')
    robot.set(without_reference='hold')
    expected = robot.answer(STILL)
    extra = np.hstack((STILL[:, ::-1], np.full((4, 1), 9.0)))
    found = robot.answer(extra, names=('elbow', 'shoulder', 'gripper'))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


# What is refused


def test_bad_messages_are_refused_and_the_loop_goes_on(robot):
    robot.set(without_reference='hold')
    three = {'motor_names': ['shoulder', 'elbow', 'elbow'], 'motor_position': [0.0] * 3}
    for fields, text in (
        ({'motor_position': [0.1, np.nan]}, 'motor_position of elbow is nan'),
        ({'motor_position': []}, 'motor_position is empty, but the law needs it'),
        ({'velocity': []}, ': velocity is empty, but the law needs it'),
        ({'velocity': [0.1]}, 'velocity has 1 values, expected 2'),
        ({'joint_names': ['shoulder', 'wrist']}, 'missing: elbow'),
        ({**three, 'motor_velocity': [0.0] * 3}, 'repeated: elbow'),
        ({'motor_names': ['hip', 'knee']}, 'motor_names: expected shoulder, elbow'),
        ({'stamp': 0}, 'there is no stamp'),
    ):
        stamp = robot.stamp
        robot.measure(STATE, **fields)
        robot.refuses(MEASURED, text)
        robot.stamp = max(robot.stamp, stamp)
    assert not robot.commands
    robot.answer(STATE)
    for motion, text in (
        (REFERENCE[:4], 'snap is empty, but the control law needs everything up to snap'),
        (np.full((5, 2), np.nan), 'must be finite'),
        (held([0.3, 2.1]), 'position of elbow is 2.1, its limit 2'),
    ):
        robot.refer(motion)
        robot.refuses('~/reference', text)
    robot.send([0.1, 0.2], [np.nan, 0.0])
    robot.refuses('joint_trajectory', 'finite')
    robot.answer(STATE)


def test_trajectories_that_exceed_limits_are_refused(start):
    robot = start(**WEAK, controller='tracking', bandwidth=0.0, without_reference='hold')
    robot.wait_for_robot().answer(STILL)
    for goal, seconds, text in (
        (STILL[0] + [0.5, 0.0], 0.4, 'motor_torque of shoulder'),
        ([2.3, -0.4], 5.0, 'position of shoulder'),
    ):
        robot.send(goal, seconds=seconds)
        robot.refuses('joint_trajectory', text)
    error = dict_of(robot.status('joint_trajectory', bool))['last error']
    assert 'Keep the limits' in error
    assert 'effort_trajectory' not in error  # a topic of another node


def test_motions_keep_what_margins_leave_and_guards_have_whole_limits(start):
    margins = {'margins.velocity': '60%', 'margins.motor_torque': 0.2}
    robot = start(**WEAK, **margins, controller='tracking', bandwidth=0.0)
    robot.set(without_reference='hold')
    robot.wait_for_robot().answer(STILL)
    laws = robot.node.control.laws
    whole = laws.robot.limits.velocity
    np.testing.assert_allclose(laws.limits.velocity, 0.4 * whole, rtol=1e-12)
    assert laws.robot.drives.limits.motor_torque[0] == 9.0
    words = 'less margins of 20 % (motor torque), 60 % (velocity)'
    robot.refer([STILL[0], [0.0, 0.5 * whole[1]], *np.zeros((3, 2))])
    robot.refuses('~/reference', words)
    seconds = 1.875 * 0.4 / (0.5 * whole[1])  # a quintic reaches half of the limit
    robot.send(STILL[0] + [0.0, 0.4], seconds=seconds)
    robot.refuses('joint_trajectory', words)
    robot.send(STILL[0] + [0.0, 0.4], seconds=4.0)
    robot.wait(lambda: robot.node.stream.timeline, 'motion')


# Robots and parameters


def test_a_new_description_changes_the_robot_and_a_bad_one_does_not(robot):
    robot.set(without_reference='hold')
    before, loop = robot.answer(STILL), robot.node.control.laws
    assert robot.set(robot_description=HEAVIER_TWO_LINK).successful
    robot.wait(lambda: robot.node.control.laws is not loop, 'new robot')
    heavier = robot.answer(STILL)
    assert abs(heavier - before).max() > 1.0
    for xml, text in (
        (OTHER_JOINTS, 'unknown joints: elbow, shoulder'),
        ('<robot', 'not XML'),
    ):
        robot.publishers['robot_description'].publish(String(data=xml))
        robot.refuses('robot_description', text)
    np.testing.assert_array_equal(robot.answer(STILL), heavier)
    loop = robot.node.control.laws
    robot.publishers['robot_description'].publish(String(data=TWO_LINK))
    robot.wait(lambda: robot.node.control.laws is not loop, 'the first robot')


def test_the_law_and_its_settings_can_be_changed_while_it_runs(robot):
    robot.set(without_reference='hold')
    robot.answer(STATE)
    moved = STATE + 0.02
    assert robot.set(bandwidth=20.0, controller='feed_forward_2').successful
    gains = motor_gains(MODEL, DRIVES, 20.0, np.zeros(2))
    law = FeedForwardController(MODEL, DRIVES, gains, 2, torque_limits=LIMIT)
    expected = law.command(held(), *moved)
    np.testing.assert_allclose(robot.answer(moved), expected, rtol=1e-9)
    for values, text in (
        ({'controller': 'magic'}, 'expected one of'),
        ({'bandwidth': -1.0}, 'bandwidth is -1.0, expected a number from'),
        ({'sample_period': 'soon'}, 'sample_period is .soon., expected a number from'),
        ({'sample_period': 0.0}, 'out of range'),
        ({'bandwidth': [20.0, -1.0]}, 'bandwidth is [20.0, -1.0], expected a number from'),
        ({'max_tracking_error': [1.0] * 3}, 'shoulder, elbow'),
        ({'max_tracking_error': []}, 'expected a number from'),
        ({'tool_link': 'hand'}, "no link 'hand'"),
        ({'controller': 'cartesian_impedance'}, 'needs tool_link'),
        ({'controller': 'tracking', 'bandwidth': 150.0, 'delay': 0.02}, 'would'),
        ({'controller': 'tracking', 'bandwidth': [20.0, 30.0]}, 'has one bandwidth'),
    ):
        result = robot.set(**values)
        assert not result.successful
        assert text.replace('.soon.', "'soon'") in result.reason
    np.testing.assert_allclose(robot.answer(moved), expected, rtol=1e-9)
    # Bounds of single joints.
    assert robot.set(max_tracking_error=[100.0, 0.01]).successful
    for k in range(3):
        robot.answer(moved + 0.05 + 1e-4 * k)
    reason = robot.status('motor_command', lambda s: dict_of(s)['stopped because'])
    assert 'tracking error of elbow' in dict_of(reason)['stopped because']
    assert robot.set(max_tracking_error=100.0).successful
