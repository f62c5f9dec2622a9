"""Executor of the nodes: that of rclpy, without a wait set and a task anew for every callback.

This is the one place that uses what rclpy does not document: wait sets and handles of entities.
Where these are missing or do not work, rclpy's own way is taken instead.
"""

from __future__ import annotations

import inspect
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any

import rclpy
from rclpy.exceptions import InvalidHandle
from rclpy.executors import (
    ExternalShutdownException,
    ShutdownException,
    SingleThreadedExecutor,
    TimeoutException,
)
from rclpy.guard_condition import GuardCondition
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.subscription import Subscription
from rclpy.waitable import NumberOfEntities

try:
    from rclpy.event_handler import EventHandler
except ImportError:  # ROS 2 Humble
    EventHandler = ()

_KINDS = ('subscription', 'guard', 'timer', 'client', 'service')  # in the order of WaitSet

# Rclpy looks at everything itself once in this time [s].
_LOOK_PERIOD = 0.25

# One failure of rclpy may come of what is destroyed while it waits; more in a row do not.
_MOST_FAILURES = 10
_PAUSE = 0.01  # s, after each


class ExecutorError(RuntimeError):
    """Failure of the executor itself, not of a callback."""


class StreamExecutor(SingleThreadedExecutor):
    """Executor that calls the callbacks of subscriptions, timers and guard conditions itself.

    The wait set is kept until entities come or go. What is rare or may await something (services,
    clients, events, tasks, coroutines) is left to rclpy; so is everything, after one warning, with
    an rclpy whose wait sets or handles are different.

    Parameters
    ----------
    is_plain : bool
        Whether everything is left to rclpy from the beginning.
    **options
        Of `rclpy.executors.SingleThreadedExecutor`.

    Attributes
    ----------
    latest : object or None
        Entity whose callback was called last; None: a task, or a change.
    """

    def __init__(self, *, is_plain: bool = False, **options: Any) -> None:
        self._change: GuardCondition | None = None
        super().__init__(**options)
        self._ended = False
        self._ready: deque[tuple[Any, Callable[[], Any]]] = deque()
        self._wait_set: Any = None  # until it is made, and when entities have changed
        self._fill: list[tuple[Callable[[Any], object], Any]] = []
        self._waitables: list[Any] = []
        self._calls: dict[int, tuple[Any, Callable[[], Any]]] = {}  # by address
        self._is_probed = False
        self._unfinished: deque[Any] = deque()  # tasks
        self._next_look = 0.0
        # ROS 2 Humble has no CallbackType: rclpy calls everything.
        self._is_plain = is_plain or not hasattr(Subscription, 'CallbackType')
        self._failures = 0  # of rclpy, in a row
        self.latest: Any = None
        self._in_use = ExitStack()  # nothing is destroyed that is waited for
        self._waiting = threading.RLock()

    def spin(self) -> None:
        """Call callbacks until the end of the executor or of its context."""
        while self.context.ok() and not self._ended:
            self.spin_once()

    def spin_once(self, timeout_sec: float | None = None) -> None:
        """Wait for something to do and call one callback, or those that are left to rclpy.

        Parameters
        ----------
        timeout_sec : float, optional
            Longest wait [s]; by default until rclpy is to look at everything.

        Raises
        ------
        ExternalShutdownException
            If the context has been shut down meanwhile.
        ExecutorError
            If neither this executor nor that of rclpy can wait, again and again; whatever else is
            raised is of a callback.
        """
        if self._ended:
            return
        if self._is_plain or self._is_awaiting():
            self._hand_over()
            self._call_of_rclpy(timeout_sec)
            return
        call: Callable[[], Any] | None = None
        try:
            call = self._find(timeout_sec)
        except ExternalShutdownException:
            raise
        except Exception as error:  # of any class: nothing is known of another rclpy
            self._leave_to_rclpy(f'{type(error).__name__}: {error}')
        if call is not None:
            call()

    def create_task(self, callback: Any, *args: Any, **kwargs: Any) -> Any:
        """Have something called by rclpy; see `rclpy.executors.Executor.create_task`."""
        task = super().create_task(callback, *args, **kwargs)
        self._note(task)
        self.wake()
        return task

    def add_node(self, node: Any) -> bool:
        """Add a node; see `rclpy.executors.Executor.add_node`."""
        is_new: bool = super().add_node(node)
        self.wake()
        return is_new

    def remove_node(self, node: Any) -> None:
        """Remove a node; see `rclpy.executors.Executor.remove_node`."""
        super().remove_node(node)
        self.wake()

    def wake(self) -> None:
        """Have what there is to wait for looked at again; rclpy calls it after all changes."""
        if self._change is not None:
            self._change.trigger()
        super().wake()

    def can_execute(self, entity: Any) -> bool:
        """Whether rclpy may call an entity now.

        Also one whose message could not be unpacked, which rclpy would call no more.
        """
        group = entity.callback_group
        return group is not None and bool(group.can_execute(entity))

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
        self._ended = True
        self.wake()
        is_done: bool = super().shutdown(timeout_sec)
        with self._waiting:
            self._ready.clear()
            self._in_use.close()
        return is_done

    # The own way

    def _find(self, timeout_sec: float | None) -> Callable[[], Any] | None:
        """Wait for something to do.

        Parameters
        ----------
        timeout_sec : float, optional
            Longest wait [s]; by default for ever.

        Returns
        -------
        callable or None
            What is to be called.
        """
        if not self._ready:
            is_look_due = time.monotonic() >= self._next_look
            with self._waiting:
                if self._ended:
                    return None
                longest = _LOOK_PERIOD if timeout_sec is None else timeout_sec
                self._wait(0 if is_look_due else int(1e9 * longest))
            if not self._ready:
                return self._look if is_look_due else None
        entity, take = self._ready.popleft()
        self.latest = entity
        call: Callable[[], Any] | None = take()
        return call

    def _wait(self, nanoseconds: int) -> None:
        """Wait for entities to be ready, and note how they are taken."""
        if self._wait_set is None:
            self._gather()
        wait_set = self._wait_set
        wait_set.clear_entities()
        try:
            for add, entity in self._fill:
                add(entity)
        except InvalidHandle:  # an event has been destroyed
            self._wait_set = None
            return
        if not self._is_probed:
            assert self._change is not None
            self._change.trigger()
        wait_set.wait(nanoseconds)
        if not self.context.ok():
            raise ExternalShutdownException
        if not self._is_probed and not wait_set.get_ready_entities('guard_condition'):
            raise RuntimeError('a guard condition is ready, and the wait set says nothing')
        self._is_probed = True
        for kind in ('timer', 'subscription', 'guard_condition', 'client', 'service'):
            for address in wait_set.get_ready_entities(kind):  # unknown ones are of actions
                self._ready.append(self._calls.get(address, self._other))
        if any([waitable.is_ready(wait_set) for waitable in self._waitables]):
            self._ready.append(self._other)

    def _gather(self) -> None:
        """Make the wait set of all that there is to wait for."""
        if self._change is None:
            self._change = GuardCondition(None, None, context=self.context)
        with ExitStack() as in_use:
            in_use.enter_context(self.context.handle)
            present = [item for item in self._entities() if _is_kept(in_use, *item)]
            self._waitables = [entity for kind, entity in present if kind == 'waitable']
            wait_set = self._new_wait_set([kind for kind, _ in present])
            self._in_use.close()
            self._in_use = in_use.pop_all()
        self._wait_set, self._calls = wait_set, {}
        self._fill = [(waitable.add_to_wait_set, wait_set) for waitable in self._waitables]
        for kind, entity in present:
            if kind != 'waitable':
                name = 'guard_condition' if kind == 'guard' else kind
                self._fill.append((getattr(wait_set, f'add_{name}'), entity.handle))
                take = self._take(kind, entity)
                self._calls[entity.handle.pointer] = self._other if take is None else take

    def _entities(self) -> Iterator[tuple[str, Any]]:
        """Yield all that there is to wait for, with its kind.

        Events of the middleware are not: there are several of every topic, each makes every wait
        longer, and rclpy calls them when it looks at everything.
        """
        nodes = self.get_nodes()
        yield 'guard', self._change
        for kind in (*_KINDS, 'waitable'):
            for node in nodes:
                for entity in getattr(node, f'{kind}s'):
                    if not isinstance(entity, EventHandler):
                        yield kind, entity

    def _new_wait_set(self, kinds: list[str]) -> Any:
        """Empty wait set with room for entities of some kinds, and for the waitables."""
        count = NumberOfEntities(*map(kinds.count, _KINDS))
        count = sum((waitable.get_num_entities() for waitable in self._waitables), count)
        sizes = [getattr(count, name) for name in NumberOfEntities.__slots__]
        make: Callable[..., Any] = rclpy_implementation.WaitSet
        return make(*sizes, self.context.handle)

    def _take(self, kind: str, entity: Any) -> tuple[Any, Callable[[], Any]] | None:
        """Entity to be taken here, and how; None: it is left to rclpy."""
        if entity is self._change:
            return None, self._gather_again
        if kind in ('client', 'service') or inspect.iscoroutinefunction(entity.callback):
            return None
        callback = entity.callback
        if kind == 'guard':
            return entity, lambda: callback
        if kind == 'timer':  # a callback with parameters asks when the timer was due
            has_parameters = inspect.signature(callback).parameters
            return None if has_parameters else (entity, partial(_due, entity))
        return entity, partial(_received, entity, _has_info(callback))

    def _gather_again(self) -> None:
        self._wait_set = None

    # The way of rclpy

    @property
    def _other(self) -> tuple[None, Callable[[], Any]]:
        return None, lambda: self._call_others

    def _is_awaiting(self) -> bool:
        """Whether tasks wait for something, which hold their callback groups: rclpy minds that."""
        for _ in range(len(self._unfinished)):
            self._note(self._unfinished.popleft())
        return bool(self._unfinished)

    def _note(self, task: Any) -> None:
        if not (task.done() or task.cancelled() or task in self._unfinished):
            self._unfinished.append(task)

    def _hand_over(self) -> None:
        """Have rclpy find what has been found here and not been called."""
        for entity, _ in self._ready:
            if isinstance(entity, GuardCondition):  # all others are seen again
                entity.trigger()
        self._ready.clear()
        self._in_use.close()
        self._wait_set, self._next_look = None, 0.0

    def _call_others(self) -> None:
        """Have rclpy call what it finds until something comes again, so that a flood ends."""
        self._wait_set = None  # rclpy may hear of a change in our place
        found: list[Any] = []
        while (called := self._call_of_rclpy(0.0)) is not None:
            # Tasks are one each: one that makes another one would go on for ever.
            if called in found or not hasattr(called, 'callback_group'):
                return
            found.append(called)

    def _look(self) -> None:
        """Have rclpy call all that it finds, which nothing here has found."""
        self._next_look = time.monotonic() + _LOOK_PERIOD
        self._call_others()

    def _call_of_rclpy(self, timeout_sec: float | None) -> Any:
        """Have rclpy wait and call one callback.

        Parameters
        ----------
        timeout_sec : float, optional
            Longest wait [s]; by default for ever.

        Returns
        -------
        object or None
            Entity or task whose callback has been called.

        Raises
        ------
        ExecutorError
            If rclpy cannot wait.
        """
        try:
            handler, entity, _ = self.wait_for_ready_callbacks(timeout_sec)
        except (TimeoutException, ShutdownException):
            return None
        except ExternalShutdownException:
            raise
        except Exception as error:
            self._failures += 1
            if self._failures < _MOST_FAILURES:
                time.sleep(_PAUSE)
                return None
            raise ExecutorError(
                f'The executor of rclpy has failed {self._failures} times in a row '
                f'({type(error).__name__}: {error}). Does this rclpy belong to the ROS '
                'distribution that is sourced?'
            ) from error
        self._failures, self.latest = 0, entity
        handler()
        self._note(handler)
        if handler.exception() is not None and entity is not None:
            group = entity.callback_group
            if not group.can_execute(entity):  # rclpy leaves it so where it cannot unpack
                with suppress(AssertionError):  # it is another's turn
                    group.ending_execution(entity)
        handler.result()  # raises what the callback has raised
        return handler if entity is None else entity

    def _leave_to_rclpy(self, why: str) -> None:
        """Leave everything to rclpy from now on."""
        if self._is_plain:
            return
        self._is_plain = True
        rclpy.logging.get_logger('hodyn_ros').warning(
            f'The executor of rclpy is used from now on, since that of this package does not fit '
            f'this rclpy ({why}). Nothing is lost but processor time; a release of hodyn_ros that '
            'knows this rclpy saves it.'
        )
        # The wait set may have heard of them in rclpy's place.
        for node in self.get_nodes():
            for guard in node.guards:
                guard.trigger()


