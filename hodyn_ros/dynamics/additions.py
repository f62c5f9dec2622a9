"""What joints need beside the rigid bodies: friction and armature."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.model.friction import joint_friction
from hodyn_ros.model.robot import RobotModel

Array = NDArray[np.float64]


def add_friction_and_armature(model: RobotModel, coordinates: Array, efforts: Array) -> None:
    """Add what the joints need beside the rigid bodies: armature * q2d + friction(qd).

    Parameters
    ----------
    model : RobotModel
    coordinates : ndarray, shape (N, K, n_bodies)
        Joint motions of the bodies.
    efforts : ndarray, shape (N, K-2, n_bodies)
        Efforts of the bodies' joints and their time derivatives; changed in place.
    """
    if np.any(model.armature):
        efforts += model.armature * coordinates[:, 2:]
    add_friction(model, coordinates, efforts)


def add_friction(model: RobotModel, coordinates: Array, efforts: Array) -> None:
    """Add the friction of the joints.

    Parameters
    ----------
    model : RobotModel
    coordinates : ndarray, shape (N, K, n_bodies)
        Joint motions of the bodies.
    efforts : ndarray, shape (N, K-2, n_bodies)
        Efforts of the bodies' joints and their time derivatives; changed in place.
    """
    if model.friction:
        laws = {model.body_names.index(name): law for name, law in model.friction.items()}
        velocity = np.swapaxes(coordinates[:, 1:-1], -1, -2)
        efforts += np.swapaxes(joint_friction(laws, velocity), -1, -2)
