"""Worker processes that say how they ended and leave interruptions to their parent."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any


class Spawning(SpawnContext):
    """Starts new interpreters, which have neither the threads nor the locks of this one.

    Attributes
    ----------
    workers : list of SpawnProcess
        All that were made with it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.workers: list[SpawnProcess] = []

    def Process(self, *arguments: Any, **options: Any) -> SpawnProcess:  # type: ignore[override]  # noqa: N802
        """Make a worker, as a pool of processes asks for it."""
        worker = _Worker(*arguments, **options)
        self.workers.append(worker)
        return worker

    def exit_codes(self) -> list[int]:
        """Those of the workers that have ended; a negative one is a signal."""
        return [code for worker in self.workers if (code := worker.exitcode) is not None]


class _Worker(SpawnProcess):
    def start(self) -> None:
        # Ctrl-C reaches the workers as well; until `begin` they would tell a traceback of it.
        with _interruptions_held():
            super().start()


@contextmanager
def _interruptions_held() -> Iterator[None]:
    """Hold back SIGINT in this thread, and in processes that it starts for as long as they do."""
    if not hasattr(signal, 'pthread_sigmask'):  # not POSIX
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def begin(guard: Connection) -> None:
    """Prepare a worker process.

    Parameters
    ----------
    guard : multiprocessing.connection.Connection
        The process ends when its other end is closed, by its owner or its death.
    """
    # Whoever interrupts the run tells the parent, which ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, 'pthread_sigmask'):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with, args=(guard,), daemon=True).start()


def _end_with(guard: Connection) -> None:
    try:
        guard.recv_bytes()
    except (EOFError, OSError):
        pass
    os._exit(1)
