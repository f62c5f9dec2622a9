"""Efforts of any order by automatic differentiation with CasADi, from d'Alembert's principle.

The positions and rotations of all bodies are written as functions of time alone, and everything
else (velocities, accelerations, momenta, and the derivatives of the efforts) is left to CasADi:
nothing of the recursions, of twists or of their derivatives is in here.
"""

from __future__ import annotations

from math import factorial
from typing import NamedTuple

import casadi as ca
import numpy as np
from support import oracles

from hodyn_ros import RobotModel
from hodyn_ros.lie import se3


class Body(NamedTuple):
    """A body behind one joint: its frame, its axis in this frame, and its inertia there."""

    parent: int  # -1: the base
    zero_pose: np.ndarray  # (4, 4), in the parent
    coordinate: int
    multiplier: float
    offset: float
    axis: np.ndarray  # unit vector
    point: np.ndarray  # on the axis
    turn: float  # angle per unit of the joint variable
    slide: float  # way along the axis per unit of the joint variable
    parts: list  # (mass, com, inertia about the com) of rigid parts, in this frame


def bodies_of_urdf(xml, joint_names):
    """Bodies of a URDF, and for every link its body and its pose in it."""
    tree = oracles.read_urdf(xml)
    frames = {tree.root: (-1, np.eye(4))}
    bodies = []
    for joint in tree.joints:
        body, pose = frames[joint.parent]
        origin = np.eye(4)
        origin[:3, :3], origin[:3, 3] = joint.rotation, joint.translation
        pose = pose @ origin
        if joint.type != 'fixed':
            leader, multiplier, offset = oracles.mimic_of(joint, tree.joints)
            slides = joint.type == 'prismatic'
            bodies.append(
                Body(
                    body,
                    pose,
                    joint_names.index(leader),
                    multiplier,
                    offset,
                    np.array(joint.axis, dtype=float),
                    np.zeros(3),
                    float(not slides),
                    float(slides),
                    [],
                )
            )
            body, pose = len(bodies) - 1, np.eye(4)
        frames[joint.child] = (body, pose)
        inertial = tree.inertials.get(joint.child)
        if inertial is not None and body >= 0:
            R, r = pose[:3, :3], pose[:3, 3]
            tensor = R @ np.array(inertial.inertia, dtype=float) @ R.T
            com = R @ np.array(inertial.com, dtype=float) + r
            bodies[body].parts.append((inertial.mass, com, tensor))
    return bodies, frames


def helical_chain(gravity):
    """Turning, screwing, sliding and screwing joints on skew axes beside the frame origins."""
    rng = np.random.default_rng(7)
    kinds = ((1.0, 0.0), (1.0, 0.11), (0.0, 1.0), (1.0, -0.3), (1.0, 0.0))
    bodies, X, B, inertias = [], [], [], []
    for index, (turn, slide) in enumerate(kinds):
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        point = rng.uniform(-0.3, 0.3, 3) if turn else np.zeros(3)
        pose = np.eye(4)
        pose[:3, :3] = se3.exp([*rng.normal(size=3), 0.0, 0.0, 0.0])[:3, :3]
        pose[:3, 3] = rng.uniform(-0.5, 0.5, 3)
        spread = 0.1 * rng.normal(size=(3, 3))
        tensor = np.trace(spread @ spread.T) * np.eye(3) - spread @ spread.T
        mass, com = rng.uniform(0.5, 4.0), rng.uniform(-0.2, 0.2, 3)
        bodies.append(
            Body(
                index - 1,
                pose,
                index,
                1.0,
                0.0,
                axis,
                point,
                turn,
                slide,
                [(mass, com, tensor)],
            )
        )
        X.append(np.concatenate([turn * axis, turn * np.cross(point, axis) + slide * axis]))
        B.append(pose)
        inertias.append((mass, com, tensor))
    model = RobotModel.from_body_screws(X, B, inertias=inertias, gravity=gravity)
    return (
        model,
        bodies,
        {name: (link.body, link.pose) for name, link in model.links.items()},
    )


