"""Pages show what the commands on them print.

Run as a script it runs the commands of the pages and writes their outputs into them. A block with
a caption is a file of that name, which is there for the commands below it.
"""

from __future__ import annotations

import math
import os
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ('command_line', 'getting_started')
BLOCK = re.compile(
    r'^\.\. code-block:: (?:console|\w+\n {3}:caption: (?P<file>\S+))\n\n'
    r'(?P<text>(?: {3}.*\n|\n(?= {3}))+)',
    re.MULTILINE,
)
PROMPT = '$ '


def text_of(page):
    return (ROOT / 'doc' / f'{page}.rst').read_text(encoding='utf-8')


def commands_in(block):
    """Commands of a block; a file is written by one that prints nothing."""
    if block['file']:
        content = shlex.quote(textwrap.dedent(block['text']))
        return [f"printf '%s' {content} > {block['file']}"]
    return [
        line[len(PROMPT) :]
        for line in map(str.strip, block['text'].splitlines())
        if line.startswith(PROMPT)
    ]


def outputs_of(commands, folder):
    """What the commands print, run one after another by one shell."""
    mark = '@@@ the next command @@@'
    executables = folder / '.bin'
    executables.mkdir()
    for name, arguments in (('hodyn', '-m hodyn_ros.cli.main'), ('python', '')):
        executable = executables / name
        executable.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
        executable.chmod(0o755)
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
    blocks = list(BLOCK.finditer(text))
    outputs = iter(
        outputs_of([command for b in blocks for command in commands_in(b)], folder)
    )

    def written(block):
        if block['file']:
            assert next(outputs) == ''
            return block[0]
        lines = []
        for command in commands_in(block):
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


@pytest.mark.needs('matplotlib', 'plotly', 'pyarrow', 'rerun')
@pytest.mark.parametrize('page', PAGES)
def test_page_shows_what_the_commands_print(page, tmp_path):
    text = text_of(page)
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

    text = text_of('command_line')
    shown = set(re.findall(r'\$ hodyn (\w+)', text))
    assert [command.name for command in COMMANDS if command.name not in shown] == []


if __name__ == '__main__':
    for name in sys.argv[1:] or PAGES:
        with tempfile.TemporaryDirectory() as directory:
            changed = with_outputs(text_of(name), Path(directory))
        (ROOT / 'doc' / f'{name}.rst').write_text(changed, encoding='utf-8')
