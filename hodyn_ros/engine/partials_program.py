"""Programs of the partial derivatives of the efforts by the motion, and by the parameters.

Both come with their time derivatives. By the motion, with F_0, F_1 and F_2 = M the derivatives of
the efforts Q(q, qd, q2d) by its arguments,

    dQ^(m)/dq^(k) = sum over l = 0, 1, 2 of binomial(m, k - l) F_l^(m - k + l).

F_0 and F_1 come from what each joint carries, as the mass matrix does, and jets give their
derivatives. With S the screw of a joint, V and A twist and acceleration of its body (A of the base
is -g), M the bodies that the joint carries and W the wrench that moves them,

    D = ad_V S,  E = ad_A S + ad_V D,  B = sum -ad_V^T M - M ad_V + co(M V),  co(h) y = -ad_y^T h,

the columns of a joint, in the rows of a joint j before it or its own, and the rows of that joint,
in the columns of j, are

    F_0: S_j^T (B D + M E - ad_S^T W),   S^T (B D_j + M E_j),
    F_1: S_j^T (B S + 2 M D),            S^T (B S_j + 2 M D_j).

All is in the frame of the joint. Of the velocities v of the mass points r that it carries, B needs

    f = sum 2 m v,   P = sum 2 m v r^T:   B (e, u) = (trace(P) e - P e, e x f).

A wrench L on a link adds to the efforts S_j^T L, and to F_0 what a joint behind j makes of L, and
one before j of S_j:

    fixed in the link:  columns S_j^T (-ad_S^T L)
    fixed in the base:  rows (-ad_S^T L)^T S_j, since S^T ad_{S_j}^T L = -S_j^T ad_S^T L
    hybrid, which has the axes of the base and a point r that moves along: with S = (e, u) and its
    force f, columns S_j^T ((e x r + u) x f, 0), rows those of the base and the force f x e at r.

Source: Singh, Russell and Wensing 2022, "Efficient analytical derivatives of rigid-body dynamics
using spatial vector algebra", with D and E for the derivatives of Psi, and B for twice theirs.

Those by the parameters are the regressor. The parameters are those of
`RobotModel.inertial_parameters`, about the origin of a body's frame of the model. With the
acceleration a of this point, gravity included, and B = w w^T - w^2 1 + [dw], the column (e, u) of
the body's Jacobian makes of the moment h x a + I dw + w x I w and the force m a + B h on the body
the effort

    m (u . a) + h . (a x e + B^T u) + e . (I dw + w x I w).

Columns, one for each independent joint, are handed on from body to body; derivatives follow by
Leibniz's rule. Source: Atkeson, An and Hollerbach 1986, see `dynamics.regressor`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import NamedTuple

from hodyn_ros.engine import bodies, matrix_program
from hodyn_ros.engine.bodies import (
    NO_LOAD,
    Body,
    JointMotion,
    Load,
)
from hodyn_ros.engine.efforts import (
    load_in_link_axes,
)
from hodyn_ros.engine.frames import Frames, frames_of, position, rotation, vector
from hodyn_ros.engine.joint_friction import friction_slopes
from hodyn_ros.engine.matrix_program import Entries, Screw, momentum, power
from hodyn_ros.engine.program import (
    NO_ARRAY,
    Attachment,
    Number,
    Part,
    Recorder,
    RobotProgram,
)
from hodyn_ros.engine.vectors import (
    AXIS,
    ZERO,
    Matrix,
    Vector,
    complement,
    full_matrix,
)
from hodyn_ros.engine.walker import motion_inputs
from hodyn_ros.lie import se3
from hodyn_ros.lie.jets import derivatives
from hodyn_ros.model.mechanism import BASE, Mechanism


def partials_program(
    model: Mechanism, K: int, wrenches: Sequence[Attachment] = ()
) -> RobotProgram:
    """Program of the partial derivatives of the efforts and of K - 3 time derivatives of them.

    Inputs: 'motion', and wrenches as `effort_program` has them. Output: 'term', that of derivative
    m of effort i by derivative k of position j at ((m n + i) K + k) n + j. A `ModelError` is
    raised for friction laws not of this package.
    """
    recorder, n, orders = Recorder(), model.n_joints, K - 2
    F = _by_the_state(recorder, model, orders, wrenches)
    for i, slope in friction_slopes(model, motion_inputs(recorder, model, orders + 1)[1:]):
        F[1].add(i, i, slope)
    series = [[derivatives(value, orders) for value in entries.values] for entries in F]
    for place in range(orders * n * K * n):
        m, i, k, j = place // (n * K * n), place // (K * n) % n, place // n % K, place % n
        value: Number = 0.0
        for order, F_ij in enumerate(entries[i * n + j] for entries in series):
            if 0 <= k - order <= m:
                value = value + float(comb(m, k - order)) * F_ij[m - k + order]
        recorder.output('term', place, value)
    return RobotProgram(
        recorder.program(),
        model.n_joints,
        K,
        Part('wrench', 6 * orders * len(wrenches), False),
        Part('term', orders * n * K * n, True),
    )


def _by_the_state(
    recorder: Recorder, model: Mechanism, orders: int, wrenches: Sequence[Attachment]
) -> tuple[Entries, Entries, Entries]:
    """Derivatives F_0, F_1 and F_2 of the efforts, friction aside."""
    frames = frames_of(model)
    whole = matrix_program.joint_motions(recorder, model, frames, orders + 2)
    motions = [motion.first(orders) for motion in whole]
    fields, loads, momenta = _of_the_bodies(model, frames, whole, motions)
    for i, p in matrix_program.from_the_ends(model):
        loads[p] = loads[p] + motions[i].inward(loads[i])
        momenta[p] = _sum(momenta[p], motions[i], momenta[i])
    applied = _of_the_wrenches(recorder, model, frames, motions, wrenches)
    by_q, by_qd, by_q2d = Entries(model), Entries(model), Entries(model)
    for i, body in enumerate(matrix_program.composites(model, motions, frames.bodies)):
        S, D, D2, E = fields[i]
        column = _column(momenta[i], D) + momentum(body, *E)
        column, turning = column + applied[i].column, applied[i].row
        starts = (
            matrix_program.momentum_of_joint(motions[i].joint, body),
            _row(momenta[i], S),
            column + _turned(S, loads[i]),
            _column(momenta[i], S) + momentum(body, *D2),
            turning,
        )
        ways = (matrix_program.handed_on(model, motions, i, load) for load in starts)
        for (j, moving), (_, row), (_, column), (_, column_of_rate), (_, turning) in zip(
            *ways
        ):
            S, D, D2, E = fields[j]
            by_q.add(j, i, power(column, S))
            by_qd.add(j, i, power(column_of_rate, S))
            by_q2d.add(j, i, power(moving, S))
            if i != j:
                by_q.add(i, j, power(row, D) + power(moving, E) + power(turning, S))
                by_qd.add(i, j, power(row, S) + power(moving, D2))
                by_q2d.add(i, j, power(moving, S))
        by_q2d.add(i, i, float(model.armature[i]))
    return by_q, by_qd, by_q2d


def _of_the_bodies(
    model: Mechanism, frames: Frames, whole: list[JointMotion], motions: list[JointMotion]
) -> tuple[list[tuple[Screw, Screw, Screw, Screw]], list[Load], list[Momenta]]:
    """S, D, 2 D and E of each joint; the load that moves its body, and the body's momenta."""
    up, orders = -vector(frames.gravity), len(motions[0].q)
    moved = {BASE: bodies.base_motion(up, orders - 1)}
    twists = {BASE: (ZERO, ZERO)}
    fields, loads, momenta = [], [], []
    for i, (motion, body) in enumerate(zip(whole, frames.bodies)):
        joint, p = motion.joint, int(model.parent[i])
        moved[i] = motion.outward(moved[p])
        twists[i] = motion.twist_outward(*twists[p])
        w2, v2 = (part * 2.0 for part in twists[i])
        S = motion.screw
        D, D2 = (matrix_program.bracket(twist, S) for twist in (twists[i], (w2, v2)))
        # E in the acceleration a of the origin and B = w w^T - w^2 1 + [dw] of the motion.
        _, a, B = moved[i]
        along = B.T.z
        u = along * joint.slide + a.cross(S[0])
        E = along * joint.turn, u + v2.cross(D[0])
        fields.append((S, D, D2, E))
        loads.append(body.load(moved[i]))
        momenta.append(_momenta(body, w2, v2))
    return fields, loads, momenta


