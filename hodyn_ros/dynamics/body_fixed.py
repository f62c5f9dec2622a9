"""Recursive inverse dynamics of orders 0, 1 and 2 in body-fixed twists, written out.

Source: Mueller 2021, Appendix B, with gravity as an acceleration of the base. The paper prints
twists and wrenches up to the first derivative; what follows is their derivative by the product
rule. `nth_order` computes the same for any order. Symbols: A transforms twists from the parent to
the body, x is the joint screw in the body frame, q to q4d are derivatives of the joint position.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hodyn_ros.kinematics.joints import body_poses
from hodyn_ros.lie import se3
from hodyn_ros.lie.se3 import bracket, coadjoint
from hodyn_ros.model.robot import BASE, RobotModel
from hodyn_ros.typing import Array


def body_efforts(
    model: RobotModel, coordinates: Array, applied: Mapping[int, Array]
) -> Array:
    """Efforts and two time derivatives, see `inverse.BodyEfforts`; K <= 5."""
    N, K, n_bodies = coordinates.shape
    # Derivatives that are not given do not enter the orders that are returned.
    motion = np.zeros((N, 5, n_bodies))
    motion[:, :K] = coordinates
    rest = np.zeros((1, 6))
    G = np.concatenate([np.zeros(3), -model.gravity])[None, :]

    poses = body_poses(model, motion[:, 0])
    A: list[Array] = []
    twists: list[tuple[Array, Array, Array, Array]] = []
    W: list[Array] = []
    Wd: list[Array] = []
    W2d: list[Array] = []
    for i, p in enumerate(model.parent):
        _, qd, q2d, q3d, q4d = (motion[:, k, i, None] for k in range(5))
        x = model.X[i][None, :]
        pose_in_parent = poses[i] if p == BASE else se3.inverse(poses[p]) @ poses[i]
        A.append(se3.Ad(se3.inverse(pose_in_parent)))
        Vp, Vp_d, Vp_2d, Vp_3d = (rest, G, rest, rest) if p == BASE else twists[p]
        AV, AVd, AV2d, AV3d = (
            (A[i] @ y[..., None])[..., 0] for y in (Vp, Vp_d, Vp_2d, Vp_3d)
        )

        V = AV + x * qd
        Vd = AVd - qd * bracket(x, V) + x * q2d
        V2d = (
            AV2d
            - qd * bracket(x, AVd)
            - q2d * bracket(x, V)
            - qd * bracket(x, Vd)
            + x * q3d
        )
        V3d = AV3d - 2.0 * qd * bracket(x, AV2d) - q2d * bracket(x, AVd)
        V3d += qd**2 * bracket(x, bracket(x, AVd)) - q3d * bracket(x, V)
        V3d += x * q4d - 2.0 * q2d * bracket(x, Vd) - qd * bracket(x, V2d)
        twists.append((V, Vd, V2d, V3d))

        M = model.M_body[i]
        Pi, Pi_d, Pi_2d = V @ M, Vd @ M, V2d @ M
        W.append(Pi_d - coadjoint(V, Pi))
        Wd.append(Pi_2d - coadjoint(V, Pi_d) - coadjoint(Vd, Pi))
        W2d.append(
            V3d @ M - coadjoint(V, Pi_2d) - 2.0 * coadjoint(Vd, Pi_d) - coadjoint(V2d, Pi)
        )
        if i in applied:
            for orders, values in zip((W, Wd, W2d), np.moveaxis(applied[i], -2, 0)):
                orders[i] = orders[i] + values

    efforts = _towards_base(model, motion, A, (W, Wd, W2d))
    return efforts[:, : K - 2]


def _towards_base(
    model: RobotModel,
    motion: Array,
    A: Sequence[Array],
    wrenches: tuple[list[Array], list[Array], list[Array]],
) -> Array:
    """Efforts (N, 3, n_bodies) while wrenches, in body frames, are summed up towards the base.

    Of joint motions (N, 5, n_bodies), transforms A (N, 6, 6) of each body, and the wrench (N, 6)
    of each body with two time derivatives; the lists become those of all bodies behind the joint.
    """
    W, Wd, W2d = wrenches
    efforts = np.empty((len(motion), 3, model.n_bodies))
    for i in reversed(range(model.n_bodies)):
        efforts[:, 0, i] = W[i] @ model.X[i]
        efforts[:, 1, i] = Wd[i] @ model.X[i]
        efforts[:, 2, i] = W2d[i] @ model.X[i]
        p = model.parent[i]
        if p == BASE:
            continue
        _, qd, q2d, _, _ = (motion[:, k, i, None] for k in range(5))
        x = model.X[i][None, :]
        A_transposed = np.swapaxes(A[i], -1, -2)
        xW = coadjoint(x, W[i])
        to_parent = (
            W[i],
            Wd[i] - qd * xW,
            W2d[i] - 2.0 * qd * coadjoint(x, Wd[i]) - q2d * xW + qd**2 * coadjoint(x, xW),
        )
        for orders, y in zip((W, Wd, W2d), to_parent):
            orders[p] = orders[p] + (A_transposed @ y[..., None])[..., 0]
    return efforts
