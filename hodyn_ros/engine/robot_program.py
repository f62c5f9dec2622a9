"""Programs of one robot, all constants folded in: its joint efforts, with wrenches and friction.

Both smooth friction laws are steps of tanh: with x linear in the velocity,

    Coulomb: level tanh(x),   Sigmoid: phi1 / 2 (tanh(x) - tanh(x at rest)),

since 1 / (1 + exp(-2 x)) = (1 + tanh(x)) / 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, tanh
from typing import TYPE_CHECKING

from hodyn_ros.checks import Array
from hodyn_ros.engine import formulation
from hodyn_ros.engine.formulation import BodyMotion, Load, Place, Turn, Vector
from hodyn_ros.engine.frames import Frames, frames_of, position, vector, without_rounding
from hodyn_ros.engine.program import Attachment, Number, Part, Program, Recorder, RobotProgram
from hodyn_ros.errors import ModelError
from hodyn_ros.lie import se3
from hodyn_ros.model.assembly import BASE
from hodyn_ros.model.friction import Coulomb, FrictionLaw, Offset, Sigmoid, Sum, Viscous

if TYPE_CHECKING:
    from hodyn_ros.model.robot import RobotModel


def effort_program(
    model: RobotModel, order: int, wrenches: Sequence[Attachment] = ()
) -> RobotProgram:
    """Program of a robot's efforts, with friction if all laws are of this package."""
    recorder = Recorder()
    n = model.n_joints
    efforts = _rigid_efforts(recorder, model, frames_of(model), order, wrenches)
    friction = _Friction(recorder)
    try:
        laws = friction_laws(model)
    except ModelError:
        laws, included = [], False
    else:
        included = True
    for i, law in laws:
        j, multiplier = int(model.coordinate[i]), float(model.multiplier[i])
        moving = [multiplier * recorder.input('motion', (k + 1) * n + j) for k in range(order + 1)]
        for k, value in enumerate(friction.series(law, moving)):
            efforts[k][j] = efforts[k][j] + multiplier * value
    recorder.outputs('effort', [value for row in efforts for value in row])
    program = recorder.program()
    # What nothing depends on is not evaluated.
    used = {(operation.a, operation.b) for operation in program.operations}
    for index, x in enumerate(friction.steps):
        if ('shape', index) in used or ('slope', index) in used:
            recorder.output('step', index, x)
    for index, v in enumerate(friction.velocities):
        if ('direction', index) in used:
            recorder.output('velocity', index, v)
    return RobotProgram(
        program,
        range(model.n_bodies),
        order + 3,
        Part('wrench', 6 * (order + 1) * len(wrenches), False),
        Part('effort', n * (order + 1), True),
        recorder.program(without='effort'),
        friction=included,
    )


def robot_program(
    model: RobotModel, frames: Frames, order: int, wrenches: Sequence[Attachment] = ()
) -> Program:
    """Program of the inverse dynamics of a robot without friction.

    Inputs: 'motion', derivative k of independent joint j at k n + j; 'sine' and 'cosine' of the
    positions of the bodies' joints; 'wrench', for the w-th wrench at 6 (w (order + 1) + k) the
    k-th derivative of its moment and force. Output: 'effort', derivative k of independent joint j
    at k n + j.
    """
    recorder = Recorder()
    efforts = _rigid_efforts(recorder, model, frames, order, wrenches)
    recorder.outputs('effort', [value for row in efforts for value in row])
    return recorder.program()


