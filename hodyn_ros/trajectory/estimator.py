"""Time derivatives of a measured stream, with standard deviations, while it comes in.

A bank of Kalman filters (see `kalman`) follows the stream. How well each of them has predicted the
latest measurements gives its weight and the noise of the measurements (see `model_weights`); the
estimate is the mean of the models. A derivative is reported while its standard deviation is small
beside its size (see `_ReportedOrders`).
"""

from __future__ import annotations

from functools import partial
from math import ceil, exp
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.checks import checked_number, finite_array
from hodyn_ros.errors import MotionError
from hodyn_ros.trajectory.kalman import ModelBank
from hodyn_ros.trajectory.model_weights import (
    CUTOFFS,
    LEAST_VARIANCE,
    Innovations,
    Rounding,
    Weighting,
    weighting,
)
from hodyn_ros.typing import Array
from hodyn_ros.units import NANOSECONDS

_number = partial(checked_number, error=MotionError)

# Time over which innovations are summed: longer ones adapt too late to the start of a motion,
# shorter ones choose the bandwidth worse [s].
_MEMORY = 0.3
# Standard deviations by which a value must miss all predictions to be left out at first, and to be
# beyond explanation.
_OUTLIER, _SURPRISE = 6.0, 30.0
# Largest distance of the states that are kept for smoothing [s].
_COPY_DISTANCE = 0.05
_STATES_ABOVE = 1  # the highest derivative that is wanted
_RENEWAL = 20_000_000  # time for which weights and covariances are used [ns]
_RATE_MEMORY = 0.005  # share of a new step in the typical one
_LARGEST = 1e100  # value whose square and more can be computed with
# Time over which the size of a derivative is averaged [s].
_SCALE_MEMORY = 5.0
# Angular frequency of the smallest motion of interest [rad/s].
_SMALLEST_FREQUENCY = 10.0
# A derivative that is reported may have a standard deviation larger by this factor; one that is
# not must be exact enough for this time before [s].
_HYSTERESIS, _HOLD = 1.5, 0.3
# Time over which large standard deviations are remembered [s]; how large over what is allowed,
# and after a value that has jumped: then it is gone in ln 2 of the time.
_PEAK_MEMORY, _LARGEST_PEAK, _PEAK_OF_JUMP = 2.0, 4.0, 2.0


class Estimate(NamedTuple):
    """Motion of n components at one instant, K = valid_order + 1.

    Examples
    --------
    >>> from hodyn_ros.trajectory import DerivativeEstimator
    >>> estimator = DerivativeEstimator(1, highest_derivative=1, noise=1e-4)
    >>> for time in range(0, 500_000_000, 4_000_000):
    ...     estimate = estimator.update(time, [2e-9 * time])
    >>> estimate.motion.round(2), estimate.valid_order, round(estimate.delay, 3)
    (array([[0.79],
           [2.  ]]), 1, 0.1)
    """

    time: int
    """Instant that the values belong to [ns]."""
    motion: Array
    """Values and those of their derivatives that are reported, shape (K, n) [unit/s^k]."""
    std: Array
    """Their standard deviations, shape (K, n) [unit/s^k]."""
    factor: Array
    """Lower Cholesky factor of the covariance of value, first, ... derivative of each component,
    shape (n, K, K)."""
    valid_order: int
    """Highest derivative that is reported, 0: only the values are."""
    delay: float
    """Time of the latest measurement minus `time`, negative for the future [s]."""
    noise: Array
    """Standard deviations of the measurement noise, given or identified, shape (n,) [unit]."""

    def deviations(self, orders: int) -> Array:
        """Independent deviations of one standard deviation, shape (n * orders, orders, n).

        Parameters
        ----------
        orders : int
            Of the motion that are deviated, from the value on; at most K.

        Returns
        -------
        ndarray, shape (n * orders, orders, n)
            [unit/s^k]. The sum of the outer products is the covariance, component by
            component.
        """
        n = self.factor.shape[0]
        steps = np.zeros((n, orders, orders, n))  # component, column, derivative, component
        each = np.arange(n)
        steps[each, :, :, each] = np.swapaxes(self.factor[:, :orders, :orders], 1, 2)
        return steps.reshape(n * orders, orders, n)


