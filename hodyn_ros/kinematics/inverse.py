"""Inverse kinematics of any order: joint motions from the motion of a link (public entry).

Sources: Mueller 2021, section IV and Algorithm 2 (corrected, see `inverse_orders`); remark 2 there
on redundant arms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.errors import HodynError, MotionError
from hodyn_ros.kinematics.forward import EXPRESSIONS, LinkMotion
from hodyn_ros.kinematics.inverse_problem import InverseKinematicsOptions, InverseProblem
from hodyn_ros.kinematics.jacobian import link_or_tip
from hodyn_ros.kinematics.redundancy import (
    TASK_ROWS,
    Criterion,
    JointTask,
    LeastNorm,
    TaskSystem,
)
from hodyn_ros.lie import leibniz
from hodyn_ros.lie.so3 import cross
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
    pose, V = _hybrid_link_motion(link_motion, expressed_in)
    batch, K = pose.shape[:-2], V.shape[-2] + 1
    criteria, joint_tasks = _sorted_redundancy(redundancy)
    system = TaskSystem.of(model, link, task, joint_tasks, options.length)
    criterion = None
    if system.redundancy > 0:
        criterion = Criterion.of(model, criteria[0] if criteria else LeastNorm())

    M, T = (int(np.prod(batch[:-1])), batch[-1]) if batch else (1, 1)
    c = _joint_task_values(joint_tasks, batch, K)
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
    guesses = _starting_positions(model, guess, batch)
    problem.check_ignored_rotations()
    problem.check_joint_tasks()
    if criterion is not None and K > 1 and T > 1:
        q, iterations, residual = problem.least_norm_positions(
            _checked_times(times, T, system), guesses
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


def _hybrid_link_motion(
    link_motion: LinkMotion | tuple[ArrayLike, ArrayLike], expressed_in: str
) -> tuple[Array, Array]:
    """Check a link motion and bring its twist into the hybrid expression.

    Parameters
    ----------
    link_motion, expressed_in
        As in `inverse_kinematics`.

    Returns
    -------
    pose : ndarray, shape (..., 4, 4)
    V : ndarray, shape (..., K-1, 6)

    Raises
    ------
    MotionError
    HodynError
        If the expression is unknown.
    """
    if expressed_in not in EXPRESSIONS:
        raise HodynError(
            f'expressed_in is {expressed_in!r}, expected one of {", ".join(EXPRESSIONS)}.'
        )
    if not isinstance(link_motion, (tuple, list)) or len(link_motion) != 2:
        raise MotionError(
            f'link_motion is of type {type(link_motion).__name__}, expected a LinkMotion or a '
            'pair of a pose of shape (..., 4, 4) and a twist of shape (..., K-1, 6).'
        )
    pose = numbers(link_motion[0], 'pose', '(..., 4, 4)')
    V = numbers(link_motion[1], 'twist', '(..., K-1, 6)')
    if pose.ndim < 2 or pose.shape[-2:] != (4, 4):
        raise MotionError(f'The pose has shape {pose.shape}, expected (..., 4, 4).')
    if V.ndim < 2 or V.shape[-1] != 6 or V.shape[:-2] != pose.shape[:-2]:
        expected = ', '.join([*map(str, pose.shape[:-2]), 'K-1', '6'])
        raise MotionError(
            f'The twist has shape {V.shape}, expected ({expected}): leading axes as those of the '
            f'pose, whose shape is {pose.shape}, and (omega, v) with derivatives.'
        )
    pose = checked_pose(pose)
    if V.shape[-2] == 0 or expressed_in == 'hybrid':
        return pose, V
    omega, v = V[..., :3], V[..., 3:]
    if expressed_in == 'body':
        R_transposed = np.swapaxes(pose[..., :3, :3], -1, -2)
        parts = [leibniz.from_moving_frame(y, omega, cross) @ R_transposed for y in (omega, v)]
        return pose, np.concatenate(parts, axis=-1)
    # The velocity of the link origin is v + omega x r; its derivatives give those of r in turn.
    r = pose[..., None, :3, 3]
    for k in range(V.shape[-2]):
        turned = leibniz.bilinear(cross, omega, r, k + 1)[..., k, :]
        r = np.concatenate([r, (v[..., k, :] + turned)[..., None, :]], axis=-2)
    return pose, np.concatenate([omega, r[..., 1:, :]], axis=-1)


def numbers(values: ArrayLike, what: str, shape: str) -> Array:
    """Convert to an array of finite numbers; `what` and its `shape` are for the message.

    Raises
    ------
    MotionError
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise MotionError(f'The {what} is not an array of numbers {shape}: {error}') from error
    if not np.all(np.isfinite(array)):
        where = tuple(int(index) for index in np.argwhere(~np.isfinite(array))[0])
        raise MotionError(
            f'The {what} holds {array[where]} at index {where}; all values must be finite.'
        )
    return array


