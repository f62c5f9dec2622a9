"""Parameters: what is declared, what is refused, and that changes come as a whole."""

from __future__ import annotations

import dataclasses
import math
import pickle
import re
import runpy
import threading
from pathlib import Path

import numpy as np
import pytest
import rclpy
import yaml
from rcl_interfaces.msg import ParameterType, SetParametersResult
from rcl_interfaces.srv import SetParameters, SetParametersAtomically
from rclpy.context import Context
from rclpy.exceptions import ParameterNotDeclaredException
from rclpy.node import Node
from rclpy.parameter import Parameter
from support import robots
from support.output_cases import DRIVES, FRICTION
from support.ros_harness import Harness, dict_of, next_domain, node_maker, own_domain

from hodyn_ros import RobotModel
from hodyn_ros.actuators import Actuators
from hodyn_ros.actuators.config import KEYS
from hodyn_ros.errors import WrenchError
from hodyn_ros.identification import actuator_config, friction_config, write_parameters
from hodyn_ros.resources import share_file
from hodyn_ros.ros.base.node_settings import NodeSettings
from hodyn_ros.ros.base.parameters import Parameters, entries, find_problems
from hodyn_ros.streams.robot import drives_of

ROOT = Path(__file__).resolve().parents[2]
ENTRIES = entries(NodeSettings)
NAMES = [entry.name for entry in ENTRIES]
READ_ONLY = {
    'base_link',
    'tip_link',
    'gravity',
    'diagnostics_period',
    'max_waiting_requests',
    'allow_impossible_inertia',
    'loops',
    'mirror_efforts',
    'answer_all',
    'base_motion',
}
# What rclpy declares itself.
OF_RCLPY = {'use_sim_time', 'start_type_description_service'}


@pytest.fixture(scope='module')
def context():
    with own_domain() as made:
        yield made


@pytest.fixture
def plain_node(context):
    """Make a node without any parameters of ours."""
    made = []

    def make(**values):
        overrides = [
            Parameter(name.replace('__', '.'), value=value)
            for name, value in values.items()
        ]
        made.append(
            Node(
                'plain',
                context=context,
                parameter_overrides=overrides,
                automatically_declare_parameters_from_overrides=True,
            )
        )
        return made[-1]

    yield make
    for node in made:
        node.destroy_node()


@pytest.fixture
def hodyn_node(context):
    with node_maker(context) as make:
        yield make


@pytest.fixture(scope='module')
def model():
    return RobotModel.from_urdf(robots.TWO_LINK)


def limits_of(parameters, model):
    """Limits of a robot that comes into use."""
    parameters.declare_joints(model.joint_names)
    return parameters.settings.limits_of(model)


def parameter(name, value):
    return Parameter(name, value=value)


def flat(tree, prefix=''):
    values = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            values.update(flat(value, f'{prefix}{key}.'))
        else:
            values[prefix + key] = value
    return values


def parameters_in(path):
    (contents,) = yaml.safe_load(path.read_text()).values()
    return flat(contents['ros__parameters'])


def declared_by(node):
    """Values of a node's parameters that are neither of rclpy nor about quality of service."""
    values = {}
    for name, item in node.get_parameters_by_prefix('').items():
        if name not in OF_RCLPY and not name.startswith('qos_overrides.'):
            values[name] = item.value
    return values


# Descriptors


def test_every_parameter_is_described(plain_node):
    node = plain_node()
    Parameters(node, NodeSettings)
    for descriptor in node.describe_parameters(NAMES):
        assert len(descriptor.description) > 20, descriptor.name
        assert descriptor.description.endswith('.'), descriptor.name
        assert descriptor.read_only == (descriptor.name in READ_ONLY), descriptor.name


def test_every_number_has_a_range_and_says_its_unit(plain_node):
    node = plain_node()
    Parameters(node, NodeSettings)
    for descriptor in node.describe_parameters(NAMES):
        name = descriptor.name
        if descriptor.type == ParameterType.PARAMETER_DOUBLE:
            (bounds,) = descriptor.floating_point_range
            assert re.search(r'\[[^]]+\]', descriptor.description), name
        elif descriptor.type == ParameterType.PARAMETER_INTEGER:
            (bounds,) = descriptor.integer_range
        else:
            continue
        assert bounds.from_value < bounds.to_value, name
        assert bounds.from_value <= node.get_parameter(name).value <= bounds.to_value, name