class DerivativeEstimator:
    """Values and time derivatives of a stream of measurements.

    A derivative is given only while its standard deviation is small beside its size.

    Parameters
    ----------
    n : int
        Number of components.
    highest_derivative : int
        At least 1.
    delay : float
        How long the estimate lies behind the newest measurement [s]. The measurements in between
        improve it by much, the more the higher the derivative.
    noise : array-like, shape () or (n,), optional
        Standard deviation of the measurement noise, quantisation included [unit]; by default
        identified.
    bandwidth : float, optional
        Fixes the frequency at which a motion as strong as the noise is cut off [Hz]; adapted, for
        each component, if not given.
    max_gap : float
        Longest time between measurements that is bridged [s].
    rate_noise : array-like, shape () or (n,), optional
        Standard deviation of the noise of measured rates [unit/s]; needs `noise`. Without it
        measured rates are not used: most drivers compute them from the same positions, with a
        delay, and they would count twice.
    vouched_fraction : float
        A derivative is reported up to this standard deviation, relative to its size.
    smallest_motion : float
        Amplitude of an oscillation at 10 rad/s that is still of interest [unit]. A derivative
        counts as no smaller than that of such an oscillation.

    Attributes
    ----------
    dropped, outliers : int
        Measurements that were not used: late, twice or with a stamp that no other one confirmed;
        and such that no model could explain.
    gaps : int
        How often it started anew because stamps jumped by more than `max_gap`.

    Raises
    ------
    MotionError
        If an argument cannot be used, or `rate_noise` is given without `noise`.

    Examples
    --------
    >>> from math import sin
    >>> from hodyn_ros.trajectory import DerivativeEstimator
    >>> estimator = DerivativeEstimator(1, highest_derivative=2)
    >>> for time in range(0, 2_000_000_000, 4_000_000):
    ...     estimate = estimator.update(time, [sin(3e-9 * time)])
    >>> estimate.valid_order
    2
    """

    def __init__(
        self,
        n: int,
        *,
        highest_derivative: int = 4,
        delay: float = 0.1,
        noise: ArrayLike | None = None,
        bandwidth: float | None = None,
        max_gap: float = 0.1,
        rate_noise: ArrayLike | None = None,
        vouched_fraction: float = 0.25,
        smallest_motion: float = 0.01,
    ) -> None:
        self._n = int(_number('n', n, least=1, most=1_000_000, whole=True))
        highest = int(
            _number('highest_derivative', highest_derivative, least=1, most=6, whole=True)
        )
        self._delay = round(NANOSECONDS * _number('delay', delay, least=0.0))
        self._max_gap = round(NANOSECONDS * _number('max_gap', max_gap, above=0.0))
        self._noise = None if noise is None else positive_numbers('noise', noise, self._n)
        # Components that share a bank, and the noise of their rates over that of values.
        self._groups: list[tuple[NDArray[np.intp] | slice, float | None]] = [
            (slice(None), None)
        ]
        if rate_noise is not None:
            if self._noise is None:
                raise MotionError(
                    'rate_noise is given without noise: how much a measured rate says depends on '
                    'both. Give noise too, or neither.'
                )
            ratios = positive_numbers('rate_noise', rate_noise, self._n) / self._noise
            self._groups = [
                (np.flatnonzero(ratios == ratio), float(ratio))
                for ratio in np.unique(ratios)
            ]
        self._cutoffs = CUTOFFS
        if bandwidth is not None:
            self._cutoffs = np.array(
                [2.0 * np.pi * _number('bandwidth', bandwidth, above=0.0)]
            )
        self._fraction = _number('vouched_fraction', vouched_fraction, above=0.0)
        self._smallest_motion = _number('smallest_motion', smallest_motion, above=0.0)
        self._K = highest + 1
        self._N = self._K + _STATES_ABOVE
        self._copy_after = 0
        self._n_copies = 0
        if self._delay:
            intervals = ceil(self._delay / (NANOSECONDS * _COPY_DISTANCE))
            self._copy_after = -(-self._delay // intervals)
            self._n_copies = intervals + 1
        self.dropped: int = 0
        self.outliers: int = 0
        self.gaps: int = 0
        self.reset()

    def reset(self) -> None:
        """Forget everything that was measured; the counters stay.

        The next measurement is the first of a stream.
        """
        n, K, M = self._n, self._K, len(self._cutoffs)
        self._banks: list[ModelBank] = []
        # A measurement behind a jump of the stamps, until the next one confirms it.
        self._unconfirmed: tuple[int, Array, Array | None] | None = None
        self._count, self._period = 0, 0.0
        self._origin, self._latest = np.zeros(n), np.zeros(n)
        self._missed = np.zeros(n, dtype=np.bool_)  # components that no model explained
        self._rounding = Rounding(n, self._smallest_motion)
        # Values and changes since the latest weights.
        self._unseen: list[tuple[Array, Array]] = []
        self._sums = Innovations(np.zeros(()), np.zeros(n), *np.zeros((2, n, M)))
        self._orders = _ReportedOrders(n, K, self._fraction, self._smallest_motion)
        # Of the models with a weight, by the latest sums; covariance by these.
        self._models = slice(0, M)
        self._weighting = Weighting(
            np.zeros((n, M)), np.zeros(n), np.zeros((n, M)), np.zeros(n)
        )
        self._noise_std = np.zeros(n)
        self._explained = np.zeros((M, n))  # squared innovations, over their variances
        self._std, self._factor = np.zeros((K, n)), np.zeros((n, K, K))
        # Stamps of the newest measurement and of the latest weights [ns].
        self._newest: int | None = None
        self._renewed: int | None = None

    def update(
        self, time: int, values: ArrayLike, rates: ArrayLike | None = None
    ) -> Estimate | None:
        """Take a measurement with its stamp [ns], values (n,) [unit] and rates (n,) [unit/s].

        A stamp that jumps by more than `max_gap`, ahead or back, is not believed before a second
        one follows it: then the estimator starts anew with the two. If the old stream goes on
        instead, it does so as if nothing had happened. Rates, NaN where there are none, are used
        if `rate_noise` is given.

        Parameters
        ----------
        time : int
            Stamp [ns].
        values : array-like, shape (n,)
            [unit]
        rates : array-like, shape (n,), optional
            Measured rates [unit/s]; NaN where there are none.

        Returns
        -------
        Estimate or None
            Motion at `time` minus the delay. None if nothing is reported yet or the measurement
            is not used.

        Raises
        ------
        MotionError
            If the time is no integer, a shape does not fit, a value is not finite or a rate is
            infinite. The measurement then changes nothing.
        """
        time = _checked_time(time)
        values = _checked('values', values, self._n)
        # Written such that NaN is refused too.
        if not np.abs(values).max() <= _LARGEST:
            raise MotionError(
                f'values are {values.tolist()}; all of them must be finite, up to {_LARGEST:g}.'
            )
        if rates is not None:
            rates = _checked('rates', rates, self._n)
            if np.any(np.abs(rates) > _LARGEST):
                raise MotionError(
                    f'rates are {rates.tolist()}; each must be finite, up to {_LARGEST:g}, or NaN.'
                )

        if self._newest is None:
            self._start(time, values)
            return None
        step = time - self._newest
        if abs(step) > self._max_gap:
            return self._jump(time, values, rates)
        if self._unconfirmed is not None:
            self._unconfirmed = None
            self.dropped += 1
        if step <= 0:
            self.dropped += 1
            return None
        self._filter(time, step, values, rates)
        at = time - self._delay
        if self._count < 5 * self._N or at < self._banks[0].oldest:
            return None
        if self._renewed is None or time - self._renewed >= _RENEWAL:
            self._renewed = time
            self._weigh()
            mean, self._std, self._factor = self._with_spread(at)
            self._orders.judge(at, mean.T, self._std, self._noise_std)
        else:
            mean, _ = self._mixture(at)
        return self._estimate(at, mean, self._std, self._factor, self._orders.highest)

    def at(self, time: int) -> Estimate | None:
        """Estimate at another time [ns], from all that was measured.

        Between the latest estimate and the newest measurement it is smoothed by the measurements
        behind it, ahead of that extrapolated by the models. It goes up to the order that is
        reported at present and whose standard deviation is not too large at that time; None if
        there is none, or the time is before all that is kept.

        Parameters
        ----------
        time : int
            [ns]

        Returns
        -------
        Estimate or None

        Raises
        ------
        MotionError
            If the time is no integer.
        """
        time = _checked_time(time)
        if self._orders.highest < 0 or time < self._banks[0].oldest:
            return None
        mean, std, factor = self._with_spread(time)
        return self._estimate(time, mean, std, factor, self._orders.highest_with(std))

    def _start(self, time: int, values: Array) -> None:
        """Begin a stream with a measurement; values count from this one."""
        self._newest, self._origin, self._latest = time, values, values
        self._count = 1
        for components, _ in self._groups:
            zeros = np.zeros(self._n)[components]
            bank = ModelBank(self._cutoffs, len(zeros), self._N, self._n_copies)
            bank.start(time, zeros)
            self._banks.append(bank)

    def _jump(self, time: int, values: Array, rates: Array | None) -> Estimate | None:
        """Take a measurement whose stamp does not follow the newest one.

        Returns
        -------
        Estimate or None
            That of `update` if the measurement confirms the one before, which did not
            follow either; then the stream begins anew with both.
        """
        unconfirmed = self._unconfirmed
        if unconfirmed is not None and 0 < time - unconfirmed[0] <= self._max_gap:
            self.reset()
            self.gaps += 1
            self._start(unconfirmed[0], unconfirmed[1])
            return self.update(time, values, rates)
        if unconfirmed is not None:
            self.dropped += 1
        self._unconfirmed = (time, values, rates)
        return None

    def _filter(self, time: int, step: int, values: Array, rates: Array | None) -> None:
        """Predict, correct and sum up the innovations.

        Parameters
        ----------
        time : int
            [ns]
        step : int
            Since the newest measurement [ns].
        values : ndarray, shape (n,)
            [unit]
        rates : ndarray, shape (n,), or None
            [unit/s]
        """
        seconds = 1e-9 * step
        self._newest = time
        self._period += (seconds - self._period) * max(1.0 / self._count, _RATE_MEMORY)
        self._count += 1
        change = values - self._latest
        self._unseen.append((values, change))
        forget = exp(-seconds / _MEMORY)
        for sums in self._sums:
            sums *= forget
        for bank in self._banks:
            bank.predict(time, self._period)
        relative = values - self._origin
        if not self._is_outlier(relative):
            self._correct(relative, rates, change != 0.0)
            self._latest = values

    def _is_outlier(self, values: Array) -> bool:
        """Whether no likely model explains a component, while they did so before.

        If they do not explain the next measurement either, the stream has changed.

        Parameters
        ----------
        values : ndarray, shape (n,)
            Counted from the first ones [unit].

        Returns
        -------
        bool
            Whether the measurement is to be left out.
        """
        if self._renewed is None:  # what noise explains is not known yet
            return False
        before, self._missed = self._missed, np.zeros(self._n, dtype=np.bool_)
        for bank, (columns, _) in zip(self._banks, self._groups):
            innovation, variance = bank.innovation(values[columns], self._models)
            is_beyond = innovation**2 > variance[:, None] * self._explained[:, columns]
            self._missed[columns] = is_beyond.all(axis=0)
        is_first = bool((self._missed & ~before).any())
        self.outliers += is_first
        return is_first

    def _correct(
        self, values: Array, rates: Array | None, moved: NDArray[np.bool_]
    ) -> None:
        """Correct by a measurement at the present time.

        Parameters
        ----------
        values : ndarray, shape (n,)
            Counted from the first ones [unit].
        rates : ndarray, shape (n,), or None
            [unit/s]
        moved : ndarray of bool, shape (n,)
            Whether a value is another one than before.
        """
        number, changes, squares, logarithms = self._sums
        counts = self._count > self._N + 1
        if counts:
            number += 1.0
            changes += moved
        for bank, (columns, ratio) in zip(self._banks, self._groups):
            pairs = [bank.measure(values[columns])]
            if (
                rates is not None
                and ratio is not None
                and np.isfinite(rates[columns]).all()
            ):
                pairs.append(bank.measure(rates[columns], 1, ratio))
            if counts:
                for innovation, variance in pairs:
                    squares[columns] += (innovation**2 / variance[:, None]).T
                    logarithms[columns] += np.log(variance)
            if self._missed.any() and self._is_surprise(columns, *pairs[0]):
                self._orders.drop()
            if self._copy_after and bank.time - bank.newest_copy >= self._copy_after:
                bank.copy()

    def _is_surprise(
        self, columns: NDArray[np.intp] | slice, innovation: Array, variance: Array
    ) -> bool:
        """Whether a value comes that none of the models can explain.

        Covariances do not depend on values: by them it would be as good as any other.

        Parameters
        ----------
        columns : ndarray of int or slice
            Which of the n components, c of them.
        innovation : ndarray, shape (M, c)
            [unit]
        variance : ndarray, shape (M,)
            Of the innovations, over that of the noise.
        """
        size = np.abs(innovation)
        # What is smaller does not matter, however exact the measurements are.
        is_large = size.min(axis=0) > self._fraction * self._smallest_motion
        misses = (size / np.sqrt(variance)[:, None]).min(axis=0)
        return bool((is_large & (misses > _SURPRISE * self._noise_std[columns])).any())

    def _weigh(self) -> None:
        """Update noise, weights and which models have any."""
        self._rounding.see(*np.stack(self._unseen, axis=1))
        self._unseen.clear()
        noise = None if self._noise is None else self._noise**2
        found = weighting(self._sums, self._rounding, self._cutoffs * self._period, noise)
        used = np.flatnonzero(found.weights.any(axis=0))
        self._models = slice(int(used[0]), int(used[-1]) + 1)
        weights = found.weights[:, self._models].copy()
        variances = found.variances[:, self._models].copy()
        self._weighting = found._replace(weights=weights, variances=variances)
        self._noise_std = np.sqrt(found.noise)
        self._explained = np.where(weights > 0.0, _OUTLIER**2 * found.noise[:, None], 0.0).T

    def _mixture(self, time: int, *, spread: bool = False) -> tuple[Array, Array]:
        """Mean of all models together, m = sum(w m_i), and its covariance.

        Parameters
        ----------
        time : int
            [ns]
        spread : bool
            Whether the covariance is wanted, sum(w (v s_i P_i + (m_i - m) (m_i - m)^T)).

        Returns
        -------
        mean : ndarray, shape (n, K)
            [unit/s^k]
        covariance : ndarray, shape (n, K, K)
            Of value, first, ... derivative.
        """
        n, K = self._n, self._K
        mean, covariance = np.empty((n, K)), np.empty((n, K, K))
        for bank, (columns, _) in zip(self._banks, self._groups):
            means = bank.means(time, K, self._models).transpose(1, 0, 2)
            weights = self._weighting.weights[columns, :, None]
            mixed = (weights * means).sum(axis=1)
            mean[columns] = mixed
            if spread:
                apart = means - mixed[:, None]
                models = bank.covariances(time, K, self._models).reshape(-1, K * K)
                within = self._weighting.variances[columns] @ models
                covariance[columns] = (weights * apart).transpose(0, 2, 1) @ apart
                covariance[columns] += within.reshape(-1, K, K)
        mean[:, 0] += self._origin
        return mean, covariance

    def _with_spread(self, time: int) -> tuple[Array, Array, Array]:
        """Mean (n, K), standard deviations (K, n) and Cholesky factors (n, K, K)."""
        mean, covariance = self._mixture(time, spread=True)
        covariance[:, 0, 0] += self._weighting.offset
        diagonal = covariance.reshape(self._n, -1)[:, :: self._K + 1]
        units = np.sqrt(np.maximum(diagonal, LEAST_VARIANCE))
        scaled = covariance / (units[:, :, None] * units[:, None])
        try:
            factor = np.linalg.cholesky(scaled)
        except np.linalg.LinAlgError:
            # Rounding has made the smallest eigenvalues negative.
            values, vectors = np.linalg.eigh(scaled)
            values = np.maximum(values, 1e-9 * values[:, -1:])
            scaled = (vectors * values[:, None]) @ vectors.transpose(0, 2, 1)
            factor = np.linalg.cholesky(scaled)
            units = units * np.sqrt(np.maximum(np.einsum('nkk->nk', scaled), 1.0))
            factor /= np.sqrt(np.einsum('nkk->nk', scaled))[:, :, None]
        return mean, units.T, np.multiply(factor, units[:, :, None], out=scaled)

    def _estimate(
        self, time: int, mean: Array, std: Array, factor: Array, order: int
    ) -> Estimate | None:
        """Estimate up to an order, with arrays of its own; None below order 0."""
        if order < 0 or self._newest is None:
            return None
        K = order + 1
        arrays = mean[:, :K].T.copy(), std[:K].copy(), factor[:, :K, :K].copy()
        delay = 1e-9 * (self._newest - time)
        return Estimate(time, *arrays, order, delay, self._noise_std.copy())


class _ReportedOrders:
    """Highest derivative of n components that is reported, from the latest estimates.

    The k-th derivative is reported if, for each component, its standard deviation is at most a
    fraction of its RMS, and those of lower orders are reported.

    Parameters
    ----------
    n, K : int
        Components and orders, the value included.
    fraction : float
        Largest standard deviation, relative to the RMS.
    smallest_motion : float
        Amplitude of an oscillation at 10 rad/s, which no RMS is smaller than [unit].

    Attributes
    ----------
    highest : int
        Order that is reported; -1: not even the value.
    """

    def __init__(self, n: int, K: int, fraction: float, smallest_motion: float) -> None:
        self.highest = -1
        self._fraction = fraction
        powers = _SMALLEST_FREQUENCY ** np.arange(float(K))[:, None]
        self._smallest = smallest_motion * powers
        self._allowed = np.broadcast_to(fraction * self._smallest, (K, n))
        # Forgetting sum of the squares of the derivatives, and of ones.
        self._power, self._number = np.zeros((K, n)), 0.0
        # Largest standard deviations of late, over what is allowed, of the orders that were
        # reported at any time.
        self._peak, self._orders_known = np.zeros(K), 0
        # Stamps [ns]: of the latest estimate; since when a higher order is exact enough.
        self._judged: int | None = None
        self._rising_since: int | None = None

    def judge(self, time: int, motion: Array, std: Array, noise: Array) -> None:
        """Take an estimate.

        Parameters
        ----------
        time : int
            [ns]
        motion, std : ndarray, shape (K, n)
            With standard deviations [unit/s^k].
        noise : ndarray, shape (n,)
            Standard deviation of the measurements [unit].
        """
        seconds = 0.0 if self._judged is None else 1e-9 * (time - self._judged)
        self._judged = time
        forget = exp(-seconds / _SCALE_MEMORY)
        # The square of an estimate is larger than that of the truth by its variance.
        self._power = forget * self._power + (motion**2 - std**2)
        self._number = forget * self._number + 1.0
        size = np.sqrt(np.maximum(self._power, 0.0) / self._number)
        self._allowed = self._fraction * np.maximum(size, self._smallest)
        # The value itself is as good as its measurement.
        self._allowed[0] = np.maximum(self._fraction * self._smallest[0], noise)
        excess = self._excess(std)
        self.highest = self.highest_with(std)
        # How a motion sets in shows only when it has left the noise. So an order that was lost in
        # a motion does not come back in every pause.
        self._peak *= exp(-seconds / _PEAK_MEMORY)
        known = slice(0, self._orders_known)
        self._peak[known] = np.maximum(self._peak[known], excess[known])
        np.minimum(self._peak, _LARGEST_PEAK, out=self._peak)
        deserved = _leading(np.maximum(self._peak, excess) <= 1.0) - 1
        if deserved <= self.highest:
            self._rising_since = None
        elif self._rising_since is None:
            self._rising_since = time
        elif time - self._rising_since >= NANOSECONDS * _HOLD:
            self.highest, self._rising_since = deserved, None
            self._orders_known = max(self._orders_known, deserved + 1)

    def highest_with(self, std: Array) -> int:
        """Highest order that is reported and whose standard deviation is not too large.

        Parameters
        ----------
        std : ndarray, shape (K, n)
            [unit/s^k]
        """
        return min(self.highest, _leading(self._excess(std) <= _HYSTERESIS) - 1)

    def drop(self) -> None:
        """Report no derivative for a while: the values have jumped."""
        self.highest = min(self.highest, 0)
        self._rising_since = None
        np.maximum(self._peak[1:], _PEAK_OF_JUMP, out=self._peak[1:])

    def _excess(self, std: Array) -> Array:
        """Largest standard deviation of each order over what is allowed, (K,)."""
        return np.asarray((std / self._allowed).max(axis=1))


def _leading(flags: NDArray[np.bool_]) -> int:
    """Return how many flags are true before the first one that is not."""
    return len(flags) if flags.all() else int(flags.argmin())


def _checked_time(time: int) -> int:
    """Time as an int; refuses what is no integer."""
    if isinstance(time, bool) or not isinstance(time, (int, np.integer)):
        raise MotionError(f'time is {time!r}, expected an integer number of nanoseconds.')
    return int(time)


def _checked(name: str, values: ArrayLike, n: int) -> Array:
    """Values as a new array of shape (n,)."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise MotionError(f'{name} cannot be made an array of numbers: {error}.') from error
    if array.shape != (n,) or np.ma.is_masked(values):
        masked = ' with masked values' if np.ma.is_masked(values) else ''
        raise MotionError(f'{name} has shape {array.shape}{masked}, expected ({n},).')
    return array


def positive_numbers(name: str, values: ArrayLike, n: int) -> Array:
    """Positive finite numbers, one for each of n components, as a new array.

    Parameters
    ----------
    name : str
        For messages.
    values : array-like, shape (), (1,) or (n,)
    n : int

    Returns
    -------
    ndarray, shape (n,)

    Raises
    ------
    MotionError
        If they are not positive and finite, or have another shape.
    """
    array = finite_array(name, values, MotionError)
    if array.shape not in ((), (1,), (n,)) or not (array > 0.0).all():
        raise MotionError(
            f'{name} is {values!r}, expected a positive number or one for each of the {n} '
            'components.'
        )
    return np.broadcast_to(array, (n,)).copy()
