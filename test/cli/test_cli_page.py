"""Pages show what the commands on them print."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from support.scripts import load

ROOT = Path(__file__).resolve().parents[2]
run_examples = load(ROOT / 'doc' / 'run_examples.py')
TEXTS = {
    path.stem: text
    for path in sorted((ROOT / 'doc').rglob('*.rst'))
    if '.. code-block:: console' in (text := path.read_text(encoding='utf-8'))
}


def differs(shown, printed):
    """Whether two lines differ by more than the last digits of their numbers."""
    shown_words, printed_words = shown.split(), printed.split()
    if len(shown_words) != len(printed_words):
        return True
    return any(a != b and not _agree(a, b) for a, b in zip(shown_words, printed_words))


def _agree(shown, printed):
    try:
        a, b = (float(word.strip('(),;%')) for word in (shown, printed))
    except ValueError:
        return False
    return max(abs(a), abs(b)) < 1e-6 or math.isclose(a, b, rel_tol=0.02)


@pytest.mark.needs('matplotlib', 'plotly', 'pyarrow', 'rerun')
@pytest.mark.parametrize('page', TEXTS)
def test_page_shows_what_the_commands_print(page, tmp_path):
    before = TEXTS[page].splitlines()
    after = run_examples.with_outputs_of_commands(TEXTS[page], tmp_path).splitlines()
    command, wrong = '', []
    for shown, printed in zip(before, after):
        command = shown if shown.strip().startswith(run_examples.PROMPT) else command
        if differs(shown, printed):
            wrong.append(f'{command.strip()}: {shown!r} is now {printed!r}')
    assert wrong == []
    assert len(before) == len(after)


def test_every_command_is_shown():
    from hodyn_ros.cli.commands import COMMANDS

    shown = set(re.findall(r'\$ hodyn (\w+)', TEXTS['command_line']))
    assert [command.name for command in COMMANDS if command.name not in shown] == []
