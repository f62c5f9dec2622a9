"""Inverse dynamics of any order over abstract scalars, one body at a time.

Every body has a frame whose z axis is its joint axis; derivatives are those of the components in
it, D = d/dt of what stands in the array. For an effort with r derivatives a body carries its
angular velocity w, with derivatives up to the order r + 1, the acceleration a of its origin and
the matrix B = w w^T - w^2 1 + [dw], up to the order r. The acceleration -g of the base stands for
gravity. The equations are on the page `doc/formulations/body_fixed.rst`.

All functions work with whatever adds, subtracts and multiplies: numbers, arrays, or the scalars of
`program.Recorder`. What changes with time is a `Jet` of these: all derivatives come from formulas
for one moment. Source: the equations of motion of a rigid body about a moving point, in
components; joints as in Kumar and Mueller 2021, section II.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

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
from hodyn_ros.lie.jets import Jet, constant, derivative, evaluate, turned


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

    w: Vector
    a: Vector
    B: Matrix


class Place(NamedTuple):
    """Where a body is: the base's axes in its frame, and the position of its origin.

    The position, seen from the base, has derivatives up to the order r, the axes have none.
    """

    axes: tuple[Vector, Vector, Vector]
    p: Vector


class Load(NamedTuple):
    """Moment about the origin and force."""

    n: Vector
    f: Vector


class Turn(NamedTuple):
    """Turn of a body about its joint axis: sine, cosine, and the rate of the angle."""

    sine: Number
    cosine: Number
    rate: Jet


class JointMotion(NamedTuple):
    """Position of the joint of a body, and the turn that it makes."""

    joint: JointFrame
    q: Jet
    turn: Turn

    def first(self, count: int) -> JointMotion:
        """Drop all but the first entries of the position."""
        turn = self.turn._replace(rate=self.turn.rate[: count - 1])
        return JointMotion(self.joint, self.q[:count], turn)

    @property
    def screw(self) -> tuple[Vector, Vector]:
        """Twist of the joint with the rate 1, in the body's axes."""
        return scaled(self.joint.turn, AXIS), scaled(self.joint.slide, AXIS)

    def to_child(self, v: Vector) -> Vector:
        """Components of a vector in the body's axes, from those in its parent's."""
        return to_child(self.joint, self.turn, v)

    def to_parent(self, v: Vector) -> Vector:
        """Components of a vector in the axes of the body's parent."""
        return to_parent(self.joint, self.turn, v)

    def matrix_to_parent(self, A: Matrix) -> Matrix:
        """Components R A R^T in the parent's axes, of a matrix in the body's."""
        return matrix_in_parent(self.joint, self.turn, A)

    def outward(self, parent: BodyMotion) -> BodyMotion:
        """Motion of the body from that of its parent; q has two entries more than efforts have."""
        return forward(self.joint, self.turn, self.q, parent)

    def inward(self, load: Load) -> Load:
        """Load on the parent that a load on the body makes, each about its frame's origin."""
        return backward(self.joint, self.turn, self.q, load)

    def effort(self, load: Load) -> Number:
        """Effort of the joint that carries a load, without the armature."""
        return effort(self.joint, load)


NO_LOAD = Load(ZERO, ZERO)


def rate(v: Vector) -> Vector:
    """Derivative of components; that of constants is zero."""
    x, y, z = (c.rate() if isinstance(c, Jet) else 0.0 for c in v)
    return (x, y, z)


def of_order(v: Vector, k: int) -> Vector:
    """Derivative k of components."""
    x, y, z = (derivative(c, k) for c in v)
    return (x, y, z)


def followed(v: Vector, by: Vector, count: int | None = None) -> Vector:
    """Components with one derivative more, behind so many of those that they have."""
    x, y, z = (Jet([*component[:count], value]) for component, value in zip(v, by))
    return (x, y, z)


def squares(w: Vector) -> tuple[Vector, Vector]:
    """Products w w^T, with one derivative fewer than w has: (xx, yy, zz) and (yz, zx, xy)."""
    x, y, z = (c[:-1] if isinstance(c, Jet) else c for c in w)
    return (x * x, y * y, z * z), (y * z, z * x, x * y)


def acceleration_matrix(w: Vector) -> Matrix:
    """Matrix B = w w^T - w^2 1 + [dw], with one derivative fewer than the angular velocity.

    The acceleration of a point of the body at r is a + B r.
    """
    ((xx, yy, zz), (yz, zx, xy)), (x, y, z) = squares(w), rate(w)
    return (
        (-(yy + zz), xy - z, zx + y),
        (xy + z, -(xx + zz), yz - x),
        (zx - y, yz + x, -(xx + yy)),
    )


