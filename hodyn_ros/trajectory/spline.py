"""Motion of class C4 through waypoints, as inverse dynamics with two derivatives needs it.

Every segment is the polynomial of degree 9 that meets position, velocity, acceleration, jerk and
snap at both of its ends. Of these, what the waypoints leave open is chosen such that the integral
of the squared fifth derivative over the whole motion becomes least: the natural spline of degree 9
(de Boor and Lynch, "On splines and their minimum properties", J. Math. Mech. 15(6), 1966).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, factorial, perm

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import checked_number, finite_array
from hodyn_ros.display import shown
from hodyn_ros.errors import TrajectoryError
from hodyn_ros.names import MOTION_NAMES
from hodyn_ros.trajectory.motion import (
    BLOCK,
    DEGREE,
    PiecewiseMotion,
    hermite,
    taylor_weights,
)
from hodyn_ros.trajectory.waypoints import (
    STANDSTILL,
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

# The fifth derivative of a segment is sum_l e_l L_l(x) with the Legendre polynomials L_l shifted
# to x = (t - t_i) / h in [0, 1]; they have L_l(1) = 1 and L_l(0) = (-1)^l.

# m-th derivative of L_l at x = 1; at x = 0 it has the factor (-1)^(l + m).
_LEGENDRE_AT_END = np.array(
    [[float(comb(k, m) * perm(k + m, m)) for k in range(ORDER)] for m in range(ORDER)]
)
_LEGENDRE_AT_START = _LEGENDRE_AT_END * (-1.0) ** np.add.outer(
    np.arange(ORDER), np.arange(ORDER)
)

# Integral of L_l(x) (1 - x)^p / p! over [0, 1] with p = 4 - k: what e_l / h^(k - 5) adds to the
# k-th derivative at the end of a segment.
_GAIN = np.array(
    [
        [
            (-1) ** l * factorial(p) / (factorial(p - l) * factorial(p + l + 1))
            if l <= p
            else 0.0
            for l in range(ORDER)  # noqa: E741
        ]
        for p in reversed(range(ORDER))
    ]
)

# Unknowns per waypoint: the state there and the Legendre coefficients of the segment behind it.
_UNKNOWNS = 2 * ORDER
# Every equation reaches this far to either side of the diagonal.
_BELOW, _ABOVE = ORDER, 2 * ORDER - 1
_WIDTH = _BELOW + 1 + _ABOVE
# Waypoints that are solved for together: their matrix fits into the cache. Those beyond so many
# more on either side have no influence.
_WINDOW, _REACH = 1024, 96
# Segments from which on, and ratio of their durations up to which, B-splines are quicker and have
# all digits.
_LONG, _ALIKE = 1000, 4.0

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

    given: Flags
    """Which of the states are given by the waypoints or by `start` and `end`, shape (N, 5). All
    others are supplied: by the smoothness, or by rest at the ends of the motion."""

    @property
    def states(self) -> Array:
        """Position to snap at the waypoints, given and supplied.

        Returns
        -------
        ndarray, shape (N, 5, n)
            `[:, k]` is the k-th time derivative [rad/s^k] or [m/s^k].
        """
        return np.concatenate(
            [self.expansions[:, 0, :ORDER], self.expansions[-1:, 1, :ORDER]]
        )


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

    Examples
    --------
    From rest to rest, passing the middle without a stop:

    >>> from hodyn_ros.trajectory import fit_spline
    >>> spline = fit_spline([0.0, 1.0, 2.0], [[0.0], [0.5], [1.0]])
    >>> spline([0.0, 1.0, 2.0], highest_derivative=1)[..., 0].round(3) + 0.0
    array([[0.  , 0.  ],
           [0.5 , 1.23],
           [1.  , 0.  ]])
    """
    times = checked_times(times, fewest=2)
    positions = checked_positions(positions, len(times))
    values, given, fixed = _states_given(positions, velocities, accelerations, start, end)
    fixed[standing(times, values, given)] = True
    fixed |= _lowest_degree(times, fixed)
    spline = MotionSpline(times, _smoothest(times, values, fixed), ORDER - 1, given)
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

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros.trajectory import stop_motion
    >>> state = np.array([[0.3], [1.0], [0.0], [0.0], [0.0]])
    >>> stop = stop_motion(state, duration=0.5)
    >>> stop(0.5, highest_derivative=2).round(3) + 0.0
    array([[0.55],
           [0.  ],
           [0.  ]])
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
    motion = MotionSpline(times, expansions, ORDER - 1, np.ones((2, ORDER), np.bool_))
    _check_middles(motion)
    return motion