@pytest.mark.parametrize(
    ('name', 'choices'),
    [
        ('interpolation', ['spline', 'jtc', 'jtc_upsampled']),
        ('wrench_stale_policy', ['stop', 'hold', 'fade']),
        ('wrench.acting', ['on_robot', 'on_environment']),
    ],
)
def test_choices_are_named_and_all_of_them_are_taken(plain_node, name, choices):
    node = plain_node()
    parameters = Parameters(node, NodeSettings)
    (descriptor,) = node.describe_parameters([name])
    assert re.findall(r"'(\w+)'", descriptor.additional_constraints) == choices
    for choice in choices:
        (result,) = node.set_parameters([parameter(name, choice)])
        assert result.successful, result.reason
        part, _, key = name.replace('wrench_', 'wrench.').rpartition('.')
        holder = getattr(parameters.settings, part) if part else parameters.settings
        assert getattr(holder, key) == choice


# Values


def test_values_reach_the_settings(plain_node):
    values = {
        'base_link': 'a',
        'tip_link': 'b',
        'gravity': [1.0, 2.0, 3.0],
        'allow_impossible_inertia': True,
        'loops': 'open',
        'loop_tolerance': 0.01,
        'mirror_efforts': True,
        'answer_all': True,
        'diagnostics_period': 2.5,
        'max_waiting_requests': 3,
        'publish_rate': 12.5,
        'trajectory_sample_period': 0.25,
        'max_samples': 77,
        'max_trajectory_points': 55,
        'max_message_size': 4096,
        'interpolation': 'jtc',
        'allow_partial_joints': True,
        'trajectory_timeout': 1.25,
        'stop_duration': 1.5,
        'input_timeout': 2.0,
        'path_tolerance': 0.3,
        'path_time': 0.4,
        'wrench_timeout': 0.75,
        'base_motion': False,
        'base_motion_timeout': 0.2,
        'wrench_stale_policy': 'fade',
        'wrench_fade_time': 0.125,
        'stiffness_timeout': 0.3,
        'stiffness_rest_time': 0.7,
        'wrench.link': 'hand',
        'wrench.acting': 'on_environment',
        'wrench.sensor_xyz': [0.1, 0.2, 0.3],
        'wrench.sensor_rpy': [0.4, 0.5, 0.6],
        'wrench.tool_mass': 0.5,
        'wrench.tool_center_of_mass': [0.01, 0.02, 0.03],
        'wrench.delay': 0.05,
        'wrench.noise': 0.1,
        'wrench.bandwidth': 30.0,
        'estimator.enabled': False,
        'estimator.delay': 0.03,
        'estimator.noise': 1e-4,
        'estimator.bandwidth': 20.0,
        'estimator.max_gap': 0.2,
        'estimator.highest_order': 1,
        'chunk.period': 0.05,
        'chunk.step': 0.02,
        'chunk.bandwidth': 3.0,
        'command.effort': 'without_gravity',
        'command.friction': False,
        'command.effort_tolerance': 0.2,
        'identification.enabled': True,
        'identification.payload_link': 'tool',
        'identification.friction': ['c', 'd'],
        'identification.memory': 3.0,
        'identification.effort_noise': 0.3,
        'command.joints': ['b', 'a'],
        'command.interfaces': ['position', 'effort'],
    }
    assert set(values) == set(NAMES)
    for entry in ENTRIES:
        default = list(entry.default) if isinstance(entry.default, tuple) else entry.default
        # base_motion goes without wrench.tool_mass; test_base_motion.py sets it.
        is_apart = entry.name == 'base_motion'
        assert is_apart or values[entry.name] != default, (
            'it would reach the settings anyway'
        )
    settings = Parameters(plain_node(**values), NodeSettings).settings
    read = flat(dataclasses.asdict(settings))
    for key in ('timeout', 'stale_policy', 'fade_time'):  # of given wrenches too
        read[f'wrench_{key}'] = read.pop(f'wrench.{key}')
    assert read.pop('limits') == read.pop('actuators') == read.pop('friction') == ()
    assert {
        name: list(v) if isinstance(v, tuple) else v for name, v in read.items()
    } == values


