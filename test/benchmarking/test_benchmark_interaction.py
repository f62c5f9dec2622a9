"""The benchmark of robots that are touched runs and its tables say what they should."""

import pytest


def test_benchmark_writes_its_tables(benchmark_module, tmp_path, capsys, monkeypatch):
    core = pytest.importorskip('docutils.core')
    monkeypatch.setattr(
        benchmark_module, 'TABLES', {'Switching': benchmark_module.switches}
    )
    path = tmp_path / 'folder' / 'interaction.inc'
    assert benchmark_module.main(['--size', 'tiny', '--include', str(path)]) == 0
    text = path.read_text()
    assert text in capsys.readouterr().out
    document = core.publish_doctree(text, settings_overrides={'report_level': 5})
    assert document.parse_messages == []
    assert 'Switching' in text and 'tracking again' in text


def test_preserving_control_holds_as_stiffly_as_the_impedance(benchmark_module):
    laws = benchmark_module.Laws()
    moved = []
    for law in (laws.joint(), benchmark_module.Preserving(laws, benchmark_module.JOINTS)):
        push = benchmark_module.ramped([0.0, 10.0, 0.0, 0.0, 0.0, 0.0])
        record = benchmark_module.run(law, benchmark_module.Condition(), push, 1.2)
        moved.append(record.position[-1] - record.position[0])
    assert moved[0] == pytest.approx(moved[1], rel=0.05, abs=5e-4)
