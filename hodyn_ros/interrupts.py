"""Ctrl-C at the command line: the process ends at once, and nothing unfinished stays behind.

Python answers Ctrl-C with an exception, `KeyboardInterrupt`, wherever the program just is. Raised
while a library imports its extensions, in a callback of the garbage collector or of a compiler, it
is lost or becomes another error, and the command goes on. So the command does not wait for it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

INTERRUPTED = 130
"""Exit code, as shells report processes that SIGINT ended."""

CLEANUPS: set[Callable[[], object]] = set()
"""What is called before an interrupt ends the process: it puts away what is unfinished."""


def end_at_interrupts() -> None:
    """Let SIGINT end this process from now on, if it would raise `KeyboardInterrupt` otherwise."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def ignore_interrupts() -> None:
    """Let SIGINT do nothing from now on: all work is done."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def raised() -> Iterator[None]:
    """Let SIGINT raise `KeyboardInterrupt` inside, for work that ends other processes itself."""
    before = signal.getsignal(signal.SIGINT)
    if before is not _end:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def cleaned_up(action: Callable[[], object]) -> Iterator[None]:
    """Call a function at the end of a block, also if an interrupt ends the process inside."""
    CLEANUPS.add(action)
    try:
        yield
    finally:
        action()
        CLEANUPS.discard(action)


def _end(*_: object) -> None:
    """Handler of SIGINT: all of `CLEANUPS` are called, then the process ends with a message."""
    for action in tuple(CLEANUPS):
        with suppress(Exception):
            action()
    with suppress(OSError):  # nobody is left to read it
        os.write(2, b'Interrupted.\n')  # a stream may just be in use
    os._exit(INTERRUPTED)
