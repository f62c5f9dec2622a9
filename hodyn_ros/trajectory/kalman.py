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


# Step, in units of the time scale of a model, up to which it hardly changes the state.
_SHORT = 0.5


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
        # In scaled units: time times the cut-off.
        self._units = cutoffs[:, None] ** np.arange(float(N))
        self._mean = np.zeros((M, n, size))
        self._covariance = np.zeros((M, size, size))
        self._outer = np.empty((M, size, size))
        self._covariance[:, range(N), range(N)] = _UNKNOWN
        self._steps = Steps(N)
        self._step = -1
        self._transition = np.zeros((M, N, N))
        self._transposed = self._transition
        self._driven = np.zeros((M, N, N))
        self._intensity = np.zeros((M, 1, 1))
        self._slots = [slice(N * (1 + i), N * (2 + i)) for i in range(n_copies)]
        # Times of the copies [ns], oldest first, with their place in the state.
        self._copies: list[tuple[int, slice]] = []

    def start(self, time: int, values: Array) -> None:
        """Take the first measurement.

        Parameters
        ----------
        time : int
            [ns]
        values : ndarray, shape (n,)
        """
        self.time = self.oldest = time
        self._mean[:, :, 0] = values
        self._covariance[:, 0, 0] = 1.0
        if self._slots:
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
        step, N = time - self.time, self._N
        if step != self._step:
            self._transition, self._driven = self._steps.matrices(self.cutoffs * (1e-9 * step))
            self._transposed = self._transition.transpose(0, 2, 1)
            self._step = step
        self._intensity = (self.cutoffs * period)[:, None, None]
        P, F_T = self._covariance, self._transposed
        rows = self._transition @ P[:, :N]
        own = rows[:, :, :N] @ F_T
        # Symmetric to the last bit, so that rounding cannot drift apart over hours.
        own += own.transpose(0, 2, 1)
        own *= 0.5
        own += self._driven * self._intensity
        rows[:, :, :N] = own
        P[:, :N] = rows
        P[:, :, :N] = rows.transpose(0, 2, 1)
        self._mean[:, :, :N] = self._mean[:, :, :N] @ F_T
        self.time = time
        if not self._slots:
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
        column = self._covariance[:, :, order].copy()
        variance = column[:, order] + (ratio / unit) ** 2
        innovation = values / unit[:, None] - self._mean[:, :, order]
        self._mean += innovation[:, :, None] * (column / variance[:, None])[:, None, :]
        column /= np.sqrt(variance)[:, None]
        np.einsum('mi,mj->mij', column, column, out=self._outer)
        self._covariance -= self._outer
        return innovation * unit[:, None], variance * unit**2

    def copy(self) -> None:
        """Keep the present state; the oldest copy makes room for it."""
        N, number = self._N, len(self._copies)
        slot = self._copies.pop(0)[1] if number == len(self._slots) else self._slots[number]
        self._copies.append((self.time, slot))
        self.oldest = self._copies[0][0]
        self._mean[:, :, slot] = self._mean[:, :, :N]
        P = self._covariance
        P[:, slot, :] = P[:, :N, :]
        P[:, :, slot] = P[:, :, :N]

    @property
    def newest_copy(self) -> int:
        """Time of the newest copy [ns]."""
        return self._copies[-1][0] if self._copies else self.time

    def states(self, time: int, K: int) -> States:
        """Value and first K - 1 derivatives at a time from the oldest copy on, or in the future.

        Parameters
        ----------
        time : int
            [ns]
        K : int
            At most N.

        Returns
        -------
        States
        """
        units = self._units[:, :K]
        between = self._between if time < self.time else self._ahead
        mean, covariance = between(time, K)
        return States(mean * units[:, None, :], covariance * (units[:, :, None] * units[:, None]))

    def _ahead(self, time: int, K: int) -> tuple[Array, Array]:
        """Extrapolate from the newest measurement, in scaled units."""
        N = self._N
        if time == self.time:
            return self._mean[:, :, :K], self._covariance[:, :K, :K]
        F, driven = self._steps.matrices(self.cutoffs * (1e-9 * (time - self.time)))
        F, F_T = F[:, :K], F[:, :K].transpose(0, 2, 1)
        covariance = F @ self._covariance[:, :N, :N] @ F_T
        return self._mean[:, :, :N] @ F_T, covariance + driven[:, :K, :K] * self._intensity

    def _between(self, time: int, K: int) -> tuple[Array, Array]:
        """Interpolate between the copies around a time, in scaled units."""
        N, P = self._N, self._covariance
        index = len(self._copies) - 1
        while self._copies[index][0] > time:
            index -= 1
        start, before = self._copies[index]
        last = index + 1 == len(self._copies)
        end, behind = (self.time, slice(0, N)) if last else self._copies[index + 1]

        x = self.cutoffs * (1e-9 * (end - start))
        u = (time - start) / (end - start)
        weights, spread = self._steps.bridge(u, K)
        powers = x[:, None] ** self._steps.exponents
        units = powers[:, :K]
        W = weights * powers[:, self._steps.twice][:, None] / units[:, :, None]
        spread = spread / (units[:, :, None] * units[:, None])
        spread *= self._intensity * powers[:, -1:, None]
        # Over a short step the states at both ends say the same, and weighing their differences
        # would amplify rounding: the earlier one is enough.
        short = np.count_nonzero(x < _SHORT)
        if short:
            F, driven = self._steps.matrices(x[:short] * u)
            W[:short, :, :N] = F[:, :K]
            W[:short, :, N:] = 0.0
            spread[:short] = driven[:, :K, :K] * self._intensity[:short]
        W_T = W.transpose(0, 2, 1)
        joint = np.empty((len(x), 2 * N, 2 * N))
        joint[:, :N, :N] = P[:, before, before]
        joint[:, :N, N:] = P[:, before, behind]
        joint[:, N:, :N] = P[:, behind, before]
        joint[:, N:, N:] = P[:, behind, behind]
        mean = self._mean[:, :, before] @ W_T[:, :N]
        mean += self._mean[:, :, behind] @ W_T[:, N:]
        spread += W @ joint @ W_T
        return mean, spread