def efforts(bodies, gravity, motion, wrenches=()):
    """Efforts and derivatives, shape (K-2, n).

    `wrenches` holds (body, pose of the link in the body, expression, values (K-2, 6), sign): the
    coordinates of the wrench (moment, force) as a polynomial in time, sign 1 if the robot exerts
    it.
    """
    t = ca.SX.sym('t')
    series = _series(t, bodies, gravity, motion, wrenches)
    return np.array([np.array(ca.Function('Q', [t], [Q])(0.0)).ravel() for Q in series])


def partial_derivatives(bodies, gravity, motion, wrenches=()):
    """Derivatives of the efforts and their derivatives by the motion, shape (K-2, n, K, n).

    Wrenches as in `efforts`.
    """
    K, n = motion.shape
    t, symbols = ca.SX.sym('t'), ca.SX.sym('q', K, n)
    results = []
    for Q in _series(t, bodies, gravity, symbols, wrenches):
        found = ca.jacobian(ca.substitute(Q, t, 0.0), ca.vec(symbols.T))
        found = np.array(ca.Function('dQ', [symbols], [ca.densify(found)])(motion))
        results.append(found.reshape(n, K, n))
    return np.array(results)


def _series(t, bodies, gravity, motion, wrenches):
    """Expressions of the efforts and of their derivatives, functions of the time t."""
    K, n = motion.shape
    rotations, positions, axes, origins = [], [], [], []
    for body in bodies:
        q = body.offset + body.multiplier * sum(
            motion[k, body.coordinate] * t**k / factorial(k) for k in range(K)
        )
        R = ca.SX(body.zero_pose[:3, :3]) @ _turn(body.axis, body.turn * q)
        along = ca.DM(body.axis) * (body.slide * q)
        # The point on the axis stays on it: x -> x + along + R (y - x).
        shift = (
            ca.DM(body.point) + along - _turn(body.axis, body.turn * q) @ ca.DM(body.point)
        )
        r = ca.SX(body.zero_pose[:3, :3]) @ shift + ca.DM(body.zero_pose[:3, 3])
        if body.parent >= 0:
            r = positions[body.parent] + rotations[body.parent] @ r
            R = rotations[body.parent] @ R
        rotations.append(R)
        positions.append(r)
        axes.append(R @ ca.DM(body.axis))
        origins.append(r + R @ ca.DM(body.point))

    def rate(expression):
        return ca.reshape(ca.jacobian(ca.vec(expression), t), *expression.shape)

    loads = []  # per body: (point, force, moment about it) that the motion needs
    for body, R, r in zip(bodies, rotations, positions):
        spin = rate(R) @ R.T
        omega = ca.vertcat(spin[2, 1], spin[0, 2], spin[1, 0])
        entries = []
        for mass, com, tensor in body.parts:
            c = r + R @ ca.DM(com)
            force = mass * (rate(rate(c)) - ca.DM(gravity))
            entries.append((c, force, rate(R @ ca.DM(tensor) @ R.T @ omega)))
        loads.append(entries)
    for index, link_pose, expressed_in, values, sign in wrenches:
        wrench = sum(ca.DM(values[k]) * t**k / factorial(k) for k in range(K - 2))
        moment, force = sign * wrench[:3], sign * wrench[3:]
        place = positions[index] + rotations[index] @ ca.DM(link_pose[:3, 3])
        if expressed_in == 'body':
            R = rotations[index] @ ca.DM(link_pose[:3, :3])
            moment, force = R @ moment, R @ force
        elif expressed_in == 'spatial':
            place = ca.DM.zeros(3)
        loads[index].append((place, force, moment))

    Q = [ca.SX(0)] * n
    for i, body in enumerate(bodies):
        for j, entries in enumerate(loads):
            if not _is_behind(bodies, j, i):
                continue
            for point, force, moment in entries:
                turning = moment + ca.cross(point - origins[i], force)
                power = body.turn * ca.dot(axes[i], turning) + body.slide * ca.dot(
                    axes[i], force
                )
                Q[body.coordinate] += body.multiplier * power
    expression = ca.vertcat(*Q)
    for _ in range(K - 2):
        yield expression
        expression = rate(expression)


def _turn(axis, angle):
    e = ca.skew(ca.DM(axis))
    return ca.DM.eye(3) + ca.sin(angle) * e + (1 - ca.cos(angle)) * (e @ e)


def _is_behind(bodies, j, i):
    while j > i:
        j = bodies[j].parent
    return j == i
