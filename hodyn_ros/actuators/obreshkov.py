"""Equations for the deflection of a spring with a damper beside it, from sample to sample.

The joint torque Q = f(delta) + D d/dt delta drives a stable first-order equation for the
deflection. Its first E derivatives are algebraic in the deflection: with Q and E - 1 derivatives
known at a sample, Q^(m) = d^m/dt^m f(delta) + D delta^(m+1), m = 0 .. E-1, are E equations for the
E + 1 entries of the series of delta. The last equation joins consecutive samples: the Obreshkov
formula of the Pade approximation (E-1, E) of the exponential function,

    sum over j <= E of beta_j h^j delta_1^(j) = sum over j < E of alpha_j h^j delta_0^(j),

which is exact for polynomials of degree 2 E - 1 and L-stable, so that the damping may be small and
the equation stiff. All equations of a sample are solved at once, by elimination with pivoting in
the unknowns h^j delta^(j): neither delta from its derivatives nor they from it would be
well-conditioned for all ratios of h and D / f'.
"""

from __future__ import annotations

from functools import lru_cache
from math import factorial

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.actuators.composition import compose
from hodyn_ros.actuators.springs import Spring
from hodyn_ros.lie import leibniz

Array = NDArray[np.float64]

_MOST_ITERATIONS = 60
_MOST_HALVINGS = 10

# Newton's method converges quadratically: after a step this small, relative to the same order of
# the derivative, one more step leaves an error of rounding.
_SMALL_STEP = 1e-7
# Changes of h^j delta^(j) by so much of delta may be rounding, which the formula magnifies.
_ROUNDING = 1e-12


@lru_cache(maxsize=16)
def pade(E: int) -> tuple[Array, Array]:
    """Coefficients beta_j (E+1) and alpha_j (E) of the formula above, from exp = alpha / beta."""
    n = 2 * E - 1
    common = [factorial(n - j) / (factorial(n) * factorial(j)) for j in range(E + 1)]
    beta = [(-1) ** j * common[j] * factorial(E) / factorial(E - j) for j in range(E + 1)]
    alpha = [common[j] * factorial(E - 1) / factorial(E - 1 - j) for j in range(E)]
    return np.array(beta), np.array(alpha)


@lru_cache(maxsize=16)
def _symmetric(E: int) -> Array:
    """Coefficients of the formula of the approximation (E, E)."""
    n = 2 * E
    common = factorial(E) / factorial(n)
    return np.array(
        [common * factorial(n - j) / (factorial(j) * factorial(E - j)) for j in range(E + 1)]
    )


def defects(h: Array, before: Array, after: Array) -> Array:
    """By how much steps fail the formula of the next higher order, as a measure of their error.

    Parameters
    ----------
    h : ndarray, shape (N,)
    before, after : ndarray, shape (N, E+1)
        Series of the deflection at both ends of the steps.

    Returns
    -------
    ndarray, shape (N,)
        [rad] or [m]
    """
    j = np.arange(before.shape[-1])
    scaled = (before - (-1.0) ** j * after) * h[:, None] ** j
    result: Array = np.abs(scaled @ _symmetric(j.size - 1))
    return result


def newton(
    spring: Spring,
    damping: float,
    h: Array,
    effort: Array,
    series: Array,
    beta: Array,
    alpha: Array,
    first: Array,
) -> Array | None:
    """Newton's method for all samples at once; None if it does not converge.

    Parameters
    ----------
    h : ndarray, shape (N,)
        Steps that lead to the samples.
    effort : ndarray, shape (N, E)
    series : ndarray, shape (N, E+1)
        Where to begin.
    beta, alpha : ndarray, shape (E+1,), (E,)
        Last equation of a sample: beta . (h^j series_i^(j)) = alpha . (h^j series_(i-1)^(j)).
    first : ndarray, shape (E+1,)
        The series before the first sample.

    Returns
    -------
    ndarray, shape (N, E+1), or None
    """
    equations = _Equations(spring, damping, h, effort, beta, alpha, first, series)
    scaled = series * equations.powers
    was_close = False
    with np.errstate(over='ignore', invalid='ignore'):
        residual = equations.residual(scaled)
        for _ in range(_MOST_ITERATIONS):
            update = equations.update(scaled, residual)
            if update is None:
                return None
            after = scaled + update
            largest = np.abs(after).max(axis=0)
            small = np.maximum(_SMALL_STEP * largest, _ROUNDING * largest[0])
            is_close = bool(np.all(np.abs(update).max(axis=0) <= small))
            new = equations.residual(after)
            for _ in range(0 if is_close or was_close else _MOST_HALVINGS):
                if np.abs(new).max() <= np.abs(residual).max():
                    break
                # Too far for the straight lines that the step is made from.
                update = 0.5 * update
                after = scaled + update
                new = equations.residual(after)
            scaled, residual = after, new
            if not np.all(np.isfinite(scaled)):
                return None
            if was_close:
                result: Array = scaled / equations.powers
                return result
            was_close = is_close
    return None


