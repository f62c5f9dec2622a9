"""Rigid-body motions: the group SE(3), twists, wrenches and screws.

Poses are homogeneous 4x4 matrices. Twists are (omega, v) and wrenches (moment, force): the angular
part comes first. All functions take any leading batch axes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.lie.so3 import cross, hat

Array = NDArray[np.float64]


def pose(rotation: ArrayLike, translation: ArrayLike) -> Array:
    """Homogeneous matrix of a rotation and a translation.

    Parameters
    ----------
    rotation : array-like, shape (..., 3, 3)
    translation : array-like, shape (..., 3)
        [m]

    Returns
    -------
    ndarray, shape (..., 4, 4)
    """
    rotation = np.asarray(rotation, dtype=np.float64)
    translation = np.asarray(translation, dtype=np.float64)
    batch = np.broadcast_shapes(rotation.shape[:-2], translation.shape[:-1])
    matrix = np.zeros((*batch, 4, 4))
    matrix[..., :3, :3] = rotation
    matrix[..., :3, 3] = translation
    matrix[..., 3, 3] = 1.0
    return matrix


def inverse(C: Array) -> Array:
    """Inverse of a pose.

    Parameters
    ----------
    C : ndarray, shape (..., 4, 4)

    Returns
    -------
    ndarray, shape (..., 4, 4)
    """
    R_transposed = np.swapaxes(C[..., :3, :3], -1, -2)
    return pose(R_transposed, -(R_transposed @ C[..., :3, 3:])[..., 0])


def Ad(C: Array) -> Array:
    """Adjoint matrix of a pose, [[R, 0], [hat(r) R, R]]: maps twists in frame i to frame j.

    Wrenches transform with its inverse transpose. Source: Lynch and Park, Modern Robotics, 3.3.

    Parameters
    ----------
    C : ndarray, shape (..., 4, 4)
        Pose of frame i in frame j.

    Returns
    -------
    ndarray, shape (..., 6, 6)
    """
    R = C[..., :3, :3]
    matrix = np.zeros((*C.shape[:-2], 6, 6))
    matrix[..., :3, :3] = R
    matrix[..., 3:, :3] = hat(C[..., :3, 3]) @ R
    matrix[..., 3:, 3:] = R
    return matrix


def ad(V: ArrayLike) -> Array:
    """Matrix of the Lie bracket of screws, [[hat(omega), 0], [hat(v), hat(omega)]].

    Parameters
    ----------
    V : array-like, shape (..., 6)

    Returns
    -------
    ndarray, shape (..., 6, 6)
    """
    V = np.asarray(V, dtype=np.float64)
    matrix = np.zeros((*V.shape[:-1], 6, 6))
    matrix[..., :3, :3] = hat(V[..., :3])
    matrix[..., 3:, :3] = hat(V[..., 3:])
    matrix[..., 3:, 3:] = matrix[..., :3, :3]
    return matrix


def bracket(V: Array, y: Array) -> Array:
    """Product ad(V) y without forming the matrix, broadcasting.

    Parameters
    ----------
    V, y : ndarray, shape (..., 6)

    Returns
    -------
    ndarray, shape (..., 6)
    """
    omega = V[..., :3]
    return np.concatenate(
        [cross(omega, y[..., :3]), cross(V[..., 3:], y[..., :3]) + cross(omega, y[..., 3:])],
        axis=-1,
    )


def coadjoint(V: Array, W: Array) -> Array:
    """Product transpose(ad(V)) W without forming the matrix, broadcasting.

    Parameters
    ----------
    V : ndarray, shape (..., 6)
        Twist.
    W : ndarray, shape (..., 6)
        Wrench or momentum.

    Returns
    -------
    ndarray, shape (..., 6)
    """
    omega = V[..., :3]
    return np.concatenate(
        [cross(W[..., :3], omega) + cross(W[..., 3:], V[..., 3:]), cross(W[..., 3:], omega)],
        axis=-1,
    )
