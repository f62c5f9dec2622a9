"""Programs of the joint efforts of one robot, with wrenches and friction, constants folded in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hodyn_ros.checks import Array
from hodyn_ros.engine import bodies as formulation
from hodyn_ros.engine.bodies import (
    NO_LOAD,
    BodyMotion,
    JointFrame,
    JointMotion,
    Load,
    Place,
    Turn,
)
from hodyn_ros.engine.frames import Frames, frames_of, vector, without_rounding
from hodyn_ros.engine.frames import position as frame_position
from hodyn_ros.engine.program import (
    Attachment,
    Part,
    Recorder,
    RobotProgram,
)
from hodyn_ros.engine.vectors import Number, Vector, dot, scaled
from hodyn_ros.errors import ModelError
from hodyn_ros.lie import se3
from hodyn_ros.lie.jets import Jet, constant
from hodyn_ros.model.friction import add_friction
from hodyn_ros.model.mechanism import BASE, Mechanism


def effort_program(
    model: Mechanism,
    order: int,
    wrenches: Sequence[Attachment] = (),
    friction: bool = True,
) -> RobotProgram:
    """Program of a robot's efforts.

    Parameters
    ----------
    model : Mechanism
    order : int
        Highest derivative of the efforts.
    wrenches : sequence of Attachment
    friction : bool
        Whether that of the joints is included, if all laws are of this package.

    Returns
    -------
    RobotProgram
        Input 'wrench': of the w-th wrench, at 6 (w (order + 1) + k), the k-th derivative of moment
        and force. Output 'effort': derivative k of independent joint j at k n + j.
    """
    recorder = Recorder()
    motion = motion_inputs(recorder, model, order + 3)
    given = recorder.inputs('wrench', 6 * (order + 1) * len(wrenches))
    rigid = RigidBodies(recorder, model, wrenches, given)
    efforts, _ = rigid.efforts(motion, order)
    friction = friction and recorded_friction(model, efforts, motion)
    recorder.outputs('effort', [value for row in efforts for value in row])
    return RobotProgram(
        recorder.program(),
        model.n_joints,
        order + 3,
        Part('wrench', len(given), False),
        Part('effort', model.n_joints * (order + 1), True),
        friction,
    )


def recorded_friction(model: Mechanism, efforts: Rows, motion: Rows) -> bool:
    """Whether the friction of the joints is added to efforts; not if a law is a user's own."""
    try:
        add_friction(model, efforts, motion[1:])
    except ModelError:
        return False
    return True


Rows = list[list[Number]]
"""For each derivative what all independent joints have."""


def motion_inputs(recorder: Recorder, model: Mechanism, K: int) -> Rows:
    """Inputs 'motion': positions of the independent joints and derivatives, K rows of n."""
    values: Sequence[Number] = recorder.inputs('motion', K * model.n_joints)
    return [
        list(values[k : k + model.n_joints]) for k in range(0, len(values), model.n_joints)
    ]


def joint_position(model: Mechanism, i: int, motion: Rows) -> Jet:
    """Position of the joint of body i, from those of the independent joints."""
    j = int(model.coordinate[i])
    return float(model.multiplier[i]) * Jet(row[j] for row in motion) + float(
        model.offset[i]
    )


def joint_motion(
    recorder: Recorder, model: Mechanism, joint: JointFrame, i: int, K: int
) -> JointMotion:
    """Motion of the joint of body i."""
    q = joint_position(model, i, motion_inputs(recorder, model, K))
    return JointMotion(joint, q, formulation.turn_of(joint, q))


class _Swept(NamedTuple):
    """What a sweep from the base outwards finds, by the index of the body, `BASE` included."""

    turns: list[Turn]
    """Of the bodies without the base."""
    relative: dict[int, BodyMotion]
    """As seen from the base, in whose axes wrenches are; for those alone, as the next."""
    places: dict[int, Place]
    loads: dict[int, Load]
    """Those that move the bodies; wrenches, and what bodies behind make, are added."""


