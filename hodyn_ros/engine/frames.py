"""Frames along the joint axes, and inertial parameters in them.

The frame of body i has its z axis along the joint axis. Its x axis is normal to this axis and to
that of the first joint behind it, as in the modified Denavit-Hartenberg convention; behind further
joints of a branching body one more turn about z comes first:

    R = Rz(gamma) Rx(alpha) Rz(offset + q),   gamma = 0 for the first joint.

Mass that lies on the axis of a revolute joint is counted with the parent, which leaves zeros in
place of m, h_z and J_zz. Source: Gautier and Khalil 1990, "Direct calculation of minimum set of
inertial parameters of serial robots".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hodyn_ros.engine.bodies import Angle, Body, JointFrame
from hodyn_ros.engine.vectors import Matrix, Vector
from hodyn_ros.lie import se3
from hodyn_ros.lie.se3 import pitches
from hodyn_ros.model.mechanism import BASE, Mechanism
from hodyn_ros.typing import Array

# Entries of a rotation, or of a vector relative to the robot's size, that are this small are
# rounding of the frame changes, and are zero in truth.
ROUNDING = 4.0 * float(np.finfo(float).eps)
# An inertia about a joint axis that is this small, beside the second moments from which it comes
# by changes of frames, is zero in truth. A point mass on a random axis leaves up to 0.4 eps, three
# of them on links that are fixed to each other 45.
NO_INERTIA = 64.0 * float(np.finfo(float).eps)
# The foot of the common normal of two axes is not used if it is further away, in units of the
# distance of the given points: where they are almost parallel it is anywhere.
FAR = 2.0


class Frames(NamedTuple):
    """Constants of all bodies for the engine.

    Attributes
    ----------
    joints : list of JointFrame
    bodies : list of Body
    poses : ndarray, shape (n_bodies, 4, 4)
        Of each frame in the body's own frame of the model.
    gravity : ndarray, shape (3,)
        [m/s^2], in the axes of the frame that serves as base.
    base : ndarray, shape (4, 4)
        Pose of that frame in the base of the model.
    base_body : Body
        The base, with the mass on the axes of the joints that it carries.
    """

    joints: list[JointFrame]
    bodies: list[Body]
    poses: Array
    gravity: Array
    base: Array
    base_body: Body


def frames_of(model: Mechanism) -> Frames:
    """Return the constants of a robot, computed once."""
    return model.kept(frames)


def frames(model: Mechanism, regroup: bool = True, from_link: bool = False) -> Frames:
    """Constants of all bodies.

    Parameters
    ----------
    model : RobotModel
    regroup : bool
        Whether mass on the axes of revolute joints is counted with the parents. The efforts are
        the same; terms that belong to single bodies are not.
    from_link : bool
        Whether the frame of the base link itself serves as base, as suits one that moves.
    """
    poses, base = _poses(model)
    if from_link:
        base = np.eye(4)
    n = model.n_bodies
    turns = np.linalg.norm(model.X[:, :3], axis=1) > 0.5
    pitch = pitches(model.X)
    relative = np.empty((n, 4, 4))
    for i, p in enumerate(model.parent):
        relative[i] = se3.inverse(base if p == BASE else poses[p]) @ model.B[i] @ poses[i]
    relative[:, :3, 3] = without_rounding(relative[:, :3, 3])
    masses = [_mass_matrix(model.M_body[i], poses[i]) for i in range(n)]
    masses.append(_mass_matrix(model.M_base, base))  # where the index BASE finds it
    if regroup:
        for i in reversed(range(n)):
            if turns[i] and pitch[i] == 0.0:
                own, p = masses[i], model.parent[i]
                _without_rounding_about_z(own, model.M_body[i])
                # Moments along the axis, in which the axis and the origin are columns.
                line = relative[i, :, 2:]
                masses[p] = masses[p] + line @ own[2:, 2:] @ line.T
                own[2:, 2:] = 0.0
    slides = np.where(turns, pitch, 1.0).tolist()
    joints = [
        JointFrame(*_angles(C[:3, :3]), vector(C[:3, 3]), turn, 1.0 - turn, slide)
        for C, turn, slide in zip(relative, turns.astype(float).tolist(), slides)
    ]
    gravity = without_rounding(base[:3, :3].T @ model.gravity)
    *bodies, base_body = map(_body, masses)
    return Frames(joints, bodies, poses, gravity, base, base_body)


def _poses(model: Mechanism) -> tuple[Array, Array]:
    """Poses of the frames in the bodies, and of the base frame in the base of the model."""
    n = model.n_bodies
    first_child: dict[int, int] = {}
    for i, p in enumerate(model.parent):
        first_child.setdefault(int(p), i)
    poses = np.empty((n, 4, 4))
    for i in range(n):
        e, point = _axis(model.X[i])
        x = _perpendicular(e)
        child = first_child.get(i)
        if child is not None:
            child_e, child_point = _axis(model.X[child])
            child_e = model.B[child, :3, :3] @ child_e
            child_point = model.B[child, :3, :3] @ child_point + model.B[child, :3, 3]
            x, point = _normal(e, point, child_e, child_point)
        poses[i] = se3.pose(np.stack([x, np.cross(e, x), e], axis=1), point)
    # Seen from the base, the first frame is not turned at q = 0.
    return poses, model.B[0] @ poses[0] if n else np.eye(4)


def _axis(X: Array) -> tuple[Array, Array]:
    """Direction of a joint axis, and a point of it [m], from a body-fixed joint screw (6,)."""
    if np.linalg.norm(X[:3]) > 0.5:
        return X[:3], np.cross(X[:3], X[3:])
    return X[3:], np.zeros(3)


def _perpendicular(e: Array) -> Array:
    """Find a unit vector at right angles to e: an axis of the body's frame if one is."""
    x = np.eye(3)[int(np.argmin(np.abs(e)))]
    x -= (e @ x) * e
    return np.asarray(x / np.linalg.norm(x))


