"""Calls of machine code that Numba compiles: a fraction of a microsecond from Python."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, register_jitable
from numpy.typing import NDArray

from hodyn_ros.engine.blocks import EVALUATE
from hodyn_ros.engine.llvm import INTEGER, INTEGERS

Array = NDArray[np.float64]


@intrinsic
def evaluate(_context: Any, _arguments: Any, _motion: Any, _middle: Any, _result: Any) -> Any:
    """Call `llvm.EVALUATE` for one sample, with the table and the addresses of the arrays."""

    def generate(_: Any, builder: ir.IRBuilder, __: Any, values: list[ir.Value]) -> ir.Value:
        pointer, *arrays = values
        table = builder.inttoptr(pointer, INTEGERS)
        entries = [builder.load(builder.gep(table, [ir.Constant(INTEGER, k)])) for k in range(4)]
        function = builder.inttoptr(entries[0], EVALUATE.as_pointer())
        robot = [
            builder.inttoptr(value, kind) for value, kind in zip(entries[1:], EVALUATE.args)
        ]
        data = [builder.inttoptr(value, EVALUATE.args[4]) for value in arrays]
        return builder.call(function, [*robot, ir.Constant(INTEGER, 1), *data])

    return types.int64(types.int64, types.int64, types.int64, types.int64), generate


@register_jitable
def _one_result(arguments: int, motion: Array, result: Array) -> int:
    read, written = 8 * motion.size, 8 * result.size
    source, target = np.int64(motion.ctypes.data), np.int64(result.ctypes.data)
    status = 1
    # Code that writes before it has read everything must not write where it reads.
    if source >= target + written or target >= source + read:
        status = evaluate(arguments, source, np.int64(0), target)  # type: ignore[call-arg]
    return status


def _efforts(arguments: int, motion: Array, result: Array) -> int:
    status = 1
    # To look at the shape here costs less than in Python.
    if result.shape[0] == motion.shape[0] - 2 and result.shape[1] == motion.shape[1]:
        status = _one_result(arguments, motion, result)
    return status


def _two_results(arguments: int, motion: Array, middle: Array, result: Array) -> int:
    source, first = np.int64(motion.ctypes.data), np.int64(middle.ctypes.data)
    second = np.int64(result.ctypes.data)
    status: int = evaluate(arguments, source, first, second)  # type: ignore[call-arg]
    return status


@cache
def single_call(*dimensions: int) -> Callable[..., int]:
    """Call for a single sample, whose results have these numbers of dimensions.

    It takes `Kernel.single_table`, the motion, of shape (K, n), and the results; that their shapes
    fit is the caller's business. Its answer is 0 if the results are there: all numbers are finite,
    and the only result does not overlap the motion. It raises an error for arrays that are not
    contiguous or not of float64, see `engine.refuses`.
    """
    return _compiled(_one_result if len(dimensions) == 1 else _two_results, *dimensions)


def _compiled(function: Callable[..., int], *dimensions: int) -> Callable[..., int]:
    given = types.Array(types.float64, 2, 'C', readonly=True)
    written = [types.Array(types.float64, count, 'C') for count in dimensions]
    signature = types.int64(types.int64, given, *written)
    try:
        compiled: Callable[..., int] = numba.njit(signature, cache=True)(function)
    except RuntimeError:  # there is no place for a cache
        compiled = numba.njit(signature)(function)
    return compiled


single = _compiled(_efforts, 2)
"""As `single_call`, for efforts; results of other shapes are left alone."""
