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

    F_0: S_j^T (B D + M E + co(W) S),   S^T (B D_j + M E_j),
    F_1: S_j^T (B S + 2 M D),           S^T (B S_j + 2 M D_j).

All is in the frame of the joint. W includes wrenches that are fixed in their links. With L the
sum of the others, about points that are fixed in the base, and p = sum f r^T of the forces f of
those hybrid wrenches whose points r move along, F_0 has besides, with
P = [[p - trace(p) 1, 0], [[f], 0]],

    S_j^T P^T S,   S_j^T (co(L) + P^T) S,   L without the forces of hybrid wrenches.

Source: Singh, Russell and Wensing 2022, "Efficient analytical derivatives of rigid-body dynamics
using spatial vector algebra", with D and E for the derivatives of Psi, and B for twice theirs.

Those by the parameters are the regressor: the efforts that a body makes with one parameter 1 and
all others 0. The parameters are those of `RobotModel.inertial_parameters`. Source: Atkeson, An and
Hollerbach 1986, see `dynamics.regressor`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from hodyn_ros.engine.bodies import NO_LOAD, Body, Load, Screw, acceleration_matrix
from hodyn_ros.engine.efforts import RigidBodies
from hodyn_ros.engine.frames import frames_of, position, rotation
from hodyn_ros.engine.joint_friction import friction_slopes
from hodyn_ros.engine.program import Attachment, Part, Recorder, RobotProgram
from hodyn_ros.engine.terms import (
    MOMENTUM,
    Blocks,
    Loads,
    Products,
    Sums,
    Tree,
    bracket,
    composites,
    power,
    program_of_terms,
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
)
from hodyn_ros.engine.walker import Rows, inward, motion_inputs, outward
from hodyn_ros.lie import se3
from hodyn_ros.lie.jets import Jet, derivative
from hodyn_ros.model.mechanism import Mechanism


def partials_program(
    model: Mechanism, K: int, wrenches: Sequence[Attachment] = ()
) -> RobotProgram:
    """Program of the partial derivatives of the efforts and of K - 3 time derivatives of them.

    Inputs: 'motion', and wrenches as `effort_program` has them. Output: 'term', that of derivative
    m of effort i by derivative k of position j at ((m n + i) K + k) n + j. A `ModelError` is
    raised for friction laws not of this package.
    """
    recorder, n, orders = Recorder(), model.n_joints, K - 2
    motion = motion_inputs(recorder, model, K)
    given = recorder.inputs('wrench', 6 * orders * len(wrenches))
    F = _by_the_state(model, motion, wrenches, given)
    entries = [*zip(*F)]

    def by_motion(i: int, k: int, j: int) -> Jet:
        """Derivatives of all orders m of effort i by derivative k of position j."""
        values: list[Number] = [0.0] * orders
        for order, F_ij in enumerate(entries[i * n + j]):
            for m in range(orders):
                if 0 <= k - order <= m:
                    part = derivative(F_ij, m - k + order)
                    values[m] = values[m] + float(comb(m, k - order)) * part
        return Jet(values)

    values = [by_motion(*index) for index in np.ndindex(n, K, n)]
    middle = Part('wrench', len(given), False)
    return program_of_terms(recorder, model, K, orders, values, middle)


def _by_the_state(
    model: Mechanism, motion: Rows, wrenches: Sequence[Attachment], given: Sequence[Number]
) -> list[list[Number]]:
    """Entries of F_0, F_1 and F_2, with those of friction."""
    frames, orders = frames_of(model), len(motion) - 2
    robot = RigidBodies(model, frames, motion)
    tree = Tree(model, [joint.first(orders) for joint in robot.joints])
    V = outward(model, (ZERO, ZERO), lambda i, V: robot.joints[i].twist_outward(*V))
    V2 = {i: (w * 2.0, v * 2.0) for i, (w, v) in V.items()}
    S = tree.screws
    D, D2 = ([bracket(twists[i], s) for i, s in enumerate(S)] for twists in (V, V2))
    E = []
    for i, (e, u) in enumerate(S):
        # In the acceleration a of the origin and B = w w^T - w^2 1 + [dw] of the motion.
        _, a, B = robot.relative[i]
        E.append((B @ e, B @ u + a.cross(e) + V2[i][1].cross(D[i][0])))
    momenta = {i: _momenta(body, *V2[i]) for i, body in enumerate(frames.bodies)}
    loads, fixed, points = _loads(robot, wrenches, given)
    for sums in (loads, fixed):
        inward(model, sums, lambda i, load: tree.joints[i].inward(load))
    M, P = tree.carried(composites(frames)), tree.carried(points)
    N = tree.carried(momenta)

    def starts(i: int, S: Screw) -> Loads:
        turned, of_points = co(loads[i]) @ S, P[i].T @ S
        return {
            MOMENTUM: M[i] @ S,
            'row': N[i].T @ S,
            'column': N[i] @ D[i] + M[i] @ E[i] + turned + of_points,
            'column of rate': N[i] @ S + M[i] @ D2[i],
            'turning': co(fixed[i]) @ S + of_points,
        }

    slopes = friction_slopes(model, motion[1 : orders + 1])
    return tree.matrices(
        starts,
        Products([('column', S)], [('row', D), (MOMENTUM, E), ('turning', S)]),
        Products([('column of rate', S)], [('row', S), (MOMENTUM, D2)], slopes),
        tree.mass_matrix(),
    )


