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
well-conditioned for all ratios of h and D / f'. Steps that are too long are divided, with the
torque between the samples from the polynomial that has its derivatives at both ends.
"""

from __future__ import annotations

from functools import lru_cache
from math import factorial

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BPoly

from hodyn_ros.actuators.composition import compose
from hodyn_ros.actuators.springs import Spring
from hodyn_ros.errors import ActuatorError
from hodyn_ros.lie import leibniz

Array = NDArray[np.float64]

# How often a step may be halved, and rounds of solving and halving.
_MOST_DIVISIONS = 14
_MOST_ROUNDS = 40

# Steps with a larger defect are divided: relative to the largest deflection, and absolute [rad].
# With the torque alone (E = 1) the formula is Euler's, of which no more can be expected.
_TOLERANCE = {1: 1e-3}
_USUAL_TOLERANCE = 1e-6
_ALWAYS_GOOD = 1e-10

_MOST_ITERATIONS = 60
_MOST_HALVINGS = 10

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
    grid, Q, given = times, effort, np.arange(len(times))
    shortest = np.diff(times) / 2.0**_MOST_DIVISIONS
    found: Array | None = None
    unsolved = 0
    for _ in range(_MOST_ROUNDS):
        steps = np.diff(grid)
        solved, unsolved = _solve(spring, damping, steps, Q[1:], first)
        if solved is None:
            is_long = np.zeros(steps.size, dtype=bool)
            is_long[max(unsolved - 1, 0) : unsolved + 2] = True
        else:
            series = np.concatenate((first[None], solved))
            found = series[given]
            is_long = _too_long(steps, series[:-1], series[1:], np.abs(series[:, 0]).max())
        is_long &= steps > shortest[np.searchsorted(given, np.arange(steps.size), 'right') - 1]
        if not is_long.any():
            break
        grid, Q, places = _divided(grid, Q, is_long)
        given = places[given]
    if found is None:
        where = int(np.searchsorted(given, unsolved, 'right')) - 1
        raise ActuatorError(
            f'No deflection of {spring} with damping {damping} was found after sample {where}, '
            f'{times[where]:.6g} s; expected shorter steps or a smoother torque.'
        )
    spring.check(found[:, 0])
    return found


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
    E = effort.size
    last = compose(_extended(spring, before[0], E), before[:E]) + damping * before[1:]
    times = np.array([0.0, time_step])
    series: Array = follow_torque(spring, damping, times, np.stack((last, effort)), before)[1]
    return series


def next_linear_deflections(
    stiffness: Array, damping: Array, time_step: float, effort: Array, before: Array
) -> tuple[Array, NDArray[np.bool_]]:
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
    ndarray of bool, shape (n,)
        For which springs the step is too long, so that it should be divided.
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
    largest = np.maximum(np.abs(result[:, 0]), np.abs(before[:, 0]))
    return result, _too_long(np.full(n, time_step), before, result, largest)


def slow_deflection(spring: Spring, damping: float, effort: Array) -> Array:
    """Series of the deflection from one sample, without what the damper remembers of the past.

    The solution of the E equations of a sample with delta^(E) = 0. It deviates from the motion
    that has forgotten its beginning by about (D / f')^E delta^(E), and not at all at rest. Where
    there is none, the deflection that the spring has without the damper.

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
    DeflectionError
        If it is outside of the range.
    """
    E = effort.shape[-1]
    series = _static_guess(spring, effort[None])
    slope = float(spring.derivatives(series[0, 0], 1)[1])
    h = np.array([damping / slope])
    row = np.zeros(E + 1)
    row[E] = 1.0
    found = _newton(spring, damping, h, effort[None], series, row, np.zeros(E), np.zeros(E + 1))
    if found is None:
        # No motion is slow for a joint that takes longer to settle.
        return deflection_from_state(spring, damping, float(spring.deflection(effort[0])), effort)
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


def _solve(
    spring: Spring, damping: float, steps: Array, effort: Array, first: Array
) -> tuple[Array | None, int]:
    """Solve the equations of all steps at once, or else of one after the other.

    The second result is the first step without a solution.
    """
    beta, alpha = _pade(effort.shape[-1])
    if steps.size > 1:
        guess = _static_guess(spring, effort)
        found = _newton(spring, damping, steps, effort, guess, beta, alpha, first)
        if found is not None:
            return found, steps.size
    found, before = np.empty((steps.size, first.size)), first
    for i in range(steps.size):
        part = slice(i, i + 1)
        guess = _taylor(before, float(steps[i]))[None]
        one = _newton(spring, damping, steps[part], effort[part], guess, beta, alpha, before)
        if one is None:
            return None, i
        before = found[i] = one[0]
    return found, steps.size


def _too_long(
    steps: Array, before: Array, after: Array, largest: Array | np.float64
) -> NDArray[np.bool_]:
    """Which steps have a defect that is too large for deflections of this size."""
    tolerance = _TOLERANCE.get(before.shape[-1] - 1, _USUAL_TOLERANCE)
    allowed = tolerance * largest + _ALWAYS_GOOD
    return np.asarray(~(_defects(steps, before, after) <= allowed))


def _divided(
    times: Array, effort: Array, is_long: NDArray[np.bool_]
) -> tuple[Array, Array, NDArray[np.intp]]:
    """Insert times and torques in the middle of long steps; say where the old ones went."""
    E = effort.shape[-1]
    left = np.flatnonzero(is_long)
    h = (times[left + 1] - times[left])[:, None]
    powers = h ** np.arange(E)
    from_left, from_right = _middle(E)
    middle = (effort[left] * powers) @ from_left + (effort[left + 1] * powers) @ from_right
    places = np.arange(times.size) + np.concatenate(([0], np.cumsum(is_long)))
    between = times[left] + 0.5 * h[:, 0]
    return (
        np.insert(times, left + 1, between),
        np.insert(effort, left + 1, middle / powers, axis=0),
        places,
    )


@lru_cache(maxsize=16)
def _middle(E: int) -> tuple[Array, Array]:
    """Series in the middle of a step of length one from those at its ends, as two matrices."""
    identity, zero = np.eye(E), np.zeros(E)
    pairs = [(row, zero) for row in identity], [(zero, row) for row in identity]
    left, right = (
        np.array(
            [
                [float(BPoly.from_derivatives([0.0, 1.0], pair)(0.5, nu=m)) for m in range(E)]
                for pair in side
            ]
        )
        for side in pairs
    )
    return left, right


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


@lru_cache(maxsize=16)
def _pade(E: int) -> tuple[Array, Array]:
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


def _defects(h: Array, before: Array, after: Array) -> Array:
    """By how much steps (N,) fail the formula of the next higher order: a measure of their error.

    Series (N, E+1) at both ends of the steps give (N,) [rad] or [m].
    """
    j = np.arange(before.shape[-1])
    scaled = (before - (-1.0) ** j * after) * h[:, None] ** j
    result: Array = np.abs(scaled @ _symmetric(j.size - 1))
    return result


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
    """Newton's method for all samples at once, (N, E+1); None if it does not converge.

    It begins at `series` (N, E+1); `first` (E+1,) is the series before the first sample. The last
    equation of a sample is beta . (h^j series_i^(j)) = alpha . (h^j series_(i-1)^(j)).
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
        slope = _extended(spring, guess[:, 0], 1)[:, 1:]
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
        self._derivatives = _extended(self._spring, series[:, 0], E)
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


def _extended(spring: Spring, deflection: Array, order: int) -> Array:
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
