"""Equations of motion from Lagrange's equations, B q2d + C qd + g = Q - J^T h - friction.

Source: the notes on Lagrangian dynamics, whose equation numbers are quoted below. (The last
equation of the notes lacks the dot on B: it is dB/dt - 2 C that is skew symmetric.) Everything is
in base axes. The partial derivatives of B are exact: see `doc/formulations/closed_form.rst`. The
notes give the efforts alone; their time derivatives are those of the same equations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from hodyn_ros.dynamics.formulations.tree import centroidal_inertias, path_matrix
from hodyn_ros.kinematics.poses import (
    blocks,
    cross,
    matvec,
    part,
    poses_in_base,
    rotations_and_origins,
    transpose,
)
from hodyn_ros.lie import Jet
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.typing import Array


class Geometry(NamedTuple):
    """Poses, Jacobians and inertias of all links in base axes, as jets of arrays.

    Entry [:, j, i] of a Jacobian belongs to joint j and link i.
    """

    path: Array  # [j, i] is 1 if joint j moves link i, else 0, shape (n_bodies, n_bodies)
    R: Jet  # rotations of the links, (N, n_bodies, 3, 3)
    z: Jet  # joint axes, zero for prismatic joints, (N, n_bodies, 3)
    J: Jet  # of the origins of the link frames, (N, n_bodies, n_bodies, 3)
    J_P: Jet  # of centres of mass, likewise
    J_O: Jet  # of angular velocities
    momentum: Jet  # m_i J_P
    spin: Jet  # R_i I_i R_i^T J_O, with the inertia about the centre of mass


def geometry(model: RobotModel, q: Jet) -> Geometry:
    """Jacobians and inertias of all links, from the positions of the joints (N, n_bodies).

    Source: notes, eq. (35), with the velocity w_j that joint j gives the origin of its own frame
    added, which is the direction of a prismatic joint and the pitch of a helical one:
    J_Pj = w_j + z_j x (p_i - r_j), J_Oj = z_j.
    """
    path = path_matrix(model).T
    mass, centre, inertia = centroidal_inertias(model)
    R, r = rotations_and_origins(poses_in_base(model, q))
    z, w = matvec(R, model.X[:, :3]), matvec(R, model.X[:, 3:])
    z_j, w_j, r_j = (part(x, _JOINT) * path[..., None] for x in (z, w, r))

    def of_points(p: Jet) -> Jet:
        return w_j + cross(z_j, part(p, _LINK) - r_j)

    J_P = of_points(r + matvec(R, centre))
    spin = R @ (inertia @ transpose(R)) @ transpose(part(z, _LINK))
    spin = Jet(np.moveaxis(x, -1, 1) for x in spin) * path[..., None]
    return Geometry(path, R, z, of_points(r), J_P, z_j, J_P * mass[:, None], spin)


def inertia_matrix(links: Geometry) -> Jet:
    """Inertia matrix B(q) of all bodies' joints, symmetric, (N, n_bodies, n_bodies).

    Source: notes, eq. (37), B = sum_i m_i J_P^T J_P + J_O^T R_i I_i R_i^T J_O.
    """
    return _over_links(links.J_P, links.momentum) + _over_links(links.J_O, links.spin)


def inertia_gradient(links: Geometry) -> Jet:
    """Partial derivatives of the inertia matrix, exact: entry [:, i, j, k] is that of b_ij by q_k.

    Joint k turns everything that it moves about z_k. So for joints i, k that move a link

        dJ_Pi/dq_k = z_k x J_Pi if k moves joint i or is it, else z_i x J_Pk,

    and of the rotation there remains (z_i x z_k)^T I J_Oj where i lies before k.
    """
    n = len(links.path)
    not_before = links.path.T[..., None, None]
    before = (links.path - np.eye(n))[..., None, None]
    z_i = part(links.z, np.s_[:, :, None, None])
    turned = cross(z_i, part(links.J_P, _LINK))  # [:, i, k] = z_i x J_Pk
    dJ_P = Jet(np.swapaxes(x, 1, 2) * not_before + x * before for x in turned)
    dJ_O = cross(z_i, part(links.J_O, _LINK)) * before
    half = _over_links(dJ_P, links.momentum) + _over_links(dJ_O, links.spin)
    halves = (x.reshape(-1, n, n, n) for x in half)  # [:, i, k, j]
    return Jet(np.swapaxes(x, 2, 3) + np.moveaxis(x, 3, 1) for x in halves)


def christoffel_symbols(gradient: Jet) -> Jet:
    """Christoffel symbols c_ijk of the inertia matrix, symmetric in j and k.

    Source: notes, eq. (46), c_ijk = (db_ij/dq_k + db_ik/dq_j - db_jk/dq_i) / 2.
    """
    by_j, by_i = (Jet(np.moveaxis(x, -1, axis) for x in gradient) for axis in (-2, -3))
    return 0.5 * (gradient + by_j - by_i)


def coriolis_matrix(symbols: Jet, qd: Jet) -> Jet:
    """Coriolis matrix with which dB/dt - 2 C is skew symmetric, (N, n_bodies, n_bodies).

    Source: notes, eq. (45), C_ij = sum_k c_ijk qd_k. Unlike the matrices of `closed_form`, which
    have the same product with qd, it equals that of Pinocchio's `computeCoriolisMatrix`.
    """
    return matvec(symbols, part(qd, _LINK))


def gravity_term(links: Geometry, gravity: Array) -> Jet:
    """Efforts that hold the links, notes, eq. (42): g_i = -sum_j m_j g^T J_Pi of link j."""
    return Jet(-(x @ gravity).sum(axis=-1) for x in links.momentum)


def contact_term(links: Geometry, body: int, W: Jet) -> Jet:
    """Efforts J^T h of a wrench that a link exerts on the environment, notes, eq. (50).

    From (moment, force) in link axes about the link origin, (N, 6).
    """
    R = part(links.R, np.s_[:, body])
    moment, force = (matvec(R, part(W, np.s_[:, half])) for half in np.s_[:3, 3:])
    return matvec(part(links.J, np.s_[:, :, body]), force) + matvec(
        part(links.J_O, np.s_[:, :, body]), moment
    )


def body_efforts(
    model: RobotModel, coordinates: Array, applied: Mapping[int, Array]
) -> Array:
    """Efforts B q2d + C qd + g + J^T h and their derivatives, see `BodyEfforts`.

    Source: notes, eq. (50), without friction.
    """
    N, K, n_bodies = coordinates.shape
    results = np.empty((N, K - 2, n_bodies))
    for block in blocks(N, 3 * n_bodies**3):
        q = Jet.along(coordinates[block], 1)
        qd, q2d = q.rate(), q.rate().rate()
        links = geometry(model, q[: K - 2])
        C = coriolis_matrix(christoffel_symbols(inertia_gradient(links)), qd)
        efforts = gravity_term(links, model.gravity)
        efforts += matvec(inertia_matrix(links), q2d) + matvec(C, qd)
        for body, W in applied.items():
            efforts += contact_term(links, body, Jet.along(W[block], 1))
        results[block] = efforts.array(1)
    return results


_JOINT, _LINK = np.s_[:, :, None], np.s_[:, None]


def _over_links(left: Jet, right: Jet) -> Jet:
    """Sum over the links of products of vectors, of arrays (N, ..., links, 3)."""
    left, right = (
        Jet(x.reshape(len(x), -1, 3 * x.shape[-2]) for x in factor)
        for factor in (left, right)
    )
    return left @ transpose(right)
