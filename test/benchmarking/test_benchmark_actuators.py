"""The benchmark of motors behind elastic joints, in short."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def rows_of(table):
    return [line.split('  ')[0] for line in table.splitlines()[3:-1]]


def test_benchmark_has_a_row_for_each_kind_of_joint(benchmark_module, tmp_path, capsys):
    output = tmp_path / 'some' / 'where'
    assert (
        benchmark_module.main(['--rounds', '3', '--samples', '20', '-o', str(output)]) == 0
    )
    text = (output / 'actuators.inc').read_text()
    assert rows_of(text) == [benchmark_module.ALONE, *benchmark_module.KINDS]
    assert text in capsys.readouterr().out


def test_documentation_shows_the_table_of_a_full_run(benchmark_module):
    text = (ROOT / 'doc' / 'benchmarks' / 'actuators.inc').read_text()
    assert rows_of(text) == [benchmark_module.ALONE, *benchmark_module.KINDS]
    assert f'of {benchmark_module.SAMPLES}: µs each' in text


def test_benchmark_refuses_what_it_cannot_measure(benchmark_module, capsys):
    with pytest.raises(SystemExit):
        benchmark_module.main(['--rounds', '1'])
    assert 'at least three rounds' in capsys.readouterr().err
