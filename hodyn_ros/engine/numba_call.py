"""A call of machine code that Numba compiles: a fraction of a microsecond from Python."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
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


def _single(arguments: int, motion: Array, effort: Array) -> int:
    source, target = np.int64(motion.ctypes.data), np.int64(effort.ctypes.data)
    status: int = evaluate(arguments, source, np.int64(0), target)  # type: ignore[call-arg]
    return status


_SIGNATURE = types.int64(
    types.int64,
    types.Array(types.float64, 2, 'C', readonly=True),
    types.Array(types.float64, 2, 'C'),
)

try:
    single = numba.njit(_SIGNATURE, cache=True)(_single)
except RuntimeError:  # there is no place for a cache
    single = numba.njit(_SIGNATURE)(_single)
