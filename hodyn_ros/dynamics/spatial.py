"""Recursive inverse dynamics of orders 0, 1 and 2 in spatial twists, written out.

Source: Mueller 2021, "An O(n)-Algorithm for the Higher-Order Kinematics and Inverse Dynamics of
Serial Manipulators using Spatial Representation of Twists", section V and Algorithm 3, for trees.
All twists and wrenches are in base link axes and about the base link origin. What belongs to one
body is computed for all bodies at once; only the sum of wrenches towards the base is a recursion.

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

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.dynamics.samples import Samples, on_bodies
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import HodynError
from hodyn_ros.kinematics.spatial import SpatialKinematics, spatial_kinematics
from hodyn_ros.lie import se3
from hodyn_ros.lie.se3 import bracket, coadjoint
from hodyn_ros.model.robot import BASE, RobotModel

Array = NDArray[np.float64]


def body_efforts(model: RobotModel, coordinates: Array, applied: Mapping[int, Array]) -> Array:
    """Efforts of all bodies' joints and two time derivatives, with explicit gravity wrenches.

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
    """
    kinematics, W = _inter_body(model, coordinates, applied)
    return efforts_of(kinematics, W)[:, : coordinates.shape[1] - 2]


def body_efforts_with_base_acceleration(
    model: RobotModel, coordinates: Array, applied: Mapping[int, Array]
) -> Array:
    """Efforts of all bodies' joints and two time derivatives, with an accelerating base.

    Parameters
    ----------
    model : RobotModel
        Revolute, prismatic and helical joints of any pitch.
    coordinates : ndarray, shape (N, K, n_bodies)
        Joint motions of the bodies, 3 <= K <= 5.
    applied : mapping of int to ndarray, shape (N, K-2, 6)
        As for `body_efforts`.

    Returns
    -------
    ndarray, shape (N, K-2, n_bodies)

    Notes
    -----
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


def inter_body_wrenches(
    model: RobotModel,
    motion: ArrayLike,
    wrench: Wrench | Sequence[Wrench] | None = None,
) -> Array:
    """Wrenches that the joints transmit to the bodies behind them, with two time derivatives.

    All six components, constraint reactions included, for the design of bearings and to monitor
    loads. Their sum over the bodies on the base is the reaction of the base.

    Parameters
    ----------
    model : RobotModel
    motion : array-like, shape (..., K, n)
        Time derivatives of the joint positions in model order, 3 <= K <= 5.
    wrench : Wrench or sequence of Wrench, optional
        Wrenches on links, with derivatives; leading axes broadcast with those of the motion.

    Returns
    -------
    ndarray, shape (..., K-2, n_bodies, 6)
        `[..., m, i, :]` is the m-th time derivative of the wrench (moment, force) [N m, N] that
        body i gets through its joint, the drive included, in the order of `model.body_names`.
        Spatial: base link axes, moment about the base link origin.

    Raises
    ------
    MotionError
        If the motion has a wrong shape or holds NaN or infinite values, or a result overflows.
    WrenchError
        If a wrench does not fit the model or the motion.
    HodynError
        If K is above 5.

    Notes
    -----
    Source: Mueller 2021, eq. (30), and Algorithm 3.
    """
    samples = Samples(model, motion, wrench)
    K = samples.K
    if K > 5:
        raise HodynError(
            f'Inter-body wrenches have derivatives up to order 2, K <= 5; the motion has K = {K}.'
        )

    def transmitted(coordinates: Array, applied: Mapping[int, Array]) -> Array:
        _, W = _inter_body(model, coordinates, applied)
        return np.moveaxis(W, 0, 1)[:, : K - 2]

    return samples.compute(on_bodies(model, transmitted), (K - 2, model.n_bodies, 6))


