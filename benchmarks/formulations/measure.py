"""Operations, errors and times of all formulations for one robot."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

from benchmarks.formulations.contestants import (
    Compiled,
    Contestant,
    Operations,
    contestants,
    evaluate,
    operations,
)
from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.engine.machine import vector_width

Array = NDArray[np.float64]

ORDERS = (0, 1, 2)
# The compiler takes minutes for larger programs.
LARGEST_COMPILED = 60_000


@dataclass(frozen=True)
class Size:
    """How much is measured.

    Attributes
    ----------
    samples : int
        Samples that a call goes through, a multiple of all lane counts.
    rounds : int
        Bursts of each program.
    burst : float
        Length of a burst [s].
    """

    samples: int = 512
    rounds: int = 31
    burst: float = 2e-3


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
    size: Size | None,
    entries: Sequence[Contestant] | None = None,
    progress: Callable[[str], object] = lambda text: None,
) -> Table:
    """Compare all formulations for one robot.

    Parameters
    ----------
    title : str
    model : RobotModel
    size : Size or None
        None: nothing is compiled and timed.
    entries : sequence of Contestant, optional
        By default all.
    progress : callable
        Is told what happens.

    Returns
    -------
    Table
    """
    n, width = model.n_joints, vector_width()
    samples = size.samples if size else 8
    motion = np.random.default_rng(n).uniform(-1.0, 1.0, (samples, max(ORDERS) + 3, n))
    motion[:, 0] *= np.pi
    rows: list[Row] = []
    timed: dict[tuple[int, int, int], Callable[[], None]] = {}
    for entry in contestants() if entries is None else entries:
        if entry.largest is not None and n > entry.largest:
            continue
        progress(f'{title}: {entry.label}')
        row = Row(entry.label, [], 0.0, [None] * len(ORDERS), [None] * len(ORDERS))
        for order in ORDERS:
            program = entry.program(model, order)
            row.operations.append(operations(program))
            given = np.ascontiguousarray(motion[:, : order + 3])
            expected = inverse_dynamics(model, given, algorithm='nth_order')
            found = [evaluate(program, model, given[:8])]
            if size and row.operations[-1].total <= LARGEST_COMPILED:
                for lanes in (1, width):
                    efforts = np.empty_like(expected)
                    run = _call(Compiled(program, model, order, lanes, width), given, efforts)
                    run()
                    found.append(efforts)
                    timed[len(rows), order, lanes] = run
            row.error = max([row.error, *(_error(efforts, expected) for efforts in found)])
        rows.append(row)
    if size:
        progress(f'{title}: timing')
        for (i, order, lanes), seconds in race(timed, size).items():
            times = rows[i].scalar if lanes == 1 else rows[i].lanes
            times[order] = seconds / samples
    return Table(title, n, width, rows)


def race(
    runs: dict[tuple[int, int, int], Callable[[], None]], size: Size
) -> dict[tuple[int, int, int], float]:
    """Median times of calls [s] that take turns in short bursts, in a new random order each round.

    What disturbs the machine for longer than a burst disturbs all of them.
    """
    generator = random.Random(0)
    keys = list(runs)
    repetitions = {}
    for key in keys:
        start = time.perf_counter()
        runs[key]()
        repetitions[key] = max(1, round(size.burst / (time.perf_counter() - start)))
    bursts: dict[tuple[int, int, int], list[float]] = {key: [] for key in keys}
    collecting = gc.isenabled()
    gc.disable()
    try:
        for _ in range(size.rounds):
            generator.shuffle(keys)
            for key in keys:
                run = runs[key]
                start = time.perf_counter()
                for _ in range(repetitions[key]):
                    run()
                bursts[key].append((time.perf_counter() - start) / repetitions[key])
    finally:
        if collecting:
            gc.enable()
    return {key: median(found) for key, found in bursts.items()}


def _call(compiled: Compiled, motion: Array, efforts: Array) -> Callable[[], None]:
    return lambda: compiled(motion, efforts)


def _error(efforts: Array, expected: Array) -> float:
    expected = expected[: len(efforts)]
    difference = np.abs(efforts - expected).max(axis=(0, 2))
    return float((difference / np.abs(expected).max(axis=(0, 2))).max())
