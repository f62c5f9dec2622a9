"""The launch files: what they would start, and a real start where launch_ros is installed.

launch_ros is not on PyPI. Stand-ins for its classes, which only keep what they are given, show
what the files make of their arguments; a real node shows whether it understands that.
"""

import os
import runpy
import signal
import subprocess
import sys
import threading
import time
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import pytest
import rclpy
from hodyn_msgs.msg import JointEffort
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from support.ros_harness import next_domain

from hodyn_ros import RobotModel
from hodyn_ros.ros.nodes.hodyn_node import HodynNode
from hodyn_ros.ros.nodes.trajectory_proxy import ProxySettings

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
NODE_ENDED = 'process has finished cleanly'

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
def test_panda_launch_file_with_demo_sends_efforts_and_ends_cleanly(first_effort):
    message, output = first_effort(
        'panda.launch.py', '/hodyn_node/joint_effort', 'demo:=true'
    )
    assert list(message.joint_names) == [f'panda_joint{number}' for number in range(1, 8)]
    assert message.valid_order == 2
    assert output.count(NODE_ENDED) == 2
    assert 'Traceback' not in output


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
def real_node():
    """Make the real node as launch_ros would, with its options."""
    context, made = Context(), []
    rclpy.init(context=context, domain_id=next_domain())

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
    rclpy.shutdown(context=context)


def subscribed(node):
    return {item.topic_name for item in node.subscriptions} - {
        '/clock',
        '/parameter_events',
    }


def test_every_argument_is_declared_with_a_description(load):
    names = load('hodyn.launch.py')
    *declared, action = names['generate_launch_description']().arguments[0]
    assert [item.arguments[0] for item in declared] == [
        name for name, _, _ in names['ARGUMENTS']
    ]
    assert all(item.options['description'].endswith('.') for item in declared)
    assert action.options['function'] is names['start_node']


def test_every_input_of_the_node_can_be_remapped(started, real_node):
    topics = ('joint_trajectory', 'joint_motion', 'joint_states', 'wrench_motion', 'wrench')
    topics += ('stiffness_motion', 'position_chunk')
    topics += ('base_motion',)
    (options,) = started(
        description_topic='/elsewhere/robot_description',
        **{topic: f'/elsewhere/{topic}' for topic in topics},
    )
    options['parameters'].append({'base_motion': True})
    inputs = subscribed(real_node(options))
    assert {'/elsewhere/robot_description', '/elsewhere/joint_motion'} <= inputs
    assert '/elsewhere/base_motion' in inputs
    assert all(topic.startswith('/elsewhere/') for topic in inputs), inputs


def test_inputs_have_their_own_names_by_default(started, real_node):
    (options,) = started()
    assert {'/robot_description', '/joint_motion', '/joint_trajectory'} <= subscribed(
        real_node(options)
    )


def test_arguments_win_over_the_parameter_file_where_they_are_given(
    started, tmp_path, real_node
):
    path = tmp_path / 'parameters.yaml'
    path.write_text(
        '/**: {ros__parameters: {base_link: a, tip_link: b, publish_rate: 20.0, '
        'robot_description: ""}}'
    )
    (options,) = started(params_file=str(path), tip_link='c', use_sim_time='True')
    node = real_node(options)
    values = [
        node.get_parameter(name).value
        for name in ('base_link', 'tip_link', 'publish_rate', 'use_sim_time')
    ]
    assert values == ['a', 'c', 20.0, True]


def test_switches_are_on_or_off_and_other_words_refused(load, started):
    for word, value in (
        ('YES', True),
        ('on', True),
        ('1', True),
        ('False', False),
        ('0', False),
    ):
        (options,) = started(use_sim_time=word)
        assert options['parameters'][-1]['use_sim_time'] is value
    proxy = load('trajectory_proxy.launch.py')
    given = {name: default for name, default, _ in proxy['ARGUMENTS']}
    (node,) = proxy['start_node']({**given, 'slower_only': 'yes', 'efforts': 'no'})
    assert [
        node.options['parameters'][-1][name] for name in ('slower_only', 'efforts')
    ] == [
        True,
        False,
    ]
    with pytest.raises(
        RuntimeError, match="use_sim_time is 'banana', expected true, 1, yes"
    ):
        started(use_sim_time='banana')
    # Nothing has started yet: the file with the node is included afterwards.
    *_, check, included, _ = load('panda.launch.py')[
        'generate_launch_description'
    ]().arguments[0]
    assert isinstance(included.arguments[0], Kept)
    with pytest.raises(RuntimeError, match="demo is 'maybe', expected"):
        check.options['function']({'demo': 'maybe'})


