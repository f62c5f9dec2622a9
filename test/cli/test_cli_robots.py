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
from hodyn_ros.cli.problem import Given, load_problem
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
    return load_problem(Given(robot, **options)).model.joint_names


@pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')
@pytest.mark.parametrize('name', BUNDLED)
def test_bundled_robots_are_found_with_their_limits(name):
    problem = load_problem(Given(name))
    assert problem.source.path == share_file(f'urdf/{name}.urdf')
    has_accelerations = bool(np.isfinite(problem.limits.acceleration).any())
    assert has_accelerations == (problem.source.limits is not None)
    assert ('config/' in problem.limits_from) == has_accelerations


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
        load_problem(Given(str(path)))


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
    model = load_problem(Given(str(path), xacro_arguments=(('m', '1.5'),))).model
    assert model.M_body[1, 5, 5] == 3.0
    with pytest.raises(HodynError, match=r"no argument 'M'; its arguments are m\."):
        load_problem(Given(str(path), xacro_arguments=(('M', '1.5'),)))


def test_arguments_for_a_urdf_are_refused():
    with pytest.raises(HodynError, match='not a xacro file'):
        load_problem(Given('two_link', xacro_arguments=(('a', 'b'),)))


@pytest.mark.every_case
@pytest.mark.parametrize(
    'content, words',
    [
        ('limits: {elbow: {jerk: much}}', ['limits.elbow.jerk', "'much'", 'number']),
        ('limits: {elbow: {jerk: -1.0}}', ['limits.elbow.jerk', '-1.0']),
        ('limits: {elbow: 3.0}', ['limits.elbow is 3.0', 'a table for each joint']),
        ('other: {}', ['no limits', 'config/panda.yaml', 'actuators']),
        ('friction: {elbow: {viscosity: 1.0}}', ['viscosity', 'viscous']),
        ('friction: some', ["friction is 'some'", 'or friction: description']),
        ('base_link: 3', ['base_link is 3', 'a name']),
        ('allow_impossible_inertia: maybe', ["'maybe'", 'true or false']),
        ('limits: [', ['not YAML']),
    ],
)
def test_unusable_files_of_parameters_are_refused(content, words, tmp_path):
    path = tmp_path / 'parameters.yaml'
    path.write_text(content)
    with pytest.raises(HodynError) as caught:
        load_problem(Given('two_link', (str(path),)))
    assert all(word in str(caught.value) for word in (str(path), *words))