def body_motion(w: Vector, a: Vector) -> BodyMotion:
    """Motion of a body, from w and a with their derivatives."""
    return BodyMotion(w, a, acceleration_matrix(w))


def base_motion(a: Vector, order: int) -> BodyMotion:
    """Motion of a base at rest whose acceleration stands for gravity.

    Parameters
    ----------
    a : Vector
        Minus the gravitational acceleration [m/s^2] in the base's axes.
    order : int
        Highest derivative r of the efforts.
    """
    x, y, z = (constant(component, order + 1) for component in a)
    return BodyMotion(ZERO, (x, y, z), (ZERO, ZERO, ZERO))


def load_of(values: Sequence[Number]) -> Load:
    """Load from numbers: for each derivative moment and force, six in all."""
    nx, ny, nz, fx, fy, fz = (Jet(values[k::6]) for k in range(6))
    return Load((nx, ny, nz), (fx, fy, fz))


def turn_of(joint: JointFrame, q: Jet) -> Turn:
    """Turn that a joint makes at the position q."""
    c = joint.turn * evaluate('cosine', q[0]) + joint.still
    s = joint.turn * evaluate('sine', q[0])
    return Turn(
        s * joint.cos_offset + c * joint.sin_offset,
        c * joint.cos_offset - s * joint.sin_offset,
        joint.turn * q.rate(),
    )


def to_child(joint: JointFrame, turn: Turn, v: Vector) -> Vector:
    """Components of a vector in a body's axes, from those in its parent's."""
    return _turned(_constant_turn(joint, v), turn, -1.0)


def to_parent(joint: JointFrame, turn: Turn, v: Vector) -> Vector:
    """Components of a vector in the axes of a body's parent, from those in the body's."""
    return _constant_turn_back(joint, _turned(v, turn, 1.0))


def matrix_in_parent(joint: JointFrame, turn: Turn, A: Matrix) -> Matrix:
    """Components R A R^T in the parent's axes, of a matrix in a body's."""
    *known, zz = (x for row in _turned_about_z(A, turn.cosine, turn.sine) for x in row)

    def rates(k: int, A: tuple[Number, ...]) -> tuple[Number, ...]:
        # (k+1)-th derivative of the angle times [z] A - A [z]
        xx, xy, xz, yx, yy, yz, zx, zy = A
        shear, stretch = xy + yx, xx - yy
        values = (-shear, stretch, -yz, stretch, shear, xz, -zy, zx)
        return tuple(turn.rate[k] * x for x in values)

    xx, xy, xz, yx, yy, yz, zx, zy = turned(tuple(known), rates, len(turn.rate) + 1)
    A = ((xx, xy, xz), (yx, yy, yz), (zx, zy, zz))
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
    A = _turned_about_z(((yy, yz, yx), (zy, zz, zx), (xy, xz, xx)), c, s)
    (yy, yz, yx), (zy, zz, zx), (xy, xz, xx) = A
    return ((xx, xy, xz), (yx, yy, yz), (zx, zy, zz))


def forward(joint: JointFrame, turn: Turn, q: Jet, parent: BodyMotion) -> BodyMotion:
    """Motion of a body from that of its parent; q has derivatives up to the order r + 2.

    The position is used only by joints that slide.
    """
    w = _constant_turn(joint, parent.w)
    a = _constant_turn(joint, plus_product(parent.a, parent.B, joint.d))
    if slides(joint):
        a = _slid(joint, q, w, a)
    w = plus_scaled(_turned(w, turn, -1.0), turn.rate, AXIS)
    return body_motion(w, _turned(a, turn, -1.0))


def forward_place(joint: JointFrame, turn: Turn, q: Jet, parent: Place) -> Place:
    """Place of a body from that of its parent; q has derivatives up to the order r."""
    still = turn._replace(rate=Jet([]))
    x, y, z = (to_child(joint, still, axis) for axis in parent.axes)
    p = _constant_turn(joint, plus(parent.p, joint.d))
    p = plus_scaled(p, joint.slide * q, AXIS)
    return Place((x, y, z), _turned(p, turn, -1.0))


def inertial_load(body: Body, motion: BodyMotion) -> Load:
    """Load that moves a body: f = m a + B h, n = h x a + vee(B J), with derivatives up to r.

    In the axes and about the origin of the body's frame.
    """
    # What is known of B need not be found from its entries again.
    S, (_, _, xy) = squares(motion.w)
    n = _plus_vee(cross(body.h, motion.a), motion.B, body.J, S, xy, rate(motion.w)[2])
    return Load(n, plus_scaled(product(motion.B, body.h), body.mass, motion.a))


