"""Poses along motions: a frame that moves is a jet, its pose with the time derivatives.

Twists, Jacobians and what is fixed to bodies follow from it by formulas for one moment, in every
expression and of any order, with products of jets (`hodyn_ros.lie.Jet`). The entries are arrays
with the samples, and the bodies if there are several, in front.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import matmul
from typing import Any

import numpy as np

from hodyn_ros.lie import Jet, jets, so3
from hodyn_ros.model.mechanism import BASE, Mechanism
from hodyn_ros.typing import Array

# Numbers in the largest array for all samples that are computed together.
_NUMBERS_IN_BLOCK = 2**18


def poses_in_parents(model: Mechanism, q: Jet) -> Jet:
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
    matrices = model.kept(_joint_matrices).reshape(-1, 4, 16)
    poses = _joint_functions(q) @ matrices
    return Jet.along(poses.reshape(*poses.shape[:-1], 4, 4).swapaxes(-1, -2), 2)


def poses_in_base(model: Mechanism, q: Jet) -> Jet:
    """Poses of all bodies in the base, as `poses_in_parents`.

    Source: local product of exponentials, Kumar and Mueller 2021, section II-A: C_i = C_p(i) B_i
    exp(X_i q_i).
    """
    functions = _joint_functions(q)
    N, n, K, terms = functions.shape
    # Leibniz's rule as a matrix, one product for all orders: binomial(k, j) f^(k-j).
    rule, binomials = np.zeros((N, n, K, K, terms)), jets.binomials(K)
    for j in range(K):
        np.multiply(functions[:, :, : K - j], binomials[j:, j, None], out=rule[:, :, j:, j])
    matrices = model.kept(_joint_matrices).reshape(-1, 4 * terms, 4)
    # Transposed, with the derivatives along the axis behind that of the samples.
    poses, at_rest = np.empty((n, N, K, 4, 4)), np.zeros((1, K, 4, 4))
    at_rest[:, 0] = np.eye(4)
    for i, p in enumerate(model.parent):
        images = matrices[i] @ (at_rest if p == BASE else poses[p])
        images = images.reshape(len(images), K * terms, 16)
        of_body = rule[:, i].reshape(N, K, K * terms)
        np.matmul(of_body, images, out=poses[i].reshape(N, K, 16))
    return Jet(poses.transpose(2, 1, 0, 4, 3))


def twists_of(poses: Jet, expressed_in: str) -> Jet:
    """Twists of a frame that moves, with one derivative fewer than its poses have.

    Parameters
    ----------
    poses : Jet of ndarray, shape (..., 4, 4)
    expressed_in : {'body', 'spatial', 'hybrid'}
        As in `forward_kinematics`.

    Returns
    -------
    Jet of ndarray, shape (..., 6)
        (omega, v) [rad/s] and [m/s], and the derivatives of these coordinates.
    """
    R, r = rotations_and_origins(poses)
    if expressed_in == 'body':  # R^T dR/dt is the matrix of omega
        turn, v = transpose(R) @ R.rate(), matvec(transpose(R), r.rate())
    else:
        turn, v = R.rate() @ transpose(R), r.rate()
    omega = Jet(np.stack([x[..., 2, 1], x[..., 0, 2], x[..., 1, 0]], axis=-1) for x in turn)
    if expressed_in == 'spatial':
        v = v - cross(omega, r)
    return Jet(np.concatenate(halves, axis=-1) for halves in zip(omega, v))


def poses_along(pose: Array, twist: Array, expressed_in: str) -> Jet:
    """Jet of the pose of a frame, from its twist: the way back from `twists_of`.

    Parameters
    ----------
    pose : ndarray, shape (..., 4, 4)
    twist : ndarray, shape (..., K-1, 6)
        (omega, v) with the derivatives of these coordinates.
    expressed_in : {'body', 'spatial', 'hybrid'}

    Returns
    -------
    Jet of ndarray, shape (..., 4, 4)
        K entries.
    """
    matrices = np.zeros((*twist.shape[:-1], 4, 4))
    matrices[..., :3, :3] = so3.hat(twist[..., :3])
    matrices[..., :3, 3] = twist[..., 3:]
    V, poses = Jet.along(matrices, -3), [pose]
    # A hybrid twist is a spatial one of the frame moved to the origin.
    at_origin = np.where(np.arange(4) < 3, 1.0, np.eye(4)[3][:, None])
    for k in range(len(V)):
        if expressed_in == 'body':
            poses.append(jets.leibniz(poses, V, k, matmul))
        elif expressed_in == 'spatial':
            poses.append(jets.leibniz(V, poses, k, matmul))
        else:
            poses.append(jets.leibniz(V, [x * at_origin for x in poses], k, matmul))
    return Jet(poses)


def rotations_and_origins(poses: Jet) -> tuple[Jet, Jet]:
    """Rotations (..., 3, 3) and origins (..., 3) of poses."""
    return part(poses, np.s_[..., :3, :3]), part(poses, np.s_[..., :3, 3])


def _joint_functions(q: Jet) -> Array:
    """Functions 1, q, sin q and 1 - cos q with K derivatives, shape (*shape of q, K, 4)."""
    sine, cosine = jets.sine_cosine(q)
    functions = np.stack([q.array(-1), sine.array(-1), (1.0 - cosine).array(-1)], axis=-1)
    one = np.zeros((*functions.shape[:-1], 1))
    one[..., 0, :] = 1.0
    return np.concatenate([one, functions], axis=-1)


def _joint_matrices(model: Mechanism) -> Array:
    """Constant matrices (n_bodies, 4, 4, 4) of B exp(X q), transposed, of `_joint_functions`.

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
    at_rest = np.broadcast_to(np.eye(4), turn.shape)
    exponential = np.stack([at_rest, advance, turn, turn @ turn], axis=1)
    return np.ascontiguousarray(np.swapaxes(model.B[:, None] @ exponential, -1, -2))


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
