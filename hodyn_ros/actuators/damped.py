"""Deflection of a spring with a damper beside it, along a sampled joint torque.

The equations of the samples are in obreshkov.py. Steps that are too long for them are divided,
with the torque between the samples from the polynomial that has its derivatives at both ends.
"""

from __future__ import annotations

from functools import lru_cache
from math import factorial

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BPoly

from hodyn_ros.actuators.composition import compose
from hodyn_ros.actuators.obreshkov import defects, extended, newton, pade
from hodyn_ros.actuators.springs import Spring
from hodyn_ros.errors import ActuatorError

Array = NDArray[np.float64]

# How often a step may be halved, and rounds of solving and halving.
_MOST_DIVISIONS = 14
_MOST_ROUNDS = 40

# Steps with a larger defect are divided: relative to the largest deflection, and absolute [rad].
# With the torque alone (E = 1) the formula is Euler's, of which no more can be expected.
_TOLERANCE = {1: 1e-3}
_USUAL_TOLERANCE = 1e-6
_ALWAYS_GOOD = 1e-10


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
    last = compose(extended(spring, before[0], E), before[:E]) + damping * before[1:]
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
    beta, alpha = pade(E)
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
    found = newton(spring, damping, h, effort[None], series, row, np.zeros(E), np.zeros(E + 1))
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
    beta, alpha = pade(effort.shape[-1])
    if steps.size > 1:
        guess = _static_guess(spring, effort)
        found = newton(spring, damping, steps, effort, guess, beta, alpha, first)
        if found is not None:
            return found, steps.size
    found, before = np.empty((steps.size, first.size)), first
    for i in range(steps.size):
        part = slice(i, i + 1)
        guess = _taylor(before, float(steps[i]))[None]
        one = newton(spring, damping, steps[part], effort[part], guess, beta, alpha, before)
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
    return np.asarray(~(defects(steps, before, after) <= allowed))


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
