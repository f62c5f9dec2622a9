"""Run the Python examples of pages and write what they print: python doc/run_examples.py PAGE...

Examples of a page run one after the other, from the root of the repository. What one of them
prints stands in a block of text right below it that has the class `output`; without such a block
the output is not shown.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import textwrap
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent

_BLOCK = r'((?: {3}.*\n|\n)+)'
_OUTPUT = r'\.\. code-block:: text\n {3}:class: output\n\n'
EXAMPLE = re.compile(
    rf'^(?P<head>\.\. code-block:: python\n\n){_BLOCK}(?:(?P<below>{_OUTPUT}){_BLOCK})?',
    re.MULTILINE,
)


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


def main() -> None:
    """Run the examples of the pages that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('pages', metavar='PAGE', nargs='+', type=Path)
    pages = [path.resolve() for path in parser.parse_args().pages]
    os.chdir(ROOT)
    for path in pages:
        text = with_outputs(path.read_text(encoding='utf-8'), path.name)
        path.write_text(text, encoding='utf-8')


if __name__ == '__main__':
    main()
