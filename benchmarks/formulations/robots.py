"""Robots as plain numbers for formulas over abstract scalars, and example robots."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros import RobotModel
from hodyn_ros.engine.frames import Frames, frames
from hodyn_ros.engine.vectors import Vector
from hodyn_ros.model.robot import BASE

Array = NDArray[np.float64]
Rows = tuple[Vector, Vector, Vector]


class Body(NamedTuple):
    """Constants of a body, about the origin of its frame.

    Attributes
    ----------
    parent : int
    R, p : rows of a rotation, Vector
        Pose in the parent at q = 0.
    e : Vector
        Direction of the joint axis, in the body.
    point : Vector or None
        Point of the axis of a revolute joint, in the body; None for a prismatic joint.
    mass : float
    h : Vector
        First moment of mass.
    inertia : tuple of float
        xx, xy, xz, yy, yz, zz of the rotational inertia.
    """

    parent: int
    R: Rows
    p: Vector
    e: Vector
    point: Vector | None
    mass: float
    h: Vector
    inertia: tuple[float, float, float, float, float, float]


class Robot(NamedTuple):
    """Constants of a robot whose joints are all independent, in model order.

    Attributes
    ----------
    bodies : list of Body
    gravity : Vector
        In the axes of the base.
    """

    bodies: list[Body]
    gravity: Vector


def in_own_frames(model: RobotModel) -> Robot:
    """Robot in the frames of its model, for a URDF those of the links."""
    masses = [_pseudo_inertia(M) for M in model.M_body]
    return _robot(model.parent, model.B, model.X, masses, model.gravity)


def in_engine_frames(model: RobotModel) -> Robot:
    """Robot in the frames of the engine, with the masses regrouped as the engine does it."""
    constants = frames(model)
    X = np.zeros((model.n_bodies, 6))
    for i, joint in enumerate(constants.joints):
        X[i, 2 if joint.turn else 5] = 1.0
    poses = np.array([_pose(constants, i) for i in range(model.n_bodies)])
    masses = []
    for body in constants.bodies:
        xx, xy, xz, yy, yz, zz = body.J
        x, y, z = body.h
        masses.append(
            np.array(
                [[xx, xy, xz, x], [xy, yy, yz, y], [xz, yz, zz, z], [x, y, z, body.mass]]
            )
        )
    return _robot(model.parent, poses, X, masses, constants.gravity)


def check(model: RobotModel) -> None:
    """Refuse robots that the formulas here do not cover.

    Raises
    ------
    ValueError
        If a joint is helical or mimics another one.
    """
    joints = np.arange(model.n_joints)
    if not np.array_equal(model.coordinate, joints) or np.any(model.multiplier != 1.0):
        raise ValueError('The comparison covers robots whose joints are all independent.')
    if any(kind == 'helical' for kind in model.joint_types) or np.any(model.armature):
        raise ValueError(
            'The comparison covers revolute and prismatic joints without rotors.'
        )


def chain(n: int, twisted: bool = False) -> RobotModel:
    """Arm of n revolute joints, 0.3 m apart.

    Parameters
    ----------
    n : int
    twisted : bool
        Whether the angles between neighbouring axes and the offsets are arbitrary. Otherwise they
        are as in industrial arms: axes meet at right angles or are parallel.
    """
    return _example(n, list(range(-1, n - 1)), twisted)


def tree(n: int) -> RobotModel:
    """Tree of n revolute joints with arbitrary axes; each body hangs on one of the two before."""
    generator = np.random.default_rng(n)
    parents = [-1, *(int(generator.integers(max(0, i - 2), i)) for i in range(1, n))]
    return _example(n, parents, twisted=True)


def _example(n: int, parents: list[int], twisted: bool) -> RobotModel:
    generator = np.random.default_rng(n)
    poses, inertias = np.tile(np.eye(4), (n, 1, 1)), []
    turned = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
    for i in range(n):
        if twisted:
            Q, _ = np.linalg.qr(generator.standard_normal((3, 3)))
            poses[i, :3, :3] = Q * np.linalg.det(Q)
            poses[i, :3, 3] = generator.uniform(-0.3, 0.3, 3)
        else:
            # Shoulder, two links, and three times a turn by 90 degrees, over again.
            poses[i, :3, :3] = (turned, np.eye(3), turned, turned.T)[i % 4]
            poses[i, :3, 3] = ((0, 0, 0.3), (0.3, 0, 0), (0.05, 0.3, 0), (0, 0, 0))[i % 4]
        mass = generator.uniform(0.5, 3.0)
        spread = 0.1 * generator.standard_normal((3, 3))
        moments = mass * (spread @ spread.T + 1e-3 * np.eye(3))
        tensor = np.trace(moments) * np.eye(3) - moments
        inertias.append((mass, generator.uniform(-0.2, 0.2, 3), tensor))
    return RobotModel.from_body_screws(
        X=[[0, 0, 1, 0, 0, 0]] * n, B=poses, parents=parents, inertias=inertias
    )


def _pose(constants: Frames, i: int) -> Array:
    """Pose of a frame of the engine in that of its parent, Rz(gamma) Rx(alpha) Rz(offset)."""
    joint = constants.joints[i]
    pose = np.eye(4)
    pose[:3, 3] = joint.d
    for c, s, axes in (
        (joint.cos_gamma, joint.sin_gamma, (0, 1)),
        (joint.cos_alpha, joint.sin_alpha, (1, 2)),
        (joint.cos_offset, joint.sin_offset, (0, 1)),
    ):
        turn = np.eye(3)
        turn[np.ix_(axes, axes)] = [[c, -s], [s, c]]
        pose[:3, :3] = pose[:3, :3] @ turn
    return pose


def _pseudo_inertia(M: Array) -> Array:
    """Matrix [[J, h], [h, m]] of second and first moments and mass, from the 6x6 inertia."""
    pseudo = np.empty((4, 4))
    pseudo[:3, :3] = 0.5 * np.trace(M[:3, :3]) * np.eye(3) - M[:3, :3]
    pseudo[:3, 3] = pseudo[3, :3] = M[2, 4], M[0, 5], M[1, 3]
    pseudo[3, 3] = M[5, 5]
    return pseudo


def _robot(
    parent: NDArray[np.intp], B: Array, X: Array, masses: list[Array], gravity: Array
) -> Robot:
    bodies = []
    for i, pseudo in enumerate(masses):
        turns = np.linalg.norm(X[i, :3]) > 0.5
        e = X[i, :3] if turns else X[i, 3:]
        J = pseudo[:3, :3]
        inertia = np.trace(J) * np.eye(3) - J
        upper = inertia[np.triu_indices(3)]
        bodies.append(
            Body(
                int(parent[i]),
                tuple(_vector(row) for row in B[i, :3, :3]),  # type: ignore[arg-type]
                _vector(B[i, :3, 3]),
                _vector(e),
                _vector(np.cross(e, X[i, 3:])) if turns else None,
                float(pseudo[3, 3]),
                _vector(pseudo[:3, 3]),
                tuple(_clean(upper)),  # type: ignore[arg-type]
            )
        )
    return Robot(bodies, _vector(gravity))


def _clean(values: Array) -> list[float]:
    """Zeros where frame changes and angles of a URDF leave rounding errors, and exact ones."""
    size = np.abs(values).max(initial=0.0)
    cleaned = np.where(np.abs(values) <= 1e-15 * max(size, 1.0), 0.0, values)
    return [float(np.sign(x)) if abs(abs(x) - 1.0) <= 1e-15 else float(x) for x in cleaned]


def _vector(values: Array) -> Vector:
    x, y, z = _clean(np.asarray(values, dtype=np.float64))
    return (x, y, z)


__all__ = [
    'BASE',
    'Body',
    'Robot',
    'chain',
    'check',
    'in_engine_frames',
    'in_own_frames',
    'tree',
]
