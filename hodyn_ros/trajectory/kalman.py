"""Bank of Kalman filters for the derivatives of noisy measurements at irregular times.

Each model says that the N-th derivative of a measured value is white noise; the state holds the
value and its first N - 1 derivatives. The models differ in the ratio of that noise to the noise of
the measurements. With covariances in units of the variance of the measurement noise, this ratio
and the times are all that they depend on, so all components share them.

Copies of earlier states are carried along in the state, so that later measurements smooth them
(fixed-lag smoothing). Between two copies the model itself interpolates.

Sources: Kalman, "A new approach to linear filtering and prediction problems", J. Basic Eng. 82(1),
1960; Bar-Shalom, Li and Kirubarajan, "Estimation with Applications to Tracking and Navigation",
2001, sections 6.2 (models driven by white noise) and 9.5 (smoothing).
"""

from __future__ import annotations

from math import comb, factorial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.typing import Array

# Variance of everything before the first measurement, in units of the measurement noise and of the
# time scale of each model: enough to forget it, and eps times it is still far below one.
_PRIOR = 1e10
# Variance from which on a model starts anew: it is far too fast for the times between the
# measurements, and rounding of such variances would make others negative.
_DIVERGED = 1e12
# Step, in units of the time scale of a model, that hardly changes the state. The states at both
# ends then say the same, and weighing their differences would amplify rounding.
_SHORT = 0.2

_ALL = slice(None)


