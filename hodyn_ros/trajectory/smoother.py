"""Time derivatives of recorded measurements, with standard deviations, at every sample.

The models are those of `kalman`: the N-th derivative is white noise, of different strengths. Each
filters the recording in both directions, and both together are its estimate at a sample
(fixed-interval smoothing, Fraser and Potter 1969). Its weight, and the noise, follow from the
innovations of the backward filter around there (see `model_weights`). Noise may be correlated: its
time constant is identified from the recording, too.
"""

# Numba, which the kernels need, and scipy.signal take long to import: where they run, not here.

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.checks import checked_number, finite_array
from hodyn_ros.errors import MotionError
from hodyn_ros.trajectory.differences import NORMAL
from hodyn_ros.trajectory.estimator import positive_numbers
from hodyn_ros.trajectory.kalman import StepMatrices
from hodyn_ros.trajectory.model_weights import (
    CUTOFFS,
    EPSILON,
    LEAST_VARIANCE,
    Innovations,
    Rounding,
    weighting,
)
from hodyn_ros.typing import Array
from hodyn_ros.units import NANOSECONDS

BLOCK = 5_000
"""Samples that are smoothed together."""

# Share of the logarithm of a likelihood that counts: the motion does not stay the same for as long
# as it is summed over, and which model is right at a sample is less certain than the sum says. The
# coverage of intervals has decided. Weight of a model that is none.
_COUNTED, _NEGLIGIBLE = 0.3, 1e-3
# Time over which innovations are summed, to either side, and the fewest steps; length of the
# bins of which each has one sum [s].
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
_MOST_THREADS = 4


