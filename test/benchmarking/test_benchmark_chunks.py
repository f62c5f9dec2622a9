"""The benchmark of chunks runs, and the controller that it compares with does what it says."""

import importlib

import numpy as np
import pytest


def test_benchmark_writes_its_table(benchmark_module, tmp_path, capsys):
    core = pytest.importorskip('docutils.core')
    path = tmp_path / 'folder' / 'chunks.inc'
    assert benchmark_module.main(['--size', 'tiny', '-o', str(path)]) == 0
    text = path.read_text()
    assert text in capsys.readouterr().out
    document = core.publish_doctree(text, settings_overrides={'report_level': 5})
    assert document.parse_messages == []
    rates = {
        line[len('20 Hz of 16') :].partition(' N m/s')[0].rpartition('  ')[::2]
        for line in text.splitlines()
        if line.startswith('20 Hz')
    }
    found = {name.strip(): float(rate) for name, rate in rates}
    assert found['here'] < 1000.0 < 0.01 * found['controller, linear']


@pytest.mark.parametrize('upsampling', [False, True])
def test_controller_goes_from_what_is_commanded_to_the_next_point(
    benchmark_module, upsampling
):
    controller = benchmark_module.Controller(upsampling)
    times = 0.1 * np.arange(5.0)
    positions = benchmark_module.HOME + np.linspace(0.0, 1.0, 5)[:, None]
    _, first = controller.follow(0.05, times, positions)
    begin, second = controller.follow(0.25, 0.2 + times, positions[::-1] + 0.1)
    assert begin == 0.25
    np.testing.assert_allclose(first(np.array([0.05, 0.1]))[:, 0], [0.0, 0.25])
    before, behind = first(np.array([0.2499, 0.25])), second(np.array([0.25, 0.2501]))
    np.testing.assert_allclose(before[1], behind[0])
    np.testing.assert_allclose(second(np.array([0.3, 0.9]))[:, 0], [0.85, 0.1], atol=1e-12)
    speeds = np.diff(before[:, 0]) / 1e-4, np.diff(behind[:, 0]) / 1e-4
    assert np.allclose(*speeds, rtol=0.02) == upsampling


def test_jumps_at_splices_and_lag_are_seen(benchmark_module):
    class Delayed:
        def follow(self, arrival, times, positions):
            kink = 0.0 if arrival < 1.5 else 0.1
            return (
                arrival,
                lambda t: benchmark_module.task(t - 0.02) + kink * (t - 1.5)[:, None],
            )

    _, model, _ = benchmark_module.panda()
    given = [(begin, np.array([begin, 4.0]), None) for begin in (0.0, 1.5)]
    found = benchmark_module.played(model, Delayed(), given)
    assert found.velocity_jump == pytest.approx(0.1, rel=0.05)
    assert found.acceleration_jump == pytest.approx(100.0, rel=0.05)
    given = given[:1] * 2
    found = benchmark_module.played(model, Delayed(), given)
    assert found.lag == pytest.approx(0.02)
    assert found.error < 1e-12


def test_limits_are_kept_by_the_torques_of_pinocchio(benchmark_module):
    pytest.importorskip('pinocchio')
    retiming = importlib.import_module('benchmarks.retiming')
    description, model, limits = retiming.panda()
    pinocchio = retiming.Pinocchio(description, model.joint_names)
    splicer, found = benchmark_module.Splicer(model, limits), []
    for chunk in benchmark_module.chunks(20.0, 0.5):
        splicer.follow(*chunk)
        found.append(retiming.finely(pinocchio, limits, splicer.current))
    assert len(found) >= 8
    assert 0.5 < max(found) <= 1.0 + 1e-6
