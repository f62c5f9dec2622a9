"""Inverse kinematics of any order: joint motions from the motion of a link (public entry).

Sources: Mueller 2021, section IV and Algorithm 2 (corrected, see `inverse_orders`); remark 2 there
on redundant arms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.kinematics.forward import LinkMotion
from hodyn_ros.kinematics.inverse_input import (
    checked_times,
    hybrid_link_motion,
    joint_task_values,
    sorted_redundancy,
    starting_positions,
)
from hodyn_ros.kinematics.inverse_problem import InverseKinematicsOptions, InverseProblem
from hodyn_ros.kinematics.jacobian import link_or_tip
from hodyn_ros.kinematics.redundancy import (
    TASK_ROWS,
    Criterion,
    JointTask,
    LeastNorm,
    TaskSystem,
)
from hodyn_ros.model.robot import RobotModel

__all__ = [
    'InverseKinematicsOptions',
    'InverseKinematicsSolution',
    'JointTask',
    'LeastNorm',
    'inverse_kinematics',
]

Array = NDArray[np.float64]


class InverseKinematicsSolution(NamedTuple):
    """Joint motion that produces a link motion, and how well it is determined."""

    motion: Array
    """Joint positions and derivatives in model order, shape (..., K, n) [rad/s^k] or [m/s^k]."""
    iterations: NDArray[np.intp]
    """Iterations for the position, shape (...)."""
    residual: Array
    """Length of the remaining error of the pose and of the joint tasks, shape (...); angles in
    [rad], lengths divided by the characteristic length."""
    singular_value: Array
    """Smallest singular value of the dimensionless Jacobian of the task, shape (...)."""
    manipulability: Array
    """Product of all its singular values (Yoshikawa's measure), shape (...)."""


def inverse_kinematics(
    model: RobotModel,
    link_motion: LinkMotion | tuple[ArrayLike, ArrayLike],
    link: str | None = None,
    expressed_in: str = 'body',
    *,
    guess: ArrayLike | None = None,
    task: Sequence[str] = TASK_ROWS,
    redundancy: LeastNorm | JointTask | Sequence[LeastNorm | JointTask] = (),
    times: ArrayLike | None = None,
    options: InverseKinematicsOptions | None = None,
) -> InverseKinematicsSolution:
    """Joint positions and their time derivatives, of any order, from the motion of a link.

    Parameters
    ----------
    model : RobotModel
    link_motion : LinkMotion or (pose, twist)
        Pose of the link in the base link, shape (..., 4, 4) [m], and its twist (omega, v) with
        time derivatives, shape (..., K-1, 6) [rad/s^k] and [m/s^k], K >= 1, as
        `forward_kinematics` returns them. The last of the leading axes is the order in time of the
        samples of a trajectory; there may be several trajectories.
    link : str, optional
        By default the tip of the chain.
    expressed_in : {'body', 'spatial', 'hybrid'}
        Expression of the twist, as in `forward_kinematics`. The derivatives are those of its
        coordinates.
    guess : array-like, shape (n,) or (..., T or 1, n), optional
        Where the search for the joint positions starts; by default the middle of the limits. One
        for each trajectory (each further sample starts from the one before), or one for each of
        the T samples of a trajectory, which are then independent of each other (but a least norm
        along times starts from the first). Joints that do not move the link stay there.
    task : sequence of str
        What of the motion is prescribed: rotation about (rx, ry, rz) and translation along (x, y,
        z) the axes of the base link. The other rows of the hybrid twist are ignored. A planar arm
        has ('x', 'y', 'rz') or ('x', 'y'). Of the rotations, all or none, except for arms that
        cannot turn the link about the axes left out.
    redundancy : JointTask, LeastNorm or a sequence of them
        What determines the joints if there are more of them than rows: prescribed motions of
        joints, which make each sample an algebraic problem of its own, and a weighted least norm
        of the velocities, the default.
    times : array-like, shape (T,), optional
        Times of the samples [s], increasing. Needed where a least norm decides and T > 1: the
        joint positions then solve a differential equation from the first sample on.
    options : InverseKinematicsOptions, optional

    Returns
    -------
    InverseKinematicsSolution
        The derivatives are those of one smooth motion q(t) through the position of the sample.

    Raises
    ------
    MotionError
        If an array has a wrong shape, holds NaN or infinite values, or a pose is not one.
    ModelError
        If the link does not exist or must be named.
    InverseKinematicsError
        If no solution within the limits was found.
    SingularityError
        If K > 1 and a configuration is close to singular.
    HodynError
        If a choice is unknown or contradicts the model.

    Notes
    -----
    A task without redundancy is solved exactly: Mueller 2021, Algorithm 2, with misprints
    corrected (see `inverse_orders`). Where a trajectory passes a sample with another solution
    nearby, close samples keep the iteration on the same branch.
    """
    options = InverseKinematicsOptions() if options is None else options
    link = link_or_tip(model, link)
    pose, V = hybrid_link_motion(link_motion, expressed_in)
    batch, K = pose.shape[:-2], V.shape[-2] + 1
    criteria, joint_tasks = sorted_redundancy(redundancy)
    system = TaskSystem.of(model, link, task, joint_tasks, options.length)
    criterion = None
    if system.redundancy > 0:
        criterion = Criterion.of(model, criteria[0] if criteria else LeastNorm())

    M, T = (int(np.prod(batch[:-1])), batch[-1]) if batch else (1, 1)
    c = joint_task_values(joint_tasks, batch, K)
    problem = InverseProblem(
        model,
        system,
        criterion,
        options,
        batch,
        pose.reshape(M, T, 4, 4),
        V.reshape(M, T, K - 1, 6),
        c.reshape(M, T, K, len(joint_tasks)),
    )
    guesses = starting_positions(model, guess, batch)
    problem.check_ignored_rotations()
    problem.check_joint_tasks()
    if criterion is not None and K > 1 and T > 1:
        q, iterations, residual = problem.least_norm_positions(
            checked_times(times, T, system), guesses
        )
    else:
        q, iterations, residual = problem.positions(guesses)
    motion, singular_values = problem.derivatives(q)
    return InverseKinematicsSolution(
        motion.reshape(*batch, K, model.n_joints),
        iterations.reshape(batch),
        residual.reshape(batch),
        singular_values.min(axis=-1).reshape(batch),
        singular_values.prod(axis=-1).reshape(batch),
    )
