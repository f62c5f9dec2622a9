"""Efforts of samples by a kernel of the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.dynamics.additions import add_friction
from hodyn_ros.dynamics.samples import BLOCK, Compute
from hodyn_ros.dynamics.wrenches import Wrench, wrenches_on_bodies
from hodyn_ros.engine.engine import COMPILED_TREE
from hodyn_ros.engine.frames import frames_of
from hodyn_ros.engine.straight_line import StraightLine
from hodyn_ros.kinematics.joints import body_coordinates, independent_efforts
from hodyn_ros.lie import se3
from hodyn_ros.model.robot import BASE, RobotModel

if TYPE_CHECKING:
    from hodyn_ros.engine.kernels import Kernel

Array = NDArray[np.float64]

# Samples whose arrays are converted together, if they have to be.
COMPILED_BLOCK = 2**16


def compiled_efforts(
    model: RobotModel, kernel: Kernel | StraightLine, num_threads: int
) -> Compute:
    """Return the computation of samples by a kernel, with friction added.

    Parameters
    ----------
    model : RobotModel
    kernel : Kernel or StraightLine
    num_threads : int

    Returns
    -------
    callable
    """

    def compute(
        motion: Array, wrenches: Sequence[tuple[Wrench, Array]], efforts: Array
    ) -> bool:
        loads = None
        if kernel.wrench_size:
            moving = [pair for pair in wrenches if model.link(pair[0].link).body != BASE]
            pack = _on_bodies if kernel.name == COMPILED_TREE else _given
            loads = pack(model, motion, moving)
        finite = kernel.evaluate(motion, loads, efforts, num_threads)
        if finite and model.friction:
            for start in range(0, len(motion), BLOCK):
                part = slice(start, start + BLOCK)
                coordinates = body_coordinates(model, motion[part])
                friction = np.zeros((len(coordinates), coordinates.shape[1] - 2, model.n_bodies))
                add_friction(model, coordinates, friction)
                efforts[part] += independent_efforts(model, friction)
            finite = bool(np.all(np.isfinite(efforts)))
        return finite

    return compute


def _given(model: RobotModel, motion: Array, wrenches: Sequence[tuple[Wrench, Array]]) -> Array:
    """Wrenches side by side as they are given, on the environment."""
    orders = motion.shape[1] - 2
    packed = np.empty((len(motion), len(wrenches), orders, 6))
    for w, (wrench, values) in enumerate(wrenches):
        sign = 1.0 if wrench.acting == 'on_environment' else -1.0
        np.multiply(values, sign, out=packed[:, w])
    return packed.reshape(len(motion), -1)


def _on_bodies(
    model: RobotModel, motion: Array, wrenches: Sequence[tuple[Wrench, Array]]
) -> Array:
    """Wrench on every body in the axes of its frame of the engine."""
    orders = motion.shape[1] - 2
    packed = np.zeros((len(motion), model.n_bodies, orders, 6))
    poses = frames_of(model).poses
    for start in range(0, len(motion), BLOCK):
        part = slice(start, start + BLOCK)
        block = [(wrench, values[part]) for wrench, values in wrenches]
        applied = wrenches_on_bodies(model, body_coordinates(model, motion[part]), block)
        for i, W in applied.items():
            packed[part, i] = W @ se3.Ad(poses[i])
    return packed.reshape(len(motion), -1)