def _inter_body(
    model: RobotModel, coordinates: Array, applied: Mapping[int, Array]
) -> tuple[SpatialKinematics, Array]:
    """Compute true kinematics, and inter-body wrenches with explicit gravity."""
    kinematics = spatial_kinematics(model, coordinates)
    C, V, Vd = kinematics.C, kinematics.V, kinematics.Vd
    M = spatial_inertias(model, C)
    W = (
        momentum_derivatives(M, kinematics)
        + applied_wrenches(C, V, Vd, applied)
        + gravity_wrenches(M, V, Vd, gravity_screw(model))
    )
    return kinematics, sum_towards_base(model, W)


def gravity_screw(model: RobotModel) -> Array:
    """Return G = (0, -g), the acceleration of a base that stands for gravity, shape (6,)."""
    return np.concatenate([np.zeros(3), -model.gravity])


def spatial_inertias(model: RobotModel, C: Array) -> Array:
    """Inertias of the bodies in base link axes and about the base link origin.

    Source: Mueller 2021, eq. (13).

    Parameters
    ----------
    model : RobotModel
    C : ndarray, shape (N, n_bodies, 4, 4)

    Returns
    -------
    ndarray, shape (N, n_bodies, 6, 6)
    """
    Ad_inverse = se3.Ad(se3.inverse(C))
    M: Array = np.swapaxes(Ad_inverse, -1, -2) @ model.M_body @ Ad_inverse
    return M


def momentum_derivatives(M: Array, kinematics: SpatialKinematics) -> Array:
    """First to third time derivative of the spatial momenta Pi = M V of the bodies.

    Source: Mueller 2021, eq. (10), (16), (19) and (22), as in Algorithm 3.

    Parameters
    ----------
    M : ndarray, shape (N, n_bodies, 6, 6)
        Spatial inertias.
    kinematics : SpatialKinematics

    Returns
    -------
    ndarray, shape (3, N, n_bodies, 6)
    """
    V, Vd, V2d, V3d = kinematics.V, kinematics.Vd, kinematics.V2d, kinematics.V3d
    ad_V_Vd = bracket(V, Vd)
    Pi = _product(M, V)
    Pi_d = _product(M, Vd) - coadjoint(V, Pi)
    Pi_2d = (
        _product(M, V2d - ad_V_Vd)
        - 2.0 * coadjoint(V, Pi_d)
        - (coadjoint(Vd, Pi) + coadjoint(V, coadjoint(V, Pi)))
    )
    Pi_3d = (
        _product(M, V3d - 2.0 * bracket(V, V2d) + bracket(V, ad_V_Vd))
        - 3.0 * coadjoint(V, Pi_2d)
        - 3.0 * (coadjoint(Vd, Pi_d) + coadjoint(V, coadjoint(V, Pi_d)))
        # Transposition turns the order of the products around.
        - (
            coadjoint(V2d, Pi)
            + 2.0 * coadjoint(V, coadjoint(Vd, Pi))
            + coadjoint(Vd, coadjoint(V, Pi))
            + coadjoint(V, coadjoint(V, coadjoint(V, Pi)))
        )
    )
    return np.stack([Pi_d, Pi_2d, Pi_3d])


def gravity_wrenches(M: Array, V: Array, Vd: Array, G: Array) -> Array:
    """Wrenches that carry the weights of the bodies, with two time derivatives.

    Source: Mueller 2021, eq. (23) to (25). In (25), where it is printed as W2d = (K + K^T) G with
    K = M ad_V^2 + ad_V^T M ad_V + M ad_Vd, the last sign is a misprint: the term is -M ad_Vd.

    Parameters
    ----------
    M : ndarray, shape (N, n_bodies, 6, 6)
        Spatial inertias.
    V, Vd : ndarray, shape (N, n_bodies, 6)
        Spatial twists and their true derivatives, of a base at rest.
    G : ndarray, shape (6,)
        (0, -g) [m/s^2].

    Returns
    -------
    ndarray, shape (3, N, n_bodies, 6)
    """
    ad_V_G = bracket(V, G)
    MG = _product(M, np.broadcast_to(G, V.shape))
    M_ad_V_G = _product(M, ad_V_G)
    W = MG
    Wd = -(M_ad_V_G + coadjoint(V, MG))
    K_G = (
        _product(M, bracket(V, ad_V_G)) + coadjoint(V, M_ad_V_G) - _product(M, bracket(Vd, G))
    )
    K_transposed_G = coadjoint(V, coadjoint(V, MG)) + coadjoint(V, M_ad_V_G) - coadjoint(Vd, MG)
    return np.stack([W, Wd, K_G + K_transposed_G])