class ModelBank:
    """Filters of n components with a common sequence of measurement times.

    Signal and noise of the M models are equally strong at the angular frequencies `cutoffs` (M,)
    [rad/s]. A state has `n_states` values and derivatives, N; so many earlier states are kept and
    smoothed as there are copies. `time` is that of the newest measurement, from `oldest` on states
    are known [ns].

    Parameters
    ----------
    cutoffs : ndarray, shape (M,)
        [rad/s]
    n : int
        Number of components.
    n_states : int
        N, the value included.
    n_copies : int
        Earlier states that are kept; zero: nothing is smoothed.

    Attributes
    ----------
    time, oldest : int
        [ns]
    """

    def __init__(self, cutoffs: Array, n: int, n_states: int, n_copies: int) -> None:
        M, N, size = len(cutoffs), n_states, n_states * (1 + n_copies)
        self.cutoffs = cutoffs
        self.time: int = 0
        self.oldest: int = 0
        self._N = N
        # The copies, oldest first, and then the newest state. Time is multiplied by the cut-off.
        self._newest = size - N
        self._units = cutoffs[:, None] ** np.arange(float(N))
        self._mean = np.zeros((M, n, size))
        self._covariance = np.zeros((M, size, size))
        self._outer = np.empty((M, size, size))
        self._covariance[:, range(size - N, size), range(size - N, size)] = _PRIOR
        self._steps = StepMatrices(N)
        self._step = -1
        self._transition = np.zeros((M, N, N))
        self._transposed = self._transition
        self._driven = np.zeros((M, N, N))
        self._intensity = np.zeros((M, 1, 1))
        # Times of the copies [ns], oldest first.
        self._n_copies = n_copies
        self._copies: list[int] = []
        self._latest_support: _Support | None = None

    def start(self, time: int, values: Array) -> None:
        """Take the first measurement, values (n,) at a time [ns].

        Parameters
        ----------
        time : int
            [ns]
        values : ndarray, shape (n,)
            [unit]
        """
        self.time = self.oldest = time
        place = self._newest
        self._mean[:, :, place] = values
        self._covariance[:, place, place] = 1.0
        if self._n_copies:
            self.copy()

    def predict(self, time: int, period: float) -> None:
        """Move on to a later time [ns].

        `period` is the typical time between measurements [s]: at the cut-off of a model, the
        signal that it expects is as strong as the noise of measurements at this distance.

        Parameters
        ----------
        time : int
            Not before the newest measurement [ns].
        period : float
            [s]
        """
        step = time - self.time
        if step != self._step:
            self._transition, self._driven = self._steps.matrices(
                self.cutoffs * (1e-9 * step)
            )
            self._transposed = self._transition.transpose(0, 2, 1)
            self._step = step
        self._intensity = (self.cutoffs * period)[:, None, None]
        P, F_T, place = self._covariance, self._transposed, self._newest
        # Covariances of the newest state with all others, then with itself: F P F^T + Q.
        rows = self._transition @ P[:, place:]
        newest = rows[:, :, place:] @ F_T
        # Symmetric to the last bit, so that rounding cannot drift apart over hours.
        newest += newest.transpose(0, 2, 1)
        newest *= 0.5
        newest += self._driven * self._intensity
        rows[:, :, place:] = newest
        P[:, place:] = rows
        P[:, :, place:] = rows.transpose(0, 2, 1)
        self._mean[:, :, place:] = self._mean[:, :, place:] @ F_T
        self.time = time
        if not self._n_copies:
            self.oldest = time

    def innovation(self, values: Array, models: slice) -> tuple[Array, Array]:
        """Innovations of values (n,) that are not used, of some models.

        Parameters
        ----------
        values : ndarray, shape (n,)
            [unit]
        models : slice
            Which of the M.

        Returns
        -------
        innovation : ndarray, shape (models, n)
            Measured minus predicted [unit].
        variance : ndarray, shape (models,)
            Over that of the noise.
        """
        place = self._newest
        variance = self._covariance[models, place, place] + 1.0
        return values - self._mean[models, :, place], variance

    def measure(
        self, values: Array, order: int = 0, ratio: float = 1.0
    ) -> tuple[Array, Array]:
        """Correct by a derivative of some order (n,) that is measured at the present time.

        With c the column of the covariance P of that derivative and s = P_kk + r^2 the variance of
        the innovation e, the mean becomes x + c e / s and the covariance P - c c^T / s.

        `ratio` is the standard deviation of its noise over that of the values [1/s^order]. Returns
        the innovations (M, n), measured minus predicted, and their variances (M,) in units of that
        of the noise of values.

        Parameters
        ----------
        values : ndarray, shape (n,)
            [unit/s^order]
        order : int
            Of the derivative, 0: the value.
        ratio : float
            [1/s^order]

        Returns
        -------
        innovation : ndarray, shape (M, n)
            [unit/s^order]
        variance : ndarray, shape (M,)
            Over that of the noise of values [1/s^(2 order)].
        """
        unit = self._units[:, order]
        index = self._newest + order
        if self._covariance[:, index, index].max() > _DIVERGED:
            self._restart(self._covariance[:, index, index] > _DIVERGED)
        column = self._covariance[:, :, index].copy()
        variance = column[:, index] + (ratio / unit) ** 2
        innovation = values / unit[:, None] - self._mean[:, :, index]
        self._mean += innovation[:, :, None] * (column / variance[:, None])[:, None, :]
        column /= np.sqrt(variance)[:, None]
        np.einsum('mi,mj->mij', column, column, out=self._outer)
        self._covariance -= self._outer
        return innovation * unit[:, None], variance * unit**2

    def _restart(self, diverged: NDArray[np.bool_]) -> None:
        """Forget the newest state of models that have diverged, (M,)."""
        P, place = self._covariance, self._newest
        P[diverged, place:] = 0.0
        P[diverged, :, place:] = 0.0
        for i in range(place, place + self._N):
            P[diverged, i, i] = _PRIOR
        self._mean[diverged, :, place + 1 :] = 0.0

    def copy(self) -> None:
        """Keep the present state; the oldest copy makes room for it."""
        N, X, P = self._N, self._mean, self._covariance
        X[:, :, :-N] = X[:, :, N:].copy()
        P[:, :-N] = P[:, N:].copy()
        P[:, :, :-N] = P[:, :, N:].copy()
        if len(self._copies) == self._n_copies:
            del self._copies[0]
        self._copies.append(self.time)
        self.oldest = self._copies[0]

    @property
    def newest_copy(self) -> int:
        """Time of the newest copy [ns]."""
        return self._copies[-1] if self._copies else self.time

    def means(self, time: int, K: int, models: slice = _ALL) -> Array:
        """Value and first K - 1 derivatives (M, n, K), K <= N, of some of the models.

        The time is that of the oldest copy or later, also in the future [ns].

        Parameters
        ----------
        time : int
            [ns]
        K : int
            Number of orders.
        models : slice
            Which of the M, by default all.

        Returns
        -------
        ndarray, shape (models, n, K)
            [unit/s^k]
        """
        support = self._support(time, K)
        weights = self._weights(support, K, models)
        means: Array = self._mean[models, :, support.place] @ weights.transpose(0, 2, 1)
        return means

    def covariances(self, time: int, K: int, models: slice = _ALL) -> Array:
        """Covariances (M, K, K) of `means`, over the variance of the noise of values.

        Parameters
        ----------
        time : int
            See `means` [ns].
        K : int
            Number of orders.
        models : slice
            Which of the M, by default all.

        Returns
        -------
        ndarray, shape (models, K, K)
            Times the variance of the noise it is that of each component.
        """
        support = self._support(time, K)
        W, place = self._weights(support, K, models), support.place
        covariance: Array = (
            W @ self._covariance[models, place, place] @ W.transpose(0, 2, 1)
        )
        spread = np.empty_like(covariance)
        ahead = support.short - (models.start or 0)
        spread[:] = self._steps.matrices(np.array([support.u]))[1][:, :K, :K]
        if len(spread) > ahead:
            spread[max(ahead, 0) :] = self._steps.bridge_spread(support.u, K)
        spread *= support.spread[models]
        spread *= self._intensity[models]
        covariance += spread
        return covariance

    def _support(self, time: int, K: int) -> _Support:
        """From which states to find those at a time, and in which units.

        Parameters
        ----------
        time : int
            [ns]
        K : int
            Number of orders.

        Returns
        -------
        _Support
            The newest state for later times, else the copies on both sides.
        """
        N, M = self._N, len(self.cutoffs)
        ahead = time >= self.time
        if ahead:
            start, end, place, short = self.time, max(time, self.time + 1), self._newest, M
        else:
            index = len(self._copies) - 1
            while self._copies[index] > time:
                index -= 1
            last = index + 1 == len(self._copies)
            start, end = self._copies[index], self.time if last else self._copies[index + 1]
            place, short = self._newest - N * (len(self._copies) - index), 0
        # Copies move when another one is made.
        key = (start, end, K, place)
        found = self._latest_support
        if found is None or found.key != key:
            duration = 1e-9 * (end - start)
            x = self.cutoffs * duration
            powers = x[:, None] ** self._steps.exponents
            units = duration ** np.arange(float(K))
            spread = self._units[:, :K] / powers[:, :K]
            found = _Support(
                key,
                slice(place, place + (N if ahead else 2 * N)),
                powers[:, None, np.arange(N if ahead else 2 * N) % N] / units[:, None],
                powers[:, -1:, None] * spread[:, :, None] * spread[:, None],
                short or int(np.count_nonzero(x < _SHORT)),
            )
            self._latest_support = found
        return found._replace(u=(time - start) / (end - start))

    def _weights(self, support: _Support, K: int, models: slice) -> Array:
        """Weights of the states of the support, in physical units.

        Returns
        -------
        ndarray, shape (models, K, N or 2 N)
        """
        N, scales = self._N, support.weights[models]
        ahead = support.short - (models.start or 0)
        if ahead <= 0:
            return self._steps.bridge_weights(support.u, K) * scales
        taylor = self._steps.matrices(np.array([support.u]))[0][0, :K]
        if scales.shape[-1] == N:
            return taylor * scales
        weights = self._steps.bridge_weights(support.u, K) * scales
        weights[:ahead, :, :N] = taylor * scales[:ahead, :, :N]
        weights[:ahead, :, N:] = 0.0
        return weights