class Smoothed(NamedTuple):
    """Motion of n components at N samples, K = highest_derivative + 1.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros.trajectory import smooth
    >>> times = 4_000_000 * np.arange(500)
    >>> values = np.sin(3e-9 * times)[:, None] + 1e-5 * np.cos(np.arange(500) ** 2)[:, None]
    >>> found = smooth(times, values, highest_derivative=1, noise=1e-5)
    >>> found.motion[250].round(2), bool(found.std[250, 1, 0] < 1e-3)
    (array([[ 0.14],
           [-2.97]]), True)
    """

    motion: Array
    """Values and their derivatives, shape (N, K, n) [unit/s^k]."""
    covariance: Array
    """Of value, first, ... derivative of each component, shape (N, n, K, K)."""

    @property
    def std(self) -> Array:
        """Standard deviations of `motion`, shape (N, K, n) [unit/s^k].

        Returns
        -------
        ndarray, shape (N, K, n)
            Roots of the diagonals of `covariance`.
        """
        return np.asarray(np.sqrt(np.einsum('inkk->ikn', self.covariance)))


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

    Examples
    --------
    A long recording is smoothed block by block, in little memory:

    >>> import numpy as np
    >>> from hodyn_ros.trajectory import Smoother
    >>> times = 4_000_000 * np.arange(500)
    >>> values = np.sin(3e-9 * times)[:, None] + 1e-5 * np.cos(np.arange(500) ** 2)[:, None]
    >>> smoother = Smoother(times, values, highest_derivative=1, noise=1e-5)
    >>> fastest = max(abs(block.motion[:, 1]).max() for block in smoother.blocks())
    >>> round(float(fastest), 2)
    3.0
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
        highest = checked_number(
            'highest_derivative',
            highest_derivative,
            MotionError,
            least=1,
            most=6,
            whole=True,
        )
        self._K = int(highest) + 1
        n = measured.shape[1]
        variance = None if noise is None else positive_numbers('noise', noise, n) ** 2
        smallest = checked_number(
            'smallest_motion', smallest_motion, MotionError, above=0.0
        )
        rounding = Rounding(n, smallest)
        changes = np.diff(measured, axis=0)
        rounding.see(measured, changes)
        self._origin = measured[0].copy()
        measured -= self._origin
        self._pool = ThreadPoolExecutor(min(os.cpu_count() or 1, _MOST_THREADS))
        digits = np.sqrt(12.0 * rounding.variance)
        self.outliers: int = sum(self._pool.map(_replace_outliers, measured.T, digits))

        self._period = period = (
            float(np.median(1e-9 * np.diff(stamps))) if len(stamps) > 1 else 1.0
        )
        cutoffs = CUTOFFS[CUTOFFS * period <= _FASTEST]
        if not len(cutoffs):
            cutoffs = CUTOFFS[:1]
        if bandwidth is not None:
            fixed = checked_number('bandwidth', bandwidth, MotionError, above=0.0)
            cutoffs = np.array([2.0 * np.pi * fixed])
        steps = np.zeros(len(stamps) + 1)
        steps[1:-1] = 1e-9 * np.diff(stamps)
        matrices = StepMatrices(self._K + 1).matrices(np.ones(1))
        self._bins = _Bins(stamps, period)
        recording = _Recording(measured, steps, period, cutoffs, matrices, self._bins)
        moved = self._bins.sums(np.concatenate([np.ones((1, n)), changes != 0.0]))
        self.correlation: Array = self._correlations(recording, moved, rounding)
        self._filters = [
            _Filters(recording, np.flatnonzero(self.correlation == value), float(value))
            for value in np.unique(self.correlation)
        ]
        counts = self._bins.counts
        squares, logarithms = np.empty((2, len(counts), n, len(cutoffs)))
        for filters in self._filters:
            sums = filters.judge(self._pool, self._blocks())
            squares[:, filters.columns], logarithms[:, filters.columns] = sums
        found = weighting(
            Innovations(*map(self._bins.around, (counts, moved, squares, logarithms))),
            rounding,
            cutoffs * period,
            variance,
            counted=_COUNTED,
            negligible=_NEGLIGIBLE,
            prior=_PRIOR,
        )
        for filters in self._filters:
            filters.weights = filters.padded(found.weights)
            filters.variances = filters.padded(found.variances)
        self._offset = found.offset
        self.noise: Array = np.sqrt(np.average(found.noise, axis=0, weights=counts))

    def blocks(self) -> Iterator[Smoothed]:
        """Yield the estimates of consecutive samples; memory does not grow with their number.

        Yields
        ------
        Smoothed
            Of at most `BLOCK` samples each, in the order of time.
        """
        from hodyn_ros.trajectory.smoother_kernels import finish

        n, K = len(self._origin), self._K
        states = [filters.nothing() for filters in self._filters]
        for block, rows in enumerate(self._blocks()):
            B = rows.stop - rows.start
            found = Smoothed(np.empty((B, K, n)), np.empty((B, n, K, K)))
            offset = self._bins.at(rows, self._offset)
            for filters, state in zip(self._filters, states):
                mixture = self._mixture(filters, block, rows, state)
                finish((0,) * K, *mixture, filters.columns, offset, *found)
            found.motion[:, 0] += self._origin
            yield found

    def _blocks(self) -> list[slice]:
        """Rows of the blocks of samples."""
        N = len(self._bins.of_samples)
        return [slice(first, min(first + BLOCK, N)) for first in range(0, N, BLOCK)]

    def _mixture(
        self, filters: _Filters, block: int, rows: slice, state: _State
    ) -> tuple[Array, Array, Array]:
        """Filter a block in both directions and mix the models that have a weight in it.

        Parameters
        ----------
        filters : _Filters
            Of components padded to `width`.
        block : int
            Number of the block.
        rows : slice
            Its samples, B of them.
        state : _State
            Before the block, replaced by that behind it.

        Returns
        -------
        reference : ndarray, shape (B, K width)
        mean : ndarray, shape (B, K width)
        spread : ndarray, shape (B, K (K + 1) / 2, width)
            See `combine`.
        """
        from hodyn_ros.trajectory.smoother_kernels import combine

        B, N, width, K = rows.stop - rows.start, self._K + 1, filters.width, self._K
        mixture = (
            np.zeros(B, dtype=np.bool_),
            np.empty((B, K * width)),
            np.zeros((B, K * width)),
            np.zeros((B, K * (K + 1) // 2, width)),
        )
        below, parts = self._bins.between(rows)
        near = slice(int(below[0]), int(below[-1]) + 2)
        used = np.any(filters.weights[:, near], axis=(1, 2)).tolist()
        later = filters.behind[block].copy()

        def both_ways(m: int) -> tuple[Any, ...] | None:
            """Estimates of a model in both directions; forward alone without a weight."""
            if not used[m]:
                filters.run(m, rows, state)
                return None
            forward, backward = filters.memory(B), filters.memory(B)
            filters.run(m, rows, state, track=forward)
            filters.run(m, rows, later, backward=True, track=backward)
            units = filters.recording.cutoffs[m] ** np.arange(float(N))
            weighting = filters.weights[m], filters.variances[m], below, parts
            return forward, backward, units, weighting

        models = list(filter(None, self._pool.map(both_ways, range(len(used)))))
        values = filters.values[1:-1][rows]

        def mix(first: int, last: int) -> None:
            for model in models:
                combine((0,) * N, (0,) * K, first, last, values, *model, mixture)

        edges = np.linspace(0, B, min(os.cpu_count() or 1, _MOST_THREADS) + 1)
        ends = edges.astype(int).tolist()
        list(self._pool.map(mix, ends, ends[1:]))
        return mixture[1:]

    def _correlations(
        self, recording: _Recording, moved: Array, rounding: Rounding
    ) -> Array:
        """Time constants of the noise of each component, by some stretches of the recording.

        Parameters
        ----------
        recording : _Recording
        moved : ndarray, shape (b, n)
            How many values differ from the one before, in each bin.
        rounding : Rounding

        Returns
        -------
        ndarray, shape (n,)
            One of `_CORRELATIONS` [s]; zero where white noise is about as likely.
        """
        N, n = len(self._bins.of_samples), moved.shape[1]
        starts = np.linspace(0, max(N - _STRETCH, 0), _STRETCHES).astype(np.int64)
        stretches, end = [], 0
        for start in np.unique(starts).tolist():
            stretches.append(slice(max(start, end), min(start + _STRETCH, N)))
            end = stretches[-1].stop
        used = np.zeros(len(moved))
        for rows in stretches:
            used += np.bincount(self._bins.of_samples[rows], minlength=len(moved))
        kept = np.flatnonzero(used)
        used, moving = used[kept], np.minimum(moved[kept], used[kept, None])
        number = self._bins.around(used)[:, None, None]
        least = np.maximum(rounding.variance, (EPSILON * rounding.size) ** 2)
        least = np.maximum(least, LEAST_VARIANCE)[:, None]
        likelihoods = np.zeros((len(_CORRELATIONS), n))
        for r, steps in enumerate(_CORRELATIONS):
            trial = _Filters(recording, np.arange(n), steps * recording.period)
            sums = trial.judge(self._pool, stretches, apart=True)
            squares, logarithms = (self._bins.around(each[kept]) for each in sums)
            variance = np.maximum(squares / number, least)
            score = np.log(variance) + logarithms / number
            likelihoods[r] = -0.5 * (score.min(axis=2) * moving).sum(axis=0)
        best = likelihoods.argmax(axis=0)
        best[likelihoods.max(axis=0) < likelihoods[0] + _CLEARLY] = 0
        return np.asarray(recording.period * np.array(_CORRELATIONS)[best])


class _Bins:
    """Bins of time, in which innovations are summed up.

    Attributes
    ----------
    of_samples : ndarray of int, shape (N,)
        Bin of each sample.
    counts : ndarray, shape (b,)
        Number of samples in each bin.
    """

    def __init__(self, stamps: NDArray[np.int64], period: float) -> None:
        width = max(_BIN, period)
        since = 1e-9 * (stamps - stamps[0])
        self.of_samples = np.minimum((since / width).astype(np.int64), len(stamps) - 1)
        self.counts: Array = np.bincount(self.of_samples).astype(np.float64)
        # Of each sample, counted from the middle of the first bin.
        self._places = np.clip(since / width - 0.5, 0.0, float(len(self.counts) - 1))
        self._forget = float(np.exp(-width / max(_MEMORY, _FEWEST_REMEMBERED * period)))

    def sums(self, values: Array) -> Array:
        """Sums of values (N, n) of the samples, shape (b, n)."""
        columns = [np.bincount(self.of_samples, column) for column in values.T]
        return np.stack(columns, axis=1)

    def around(self, sums: Array) -> Array:
        """Sums (b, ...) with those of other bins, which count the less the farther they are."""
        from scipy.signal import lfilter

        a = [1.0, -self._forget]
        before = lfilter([1.0], a, sums, axis=0)
        behind = lfilter([1.0], a, sums[::-1], axis=0)[::-1]
        return np.asarray(before + behind - sums)

    def between(self, rows: slice) -> tuple[NDArray[np.int64], Array]:
        """Bin before samples (B,), and the part of the way to the next one (B,)."""
        below = self._places[rows].astype(np.int64)
        return below, self._places[rows] - below

    def at(self, rows: slice, of_bins: Array) -> Array:
        """Interpolate a quantity (b, n) of the bins at samples, shape (B, n)."""
        below, part = self.between(rows)
        above = np.minimum(below + 1, len(of_bins) - 1)
        return np.asarray(
            (1.0 - part[:, None]) * of_bins[below] + part[:, None] * of_bins[above]
        )


class _Recording(NamedTuple):
    """Recording of n components at N samples, and the M models that filter it."""

    measured: Array  # (N, n)
    steps: Array  # before each sample and behind the last, (N + 1,) [s]
    period: float  # [s]
    cutoffs: Array  # (M,) [rad/s]
    matrices: tuple[Array, Array]  # of a step of one, see `StepMatrices`
    bins: _Bins


class _State(NamedTuple):
    """Means and covariances of all models at one sample."""

    means: Array  # (M, N width)
    covariances: Array  # (M, N, N)

    def copy(self) -> _State:
        """Return what stays when the filters go on."""
        return _State(self.means.copy(), self.covariances.copy())


class _Filters:
    """Compiled filters of M models for components whose noise has one time constant.

    They share covariances, and are padded with zeros to a multiple of the width of a register.

    Attributes
    ----------
    columns : ndarray of int, shape (c,)
        Which of the n components.
    values : ndarray, shape (N + 2, width)
        Measurements, with a row before the first and one behind the last.
    behind : list of _State
        Of the backward filters, behind each block that was judged.
    weights, variances : ndarray, shape (M, b + 1, width)
        Of `Weighting`, in each bin; zeros behind the last.
    """

    def __init__(
        self, recording: _Recording, columns: NDArray[np.intp], correlation: float
    ) -> None:
        from hodyn_ros.trajectory.smoother_kernels import WIDTH

        self.recording, self.columns = recording, columns
        self.width = -(-len(columns) // WIDTH) * WIDTH
        self.values = np.zeros((len(recording.measured) + 2, self.width))
        self.values[1:-1, : len(columns)] = recording.measured[:, columns]
        self.behind: list[_State] = []
        self.weights = self.variances = np.zeros((0, 0, 0))
        self._correlation, self._N = correlation, recording.matrices[0].shape[1]

    def padded(self, values: Array) -> Array:
        """Values (b, n, M) in bins, those of each model in one piece (M, b + 1, width)."""
        result = np.zeros((values.shape[2], len(values) + 1, self.width))
        result[:, :-1, : len(self.columns)] = np.moveaxis(values[:, self.columns], 2, 0)
        return result

    def nothing(self) -> _State:
        """State before the first measurement."""
        M, N = len(self.recording.cutoffs), self._N
        return _State(np.zeros((M, N * self.width)), np.zeros((M, N, N)))

    def memory(self, B: int) -> tuple[Array, Array, NDArray[np.int64]]:
        """Room for means, covariances and their rows at B samples, see `filter_samples`."""
        N = self._N
        rows = np.empty(B, dtype=np.int64)
        return np.empty((B, N * self.width)), np.empty((B, N, N)), rows

    def run(
        self,
        model: int,
        rows: slice,
        state: _State,
        *,
        backward: bool = False,
        fresh: bool | None = None,
        sums: tuple[Array, Array] | None = None,
        track: tuple[Array, Array, NDArray[np.int64]] | None = None,
    ) -> None:
        """Run a model over some samples, from a state that becomes that at the last one.

        Parameters
        ----------
        model : int
        rows : slice
            Samples.
        state : _State
            Changed in place.
        backward : bool
            Whether from the last sample on.
        fresh : bool, optional
            Whether nothing is known before; by default at the ends of the recording.
        sums : tuple of ndarray, shapes (b, width) and (b,), optional
            To which squared innovations and logarithms of variances are added, by bins.
        track : tuple of ndarray, optional
            Of `memory`, filled with the states at the samples.
        """
        from hodyn_ros.trajectory.smoother_kernels import filter_samples

        if fresh is None:
            fresh = rows.stop == len(self.values) - 2 if backward else rows.start == 0
        _, steps, period, cutoffs, (taylor, driven), bins = self.recording
        cutoff = float(cutoffs[model])
        filter_samples(
            (0,) * self._N,
            self.values[rows.start : rows.stop + 2],
            steps[rows.start : rows.stop + 1],
            int(backward),
            fresh,
            (cutoff, self._correlation, cutoff * period, taylor[0], driven[0]),
            (state.means[model], state.covariances[model]),
            (bins.of_samples[rows], *(sums or (np.empty((0, self.width)), np.empty(0)))),
            track or self.memory(0),
        )

    def judge(
        self, pool: ThreadPoolExecutor, blocks: list[slice], *, apart: bool = False
    ) -> tuple[Array, Array]:
        """Run all models backward over blocks and sum up how well they predict.

        Parameters
        ----------
        pool : ThreadPoolExecutor
        blocks : list of slice
            Samples, in the order of time.
        apart : bool
            Whether each block is judged by itself; otherwise `behind` is kept.

        Returns
        -------
        squares : ndarray, shape (b, c, M)
        logarithms : ndarray, shape (b, 1, M)
            See `Innovations`.
        """
        M, b = len(self.recording.cutoffs), len(self.recording.bins.counts)
        squares, logarithms = np.zeros((M, b, self.width)), np.zeros((M, b))
        state = self.nothing()
        fresh = True if apart else None
        for rows in reversed(blocks):
            if not apart:
                self.behind.insert(0, state.copy())

            def run(m: int, rows: slice = rows) -> None:
                sums = squares[m], logarithms[m]
                self.run(m, rows, state, backward=True, fresh=fresh, sums=sums)

            list(pool.map(run, range(M)))
        squares = np.moveaxis(squares[:, :, : len(self.columns)], 0, -1)
        return squares, logarithms.T[:, None]


def smooth(times: ArrayLike, values: ArrayLike, **options: Any) -> Smoothed:
    """Values and time derivatives along a recording without gaps; options of `Smoother`.

    Parameters
    ----------
    times : array-like, shape (N,)
        Stamps, increasing [ns].
    values : array-like, shape (N, n)
        Measurements [unit].
    **options
        See `Smoother`.

    Returns
    -------
    Smoothed
        Of all samples.

    Raises
    ------
    MotionError
        If an argument cannot be used.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros.trajectory import smooth
    >>> times = 4_000_000 * np.arange(500)
    >>> noise = 1e-5 * np.random.default_rng(0).standard_normal((500, 1))
    >>> found = smooth(times, np.sin(3e-9 * times)[:, None] + noise, highest_derivative=2)
    >>> found.motion.shape
    (500, 3, 1)
    """
    parts = list(Smoother(times, values, **options).blocks())
    return Smoothed(*(np.concatenate(arrays) for arrays in zip(*parts)))


def runs(times: NDArray[np.int64], max_gap: float) -> list[NDArray[np.intp]]:
    """Rows of measurements that belong together, in the order in which they came.

    Stamps (N,) [ns] that jump by more than `max_gap` [s], ahead or back, begin a new run. What
    comes late or twice in one, and a single stamp that no other one confirms, is left out.

    Parameters
    ----------
    times : ndarray of int, shape (N,)
        [ns]
    max_gap : float
        [s]

    Returns
    -------
    list of ndarray of int
        Rows with increasing stamps.
    """
    jumps = np.flatnonzero(np.abs(np.diff(times)) > NANOSECONDS * max_gap) + 1
    pieces = [piece for piece in np.split(np.arange(len(times)), jumps) if len(piece) > 1]
    found: list[NDArray[np.intp]] = []
    for piece in pieces:
        if found and 0 < times[piece[0]] - times[found[-1][-1]] <= NANOSECONDS * max_gap:
            piece = np.concatenate([found.pop(), piece])  # around a single absurd stamp
        highest = np.maximum.accumulate(times[piece])
        is_later = np.concatenate([[True], highest[1:] > highest[:-1]])
        found.append(piece[is_later])
    return found


def _checked(times: ArrayLike, values: ArrayLike) -> tuple[NDArray[np.int64], Array]:
    """Stamps (N,) [ns] and values (N, n); refuses other shapes, and times that do not increase."""
    stamps = np.asarray(times)
    if stamps.ndim != 1 or not len(stamps) or stamps.dtype.kind not in 'iu':
        raise MotionError(
            f'times are of shape {stamps.shape} and type {stamps.dtype}, expected at least one '
            'integer number of nanoseconds.'
        )
    if not (np.diff(stamps) > 0).all():
        raise MotionError(
            'times do not increase; sort the measurements and leave out doubles.'
        )
    measured = finite_array('values', values, MotionError)
    if measured.ndim != 2 or len(measured) != len(stamps) or not measured.shape[1]:
        raise MotionError(
            f'values have shape {measured.shape}, expected ({len(stamps)}, n).'
        )
    return stamps.astype(np.int64), measured


def _replace_outliers(values: Array, step: float) -> int:
    """Replace single values (N,) that both sides contradict by what they say; count them.

    A single wrong value makes a known pattern of the differences from the interpolation between
    two values before and two behind, which no motion and hardly any other noise makes.

    Parameters
    ----------
    values : ndarray, shape (N,)
        Changed in place [unit].
    step : float
        Step of their rounding, zero if none is known [unit].

    Returns
    -------
    int
        How many were replaced.
    """
    if len(values) < 5:
        return 0
    width = 2 * _AROUND + 1
    missed = np.zeros_like(values)
    missed[2:-2] = values[2:-2]
    for k, weight in enumerate(_NEIGHBOURS):
        missed[2:-2] -= weight * values[k : len(values) - 4 + k]
    size = np.abs(missed)
    # The median of blocks, and of those beside: the middle one of three.
    count = -(-len(values) // width)
    padded = np.full(count * width, np.nan)
    padded[: len(values)] = size
    blocks = np.nanmedian(padded.reshape(count, width), axis=1)
    blocks = np.concatenate([blocks[:1], blocks, blocks[-1:]])
    typical = np.maximum(np.maximum(blocks[:-2], blocks[1:-1]), blocks[2:])
    typical = np.repeat(typical, width)[: len(values)] / NORMAL
    least = max(_OUTLIER_STEPS * step, 1e3 * EPSILON * np.abs(values).max())
    is_wrong = size > np.maximum(_OUTLIER * typical, least)
    is_wrong[:2] = is_wrong[-2:] = False
    if not is_wrong.any():
        return 0
    allowed = np.maximum(3.0 * typical, _UNEXPLAINED * size)
    beside = 2.0 / 3.0 * missed
    is_wrong[1:] &= np.abs(missed[:-1] + beside[1:]) <= allowed[1:]
    is_wrong[:-1] &= np.abs(missed[1:] + beside[:-1]) <= allowed[:-1]
    values[is_wrong] -= missed[is_wrong]
    return int(np.count_nonzero(is_wrong))
