"""Programs in LLVM's intermediate representation, for one number or several lanes of numbers.

A function of `evaluate_function` computes whole blocks of samples, one for each lane of the vector
registers, and says whether everything was finite. A block's motion is transposed inside the cache,
so that users keep their arrays in the order of samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from typing import Any, NamedTuple

from llvmlite import ir

from hodyn_ros.engine.program import SINGULAR, StraightLineProgram

DOUBLE: ir.Type = ir.DoubleType()
SINGLE: ir.Type = ir.FloatType()
INTEGER: ir.Type = ir.IntType(64)
DOUBLES: ir.Type = DOUBLE.as_pointer()
INTEGERS: ir.Type = INTEGER.as_pointer()

# A product may be added without rounding it first; nothing else may be changed.
FLAGS = ('contract',)


def in_lanes(kind: ir.Type, lanes: int) -> ir.Type:
    """Type of numbers of a kind in all lanes."""
    return kind if lanes == 1 else ir.VectorType(kind, lanes)


def padded(count: int, width: int) -> int:
    """Count rounded up to whole chunks of a width."""
    return -(-count // width) * width


def size_of(kind: ir.Type) -> int:
    """Bytes of a number."""
    return 4 if kind == SINGLE else 8


class Elements(NamedTuple):
    """An array that a program reads or writes.

    Attributes
    ----------
    pointer : ir.Value
    stride : int or ir.Value
        Numbers from one element to the next.
    for_each_lane : bool
        Whether an element has a number for each lane, side by side, or one for all.
    """

    pointer: ir.Value
    stride: int | ir.Value
    for_each_lane: bool = True


def product(builder: ir.IRBuilder, *factors: int | ir.Value) -> ir.Value:
    """Product of integers, written where the builder stands."""
    constant = math.prod(x for x in factors if isinstance(x, int))
    values = [x for x in factors if not isinstance(x, int)]
    if constant != 1 or not values:
        values.append(ir.Constant(INTEGER, constant))
    return reduce(builder.mul, values)


class LaneWriter:
    """Writer of operations on numbers into a function, one number for each lane.

    Parameters
    ----------
    builder : ir.IRBuilder
        Stands where is written.
    lanes : int
        With one, numbers are plain ones, otherwise vectors.
    kind : ir.Type
        Of a number, `DOUBLE` or `SINGLE`. What lies in memory as the other is converted.

    Attributes
    ----------
    type : ir.Type
        Of numbers in all lanes.
    """

    def __init__(self, builder: ir.IRBuilder, lanes: int, kind: ir.Type = DOUBLE) -> None:
        self.builder = builder
        self.lanes = lanes
        self.kind = kind
        self.type: Any = in_lanes(kind, lanes)

    def number(self, value: float) -> ir.Constant:
        """Constant, the same in all lanes."""
        return self._constant(self.kind, value)

    def _constant(self, kind: ir.Type, value: float) -> ir.Constant:
        one = ir.Constant(kind, value)
        if self.lanes == 1:
            return one
        return ir.Constant(in_lanes(kind, self.lanes), [one] * self.lanes)

    def integer(self, value: int) -> ir.Constant:
        """Integer, the same in all lanes."""
        return self._constant(INTEGER, value)

    def at(self, pointer: ir.Value, *factors: int | ir.Value) -> ir.Value:
        """Pointer to a number, whose index is a product."""
        return self.builder.gep(pointer, [product(self.builder, *factors)], inbounds=True)

    def load(self, array: Elements, index: int) -> ir.Value:
        """Element of an array, in all lanes."""
        pointer = self.at(array.pointer, index, array.stride)
        if array.for_each_lane:
            return self.load_lanes(pointer)
        return self.spread(LaneWriter(self.builder, 1, self.kind).load_lanes(pointer))

    def load_lanes(self, pointer: ir.Value) -> ir.Value:
        """Numbers of all lanes from where a pointer points."""
        kind = pointer.type.pointee
        value = self.builder.load(self._lanes_at(pointer), align=size_of(kind))
        return self._converted(value, kind, self.kind)

    def store_lanes(self, value: ir.Value, pointer: ir.Value) -> None:
        """Write the numbers of all lanes to where a pointer points."""
        kind = pointer.type.pointee
        value = self._converted(value, self.kind, kind)
        self.builder.store(value, self._lanes_at(pointer), align=size_of(kind))

    def _lanes_at(self, pointer: ir.Value) -> ir.Value:
        """Pointer to the numbers of all lanes, from that to the first."""
        if self.lanes == 1:
            return pointer
        kind = in_lanes(pointer.type.pointee, self.lanes)
        return self.builder.bitcast(pointer, kind.as_pointer())

    def _converted(self, value: ir.Value, kind: ir.Type, target: ir.Type) -> ir.Value:
        """Numbers in all lanes as those of another kind."""
        if kind == target:
            return value
        convert = self.builder.fptrunc if target == SINGLE else self.builder.fpext
        return convert(value, in_lanes(target, self.lanes))

    def spread(self, value: ir.Value) -> ir.Value:
        """One number in all lanes."""
        if self.lanes == 1:
            return value
        zero = ir.Constant(ir.IntType(32), 0)
        undefined = ir.Constant(self.type, ir.Undefined)
        first = self.builder.insert_element(undefined, value, zero)
        mask = ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), [zero] * self.lanes)
        return self.builder.shuffle_vector(first, undefined, mask)

    def add(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """Add; the sum may be fused with a product."""
        return self.builder.fadd(a, b, flags=FLAGS)

    def subtract(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """Subtract; the difference may be fused with a product."""
        return self.builder.fsub(a, b, flags=FLAGS)

    def negate(self, a: ir.Value) -> ir.Value:
        """Change the sign."""
        return self.subtract(self.number(-0.0), a)

    def multiply(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """Multiply; the product may be fused with a sum."""
        return self.builder.fmul(a, b, flags=FLAGS)

    def inverse(self, pivot: ir.Value, size: ir.Value) -> ir.Value:
        """Reciprocal; NaN where the pivot is rounding of zero, see `program.SINGULAR`."""
        least = self.builder.fmul(self.number(SINGULAR), size)
        regular = self.builder.fcmp_ordered('>', pivot, least)
        reciprocal = self.builder.fdiv(self.number(1.0), pivot)
        return self.builder.select(regular, reciprocal, self.number(float('nan')))

    def run(self, program: StraightLineProgram, arrays: Mapping[str, Elements]) -> None:
        """Write a program of arrays, without functions of `stages.GATHERED`."""
        values: list[ir.Value] = []
        for kind, a, b in program.operations:
            if kind == 'input':
                values.append(self.load(arrays[a], b))
            elif kind == 'constant':
                values.append(self.number(a))
            else:
                operands = (values[a],) if b is None else (values[a], values[b])
                values.append(getattr(self, kind)(*operands))
        for array, index, step in program.outputs:
            pointer, stride, _ = arrays[array]
            self.store_lanes(values[step], self.at(pointer, index, stride))


@contextmanager
def loop(
    builder: ir.IRBuilder,
    count: ir.Value,
    carried: ir.Value | None = None,
    backward: bool = False,
) -> Iterator[Any]:
    """Write a loop over 0, 1, ..., count - 1, or in the other direction.

    Gives the index, and if a value is carried from one turn to the next also this value and a
    function that takes its next one. After the loop the value is what the last turn left.
    """
    function = builder.function
    head, body, end = (
        function.append_basic_block(name) for name in ('head', 'body', 'end')
    )
    before = builder.block
    builder.branch(head)
    builder.position_at_end(head)
    step = builder.phi(INTEGER)
    step.add_incoming(ir.Constant(INTEGER, 0), before)
    next_values: list[ir.Value] = []
    if carried is not None:
        value = builder.phi(carried.type)
        value.add_incoming(carried, before)
    builder.cbranch(builder.icmp_signed('<', step, count), body, end)
    builder.position_at_end(body)
    one = ir.Constant(INTEGER, 1)
    index = builder.sub(builder.sub(count, one), step) if backward else step
    yield index if carried is None else (index, value, next_values.append)
    step.add_incoming(builder.add(step, one), builder.block)
    if carried is not None:
        value.add_incoming(next_values[0], builder.block)
    builder.branch(head)
    builder.position_at_end(end)


# --- Blocks of samples ---------------------------------------------------------------------------


ENTRY = 'evaluate'

EVALUATE: ir.FunctionType = ir.FunctionType(
    INTEGER, [INTEGERS, DOUBLES, DOUBLES, INTEGER, DOUBLES, DOUBLES, DOUBLES]
)
"""status = evaluate(integers, constants, scratch, blocks, motion, middle, result)

