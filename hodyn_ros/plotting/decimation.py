"""Fewer samples of a long curve for display, with its extremes kept.

A screen shows some hundreds of columns of pixels. Of all samples that fall into one column, the
lowest and the highest are what can be seen; so the picture of these alone is that of all samples,
and no peak is lost, however short it is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.errors import MotionError

Array = NDArray[np.float64]


def extreme_samples(
    values: ArrayLike, n_stretches: int, times: ArrayLike | None = None
) -> NDArray[np.intp]:
    """Find the samples to show: the first, the last, and the extreme ones of every stretch.

    Parameters
    ----------
    values : array-like, shape (N,) or (N, c)
        Of one curve, or the c coordinates of the points of a curve. NaN is a gap.
    n_stretches : int
        Into how many stretches the samples are divided.
    times : array-like, shape (N,), optional
        Increasing; stretches are then of equal duration, else of an equal number of samples.

    Returns
    -------
    ndarray of int, shape (M,)
        Increasing indices, at most 2 c n_stretches + 2 of them and one for every stretch
        with a gap, which is kept; all N if they are not more.

    Raises
    ------
    MotionError
        If the shapes do not fit, or there are no samples or stretches.
    """
    columns = np.asarray(values, dtype=np.float64)
    N = len(columns) if columns.ndim else 0
    if columns.ndim not in (1, 2) or columns.size == 0:
        raise MotionError(
            f'The values have shape {columns.shape}, expected (N,) or (N, c) with N >= 1.'
        )
    columns = columns.reshape(N, -1)
    if n_stretches < 1:
        raise MotionError(f'n_stretches is {n_stretches}, expected 1 or more.')
    if times is not None and np.shape(times) != (N,):
        raise MotionError(f'The times have shape {np.shape(times)}, expected ({N},).')
    if N <= 2 * columns.shape[1] * n_stretches + 2:
        return np.arange(N)
    starts = _starts(N, n_stretches, None if times is None else np.asarray(times, np.float64))
    is_gap = np.isnan(columns)
    low = np.where(is_gap, np.inf, columns)
    high = np.where(is_gap, -np.inf, columns)
    gaps = np.flatnonzero(is_gap.any(axis=1))
    kept = [np.array([0, N - 1])]
    for first, end in zip(starts, np.append(starts[1:], N)):
        kept += [first + low[first:end].argmin(axis=0), first + high[first:end].argmax(axis=0)]
    if gaps.size:
        # One in every stretch that has any.
        _, places = np.unique(np.searchsorted(starts, gaps, side='right'), return_index=True)
        kept.append(gaps[places])
    return np.unique(np.concatenate(kept))


def _starts(N: int, n_stretches: int, times: Array | None) -> NDArray[np.intp]:
    """First samples of the stretches that are not empty."""
    if times is None or not times[-1] > times[0]:
        return np.arange(n_stretches, dtype=np.intp) * N // n_stretches
    edges = np.linspace(times[0], times[-1], n_stretches, endpoint=False)
    return np.unique(np.searchsorted(times, edges))
