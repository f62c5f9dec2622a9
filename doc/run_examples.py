"""Run the examples of pages and write what they print: python doc/run_examples.py PAGE...

Python examples of a page run one after the other, from the root of the repository. What one of
them prints stands in a block of text right below it that has the class `output`; without such a
block the output is not shown. Commands of `console` blocks run in an empty folder; a block with a
caption is a file of that name, which is there for the commands below it. A PAGE may be a notebook:
its cells get what they print and draw.
"""

from __future__ import annotations

import argparse
import ast
import base64
import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent

_BLOCK = r'((?: {3}.*\n|\n)+)'
_OUTPUT = r'\.\. code-block:: text\n {3}:class: output\n\n'
EXAMPLE = re.compile(
    rf'^(?P<head>\.\. code-block:: python\n\n){_BLOCK}(?:(?P<below>{_OUTPUT}){_BLOCK})?',
    re.MULTILINE,
)


CONSOLE = re.compile(
    r'^\.\. code-block:: (?:console|\w+\n {3}:caption: (?P<file>\S+))\n\n'
    r'(?P<text>(?: {3}.*\n|\n(?= {3}))+)',
    re.MULTILINE,
)
PROMPT = '$ '


def examples(text: str) -> list[str]:
    """Code of the examples of a page."""
    return [textwrap.dedent(match[2]) for match in EXAMPLE.finditer(text)]


def cells(path: Path) -> list[str]:
    """Code of the cells of a notebook."""
    notebook = json.loads(path.read_text(encoding='utf-8'))
    return [
        ''.join(cell['source']) for cell in notebook['cells'] if cell['cell_type'] == 'code'
    ]


def with_outputs(text: str, page: str) -> str:
    """Run the examples of a page and put in what they print.

    Parameters
    ----------
    text : str
        Of the page.
    page : str
        Its name, for errors.

    Returns
    -------
    str
        The text with all outputs as they are now.
    """
    names: dict[str, object] = {'__name__': '__main__'}
    number = 0

    def run(match: re.Match[str]) -> str:
        nonlocal number
        number += 1
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            code = compile(textwrap.dedent(match[2]), f'{page}, example {number}', 'exec')
            exec(code, names)  # noqa: S102
        if match['below'] is None:
            return match[0]
        output = textwrap.indent(printed.getvalue().rstrip(), '   ', lambda line: True)
        lines = [line.rstrip() for line in output.splitlines()]
        return ''.join((match['head'], match[2], match['below'], '\n'.join(lines), '\n\n'))

    with np.printoptions():  # those that an example sets end with the page
        return EXAMPLE.sub(run, text)


def _commands_in(block: re.Match[str]) -> list[str]:
    """Commands of a block; a file is written by one that prints nothing."""
    if block['file']:
        content = shlex.quote(textwrap.dedent(block['text']))
        return [f"printf '%s' {content} > {block['file']}"]
    return [
        line[len(PROMPT) :]
        for line in map(str.strip, block['text'].splitlines())
        if line.startswith(PROMPT)
    ]


def _outputs_of_commands(commands: list[str], folder: Path) -> list[str]:
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


def with_outputs_of_commands(text: str, folder: Path) -> str:
    """Run the commands of a page and put in what they print.

    Parameters
    ----------
    text : str
        Of the page.
    folder : pathlib.Path
        Empty; files of the page are written there.

    Returns
    -------
    str
        The text with all outputs as they are now.
    """
    blocks = list(CONSOLE.finditer(text))
    commands = [command for block in blocks for command in _commands_in(block)]
    outputs = iter(_outputs_of_commands(commands, folder))

    def written(block: re.Match[str]) -> str:
        if block['file']:
            assert next(outputs) == ''
            return block[0]
        lines = []
        for command in _commands_in(block):
            lines += [f'   {PROMPT}{command}']
            lines += [f'   {line}'.rstrip() for line in next(outputs).rstrip().splitlines()]
        return '.. code-block:: console\n\n' + '\n'.join(lines) + '\n'

    return CONSOLE.sub(written, text)


def _shown(value: Any) -> dict[str, Any]:
    """Value of the last expression of a cell as a notebook stores it."""
    from matplotlib.figure import Figure

    if not isinstance(value, Figure):
        return {'text/plain': repr(value)}
    picture = io.BytesIO()
    value.savefig(picture, format='png', dpi=80, metadata={'Software': None})
    return {
        'image/png': base64.b64encode(picture.getvalue()).decode(),
        'text/plain': '<Figure>',
    }


def _outputs_of(source: str, name: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """Run a cell and give what it prints, what its last expression is, and what it draws."""
    from matplotlib import pyplot

    tree, last = ast.parse(source, name), None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = compile(ast.Expression(tree.body.pop().value), name, 'eval')  # type: ignore[attr-defined]
    printed, values = io.StringIO(), []
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, name, 'exec'), names)  # noqa: S102
        if last is not None:
            values.append(eval(last, names))  # noqa: S307
    values += [pyplot.figure(number) for number in pyplot.get_fignums()]
    pyplot.close('all')
    shown = [
        {'data': _shown(value), 'metadata': {}, 'output_type': 'display_data'}
        for value in values
        if value is not None
    ]
    lines = printed.getvalue().splitlines(keepends=True)
    stream = {'name': 'stdout', 'output_type': 'stream', 'text': lines}
    return [stream, *shown] if lines else shown


def with_cell_outputs(text: str, page: str, names: dict[str, Any] | None = None) -> str:
    """Run a notebook and put in what its cells print and draw.

    Parameters
    ----------
    text : str
        Of the file.
    page : str
        Its name, for errors.
    names : dict, optional
        Gets the names that the cells define.

    Returns
    -------
    str
        The text with all outputs as they are now.
    """
    import matplotlib

    notebook, names = json.loads(text), {} if names is None else names
    names['__name__'] = '__main__'
    with matplotlib.rc_context({'backend': 'agg'}), np.printoptions():
        for number, cell in enumerate(notebook['cells']):
            if cell['cell_type'] == 'code':
                source = ''.join(cell['source'])
                cell['outputs'] = _outputs_of(source, f'{page}, cell {number}', names)
    return json.dumps(notebook, ensure_ascii=False, indent=1) + '\n'


def main() -> None:
    """Run the examples of the pages that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('pages', metavar='PAGE', nargs='+', type=Path)
    for path in [path.resolve() for path in parser.parse_args().pages]:
        text = path.read_text(encoding='utf-8')
        if path.suffix == '.ipynb':
            with tempfile.TemporaryDirectory() as folder:
                os.chdir(folder)
                text = with_cell_outputs(text, path.name)
                os.chdir(ROOT)
        else:
            os.chdir(ROOT)
            text = with_outputs(text, path.name)
            with tempfile.TemporaryDirectory() as folder:
                text = with_outputs_of_commands(text, Path(folder))
        path.write_text(text, encoding='utf-8')


if __name__ == '__main__':
    main()
