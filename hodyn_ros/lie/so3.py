"""Rotations: the group SO(3) and its Lie algebra, on arrays with any leading batch axes.

`hat(e)` is the skew-symmetric matrix of the cross product with e.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.typing import Array


def hat(e: ArrayLike) -> Array:
    """Skew-symmetric matrices of vectors: `hat(e) @ y == cross(e, y)`.

    Parameters
    ----------
    e : array-like, shape (..., 3)

    Returns
    -------
    ndarray, shape (..., 3, 3)

    Examples
    --------
    >>> from hodyn_ros.lie import so3
    >>> so3.hat([1.0, 2.0, 3.0]) @ [0.0, 0.0, 1.0]
    array([ 2., -1.,  0.])
    """
    e = np.asarray(e, dtype=np.float64)
    matrix = np.zeros((*e.shape[:-1], 3, 3))
    matrix[..., 0, 1] = -e[..., 2]
    matrix[..., 0, 2] = e[..., 1]
    matrix[..., 1, 0] = e[..., 2]
    matrix[..., 1, 2] = -e[..., 0]
    matrix[..., 2, 0] = -e[..., 1]
    matrix[..., 2, 1] = e[..., 0]
    return matrix


def cross(a: Array, b: Array) -> Array:
    """Cross product along the last axis (`numpy.cross` without its overhead).

    Parameters
    ----------
    a, b : ndarray, shape (..., 3)
        Leading axes broadcast.
    """
    out = np.empty(np.broadcast(a, b).shape)
    ax, ay, az = a[..., 0], a[..., 1], a[..., 2]
    bx, by, bz = b[..., 0], b[..., 1], b[..., 2]
    out[..., 0] = ay * bz - az * by
    out[..., 1] = az * bx - ax * bz
    out[..., 2] = ax * by - ay * bx
    return out


def matvec(matrices: Array, vectors: Array) -> Array:
    """Products of matrices and vectors.

    Parameters
    ----------
    matrices : ndarray, shape (..., m, n)
    vectors : ndarray, shape (..., n)
        Leading axes broadcast.

    Returns
    -------
    ndarray, shape (..., m)
    """
    products: Array = (matrices @ vectors[..., None])[..., 0]
    return products


def exp(e: ArrayLike) -> Array:
    """Rotations about vectors by their lengths (Euler-Rodrigues formula).

    Parameters
    ----------
    e : array-like, shape (..., 3)
        Axis times angle [rad]; zero is no rotation.

    Returns
    -------
    ndarray, shape (..., 3, 3)

    Examples
    --------
    A quarter turn about z:

    >>> import numpy as np
    >>> from hodyn_ros.lie import so3
    >>> so3.exp([0.0, 0.0, np.pi / 2]).round(3) + 0.0
    array([[ 0., -1.,  0.],
           [ 1.,  0.,  0.],
           [ 0.,  0.,  1.]])
    """
    e_hat = hat(e)
    angle = np.linalg.norm(np.asarray(e, dtype=np.float64), axis=-1)[..., None, None]
    # sin(a)/a and (1 - cos(a))/a^2 without cancellation; numpy.sinc(x) is sin(pi x)/(pi x).
    first = np.sinc(angle / np.pi)
    second = 0.5 * np.sinc(0.5 * angle / np.pi) ** 2
    return np.asarray(np.eye(3) + first * e_hat + second * (e_hat @ e_hat))


def log(R: ArrayLike) -> Array:
    """Rotation vectors of rotations, the inverse of `exp`.

    Parameters
    ----------
    R : array-like, shape (..., 3, 3)

    Returns
    -------
    ndarray, shape (..., 3)
        Axis times angle, of length 0 to pi [rad]; at exactly pi one of the two opposite ones.

    Examples
    --------
    >>> from hodyn_ros.lie import so3
    >>> so3.log(so3.exp([0.1, 0.2, 0.3])).round(9)
    array([0.1, 0.2, 0.3])
    """
    from scipy.spatial.transform import Rotation

    R = np.asarray(R, dtype=np.float64)
    if R.size == 0:
        return np.zeros(R.shape[:-1])  # SciPy before 1.9 does not take empty arrays
    vectors = Rotation.from_matrix(R.reshape(-1, 3, 3)).as_rotvec()
    return np.asarray(vectors, dtype=np.float64).reshape(*R.shape[:-2], 3)


def from_rpy(rpy: ArrayLike) -> Array:
    """Rotation matrix of URDF's roll, pitch and yaw: R = Rz(yaw) Ry(pitch) Rx(roll).

    Parameters
    ----------
    rpy : array-like, shape (3,)
        Roll, pitch and yaw [rad].

    Returns
    -------
    ndarray, shape (3, 3)

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros.lie import so3
    >>> so3.from_rpy([0.0, 0.0, np.pi / 2]).round(3) + 0.0
    array([[ 0., -1.,  0.],
           [ 1.,  0.,  0.],
           [ 0.,  0.,  1.]])
    """
    roll, pitch, yaw = np.asarray(rpy, dtype=np.float64)
    cr, sr = np.cos(roll), np.sin(roll)
    cp, sp = np.cos(pitch), np.sin(pitch)
    cy, sy = np.cos(yaw), np.sin(yaw)
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )
