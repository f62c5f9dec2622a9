"""A thread for what takes long."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress

from hodyn_ros.errors import HodynError


class Worker(ThreadPoolExecutor):
    """A thread that does jobs in the order in which they are put.

    The traceback of every error that is no HodynError, a fault of this package, is logged.

    Parameters
    ----------
    name : str
        Of the thread.
    log : callable
        Takes a text.

    Attributes
    ----------
    is_closed : bool
        Whether the job under way is to come to its end, and others are dropped.
    """

    def __init__(self, name: str, log: Callable[[str], object]) -> None:
        super().__init__(1, name)
        self._log = log
        self.is_closed: bool = False

    def put(
        self, job: Callable[[], object], failed: Callable[[BaseException], object] = repr
    ) -> None:
        """Have a job done, unless the worker has been closed.

        Parameters
        ----------
        job : callable
            Reports its outcome itself.
        failed : callable
            Called with what it has raised.
        """

        def run() -> None:
            try:
                if not self.is_closed:
                    job()
            except BaseException as error:  # also SystemExit: nobody else would notice
                if not isinstance(error, HodynError):
                    self._log(traceback.format_exc())
                failed(error)

        with suppress(RuntimeError):  # it has been closed: the job is dropped
            self.submit(run).add_done_callback(_raise_error)

    def close(self, timeout: float | None = None, drop: bool = True) -> None:
        """End the thread when the job under way is done.

        Parameters
        ----------
        timeout : float, optional
            Longest wait for that [s]; None: for ever.
        drop : bool
            Whether jobs that wait are dropped.
        """
        self.is_closed = drop
        with suppress(RuntimeError):  # it has been closed before
            wait([self.submit(int)], timeout)
        self.shutdown(wait=False, cancel_futures=True)


def _raise_error(done: Future[None]) -> None:
    """Have the error of one of those who are told logged; the next job may fare better."""
    if not done.cancelled():
        done.result()
