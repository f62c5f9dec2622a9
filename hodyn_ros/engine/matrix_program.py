"""Programs of the terms of the equations of motion: mass and Coriolis matrix, weight.

Composite bodies give the momentum, or the forces, that the motion of one joint causes; handed on
to the joints before it, they give a column of the matrix. Source: composite rigid bodies, Walker
and Orin 1982; the Coriolis matrices of Mueller and Kumar 2021, eqs. (22) and (54), which for the
columns of the Jacobian S_j of a joint, and the twist V_j of its body, are

    S_j^T (M ad_{V_k} S_k + N S_k),   N = - sum ad_V^T M,

M and N of the bodies that both joints carry; without skew symmetry, N + N^T in the place of N.
"""

from __future__ import annotations

from collections.abc import Callable

from hodyn_ros.engine import composites, formulation
from hodyn_ros.engine.formulation import AXIS, ZERO, Body, Joint, Load, Vector
from hodyn_ros.engine.frames import Frames, vector
from hodyn_ros.engine.kinematics_program import (
    LONGEST,
    JointMotion,
    joint_motion,
    twist_of_child,
)
from hodyn_ros.engine.program import Number, Program, Recorder
from hodyn_ros.engine.taylor import derivatives
from hodyn_ros.model.robot import BASE, RobotModel

Screw = tuple[Vector, Vector]


def mass_matrix_program(model: RobotModel, frames: Frames, orders: int) -> Program:
    """Program of the mass matrix and its derivatives.

    Parameters
    ----------
    model : RobotModel
    frames : Frames
    orders : int
        K, the number of derivatives in the motion, the zeroth included.

    Returns
    -------
    Program
        Inputs: 'motion', derivative k of independent joint j at k n + j; 'sine' and 'cosine' of
        the positions of the bodies' joints. Output: 'matrix', derivative k of entry (i, j) at
        (k n + i) n + j.
    """
    recorder = Recorder(LONGEST)
    motions = _joint_motions(recorder, model, frames, orders)
    carried = _composites(model, motions, frames.bodies)
    entries = _Entries(model)
    for i, motion in enumerate(motions):
        load = composites.momentum_of_joint(motion.joint, carried[i])

        def both(j: int, load: Load, i: int = i) -> None:
            value = formulation.effort(motions[j].joint, load)[0]
            entries.add(j, i, value)
            if i != j:
                entries.add(i, j, value)

        _hand_on(model, motions, i, load, both)
        entries.add(i, i, float(model.armature[i]))
    entries.write(recorder, orders)
    return recorder.program()


def coriolis_matrix_program(
    model: RobotModel, frames: Frames, orders: int, skew_symmetric: bool
) -> Program:
    """Program of the Coriolis matrix and its derivatives.

    Parameters
    ----------
    model : RobotModel
    frames : Frames
        Without regrouping: the matrix depends on which body a mass is part of.
    orders : int
        K - 1, as many as the matrix has.
    skew_symmetric : bool
        See `dynamics.coriolis_matrix`.

    Returns
    -------
    Program
        As of `mass_matrix_program`.
    """
    recorder = Recorder(LONGEST)
    motions = _joint_motions(recorder, model, frames, orders + 1)
    twists: list[Screw] = []
    for motion, p in zip(motions, model.parent):
        w, v = (ZERO, ZERO) if p == BASE else twists[p]
        twists.append(twist_of_child(motion, w, v))
    motions = [motion.first(orders) for motion in motions]
    carried = _composites(model, motions, frames.bodies)
    flows = [composites.flow_of_body(body, *twist) for body, twist in zip(frames.bodies, twists)]
    for i, p in _from_the_ends(model):
        joint, q, turn = motions[i]
        flow = composites.flow_in_parent(joint, turn, q, flows[i])
        flows[p] = composites.sum_flows(flows[p], flow)
    entries = _Entries(model)
    screws = [_screw(motion.joint) for motion in motions]
    rates = [_bracket(twist, screw) for twist, screw in zip(twists, screws)]
    for i in range(model.n_bodies):
        flow, screw = flows[i], screws[i]
        column = composites.flow_load(flow, *screw)
        row = composites.transposed_flow_load(flow, *screw)
        if not skew_symmetric:
            column = row = formulation.sum_loads(column, row)
        column = formulation.sum_loads(column, composites.momentum(carried[i], *rates[i]))

        def of_column(j: int, load: Load, i: int = i) -> None:
            entries.add(j, i, formulation.effort(motions[j].joint, load)[0])

        def of_row(j: int, load: Load, i: int = i) -> None:
            if i != j:
                entries.add(i, j, _power(load, screws[j]))

        def of_rate(j: int, load: Load, i: int = i) -> None:
            if i != j:
                entries.add(i, j, _power(load, rates[j]))

        momentum = composites.momentum_of_joint(motions[i].joint, carried[i])
        _hand_on(model, motions, i, column, of_column)
        _hand_on(model, motions, i, row, of_row)
        _hand_on(model, motions, i, momentum, of_rate)
    entries.write(recorder, orders)
    return recorder.program()


