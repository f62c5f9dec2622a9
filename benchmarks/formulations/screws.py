"""Screws, twists, wrenches, rotations and inertias over abstract scalars.

A screw is a pair of vectors: angular and linear part, or moment and force. Nothing is written that
a matrix of zeros and equal blocks would hide: a 6x6 transform is a rotation and a cross product,
a 6x6 inertia is a mass, a first moment and six numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb
from typing import NamedTuple

from benchmarks.formulations.robots import Body, Rows
from hodyn_ros.engine.vectors import (
    ZERO,
    Number,
    Vector,
    dot,
    plus,
    plus_cross,
    plus_scaled,
    scaled,
)

Screw = tuple[Vector, Vector]

NOTHING: Screw = (ZERO, ZERO)


class Inertia(NamedTuple):
    """Mass, first moment and rotational inertia about the origin (xx, xy, xz, yy, yz, zz)."""

    mass: Number
    h: Vector
    rotational: tuple[Number, Number, Number, Number, Number, Number]


def cross(a: Vector, b: Vector) -> Vector:
    """Vector product."""
    return plus_cross(ZERO, a, b)


def minus(a: Vector, b: Vector) -> Vector:
    """Difference."""
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


def times(A: Rows, v: Vector) -> Vector:
    """Product of a matrix and a vector."""
    return (dot(A[0], v), dot(A[1], v), dot(A[2], v))


def times_transposed(A: Rows, v: Vector) -> Vector:
    """Product of a transposed matrix and a vector."""
    return plus_scaled(plus_scaled(scaled(v[0], A[0]), v[1], A[1]), v[2], A[2])


def matrix_product(A: Rows, B: Rows) -> Rows:
    """Product of two matrices."""
    return tuple(times_transposed(B, row) for row in A)  # type: ignore[return-value]


def add(*screws: Screw) -> Screw:
    """Sum of screws."""
    angular, linear = screws[0]
    for screw in screws[1:]:
        angular, linear = plus(angular, screw[0]), plus(linear, screw[1])
    return (angular, linear)


def add_scaled(a: Screw, scale: Number, b: Screw) -> Screw:
    """Add a multiple: a + scale b."""
    return (plus_scaled(a[0], scale, b[0]), plus_scaled(a[1], scale, b[1]))


def multiple(scale: Number, a: Screw) -> Screw:
    """Multiple of a screw."""
    return (scaled(scale, a[0]), scaled(scale, a[1]))


def bracket(V: Screw, y: Screw) -> Screw:
    """Product ad_V y."""
    return (cross(V[0], y[0]), plus_cross(cross(V[1], y[0]), V[0], y[1]))


def coadjoint(V: Screw, W: Screw) -> Screw:
    """Product ad_V^T W."""
    return (plus_cross(cross(W[0], V[0]), W[1], V[1]), cross(W[1], V[0]))


def pairing(X: Screw, W: Screw) -> Number:
    """Product X^T W."""
    return dot(X[0], W[0]) + dot(X[1], W[1])


def momentum(M: Inertia, V: Screw) -> Screw:
    """Product M V."""
    w, v = V
    xx, xy, xz, yy, yz, zz = M.rotational
    spin = times(((xx, xy, xz), (xy, yy, yz), (xz, yz, zz)), w)
    return (plus_cross(spin, M.h, v), plus_cross(scaled(M.mass, v), w, M.h))


def binomial_sum(
    product: Callable[[Screw, Screw], Screw], a: Sequence[Screw], b: Sequence[Screw], k: int
) -> Screw:
    """k-th derivative of a bilinear product, by Leibniz's rule."""
    terms = [multiple(float(comb(k, j)), product(a[j], b[k - j])) for j in range(k + 1)]
    return add(*terms)


def scaled_sum(rates: Sequence[Number], y: Sequence[Screw], k: int) -> Screw:
    """k-th derivative of a screw times a scalar, by Leibniz's rule."""
    terms = [multiple(float(comb(k, j)) * rates[j], y[k - j]) for j in range(k + 1)]
    return add(*terms)


