"""What the commands must not do in silence."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from hodyn_ros import RobotModel
from hodyn_ros.cli import run
from hodyn_ros.files import read_motion
from hodyn_ros.retiming.scaling import uniform_scaling
from hodyn_ros.trajectory.jtc import jtc_motion

ROOT = Path(__file__).resolve().parents[2]
URDF = str(ROOT / 'urdf' / 'two_link.urdf')
NAMES = ['shoulder', 'elbow']


def trajectory(path, points=None, **changes):
    points = points or [
        {'positions': [0.05 * i**2, -0.1 * i], 'time_from_start': {'sec': i, 'nanosec': 0}}
        for i in range(4)
    ]
    for point in points:
        point.update(changes)
    path.write_text(yaml.safe_dump({'joint_names': NAMES, 'points': points}))
    return str(path)


def test_a_motion_that_jumps_is_not_approved(tmp_path, capsys):
    motion, page = trajectory(tmp_path / 'a.yaml'), tmp_path / 'a.html'
    assert run(['check', URDF, motion]) == 0
    words = [URDF, motion, '--interpolation', 'jtc']
    capsys.readouterr()
    assert run(['check', *words]) == 1
    assert run(['plot', *words, '-o', str(page)]) == 0
    for text in (capsys.readouterr().out, page.read_text(encoding='utf-8')):
        assert 'jump at waypoints' in text and 'limits are kept' not in text
    assert run(['check', *words, '--json']) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told['is_kept'], told['has_jumps']) == (False, True)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('module', 'arguments'),
    [
        ('plotly.offline', ['plot', URDF, 'motion.csv', '-o', 'a.html']),
        ('matplotlib.figure', ['plot', URDF, 'motion.csv']),
        ('clarabel', ['identify', URDF, 'motion.csv', '-o', 'a.urdf']),
        ('pyarrow', ['compute', URDF, 'motion.csv', '-o', 'a.parquet']),
        ('rosbags.rosbag2', ['compute', URDF, 'motion.csv', '-o', 'a.db3']),
        ('pyarrow', ['excite', URDF, '-o', 'a.parquet']),
    ],
)
def test_what_is_not_installed_is_missed_before_the_work(
    tmp_path, monkeypatch, capsys, module, arguments
):
    monkeypatch.chdir(tmp_path)
    for name in [name for name in sys.modules if name.startswith(f'{module}.')]:
        monkeypatch.delitem(sys.modules, name)  # that other tests have imported
    monkeypatch.setitem(sys.modules, module, None)
    Path('motion.csv').write_text('no motion')  # what the work would begin with
    assert run(arguments) == 2
    assert "pip install 'hodyn_ros[" in capsys.readouterr().err
    assert [path.name for path in Path().iterdir()] == ['motion.csv']


BOMB = 'a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n' + ''.join(
    f'a{k}: &a{k} [{", ".join(10 * [f"*a{k - 1}"])}]\n' for k in range(1, 9)
)
MERGES = 'm0: &m0 {x: 1}\n' + ''.join(
    f'm{k}: &m{k} {{<<: [{", ".join(9 * [f"*m{k - 1}"])}]}}\n' for k in range(1, 9)
)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('text', 'why'),
    [
        (BOMB, r'29 entries stand for 1.23e\+09'),
        (MERGES, 'aliases repeat some of them'),
        (
            'limits: &a {shoulder: {acceleration: 1.0}, b: *a}',
            'line 1 an alias is part of what',
        ),
    ],
)
@pytest.mark.parametrize('place', ['limits', 'motion'])
def test_aliases_cannot_make_a_small_file_large(tmp_path, capsys, text, why, place):
    given = {'limits': tmp_path / 'limits.yaml', 'motion': tmp_path / 'motion.yaml'}
    trajectory(given['motion'])
    given['limits'].write_text('limits: {shoulder: {acceleration: 1.0}}')
    given[place].write_text(text)
    arguments = ['check', URDF, str(given['motion']), '--config', str(given['limits'])]
    assert run(arguments) == 2
    assert re.search(why, capsys.readouterr().err)


def test_what_is_said_of_the_execution_holds_for_what_the_file_holds(tmp_path, capsys):
    motion, out = trajectory(tmp_path / 'a.yaml'), tmp_path / 'b.yaml'
    assert run(['retime', URDF, motion, '--uniform', '-o', str(out)]) == 0
    said = capsys.readouterr().err
    assert (
        'kept at any instant if positions, velocities and accelerations are executed'
        in said
    )
    samples = read_motion(out)
    model = RobotModel.from_urdf(URDF)
    motion = samples.in_order(model.joint_names)[0].motion
    assert motion.shape[1] == 3
    played = jtc_motion(samples.times, *(motion[:, k] for k in range(3)))
    # A trajectory has whole nanoseconds, which is all that the factor may lack.
    assert 0.999 < uniform_scaling(model, played).factor < 1.0 + 1e-4


def measured(path, step, noise=1e-5):
    """Positions that swing twice, rounded as by an encoder, or with noise if the step is zero."""
    times = np.arange(0.0, 4.0, 0.002)
    q = np.sin(np.pi * times)[:, None] * [0.8, 0.5]
    errors = noise * np.random.default_rng(0).standard_normal(q.shape)
    q = np.round(q / step) * step if step else q + errors
    head = 'time,' + ','.join(f'{name}.position' for name in NAMES)
    values = np.column_stack([times, q])
    np.savetxt(path, values, '%.9g', delimiter=',', header=head, comments='')
    return str(path)


ESTIMATE = ('--derivatives', 'estimate')


@pytest.mark.parametrize('errors', [(1e-4,), (0.0, 1e-3)], ids=str)
def test_estimated_motion_that_check_approves_is_not_stretched(errors, tmp_path, capsys):
    motion, out = measured(tmp_path / 'a.csv', *errors), str(tmp_path / 'b.csv')
    limits = tmp_path / 'limits.yaml'
    few = {name: {'jerk': 60.0, 'effort_dot': 400.0} for name in NAMES}
    limits.write_text(yaml.safe_dump({'limits': few}))
    words = [URDF, motion, *ESTIMATE, '--config', str(limits)]
    assert run(['check', *words]) == 0
    remarks = [line for line in capsys.readouterr().err.splitlines() if 'stimate' in line]
    assert len(remarks) == 1
    assert run(['retime', *words, '--uniform', '--slower-only', '-o', out]) == 0
    said = capsys.readouterr()
    assert ', 1 times as long' in said.out
    assert 'What is between them is not known' in said.err
    assert 'at any instant' not in said.err
    assert said.err.count(remarks[0]) == 1
    assert run(['check', URDF, out, '--config', str(limits)]) == 0


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('change', 'reason'),
    [
        ({'velocity': [0.0, 0.0]}, "unknown key 'velocity'"),
        ({'time_from_start': {'sec': 1, 'nano': 5}}, 'has the keys nano, sec'),
        ({'time_from_start': {}}, '(none)'),
    ],
)
def test_keys_that_nobody_reads_are_refused(tmp_path, capsys, change, reason):
    assert run(['check', URDF, trajectory(tmp_path / 'a.yaml', **change)]) == 2
    assert reason in capsys.readouterr().err


@pytest.mark.parametrize('step', [0.0, 1e-4], ids=['noise', 'encoder'])
def test_all_commands_take_noise_for_noise(step, tmp_path, capsys):
    motion = measured(tmp_path / 'a.csv', step)
    for command in ('compute', 'check'):
        assert run([command, URDF, motion]) == 0
        assert 'estimated from all measured positions' in capsys.readouterr().err
    # A path within the rounding of an encoder has none of its noise.
    assert run(['retime', URDF, motion]) == (0 if step else 2)
    said = capsys.readouterr().err
    assert ('numbers are rounded to about 0.0001' in said) == bool(step)
    assert ('follows all of their noise' in said) == (not step)
    assert ('--uniform --derivatives estimate' in said) == (not step)
