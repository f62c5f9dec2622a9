"""Progress of long work on the terminal; nothing where the output is read by programs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

_STEPS = 1000


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