def _check_middles(spline: MotionSpline) -> None:
    """Refuse a spline that overflows, or whose segments do not fit together.

    Every segment is evaluated from both of its ends: both must come to the same in its middle.
    """
    durations = np.diff(spline.times)
    for first in range(0, len(durations), BLOCK):
        expansions = spline.expansions[first : first + BLOCK]
        h = durations[first : first + BLOCK]
        with np.errstate(all='ignore'):
            powers = h[:, None, None] ** np.arange(DEGREE + 1.0)[:, None]
            before, behind = (
                taylor_weights(half, ORDER, DEGREE + 1) @ expansions[:, side]
                for side, half in enumerate((h / 2.0, -h / 2.0))
            )
            size = (np.abs(expansions).max(axis=1) * powers).max(axis=2)
            gap = (np.abs(before - behind) * powers[:, :ORDER]).max(axis=(1, 2))
            # The position itself says nothing about the size of the motion, but it is rounded.
            largest = size[:, 1:].max(axis=1) + 1e-6 * size[:, 0]
        if not np.isfinite(expansions).all() or not (gap <= _LARGEST_GAP * largest).all():
            raise TrajectoryError(
                'The motion through these waypoints cannot be computed in double precision: the '
                f'times between waypoints are from {float(durations.min())!r} s to '
                f'{float(durations.max())!r} s, the positions up to '
                f'{float(np.abs(spline.states[:, 0]).max())!r}. Check the units and merge '
                'waypoints that are too close.'
            )


def _lowest_degree(times: Array, fixed: Flags) -> Flags:
    """Choose what to make zero at the first waypoint where the smoothest motion is not unique.

    Smoothest motions differ by polynomials of degree 4 that vanish in all that is given. Zeros of
    the snap, then of the jerk and of the acceleration, leave the one of the lowest degree.
    """
    zeros = np.zeros_like(fixed)
    # A waypoint with its derivatives given up to some order counts as often as that in Hermite
    # interpolation, where five values determine a polynomial of degree 4.
    if np.sum(np.minimum.accumulate(fixed, axis=1)) >= ORDER:
        return zeros
    x = (times - times[0]) / (times[-1] - times[0])
    conditions = np.array(
        [
            [perm(j, k) * x[i] ** max(j - k, 0) for j in range(ORDER)]
            for i, k in np.argwhere(fixed).tolist()
        ]
    )
    for k in (4, 3, 2):
        more = np.concatenate([conditions, np.eye(ORDER)[k : k + 1]])
        if np.linalg.matrix_rank(more) > np.linalg.matrix_rank(conditions):
            zeros[0, k], conditions = True, more
    return zeros


