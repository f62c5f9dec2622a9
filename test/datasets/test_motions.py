"""Parquet files with many motions, told apart by a column."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.batch_tools import motion_of, table_of, two_link
from support.examples import EXPENSIVE

from hodyn_ros import actuators, inverse_dynamics
from hodyn_ros.datasets import DatasetRun, process_files
from hodyn_ros.datasets.inputs import find_parts
from hodyn_ros.datasets.worker import piecewise_rows
from hodyn_ros.files.parquet_table import ParquetTable

pa = pytest.importorskip('pyarrow')
pq = pytest.importorskip('pyarrow.parquet')
dataset = pytest.importorskip('pyarrow.dataset')

SHOULDER = [f'shoulder.effort{dot}' for dot in ('', '_dot', '_ddot')]
ELBOW = [f'elbow.effort{dot}' for dot in ('', '_dot', '_ddot')]


@pytest.fixture(scope='module')
def model():
    return two_link()


def write_motions(path, model, motions, row_group_size=64, column='motion', spoil=None):
    """Write motions (id: (length, seed)) one behind the other."""
    tables = []
    for identity, (length, seed) in motions.items():
        times, motion = motion_of(model, length, seed)
        if spoil is not None:
            spoil(identity, times, motion)
        table = table_of(model, times, motion)
        tables.append(table.append_column(column, pa.array([identity] * length)))
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.concat_tables(tables), path, row_group_size=row_group_size)


def assert_results(folder, model, motions, column='motion', name='all.parquet'):
    """Each motion has its rows, in their order, once."""
    table = dataset.dataset(folder / name, format='parquet').to_table().to_pydict()
    ids = np.array(table[column])
    assert list(dict.fromkeys(table[column])) == list(motions)
    for identity, (length, seed) in motions.items():
        times, motion = motion_of(model, length, seed)
        rows = ids == identity
        np.testing.assert_array_equal(np.array(table['time'])[rows], times)
        expected = inverse_dynamics(model, motion, algorithm='body_fixed')
        for joint, titles in enumerate((SHOULDER, ELBOW)):
            for order, title in enumerate(titles):
                found = np.array(table[title])[rows]
                scale = np.abs(expected).max()
                np.testing.assert_allclose(
                    found, expected[:, order, joint], rtol=0, atol=1e-12 * scale
                )


MOTIONS = {
    'a': (30, 1),
    'b': (7, 2),
    'c': (200, 3),
    'd': (1, 4),
    'e': (90, 5),
    'f': (33, 6),
}


@pytest.mark.parametrize(
    ('chunk', 'part_rows'), [(10_000, 100), (10_000, 10**6), (50, 100), (1, 1)]
)
def test_every_motion_has_its_rows_whatever_is_computed_together(
    chunk, part_rows, model, tmp_path, processed
):
    write_motions(tmp_path / 'in' / 'all.parquet', model, MOTIONS)
    summary = processed(
        model, motion_column='motion', chunk=chunk, part_rows=part_rows, suffix='.parquet'
    )
    assert summary.failed == 0
    assert (summary.samples, summary.motions) == (361, 6)
    assert (summary.total > 1) == (part_rows < 10**6)
    size = (tmp_path / 'in' / 'all.parquet').stat().st_size
    assert abs(summary.bytes_read - size) <= summary.total
    assert_results(tmp_path / 'out', model, MOTIONS)


def test_motion_ids_may_be_numbers_and_files_many(model, tmp_path, processed):
    for file in range(3):
        motions = {10 * file + i: (40, 10 * file + i) for i in range(3)}
        write_motions(tmp_path / 'in' / f'file{file}.parquet', model, motions, column='id')
    summary = processed(model, motion_column='id', workers=2, suffix='.parquet')
    assert (summary.total, summary.motions) == (3, 9)
    for file in range(3):
        motions = {10 * file + i: (40, 10 * file + i) for i in range(3)}
        assert_results(tmp_path / 'out', model, motions, 'id', f'file{file}.parquet')
    # The whole output folder is a data set, whatever else lies there.
    whole = dataset.dataset(tmp_path / 'out', format='parquet').to_table()
    assert sorted(set(whole['id'].to_pylist())) == sorted(
        10 * file + i for file in range(3) for i in range(3)
    )


@pytest.mark.parametrize('chunk', [10_000, 20])
def test_only_the_motion_that_fails_is_missing(chunk, model, tmp_path, processed):
    def spoil(identity, times, motion):
        if identity == 'c':
            motion[150, 0, 1] = np.nan
        if identity == 'e':
            times[40] = times[39]

    write_motions(tmp_path / 'in' / 'all.parquet', model, MOTIONS, spoil=spoil)
    options = {'motion_column': 'motion', 'workers': 0, 'chunk': chunk}
    summary = process_files(DatasetRun(model, tmp_path / 'in', tmp_path / 'out', **options))
    assert (summary.motions, summary.samples) == (4, 71)
    lines = summary.errors.read_text().splitlines()
    errors = {record['motion']: record['message'] for record in map(json.loads, lines)}
    assert set(errors) == {'c', 'e'}
    assert 'motion c: ' in errors['c']
    assert 'sample 150' in errors['c']
    assert 'times must increase' in errors['e']
    good = {name: MOTIONS[name] for name in 'abdf'}
    assert_results(tmp_path / 'out', model, good)

    # Once it is mended, nothing of what was there is left twice.
    write_motions(tmp_path / 'in' / 'all.parquet', model, MOTIONS)
    summary = process_files(DatasetRun(model, tmp_path / 'in', tmp_path / 'out', **options))
    assert summary.failed == 0
    assert_results(tmp_path / 'out', model, MOTIONS)


def test_results_of_a_file_that_has_become_useless_are_not_left(model, tmp_path, processed):
    for name in ('all', 'other'):
        write_motions(tmp_path / 'in' / f'{name}.parquet', model, MOTIONS)
    processed(model, motion_column='motion', part_rows=1, suffix='.parquet')
    (tmp_path / 'in' / 'other.parquet').write_bytes(b'PAR1')
    summary = processed(model, motion_column='motion', part_rows=1, suffix='.parquet')
    assert (summary.computed, summary.failed) == (0, 1)
    assert not (tmp_path / 'out' / 'other.parquet').exists()
    assert_results(tmp_path / 'out', model, MOTIONS)


def test_parts_that_there_are_no_more_disappear(model, tmp_path, processed):
    write_motions(tmp_path / 'in' / 'all.parquet', model, MOTIONS)
    many = processed(model, part_rows=1, motion_column='motion', suffix='.parquet')
    few = processed(model, part_rows=200, motion_column='motion', suffix='.parquet')
    assert many.total > few.total > 0
    assert_results(tmp_path / 'out', model, MOTIONS)
    one = processed(model, part_rows=10**6, motion_column='motion', suffix='.parquet')
    assert one.total == 1
    assert_results(tmp_path / 'out', model, MOTIONS)
    again = processed(model, part_rows=10**6, motion_column='motion', suffix='.parquet')
    assert (again.kept, again.computed, again.remarks) == (1, 0, ())


def test_output_may_change_from_folders_to_files_and_back(model, tmp_path, processed):
    write_motions(tmp_path / 'in' / 'all.parquet', model, {'a': (30, 1)})
    for column in ('motion', None, 'motion'):
        summary = processed(model, motion_column=column, suffix='.parquet')
        assert (summary.computed, summary.failed) == (1, 0)
        assert (tmp_path / 'out' / 'all.parquet').is_dir() == (column is not None)
    assert_results(tmp_path / 'out', model, {'a': (30, 1)})


def test_dampers_begin_anew_with_every_motion(model, tmp_path):
    spring = actuators.LinearSpring(500.0)
    damped = actuators.Actuators(
        model, {'elbow': actuators.SeriesElastic(spring, 0.1, damping=50.0)}
    )
    write_motions(tmp_path / 'both' / 'all.parquet', model, {1: (50, 1), 2: (50, 2)})
    write_motions(tmp_path / 'alone' / 'all.parquet', model, {2: (50, 2)})
    titles = ['elbow.deflection', 'elbow.motor_position']
    found = []
    for name in ('both', 'alone'):
        output = tmp_path / f'out_{name}'
        process_files(
            DatasetRun(
                model,
                tmp_path / name,
                output,
                motion_column='motion',
                workers=0,
                actuators=damped,
            )
        )
        table = dataset.dataset(output, format='parquet').to_table()
        rows = table['motion'].to_numpy() == 2
        found.append([table[title].to_numpy()[rows] for title in titles])
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize(
    ('ids', 'message'),
    [
        (['a', 'b', 'a'], 'rows of motion a do not follow each other (row 2'),
        ([1, None, 2], '1 rows have no motion id'),
        ([0.5, 0.5, 1.5], 'of type double, expected integers or text'),
    ],
)
def test_unusable_ids_are_an_error_of_that_file(ids, message, model, tmp_path, processed):
    times, motion = motion_of(model, 3, 0)
    table = table_of(model, times, motion)
    write_motions(tmp_path / 'in' / 'all.parquet', model, MOTIONS)
    pq.write_table(
        table.append_column('motion', pa.array(ids)), tmp_path / 'in' / 'bad.parquet'
    )
    pq.write_table(table, tmp_path / 'in' / 'without.parquet')
    words = table.set_column(2, 'elbow.position', pa.array(['x', 'y', 'z']))
    pq.write_table(
        words.append_column('motion', pa.array([1, 1, 2])),
        tmp_path / 'in' / 'words.parquet',
    )
    (tmp_path / 'in' / 'broken.parquet').write_bytes(b'PAR1')
    (tmp_path / 'in' / 'other.csv').write_bytes(b'time')
    summary = processed(model, motion_column='motion', suffix='.parquet')
    assert (summary.computed, summary.failed, summary.total) == (1, 5, 6)
    lines = summary.errors.read_text().splitlines()
    errors = {record['input']: record['message'] for record in map(json.loads, lines)}
    assert message in errors['bad.parquet']
    assert "no column 'motion' of motion ids" in errors['without.parquet']
    assert 'cannot be read as PARQUET' in errors['broken.parquet']
    assert (
        "'elbow.position' is of type string, expected numbers" in errors['words.parquet#0']
    )
    assert 'is no Parquet file' in errors['other.csv']
    assert_results(tmp_path / 'out', model, MOTIONS)


@EXPENSIVE
@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=12),
    group=st.integers(1, 50),
    part_rows=st.integers(1, 100),
)
def test_parts_are_whole_motions_and_rows_are_read_from_any_of_them(
    tmp_path_factory, lengths, group, part_rows
):
    path = tmp_path_factory.mktemp('parts') / 'all.parquet'
    ids = np.repeat(np.arange(len(lengths)), lengths)
    values = np.arange(len(ids), dtype=float)
    pq.write_table(pa.table({'x': values, 'id': ids}), path, row_group_size=group)
    parts = list(find_parts(path, 'id', part_rows))
    assert [motion for _, motions in parts for motion in motions] == list(
        enumerate(lengths)
    )
    row = 0
    for first, motions in parts:
        assert first == row
        row += sum(length for _, length in motions)
        assert row - first >= part_rows or row == len(ids)
        pieces = piecewise_rows(
            ParquetTable(path), [0], first, [length for _, length in motions]
        )
        for (_, length), piece in zip(motions, pieces):
            np.testing.assert_array_equal(piece[:, 0], values[first : first + length])
            first += length
    assert row == len(ids)
