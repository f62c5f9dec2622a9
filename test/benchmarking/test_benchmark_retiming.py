"""The benchmark of time laws runs, and its parts do what they say."""

import importlib

import numpy as np
import pytest

from hodyn_ros.model.limits import find_violations


@pytest.fixture
def execution_module(benchmark_module):
    return importlib.import_module('benchmarks.execution')


def test_executed_motions_keep_the_torque_rate_by_pinocchio(
    execution_module, tmp_path, capsys
):
    core = pytest.importorskip('docutils.core')
    pytest.importorskip('pinocchio')
    path = tmp_path / 'execution.inc'
    assert execution_module.main(['--size', 'tiny', '-o', str(path)]) == 0
    text = path.read_text()
    assert text in capsys.readouterr().out
    document = core.publish_doctree(text, settings_overrides={'report_level': 5})
    assert document.parse_messages == []
    lines = [line for line in text.splitlines() if line.startswith('Panda')]
    assert len(lines) == execution_module.SIZES['tiny'][0]


def test_motion_with_rests_is_executed_within_its_limits(execution_module):
    pytest.importorskip('pinocchio')
    case = execution_module.cases()[1]
    found = execution_module.executed(case, 32)
    assert 0.3 < found.steps[0] <= 1.0 + 1e-6
    assert found.steps[1] <= 1.0
    assert 0.99 < found.of_limits <= 1.0 + 1e-6
    assert found.standstill == pytest.approx(0.6)
    assert found.at_ends < 1e-9
    assert found.second < 1e5
    # The check itself sees a motion that is too fast.
    times, rows = 0.9 * np.arange(0.0, 0.5, 1e-3), np.zeros((500, 3, 7))
    rows[:, :, 0] = np.stack(
        [
            t ** (3 - k) * c
            for k, c in enumerate((1e3, 3e3, 6e3))
            for t in [np.arange(0.0, 0.5, 1e-3)]
        ],
        axis=1,
    )
    assert execution_module.largest_step(case, times, rows) > 1.0


def test_benchmark_writes_its_table_with_or_without_toppra(
    benchmark_module, tmp_path, capsys
):
    core = pytest.importorskip('docutils.core')
    path = tmp_path / 'folder' / 'retiming.inc'
    assert benchmark_module.main(['--size', 'tiny', '-o', str(path)]) == 0
    text = path.read_text()
    assert text in capsys.readouterr().out
    document = core.publish_doctree(text, settings_overrides={'report_level': 5})
    assert document.parse_messages == []
    for name in ('uniform_scaling', 'retime, all limits', 'toppra: torque alone'):
        assert name in text


def test_paths_of_the_benchmark_keep_the_positions(benchmark_module):
    _, model, limits = benchmark_module.panda()
    for path in benchmark_module.paths(model, 3):
        q = path(np.linspace(0.0, path.end_time, 5001), 0)[:, 0]
        assert np.all((q >= limits.lower) & (q <= limits.upper))


def test_torque_rates_of_the_benchmark_are_those_of_inverse_dynamics(benchmark_module):
    _, model, _ = benchmark_module.panda()
    path = benchmark_module.paths(model, 1)[0]
    t = np.linspace(0.0, path.end_time, 20_001)
    exact = np.abs(benchmark_module.inverse_dynamics(model, path(t))[:, 1]).max()
    found = benchmark_module.torque_rate(model, path, path.end_time, 1e-3)
    assert found == pytest.approx(exact, rel=1e-2)


@pytest.mark.parametrize('seed', range(5))
def test_law_of_constant_accelerations_has_consistent_derivatives(seed, benchmark_module):
    _, model, _ = benchmark_module.panda()
    path = benchmark_module.paths(model, 1)[0]
    random = np.random.default_rng(seed)
    places = np.linspace(path.start_time, path.end_time, 9)
    law = benchmark_module.toppra_law.Law(
        path, places, np.append(0.0, random.uniform(0.1, 1.0, 8))
    )
    h = 1e-6
    t = random.uniform(h, law.duration - h, 40)
    slow, fast = law(t - h), law(t + h)
    motion = law(t)
    # The acceleration may jump in between, the velocity not.
    np.testing.assert_allclose((fast - slow)[:, 0] / (2.0 * h), motion[:, 1], atol=1e-4)
    near = np.abs(fast[:, 2] - slow[:, 2]).max(axis=1) < 1e-3
    assert near.sum() > 30
    rates = (fast - slow)[near, 1] / (2.0 * h)
    np.testing.assert_allclose(rates, motion[near, 2], atol=1e-3)


def test_toppra_keeps_the_torque_limits_and_breaks_the_torque_rate(benchmark_module):
    pytest.importorskip('toppra')
    _, model, limits = benchmark_module.panda()
    path = benchmark_module.paths(model, 1)[0]
    law = benchmark_module.toppra_law.solver(model, limits, only_torque=False)(path)
    motion = law(np.linspace(0.0, law.duration, 5001))
    effort = benchmark_module.inverse_dynamics(model, motion)
    loose = limits._replace(
        effort=1.01 * limits.effort,
        velocity=1.01 * limits.velocity,
        acceleration=1.01 * limits.acceleration,
    )
    assert find_violations(model, loose, motion, effort) == ()
    coarse, fine = (
        benchmark_module.torque_rate(model, law, law.duration, step)
        for step in (1e-3, 1e-4)
    )
    assert fine > 3.0 * coarse > 3.0 * benchmark_module.EFFORT_DOT
