"""The benchmark of starts: a small run."""

import math
import os
import subprocess


def test_all_starts_are_measured(benchmark_module, tmp_path, capsys):
    target = tmp_path / 'table' / 'start.inc'
    assert benchmark_module.main(['--runs', '1', '-o', str(target)]) == 0
    text = target.read_text(encoding='utf-8')
    assert text in capsys.readouterr().out
    rows = [
        line
        for line in text.splitlines()
        if line.startswith(tuple(benchmark_module.STARTS))
    ]
    assert len(rows) == len(benchmark_module.STARTS)
    ratios = {row[: row.index('  ')]: float(row.split()[-1]) for row in rows}
    assert ratios[benchmark_module.EMPTY] == 0.0
    assert ratios[benchmark_module.NUMPY] == 1.0
    assert all(math.isfinite(ratio) for ratio in ratios.values())


def test_tab_completes(benchmark_module):
    command, environment = benchmark_module.STARTS['TAB behind hodyn compute --']
    done = subprocess.run(
        command,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert '--tip-link' in done.stdout
