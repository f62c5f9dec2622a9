"""Joint screws: (e, x cross e) turns about the unit axis e through x, (0, e) moves along e.

A helical joint does both: (e, x cross e + h e) with the pitch h. With the zero poses of the bodies
they are all that a model needs of its kinematics. Source: Mueller 2021, section II.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.errors import ModelError
from hodyn_ros.lie import se3
from hodyn_ros.model.description import Joint, Limits, Link, RobotDescription, check_limits
from hodyn_ros.model.inertia import GivenInertia, checked_inertia

Array = NDArray[np.float64]
T = TypeVar('T')

# A change of frames leaves rounding in the product of axis and moment of a zero-pitch screw.
PITCH_TOLERANCE = 1e-12
# Axes and rotations from printed tables are rounded; what is further off is a mistake.
AXIS_TOLERANCE = 1e-3
ROTATION_TOLERANCE = 1e-6

BASE_PARENT = -1


def pitches(X: Array) -> Array:
    """Pitches h of joint screws (e, x cross e + h e): the advance along the axis in one radian.

    Parameters
    ----------
    X : ndarray, shape (n_bodies, 6)
        Joint screws, their axes of unit length.

    Returns
    -------
    ndarray, shape (n_bodies,)
        [m/rad]; zero for revolute joints, also where a change of frames has left a pitch of the
        size of rounding, and for prismatic joints, which have none.
    """
    pitch: Array = (X[:, :3] * X[:, 3:]).sum(axis=1)
    pitch[np.abs(pitch) < PITCH_TOLERANCE * (1.0 + np.linalg.norm(X[:, 3:], axis=1))] = 0.0
    return pitch


def checked_screws(what: str, screws: ArrayLike) -> Array:
    """Joint screws with axes of exactly unit length and without rounding in place of a pitch.

    Parameters
    ----------
    what : str
        Name of the argument, for the messages.
    screws : array-like, shape (n, 6)

    Returns
    -------
    ndarray, shape (n, 6)

    Raises
    ------
    ModelError
        If the shape is wrong, a value is not finite, a screw is zero or its axis is not of unit
        length within 1e-3.
    """
    X = _numbers(what, screws)
    if X.ndim != 2 or X.shape[1] != 6 or len(X) == 0:
        raise ModelError(f'{what} has shape {X.shape}, expected (n, 6): one screw for each joint.')
    for i, screw in enumerate(X):
        turning = float(np.linalg.norm(screw[:3]))
        if turning < PITCH_TOLERANCE:
            screw[:3] = 0.0
        length = turning if turning >= PITCH_TOLERANCE else float(np.linalg.norm(screw[3:]))
        if length == 0.0:
            raise ModelError(f'{what}[{i}] is zero, expected a joint screw.')
        if abs(length - 1.0) > AXIS_TOLERANCE:
            raise ModelError(
                f'{what}[{i}] = {screw.tolist()} has an axis of length {length:.6g}, expected 1: '
                '(e, x cross e + h e) for a joint that turns, (0, e) for one that moves along e.'
            )
        screw /= length
        if screw[:3].any() and pitches(screw[None])[0] == 0.0:
            screw[3:] -= (screw[:3] @ screw[3:]) * screw[:3]
    return X


def checked_poses(what: str, poses: ArrayLike, n: int) -> Array:
    """Poses with exact rotations.

    Parameters
    ----------
    what : str
        Name of the argument, for the messages.
    poses : array-like, shape (n, 4, 4)
    n : int

    Returns
    -------
    ndarray, shape (n, 4, 4)

    Raises
    ------
    ModelError
        If the shape is wrong, a value is not finite, a last row is not (0, 0, 0, 1) or a rotation
        is further than 1e-6 from a right-handed orthonormal matrix.
    """
    C = _numbers(what, poses)
    if C.shape != (n, 4, 4):
        raise ModelError(
            f'{what} has shape {C.shape}, expected {(n, 4, 4)}: one pose for each body.'
        )
    for i, pose in enumerate(C):
        if not np.array_equal(pose[3], [0.0, 0.0, 0.0, 1.0]):
            raise ModelError(
                f'{what}[{i}] has the last row {pose[3].tolist()}, expected [0, 0, 0, 1].'
            )
        R = pose[:3, :3]
        error = np.abs(R.T @ R - np.eye(3)).max()
        if error > ROTATION_TOLERANCE or np.linalg.det(R) < 0.0:
            raise ModelError(
                f'{what}[{i}] does not hold a rotation: its columns must be orthonormal and '
                f'right-handed (they are off by {error:.2g}).'
            )
        if error > 1e-14:
            U, _, Vt = np.linalg.svd(R)
            pose[:3, :3] = U @ Vt
    return C


def body_fixed_from_spatial(
    Y: ArrayLike, A: ArrayLike, parents: Sequence[int] | None
) -> tuple[Array, Array]:
    """Body-fixed screws and relative zero poses from spatial screws and absolute zero poses.

    X_i = Ad_{A_i}^-1 Y_i and B_i = A_p(i)^-1 A_i, from the two forms of the product of
    exponentials (Mueller 2021, section II; Kumar and Mueller 2021, section II-A).

    Parameters
    ----------
    Y : array-like, shape (n, 6)
        Joint screws in the base frame at q = 0.
    A : array-like, shape (n, 4, 4)
        Poses of the bodies in the base frame at q = 0.
    parents : sequence of int, optional
        Index of the parent of each body, -1 for the base; by default a chain.

    Returns
    -------
    X : ndarray, shape (n, 6)
    B : ndarray, shape (n, 4, 4)

    Raises
    ------
    ModelError
    """
    Y = checked_screws('Y', Y)
    A = checked_poses('A', A, len(Y))
    X = (se3.Ad(se3.inverse(A)) @ Y[..., None])[..., 0]
    B = np.array(
        [
            A[i] if p == BASE_PARENT else se3.inverse(A[p]) @ A[i]
            for i, p in enumerate(checked_parents(parents, len(Y)))
        ]
    )
    return checked_screws('Y', X), B


def checked_parents(parents: Sequence[int] | None, n: int) -> list[int]:
    """Check the indices of the parents; by default they are those of a chain.

    Raises
    ------
    ModelError
        If there are not n of them or a parent does not precede its child.
    """
    if parents is None:
        return list(range(-1, n - 1))
    array = np.asarray(parents)
    if array.shape != (n,) or array.dtype.kind not in 'iu':
        raise ModelError(
            f'parents is {parents!r}, expected {n} integers: the index of the parent of each '
            'body, -1 for the base.'
        )
    for i, p in enumerate(array.tolist()):
        if not -1 <= p < i:
            raise ModelError(
                f'parents[{i}] is {p}, expected -1 (the base) or the index of an earlier body '
                f'(below {i}).'
            )
    return [int(p) for p in array]


def screw_description(
    X: Sequence[Array | None],
    B: Array,
    parents: Sequence[int] | None = None,
    inertias: Sequence[GivenInertia] | None = None,
    joint_names: Sequence[str] | None = None,
    link_names: Sequence[str] | None = None,
    limits: Sequence[Limits | None] | None = None,
    tool: ArrayLike | None = None,
    name: str = 'robot',
    base_link: str = 'base',
) -> RobotDescription:
    """Links and joints from body-fixed screws; see `RobotModel.from_body_screws`.

    Parameters
    ----------
    X : sequence of (ndarray of shape (6,) or None)
        Joint screws as `checked_screws` returns them; None for a fixed joint.
    B : ndarray, shape (n, 4, 4)
    parents, inertias, joint_names, link_names, limits, tool, name, base_link
        See `RobotModel.from_body_screws`.

    Returns
    -------
    RobotDescription

    Raises
    ------
    ModelError
    """
    n = len(X)
    parents = checked_parents(parents, n)
    joint_names = _one_each('joint_names', joint_names, n) or [f'joint{i + 1}' for i in range(n)]
    link_names = _one_each('link_names', link_names, n) or [f'link{i + 1}' for i in range(n)]
    links, joints = [Link(base_link)], []
    warnings: list[str] = []
    given_inertias = _one_each('inertias', inertias, n) or [None] * n
    given_limits = _one_each('limits', limits, n) or [None] * n
    for i, screw in enumerate(X):
        inertia, M_body, remarks = checked_inertia(f'Link {link_names[i]!r}', given_inertias[i])
        warnings += remarks
        links.append(Link(link_names[i], inertia.mass, M_body))
        joints.append(
            Joint(
                joint_names[i],
                _joint_type(screw),
                base_link if parents[i] == BASE_PARENT else link_names[parents[i]],
                link_names[i],
                B[i],
                limits=_limits(joint_names[i], given_limits[i]),
                screw=screw,
            )
        )
    if tool is not None:
        pose = checked_poses('tool', _numbers('tool', tool)[None], 1)[0]
        links.append(Link('tool'))
        joints.append(Joint('tool_joint', 'fixed', link_names[-1], 'tool', pose))
    return RobotDescription(name, tuple(links), tuple(joints), tuple(warnings), True)


def _joint_type(screw: Array | None) -> str:
    if screw is None:
        return 'fixed'
    if not screw[:3].any():
        return 'prismatic'
    return 'helical' if pitches(screw[None])[0] else 'revolute'


def _limits(joint: str, given: Limits | None) -> Limits:
    if given is None:
        return Limits()
    try:
        limits = Limits(*(float(value) for value in given))
    except (TypeError, ValueError) as error:
        raise ModelError(
            f'Joint {joint!r}: the limits are {given!r}, expected (lower, upper, velocity, '
            'effort).'
        ) from error
    check_limits(f'Joint {joint!r}', limits)
    return limits


def _one_each(what: str, values: Sequence[T] | None, n: int) -> list[T]:
    if values is None:
        return []
    if isinstance(values, str) or len(values) != n:
        raise ModelError(f'{what} has {len(values)} entries, expected {n}: one for each joint.')
    return list(values)


def _numbers(what: str, values: ArrayLike) -> Array:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ModelError(f'{what} is not an array of numbers: {error}') from error
    if not np.all(np.isfinite(array)):
        raise ModelError(f'{what} holds NaN or infinite values.')
    return array