def applied_wrenches(C: Array, V: Array, Vd: Array, applied: Mapping[int, Array]) -> Array:
    """Express applied wrenches in spatial form, with two time derivatives.

    By the product rule from W = Ad_C^-T W_body with d(Ad_C^-T)/dt = -ad_V^T Ad_C^-T. Source:
    Mueller 2021, eq. (35) and (39).

    Parameters
    ----------
    C : ndarray, shape (N, n_bodies, 4, 4)
    V, Vd : ndarray, shape (N, n_bodies, 6)
        Spatial twists and their true derivatives, of a base at rest.
    applied : mapping of int to ndarray, shape (N, <=3, 6)
        For some bodies: the wrench (m, f) that the body exerts on the environment in its own
        frame, and its componentwise derivatives; those that are not given count as zero.

    Returns
    -------
    ndarray, shape (3, N, n_bodies, 6)
    """
    in_body = np.zeros((3, *V.shape))
    for i, values in applied.items():
        in_body[: values.shape[-2], :, i] = np.moveaxis(values, -2, 0)
    to_spatial = np.swapaxes(se3.Ad(se3.inverse(C)), -1, -2)
    W_b, Wd_b, W2d_b = _product(to_spatial, in_body)
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

    Parameters
    ----------
    W_app : ndarray, shape (3, N, n_bodies, 6)
        Spatial wrenches and their true derivatives, of a base at rest.
    G : ndarray, shape (6,)
        Acceleration of the base, (0, -g) [m/s^2].

    Returns
    -------
    ndarray, shape (3, N, n_bodies, 6)
    """
    W, Wd, W2d = W_app
    return np.stack([W, Wd, W2d - coadjoint(G, W)])


def sum_towards_base(model: RobotModel, W: Array) -> Array:
    """Sum over each body and all bodies behind it: nothing needs to be transformed on the way.

    Source: Mueller 2021, eq. (30), with all children of a body instead of the next one.

    Parameters
    ----------
    model : RobotModel
    W : ndarray, shape (..., n_bodies, 6)
        Spatial wrenches.

    Returns
    -------
    ndarray, shape (..., n_bodies, 6)
    """
    W_bar = W.copy()
    for i in reversed(range(model.n_bodies)):
        p = model.parent[i]
        if p != BASE:
            W_bar[..., p, :] += W_bar[..., i, :]
    return W_bar


def efforts_of(kinematics: SpatialKinematics, W_bar: Array) -> Array:
    """Components of the inter-body wrenches along the joint screws, with two time derivatives.

    Source: Mueller 2021, eq. (29) and (31).

    Parameters
    ----------
    kinematics : SpatialKinematics
    W_bar : ndarray, shape (3, N, n_bodies, 6)
        Inter-body wrenches and their derivatives.

    Returns
    -------
    ndarray, shape (N, 3, n_bodies)
    """
    S, Sd, S2d = kinematics.S, kinematics.Sd, kinematics.S2d
    W, Wd, W2d = W_bar
    Q = (S * W).sum(axis=-1)
    Qd = (S * Wd + Sd * W).sum(axis=-1)
    Q2d = (S * W2d + 2.0 * Sd * Wd + S2d * W).sum(axis=-1)
    return np.stack([Q, Qd, Q2d], axis=1)


def _product(matrix: Array, y: Array) -> Array:
    product: Array = (matrix @ y[..., None])[..., 0]
    return product
