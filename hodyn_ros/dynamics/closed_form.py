"""Equations of motion in closed form, Q = M q2d + C qd + Q_grav + Q_ext, with time derivatives.

Source: Mueller and Kumar 2021, "Closed-form time derivatives of the equations of motion of rigid
body systems", eqs. (8) to (57), whose numbers are quoted below, extended from chains to trees as
on the page `doc/formulations/closed_form.rst`. (In the sentence before eq. (19), "Ad_{C_i,-1}"
means Ad_{C_i,i-1}.) All bodies are stacked: a system matrix has one block of 6 rows for each body.
Orders up to 2 are written out as in the paper (`written_out`), any order follows from Leibniz's
rule (`series`). The cost grows with the cube of the number of bodies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from hodyn_ros.kinematics.joints import JointTransforms
from hodyn_ros.lie import leibniz, se3
from hodyn_ros.model.robot import BASE, RobotModel
from hodyn_ros.typing import Array

# Numbers in one system matrix for all samples that are computed together: small enough for the
# two dozen matrices of an evaluation to stay in the cache.
_NUMBERS_IN_BLOCK = 2**15


# --- Inverse dynamics ---------------------------------------------------------------------------


def body_efforts(
    model: RobotModel, coordinates: Array, applied: Mapping[int, Array]
) -> Array:
    """Efforts and their time derivatives, see `inverse.BodyEfforts`.

    Orders up to 2 are those that the paper writes out; if more are asked for, all follow from
    Leibniz's rule.
    """
    N, K, n_bodies = coordinates.shape
    efforts = written_out_efforts if K <= 5 else leibniz_efforts
    results = np.empty((N, K - 2, n_bodies))
    for block in blocks(model, N):
        W = np.zeros((len(coordinates[block]), K - 2, n_bodies, 6))
        for body, wrench in applied.items():
            W[:, :, body] = wrench[block]
        results[block] = efforts(
            model, coordinates[block], W.reshape(len(W), K - 2, 6 * n_bodies)
        )
    return results


def written_out_efforts(model: RobotModel, coordinates: Array, W: Array) -> Array:
    """Efforts and their first and second derivatives from the printed expressions.

    Source: Mueller and Kumar 2021, eqs. (1), (28) and (38). W, shape (N, K-2, 6 n_bodies), is the
    system wrench of eq. (27): the wrenches that the bodies exert on the environment.
    """
    orders = coordinates.shape[1] - 2
    system = written_out(model, coordinates)
    J_transposed = _transpose(system.J)

    def reduced(matrix: Array) -> Array:
        return J_transposed @ matrix @ system.J

    _, qd, q2d, *higher = np.moveaxis(coordinates, 1, 0)[..., None]
    UG = system.U @ _gravity_screw(model)
    W0, *W_higher = np.moveaxis(W, 1, 0)[..., None]

    M, C = reduced(system.M), reduced(system.C)
    Q_grav = J_transposed @ system.M @ UG  # (25)
    Q_ext = J_transposed @ W0  # (27)
    efforts = [M @ q2d + C @ qd + Q_grav + Q_ext]  # (1)
    if orders > 1:
        q3d, Wd = higher[0], W_higher[0]
        Md, Cd = reduced(system.M1), reduced(system.C1)  # (29), (31)
        Qd_grav = J_transposed @ system.M1 @ UG  # (36)
        Qd_ext = J_transposed @ (Wd - _transpose(system.Aa) @ W0)  # (37)
        efforts.append(M @ q3d + (Md + C) @ q2d + Cd @ qd + Qd_grav + Qd_ext)  # (28)
    if orders > 2:
        q4d, W2d = higher[1], W_higher[1]
        M2d, C2d = reduced(system.M2), reduced(system.C2)  # (40), (45)
        Q2d_grav = J_transposed @ system.M2 @ UG  # (52)
        factor = 2.0 * system.Aa @ system.Aa - system.Aad - system.Aaa
        # (53)
        Q2d_ext = J_transposed @ (
            W2d - 2.0 * _transpose(system.Aa) @ Wd + _transpose(factor) @ W0
        )
        # (38)
        efforts.append(
            M @ q4d
            + (2.0 * Md + C) @ q3d
            + (M2d + 2.0 * Cd) @ q2d
            + C2d @ qd
            + Q2d_grav
            + Q2d_ext
        )
    return np.stack(efforts, axis=1)[..., 0]


def leibniz_efforts(model: RobotModel, coordinates: Array, W: Array) -> Array:
    """Efforts and their derivatives of any order by Leibniz's rule, applied to eq. (1).

    Q^(k) = sum_j binomial(k, j) (M^(j) q^(k-j+2) + C^(j) q^(k-j+1)) + Q_grav^(k) + Q_ext^(k).
    """
    orders = coordinates.shape[1] - 2
    q = list(np.moveaxis(coordinates, 1, 0)[..., None])
    system = series(model, coordinates[:, :-1])
    terms = (
        _product(system.mass_matrices(orders), q[2:], orders),
        _product(system.coriolis_matrices(orders, skew_symmetric=False), q[1:], orders),
        [effort[..., None] for effort in system.gravity_efforts(orders)],
        system.reduced(list(np.moveaxis(W, 1, 0)[..., None]), orders),
    )
    return np.stack([sum(order) for order in zip(*terms)], axis=1)[..., 0]


# --- System matrices ----------------------------------------------------------------------------


class SystemMatrices(NamedTuple):
    """Matrices of all bodies at one position; bodies are blocks of six rows."""

    A: Array  # transforms of twists between bodies, eq. (10), (N, 6 n_bodies, 6 n_bodies)
    X: Array  # joint screws, eq. (10), shape (6 n_bodies, n_bodies)
    M: Array  # inertias of the bodies, eq. (21), shape (6 n_bodies, 6 n_bodies)
    U: Array  # transforms of twists from the base to the bodies, eq. (26), (N, 6 n_bodies, 6)


def system_matrices(model: RobotModel, positions: Array) -> SystemMatrices:
    """System matrices that depend on positions alone.

    Parameters
    ----------
    model : RobotModel
    positions : ndarray, shape (N, n_bodies)
        Of the bodies' joints [rad] or [m].
    """
    n_bodies = model.n_bodies
    own = np.broadcast_to(np.eye(6), (n_bodies, 6, 6))
    A, U = map(_stacked, _along_the_tree(model, positions[:, None], own))
    X = np.zeros((n_bodies, 6, n_bodies))
    X[np.arange(n_bodies), :, np.arange(n_bodies)] = model.X
    M = _block_diagonal(model.M_body)
    return SystemMatrices(A[0], X.reshape(6 * n_bodies, n_bodies), M, U[0])


def matrix_a(model: RobotModel, rates: Array) -> Array:
    """Matrix a = diag(qd_i ad_X_i), eq. (13); of higher derivatives of q, its time derivatives.

    The derivative of order k + 1 of the bodies' joint positions, shape (N, n_bodies), gives that
    of order k of a, shape (N, 6 n_bodies, 6 n_bodies).
    """
    return _block_diagonal(rates[..., None, None] * se3.ad(model.X))


def matrix_b(V: Array) -> Array:
    """Matrix b = diag(ad_V_i), eq. (23), of the system twist of eq. (8), or a derivative of both.

    Shape (N, 6 n_bodies, 6 n_bodies), from (N, 6 n_bodies, 1).
    """
    return _block_diagonal(se3.ad(V.reshape(len(V), V.shape[1] // 6, 6)))


class WrittenOut(NamedTuple):
    """System matrices with the derivatives that the paper writes out.

    The generalized matrices are d^k M/dt^k = J^T Mk J and d^k C/dt^k = J^T Ck J. What needs more
    derivatives of the motion than are given is zero.
    """

    J: Array  # system Jacobian, eq. (9), shape (N, 6 n_bodies, n_bodies)
    U: Array  # transforms of twists from the base to the bodies, eq. (26), (N, 6 n_bodies, 6)
    Aa: Array  # the products A a, A da/dt and A a a
    Aad: Array
    Aaa: Array
    M: Array  # inertias, (6 n_bodies, 6 n_bodies); the matrices below are one such a sample
    M1: Array
    M2: Array
    C: Array
    C1: Array
    C2: Array


def written_out(model: RobotModel, coordinates: Array) -> WrittenOut:
    """System matrices with the first and second derivatives that the paper writes out.

    Parameters
    ----------
    model : RobotModel
    coordinates : ndarray, shape (N, K, n_bodies)
        Joint motions of the bodies, 3 <= K <= 5.
    """
    orders = coordinates.shape[1] - 2
    q, qd, q2d, *higher = np.moveaxis(coordinates, 1, 0)
    A, X, M, U = system_matrices(model, q)
    J = A @ X  # (9)
    V = J @ qd[..., None]  # (8)
    a = matrix_a(model, qd)
    Aa = A @ a
    MAa = M @ Aa
    C = -MAa - _transpose(matrix_b(V)) @ M  # (22)
    none = np.zeros_like(A)
    if orders == 1:
        return WrittenOut(J, U, Aa, none, none, M, none, none, C, none, none)

    Aad = A @ matrix_a(model, q2d)
    Aaa = Aa @ a
    MAaa = M @ Aaa
    MAaAa = MAa @ Aa
    M1 = -MAa - _transpose(MAa)  # (30)
    Vd = J @ q2d[..., None] - Aa @ V  # (15)
    # The paper's C(q, q2d, Vd): eq. (22) with accelerations in the place of velocities.
    C_of_accelerations = -M @ Aad - _transpose(matrix_b(Vd)) @ M
    CAa = C @ Aa
    AaTC = _transpose(Aa) @ C
    C1 = C_of_accelerations + MAaAa - MAaa - CAa - AaTC  # (34)
    if orders == 2:
        return WrittenOut(J, U, Aa, Aad, Aaa, M, M1, none, C, C1, none)

    # (43), whose first term is misprinted: it is M^(1)(q, q2d), not M^(1)(q, qd); see (42), (44).
    MAad = M @ Aad
    M1_of_accelerations = -MAad - _transpose(MAad)
    M1Aa = M1 @ Aa
    M2 = M1_of_accelerations + _twice_symmetric(MAaAa - MAaa) - _twice_symmetric(M1Aa)

    # Differentiating (15) with dJ/dt = -A a J (12) and dA/dt = A a - A a A (19).
    q3d = higher[0]
    V2d = (
        J @ q3d[..., None]
        - 2.0 * Aa @ (J @ q2d[..., None])
        + (2.0 * Aa @ Aa - Aaa - Aad) @ V
    )
    C_of_jerks = -M @ A @ matrix_a(model, q3d) - _transpose(matrix_b(V2d)) @ M
    C2 = C_of_jerks - 2.0 * C1 @ Aa - 2.0 * _transpose(Aa) @ C1  # (50)
    C2 -= C @ Aad + _transpose(Aad) @ C + 2.0 * AaTC @ Aa + C @ Aaa + _transpose(Aaa) @ C
    C2 += MAad @ Aa + 2.0 * MAa @ Aad - 2.0 * MAaAa @ Aa + 2.0 * MAa @ Aaa
    C2 -= 3.0 * MAa @ matrix_a(model, q2d) + MAaa @ a - MAaa @ Aa
    return WrittenOut(J, U, Aa, Aad, Aaa, M, M1, M2, C, C1, C2)


class SystemSeries(NamedTuple):
    """System matrices along a motion, in blocks: entry k of a list is the k-th time derivative.

    None of them has both a row and a column of blocks for each body, so that nothing here costs
    more than the products with the transposed Jacobian.
    """

    M: Array  # inertias of the bodies, eq. (21), shape (n_bodies, 6, 6)
    G: Array  # acceleration of the base that stands for gravity, eq. (26), shape (6, 1)
    J: list[Array]  # system Jacobian, eq. (9), K entries of shape (N, n_bodies, 6, n)
    U: list[Array]  # from the base to the bodies, eq. (26), K entries (N, n_bodies, 6, 6)
    b: list[Array]  # brackets with the twists of the bodies, eq. (23), K-1 entries as of U

    def reduced(self, columns: Sequence[Array], orders: int) -> list[Array]:
        """J^T times columns, and derivatives, below an order.

        Parameters
        ----------
        columns : sequence of ndarray, shape (N, n_bodies, 6, ...) or (N, 6 n_bodies, ...)
            A block of six rows for each body; entry k is the k-th time derivative.
        orders : int
            Number of derivatives, the zeroth included.

        Returns
        -------
        list of ndarray, shape (N, n, ...)
        """
        return _product(_transposes(_stacked(self.J)), _stacked(columns), orders)

    def mass_matrices(self, orders: int) -> list[Array]:
        """Generalized mass matrix, eq. (20), and its derivatives, each of shape (N, n, n)."""
        return self.reduced([self.M @ J for J in self.J], orders)

    def coriolis_matrices(self, orders: int, skew_symmetric: bool) -> list[Array]:
        """Coriolis matrix C-bar of eq. (54) or C of (20), and derivatives, of shape (N, n, n).

        With dJ/dt = -A a J, eq. (12), the matrix of eq. (22) gives C J = M dJ/dt - b^T M J.
        """
        turned = _product(_transposes(self.b), [self.M @ J for J in self.J], orders)
        columns = [self.M @ J - turn for J, turn in zip(self.J[1:], turned)]
        if skew_symmetric:
            more = _product(self.b, self.J, orders)
            columns = [column + self.M @ bJ for column, bJ in zip(columns, more)]
        return self.reduced(columns, orders)

    def gravity_efforts(self, orders: int) -> list[Array]:
        """Q_grav of eq. (25) and its derivatives, each of shape (N, n)."""
        weights = [self.M @ (U @ self.G) for U in self.U]
        return [Q[..., 0] for Q in self.reduced(weights, orders)]


def series(model: RobotModel, coordinates: Array) -> SystemSeries:
    """System matrices and their time derivatives of any order, by Leibniz's rule.

    J = A X comes from `_along_the_tree`; V^(k) = (J qd)^(k), eq. (8). The coordinates have the
    shape (N, K, n_bodies), K >= 1.
    """
    J, U = _along_the_tree(model, coordinates, model.X[..., None])
    rates = list(np.moveaxis(coordinates, 1, 0)[1:, :, None, :, None])
    b = [se3.ad(V[..., 0]) for V in _product(J, rates, len(rates))]
    return SystemSeries(model.M_body, _gravity_screw(model), J, U, b)


def _along_the_tree(
    model: RobotModel, coordinates: Array, own: Array
) -> tuple[list[Array], list[Array]]:
    """Matrix A diag(own) and U with their time derivatives, in blocks of rows for the bodies.

    Since A = (I - D)^-1, they solve Y_i = Ad_{C_i,p(i)} Y_p(i) + own_i, and the same for U without
    own_i, from the base outwards.
    """
    N, K, n_bodies = coordinates.shape
    transforms = JointTransforms(model, coordinates).matrices()
    width = own.shape[-1]
    size = n_bodies * width
    base = np.zeros((K, N, 6, size + 6))
    base[0, :, :, size:] = np.eye(6)
    both = np.zeros((K, N, n_bodies, 6, size + 6))
    for i, p in enumerate(model.parent):
        before = base if p == BASE else both[:, :, p]
        both[:, :, i] = _product(list(transforms[:, :, i]), list(before), K)
        both[0, :, i, :, i * width : (i + 1) * width] += own[i]
    return list(both[..., :size]), list(both[..., size:])


def _stacked(matrices: Sequence[Array]) -> list[Array]:
    """Matrices with a block of rows for each body as ordinary ones."""
    return [x.reshape(len(x), prod(x.shape[1:-1]), x.shape[-1]) for x in matrices]


def _product(f: Sequence[Array], g: Sequence[Array], orders: int) -> list[Array]:
    """Time derivatives of the matrix product f g, below `orders`."""
    table = leibniz.binomials(orders)
    return [
        np.asarray(sum(table[m, j] * (f[j] @ g[m - j]) for j in range(m + 1)))
        for m in range(orders)
    ]


def _transpose(matrix: Array) -> Array:
    """Transposed matrices (..., m, n)."""
    return np.swapaxes(matrix, -1, -2)


def _transposes(matrices: Sequence[Array]) -> list[Array]:
    """Transposed matrices of a series."""
    return [_transpose(matrix) for matrix in matrices]


def _twice_symmetric(matrix: Array) -> Array:
    """Matrix plus its transpose: twice its symmetric part."""
    return matrix + _transpose(matrix)


def _block_diagonal(blocks: Array) -> Array:
    """Square matrix with 6x6 blocks, shape (..., n_bodies, 6, 6), on its diagonal."""
    n_bodies = blocks.shape[-3]
    matrix = np.zeros((*blocks.shape[:-3], n_bodies, 6, n_bodies, 6))
    for i in range(n_bodies):
        matrix[..., i, :, i, :] = blocks[..., i, :, :]
    return matrix.reshape(*blocks.shape[:-3], 6 * n_bodies, 6 * n_bodies)


def _gravity_screw(model: RobotModel) -> Array:
    """G = (0, -g), the acceleration of a base that stands for gravity, shape (6, 1)."""
    return np.concatenate([np.zeros(3), -model.gravity])[:, None]


def blocks(model: RobotModel, N: int) -> Iterator[slice]:
    """Slices of N samples that are computed together, at least one."""
    step = max(1, _NUMBERS_IN_BLOCK // (6 * model.n_bodies) ** 2)
    for start in range(0, max(N, 1), step):
        yield slice(start, start + step)
