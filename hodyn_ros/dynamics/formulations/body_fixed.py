"""Recursive inverse dynamics of any order in body-fixed twists.

Source: Kumar and Mueller 2021, section II, with eq. (13) for one body. Like the paper, no order is
written out; unlike it, which differentiates the joint screws, (14) to (18), the transforms between
neighbours are differentiated. Every quantity is a series (its time derivatives along one axis) and
products follow Leibniz's rule: O(n) in the bodies, O(r^2) in the order r for each of them.

The transform A of twists from the parent to the body is a sum of constant matrices K_b with
functions f_b of the joint position,

    A(t) = K_0 + f_1(t) K_1 + f_2(t) K_2,   K_b = ad_X^b Ad(B^-1),

with f_1 = -sin q, f_2 = 1 - cos q for revolute and f_1 = -q, f_2 = 0 for prismatic joints, and two
terms more for helical ones, see `doc/formulations/index.rst`. So one product with the
matrices and one with the functions, by Leibniz's rule, transform all derivatives of a twist.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hodyn_ros.lie import Jet, jets, se3
from hodyn_ros.model.mechanism import BASE
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.typing import Array


def body_efforts(
    model: RobotModel, coordinates: Array, applied: Mapping[int, Array]
) -> Array:
    """Efforts and their time derivatives, see `BodyEfforts`."""
    N, K, n_bodies = coordinates.shape
    functions, matrices = _functions(model, coordinates[:, :-1]), model.kept(_matrices)

    def transformed(i: int, y: Array, direction: int) -> Array:
        """Series A y of twists (N or 1, K', 6) of the parent, or A^T y of wrenches on body i."""
        images = (y.reshape(-1, 6) @ matrices[direction, i]).reshape(len(y), -1, 6)
        series: Array = functions[:, i, : y.shape[1], : images.shape[1]] @ images
        return series

    # V = A V_p + X qd, eq. (4). The base accelerates upwards in place of gravity.
    base = np.zeros((1, K - 1, 6))
    base[:, 1, 3:] = -model.gravity
    twists: list[Array] = []
    for i, p in enumerate(model.parent):
        V = transformed(i, base if p == BASE else twists[p], 0)
        twists.append(V + coordinates[:, 1:, i, None] * model.X[i])
    # Of all bodies at once dPi/dt - ad_V^T Pi with the momentum Pi = M V, eq. (13).
    V, binomials = np.stack(twists, axis=1), jets.binomials(K)
    Pi = V @ model.M_body
    inertial = Pi[:, :, 1:].copy()
    for k in range(K - 2):
        terms = se3.coadjoint(V[:, :, : k + 1], Pi[:, :, k::-1])
        inertial[:, :, k] -= binomials[k, : k + 1] @ terms
    wrenches = [
        inertial[:, i] + applied[i] if i in applied else inertial[:, i]
        for i in range(n_bodies)
    ]
    efforts = np.empty((N, K - 2, n_bodies))
    for i in reversed(range(n_bodies)):
        efforts[..., i] = wrenches[i] @ model.X[i]
        if (p := model.parent[i]) != BASE:
            wrenches[p] = wrenches[p] + transformed(i, wrenches[i], 1)
    return efforts


def _functions(model: RobotModel, coordinates: Array) -> Array:
    """Functions f_b along motions (N, K, n_bodies), as matrices of Leibniz's rule.

    Shape (N, n_bodies, K, K terms): binomial(k, j) f_b^(k-j) in row k, column (j, b).
    """
    series = np.swapaxes(coordinates, -1, -2)
    N, n_bodies, K = series.shape
    q = Jet.along(coordinates, 1)
    sine, cosine = jets.sine_cosine(q)
    turns = np.linalg.norm(model.X[:, :3], axis=1) > 0.5  # a unit axis or none
    f = np.zeros((N, n_bodies, K, model.kept(_matrices).shape[-1] // 6))
    f[..., 0, 0] = 1.0
    f[..., 1] = -np.where(turns[:, None], np.stack([*sine], axis=-1), series)
    f[..., 2] = np.where(turns[:, None], -np.stack([*cosine], axis=-1), 0.0)
    f[..., 0, 2] += turns
    if f.shape[-1] == 5:
        f[..., 3] = -(q * cosine).array(-1)
        f[..., 4] = (q * sine).array(-1)
    k, j = np.ogrid[:K, :K]
    rule: Array = f[..., np.maximum(k - j, 0), :] * jets.binomials(K)[..., None]
    return rule.reshape(N, n_bodies, K, -1)


def _matrices(model: RobotModel) -> Array:
    """Matrices K_b of all bodies side by side, for twists and for wrenches.

    Shape (2, n_bodies, 6, 6 terms), for products with rows from the left.
    """
    pitch = se3.pitches(model.X)
    along_axis = np.zeros((model.n_bodies, 6))
    along_axis[:, 3:] = pitch[:, None] * model.X[:, :3]
    P, D = se3.ad(model.X - along_axis), se3.ad(along_axis)
    K0 = se3.Ad(se3.inverse(model.B))
    matrices = [K0, P @ K0, P @ P @ K0]
    if np.any(pitch):
        matrices += [D @ K0, P @ D @ K0]
    basis = np.stack(matrices, axis=1)  # (n_bodies, terms, 6, 6)
    sides = [basis.transpose(axes) for axes in ((0, 3, 1, 2), (0, 2, 1, 3))]
    return np.ascontiguousarray(np.reshape(sides, (2, model.n_bodies, 6, -1)))
