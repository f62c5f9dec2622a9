"""Rigid-body motions: the group SE(3), twists, wrenches, screws and inertias.

Poses are homogeneous 4x4 matrices. Twists are (omega, v) and wrenches (moment, force): the angular
part comes first. All functions take any leading batch axes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.lie import so3
from hodyn_ros.lie.so3 import cross, hat
from hodyn_ros.typing import Array

# A change of frames leaves rounding in the product of axis and moment of a zero-pitch screw.
PITCH_TOLERANCE = 1e-12


def pose(rotation: ArrayLike, translation: ArrayLike) -> Array:
    """Homogeneous matrices of rotations and translations.

    Parameters
    ----------
    rotation : array-like, shape (..., 3, 3)
    translation : array-like, shape (..., 3)
        [m]. Leading axes broadcast with those of the rotation.

    Returns
    -------
    ndarray, shape (..., 4, 4)

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros.lie import se3
    >>> se3.pose(np.eye(3), [0.1, 0.2, 0.3])[:3, 3]
    array([0.1, 0.2, 0.3])
    """
    rotation = np.asarray(rotation, dtype=np.float64)
    translation = np.asarray(translation, dtype=np.float64)
    batch = np.broadcast_shapes(rotation.shape[:-2], translation.shape[:-1])
    matrix = np.zeros((*batch, 4, 4))
    matrix[..., :3, :3] = rotation
    matrix[..., :3, 3] = translation
    matrix[..., 3, 3] = 1.0
    return matrix


def inverse(C: ArrayLike) -> Array:
    """Inverses of poses (..., 4, 4), by the transpose of the rotation: it must be orthonormal.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros.lie import se3
    >>> se3.inverse(se3.pose(np.eye(3), [0.1, 0.2, 0.3]))[:3, 3]
    array([-0.1, -0.2, -0.3])
    """
    C = np.asarray(C, dtype=np.float64)
    R_transposed = np.swapaxes(C[..., :3, :3], -1, -2)
    return pose(R_transposed, -(R_transposed @ C[..., :3, 3:])[..., 0])


def exp(X: ArrayLike) -> Array:
    """Rigid-body motions along screws times their joint variables.

    Source: Lynch and Park, Modern Robotics, 3.3.3, with the velocity taken apart along and across
    the axis, so that nothing cancels for small angles.

    Parameters
    ----------
    X : array-like, shape (..., 6)
        Screw times joint variable: rotation vector [rad], then the velocity of the point that
        passes the origin times the same [m].

    Returns
    -------
    ndarray, shape (..., 4, 4)

    Examples
    --------
    Half a turn about an axis along z through (1, 0, 0):

    >>> import numpy as np
    >>> from hodyn_ros.lie import se3
    >>> C = se3.exp(np.pi * np.array([0.0, 0.0, 1.0, 0.0, -1.0, 0.0]))
    >>> C[:3, 3].round(3) + 0.0
    array([2., 0., 0.])
    """
    X = np.asarray(X, dtype=np.float64)
    omega, v = X[..., :3], X[..., 3:]
    angle = np.linalg.norm(omega, axis=-1)[..., None]
    axis = omega / np.where(angle > 0.0, angle, 1.0)
    along = (axis * v).sum(axis=-1)[..., None] * axis
    across = v - along
    # sin(a)/a and (1 - cos(a))/a^2 as in so3.exp.
    turned = np.sinc(angle / np.pi) * across
    turned += 0.5 * np.sinc(0.5 * angle / np.pi) ** 2 * cross(omega, across)
    return pose(so3.exp(omega), along + turned)


def Ad(C: ArrayLike) -> Array:
    """Adjoint matrices [[R, 0], [hat(r) R, R]], (..., 6, 6), of poses (..., 4, 4) of i in j.

    They map twists in frame i to frame j; wrenches transform with the inverse transpose. Source:
    Lynch and Park, Modern Robotics, 3.3.

    Parameters
    ----------
    C : array-like, shape (..., 4, 4)
        Rotation R and translation r [m].

    Returns
    -------
    ndarray, shape (..., 6, 6)

    Examples
    --------
    A twist in another frame, 1 m away along x:

    >>> import numpy as np
    >>> from hodyn_ros.lie import se3
    >>> C = se3.pose(np.eye(3), [1.0, 0.0, 0.0])
    >>> se3.Ad(C) @ [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    array([ 0.,  0.,  1.,  0., -1.,  0.])
    """
    C = np.asarray(C, dtype=np.float64)
    R = C[..., :3, :3]
    matrix = np.zeros((*C.shape[:-2], 6, 6))
    matrix[..., :3, :3] = R
    matrix[..., 3:, :3] = hat(C[..., :3, 3]) @ R
    matrix[..., 3:, 3:] = R
    return matrix


def ad(V: ArrayLike) -> Array:
    """Matrices of the Lie bracket, [[hat(omega), 0], [hat(v), hat(omega)]].

    Parameters
    ----------
    V : array-like, shape (..., 6)
        Screws or twists (omega, v).

    Returns
    -------
    ndarray, shape (..., 6, 6)
        ``ad(V) @ y`` is `bracket` of V and y.

    Examples
    --------
    >>> from hodyn_ros.lie import se3
    >>> se3.ad([0.0, 0.0, 1.0, 0.0, 0.0, 0.0]) @ [0.0, 0.0, 0.0, 1.0, 0.0, 0.0]
    array([0., 0., 0., 0., 1., 0.])
    """
    V = np.asarray(V, dtype=np.float64)
    matrix = np.zeros((*V.shape[:-1], 6, 6))
    matrix[..., :3, :3] = hat(V[..., :3])
    matrix[..., 3:, :3] = hat(V[..., 3:])
    matrix[..., 3:, 3:] = matrix[..., :3, :3]
    return matrix


def bracket(V: Array, y: Array) -> Array:
    """Product ad(V) y without forming the matrix.

    Parameters
    ----------
    V, y : ndarray, shape (..., 6)
        Twists or screws (omega, v). Leading axes broadcast.

    Returns
    -------
    ndarray, shape (..., 6)
        (omega x omega_y, v x omega_y + omega x v_y).
    """
    omega = V[..., :3]
    return np.concatenate(
        [
            cross(omega, y[..., :3]),
            cross(V[..., 3:], y[..., :3]) + cross(omega, y[..., 3:]),
        ],
        axis=-1,
    )


def coadjoint(V: Array, W: Array) -> Array:
    """Product transpose(ad(V)) W without forming the matrix.

    Parameters
    ----------
    V : ndarray, shape (..., 6)
        Twists (omega, v).
    W : ndarray, shape (..., 6)
        Wrenches (moment, force), or momenta, in the same frame. Leading axes broadcast.

    Returns
    -------
    ndarray, shape (..., 6)
        (moment x omega + force x v, force x omega).
    """
    omega = V[..., :3]
    return np.concatenate(
        [
            cross(W[..., :3], omega) + cross(W[..., 3:], V[..., 3:]),
            cross(W[..., 3:], omega),
        ],
        axis=-1,
    )


def pitches(X: ArrayLike) -> Array:
    """Pitches h [m/rad] of joint screws (e, x cross e + h e), (n, 6), with axes of unit length.

    Zero for revolute joints, also where a change of frames has left a pitch of the size of
    rounding, and for prismatic joints, which have none.
    """
    X = np.asarray(X, dtype=np.float64)
    pitch: Array = (X[:, :3] * X[:, 3:]).sum(axis=1)
    pitch[np.abs(pitch) < PITCH_TOLERANCE * (1.0 + np.linalg.norm(X[:, 3:], axis=1))] = 0.0
    return pitch


def transform_inertia(M_body: Array, frame: Array) -> Array:
    """Inertia about the origin and in the axes of frame i, from that of a frame in i.

    Parameters
    ----------
    M_body : ndarray, shape (6, 6)
        About the origin of the frame, moments first.
    frame : ndarray, shape (4, 4)
        Pose of the frame in i.

    Returns
    -------
    ndarray, shape (6, 6)
        transpose(Ad^-1) M_body Ad^-1 with Ad of the frame.
    """
    Ad_inverse = Ad(inverse(frame))
    return Ad_inverse.T @ M_body @ Ad_inverse