class _Support(NamedTuple):
    """States from which others follow, in a unit of time of their own."""

    # Start and end of that unit [ns], K, place of the first state.
    key: tuple[int, int, int, int]
    place: slice  # of the one at the start or of those at both ends
    weights: Array  # factors of the weights, from that unit to physical ones
    spread: Array  # factors of the covariance
    short: int  # of the slowest models, which use the state at the start alone
    u: float = 0.0  # time that is wanted, 0 to 1


class StepMatrices:
    """Matrices of the model with N states for steps of given lengths, in scaled units.

    Parameters
    ----------
    N : int
        Number of states.

    Attributes
    ----------
    exponents : ndarray, shape (2 N,)
        0.0 to 2 N - 1.0, of the powers of a step.
    """

    def __init__(self, N: int) -> None:
        i, j = np.indices((N, N))
        self.N = N
        self.exponents: Array = np.arange(2.0 * N)
        factorials = np.array([float(factorial(k)) for k in range(N)])
        upper, both = np.maximum(j - i, 0), 2 * N - 1 - i - j
        taylor = np.where(j >= i, 1.0 / factorials[upper], 0.0)
        integral = 1.0 / (both * factorials[N - 1 - i] * factorials[N - 1 - j])
        self._places = np.concatenate([upper, both])
        self._factors = np.concatenate([taylor, integral])
        self._hermite = _hermite(N)
        self._signs = np.where((i + j) % 2, -1.0, 1.0)

    def matrices(self, x: Array) -> tuple[Array, Array]:
        """Transitions (M, N, N) over steps (M,), and what white noise adds to the covariance.

        The first are Taylor expansions; the second, of the same shape, are for unit intensity.
        Source: Bar-Shalom et al. 2001, section 6.2, for any number of states.

        Parameters
        ----------
        x : ndarray, shape (M,)
            Steps times cut-offs.

        Returns
        -------
        transitions : ndarray, shape (M, N, N)
        driven : ndarray, shape (M, N, N)
        """
        powers = x[:, None] ** self.exponents
        both = powers.take(self._places, axis=1)
        both *= self._factors
        return both[:, : self.N], both[:, self.N :]

    def bridge_weights(self, u: float, K: int) -> Array:
        """Weights (K, 2 N) of the states at both ends of a step of length one for that at u in it.

        Hermite interpolation: what the model expects between known ends.

        Parameters
        ----------
        u : float
            Place in the step, 0 to 1.
        K : int
            Orders that are wanted, at most N.

        Returns
        -------
        ndarray, shape (K, 2 N)
            State at the start, then state at the end.
        """
        N = self.N
        powers = np.array([[1.0 - u], [u]]) ** self.exponents
        hermite = (powers @ self._hermite).reshape(2, N, N)
        weights = np.empty((K, 2 * N))
        np.multiply(hermite[0, :K], self._signs[:K], out=weights[:, :N])
        weights[:, N:] = hermite[1, :K]
        return weights

    def bridge_spread(self, u: float, K: int) -> Array:
        """Covariance (K, K) at u that remains between known ends, for unit intensity.

        Parameters
        ----------
        u : float
            Place in the step, 0 to 1.
        K : int
            Orders that are wanted, at most N.

        Returns
        -------
        ndarray, shape (K, K)
            Zero at both ends.
        """
        at_end = self.bridge_weights(u, K)[:, self.N :]
        transitions, driven = self.matrices(np.array([1.0 - u, u]))
        spread: Array = driven[1, :K, :K] - at_end @ (transitions[0] @ driven[1, :, :K])
        return spread


def _hermite(N: int) -> Array:
    """Coefficients of the polynomials of degree 2 N - 1 that interpolate from an end at u = 1.

    The j-th one has the j-th derivative one at u = 1; all others up to the (N - 1)-th there and
    at u = 0 vanish. In the result (2 N, N N), `[p, k N + j]` is the factor of u^p in the k-th
    derivative of the j-th polynomial.
    """
    polynomials = []
    for j in range(N):
        # In powers of 1 - u first, which are whole numbers, then times u^N (u - 1)^j / j!.
        inner = np.polynomial.Polynomial([float(comb(N - 1 + i, i)) for i in range(N - j)])
        polynomial = inner(np.polynomial.Polynomial([1.0, -1.0]))
        polynomial *= np.polynomial.Polynomial([-1.0, 1.0]) ** j / float(factorial(j))
        polynomials.append(polynomial * np.polynomial.Polynomial([0.0, 1.0]) ** N)
    coefficients = np.zeros((2 * N, N, N))
    for j, polynomial in enumerate(polynomials):
        for k in range(N):
            found = polynomial.deriv(k).coef if k else polynomial.coef
            coefficients[: len(found), k, j] = found
    return coefficients.reshape(2 * N, N * N)
