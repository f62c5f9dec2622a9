"""Straight-line programs, recorded from formulas that are written over abstract scalars.

A formula is a Python function that adds, subtracts and multiplies whatever it is given, and asks
`lie.jets` for sines and other functions of it. Given `Scalar` objects of a `Recorder`, it leaves
behind a `StraightLineProgram`: the operations that remain after folding constants, removing zero
and unit factors, sharing equal terms and dropping what no output needs. Programs become machine
code and C, or are run by NumPy, operation by operation: what a robot is too large for as compiled
code, or an order too high.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Union

from hodyn_ros.lie.jets import Jet


class Operation(NamedTuple):
    """One step of a program.

    The kind says what the operands are: 'input': array name, index; 'constant': value, None;
    'add', 'subtract', 'multiply': two earlier steps; 'negate': an earlier step, None; 'inverse':
    two earlier steps, the reciprocal of the first, NaN unless it is above `SINGULAR` times the
    second; one of `lie.jets.FUNCTIONS`: an earlier step, None.
    """

    kind: str
    a: Any
    b: Any

    @property
    def operands(self) -> tuple[int, ...]:
        """Earlier steps that the operation uses."""
        if self.kind in ('input', 'constant'):
            return ()
        return (self.a,) if self.b is None else (self.a, self.b)

    def renumbered(self, indices: Mapping[int, int]) -> Operation:
        """The same operation on steps that have other indices."""
        if not self.operands:
            return self
        return Operation(
            self.kind, indices[self.a], None if self.b is None else indices[self.b]
        )


# Steps of a program, half of which an output may need, that take a few seconds to compile, and a
# tenth of one to record. Where they are not enough, formulations compute, order by order.
LONGEST = 40_000

_BINARY = ('add', 'subtract', 'multiply')
_ODD, _EVEN = ('sine', 'tanh', 'sign'), ('cosine', 'tanh_slope')

SINGULAR = 1e-12
"""A pivot of the mass matrix that is smaller, relative to its diagonal, is rounding of zero."""


class Output(NamedTuple):
    """The value of a step that a program writes into an array.

    Attributes
    ----------
    array : str
    index : int
        Element of the array.
    step : int
        Index of the operation.
    """

    array: str
    index: int  # type: ignore[assignment]
    step: int


@dataclass(frozen=True)
class StraightLineProgram:
    """A straight-line program.

    Attributes
    ----------
    operations : tuple of Operation
        Every operand is an earlier step.
    outputs : tuple of Output
    """

    operations: tuple[Operation, ...]
    outputs: tuple[Output, ...]

    def counts(self) -> dict[str, int]:
        """Count the operations of each kind."""
        return dict(Counter(operation.kind for operation in self.operations))

    @property
    def flops(self) -> int:
        """Number of additions, subtractions and multiplications."""
        return sum(operation.kind in _BINARY for operation in self.operations)


class Scalar:
    """A number that a recorder follows: a step of its program, with a sign.

    The sign makes negation free; it is written out only where an output is negative.
    """

    __slots__ = ('negative', 'recorder', 'step')
    # Leave products with NumPy numbers to this class.
    __array_ufunc__ = None

    def __init__(self, recorder: Recorder, step: int, negative: bool = False) -> None:
        self.recorder: Recorder = recorder
        self.step: int = step
        self.negative: bool = negative

    def __neg__(self) -> Scalar:
        return Scalar(self.recorder, self.step, not self.negative)

    def __add__(self, other: Number) -> Number:
        if isinstance(other, Jet):
            return NotImplemented
        return self.recorder.sum(self, other)

    __radd__ = __add__

    def __sub__(self, other: Number) -> Number:
        if isinstance(other, Jet):
            return NotImplemented
        return self.recorder.sum(self, -other)

    def __rsub__(self, other: Number) -> Number:
        return self.recorder.sum(-self, other)

    def __mul__(self, other: Number) -> Number:
        if isinstance(other, Jet):
            return NotImplemented
        return self.recorder.product(self, other)

    __rmul__ = __mul__

    def function(self, name: str) -> Scalar:
        """One of `lie.jets.FUNCTIONS` of this number, see `lie.jets.evaluate`."""
        return self.recorder.function(name, self)


Number = Union[float, Scalar]  # noqa: UP007


class ProgramTooLong(Exception):
    """A formula takes more steps than a recorder was told to record."""


class Recorder:
    """Records a program; makes its inputs and takes its outputs.

    With `longest` steps, those included that no output needs, `ProgramTooLong` is raised.
    """

    def __init__(self, longest: int | None = None) -> None:
        self._longest = longest
        self._steps: dict[Operation, int] = {}
        self._outputs: dict[tuple[str, int], Number] = {}

    def inputs(self, array: str, count: int) -> list[Scalar]:
        """Scalars that stand for the first elements of an array."""
        return [self.input(array, index) for index in range(count)]

    def input(self, array: str, index: int) -> Scalar:
        """Scalar that stands for an element of an array."""
        return Scalar(self, self._step('input', array, index))

    def output(self, array: str, index: int, value: Number) -> None:
        """Have a value written into an array."""
        self._outputs[array, index] = value

    def outputs(self, array: str, values: Iterable[Number]) -> None:
        """Have values written into the first elements of an array."""
        for index, value in enumerate(values):
            self.output(array, index, value)

    def apart(self) -> Recorder:
        """Recorder with the same steps for other outputs; both go on to add to them."""
        other = Recorder(self._longest)
        other._steps = self._steps
        return other

    def program(self) -> StraightLineProgram:
        """Program of all outputs, without the steps that none needs."""
        ends = [(*place, self._end(value)) for place, value in self._outputs.items()]
        operations = list(self._steps)
        needed = [False] * len(operations)
        for _, _, step in ends:
            needed[step] = True
        for step in reversed(range(len(operations))):
            if needed[step]:
                for operand in operations[step].operands:
                    needed[operand] = True
        renumbered: dict[int, int] = {}
        operations_needed: list[Operation] = []
        for step, operation in enumerate(operations):
            if needed[step]:
                renumbered[step] = len(operations_needed)
                operations_needed.append(operation.renumbered(renumbered))
        outputs = (Output(array, index, renumbered[step]) for array, index, step in ends)
        return StraightLineProgram(tuple(operations_needed), tuple(outputs))

    def sum(self, a: Number, b: Number) -> Number:
        """Sum a + b, recorded unless one of them is zero or both cancel."""
        if not isinstance(a, Scalar) or not isinstance(b, Scalar):
            if _is_number(a, 0.0):
                return b
            if _is_number(b, 0.0):
                return a
            a, b = self._scalar(a), self._scalar(b)
        if a.negative == b.negative:
            first, second = sorted((a.step, b.step))
            return Scalar(self, self._step('add', first, second), a.negative)
        if a.step == b.step:
            return 0.0
        # a - b with the earlier step first, so that b - a is found again.
        positive, negative = (b.step, a.step) if a.negative else (a.step, b.step)
        if positive < negative:
            return Scalar(self, self._step('subtract', positive, negative))
        return Scalar(self, self._step('subtract', negative, positive), True)

    def product(self, a: Number, b: Number) -> Number:
        """Scalar a b, recorded; factors 0, 1 and -1 leave no step."""
        for x, y in ((a, b), (b, a)):
            if not isinstance(x, Scalar):
                x = float(x)
                if x == 0.0:
                    return 0.0
                if x == 1.0:
                    return y
                if x == -1.0:
                    return -y
        a, b = self._scalar(a), self._scalar(b)
        first, second = sorted((a.step, b.step))
        return Scalar(self, self._step('multiply', first, second), a.negative != b.negative)

    def inverse(self, pivot: Number, size: Number) -> Scalar:
        """Record 1 / pivot, NaN unless the pivot is positive beside numbers of a size.

        With the size 0.0 it must be positive.
        """
        steps = (self._end(value) for value in (pivot, size))
        return Scalar(self, self._step('inverse', *steps))

    def function(self, name: str, x: Scalar) -> Scalar:
        """Record one of `lie.jets.FUNCTIONS`, of odd and even ones without the sign of x."""
        step = x.step if name in _ODD + _EVEN else self._end(x)
        return Scalar(self, self._step(name, step, None), x.negative and name in _ODD)

    def _scalar(self, value: Number) -> Scalar:
        """Scalar of a number: a constant step of its magnitude, with its sign."""
        if isinstance(value, Scalar):
            return value
        value = float(value)
        return Scalar(self, self._step('constant', abs(value), None), value < 0.0)

    def _end(self, value: Number) -> int:
        """Step that has the value of a number or scalar, with its sign written out."""
        if not isinstance(value, Scalar):
            return self._step('constant', float(value), None)
        return self._step('negate', value.step, None) if value.negative else value.step

    def _step(self, kind: str, a: Any, b: Any) -> int:
        """Index of an operation, which is added if no step is equal to it."""
        count = len(self._steps)
        if count == self._longest:
            raise ProgramTooLong
        return self._steps.setdefault(Operation(kind, a, b), count)


def _is_number(value: Number, number: float) -> bool:
    return not isinstance(value, Scalar) and value == number


# --- Programs of robots -------------------------------------------------------------------------

MASS_MATRIX, CORIOLIS_MATRIX, CORIOLIS_MATRIX_OF_20, WEIGHT, REGRESSOR, PARTIALS = (
    'mass matrix',
    'Coriolis matrix',
    'Coriolis matrix of eq. (20)',
    'weight',
    'regressor',
    'partial derivatives',
)
"""Terms of the equations of motion, and what is linear in them."""

ENERGIES = KINETIC_ENERGY, POTENTIAL_ENERGY = 'kinetic energy', 'potential energy'

FORWARD, FLOATING, MOVING = 'forward dynamics', 'floating base', 'moving base'
"""What a robot does under efforts, the same with its base, what a base that moves needs."""


class Attachment(NamedTuple):
    """A wrench that a program takes: its link and the choices of `dynamics.Wrench`.

    Attributes
    ----------
    link : str
    expressed_in : {'body', 'spatial', 'hybrid'}
    acting : {'on_environment', 'on_robot'}

    Examples
    --------
    >>> from hodyn_ros.engine import Attachment, KernelRequest
    >>> push = Attachment('tool', 'body')
    >>> KernelRequest('efforts', K=5, wrenches=(push,)).wrenches[0].acting
    'on_environment'
    """

    link: str
    expressed_in: str
    acting: str = 'on_environment'


class Part(NamedTuple):
    """An array of a program.

    Attributes
    ----------
    array : str
        Its name.
    size : int
        Numbers that a sample has in it.
    written : bool
        Whether the program writes it, or reads it.
    """

    array: str
    size: int
    written: bool


NO_ARRAY = Part('nothing', 0, False)


class RobotProgram(NamedTuple):
    """A program of one robot and the arrays that it works on.

    It reads 'motion', derivative k of independent joint j at k n + j.

    Attributes
    ----------
    program : StraightLineProgram
    n_joints : int
        Number n of independent joints.
    orders : int
        Number of derivatives in the motion, the zeroth included.
    middle, result : Part
        The other arrays, see `llvm_lanes.EVALUATE`.
    friction : bool
        Whether that of the robot, if it has any, is included.
    """

    program: StraightLineProgram
    n_joints: int
    orders: int
    middle: Part
    result: Part
    friction: bool = True
