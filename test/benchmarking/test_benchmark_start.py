"""The benchmark of starts: a small run."""

import importlib
import math
import os
import subprocess
from pathlib import Path

import pytest


@pytest.fixture
def start(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2]))
    return importlib.import_module('benchmarks.start')


def test_all_starts_are_measured(start, tmp_path, capsys):
    target = tmp_path / 'table' / 'start.inc'
    assert start.main(['--runs', '1', '-o', str(target)]) == 0
    text = target.read_text(encoding='utf-8')
    assert text in capsys.readouterr().out
    rows = [line for line in text.splitlines() if line.startswith(tuple(start.STARTS))]
    assert len(rows) == len(start.STARTS)
    ratios = {row[: row.index('  ')]: float(row.split()[-1]) for row in rows}
    assert ratios[start.EMPTY] == 0.0
    assert ratios[start.NUMPY] == 1.0
    assert all(math.isfinite(ratio) for ratio in ratios.values())


def test_tab_completes(start):
    command, environment = start.STARTS['TAB behind hodyn compute --']
    done = subprocess.run(
        command, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True, check=True
    )
    assert '--tip-link' in done.stdout
