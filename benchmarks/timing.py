"""Timing of several contestants in one run, so that their ratios mean something on a busy machine.

The contestants take turns in short bursts, in a new random order each round. What disturbs the
machine for longer than a burst then disturbs all of them, and the median over the bursts forgets
what disturbs a few. Bursts in which the process had to wait for a processor do not count.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


LEAST_BURSTS = 3
# Below this share of a processor something else has run in between.
UNDISTURBED = 0.97


class NotInstalled(Exception):
    """Something that a benchmark or a contestant needs is missing, with the reason."""


@dataclass(frozen=True)
class Contestant:
    """One way to compute something.

    Attributes
    ----------
    name : str
        Unique in a table.
    order : int
        Highest derivative that it computes.
    samples : int
        How many samples of the case one call of `run` goes through, from the first.
    run : callable
        What is timed.
    result : callable or None
        What the last `run` left behind, shape (samples, order + 1, n), joints in model order;
        not timed. None for what has none.
    threads : int
        How many threads it may use. With more than one, waiting is a part of the time.
    note : str
        What a reader should know, in a few words.
    """

    name: str
    order: int
    samples: int
    run: Callable[[], object]
    result: Callable[[], Array] | None
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


class Burst(NamedTuple):
    """Time per sample [s], and how many processors were busy."""

    per_sample: float
    processors: float


@dataclass(frozen=True)
class Timing:
    """Times per sample [s] over the bursts that count, and how many processors were busy."""

    median: float
    lower_quartile: float
    upper_quartile: float
    bursts: int
    processors: float


def race(
    contestants: Sequence[Contestant], effort: Effort, seed: int = 0
) -> dict[str, Timing]:
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
    bursts: dict[str, list[Burst]] = {entry.name: [] for entry in contestants}
    elapsed = dict.fromkeys(bursts, 0.0)
    shuffled, generator = list(contestants), random.Random(seed)
    collecting = gc.isenabled()
    gc.disable()
    try:
        for turn in range(effort.rounds):
            generator.shuffle(shuffled)
            for entry in shuffled:
                if turn >= LEAST_BURSTS and elapsed[entry.name] > effort.longest:
                    continue
                run, repetitions = entry.run, range(calls[entry.name])
                processor_start, start = time.process_time(), time.perf_counter()
                for _ in repetitions:
                    run()
                duration = time.perf_counter() - start
                processors = (time.process_time() - processor_start) / max(duration, 1e-9)
                elapsed[entry.name] += duration
                per_sample = duration / (calls[entry.name] * entry.samples)
                bursts[entry.name].append(Burst(per_sample, processors))
            gc.collect()
    finally:
        if collecting:
            gc.enable()
    return {entry.name: _timing(bursts[entry.name], entry.threads) for entry in contestants}


def _timing(bursts: list[Burst], threads: int) -> Timing:
    counted = sorted(bursts, key=lambda burst: -burst.processors)
    if threads == 1:
        undisturbed = sum(burst.processors >= UNDISTURBED for burst in counted)
        counted = counted[: max(LEAST_BURSTS, undisturbed)]
    times = [burst.per_sample for burst in counted]
    lower, _, upper = quantiles(times, n=4, method='inclusive')
    processors = median(burst.processors for burst in counted)
    return Timing(median(times), lower, upper, len(times), processors)


def _calls_per_burst(entry: Contestant, burst: float) -> int:
    # The first call may compile and page in, so it does not count.
    entry.run()
    start = time.perf_counter()
    entry.run()
    once = time.perf_counter() - start
    return max(1, round(burst / max(once, 1e-9)))
