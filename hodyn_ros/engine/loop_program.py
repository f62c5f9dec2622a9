"""Programs of robots with closed loops: what closes them, and the efforts of the motors.

The relative motion of the frames that a loop holds together is written in the axes of the body of
A. With R the rotation from the body of B, w_r = R w_B - w_A its angular velocity, and a_A, a_B the
accelerations of the two points,

    D(R x) = R D x + w_r x R x,    D^2 p = R a_B - a_A,

since the place p of B's point stays zero. The rows of a loop pick what must vanish of D^k w_r and
D^(k+1) p; without the highest derivatives of the dependent joints these are the right side of the
equations for them. What the loops carry is a load on both bodies, whose derivatives follow in the
same way. One factor of the rows of the dependent joints serves all orders. Its pivots are chosen
where the loops start; where one gets so small that they are no longer good, results are NaN.

Source: Mueller 2019, "An overview of formulae for the higher-order kinematics of lower-pair
chains", and Featherstone 2008, chapter 8; here in frames along the joint axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hodyn_ros.checks import Array
from hodyn_ros.engine.bodies import (
    NO_LOAD,
    BodyMotion,
    Load,
    Pose,
)
from hodyn_ros.engine.efforts import RigidBodies
from hodyn_ros.engine.frames import frames_of, position, rotation, vector
from hodyn_ros.engine.friction import recorded_friction
from hodyn_ros.engine.program import (
    LONGEST,
    NO_ARRAY,
    SINGULAR,
    Attachment,
    Number,
    Part,
    Recorder,
    RobotProgram,
)
from hodyn_ros.engine.run import Steps
from hodyn_ros.engine.vectors import (
    ZERO,
    Matrix,
    Vector,
)
from hodyn_ros.engine.walker import Rows, motion_inputs, vector_of_jets
from hodyn_ros.errors import ModelError
from hodyn_ros.lie import se3
from hodyn_ros.lie.jets import Jet, derivative, derivatives, turned
from hodyn_ros.model.loops import LARGEST_ERROR
from hodyn_ros.model.mechanism import BASE, Mechanism

if TYPE_CHECKING:
    from hodyn_ros.model.loops import Coupling, Loop

# A pivot that is so much smaller than where the loops start is not used, nor, where pivots are
# chosen, an entry that is so much smaller than the largest one of its column.
_WEAK, _THRESHOLD = 1e-3, 0.1
_MARGIN = 4.0  # of pivots, which where the loops start may be small themselves


def _too_weak(order: int) -> float:
    """Ratio of pivots below which this derivative of efforts may be wrong where branches cross.

    The error, see `closed_loops`, is there eps / ratio^(3 + order).
    """
    ratio: float = (np.finfo(float).eps / LARGEST_ERROR) ** (1.0 / (3 + order))
    return max(_WEAK, _MARGIN * ratio)


def closing_program(model: Mechanism, longest: int | None = LONGEST) -> RobotProgram:
    """Program of a step that closes loops.

    It reads the positions of all joints of the tree, and in the next row of its motion changes of
    the independent ones. Output 'change': what Newton's method takes from the dependent joints,
    then the changes of these that go with those of the others, then a number with the sign of the
    determinant of their rows.

    Parameters
    ----------
    model : RobotModel
        With closed loops.
    longest : int or None
        Of `Recorder`.

    Raises
    ------
    ModelError
        If a loop is a slider, or loops are overconstrained, which have no program.
    ProgramTooLong
        If it takes more steps.
    """
    recorder = Recorder(longest)
    bodies = ClosedBodies(recorder, model)
    motion = motion_inputs(recorder, bodies.tree, 2)
    rows = bodies.rows(motion)
    factors = bodies.factors(rows, _WEAK)
    step = factors.solve(bodies.missing(motion))
    along = factors.solve(_combined(rows, motion[1], bodies.independent))
    recorder.outputs('change', [*step, *(-value for value in along), factors.determinant()])
    size = len(step) + len(along) + 1
    return _program(recorder, bodies, 2, NO_ARRAY, Part('change', size, True))


def completing_program(model: Mechanism, K: int) -> RobotProgram:
    """Program of the motion of all joints of the tree.

    It reads this motion, K rows, at positions where the loops are closed; of the dependent joints
    the positions alone. Output 'completed': derivative k of the i-th dependent joint at
    (k - 1) m + i.

    Raises
    ------
    ModelError, ProgramTooLong
        As `closing_program`.
    """
    recorder = Recorder(LONGEST)
    bodies = ClosedBodies(recorder, model)
    motion = motion_inputs(recorder, bodies.tree, K)
    rows = bodies.rows(motion)
    whole = bodies.complete(motion, rows, bodies.factors(rows, _too_weak(max(0, K - 3))))
    found = [row[j] for row in whole[1:] for j in bodies.dependent]
    recorder.outputs('completed', found)
    return _program(recorder, bodies, K, NO_ARRAY, Part('completed', len(found), True))


def closed_effort_program(
    model: Mechanism,
    order: int,
    wrenches: Sequence[Attachment] = (),
    longest: int | None = LONGEST,
) -> RobotProgram:
    """Program of the efforts of a robot with closed loops.

    It reads the motion of all joints of the tree, (order + 3) rows, at positions where the loops
    are closed; of the dependent joints the positions alone. Output 'effort': of the independent
    joints, derivative k of the j-th at k n + j, with friction if all laws are of this package.

    Parameters
    ----------
    model : RobotModel
        With closed loops.
    order : int
        Highest derivative of the efforts.
    wrenches : sequence of Attachment
    longest : int or None
        Of `Recorder`.

    Raises
    ------
    ModelError, ProgramTooLong
        As `closing_program`.
    """
    recorder = Recorder(longest)
    assert model.closure is not None
    given = recorder.inputs('wrench', 6 * (order + 1) * len(wrenches))
    bodies = ClosedBodies(recorder, model)
    motion = motion_inputs(recorder, bodies.tree, order + 3)
    rows = bodies.rows(motion)
    factors = bodies.factors(rows, _too_weak(order))
    whole = bodies.complete(motion, rows, factors)
    rigid = bodies.rigid(whole)
    of_tree, _ = rigid.efforts(rigid.loads(wrenches, given))
    friction = recorded_friction(bodies.tree, of_tree, whole)
    efforts = bodies.of_motors(of_tree, whole, rows, factors)
    recorder.outputs('effort', [value for row in efforts for value in row])
    size = (order + 1) * len(bodies.independent)
    return _program(
        recorder,
        bodies,
        order + 3,
        Part('wrench', len(given), False),
        Part('effort', size, True),
        friction,
    )


def _program(
    recorder: Recorder,
    bodies: ClosedBodies,
    orders: int,
    middle: Part,
    result: Part,
    friction: bool = False,
) -> RobotProgram:
    """Program of the tree with what has been recorded."""
    return RobotProgram(
        recorder.program(),
        bodies.tree.n_joints,
        orders,
        middle,
        result,
        friction or not bodies.tree.friction,
    )


class _Side(NamedTuple):
    """A frame of a loop on one of its bodies: axes, a coordinate a row, and origin there."""

    body: int
    axes: Matrix
    origin: Vector


class _Held(NamedTuple):
    """A loop with the rows that are kept, as moments and forces in the axes of the body of A."""

    loop: Loop
    a: _Side
    b: _Side
    rows: list[tuple[Vector, Vector]]
    signs: list[float]
    """Of each body 1 if it carries B alone, -1 if it carries A alone, else 0."""


class ClosedBodies:
    """Records the rows of loops, the motion that they make, and what they carry.

    Parameters
    ----------
    recorder : Recorder
    model : RobotModel
        With closed loops.

    Raises
    ------
    ModelError
        If a loop is a slider, or loops are overconstrained.
    """

    def __init__(
        self,
        recorder: Recorder,
        model: Mechanism,
    ) -> None:
        closure = model.closure
        assert closure is not None
        sliders = [loop.name for loop in closure.loops if loop.kind == 'slider']
        if sliders:
            raise ModelError(
                f'Loop {sliders[0]!r} slides: there is no compiled or generated code for such '
                'loops. Make the sliding joint one of the tree and close the loop elsewhere.'
            )
        if closure.overconstrained:
            raise ModelError(
                f'The loops of {model.name!r} are overconstrained, and which of their rows count '
                'changes with the position: there is no compiled or generated code for such '
                'loops. Leave out what they have twice, or make a hinge of them a ball.'
            )
        self.recorder, self.tree, self._start = recorder, closure.tree, closure.start
        self._frames = frames_of(self.tree)
        self.independent = [int(j) for j in closure.independent]
        self.dependent = [int(j) for j in closure.dependent]
        kept, first = {int(row) for row in closure.rows}, 0
        self._held = []
        for loop in closure.loops:
            rows = [row for k, row in enumerate(loop.rows, first) if k in kept]
            self._held.append(self._with_rows(loop, rows))
            first += len(loop.rows)
        self._couplings = [c for k, c in enumerate(closure.couplings, first) if k in kept]

    def rigid(self, motion: Rows) -> RigidBodies:
        """Bodies of the tree in a motion."""
        return RigidBodies(self.tree, self._frames, motion)

    def _with_rows(self, loop: Loop, rows: Sequence[Array]) -> _Held:
        a, b = (
            self._side(link, pose)
            for link, pose in zip((loop.link_a, loop.link_b), loop.poses)
        )
        parts = [(a.axes @ vector(row[:3]), a.axes @ vector(row[3:])) for row in rows]
        on_a, on_b = self._carriers(a.body), self._carriers(b.body)
        signs = [float((i in on_b) - (i in on_a)) for i in range(self.tree.n_bodies)]
        return _Held(loop, a, b, parts, signs)

    def _side(self, link: str, pose: Array) -> _Side:
        frames, place = self._frames, self.tree.link(link)
        own = frames.base if place.body == BASE else frames.poses[place.body]
        inside = se3.inverse(own) @ place.pose @ pose
        return _Side(place.body, rotation(inside), position(inside))

    def _carriers(self, body: int) -> set[int]:
        """A body and those that carry it."""
        found = set[int]()
        while body != BASE:
            found.add(body)
            body = int(self.tree.parent[body])
        return found

    # --- Positions and velocities ---------------------------------------------------------------

    def rows(self, motion: Rows) -> Rows:
        """Rows that are kept, an entry for each joint of the tree, at some positions."""
        tree, joints, places = self.tree, self._frames.joints, self._places(motion)
        arms = {}
        for i in range(tree.n_bodies):
            arms[i] = places[i].axes.T.z, places[i].axes @ places[i].p
        found = []
        for held in self._held:
            at_b = places[held.b.body]
            point = at_b.axes @ (at_b.p + held.b.origin)
            for parts in held.rows:
                moment, force = (places[held.a.body].axes @ part for part in parts)
                row: list[Number] = [0.0] * tree.n_joints
                for i, sign in enumerate(held.signs):
                    if sign:
                        axis, origin = arms[i]
                        about = moment + (point - origin).cross(force)
                        value = joints[i].turn * (about @ axis)
                        value = value + joints[i].slide * (force @ axis)
                        j = int(tree.coordinate[i])
                        row[j] = row[j] + sign * float(tree.multiplier[i]) * value
                found.append(row)
        for coupling in self._couplings:
            row = [0.0] * tree.n_joints
            row[tree.joint_names.index(coupling.joint)] = 1.0
            for name, polynomial in coupling.polynomials.items():
                j = tree.joint_names.index(name)
                row[j] = row[j] - _slope(polynomial, motion[0][j])
            found.append(row)
        return found

    def missing(self, motion: Rows) -> list[Number]:
        """What is left open of each row that is kept, exact to second order where it is small."""
        places = self._places(motion)
        found: list[Number] = []
        for held in self._held:
            a, b = held.a, held.b
            R = _rotation(places[a.body], places[b.body])
            there = R @ (places[b.body].p + b.origin)
            p = there - (places[a.body].p + a.origin)
            direction = vector(held.loop.direction)
            turn = (a.axes @ direction).cross(R @ (b.axes @ direction))
            if held.loop.kind == 'weld':
                turn = ZERO
                for own, other in zip(a.axes.T, b.axes.T):
                    turn = turn + own.cross(R @ other) * 0.5
            found += [moment @ turn + force @ p for moment, force in held.rows]
        return found + [self._coupled(coupling, motion[:1]) for coupling in self._couplings]

    def _coupled(self, coupling: Coupling, motion: Rows) -> Number:
        """Highest derivative of the position of a joint less that which its coupling asks for."""
        names, k = self.tree.joint_names, len(motion) - 1
        found: Number = motion[k][names.index(coupling.joint)]
        for name, polynomial in coupling.polynomials.items():
            x = Jet(row[names.index(name)] for row in motion)
            value: Any = 0.0
            for coefficient in reversed(polynomial):
                value = value * x + coefficient
            found = found - derivative(value, k)
        return found

    def factors(self, rows: Rows, weak: float) -> Factors:
        """Factors of the columns of the dependent joints; `weak` as in `Factors`."""
        square = [[row[j] for j in self.dependent] for row in rows]
        size = len(square)
        recorder = self.recorder.apart()
        recorder.outputs('row', [value for row in square for value in row])
        arrays = {
            'motion': np.asarray(self._start)[:, None],
            'row': np.zeros((size * size, 1)),
        }
        Steps(recorder.program()).run(arrays)
        return Factors(self.recorder, square, arrays['row'].reshape(size, size), weak)

    # --- Motion and loads -----------------------------------------------------------------------

    def complete(self, motion: Rows, rows: Rows, factors: Factors) -> Rows:
        """Motion of all joints; of the dependent ones the positions alone need be known.

        Parameters
        ----------
        motion : Rows
            Of all joints of the tree.
        rows, factors
            At these positions.
        """
        whole = [motion[0]]
        for given in motion[1:]:
            row = [0.0 if j in self.dependent else x for j, x in enumerate(given)]
            whole.append(row)
            first = len(whole) == 2
            right = _combined(rows, row, self.independent) if first else self._right(whole)
            for j, value in zip(self.dependent, factors.solve(right)):
                row[j] = -value
        return whole

    def _right(self, whole: Rows) -> list[Number]:
        """Rows of the highest derivatives, those of the dependent joints left out."""
        k = len(whole) - 3
        motions, found = self._motions(whole), list[Number]()
        for held in self._held:
            a, b = motions[held.a.body], motions[held.b.body]
            R, w = self._relative(held, whole, k + 2)
            point = _turned(R, w, b.a + b.B @ held.b.origin, k + 1)
            x = point - (a.a + a.B @ held.a.origin)
            dw, d2x = w.order(k + 1), x.order(k)
            found += [moment @ dw + force @ d2x for moment, force in held.rows]
        return found + [self._coupled(coupling, whole) for coupling in self._couplings]

    def _relative(self, held: _Held, whole: Rows, count: int) -> tuple[Matrix, Vector]:
        """Rotation from the body of B to that of A, and w_r with its derivatives."""
        places, motions = self._places(whole), self._motions(whole)
        R = _rotation(places[held.a.body], places[held.b.body])
        return R, _turning(R, motions[held.b.body].w, motions[held.a.body].w, count)

    def of_motors(self, of_tree: Rows, whole: Rows, rows: Rows, factors: Factors) -> Rows:
        """Efforts of the independent joints that, with what loops carry, are those of the tree.

        Parameters
        ----------
        of_tree : Rows
            Efforts of the joints of the open tree.
        whole : Rows
            Motion of its joints.
        rows, factors
            At the same positions.
        """
        carried, found = Rows(), Rows()
        for k, efforts in enumerate(of_tree):
            lower = self._of_loops([*carried, [0.0] * len(rows)], whole)[k]
            rest = [x - y for x, y in zip(efforts, lower)]
            carried.append(factors.solve_transposed([rest[j] for j in self.dependent]))
            own = [
                sum((row[j] * value for row, value in zip(rows, carried[k])), 0.0)
                for j in self.independent
            ]
            found.append([rest[j] - value for j, value in zip(self.independent, own)])
        return found

    def _of_loops(self, carried: Rows, whole: Rows) -> Rows:
        """Efforts of the tree's joints that belong to what the rows carry."""
        order, n_bodies = len(carried) - 1, self.tree.n_bodies
        loads = dict.fromkeys(range(-1, n_bodies), NO_LOAD)
        first = 0
        for held in self._held:
            weights = [Jet(row) for row in zip(*carried)][first : first + len(held.rows)]
            first += len(held.rows)
            n, f = (_weighted(weights, vectors) for vectors in zip(*held.rows))
            R, w = self._relative(held, whole, order + 1)
            back = R.T
            w_b = _turning(back, w, ZERO, order + 1, -1.0)
            on_b = Load(*(_turned(back, w_b, v, order + 1, -1.0) for v in (n, f)))
            on_a = Load(-n, -f)
            for side, load in ((held.a, on_a), (held.b, on_b)):
                loads[side.body] = loads[side.body] + load.moved(side.origin)
        efforts, _ = self.rigid(whole[: order + 3]).efforts(loads, armature=False)
        self._add_couplings(efforts, [row[first:] for row in carried], whole)
        return efforts

    def _add_couplings(self, efforts: Rows, carried: Rows, whole: Rows) -> None:
        """Add the efforts that belong to what the rows of couplings carry."""
        index, order = self.tree.joint_names.index, len(carried) - 1
        for number, coupling in enumerate(self._couplings):
            values = Jet(row[number] for row in carried)
            j = index(coupling.joint)
            for row, of_row in zip(efforts, carried):
                row[j] = row[j] + of_row[number]
            for name, polynomial in coupling.polynomials.items():
                j = index(name)
                x = Jet(row[j] for row in whole)
                following = derivatives(_slope(polynomial, x) * values, order + 1)
                for row, value in zip(efforts, following):
                    row[j] = row[j] - value

    def _places(self, motion: Rows) -> dict[int, Pose]:
        """Places of all bodies, without derivatives."""
        rest: Rows = [[0.0] * len(motion[0])] * 2
        still = [motion[0], *rest]
        places = self.rigid(still).poses
        return {i: Pose(place.axes, place.p.order(0)) for i, place in places.items()}

    def _motions(self, whole: Rows) -> dict[int, BodyMotion]:
        """Motions of all bodies, with as many derivatives as there are rows."""
        return self.rigid(whole).relative


