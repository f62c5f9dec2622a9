"""Modules in LLVM's intermediate representation that loop over the bodies of any robot."""

from __future__ import annotations

from llvmlite import ir

from hodyn_ros.engine.llvm_functions import ArrayFunctions
from hodyn_ros.engine.llvm_lanes import (
    DOUBLE,
    INTEGER,
    Block,
    Elements,
    LaneWriter,
    evaluate_function,
    loop,
    padded,
    product,
)
from hodyn_ros.engine.program import StraightLineProgram
from hodyn_ros.engine.stages import GATHERED, in_stages, sizes_between
from hodyn_ros.engine.walker import GENERAL, N_CONSTANTS, Loops
from hodyn_ros.model.mechanism import Mechanism


def tree_module(loops: Loops, lanes: int, width: int, kind: ir.Type = DOUBLE) -> ir.Module:
    """Write a module with the function 'evaluate' of any robot, its model given as data.

    The integers are (n_joints, n_bodies, then for each body kind, parent + 1, coordinate), the
    constants the state of the base and `walker.constants`.

    Parameters
    ----------
    loops : Loops
    lanes : int
        Samples in a block.
    width : int
        Numbers that `ArrayFunctions` compute at once.
    kind : ir.Type
        Of numbers that are computed; functions of them are computed in double precision.

    Returns
    -------
    ir.Module
        Needs a workspace of `tree_scratch` doubles.
    """
    module = ir.Module('tree')
    functions = ArrayFunctions(module, width)

    def sizes(
        builder: ir.IRBuilder, integers: ir.Value
    ) -> tuple[ir.Value, ir.Value, ir.Value]:
        writer = LaneWriter(builder, 1)
        n, n_bodies = _entry(writer, integers, 0), _entry(writer, integers, 1)
        counts = (n, n_bodies if loops.names[1] == 'wrench' else n, n)
        first, second, third = (product(builder, *x) for x in zip(counts, loops.sizes))
        return first, second, third

    def body(block: Block) -> None:
        tree = _TreeBlock(block, loops, width)
        tree.write_start()
        for backward, programs in loops.sweeps:
            stages = {kind: in_stages(program) for kind, program in programs.items()}
            *first, last = (
                {kind: s[k] for kind, s in stages.items()}
                for k in range(len(stages[GENERAL]))
            )
            for programs in first:
                tree.write_sweep(backward, programs)
                tree.write_functions(functions)
            tree.write_sweep(backward, last)

    evaluate_function(module, lanes, width, sizes, body, kind=kind)
    return module