class Applied(NamedTuple):
    """What wrenches add to the columns and to the rows of F_0 of a joint."""

    column: Load
    row: Load


def _of_the_wrenches(
    recorder: Recorder,
    model: Mechanism,
    frames: Frames,
    motions: list[JointMotion],
    wrenches: Sequence[Attachment],
) -> list[Applied]:
    """What wrenches add, for each joint."""
    found = [Applied(NO_LOAD, NO_LOAD)] * model.n_bodies
    for number, wrench in enumerate(wrenches):
        i, pose = model.link(wrench.link)
        if i == BASE:
            continue
        pose = se3.inverse(frames.poses[i]) @ pose
        arm: Vector = position(pose)
        load = _wrench(recorder, wrench, number, len(motions[i].q))
        if wrench.expressed_in == 'body':
            load = load_in_link_axes(load, pose)
        else:
            load = _from_base(load, wrench, model, frames, motions, i)
        if wrench.expressed_in == 'hybrid':
            load = load.moved(arm)
        for j, carried in matrix_program.handed_on(model, motions, i, load):
            motion = motions[j]
            own = _applied(wrench.expressed_in, motion.screw, carried, arm)
            sums = (x + y for x, y in zip(found[j], own))
            found[j] = Applied(*sums)
            arm = motion.to_parent(arm + motion.slide) + motion.joint.d
    return found