def test_whole_numbers_are_numbers(plain_node):
    node = plain_node(publish_rate=50, gravity=[0, 0, -10], limits__elbow__jerk=7)
    parameters = Parameters(node, NodeSettings)
    assert parameters.settings.publish_rate == 50.0
    assert parameters.settings.gravity == (0.0, 0.0, -10.0)
    assert isinstance(parameters.settings.publish_rate, float)
    (result,) = node.set_parameters([parameter('stop_duration', 2)])
    assert result.successful
    assert parameters.settings.stop_duration == 2.0


INVALID = [
    ('publish_rate', 0.0, '0.01'),
    ('publish_rate', 10_001, '10000'),
    ('publish_rate', math.nan, '10000'),
    ('publish_rate', math.inf, '10000'),
    ('publish_rate', True, 'expected a number'),
    ('publish_rate', '50', 'expected a number'),
    ('publish_rate', [50.0], 'expected a number'),
    ('max_samples', 1, '2'),
    ('max_samples', 7.0, 'expected a whole number'),
    ('max_message_size', 2**31, '2147483647'),
    ('estimator.highest_order', 3, '2'),
    ('estimator.highest_order', -1, '0'),
    ('estimator.enabled', 1, 'expected true or false'),
    ('interpolation', 'quintic', "'spline', 'jtc', 'jtc_upsampled'"),
    ('interpolation', '', "'spline', 'jtc', 'jtc_upsampled'"),
    ('wrench_stale_policy', 'Stop', "'stop', 'hold', 'fade'"),
    ('wrench.link', 3, 'expected text'),
    ('wrench.sensor_xyz', [0.0, 0.0], 'three finite numbers'),
    ('wrench.sensor_xyz', [0.0, 0.0, math.nan], 'three finite numbers'),
    ('wrench.sensor_rpy', 'abc', 'three finite numbers'),
    ('wrench.sensor_rpy', [True, False, True], 'three finite numbers'),
    ('wrench.tool_mass', -1, '0'),
    ('estimator.max_gap', 0.0, '0.0001'),
    ('wrench_fade_time', 0.0, '0.001'),
    ('wrench_fade_time', 10**400, '0.001'),
]


def test_invalid_value_is_refused_with_the_reason_and_changes_nothing(plain_node, model):
    node = plain_node()
    changes = []
    parameters = Parameters(node, NodeSettings, lambda *change: changes.append(change))
    limits_of(parameters, model)
    before = parameters.settings
    limit = 'limits.elbow.jerk is {}, expected a number from 1e-09 to inf'
    for name, value, reason in (
        *INVALID,
        *(
            ('limits.elbow.jerk', value, limit.format(repr(value)))
            for value in (0.0, -1.0, math.nan, 'high', True)
        ),
    ):
        stored = node.get_parameter(name).value
        (result,) = node.set_parameters([parameter(name, value)])
        assert not result.successful
        assert reason in result.reason
        assert parameters.settings is before
        assert node.get_parameter(name).value == stored
    for name in [*NAMES, 'limits.elbow.jerk']:
        (result,) = node.set_parameters([Parameter(name, Parameter.Type.NOT_SET)])
        assert not result.successful
        assert node.has_parameter(name)
    for name in READ_ONLY:
        (result,) = node.set_parameters([node.get_parameter(name)])
        assert not result.successful
        assert 'read-only' in result.reason
    assert changes == []


def test_start_error_names_all_that_is_wrong(plain_node):
    node = plain_node(
        publish_rate=-1.0, interpolation='cubic', gravity=[0.0], max_samples=2.5
    )
    with pytest.raises(ValueError) as error:
        Parameters(node, NodeSettings)
    for part in (
        'publish_rate is -1.0, expected a number from 0.01 to 10000',
        "interpolation is 'cubic', expected one of 'spline', 'jtc', 'jtc_upsampled'",
        'gravity is [0.0], expected three finite numbers',
        'max_samples is 2.5, expected a whole number from 2 to 10000000',
    ):
        assert part in str(error.value)


def test_long_values_are_cut_in_messages():
    (problem,) = find_problems(NodeSettings, {'interpolation': 'x' * 10_000})
    assert len(problem) < 250
    assert 'spline' in problem


# Combinations


def test_values_that_contradict_each_other_are_refused_together(plain_node):
    node = plain_node()
    parameters = Parameters(node, NodeSettings)
    center = parameter('wrench.tool_center_of_mass', [0.0, 0.0, 0.05])
    (result,) = node.set_parameters([center])
    assert not result.successful
    assert 'wrench.tool_mass is 0' in result.reason
    assert node.set_parameters_atomically(
        [center, parameter('wrench.tool_mass', 0.7)]
    ).successful
    assert parameters.settings.wrench.tool_center_of_mass == (0.0, 0.0, 0.05)
    (result,) = node.set_parameters([parameter('wrench.tool_mass', 0.0)])
    assert not result.successful
    assert parameters.settings.wrench.tool_mass == 0.7


