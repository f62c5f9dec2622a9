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

from hodyn_ros.engine.effort_programs import part_of
from hodyn_ros.engine.program import Program
from hodyn_ros.engine.robot_program import RobotProgram
from hodyn_ros.model.robot import RobotModel

Array = NDArray[np.float64]

# Samples whose intermediate results stay in the cache, and are enough to hide the cost of Python.
BLOCK = 2048

_SIGNS = {'add': '+', 'subtract': '-', 'multiply': '*'}


def python_source(program: Program, arrays: Sequence[str], *results: str) -> str:
    """Python source of a function `evaluate` that runs a program.

    Parameters
    ----------
    program : Program
    arrays : sequence of str
        The arrays that it reads, in the order of the function's arguments: sequences of numbers
        or of arrays of numbers.
    results : str
        The arrays that it writes; the function returns a list of all their elements.

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
    ends = sorted((results.index(o.array), o.index, names[o.step]) for o in program.outputs)
    lines.append(f'    return [{", ".join(name for _, _, name in ends)}]')
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


def _function(program: Program, arrays: Sequence[str], *results: str) -> _Function:
    source = python_source(part_of(program, results), arrays, *results)
    return _Function(compile(source, '<straight-line program>', 'exec'))


def _slope(x: Any) -> Any:
    """Return the derivative of tanh."""
    e = np.exp(-2.0 * np.abs(x))
    return 4.0 * e / (1.0 + e) ** 2


class StraightLine:
    """A program of a robot as a Python function; used like `kernels.Kernel`.

    Parameters
    ----------
    model : RobotModel
    robot : RobotProgram
    """

    name = 'straight_line'

    def __init__(self, model: RobotModel, robot: RobotProgram) -> None:
        self.wrench_size = 0 if robot.middle.written else robot.middle.size
        self.friction = robot.friction
        self._two_results = robot.middle.written
        bodies = list(robot.bodies)
        self._coordinate = model.coordinate[bodies]
        self._multiplier, self._offset = model.multiplier[bodies], model.offset[bodies]
        inputs, results = ['motion', 'sine', 'cosine'], [robot.result.array]
        if robot.middle.written:
            results.insert(0, robot.middle.array)
        inputs.append('_' if robot.middle.written else robot.middle.array)
        self._steps = _function(robot.arguments, ('motion',), 'step')
        self._velocities = _function(robot.arguments, ('motion',), 'velocity')
        self._function = _function(
            robot.program, (*inputs, 'shape', 'slope', 'direction'), *results
        )

    def evaluate(
        self, motion: Array, middle: Array | None, result: Array, num_threads: int = 1
    ) -> bool:
        """Compute a batch; see `kernels.Kernel.evaluate`."""
        if not np.all(np.isfinite(motion)):
            return False
        N, size = len(motion), int(np.prod(motion.shape[1:]))
        loads = middle if self.wrench_size else None
        written = [a.reshape(N, a[:1].size) for a in self._written(middle, result)]
        for start in range(0, N, BLOCK):
            part = slice(start, start + BLOCK)
            values = motion[part].reshape(-1, size)
            position = values[:, self._coordinate] * self._multiplier + self._offset
            if len(values) == 1:
                sine = [math.sin(q) for q in position[0]]
                cosine = [math.cos(q) for q in position[0]]
                load = () if loads is None else loads[start].tolist()
                numbers = self._run(values[0].tolist(), sine, cosine, load)
                for array in written:
                    count = array.shape[1]
                    array[start] = numbers[:count]
                    numbers = numbers[count:]
            else:
                # One row for each number, contiguous.
                given = np.zeros((len(values), 0)) if loads is None else loads[part]
                rows = [values, np.sin(position), np.cos(position), given]
                results = iter(self._run(*(np.ascontiguousarray(a.T) for a in rows)))
                for array in written:
                    for column in range(array.shape[1]):
                        array[part, column] = next(results)
        return all(bool(np.all(np.isfinite(array))) for array in written)

    def _run(self, motion: Any, sine: Any, cosine: Any, middle: Any) -> list[Any]:
        steps = self._steps(motion)
        shape, slope = [np.tanh(x) for x in steps], [_slope(x) for x in steps]
        direction = [np.sign(v) for v in self._velocities(motion)]
        return self._function(motion, sine, cosine, middle, shape, slope, direction)

    def _written(self, middle: Array | None, result: Array) -> list[Array]:
        if self._two_results and middle is not None:
            return [middle, result]
        return [result]
