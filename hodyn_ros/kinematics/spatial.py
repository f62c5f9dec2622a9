"""Spatial twists and joint screws of all bodies and their derivatives, up to jounce, written out.

Source: Mueller 2021, "An O(n)-Algorithm for the Higher-Order Kinematics and Inverse Dynamics of
Serial Manipulators using Spatial Representation of Twists", Algorithm 1, for trees. All screws are
in base link axes and about the base link origin, so nothing is transformed between bodies. Symbols
of the paper: S is the instantaneous joint screw, V the twist, Sd to S3d and Vd to V3d are their
time derivatives, q to q4d those of the joint position.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.kinematics.body import body_poses
from hodyn_ros.lie import se3
from hodyn_ros.lie.se3 import bracket
from hodyn_ros.model.robot import BASE, RobotModel

Array = NDArray[np.float64]


class SpatialKinematics(NamedTuple):
    """Motion of all bodies in spatial twists: base link axes, about the base link origin."""

    C: Array
    """Poses of the bodies in the base link, shape (N, n_bodies, 4, 4)."""
    S: Array
    """Joint screws (e, x cross e + h e) or (0, e), shape (N, n_bodies, 6)."""
    Sd: Array
    S2d: Array
    S3d: Array
    V: Array
    """Twists (omega, v) [rad/s, m/s]; v belongs to the point at the base link origin."""
    Vd: Array
    V2d: Array
    V3d: Array


def spatial_kinematics(
    model: RobotModel, coordinates: Array, base_acceleration: Array | None = None
) -> SpatialKinematics:
    """Joint screws and twists of all bodies with three time derivatives.

    Parameters
    ----------
    model : RobotModel
        Revolute, prismatic and helical joints of any pitch.
    coordinates : ndarray, shape (N, K, n_bodies)
        Joint motions of the bodies, 1 <= K <= 5. Derivatives that are not given count as zero, so
        that only those up to V^(K-2) and S^(K-1) are the ones of the motion.
    base_acceleration : ndarray, shape (3,), optional
        Linear acceleration of the base [m/s^2]. Minus the gravitational acceleration makes the
        inertia forces include the weight; S2d, S3d, Vd, V2d and V3d are then not the kinematic
        ones (the paper does not say so where it lets the base accelerate).

    Returns
    -------
    SpatialKinematics

    Notes
    -----
    Source: Mueller 2021, eq. (9) and Algorithm 1. The joint screw S = Ad_f Y of the paper is
    Ad_C X here, with the constant screw X in the frame of the body instead of the base.
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
