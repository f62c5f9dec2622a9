"""Programs in LLVM's intermediate representation, for one number or several lanes of numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, NamedTuple

from llvmlite import ir

from hodyn_ros.engine.program import Program

DOUBLE = ir.DoubleType()
INTEGER = ir.IntType(64)
DOUBLES = DOUBLE.as_pointer()
INTEGERS = INTEGER.as_pointer()

# A product may be added without rounding it first; nothing else may be changed.
FLAGS = ('contract',)


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

    def negative(self, a: ir.Value) -> ir.Value:
        """Change the sign."""
        return self.subtract(self.number(-0.0), a)

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
                values.append(self.negative(values[a]))
            else:
                values.append(getattr(self, kind)(values[a], values[b]))
        for array, index, step in program.outputs:
            self.store_lanes(values[step], place(array, index))


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
