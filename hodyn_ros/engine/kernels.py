"""Kernels: machine code for one robot, its calls for few samples and for batches."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.engine import calls, llvm_tree
from hodyn_ros.engine.calls import ArrayArgument
from hodyn_ros.engine.code_cache import LoadedCode, vector_width
from hodyn_ros.engine.efforts import effort_loops
from hodyn_ros.engine.forward import articulated_loops
from hodyn_ros.engine.frames import frames_of
from hodyn_ros.engine.llvm_lanes import DOUBLE, size_of
from hodyn_ros.engine.llvm_robot import RobotCode
from hodyn_ros.engine.program import RobotProgram
from hodyn_ros.engine.walker import Loops, constants
from hodyn_ros.model.mechanism import Mechanism
from hodyn_ros.typing import Array

# Fewer samples are not worth a thread.
SAMPLES_PER_THREAD = 512

# Releases the interpreter lock while it runs. The arguments are those of `llvm_lanes.EVALUATE`.
_BLOCKS = ctypes.CFUNCTYPE(
    ctypes.c_int64, *[ctypes.c_void_p] * 3, ctypes.c_int64, *[ctypes.c_void_p] * 3
)


class MachineCode(NamedTuple):
    """Machine code, doubles of workspace that it needs, and samples that it computes together."""

    loaded: LoadedCode
    size: int
    lanes: int


class Kernel:
    """Machine code for one result of the motion of a robot, such as its efforts of some order.

    Parameters
    ----------
    codes : list of MachineCode
        For one sample, and for as many side by side as the vector registers take.
    name : str
        Of the form, 'compiled_robot' or 'compiled_tree'.
    wrench_size : int
        How many numbers a sample has in the wrenches.
    friction : bool
        Whether that of the joints, if there is any, is included.
    integers, numbers : sequence
        The robot, where it is not folded into the codes.
    parts : sequence of Kernel
        Those that the codes call; they live as long as this one.
    """

    def __init__(
        self,
        codes: list[MachineCode],
        name: str,
        wrench_size: int,
        friction: bool,
        integers: Sequence[int] = (),
        numbers: ArrayLike = (),
        parts: Sequence[Kernel] = (),
    ) -> None:
        self.name = name
        self.wrench_size = wrench_size
        self.friction = friction
        self.parts = parts
        self.codes = codes
        self.robot: tuple[NDArray[np.int64], Array] = (
            np.array(integers, np.int64),
            np.array(numbers, np.float64),
        )
        # Those of calls, under the interpreter lock.
        self._addresses = [array.ctypes.data for array in self.robot]
        self._tables: list[tuple[list[int], Array]] = []

    def _table(self, which: int) -> tuple[list[int], Array]:
        """Addresses of a code and of its first three arguments, of which the last is a workspace.

        For one thread at a time; they hold as long as the workspace, and the kernel, live.
        """
        scratch = aligned(self.codes[which].size)
        return [*self.program(which), scratch.ctypes.data], scratch

    def call(
        self, *arguments: tuple[ArrayArgument, tuple[int, ...]]
    ) -> Callable[..., bool] | None:
        """Function for one sample or few, of arrays, that says whether the results are there.

        See `calls.python_function`.

        Parameters
        ----------
        *arguments : (ArrayArgument, tuple of int)
            Arrays in the order in which they are given, and their shapes for one sample.

        Returns
        -------
        callable or None
            Works as long as the kernel lives. None where there are no such functions.
        """
        if not calls.available():
            return None
        self._tables = self._tables or [self._table(which) for which in (0, 1)]
        kinds, shapes = zip(*arguments)
        one, many = (addresses for addresses, _ in self._tables)
        table = calls.table_of(one, many, [*shapes])
        return calls.python_function(kinds, table, self.codes[1].lanes)

    def program(self, which: int) -> list[int]:
        """Addresses of a code and of its first two arguments, see `llvm_lanes.EVALUATE`."""
        return [self.codes[which].loaded.address, *self._addresses]

    def evaluate(
        self,
        motion: Array,
        middle: Array | None,
        result: Array,
        num_threads: int = 1,
        together: bool = True,
    ) -> bool:
        """Compute a batch; says whether all numbers are finite.

        Motion, of shape (N, K, n), middle and result, which is written, are contiguous. The middle
        array holds wrenches, of `wrench_size` numbers a sample, or takes a second result.
        Together: whether samples are computed side by side in the vector registers, or one by one.
        """
        N, arrays = len(motion), (motion, middle, result)
        threads = min(num_threads, N // SAMPLES_PER_THREAD)
        if threads > 1:
            lanes = self.codes[1].lanes
            step = -(-N // (threads * lanes)) * lanes
            futures = []
            evaluate: Any = partial(self.evaluate, together=together)
            for start in range(0, N, step):
                part = [x if x is None else x[start : start + step] for x in arrays]
                futures.append(_threads(num_threads).submit(evaluate, *part))
            return all([future.result() for future in futures])
        status = start = 0
        for which in (1, 0) if together else (0,):
            lanes = self.codes[which].lanes
            blocks = (N - start) // lanes
            if blocks:
                (address, *robot), scratch = self._table(which)
                data = [x if x is None else x[start:].ctypes.data for x in arrays]
                status |= _BLOCKS(address)(*robot, blocks, *data)
                start += blocks * lanes
                del scratch  # until here it was written
        return status == 0


def robot_kernel(robot: RobotProgram, kind: ir.Type = DOUBLE) -> Kernel:
    """Kernel of a program of one robot, its constants folded into the code."""
    width, code = vector_width(), RobotCode(robot)
    text = f'{kind} {robot!r}'
    codes = []
    for lanes in _lanes_of(kind):
        loaded = LoadedCode((text, lanes, width), partial(code.module, lanes, width, kind))
        codes.append(MachineCode(loaded, code.scratch(lanes, width), lanes))
    wrench_size = 0 if robot.middle.written else robot.middle.size
    return Kernel(codes, 'compiled_robot', wrench_size, robot.friction)


def tree_kernel(
    model: Mechanism, order: int, loaded: bool = False, kind: ir.Type = DOUBLE
) -> Kernel:
    """Kernel of the efforts that loops over the bodies of any robot.

    If it is loaded, `Kernel.evaluate` takes a wrench on each body, (order + 1) rows of 6: on the
    environment, in the axes of the body's frame of the engine, see `frames.Frames.poses`.
    """
    wrench_size = 6 * (order + 1) * model.n_bodies if loaded else 0
    return _loops_kernel(model, _tree_codes(effort_loops, kind, order, loaded), wrench_size)


def articulated_kernel(model: Mechanism, order: int) -> Kernel:
    """Kernel of forward dynamics that loops over the bodies of any robot without mimic joints."""
    codes = _tree_codes(articulated_loops, DOUBLE, order)
    return _loops_kernel(model, codes, (order + 1) * model.n_joints)


def _loops_kernel(
    model: Mechanism, codes: tuple[Loops, dict[int, LoadedCode]], middle_size: int
) -> Kernel:
    """Kernel of loops over bodies, the model given as data."""
    frames, (loops, loaded), width = frames_of(model), codes, vector_width()
    rows, kinds = constants(model, frames)
    of_bodies = np.stack([kinds, model.parent + 1, model.coordinate], axis=1)
    integers = [model.n_joints, model.n_bodies, *of_bodies.ravel()]
    base = np.zeros(loops.state_size)
    base[list(loops.gravity)] = -frames.gravity
    numbers = np.concatenate([base, rows.ravel()])
    made = []
    for lanes, code in loaded.items():
        made.append(
            MachineCode(code, llvm_tree.tree_scratch(model, loops, lanes, width), lanes)
        )
    friction = not model.friction
    return Kernel(made, 'compiled_tree', middle_size, friction, integers, numbers)


@cache
def _tree_codes(
    make: Callable[..., Loops], kind: ir.Type, *arguments: Any
) -> tuple[Loops, dict[int, LoadedCode]]:
    """Loops over bodies and their code, made and loaded once for all robots."""
    loops, width = make(*arguments), vector_width()
    codes = {}
    for lanes in _lanes_of(kind):
        write = partial(llvm_tree.tree_module, loops, lanes, width, kind)
        codes[lanes] = LoadedCode((f'{kind} {loops!r}', lanes, width), write)
    return loops, codes


def _lanes_of(kind: ir.Type) -> tuple[int, int]:
    """Samples that codes compute together: one, and as many as the vector registers take."""
    return 1, vector_width() * 8 // size_of(kind)


def aligned(count: int) -> Array:
    """Array of zeros at the start of a cache line."""
    line = 64
    room = np.zeros(count + line // 8)
    start = -room.ctypes.data % line // 8
    return room[start : start + count]


@cache
def _threads(count: int) -> ThreadPoolExecutor:
    """Pool of so many threads for batches."""
    return ThreadPoolExecutor(count, thread_name_prefix='hodyn_engine')


if hasattr(os, 'register_at_fork'):  # a child has none of the threads
    os.register_at_fork(after_in_child=_threads.cache_clear)
