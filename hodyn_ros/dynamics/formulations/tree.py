"""Poses and inertias of the bodies of a tree, and products of jets, for all formulations.

Quantities are jets (`hodyn_ros.lie.Jet`): entry k is the k-th time derivative, an array with the
samples and the bodies in front.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from hodyn_ros.lie import Jet, jets, so3
from hodyn_ros.model.mechanism import BASE
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.typing import Array

# Numbers in the largest array for all samples that are computed together.
_NUMBERS_IN_BLOCK = 2**18


def poses_in_parents(model: RobotModel, q: Jet) -> Jet:
    """Poses of all bodies in their parents, B exp(X q).

    Parameters
    ----------
    model : RobotModel
    q : Jet of ndarray, shape (N, n_bodies)
        Positions of the bodies' joints [rad] or [m].

    Returns
    -------
    Jet of ndarray, shape (N, n_bodies, 4, 4)
    """
    at_zero, turn, square, advance = model.kept(_joint_matrices)
    q, sine, cosine = (part(x, np.s_[..., None, None]) for x in (q, *jets.sine_cosine(q)))
    return at_zero + q * advance + sine * turn + (1.0 - cosine) * square


def poses_in_base(model: RobotModel, q: Jet) -> Jet:
    """Poses of all bodies in the base, as `poses_in_parents`.

    Source: local product of exponentials, Kumar and Mueller 2021, section II-A.
    """
    relative = poses_in_parents(model, q)
    poses: list[Jet] = []
    for i, p in enumerate(model.parent):
        pose = part(relative, np.s_[:, i])
        poses.append(pose if p == BASE else poses[p] @ pose)
    return stacked(poses)


def rotations_and_origins(poses: Jet) -> tuple[Jet, Jet]:
    """Rotations (..., 3, 3) and origins (..., 3) of poses."""
    return part(poses, np.s_[..., :3, :3]), part(poses, np.s_[..., :3, 3])


def _joint_matrices(model: RobotModel) -> tuple[Array, Array, Array, Array]:
    """Constant matrices of B exp(X q): those of 1, sin q, 1 - cos q and q.

    With the axis e, a point x on it and the pitch h of a joint screw, exp(X q) has the rotation
    R = I + sin q e~ + (1 - cos q) e~^2 and the translation (I - R) x + h q e; a prismatic joint
    translates by q e. Source: Lynch and Park, Modern Robotics, 3.3.3.
    """
    e, v = model.X[:, :3], model.X[:, 3:]
    turn, advance = np.zeros((2, model.n_bodies, 4, 4))
    turn[:, :3, :3] = so3.hat(e)
    turn[:, :3, 3] = -so3.cross(e, so3.cross(e, v))
    turns = (e * e).sum(axis=1, keepdims=True) > 0.5  # a unit axis or none
    advance[:, :3, 3] = np.where(turns, (e * v).sum(axis=1, keepdims=True) * e, v)
    return model.B, model.B @ turn, model.B @ turn @ turn, model.B @ advance


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


def blocks(N: int, numbers: int) -> Iterator[slice]:
    """Slices of N samples, at least one, whose arrays stay in the cache.

    Parameters
    ----------
    N : int
    numbers : int
        Numbers in the largest array of one sample.
    """
    step = max(1, _NUMBERS_IN_BLOCK // numbers)
    for start in range(0, max(N, 1), step):
        yield slice(start, start + step)


# --- Jets of arrays -----------------------------------------------------------------------------


def part(jet: Jet, index: Any) -> Jet:
    """Parts of all entries, by an index of NumPy."""
    return Jet(x[index] for x in jet)


def stacked(bodies: Iterable[Jet]) -> Jet:
    """One jet from those of the bodies, which become the second axis."""
    return Jet(np.stack(x, axis=1) for x in zip(*bodies))


def transpose(jet: Jet) -> Jet:
    """Transposed matrices (..., m, n)."""
    return Jet(np.swapaxes(x, -1, -2) for x in jet)


def cross(a: Jet | Array, b: Jet | Array) -> Jet:
    """Cross products of vectors (..., 3)."""
    return jets.product(a, b, so3.cross)


def matvec(matrices: Jet | Array, vectors: Jet | Array) -> Jet:
    """Products of matrices (..., m, n) and vectors (..., n)."""
    return jets.product(matrices, vectors, so3.matvec)
