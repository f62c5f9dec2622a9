"""A time law u(t) of class C4, given by the square b(u) of its speed.

With b = ud^2 the derivatives of u are polynomials in b, its derivatives and the speed:
u2d = b' / 2, u3d = b'' ud / 2 and so on; and the time is the integral of 1 / sqrt(b). b is a
spline of degree 4, so it is of class C3 and u(t) of class C4.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline

from hodyn_ros.actuators.composition import compose
from hodyn_ros.trajectory.immutable import Immutable

Array = NDArray[np.float64]

DEGREE = 4
"""Of the spline."""

# Nodes of the quadrature of 1 / sqrt(b) within an interval between knots.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_NEWTON_STEPS = 50


def clamped(knots: Array) -> Array:
    """Knots of a spline of `DEGREE` that ends at the first and last of these."""
    return np.concatenate((np.repeat(knots[0], DEGREE), knots, np.repeat(knots[-1], DEGREE)))


@dataclass(frozen=True, eq=False)
class TimeLaw(Immutable):
    """A parameter u that moves from 0 to 1 with the speed sqrt(b(u)).

    Attributes
    ----------
    knots : ndarray, shape (L + 1,)
        From 0 to 1, increasing.
    coefficients : ndarray, shape (L + 4,)
        Of the B-splines of b [1/s^2]; above zero, so that b is.
    times : ndarray, shape (L + 1,)
        At which u passes the knots, from zero [s].
    """

    knots: Array
    coefficients: Array
    times: Array

    @classmethod
    def from_coefficients(cls, knots: Array, coefficients: Array) -> TimeLaw:
        """Time law with given coefficients."""
        law = cls(knots, coefficients, np.zeros(len(knots)))
        steps = law._time_between(knots[:-1], knots[1:])
        return cls(knots, coefficients, np.concatenate(([0.0], np.cumsum(steps))))

    @property
    def duration(self) -> float:
        """Time from 0 to 1 [s]."""
        return float(self.times[-1])

    @property
    def _spline(self) -> BSpline:
        return BSpline(clamped(self.knots), self.coefficients, DEGREE)

    def squares(self, u: Array, highest_derivative: int) -> Array:
        """B and its derivatives with respect to u, shape (..., highest_derivative + 1)."""
        spline = self._spline
        result = np.zeros((*np.shape(u), highest_derivative + 1))
        for k in range(min(highest_derivative, DEGREE) + 1):
            result[..., k] = spline(u, nu=k)
        return result

    def _time_between(self, start: Array, end: Array) -> Array:
        """Time from start to end, both within the same interval between knots."""
        half = 0.5 * (end - start)
        u = start[..., None] + half[..., None] * (1.0 + _NODES)
        return np.asarray((_WEIGHTS / np.sqrt(self._spline(u))).sum(axis=-1) * half)

    def time_at(self, u: Array) -> Array:
        """Find when the parameter passes some values from 0 to 1."""
        interval = np.clip(
            np.searchsorted(self.knots, u, side='right') - 1, 0, len(self.knots) - 2
        )
        passed = self.times[interval] + self._time_between(self.knots[interval], u)
        return np.asarray(np.minimum(passed, self.duration))

    def __call__(self, t: Array, K: int) -> Array:
        """Series (..., K) of the parameter at times from 0 to the duration."""
        t = np.asarray(t, dtype=np.float64)
        interval = np.clip(
            np.searchsorted(self.times, t, side='right') - 1, 0, len(self.times) - 2
        )
        before, behind = self.knots[interval], self.knots[interval + 1]
        offset = t - self.times[interval]
        low, high = before.copy(), behind.copy()
        u = before + (behind - before) * offset / np.diff(self.times)[interval]
        for _ in range(_NEWTON_STEPS):
            miss = self._time_between(before, u) - offset
            high, low = np.where(miss > 0.0, u, high), np.where(miss > 0.0, low, u)
            with_newton = u - miss * np.sqrt(self._spline(u))
            inside = (with_newton >= low) & (with_newton <= high)
            following = np.where(inside, with_newton, 0.5 * (low + high))
            step = np.abs(following - u)
            u = following
            if not np.any(step > 4.0 * np.finfo(np.float64).eps):
                break
        u = np.where(t >= self.duration, 1.0, u)
        return self._series(u, K)

    def _series(self, u: Array, K: int) -> Array:
        series = np.empty((*u.shape, K))
        series[..., 0] = u
        b = self.squares(u, max(K, 2))
        if K > 1:
            series[..., 1] = np.sqrt(b[..., 0])
        for k in range(2, K):
            # u2d = b'(u) / 2, differentiated k - 2 times.
            series[..., k] = 0.5 * compose(b[..., 1:], series[..., : k - 1])[..., -1]
        return series
