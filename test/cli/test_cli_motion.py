"""What the commands do that compute something, from their arguments to files and exit codes."""

import json
import os
import pty
import re
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from scipy.spatial import cKDTree
from support import robots
from support.oracles import taylor_rnea
from support.plotting_tools import Page

import hodyn_ros
from hodyn_ros import RobotModel, inverse_dynamics, plotting
from hodyn_ros.cli.main import run
from hodyn_ros.cli.output import number, plain, table, written
from hodyn_ros.files import read_motion
from hodyn_ros.trajectory.jtc import jtc_motion

ROOT = Path(__file__).resolve().parents[2]
URDF = ROOT / 'urdf' / 'two_link.urdf'
NAMES = ('shoulder', 'elbow')
ORDERS = ('position', 'velocity', 'acceleration', 'jerk', 'snap')
GRAVITY = (0.0, 0.0, -9.81)


def swinging(times, amplitude=0.5, frequency=2.0):
    """Sinusoids around the hanging arm with four derivatives, shape (N, 5, 2)."""
    k = np.arange(5)[:, None]
    omega = frequency * np.array([1.0, 1.3])
    phase = times[:, None, None] * omega + 0.5 * np.pi * k
    motion = amplitude * omega**k * np.sin(phase)
    motion[:, 0] += [-0.5 * np.pi, 0.2]
    return motion


def write_table(path, times, motion, extra=(), names=NAMES):
    """Write a table as a user would, without anything of this package."""
    columns, titles = [times], ['time']
    for k, order in enumerate(ORDERS[: motion.shape[1]]):
        for j, name in enumerate(names):
            titles.append(f'{name}.{order}')
            columns.append(motion[:, k, j])
    for title, values in extra:
        titles.append(title)
        columns.append(values)
    rows = (','.join(repr(float(value)) for value in row) for row in zip(*columns))
    path.write_text('\n'.join([','.join(titles), *rows]) + '\n')
    return str(path)


def pushing(*orders):
    """Columns of a force along z of the tool with its derivatives."""
    return [
        (f'tool.wrench{order}.{part}.{axis}', values * ((part, axis) == ('force', 'z')))
        for order, values in zip(('', '_dot', '_ddot'), orders)
        for part in ('force', 'torque')
        for axis in 'xyz'
    ]


def read_table(path):
    """Columns of a table by their titles, without units."""
    lines = Path(path).read_text().splitlines()
    titles = [title.partition(' [')[0] for title in lines[0].split(',')]
    values = np.array([[float(cell) for cell in line.split(',')] for line in lines[1:]])
    return dict(zip(titles, values.T))


def efforts_in(path):
    columns = read_table(path)
    return np.stack(
        [
            np.stack([columns[f'{name}.{order}'] for name in NAMES], axis=-1)
            for order in ('effort', 'effort_dot', 'effort_ddot')
        ],
        axis=1,
    )


@pytest.fixture
def motion(tmp_path):
    times = np.linspace(0.0, 2.0, 81)
    return write_table(tmp_path / 'motion.csv', times, swinging(times))


@pytest.fixture
def fast(tmp_path):
    times = np.linspace(0.0, 1.0, 81)
    return write_table(tmp_path / 'fast.csv', times, swinging(times, 1.0, 6.0))


def command(capsys, *arguments):
    """Exit code, output and messages of a command."""
    code = run([str(argument) for argument in arguments])
    output = capsys.readouterr()
    assert 'Traceback' not in output.err
    return code, output.out, output.err


def as_json(capsys, *arguments, code=0):
    result, out, err = command(capsys, *arguments, '--json')
    assert result == code, err
    return json.loads(out)


def test_compute_writes_the_torques_and_their_derivatives(motion, tmp_path, capsys):
    code, out, _ = command(
        capsys, 'compute', 'two_link', motion, '-o', tmp_path / 'out.csv'
    )
    assert code == 0
    expected = taylor_rnea(
        URDF.read_text(), NAMES, GRAVITY, swinging(np.linspace(0.0, 2.0, 81))
    )
    scale = np.abs(expected).max(axis=(0, 2), keepdims=True)
    assert np.all(np.abs(efforts_in(tmp_path / 'out.csv') - expected) < 1e-13 * scale)
    assert str(tmp_path / 'out.csv') in out


def test_compute_without_output_shows_the_largest_values(motion, capsys):
    data = as_json(capsys, 'compute', 'two_link', motion)
    expected = np.abs(
        taylor_rnea(URDF.read_text(), NAMES, GRAVITY, swinging(np.linspace(0.0, 2.0, 81)))
    ).max(axis=0)
    for j, joint in enumerate(data['largest']):
        shown = [joint[order] for order in ('effort', 'effort_dot', 'effort_ddot')]
        np.testing.assert_allclose(shown, expected[:, j], rtol=1e-12)
    _, text, _ = command(capsys, 'compute', 'two_link', motion)
    assert number(expected[0, 0]) in text
    assert '[N m/s]' in text


def test_order_and_gravity_are_those_that_are_asked_for(motion, tmp_path, capsys):
    out = tmp_path / 'out.csv'
    arguments = ('compute', 'two_link', motion, '-o', out, '--order', 1)
    assert command(capsys, *arguments, '--gravity', 0, 0, 0)[0] == 0
    columns = read_table(out)
    assert 'elbow.effort_dot' in columns
    assert 'elbow.effort_ddot' not in columns
    expected = taylor_rnea(
        URDF.read_text(), NAMES, (0.0, 0.0, 0.0), swinging(np.linspace(0.0, 2.0, 81))
    )
    np.testing.assert_allclose(columns['elbow.effort'], expected[:, 0, 1], atol=1e-12)