def _rigid_efforts(
    recorder: Recorder,
    model: RobotModel,
    frames: Frames,
    order: int,
    wrenches: Sequence[Attachment],
) -> list[list[Number]]:
    """Record the efforts of `robot_program`: for each derivative those of all joints."""
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
    base = formulation.base_motion(formulation.scaled(-1.0, vector(frames.gravity)), order)
    base_place = Place(
        tuple(vector(axis) for axis in frames.base[:3, :3]),  # type: ignore[arg-type]
        [vector(frames.base[:3, :3].T @ frames.base[:3, 3]), *[formulation.ZERO] * order],
    )
    motions: list[BodyMotion] = []
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
        sign = 1.0 if wrench.acting == 'on_environment' else -1.0
        values = [sign * recorder.input('wrench', start + j) for j in range(6 * (order + 1))]
        given = formulation.load_of(values)
        i, pose = model.link(wrench.link)
        if i == BASE:
            continue
        pose = se3.inverse(frames.poses[i]) @ pose
        if wrench.expressed_in == 'body':
            applied = _load_in_link_axes(given, pose)
        else:
            applied = formulation.load_from_base(given, places[i], motions[i])
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
    return efforts


def _load_in_link_axes(values: Load, pose: Array) -> Load:
    """Load of a wrench in the axes of a link that has a pose in the body's frame."""
    axes = [vector(without_rounding(axis, 1.0)) for axis in pose[:3, :3]]

    def turned(v: Vector) -> Vector:
        x, y, z = (formulation.dot(axis, v) for axis in axes)
        return (x, y, z)

    load = Load([turned(v) for v in values.n], [turned(v) for v in values.f])
    return formulation.load_about_origin(load, [position(pose)])


# --- Friction -----------------------------------------------------------------------------------


def friction_laws(model: RobotModel) -> list[tuple[int, FrictionLaw]]:
    """Summands of friction laws by body; refused are laws that are not of this package."""

    def terms(joint: str, law: FrictionLaw) -> list[FrictionLaw]:
        if type(law) is Sum:
            return [term for part in law.laws for term in terms(joint, part)]
        # A law that is derived from one of these may compute something else.
        if type(law) not in (Viscous, Coulomb, Sigmoid, Offset):
            raise ModelError(
                f'The friction law {law!r} of joint {joint!r} cannot be generated, nor its partial '
                'derivatives; the laws that can are Viscous, Coulomb, Sigmoid, Offset and their '
                'sums. Remove it with '
                f'model.with_friction({{{joint!r}: None}}) and add it in your own code.'
            )
        return [law]

    return [
        (i, term)
        for i, joint in enumerate(model.body_names)
        if joint in model.friction
        for term in terms(joint, model.friction[joint])
    ]


class _Friction:
    """Records friction laws; collects the arguments of the functions that they need."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.steps: list[Number] = []
        self.velocities: list[Number] = []

    def series(self, law: FrictionLaw, moving: Sequence[Number]) -> list[Number]:
        """Effort of a law and its derivatives, from the velocity and its derivatives."""
        if isinstance(law, Viscous):
            return [law.coefficient * value for value in moving]
        if isinstance(law, Offset):
            return [law.value]
        if isinstance(law, Sigmoid):
            scale, height = 0.5 * law.phi2, 0.5 * law.phi1
            first, *others = self._step(height, scale, scale * (moving[0] + law.phi3), moving)
            return [first - height * tanh(scale * law.phi3), *others]
        assert isinstance(law, Coulomb)
        if law.smoothing > 0.0:
            scale = 1.0 / law.smoothing
            return self._step(law.level, scale, scale * moving[0], moving)
        self.velocities.append(moving[0])
        return [law.level * self.recorder.input('direction', len(self.velocities) - 1)]

    def _step(
        self, height: float, scale: float, x: Number, moving: Sequence[Number]
    ) -> list[Number]:
        """Series of height tanh(x), x linear in the velocity."""
        self.steps.append(x)
        rates = [scale * value for value in moving[1:]]
        shape, _ = step_series(self.recorder, len(self.steps) - 1, rates)
        return [height * value for value in shape]


def step_series(
    recorder: Recorder, index: int, rates: Sequence[Number]
) -> tuple[list[Number], list[Number]]:
    """Series of tanh(x), and of its derivative by x, from the derivatives of x, from 1 on."""
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
