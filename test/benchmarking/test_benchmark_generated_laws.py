"""The benchmark of generated control laws runs, and its table has what it says."""

import importlib
from pathlib import Path

import pytest
from support.compilers import C_COMPILERS

pytestmark = pytest.mark.skipif(not C_COMPILERS, reason='there is no C compiler')


@pytest.fixture
def benchmark_module(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2]))
    return importlib.import_module('benchmarks.generated_laws')


@pytest.mark.slow
def test_benchmark_writes_its_table(benchmark_module, tmp_path, capsys, monkeypatch):
    core = pytest.importorskip('docutils.core')
    monkeypatch.setattr(benchmark_module, 'TIMES', 30)
    path = tmp_path / 'generated_laws.inc'
    assert benchmark_module.main(['--size', 'tiny', '-o', str(path)]) == 0
    text = path.read_text()
    assert text in capsys.readouterr().out
    document = core.publish_doctree(text, settings_overrides={'report_level': 5})
    assert document.parse_messages == []
    for law in benchmark_module.LAWS:
        rows = [line for line in text.splitlines() if line.startswith(law)]
        assert [row.removeprefix(law).split()[:2] for row in rows] == [
            ['0', 'ms'],
            ['2', 'ms'],
        ]
        for row in rows:
            *_, python, longest_python, c, longest_c, _ = map(float, row.split()[-5:])
            assert 0.0 < python <= longest_python
            assert 0.0 < c <= longest_c
