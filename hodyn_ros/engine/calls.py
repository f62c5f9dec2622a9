"""Calls of machine code from Python."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

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


def evaluate_blocks(
    address: int,
    integers: NDArray[np.int64],
    constants: Array,
    scratch: Array,
    blocks: int,
    motion: Array,
    middle: Array | None,
    result: Array,
) -> int:
    """Compute whole blocks of samples; see `blocks.EVALUATE`. All arrays are C-contiguous."""
    status: int = _BLOCKS(address)(
        integers.ctypes.data,
        constants.ctypes.data,
        scratch.ctypes.data,
        blocks,
        motion.ctypes.data,
        None if middle is None else middle.ctypes.data,
        result.ctypes.data,
    )
    return status


def single_arguments(
    address: int, integers: NDArray[np.int64], constants: Array, scratch: Array
) -> NDArray[np.int64]:
    """Addresses that calls in `numba_call` need besides arrays; what is there must stay alive.

    Returns
    -------
    ndarray of int64, shape (4,)
    """
    pointers = (array.ctypes.data for array in (integers, constants, scratch))
    return np.array([address, *pointers], dtype=np.int64)


def refuses(motion: Any, *results: Any) -> bool:
    """Whether calls in `numba_call` raise an error since they do not take what they are given.

    Asking costs as much as such a call: it is made first, and this is for what it raises.
    """
    return not all(
        type(array) is np.ndarray
        and array.dtype == np.float64
        and array.dtype.isnative
        and array.flags.c_contiguous
        and array.flags.aligned
        and (array is motion or array.flags.writeable)
        for array in (motion, *results)
    )


def aligned(count: int) -> Array:
    """Array of zeros at the start of a cache line."""
    line = 64
    room = np.zeros(count + line // 8)
    start = -room.ctypes.data % line // 8
    return room[start : start + count]
