"""Joints as functions of time: positions of all bodies' joints and the transforms between bodies.

The transform of twists from the parent of body i to body i is A(t) = Ad(exp(-X q(t))) Ad(B^-1)
(Kumar and Mueller 2021, eq. (4)). For a revolute joint ad_X^3 = -ad_X, for a prismatic one
ad_X^2 = 0, so

    A(t) = K_0 + f_1(t) K_1 + f_2(t) K_2,   K_b = ad_X^b Ad(B^-1),
    f_1 = -sin q, f_2 = 1 - cos q (revolute);  f_1 = -q, f_2 = 0 (prismatic),

with constant matrices K_b. A helical joint X = Z + h T turns along the zero-pitch screw
Z = (e, x cross e) and moves along T = (0, e). The two motions commute and, with P = ad_Z and
D = ad_T, P^2 D = -D and D^2 = 0, so the product of their exponentials is

    A(t) = (I - sin q P + (1 - cos q) P^2 - q cos q h D + q sin q h P D) Ad(B^-1),

two terms more. All time derivatives of A y for a moving y follow from the scalar functions f_b by
Leibniz's rule, at a cost that grows with the square of the order.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.errors import MotionError
from hodyn_ros.lie import leibniz, se3
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.model.screws import pitches
from hodyn_ros.names import listed

Array = NDArray[np.float64]


def motion_array(model: RobotModel, motion: ArrayLike, lowest_K: int = 3) -> NDArray[Any]:
    """Motion as an array of real numbers of shape (..., K, n), of whatever type it has.

    Parameters
    ----------
    model : RobotModel
    motion : array-like
    lowest_K : int
        Fewest derivatives needed, the zeroth included.

    Raises
    ------
    MotionError
    """
    if not isinstance(model, RobotModel):
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
            f'{listed(model.joint_names)} along the last.'
        )
    return array


def checked_motion(model: RobotModel, motion: ArrayLike, lowest_K: int = 3) -> Array:
    """Motion as a float64 array of shape (..., K, n), refused if it cannot be used.

    Parameters
    ----------
    model : RobotModel
    motion : array-like
    lowest_K : int
        Fewest derivatives needed, the zeroth included.

    Raises
    ------
    MotionError
    """
    array = np.asarray(motion_array(model, motion, lowest_K), dtype=np.float64)
    refuse_not_finite(model, array)
    return array


def refuse_not_finite(
    model: RobotModel, motion: Array, batch: tuple[int, ...] | None = None, first: int = 0
) -> None:
    """Refuse a motion that holds NaN or infinite values.

    Parameters
    ----------
    model : RobotModel
    motion : ndarray, shape (..., K, n)
    batch : tuple of int, optional
        If the motion, of shape (N, K, n), is a part of a larger one: the leading axes of that.
    first : int
        Which of its samples is the first of the part.

    Raises
    ------
    MotionError
    """
    if np.all(np.isfinite(motion)):
        return
    found = np.argwhere(~np.isfinite(motion))[0]
    value = motion[tuple(found)]
    if batch is not None:
        found = (*np.unravel_index(first + found[0], batch), *found[1:])
    where = tuple(int(index) for index in found)
    raise MotionError(
        f'The motion holds {value} at index {where} (derivative {where[-2]} of joint '
        f'{model.joint_names[where[-1]]!r}); all values must be finite.'
    )


def checked_result(result: Array, motion: Array) -> Array:
    """Return the result of a computation along a motion, or refuse it if it overflows.

    Raises
    ------
    MotionError
    """
    if not np.all(np.isfinite(result)):
        raise MotionError(
            'The result overflows: the motion or a wrench holds values that are too large '
            f'(largest in the motion {np.abs(motion).max():.3g}).'
        )
    return result


def body_coordinates(model: RobotModel, motion: Array) -> Array:
    """Joint motion of every body from that of the independent joints.

    Parameters
    ----------
    model : RobotModel
    motion : ndarray, shape (..., K, n)
        Time derivatives of the independent joints.

    Returns
    -------
    ndarray, shape (..., K, n_bodies)
        A mimic joint q_m = a q_j + b has q_m^(k) = a q_j^(k).
    """
    coordinates: Array = motion[..., model.coordinate] * model.multiplier
    coordinates[..., 0, :] += model.offset
    return coordinates


def independent_efforts(model: RobotModel, body_efforts: Array) -> Array:
    """Efforts of the independent joints from those of all bodies' joints.

    Parameters
    ----------
    model : RobotModel
    body_efforts : ndarray, shape (..., n_bodies)

    Returns
    -------
    ndarray, shape (..., n)
        The effort of a mimic joint adds to the joint that it follows, times its multiplier.
    """
    efforts: Array = body_efforts @ selection_of(model)
    return efforts


def selection_of(model: RobotModel) -> Array:
    """Constant matrix of the velocities of all bodies' joints by those of the independent ones."""
    selection = np.zeros((model.n_bodies, model.n_joints))
    selection[np.arange(model.n_bodies), model.coordinate] = model.multiplier
    return selection


