"""Equations of motion from Lagrange's equations, B q2d + C qd + g = Q - J^T h - friction.

Source: the notes on Lagrangian dynamics, whose equation numbers are quoted below. (The last
equation of the notes lacks the dot on B: it is dB/dt - 2 C that is skew symmetric.) Everything is
in base axes. The partial derivatives of B are exact: see `doc/formulations/lagrange.rst`.

The notes give the efforts alone. Their time derivatives follow here from the same equations, in
which every quantity is a series: its first axis counts time derivatives, and products follow
Leibniz's rule. The matrices are those of all bodies' joints, and the cost grows with the fourth
power of their number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.lie import leibniz, so3
from hodyn_ros.model.robot import BASE, RobotModel
from hodyn_ros.typing import Array

# Numbers in the derivatives of the Jacobians for all samples that are computed together.
_NUMBERS_IN_BLOCK = 2**18


class Geometry(NamedTuple):
    """Poses, Jacobians and inertias of all links in base axes, with r-1 time derivatives."""

    moves: NDArray[np.bool_]  # [i, j]: joint j moves link i, shape (n_bodies, n_bodies)
    R: Array  # rotations of the links, shape (r, N, n_bodies, 3, 3)
    origin: Array  # origins of the link frames, shape (r, N, n_bodies, 3)
    z: Array  # joint axes, zero for prismatic joints, shape (r, N, n_bodies, 3)
    w: Array  # velocities that joints give the origins of their frames, (r, N, n_bodies, 3)
    J_P: Array  # of centres of mass: [..., i, j, :] of joint j, (r, N, n_bodies, n_bodies, 3)
    J_O: Array  # of the angular velocities, of the same shape
    momentum: Array  # m_i J_P, of the same shape
    spin: (
        Array  # R_i I_i R_i^T J_O, likewise, with inertia tensors about the centres of mass
    )


def geometry(model: RobotModel, coordinates: Array) -> Geometry:
    """Jacobians and inertias of all links and their time derivatives.

    Source: lecture notes on Lagrangian dynamics, eq. (35), with the velocity w_j that joint j
    gives the origin of its own frame added, which is the direction of a prismatic joint and
    the pitch of a helical one: J_Pj = w_j + z_j x (p_i - r_j), J_Oj = z_j.

    The coordinates are the positions of the bodies' joints and r-1 derivatives, (N, r, n_bodies).
    """
    n_bodies = coordinates.shape[-1]
    moves = np.eye(n_bodies, dtype=bool)
    for i, p in enumerate(model.parent):
        if p != BASE:
            moves[i] |= moves[p]
    poses = np.stack(_poses(model, coordinates), axis=2)
    R, origin = poses[..., :3, :3], poses[..., :3, 3]
    z, w = ((R @ part[..., None])[..., 0] for part in (model.X[:, :3], model.X[:, 3:]))

    # A body about the origin of its frame is M = [[Theta, m c~], [-m c~, m 1]].
    mass = model.M_body[:, 5, 5]
    first_moment = model.M_body[:, [2, 0, 1], [4, 5, 3]]
    # The centre of a body without mass may be anywhere.
    centre = first_moment / np.where(mass > 0.0, mass, 1.0)[:, None]
    inertia = model.M_body[:, :3, :3] + so3.hat(first_moment) @ so3.hat(centre)
    p = origin + (R @ centre[..., None])[..., 0]

    shown = moves[..., None]
    J_P = w[..., None, :, :] + _product(
        so3.cross, z[..., None, :, :], p[..., :, None, :] - origin[..., None, :, :]
    )
    J_P = np.where(shown, J_P, 0.0)
    J_O = np.where(shown, z[..., None, :, :], 0.0)
    # Rows of J_O are vectors, so matrices act from the right and transposed.
    in_link = _product(np.matmul, J_O, R) @ inertia
    spin = _product(np.matmul, in_link, np.swapaxes(R, -1, -2))
    return Geometry(moves, R, origin, z, w, J_P, J_O, mass[:, None, None] * J_P, spin)


def inertia_matrix(links: Geometry) -> Array:
    """Inertia matrix B(q) of all bodies' joints, symmetric, with its time derivatives.

    Source: lecture notes on Lagrangian dynamics, eq. (37), B = sum_i m_i J_P^T J_P + J_O^T R_i
    I_i R_i^T J_O.

    Shape (r, N, n_bodies, n_bodies); [kg m^2] between revolute joints, [kg] between others.
    """
    return _product(_summed_over_links, links.J_P, links.momentum) + _product(
        _summed_over_links, links.J_O, links.spin
    )


def inertia_gradient(links: Geometry) -> Array:
    """Partial derivatives of the inertia matrix, with their time derivatives.

    Exact. Entry [..., i, j, k] is the derivative of b_ij by q_k; shape
    (r, N, n_bodies, n_bodies, n_bodies).
    """
    z, J_P, J_O, moves = links.z, links.J_P, links.J_O, links.moves
    gradient = np.empty((*z.shape[:2], *moves.shape, len(moves)))
    for k in range(len(moves)):
        z_k = z[..., k, None, None, :]
        # Rows are links, columns joints; only links that joint k moves contribute.
        moved_link = moves[:, k, None, None]
        moved_joint = moves[None, :, k, None]
        dJ_P = np.where(
            moved_joint,
            _product(so3.cross, z_k, J_P),
            _product(so3.cross, z[..., None, :, :], J_P[..., k, None, :]),
        )
        dJ_P = np.where(moved_link & moves[..., None], dJ_P, 0.0)
        dJ_O = np.where(moved_link & moved_joint, _product(so3.cross, z_k, J_O), 0.0)
        # J_Oi^T (z~_k I - I z~_k) J_Oj is this product and its transpose.
        turned_spin = np.where(moved_link, _product(so3.cross, z_k, links.spin), 0.0)
        half = (
            _product(_summed_over_links, dJ_P, links.momentum)
            + _product(_summed_over_links, dJ_O, links.spin)
            + _product(_summed_over_links, J_O, turned_spin)
        )
        gradient[..., k] = half + np.swapaxes(half, -1, -2)
    return gradient


def christoffel_symbols(gradient: Array) -> Array:
    """Christoffel symbols c_ijk of the inertia matrix.

    Source: lecture notes on Lagrangian dynamics, eq. (46), c_ijk = (db_ij/dq_k + db_ik/dq_j -
    db_jk/dq_i) / 2.

    From the derivatives of b_ij by q_k, entry [..., i, j, k]; of the same shape, symmetric in j
    and k.
    """
    by_j = np.swapaxes(gradient, -1, -2)
    by_i = np.moveaxis(gradient, -1, -3)
    symbols: Array = 0.5 * (gradient + by_j - by_i)
    return symbols


def coriolis_matrix(symbols: Array, qd: Array) -> Array:
    """Coriolis matrix from Christoffel symbols, with which dB/dt - 2 C is skew symmetric.

    Source: lecture notes on Lagrangian dynamics, eq. (45), C_ij = sum_k c_ijk qd_k.

    Shape (r, N, n_bodies, n_bodies), from joint velocities of shape (r, N, n_bodies). Unlike the
    matrices of `closed_form`, which have the same product with qd, it equals that of Pinocchio's
    `computeCoriolisMatrix`.
    """
    return _product(np.matmul, symbols, qd[..., None, :, None])[..., 0]


def gravity_term(links: Geometry, gravity: Array) -> Array:
    """Efforts that hold the links against gravity, with their time derivatives.

    Source: lecture notes on Lagrangian dynamics, eq. (42), g_i = -sum_j m_j g^T J_Pi of link j.

    Shape (r, N, n_bodies), from the gravitational acceleration in base axes [m/s^2].
    """
    return np.asarray(-(links.momentum @ gravity).sum(axis=-2))


def contact_term(links: Geometry, body: int, W: Array) -> Array:
    """Efforts J^T h of a wrench that a link exerts on the environment, with time derivatives.

    Source: notes, the contact term of eq. (50). Shape (r, N, n_bodies), from (moment, force) in
    link axes about the link origin [N m], [N], and its componentwise derivatives, (r, N, 6).
    """
    # The Jacobians of the link origin, one row a joint.
    arm = links.origin[..., body, None, :] - links.origin
    J_P = links.w + _product(so3.cross, links.z, arm)
    R = links.R[..., body, :, :]
    moment, force = (
        _product(np.matmul, R, part[..., None]) for part in (W[..., :3], W[..., 3:])
    )
    efforts = _product(np.matmul, J_P, force) + _product(np.matmul, links.z, moment)
    return np.where(links.moves[body], efforts[..., 0], 0.0)


def body_efforts(
    model: RobotModel, coordinates: Array, applied: Mapping[int, Array]
) -> Array:
    """Efforts B q2d + C qd + g + J^T h and their derivatives, see `inverse.BodyEfforts`.

    Source: lecture notes on Lagrangian dynamics, eq. (50), without friction; derivatives by
    Leibniz's rule.
    """
    N, K, n_bodies = coordinates.shape
    results = np.empty((N, K - 2, n_bodies))
    for block in _blocks(N, K - 2, n_bodies):
        links = geometry(model, coordinates[block, :-2])
        qd, q2d = (np.moveaxis(coordinates[block, k:], 1, 0)[: K - 2] for k in (1, 2))
        C = coriolis_matrix(christoffel_symbols(inertia_gradient(links)), qd)
        efforts = gravity_term(links, model.gravity)
        efforts += _product(np.matmul, inertia_matrix(links), q2d[..., None])[..., 0]
        efforts += _product(np.matmul, C, qd[..., None])[..., 0]
        for body, W in applied.items():
            efforts += contact_term(links, body, np.moveaxis(W[block], 1, 0))
        results[block] = np.moveaxis(efforts, 0, 1)
    return results


def _poses(model: RobotModel, coordinates: Array) -> list[Array]:
    """Poses of all bodies in the base frame as series, each of shape (r, N, 4, 4).

    With the axis e, a point x on it and the pitch h of a joint screw, exp(X q) has the rotation
    R = I + sin q e~ + (1 - cos q) e~^2 and the translation (I - R) x + h q e; a prismatic joint
    translates by q e. Both are constant matrices times sin q, 1 - cos q and q.
    """
    series = np.moveaxis(coordinates, 1, -1)
    sine, cosine = leibniz.sin_cos(series)
    poses: list[Array] = []
    for i, p in enumerate(model.parent):
        e, v = model.X[i, :3], model.X[i, 3:]
        turns = e @ e > 0.5  # a unit axis or none
        by_sine, by_versine, by_q = np.zeros((3, 4, 4))
        by_q[:3, 3] = (e @ v) * e if turns else v
        by_sine[:3, :3] = so3.hat(e)
        by_sine[:3, 3] = -so3.hat(e) @ np.cross(e, v)
        by_versine[:3] = so3.hat(e) @ by_sine[:3]
        q_i, sine_i, versine_i = (
            np.moveaxis(s[:, i], -1, 0)[..., None, None] for s in (series, sine, -cosine)
        )
        relative = q_i * by_q + sine_i * by_sine + versine_i * by_versine
        relative[0] += np.eye(4) + by_versine
        relative = model.B[i] @ relative
        poses.append(relative if p == BASE else _product(np.matmul, poses[p], relative))
    return poses


def _product(operation: Callable[[Array, Array], Array], f: Array, g: Array) -> Array:
    """Series of a bilinear operation of two series, which are on the first axes."""
    table = leibniz.binomials(len(f))
    orders = [
        sum(table[m, j] * operation(f[j], g[m - j]) for j in range(m + 1))
        for m in range(len(f))
    ]
    return np.asarray(np.stack(orders))


def _summed_over_links(left: Array, right: Array) -> Array:
    """Sum over links i of left_i^T right_i for Jacobians of shape (N, links, joints, 3)."""
    N, links, joints, _ = left.shape
    # Links and components together are the axis that a matrix product sums over.
    first, second = (
        np.moveaxis(array, 2, 1).reshape(N, joints, 3 * links) for array in (left, right)
    )
    product: Array = first @ np.swapaxes(second, -1, -2)
    return product


def _blocks(N: int, orders: int, n_bodies: int) -> Iterator[slice]:
    """Slices of the samples."""
    step = max(1, _NUMBERS_IN_BLOCK // (3 * orders * n_bodies**2))
    for start in range(0, N, step):
        yield slice(start, start + step)
