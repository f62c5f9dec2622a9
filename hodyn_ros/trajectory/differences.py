"""Differences of samples: derivatives of a motion, and the noise that hides them.

The k-th difference of white noise of variance s^2 has the variance (2 k over k) s^2, that of a
motion which is sampled densely nearly vanishes. A divided difference of order k is the k-th
derivative somewhere between its samples (mean value theorem).
"""

from __future__ import annotations

import numpy as np

from hodyn_ros.typing import Array

NORMAL = 0.6745
"""Median of the magnitude of a normal variable, in standard deviations."""

# Variance of the 95 % of normal values that are smallest, over that of all.
_USUAL, _OF_USUAL = 0.95, 0.759
_FEWEST = 16  # samples that say how noisy they are


def divided_differences(values: Array, times: Array, order: int) -> list[Array]:
    """Divided differences up to an order, times its factorial, so that they are derivatives.

    Parameters
    ----------
    values : ndarray, shape (N, n)
        In some unit.
    times : ndarray, shape (N,)
        [s]
    order : int
        Zero: the values alone.

    Returns
    -------
    list of ndarray, shape (N - k, n)
        For k from 0 to the order [unit/s^k].
    """
    found = [values]
    for k in range(1, order + 1):
        found.append(k * np.diff(found[-1], axis=0) / (times[k:] - times[:-k])[:, None])
    return found


def scatter_of(values: Array) -> Array:
    """Fourth differences in standard deviations of white noise, (2 4 over 4) = 70.

    Parameters
    ----------
    values : ndarray, shape (N, n)
        At even times, in some unit.

    Returns
    -------
    ndarray, shape (N - 4, n)
        Magnitudes, each belonging to the sample in the middle of five; zero where one of these
        is not known [unit].
    """
    return np.asarray(np.nan_to_num(np.abs(np.diff(values, 4, axis=0))) / np.sqrt(70.0))


def noise_of(values: Array, *, has_steps: bool = False) -> Array:
    """Standard deviations of white noise of each column.

    Parameters
    ----------
    values : ndarray, shape (N, n)
        At even times, in some unit.
    has_steps : bool
        Whether the largest 5 % of the differences do not count, which are steps, as those of
        dry friction.

    Returns
    -------
    ndarray, shape (n,)
        Zero if there are fewer than 16 samples [unit].
    """
    if len(values) < _FEWEST:
        return np.zeros(values.shape[1])
    squares = np.sort(scatter_of(values) ** 2, axis=0)
    if has_steps:
        squares = squares[: int(np.ceil(_USUAL * len(squares)))] / _OF_USUAL
    return np.asarray(np.sqrt(squares.mean(axis=0)))
