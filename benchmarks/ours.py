"""What hodyn_ros offers, each way to call it a contestant of its own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import Case
from benchmarks.timing import Contestant, NotInstalled
from hodyn_ros import inverse_dynamics
from hodyn_ros.dynamics.inverse import FORMULATIONS

Array = NDArray[np.float64]

SAMPLES_FROM_PYTHON = 100
# A formulation in NumPy is a hundred times as slow as compiled code.
SAMPLES_OF_FORMULATIONS = 512
ENGINE_IS_MISSING = 'hodyn_ros has no compiled engine'


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
    return [
        _of_function(
            'hodyn_ros batch', case.motion, lambda: inverse_dynamics(case.model, case.motion)
        )
    ]


def from_python(case: Case) -> list[Contestant]:
    """Make the contestant of the public function for one sample, with a new array each call."""
    model, motion = case.model, case.motion[:SAMPLES_FROM_PYTHON]
    latest: list[Array] = []

    def run() -> None:
        latest[:] = [inverse_dynamics(model, sample) for sample in motion]

    return [
        Contestant('hodyn_ros from Python', 2, len(motion), run, lambda: np.array(latest))
    ]


def from_python_out(case: Case) -> list[Contestant]:
    """Make the contestant of the public function for one sample, into a given array."""
    raise NotInstalled(ENGINE_IS_MISSING)


def generic_scalar(case: Case) -> list[Contestant]:
    """Make the contestant of the kernel for any tree, sample by sample in compiled code."""
    raise NotInstalled(ENGINE_IS_MISSING)


def generic_batch(case: Case) -> list[Contestant]:
    """Make the contestant of the kernel for any tree, vectorised across samples, one thread."""
    raise NotInstalled(ENGINE_IS_MISSING)


def specialised_scalar(case: Case) -> list[Contestant]:
    """Make the contestant of the kernel for this robot, sample by sample in compiled code."""
    raise NotInstalled(ENGINE_IS_MISSING)


def specialised_batch(case: Case) -> list[Contestant]:
    """Make the contestant of the kernel for this robot, vectorised across samples, one thread."""
    raise NotInstalled(ENGINE_IS_MISSING)


def two_threads(case: Case) -> list[Contestant]:
    """Make the contestant of the batch on two threads."""
    raise NotInstalled(ENGINE_IS_MISSING)


def numpy_straight_line(case: Case) -> list[Contestant]:
    """Make the contestant of the straight-line form for machines without a compiler."""
    raise NotInstalled(ENGINE_IS_MISSING)


ENGINE = {
    'hodyn_ros generic, scalar': generic_scalar,
    'hodyn_ros generic, batch': generic_batch,
    'hodyn_ros specialised, scalar': specialised_scalar,
    'hodyn_ros specialised, batch': specialised_batch,
    'hodyn_ros, 2 threads': two_threads,
    'hodyn_ros NumPy straight-line': numpy_straight_line,
}


def _of_function(name: str, motion: Array, function: Callable[[], Array]) -> Contestant:
    """Make the contestant that calls a function of the whole motion, which returns an array."""
    latest: list[Array] = []

    def run() -> None:
        latest[:] = [function()]

    return Contestant(name, motion.shape[1] - 3, len(motion), run, lambda: latest[0])
