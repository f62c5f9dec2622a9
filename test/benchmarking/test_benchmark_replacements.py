"""The benchmark of replaced trajectories runs, and its table says what the stream guarantees."""

import pytest


@pytest.mark.slow
def test_benchmark_writes_its_table(benchmark_module, tmp_path, capsys):
    core = pytest.importorskip('docutils.core')
    path = tmp_path / 'replacements.inc'
    assert benchmark_module.main(['--size', 'tiny', '-o', str(path)]) == 0
    text = path.read_text()
    assert text in capsys.readouterr().out
    document = core.publish_doctree(text, settings_overrides={'report_level': 5})
    assert document.parse_messages == []
    rows = [line for line in text.splitlines() if line.startswith('0 busy')]
    assert ['4 trajectories' in rows[0], '2 stops' in rows[1]] == [True, True]
    for row in rows:
        *_, effort = row.split()
        assert float(effort) <= 1.0
