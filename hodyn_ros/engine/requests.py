"""What the engine is asked for: a quantity of a robot along a motion, and the arrays it takes.

The table of the quantities' programs is `engine.quantities`, imported when the first is recorded.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from hodyn_ros.engine.program import (
    CORIOLIS_MATRIX,
    CORIOLIS_MATRIX_OF_20,
    ENERGIES,
    FLOATING,
    FORWARD,
    KINETIC_ENERGY,
    MASS_MATRIX,
    MOVING,
    PARTIALS,
    POTENTIAL_ENERGY,
    REGRESSOR,
    WEIGHT,
    Attachment,
)
from hodyn_ros.model.mechanism import Mechanism

if TYPE_CHECKING:
    from hodyn_ros.engine.kernels import Kernel

EFFORTS, LINK, JACOBIAN = 'efforts', 'motion of a link', 'Jacobian'
CLOSING, COMPLETING = 'step that closes loops', 'motion of dependent joints'
VELOCITIES = 'motion of dependent joints and velocities by those of independent ones'
"""Quantities beside those of `program`; the last three are of models with closed loops."""

COMPILED_ROBOT, COMPILED_TREE = 'compiled_robot', 'compiled_tree'
"""Forms of a kernel: machine code with the robot's constants folded in, and machine code that
loops over the bodies of any robot."""

TERMS = (MASS_MATRIX, CORIOLIS_MATRIX, CORIOLIS_MATRIX_OF_20, WEIGHT, *ENERGIES)

QUICK = (EFFORTS, FORWARD, REGRESSOR, PARTIALS, *TERMS)
"""Quantities that `engine.quick` finds by their names alone."""


class KernelRequest(NamedTuple):
    """A quantity, and what its code depends on; values of motions and wrenches are data.

    Attributes
    ----------
    quantity : str
        `EFFORTS`, `LINK`, `JACOBIAN`, `CLOSING`, `COMPLETING`, or a name of `program`.
    K : int
        Number of derivatives of the joint positions that take part, the zeroth included: K - 2 of
        efforts, K - 1 of twists.
    wrenches : tuple of Attachment
    link, expressed_in : str
        Of `LINK` and `JACOBIAN`.
    prescribed : tuple of int
        Joints whose motion is given to `FORWARD`, not their efforts.
    form : str or None
        `COMPILED_ROBOT`, `COMPILED_TREE`; None: the one that suits the robot.
    single : bool
        Whether numbers are of float32, and computed in it; of `EFFORTS`.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.engine import KernelRequest
    >>> KernelRequest('efforts', K=5).shape(RobotModel.from_urdf('two_link'))
    (3, 2)
    """

    quantity: str
    K: int
    wrenches: tuple[Attachment, ...] = ()
    link: str = ''
    expressed_in: str = ''
    prescribed: tuple[int, ...] = ()
    form: str | None = None
    single: bool = False

    def shape(self, model: Mechanism) -> tuple[int, ...]:
        """Shape of the result of one sample; derivatives come first."""
        K, n = self.K, model.n_joints
        shapes: dict[str, tuple[int, ...]] = {
            LINK: (K - 1, 6),
            JACOBIAN: (K, 6, n),
            MASS_MATRIX: (K, n, n),
            CORIOLIS_MATRIX: (K - 1, n, n),
            CORIOLIS_MATRIX_OF_20: (K - 1, n, n),
            WEIGHT: (K, n),
            KINETIC_ENERGY: (K - 1,),
            POTENTIAL_ENERGY: (K,),
            REGRESSOR: (K - 2, n, 10 * model.n_bodies),
            PARTIALS: (K - 2, n, K, n),
            FLOATING: (K - 2, 6 + n),
            MOVING: (K - 2, 6 + n),
        }
        return shapes.get(self.quantity, (K - 2, n))

    def arrays(self, model: Mechanism) -> list[tuple[str, tuple[int, ...]]]:
        """Arrays of `llvm_lanes.EVALUATE` as a quick call takes them, and shapes of one sample."""
        K, n, many = self.K, model.n_joints, len(self.wrenches)
        result = 'result', self.shape(model)
        if self.quantity == FORWARD:
            return [('middle', (K - 2, n)), ('motion', (2, n)), result]
        motion = 'motion', (K, n)
        if self.link:
            return [motion, ('middle', (4, 4)), result]
        if many:
            wrench = K - 2, 6
            return [motion, ('middle', (many, *wrench) if many > 1 else wrench), result]
        return [motion, result]

    def quick_names(self, model: Mechanism, kernel: Kernel) -> list[Any]:
        """Names under which `engine.quick` finds its kernel; none if it takes more to call it."""
        of_loops = model.closure is not None and self.quantity != EFFORTS
        if of_loops or self.form or self.single or self.prescribed:
            return []
        if self.link:
            links = [self.link, None] if self.link == model.tip_link else [self.link]
            return [(self.quantity, link, self.expressed_in) for link in links]
        if not kernel.friction:
            return []
        if self.wrenches:
            of_links = self.quantity == EFFORTS and kernel.name == COMPILED_ROBOT
            return [(*chain(*self.wrenches),)] if of_links else []
        return [self.quantity] if self.quantity in QUICK else []
