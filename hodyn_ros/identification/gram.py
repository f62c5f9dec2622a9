"""Products of the columns of weighted rows, by channel: what all questions are blocks of.

With W the weights of rows (X, r), r what known parameters leave, the matrix is (X, r)^T W (X, r).
Least squares for some of the columns solve one block of it, and the squares that parameters leave
are its quadratic form. Least squares lose half of the digits so, of columns of length 1; steps
from the present estimate find them again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hodyn_ros.typing import Array

_CUT = 1e-10  # of squared columns of length 1 that others do not explain


class Gram:
    """Products of K columns, the last of which is the residual, in C channels.

    Attributes
    ----------
    form : ndarray, shape (C, K, K)
    count : ndarray, shape (C,)
        Rows with a weight.
    """

    def __init__(self) -> None:
        self.form: Array = np.zeros(())
        self.count: Array = np.zeros(())

    def add(self, columns: Array, weights: Array) -> None:
        """Take up rows.

        Parameters
        ----------
        columns : ndarray, shape (M, C, K)
        weights : ndarray, shape (M, C)
            Of the columns, not of their squares; zero where they are not used.
        """
        used = (weights > 0.0)[..., None]
        weighted = np.where(used, columns * weights[..., None], 0.0).swapaxes(0, 1)
        self.form = self.form + weighted.swapaxes(1, 2) @ weighted
        self.count = self.count + (weights > 0.0).sum(axis=0)

    def turned(self, directions: Array) -> Gram:
        """Products of combinations of the columns.

        Parameters
        ----------
        directions : ndarray, shape (K, L)
            Combinations, the last of which is the residual.

        Returns
        -------
        Gram
        """
        found = Gram()
        found.form, found.count = directions.T @ self.form @ directions, self.count
        return found

    def fitted(
        self, columns: Sequence[int], weights: Array | float = 1.0
    ) -> tuple[Array, Array]:
        """Least squares.

        Parameters
        ----------
        columns : sequence of int
            Which of them explain the residual.
        weights : ndarray, shape (C,)
            Of the squares of each channel, for which the sum is least.

        Returns
        -------
        values : ndarray, shape (columns,)
            Their coefficients.
        left : ndarray, shape (C,)
            Squares that are left in each channel.
        """
        weighted = self.form * np.reshape(weights, (-1, 1, 1))
        total, place = weighted.sum(axis=0), np.asarray(columns, dtype=np.intp)
        size = np.sqrt(np.diag(total)[place])
        scale = np.where(size > 0.0, size, 1.0)
        matrix = total[np.ix_(place, place)] / np.outer(scale, scale)
        found = np.linalg.lstsq(matrix, total[place, -1] / scale, rcond=_CUT)[0] / scale
        left = np.zeros(len(total))
        left[place], left[-1] = -found, 1.0
        return found, np.maximum(left @ self.form @ left, 0.0)
