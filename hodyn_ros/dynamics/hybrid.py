"""Recursive inverse dynamics of orders 0, 1 and 2 in hybrid (mixed) twists, written out.

Twists, momenta and wrenches are in base link axes and about the origin of the body that they
belong to; all derivatives are componentwise, see `kinematics.hybrid`. Symbols: omega x acts on
both halves of a screw, M is the inertia of a body turned into base axes, Pi = (L, p) its momentum,
r leads from the origin of the parent to that of the body.

Derivation. In axes that turn with the body M is constant. The derivative in those axes, written in
base axes, is D y = yd - omega x y; hence D^k Pi = M D^k V, with

    D y   = yd - omega x y
    D^2 y = y2d - 2 omega x yd - omegad x y + omega x (omega x y)
    D^3 y = y3d - 3 omega x y2d - 3 (omegad x yd - omega x (omega x yd))
            - omega2d x y + omegad x (omega x y) + 2 omega x (omegad x y)
            - omega x (omega x (omega x y))

The same equations for y = Pi, solved for the last derivative, give Pid to Pi3d. The moment about
an origin that moves with the velocity v is Ld + v x p (Euler's second law about a moving point),
so a body needs the wrench

    W   = Pid  + (v x p, 0)
    Wd  = Pi2d + (vd x p + v x pd, 0)
    W2d = Pi3d + (v2d x p + 2 vd x pd + v x p2d, 0).

Towards the parent a wrench (m, f) is (m + r x f, f), differentiated by the product rule, and the
effort is Q = X^T W with the turning screw X. The weight enters by a base that accelerates upwards.
Applied wrenches need no correction for it, unlike in the spatial form: axes that do not turn and a
point of the body are the same whether the base accelerates or not.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.kinematics.hybrid import HybridKinematics, hybrid_kinematics, turned
from hodyn_ros.lie.so3 import cross
from hodyn_ros.model.robot import BASE, RobotModel

Array = NDArray[np.float64]


def body_efforts(model: RobotModel, coordinates: Array, applied: Mapping[int, Array]) -> Array:
    """Efforts of all bodies' joints and their first and second time derivatives.

    Parameters
    ----------
    model : RobotModel
        Revolute, prismatic and helical joints of any pitch.
    coordinates : ndarray, shape (N, K, n_bodies)
        Joint motions of the bodies, 3 <= K <= 5.
    applied : mapping of int to ndarray, shape (N, K-2, 6)
        For some bodies: the wrench (m, f) that the body exerts on the environment in its own
        frame, and its componentwise derivatives.

    Returns
    -------
    ndarray, shape (N, K-2, n_bodies)

    Notes
    -----
    Source: the derivation in the docstring of this module.
    """
    kinematics = hybrid_kinematics(model, coordinates, base_acceleration=-model.gravity)
    W = inertia_wrenches(model, kinematics) + applied_wrenches(kinematics, applied)
    W, Wd, W2d = sum_towards_base(model, kinematics, W)
    X, Xd, X2d = kinematics.X, kinematics.Xd, kinematics.X2d
    Q = (X * W).sum(axis=-1)
    Qd = (X * Wd + Xd * W).sum(axis=-1)
    Q2d = (X * W2d + 2.0 * Xd * Wd + X2d * W).sum(axis=-1)
    return np.stack([Q, Qd, Q2d], axis=1)[:, : coordinates.shape[1] - 2]


def inertia_wrenches(model: RobotModel, kinematics: HybridKinematics) -> Array:
    """Wrenches that make the bodies move as they do, with two time derivatives.

    Parameters
    ----------
    model : RobotModel
    kinematics : HybridKinematics

    Returns
    -------
    ndarray, shape (3, N, n_bodies, 6)
        Hybrid: base link axes, about the origin of each body.
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
    D3_V = (
        V3d
        - 3.0 * turned(V, V2d)
        - 3.0 * (turned(Vd, Vd) - turned(V, wVd))
        - turned(V2d, V)
        + turned(Vd, wV)
        + 2.0 * turned(V, turned(Vd, V))
        - turned(V, wwV)
    )

    Pi = _product(M, V)
    wPi = turned(V, Pi)
    wwPi = turned(V, wPi)
    Pi_d = _product(M, D_V) + wPi
    wPi_d = turned(V, Pi_d)
    Pi_2d = _product(M, D2_V) + 2.0 * wPi_d + turned(Vd, Pi) - wwPi
    Pi_3d = (
        _product(M, D3_V)
        + 3.0 * turned(V, Pi_2d)
        + 3.0 * (turned(Vd, Pi_d) - turned(V, wPi_d))
        + turned(V2d, Pi)
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
    into base axes; see the docstring of this module.

    Parameters
    ----------
    kinematics : HybridKinematics
    applied : mapping of int to ndarray, shape (N, <=3, 6)
        For some bodies: the wrench (m, f) that the body exerts on the environment in its own
        frame, and its componentwise derivatives; those that are not given count as zero.

    Returns
    -------
    ndarray, shape (3, N, n_bodies, 6)
    """
    V, Vd = kinematics.V, kinematics.Vd
    in_body = np.zeros((3, *V.shape))
    for i, values in applied.items():
        in_body[: values.shape[-2], :, i] = np.moveaxis(values, -2, 0)
    R = kinematics.C[..., :3, :3]
    W, D_W, D2_W = np.concatenate(
        [_product(R, in_body[..., :3]), _product(R, in_body[..., 3:])], axis=-1
    )
    wW = turned(V, W)
    Wd = D_W + wW
    W2d = D2_W + 2.0 * turned(V, Wd) + turned(Vd, W) - turned(V, wW)
    return np.stack([W, Wd, W2d])


def sum_towards_base(model: RobotModel, kinematics: HybridKinematics, W: Array) -> Array:
    """Sum over each body and all bodies behind it, about the origin of the body.

    Parameters
    ----------
    model : RobotModel
    kinematics : HybridKinematics
    W : ndarray, shape (3, N, n_bodies, 6)
        Hybrid wrenches of the single bodies and their derivatives.

    Returns
    -------
    ndarray, shape (3, N, n_bodies, 6)
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


def _product(matrix: Array, y: Array) -> Array:
    product: Array = (matrix @ y[..., None])[..., 0]
    return product
