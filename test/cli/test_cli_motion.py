"""What the commands do that compute something, from their arguments to files and exit codes."""

import os
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from support import robots
from support.command_tools import (
    URDF,
    as_json,
    call,
    efforts_of,
    read_table,
    swinging,
    write_table,
)
from support.plotting_tools import Page

import hodyn_ros
from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.files import read_motion
from hodyn_ros.trajectory.jtc import jtc_motion


@pytest.fixture
def motion(tmp_path):
    times = np.linspace(0.0, 2.0, 81)
    return write_table(tmp_path / 'motion.csv', times, swinging(times))


def test_gravity_is_that_which_is_asked_for(motion, tmp_path, capsys):
    out = tmp_path / 'out.csv'
    arguments = ('compute', 'two_link', motion, '-o', out)
    assert call(capsys, *arguments, '--gravity', 0, 0, 0)[0] == 0
    columns = read_table(out)
    expected = efforts_of(swinging(np.linspace(0.0, 2.0, 81)), gravity=(0.0, 0.0, 0.0))
    np.testing.assert_allclose(columns['elbow.effort'], expected[:, 0, 1], atol=1e-12)


@pytest.mark.parametrize(
    ('amplitude', 'is_near'), [(0.3, False), (0.49384306 - 1e-3, True)]
)
def test_check_says_how_near_closed_loops_come_to_a_singularity(
    amplitude, is_near, tmp_path, capsys
):
    # The rods are in line where the cranks have turned by 0.49384306 in all, in opposite ways.
    times = np.linspace(0.0, 1.0, 41)
    phase = np.pi * times[:, None] + 0.5 * np.pi * np.arange(5)
    turned = amplitude * np.pi ** np.arange(5) * np.sin(phase)
    motion = turned[..., None] * np.array([1.0, -1.0]) / np.sqrt(2.0)
    robot = tmp_path / 'five_bar.urdf'
    robot.write_text(robots.FIVE_BAR)
    path = write_table(tmp_path / 'm.csv', times, motion, names=('left', 'right'))
    # The torques that this takes exceed their limits.
    found = as_json(capsys, 'check', robot, path, code=int(is_near))['singularity']
    assert found['time'] == 0.5
    assert found['distance'] == pytest.approx(0.49384306 - amplitude, rel=0.03)
    assert found['joint'] in ('left_elbow', 'right_elbow')
    assert found['is_near'] is is_near
    assert ('That is near' in call(capsys, 'check', robot, path)[1]) is is_near


def test_limits_of_joints_that_loops_move(tmp_path, capsys):
    times = np.linspace(0.0, 1.0, 81)
    phase = np.pi * times[:, None] + 0.5 * np.pi * np.arange(5)
    swing = 0.25 * np.pi ** np.arange(5) * np.sin(phase)
    names = ('motor_a', 'motor_b')
    alike, apart = (
        write_table(
            tmp_path / f'{sign}.csv', times, swing[..., None] * [1, sign], names=names
        )
        for sign in (1, -1)
    )
    assert call(capsys, 'check', 'parallel_ankle', alike)[0] == 0
    (found,) = as_json(capsys, 'check', 'parallel_ankle', apart, code=1)['violations']
    expected = {'joint_name': 'roll', 'quantity': 'position', 'limit': 0.43633}
    assert expected.items() <= found.items()
    assert found['time'] == 0.5 and found['value'] > 0.5
    code, _, err = call(capsys, 'retime', 'parallel_ankle', apart)
    assert code == 2 and "Joint 'roll' has the position" in err
    code, out, _ = call(capsys, 'retime', 'parallel_ankle', alike)
    assert code == 0 and 'All known limits are kept' in out


def test_check_takes_limits_of_motors(motion, tmp_path, capsys):
    actuators = tmp_path / 'actuators.yaml'
    actuators.write_text(
        'actuators:\n'
        '  elbow: {type: sea, stiffness: 400.0, motor_inertia: 0.2, max_motor_torque: 0.5,\n'
        '          deflection_limit: 0.001}\n'
    )
    data = as_json(capsys, 'check', 'two_link', motion, '--config', actuators, code=1)
    found = {v['quantity']: v for v in data['violations']}
    assert set(found) == {'motor_torque', 'deflection'}
    torque = efforts_of(swinging(np.linspace(0.0, 2.0, 81)))
    # The spring is linear: its deflection is torque over stiffness.
    largest = np.abs(torque[:, 0, 1]).max() / 400.0
    assert abs(found['deflection']['value']) == pytest.approx(largest, rel=1e-9)
    assert found['deflection']['unit'] == 'rad'


