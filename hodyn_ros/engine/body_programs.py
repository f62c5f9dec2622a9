"""Programs of one body with its constants as inputs, for loops over the bodies of any robot.

Efforts take one loop outwards and one back. Forward dynamics is that of articulated bodies.
The inertia M^A that a body has with the joints behind it free does not depend on the order; with
x the screw of its joint, U = M^A x and d = x^T U plus the armature, it is handed to the parent as
M^A - U U^T / d. Then each order takes one loop towards the base and one back. With the
acceleration (w', a) of a body as that of its parent, turned, plus c, known, plus x q'', and the
load M^A (w', a) + p, its k-th derivatives are

    towards the base:  b = M^A c + p,   u = Q - x^T b;   the parent's p gets b + U u / d, turned
    back:              q'' = (u - U^T (w', a)_parent) / d

where turning a load of order k takes the true loads of lower orders, too.

Source: doc/forward_dynamics.rst; articulated bodies, Featherstone 2008, section 7.3.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.checks import Array
from hodyn_ros.engine import bodies as formulation
from hodyn_ros.engine.bodies import (
    Body,
    BodyMotion,
    JointFrame,
    Load,
    Turn,
    followed,
)
from hodyn_ros.engine.program import Recorder, StraightLineProgram
from hodyn_ros.engine.vectors import (
    AXIS,
    ZERO,
    Matrix,
    Number,
    Vector,
    cross,
    cross_matrix,
    dot,
    outer,
    plus,
    plus_cross,
    plus_matrix,
    plus_product,
    plus_scaled,
    product,
    scaled,
    transposed,
)
from hodyn_ros.lie.jets import Jet
from hodyn_ros.model.mechanism import Mechanism

if TYPE_CHECKING:
    from hodyn_ros.engine.frames import Frames

SIMPLE, BRANCH, GENERAL = range(3)
"""Kinds of joints: revolute with gamma = 0, revolute, any."""

N_CONSTANTS = 25


class BodyPrograms(NamedTuple):
    """Programs of one body for both directions along the tree.

    Both have the inputs 'constants' (see `constants`), 'motion' (entry k the k-th derivative of
    the coordinate), 'own' and 'parent', the states of the body and its parent. `forward` writes
    'own'; `backward` adds to the load in 'parent' and writes 'effort' (entry k the k-th derivative
    of the coordinate's effort). With a wrench, `forward` reads it from 'wrench', for each
    derivative (moment, force).
    """

    forward: StraightLineProgram
    backward: StraightLineProgram


class StateLayout:
    """Places of the motion, the load and the turn of a body in its state.

    Attributes
    ----------
    order : int
        Highest derivative of the efforts.
    w, a, B, load, turn : int
        Where angular velocities, accelerations, matrices B, moments with forces behind them, and
        sine and cosine begin.
    size : int
        Numbers in a state.
    """

    def __init__(self, order: int) -> None:
        self.order = order
        self.w = 0
        self.a = self.w + 3 * (order + 2)
        self.B = self.a + 3 * (order + 1)
        self.load = self.B + 9 * (order + 1)
        self.turn = self.load + 6 * (order + 1)
        self.size = self.turn + 2


def body_programs(order: int, kind: int, loaded: bool) -> BodyPrograms:
    """Programs of a body of a kind.

    Parameters
    ----------
    order : int
        Highest derivative of the efforts.
    kind : int
        `SIMPLE`, `BRANCH` or `GENERAL`.
    loaded : bool
        Whether the body carries a wrench.
    """
    layout = StateLayout(order)
    orders = order + 1

    recorder = Recorder()
    joint, body, multiplier, _ = body_inputs(recorder, kind)
    x, y, z = read_vectors(recorder, 'parent', layout.B, 3, orders)
    (w,) = read_vectors(recorder, 'parent', layout.w, 1, order + 2)
    (a,) = read_vectors(recorder, 'parent', layout.a, 1, orders)
    parent = BodyMotion(w, a, (x, y, z))
    q = _coordinate(recorder, multiplier, order + 3)
    turn = formulation.turn_of(joint, q)
    motion = formulation.forward(joint, turn, q, parent)
    load = formulation.inertial_load(body, motion)
    if loaded:
        applied = formulation.load_of(recorder.inputs('wrench', 6 * orders))
        load = formulation.sum_loads(load, applied)
    write(recorder, 'own', layout.w, [motion.w])
    write(recorder, 'own', layout.a, [motion.a])
    write(recorder, 'own', layout.B, motion.B)
    write(recorder, 'own', layout.load, load)
    recorder.output('own', layout.turn, turn.sine)
    recorder.output('own', layout.turn + 1, turn.cosine)
    forward = recorder.program()

    recorder = Recorder()
    joint, body, multiplier, armature = body_inputs(recorder, kind)
    q = _coordinate(recorder, multiplier, order + 3)
    load = read_load(recorder, 'own', layout)
    turn = Turn(
        recorder.input('own', layout.turn),
        recorder.input('own', layout.turn + 1),
        joint.turn * q.rate(),
    )
    own = multiplier * (formulation.effort(joint, load) + armature * q[2:])
    for k, value in enumerate(own):
        recorder.output('effort', k, recorder.input('effort', k) + value)
    passed = formulation.sum_loads(
        read_load(recorder, 'parent', layout), formulation.backward(joint, turn, q, load)
    )
    write(recorder, 'parent', layout.load, passed)
    return BodyPrograms(forward, recorder.program())


def constants(model: Mechanism, frames: Frames) -> tuple[Array, NDArray[np.int64]]:
    """Constants of all bodies, and their kinds, as data of the loops.

    Returns
    -------
    rows : ndarray, shape (n_bodies, N_CONSTANTS)
        Joint frame, body, multiplier, armature and offset.
    kinds : ndarray of int, shape (n_bodies,)
        `SIMPLE`, `BRANCH` or `GENERAL`: the programs of the first two leave out what is zero or
        one.
    """
    rows, kinds = [], []
    for i, (joint, body) in enumerate(zip(frames.joints, frames.bodies)):
        multiplier = float(model.multiplier[i])
        rows.append(
            [
                *joint[:6],
                *joint.d,
                *joint[7:],
                body.mass,
                *body.h,
                *body.J,
                multiplier,
                float(model.armature[i]),
                float(model.offset[i]),
            ]
        )
        on_axis = (body.mass, body.h[2], body.J[5])
        turns = joint.turn == 1.0 and joint.slide == 0.0
        if multiplier != 1.0 or not turns or any(on_axis):
            kinds.append(GENERAL)
        else:
            kinds.append(BRANCH if joint.sin_gamma else SIMPLE)
    return np.array(rows).reshape(-1, N_CONSTANTS), np.array(kinds, dtype=np.int64)


def body_inputs(recorder: Recorder, kind: int) -> tuple[JointFrame, Body, Number, Number]:
    """Joint, body, multiplier and armature of a body of a kind, read from 'constants'.

    What is the same for all bodies of the kind is a number, which the recorder folds.
    """
    values: list[Number] = list(recorder.inputs('constants', N_CONSTANTS))
    if kind != GENERAL:
        values[9:12] = [1.0, 0.0, 0.0]  # turn, still, slide
        for on_axis in (12, 15, 21):
            values[on_axis] = 0.0
        values[22] = 1.0
    if kind == SIMPLE:
        values[:2] = [1.0, 0.0]
    joint = JointFrame(*values[:6], tuple(values[6:9]), *values[9:12])  # type: ignore[call-arg]
    body = Body(values[12], tuple(values[13:16]), tuple(values[16:22]))
    return joint, body, values[22], values[23]


def _coordinate(recorder: Recorder, multiplier: Number, count: int) -> Jet:
    """Joint position of the body, from the coordinate."""
    q: Jet = multiplier * Jet(recorder.inputs('motion', count))
    return q + recorder.input('constants', N_CONSTANTS - 1)


def read_vectors(
    recorder: Recorder, array: str, start: int, count: int, orders: int | None = None
) -> list[Vector]:
    """Vectors that stand one behind the other in an array.

    With orders they are jets with so many entries, each with its derivatives behind it.
    """
    size = 3 * (1 if orders is None else orders)
    found = []
    for i in range(count):
        x, y, z = (
            recorder.input(array, start + size * i + j)
            if orders is None
            else Jet(
                recorder.input(array, start + size * i + 3 * k + j) for k in range(orders)
            )
            for j in range(3)
        )
        found.append((x, y, z))
    return found


def read_load(recorder: Recorder, array: str, layout: StateLayout) -> Load:
    """Load in the state of a body."""
    return Load(*read_vectors(recorder, array, layout.load, 2, layout.order + 1))


def write(recorder: Recorder, array: str, start: int, vectors: Iterable[Vector]) -> None:
    """Write vectors one behind the other into an array, see `read_vectors`."""
    for v in vectors:
        for values in zip(*v) if isinstance(v[0], Jet) else [v]:
            for value in values:
                recorder.output(array, start, value)
                start += 1


# --- Articulated bodies --------------------------------------------------------------------------


class ArticulatedLayout(StateLayout):
    """Places of what a body has beside motion, load and turn.

    Attributes
    ----------
    c, p : int
        Where its known acceleration and its known load begin, of the order at hand.
    inertia, U, inverse, u : int
        Where M^A, M^A x, 1 / d and u of the module's equations begin.
    moments : int
        Mass, first moment and trace of the second ones of all that the joint carries.
    """

    def __init__(self, order: int) -> None:
        super().__init__(order)
        self.c = self.size
        self.p = self.c + 6
        self.inertia = self.p + 6
        self.U = self.inertia + 27
        self.inverse = self.U + 6
        self.u = self.inverse + 1
        self.moments = self.u + 1
        self.size = self.moments + 5


class Articulated(NamedTuple):
    """Matrix [[A, H], [H^T, m]] that makes moment and force of (w', a).

    Three 3x3 matrices in body axes, about the origin of the body's frame.
    """

    A: Matrix
    H: Matrix
    m: Matrix

    def load(self, e: Vector, u: Vector) -> tuple[Vector, Vector]:
        """Product with (e, u)."""
        n = plus_product(product(self.A, e), self.H, u)
        f = product(transposed(self.H), e)
        return n, plus_product(f, self.m, u)


def sweeps(order: int, kind: int) -> list[tuple[bool, StraightLineProgram]]:
    """Loops over the bodies for a body of a kind, in their order.

    Returns
    -------
    list of (bool, Program)
        Whether the loop goes towards the base, and the program of a body.
    """
    found: list[tuple[bool, StraightLineProgram]] = []
    for k in range(order + 1):
        found.append((False, _outwards(order, k, kind, last=False)))
        if k == 0:
            found.append((True, _inertia(order, kind)))
        found.append((True, _inwards(order, k, kind)))
    return [*found, (False, _outwards(order, order + 1, kind, last=True))]


def _outwards(order: int, k: int, kind: int, last: bool) -> StraightLineProgram:
    """Acceleration of order k - 1, which is known by now, and what is known of order k."""
    recorder, layout = Recorder(), ArticulatedLayout(order)
    joint, body, _, _ = body_inputs(recorder, kind)
    q = [*_coordinate(recorder, 1.0, 2)]
    q += [recorder.input('found', j) for j in range(k - 1)]
    (w,) = read_vectors(recorder, 'parent', layout.w, 1, k + 1)
    (a,) = read_vectors(recorder, 'parent', layout.a, 1, k)
    if k:
        c = read_vectors(recorder, 'own', layout.c, 2)
        U = read_vectors(recorder, 'own', layout.U, 2)
        inertia = _read_inertia(recorder, layout)
        # Only what the parent's acceleration of this order adds: c has the rest.
        still = _turn(recorder, layout)
        e, u = formulation.of_order(w, k), formulation.of_order(a, k - 1)
        e, u = _moved(joint, still, q[0], e, u)
        known = dot(U[0], e) + dot(U[1], u)
        rest = recorder.input('own', layout.u) - known
        found = rest * recorder.input('own', layout.inverse)
        recorder.output('found', k - 1, found)
        q.append(found)
        e = plus(plus(e, c[0]), scaled(joint.turn * found, AXIS))
        u = plus(plus(u, c[1]), scaled(joint.slide * found, AXIS))
        p = read_vectors(recorder, 'own', layout.p, 2)
        n, f = inertia.load(e, u)
        write(recorder, 'own', layout.w + 3 * k, [e])
        write(recorder, 'own', layout.a + 3 * (k - 1), [u])
        write(recorder, 'own', layout.load + 3 * (k - 1), [plus(n, p[0])])
        place = layout.load + 3 * (order + 1) + 3 * (k - 1)
        write(recorder, 'own', place, [plus(f, p[1])])
    if last:
        return recorder.program()
    # Order k with the acceleration of the parent, and of the joint, zero.
    position = Jet([*q, 0.0])
    turn = formulation.turn_of(joint, position)
    if k:
        turn = _turn(recorder, layout)._replace(rate=turn.rate)
    parent = formulation.body_motion(followed(w, ZERO), followed(a, ZERO))
    motion = formulation.forward(joint, turn, position, parent)
    c = [formulation.of_order(motion.w, k + 1), formulation.of_order(motion.a, k)]
    write(recorder, 'own', layout.c, c)
    if k:
        (w,) = read_vectors(recorder, 'own', layout.w, 1, k)
        (a,) = read_vectors(recorder, 'own', layout.a, 1, k - 1)
        w, a = followed(w, e), followed(a, u)
    else:
        w = followed(a, formulation.of_order(motion.w, 0))
        write(recorder, 'own', layout.w, [w])
    # The inertial load with the own acceleration zero.
    own = formulation.body_motion(followed(w, ZERO), followed(a, ZERO))
    load = formulation.inertial_load(body, own)
    write(recorder, 'own', layout.p, [formulation.of_order(v, k) for v in load])
    if k == 0:
        recorder.output('own', layout.turn, turn.sine)
        recorder.output('own', layout.turn + 1, turn.cosine)
        _write_inertia(recorder, 'own', layout, _rigid(body), add=False)
        xx, _, _, yy, _, zz = body.J
        for j, value in enumerate((body.mass, *body.h, xx + yy + zz)):
            recorder.output('own', layout.moments + j, value)
    return recorder.program()


def _inertia(order: int, kind: int) -> StraightLineProgram:
    """Articulated inertia: what the joint makes of it, and what the parent gets."""
    recorder, layout = Recorder(), ArticulatedLayout(order)
    joint, _, _, armature = body_inputs(recorder, kind)
    q, turn = _coordinate(recorder, 1.0, 1)[0], _turn(recorder, layout)
    inertia = _read_inertia(recorder, layout)
    e, u = scaled(joint.turn, AXIS), scaled(joint.slide, AXIS)
    n, f = inertia.load(e, u)
    d = joint.turn * n[2] + joint.slide * f[2] + armature
    # Beside the inertia of all that the joint carries a smaller one is rounding.
    moments = [recorder.input('own', layout.moments + k) for k in range(5)]
    mass, h, trace = moments[0], (moments[1], moments[2], moments[3]), moments[4]
    size = joint.turn * trace + joint.slide * (joint.slide * mass) + armature
    inverse = recorder.inverse(d, size)
    write(recorder, 'own', layout.U, [n, f])
    recorder.output('own', layout.inverse, inverse)
    by = scaled(-1.0 * inverse, n), scaled(-1.0 * inverse, f)
    passed = Articulated(
        _plus_outer(inertia.A, by[0], n),
        _plus_outer(inertia.H, by[0], f),
        _plus_outer(inertia.m, by[1], f),
    )
    if formulation.slides(joint):
        arm = scaled(joint.slide * q, AXIS)
        passed = _shifted(passed, arm)
        h, trace = _moments_about(mass, h, trace, arm)
    turned = (formulation.matrix_in_parent(joint, turn, matrix) for matrix in passed)
    passed = _shifted(Articulated(*turned), joint.d)
    _write_inertia(recorder, 'parent', layout, passed, add=True)
    h, trace = _moments_about(mass, formulation.to_parent(joint, turn, h), trace, joint.d)
    for j, value in enumerate((mass, *h, trace)):
        place = layout.moments + j
        recorder.output('parent', place, recorder.input('parent', place) + value)
    return recorder.program()


def _inwards(order: int, k: int, kind: int) -> StraightLineProgram:
    """Order k of the load that the parent gets as long as its acceleration is zero."""
    recorder, layout = Recorder(), ArticulatedLayout(order)
    joint, _, _, _ = body_inputs(recorder, kind)
    position = _coordinate(recorder, 1.0, 1)[0]
    rates: list[Number] = [recorder.input('motion', 1)]
    rates += [*(recorder.input('found', j) for j in range(k - 1)), 0.0]
    turn = _turn(recorder, layout)._replace(rate=joint.turn * Jet(rates))
    c = read_vectors(recorder, 'own', layout.c, 2)
    p = read_vectors(recorder, 'own', layout.p, 2)
    n, f = _read_inertia(recorder, layout).load(c[0], c[1])
    n, f = plus(n, p[0]), plus(f, p[1])
    u = recorder.input('effort', k) - (joint.turn * n[2] + joint.slide * f[2])
    recorder.output('own', layout.u, u)
    U = read_vectors(recorder, 'own', layout.U, 2)
    factor = u * recorder.input('own', layout.inverse)
    n, f = (
        plus_scaled(n, factor, U[0]),
        plus_scaled(f, factor, U[1]),
    )
    true = read_load(recorder, 'own', layout)
    load = Load(followed(true.n, n, k), followed(true.f, f, k))
    passed = formulation.backward(joint, turn, Jet([position, *rates]), load)
    p = read_vectors(recorder, 'parent', layout.p, 2)
    total = [plus(x, formulation.of_order(v, k)) for x, v in zip(p, passed)]
    write(recorder, 'parent', layout.p, total)
    return recorder.program()


def _turn(recorder: Recorder, layout: StateLayout) -> Turn:
    """Turn of the joint as the state keeps it, without rates."""
    sine, cosine = (recorder.input('own', layout.turn + k) for k in range(2))
    return Turn(sine, cosine, Jet([]))


def _moved(
    joint: JointFrame, turn: Turn, q: Number, e: Vector, u: Vector
) -> tuple[Vector, Vector]:
    """Acceleration (w', a) of a point of the parent at the origin of the body, in its axes."""
    u = plus_cross(u, e, joint.d)
    e, u = formulation.to_child(joint, turn, e), formulation.to_child(joint, turn, u)
    if formulation.slides(joint):
        u = plus_cross(u, e, scaled(joint.slide * q, AXIS))
    return e, u


def _moments_about(
    mass: Number, h: Vector, trace: Number, d: Vector
) -> tuple[Vector, Number]:
    """First moment and trace of the second ones about another origin, from which this is at d."""
    moved = plus_scaled(h, mass, d)
    return moved, trace + dot(d, plus(h, moved))


def _rigid(body: Body) -> Articulated:
    """Articulated inertia of a body alone."""
    xx, xy, xz, yy, yz, zz = body.J
    A = ((yy + zz, -xy, -xz), (-xy, xx + zz, -yz), (-xz, -yz, xx + yy))
    m = body.mass
    return Articulated(
        A, cross_matrix(body.h), ((m, 0.0, 0.0), (0.0, m, 0.0), (0.0, 0.0, m))
    )


def _shifted(inertia: Articulated, d: Vector) -> Articulated:
    """Inertia about an origin from which the present one is at d."""
    # H + D m and A - H D + D (H + D m)^T with D = [d].
    H = plus_matrix(inertia.H, transposed(_crossed(inertia.m, d)))
    A = plus_matrix(inertia.A, _crossed(inertia.H, d))
    return Articulated(plus_matrix(A, transposed(_crossed(H, d))), H, inertia.m)


def _crossed(M: Matrix, d: Vector) -> Matrix:
    """Rows d x M_i."""
    x, y, z = (cross(d, row) for row in M)
    return (x, y, z)


def _plus_outer(M: Matrix, a: Vector, b: Vector) -> Matrix:
    """Matrix M + a b^T."""
    return plus_matrix(M, outer(a, b))


def _read_inertia(recorder: Recorder, layout: ArticulatedLayout) -> Articulated:
    """Articulated inertia in the body's own state."""
    rows = read_vectors(recorder, 'own', layout.inertia, 9)
    return Articulated(*((rows[k], rows[k + 1], rows[k + 2]) for k in (0, 3, 6)))


def _write_inertia(
    recorder: Recorder,
    array: str,
    layout: ArticulatedLayout,
    inertia: Articulated,
    add: bool,
) -> None:
    """Articulated inertia into the state in an array, added to the present one if so asked."""
    rows = [row for matrix in inertia for row in matrix]
    if add:
        present = read_vectors(recorder, array, layout.inertia, 9)
        rows = [plus(x, y) for x, y in zip(present, rows)]
    write(recorder, array, layout.inertia, rows)
