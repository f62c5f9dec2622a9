"""Programs of robots by NumPy, operation by operation: slow, but of any length, not compiled.

What a robot is too large for as compiled code, or an order too high, comes from here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from hodyn_ros.checks import Array
from hodyn_ros.engine.program import SINGULAR, RobotProgram, StraightLineProgram

if TYPE_CHECKING:
    from hodyn_ros.model.robot import RobotModel

# Samples whose intermediate values are kept together.
BLOCK = 256


def interpret(
    model: RobotModel,
    robot: RobotProgram,
    motion: Array,
    middle: Array | None,
    result: Array,
) -> bool:
    """Samples computed as `kernels.Kernel.evaluate` does, operation by operation.

    Parameters
    ----------
    model : RobotModel
    robot : RobotProgram
    motion : ndarray, shape (N, K, n)
    middle : ndarray, shape (N, ...), or None
        Read, or written where the program says so.
    result : ndarray, shape (N, ...)
        Written; contiguous.

    Returns
    -------
    bool
        Whether motion, middle and result are all finite.
    """
    flat = result.reshape(len(motion), robot.result.size)
    with np.errstate(all='ignore'):
        for start in range(0, len(motion), BLOCK):
            part = slice(start, start + BLOCK)
            given = None if middle is None else middle[part]
            _interpret(model, robot, motion[part], given, flat[part])
    arrays = (motion, result) if middle is None else (motion, middle, result)
    return all(bool(np.isfinite(array).all()) for array in arrays)


def _interpret(
    model: RobotModel,
    robot: RobotProgram,
    motion: Array,
    middle: Array | None,
    result: Array,
) -> None:
    """One block of samples; the result has shape (N, size)."""
    bodies = list(robot.bodies)
    # Rounded as `kinematics.joints.body_coordinates` rounds it.
    angle = motion[:, 0, model.coordinate[bodies]] * model.multiplier[bodies]
    angle = angle + model.offset[bodies]
    arrays = {'motion': motion.reshape(len(motion), -1).T, robot.result.array: result.T}
    arrays.update(sine=np.sin(angle).T, cosine=np.cos(angle).T)
    for array, count in (('step', robot.n_steps), ('velocity', robot.n_velocities)):
        arrays[array] = np.empty((count, len(motion)))
    if middle is not None:
        arrays[robot.middle.array] = middle.reshape(len(motion), -1).T
    run(robot.arguments, arrays)
    arrays['shape'] = np.tanh(arrays['step'])
    decay = np.exp(-2.0 * np.abs(arrays['step']))
    arrays['slope'] = 4.0 * decay / (1.0 + decay) ** 2
    arrays['direction'] = np.sign(arrays['velocity'])
    run(robot.program, arrays)


def run(program: StraightLineProgram, arrays: Mapping[str, Array]) -> None:
    """Outputs of a program, written into arrays.

    Parameters
    ----------
    program : StraightLineProgram
    arrays : mapping of str to ndarray, shape (elements, N)
        One row for each element. Those that the program writes must be there.
    """
    uses = Counter(output.step for output in program.outputs)
    for kind, a, b in program.operations:
        if kind not in ('input', 'constant'):
            uses.update(operand for operand in (a, b) if operand is not None)
    values: list[Array | float | None] = []

    def take(step: int) -> Array | float:
        value = values[step]
        assert value is not None
        uses[step] -= 1
        if not uses[step]:
            values[step] = None  # nobody needs it any more
        return value

    for kind, a, b in program.operations:
        if kind == 'input':
            values.append(arrays[a][b])
        elif kind == 'constant':
            values.append(a)
        elif kind == 'negate':
            values.append(-take(a))
        else:
            x, y = take(a), take(b)
            if kind == 'add':
                values.append(x + y)
            elif kind == 'subtract':
                values.append(x - y)
            elif kind == 'multiply':
                values.append(x * y)
            else:
                values.append(np.where(x > SINGULAR * y, np.divide(1.0, x), np.nan))
    for array, index, step in program.outputs:
        arrays[array][index] = take(step)
