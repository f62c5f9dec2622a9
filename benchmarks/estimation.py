"""Errors of estimated derivatives: the estimator beside Savitzky-Golay filters and differences.

    python -m benchmarks.estimation [--size full] [-o doc/benchmarks/estimation.inc]

Six motions as robots make them are measured with noise at regular times. Every method estimates
the value and its first four derivatives. Errors are RMS over time, relative to the RMS of the true
derivative, in the geometric mean over the motions.

A third table holds streams as encoders give them: rounded, with pauses, with single wrong values.

The Savitzky-Golay filters get what no one has in practice: for every motion, rate, noise and order
of the derivative the window and the degree with the least error, chosen by the truth.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BPoly
from scipy.signal import lfilter, savgol_coeffs

from benchmarks.report import grid, options
from hodyn_ros.trajectory.estimator import DerivativeEstimator
from hodyn_ros.trajectory.spline import fit_spline

Array = NDArray[np.float64]

ORDERS = 5
DEGREES = (2, 3, 4, 5, 6, 7)
WINDOWS = 14  # number that is tried
SETTLED = 1.5  # s from which on errors count
EVERYTHING = 1e12  # vouched fraction that vouches for all


class Stream(NamedTuple):
    """Joints that move from rest to rest, as encoders see them."""

    rate: int
    """[Hz]"""
    step: float
    """To which positions are rounded [rad]; 0: they are not."""
    noise: float
    """Standard deviation before that [rad]."""
    wrong: float
    """Share of the values that are off by `WRONG`."""


STREAMS = (
    *(
        Stream(rate, step, 0.0, 0.0)
        for rate in (100, 500, 1000)
        for step in (1e-5, 1e-4, 1e-3)
    ),
    Stream(500, 1e-4, 3e-5, 0.0),
    Stream(500, 1e-4, 1e-4, 0.0),
    *(Stream(500, 0.0, noise, wrong) for noise in (1e-5, 1e-4) for wrong in (0.0, 0.001)),
    Stream(500, 1e-4, 0.0, 0.001),
    Stream(100, 1e-4, 1e-4, 0.001),
)
WRONG = 0.05  # rad


class Size(NamedTuple):
    """What is measured."""

    rates: tuple[int, ...]
    """[Hz]"""
    noises: tuple[float, ...]
    """Standard deviations [rad]."""
    delays: tuple[float, ...]
    """Of the estimator, whole numbers of steps [s]."""
    duration: float
    """[s]"""
    streams: tuple[Stream, ...] = ()


SIZES = {
    'tiny': Size((100,), (1e-4,), (0.1,), 3.0, (Stream(100, 1e-4, 1e-5, 0.001),)),
    'quick': Size((100, 1000), (1e-6, 1e-4, 1e-3), (0.0, 0.1), 6.0, STREAMS[::3]),
    'full': Size((100, 1000), (1e-6, 1e-5, 1e-4, 1e-3), (0.0, 0.1), 20.0, STREAMS),
}


class Row(NamedTuple):
    """Errors of a method in a case."""

    rate: int
    noise: float
    method: str
    delay: float
    """In the mean over what it was chosen for [s]."""
    errors: Array
    """Relative RMS error of each order, geometric mean over the motions, shape (5,)."""


class Honesty(NamedTuple):
    """How the estimator judges itself in a case."""

    rate: int
    noise: float
    delay: float
    vouched: Array
    """Share of the time for which each order is vouched for, shape (5,)."""
    coverage: Array
    """Share of these estimates with an error below two standard deviations, NaN: there are none,
    shape (5,)."""
    ratio: Array
    """RMS error over RMS standard deviation, vouched for or not, geometric mean over the motions,
    shape (5,)."""


def motions(t: Array) -> Array:
    """Three sinusoids, a smooth random motion, and two that rest in between.

    Parameters
    ----------
    t : ndarray, shape (N,)
        [s]

    Returns
    -------
    ndarray, shape (N, 5, 6)
        Positions and four derivatives [rad/s^k].
    """
    k = np.arange(ORDERS)
    parts = []
    for frequency, amplitude in ((0.2, 0.8), (0.7, 0.5), (2.0, 0.2)):
        w = 2.0 * np.pi * frequency
        parts.append(
            amplitude * w**k * np.sin(w * t[:, None] + frequency + 0.5 * np.pi * k)
        )
    rng = np.random.default_rng(1)
    times = np.concatenate(
        [[-2.0], np.cumsum(rng.uniform(0.6, 1.4, int(2.0 * t[-1]) + 8)) - 1.0]
    )
    spline = fit_spline(times, rng.uniform(-0.5, 0.5, (len(times), 1)))
    parts.append(spline(t)[:, :, 0])
    parts += [_there_and_back(t, 0.8, 1.0, 1.0), _there_and_back(t, 0.3, 1.5, 0.5)]
    return np.stack(parts, axis=2)


def rest_to_rest(t: Array) -> Array:
    """Six joints that move together and pause, from 1.2 down to 0.03 rad; shape (N, 5, 6)."""
    moves = _there_and_back(t, 1.0, 1.2, 1.8)[..., None] * [1.2, 0.8, 0.5, 0.3, 0.1, 0.03]
    # Anywhere between two steps.
    moves[:, 0] += np.random.default_rng(5).uniform(-1.0, 1.0, 6)
    return moves


def _there_and_back(t: Array, distance: float, duration: float, pause: float) -> Array:
    """Rest, move from rest to rest, rest, move back; class C4; shape (N, 5)."""
    curve = BPoly.from_derivatives(
        [0.0, duration], [[0.0] * ORDERS, [distance] + [0.0] * (ORDERS - 1)]
    )
    cycle, phase = np.divmod(t, duration + pause)
    moves = np.clip(phase - pause, 0.0, duration)
    values = np.stack([curve(moves, k) for k in range(ORDERS)], axis=1)
    back = cycle % 2 == 1
    values[back] *= -1.0
    values[back, 0] += distance
    return values


def relative_errors(errors: Array, truth: Array) -> Array:
    """RMS over time, relative to the truth; (N, ..., 6) to (..., 6)."""
    ratio: Array = np.sqrt(np.mean(errors**2, axis=0) / np.mean(truth**2, axis=0))
    return ratio


def geometric_mean(values: Array) -> Array:
    """Over the motions, the last axis."""
    mean: Array = np.exp(np.mean(np.log(values), axis=-1))
    return mean


def differences(rate: int, values: Array, truth: Array) -> tuple[Array, float]:
    """Backward differences of each order, shape (5, 6), and their mean delay."""
    errors = []
    for order in range(ORDERS):
        found = np.diff(values, order, axis=0) * float(rate) ** order
        first = max(order, round(SETTLED * rate))
        errors.append(
            relative_errors(
                found[first - order :] - truth[first:, order], truth[first:, order]
            )
        )
    return np.array(errors), 0.0


def savitzky_golay(
    rate: int, values: Array, truth: Array, longest: float, centred: bool
) -> tuple[Array, float]:
    """Best Savitzky-Golay filter for each order and motion.

    Parameters
    ----------
    rate : int
        [Hz]
    values : ndarray, shape (N, 6)
    truth : ndarray, shape (N, 5, 6)
    longest : float
        Window [s].
    centred : bool
        Whether the estimate belongs to the centre of the window or to its end.

    Returns
    -------
    errors : ndarray, shape (5, 6)
    delay : float
        In the mean over orders and motions [s].
    """
    best, delays = np.full((ORDERS, 6), np.inf), np.zeros((ORDERS, 6))
    halves = np.unique(np.round(np.geomspace(2, longest * rate / 2.0, WINDOWS)).astype(int))
    first = round(SETTLED * rate)
    for half in halves:
        length = 2 * int(half) + 1
        shift = int(half) if centred else 0
        for degree in (degree for degree in DEGREES if degree < length):
            for order in range(min(ORDERS, degree + 1)):
                weights = savgol_coeffs(
                    length, degree, order, 1.0 / rate, length - 1 - shift, use='conv'
                )
                found = lfilter(weights, 1.0, values, axis=0)[max(first, length) :]
                true = truth[max(first, length) - shift : len(truth) - shift, order]
                errors = relative_errors(found - true, true)
                better = errors < best[order]
                best[order, better] = errors[better]
                delays[order, better] = shift / rate
    return best, float(delays.mean())


def estimator_run(
    rate: int, values: Array, truth: Array, delay: float, fraction: float | None
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Errors (N, 5, 6), standard deviations (N, 5, 6) and what is vouched for (N, 5).

    With a fraction, every standard deviation up to that is vouched for.
    """
    stamps = [round(1e9 * i / rate) for i in range(len(values))]
    given = {} if fraction is None else {'vouched_fraction': fraction}
    estimator = DerivativeEstimator(values.shape[1], delay=delay, **given)
    shift = round(delay * rate)
    first = round(SETTLED * rate)
    shape = (len(values) - first, ORDERS, values.shape[1])
    errors, std = np.zeros(shape), np.ones(shape)
    vouched = np.zeros(shape[:2], dtype=np.bool_)
    for i, (stamp, value) in enumerate(zip(stamps, values)):
        estimate = estimator.update(stamp, value)
        if estimate is not None and i >= first:
            K = estimate.valid_order + 1
            errors[i - first, :K] = estimate.motion - truth[i - shift, :K]
            std[i - first, :K] = estimate.std
            vouched[i - first, :K] = True
    return errors, std, vouched


