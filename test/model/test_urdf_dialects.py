"""Dialects of URDF: what is read of them, and what is said of the rest."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support import robots
from support.robots import TWO_LINK, joint, link, robot

from hodyn_ros import ModelWarning, RobotModel, inverse_dynamics, to_urdf
from hodyn_ros.errors import ModelError
from hodyn_ros.model import motion_limits

MOTION = np.random.default_rng(3).normal(size=(5, 2))
QUATERNION = Rotation.from_euler('xyz', [0.1, 0.0, 0.2]).as_quat().tolist()  # as in `joint`
RPY = 'rpy="0.1 0 0.2"'
QUAT = f'quat_xyzw="{" ".join(map(repr, QUATERNION))}"'
LIMIT = '<limit lower="-2" upper="2" velocity="3" effort="50"'


def in_version(version, *changes):
    """Two links as of a version of URDF, with texts in place of others."""
    text = TWO_LINK.replace(
        '<robot ', f'<robot version="{version}" ' if version else '<robot '
    )
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def inside(element, tag='</robot>'):
    """Two links with one element more at the end of the robot, or of the first joint or link."""
    return TWO_LINK.replace(tag, f'{element}{tag}', 1)


QUIET = {
    'quaternions': in_version('1.1', (RPY, QUAT)),
    'longer quaternions': in_version(
        '1.1',
        (RPY, 'quat_xyzw="{} {} {} {}"'.format(*(-1.0005 * value for value in QUATERNION))),
    ),
    'both rotations': in_version('1.1', (RPY, f'{RPY} {QUAT}')),
    'limits of 1.2': in_version('1.2', (LIMIT, f'{LIMIT} acceleration="9" jerk="80"')),
    'optional limits of 1.2': in_version('1.2', (' velocity="3" effort="50"', '')),
    'independent': TWO_LINK.replace(
        'type="revolute"', 'type="revolute" independent="true"'
    ),
    'default namespace': TWO_LINK.replace('<robot ', '<robot xmlns="http://www.ros.org" '),
    'simulators': inside(
        '<gazebo reference="upper"><mu1>0.2</mu1></gazebo><mujoco><compiler/></mujoco>'
        '<gazebo><joint name="fix" type="fixed"><parent>world</parent></joint></gazebo>'
        '<transmission name="t"><joint name="elbow"/></transmission><!-- loop -->'
    ),
    'safety controllers': inside(
        '<safety_controller k_velocity="1"/><calibration/>', '</joint>'
    ),
}


@pytest.mark.every_case
@pytest.mark.parametrize('dialect', QUIET)
@pytest.mark.filterwarnings('error')
def test_descriptions_that_differ_in_dialect_give_the_same_torques(dialect):
    expected = inverse_dynamics(RobotModel.from_urdf(TWO_LINK), MOTION)
    found = inverse_dynamics(RobotModel.from_urdf(QUIET[dialect]), MOTION)
    np.testing.assert_allclose(
        found, expected, rtol=1e-14, atol=1e-14 * np.abs(expected).max()
    )


@pytest.mark.filterwarnings('error')
def test_quaternions_of_joints_and_inertias_are_those_of_pinocchio():
    pin = pytest.importorskip('pinocchio', reason='Pinocchio (PyPI: pin) is the reference')
    turned = f'<origin xyz="0.2 0.01 0" {QUAT}/><mass'
    text = in_version('1.1', (RPY, QUAT), ('<origin xyz="0.2 0.01 0"/><mass', turned))
    reference = pin.buildModelFromXML(text)
    expected = pin.rnea(reference, reference.createData(), *MOTION[:3])
    found = inverse_dynamics(RobotModel.from_urdf(text), MOTION[:3])[0]
    np.testing.assert_allclose(found, expected, rtol=1e-14)


DRAKE = 'xmlns:drake="http://drake.mit.edu"'
# What is said of two links with a change.
SAID = {
    'dependent joint': (
        TWO_LINK.replace('name="elbow"', 'name="elbow" independent="false"'),
        'states that shoulder are independent joints, but not how',
    ),
    'Drake bushing': (
        inside(f'<drake:linear_bushing_rpy {DRAKE}/>'),
        "'without a name': <linear_bushing_rpy> in <robot> is no element of URDF",
    ),
    'spring of a joint': (
        inside('<stiffness value="3"/>', '</joint>'),
        "'shoulder': <stiffness> in <joint> is no",
    ),
    'limit': (
        in_version('', (LIMIT, f'{LIMIT} snap="3"')),
        "Joints 'shoulder', 'elbow', 'flange': <limit> has snap, which is not read",
    ),
    'version': (
        in_version('1.3'),
        "'arm': version '1.3' of URDF is none of 1.0, 1.1, 1.2 ",
    ),
    'jerk of 1.1': (
        in_version('1.1', (LIMIT, f'{LIMIT} jerk="9"')),
        'jerk of <limit> is .* below version 1.2',
    ),
    'slow braking': (
        in_version('1.2', (LIMIT, f'{LIMIT} acceleration="9" deceleration="5"')),
        'smaller holds',
    ),
    'no limit': (
        robot(link('a'), link('b'), joint('x', 'a', 'b').replace(f'{LIMIT}/>', '')),
        "Joint 'x': a revolute joint without <limit>",
    ),
    'no range': (in_version('', ('lower="-2" upper="2" ', '')), 'neither lower nor upper'),
    'half a range': (
        in_version('', ('lower="-2" ', '')),
        '<limit> has no lower, which is 0',
    ),
}


@pytest.mark.every_case
@pytest.mark.parametrize('dialect', SAID)
def test_what_is_not_read_is_said_once_for_each_kind(dialect):
    text, said = SAID[dialect]
    with pytest.warns(ModelWarning, match=said):
        model = RobotModel.from_urdf(text)
    assert len(model.warnings) == 1


XACRO = 'xmlns:xacro="http://www.ros.org/wiki/xacro"'
# Why two links with a change are refused.
REFUSED = {
    'two rotations': (
        in_version('1.1', (RPY, f'rpy="0.1 0 0.3" {QUAT}')),
        'different rotations',
    ),
    'axis': (
        in_version('', ('axis xyz', 'axis expressed_in="base" xyz')),
        'has expressed_in',
    ),
    'mimic': (
        inside('<mimic joint="elbow" reference="1"/>', '</joint>'),
        '<mimic> has reference',
    ),
    'joint of Drake': (
        inside(f'<drake:joint {DRAKE} name="ball" type="ball"/>'),
        "<joint name='ball'> in <robot> belongs to the namespace http://drake.mit.edu",
    ),
    'macros': (
        inside(f'<xacro:arm {XACRO} prefix="a"/>'),
        'which holds <xacro:arm>; run it',
    ),
    'expressions': (
        in_version('', ('"0.1 0 0.2"', '"0 0 ${yaw}"')),
        r'holds 0 0 \$\{yaw\}; run',
    ),
    'only a macro': (f'<xacro:macro {XACRO} name="m"/>', 'run it through xacro first'),
}


@pytest.mark.every_case
@pytest.mark.parametrize('dialect', REFUSED)
def test_what_changes_the_dynamics_and_is_not_known_is_refused(dialect):
    text, reason = REFUSED[dialect]
    with pytest.raises(ModelError, match=reason):
        RobotModel.from_urdf(text)


@pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')
def test_remarks_name_the_first_and_count_the_rest():
    names = [f'j{k}' for k in range(6)]
    links = [link(f'l{k}') for k in range(7)]
    joints = [
        joint(name, f'l{k}', f'l{k + 1}', axis='0 0 2') for k, name in enumerate(names)
    ]
    model = RobotModel.from_urdf(robot(*links, *joints))
    (warning,) = [text for text in model.warnings if 'axis' in text]
    assert warning == (
        "Joints 'j0', 'j1', 'j2' and 3 more: the axis is not of unit length; its direction is "
        'used.'
    )


@pytest.mark.filterwarnings('error')
def test_limits_of_acceleration_and_jerk_are_read_overridden_and_written():
    elbow = joint('elbow', 'upper', 'fore')
    limited = elbow.replace(LIMIT, f'{LIMIT} acceleration="9" deceleration="9" jerk="80"')
    model = RobotModel.from_urdf(in_version('1.2', (elbow, limited)))
    for one in (model, RobotModel.from_urdf(to_urdf(model))):
        np.testing.assert_array_equal(one.limits.acceleration, [np.inf, 9.0])
        np.testing.assert_array_equal(one.limits.jerk, [np.inf, 80.0])
        np.testing.assert_array_equal(one.limits.effort_dot, [np.inf, np.inf])
    limits = motion_limits(model, {'elbow': {'jerk': 90.0, 'acceleration': np.inf}})
    np.testing.assert_array_equal(limits.acceleration, [np.inf, 9.0])
    np.testing.assert_array_equal(limits.jerk, [np.inf, 90.0])
    assert ' version=' not in to_urdf(RobotModel.from_urdf(TWO_LINK))


@pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')
@pytest.mark.parametrize(
    ('given', 'limit'),
    [
        ('acceleration="9" deceleration="5"', 5),
        ('acceleration="5" deceleration="9"', 5),
        ('acceleration="9"', 9),
        ('deceleration="5"', 5),
    ],
)
def test_the_smaller_of_two_limits_of_acceleration_holds(given, limit):
    model = RobotModel.from_urdf(in_version('1.2', (LIMIT, f'{LIMIT} {given}')))
    np.testing.assert_array_equal(model.limits.acceleration, [limit, limit])


@pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')
def test_position_limits_that_are_not_given_are_not_known():
    model = RobotModel.from_urdf(in_version('', ('lower="-2" upper="2" ', '')))
    np.testing.assert_array_equal(model.limits.lower, [-np.inf, -np.inf])
    model = RobotModel.from_urdf(robots.TWO_LINK.replace('lower="-2" ', ''))
    np.testing.assert_array_equal(model.limits.lower, [0.0, 0.0])
