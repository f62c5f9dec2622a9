"""Uniform scaling of a function of time: where it is examined.

Between knots a motion is smooth, so some places of every segment show what happens on it, however
many segments there are. Between these places a limit is exceeded by a little more than at them. So
the samples close in on every peak that may lead beyond its limit, judged by how far it stands
above its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.analysis.scaling_dynamics import Quantity
from hodyn_ros.analysis.scaling_search import (
    RATES,
    FactorIntervals,
    UniformScaling,
    in_both,
    kept_intervals,
    limiting_of,
    smallest_factor,
)
from hodyn_ros.errors import DeflectionError

Array = NDArray[np.float64]

Examined = Callable[[Array], Sequence[Quantity]]

PLACES = 16
"""On each segment between knots; fewer where there are more than `MOST_PLACES` in all."""
MOST_PLACES, FEWEST_PLACES = 32_768, 5

# Times that are examined together, which bounds the memory, and how many of these are remembered.
_BLOCK, _REMEMBERED = 4096, 4
# How many times fewer rates are evaluated for all of them than for the peaks.
_FEWER = 4
# Ratio to the limit from which on a peak is looked at in any case, and how many at most at a time.
_NEAR = 0.99
_MOST_PEAKS = 4000
# Samples to each side of a peak, and how often they close in on it by this factor.
_AROUND = 5
_ROUNDS = 5
# Passes along the whole motion, each at the factor that the peaks of the last one ask for, and the
# change of the factor, relative, below which there are no more.
_PASSES = 5
_SETTLED = 1e-6


def with_segments(times: Array, knots: Array | None) -> Array:
    """Add places of every segment between knots to times at which a motion is examined.

    Parameters
    ----------
    times : ndarray, shape (N,)
    knots : ndarray, shape (L + 1,), optional
        Increasing.

    Returns
    -------
    ndarray, shape (M,)
        With up to `PLACES` of each segment, its start and its end included, from the first to the
        last of the times. Derivatives may jump at a knot, so that it counts twice: as it is, and
        as the last number before it.
    """
    if knots is None:
        return times
    places = int(np.clip(MOST_PLACES // (len(knots) - 1), FEWEST_PLACES, PLACES))
    fractions = np.arange(places - 1) / (places - 1)
    inside = knots[:-1, None] + np.diff(knots)[:, None] * fractions
    before = np.maximum(np.nextafter(knots[1:], -np.inf), knots[:-1])
    every = np.concatenate((times, inside.ravel(), before, knots[-1:]))
    return np.unique(every[(every >= times[0]) & (every <= times[-1])])


def scaling_in_time(examined: Examined, times: Array) -> UniformScaling:
    """Scale a function of time uniformly.

    Parameters
    ----------
    examined : callable
        Limited quantities at some times.
    times : ndarray, shape (N,)
        At which the motion is examined at first, increasing.

    Returns
    -------
    UniformScaling
        Its limiting sample is without meaning, its time is not.

    Raises
    ------
    ScalingError
        If there is no factor.
    """
    starts = range(0, len(times), _BLOCK)
    # Each block knows a neighbour on both sides, to see which of its samples are peaks.
    blocks = [times[max(start - 1, 0) : start + _BLOCK + 1] for start in starts]

    @lru_cache(maxsize=_REMEMBERED)
    def of_block(number: int) -> Sequence[Quantity]:
        return examined(blocks[number])

    intervals: FactorIntervals = ((0.0, np.inf),)
    for number, block in enumerate(blocks):
        quantities = of_block(number)
        known, few = intervals[0][0], RATES // _FEWER
        more = kept_intervals(quantities, [block] * len(quantities), known, few)
        intervals = in_both(intervals, more)
    for _ in range(_PASSES):
        factor = smallest_factor(intervals)
        if factor == 0.0:
            return UniformScaling(factor, None, intervals)
        found = [
            _peaks(of_block(number), block, 1.0 / factor) for number, block in enumerate(blocks)
        ]
        peaks = _closed_in(examined, _highest(found), 1.0 / factor, (times[0], times[-1]))
        for block in np.array_split(peaks, -(-len(peaks) // _BLOCK)):
            quantities = examined(block)
            more = kept_intervals(quantities, [block] * len(quantities), intervals[0][0])
            intervals = in_both(intervals, more)
        settled = abs(smallest_factor(intervals) - factor) <= _SETTLED * factor
        if settled:
            break
    factor = smallest_factor(intervals)
    quantities = examined(peaks)
    limiting = limiting_of(quantities, factor, [peaks] * len(quantities))
    return UniformScaling(factor, limiting, intervals)


def _peaks(quantities: Sequence[Quantity], times: Array, s: float) -> Array:
    """Peaks in time of what may exceed its limit next to them, and the highest value.

    Returns
    -------
    ndarray, shape (P, 6)
        Number of the quantity, column, time, distance to the farther neighbour, ratio to the limit
        and how large this may be next to it.
    """
    steps = np.concatenate(([0.0], np.diff(times), [0.0]))
    width = np.maximum(steps[:-1], steps[1:])
    found = []
    for number, item in enumerate(quantities):
        ratio = np.abs(item.values(s)) / item.limit
        padded = np.pad(ratio, ((1, 1), (0, 0)), mode='edge')
        before, behind = padded[:-2], padded[2:]
        # A parabola through three samples rises above the middle one by less than an eighth of
        # what that one stands above both; the whole of it leaves room for narrower peaks.
        possible = ratio + (ratio - np.minimum(before, behind))
        is_peak = (ratio >= before) & (ratio >= behind)
        is_peak &= (possible > 1.0) | (ratio > _NEAR)
        is_peak.flat[ratio.argmax()] = True
        sample, column = np.nonzero(is_peak)
        kind = np.full(len(sample), number)
        values = ratio[sample, column], possible[sample, column]
        found.append(np.column_stack((kind, column, times[sample], width[sample], *values)))
    return np.concatenate(found)


def _highest(found: Sequence[Array]) -> Array:
    """Choose those of all peaks that may be highest, and the one that is."""
    peaks = np.concatenate(found)
    highest = np.argsort(-peaks[:, 5], kind='stable')[:_MOST_PEAKS]
    return peaks[np.union1d(highest, peaks[:, 4].argmax())]


def _closed_in(examined: Examined, peaks: Array, s: float, ends: tuple[float, float]) -> Array:
    """Find the times of peaks as exactly as samples can tell."""
    offsets = np.linspace(-1.0, 1.0, 2 * _AROUND + 1)
    result = []
    for part in np.array_split(peaks, -(-len(peaks) * len(offsets) // _BLOCK)):
        kind, column = part[:, :2].astype(np.intp).T
        centre, width = part[:, 2].copy(), part[:, 3].copy()
        for _ in range(_ROUNDS):
            around = np.clip(centre[:, None] + width[:, None] * offsets, *ends)
            try:
                for number, item in enumerate(examined(around.ravel())):
                    rows = np.flatnonzero(kind == number)
                    if len(rows):
                        values = np.abs(item.values(s)).reshape(*around.shape, -1)
                        best = values[rows, :, column[rows]].argmax(axis=1)
                        centre[rows] = around[rows, best]
            except DeflectionError:
                # Somewhere around a spring is beyond its range, so all of this matters.
                result.append(around.ravel())
                break
            width /= _AROUND
        result.append(centre)
    return np.unique(np.concatenate(result))