class _TreeBlock:
    """Code of a block of samples of any robot, whose arrays have parts for joints or bodies."""

    def __init__(self, block: Block, loops: Loops, width: int) -> None:
        self._block, self._loops, self._size = block, loops, loops.state_size
        self._writer, self._builder = block.writer, block.writer.builder
        writer, builder, integers = self._writer, self._builder, block.integers
        self._n, self._n_bodies = _entry(writer, integers, 0), _entry(writer, integers, 1)
        self._between, self._pointers = _between(loops), dict[str, ir.Value]()
        chunk, free = _whole(width), block.scratch
        for name, count in self._between.items():
            self._pointers[name] = free
            room = builder.add(self._in_all_lanes(count), _whole(width - 1))
            free = writer.at(free, builder.mul(builder.sdiv(room, chunk), chunk))
        self._states = builder.bitcast(free, writer.kind.as_pointer())
        self._bodies = writer.at(block.constants, self._size)

    def _in_all_lanes(self, count: int) -> ir.Value:
        """Size of an array with so many numbers for each body, in all lanes."""
        return product(self._builder, self._n_bodies, count, self._writer.lanes)

    def _part(self, pointer: ir.Value, i: ir.Value, size: int) -> ir.Value:
        """Pointer to the i-th part of an array of parts for each lane."""
        return self._writer.at(pointer, i, size, self._writer.lanes)

    def _about(self, i: ir.Value) -> list[ir.Value]:
        """Kind, parent + 1 and coordinate of a body."""
        of_body = self._writer.at(self._block.integers, i, 3)
        return [_entry(self._writer, of_body, 2 + k) for k in range(3)]

    def write_functions(self, functions: ArrayFunctions) -> None:
        """Functions of the arguments that all bodies have written."""
        for array, names in GATHERED.items():
            if count := self._between.get(array):
                pointers = [self._pointers[name] for name in (array, *names)]
                functions.write(self._builder, array, self._in_all_lanes(count), pointers)

    def write_start(self) -> None:
        """State of the base, and zeros in the result."""
        writer, builder, block = self._writer, self._builder, self._block
        for k in range(self._size):
            value = writer.load(Elements(block.constants, 1, False), k)
            writer.store_lanes(value, writer.at(self._states, k, writer.lanes))
        with loop(builder, product(builder, self._n, self._loops.sizes[2])) as i:
            writer.store_lanes(writer.number(0.0), self._part(block.result, i, 1))

    def write_sweep(self, backward: bool, programs: dict[int, StraightLineProgram]) -> None:
        """Loop over the bodies, towards the base if backward, with a program for each kind."""
        builder = self._builder
        with loop(builder, self._n_bodies, backward=backward) as i:
            kind, parent, coordinate = self._about(i)
            arrays = {**self._arrays(i, parent), **self._of_coordinate(i, coordinate)}
            end = builder.append_basic_block('next')
            unknown = builder.append_basic_block('unknown')
            choice = builder.switch(kind, unknown)
            for number, program in programs.items():
                case = builder.append_basic_block('case')
                choice.add_case(_whole(number), case)
                builder.position_at_end(case)
                self._writer.run(program, arrays)
                builder.branch(end)
            builder.position_at_end(unknown)
            builder.unreachable()
            builder.position_at_end(end)

    def _arrays(self, i: ir.Value, parent: ir.Value) -> dict[str, Elements]:
        """Arrays of body i: its constants and state, the parent's, and those between stages."""
        part, size, lanes = self._part, self._size, self._writer.lanes
        parts = {
            'own': part(self._states, self._builder.add(i, _whole(1)), size),
            'parent': part(self._states, parent, size),
            **{name: part(self._pointers[name], i, n) for name, n in self._between.items()},
        }
        arrays = {name: Elements(pointer, lanes) for name, pointer in parts.items()}
        constants = self._writer.at(self._bodies, i, N_CONSTANTS)
        return {**arrays, 'constants': Elements(constants, 1, False)}

    def _of_coordinate(self, i: ir.Value, coordinate: ir.Value) -> dict[str, Elements]:
        """Arrays of the coordinate of body i, and the wrench on the body."""
        block, part, lanes = self._block, self._part, self._writer.lanes
        stride = product(self._builder, self._n, lanes)
        arrays = {}
        for name, pointer, size in zip(
            self._loops.names, (block.motion, block.middle, block.result), self._loops.sizes
        ):
            arrays[name] = Elements(part(pointer, coordinate, 1), stride)
            if name == 'wrench':
                arrays[name] = Elements(part(pointer, i, size), lanes)
        return arrays


def _between(loops: Loops) -> dict[str, int]:
    """Numbers that each body has in the arrays between the stages of its programs."""
    programs = (program for _, programs in loops.sweeps for program in programs.values())
    return sizes_between(map(in_stages, programs))


def tree_scratch(model: Mechanism, loops: Loops, lanes: int, width: int) -> int:
    """Doubles of workspace that a function of `tree_module` needs."""
    n_bodies = model.n_bodies
    transposed = max(n_bodies, model.n_joints) * sum(loops.sizes)
    states = (n_bodies + 1) * loops.state_size
    arrays = (padded(n_bodies * lanes * count, width) for count in _between(loops).values())
    return lanes * (transposed + states) + sum(arrays)


def _entry(writer: LaneWriter, integers: ir.Value, index: int | ir.Value) -> ir.Value:
    """One of the integers that are the model of any robot."""
    return writer.builder.load(writer.at(integers, index), align=8)


def _whole(value: int) -> ir.Constant:
    return ir.Constant(INTEGER, value)
