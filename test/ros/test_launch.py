"""The launch files: what they would start, and a real start where launch_ros is installed.

launch_ros is not on PyPI. Stand-ins for its classes, which only keep what they are given, show
what the files make of their arguments; a real node shows whether it understands that.
"""

import itertools
import os
import runpy
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import rclpy
import yaml
from hodyn_msgs.msg import JointEffort
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from support import robots
from support.ros_harness import own_domain, spin_to_end

from hodyn_ros import RobotModel
from hodyn_ros.kinematics import complete_motion
from hodyn_ros.ros.base import qos
from hodyn_ros.ros.nodes.flatness_controller import FlatnessControllerNode
from hodyn_ros.ros.nodes.hodyn_node import HodynNode
from hodyn_ros.streams.timeline import nanoseconds

LAUNCH = Path(__file__).resolve().parents[2] / 'launch'
try:
    import launch_ros  # noqa: F401
    from ament_index_python.packages import get_package_prefix, get_package_share_directory

    SHARE = Path(get_package_share_directory('hodyn_ros'))
    LIB = Path(get_package_prefix('hodyn_ros')) / 'lib' / 'hodyn_ros'
except (ImportError, LookupError):
    SHARE = LIB = None
for_real = pytest.mark.skipif(
    LIB is None or not LIB.is_dir(),
    reason='needs launch_ros and hodyn_ros installed as a ROS package (colcon build)',
)

TIMEOUT = 240.0  # s
DOMAIN = 101

RUN = """
import sys
from launch import LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import AnyLaunchDescriptionSource

arguments = [tuple(argument.split(':=', 1)) for argument in sys.argv[2:]]
service = LaunchService()
service.include_launch_description(
    IncludeLaunchDescription(
        AnyLaunchDescriptionSource(sys.argv[1]), launch_arguments=arguments
    )
)
sys.exit(service.run())
"""


@pytest.fixture
def first_effort():
    """Launch a file and return the first message on a topic, the exit code and the output."""

    def run(file, topic, *arguments):
        process = subprocess.Popen(
            [sys.executable, '-c', RUN, str(SHARE / 'launch' / file), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, 'ROS_DOMAIN_ID': str(DOMAIN)},
        )
        lines = []
        reader = threading.Thread(target=lambda: lines.extend(process.stdout))
        reader.start()
        context, messages = Context(), []
        rclpy.init(context=context, domain_id=DOMAIN)
        node = Node('listener', context=context)
        node.create_subscription(JointEffort, topic, messages.append, 10)
        executor = SingleThreadedExecutor(context=context)
        executor.add_node(node)
        deadline = time.monotonic() + TIMEOUT
        try:
            while not messages and time.monotonic() < deadline and process.poll() is None:
                executor.spin_once(timeout_sec=0.1)
        finally:
            node.destroy_node()
            rclpy.shutdown(context=context)
            process.send_signal(signal.SIGINT)
            process.wait(TIMEOUT)
            reader.join(TIMEOUT)
        output = ''.join(lines)
        assert messages, output
        return messages[0], output

    return run


@for_real
def test_arguments_reach_the_node(first_effort):
    message, output = first_effort(
        'panda.launch.py',
        '/arm/hodyn_node/joint_effort',
        'namespace:=arm',
        'demo:=true',
        'description_file:=',
        f'description_command:=cat {SHARE / "urdf" / "panda_with_hand.urdf"}',
        'base_link:=panda_link0',
        'tip_link:=panda_hand',
        f'params_file:={SHARE / "config" / "panda.yaml"}',
        'joint_trajectory:=/controller/joint_trajectory',
        'use_sim_time:=false',
    )
    assert message.header.frame_id == 'panda_link0'
    assert 'finger' not in ' '.join(message.joint_names)
    assert '/controller/joint_trajectory' in output


@for_real
@pytest.mark.parametrize(
    'file', ['hodyn.launch.py', 'panda.launch.py', 'panda_sea.launch.py']
)
def test_parameter_file_that_does_not_exist_ends_the_launch_with_a_sentence(file):
    done = subprocess.run(
        [
            sys.executable,
            '-c',
            RUN,
            str(SHARE / 'launch' / file),
            'params_file:=/no/such.yaml',
        ],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        env={**os.environ, 'ROS_DOMAIN_ID': str(DOMAIN)},
    )
    assert done.returncode != 0
    assert "params_file is '/no/such.yaml', which is no file" in done.stderr + done.stdout
    assert 'process started' not in done.stderr + done.stdout


# With stand-ins


class Kept:
    """Keeps what it is given."""

    def __init__(self, *arguments, **options):
        self.arguments, self.options = arguments, options


class Declared(Kept):
    """Argument of a launch file."""


class Shutdown(Kept):
    """Action that ends the launch."""


class Configuration(Kept):
    def perform(self, context):
        return context[self.arguments[0]]


CLASSES = {
    'launch': {'LaunchDescription': Kept},
    'launch.actions': {
        'DeclareLaunchArgument': Declared,
        'IncludeLaunchDescription': Kept,
        'OpaqueFunction': Kept,
        'Shutdown': Shutdown,
    },
    'launch.launch_description_sources': {'PythonLaunchDescriptionSource': Kept},
    'launch.substitutions': {'Command': Kept, 'LaunchConfiguration': Configuration},
    'launch_ros': {},
    'launch_ros.actions': {'Node': Kept},
    'launch_ros.parameter_descriptions': {'ParameterValue': Kept},
}


@pytest.fixture
def context():
    with own_domain() as own:
        yield own


