"""Programs of one body with its constants as inputs, for loops over the bodies of any robot."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.checks import Array
from hodyn_ros.engine import formulation
from hodyn_ros.engine.formulation import Body, BodyMotion, JointFrame, Load, Turn
from hodyn_ros.engine.program import Number, Recorder, StraightLineProgram
from hodyn_ros.engine.vectors import Vector

if TYPE_CHECKING:
    from hodyn_ros.engine.frames import Frames
    from hodyn_ros.model.robot import RobotModel

SIMPLE, BRANCH, GENERAL = range(3)
"""Kinds of joints: revolute with gamma = 0, revolute, any."""

N_CONSTANTS = 24


class BodyPrograms(NamedTuple):
    """Programs of one body for both directions along the tree.

    Both have the inputs 'constants' (see `constants`), 'sine', 'cosine' and 'position' of the
    joint, 'motion' (entry k the k-th derivative of the coordinate), 'own' and 'parent', the states
    of the body and its parent. `forward` writes 'own'; `backward` adds to the load in 'parent' and
    writes 'effort' (entry k the k-th derivative of the coordinate's effort). With a wrench,
    `forward` reads it from 'wrench', for each derivative (moment, force).
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
    parent = BodyMotion(
        read_vectors(recorder, 'parent', layout.w, order + 2),
        read_vectors(recorder, 'parent', layout.a, orders),
        [
            tuple(read_vectors(recorder, 'parent', layout.B + 9 * k, 3))  # type: ignore[misc]
            for k in range(orders)
        ],
    )
    q = _coordinate(recorder, multiplier, order)
    turn = formulation.turn_of(
        joint, recorder.input('sine', 0), recorder.input('cosine', 0), q
    )
    motion = formulation.forward(joint, turn, q, parent)
    load = formulation.inertial_load(body, motion)
    if loaded:
        applied = formulation.load_of(recorder.inputs('wrench', 6 * orders))
        load = formulation.sum_loads(load, applied)
    write(recorder, 'own', layout.w, motion.w)
    write(recorder, 'own', layout.a, motion.a)
    for k, B in enumerate(motion.B):
        write(recorder, 'own', layout.B + 9 * k, list(B))
    write(recorder, 'own', layout.load, [*load.n, *load.f])
    recorder.output('own', layout.turn, turn.sine)
    recorder.output('own', layout.turn + 1, turn.cosine)
    forward = recorder.program()

    recorder = Recorder()
    joint, body, multiplier, armature = body_inputs(recorder, kind)
    q = _coordinate(recorder, multiplier, order)
    load = read_load(recorder, 'own', layout)
    turn = Turn(
        recorder.input('own', layout.turn),
        recorder.input('own', layout.turn + 1),
        [joint.turn * x for x in q[1:]],
    )
    for k, value in enumerate(formulation.effort(joint, load)):
        value = multiplier * (value + armature * q[k + 2])
        recorder.output('effort', k, recorder.input('effort', k) + value)
    passed = formulation.sum_loads(
        read_load(recorder, 'parent', layout), formulation.backward(joint, turn, q, load)
    )
    write(recorder, 'parent', layout.load, [*passed.n, *passed.f])
    return BodyPrograms(forward, recorder.program())


def constants(model: RobotModel, frames: Frames) -> tuple[Array, NDArray[np.int64]]:
    """Constants of all bodies, and their kinds, as data of the loops.

    Returns
    -------
    rows : ndarray, shape (n_bodies, N_CONSTANTS)
        Joint frame, body, multiplier and armature.
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
    joint = JointFrame(*values[:6], tuple(values[6:9]), *values[9:12])  # type: ignore[call-arg,arg-type]
    body = Body(values[12], tuple(values[13:16]), tuple(values[16:22]))  # type: ignore[arg-type]
    return joint, body, values[22], values[23]


def _coordinate(recorder: Recorder, multiplier: Number, order: int) -> list[Number]:
    """Joint position of the body and its derivatives."""
    q = [multiplier * x for x in recorder.inputs('motion', order + 3)]
    q[0] = recorder.input('position', 0)
    return q


def read_vectors(recorder: Recorder, array: str, start: int, count: int) -> list[Vector]:
    """Vectors that stand one behind the other in an array."""
    return [
        tuple(recorder.input(array, start + 3 * i + j) for j in range(3))  # type: ignore[misc]
        for i in range(count)
    ]


def read_load(recorder: Recorder, array: str, layout: StateLayout) -> Load:
    """Load and its derivatives in the state of a body."""
    vectors = read_vectors(recorder, array, layout.load, 2 * (layout.order + 1))
    return Load(vectors[: layout.order + 1], vectors[layout.order + 1 :])


def write(recorder: Recorder, array: str, start: int, vectors: list[Vector]) -> None:
    """Write vectors one behind the other into an array."""
    for i, vector in enumerate(vectors):
        for j, value in enumerate(vector):
            recorder.output(array, start + 3 * i + j, value)
