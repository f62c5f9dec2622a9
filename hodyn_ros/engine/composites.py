"""Bodies that move as one: what a joint carries, seen from its frame, and from its parent's.

Mass, first and second moments of all bodies behind a joint add up once they are in one frame. The
Coriolis matrix needs four more sums in which the twist (w, v) of each body weighs its moments,

    a = sum m w,   b = sum m v,   H = sum h w^T,   E = sum [w] Theta - h v^T + (h . v) 1,

with Theta = trace(J) 1 - J. They make up the matrix N = - sum ad_V^T M, that is

    N (e, u) = (E e + H u - trace(H) u + b x u,  trace(H) e - H e + a x u).

All functions take moving numbers as they take constants, see `taylor`. Source: parallel axes;
Mueller and Kumar 2021, eqs. (22) and (54), summed over the bodies that a joint carries.
"""

from __future__ import annotations

from typing import NamedTuple

from hodyn_ros.engine import formulation
from hodyn_ros.engine.formulation import (
    AXIS,
    ZERO,
    Body,
    Joint,
    Load,
    Matrix,
    Number,
    Turn,
    Vector,
)


class Flow(NamedTuple):
    """The sums a, b, H and E of the bodies that a joint carries."""

    a: Vector
    b: Vector
    H: Matrix
    E: Matrix



def sum_bodies(x: Body, y: Body) -> Body:
    """Body that consists of two, in one frame."""
    J = tuple(p + q for p, q in zip(x.J, y.J))
    return Body(x.mass + y.mass, formulation.plus(x.h, y.h), J)


def body_in_parent(joint: Joint, turn: Turn, q: Number, body: Body) -> Body:
    """Moments of a body about the origin of its parent's frame, in that frame's axes.

    Parameters
    ----------
    joint : Joint
    turn : Turn
    q : Number
        Joint position; used only by joints that slide.
    body : Body

    Returns
    -------
    Body
    """
    if formulation.slides(joint):
        body = _shifted_body(body, formulation.scaled(joint.slide * q, AXIS))
    h = formulation.to_parent(joint, turn, body.h)
    J = _symmetric(_matrix_in_parent(joint, turn, _full(body.J)))
    return _shifted_body(Body(body.mass, h, J), joint.d)


def first_moment_in_parent(
    joint: Joint, turn: Turn, q: Number, mass: Number, h: Vector
) -> Vector:
    """First moment alone, as `body_in_parent` computes it."""
    if formulation.slides(joint):
        h = formulation.plus_scaled(h, mass * (joint.slide * q), AXIS)
    return formulation.plus_scaled(formulation.to_parent(joint, turn, h), mass, joint.d)


def momentum(body: Body, e: Vector, u: Vector) -> Load:
    """Momentum M (e, u) of a body with the twist (e, u): angular, about the origin, and linear."""
    xx, xy, xz, yy, yz, zz = body.J
    trace = xx + yy + zz
    Je = formulation.plus_product(ZERO, _full(body.J), e)
    n = (trace * e[0] - Je[0], trace * e[1] - Je[1], trace * e[2] - Je[2])
    n = formulation.plus_cross(n, body.h, u)
    f = formulation.plus_cross(formulation.scaled(body.mass, u), e, body.h)
    return Load([n], [f])


def momentum_of_joint(joint: Joint, body: Body) -> Load:
    """Momentum of a body that moves by its joint with the rate 1."""
    xx, _, xz, yy, yz, _ = body.J
    x, y, _ = body.h
    n, f = ZERO, ZERO
    n = formulation.plus_scaled(n, joint.turn, (-xz, -yz, xx + yy))
    n = formulation.plus_scaled(n, joint.slide, (y, -x, 0.0))
    f = formulation.plus_scaled(f, joint.turn, (-y, x, 0.0))
    f = formulation.plus_scaled(f, joint.slide, (0.0, 0.0, body.mass))
    return Load([n], [f])


def flow_of_body(body: Body, w: Vector, v: Vector) -> Flow:
    """Compute the sums of one body with a twist."""
    H = _outer(body.h, w)
    xx, _, _, yy, _, zz = body.J
    J = _full(body.J)
    # [w] Theta = trace(J) [w] - [w] J, column by column.
    columns = [formulation.plus_cross(ZERO, column, w) for column in J]
    moved = _transposed((columns[0], columns[1], columns[2]))
    E = _plus_matrix(moved, _cross_matrix(formulation.scaled(xx + yy + zz, w)))
    E = _plus_matrix(E, _outer(formulation.scaled(-1.0, body.h), v))
    E = _plus_unit(E, formulation.dot(body.h, v))
    a, b = formulation.scaled(body.mass, w), formulation.scaled(body.mass, v)
    return Flow(a, b, H, E)


def sum_flows(x: Flow, y: Flow) -> Flow:
    """Add the sums of two groups of bodies together."""
    return Flow(
        formulation.plus(x.a, y.a),
        formulation.plus(x.b, y.b),
        _plus_matrix(x.H, y.H),
        _plus_matrix(x.E, y.E),
    )


