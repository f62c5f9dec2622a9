"""Geometric Jacobian of a link and its time derivatives of any order.

The columns are the joint screws, seen in the expression of the twist: with the axis e and the
velocity w of the origin in the axes of its body (X = (e, w)), the rotation R_i and the origin r_i
of the body, joint i turns the link with R_i e and moves a point p of it with R_i w + R_i e x
(p - r_i). Over the poses as jets, this is the Jacobian with all derivatives.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import Array, check_choice
from hodyn_ros.errors import HodynError
from hodyn_ros.kinematics.motions import (
    body_coordinates,
    checked_motion,
    link_or_tip,
    selection_of,
)
from hodyn_ros.kinematics.poses import (
    blocks,
    bodies_to,
    cross,
    part,
    poses_in_base,
    rotations_and_origins,
    transpose,
)
from hodyn_ros.lie import Jet
from hodyn_ros.model.mechanism import Mechanism
from hodyn_ros.names import EXPRESSIONS


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
        If the motion has a wrong shape or holds NaN or infinite values.
    ModelError
        If the link does not exist or must be named.
    HodynError
        If the expression is unknown.

    Notes
    -----
    J and its first derivative agree with Pinocchio's getFrameJacobian and
    getFrameJacobianTimeVariation in all three expressions.
    """
    motion = checked_motion(model, motion, lowest_K=1)
    check_choice('expressed_in', expressed_in, EXPRESSIONS, HodynError)
    link = link_or_tip(model, link)
    batch, (K, n) = motion.shape[:-2], motion.shape[-2:]
    samples = motion.reshape(-1, K, n)
    J = np.empty((len(samples), K, 6, n))
    for block in blocks(len(samples), 64 * model.n_bodies):
        _, of_block = pose_and_jacobian(model, link, samples[block], expressed_in)
        J[block] = of_block.array(1)
    return J.reshape(*batch, K, 6, n)


def pose_and_jacobian(
    model: Mechanism, link: str, motion: Array, expressed_in: str
) -> tuple[Array, Jet]:
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
    J : Jet of ndarray, shape (N, 6, n)
        K entries. Columns of joints that do not move the link are zero.

    Raises
    ------
    MotionError
        Where closed loops do not close.
    """
    if model.closure is not None:
        # Loaded for those few robots that have loops.
        from hodyn_ros.kinematics.closed_loops import ClosedMotion

        closed, tree = ClosedMotion(model, motion), model.closure.tree
        pose, J = pose_and_jacobian(tree, link, closed.motion, expressed_in)
        return pose, J @ Jet(closed.G(motion.shape[1]))
    frame, path = model.link(link).pose, bodies_to(model, link)
    if not path:
        pose = np.broadcast_to(frame, (len(motion), 4, 4))
        return pose, Jet(np.zeros((motion.shape[1], len(motion), 6, model.n_joints)))
    C = poses_in_base(model, Jet.along(body_coordinates(model, motion), 1), path)
    R, r = rotations_and_origins(C)
    poses = part(C, np.s_[:, -1:]) @ frame
    turn, p = rotations_and_origins(poses)
    X = R @ np.stack(
        [model.X[path, :3], model.X[path, 3:]], axis=-1
    )  # halves of the screws
    omega, v = (part(X, np.s_[..., half]) for half in range(2))
    v = v + cross(omega, -r if expressed_in == 'spatial' else p - r)
    columns = Jet(np.stack(halves, axis=-1) for halves in zip(omega, v))
    if expressed_in == 'body':
        columns = transpose(turn) @ columns
    selection, shape = selection_of(model)[path], (len(motion), 6, len(path))
    # From (N, bodies, 3, halves) to (N, 6, joints).
    rows = (x.transpose(0, 3, 2, 1).reshape(shape) for x in columns)
    return poses[0][:, 0], Jet(x @ selection for x in rows)