@pytest.mark.parametrize('option', ['limits', 'friction'])
def test_tables_of_other_joints_are_remarked_and_mistyped_ones_refused(
    option, tmp_path, capsys
):
    path = tmp_path / 'parameters.yaml'
    table = '{jerk: 1.0}' if option == 'limits' else '{viscous: 1.0}'
    path.write_text(f'{option}: {{elbow: {table}, knee: {table}}}')
    assert run(['info', 'two_link', '--config', str(path)]) == 0
    said = f'{path}: {option} of knee: not used, two_link has no such joint.'
    assert f'note: {said}' in capsys.readouterr().err
    assert run(['check', 'two_link', 'none.csv', '--config', str(path)]) == 2
    assert f'note: {said}' in capsys.readouterr().err
    for mistyped in ('shuolder', 'Shoulder', 'shoulder_'):
        path.write_text(f'{option}: {{elbow: {table}, {mistyped}: {table}}}')
        assert run(['info', 'two_link', '--config', str(path)]) == 2
        error = capsys.readouterr().err
        assert (
            f'{option}.{mistyped}: two_link has no joint {mistyped} (did you mean shoulder?)'
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
        items = ('friction:=description', str(path))
        assert load_problem(Given(str(robot), items)).model.friction == {
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
        'friction     none; the description has some of shoulder (--config friction:=description'
        in output
    )
    assert run(['info', str(path), '--config', 'friction:=description']) == 0
    output = capsys.readouterr().out
    assert 'friction     robot description\n' in output
    assert '[N m s/rad]\n  shoulder            3' in output


def test_info_lists_doubtful_values_that_other_commands_only_count(capsys):
    assert run(['info', 'iiwa14']) == 0
    assert capsys.readouterr().out.count('triangle inequality') == 2
    with pytest.warns(UserWarning, match='2 remarks on iiwa14.urdf: hodyn info iiwa14'):
        load_problem(Given('iiwa14'))


def test_limits_and_actuators_of_this_package_have_names(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ['info', 'panda', '--config', 'panda', '--config', 'panda_sea', '--json']
    assert run(words) == 0
    data = json.loads(capsys.readouterr().out)
    assert {joint['actuator']['type'] for joint in data['joints']} == {'SeriesElastic'}
    assert str(share_file('config/panda.yaml')) in data['limits_from']
    assert run(['info', 'panda', '--config', 'panda_see']) == 2
    assert 'iiwa14, panda, panda_sea' in capsys.readouterr().err
    (tmp_path / 'panda_sea').write_text('other: {}')  # a file of that name comes first
    assert run(['info', 'panda', '--config', 'panda_sea']) == 2
    assert 'panda_sea holds no limits' in capsys.readouterr().err


def test_later_configuration_goes_before_earlier_and_a_note_says_which_holds(
    tmp_path, capsys
):
    first, second = tmp_path / 'first.yaml', tmp_path / 'second.yaml'
    first.write_text('limits: {elbow: {jerk: 10.0, acceleration: 5.0}}\nloops: open')
    second.write_text(
        '/**: {ros__parameters: {limits: {shoulder: {jerk: 20.0}}, '
        'friction: {elbow: {viscous: 1.0}}, tip_link: upper_arm}}'
    )
    words = [part for path in (first, second) for part in ('--config', str(path))]
    words += ['--config', 'limits.elbow.jerk:=1e2', '--tip-link', 'tool']
    assert run(['info', 'two_link', *words, '--json']) == 0
    told = json.loads(capsys.readouterr().out)
    assert f'limits: what {second} says holds, not {first}.' in told['remarks']
    assert [joint['jerk'] for joint in told['joints']] == [20.0, 100.0]
    assert [joint['acceleration'] for joint in told['joints']] == [None, None]
    assert told['friction'] == {'elbow': {'viscous': 1.0}}
    assert told['tip_link'] == 'tool'


def test_single_limits_stand_beside_those_that_come_with_a_robot(capsys):
    names = [f'panda_joint{i}' for i in range(1, 8)]
    jerks = {}
    for item in ('limits.panda_joint2.jerk:=77', 'limits:=description'):
        assert run(['info', 'panda', '--config', item, '--json']) == 0
        told = json.loads(capsys.readouterr().out)
        jerks[item] = {joint['name']: joint['jerk'] for joint in told['joints']}
    (one, none) = jerks.values()
    assert one['panda_joint1'] == 7500.0 and one['panda_joint2'] == 77.0
    assert none == dict.fromkeys(names)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('item', 'said'),
    [
        ('limts.elbow.jerk:=3', 'limts.elbow.jerk:=3 holds no limits, friction, actuators'),
        ('limits.elbow:=3', 'limits.elbow is 3.0, expected a table'),
        ('gravity:=[1', 'no value in YAML'),
        ('nowhere.yaml', 'nowhere.yaml cannot be read: No such file'),
    ],
)
def test_single_values_are_refused_with_what_is_expected(item, said, capsys):
    assert run(['info', 'two_link', '--config', item]) == 2
    assert said in capsys.readouterr().err


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
    assert run(['info', str(path), '--config', 'allow_impossible_inertia:=true']) == 2
    assert 'allow_impossible_inertia is not for an SDF' in capsys.readouterr().err


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
    assert run(['info', str(path), '--config', 'base_link:=b']) == 2
    said = 'base_link is not for an MJCF'
    assert said in capsys.readouterr().err
    renamed = tmp_path / 'robot.model'
    renamed.write_bytes(path.read_bytes())
    for given in (path, renamed):
        assert run(['info', str(given), '--json']) == 0
        assert len(json.loads(capsys.readouterr().out)['joints']) == 2
