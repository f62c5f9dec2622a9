"""Which robot is meant by ROBOT, its limits and actuators, and what `hodyn info` tells of it."""

import importlib
import json
import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from support.command_tools import start
from support.robots import OTHER_JOINTS, TWO_LINK

from hodyn_ros import HodynError, friction
from hodyn_ros.cli import run
from hodyn_ros.cli.problem import (
    Given,
    load_model,
    load_problem,
    read_limits,
)
from hodyn_ros.model import sources
from hodyn_ros.model.sources import BUNDLED, find_robot
from hodyn_ros.resources import share_file

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def prefix(tmp_path, monkeypatch):
    """Prefix in which ROS packages are installed, which a test fills."""
    monkeypatch.setenv('AMENT_PREFIX_PATH', f'/nowhere/at/all:{tmp_path}')
    return tmp_path


def install(prefix, package, **files):
    """Install a ROS package with some files."""
    index = prefix / 'share' / 'ament_index' / 'resource_index' / 'packages'
    index.mkdir(parents=True, exist_ok=True)
    (index / package).touch()
    for name, content in files.items():
        path = prefix / 'share' / package / 'urdf' / name.replace('__', '.')
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def joint_names(robot, **options):
    return load_model(Given(robot, **options))[0].joint_names


@pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')
@pytest.mark.parametrize('name', BUNDLED)
def test_bundled_robots_are_found_with_their_limits(name):
    model, source = load_model(Given(name))
    assert source.path == share_file(f'urdf/{name}.urdf')
    limits, limits_from, _ = read_limits(model, None, source.limits)
    has_accelerations = bool(np.isfinite(limits.acceleration).any())
    assert has_accelerations == (source.limits is not None)
    assert ('config/' in limits_from) == has_accelerations


def test_bundled_robots_are_all_that_there_are():
    assert sorted(BUNDLED) == sorted(path.stem for path in (ROOT / 'urdf').glob('*.urdf'))


def test_a_file_of_the_name_of_a_bundled_robot_does_not_hide_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'panda').write_text(TWO_LINK)
    assert len(joint_names('panda')) == 7
    assert joint_names('./panda') == ('shoulder', 'elbow')


@pytest.mark.every_case
@pytest.mark.parametrize(
    'name, words',
    [
        ('folder/robot', ['no file folder/robot']),
        ('/tmp', ['folder']),
        ('ros:nothing', ['ros:nothing']),
    ],
)
def test_what_does_not_exist_is_refused_with_what_was_expected(name, words):
    with pytest.raises(HodynError) as caught:
        find_robot(name)
    assert all(word in str(caught.value) for word in words)


def test_robots_of_ros_packages_are_found_by_package_and_path(prefix):
    install(prefix, 'arm_description', arm__urdf=TWO_LINK, other__urdf=OTHER_JOINTS)
    install(prefix, 'rail', only__urdf=OTHER_JOINTS)
    for name in (
        'arm_description',
        'arm_description/urdf/arm.urdf',
        'ros:arm_description',
        'package://arm_description/urdf/arm.urdf',
    ):
        assert joint_names(name) == ('shoulder', 'elbow')
    assert joint_names('arm_description/urdf/other.urdf') == ('rail',)
    assert joint_names('rail') == ('rail',)
    assert find_robot('rail').origin == 'ROS package rail'


@pytest.mark.every_case
@pytest.mark.parametrize(
    'name, words',
    [
        ('many', ['urdf/a.urdf', 'urdf/b.urdf', 'many/urdf/a.urdf']),
        ('many/urdf/c.urdf', ['no urdf/c.urdf', 'urdf/a.urdf, urdf/b.urdf']),
        ('none', ['no robot descriptions']),
    ],
)
def test_ros_packages_with_several_descriptions_or_none_say_what_they_have(
    prefix, name, words
):
    install(prefix, 'many', a__urdf=TWO_LINK, b__urdf=OTHER_JOINTS)
    install(prefix, 'none', readme__txt='')
    with pytest.raises(HodynError) as caught:
        find_robot(name)
    assert all(word in str(caught.value) for word in words)


