"""Kernels: machine code for one robot, its calls for few samples and for batches."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from hodyn_ros.checks import Array
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

# Fewer samples are not worth a thread.
SAMPLES_PER_THREAD = 512

# Releases the interpreter lock while it runs. The arguments are those of `llvm_lanes.EVALUATE`.
_BLOCKS = ctypes.CFUNCTYPE(
    ctypes.c_int64, *[ctypes.c_void_p] * 3, ctypes.c_int64, *[ctypes.c_void_p] * 3
)


class Kernel:
    """Machine code for one result of the motion of a robot, such as its efforts of some order.

    Parameters
    ----------
    codes : list of (LoadedCode, int)
        With doubles of workspace, for one sample and for many side by side.
    integers, numbers : ndarray
        The robot, where it is not folded into the codes.
    name : str
        Of the form, 'compiled_robot' or 'compiled_tree'.
    wrench_size : int
        How many numbers a sample has in the wrenches.
    friction : bool
        Whether that of the joints, if there is any, is included.
    lanes : tuple of int
        Samples that each code computes together.
    parts : sequence of Kernel
        Those that the codes call; they live as long as this one.
    """

    def __init__(
        self,
        codes: list[tuple[LoadedCode, int]],
        integers: NDArray[np.int64],
        numbers: Array,
        name: str,
        wrench_size: int,
        friction: bool,
        lanes: tuple[int, int],
        parts: Sequence[Kernel] = (),
    ) -> None:
        self.name = name
        self.wrench_size = wrench_size
        self.friction = friction
        self.robot = integers, numbers
        self.parts = parts
        self.codes = codes
        self.lanes = lanes
        self._single_scratch = aligned(codes[0][1])
        pointers = (
            array.ctypes.data for array in (integers, numbers, self._single_scratch)
        )
        self._single_table = np.array([codes[0][0].address, *pointers], dtype=np.int64)
        # For samples side by side in calls, under the interpreter lock.
        self._scratch: Array | None = None

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
        if self._scratch is None:
            self._scratch = aligned(self.codes[1][1])
        pointers = (array.ctypes.data for array in (*self.robot, self._scratch))
        many = [self.codes[1][0].address, *pointers]
        kinds, shapes = zip(*arguments)
        table = calls.table_of(self._single_table.tolist(), many, [*shapes])
        return calls.python_function(kinds, table, self.lanes[1])

    def program(self, which: int) -> list[int]:
        """Addresses of a code and of its first two arguments, see `llvm_lanes.EVALUATE`."""
        return [self.codes[which][0].address, *(array.ctypes.data for array in self.robot)]

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
        N = len(motion)
        threads = min(num_threads, N // SAMPLES_PER_THREAD)
        if threads > 1:
            lanes = self.lanes[1]
            step = -(-N // (threads * lanes)) * lanes
            futures = []
            for part in (slice(start, start + step) for start in range(0, N, step)):
                arrays = (
                    motion[part],
                    None if middle is None else middle[part],
                    result[part],
                )
                submit = _threads(num_threads).submit
                futures.append(submit(self.evaluate, *arrays, together=together))
            return all([future.result() for future in futures])
        robot = [array.ctypes.data for array in self.robot]
        status = start = 0
        for which in (1, 0) if together else (0,):
            lanes = self.lanes[which]
            blocks = (N - start) // lanes
            if blocks:
                code, size = self.codes[which]
                scratch = aligned(size)
                given = None if middle is None else middle[start:].ctypes.data
                data = motion[start:].ctypes.data, given, result[start:].ctypes.data
                status |= _BLOCKS(code.address)(*robot, scratch.ctypes.data, blocks, *data)
                start += blocks * lanes
        return status == 0


def robot_kernel(robot: RobotProgram, kind: ir.Type = DOUBLE) -> Kernel:
    """Kernel of a program of one robot, its constants folded into the code."""
    width = vector_width()
    code = RobotCode(robot)
    text = f'{kind} {robot!r}'
    codes = []
    for lanes in lanes_of(kind):
        write = partial(code.module, lanes, width, kind)
        size = code.scratch(lanes, width)
        codes.append((LoadedCode((text, lanes, width), write), size))
    wrench_size = 0 if robot.middle.written else robot.middle.size
    none = np.zeros(0, dtype=np.int64), np.zeros(0)
    name, friction = 'compiled_robot', robot.friction
    return Kernel(codes, *none, name, wrench_size, friction, lanes_of(kind))


def lanes_of(kind: ir.Type) -> tuple[int, int]:
    """Samples that codes compute together: one, and as many as the vector registers take."""
    return 1, vector_width() * 8 // size_of(kind)


def tree_kernel(
    model: Mechanism, order: int, loaded: bool = False, kind: ir.Type = DOUBLE
) -> Kernel:
    """Kernel of the efforts that loops over the bodies of any robot.

    If it is loaded, `Kernel.evaluate` takes a wrench on each body, (order + 1) rows of 6: on the
    environment, in the axes of the body's frame of the engine, see `frames.Frames.poses`.
    """
    wrench_size = 6 * (order + 1) * model.n_bodies if loaded else 0
    return _loops_kernel(model, 'efforts', order, loaded, wrench_size, kind)


def articulated_kernel(model: Mechanism, order: int) -> Kernel:
    """Kernel of forward dynamics that loops over the bodies of any robot without mimic joints."""
    return _loops_kernel(model, 'articulated', order, False, (order + 1) * model.n_joints)


def _loops_kernel(
    model: Mechanism,
    what: str,
    order: int,
    loaded: bool,
    middle_size: int,
    kind: ir.Type = DOUBLE,
) -> Kernel:
    """Kernel of `tree_kernel` or `articulated_kernel`, its model given as data."""
    frames = frames_of(model)
    rows, kinds = constants(model, frames)
    of_bodies = np.stack([kinds, model.parent + 1, model.coordinate], axis=1)
    integers = np.array(
        [model.n_joints, model.n_bodies, *of_bodies.ravel()], dtype=np.int64
    )
    loops = _loops(what, order, loaded)
    base = np.zeros(loops.state_size)
    base[list(loops.gravity)] = -frames.gravity
    numbers = np.concatenate([base, rows.ravel()])
    codes = []
    for lanes in lanes_of(kind):
        size = llvm_tree.tree_scratch(model, loops, lanes, vector_width())
        codes.append((_tree_code(what, order, loaded, lanes, kind), size))
    robot = integers, numbers, 'compiled_tree', middle_size, not model.friction
    return Kernel(codes, *robot, lanes_of(kind))


@cache
def _loops(what: str, order: int, loaded: bool) -> Loops:
    """Loops of 'efforts' or 'articulated', made once for all robots."""
    if what == 'articulated':
        return articulated_loops(order)
    return effort_loops(order, loaded)


@cache
def _tree_code(
    what: str, order: int, loaded: bool, lanes: int, kind: ir.Type
) -> LoadedCode:
    """Code of such loops, loaded once for all robots."""
    loops, width = _loops(what, order, loaded), vector_width()
    write = partial(llvm_tree.tree_module, loops, lanes, width, kind)
    return LoadedCode((f'{kind} {loops!r}', lanes, width), write)


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
