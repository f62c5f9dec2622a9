"""Joint motions, and what follows for all bodies: transforms, body-fixed twists, poses.

The twists are those of the forward recursion V_i = A_i V_p(i) + X_i qd_i and its derivatives of
any order (Kumar and Mueller 2021, eq. (4), and Leibniz's rule). The transform A of twists from the
parent to the body is a sum of constant matrices K_b with functions f_b of the joint position,

    A(t) = K_0 + f_1(t) K_1 + f_2(t) K_2,   K_b = ad_X^b Ad(B^-1),

with f_1 = -sin q, f_2 = 1 - cos q for revolute and f_1 = -q, f_2 = 0 for prismatic joints, and two
terms more for helical ones, see `doc/formulations/body_fixed.rst`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.checks import MOST_DERIVATIVES, Array, first_not_finite
from hodyn_ros.errors import ModelError, MotionError
from hodyn_ros.lie import leibniz, se3, so3
from hodyn_ros.lie.jets import Jet, sine_cosine
from hodyn_ros.model.mechanism import BASE, Mechanism
from hodyn_ros.names import listed


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
            f'The model is a tree without a tip link: name one of the links {listed(model.links)}.'
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
    coordinates: Array = motion[..., model.coordinate] * model.multiplier
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


class JointTransforms:
    """Transforms A of all bodies along joint motions, for series of twists and wrenches.

    Parameters
    ----------
    model : RobotModel
    coordinates : ndarray, shape (N, K, n_bodies)
        Joint motion of every body, see `body_coordinates`.

    Attributes
    ----------
    K : int
        Number of entries of the series: series of twists may have so many or fewer.
    """

    def __init__(self, model: Mechanism, coordinates: Array) -> None:
        series = np.swapaxes(coordinates, -1, -2)
        N, n_bodies, self.K = series.shape
        q = Jet.along(coordinates, 1)
        sine, cosine = sine_cosine(q)
        turns, self._to_body, self._to_parent = _constants(model)
        self._terms = self._to_body.shape[-1] // 6
        f = np.zeros((N, n_bodies, self.K, self._terms))
        f[..., 0, 0] = 1.0
        f[..., 1] = np.where(turns[:, None], -sine.array(-1), -series)
        f[..., 2] = np.where(turns[:, None], -cosine.array(-1), 0.0)
        f[..., 0, 2] += turns
        m, j = np.ogrid[: self.K, : self.K]
        if self._terms == 5:
            f[..., 3] = -(q * cosine).array(-1)
            f[..., 4] = (q * sine).array(-1)
        # [N, body, m, j, b] = binomial(m, j) f_b^(m-j), flattened over (j, b).
        self._series = (
            f[..., np.maximum(m - j, 0), :] * leibniz.binomials(self.K)[..., None]
        ).reshape(N, n_bodies, self.K, self._terms * self.K)

    def to_body(self, i: int, V: Array) -> Array:
        """Series of A V: twists of the parent in the frame of body i.

        Parameters
        ----------
        i : int
            Index of the body.
        V : ndarray, shape (N or 1, K', 6)
            Twists with time derivatives in the frame of the parent, K' <= K.

        Returns
        -------
        ndarray, shape (N, K', 6)
        """
        return self._apply(i, V, self._to_body[i])

    def to_parent(self, i: int, W: Array) -> Array:
        """Series of transpose(A) W: wrenches on body i in the frame of its parent.

        Parameters
        ----------
        i : int
            Index of the body.
        W : ndarray, shape (N, K', 6)
            Wrenches (moment, force) with time derivatives in the frame of the body, K' <= K.

        Returns
        -------
        ndarray, shape (N, K', 6)
        """
        return self._apply(i, W, self._to_parent[i])

    def _apply(self, i: int, y: Array, basis: Array) -> Array:
        """Product of the series of body i with a series (N or 1, K, 6) in its constant basis."""
        N, K, _ = y.shape
        images = (y.reshape(-1, 6) @ basis).reshape(N, self._terms * K, 6)
        product: Array = self._series[:, i, :K, : self._terms * K] @ images
        return product


# A controller asks for the same robot a thousand times a second.
@lru_cache(maxsize=16)
def _constants(model: Mechanism) -> tuple[NDArray[np.bool_], Array, Array]:
    """Which joints turn, and the matrices K_b of all bodies side by side, for twists and wrenches.

    Shapes (n_bodies,), (n_bodies, 6, 6 terms) and the same, for products with rows from the left.
    """
    turns = np.linalg.norm(model.X[:, :3], axis=1) > 0.5  # unit axis or none
    pitch = se3.pitches(model.X)
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


def body_twists(
    model: Mechanism,
    coordinates: Array,
    transforms: JointTransforms,
    base_acceleration: Array | None = None,
) -> list[Array]:
    """Twists of all bodies in their own frames, with time derivatives.

    From joint motions (N, K, n_bodies), K >= 2, and their transforms: for every body (N, K-1, 6),
    entry k the k-th time derivative of its twist (omega, v). A base acceleration, shape (3,), of
    minus the gravitational one [m/s^2] makes the inertia forces include the weight; the twists are
    then not the kinematic ones.
    """
    K = coordinates.shape[1]
    base = np.zeros((1, K - 1, 6))
    if base_acceleration is not None and K > 2:
        base[:, 1, 3:] = base_acceleration
    twists: list[Array] = []
    for i, p in enumerate(model.parent):
        V = transforms.to_body(i, base if p == BASE else twists[p])
        V = V + coordinates[:, 1:, i, None] * model.X[i]
        twists.append(V)
    return twists


def body_poses(model: Mechanism, positions: Array) -> list[Array]:
    """Poses of all bodies in the base frame, each (N, 4, 4), from positions (N, n_bodies).

    Source: local product of exponentials, Kumar and Mueller 2021, section II-A: C_i = C_p(i) B_i
    exp(X_i q_i).
    """
    poses: list[Array] = []
    for i, p in enumerate(model.parent):
        relative = model.B[i] @ _joint_pose(model.X[i], positions[:, i])
        poses.append(relative if p == BASE else poses[p] @ relative)
    return poses


def _joint_pose(X: Array, q: Array) -> Array:
    """Motions exp(X q) along a joint screw (6,), their rotation from sine and cosine of q (N,).

    The length of the vector e q would be rounded, which matters for angles of many turns.
    """
    e, moment = X[:3], X[3:]
    if not e.any():
        return se3.pose(np.eye(3), q[:, None] * moment)
    E = so3.hat(e)
    turn = np.sin(q)[:, None, None] * E + 2.0 * (np.sin(0.5 * q) ** 2)[:, None, None] * (
        E @ E
    )
    # About the axis through e x moment, with the pitch e . moment.
    advance = q[:, None] * (e @ moment * e)
    return se3.pose(np.eye(3) + turn, advance - turn @ np.cross(e, moment))


def hybrid_from_body(pose: Array, V: Array) -> Array:
    """Twist of a link in hybrid expression, from that in its axes.

    Parameters
    ----------
    pose : ndarray, shape (..., 4, 4)
        Of the link in the base link.
    V : ndarray, shape (..., K, 6)
        Twist (omega, v) in link axes with the time derivatives of its coordinates.

    Returns
    -------
    ndarray, shape (..., K, 6)
        In base axes, with the velocity of the link origin and its derivatives.
    """
    R_transposed, omega = np.swapaxes(pose[..., :3, :3], -1, -2), V[..., :3]
    parts = [
        leibniz.from_moving_frame(part, omega, so3.cross) @ R_transposed
        for part in (omega, V[..., 3:])
    ]
    return np.concatenate(parts, axis=-1)