def checked_pose(pose: Array) -> Array:
    """Poses with exact rotations, refused if they are no poses."""
    R = pose[..., :3, :3]
    if not np.allclose(pose[..., 3, :], [0.0, 0.0, 0.0, 1.0], rtol=0.0, atol=1e-9):
        raise MotionError('The last row of a pose is not (0, 0, 0, 1).')
    deviation = np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(3)).max(axis=(-1, -2), initial=0.0)
    wrong = (deviation > 1e-6) | (np.linalg.det(R) < 0.0)
    if np.any(wrong):
        where = tuple(int(index) for index in np.argwhere(wrong)[0])
        raise MotionError(
            f'The rotation in the pose{f" at index {where}" if where else ""} is not orthogonal '
            f'and right-handed: transpose(R) R differs from the identity by {deviation[where]:.3g}'
            f', det(R) = {np.linalg.det(R)[where]:.6g}; expected at most 1e-6 and 1.'
        )
    # What rounding in a file left does not limit the accuracy of the joint positions.
    U, _, Vt = np.linalg.svd(R)
    pose = pose.copy()
    pose[..., :3, :3] = U @ Vt
    return pose


def _sorted_redundancy(
    redundancy: LeastNorm | JointTask | Sequence[LeastNorm | JointTask],
) -> tuple[list[LeastNorm], list[JointTask]]:
    """Tell the criteria, at most one, from the joint tasks.

    Raises
    ------
    HodynError
    """
    listed = [redundancy] if isinstance(redundancy, (LeastNorm, JointTask)) else list(redundancy)
    criteria = [item for item in listed if isinstance(item, LeastNorm)]
    joint_tasks = [item for item in listed if isinstance(item, JointTask)]
    if len(criteria) > 1 or len(criteria) + len(joint_tasks) < len(listed):
        raise HodynError(
            f'redundancy holds {", ".join(type(item).__name__ for item in listed)}; expected '
            'JointTask and at most one LeastNorm.'
        )
    return criteria, joint_tasks


def _joint_task_values(joint_tasks: Sequence[JointTask], batch: tuple[int, ...], K: int) -> Array:
    """Bring the values of all joint tasks together, shape (*batch, K, p).

    Raises
    ------
    MotionError
    """
    c = np.zeros((*batch, K, len(joint_tasks)))
    for index, joint_task in enumerate(joint_tasks):
        values = np.asarray(joint_task.values)
        try:
            if values.shape[-1] != K:
                raise ValueError
            c[..., index] = np.broadcast_to(values, (*batch, K))
        except ValueError:
            raise MotionError(
                f'Joint task on {joint_task.joints!r}: the values have shape {values.shape}, '
                f'expected one that broadcasts to {(*batch, K)}: as many orders as the joint '
                'motion, one more than the twist.'
            ) from None
    return c


def _starting_positions(
    model: RobotModel, guess: ArrayLike | None, batch: tuple[int, ...]
) -> Array:
    """Give each trajectory a guess, shape (M, 1, n), or each sample, shape (M, T, n).

    Raises
    ------
    MotionError
    """
    n = model.n_joints
    M, T = (int(np.prod(batch[:-1])), batch[-1]) if batch else (1, 1)
    if guess is None:
        lower, upper = model.limits.lower, model.limits.upper
        bounded = np.isfinite(lower) & np.isfinite(upper)
        middle = np.clip(0.0, lower, upper)
        middle[bounded] = 0.5 * (lower + upper)[bounded]
        return np.broadcast_to(middle, (M, 1, n))
    array = numbers(guess, 'guess', f'(..., {n})')
    shape: tuple[int, ...] = (M, 1, n)
    if array.ndim > 1 and batch:
        samples = array.shape[-2]
        shape = (*batch[:-1], samples, n)
        usable = samples in (1, T)
    else:
        usable = array.ndim == 1
    try:
        if not usable:
            raise ValueError
        return np.broadcast_to(array, shape).reshape(M, shape[-2], n)
    except ValueError:
        raise MotionError(
            f'The guess has shape {array.shape}, expected ({n},)'
            + (f' or one that broadcasts to {(*batch[:-1], f"{T} or 1", n)}.' if batch else '.')
        ) from None


def _checked_times(times: ArrayLike | None, T: int, system: TaskSystem) -> Array:
    """Check the times of the T samples, which must be given and increase.

    Raises
    ------
    HodynError
        If they are not given.
    MotionError
    """
    if times is None:
        raise HodynError(
            f'{len(system.unknown)} joints fulfil {system.n_rows} equations in many ways. Where a '
            'least norm of the velocities decides, the positions depend on the path: give the '
            f'times of the samples, shape ({T},), or a JointTask for each of the '
            f'{system.redundancy} open joints.'
        )
    array = numbers(times, 'array of times', f'({T},)')
    if array.shape != (T,) or not np.all(np.diff(array) > 0.0):
        raise MotionError(
            f'The times have shape {array.shape}, expected ({T},), increasing [s]: one for each '
            'sample of a trajectory.'
        )
    return array
