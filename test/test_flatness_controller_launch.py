"""The launch file of the Panda with elastic joints: what it starts, and what nodes make of it."""

import itertools
import runpy
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import rclpy
import yaml
from rclpy.context import Context
from ros_harness import next_domain

from hodyn_ros import RobotModel
from hodyn_ros.actuators import actuators_from_config
from hodyn_ros.ros.flatness_controller import FlatnessControllerNode
from hodyn_ros.trajectory.references import panda_sinusoids

ROOT = Path(__file__).resolve().parent.parent
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
    'launch.actions': {'DeclareLaunchArgument': Kept, 'OpaqueFunction': Kept},
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
def real_node(tmp_path):
    """Make a real node as launch_ros would, with its options."""
    context, made, numbers = Context(), [], itertools.count()
    rclpy.init(context=context, domain_id=next_domain())

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
            kind(context=context, cli_args=arguments, namespace=options['namespace'] or None)
        )
        return made[-1]

    yield make
    for node in made:
        node.destroy_node()
    rclpy.shutdown(context=context)


def test_every_argument_is_declared_with_a_description(names):
    *declared, action = names['generate_launch_description']().arguments[0]
    assert [item.arguments[0] for item in declared] == [name for name, _, _ in names['ARGUMENTS']]
    assert all(item.options['description'].endswith('.') for item in declared)
    assert action.options['function'] is names['start_nodes']


def test_what_is_asked_for_is_started(started):
    always = {'hodyn_node', 'flatness_controller'}
    assert set(started()) == always | {'simulated_robot', 'reference_publisher'}
    assert set(started(simulation='false', demo='false')) == always
    nodes = started(robot_state_publisher='true', namespace='arm')
    assert nodes['robot_state_publisher']['package'] == 'robot_state_publisher'
    assert {options['namespace'] for options in nodes.values()} == {'arm'}


@pytest.mark.parametrize('namespace', ['', 'arm'])
def test_the_controller_understands_what_it_is_given(started, real_node, namespace):
    options = started(controller='feed_forward_1', namespace=namespace)['flatness_controller']
    node = real_node(FlatnessControllerNode, options)
    assert not node._declared.unknown()
    settings = node._declared.settings
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
    actuators = actuators_from_config(model, node._declared.actuators)
    assert all(actuators[name].spring.stiffness > 0.0 for name in model.joint_names)


def test_the_simulated_robot_starts_where_the_reference_begins(started, real_node):
    simulated_robot = pytest.importorskip('hodyn_ros.ros.simulated_robot')
    pytest.importorskip('mujoco')
    node = real_node(simulated_robot.SimulatedRobot, started()['simulated_robot'])
    begin = panda_sinusoids().motion([0.0])[0, 0]
    found = [node.get_parameter(f'initial_position.panda_joint{j}').value for j in range(1, 8)]
    np.testing.assert_array_equal(found, begin)
    controller = started()['flatness_controller']
    lead = real_node(FlatnessControllerNode, controller)._declared.settings.lead
    assert lead == node.get_parameter('sample_period').value / 2.0
