"""Joint motions as arguments, checked, and as motions of all bodies' joints."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.checks import (
    MOST_DERIVATIVES,
    check_choice,
    exact_poses,
    finite_array,
    first_not_finite,
)
from hodyn_ros.errors import HodynError, ModelError, MotionError
from hodyn_ros.model.mechanism import Mechanism
from hodyn_ros.names import EXPRESSIONS, listed
from hodyn_ros.typing import Array


def motion_array(model: Mechanism, motion: ArrayLike, lowest_K: int = 3) -> NDArray[Any]:
    """Motion as an array of real numbers, of whatever type it has.

    Parameters
    ----------
    model : RobotModel
    motion : array-like, shape (..., K, n)
        Time derivatives of the joint positions in model order.
    lowest_K : int
        How many of them are needed.

    Returns
    -------
    ndarray, shape (..., K, n)
        Not copied where the motion is an array. Values are not looked at.

    Raises
    ------
    MotionError
        If the model is none, or the motion is masked, not of real numbers, or of a wrong shape; or
        of shape (N, n) with N > 10, which is positions over time rather than N derivatives.
    """
    if not hasattr(model, 'n_joints'):
        raise MotionError(
            f'The model is of type {type(model).__name__}, expected a RobotModel, for example '
            'from RobotModel.from_urdf.'
        )
    expected = f'(..., K, {model.n_joints}) with K >= {lowest_K}'
    try:
        array = np.asarray(motion)
    except ValueError as error:
        raise MotionError(
            f'The motion is not an array of numbers ({error}); expected shape {expected}.'
        ) from error
    if isinstance(motion, np.ma.MaskedArray):
        raise MotionError(
            'The motion is a masked array, whose masked values would be used; fill them '
            '(motion.filled(...)) or leave out their samples.'
        )
    if array.dtype.kind not in 'fiu':
        raise MotionError(
            f'The motion has elements of type {array.dtype}, expected real numbers of shape '
            f'{expected}.'
        )
    if array.ndim < 2 or array.shape[-1] != model.n_joints or array.shape[-2] < lowest_K:
        raise MotionError(
            f'The motion has shape {array.shape}, expected {expected}: positions, velocities, '
            f'accelerations and so on along the axis before the last, the {model.n_joints} joints '
            f'{listed(model.joint_names)} along the last. Of arrays of shape ({model.n_joints},) '
            f'or (N, {model.n_joints}) it is {stacked(lowest_K)}.'
        )
    if array.ndim == 2 and len(array) > MOST_DERIVATIVES:
        raise MotionError(
            f'The motion has shape {array.shape}, which is {len(array)} derivatives of one '
            f'instant. Samples go first, expected {expected}: of arrays of shape '
            f'(N, {model.n_joints}) it is {stacked(max(lowest_K, 1))}, of positions over time '
            'alone see hodyn_ros.trajectory.fit_spline. If so many derivatives are meant, give '
            'them a leading axis: motion[np.newaxis].'
        )
    return array


def stacked(K: int = 3) -> str:
    """Expression for a motion of K arrays, for messages."""
    return f'np.stack([{", ".join("qva"[:K])}], axis=-2)'


def end_links(model: Mechanism) -> list[str]:
    """Links of the bodies that carry no other body, in the order of `Mechanism.links`."""
    ends = set(range(model.n_bodies)) - set(model.parent.tolist())
    return [name for name, frame in model.links.items() if frame.body in ends]


def link_or_tip(model: Mechanism, link: str | None) -> str:
    """Name of the link that is meant, by default the tip of the chain.

    Raises
    ------
    ModelError
        If the link does not exist, or none is named and the model is a tree without a tip.
    """
    link = model.tip_link if link is None else link
    if link is None:
        raise ModelError(
            f'{model.name} has no tip link, since several links are the last of their branch: '
            f'name a link. At the ends are {listed(end_links(model))}; its links are '
            f'{listed(model.links)}.'
        )
    model.link(link)
    return link


def checked_motion(model: Mechanism, motion: ArrayLike, lowest_K: int = 3) -> Array:
    """Motion as a float64 array of finite values.

    Parameters
    ----------
    model : RobotModel
    motion : array-like, shape (..., K, n)
    lowest_K : int
        How many time derivatives are needed, the position included.

    Raises
    ------
    MotionError
        As `motion_array`, and if a value is NaN or infinite.
    """
    array = np.asarray(motion_array(model, motion, lowest_K), dtype=np.float64)
    refuse_not_finite(model, array)
    return array


def refuse_not_finite(
    model: Mechanism, motion: Array, batch: tuple[int, ...] | None = None, first: int = 0
) -> None:
    """Refuse a motion (..., K, n) that holds NaN or infinite values.

    If it is a part (N, K, n) of a larger one, `batch` are the leading axes of that, and `first` is
    which of its samples is the first of the part.
    """
    where = first_not_finite(motion)
    if where is None:
        return
    value = motion[where]
    if batch is not None:
        leading = np.unravel_index(first + where[0], batch)
        where = (*(int(index) for index in leading), *where[1:])
    raise MotionError(
        f'The motion holds {value} at index {where} (derivative {where[-2]} of joint '
        f'{model.joint_names[where[-1]]!r}); all values must be finite.'
    )


def checked_link_motion(
    link_motion: tuple[ArrayLike, ArrayLike], expressed_in: str
) -> tuple[Array, Array]:
    """Pose, made exact, and twist of a link motion.

    Parameters
    ----------
    link_motion : LinkMotion or (pose, twist)
        Shapes (..., 4, 4) and (..., K-1, 6), with the same leading axes.
    expressed_in : str
        Expression of the twist; only checked here.

    Returns
    -------
    pose : ndarray, shape (..., 4, 4)
        With rotations freed of rounding, see `checks.exact_poses`.
    V : ndarray, shape (..., K-1, 6)

    Raises
    ------
    MotionError
        If a shape does not fit, a value is not finite, or a pose is not one.
    HodynError
        If the expression is unknown.
    """
    check_choice('expressed_in', expressed_in, EXPRESSIONS, HodynError)
    if not isinstance(link_motion, (tuple, list)) or len(link_motion) != 2:
        raise MotionError(
            f'link_motion is of type {type(link_motion).__name__}, expected a LinkMotion or a '
            'pair of a pose of shape (..., 4, 4) and a twist of shape (..., K-1, 6).'
        )
    pose = finite_array('The pose', link_motion[0], MotionError)
    V = finite_array('The twist', link_motion[1], MotionError)
    if pose.ndim < 2 or pose.shape[-2:] != (4, 4):
        raise MotionError(f'The pose has shape {pose.shape}, expected (..., 4, 4).')
    if V.ndim < 2 or V.shape[-1] != 6 or V.shape[:-2] != pose.shape[:-2]:
        expected = ', '.join([*map(str, pose.shape[:-2]), 'K-1', '6'])
        raise MotionError(
            f'The twist has shape {V.shape}, expected ({expected}): leading axes as those of the '
            f'pose, whose shape is {pose.shape}, and (omega, v) with derivatives.'
        )
    return exact_poses('The pose', pose, MotionError), V


def checked_result(result: Array, motion: Array) -> Array:
    """Result of a computation along a motion; a `MotionError` if it overflows.

    Parameters
    ----------
    result : ndarray
        Any shape; NaN counts as an overflow, since the motion has been checked.
    motion : ndarray
        Whose largest value the message has.
    """
    if not np.all(np.isfinite(result)):
        raise overflow(motion)
    return result


def overflow(motion: Array) -> MotionError:
    """Error for a result along a motion that is not finite, though the motion is."""
    return MotionError(
        'The result overflows: the motion or a wrench holds values that are too large (largest '
        f'in the motion {np.abs(motion).max():.3g}).'
    )


def body_coordinates(model: Mechanism, motion: Array) -> Array:
    """Joint motion of every body (..., K, n_bodies) from that of the independent joints.

    A mimic joint q_m = a q_j + b has q_m^(k) = a q_j^(k).

    Parameters
    ----------
    model : RobotModel
    motion : ndarray, shape (..., K, n)
        Time derivatives of the positions of the independent joints, K >= 1.
    """
    coordinates: Array = motion.take(model.coordinate, axis=-1) * model.multiplier
    coordinates[..., 0, :] += model.offset
    return coordinates


def independent_efforts(model: Mechanism, body_efforts: Array) -> Array:
    """Efforts of the independent joints (..., n) from those of all bodies' joints.

    The effort of a mimic joint adds to the joint that it follows, times its multiplier.
    """
    efforts: Array = body_efforts @ selection_of(model)
    return efforts


def selection_of(model: Mechanism) -> Array:
    """Matrix (n_bodies, n) that maps velocities of the independent joints to those of all bodies.

    Constant: row i has the multiplier of body i in the column of the joint that moves it.
    """
    selection = np.zeros((model.n_bodies, model.n_joints))
    selection[np.arange(model.n_bodies), model.coordinate] = model.multiplier
    return selection
