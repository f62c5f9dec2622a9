"""Compiling in the background, and what a fork finds of it.

A forked process has the locks of its parent as they were, but not the threads that would release
them. So there is one lock for all that compiles, the imports of Numba and LLVM included, and a
fork waits for it: the child finds nothing half done.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

compiling = threading.RLock()
"""Held by whoever compiles or loads machine code, or imports what does."""

_waiting: deque[Callable[[], object]] = deque()


def submit(task: Callable[[], object]) -> None:
    """Have a task, which must not raise, done by a thread that holds `compiling`."""
    _waiting.append(task)
    _thread().submit(_do_next)


@cache
def _thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix='hodyn_compiler')


def _do_next() -> None:
    with compiling:
        if _waiting:
            _waiting.popleft()()


def _after_fork_in_child() -> None:
    _thread.cache_clear()
    for _ in range(len(_waiting)):
        _thread().submit(_do_next)
    compiling.release()


if hasattr(os, 'register_at_fork'):
    os.register_at_fork(
        before=compiling.acquire,
        after_in_parent=compiling.release,
        after_in_child=_after_fork_in_child,
    )
