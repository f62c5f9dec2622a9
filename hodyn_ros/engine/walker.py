"""Walks over the bodies of a tree: of one robot, unrolled, or of any tree, recorded as loops.

Of one robot all constants are folded in. Of any tree the step of one body is recorded once for
each kind of joint; a loop over the bodies runs it, with constants as inputs. A step is a function
of what it reads: the state of the body and that of its parent, nests of tuples and jets, which are
packed into arrays here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import is_dataclass
from itertools import count
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.engine.bodies import Body, JointFrame, JointMotion
from hodyn_ros.engine.frames import Frames
from hodyn_ros.engine.program import Recorder, StraightLineProgram
from hodyn_ros.engine.vectors import ZERO, Number, Vector
from hodyn_ros.lie.jets import Jet, derivative
from hodyn_ros.model.mechanism import BASE, Mechanism
from hodyn_ros.typing import Array

State = TypeVar('State')

# --- One robot -----------------------------------------------------------------------------------

Rows = list[list[Number]]
"""For each derivative what all independent joints have."""


def motion_inputs(recorder: Recorder, model: Mechanism, K: int) -> Rows:
    """Inputs 'motion': positions of the independent joints and derivatives, K rows of n."""
    n = model.n_joints
    values: Sequence[Number] = recorder.inputs('motion', K * n)
    return [list(values[k : k + n]) for k in range(0, K * n, n)]


def joint_motions(
    model: Mechanism,
    frames: Frames,
    motion: Rows,
    bodies: Sequence[int] | None = None,
) -> list[JointMotion]:
    """Motions of the joints of some bodies, by default of all.

    Parameters
    ----------
    model : Mechanism
    frames : Frames
    motion : Rows
        Of the independent joints.
    bodies : sequence of int, optional
    """
    joints = []
    for i in range(model.n_bodies) if bodies is None else bodies:
        j, multiplier = int(model.coordinate[i]), float(model.multiplier[i])
        q = multiplier * Jet(row[j] for row in motion) + float(model.offset[i])
        joints.append(JointMotion.at(frames.joints[i], q))
    return joints


def outward(
    model: Mechanism, base: State, step: Callable[[int, State], State]
) -> dict[int, State]:
    """States of all bodies, each found from that of its parent, and that of the base."""
    states = {BASE: base}
    for i, p in enumerate(model.parent.tolist()):
        states[i] = step(i, states[p])
    return states


def inward(
    model: Mechanism,
    states: dict[int, State],
    step: Callable[[int, State], State],
    to_base: bool = False,
) -> None:
    """Add to the states of all parents, and to the base's if so asked, what the bodies pass on."""
    for i, p in reversed([*enumerate(model.parent.tolist())]):
        if p != BASE or to_base:
            states[p] = states[p] + step(i, states[i])  # type: ignore[operator]


# --- Any tree ------------------------------------------------------------------------------------

SIMPLE, BRANCH, GENERAL = KINDS = range(3)
"""Kinds of joints: revolute with gamma = 0, revolute, any."""


class Constants(NamedTuple):
    """What the loops know of a body."""

    joint: JointFrame
    body: Body
    multiplier: Number
    offset: Number
    armature: Number


def constants(model: Mechanism, frames: Frames) -> tuple[Array, NDArray[np.int64]]:
    """Constants of all bodies, and their kinds, as data of the loops.

    Returns
    -------
    rows : ndarray, shape (n_bodies, N_CONSTANTS)
        `Constants`, packed.
    kinds : ndarray of int, shape (n_bodies,)
        `SIMPLE`, `BRANCH` or `GENERAL`: the programs of the first two leave out what is zero or
        one.
    """
    of_joints = model.multiplier, model.offset, model.armature
    bodies = [*map(Constants, frames.joints, frames.bodies, *of_joints)]
    kinds = [next(kind for kind in KINDS if _of_kind(kind, x) == x) for x in bodies]
    rows = [numbers(x) for x in bodies]
    return np.array(rows).reshape(-1, N_CONSTANTS), np.array(kinds, dtype=np.int64)


def _of_kind(kind: int, values: Constants) -> Constants:
    """Constants with what is the same for all bodies of a kind as numbers, which fold."""
    joint, body, multiplier, offset, armature = values
    if kind != GENERAL:
        joint = joint._replace(turn=1.0, still=0.0, slide=0.0)
        (x, y, _), (*J, _) = body.h, body.J
        body, multiplier = Body(0.0, Vector(x, y, 0.0), (*J, 0.0)), 1.0
    if kind == SIMPLE:
        joint = joint._replace(gamma=(1.0, 0.0))
    return Constants(joint, body, multiplier, offset, armature)


