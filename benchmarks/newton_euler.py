"""The recursive Newton-Euler algorithm over any kind of vectors, for tools that differentiate it.

3-vectors in body frames whose z axis is the joint axis; inertias about the frame origins. Source:
Craig, Introduction to Robotics, chapter 6, with moments about the origin instead of the centre of
mass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import Body

Array = NDArray[np.float64]

Z = np.array([0.0, 0.0, 1.0])
# A turn about z is cos(q) ACROSS + sin(q) TURNED + ALONG.
ACROSS, ALONG = np.diag(1.0 - Z), np.diag(Z)
TURNED = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])


class Arithmetic(NamedTuple):
    """What a tool computes with."""

    sin: Callable[[Any], Any]
    cos: Callable[[Any], Any]
    constant: Callable[[Array], Any]
    """From a vector or a matrix of NumPy to one of the tool."""
    cross: Callable[[Any, Any], Any]


def efforts(
    use: Arithmetic, bodies: Sequence[Body], gravity: Array, q: Any, qd: Any, q2d: Any
) -> list[Any]:
    """Efforts of all joints, in model order."""
    cross, z, zero = use.cross, use.constant(Z), use.constant(np.zeros(3))
    across, turned, along = (use.constant(part) for part in (ACROSS, TURNED, ALONG))
    outward: list[tuple[Any, Any]] = []
    motions: list[tuple[Any, ...]] = []
    loads: list[tuple[Any, Any]] = []
    for body in bodies:
        i = body.coordinate
        w, wd, a = zero, zero, use.constant(-np.asarray(gravity))
        if body.parent >= 0:
            w, wd, a = motions[body.parent]
        R, p = use.constant(body.rotation), use.constant(body.position)
        if body.slides:
            p = p + R @ z * q[i]
        else:
            R = R @ (use.cos(q[i]) * across + use.sin(q[i]) * turned + along)
        a = R.T @ (a + cross(wd, p) + cross(w, cross(w, p)))
        w, wd = R.T @ w, R.T @ wd
        if body.slides:
            a = a + 2.0 * cross(w, z * qd[i]) + z * q2d[i]
        else:
            wd = wd + cross(w, z * qd[i]) + z * q2d[i]
            w = w + z * qd[i]
        outward.append((R, p))
        motions.append((w, wd, a))
        h, inertia = use.constant(body.first_moment), use.constant(body.inertia)
        force = body.mass * a + cross(wd, h) + cross(w, cross(w, h))
        moment = inertia @ wd + cross(w, inertia @ w) + cross(h, a)
        loads.append((moment, force))

    results: list[Any] = [0.0] * len(bodies)
    for index in reversed(range(len(bodies))):
        body, (moment, force) = bodies[index], loads[index]
        results[body.coordinate] = force[2] if body.slides else moment[2]
        if body.parent >= 0:
            R, p = outward[index]
            force = R @ force
            moment = R @ moment + cross(p, force)
            before = loads[body.parent]
            loads[body.parent] = before[0] + moment, before[1] + force
    return results
