"""Progress of long work on the terminal; nothing where the output is read by programs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

_STEPS = 1000
_REFRESH = 0.1  # s


@contextmanager
def progress(label: str) -> Iterator[Callable[[float], None]]:
    """Show a bar on the standard error stream while a block runs, if that is a terminal.

    Parameters
    ----------
    label : str

    Yields
    ------
    callable
        Takes the part that is done, from 0 to 1.
    """
    if not sys.stderr.isatty():
        yield lambda part: None
        return
    with click.progressbar(
        length=_STEPS, label=label, file=sys.stderr, show_pos=False, show_eta=True
    ) as bar:

        def update(part: float) -> None:
            bar.update(max(0, round(_STEPS * min(part, 1.0)) - bar.pos))

        yield update


@contextmanager
def status() -> Iterator[Callable[[str], None]]:
    """Show one changing line on the standard error stream while a block runs, if it is a terminal.

    For work whose end is not known.

    Yields
    ------
    callable
        Takes the text.
    """
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    latest = 0.0

    def show(text: str) -> None:
        nonlocal latest
        if time.monotonic() - latest > _REFRESH:
            latest = time.monotonic()
            click.echo(f'\r\x1b[K{text}', nl=False, err=True)

    try:
        yield show
    finally:
        click.echo('\r\x1b[K', nl=False, err=True)
