"""What hodyn_ros offers, each way to call it a contestant of its own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import Case
from benchmarks.timing import Contestant, NotInstalled
from hodyn_ros import inverse_dynamics
from hodyn_ros.dynamics.inverse import FORMULATIONS
from hodyn_ros.engine.engine import (
    COMPILED_ROBOT,
    COMPILED_TREE,
    MOST_BODIES,
    Efforts,
    engine_of,
    unavailable,
)

Array = NDArray[np.float64]

SAMPLES_FROM_PYTHON = 100
# A formulation in NumPy is a hundred times as slow as compiled code.
SAMPLES_OF_FORMULATIONS = 512


def formulation(algorithm: str) -> Callable[[Case], list[Contestant]]:
    """Make the contestant of one formulation in NumPy, on a batch."""

    def contestants(case: Case) -> list[Contestant]:
        motion = np.ascontiguousarray(case.motion[:SAMPLES_OF_FORMULATIONS])
        order = FORMULATIONS[algorithm].highest_order
        if order is not None and order < 2:
            motion = np.ascontiguousarray(motion[:, : order + 3])
        return [
            _of_function(
                f'{algorithm}, NumPy',
                motion,
                lambda: inverse_dynamics(case.model, motion, algorithm=algorithm),
            )
        ]

    return contestants


def batch(case: Case) -> list[Contestant]:
    """Make the contestant of the public function on the whole batch, as it chooses itself."""
    case.model.warm_up()
    return [
        _of_function(
            'hodyn_ros batch',
            case.motion,
            lambda: inverse_dynamics(case.model, case.motion),
        )
    ]


def from_python(case: Case) -> list[Contestant]:
    """Make the contestant of the public function for one sample, with a new array each call."""
    model, motion = case.model, case.motion[:SAMPLES_FROM_PYTHON]
    model.warm_up()
    samples = list(motion)
    latest: list[Array] = []

    def run() -> None:
        latest[:] = [inverse_dynamics(model, sample) for sample in samples]

    return [
        Contestant('hodyn_ros from Python', 2, len(motion), run, lambda: np.array(latest))
    ]


def from_python_out(case: Case) -> list[Contestant]:
    """Make the contestant of the public function for one sample, into a given array."""
    model, motion = case.model, case.motion[:SAMPLES_FROM_PYTHON]
    model.warm_up()
    efforts = np.empty((len(motion), motion.shape[1] - 2, motion.shape[2]))

    pairs = list(zip(motion, efforts))

    def run() -> None:
        for sample, effort in pairs:
            inverse_dynamics(model, sample, out=effort)

    return [Contestant('hodyn_ros from Python, out=', 2, len(motion), run, lambda: efforts)]


def kernel(
    name: str, form: str, together: bool = True, threads: int = 1
) -> Callable[[Case], list[Contestant]]:
    """Make the contestant of a kernel of the engine, on the batch.

    Parameters
    ----------
    name : str
    form : str
        See `hodyn_ros.engine.engine`.
    together : bool
        Whether samples are computed side by side in the vector registers, or one by one.
    threads : int
    """

    def contestants(case: Case) -> list[Contestant]:
        if unavailable():
            raise NotInstalled(str(unavailable()))
        if form != COMPILED_TREE and case.model.n_bodies > MOST_BODIES:
            raise NotInstalled(f'straight-line code is for up to {MOST_BODIES} bodies')
        motion = case.motion
        made = engine_of(case.model).prepare(Efforts(2, (), form))
        assert made is not None
        efforts = np.empty((len(motion), motion.shape[1] - 2, motion.shape[2]))
        options = {} if together else {'together': False}

        def run() -> None:
            made.evaluate(motion, None, efforts, threads, **options)

        return [Contestant(name, 2, len(motion), run, lambda: efforts, threads=threads)]

    return contestants


ENGINE = {
    name: kernel(name, *how)
    for name, *how in (
        ('hodyn_ros any tree, one by one', COMPILED_TREE, False),
        ('hodyn_ros any tree, batch', COMPILED_TREE),
        ('hodyn_ros this robot, one by one', COMPILED_ROBOT, False),
        ('hodyn_ros this robot, batch', COMPILED_ROBOT),
        ('hodyn_ros any tree, 2 threads', COMPILED_TREE, True, 2),
        ('hodyn_ros this robot, 2 threads', COMPILED_ROBOT, True, 2),
    )
}


def _of_function(name: str, motion: Array, function: Callable[[], Array]) -> Contestant:
    """Make the contestant that calls a function of the whole motion, which returns an array."""
    latest: list[Array] = []

    def run() -> None:
        latest[:] = [function()]

    return Contestant(name, motion.shape[1] - 3, len(motion), run, lambda: latest[0])
