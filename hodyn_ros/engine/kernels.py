"""Compiled kernels: efforts of batches of samples by machine code, on one or several threads."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.engine import functions
from hodyn_ros.engine.body_programs import base_state, constants
from hodyn_ros.engine.calls import aligned, evaluate_blocks, single_arguments
from hodyn_ros.engine.effort_programs import with_known_friction
from hodyn_ros.engine.frames import frames_of
from hodyn_ros.engine.machine import function_address, machine_code, vector_width
from hodyn_ros.engine.robot_program import Attachment
from hodyn_ros.model.robot import RobotModel

Array = NDArray[np.float64]

# Fewer samples are not worth a thread.
SAMPLES_PER_THREAD = 512


class Kernel:
    """Machine code for one order of the efforts of a robot.

    It can be pickled, for use in another process on the same machine.

    Attributes
    ----------
    order : int
    name : str
        'compiled_robot' or 'compiled_tree'.
    friction : bool
        Whether the friction of the joints, if there is any, is included.
    wrench_size : int
        Numbers that a sample has in the wrenches.
    single_table : ndarray
        For `numba_call.single`; only without wrenches.
    """

    def __init__(
        self,
        order: int,
        wrench_size: int,
        integers: NDArray[np.int64],
        numbers: Array,
        codes: tuple[bytes, bytes],
        scratch_sizes: tuple[int, int],
        name: str,
        friction: bool,
    ) -> None:
        self.order = order
        self.name = name
        self.friction = friction
        self.wrench_size = wrench_size
        self._integers, self._numbers = integers, numbers
        self._codes, self._scratch_sizes = codes, scratch_sizes
        self._addresses = [function_address(code) for code in codes]
        self._lanes = (1, vector_width())
        self._single_scratch = aligned(scratch_sizes[0])
        self.single_table = single_arguments(
            self._addresses[0], integers, numbers, self._single_scratch
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return Kernel, (
            self.order,
            self.wrench_size,
            self._integers,
            self._numbers,
            self._codes,
            self._scratch_sizes,
            self.name,
            self.friction,
        )

    def evaluate(
        self,
        motion: Array,
        wrench: Array | None,
        effort: Array,
        num_threads: int = 1,
        together: bool = True,
    ) -> bool:
        """Compute the efforts of a batch.

        Parameters
        ----------
        motion : ndarray, shape (N, K, n), C-contiguous
        wrench : ndarray, shape (N, wrench_size), C-contiguous, or None
        effort : ndarray, shape (N, K-2, n), C-contiguous
            Is written.
        num_threads : int
        together : bool
            Whether samples are computed side by side in the vector registers, or one by one.

        Returns
        -------
        bool
            Whether the motion, the wrenches and the efforts are finite.
        """
        N = len(motion)
        threads = max(1, min(num_threads, N // SAMPLES_PER_THREAD))
        if threads == 1:
            return self._part(motion, wrench, effort, together)
        lanes = self._lanes[1]
        step = -(-N // (threads * lanes)) * lanes
        parts = [slice(start, start + step) for start in range(0, N, step)]
        futures = [
            _threads(num_threads).submit(
                self._part,
                motion[part],
                None if wrench is None else wrench[part],
                effort[part],
                together,
            )
            for part in parts
        ]
        return all([future.result() for future in futures])

    def _part(
        self, motion: Array, wrench: Array | None, effort: Array, together: bool
    ) -> bool:
        status = 0
        start = 0
        for which in (1, 0) if together else (0,):
            lanes = self._lanes[which]
            blocks = (len(motion) - start) // lanes
            if blocks:
                rest = slice(start, None)
                status |= evaluate_blocks(
                    self._addresses[which],
                    self._integers,
                    self._numbers,
                    aligned(self._scratch_sizes[which]),
                    blocks,
                    motion[rest],
                    None if wrench is None else wrench[rest],
                    effort[rest],
                )
                start += blocks * lanes
        return status == 0


def robot_kernel(model: RobotModel, order: int, wrenches: Sequence[Attachment] = ()) -> Kernel:
    """Kernel with the constants of a robot folded in.

    Parameters
    ----------
    model : RobotModel
    order : int
        0, 1 or 2.
    wrenches : sequence of Attachment
        The wrenches that `Kernel.evaluate` takes, for each (order + 1) rows of 6.

    Returns
    -------
    Kernel
    """
    known = with_known_friction(model)
    width = vector_width()
    codes, sizes = [], []
    for lanes in (1, width):
        module = functions.robot_module(known, order, wrenches, lanes, width)
        codes.append(machine_code(module))
        sizes.append(functions.robot_scratch(model, order, len(wrenches), lanes, width))
    return Kernel(
        order,
        6 * (order + 1) * len(wrenches),
        np.zeros(0, dtype=np.int64),
        np.zeros(0),
        (codes[0], codes[1]),
        (sizes[0], sizes[1]),
        name='compiled_robot',
        friction=known is model,
    )


def tree_kernel(model: RobotModel, order: int, loaded: bool = False) -> Kernel:
    """Kernel that loops over the bodies of any robot.

    Parameters
    ----------
    model : RobotModel
    order : int
        0, 1 or 2.
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
        order,
        6 * (order + 1) * model.n_bodies if loaded else 0,
        integers,
        numbers,
        _tree_codes(order, loaded),
        (sizes[0], sizes[1]),
        name='compiled_tree',
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


@cache
def _threads(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, thread_name_prefix='hodyn_engine')