class Steps:
    """Matrices of the model with N states for steps of given lengths, in scaled units."""

    def __init__(self, N: int) -> None:
        i, j = np.indices((N, N))
        self.N = N
        self.exponents = np.arange(2.0 * N)
        self.twice = np.tile(np.arange(N), 2)
        factorials = np.array([float(factorial(k)) for k in range(N)])
        self._upper = np.maximum(j - i, 0)
        self._taylor = np.where(j >= i, 1.0 / factorials[self._upper], 0.0)
        self._both = 2 * N - 1 - i - j
        self._integral = 1.0 / (self._both * factorials[N - 1 - i] * factorials[N - 1 - j])
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
        return powers[:, self._upper] * self._taylor, powers[:, self._both] * self._integral

    def bridge(self, u: float, K: int) -> tuple[Array, Array]:
        """Distribution inside of a step of unit length, given the states at both of its ends.

        Parameters
        ----------
        u : float
            Place, 0 to 1.
        K : int
            Number of rows that are wanted.

        Returns
        -------
        weights : ndarray, shape (K, 2 N)
            Of the states at the start and at the end: Hermite interpolation.
        spread : ndarray, shape (K, K)
            Covariance that remains, for unit intensity.
        """
        sides = np.array([1.0 - u, u])
        powers = sides[:, None] ** self.exponents
        at_start, at_end = (powers @ self._hermite).reshape(2, self.N, self.N)[:, :K]
        transitions, driven = self.matrices(sides)
        spread = driven[1, :K, :K] - at_end @ (transitions[0] @ driven[1, :, :K])
        weights = np.concatenate([at_start * self._signs[:K], at_end], axis=1)
        return weights, 0.5 * (spread + spread.T)


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