def flow_in_parent(joint: Joint, turn: Turn, q: Number, flow: Flow) -> Flow:
    """Compute the sums for the frame of the parent; see `body_in_parent`."""
    if formulation.slides(joint):
        flow = _shifted_flow(flow, formulation.scaled(joint.slide * q, AXIS))
    flow = Flow(
        formulation.to_parent(joint, turn, flow.a),
        formulation.to_parent(joint, turn, flow.b),
        _matrix_in_parent(joint, turn, flow.H),
        _matrix_in_parent(joint, turn, flow.E),
    )
    return _shifted_flow(flow, joint.d)


def flow_load(flow: Flow, e: Vector, u: Vector) -> Load:
    """Product N (e, u) as moment and force."""
    trace = _trace(flow.H)
    n = formulation.plus_product(ZERO, flow.E, e)
    n = formulation.plus_product(n, flow.H, u)
    n = formulation.plus_cross(formulation.plus_scaled(n, -trace, u), flow.b, u)
    f = formulation.plus_cross(formulation.scaled(trace, e), flow.a, u)
    He = formulation.plus_product(ZERO, flow.H, e)
    return Load([n], [formulation.plus_scaled(f, -1.0, He)])


def transposed_flow_load(flow: Flow, e: Vector, u: Vector) -> Load:
    """Product of the transpose of N with (e, u), as moment and force."""
    trace, H = _trace(flow.H), _transposed(flow.H)
    n = formulation.plus_product(formulation.scaled(trace, u), _transposed(flow.E), e)
    Hu = formulation.plus_product(ZERO, H, u)
    f = formulation.plus_product(formulation.scaled(-trace, e), H, e)
    f = formulation.plus_cross(formulation.plus_cross(f, e, flow.b), u, flow.a)
    return Load([formulation.plus_scaled(n, -1.0, Hu)], [f])


def _shifted_body(body: Body, d: Vector) -> Body:
    """Moments about an origin from which the present one is at d."""
    # d h^T + h d^T + m d d^T = d u^T + u d^T.
    u = formulation.plus_scaled(body.h, 0.5 * body.mass, d)
    pairs = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
    J = tuple(
        value + (2.0 * (d[i] * u[i]) if i == j else d[i] * u[j] + d[j] * u[i])
        for value, (i, j) in zip(body.J, pairs)
    )
    h = formulation.plus_scaled(body.h, body.mass, d)
    return Body(body.mass, h, J)


def _shifted_flow(flow: Flow, d: Vector) -> Flow:
    """Compute the sums for an origin from which the present one is at d.

    With [d] = D: E - H D - D H + (2 trace(H) + a . d) D - d b^T + (b . d) 1.
    """
    a, b, H, E = flow
    twice = 2.0 * _trace(H) + formulation.dot(a, d)
    E = _plus_matrix(E, _cross_matrix(formulation.scaled(twice, d)))
    E = _plus_matrix(E, _outer(formulation.scaled(-1.0, d), b))
    E = _plus_unit(E, formulation.dot(b, d))
    # Row r of H times D is r x d, D times column c is d x c.
    rows = tuple(formulation.plus_cross(row, d, of_H) for row, of_H in zip(E, H))
    columns = _transposed(rows)  # type: ignore[arg-type]
    columns = tuple(  # type: ignore[assignment]
        formulation.plus_cross(column, of_H, d) for column, of_H in zip(columns, _transposed(H))
    )
    b = formulation.plus_cross(b, d, a)
    return Flow(a, b, _plus_matrix(H, _outer(d, a)), _transposed(columns))


def _matrix_in_parent(joint: Joint, turn: Turn, A: Matrix) -> Matrix:
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


def _trace(A: Matrix) -> Number:
    return A[0][0] + A[1][1] + A[2][2]


def _full(J: tuple[Number, ...]) -> Matrix:
    xx, xy, xz, yy, yz, zz = J
    return ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))


def _symmetric(A: Matrix) -> tuple[Number, Number, Number, Number, Number, Number]:
    return (A[0][0], A[0][1], A[0][2], A[1][1], A[1][2], A[2][2])


def _transposed(A: Matrix) -> Matrix:
    x, y, z = zip(*A)
    return (x, y, z)


def _outer(a: Vector, b: Vector) -> Matrix:
    return (
        formulation.scaled(a[0], b),
        formulation.scaled(a[1], b),
        formulation.scaled(a[2], b),
    )


def _cross_matrix(a: Vector) -> Matrix:
    return ((0.0, -a[2], a[1]), (a[2], 0.0, -a[0]), (-a[1], a[0], 0.0))


def _plus_matrix(A: Matrix, B: Matrix) -> Matrix:
    x, y, z = (formulation.plus(p, q) for p, q in zip(A, B))
    return (x, y, z)


def _plus_unit(A: Matrix, scale: Number) -> Matrix:
    """Add a multiple of the unit matrix."""
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = A
    return ((xx + scale, xy, xz), (yx, yy + scale, yz), (zx, zy, zz + scale))
