"""The benchmark of closed loops, in short."""

from pathlib import Path

import numpy as np
import pytest

from hodyn_ros import inverse_dynamics

ROOT = Path(__file__).resolve().parents[2]


def rows_of(table):
    return [line.split('  ')[0] for line in table.splitlines()[3:-1]]


def test_all_ways_return_the_same_efforts_and_accelerations(benchmark_module):
    pytest.importorskip('pinocchio', reason='Pinocchio (pip: pin) is not installed')
    case = benchmark_module.delta(12)
    expected = inverse_dynamics(case.model, case.motion)
    inverse, forward = benchmark_module.theirs(case)
    np.testing.assert_allclose(inverse.result(), expected[:, :1], rtol=1e-9, atol=1e-8)
    np.testing.assert_allclose(
        forward.result()[:, 0], case.whole[:, 2], rtol=1e-7, atol=1e-6
    )
    for entry in benchmark_module.ours(case):
        if entry.name.startswith('closed loops'):
            found = entry.result()
            assert found.shape[1] == entry.order + 1
            np.testing.assert_allclose(
                found, expected[:, : entry.order + 1], rtol=1e-9, atol=1e-7
            )


def test_command_writes_a_row_for_each_way(benchmark_module, tmp_path, capsys):
    output = tmp_path / 'some' / 'where'
    arguments = ['--rounds', '3', '--samples', '20', '-o', str(output)]
    assert benchmark_module.main(arguments) == 0
    text = (output / 'closed_loops.inc').read_text()
    assert text in capsys.readouterr().out
    page = (ROOT / 'doc' / 'benchmarks' / 'closed_loops.inc').read_text()
    assert rows_of(text)[-13:] == rows_of(page)[-13:]
    assert rows_of(page)[0] == benchmark_module.YARDSTICK


def test_benchmark_refuses_what_it_cannot_measure(benchmark_module, capsys):
    with pytest.raises(SystemExit):
        benchmark_module.main(['--rounds', '1'])
    assert 'at least three rounds' in capsys.readouterr().err