def _loads(
    robot: RigidBodies,
    wrenches: Sequence[Attachment],
    given: Sequence[Number],
) -> tuple[dict[int, Load], dict[int, Load], dict[int, PointVectors]]:
    """Loads that move with the bodies, the other ones, and minus the forces at points."""
    loads = robot.loads()
    fixed, points = dict.fromkeys(loads, NO_LOAD), dict.fromkeys(loads, PointVectors())
    size = len(given) // max(1, len(wrenches))
    for number, wrench in enumerate(wrenches):
        i, load, r = robot.applied(wrench, given[number * size :][:size])
        if wrench.expressed_in == 'hybrid':
            points[i] = points[i] + PointVectors(-load.f, (-load.f).outer(r))
            load = Load(load.n, ZERO)
        sums = loads if wrench.expressed_in == 'body' else fixed
        sums[i] = sums[i] + load.moved(r)
    return loads, fixed, points


@dataclass(frozen=True)
class PointVectors(Sums):
    """Sums over vectors f at points r: f and P = sum f r^T; the matrix is that B of momenta."""

    f: Vector = ZERO
    P: Matrix = NULL

    def moved(self, d: Vector) -> PointVectors:
        """Sums about an origin from which the present one is at d."""
        return PointVectors(self.f, self.P + self.f.outer(d))

    def matrix(self) -> Blocks:
        """Matrix B."""
        return Blocks(complement(self.P), NULL, cross_matrix(-self.f), NULL)


def _momenta(body: Body, w: Vector, v: Vector) -> PointVectors:
    """Momenta of the mass points of a body with a twist (w, v)."""
    P = Matrix(*(w.cross(column) for column in full_matrix(body.J))).T
    return PointVectors(v * body.mass + w.cross(body.h), P + v.outer(body.h))


def co(load: Load) -> Blocks:
    """Matrix -ad_S^T L as it acts on S: the change of a load that moves along with a screw."""
    n, f = (cross_matrix(-v) for v in load)
    return Blocks(n, f, f, NULL)


# --- Regressor -----------------------------------------------------------------------------------


def regressor_program(model: Mechanism, K: int) -> RobotProgram:
    """Program of the regressor and its derivatives.

    Output: 'term', derivative k of what parameter l of body i adds to the effort of joint j at
    ((k n + j) n_bodies + i) 10 + l.
    """
    recorder, frames = Recorder(), frames_of(model)
    values: list[Number] = [0.0] * (model.n_joints * 10 * model.n_bodies)
    robot = RigidBodies(model, frames, motion_inputs(recorder, model, K))
    joints = [joint.first(K - 2) for joint in robot.joints]

    def outwards(i: int, parent: dict[int, Screw]) -> dict[int, Screw]:
        passed = {j: joints[i].screw_outward(*screw) for j, screw in parent.items()}
        return {**passed, i: joints[i].screw}

    jacobians = outward(model, dict[int, Screw](), outwards)
    for i, pose in enumerate(frames.poses):
        # In the axes of the model's frame, about its origin, whose position is d.
        R, d = rotation(pose), position(se3.inverse(pose))
        w, a, B = robot.relative[i]
        w, a = R @ w, R @ (a + B @ d)
        B, loads = acceleration_matrix(w), []
        for mass, hx, hy, hz, *inertia in np.eye(10).tolist():
            h, theta = Vector(hx, hy, hz), full_matrix((*inertia,))
            n = theta @ w.rate() + w.cross(theta @ w) + h.cross(a)
            loads.append(Load(n, B @ h + a * mass))
        for j, (e, u) in jacobians[i].items():
            screw = R @ e, R @ (u + e.cross(d))
            first = 10 * (int(model.coordinate[j]) * model.n_bodies + i)
            for index, load in enumerate(loads, first):
                effort = float(model.multiplier[j]) * power(load, screw)
                values[index] = values[index] + effort
    return program_of_terms(recorder, model, K, K - 2, values)
