"""The recursive Newton-Euler algorithm over any kind of scalars, for tools that differentiate it.

3-vectors in body frames whose z axis is the joint axis; inertias about the frame origins. Source:
Craig, Introduction to Robotics, chapter 6, with moments about the origin instead of the centre of
mass. The scalars are what `sin` and `cos` return: symbols of CasADi or SymPy, arrays of JAX.
Products with constants that are zero are left out, so that tools that do not simplify lose
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from benchmarks.cases import Body

Vector = list[Any]


def efforts(
    bodies: Sequence[Body],
    gravity: Iterable[float],
    q: Sequence[Any],
    qd: Sequence[Any],
    q2d: Sequence[Any],
    sin: Callable[[Any], Any],
    cos: Callable[[Any], Any],
) -> list[Any]:
    """Efforts of all joints, in model order."""
    # What leads from the axes of each body to those of its parent, and its position there.
    outward: list[Callable[[Vector], Vector]] = []
    positions: list[Vector] = []
    motions: list[tuple[Vector, Vector, Vector]] = []
    loads: list[tuple[Vector, Vector]] = []
    for body in bodies:
        i = body.coordinate
        if body.parent < 0:
            w, wd, a = [0.0] * 3, [0.0] * 3, [-float(g) for g in gravity]
        else:
            w, wd, a = motions[body.parent]
        p = [float(x) for x in body.position]
        if body.slides:
            p = [
                x if z == 0.0 else x + float(z) * q[i]
                for x, z in zip(p, body.rotation[:, 2])
            ]
        a = _sum(a, _cross(wd, p), _cross(w, _cross(w, p)))
        into = _turned_into(body, q[i], sin, cos)
        w, wd, a = into(w), into(wd), into(a)
        if body.slides:
            a = _sum(a, [2.0 * w[1] * qd[i], -2.0 * w[0] * qd[i], q2d[i]])
        else:
            wd = _sum(wd, [w[1] * qd[i], -w[0] * qd[i], q2d[i]])
            w = [w[0], w[1], w[2] + qd[i]]
        motions.append((w, wd, a))
        positions.append(p)
        outward.append(_turned_out(body, q[i], sin, cos))

        h = [float(x) for x in body.first_moment]
        mass = [float(body.mass) * x for x in a]
        force = _sum(mass, _cross(wd, h), _cross(w, _cross(w, h)))
        spin = _times(body.inertia, w)
        moment = _sum(_times(body.inertia, wd), _cross(w, spin), _cross(h, a))
        loads.append((moment, force))

    results: list[Any] = [0.0] * len(bodies)
    for index in reversed(range(len(bodies))):
        body, (moment, force) = bodies[index], loads[index]
        results[body.coordinate] = force[2] if body.slides else moment[2]
        if body.parent >= 0:
            force = outward[index](force)
            moment = _sum(outward[index](moment), _cross(positions[index], force))
            before = loads[body.parent]
            loads[body.parent] = _sum(before[0], moment), _sum(before[1], force)
    return results


def _turned_into(
    body: Body, q: Any, sin: Callable[[Any], Any], cos: Callable[[Any], Any]
) -> Callable[[Vector], Vector]:
    """Return what takes components in the axes of the parent to those of the body."""
    if body.slides:
        return lambda v: _times(body.rotation.T, v)
    s, c = sin(q), cos(q)

    def turned(v: Vector) -> Vector:
        x, y, z = _times(body.rotation.T, v)
        return [_product(c, x) + _product(s, y), _product(c, y) - _product(s, x), z]

    return turned


def _turned_out(
    body: Body, q: Any, sin: Callable[[Any], Any], cos: Callable[[Any], Any]
) -> Callable[[Vector], Vector]:
    """Return what takes components in the axes of the body to those of the parent."""
    if body.slides:
        return lambda v: _times(body.rotation, v)
    s, c = sin(q), cos(q)
    return lambda v: _times(body.rotation, [c * v[0] - s * v[1], s * v[0] + c * v[1], v[2]])


def _is_zero(x: Any) -> bool:
    return isinstance(x, float) and x == 0.0


def _product(x: Any, y: Any) -> Any:
    if _is_zero(x) or _is_zero(y):
        return 0.0
    if isinstance(x, float) and abs(x) == 1.0:
        return y if x > 0.0 else -y
    return x * y


def _total(terms: Sequence[Any]) -> Any:
    total: Any = 0.0
    for term in terms:
        if not _is_zero(term):
            total = term if _is_zero(total) else total + term
    return total


def _sum(*vectors: Vector) -> Vector:
    return [_total(terms) for terms in zip(*vectors)]


def _times(matrix: Any, v: Vector) -> Vector:
    return [_total([_product(float(m), x) for m, x in zip(row, v)]) for row in matrix]


def _cross(x: Vector, y: Vector) -> Vector:
    return [
        _total([_product(x[j], y[k]), -_product(x[k], y[j])])
        for j, k in ((1, 2), (2, 0), (0, 1))
    ]
