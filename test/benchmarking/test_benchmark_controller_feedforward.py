"""The benchmark of feed-forward efforts runs, and its parts do what they say."""

import importlib

import numpy as np
import pytest

pytest.importorskip('mujoco')


@pytest.mark.slow
def test_benchmark_writes_its_table(benchmark_module, tmp_path, capsys):
    core = pytest.importorskip('docutils.core')
    path = tmp_path / 'folder' / 'feedforward.inc'
    assert benchmark_module.main(['--size', 'tiny', '-o', str(path)]) == 0
    text = path.read_text()
    assert text in capsys.readouterr().out
    document = core.publish_doctree(text, settings_overrides={'report_level': 5})
    assert document.parse_messages == []
    lines = [line for line in text.splitlines() if line.startswith('as its model')]
    assert ['full' in line for line in lines] == [False, True]


@pytest.mark.slow
@pytest.mark.parametrize('number', [1, 3])
def test_efforts_for_the_robot_bring_the_error_down(benchmark_module, number):
    module, retiming = benchmark_module, importlib.import_module('benchmarks.retiming')
    _, model, limits = retiming.panda()
    model = model.with_armature(dict(zip(model.joint_names, module.MOTOR_INERTIA)))
    (motion,) = module.motions_of(model, limits, 1)
    plant = module.PLANTS['as its model']
    without, with_efforts = (
        module.measure(model, plant, module.CONTESTANTS[k], motion)
        for k in (number - 1, number)
    )
    assert np.abs(with_efforts.error).max() < 0.1 * np.abs(without.error).max()
    # With its gravity in it, the effort comes and goes in a step.
    if number == 1:
        assert with_efforts.began > 10.0 > without.began
        assert with_efforts.cancelled > 10.0 > without.cancelled
    else:
        assert max(with_efforts.began, with_efforts.cancelled) < 0.1