class _Equations:
    """Equations of all samples in the unknowns h^j delta^(j), shape (N, E+1); see `newton`."""

    def __init__(
        self,
        spring: Spring,
        damping: float,
        h: Array,
        effort: Array,
        beta: Array,
        alpha: Array,
        first: Array,
        guess: Array,
    ) -> None:
        self._spring, self._effort, self._first, self._beta = spring, effort, first, beta
        N, E = effort.shape
        self._E = E
        self.powers = h[:, None] ** np.arange(E + 1)
        self._link = alpha * self.powers[:, :E]
        # Equations are scaled so that their largest coefficients are about one.
        slope = extended(spring, guess[:, 0], 1)[:, 1:]
        size = slope + (damping / h)[:, None]
        self._rate = (damping / h)[:, None] / size
        self._weight = self.powers[:, :E] / size
        m, j = np.ogrid[:E, :E]
        powers = self.powers[:, np.maximum(m - j, 0)]
        self._scaling = np.where(m >= j, powers, 0.0) / size[..., None]
        self._jacobian = np.zeros((N, E + 1, E + 1))
        self._jacobian[:, E] = beta
        self._right = np.zeros((N, E + 1, 2))
        self._right[:, E, 1] = 1.0

    def residual(self, scaled: Array) -> Array:
        E = self._E
        series = scaled / self.powers
        self._derivatives = extended(self._spring, series[:, 0], E)
        torque = compose(self._derivatives, series[:, :E])
        result = np.empty_like(scaled)
        result[:, :E] = (self._effort - torque) * self._weight - self._rate * scaled[:, 1:]
        previous = np.concatenate((self._first[None, :E], series[:-1, :E]))
        result[:, E] = (self._link * previous).sum(axis=-1) - scaled @ self._beta
        return result

    def update(self, scaled: Array, residual: Array) -> Array | None:
        """Newton's step from where the residual was computed last; None if there is none."""
        E = self._E
        slope = compose(self._derivatives[:, 1:], (scaled / self.powers)[:, :E])
        jacobian, right = self._jacobian, self._right
        jacobian[:, :E] = 0.0
        jacobian[:, :E, :E] = leibniz.multiplication(slope) * self._scaling
        jacobian[:, np.arange(E), np.arange(1, E + 1)] += self._rate
        right[..., 0] = residual
        try:
            own, passed = np.moveaxis(np.linalg.solve(jacobian, right), -1, 0)
        except np.linalg.LinAlgError:
            return None
        # What a change of one sample does to the next is passed on in one number.
        unscaled = self._link[1:] / self.powers[:-1, :E]
        source = (unscaled * own[:-1, :E]).sum(axis=-1).tolist()
        factor = (unscaled * passed[:-1, :E]).sum(axis=-1).tolist()
        change, changes = 0.0, [0.0]
        for a, b in zip(source, factor):
            change = a + b * change
            changes.append(change)
        result: Array = own + passed * np.array(changes)[:, None]
        return result


def extended(spring: Spring, deflection: Array, order: int) -> Array:
    """Law and derivatives, continued by straight lines outside of the range.

    Iterations may leave the range, where a law need not increase; solutions that do are refused.
    """
    lower, upper = spring.range
    inside = np.clip(deflection, lower, upper)
    derivatives = spring.derivatives(inside, order)
    outside = np.asarray(deflection != inside)
    if outside.any():
        beyond = np.asarray(deflection - inside)[outside]
        derivatives[outside, 0] += derivatives[outside, 1] * beyond
        derivatives[outside, 2:] = 0.0
    return derivatives
