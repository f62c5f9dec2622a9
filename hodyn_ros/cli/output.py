"""What commands print and write: answers, notes, progress, and files that are complete."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hodyn_ros.display import Answer
from hodyn_ros.errors import RequestError
from hodyn_ros.files import Samples
from hodyn_ros.files.files import replacing
from hodyn_ros.interrupts import cleaned_up
from hodyn_ros.names import instant

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURES = ('.png', '.pdf', '.svg')
"""Suffixes of pictures."""
PAGES = ('.html', '.htm')
"""Suffixes of reports."""
_DPI = 120  # pixels per inch


def span(samples: Samples) -> str:
    """Write how many samples there are, and from when to when.

    Parameters
    ----------
    samples : Samples

    Returns
    -------
    str
    """
    start, end = map(instant, samples.times[[0, -1]].tolist())
    return f'{len(samples)} samples from {start} s to {end} s'


def show(answer: Answer, as_json: bool) -> None:
    """Print an answer.

    Parameters
    ----------
    answer : Answer
        People get the remarks of its data on the standard error stream.
    as_json : bool
        As JSON, for programs; otherwise for people.
    """
    if not as_json:
        show_remarks(answer.data.get('remarks', ()))
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


def check_picture(path: Path, suffixes: Sequence[str] = (*PICTURES, *PAGES)) -> None:
    """Refuse, before long work, a picture or page that cannot be made at its end.

    Parameters
    ----------
    path : pathlib.Path
    suffixes : sequence of str
        Those that are possible.

    Raises
    ------
    RequestError
        If the suffix is another one, or no file can be written there.
    ResourceError
        If what draws it is not installed.
    """
    from hodyn_ros.plotting.figures import figure_library
    from hodyn_ros.plotting.report import report_libraries

    suffix = path.suffix.lower()
    if suffix not in suffixes:
        raise RequestError(f'{path}: expected a name that ends with {", ".join(suffixes)}.')
    _refuse_unwritable(path)
    report_libraries() if suffix in PAGES else figure_library()


def save(path: Path, content: Figure | str) -> None:
    """Write a picture or a text: whole, or not at all.

    Parameters
    ----------
    path : pathlib.Path
    content : matplotlib.figure.Figure or str
    """
    with written(path) as target:
        if isinstance(content, str):
            target.write_text(content, encoding='utf-8', errors='replace')
        else:
            content.savefig(target, dpi=_DPI)


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
    _refuse_unwritable(path)
    try:
        with replacing(path) as meanwhile:
            yield meanwhile
    except OSError as error:
        # The system knows no file, or the one in the other folder.
        if error.strerror:
            error.filename = str(path)
        raise


def _refuse_unwritable(path: Path) -> None:
    """Refuse folders, and files that are not ours."""
    if path.is_dir():
        raise RequestError(
            f'{path} is a folder, expected a new name for what is to be written.'
        )
    if path.exists() and not os.access(path, os.W_OK):
        raise RequestError(f'{path} cannot be written: permission denied.')
