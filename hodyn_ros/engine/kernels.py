"""Compiled kernels: batches of samples by machine code, on one or several threads."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.engine import functions
from hodyn_ros.engine.body_programs import base_state, constants
from hodyn_ros.engine.effort_programs import effort_program
from hodyn_ros.engine.frames import frames_of
from hodyn_ros.engine.machine import load, machine_code, vector_width
from hodyn_ros.engine.robot_program import Attachment, RobotProgram
from hodyn_ros.model.robot import RobotModel

Array = NDArray[np.float64]

# Fewer samples are not worth a thread.
SAMPLES_PER_THREAD = 512

# Releases the interpreter lock while it runs. The arguments are those of `blocks.EVALUATE`.
_BLOCKS = ctypes.CFUNCTYPE(
    ctypes.c_int64,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_int64,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
)


class Kernel:
    """Machine code for one result of the motion of a robot, such as its efforts of some order.

    Attributes
    ----------
    name : str
        'compiled_robot' or 'compiled_tree'.
    wrench_size : int
        Numbers that a sample has in the wrenches.
    friction : bool
        Whether the friction of the joints, if there is any, is included.
    single_table : ndarray of int64
        Addresses that calls in `numba_call` need besides those of the arrays of a sample.
    """

    def __init__(
        self,
        integers: NDArray[np.int64],
        numbers: Array,
        codes: tuple[bytes, bytes],
        scratch_sizes: tuple[int, int],
        name: str,
        wrench_size: int,
        friction: bool,
    ) -> None:
        self.name = name
        self.wrench_size = wrench_size
        self.friction = friction
        self._arguments = integers, numbers, codes, scratch_sizes, name, wrench_size, friction
        self._loaded = [load(code) for code in codes]
        self._addresses = [loaded.address for loaded in self._loaded]
        self._lanes = (1, vector_width())
        self._single_scratch = aligned(scratch_sizes[0])
        pointers = (array.ctypes.data for array in (integers, numbers, self._single_scratch))
        self.single_table = np.array([self._addresses[0], *pointers], dtype=np.int64)

    def __reduce__(self) -> tuple[Any, ...]:
        return Kernel, self._arguments

    def evaluate(
        self,
        motion: Array,
        middle: Array | None,
        result: Array,
        num_threads: int = 1,
        together: bool = True,
    ) -> bool:
        """Compute a batch.

        Parameters
        ----------
        motion : ndarray, shape (N, K, n), C-contiguous
        middle : ndarray, shape (N, ...), C-contiguous, or None
            Wrenches, of `wrench_size` numbers a sample, or what is written besides the result.
        result : ndarray, shape (N, ...), C-contiguous
            Is written.
        num_threads : int
        together : bool
            Whether samples are computed side by side in the vector registers, or one by one.

        Returns
        -------
        bool
            Whether all numbers are finite.
        """
        N = len(motion)
        threads = max(1, min(num_threads, N // SAMPLES_PER_THREAD))
        if threads == 1:
            return self._part(motion, middle, result, together)
        lanes = self._lanes[1]
        step = -(-N // (threads * lanes)) * lanes
        parts = [slice(start, start + step) for start in range(0, N, step)]
        futures = [
            _threads(num_threads).submit(
                self._part,
                motion[part],
                None if middle is None else middle[part],
                result[part],
                together,
            )
            for part in parts
        ]
        return all([future.result() for future in futures])

    def _part(
        self, motion: Array, middle: Array | None, result: Array, together: bool
    ) -> bool:
        integers, numbers, _, scratch_sizes, *_ = self._arguments
        status = 0
        start = 0
        for which in (1, 0) if together else (0,):
            lanes = self._lanes[which]
            blocks = (len(motion) - start) // lanes
            if blocks:
                scratch = aligned(scratch_sizes[which])
                status |= _BLOCKS(self._addresses[which])(
                    integers.ctypes.data,
                    numbers.ctypes.data,
                    scratch.ctypes.data,
                    blocks,
                    motion[start:].ctypes.data,
                    None if middle is None else middle[start:].ctypes.data,
                    result[start:].ctypes.data,
                )
                start += blocks * lanes
        return status == 0


def robot_kernel(model: RobotModel, order: int, wrenches: Sequence[Attachment] = ()) -> Kernel:
    """Kernel of the efforts with the constants of a robot folded in.

    Parameters
    ----------
    model : RobotModel
    order : int
    wrenches : sequence of Attachment
        The wrenches that `Kernel.evaluate` takes, for each (order + 1) rows of 6.

    Returns
    -------
    Kernel
    """
    return program_kernel(model, effort_program(model, order, wrenches))


def program_kernel(model: RobotModel, robot: RobotProgram) -> Kernel:
    """Kernel of a program of one robot.

    Parameters
    ----------
    model : RobotModel
    robot : RobotProgram

    Returns
    -------
    Kernel
    """
    width = vector_width()
    codes, sizes = [], []
    for lanes in (1, width):
        module = functions.robot_module(model, robot, lanes, width)
        codes.append(machine_code(module))
        sizes.append(functions.robot_scratch(model, robot, lanes, width))
    return Kernel(
        np.zeros(0, dtype=np.int64),
        np.zeros(0),
        (codes[0], codes[1]),
        (sizes[0], sizes[1]),
        name='compiled_robot',
        wrench_size=0 if robot.middle.written else robot.middle.size,
        friction=robot.friction,
    )


def tree_kernel(model: RobotModel, order: int, loaded: bool = False) -> Kernel:
    """Kernel of the efforts that loops over the bodies of any robot.

    Parameters
    ----------
    model : RobotModel
    order : int
    loaded : bool
        Whether `Kernel.evaluate` takes a wrench on each body, (order + 1) rows of 6: on the
        environment, in the axes of the body's frame of the engine, see `frames.Frames.poses`.

    Returns
    -------
    Kernel
    """
    constants_of = frames_of(model)
    width = vector_width()
    rows, kinds = constants(model, constants_of)
    integers = np.concatenate(
        [
            [model.n_joints, model.n_bodies],
            np.stack([kinds, model.parent + 1, model.coordinate], axis=1).ravel(),
        ]
    ).astype(np.int64)
    numbers = np.concatenate([base_state(constants_of, order), rows.ravel(), model.offset])
    sizes = [functions.tree_scratch(model, order, lanes, width) for lanes in (1, width)]
    return Kernel(
        integers,
        numbers,
        _tree_codes(order, loaded),
        (sizes[0], sizes[1]),
        name='compiled_tree',
        wrench_size=6 * (order + 1) * model.n_bodies if loaded else 0,
        friction=not model.friction,
    )


@cache
def _tree_codes(order: int, loaded: bool) -> tuple[bytes, bytes]:
    width = vector_width()
    single, together = (
        machine_code(functions.tree_module(order, loaded, lanes, width))
        for lanes in (1, width)
    )
    return single, together


def aligned(count: int) -> Array:
    """Array of zeros at the start of a cache line."""
    line = 64
    room = np.zeros(count + line // 8)
    start = -room.ctypes.data % line // 8
    return room[start : start + count]


@cache
def _threads(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, thread_name_prefix='hodyn_engine')


if hasattr(os, 'register_at_fork'):  # a child has none of the threads
    os.register_at_fork(after_in_child=_threads.cache_clear)
