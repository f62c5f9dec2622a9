"""Time derivatives of scalar functions of scalar series.

A series is an array whose last axis holds a function of time and its derivatives. The functions
here are those that the models of variable stiffness are made of.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.lie import leibniz

Array = NDArray[np.float64]



def product(f: Array, g: Array) -> Array:
    """Series of the product of two scalar functions by Leibniz's rule.

    Parameters
    ----------
    f, g : ndarray, shape (..., K)

    Returns
    -------
    ndarray, shape (..., K)
    """
    table, difference = _leibniz_table(f.shape[-1])
    out: Array = ((f[..., difference] * table) @ g[..., None])[..., 0]
    return out


@lru_cache(maxsize=64)
def _leibniz_table(K: int) -> tuple[Array, NDArray[np.intp]]:
    """Binomial coefficients (m, j), and m - j where they are not zero."""
    m, j = np.ogrid[:K, :K]
    return leibniz.binomials(K), np.maximum(m - j, 0)


def reciprocal(f: Array) -> Array:
    """Series of 1 / f.

    Parameters
    ----------
    f : ndarray, shape (..., K)

    Returns
    -------
    ndarray, shape (..., K)
    """
    K = f.shape[-1]
    table = leibniz.binomials(K)
    r = np.empty_like(f)
    r[..., 0] = 1.0 / f[..., 0]
    for m in range(1, K):
        # The m-th derivative of f r = 1 is zero.
        rest = (table[m, 1 : m + 1] * f[..., 1 : m + 1] * r[..., m - 1 :: -1]).sum(axis=-1)
        r[..., m] = -rest * r[..., 0]
    return r


def sinh_cosh(u: Array) -> tuple[Array, Array]:
    """Series of the hyperbolic sine and cosine.

    Parameters
    ----------
    u : ndarray, shape (..., K)

    Returns
    -------
    sine, cosine : ndarray, shape (..., K)
    """
    K = u.shape[-1]
    sine, cosine = np.empty_like(u), np.empty_like(u)
    sine[..., 0], cosine[..., 0] = np.sinh(u[..., 0]), np.cosh(u[..., 0])
    table = leibniz.binomials(K)
    for k in range(K - 1):
        # s' = c u', c' = s u', differentiated k times.
        rates = u[..., k + 1 : 0 : -1] * table[k, : k + 1]
        sine[..., k + 1] = (cosine[..., : k + 1] * rates).sum(axis=-1)
        cosine[..., k + 1] = (sine[..., : k + 1] * rates).sum(axis=-1)
    return sine, cosine
