"""Inverse dynamics of order 0, 1 and 2 over abstract scalars, one body at a time.

Every body has a frame whose z axis is its joint axis. Vectors are resolved in it, but the time
derivatives that they carry are those of the vectors themselves, as an observer at rest sees them.
A change of frames is then a rotation, the same for all derivatives. A body needs

    omega, its derivatives up to the order r + 1, and p, the derivatives 2 to r + 2 of the position
    of its origin; linear velocity and position never appear, so that the second derivative -g of
    the base's position stands for gravity exactly,

and with A_k, d^k/dt^k of a vector that is fixed in the body = A_k times the vector, the loads are

    f^(k) = m p^(k+2) + A_{k+2} h,   h the first moment of mass,
    n     = h x p'' + vee(A_2 J),    J = integral of r r^T dm,   vee(A) = axis of A - A^T,

with derivatives by the product rule, where dJ/dt = A_1 J + J A_1^T: products of two equal
derivatives of r cancel. All functions work with whatever adds, subtracts and multiplies: numbers,
arrays, or the scalars of `program.Recorder`.

Source: the equations of motion of a rigid body about a moving point, differentiated; joints as in
Kumar and Mueller 2021, section II.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import Any, NamedTuple

Number = Any
Vector = tuple[Number, Number, Number]
Matrix = tuple[Vector, Vector, Vector]
Series = list[Vector]
"""A vector and its time derivatives."""

ZERO: Vector = (0.0, 0.0, 0.0)
AXIS: Vector = (0.0, 0.0, 1.0)


class Joint(NamedTuple):
    """Where a body's frame is in its parent's, and how its joint moves it; see `frames`."""

    cos_gamma: Number
    sin_gamma: Number
    cos_alpha: Number
    sin_alpha: Number
    cos_offset: Number
    sin_offset: Number
    d: Vector
    turn: Number
    still: Number
    slide: Number


class Body(NamedTuple):
    """Mass, first moment h and second moments J (xx, xy, xz, yy, yz, zz) about the origin."""

    mass: Number
    h: Vector
    J: tuple[Number, Number, Number, Number, Number, Number]


class Motion(NamedTuple):
    """Motion of a body.

    omega: derivatives 0 to r + 1; p: derivatives 2 to r + 2; A: the matrices A_2 to A_{r+2}.
    """

    omega: Series
    p: Series
    A: list[Matrix]


class Place(NamedTuple):
    """Where a body is: the base's axes in its frame, and position and velocity of its origin."""

    axes: tuple[Vector, Vector, Vector]
    p: Series


class Load(NamedTuple):
    """Moment about the origin and force, and their derivatives."""

    n: Series
    f: Series


class Passage(NamedTuple):
    """What carries loads back from a body to its parent.

    sine, cosine: of the rotation about z; axis: derivatives of the joint axis in the body's frame;
    slide: derivatives of the displacement along it; arm: those of d in the parent's frame.
    """

    sine: Number
    cosine: Number
    axis: Series
    slide: Series
    arm: Series


def plus(a: Vector, b: Vector) -> Vector:
    """Sum."""
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


def plus_scaled(a: Vector, scale: Number, b: Vector) -> Vector:
    """a + scale b."""
    return (a[0] + scale * b[0], a[1] + scale * b[1], a[2] + scale * b[2])


def scaled(scale: Number, a: Vector) -> Vector:
    """Multiple."""
    return (scale * a[0], scale * a[1], scale * a[2])


def plus_cross(c: Vector, a: Vector, b: Vector) -> Vector:
    """c + a x b."""
    return (
        c[0] + a[1] * b[2] - a[2] * b[1],
        c[1] + a[2] * b[0] - a[0] * b[2],
        c[2] + a[0] * b[1] - a[1] * b[0],
    )


def plus_product(c: Vector, A: Matrix, b: Vector) -> Vector:
    """c + A b."""
    return tuple(  # type: ignore[return-value]
        c[i] + A[i][0] * b[0] + A[i][1] * b[1] + A[i][2] * b[2] for i in range(3)
    )


