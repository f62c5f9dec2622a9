"""Deflection x of a spring with a damper beside it, along a sampled joint torque: Q = f(x) + D x'.

Between samples Q is the polynomial of degree 2 E - 1 that has its E derivatives at both ends. A
linear spring is followed exactly (variation of constants, with w_j(z), z = k h / D, as weights);
any other one by an exponential method of order 2 E, solved by quasilinearisation: k is the slope
of f where the step ends, and Q - f(x) + k x drives. Over stiff steps x^(E) is followed, and lower
derivatives by x^(m) = (Q^(m) - D x^(m+1)) / k. The equations are on the page on elastic joints.
Source: Hochbruck and Ostermann 2010, "Exponential integrators", Acta Numerica 19.
"""

from __future__ import annotations

from functools import lru_cache
from math import factorial

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.actuators.series import compose
from hodyn_ros.actuators.springs import LinearSpring, Spring
from hodyn_ros.errors import ActuatorError
from hodyn_ros.lie import leibniz

Array = NDArray[np.float64]

# How often a step may be halved, rounds of solving and halving, and repetitions in a round.
_MOST_DIVISIONS = 14
_MOST_ROUNDS = 40
_MOST_ITERATIONS = 60

# Repetitions end when changes of h^j x^(j) are small against its own size, or such that they may
# be rounding of x, and have stopped to fall, or are about to be so much smaller still.
_SMALL = 1e-7
_ROUNDING = 1e-12
_FALLING = 0.5
_VANISHING = 1e-9

# Steps with a larger error are divided: relative to the largest deflection, and absolute [rad].
# With the torque alone (E = 1) the method is of second order, of which no more can be expected.
_TOLERANCE = {1: 1e-3}
_USUAL_TOLERANCE = 1e-6
_ALWAYS_GOOD = 1e-10

# Steps over more time constants than this follow x^(E) instead of x.
_STIFF = 0.5

# Weights are those of so many time constants at least; powers of them may overflow.
_SMALLEST = 1e-20
_LARGEST = 1e300


def follow_torque(
    spring: Spring, damping: float, times: Array, effort: Array, first: Array
) -> Array:
    """Series (N, E+1) of the deflection along a torque (N, E), from the first one (E+1,) on.

    A `DeflectionError` is raised if it leaves the range of the spring, an `ActuatorError` if no
    solution is found.
    """
    with np.errstate(over='ignore', invalid='ignore', divide='ignore'):
        if len(times) == 1:
            found = first[None].copy()
        elif type(spring) is LinearSpring:
            stiffness = np.full(len(times) - 1, spring.stiffness)
            known = np.zeros_like(effort)
            found = _chain(stiffness, damping, np.diff(times), effort, known, first)
        else:
            found = _follow_curved(spring, damping, times, effort, first)
    spring.check(found[:, 0])
    return found


def _follow_curved(
    spring: Spring, damping: float, times: Array, effort: Array, first: Array
) -> Array:
    grid, Q, given, E = times, effort, np.arange(len(times)), effort.shape[-1]
    shortest = np.diff(times) / 2.0**_MOST_DIVISIONS
    found: Array | None = None
    for _ in range(_MOST_ROUNDS):
        steps = np.diff(grid)
        series, errors, solved = _solve(spring, damping, steps, Q, first)
        if solved == steps.size:
            found = series[given]
            tolerance = _TOLERANCE.get(E, _USUAL_TOLERANCE)
            is_long = ~(errors <= tolerance * np.abs(series[:, 0]).max() + _ALWAYS_GOOD)
        else:
            is_long = np.zeros(steps.size, dtype=bool)
            is_long[max(solved - 1, 0) : solved + 2] = True
        is_long &= steps > shortest[np.searchsorted(given, np.arange(steps.size), 'right') - 1]
        if not is_long.any():
            break
        left = np.flatnonzero(is_long)
        h = steps[left, None]
        powers = h ** np.arange(E)
        middle = _taylor(Q[left] * powers, Q[left + 1] * powers) @ _shift(2 * E, -0.5)
        grid = np.insert(grid, left + 1, grid[left] + 0.5 * h[:, 0])
        Q = np.insert(Q, left + 1, middle[:, :E] / powers, axis=0)
        given = given + np.concatenate(([0], np.cumsum(is_long)))[given]
    if found is None:
        where = int(np.searchsorted(given, solved, 'right')) - 1
        raise ActuatorError(
            f'No deflection of {spring} with damping {damping} was found after sample {where}, '
            f'{times[where]:.6g} s; expected shorter steps or a smoother torque.'
        )
    return found


