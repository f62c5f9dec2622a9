"""Recursive inverse dynamics of orders 0, 1 and 2 in hybrid (mixed) twists, written out.

A hybrid twist V = (omega, v) holds the angular velocity of a body and the velocity of the origin
of its frame, both in base link axes; momenta and wrenches are about this origin, too. Derivatives
are componentwise: the axes are at rest, the origin moves with the body. Mueller 2021 mentions this
representation without formulas; their derivation is on the page `doc/formulations/hybrid.rst`.

Symbols: X is the joint screw about the origin of its body, U the twist relative to the parent,
whose second half is rd, A(r) y = (0, y_omega x r), omega x acts on both halves of a screw, M is
the inertia turned into base axes, Pi = (L, p) its momentum, and D the derivative in axes that
turn with the body, D y = yd - omega x y, so that D^k Pi = M D^k V. The moment about an origin that
moves with v is Ld + v x p. The weight enters by a base that accelerates upwards, which adds to vd
alone: applied wrenches need no correction for it, unlike in the spatial form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from hodyn_ros.kinematics.joints import body_poses
from hodyn_ros.lie.so3 import cross, matvec
from hodyn_ros.model.robot import BASE, RobotModel
from hodyn_ros.typing import Array


def body_efforts(
    model: RobotModel, coordinates: Array, applied: Mapping[int, Array]
) -> Array:
    """Efforts and two time derivatives, see `inverse.BodyEfforts`; K <= 5."""
    kinematics = hybrid_kinematics(model, coordinates, base_acceleration=-model.gravity)
    W = inertia_wrenches(model, kinematics) + applied_wrenches(kinematics, applied)
    W, Wd, W2d = sum_towards_base(model, kinematics, W)
    X, Xd, X2d = kinematics.X, kinematics.Xd, kinematics.X2d
    Q = (X * W).sum(axis=-1)
    Qd = (X * Wd + Xd * W).sum(axis=-1)
    Q2d = (X * W2d + 2.0 * Xd * Wd + X2d * W).sum(axis=-1)
    return np.stack([Q, Qd, Q2d], axis=1)[:, : coordinates.shape[1] - 2]


# --- Kinematics, up to jounce ------------------------------------------------------------------


class HybridKinematics(NamedTuple):
    """Motion of all bodies in hybrid twists: base link axes, about the origin of each body."""

    C: Array  # poses of the bodies in the base link, shape (N, n_bodies, 4, 4)
    r: Array  # from the origin of the parent to that of the body [m], shape (N, n_bodies, 3)
    rd: Array
    r2d: Array
    X: Array  # joint screws about the origin of the body, shape (N, n_bodies, 6)
    Xd: Array
    X2d: Array
    X3d: Array
    V: Array  # twists (omega, v) [rad/s, m/s], shape (N, n_bodies, 6)
    Vd: Array
    V2d: Array
    V3d: Array


def hybrid_kinematics(
    model: RobotModel, coordinates: Array, base_acceleration: Array | None = None
) -> HybridKinematics:
    """Joint screws and twists of all bodies with three time derivatives.

    Of joint motions (N, K, n_bodies), 1 <= K <= 5; derivatives that are not given count as zero,
    so that only those up to V^(K-2), X^(K-1) and r^(K-1) are the ones of the motion. A base
    acceleration, shape (3,), adds to the linear part of Vd and to nothing else: minus the
    gravitational one makes the inertia forces include the weight.
    """
    N, K, n_bodies = coordinates.shape
    motion = np.zeros((N, 5, n_bodies))
    motion[:, :K] = coordinates
    base = np.zeros((4, 1, 6))
    if base_acceleration is not None:
        base[1, :, 3:] = base_acceleration

    C = np.stack(body_poses(model, motion[:, 0]), axis=1)
    distances = np.empty((3, N, n_bodies, 3))
    screws = np.empty((4, N, n_bodies, 6))
    twists = np.empty((4, N, n_bodies, 6))
    for i, p in enumerate(model.parent):
        _, qd, q2d, q3d, q4d = (motion[:, k, i, None] for k in range(5))
        Vp, Vp_d, Vp_2d, Vp_3d = base if p == BASE else twists[:, :, p]
        R, r = C[:, i, :3, :3], C[:, i, :3, 3]
        if p != BASE:
            r = r - C[:, p, :3, 3]
        X = np.concatenate([R @ model.X[i, :3], R @ model.X[i, 3:]], axis=-1)

        U = _lever(r, Vp) + X * qd
        V = Vp + U
        rd = U[:, 3:]
        Xd = turned(V, X)

        Ud = _lever(r, Vp_d) + _lever(rd, Vp) + X * q2d + Xd * qd
        Vd = Vp_d + Ud
        r2d = Ud[:, 3:]
        X2d = turned(Vd, X) + turned(V, Xd)

        U2d = _lever(r, Vp_2d) + 2.0 * _lever(rd, Vp_d) + _lever(r2d, Vp)
        U2d += X * q3d + 2.0 * Xd * q2d + X2d * qd
        V2d = Vp_2d + U2d
        r3d = U2d[:, 3:]
        X3d = turned(V2d, X) + 2.0 * turned(Vd, Xd) + turned(V, X2d)

        U3d = _lever(r, Vp_3d) + 3.0 * _lever(rd, Vp_2d) + 3.0 * _lever(r2d, Vp_d)
        U3d += _lever(r3d, Vp) + X * q4d + 3.0 * Xd * q3d + 3.0 * X2d * q2d + X3d * qd
        V3d = Vp_3d + U3d

        distances[:, :, i] = r, rd, r2d
        screws[:, :, i] = X, Xd, X2d, X3d
        twists[:, :, i] = V, Vd, V2d, V3d
    return HybridKinematics(C, *distances, *screws, *twists)


def turned(V: Array, y: Array) -> Array:
    """Product omega x y on both halves of a screw.

    Parameters
    ----------
    V : ndarray, shape (..., 6)
        Twist with the angular velocity omega.
    y : ndarray, shape (..., 6)
    """
    omega = V[..., :3]
    return np.concatenate([cross(omega, y[..., :3]), cross(omega, y[..., 3:])], axis=-1)


def _lever(r: Array, V: Array) -> Array:
    """A(r) V = (0, omega x r): what a distance r adds to a twist."""
    linear = cross(V[..., :3], r)
    return np.concatenate([np.zeros_like(linear), linear], axis=-1)


# --- Wrenches ------------------------------------------------------------------------------------


def inertia_wrenches(model: RobotModel, kinematics: HybridKinematics) -> Array:
    """Wrenches that make the bodies move as they do, with two time derivatives.

    Hybrid: base link axes, about the origin of each body; shape (3, N, n_bodies, 6).
    """
    V, Vd, V2d, V3d = kinematics.V, kinematics.Vd, kinematics.V2d, kinematics.V3d
    turn = np.zeros((*V.shape[:-1], 6, 6))
    turn[..., :3, :3] = turn[..., 3:, 3:] = kinematics.C[..., :3, :3]
    M = turn @ model.M_body @ np.swapaxes(turn, -1, -2)

    # omega x y and omega x (omega x y)
    wV, wVd = turned(V, V), turned(V, Vd)
    wwV = turned(V, wV)
    D_V = Vd - wV
    D2_V = V2d - 2.0 * wVd - turned(Vd, V) + wwV
    D3_V = V3d - 3.0 * turned(V, V2d) - 3.0 * (turned(Vd, Vd) - turned(V, wVd))
    D3_V += (
        turned(Vd, wV) - turned(V2d, V) + 2.0 * turned(V, turned(Vd, V)) - turned(V, wwV)
    )

    Pi = matvec(M, V)
    wPi = turned(V, Pi)
    wwPi = turned(V, wPi)
    Pi_d = matvec(M, D_V) + wPi
    wPi_d = turned(V, Pi_d)
    Pi_2d = matvec(M, D2_V) + 2.0 * wPi_d + turned(Vd, Pi) - wwPi
    Pi_3d = (
        matvec(M, D3_V)
        + 3.0 * turned(V, Pi_2d)
        + 3.0 * (turned(Vd, Pi_d) - turned(V, wPi_d))
    )
    Pi_3d += (
        turned(V2d, Pi)
        - turned(Vd, wPi)
        - 2.0 * turned(V, turned(Vd, Pi))
        + turned(V, wwPi)
    )

    v, vd, v2d = V[..., 3:], Vd[..., 3:], V2d[..., 3:]
    p, pd, p2d = Pi[..., 3:], Pi_d[..., 3:], Pi_2d[..., 3:]
    W = np.stack([Pi_d, Pi_2d, Pi_3d])
    W[0, ..., :3] += cross(v, p)
    W[1, ..., :3] += cross(vd, p) + cross(v, pd)
    W[2, ..., :3] += cross(v2d, p) + 2.0 * cross(vd, pd) + cross(v, p2d)
    return W


def applied_wrenches(kinematics: HybridKinematics, applied: Mapping[int, Array]) -> Array:
    """Express applied wrenches in hybrid form, with two time derivatives.

    By the product rule: D^k W is the k-th derivative of the components in the body frame, turned
    into base axes.

    Shape (3, N, n_bodies, 6), from wrenches as `inverse.BodyEfforts` has them; orders that are not
    given count as zero.
    """
    V, Vd = kinematics.V, kinematics.Vd
    in_body = np.zeros((3, *V.shape))
    for i, values in applied.items():
        in_body[: values.shape[-2], :, i] = np.moveaxis(values, -2, 0)
    R = kinematics.C[..., :3, :3]
    W, D_W, D2_W = np.concatenate(
        [matvec(R, in_body[..., :3]), matvec(R, in_body[..., 3:])], axis=-1
    )
    wW = turned(V, W)
    Wd = D_W + wW
    W2d = D2_W + 2.0 * turned(V, Wd) + turned(Vd, W) - turned(V, wW)
    return np.stack([W, Wd, W2d])


def sum_towards_base(model: RobotModel, kinematics: HybridKinematics, W: Array) -> Array:
    """Sum over each body and all bodies behind it, about the origin of the body.

    W are hybrid wrenches of the single bodies and their derivatives, shape (3, N, n_bodies, 6).
    """
    W_bar = W.copy()
    for i in reversed(range(model.n_bodies)):
        p = model.parent[i]
        if p == BASE:
            continue
        r, rd, r2d = kinematics.r[:, i], kinematics.rd[:, i], kinematics.r2d[:, i]
        f, fd, f2d = W_bar[:, :, i, 3:]
        W_bar[:, :, p] += W_bar[:, :, i]
        W_bar[0, :, p, :3] += cross(r, f)
        W_bar[1, :, p, :3] += cross(r, fd) + cross(rd, f)
        W_bar[2, :, p, :3] += cross(r, f2d) + 2.0 * cross(rd, fd) + cross(r2d, f)
    return W_bar
