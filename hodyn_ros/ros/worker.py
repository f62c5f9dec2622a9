"""A thread for what takes long, whose jobs cannot end it, and the way back to the executor."""

from __future__ import annotations

import queue
import threading
import traceback
from collections.abc import Callable
from typing import Any

from rclpy.node import Node

from hodyn_ros.errors import HodynError

Job = Callable[[], object]
Failed = Callable[[BaseException], object]


class Worker:
    """Does jobs in a thread of its own, in the order in which they are put.

    Parameters
    ----------
    name : str
        Of the thread.
    log : callable
        Is called with the traceback of every error that is no HodynError: a fault of ours.
    """

    def __init__(self, name: str, log: Callable[[str], object]) -> None:
        self._log = log
        self._jobs: queue.SimpleQueue[tuple[Job, Failed]] = queue.SimpleQueue()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def put(self, job: Job, failed: Failed = lambda error: None) -> None:
        """Have a job done; may be called from any thread.

        Parameters
        ----------
        job : callable
            Reports its outcome itself.
        failed : callable, optional
            Is called with what the job has raised, whatever it is, so that whoever waits for the
            outcome gets one.
        """
        self._jobs.put((job, failed))

    def close(self, timeout: float | None = None) -> None:
        """End the thread when the job under way is done; those that wait are left.

        Parameters
        ----------
        timeout : float, optional
            Longest time to wait for that [s].
        """
        self._closed = True
        self.put(lambda: None)
        self._thread.join(timeout)

    def _run(self) -> None:
        while not self._closed:
            job, failed = self._jobs.get()
            try:
                try:
                    if not self._closed:
                        job()
                except BaseException as error:  # also SystemExit: nobody else would notice
                    if not isinstance(error, HodynError):
                        self._log(traceback.format_exc())
                    failed(error)
            except BaseException:  # of those who are told; the next job may fare better
                traceback.print_exc()
            del job, failed  # a large one would stay until the next one comes


def reason(error: BaseException) -> str:
    """Return what is said of an error to those who have asked."""
    return str(error) if isinstance(error, HodynError) else f'Internal error: {error!r}'


class Inbox:
    """Runs calls in the executor of a node, in the order in which they were put."""

    def __init__(self, node: Node) -> None:
        self._calls: queue.SimpleQueue[tuple[Callable[..., None], tuple[Any, ...]]] = (
            queue.SimpleQueue()
        )
        self._is_there = node.create_guard_condition(self._run)

    def put(self, call: Callable[..., None], *arguments: Any) -> None:
        """Have something called soon; may be called from any thread while the node exists."""
        self._calls.put((call, arguments))
        self._is_there.trigger()

    def _run(self) -> None:
        while not self._calls.empty():
            call, arguments = self._calls.get()
            call(*arguments)
