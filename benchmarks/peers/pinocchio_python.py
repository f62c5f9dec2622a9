"""Pinocchio called from Python, sample by sample, and what all contestants with it share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import Case
from benchmarks.timing import Contestant, NotInstalled

Array = NDArray[np.float64]

# Enough samples to make the loop over them cheap beside the calls.
SAMPLES = 200


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


def inverse_dynamics(case: Case) -> list[Contestant]:
    """Efforts alone."""
    pin = PinocchioModel(case)
    return [_calls('pin.rnea from Python', pinocchio().rnea, pin, pin.motion[:, 2])]


def forward_dynamics(case: Case, effort: Array) -> list[Contestant]:
    """Accelerations from the states of the motion and efforts, shape (N, orders, n)."""
    pin = PinocchioModel(case)
    given = pin.in_pinocchio_order(effort[:, 0])
    return [_calls('pin.aba from Python', pinocchio().aba, pin, given)]


def _calls(name: str, function: Any, pin: PinocchioModel, last: Array) -> Contestant:
    model, data, latest = pin.model, pin.data, []
    rows = [(sample[0], sample[1], row) for sample, row in zip(pin.motion, last[:SAMPLES])]

    def run() -> None:
        latest[:] = [function(model, data, *row) for row in rows]

    def result() -> Array:
        return pin.in_model_order(np.array(latest)[:, None])

    return Contestant(name, 0, len(rows), run, result)
