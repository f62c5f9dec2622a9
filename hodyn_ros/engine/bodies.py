"""Steps of one body in the recursions over a tree: motions go outwards, loads go inwards.

Every body has a frame whose z axis is its joint axis; derivatives are those of the components in
it, D = d/dt of what stands in the array. For an effort with r derivatives a body carries its
angular velocity w, with derivatives up to the order r + 1, the acceleration a of its origin and
the matrix B = w w^T - w^2 1 + [dw], up to the order r. The acceleration -g of the base stands for
gravity. The equations are on the page `doc/formulations/index.rst`.

All steps work with whatever adds, subtracts and multiplies: numbers, arrays, or the scalars of
`program.Recorder`. What changes with time is a `Jet` of these: all derivatives come from formulas
for one moment. `walker` takes the steps for all bodies of one robot, or for one of any tree.
Source: the equations of motion of a rigid body about a moving point, in components; joints as in
Kumar and Mueller 2021, section II.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from hodyn_ros.engine.vectors import (
    AXIS,
    NULL,
    ZERO,
    Matrix,
    Number,
    Vector,
    matrix,
)
from hodyn_ros.lie.jets import Jet, constant, evaluate, turned

Angle = tuple[Number, Number]
"""Cosine and sine of an angle."""

Screw = tuple[Vector, Vector]
"""Angular and linear part of a twist or of an acceleration."""


class JointFrame(NamedTuple):
    """Where a body's frame is in its parent's, and how its joint moves it; see `frames`.

    Attributes
    ----------
    gamma, alpha, offset : (Number, Number)
        Cosines and sines of the angles of R = Rz(gamma) Rx(alpha) Rz(offset + q).
    d : Vector
        Origin of the body's frame in the parent's at zero position [m].
    turn, still : Number
        1 and 0 for a joint that turns, 0 and 1 for one that does not.
    slide : Number
        Way along the axis for each unit of the position: 1, a pitch [m/rad], or 0.
    """

    gamma: Angle
    alpha: Angle
    offset: Angle
    d: Vector
    turn: Number
    still: Number
    slide: Number


class BodyMotion(NamedTuple):
    """Motion of a body: derivatives of w up to r + 1, of a and B up to r."""

    w: Vector
    a: Vector
    B: Matrix


class Pose(NamedTuple):
    """Pose of a body: the base's axes in its frame, and the position of its origin.

    The position, seen from the base, has derivatives up to the order r, the axes have none.
    """

    axes: Matrix
    p: Vector


class Load(NamedTuple):
    """Moment about the origin and force."""

    n: Vector
    f: Vector

    def __add__(self, other: Any) -> Load:
        """Sum of two loads."""
        return Load(self.n + other.n, self.f + other.f)

    def moved(self, arm: Vector) -> Load:
        """Load about an origin from which an arm leads to the present one."""
        return Load(self.n + arm.cross(self.f), self.f)


NO_LOAD = Load(ZERO, ZERO)


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

    def load(self, motion: BodyMotion) -> Load:
        """Load that moves the body: f = m a + B h, n = h x a + vee(B J), derivatives up to r.

        In the axes and about the origin of the body's frame.
        """
        xx, xy, xz, yy, yz, zz = self.J
        (_, b, d), (e, _, g), (h, i, _) = motion.B
        # What is known of B need not be found from its entries again.
        (wxx, wyy, wzz), (_, _, wxy) = squares(motion.w)
        x, y, z = self.h.cross(motion.a)
        n = Vector(
            x + (wzz - wyy) * yz + h * xy - e * xz + i * yy - g * zz,
            y + (wxx - wzz) * xz + b * yz - i * xy + d * zz - h * xx,
            z
            + (wyy - wxx) * xy
            + g * xz
            - d * yz
            + wxy * (xx - yy)
            + motion.w.rate().z * (xx + yy),
        )
        return Load(n, motion.B @ self.h + motion.a * self.mass)


class JointMotion(NamedTuple):
    """Motion of a joint and, with it, of its body in the parent's frame.

    Attributes
    ----------
    joint : JointFrame
    q : Jet
        Position of the joint.
    sine, cosine : Number
        Of the angle offset + q, or of the offset alone if the joint does not turn.
    """

    joint: JointFrame
    q: Jet
    sine: Number
    cosine: Number

    @classmethod
    def at(cls, joint: JointFrame, q: Jet) -> JointMotion:
        """Motion of a joint at the position q."""
        c = joint.turn * evaluate('cosine', q[0]) + joint.still
        s = joint.turn * evaluate('sine', q[0])
        c_offset, s_offset = joint.offset
        sine, cosine = s * c_offset + c * s_offset, c * c_offset - s * s_offset
        return cls(joint, q, sine, cosine)

    def first(self, count: int) -> JointMotion:
        """Drop all but the first entries of the position."""
        return self._replace(q=self.q[:count])

    @property
    def rate(self) -> Number:
        """Rate of the angle."""
        return self.q.rate() * self.joint.turn

    @property
    def slides(self) -> bool:
        """Whether the joint moves along its axis, or may."""
        return not (isinstance(self.joint.slide, float) and self.joint.slide == 0.0)

    @property
    def slide(self) -> Vector:
        """Way along the axis, in the body's axes."""
        return Vector(0.0, 0.0, self.joint.slide * self.q)

    @property
    def screw(self) -> Screw:
        """Twist of the joint with the rate 1, in the body's axes."""
        return AXIS * self.joint.turn, AXIS * self.joint.slide

    # --- Components -----------------------------------------------------------------------------

    def to_child(self, v: Vector) -> Vector:
        """Components of a vector in the body's axes, from those in its parent's."""
        return self._turned(self._before_turn(v), -1.0)

    def to_parent(self, v: Vector) -> Vector:
        """Components of a vector in the axes of the body's parent, from those in the body's."""
        v = _turn_x(self._turned(v, 1.0), *_back(self.joint.alpha))
        return _turn_z(v, *_back(self.joint.gamma))

    def matrix_to_parent(self, A: Matrix) -> Matrix:
        """Components R A R^T in the parent's axes, of a matrix in the body's."""
        *changing, zz = (
            x for row in _turned_about_z(A, self.cosine, self.sine) for x in row
        )
        rate = self.rate

        def rates(k: int, A: tuple[Number, ...]) -> tuple[Number, ...]:
            # (k+1)-th derivative of the angle times [z] A - A [z]
            xx, xy, xz, yx, yy, yz, zx, zy = A
            shear, stretch = xy + yx, xx - yy
            values = (-shear, stretch, -yz, stretch, shear, xz, -zy, zx)
            return tuple(rate[k] * x for x in values)

        A = matrix(*turned(tuple(changing), rates, len(rate) + 1), zz)
        A = _turned_about_x(A, *self.joint.alpha)
        return _turned_about_z(A, *self.joint.gamma)

    def _before_turn(self, v: Vector) -> Vector:
        """Components in the body's axes, before they turn, from those in the parent's."""
        return _turn_x(_turn_z(v, *self.joint.gamma), *self.joint.alpha)

    def _turned(self, v: Vector, direction: float) -> Vector:
        """Components in axes that turn about z.

        The direction is -1 from the axes before the turn into those behind it, 1 back.
        """
        x, y, z = _turn_z(v, self.cosine, -direction * self.sine)
        rate = self.rate

        def rates(k: int, v: tuple[Number, ...]) -> tuple[Number, ...]:
            # direction z x v times the (k+1)-th derivative of the angle
            x, y = rate[k] * v[1], rate[k] * v[0]
            return (x, -y) if direction < 0.0 else (-x, y)

        x, y = turned((x, y), rates, len(rate) + 1)
        return Vector(x, y, z)

    # --- Outwards -------------------------------------------------------------------------------

    def outward(self, parent: BodyMotion) -> BodyMotion:
        """Motion of the body from that of its parent; q has derivatives up to the order r + 2.

        The position is used only by joints that slide.
        """
        w = self._before_turn(parent.w)
        a = self._before_turn(parent.a + parent.B @ self.joint.d)
        if self.slides:
            # The origin has moved by s along z: a + B s + 2 w x ds + d2s.
            s = self.slide
            a = (
                a
                + acceleration_matrix(w).T.z * s.z
                + w.cross(s.rate() * 2.0)
                + s.rate().rate()
            )
        w = self._turned(w, -1.0) + AXIS * self.rate
        return body_motion(w, self._turned(a, -1.0))

    def pose_outward(self, parent: Pose) -> Pose:
        """Pose of the body from that of its parent; q has derivatives up to the order r."""
        axes = Matrix(*map(self.first(1).to_child, parent.axes))
        p = self._before_turn(parent.p + self.joint.d) + self.slide
        return Pose(axes, self._turned(p, -1.0))

    def screw_outward(self, w: Vector, v: Vector) -> Screw:
        """Components of a twist for the body's frame, from those for its parent's.

        The twist is the same: only axes and the point whose velocity counts change.
        """
        v = self.to_child(v + w.cross(self.joint.d))
        w = self.to_child(w)
        return w, v + w.cross(self.slide)

    def twist_outward(self, w: Vector, v: Vector) -> Screw:
        """Twist of the body's frame in its own axes, from that of its parent's.

        Parameters
        ----------
        w, v : Vector
            Angular velocity and velocity of the origin of the parent's frame, in its axes.
        """
        w, v = self.screw_outward(w, v)
        return w + AXIS * self.rate, v + self.slide.rate()

    # --- Inwards --------------------------------------------------------------------------------

    def effort(self, load: Load) -> Number:
        """Effort of the joint if its body carries a load: z . (turn n + slide f).

        In [N m] of joints that turn, [N] of the others; without the armature.
        """
        return self.joint.turn * load.n.z + self.joint.slide * load.f.z

    def inward(self, load: Load) -> Load:
        """Load on the parent that a load on the body makes, each about its frame's origin.

        The position is used only by joints that slide.
        """
        if self.slides:
            load = load.moved(self.slide)
        return Load(self.to_parent(load.n), self.to_parent(load.f)).moved(self.joint.d)


