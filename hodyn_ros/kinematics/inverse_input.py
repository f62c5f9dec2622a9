"""Input of the inverse kinematics: checked, and in one form."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.errors import HodynError, MotionError
from hodyn_ros.kinematics.forward import EXPRESSIONS, LinkMotion
from hodyn_ros.kinematics.redundancy import JointTask, LeastNorm, TaskSystem
from hodyn_ros.lie import leibniz
from hodyn_ros.lie.so3 import cross
from hodyn_ros.model.robot import RobotModel

Array = NDArray[np.float64]


def hybrid_link_motion(
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


def sorted_redundancy(
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


def joint_task_values(joint_tasks: Sequence[JointTask], batch: tuple[int, ...], K: int) -> Array:
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


def starting_positions(
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


def checked_times(times: ArrayLike | None, T: int, system: TaskSystem) -> Array:
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