def test_robots_of_example_robot_data_are_found_by_short_names(prefix):
    robots = prefix / 'share' / 'example-robot-data' / 'robots'
    for name in (
        'ur_description/urdf/ur5_robot',
        'four_b_description/four',
        'four_c_description/four',
    ):
        path = (robots / name).with_suffix('.urdf')
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TWO_LINK)

    def found(name):
        return sources.find_example_robot(name).path.relative_to(robots).as_posix()

    assert found('ur5') == found('ur5_robot') == 'ur_description/urdf/ur5_robot.urdf'
    assert found('four_b_description/four') == 'four_b_description/four.urdf'
    assert sources.find_example_robot('nothing') is None
    with pytest.raises(HodynError, match='several'):
        sources.find_example_robot('four')
    assert find_robot('example-robot-data:ur5').origin == 'example-robot-data'


def test_what_a_package_prints_does_not_mix_with_results(tmp_path):
    path, folder = tmp_path / 'arm.urdf', tmp_path / 'robot_descriptions'
    path.write_text(TWO_LINK)
    folder.mkdir()
    (folder / '__init__.py').touch()
    code = f'print("Downloading")\nURDF_PATH = {str(path)!r}\n'
    (folder / 'loud_description.py').write_text(code)
    words, environment = ('info', 'loud', '--json'), {'PYTHONPATH': str(tmp_path)}
    with start(*words, environment=environment) as process:
        told, said = process.communicate(timeout=600)
    assert json.loads(told)['path'] == str(path)
    assert 'Downloading' in said


def test_without_xacro_its_files_are_refused_with_what_to_do(tmp_path, monkeypatch):
    path = tmp_path / 'arm.xacro'
    path.write_text(TWO_LINK)
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        'find_spec',
        lambda name: None if name == 'xacro' else find_spec(name),
    )
    with pytest.raises(HodynError, match='pip install xacro'):
        load_model(Given(str(path)))


def test_real_xacro_expands_macros(tmp_path):
    pytest.importorskip('xacro', reason='xacro is not installed')
    path = tmp_path / 'arm.urdf.xacro'
    path.write_text(
        TWO_LINK.replace('<robot ', '<robot xmlns:xacro="http://www.ros.org/wiki/xacro" ')
        .replace(
            '<link name="base"/>', '<xacro:arg name="m" default="1"/><link name="base"/>'
        )
        .replace('value="0.7"', 'value="${2 * $(arg m)}"')
    )
    model, _ = load_model(Given(str(path), xacro_arguments=(('m', '1.5'),)))
    assert model.M_body[1, 5, 5] == 3.0
    with pytest.raises(HodynError, match=r"no argument 'M'; its arguments are m\."):
        load_model(Given(str(path), xacro_arguments=(('M', '1.5'),)))


def test_arguments_for_a_urdf_are_refused():
    with pytest.raises(HodynError, match='not a xacro file'):
        load_model(Given('two_link', xacro_arguments=(('a', 'b'),)))


@pytest.mark.every_case
@pytest.mark.parametrize(
    'option, content, words',
    [
        (
            'limits',
            'limits: {elbow: {jerk: much}}',
            ['limits.elbow.jerk', "'much'", 'number'],
        ),
        ('limits', 'limits: {elbow: {jerk: -1.0}}', ['limits.elbow.jerk', '-1.0']),
        ('limits', 'other: {}', ['no limits', 'config/panda.yaml']),
        ('friction', 'friction: {elbow: {viscosity: 1.0}}', ['viscosity', 'viscous']),
        (
            'friction',
            'limits: {elbow: {jerk: 1.0}}',
            ['no friction', 'config/generic.yaml'],
        ),
    ],
)
def test_unusable_files_of_parameters_are_refused(option, content, words, tmp_path):
    path = tmp_path / 'parameters.yaml'
    path.write_text(content)
    with pytest.raises(HodynError) as caught:
        load_problem(Given('two_link', **{option: str(path)}))
    named = [str(path)] * (option == 'friction')
    assert all(word in str(caught.value) for word in (*named, *words))


