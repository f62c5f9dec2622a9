"""A service that takes requests at once and answers them one after the other in another thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy

from hodyn_ros.ros.worker import Worker

# The middleware drops the oldest of more requests than these, and whoever sent it waits for ever.
# It also keeps the memory of as many responses, which may be large.
_DEPTH = 64


class QueuedService:
    """A service with a bounded queue.

    Who finds the queue full is told so at once, instead of being left without an answer.

    Parameters
    ----------
    node : rclpy.node.Node
    kind : type
        Service type.
    name : str
    answer : callable
        Takes a request and returns the response; runs in a thread of its own.
    failed : callable
        Takes what `answer` has raised and returns the response in its place.
    refuse : callable
        Takes the number of waiting requests and returns the response for one more.
    most_waiting : callable
        Returns the largest number of requests that may wait.
    log : callable
        See `Worker`.
    """

    def __init__(
        self,
        node: Node,
        kind: type,
        name: str,
        answer: Callable[[Any], Any],
        failed: Callable[[BaseException], Any],
        refuse: Callable[[int], Any],
        most_waiting: Callable[[], int],
        log: Callable[[str], object],
    ) -> None:
        self._answer, self._failed, self._refuse = answer, failed, refuse
        self._most_waiting = most_waiting
        self._lock = threading.Lock()
        self.waiting = 0
        """Number of requests that wait."""
        self._worker = Worker('answering', log)
        profile = QoSProfile(depth=_DEPTH, reliability=ReliabilityPolicy.RELIABLE)
        service = node.create_service(
            kind, name, lambda request, response: request, qos_profile=profile
        )
        # The executor sends what a callback returns as soon as it returns. (A coroutine may return
        # later, but the executor asks it all the time whether it is done.) So the callback passes
        # the request on to what the executor takes for the sending.
        self._send = service.send_response
        service.send_response = self._take

    def _take(self, request: Any, header: Any) -> None:
        with self._lock:
            waiting = self.waiting
            is_taken = waiting < self._most_waiting()
            self.waiting += is_taken
        if is_taken:
            self._worker.put(
                lambda: self._reply(request, header),
                lambda error: self._send(self._failed(error), header),
            )
        else:
            self._send(self._refuse(waiting), header)

    def _reply(self, request: Any, header: Any) -> None:
        with self._lock:
            self.waiting -= 1
        self._send(self._answer(request), header)

    def close(self, timeout: float | None = None) -> None:
        """End the thread after the answer under way, see `Worker`; those that wait are left."""
        self._worker.close(timeout)
