"""Motion of class C4 through waypoints, as inverse dynamics with two derivatives needs it.

It is the spline of degree 9 in which a knot stands as often as values are given there. Of all
motions that meet these it has the least integral of the squared fifth derivative: the natural
spline (de Boor and Lynch, "On splines and their minimum properties", J. Math. Mech. 15(6), 1966).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import checked_number, finite_array
from hodyn_ros.display import shown
from hodyn_ros.errors import TrajectoryError
from hodyn_ros.names import MOTION_NAMES
from hodyn_ros.trajectory.motion import (
    DEGREE,
    PiecewiseMotion,
    hermite,
    taylor_weights,
)
from hodyn_ros.trajectory.waypoints import (
    STANDSTILL as STANDSTILL,
)
from hodyn_ros.trajectory.waypoints import (
    checked_positions,
    checked_rows,
    checked_times,
    standing,
)
from hodyn_ros.typing import Array, Flags

ORDER = (DEGREE + 1) // 2
"""Derivatives of a state, the zeroth included: position to snap."""

QUANTITIES = MOTION_NAMES
"""Names of the derivatives of a state."""

# Integral over [0, 1] of the polynomial of degree 7 with the k-th derivative 1 at 0 and the other
# first four derivatives, the zeroth included, zero at 0 and at 1.
_STOPPING = np.array([1.0 / 2.0, 3.0 / 28.0, 1.0 / 84.0, 1.0 / 1680.0])

# Difference in the middle of a segment, relative to the size of the motion there, that is more
# than rounding.
_LARGEST_GAP = 1e-6


@shown
@dataclass(frozen=True, eq=False)
class MotionSpline(PiecewiseMotion):
    """Motion of class C4 through waypoints; immutable. Made by `fit_spline`.

    Examples
    --------
    >>> from hodyn_ros.trajectory import fit_spline
    >>> spline = fit_spline([0.0, 1.0, 2.0], [[0.0], [1.0], [0.5]])
    >>> spline([0.0, 0.7]).shape
    (2, 5, 1)
    """

    states: Array
    """Position to snap at the waypoints, given and supplied, shape (N, 5, n); `[:, k]` is the k-th
    time derivative [rad/s^k] or [m/s^k]."""
    given: Flags
    """Which of the states are given by the waypoints or by `start` and `end`, shape (N, 5). All
    others are supplied: by the smoothness, or by rest at the ends of the motion."""


def fit_spline(
    times: ArrayLike,
    positions: ArrayLike,
    velocities: ArrayLike | None = None,
    accelerations: ArrayLike | None = None,
    start: ArrayLike | None = None,
    end: ArrayLike | None = None,
) -> MotionSpline:
    """Smoothest motion of class C4 through waypoints.

    The motion meets everything that is given, and stands still between equal waypoints. What is
    left is chosen such that the integral of the squared fifth derivative becomes least.

    Parameters
    ----------
    times : array-like, shape (N,)
        Strictly increasing, N >= 2 [s].
    positions : array-like, shape (N, n)
        [rad] or [m]
    velocities, accelerations : array-like, shape (N, n), optional
        [rad/s] or [m/s] and their rates. A row of NaN is not given; which rows are given may
        differ between the two.
    start, end : array-like, shape (4, n), optional
        Velocity, acceleration, jerk and snap at the first and at the last waypoint. A row of NaN
        is free unless `velocities` or `accelerations` give it. Without `start`, the motion starts
        out of standstill: all that is not given at the first waypoint is zero. Only if a velocity
        or acceleration other than zero is given there, the remaining derivatives are free. The
        same holds for `end`.

    Returns
    -------
    MotionSpline
        With all N waypoints as its knots.

    Raises
    ------
    TrajectoryError
        If shapes do not fit, values are not finite, times do not increase strictly, a boundary
        condition contradicts a waypoint, or the durations are too different or too short for the
        derivatives to be computed.

    Notes
    -----
    If all that is given leaves more than one smoothest motion (fewer than five values, as with a
    velocity at both of only two waypoints), it is the polynomial of the lowest degree.

    Neighbouring waypoints at which all joints have the same positions, but for rounding, are a
    standstill: velocity to snap are zero there, unless a velocity, an acceleration or a boundary
    condition other than zero is given. Two such waypoints (not three or more, or with velocities
    of zero) are none if they are samples around a place where the motion turns back: where the
    mean velocities of the two segments on either side lead to zero between them.

    Through positions at equal distances in time the spline leaves their range by about a quarter
    of it, by several times where durations differ by a factor of 10.
    """
    times = checked_times(times, fewest=2)
    positions = checked_positions(positions, len(times))
    values, given, fixed = _states_given(positions, velocities, accelerations, start, end)
    fixed[standing(times, values, given)] = True
    # Fewer than five values: zeros at the first waypoint leave the lowest degree.
    for k in (4, 3, 2):
        fixed[0, k] |= fixed.sum() < ORDER
    with np.errstate(all='ignore'):
        states, expansions = _smoothest(times - times[0], values, fixed)
    spline = MotionSpline(times, expansions, ORDER - 1, states, given)
    _check_middles(spline)
    return spline


def _states_given(
    positions: Array,
    velocities: ArrayLike | None,
    accelerations: ArrayLike | None,
    start: ArrayLike | None,
    end: ArrayLike | None,
) -> tuple[Array, Flags, Flags]:
    """What is given at the waypoints (N, 5, n), zero elsewhere, and where it is (N, 5).

    Behind that is what the smoothness does not choose (N, 5): rest at the ends, too.
    """
    values = np.zeros((len(positions), ORDER, positions.shape[1]))
    given = np.zeros((len(positions), ORDER), dtype=np.bool_)
    values[:, 0], given[:, 0] = positions, True
    for k, rows, name in (
        (1, velocities, 'velocities'),
        (2, accelerations, 'accelerations'),
    ):
        rows, given[:, k] = checked_rows(rows, name, positions.shape)
        values[given[:, k], k] = rows[given[:, k]]
    fixed = given.copy()
    for index, boundary, name in ((0, start, 'start'), (-1, end, 'end')):
        state, known = values[index, 1:], given[index, 1:]
        if boundary is None:
            fixed[index] |= np.all(np.abs(state) <= STANDSTILL)
            continue
        rows, asked = checked_rows(boundary, name, state.shape)
        twice = np.flatnonzero(asked & known & np.any(rows != state, axis=1))
        if len(twice):
            k = twice[0]
            raise TrajectoryError(
                f'{name} asks for the {QUANTITIES[k + 1]} {rows[k].tolist()}, but the waypoint '
                f'there has {state[k].tolist()}; give it once, or the same values twice.'
            )
        state[asked] = rows[asked]
        fixed[index, 1:] |= asked
        known |= asked
    return values, given, fixed


def _smoothest(times: Array, values: Array, fixed: Flags) -> tuple[Array, Array]:
    """States (N, 5, n) and expansions of the natural spline through values that are fixed.

    Segments between two states that are fixed as a whole need no spline.
    """
    from scipy.interpolate import BSpline

    h, k = np.diff(times), np.arange(float(DEGREE + 1))
    whole = np.all(fixed[:-1] & fixed[1:], axis=1)
    if whole.all():
        return values, hermite(h, values[:-1], values[1:])
    spline = BSpline(*_coefficients(times, values, fixed), DEGREE)
    states = np.stack([spline(times, order) for order in range(ORDER)], axis=1)
    states[fixed] = values[fixed]
    middles = np.stack(
        [spline(times[:-1] + h / 2.0, order) for order in range(DEGREE + 1)], 1
    )
    expansions = np.stack(
        [taylor_weights(half, len(k), len(k)) @ middles for half in (-h / 2.0, h / 2.0)],
        axis=1,
    )
    expansions[:, 0, :ORDER], expansions[:, 1, :ORDER] = states[:-1], states[1:]
    expansions[whole] = hermite(h[whole], states[:-1][whole], states[1:][whole])
    return states, expansions


def _coefficients(times: Array, values: Array, fixed: Flags) -> tuple[Array, Array]:
    """Knots and B-spline coefficients (M, n) of the natural spline of degree 9.

    A knot stands as often as derivatives up to the highest fixed one are counted; of those that
    are not fixed among them, the k-th, the (9 - k)-th does not jump. The spline goes on beyond
    both ends, where the derivatives 5 to 9 are zero: at the ends themselves, where knots may be
    close together, these conditions would cost five digits and more.
    """
    from scipy import sparse
    from scipy.interpolate import BSpline
    from scipy.sparse.linalg import splu

    orders, natural = np.arange(ORDER), np.arange(ORDER, DEGREE + 1)
    counts = (fixed * (orders + 1)).max(axis=1)
    reach = min(ORDER, len(times) - 1)
    outer = 2.0 * times[[0, -1]] - times[[reach, -1 - reach]]
    knots = np.repeat(
        np.append(np.insert(times, 0, outer[0]), outer[1]),
        [DEGREE + 1, *counts, DEGREE + 1],
    )
    point, order = np.nonzero(orders < counts[:, None])
    met = fixed[point, order]
    at = np.concatenate(
        [np.repeat(outer[0], ORDER), times[point], np.repeat(outer[1], ORDER)]
    )
    wanted = np.concatenate([natural, np.where(met, order, DEGREE - order), natural])
    jumps = np.pad(~met, ORDER)
    right = np.pad(values[point, order] * met[:, None], ((ORDER, ORDER), (0, 0)))
    # Coefficients of the d-th derivative, a spline of degree 9 - d.
    derivative, rows = sparse.identity(len(at), format='csr'), []
    for d in range(DEGREE + 1):
        here = np.flatnonzero(wanted == d)
        inner, degree = knots[d : len(knots) - d], DEGREE - d
        if len(here):  # SciPy makes no empty matrices
            row = BSpline.design_matrix(at[here], inner, degree)
            if jumps[here].any():
                before = np.where(jumps[here], np.nextafter(at[here], -np.inf), at[here])
                jump = sparse.diags(jumps[here].astype(np.float64))
                row = row - jump @ BSpline.design_matrix(before, inner, degree)
            rows.append(row @ derivative)
        span = inner[degree + 1 : -1] - inner[1 : -degree - 1]
        factor = np.where(span > 0.0, degree / span, 0.0)
        shape = (len(factor), len(factor) + 1)
        derivative = sparse.diags([-factor, factor], [0, 1], shape=shape) @ derivative
    matrix = sparse.vstack(rows, format='csr')[wanted.argsort(kind='stable').argsort()]
    scale = sparse.diags(1.0 / abs(matrix).max(axis=1).toarray().ravel())
    matrix, right = (scale @ matrix).tocsc(), scale @ right
    try:
        factors = splu(matrix, permc_spec='NATURAL')
    except RuntimeError:  # singular
        return knots, np.full_like(right, np.nan)
    coefficients = factors.solve(right)
    coefficients += factors.solve(right - matrix @ coefficients)
    return knots, coefficients


def stop_motion(state: ArrayLike, duration: float, start_time: float = 0.0) -> MotionSpline:
    """Motion from a state to rest, all derivatives up to the snap continuous.

    The velocity is the polynomial of degree 7 that starts with the given velocity, acceleration,
    jerk and snap and ends with zeros. Where the motion ends follows from that.

    Parameters
    ----------
    state : array-like, shape (5, n)
        Position to snap at the start [rad/s^k] or [m/s^k].
    duration : float
        Time until the joints rest [s].
    start_time : float
        [s]

    Returns
    -------
    MotionSpline
        Of degree 8, from `start_time` to `start_time + duration`.

    Raises
    ------
    TrajectoryError
        If the state has another shape or is not finite, a time is no number, or the duration is
        not positive or too short for the derivatives to be computed.
    """
    values = finite_array('state', state, TrajectoryError)
    if values.ndim != 2 or len(values) != ORDER or not values.shape[1]:
        raise TrajectoryError(
            f'state has shape {values.shape}, expected (5, n): position, velocity, acceleration, '
            'jerk and snap of the joints.'
        )
    start_time = checked_number('start_time', start_time, TrajectoryError, unit='s')
    duration = checked_number('duration', duration, TrajectoryError, above=0.0, unit='s')
    times = np.array([start_time, start_time + duration])
    end = np.zeros_like(values)
    end[0] = values[0] + (_STOPPING * duration ** np.arange(1.0, ORDER)) @ values[1:]
    states = np.stack([values, end])
    with np.errstate(all='ignore'):
        expansions = hermite(np.diff(times), states[:1], states[1:])
    motion = MotionSpline(
        times, expansions, ORDER - 1, states, np.ones((2, ORDER), np.bool_)
    )
    _check_middles(motion)
    return motion


def _check_middles(spline: MotionSpline) -> None:
    """Refuse a spline that overflows, or whose segments do not fit together.

    Every segment is evaluated from both of its ends: both must come to the same in its middle.
    """
    h = np.diff(spline.times)
    with np.errstate(all='ignore'):
        powers = h[:, None, None] ** np.arange(DEGREE + 1.0)[:, None]
        first, last = (
            taylor_weights(half, ORDER, DEGREE + 1) @ spline.expansions[:, side]
            for side, half in enumerate((h / 2.0, -h / 2.0))
        )
        size = (np.abs(spline.expansions).max(axis=1) * powers).max(axis=2)
        gap = (np.abs(first - last) * powers[:, :ORDER]).max(axis=(1, 2))
        # The position itself says nothing about the size of the motion, but it is rounded.
        largest = size[:, 1:].max(axis=1) + 1e-6 * size[:, 0]
        fits = np.isfinite(spline.expansions).all() and np.all(
            gap <= _LARGEST_GAP * largest
        )
    if not fits:
        raise TrajectoryError(
            'The motion through these waypoints cannot be computed in double precision: the times '
            f'between waypoints are from {float(h.min())!r} s to {float(h.max())!r} s, the '
            f'positions up to {float(np.abs(spline.states[:, 0]).max())!r}. Check the units and '
            'merge waypoints that are too close.'
        )
