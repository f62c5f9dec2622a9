"""Calls that other threads hand over to the thread of the executor."""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import Any

from rclpy.node import Node


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
