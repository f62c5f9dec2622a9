"""Programs of the terms of the equations of motion: mass and Coriolis matrix, weight, energies.

Composite bodies give the momentum, or the forces, that the motion of one joint causes; handed on
to the joints before it, they give a column of the matrix. Source: composite rigid bodies, Walker
and Orin 1982; the Coriolis matrices of Mueller and Kumar 2021, eqs. (22) and (54), which for the
columns of the Jacobian S_j of a joint, and the twist V_j of its body, are

    S_j^T (M ad_{V_k} S_k + N S_k),   N = - sum ad_V^T M,

M and N of the bodies that both joints carry; without skew symmetry, N + N^T in the place of N.
Mass, first and second moments of all bodies behind a joint add up once they are in one frame, and
so do the four sums of `Flow`, which give N.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from hodyn_ros.engine.bodies import Body, JointMotion, Load, Screw
from hodyn_ros.engine.frames import Frames, frames, frames_of, vector
from hodyn_ros.engine.program import (
    CORIOLIS_MATRIX,
    ENERGIES,
    KINETIC_ENERGY,
    LONGEST,
    MASS_MATRIX,
    NO_ARRAY,
    POTENTIAL_ENERGY,
    WEIGHT,
    Part,
    Recorder,
    RobotProgram,
)
from hodyn_ros.engine.vectors import (
    NULL,
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
from hodyn_ros.engine.walker import inward, joint_motions, motion_inputs, outward
from hodyn_ros.lie.jets import derivative, derivatives
from hodyn_ros.model.mechanism import BASE, Mechanism

Loads = dict[str, Load]
"""Loads on a body by their names."""
MOMENTUM = 'momentum'


def term_program(model: Mechanism, name: str, K: int) -> RobotProgram:
    """Program of a term of the equations of motion, see `requests`, and its derivatives.

    Parameters
    ----------
    model : RobotModel
    name : str
        `MASS_MATRIX`, `WEIGHT`, a Coriolis matrix or an energy.
    K : int
        Number of derivatives in the motion, the zeroth included.

    Returns
    -------
    RobotProgram
        Output: 'term', derivative k of entry (i, j) of a matrix at (k n + i) n + j, of the effort
        of joint j at k n + j, of an energy at k.

    Raises
    ------
    ProgramTooLong
        If it takes more steps than `program.LONGEST`.
    """
    # Energies take a number of steps that grows with that of the bodies: there are never too many.
    recorder = Recorder(None if name in ENERGIES else LONGEST)
    # Where masses stay with their bodies, the term depends on what their joints do not move.
    regroup = name in (MASS_MATRIX, WEIGHT, KINETIC_ENERGY)
    constants = frames_of(model) if regroup else frames(model, regroup=False)
    joints = joint_motions(model, constants, motion_inputs(recorder, model, K))
    orders = K if name in (MASS_MATRIX, WEIGHT, POTENTIAL_ENERGY) else K - 1
    if name == KINETIC_ENERGY:
        values = [_kinetic_energy(model, constants, joints)]
    elif name == POTENTIAL_ENERGY:
        values = [_potential_energy(model, constants, joints)]
    elif name == MASS_MATRIX:
        values = _mass_matrix(Tree(model, joints), constants)
    elif name == WEIGHT:
        values = _weight(Tree(model, joints), constants)
    else:
        values = _coriolis_matrix(model, constants, joints, name == CORIOLIS_MATRIX)
    return program_of_terms(recorder, model, K, orders, values)


def program_of_terms(
    recorder: Recorder,
    model: Mechanism,
    K: int,
    orders: int,
    values: Sequence[Number],
    middle: Part = NO_ARRAY,
) -> RobotProgram:
    """Program whose output 'term' has derivative k of the i-th of N values at k N + i."""
    rows = zip(*(derivatives(value, orders) for value in values))
    recorder.outputs('term', [value for row in rows for value in row])
    result = Part('term', orders * len(values), True)
    return RobotProgram(recorder.program(), model.n_joints, K, middle, result)


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
    joints = joint_motions(model, frames, motion_inputs(recorder, model, 1))
    tree = Tree(model, joints, floating)
    values = [derivative(value, 0) for value in _mass_matrix(tree, frames)]
    return [values[k : k + tree.size] for k in range(0, len(values), tree.size)]


def _mass_matrix(tree: Tree, frames: Frames) -> list[Number]:
    """Entries of the mass matrix, row by row."""
    M = tree.carried(composites(frames))
    (values,) = tree.matrices(lambda i, S: {MOMENTUM: M[i] @ S}, tree.mass_matrix())
    return values


def _coriolis_matrix(
    model: Mechanism, frames: Frames, joints: Sequence[JointMotion], skew_symmetric: bool
) -> list[Number]:
    """Entries of a Coriolis matrix, row by row, with one derivative fewer than the joints have."""
    twists = outward(model, (ZERO, ZERO), lambda i, V: joints[i].twist_outward(*V))
    tree = Tree(model, [joint.first(len(joint.q) - 1) for joint in joints])
    flows = {i: Flow.of_body(body, *twists[i]) for i, body in enumerate(frames.bodies)}
    M, N = tree.carried(composites(frames)), tree.carried(flows)
    rates = [bracket(twists[axis.body], axis.screw) for axis in tree.axes]

    def loads(i: int, S: Screw) -> Loads:
        column, row = N[i] @ S, N[i].T @ S
        if not skew_symmetric:
            column = row = column + row
        return {'column': column + M[i] @ rates[i], 'row': row, MOMENTUM: M[i] @ S}

    S = tree.screws
    products = Products([('column', S)], [('row', S), (MOMENTUM, rates)])
    (values,) = tree.matrices(loads, products)
    return values


def _weight(tree: Tree, frames: Frames) -> list[Number]:
    """Efforts that hold the robot against gravity."""
    joints, up = tree.joints, -vector(frames.gravity)
    accelerations = outward(tree.model, up, lambda i, a: joints[i].to_child(a))
    M = tree.carried({i: Mass(m, h) for i, (m, h, _) in enumerate(frames.bodies)})
    efforts: list[Number] = [0.0] * tree.size
    for i, j, multiplier, S in tree.axes:
        load = M[i] @ (ZERO, accelerations[i])
        efforts[j] = efforts[j] + multiplier * power(load, S)
    return efforts


def _kinetic_energy(
    model: Mechanism, frames: Frames, joints: Sequence[JointMotion]
) -> Number:
    """Kinetic energy, with one derivative fewer than the joints have: 1/2 V^T M V of each body."""
    twists = outward(model, (ZERO, ZERO), lambda i, V: joints[i].twist_outward(*V))
    M, twice = composites(frames), 0.0
    for i, (joint, armature) in enumerate(zip(joints, model.armature.tolist())):
        rate = joint.q.rate()
        twice = twice + power(M[i].matrix() @ twists[i], twists[i]) + armature * rate * rate
    return 0.5 * twice


def _potential_energy(
    model: Mechanism, frames: Frames, joints: Sequence[JointMotion]
) -> Number:
    """Potential energy of what the joints carry, by its first moment about the base link."""
    masses = {i: Mass(m, h) for i, (m, h, _) in enumerate(frames.bodies)}
    masses[BASE] = Mass(0.0, ZERO)
    inward(model, masses, lambda i, own: own.inward(joints[i]), to_base=True)
    origin = frames.base[:3, :3].T @ frames.base[:3, 3]
    energy: Number = -vector(frames.gravity) @ masses[BASE].moved(vector(origin)).h
    return energy


# --- Loads and matrices of the joints -----------------------------------------------------------


class Axis(NamedTuple):
    """A degree of freedom of a body: its joint, or one of six of a base that floats."""

    body: int
    row: int
    """Row and column of matrices."""
    multiplier: float
    screw: Screw
    """Twist of the body with the rate 1."""


class Products(NamedTuple):
    """Powers of loads that belong to axes with the screws of those axes and of those before them.

    Each is the name of a load and the screws of all axes.
    """

    columns: Sequence[tuple[str, Sequence[Screw]]]
    """In the column of the axis of the load and the row of that of the screw."""
    rows: Sequence[tuple[str, Sequence[Screw]]]
    """The other way round, between different bodies."""
    diagonal: Iterable[tuple[int, Number]] = ()
    """What joints of bodies, given by their indices, have alone."""


class Tree:
    """Bodies of a robot whose joints move.

    Parameters
    ----------
    model : RobotModel
    joints : sequence of JointMotion
        Of all bodies.
    floating : bool
        Whether the base floats: matrices have six rows and columns more, which come first.

    Attributes
    ----------
    axes : list of Axis
        The joints of all bodies, then those of the base.
    screws : list of Screw
        Of the axes.
    size : int
        Number of rows of matrices.
    """

    def __init__(
        self, model: Mechanism, joints: Sequence[JointMotion], floating: bool = False
    ) -> None:
        self.model: Mechanism = model
        self.joints: Sequence[JointMotion] = joints
        self._floating = floating
        units = np.eye(6) if floating else np.empty((0, 6))
        places = zip(model.coordinate.tolist(), model.multiplier.tolist())
        self.axes: list[Axis] = [
            Axis(i, len(units) + j, multiplier, joints[i].screw)
            for i, (j, multiplier) in enumerate(places)
        ]
        for k, unit in enumerate(units):
            self.axes.append(Axis(BASE, k, 1.0, (vector(unit[:3]), vector(unit[3:]))))
        self.screws: list[Screw] = [axis.screw for axis in self.axes]
        self.size: int = len(units) + model.n_joints

    def carried(self, sums: Mapping[int, Sums]) -> dict[int, Blocks]:
        """Matrices of the bodies that each joint carries, for screws in the frame of its body."""
        totals = dict(sums)
        inward(
            self.model, totals, lambda i, own: own.inward(self.joints[i]), self._floating
        )
        return {i: total.matrix() for i, total in totals.items()}

    def matrices(
        self, loads: Callable[[int, Screw], Loads], *products: Products
    ) -> list[list[Number]]:
        """Entries of matrices, row by row.

        Parameters
        ----------
        loads : callable
            From the body and the screw of an axis the loads on this body that belong to it.
        *products : Products
            Of these loads, handed on from body to body, for each matrix.
        """
        matrices: list[list[Number]] = [[0.0] * self.size**2 for _ in products]

        def add(values: list[Number], row: Axis, column: Axis, value: Number) -> None:
            index = row.row * self.size + column.row
            values[index] = values[index] + row.multiplier * column.multiplier * value

        def add_all(axis: Axis, other: Axis, k: int, passed: Loads) -> None:
            for values, (columns, rows, _) in zip(matrices, products):
                for name, screws in columns:
                    add(values, other, axis, power(passed[name], screws[k]))
                for name, screws in rows if axis.body != other.body else ():
                    add(values, axis, other, power(passed[name], screws[k]))

        for axis in self.axes:
            passed, child = loads(axis.body, axis.screw), axis.body
            path = [*self.model.ancestors(axis.body), BASE]
            for i in path if self._floating else path[:-1]:
                if i != child:
                    joint = self.joints[child]
                    passed = {name: joint.inward(load) for name, load in passed.items()}
                for k, other in enumerate(self.axes):
                    if other.body == i:
                        add_all(axis, other, k, passed)
                child = i
        for values, (_, _, diagonal) in zip(matrices, products):
            for i, value in diagonal:
                add(values, self.axes[i], self.axes[i], value)
        return matrices

    def mass_matrix(self) -> Products:
        """Mass matrix, from loads `MOMENTUM`."""
        products = [(MOMENTUM, self.screws)]
        return Products(products, products, enumerate(self.model.armature.tolist()))


def bracket(V: Screw, S: Screw) -> Screw:
    """Product ad_V S."""
    return V[0].cross(S[0]), V[1].cross(S[0]) + V[0].cross(S[1])


def power(load: Load, S: Screw) -> Number:
    """Power of a load on a body with a twist."""
    power: Number = load.n @ S[0] + load.f @ S[1]
    return power


class Blocks(NamedTuple):
    """Matrix [[A, B], [C, D]] that makes a load of a screw."""

    A: Matrix
    B: Matrix
    C: Matrix
    D: Matrix

    def __matmul__(self, screw: Screw) -> Load:
        e, u = screw
        return Load(self.A @ e + self.B @ u, self.C @ e + self.D @ u)

    @property
    def T(self) -> Blocks:
        """Transpose."""
        return Blocks(self.A.T, self.C.T, self.B.T, self.D.T)


# --- Sums over bodies that move as one ----------------------------------------------------------

Sum = TypeVar('Sum', bound='Sums')


class Sums(ABC):
    """Sums over bodies, such as moments, which add up in one frame; a matrix follows from them."""

    @abstractmethod
    def moved(self: Sum, d: Vector) -> Sum:
        """Sums about an origin from which the present one is at d."""

    @abstractmethod
    def matrix(self) -> Blocks:
        """Matrix that makes a load of the screw of a joint."""

    def __add__(self: Sum, other: Sum) -> Sum:
        """Sums of both groups of bodies."""
        pairs = zip(vars(self).values(), vars(other).values())
        return type(self)(*(x + y for x, y in pairs))

    def inward(self: Sum, joint: JointMotion) -> Sum:
        """Sums about the origin of the parent's frame, in that frame's axes."""
        sums = self.moved(joint.slide) if joint.slides else self
        parts = (_to_parent(joint, part) for part in vars(sums).values())
        return type(self)(*parts).moved(joint.joint.d)


def _to_parent(joint: JointMotion, part: Any) -> Any:
    """Number, vector or matrix in the axes of the parent."""
    if isinstance(part, Matrix):
        return joint.matrix_to_parent(part)
    return joint.to_parent(part) if isinstance(part, Vector) else part


@dataclass(frozen=True)
class Mass(Sums):
    """Mass and first moment; the matrix gives the momentum of a velocity."""

    mass: Number
    h: Vector

    def moved(self, d: Vector) -> Mass:
        """Sums about an origin from which the present one is at d."""
        return Mass(self.mass, self.h + d * self.mass)

    def matrix(self) -> Blocks:
        """Inertia matrix without moments of inertia."""
        mass = plus_unit(NULL, self.mass)
        return Blocks(NULL, cross_matrix(self.h), cross_matrix(-self.h), mass)


@dataclass(frozen=True)
class Composite(Mass):
    """Mass, first and second moments of mass; the matrix gives the momentum of a twist."""

    J: Matrix

    def moved(self, d: Vector) -> Composite:
        """Sums about an origin from which the present one is at d."""
        # d h^T + h d^T + m d d^T = d u^T + u d^T.
        u = self.h + d * (0.5 * self.mass)
        J = symmetric(self.J + d.outer(u) + u.outer(d))
        return Composite(self.mass, self.h + d * self.mass, full_matrix(J))

    def matrix(self) -> Blocks:
        """Inertia matrix."""
        return super().matrix()._replace(A=complement(self.J))


def composites(frames: Frames) -> dict[int, Composite]:
    """Each body alone, and the base."""
    bodies = {**dict(enumerate(frames.bodies)), BASE: frames.base_body}
    return {i: Composite(m, h, full_matrix(J)) for i, (m, h, J) in bodies.items()}


@dataclass(frozen=True)
class Flow(Sums):
    """Sums in which the twist (w, v) of each body weighs its moments; the matrix is N.

    a = sum m w,   b = sum m v,   H = sum h w^T,   E = sum [w] Theta - h v^T + (h . v) 1,

    with Theta = trace(J) 1 - J. With C = trace(H) 1 - H,

    N (e, u) = (E e + b x u - C u,  C e + a x u).
    """

    a: Vector
    b: Vector
    H: Matrix
    E: Matrix

    @classmethod
    def of_body(cls, body: Body, w: Vector, v: Vector) -> Flow:
        """Sums of one body with a twist (w, v) of its frame."""
        J = full_matrix(body.J)
        # [w] Theta = trace(J) [w] - [w] J, column by column.
        E = Matrix(*(column.cross(w) for column in J)).T + cross_matrix(w * trace(J))
        E = plus_unit(E + (-body.h).outer(v), body.h @ v)
        return cls(w * body.mass, v * body.mass, body.h.outer(w), E)

    def moved(self, d: Vector) -> Flow:
        """Sums about an origin from which the present one is at d.

        With [d] = D: E - H D - D H + (2 trace(H) + a . d) D - d b^T + (b . d) 1.
        """
        a, b, H = self.a, self.b, self.H
        E = self.E + cross_matrix(d * (2.0 * trace(H) + a @ d))
        E = plus_unit(E + (-d).outer(b), b @ d)
        # Row r of H times D is r x d, D times column c is d x c.
        E = E + Matrix(*(d.cross(row) for row in H))
        E = (E.T + Matrix(*(column.cross(d) for column in H.T))).T
        return Flow(a, b + d.cross(a), H + d.outer(a), E)

    def matrix(self) -> Blocks:
        """Matrix N."""
        C = complement(self.H)
        B = cross_matrix(self.b) + Matrix(*(-row for row in C))
        return Blocks(self.E, B, C, cross_matrix(self.a))