def measure(
    size: Size, say: Callable[[str], object] = print
) -> tuple[list[Row], list[Honesty]]:
    """Measure all cases."""
    rows, honesty = [], []
    for rate in size.rates:
        truth = motions(np.arange(round(size.duration * rate)) / rate)
        for noise in size.noises:
            say(f'{rate} Hz, noise {noise:g} rad')
            rng = np.random.default_rng(rate)
            values = truth[:, 0] + noise * rng.standard_normal(truth[:, 0].shape)
            found = {
                'differences': differences(rate, values, truth),
                'Savitzky-Golay, at the end': savitzky_golay(
                    rate, values, truth, 1.0, False
                ),
                'Savitzky-Golay, in the middle': savitzky_golay(
                    rate, values, truth, 2.0 * max(size.delays), True
                ),
            }
            first = round(SETTLED * rate)
            for delay in size.delays:
                errors, std, _ = estimator_run(rate, values, truth, delay, EVERYTHING)
                shift = round(delay * rate)
                true = truth[first - shift : len(truth) - shift]
                found[f'estimator, delay {delay:g} s'] = (
                    relative_errors(errors, true),
                    delay,
                )
                ratio = np.sqrt(np.mean(errors**2, axis=0) / np.mean(std**2, axis=0))
                errors, std, vouched = estimator_run(rate, values, truth, delay, None)
                coverage = _of_vouched(np.abs(errors) < 2.0 * std, vouched)
                honesty.append(
                    Honesty(
                        rate,
                        noise,
                        delay,
                        vouched.mean(axis=0),
                        coverage,
                        geometric_mean(ratio),
                    )
                )
            rows += [
                Row(rate, noise, name, delay, geometric_mean(errors))
                for name, (errors, delay) in found.items()
            ]
    return rows, honesty


