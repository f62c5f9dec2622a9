"""Deflection of a spring with a damper beside it, along a sampled joint torque.

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
from hodyn_ros.errors import ActuatorError
from hodyn_ros.lie import leibniz

Array = NDArray[np.float64]

_MOST_ITERATIONS = 60

# Newton's method converges quadratically: after a step this small, relative to the same order of
# the derivative, one more step leaves an error of rounding.
_SMALL_STEP = 1e-7
# Changes of h^j delta^(j) by so much of delta may be rounding, which the formula magnifies.
_ROUNDING = 1e-12


def follow_torque(
    spring: Spring, damping: float, times: Array, effort: Array, first: Array
) -> Array:
    """Series of the deflection along a sampled torque.

    Parameters
    ----------
    spring : Spring
    damping : float
        D, positive [N m s/rad] or [N s/m].
    times : ndarray, shape (N,)
        Strictly increasing [s].
    effort : ndarray, shape (N, E)
        Series of the joint torque at these times.
    first : ndarray, shape (E+1,)
        Series of the deflection at the first time.

    Returns
    -------
    ndarray, shape (N, E+1)

    Raises
    ------
    DeflectionError
        If a deflection leaves the range of the spring.
    ActuatorError
        If no solution is found.
    """
    N, E = effort.shape
    result = np.empty((N, E + 1))
    result[0] = first
    if N > 1:
        steps = np.diff(times)
        guess = _static_guess(spring, effort[1:])
        found = _steps(spring, damping, steps, effort[1:], first, guess)
        if found is None:
            found = _one_by_one(spring, damping, steps, effort[1:], first)
        result[1:] = found
    spring.check(result[:, 0])
    return result


def next_deflection(
    spring: Spring, damping: float, time_step: float, effort: Array, before: Array
) -> Array:
    """Series of the deflection one sample later.

    Parameters
    ----------
    spring : Spring
    damping : float
    time_step : float
        [s]
    effort : ndarray, shape (E,)
        Series of the joint torque now.
    before : ndarray, shape (E+1,)
        Series of the deflection at the sample before.

    Returns
    -------
    ndarray, shape (E+1,)

    Raises
    ------
    DeflectionError, ActuatorError
        See `follow_torque`.
    """
    steps = np.array([time_step])
    series: Array = _one_by_one(spring, damping, steps, effort[None], before)[0]
    spring.check(series[0])
    return series


def next_linear_deflections(
    stiffness: Array, damping: Array, time_step: float, effort: Array, before: Array
) -> Array:
    """Series of the deflections of several linear springs one sample later, at once.

    Parameters
    ----------
    stiffness, damping : ndarray, shape (n,)
    time_step : float
        [s]
    effort : ndarray, shape (n, E)
    before : ndarray, shape (n, E+1)

    Returns
    -------
    ndarray, shape (n, E+1)
        Not checked against ranges.
    """
    n, E = effort.shape
    beta, alpha = _pade(E)
    powers = time_step ** np.arange(E + 1.0)
    size = stiffness + damping / time_step
    matrix = np.zeros((n, E + 1, E + 1))
    rows = np.arange(E)
    matrix[:, rows, rows] = (stiffness / size)[:, None]
    matrix[:, rows, rows + 1] = (damping / time_step / size)[:, None]
    matrix[:, E] = beta
    right = np.empty((n, E + 1, 1))
    right[:, :E, 0] = effort * powers[:E] / size[:, None]
    right[:, E, 0] = (before[:, :E] * powers[:E]) @ alpha
    scaled = np.linalg.solve(matrix, right)
    # The entries differ by orders of magnitude; a second solution makes the small ones exact too.
    scaled += np.linalg.solve(matrix, right - matrix @ scaled)
    result: Array = scaled[..., 0] / powers
    return result


def slow_deflection(spring: Spring, damping: float, effort: Array) -> Array:
    """Series of the deflection from one sample, without what the damper remembers of the past.

    The solution of the E equations of a sample with delta^(E) = 0. It deviates from the motion
    that has forgotten its beginning by about (D / f')^E delta^(E), and not at all at rest.

    Parameters
    ----------
    spring : Spring
    damping : float
    effort : ndarray, shape (E,)

    Returns
    -------
    ndarray, shape (E+1,)

    Raises
    ------
    DeflectionError, ActuatorError
    """
    E = effort.shape[-1]
    series = _static_guess(spring, effort[None])
    slope = float(spring.derivatives(series[0, 0], 1)[1])
    h = np.array([damping / slope])
    row = np.zeros(E + 1)
    row[E] = 1.0
    found = _newton(spring, damping, h, effort[None], series, row, np.zeros(E), np.zeros(E + 1))
    if found is None:
        raise ActuatorError(
            f'No initial deflection was found for {spring} with damping {damping}; give one.'
        )
    spring.check(found[:, 0])
    first: Array = found[0]
    return first


def deflection_from_state(
    spring: Spring, damping: float, deflection: float, effort: Array
) -> Array:
    """Series of the deflection from the deflection itself and the torque.

    Parameters
    ----------
    spring : Spring
    damping : float
    deflection : float
    effort : ndarray, shape (E,)

    Returns
    -------
    ndarray, shape (E+1,)

    Raises
    ------
    DeflectionError
        If the deflection is outside of the range.
    """
    E = effort.shape[-1]
    spring.check(deflection)
    series = np.zeros(E + 1)
    series[0] = deflection
    derivatives = spring.derivatives(series[0], E)
    for m in range(E):
        torque = compose(derivatives, series[: m + 1])[m]
        series[m + 1] = (effort[m] - torque) / damping
    return series


@lru_cache(maxsize=16)
def _pade(E: int) -> tuple[Array, Array]:
    """Coefficients beta_j (E+1) and alpha_j (E) of the formula above, from exp = alpha / beta."""
    n = 2 * E - 1
    common = [factorial(n - j) / (factorial(n) * factorial(j)) for j in range(E + 1)]
    beta = [(-1) ** j * common[j] * factorial(E) / factorial(E - j) for j in range(E + 1)]
    alpha = [common[j] * factorial(E - 1) / factorial(E - 1 - j) for j in range(E)]
    return np.array(beta), np.array(alpha)


def _steps(
    spring: Spring, damping: float, steps: Array, effort: Array, first: Array, guess: Array
) -> Array | None:
    beta, alpha = _pade(effort.shape[-1])
    return _newton(spring, damping, steps, effort, guess, beta, alpha, first)


def _one_by_one(
    spring: Spring, damping: float, steps: Array, effort: Array, before: Array
) -> Array:
    """Go from sample to sample: slow, but always close to the solution."""
    found = np.empty((steps.size, before.size))
    for i, h in enumerate(steps):
        part = slice(i, i + 1)
        start = _taylor(before, h)[None]
        one = _steps(spring, damping, steps[part], effort[part], before, start)
        if one is None:
            raise ActuatorError(
                f'No deflection of {spring} with damping {damping} was found {h:.3g} s after '
                f'sample {i}; expected shorter steps or a smoother torque.'
            )
        before = found[i] = one[0]
    return found


def _newton(
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
    N, E = effort.shape
    powers = h[:, None] ** np.arange(E + 1)
    link = alpha * powers[:, :E]
    m, j = np.ogrid[:E, :E]
    scaling = np.where(m >= j, powers[:, np.maximum(m - j, 0)], 0.0)
    scaled = series * powers
    jacobian = np.zeros((N, E + 1, E + 1))
    right = np.zeros((N, E + 1, 2))
    jacobian[:, E] = beta
    right[:, E, 1] = 1.0
    was_close = False
    for _ in range(_MOST_ITERATIONS):
        series = scaled / powers
        derivatives = _extended(spring, series[:, 0], E)
        torque = compose(derivatives, series[:, :E])
        slope = compose(derivatives[:, 1:], series[:, :E])
        # Equations are scaled so that their largest coefficients are about one.
        size = np.abs(slope[:, :1]) + (damping / h)[:, None]
        jacobian[:, :E] = 0.0
        jacobian[:, :E, :E] = leibniz.multiplication(slope) * scaling / size[..., None]
        rate = (damping / h)[:, None] / size
        jacobian[:, np.arange(E), np.arange(1, E + 1)] += rate
        right[:, :E, 0] = (effort - torque) * powers[:, :E] / size - rate * scaled[:, 1:]
        previous = np.concatenate((first[None, :E], series[:-1, :E]))
        right[:, E, 0] = (link * previous).sum(axis=-1) - scaled @ beta
        try:
            own, passed = np.moveaxis(np.linalg.solve(jacobian, right), -1, 0)
        except np.linalg.LinAlgError:
            return None
        # What a change of one sample does to the next is passed on in one number.
        unscaled = link[1:] / powers[:-1, :E]
        source = (unscaled * own[:-1, :E]).sum(axis=-1).tolist()
        factor = (unscaled * passed[:-1, :E]).sum(axis=-1).tolist()
        change, changes = 0.0, [0.0]
        for a, b in zip(source, factor):
            change = a + b * change
            changes.append(change)
        update = own + passed * np.array(changes)[:, None]
        scaled = scaled + update
        largest = np.abs(scaled).max(axis=0)
        if not np.all(np.isfinite(largest)):
            return None
        small = np.maximum(_SMALL_STEP * largest, _ROUNDING * largest[0])
        is_close = bool(np.all(np.abs(update).max(axis=0) <= small))
        if was_close:
            result: Array = scaled / powers
            return result
        was_close = is_close
    return None


def _static_guess(spring: Spring, effort: Array) -> Array:
    """Series (N, E+1) of the deflection without damping; the last entry is zero."""
    N, E = effort.shape
    reachable = effort.copy()
    reachable[:, 0] = np.clip(effort[:, 0], *spring.torque_range)
    series = np.zeros((N, E + 1))
    series[:, :E] = spring.deflection_series(reachable)
    return series


def _taylor(series: Array, h: float) -> Array:
    """Series a time h later, as far as the series tells."""
    K = series.size
    moved = np.empty(K)
    for j in range(K):
        moved[j] = sum(series[j + i] * h**i / factorial(i) for i in range(K - j))
    return moved


def _extended(spring: Spring, deflection: Array, order: int) -> Array:
    """Law and derivatives, continued by straight lines outside of the range.

    Iterations may leave the range, where a law need not increase; solutions that do are refused.
    """
    lower, upper = spring.range
    inside = np.clip(deflection, lower, upper)
    derivatives = spring.derivatives(inside, order)
    outside = deflection != inside
    if outside.any():
        beyond = (deflection - inside)[outside]
        derivatives[outside, 0] += derivatives[outside, 1] * beyond
        derivatives[outside, 2:] = 0.0
    return derivatives