def _smoothest(times: Array, values: Array, fixed: Flags) -> Array:
    """Expansions of the smoothest motion (N - 1, 2, 10, n), see `PiecewiseMotion`.

    From times (N,) and values (N, 5, n), zero where they are not `fixed`. A long motion is solved
    in windows that overlap, since the influence of a waypoint falls by about 0.6 from one to the
    next. If two windows did not agree on the state between them, `_check_middles` would find it.
    """
    # A power of two scales without rounding.
    durations = np.diff(times)
    unit = 2.0 ** np.round(np.mean(np.log2(durations)))
    M = len(durations)
    expansions = np.empty((M, 2, 2 * ORDER, values.shape[2]))
    with np.errstate(all='ignore'):
        durations /= unit
        units = unit ** -np.arange(DEGREE + 1.0)[:, None]
        values /= units[:ORDER]
        done, plain = 0, _plain_parts(durations, fixed)
        for beyond, behind in [*plain, (M, M)]:
            for first in range(done, beyond, _WINDOW):
                end = min(first + _WINDOW, beyond)
                start, stop = max(first - _REACH, 0), min(end + _REACH, M)
                knots = slice(start, stop + 1)
                solved = _solved(durations[start:stop], values[knots], fixed[knots])
                expansions[first:end] = solved[first - start : end - start]
                if first:
                    expansions[first - 1, 1, :ORDER] = expansions[first, 0, :ORDER]
            done = behind
        scaled = times / unit
        for first, end in plain:
            _interpolate(scaled, values[:, 0], expansions, first, end)
        expansions *= units
    return expansions


def _plain_parts(durations: Array, fixed: Flags) -> list[tuple[int, int]]:
    """First and last waypoints of long parts amid positions alone, at durations much alike."""
    others = np.flatnonzero(fixed[1:-1, 1:].any(axis=1)) + 1
    ends = [0, *others.tolist(), len(durations)]
    return [
        (first + _REACH, end - _REACH)
        for first, end in zip(ends[:-1], ends[1:])
        if end - first > _LONG
        and durations[first:end].max() <= _ALIKE * durations[first:end].min()
    ]


def _interpolate(
    times: Array, positions: Array, expansions: Array, first: int, end: int
) -> None:
    """Write the expansions of the smoothest motion amid positions alone.

    It is the B-spline of degree 9 with the knots there, a fifth of the work of `_solved`. It
    begins and ends at states that are known outside, so far away that their rounding does not
    matter.
    """
    from scipy.interpolate import make_interp_spline

    start, stop = first - _REACH // 2, end + _REACH // 2
    states = expansions[start, 0, 1:ORDER], expansions[stop - 1, 1, 1:ORDER]
    if not np.isfinite(states).all():  # `_check_middles` refuses it
        expansions[first:end] = np.nan
        return
    sides = [[*enumerate(state, 1)] for state in states]
    whole, part = slice(start, stop + 1), times[first : end + 1]
    spline = make_interp_spline(times[whole], positions[whole], DEGREE, bc_type=sides)
    written = expansions[first:end]
    for k in range(DEGREE):
        known = spline(part, k) if k else positions[first : end + 1]
        written[:, 0, k], written[:, 1, k] = known[:-1], known[1:]
    written[:, :, DEGREE] = (np.diff(known, axis=0) / np.diff(part)[:, None])[:, None]
    written[0, 0, :ORDER] = expansions[first - 1, 1, :ORDER]
    written[-1, 1, :ORDER] = expansions[end, 0, :ORDER]