def next_deflection(
    spring: Spring, damping: float, time_step: float, effort: Array, before: Array
) -> Array:
    """Series (E+1,) of the deflection one sample later, from that before and the torque (E,) now.

    Errors are those of `follow_torque`.
    """
    E = effort.size
    last = compose(_extended(spring, before[0], E), before[:E]) + damping * before[1:]
    times = np.array([0.0, time_step])
    series: Array = follow_torque(spring, damping, times, np.stack((last, effort)), before)[1]
    return series


def next_linear_deflections(
    stiffness: Array, damping: Array, time_step: float, effort: Array, before: Array
) -> Array:
    """Do what `next_deflection` does for n linear springs at once, but for the check of ranges."""
    with np.errstate(over='ignore', invalid='ignore', divide='ignore'):
        last = stiffness[:, None] * before[:, :-1] + damping[:, None] * before[:, 1:]
        h = np.full(stiffness.shape, time_step)
        is_stiff, decay, drive = _linear_steps(stiffness, damping, h, last, effort)
        ends = decay * np.where(is_stiff, before[:, -1], before[:, 0]) + drive
        return _series(stiffness, damping, effort, np.zeros_like(effort), is_stiff, ends)


def first_deflection(
    spring: Spring, damping: float, effort: Array, deflection: float | None = None
) -> Array:
    """Series (E+1,) of the deflection at the beginning, from the torque (E,) there.

    By default it is that of the slow motion, as if the damper had forgotten: the solution of the E
    equations of a sample with x^(E) = 0. It deviates from the motion that has forgotten its
    beginning by about (D / f')^E x^(E), and not at all at rest. Where there is none, the spring
    begins as deflected as without the damper. A `DeflectionError` is raised outside of the range.
    """
    if deflection is None:
        slow = _slow_deflection(spring, damping, effort)
        if slow is not None:
            spring.check(slow[0])
            return slow
        deflection = float(spring.deflection(effort[0]))
    E = effort.shape[-1]
    spring.check(deflection)
    series = np.zeros(E + 1)
    series[0] = deflection
    derivatives = spring.derivatives(series[0], E)
    for m in range(E):
        torque = compose(derivatives, series[: m + 1])[m]
        series[m + 1] = (effort[m] - torque) / damping
    return series


def _slow_deflection(spring: Spring, damping: float, effort: Array) -> Array | None:
    E = effort.shape[-1]
    series = _static_guess(spring, effort)
    slope = float(spring.derivatives(series[0], 1)[1])
    # Unknowns and equations are in units of the time constant.
    powers = (damping / slope) ** np.arange(E + 1.0)
    weights = powers[:E] / slope
    rates = np.eye(E, k=1)
    with np.errstate(over='ignore', invalid='ignore', divide='ignore'):
        for _ in range(_MOST_ITERATIONS):
            derivatives = _extended(spring, series[0], E)
            force = compose(derivatives, series[:E])
            residual = (effort - force - damping * series[1:]) * weights
            slopes = leibniz.multiplication(compose(derivatives[1:], series[:E]))
            matrix = slopes * weights[:, None] / powers[:E] + rates
            if not (np.isfinite(matrix).all() and np.isfinite(residual).all()):
                break
            try:
                update = np.linalg.solve(matrix, residual)
            except np.linalg.LinAlgError:
                break
            series[:E] += update / powers[:E]
            scaled = np.abs(series[:E] * powers[:E])
            if np.all(np.abs(update) <= _ROUNDING * np.maximum(scaled, scaled[0])):
                return series
    return None


