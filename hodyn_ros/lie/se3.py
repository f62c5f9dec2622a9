"""Rigid-body motions: the group SE(3), twists, wrenches and screws.

Poses are homogeneous 4x4 matrices. Twists are (omega, v) and wrenches (moment, force): the angular
part comes first. All functions take any leading batch axes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.lie import so3
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


def exp(X: ArrayLike) -> Array:
    """Rigid-body motion along a screw.

    Source: Lynch and Park, Modern Robotics, 3.3.3, with the factors of hat(omega) written such
    that nothing cancels for small angles.

    Parameters
    ----------
    X : array-like, shape (..., 6)
        Screw times its joint variable: (e, x cross e + h e) q for a joint about the axis e through
        x with the pitch h, (0, e) q for a prismatic one.

    Returns
    -------
    ndarray, shape (..., 4, 4)
    """
    X = np.asarray(X, dtype=np.float64)
    omega, v = X[..., :3], X[..., 3:]
    return pose(so3.exp(omega), (_translation_factor(omega) @ v[..., None])[..., 0])


def log(C: ArrayLike) -> Array:
    """Screw coordinates of a rigid-body motion: `exp(log(C)) = C`.

    Parameters
    ----------
    C : array-like, shape (..., 4, 4)

    Returns
    -------
    ndarray, shape (..., 6)
        The rotation vector is of length 0 to pi.
    """
    C = np.asarray(C, dtype=np.float64)
    omega = so3.log(C[..., :3, :3])
    v = np.linalg.solve(_translation_factor(omega), C[..., :3, 3:])[..., 0]
    return np.concatenate([omega, v], axis=-1)


def _translation_factor(omega: Array) -> Array:
    """I + (1 - cos a)/a^2 hat + (a - sin a)/a^3 hat^2 with hat = hat(omega), a = |omega|."""
    omega_hat = hat(omega)
    angle = np.linalg.norm(omega, axis=-1)[..., None, None]
    first = 0.5 * np.sinc(0.5 * angle / np.pi) ** 2
    with np.errstate(divide='ignore', invalid='ignore'):
        closed = (angle - np.sin(angle)) / angle**3
    a2 = angle**2
    series = 1 / 6 - a2 / 120 + a2**2 / 5040 - a2**3 / 362880 + a2**4 / 39916800
    second = np.where(angle < 0.5, series, closed)
    return np.asarray(np.eye(3) + first * omega_hat + second * (omega_hat @ omega_hat))


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
