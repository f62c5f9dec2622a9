"""What the contestants with Pinocchio share: the model, and the order of its joints."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import Case
from benchmarks.timing import NotInstalled

Array = NDArray[np.float64]

# Finite differences of all orders with one step: rounding errors of eps / step^2 and truncation
# errors of step^2 meet near eps^(1/4).
STEP = 2e-4


def pinocchio() -> Any:
    """Import Pinocchio; raises NotInstalled."""
    try:
        import pinocchio
    except ImportError:
        raise NotInstalled('pin is not installed') from None
    return pinocchio


class PinocchioModel:
    """Pinocchio's model of a case, and motions and efforts in its order of joints.

    Attributes
    ----------
    model, data
        Those of Pinocchio.
    motion : ndarray, shape (N, 5, n)
        Of the case, in Pinocchio's order, C-contiguous.
    """

    def __init__(self, case: Case) -> None:
        self.model: Any = pinocchio().buildModelFromXML(case.urdf)
        self.data: Any = self.model.createData()
        self._order = [case.model.joint_names.index(name) for name in self.model.names[1:]]
        self.motion: Array = self.in_pinocchio_order(case.motion)

    def in_pinocchio_order(self, values: Array) -> Array:
        """Values of the joints of the case, shape (..., n), in Pinocchio's order."""
        return np.ascontiguousarray(values[..., self._order])

    def in_model_order(self, efforts: Array) -> Array:
        """Efforts of Pinocchio's joints, shape (..., n), in the order of the case."""
        result = np.empty_like(efforts)
        result[..., self._order] = efforts
        return result
