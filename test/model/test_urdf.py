"""Reading robot descriptions: what is understood, what is assumed and what is refused."""

import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from support import robots
from support.robots import joint, link, robot

from hodyn_ros import (
    ModelWarning,
    RobotModel,
)
from hodyn_ros.errors import ModelError
from hodyn_ros.kinematics import inverse_kinematics


def test_encoding_declaration_of_decoded_text_does_not_matter():
    text = robots.TWO_LINK.replace('version="1.0"', 'version="1.0" encoding="ISO-8859-1"')
    text = text.replace('name="arm"', 'name="bras étendu"')
    assert RobotModel.from_urdf(text).name == 'bras étendu'
    assert RobotModel.from_urdf(text.encode('latin-1')).name == 'bras étendu'


def test_visuals_transmissions_and_unknown_elements_are_not_looked_at(capfd):
    text = robots.TWO_LINK.replace(
        '</robot>',
        '<transmission name="t"><joint name="shoulder"/></transmission><gazebo reference="x"/>'
        '<ros2_control name="r" type="system"><joint name="elbow"/></ros2_control>'
        '<material name="blue"/></robot>',
    ).replace(
        '<link name="tool"/>', '<link name="tool"><visual><nonsense/></visual></link>'
    )
    assert RobotModel.from_urdf(text).joint_names == ('shoulder', 'elbow')
    assert capfd.readouterr() == ('', '')


def test_axis_is_normalised_with_a_warning():
    with pytest.warns(ModelWarning, match='not of unit length'):
        model = RobotModel.from_urdf(
            robot(link('a'), link('b'), joint('x', 'a', 'b', axis='0 3 4'))
        )
    np.testing.assert_allclose(model.X[0], [0, 0.6, 0.8, 0, 0, 0])


TREE = robot(
    link('base'),
    *(link(name) for name in ('arm', 'hand', 'camera', 'leg', 'wheel')),
    joint('x', 'base', 'arm'),
    joint('f', 'arm', 'camera', kind='fixed'),
    joint('y', 'arm', 'hand'),
    joint('z', 'base', 'leg'),
    joint('w', 'leg', 'wheel', kind='floating'),
)


def test_chain_keeps_rigid_attachments_and_leaves_out_moving_branches_with_a_warning():
    with pytest.warns(ModelWarning, match="'z' lies outside the chain .* 2 kg"):
        model = RobotModel.from_urdf(TREE, tip_link='hand')
    assert model.joint_names == ('x', 'y')
    assert model.tip_link == 'hand'
    assert model.M_body[0, 3, 3] == pytest.approx(2.0)
    assert 'leg' not in model.links


def test_unsupported_joint_matters_only_inside_the_chain():
    with pytest.raises(ModelError, match="'w' is of type 'floating'"):
        RobotModel.from_urdf(TREE)
    with pytest.raises(ModelError, match="'w' is of type 'floating'"):
        RobotModel.from_urdf(TREE, tip_link='wheel')
    with pytest.warns(ModelWarning):
        RobotModel.from_urdf(TREE.replace('"floating"', '"ball"'), tip_link='hand')


def test_massless_last_link_is_legal_with_a_warning():
    with pytest.warns(ModelWarning, match="'x' moves no inertia"):
        RobotModel.from_urdf(robot(link('a'), '<link name="b"/>', joint('x', 'a', 'b')))


def test_inertia_beyond_the_triangle_inequality_is_used_with_a_warning():
    inertia = 'ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.03"'
    with pytest.warns(ModelWarning, match='triangle inequality'):
        model = RobotModel.from_urdf(
            robot(link('a'), link('b', 1.0, inertia), joint('x', 'a', 'b'))
        )
    assert model.warnings


@pytest.mark.parametrize('mass', ['-1.0', 'nan'])
def test_bad_inertia_of_a_link_that_does_not_move_is_left_alone_with_a_warning(mass):
    text = robot(
        link('a', mass),
        link('b'),
        link('c', mass),
        joint('x', 'a', 'b'),
        joint('f', 'a', 'c', kind='fixed'),
    )
    with pytest.warns(ModelWarning, match='as long as the base is at rest'):
        model = RobotModel.from_urdf(text)
    assert len(model.warnings) == 2
    assert np.all(np.isfinite(model.M_body))


