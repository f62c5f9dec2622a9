"""Hybrid (mixed) twists and joint screws of all bodies and their derivatives, up to jounce.

A hybrid twist V = (omega, v) holds the angular velocity of a body and the velocity of the origin
of its frame, both in base link axes. Its derivatives are componentwise: the axes are at rest, the
origin moves with the body. So v is the derivative of the position of the origin, and the
derivatives of V are the angular and linear acceleration, jerk and jounce of textbooks. Mueller
2021 mentions this representation besides the spatial and the body-fixed one, without formulas.

Derivation. The screw X = (e, eta) of a joint, about the origin of its body, is at rest in the body
and turns with it: if omega x acts on both halves of a screw,

    Xd = omega x X,   X2d = omegad x X + omega x Xd,
    X3d = omega2d x X + 2 omegad x Xd + omega x X2d.

Let r lead from the origin of the parent p to that of the body, and let A(r) y = (0, y_omega x r)
be the velocity that the distance adds to a twist y. Then

    V = V_p + U,   U = A(r) V_p + X qd.

U is the twist relative to the parent; its second half is rd, because v - v_p = rd. All derivatives
follow by Leibniz's rule, each with the derivative of r from the one before:

    Ud  = A(r) Vd_p + A(rd) V_p + X q2d + Xd qd
    U2d = A(r) V2d_p + 2 A(rd) Vd_p + A(r2d) V_p + X q3d + 2 Xd q2d + X2d qd
    U3d = A(r) V3d_p + 3 A(rd) V2d_p + 3 A(r2d) Vd_p + A(r3d) V_p
          + X q4d + 3 Xd q3d + 3 X2d q2d + X3d qd

Only differences of velocities between neighbours enter, so a base that accelerates along a line
changes vd of every body by that acceleration and nothing else.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.kinematics.body import body_poses
from hodyn_ros.lie.so3 import cross
from hodyn_ros.model.robot import BASE, RobotModel

Array = NDArray[np.float64]


class HybridKinematics(NamedTuple):
    """Motion of all bodies in hybrid twists: base link axes, about the origin of each body."""

    C: Array
    """Poses of the bodies in the base link, shape (N, n_bodies, 4, 4)."""
    r: Array
    """From the origin of the parent to that of the body [m], shape (N, n_bodies, 3)."""
    rd: Array
    r2d: Array
    X: Array
    """Joint screws about the origin of the body, shape (N, n_bodies, 6)."""
    Xd: Array
    X2d: Array
    X3d: Array
    V: Array
    """Twists (omega, v) [rad/s, m/s], shape (N, n_bodies, 6)."""
    Vd: Array
    V2d: Array
    V3d: Array


def hybrid_kinematics(
    model: RobotModel, coordinates: Array, base_acceleration: Array | None = None
) -> HybridKinematics:
    """Joint screws and twists of all bodies with three time derivatives.

    Parameters
    ----------
    model : RobotModel
        Revolute, prismatic and helical joints of any pitch.
    coordinates : ndarray, shape (N, K, n_bodies)
        Joint motions of the bodies, 1 <= K <= 5. Derivatives that are not given count as zero, so
        that only those up to V^(K-2), X^(K-1) and r^(K-1) are the ones of the motion.
    base_acceleration : ndarray, shape (3,), optional
        Linear acceleration of the base [m/s^2]. Minus the gravitational acceleration makes the
        inertia forces include the weight; it adds to the linear part of Vd and to nothing else.

    Returns
    -------
    HybridKinematics

    Notes
    -----
    Source: the derivation in the docstring of this module.
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

        U2d = (
            _lever(r, Vp_2d)
            + 2.0 * _lever(rd, Vp_d)
            + _lever(r2d, Vp)
            + X * q3d
            + 2.0 * Xd * q2d
            + X2d * qd
        )
        V2d = Vp_2d + U2d
        r3d = U2d[:, 3:]
        X3d = turned(V2d, X) + 2.0 * turned(Vd, Xd) + turned(V, X2d)

        U3d = (
            _lever(r, Vp_3d)
            + 3.0 * _lever(rd, Vp_2d)
            + 3.0 * _lever(r2d, Vp_d)
            + _lever(r3d, Vp)
            + X * q4d
            + 3.0 * Xd * q3d
            + 3.0 * X2d * q2d
            + X3d * qd
        )
        V3d = Vp_3d + U3d

        distances[:, :, i] = r, rd, r2d
        screws[:, :, i] = X, Xd, X2d, X3d
        twists[:, :, i] = V, Vd, V2d, V3d
    return HybridKinematics(C, *distances, *screws, *twists)


def turned(V: Array, y: Array) -> Array:
    """Product omega x y on both halves of a screw, with the angular part omega of a twist.

    Parameters
    ----------
    V, y : ndarray, shape (..., 6)
        Twist, or a derivative of it; screw, twist, momentum or wrench.

    Returns
    -------
    ndarray, shape (..., 6)
    """
    omega = V[..., :3]
    return np.concatenate([cross(omega, y[..., :3]), cross(omega, y[..., 3:])], axis=-1)


def _lever(r: Array, V: Array) -> Array:
    """A(r) V = (0, omega x r): what a distance r adds to a twist."""
    linear = cross(V[..., :3], r)
    return np.concatenate([np.zeros_like(linear), linear], axis=-1)