class JointTransforms:
    """The transforms A of all bodies along a motion, applied to series of twists and wrenches.

    Parameters
    ----------
    model : RobotModel
    coordinates : ndarray, shape (N, K, n_bodies)
        Joint motions of the bodies.
    """

    def __init__(self, model: RobotModel, coordinates: Array) -> None:
        series = np.swapaxes(coordinates, -1, -2)
        N, n_bodies, self.K = series.shape
        sine, cosine = leibniz.sin_cos(series)
        turns, self._to_body, self._to_parent = _constants(model)
        self._terms = self._to_body.shape[-1] // 6
        f = np.zeros((N, n_bodies, self.K, self._terms))
        f[..., 0, 0] = 1.0
        f[..., 1] = np.where(turns[:, None], -sine, -series)
        f[..., 2] = np.where(turns[:, None], -cosine, 0.0)
        f[..., 0, 2] += turns
        m, j = np.ogrid[: self.K, : self.K]
        if self._terms == 5:
            q_times = leibniz.multiplication(series)
            f[..., 3] = -(q_times @ cosine[..., None])[..., 0]
            f[..., 4] = (q_times @ sine[..., None])[..., 0]
        # [N, body, m, j, b] = binomial(m, j) f_b^(m-j), flattened over (j, b).
        self._series = (
            f[..., np.maximum(m - j, 0), :] * leibniz.binomials(self.K)[..., None]
        ).reshape(N, n_bodies, self.K, self._terms * self.K)

    def matrices(self) -> Array:
        """Return the transforms themselves and their derivatives, (K, N, n_bodies, 6, 6)."""
        N, n_bodies = self._series.shape[:2]
        basis = self._to_body.reshape(n_bodies, 6, self._terms, 6).transpose(0, 2, 3, 1)
        f = self._series[..., : self._terms]
        A = f @ basis.reshape(n_bodies, self._terms, 36)
        return np.moveaxis(A, 2, 0).reshape(self.K, N, n_bodies, 6, 6)

    def to_body(self, i: int, V: Array) -> Array:
        """Series of A V for a series of twists V of the parent of body i.

        Parameters
        ----------
        i : int
        V : ndarray, shape (N or 1, K', 6), K' <= K

        Returns
        -------
        ndarray, shape (N, K', 6)
        """
        return self._apply(i, V, self._to_body[i])

    def to_parent(self, i: int, W: Array) -> Array:
        """Series of transpose(A) W for a series of wrenches W on body i.

        Parameters
        ----------
        i : int
        W : ndarray, shape (N, K', 6), K' <= K

        Returns
        -------
        ndarray, shape (N, K', 6)
        """
        return self._apply(i, W, self._to_parent[i])

    def _apply(self, i: int, y: Array, basis: Array) -> Array:
        N, K, _ = y.shape
        images = (y.reshape(-1, 6) @ basis).reshape(N, self._terms * K, 6)
        product: Array = self._series[:, i, :K, : self._terms * K] @ images
        return product


# A controller asks for the same robot a thousand times a second.
@lru_cache(maxsize=16)
def _constants(model: RobotModel) -> tuple[NDArray[np.bool_], Array, Array]:
    """Which joints turn, and the matrices K_b of all bodies side by side, for twists and wrenches.

    Shapes (n_bodies,), (n_bodies, 6, 6 terms) and the same, for products with rows from the left.
    """
    turns = np.linalg.norm(model.X[:, :3], axis=1) > 0.5  # unit axis or none
    pitch = pitches(model.X)
    along_axis = np.zeros((model.n_bodies, 6))
    along_axis[:, 3:] = pitch[:, None] * model.X[:, :3]
    P, D = se3.ad(model.X - along_axis), se3.ad(along_axis)
    K0 = se3.Ad(se3.inverse(model.B))
    K1 = P @ K0
    matrices = [K0, K1, P @ K1]
    if np.any(pitch):
        matrices += [D @ K0, P @ D @ K0]
    basis = np.stack(matrices, axis=1)  # (n_bodies, terms, 6, 6)
    to_body, to_parent = (
        np.ascontiguousarray(basis.transpose(axes).reshape(model.n_bodies, 6, -1))
        for axes in ((0, 3, 1, 2), (0, 2, 1, 3))
    )
    return turns, to_body, to_parent