def weight_program(model: RobotModel, frames: Frames, orders: int) -> Program:
    """Program of the efforts that hold the robot against gravity, and their derivatives.

    Parameters
    ----------
    model : RobotModel
    frames : Frames
    orders : int
        K, the number of derivatives in the motion, the zeroth included.

    Returns
    -------
    Program
        Inputs as of `mass_matrix_program`. Output: 'effort', derivative k of independent joint j
        at k n + j.
    """
    recorder = Recorder(LONGEST)
    motions = _joint_motions(recorder, model, frames, orders)
    up: list[Vector] = []
    for motion, p in zip(motions, model.parent):
        parent = formulation.scaled(-1.0, vector(frames.gravity)) if p == BASE else up[p]
        up.append(formulation.to_child(motion.joint, motion.turn, parent))
    moments = [(body.mass, body.h) for body in frames.bodies]
    for i, p in _from_the_ends(model):
        joint, q, turn = motions[i]
        mass, h = moments[i]
        h = composites.first_moment_in_parent(joint, turn, q, mass, h)
        moments[p] = (moments[p][0] + mass, formulation.plus(moments[p][1], h))
    efforts: list[Number] = [0.0] * model.n_joints
    for i, ((joint, _, _), (mass, h), a) in enumerate(zip(motions, moments, up)):
        value = joint.turn * (h[0] * a[1] - h[1] * a[0]) + joint.slide * (mass * a[2])
        j = int(model.coordinate[i])
        efforts[j] = efforts[j] + float(model.multiplier[i]) * value
    series = [derivatives(value, orders) for value in efforts]
    recorder.outputs('effort', [value for row in zip(*series) for value in row])
    return recorder.program()


class _Entries:
    """Matrix of the independent joints, from entries for the bodies' joints."""

    def __init__(self, model: RobotModel) -> None:
        self._model = model
        n = model.n_joints
        self._entries: list[list[Number]] = [[0.0] * n for _ in range(n)]

    def add(self, i: int, j: int, value: Number) -> None:
        """Add what the joints of the bodies i and j have."""
        model = self._model
        factor = float(model.multiplier[i]) * float(model.multiplier[j])
        row, column = self._entries[model.coordinate[i]], int(model.coordinate[j])
        row[column] = row[column] + factor * value

    def write(self, recorder: Recorder, orders: int) -> None:
        """Make all entries and their derivatives outputs."""
        numbers = [derivatives(value, orders) for row in self._entries for value in row]
        recorder.outputs('matrix', [value for matrix in zip(*numbers) for value in matrix])


def _joint_motions(
    recorder: Recorder, model: RobotModel, frames: Frames, orders: int
) -> list[JointMotion]:
    return [
        joint_motion(recorder, model, joint, i, i, orders) for i, joint in enumerate(frames.joints)
    ]


def _from_the_ends(model: RobotModel) -> list[tuple[int, int]]:
    """Bodies behind another one, and this one, from the ends of the tree on."""
    pairs = [(i, int(p)) for i, p in enumerate(model.parent) if p != BASE]
    return pairs[::-1]


def _composites(
    model: RobotModel, motions: list[JointMotion], bodies: list[Body]
) -> list[Body]:
    """Sum up what each joint carries, in the frame of its body."""
    carried = list(bodies)
    for i, p in _from_the_ends(model):
        joint, q, turn = motions[i]
        body = composites.body_in_parent(joint, turn, q, carried[i])
        carried[p] = composites.sum_bodies(carried[p], body)
    return carried


def _hand_on(
    model: RobotModel,
    motions: list[JointMotion],
    i: int,
    load: Load,
    take: Callable[[int, Load], None],
) -> None:
    """Give a load on body i to all bodies on the way to the base, this one included."""
    while True:
        take(i, load)
        p = int(model.parent[i])
        if p == BASE:
            return
        joint, q, turn = motions[i]
        load = formulation.backward(joint, turn, [q], load)
        i = p


def _screw(joint: Joint) -> Screw:
    """Twist of the joint with the rate 1."""
    return formulation.scaled(joint.turn, AXIS), formulation.scaled(joint.slide, AXIS)


def _bracket(V: Screw, S: Screw) -> Screw:
    """Product ad_V S."""
    w = formulation.plus_cross(ZERO, V[0], S[0])
    v = formulation.plus_cross(ZERO, V[1], S[0])
    return w, formulation.plus_cross(v, V[0], S[1])


def _power(load: Load, S: Screw) -> Number:
    power: Number = formulation.dot(load.n[0], S[0]) + formulation.dot(load.f[0], S[1])
    return power