def take_message(subscription: Any) -> tuple[Any, Any] | None:
    """Message that waits at a subscription, and what the middleware says of it.

    Parameters
    ----------
    subscription : Subscription

    Returns
    -------
    tuple of (object, mapping) or None
        None: nothing waits, or the subscription has been destroyed.
    """
    handle = subscription.handle
    try:
        with handle:
            taken: tuple[Any, Any] | None = handle.take_message(
                subscription.msg_type, subscription.raw
            )
    except InvalidHandle:
        return None
    return taken


def take_following(subscription: Any) -> tuple[Any, Any] | None:
    """Another message that waits at a subscription, if this rclpy allows to ask for it.

    Parameters
    ----------
    subscription : Subscription

    Returns
    -------
    tuple of (object, mapping) or None
        None: the executor finds what waits.
    """
    try:
        return take_message(subscription)
    except (AttributeError, TypeError):
        return None


def _is_kept(in_use: ExitStack, kind: str, entity: Any) -> bool:
    """Whether an entity is still there, which it then is until it is not in use any more."""
    try:
        in_use.enter_context(entity if kind == 'waitable' else entity.handle)
    except InvalidHandle:  # it has been destroyed
        return False
    return True


def _has_info(callback: Callable[..., Any]) -> bool:
    """Whether a callback of a subscription takes what the middleware says of a message, too."""
    try:
        inspect.signature(callback).bind(None)
    except TypeError:
        return True
    except ValueError:  # no signature: a function in C
        return False
    return False


def _received(subscription: Any, has_info: bool) -> Callable[[], Any] | None:
    """Call of the callback of a subscription with its next message, unless it is destroyed."""
    taken = take_message(subscription)
    return None if taken is None else partial(subscription.callback, *taken[: 1 + has_info])


def _due(timer: Any) -> Callable[[], Any] | None:
    """Callback of a timer, unless it is not due any more."""
    handle = timer.handle
    try:
        with handle:
            if not handle.is_timer_ready():  # it has been cancelled, or time has jumped
                return None
            handle.call_timer()
    except InvalidHandle:
        return None
    callback: Callable[[], Any] = timer.callback
    return callback
