"""Inverse dynamics of any order over abstract scalars, one body at a time.

Every body has a frame whose z axis is its joint axis; derivatives are those of the components in
it, D = d/dt of what stands in the array. For an effort with r derivatives a body carries its
angular velocity w, with derivatives up to the order r + 1, the acceleration a of its origin and
the matrix B = w w^T - w^2 1 + [dw], up to the order r. The acceleration -g of the base stands for
gravity. The equations are on the page `doc/formulations/body_fixed.rst`.

All functions work with whatever adds, subtracts and multiplies: numbers, arrays, or the scalars of
`program.Recorder`. Source: the equations of motion of a rigid body about a moving point, in
components; joints as in Kumar and Mueller 2021, section II.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import Any, NamedTuple

from hodyn_ros.engine.vectors import (
    AXIS,
    ZERO,
    Matrix,
    Number,
    Vector,
    cross,
    plus,
    plus_cross,
    plus_product,
    plus_scaled,
    product,
    scaled,
)

Series = list[Vector]
"""A vector's components and their time derivatives."""


class JointFrame(NamedTuple):
    """Where a body's frame is in its parent's, and how its joint moves it; see `frames`.

    Attributes
    ----------
    cos_gamma, sin_gamma, cos_alpha, sin_alpha, cos_offset, sin_offset : Number
        R = Rz(gamma) Rx(alpha) Rz(offset + q).
    d : Vector
        Origin of the body's frame in the parent's at zero position [m].
    turn, still : Number
        1 and 0 for a joint that turns, 0 and 1 for one that does not.
    slide : Number
        Way along the axis for each unit of the position: 1, a pitch [m/rad], or 0.
    """

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
    """Mass, first moment h and second moments J (xx, xy, xz, yy, yz, zz) about the origin.

    Attributes
    ----------
    mass : Number
        [kg]
    h : Vector
        Mass times centre of mass [kg m].
    J : six Numbers
        Integrals of x x, x y, ... over the mass [kg m^2]; moments of inertia are sums of them.
    """

    mass: Number
    h: Vector
    J: tuple[Number, Number, Number, Number, Number, Number]


class BodyMotion(NamedTuple):
    """Motion of a body: derivatives of w up to r + 1, of a and B up to r."""

    w: Series
    a: Series
    B: list[Matrix]


class Place(NamedTuple):
    """Where a body is: the base's axes in its frame, and the position of its origin.

    The position, seen from the base, has derivatives up to the order r.
    """

    axes: tuple[Vector, Vector, Vector]
    p: Series


class Load(NamedTuple):
    """Moment about the origin and force, with derivatives up to r."""

    n: Series
    f: Series


class Turn(NamedTuple):
    """Turn of a body about its joint axis: sine, cosine, and derivatives of the angle from 1."""

    sine: Number
    cosine: Number
    rates: list[Number]