def rotation_about(e: Vector, sine: Number, cosine: Number) -> Rows:
    """Rotation e e^T + cos (1 - e e^T) + sin [e]; for an axis of the frame sparse."""
    skew = ((0.0, -e[2], e[1]), (e[2], 0.0, -e[0]), (-e[1], e[0], 0.0))
    return tuple(  # type: ignore[return-value]
        tuple(
            e[i] * e[j]
            + ((1.0 if i == j else 0.0) - e[i] * e[j]) * cosine
            + skew[i][j] * sine
            for j in range(3)
        )
        for i in range(3)
    )


class Passage:
    """Pose of a body in its parent, C = B exp(X q).

    Vectors pass through the constant rotation and the one of the joint, or through their product,
    whichever takes fewer operations: the product has 9 factors, the rotation of a joint 4.

    Parameters
    ----------
    body : Body
    sine, cosine, q : Number
        Of the joint position.
    """

    def __init__(self, body: Body, sine: Number, cosine: Number, q: Number) -> None:
        self.joint: Rows | None = None
        if body.point is None:
            self.R = self.first = body.R
            self.p = plus_scaled(body.p, q, times(body.R, body.e))
            return
        turn = rotation_about(body.e, sine, cosine)
        self.R = matrix_product(body.R, turn)
        self.p = body.p
        if any(body.point):
            self.p = plus(self.p, times(body.R, minus(body.point, times(turn, body.point))))
        if _factors(body.R) + _factors(turn) < 9:
            self.first, self.joint = body.R, turn
        else:
            self.first = self.R

    def into_body(self, v: Vector) -> Vector:
        """Coordinates in the body of a vector given in the parent."""
        v = times_transposed(self.first, v)
        return v if self.joint is None else times_transposed(self.joint, v)

    def into_parent(self, v: Vector) -> Vector:
        """Coordinates in the parent of a vector given in the body."""
        return times(self.first, v if self.joint is None else times(self.joint, v))

    def twist_into_body(self, V: Screw) -> Screw:
        """Ad_C^-1 V."""
        return (self.into_body(V[0]), self.into_body(plus_cross(V[1], V[0], self.p)))

    def wrench_into_parent(self, W: Screw) -> Screw:
        """Ad_C^-T W."""
        force = self.into_parent(W[1])
        return (plus_cross(self.into_parent(W[0]), self.p, force), force)


def pose_of(parent: tuple[Rows, Vector], passage: Passage) -> tuple[Rows, Vector]:
    """Pose of a body from that of its parent."""
    R, p = parent
    rows = matrix_product(R, passage.first)
    if passage.joint is not None:
        rows = matrix_product(rows, passage.joint)
    return rows, plus(p, times(R, passage.p))


def screw_of(body: Body) -> Screw:
    """Joint screw in the body: (e, point x e), or (0, e)."""
    if body.point is None:
        return (ZERO, body.e)
    return (body.e, cross(body.point, body.e))


def turned_inertia(R: Rows, body: Body) -> Inertia:
    """Inertia of a body about its own origin, in turned axes."""
    xx, xy, xz, yy, yz, zz = body.inertia
    half = [times(((xx, xy, xz), (xy, yy, yz), (xz, yz, zz)), row) for row in R]
    xx, xy, xz = (dot(half[0], row) for row in R)
    yy, yz, zz = dot(half[1], R[1]), dot(half[1], R[2]), dot(half[2], R[2])
    return Inertia(body.mass, times(R, body.h), (xx, xy, xz, yy, yz, zz))


def shifted_inertia(M: Inertia, p: Vector) -> Inertia:
    """Inertia about another origin, from which p leads to the old one.

    The rotational part becomes I - [p][g] - [g][p] with g = h + m p / 2.
    """
    g = plus_scaled(M.h, 0.5 * M.mass, p)
    xx, xy, xz, yy, yz, zz = M.rotational
    x, y, z = (2.0 * (a * b) for a, b in zip(p, g))
    return Inertia(
        M.mass,
        plus_scaled(M.h, M.mass, p),
        (
            xx + (y + z),
            xy - p[0] * g[1] - p[1] * g[0],
            xz - p[0] * g[2] - p[2] * g[0],
            yy + (x + z),
            yz - p[1] * g[2] - p[2] * g[1],
            zz + (x + y),
        ),
    )


def _factors(A: Rows) -> int:
    """Entries of a matrix that take a multiplication."""
    return sum(
        not isinstance(x, float) or abs(x) not in (0.0, 1.0) for row in A for x in row
    )
