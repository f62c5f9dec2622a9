"""Programs as functions in LLVM's intermediate representation, for one sample or several lanes.

Every function has the signature of `EVALUATE`: it computes whole blocks of samples, one for each
lane of the vector registers, and says whether everything was finite. A block's motion is
transposed inside the cache, so that users keep their arrays in the order of samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import factorial
from types import MappingProxyType
from typing import Any, NamedTuple

from llvmlite import ir

from hodyn_ros.engine.program import Program

ENTRY = 'evaluate'

DOUBLE = ir.DoubleType()
INTEGER = ir.IntType(64)
DOUBLES = DOUBLE.as_pointer()
INTEGERS = INTEGER.as_pointer()

EVALUATE = ir.FunctionType(
    INTEGER, [INTEGERS, DOUBLES, DOUBLES, INTEGER, DOUBLES, DOUBLES, DOUBLES]
)
"""status = evaluate(integers, constants, scratch, blocks, motion, middle, result)

integers, constants: the robot, where it is not folded into the function; scratch: workspace;
motion, middle, result: of blocks times lanes samples, contiguous. The middle one is read, such as
wrenches, or is a second result, or is not there. The status is 0 if all three are finite.
"""

# A product may be added without rounding it first; nothing else may be changed.
FLAGS = ('contract',)

# Up to here the three-part reduction of the argument is exact.
LARGEST_REDUCED = 2.0**20


class Elements(NamedTuple):
    """An array that a program reads or writes: elements of one number or one for each lane."""

    pointer: ir.Value
    for_each_lane: bool


class Writer:
    """Writes operations on numbers, one for each lane, into a function.

    Parameters
    ----------
    builder : ir.IRBuilder
    lanes : int
    """

    def __init__(self, builder: ir.IRBuilder, lanes: int) -> None:
        self.builder = builder
        self.lanes = lanes
        self.type = DOUBLE if lanes == 1 else ir.VectorType(DOUBLE, lanes)

    def number(self, value: float) -> ir.Constant:
        """Constant, the same in all lanes."""
        if self.lanes == 1:
            return ir.Constant(DOUBLE, value)
        return ir.Constant(self.type, [ir.Constant(DOUBLE, value)] * self.lanes)

    def at(self, pointer: ir.Value, index: int | ir.Value) -> ir.Value:
        """Pointer to an element of one number."""
        if isinstance(index, int):
            if index == 0:
                return pointer
            index = ir.Constant(INTEGER, index)
        return self.builder.gep(pointer, [index], inbounds=True)

    def load(self, array: Elements, index: int) -> ir.Value:
        """Element of an array, in all lanes."""
        builder = self.builder
        if self.lanes == 1:
            return builder.load(self.at(array.pointer, index), align=8)
        if array.for_each_lane:
            return self.load_lanes(self.at(array.pointer, index * self.lanes))
        return self.spread(builder.load(self.at(array.pointer, index), align=8))

    def load_lanes(self, pointer: ir.Value) -> ir.Value:
        """Numbers of all lanes from where a pointer points."""
        if self.lanes > 1:
            pointer = self.builder.bitcast(pointer, self.type.as_pointer())
        return self.builder.load(pointer, align=8)

    def store_lanes(self, value: ir.Value, pointer: ir.Value) -> None:
        """Write the numbers of all lanes to where a pointer points."""
        if self.lanes > 1:
            pointer = self.builder.bitcast(pointer, self.type.as_pointer())
        self.builder.store(value, pointer, align=8)

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

    def multiply(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """Multiply; the product may be fused with a sum."""
        return self.builder.fmul(a, b, flags=FLAGS)

    def run(
        self,
        program: Program,
        arrays: Mapping[str, Elements],
        strided: Mapping[str, tuple[ir.Value, ir.Value]] = MappingProxyType({}),
    ) -> None:
        """Write a program.

        Parameters
        ----------
        program : Program
        arrays : mapping of str to Elements
            The arrays that it reads and writes.
        strided : mapping of str to (pointer, stride)
            Those whose elements, with a number for each lane, are a stride apart.
        """
        values: list[ir.Value] = []

        def place(array: str, index: int) -> ir.Value:
            if array not in strided:
                return self.at(arrays[array].pointer, index * self.lanes)
            pointer, stride = strided[array]
            distance = self.builder.mul(ir.Constant(INTEGER, index), stride)
            return self.at(pointer, distance)

        for kind, a, b in program.operations:
            if kind == 'input' and a in strided:
                values.append(self.load_lanes(place(a, b)))
            elif kind == 'input':
                values.append(self.load(arrays[a], b))
            elif kind == 'constant':
                values.append(self.number(a))
            elif kind == 'negate':
                values.append(self.subtract(self.number(-0.0), values[a]))
            else:
                values.append(getattr(self, kind)(values[a], values[b]))
        for array, index, step in program.outputs:
            self.store_lanes(values[step], place(array, index))

    def sine_cosine(self, x: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Sine and cosine of |x| <= pi/2 LARGEST_REDUCED to about one unit in the last place.

        x = k pi/2 + r with |r| <= pi/4; Taylor polynomials of r, whose remainder is below 1e-17.
        """
        builder = self.builder
        # Adding and subtracting 1.5 2^52 rounds to an integer and leaves it in the low bits.
        magic = self.number(1.5 * 2.0**52)
        shifted = builder.fadd(builder.fmul(x, self.number(0.6366197723675814)), magic)
        k = builder.fsub(shifted, magic)
        r = x
        for part in HALF_PI:
            r = builder.fsub(r, builder.fmul(k, self.number(part)))
        square = builder.fmul(r, r)
        sine = self._polynomial(square, [(-1.0) ** j / factorial(2 * j + 1) for j in range(1, 9)])
        sine = self.add(r, self.multiply(self.multiply(r, square), sine))
        cosine = self._polynomial(square, [(-1.0) ** j / factorial(2 * j) for j in range(1, 10)])
        cosine = self.add(self.number(1.0), self.multiply(square, cosine))
        integers = INTEGER if self.lanes == 1 else ir.VectorType(INTEGER, self.lanes)

        def whole(value: int) -> ir.Constant:
            return ir.Constant(integers, value if self.lanes == 1 else [value] * self.lanes)

        quadrant = builder.bitcast(shifted, integers)
        odd = builder.icmp_unsigned('!=', builder.and_(quadrant, whole(1)), whole(0))
        sine, cosine = builder.select(odd, cosine, sine), builder.select(odd, sine, cosine)
        for name, turned in (('sine', quadrant), ('cosine', builder.add(quadrant, whole(1)))):
            sign = builder.shl(builder.and_(turned, whole(2)), whole(62))
            value = sine if name == 'sine' else cosine
            bits = builder.xor(builder.bitcast(value, integers), sign)
            value = builder.bitcast(bits, self.type)
            if name == 'sine':
                sine = value
            else:
                cosine = value
        return sine, cosine

    def _polynomial(self, x: ir.Value, coefficients: list[float]) -> ir.Value:
        value = self.number(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            value = self.add(self.multiply(value, x), self.number(coefficient))
        return value


def _half_pi() -> tuple[float, float, float]:
    """Return pi/2 as a sum whose first two parts have so few bits that k times them is exact."""
    high, low = 1.5707963267948966, 6.123233995736766e-17
    scale = 2.0**32
    first = int(high * scale) / scale
    return first, high - first, low


HALF_PI = _half_pi()


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
    head, body, end = (function.append_basic_block(name) for name in ('head', 'body', 'end'))
    before = builder.block
    builder.branch(head)
    builder.position_at_end(head)
    step = builder.phi(INTEGER)
    step.add_incoming(ir.Constant(INTEGER, 0), before)
    kept: list[ir.Value] = []
    if carried is not None:
        value = builder.phi(carried.type)
        value.add_incoming(carried, before)
    builder.cbranch(builder.icmp_signed('<', step, count), body, end)
    builder.position_at_end(body)
    one = ir.Constant(INTEGER, 1)
    index = builder.sub(builder.sub(count, one), step) if backward else step
    yield index if carried is None else (index, value, kept.append)
    step.add_incoming(builder.add(step, one), builder.block)
    if carried is not None:
        value.add_incoming(kept[0], builder.block)
    builder.branch(head)
    builder.position_at_end(end)


class Block(NamedTuple):
    """What the code of one block of samples works on; all pointers to doubles but integers."""

    writer: Writer
    integers: ir.Value
    constants: ir.Value
    motion: ir.Value
    middle: ir.Value
    result: ir.Value
    scratch: ir.Value


class Trigonometry:
    """Adds to a module a function that computes sines and cosines of an array.

    Parameters
    ----------
    module : ir.Module
    width : int
        Numbers that the machine computes at once.
    """

    def __init__(self, module: ir.Module, width: int) -> None:
        self.width = width
        self.function = ir.Function(
            module,
            ir.FunctionType(ir.VoidType(), [INTEGER, DOUBLES, DOUBLES, DOUBLES]),
            'trigonometry',
        )
        self.function.linkage = 'internal'
        chunks, x, sine, cosine = self.function.args
        library = {
            name: ir.Function(module, ir.FunctionType(DOUBLE, [DOUBLE]), name)
            for name in ('hodyn_sine', 'hodyn_cosine')
        }
        builder = ir.IRBuilder(self.function.append_basic_block())
        writer = Writer(builder, width)
        step = ir.Constant(INTEGER, width)
        limit = writer.number(1.57 * LARGEST_REDUCED)
        with loop(builder, chunks) as chunk:
            start = builder.mul(chunk, step)
            value = writer.load_lanes(writer.at(x, start))
            s, c = writer.sine_cosine(value)
            writer.store_lanes(s, writer.at(sine, start))
            writer.store_lanes(c, writer.at(cosine, start))
            # Also where a number is not finite.
            above = builder.fcmp_unordered('>', value, limit)
            below = builder.fcmp_unordered('<', value, writer.number(-1.57 * LARGEST_REDUCED))
            large = builder.or_(above, below)
            if width > 1:
                bits = builder.bitcast(large, ir.IntType(width))
                large = builder.icmp_unsigned('!=', bits, ir.Constant(ir.IntType(width), 0))
            with builder.if_then(large, likely=False):
                with loop(builder, step) as lane:
                    index = builder.add(start, lane)
                    number = builder.load(writer.at(x, index), align=8)
                    for name, result in (('hodyn_sine', sine), ('hodyn_cosine', cosine)):
                        builder.store(
                            builder.call(library[name], [number]), writer.at(result, index),
                            align=8,
                        )  # fmt: skip
        builder.ret_void()

    def write(self, builder: ir.IRBuilder, count: ir.Value, *pointers: ir.Value) -> None:
        """Write a call for a count of numbers; the arrays have room for a whole last chunk."""
        width = ir.Constant(INTEGER, self.width)
        chunks = builder.sdiv(
            builder.add(count, ir.Constant(INTEGER, self.width - 1)), width
        )
        builder.call(self.function, [chunks, *pointers])


class Inspection:
    """Adds to a module a function that says whether all numbers of an array are finite.

    Parameters
    ----------
    module : ir.Module
    width : int
        Numbers that the machine computes at once.
    """

    def __init__(self, module: ir.Module, width: int) -> None:
        self.function = ir.Function(
            module, ir.FunctionType(INTEGER, [DOUBLES, INTEGER]), 'inspection'
        )
        self.function.linkage = 'internal'
        pointer, count = self.function.args
        builder = ir.IRBuilder(self.function.append_basic_block())
        result = ir.Constant(INTEGER, 0)
        start = ir.Constant(INTEGER, 0)
        for lanes in (width, 1):
            writer = Writer(builder, lanes)
            step = ir.Constant(INTEGER, lanes)
            flags = ir.IntType(1) if lanes == 1 else ir.VectorType(ir.IntType(1), lanes)
            chunks = builder.sdiv(builder.sub(count, start), step)
            place = writer.at(pointer, start)
            with loop(builder, chunks, ir.Constant(flags, None)) as (chunk, found, next_found):
                value = writer.load_lanes(writer.at(place, builder.mul(chunk, step)))
                # Zero, but not if the number is not finite.
                zero = builder.fsub(value, value)
                next_found(builder.or_(found, builder.fcmp_unordered('uno', zero, zero)))
            bits = builder.bitcast(found, ir.IntType(lanes))
            result = builder.or_(result, builder.zext(bits, INTEGER))
            start = builder.mul(chunks, step)
        builder.ret(result)

    def write(self, builder: ir.IRBuilder, pointer: ir.Value, count: ir.Value) -> ir.Value:
        """Write a call; gives an integer that is zero if all numbers are finite."""
        return builder.call(self.function, [pointer, count])


def evaluate_function(
    module: ir.Module,
    lanes: int,
    width: int,
    sizes: Callable[[ir.IRBuilder, ir.Value], tuple[ir.Value, ir.Value, ir.Value]],
    body: Callable[[Block], None],
    writes_middle: bool = False,
) -> None:
    """Add the function `ENTRY`, which computes blocks of samples.

    Parameters
    ----------
    module : ir.Module
    lanes : int
        Samples in a block.
    width : int
        Numbers that the machine computes at once.
    sizes : callable
        From the builder and the pointer to the integers, numbers of doubles in the motion, the
        middle array and the result of one sample.
    body : callable
        Writes the code for one block. With several lanes its three arrays have one number for each
        lane in each element.
    writes_middle : bool
        Whether the middle array is a result.
    """
    inspection = Inspection(module, width)
    written = (False, writes_middle, True)
    function = ir.Function(module, EVALUATE, ENTRY)
    integers, constants, scratch, blocks, motion, middle, result = function.args
    builder = ir.IRBuilder(function.append_basic_block())
    writer = Writer(builder, lanes)
    per_block = ir.Constant(INTEGER, lanes)
    counts = [builder.mul(size, per_block) for size in sizes(builder, integers)]
    # In scratch: the transposed arrays of a block, then the body's own.
    work = scratch
    places = []
    if lanes > 1:
        for count in counts:
            places.append(work)
            work = writer.at(work, count)
    with loop(builder, blocks, ir.Constant(INTEGER, 0)) as (block, found, next_found):
        arrays = [
            writer.at(array, builder.mul(block, count))
            for array, count in zip((motion, middle, result), counts)
        ]
        if lanes == 1:
            places = arrays
        else:
            for k in range(3):
                if not written[k]:
                    _transpose(writer, arrays[k], places[k], counts[k])
        body(Block(writer, integers, constants, places[0], places[1], places[2], work))
        if lanes > 1:
            for k in range(3):
                if written[k]:
                    _transpose_back(writer, places[k], arrays[k], counts[k])
        wrong = found
        for array, count in zip(arrays, counts):
            wrong = builder.or_(wrong, inspection.write(builder, array, count))
        next_found(wrong)
    builder.ret(found)


def _transpose(writer: Writer, source: ir.Value, target: ir.Value, count: ir.Value) -> None:
    """Write the transposition of a block from one row for each sample to one for each element."""
    builder = writer.builder
    size = builder.sdiv(count, ir.Constant(INTEGER, writer.lanes))
    with loop(builder, size) as i:
        value = ir.Constant(writer.type, ir.Undefined)
        pointer = writer.at(source, i)
        for lane in range(writer.lanes):
            if lane:
                pointer = writer.at(pointer, size)
            number = builder.load(pointer, align=8)
            value = builder.insert_element(value, number, ir.Constant(ir.IntType(32), lane))
        start = builder.mul(i, ir.Constant(INTEGER, writer.lanes))
        writer.store_lanes(value, writer.at(target, start))


def _transpose_back(writer: Writer, source: ir.Value, target: ir.Value, count: ir.Value) -> None:
    """Write the transposition of a block from one row for each element to one for each sample."""
    builder = writer.builder
    size = builder.sdiv(count, ir.Constant(INTEGER, writer.lanes))
    with loop(builder, size) as i:
        start = builder.mul(i, ir.Constant(INTEGER, writer.lanes))
        value = writer.load_lanes(writer.at(source, start))
        pointer = writer.at(target, i)
        for lane in range(writer.lanes):
            if lane:
                pointer = writer.at(pointer, size)
            number = builder.extract_element(value, ir.Constant(ir.IntType(32), lane))
            builder.store(number, pointer, align=8)