def _solve(
    spring: Spring, damping: float, steps: Array, effort: Array, first: Array
) -> tuple[Array, Array, int]:
    """Series (N+1, E+1) along N steps, errors of the steps (N,), and how many are solved."""
    N, E = steps.size, effort.shape[-1]
    series = np.stack([first, *_static_guess(spring, effort[1:])])
    if N == 1 and steps[0] * _extended(spring, first[:1], 1)[0, 1] < damping:
        h = steps[0] ** np.arange(E + 1)
        series[1] = (first * h) @ _shift(E + 1, 1.0) / h
    powers = np.vander(steps, E + 1, increasing=True)
    last = np.inf
    for _ in range(_MOST_ITERATIONS):
        derivatives = _extended(spring, series[:, 0], E)
        slope, known = derivatives[1:, 1], series[:, :E]
        rest = effort - compose(derivatives, known)
        new = _chain(slope, damping, steps, rest, known, first)
        sizes, changes = np.abs(new[1:]) * powers, np.abs(new - series)[1:] * powers
        # The torque is rounded too, which may be that of a large deflection from a distant zero.
        rounding = _ROUNDING * np.maximum(sizes[:, 0].max(), np.abs(effort[1:, 0]) / slope)
        allowed = np.maximum(_SMALL * sizes.max(axis=0), rounding[:, None])
        allowed += np.finfo(float).tiny  # at rest without torque all is zero
        change = (changes / allowed).max()
        is_last = change >= _FALLING * last or change**2 <= _VANISHING * last < np.inf
        if change <= 1.0 and is_last:
            return new, _errors(spring, damping, slope, steps, effort, rest, known), N
        series, last = new, change
    return series, np.full(N, np.inf), int(np.argmin((changes <= allowed).all(axis=-1)))


def _errors(
    spring: Spring,
    damping: float,
    slope: Array,
    steps: Array,
    effort: Array,
    rest: Array,
    known: Array,
) -> Array:
    """Error of each step (N,): what drives it is not quite the polynomial in the middle."""
    E = effort.shape[-1]
    powers = np.vander(steps, E, increasing=True)
    before, after = _driving(slope, rest, known)
    driving = _taylor(before * powers, after * powers) @ _shift(2 * E, -0.5)
    torque = (_taylor(effort[:-1] * powers, effort[1:] * powers) @ _shift(2 * E, -0.5))[:, 0]
    half, z = 0.5 ** np.arange(2 * E), 0.5 * steps * slope / damping
    middle = np.exp(-z) * known[:-1, 0]
    middle += 0.5 * steps / damping * (_weights(z, 2 * E) * half * driving).sum(axis=-1)
    excess = torque - _extended(spring, middle, 0)[:, 0] + slope * middle - driving[:, 0]
    return np.asarray(np.abs(excess) * steps / damping * _weights(2.0 * z, 1)[:, 0])


def _driving(stiffness: Array, rest: Array, known: Array) -> tuple[Array, Array]:
    """Series (N, E) of what drives linear springs at both ends of N steps: rest + k known."""
    k = stiffness[:, None]
    return rest[:-1] + k * known[:-1], rest[1:] + k * known[1:]


def _chain(
    stiffness: Array, damping: float, steps: Array, rest: Array, known: Array, first: Array
) -> Array:
    """Series (N+1, E+1) along N steps of linear springs that are driven by rest + k known."""
    before, after = _driving(stiffness, rest, known)
    is_stiff, decay, drive = _linear_steps(stiffness, damping, steps, before, after)
    was_stiff, ends = bool(is_stiff[0]), []
    value = float(first[-1] if was_stiff else first[0])
    for i, (stiff, factor, added) in enumerate(
        zip(is_stiff.tolist(), decay.tolist(), drive.tolist())
    ):
        if stiff != was_stiff:
            # At the end of the step before, x = static + scale x^(E).
            k, torques = stiffness[i - 1], after[i - 1]
            static = np.polynomial.polynomial.polyval(-damping / k, torques) / k
            scale = (-damping / k) ** torques.size
            value = (value - static) / scale if stiff else static + scale * value
            was_stiff = stiff
        value = factor * value + added
        ends.append(value)
    series = _series(stiffness, damping, rest[1:], known[1:], is_stiff, np.array(ends))
    return np.concatenate((first[None], series))


def _linear_steps(
    stiffness: Array, damping: float | Array, steps: Array, before: Array, after: Array
) -> tuple[NDArray[np.bool_], Array, Array]:
    """Solve steps of linear springs that are driven by polynomials with these series (N, E).

    Whether they are stiff, so that x^(E) is followed and not x, and the decay and the drive of
    what is followed, each of shape (N,): it becomes decay times what it was, plus drive.
    """
    E = after.shape[-1]
    z = stiffness * steps / damping
    is_stiff = z > _STIFF
    weights = _weights(z, 2 * E)
    # Weights of the series are moderate, while the polynomials' own coefficients are not.
    from_before, from_after = _hermite(E)
    high = np.where(is_stiff[:, None], weights[:, :E], weights[:, E:])
    # Not by matrix products, whose rounding depends on how many samples there are.
    of_before, of_after = (
        np.einsum('nj,kj->nk', high, table) for table in (from_before, from_after)
    )
    of_after += np.where(is_stiff[:, None], 0.0, weights[:, :E])
    powers = np.vander(steps, E + 1, increasing=True)
    drive = ((of_before * before + of_after * after) * powers[:, :E]).sum(axis=-1)
    drive *= steps / damping / np.where(is_stiff, powers[:, E], 1.0)
    return is_stiff, np.exp(-z), drive


