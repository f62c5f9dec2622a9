"""The iterative Newton-Euler algorithm with 3-vectors.

Source: the notes "Iterative General Dynamic Model for Serial-Link Manipulators", section 7,
equations (170) to (187), after Craig, Introduction to Robotics, chapter 6. Readable beside them;
in the derivation, the last term of (106) is misprinted: it is vd_i. The notes give the efforts
alone.

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

from hodyn_ros.dynamics.formulations.tree import applied_wrenches, centroidal_inertias
from hodyn_ros.kinematics.poses import (
    cross,
    matvec,
    part,
    poses_in_parents,
    rotations_and_origins,
    stacked,
    transpose,
)
from hodyn_ros.lie import Jet, jets, so3
from hodyn_ros.model.mechanism import BASE
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.typing import Array


def body_efforts(
    model: RobotModel, coordinates: Array, applied: Mapping[int, Array]
) -> Array:
    """Efforts and their derivatives, see `BodyEfforts`."""
    N, K, n_bodies = coordinates.shape
    q, rates, second_rates = (Jet.along(coordinates[:, k : K - 2 + k], 1) for k in range(3))
    rotations, origins = rotations_and_origins(poses_in_parents(model, q))
    # R takes components from the axes of the parent to those of the body.
    rotations = transpose(rotations)
    at_rest = jets.constant(np.zeros((1, 3)), K - 2)

    # Outward iteration, (183) to (185), then (170) to (175).
    motions = {BASE: (at_rest, at_rest, at_rest - model.gravity)}
    for i, p in enumerate(model.parent.tolist()):
        R, P = part(rotations, np.s_[:, i]), part(origins, np.s_[:, i])
        qd, q2d = (part(x, np.s_[:, i, None]) for x in (rates, second_rates))
        e, eta = model.X[i, :3], model.X[i, 3:]
        omega_p, omegad_p, vd_p = motions[p]
        R_omega = matvec(R, omega_p)
        omega = R_omega + qd * e
        omegad = matvec(R, omegad_p) + cross(R_omega, qd * e) + q2d * e
        vd = matvec(R, vd_p + _acceleration(omega_p, omegad_p, P)) + q2d * eta
        vd += cross(R_omega, qd * (2.0 * eta)) + qd * qd * so3.cross(e, eta)
        motions[i] = omega, omegad, vd

    # (176) to (180) of all bodies. The notes start the inward iteration at the tip with the force
    # and moment that the last link exerts on what follows; here every body may exert some.
    omega, omegad, vd = map(stacked, zip(*(motions[i] for i in range(n_bodies))))
    mass, P_C, I_C = centroidal_inertias(model)
    F = (vd + _acceleration(omega, omegad, P_C)) * mass[:, None]
    N_C = matvec(I_C, omegad) + cross(omega, matvec(I_C, omega))
    W = applied_wrenches(model, coordinates, applied)
    n, f = (N_C + cross(P_C, F)).array(0) + W[..., :3], F.array(0) + W[..., 3:]

    # Inward iteration, (181) and (182).
    for i in reversed(range(n_bodies)):
        if (p := model.parent[i]) != BASE:
            R_transposed, P = (
                part(x, np.s_[:, i]) for x in (transpose(rotations), origins)
            )
            f_in_p = matvec(R_transposed, Jet(f[:, :, i]))
            f[:, :, p] += f_in_p.array(0)
            n_in_p = matvec(R_transposed, Jet(n[:, :, i])) + cross(P, f_in_p)
            n[:, :, p] += n_in_p.array(0)
    e, eta = model.X[:, :3], model.X[:, 3:]
    return np.moveaxis((n * e + f * eta).sum(axis=-1), 0, 1)


def _acceleration(omega: Jet, omegad: Jet, P: Jet | Array) -> Jet:
    """Acceleration of a point at P relative to the origin of its body."""
    return cross(omegad, P) + cross(omega, cross(omega, P))
