"""The benchmark of batches, at its smallest."""

import importlib
from pathlib import Path

import pytest

pytest.importorskip('pyarrow')


@pytest.fixture
def batch(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2]))
    return importlib.import_module('benchmarks.batch')


@pytest.mark.slow
def test_benchmark_measures_all_runs_and_its_killed_run_comes_to_the_same(batch, tmp_path):
    size = batch.SIZES['tiny']
    said = []
    rows = batch.measure(size, tmp_path, said.append)
    assert [row.what for row in rows] == [
        'one motion a file',
        'all motions in one file',
        batch.ESTIMATED,
        'run again after a kill',
    ]
    total = size.files * size.samples
    assert [row.samples for row in rows[:2]] == [total, total]
    assert 0 < rows[2].samples <= size.files * size.measured
    assert rows[3].samples == total - size.samples * rows[3].kept
    assert all(row.worker_memory > 1e7 and row.own_memory > 1e7 for row in rows)
    lines = batch.text(rows).splitlines()
    assert sum('one motion a file' in line for line in lines) == 1


def test_results_that_differ_are_noticed(batch, tmp_path):
    for name in ('a', 'b'):
        (tmp_path / name / '_hodyn').mkdir(parents=True)
        (tmp_path / name / 'x.npz').write_text('same')
        (tmp_path / name / '_hodyn' / 'x.npz.json').write_text(name)
    assert batch.same_files(tmp_path / 'a', tmp_path / 'b')
    (tmp_path / 'b' / 'x.npz').write_text('else')
    assert not batch.same_files(tmp_path / 'a', tmp_path / 'b')
    (tmp_path / 'b' / 'x.npz').unlink()
    assert not batch.same_files(tmp_path / 'a', tmp_path / 'b')
