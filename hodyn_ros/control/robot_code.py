"""What laws compute with the model of one robot, called by addresses.

Each quantity has a row of four numbers: the address of a function like `llvm_lanes.EVALUATE`, and
its first three arguments. It is machine code of the engine, as soon as there is some, or Python.
Generated C has a function of the same name for each.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.control.kernels import Index, Matrix, Vector
from hodyn_ros.control.layouts import BEYOND_RANGE, MEASURED, Law, Observer
from hodyn_ros.engine.engine import Engine, unavailable
from hodyn_ros.engine.requests import KernelRequest
from hodyn_ros.typing import Array

MASS, EFFORTS, EFFORTS_2, GRAVITY, FRICTION, SPRINGS_AT = range(6)
"""Rows of a robot: mass matrix, efforts of order 0 and up to order 2, weight, friction of the
motors, and springs that are no lines."""
MOTORS, REST, DEMAND = range(3)
"""Rows of a law: motion of motors on springs that are no lines, and torques wanted of springs at
rest, and of motors, that only Python computes."""

_FAILED = 9  # status of a call in which Python has raised an error
_EVALUATE = ctypes.CFUNCTYPE(
    ctypes.c_int64, *[ctypes.c_void_p] * 3, ctypes.c_int64, *[ctypes.c_void_p] * 3
)


def evaluate(row: Index, given: Array, result: Array) -> int:
    """Status of a call of a row: arrays in, array out; compiled functions have their own."""
    function, arrays = _EVALUATE(int(row[0])), (given.ctypes.data, None, result.ctypes.data)
    return function(*map(int, row[1:]), 1, *arrays)  # type: ignore[no-any-return]


def mass_matrix(o: Observer, q: Vector, M: Matrix) -> None:
    """Mass matrix of the links at positions q (n,)."""
    evaluate(o.calls[MASS], q, M)


def efforts_0(o: Observer, motion: Matrix, effort: Vector) -> None:
    """Efforts (n,) of a motion (3, n)."""
    evaluate(o.calls[EFFORTS], motion, effort)


def efforts_2(o: Observer, motion: Matrix, effort: Matrix) -> None:
    """Efforts with two derivatives (3, n) of a motion (5, n)."""
    evaluate(o.calls[EFFORTS_2], motion, effort)


def gravity(o: Observer, q: Vector, effort: Vector) -> None:
    """Weight (n,) at positions q (n,)."""
    evaluate(o.calls[GRAVITY], q, effort)


def motor_friction(o: Observer, motion: Matrix, effort: Vector) -> None:
    """Friction (m,) of motors with the velocities in row 1 of a motion (3, m)."""
    evaluate(o.calls[FRICTION], motion, effort)


def motors_of(o: Observer, c: Law) -> int:
    """Motion, torque and friction of motors for a wanted motion; zero, or what is wrong."""
    if o.is_bent:
        return evaluate(c.calls[MOTORS], o.wanted, o.motion)
    for k in range(3):
        o.motion[k] = o.wanted[k] + o.softness * o.effort[k]
    o.friction[:] = 0.0
    if o.has_friction:
        motor_friction(o, o.motion, o.friction)
    for i in range(o.n):
        if abs(o.softness[i] * o.effort[0, i]) > o.range[i]:
            return BEYOND_RANGE
    o.feed_forward[:] = o.effort[0] + o.inertia * o.motion[2] + o.friction
    return MEASURED


class Calls:
    """Rows of calls, and what they need as long as they are used.

    Parameters
    ----------
    rows : ndarray of int, shape (K, 4)
        Of a record; is written.

    Attributes
    ----------
    error : Exception or None
        That Python has raised in a call.
    """

    def __init__(self, rows: NDArray[np.int64]) -> None:
        self._rows, self._kept = rows, dict[int, Any]()
        self._awaited: dict[int, tuple[Engine, KernelRequest]] = {}
        self.error: Exception | None = None

    def answer(
        self, which: int, function: Callable[..., int | None], *shapes: tuple[int, ...]
    ) -> None:
        """Have Python answer a call, with arrays of some shapes, of which the last is written."""

        def answer(*arguments: Any) -> int:
            buffers: list[Any] = [
                (ctypes.c_double * prod(shape)).from_address(x)
                for x, shape in zip(arguments[4::2], shapes)
            ]
            given, result = (
                np.frombuffer(x).reshape(shape) for x, shape in zip(buffers, shapes)
            )
            try:
                return function(given, result) or 0
            except Exception as error:  # of which machine code knows nothing
                self.error, result[...] = self.error or error, np.nan
                return _FAILED

        made = self._kept[which] = _EVALUATE(answer)
        self._rows[which] = ctypes.cast(made, ctypes.c_void_p).value or 0, 0, 0, 0

    def compute(
        self,
        which: int,
        engine: Engine | None,
        request: KernelRequest,
        function: Callable[[Array], Array],
        *shapes: tuple[int, ...],
    ) -> None:
        """Have machine code of an engine answer a call; without it, and until then, Python."""

        def answer(given: Array, result: Array) -> None:
            result[...] = function(given)

        self.answer(which, answer, *shapes)
        if engine is not None:
            self._awaited[which] = engine, request

    def connect(self) -> None:
        """Take the machine code that there is by now."""
        for which, (engine, request) in list(self._awaited.items()):
            kernel = engine.kernels.get(request)
            if kernel is not None and kernel.friction:
                self._connect(which, kernel)
            if request in engine.kernels:
                del self._awaited[which]

    def prepare(self) -> None:
        """Have machine code made now, if there is a compiler."""
        if not unavailable():
            for engine, request in self._awaited.values():
                engine.prepare(request)
            self.connect()

    def _connect(self, which: int, kernel: Any) -> None:
        from hodyn_ros.engine.kernels import aligned

        scratch = aligned(kernel.codes[0].size)
        self._kept[which] = kernel, scratch
        self._rows[which] = [*kernel.program(0), scratch.ctypes.data]