def dot(a: Vector, b: Vector) -> Number:
    """Scalar product."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def fixed_vector_derivatives(omega: Series, order: int) -> list[Matrix]:
    """Matrices A_2 to A_{order+2} of a body that turns: A_k e = d^k e/dt^k for an e fixed in it.

    Products of cross product matrices are written as [a][b] = b a^T - (a . b) 1.

    Parameters
    ----------
    omega : list of Vector
        Angular velocity and its derivatives up to order + 1.
    order : int
        0, 1 or 2.

    Returns
    -------
    list of Matrix
    """
    w, w1 = omega[0], omega[1]
    xx, yy, zz = w[0] * w[0], w[1] * w[1], w[2] * w[2]
    diagonal = (-(yy + zz), -(xx + zz), -(xx + yy))
    mixed = (w[1] * w[2], w[2] * w[0], w[0] * w[1])
    matrices = [_matrix(diagonal, mixed, mixed, w1)]
    if order >= 1:
        # A_3 = 2 w w1^T + w1 w^T - 3 (w . w1) 1 + [w2 - w^2 w]
        w2 = omega[2]
        square = total(xx, yy, zz)
        v = plus_scaled(w2, -square, w)
        products = (w[0] * w1[0], w[1] * w1[1], w[2] * w1[2])
        upper = (w[1] * w1[2], w[2] * w1[0], w[0] * w1[1])
        lower = (w[2] * w1[1], w[0] * w1[2], w[1] * w1[0])
        diagonal = (
            -3.0 * (products[1] + products[2]),
            -3.0 * (products[0] + products[2]),
            -3.0 * (products[0] + products[1]),
        )
        matrices.append(
            _matrix(
                diagonal,
                tuple(l + 2.0 * u for u, l in zip(upper, lower)),  # type: ignore[arg-type]
                tuple(u + 2.0 * l for u, l in zip(upper, lower)),  # type: ignore[arg-type]
                v,
            )
        )
    if order >= 2:
        # A_4 = w (3 w2)^T + u w^T + 3 w1 w1^T + (w^4 - 4 w . w2 - 3 w1^2) 1
        #       + [w3 - 3 (w . w1) w - 3 w^2 w1],   u = w2 - w^2 w + 2 w1 x w
        w3 = omega[3]
        twist = (lower[0] - upper[0], lower[1] - upper[1], lower[2] - upper[2])  # w1 x w
        u = plus_scaled(v, 2.0, twist)
        triple, triple1 = scaled(3.0, w2), scaled(3.0, w1)
        inner = total(*products)
        common = square * square - 4.0 * dot(w, w2) - dot(triple1, w1)
        turn = plus_scaled(plus_scaled(w3, -3.0 * inner, w), -square, triple1)
        diagonal = tuple(  # type: ignore[assignment]
            common + w[i] * (triple[i] + u[i]) + triple1[i] * w1[i] for i in range(3)
        )
        symmetric = (triple1[1] * w1[2], triple1[2] * w1[0], triple1[0] * w1[1])
        above = tuple(
            symmetric[i] + w[j] * triple[k] + u[j] * w[k]
            for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1))
        )
        below = tuple(
            symmetric[i] + w[k] * triple[j] + u[k] * w[j]
            for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1))
        )
        matrices.append(_matrix(diagonal, above, below, turn))  # type: ignore[arg-type]
    return matrices


def forward(
    joint: Joint, sine: Number, cosine: Number, q: Sequence[Number], parent: Motion, order: int
) -> tuple[Motion, Passage]:
    """Motion of a body from that of its parent.

    Parameters
    ----------
    joint : Joint
    sine, cosine : Number
        Of the joint position.
    q : sequence of Number
        Joint position and its derivatives up to order + 2; the position is used only by joints
        that slide.
    parent : Motion
    order : int
        0, 1 or 2: the highest derivative of the efforts.

    Returns
    -------
    Motion, Passage
    """
    c = joint.turn * cosine + joint.still
    s = joint.turn * sine
    cosine = c * joint.cos_offset - s * joint.sin_offset
    sine = s * joint.cos_offset + c * joint.sin_offset
    omega = [_into_body(joint, sine, cosine, w) for w in parent.omega]
    p = [
        _into_body(joint, sine, cosine, plus_product(pk, A, joint.d))
        for pk, A in zip(parent.p, parent.A)
    ]
    arm = [joint.d, plus_cross(ZERO, parent.omega[0], joint.d)]
    if order >= 2:
        arm.append(plus_product(ZERO, parent.A[0], joint.d))
    # The derivatives of the axis are the same whether it is seen as fixed in body or parent.
    axis = [AXIS]
    slides = not _is_zero(joint.slide)
    for k in range(order + 2 if slides else order + 1):
        derivative = ZERO
        for j in range(k + 1):
            derivative = plus_cross(derivative, scaled(float(comb(k, j)), omega[k - j]), axis[j])
        axis.append(derivative)
    slide = []
    if slides:
        length = [joint.slide * x for x in q]
        slide = [_along(axis, length, k) for k in range(order + 3)]
        p = [plus(pk, slide[k + 2]) for k, pk in enumerate(p)]
    rate = [joint.turn * x for x in q[1:]]
    omega = [plus(w, _along(axis, rate, k)) for k, w in enumerate(omega)]
    motion = Motion(omega, p, fixed_vector_derivatives(omega, order))
    return motion, Passage(sine, cosine, axis[: order + 1], slide[: order + 1], arm[: order + 1])


def forward_place(joint: Joint, passage: Passage, parent: Place) -> Place:
    """Place of a body from that of its parent; the velocity only for an order above 0.

    Parameters
    ----------
    joint : Joint
    passage : Passage
        From `forward`.
    parent : Place

    Returns
    -------
    Place
    """

    def into_body(v: Vector) -> Vector:
        return _into_body(joint, passage.sine, passage.cosine, v)

    x, y, z = (into_body(axis) for axis in parent.axes)
    p = [into_body(plus(pk, arm)) for pk, arm in zip(parent.p, passage.arm)]
    if passage.slide:
        p = [plus(pk, slide) for pk, slide in zip(p, passage.slide)]
    return Place((x, y, z), p)


def inertial_load(body: Body, motion: Motion, order: int) -> Load:
    """Load that moves a body: rate of its momentum and of its moment, and their derivatives.

    Parameters
    ----------
    body : Body
    motion : Motion
    order : int

    Returns
    -------
    Load
    """
    h = [body.h, plus_cross(ZERO, motion.omega[0], body.h)]
    h.append(plus_product(ZERO, motion.A[0], body.h))
    f = []
    for k in range(order + 1):
        moved = h[2] if k == 0 else plus_product(ZERO, motion.A[k], body.h)
        f.append(plus_scaled(moved, body.mass, motion.p[k]))
    n = []
    xx, xy, xz, yy, yz, zz = body.J
    J: Matrix = ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))
    w = motion.omega[0]
    # J A_1^T; the rows of A_1 = [w] are (0, -w_z, w_y), (w_z, 0, -w_x) and (-w_y, w_x, 0).
    turned: Matrix = tuple(  # type: ignore[assignment]
        (
            row[2] * w[1] - row[1] * w[2],
            row[0] * w[2] - row[2] * w[0],
            row[1] * w[0] - row[0] * w[1],
        )
        for row in J
    )
    for k in range(order + 1):
        moment = _plus_vee_symmetric(ZERO, motion.A[k], body.J)
        if k >= 1:
            vee = _plus_vee(ZERO, motion.A[k - 1], turned)
            moment = plus_scaled(moment, float(k), vee)
        for j in range(k + 1):
            moment = plus_cross(moment, scaled(float(comb(k, j)), h[j]), motion.p[k - j])
        n.append(moment)
    return Load(n, f)


def applied_load(wrench: Load, motion: Motion, order: int) -> Load:
    """Load of a wrench whose derivatives are those of its coordinates in the body's frame.

    y' = dy/dt + omega x y for each of the two vectors, and once more for the second derivative.

    Parameters
    ----------
    wrench : Load
        What the body exerts on the environment, about the origin of the body's frame.
    motion : Motion
    order : int

    Returns
    -------
    Load
    """
    w = motion.omega[0]

    def seen_at_rest(y: Series) -> Series:
        series = [y[0]]
        if order >= 1:
            series.append(plus_cross(y[1], w, y[0]))
        if order >= 2:
            turning = plus_cross(y[2], scaled(2.0, w), y[1])
            series.append(plus_product(turning, motion.A[0], y[0]))
        return series

    return Load(seen_at_rest(wrench.n), seen_at_rest(wrench.f))


def placed_load(wrench: Load, place: Place) -> Load:
    """Load of a wrench in the base's axes, where its derivatives are those of its coordinates.

    Parameters
    ----------
    wrench : Load
    place : Place
        Of the body on which the wrench acts.

    Returns
    -------
    Load
        The same wrench, about the same point, in the body's axes.
    """

    def resolved(v: Vector) -> Vector:
        result = ZERO
        for coordinate, axis in zip(v, place.axes):
            result = plus_scaled(result, coordinate, axis)
        return result

    return Load([resolved(v) for v in wrench.n], [resolved(v) for v in wrench.f])


def load_about_origin(load: Load, arm: Series, order: int) -> Load:
    """Load about the origin of the frame, from the load about the point to which an arm leads.

    Parameters
    ----------
    load : Load
    arm : list of Vector
        With its derivatives up to the order.
    order : int

    Returns
    -------
    Load
    """
    return Load(_shifted(load.n, arm, load.f, order), load.f)


def sum_loads(a: Load, b: Load) -> Load:
    """Sum of two loads."""
    return Load(
        [plus(x, y) for x, y in zip(a.n, b.n)], [plus(x, y) for x, y in zip(a.f, b.f)]
    )


def effort(joint: Joint, load: Load, passage: Passage, order: int) -> list[Number]:
    """Effort of a joint that carries a load, and its derivatives: z . (turn n + slide f).

    Parameters
    ----------
    joint : Joint
    load : Load
    passage : Passage
    order : int

    Returns
    -------
    list of Number
    """
    felt = [
        plus_scaled(scaled(joint.turn, n), joint.slide, f) for n, f in zip(load.n, load.f)
    ]
    efforts = []
    for k in range(order + 1):
        value: Number = 0.0
        for j in range(k + 1):
            scale = float(comb(k, j))
            for x, y in zip(scaled(scale, passage.axis[j]), felt[k - j]):
                value = value + x * y
        efforts.append(value)
    return efforts


def backward(joint: Joint, load: Load, passage: Passage, order: int) -> Load:
    """Load on the parent that a load on a body makes, about the origin of the parent's frame.

    Parameters
    ----------
    joint : Joint
    load : Load
    passage : Passage
    order : int

    Returns
    -------
    Load
    """

    if passage.slide:
        load = load_about_origin(load, passage.slide, order)
    turned = Load(
        [_into_parent(joint, passage, v) for v in load.n],
        [_into_parent(joint, passage, v) for v in load.f],
    )
    return load_about_origin(turned, passage.arm, order)


def total(first: Number, *others: Number) -> Number:
    """Sum, from the left."""
    for other in others:
        first = first + other
    return first


def _shifted(n: Series, arm: Series, f: Series, order: int) -> Series:
    """Derivatives of n + arm x f."""
    shifted = []
    for k in range(order + 1):
        moment = n[k]
        for j in range(k + 1):
            moment = plus_cross(moment, scaled(float(comb(k, j)), arm[j]), f[k - j])
        shifted.append(moment)
    return shifted


def _along(axis: Series, length: Sequence[Number], k: int) -> Vector:
    """k-th derivative of axis times length."""
    result = ZERO
    for j in range(k + 1):
        result = plus_scaled(result, float(comb(k, j)) * length[k - j], axis[j])
    return result


def _into_body(joint: Joint, sine: Number, cosine: Number, v: Vector) -> Vector:
    """Coordinates in a body's axes from those in its parent's."""
    v = _turn_z(v, joint.cos_gamma, joint.sin_gamma)
    v = _turn_x(v, joint.cos_alpha, joint.sin_alpha)
    return _turn_z(v, cosine, sine)


def _into_parent(joint: Joint, passage: Passage, v: Vector) -> Vector:
    """Coordinates in the parent's axes from those in the body's."""
    v = _turn_z(v, passage.cosine, -passage.sine)
    v = _turn_x(v, joint.cos_alpha, -joint.sin_alpha)
    return _turn_z(v, joint.cos_gamma, -joint.sin_gamma)


def _turn_z(v: Vector, cosine: Number, sine: Number) -> Vector:
    """Coordinates in axes turned about z."""
    return (cosine * v[0] + sine * v[1], cosine * v[1] - sine * v[0], v[2])


def _turn_x(v: Vector, cosine: Number, sine: Number) -> Vector:
    """Coordinates in axes turned about x."""
    return (v[0], cosine * v[1] + sine * v[2], cosine * v[2] - sine * v[1])


def _matrix(diagonal: Vector, upper: Vector, lower: Vector, turn: Vector) -> Matrix:
    """Matrix with (yz, zx, xy) and (zy, xz, yx) off its diagonal, plus [turn]."""
    return (
        (diagonal[0], upper[2] - turn[2], lower[1] + turn[1]),
        (lower[2] + turn[2], diagonal[1], upper[0] - turn[0]),
        (upper[1] - turn[1], lower[0] + turn[0], diagonal[2]),
    )


def _plus_vee_symmetric(c: Vector, A: Matrix, J: Sequence[Number]) -> Vector:
    """c + the axis of A J - (A J)^T for a symmetric J."""
    xx, xy, xz, yy, yz, zz = J
    (a, b, d), (e, f, g), (h, i, j) = A
    return (
        c[0] + (j - f) * yz + h * xy - e * xz + i * yy - g * zz,
        c[1] + (a - j) * xz + b * yz - i * xy + d * zz - h * xx,
        c[2] + (f - a) * xy + g * xz - d * yz + e * xx - b * yy,
    )


def _plus_vee(c: Vector, A: Matrix, G: Matrix) -> Vector:
    """c + the axis of A G - (A G)^T."""
    result = list(c)
    for i, j, k in ((0, 2, 1), (1, 0, 2), (2, 1, 0)):
        for m in range(3):
            result[i] = result[i] + A[j][m] * G[m][k]
            result[i] = result[i] - A[k][m] * G[m][j]
    return (result[0], result[1], result[2])


def _is_zero(value: Number) -> bool:
    return isinstance(value, float) and value == 0.0
