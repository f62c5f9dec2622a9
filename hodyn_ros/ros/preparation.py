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

from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.engine.engine import engine_of, unavailable
from hodyn_ros.engine.other_process import Compiler, Wanted
from hodyn_ros.engine.robot_program import Attachment
from hodyn_ros.errors import HodynError
from hodyn_ros.model.robot import BASE, RobotModel

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


class _Kernels(NamedTuple):
    model: RobotModel
    wanted: tuple[Wanted, ...]


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
        self._changed = threading.Condition()
        self._description: _Description | None = None
        self._kernels: list[_Kernels] = []
        self._closed = False
        self._compiler = Compiler()
        self._made: dict[str, Outcome] = {}
        self._thread = threading.Thread(target=self._run, name='preparation', daemon=True)
        self._thread.start()

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
        with self._changed:
            known = self._made.pop(description, None)
            if known is None:
                self._description = _Description(
                    description, model, tuple(wrenches), in_other_process
                )
                self._changed.notify()
            else:
                self._made[description] = known  # the latest one
                self._description = None
        if known is not None:
            self._finish(known)

    def cancel(self) -> None:
        """Forget the description that waits for its turn."""
        with self._changed:
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
            with self._changed:
                self._kernels.append(_Kernels(model, wanted))
                self._changed.notify()

    def close(self) -> None:
        """End the thread; what it is doing is cut short or brought to its end."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._compiler.close()
        self._thread.join()

    def _run(self) -> None:
        self._import_compiler()
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._closed or self._description or self._kernels
                )
                if self._closed:
                    return
                description, self._description = self._description, None
                kernels = None if description else self._kernels.pop(0)
            if description:
                self._finish(self._outcome(description))
            elif kernels:
                self._compile(kernels.model, kernels.wanted, in_other_process=True)

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
        try:
            model = model or self._assemble(text)
        except Exception as error:
            return Outcome(text, None, str(error), '')
        present = [wrench for wrench in wrenches if wrench.link in model.links]
        wanted = _missing(model, ()) + _missing(model, present)
        remark = self._compile(model, wanted, in_other_process)
        outcome = Outcome(text, model, '', remark or '')
        with self._changed:
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
