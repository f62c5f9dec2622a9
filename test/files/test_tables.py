"""Tables and trajectories: what is written comes back, and what is wrong is said."""

import csv
import sys
from dataclasses import replace

import numpy as np
import pytest
from support.io_cases import START, results

from hodyn_ros.errors import FileError, JointNameError, MotionError
from hodyn_ros.files import (
    Samples,
    read_motion,
    read_results,
    write_results,
)
from hodyn_ros.model import Provenance

PARQUET = pytest.param('.parquet', marks=pytest.mark.needs('pyarrow'))


@pytest.fixture(params=['.csv', '.npz', PARQUET])
def table(request, tmp_path):
    return tmp_path / f'table{request.param}'


def test_deviations_come_back_and_stay_unknown_where_they_are(table):
    whole = results()
    motion_std, effort_std = 0.1 + np.abs(whole.motion), 0.2 + np.abs(whole.effort)
    effort_std[3, 1:] = np.nan
    write_results(table, replace(whole, motion_std=motion_std, effort_std=effort_std))
    found = read_results(table)
    np.testing.assert_array_equal(found.motion_std, motion_std)
    np.testing.assert_array_equal(found.effort_std, effort_std)
    write_results(table, whole)
    assert read_results(table).motion_std is None


def test_expression_of_wrenches_can_be_said_by_the_reader(table):
    write_results(table, results())
    found = read_motion(table, expressed_in='spatial', acting='on_environment')
    assert [w.expressed_in for w in found.wrenches] == ['spatial', 'spatial']
    with pytest.raises(FileError, match='expected one of body, spatial, hybrid'):
        read_motion(table, expressed_in='world')


@pytest.mark.every_case
@pytest.mark.parametrize('library', ['pyarrow.csv', 'nothing'])
def test_csv_is_exact_with_and_without_pyarrow(tmp_path, monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)  # as if it were not installed
    bits = np.random.default_rng(0).integers(0, 2**63, 20_000, dtype='u8').view('f8')
    numbers = np.where(np.isfinite(bits), bits, -0.0)
    edges = 0.0, -0.0, 5e-324, -2.2250738585072014e-308, np.finfo('f8').max, 1e22, 1e16, 0.1
    numbers[: len(edges)] = edges
    numbers[1::2] *= -1.0
    motion = numbers.reshape(-1, 2, 2)
    motion[7, 1] = np.nan
    path = tmp_path / 'x.csv'
    write_results(path, Samples(('a', 'b'), np.arange(len(motion)), motion, motion[:, :1]))
    found = read_motion(path).motion
    assert ((found.view('u8') == motion.view('u8')) | np.isnan(motion)).all()
    assert np.isnan(found[7, 1]).all()
    # The same text, with the numbers of Python.
    text = path.read_bytes()
    monkeypatch.undo()
    write_results(path, Samples(('a', 'b'), np.arange(len(motion)), motion, motion[:, :1]))
    assert path.read_bytes() == text
    _, *rows = (line.split(',') for line in path.read_text().splitlines())
    theirs = np.array([[float(cell or 'nan') for cell in row] for row in rows])
    np.testing.assert_array_equal(theirs[:, 1:5], motion.reshape(-1, 4))


@pytest.mark.every_case
@pytest.mark.parametrize('cell', ['null', 'N/A', '0x1', '1 2', '1e'])
def test_words_that_others_take_for_numbers_are_refused_with_and_without_pyarrow(
    tmp_path, monkeypatch, cell
):
    path = tmp_path / 'x.csv'
    path.write_text(f'time,a.position,a.velocity\n0,1,2\n1,2,{cell}\n')
    messages = []
    for installed in (True, False):
        with monkeypatch.context() as patch:
            if not installed:
                patch.setitem(sys.modules, 'pyarrow.csv', None)
            with pytest.raises(FileError, match="line 3, column 'a.velocity'") as caught:
                read_motion(path)
            messages.append(str(caught.value))
    assert messages[0] == messages[1]


@pytest.mark.every_case
@pytest.mark.parametrize(
    'arrays, message',
    [
        ({'q': np.zeros((3, 2))}, r"such as 'q\.position'.* the columns are time, q"),
        ({'time': None, 'position': np.zeros((3, 2))}, "no column 'time'"),
        ({'motion': np.zeros((4, 1, 2))}, r'has shape .4,., but time has .3,.'),
        ({'motion': np.zeros((3, 2, 3))}, 'n = 2 as there are joint_names: a, b'),
        (
            {'motion': np.zeros((3, 1, 2)), 'position': np.ones((3, 2))},
            "'position' and another array hold 'a.position'",
        ),
    ],
)
def test_npz_with_wrong_arrays_is_refused(tmp_path, arrays, message):
    every = {'time': np.arange(3), 'joint_names': np.array(['a', 'b']), **arrays}
    given = {name: values for name, values in every.items() if values is not None}
    np.savez(tmp_path / 'x.npz', **given)
    with pytest.raises(FileError, match=message):
        read_motion(tmp_path / 'x.npz')