def test_check_says_what_it_cannot_check(tmp_path, capsys):
    times = np.linspace(0.0, 1.0, 21)
    path = write_table(tmp_path / 'short.csv', times, swinging(times)[:, :3])
    limits = tmp_path / 'limits.yaml'
    limits.write_text('limits: {elbow: {jerk: 1.0e6}}')
    arguments = ('check', 'two_link', path, '--config', limits, '--derivatives', 'given')
    code, out, _ = call(capsys, *arguments)
    assert code == 0
    rows = {line.split()[0]: line for line in out.splitlines() if 'not checked' in line}
    assert 'no limit is known' in rows['acceleration']
    assert 'does not determine it' in rows['jerk']


@pytest.fixture
def pausing(tmp_path):
    """Positions alone of a move of 1 s with 0.5 s of rest on both sides, and the same in noise."""
    t = np.linspace(0.0, 2.0, 201)
    x = np.clip(t - 0.5, 0.0, 1.0)
    ease = x**3 * (10.0 - 15.0 * x + 6.0 * x**2)
    return write_table(tmp_path / 'pausing.csv', t, ease[:, None, None] * [1.5, 1.0])


@pytest.mark.parametrize('suffix', ['.csv', '.mcap', '.yaml'])
def test_retimed_motion_of_every_format_keeps_its_limits_as_it_is_executed(
    suffix, pausing, tmp_path, capsys
):
    if suffix == '.mcap':
        pytest.importorskip('rosbags')
    limits = tmp_path / 'limits.yaml'
    limits.write_text(
        'limits: {shoulder: {effort_dot: 900.0, jerk: 900.0}, elbow: {effort_dot: 400.0}}'
    )
    out = tmp_path / f'out{suffix}'
    arguments = ('retime', 'two_link', pausing, '--config', limits, '-o', out)
    code, text, notes = call(capsys, *arguments)
    assert code == 0
    assert 'from 2 s to ' in text and 'It stands still for 1 s' in text
    assert 'as joint_trajectory_controller does' in notes
    samples = read_motion(out)
    assert len(samples) > 1000
    model = RobotModel.from_urdf(URDF)
    t, motion = samples.times, samples.in_order(model.joint_names)[0].motion
    q, v, a = (motion[:, k] for k in range(3))
    played = jtc_motion(t, q, v, a)
    for phase in (0.0, 0.00041):
        executed = played(np.arange(t[0] + phase, t[-1], 1e-3), 2)
        steps = np.abs(np.diff(inverse_dynamics(model, executed)[:, 0], axis=0))
        assert np.all(steps.max(axis=0) <= 1e-3 * np.array([900.0, 400.0]) * (1.0 + 1e-9))
    assert not v[[0, 1, -2, -1]].any() and not a[[0, 1, -2, -1]].any()


def test_retime_without_output_says_that_nothing_was_written(pausing, tmp_path, capsys):
    limits = tmp_path / 'limits.yaml'
    limits.write_text(
        'limits: {shoulder: {effort_dot: 900.0, jerk: 900.0}, elbow: {effort_dot: 400.0}}'
    )
    before = sorted(tmp_path.iterdir())
    code, text, _ = call(capsys, 'retime', 'two_link', pausing, '--config', limits)
    assert code == 0
    assert text.splitlines()[-1] == 'Nothing was written; -o FILE writes the new motion.'
    assert 'bounded by a choice of retime' in text
    assert sorted(tmp_path.iterdir()) == before


def test_every_verdict_names_what_has_no_limit(motion, tmp_path, capsys):
    limits, out, page = (tmp_path / name for name in ('limits.yaml', 'out.csv', 'a.html'))
    limits.write_text('limits: {elbow: {effort_dot: 400.0}}')
    words = 'two_link', motion, '--config', limits
    retimed = as_json(capsys, 'retime', *words, '-o', out)
    columns = read_table(out)
    for each in retimed['unlimited']:
        titles = [f'{name}.{each["quantity"]}' for name in each['names']]
        largest = max(np.abs(columns[title]).max() for title in titles)
        assert each['largest'] == pytest.approx(largest, rel=1e-9)
    # Where the torque rate is limited, its own rate is, by the time of its rise.
    assert retimed['effort_ddot_by_default'] == pytest.approx({'elbow': 400.0 / 0.02})
    both, first = ['shoulder', 'elbow'], ['shoulder']
    expected = {'acceleration': both, 'jerk': both, 'effort_dot': first}
    for found, last in ((retimed, first), (as_json(capsys, 'check', *words), both)):
        names = {each['quantity']: each['names'] for each in found['unlimited']}
        assert names == {**expected, 'effort_ddot': last}
    texts = [call(capsys, 'check', *words)[1]]
    texts.append(call(capsys, 'plot', *words, '-o', page)[1])
    texts.append(' '.join(Page(page.read_text(encoding='utf-8')).text_of_all('p')))
    for text in texts:
        assert 'No limit is known for the acceleration of all joints (up to ' in text
        assert 'torque rate of shoulder (up to ' in text