def test_wrench_columns_add_to_the_torques(tmp_path, capsys):
    times = np.linspace(0.0, 1.0, 5)
    swing = swinging(times)
    push = 7.0 + times
    columns = pushing(push, 1.0 + 0.0 * times, 0.0 * times)
    path = write_table(tmp_path / 'pushing.csv', times, swing, columns)
    without = write_table(tmp_path / 'alone.csv', times, swing)
    out = tmp_path / 'out.csv'
    efforts = []
    for arguments in ((without,), (path,), (path, '--wrench-acting', 'on_robot')):
        assert command(capsys, 'compute', 'two_link', *arguments, '-o', out)[0] == 0
        efforts.append(efforts_in(out)[:, 0, 1])
    # A force along z of the tool acts at 0.5 m from the elbow, whose axis is -y.
    np.testing.assert_allclose(efforts[1] - efforts[0], 0.5 * push, rtol=1e-9)
    np.testing.assert_allclose(efforts[2] - efforts[0], -0.5 * push, rtol=1e-9)


def test_check_is_silent_about_a_motion_that_keeps_its_limits(motion, capsys):
    code, out, _ = command(capsys, 'check', 'two_link', motion)
    assert code == 0
    assert '81 samples from 0 s to 2 s, at most 0.025 s apart' in out
    assert 'are kept' in out
    assert 'exceeded' not in out


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
    found = json.loads(command(capsys, 'check', robot, path, '--json')[1])['singularity']
    assert found['time'] == 0.5
    assert found['distance'] == pytest.approx(0.49384306 - amplitude, rel=0.03)
    assert found['joint'] in ('left_elbow', 'right_elbow')
    assert found['is_near'] is is_near
    out = command(capsys, 'check', robot, path)[1]
    assert (
        f'at 0.5 s the independent joints are about {number(found["distance"], 3)}' in out
    )
    assert ('That is near' in out) is is_near


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
    assert command(capsys, 'check', 'parallel_ankle', alike)[0] == 0
    (found,) = as_json(capsys, 'check', 'parallel_ankle', apart, code=1)['violations']
    expected = {
        'joint_name': 'roll',
        'quantity': 'position',
        'limit': 0.43633,
        'unit': 'rad',
    }
    assert expected.items() <= found.items()
    assert found['time'] == 0.5 and found['value'] > 0.5
    out = command(capsys, 'check', 'parallel_ankle', apart)[1]
    assert 'position' in out and 'roll' in out and '1 limit is exceeded.' in out
    page = tmp_path / 'page.html'
    command(capsys, 'report', 'parallel_ankle', apart, '-o', page)
    assert '>roll</td>' in page.read_text()
    code, _, err = command(capsys, 'retime', 'parallel_ankle', apart)
    assert code == 2 and "Joint 'roll' has the position" in err
    code, out, _ = command(capsys, 'retime', 'parallel_ankle', alike, '--intervals', '8')
    assert code == 0 and 'All known limits are kept' in out


@pytest.mark.parametrize(('kind', 'unit'), [('prismatic', 'm'), ('revolute', 'rad')])
def test_units_of_joints_that_loops_move(kind, unit, tmp_path, capsys):
    bodies = ''.join(
        f'<link name="{name}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" '
        f'ixz="0" iyz="0"/></inertial></link><joint name="{name}_joint" type="{joint}" '
        f'independent="{leads}"><parent link="base"/><child link="{name}"/><axis xyz="1 0 0"/>'
        f'<limit lower="-{limit}" upper="{limit}" velocity="99" effort="99"/></joint>'
        for name, joint, leads, limit in (
            ('a', 'prismatic', 'true', 2),
            ('b', kind, 'false', 0.5),
        )
    )
    robot = tmp_path / 'coupled.urdf'
    robot.write_text(
        f'<robot name="coupled"><link name="base"/>{bodies}<coupling name="belt" type="rolling">'
        '<predecessor link="a"/><successor link="b"/><ratio value="1"/></coupling></robot>'
    )
    times = np.linspace(0.0, 1.0, 11)
    motion = write_table(
        tmp_path / 'm.csv',
        times,
        0.6 * np.eye(1, 3)[:, :, None].repeat(11, 0),
        names=['a_joint'],
    )
    (found,) = as_json(capsys, 'check', robot, motion, code=1)['violations']
    assert (found['joint_name'], found['unit']) == ('b_joint', unit)


def test_check_says_where_and_by_how_much_each_limit_is_exceeded(fast, capsys):
    times = np.linspace(0.0, 1.0, 81)
    swing = swinging(times, 1.0, 6.0)
    torque = taylor_rnea(URDF.read_text(), NAMES, GRAVITY, swing)[:, 0]
    data = as_json(capsys, 'check', 'two_link', fast, code=1)
    found = {(v['quantity'], v['joint_name']): v for v in data['violations']}
    # Limits of urdf/two_link.urdf.
    for j, name in enumerate(NAMES):
        for quantity, values, limit in (
            ('velocity', swing[:, 1, j], 6.0),
            ('effort', torque[:, j], (80.0, 30.0)[j]),
        ):
            worst = int(np.abs(values).argmax())
            exceeds = abs(values[worst]) > limit
            assert ((quantity, name) in found) == exceeds
            if exceeds:
                violation = found[quantity, name]
                assert violation['value'] == pytest.approx(values[worst], rel=1e-12)
                assert abs(violation['limit']) == limit
                assert violation['time'] == pytest.approx(times[worst])
    assert len(found) >= 3
    code, out, _ = command(capsys, 'check', 'two_link', fast)
    assert code == 1
    assert f'{len(found)} limits are exceeded.' in out
    shown = found['velocity', 'elbow']
    percent = 100.0 * (abs(shown['value']) - 6.0) / 6.0
    (row,) = [
        line for line in out.splitlines() if line.split()[:2] == ['velocity', 'elbow']
    ]
    assert f'{percent:.1f} %' in row
    assert '[rad/s]' in row


def test_check_takes_limits_that_a_urdf_cannot_hold(motion, tmp_path, capsys):
    limits = tmp_path / 'limits.yaml'
    limits.write_text('limits: {elbow: {acceleration: 0.1, effort_dot: 0.1, jerk: 1.0e6}}')
    data = as_json(capsys, 'check', 'two_link', motion, '--limits', limits, code=1)
    assert {v['quantity'] for v in data['violations']} == {'acceleration', 'effort_dot'}
    assert all(v['joint_name'] == 'elbow' for v in data['violations'])
    checked = {use['quantity'] for use in data['used'] if use['is_checked']}
    assert checked == {
        'position',
        'velocity',
        'acceleration',
        'jerk',
        'effort',
        'effort_dot',
    }


