"""What commands print and write: tables, JSON, notes, progress, and files that are complete."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import click

from hodyn_ros.display import Answer, plain
from hodyn_ros.errors import RequestError
from hodyn_ros.files.files import Replacement
from hodyn_ros.interrupts import cleaned_up
from hodyn_ros.names import name_of as name_of
from hodyn_ros.names import number as number

PICTURES = ('.png', '.pdf', '.svg')
"""Suffixes of pictures."""
PAGES = ('.html', '.htm')
"""Suffixes of reports."""

_WIDE = 100_000  # Columns of what is no terminal.


def instant(time: float) -> str:
    """Write a time [s]; one that counts from long ago keeps its milliseconds.

    Parameters
    ----------
    time : float
        [s]

    Returns
    -------
    str
    """
    return number(time) if abs(time) < 1e5 else f'{time:.3f}'


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Align columns, text to the left and numbers to the right, below titles of some lines.

    A terminal wraps sentences; what programs read is as wide as it needs to be.

    Parameters
    ----------
    head : sequence of str
        Titles; a line break divides one.
    rows : sequence of sequences of str
        As many cells as titles.

    Returns
    -------
    str
        Lines without spaces at their ends.
    """
    from rich.console import Console
    from rich.measure import Measurement
    from rich.padding import Padding
    from rich.table import Table

    aligned = Table(box=None, padding=(0, 1), collapse_padding=False)
    for title, column in zip(head, zip(*rows)):
        is_text = any(cell[:1].isalpha() and cell != 'nan' for cell in column)
        cells = [*title.split('\n'), *column]
        if is_text and any(' ' in cell for cell in column):  # sentences
            cells = [word for cell in cells for word in cell.split()]
        justify: Literal['left', 'right'] = 'left' if is_text else 'right'
        aligned.add_column(title, justify=justify, min_width=max(map(len, cells)))
    for row in rows:
        aligned.add_row(*row)
    indented = Padding(aligned, (0, 0, 0, 1))
    is_terminal = sys.stdout.isatty()
    console = Console(
        force_terminal=is_terminal, markup=False, emoji=False, highlight=False
    )
    least = Measurement.get(
        console, console.options.update(max_width=_WIDE), indented
    ).minimum
    if not is_terminal or least > console.width:  # nothing is cut off
        console.size = _WIDE, 25
    with console.capture() as captured:
        console.print(indented)
    return '\n'.join(map(str.rstrip, captured.get().splitlines()))


def echo_json(value: Any) -> None:
    """Print a value as JSON.

    Parameters
    ----------
    value : object
        Anything that `plain` takes.
    """
    click.echo(json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False))


def show(answer: Answer, as_json: bool) -> None:
    """Print an answer.

    Parameters
    ----------
    answer : Answer
    as_json : bool
        As JSON, for programs; otherwise for people.
    """
    click.echo(answer.json if as_json else str(answer))


def show_remarks(remarks: Sequence[str]) -> None:
    """Say what one should know, where it does not mix with results.

    Parameters
    ----------
    remarks : sequence of str
        Each is shown once, on the standard error stream.
    """
    for remark in dict.fromkeys(remarks):
        click.echo(f'note: {remark}', err=True)


@contextmanager
def progress(label: str) -> Iterator[Callable[..., None]]:
    """Show a bar on the standard error stream while a block runs, if that is a terminal.

    What it yields takes the part that is done, from 0 to 1 or None if the end is not known, and
    another label.

    Parameters
    ----------
    label : str
        What is being done.

    Yields
    ------
    callable
        update(part=None, label=label).
    """
    if not sys.stderr.isatty():
        yield lambda part=None, label='': None
        return
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True, markup=False)
    bar = Progress(console=console, transient=True)
    with cleaned_up(bar.stop), bar:
        task = bar.add_task(label, start=False, total=1.0)

        def update(part: float | None = None, label: str = label) -> None:
            if part is not None:
                bar.start_task(task)
            bar.update(task, description=label, completed=part or 0.0)

        yield update


@contextmanager
def written(path: Path) -> Iterator[Path]:
    """Refuse a place where no file can be written, then write it: whole, or not at all.

    What it yields is the path to write to, of the same name in another folder; the file appears,
    or is replaced, when the block ends without an error.

    Parameters
    ----------
    path : pathlib.Path

    Yields
    ------
    pathlib.Path

    Raises
    ------
    RequestError
        If the path is a folder, or a file that cannot be written.
    OSError
        If writing fails, with the path.
    """
    if path.is_dir():
        raise RequestError(
            f'{path} is a folder, expected a new name for what is to be written.'
        )
    if path.exists() and not os.access(path, os.W_OK):
        raise RequestError(f'{path} cannot be written: permission denied.')
    replacement = Replacement(path)
    try:
        yield replacement.path
        replacement.finish()
    except OSError as error:
        # The system knows no file, or the one in the other folder.
        if error.strerror:
            error.filename = str(path)
        raise
    finally:
        replacement.discard()