def _solved(durations: Array, values: Array, fixed: Flags) -> Array:
    """What `_smoothest` returns, of all waypoints at once.

    The states at both ends of a segment differ by what the fifth derivative between them adds
    (Taylor's theorem with its remainder), and the motion is smoothest where, for every free k-th
    derivative, the (9 - k)-th is continuous (at the ends of the motion: zero). Other than the
    normal equations of the free derivatives alone, this system only holds small powers of the
    durations, so waypoints of very different distances do no harm.
    """
    from scipy.linalg import lapack

    matrix, right = _equations(durations, values, fixed)
    size, n = right.shape
    # LAPACK wants columns in one piece, with room for what pivoting fills in. A row of `rows` are
    # the entries of an equation, from the one farthest below the diagonal on.
    room = _BELOW + _WIDTH
    memory = np.zeros((size + _WIDTH) * room)
    rows = np.lib.stride_tricks.as_strided(memory, matrix.shape, (8 * room, 8 * (room - 1)))
    rows[:] = matrix
    first = _BELOW * room - (_BELOW + _WIDTH - 1)
    band = memory[first : first + size * room].reshape(size, room).T
    factors, pivots, singular = lapack.dgbtrf(band, _BELOW, _ABOVE, overwrite_ab=True)
    # With a state behind the last waypoint and what the equations reach beyond both ends.
    padded = np.zeros((_BELOW + size + ORDER + _ABOVE, n), order='F')
    solution = padded[_BELOW : _BELOW + size]
    if singular:
        solution[:] = np.nan
    windows = np.lib.stride_tricks.sliding_window_view(padded, _WIDTH, axis=0)[:size]
    # Iterative refinement brings the error from that of the elimination down to what rounding of
    # the waypoints would cause: five digits and more where durations differ by a factor of 1e4.
    for _ in range(0 if singular else 3):
        residual = right - np.matmul(windows, matrix[:, :, None])[..., 0]
        solution += lapack.dgbtrs(factors, _BELOW, _ABOVE, residual, pivots)[0]
    unknowns = padded[_BELOW:-_ABOVE].reshape(len(values), _UNKNOWNS, n)
    states, legendre = values + unknowns[:, :ORDER], unknowns[:-1, ORDER:]
    powers = durations[:, None, None] ** np.arange(float(ORDER))[:, None]
    expansions = np.empty((len(durations), 2, 2 * ORDER, n))
    sides = (states[:-1], _LEGENDRE_AT_START), (states[1:], _LEGENDRE_AT_END)
    for side, (known, at) in enumerate(sides):
        expansions[:, side, :ORDER] = known
        np.divide(at @ legendre, powers, out=expansions[:, side, ORDER:])
    return expansions


def _equations(durations: Array, values: Array, fixed: Flags) -> tuple[Array, Array]:
    """Equations of `_solved`: entries (M, 15), right-hand sides (M, n).

    The entries are those from the one farthest below the diagonal on; the magnitudes of the
    entries of each equation add up to one.
    """
    N, _, n = values.shape
    free = ~fixed
    before, behind = free[:, ::-1].copy(), free[:, ::-1].copy()
    before[0] = behind[-1] = False
    # powers[i] are those of the duration before the waypoint i.
    powers = np.vander(
        np.concatenate([[1.0], durations, [1.0]]), ORDER + 1, increasing=True
    )
    h = powers[1:]
    matrix = np.zeros((N, _UNKNOWNS, _WIDTH))
    # The same memory by columns: the coefficients of the segment before, the state, the
    # coefficients of the segment behind, the next state. Zeros left of the band are also the end
    # of the row above, and so are written first.
    columns = np.lib.stride_tricks.as_strided(
        matrix, (N, _UNKNOWNS, 4 * ORDER), (8 * matrix[0].size, 8 * (_WIDTH - 1), 8)
    )
    earlier, state, later = (slice(k * ORDER, (k + 1) * ORDER) for k in range(3))
    m = np.arange(ORDER)
    # By what m-th derivative of the fifth one is continuous, that of the free (4 - m)-th.
    scale = before / powers[:-1, :ORDER]
    columns[:, :ORDER, earlier] = scale[..., None] * _LEGENDRE_AT_END
    scale = behind / h[:, :ORDER]
    columns[:, :ORDER, later] = scale[..., None] * -_LEGENDRE_AT_START
    columns[:, m, state.stop - 1 - m] = fixed[:, ::-1]

    taylor = taylor_weights(h[:, 1], ORDER, ORDER)
    columns[:, ORDER:, state] = -taylor * free[:, None]
    columns[:, ORDER:, later] = h[:, :0:-1, None] * -_GAIN
    columns[:-1, ORDER + m, later.stop + m] = free[1:]
    # The difference is exact for values that are close together.
    right = np.zeros((N, _UNKNOWNS, n))
    starts = values[:-1]
    right[:-1, ORDER:] = (taylor[:-1] - np.eye(ORDER)) @ starts - (values[1:] - starts)

    # There is no segment behind the last waypoint.
    equations = matrix.reshape(-1, _WIDTH)[:-ORDER]
    scale = 1.0 / (np.abs(equations) @ np.ones((_WIDTH, 1)))
    return equations * scale, right.reshape(-1, n)[:-ORDER] * scale
