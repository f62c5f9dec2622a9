"""What several formulations need of a tree: transforms, paths, inertias and gravity."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hodyn_ros.kinematics.poses import poses_in_parents, rotations_and_origins, transpose
from hodyn_ros.lie import Jet, so3
from hodyn_ros.model.mechanism import BASE
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.typing import Array


def transforms_to_bodies(model: RobotModel, q: Jet) -> Jet:
    """Matrices Ad_C^-1 that bring twists from the frames of the parents to those of the bodies.

    Parameters
    ----------
    model : RobotModel
    q : Jet of ndarray, shape (N, n_bodies)
        Positions of the bodies' joints [rad] or [m].

    Returns
    -------
    Jet of ndarray, shape (N, n_bodies + 1, 6, 6)
        The last body is the base, whose matrix is zero.
    """
    R, r = rotations_and_origins(poses_in_parents(model, q))
    turn = transpose(R)
    arm = turn @ r.map(so3.hat)
    matrices = np.zeros((len(q), len(q[0]), model.n_bodies + 1, 6, 6))
    for matrix, turn_k, arm_k in zip(matrices, turn, arm):
        matrix[:, :BASE, :3, :3] = matrix[:, :BASE, 3:, 3:] = turn_k
        matrix[:, :BASE, 3:, :3] = -arm_k
    return Jet(matrices)


def applied_wrenches(
    model: RobotModel, coordinates: Array, applied: Mapping[int, Array]
) -> Array:
    """Wrenches that all bodies exert, shape (K-2, N, n_bodies, 6), see `BodyEfforts`."""
    N, K, n_bodies = coordinates.shape
    wrenches = np.zeros((K - 2, N, n_bodies, 6))
    for i, values in applied.items():
        wrenches[:, :, i] = np.moveaxis(values, 1, 0)
    return wrenches


def path_matrix(model: RobotModel) -> Array:
    """Matrix (n_bodies, n_bodies) with ones where joint j (column) moves body i (row)."""
    path = np.eye(model.n_bodies)
    for i, p in enumerate(model.parent):
        if p != BASE:
            path[i] += path[p]
    return path


def centroidal_inertias(model: RobotModel) -> tuple[Array, Array, Array]:
    """Masses, centres of mass and inertia tensors of the bodies in their frames.

    Returns
    -------
    mass : ndarray, shape (n_bodies,)
        [kg]
    centre : ndarray, shape (n_bodies, 3)
        [m]; anywhere for a body without mass.
    inertia : ndarray, shape (n_bodies, 3, 3)
        About the centres of mass [kg m^2].
    """
    # A body about the origin of its frame is M = [[Theta, m c~], [-m c~, m 1]].
    mass = model.M_body[:, 5, 5]
    moment = model.M_body[:, [2, 0, 1], [4, 5, 3]]
    centre = moment / np.where(mass > 0.0, mass, 1.0)[:, None]
    return mass, centre, model.M_body[:, :3, :3] + so3.hat(moment) @ so3.hat(centre)


def gravity_screw(model: RobotModel) -> Array:
    """Acceleration G = (0, -g) of a base that stands for gravity, shape (6, 1) [m/s^2]."""
    return np.concatenate([np.zeros(3), -model.gravity])[:, None]
