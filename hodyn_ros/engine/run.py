"""Programs run operation by operation, before there is machine code and where there is none.

The same steps work on floats, one sample after the other, and on arrays, one number of many
samples each: arrays cost half a microsecond an operation however few the samples are.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hodyn_ros.engine.program import SINGULAR, RobotProgram, StraightLineProgram
from hodyn_ros.lie.jets import FUNCTIONS
from hodyn_ros.typing import Array

# Samples that floats compute sooner than arrays.
FEW = 6
# Samples whose intermediate values are kept together: they stay in the processor's cache.
BLOCK = 256


def _of_one(function: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """Operation of one operand, whose results of floats are floats of Python: these are quick."""
    return lambda x, _: float(function(x)) if isinstance(x, float) else function(x)


def _inverse(pivot: Any, size: Any) -> Any:
    """Reciprocal of a pivot, NaN where it is not positive beside numbers of a size."""
    if isinstance(pivot, float):
        return 1.0 / pivot if pivot > SINGULAR * size else np.nan
    return np.where(pivot > SINGULAR * size, np.divide(1.0, pivot), np.nan)


OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    'add': operator.add,
    'subtract': operator.sub,
    'multiply': operator.mul,
    'negate': lambda x, _: -x,
    'inverse': _inverse,
    **{kind: _of_one(function) for kind, function in FUNCTIONS.items()},
}
"""Operations on floats or arrays, by their kinds; those of one operand ignore the second."""


class Steps:
    """A straight-line program whose values share slots: each is overwritten after its last use.

    Parameters
    ----------
    program : StraightLineProgram
    """

    def __init__(self, program: StraightLineProgram) -> None:
        operations = program.operations
        self._values: list[Any] = []
        self._read: list[tuple[str, int, int]] = []
        self._steps: list[tuple[Callable[[Any, Any], Any], int, int, int]] = []
        last: dict[Any, float] = {}
        for step, (kind, *operands) in enumerate(operations):
            if kind in OPERATIONS:
                last.update(dict.fromkeys(operands, step))
        last.update(dict.fromkeys((output.step for output in program.outputs), np.inf))
        slots: list[int] = []
        free: list[int] = []
        for step, (kind, a, b) in enumerate(operations):
            slot = len(self._values)
            if kind in OPERATIONS:
                b = a if b is None else b
                for x in {a, b}:
                    if last[x] == step and operations[x].kind in OPERATIONS:
                        free.append(slots[x])
                slot = free.pop() if free else slot
                self._steps.append((OPERATIONS[kind], slots[a], slots[b], slot))
            elif kind == 'input':
                self._read.append((a, b, slot))
            slots.append(slot)
            if slot == len(self._values):
                self._values.append(a)  # the number of a constant
        self._written = [(array, k, slots[step]) for array, k, step in program.outputs]

    def run(self, arrays: Mapping[str, Any]) -> None:
        """Write the outputs.

        Parameters
        ----------
        arrays : mapping of str to sequence
            For each element of an array a float, or the values of all samples, shape (N,). Those
            that the program writes must be there.
        """
        values = self._values.copy()
        for array, index, slot in self._read:
            values[slot] = arrays[array][index]
        for operation, a, b, slot in self._steps:
            values[slot] = operation(values[a], values[b])
        for array, index, slot in self._written:
            arrays[array][index] = values[slot]


class Run:
    """A program of a robot that answers as a kernel does.

    Parameters
    ----------
    robot : RobotProgram
    """

    def __init__(self, robot: RobotProgram) -> None:
        self._robot, self._program = robot, Steps(robot.program)

    def evaluate(self, motion: Array, middle: Array | None, result: Array) -> bool:
        """Compute a batch.

        Parameters
        ----------
        motion : ndarray, shape (N, K, n)
        middle : ndarray, shape (N, ...), or None
            Read, or written where the program says so.
        result : ndarray, shape (N, ...)
            Written; contiguous.

        Returns
        -------
        bool
            Whether motion, middle and result are all finite.
        """
        N, robot = len(motion), self._robot
        parts = (robot.middle, middle), (robot.result, result)
        arrays = {part.array: x.reshape(N, part.size) for part, x in parts if x is not None}
        arrays['motion'] = motion.reshape(N, motion.shape[1] * motion.shape[2])
        written = {part.array for part, _ in parts if part.written}
        with np.errstate(all='ignore'):
            if N <= FEW:
                for s in range(N):
                    rows = {name: x[s] for name, x in arrays.items()}
                    read = {
                        name: x.tolist() for name, x in rows.items() if name not in written
                    }
                    self._program.run(rows | read)
            else:
                for start in range(0, N, BLOCK):
                    block = slice(start, start + BLOCK)
                    self._program.run({name: x[block].T for name, x in arrays.items()})
        return all(bool(np.isfinite(x).all()) for x in arrays.values())