def test_contradiction_at_the_start_is_an_error(plain_node):
    with pytest.raises(ValueError, match='wrench.tool_mass is 0'):
        Parameters(plain_node(wrench__tool_center_of_mass=[0.0, 0.0, 0.05]), NodeSettings)


def test_owner_is_asked_about_the_whole_new_combination(plain_node):
    asked = []

    def check(settings):
        asked.append((settings.wrench.link, settings.publish_rate))
        if settings.wrench.link not in ('', 'tool'):
            raise WrenchError(f'no link {settings.wrench.link}')

    node = plain_node(publish_rate=20.0)
    parameters = Parameters(node, NodeSettings, check=check)
    results = [
        node.set_parameters_atomically([parameter('wrench.link', link)])
        for link in ('hand', 'tool')
    ]
    assert asked == [('hand', 20.0), ('tool', 20.0)]
    assert [(result.successful, result.reason) for result in results] == [
        (False, 'no link hand'),
        (True, ''),
    ]
    assert parameters.settings.wrench.link == 'tool'


def test_one_invalid_value_refuses_all_that_come_with_it(plain_node):
    node = plain_node()
    parameters = Parameters(node, NodeSettings)
    before = parameters.settings
    result = node.set_parameters_atomically(
        [parameter('publish_rate', 20.0), parameter('interpolation', 'none')]
    )
    assert not result.successful
    assert parameters.settings is before
    assert node.get_parameter('publish_rate').value == 100.0


# Changes


@pytest.fixture(params=['with post-set callbacks', 'without, as before Iron'])
def distribution(request, monkeypatch):
    if request.param.startswith('without'):
        monkeypatch.delattr(Node, 'add_post_set_parameters_callback')


def test_change_is_announced_once_with_what_was_before(plain_node, distribution):
    node = plain_node()
    changes = []
    parameters = Parameters(node, NodeSettings, lambda *change: changes.append(change))
    start = parameters.settings
    node.set_parameters_atomically(
        [parameter('publish_rate', 20.0), parameter('estimator.delay', 0.5)]
    )
    ((before, after),) = changes
    assert before is start
    assert after is parameters.settings
    assert (after.publish_rate, after.estimator.delay) == (20.0, 0.5)
    assert (before.publish_rate, before.estimator.delay) == (100.0, 0.1)
    # What is set to the value that it has is no change.
    node.set_parameters([parameter('publish_rate', 20.0)])
    assert len(changes) == 1


@pytest.mark.parametrize('asked', ['before', 'after'])
def test_settings_stay_if_another_callback_objects(plain_node, distribution, asked):
    def object_to(_):
        return SetParametersResult(successful=not objecting, reason='not today')

    node = plain_node()
    changes, objecting = [], False
    # The callback that is added last is asked first.
    if asked == 'after' and hasattr(node, 'add_post_set_parameters_callback'):
        node.add_on_set_parameters_callback(object_to)
    parameters = Parameters(node, NodeSettings, lambda *change: changes.append(change))
    if asked == 'before':
        node.add_on_set_parameters_callback(object_to)
    elif not hasattr(node, 'add_post_set_parameters_callback'):
        pytest.skip('before Iron, ours has to be added first')
    before, objecting = parameters.settings, True
    (result,) = node.set_parameters([parameter('publish_rate', 20.0)])
    assert result.reason == 'not today'
    assert parameters.settings is before
    assert changes == []


def test_parameters_of_others_are_left_alone(plain_node):
    node = plain_node()
    parameters = Parameters(node, NodeSettings)
    before = parameters.settings
    node.declare_parameter('other', 1)
    (result,) = node.set_parameters([parameter('other', 2)])
    assert result.successful
    assert parameters.settings is before


