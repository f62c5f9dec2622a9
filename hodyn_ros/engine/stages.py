"""Programs divided into stages, between which functions of whole arrays are evaluated.

Sines and other functions take less time for several numbers at once than one by one, so back-ends
gather them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hodyn_ros.engine.program import Operation, Output, StraightLineProgram

GATHERED = {
    'angle': ('sine', 'cosine'),
    'step': ('tanh', 'tanh_slope'),
    'power': ('exp',),
    'velocity': ('sign',),
}
"""Functions that are evaluated for whole arrays, by the array of their arguments."""

_ARGUMENTS = {name: array for array, names in GATHERED.items() for name in names}


def in_stages(
    program: StraightLineProgram, longest: int | None = None
) -> list[StraightLineProgram]:
    """Stages, programs without the functions of `GATHERED`.

    A stage appends arguments to their arrays, and later ones read the results from arrays with the
    names of the functions. Other numbers for later stages are in 'kept'.

    Parameters
    ----------
    program : StraightLineProgram
    longest : int, optional
        Most steps of a stage; longer ones are divided.
    """
    operations = program.operations
    divided = _divided(operations, longest or len(operations))
    last = len(divided) - 1
    last_uses, stages_of = dict[int, int](), dict[int, int]()
    for number, steps in enumerate(divided):
        for step in steps:
            last_uses.update((x, number) for x in operations[step].operands)
            if operations[step].kind not in _ARGUMENTS:
                stages_of[step] = number
    stages: list[StraightLineProgram] = []
    places, counts = dict[int, Operation](), Counter[str]()
    for number, steps in enumerate(divided):
        stage = _Stage(operations, places, counts)
        for step in steps:
            stage.compute(step)
        for step in steps:
            if last_uses.get(step, 0) > number and step not in places:
                places[step] = stage.store('kept', step)
        for array, index, step in program.outputs:
            if stages_of.get(step, last) == number:
                stage.outputs.append(Output(array, index, stage.read(step)))
        stages.append(StraightLineProgram(tuple(stage.operations), tuple(stage.outputs)))
    return stages


def _divided(operations: Sequence[Operation], longest: int) -> list[list[int]]:
    """Steps of each stage, without inputs and constants.

    The argument of a function belongs to the stage whose number is that of the functions nested in
    it, everything else to the first that needs it. Functions are listed with their arguments.
    """
    depths: list[int] = []
    for operation in operations:
        nested = max((depths[x] for x in operation.operands), default=0)
        depths.append(nested + (operation.kind in _ARGUMENTS))
    last = max(depths, default=0)
    stages = [last] * len(depths)
    for step in reversed(range(len(depths))):
        if operations[step].kind in _ARGUMENTS:
            stages[step] = depths[step] - 1
        for x in operations[step].operands:
            stages[x] = min(stages[x], stages[step])
    members: list[list[int]] = [[] for _ in range(last + 1)]
    for step in range(len(operations)):
        if operations[step].operands:
            members[stages[step]].append(step)
    return [
        steps[start : start + longest]
        for steps in members
        for start in range(0, max(1, len(steps)), max(1, longest))
    ]


class _Stage:
    """Writer of a stage.

    Parameters
    ----------
    whole : sequence of Operation
        The program.
    places : dict of int to Operation
        Inputs from which stages read steps of earlier ones.
    counts : Counter
        Elements that arrays have so far.
    """

    def __init__(
        self,
        whole: Sequence[Operation],
        places: dict[int, Operation],
        counts: Counter[str],
    ) -> None:
        self._whole, self._places, self._counts = whole, places, counts
        self._indices: dict[int, int] = {}
        self._arguments: dict[tuple[str, int], Operation] = {}
        self.operations: list[Operation] = []
        self.outputs: list[Output] = []

    def read(self, step: int) -> int:
        """Index in this stage of a step that is computed or read here."""
        if step not in self._indices:
            self._add(step, self._places.get(step, self._whole[step]))
        return self._indices[step]

    def compute(self, step: int) -> None:
        """Add a step; of a function the argument."""
        kind, argument, _ = operation = self._whole[step]
        indices = {x: self.read(x) for x in operation.operands}
        if kind not in _ARGUMENTS:
            self._add(step, operation.renumbered(indices))
            return
        key = _ARGUMENTS[kind], argument
        if key not in self._arguments:
            self._arguments[key] = self.store(*key)
            if self._whole[argument].operands:
                self._places.setdefault(argument, self._arguments[key])
        self._places[step] = Operation('input', kind, self._arguments[key].b)

    def store(self, array: str, step: int) -> Operation:
        """Append a step to an array; returns the input that reads it from there."""
        index = self._counts[array]
        self._counts[array] += 1
        self.outputs.append(Output(array, index, self.read(step)))
        return Operation('input', array, index)

    def _add(self, step: int, operation: Operation) -> None:
        self._indices[step] = len(self.operations)
        self.operations.append(operation)
