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

Array = NDArray[np.float64]

# Variance of everything before the first measurement, in units of the measurement noise and of the
# time scale of each model: enough to forget it, and eps times it is still far below one.
_UNKNOWN = 1e10


# Step, in units of the time scale of a model, that hardly changes the state. The states at both
# ends then say the same, and weighing their differences would amplify rounding.
_SHORT = 0.2


_ALL = slice(None)


class States(NamedTuple):
    """States of all M models at one instant, in physical units."""

    mean: Array
    """Values and derivatives, shape (M, n, K)."""
    covariance: Array
    """In units of the variance of the measurement noise, shape (M, K, K)."""


class ModelBank:
    """Filters with a common sequence of measurement times.

    Parameters
    ----------
    cutoffs : ndarray, shape (M,)
        Angular frequency of each model where signal and noise are equally strong [rad/s].
    n : int
        Number of components that are measured.
    n_states : int
        N, value and derivatives in the state.
    n_copies : int
        Number of earlier states that are kept and smoothed.

    Attributes
    ----------
    cutoffs : ndarray, shape (M,)
    time : int
        Of the newest measurement [ns].
    oldest : int
        Time from which on states are known [ns].
    """

    def __init__(self, cutoffs: Array, n: int, n_states: int, n_copies: int) -> None:
        M, N, size = len(cutoffs), n_states, n_states * (1 + n_copies)
        self.cutoffs = cutoffs
        self.time = self.oldest = 0
        self._N = N
        # The copies, oldest first, and then the newest state. Time is multiplied by the cut-off.
        self._place = size - N
        self._units = cutoffs[:, None] ** np.arange(float(N))
        self._mean = np.zeros((M, n, size))
        self._covariance = np.zeros((M, size, size))
        self._outer = np.empty((M, size, size))
        self._covariance[:, range(size - N, size), range(size - N, size)] = _UNKNOWN
        self._steps = Steps(N)
        self._step = -1
        self._transition = np.zeros((M, N, N))
        self._transposed = self._transition
        self._driven = np.zeros((M, N, N))
        self._intensity = np.zeros((M, 1, 1))
        # Times of the copies [ns], oldest first.
        self._n_copies = n_copies
        self._copies: list[int] = []
        self._bridge_scales = _BridgeScales(0, 0, self._driven, self._driven, 0)

    def start(self, time: int, values: Array) -> None:
        """Take the first measurement.

        Parameters
        ----------
        time : int
            [ns]
        values : ndarray, shape (n,)
        """
        self.time = self.oldest = time
        place = self._place
        self._mean[:, :, place] = values
        self._covariance[:, place, place] = 1.0
        if self._n_copies:
            self.copy()

    def predict(self, time: int, period: float) -> None:
        """Move on.

        Parameters
        ----------
        time : int
            Later than the last one [ns].
        period : float
            Typical time between measurements [s]. At the cut-off of a model, the signal that it
            expects is as strong as the noise of measurements at this distance.
        """
        step = time - self.time
        if step != self._step:
            self._transition, self._driven = self._steps.matrices(self.cutoffs * (1e-9 * step))
            self._transposed = self._transition.transpose(0, 2, 1)
            self._step = step
        self._intensity = (self.cutoffs * period)[:, None, None]
        P, F_T, place = self._covariance, self._transposed, self._place
        rows = self._transition @ P[:, place:]
        own = rows[:, :, place:] @ F_T
        # Symmetric to the last bit, so that rounding cannot drift apart over hours.
        own += own.transpose(0, 2, 1)
        own *= 0.5
        own += self._driven * self._intensity
        rows[:, :, place:] = own
        P[:, place:] = rows
        P[:, :, place:] = rows.transpose(0, 2, 1)
        self._mean[:, :, place:] = self._mean[:, :, place:] @ F_T
        self.time = time
        if not self._n_copies:
            self.oldest = time

    def measure(self, values: Array, order: int = 0, ratio: float = 1.0) -> tuple[Array, Array]:
        """Correct by what is measured at the present time.

        Parameters
        ----------
        values : ndarray, shape (n,)
        order : int
            Which derivative is measured.
        ratio : float
            Standard deviation of its noise over that of the values [1/s^order].

        Returns
        -------
        innovation : ndarray, shape (M, n)
            Measured minus predicted.
        variance : ndarray, shape (M,)
            Of the innovations, in units of the variance of the noise of values.
        """
        unit = self._units[:, order]
        index = self._place + order
        column = self._covariance[:, :, index].copy()
        variance = column[:, index] + (ratio / unit) ** 2
        innovation = values / unit[:, None] - self._mean[:, :, index]
        self._mean += innovation[:, :, None] * (column / variance[:, None])[:, None, :]
        column /= np.sqrt(variance)[:, None]
        np.einsum('mi,mj->mij', column, column, out=self._outer)
        self._covariance -= self._outer
        return innovation * unit[:, None], variance * unit**2

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

    def states(self, time: int, K: int, models: slice = _ALL) -> States:
        """Value and first K - 1 derivatives from the oldest copy on, or in the future.

        Parameters
        ----------
        time : int
            [ns]
        K : int
            At most N.
        models : slice
            Which of the models.

        Returns
        -------
        States
        """
        if time < self.time:
            return self._between(time, K, models)
        place = self._place
        F, driven = self._steps.matrices(self.cutoffs[models] * (1e-9 * (time - self.time)))
        units = self._units[models, :K]
        W = F[:, :K] * units[:, :, None]
        W_T = W.transpose(0, 2, 1)
        covariance = W @ self._covariance[models, place:, place:] @ W_T
        noise = driven[:, :K, :K] * self._intensity[models]
        noise *= units[:, :, None] * units[:, None]
        return States(self._mean[models, :, place:] @ W_T, covariance + noise)

    def _between(self, time: int, K: int, models: slice) -> States:
        """Interpolate between the copies around a time."""
        index = len(self._copies) - 1
        while self._copies[index] > time:
            index -= 1
        start = self._copies[index]
        last = index + 1 == len(self._copies)
        end = self.time if last else self._copies[index + 1]
        scales = self._bridge_scales
        if scales.start != start or scales.end != end or scales.spread.shape[-1] != K:
            scales = self._bridge_scales = self._scales_of(start, end, K)
        bridge = self._steps.bridge((time - start) / (end - start), K)
        W = bridge.weights * scales.weights[models]
        covariance = bridge.spread * scales.spread[models]
        short = scales.short - (models.start or 0)
        if short > 0:
            W[:short] = bridge.simple_weights * scales.weights[models][:short]
            covariance[:short] = bridge.simple_spread * scales.spread[models][:short]
        covariance *= self._intensity[models]
        W_T = W.transpose(0, 2, 1)
        first = self._place - self._N * (len(self._copies) - index)
        both = slice(first, first + 2 * self._N)
        covariance += W @ self._covariance[models, both, both] @ W_T
        return States(self._mean[models, :, both] @ W_T, covariance)

    def _scales_of(self, start: int, end: int, K: int) -> _BridgeScales:
        """Units of a bridge, which takes its duration for one, in those of the models."""
        duration = 1e-9 * (end - start)
        x = self.cutoffs * duration
        powers = x[:, None] ** self._steps.exponents
        units = duration ** np.arange(float(K))
        return _BridgeScales(
            start,
            end,
            powers[:, None, self._steps.twice] / units[:, None],
            powers[:, -1:, None]
            * self._units[:, :K, None]
            * self._units[:, None, :K]
            / (powers[:, :K, None] * powers[:, None, :K]),
            int(np.count_nonzero(x < _SHORT)),
        )


