"""Programs of one robot, all constants folded in: its joint efforts, with wrenches and friction.

Smooth friction laws are steps of tanh: with x linear in the velocity,

    Coulomb: level tanh(x),   Sigmoid: phi1 / 2 (tanh(x) - tanh(x at rest)),

since 1 / (1 + exp(-2 x)) = (1 + tanh(x)) / 2. So is the decay of Stribeck friction, with y the
square of the velocity over twice that of the law: exp(-2 y) = tanh'(y) / (1 + tanh(y))^2.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from math import tanh
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
    StraightLineProgram,
)
from hodyn_ros.engine.vectors import Number, Vector, dot, scaled
from hodyn_ros.errors import ModelError
from hodyn_ros.lie import se3
from hodyn_ros.lie.jets import Jet, constant, derivatives, leibniz
from hodyn_ros.model.friction import (
    LAWS,
    Coulomb,
    FrictionLaw,
    Offset,
    Sigmoid,
    Stribeck,
    Sum,
    Viscous,
)
from hodyn_ros.model.mechanism import BASE, Mechanism
from hodyn_ros.names import listed


def effort_program(
    model: Mechanism,
    order: int,
    wrenches: Sequence[Attachment] = (),
    friction: bool = True,
) -> RobotProgram:
    """Program of a robot's efforts.

    Parameters
    ----------
    model : RobotModel
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
    recorded: RecordedFriction | None = None
    if friction:
        with suppress(ModelError):
            recorded = RecordedFriction(recorder, model)
            recorded.add_to(efforts, motion)
    recorder.outputs('effort', [value for row in efforts for value in row])
    return RobotProgram(
        recorder.program(),
        range(model.n_bodies),
        order + 3,
        Part('wrench', len(given), False),
        Part('effort', model.n_joints * (order + 1), True),
        recorded.arguments() if recorded else StraightLineProgram((), ()),
        friction=recorded is not None,
    )


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
    recorder: Recorder, model: Mechanism, joint: JointFrame, i: int, place: int, K: int
) -> JointMotion:
    """Motion of the joint of body i, which has a place in the inputs 'sine' and 'cosine'."""
    q = joint_position(model, i, motion_inputs(recorder, model, K))
    sine, cosine = recorder.input('sine', place), recorder.input('cosine', place)
    return JointMotion(joint, q, formulation.turn_of(joint, sine, cosine, q))


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
        model, frames, recorder = self.model, self.frames, self.recorder
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
            turn = formulation.turn_of(
                joint, recorder.input('sine', i), recorder.input('cosine', i), q[i]
            )
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


# --- Friction -----------------------------------------------------------------------------------


def friction_laws(model: Mechanism) -> list[tuple[int, FrictionLaw]]:
    """Summands of the friction laws with the indices of their bodies.

    Raises
    ------
    ModelError
        If a law is not of this package; the message names the joint.
    """

    def terms(joint: str, law: FrictionLaw) -> list[FrictionLaw]:
        if type(law) is Sum:
            return [term for part in law.laws for term in terms(joint, part)]
        # A law that is derived from one of these may compute something else.
        if type(law) not in LAWS:
            raise ModelError(
                f'The friction law {law!r} of joint {joint!r} cannot be generated, nor its '
                'partial derivatives; the laws that can are '
                f'{listed(kind.__name__ for kind in LAWS)} and their sums. Remove it with '
                f'model.with_friction({{{joint!r}: None}}) and add it in your own code.'
            )
        return [law]

    return [
        (i, term)
        for i, joint in enumerate(model.body_names)
        if joint in model.friction
        for term in terms(joint, model.friction[joint])
    ]


