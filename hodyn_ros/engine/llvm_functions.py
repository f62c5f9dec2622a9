"""Sines, tanh, exp and signs of arrays in LLVM's intermediate representation.

As many numbers are computed at once as the machine can.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial, inf, log

from llvmlite import ir

from hodyn_ros.engine.llvm_lanes import DOUBLE, DOUBLES, INTEGER, LaneWriter, loop
from hodyn_ros.engine.stages import GATHERED

# Up to here the three-part reduction of the argument is exact.
LARGEST_REDUCED = 2.0**20
HALF_PI = (1.5707963267341256, 6.077094383272197e-11, 6.123233995736766e-17)
"""pi/2 in three parts, the first two with so few bits that k times them is exact."""
LOG_2 = (0.6931471803691238, 1.9082149292705877e-10)
"""log 2 in two parts, the first with so few bits that k times it is exact."""


class ArrayFunctions:
    """Functions of a module for the functions of `stages.GATHERED`, added as they are called.

    Parameters
    ----------
    module : ir.Module
    width : int
        Numbers that are computed at once.
    """

    def __init__(self, module: ir.Module, width: int) -> None:
        self._module, self._width = module, width

    def write(
        self,
        builder: ir.IRBuilder,
        array: str,
        count: ir.Value,
        pointers: Sequence[ir.Value],
    ) -> None:
        """Call the functions of an array of arguments, written where the builder stands.

        Parameters
        ----------
        builder : ir.IRBuilder
        array : str
            Name of the array of arguments.
        count : ir.Value
            Integer of 64 bits.
        pointers : sequence of ir.Value
            To arguments and results; the arrays have room for a whole last chunk.
        """
        function = self._module.globals.get(array) or self._added(array)
        more = builder.add(count, ir.Constant(INTEGER, self._width - 1))
        chunks = builder.sdiv(more, ir.Constant(INTEGER, self._width))
        builder.call(function, [chunks, *pointers])

    def _added(self, array: str) -> ir.Function:
        """Function of chunks of arguments, added to the module."""
        arrays = [DOUBLES] * (1 + len(GATHERED[array]))
        kind = ir.FunctionType(ir.VoidType(), [INTEGER, *arrays])
        function = ir.Function(self._module, kind, array)
        function.linkage = 'internal'
        builder = ir.IRBuilder(function.append_basic_block())
        writer = LaneWriter(builder, self._width)
        chunks, *pointers = function.args
        with loop(builder, chunks) as chunk:
            start = builder.mul(chunk, ir.Constant(INTEGER, self._width))
            ends = [writer.at(pointer, start) for pointer in pointers]
            value = writer.load_lanes(ends[0])
            for result, end in zip(_FORMULAS[array](writer, value), ends[1:]):
                writer.store_lanes(result, end)
            if array == 'angle':
                _correct_large(writer, value, ends)
        builder.ret_void()
        return function


def _correct_large(
    writer: LaneWriter, value: ir.Value, pointers: Sequence[ir.Value]
) -> None:
    """Leave sines and cosines of numbers that are large or not finite to the C library."""
    builder = writer.builder
    limit = 1.57 * LARGEST_REDUCED
    above = builder.fcmp_unordered('>', value, writer.number(limit))
    below = builder.fcmp_unordered('<', value, writer.number(-limit))
    large = builder.or_(above, below)
    if writer.lanes > 1:
        bits = ir.IntType(writer.lanes)
        large = builder.icmp_unsigned(
            '!=', builder.bitcast(large, bits), ir.Constant(bits, 0)
        )
    with builder.if_then(large, likely=False):
        with loop(builder, ir.Constant(INTEGER, writer.lanes)) as lane:
            number = builder.load(writer.at(pointers[0], lane), align=8)
            for name, pointer in zip(('hodyn_sine', 'hodyn_cosine'), pointers[1:]):
                function = builder.module.globals.get(name) or ir.Function(
                    builder.module, ir.FunctionType(DOUBLE, [DOUBLE]), name
                )
                result = builder.call(function, [number])
                builder.store(result, writer.at(pointer, lane), align=8)


def _step(writer: LaneWriter, value: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Hyperbolic tangent and its derivative."""
    builder = writer.builder
    positive = builder.fcmp_ordered('>=', value, writer.number(0.0))
    magnitude = builder.select(positive, value, writer.negate(value))
    # With e = exp(-2 |x|): tanh |x| = (1 - e) / (1 + e), slope = 4 e / (1 + e)^2.
    e, less = _exponential(writer, writer.multiply(writer.number(-2.0), magnitude))
    more = builder.fadd(writer.number(1.0), e)
    quotient = builder.fdiv(less, more)
    shape = builder.select(positive, writer.negate(quotient), quotient)
    slope = builder.fdiv(builder.fmul(writer.number(4.0), e), builder.fmul(more, more))
    return shape, slope