def test_csv_may_have_more_columns_in_any_order_and_quotes(tmp_path):
    path = tmp_path / 'x.csv'
    path.write_text(
        '\ufeff# recorded: by hand\n"b.position";remark;time;"a.position"\n'
        '1;"one";0;2\n\n"3";two;1;4\n',
        encoding='utf-8',
    )
    found = read_motion(path)
    assert found.joint_names == ('b', 'a')
    np.testing.assert_array_equal(found.times, [0.0, 1.0])
    np.testing.assert_array_equal(found.motion[:, 0], [[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize('library', ['pyarrow.csv', 'nothing'])
def test_text_beside_numbers_is_passed_over_but_counted(tmp_path, monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)  # as if it were not installed
    path = tmp_path / 'x.csv'
    path.write_text('mode,a.position,time\nruns,1.5,0\n\nstops,2.5,1\n')
    found = read_motion(path)
    np.testing.assert_array_equal(found.times, [0.0, 1.0])
    np.testing.assert_array_equal(found.motion[:, 0, 0], [1.5, 2.5])
    path.write_text('time,a.position,mode\n0,1.5,runs\n1,2.5\n2,3.5,stops,again\n')
    with pytest.raises(FileError, match='line 3: 2 cells, expected 3'):
        read_motion(path)


AB = 'time,a.position'


@pytest.mark.every_case
@pytest.mark.parametrize(
    'text, message',
    [
        ('x,a.position\n0,1', "no column 'time' .* the columns are x, a.position"),
        (
            'tme,stamp,a.position\n0,1,1',
            r'tme \(did you mean time\?\), stamp, a.position\.',
        ),
        ('x,stamp,a.position\n0,1,1', r'x, stamp \(did you mean time\?\), a.position\.'),
        ('time,a\n0,1', "expected columns such as 'a.position'"),
        (f'{AB},b.velocity\n0,1,2', 'b have derivatives, but no position'),
        (f'{AB},b.position,a.velocity\n0,0,0,0', 'not b.velocity'),
        (f'{AB},a.position\n0,1,2', 'a.position stand there more than'),
        (f'{AB}\n0,"1,5"', "'a.position': '1,5', expected a number with a point"),
        (f'{AB}\n0,1\n1,nan', "position of joint 'a' is nan at sample 1"),
        (f'{AB}\n0,nan\n1,', 'none of 2 samples has the positions of all joints'),
        (f'{AB}\n0,1\ninf,2', 'time is inf at sample 1'),
        (AB, 'holds no samples'),
        (f'{AB},l.wrench.force.x\n0,1,2', 'but not l.wrench.torque.x'),
        (
            'time [s],a.position [inch]\n0,1',
            r"'a.position' is in \[inch\], expected \[rad\] or \[m\]",
        ),
        (
            '0.0,1e-3,-0.5\n0.1,2e-3,-0.4',
            'line with the names of the columns is missing',
        ),
    ],
)
def test_csv_with_a_mistake_is_refused_with_its_place(tmp_path, text, message):
    path = tmp_path / 'x.csv'
    path.write_text(text + '\n')
    with pytest.raises(FileError, match=message) as caught:
        read_motion(path)
    assert str(path) in str(caught.value)


def test_yaml_trajectory_comes_back_as_waypoints(tmp_path):
    written = results(motors=False, wrenches=False)
    write_results(tmp_path / 'x.yaml', written)
    found = read_motion(tmp_path / 'x.yaml')
    assert found.is_waypoints
    assert found.start == START
    np.testing.assert_allclose(found.times, written.times, rtol=0, atol=0.51e-9)
    np.testing.assert_array_equal(found.motion, written.motion[:, :3])


def test_positions_alone_are_written_as_yaml_too(tmp_path):
    motion = np.random.default_rng(2).normal(size=(5, 1, 2))
    write_results(tmp_path / 'x.yaml', Samples(('a', 'b'), np.arange(5.0), motion))
    np.testing.assert_array_equal(read_motion(tmp_path / 'x.yaml').motion, motion)


def test_yaml_as_ros2_topic_echo_prints_it_is_read(tmp_path):
    path = tmp_path / 'x.yml'
    path.write_text(
        'header:\n  stamp:\n    sec: 5\n    nanosec: 7\n  frame_id: base\n'
        'joint_names:\n- a\n- b\npoints:\n'
        '- positions:\n  - 0.0\n  - 1.0\n  velocities: []\n  accelerations: []\n  effort: []\n'
        '  time_from_start:\n    sec: 0\n    nanosec: 0\n'
        '- positions:\n  - 0.5\n  - 1e-3\n  velocities: [0.0, 0.0]\n  accelerations: []\n'
        '  effort: []\n  time_from_start:\n    sec: 1\n    nanosec: 500000000\n---\n'
    )
    found = read_motion(path)
    assert found.joint_names == ('a', 'b')
    assert found.start == 5_000_000_007
    np.testing.assert_array_equal(found.times, [0.0, 1.5])
    nan = np.nan
    expected = [[[0.0, 1.0], [nan, nan]], [[0.5, 1e-3], [0.0, 0.0]]]
    np.testing.assert_array_equal(found.motion, expected)


@pytest.mark.every_case
@pytest.mark.parametrize(
    'text, message',
    [
        ('joint_names: [a]\npoints: []', "'points' is a list of 0"),
        (
            'joint_names: [a]\npoints: [{positions: [1]}]',
            r'points\[0\].time_from_start is missing',
        ),
        (
            'joint_names: [a]\npoints: [{time_from_start: 0, positions: [x]}]',
            r"points\[0\].positions\[0\] is 'x', expected a finite number",
        ),
        (
            'joint_names: [a]\npoints: [{time_from_start: 0, positions: [1, 2]}]',
            r'points\[0\].positions has 2 values, expected 1',
        ),
        (
            'joint_names: [a, a]\npoints: [{time_from_start: 0, positions: [1, 2]}]',
            'more than once',
        ),
        ('!!python/object/apply:os.system [ls]', 'cannot be read as YAML'),
    ],
)
def test_yaml_with_a_mistake_is_refused(tmp_path, text, message):
    path = tmp_path / 'x.yaml'
    path.write_text(text)
    with pytest.raises((FileError, JointNameError), match=message):
        read_motion(path)


def test_a_file_without_efforts_holds_no_results(tmp_path):
    path = tmp_path / 'x.csv'
    path.write_text(f'{AB}\n0,1\n')
    with pytest.raises(FileError, match="no efforts; expected columns such as 'a.effort'"):
        read_results(path)


def test_a_writer_that_fails_leaves_the_old_file_and_nothing_else(table):
    write_results(table, results())
    before = table.read_bytes()
    with pytest.raises(FileError, match='times must increase'):
        write_results(table, replace(results(seed=1), times=np.zeros(40)))
    assert table.read_bytes() == before
    assert [path.name for path in table.parent.iterdir()] == [table.name]


def test_a_file_larger_than_memory_is_refused_with_both_figures(tmp_path):
    path = tmp_path / 'x.csv'
    path.write_text(f'{AB}\n0.001,1.25\n')
    with path.open('r+b') as file:
        file.truncate(10**13)  # sparse
    with pytest.raises(FileError, match=r'about \S+ GB of memory are needed, but \S+ GB'):
        read_motion(path)


def test_units_and_provenance_come_back(table):
    made = Provenance(
        'arm', '/home/me/arm.urdf', 64 * 'a', ('gravity 0 0 0', 'up to tool'), '9'
    )
    written = replace(results(), joint_units=('rad', 'm'), provenance=made)
    write_results(table, written)
    found = read_results(table)
    assert found.units == written.units
    assert found.units['effort'][1] == ('N m/s', 'N/s')
    assert found.units['motor_position'][2] == ('rad/s^2', 'm/s^2', 'm/s^2')
    # Folders are private.
    assert found.provenance == replace(made, file='arm.urdf')


def test_text_begins_with_the_names_and_units_of_its_columns(tmp_path):
    written = replace(results(), joint_units=('rad', 'm'))
    write_results(tmp_path / 'x.csv', written)
    lines = (tmp_path / 'x.csv').read_text().splitlines()
    assert lines[:3] == [f'# start: {START}', '# source: given', '# base_link: base']
    rows = list(csv.DictReader(line for line in lines if not line.startswith('#')))
    for title, values in {
        'elbow_motor2.motor_position [m] motor of elbow': written.motors.position[:, 0, 2],
        'tool.wrench.force.x [N] hybrid on_robot': written.wrenches[0].values[:, 0, 3],
    }.items():
        assert [float(row[title]) for row in rows] == values.tolist()
    # What the numbers mean does not depend on the lines before them.
    (tmp_path / 'x.csv').write_text('\n'.join(lines[3:]))
    found = read_results(tmp_path / 'x.csv')
    assert found.wrenches[0].expressed_in == 'hybrid'
    assert (found.motor_joints, found.joint_units) == (written.motor_joints, ('rad', 'm'))
    assert (found.start, found.source, found.provenance) == (0, 'unknown', Provenance())


@pytest.mark.every_case
@pytest.mark.parametrize(
    'changes, message',
    [
        ({'joint_names': ('a', 'a')}, 'a more than once'),
        ({'times': np.zeros((3, 1))}, 'expected .N,.'),
        ({'motion': np.zeros((3, 2))}, r'expected \(3, K, 2\)'),
        ({'motion': np.full((3, 1, 2), np.inf)}, "position of joint 'a' is inf"),
        ({'effort': np.zeros((3, 3))}, r'expected .3, orders, 2., or .3, 2.'),
        ({'stiffness': {'a': np.zeros(3)}}, "stiffness of 'a' has shape"),
    ],
)
def test_samples_that_contradict_themselves_are_refused(changes, message):
    fields = {
        'joint_names': ('a', 'b'),
        'times': np.arange(3.0),
        'motion': np.zeros((3, 1, 2)),
        **changes,
    }
    with pytest.raises((MotionError, JointNameError), match=message):
        Samples(**fields)
