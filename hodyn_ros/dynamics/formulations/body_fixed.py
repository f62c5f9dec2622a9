"""Recursive inverse dynamics of any order in body-fixed twists.

Source: Kumar and Mueller 2021, section II, with eq. (13) for one body. Like the paper, no order is
written out; unlike it, which differentiates the joint screws, (14) to (18), the transforms between
neighbours are differentiated. Every quantity is a series (its time derivatives along one axis) and
products follow Leibniz's rule: O(n) in the bodies, O(r^2) in the order r for each of them.

The transform A of twists from the parent to the body is a sum of constant matrices K_b with
functions f_b of the joint position,

    A(t) = K_0 + f_1(t) K_1 + f_2(t) K_2,   K_b = ad_X^b Ad(B^-1),

with f_1 = -sin q, f_2 = 1 - cos q for revolute and f_1 = -q, f_2 = 0 for prismatic joints, and two
terms more for helical ones, see `doc/formulations/body_fixed.rst`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.lie import Jet, jets, se3
from hodyn_ros.model.mechanism import BASE
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.typing import Array


def body_efforts(
    model: RobotModel, coordinates: Array, applied: Mapping[int, Array]
) -> Array:
    """Efforts and their time derivatives, see `inverse.BodyEfforts`."""
    N, K, n_bodies = coordinates.shape
    transforms = JointTransforms(model, coordinates[:, :-1])
    # V = A V_p + X qd, eq. (4). The base accelerates upwards in place of gravity.
    base = np.zeros((1, K - 1, 6))
    base[:, 1, 3:] = -model.gravity
    twists: list[Array] = []
    for i, p in enumerate(model.parent):
        V = transforms.to_body(i, base if p == BASE else twists[p])
        twists.append(V + coordinates[:, 1:, i, None] * model.X[i])
    # Of all bodies at once dPi/dt - ad_V^T Pi with the momentum Pi = M V, eq. (13).
    V = np.stack(twists, axis=1)
    Pi = Jet.along((V @ model.M_body)[..., None], 2)
    ad_transposed = Jet(np.swapaxes(se3.ad(V[:, :, k]), -1, -2) for k in range(K - 2))
    inertial = (Pi.rate() - ad_transposed @ Pi).array(2)[..., 0]
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


class JointTransforms:
    """Transforms A of all bodies along joint motions, for series of twists and wrenches.

    Parameters
    ----------
    model : RobotModel
    coordinates : ndarray, shape (N, K, n_bodies)
        Joint motion of every body.

    Attributes
    ----------
    K : int
        Number of entries of the series: series of twists may have so many or fewer.
    """

    def __init__(self, model: RobotModel, coordinates: Array) -> None:
        series = np.swapaxes(coordinates, -1, -2)
        N, n_bodies, self.K = series.shape
        q = Jet.along(coordinates, 1)
        sine, cosine = jets.sine_cosine(q)
        turns, self._to_body, self._to_parent = _constants(model)
        self._terms = self._to_body.shape[-1] // 6
        f = np.zeros((N, n_bodies, self.K, self._terms))
        f[..., 0, 0] = 1.0
        f[..., 1] = np.where(turns[:, None], -sine.array(-1), -series)
        f[..., 2] = np.where(turns[:, None], -cosine.array(-1), 0.0)
        f[..., 0, 2] += turns
        m, j = np.ogrid[: self.K, : self.K]
        if self._terms == 5:
            f[..., 3] = -(q * cosine).array(-1)
            f[..., 4] = (q * sine).array(-1)
        # [N, body, m, j, b] = binomial(m, j) f_b^(m-j), flattened over (j, b).
        self._series = (
            f[..., np.maximum(m - j, 0), :] * jets.binomials(self.K)[..., None]
        ).reshape(N, n_bodies, self.K, self._terms * self.K)

    def to_body(self, i: int, V: Array) -> Array:
        """Series of A V: twists of the parent in the frame of body i.

        Parameters
        ----------
        i : int
            Index of the body.
        V : ndarray, shape (N or 1, K', 6)
            Twists with time derivatives in the frame of the parent, K' <= K.

        Returns
        -------
        ndarray, shape (N, K', 6)
        """
        return self._apply(i, V, self._to_body[i])

    def to_parent(self, i: int, W: Array) -> Array:
        """Series of transpose(A) W: wrenches on body i in the frame of its parent.

        Parameters
        ----------
        i : int
            Index of the body.
        W : ndarray, shape (N, K', 6)
            Wrenches (moment, force) with time derivatives in the frame of the body, K' <= K.

        Returns
        -------
        ndarray, shape (N, K', 6)
        """
        return self._apply(i, W, self._to_parent[i])

    def _apply(self, i: int, y: Array, basis: Array) -> Array:
        """Product of the series of body i with a series (N or 1, K, 6) in its constant basis."""
        N, K, _ = y.shape
        images = (y.reshape(-1, 6) @ basis).reshape(N, self._terms * K, 6)
        product: Array = self._series[:, i, :K, : self._terms * K] @ images
        return product


# A controller asks for the same robot a thousand times a second.
@lru_cache(maxsize=16)
def _constants(model: RobotModel) -> tuple[NDArray[np.bool_], Array, Array]:
    """Which joints turn, and the matrices K_b of all bodies side by side, for twists and wrenches.

    Shapes (n_bodies,), (n_bodies, 6, 6 terms) and the same, for products with rows from the left.
    """
    turns = np.linalg.norm(model.X[:, :3], axis=1) > 0.5  # unit axis or none
    pitch = se3.pitches(model.X)
    along_axis = np.zeros((model.n_bodies, 6))
    along_axis[:, 3:] = pitch[:, None] * model.X[:, :3]
    P, D = se3.ad(model.X - along_axis), se3.ad(along_axis)
    K0 = se3.Ad(se3.inverse(model.B))
    K1 = P @ K0
    matrices = [K0, K1, P @ K1]
    if np.any(pitch):
        matrices += [D @ K0, P @ D @ K0]
    basis = np.stack(matrices, axis=1)  # (n_bodies, terms, 6, 6)
    to_body, to_parent = (
        np.ascontiguousarray(basis.transpose(axes).reshape(model.n_bodies, 6, -1))
        for axes in ((0, 3, 1, 2), (0, 2, 1, 3))
    )
    return turns, to_body, to_parent
