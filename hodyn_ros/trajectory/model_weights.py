"""Weights of the models of a bank and the noise of the measurements, from how well they predict.

A Kalman filter predicts a measurement with an error e, the innovation, of variance s v, where v is
that of the noise. For N of them, -2 log likelihood = sum(log s) + N log v + sum(e^2 / s) / v
is least for v = sum(e^2 / s) / N (multiple models: Magill, "Optimal adaptive estimation of
sampled stochastic processes", IEEE Trans. Autom. Control 10(4), 1965). The estimator of streams
and the smoother of recordings take these sums over the time around a sample.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hodyn_ros.typing import Array

CUTOFFS = 2.5 * 1.7 ** np.arange(10.0)
"""Of the models in the bank [rad/s]."""

LEAST_VARIANCE = 1e-200
"""Of any noise or estimate."""

EPSILON = 4.0 * float(np.finfo(np.float64).eps)
"""Relative rounding of a value."""

# Step of values that stand still and have shown none, over the smallest motion of interest.
_UNKNOWN_STEP = 0.01


class Innovations(NamedTuple):
    """Sums over measurements of n components, for M models; leading axes are instants."""

    number: Array | float
    """Of the measurements, shape (...)."""
    changes: Array
    """Of those that differ from the one before, shape (..., n)."""
    squares: Array
    """e^2 / s, shape (..., n, M) [unit^2]."""
    logarithms: Array
    """log s, shape (..., n, M)."""


class Weighting(NamedTuple):
    """Models and noise by their innovations; leading axes are instants."""

    weights: Array
    """Of the models, adding up to one, shape (..., n, M)."""
    noise: Array
    """Variance of the measurement noise, shape (..., n) [unit^2]."""
    variances: Array
    """Weights times what the covariances of each model are to be multiplied by, shape (..., n, M)
    [unit^2]."""
    offset: Array
    """Variance of an error that stays, as between steps of rounding, shape (..., n) [unit^2]."""


class Rounding:
    """Steps to which measurements are rounded.

    The smallest change between neighbouring values is the step, once it was seen three times and
    the value stood still in between.

    Parameters
    ----------
    n : int
        Number of components.
    smallest_motion : float
        Values that never move are taken for rounded to a hundredth of it [unit].

    Attributes
    ----------
    variance : ndarray, shape (n,)
        Of the error of rounding, zero where no steps are known [unit^2].
    size : ndarray, shape (n,)
        Largest magnitude of the values [unit].
    """

    def __init__(self, n: int, smallest_motion: float) -> None:
        self.variance: Array = np.zeros(n)
        self.size: Array = np.zeros(n)
        self._unknown = (_UNKNOWN_STEP * smallest_motion) ** 2 / 12.0
        self._step, self._seen = np.full(n, np.inf), np.zeros(n)
        self._stood = self._was_still = np.zeros(n, dtype=np.bool_)

    def see(self, values: Array, changes: Array) -> None:
        """Take consecutive measurements.

        Parameters
        ----------
        values, changes : ndarray, shape (m, n)
            What is measured, and its changes since the one before [unit].
        """
        steps = np.abs(changes)
        self.size = np.maximum(self.size, np.abs(values).max(axis=0))
        is_still = steps <= EPSILON * self.size
        # Most streams are not rounded to visible steps, or stand still: little is to be done.
        if is_still.any():
            before = np.concatenate([self._was_still[None], is_still[:-1]])
            self._stood = self._stood | (is_still & before).any(axis=0)
        self._was_still = is_still[-1]
        is_near = (steps <= 1.01 * self._step) & ~is_still
        if is_near.any():
            smallest = np.where(is_near, steps, np.inf).min(axis=0)
            is_smaller = smallest < 0.99 * self._step
            self._step = np.where(is_smaller, smallest, self._step)
            self._seen = np.where(is_smaller, 0.0, self._seen)
            self._seen += np.count_nonzero(is_near & (steps <= 1.01 * self._step), axis=0)
            known = (self._seen >= 3.0) & self._stood
            self.variance = np.where(known, self._step**2 / 12.0, 0.0)

    def expected(self, new: Array) -> Array:
        """Variance of the error of rounding; values that stand still may do so within a step.

        Parameters
        ----------
        new : ndarray, shape (..., n)
            Share of the measurements that differ from the one before.

        Returns
        -------
        ndarray, shape (..., n)
            [unit^2]
        """
        is_unknown = (self.variance == 0.0) & (new < 0.5)
        return np.where(is_unknown, self._unknown, self.variance)


def weighting(
    sums: Innovations,
    rounding: Rounding,
    turns: Array,
    noise: Array | None = None,
    *,
    counted: float = 1.0,
    negligible: float = 1e-12,
    prior: float = 0.0,
) -> Weighting:
    """Weights of the models and the noise.

    Parameters
    ----------
    sums : Innovations
    rounding : Rounding
        Of the measurements.
    turns : ndarray, shape (M,)
        Cut-offs times the time between measurements [rad].
    noise : ndarray, shape (n,), optional
        Variance of the measurement noise [unit^2]; by default the most likely one of each model.
    counted : float
        Share of the logarithm of the likelihood that counts.
    negligible : float
        Weight below which a model has none.
    prior : float
        So many measurements with the noise of all instants count everywhere.

    Returns
    -------
    Weighting
    """
    number = np.asarray(sums.number)[..., None]
    new = sums.changes / np.maximum(number, negligible)
    steps = rounding.expected(new)
    # A signal that stands still between two steps of its rounding shows no noise, and would hide
    # that of its motion.
    least = np.maximum(steps, (EPSILON * rounding.size) ** 2)
    least = np.maximum(least, LEAST_VARIANCE)[..., None]

    def of_models(squares: Array, number: Array) -> tuple[Array, Array]:
        if noise is not None:
            variance = np.broadcast_to(noise[:, None], squares.shape)
            score = squares / variance + sums.logarithms
        else:
            variance = np.maximum(squares / number[..., None], least)
            score = number[..., None] * np.log(variance) + sums.logarithms
        weights = np.exp(-0.5 * counted * (score - score.min(axis=-1, keepdims=True)))
        weights[weights < negligible] = 0.0
        weights /= weights.sum(axis=-1, keepdims=True)
        return weights, variance

    weights, variance = of_models(sums.squares, number)
    if prior and noise is None:
        local = (weights * variance).sum(axis=-1)
        typical = (local * sums.changes).sum(axis=0)
        typical /= np.maximum(sums.changes.sum(axis=0), 1e-9)
        squares = sums.squares + prior * typical[:, None]
        weights, variance = of_models(squares, number + prior)
    variances = weights * variance
    of_noise = variances.sum(axis=-1)
    # What is repeated says nothing new about motions slower than the time for which it stays.
    variances /= np.minimum(new[..., None] + turns, 1.0)
    # What stays between two steps of its rounding is off by the same all the time.
    offset = np.where(of_noise < 3.0 * steps, steps, 0.0)
    return Weighting(weights, of_noise, variances, offset)
