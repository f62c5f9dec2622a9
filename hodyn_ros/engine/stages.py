"""Programs divided into stages, between which functions of whole arrays are evaluated.

Sines and other functions take less time for several numbers at once than one by one, so back-ends
gather them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from hodyn_ros.engine.program import Operation, Output, StraightLineProgram

GATHERED: dict[str, tuple[str, ...]] = {
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
    operands = [operation.operands for operation in operations]
    divided = _divided(operations, operands, longest or len(operations))
    last = len(divided) - 1
    last_uses, stages_of = [0] * len(operations), [last] * len(operations)
    for number, steps in enumerate(divided):
        for step in steps:
            for x in operands[step]:
                last_uses[x] = number
            if operations[step].kind not in _ARGUMENTS:
                stages_of[step] = number
    stages: list[StraightLineProgram] = []
    inputs, counts = dict[int, Operation](), Counter[str]()
    for number, steps in enumerate(divided):
        stage = _Stage(operations, inputs, counts)
        for step in steps:
            stage.compute(step)
        for step in steps:
            if last_uses[step] > number and step not in inputs:
                inputs[step] = stage.store('kept', step)
        for array, index, step in program.outputs:
            if stages_of[step] == number:
                stage.outputs.append(Output(array, index, stage.read(step)))
        stages.append(StraightLineProgram(tuple(stage.operations), tuple(stage.outputs)))
    return stages


def sizes_between(divided: Iterable[list[StraightLineProgram]]) -> dict[str, int]:
    """Elements of the arrays between the stages of programs, as many as one of them needs.

    Parameters
    ----------
    divided : iterable of list of StraightLineProgram
        Of each program the stages.
    """
    counts: Counter[str] = Counter()
    for stages in divided:
        counts |= Counter(output.array for stage in stages[:-1] for output in stage.outputs)
    sizes = {'kept': counts['kept']}
    for array, names in GATHERED.items():
        sizes.update(dict.fromkeys((array, *names), counts[array]))
    return {array: size for array, size in sizes.items() if size}


def _divided(
    operations: Sequence[Operation], operands: Sequence[Sequence[int]], longest: int
) -> list[list[int]]:
    """Steps of each stage, without inputs and constants.

    The argument of a function belongs to the stage whose number is that of the functions nested in
    it, everything else to the first that needs it. Functions are listed with their arguments.
    """
    depths: list[int] = []
    for operation, used in zip(operations, operands):
        nested = max(map(depths.__getitem__, used), default=0)
        depths.append(nested + (operation.kind in _ARGUMENTS))
    last = max(depths, default=0)
    stages = [last] * len(depths)
    for step in reversed(range(len(depths))):
        if operations[step].kind in _ARGUMENTS:
            stages[step] = depths[step] - 1
        for x in operands[step]:
            stages[x] = min(stages[x], stages[step])
    members: list[list[int]] = [[] for _ in range(last + 1)]
    for step, used in enumerate(operands):
        if used:
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
    program : sequence of Operation
        All operations.
    inputs : dict of int to Operation
        Inputs from which stages read steps of earlier ones.
    counts : Counter
        Elements that arrays have so far.
    """

    def __init__(
        self,
        program: Sequence[Operation],
        inputs: dict[int, Operation],
        counts: Counter[str],
    ) -> None:
        self._program, self._inputs, self._counts = program, inputs, counts
        self._indices: dict[int, int] = {}
        self._arguments: dict[tuple[str, int], Operation] = {}
        self.operations: list[Operation] = []
        self.outputs: list[Output] = []

    def read(self, step: int) -> int:
        """Index in this stage of a step that is computed or read here."""
        if step not in self._indices:
            self._add(step, self._inputs.get(step, self._program[step]))
        return self._indices[step]

    def compute(self, step: int) -> None:
        """Add a step; of a function the argument."""
        kind, a, b = self._program[step]
        if kind not in _ARGUMENTS:
            operands = self.read(a), None if b is None else self.read(b)
            self._add(step, Operation(kind, *operands))
            return
        key = _ARGUMENTS[kind], a
        if key not in self._arguments:
            self._arguments[key] = self.store(*key)
            if self._program[a].operands:
                self._inputs.setdefault(a, self._arguments[key])
        self._inputs[step] = Operation('input', kind, self._arguments[key].b)

    def store(self, array: str, step: int) -> Operation:
        """Append a step to an array; returns the input that reads it from there."""
        index = self._counts[array]
        self._counts[array] += 1
        self.outputs.append(Output(array, index, self.read(step)))
        return Operation('input', array, index)

    def _add(self, step: int, operation: Operation) -> None:
        self._indices[step] = len(self.operations)
        self.operations.append(operation)
