"""Programs of one robot: all constants folded in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.engine import formulation
from hodyn_ros.engine.formulation import Load, Motion, Place, Turn, Vector
from hodyn_ros.engine.frames import Frames, position, vector, without_rounding
from hodyn_ros.engine.program import Number, Program, Recorder
from hodyn_ros.lie import se3
from hodyn_ros.model.robot import BASE, RobotModel

Array = NDArray[np.float64]


class Attachment(NamedTuple):
    """A wrench that a program takes: its link and the expression of `dynamics.Wrench`."""

    link: str
    expressed_in: str


class Part(NamedTuple):
    """An array of a program: its name and the numbers that a sample has in it."""

    array: str
    size: int
    written: bool


NO_ARRAY = Part('nothing', 0, False)


class RobotProgram(NamedTuple):
    """A program of one robot, all constants folded in, and the arrays that it works on.

    Attributes
    ----------
    program : Program
        Reads 'motion', derivative k of independent joint j at k n + j, and 'sine' and 'cosine' of
        the positions of some bodies' joints.
    bodies : sequence of int
        These bodies.
    orders : int
        Number of derivatives in the motion, the zeroth included.
    middle, result : Part
        The other arrays, see `blocks.EVALUATE`.
    arguments : Program
        From 'motion', what the program needs functions of, see `effort_programs`: 'step' for its
        inputs 'shape' and 'slope', 'velocity' for 'direction'.
    friction : bool
        Whether the friction of the robot, if it has any, is included.
    """

    program: Program
    bodies: Sequence[int]
    orders: int
    middle: Part
    result: Part
    arguments: Program = Program((), ())
    friction: bool = True

    @property
    def n_steps(self) -> int:
        """Number of steps among the arguments."""
        return sum(output.array == 'step' for output in self.arguments.outputs)

    @property
    def n_velocities(self) -> int:
        """Number of velocities among the arguments."""
        return sum(output.array == 'velocity' for output in self.arguments.outputs)


def robot_program(
    model: RobotModel, frames: Frames, order: int, wrenches: Sequence[Attachment] = ()
) -> Program:
    """Program of a robot's inverse dynamics.

    Parameters
    ----------
    model : RobotModel
    frames : Frames
    order : int
        0, 1 or 2.
    wrenches : sequence of Attachment

    Returns
    -------
    Program
        Inputs: 'motion', derivative k of independent joint j at k n + j; 'sine' and 'cosine' of
        the positions of the bodies' joints; 'wrench', for the w-th wrench at 6 (w (order + 1) + k)
        the k-th derivative of the moment and force that the link exerts on the environment.
        Output: 'effort', derivative k of independent joint j at k n + j.
    """
    recorder = Recorder()
    n = model.n_joints
    placed = any(wrench.expressed_in != 'body' for wrench in wrenches)
    q = [
        [
            float(model.multiplier[i]) * recorder.input('motion', k * n + int(model.coordinate[i]))
            for k in range(order + 3)
        ]
        for i in range(model.n_bodies)
    ]
    for i in range(model.n_bodies):
        q[i][0] = q[i][0] + float(model.offset[i])
    base = base_motion(formulation.scaled(-1.0, vector(frames.gravity)), order)
    base_place = Place(
        tuple(vector(axis) for axis in frames.base[:3, :3]),  # type: ignore[arg-type]
        [vector(frames.base[:3, :3].T @ frames.base[:3, 3]), *[formulation.ZERO] * order],
    )
    motions: list[Motion] = []
    places: list[Place] = []
    turns: list[Turn] = []
    loads: list[Load] = []
    for i in range(model.n_bodies):
        p = int(model.parent[i])
        joint = frames.joints[i]
        turn = formulation.turn_of(
            joint, recorder.input('sine', i), recorder.input('cosine', i), q[i]
        )
        motion = formulation.forward(joint, turn, q[i], base if p == BASE else motions[p])
        motions.append(motion)
        turns.append(turn)
        if placed:
            parent = base_place if p == BASE else places[p]
            places.append(formulation.forward_place(joint, turn, q[i], parent))
        loads.append(formulation.inertial_load(frames.bodies[i], motion))
    for w, wrench in enumerate(wrenches):
        start = 6 * w * (order + 1)
        values = [recorder.input('wrench', start + j) for j in range(6 * (order + 1))]
        i, pose = model.link(wrench.link)
        if i == BASE:
            continue
        pose = se3.inverse(frames.poses[i]) @ pose
        if wrench.expressed_in == 'body':
            applied = _load_in_link_axes(wrench_load(values, order), pose)
        else:
            applied = formulation.load_from_base(
                wrench_load(values, order), places[i], motions[i]
            )
            # From the link's origin or the base's; the arm leads there from the body's.
            arm = [formulation.scaled(-1.0, p) for p in places[i].p]
            if wrench.expressed_in == 'hybrid':
                arm = [position(pose)]
            applied = formulation.load_about_origin(applied, arm)
        loads[i] = formulation.sum_loads(loads[i], applied)
    efforts: list[list[Number]] = [[0.0] * n for _ in range(order + 1)]
    for i in reversed(range(model.n_bodies)):
        own = formulation.effort(frames.joints[i], loads[i])
        armature, multiplier = float(model.armature[i]), float(model.multiplier[i])
        for k in range(order + 1):
            value = own[k] + armature * q[i][k + 2]
            j = int(model.coordinate[i])
            efforts[k][j] = efforts[k][j] + multiplier * value
        p = int(model.parent[i])
        if p != BASE:
            passed = formulation.backward(frames.joints[i], turns[i], q[i], loads[i])
            loads[p] = formulation.sum_loads(loads[p], passed)
    recorder.outputs('effort', [value for row in efforts for value in row])
    return recorder.program()


def _load_in_link_axes(values: Load, pose: Array) -> Load:
    """Load of a wrench in the axes of a link that has a pose in the body's frame."""
    axes = [vector(without_rounding(axis, 1.0)) for axis in pose[:3, :3]]

    def turned(v: Vector) -> Vector:
        x, y, z = (formulation.dot(axis, v) for axis in axes)
        return (x, y, z)

    load = Load([turned(v) for v in values.n], [turned(v) for v in values.f])
    return formulation.load_about_origin(load, [position(pose)])


def base_motion(p: tuple[Number, Number, Number], order: int) -> Motion:
    """Motion of a base at rest whose acceleration p stands for gravity."""
    zero = formulation.ZERO
    return Motion(
        [zero] * (order + 2), [p, *[zero] * order], [(zero, zero, zero)] * (order + 1)
    )


def wrench_load(values: Sequence[Number], order: int) -> Load:
    """Load from numbers: for each derivative moment and force."""
    rows = [values[6 * k : 6 * k + 6] for k in range(order + 1)]
    return Load(
        [(row[0], row[1], row[2]) for row in rows], [(row[3], row[4], row[5]) for row in rows]
    )
