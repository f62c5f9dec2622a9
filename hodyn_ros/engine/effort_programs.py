"""Programs for all that the efforts of a robot consist of, as generated code evaluates them.

`robot_program` covers the rigid bodies, the wrenches on them and the armature. Here the friction
laws of the model are added. Both smooth laws are steps of tanh: with x linear in the velocity,

    Coulomb: level tanh(x),   Sigmoid: phi1 / 2 (tanh(x) - tanh(x at rest)),

since 1 / (1 + exp(-2 x)) = (1 + tanh(x)) / 2. With slope = d tanh(x) / dx the time derivatives of
tanh(x) are slope x' and slope x'' - 2 tanh(x) slope x'^2.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from math import tanh
from typing import NamedTuple

from hodyn_ros.engine.frames import frames_of
from hodyn_ros.engine.program import Number, Program, Recorder
from hodyn_ros.engine.robot_program import Attachment, robot_program
from hodyn_ros.errors import ModelError, WrenchError
from hodyn_ros.model.friction import Coulomb, FrictionLaw, Offset, Sigmoid, Sum, Viscous
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed


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
    model: RobotModel, order: int, wrench_links: Sequence[str] = ()
) -> EffortPrograms:
    """Programs of a robot's inverse dynamics with friction.

    Parameters
    ----------
    model : RobotModel
    order : int
        0, 1 or 2.
    wrench_links : sequence of str
        Links that carry a wrench. The k-th derivative of (moment, force) on the l-th of them is
        the input 'wrench' at (k n_links + l) 6: on the environment, in the axes of the link, about
        its origin, the derivatives those of the coordinates.

    Returns
    -------
    EffortPrograms

    Raises
    ------
    ModelError
        If a friction law is not one of this package.
    WrenchError
        If a link does not exist or is named twice.
    """
    checked_links(model, wrench_links)
    recorder = Recorder()
    n, n_links = model.n_joints, len(wrench_links)

    def value_of_input(array: str, index: int) -> Number:
        if array == 'wrench':
            # The program has all derivatives of a wrench together.
            entry, i = divmod(index, 6)
            link, k = divmod(entry, order + 1)
            index = (k * n_links + link) * 6 + i
        return recorder.input(array, index)

    attachments = [Attachment(link, 'body') for link in wrench_links]
    rigid = replay(
        robot_program(model, frames_of(model), order, attachments), value_of_input
    )
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
    return _divided(recorder.program())


def _divided(program: Program) -> EffortPrograms:
    """Programs for the arguments of functions and for the efforts."""
    parts = []
    for wanted in (('position', 'step', 'velocity'), ('effort',)):
        part = Recorder()
        values = replay(program, part.input)
        for (array, index), value in values.items():
            if array in wanted:
                part.output(array, index, value)
        parts.append(part.program())
    return EffortPrograms(*parts)


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


def checked_links(model: RobotModel, wrench_links: Collection[str]) -> None:
    """Check that links that carry wrenches exist and are named once.

    Raises
    ------
    WrenchError
    """
    for link in wrench_links:
        if link not in model.links:
            raise WrenchError(
                f'Wrench on an unknown link. The model has no link {link!r}; its links are '
                f'{listed(model.links)}.'
            )
    if len(set(wrench_links)) < len(wrench_links):
        raise WrenchError(
            f'The links with wrenches are {listed(wrench_links)}, expected each of them once.'
        )


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
        shape = self.recorder.input('shape', index)
        rates = [scale * value for value in moving[1:]]
        series: list[Number] = [height * shape]
        if self.order >= 1:
            slope = height * self.recorder.input('slope', index)
            series.append(slope * rates[0])
        if self.order >= 2:
            series.append(slope * rates[1] - 2.0 * shape * (slope * rates[0]) * rates[0])
        return series


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