def test_standstills_are_kept(pausing, capsys):
    kept = as_json(capsys, 'retime', 'two_link', pausing)
    assert kept['standstill'] == pytest.approx(1.0)


def test_wrenches_are_stretched_with_the_motion(tmp_path, capsys):
    times = np.linspace(0.0, 1.0, 81)
    swing = swinging(times, 1.0, 6.0)
    push, rate = 3.0 * np.sin(5.0 * times), 15.0 * np.cos(5.0 * times)
    columns = {
        f'tool.wrench{order}.{part}.{axis}': values * ((part, axis) == ('force', 'z'))
        for order, values in (('', push), ('_dot', rate), ('_ddot', -25.0 * push))
        for part in ('force', 'torque')
        for axis in 'xyz'
    }
    path = write_table(tmp_path / 'pushing.csv', times, swing, **columns)
    code, _, err = call(capsys, 'retime', 'two_link', path)
    assert code == 2
    assert '--uniform' in err
    out = tmp_path / 'slower.csv'
    factor = as_json(capsys, 'retime', 'two_link', path, '--uniform', '-o', out)['factor']
    assert factor > 1.0
    slower = read_table(out)
    np.testing.assert_allclose(slower['tool.wrench.force.z'], push, atol=1e-12)
    np.testing.assert_allclose(slower['tool.wrench_dot.force.z'], rate / factor, atol=1e-12)
    assert call(capsys, 'check', 'two_link', out)[0] == 0


def test_plot_draws_every_kind(motion, tmp_path, capsys):
    pytest.importorskip('matplotlib', reason='matplotlib is not installed')
    actuators = tmp_path / 'actuators.yaml'
    actuators.write_text(
        'actuators: {elbow: {type: sea, stiffness: 400.0, motor_inertia: 0.2}}'
    )
    for kind in ('efforts', 'motion', 'portraits', 'motors', 'energy'):
        picture = tmp_path / f'{kind}.png'
        arguments = ('plot', 'two_link', motion, '--kind', kind, '-o', picture)
        assert call(capsys, *arguments, '--config', actuators)[0] == 0
        assert picture.read_bytes()[:4] == b'\x89PNG'


def test_names_of_files_need_not_be_utf_8(motion, tmp_path, capsys):
    other = tmp_path / os.fsdecode(b'\xff.csv')
    Path(motion).rename(other)
    for page in (tmp_path / 'x.svg', tmp_path / 'x.html'):
        assert call(capsys, 'plot', 'two_link', other, '-o', page)[0] == 0
        assert page.read_text(encoding='utf-8')


def test_demo_writes_the_motion_of_the_picture_of_the_readme(tmp_path, capsys):
    assert call(capsys, 'demo', '-o', tmp_path)[0] == 0
    fast = tmp_path / 'fast.csv'
    found = as_json(capsys, 'check', 'panda', fast, code=1)
    worst = max(abs(item['value']) / item['limit'] for item in found['violations'])
    text = (Path(__file__).parents[2] / 'README.md').read_text()
    assert f'up to {100.0 * abs(worst):.0f} %' in text
    assert f'in {found["end"]:.2f} s' in text


def test_times_that_count_from_long_ago_keep_their_digits(tmp_path, capsys):
    times = np.linspace(0.0, 2.0, 81)
    path = write_table(tmp_path / 'stamped.csv', 1.7e9 + 0.125 + times, swinging(times))
    for words in (('check',), ('compute',)):
        _, out, _ = call(capsys, *words, 'two_link', path)
        assert 'from 1700000000.125 s to 1700000002.125 s' in out


@pytest.mark.parametrize('name', ['compute', 'check', 'retime'])
def test_programs_are_told_which_robot_it_was(name, motion, capsys):
    told = as_json(capsys, name, URDF, motion)['provenance']
    assert told['robot_file'] == URDF.name
    assert told['robot_digest'] == sha256(URDF.read_bytes()).hexdigest()
    assert told['hodyn_ros'] == hodyn_ros.__version__


@pytest.mark.every_case
@pytest.mark.parametrize('name', ['compute', 'check', 'retime'])
def test_remarks_are_notes_for_people_and_data_for_programs(name, tmp_path, capsys):
    times = np.linspace(0.0, 4.0, 4)
    positions = np.array([0.0, 0.3, -0.2, 0.1])[:, None, None] * np.ones(2)
    words = name, URDF, write_table(tmp_path / 'm.csv', times, positions)
    assert call(capsys, *words, '--json')[2] == ''
    found = as_json(capsys, *words)
    assert found['remarks'] and found['limits_from'] == 'robot description'
    notes = ''.join(f'note: {remark}\n' for remark in found['remarks'])
    assert call(capsys, *words)[2] == notes
