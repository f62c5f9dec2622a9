"""Parquet files with many motions, told apart by a column."""

import json

import numpy as np
import pytest
from support.batch_tools import motion_of, table_of, two_link

from hodyn_ros import inverse_dynamics

pa = pytest.importorskip('pyarrow')
pq = pytest.importorskip('pyarrow.parquet')
dataset = pytest.importorskip('pyarrow.dataset')
pytestmark = pytest.mark.needs('pyarrow')


@pytest.fixture(scope='module')
def model():
    return two_link()


def write_motions(path, model, motions, spoil=None):
    """Write motions (id: (length, seed)) one behind the other."""
    tables = []
    for identity, (length, seed) in motions.items():
        times, motion = motion_of(model, length, seed)
        if spoil is not None:
            spoil(identity, times, motion)
        table = table_of(model, times, motion)
        tables.append(table.append_column('motion', pa.array([identity] * length)))
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.concat_tables(tables), path, row_group_size=64)


def assert_results(folder, model, motions):
    """Each motion has its rows, in their order, once."""
    table = dataset.dataset(folder / 'all.parquet', format='parquet').to_table().to_pydict()
    ids = np.array(table['motion'])
    assert list(dict.fromkeys(table['motion'])) == list(motions)
    for identity, (length, seed) in motions.items():
        times, motion = motion_of(model, length, seed)
        rows = ids == identity
        np.testing.assert_array_equal(np.array(table['time'])[rows], times)
        expected = inverse_dynamics(model, motion, algorithm='body_fixed')
        for joint, name in enumerate(model.joint_names):
            for order, dot in enumerate(('', '_dot', '_ddot')):
                found = np.array(table[f'{name}.effort{dot}'])[rows]
                near = 1e-12 * np.abs(expected).max()
                np.testing.assert_allclose(
                    found, expected[:, order, joint], rtol=0, atol=near
                )


LENGTHS = {'a': 30, 'b': 7, 'c': 200, 'd': 1, 'e': 90, 'f': 33}
MOTIONS = {name: (length, seed) for seed, (name, length) in enumerate(LENGTHS.items())}


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
    options = {'motion_column': 'motion', 'chunk': chunk, 'suffix': '.parquet'}
    summary = processed(model, **options)
    assert (summary.motions, summary.samples) == (4, 71)
    lines = summary.errors.read_text().splitlines()
    errors = {record['motion']: record['message'] for record in map(json.loads, lines)}
    assert set(errors) == {'c', 'e'}
    assert 'motion c: ' in errors['c'] and 'sample 150' in errors['c']
    assert 'times must increase' in errors['e']
    good = {name: MOTIONS[name] for name in 'abdf'}
    assert_results(tmp_path / 'out', model, good)

    # Once it is mended, nothing of what was there is left twice.
    write_motions(tmp_path / 'in' / 'all.parquet', model, MOTIONS)
    summary = processed(model, **options)
    assert summary.failed == 0
    assert_results(tmp_path / 'out', model, MOTIONS)
