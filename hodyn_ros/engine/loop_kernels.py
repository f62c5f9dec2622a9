"""Kernels of robots with closed loops: positions, and efforts of few samples, in one call each.

What `following` says is compiled once for all robots; it calls the programs of one.
"""

from __future__ import annotations

import inspect
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np

from hodyn_ros.engine import following
from hodyn_ros.engine.code_cache import LoadedCode
from hodyn_ros.engine.compiled_python import compiled_module
from hodyn_ros.engine.kernels import Kernel, MachineCode

if TYPE_CHECKING:
    from hodyn_ros.model.mechanism import Mechanism

_NAMES = ('predict', 'advance', 'begin', 'close_all', 'close_samples', 'closed_efforts')
_LINE = 8  # numbers of a cache line


def positions_kernel(model: Mechanism, closing: Kernel) -> Kernel:
    """Kernel of closed positions of all joints.

    Its motion are the positions of the independent joints alone, its middle array takes how far
    each was reached, see `following.close_all`.

    Parameters
    ----------
    model : Mechanism
        With closed loops.
    closing : Kernel
        Of `loop_program.closing_program`.
    """
    closure = model.closure
    assert closure is not None
    n, m, N = model.n_joints, len(closure.dependent), closure.tree.n_joints
    work = _whole_lines(max(code.size for code in closing.codes))
    lanes = closing.codes[1].lanes
    sizes = [n, m, N, lanes, work, n]
    tables = [*closing.program(0), *closing.program(1)]
    robot = [*sizes, *tables, *closure.independent, *closure.dependent]
    numbers = np.concatenate([closure.start, 1.0 / closure.unit])
    size = work + following.room_size(n, m, N, lanes)
    code = MachineCode(_code('close_samples'), size, 1)
    return Kernel([code, code], 'closing', 0, True, robot, numbers, [closing])


def efforts_kernel(model: Mechanism, K: int, positions: Kernel, dynamics: Kernel) -> Kernel:
    """Kernel of efforts of few samples of a robot with closed loops.

    Its status is not 0 where a position is near a singular one, either.

    Parameters
    ----------
    model : Mechanism
        With closed loops.
    K : int
        Number of derivatives of the motion.
    positions : Kernel
        Of `positions_kernel`.
    dynamics : Kernel
        Of `loop_program.closed_effort_program`, which keeps this one.
    """
    closure = model.closure
    assert closure is not None
    n, N = model.n_joints, closure.tree.n_joints
    work = _whole_lines(max(positions.codes[0].size, dynamics.codes[0].size))
    of_positions, numbers = positions.robot
    closing = of_positions.copy()
    closing[5] = K * n
    sizes = [K, dynamics.wrench_size, (K - 2) * n, work]
    robot = [*sizes, *dynamics.program(0), *closing]
    code = MachineCode(_code('closed_efforts'), work + _LINE + K * N, 1)
    name, loads = dynamics.name, dynamics.wrench_size
    return Kernel([code, code], name, loads, True, robot, numbers, [positions])


def _whole_lines(count: int) -> int:
    return -(-count // _LINE) * _LINE


@cache
def _code(name: str) -> LoadedCode:
    """Code of a function of `following` as `llvm_lanes.EVALUATE`."""
    names = _NAMES[: _NAMES.index(name) + 1]
    constants = {
        key: value
        for key, value in vars(following).items()
        if key.isupper() and isinstance(value, (int, float))
    }
    write = partial(compiled_module, inspect.getsource(following), names, constants)
    return LoadedCode((f'{name} {constants}', 0, 0), write)