A, B = link('a'), link('b')
X = joint('x', 'a', 'b')


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('text', 'reason'),
    [
        ('<robot name="r"/><robot name="s"/>', 'not XML'),
        (b'\xff\xfe\x00', 'not XML'),
        ('<mujoco/>', r'it is an MJCF, which RobotModel\.from_mjcf reads'),
        (
            '<robot name="r" xmlns:xacro="http://ros.org/xacro"><xacro:include filename="x"/>'
            '</robot>',
            'xacro',
        ),
        (robot(), 'no links'),
        (robot(A), 'no moving joints'),
        (robot(A, B, joint('x', 'a', 'b', kind='fixed')), 'no moving joints'),
        (robot(A, B, joint('x', 'c', 'b')), "parent link 'c', which does not exist"),
        (robot(A, B, link('c'), X, joint('x', 'b', 'c')), "two joints 'x'"),
        (
            robot(A, B, link('c'), X, joint('y', 'a', 'c'), joint('z', 'b', 'c')),
            'Joint loop',
        ),
        (
            robot(
                A, B, link('c'), link('d'), X, joint('y', 'c', 'd'), joint('z', 'd', 'c')
            ),
            'Joint loop',
        ),
        (robot(A, B, joint('x', 'a', 'a')), 'Joint loop|not connected'),
        (robot(A, B, joint('x', 'a', 'b', kind='planar')), 'planar'),
        (robot(A, B, joint('x', 'a', 'b', axis='0 nan 0')), 'not finite'),
        (robot(A, B, joint('x', 'a', 'b', axis='0 1')), "URDF: joint 'x': <axis>.*'0 1'"),
        (robot(A, B, X.replace(' type="revolute"', '')), 'not a valid URDF'),
        (
            robot(A, B, X.replace('<child link="b"/>', '')),
            'valid URDF.*<joint> has no <child>',
        ),
        (robot(A, B, X.replace('<child', '<child link="b"/><child')), 'more than once'),
        (
            robot(A, B.replace('<mass value="1.0"/>', ''), X),
            "link 'b': <inertial> has no <mass>",
        ),
        (robot(A, B, X.replace('effort="50"', '')), "joint 'x': <limit> has no effort"),
        (robot(A, B.replace('</link>', '<inertial/></link>'), X), 'more than once'),
        (robot(A, B, X.replace('effort="50"', 'effort="-50"')), 'negative'),
        (
            robot(A, B, joint('x', 'a', 'b', extra='<mimic joint="q"/>')),
            "mimics 'q', which does not exist",
        ),
        (
            robot(
                A,
                B,
                link('c'),
                joint('x', 'a', 'b', extra='<mimic joint="y"/>'),
                joint('y', 'b', 'c', extra='<mimic joint="x"/>'),
            ),
            'follow each other',
        ),
    ],
)
def test_bad_description_is_refused_with_the_reason(text, reason):
    with pytest.raises(ModelError, match=reason):
        RobotModel.from_urdf(text)


def test_chain_that_cuts_a_mimic_joint_from_its_leader_is_refused():
    text = robot(
        *(link(name) for name in 'abc'),
        joint('left', 'a', 'b'),
        joint('right', 'a', 'c', extra='<mimic joint="left" multiplier="-1"/>'),
    )
    with pytest.raises(ModelError, match="'right' mimics 'left'"):
        RobotModel.from_urdf(text, tip_link='c')


def test_mimic_joint_may_follow_its_leader_through_a_joint_outside_the_chain():
    text = robot(
        *(link(name) for name in 'abcd'),
        joint('first', 'a', 'b'),
        joint('aside', 'a', 'd', extra='<mimic joint="first" multiplier="2"/>'),
        joint('second', 'b', 'c', extra='<mimic joint="aside" multiplier="3"/>'),
    )
    with pytest.warns(ModelWarning, match='aside'):
        model = RobotModel.from_urdf(text, tip_link='c')
    assert model.joint_names == ('first',)
    np.testing.assert_array_equal(model.multiplier, [1, 6])