def _of_vouched(values: Array, vouched: NDArray[np.bool_]) -> Array:
    """Mean of each order where it is vouched for, NaN: nowhere; (N, 5, 6) and (N, 5) to (5,)."""
    return np.array(
        [
            values[vouched[:, k], k].mean() if vouched[:, k].any() else np.nan
            for k in range(ORDERS)
        ]
    )


def measure_streams(size: Size, delay: float = 0.1) -> list[list[str]]:
    """Rows of the table of the streams: vouched, covered, RMS and largest error over std."""
    heads = ('Hz', 'step', 'noise', 'wrong', 'of each order')
    lines = [[*heads, *(str(k) for k in range(ORDERS))]]
    for case in size.streams:
        # It begins in a motion: what stands still from the start has shown no step yet.
        truth = rest_to_rest(1.5 + np.arange(round(size.duration * case.rate)) / case.rate)
        rng = np.random.default_rng(case.rate)
        values = truth[:, 0] + case.noise * rng.standard_normal(truth[:, 0].shape)
        values += WRONG * (rng.random(values.shape) < case.wrong)
        if case.step:
            values = case.step * np.round(values / case.step)
        errors, std, vouched = estimator_run(case.rate, values, truth, delay, None)
        ratio = np.abs(errors / std)
        largest = np.where(vouched[..., None], ratio, 0.0).max(axis=(0, 2))
        parts = {
            'vouched': [f'{100.0 * share:.0f} %' for share in vouched.mean(axis=0)],
            'covered': [
                f'{100.0 * share:.0f} %' for share in _of_vouched(ratio < 2.0, vouched)
            ],
            'error/std': [
                f'{value:.2f}' for value in np.sqrt(_of_vouched(ratio**2, vouched))
            ],
            'largest': [f'{value:.0f}' for value in largest],
        }
        wrong = f'{100.0 * case.wrong:g} %'
        for head, part in parts.items():
            case_of = [str(case.rate), f'{case.step:g}', f'{case.noise:g}', wrong, head]
            lines.append([*case_of, *('-' if 'nan' in text else text for text in part)])
    return lines


def error_text(rows: Sequence[Row]) -> str:
    """Table of the errors."""
    lines = [['Hz', 'noise', 'method', 'delay', *(f'order {k}' for k in range(ORDERS))]]
    for row in rows:
        errors = [f'{error:.1e}' for error in row.errors]
        lines.append(
            [str(row.rate), f'{row.noise:.0e}', row.method, f'{row.delay:.2f} s', *errors]
        )
    return grid(lines)


def honesty_text(found: Sequence[Honesty]) -> str:
    """Table of what is vouched for and how honest it is."""
    heads = ('vouched', 'covered', 'error/std')
    lines = [['Hz', 'noise', 'delay', 'of each order', *(str(k) for k in range(ORDERS))]]
    for case in found:
        parts = (
            [f'{100.0 * share:.0f} %' for share in case.vouched],
            [
                '-' if np.isnan(share) else f'{100.0 * share:.0f} %'
                for share in case.coverage
            ],
            [f'{ratio:.2f}' for ratio in case.ratio],
        )
        for head, part in zip(heads, parts):
            lines.append(
                [str(case.rate), f'{case.noise:.0e}', f'{case.delay:.2f} s', head, *part]
            )
    return grid(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the tables and write them."""
    description = 'Errors of estimated derivatives, ours and those of other filters.'
    meaning = 'number of cases'
    chosen = options(arguments, 'estimation', description, SIZES, meaning)
    start = time.monotonic()
    rows, honesty = measure(SIZES[chosen.size], lambda text: print(text, flush=True))
    streams = grid(measure_streams(SIZES[chosen.size]))
    text = '\n'.join([error_text(rows), honesty_text(honesty), streams])
    print('\n' + text)
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    chosen.output.write_text(text, encoding='utf-8')
    print(f'{time.monotonic() - start:.0f} s. Written: {chosen.output}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
