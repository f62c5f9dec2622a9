"""Time derivatives of functions of moving arguments.

A series is an array whose last axis holds a function of time and its derivatives, entry k the k-th
one.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.lie import leibniz

Array = NDArray[np.float64]


def compose(derivatives: Array, x: Array) -> Array:
    """Series (..., K) of f(x(t)), from f and its derivatives at x(t) (..., >= K) and x (..., K).

    With g_j = f^(j)(x(t)) the chain rule reads d/dt g_j = g_(j+1) x', and Leibniz's rule gives all
    higher derivatives: g_j^(i+1) = sum over l of binomial(i, l) g_(j+1)^(l) x^(i-l+1). This is Faa
    di Bruno's formula, computed without its partitions.
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


def product(f: Array, g: Array) -> Array:
    """Series (..., K) of the product of two scalar series, by Leibniz's rule."""
    table, difference = _leibniz_table(f.shape[-1])
    out: Array = ((f[..., difference] * table) @ g[..., None])[..., 0]
    return out


@lru_cache(maxsize=64)
def _leibniz_table(K: int) -> tuple[Array, NDArray[np.intp]]:
    """Binomial coefficients (m, j), and m - j where they are not zero."""
    m, j = np.ogrid[:K, :K]
    return leibniz.binomials(K), np.maximum(m - j, 0)


def reciprocal(f: Array) -> Array:
    """Series (..., K) of 1 / f."""
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
    """Series (..., K) of the hyperbolic sine and cosine of u."""
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