def test_whoever_looks_sees_values_that_belong_together(plain_node):
    node = plain_node(publish_rate=1.0, stop_duration=1.0)
    parameters = Parameters(node, NodeSettings)
    seen, end = [], threading.Event()

    def look():
        while not end.is_set():
            settings = parameters.settings
            seen.append((settings.publish_rate, settings.stop_duration))

    looking = threading.Thread(target=look)
    looking.start()
    for value in range(2, 50):
        both = [parameter('publish_rate', value), parameter('stop_duration', value)]
        assert node.set_parameters_atomically(both).successful
    end.set()
    looking.join()
    assert seen
    assert all(rate == duration for rate, duration in seen)


def test_settings_cannot_be_changed_and_can_be_sent_to_another_process(plain_node, model):
    parameters = Parameters(plain_node(limits__elbow__jerk=7.0), NodeSettings)
    limits_of(parameters, model)
    settings = parameters.settings
    for holder in (settings, settings.wrench, settings.estimator):
        with pytest.raises(dataclasses.FrozenInstanceError):
            holder.delay = 1.0
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert hash(settings) == hash(pickle.loads(pickle.dumps(settings)))


# Limits


def test_limits_are_declared_with_the_robot_and_can_be_changed(plain_node, model):
    node = plain_node(limits__elbow__jerk=7.0)
    changes = []
    parameters = Parameters(node, NodeSettings, lambda *change: changes.append(change))
    np.testing.assert_array_equal(limits_of(parameters, model).jerk, [math.inf, 7.0])
    assert changes == []
    (descriptor,) = node.describe_parameters(['limits.shoulder.effort_dot'])
    assert 'N m/s' in descriptor.description
    assert descriptor.additional_constraints == 'a number from 1e-09 to inf'
    node.set_parameters_atomically(
        [
            parameter('limits.shoulder.effort_dot', 3),
            parameter('limits.elbow.jerk', math.inf),
        ]
    )
    ((_, after),) = changes
    limits = after.limits_of(model)
    np.testing.assert_array_equal(limits.effort_dot, [3.0, math.inf])
    np.testing.assert_array_equal(limits.jerk, [math.inf, math.inf])


def test_numbers_of_joints_are_checked_before_there_is_a_robot(plain_node):
    node = plain_node(
        limits__elbow__jerk=-7.0,
        limits__shoulder__acceleration='fast',
        friction__elbow__viscous=-1.0,
    )
    with pytest.raises(ValueError) as error:
        Parameters(node, NodeSettings)
    assert 'limits.elbow.jerk is -7.0' in str(error.value)
    assert "limits.shoulder.acceleration is 'fast'" in str(error.value)
    assert 'friction.elbow.viscous is -1.0, expected a number from 0' in str(error.value)


def test_names_of_joints_may_contain_dots(plain_node):
    dotted = RobotModel.from_urdf(robots.TWO_LINK.replace('elbow', 'arm.left.elbow'))
    parameters = Parameters(plain_node(**{'limits.arm.left.elbow.jerk': 5.0}), NodeSettings)
    np.testing.assert_array_equal(limits_of(parameters, dotted).jerk, [math.inf, 5.0])


# Names


def test_unknown_names_are_told_with_what_was_meant(plain_node, model):
    node = plain_node(
        publish_rat=1.0,
        estimator__foo=1.0,
        something=2,
        limits__elbow__jrk=1.0,
        publish_rate=2.0,
        limits__elbow__jerk=1.0,
        use_sim_time=False,
        robot_description='',
    )
    parameters = Parameters(node, NodeSettings)
    node.declare_parameter('robot_description', '')
    limits_of(parameters, model)
    foo, rate, something = parameters.unknown()
    assert foo.startswith('estimator.foo (')
    assert 'estimator.bandwidth' in foo
    assert rate == 'publish_rat (did you mean publish_rate?)'
    assert something == 'something'
    assert parameters.unused('limits') == ['limits.elbow.jrk']


def test_node_warns_of_unknown_names(hodyn_node, capfd):
    hodyn_node('-p', 'publish_rat:=3.0', '-p', 'publish_rate:=3.0')
    output = capfd.readouterr().err
    assert 'publish_rat (did you mean publish_rate?)' in output
    assert output.count('Unknown parameters') == 1


@pytest.fixture
def refusals():
    """Refusals of parameters, each alone and all at once, and a node to ask for them."""
    harness = Harness()

    def ask(*names):
        values = [Parameter(name, value=1.0).to_parameter_msg() for name in names]
        found = []
        for kind, ending in ((SetParameters, ''), (SetParametersAtomically, '_atomically')):
            request = kind.Request(parameters=values)
            answer = harness.ask(kind, f'hodyn_node/set_parameters{ending}', request)
            found += answer.results if kind is SetParameters else [answer.result]
        assert not any(result.successful for result in found)
        return [result.reason for result in found]

    yield harness, ask
    harness.close()


