"""Executor of the nodes: that of rclpy, without a wait set and a task anew for every callback."""

from __future__ import annotations

import inspect
import threading
from collections import Counter, deque
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any

from rclpy.exceptions import InvalidHandle
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.subscription import Subscription
from rclpy.waitable import NumberOfEntities

_KINDS = ('subscription', 'guard', 'timer', 'client', 'service')  # as WaitSet counts them


class StreamExecutor(SingleThreadedExecutor):
    """Calls the callbacks of subscriptions, timers and guard conditions itself.

    The wait set is kept until entities come or go. What is rare or may await something (services,
    clients, events, tasks, coroutines) is left to rclpy.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._ready: deque[Callable[[], None]] = deque()
        self._is_current = False  # what follows is made for the entities that there are
        self._wait_set: Any = None
        self._fill: list[tuple[Callable[[Any], object], Any]] = []
        self._calls: dict[int, Callable[[], None]] = {}  # by the address of an entity
        self._waitables: list[Any] = []
        self._direct: set[object] = set()
        self._leaves_direct = False
        self._in_use = ExitStack()  # nothing is destroyed that is waited for
        self._waiting = threading.RLock()
        self._changed = self._guard

    def spin_once(self, timeout_sec: float | None = None) -> None:
        """Wait for something to do, by default for ever, and call one callback."""
        if not self._ready:
            if not all(task.done() or task.cancelled() for task, *_ in list(self._tasks)):
                # A coroutine that awaits something holds its callback group: rclpy minds that.
                self._is_current = False
                super().spin_once(timeout_sec)
                return
            with self._waiting:
                if not self._is_shutdown:
                    self._wait(-1 if timeout_sec is None else int(1e9 * timeout_sec))
        if self._ready:
            self._ready.popleft()()

    def can_execute(self, entity: Any) -> bool:
        """Whether rclpy may call an entity now."""
        is_ours = self._leaves_direct and entity in self._direct
        return not is_ours and bool(super().can_execute(entity))

    def shutdown(self, timeout_sec: float | None = None) -> bool:
        """Call nothing any more."""
        is_done = super().shutdown(timeout_sec)
        with self._waiting:
            self._ready.clear()
            self._in_use.close()
        return is_done

    def _wait(self, nanoseconds: int) -> None:
        if not self._is_current:
            self._gather()
        wait_set = self._wait_set
        wait_set.clear_entities()
        for add, entity in self._fill:
            add(entity)
        wait_set.wait(nanoseconds)
        if not self._context.ok():
            raise ExternalShutdownException
        for kind in ('timer', 'subscription', 'guard_condition', 'client', 'service'):
            for address in wait_set.get_ready_entities(kind):
                self._ready.append(self._calls[address])
        if any([waitable.is_ready(wait_set) for waitable in self._waitables]):
            self._ready.append(self._call_other)

    def _gather(self) -> None:
        """Make a wait set of all that there is to wait for."""
        self._is_current = True  # until the guard condition of the executor says otherwise
        nodes = self.get_nodes()
        entities: list[tuple[str, Any]] = [('guard', self._changed)]
        for kind in (*_KINDS, 'waitable'):
            entities += [(kind, entity) for node in nodes for entity in getattr(node, f'{kind}s')]
        with ExitStack() as in_use:
            in_use.enter_context(self._context.handle)
            present = []
            for kind, entity in entities:
                with suppress(InvalidHandle):  # it has been destroyed
                    in_use.enter_context(entity if kind == 'waitable' else entity.handle)
                    present.append((kind, entity))
            found = Counter(kind for kind, _ in present)
            count = NumberOfEntities(*(found[kind] for kind in _KINDS))
            self._waitables = [entity for kind, entity in present if kind == 'waitable']
            for waitable in self._waitables:
                count += waitable.get_num_entities()
            sizes = [getattr(count, name) for name in NumberOfEntities.__slots__]
            wait_set = rclpy_implementation.WaitSet(*sizes, self._context.handle)
            self._in_use.close()
            self._in_use = in_use.pop_all()
        self._wait_set, self._calls, self._direct = wait_set, {}, set()
        self._fill = [(waitable.add_to_wait_set, wait_set) for waitable in self._waitables]
        add = {kind: getattr(wait_set, f'add_{kind}') for kind in _KINDS if kind != 'guard'}
        add['guard'] = wait_set.add_guard_condition
        for kind, entity in present:
            if kind != 'waitable':
                call = self._call(kind, entity)
                self._fill.append((add[kind], entity.handle))
                self._calls[entity.handle.pointer] = call or self._call_other
                if call is not None:
                    self._direct.add(entity)

    def _call(self, kind: str, entity: Any) -> Callable[[], None] | None:
        """What calls the callback of an entity; None: rclpy does."""
        if entity is self._changed:
            return self._change
        if kind in ('client', 'service') or inspect.iscoroutinefunction(entity.callback):
            return None
        if kind == 'timer' and inspect.signature(entity.callback).parameters:
            return None  # it wants to know when it was called
        return partial({'subscription': _take, 'timer': _tick, 'guard': _heed}[kind], entity)

    def _change(self) -> None:
        """Look at the entities again."""
        self._is_current = False

    def _call_other(self) -> None:
        """Have rclpy call one of those that are left to it."""
        self._is_current = False  # rclpy may hear of a change in our place
        self._leaves_direct = True
        try:
            super().spin_once(0.0)
        finally:
            self._leaves_direct = False


def _take(subscription: Any) -> None:
    handle = subscription.handle
    try:
        with handle:
            taken = handle.take_message(subscription.msg_type, subscription.raw)
    except InvalidHandle:  # destroyed meanwhile
        return
    if taken is not None:
        with_info = subscription._callback_type is Subscription.CallbackType.WithMessageInfo
        subscription.callback(*taken[: 1 + with_info])


def _tick(timer: Any) -> None:
    handle = timer.handle
    try:
        with handle:
            if not handle.is_timer_ready():  # cancelled, or another clock
                return
            handle.call_timer()
    except InvalidHandle:
        return
    timer.callback()


def _heed(guard: Any) -> None:
    if guard.callback:
        guard.callback()
