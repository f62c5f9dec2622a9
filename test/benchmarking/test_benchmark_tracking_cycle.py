"""The benchmark of tracking controllers in the loop runs, and C gives the torques of Python."""

import numpy as np
import pytest
from support.compilers import C_COMPILERS, CPP_COMPILERS

pytest.importorskip('pinocchio')

pytestmark = pytest.mark.skipif(
    not (C_COMPILERS and CPP_COMPILERS), reason='there are no C and C++ compilers'
)


def test_benchmark_writes_its_table(benchmark_module, tmp_path, capsys, monkeypatch):
    core = pytest.importorskip('docutils.core')
    cases = (benchmark_module.Case(1000), benchmark_module.Case(1000, drops=0.1))
    monkeypatch.setattr(benchmark_module, 'CASES', cases)
    path = tmp_path / 'table.inc'
    assert benchmark_module.main(['--minutes', '0.01', '-o', str(path)]) == 0
    text = path.read_text()
    assert text in capsys.readouterr().out
    document = core.publish_doctree(text, settings_overrides={'report_level': 5})
    assert document.parse_messages == []
    rows = [line.split() for line in text.splitlines() if line.startswith('1000 Hz')]
    assert [row[2:6] for row in rows] == [
        [share, '%', '300', language]
        for share in ('0', '10')
        for language in ('Python', 'C')
    ]
    for *_, difference, error in rows[1::2]:
        assert 0.0 < float(difference) <= benchmark_module.TOLERANCE
        assert 0.0 < float(error) < 0.1


def test_law_that_differs_is_noticed(benchmark_module, monkeypatch):
    law_of, laws = benchmark_module.law_of, []

    def other(rate):
        laws.append(law_of(rate))
        if len(laws) > 1:  # the first one is for the code
            evaluate = laws[-1].evaluate
            laws[-1].evaluate = lambda wanted, *measured, **given: evaluate(
                wanted + np.eye(5)[:, :1] * 1e-6, *measured, **given
            )
        return laws[-1]

    monkeypatch.setattr(benchmark_module, 'law_of', other)
    monkeypatch.setattr(benchmark_module, 'CASES', (benchmark_module.Case(1000),))
    with pytest.raises(RuntimeError, match='not those in Python'):
        benchmark_module.measure(0.001)
