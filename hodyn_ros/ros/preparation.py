"""Robots are made ready in a thread of its own, so that no callback waits for a compiler.

While a robot is in use, kernels are made in another process: in this one, the stream would feel
that Python runs one thread at a time.
"""

from __future__ import annotations

import gc
import importlib
import threading
from collections.abc import Callable, Iterable
from typing import NamedTuple

from rclpy.logging import get_logger

from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.engine.engine import engine_of, unavailable
from hodyn_ros.engine.other_process import Compiler, Wanted
from hodyn_ros.engine.robot_program import Attachment
from hodyn_ros.errors import HodynError
from hodyn_ros.model.robot import BASE, RobotModel
from hodyn_ros.ros.worker import Worker, reason

ORDERS = range(3)  # of the efforts in messages

# Robots that are taken up again at once, such as one with and without what its gripper holds.
REMEMBERED = 8


class Outcome(NamedTuple):
    """What has become of a robot description."""

    description: str
    model: RobotModel | None
    """None if the description cannot be used."""
    error: str
    """Why it cannot be used."""
    remark: str
    """Why there is no compiled code for it."""


class _Description(NamedTuple):
    text: str
    model: RobotModel | None
    wrenches: tuple[Wrench, ...]
    in_other_process: bool


class Preparation:
    """Thread that assembles models and has their dynamics compiled.

    Parameters
    ----------
    assemble : callable
        Returns the model of a description or raises HodynError.
    finish : callable
        Is called with every outcome, in whatever thread.
    """

    def __init__(
        self, assemble: Callable[[str], RobotModel], finish: Callable[[Outcome], None]
    ) -> None:
        self._assemble, self._finish = assemble, finish
        self._lock = threading.Lock()
        self._description: _Description | None = None
        self._closed = False
        self._compiler = Compiler()
        self._made: dict[str, Outcome] = {}
        self._worker = Worker('preparation', get_logger('hodyn_ros').error)
        self._worker.put(self._import_compiler)

    def request(
        self,
        description: str,
        model: RobotModel | None = None,
        wrenches: Iterable[Wrench] = (),
        in_other_process: bool = False,
    ) -> None:
        """Have a robot made ready next, instead of one that still waits for its turn.

        Parameters
        ----------
        description : str
        model : RobotModel, optional
            Its model, if it has been assembled already.
        wrenches : iterable of Wrench
            Present wrenches; those on links that the robot has will act on it too.
        in_other_process : bool
            Whether to compile in another process: slower, but unnoticed by this one.
        """
        wanted = _Description(description, model, tuple(wrenches), in_other_process)
        with self._lock:
            known = self._made.pop(description, None)
            if known is None:
                self._description = wanted
            else:
                self._made[description] = known  # the latest one
                self._description = None
        if known is not None:
            self._finish(known)
            return
        self._worker.put(
            lambda: self._make_ready(wanted),
            lambda error: self._finish(Outcome(description, None, reason(error), '')),
        )

    def cancel(self) -> None:
        """Forget the description that waits for its turn."""
        with self._lock:
            self._description = None

    def request_wrenches(self, model: RobotModel, wrenches: Iterable[Wrench]) -> None:
        """Have the dynamics of a robot in use compiled for wrenches, unless they are already.

        May be called from any thread. Wrenches on links that the robot does not have are for
        others to refuse.
        """
        wrenches = tuple(wrenches)
        if any(wrench.link not in model.links for wrench in wrenches):
            return
        wanted = _missing(model, wrenches)
        if wanted:
            self._worker.put(lambda: self._make_kernels(model, wanted))

    def close(self) -> None:
        """End the thread; what it is doing is cut short or brought to its end."""
        self._closed = True
        self._compiler.close()
        self._worker.close()

    def _make_ready(self, description: _Description) -> None:
        with self._lock:
            if self._description is not description:
                return  # another one has taken its place
            self._description = None
        if not self._closed:
            self._finish(self._outcome(description))

    def _make_kernels(self, model: RobotModel, wanted: tuple[Wanted, ...]) -> None:
        if self._description is not None:
            self._worker.put(lambda: self._make_kernels(model, wanted))  # behind it
        elif not self._closed:
            self._compile(model, wanted, in_other_process=True)

    def _import_compiler(self) -> None:
        """Import what compiling needs before it is needed."""
        try:
            if not unavailable():
                importlib.import_module('hodyn_ros.engine.numba_call')
        except Exception:  # will be reported when it is needed
            pass
        # The compiler has more objects than all else together. If every full garbage collection
        # visited them, it would hold all threads up for 50 ms.
        gc.freeze()

    def _outcome(self, description: _Description) -> Outcome:
        text, model, wrenches, in_other_process = description
        model = model or self._assemble(text)
        present = [wrench for wrench in wrenches if wrench.link in model.links]
        wanted = _missing(model, ()) + _missing(model, present)
        remark = self._compile(model, wanted, in_other_process)
        outcome = Outcome(text, model, '', remark or '')
        with self._lock:
            self._made[text] = outcome
            while len(self._made) > REMEMBERED:
                del self._made[next(iter(self._made))]
        return outcome

    def _compile(
        self, model: RobotModel, wanted: tuple[Wanted, ...], in_other_process: bool
    ) -> str | None:
        """Make kernels; return why they are slower than they could be, if they are."""
        try:
            if in_other_process:
                try:
                    self._compiler.prepare(model, wanted)
                    return unavailable()
                except HodynError:
                    if self._closed:
                        return None
            engine = engine_of(model)
            for order, wrenches in wanted:
                if engine.form(order) is not None:
                    engine.prepare(order, wrenches)
        except Exception as error:  # compilers fail in many ways; NumPy computes the same
            return f'compiling failed: {error}'
        return unavailable()


def _missing(model: RobotModel, wrenches: Iterable[Wrench]) -> tuple[Wanted, ...]:
    """Kernels for some wrenches that nobody has begun to make; they are the caller's now."""
    attachments = tuple(
        Attachment(wrench.link, wrench.expressed_in)
        for wrench in wrenches
        if model.link(wrench.link).body != BASE
    )
    engine = engine_of(model)
    return tuple((k, attachments) for k in ORDERS if engine.expect(k, attachments))