class RecordedFriction:
    """Records the friction of the joints; collects the arguments of the functions that it needs.

    A `ModelError` is raised for laws that are not of this package.
    """

    def __init__(self, recorder: Recorder, model: Mechanism) -> None:
        self.recorder, self.model = recorder, model
        self._laws = friction_laws(model)
        # Arguments of tanh, and of the sign, by the place of the law.
        self._steps: dict[int, Number] = {}
        self._velocities: dict[int, Number] = {}

    def add_to(self, efforts: Rows, motion: Rows) -> None:
        """Add friction to efforts, for as many orders as they have."""
        for i, effort, _ in self.of_laws(motion[1 : len(efforts) + 1]):
            j, multiplier = int(self.model.coordinate[i]), float(self.model.multiplier[i])
            for row, value in zip(efforts, derivatives(effort, len(efforts))):
                row[j] = row[j] + multiplier * value

    def of_laws(self, velocity: Rows) -> list[tuple[int, Number, Number]]:
        """Effort of each law and its derivative by the velocity, jets or constants.

        With the body; the velocities are those of the independent joints, for each derivative.
        """
        found = []
        for which, (i, law) in enumerate(self._laws):
            j, multiplier = int(self.model.coordinate[i]), float(self.model.multiplier[i])
            if multiplier:
                moving = multiplier * Jet(row[j] for row in velocity)
                found.append((i, *self._of_law(which, law, moving)))
        return found

    def arguments(self) -> StraightLineProgram:
        """Program of the arguments."""
        recorder = self.recorder.apart()
        recorder.outputs('step', self._steps.values())
        recorder.outputs('velocity', self._velocities.values())
        return recorder.program()

    def _of_law(self, which: int, law: FrictionLaw, v: Jet) -> tuple[Number, Number]:
        """Effort, and its derivative by the velocity."""
        if isinstance(law, Viscous):
            return law.coefficient * v, law.coefficient
        if isinstance(law, Offset):
            return law.value, 0.0
        if isinstance(law, Sigmoid):
            height, scale = 0.5 * law.phi1, 0.5 * law.phi2
            shape, slope = self._step(which, scale * (v + law.phi3))
            return height * (shape - tanh(scale * law.phi3)), height * scale * slope
        assert isinstance(law, (Coulomb, Stribeck))
        shape, slope = self._direction(which, law.smoothing, v)
        if isinstance(law, Stribeck):
            x = 1.0 / law.velocity * v
            decay = self._decay(which, x)
            falling = -2.0 / law.velocity * (x * decay)
            shape, slope = decay * shape, decay * slope + falling * shape
        return law.level * shape, law.level * slope

    def _direction(self, which: int, smoothing: float, v: Jet) -> tuple[Number, Number]:
        """Give tanh(v / smoothing), or the sign of v, and its derivative by v."""
        if smoothing > 0.0:
            shape, slope = self._step(which, 1.0 / smoothing * v)
            return shape, 1.0 / smoothing * slope
        self._velocities[which] = v[0]
        index = list(self._velocities).index(which)
        return self.recorder.input('direction', index), 0.0

    def _step(self, which: int, x: Jet) -> tuple[Jet, Jet]:
        """Give tanh(x) and its derivative by x."""
        self._steps[which] = x[0]
        return step(self.recorder, list(self._steps).index(which), x.rate())

    def _decay(self, which: int, x: Jet) -> Jet:
        """Give exp(-x^2)."""
        place = -1 - which  # beside the other step of this law
        self._steps[place] = 0.5 * x[0] * x[0]
        index = list(self._steps).index(place)
        inverse = self.recorder.inverse(1.0 + self.recorder.input('shape', index), 0.0)
        decay = [self.recorder.input('slope', index) * inverse * inverse]
        rates = -(x * x).rate()
        for k in range(len(rates)):
            decay.append(leibniz(decay, rates, k))
        return Jet(decay)


def step(recorder: Recorder, index: int, rate: Jet) -> tuple[Jet, Jet]:
    """Give tanh(x), and its derivative by x.

    Parameters
    ----------
    recorder : Recorder
    index : int
        Place of tanh(x) and its derivative in the inputs 'shape' and 'slope'.
    rate : Jet
        Of x.
    """
    shape: list[Number] = [recorder.input('shape', index)]
    slope: list[Number] = [recorder.input('slope', index)]
    # tanh' = slope x' with slope = 1 - tanh^2.
    for k in range(len(rate)):
        shape.append(leibniz(slope, rate, k))
        slope.append(-leibniz(shape, shape, k + 1))
    return Jet(shape), Jet(slope)
