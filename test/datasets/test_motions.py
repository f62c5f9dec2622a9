"""Parquet files with many motions, told apart by a column."""

import json

import numpy as np
import pytest
from support.batch_tools import motion_of, table_of, two_link

from hodyn_ros import inverse_dynamics
from hodyn_ros.datasets import DatasetRun, process_files

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


@pytest.mark.parametrize(('chunk', 'part_rows'), [(50, 100), (10_000, 10**6), (1, 1)])
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


@pytest.mark.parametrize('chunk', [20, 10_000])
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
