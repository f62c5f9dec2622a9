"""Calls of kernels from functions that Numba compiles, which robots without loops do without."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from hodyn_ros.engine.llvm_lanes import EVALUATE, INTEGER, INTEGERS


@intrinsic
def evaluate(
    _context: Any, _arguments: Any, _motion: Any, _middle: Any, _result: Any
) -> Any:
    """Call `llvm_lanes.EVALUATE` for one sample, with the table and addresses of the arrays."""

    def generate(
        _: Any, builder: ir.IRBuilder, __: Any, values: list[ir.Value]
    ) -> ir.Value:
        pointer, *arrays = values
        table = builder.inttoptr(pointer, INTEGERS)
        entries = [
            builder.load(builder.gep(table, [ir.Constant(INTEGER, k)])) for k in range(4)
        ]
        function = builder.inttoptr(entries[0], EVALUATE.as_pointer())
        robot = [
            builder.inttoptr(value, kind) for value, kind in zip(entries[1:], EVALUATE.args)
        ]
        data = [builder.inttoptr(value, EVALUATE.args[4]) for value in arrays]
        return builder.call(function, [*robot, ir.Constant(INTEGER, 1), *data])

    return types.int64(types.int64, types.int64, types.int64, types.int64), generate