def _slope(polynomial: Sequence[float], x: Any) -> Any:
    """Derivative of a polynomial, of a number or its series."""
    slope: Any = 0.0
    for power in range(len(polynomial) - 1, 0, -1):
        slope = slope * x + power * polynomial[power]
    return slope


def _combined(rows: Rows, values: Sequence[Number], joints: Sequence[int]) -> list[Number]:
    """Products of rows with the values of some joints."""
    return [sum((row[j] * values[j] for j in joints), 0.0) for row in rows]


def _turned(R: Matrix, w: Vector, v: Vector, count: int, direction: float = 1.0) -> Vector:
    """Vector R v with its derivatives, in axes that turn by w against those before.

    Direction -1: w is the other way round.
    """

    def rates(i: int, v: tuple[Number, ...]) -> Vector:
        return w.order(i).cross(Vector(*v)) * direction

    return Vector(*turned(R @ v, rates, count))


def _weighted(weights: Sequence[Jet], vectors: Sequence[Vector]) -> Vector:
    """Sum of vectors, each with its weight."""
    total = ZERO
    for weight, v in zip(weights, vectors):
        total = total + v * weight
    return total


def _rotation(a: Pose, b: Pose) -> Matrix:
    """Rotation from the axes of a body B to those of a body A."""
    R = a.axes[0].outer(b.axes[0])
    for k in (1, 2):
        R = R + a.axes[k].outer(b.axes[k])
    return R