def test_names_are_those_of_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert RobotModel.from_urdf('panda').joint_names[-1] == 'panda_joint7'
    index = tmp_path / 'share' / 'ament_index' / 'resource_index' / 'packages'
    index.mkdir(parents=True)
    (index / 'arm_description').touch()
    (tmp_path / 'share' / 'arm_description').mkdir()
    (tmp_path / 'share' / 'arm_description' / 'arm.urdf').write_text(robots.TWO_LINK)
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path))
    for name in ('arm_description', 'ros:arm_description', 'arm_description/arm.urdf'):
        assert RobotModel.from_urdf(name).name == 'arm'
    # A path-like object is no name.
    with pytest.raises(ModelError, match='not a readable file'):
        RobotModel.from_urdf(Path('panda'))


def test_arguments_in_another_place_are_told():
    with pytest.raises(ModelError, match=r"RobotModel\.from_urdf\('arm.urdf'\) reads one"):
        RobotModel('arm.urdf')
    panda = RobotModel.from_urdf('panda')
    with pytest.raises(
        ModelError, match='link is of type ndarray, expected the name of one'
    ):
        inverse_kinematics(panda, 'panda_link8', np.eye(4))


def test_xacro_files_are_expanded_and_only_they_take_arguments(tmp_path):
    path = tmp_path / 'arm.urdf.xacro'
    path.write_text(
        robots.TWO_LINK.replace(
            '<robot ', '<robot xmlns:xacro="http://www.ros.org/wiki/xacro" '
        )
        .replace(
            '<link name="base"/>', '<xacro:arg name="m" default="1"/><link name="base"/>'
        )
        .replace('value="0.7"', 'value="${2 * $(arg m)}"')
    )
    if find_spec('xacro') is None:
        with pytest.raises(ModelError, match='pip install xacro'):
            RobotModel.from_urdf(path)
    else:
        model = RobotModel.from_urdf(path, xacro_arguments={'m': '1.5'})
        assert model.M_body[1, 5, 5] == 3.0
    for given in ('two_link', robots.TWO_LINK):
        with pytest.raises(ModelError, match='xacro file'):
            RobotModel.from_urdf(given, xacro_arguments={'m': '1.5'})


def test_limits_of_zero_are_remarked_as_perhaps_not_set():
    text = robots.TWO_LINK.replace('velocity="3"', 'velocity="0"')
    with pytest.warns(
        ModelWarning, match='velocity limit of shoulder, elbow is 0.*not set'
    ):
        model = RobotModel.from_urdf(text)
    np.testing.assert_array_equal(model.limits.velocity, [0.0, 0.0])


def test_a_description_without_masses_is_one_remark():
    parts = [link('a'), *(f'<link name="{name}"/>' for name in 'bcd')]
    parts += [joint('x', 'a', 'b'), joint('y', 'b', 'c'), joint('z', 'c', 'd')]
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        model = RobotModel.from_urdf(robot(*parts))
    (remark,) = [text for text in model.warnings if 'inertia' in text]
    assert remark.startswith("3 of 3 joints move no inertia: 'x', 'y', 'z'.")


def test_a_number_that_ends_with_a_line_break_counts_and_is_remarked():
    broken = robots.TWO_LINK.replace('value="0.7"', 'value="0.7\n"')
    assert broken != robots.TWO_LINK
    with pytest.warns(ModelWarning, match='value="0.7" ends with a line break.*urdfdom'):
        model = RobotModel.from_urdf(broken)
    expected = RobotModel.from_urdf(robots.TWO_LINK)
    np.testing.assert_array_equal(model.M_body, expected.M_body)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        RobotModel.from_urdf(robots.TWO_LINK.replace('>', '>\n'))


def test_a_package_that_xacro_cannot_find_without_ros_is_explained(tmp_path, monkeypatch):
    (tmp_path / 'xacro.py').write_text(
        'def main():\n    raise SystemExit("no such package")\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv('PYTHONPATH', str(tmp_path))
    monkeypatch.setitem(sys.modules, 'ament_index_python', None)
    path = tmp_path / 'arm.urdf.xacro'
    path.write_text(
        '<robot name="a"><xacro:include filename="$(find arm)/b.xacro"/></robot>'
    )
    with pytest.raises(ModelError, match=r'no such package.*\$\(find PACKAGE\) needs ROS'):
        RobotModel.from_urdf(path)
