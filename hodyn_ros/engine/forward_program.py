"""Programs of forward dynamics, with derivatives, and of robots whose base moves.

With the efforts ID_k that hold as long as the k-th derivatives of the accelerations are zero, and
one factorisation of the mass matrix M for all orders,

    M q^(k+2) = Q^(k) - ID_k(q, ..., q^(k+1), 0),   k = 0, 1, ...

A base that floats has six rows more. What the bodies feel of a base with the twist (w, v) is w and
the proper acceleration of its origin, with gravity g in the axes of the base link, which turn:

    a = v' + w x v - g,   g' = g x w.

Source: doc/forward_dynamics.rst; M = L^T D L, Featherstone 2008, section 6.5.
"""

from __future__ import annotations

from collections.abc import Sequence

from hodyn_ros.engine import bodies as formulation
from hodyn_ros.engine.bodies import BodyMotion, followed
from hodyn_ros.engine.efforts import RigidBodies, motion_inputs
from hodyn_ros.engine.frames import frames, frames_of
from hodyn_ros.engine.matrix_program import mass_rows
from hodyn_ros.engine.program import Attachment, Number, Part, Recorder, RobotProgram
from hodyn_ros.engine.vectors import (
    ZERO,
    Vector,
    cross,
    plus,
    plus_cross,
    plus_scaled,
)
from hodyn_ros.lie.jets import Jet, derivative
from hodyn_ros.model.friction import add_friction
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
    """
    recorder = Recorder()
    n, b = model.n_joints, 6 if floating else 0
    own = frames(model, from_link=True) if floating else frames_of(model)
    K = count + 2 if prescribed else 2
    size = count * (n + b) + 9 * floating
    given: Sequence[Number] = recorder.inputs('given', size + 6 * count * len(wrenches))
    bodies = RigidBodies(recorder, model, wrenches, given[size:], own)
    inputs = motion_inputs(recorder, model, K)
    motion = inputs[:2]
    free = [j for j in range(n) if j not in prescribed]
    matrix = mass_rows(model, own, recorder, floating)
    kept = [*range(b), *(b + j for j in free)]
    factors = Factors(recorder, _part_of(matrix, kept))
    base = None
    if floating:
        w, v, up = (vector_of(given, size - place) for place in (9, 6, 3))
        base = _MovingBase(_jets([w]), _jets([v]), up)
    results: list[Number] = []
    for k in range(count):
        ahead = [inputs[k + 2][j] if j in prescribed else 0.0 for j in range(n)]
        moving = base.motion_ahead() if base else None
        efforts, load = bodies.efforts([*motion, ahead], k, moving)
        add_friction(model, efforts, motion[1:])
        of_base = [derivative(value, k) for value in (*load.n, *load.f)]
        bias = [*of_base, *efforts[k]][6 - b :]
        on_base = given[count * n + 6 * k :][:b]
        asked = [*on_base, *given[k * n : (k + 1) * n]]
        found = factors.solve([asked[i] - bias[i] for i in kept])
        if base:
            results += base.take(found)
        for j, value in zip(free, found[b:]):
            ahead[j] = value
        motion.append(ahead)
        # Where the motion is prescribed, the effort is what is found.
        row = dict(enumerate(ahead))
        row |= {j: _plus_row(bias[b + j], matrix[b + j], kept, found) for j in prescribed}
        results += row.values()
    recorder.outputs('found', results)
    return RobotProgram(
        recorder.program(),
        model.n_joints,
        K,
        Part('given', len(given), False),
        Part('found', len(results), True),
    )


def _part_of(matrix: Sequence[Sequence[Number]], kept: Sequence[int]) -> list[list[Number]]:
    """Rows and columns of a matrix that are kept."""
    return [[matrix[i][j] for j in kept] for i in kept]


def _plus_row(
    value: Number, row: Sequence[Number], kept: Sequence[int], x: Sequence[Number]
) -> Number:
    """Value plus the product of the kept entries of a row with x."""
    for place, other in zip(kept, x):
        value = value + row[place] * other
    return value


def moving_base_program(
    model: Mechanism, order: int, wrenches: Sequence[Attachment] = ()
) -> RobotProgram:
    """Program of the efforts, without friction, and of the wrench on a base that moves.

    Inputs: 'motion'; 'base', the twist of the base and order + 1 derivatives, 6 numbers each, and
    -g, all in link axes, then wrenches as `effort_program` has them. Output: 'effort', derivative
    k at k (n + 6): the wrench on the base and the efforts.
    """
    recorder = Recorder()
    motion = motion_inputs(recorder, model, order + 3)
    size = 6 * (order + 2) + 3
    given: Sequence[Number] = recorder.inputs(
        'base', size + 6 * (order + 1) * len(wrenches)
    )
    rows = [vector_of(given, place) for place in range(0, size, 3)]
    base = _MovingBase(_jets(rows[:-1:2]), _jets(rows[1:-1:2]), rows[-1])
    bodies = RigidBodies(
        recorder, model, wrenches, given[size:], frames(model, from_link=True)
    )
    efforts, load = bodies.efforts(motion, order, base.motion())
    results: list[Number] = []
    for *of_base, row in zip(*load.n, *load.f, efforts):
        results += [*of_base, *row]
    recorder.outputs('effort', results)
    return RobotProgram(
        recorder.program(),
        model.n_joints,
        order + 3,
        Part('base', len(given), False),
        Part('effort', len(results), True),
        friction=not model.friction,
    )


class Factors:
    """Factors L^T D L of a symmetric matrix; zeros of the matrix, where branches part, stay.

    Parameters
    ----------
    recorder : Recorder
    rows : sequence of sequences of Number
        All of the matrix, of which the upper triangle is not read.
    """

    def __init__(self, recorder: Recorder, rows: Sequence[Sequence[Number]]) -> None:
        self._L = L = [list(row) for row in rows]
        self._inverse: list[Number] = [0.0] * len(L)
        for k in reversed(range(len(L))):
            self._inverse[k] = recorder.inverse(L[k][k], rows[k][k])
            for i in reversed(range(k)):
                factor = L[k][i] * self._inverse[k]
                for j in range(i + 1):
                    L[i][j] = L[i][j] - factor * L[k][j]
                L[k][i] = factor

    def solve(self, values: Sequence[Number]) -> list[Number]:
        """Solution of the equations with this matrix for a right-hand side."""
        x = list(values)
        for i in reversed(range(len(x))):
            for j in range(i):
                x[j] = x[j] - self._L[i][j] * x[i]
        for i, inverse in enumerate(self._inverse):
            x[i] = x[i] * inverse
            for j in range(i):
                x[i] = x[i] - self._L[i][j] * x[j]
        return x


def vector_of(values: Sequence[Number], start: int) -> Vector:
    """Three numbers that stand one behind the other."""
    return (values[start], values[start + 1], values[start + 2])


def _jets(vectors: Sequence[Vector]) -> Vector:
    """Components of a vector, from the vector and its derivatives."""
    x, y, z = (Jet(component) for component in zip(*vectors))
    return (x, y, z)


class _MovingBase:
    """Base with a twist (w, v) and derivatives, with -g, all in its axes.

    Parameters
    ----------
    w, v : Vector
        With as many derivatives as are known; `take` adds the next.
    up : Vector
    """

    def __init__(self, w: Vector, v: Vector, up: Vector) -> None:
        self._w, self._v, self._up = w, v, _jets([up])
        for _ in w[0].rate():
            self._turn_up()
        # Proper accelerations, one order fewer than the twist has.
        self._a = plus(formulation.rate(v), self._apparent())

    def motion(self) -> BodyMotion:
        """Motion of the base."""
        return formulation.body_motion(self._w, self._a)

    def motion_ahead(self) -> BodyMotion:
        """The same as if the next derivatives of w and a were zero."""
        return formulation.body_motion(followed(self._w, ZERO), followed(self._a, ZERO))

    def take(self, found: Sequence[Number]) -> list[Number]:
        """Take the next derivative of w and a, found first; return that of (w, v)."""
        w, a = vector_of(found, 0), vector_of(found, 3)
        known = formulation.of_order(self._apparent(), len(self._v[0]) - 1)
        v = plus_scaled(a, -1.0, known)
        self._w, self._v = followed(self._w, w), followed(self._v, v)
        self._a = followed(self._a, a)
        self._turn_up()
        return [*w, *v]

    def _turn_up(self) -> None:
        """Find the next derivative of -g."""
        rate = cross(self._up, self._w)
        self._up = followed(self._up, formulation.of_order(rate, len(self._up[0]) - 1))

    def _apparent(self) -> Vector:
        """Return w x v - g."""
        return plus_cross(self._up, self._w, self._v)
