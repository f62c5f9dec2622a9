"""Time derivatives of recorded measurements, with standard deviations, at every sample.

The models are those of `kalman`: the N-th derivative is white noise, of different strengths. Each
filters the recording in both directions, and what both know together is its estimate at a sample
(fixed-interval smoothing). How well it has predicted the measurements around there gives its
weight (Magill 1965, see `estimator`), and the noise. Noise may be correlated: what it remembers
over a step is identified from the recording, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.signal import lfilter

from hodyn_ros.checks import Array, checked_number, finite_array
from hodyn_ros.errors import MotionError
from hodyn_ros.trajectory.estimator import CUTOFFS
from hodyn_ros.trajectory.kalman import StepMatrices

BLOCK = 10_000
"""Samples that are smoothed together."""

# Share of the logarithm of a likelihood that counts. Coverage has decided, benchmarks/smoothing.py.
_COUNTED = 0.3
# Time over which predictions are judged, to either side, and the fewest steps; length of the
# stretches that are judged as one [s].
_MEMORY, _FEWEST_REMEMBERED, _BIN = 0.6, 30.0, 0.02
# As many measurements count for the noise of the whole recording where it is found locally.
_PRIOR = 20.0
# Fastest model that is tried, in radians from one measurement to the next.
_FASTEST = 4.0
# Time constants of correlated noise, in steps; how much more likely it has to be, in nats.
_CORRELATIONS = (0.0, 0.7, 1.2, 2.0, 3.5, 6.0, 10.0, 18.0, 30.0)
_CLEARLY = 10.0
# Stretches by which it is identified, and their samples.
_STRETCHES, _STRETCH = 8, 2_500
# Deviations by which a single value must differ from both sides, in the typical one around it and
# in steps of rounding; share of it that the values beside may differ by from what it explains.
_OUTLIER, _OUTLIER_STEPS, _UNEXPLAINED = 7.0, 3.0, 0.3
_AROUND = 25
# Interpolation from the two values before and behind.
_NEIGHBOURS = np.array([-1.0, 4.0, 0.0, 4.0, -1.0]) / 6.0
_NEGLIGIBLE = 1e-6  # weight of a model
_UNKNOWN_STEP = 0.01  # of values that never move, over the smallest motion of interest
_LEAST_VARIANCE = 1e-200
_EPS = 4.0 * float(np.finfo(np.float64).eps)


class Smoothed(NamedTuple):
    """Motion of n components at N samples, K = highest_derivative + 1."""

    motion: Array
    """Values and their derivatives, shape (N, K, n) [unit/s^k]."""
    covariance: Array
    """Of value, first, ... derivative of each component, shape (N, n, K, K)."""

    @property
    def std(self) -> Array:
        """Standard deviations of `motion`, shape (N, K, n) [unit/s^k]."""
        return np.sqrt(np.einsum('inkk->ikn', self.covariance))


class Smoother:
    """Values and time derivatives of n components along a recording.

    Parameters
    ----------
    times : array-like, shape (N,)
        Stamps, increasing [ns].
    values : array-like, shape (N, n)
        Measurements [unit].
    highest_derivative : int
        From 1 to 6.
    noise : array-like, shape () or (n,), optional
        Standard deviation of the measurement noise, quantisation included [unit]; by default
        identified.
    bandwidth : float, optional
        Fixes the frequency at which a motion as strong as the noise is cut off [Hz]; adapted along
        the recording, for each component, if not given.
    smallest_motion : float
        Amplitude of an oscillation at 10 rad/s that is still of interest [unit]. Values that never
        move are taken for rounded to a hundredth of it.

    Attributes
    ----------
    noise : ndarray, shape (n,)
        Standard deviation of the measurement noise, given or identified, in the mean [unit].
    correlation : ndarray, shape (n,)
        Time constant of the noise [s]; zero where it is white.
    outliers : int
        Single values that were replaced, since both sides contradict them.

    Raises
    ------
    MotionError
        If an argument cannot be used.
    """

    def __init__(
        self,
        times: ArrayLike,
        values: ArrayLike,
        *,
        highest_derivative: int = 4,
        noise: ArrayLike | None = None,
        bandwidth: float | None = None,
        smallest_motion: float = 0.01,
    ) -> None:
        stamps, measured = _checked(times, values)
        count = checked_number(
            'highest_derivative', highest_derivative, MotionError, least=1, most=6, whole=True
        )
        self._K = int(count) + 1
        n = measured.shape[1]
        self._given = None if noise is None else _deviations(noise, n) ** 2
        smallest = checked_number('smallest_motion', smallest_motion, MotionError, above=0.0)
        self._origin = measured[0].copy()
        self._steps = np.zeros(len(stamps) + 1)
        self._steps[1:-1] = 1e-9 * np.diff(stamps)
        self._period = float(np.median(self._steps[1:-1])) if len(stamps) > 1 else 1.0
        self._cutoffs = CUTOFFS[CUTOFFS * self._period <= _FASTEST]
        if not len(self._cutoffs):
            self._cutoffs = CUTOFFS[:1]
        if bandwidth is not None:
            fixed = checked_number('bandwidth', bandwidth, MotionError, above=0.0)
            self._cutoffs = np.array([2.0 * np.pi * fixed])
        self._taylor, self._driven = (m[0] for m in StepMatrices(self._K + 1).matrices(np.ones(1)))
        change = np.diff(measured, axis=0)
        self._rounding = _rounding(measured, change)
        self._values = np.zeros((len(stamps) + 2, n))
        self._values[1:-1] = measured - self._origin
        self.outliers = _replace_outliers(self._values[1:-1], np.sqrt(12.0 * self._rounding))
        moved = np.ones(measured.shape)
        moved[1:] = change != 0.0
        # A signal that stands still between two steps of its rounding shows no noise, and would
        # hide that of its motion.
        size = np.abs(measured).max(axis=0)
        self._least = np.maximum(self._rounding, (_EPS * size) ** 2)
        self._unmoved = (_UNKNOWN_STEP * smallest) ** 2 / 12.0
        width = max(_BIN, self._period)
        memory = max(_MEMORY, _FEWEST_REMEMBERED * self._period)
        since = 1e-9 * (stamps - stamps[0])
        self._bins = np.minimum((since / width).astype(np.int64), len(stamps) - 1)
        self._places = since / width - 0.5
        self._forget = float(np.exp(-width / memory))
        self._counts = np.bincount(self._bins).astype(np.float64)
        self._changes = np.stack([np.bincount(self._bins, m) for m in moved.T], axis=1)
        self.correlation = self._period * self._correlations()
        self._weigh()

    def blocks(self) -> Iterator[Smoothed]:
        """Yield the estimates of consecutive samples; memory does not grow with their number."""
        N, n, M, K = self._K + 1, self._values.shape[1], len(self._cutoffs), self._K
        states = np.zeros((M, N, n)), np.zeros((len(self._groups), M, N, N))
        for b, first in enumerate(range(0, len(self._bins), BLOCK)):
            rows = slice(first, min(first + BLOCK, len(self._bins)))
            B = rows.stop - rows.start
            mean, spread = np.zeros((B, K, n)), np.zeros((B, n, K, K))
            reference, offset = np.zeros((B, K, n)), self._at(rows, self._offset)
            for g, (columns, correlation) in enumerate(self._groups):
                found = [np.ascontiguousarray(a[..., columns]) for a in (mean, reference)]
                part = np.ascontiguousarray(spread[:, columns])
                self._unite(
                    rows, columns, correlation, states[0], states[1][g], b, g, found[1],
                    found[0], part,
                )  # fmt: skip
                mean[..., columns], reference[..., columns] = found
                spread[:, columns] = part
            from hodyn_ros.trajectory.smoother_kernels import finish

            finish(reference, offset, mean, spread)
            mean[:, 0] += self._origin
            yield Smoothed(mean, spread)

    def _unite(
        self, rows: slice, columns: NDArray[np.intp], correlation: float, X: Array, P: Array,
        block: int, group: int, reference: Array, mean: Array, spread: Array,
    ) -> None:  # fmt: skip
        """Filter a block in both directions and mix the models that have a weight in it."""
        from hodyn_ros.trajectory.smoother_kernels import unite

        B, N, n = rows.stop - rows.start, self._K + 1, len(columns)
        is_last = rows.stop == len(self._bins)
        is_first_model = True
        values = np.ascontiguousarray(self._values[rows.start + 1 : rows.stop + 1, columns])
        for m, cutoff in enumerate(self._cutoffs):
            shares = self._at(rows, self._shares[:, columns, m])
            is_used = bool(shares.any())
            size = B if is_used else 0
            stores = [
                (np.empty((size, N, n)), np.empty((size, N, N)), np.empty(size, dtype=np.int64))
                for _ in range(2)
            ]
            state = np.ascontiguousarray(X[m][:, columns])
            self._filter(
                rows, columns, correlation, m, state, P[m], False, rows.start == 0,
                store=stores[0],
            )  # fmt: skip
            X[m][:, columns] = state
            if not is_used:
                continue
            later = [a.copy() for a in self._ends[group][m][block + 1]] if not is_last else [
                np.zeros((N, n)), np.zeros((N, N))
            ]  # fmt: skip
            self._filter(
                rows, columns, correlation, m, *later, True, is_last, store=stores[1]
            )  # fmt: skip
            unite(
                values, *stores[0], *stores[1], cutoff ** np.arange(float(N)), shares,
                self._at(rows, self._variances[:, columns, m]), reference, is_first_model, mean,
                spread,
            )  # fmt: skip
            is_first_model = False

    def _filter(
        self, rows: slice, columns: NDArray[np.intp], correlation: float, model: int, X: Array,
        P: Array, backward: bool, fresh: bool, sums: tuple[Array, Array] | None = None,
        store: tuple[Array, Array, NDArray[np.int64]] | None = None,
    ) -> None:  # fmt: skip
        """Run a model over some samples."""
        from hodyn_ros.trajectory.smoother_kernels import filter_samples

        N, n, cutoff = self._K + 1, len(columns), float(self._cutoffs[model])
        if sums is None:
            sums = np.zeros((0, n)), np.zeros(0)
        if store is None:
            store = np.zeros((0, N, n)), np.zeros((0, N, N)), np.zeros(0, dtype=np.int64)
        filter_samples(
            np.ascontiguousarray(self._values[rows.start : rows.stop + 2, columns]),
            self._steps[rows.start : rows.stop + 1], backward, fresh, cutoff, correlation,
            cutoff * self._period, self._taylor, self._driven, X, P, self._bins[rows], *sums,
            *store,
        )  # fmt: skip

    def _at(self, rows: slice, of_bins: Array) -> Array:
        """Interpolate a quantity of the bins (b, n) at samples, (B, n)."""
        places = np.clip(self._places[rows], 0.0, len(of_bins) - 1.0)
        below = np.minimum(places.astype(np.int64), max(len(of_bins) - 2, 0))
        share = (places - below)[:, None]
        above = np.minimum(below + 1, len(of_bins) - 1)
        return np.asarray((1.0 - share) * of_bins[below] + share * of_bins[above])

    def _around(self, sums: Array, axis: int = 0) -> Array:
        """Sums of bins, with those to either side as far as they are remembered."""
        a = [1.0, -self._forget]
        before = lfilter([1.0], a, sums, axis=axis)
        behind = np.flip(lfilter([1.0], a, np.flip(sums, axis), axis=axis), axis)
        return np.asarray(before + behind - sums)

    def _correlations(self) -> Array:
        """Time constants of the noise of each component, in steps."""
        n, N = self._values.shape[1], len(self._bins)
        every = np.arange(n)
        starts = np.unique(np.linspace(0, max(N - _STRETCH, 0), _STRETCHES).astype(np.int64))
        found = np.zeros((len(_CORRELATIONS), n))
        for r, steps in enumerate(_CORRELATIONS):
            squares = np.zeros((len(self._counts), n, len(self._cutoffs)))
            logarithms = np.zeros((len(self._counts), len(self._cutoffs)))
            used = np.zeros(len(self._counts))
            end = 0
            for start in np.maximum(starts, 0).tolist():
                rows = slice(max(start, end), min(start + _STRETCH, N))
                end = rows.stop
                if rows.stop - rows.start < 2:
                    continue
                used += np.bincount(self._bins[rows], minlength=len(used))
                for m in range(len(self._cutoffs)):
                    sums = np.zeros((len(used), n)), np.zeros(len(used))
                    state = np.zeros((self._K + 1, n)), np.zeros((self._K + 1,) * 2)
                    self._filter(
                        rows, every, steps * self._period, m, *state, True, True, sums
                    )
                    squares[:, :, m] += sums[0]
                    logarithms[:, m] += sums[1]
            counted = self._around(used)
            near, logs = self._around(squares), self._around(logarithms)
            rate = np.zeros((len(used), n))
            is_used = used > 0.0
            number = counted[is_used, None, None] + 1e-9
            variance = np.maximum(near[is_used] / number, self._least[:, None])
            variance = np.maximum(variance, _LEAST_VARIANCE)
            score = np.log(variance) + logs[is_used][:, None] / number
            rate[is_used] = score.min(axis=2)
            moving = np.minimum(self._changes, used[:, None])
            found[r] = -0.5 * (rate * moving).sum(axis=0)
        best = found.argmax(axis=0)
        best[found.max(axis=0) < found[0] + _CLEARLY] = 0
        return np.asarray(_CORRELATIONS)[best]

    def _weigh(self) -> None:
        """Find out which models are right where, and the noise."""
        n, M, N = self._values.shape[1], len(self._cutoffs), self._K + 1
        squares = np.zeros((len(self._counts), n, M))
        logarithms = np.zeros((len(self._counts), n, M))
        self._groups = [
            (np.flatnonzero(self.correlation == value), float(value))
            for value in np.unique(self.correlation)
        ]
        starts = range(0, len(self._bins), BLOCK)
        # States behind each block, of groups, models and blocks.
        self._ends: list[list[list[tuple[Array, Array]]]] = []
        for columns, correlation in self._groups:
            of_group = []
            for m in range(M):
                sums = np.zeros((len(self._counts), len(columns))), np.zeros(len(self._counts))
                X, P = np.zeros((N, len(columns))), np.zeros((N, N))
                ends = []
                for first in reversed(starts):
                    rows = slice(first, min(first + BLOCK, len(self._bins)))
                    self._filter(
                        rows, columns, correlation, m, X, P, True,
                        rows.stop == len(self._bins), sums,
                    )  # fmt: skip
                    ends.append((X.copy(), P.copy()))
                of_group.append(ends[::-1])
                squares[:, columns, m] = sums[0]
                logarithms[:, columns, m] = sums[1][:, None]
            self._ends.append(of_group)
        number = self._around(self._counts)[:, None, None]
        squares, logarithms = self._around(squares), self._around(logarithms)
        changes = self._around(self._changes)
        new = changes / number[:, :, 0]
        rounding = np.where((self._rounding == 0.0) & (new < 0.5), self._unmoved, self._rounding)
        least = np.maximum(np.maximum(rounding, self._least), _LEAST_VARIANCE)[:, :, None]
        if self._given is not None:
            variance = np.broadcast_to(self._given[None, :, None], squares.shape)
            weights = _weights(squares / variance + logarithms)
        else:
            variance = np.maximum(squares / number, least)
            weights = _weights(number * np.log(variance) + logarithms)
            # The noise of the whole where there are few measurements.
            local = (weights * variance).sum(axis=2)
            typical = (local * changes).sum(axis=0) / np.maximum(changes.sum(axis=0), 1e-9)
            total = number + _PRIOR
            variance = (squares + _PRIOR * typical[:, None]) / total
            variance = np.maximum(variance, least)
            weights = _weights(total * np.log(variance) + logarithms)
        noise = (weights * variance).sum(axis=2)
        self._shares = weights
        # What is repeated says nothing new about motions slower than the time for which it stays.
        share = np.minimum(new[:, :, None] + self._cutoffs * self._period, 1.0)
        self._variances = weights * variance / share
        # What stays between two steps of its rounding is off by the same all the time.
        self._offset = np.where(noise < 3.0 * rounding, rounding, 0.0)
        self.noise = np.sqrt((noise * self._counts[:, None]).sum(axis=0) / self._counts.sum())


def smooth(times: ArrayLike, values: ArrayLike, **options: object) -> Smoothed:
    """Values and time derivatives along a recording without gaps; see `Smoother`."""
    parts = list(Smoother(times, values, **options).blocks())  # type: ignore[arg-type]
    return Smoothed(*(np.concatenate(arrays) for arrays in zip(*parts)))


def _weights(score: Array) -> Array:
    """Weights of models of the last axis from -2 times the logarithms of their likelihoods.

    These count in part: the motion does not stay the same for as long as they are summed over, and
    which model is right at a sample is less certain than the sums say.
    """
    weights = np.exp(-0.5 * _COUNTED * (score - score.min(axis=-1, keepdims=True)))
    weights[weights < _NEGLIGIBLE] = 0.0
    weights /= weights.sum(axis=-1, keepdims=True)
    return np.asarray(weights)


def _checked(times: ArrayLike, values: ArrayLike) -> tuple[NDArray[np.int64], Array]:
    stamps = np.asarray(times)
    if stamps.ndim != 1 or not len(stamps) or stamps.dtype.kind not in 'iu':
        raise MotionError(
            f'times are of shape {stamps.shape} and type {stamps.dtype}, expected at least one '
            'integer number of nanoseconds.'
        )
    if not (np.diff(stamps) > 0).all():
        raise MotionError('times do not increase; sort the measurements and leave out doubles.')
    measured = finite_array('values', values, MotionError)
    if measured.ndim != 2 or len(measured) != len(stamps) or not measured.shape[1]:
        raise MotionError(f'values have shape {measured.shape}, expected ({len(stamps)}, n).')
    return stamps.astype(np.int64), measured


def _deviations(noise: ArrayLike, n: int) -> Array:
    given = finite_array('noise', noise, MotionError)
    if given.shape not in ((), (1,), (n,)) or not (given > 0.0).all():
        raise MotionError(
            f'noise is {noise!r}, expected a positive number or one for each of the {n} '
            'components.'
        )
    return np.broadcast_to(given, (n,)).copy()


def _rounding(values: Array, change: Array) -> Array:
    """Variance of the error of rounding (n,), zero where no steps are known; see `Rounding`."""
    size = np.abs(change)
    is_still = size <= _EPS * np.abs(values).max(axis=0)
    step = np.where(is_still, np.inf, size).min(axis=0, initial=np.inf)
    seen = np.count_nonzero((size <= 1.01 * step) & ~is_still, axis=0)
    stood = (is_still[1:] & is_still[:-1]).any(axis=0)
    return np.where((seen >= 3) & stood, step**2 / 12.0, 0.0)


def _replace_outliers(values: Array, step: Array) -> int:
    """Replace single values (N, n) that both sides contradict by what they say; count them.

    A single wrong value makes a known pattern of the differences from the interpolation between
    two values before and two behind, which no motion and hardly any other noise makes.
    """
    if len(values) < 5:
        return 0
    width = 2 * _AROUND + 1
    missed = np.zeros_like(values)
    for k, weight in enumerate(_NEIGHBOURS):
        missed[2:-2] -= weight * values[k : len(values) - 4 + k]
    missed[2:-2] += values[2:-2]
    size = np.abs(missed)
    # The median of blocks, and of those beside: the middle one of three.
    count = -(-len(values) // width)
    padded = np.full((count * width, values.shape[1]), np.nan)
    padded[: len(values)] = size
    blocks = np.nanmedian(padded.reshape(count, width, -1), axis=1)
    blocks = np.concatenate([blocks[:1], blocks, blocks[-1:]])
    typical = np.maximum(np.maximum(blocks[:-2], blocks[1:-1]), blocks[2:])
    typical = np.repeat(typical, width, axis=0)[: len(values)] / 0.6745
    least = np.maximum(_OUTLIER_STEPS * step, 1e3 * _EPS * np.abs(values).max(axis=0))
    is_wrong = size > np.maximum(_OUTLIER * typical, least)
    allowed = np.maximum(3.0 * typical, _UNEXPLAINED * size)
    beside = 2.0 / 3.0 * missed
    is_wrong[1:] &= np.abs(missed[:-1] + beside[1:]) <= allowed[1:]
    is_wrong[:-1] &= np.abs(missed[1:] + beside[:-1]) <= allowed[:-1]
    is_wrong[:2] = is_wrong[-2:] = False
    values[is_wrong] -= missed[is_wrong]
    return int(np.count_nonzero(is_wrong))
