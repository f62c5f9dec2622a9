"""Programs of one robot, all constants folded in: its joint efforts, with wrenches and friction.

Smooth friction laws are steps of tanh: with x linear in the velocity,

    Coulomb: level tanh(x),   Sigmoid: phi1 / 2 (tanh(x) - tanh(x at rest)),

since 1 / (1 + exp(-2 x)) = (1 + tanh(x)) / 2. So is the decay of Stribeck friction, with y the
square of the velocity over twice that of the law: exp(-2 y) = tanh'(y) / (1 + tanh(y))^2.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from math import comb, tanh
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hodyn_ros.checks import Array
from hodyn_ros.engine import formulation
from hodyn_ros.engine.formulation import BodyMotion, Load, Place, Turn
from hodyn_ros.engine.frames import Frames, frames_of, vector, without_rounding
from hodyn_ros.engine.frames import position as frame_position
from hodyn_ros.engine.program import (
    Attachment,
    Number,
    Part,
    Recorder,
    RobotProgram,
    StraightLineProgram,
)
from hodyn_ros.engine.vectors import ZERO, Vector, dot, scaled
from hodyn_ros.errors import ModelError
from hodyn_ros.lie import se3
from hodyn_ros.model.assembly import BASE
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
from hodyn_ros.names import listed

if TYPE_CHECKING:
    from hodyn_ros.model.robot import RobotModel


def effort_program(
    model: RobotModel, order: int, wrenches: Sequence[Attachment] = ()
) -> RobotProgram:
    """Program of a robot's efforts, with friction if all laws are of this package.

    Parameters
    ----------
    model : RobotModel
    order : int
        Highest derivative of the efforts.
    wrenches : sequence of Attachment

    Returns
    -------
    RobotProgram
        With the inputs and the output of `robot_program`.
    """
    recorder = Recorder()
    motion = motion_inputs(recorder, model, order + 3)
    given = recorder.inputs('wrench', 6 * (order + 1) * len(wrenches))
    rigid = RigidBodies(recorder, model, wrenches, given)
    efforts, _ = rigid.efforts(motion, order)
    friction: RecordedFriction | None = None
    with suppress(ModelError):
        friction = RecordedFriction(recorder, model)
        friction.add_to(efforts, motion)
    recorder.outputs('effort', [value for row in efforts for value in row])
    return RobotProgram(
        recorder.program(),
        range(model.n_bodies),
        order + 3,
        Part('wrench', len(given), False),
        Part('effort', model.n_joints * (order + 1), True),
        friction.arguments() if friction else StraightLineProgram((), ()),
        friction=friction is not None,
    )


def robot_program(
    model: RobotModel, frames: Frames, order: int, wrenches: Sequence[Attachment] = ()
) -> StraightLineProgram:
    """Program of the inverse dynamics of a robot without friction.

    Inputs: 'motion', derivative k of independent joint j at k n + j; 'sine' and 'cosine' of the
    positions of the bodies' joints; 'wrench', for the w-th wrench at 6 (w (order + 1) + k) the
    k-th derivative of its moment and force. Output: 'effort', derivative k of independent joint j
    at k n + j.
    """
    recorder = Recorder()
    motion = motion_inputs(recorder, model, order + 3)
    given = recorder.inputs('wrench', 6 * (order + 1) * len(wrenches))
    efforts, _ = RigidBodies(recorder, model, wrenches, given, frames).efforts(
        motion, order
    )
    recorder.outputs('effort', [value for row in efforts for value in row])
    return recorder.program()


Rows = list[list[Number]]
"""For each derivative what all independent joints have."""


def motion_inputs(recorder: Recorder, model: RobotModel, K: int) -> Rows:
    """Inputs 'motion': positions of the independent joints and derivatives, K rows of n."""
    values: Sequence[Number] = recorder.inputs('motion', K * model.n_joints)
    return [
        list(values[k : k + model.n_joints]) for k in range(0, len(values), model.n_joints)
    ]


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

    The wrenches are given as `robot_program` has them, for as many orders as there are numbers.
    Places and motions of the bodies are found where a wrench needs them, or they are asked for.
    """

    def __init__(
        self,
        recorder: Recorder,
        model: RobotModel,
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

    def _positions(self, motion: Rows) -> Rows:
        """Positions of the joints of all bodies and derivatives; a row for each body."""
        model = self.model
        q = [
            [float(model.multiplier[i]) * row[int(model.coordinate[i])] for row in motion]
            for i in range(model.n_bodies)
        ]
        for i in range(model.n_bodies):
            q[i][0] = q[i][0] + float(model.offset[i])
        return q

    def outwards(self, motion: Rows, order: int, base: BodyMotion | None = None) -> _Swept:
        """Sweep from the base outwards: motions, places and inertial loads of the bodies."""
        model, frames, recorder = self.model, self.frames, self.recorder
        q = self._positions(motion)
        up = scaled(-1.0, vector(frames.gravity))
        rest = formulation.base_motion(up, order)
        motions = {BASE: rest if base is None else base}
        relative = {BASE: rest}
        position = vector(frames.base[:3, :3].T @ frames.base[:3, 3])
        places = {
            BASE: Place(
                tuple(vector(axis) for axis in frames.base[:3, :3]),  # type: ignore[arg-type]
                [position, *[ZERO] * order],
            )
        }
        turns: list[Turn] = []
        nothing = Load([ZERO] * (order + 1), [ZERO] * (order + 1))
        loads = {BASE: nothing}
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
        arm = [scaled(-1.0, p) for p in place.p]
        if wrench.expressed_in == 'hybrid':
            arm = [frame_position(pose)]
        return formulation.load_about_origin(applied, arm)

    def _inwards(
        self, motion: Rows, order: int, swept: _Swept, armature: Array, to_base: bool
    ) -> Rows:
        """Sweep towards the base: efforts, while loads are summed up, on the base if so asked."""
        model, frames, loads = self.model, self.frames, swept.loads
        q = self._positions(motion)
        efforts: Rows = [[0.0] * model.n_joints for _ in range(order + 1)]
        for i in reversed(range(model.n_bodies)):
            own = formulation.effort(frames.joints[i], loads[i])
            rotor, multiplier = float(armature[i]), float(model.multiplier[i])
            for k in range(order + 1):
                value = own[k] + rotor * q[i][k + 2]
                j = int(model.coordinate[i])
                efforts[k][j] = efforts[k][j] + multiplier * value
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

    load = Load([turned(v) for v in values.n], [turned(v) for v in values.f])
    return formulation.load_about_origin(load, [frame_position(pose)])


# --- Friction -----------------------------------------------------------------------------------


def friction_laws(model: RobotModel) -> list[tuple[int, FrictionLaw]]:
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

    def __init__(self, recorder: Recorder, model: RobotModel) -> None:
        self.recorder, self.model = recorder, model
        self._laws = friction_laws(model)
        # Arguments of tanh, and of the sign, by the place of the law.
        self._steps: dict[int, Number] = {}
        self._velocities: dict[int, Number] = {}

    def add_to(self, efforts: Rows, motion: Rows) -> None:
        """Add friction to efforts, for as many orders as they have."""
        for i, values, _ in self.series(motion[1 : len(efforts) + 1]):
            j, multiplier = int(self.model.coordinate[i]), float(self.model.multiplier[i])
            for row, value in zip(efforts, values):
                row[j] = row[j] + multiplier * value

    def series(self, velocity: Rows) -> list[tuple[int, list[Number], list[Number]]]:
        """Effort of each law, its derivative by the velocity, and their time derivatives.

        With the body; the velocities are those of the independent joints, for each derivative.
        """
        found = []
        for which, (i, law) in enumerate(self._laws):
            j, multiplier = int(self.model.coordinate[i]), float(self.model.multiplier[i])
            moving = [multiplier * row[j] for row in velocity]
            parts = self._series(which, law, moving) if multiplier else ([], [])
            rest: list[Number] = [0.0] * len(moving)
            values, slopes = ([*part, *rest][: len(moving)] for part in parts)
            found.append((i, values, slopes))
        return found

    def arguments(self) -> StraightLineProgram:
        """Program of the arguments."""
        recorder = self.recorder.apart()
        recorder.outputs('step', self._steps.values())
        recorder.outputs('velocity', self._velocities.values())
        return recorder.program()

    def _series(
        self, which: int, law: FrictionLaw, moving: Sequence[Number]
    ) -> tuple[Sequence[Number], Sequence[Number]]:
        """See `series`; what is left out at the end is zero."""
        if isinstance(law, Viscous):
            return [law.coefficient * value for value in moving], [law.coefficient]
        if isinstance(law, Offset):
            return [law.value], []
        if isinstance(law, Sigmoid):
            height, scale = 0.5 * law.phi1, 0.5 * law.phi2
            shape, slope = self._step(which, scale, scale * (moving[0] + law.phi3), moving)
            shape[0] = shape[0] - tanh(scale * law.phi3)
            return [height * value for value in shape], [
                height * scale * value for value in slope
            ]
        assert isinstance(law, (Coulomb, Stribeck))
        shape, slope = self._direction(which, law.smoothing, moving)
        if isinstance(law, Stribeck):
            shape, slope = self._falling(which, law, shape, slope, moving)
        return [law.level * value for value in shape], [
            law.level * value for value in slope
        ]

    def _direction(
        self, which: int, smoothing: float, moving: Sequence[Number]
    ) -> tuple[list[Number], list[Number]]:
        """Series of tanh(v / smoothing), or of the sign of v, and of its derivative by v."""
        if smoothing > 0.0:
            scale = 1.0 / smoothing
            shape, slope = self._step(which, scale, scale * moving[0], moving)
            return shape, [scale * value for value in slope]
        rest: list[Number] = [0.0] * (len(moving) - 1)
        self._velocities[which] = moving[0]
        index = list(self._velocities).index(which)
        return [self.recorder.input('direction', index), *rest], [0.0, *rest]

    def _falling(
        self,
        which: int,
        law: Stribeck,
        shape: Sequence[Number],
        slope: Sequence[Number],
        moving: Sequence[Number],
    ) -> tuple[list[Number], list[Number]]:
        """Series of exp(-(v / law.velocity)^2) times a direction, and of its derivative by v."""
        x = [1.0 / law.velocity * value for value in moving]
        orders = range(len(x))
        decay = self._decay(which, x)
        falling = [-2.0 / law.velocity * _product(x, decay, k) for k in orders]
        slope = [_product(decay, slope, k) + _product(falling, shape, k) for k in orders]
        return [_product(decay, shape, k) for k in orders], slope

    def _step(
        self, which: int, scale: float, x: Number, moving: Sequence[Number]
    ) -> tuple[list[Number], list[Number]]:
        """Series of tanh(x) and its derivative by x, which is linear in the velocity."""
        self._steps[which] = x
        index = list(self._steps).index(which)
        return step_series(self.recorder, index, [scale * value for value in moving[1:]])

    def _decay(self, which: int, x: Sequence[Number]) -> list[Number]:
        """Series of exp(-x^2)."""
        place = -1 - which  # beside the other step of this law
        self._steps[place] = 0.5 * x[0] * x[0]
        index = list(self._steps).index(place)
        inverse = self.recorder.inverse(1.0 + self.recorder.input('shape', index), 0.0)
        decay = [self.recorder.input('slope', index) * inverse * inverse]
        rates = [-1.0 * _product(x, x, k) for k in range(1, len(x))]
        for k in range(len(rates)):
            decay.append(_product(decay, rates, k))
        return decay


def step_series(
    recorder: Recorder, index: int, rates: Sequence[Number]
) -> tuple[list[Number], list[Number]]:
    """Series of tanh(x), and of its derivative by x.

    Parameters
    ----------
    recorder : Recorder
    index : int
        Place of tanh(x) and its derivative in the inputs 'shape' and 'slope'.
    rates : sequence of Number
        Derivatives of x from 1 on.

    Returns
    -------
    shape, slope : list of Number
        One more than there are rates.
    """
    shape: list[Number] = [recorder.input('shape', index)]
    slope: list[Number] = [recorder.input('slope', index)]
    # tanh' = slope x' and slope' = -2 tanh slope x' = -2 tanh tanh', by Leibniz's rule.
    for k in range(len(rates)):
        shape.append(_product(slope, rates, k))
        slope.append(-2.0 * _product(shape, shape[1:], k))
    return shape, slope


def _product(a: Sequence[Number], b: Sequence[Number], k: int) -> Number:
    """Return the k-th derivative of a product."""
    result: Number = 0.0
    for j in range(k + 1):
        result = result + float(comb(k, j)) * a[j] * b[k - j]
    return result
