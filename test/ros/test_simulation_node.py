"""The simulated robot behind topics, on real middleware."""

import importlib.util
import time
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

rclpy = pytest.importorskip('rclpy')
if importlib.util.find_spec('mujoco') is None:
    pytest.skip('mujoco is not installed', allow_module_level=True)

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus  # noqa: E402
from rclpy.context import Context  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from rclpy.node import Node  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402
from rosgraph_msgs.msg import Clock  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_msgs.msg import String  # noqa: E402
from support import robots  # noqa: E402
from support.ros_harness import TIMEOUT, next_domain, own_domain  # noqa: E402

from hodyn_ros import RobotModel, inverse_dynamics  # noqa: E402
from hodyn_ros.actuators.sea import SeriesElastic  # noqa: E402
from hodyn_ros.ros.base import qos  # noqa: E402
from hodyn_ros.ros.nodes.simulated_robot import SimulatedRobot  # noqa: E402
from hodyn_ros.simulation.imperfections import Imperfections  # noqa: E402
from hodyn_ros.simulation.plant import ElasticPlant  # noqa: E402
from hodyn_ros.simulation.sampling import Sensors  # noqa: E402
from hodyn_ros.simulation.tracking import simulate_tracking  # noqa: E402

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


def nanoseconds(stamp):
    return stamp.sec * 1_000_000_000 + stamp.nanosec


