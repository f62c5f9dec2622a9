"""Partial derivatives of the joint efforts, and of their time derivatives, by the motion."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import comb

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.dynamics.wrenches import Wrench, loads_of, wrenches_of
from hodyn_ros.engine.engine import compute, quick
from hodyn_ros.engine.joint_friction import friction_laws
from hodyn_ros.engine.program import PARTIALS
from hodyn_ros.engine.requests import KernelRequest
from hodyn_ros.kinematics.arguments import Arguments, Batch, is_finite
from hodyn_ros.kinematics.closed_loops import ClosedMotion, velocity_partials
from hodyn_ros.lie import Jet
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.typing import Array


def inverse_dynamics_derivatives(
    model: RobotModel, motion: ArrayLike, wrench: Wrench | Sequence[Wrench] | None = None
) -> Array:
    """Partial derivatives of the joint efforts and of their time derivatives by the motion.

    Parameters
    ----------
    model : RobotModel
    motion : array-like, shape (..., K, n)
        Time derivatives of the joint positions in model order [rad/s^k] or [m/s^k], K >= 3.
    wrench : Wrench or sequence of Wrench, optional
        Wrenches on links, with K - 2 orders. Their coordinates, as they are expressed, do not
        depend on the motion; the efforts that they take do.

    Returns
    -------
    ndarray, shape (..., K-2, n, K, n)
        `[..., m, i, k, j]` is the derivative of `inverse_dynamics(model, motion, wrench)`, of its
        `[..., m, i]`, by `motion[..., k, j]`, in the unit of that effort over the unit of that
        derivative: zero for k > m + 2, the mass matrix for k = m + 2. Friction and armature of the
        model are part of it; Coulomb friction without smoothing has the derivative zero.

    Raises
    ------
    MotionError
        If the motion has a wrong shape, holds NaN or infinite values, or the result overflows.
    ModelError
        If a friction law is not one of this package.
    WrenchError
        If a wrench does not fit.

    Notes
    -----
    Compiled code is made as for `mass_matrix`; NumPy runs programs of more than 20,000
    operations, from order 3 on for a robot with seven joints. Source: Singh, Russell and Wensing
    2022, "Efficient analytical derivatives of rigid-body dynamics using spatial vector algebra",
    for those of Q; those of its time derivatives follow by Leibniz's rule.

    Examples
    --------
    How the torques at rest change with the positions (K = 3, k = 0), in N m/rad:

    >>> import numpy as np
    >>> from hodyn_ros import RobotModel, inverse_dynamics_derivatives
    >>> model = RobotModel.from_urdf('two_link')
    >>> derivatives = inverse_dynamics_derivatives(model, [[0.5, 0.5], [0.0, 0.0], [0.0, 0.0]])
    >>> derivatives.shape, derivatives[0, :, 0].round(2)
    ((1, 2, 3, 2), array([[-24.72,  -8.25],
           [ -8.25,  -8.25]]))
    """
    found: Array | None = quick(model, PARTIALS, motion) if wrench is None else None
    if found is not None:
        return found
    samples = Arguments(model, motion, loads=loads_of(model, wrench))
    model.kept(friction_laws)  # refuses those that are not of this package
    request = KernelRequest(PARTIALS, samples.K, samples.links)
    find = _of_tree if model.closure is None else _of_loops
    return samples.compute(partial(find, model, request), request.shape(model))


def _of_tree(model: RobotModel, request: KernelRequest, part: Batch, result: Array) -> bool:
    """Partial derivatives of the efforts of a tree; says whether all numbers are finite."""
    return bool(compute(model, request, part.motion, part.packed(), result))


def _of_loops(
    model: RobotModel, request: KernelRequest, part: Batch, result: Array
) -> bool:
    """Partial derivatives of the efforts of the independent joints of closed loops.

    With those P of the tree's efforts Q and the velocities G,

        sum_k G^T P_k binomial(k, j) G^(k-j)  +  binomial(m, j) (dG^T/du Q)^(m-j).
    """
    if not is_finite(part.motion):
        return False
    K, orders = request.K, request.K - 2
    closed, tree = ClosedMotion(model, part.motion), model.tree
    wrenches = wrenches_of(part.loads, orders)
    P = inverse_dynamics_derivatives(tree, closed.motion, wrenches)
    Q = inverse_dynamics(tree, closed.motion, wrenches)
    G, turning = closed.G(K), velocity_partials(model, part.motion, orders)
    transposed = Jet(np.swapaxes(dG, -1, -2) for dG in turning)
    of_Q = transposed @ Jet.along(Q[:, :, None, :, None], 1)
    for j in range(K):
        terms = [comb(k, j) * (P[..., k, :] @ G[k - j][:, None]) for k in range(j, K)]
        by_tree = np.moveaxis(np.sum(terms, axis=0), 1, 0)
        for m, block in enumerate(closed.projected([*by_tree])):
            if j <= m:
                block = block + comb(m, j) * np.swapaxes(of_Q[m - j][..., 0], -1, -2)
            result[:, m, :, j] = block
    return is_finite(result)
