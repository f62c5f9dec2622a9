"""Programs of robots with closed loops: what closes them, and the efforts of the motors.

A loop is a path: from the body at its end inwards to one that carries both of its bodies, and
outwards to the body where it starts. The twist of the end relative to the start, in the frame of
the end, is handed on along the path from the start; the rows of the loop are loads on the end
whose power with it must vanish. Without the highest derivatives of the dependent joints, that
power and its derivatives are the right side of the equations for them. One load, handed back along
the path, gives the efforts of the joints on it: of unit loads the rows L themselves, of what the
rows carry L^T times that. One factor of the rows of the dependent joints serves all orders. Its
pivots are chosen where the loops start; where one gets so small that they are no longer good,
results are NaN.

Source: Mueller 2019, "An overview of formulae for the higher-order kinematics of lower-pair
chains", and Featherstone 2008, chapter 8; here in frames along the joint axes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hodyn_ros.engine.bodies import NO_LOAD, JointMotion, Load
from hodyn_ros.engine.efforts import RigidBodies, recorded_friction
from hodyn_ros.engine.frames import frames_of, position, rotation, vector, without_rounding
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
from hodyn_ros.engine.vectors import ZERO, Matrix, Vector
from hodyn_ros.engine.walker import Rows, joint_motions, motion_inputs
from hodyn_ros.errors import ModelError
from hodyn_ros.lie import se3
from hodyn_ros.lie.jets import Jet, derivative
from hodyn_ros.model.loops import LARGEST_ERROR
from hodyn_ros.model.mechanism import BASE, Mechanism
from hodyn_ros.typing import Array

if TYPE_CHECKING:
    from hodyn_ros.model.loops import Loop

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
        If loops are overconstrained, which have no program.
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


def completing_program(model: Mechanism, K: int, velocities: bool = False) -> RobotProgram:
    """Program of the motion of all joints of the tree.

    It reads this motion, K rows, at positions where the loops are closed; of the dependent joints
    the positions alone. Output 'completed': derivative k of the i-th dependent joint at
    (k - 1) m + i. With velocities there follow, of K derivatives, derivative k of the velocity of
    the i-th dependent joint by that of the u-th independent one at (k m + i) n + u.

    Raises
    ------
    ModelError, ProgramTooLong
        As `closing_program`.
    """
    recorder = Recorder(LONGEST)
    bodies = ClosedBodies(recorder, model)
    motion = motion_inputs(recorder, bodies.tree, K)
    rows = bodies.rows(motion)
    # The last of the velocities loses as many digits as one derivative more.
    factors = bodies.factors(rows, _too_weak(max(0, K - 3 + velocities)))
    whole = bodies.complete(motion, factors)
    found = [row[j] for row in whole[1:] for j in bodies.dependent]
    if velocities:
        columns = bodies.velocities(whole, factors)
        found += [x[k][j] for k in range(K) for j in bodies.dependent for x in columns]
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
    whole = bodies.complete(motion, factors)
    rigid = RigidBodies(bodies.tree, frames_of(bodies.tree), whole)
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


_Steps = tuple[tuple[int, float], ...]


class Path(NamedTuple):
    """A loop as a path between the bodies that it holds together.

    Attributes
    ----------
    loop : Loop
    steps : tuple of (int, float)
        Bodies whose joints lie on the path, from its end to its start; 1 for those that carry the
        end, -1 for those that carry the start.
    rows : list of Load
        Of each row that is kept, in the frame of the body at the end.
    start, end : ndarray, shape (4, 4)
        Frames of the loop on these bodies.
    """

    loop: Loop
    steps: _Steps
    rows: list[Load]
    start: Array
    end: Array

    def twist(
        self, joints: Sequence[JointMotion], rates: Sequence[Jet]
    ) -> tuple[Vector, Vector]:
        """Twist of the end relative to the start, in the frame of the body there.

        From rates of the bodies' joints.
        """
        w, v = ZERO, ZERO
        for i, sign in reversed(self.steps):
            joint = joints[i]
            if sign > 0.0:
                w, v = joint.screw_outward(w, v)
            w = w + joint.screw[0] * rates[i] * sign
            v = v + joint.screw[1] * rates[i] * sign
            if sign < 0.0:
                v = v + joint.slide.cross(w)
                w, v = joint.to_parent(w), joint.to_parent(v)
                v = v + joint.joint.d.cross(w)
        return w, v

    def left_open(self, joints: Sequence[JointMotion]) -> list[Number]:
        """What is left open of each row, exact to second order where it is small."""
        p, axes = position(self.start), rotation(self.start).T
        for i, sign in reversed(self.steps):
            joint = joints[i]
            if sign > 0.0:
                p = joint.to_child(p - joint.joint.d) - joint.slide
                axes = Matrix(*map(joint.to_child, axes))
            else:
                p = joint.to_parent(p + joint.slide) + joint.joint.d
                axes = Matrix(*map(joint.to_parent, axes))
        own, turn = rotation(self.end), ZERO
        direction = vector(self.loop.direction)
        if self.loop.kind in ('weld', 'slider'):
            for x, y in zip(axes, own.T):
                turn = turn + x.cross(y) * 0.5
        else:
            turn = (axes.T @ direction).cross(own @ direction)
        arm = position(self.end)
        moved = arm - p
        if self.loop.kind == 'slider':  # rows have the velocity at the end
            moved = moved + turn.cross(moved)
        moved = moved + arm.cross(turn)  # of the origin of the body, as the rows
        return [row.n @ turn + row.f @ moved for row in self.rows]


def _handed_on(
    joints: Sequence[JointMotion], loads: dict[_Steps, Load]
) -> Iterator[tuple[int, Number]]:
    """Bodies on paths, and the efforts of their joints for loads at the ends of the paths.

    Where paths go on alike, their loads are added.
    """
    while loads:
        (i, sign), *others = steps = max(loads, key=len)
        joint, load, rest = joints[i], loads.pop(steps), tuple(others)
        if sign > 0.0:
            yield i, joint.effort(load)
            load = joint.inward(load) if rest else load
        else:
            load = load.moved(-joint.joint.d)
            load = Load(joint.to_child(load.n), joint.to_child(load.f))
            if joint.slides:
                load = load.moved(-joint.slide)
            yield i, -joint.effort(load)
        if rest:
            loads[rest] = loads[rest] + load if rest in loads else load


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
        If loops are overconstrained.
    """

    def __init__(self, recorder: Recorder, model: Mechanism) -> None:
        closure = model.closure
        assert closure is not None
        if closure.overconstrained:
            raise ModelError(
                f'The loops of {model.name!r} are overconstrained, and which of their rows count '
                'changes with the position: there is no compiled or generated code for such '
                'loops. Leave out what they have twice, or make a hinge of them a ball.'
            )
        self.recorder: Recorder = recorder
        self.tree: Mechanism = closure.tree
        self._start = closure.start
        self._frames = frames_of(self.tree)
        self.independent: list[int] = [int(j) for j in closure.independent]
        self.dependent: list[int] = [int(j) for j in closure.dependent]
        kept, first = {int(row) for row in closure.rows}, 0
        links = [link for loop in closure.loops for link in (loop.link_a, loop.link_b)]
        self._ends = Counter(self.tree.link(link).body for link in links)
        self._paths = []
        for loop in closure.loops:
            rows = [row for k, row in enumerate(loop.rows, first) if k in kept]
            self._paths.append(self._path(loop, rows))
            first += len(loop.rows)
        self._couplings = [c for k, c in enumerate(closure.couplings, first) if k in kept]

    def _path(self, loop: Loop, rows: Sequence[Array]) -> Path:
        # Paths that start at the same body have their first steps in common.
        sides = zip((loop.link_a, loop.link_b), loop.poses)
        (start, first), (end, last) = sorted(
            (self._side(link, pose) for link, pose in sides),
            key=lambda side: -self._ends[side[0]],
        )
        inwards = [*self.tree.ancestors(end)]
        outwards = [*self.tree.ancestors(start)][::-1]
        steps = [(i, 1.0) for i in inwards if i not in outwards]
        steps += [(i, -1.0) for i in outwards if i not in inwards]
        loads = []
        for row in rows:
            W = row @ se3.Ad(se3.inverse(last))
            W = without_rounding(W, float(np.abs(W).max()))
            loads.append(Load(vector(W[:3]), vector(W[3:])))
        return Path(loop, tuple(steps), loads, first, last)

    def _side(self, link: str, pose: Array) -> tuple[int, Array]:
        frames, place = self._frames, self.tree.link(link)
        own = frames.base if place.body == BASE else frames.poses[place.body]
        return place.body, se3.inverse(own) @ place.pose @ pose

    def _moved(self, motion: Rows) -> tuple[list[JointMotion], dict[str, Jet]]:
        """Motions of the bodies' joints, and of the joints of the tree by their names."""
        names = self.tree.joint_names
        by_name = {name: Jet(row[j] for row in motion) for j, name in enumerate(names)}
        return joint_motions(self.tree, self._frames, motion), by_name

    # --- Rows ------------------------------------------------------------------------------------

    def rows(self, motion: Rows) -> Rows:
        """Rows that are kept, an entry for each joint of the tree, at some positions."""
        count = len(self.dependent)
        units = np.eye(count).tolist()
        found = [self._carried(motion[:1], [[x] for x in unit]) for unit in units]
        return [[derivative(value, 0) for value in row] for row in found]

    def _carried(self, motion: Rows, carried: Sequence[Sequence[Number]]) -> list[Number]:
        """Efforts of the tree's joints, L^T times what the rows carry; both with derivatives."""
        joints, by_name = self._moved(motion)
        efforts: list[Number] = [0.0] * self.tree.n_joints
        values, loads = iter([Jet(x) for x in carried]), dict[_Steps, Load]()
        for path in self._paths:
            load = loads.get(path.steps, NO_LOAD)
            for row, value in zip(path.rows, values):
                load = load + Load(row.n * value, row.f * value)
            loads[path.steps] = load
        for i, effort in _handed_on(joints, loads):
            j = int(self.tree.coordinate[i])
            efforts[j] = efforts[j] + effort * float(self.tree.multiplier[i])
        for coupling, value in zip(self._couplings, values):
            for name, slope in coupling.slopes(by_name).items():
                j = self.tree.joint_names.index(name)
                efforts[j] = efforts[j] + slope * value
        return efforts

    def missing(self, motion: Rows) -> list[Number]:
        """What is left open of each row that is kept, exact to second order where it is small."""
        joints, by_name = self._moved(motion[:1])
        found = [value for path in self._paths for value in path.left_open(joints)]
        return [
            derivative(value, 0)
            for value in (*found, *(c.left_open(by_name) for c in self._couplings))
        ]

    def factors(self, rows: Rows, weak: float) -> SparseFactors:
        """Factors of the columns of the dependent joints; `weak` as in `SparseFactors`."""
        square = [[row[j] for j in self.dependent] for row in rows]
        size = len(square)
        recorder = self.recorder.apart()
        recorder.outputs('row', [value for row in square for value in row])
        arrays = {
            'motion': np.asarray(self._start)[:, None],
            'row': np.zeros((size * size, 1)),
        }
        Steps(recorder.program()).run(arrays)
        return SparseFactors(self.recorder, square, arrays['row'].reshape(size, size), weak)

    # --- Motion and loads -----------------------------------------------------------------------

    def complete(self, motion: Rows, factors: SparseFactors) -> Rows:
        """Motion of all joints; of the dependent ones the positions alone need be known.

        Parameters
        ----------
        motion : Rows
            Of all joints of the tree.
        factors : SparseFactors
            At these positions.
        """
        whole = [motion[0]]
        for given in motion[1:]:
            row = [0.0 if j in self.dependent else x for j, x in enumerate(given)]
            whole.append(row)
            right = self._times(whole[:-1], whole[1:])
            for j, value in zip(self.dependent, factors.solve(right)):
                row[j] = -value
        return whole

    def velocities(self, whole: Rows, factors: SparseFactors) -> list[Rows]:
        """Of each independent joint: velocities of all joints for 1 of its own, with derivatives.

        As many as the motion of all joints has, value included.
        """
        found = []
        for i in self.independent:
            rates = Rows()
            for k in range(len(whole)):
                row: list[Number] = [0.0] * self.tree.n_joints
                row[i] = float(k == 0)
                rates.append(row)
                right = self._times(whole[: k + 1], rates)
                for j, value in zip(self.dependent, factors.solve(right)):
                    row[j] = -value
            found.append(rates)
        return found

    def _times(self, motion: Rows, rates: Rows) -> list[Number]:
        """L times rates of all joints, derivative k, from k + 1 rows of motion and rates."""
        joints, by_name = self._moved(motion)
        tree, names = self.tree, self.tree.joint_names
        of_joints = [Jet(row[j] for row in rates) for j in range(tree.n_joints)]
        of_bodies = [
            of_joints[int(j)] * float(a) for j, a in zip(tree.coordinate, tree.multiplier)
        ]
        found: list[Number] = []
        for path in self._paths:
            w, v = path.twist(joints, of_bodies)
            found += [load.n @ w + load.f @ v for load in path.rows]
        for coupling in self._couplings:
            slopes = coupling.slopes(by_name).items()
            found.append(sum((of_joints[names.index(x)] * y for x, y in slopes), 0.0))
        return [derivative(value, len(rates) - 1) for value in found]

    def of_motors(
        self, of_tree: Rows, whole: Rows, rows: Rows, factors: SparseFactors
    ) -> Rows:
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
        carried, found = [list[Number]() for _ in rows], Rows()
        for k, efforts in enumerate(of_tree):
            for of_row in carried:
                of_row.append(0.0)
            lower = self._carried(whole[: k + 1], carried)
            rest = [x - derivative(y, k) for x, y in zip(efforts, lower)]
            values = factors.solve_transposed([rest[j] for j in self.dependent])
            for of_row, value in zip(carried, values):
                of_row[k] = value
            own = [
                sum((row[j] * value for row, value in zip(rows, values)), 0.0)
                for j in self.independent
            ]
            found.append([rest[j] - value for j, value in zip(self.independent, own)])
        return found


def _combined(rows: Rows, values: Sequence[Number], joints: Sequence[int]) -> list[Number]:
    """Products of rows with the values of some joints."""
    return [sum((row[j] * values[j] for j in joints), 0.0) for row in rows]


class SparseFactors:
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
