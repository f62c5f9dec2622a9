"""Timing of several contestants in one run, so that their ratios mean something on a busy machine.

The contestants take turns in short bursts, in a new random order each round. What disturbs the
machine for longer than a burst then disturbs all of them, and the median over the bursts forgets
what disturbs a few.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class NotInstalled(Exception):
    """A contestant that cannot take part, with the reason."""


@dataclass(frozen=True)
class Contestant:
    """One way to compute efforts.

    Attributes
    ----------
    name : str
        Unique in a table.
    order : int
        Highest derivative of the efforts that it computes.
    samples : int
        How many samples of the case one call of `run` goes through, from the first.
    run : callable
        What is timed.
    result : callable
        Efforts that the last `run` left behind, shape (samples, order + 1, n), joints in model
        order; not timed.
    threads : int
        How many threads it may use.
    note : str
        What a reader should know, in a few words.
    """

    name: str
    order: int
    samples: int
    run: Callable[[], object]
    result: Callable[[], Array]
    threads: int = 1
    note: str = ''


@dataclass(frozen=True)
class Effort:
    """How much is measured.

    Attributes
    ----------
    rounds : int
        Bursts of each contestant.
    burst : float
        Length of a burst [s]; a single call may take longer.
    longest : float
        Time for one contestant [s], after which it sits out the remaining rounds, but takes part
        in at least three.
    """

    rounds: int
    burst: float
    longest: float


@dataclass(frozen=True)
class Timing:
    """Times per sample [s] over the bursts, and how many processors were busy."""

    median: float
    lower_quartile: float
    upper_quartile: float
    bursts: int
    processors: float


def race(contestants: Sequence[Contestant], effort: Effort, seed: int = 0) -> dict[str, Timing]:
    """Time the contestants in turns.

    Parameters
    ----------
    contestants : sequence of Contestant
    effort : Effort
    seed : int
        Of the order in which they take turns.

    Returns
    -------
    dict of str to Timing
        By the name of the contestant.
    """
    calls = {entry.name: _calls_per_burst(entry, effort.burst) for entry in contestants}
    bursts: dict[str, list[float]] = {entry.name: [] for entry in contestants}
    elapsed = dict.fromkeys(bursts, 0.0)
    busy = dict.fromkeys(bursts, 0.0)
    shuffled, generator = list(contestants), random.Random(seed)
    collecting = gc.isenabled()
    gc.disable()
    try:
        for turn in range(effort.rounds):
            generator.shuffle(shuffled)
            for entry in shuffled:
                if turn >= 3 and elapsed[entry.name] > effort.longest:
                    continue
                run, repetitions = entry.run, range(calls[entry.name])
                processor_start, start = time.process_time(), time.perf_counter()
                for _ in repetitions:
                    run()
                duration = time.perf_counter() - start
                busy[entry.name] += time.process_time() - processor_start
                elapsed[entry.name] += duration
                bursts[entry.name].append(duration / (calls[entry.name] * entry.samples))
            gc.collect()
    finally:
        if collecting:
            gc.enable()
    return {
        name: _timing(values, busy[name] / max(elapsed[name], 1e-9))
        for name, values in bursts.items()
    }


def _timing(bursts: list[float], processors: float) -> Timing:
    if len(bursts) > 1:
        lower, _, upper = quantiles(bursts, n=4, method='inclusive')
    else:
        lower = upper = bursts[0]
    return Timing(median(bursts), lower, upper, len(bursts), processors)


def _calls_per_burst(entry: Contestant, burst: float) -> int:
    # The first call may compile and page in, so it does not count.
    entry.run()
    start = time.perf_counter()
    entry.run()
    once = time.perf_counter() - start
    return max(1, round(burst / max(once, 1e-9)))
