"""Derivatives of recordings: the smoother beside Savitzky-Golay filters and smoothing splines.

    python -m benchmarks.smoothing [--size full] [-o doc/benchmarks/smoothing.inc]

Eight motions as robots make them (`estimation.motions`, and two that move and pause together) are
recorded with white, quantised and correlated noise. The first table says how many errors are
within 1.96 of the standard deviations that are stated, over all samples and over the first and
last 0.1 s. The second one compares RMS errors, relative to the RMS of the true derivative, in the
geometric mean over the motions. The Savitzky-Golay filters have the window and the degree with the
least error of each motion and order, chosen by the truth; the smoothing spline (scipy's
`make_smoothing_spline`) its own rule, generalised cross-validation.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.signal import savgol_filter

from benchmarks.estimation import geometric_mean, motions, relative_errors, rest_to_rest
from benchmarks.report import grid, options
from hodyn_ros.trajectory.smoother import Smoother

Array = NDArray[np.float64]

ORDERS = 5
DEGREES = (3, 5, 7)
WINDOWS = 14
LONGEST = 0.8  # window of a filter [s]
AT_ENDS = 0.1  # s
MOST_FOR_SPLINE = 1000


class Case(NamedTuple):
    """A recording."""

    rate: int
    """[Hz]"""
    kind: str
    """'white', 'quantised' or 'correlated'."""
    noise: float
    """Standard deviation, or the step [rad]."""
    memory: float = 0.0
    """Time constant of correlated noise [s]."""


CASES = (
    Case(100, 'white', 1e-4),
    Case(1000, 'white', 1e-5),
    Case(1000, 'white', 1e-3),
    Case(250, 'quantised', 1e-4),
    Case(1000, 'quantised', 1e-3),
    Case(1000, 'correlated', 1e-4, 0.01),
    Case(250, 'correlated', 1e-4, 0.012),
)


class Size(NamedTuple):
    """What is measured."""

    cases: tuple[Case, ...]
    seeds: int
    duration: float
    """[s]"""
    long: float
    """Of the recording at 1 kHz whose time is taken [s]."""


SIZES = {
    'tiny': Size(CASES[:1], 1, 2.0, 2.0),
    'quick': Size(CASES, 2, 4.0, 600.0),
    'full': Size(CASES, 6, 8.0, 600.0),
}


def recorded(
    case: Case, duration: float, seed: int
) -> tuple[NDArray[np.int64], Array, Array]:
    """Stamps [ns], the truth (N, 5, 8) and positions (N, 8)."""
    rng = np.random.default_rng(seed)
    t = np.arange(round(duration * case.rate)) / case.rate + rng.uniform(0.0, 3.0)
    truth = np.concatenate([motions(t), rest_to_rest(t)[:, :, [1, 3]]], axis=2)
    values = truth[:, 0]
    if case.kind == 'quantised':
        values = case.noise * np.round(values / case.noise)
    else:
        noise = rng.standard_normal(values.shape)
        rho = np.exp(-1.0 / (case.rate * case.memory)) if case.memory else 0.0
        for i in range(1, len(noise)):
            noise[i] = rho * noise[i - 1] + np.sqrt(1.0 - rho**2) * noise[i]
        values = values + case.noise * noise
    return np.rint(1e9 * t).astype(np.int64), truth, values


def savitzky_golay(rate: int, values: Array, truth: Array) -> Array:
    """Least relative errors (5, 8) of any window and degree."""
    best = np.full((ORDERS, values.shape[1]), np.inf)
    halves = np.unique(np.round(np.geomspace(2, LONGEST * rate / 2.0, WINDOWS)).astype(int))
    for length in (2 * halves + 1).tolist():
        for degree in (degree for degree in DEGREES if degree < length <= len(values)):
            for order in range(min(ORDERS, degree + 1)):
                found = savgol_filter(values, length, degree, order, 1.0 / rate, axis=0)
                errors = relative_errors(found - truth[:, order], truth[:, order])
                best[order] = np.minimum(best[order], errors)
    return best


def smoothing_spline(times: Array, values: Array, truth: Array) -> Array:
    """Relative errors (5, 8) of cubic smoothing splines; their fourth derivative is zero."""
    from scipy.interpolate import make_smoothing_spline

    errors = np.full((ORDERS, values.shape[1]), np.nan)
    if len(times) > MOST_FOR_SPLINE:  # its time grows faster than their number
        return errors
    for j, column in enumerate(values.T):
        curve = make_smoothing_spline(times, column)
        for order in range(ORDERS):
            found = curve(times, nu=order)[:, None]
            true = truth[:, order, j : j + 1]
            errors[order, j] = relative_errors(found - true, true)[0]
    return errors


def measure(size: Size) -> tuple[list[list[str]], list[list[str]]]:
    """Rows of both tables."""
    orders = [str(order) for order in range(ORDERS)]
    covered = [['Hz', 'noise', '[rad]', 'samples', *orders]]
    errors = [['Hz', 'noise', '[rad]', 'method', *orders]]
    for case in size.cases:
        shares: dict[str, list[Array]] = {'all': [], f'first and last {AT_ENDS:g} s': []}
        found: dict[str, list[Array]] = {
            'smoother': [],
            'Savitzky-Golay': [],
            'smoothing spline': [],
        }
        for seed in range(size.seeds):
            stamps, truth, values = recorded(case, size.duration, seed)
            parts = list(Smoother(stamps, values).blocks())
            error = np.concatenate([part.motion for part in parts]) - truth
            inside = np.abs(error) < 1.96 * np.concatenate([part.std for part in parts])
            ends = round(AT_ENDS * case.rate)
            both = np.concatenate([inside[:ends], inside[-ends:]])
            for share, which in zip(shares.values(), (inside, both)):
                share.append(which.mean(axis=(0, 2)))
            times = 1e-9 * (stamps - stamps[0])
            for name, one in zip(
                found,
                (
                    relative_errors(error, truth),
                    savitzky_golay(case.rate, values, truth),
                    smoothing_spline(times, values, truth),
                ),
            ):
                found[name].append(geometric_mean(one))
        head = [str(case.rate), case.kind, f'{case.noise:g}']
        for name, rows in shares.items():
            covered.append(
                [*head, name, *(f'{100.0 * x:.1f} %' for x in np.mean(rows, axis=0))]
            )
        for name, rows in found.items():
            errors.append(
                [
                    *head,
                    name,
                    *('-' if np.isnan(x) else f'{x:.1e}' for x in np.mean(rows, axis=0)),
                ]
            )
        print(' '.join(head), flush=True)
    return covered, errors


def duration_of(seconds: float) -> str:
    """Say how long seven joints at 1 kHz take, steps that are even and others."""
    text = []
    for jitter in (0.0, 0.3):
        rng = np.random.default_rng(0)
        t = (np.arange(round(1000 * seconds)) + jitter * rng.uniform(-0.5, 0.5, 1)) / 1000.0
        t = t + jitter * rng.uniform(-0.0005, 0.0005, len(t))
        values = np.concatenate([motions(t)[:, 0], rest_to_rest(t)[:, 0, :1]], axis=1)
        values += 1e-5 * rng.standard_normal(values.shape)
        stamps = np.rint(1e9 * (t + 1.0)).astype(np.int64)
        for _ in Smoother(stamps[:2000], values[:2000]).blocks():
            pass  # compiled
        start, used = time.monotonic(), time.process_time()
        for _ in Smoother(stamps, values).blocks():
            pass
        name = 'jittering' if jitter else 'even'
        text.append(
            f'{name} steps {time.monotonic() - start:.1f} s ({time.process_time() - used:.1f} s '
            'of the processor)'
        )
    return f'{seconds:g} s at 1000 Hz, seven joints: {", ".join(text)}'


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the tables and write them."""
    description = 'Derivatives of recordings: coverage of standard deviations, and errors.'
    chosen = options(
        arguments, 'smoothing', description, SIZES, 'number and length of recordings'
    )
    covered, errors = measure(SIZES[chosen.size])
    text = '\n'.join(
        [grid(covered), grid(errors), duration_of(SIZES[chosen.size].long), '']
    )
    print('\n' + text)
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    chosen.output.write_text(text, encoding='utf-8')
    print(f'Written: {chosen.output}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
