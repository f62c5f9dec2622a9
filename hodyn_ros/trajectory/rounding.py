"""Waypoints that are too dense for the digits of their numbers.

Polynomials of degree 9 through waypoints a time h apart divide a rounding delta of the positions
by h^4: the snap between them is wrong by some hundred delta / h^4, at 1 kHz and six decimals by
1e8 rad/s^4. The motion through fewer waypoints that meets all others to within their rounding is
then the motion that was asked for. `motion_samples.hpp` has the same criterion.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from hodyn_ros.errors import TrajectoryError
from hodyn_ros.trajectory.motion import DEGREE, taylor_weights
from hodyn_ros.trajectory.spline import MotionSpline, fit_spline
from hodyn_ros.typing import Array, Flags, Indices

# Largest snap that the rounding of positions makes in polynomials of degree 9, times h^4 / delta:
# of positions alone, with velocities, and with accelerations too.
_GAINS = (450.0, 450.0, 800.0)
# Decimals beyond which numbers are taken for exact; below the others they are, unless there are
# many of them: somebody has chosen them so.
_MOST_DECIMALS = 12
_FEWEST_DECIMALS = 3
_MANY = 30
# Rounding of exact numbers and of what is computed with them, relative to the largest of a joint.
_EXACT = 4096.0 * float(np.finfo(np.float64).eps)
_UNIT = float(np.finfo(np.float64).eps)
_TURN = 2.0 * np.pi
_SINGLE = 0.5 * float(np.finfo(np.float32).eps)
# Dropped waypoints are met to so many roundings: their own, and that of the ones that are kept.
_ROUNDINGS = 4.0
# Messages have a resolution of a nanosecond, and a place moves by its velocity times that [s].
_RESOLUTION = 1e-9
# Waypoints are never missed by more than this [rad] or [m], which three decimals need.
_LARGEST_MISS = _ROUNDINGS * 0.5e-3
# Waypoints that are left out between two at first. An acceleration that jumps makes the square of
# that more snap through all of them than through these; rounding makes the fourth power more.
_STRIDE = 8
_LEAST_STRIDE = 4
# Snap that is never too much, to be smoothed and to be refused [rad/s^4] or [m/s^4]. The torque
# of a motor behind a usual spring changes by some 5e-5 N m for each unit.
_SLIGHT = 1.0
_HARMFUL = 1e4
# Parts of a segment at which the snap is looked at.
_LOOKS = (0.2, 0.5, 0.8)
# Up to so many times what rounding makes is worth a try with fewer waypoints.
_DOUBT = 4.0
# A snap that rounding explains is rounding if it is up to so many times the median of a joint.
_SPREAD = 300.0
# Waypoints are left out if the motion through all of them has more than so many times the snap.
_LESS = 4.0


class Fitted(NamedTuple):
    """Motion through waypoints, or through those of them that say more than their rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros.trajectory import fit_waypoints
    >>> times = np.array([0.0, 1.0, 2.0])
    >>> fitted = fit_waypoints(times, np.array([[0.0], [1.0], [0.5]]))
    >>> fitted.kept, fitted.remarks, fitted.motion.duration
    (array([0, 1, 2]), (), 2.0)
    """

    motion: MotionSpline
    kept: Indices
    """Indices of the waypoints that are its knots."""
    remarks: tuple[str, ...]
    """One sentence if waypoints are left out."""


def fit_waypoints(
    times: Array,
    positions: Array,
    velocities: Array | None = None,
    accelerations: Array | None = None,
    *,
    start: Array | None = None,
    end: Array | None = None,
    joint_names: Sequence[str] | None = None,
    advice: str = '',
) -> Fitted:
    """Smoothest motion of class C4 through waypoints whose numbers may be rounded.

    That of `fit_spline`, unless it would follow the rounding of the numbers in place of the
    motion: then waypoints are left out that the motion through the others meets to within their
    rounding (four times half a unit of the last digit, at most 2 mm or mrad).

    Parameters
    ----------
    times, positions, velocities, accelerations, start, end
        See `fit_spline`.
    joint_names : sequence of str, optional
        Of the n columns, for messages.
    advice : str
        Sentence on what else helps, for the message on waypoints that are too dense.

    Returns
    -------
    Fitted

    Raises
    ------
    TrajectoryError
        If waypoints are too dense for their digits, of which they have less than three decimals;
        see also `fit_spline`.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros.trajectory import fit_spline
    >>> from hodyn_ros.trajectory.rounding import fit_waypoints
    >>> times = np.linspace(0.0, 2.0, 2001)
    >>> positions = fit_spline([0.0, 2.0], [[0.0], [0.1]])(times, 0)[:, 0].round(6)
    >>> fitted = fit_waypoints(times, positions)
    >>> len(fitted.kept) < 100, bool(abs(fitted.motion(times, 0)[:, 0] - positions).max() < 2e-6)
    (True, True)
    """
    rows = (times, positions, velocities, accelerations)

    def through(kept: Indices) -> MotionSpline:
        t, q, v, a = (None if row is None else np.asarray(row)[kept] for row in rows)
        assert t is not None and q is not None
        return fit_spline(t, q, v, a, start=start, end=end)

    every = fit_spline(*rows, start, end)
    whole = Fitted(every, np.arange(len(every.times)), ())
    delta, snap = rounding(every.states[1:, 0]), _snap(every)
    if _explained(whole, snap, _DOUBT * delta).any() or _is_wild(
        every, snap, delta, through
    ):
        fewer, spares = _fewest(every, snap, delta, through)
        of_fewer = _snap(fewer.motion)
        is_lost = _explained(whole, snap, delta).any()
        if spares or (is_lost and not _explained(fewer, of_fewer, delta).any()):
            whole, snap = fewer, of_fewer
    # Those of the ends alone hold where the motion is at rest.
    has_derivatives = any(
        row is not None and np.isfinite(np.asarray(row, dtype=np.float64)[1:-1]).any()
        for row in rows[2:]
    )
    ways = ['more digits', 'fewer waypoints', *['positions alone'] * has_derivatives]
    advice = f'Send {", ".join(ways[:-1])} or {ways[-1]}. {advice}'.rstrip()
    _refuse(whole, snap, delta, joint_names, advice)
    return whole


def rounding(values: Array) -> Array:
    """Largest rounding error of numbers, by their digits.

    Numbers that have a fixed count of decimals, or of digits, in rad or in degrees, or that fit
    into single precision, are taken for rounded to that, all others for exact ones.

    Parameters
    ----------
    values : ndarray, shape (N, n)

    Returns
    -------
    ndarray, shape (n,)
        Half a unit of the last digit of the largest numbers of each column.
    """
    largest: Array = np.abs(values).max(axis=0, initial=0.0)
    found: Array = _EXACT * largest
    many = np.zeros(len(largest), dtype=np.bool_)
    for j in range(values.shape[1]):
        many[j] = len(np.unique(np.abs(values[:, j]))) >= _MANY
        fewest = 0 if many[j] else _FEWEST_DECIMALS
        for shown in _as_encoders_show(values[:, j]):
            column = np.unique(np.abs(shown))
            if np.array_equal(column, column.astype(np.float32)):
                found[j] = max(found[j], _SINGLE * largest[j])
            # Numbers with a fixed count of digits have the fewest decimals where they are largest.
            top = column[-max(10, len(column) // 10) :]
            for unit in (1.0, np.rad2deg(1.0)):
                decimals = _decimals(unit * top)
                if decimals is not None and decimals >= fewest:
                    found[j] = max(found[j], 0.5 * 10.0**-decimals / unit)
    # A joint that hardly moves does not say its digits, but the others do.
    found[~many] = np.maximum(found[~many], found[many].max(initial=0.0))
    return found


def _as_encoders_show(values: Array) -> tuple[Array, ...]:
    """Values as they are, and without whole turns, which leave a joint no fixed decimals."""
    if np.abs(values).max(initial=0.0) <= np.pi:
        return (values,)
    turns = values / _TURN
    within = (values - _TURN * whole for whole in (np.rint(turns), np.floor(turns)))
    return values, *(each.round(_MOST_DECIMALS) for each in within)


def _decimals(values: Array) -> int | None:
    """Fewest decimals with which values can be written; None: more than `_MOST_DECIMALS`."""
    for decimals in range(_MOST_DECIMALS + 1):
        scaled = 10.0**decimals * values
        if np.all(np.abs(scaled - np.rint(scaled)) <= 4.0 * _UNIT * scaled):
            return decimals
    return None


def _snap(motion: MotionSpline) -> Array:
    """Largest snap of each segment at its ends and at `_LOOKS` in between, shape (N - 1, n)."""
    largest: Array = np.abs(motion.expansions[:, :, 4]).max(axis=1)
    for part in _LOOKS:
        weights = taylor_weights(part * np.diff(motion.times), 1, DEGREE - 3)
        snap = (weights @ motion.expansions[:, 0, 4:])[:, 0]
        np.maximum(largest, np.abs(snap), out=largest)
    return largest


def _noise(motion: MotionSpline, delta: Array) -> Array:
    """Snap that rounding makes between waypoints, shape (N - 1, n)."""
    gain = _GAINS[sum(bool(motion.given[1:-1, k].any()) for k in (1, 2))]
    noise: Array = gain * delta / np.diff(motion.times)[:, None] ** 4
    return noise


def _is_wild(
    motion: MotionSpline,
    snap: Array,
    delta: Array,
    through: Callable[[Indices], MotionSpline],
) -> bool:
    """Whether the motion has more snap than jumps of an acceleration, by that through fewer."""
    last = len(motion.times) - 1
    stride = min(_STRIDE, last // 2)
    slight = (_noise(motion, delta) <= _SLIGHT) | (snap <= _SLIGHT)
    if stride < _LEAST_STRIDE or slight.all():
        return False
    few = np.linspace(0, last, round(last / stride) + 1).astype(np.intp)
    usual = float(stride**2) * _snap(through(few)).max(axis=0)
    return bool(np.any(snap.max(axis=0) > np.maximum(usual, _SLIGHT)))


def _fewest(
    whole: MotionSpline,
    snap: Array,
    delta: Array,
    through: Callable[[Indices], MotionSpline],
) -> tuple[Fitted, bool]:
    """Motion through few waypoints that meets all of them to within their rounding.

    Segments in which a waypoint is missed are halved.

    Parameters
    ----------
    whole : MotionSpline
        Through all N waypoints.
    snap : ndarray, shape (N - 1, n)
        Of its segments.
    delta : ndarray, shape (n,)
        Rounding of the positions.
    through : callable
        Makes a motion through some waypoints.

    Returns
    -------
    fewer : Fitted
    spares : bool
        Whether it has far less snap than the whole one where waypoints are left out.
    """
    times, positions = whole.times, whole.states[:, 0]
    durations = np.diff(times)
    fastest = np.abs(np.diff(positions, axis=0) / durations[:, None]).max(axis=0)
    miss = np.minimum(_ROUNDINGS * delta + _RESOLUTION * fastest, _LARGEST_MISS)
    kept: Indices = np.array([0, len(times) - 1], dtype=np.intp)
    while True:
        motion = through(kept)
        missed = np.any(np.abs(motion(times, 0)[:, 0] - positions) > miss, axis=1)
        segments = np.unique(np.searchsorted(kept, np.flatnonzero(missed)) - 1)
        if not len(segments):
            break
        kept = np.union1d(kept, (kept[segments] + kept[segments + 1]) // 2)
    steps = np.diff(kept)
    left_out = np.repeat(steps >= _LEAST_STRIDE, steps)[:, None]
    before = np.where(left_out, snap, 0.0).max(axis=0)
    excess = before / np.maximum(_LESS * _snap(motion).max(axis=0), _SLIGHT)
    j = int(np.argmax(excess))
    off = float(np.abs(motion(times, 0)[:, 0] - positions).max())
    remark = (
        f'Of {len(times)} waypoints, {float(durations.min()):.3g} s apart, {len(kept)} are used: '
        f'the numbers are rounded to about {2.0 * delta[j]:.1g}, which the snap would follow. All '
        f'others are met to within their rounding (by {off:.1g} rad or m).'
    )
    return Fitted(motion, kept, (remark,)), bool(excess[j] > 1.0)


def _explained(fitted: Fitted, snap: Array, delta: Array) -> Flags:
    """Joints whose largest snap is harmful and no more than what rounding makes, shape (n,).

    What a motion asks for at few of the places at which it moves, as where its acceleration
    jumps, is no rounding, nor is what waypoints confirm that are left out, or that are kept where
    a miss of all their rounding would let them be left out.
    """
    noise = _noise(fitted.motion, delta)
    noise[np.diff(fitted.kept) >= _LEAST_STRIDE] = 0.0
    if len(fitted.kept) <= fitted.kept[-1]:
        noise[:, _ROUNDINGS * delta <= _LARGEST_MISS] = 0.0
    first, every = snap.argmax(axis=0), np.arange(snap.shape[1])
    largest = snap[first, every]
    found: Flags = (largest > _HARMFUL) & (largest <= noise[first, every])
    for j in np.flatnonzero(found):
        moves = np.diff(fitted.motion.states[:, 0, j]) != 0.0
        usual = np.median(
            snap[(noise[:, j] > _HARMFUL) & (moves | (snap[:, j] == largest[j])), j]
        )
        found[j] = largest[j] <= _SPREAD * usual
    return found


def _refuse(
    fitted: Fitted,
    snap: Array,
    delta: Array,
    joint_names: Sequence[str] | None,
    advice: str,
) -> None:
    """Refuse a motion whose largest snap may be rounding alone."""
    times = fitted.motion.times
    largest = np.where(_explained(fitted, snap, delta), snap.max(axis=0), 0.0)
    if not largest.any():
        return
    j = int(largest.argmax())
    i = int(snap[:, j].argmax())
    joint = f'column {j}' if joint_names is None else joint_names[j]
    raise TrajectoryError(
        f'Waypoints are too dense for their digits: between {times[i]:.6g} s and '
        f'{times[i + 1]:.6g} s the snap of {joint} is {snap[i, j]:.2g} rad/s^4 or m/s^4, which '
        f'numbers that are rounded to about {2.0 * delta[j]:.1g} make by themselves. {advice}'
    )
