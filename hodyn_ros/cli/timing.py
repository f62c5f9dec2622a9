"""Times functions that take turns, so that their ratios mean something on a busy machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import median

BURST = 0.01
"""Length of a burst of calls [s]."""
LEAST_ROUNDS = 5


def times_of(
    functions: Mapping[str, Callable[[], object]],
    seconds: float,
    progress: Callable[[float], None] = lambda part: None,
) -> dict[str, float]:
    """Median time of one call of each function.

    Parameters
    ----------
    functions : mapping of str to callable
        Each is called once before it is timed.
    seconds : float
        How long all of it takes, about; each function has at least `LEAST_ROUNDS` bursts.
    progress : callable
        Gets the part that is done, from 0 to 1.

    Returns
    -------
    dict of str to float
        [s]
    """
    counts = {}
    for name, function in functions.items():
        function()
        counts[name] = max(1, int(BURST / max(_burst(function, 1), 1e-9)))
    bursts: dict[str, list[float]] = {name: [] for name in functions}
    start = time.perf_counter()
    rounds = 0
    while rounds < LEAST_ROUNDS or time.perf_counter() - start < seconds:
        for name, function in functions.items():
            bursts[name].append(_burst(function, counts[name]))
        rounds += 1
        progress(min(1.0, max(rounds / LEAST_ROUNDS, (time.perf_counter() - start) / seconds)))
    return {name: median(values) for name, values in bursts.items()}


def _burst(function: Callable[[], object], count: int) -> float:
    """Time of one of so many calls."""
    start = time.perf_counter()
    for _ in range(count):
        function()
    return (time.perf_counter() - start) / count