def twist_of_child(motion: JointMotion, w: Vector, v: Vector) -> tuple[Vector, Vector]:
    """Twist of a body's frame in its own axes, from that of its parent's.

    Parameters
    ----------
    motion : JointMotion
    w, v : Vector
        Angular velocity and velocity of the origin of the parent's frame, in its axes.
    """
    joint, rate = motion.joint, motion.q.rate()
    w, v = screw_of_child(motion, w, v)
    w = plus_scaled(w, joint.turn * rate, AXIS)
    return w, plus_scaled(v, joint.slide * rate, AXIS)


def screw_of_child(motion: JointMotion, w: Vector, v: Vector) -> tuple[Vector, Vector]:
    """Components of a twist for a body's frame, from those for its parent's.

    The twist is the same: only axes and the point whose velocity counts change.
    """
    joint = motion.joint
    v = plus_cross(v, w, joint.d)
    w = to_child(joint, motion.turn, w)
    v = to_child(joint, motion.turn, v)
    slide = joint.slide * motion.q
    return w, plus_cross(v, w, scaled(slide, AXIS))


def load_from_base(wrench: Load, place: Place, motion: BodyMotion) -> Load:
    """Load in a body's axes of a wrench in the base's axes, about the same point.

    The derivatives are those of its components there: with v the components turned into the body's
    axes, D v = the derivatives turned - w x v.
    """

    def moving(v: Vector) -> Vector:
        found = ZERO
        for coordinate, axis in zip(v, place.axes):
            found = plus_scaled(found, coordinate, axis)
        x, y, z = turned(found, lambda k, v: cross(v, of_order(motion.w, k)))
        return (x, y, z)

    return Load(moving(wrench.n), moving(wrench.f))


def load_about_origin(load: Load, arm: Vector) -> Load:
    """Load about the origin of the frame, from the load about the point to which an arm leads."""
    return Load(plus_cross(load.n, arm, load.f), load.f)


def sum_loads(a: Load, b: Load) -> Load:
    """Sum of two loads."""
    return Load(plus(a.n, b.n), plus(a.f, b.f))


def effort(joint: JointFrame, load: Load) -> Number:
    """Effort of a joint that carries a load: z . (turn n + slide f).

    In [N m] of joints that turn, [N] of the others; without the armature.
    """
    return joint.turn * load.n[2] + joint.slide * load.f[2]


def backward(joint: JointFrame, turn: Turn, q: Number, load: Load) -> Load:
    """Load on the parent that a load on a body makes, about the origin of the parent's frame.

    Parameters
    ----------
    joint : JointFrame
    turn : Turn
    q : Jet or Number
        Position; used only by joints that slide.
    load : Load
        In the axes and about the origin of the body's frame.
    """
    if slides(joint):
        load = load_about_origin(load, scaled(joint.slide * q, AXIS))
    load = Load(to_parent(joint, turn, load.n), to_parent(joint, turn, load.f))
    return load_about_origin(load, joint.d)


def slides(joint: JointFrame) -> bool:
    """Whether a joint moves along its axis, or may."""
    return not (isinstance(joint.slide, float) and joint.slide == 0.0)


def _turned(v: Vector, turn: Turn, direction: float) -> Vector:
    """Components in axes that turn about z.

    The direction is -1 from the axes before the turn into those behind it, 1 back.
    """
    x, y, z = _turn_z(v, turn.cosine, -direction * turn.sine)

    def rates(k: int, v: tuple[Number, ...]) -> tuple[Number, ...]:
        # direction z x v times the (k+1)-th derivative of the angle
        x, y = turn.rate[k] * v[1], turn.rate[k] * v[0]
        return (x, -y) if direction < 0.0 else (-x, y)

    x, y = turned((x, y), rates, len(turn.rate) + 1)
    return (x, y, z)


def _slid(joint: JointFrame, q: Jet, w: Vector, a: Vector) -> Vector:
    """Acceleration of the origin of a body that has moved by s along z, in axes of the parent.

    a + s B z + 2 ds w x z + d2s z.
    """
    s, B = joint.slide * q, acceleration_matrix(w)
    a = plus_scaled(a, s, (B[0][2], B[1][2], B[2][2]))
    a = plus_scaled(a, 2.0 * s.rate(), (w[1], -w[0], 0.0))
    return plus_scaled(a, s.rate().rate(), AXIS)


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
