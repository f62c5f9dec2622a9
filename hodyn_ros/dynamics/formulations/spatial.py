"""Recursive inverse dynamics of any order in spatial twists.

Source: Mueller 2021, "An O(n)-Algorithm for the Higher-Order Kinematics and Inverse Dynamics of
Serial Manipulators using Spatial Representation of Twists", section V and Algorithms 1 and 3, for
trees. All screws, twists and wrenches are in base link axes and about the base link origin, so
nothing is transformed between bodies. The paper writes out the derivatives up to the second of
the efforts; here they follow from dS/dt = ad_V S and dM/dt = -ad_V^T M - M ad_V to any order. The
printed ones are on the page `doc/formulations/spatial.rst`.

The weight enters in one of two ways: by gravity wrenches, eq. (23), or by a base that accelerates
upwards, as in Algorithm 1. Applied wrenches then move with this base, too: in the paper their
second derivative lacks the term -ad_G^T W.

Moments about a far point are large: rounding grows with the square of the distance between bodies
and base link origin, from 1e-15 relative to the efforts for an arm on its base to a few 1e-12 for
one that stands 100 m away. The other formulations lose far less.

W_app, "applied to the body" in the paper, is in fact the wrench that the body exerts on the
environment: it adds to the efforts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from operator import matmul

import numpy as np

from hodyn_ros.dynamics.formulations.tree import (
    applied_wrenches,
    gravity_screw,
    path_matrix,
)
from hodyn_ros.kinematics.poses import (
    poses_in_base,
    transpose,
)
from hodyn_ros.lie import Jet, jets, se3
from hodyn_ros.model.mechanism import BASE
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.typing import Array


def spatial_kinematics(
    model: RobotModel, C: Array, coordinates: Array, base_acceleration: Array
) -> tuple[Array, Array, Array]:
    """Joint screws and twists of all bodies with their time derivatives.

    Source: Mueller 2021, eq. (9) and Algorithm 1. The joint screw S = Ad_f Y of the paper is Ad_C
    X here, with the constant screw X in the frame of the body instead of the base.

    Parameters
    ----------
    model : RobotModel
    C : ndarray, shape (N, n_bodies, 4, 4)
        Poses of the bodies in the base link.
    coordinates : ndarray, shape (N, K, n_bodies)
        Joint motions of the bodies, K >= 3.
    base_acceleration : ndarray, shape (6, 1)
        If it is not zero, the derivatives are those of a robot on a base that accelerates, and
        not the kinematic ones (the paper does not say so where it lets the base accelerate).

    Returns
    -------
    S : ndarray, shape (K-1, N, n_bodies + 1, 6, 1)
        Joint screws (e, x cross e + h e) or (0, e). The last body is the base.
    V : ndarray, of the same shape
        Twists (omega, v) [rad/s, m/s]; v belongs to the point at the base link origin.
    ad : ndarray, shape (K-2, N, n_bodies + 1, 6, 6)
        Matrices ad_V.
    """
    N, K, n_bodies = coordinates.shape
    S, V = np.zeros((2, K - 1, N, n_bodies + 1, 6, 1))
    S[0, :, :BASE] = se3.Ad(C) @ model.X[..., None]
    V[1, :, BASE] = base_acceleration
    ad = se3.ad(V[:-1, ..., 0])
    for i, p in enumerate(model.parent):
        # (9). Since ad_S S is zero, it is the twist of the parent that turns the screw.
        turn, screw = Jet(ad[:, :, p]), [S[0, :, i]]
        for k in range(K - 2):
            screw.append(jets.leibniz(turn, screw, k, matmul))
        S[:, :, i] = screw
        rate = Jet.along(coordinates[:, 1:, i, None, None], 1)
        V[:, :, i] = V[:, :, p] + (Jet(screw) * rate).array(0)  # V = V_p + S qd
        ad[:, :, i] = se3.ad(V[:-1, :, i, :, 0])
    return S, V, ad


def inter_body(
    model: RobotModel,
    coordinates: Array,
    applied: Mapping[int, Array],
    accelerate_base: bool = False,
) -> tuple[Jet, Array]:
    """Joint screws, and wrenches that the bodies get through their joints.

    Source: Mueller 2021, eqs. (10), (13), (14) and (16) for the inertia, (23) for the weight, (35)
    for the applied wrenches, (30) for the sum, with all children of a body in place of the next.

    Parameters
    ----------
    model : RobotModel
    coordinates : ndarray, shape (N, K, n_bodies)
        Joint motions of the bodies, K >= 3.
    applied : mapping of int to ndarray, shape (N, K-2, 6)
        As `BodyEfforts` has them.
    accelerate_base : bool
        Whether the base accelerates upwards; if not, it rests and the bodies have weights.

    Returns
    -------
    S : Jet of ndarray, shape (N, n_bodies, 6, 1)
        Joint screws.
    W : ndarray, shape (K-2, N, n_bodies, 6)
        Spatial wrenches with their time derivatives.
    """
    G, none = gravity_screw(model), np.zeros((6, 1))
    acceleration, weight = (G, none) if accelerate_base else (none, G)
    (C,) = poses_in_base(model, Jet.along(coordinates[:, :1], 1))
    kinematics = spatial_kinematics(model, C, coordinates, acceleration)
    S, V, ad = (Jet(x[:, :, :BASE]) for x in kinematics)

    # (13), and dM/dt = -ad_V^T M - M ad_V.
    Ad_inverse = se3.Ad(se3.inverse(C))
    to_spatial = np.swapaxes(Ad_inverse, -1, -2)
    inertia = [to_spatial @ model.M_body @ Ad_inverse]
    for k in range(len(ad) - 1):
        half = jets.leibniz(inertia, ad, k, matmul)
        inertia.append(-(half + np.swapaxes(half, -1, -2)))
    M = Jet(inertia)
    W = M @ (V.rate() + weight) - transpose(ad) @ (M @ V)
    if applied:
        # In axes and about a point that move with the body: d(Ad_C^-T)/dt = -ad_V^T Ad_C^-T.
        W_app = to_spatial @ Jet(applied_wrenches(model, coordinates, applied)[..., None])
        turn = -transpose(ad)
        (W_app,) = jets.turned((W_app,), lambda k, wrench: (turn[k] @ wrench[0],))
        W = W + W_app
    return S, path_matrix(model).T @ W.array(0)[..., 0]


def body_efforts(
    model: RobotModel,
    coordinates: Array,
    applied: Mapping[int, Array],
    accelerate_base: bool = False,
) -> Array:
    """Efforts and their derivatives, see `BodyEfforts`; Mueller 2021, eq. (29)."""
    S, W = inter_body(model, coordinates, applied, accelerate_base)
    Q = transpose(S) @ Jet(W[..., None])
    return Q.array(1)[..., 0, 0]


body_efforts_with_base_acceleration: Callable[..., Array] = partial(
    body_efforts, accelerate_base=True
)
"""The same as Algorithm 1 has it, with the base acceleration G = (0, -g) for gravity."""
