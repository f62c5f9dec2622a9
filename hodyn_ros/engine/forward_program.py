"""Programs of forward dynamics, with derivatives, and of robots whose base moves.

With the efforts ID_k that hold as long as the k-th derivatives of the accelerations are zero, and
one factorisation of the mass matrix M for all orders,

    M q^(k+2) = Q^(k) - ID_k(q, ..., q^(k+1), 0),   k = 0, 1, ...

A base that floats has six rows more. What the bodies feel of a base with the twist (w, v) is w and
the proper acceleration of its origin, with gravity g in the axes of the base link, which turn:

    a = v' + w x v - g,   a^(k) = v^(k+1) + sum C(k, j) w^(j) x v^(k-j) - g^(k),   g' = g x w.

Source: doc/forward_dynamics.rst; M = L^T D L, Featherstone 2008, section 6.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import TYPE_CHECKING

from hodyn_ros.engine import formulation
from hodyn_ros.engine.formulation import ZERO, BodyMotion, Vector
from hodyn_ros.engine.frames import frames_of, position, vector, without_rounding
from hodyn_ros.engine.matrix_program import mass_rows
from hodyn_ros.engine.program import Attachment, Number, Part, Recorder, RobotProgram
from hodyn_ros.engine.robot_program import RecordedFriction, RigidBodies, motion_inputs

if TYPE_CHECKING:
    from hodyn_ros.engine.frames import Frames
    from hodyn_ros.model.robot import RobotModel


def forward_program(
    model: RobotModel,
    count: int,
    wrenches: Sequence[Attachment] = (),
    floating: bool = False,
    prescribed: Sequence[int] = (),
) -> RobotProgram:
    """Program of the accelerations, and `count` - 1 derivatives, that efforts cause.

    Inputs: 'motion', positions and velocities, and if the motion of some joints is prescribed
    `count` derivatives more, of which only theirs are read; 'given', first the efforts, derivative
    k of joint j at k n + j, of a floating base then its wrenches, 6 numbers each, its twist and
    -g, all in link axes; then wrenches as `robot_program` has them. Output: 'found', the k-th
    derivative of all accelerations at k (n + b), those of a base, b = 6, first; where the motion
    of a joint is prescribed its effort.
    """
    recorder = Recorder()
    n, b = model.n_joints, 6 if floating else 0
    frames = frames_of(model)
    K = count + 2 if prescribed else 2
    size = count * (n + b) + 9 * floating
    given: Sequence[Number] = recorder.inputs('given', size + 6 * count * len(wrenches))
    bodies = RigidBodies(recorder, model, wrenches, given[size:])
    friction = RecordedFriction(recorder, model)
    inputs = motion_inputs(recorder, model, K)
    motion = inputs[:2]
    free = [j for j in range(n) if j not in prescribed]
    matrix = mass_rows(model, frames, recorder, floating)
    kept = [*range(b), *(b + j for j in free)]
    factors = Factors(recorder, _part_of(matrix, kept))
    base: _BaseAtRest | _FloatingBase = _BaseAtRest()
    if floating:
        base = _FloatingBase(_BaseFrame(frames), given[count * n : size])
    results: list[Number] = []
    for k in range(count):
        ahead = [inputs[k + 2][j] if j in prescribed else 0.0 for j in range(n)]
        efforts, load = bodies.efforts([*motion, ahead], k, base.motion())
        friction.add_to(efforts, motion)
        bias = [*load.n[k], *load.f[k], *efforts[k]][6 - b :]
        asked = [*base.wrench(k), *given[k * n : (k + 1) * n]]
        found = factors.solve([asked[i] - bias[i] for i in kept])
        results += base.take(found, k)
        for j, value in zip(free, found[b:]):
            ahead[j] = value
        motion.append(ahead)
        for i, value in enumerate(ahead, b):
            if i - b in prescribed:
                value = _plus_row(bias[i], matrix[i], kept, found)
            results.append(value)
    recorder.outputs('found', results)
    return RobotProgram(
        recorder.program(),
        range(model.n_bodies),
        K,
        Part('given', len(given), False),
        Part('found', len(results), True),
        friction.arguments(),
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
    model: RobotModel, order: int, wrenches: Sequence[Attachment] = ()
) -> RobotProgram:
    """Program of the efforts, without friction, and of the wrench on a base that moves.

    Inputs: 'motion'; 'base', the twist of the base and order + 1 derivatives, 6 numbers each, and
    -g, all in link axes, then wrenches as `robot_program` has them. Output: 'effort', derivative k
    at k (n + 6): the wrench on the base and the efforts.
    """
    recorder = Recorder()
    frames = frames_of(model)
    motion = motion_inputs(recorder, model, order + 3)
    size = 6 * (order + 2) + 3
    given: Sequence[Number] = recorder.inputs(
        'base', size + 6 * (order + 1) * len(wrenches)
    )
    base = _BaseFrame(frames)
    rows = [vector_of(given, place) for place in range(0, size - 3, 3)]
    moving = base.motion(
        rows[::2], _Twist(rows[::2], rows[1::2], given[size - 3 : size]).proper()
    )
    bodies = RigidBodies(recorder, model, wrenches, given[size:])
    efforts, load = bodies.efforts(motion, order, moving)
    results: list[Number] = []
    for n, f, row in zip(load.n, load.f, efforts):
        results += [*base.load_on_link(n, f), *row]
    recorder.outputs('effort', results)
    return RobotProgram(
        recorder.program(),
        range(model.n_bodies),
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


class _Twist:
    """Twist (w, v) of a base and its derivatives, with -g in its axes."""

    def __init__(self, w: list[Vector], v: list[Vector], up: Sequence[Number]) -> None:
        self.w, self._v, self._up = w, v, [vector_of(up, 0)]

    def proper(self) -> list[Vector]:
        """Proper accelerations and derivatives, one fewer than the twist has."""
        return [
            formulation.plus(self._v[k + 1], self._apparent(k))
            for k in range(len(self._v) - 1)
        ]

    def add(self, w: Vector, a: Vector) -> list[Number]:
        """Take the next derivative of w, and of the proper acceleration; return that of (w, v)."""
        v = formulation.plus_scaled(a, -1.0, self._apparent(len(self._v) - 1))
        self.w.append(w)
        self._v.append(v)
        return [*w, *v]

    def _apparent(self, k: int) -> Vector:
        """Derivative k of w x v - g, asked for one after the other."""
        value, turned = self._up[k], ZERO
        for j in range(k + 1):
            w = formulation.scaled(float(comb(k, j)), self.w[j])
            value = formulation.plus_cross(value, w, self._v[k - j])
            turned = formulation.plus_cross(turned, self._up[k - j], w)
        self._up.append(turned)
        return value


class _BaseFrame:
    """Between the base link and the frame that serves as base: motions and loads."""

    def __init__(self, frames: Frames) -> None:
        R = without_rounding(frames.base[:3, :3], 1.0)
        self._rows = vector(R[0]), vector(R[1]), vector(R[2])
        self._columns = vector(R[:, 0]), vector(R[:, 1]), vector(R[:, 2])
        self._p = position(frames.base)
        x, y, z = (formulation.dot(axis, self._p) for axis in self._columns)
        self._arm = (x, y, z)

    def turned(self, v: Sequence[Number]) -> Vector:
        """Components in the frame, from those in link axes."""
        return formulation.plus_product(ZERO, self._columns, (v[0], v[1], v[2]))

    def motion(self, w: Sequence[Vector], a: Sequence[Vector]) -> BodyMotion:
        """Motion of the frame, from w and a of the link."""
        w = [self.turned(v) for v in w]
        B = formulation.acceleration_matrices(w)
        a = [formulation.plus_product(self.turned(x), y, self._arm) for x, y in zip(a, B)]
        return BodyMotion(w, a, B)

    def motion_of_link(self, motion: BodyMotion, k: int) -> tuple[Vector, Vector]:
        """Derivative k of (w', a) of the link."""
        arm = formulation.scaled(-1.0, self._arm)
        a = formulation.plus_product(motion.a[k], motion.B[k], arm)
        w = formulation.plus_product(ZERO, self._rows, motion.w[k + 1])
        return w, formulation.plus_product(ZERO, self._rows, a)

    def load(self, wrench: Sequence[Number]) -> list[Number]:
        """Moment and force about the origin of the frame, from those about the link's."""
        f = self.turned(wrench[3:])
        return [*formulation.plus_cross(self.turned(wrench[:3]), f, self._arm), *f]

    def load_on_link(self, n: Vector, f: Vector) -> list[Number]:
        """Moment and force about the origin of the link, from those about the frame's."""
        n = formulation.plus_cross(n, self._arm, f)
        return [
            value for v in (n, f) for value in formulation.plus_product(ZERO, self._rows, v)
        ]


class _BaseAtRest:
    """Base that does not move; the counterpart of `_FloatingBase`."""

    def motion(self) -> BodyMotion | None:
        """Motion for `RigidBodies.efforts`: none."""
        return None

    def wrench(self, k: int) -> list[Number]:
        """Numbers before the efforts that are given: none."""
        return []

    def take(self, found: Sequence[Number], k: int) -> list[Number]:
        """Numbers before the accelerations that are found: none."""
        return []


class _FloatingBase:
    """Base that floats, whose motion becomes known order by order.

    Given are its wrenches, 6 numbers for each order, its twist and -g, all in link axes.
    """

    def __init__(self, frame: _BaseFrame, given: Sequence[Number]) -> None:
        self._frame, self._given = frame, given
        twist = len(given) - 9
        first = vector_of(given, twist), vector_of(given, twist + 3)
        self._own = _Twist([first[0]], [first[1]], given[twist + 6 :])
        self._w: list[Vector] = [frame.turned(first[0])]
        self._a: list[Vector] = []

    def motion(self) -> BodyMotion:
        """Motion of the frame with the next derivatives of w and a zero."""
        return formulation.body_motion([*self._w, ZERO], [*self._a, ZERO])

    def wrench(self, k: int) -> list[Number]:
        """Derivative k of the wrench on the base, about the origin of the frame in its axes."""
        return self._frame.load(self._given[6 * k : 6 * k + 6])

    def take(self, found: Sequence[Number], k: int) -> list[Number]:
        """Take derivative k of (w', a), found first; return that of the rate of the twist."""
        self._w.append((found[0], found[1], found[2]))
        self._a.append((found[3], found[4], found[5]))
        motion = formulation.body_motion(self._w, self._a)
        return self._own.add(*self._frame.motion_of_link(motion, k))