integers, constants: the robot, where it is not folded into the function; scratch: workspace;
motion, middle, result: of blocks times lanes samples, contiguous, of the kind of numbers that the
code computes with. The middle one is read, such as wrenches, or is a second result, or is not
there. The status is 0 if all three are finite.
"""


class Block(NamedTuple):
    """What the code of one block of samples works on.

    Attributes
    ----------
    writer : LaneWriter
    integers, constants : ir.Value
        The robot, where it is not folded into the code.
    motion, middle, result : ir.Value
        Of the samples of the block, an element having a number for each lane.
    scratch : ir.Value
        Workspace, of doubles.
    """

    writer: LaneWriter
    integers: ir.Value
    constants: ir.Value
    motion: ir.Value
    middle: ir.Value
    result: ir.Value
    scratch: ir.Value


def evaluate_function(
    module: ir.Module,
    lanes: int,
    width: int,
    sizes: Callable[[ir.IRBuilder, ir.Value], tuple[ir.Value, ir.Value, ir.Value]],
    body: Callable[[Block], None],
    writes_middle: bool = False,
    kind: ir.Type = DOUBLE,
) -> None:
    """Add the function `ENTRY`, which computes blocks of samples, one for each lane.

    The width is how many doubles the machine computes at once. `sizes` gives, from the builder and
    the pointer to the integers, how many numbers are in the motion, the middle array and the
    result of one sample; `body` writes the code for one block, whose arrays have one number for
    each lane in each element.

    Parameters
    ----------
    module : ir.Module
    lanes, width : int
    sizes, body : callable
    writes_middle : bool
        Whether the middle array is a second result.
    kind : ir.Type
        Of numbers that are computed.
    """
    written = (False, writes_middle, True)
    inspection = _inspection(module, width * 8 // size_of(kind), kind)
    function = ir.Function(module, EVALUATE, ENTRY)
    integers, constants, scratch, blocks, *arrays = function.args
    builder = ir.IRBuilder(function.append_basic_block())
    writer = LaneWriter(builder, lanes, kind)
    motion, middle, result = (builder.bitcast(x, kind.as_pointer()) for x in arrays)
    sizes_of_one = sizes(builder, integers)
    counts = [product(builder, size, lanes) for size in sizes_of_one]
    # In scratch: the transposed arrays of a block, then the body's own.
    free, transposed = scratch, []
    if lanes > 1:  # one lane stays in place
        for count in counts:
            transposed.append(builder.bitcast(free, kind.as_pointer()))
            free = writer.at(free, count)
    with loop(builder, blocks, ir.Constant(INTEGER, 0)) as (block, wrong_before, carry):
        arrays = [
            writer.at(array, block, count)
            for array, count in zip((motion, middle, result), counts)
        ]

        def transpose(back: bool) -> None:
            for array, elements, size, its in zip(
                arrays, transposed, sizes_of_one, written
            ):
                if its == back:
                    _transpose(writer, array, elements, size, back)

        transpose(back=False)
        first, second, third = transposed or arrays
        body(Block(writer, integers, constants, first, second, third, free))
        transpose(back=True)
        wrong = wrong_before
        for array, count in zip(arrays, counts):
            wrong = builder.or_(wrong, builder.call(inspection, [array, count]))
        carry(wrong)
    builder.ret(wrong_before)


def _inspection(module: ir.Module, width: int, kind: ir.Type) -> ir.Function:
    """Add a function of a pointer and a count, whose result is zero if all numbers are finite."""
    function = ir.Function(
        module, ir.FunctionType(INTEGER, [kind.as_pointer(), INTEGER]), 'inspection'
    )
    function.linkage = 'internal'
    pointer, count = function.args
    builder = ir.IRBuilder(function.append_basic_block())
    result = ir.Constant(INTEGER, 0)
    start = ir.Constant(INTEGER, 0)
    for lanes in (width, 1):
        writer = LaneWriter(builder, lanes, kind)
        flags = in_lanes(ir.IntType(1), lanes)
        chunks = builder.sdiv(builder.sub(count, start), ir.Constant(INTEGER, lanes))
        first = writer.at(pointer, start)
        with loop(builder, chunks, ir.Constant(flags, None)) as (chunk, wrong, carry):
            value = writer.load_lanes(writer.at(first, chunk, lanes))
            # Zero, but not if the number is not finite.
            zero = builder.fsub(value, value)
            carry(builder.or_(wrong, builder.fcmp_unordered('uno', zero, zero)))
        bits = builder.bitcast(wrong, ir.IntType(lanes))
        result = builder.or_(result, builder.zext(bits, INTEGER))
        start = product(builder, chunks, lanes)
    builder.ret(result)
    return function


def _square(writer: LaneWriter, pairs: list[tuple[ir.Value, ir.Value]]) -> None:
    """Write the transposition of a square: from where to where its rows go."""
    side = len(pairs)
    row = LaneWriter(writer.builder, side, writer.kind)
    rows = [row.load_lanes(source) for source, _ in pairs]
    # Its halves are exchanged, then quarters, and so on.
    distance = side
    while distance := distance // 2:
        moved = [side - distance if lane & distance else 0 for lane in range(side)]
        for i in (i for i in range(side) if not i & distance):
            pair = rows[i], rows[i + distance]
            for shift in (0, distance):
                taken = [lane + shift + more for lane, more in enumerate(moved)]
                mask = ir.Constant(ir.VectorType(ir.IntType(32), side), taken)
                rows[i + shift] = writer.builder.shuffle_vector(*pair, mask)
    for value, (_, target) in zip(rows, pairs):
        row.store_lanes(value, target)


def _transpose(
    writer: LaneWriter, samples: ir.Value, elements: ir.Value, size: ir.Value, back: bool
) -> None:
    """Write the transposition of a block from a row for each sample to one for each element.

    A sample has `size` numbers; back is the way from elements to samples.
    """
    builder, lanes = writer.builder, writer.lanes
    done: ir.Value = ir.Constant(INTEGER, 0)
    # Squares, of which small ones take what large ones leave over.
    for side in (side for side in (16, 8, 4, 2, 1) if side <= lanes):
        tiles = builder.sdiv(builder.sub(size, done), ir.Constant(INTEGER, side))
        with loop(builder, tiles) as tile:
            first = builder.add(done, product(builder, tile, side))
            sample, element = writer.at(samples, first), writer.at(elements, first, lanes)
            for group in range(0, lanes, side):
                pairs = []
                for k in range(side):
                    pairs.append((sample, writer.at(element, k * lanes + group)))
                    sample = writer.at(sample, size)
                _square(writer, [pair[::-1] for pair in pairs] if back else pairs)
        done = builder.add(done, product(builder, tiles, side))