@pytest.mark.parametrize('option', ['limits', 'friction'])
def test_tables_of_other_joints_are_remarked_and_mistyped_ones_refused(
    option, tmp_path, capsys
):
    path = tmp_path / 'parameters.yaml'
    table = '{jerk: 1.0}' if option == 'limits' else '{viscous: 1.0}'
    path.write_text(f'{option}: {{elbow: {table}, knee: {table}}}')
    assert run(['info', 'two_link', f'--{option}', str(path)]) == 0
    said = f'{path}: {option} of knee: not used, two_link has no such joint.'
    assert f'warning: {said}' in capsys.readouterr().out
    assert run(['check', 'two_link', 'none.csv', f'--{option}', str(path)]) == 2
    assert f'note: {said}' in capsys.readouterr().err
    for mistyped in ('shuolder', 'Shoulder', 'shoulder_'):
        path.write_text(f'{option}: {{elbow: {table}, {mistyped}: {table}}}')
        assert run(['info', 'two_link', f'--{option}', str(path)]) == 2
        error = capsys.readouterr().err
        assert (
            f'{option}.{mistyped}: two_link has no joint {mistyped}. Is shoulder meant'
            in error
        )


RUBBING = (
    (ROOT / 'urdf' / 'two_link.urdf')
    .read_text()
    .replace('<axis', '<dynamics damping="0.5"/><axis')
)


def test_friction_of_a_file_replaces_that_of_the_description(tmp_path):
    robot, path = tmp_path / 'robot.urdf', tmp_path / 'friction.yaml'
    robot.write_text(RUBBING)
    elbow = {'coulomb': 1, 'smoothing': 0.01, 'stribeck': 0.4, 'stribeck_velocity': 0.1}
    flat = {f'friction.elbow.{key}': elbow[key] for key in elbow}
    for content in (
        {'friction': {'elbow': elbow}},
        {'/arm': {'ros__parameters': flat}},
    ):
        path.write_text(yaml.safe_dump(content))
        model, _ = load_model(Given(str(robot), joint_friction=True, friction=path))
        assert model.friction == {
            'shoulder': friction.Viscous(0.5) + friction.Coulomb(0.0),
            'elbow': friction.Coulomb(1.0, 0.01) + friction.Stribeck(0.4, 0.1, 0.01),
        }


def test_info_names_what_has_no_limit_and_shows_friction(tmp_path, capsys):
    path = tmp_path / 'robot.urdf'
    text = TWO_LINK.replace('effort="50"', 'effort="50" jerk="9"', 1)
    text = text.replace('</joint>', '<dynamics damping="3"/></joint>', 1)
    path.write_text(text.replace('<robot', '<robot version="1.2"'))
    assert run(['info', str(path)]) == 0
    output = capsys.readouterr().out
    open_ = 'acceleration of all joints; jerk of elbow; torque rate of all joints; '
    assert f'not limited  {open_}second derivative of torque of all joints\n' in output
    assert (
        'friction     none; the description has some of shoulder (--joint-friction'
        in output
    )
    assert run(['info', str(path), '--joint-friction']) == 0
    output = capsys.readouterr().out
    assert 'friction     robot description\n' in output
    assert '[N m s/rad]\n  shoulder            3' in output


def test_info_lists_doubtful_values_that_other_commands_only_count(capsys):
    assert run(['info', 'iiwa14']) == 0
    assert capsys.readouterr().out.count('triangle inequality') == 2
    with pytest.warns(UserWarning, match='2 remarks on iiwa14.urdf: hodyn info iiwa14'):
        load_model(Given('iiwa14'))