def test_a_rate_that_is_not_used_is_told(motion, tmp_path, capsys):
    for arguments in (('check',), ('compute',), ('compute', '-o', tmp_path / 'e.csv')):
        name, *rest = map(str, arguments)
        assert run([name, str(URDF), motion, *rest, '--rate', '500']) == 0
        assert '--rate is not used' in capsys.readouterr().err
    times = np.linspace(0.0, 2.0, 81)
    short = write_table(tmp_path / 'short.csv', times, swinging(times)[:, :1])
    assert run(['check', str(URDF), short, '--rate', '500']) == 0
    assert '--rate is not used' not in capsys.readouterr().err


def test_report_is_not_written_under_the_name_of_another_format(motion, tmp_path, capsys):
    assert run(['report', str(URDF), motion, '-o', str(tmp_path / 'report.pdf')]) == 2
    assert 'expected the suffix .html or .htm' in capsys.readouterr().err
    assert not (tmp_path / 'report.pdf').exists()


EVERY = '<&- >&- 2>&-'


@pytest.mark.parametrize(
    ('arguments', 'code', 'closed'),
    [
        pytest.param('check {urdf} {motion}', 0, '>&-', marks=pytest.mark.slow),
        pytest.param('check {urdf} {fast} --json', 1, EVERY, marks=pytest.mark.slow),
        ('compute {urdf} {motion} -o {efforts}', 0, EVERY),
        ('info {urdf}', 0, '>&-'),
        ('info nothing', 2, '>&-'),
        pytest.param('info nothing', 2, EVERY, marks=pytest.mark.slow),
    ],
)
def test_closed_streams_change_no_exit_code(
    motion, fast, tmp_path, arguments, code, closed
):
    efforts = tmp_path / 'efforts.csv'
    arguments = arguments.format(urdf=URDF, motion=motion, fast=fast, efforts=efforts)
    done = subprocess.run(
        ['sh', '-c', f'{sys.executable} -m hodyn_ros.cli.main {arguments} {closed}'],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == code
    assert 'fault' not in done.stderr
    if 'compute' in arguments:
        assert len(efforts_in(efforts)) == 81


def test_check_takes_limits_of_motors(motion, tmp_path, capsys):
    actuators = tmp_path / 'actuators.yaml'
    actuators.write_text(
        'actuators:\n'
        '  elbow: {type: sea, stiffness: 400.0, motor_inertia: 0.2, max_motor_torque: 0.5,\n'
        '          deflection_limit: 0.001}\n'
    )
    data = as_json(capsys, 'check', 'two_link', motion, '--actuators', actuators, code=1)
    found = {v['quantity']: v for v in data['violations']}
    assert set(found) == {'motor_torque', 'deflection'}
    torque = taylor_rnea(
        URDF.read_text(), NAMES, GRAVITY, swinging(np.linspace(0.0, 2.0, 81))
    )
    # The spring is linear: its deflection is torque over stiffness.
    largest = np.abs(torque[:, 0, 1]).max() / 400.0
    assert abs(found['deflection']['value']) == pytest.approx(largest, rel=1e-9)
    assert found['deflection']['unit'] == 'rad'
    code, out, _ = command(capsys, 'check', 'two_link', motion, '--actuators', actuators)
    assert code == 1
    assert 'motor torque' in out


@pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')
def test_motors_of_a_robot_with_closed_loops(tmp_path, capsys):
    robot, actuators = tmp_path / 'five_bar.urdf', tmp_path / 'actuators.yaml'
    robot.write_text(robots.FIVE_BAR)
    left = '{type: sea, stiffness: 300.0, motor_inertia: 0.1, max_motor_torque: 4.0}'
    right = '{type: sea, stiffness: 200.0, motor_inertia: 0.1, deflection_limit: 0.05}'
    actuators.write_text(f'actuators: {{left: {left}, right: {right}}}')
    model = RobotModel.from_urdf(robots.FIVE_BAR)
    t, k = np.linspace(0.0, 1.0, 101), np.arange(5)[:, None]
    phase = 2.0 * np.pi * t[:, None, None] + 0.5 * np.pi * k
    wave = (2.0 * np.pi) ** k * np.sin(phase)
    motion = np.array([0.2, -0.15]) * wave
    motion[:, 0] += model.closure.start[model.closure.independent]
    path, computed, faster = (tmp_path / f'{name}.csv' for name in 'abc')
    titles = [f'{name}.{order}' for order in ORDERS for name in ('left', 'right')]
    rows = np.column_stack([t, motion.reshape(101, -1)])
    np.savetxt(
        path,
        rows,
        delimiter=',',
        header=','.join(['time', *titles]),
        comments='',
        fmt='%.17g',
    )
    arguments = (robot, path, '--actuators', actuators)
    code, _, _ = command(capsys, 'compute', *arguments, '-o', computed)
    columns = read_table(computed)
    Q = inverse_dynamics(model, motion)
    theta = motion[:, 2] + Q[:, 2] / [300.0, 200.0]
    tau = np.column_stack([columns['left.motor_torque'], columns['right.motor_torque']])
    assert code == 0
    np.testing.assert_allclose(tau, Q[:, 0] + 0.1 * theta, rtol=1e-9, atol=1e-9)
    data = as_json(capsys, 'check', *arguments, code=0)
    assert data['violations'] == []
    code, _, _ = command(capsys, 'retime', *arguments, '-o', faster, '--uniform')
    assert code == 0
    data = as_json(capsys, 'check', robot, faster, '--actuators', actuators, code=0)
    shares = {item['quantity']: item['shares'] for item in data['used']}
    assert shares['motor_torque']['left'] == pytest.approx(1.0, abs=1e-6)
    assert 0.1 < shares['deflection']['right'] < 1.0
    assert data['end'] < 0.95


def test_torque_rates_of_motors_are_checked_where_the_motion_determines_them(
    tmp_path, capsys
):
    times = np.linspace(0.0, 1.0, 11)
    omega = 2.0
    sine = [0.5 * omega**k * np.sin(omega * times + 0.5 * np.pi * k) for k in range(7)]
    motion = np.stack([np.stack([series, series], -1) for series in sine], axis=1)
    more = [
        (f'{name}.position_d{k}', motion[:, k, j])
        for k in (5, 6)
        for j, name in enumerate(NAMES)
    ]
    path = write_table(tmp_path / 'smooth.csv', times, motion, more)
    actuators = tmp_path / 'actuators.yaml'
    elbow = '{type: sea, stiffness: 400.0, motor_inertia: 0.2, max_motor_torque_rate: 1.0}'
    actuators.write_text(f'actuators: {{elbow: {elbow}}}')
    arguments = ('check', 'two_link', path, '--actuators', actuators)
    _, out, _ = command(capsys, *arguments)
    (row,) = [
        line for line in out.splitlines() if line.lstrip().startswith('motor torque rate')
    ]
    assert '--order' in row
    data = as_json(capsys, *arguments, '--order', 4, code=1)
    (found,) = data['violations']
    effort = taylor_rnea(URDF.read_text(), NAMES, GRAVITY, motion)[..., 1]
    # theta = q + Q / k; the motor gives Q and accelerates its inertia.
    rate = effort[:, 1] + 0.2 * (motion[:, 3, 1] + effort[:, 3] / 400.0)
    assert found['quantity'] == 'motor_torque_rate'
    assert abs(found['value']) == pytest.approx(np.abs(rate).max(), rel=1e-9)


def test_check_says_what_it_cannot_check(tmp_path, capsys):
    times = np.linspace(0.0, 1.0, 21)
    path = write_table(tmp_path / 'short.csv', times, swinging(times)[:, :3])
    limits = tmp_path / 'limits.yaml'
    limits.write_text('limits: {elbow: {jerk: 1.0e6}}')
    arguments = ('check', 'two_link', path, '--limits', limits, '--derivatives', 'given')
    code, out, _ = command(capsys, *arguments)
    assert code == 0
    rows = {line.split()[0]: line for line in out.splitlines() if 'not checked' in line}
    assert 'no limit is known' in rows['acceleration']
    assert 'does not determine it' in rows['jerk']


def test_estimates_are_checked_everywhere_and_what_is_uncertain_is_said(tmp_path, capsys):
    times = np.arange(0.0, 2.0, 0.002)
    noise = 3e-3 * np.random.default_rng(1).normal(size=(len(times), 1, 2))
    path = write_table(tmp_path / 'measured.csv', times, swinging(times)[:, :1] + noise)
    data = as_json(capsys, 'check', 'two_link', path, '--derivatives', 'estimate')
    known = {use['quantity']: use['samples_checked'] for use in data['used']}
    assert data['samples'] == known['position']['elbow'] == known['jerk']['elbow'] == 1000
    assert any('Standard deviations' in remark for remark in data['remarks'])


@pytest.mark.parametrize(
    'how', [['--uniform'], ['--intervals', 16]], ids=['uniform', 'path']
)
def test_retime_gives_a_motion_that_keeps_the_limits_on_the_same_path(
    how, fast, tmp_path, capsys
):
    out = tmp_path / 'slower.csv'
    data = as_json(capsys, 'retime', 'two_link', fast, '-o', out, *how)
    columns = read_table(out)
    assert columns['time'][-1] - columns['time'][0] == pytest.approx(data['duration'])
    for j, name in enumerate(NAMES):
        assert np.abs(columns[f'{name}.velocity']).max() <= 6.0 * (1 + 1e-8)
        assert np.abs(columns[f'{name}.effort']).max() <= (80.0, 30.0)[j] * (1 + 1e-8)
    # The same path: every point of it lies between neighbouring samples of the old one.
    before = swinging(np.linspace(0.0, 1.0, 20001), 1.0, 6.0)[:, 0]
    after = np.stack([columns[f'{name}.position'] for name in NAMES], axis=-1)
    distance, _ = cKDTree(before).query(after, p=np.inf)
    assert distance.max() < 1e-3
    assert command(capsys, 'check', 'two_link', out)[0] == 0


def test_motion_along_its_path_is_not_made_faster_with_slower_only(
    motion, fast, tmp_path, capsys
):
    out = tmp_path / 'out.csv'
    options = ('--slower-only', '--intervals', 16)
    data = as_json(capsys, 'retime', 'two_link', motion, *options, '-o', out)
    assert data['factor'] == 1.0
    kept, before = read_table(out), read_table(motion)
    for name, column in before.items():
        np.testing.assert_array_equal(kept[name], column)
    data = as_json(capsys, 'retime', 'two_link', fast, *options)
    assert data['duration_before'] == 1.0 < data['duration']
    rest = tmp_path / 'rest.csv'
    t = np.linspace(0.0, 1.0, 101)
    ease = np.polynomial.Polynomial([0, 0, 0, 0, 0, 126, -420, 540, -315, 70])
    series = np.stack([ease.deriv(k)(t) if k else ease(t) for k in range(5)], axis=1)
    write_table(rest, t, series[:, :, None] * [3.0, 2.0])
    code, text, _ = command(capsys, 'retime', 'two_link', rest, *options)
    assert code == 0
    assert 'from 1 s to 1.' in text


@pytest.fixture
def pausing(tmp_path):
    """Positions alone of a move of 1 s with 0.5 s of rest on both sides, and the same in noise."""
    t = np.linspace(0.0, 2.0, 201)
    x = np.clip(t - 0.5, 0.0, 1.0)
    ease = x**3 * (10.0 - 15.0 * x + 6.0 * x**2)
    return write_table(tmp_path / 'pausing.csv', t, ease[:, None, None] * [1.5, 1.0])


@pytest.mark.parametrize('suffix', ['.csv', '.npz', '.parquet', '.yaml', '.mcap', ''])
def test_retimed_motion_of_every_format_keeps_its_limits_as_it_is_executed(
    suffix, pausing, tmp_path, capsys
):
    if suffix == '.parquet':
        pytest.importorskip('pyarrow')
    if suffix in ('.mcap', ''):
        pytest.importorskip('rosbags')
    limits = tmp_path / 'limits.yaml'
    limits.write_text(
        'limits: {shoulder: {effort_dot: 900.0, jerk: 900.0}, elbow: {effort_dot: 400.0}}'
    )
    out = tmp_path / f'out{suffix}'
    arguments = ('retime', 'two_link', pausing, '--limits', limits, '-o', out)
    code, text, notes = command(capsys, *arguments, '--intervals', 16)
    assert code == 0
    assert 'from 2 s to ' in text
    assert 'It stands still for 1 s' in text
    assert 'as joint_trajectory_controller does' in notes
    assert 'degree 3' in notes and 'degree 1' in notes
    samples = read_motion(out)
    assert len(samples) > 1000
    order = [samples.joint_names.index(name) for name in NAMES]
    q, v, a = (samples.motion[:, k][:, order] for k in range(3))
    t = samples.times
    model = RobotModel.from_urdf(URDF)
    assert model.joint_names == tuple(NAMES)
    played = jtc_motion(t, q, v, a)
    for phase in (0.0, 0.00041):
        executed = played(np.arange(t[0] + phase, t[-1], 1e-3), 2)
        steps = np.abs(np.diff(inverse_dynamics(model, executed)[:, 0], axis=0))
        assert np.all(steps.max(axis=0) <= 1e-3 * np.array([900.0, 400.0]) * (1.0 + 1e-9))
    assert not v[[0, 1, -2, -1]].any() and not a[[0, 1, -2, -1]].any()


BOTH = ['shoulder', 'elbow']
OF_ELBOW = {'elbow': {'effort_dot': 400.0}}
OF_BOTH = dict.fromkeys(
    BOTH, {'acceleration': 60.0, 'jerk': 9e3, 'effort_dot': 900.0, 'effort_ddot': 5e4}
)


@pytest.mark.parametrize(
    ('given', 'retimed', 'checked'),
    [
        (OF_BOTH, {}, {}),
        (
            OF_ELBOW,
            {
                'acceleration': BOTH,
                'jerk': BOTH,
                'effort_dot': BOTH[:1],
                'effort_ddot': BOTH[:1],
            },
            {
                'acceleration': BOTH,
                'jerk': BOTH,
                'effort_dot': BOTH[:1],
                'effort_ddot': BOTH,
            },
        ),
    ],
)
def test_every_verdict_names_what_has_no_limit(
    given, retimed, checked, motion, tmp_path, capsys
):
    limits, out, page = (
        tmp_path / name for name in ('limits.yaml', 'out.csv', 'page.html')
    )
    limits.write_text(yaml.safe_dump({'limits': given}))
    words = 'two_link', motion, '--limits', limits
    data = as_json(capsys, 'retime', *words, '--intervals', 16, '-o', out)
    columns = read_table(out)
    for each in data['unlimited']:
        peaks = [
            np.abs(columns[f'{name}.{each["quantity"]}']).max() for name in each['names']
        ]
        assert each['largest'] == pytest.approx(max(peaks), rel=1e-9)
    by_default = {'elbow': 400.0 / 0.02} if given is OF_ELBOW else {}
    assert data['effort_ddot_by_default'] == pytest.approx(by_default)
    verdicts = [command(capsys, 'retime', *words, '--intervals', 16)[1]]
    for expected, found in ((retimed, data), (checked, as_json(capsys, 'check', *words))):
        assert {each['quantity']: each['names'] for each in found['unlimited']} == expected
    verdicts.append(command(capsys, 'check', *words)[1])
    verdicts.append(command(capsys, 'report', *words, '-o', page)[1])
    verdicts.append(' '.join(Page(page.read_text(encoding='utf-8')).text_of_all('p')))
    assert ('All limits are kept' in verdicts[0]) == (not retimed)
    for text, names in zip(verdicts, (retimed, *[checked] * 3)):
        said = 'No limit is known for the acceleration of all joints (up to '
        assert (said in text) == bool(names)
        assert ('torque rate of shoulder (up to ' in text) == bool(names)


def test_standstills_are_dropped_on_request(pausing, capsys):
    arguments = ('retime', 'two_link', pausing, '--intervals', 16)
    kept, dropped = (
        as_json(capsys, *arguments),
        as_json(capsys, *arguments, '--drop-standstills'),
    )
    assert (kept['standstill'], dropped['standstill']) == (pytest.approx(1.0), 0.0)
    assert kept['duration'] - dropped['duration'] == pytest.approx(1.0, abs=1e-6)
    longer = as_json(capsys, *arguments, '--window', 30)
    assert longer['duration'] - kept['duration'] == pytest.approx(0.022, abs=0.003)


def test_wrenches_are_stretched_with_the_motion(tmp_path, capsys):
    times = np.linspace(0.0, 1.0, 81)
    swing = swinging(times, 1.0, 6.0)
    push = 3.0 * np.sin(5.0 * times)
    columns = pushing(push, 15.0 * np.cos(5.0 * times), -25.0 * push)
    path = write_table(tmp_path / 'pushing.csv', times, swing, columns)
    code, _, err = command(capsys, 'retime', 'two_link', path)
    assert code == 2
    assert '--uniform' in err
    out = tmp_path / 'slower.csv'
    factor = as_json(capsys, 'retime', 'two_link', path, '--uniform', '-o', out)['factor']
    assert factor > 1.0
    slower = read_table(out)
    np.testing.assert_allclose(slower['tool.wrench.force.z'], push, atol=1e-12)
    rate = slower['tool.wrench_dot.force.z']
    np.testing.assert_allclose(rate, 15.0 * np.cos(5.0 * times) / factor, atol=1e-12)
    assert command(capsys, 'check', 'two_link', out)[0] == 0


WAYPOINTS = """
joint_names: [elbow, shoulder]
points:
- {positions: [0.0, 0.0], time_from_start: {sec: 0, nanosec: 0}}
- {positions: [0.5, 0.4], time_from_start: {sec: 1, nanosec: 0}}
- {positions: [0.2, 0.9], time_from_start: {sec: 2, nanosec: 0}}
"""


def test_waypoints_become_a_motion_from_rest_to_rest(tmp_path, capsys):
    path = tmp_path / 'waypoints.yaml'
    path.write_text(WAYPOINTS)
    out = tmp_path / 'out.csv'
    code, _, notes = command(capsys, 'compute', 'two_link', path, '-o', out, '--rate', 50)
    assert code == 0
    assert '3 waypoints' in notes
    columns = read_table(out)
    assert len(columns['time']) == 101
    for name, positions in (('elbow', [0.0, 0.5, 0.2]), ('shoulder', [0.0, 0.4, 0.9])):
        np.testing.assert_allclose(columns[f'{name}.position'][::50], positions, atol=1e-9)
        np.testing.assert_allclose(columns[f'{name}.velocity'][[0, -1]], 0.0, atol=1e-9)


def test_retimed_waypoints_are_passed_sooner(tmp_path, capsys):
    path = tmp_path / 'waypoints.yaml'
    path.write_text(WAYPOINTS)
    out = tmp_path / 'fastest.csv'
    options = ('--rate', 500, '--intervals', 32)
    data = as_json(capsys, 'retime', 'two_link', path, '-o', out, *options)
    assert data['duration'] < data['duration_uniform'] < data['duration_before'] == 2.0
    columns = read_table(out)
    passing = np.abs(columns['elbow.position'] - 0.5) + np.abs(
        columns['shoulder.position'] - 0.4
    )
    assert passing.min() < 0.02
    assert columns['elbow.position'][-1] == pytest.approx(0.2)


def test_plot_draws_every_kind(motion, tmp_path, capsys):
    pytest.importorskip('matplotlib', reason='matplotlib is not installed')
    actuators = tmp_path / 'actuators.yaml'
    actuators.write_text(
        'actuators: {elbow: {type: sea, stiffness: 400.0, motor_inertia: 0.2}}'
    )
    for kind in ('efforts', 'motion', 'portraits', 'motors', 'energy'):
        picture = tmp_path / f'{kind}.png'
        arguments = ('plot', 'two_link', motion, '--kind', kind, '-o', picture, '--dpi', 40)
        assert command(capsys, *arguments, '--actuators', actuators)[0] == 0
        assert picture.read_bytes()[:4] == b'\x89PNG'
    arguments = ('plot', 'two_link', motion, '--joint', 'elbow', '-o', tmp_path / 'one.svg')
    assert command(capsys, *arguments)[0] == 0
    assert '<svg' in (tmp_path / 'one.svg').read_text()[:500]


def test_plot_names_its_picture_after_the_motion(motion, tmp_path, monkeypatch, capsys):
    pytest.importorskip('matplotlib', reason='matplotlib is not installed')
    monkeypatch.chdir(tmp_path)
    code, out, _ = command(capsys, 'plot', 'two_link', motion, '--dpi', 30)
    assert (code, out) == (0, 'Written: motion_efforts.png\n')
    assert (tmp_path / 'motion_efforts.png').is_file()


@pytest.mark.parametrize(
    ('name', 'library', 'suffix'),
    [('plot', 'matplotlib', '.svg'), ('report', 'plotly', '.html')],
)
def test_names_of_files_need_not_be_utf_8(name, library, suffix, motion, tmp_path, capsys):
    pytest.importorskip(library)
    other, page = tmp_path / os.fsdecode(b'\xff.csv'), tmp_path / f'page{suffix}'
    Path(motion).rename(other)
    assert command(capsys, name, 'two_link', other, '-o', page)[0] == 0
    assert page.read_text(encoding='utf-8')


def test_report_is_one_page_about_the_motion(fast, tmp_path, capsys):
    pytest.importorskip('plotly', reason='plotly is not installed')
    page = tmp_path / 'report.html'
    arguments = ('report', 'two_link', fast, '-o', page, '--title', 'A swinging arm')
    code, out, _ = command(capsys, *arguments)
    assert code == 0
    assert 'exceeded' in out
    text = page.read_text(encoding='utf-8')
    assert text.startswith('<!')
    assert 'A swinging arm' in text
    assert 'shoulder' in text


@pytest.mark.parametrize(
    'arguments, words',
    [
        (['compute', 'two_link', 'nowhere.csv'], ['nowhere.csv', 'does not exist']),
        (['compute', 'panda', '{motion}'], ['panda_joint1', 'missing']),
        (['compute', 'two_link', '{motion}', '-o', 'out.txt'], ['.txt', '.csv']),
        (['compute', 'two_link', '{motion}', '-o', 'no/folder.csv'], ['no folder no']),
        (['compute', 'two_link', '{motion}', '--workers', '2'], ['--workers', 'folders']),
        (['compute', 'two_link', '{motion}', '--topic', '/a'], ['no topics']),
        (['compute', 'two_link', '.'], ['-o FOLDER']),
        (['retime', 'two_link', '{motion}', '-o', 'no/folder.csv'], ['no folder no']),
        (['retime', 'two_link', '{motion}', '-o', 'out.txt'], ['.txt', '.csv']),
        (['retime', 'two_link', '{motion}', '-o', '.'], ['is a folder']),
        (['plot', 'two_link', '{motion}', '-o', 'picture.tex'], ['.png']),
        (['plot', 'two_link', '{motion}', '--kind', 'motors'], ['--actuators']),
        (['plot', 'two_link', '{motion}', '--joint', 'knee'], ['knee']),
        (['report', 'two_link', '{motion}', '-o', 'no/page.html'], ['no folder no']),
        (['check', 'two_link', '{motion}', '--actuators', 'none.yaml'], ['none.yaml']),
    ],
)
def test_what_cannot_be_done_is_refused_and_nothing_is_written(
    arguments, words, motion, tmp_path, monkeypatch, capsys
):
    folder = tmp_path / 'here'
    folder.mkdir()
    monkeypatch.chdir(folder)
    given = [argument.replace('{motion}', motion) for argument in arguments]
    code, out, err = command(capsys, *given)
    assert (code, out) == (2, '')
    assert all(word in err for word in words), err
    assert 'This should not happen' not in err
    assert list(folder.iterdir()) == []


def test_a_folder_of_motions_is_computed_and_gone_on_with(motion, fast, tmp_path, capsys):
    motions = tmp_path / 'motions'
    motions.mkdir()
    for path in (motion, fast):
        os.rename(path, motions / Path(path).name)
    out = tmp_path / 'results'
    arguments = (
        'compute',
        'two_link',
        motions,
        '-o',
        out,
        '--suffix',
        '.csv',
        '--workers',
        0,
    )
    data = as_json(capsys, *arguments)
    assert (data['computed'], data['failed'], data['samples']) == (2, 0, 162)
    expected = taylor_rnea(
        URDF.read_text(), NAMES, GRAVITY, swinging(np.linspace(0.0, 1.0, 81), 1.0, 6.0)
    )
    (written,) = out.glob('fast*.csv')
    np.testing.assert_allclose(efforts_in(written), expected, rtol=1e-9, atol=1e-6)

    code, _, err = command(capsys, *arguments)
    assert code == 2
    assert '--resume' in err
    (motions / 'broken.csv').write_text('time,nonsense\n0,1\n')
    code, shown, err = command(capsys, *arguments, '--resume')
    assert code == 2
    assert '0 computed, 2 kept, 1 failed of 3' in shown
    assert 'broken.csv' in err
    assert 'nonsense' in err


def test_an_interrupted_data_set_says_how_to_go_on(motion, tmp_path, monkeypatch, capsys):
    def interrupted(*arguments, **keywords):
        raise KeyboardInterrupt

    monkeypatch.setattr('hodyn_ros.datasets.process_files', interrupted)
    arguments = ('compute', 'two_link', tmp_path, '-o', tmp_path / 'results')
    code, _, err = command(capsys, *arguments)
    assert code == 130
    assert '--resume' in err


def test_demo_writes_what_the_other_commands_read(tmp_path, capsys):
    folder = tmp_path / 'demo'
    code, out, _ = command(capsys, 'demo', '-o', folder)
    assert code == 0
    assert {path.name for path in folder.glob('*.csv')} == {'fast.csv', 'motion.csv'}
    assert command(capsys, 'check', 'panda', folder / 'motion.csv')[0] == 0
    assert command(capsys, 'check', 'panda', folder / 'fast.csv')[0] == 1
    assert f'hodyn check panda {folder}/motion.csv' in out


def test_demo_writes_the_motion_of_the_picture_of_the_readme(tmp_path, capsys):
    assert command(capsys, 'demo', '-o', tmp_path)[0] == 0
    fast = tmp_path / 'fast.csv'
    found = json.loads(command(capsys, 'check', 'panda', fast, '--json')[1])
    assert {item['quantity'] for item in found['violations']} == {'effort_dot'}
    worst = max(abs(item['value']) / item['limit'] for item in found['violations'])
    text = (Path(__file__).parents[2] / 'README.md').read_text()
    assert f'up to {100.0 * abs(worst):.0f} %' in text
    assert f'in {found["end"]:.2f} s' in text
    code, out, _ = command(
        capsys, 'retime', 'panda', fast, '-o', tmp_path / 'retimed.csv', '--json'
    )
    assert code == 0
    longer = json.loads(out)['duration'] / found['end'] - 1.0
    assert 0.02 < longer < 0.05


READING = [
    ('check',),
    ('report', '-o', 'report.html'),
    ('compute', '-o', 'out.csv'),
    ('plot', '-o', 'plot.png'),
    ('retime', '-o', 'out.csv'),
    ('retime', '--uniform'),
]


@pytest.mark.parametrize('words', READING, ids=' '.join)
def test_derivatives_that_contradict_the_positions_are_an_error_everywhere(
    words, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    times = np.linspace(0.0, 2.0, 401)
    wrong = write_table(
        tmp_path / 'wrong.csv', times / 10.0, swinging(times, frequency=0.3)
    )
    code, out, err = command(capsys, words[0], 'two_link', wrong, *words[1:])
    assert (code, out) == (2, '')
    said = (
        r'the velocity of (shoulder|elbow) is given as -?[\d.]+ rad/s at [\d.]+ s, but its '
    )
    assert re.search(said + r'position changes by -?[\d.]+ rad/s', err), err
    assert '--derivatives estimate' in err
    assert not [path for path in Path().iterdir() if path.name != 'wrong.csv']


@pytest.mark.parametrize(
    'words',
    [
        ('check',),  # noise makes a table a measurement, unless its spline is asked for
        ('compute',),
        ('report', '-o', 'x.html'),
        ('retime', '--intervals', '4'),
    ],
)
def test_noise_that_is_taken_for_a_path_is_told_with_the_way_out(
    words, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    times = np.linspace(0.0, 2.0, 201 if words[0] == 'retime' else 1001)
    noise = 1e-5 * np.random.default_rng(0).standard_normal((len(times), 2))
    path = write_table(
        tmp_path / 'noisy.csv', times, (swinging(times)[:, 0] + noise)[:, None]
    )
    spline = ('--derivatives', 'spline')
    code, _, err = command(capsys, words[0], 'two_link', path, *words[1:], *spline)
    assert code != 2 or words[0] == 'retime'
    said = Path('x.html').read_text(encoding='utf-8') if words[0] == 'report' else err
    assert 'looks measured' in said
    assert '--derivatives estimate' in said


def test_arrays_named_like_columns_are_read_from_npz(motion, tmp_path, capsys):
    path = tmp_path / 'keys.npz'
    np.savez(path, **read_table(motion))
    expected = as_json(capsys, 'compute', 'two_link', motion)['largest']
    assert as_json(capsys, 'compute', 'two_link', path)['largest'] == expected


def test_times_that_count_from_long_ago_keep_their_digits(tmp_path, capsys):
    times = np.linspace(0.0, 2.0, 81)
    path = write_table(tmp_path / 'stamped.csv', 1.7e9 + times, swinging(times))
    for words in (('check',), ('compute',)):
        _, out, _ = command(capsys, *words, 'two_link', path)
        assert 'from 1700000000.000 s to 1700000002.000 s' in out


def test_exceeded_limits_have_the_order_of_the_other_table(fast, tmp_path, capsys):
    limits = tmp_path / 'limits.yaml'
    few = {joint: {'acceleration': 1.0, 'jerk': 1.0, 'effort_dot': 1.0} for joint in NAMES}
    limits.write_text(json.dumps({'limits': few}))
    data = as_json(capsys, 'check', 'two_link', fast, '--limits', limits, code=1)
    order = [entry['quantity'] for entry in data['used']]
    places = [order.index(violation['quantity']) for violation in data['violations']]
    assert places == sorted(places)
    assert len(set(places)) > 3


def test_of_many_joints_those_are_drawn_that_matter_most(tmp_path, monkeypatch, capsys):
    chain = [f'j{i}' for i in range(15)]
    elements = [robots.link('l0')]
    for i, name in enumerate(chain):
        elements += [robots.link(f'l{i + 1}'), robots.joint(name, f'l{i}', f'l{i + 1}')]
    urdf = tmp_path / 'snake.urdf'
    urdf.write_text(robots.robot(*elements).replace('effort="50"', 'effort="1e9"'))
    times = np.linspace(0.0, 1.0, 21)
    titles, columns = ['time'], [times]
    for i, name in enumerate(chain):  # the farther out, the faster
        titles.append(f'{name}.position')
        columns.append(0.01 * (i + 1) * np.sin(3.0 * times))
    path = tmp_path / 'm.csv'
    np.savetxt(
        path, np.column_stack(columns), '%.17g', ',', header=','.join(titles), comments=''
    )
    drawn = []

    def plot_motion(model, results, limits, joints, found):
        drawn.append(joints)
        return SimpleNamespace(savefig=lambda path, dpi: path.touch())

    monkeypatch.setattr(plotting, 'plot_motion', plot_motion)
    arguments = ('plot', urdf, path, '--kind', 'motion', '-o', tmp_path / 'x.png')
    code, _, err = command(capsys, *arguments, '--gravity', 0, 0, 0)
    assert code == 0
    assert 'Of 15 joints the 12 are drawn' in err
    assert command(capsys, *arguments, '--joint', 'j0')[0] == 0
    assert drawn == [[f'j{i}' for i in range(3, 15)], ['j0']]


def test_generate_writes_code_of_the_robot(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code, out, _ = command(capsys, 'generate', 'two_link', '--wrench', 'tool', '--order', 1)
    assert code == 0
    files = [Path(line) for line in out.splitlines()]
    assert {path.suffix for path in files} == {'.h', '.c', '.txt'}
    header = Path('two_link_dynamics/two_link_dynamics.h').read_text()
    assert 'two_link_inverse_dynamics_1' in header
    assert 'two_link_inverse_dynamics_2' not in header
    Path('two_link_dynamics/two_link_dynamics.c').write_text('mine')
    code, _, err = command(capsys, 'generate', 'two_link')
    assert code == 2
    assert '--force' in err
    assert command(capsys, 'generate', 'two_link', '--force')[0] == 0


def test_output_that_cannot_be_completed_is_not_there(tmp_path):
    target = tmp_path / 'picture.png'
    target.write_text('before')

    with pytest.raises(OSError, match='no space left'), written(target) as path:
        path.write_text('half of it')
        raise OSError('no space left')
    assert target.read_text() == 'before'
    assert list(tmp_path.iterdir()) == [target]


def test_full_disk_is_reported_without_traceback(motion):
    if not Path('/dev/full').exists():
        pytest.skip('there is no /dev/full')
    with open('/dev/full', 'w') as full:
        done = subprocess.run(
            [sys.executable, '-m', 'hodyn_ros.cli.main', 'info', 'two_link'],
            env={**os.environ, 'PYTHONPATH': str(ROOT)},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=600,
        )
    assert done.returncode == 2
    assert 'No space left' in done.stderr
    assert 'Traceback' not in done.stderr


PROGRESS = """
import time
from hodyn_ros.cli.output import progress
with progress('Working') as update:
    update(0.5)
    time.sleep(0.3)
with progress('Looking') as show:
    show(label='7 samples')
    time.sleep(0.3)
print('done')
"""


def test_progress_is_shown_on_terminals_and_nowhere_else():
    command = [sys.executable, '-c', PROGRESS]
    options = {
        'env': {**os.environ, 'PYTHONPATH': str(ROOT), 'TERM': 'xterm'},
        'timeout': 600,
    }
    piped = subprocess.run(command, capture_output=True, text=True, **options)
    assert (piped.stdout, piped.stderr) == ('done\n', '')
    terminal, child = pty.openpty()
    try:
        seen = subprocess.run(command, stdout=subprocess.PIPE, stderr=child, **options)
        shown = os.read(terminal, 100_000).decode()
    finally:
        os.close(terminal)
        os.close(child)
    assert seen.stdout == b'done\n'
    assert 'Working' in shown
    assert '7 samples' in shown


@pytest.mark.parametrize(
    'value, text',
    [
        (0.0, '0'),
        (1.0, '1'),
        (-0.00001234567, '-1.235e-05'),
        (123456.7, '123500'),
        (0.5, '0.5'),
        (float('inf'), '-'),
        (float('nan'), 'nan'),
        (-2.17499999, '-2.175'),
    ],
)
def test_numbers_have_four_significant_digits(value, text):
    assert number(value) == text


def test_tables_are_aligned():
    text = table(('name', 'value\n[m]'), [('a', '1.5'), ('long one', '-10')])
    assert text.splitlines() == [
        '            value',
        '  name        [m]',
        '  a           1.5',
        '  long one    -10',
    ]


def test_plain_values_are_what_json_knows():
    value = {
        'a': np.float64(1.5),
        'b': np.array([1.0, np.inf]),
        'c': (Path('x'), None, True),
    }
    assert plain(value) == {'a': 1.5, 'b': [1.0, None], 'c': ['x', None, True]}


@pytest.mark.parametrize('name', ['compute', 'check', 'retime'])
def test_programs_are_told_which_robot_it_was(name, motion, capsys):
    told = as_json(capsys, name, URDF, motion)['provenance']
    assert told['robot_file'] == URDF.name
    assert told['robot_digest'] == sha256(URDF.read_bytes()).hexdigest()
    assert told['hodyn_ros'] == hodyn_ros.__version__