class RigidBodies:
    """Records the efforts of rigid bodies, with wrenches, on a base that may move.

    The wrenches are given as `effort_program` has them, for as many orders as there are numbers.
    Places and motions of the bodies are found where a wrench needs them, or they are asked for.
    """

    def __init__(
        self,
        recorder: Recorder,
        model: Mechanism,
        wrenches: Sequence[Attachment] = (),
        given: Sequence[Number] = (),
        frames: Frames | None = None,
        placed: bool = False,
    ) -> None:
        self.recorder, self.model, self.wrenches = recorder, model, wrenches
        self._placed = placed or any(item.expressed_in != 'body' for item in wrenches)
        self.frames = frames_of(model) if frames is None else frames
        count = len(given) // max(1, len(wrenches))
        self._given = [given[w * count : (w + 1) * count] for w in range(len(wrenches))]

    def efforts(
        self, motion: Rows, order: int, base: BodyMotion | None = None
    ) -> tuple[Rows, Load]:
        """Efforts up to an order, and the load on a base that moves, with its own inertia.

        Both motion and load of the base are those of the frame that serves as base.

        Parameters
        ----------
        motion : Rows
            Positions of the independent joints and derivatives, at least order + 3 rows.
        order : int
            Highest derivative of the efforts.
        base : BodyMotion, optional
            Of a base that moves, gravity included; by default it is at rest.
        """
        swept = self.outwards(motion, order, base)
        for wrench, values in zip(self.wrenches, self._given):
            i, pose = self.model.link(wrench.link)
            if i != BASE or base is not None:
                given = values[: 6 * (order + 1)]
                applied = self._applied(wrench, given, i, pose, swept)
                swept.loads[i] = formulation.sum_loads(swept.loads[i], applied)
        armature = self.model.armature
        efforts = self._inwards(motion, order, swept, armature, base is not None)
        return efforts, swept.loads[BASE]

    def of_loads(self, motion: Rows, order: int, loads: dict[int, Load]) -> Rows:
        """Efforts that belong to loads on the bodies and the base alone."""
        swept = self.outwards(motion, order)._replace(loads=loads)
        return self._inwards(motion, order, swept, np.zeros(self.model.n_bodies), False)

    def outwards(self, motion: Rows, order: int, base: BodyMotion | None = None) -> _Swept:
        """Sweep from the base outwards: motions, places and inertial loads of the bodies."""
        model, frames = self.model, self.frames
        q = [joint_position(model, i, motion) for i in range(model.n_bodies)]
        up = scaled(-1.0, vector(frames.gravity))
        rest = formulation.base_motion(up, order)
        motions = {BASE: rest if base is None else base}
        relative = {BASE: rest}
        x, y, z = (vector(axis) for axis in frames.base[:3, :3])
        position = vector(frames.base[:3, :3].T @ frames.base[:3, 3])
        px, py, pz = (constant(component, order + 1) for component in position)
        places = {BASE: Place((x, y, z), (px, py, pz))}
        turns: list[Turn] = []
        loads = {BASE: NO_LOAD}
        if base is not None:
            loads[BASE] = formulation.inertial_load(frames.base_body, base)
        for i in range(model.n_bodies):
            p = int(model.parent[i])
            joint = frames.joints[i]
            turn = formulation.turn_of(joint, q[i])
            turns.append(turn)
            motions[i] = formulation.forward(joint, turn, q[i], motions[p])
            if self._placed:
                relative[i] = motions[i]
                if base is not None:
                    relative[i] = formulation.forward(joint, turn, q[i], relative[p])
                places[i] = formulation.forward_place(joint, turn, q[i], places[p])
            loads[i] = formulation.inertial_load(frames.bodies[i], motions[i])
        return _Swept(turns, relative, places, loads)

    def _applied(
        self,
        wrench: Attachment,
        values: Sequence[Number],
        i: int,
        pose: Array,
        swept: _Swept,
    ) -> Load:
        """Load on body i about the origin of its frame, of a wrench on a link with a pose there.

        The values are those of the wrench, six for each derivative, as given.
        """
        sign = 1.0 if wrench.acting == 'on_environment' else -1.0
        given = formulation.load_of([sign * value for value in values])
        frames = self.frames
        pose = se3.inverse(frames.base if i == BASE else frames.poses[i]) @ pose
        if wrench.expressed_in == 'body':
            return load_in_link_axes(given, pose)
        place = swept.places[i]
        applied = formulation.load_from_base(given, place, swept.relative[i])
        # From the link's origin or the base's; the arm leads there from the body's.
        arm = scaled(-1.0, place.p)
        if wrench.expressed_in == 'hybrid':
            arm = frame_position(pose)
        return formulation.load_about_origin(applied, arm)

    def _inwards(
        self, motion: Rows, order: int, swept: _Swept, armature: Array, to_base: bool
    ) -> Rows:
        """Sweep towards the base: efforts, while loads are summed up, on the base if so asked."""
        model, frames, loads = self.model, self.frames, swept.loads
        q = [joint_position(model, i, motion) for i in range(model.n_bodies)]
        efforts: Rows = [[0.0] * model.n_joints for _ in range(order + 1)]
        for i in reversed(range(model.n_bodies)):
            j, own = (
                int(model.coordinate[i]),
                formulation.effort(frames.joints[i], loads[i]),
            )
            own = own + float(armature[i]) * q[i][2:]
            for row, value in zip(efforts, float(model.multiplier[i]) * own):
                row[j] = row[j] + value
            p = int(model.parent[i])
            if p != BASE or to_base:
                turn = swept.turns[i]
                passed = formulation.backward(frames.joints[i], turn, q[i], loads[i])
                loads[p] = formulation.sum_loads(loads[p], passed)
        return efforts


def load_in_link_axes(values: Load, pose: Array) -> Load:
    """Load about the origin and in the axes of a body's frame, from a wrench on a link of it.

    Parameters
    ----------
    values : Load
        About the origin and in the axes of the link.
    pose : ndarray, shape (4, 4)
        Of the link in the body's frame.
    """
    axes = [vector(without_rounding(axis, 1.0)) for axis in pose[:3, :3]]

    def turned(v: Vector) -> Vector:
        x, y, z = (dot(axis, v) for axis in axes)
        return (x, y, z)

    load = Load(turned(values.n), turned(values.f))
    return formulation.load_about_origin(load, frame_position(pose))
