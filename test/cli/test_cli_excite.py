"""`hodyn excite`: files like those of `hodyn compute`, what is said of a motion, and refusals."""

import pytest

from hodyn_ros.cli import run
from hodyn_ros.files import read_motion


@pytest.mark.parametrize('suffix', ['.mcap', '.yaml'])
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


@pytest.mark.every_case
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
