"""Time derivatives of a measured stream, with standard deviations, while it comes in.

How well each filter of a bank (see `kalman`) has predicted the latest measurements gives its
weight (multiple models: Magill, "Optimal adaptive estimation of sampled stochastic processes",
IEEE Trans. Autom. Control 10(4), 1965) and the noise of the measurements.
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
from hodyn_ros.trajectory.model_weights import CUTOFFS
from hodyn_ros.typing import Array
from hodyn_ros.units import NANOSECONDS

_number = partial(checked_number, error=MotionError)


# Times over which predictions are judged (longer ones adapt too late to the start of a motion,
# shorter ones choose the bandwidth worse) and the size of a derivative is averaged [s].
_MEMORY, _SCALE_MEMORY = 0.3, 5.0
# Largest standard deviation, relative to the size of the derivative, that is vouched for.
_VOUCHED_FRACTION = 0.25
# Amplitude, in the unit of the values, and angular frequency of the smallest motion of interest.
_SMALLEST_MOTION, _SMALLEST_FREQUENCY = 0.01, 10.0
# A derivative that is vouched for may have a standard deviation larger by this factor; it must
# deserve it for this time before [s].
_HYSTERESIS, _HOLD = 1.5, 0.3
# Time over which large standard deviations are remembered [s]; how large over what is allowed,
# and after a value that has jumped: then it is gone in ln 2 of the time.
_PEAK_MEMORY, _LARGEST_PEAK, _PEAK_OF_SURPRISE = 2.0, 4.0, 2.0
# Standard deviations by which a value must miss all predictions to be left out at first, and to be
# beyond explanation.
_OUTLIER, _SURPRISE = 6.0, 30.0
# Step of values that stand still and have shown none, over the smallest motion of interest.
_UNKNOWN_STEP = 0.01
# Largest distance of the states that are kept for smoothing [s].
_COPY_DISTANCE = 0.05
_STATES_ABOVE = 1
_RENEWAL = 20_000_000  # time for which weights and covariances are used [ns]
_RATE_MEMORY = 0.005  # share of a new step in the typical one
_NEGLIGIBLE = 1e-12  # weight of a model
_LEAST_VARIANCE = 1e-200  # of any noise or estimate
_LARGEST = 1e100  # value whose square and more can be computed with
_EPS = 4.0 * float(np.finfo(np.float64).eps)  # relative rounding of a value


class Estimate(NamedTuple):
    """Motion of n components at one instant, K = valid_order + 1."""

    time: int
    """Instant that the values belong to [ns]."""
    motion: Array
    """Values and their derivatives as far as they are vouched for, shape (K, n) [unit/s^k]."""
    std: Array
    """Their standard deviations, shape (K, n) [unit/s^k]."""
    factor: Array
    """Lower Cholesky factor of the covariance of value, first, ... derivative of each component,
    shape (n, K, K)."""
    valid_order: int
    """Highest derivative that is vouched for, 0: only the values are."""
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
        A derivative is vouched for up to this standard deviation, relative to its size.
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
        vouched_fraction: float = _VOUCHED_FRACTION,
        smallest_motion: float = _SMALLEST_MOTION,
    ) -> None:
        self._n = int(_number('n', n, least=1, most=1_000_000, whole=True))
        highest = int(
            _number('highest_derivative', highest_derivative, least=1, most=6, whole=True)
        )
        self._delay = round(NANOSECONDS * _number('delay', delay, least=0.0))
        self._max_gap = round(NANOSECONDS * _number('max_gap', max_gap, above=0.0))
        self._noise = None if noise is None else positive_numbers('noise', noise, self._n)
        # Components that share their covariances, with the ratio of the noises of their rates.
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
        smallest = _number('smallest_motion', smallest_motion, above=0.0)
        self._K = highest + 1
        self._smallest = smallest * _SMALLEST_FREQUENCY ** np.arange(self._K)[:, None]
        # What is smaller does not matter, however exact the measurements are.
        self._least_surprise = self._fraction * smallest
        self._unknown_rounding = (_UNKNOWN_STEP * smallest) ** 2 / 12.0
        self._N = self._K + _STATES_ABOVE
        self._copy_after = 0
        self._n_copies = 0
        if self._delay:
            intervals = ceil(self._delay / (NANOSECONDS * _COPY_DISTANCE))
            self._copy_after = -(-self._delay // intervals)
            self._n_copies = intervals + 1
        self.dropped = self.outliers = self.gaps = 0
        self.reset()

    def reset(self) -> None:
        """Forget everything that was measured; the counters stay.

        The next measurement is the first of a stream.
        """
        n, K, M = self._n, self._K, len(self._cutoffs)
        self._banks: list[ModelBank] = []
        self._suspect: tuple[int, Array, Array | None] | None = None
        self._count, self._period = 0, 0.0
        self._origin, self._latest, self._size = np.zeros(n), np.zeros(n), np.zeros(n)
        self._rounding = Rounding(n)
        # Forgetting sums over the measurements: how many, logarithm of the expected variances,
        # squared innovations over them.
        self._number, self._changes = 0.0, np.zeros(n)
        self._missed = np.zeros(n, dtype=np.bool_)
        self._log_variance, self._squares = np.zeros((M, n)), np.zeros((M, n))
        self._power, self._power_weight = np.zeros((K, n)), 0.0
        self._allowed = self._fraction * self._smallest
        self._std, self._factor = np.zeros((K, n)), np.zeros((n, K, K))
        self._models = slice(0, M)
        self._weights = self._scaled_weights = self._squares.T
        self._deviation = self._offset = np.zeros(n)
        self._valid = self._highest = -1
        self._peak = np.zeros(K)
        # Stamps [ns]: of the newest measurement, of the latest weights and judgement of the
        # orders; since when a higher one is deserved.
        self._newest: int | None = None
        self._renewed: int | None = None
        self._judged: int | None = None
        self._rising_since: int | None = None

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
            Motion at `time` minus the delay. None if nothing is vouched for yet or the measurement
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
        if self._suspect is not None:
            self._suspect = None
            self.dropped += 1
        if step <= 0:
            self.dropped += 1
            return None
        self._take(time, step, values, rates)
        at = time - self._delay
        if self._count < 5 * self._N or at < self._banks[0].oldest:
            return None
        if self._renewed is None or time - self._renewed >= _RENEWAL:
            self._renewed = time
            self._weigh()
            mean, self._std, self._factor = self._with_spread(at)
            self._judge(at, mean)
        else:
            mean = self._mixture(at)
        return self._estimate(at, mean, self._std, self._factor, self._valid)

    def at(self, time: int) -> Estimate | None:
        """Estimate at another time [ns], from all that was measured.

        Between the latest estimate and the newest measurement it is smoothed by the measurements
        behind it, ahead of that carried on by the models. It goes up to the order that is vouched
        for at present and whose standard deviation is not too large at that time; None if there is
        none, or the time is before all that is kept.

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
        if self._valid < 0 or time < self._banks[0].oldest:
            return None
        mean, std, factor = self._with_spread(time)
        order = min(self._valid, _leading(self._excess(std) <= _HYSTERESIS) - 1)
        return self._estimate(time, mean, std, factor, order)

    def _start(self, time: int, values: Array) -> None:
        """Begin a stream with a measurement; values count from this one."""
        self._newest, self._origin, self._latest = time, values.copy(), values.copy()
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
        suspect = self._suspect
        if suspect is not None and 0 < time - suspect[0] <= self._max_gap:
            self.reset()
            self.gaps += 1
            self._start(suspect[0], suspect[1])
            return self.update(time, values, rates)
        if suspect is not None:
            self.dropped += 1
        self._suspect = (time, values.copy(), rates)
        return None

    def _take(self, time: int, step: int, values: Array, rates: Array | None) -> None:
        """Predict, correct and keep account of how well that went.

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
        self._rounding.see(values - self._latest)
        np.maximum(self._size, np.abs(values), out=self._size)
        forget = exp(-seconds / _MEMORY)
        self._number *= forget
        self._changes *= forget
        self._log_variance *= forget
        self._squares *= forget
        for bank in self._banks:
            bank.predict(time, self._period)
        relative = values - self._origin
        if not self._is_outlier(relative):
            self._correct(relative, rates, values != self._latest)
            self._latest = values.copy()

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
        for bank, (components, _) in zip(self._banks, self._groups):
            innovation, variance = bank.expected(values[components], self._models)
            explained = variance[:, None] * self._explained[:, components]
            self._missed[components] = (innovation**2 > explained).all(axis=0)
        is_first = bool((self._missed & ~before).any())
        self.outliers += is_first
        return is_first

    def _correct(
        self, values: Array, rates: Array | None, moved: NDArray[np.bool_]
    ) -> None:
        """Use a measurement at the present time.

        Parameters
        ----------
        values : ndarray, shape (n,)
            Counted from the first ones [unit].
        rates : ndarray, shape (n,), or None
            [unit/s]
        moved : ndarray of bool, shape (n,)
            Whether a value is another one than before.
        """
        counts = self._count > self._N + 1
        self._number += counts
        self._changes += counts * moved
        for bank, (components, ratio) in zip(self._banks, self._groups):
            found = [bank.measure(values[components])]
            if (
                rates is not None
                and ratio is not None
                and not np.isnan(rates[components]).any()
            ):
                found.append(bank.measure(rates[components], 1, ratio))
            if counts:
                for innovation, variance in found:
                    self._log_variance[:, components] += np.log(variance)[:, None]
                    self._squares[:, components] += innovation**2 / variance[:, None]
            if self._missed.any():
                self._check_surprise(components, *found[0])
            if self._copy_after and bank.time - bank.newest_copy >= self._copy_after:
                bank.copy()

    def _check_surprise(
        self, components: NDArray[np.intp] | slice, innovation: Array, variance: Array
    ) -> None:
        """Vouch for no derivative when a value comes that none of the models can explain.

        Covariances do not depend on values: by them it would be as good as any other.

        Parameters
        ----------
        components : ndarray of int or slice
            Which of the n, c of them.
        innovation : ndarray, shape (M, c)
            Measured minus predicted [unit].
        variance : ndarray, shape (M,)
            Of the innovations, over that of the noise.
        """
        size = np.abs(innovation)
        is_large = size.min(axis=0) > self._least_surprise
        misses = (size / np.sqrt(variance)[:, None]).min(axis=0)
        if (is_large & (misses > _SURPRISE * self._deviation[components])).any():
            self._valid = min(self._valid, 0)
            self._rising_since = None
            np.maximum(self._peak[1:], _PEAK_OF_SURPRISE, out=self._peak[1:])

    def _weigh(self) -> None:
        """Update noise, weights and which models have any."""
        new = self._changes / max(self._number, _NEGLIGIBLE)
        rounding = self._rounding.variance
        # What stands still may do so between two steps that are not known yet.
        rounding = np.where(
            (rounding == 0.0) & (new < 0.5), self._unknown_rounding, rounding
        )
        if self._noise is None:
            # Maximum likelihood for each model by itself. A signal that stands still between two
            # steps of its rounding shows no noise, and would hide that of its motion.
            least = np.maximum(rounding, (_EPS * self._size) ** 2)
            variance = self._squares / self._number
            np.maximum(variance, np.maximum(least, _LEAST_VARIANCE), out=variance)
            score = self._number * np.log(variance)
        else:
            variance = np.broadcast_to(self._noise**2, self._squares.shape)
            score = self._squares / variance
        score += self._log_variance
        score -= score.min(axis=0)
        weights = np.exp(-0.5 * score)
        weights[weights < _NEGLIGIBLE] = 0.0
        weights /= weights.sum(axis=0)
        used = np.flatnonzero(weights.any(axis=1))
        self._models = slice(int(used[0]), int(used[-1]) + 1)
        self._weights = weights[self._models].T.copy()
        self._scaled_weights = self._weights * variance[self._models].T
        noise = self._scaled_weights.sum(axis=1)
        # What is repeated says nothing new about motions slower than the time for which it stays.
        share = new[:, None] + self._cutoffs[self._models] * self._period
        self._scaled_weights /= np.minimum(share, 1.0)
        self._explained = np.where(self._weights > 0.0, _OUTLIER**2 * noise[:, None], 0.0).T
        # What stays between two steps of its rounding is off by the same all the time.
        self._offset = np.where(noise < 3.0 * rounding, rounding, 0.0)
        self._deviation = np.sqrt(noise)

    def _mixture(self, time: int, covariance: Array | None = None) -> Array:
        """Mean (n, K) of all models together; their covariance (n, K, K) if there is room.

        Parameters
        ----------
        time : int
            [ns]
        covariance : ndarray, shape (n, K, K), optional
            Filled with that of value, first, ... derivative.

        Returns
        -------
        ndarray, shape (n, K)
            [unit/s^k]
        """
        K, mean = self._K, np.empty((self._n, self._K))
        for bank, (components, _) in zip(self._banks, self._groups):
            means = bank.means(time, K, self._models).transpose(1, 0, 2)
            share = self._weights[components, :, None]
            mixed = (share * means).sum(axis=1)
            mean[components] = mixed
            if covariance is not None:
                spread = means - mixed[:, None]
                covariances = bank.covariances(time, K, self._models)
                flat = self._scaled_weights[components] @ covariances.reshape(-1, K * K)
                covariance[components] = (share * spread).transpose(0, 2, 1) @ spread
                covariance[components] += flat.reshape(-1, K, K)
        mean[:, 0] += self._origin
        return mean

    def _with_spread(self, time: int) -> tuple[Array, Array, Array]:
        """Mean (n, K), standard deviations (K, n) and Cholesky factors (n, K, K)."""
        covariance = np.empty((self._n, self._K, self._K))
        mean = self._mixture(time, covariance)
        covariance[:, 0, 0] += self._offset
        diagonal = covariance.reshape(self._n, -1)[:, :: self._K + 1]
        units = np.sqrt(np.maximum(diagonal, _LEAST_VARIANCE))
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

    def _judge(self, time: int, mean: Array) -> None:
        """Decide on the order that is vouched for, from the average squares of the derivatives.

        Parameters
        ----------
        time : int
            Of the estimate [ns].
        mean : ndarray, shape (n, K)
            [unit/s^k]
        """
        seconds = 0.0 if self._judged is None else 1e-9 * (time - self._judged)
        self._judged = time
        forget = exp(-seconds / _SCALE_MEMORY)
        # The square of an estimate is larger than that of the truth by its variance.
        self._power *= forget
        self._power += mean.T**2 - self._std**2
        self._power_weight = self._power_weight * forget + 1.0
        size = np.sqrt(np.maximum(self._power, 0.0) / self._power_weight)
        self._allowed = self._fraction * np.maximum(size, self._smallest)
        # The value itself is as good as its measurement.
        self._allowed[0] = np.maximum(self._fraction * self._smallest[0], self._deviation)
        excess = self._excess(self._std)
        self._valid = min(self._valid, _leading(excess <= _HYSTERESIS) - 1)
        # How a motion sets in shows only when it has left the noise. So an order that was lost in
        # a motion does not come back in every pause.
        self._peak *= exp(-seconds / _PEAK_MEMORY)
        known = self._highest + 1
        np.maximum(self._peak[:known], excess[:known], out=self._peak[:known])
        np.minimum(self._peak, _LARGEST_PEAK, out=self._peak)
        deserved = _leading(np.maximum(self._peak, excess) <= 1.0) - 1
        if deserved <= self._valid:
            self._rising_since = None
        elif self._rising_since is None:
            self._rising_since = time
        elif time - self._rising_since >= NANOSECONDS * _HOLD:
            self._valid, self._rising_since = deserved, None
            self._highest = max(self._highest, deserved)

    def _excess(self, std: Array) -> Array:
        """Return the largest standard deviation of each order over what is allowed, (K,)."""
        return np.asarray((std / self._allowed).max(axis=1))

    def _estimate(
        self, time: int, mean: Array, std: Array, factor: Array, order: int
    ) -> Estimate | None:
        """Estimate up to an order, with arrays of its own; None below order 0."""
        if order < 0 or self._newest is None:
            return None
        K = order + 1
        arrays = mean[:, :K].T.copy(), std[:K].copy(), factor[:, :K, :K].copy()
        delay = 1e-9 * (self._newest - time)
        return Estimate(time, *arrays, order, delay, self._deviation.copy())


class Rounding:
    """Finds out to which steps the values of a stream are rounded.

    The smallest change between neighbouring values is the step, once it was seen three times and
    the value stood still in between.

    Parameters
    ----------
    n : int
        Number of components.
    """

    def __init__(self, n: int) -> None:
        self.variance = np.zeros(n)
        """Of the error of rounding, zero where no steps are known, shape (n,) [unit^2]."""
        self._step = np.full(n, np.inf)
        self._seen = np.zeros(n)
        self._stood = np.zeros(n, dtype=np.bool_)
        self._still = self._stood

    def see(self, change: Array) -> None:
        """Take the change from one value to the next, shape (n,) [unit].

        Parameters
        ----------
        change : ndarray, shape (n,)
            [unit]
        """
        still = change == 0.0
        # Most streams are not rounded to visible steps, or stand still: little is to be done.
        if still.any():
            self._stood = self._stood | (still & self._still)
        self._still = still
        size = np.abs(change)
        near = (size <= 1.01 * self._step) & ~still
        if near.any():
            smaller = near & (size < 0.99 * self._step)
            self._seen = np.where(smaller, 1.0, self._seen + near)
            self._step = np.where(smaller, size, self._step)
            known = (self._seen >= 3.0) & self._stood
            self.variance = np.where(known, self._step**2 / 12.0, 0.0)


def _leading(flags: NDArray[np.bool_]) -> int:
    """Return how many flags are true before the first one that is not."""
    return len(flags) if flags.all() else int(flags.argmin())


def _checked_time(time: int) -> int:
    """Time as an int; refuses what is no integer."""
    if isinstance(time, bool) or not isinstance(time, (int, np.integer)):
        raise MotionError(f'time is {time!r}, expected an integer number of nanoseconds.')
    return int(time)


def _checked(name: str, values: ArrayLike, n: int) -> Array:
    """Values as an array of shape (n,)."""
    try:
        array = np.asarray(values, dtype=np.float64)
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
