"""Time derivatives of recorded measurements, with standard deviations, at every sample.

The models are those of `kalman`: the N-th derivative is white noise, of different strengths. Each
filters the recording in both directions, and what both know together is its estimate at a sample
(fixed-interval smoothing). How well it has predicted the measurements around there gives its
weight (Magill 1965, see `estimator`), and the noise. Noise may be correlated: what it remembers
over a step is identified from the recording, too.
"""

# Numba, which the kernels need, and scipy.signal take long to import: where they run, not here.

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.checks import checked_number, finite_array
from hodyn_ros.errors import MotionError
from hodyn_ros.trajectory.estimator import CUTOFFS, positive_numbers
from hodyn_ros.trajectory.kalman import StepMatrices
from hodyn_ros.typing import Array
from hodyn_ros.units import NANOSECONDS

BLOCK = 5_000
"""Samples that are smoothed together."""

# Share of the logarithm of a likelihood that counts; the coverage of intervals has decided.
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
_NEGLIGIBLE = 1e-3  # weight of a model
_UNKNOWN_STEP = 0.01  # of values that never move, over the smallest motion of interest
_LEAST_VARIANCE = 1e-200
_MOST_THREADS = 4
_EPS = 4.0 * float(np.finfo(np.float64).eps)


class Smoothed(NamedTuple):
    """Motion of n components at N samples, K = highest_derivative + 1."""

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
            'highest_derivative',
            highest_derivative,
            MotionError,
            least=1,
            most=6,
            whole=True,
        )
        self._K = int(count) + 1
        n = measured.shape[1]
        self._given = None if noise is None else positive_numbers('noise', noise, n) ** 2
        smallest = checked_number(
            'smallest_motion', smallest_motion, MotionError, above=0.0
        )
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
        self._taylor, self._driven = (
            m[0] for m in StepMatrices(self._K + 1).matrices(np.ones(1))
        )
        change = np.diff(measured, axis=0)
        self._rounding = _rounding(measured, change)
        self._values = np.zeros((len(stamps) + 2, n))
        self._values[1:-1] = measured - self._origin
        self._pool = ThreadPoolExecutor(min(os.cpu_count() or 1, _MOST_THREADS))
        steps = np.sqrt(12.0 * self._rounding)
        columns = self._values[1:-1].T
        self.outliers = sum(self._pool.map(_replace_outliers, columns, steps))
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
        self._counts: Array = np.bincount(self._bins).astype(np.float64)
        self._changes = np.zeros((len(self._counts), n))
        for c in range(n):
            self._changes[:, c] = np.bincount(self._bins, moved[:, c])
        self.correlation = self._period * self._correlations()
        self._groups = [
            _Group(np.flatnonzero(self.correlation == value), float(value))
            for value in np.unique(self.correlation)
        ]
        self._weigh()

    def blocks(self) -> Iterator[Smoothed]:
        """Yield the estimates of consecutive samples; memory does not grow with their number.

        Yields
        ------
        Smoothed
            Of at most `BLOCK` samples each, in the order of time.
        """
        from hodyn_ros.trajectory.smoother_kernels import finish

        n, K = self._values.shape[1], self._K
        states = [_State.fresh(group, len(self._cutoffs), K + 1) for group in self._groups]
        stores: dict[Any, Any] = {}
        for block, first in enumerate(range(0, len(self._bins), BLOCK)):
            rows = slice(first, min(first + BLOCK, len(self._bins)))
            B = rows.stop - rows.start
            found = Smoothed(np.empty((B, K, n)), np.empty((B, n, K, K)))
            offset = self._at(rows, self._offset)
            for group, ends, state in zip(self._groups, self._ends, states):
                sums = self._mixture(rows, group, state, ends, block, stores)
                finish((0,) * K, *sums, group.columns, offset, *found)
            found.motion[:, 0] += self._origin
            yield found

    def _mixture(
        self,
        rows: slice,
        group: _Group,
        state: _State,
        ends: Sequence[_State],
        block: int,
        stores: dict[Any, Any],
    ) -> tuple[Array, Array, Array]:
        """Filter a block in both directions and mix the models that have a weight in it.

        Parameters
        ----------
        rows : slice
            Samples of the block, B of them.
        group : _Group
            Components, padded to `width`.
        state : _State
            Before the block, replaced by that behind it.
        ends : sequence of _State
            Of the backward filters, behind each block.
        block : int
            Number of the block.
        stores : dict
            Memory that is used again for each block.

        Returns
        -------
        reference : ndarray, shape (B, K width)
        mean : ndarray, shape (B, K width)
        spread : ndarray, shape (B, K (K + 1) / 2, width)
            See `unite`.
        """
        from hodyn_ros.trajectory.smoother_kernels import unite

        B, N, width, K = rows.stop - rows.start, self._K + 1, group.width, self._K
        reference, mean = np.empty((B, K * width)), np.zeros((B, K * width))
        spread = np.zeros((B, K * (K + 1) // 2, width))
        values, used = self._rows(rows, group), self._used(rows, group)
        is_last = rows.stop == len(self._bins)
        later = _State.fresh(group, len(used), N) if is_last else ends[block + 1].copy()
        sides = self._both_ways(values, rows, group, (state, later), used, stores)
        below, parts = self._between(rows)
        weights = self._weights_near(below, group, used)
        below -= below[0]

        def united(part: slice) -> None:
            """Add all models that are used, over a part of the block."""
            begun = np.zeros(part.stop - part.start, dtype=np.bool_)
            for m in weights:
                means, covariances, versions, later_means, *later = sides[m]
                unite(
                    (0,) * N,
                    (0,) * K,
                    values[1:-1][part],
                    means[part],
                    covariances,
                    versions[part],
                    later_means[part],
                    later[0],
                    later[1][part],
                    self._cutoffs[m] ** np.arange(float(N)),
                    below[part],
                    parts[part],
                    *weights[m],
                    begun,
                    reference[part],
                    mean[part],
                    spread[part],
                )

        list(self._pool.map(united, _parts(B)))
        return reference, mean, spread

    def _weights_near(
        self, below: NDArray[np.int64], group: _Group, used: NDArray[np.bool_]
    ) -> dict[int, list[Array]]:
        """Shares and variances (b, width) of each model that is used, in the bins of a block."""
        bins = np.arange(int(below[0]), int(below[-1]) + 2).clip(max=len(self._shares) - 1)
        return {
            m: [
                group.padded(each[bins][:, group.columns, m])
                for each in (self._shares, self._variances)
            ]
            for m in np.flatnonzero(used).tolist()
        }

    def _used(self, rows: slice, group: _Group) -> NDArray[np.bool_]:
        """Which models have a weight near a block, shape (M,)."""
        near = slice(
            max(int(self._bins[rows.start]) - 1, 0), int(self._bins[rows.stop - 1]) + 2
        )
        return np.asarray(self._shares[near, group.columns].any(axis=(0, 1)))

    def _both_ways(
        self,
        values: Array,
        rows: slice,
        group: _Group,
        states: tuple[_State, _State],
        used: NDArray[np.bool_],
        stores: dict[Any, Any],
    ) -> list[list[Any]]:
        """Run each model over a block in both directions, one without a weight forward alone.

        Parameters
        ----------
        values : ndarray, shape (B + 2, width)
            See `_rows`.
        rows : slice
            Samples of the block.
        group : _Group
        states : (_State, _State)
            Before the block and behind it, replaced by those at the other end.
        used : ndarray of bool, shape (M,)
            Which models have a weight.
        stores : dict
            Memory that is used again for each block.

        Returns
        -------
        list of list of ndarray
            Of each model means, covariances and versions, forward and then backward, see
            `filter_samples`; empty without a weight.
        """
        B, N, width = rows.stop - rows.start, self._K + 1, group.width
        is_first, is_last = rows.start == 0, rows.stop == len(self._bins)

        def filtered(m: int) -> list[Any]:
            sides: list[Any] = []
            for side, backward, fresh in zip(states, (False, True), (is_first, is_last)):
                key = m, width, backward
                # New memory for each block would take longer.
                if used[m] and key not in stores:
                    arrays = np.empty((BLOCK, N * width)), np.empty((BLOCK, N, N))
                    stores[key] = *arrays, np.empty(BLOCK, dtype=np.int64)
                store: Any = [a[:B] for a in stores[key]] if used[m] else None
                if used[m] or not backward:
                    self._filter(values, rows, group, m, side, backward, fresh, store=store)
                sides += store or ()
            return sides

        return list(self._pool.map(filtered, range(len(used))))

    def _filter(
        self,
        values: Array,
        rows: slice,
        group: _Group,
        model: int,
        state: _State,
        backward: bool,
        fresh: bool,
        sums: tuple[Array, Array] | None = None,
        store: tuple[Array, Array, NDArray[np.int64]] | None = None,
    ) -> None:
        """Run a model over some samples, from a state that becomes that at the last one.

        The values have a row before the first and one behind the last.
        """
        from hodyn_ros.trajectory.smoother_kernels import filter_samples

        N, cutoff = self._K + 1, float(self._cutoffs[model])
        if sums is None:
            sums = np.empty((0, group.width)), np.empty(0)
        if store is None:
            store = np.empty((0, 0)), np.empty((0, N, N)), np.empty(0, dtype=np.int64)
        filter_samples(
            (0,) * N,
            values,
            self._steps[rows.start : rows.stop + 1],
            backward,
            fresh,
            cutoff,
            group.correlation,
            cutoff * self._period,
            self._taylor,
            self._driven,
            state.means[model],
            state.covariances[model],
            self._bins[rows],
            *sums,
            *store,
        )

    def _judge(
        self, rows: slice, group: _Group, state: _State, fresh: bool, sums: Sequence[Array]
    ) -> None:
        """Run all models backward and add up how well they predict, (M, b, width) and (M, b)."""
        values = self._rows(rows, group)

        def judge(m: int) -> None:
            of_model = sums[0][m], sums[1][m]
            self._filter(values, rows, group, m, state, True, fresh, of_model)

        list(self._pool.map(judge, range(len(self._cutoffs))))

    def _rows(self, rows: slice, group: _Group) -> Array:
        """Values of some samples, with the one before and the one behind, (B + 2, width)."""
        return group.padded(self._values[rows.start : rows.stop + 2, group.columns])

    def _between(self, rows: slice) -> tuple[NDArray[np.int64], Array]:
        """Bin before each sample (B,), and the part of the way to the one behind (B,)."""
        last = len(self._counts) - 1
        places = np.clip(self._places[rows], 0.0, float(last))
        below = np.minimum(places.astype(np.int64), max(last - 1, 0))
        return below, places - below

    def _at(self, rows: slice, of_bins: Array) -> Array:
        """Interpolate a quantity of the bins (b, n) at samples, (B, n)."""
        below, part = self._between(rows)
        above = np.minimum(below + 1, len(of_bins) - 1)
        return np.asarray(
            (1.0 - part[:, None]) * of_bins[below] + part[:, None] * of_bins[above]
        )

    def _around(self, sums: Array, axis: int = 0) -> Array:
        """Sums of bins, with those to either side as far as they are remembered.

        Returns
        -------
        ndarray
            Of the shape of the sums; weights fall by `_forget` from bin to bin.
        """
        from scipy.signal import lfilter

        a = [1.0, -self._forget]
        before = lfilter([1.0], a, sums, axis=axis)
        behind = np.flip(lfilter([1.0], a, np.flip(sums, axis), axis=axis), axis)
        return np.asarray(before + behind - sums)

    def _correlations(self) -> Array:
        """Time constants of the noise of each component, in steps.

        Returns
        -------
        ndarray, shape (n,)
            One of `_CORRELATIONS`; zero where white noise is about as likely.
        """
        n, N, M = self._values.shape[1], len(self._bins), len(self._cutoffs)
        starts = np.unique(
            np.linspace(0, max(N - _STRETCH, 0), _STRETCHES).astype(np.int64)
        )
        parts, end = [], 0
        for start in starts.tolist():
            parts.append(slice(max(start, end), min(start + _STRETCH, N)))
            end = parts[-1].stop
        used = np.zeros(len(self._counts))
        for rows in parts:
            used += np.bincount(self._bins[rows], minlength=len(used))
        kept = np.flatnonzero(used)
        used, moving = used[kept], np.minimum(self._changes[kept], used[kept, None])
        number = self._around(used)[:, None, None]
        found = np.zeros((len(_CORRELATIONS), n))
        for r, steps in enumerate(_CORRELATIONS):
            group = _Group(np.arange(n), steps * self._period)
            sums = [
                np.zeros((M, len(self._counts), *shape)) for shape in ((group.width,), ())
            ]
            for rows in parts:
                self._judge(rows, group, _State.fresh(group, M, self._K + 1), True, sums)
            squares = self._around(np.moveaxis(sums[0][:, kept, :n], 0, -1))
            logarithms = self._around(sums[1][:, kept].T[:, None])
            variance = np.maximum(squares / number, self._least[:, None])
            score = np.log(np.maximum(variance, _LEAST_VARIANCE)) + logarithms / number
            found[r] = -0.5 * (score.min(axis=2) * moving).sum(axis=0)
        best = found.argmax(axis=0)
        best[found.max(axis=0) < found[0] + _CLEARLY] = 0
        return np.asarray(np.array(_CORRELATIONS)[best], dtype=np.float64)

    def _weigh(self) -> None:
        """Find out which models are right where, and the noise."""
        n, M, N = self._values.shape[1], len(self._cutoffs), self._K + 1
        squares, logarithms = np.zeros((2, len(self._counts), n, M))
        # States behind each block, of each group.
        self._ends: list[list[_State]] = []
        for group in self._groups:
            state, ends = _State.fresh(group, M, N), []
            sums = [
                np.zeros((M, len(self._counts), *shape)) for shape in ((group.width,), ())
            ]
            for first in reversed(range(0, len(self._bins), BLOCK)):
                rows = slice(first, min(first + BLOCK, len(self._bins)))
                self._judge(rows, group, state, rows.stop == len(self._bins), sums)
                ends.append(state.copy())
            self._ends.append(ends[::-1])
            squares[:, group.columns] = np.moveaxis(
                sums[0][:, :, : len(group.columns)], 0, -1
            )
            logarithms[:, group.columns] = sums[1].T[:, None]
        number = self._around(self._counts)[:, None, None]
        squares, logarithms = self._around(squares), self._around(logarithms)
        changes: Array = self._around(self._changes)
        new = changes / number[:, :, 0]
        rounding = np.where(
            (self._rounding == 0.0) & (new < 0.5), self._unmoved, self._rounding
        )
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
        self.noise = np.sqrt(
            (noise * self._counts[:, None]).sum(axis=0) / self._counts.sum()
        )


class _Group(NamedTuple):
    """Components whose noise has the same correlation, so that they share covariances.

    Attributes
    ----------
    columns : ndarray of int
        Which of the n components.
    correlation : float
        Time constant of the noise, zero if it is white [s].
    """

    columns: NDArray[np.intp]
    correlation: float

    @property
    def width(self) -> int:
        """Number of components with those that fill up the last register."""
        from hodyn_ros.trajectory.smoother_kernels import WIDTH

        return -(-len(self.columns) // WIDTH) * WIDTH

    def padded(self, values: Array) -> Array:
        """Values of the group with zeros that fill up.

        Parameters
        ----------
        values : ndarray, shape (N, c)
            Of the c components.

        Returns
        -------
        ndarray, shape (N, width)
        """
        result = np.zeros((len(values), self.width))
        result[:, : len(self.columns)] = values
        return result


class _State(NamedTuple):
    """What the filters of all models know at one sample."""

    means: Array  # (M, N width)
    covariances: Array  # (M, N, N)

    @classmethod
    def fresh(cls, group: _Group, M: int, N: int) -> _State:
        """Nothing yet."""
        return cls(np.zeros((M, N * group.width)), np.zeros((M, N, N)))

    def copy(self) -> _State:
        """Return what stays when the filters go on."""
        return _State(self.means.copy(), self.covariances.copy())


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


def _parts(count: int) -> list[slice]:
    """Split so many rows for the threads."""
    edges = np.linspace(0, count, min(os.cpu_count() or 1, _MOST_THREADS) + 1).astype(int)
    return [slice(*pair) for pair in zip(edges.tolist(), edges[1:].tolist())]


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


def _rounding(values: Array, change: Array) -> Array:
    """Variance of the error of rounding (n,), zero where no steps are known; see `Rounding`."""
    size = np.abs(change)
    is_still = size <= _EPS * np.abs(values).max(axis=0)
    step = np.where(is_still, np.inf, size).min(axis=0, initial=np.inf)
    seen = np.count_nonzero((size <= 1.01 * step) & ~is_still, axis=0)
    stood = (is_still[1:] & is_still[:-1]).any(axis=0)
    return np.where((seen >= 3) & stood, step**2 / 12.0, 0.0)


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
    typical = np.repeat(typical, width)[: len(values)] / 0.6745
    least = max(_OUTLIER_STEPS * step, 1e3 * _EPS * np.abs(values).max())
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
