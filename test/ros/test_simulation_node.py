"""The simulated robot behind topics, on real middleware."""

from pathlib import Path

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from hodyn_msgs.msg import ElasticState
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from support import robots
from support.messages import nanoseconds, stamp_of, time_of
from support.ros_harness import Peer, dict_of, own_domain
from support.scripts import load

from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.actuators import SeriesElastic
from hodyn_ros.ros.base import qos
from hodyn_ros.ros.nodes.simulated_robot import SimulatedRobot
from hodyn_ros.simulation import ElasticPlant, Imperfections, Sensors, simulate_tracking

pytest.importorskip('mujoco')

MODEL = RobotModel.from_urdf(robots.TWO_LINK)
NAMES = MODEL.joint_names
STIFFNESS, INERTIA = 400.0, 0.3
START = 2_000_000_000  # ns
PERIOD = 1_000_000  # ns

ELASTIC = {
    f'actuators.{joint}.{key}': value
    for joint in NAMES
    for key, value in {
        'type': 'sea',
        'stiffness': STIFFNESS,
        'motor_inertia': INERTIA,
    }.items()
}


class Bench(Peer):
    """A simulated robot and a client of it."""

    def __init__(self, springs=ELASTIC, **parameters):
        super().__init__('simulated_robot')
        self.received = {
            topic: self.keep(kind, topic)
            for topic, kind in (
                ('joint_states', JointState),
                ('elastic_state', ElasticState),
                ('/diagnostics', DiagnosticArray),
                ('/clock', Clock),
            )
        }
        self.commands = self.offer(JointState, 'motor_command', qos.INPUT)
        values = {
            'robot_description': robots.TWO_LINK,
            'start_time': START / 1e9,
            'diagnostics_period': 0.05,
            'command_timeout': 0.05,
            **springs,
            **parameters,
        }
        self.run(SimulatedRobot, values)

    def sample(self, stamp):
        """Links and motors at a stamp."""

        def find(topic):
            return [m for m in list(self.received[topic]) if stamp_of(m) == stamp]

        topics = 'joint_states', 'elastic_state'
        self.wait(lambda: all(map(find, topics)), f'sample {stamp}')
        links, state = (find(topic)[0] for topic in topics)
        assert (links.name, links.position) == (state.joint_names, state.position)
        assert (links.velocity, links.effort) == (state.velocity, state.spring_torque)
        return state

    def command(self, effort, stamp, names=NAMES):
        message = JointState(name=list(names), effort=[float(value) for value in effort])
        message.header.stamp = time_of(stamp)
        self.commands.publish(message)

    def state(self):
        """The latest status, and its values."""
        found = self.received['/diagnostics'][-1:]
        status = found[0].status[0] if found else DiagnosticStatus()
        return status, dict_of(status)

    def value(self, key):
        return self.state()[1].get(key)


@pytest.fixture
def bench():
    benches = []

    def make(**parameters):
        benches.append(Bench(**parameters))
        return benches[-1]

    yield make
    for one in benches:
        one.close()


def motion(times):
    k = np.arange(5)[:, None]
    omega = np.array([4.0, 5.0])
    phase = omega * np.asarray(times)[:, None, None] + 0.5 * np.pi * k
    waves = np.array([0.3, 0.4]) * omega**k * np.cos(phase)
    # At rest at the start.
    waves[:, 0] -= np.array([0.3, 0.4])
    return waves


class Follower:
    """Follows the motion by the motors alone."""

    def command(self, reference, q, qd, theta, thetad):
        # Whether there is compiled code by now must make no difference.
        effort = inverse_dynamics(MODEL, reference, algorithm='body_fixed')
        motor = reference[:3] + effort / STIFFNESS
        torque = INERTIA * motor[2] + effort[0]
        return torque + 100.0 * (motor[0] - theta) + 10.0 * (motor[1] - thetad)


def start_at_rest(sampled):
    q = np.zeros(2)
    sampled.reset(q, torque=sampled.plant.holding_torque(q))


def test_a_run_over_topics_is_that_of_one_process_to_the_last_bit(bench):
    count, delay = 60, 2
    robot = bench(
        **{
            'command_timeout': 60.0,
            'sensors.position_noise': 1e-4,
            'sensors.motor_velocity_noise': 1e-3,
            'sensors.seed': 7,
            'sensors.delay': delay,
            'sensors.torque_noise': 0.1,
            'command_delay': delay,
            'imperfections.coulomb': 0.2,
            'imperfections.elbow.coulomb': 1,
            'imperfections.fore.payload': 0.5,
            'imperfections.torque_limit': 50.0,
        },
    )
    desired = motion(1e-3 * np.arange(count))
    controller = Follower()
    torques = []
    for k, reference in enumerate(desired):
        measured = robot.sample(START + k * PERIOD)
        assert len(measured.spring_torque) == 2
        links, motors = (
            (measured.position, measured.velocity),
            (measured.motor_position, measured.motor_velocity),
        )
        torques.append(controller.command(reference, *map(np.array, (*links, *motors))))
        robot.command(torques[-1], START + k * PERIOD)
    last = robot.sample(START + count * PERIOD)
    np.testing.assert_array_equal(last.motor_torque, torques[count - 1 - delay])
    actuator = SeriesElastic(STIFFNESS, INERTIA)
    record = simulate_tracking(
        ElasticPlant(
            MODEL,
            dict.fromkeys(NAMES, actuator),
            imperfections=Imperfections(
                coulomb={'shoulder': 0.2, 'elbow': 1.0},
                payload={'fore': 0.5},
                torque_limit=50.0,
            ),
        ),
        Follower(),
        motion,
        1e-3 * count,
        sensors=Sensors(1e-4, motor_velocity_noise=1e-3, delay=delay, seed=7),
        command_delay=delay,
        start=start_at_rest,
    )
    np.testing.assert_array_equal(torques, record.torque)
    assert np.ptp(record.torque) > 1.0
    expected = {START + k * PERIOD for k in range(count + 1)}
    robot.wait(
        lambda: {nanoseconds(m.clock) for m in robot.received['/clock']} == expected,
        'clock',
    )