def test_limits_and_actuators_of_this_package_have_names(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert (
        run(['info', 'panda', '--limits', 'panda', '--actuators', 'panda_sea', '--json'])
        == 0
    )
    data = json.loads(capsys.readouterr().out)
    assert {joint['actuator']['type'] for joint in data['joints']} == {'SeriesElastic'}
    assert str(share_file('config/panda.yaml')) in data['limits_from']
    for option in ('--limits', '--actuators'):
        assert run(['info', 'panda', option, 'panda_see']) == 2
        assert 'iiwa14, panda, panda_sea' in capsys.readouterr().err
    (tmp_path / 'panda_sea').write_text('other: {}')  # a file of that name comes first
    assert run(['info', 'panda', '--actuators', 'panda_sea']) == 2
    assert 'holds no actuators' in capsys.readouterr().err


def test_gravity_of_an_sdf_holds_unless_another_is_given(tmp_path, capsys):
    inertial = '<inertial><mass>1</mass></inertial>'
    path = tmp_path / 'mars.sdf'
    path.write_text(
        '<sdf version="1.10"><world name="mars"><gravity>0 0 -3.71</gravity><model name="r">'
        f'<link name="a">{inertial}</link><link name="b">{inertial}</link>'
        '<joint name="j" type="revolute"><parent>a</parent><child>b</child>'
        '<axis><xyz>0 1 0</xyz></axis></joint></model></world></sdf>'
    )
    for options, expected in (((), -3.71), (('--gravity', '0', '0', '-1'), -1.0)):
        assert run(['info', str(path), *options, '--json']) == 0
        assert json.loads(capsys.readouterr().out)['gravity'] == [0.0, 0.0, expected]
    assert run(['info', 'two_link', '--json']) == 0
    assert json.loads(capsys.readouterr().out)['gravity'] == [0.0, 0.0, -9.81]


@pytest.mark.parametrize('name', ['robot.sdf', 'robot.xml', 'robot', 'robot.urdf'])
def test_the_first_element_of_a_file_says_what_it_is(name, tmp_path, capsys):
    path = tmp_path / name
    path.write_text(
        '<?xml version="1.0" encoding="utf-8"?><!-- SDF --><sdf version="1.10"><model name="r">'
        '<link name="a"/><link name="b"/><joint name="j" type="revolute"><parent>a</parent>'
        '<child>b</child><axis><xyz>0 1 0</xyz></axis></joint></model></sdf>'
    )
    assert run(['info', str(path), '--json']) == 0
    assert json.loads(capsys.readouterr().out)['joints'][0]['name'] == 'j'
    assert run(['info', str(path), '--allow-impossible-inertia']) == 2
    assert '--allow-impossible-inertia is not for an SDF' in capsys.readouterr().err


def test_info_tells_limits_of_followers(capsys):
    assert run(['info', 'fr3_with_hand']) == 0
    text = capsys.readouterr().out
    assert re.search(
        r'fr3_finger_joint2 +1 \* fr3_finger_joint1 \+ 0 +0 to 0.04 +0.2', text
    )
    assert 'The velocity limits of fr3_joint1, fr3_joint2, fr3_joint3,' in text


def test_an_mjcf_is_read_whatever_its_name_and_has_no_options_of_a_urdf(tmp_path, capsys):
    pytest.importorskip('mujoco', reason='reads MJCF')
    path = ROOT / 'test' / 'cases' / '15_mjcf_at_the_command_line' / 'robot.xml'
    assert run(['info', str(path), '--base-link', 'b']) == 2
    said = '--base-link and --allow-impossible-inertia are not for an MJCF'
    assert said in capsys.readouterr().err
    renamed = tmp_path / 'robot.model'
    renamed.write_bytes(path.read_bytes())
    for given in (path, renamed):
        assert run(['info', str(given), '--json']) == 0
        assert len(json.loads(capsys.readouterr().out)['joints']) == 2
