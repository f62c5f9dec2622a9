"""Programs for all that the efforts of a robot consist of.

`robot_program` covers the rigid bodies, the wrenches on them and the armature. Here the friction
laws of the model are added. Both smooth laws are steps of tanh: with x linear in the velocity,

    Coulomb: level tanh(x),   Sigmoid: phi1 / 2 (tanh(x) - tanh(x at rest)),

since 1 / (1 + exp(-2 x)) = (1 + tanh(x)) / 2.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from math import comb, tanh
from typing import NamedTuple

from hodyn_ros.engine.frames import frames_of
from hodyn_ros.engine.program import Number, Program, Recorder
from hodyn_ros.engine.robot_program import Attachment, Part, RobotProgram, robot_program
from hodyn_ros.errors import ModelError
from hodyn_ros.model.friction import Coulomb, FrictionLaw, Offset, Sigmoid, Sum, Viscous
from hodyn_ros.model.robot import RobotModel


class EffortPrograms(NamedTuple):
    """Programs of a robot, and what is evaluated between them.

    Attributes
    ----------
    arguments : Program
        Input: 'motion', derivative k of independent joint j at k n + j. Outputs, for the
        functions between the programs: 'position' of the joints that move bodies, 'step' and
        'velocity'.
    efforts : Program
        Inputs: 'motion', 'wrench', 'sine' and 'cosine' of 'position', 'shape' and 'slope' of
        'step', which are tanh and its derivative, and 'direction' of 'velocity', its sign, -1, 0
        or 1. Output: 'effort', derivative k of independent joint j at k n + j.
    """

    arguments: Program
    efforts: Program


def effort_programs(
    model: RobotModel, order: int, wrenches: Sequence[Attachment] = ()
) -> EffortPrograms:
    """Programs of a robot's inverse dynamics with friction.

    Parameters
    ----------
    model : RobotModel
    order : int
    wrenches : sequence of Attachment
        See `robot_program`.

    Returns
    -------
    EffortPrograms

    Raises
    ------
    ModelError
        If a friction law is not one of this package.
    """
    recorder = Recorder()
    n = model.n_joints
    rigid = replay(robot_program(model, frames_of(model), order, wrenches), recorder.input)
    efforts = [rigid['effort', i] for i in range((order + 1) * n)]
    friction = _Friction(recorder, order)
    for i, joint in enumerate(model.body_names):
        if joint in model.friction:
            j, multiplier = int(model.coordinate[i]), float(model.multiplier[i])
            moving = [
                multiplier * recorder.input('motion', (k + 1) * n + j) for k in range(order + 1)
            ]
            for law in _terms(joint, model.friction[joint]):
                for k, value in enumerate(friction.series(law, moving)):
                    efforts[k * n + j] = efforts[k * n + j] + multiplier * value
    recorder.outputs('effort', efforts)
    program = recorder.program()

    # What nothing depends on is not evaluated.
    used = {(operation.a, operation.b) for operation in program.operations}
    for i in range(model.n_bodies):
        if ('sine', i) in used or ('cosine', i) in used:
            q = recorder.input('motion', int(model.coordinate[i]))
            position = float(model.multiplier[i]) * q + float(model.offset[i])
            recorder.output('position', i, position)
    for index, x in enumerate(friction.steps):
        if ('shape', index) in used or ('slope', index) in used:
            recorder.output('step', index, x)
    for index, v in enumerate(friction.velocities):
        if ('direction', index) in used:
            recorder.output('velocity', index, v)
    whole = recorder.program()
    return EffortPrograms(
        part_of(whole, ('position', 'step', 'velocity')), part_of(whole, ('effort',))
    )


def effort_program(
    model: RobotModel, order: int, wrenches: Sequence[Attachment] = ()
) -> RobotProgram:
    """Program of the efforts of a robot for kernels, with its friction if the laws are known."""
    known = with_known_friction(model)
    programs = effort_programs(known, order, wrenches)
    return RobotProgram(
        programs.efforts,
        range(model.n_bodies),
        order + 3,
        Part('wrench', 6 * (order + 1) * len(wrenches), False),
        Part('effort', model.n_joints * (order + 1), True),
        part_of(programs.arguments, ('step', 'velocity')),
        friction=known is model,
    )


def part_of(program: Program, arrays: Collection[str]) -> Program:
    """Program that writes some arrays only."""
    recorder = Recorder()
    for (array, index), value in replay(program, recorder.input).items():
        if array in arrays:
            recorder.output(array, index, value)
    return recorder.program()


def with_known_friction(model: RobotModel) -> RobotModel:
    """Return a robot that `effort_programs` can be made for: without friction that it cannot."""
    if includes_friction(model):
        return model
    return model.with_friction(dict.fromkeys(model.friction))


def includes_friction(model: RobotModel) -> bool:
    """Whether `effort_programs` knows all friction laws of a robot."""
    try:
        for joint, law in model.friction.items():
            _terms(joint, law)
    except ModelError:
        return False
    return True


def replay(
    program: Program, value_of_input: Callable[[str, int], Number]
) -> dict[tuple[str, int], Number]:
    """Evaluate a program with other inputs, and so record it again.

    Parameters
    ----------
    program : Program
    value_of_input : callable
        Takes the name of an array and an index.

    Returns
    -------
    dict
        Values of the outputs by array and index.
    """
    values: list[Number] = []
    for kind, a, b in program.operations:
        if kind == 'input':
            values.append(value_of_input(a, b))
        elif kind == 'constant':
            values.append(float(a))
        elif kind == 'negate':
            values.append(-values[a])
        else:
            x, y = values[a], values[b]
            values.append(x * y if kind == 'multiply' else x + y if kind == 'add' else x - y)
    return {(output.array, output.index): values[output.step] for output in program.outputs}


class _Friction:
    """Records friction laws; collects the arguments of the functions that they need."""

    def __init__(self, recorder: Recorder, order: int) -> None:
        self.recorder = recorder
        self.order = order
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
        index = len(self.steps)
        self.steps.append(x)
        shape: list[Number] = [self.recorder.input('shape', index)]
        slope: list[Number] = [self.recorder.input('slope', index)]
        rates = [scale * value for value in moving[1:]]
        # tanh' = slope x' and slope' = -2 tanh slope x' = -2 tanh tanh', by Leibniz's rule.
        for k in range(self.order):
            shape.append(_product(slope, rates, k))
            slope.append(-2.0 * _product(shape, shape[1:], k))
        return [height * value for value in shape]


def _product(a: Sequence[Number], b: Sequence[Number], k: int) -> Number:
    """Return the k-th derivative of a product."""
    result: Number = 0.0
    for j in range(k + 1):
        result = result + float(comb(k, j)) * a[j] * b[k - j]
    return result


def _terms(joint: str, law: FrictionLaw) -> list[Viscous | Coulomb | Sigmoid | Offset]:
    """Summands of a law, each of a type that is known here and not derived from it."""
    if type(law) is Sum:
        return [term for part in law.laws for term in _terms(joint, part)]
    if type(law) not in (Viscous, Coulomb, Sigmoid, Offset):
        raise ModelError(
            f'The friction law {law!r} of joint {joint!r} cannot be generated; the laws that can '
            'are Viscous, Coulomb, Sigmoid, Offset and their sums. Remove it with '
            f'model.with_friction({{{joint!r}: None}}) and add it in your own code.'
        )
    return [law]  # type: ignore[list-item]
