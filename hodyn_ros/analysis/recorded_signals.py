"""Recorded samples of a stream, differenced as the controller of a robot does it.

A robot that takes a command each period T forms rates from consecutive ones, (c_i - c_{i-1}) / T
and so on. A divided difference of order k is the k-th derivative somewhere between its samples
(mean value theorem), so what exceeds a limit does so however coarse the recording is. Beside every
difference stands what rounding and noise of the samples may have added to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.checks import Array

Flags = NDArray[np.bool_]

_FEWEST_MOVES = 10  # of a column, to tell how it is rounded
_GAP = 50.0  # periods without a sample that divide a recording
_LEAP = 5  # periods by which stamps that jitter do not step
_REGULAR = 0.05  # of a period, jitter that hides no late sample
_WINDOW = 8  # samples before and behind a late one that tell whether others are missing
_AS_ONE = 0.25  # of a step, by which one over a gap may differ from the usual ones
_BLOCK = 64  # samples whose noise is estimated together
_SIGMAS = 6.0  # standard deviations of noise that a difference may be off by
_MOST_DIGITS = 11
_LONGEST_HOLD = 100  # samples; what repeats longer stands still


class Clock(NamedTuple):
    """When the N samples of a stream were due."""

    ticks: Array
    """Instants of the samples by the clock of the stream, shape (N,) [s]."""
    period: float
    """Time between samples [s]."""
    error: float
    """Relative error of the period."""
    is_cut: Flags
    """Whether a sample does not go on from the one before, shape (N,)."""
    missing: NDArray[np.intp]
    """How many samples are missing before each, while the stream moved, shape (N,)."""
    leaps: Array
    """How far the stamps stepped before each sample and the stream did not, shape (N,) [s]."""


def clock_of(times: Array, positions: Array) -> Clock:
    """Clock of a stream with stamps (N,) [s] that may be late or early, N >= 2.

    Stamps that are off by less than a period do not count; a gap that lasts does. If the positions
    (N, n) are smoother over the stamps than over equal periods, the stamps are right.
    """
    steps = np.diff(times)
    period = float(np.median(steps[steps > 0.0])) if (steps > 0.0).any() else 1.0
    N = len(times)
    cycles = np.ones(N - 1, dtype=np.intp)
    missing, leaps = np.zeros(N, dtype=np.intp), np.zeros(N)
    is_cut = np.zeros(N, dtype=np.bool_)
    late = times - period * np.arange(N)
    is_regular = float(np.median(np.abs(steps - period))) < _REGULAR * period
    for i in np.flatnonzero((steps > 1.5 * period) | (steps < -period)).tolist():
        before, after = late[max(0, i + 1 - _WINDOW) : i + 1], late[i + 1 : i + 1 + _WINDOW]
        lasting = float(np.median(after) - np.median(before))
        more = round(lasting / period)
        is_moving, share = _steps_over(positions, i)
        if is_moving and abs(share - 1.0) < _AS_ONE:
            is_step = abs(more) >= _LEAP or (is_regular and more > 0)
            leaps[i + 1] = lasting if is_step else 0.0
        elif abs(more) > _GAP or more < -_LEAP:
            is_cut[i + 1] = True
        elif more >= (1 if is_moving else _LEAP):
            cycles[i] = 1 + more
            missing[i + 1] = more if share > 1.0 + 0.5 * more else 0
    is_usual = (leaps[1:] == 0.0) & ~is_cut[1:]
    total = float(steps[is_usual].sum())
    if total > 0.0:
        period = total / float(cycles[is_usual].sum())
    jitter = float(np.median(np.abs(steps - cycles * period)))
    ticks = period * np.append(0.0, np.cumsum(cycles))
    if jitter > 1e-3 * period and (steps > 0.0).all():
        ticks = _smoother(positions, ticks, times - times[0], is_cut)
    return Clock(ticks, period, 4.0 * jitter / max(total, period), is_cut, missing, leaps)


def _smoother(positions: Array, ticks: Array, stamps: Array, is_cut: Flags) -> Array:
    """Ticks, or the stamps if positions are clearly smoother over them."""
    rough, of_stamps = (
        float(np.nanmedian(np.abs(differences(positions, t, 3, is_cut)).max(axis=1)))
        for t in (ticks, stamps)
    )
    return stamps if of_stamps < 0.5 * rough else ticks


def _steps_over(positions: Array, i: int) -> tuple[bool, float]:
    """Whether the stream moves around the step behind sample i, and that step over the usual."""
    sides = [
        positions[k + 1] - positions[k] for k in (i - 1, i + 1) if 0 <= k < len(positions) - 1
    ]
    usual = np.mean(sides, axis=0) if sides else np.zeros(positions.shape[1])
    size = float(usual @ usual)
    if size == 0.0:
        return False, 0.0
    return True, float((positions[i + 1] - positions[i]) @ usual) / size


def differences(values: Array, ticks: Array, order: int, is_cut: Flags) -> Array:
    """Divided differences of an order of samples (N, n), each at its last sample; NaN before.

    Multiplied by the factorial of the order, so that they are derivatives.
    """
    result = values
    for p in range(1, order + 1):
        result = p * np.diff(result, axis=0) / (ticks[p:] - ticks[:-p])[:, None]
    found = np.full(values.shape, np.nan)
    found[order:] = result
    for row in np.flatnonzero(is_cut).tolist():
        found[row : row + order] = np.nan
    return found


class Flaws(NamedTuple):
    """What samples (N, n) of a recording may be off by."""

    resolution: Array
    """Steps to which they are rounded, shape (n,)."""
    noise: Array
    """Standard deviations around each sample, shape (N, n)."""

    def rounding(self, order: int, period: float) -> Array:
        """Largest error of differences of an order by rounding, shape (n,)."""
        return float(0.5 * 2.0**order / period**order) * self.resolution

    def error(self, order: int, period: float) -> Array:
        """Error of differences of an order that rounding and noise hardly ever exceed, (N, n)."""
        gain = float(_SIGMAS * np.sqrt(comb(2 * order, order)) / period**order)
        return self.rounding(order, period) + gain * self.noise


def flaws_of(values: Array, is_measured: bool) -> Flaws:
    """What samples (N, n) may be off by, as they show it themselves.

    The noise of a sensor is there besides its rounding, and may move it by a step more; commands
    are what was sent, but for the rounding.
    """
    resolution, noise = resolution_of(values), noise_of(values)
    if is_measured:
        return Flaws(2.0 * resolution, noise)
    return Flaws(resolution, np.where(noise > 0.5 * resolution, noise, 0.0))


def noise_of(values: Array) -> Array:
    """Standard deviations of white noise around each sample, shape (N, n).

    From medians of fourth differences, which a few samples that are out of line do not move.
    """
    N, n = values.shape
    if N < _WINDOW:
        return np.zeros((N, n))
    fourth = np.abs(np.diff(values, 4, axis=0))
    blocks = -(-len(fourth) // _BLOCK)
    padded = np.full((blocks * _BLOCK, n), np.nan)
    padded[: len(fourth)] = fourth
    each = padded.reshape(blocks, _BLOCK, n)
    each[:, 0][np.isnan(each).all(axis=1)] = 0.0
    medians = np.zeros((blocks + 2, n))
    medians[1:-1] = np.nanmedian(each, axis=1)
    around = np.maximum(np.maximum(medians[:-2], medians[1:-1]), medians[2:])
    rows = np.minimum(np.maximum(np.arange(N) - 2, 0) // _BLOCK, blocks - 1)
    return np.asarray(around[rows] / (0.6745 * np.sqrt(70.0)))


def resolution_of(values: Array) -> Array:
    """Steps to which the columns of (N, n) are rounded, at least that of floating-point numbers.

    Recognised are decimal digits, numbers of single precision, and the steps of an encoder.
    """
    return np.array([_resolution(column[np.isfinite(column)]) for column in values.T])


def _resolution(x: Array) -> float:
    largest = float(np.abs(x).max(initial=0.0))
    least = float(np.spacing(largest))
    moves = np.abs(np.diff(x))
    if np.count_nonzero(moves) < _FEWEST_MOVES:
        return least
    found = least
    if np.array_equal(x, x.astype(np.float32)):
        found = float(np.spacing(np.float32(largest)))
    shown = x[x != 0.0]
    for digits in range(1, _MOST_DIGITS + 1):
        if all(_has_digits(part, digits) for part in (shown[:_BLOCK], shown)):
            found = max(found, 10.0 ** (np.floor(np.log10(largest)) + 1 - digits))
            break
    if found == least:
        step = float(moves[moves > least].min(initial=np.inf))
        small = moves[(moves > 0.0) & (moves < 5.5 * step)] / step
        is_whole = np.abs(small - np.rint(small)) < 0.1
        found = step if len(small) >= _FEWEST_MOVES and is_whole.mean() > 0.95 else least
    # Rounding shows: neighbouring steps differ by it, in a motion at constant speed too.
    bends = np.abs(np.diff(x, 2)) > 0.25 * found
    return found if bends.sum() > 0.02 * np.count_nonzero(moves) else least


def _has_digits(x: Array, digits: int) -> bool:
    """Whether numbers have so many significant decimal digits at most."""
    scaled = x * 10.0 ** (digits - 1 - np.floor(np.log10(np.abs(x))))
    return bool(np.abs(scaled - np.rint(scaled)).max() < 1e-3)


def moves(values: Array, resolution: Array) -> Flags:
    """Whether a column of (N, n) changes by more than rounding between samples, shape (N-1,)."""
    with np.errstate(invalid='ignore'):
        return np.asarray((np.abs(np.diff(values, axis=0)) > 4.0 * resolution).any(axis=1))


def repeats(values: Array, resolution: Array) -> Iterator[tuple[int, int, bool]]:
    """Samples that repeat the one before in all columns, in motion: row, how many, made up for.

    Made up for: the next step is as long as all those that are missing.
    """
    steps = np.diff(values, axis=0)
    is_still, is_moving = (steps == 0.0).all(axis=1), moves(values, resolution)
    edges = np.flatnonzero(np.diff(is_still.astype(np.int8)))
    for before, last in zip(edges, edges[1:]):
        count, after = int(last - before), int(last + 1)
        if not is_moving[before] or count > _LONGEST_HOLD or not is_still[last]:
            continue
        beside = [k for k in (int(before), after + 1) if k < len(steps) and is_moving[k]]
        usual = np.mean(steps[beside], axis=0)
        share = float(steps[after] @ usual) / float(usual @ usual)
        if share > 0.5:
            yield int(before) + 2, count, share > 1.0 + 0.5 * count
