"""Derivatives of the joint positions from those of the twist of a link, order by order.

Source: Mueller 2021, Algorithm 2, with its misprints corrected: the forward recursions run over
all bodies, i = 1 ... n; the acceleration of body i in step 3b builds on the acceleration of its
parent (a dot is missing); the term of the jerk in step 5a has the factor 3, which is
binomial(3, 1). With Leibniz's rule the order is arbitrary:

    J q^(k) = V^(k-1) - sum over j = 1 ... k-1 of binomial(k-1, j) J^(j) q^(k-j).

The sum is the (k-1)-th derivative of the twist for q^(k) = 0: a forward recursion computes it
without any derivative of a Jacobian.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.kinematics.forward import forward_kinematics
from hodyn_ros.kinematics.jacobian import jacobian
from hodyn_ros.kinematics.redundancy import Criterion, TaskSystem
from hodyn_ros.lie import leibniz
from hodyn_ros.model.robot import RobotModel

Array = NDArray[np.float64]


def determined_orders(
    model: RobotModel, system: TaskSystem, q: Array, V: Array, c: Array, damping: float
) -> Array:
    """Joint motions of a system with as many equations as unknowns.

    Parameters
    ----------
    model : RobotModel
    system : TaskSystem
    q : ndarray, shape (N, n)
    V : ndarray, shape (N, K-1, 6)
        Hybrid twist of the link and its derivatives.
    c : ndarray, shape (N, K, p)
        Joint tasks and their derivatives.
    damping : float
        Zero, or the damping of each solution, which is then no exact one.

    Returns
    -------
    ndarray, shape (N, K, n)
    """
    N, K = len(q), V.shape[1] + 1
    motion = np.zeros((N, K, q.shape[1]))
    motion[:, 0] = q
    M = system.matrix(system.chain.pose_and_jacobian(q)[1])
    for k in range(1, K):
        without = forward_kinematics(model, motion[:, : k + 1], system.chain.link, 'hybrid').twist
        e = system.right_side(V[:, k - 1] - without[:, k - 1], c[:, k])
        if damping:
            M_transposed = np.swapaxes(M, -1, -2)
            damped = M_transposed @ M + damping**2 * np.eye(M.shape[-1])
            x = np.linalg.solve(damped, M_transposed @ e[..., None])[..., 0]
        else:
            x = np.linalg.solve(M, e[..., None])[..., 0]
        motion[:, k, system.unknown] = x * system.joint_scale[system.unknown]
    return motion


def least_norm_orders(
    model: RobotModel,
    system: TaskSystem,
    criterion: Criterion,
    q: Array,
    V: Array,
    c: Array,
    damping: float,
) -> Array:
    """Joint motions of least norm, with the exact derivatives of the criterion.

    The velocity x in units of the joints and the multipliers y of the equations M x = e fulfil

        [W  M^T] [x]   [W z]
        [M   0 ] [y] = [ e ],

    at all times, so that Leibniz's rule gives the derivatives of x from those of M, z and e.

    Parameters
    ----------
    model, system, q, V, c, damping
        As in `determined_orders`.
    criterion : Criterion

    Returns
    -------
    ndarray, shape (N, K, n)
    """
    N, K = len(q), V.shape[1] + 1
    unknown, scale = system.unknown, system.joint_scale[system.unknown]
    u = len(unknown)
    motion = np.zeros((N, K, q.shape[1]))
    motion[:, 0] = q
    M0 = system.matrix(system.chain.pose_and_jacobian(q)[1])
    KKT = kkt_matrix(M0, criterion.weights[unknown], damping)
    table = leibniz.binomials(K)
    solutions: list[Array] = []
    for m in range(K - 1):
        top = criterion.weights[unknown] * wanted_velocity(system, criterion, motion[:, m], m)
        bottom = system.right_side(V[:, m], c[:, m + 1])
        if m > 0:
            J = jacobian(model, motion[:, : m + 1], system.chain.link, 'hybrid')
            M = system.matrix(J)
            # The coefficients of the joint tasks are constant.
            M[:, 1:, len(system.rows) :] = 0.0
            for j in range(1, m + 1):
                x, y = solutions[m - j][:, :u, None], solutions[m - j][:, u:, None]
                top = top - table[m, j] * (np.swapaxes(M[:, j], -1, -2) @ y)[..., 0]
                bottom = bottom - table[m, j] * (M[:, j] @ x)[..., 0]
        right = np.concatenate([top, bottom], axis=-1)
        solutions.append(np.linalg.solve(KKT, right[..., None])[..., 0])
        motion[:, m + 1, unknown] = solutions[m][:, :u] * scale
    return motion


def kkt_matrix(M: Array, weights: Array, damping: float = 0.0) -> Array:
    """Matrix of the optimality conditions, shape (..., u+m, u+m), of M of shape (..., m, u)."""
    m, u = M.shape[-2:]
    KKT = np.zeros((*M.shape[:-2], u + m, u + m))
    KKT[..., :u, :u] = np.diag(weights)
    KKT[..., :u, u:] = np.swapaxes(M, -1, -2)
    KKT[..., u:, :u] = M
    KKT[..., u:, u:] = -(damping**2) * np.eye(m)
    return KKT


def wanted_velocity(system: TaskSystem, criterion: Criterion, q: Array, order: int = 0) -> Array:
    """Differentiate z = -rate (q - posture): shape (..., u), from that of q, shape (..., n)."""
    way = q - criterion.posture if order == 0 else q
    z: Array = (-criterion.rate * way / system.joint_scale)[..., system.unknown]
    return z
