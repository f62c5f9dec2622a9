"""Geometric Jacobian of a link and its time derivatives of any order (public entry)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import check_choice
from hodyn_ros.engine.engine import compute, quick
from hodyn_ros.engine.requests import JACOBIAN, KernelRequest
from hodyn_ros.errors import HodynError
from hodyn_ros.kinematics.motions import checked_motion, checked_result, link_or_tip
from hodyn_ros.lie import Jet
from hodyn_ros.model.mechanism import BASE, Mechanism
from hodyn_ros.names import EXPRESSIONS
from hodyn_ros.typing import Array


def jacobian(
    model: Mechanism,
    motion: ArrayLike,
    link: str | None = None,
    expressed_in: str = 'body',
) -> Array:
    """Jacobian of a link, V = J qd, and its time derivatives along a motion.

    Parameters
    ----------
    model : RobotModel
    motion : array-like, shape (..., K, n)
        Time derivatives of the joint positions in model order, K >= 1. K = 1 gives J alone.
    link : str, optional
        By default the tip of the chain.
    expressed_in : {'body', 'spatial', 'hybrid'}
        As in `forward_kinematics`. The derivatives are those of the entries of the matrix in this
        expression.

    Returns
    -------
    ndarray, shape (..., K, 6, n)
        `[..., m, :, :]` is the m-th time derivative of the matrix that maps the n joint velocities
        to the twist (omega, v). A mimic joint adds to the column of the joint that it follows,
        times its multiplier; joints that do not move the link have zero columns.

    Raises
    ------
    MotionError
        If the motion has a wrong shape or holds NaN or infinite values, or the result overflows.
    ModelError
        If the link does not exist or must be named.
    HodynError
        If the expression is unknown.

    Notes
    -----
    The columns are the screws of the joints, Mueller 2021, eqs. (7)-(9). Calls are answered as
    those of `forward_kinematics`. J and its first derivative agree with Pinocchio's
    getFrameJacobian and getFrameJacobianTimeVariation in all three expressions.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel, jacobian
    >>> model = RobotModel.from_urdf('two_link')
    >>> J, Jd = jacobian(model, [[0.0, np.pi / 2], [1.0, 0.0]], 'tool', 'hybrid')
    >>> J[[3, 5]].round(3) + 0.0, Jd[[3, 5]].round(3) + 0.0
    (array([[-0.5, -0.5],
           [ 0.7,  0. ]]), array([[-0.7,  0. ],
           [-0.5, -0.5]]))
    """
    found = quick(model, (JACOBIAN, link, expressed_in), motion)
    if found is not None:
        return np.asarray(found[1])
    motion = checked_motion(model, motion, lowest_K=1)
    check_choice('expressed_in', expressed_in, EXPRESSIONS, HodynError)
    samples = motion.reshape(-1, *motion.shape[-2:])
    _, J = pose_and_jacobian(model, link_or_tip(model, link), samples, expressed_in)
    return checked_result(J.reshape(*motion.shape[:-1], 6, model.n_joints), motion)


def pose_and_jacobian(
    model: Mechanism, link: str, motion: Array, expressed_in: str
) -> tuple[Array, Array]:
    """Pose of a link in the base link, and its Jacobian with time derivatives.

    Parameters
    ----------
    model : RobotModel
    link : str
    motion : ndarray, shape (N, K, n)
        Checked already.
    expressed_in : {'body', 'spatial', 'hybrid'}

    Returns
    -------
    pose : ndarray, shape (N, 4, 4)
    J : ndarray, shape (N, K, 6, n)
        Columns of joints that do not move the link are zero.

    Raises
    ------
    MotionError
        Where closed loops do not close.
    """
    N, K, n = motion.shape
    if model.closure is not None:
        # Loaded for those few robots that have loops.
        from hodyn_ros.kinematics.closed_loops import velocities

        whole, G = velocities(model, motion)
        pose, J = pose_and_jacobian(model.tree, link, whole, expressed_in)
        return pose, (Jet.along(J, 1) @ G).array(1)
    found = quick(model, (JACOBIAN, link, expressed_in), motion)
    if found is not None:
        pose, J = found
        return pose, J
    pose, J = np.empty((N, 4, 4)), np.zeros((N, K, 6, n))
    body, frame = model.link(link)
    if body == BASE:
        pose[:] = frame
    else:
        request = KernelRequest(JACOBIAN, K, link=link, expressed_in=expressed_in)
        compute(model, request, np.ascontiguousarray(motion), pose, J)
    return pose, J
