"""Calls like those of `numba_call` for results that have other shapes than efforts."""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np
from numba import types
from numpy.typing import NDArray

from hodyn_ros.engine.numba_call import evaluate

Array = NDArray[np.float64]

_GIVEN = types.Array(types.float64, 2, 'C', readonly=True)


def _matrices(arguments: int, motion: Array, result: Array) -> int:
    source, target = np.int64(motion.ctypes.data), np.int64(result.ctypes.data)
    status: int = evaluate(arguments, source, np.int64(0), target)  # type: ignore[call-arg]
    return status


def _pose_and_twist(arguments: int, motion: Array, pose: Array, twist: Array) -> int:
    source, first = np.int64(motion.ctypes.data), np.int64(pose.ctypes.data)
    second = np.int64(twist.ctypes.data)
    status: int = evaluate(arguments, source, first, second)  # type: ignore[call-arg]
    return status


def _compiled(function: Callable[..., int], *dimensions: int) -> Callable[..., int]:
    written = [types.Array(types.float64, count, 'C') for count in dimensions]
    signature = types.int64(types.int64, _GIVEN, *written)
    try:
        compiled: Callable[..., int] = numba.njit(signature, cache=True)(function)
    except RuntimeError:  # there is no place for a cache
        compiled = numba.njit(signature)(function)
    return compiled


matrices = _compiled(_matrices, 3)
pose_and_twist = _compiled(_pose_and_twist, 2, 2)