def _wrench(recorder: Recorder, wrench: Attachment, number: int, orders: int) -> Load:
    """Moment and force as given, with their time derivatives, acting on the environment."""
    sign = 1.0 if wrench.acting == 'on_environment' else -1.0
    start = 6 * orders * number
    values = (recorder.input('wrench', start + k) for k in range(6 * orders))
    return bodies.load_of([sign * value for value in values])


def _from_base(
    load: Load,
    wrench: Attachment,
    model: Mechanism,
    frames: Frames,
    motions: list[JointMotion],
    i: int,
) -> Load:
    """Load in the axes of the base in those of body i; a spatial one about its origin, too."""
    base = se3.inverse(frames.base)
    if wrench.expressed_in == 'hybrid':
        base[:3, 3] = 0.0
    load = load_in_link_axes(load, base)
    n, f = load
    way = [j for j, _ in matrix_program.handed_on(model, motions, i, NO_LOAD)]
    for j in reversed(way):
        if wrench.expressed_in == 'spatial':
            f, n = motions[j].screw_outward(f, n)
        else:
            n, f = (motions[j].to_child(v) for v in (n, f))
    return Load(n, f)


def _applied(expressed_in: str, S: Screw, load: Load, arm: Vector) -> Applied:
    """What one wrench adds for a joint with a screw, all about the origin of its frame."""
    moved = _turned(S, load)
    if expressed_in == 'body':
        return Applied(moved, NO_LOAD)
    if expressed_in == 'spatial':
        return Applied(NO_LOAD, moved)
    velocity = S[1] + S[0].cross(arm)
    across = load.f.cross(S[0])
    of_point = Load(arm.cross(across), across)
    column = Load(velocity.cross(load.f), ZERO)
    return Applied(column, moved + of_point)


# --- Momenta of bodies that move as one ---------------------------------------------------------


class Momenta(NamedTuple):
    """The sums f and P of the bodies that a joint carries."""

    f: Vector
    P: Matrix


def _momenta(body: Body, w: Vector, v: Vector) -> Momenta:
    """Sums of one body, from twice its twist."""
    f = v * body.mass + w.cross(body.h)
    J = full_matrix(body.J)
    columns = Matrix(*map(w.cross, J))
    return Momenta(f, columns.T + v.outer(body.h))


def _sum(momenta: Momenta, motion: JointMotion, of_child: Momenta) -> Momenta:
    """Add the sums of a child; see `matrix_program.body_in_parent`."""
    f, P = of_child
    if motion.slides:
        P = P + f.outer(motion.slide)
    f = motion.to_parent(f)
    P = motion.matrix_to_parent(P) + f.outer(motion.joint.d)
    return Momenta(momenta.f + f, momenta.P + P)