@pytest.fixture
def load(monkeypatch):
    """Run a launch file and return its names."""
    for name, classes in CLASSES.items():
        module = ModuleType(name)
        vars(module).update(classes)
        monkeypatch.setitem(sys.modules, name, module)
    return lambda name: runpy.run_path(str(LAUNCH / name))


@pytest.fixture
def started(load):
    """Nodes that hodyn.launch.py starts with some arguments."""

    def start(**given):
        names = load('hodyn.launch.py')
        defaults = {name: default for name, default, _ in names['ARGUMENTS']}
        assert set(given) <= set(defaults)
        return [node.options for node in names['start_node']({**defaults, **given})]

    return start


@pytest.fixture
def real_node(context):
    """Make the real node as launch_ros would, with its options."""
    made = []

    def make(options):
        arguments = ['--ros-args']
        for source, target in options['remappings']:
            arguments += ['-r', f'{source}:={target}']
        for item in options['parameters']:
            if isinstance(item, str):
                arguments += ['--params-file', item]
        parameters = [
            rclpy.Parameter(
                key, value=value.arguments[0] if isinstance(value, Kept) else value
            )
            for item in options['parameters']
            if isinstance(item, dict)
            for key, value in item.items()
        ]
        made.append(
            HodynNode(context=context, cli_args=arguments, parameter_overrides=parameters)
        )
        return made[-1]

    yield make
    for node in made:
        node.destroy_node()


def test_a_robot_with_closed_loops_is_launched_and_its_states_are_completed(
    started, real_node, context, tmp_path
):
    # Its loop is given beside the description, by a file; the motors alone are measured.
    xml, loop = robots.FIVE_BAR.split('<loop')
    tips = ''.join(
        f'<link name="{side}_tip"/><joint name="{side}_end" type="fixed">'
        f'<parent link="{side}_rod"/><child link="{side}_tip"/><origin xyz="0.5 0 0"/></joint>'
        for side in ('left', 'right')
    )
    description, loops = tmp_path / 'five_bar.urdf', tmp_path / 'closed_loops.yaml'
    description.write_text(f'{xml}{tips}</robot>')
    loops.write_text(
        'closed_loop: [[left_tip, right_tip]]\ntype: [3d]\nname_mot: [left, right]'
    )
    (options,) = started(description_file=str(description), loops=str(loops))
    peer, states = Node('peer', context=context), []
    peer.create_subscription(JointState, 'hodyn_node/joint_states', states.append, 10)
    publisher = peer.create_publisher(JointState, 'joint_states', 10)
    node = real_node(options)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(peer)
    executor.add_node(node)

    def spin_until(condition):
        deadline = time.monotonic() + TIMEOUT
        while not condition() and time.monotonic() < deadline:
            executor.spin_once(timeout_sec=0.1)

    spin_until(lambda: node.robot and publisher.get_subscription_count())
    publisher.publish(JointState(name=['right', 'left'], position=[-0.2, 0.1]))
    spin_until(lambda: states)
    peer.destroy_node()
    assert list(states[0].name) == ['left', 'left_elbow', 'right', 'right_elbow']
    whole = complete_motion(RobotModel.from_urdf(robots.FIVE_BAR), [[0.1, -0.2]])
    np.testing.assert_allclose(states[0].position, whole[0], atol=1e-9)


def test_the_view_is_started_as_a_command_with_arguments_of_ros_last(load):
    names = load('view.launch.py')
    given = {name: default for name, default, _ in names['ARGUMENTS']}
    given |= {'limits': 'iiwa14', 'serve': 'yes', 'joint_states': '/states'}
    (node,) = names['start_node'](given)
    assert node.options['executable'] == 'hodyn'
    expected = ['view', 'panda', '--live', '--limits', 'iiwa14', '--serve', '--']
    assert node.options['arguments'] == expected
    assert ('joint_states', '/states') in node.options['remappings']


# The Panda with elastic joints


@pytest.fixture
def sea(load):
    return load('panda_sea.launch.py')


@pytest.fixture
def sea_nodes(sea):
    """Nodes that panda_sea.launch.py starts with some arguments, by executable."""

    def start(**given):
        defaults = {name: default for name, default, _ in sea['ARGUMENTS']}
        assert set(given) <= set(defaults)
        nodes = [node.options for node in sea['start_nodes']({**defaults, **given})]
        return {options['executable']: options for options in nodes}

    return start


@pytest.fixture
def sea_node(tmp_path, context):
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


def test_two_robots_at_a_time_have_each_their_own(sea_nodes, sea_node, context, spin):
    simulated_robot = pytest.importorskip('hodyn_ros.ros.nodes.simulated_robot')
    pytest.importorskip('mujoco')
    client = Node('client', context=context)
    shared = []
    client.create_subscription(Clock, '/clock', shared.append, qos.OUTPUT)
    robots = {name: Robot(client, name) for name in ('left', 'right')}
    begins = dict(zip(robots, (5, 5000)))  # s
    spin(client)
    controllers = {}
    for name in robots:
        options = sea_nodes(namespace=name)
        controllers[name] = sea_node(FlatnessControllerNode, options['flatness_controller'])
        spin(controllers[name])
    wait_for(lambda: all(node.control.laws is not None for node in controllers.values()))
    for name in robots:
        options = sea_nodes(namespace=name)['simulated_robot']
        options['parameters'].append(
            {'start_time': float(begins[name]), 'command_timeout': 60.0}
        )
        spin(sea_node(simulated_robot.SimulatedRobot, options))
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


def wait_for(condition):
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        time.sleep(0.02)
        assert time.monotonic() < deadline
