"""Parameters: what is declared, what is refused, and that changes come as a whole."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from rclpy.exceptions import ParameterNotDeclaredException
from rclpy.node import Node
from rclpy.parameter import Parameter
from support import robots
from support.ros_harness import node_maker, own_domain

from hodyn_ros import RobotModel
from hodyn_ros.model.friction import Viscous
from hodyn_ros.resources import share_file
from hodyn_ros.ros.base.node_settings import NodeSettings
from hodyn_ros.ros.base.parameters import Parameters, entries
from hodyn_ros.streams.robot_in_use import Robot

ROOT = Path(__file__).resolve().parents[2]
ENTRIES = entries(NodeSettings)
NAMES = [entry.name for entry in ENTRIES]
READ_ONLY = {
    'base_link',
    'tip_link',
    'gravity',
    'diagnostics_period',
    'allow_impossible_inertia',
    'loops',
    'answer_all',
    'base_motion',
    'speed_scaling',
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


# Values


INVALID = [
    ('publish_rate', 0.0, '0.01'),
    ('publish_rate', 10_001, '10000'),
    ('publish_rate', math.nan, '10000'),
    ('publish_rate', math.inf, '10000'),
    ('publish_rate', True, 'expected a number'),
    ('publish_rate', '50', 'expected a number'),
    ('publish_rate', [50.0], 'expected a number'),
    ('max_trajectory_points', 0, '1'),
    ('max_trajectory_points', 7.0, 'expected a whole number'),
    ('max_trajectory_points', 2**31, '10000000'),
    ('estimator.enabled', 1, 'expected true or false'),
    ('interpolation', 'quintic', "'spline', 'jtc', 'jtc_upsampled'"),
    ('interpolation', '', "'spline', 'jtc', 'jtc_upsampled'"),
    ('wrench_stale_policy', 'Stop', "'stop', 'hold', 'fade'"),
    ('wrench.link', 3, 'expected text'),
    ('wrench.link', ['hand'], 'expected text'),
    ('identification.friction', [1.0], 'a list of names'),
    ('path_tolerance', -1, '0'),
    ('path_tolerance', 10**400, '0'),
]


def test_invalid_value_is_refused_with_the_reason_and_changes_nothing(plain_node):
    node = plain_node()
    changes = []
    parameters = Parameters(node, NodeSettings, lambda *change: changes.append(change))
    before = parameters.settings
    for name, value, reason in INVALID:
        stored = node.get_parameter(name).value
        (result,) = node.set_parameters([parameter(name, value)])
        assert not result.successful
        assert reason in result.reason
        assert parameters.settings is before
        assert node.get_parameter(name).value == stored
    for name in NAMES:
        (result,) = node.set_parameters([Parameter(name, Parameter.Type.NOT_SET)])
        assert not result.successful
        assert node.has_parameter(name)
    for name in READ_ONLY:
        (result,) = node.set_parameters([node.get_parameter(name)])
        assert not result.successful
        assert 'read-only' in result.reason
    assert changes == []


def test_parameters_of_joints_are_those_that_are_given_and_stay(plain_node, model):
    node = plain_node(limits__elbow__jerk=7, friction__elbow__viscous=0.5)
    parameters = Parameters(node, NodeSettings)
    assert parameters.settings.limits_of(model).jerk[1] == 7.0
    assert parameters.settings.friction_laws() == {'elbow': Viscous(0.5)}
    declared = {name for name in declared_by(node) if name.count('.') == 2}
    assert declared == {'limits.elbow.jerk', 'friction.elbow.viscous'}
    (result,) = node.set_parameters([parameter('limits.elbow.jerk', 8.0)])
    assert not result.successful and 'read-only' in result.reason
    assert node.describe_parameter('limits.elbow.jerk').description.endswith(
        'rad/s^3 or m/s^3].'
    )
    with pytest.raises(ParameterNotDeclaredException, match='limits.<joint>.<key> is read'):
        node.set_parameters([parameter('limits.shoulder.jerk', 8.0)])


def test_margins_are_taken_off_limits_and_stay(plain_node, model):
    node = plain_node(limits__elbow__jerk=10.0, margins__jerk='20%', margins__torque=0)
    settings = Parameters(node, NodeSettings).settings
    assert settings.shares() == {'jerk': 0.2, 'effort': 0.0}
    robot = Robot(model, settings.limits_of(model), '').within(settings.shares())
    assert robot.limits.jerk[1] == pytest.approx(8.0)
    (said,) = settings.headroom()
    assert said == 'Limits are those of the robot, less a margin of 20 % (jerk).'
    (result,) = node.set_parameters([parameter('margins.jerk', 0.1)])
    assert not result.successful and 'read-only' in result.reason
    with pytest.raises(ParameterNotDeclaredException, match='margins.<quantity> is read'):
        node.set_parameters([parameter('margins.velocity', 0.1)])
    with pytest.raises(ValueError, match='given twice'):
        Parameters(
            plain_node(margins__torque=0.1, margins__effort=0.1),
            NodeSettings,
        )
    assert NodeSettings().headroom() == ()


@pytest.mark.parametrize(
    ('name', 'value', 'reason'),
    [
        *(
            (
                'limits.elbow.jerk',
                value,
                f'is {value!r}, expected a number from 1e-09 to inf',
            )
            for value in (0.0, -1.0, math.nan, 'high', True)
        ),
        (
            'limits.elbow.jrek',
            7.0,
            'is unknown (did you mean jerk?), expected limits.<joint>',
        ),
        ('limits.jerk', 7.0, 'expected limits.<joint>.<key> with one of acceleration'),
        ('friction.elbow.stribeck', 1.0, 'stribeck_velocity must be set, too'),
        (
            'margins.torque_rat',
            0.2,
            'is unknown (did you mean torque_rate?), expected margins.<quantity>, which is one',
        ),
        ('margins.elbow.torque', 0.2, 'is unknown'),
        ('interpolation', 'splin', "is 'splin' (did you mean spline?), expected one of"),
        ('margins.torque', '120%', 'expected the share of the limit'),
        ('margins.torque', True, 'expected the share of the limit'),
    ],
)
def test_what_cannot_be_said_of_a_joint_is_refused_at_the_start(
    plain_node, name, value, reason
):
    with pytest.raises(ValueError, match=re.escape(reason)):
        Parameters(plain_node(**{name.replace('.', '__'): value}), NodeSettings)


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
        limits = node.settings.limits_of(robot)
        assert not given
        for key, value in parameters_in(path).items():
            if not key.startswith('limits.'):
                continue
            _, joint, quantity = key.split('.')
            assert getattr(limits, quantity)[robot.joint_names.index(joint)] == value
        assert np.all(np.isfinite(limits.acceleration)) or name.startswith('ur')
    assert 'Unknown parameters' not in capfd.readouterr().err
