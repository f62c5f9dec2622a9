"""What kernels compute besides efforts: the motion of a link, terms of the equations of motion.

There are only kernels with the constants of a robot folded in. Code of some thousand operations is
slower than it could be, as it does not fit the processor's instruction cache, but still a thousand
times faster than NumPy; longer code takes too long to compile, and is left to NumPy.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.engine.engine import engine_of
from hodyn_ros.engine.frames import frames, frames_of
from hodyn_ros.engine.kinematics_program import bodies_to, link_program
from hodyn_ros.engine.matrix_program import (
    coriolis_matrix_program,
    mass_matrix_program,
    weight_program,
)
from hodyn_ros.engine.robot_program import NO_ARRAY, Part, RobotProgram
from hodyn_ros.engine.straight_line import StraightLine
from hodyn_ros.model.robot import RobotModel

Array = NDArray[np.float64]

MASS_MATRIX, CORIOLIS_MATRIX, CORIOLIS_MATRIX_OF_20, WEIGHT = (
    'mass matrix', 'Coriolis matrix', 'Coriolis matrix of eq. (20)', 'weight'
)  # fmt: skip


class LinkMotion(NamedTuple):
    """Pose of a link that moves, into the middle array, and derivatives of its twist.

    Attributes
    ----------
    link : str
    expressed_in : {'body', 'spatial', 'hybrid'}
    K : int
        Number of derivatives in the motion, the zeroth included.
    """

    link: str
    expressed_in: str
    K: int

    def program(self, model: RobotModel) -> RobotProgram:
        """Program of a robot."""
        return RobotProgram(
            link_program(model, frames_of(model), self.link, self.expressed_in, self.K),
            bodies_to(model, model.link(self.link).body),
            self.K,
            Part('pose', 16, True),
            Part('twist', 6 * (self.K - 1), True),
        )


class Term(NamedTuple):
    """A term of the equations of motion and its derivatives.

    Attributes
    ----------
    name : str
        One of the names above.
    K : int
        Number of derivatives in the motion, the zeroth included.
    """

    name: str
    K: int

    def program(self, model: RobotModel) -> RobotProgram:
        """Program of a robot."""
        n, orders = model.n_joints, self.K
        result = Part('matrix', orders * n * n, True)
        if self.name == MASS_MATRIX:
            program = mass_matrix_program(model, frames_of(model), orders)
        elif self.name == WEIGHT:
            program = weight_program(model, frames_of(model), orders)
            result = Part('effort', orders * n, True)
        else:
            orders -= 1
            # Masses stay with their bodies, on which this matrix depends.
            exact = frames(model, regroup=False)
            skew_symmetric = self.name == CORIOLIS_MATRIX
            program = coriolis_matrix_program(model, exact, orders, skew_symmetric)
            result = Part('matrix', orders * n * n, True)
        return RobotProgram(program, range(model.n_bodies), self.K, NO_ARRAY, result)


def compute(
    model: RobotModel,
    wanted: LinkMotion | Term,
    motion: Array,
    middle: Array | None,
    result: Array,
    name: tuple[Any, ...] = (),
) -> bool:
    """Compute a batch if there is a kernel for it, see `Engine.kernel`.

    Parameters
    ----------
    model : RobotModel
    wanted : LinkMotion or Term
    motion : ndarray, shape (N, K, n), C-contiguous
    middle : ndarray, C-contiguous, or None
    result : ndarray, C-contiguous
    name : tuple
        With the shape (K, n) behind it, under which `model.derived` is to hold from now on what a
        call with a single sample needs: shape of the result, compiled call and its first argument.

    Returns
    -------
    bool
        Whether the results are there, and all numbers are finite. If not, NumPy knows better.
    """
    if not model.n_bodies:
        return False
    kernel = engine_of(model).kernel_of(wanted, len(motion))
    if kernel is None:
        return False
    if not isinstance(kernel, StraightLine):
        from hodyn_ros.engine.numba_call import single_call

        written = (result,) if middle is None else (middle, result)
        single = single_call(*(array.ndim - 1 for array in written))
        table = int(kernel.single_table.ctypes.data)
        model.derived[(*name, motion.shape[1:])] = (result.shape[1:], single, table)
    # Overflow shows in the answer; it needs no warning on the way.
    with np.errstate(over='ignore', invalid='ignore'):
        return kernel.evaluate(motion, middle, result)
