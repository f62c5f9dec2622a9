"""Recursive inverse dynamics of any order in body-fixed twists.

Source: Kumar and Mueller 2021, section II, with eq. (13) for one body. Like the paper, no order is
written out; unlike it, which differentiates the joint screws, (14) to (18), the transforms between
neighbours are differentiated. Every quantity is a series (its time derivatives along one axis) and
products follow Leibniz's rule: O(n) in the bodies, O(r^2) in the order r for each of them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hodyn_ros.kinematics.joints import JointTransforms, body_twists
from hodyn_ros.lie import leibniz, se3
from hodyn_ros.model.mechanism import BASE
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.typing import Array


def body_efforts(
    model: RobotModel, coordinates: Array, applied: Mapping[int, Array]
) -> Array:
    """Efforts and their time derivatives, see `inverse.BodyEfforts`."""
    N, K, n_bodies = coordinates.shape
    transforms = JointTransforms(model, coordinates[:, :-1])
    twists = body_twists(model, coordinates, transforms, base_acceleration=-model.gravity)
    # All bodies at once: N^(m) = Pi^(m+1) - sum_j binomial(m, j) ad_{V^(j)}^T Pi^(m-j), Pi = M V.
    V = np.stack(twists, axis=1)
    Pi = V @ model.M_body
    inertial = Pi[:, :, 1:] - leibniz.bilinear(se3.coadjoint, V, Pi, K - 2)
    wrenches = [
        inertial[:, i] + applied[i] if i in applied else inertial[:, i]
        for i in range(n_bodies)
    ]
    efforts = np.empty((N, K - 2, n_bodies))
    for i in reversed(range(n_bodies)):
        efforts[..., i] = wrenches[i] @ model.X[i]
        p = model.parent[i]
        if p != BASE:
            wrenches[p] = wrenches[p] + transforms.to_parent(i, wrenches[i])
    return efforts
