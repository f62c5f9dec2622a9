"""The page on the command line shows what the commands print.

Run as a script it runs the commands of doc/command_line.rst and writes their outputs into it.
"""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / 'doc' / 'command_line.rst'
BLOCK = re.compile(
    r'^\.\. code-block:: console\n\n((?: {3}.*\n|\n(?= {3}))+)', re.MULTILINE
)
PROMPT = '$ '


def commands_in(block):
    return [
        line[len(PROMPT) :]
        for line in map(str.strip, block.splitlines())
        if line.startswith(PROMPT)
    ]


def outputs_of(commands, folder):
    """What the commands print, run one after another by one shell."""
    mark = '@@@ the next command @@@'
    executables = folder / '.bin'
    executables.mkdir()
    hodyn = executables / 'hodyn'
    hodyn.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hodyn_ros.cli.main "$@"\n')
    hodyn.chmod(0o755)
    lines = ['exec 2>&1', 'code=0']
    for command in commands:
        # The exit code of one command is there for the next.
        lines += [f'(exit $code); {command}', 'code=$?', f'echo "{mark}"']
    environment = {
        **os.environ,
        'PYTHONPATH': str(ROOT),
        'PATH': f'{executables}{os.pathsep}{os.environ["PATH"]}',
        'LC_ALL': 'C.UTF-8',
        'COLUMNS': '80',
    }
    environment.pop('AMENT_PREFIX_PATH', None)
    done = subprocess.run(
        ['bash', '-c', '\n'.join(lines)],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        timeout=600,
        check=False,
    )
    parts = done.stdout.replace(f'{ROOT}/', '').split(f'{mark}\n')
    assert len(parts) == len(commands) + 1
    return parts[:-1]


def with_outputs(text, folder):
    """The page with the outputs of its commands."""
    blocks = [commands_in(block) for block in BLOCK.findall(text)]
    outputs = iter(outputs_of([command for block in blocks for command in block], folder))

    def written(match):
        lines = []
        for command in commands_in(match[1]):
            lines += [f'   {PROMPT}{command}']
            lines += [f'   {line}'.rstrip() for line in next(outputs).rstrip().splitlines()]
        return '.. code-block:: console\n\n' + '\n'.join(lines) + '\n'

    return BLOCK.sub(written, text)


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


def test_page_shows_what_the_commands_print(tmp_path):
    for module in ('matplotlib', 'plotly', 'pyarrow', 'rerun'):
        pytest.importorskip(module, reason=f'{module} is not installed')
    text = PAGE.read_text(encoding='utf-8')
    before, after = text.splitlines(), with_outputs(text, tmp_path).splitlines()
    command, wrong = '', []
    for shown, printed in zip(before, after):
        command = shown if shown.strip().startswith(PROMPT) else command
        if differs(shown, printed):
            wrong.append(f'{command.strip()}: {shown!r} is now {printed!r}')
    assert wrong == []
    assert len(before) == len(after)


def test_every_command_is_shown():
    from hodyn_ros.cli.commands import COMMANDS

    text = PAGE.read_text(encoding='utf-8')
    shown = set(re.findall(r'\$ hodyn (\w+)', text))
    assert [command.name for command in COMMANDS if command.name not in shown] == []


if __name__ == '__main__':
    with tempfile.TemporaryDirectory() as directory:
        PAGE.write_text(
            with_outputs(PAGE.read_text(encoding='utf-8'), Path(directory)),
            encoding='utf-8',
        )
