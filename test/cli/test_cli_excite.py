"""`hodyn excite`: files like those of `hodyn compute`, what is said of a motion, and refusals."""

import json

import numpy as np
import pytest

from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.cli.main import run
from hodyn_ros.files import read_motion

NAMES = ('shoulder', 'elbow')


@pytest.fixture(scope='module')
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp('excite') / 'motion.csv'
    words = ['--duration', '8', '--rate', '50', '--effort-noise', '0.2']
    assert run(['excite', 'two_link', '-o', str(path), *words]) == 0
    return path


def test_the_file_holds_positions_to_snap_and_torques(written):
    samples = read_motion(written)
    assert samples.motion.shape == (401, 5, 2) and samples.joint_names == NAMES
    assert samples.times[-1] == 8.0
    # The file says the same as other commands do.
    head, *rows = written.read_text().splitlines()
    titles = [title.partition(' [')[0] for title in head.split(',')]
    columns = dict(zip(titles, np.array([row.split(',') for row in rows], float).T))
    expected = inverse_dynamics(RobotModel.from_urdf('two_link'), samples.motion)
    for j, name in enumerate(NAMES):
        for m, order in enumerate(('effort', 'effort_dot', 'effort_ddot')):
            np.testing.assert_allclose(
                columns[f'{name}.{order}'], expected[:, m, j], atol=1e-9
            )


def test_the_motion_keeps_the_limits_by_another_command(written, capsys):
    assert run(['check', 'two_link', str(written), '--json']) == 0
    shares = [
        share
        for check in json.loads(capsys.readouterr().out)['used']
        for share in check['shares'].values()
        if share is not None
    ]
    assert 0.5 < max(shares) <= 0.801


@pytest.mark.parametrize('suffix', ['.yaml', '.npz', '.mcap'])
def test_other_kinds_of_files_are_written(tmp_path, suffix):
    path = tmp_path / f'motion{suffix}'
    words = ['--target', 'friction', '--duration', '6', '--rate', '20']
    assert run(['excite', 'two_link', '-o', str(path), *words]) == 0
    assert len(read_motion(path)) == 121


def test_for_people_it_says_what_to_expect_and_what_is_used(tmp_path, capsys):
    words = [
        '--target',
        'payload',
        '--link',
        'panda_link8',
        '--rate',
        '100',
        '--duration',
        '8',
    ]
    assert run(['excite', 'panda', '-o', str(tmp_path / 'motion.npz'), *words]) == 0
    text = capsys.readouterr().out
    assert 'panda: 8 s from rest to rest, 10 parameters, condition number' in text
    for row in ('mass ', 'first moment ', 'inertia ', 'velocity ', 'torque rate '):
        assert f'  {row}' in text
    assert 'motion.npz (801 samples)' in text


def test_for_programs_it_says_the_same(tmp_path, capsys):
    words = ['--target', 'friction', '--joint', 'elbow', '--duration', '6', '--json']
    assert run(['excite', 'two_link', '-o', str(tmp_path / 'motion.csv'), *words]) == 0
    data = json.loads(capsys.readouterr().out)
    assert list(data['std']) == ['elbow viscous', 'elbow coulomb', 'elbow offset']
    assert data['condition'] >= 1.0 and data['duration'] == 6.0
    used = {each['quantity']: each for each in data['used']}
    assert used['velocity']['name'] == 'elbow' and 0.1 < used['velocity']['share'] <= 0.8


@pytest.mark.parametrize(
    ('words', 'expected'),
    [
        (['--target', 'springs'], 'series elastic'),
        (['--joint', 'wrist'], 'expected some of shoulder, elbow'),
        (['--box', '0', '0', '0', '1e-3', '1e-3', '1e-3'], 'No pose was found'),
    ],
)
def test_refusals_leave_no_file(tmp_path, capsys, words, expected):
    path = tmp_path / 'motion.csv'
    assert run(['excite', 'two_link', '-o', str(path), *words]) == 2
    assert expected in capsys.readouterr().err
    assert not path.exists()
