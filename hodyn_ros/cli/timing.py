"""Times functions that take turns, so that their ratios mean something on a busy machine.

Bursts of calls are short, and those in which something else had the processor do not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import median

BURST = 0.001
"""Length of a burst of calls [s]."""
LEAST_ROUNDS = 5
UNDISTURBED = 0.97
"""Share of the processor below which something else has run in between."""

_TRIALS = 5


def times_of(
    functions: Mapping[str, Callable[[], object]],
    seconds: float,
    progress: Callable[[float], None] = lambda part: None,
) -> dict[str, float]:
    """Median time of one call of each function.

    Parameters
    ----------
    functions : mapping of str to callable
        Each is called a few times before it is timed.
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
        shortest = min(_burst(function, 1)[0] for _ in range(_TRIALS))
        counts[name] = max(1, int(BURST / max(shortest, 1e-9)))
    bursts: dict[str, list[tuple[float, bool]]] = {name: [] for name in functions}
    start = time.perf_counter()
    rounds = 0
    while rounds < LEAST_ROUNDS or time.perf_counter() - start < seconds:
        for name, function in functions.items():
            bursts[name].append(_burst(function, counts[name]))
        rounds += 1
        progress(min(rounds / LEAST_ROUNDS, (time.perf_counter() - start) / seconds, 1.0))
    progress(1.0)
    return {name: _typical(values) for name, values in bursts.items()}


def _typical(bursts: list[tuple[float, bool]]) -> float:
    """Median of the undisturbed bursts, if there are enough of them."""
    undisturbed = [seconds for seconds, is_undisturbed in bursts if is_undisturbed]
    enough = len(undisturbed) >= LEAST_ROUNDS
    return median(undisturbed if enough else [seconds for seconds, _ in bursts])


def _burst(function: Callable[[], object], count: int) -> tuple[float, bool]:
    """Time of one of so many calls, and whether nothing else had the processor."""
    processor, start = time.process_time(), time.perf_counter()
    for _ in range(count):
        function()
    passed = time.perf_counter() - start
    return passed / count, time.process_time() - processor >= UNDISTURBED * passed