class _BridgeScales(NamedTuple):
    """Factors for a bridge from `start` to `end` [ns]; the first `short` models are short ones."""

    start: int
    end: int
    weights: Array
    spread: Array
    short: int


class Bridge(NamedTuple):
    """Distribution inside of a step of unit length, given the states at its ends."""

    weights: Array
    """Of the states at the start and at the end, shape (K, 2 N): Hermite interpolation."""
    spread: Array
    """Covariance that remains, for unit intensity, shape (K, K)."""
    simple_weights: Array
    """Of the state at the start alone, with zeros for the one at the end."""
    simple_spread: Array


class Steps:
    """Matrices of the model with N states for steps of given lengths, in scaled units."""

    def __init__(self, N: int) -> None:
        i, j = np.indices((N, N))
        self.N = N
        self.exponents = np.arange(2.0 * N)
        self.twice = np.tile(np.arange(N), 2)
        factorials = np.array([float(factorial(k)) for k in range(N)])
        upper, both = np.maximum(j - i, 0), 2 * N - 1 - i - j
        taylor = np.where(j >= i, 1.0 / factorials[upper], 0.0)
        integral = 1.0 / (both * factorials[N - 1 - i] * factorials[N - 1 - j])
        self._places = np.concatenate([upper, both])
        self._factors = np.concatenate([taylor, integral])
        self._hermite = _hermite(N)
        self._signs = np.where((i + j) % 2, -1.0, 1.0)

    def matrices(self, x: Array) -> tuple[Array, Array]:
        """Transition over steps x, and what white noise adds to the covariance meanwhile.

        Source: Bar-Shalom et al. 2001, section 6.2, for any number of states.

        Parameters
        ----------
        x : ndarray, shape (M,)

        Returns
        -------
        transition : ndarray, shape (M, N, N)
            Taylor expansion.
        driven : ndarray, shape (M, N, N)
            For unit intensity.
        """
        powers = x[:, None] ** self.exponents
        both = powers.take(self._places, axis=1)
        both *= self._factors
        return both[:, : self.N], both[:, self.N :]

    def bridge(self, u: float, K: int) -> Bridge:
        """Distribution inside of a step of unit length.

        Parameters
        ----------
        u : float
            Place, 0 to 1.
        K : int
            Number of derivatives that are wanted, the zeroth included.

        Returns
        -------
        Bridge
        """
        N, sides = self.N, np.array([1.0 - u, u])
        powers = sides[:, None] ** self.exponents
        hermite = (powers @ self._hermite).reshape(2, N, N)
        transitions, driven = self.matrices(sides)
        simple_spread = driven[1, :K, :K]
        spread = simple_spread - hermite[1, :K] @ (transitions[0] @ driven[1, :, :K])
        weights, simple = np.empty((K, 2 * N)), np.zeros((K, 2 * N))
        np.multiply(hermite[0, :K], self._signs[:K], out=weights[:, :N])
        weights[:, N:] = hermite[1, :K]
        simple[:, :N] = transitions[1, :K]
        return Bridge(weights, spread, simple, simple_spread)


def _hermite(N: int) -> Array:
    """Coefficients of the polynomials of degree 2 N - 1 that interpolate from an end at u = 1.

    The j-th one has the j-th derivative one at u = 1; all others up to the (N - 1)-th there and
    at u = 0 vanish.

    Returns
    -------
    ndarray, shape (2 N, N N)
        `[p, k N + j]` is the factor of u^p in the k-th derivative of the j-th polynomial.
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
