"""Recursive inverse dynamics of any order in hybrid (mixed) twists.

A hybrid twist V = (omega, v) holds the angular velocity of a body and the velocity of the origin
of its frame, both in base link axes; momenta and wrenches are about this origin, too. Derivatives
are componentwise: the axes are at rest, the origin moves with the body. Mueller 2021 mentions this
representation without formulas; their derivation is on the page `doc/formulations/index.rst`.

The two halves of a screw are the columns of a matrix (3, 2), which a rotation turns together. The
weight enters by a base that accelerates upwards, which adds to dv/dt alone: applied wrenches need
no correction for it, unlike in the spatial form.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hodyn_ros.dynamics.formulations.tree import applied_wrenches, path_matrix
from hodyn_ros.kinematics.poses import (
    cross,
    part,
    poses_in_base,
    rotations_and_origins,
    transpose,
)
from hodyn_ros.lie import Jet, jets, so3
from hodyn_ros.model.mechanism import BASE
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.typing import Array


def body_efforts(
    model: RobotModel, coordinates: Array, applied: Mapping[int, Array]
) -> Array:
    """Efforts and their derivatives, see `BodyEfforts`."""
    q = Jet.along(coordinates, 1)
    R, r = rotations_and_origins(poses_in_base(model, q))
    X = R @ _halves(model.X)  # joint screws about the origins of the bodies

    # V = (omega, v): omega = omega_p + z qd, and v is the velocity of the origin.
    turns = part(X, np.s_[..., 0]) * part(q.rate(), np.s_[..., None])
    omega, v = path_matrix(model) @ turns, r.rate()
    v = Jet([v[0], v[1] - model.gravity, *v[2:]])
    V = Jet(np.stack(halves, axis=-1) for halves in zip(omega, v))

    # The inertia is constant in the axes of the body; W = dPi/dt + (v x p, 0) + W_app.
    Pi = R @ Jet(_halves(so3.matvec(model.M_body, _column(V))) for V in transpose(R) @ V)
    W_app = Jet(_halves(applied_wrenches(model, coordinates, applied)))
    W = (Pi.rate() + R @ W_app).array(0)
    W[..., 0] += cross(v, part(Pi, np.s_[..., 1])).array(0)[: len(W)]

    # Towards the parent (m, f) is (m + r x f, f).
    for i in reversed(range(model.n_bodies)):
        if (p := model.parent[i]) != BASE:
            arm = Jet(so3.hat(x[:, i] - x[:, p]) for x in r)
            moment = arm @ Jet(W[:, :, i, :, 1:])
            W[:, :, p] += W[:, :, i]
            W[:, :, p, :, :1] += moment.array(0)
    Q = jets.product(X, Jet(W), lambda X, W: (X * W).sum(axis=(-2, -1)))
    return Q.array(1)


def _halves(screw: Array) -> Array:
    """Screws (..., 6) with the angular and the linear half as columns, (..., 3, 2)."""
    return np.stack([screw[..., :3], screw[..., 3:]], axis=-1)


def _column(halves: Array) -> Array:
    """Screws (..., 6) from their halves."""
    return np.concatenate([halves[..., 0], halves[..., 1]], axis=-1)
