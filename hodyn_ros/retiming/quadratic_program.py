"""Quadratic programs for the coefficients of splines of degree 5 with even knots.

They are what splicing needs: as near to given positions as bounds of the differences of the
coefficients allow.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.linalg.lapack import dpbtrf as pbtrf
from scipy.linalg.lapack import dpbtrs as pbtrs

from hodyn_ros.typing import Array, Indices

_BAND = 4  # columns between the first and the last entry of a row of the matrices

_POSITION = np.array([1.0, 26.0, 66.0, 26.0, 1.0]) / 120.0  # at a knot, of coefficients
_DIFFERENCES = ((1.0,), (-1.0, 1.0), (1.0, -2.0, 1.0), (-1.0, 3.0, -3.0, 1.0))

# Of the interior-point method: steps, products of forces and room at which it ends, that it aims
# at and by how much in a step, part of the way to a bound that a step goes, and both at first.
_MOST_STEPS, _ACCURACY, _FLOOR, _FALL, _NEAREST = 40, 1e-6, 1e-8, 0.05, 0.99
_FIRST_ROOM, _FIRST_FORCE = 1e-2, 0.1
# Excess of a bound that scaling removes, and the part of one from which on its order is looked at.
_SLACK, _NEAR = 1e-4, 0.5


class Program:
    """Quadratic program for the coefficients behind the first five, the last five being equal.

    Its matrices are the same for all motions with as many knots.

    Parameters
    ----------
    intervals : int
        Between the knots, at least 10 of them; M = intervals + 5 coefficients, of which
        size = intervals - 4 are free.

    Attributes
    ----------
    free : sparse array, shape (M, size)
        Makes changes of all coefficients of those of the free ones.
    at_knots : sparse array, shape (M - 4, M)
        Positions at the knots.
    third : sparse array, shape (M - 3, M)
        Third differences.
    limited : sparse array, shape (rows, M)
        Differences 0 to 3 that depend on the free coefficients, which bounds are for.
    orders : ndarray of int, shape (rows,)
        Which difference each row of `limited` is.
    bands : list of ndarray, shape (5, size)
        Of the squares of `at_knots` and `third`, for the free coefficients.
    """

    def __init__(self, intervals: int) -> None:
        self._count, self._size = M, size = intervals + 5, intervals - 4
        column = np.minimum(np.arange(M - 5), size - 1)
        free = sparse.csr_array((np.ones(M - 5), (np.arange(5, M), column)), (M, size))
        self.free: sparse.csr_array = free  # makes all coefficients of those that are free
        self.at_knots: sparse.csr_array = self._windows(_POSITION)
        self.third: sparse.csr_array = self._windows(_DIFFERENCES[3])
        limited = sparse.vstack([self._windows(row) for row in _DIFFERENCES]).tocsr()
        orders = np.repeat(np.arange(4), [M, M - 1, M - 2, M - 3])
        changed = np.flatnonzero(np.diff((limited @ free).indptr))
        self.limited: sparse.csr_array = limited[changed]
        self.orders: Indices = orders[changed]  # differences 0 to 3
        # Of the products of the matrices with themselves, as LAPACK has them.
        self.bands: list[sparse.csr_array] = [
            self._in_band(matrix @ free).sum(axis=1).reshape(_BAND + 1, size)
            for matrix in (self.at_knots, self.third)
        ]
        self._changes = self.limited @ free
        self._weighted = self._in_band(self._changes)

    def _windows(self, weights: ArrayLike) -> sparse.csr_array:
        """Weighted sums of neighbouring coefficients."""
        row = np.asarray(weights)
        shape = self._count + 1 - len(row), self._count
        diagonals = np.repeat(row[:, None], shape[0], axis=1)
        return sparse.diags_array(diagonals, offsets=range(len(row)), shape=shape).tocsr()

    def _in_band(self, matrix: sparse.csr_array) -> sparse.csr_array:
        """Matrix that makes the band of A^T diag(w) A, row by row, of w."""
        parts = []
        for k in range(_BAND, -1, -1):
            pairs = matrix[:, : self._size - k].multiply(matrix[:, k:]).T.tocoo()
            shape = self._size, matrix.shape[0]
            parts.append(sparse.coo_array((pairs.data, (pairs.row + k, pairs.col)), shape))
        return sparse.vstack(parts).tocsr()

    def least(self, band: Array, gradient: Array, center: Array, bound: Array) -> Array:
        """Minimize y H y / 2 - gradient y with |center + differences y| <= bound, each column.

        Zero keeps the bounds. Source: Nocedal and Wright, Numerical Optimization, section 16.6,
        for bounds from both sides.

        Parameters
        ----------
        band : ndarray, shape (5, size)
            Upper band of H.
        gradient : ndarray, shape (size, n)
            One column for each joint.
        center : ndarray, shape (rows, n)
            Differences without a change.
        bound : ndarray, shape (rows, n)
            Positive, at least |center|.

        Returns
        -------
        ndarray, shape (size, n)
            y; scaled down so far that no bound is exceeded.
        """
        y: Array = pbtrs(pbtrf(band)[0], gradient)[0]
        for _ in _DIFFERENCES:
            part = np.abs(center + self._changes @ y) / bound
            columns = np.flatnonzero(part.max(axis=0) > 1.0 + _SLACK)
            if not len(columns):
                break
            # Orders that are far from their bounds mostly stay so.
            rows = np.flatnonzero(
                np.isin(self.orders, self.orders[part.max(axis=1) > _NEAR])
            )
            y[:, columns] = _interior(
                band,
                gradient[:, columns],
                self._weighted[:, rows],
                self._changes[rows],
                *(values[np.ix_(rows, columns)] for values in (center, bound)),
            )
        # Zero keeps all bounds, and so does what lies near enough to it.
        changes = self._changes @ y
        y *= _inside(bound - center * np.sign(changes), -np.abs(changes))
        return y


def _inside(values: Array, changes: Array) -> Array:
    """Part of the changes, at most one, that leaves all values of a column positive."""
    with np.errstate(all='ignore'):
        parts = np.where(changes < 0.0, -values / changes, 1.0)
    found: Array = parts.min(axis=tuple(range(parts.ndim - 1))).clip(max=1.0)
    return found


def _interior(
    band: Array,
    gradient: Array,
    in_band: sparse.csr_array,
    G: sparse.csr_array,
    center: Array,
    bound: Array,
) -> Array:
    """Minimize y H y / 2 - gradient y with |center + G y| <= bound; see `Program.least`.

    Parameters
    ----------
    band : ndarray, shape (5, size)
        Upper band of H.
    gradient : ndarray, shape (size, n)
    in_band : sparse array, shape (5 size, rows)
        From weights of the rows of G to the band of G^T diag(w) G.
    G : sparse array, shape (rows, size)
    center, bound : ndarray, shape (rows, n)

    Returns
    -------
    ndarray, shape (size, n)
        y, to a gap of 1e-6 of the scale of the problem; bounds may be missed by rounding.
    """
    (size, n), transposed, sign = (
        gradient.shape,
        G.T.tocsr(),
        np.array([1.0, -1.0])[:, None, None],
    )
    y, relative = np.zeros((size, n)), center / bound
    # What is left to the bounds on both sides, and the multipliers of these.
    room = np.maximum(1.0 - sign * relative, _FIRST_ROOM)
    scale = np.abs(gradient).max(axis=0) * bound.min(axis=0)
    force = _FIRST_FORCE * scale / room
    slope = transposed @ ((force[0] - force[1]) / bound) - gradient
    for _ in range(_MOST_STEPS):
        missed = room + sign * (relative + (G @ y) / bound) - 1.0
        gap = (room * force).mean(axis=(0, 1))
        if np.all(gap < _ACCURACY * scale):
            break
        ratio = force / room
        weights = in_band @ (ratio.sum(axis=0) / bound**2)
        # One joint behind the other.
        bands = weights.reshape(_BAND + 1, size, n).swapaxes(1, 2) + band[:, None]
        factor = pbtrf(bands.reshape(_BAND + 1, -1))[0]
        # Columns that are ready wait for the others.
        lacking = np.maximum(_FALL * gap, _FLOOR * scale) / room - force + ratio * missed
        right = -slope - transposed @ ((lacking[0] - lacking[1]) / bound)
        dy = pbtrs(factor, right.T.ravel())[0].reshape(n, size).T
        along = sign * (G @ dy) / bound
        d_room, d_force = -missed - along, lacking + ratio * along
        part = _NEAREST * np.minimum(_inside(room, d_room), _inside(force, d_force))
        y, room, force = y + part * dy, room + part * d_room, force + part * d_force
        slope *= 1.0 - part
    return y


program_of: Callable[..., Program] = lru_cache(maxsize=64)(Program)
