"""Where the time of a batch goes: the kernel of the Panda with one part left out after the other.

    python -m benchmarks.parts

Results of such kernels are wrong; only their times are of use. `as many products` is a program of
independent fused products, as many as the kernel has arithmetic instructions, in registers only:
what the arithmetic units could do at best.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from unittest.mock import patch

import numpy as np
from llvmlite import ir

from benchmarks.report import grid
from hodyn_ros import RobotModel
from hodyn_ros.engine import functions, kernels, llvm, robot_program
from hodyn_ros.engine.program import Operation, Output, StraightLineProgram

SAMPLES, ROUNDS, CALLS = 8192, 40, 10
# The compiler fuses about so many of all sums and products, see the machine code.
FUSED = 0.67
ACCUMULATORS = 20


def _no_inspection(module: ir.Module, _: int) -> ir.Function:
    kind = ir.FunctionType(llvm.INTEGER, [llvm.DOUBLES, llvm.INTEGER])
    function = ir.Function(module, kind, 'inspection')
    function.linkage = 'internal'
    ir.IRBuilder(function.append_basic_block()).ret(ir.Constant(llvm.INTEGER, 0))
    return function


PARTS = {
    'sines and cosines': (functions.ArrayFunction, 'write', lambda *_: None),
    'check of all numbers': (llvm, '_inspection', _no_inspection),
    'transposition': (llvm, '_transpose', lambda *_, **__: None),
}


def products(count: int) -> StraightLineProgram:
    """Program of independent fused products."""
    operations = [Operation('input', 'motion', k) for k in range(ACCUMULATORS)]
    operations += [Operation('constant', 0.999, None), Operation('constant', 0.001, None)]
    latest = list(range(ACCUMULATORS))
    for k in range(count):
        place = k % ACCUMULATORS
        operations.append(Operation('multiply', latest[place], ACCUMULATORS))
        operations.append(Operation('add', len(operations) - 1, ACCUMULATORS + 1))
        latest[place] = len(operations) - 1
    outputs = (Output('effort', k, step) for k, step in enumerate(latest))
    return StraightLineProgram(tuple(operations), tuple(outputs))


def main() -> None:
    """Time the kernels in turns and print a table."""
    model = RobotModel.from_urdf('panda')
    robot = robot_program.effort_program(model, 2)
    width = kernels.vector_width()
    count = round(FUSED * robot.program.flops)
    without = {
        'whole': ((), robot.program),
        **{f'without {name}': ((name,), robot.program) for name in PARTS},
        'without the program': ((), StraightLineProgram((), ())),
        'the program alone': (tuple(PARTS), robot.program),
        f'as many products ({count}) alone': (tuple(PARTS), products(count)),
    }
    compiled = {name: _compiled(model, robot, width, *how) for name, how in without.items()}
    size = functions.robot_scratch(model, robot, width, width)
    motion = np.random.default_rng(0).standard_normal((SAMPLES, 5, 7))
    arrays = kernels.aligned(size), motion, np.empty((SAMPLES, 3, 7))
    scratch, source, target = (array.ctypes.data for array in arrays)
    times: dict[str, list[float]] = {name: [] for name in compiled}
    for _ in range(ROUNDS):
        for name, code in compiled.items():
            call = kernels._BLOCKS(code.address)
            start = time.process_time()
            for _ in range(CALLS):
                call(scratch, scratch, scratch, SAMPLES // width, source, None, target)
            times[name].append((time.process_time() - start) / CALLS / SAMPLES * 1e9)
    rows = [['', 'ns']] + [[name, f'{np.median(laps):.1f}'] for name, laps in times.items()]
    print(grid(rows))


def _compiled(
    model: RobotModel,
    robot: robot_program.RobotProgram,
    width: int,
    parts: Sequence[str],
    program: StraightLineProgram,
) -> kernels.LoadedCode:
    with ExitStack() as stack:
        for name in parts:
            owner, attribute, nothing = PARTS[name]
            stack.enter_context(patch.object(owner, attribute, nothing))
        changed = robot._replace(program=program)
        return kernels.LoadedCode(functions.robot_module(model, changed, width, width))


if __name__ == '__main__':
    main()
