"""Pinocchio as a measure for `hodyn bench`, where it is installed."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.model.robot import RobotModel
from hodyn_ros.model.urdf_writer import to_urdf

Array = NDArray[np.float64]


class Pinocchio:
    """The same robot in Pinocchio.

    Parameters
    ----------
    model : RobotModel
        Without friction and armature, which a URDF cannot hold.
    motion : ndarray, shape (N, K, n)
        K >= 3.

    Raises
    ------
    ImportError
        If it is not installed.
    """

    def __init__(self, model: RobotModel, motion: Array) -> None:
        pin: Any = importlib.import_module('pinocchio')
        self.version: str = pin.__version__
        self._rnea = pin.rnea
        self._model = pin.buildModelFromXML(to_urdf(model))
        self._model.gravity.linear = np.array(model.gravity)
        self._data = self._model.createData()
        reference = self._model
        self._selection = np.zeros((reference.nv, model.n_joints))
        q = np.tile(pin.neutral(reference), (len(motion), 1))
        for b, name in enumerate(model.body_names):
            joint = reference.joints[reference.getJointId(name)]
            j, factor = model.coordinate[b], model.multiplier[b]
            position = factor * motion[:, 0, j] + model.offset[b]
            if joint.nq == 2:  # a continuous joint is a point on a circle
                q[:, joint.idx_q] = np.cos(position)
                q[:, joint.idx_q + 1] = np.sin(position)
            else:
                q[:, joint.idx_q] = position
            self._selection[joint.idx_v, j] = factor
        self._samples = [
            (q[i], self._selection @ sample[1], self._selection @ sample[2])
            for i, sample in enumerate(motion)
        ]

    def effort(self) -> Array:
        """Efforts of all samples, shape (N, n)."""
        model, data = self._model, self._data
        return np.array([self._rnea(model, data, *sample) for sample in self._samples]) @ (
            self._selection
        )

    def one_call(self) -> Callable[[], object]:
        """Its recursive Newton-Euler algorithm, called from Python with one sample."""
        rnea, model, data, (q, v, a) = self._rnea, self._model, self._data, self._samples[0]
        return lambda: rnea(model, data, q, v, a)
