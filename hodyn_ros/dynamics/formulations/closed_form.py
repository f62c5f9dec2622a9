"""Equations of motion in closed form, Q = M q2d + C qd + Q_grav + Q_ext, with time derivatives.

Source: Mueller and Kumar 2021, "Closed-form time derivatives of the equations of motion of rigid
body systems", whose equation numbers are quoted below, extended from chains to trees as on the
page `doc/formulations/closed_form.rst`. (In the sentence before eq. (19), "Ad_{C_i,-1}" means
Ad_{C_i,i-1}.) The system matrices have a block of 6 rows for each body; blocks of zeros are left
out. The paper writes out the orders 1 and 2, (28) to (53); here all orders follow from Leibniz's
rule, applied to (1).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from hodyn_ros.dynamics.formulations.tree import (
    applied_wrenches,
    gravity_screw,
    transforms_to_bodies,
)
from hodyn_ros.kinematics.poses import (
    blocks,
    part,
    transpose,
)
from hodyn_ros.lie import Jet, jets, se3
from hodyn_ros.model.mechanism import BASE
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.typing import Array


def body_efforts(
    model: RobotModel, coordinates: Array, applied: Mapping[int, Array]
) -> Array:
    """Efforts and their derivatives, see `BodyEfforts`; Mueller and Kumar 2021, eq. (1)."""
    N, K, n_bodies = coordinates.shape
    results = np.empty((N, K - 2, n_bodies))
    W = applied_wrenches(model, coordinates, applied)[..., None]
    for block in blocks(N, 6 * n_bodies * (n_bodies + 1)):
        q = Jet.along(coordinates[block, ..., None], 1)
        system = system_of(model, coordinates[block, :-1])
        efforts = (
            system.mass_matrix(K - 2) @ q.rate().rate()
            + system.coriolis_matrix(skew_symmetric=False) @ q.rate()
            + system.gravity_effort(K - 2)
            + system.reduced(Jet(W[:, block]))  # (27)
        )
        results[block] = efforts.array(1)[..., 0]
    return results


class SystemMatrices(NamedTuple):
    """System matrices along a motion of K entries, as jets of arrays in blocks for the bodies."""

    M: Array  # inertias of the bodies, eq. (21), shape (n_bodies, 6, 6)
    J: Jet  # system Jacobian A X, eq. (9), K entries of shape (N, n_bodies, 6, n)
    UG: Jet  # acceleration that stands for gravity, eq. (26), K entries (N, n_bodies, 6, 1)
    b: Jet  # brackets with the twists of the bodies, eq. (23), K-1 entries (N, n_bodies, 6, 6)

    def reduced(self, columns: Jet) -> Jet:
        """J^T times columns (N, n_bodies, 6, m), as jet of (N, n, m)."""
        return transpose(_stacked(self.J)) @ _stacked(columns)

    def mass_matrix(self, count: int | None = None) -> Jet:
        """Generalized mass matrix, eq. (20), K or so many entries of shape (N, n, n)."""
        return self.reduced(self.M @ self.J[:count])

    def coriolis_matrix(self, skew_symmetric: bool) -> Jet:
        """Coriolis matrix C-bar of eq. (54) or C of (20), K-1 entries of shape (N, n, n).

        With dJ/dt = -A a J, eq. (12), the matrix of eq. (22) gives C J = M dJ/dt - b^T M J.
        """
        columns = self.M @ self.J.rate() - transpose(self.b) @ (self.M @ self.J)
        if skew_symmetric:
            columns = columns + self.M @ (self.b @ self.J)
        return self.reduced(columns)

    def gravity_effort(self, count: int | None = None) -> Jet:
        """Q_grav, eq. (25), K or so many entries of shape (N, n, 1)."""
        return self.reduced(self.M @ self.UG[:count])


def system_of(model: RobotModel, coordinates: Array) -> SystemMatrices:
    """System matrices along motions of the bodies' joints (N, K, n_bodies), K >= 1.

    Since A = (I - D)^-1, where D has the transforms between neighbours, J = A X (9) solves
    J_i = Ad_{C_i,p(i)} J_p(i) + X_i, and U G (26) the same from G in the base.
    """
    N, K, n_bodies = coordinates.shape
    q = Jet.along(coordinates, 1)
    D = transforms_to_bodies(model, q)
    own = np.zeros((N, n_bodies + 1, 6, n_bodies + 1))
    own[:, range(n_bodies), :, range(n_bodies)] = model.X[:, None]
    own[:, BASE, :, BASE:] = gravity_screw(model)

    def outwards(Y: Array) -> Array:
        for i, p in enumerate(model.parent):
            Y[:, i] += D[0][:, i] @ Y[:, p]
        return Y

    above = np.append(model.parent, BASE)
    right = jets.constant(own, K)
    Y = jets.quotient(right, D, outwards, lambda D, Y: -(D @ Y[:, above]))
    J, UG = (part(Y, np.s_[:, :BASE, :, c]) for c in (slice(BASE), slice(BASE, None)))
    V = J @ part(q.rate(), np.s_[:, None, :, None])  # (8)
    return SystemMatrices(model.M_body, J, UG, Jet(se3.ad(x[..., 0]) for x in V))


def _stacked(columns: Jet) -> Jet:
    """Matrices with a block of rows for each body as ordinary ones."""
    return Jet(x.reshape(len(x), -1, x.shape[-1]) for x in columns)
