"""Programs as Python functions, for machines without a compiler.

The same function takes numbers, for a single sample, or arrays of numbers, for batches.
"""

from __future__ import annotations

import marshal
import math
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.engine.effort_programs import effort_programs, part_of, with_known_friction
from hodyn_ros.engine.program import Program
from hodyn_ros.engine.robot_program import Attachment
from hodyn_ros.model.robot import RobotModel

Array = NDArray[np.float64]

# Samples whose intermediate results stay in the cache, and are enough to hide the cost of Python.
BLOCK = 2048

_SIGNS = {'add': '+', 'subtract': '-', 'multiply': '*'}


def python_source(program: Program, arrays: Sequence[str], result: str) -> str:
    """Python source of a function `evaluate` that runs a program.

    Parameters
    ----------
    program : Program
    arrays : sequence of str
        The arrays that it reads, in the order of the function's arguments: sequences of numbers
        or of arrays of numbers.
    result : str
        The array that it writes; the function returns a list of its elements.

    Returns
    -------
    str
    """
    last_use = {output.step: len(program.operations) for output in program.outputs}
    for step in reversed(range(len(program.operations))):
        for operand in program.operands(step):
            last_use.setdefault(operand, step)
    names: list[str] = []
    free: list[str] = []
    lines = [f'def evaluate({", ".join(arrays)}):']
    count = 0
    for step, (kind, a, b) in enumerate(program.operations):
        if kind == 'constant':
            names.append(repr(a) if a >= 0.0 else f'({a!r})')
            continue
        operands = program.operands(step)
        expression = (
            f'{a}[{b}]' if kind == 'input' else f'-{names[a]}' if kind == 'negate'
            else f'{names[a]} {_SIGNS[kind]} {names[b]}'
        )  # fmt: skip
        # A name that is not needed any more gives its array back.
        for operand in set(operands):
            if last_use[operand] == step and program.operations[operand].kind != 'constant':
                free.append(names[operand])
        if not free:
            free.append(f'v{count}')
            count += 1
        names.append(free.pop())
        lines.append(f'    {names[-1]} = {expression}')
    ends = {o.index: names[o.step] for o in program.outputs if o.array == result}
    lines.append(f'    return [{", ".join(ends[i] for i in range(len(ends)))}]')
    return '\n'.join(lines) + '\n'


class _Function:
    """A function from compiled source, which can be pickled."""

    def __init__(self, code: CodeType) -> None:
        self._code = code
        scope: dict[str, Any] = {}
        exec(code, scope)
        self._call: Callable[..., list[Any]] = scope['evaluate']

    def __call__(self, *arguments: Any) -> list[Any]:
        return self._call(*arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        return _from_bytes, (marshal.dumps(self._code),)


def _from_bytes(content: bytes) -> _Function:
    return _Function(marshal.loads(content))


def _function(program: Program, arrays: Sequence[str], result: str) -> _Function:
    source = python_source(part_of(program, (result,)), arrays, result)
    return _Function(compile(source, '<straight-line program>', 'exec'))


def _slope(x: Any) -> Any:
    """Return the derivative of tanh."""
    e = np.exp(-2.0 * np.abs(x))
    return 4.0 * e / (1.0 + e) ** 2


class StraightLine:
    """Efforts of one order of a robot by a Python function; used like `kernels.Kernel`.

    It can be pickled, for use in another process of the same Python.

    Parameters
    ----------
    model : RobotModel
    order : int
    wrenches : sequence of Attachment
    """

    name = 'straight_line'

    def __init__(
        self, model: RobotModel, order: int, wrenches: Sequence[Attachment] = ()
    ) -> None:
        self.order = order
        self.wrench_size = 6 * (order + 1) * len(wrenches)
        self._model = model
        known = with_known_friction(model)
        self.friction = known is model
        programs = effort_programs(known, order, wrenches)
        self._steps = _function(programs.arguments, ('motion',), 'step')
        self._velocities = _function(programs.arguments, ('motion',), 'velocity')
        names = ('motion', 'sine', 'cosine', 'wrench', 'shape', 'slope', 'direction')
        self._efforts = _function(programs.efforts, names, 'effort')

    def evaluate(
        self, motion: Array, wrench: Array | None, effort: Array, num_threads: int = 1
    ) -> bool:
        """Compute the efforts of a batch; see `kernels.Kernel.evaluate`."""
        if not np.all(np.isfinite(motion)):
            return False
        model = self._model
        flat = effort.reshape(len(motion), -1)
        for start in range(0, len(motion), BLOCK):
            part = slice(start, start + BLOCK)
            values = motion[part].reshape(-1, model.n_joints * (self.order + 3))
            position = values[:, model.coordinate] * model.multiplier + model.offset
            loads: Any = () if wrench is None else wrench[part]
            if len(values) == 1:
                numbers: Any = values[0].tolist()
                sine: Any = [math.sin(q) for q in position[0]]
                cosine: Any = [math.cos(q) for q in position[0]]
                load = loads if wrench is None else loads[0].tolist()
            else:
                # One row for each number, contiguous.
                numbers, sine, cosine, load = (
                    np.ascontiguousarray(np.transpose(array))
                    for array in (values, np.sin(position), np.cos(position), loads)
                )
            steps = self._steps(numbers)
            shape = [np.tanh(x) for x in steps]
            slope = [_slope(x) for x in steps]
            direction = [np.sign(v) for v in self._velocities(numbers)]
            results = self._efforts(numbers, sine, cosine, load, shape, slope, direction)
            for column, result in enumerate(results):
                flat[part, column] = result
        return bool(np.all(np.isfinite(effort)))
