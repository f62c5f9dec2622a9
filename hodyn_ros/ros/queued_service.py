"""A service that takes requests at once and answers them one after the other in another thread."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy

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
        Takes a request and returns the response; runs in the thread that calls `run`.
    refuse : callable
        Takes the number of waiting requests and returns the response for one more.
    most_waiting : callable
        Returns the largest number of requests that may wait.
    """

    def __init__(
        self,
        node: Node,
        kind: type,
        name: str,
        answer: Callable[[Any], Any],
        refuse: Callable[[int], Any],
        most_waiting: Callable[[], int],
    ) -> None:
        self._answer, self._refuse, self._most_waiting = answer, refuse, most_waiting
        self._waiting: deque[tuple[Any, Any]] = deque()
        self._changed = threading.Condition()
        self._closed = False
        profile = QoSProfile(depth=_DEPTH, reliability=ReliabilityPolicy.RELIABLE)
        service = node.create_service(
            kind, name, lambda request, response: request, qos_profile=profile
        )
        # The executor sends what a callback returns as soon as it returns. (A coroutine may return
        # later, but the executor asks it all the time whether it is done.) So the callback passes
        # the request on to what the executor takes for the sending.
        self._send = service.send_response
        service.send_response = self._take

    @property
    def waiting(self) -> int:
        """Number of requests that wait."""
        return len(self._waiting)

    def _take(self, request: Any, header: Any) -> None:
        with self._changed:
            waiting = len(self._waiting)
            if waiting < self._most_waiting():
                self._waiting.append((request, header))
                self._changed.notify()
                return
        self._send(self._refuse(waiting), header)

    def run(self) -> None:
        """Answer requests until the service is closed; those that wait then are left."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if self._closed:
                    return
                request, header = self._waiting.popleft()
            self._send(self._answer(request), header)
            del request, header  # a large one would stay until the next one comes

    def close(self) -> None:
        """End `run` after the answer under way."""
        with self._changed:
            self._closed = True
            self._changed.notify()
