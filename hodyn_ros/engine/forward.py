"""Forward dynamics with derivatives: programs of one robot, and loops over the bodies of any.

With the efforts ID_k that hold as long as the k-th derivatives of the accelerations are zero, and
one factorisation of the mass matrix M for all orders,

    M q^(k+2) = Q^(k) - ID_k(q, ..., q^(k+1), 0),   k = 0, 1, ...

A base that floats has six rows more, those of (w', a): what the bodies feel of it is its angular
velocity and the proper acceleration a of its origin, see `efforts.apparent_acceleration`.

The loops are those of articulated bodies. The inertia M^A that a body has with the joints behind
it free does not depend on the order; with x the screw of its joint, U = M^A x and d = x^T U plus
the armature, it is handed to the parent as M^A - U U^T / d. Then each order takes one loop towards
the base and one back. With the acceleration (w', a) of a body as that of its parent, turned, plus
c, known, plus x q'', and the load M^A (w', a) + p, its k-th derivatives are

    towards the base:  b = M^A c + p,   u = Q - x^T b;   the parent's p gets b + U u / d, turned
    back:              q'' = (u - U^T (w', a)_parent) / d

where turning a load of order k takes the true loads of lower orders, too.

Source: doc/dynamics.rst; M = L^T D L, Featherstone 2008, section 6.5, articulated bodies,
section 7.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from hodyn_ros.engine.bodies import (
    NO_LOAD,
    Angle,
    BodyMotion,
    JointMotion,
    Load,
    Screw,
    body_motion,
    load_of,
)
from hodyn_ros.engine.efforts import RigidBodies, apparent_acceleration
from hodyn_ros.engine.frames import frames, frames_of
from hodyn_ros.engine.joint_friction import add_friction
from hodyn_ros.engine.program import LONGEST, Attachment, Part, Recorder, RobotProgram
from hodyn_ros.engine.terms import Blocks, Composite, Sums, mass_rows
from hodyn_ros.engine.vectors import (
    AXIS,
    NULL,
    ZERO,
    Matrix,
    Number,
    Vector,
    full_matrix,
    plus_unit,
    trace,
)
from hodyn_ros.engine.walker import (
    BodyOfTree,
    Loops,
    Step,
    loops_of,
    motion_inputs,
    vector_of_jets,
)
from hodyn_ros.lie.jets import derivative
from hodyn_ros.model.mechanism import Mechanism


def forward_program(
    model: Mechanism,
    count: int,
    wrenches: Sequence[Attachment] = (),
    floating: bool = False,
    prescribed: Sequence[int] = (),
) -> RobotProgram:
    """Program of the accelerations, and `count` - 1 derivatives, that efforts cause.

    Inputs: 'motion', positions and velocities, and if the motion of some joints is prescribed
    `count` derivatives more, of which only theirs are read; 'given', first the efforts, derivative
    k of joint j at k n + j, of a floating base then its wrenches, 6 numbers each, its twist and
    -g, all in link axes; then wrenches as `effort_program` has them. Output: 'found', the k-th
    derivative of all accelerations at k (n + b), those of a base, b = 6, first; where the motion
    of a joint is prescribed its effort.

    `ProgramTooLong` is raised if it takes more steps than `program.LONGEST`.
    """
    recorder = Recorder(LONGEST)
    n, b = model.n_joints, 6 if floating else 0
    own = frames(model, from_link=True) if floating else frames_of(model)
    K = count + 2 if prescribed else 2
    size = count * (n + b) + 9 * floating
    given: Sequence[Number] = recorder.inputs('given', size + 6 * count * len(wrenches))
    inputs = motion_inputs(recorder, model, K)
    motion = inputs[:2]
    rows = mass_rows(model, own, recorder, floating)
    unknown = [i for i in range(b + n) if i - b not in prescribed]
    factors = SymmetricFactors(recorder, rows, unknown)
    base = _FloatingBase(given[size - 9 : size]) if floating else None
    results: list[Number] = []
    for k in range(count):
        ahead = [inputs[k + 2][j] if j in prescribed else 0.0 for j in range(n)]
        bodies = RigidBodies(
            model, own, [*motion, ahead], base.motion_ahead() if base else None
        )
        efforts, load = bodies.efforts(bodies.loads(wrenches, given[size:]))
        add_friction(model, efforts, motion[1:])
        of_base = [derivative(value, k) for value in (*load.n, *load.f)]
        bias = [*of_base, *efforts[k]][6 - b :]
        asked = [*given[count * n + 6 * k :][:b], *given[k * n : (k + 1) * n]]
        found = factors.solve(asked, bias)
        motion.append([x if j in prescribed else found[b + j] for j, x in enumerate(ahead)])
        if base:
            found[:6] = base.take(found)
        results += found
    recorder.outputs('found', results)
    return RobotProgram(
        recorder.program(),
        model.n_joints,
        K,
        Part('given', len(given), False),
        Part('found', len(results), True),
    )


class _FloatingBase:
    """Base that floats, from its twist (w, v) and -g: jets that get longer."""

    def __init__(self, given: Sequence[Number]) -> None:
        self._w, self._v = load_of(given[:6])
        self._a, self._up = vector_of_jets(0), Vector(*given[6:])

    def motion_ahead(self) -> BodyMotion:
        """Motion as if the next derivatives of w and of the proper acceleration were zero."""
        return body_motion(self._w.followed(ZERO), self._a.followed(ZERO))

    def take(self, found: Sequence[Number]) -> list[Number]:
        """Take these derivatives, which are found first; return those of the twist."""
        w, a = Vector(*found[:3]), Vector(*found[3:6])
        apparent = apparent_acceleration(self._w, self._v, self._up)
        v = a - apparent.order(len(self._a.x))
        self._w, self._v = self._w.followed(w), self._v.followed(v)
        self._a = self._a.followed(a)
        return [*w, *v]


class SymmetricFactors:
    """Factors L^T D L of a symmetric matrix; zeros of the matrix, where branches part, stay.

    Parameters
    ----------
    recorder : Recorder
    rows : sequence of sequences of Number
        All of the matrix; the upper triangle is not read but in rows that are not factorised.
    unknown : sequence of int
        Rows and columns that are factorised: those of joints whose acceleration is unknown.
    """

    def __init__(
        self, recorder: Recorder, rows: Sequence[Sequence[Number]], unknown: Sequence[int]
    ) -> None:
        self._rows, self._unknown = rows, unknown
        self._L = L = [[rows[i][j] for j in unknown] for i in unknown]
        self._inverse: list[Number] = [0.0] * len(L)
        for k in reversed(range(len(L))):
            self._inverse[k] = recorder.inverse(L[k][k], rows[unknown[k]][unknown[k]])
            for i in reversed(range(k)):
                factor = L[k][i] * self._inverse[k]
                for j in range(i + 1):
                    L[i][j] = L[i][j] - factor * L[k][j]
                L[k][i] = factor

    def solve(self, efforts: Sequence[Number], bias: Sequence[Number]) -> list[Number]:
        """Unknown accelerations from efforts; of the other joints the efforts.

        The bias are the efforts that go with unknown accelerations of zero.
        """
        x = [efforts[i] - bias[i] for i in self._unknown]
        for i in reversed(range(len(x))):
            for j in range(i):
                x[j] = x[j] - self._L[i][j] * x[i]
        for i, inverse in enumerate(self._inverse):
            x[i] = x[i] * inverse
            for j in range(i):
                x[i] = x[i] - self._L[i][j] * x[j]
        found = dict(zip(self._unknown, x))
        for i in set(range(len(bias))) - found.keys():
            row = zip(self._unknown, x)
            found[i] = sum((self._rows[i][j] * value for j, value in row), bias[i])
        return [found[i] for i in range(len(bias))]


# --- Articulated bodies --------------------------------------------------------------------------


@dataclass(frozen=True)
class ArticulatedInertia(Sums):
    """Articulated inertia [[A, H], [H^T, m]]: it makes moment and force of (w', a)."""

    A: Matrix
    H: Matrix
    m: Matrix

    def moved(self, d: Vector) -> ArticulatedInertia:
        """Inertia about an origin from which the present one is at d."""
        # H + D m and A - H D + D (H + D m)^T with D = [d].
        H = self.H + _crossed(self.m, d).T
        A = self.A + _crossed(self.H, d)
        return ArticulatedInertia(A + _crossed(H, d).T, H, self.m)

    def matrix(self) -> Blocks:
        """Inertia matrix."""
        return Blocks(self.A, self.H, self.H.T, self.m)


@dataclass(frozen=True)
class Moments(Sums):
    """Mass, first moment and trace of the second ones of all that a joint carries."""

    mass: Number
    h: Vector
    trace: Number

    def moved(self, d: Vector) -> Moments:
        """Moments about an origin from which the present one is at d."""
        h = self.h + d * self.mass
        return Moments(self.mass, h, self.trace + d @ (self.h + h))

    def matrix(self) -> Blocks:
        """Diagonal matrix that bounds those of all parts of the inertia."""
        trace, mass = plus_unit(NULL, self.trace), plus_unit(NULL, self.mass)
        return Blocks(trace, NULL, NULL, mass)


class _State(NamedTuple):
    """State of an articulated body, in the letters of the module; c and p are of one order."""

    w: Vector
    a: Vector
    load: Load
    turn: Angle
    c: Screw
    p: Load
    inertia: ArticulatedInertia
    U: Load
    inverse: Number
    u: Number
    carried: Moments


def articulated_loops(order: int) -> Loops:
    """Loops for the accelerations that efforts cause, and their derivatives up to an order."""
    steps: list[tuple[bool, Step]] = []
    for k in range(order + 1):
        steps.append((False, partial(_outward, k, False)))
        if k == 0:
            steps.append((True, _inertia))
        steps.append((True, partial(_inward, k)))
    steps.append((False, partial(_outward, order + 1, True)))
    v = vector_of_jets(order + 1)
    state = _State(
        vector_of_jets(order + 2),
        v,
        Load(v, v),
        (0.0, 0.0),
        (ZERO, ZERO),
        NO_LOAD,
        ArticulatedInertia(NULL, NULL, NULL),
        NO_LOAD,
        0.0,
        0.0,
        Moments(0.0, ZERO, 0.0),
    )
    return loops_of(steps, state, (2, order + 1, order + 1), ('motion', 'effort', 'found'))


def _outward(k: int, last: bool, tree: BodyOfTree) -> tuple[_State, _State]:
    """Pass k away from the base: accelerations of order k - 1, then c and p of order k."""
    own, parent, recorder = tree.own, tree.parent, tree.recorder
    rates = _rates(tree, k)
    w, a = _first(parent.w, k + 1), _first(parent.a, k)
    if k:
        # Only what the parent's acceleration of this order adds: c has the rest.
        still = JointMotion(tree.joint, tree.position([]), *own.turn)
        moved = still.screw_outward(w.order(k), a.order(k - 1))
        e, u = (part.order(0) for part in moved)
        found = (own.u - (own.U.n @ e + own.U.f @ u)) * own.inverse
        recorder.output('found', k - 1, found)
        rates.append(found)
        e = e + own.c[0] + AXIS * (tree.joint.turn * found)
        u = u + own.c[1] + AXIS * (tree.joint.slide * found)
        n, f = own.inertia.matrix() @ (e, u) + own.p
        load = Load(own.load.n.followed(n, k - 1), own.load.f.followed(f, k - 1))
        own = own._replace(w=own.w.followed(e, k), a=own.a.followed(u, k - 1), load=load)
    if last:
        return own, parent
    # Order k with the acceleration of the parent, and of the joint, zero.
    position = tree.position([*rates, 0.0])
    joint = JointMotion(tree.joint, position, *own.turn)
    if k == 0:
        joint = JointMotion.at(tree.joint, position)
    motion = joint.outward(body_motion(w.followed(ZERO), a.followed(ZERO)))
    c = motion.w.order(k + 1), motion.a.order(k)
    if k == 0:
        mass, h, J = tree.body.mass, tree.body.h, full_matrix(tree.body.J)
        A, H, _, m = Composite(mass, h, J).matrix()
        own = own._replace(
            w=own.w.followed(motion.w.order(0), 0),
            turn=(joint.sine, joint.cosine),
            inertia=ArticulatedInertia(A, H, m),
            carried=Moments(mass, h, trace(J)),
        )
    # The inertial load with the own acceleration zero.
    known = body_motion(own.w.followed(ZERO, k + 1), own.a.followed(ZERO, k))
    n, f = tree.body.load(known)
    return own._replace(c=c, p=Load(n.order(k), f.order(k))), parent


def _inertia(tree: BodyOfTree) -> tuple[_State, _State]:
    """Articulated inertia: what the joint makes of it, and what the parent gets."""
    own, parent = tree.own, tree.parent
    joint = JointMotion(tree.joint, tree.position([]), *own.turn)
    U = own.inertia.matrix() @ joint.screw
    d = joint.effort(U) + tree.armature
    # Beside the inertia of all that the joint carries a smaller one is rounding.
    size = joint.effort(own.carried.matrix() @ joint.screw) + tree.armature
    inverse = tree.recorder.inverse(d, size)
    n, f = U.n * (-1.0 * inverse), U.f * (-1.0 * inverse)
    passed = ArticulatedInertia(
        own.inertia.A + n.outer(U.n),
        own.inertia.H + n.outer(U.f),
        own.inertia.m + f.outer(U.f),
    )
    return own._replace(U=U, inverse=inverse), parent._replace(
        inertia=parent.inertia + passed.inward(joint),
        carried=parent.carried + own.carried.inward(joint),
    )


def _inward(k: int, tree: BodyOfTree) -> tuple[_State, _State]:
    """Pass k towards the base: loads of order k as long as the parent's acceleration is zero."""
    own, parent = tree.own, tree.parent
    joint = JointMotion(tree.joint, tree.position([*_rates(tree, k), 0.0]), *own.turn)
    b = own.inertia.matrix() @ own.c + own.p
    u = tree.recorder.input('effort', k) - joint.effort(b)
    factor = u * own.inverse
    n, f = b.n + own.U.n * factor, b.f + own.U.f * factor
    load = Load(own.load.n.followed(n, k), own.load.f.followed(f, k))
    passed = joint.inward(load)
    p = parent.p + Load(passed.n.order(k), passed.f.order(k))
    return own._replace(u=u), parent._replace(p=p)


def _rates(tree: BodyOfTree, k: int) -> list[Number]:
    """Derivatives of the joint's position that are known in pass k."""
    found = (tree.recorder.input('found', j) for j in range(k - 1))
    return [tree.recorder.input('motion', 1), *found]


def _first(v: Vector, count: int) -> Vector:
    """First entries of jets."""
    return Vector(*(jet[:count] for jet in v))


def _crossed(M: Matrix, d: Vector) -> Matrix:
    """Rows d x M_i."""
    return Matrix(*map(d.cross, M))
