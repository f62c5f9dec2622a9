"""Times of forward kinematics and of the matrices of the equations of motion, beside Pinocchio.

    python -m benchmarks.matrices [panda | chain of N joints: a number] ...

A sample alone is a call from Python that returns new arrays; Pinocchio writes into arrays of its
own, which here are not copied. In a batch, a time is that of one sample. The contestants take
turns in one run, see `timing`. `NumPy` is what the functions compute without compiled code.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import cases
from benchmarks.cases import Case
from benchmarks.peers import pinocchio_cpp
from benchmarks.peers.pinocchio_model import PinocchioModel, pinocchio
from benchmarks.report import grid
from benchmarks.timing import Contestant, Effort, NotInstalled, Timing, race
from hodyn_ros import (
    RobotModel,
    coriolis_matrix,
    forward_kinematics,
    gravity_effort,
    mass_matrix,
    regressor,
)

Array = NDArray[np.float64]
Function = Callable[[RobotModel, Array], object]

EFFORT = Effort(rounds=25, burst=0.02, longest=3.0)
ALONE = 50
BATCH = 10_000
# Regressors of more do not fit into memory for a whole batch.
MOST_JOINTS = 14
# Fewer samples than it takes for anything to be compiled.
BY_NUMPY = 32


def functions(link: str, n: int) -> dict[str, tuple[int, Function]]:
    """Return what is timed: number K of derivatives in the motion, and the call."""
    found: dict[str, tuple[int, Function]] = {
        'mass matrix': (1, mass_matrix),
        'mass matrix and 2 derivatives': (3, mass_matrix),
        'Coriolis matrix': (2, coriolis_matrix),
        'gravity effort': (1, gravity_effort),
    }
    for K, name in ((1, 'pose'), (3, 'pose to acceleration'), (5, 'pose to jounce')):
        found[name] = (
            K,
            lambda model, motion: forward_kinematics(model, motion, link, 'body'),
        )
    if n <= MOST_JOINTS:
        found['regressor'] = (3, regressor)
        found['regressor and 2 derivatives'] = (5, regressor)
    return found


def ours(case: Case, link: str) -> list[Contestant]:
    """Make the contestants of this package: one sample, a batch, NumPy."""
    entries = []
    for name, (K, function) in functions(link, case.n).items():
        motion = np.ascontiguousarray(case.motion[:, :K])
        case.model.warm_up(0, lambda: function(case.model, motion[0]))  # noqa: B023
        alone = list(motion[:ALONE])
        entries += [
            _contestant(f'{name}, alone', case.model, function, alone),
            _contestant(f'{name}, batch', case.model, function, [motion]),
            _contestant(
                f'{name}, NumPy alone', case.model, function, alone[:2], fresh=True
            ),
            _contestant(
                f'{name}, NumPy batch',
                case.model,
                function,
                [motion[:BY_NUMPY]],
                fresh=True,
            ),
        ]
    return entries


def _contestant(
    name: str,
    model: RobotModel,
    function: Function,
    motions: list[Array],
    fresh: bool = False,
) -> Contestant:
    def run() -> None:
        # A copy of a model has no compiled code.
        used = dataclasses.replace(model) if fresh else model
        for motion in motions:
            function(used, motion)

    samples = sum(1 if motion.ndim == 2 else len(motion) for motion in motions)
    return Contestant(name, 0, samples, run, lambda: np.zeros(0))


def theirs(case: Case, link: str) -> list[Contestant]:
    """Make the contestants of Pinocchio, called from Python, one sample at a time."""
    pin = pinocchio()
    robot = PinocchioModel(case)
    model, data = robot.model, robot.model.createData()
    frame = model.getFrameId(link)
    motion = [tuple(sample.copy()) for sample in robot.motion[:ALONE]]

    def pose(q: Array, *_: Array) -> None:
        pin.forwardKinematics(model, data, q)
        pin.updateFramePlacement(model, data, frame)

    def acceleration(q: Array, v: Array, a: Array, *_: Array) -> None:
        pin.forwardKinematics(model, data, q, v, a)
        pin.updateFramePlacement(model, data, frame)
        pin.getFrameVelocity(model, data, frame, pin.LOCAL)
        pin.getFrameAcceleration(model, data, frame, pin.LOCAL)

    calls: dict[str, Callable[..., Any]] = {
        'pin.crba': lambda q, *_: pin.crba(model, data, q),
        'pin.computeCoriolisMatrix': lambda q, v, *_: pin.computeCoriolisMatrix(
            model, data, q, v
        ),
        'pin.computeGeneralizedGravity': lambda q, *_: pin.computeGeneralizedGravity(
            model, data, q
        ),
        'pin.computeJointTorqueRegressor': lambda q, v, a, *_: (
            pin.computeJointTorqueRegressor(model, data, q, v, a)
        ),
        'pin.forwardKinematics, pose': pose,
        'pin.forwardKinematics, to acceleration': acceleration,
    }
    entries = []
    for name, call in calls.items():

        def run(call: Callable[..., Any] = call) -> None:
            for sample in motion:
                call(*sample)

        entries.append(Contestant(name, 0, len(motion), run, lambda: np.zeros(0)))
    return entries


def table(case: Case) -> str:
    """Time all contestants on a robot; returns text."""
    link = (
        next(reversed(case.model.links))
        if case.model.tip_link is None
        else case.model.tip_link
    )
    contestants = ours(case, link)
    try:
        contestants += theirs(case, link)
        if case.n <= MOST_JOINTS:
            contestants += pinocchio_cpp.regressor(case)
    except NotInstalled as reason:
        print(reason)
    timings = race(contestants, EFFORT)
    rows = [['', 'µs', 'quartiles']]
    rows += [[name, *_cells(timing)] for name, timing in timings.items()]
    return f'{case.name}\n\n{grid(rows)}'


def _cells(timing: Timing) -> list[str]:
    return [
        f'{timing.median * 1e6:.3f}',
        f'{timing.lower_quartile * 1e6:.3f}-{timing.upper_quartile * 1e6:.3f}',
    ]


def main(arguments: Sequence[str]) -> None:
    """Measure on the robots that are named; the Panda by default."""
    for name in arguments or ['panda']:
        if name == 'panda':
            print(table(cases.panda(BATCH)))
        else:
            print(table(cases.chain(int(name), BATCH)))


if __name__ == '__main__':
    main(sys.argv[1:])