def test_without_an_answer_the_last_command_is_held_and_counted(bench):
    robot = bench()
    robot.sample(START)
    robot.command([2.0, 9.0], START, names=['elbow', 'shoulder'])  # matched by name
    robot.sample(START + 3 * PERIOD)
    robot.wait(lambda: (robot.value('samples without a command') or '0') >= '2', 'count')
    reference = ElasticPlant(MODEL, dict.fromkeys(NAMES, SeriesElastic(STIFFNESS, INERTIA)))
    reference.reset(np.zeros(2))
    for _ in range(3):
        reference.step([9.0, 2.0], 10)
    np.testing.assert_array_equal(robot.sample(START + 3 * PERIOD).position, reference.q)
    robot.wait(lambda: robot.state()[0].level == DiagnosticStatus.STALE, 'stale')


def test_commands_that_cannot_be_used_are_refused_and_nothing_moves(bench):
    robot = bench(publish_clock=False, command_timeout=100.0)
    robot.sample(START)
    both = [1.0, 2.0]
    for number, (effort, stamp, names, reason) in enumerate(
        (
            (both, START + 1, NAMES, 'answers the sample at 2.000000001'),
            (both, 0, NAMES, 'expected an answer to that at 2.000000000'),
            ([1.0], START, NAMES, 'effort has 1 values, expected 2'),
            ([1.0, np.nan], START, NAMES, "effort of joint 'elbow' is nan"),
            ([1.0, np.inf], START, NAMES, "effort of joint 'elbow' is inf"),
            ([1.0, 1e11], START, NAMES, "motor 'elbow' is 1e+11, expected"),
            ([1.0], START, ['elbow'], 'missing: shoulder'),
            (both, START, ['elbow', 'wrist'], 'unknown: wrist'),
            ([1.0] * 40_000, START, ['x'] * 40_000, 'expected no more than'),
            (None, START, NAMES, 'cannot be unpacked'),
        )
    ):
        if effort is None:
            robot.commands.publish(b'\x00\x01\x00\x00' + b'\xff' * 32)
        else:
            robot.command(effort, stamp, names)
        said = str(number + 1)
        robot.wait(lambda said=said: robot.value('refused') == said, reason)
        assert reason in robot.value('last refusal')
    assert robot.value('samples') == '0'
    assert robot.state()[0].name == f'{robot.namespace}/simulated_robot: simulation'
    robot.command(both, START)
    robot.sample(START + PERIOD)
    # The clock is left to others, if so asked.
    assert not robot.received['/clock']
    assert not robot.client.count_publishers('/clock')


def test_a_simulation_that_breaks_down_says_so_and_stops(bench):
    robot = bench(**{'actuators.elbow.max_deflection': 0.05})
    robot.sample(START)
    robot.command([0.0, 500.0], START)
    robot.wait(lambda: robot.state()[0].level == DiagnosticStatus.ERROR, 'error')
    assert "'elbow'" in robot.state()[0].message
    assert 'range of its spring' in robot.state()[0].message


@pytest.fixture(scope='module')
def context():
    with own_domain() as made:
        yield made


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('parameters', 'message'),
    [
        ({'time_step': 3e-4}, 'expected a multiple of the time step'),
        ({'actuators.wrist.type': 'sea'}, 'wrist'),
        ({'actuators.elbow.max_deflection': 1e-3}, "Joint 'elbow': .*it reaches -0.4 to"),
        ({'initial_position.wrist': 0.3}, 'initial_position.wrist is for no joint'),
        ({'imperfections.colomb': 1.0}, 'imperfections.colomb is unknown'),
        ({'imperfections.wrist.damping': 1.0}, 'damping is given for .wrist., expected'),
    ],
)
def test_parameters_that_cannot_be_used_end_the_start(context, parameters, message):
    values = {'robot_description': robots.TWO_LINK, **ELASTIC, **parameters}
    overrides = [Parameter(name, value=value) for name, value in values.items()]
    with pytest.raises(ValueError, match=message):
        SimulatedRobot(context=context, parameter_overrides=overrides)


def test_the_relay_makes_one_message_of_links_and_motors_with_equal_stamps():
    path = Path(__file__).resolve().parents[2] / 'examples' / 'elastic_state_relay.py'
    peer = Peer('elastic_state_relay')
    topics = 'joint_states', 'motor_states'
    links, motors = (peer.offer(JointState, topic, qos.OUTPUT) for topic in topics)
    made = peer.keep(ElasticState, 'elastic_state')
    peer.run(load(path).ElasticStateRelay, {})

    def tell(publisher, names, stamp, value):
        message = JointState(name=names, position=[value] * 2, velocity=[value] * 2)
        message.header.stamp = time_of(stamp)
        publisher.publish(message)

    for stamp in (1, 2, 3):
        tell(motors, 'cd', stamp, 10.0 + stamp)
        if stamp != 2:
            tell(links, 'ab', stamp, 1.0 * stamp)
        peer.wait(lambda stamp=stamp: len(made) == (stamp + 1) // 2, f'message {stamp}')
    peer.close()
    assert [stamp_of(message) for message in made] == [1, 3]
    assert (list(made[1].position), list(made[1].motor_velocity)) == ([3.0] * 2, [13.0] * 2)
    assert (made[1].joint_names, made[1].motor_names) == (['a', 'b'], ['c', 'd'])
    assert not made[1].spring_torque