# --- Vectors of jets ----------------------------------------------------------------------------


def squares(w: Vector) -> tuple[Vector, Vector]:
    """Products w w^T, with one derivative fewer than w has: (xx, yy, zz) and (yz, zx, xy)."""
    x, y, z = (c[:-1] if isinstance(c, Jet) else c for c in w)
    return Vector(x * x, y * y, z * z), Vector(y * z, z * x, x * y)


def acceleration_matrix(w: Vector) -> Matrix:
    """Matrix B = w w^T - w^2 1 + [dw], with one derivative fewer than the angular velocity.

    The acceleration of a point of the body at r is a + B r.
    """
    ((xx, yy, zz), (yz, zx, xy)), (x, y, z) = squares(w), w.rate()
    return Matrix(
        Vector(-(yy + zz), xy - z, zx + y),
        Vector(xy + z, -(xx + zz), yz - x),
        Vector(zx - y, yz + x, -(xx + yy)),
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
    constants = Vector(*(constant(component, order + 1) for component in a))
    return BodyMotion(ZERO, constants, NULL)


def load_of(values: Sequence[Number]) -> Load:
    """Load from numbers: for each derivative moment and force, six in all."""
    parts = [Jet(values[k::6]) for k in range(6)]
    return Load(Vector(*parts[:3]), Vector(*parts[3:]))


# --- Constant turns -----------------------------------------------------------------------------


def _turn_z(v: Vector, cosine: Number, sine: Number) -> Vector:
    """Components in axes turned about z."""
    return Vector(cosine * v.x + sine * v.y, cosine * v.y - sine * v.x, v.z)


def _turn_x(v: Vector, cosine: Number, sine: Number) -> Vector:
    """Components in axes turned about x."""
    return Vector(v.x, cosine * v.y + sine * v.z, cosine * v.z - sine * v.y)


def _back(angle: Angle) -> Angle:
    """Negative of an angle."""
    return angle[0], -angle[1]


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
    return Matrix(
        Vector(*block[0], c * xz - s * yz),
        Vector(*block[1], s * xz + c * yz),
        Vector(c * zx - s * zy, s * zx + c * zy, zz),
    )


def _turned_about_x(A: Matrix, c: Number, s: Number) -> Matrix:
    """Rx A Rx^T."""
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = A
    A = _turned_about_z(matrix(yy, yz, yx, zy, zz, zx, xy, xz, xx), c, s)
    (yy, yz, yx), (zy, zz, zx), (xy, xz, xx) = A
    return matrix(xx, xy, xz, yx, yy, yz, zx, zy, zz)
