"""Body-fixed twists of all bodies and their time derivatives, and the poses of the bodies.

Forward recursion V_i = A_i V_p(i) + X_i qd_i and its derivatives of any order. Source: Kumar
and Mueller 2021, eq. (4), and Leibniz's rule for the derivatives, see `joints`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.kinematics.joints import JointTransforms
from hodyn_ros.lie import se3, so3
from hodyn_ros.model.robot import BASE, RobotModel

Array = NDArray[np.float64]


def body_twists(
    model: RobotModel,
    coordinates: Array,
    transforms: JointTransforms,
    base_acceleration: Array | None = None,
) -> list[Array]:
    """Twists of all bodies in their own frames, with time derivatives.

    Parameters
    ----------
    model : RobotModel
    coordinates : ndarray, shape (N, K, n_bodies)
        Joint motions of the bodies, K >= 2.
    transforms : JointTransforms
        Of the same coordinates.
    base_acceleration : ndarray, shape (3,), optional
        Linear acceleration of the base [m/s^2]. Minus the gravitational acceleration makes the
        inertia forces include the weight; the twists are then not the kinematic ones.

    Returns
    -------
    list of ndarray, shape (N, K-1, 6)
        For every body: entry k is the k-th time derivative of its twist (omega, v).
    """
    K = coordinates.shape[1]
    base = np.zeros((1, K - 1, 6))
    if base_acceleration is not None and K > 2:
        base[:, 1, 3:] = base_acceleration
    twists: list[Array] = []
    for i, p in enumerate(model.parent):
        V = transforms.to_body(i, base if p == BASE else twists[p])
        V = V + coordinates[:, 1:, i, None] * model.X[i]
        twists.append(V)
    return twists


def body_poses(model: RobotModel, positions: Array) -> list[Array]:
    """Poses of all bodies in the base frame.

    Source: local product of exponentials, Kumar and Mueller 2021, section II-A:
    C_i = C_p(i) B_i exp(X_i q_i).

    Parameters
    ----------
    model : RobotModel
    positions : ndarray, shape (N, n_bodies)
        Joint positions of the bodies.

    Returns
    -------
    list of ndarray, shape (N, 4, 4)
    """
    poses: list[Array] = []
    for i, p in enumerate(model.parent):
        relative = model.B[i] @ _joint_pose(model.X[i], positions[:, i])
        poses.append(relative if p == BASE else poses[p] @ relative)
    return poses


def _joint_pose(X: Array, q: Array) -> Array:
    """Motion exp(X q) along a joint screw, its rotation from sine and cosine of q itself.

    The length of the vector e q would be rounded, which matters for angles of many turns.

    Parameters
    ----------
    X : ndarray, shape (6,)
    q : ndarray, shape (N,)

    Returns
    -------
    ndarray, shape (N, 4, 4)
    """
    e, moment = X[:3], X[3:]
    if not e.any():
        return se3.pose(np.eye(3), q[:, None] * moment)
    E = so3.hat(e)
    turn = np.sin(q)[:, None, None] * E + 2.0 * (np.sin(0.5 * q) ** 2)[:, None, None] * (E @ E)
    # About the axis through e x moment, with the pitch e . moment.
    advance = q[:, None] * (e @ moment * e)
    return se3.pose(np.eye(3) + turn, advance - turn @ np.cross(e, moment))