def _column(momenta: Momenta, y: Screw) -> Load:
    """Product B y."""
    n = complement(momenta.P) @ y[0]
    return Load(n, y[0].cross(momenta.f))


def _row(momenta: Momenta, y: Screw) -> Load:
    """Product of the transpose of B with y."""
    moment = _column(Momenta(momenta.f, momenta.P.T), y).n
    return Load(moment + momenta.f.cross(y[1]), ZERO)


def _turned(S: Screw, W: Load) -> Load:
    """Product -ad_S^T W: the change of a load that moves along with the screw."""
    return Load(S[0].cross(W.n) + S[1].cross(W.f), S[0].cross(W.f))


# --- Regressor -----------------------------------------------------------------------------------


def regressor_program(model: Mechanism, K: int) -> RobotProgram:
    """Program of the regressor and its derivatives.

    Output: 'term', derivative k of what parameter l of body i adds to the effort of joint j at
    ((k n + j) n_bodies + i) 10 + l.
    """
    recorder, frames = Recorder(), frames_of(model)
    orders, size = K - 2, model.n_joints * 10 * model.n_bodies
    values: list[Number] = [0.0] * (orders * size)
    up = -vector(frames.gravity)
    motions = {BASE: bodies.base_motion(up, orders - 1)}
    jacobians: dict[int, dict[int, tuple[Vector, Vector]]] = {BASE: {}}
    joints = matrix_program.joint_motions(recorder, model, frames, K)
    for i, p in enumerate(model.parent.tolist()):
        joint, own = frames.joints[i], int(model.coordinate[i])
        moving = joints[i]
        motions[i] = moving.outward(motions[p])
        moving = moving.first(orders)
        jacobian = {j: moving.screw_outward(*screw) for j, screw in jacobians[p].items()}
        e, u = jacobian.get(own, (ZERO, ZERO))
        multiplier = float(model.multiplier[i])
        e = e + AXIS * (multiplier * joint.turn)
        jacobian[own] = e, u + AXIS * (multiplier * joint.slide)
        jacobians[i] = jacobian

        # In the axes of the model's frame, about its origin, whose position is d.
        R, d = rotation(frames.poses[i]), position(se3.inverse(frames.poses[i]))
        w, a, B = motions[i]
        w, a = R @ w, R @ (a + B @ d)
        B, (_, products) = bodies.acceleration_matrix(w), bodies.squares(w)
        for j, (e, u) in jacobian.items():
            u = R @ (u + e.cross(d))
            row = _of_parameters(a, w.rate(), products, B, R @ e, u)
            for place, value in enumerate(row, 10 * (j * model.n_bodies + i)):
                values[place::size] = derivatives(value, orders)
    recorder.outputs('term', values)
    result = Part('term', len(values), True)
    return RobotProgram(recorder.program(), model.n_joints, K, NO_ARRAY, result)


def _of_parameters(
    a: Vector, dw: Vector, products: Vector, B: Matrix, e: Vector, u: Vector
) -> list[Number]:
    """Efforts that the parameters of a body make by one column of its Jacobian.

    Parameters
    ----------
    a, dw : Vector
        Acceleration of the origin, gravity included, and angular acceleration.
    products : Vector
        w_y w_z, w_z w_x and w_x w_y of the angular velocity.
    B : Matrix
        w w^T - w^2 1 + [dw].
    e, u : Vector
        Column of the Jacobian, angular part first.

    Returns
    -------
    list of Number
        Ten, in the order of `RobotModel.inertial_parameters`.
    """
    (bxx, bxy, bxz), (byx, byy, byz), (bzx, bzy, bzz) = B
    xx, yy, zz = (x * y for x, y in zip(e, dw))
    yz, zx, xy = (x * y for x, y in zip(e, products))
    return [
        u @ a,
        *B.T @ u + a.cross(e),
        xx + zx - xy,
        e[1] * bzy - e[0] * bzx + e[2] * (bxx - byy),
        e[0] * byx - e[2] * byz + e[1] * (bzz - bxx),
        yy + xy - yz,
        e[2] * bxz - e[1] * bxy + e[0] * (byy - bzz),
        zz + yz - zx,
    ]
