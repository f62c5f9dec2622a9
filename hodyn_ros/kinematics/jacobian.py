"""Geometric Jacobian of a link and its time derivatives of any order.

The columns in the base frame are the instantaneous joint screws S_i = Ad_{C_i} X_i. Their time
derivatives follow from those of the twist of body i, dS_i/dt = ad_{V_i} S_i (Mueller 2021, eqs.
(7)-(9)), and Leibniz's rule brings them into the other expressions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.checks import Array, check_choice
from hodyn_ros.errors import HodynError
from hodyn_ros.kinematics.joints import (
    JointTransforms,
    body_coordinates,
    body_poses,
    body_twists,
    checked_motion,
    hybrid_from_body,
    link_or_tip,
)
from hodyn_ros.lie import Jet, leibniz, se3
from hodyn_ros.lie.so3 import cross
from hodyn_ros.model.mechanism import BASE, Mechanism
from hodyn_ros.names import EXPRESSIONS


def jacobian(
    model: Mechanism,
    motion: ArrayLike,
    link: str | None = None,
    expressed_in: str = 'body',
) -> Array:
    """Jacobian of a link, V = J qd, and its time derivatives along a motion.

    Parameters
    ----------
    model : RobotModel
    motion : array-like, shape (..., K, n)
        Time derivatives of the joint positions in model order, K >= 1. K = 1 gives J alone.
    link : str, optional
        By default the tip of the chain.
    expressed_in : {'body', 'spatial', 'hybrid'}
        As in `forward_kinematics`. The derivatives are those of the entries of the matrix in this
        expression.

    Returns
    -------
    ndarray, shape (..., K, 6, n)
        `[..., m, :, :]` is the m-th time derivative of the matrix that maps the n joint velocities
        to the twist (omega, v). A mimic joint adds to the column of the joint that it follows,
        times its multiplier; joints that do not move the link have zero columns.

    Raises
    ------
    MotionError
        If the motion has a wrong shape or holds NaN or infinite values.
    ModelError
        If the link does not exist or must be named.
    HodynError
        If the expression is unknown.

    Notes
    -----
    Source: Mueller 2021, eqs. (7)-(9), and Leibniz's rule. J and its first derivative agree with
    Pinocchio's getFrameJacobian and getFrameJacobianTimeVariation in all three expressions.
    """
    motion = checked_motion(model, motion, lowest_K=1)
    check_choice('expressed_in', expressed_in, EXPRESSIONS, HodynError)
    link = link_or_tip(model, link)
    batch, (K, n) = motion.shape[:-2], motion.shape[-2:]
    samples = motion.reshape(-1, K, n)
    if model.closure is not None:
        # Loaded for those few robots that have loops.
        from hodyn_ros.kinematics.closed_loops import ClosedMotion

        closed = ClosedMotion(model, samples)
        of_tree = jacobian(model.tree, closed.motion, link, expressed_in)
        of_independent = Jet.along(of_tree, 1) @ Jet(closed.G(K))
        return of_independent.array(1).reshape(*batch, K, 6, n)
    N = len(samples)
    J = np.zeros((N, K, 6, n))
    path = bodies_to(model, link)
    if not path:
        return J.reshape(*batch, K, 6, n)

    coordinates = body_coordinates(model, samples)
    poses = body_poses(model, coordinates[:, 0])
    twists: list[Array] = [np.zeros((N, 0, 6))] * model.n_bodies
    if K > 1:
        transforms = JointTransforms(model, coordinates[:, :-1])
        twists = body_twists(model, coordinates, transforms)
    columns: Array = np.empty((N, len(path), K, 6))
    for column, i in enumerate(path):
        X = np.zeros((N, K, 6))
        X[:, 0] = model.X[i]
        S = leibniz.from_moving_frame(X, twists[i], se3.bracket)
        columns[:, column] = S @ np.swapaxes(se3.Ad(poses[i]), -1, -2)

    body, frame = model.link(link)
    V = twists[body] @ se3.Ad(se3.inverse(frame)).T
    columns = _expressed(columns, poses[body] @ frame, V, expressed_in)
    for column, i in enumerate(path):
        J[..., model.coordinate[i]] += model.multiplier[i] * columns[:, column]
    return J.reshape(*batch, K, 6, n)


def _expressed(columns: Array, pose: Array, V: Array, expressed_in: str) -> Array:
    """Columns (N, bodies, K, 6) of spatial Jacobians in another expression.

    Of a link with poses (N, 4, 4) and twists (N, K-1, 6) in link axes. The columns may be changed.
    """
    if expressed_in == 'body':
        in_link_axes = columns @ np.swapaxes(se3.Ad(se3.inverse(pose)), -1, -2)[:, None]
        return leibniz.into_moving_frame(
            in_link_axes, V[:, None], lambda V, y: -se3.bracket(V, y)
        )
    if expressed_in == 'hybrid':
        r = pose[:, None, :3, 3]
        if V.shape[-2]:
            r = np.concatenate([r, hybrid_from_body(pose, V)[..., 3:]], axis=1)
        columns[..., 3:] += leibniz.bilinear(cross, columns[..., :3], r[:, None])
    return columns


def bodies_to(model: Mechanism, link: str) -> list[int]:
    """Indices of the bodies from the base to a link, outwards; none for links of the base."""
    path: list[int] = []
    body = model.link(link).body
    while body != BASE:
        path.insert(0, body)
        body = int(model.parent[body])
    return path


class LinkChain(NamedTuple):
    """The bodies from the base to a link, for repeated evaluation at single positions.

    Attributes
    ----------
    link : str
    frame : ndarray, shape (4, 4)
        Pose of the link in the last body, or in the base if there are no bodies.
    n_joints : int
        Number n of independent joints of the model, also of those that do not move the link.
    coordinate : ndarray of int, shape (bodies,)
        Independent joint that moves each body.
    multiplier, offset : ndarray, shape (bodies,)
        Joint position of the body: multiplier * q + offset.
    B : ndarray, shape (bodies, 4, 4)
        Pose in the parent at zero position.
    X : ndarray, shape (bodies, 6)
        Body-fixed joint screws.
    """

    link: str
    frame: Array
    n_joints: int
    coordinate: NDArray[np.intp]
    multiplier: Array
    offset: Array
    B: Array
    X: Array

    @classmethod
    def of(cls, model: Mechanism, link: str) -> LinkChain:
        """Chain to a link of the model; a `ModelError` if there is no such link."""
        path = bodies_to(model, link)
        of_bodies = model.multiplier[path], model.offset[path], model.B[path], model.X[path]
        pose, n, coordinate = model.link(link).pose, model.n_joints, model.coordinate[path]
        return cls(link, pose, n, coordinate, *of_bodies)

    def pose_and_jacobian(self, q: Array) -> tuple[Array, Array]:
        """Pose of the link in the base link, and its Jacobian in hybrid expression.

        Parameters
        ----------
        q : ndarray, shape (N, n)
            Positions of the independent joints [rad] or [m].

        Returns
        -------
        pose : ndarray, shape (N, 4, 4)
        J : ndarray, shape (N, 6, n)
            Columns of joints that do not move the link are zero.
        """
        N, n_bodies = len(q), len(self.X)
        J = np.zeros((N, 6, self.n_joints))
        positions = q[:, self.coordinate] * self.multiplier + self.offset
        relative = self.B @ se3.exp(self.X * positions[..., None])
        C = np.empty((N, n_bodies, 4, 4))
        pose = np.broadcast_to(np.eye(4), (N, 4, 4))
        for i in range(n_bodies):
            pose = np.matmul(pose, relative[:, i], out=C[:, i])
        pose = pose @ self.frame
        omega = (C[..., :3, :3] @ self.X[:, :3, None])[..., 0]
        to_link = pose[:, None, :3, 3] - C[..., :3, 3]
        v = (C[..., :3, :3] @ self.X[:, 3:, None])[..., 0] + cross(omega, to_link)
        columns = np.concatenate([omega, v], axis=-1) * self.multiplier[:, None]
        for i, j in enumerate(self.coordinate):
            J[..., j] += columns[:, i]
        return pose, J

    @property
    def turning(self) -> NDArray[np.bool_]:
        """Joints of which a full turn changes nothing, shape (n,)."""
        turns = np.zeros(self.n_joints, dtype=bool)
        for i, j in enumerate(self.coordinate):
            omega, v = self.X[i, :3], self.X[i, 3:]
            # A helical joint advances, a mimic joint of another ratio does not turn fully.
            pure = np.linalg.norm(omega) > 0.5 and abs(omega @ v) < 1e-12
            once = np.sum(self.coordinate == j) == 1 and abs(self.multiplier[i]) == 1.0
            turns[j] = pure and once
        return turns

    @property
    def some_positions(self) -> Array:
        """Positions (4, n) that are in no way special [rad] or [m]."""
        return np.random.default_rng(0).uniform(-1.0, 1.0, (4, self.n_joints))

    @property
    def reach(self) -> float:
        """Sum of the distances between successive joints up to the link, 1 m if it is zero."""
        offsets = [*self.B[:, :3, 3], self.frame[:3, 3]]
        return float(sum(np.linalg.norm(offset) for offset in offsets)) or 1.0
