"""The iterative Newton-Euler algorithm with 3-vectors: efforts without derivatives.

Source: the notes "Iterative General Dynamic Model for Serial-Link Manipulators", section 7,
equations (170) to (187), after Craig, Introduction to Robotics, chapter 6. Readable beside them;
in the derivation, the last term of (106) is misprinted: it is vd_i.

The notes have two kinds of joints in frames whose z axis is the joint axis. Here a joint is any
screw X = (e, eta) in the frame of its body: relative to the parent the body turns with e qd and
its origin moves with eta qd, both in body axes. So the terms of both kinds stand side by side:

- revolute joints of the notes have e = Z and eta = 0, prismatic ones e = 0 and eta = Z, d = q;
- e and eta together, which the notes do not have, are an axis beside the origin of the body or a
  helical joint. They add e x eta qd^2 to the acceleration of the origin, since the direction eta
  turns with the body, and moment and force both contribute to the effort.

Instead of one next link there are any number of children.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hodyn_ros.kinematics.joints import body_poses
from hodyn_ros.lie import se3
from hodyn_ros.lie.so3 import cross, matvec
from hodyn_ros.model.robot import BASE, RobotModel
from hodyn_ros.typing import Array


def body_efforts(
    model: RobotModel, coordinates: Array, applied: Mapping[int, Array]
) -> Array:
    """Efforts without derivatives, see `inverse.BodyEfforts`; K = 3."""
    poses = body_poses(model, coordinates[:, 0])
    mass, P_C, I_C = centroidal_inertias(model)

    # Outward iteration. R takes components from the axes of the parent to those of the body.
    rotations: list[Array] = []
    P: list[Array] = []
    motions: list[tuple[Array, Array, Array]] = []
    F: list[Array] = []
    N: list[Array] = []
    at_rest = np.zeros((1, 3))
    for i, p in enumerate(model.parent):
        e, eta = model.X[i, None, :3], model.X[i, None, 3:]
        qd, q2d = coordinates[:, 1, i, None], coordinates[:, 2, i, None]
        pose_in_parent = poses[i] if p == BASE else se3.inverse(poses[p]) @ poses[i]
        R = np.swapaxes(pose_in_parent[:, :3, :3], -1, -2)
        rotations.append(R)
        P.append(pose_in_parent[:, :3, 3])

        # (183) to (185), then (170) to (175).
        omega_p, omegad_p, vd_p = (
            (at_rest, at_rest, -model.gravity) if p == BASE else motions[p]
        )
        R_omega = matvec(R, omega_p)
        omega = R_omega + e * qd
        omegad = matvec(R, omegad_p) + cross(R_omega, e * qd) + e * q2d
        vd = matvec(R, cross(omegad_p, P[i]) + cross(omega_p, cross(omega_p, P[i])) + vd_p)
        vd += 2.0 * cross(R_omega, eta * qd) + eta * q2d + cross(e, eta) * qd**2
        motions.append((omega, omegad, vd))

        # (176) to (178).
        vd_C = vd + cross(omegad, P_C[i]) + cross(omega, cross(omega, P_C[i]))
        F.append(mass[i] * vd_C)
        N.append(omegad @ I_C[i] + cross(omega, omega @ I_C[i]))

    # Inward iteration, (179) and (180). The notes start it at the tip with the force and moment
    # that the last link exerts on what follows; here every body may exert some.
    f: list[Array] = []
    n: list[Array] = []
    for i in range(model.n_bodies):
        f.append(F[i])
        n.append(N[i] + cross(P_C[i], F[i]))
        if i in applied:
            n[i] = n[i] + applied[i][:, 0, :3]
            f[i] = f[i] + applied[i][:, 0, 3:]
    efforts = np.empty((len(coordinates), 1, model.n_bodies))
    for i in reversed(range(model.n_bodies)):
        # (181) and (182).
        efforts[:, 0, i] = n[i] @ model.X[i, :3] + f[i] @ model.X[i, 3:]
        p = model.parent[i]
        if p != BASE:
            R_transposed = np.swapaxes(rotations[i], -1, -2)
            f_in_p = matvec(R_transposed, f[i])
            f[p] = f[p] + f_in_p
            n[p] = n[p] + matvec(R_transposed, n[i]) + cross(P[i], f_in_p)
    return efforts


def centroidal_inertias(model: RobotModel) -> tuple[Array, Array, Array]:
    """Masses, centres of mass and inertia tensors of the bodies in their frames.

    Returns
    -------
    mass : ndarray, shape (n_bodies,)
        [kg]
    P_C : ndarray, shape (n_bodies, 3)
        [m]; zero for a body without mass.
    I_C : ndarray, shape (n_bodies, 3, 3)
        About the centres of mass [kg m^2].
    """
    M = model.M_body
    mass = M[:, 5, 5]
    # The upper right block is m hat(P_C).
    moment = np.stack([M[:, 2, 4], M[:, 0, 5], M[:, 1, 3]], axis=-1)
    P_C = np.divide(
        moment, mass[:, None], out=np.zeros_like(moment), where=mass[:, None] > 0.0
    )
    # Parallel axes: the inertia about the origin is I_C - m hat(P_C)^2.
    outer = P_C[:, :, None] * P_C[:, None, :]
    square = (P_C**2).sum(axis=-1)[:, None, None] * np.eye(3)
    I_C: Array = M[:, :3, :3] - mass[:, None, None] * (square - outer)
    return mass, P_C, I_C
