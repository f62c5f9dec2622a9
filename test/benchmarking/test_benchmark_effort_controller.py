"""Torques carried on by their derivatives are nearer to the exact ones, and so is the robot."""

import numpy as np
import pytest
from support.compilers import CPP_COMPILERS

pytest.importorskip('pinocchio')
pytest.importorskip('matplotlib')

pytestmark = pytest.mark.skipif(not CPP_COMPILERS, reason='there is no C++ compiler')


def test_benchmark_writes_its_table_and_picture(benchmark_module, tmp_path, capsys):
    core = pytest.importorskip('docutils.core')
    table, picture = tmp_path / 'table.inc', tmp_path / 'picture.png'
    arguments = ['--size', 'tiny', '-o', str(table), '--picture', str(picture)]
    assert benchmark_module.main(arguments) == 0
    text = table.read_text()
    assert text in capsys.readouterr().out
    document = core.publish_doctree(text, settings_overrides={'report_level': 5})
    assert document.parse_messages == []
    assert picture.read_bytes().startswith(b'\x89PNG')


def test_each_derivative_brings_torques_nearer_to_the_exact_ones(benchmark_module):
    runs = {(run.name, run.how): run for run in benchmark_module.measure(0.2)}
    exact = runs.pop(('exact', ''))
    assert not exact.torque.any()
    for rate in benchmark_module.RATES:
        errors = [
            np.sqrt(np.mean(runs[f'controller, {rate} Hz', how].torque ** 2))
            for how in benchmark_module.ORDERS
        ]
        assert errors[2] < errors[1] < errors[0]
    assert np.abs(exact.error).max() < 1e-3


def test_a_message_counts_from_the_tick_at_which_it_is_there(benchmark_module):
    exact = np.arange(20.0)[:, None, None] * np.ones((20, 3, 7))
    direct = benchmark_module.commanded(None, 1000, exact)
    assert direct[1:, 0] == pytest.approx(np.arange(19.0))