class BodyOfTree:
    """A body of any tree, whose step is recorded.

    Parameters
    ----------
    kind : int
        `SIMPLE`, `BRANCH` or `GENERAL`.
    slots : nest of int
        Where each number of a state is.

    Attributes
    ----------
    recorder : Recorder
        Has inputs and outputs of the joint's coordinate that the loops have names for: entry k is
        the k-th derivative.
    joint, body, multiplier, offset, armature
        Constants of the body.
    own, parent
        States of the body and of its parent.
    """

    def __init__(self, kind: int, slots: Any) -> None:
        recorder = Recorder()
        self.recorder: Recorder = recorder

        def read(array: str, slots: Any) -> Any:
            return mapped(slots, lambda slot: recorder.input(array, slot))

        self._slots = slots
        values = _of_kind(kind, read('constants', _CONSTANTS))
        self.joint: JointFrame
        self.body: Body
        self.multiplier: Number
        self.offset: Number
        self.armature: Number
        self.joint, self.body, self.multiplier, self.offset, self.armature = values
        self.own: Any = read('own', slots)
        self.parent: Any = read('parent', slots)

    def position(self, rates: Iterable[Number]) -> Jet:
        """Position of the joint, with these derivatives."""
        q = self.multiplier * self.recorder.input('motion', 0) + self.offset
        return Jet([q, *rates])

    def program(self, own: Any, parent: Any) -> StraightLineProgram:
        """Program of the step, which writes what is new in these states."""
        for array, old, new in (('own', self.own, own), ('parent', self.parent, parent)):
            for slot, value in _changes(self._slots, old, new):
                self.recorder.output(array, slot, value)
        return self.recorder.program()


Step = Callable[[BodyOfTree], tuple[Any, Any]]
"""From a body its state and that of its parent; outputs beside these are recorded."""


class Loops(NamedTuple):
    """Loops over the bodies of any tree, and their arrays.

    Sizes are the numbers that a sample has in the motion, the middle array and the result, for
    each joint or, of wrenches, for each body; names those of what each coordinate has in them.
    """

    sweeps: list[tuple[bool, dict[int, StraightLineProgram]]]
    """Whether towards the base, and the programs of a step by the kind of the body."""
    state_size: int
    gravity: tuple[int, ...]
    """Where in the state of the base -g is; all else starts with zero."""
    sizes: tuple[int, int, int]
    names: tuple[str, str, str]


def loops_of(
    steps: Iterable[tuple[bool, Step]],
    state: Any,
    sizes: tuple[int, int, int],
    names: tuple[str, str, str],
) -> Loops:
    """Loops of steps, each of which goes towards the base or away from it.

    Parameters
    ----------
    steps : iterable of (bool, callable)
    state : nest of tuples and jets
        An example of the state of a body, which has the acceleration a.
    sizes, names
        Of `Loops`.
    """
    slots = _slots_of(state)

    def programs(step: Step) -> dict[int, StraightLineProgram]:
        bodies = {kind: BodyOfTree(kind, slots) for kind in KINDS}
        return {kind: body.program(*step(body)) for kind, body in bodies.items()}

    sweeps = [(backward, programs(step)) for backward, step in steps]
    gravity = slots.a.order(0)
    return Loops(sweeps, len(numbers(slots)), gravity, sizes, names)


def mapped(nest: Any, function: Callable[[Any], Any]) -> Any:
    """Nest of tuples, data classes and jets with each number replaced by a function of it."""
    parts = _parts(nest)
    if parts is None:
        return function(nest)
    values, make = [mapped(part, function) for part in parts], type(nest)
    return make(values) if make in (tuple, Jet) else make(*values)


def numbers(nest: Any) -> list[Any]:
    """Numbers of a nest in their order."""
    found: list[Any] = []
    mapped(nest, found.append)
    return found


def vector_of_jets(count: int) -> Vector:
    """Zero with its derivatives, so many entries."""
    zero = Jet([0.0] * count)
    return Vector(zero, zero, zero)


def _slots_of(nest: Any) -> Any:
    """Nest of the indices that its numbers have when they are packed."""
    slots = count()
    return mapped(nest, lambda _: next(slots))


def _changes(slots: Any, old: Any, new: Any) -> Iterator[tuple[int, Number]]:
    """Slots and numbers of what is new; a shorter jet leaves the other entries."""
    if not isinstance(slots, int):
        for parts in zip(*map(_parts, (slots, old, new))):
            yield from _changes(*parts)
    elif new is not old:
        yield slots, derivative(new, 0)


def _parts(nest: Any) -> Iterable[Any] | None:
    """Parts of a nest; a number has none."""
    if isinstance(nest, (tuple, Jet)):
        return nest
    return vars(nest).values() if is_dataclass(nest) else None


_NO_FRAME = JointFrame(*((0.0, 0.0),) * 3, ZERO, 0.0, 0.0, 0.0)
_CONSTANTS = _slots_of(Constants(_NO_FRAME, Body(0.0, ZERO, (0.0,) * 6), 0.0, 0.0, 0.0))
N_CONSTANTS = len(numbers(_CONSTANTS))
