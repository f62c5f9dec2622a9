"""Time derivatives of a function of a moving argument, and of its inverse.

With g_j = f^(j)(x(t)) the chain rule reads d/dt g_j = g_(j+1) x', and Leibniz's rule gives all
higher derivatives: g_j^(i+1) = sum over l of binomial(i, l) g_(j+1)^(l) x^(i-l+1). This is Faa di
Bruno's formula, computed without its partitions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.lie import leibniz

Array = NDArray[np.float64]


def compose(derivatives: Array, x: Array) -> Array:
    """Series of f(x(t)).

    Parameters
    ----------
    derivatives : ndarray, shape (..., >= K)
        f and its derivatives with respect to x, at x(t).
    x : ndarray, shape (..., K)
        Series of the argument.

    Returns
    -------
    ndarray, shape (..., K)
    """
    K = x.shape[-1]
    table = leibniz.binomials(K)
    # levels[j][..., i] is the i-th time derivative of f^(j)(x(t)), known for i <= filled order.
    levels = [derivatives[..., j : j + 1] for j in range(K)]
    for i in range(K - 1):
        rates = table[i, : i + 1] * x[..., i + 1 : 0 : -1]
        for j in range(K - 1 - i):
            new = (levels[j + 1][..., : i + 1] * rates).sum(axis=-1, keepdims=True)
            levels[j] = np.concatenate((levels[j], new), axis=-1)
    return levels[0] if K else x


def compose_inverse(derivatives: Array, y: Array, x: Array) -> Array:
    """Series of x(t) with f(x(t)) = y(t).

    Parameters
    ----------
    derivatives : ndarray, shape (..., >= K)
        f and its derivatives with respect to x, at x(t); the first derivative is not zero.
    y : ndarray, shape (..., K)
        Series of the value.
    x : ndarray, shape (...)
        The argument itself.

    Returns
    -------
    ndarray, shape (..., K)
    """
    K = y.shape[-1]
    table = leibniz.binomials(K)
    result = np.empty(np.broadcast_shapes(y.shape, (*x.shape, K)))
    result[..., 0] = x
    levels = [derivatives[..., j : j + 1] for j in range(1, K)]
    for i in range(K - 1):
        # y^(i+1) = g_1 x^(i+1) + terms with lower derivatives of x.
        known = levels[0][..., 1 : i + 1] * table[i, 1 : i + 1] * result[..., i:0:-1]
        rest = y[..., i + 1] - known.sum(axis=-1)
        result[..., i + 1] = rest / levels[0][..., 0]
        rates = table[i, : i + 1] * result[..., i + 1 : 0 : -1]
        for j in range(K - 2 - i):
            new = (levels[j + 1][..., : i + 1] * rates).sum(axis=-1, keepdims=True)
            levels[j] = np.concatenate((levels[j], new), axis=-1)
    return result
