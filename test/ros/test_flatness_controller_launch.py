"""The launch file of the Panda with elastic joints: what it starts, and what nodes make of it."""

import itertools
import runpy
import sys
import threading
import time
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import rclpy
import yaml
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from support.ros_harness import TIMEOUT, next_domain, spin_to_end

from hodyn_ros import RobotModel
from hodyn_ros.actuators import actuators_from_config
from hodyn_ros.ros.base import qos
from hodyn_ros.ros.nodes.flatness_controller import FlatnessControllerNode
from hodyn_ros.ros.nodes.hodyn_node import HodynNode
from hodyn_ros.streams.robot import actuators_config
from hodyn_ros.streams.timeline import nanoseconds
from hodyn_ros.trajectory.references import panda_sinusoids

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / 'launch' / 'panda_sea.launch.py'


class Kept:
    """Keeps what it is given."""

    def __init__(self, *arguments, **options):
        self.arguments, self.options = arguments, options


class Configuration(Kept):
    def perform(self, context):
        return context[self.arguments[0]]


CLASSES = {
    'launch': {'LaunchDescription': Kept},
    'launch.actions': {
        'DeclareLaunchArgument': Kept,
        'OpaqueFunction': Kept,
        'Shutdown': Kept,
    },
    'launch.substitutions': {'LaunchConfiguration': Configuration},
    'launch_ros': {},
    'launch_ros.actions': {'Node': Kept},
    'launch_ros.parameter_descriptions': {'ParameterValue': Kept},
}


@pytest.fixture
def names(monkeypatch):
    """Names in the launch file, with stand-ins for the classes of launch."""
    for name, classes in CLASSES.items():
        module = ModuleType(name)
        vars(module).update(classes)
        monkeypatch.setitem(sys.modules, name, module)
    return runpy.run_path(str(FILE))


@pytest.fixture
def started(names):
    def start(**given):
        defaults = {name: default for name, default, _ in names['ARGUMENTS']}
        assert set(given) <= set(defaults)
        nodes = [node.options for node in names['start_nodes']({**defaults, **given})]
        return {options['executable']: options for options in nodes}

    return start


@pytest.fixture
def context():
    own = Context()
    rclpy.init(context=own, domain_id=next_domain())
    yield own
    rclpy.shutdown(context=own)


@pytest.fixture
def real_node(tmp_path, context):
    """Make a real node as launch_ros would, with its options."""
    made, numbers = [], itertools.count()

    def make(kind, options):
        arguments = ['--ros-args']
        for source, target in options['remappings']:
            arguments += ['-r', f'{source}:={target}']
        for item in options['parameters']:
            if not isinstance(item, str):
                # launch_ros writes a file for all nodes.
                values = {
                    key: value.arguments[0] if isinstance(value, Kept) else value
                    for key, value in item.items()
                }
                item = str(tmp_path / f'parameters_{next(numbers)}.yaml')
                Path(item).write_text(yaml.safe_dump({'/**': {'ros__parameters': values}}))
            arguments += ['--params-file', item]
        made.append(
            kind(
                context=context, cli_args=arguments, namespace=options['namespace'] or None
            )
        )
        return made[-1]

    yield make
    for node in made:
        node.destroy_node()


@pytest.fixture
def spin(context):
    """Spin nodes, each in a thread."""
    executors, threads = [], []

    def begin(node):
        executors.append(SingleThreadedExecutor(context=context))
        executors[-1].add_node(node)
        threads.append(
            threading.Thread(target=spin_to_end, args=(executors[-1],), daemon=True)
        )
        threads[-1].start()

    yield begin
    for executor in executors:
        executor.shutdown()
    for thread in threads:
        thread.join(TIMEOUT)


def test_every_argument_is_declared_with_a_description(names):
    *declared, action = names['generate_launch_description']().arguments[0]
    assert [item.arguments[0] for item in declared] == [
        name for name, _, _ in names['ARGUMENTS']
    ]
    assert all(item.options['description'].endswith('.') for item in declared)
    assert action.options['function'] is names['start_nodes']


@pytest.mark.parametrize('name', ['description_file', 'params_file', 'limits_file'])
def test_a_file_that_does_not_exist_ends_the_launch(started, tmp_path, name):
    with pytest.raises(RuntimeError, match=f'{name} is .*missing., which is no file.'):
        started(**{name: str(tmp_path / 'missing')})


def test_what_is_asked_for_is_started(started):
    always = {'hodyn_node', 'flatness_controller'}
    assert set(started()) == always | {'simulated_robot', 'reference_publisher'}
    assert set(started(simulation='false', demo='false')) == always
    nodes = started(robot_state_publisher='true', namespace='arm')
    assert nodes['robot_state_publisher']['package'] == 'robot_state_publisher'
    assert {options['namespace'] for options in nodes.values()} == {'arm'}