def _series(
    stiffness: Array,
    damping: float | Array,
    rest: Array,
    known: Array,
    is_stiff: NDArray[np.bool_],
    ends: Array,
) -> Array:
    """Series (N, E+1) from x, or x^(E) where it is stiff; what is known takes rounding out."""
    N, E = rest.shape
    up, down = np.empty((2, N, E + 1))
    up[:, 0] = down[:, E] = ends
    if not is_stiff.all():
        for m in range(E):
            up[:, m + 1] = (rest[:, m] + stiffness * (known[:, m] - up[:, m])) / damping
    if is_stiff.any():
        for m in reversed(range(E)):
            down[:, m] = known[:, m] + (rest[:, m] - damping * down[:, m + 1]) / stiffness
    series: Array = np.where(is_stiff[:, None], down, up)
    return series


def _weights(z: Array, count: int) -> Array:
    """Weights (-1)^j w_j(z) of shape (N, count): w_j(z) = P(j + 1, z) / z^(j+1)."""
    from scipy.special import gammainc

    z = np.maximum(z, _SMALLEST)
    signed = np.vander(-z, count + 1, increasing=True)[:, 1:]
    powers = np.abs(signed)
    # Incomplete gamma functions: P(a, z) = P(a + 1, z) + e^-z z^a / a!, nothing is negative.
    terms = np.exp(-z)[:, None] * np.minimum(powers, _LARGEST) / _factorials(count)
    terms[:, -1] += gammainc(count + 1, z)
    weights: Array = np.cumsum(terms[:, ::-1], axis=-1)[:, ::-1] / -signed
    return weights


@lru_cache(maxsize=16)
def _factorials(count: int) -> Array:
    return np.array([float(factorial(j)) for j in range(1, count + 1)])


def _taylor(before: Array, after: Array) -> Array:
    """Find the derivatives (N, 2 E) at the end of the polynomials over steps of length one."""
    from_before, from_after = _hermite(after.shape[-1])
    return np.concatenate((after, before @ from_before + after @ from_after), axis=-1)


@lru_cache(maxsize=16)
def _hermite(E: int) -> tuple[Array, Array]:
    """Matrices from the E lowest derivatives at both ends to the E highest at the end."""
    back = _shift(2 * E, -1.0)
    high = np.asarray(np.linalg.inv(back[E:, :E]), dtype=np.float64)
    return high, -back[:E, :E] @ high


@lru_cache(maxsize=64)
def _shift(count: int, time: float) -> Array:
    """Matrix that moves the derivatives of polynomials (..., count) to another time."""
    powers = np.array([time**k / factorial(k) for k in range(count)])
    i, j = np.ogrid[:count, :count]
    return np.tril(powers[np.abs(i - j)])


def _static_guess(spring: Spring, effort: Array) -> Array:
    """Series (..., E+1) of the deflection without damping; the last entry is zero."""
    reachable = effort.copy()
    reachable[..., 0] = np.clip(effort[..., 0], *spring.torque_range)
    series = np.zeros((*effort.shape[:-1], effort.shape[-1] + 1))
    series[..., :-1] = spring.deflection_series(reachable)
    return series


def _extended(spring: Spring, deflection: Array, order: int) -> Array:
    """Law and derivatives, continued by straight lines outside of the range.

    Iterations may leave the range, where a law need not increase; solutions that do are refused.
    """
    lower, upper = spring.range
    inside = np.clip(deflection, lower, upper)
    derivatives = spring.derivatives(inside, max(order, 1))
    outside = np.asarray(deflection != inside)
    if outside.any():
        beyond = np.asarray(deflection - inside)[outside]
        derivatives[outside, 0] += derivatives[outside, 1] * beyond
        derivatives[outside, 2:] = 0.0
    return derivatives
