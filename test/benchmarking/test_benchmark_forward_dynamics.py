"""The benchmark of forward dynamics, in short; times are not tested."""

import importlib
from pathlib import Path

import numpy as np
import pytest
from docutils.core import publish_doctree
from support.engine_cases import needs_compiler

import hodyn_ros

ROOT = Path(__file__).resolve().parents[2]

pytestmark = needs_compiler


@pytest.fixture
def benchmark_module(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(ROOT))
    compilation = importlib.import_module('benchmarks.compilation')
    monkeypatch.setattr(compilation, 'CACHE', tmp_path / 'cache')
    monkeypatch.setattr(compilation, 'FLAGS', ('-O0', '-fPIC', '-shared'))
    return importlib.import_module('benchmarks.forward_dynamics')


@pytest.fixture
def without_pinocchio(benchmark_module, monkeypatch):
    """Compiling the loops around Pinocchio takes minutes."""

    def absent(*_):
        raise benchmark_module.NotInstalled('it is left out')

    monkeypatch.setattr(benchmark_module.pinocchio_cpp, '_library', absent)


@pytest.fixture
def case(benchmark_module):
    return benchmark_module.cases.panda(30)


def tables(text):
    """Cells of each table: rows by the first one."""
    tree = publish_doctree(text, settings_overrides={'report_level': 1, 'halt_level': 2})
    return [
        {
            cells[0]: cells[1:]
            for row in table.findall(lambda node: node.tagname == 'row')
            if (cells := [entry.astext() for entry in row])
        }
        for table in tree.findall(lambda node: node.tagname == 'table')
    ]


def check(entries, case, orders):
    assert entries
    for entry in entries:
        entry.run()
        found = np.asarray(entry.result())
        expected = case.motion[: len(found), 2 : 2 + orders]
        assert found.shape == expected.shape
        assert np.abs(found - expected).max() < 1e-8, entry.name


def test_all_ways_return_the_accelerations_of_the_motion(benchmark_module, case):
    for orders in (1, 3):
        effort = benchmark_module.efforts(case, orders)
        check(benchmark_module.public(case, effort), case, orders)
        for which in benchmark_module.FORMS:
            check(benchmark_module.kernels(case, effort, which), case, orders)


def test_casadi_returns_them_too(benchmark_module, case):
    pytest.importorskip('casadi')
    effort = benchmark_module.efforts(case, 2)
    made = benchmark_module.casadi_forward.functions(case, 1)
    assert made.merged.n_instructions() < made.plain.n_instructions()
    check([benchmark_module.casadi_forward.contestant(case, effort, made.merged)], case, 2)


def test_pinocchio_called_from_python_returns_them_too(benchmark_module, case):
    pytest.importorskip('pinocchio')
    effort = benchmark_module.efforts(case, 3)
    check(benchmark_module.pinocchio_python.forward_dynamics(case, effort), case, 1)


@pytest.mark.slow
def test_loops_around_pinocchio_are_right(benchmark_module, case):
    peers = benchmark_module.pinocchio_cpp
    try:
        entries = peers.forward_dynamics(case, benchmark_module.efforts(case, 3))
        (regressor,) = peers.regressor(case)
        (partials,) = peers.partial_derivatives(case)
    except benchmark_module.NotInstalled as reason:
        pytest.skip(str(reason))
    check(entries, case, 1)
    n, motion = case.n, case.motion[:, :3]
    regressor.run()
    parameters = hodyn_ros.RobotModel.from_urdf('panda').inertial_parameters.reshape(n, 10)
    # Pinocchio has I_xx, I_xy, I_yy, I_xz, I_yz, I_zz.
    parameters = parameters[:, [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]].ravel()
    found = regressor.result().reshape(-1, n, 10 * n) @ parameters
    assert found == pytest.approx(hodyn_ros.inverse_dynamics(case.model, motion)[:, 0])
    partials.run()
    by_q, by_v, by_a = np.moveaxis(partials.result(), 1, 0).swapaxes(-1, -2)
    expected = hodyn_ros.inverse_dynamics_derivatives(case.model, motion)[:, 0]
    assert by_q == pytest.approx(expected[:, :, 0], abs=1e-9)
    assert by_v == pytest.approx(expected[:, :, 1], abs=1e-9)
    assert np.triu(by_a) == pytest.approx(np.triu(expected[:, :, 2]), abs=1e-9)


@pytest.mark.slow
def test_command_writes_tables_and_picture(
    benchmark_module, without_pinocchio, tmp_path, capsys
):
    pytest.importorskip('matplotlib')
    picture, output = tmp_path / 'a' / 'orders.png', tmp_path / 'some' / 'where'
    arguments = ['--size', 'tiny', '--picture', str(picture), '-o', str(output)]
    assert benchmark_module.main(arguments) == 0
    text = (output / 'forward_dynamics.inc').read_text()
    printed = capsys.readouterr().out
    assert text in printed and 'it is left out' in printed
    assert picture.stat().st_size > 1000
    panda, chains, orders = tables(text)
    assert {'regressor, orders 0-2, batch', 'mass matrix, orders 0, one by one'} < set(
        panda
    )
    assert 'articulated bodies, orders 0-2, batch' in chains
    assert list(orders)[1:] == ['0', '0-1']


def test_function_that_does_not_exist_is_not_measured(benchmark_module, case):
    with pytest.raises(benchmark_module.NotInstalled, match='imagined'):
        benchmark_module.term(case, 'imagined', 1)


def test_program_that_is_too_long_is_not_measured(benchmark_module):
    case = benchmark_module.cases.chain(20, 16)
    effort = np.zeros((16, 3, 20))
    with pytest.raises(benchmark_module.NotInstalled, match='too long'):
        benchmark_module.kernels(case, effort, 'mass matrix')


def test_documentation_shows_the_tables_of_a_full_run(benchmark_module):
    text = (ROOT / 'doc' / 'benchmarks' / 'forward_dynamics.inc').read_text()
    panda, chains, orders = tables(text)
    peers = benchmark_module.pinocchio_cpp
    assert {peers.ABA, peers.REGRESSOR, peers.DERIVATIVES} < set(panda)
    assert any('n = 112' in cells for cells in chains.values())
    assert len(orders) == 2 + benchmark_module.SIZES['full'].orders
