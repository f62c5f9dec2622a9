"""Functions of arrays of numbers in LLVM's intermediate representation.

Each class adds one to a module and writes calls of it. They compute as many numbers at once as the
machine can.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial, log

from llvmlite import ir

from hodyn_ros.engine.llvm import DOUBLE, DOUBLES, INTEGER, Writer, loop

# Up to here the three-part reduction of the argument is exact.
LARGEST_REDUCED = 2.0**20


def _half_pi() -> tuple[float, float, float]:
    """Return pi/2 as a sum whose first two parts have so few bits that k times them is exact."""
    high, low = 1.5707963267948966, 6.123233995736766e-17
    scale = 2.0**32
    first = int(high * scale) / scale
    return first, high - first, low


HALF_PI = _half_pi()
LOG_2 = (0.6931471803691238, 1.9082149292705877e-10)
"""log 2 in two parts, the first with so few bits that k times it is exact."""


class ArrayFunction:
    """Function of each number of an array, with two results.

    Parameters
    ----------
    module : ir.Module
    width : int
        Numbers that the machine computes at once.
    """

    name: str

    def __init__(self, module: ir.Module, width: int) -> None:
        self.width = width
        kind = ir.FunctionType(ir.VoidType(), [INTEGER, DOUBLES, DOUBLES, DOUBLES])
        self.function = ir.Function(module, kind, self.name)
        self.function.linkage = 'internal'
        builder = ir.IRBuilder(self.function.append_basic_block())
        writer = Writer(builder, width)
        chunks, x, first, second = self.function.args
        with loop(builder, chunks) as chunk:
            start = builder.mul(chunk, ir.Constant(INTEGER, width))
            places = [writer.at(pointer, start) for pointer in (x, first, second)]
            value = writer.load_lanes(places[0])
            for result, place in zip(self.results(writer, value), places[1:]):
                writer.store_lanes(result, place)
            self.correct(writer, value, places)
        builder.ret_void()

    def results(self, writer: Writer, value: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Write the computation of some numbers side by side."""
        raise NotImplementedError

    def correct(self, writer: Writer, value: ir.Value, places: Sequence[ir.Value]) -> None:
        """Write what replaces results that cannot be computed side by side."""

    def write(self, builder: ir.IRBuilder, count: ir.Value, *pointers: ir.Value) -> None:
        """Write a call for a count of numbers; the arrays have room for a whole last chunk."""
        more = builder.add(count, ir.Constant(INTEGER, self.width - 1))
        chunks = builder.sdiv(more, ir.Constant(INTEGER, self.width))
        builder.call(self.function, [chunks, *pointers])