def test_a_node_that_ends_ends_the_launch(started):
    (options,) = started()
    assert isinstance(options['on_exit'], Shutdown)


def test_two_sources_of_the_description_are_an_error(started):
    with pytest.raises(RuntimeError, match='description_file and description_command'):
        started(description_file='a.urdf', description_command='xacro b')


@pytest.mark.parametrize('name', ['description_file', 'params_file'])
def test_a_file_that_does_not_exist_ends_the_launch(started, tmp_path, name):
    path = str(tmp_path / 'missing')
    with pytest.raises(RuntimeError, match=f'{name} is .*missing., which is no file.'):
        started(**{name: path})


def test_demo_adds_a_publisher_on_the_same_topic(load, started):
    start_demo = load('panda.launch.py')['start_demo']
    given = {'joint_trajectory': '/x', 'namespace': 'arm', 'use_sim_time': 'True'}
    (demo,) = [node.options for node in start_demo({**given, 'demo': 'true'})]
    (node,) = started(**given)
    assert demo['executable'] == 'reference_publisher'
    assert demo['parameters'] == [{'use_sim_time': True}]
    for options in (node, demo):
        assert ('joint_trajectory', '/x') in options['remappings']
        assert options['namespace'] == 'arm'
    assert start_demo({**given, 'demo': 'false'}) == []


def test_launch_of_the_proxy_passes_on_what_is_given(load, tmp_path):
    names = load('trajectory_proxy.launch.py')
    *declared, action = names['generate_launch_description']().arguments[0]
    assert [item.arguments[0] for item in declared] == [
        name for name, _, _ in names['ARGUMENTS']
    ]
    assert all(item.options['description'].endswith('.') for item in declared)
    defaults = {name: default for name, default, _ in names['ARGUMENTS']}

    def start(**given):
        (node,) = action.options['function']({**defaults, **given})
        return node.options

    assert start()['parameters'] == [{'use_sim_time': False}]
    path = tmp_path / 'parameters.yaml'
    path.write_text('/**: {ros__parameters: {timing: uniform}}')
    given = {'controller': 'arm_controller', 'slower_only': 'True', 'efforts': 'false'}
    options = start(params_file=str(path), namespace='arm', **given)
    assert (options['executable'], options['namespace']) == ('trajectory_proxy', 'arm')
    assert options['parameters'] == [
        str(path),
        {
            'use_sim_time': False,
            'controller': 'arm_controller',
            'slower_only': True,
            'efforts': False,
        },
    ]
    known = {entry.name for entry in fields(ProxySettings)} | {'use_sim_time'}
    assert set(options['parameters'][1]) <= known
    with pytest.raises(RuntimeError, match='params_file is .*missing., which is no file.'):
        start(params_file=str(tmp_path / 'missing'))


def arguments_of(load, file):
    """Arguments that a launch file offers, those of the one that it includes among them."""
    *entities, _ = load(file)['generate_launch_description']().arguments[0]
    names = [item.arguments[0] for item in entities if isinstance(item, Declared)]
    if file not in ('hodyn.launch.py', 'trajectory_proxy.launch.py'):
        names += arguments_of(load, 'hodyn.launch.py')
    return names


def test_the_demo_is_offered_where_the_robot_can_do_it(load):
    offered = {
        path.name for path in LAUNCH.glob('*.py') if 'demo' in arguments_of(load, path.name)
    }
    assert offered == {'panda.launch.py', 'panda_sea.launch.py'}


@pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')  # of the iiwa
@pytest.mark.parametrize('robot', ['panda', 'iiwa14'])
def test_robot_launch_file_gives_its_description_and_limits(
    load, started, real_node, robot
):
    names = load(f'{robot}.launch.py')
    files, includes = {}, []
    for item in names['generate_launch_description']().arguments[0]:
        if item.arguments and item.arguments[0] in ('description_file', 'params_file'):
            files[item.arguments[0]] = item.options['default_value']
        elif item.arguments and isinstance(item.arguments[0], Kept):
            includes += item.arguments[0].arguments
    assert includes == [str(LAUNCH / 'hodyn.launch.py')]
    (options,) = started(**files)
    node = real_node(options)
    model = RobotModel.from_urdf(files['description_file'])
    assert model.name == robot
    for joint in model.joint_names:
        assert f'limits.{joint}.acceleration' in node._parameter_overrides
    description = node.get_parameter('robot_description').value
    assert description == Path(files['description_file']).read_text(encoding='utf-8')
