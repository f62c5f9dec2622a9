"""Programs of the terms of the equations of motion: mass and Coriolis matrix, weight.

Composite bodies give the momentum, or the forces, that the motion of one joint causes; handed on
to the joints before it, they give a column of the matrix. Source: composite rigid bodies, Walker
and Orin 1982; the Coriolis matrices of Mueller and Kumar 2021, eqs. (22) and (54), which for the
columns of the Jacobian S_j of a joint, and the twist V_j of its body, are

    S_j^T (M ad_{V_k} S_k + N S_k),   N = - sum ad_V^T M,

M and N of the bodies that both joints carry; without skew symmetry, N + N^T in the place of N.

Mass, first and second moments of all bodies behind a joint add up once they are in one frame. N
needs four more sums in which the twist (w, v) of each body weighs its moments,

    a = sum m w,   b = sum m v,   H = sum h w^T,   E = sum [w] Theta - h v^T + (h . v) 1,

with Theta = trace(J) 1 - J:

    N (e, u) = (E e + H u - trace(H) u + b x u,  trace(H) e - H e + a x u).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hodyn_ros.engine import walker
from hodyn_ros.engine.bodies import (
    Body,
    JointFrame,
    JointMotion,
    Load,
)
from hodyn_ros.engine.frames import Frames, frames, frames_of, vector
from hodyn_ros.engine.program import (
    CORIOLIS_MATRIX,
    LONGEST,
    MASS_MATRIX,
    NO_ARRAY,
    WEIGHT,
    Part,
    Recorder,
    RobotProgram,
)
from hodyn_ros.engine.vectors import (
    ZERO,
    Matrix,
    Number,
    Vector,
    complement,
    cross_matrix,
    full_matrix,
    plus_unit,
    symmetric,
    trace,
)
from hodyn_ros.lie.jets import derivative, derivatives
from hodyn_ros.model.mechanism import BASE, Mechanism

Screw = tuple[Vector, Vector]


def term_program(model: Mechanism, name: str, K: int) -> RobotProgram:
    """Program of a term of the equations of motion, see `requests`, and its derivatives.

    Parameters
    ----------
    model : RobotModel
    name : str
        `MASS_MATRIX`, `WEIGHT` or a Coriolis matrix.
    K : int
        Number of derivatives in the motion, the zeroth included.

    Returns
    -------
    RobotProgram
        Output: 'term', derivative k of entry (i, j) of a matrix at (k n + i) n + j, of the effort
        of joint j at k n + j.

    Raises
    ------
    ProgramTooLong
        If it takes more steps than `program.LONGEST`.
    """
    recorder = Recorder(LONGEST)
    orders = K if name in (MASS_MATRIX, WEIGHT) else K - 1
    if name == WEIGHT:
        values = _weight(model, frames_of(model), recorder, K)
    elif name == MASS_MATRIX:
        values = _mass_matrix(model, frames_of(model), recorder, K)
    else:
        values = _coriolis_matrix(model, recorder, K, name == CORIOLIS_MATRIX)
    series = [derivatives(value, orders) for value in values]
    recorder.outputs('term', [value for order in zip(*series) for value in order])
    result = Part('term', orders * len(values), True)
    return RobotProgram(recorder.program(), model.n_joints, K, NO_ARRAY, result)


def _mass_matrix(
    model: Mechanism, frames: Frames, recorder: Recorder, orders: int
) -> list[Number]:
    """Entries of the mass matrix, row by row, with so many orders."""
    motions = joint_motions(recorder, model, frames, orders)
    carried = composites(model, motions, frames.bodies)
    entries = Entries(model)
    for i, motion in enumerate(motions):
        moving = momentum_of_joint(motion.joint, carried[i])
        for j, load in handed_on(model, motions, i, moving):
            value = motions[j].effort(load)
            entries.add(j, i, value)
            if i != j:
                entries.add(i, j, value)
        entries.add(i, i, float(model.armature[i]))
    return entries.values


def mass_rows(
    model: Mechanism, frames: Frames, recorder: Recorder, floating: bool
) -> list[list[Number]]:
    """Rows of the mass matrix at one moment.

    Parameters
    ----------
    model : RobotModel
    frames : Frames
    recorder : Recorder
    floating : bool
        Whether the base floats: six rows and columns come first, those of (w', a) of the frame
        that serves as base.
    """
    n = model.n_joints
    values = [derivative(x, 0) for x in _mass_matrix(model, frames, recorder, 1)]
    rows = [values[i : i + n] for i in range(0, n * n, n)]
    if not floating:
        return rows
    motions = joint_motions(recorder, model, frames, 1)
    *carried, whole = composites(model, motions, [*frames.bodies, frames.base_body])
    columns: list[list[Number]] = [[0.0] * 6 for _ in range(n)]
    for i, motion in enumerate(motions):
        loads = handed_on(
            model, motions, i, momentum_of_joint(motion.joint, carried[i]), True
        )
        *_, (_, load) = loads
        column = columns[int(model.coordinate[i])]
        for k, value in enumerate((*load.n, *load.f)):
            value = float(model.multiplier[i]) * derivative(value, 0)
            column[k] = column[k] + value
    top = []
    for k in range(6):
        unit: list[Number] = [0.0] * 6
        unit[k] = 1.0
        load = momentum(whole, Vector(*unit[:3]), Vector(*unit[3:]))
        own = [derivative(value, 0) for value in (*load.n, *load.f)]
        top.append([*own, *(column[k] for column in columns)])
    return [*top, *([*column, *row] for column, row in zip(columns, rows))]


def _coriolis_matrix(
    model: Mechanism, recorder: Recorder, orders: int, skew_symmetric: bool
) -> list[Number]:
    """Entries of a Coriolis matrix, row by row, with so many orders."""
    # Masses stay with their bodies, on which this matrix depends.
    exact = frames(model, regroup=False)
    motions = joint_motions(recorder, model, exact, orders)
    twists: list[Screw] = []
    for motion, p in zip(motions, model.parent):
        w, v = (ZERO, ZERO) if p == BASE else twists[p]
        twists.append(motion.twist_outward(w, v))
    motions = [motion.first(orders - 1) for motion in motions]
    carried = composites(model, motions, exact.bodies)
    flows = [flow_of_body(body, *twist) for body, twist in zip(exact.bodies, twists)]
    for i, p in from_the_ends(model):
        flow = flow_in_parent(motions[i], flows[i])
        flows[p] = sum_flows(flows[p], flow)
    entries = Entries(model)
    screws = [motion.screw for motion in motions]
    rates = [bracket(twist, screw) for twist, screw in zip(twists, screws)]
    for i in range(model.n_bodies):
        flow, screw = flows[i], screws[i]
        column = flow_load(flow, *screw)
        row = transposed_flow_load(flow, *screw)
        if not skew_symmetric:
            column = row = column + row
        column = column + momentum(carried[i], *rates[i])
        moving = momentum_of_joint(motions[i].joint, carried[i])
        for j, load in handed_on(model, motions, i, column):
            entries.add(j, i, motions[j].effort(load))
        for first, by in ((row, screws), (moving, rates)):
            for j, load in handed_on(model, motions, i, first):
                if i != j:
                    entries.add(i, j, power(load, by[j]))
    return entries.values


def _weight(
    model: Mechanism, frames: Frames, recorder: Recorder, orders: int
) -> list[Number]:
    """Efforts that hold the robot against gravity."""
    motions = joint_motions(recorder, model, frames, orders)
    up: list[Vector] = []
    for motion, p in zip(motions, model.parent):
        parent = -vector(frames.gravity) if p == BASE else up[p]
        up.append(motion.to_child(parent))
    moments = [(body.mass, body.h) for body in frames.bodies]
    for i, p in from_the_ends(model):
        mass, h = moments[i]
        h = first_moment_in_parent(motions[i], mass, h)
        moments[p] = (moments[p][0] + mass, moments[p][1] + h)
    efforts: list[Number] = [0.0] * model.n_joints
    for i, (motion, (mass, h), a) in enumerate(zip(motions, moments, up)):
        joint = motion.joint
        value = joint.turn * (h[0] * a[1] - h[1] * a[0]) + joint.slide * (mass * a[2])
        j = int(model.coordinate[i])
        efforts[j] = efforts[j] + float(model.multiplier[i]) * value
    return efforts


class Entries:
    """Matrix of the independent joints from entries for the bodies' joints.

    Attributes
    ----------
    values : list of Number
        Row by row, n^2 of them.
    """

    def __init__(self, model: Mechanism) -> None:
        self._model = model
        self.values: list[Number] = [0.0] * model.n_joints**2

    def add(self, i: int, j: int, value: Number) -> None:
        """Sum with what the joints of the bodies i and j have, times their multipliers."""
        model = self._model
        factor = float(model.multiplier[i]) * float(model.multiplier[j])
        place = int(model.coordinate[i]) * model.n_joints + int(model.coordinate[j])
        self.values[place] = self.values[place] + factor * value


def joint_motions(
    recorder: Recorder, model: Mechanism, frames: Frames, orders: int
) -> list[JointMotion]:
    """Motions of the joints of all bodies; orders is the number of derivatives, from 0 on."""
    return walker.joint_motions(
        model, frames, walker.motion_inputs(recorder, model, orders)
    )


def from_the_ends(model: Mechanism, to_base: bool = False) -> list[tuple[int, int]]:
    """Bodies and their parents, from the ends of the tree on: those behind another body.

    If so asked, those on the base, whose parent is `BASE`, are there, too.
    """
    pairs = [(i, int(p)) for i, p in enumerate(model.parent) if to_base or p != BASE]
    return pairs[::-1]


def composites(
    model: Mechanism, motions: list[JointMotion], bodies: list[Body]
) -> list[Body]:
    """Bodies that each joint carries as one, in the frame of its body.

    Parameters
    ----------
    model : RobotModel
    motions : list of JointMotion
    bodies : list of Body
        In their frames; one more than bodies that move is the base, which is summed up, too.
    """
    carried = list(bodies)
    for i, p in from_the_ends(model, len(bodies) > model.n_bodies):
        body = body_in_parent(motions[i], carried[i])
        carried[p] = sum_bodies(carried[p], body)
    return carried


def handed_on(
    model: Mechanism, motions: list[JointMotion], i: int, load: Load, to_base: bool = False
) -> Iterator[tuple[int, Load]]:
    """Load on body i, seen in the frame of every body on the way to the base, this one included.

    Parameters
    ----------
    model : RobotModel
    motions : list of JointMotion
        Of all bodies.
    i : int
    load : Load
        In the axes and about the origin of the frame of body i.
    to_base : bool
        Whether the base comes last, too.

    Yields
    ------
    (int, Load)
        Index of the body, and the load about the origin of its frame.
    """
    while True:
        yield i, load
        p = int(model.parent[i])
        if i == BASE or p == BASE and not to_base:
            return
        load = motions[i].inward(load)
        i = p


def bracket(V: Screw, S: Screw) -> Screw:
    """Product ad_V S."""
    w = V[0].cross(S[0])
    v = V[1].cross(S[0])
    return w, v + V[0].cross(S[1])


def power(load: Load, S: Screw) -> Number:
    """Power of a load on a body with a twist."""
    power: Number = load.n @ S[0] + load.f @ S[1]
    return power


# --- Bodies that move as one: what a joint carries, in its frame and in its parent's ------------


class Flow(NamedTuple):
    """The sums a, b, H and E of the bodies that a joint carries, see the module."""

    a: Vector
    b: Vector
    H: Matrix
    E: Matrix


def sum_bodies(x: Body, y: Body) -> Body:
    """Body that consists of two, in one frame."""
    J = tuple(p + q for p, q in zip(x.J, y.J))
    return Body(x.mass + y.mass, x.h + y.h, J)


def body_in_parent(motion: JointMotion, body: Body) -> Body:
    """Moments of a body about the origin of its parent's frame, in that frame's axes."""
    if motion.slides:
        body = _shifted_body(body, motion.slide)
    h = motion.to_parent(body.h)
    J = symmetric(motion.matrix_to_parent(full_matrix(body.J)))
    return _shifted_body(Body(body.mass, h, J), motion.joint.d)


def first_moment_in_parent(motion: JointMotion, mass: Number, h: Vector) -> Vector:
    """First moment alone, as `body_in_parent` computes it."""
    if motion.slides:
        h = h + motion.slide * mass
    d: Vector = motion.joint.d * mass
    return motion.to_parent(h) + d


def momentum(body: Body, e: Vector, u: Vector) -> Load:
    """Momentum M (e, u) of a body with the twist (e, u).

    Returns
    -------
    Load
        Angular momentum, about the origin, and linear momentum.
    """
    n = complement(full_matrix(body.J)) @ e
    n = n + body.h.cross(u)
    f = u * body.mass + e.cross(body.h)
    return Load(n, f)


def momentum_of_joint(joint: JointFrame, body: Body) -> Load:
    """Momentum of a body that moves by its joint with the rate 1."""
    xx, _, xz, yy, yz, _ = body.J
    x, y, _ = body.h
    n = Vector(-xz, -yz, xx + yy) * joint.turn + Vector(y, -x, 0.0) * joint.slide
    f = Vector(-y, x, 0.0) * joint.turn + Vector(0.0, 0.0, body.mass) * joint.slide
    return Load(n, f)


def flow_of_body(body: Body, w: Vector, v: Vector) -> Flow:
    """Sums of one body with a twist (w, v) of its frame."""
    H = body.h.outer(w)
    xx, _, _, yy, _, zz = body.J
    J = full_matrix(body.J)
    # [w] Theta = trace(J) [w] - [w] J, column by column.
    columns = Matrix(*(column.cross(w) for column in J))
    E = columns.T + cross_matrix(w * (xx + yy + zz))
    E = E + (-body.h).outer(v)
    E = plus_unit(E, body.h @ v)
    a, b = w * body.mass, v * body.mass
    return Flow(a, b, H, E)


def sum_flows(x: Flow, y: Flow) -> Flow:
    """Sums of two groups of bodies together, in one frame."""
    return Flow(
        x.a + y.a,
        x.b + y.b,
        x.H + y.H,
        x.E + y.E,
    )


def flow_in_parent(motion: JointMotion, flow: Flow) -> Flow:
    """Sums for the frame of the parent; see `body_in_parent`."""
    if motion.slides:
        flow = _shifted_flow(flow, motion.slide)
    flow = Flow(
        motion.to_parent(flow.a),
        motion.to_parent(flow.b),
        motion.matrix_to_parent(flow.H),
        motion.matrix_to_parent(flow.E),
    )
    return _shifted_flow(flow, motion.joint.d)


def flow_load(flow: Flow, e: Vector, u: Vector) -> Load:
    """Product N (e, u) as moment and force."""
    whole = trace(flow.H)
    n = flow.E @ e
    n = n + flow.H @ u
    n = n + u * (-whole) + flow.b.cross(u)
    f = e * whole + flow.a.cross(u)
    He = flow.H @ e
    return Load(n, f - He)


def transposed_flow_load(flow: Flow, e: Vector, u: Vector) -> Load:
    """Product of the transpose of N with (e, u), as moment and force."""
    whole, H = trace(flow.H), flow.H.T
    n = u * whole + flow.E.T @ e
    Hu = H @ u
    f = e * (-whole) + H @ e
    f = f + e.cross(flow.b) + u.cross(flow.a)
    return Load(n - Hu, f)


def _shifted_body(body: Body, d: Vector) -> Body:
    """Moments about an origin from which the present one is at d."""
    # d h^T + h d^T + m d d^T = d u^T + u d^T.
    u = body.h + d * (0.5 * body.mass)
    pairs = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
    J = tuple(
        value + (2.0 * (d[i] * u[i]) if i == j else d[i] * u[j] + d[j] * u[i])
        for value, (i, j) in zip(body.J, pairs)
    )
    h = body.h + d * body.mass
    return Body(body.mass, h, J)


def _shifted_flow(flow: Flow, d: Vector) -> Flow:
    """Compute the sums for an origin from which the present one is at d.

    With [d] = D: E - H D - D H + (2 trace(H) + a . d) D - d b^T + (b . d) 1.
    """
    a, b, H, E = flow
    twice = 2.0 * trace(H) + a @ d
    E = E + cross_matrix(d * twice)
    E = E + (-d).outer(b)
    E = plus_unit(E, b @ d)
    # Row r of H times D is r x d, D times column c is d x c.
    E = E + Matrix(*map(d.cross, H))
    columns = Matrix(*(of_H.cross(d) for of_H in H.T))
    return Flow(a, b + d.cross(a), H + d.outer(a), E + columns.T)
