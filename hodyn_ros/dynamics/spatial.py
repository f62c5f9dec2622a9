"""Recursive inverse dynamics of orders 0, 1 and 2 in spatial twists, written out.

Source: Mueller 2021, "An O(n)-Algorithm for the Higher-Order Kinematics and Inverse Dynamics of
Serial Manipulators using Spatial Representation of Twists", section V and Algorithms 1 and 3, for
trees. All screws, twists and wrenches are in base link axes and about the base link origin, so
nothing is transformed between bodies. Symbols of the paper: S is the instantaneous joint screw, V
the twist, Sd to S3d and Vd to V3d are their derivatives, q to q4d those of the joint position.

The weight enters in one of two ways. `body_efforts` adds the gravity wrenches, eq. (23) to (25).
`body_efforts_with_base_acceleration` lets the base accelerate upwards, as in Algorithm 1; applied
wrenches then need a correction that the paper lacks, see `corrected_for_base_acceleration`.

Moments about a far point are large: rounding grows with the square of the distance between bodies
and base link origin, from 1e-15 relative to the efforts for an arm on its base to a few 1e-12 for
one that stands 100 m away. The other formulations lose far less.

W_app, "applied to the body" in the paper, is in fact the wrench that the body exerts on the
environment: it adds to the efforts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from hodyn_ros.kinematics.joints import body_poses
from hodyn_ros.lie import se3
from hodyn_ros.lie.se3 import bracket, coadjoint
from hodyn_ros.lie.so3 import matvec
from hodyn_ros.model.robot import BASE, RobotModel
from hodyn_ros.typing import Array


def body_efforts(
    model: RobotModel, coordinates: Array, applied: Mapping[int, Array]
) -> Array:
    """Efforts and two derivatives, with gravity wrenches; see `inverse.BodyEfforts`, K <= 5."""
    kinematics, W = inter_body(model, coordinates, applied)
    return efforts_of(kinematics, W)[:, : coordinates.shape[1] - 2]


def body_efforts_with_base_acceleration(
    model: RobotModel, coordinates: Array, applied: Mapping[int, Array]
) -> Array:
    """Efforts and two time derivatives, with an accelerating base; K <= 5.

    Source: Mueller 2021, Algorithms 1 and 3 as they are printed, with Vd_0 = G = (0, -g), and with
    the correction of the applied wrenches that the paper lacks.
    """
    G = gravity_screw(model)
    kinematics = spatial_kinematics(model, coordinates, base_acceleration=G[3:])
    M = spatial_inertias(model, kinematics.C)
    W_app = applied_wrenches(kinematics.C, kinematics.V, kinematics.Vd - G, applied)
    W_app = corrected_for_base_acceleration(W_app, G)
    W = sum_towards_base(model, momentum_derivatives(M, kinematics) + W_app)
    return efforts_of(kinematics, W)[:, : coordinates.shape[1] - 2]


def inter_body(
    model: RobotModel, coordinates: Array, applied: Mapping[int, Array]
) -> tuple[SpatialKinematics, Array]:
    """Kinematics of a base at rest, and wrenches between the bodies with explicit gravity.

    Parameters
    ----------
    model : RobotModel
    coordinates : ndarray, shape (N, K, n_bodies)
        Joint motions of the bodies, K <= 5.
    applied : mapping of int to ndarray, shape (N, K-2, 6)
        As `inverse.BodyEfforts` has them.

    Returns
    -------
    kinematics : SpatialKinematics
    W : ndarray, shape (3, N, n_bodies, 6)
        Spatial wrench that each body gets through its joint, and two time derivatives; those of
        orders above K - 3 are not the ones of the motion.
    """
    kinematics = spatial_kinematics(model, coordinates)
    C, V, Vd = kinematics.C, kinematics.V, kinematics.Vd
    M = spatial_inertias(model, C)
    W = (
        momentum_derivatives(M, kinematics)
        + applied_wrenches(C, V, Vd, applied)
        + gravity_wrenches(M, V, Vd, gravity_screw(model))
    )
    return kinematics, sum_towards_base(model, W)


# --- Kinematics, up to jounce ------------------------------------------------------------------


class SpatialKinematics(NamedTuple):
    """Motion of all bodies in spatial twists: base link axes, about the base link origin."""

    C: Array  # poses of the bodies in the base link, shape (N, n_bodies, 4, 4)
    S: Array  # joint screws (e, x cross e + h e) or (0, e), shape (N, n_bodies, 6)
    Sd: Array
    S2d: Array
    S3d: Array
    V: Array  # twists (omega, v) [rad/s, m/s]; v belongs to the point at the base link origin
    Vd: Array
    V2d: Array
    V3d: Array


def spatial_kinematics(
    model: RobotModel, coordinates: Array, base_acceleration: Array | None = None
) -> SpatialKinematics:
    """Joint screws and twists of all bodies with three time derivatives.

    Of joint motions (N, K, n_bodies), 1 <= K <= 5; derivatives that are not given count as zero,
    so that only those up to V^(K-2) and S^(K-1) are the ones of the motion. A base acceleration,
    shape (3,), of minus the gravitational one makes the inertia forces include the weight; S2d,
    S3d, Vd, V2d and V3d are then not the kinematic ones (the paper does not say so where it lets
    the base accelerate).

    Source: Mueller 2021, eq. (9) and Algorithm 1. The joint screw S = Ad_f Y of the paper is Ad_C
    X here, with the constant screw X in the frame of the body instead of the base.
    """
    N, K, n_bodies = coordinates.shape
    motion = np.zeros((N, 5, n_bodies))
    motion[:, :K] = coordinates
    base = np.zeros((4, 1, 6))
    if base_acceleration is not None:
        base[1, :, 3:] = base_acceleration

    C = np.stack(body_poses(model, motion[:, 0]), axis=1)
    screws = np.empty((4, N, n_bodies, 6))
    twists = np.empty((4, N, n_bodies, 6))
    for i, p in enumerate(model.parent):
        _, qd, q2d, q3d, q4d = (motion[:, k, i, None] for k in range(5))
        Vp, Vp_d, Vp_2d, Vp_3d = base if p == BASE else twists[:, :, p]
        S = se3.Ad(C[:, i]) @ model.X[i]

        V = Vp + S * qd
        Sd = bracket(V, S)

        Vd = Vp_d + S * q2d + Sd * qd
        # (ad_Vd + ad_V^2) S and below (ad_V2d + 2 ad_Vd ad_V + ad_V ad_Vd + ad_V^3) S of eq. (9),
        # with what the derivatives before already hold.
        S2d = bracket(Vd, S) + bracket(V, Sd)

        V2d = Vp_2d + S * q3d + 2.0 * Sd * q2d + S2d * qd
        S3d = bracket(V2d, S) + 2.0 * bracket(Vd, Sd) + bracket(V, S2d)

        V3d = Vp_3d + S * q4d + 3.0 * Sd * q3d + 3.0 * S2d * q2d + S3d * qd

        screws[:, :, i] = S, Sd, S2d, S3d
        twists[:, :, i] = V, Vd, V2d, V3d
    return SpatialKinematics(C, *screws, *twists)


# --- Wrenches -----------------------------------------------------------------------------------


def gravity_screw(model: RobotModel) -> Array:
    """Return G = (0, -g), the acceleration of a base that stands for gravity, shape (6,)."""
    return np.concatenate([np.zeros(3), -model.gravity])


def spatial_inertias(model: RobotModel, C: Array) -> Array:
    """Inertias of the bodies in base link axes and about the base link origin.

    Source: Mueller 2021, eq. (13). Shape (N, n_bodies, 6, 6), from poses of (N, n_bodies, 4, 4).
    """
    Ad_inverse = se3.Ad(se3.inverse(C))
    M: Array = np.swapaxes(Ad_inverse, -1, -2) @ model.M_body @ Ad_inverse
    return M


def momentum_derivatives(M: Array, kinematics: SpatialKinematics) -> Array:
    """First to third time derivative of the spatial momenta Pi = M V of the bodies.

    Source: Mueller 2021, eq. (10), (16), (19) and (22), as in Algorithm 3. Shape (3, N, n_bodies,
    6), from spatial inertias of shape (N, n_bodies, 6, 6).
    """
    V, Vd, V2d, V3d = kinematics.V, kinematics.Vd, kinematics.V2d, kinematics.V3d
    ad_V_Vd = bracket(V, Vd)
    Pi = matvec(M, V)
    Pi_d = matvec(M, Vd) - coadjoint(V, Pi)
    adT_Pi, adT_Pi_d = coadjoint(V, Pi), coadjoint(V, Pi_d)
    Pi_2d = (
        matvec(M, V2d - ad_V_Vd) - 2.0 * adT_Pi_d - coadjoint(Vd, Pi) - coadjoint(V, adT_Pi)
    )
    Pi_3d = matvec(M, V3d - 2.0 * bracket(V, V2d) + bracket(V, ad_V_Vd))
    Pi_3d -= 3.0 * (coadjoint(V, Pi_2d) + coadjoint(Vd, Pi_d) + coadjoint(V, adT_Pi_d))
    # Transposition turns the order of the products around.
    Pi_3d -= coadjoint(V2d, Pi) + 2.0 * coadjoint(V, coadjoint(Vd, Pi))
    Pi_3d -= coadjoint(Vd, adT_Pi) + coadjoint(V, coadjoint(V, adT_Pi))
    return np.stack([Pi_d, Pi_2d, Pi_3d])


def gravity_wrenches(M: Array, V: Array, Vd: Array, G: Array) -> Array:
    """Wrenches that carry the weights of the bodies, with two time derivatives.

    Source: Mueller 2021, eq. (23) to (25). In (25), where it is printed as W2d = (K + K^T) G with
    K = M ad_V^2 + ad_V^T M ad_V + M ad_Vd, the last sign is a misprint: the term is -M ad_Vd.

    Shape (3, N, n_bodies, 6), from spatial inertias, spatial twists and their true derivatives, of
    a base at rest, and G = (0, -g) [m/s^2].
    """
    ad_V_G = bracket(V, G)
    MG = matvec(M, np.broadcast_to(G, V.shape))
    M_ad_V_G = matvec(M, ad_V_G)
    W = MG
    Wd = -(M_ad_V_G + coadjoint(V, MG))
    K_G = matvec(M, bracket(V, ad_V_G)) + coadjoint(V, M_ad_V_G) - matvec(M, bracket(Vd, G))
    K_transposed_G = (
        coadjoint(V, coadjoint(V, MG)) + coadjoint(V, M_ad_V_G) - coadjoint(Vd, MG)
    )
    return np.stack([W, Wd, K_G + K_transposed_G])


def applied_wrenches(C: Array, V: Array, Vd: Array, applied: Mapping[int, Array]) -> Array:
    """Express applied wrenches in spatial form, with two time derivatives.

    By the product rule from W = Ad_C^-T W_body with d(Ad_C^-T)/dt = -ad_V^T Ad_C^-T. Source:
    Mueller 2021, eq. (35) and (39).

    Shape (3, N, n_bodies, 6), from poses, spatial twists and their true derivatives, of a base at
    rest, and wrenches as `inverse.BodyEfforts` has them; orders that are not given count as zero.
    """
    in_body = np.zeros((3, *V.shape))
    for i, values in applied.items():
        in_body[: values.shape[-2], :, i] = np.moveaxis(values, -2, 0)
    to_spatial = np.swapaxes(se3.Ad(se3.inverse(C)), -1, -2)
    W_b, Wd_b, W2d_b = matvec(to_spatial, in_body)
    W = W_b
    Wd = Wd_b - coadjoint(V, W)
    W2d = W2d_b - coadjoint(V, Wd_b) - coadjoint(Vd, W) - coadjoint(V, Wd)
    return np.stack([W, Wd, W2d])


def corrected_for_base_acceleration(W_app: Array, G: Array) -> Array:
    """Replace the second derivative of applied spatial wrenches by W2d - ad_G^T W.

    A spatial wrench is about the base link origin. Where the base accelerates, this point moves
    away from the one at rest about which the recursion takes all moments, and the second
    derivative of the moment differs by the acceleration times the force. Without this correction,
    which Mueller 2021 lacks, Vd_0 = G makes Q2d wrong by S^T ad_G^T times the sum of the wrenches
    on all bodies behind the joint; Q and Qd are right all the same.

    W_app, shape (3, N, n_bodies, 6), are spatial wrenches and their true derivatives, of a base at
    rest; G = (0, -g) is the acceleration of the base [m/s^2].
    """
    W, Wd, W2d = W_app
    return np.stack([W, Wd, W2d - coadjoint(G, W)])


def sum_towards_base(model: RobotModel, W: Array) -> Array:
    """Sum over each body and all bodies behind it: nothing needs to be transformed on the way.

    Source: Mueller 2021, eq. (30), with all children of a body instead of the next one. Spatial
    wrenches of shape (..., n_bodies, 6).
    """
    W_bar = W.copy()
    for i in reversed(range(model.n_bodies)):
        p = model.parent[i]
        if p != BASE:
            W_bar[..., p, :] += W_bar[..., i, :]
    return W_bar


def efforts_of(kinematics: SpatialKinematics, W_bar: Array) -> Array:
    """Components of the inter-body wrenches along the joint screws, with two time derivatives.

    Source: Mueller 2021, eq. (29) and (31). Shape (N, 3, n_bodies), from (3, N, n_bodies, 6).
    """
    S, Sd, S2d = kinematics.S, kinematics.Sd, kinematics.S2d
    W, Wd, W2d = W_bar
    Q = (S * W).sum(axis=-1)
    Qd = (S * Wd + Sd * W).sum(axis=-1)
    Q2d = (S * W2d + 2.0 * Sd * Wd + S2d * W).sum(axis=-1)
    return np.stack([Q, Qd, Q2d], axis=1)