class Trigonometry(ArrayFunction):
    """Sine and cosine."""

    name = 'trigonometry'

    def results(self, writer: Writer, value: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Write the computation of some numbers side by side."""
        return _sine_cosine(writer, value)

    def correct(self, writer: Writer, value: ir.Value, places: Sequence[ir.Value]) -> None:
        """Leave numbers that are large or not finite to the C library."""
        builder = writer.builder
        limit = 1.57 * LARGEST_REDUCED
        above = builder.fcmp_unordered('>', value, writer.number(limit))
        below = builder.fcmp_unordered('<', value, writer.number(-limit))
        large = builder.or_(above, below)
        if writer.lanes > 1:
            bits = ir.IntType(writer.lanes)
            large = builder.icmp_unsigned('!=', builder.bitcast(large, bits), ir.Constant(bits, 0))
        with builder.if_then(large, likely=False):
            with loop(builder, ir.Constant(INTEGER, writer.lanes)) as lane:
                number = builder.load(writer.at(places[0], lane), align=8)
                for name, place in zip(('hodyn_sine', 'hodyn_cosine'), places[1:]):
                    function = builder.module.globals.get(name) or ir.Function(
                        builder.module, ir.FunctionType(DOUBLE, [DOUBLE]), name
                    )
                    result = builder.call(function, [number])
                    builder.store(result, writer.at(place, lane), align=8)


class Steps(ArrayFunction):
    """Hyperbolic tangent and its derivative."""

    name = 'steps'

    def results(self, writer: Writer, value: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Write the computation of some numbers side by side."""
        builder = writer.builder
        positive = builder.fcmp_ordered('>=', value, writer.number(0.0))
        magnitude = builder.select(positive, value, writer.negative(value))
        # With e = exp(-2 |x|): tanh |x| = (1 - e) / (1 + e), slope = 4 e / (1 + e)^2.
        e, less = _exponential(writer, writer.multiply(writer.number(-2.0), magnitude))
        more = builder.fadd(writer.number(1.0), e)
        quotient = builder.fdiv(less, more)
        shape = builder.select(positive, writer.negative(quotient), quotient)
        slope = builder.fdiv(builder.fmul(writer.number(4.0), e), builder.fmul(more, more))
        return shape, slope


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


def _sine_cosine(writer: Writer, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Sine and cosine of |x| <= pi/2 LARGEST_REDUCED to about one unit in the last place.

    x = k pi/2 + r with |r| <= pi/4; Taylor polynomials of r, whose remainder is below 1e-17.
    """
    builder = writer.builder
    # Adding and subtracting 1.5 2^52 rounds to an integer and leaves it in the low bits.
    magic = writer.number(1.5 * 2.0**52)
    shifted = builder.fadd(builder.fmul(x, writer.number(0.6366197723675814)), magic)
    k = builder.fsub(shifted, magic)
    r = x
    for part in HALF_PI:
        r = builder.fsub(r, builder.fmul(k, writer.number(part)))
    square = builder.fmul(r, r)
    sine = _polynomial(writer, square, [(-1.0) ** j / factorial(2 * j + 1) for j in range(1, 9)])
    sine = writer.add(r, writer.multiply(writer.multiply(r, square), sine))
    cosine = _polynomial(writer, square, [(-1.0) ** j / factorial(2 * j) for j in range(1, 10)])
    cosine = writer.add(writer.number(1.0), writer.multiply(square, cosine))
    integers = INTEGER if writer.lanes == 1 else ir.VectorType(INTEGER, writer.lanes)

    def whole(value: int) -> ir.Constant:
        return ir.Constant(integers, value if writer.lanes == 1 else [value] * writer.lanes)

    quadrant = builder.bitcast(shifted, integers)
    odd = builder.icmp_unsigned('!=', builder.and_(quadrant, whole(1)), whole(0))
    sine, cosine = builder.select(odd, cosine, sine), builder.select(odd, sine, cosine)
    for name, turned in (('sine', quadrant), ('cosine', builder.add(quadrant, whole(1)))):
        sign = builder.shl(builder.and_(turned, whole(2)), whole(62))
        value = sine if name == 'sine' else cosine
        bits = builder.xor(builder.bitcast(value, integers), sign)
        value = builder.bitcast(bits, writer.type)
        if name == 'sine':
            sine = value
        else:
            cosine = value
    return sine, cosine



def _polynomial(writer: Writer, x: ir.Value, coefficients: list[float]) -> ir.Value:
    value = writer.number(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        value = writer.add(writer.multiply(value, x), writer.number(coefficient))
    return value


def _exponential(writer: Writer, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Exponential of x <= 0, and the same less one, below -700 of -700.

    Both to about one unit in the last place.

    x = k log 2 + r with |r| <= log(2)/2; a Taylor polynomial of r, whose remainder is below 1e-17.
    """
    builder = writer.builder
    lowest = writer.number(-700.0)
    x = builder.select(builder.fcmp_ordered('>', x, lowest), x, lowest)
    magic = writer.number(1.5 * 2.0**52)
    shifted = builder.fadd(builder.fmul(x, writer.number(1.0 / log(2.0))), magic)
    k = builder.fsub(shifted, magic)
    r = x
    for part in LOG_2:
        r = builder.fsub(r, builder.fmul(k, writer.number(part)))
    less = writer.multiply(r, _polynomial(writer, r, [1.0 / factorial(j) for j in range(1, 15)]))
    # k, in the low bits of what was shifted, is the exponent of a power of two.
    integers = INTEGER if writer.lanes == 1 else ir.VectorType(INTEGER, writer.lanes)
    place = ir.Constant(integers, 52 if writer.lanes == 1 else [52] * writer.lanes)
    exponent = builder.shl(builder.bitcast(shifted, integers), place)
    one = writer.number(1.0)
    power = builder.bitcast(builder.add(builder.bitcast(one, integers), exponent), writer.type)
    product = builder.fmul(power, less)
    return builder.fadd(product, power), builder.fadd(product, builder.fsub(power, one))
