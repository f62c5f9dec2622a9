"""Files as loggers, planners and spreadsheets leave them are read, or refused by their cause."""

import numpy as np
import pytest

from hodyn_ros.errors import FileError
from hodyn_ros.files import (
    read_motion,
)

ROWS = '0,1,2\n0.1,1.5,2.5\n0.2,2,3\n'


def written(tmp_path, text, name='x.csv', encoding='utf-8'):
    (tmp_path / name).write_text(text, encoding=encoding)
    return tmp_path / name


@pytest.mark.every_case
@pytest.mark.parametrize(
    'titles',
    [
        't,a.position,b.position',
        '%time,a.position,b.position',
        '__time,/joint_states/a/position,/joint_states/b/position',
        'timestamp,a/position,b/position',
        'Time [s],a.position,b.position',
        '# column q0: a.position\n# column q1: b.position\ntime,q0,q1',
    ],
)
@pytest.mark.parametrize('delimiter', [',', ';', ' '])
def test_titles_of_loggers_are_read(tmp_path, titles, delimiter):
    if delimiter == ' ' and '[' in titles:
        return  # a title of its own
    head, _, last = titles.rpartition('\n')
    table = f'{last}\n{ROWS}'.replace(',', delimiter)
    found = read_motion(written(tmp_path, f'{head}\n{table}' if head else table))
    assert found.joint_names == ('a', 'b')
    np.testing.assert_array_equal(found.times, [0.0, 0.1, 0.2])
    np.testing.assert_array_equal(found.motion[:, 0], [[1.0, 2.0], [1.5, 2.5], [2.0, 3.0]])


def test_columns_aligned_by_spaces_are_read(tmp_path):
    text = 'time   a.position\n0      1\n0.1    -1.5\n0.2    2e-3\n'
    found = read_motion(written(tmp_path, text))
    np.testing.assert_array_equal(found.motion[:, 0, 0], [1.0, -1.5, 2e-3])


def test_other_titles_are_a_remark_and_a_column_named_time_is_the_time(tmp_path):
    path = written(tmp_path, f't,a/position,b.position\n{ROWS}')
    (remark,) = read_motion(path).remarks
    assert remark == 'Columns are read as t for time, a/position for a.position.'
    path = written(tmp_path, f'b/position,current,t\n{ROWS}')
    (remark,) = read_motion(path).remarks
    assert remark == 'Columns are read as b/position for b.position, t for time.'
    path = written(tmp_path, f'time,a.position,t\n{ROWS}')
    assert read_motion(path).remarks == ()


def test_columns_without_a_title_hinder_no_other(tmp_path):
    rows = ROWS.replace('\n', ',,\n')
    found = read_motion(written(tmp_path, f't,a_pos,b_pos,,\n{rows}'))
    np.testing.assert_array_equal(found.motion[:, 0], [[1.0, 2.0], [1.5, 2.5], [2.0, 3.0]])


@pytest.mark.parametrize('units', ['SI', '5', '["rad"]'])
def test_what_others_say_of_units_is_passed_over(tmp_path, units):
    path = written(tmp_path, f'# units: {units}\ntime,a.position,b.position\n{ROWS}')
    assert read_motion(path).joint_units == ()


def test_joints_alone_are_refused_with_the_title_that_they_should_have(tmp_path):
    with pytest.raises(
        FileError, match=r"such as 'yaw\.position'.*'# column yaw: yaw\.pos"
    ):
        read_motion(written(tmp_path, f't,yaw,shoulder\n{ROWS}'))


def test_samples_before_the_first_position_and_repeated_ones_are_left_out(tmp_path):
    rows = 'nan,1 0,nan 1,2 1,2 3,4 3,4'.split()
    lines = [f'{t},{row}' for t, row in zip((0.0, 0.1, 0.2, 0.2, 0.3, 0.3), rows)]
    path = written(tmp_path, '\n'.join(['time,a.position,b.position', *lines]))
    found = read_motion(path)
    np.testing.assert_array_equal(found.times, [0.2, 0.3])
    np.testing.assert_array_equal(found.motion[:, 0], [[1.0, 2.0], [3.0, 4.0]])
    early, twice = found.remarks
    assert early.endswith('left out: 2.')
    assert 'first is at 0.2 s' in twice


POINTS = """joint_names: [a, b]
    points:
    - {positions: [0, 1], time_from_start: {sec: 0, nanosec: 0}}
    - {positions: [1, 2], time_from_start: {sec: 1, nanosec: 0}}
"""
DISPLAY = f"""model_id: arm
trajectory:
- joint_trajectory:
    {POINTS}  multi_dof_joint_trajectory: {{joint_names: [], points: []}}
"""


def test_a_planned_path_as_moveit_displays_it_is_read(tmp_path):
    path = written(tmp_path, f'{DISPLAY}trajectory_start: {{}}\n---\n', 'x.yaml')
    found = read_motion(path)
    assert found.joint_names == ('a', 'b')
    np.testing.assert_array_equal(found.motion[:, 0], [[0.0, 1.0], [1.0, 2.0]])


def test_several_planned_paths_are_refused_by_their_number(tmp_path):
    twice = DISPLAY + DISPLAY[DISPLAY.index('- joint') :]
    with pytest.raises(FileError, match='list of 2, expected one trajectory; keep'):
        read_motion(written(tmp_path, twice, 'x.yaml'))


def test_nobody_is_told_to_load_objects_unsafely(tmp_path):
    path = written(tmp_path, 'no archive', 'x.npz')
    with pytest.raises(FileError, match='objects of Python') as caught:
        read_motion(path)
    assert 'pickle' not in str(caught.value)


@pytest.mark.parametrize('encoding', ['utf-16', 'utf-16-le'])
def test_text_of_spreadsheets_in_utf_16_is_named(tmp_path, encoding):
    path = written(tmp_path, f'time,ä.position,b.position\n{ROWS}', encoding=encoding)
    with pytest.raises(FileError, match='UTF-16'):
        read_motion(path)
