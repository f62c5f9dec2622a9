"""Operations, errors and times of all formulations for one robot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.formulations.programs import (
    Compiled,
    Formulation,
    Operations,
    evaluate,
    formulations,
    operations,
)
from benchmarks.timing import Contestant, Effort, race
from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.engine.kernels import vector_width

Array = NDArray[np.float64]

ORDERS = (0, 1, 2)
# The compiler takes minutes for larger programs.
LARGEST_COMPILED = 60_000


EFFORT = Effort(rounds=31, burst=1e-3, longest=1.0)
SAMPLES = 512
# Samples that are computed without compiling.
CHECKED = 8


@dataclass
class Row:
    """What one formulation costs; all lists are by order.

    Attributes
    ----------
    label : str
    operations : list of Operations
    error : float
        Largest error of any order relative to the largest effort of that order, of the recorded
        program and of the machine code.
    scalar, lanes : list of float or None
        Time of a sample [s], one at a time and as many as a vector register holds.
    """

    label: str
    operations: list[Operations]
    error: float
    scalar: list[float | None]
    lanes: list[float | None]


@dataclass(frozen=True)
class Table:
    """All formulations for one robot.

    Attributes
    ----------
    title : str
    n : int
    width : int
        Lanes.
    rows : list of Row
        The engine first.
    """

    title: str
    n: int
    width: int
    rows: list[Row]


def measure(
    title: str,
    model: RobotModel,
    effort: Effort | None,
    entries: Sequence[Formulation] | None = None,
    progress: Callable[[str], object] = lambda text: None,
) -> Table:
    """Compare all formulations for one robot.

    Parameters
    ----------
    title : str
    model : RobotModel
    effort : Effort or None
        None: nothing is compiled and timed.
    entries : sequence of Formulation, optional
        By default all.
    progress : callable
        Is told what happens.

    Returns
    -------
    Table
    """
    n, width = model.n_joints, vector_width()
    samples = SAMPLES if effort else CHECKED
    motion = np.random.default_rng(n).uniform(-1.0, 1.0, (samples, max(ORDERS) + 3, n))
    motion[:, 0] *= np.pi
    rows: list[Row] = []
    timed: list[Contestant] = []
    times: dict[str, tuple[list[float | None], int]] = {}
    for entry in formulations() if entries is None else entries:
        if entry.largest is not None and n > entry.largest:
            continue
        progress(f'{title}: {entry.label}')
        row = Row(entry.label, [], 0.0, [None] * len(ORDERS), [None] * len(ORDERS))
        for order in ORDERS:
            program = entry.program(model, order)
            row.operations.append(operations(program))
            given = np.ascontiguousarray(motion[:, : order + 3])
            expected = inverse_dynamics(model, given, algorithm='nth_order')
            found = [evaluate(program, model, given[:CHECKED])]
            if effort and row.operations[-1].total <= LARGEST_COMPILED:
                for lanes in (1, width):
                    efforts = np.empty_like(expected)
                    run = Compiled(program, model, lanes, width, given, efforts)
                    run()
                    found.append(efforts)
                    name = f'{entry.label}, {order}, {lanes}'
                    timed.append(Contestant(name, order, samples, run, _result(efforts)))
                    times[name] = (row.scalar if lanes == 1 else row.lanes, order)
            row.error = max([row.error, *(_error(efforts, expected) for efforts in found)])
        rows.append(row)
    if effort:
        progress(f'{title}: timing')
        for name, timing in race(timed, effort).items():
            row_times, order = times[name]
            row_times[order] = timing.median
    return Table(title, n, width, rows)


def _result(efforts: Array) -> Callable[[], Array]:
    return lambda: efforts


def _error(efforts: Array, expected: Array) -> float:
    expected = expected[: len(efforts)]
    difference = np.abs(efforts - expected).max(axis=(0, 2))
    return float((difference / np.abs(expected).max(axis=(0, 2))).max())