class Bench:
    """A simulated robot and a client in one thread."""

    def __init__(self, namespace=None, springs=ELASTIC, **parameters):
        self.context = Context()
        rclpy.init(context=self.context, domain_id=next_domain())
        self.executor = SingleThreadedExecutor(context=self.context)
        self.client = Node('client', context=self.context, namespace=namespace)
        self.received = {}
        for topic, kind in (
            ('joint_states', JointState),
            ('motor_states', JointState),
            ('/diagnostics', DiagnosticArray),
            ('/clock', Clock),
        ):
            self.received[topic] = []
            self.client.create_subscription(
                kind, topic, self.received[topic].append, qos.OUTPUT
            )
        self.commands = self.client.create_publisher(JointState, 'motor_command', qos.INPUT)
        self.descriptions = self.client.create_publisher(
            String, 'robot_description', qos.ROBOT_DESCRIPTION
        )
        values = {
            'robot_description': robots.TWO_LINK,
            'start_time': START / 1e9,
            'diagnostics_period': 0.05,
            'command_timeout': 0.05,
            **springs,
            **parameters,
        }
        self.node = SimulatedRobot(
            context=self.context,
            namespace=namespace,
            parameter_overrides=[
                Parameter(name, value=value) for name, value in values.items()
            ],
        )
        self.executor.add_node(self.client)
        self.executor.add_node(self.node)
        self.wait(lambda: self.commands.get_subscription_count() > 0, 'match')

    def close(self):
        self.executor.shutdown()
        self.client.destroy_node()
        self.node.destroy_node()
        rclpy.try_shutdown(context=self.context)

    def wait(self, condition, what):
        deadline = time.monotonic() + TIMEOUT
        while not condition():
            self.executor.spin_once(timeout_sec=0.02)
            assert time.monotonic() < deadline, f'timed out: {what}'

    def sample(self, stamp):
        """Links and motors at a stamp."""

        def find(topic):
            found = [
                m for m in self.received[topic] if nanoseconds(m.header.stamp) == stamp
            ]
            return found[0] if found else None

        self.wait(lambda: find('joint_states') and find('motor_states'), f'sample {stamp}')
        return find('joint_states'), find('motor_states')

    def command(self, effort, stamp, names=NAMES, **fields):
        message = JointState(
            name=list(names), effort=[float(value) for value in effort], **fields
        )
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(
            stamp, 1_000_000_000
        )
        self.commands.publish(message)

    def status(self):
        return (
            self.received['/diagnostics'][-1].status[0]
            if self.received['/diagnostics']
            else (SimpleNamespace(level=None, message='', values=[]))
        )

    def value(self, key):
        return {item.key: item.value for item in self.status().values}.get(key)


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
            'imperfections.torque_rate_limit': 5000.0,
        },
    )
    desired = motion(1e-3 * np.arange(count))
    controller = Follower()
    torques = []
    for k, reference in enumerate(desired):
        links, motors = robot.sample(START + k * PERIOD)
        assert len(links.effort) == 2 and not motors.effort
        torques.append(
            controller.command(
                reference,
                *(np.array(v) for v in (links.position, links.velocity)),
                *(np.array(v) for v in (motors.position, motors.velocity)),
            )
        )
        robot.command(torques[-1], START + k * PERIOD)
    robot.sample(START + count * PERIOD)
    actuator = SeriesElastic(STIFFNESS, INERTIA)
    record = simulate_tracking(
        ElasticPlant(
            MODEL,
            dict.fromkeys(NAMES, actuator),
            imperfections=Imperfections(
                coulomb={'shoulder': 0.2, 'elbow': 1.0},
                payload={'fore': 0.5},
                torque_rate_limit=5000.0,
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
    links, _ = robot.sample(START + 3 * PERIOD)
    np.testing.assert_array_equal(links.position, reference.q)
    robot.wait(lambda: robot.status().level == DiagnosticStatus.STALE, 'stale')


def test_commands_that_cannot_be_used_are_refused_and_nothing_moves(bench):
    robot = bench(namespace='left', publish_clock=False, command_timeout=100.0)
    robot.sample(START)
    both = [1.0, 2.0]
    refused = Counter()
    for effort, stamp, names, kind, reason in (
        (both, START + 1, NAMES, 'stale', 'answers the sample at 2.000000001'),
        (both, 0, NAMES, 'stale', 'expected an answer to that at 2.000000000'),
        ([1.0], START, NAMES, 'invalid', 'effort has 1 values, expected 2'),
        ([1.0, np.nan], START, NAMES, 'invalid', "effort of joint 'elbow' is nan"),
        ([1.0, np.inf], START, NAMES, 'invalid', "effort of joint 'elbow' is inf"),
        ([1.0, 1e11], START, NAMES, 'invalid', "motor 'elbow' is 1e+11, expected"),
        ([1.0], START, ['elbow'], 'unknown joints', 'missing: shoulder'),
        (both, START, ['elbow', 'wrist'], 'unknown joints', 'unknown: wrist'),
        ([1.0] * 40_000, START, ['x'] * 40_000, 'too large', 'expected no more than'),
        (None, START, NAMES, 'invalid', 'cannot be unpacked'),
    ):
        refused[kind] += 1
        if effort is None:
            robot.commands.publish(b'\x00\x01\x00\x00' + b'\xff' * 32)
        else:
            robot.command(effort, stamp, names)
        robot.wait(
            lambda kind=kind: robot.value(f'refused: {kind}') == str(refused[kind]),
            f'refusal of {kind}',
        )
        assert reason in robot.value('last refusal')
    assert robot.value('samples') == '0'
    assert robot.status().name == 'left/simulated_robot: simulation'
    robot.command(both, START)
    robot.sample(START + PERIOD)
    # The clock is left to others, if so asked.
    assert not robot.received['/clock']
    assert not robot.client.get_publishers_info_by_topic('/clock')


def test_in_real_time_samples_follow_the_clock(bench):
    robot = bench(mode='real_time', sample_period=0.01, brake_time=60.0)
    robot.wait(lambda: robot.received['joint_states'], 'first sample')
    begin = robot.client.get_clock().now().nanoseconds
    robot.command([0.0, 0.0], 0)
    robot.wait(lambda: (robot.value('samples') or '0') > '0', 'first command')
    first = len(robot.received['joint_states'])
    robot.wait(lambda: len(robot.received['joint_states']) > first + 30, 'samples')
    now = robot.client.get_clock().now().nanoseconds
    stamps = [nanoseconds(m.header.stamp) for m in robot.received['joint_states']]
    steps = np.diff(stamps[first:])  # a busy machine leaves some out
    assert np.all(steps > 0) and np.all(steps % 10_000_000 == 0)
    # The stamps are those of the clock, late by what it takes to get here.
    assert begin - 2e9 < stamps[-1] < now + 0.2e9
    assert not robot.received['/clock']
    # A free pendulum falls.
    assert abs(robot.received['joint_states'][-1].position[0]) > 0.01


def test_a_torque_that_is_not_renewed_is_let_go_and_the_brakes_hold(bench, capfd):
    # So long that it falls before they close, also where its samples come late.
    robot = bench(mode='real_time', sample_period=0.01, brake_time=2.0)
    robot.wait(lambda: robot.received['joint_states'], 'first sample')
    robot.command([0.0, 0.0], 0)
    robot.wait(lambda: robot.value('brakes closed') == '1', 'brakes')
    assert 'the brakes close and hold the robot where it is' in capfd.readouterr().err
    robot.wait(lambda: 'brakes' in robot.status().message, 'diagnostics')
    # Its samples may come later than its report. It had begun to fall.
    states = robot.received['joint_states']
    robot.wait(lambda: states[-1].position[0] and set(states[-1].velocity) == {0.0}, 'rest')
    before, count = states[-1], len(states)
    robot.wait(lambda: len(robot.received['joint_states']) > count + 10, 'samples')
    after = robot.received['joint_states'][-1]
    assert after.position == before.position and set(after.velocity) == {0.0}
    robot.command([0.0, 0.0], 0)  # opens them
    robot.wait(
        lambda: robot.received['joint_states'][-1].position != after.position, 'motion'
    )


def test_a_simulation_that_breaks_down_says_so_and_stops(bench):
    robot = bench(**{'actuators.elbow.max_deflection': 0.05})
    robot.sample(START)
    robot.command([0.0, 500.0], START)
    robot.wait(lambda: robot.status().level == DiagnosticStatus.ERROR, 'error')
    assert "'elbow'" in robot.status().message
    assert 'range of its spring' in robot.status().message


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
        ({'imperfections.colomb': 1.0}, 'imperfection is .colomb., expected one of'),
        ({'imperfections.wrist.damping': 1.0}, 'damping is given for .wrist., expected'),
    ],
)
def test_parameters_that_cannot_be_used_end_the_start(context, parameters, message):
    values = {'robot_description': robots.TWO_LINK, **ELASTIC, **parameters}
    overrides = [Parameter(name, value=value) for name, value in values.items()]
    with pytest.raises(ValueError, match=message):
        SimulatedRobot(context=context, parameter_overrides=overrides)