def test_setting_an_unknown_parameter_says_which_and_what_exists(refusals):
    harness, ask = refusals
    names = [
        'limits.wrist.jerk',
        'actuators.elbow.type',
        'publish_rat',
        'xyz',
        'estimator.foo',
    ]
    limits, actuators, rate, xyz, foo, together = ask(*names)
    assert 'limits.wrist.jerk (expected limits.<joint>.<key> of the robot in use' in limits
    assert 'none exist' in limits, 'there is no robot yet'
    assert 'actuators.elbow.type (expected actuators.<joint>.<key>' in actuators
    assert 'as given at the start; none exist' in actuators
    assert 'publish_rat (did you mean publish_rate?)' in rate
    assert xyz.endswith(': xyz')
    assert 'estimator.bandwidth' in foo
    assert all(name in together for name in names)
    harness.describe_and_wait(robots.TWO_LINK)
    for reason in ask('limits.wrist.jerk'):
        for joint in ('shoulder', 'elbow'):
            for quantity in ('acceleration', 'jerk', 'effort_dot'):
                assert f'limits.{joint}.{quantity}' in reason
    # A description that is refused together with another parameter is not used.
    heavier = robots.HEAVIER_TWO_LINK
    assert not harness.set(robot_description=heavier, publish_rate=-1.0).successful
    model = dict_of(harness.status('model', lambda s: s.message == 'model loaded'))
    assert model['in preparation'] == 'no'
    assert harness.node.robot.description == robots.TWO_LINK
    assert harness.set(robot_description=heavier, publish_rate=50.0).successful
    harness.wait_until_in_use(heavier)


def test_one_unknown_parameter_of_several_changes_nothing(hodyn_node):
    node = hodyn_node()
    values = [Parameter('publish_rate', value=7.0), Parameter('publish_rat', value=7.0)]
    with pytest.raises(ParameterNotDeclaredException, match='publish_rat .did you mean'):
        node.set_parameters_atomically(values)
    assert node.get_parameter('publish_rate').value == 100.0


# Files


@pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')  # of the iiwa
@pytest.mark.parametrize('name', ['panda', 'fr3', 'iiwa14', 'ur5e', 'ur10e', 'generic'])
def test_parameter_file_is_taken_by_the_node(hodyn_node, capfd, name):
    path = share_file(f'config/{name}.yaml')
    node = hodyn_node('--params-file', str(path))
    given = parameters_in(path)
    assert given
    for key, value in declared_by(node).items():
        if key in given:
            assert list(np.atleast_1d(value)) == list(np.atleast_1d(given.pop(key))), key
    if name == 'generic':
        assert not given
    else:
        robot = RobotModel.from_urdf(share_file(f'urdf/{name}.urdf'))
        limits = limits_of(node.parameters, robot)
        assert node.parameters.unused('limits') == []
        for key, value in given.items():
            _, joint, quantity = key.split('.')
            assert getattr(limits, quantity)[robot.joint_names.index(joint)] == value
        assert np.all(np.isfinite(limits.acceleration)) or name.startswith('ur')
    assert 'Unknown parameters' not in capfd.readouterr().err


@pytest.mark.parametrize('name', ['panda', 'iiwa14', 'generic', 'panda_sea'])
def test_command_line_wins_over_a_shipped_file(name):
    path = share_file(f'config/{name}.yaml')
    for section, content in yaml.safe_load(path.read_text()).items():
        node_name = section.rpartition('/')[2].replace('**', 'hodyn_node')
        key = next(iter(flat(content['ros__parameters'])))
        context = Context()
        arguments = ['--ros-args', '--params-file', str(path), '-p', f'{key}:=0.125']
        rclpy.init(args=arguments, context=context, domain_id=next_domain())
        node = Node(
            node_name, context=context, automatically_declare_parameters_from_overrides=True
        )
        value = node.get_parameter(key).value
        node.destroy_node()
        rclpy.shutdown(context=context)
        assert value == 0.125, section


def test_generic_file_holds_every_parameter_with_its_default(hodyn_node):
    declared = declared_by(hodyn_node())
    written = parameters_in(share_file('config/generic.yaml'))
    assert set(written) == set(declared)
    for name, value in declared.items():
        expected = written[name]
        assert type(value)(expected) == value, name
        assert isinstance(expected, (list, type(value))), name


