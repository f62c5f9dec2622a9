"""Calls of kernels from Python, for one sample or few: a tenth of a microsecond each.

A function of CPython's vector call, in machine code, reads NumPy's arrays where they are. Its
arguments are checked there: whoever calls it gets False for arrays that it does not take, and asks
those who say what is wrong. The interpreter lock is held meanwhile.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from hodyn_ros.engine.code_cache import LoadedCode
from hodyn_ros.engine.llvm_lanes import ENTRY, EVALUATE, INTEGER, loop

MOST_SAMPLES = 256
"""Samples in a call, at most: more of them are computed without the interpreter lock."""


class ArrayArgument(NamedTuple):
    """An array that a call takes.

    Attributes
    ----------
    place : {'motion', 'middle', 'result'}
        Which array of `llvm_lanes.EVALUATE` it is.
    dimensions : int
        Of one sample; more axes lead.
    written : bool
    """

    place: str
    dimensions: int
    written: bool = False


# --- Objects in memory ---------------------------------------------------------------------------

_HEAD = ('head', ctypes.c_char * object.__basicsize__)
_TYPE = object.__basicsize__ - 8  # the type of an object is last in its head


class _ArrayObject(ctypes.Structure):
    """PyArrayObject_fields of NumPy."""

    _fields_ = [
        _HEAD,
        ('data', ctypes.c_void_p),
        ('nd', ctypes.c_int),
        ('dimensions', ctypes.c_void_p),
        ('strides', ctypes.c_void_p),
        ('base', ctypes.c_void_p),
        ('descr', ctypes.c_void_p),
        ('flags', ctypes.c_int),
    ]


class _Description(ctypes.Structure):
    """PyArray_Descr of NumPy: the type of an element."""

    _fields_ = [
        _HEAD,
        ('typeobj', ctypes.c_void_p),
        ('kind', ctypes.c_char),
        ('type', ctypes.c_char),
        ('byteorder', ctypes.c_char),
        ('former_flags', ctypes.c_char),
        ('type_num', ctypes.c_int),
    ]


class _Method(ctypes.Structure):
    """PyMethodDef of CPython."""

    _fields_ = [
        ('name', ctypes.c_char_p),
        ('function', ctypes.c_void_p),
        ('flags', ctypes.c_int),
        ('doc', ctypes.c_char_p),
    ]


_FASTCALL = 0x0080
_CONTIGUOUS, _ALIGNED, _WRITEABLE = 0x0001, 0x0100, 0x0400
_DOUBLE, _NATIVE = np.dtype(np.float64).num, b'='


@cache
def available() -> bool:
    """Whether objects lie in memory as they are read here, with one lock for all of Python."""
    if sys.implementation.name != 'cpython' or object.__basicsize__ != 16:
        return False
    array = np.zeros((2, 3))
    array.setflags(write=False)
    seen = _ArrayObject.from_address(id(array))
    shape = ctypes.c_ssize_t * 2
    if (seen.data, seen.nd, seen.descr) != (array.ctypes.data, 2, id(array.dtype)):
        return False
    element = _Description.from_address(id(array.dtype))
    asked = _CONTIGUOUS | _ALIGNED | _WRITEABLE
    return (
        tuple(shape.from_address(seen.dimensions)) == array.shape
        and seen.flags == array.flags.num
        and seen.flags & asked == _CONTIGUOUS | _ALIGNED
        and (element.byteorder, element.type_num) == (_NATIVE, _DOUBLE)
        and ctypes.c_void_p.from_address(id(array) + _TYPE).value == id(np.ndarray)
    )


# --- The table of a call: what it does not find in its arguments ---------------------------------

# A code for one sample and one for as many as there are lanes: four entries each, those that
# `llvm_lanes.EVALUATE` begins with.
_ONE, _MANY, _ANSWERS, _INCREASE, _ARRAY, _SHAPES = 0, 4, 8, 10, 11, 12


def table_of(
    one: list[int], many: list[int], shapes: list[tuple[int, ...]]
) -> NDArray[np.int64]:
    """Table of a call.

    Parameters
    ----------
    one, many : list of int
        Addresses of the code and of its first three arguments, see `llvm_lanes.EVALUATE`.
    shapes : list of tuple of int
        Of the arguments, for one sample.
    """
    increase = ctypes.cast(ctypes.pythonapi.Py_IncRef, ctypes.c_void_p).value
    known = [id(False), id(True), increase, id(np.ndarray)]
    sizes = [[8 * int(np.prod(shape, dtype=np.int64)), *shape] for shape in shapes]
    return np.array([*one, *many, *known, *sum(sizes, [])], dtype=np.int64)


def python_function(
    arguments: tuple[ArrayArgument, ...], table: NDArray[np.int64], width: int
) -> Callable[..., bool]:
    """Function of NumPy arrays, True if the results are there.

    It is False, and what is written may hold anything, for arrays of other types or shapes or in
    another order, for those that overlap, for more than `MOST_SAMPLES`, and where a number is not
    finite. Leading axes are the same in all arrays.

    Parameters
    ----------
    arguments : tuple of ArrayArgument
    table : ndarray
        Of `table_of`; kept with the function, but not what it points to.
    width : int
        Samples that the second code computes together.
    """
    function: Callable[..., bool] = _new_function()(
        ctypes.addressof(_method(arguments, width)[0]), table, None
    )
    return function


@cache
def _new_function() -> Callable[..., Callable[..., bool]]:
    kind = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p
    )
    return kind(('PyCFunction_NewEx', ctypes.pythonapi))


@cache
def _method(arguments: tuple[ArrayArgument, ...], width: int) -> tuple[_Method, object]:
    """Method of CPython for such arguments, with its code, for as long as the process runs."""
    made_from = repr([tuple(argument) for argument in arguments]), MOST_SAMPLES, width
    code = LoadedCode(made_from, partial(call_module, arguments, width))
    return _Method(b'evaluate', code.address, _FASTCALL, None), code


class _CallWriter:
    """Writer of the function of a call, which leaves it where a requirement is not met."""

    def __init__(self, function: ir.Function) -> None:
        self.builder = ir.IRBuilder(function.append_basic_block())
        self.refused = function.append_basic_block('refused')
        self._table = self.read(function.args[0], _ArrayObject.data.offset)

    def read(
        self, address: ir.Value, offset: int | ir.Value, kind: ir.Type = INTEGER
    ) -> ir.Value:
        """Integer at an address in memory, of 64 bits."""
        offset = whole(offset) if isinstance(offset, int) else offset
        place = self.builder.inttoptr(self.builder.add(address, offset), kind.as_pointer())
        value = self.builder.load(place)
        return value if kind is INTEGER else self.builder.sext(value, INTEGER)

    def entry(self, index: int) -> ir.Value:
        """Entry of the table."""
        return self.read(self._table, 8 * index)

    def require(self, condition: ir.Value) -> None:
        """Go on where a condition is true."""
        go_on = self.builder.append_basic_block()
        self.builder.cbranch(condition, go_on, self.refused)
        self.builder.position_at_end(go_on)

    def require_same(self, a: ir.Value, b: ir.Value | int) -> None:
        """Go on where two integers are the same."""
        b = whole(b) if isinstance(b, int) else b
        self.require(self.builder.icmp_signed('==', a, b))

    def evaluate(
        self, first: int, blocks: ir.Value, places: dict[str, ir.Value]
    ) -> ir.Value:
        """Status of a code, from where it is in the table, for so many blocks."""
        builder = self.builder
        code, *robot = (self.entry(first + k) for k in range(4))
        given = [*robot, blocks, *(places.get(x) for x in ('motion', 'middle', 'result'))]
        values = [
            value
            if kind is INTEGER
            else builder.inttoptr(whole(0) if value is None else value, kind)
            for value, kind in zip(given, EVALUATE.args)
        ]
        return builder.call(builder.inttoptr(code, EVALUATE.as_pointer()), values)

    def answer(self, which: ir.Value) -> None:
        """Return False or True, from the table, as a new reference."""
        builder = self.builder
        kind = ir.FunctionType(ir.VoidType(), [INTEGER]).as_pointer()
        builder.call(builder.inttoptr(self.entry(_INCREASE), kind), [which])
        builder.ret(which)


def whole(value: int) -> ir.Constant:
    """Integer of 64 bits."""
    return ir.Constant(INTEGER, value)


def call_module(arguments: tuple[ArrayArgument, ...], width: int) -> ir.Module:
    """Module with a function of CPython's vector call.

    Parameters
    ----------
    arguments : tuple of ArrayArgument
        In the order in which they are given.
    width : int
        Samples that the second code computes together.
    """
    module = ir.Module('call')
    kind = ir.FunctionType(INTEGER, [INTEGER, INTEGER, INTEGER])
    function = ir.Function(module, kind, ENTRY)
    writer = _CallWriter(function)
    builder = writer.builder
    writer.require_same(function.args[2], len(arguments))
    samples, leading, first, index = whole(1), whole(0), whole(0), _SHAPES
    data, sizes = [], []
    for number, argument in enumerate(arguments):
        array = writer.read(function.args[1], 8 * number)
        lead, dimensions = _checked(writer, array, argument)
        if number == 0:
            leading, first = lead, dimensions
            writer.require(builder.icmp_signed('>=', lead, whole(0)))
            with loop(builder, lead, samples) as (axis, product, keep):
                size = writer.read(dimensions, builder.mul(axis, whole(8)))
                keep(builder.mul(product, size))
            samples = product
        else:
            writer.require_same(lead, leading)
            with loop(builder, lead, whole(0)) as (axis, other, keep):
                place = builder.mul(axis, whole(8))
                sides = writer.read(dimensions, place), writer.read(first, place)
                keep(builder.or_(other, builder.xor(*sides)))
            writer.require_same(other, 0)
        for axis in range(argument.dimensions):
            place = builder.mul(builder.add(lead, whole(axis)), whole(8))
            writer.require_same(
                writer.read(dimensions, place), writer.entry(index + 1 + axis)
            )
        data.append(writer.read(array, _ArrayObject.data.offset))
        sizes.append(writer.entry(index))
        index += 1 + argument.dimensions
    fewer = builder.sub(samples, whole(1))
    writer.require(builder.icmp_unsigned('<', fewer, whole(MOST_SAMPLES)))
    _require_apart(writer, arguments, data, [builder.mul(samples, size) for size in sizes])
    status = _computed(writer, arguments, data, sizes, samples, width)
    done = builder.icmp_signed('==', status, whole(0))
    writer.answer(builder.select(done, writer.entry(_ANSWERS + 1), writer.entry(_ANSWERS)))
    builder.position_at_end(writer.refused)
    writer.answer(writer.entry(_ANSWERS))
    return module


def _checked(
    writer: _CallWriter, array: ir.Value, argument: ArrayArgument
) -> tuple[ir.Value, ir.Value]:
    """Number of leading axes of an array of the right kind, and the address of its shape."""
    flags = _CONTIGUOUS | _ALIGNED | (_WRITEABLE if argument.written else 0)
    short, byte = ir.IntType(32), ir.IntType(8)
    writer.require_same(writer.read(array, _TYPE), writer.entry(_ARRAY))
    found = writer.read(array, _ArrayObject.flags.offset, short)
    writer.require_same(writer.builder.and_(found, whole(flags)), flags)
    element = writer.read(array, _ArrayObject.descr.offset)
    writer.require_same(writer.read(element, _Description.type_num.offset, short), _DOUBLE)
    order = writer.read(element, _Description.byteorder.offset, byte)
    writer.require_same(order, _NATIVE[0])
    axes = writer.read(array, _ArrayObject.nd.offset, short)
    lead = writer.builder.sub(axes, whole(argument.dimensions))
    return lead, writer.read(array, _ArrayObject.dimensions.offset)


def _require_apart(
    writer: _CallWriter,
    arguments: tuple[ArrayArgument, ...],
    data: list[ir.Value],
    sizes: list[ir.Value],
) -> None:
    """Refuse arrays that overlap one that is written, given by addresses and bytes."""
    builder = writer.builder
    ends = [builder.add(start, size) for start, size in zip(data, sizes)]
    for w, written in enumerate(arguments):
        for r in range(len(arguments) if written.written else 0):
            if r != w and not (arguments[r].written and r > w):
                before = builder.icmp_unsigned('<=', ends[r], data[w])
                behind = builder.icmp_unsigned('<=', ends[w], data[r])
                writer.require(builder.or_(before, behind))


def _computed(
    writer: _CallWriter,
    arguments: tuple[ArrayArgument, ...],
    data: list[ir.Value],
    sizes: list[ir.Value],
    samples: ir.Value,
    width: int,
) -> ir.Value:
    """Status of all samples: whole blocks, then those that are left one by one."""
    builder = writer.builder
    names = [argument.place for argument in arguments]
    blocks = builder.udiv(samples, whole(width))
    status = builder.alloca(INTEGER)
    builder.store(whole(0), status)
    with builder.if_then(builder.icmp_unsigned('>', blocks, whole(0))):
        builder.store(writer.evaluate(_MANY, blocks, dict(zip(names, data))), status)
    together = builder.mul(blocks, whole(width))
    left = builder.sub(samples, together)
    with builder.if_then(builder.icmp_unsigned('>', left, whole(0))):
        rest = [
            builder.add(start, builder.mul(together, size))
            for start, size in zip(data, sizes)
        ]
        found = writer.evaluate(_ONE, left, dict(zip(names, rest)))
        builder.store(builder.or_(builder.load(status), found), status)
    return builder.load(status)