def squares(w: Series) -> list[tuple[Vector, Vector]]:
    """Products w w^T with their derivatives, one fewer than w has.

    Returns
    -------
    list of (Vector, Vector)
        For each derivative (xx, yy, zz) and (yz, zx, xy).
    """
    found = []
    for k in range(len(w) - 1):
        diagonal, others = ZERO, ZERO
        # Each pair of equal terms of Leibniz's sum once, with twice the factor.
        for j in range(k // 2 + 1):
            both = 2 * j != k
            left, right = scaled(float(comb(k, j)), w[j]), w[k - j]
            doubled = scaled(2.0, left) if both else left
            diagonal = tuple(diagonal[i] + doubled[i] * right[i] for i in range(3))
            mixed = []
            for i, m in ((1, 2), (2, 0), (0, 1)):
                product = left[i] * right[m]
                mixed.append(product + left[m] * right[i] if both else product)
            others = plus(others, (mixed[0], mixed[1], mixed[2]))
        found.append((diagonal, others))
    return found


def acceleration_matrices(w: Series) -> list[Matrix]:
    """Matrices B = w w^T - w^2 1 + [dw] with derivatives, one fewer than the angular velocity.

    The acceleration of a point of the body at r is a + B r.
    """
    return [
        (
            (-(yy + zz), xy - z, zx + y),
            (xy + z, -(xx + zz), yz - x),
            (zx - y, yz + x, -(xx + yy)),
        )
        for ((xx, yy, zz), (yz, zx, xy)), (x, y, z) in zip(squares(w), w[1:])
    ]


def body_motion(w: Series, a: Series) -> BodyMotion:
    """Motion of a body, from the derivatives of w and a."""
    return BodyMotion(w, a, acceleration_matrices(w))


def base_motion(a: Vector, order: int) -> BodyMotion:
    """Motion of a base at rest whose acceleration stands for gravity.

    Parameters
    ----------
    a : Vector
        Minus the gravitational acceleration [m/s^2] in the base's axes.
    order : int
        Highest derivative r of the efforts.
    """
    return BodyMotion(
        [ZERO] * (order + 2), [a, *[ZERO] * order], [(ZERO, ZERO, ZERO)] * (order + 1)
    )


def load_of(values: Sequence[Number]) -> Load:
    """Load from numbers: for each derivative moment and force, six in all."""
    vectors = [(values[k], values[k + 1], values[k + 2]) for k in range(0, len(values), 3)]
    return Load(vectors[::2], vectors[1::2])


def turn_of(joint: JointFrame, sine: Number, cosine: Number, q: Sequence[Number]) -> Turn:
    """Turn that a joint makes.

    Parameters
    ----------
    joint : JointFrame
    sine, cosine : Number
        Of the position q.
    q : sequence of Number
        Position and derivatives; those from 1 on become the rates.
    """
    c = joint.turn * cosine + joint.still
    s = joint.turn * sine
    return Turn(
        s * joint.cos_offset + c * joint.sin_offset,
        c * joint.cos_offset - s * joint.sin_offset,
        [joint.turn * x for x in q[1:]],
    )


def to_child(joint: JointFrame, turn: Turn, v: Vector) -> Vector:
    """Components of a vector in a body's axes, from those in its parent's."""
    return _turn_z(_constant_turn(joint, v), turn.cosine, turn.sine)


def to_parent(joint: JointFrame, turn: Turn, v: Vector) -> Vector:
    """Components of a vector in the axes of a body's parent, from those in the body's."""
    return _constant_turn_back(joint, _turn_z(v, turn.cosine, -turn.sine))


def matrix_in_parent(joint: JointFrame, turn: Turn, A: Matrix) -> Matrix:
    """Components R A R^T in the parent's axes, of a matrix in a body's."""
    A = _turned_about_z(A, turn.cosine, turn.sine)
    A = _turned_about_x(A, joint.cos_alpha, joint.sin_alpha)
    return _turned_about_z(A, joint.cos_gamma, joint.sin_gamma)


def _turned_about_z(A: Matrix, c: Number, s: Number) -> Matrix:
    """Rz A Rz^T."""
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = A
    if isinstance(s, float):
        cc, cs, ss = c * c, c * s, s * s
        block = (
            (cc * xx + ss * yy - cs * (xy + yx), cc * xy - ss * yx + cs * (xx - yy)),
            (cc * yx - ss * xy + cs * (xx - yy), ss * xx + cc * yy + cs * (xy + yx)),
        )
    else:
        # With cos 2q = 1 - 2 s s and sin 2q = 2 s c.
        difference, total = yy - xx, xy + yx
        p = s * (s * difference - c * total)
        r = -(s * (c * difference + s * total))
        block = ((xx + p, xy + r), (yx + r, yy - p))
    return (
        (*block[0], c * xz - s * yz),
        (*block[1], s * xz + c * yz),
        (c * zx - s * zy, s * zx + c * zy, zz),
    )


def _turned_about_x(A: Matrix, c: Number, s: Number) -> Matrix:
    """Rx A Rx^T."""
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = A
    turned = _turned_about_z(((yy, yz, yx), (zy, zz, zx), (xy, xz, xx)), c, s)
    (yy, yz, yx), (zy, zz, zx), (xy, xz, xx) = turned
    return ((xx, xy, xz), (yx, yy, yz), (zx, zy, zz))


def forward(
    joint: JointFrame, turn: Turn, q: Sequence[Number], parent: BodyMotion
) -> BodyMotion:
    """Motion of a body from that of its parent; q has derivatives up to the order r + 2.

    The position is used only by joints that slide.
    """
    w = [_constant_turn(joint, x) for x in parent.w]
    a = [
        _constant_turn(joint, plus_product(x, B, joint.d))
        for x, B in zip(parent.a, parent.B)
    ]
    if slides(joint):
        a = _slid(joint, q, w, a)
    w = _turned(w, turn, -1.0)
    w = [(x[0], x[1], x[2] + rate) for x, rate in zip(w, turn.rates)]
    return body_motion(w, _turned(a, turn, -1.0))


def forward_place(
    joint: JointFrame, turn: Turn, q: Sequence[Number], parent: Place
) -> Place:
    """Place of a body from that of its parent; q has derivatives up to the order r."""
    x, y, z = (
        _turned([_constant_turn(joint, axis)], turn, -1.0)[0] for axis in parent.axes
    )
    p = [plus(parent.p[0], joint.d), *parent.p[1:]]
    p = [plus_scaled(_constant_turn(joint, v), joint.slide * s, AXIS) for v, s in zip(p, q)]
    return Place((x, y, z), _turned(p, turn, -1.0))


def inertial_load(body: Body, motion: BodyMotion) -> Load:
    """Load that moves a body: f = m a + B h, n = h x a + vee(B J), with derivatives up to r.

    In the axes and about the origin of the body's frame.
    """
    n, f = [], []
    # What is known of B need not be found from its entries again.
    for a, B, (S, (_, _, xy)), dw in zip(
        motion.a, motion.B, squares(motion.w), motion.w[1:]
    ):
        f.append(plus_scaled(product(B, body.h), body.mass, a))
        n.append(_plus_vee(cross(body.h, a), B, body.J, S, xy, dw[2]))
    return Load(n, f)


def load_from_base(wrench: Load, place: Place, motion: BodyMotion) -> Load:
    """Load in a body's axes of a wrench in the base's axes, about the same point.

    The derivatives are those of its components there: with v the components turned into the body's
    axes, D v = the derivatives turned - w x v.
    """

    def moving(series: Series) -> Series:
        turned = []
        for v in series:
            result = ZERO
            for coordinate, axis in zip(v, place.axes):
                result = plus_scaled(result, coordinate, axis)
            turned.append(result)
        return differentiated(turned, lambda k, v: cross(v, motion.w[k]))

    return Load(moving(wrench.n), moving(wrench.f))


def load_about_origin(load: Load, arm: Series) -> Load:
    """Load about the origin of the frame, from the load about the point to which an arm leads.

    The arm has derivatives up to r; fewer if the others are zero.
    """
    n = []
    for k, moment in enumerate(load.n):
        for j in range(min(k + 1, len(arm))):
            moment = plus_cross(moment, scaled(float(comb(k, j)), arm[j]), load.f[k - j])
        n.append(moment)
    return Load(n, load.f)


def sum_loads(a: Load, b: Load) -> Load:
    """Sum of two loads."""
    return Load(
        [plus(x, y) for x, y in zip(a.n, b.n)], [plus(x, y) for x, y in zip(a.f, b.f)]
    )


def effort(joint: JointFrame, load: Load) -> list[Number]:
    """Effort of a joint that carries a load, and its derivatives: z . (turn n + slide f).

    In [N m] of joints that turn, [N] of the others; without the armature.
    """
    return [joint.turn * n[2] + joint.slide * f[2] for n, f in zip(load.n, load.f)]


def backward(joint: JointFrame, turn: Turn, q: Sequence[Number], load: Load) -> Load:
    """Load on the parent that a load on a body makes, about the origin of the parent's frame.

    Parameters
    ----------
    joint : JointFrame
    turn : Turn
    q : sequence of Number
        Position and derivatives up to r; used only by joints that slide.
    load : Load
        In the axes and about the origin of the body's frame.
    """
    if slides(joint):
        load = load_about_origin(
            load, [scaled(joint.slide * x, AXIS) for x in q[: len(load.n)]]
        )
    turned = Load(
        [_constant_turn_back(joint, v) for v in _turned(load.n, turn, 1.0)],
        [_constant_turn_back(joint, v) for v in _turned(load.f, turn, 1.0)],
    )
    return load_about_origin(turned, [joint.d])


def slides(joint: JointFrame) -> bool:
    """Whether a joint moves along its axis, or may."""
    return not (isinstance(joint.slide, float) and joint.slide == 0.0)


def _turned(series: Series, turn: Turn, direction: float) -> Series:
    """Components in axes that turn about z, with their derivatives.

    The direction is -1 from the axes before the turn into those behind it, 1 back.
    """
    sine, cosine = turn.sine, turn.cosine
    if direction > 0.0:
        sine = -sine
    turned = [_turn_z(v, cosine, sine) for v in series]

    def rate(k: int, v: Vector) -> Vector:
        # direction z x v times the (k+1)-th derivative of the angle
        x, y = turn.rates[k] * v[1], turn.rates[k] * v[0]
        return (x, -y, 0.0) if direction < 0.0 else (-x, y, 0.0)

    return differentiated(turned, rate)


def differentiated(turned: Series, rate: Any) -> Series:
    """D^k v_0 of components in axes that turn.

    With v_j the components of the j-th derivative in the axes from which it comes, turned into the
    new ones, D v_j = v_{j+1} + O v_j for a matrix O of the angular velocity. So

        D^k v_j = D^(k-1) v_{j+1} + sum_i binomial(k-1, i) (D^i O) D^(k-1-i) v_j,

    and collecting all terms with the same D^i O leaves one product with each: `rate` gives, from i
    and a vector, D^i O times the vector.
    """
    table = [[v] for v in turned]  # [j][k] is D^k v_j
    for k in range(1, len(turned)):
        for j in range(len(turned) - k):
            value = turned[j + k]
            for i in range(k):
                collected = ZERO
                for m in range(k - i):
                    factor = float(comb(k - 1 - m, i))
                    collected = plus_scaled(collected, factor, table[j + m][k - 1 - m - i])
                value = plus(value, rate(i, collected))
            table[j].append(value)
    return table[0]


def _slid(joint: JointFrame, q: Sequence[Number], w: Series, a: Series) -> Series:
    """Acceleration of the origin of a body that has moved by s along z, in axes of the parent.

    a + s B z + 2 ds w x z + d2s z, and its derivatives.
    """
    s = [joint.slide * x for x in q]
    along = [(B[0][2], B[1][2], B[2][2]) for B in acceleration_matrices(w)]
    across = [(v[1], -v[0], 0.0) for v in w]
    result = []
    for k, value in enumerate(a):
        for j in range(k + 1):
            factor = float(comb(k, j))
            value = plus_scaled(value, factor * s[j], along[k - j])
            value = plus_scaled(value, 2.0 * factor * s[j + 1], across[k - j])
        result.append((value[0], value[1], value[2] + s[k + 2]))
    return result


def _constant_turn(joint: JointFrame, v: Vector) -> Vector:
    """Coordinates in a body's axes, before it turns, from those in its parent's."""
    v = _turn_z(v, joint.cos_gamma, joint.sin_gamma)
    return _turn_x(v, joint.cos_alpha, joint.sin_alpha)


def _constant_turn_back(joint: JointFrame, v: Vector) -> Vector:
    """Inverse of `_constant_turn`."""
    v = _turn_x(v, joint.cos_alpha, -joint.sin_alpha)
    return _turn_z(v, joint.cos_gamma, -joint.sin_gamma)


def _turn_z(v: Vector, cosine: Number, sine: Number) -> Vector:
    """Coordinates in axes turned about z."""
    return (cosine * v[0] + sine * v[1], cosine * v[1] - sine * v[0], v[2])


def _turn_x(v: Vector, cosine: Number, sine: Number) -> Vector:
    """Coordinates in axes turned about x."""
    return (v[0], cosine * v[1] + sine * v[2], cosine * v[2] - sine * v[1])


def _plus_vee(
    c: Vector, B: Matrix, J: Sequence[Number], S: Vector, S_xy: Number, dw_z: Number
) -> Vector:
    """Add to c the axis of B J - (B J)^T; B has S = w w^T, its diagonal and xy, in it, and dw."""
    xx, xy, xz, yy, yz, zz = J
    (_, b, d), (e, _, g), (h, i, _) = B
    return (
        c[0] + (S[2] - S[1]) * yz + h * xy - e * xz + i * yy - g * zz,
        c[1] + (S[0] - S[2]) * xz + b * yz - i * xy + d * zz - h * xx,
        c[2] + (S[1] - S[0]) * xy + g * xz - d * yz + S_xy * (xx - yy) + dw_z * (xx + yy),
    )