def test_shipped_file_and_page_are_made_from_the_table():
    made = runpy.run_path(str(ROOT / 'doc' / 'make_parameters.py'))
    page = (ROOT / 'doc' / 'parameters.rst').read_text(encoding='utf-8')
    assert made['generic']() == share_file('config/generic.yaml').read_text(
        encoding='utf-8'
    )
    assert made['page'](page) == page
    for name, kind in made['INCLUDES'].items():
        text = (ROOT / 'doc' / name).read_text(encoding='utf-8')
        assert text == made['include'](kind), (
            f'run python doc/make_parameters.py for {name}'
        )


def test_documentation_lists_every_parameter_with_type_default_and_range(hodyn_node):
    text = (ROOT / 'doc' / 'parameters.rst').read_text(encoding='utf-8')
    rows = {
        name: tuple(rest)
        for name, *rest in re.findall(
            r'^``([\w.]+)`` \((.+?) = ``(.*?)``(?:; (.*))?\)\n {3}\S', text, re.MULTILINE
        )
    }
    node = hodyn_node()
    declared = declared_by(node)
    assert set(rows) == set(declared)
    types = {bool: 'bool', int: 'int', float: 'double', str: 'string'}
    for name, value in declared.items():
        kind, default, bounds = rows[name]
        (descriptor,) = node.describe_parameters([name])
        is_text = isinstance(np.atleast_1d(value)[0], str)
        expected = types.get(type(value), 'string[]' if is_text else 'double[3]')
        assert kind == expected + (', fixed' if descriptor.read_only else ''), name
        written = yaml.safe_load(default) if default != "''" else ''
        assert list(np.atleast_1d(written)) == list(np.atleast_1d(value)), name
        ranges = [*descriptor.floating_point_range, *descriptor.integer_range]
        if ranges:
            low, high = (float(bound) for bound in bounds.split(' to '))
            assert (low, high) == (ranges[0].from_value, ranges[0].to_value), name
        elif descriptor.additional_constraints.startswith('one of'):
            assert bounds.replace('``', "'") in descriptor.additional_constraints, name


def test_documentation_lists_every_key_of_actuators_with_its_unit_and_types():
    text = (ROOT / 'doc' / 'parameters.rst').read_text(encoding='utf-8')
    rows = re.findall(
        r'^``actuators\.<joint>\.(\w+)`` \((.+); ([\w, ]+)\)\n {3}\S', text, re.MULTILINE
    )
    everywhere = KEYS[0].types
    expected = [
        (
            key.name,
            key.kind + (f' [{key.unit}]' if key.unit else ''),
            'all' if key.types == everywhere else ', '.join(key.types),
        )
        for key in KEYS
    ]
    assert everywhere == ('rigid', 'sea', 'vsa')
    assert rows == expected


# Files that identification writes


WRITTEN = RobotModel.from_urdf('two_link')


def made_from(path, context):
    node = Node(
        'reader',
        context=context,
        cli_args=['--ros-args', '--params-file', str(path)],
        automatically_declare_parameters_from_overrides=True,
    )
    try:
        parameters = Parameters(node, NodeSettings)
        parameters.declare_joints(WRITTEN.joint_names)
        return parameters.settings
    finally:
        node.destroy_node()


@pytest.mark.parametrize('drive', DRIVES, ids=lambda drive: str(drive)[:60])
def test_a_node_has_the_friction_and_the_actuators_that_are_written(
    drive, context, tmp_path
):
    path = tmp_path / 'robot.yaml'
    model = WRITTEN.with_friction(FRICTION)
    actuators = actuator_config(Actuators(model, {'elbow': drive}))
    write_parameters(path, {'friction': friction_config(model), 'actuators': actuators})
    settings = made_from(path, context)
    assert settings.friction_laws() == FRICTION
    assert drives_of(model, settings.actuators).actuators['elbow'] == drive


def test_friction_that_is_not_complete_at_the_start_is_refused(context, tmp_path):
    path = tmp_path / 'robot.yaml'
    write_parameters(path, {'friction': {'elbow': {'phi1': 0.5, 'phi2': 5.0}}})
    with pytest.raises(
        ValueError, match='friction.elbow: phi3 must be set, too, with phi1, phi2'
    ):
        made_from(path, context)