def _sine_cosine(writer: LaneWriter, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Sine and cosine of |x| <= pi/2 LARGEST_REDUCED to about one unit in the last place.

    x = k pi/2 + r with |r| <= pi/4; Taylor polynomials of r, whose remainder is below 1e-17.
    """
    builder = writer.builder
    shifted, r = _reduced(writer, x, 0.6366197723675814, HALF_PI)
    square = builder.fmul(r, r)
    sine = _polynomial(
        writer, square, [(-1.0) ** j / factorial(2 * j + 1) for j in range(1, 9)]
    )
    sine = writer.add(r, writer.multiply(writer.multiply(r, square), sine))
    cosine = _polynomial(
        writer, square, [(-1.0) ** j / factorial(2 * j) for j in range(1, 10)]
    )
    cosine = writer.add(writer.number(1.0), writer.multiply(square, cosine))
    integer = writer.integer
    quadrant = builder.bitcast(shifted, integer(0).type)
    odd = builder.icmp_unsigned('!=', builder.and_(quadrant, integer(1)), integer(0))
    sine, cosine = builder.select(odd, cosine, sine), builder.select(odd, sine, cosine)
    signed = []
    for value, turned in ((sine, quadrant), (cosine, builder.add(quadrant, integer(1)))):
        sign = builder.shl(builder.and_(turned, integer(2)), integer(62))
        bits = builder.xor(builder.bitcast(value, sign.type), sign)
        signed.append(builder.bitcast(bits, writer.type))
    return signed[0], signed[1]


def _reduced(
    writer: LaneWriter, x: ir.Value, scale: float, parts: Sequence[float]
) -> tuple[ir.Value, ir.Value]:
    """Number k = round(scale x), in the low bits of the first result, and x - k sum(parts)."""
    builder = writer.builder
    # Adding and subtracting 1.5 2^52 rounds to an integer and leaves it in the low bits.
    magic = writer.number(1.5 * 2.0**52)
    shifted = builder.fadd(builder.fmul(x, writer.number(scale)), magic)
    k = builder.fsub(shifted, magic)
    for part in parts:
        x = builder.fsub(x, builder.fmul(k, writer.number(part)))
    return shifted, x


def _polynomial(writer: LaneWriter, x: ir.Value, coefficients: list[float]) -> ir.Value:
    """Polynomial in x by Horner's rule; the coefficient of the lowest power comes first."""
    value = writer.number(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        value = writer.add(writer.multiply(value, x), writer.number(coefficient))
    return value


def _exp(writer: LaneWriter, x: ir.Value) -> tuple[ir.Value]:
    """Exponential; zero below -700, infinite above 709."""
    builder = writer.builder
    value, _ = _exponential(writer, x)
    for sign, limit, beyond in (('<', -700.0, 0.0), ('>', 709.0, inf)):
        is_beyond = builder.fcmp_ordered(sign, x, writer.number(limit))
        value = builder.select(is_beyond, writer.number(beyond), value)
    return (value,)


def _sign(writer: LaneWriter, x: ir.Value) -> tuple[ir.Value]:
    """Sign: -1, 0 or 1."""
    builder, zero, one = writer.builder, writer.number(0.0), writer.number(1.0)
    forward, back = (
        builder.select(builder.fcmp_ordered(order, x, zero), one, zero) for order in '><'
    )
    return (builder.fsub(forward, back),)


def _exponential(writer: LaneWriter, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Exponential of x <= 709, and the same less one, below -700 of -700.

    Both to about one unit in the last place.

    x = k log 2 + r with |r| <= log(2)/2; a Taylor polynomial of r, whose remainder is below 1e-17.
    """
    builder = writer.builder
    lowest = writer.number(-700.0)
    x = builder.select(builder.fcmp_unordered('>', x, lowest), x, lowest)
    shifted, r = _reduced(writer, x, 1.0 / log(2.0), LOG_2)
    less = writer.multiply(
        r, _polynomial(writer, r, [1.0 / factorial(j) for j in range(1, 15)])
    )
    # k, in the low bits of what was shifted, is the exponent of a power of two.
    shift = writer.integer(52)
    integers = shift.type
    exponent = builder.shl(builder.bitcast(shifted, integers), shift)
    one = writer.number(1.0)
    power = builder.bitcast(
        builder.add(builder.bitcast(one, integers), exponent), writer.type
    )
    product = builder.fmul(power, less)
    return builder.fadd(product, power), builder.fadd(product, builder.fsub(power, one))


_FORMULAS: dict[str, Callable[[LaneWriter, ir.Value], Sequence[ir.Value]]] = {
    'angle': _sine_cosine,
    'step': _step,
    'power': _exp,
    'velocity': _sign,
}
"""Results in the order of `stages.GATHERED`, from the numbers of a chunk."""
