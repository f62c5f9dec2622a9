"""Functions in LLVM's intermediate representation that compute blocks of samples.

Every function has the signature of `EVALUATE`: it computes whole blocks of samples, one for each
lane of the vector registers, and says whether everything was finite. A block's motion is
transposed inside the cache, so that users keep their arrays in the order of samples.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from llvmlite import ir

from hodyn_ros.engine.array_functions import Inspection
from hodyn_ros.engine.llvm import DOUBLES, INTEGER, INTEGERS, Writer, loop

ENTRY = 'evaluate'

EVALUATE = ir.FunctionType(
    INTEGER, [INTEGERS, DOUBLES, DOUBLES, INTEGER, DOUBLES, DOUBLES, DOUBLES]
)
"""status = evaluate(integers, constants, scratch, blocks, motion, middle, result)

integers, constants: the robot, where it is not folded into the function; scratch: workspace;
motion, middle, result: of blocks times lanes samples, contiguous. The middle one is read, such as
wrenches, or is a second result, or is not there. The status is 0 if all three are finite.
"""


class Block(NamedTuple):
    """What the code of one block of samples works on; all pointers to doubles but integers."""

    writer: Writer
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
    written = (False, writes_middle, True)
    inspection = Inspection(module, width)
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