def _normal(
    e: Array, point: Array, other: Array, other_point: Array
) -> tuple[Array, Array]:
    """Find a unit vector normal to two lines, and the foot of their normal on the first one."""
    across = np.cross(e, other)
    sine = np.linalg.norm(across)
    between = other_point - point
    if sine > ROUNDING:
        x = across / sine
    else:
        x = between - (between @ e) * e
        if np.linalg.norm(x) <= ROUNDING * np.linalg.norm(between):
            x = _perpendicular(e)
    x = x - (x @ e) * e
    x /= np.linalg.norm(x)
    along = between @ e
    if sine > ROUNDING:
        to_foot = np.cross(between, other) @ across / sine**2
        if abs(to_foot) <= FAR * np.linalg.norm(between):
            along = to_foot
    return x, point + along * e


def _angles(R: Array) -> tuple[Angle, Angle, Angle]:
    """Angles gamma, alpha and offset with R = Rz(gamma) Rx(alpha) Rz(offset)."""
    # The third column is (sin gamma sin alpha, -cos gamma sin alpha, cos alpha).
    if abs(R[0, 2]) <= ROUNDING:
        gamma, alpha = (1.0, 0.0), _unit(R[2, 2], -R[1, 2])
    else:
        gamma = _unit(-R[1, 2], R[0, 2])
        alpha = _unit(R[2, 2], float(np.hypot(R[0, 2], R[1, 2])))
    first = gamma[0] * R[0] + gamma[1] * R[1]
    return gamma, alpha, _unit(first[0], -first[1])


def _unit(cosine: float, sine: float) -> Angle:
    """Cosine and sine scaled to length 1, with exact zeros in place of rounding."""
    length = float(np.hypot(cosine, sine))
    cosine, sine = float(cosine) / length, float(sine) / length
    if abs(sine) <= ROUNDING:
        return float(np.sign(cosine)), 0.0
    if abs(cosine) <= ROUNDING:
        return 0.0, float(np.sign(sine))
    return cosine, sine


def _mass_matrix(M_body: Array, pose: Array) -> Array:
    """Pseudo-inertia matrix [[J, h], [h, m]], shape (4, 4), in a frame at a pose in the body.

    From the 6x6 inertia about the origin of the body's frame; J holds second moments of mass
    [kg m^2], whose sums are the moments of inertia.
    """
    M = se3.Ad(pose).T @ M_body @ se3.Ad(pose)
    theta = M[:3, :3]
    pseudo = np.empty((4, 4))
    pseudo[:3, :3] = 0.5 * np.trace(theta) * np.eye(3) - theta
    # M[:3, 3:] = [h].
    pseudo[:3, 3] = pseudo[3, :3] = M[2, 4], M[0, 5], M[1, 3]
    pseudo[3, 3] = M[5, 5]
    return 0.5 * (pseudo + pseudo.T)


def _without_rounding_about_z(pseudo: Array, M_body: Array) -> None:
    """Make second moments about the z axis exactly zero where they are rounding of larger ones.

    Those of inertias that no body has may be negative, and cancel in sums: each one counts.
    """
    size = np.abs(np.diagonal(pseudo)[:3]).sum() + np.abs(np.diagonal(M_body)[:3]).sum()
    if np.abs(pseudo[:2, :2]).sum() <= NO_INERTIA * size:
        pseudo[:2, :2] = 0.0


def _body(pseudo: Array) -> Body:
    """Body from a pseudo-inertia matrix (4, 4), without rounding."""
    J, h = without_rounding(pseudo[:3, :3]), without_rounding(pseudo[:3, 3])
    upper = J[np.triu_indices(3)].tolist()
    return Body(float(pseudo[3, 3]), vector(h), tuple(upper))


def without_rounding(values: Array, size: float | None = None) -> Array:
    """The same values, zero where they are rounding beside values of a size, or the largest."""
    size = np.abs(values).max(initial=0.0) if size is None else size
    return np.asarray(np.where(np.abs(values) <= ROUNDING * size, 0.0, values))


def position(pose: Array) -> Vector:
    """Position of a pose, without rounding."""
    return vector(without_rounding(pose[:3, 3]))


def rotation(pose: Array) -> Matrix:
    """Rotation of a pose, without rounding."""
    return Matrix(*(vector(without_rounding(row, 1.0)) for row in pose[:3, :3]))


def vector(values: Array) -> Vector:
    """Vector of numbers for the formulas of the engine."""
    return Vector(*map(float, values))
