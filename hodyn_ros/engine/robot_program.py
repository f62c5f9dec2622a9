"""Programs: of one robot, its constants folded in, and of one body, for loops over any robot."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from hodyn_ros.engine import formulation
from hodyn_ros.engine.formulation import Body, Joint, Load, Motion, Passage
from hodyn_ros.engine.frames import Frames
from hodyn_ros.engine.program import Number, Program, Recorder, Scalar
from hodyn_ros.model.robot import BASE, RobotModel


def robot_program(
    model: RobotModel, frames: Frames, order: int, loaded: Collection[int] = ()
) -> Program:
    """Program of a robot's inverse dynamics.

    Parameters
    ----------
    model : RobotModel
    frames : Frames
    order : int
        0, 1 or 2.
    loaded : collection of int
        Bodies that carry a wrench.

    Returns
    -------
    Program
        Inputs: 'motion', derivative k of independent joint j at k n + j; 'sine' and 'cosine' of
        the positions of the bodies' joints; 'wrench', for the l-th loaded body in ascending order
        at (l (order + 1) + k) 6 the k-th derivative of (moment, force) in its frame. Output:
        'effort', derivative k of independent joint j at k n + j.
    """
    recorder = Recorder()
    n = model.n_joints
    q = [
        [
            float(model.multiplier[i]) * recorder.input('motion', k * n + int(model.coordinate[i]))
            for k in range(order + 3)
        ]
        for i in range(model.n_bodies)
    ]
    for i in range(model.n_bodies):
        q[i][0] = q[i][0] + float(model.offset[i])
    base = base_motion(tuple(-float(g) for g in frames.gravity), order)
    motions: list[Motion] = []
    passages: list[Passage] = []
    loads: list[Load] = []
    slots = {body: slot for slot, body in enumerate(sorted(loaded))}
    for i in range(model.n_bodies):
        p = int(model.parent[i])
        motion, passage = formulation.forward(
            frames.joints[i],
            recorder.input('sine', i),
            recorder.input('cosine', i),
            q[i],
            base if p == BASE else motions[p],
            order,
        )
        load = formulation.inertial_load(frames.bodies[i], motion, order)
        if i in slots:
            values = [
                recorder.input('wrench', slots[i] * 6 * (order + 1) + j)
                for j in range(6 * (order + 1))
            ]
            applied = formulation.applied_load(wrench_load(values, order), motion, order)
            load = formulation.sum_loads(load, applied)
        motions.append(motion)
        passages.append(passage)
        loads.append(load)
    efforts: list[list[Number]] = [[0.0] * n for _ in range(order + 1)]
    for i in reversed(range(model.n_bodies)):
        own = formulation.effort(frames.joints[i], loads[i], passages[i], order)
        armature, multiplier = float(model.armature[i]), float(model.multiplier[i])
        for k in range(order + 1):
            value = own[k] + armature * q[i][k + 2]
            j = int(model.coordinate[i])
            efforts[k][j] = efforts[k][j] + multiplier * value
        p = int(model.parent[i])
        if p != BASE:
            passed = formulation.backward(frames.joints[i], loads[i], passages[i], order)
            loads[p] = formulation.sum_loads(loads[p], passed)
    recorder.outputs('effort', [value for row in efforts for value in row])
    return recorder.program()


def base_motion(p: tuple[Number, Number, Number], order: int) -> Motion:
    """Motion of a base at rest whose acceleration p stands for gravity."""
    zero = formulation.ZERO
    return Motion(
        [zero] * (order + 2), [p, *[zero] * order], [(zero, zero, zero)] * (order + 1)
    )


def wrench_load(values: list[Number], order: int) -> Load:
    """Load from numbers: for each derivative moment and force."""
    rows = [values[6 * k : 6 * k + 6] for k in range(order + 1)]
    return Load(
        [(row[0], row[1], row[2]) for row in rows], [(row[3], row[4], row[5]) for row in rows]
    )