def _turning(
    R: Matrix, w: Vector, own: Vector, count: int, direction: float = 1.0
) -> Vector:
    """Difference R w - own, whose derivatives are those in axes that turn with it themselves.

    Direction 1: w_r, by which R turns; -1: the turned w_r, against which it does.
    """
    found = vector_of_jets(0)
    for k in range(count):
        x = _turned(R, found, w, k + 1, direction) - own
        found = found.followed(x.order(k))
    return found


class Factors:
    """Factors of a square matrix of numbers that a recorder follows, without what is zero.

    Parameters
    ----------
    recorder : Recorder
    rows : Rows
    values : ndarray
        Of the entries, somewhere: there pivots are chosen, so that few zeros are filled in.
    weak : float
        Pivots that are so much smaller than there make results NaN.
    """

    def __init__(self, recorder: Recorder, rows: Rows, values: Array, weak: float) -> None:
        self._rows, values = [row[:] for row in rows], np.array(values)
        n = len(rows)
        self._steps: list[tuple[int, int, Number, list[tuple[int, Number]]]] = []
        left, columns = [*range(n)], [*range(n)]
        while left:
            i, j = self._pivot(values, left, columns)
            left.remove(i)
            columns.remove(j)
            pivot, size = self._rows[i][j], abs(float(values[i, j]))
            least = (weak * size) ** 2 / SINGULAR
            inverse = pivot * recorder.inverse(pivot * pivot, least)
            below = []
            for r in left:
                factor = self._rows[r][j] * inverse
                if _is_zero(factor):
                    continue
                below.append((r, factor))
                values[r, columns] -= values[r, j] / values[i, j] * values[i, columns]
                for c in columns:
                    self._rows[r][c] = self._rows[r][c] - factor * self._rows[i][c]
            self._steps.append((i, j, inverse, below))

    def _pivot(
        self, values: Array, left: Sequence[int], columns: Sequence[int]
    ) -> tuple[int, int]:
        """Entry that is not small in its column and touches few others: Markowitz's rule."""
        active = np.abs(values[np.ix_(left, columns)])
        used = np.array([[not _is_zero(self._rows[i][j]) for j in columns] for i in left])
        cost = np.outer(used.sum(1) - 1, used.sum(0) - 1).astype(float)
        large = active >= _THRESHOLD * active.max(axis=0)
        cost[~(used & large & (active > 0.0))] = np.inf
        # Of those that touch the fewest the largest one.
        best = np.where(cost == cost.min(), active, -1.0).argmax()
        row, column = np.unravel_index(best, active.shape)
        return left[int(row)], columns[int(column)]

    def determinant(self) -> Number:
        """Determinant of the matrix, but for a sign that is the same everywhere."""
        product: Number = 1.0
        for i, j, _, _ in self._steps:
            product = product * self._rows[i][j]
        return product

    def solve(self, right: Sequence[Number]) -> list[Number]:
        """Solution of the equations with the matrix."""
        b, x = list(right), list[Number](right)
        for i, _, _, below in self._steps:
            for r, factor in below:
                b[r] = b[r] - factor * b[i]
        done = list[int]()
        for i, j, inverse, _ in reversed(self._steps):
            for c in done:
                b[i] = b[i] - self._rows[i][c] * x[c]
            x[j] = b[i] * inverse
            done.append(j)
        return x

    def solve_transposed(self, right: Sequence[Number]) -> list[Number]:
        """Solution of the equations with the transposed matrix."""
        b, y = list(right), list[Number](right)
        for number, (i, j, inverse, _) in enumerate(self._steps):
            y[i] = b[j] * inverse
            for _, c, _, _ in self._steps[number + 1 :]:
                b[c] = b[c] - self._rows[i][c] * y[i]
        for i, _, _, below in reversed(self._steps):
            for r, factor in below:
                y[i] = y[i] - factor * y[r]
        return y


def _is_zero(value: Number) -> bool:
    return isinstance(value, float) and value == 0.0