@pytest.mark.parametrize('namespace', ['', 'arm'])
def test_the_controller_understands_what_it_is_given(started, real_node, namespace):
    options = started(controller='feed_forward_1', namespace=namespace)[
        'flatness_controller'
    ]
    node = real_node(FlatnessControllerNode, options)
    assert not node.parameters.unknown()
    settings = node.settings
    assert settings.controller == 'feed_forward_1'
    assert settings.without_reference == 'hold' and settings.lead == 0.0005
    prefix = f'/{namespace}' if namespace else ''
    assert [p.topic_name for p in node.publishers if 'command' in p.topic_name] == [
        f'{prefix}/motor_command'
    ]
    for topic in ('joint_states', 'motor_states'):
        (info,) = node.get_subscriptions_info_by_topic(f'{prefix}/{topic}')
        assert info.qos_profile.reliability == rclpy.qos.ReliabilityPolicy.RELIABLE
    model = RobotModel.from_urdf(node.get_parameter('robot_description').value)
    actuators = actuators_from_config(model, actuators_config(node.settings.actuators))
    assert all(actuators[name].spring.stiffness > 0.0 for name in model.joint_names)


def test_the_simulated_robot_starts_where_the_reference_begins(started, real_node):
    simulated_robot = pytest.importorskip('hodyn_ros.ros.nodes.simulated_robot')
    pytest.importorskip('mujoco')
    node = real_node(simulated_robot.SimulatedRobot, started()['simulated_robot'])
    begin = panda_sinusoids().motion([0.0])[0, 0]
    found = [
        node.get_parameter(f'initial_position.panda_joint{j}').value for j in range(1, 8)
    ]
    np.testing.assert_array_equal(found, begin)
    controller = started()['flatness_controller']
    lead = real_node(FlatnessControllerNode, controller).settings.lead
    assert lead == node.get_parameter('sample_period').value / 2.0


@pytest.mark.parametrize(
    ('given', 'topic'),
    [
        ({}, '/clock'),
        ({'namespace': 'arm'}, '/arm/clock'),
        ({'namespace': '/left/arm/'}, '/left/arm/clock'),
        ({'namespace': 'arm', 'clock': '/clock'}, '/clock'),
        ({'clock': 'robots/time'}, '/robots/time'),
    ],
)
def test_all_nodes_follow_the_clock_of_their_robot(started, given, topic):
    for options in started(robot_state_publisher='true', **given).values():
        remapped = dict(options['remappings']).get('/clock', '/clock')
        assert remapped == topic


def test_the_hodyn_node_takes_its_time_from_that_clock(started, real_node, context):
    real_node(HodynNode, started(namespace='left')['hodyn_node'])
    client = Node('client', context=context)
    wait_for(lambda: client.get_subscriptions_info_by_topic('/left/clock'))
    assert not client.get_subscriptions_info_by_topic('/clock')


class Robot:
    """What is seen of a robot in a namespace."""

    def __init__(self, client, namespace):
        self.clock, self.states, self.commands = [], [], []
        for kind, topic, kept, profile in (
            (Clock, 'clock', self.clock, qos.OUTPUT),
            (JointState, 'joint_states', self.states, qos.OUTPUT),
            (JointState, 'motor_command', self.commands, qos.OUTPUT),
        ):
            client.create_subscription(kind, f'/{namespace}/{topic}', kept.append, profile)


def test_two_robots_at_a_time_have_each_their_own(started, real_node, context, spin):
    simulated_robot = pytest.importorskip('hodyn_ros.ros.nodes.simulated_robot')
    pytest.importorskip('mujoco')
    client = Node('client', context=context)
    shared = []
    client.create_subscription(Clock, '/clock', shared.append, qos.OUTPUT)
    robots = {name: Robot(client, name) for name in ('left', 'right')}
    begins = dict(zip(robots, (5, 5000)))  # s
    spin(client)
    controllers, simulations = {}, {}
    for name in robots:
        options = started(namespace=name)
        controllers[name] = real_node(
            FlatnessControllerNode, options['flatness_controller']
        )
        spin(controllers[name])
    wait_for(lambda: all(node.control.laws is not None for node in controllers.values()))
    for name in robots:
        options = started(namespace=name)['simulated_robot']
        options['parameters'].append(
            {'start_time': float(begins[name]), 'command_timeout': 60.0}
        )
        simulations[name] = real_node(simulated_robot.SimulatedRobot, options)
        spin(simulations[name])
    wait_for(lambda: all(len(robot.commands) > 100 for robot in robots.values()))
    assert not shared
    for name, robot in robots.items():
        first, period = begins[name] * 10**9, 10**6
        for stamps in (
            [nanoseconds(message.clock) for message in list(robot.clock)],
            [nanoseconds(message.header.stamp) for message in list(robot.states)],
            [nanoseconds(message.header.stamp) for message in list(robot.commands)],
        ):
            # Each sample once and in its order, but for those that waited for the controller.
            later = [stamp for stamp in stamps if stamp > first]
            assert later == list(
                range(first + period, first + period * (len(later) + 1), period)
            )
        now = controllers[name].get_clock().now().nanoseconds
        assert first <= now < first + 100 * 10**9
        assert simulations[name]._counts['held'] == 0


def wait_for(condition):
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        time.sleep(0.02)
        assert time.monotonic() < deadline
