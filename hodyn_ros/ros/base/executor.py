"""Executor of the nodes: that of rclpy, without a wait set and a task anew for every callback."""

from __future__ import annotations

import inspect
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

from rclpy.exceptions import InvalidHandle
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.subscription import Subscription
from rclpy.waitable import NumberOfEntities

_KINDS = ('subscription', 'guard', 'timer', 'client', 'service')  # in the order of WaitSet


class StreamExecutor(SingleThreadedExecutor):
    """Executor that calls the callbacks of subscriptions, timers and guard conditions itself.

    The wait set is kept until entities come or go. What is rare or may await something (services,
    clients, events, tasks, coroutines) is left to rclpy.

    Parameters
    ----------
    **options
        Of `rclpy.executors.SingleThreadedExecutor`.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._ready: deque[Callable[[], None]] = deque()
        self._wait_set: Any = None  # until it is made, and when entities have changed
        self._fill: list[tuple[Callable[[Any], object], Any]] = []
        self._waitables: list[Any] = []
        self._calls: dict[int, Callable[[], None]] = {}  # by the address of an entity
        self._own: set[object] = set()  # entities that are not left to rclpy
        self._leaves_own = False
        # ROS 2 Humble has no CallbackType: rclpy calls everything.
        self._is_plain = not hasattr(Subscription, 'CallbackType')
        self._in_use = ExitStack()  # nothing is destroyed that is waited for
        self._waiting = threading.RLock()

    def spin_once(self, timeout_sec: float | None = None) -> None:
        """Wait for something to do and call one callback.

        Parameters
        ----------
        timeout_sec : float, optional
            Longest wait [s]; by default for ever.

        Raises
        ------
        ExternalShutdownException
            If the context has been shut down meanwhile.
        """
        if not self._ready:
            is_done = all(task.done() or task.cancelled() for task, *_ in list(self._tasks))
            if self._is_plain or not is_done:
                # A coroutine that awaits something holds its callback group: rclpy minds that.
                self._wait_set = None
                super().spin_once(timeout_sec)
                return
            with self._waiting:
                if not self._is_shutdown:
                    self._wait(-1 if timeout_sec is None else int(1e9 * timeout_sec))
        if self._ready:
            self._ready.popleft()()

    def can_execute(self, entity: Any) -> bool:
        """Whether rclpy may call an entity now."""
        return not (self._leaves_own and entity in self._own) and super().can_execute(
            entity
        )

    def shutdown(self, timeout_sec: float | None = None) -> bool:
        """Call nothing any more.

        Parameters
        ----------
        timeout_sec : float, optional
            Longest wait for callbacks under way [s].

        Returns
        -------
        bool
            Whether they have ended.
        """
        is_done: bool = super().shutdown(timeout_sec)
        with self._waiting:
            self._ready.clear()
            self._in_use.close()
        return is_done

    def _wait(self, nanoseconds: int) -> None:
        """Wait for entities to be ready, and note what is to be called.

        Parameters
        ----------
        nanoseconds : int
            Longest wait; -1: for ever.
        """
        if self._wait_set is None:
            try:
                self._gather()
            # Of another rclpy, about which nothing is known.
            except (AttributeError, TypeError):
                self._is_plain = True
                return
        wait_set = self._wait_set
        wait_set.clear_entities()
        try:
            for add, entity in self._fill:
                add(entity)
        except InvalidHandle:  # an event has been destroyed
            self._wait_set = None
            return
        # Rclpy is to look at its tasks again: this may hear of them first.
        self._cb_iter = None
        wait_set.wait(nanoseconds)
        if not self._context.ok():
            raise ExternalShutdownException
        for kind in ('timer', 'subscription', 'guard_condition', 'client', 'service'):
            for address in wait_set.get_ready_entities(kind):
                self._ready.append(self._calls.get(address, self._call_other))
        if any([waitable.is_ready(wait_set) for waitable in self._waitables]):
            self._ready.append(self._call_other)

    def _gather(self) -> None:
        """Make the wait set of all that there is to wait for."""
        with ExitStack() as in_use:
            in_use.enter_context(self._context.handle)
            entities = list(self._entities())
            present = [item for item in entities if _is_kept(in_use, *item)]
            self._waitables = [entity for kind, entity in present if kind == 'waitable']
            wait_set = self._new_wait_set([kind for kind, _ in present])
            self._in_use.close()
            self._in_use = in_use.pop_all()
        self._wait_set, self._calls, self._own = wait_set, {}, set()
        self._fill = [(waitable.add_to_wait_set, wait_set) for waitable in self._waitables]
        for kind, entity in present:
            if kind != 'waitable':
                name = 'guard_condition' if kind == 'guard' else kind
                self._fill.append((getattr(wait_set, f'add_{name}'), entity.handle))
                self._calls[entity.handle.pointer] = self._call(kind, entity)

    def _entities(self) -> Iterator[tuple[str, Any]]:
        """Yield all that there is to wait for, with its kind."""
        nodes = self.get_nodes()
        yield 'guard', self._guard  # triggered by all changes
        for kind in (*_KINDS, 'waitable'):
            for node in nodes:
                for entity in getattr(node, f'{kind}s'):
                    yield kind, entity

    def _new_wait_set(self, kinds: list[str]) -> Any:
        """Empty wait set with room for entities of some kinds, and for the waitables."""
        count = NumberOfEntities(*map(kinds.count, _KINDS))
        count = sum((waitable.get_num_entities() for waitable in self._waitables), count)
        sizes = [getattr(count, name) for name in NumberOfEntities.__slots__]
        make: Callable[..., Any] = rclpy_implementation.WaitSet
        return make(*sizes, self._context.handle)

    def _call(self, kind: str, entity: Any) -> Callable[[], None]:
        """What is to be done when an entity is ready."""
        is_timer = kind == 'timer'  # a callback with parameters asks when the timer was due
        if (
            kind in ('client', 'service')
            or inspect.iscoroutinefunction(entity.callback)
            or (is_timer and inspect.signature(entity.callback).parameters)
        ):
            return self._call_other
        self._own.add(entity)
        if kind == 'guard':
            return entity.callback or self._gather_again
        return partial(_tick if is_timer else _take, entity)

    def _gather_again(self) -> None:
        self._wait_set = None

    def _call_other(self) -> None:
        """Have rclpy call one of those that are left to it."""
        self._wait_set = None  # rclpy may hear of a change in our place
        self._leaves_own = True
        try:
            super().spin_once(0.0)
        finally:
            self._leaves_own = False


def _is_kept(in_use: ExitStack, kind: str, entity: Any) -> bool:
    """Whether an entity is still there, which it then is until it is not in use any more."""
    try:
        in_use.enter_context(entity if kind == 'waitable' else entity.handle)
    except InvalidHandle:  # it has been destroyed
        return False
    if kind == 'guard' and entity._executor_triggered:  # rclpy has not come to it
        entity._executor_triggered = False
        entity.trigger()
    return True


def _take(subscription: Any) -> None:
    """Take a message of a subscription and call its callback, unless it has been destroyed."""
    handle = subscription.handle
    try:
        with handle:
            taken = handle.take_message(subscription.msg_type, subscription.raw)
    except InvalidHandle:  # it has been destroyed meanwhile
        return
    if taken is not None:
        with_info = subscription._callback_type is Subscription.CallbackType.WithMessageInfo
        subscription.callback(*taken[: 1 + with_info])


def _tick(timer: Any) -> None:
    """Call the callback of a timer, unless it is not due any more."""
    handle = timer.handle
    try:
        with handle:
            if not handle.is_timer_ready():  # it has been cancelled, or time has jumped
                return
            handle.call_timer()
    except InvalidHandle:
        return
    timer.callback()
