"""Waypoints, motions through them from where the robot is, and what one should know about those.

Where joint_trajectory_controller of ros2_controllers has a rule, it is followed: which waypoints
it accepts (`validate_trajectory_msg`), which have passed, when the motion begins at the present
state, and what joints do that are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from hodyn_ros.checks import check_choice
from hodyn_ros.display import shown
from hodyn_ros.errors import JointNameError, TrajectoryError
from hodyn_ros.names import INTERPOLATIONS, joint_order, listed
from hodyn_ros.trajectory.jtc import (
    JtcMotion,
    jtc_motion,
    segment_degrees,
    upsampled_velocities,
)
from hodyn_ros.trajectory.motion import (
    DEGREE,
    Extremes,
    PiecewiseMotion,
    position_extremes,
    taylor_weights,
)
from hodyn_ros.trajectory.rounding import fit_waypoints
from hodyn_ros.trajectory.spline import ORDER, QUANTITIES, MotionSpline
from hodyn_ros.trajectory.waypoints import STANDSTILL, Immutable, Waypoints, checked_rows
from hodyn_ros.typing import Array

HOLD_DURATION = 1.0
"""How long a motion lasts [s] that only holds the position."""

# Messages have a resolution of a nanosecond; what is closer is the same time [s].
_SAME_TIME = 0.5e-9
# A motion in progress is not led to a waypoint in less than this part of the time from there to
# the next one: where the two do not agree, the spline would swing far out.
_NEAR = 0.1
# Less time does not suffice to lead a motion in progress smoothly to anywhere else [s].
_SHORTEST_JOIN = 0.01
# A motion in progress is not continued by one that leaves the waypoints by more than so many times
# the way there is to go: that is nothing that anybody wanted.
_LARGEST_SWING = 10.0
# Distance between where the robot is and where it should be that is worth a word [rad] or [m].
_NOTICEABLE = 1e-3
# Part of the range of a joint's waypoints from which on a deviation is worth a remark. Motions
# through positions alone, evenly spaced, mostly stay below.
_LARGE_DEVIATION = 0.5


class StartState(NamedTuple):
    """Where the robot is, in the order of the joints of the model.

    Examples
    --------
    A robot that rests elsewhere gets to the first waypoint and on to the last:

    >>> import numpy as np
    >>> from hodyn_ros.trajectory import StartState, Waypoints, plan_motion
    >>> at = np.full((5, 1), np.nan)
    >>> at[:2, 0] = [0.2, 0.0]
    >>> start = StartState(time=0.0, motion=at, in_progress=False)
    >>> waypoints = Waypoints(('elbow',), [1.0, 2.0], [[0.5], [1.0]])
    >>> plan_motion(waypoints, ['elbow'], start=start).motion([0.0, 2.0], 0)[:, 0, 0]
    array([0.2, 1. ])
    """

    time: float
    """In the time of the waypoints: 0 is the start stamp of the trajectory [s]."""
    motion: Array
    """Position to snap, shape (5, n) [rad/s^k] or [m/s^k]; a row of NaN is not known."""
    in_progress: bool
    """True: the robot executes a motion, whose derivatives have to be continued; all of them are
    needed (for 'jtc' those up to the acceleration). False: it stands, or is known by measurement
    only. Then the position is needed, an unknown velocity is zero, and other unknown rows are zero
    if the robot stands and free if it moves."""


@shown
@dataclass(frozen=True, eq=False)
class MotionPlan(Immutable):
    """Motion through waypoints in the order of the model; immutable. Made by `plan_motion`.

    Examples
    --------
    >>> from hodyn_ros.trajectory import Waypoints, plan_motion
    >>> waypoints = Waypoints(('elbow',), [0.0, 1.0, 2.0], [[0.0], [1.0], [0.5]])
    >>> plan = plan_motion(waypoints, ['elbow'])
    >>> plan.continuous_derivative, plan.motion.duration, plan.deviation_from_jtc.round(2)
    (4, 2.0, array([0.32]))
    """

    motion: MotionSpline | JtcMotion
    """From the start state or the first waypoint to the last."""
    interpolation: str
    """'spline', 'jtc' or 'jtc_upsampled'."""
    continuous_derivative: int
    """Highest time derivative of the positions, of the first four, up to which all are continuous
    along the motion and, where it begins at a start state, from what is known of that."""
    deviation_from_jtc: Array
    """Largest distance from the motion of joint_trajectory_controller, shape (n,) [rad] or [m];
    NaN where that has no interpolation."""
    extremes: Extremes
    """Lowest and highest position of each joint, with their times."""
    remarks: tuple[str, ...]
    """What was given and what was supplied."""
    warnings: tuple[str, ...]
    """What one may not expect of the motion."""


def plan_motion(
    waypoints: Waypoints,
    joint_names: Sequence[str],
    *,
    start: StartState | None = None,
    interpolation: str = 'spline',
    allow_partial_joints: bool = False,
) -> MotionPlan:
    """Motion through waypoints, from where the robot is.

    A motion in progress is continued from `start.time` on with all its derivatives ('jtc': those
    up to the acceleration that the next waypoint has too), without the waypoints up to then.
    Otherwise the motion begins at the start state, or at the first waypoint if that is not later.

    Parameters
    ----------
    waypoints : Waypoints
        Joints in any order; one waypoint is enough if there is a start state.
    joint_names : sequence of str
        The n joints in the order wanted, as that of a model.
    start : StartState, optional
    interpolation : str
        'spline' for a motion of class C4, 'jtc' for that of joint_trajectory_controller,
        'jtc_upsampled' for that with its positions_upsampling, see `jtc_motion`.
    allow_partial_joints : bool
        Whether joints may be missing in the waypoints; they hold their position at the start.

    Returns
    -------
    MotionPlan
        In the order of `joint_names`.

    Raises
    ------
    JointNameError
        If a name of the waypoints is repeated or unknown, or one is missing and that is not
        allowed.
    TrajectoryError
        If there is no motion, since all waypoints have passed or there is only one; a start state
        is needed or unusable; or the interpolation is unknown or not possible.

    Examples
    --------
    >>> from hodyn_ros.trajectory import Waypoints, plan_motion
    >>> waypoints = Waypoints(('elbow', 'shoulder'), [0.0, 1.0], [[0.0, 0.1], [0.5, 0.2]])
    >>> plan = plan_motion(waypoints, ['shoulder', 'elbow'])
    >>> plan.motion(1.0, highest_derivative=0)
    array([[0.2, 0.5]])
    >>> plan.remarks[1]
    'The motion begins at the first waypoint, at 0 s, at rest.'
    """
    names = tuple(joint_names)
    check_choice('interpolation', interpolation, INTERPOLATIONS, TrajectoryError)
    is_spline = interpolation == 'spline'
    if start is not None:
        start = _checked_start(start, names, needed=ORDER if is_spline else 3)
    waypoints, held = _all_joints(waypoints, names, start, allow_partial_joints)
    complete = waypoints
    if interpolation == 'jtc_upsampled':
        # The controller does so when a message arrives, before it knows which waypoints count.
        velocities = upsampled_velocities(waypoints.times, *waypoints.rows)
        complete = replace(waypoints, velocities=velocities)
    knots, boundary, remarks = _knots(complete, start, _NEAR if is_spline else 0.0)
    controlled = knots if boundary is None else _as_controller_takes(knots)
    motion: MotionSpline | JtcMotion
    if is_spline:
        state = None if boundary is None else boundary.motion[1:]
        motion, _, rounded = fit_waypoints(
            knots.times, *knots.rows, start=state, joint_names=names
        )
        deviation = deviation_from_jtc(motion, controlled)
    else:
        motion, rounded = jtc_motion(controlled.times, *controlled.rows), ()
        deviation = np.zeros(len(names))
    extremes = position_extremes(motion)
    if is_spline and boundary is not None and boundary.in_progress:
        _refuse_swing(knots, boundary.motion, extremes)
    joined, at_start = _continuity_at_start(motion, names, start, boundary)
    supplied = ' '.join((_remark_on_supplied(motion), *rounded))
    return MotionPlan(
        motion=motion,
        interpolation=interpolation,
        continuous_derivative=min(motion.continuous_derivative, joined),
        deviation_from_jtc=deviation,
        extremes=extremes,
        remarks=(
            _remark_on_given(waypoints),
            *remarks,
            _remark_on_start(motion, boundary),
            *held,
            supplied,
        ),
        warnings=(
            *_warn_of_swing(controlled, deviation),
            *at_start,
            *jtc_remarks(controlled),
        ),
    )


def _as_controller_takes(knots: Waypoints) -> Waypoints:
    """Knots for the controller, for which zero is what a start state leaves open."""
    accelerations = knots.accelerations.copy()
    accelerations[0] = np.nan_to_num(accelerations[0])
    return replace(knots, accelerations=accelerations)


def _remark_on_given(waypoints: Waypoints) -> str:
    """Remark on what was given."""
    N, (v, a) = len(waypoints.times), (~np.isnan(row[:, 0]) for row in waypoints.rows[1:])
    return (
        f'Given: {N} waypoint{"s" if N > 1 else ""} with positions, {v.sum()} with velocities, '
        f'{a.sum()} with accelerations.'
    )


def _remark_on_supplied(motion: MotionSpline | JtcMotion) -> str:
    """Remark on what was added to the waypoints."""
    if isinstance(motion, MotionSpline):
        counts = zip(QUANTITIES[1:], np.sum(~motion.given[:, 1:], axis=0))
        what = ', '.join(f'{name} at {count}' for name, count in counts)
        return f'The spline of class C4 supplies, of {len(motion.given)} knots, {what}.'
    k = motion.continuous_derivative
    how = (
        'here is continuous up to the snap'
        if k == ORDER - 1
        else f'is continuous up to the {QUANTITIES[k]}; the {QUANTITIES[k + 1]} and all that '
        'depends on it jumps at waypoints'
    )
    return f'The motion is that of joint_trajectory_controller, which {how}.'


def _warn_of_swing(waypoints: Waypoints, deviation: Array) -> tuple[str, ...]:
    """Warning of joints that leave the motion of the controller far, if there are any."""
    large = np.maximum(_LARGE_DEVIATION * np.ptp(waypoints.positions, axis=0), _NOTICEABLE)
    if not np.any(deviation > large):
        return ()
    return (
        'Between the waypoints the motion leaves the interpolation of '
        'joint_trajectory_controller by a large part of its range (largest difference: '
        f'{_by_joint(deviation, waypoints.joint_names, large)} rad or m). Give waypoints that are '
        'denser or more evenly spaced in time.',
    )


def _remark_on_start(motion: MotionSpline | JtcMotion, boundary: StartState | None) -> str:
    """Remark on where the motion begins."""
    if boundary is not None and boundary.in_progress:
        return f'The motion in progress is continued from {motion.start_time:g} s on.'
    where = 'first waypoint' if boundary is None else 'given start state'
    rates = motion(motion.start_time)[1:3]
    how = 'at rest' if np.all(np.abs(rates) <= STANDSTILL) else 'moving'
    return f'The motion begins at the {where}, at {motion.start_time:g} s, {how}.'


def _continuity_at_start(
    motion: MotionSpline | JtcMotion,
    names: tuple[str, ...],
    start: StartState | None,
    boundary: StartState | None,
) -> tuple[int, list[str]]:
    """Highest derivative that is continuous where the motion begins, and warnings on that.

    Parameters
    ----------
    motion : MotionSpline or JtcMotion
    names : tuple of str
        Of the joints.
    start : StartState or None
        Where the robot is.
    boundary : StartState or None
        The same if the motion begins there.

    Returns
    -------
    order : int
        From -1, if the position jumps, to 4.
    warnings : list of str
    """
    if boundary is not None:
        initial, state = motion(motion.start_time), boundary.motion
        same = np.isnan(state) | np.isclose(initial, state, rtol=1e-9, atol=STANDSTILL)
        k = int(np.logical_and.accumulate(same.all(axis=1)).sum())
        if k == ORDER:
            return ORDER - 1, []
        unit = '/s' if k == 1 else f'/s^{k}'
        jump = _by_joint(np.abs(initial[k] - state[k]), names, STANDSTILL)
        text = f'Where the motion begins, the {QUANTITIES[k]} jumps ({jump} rad{unit} or m{unit}).'
        return k - 1, [text]
    warnings = []
    if start is not None and motion.start_time <= start.time <= motion.end_time:
        distance = np.abs(motion(start.time, 0)[0] - start.motion[0])
        if np.any(distance > _NOTICEABLE):
            warnings.append(
                f'At {start.time:g} s the robot is away from the motion by '
                f'{_by_joint(distance, names, _NOTICEABLE)} rad or m, since a waypoint lies there '
                'or before; the controller would jump.'
            )
    return ORDER - 1, warnings


def deviation_from_jtc(spline: MotionSpline, waypoints: Waypoints) -> Array:
    """How far a spline leaves the motion of joint_trajectory_controller.

    Parameters
    ----------
    spline : MotionSpline
        Through the waypoints, or some of them.
    waypoints : Waypoints
        In the order of its columns.

    Returns
    -------
    ndarray, shape (n,)
        Largest absolute difference of the positions of each joint at any time [rad] or [m]. NaN if
        there is a segment that the controller does not interpolate, see `jtc_motion`.

    Raises
    ------
    TrajectoryError
        If the spline has other times, or another number of joints than the waypoints.

    Examples
    --------
    >>> from hodyn_ros.trajectory import Waypoints, deviation_from_jtc, fit_spline
    >>> waypoints = Waypoints(('elbow',), [0.0, 1.0, 2.0], [[0.0], [1.0], [0.5]])
    >>> spline = fit_spline(waypoints.times, waypoints.positions)
    >>> deviation_from_jtc(spline, waypoints).round(3)
    array([0.316])
    """
    n = len(waypoints.joint_names)
    if spline.states.shape[-1] != n:
        raise TrajectoryError(
            f'The spline has {spline.states.shape[-1]} joints, the waypoints have {n}.'
        )
    inside = np.isin(spline.times, waypoints.times).all()
    if not inside or {*spline.times[[0, -1]]} != {*waypoints.times[[0, -1]]}:
        raise TrajectoryError(
            f'The spline has {len(spline.times)} waypoints from {spline.start_time!r} s to '
            f'{spline.end_time!r} s, the waypoints have other times.'
        )
    if np.any(segment_degrees(*waypoints.rows[1:]) == 0):
        return np.full(n, np.nan)
    controller = jtc_motion(waypoints.times, *waypoints.rows)
    first = spline(waypoints.times[:-1], DEGREE)
    shift = taylor_weights(np.diff(waypoints.times), DEGREE + 1, DEGREE + 1)
    expansions = np.stack([first, shift @ first], axis=1)
    expansions[:, :, : controller.expansions.shape[2]] -= controller.expansions
    both = position_extremes(PiecewiseMotion(waypoints.times, expansions, 0))
    return np.maximum(both.highest, -both.lowest)


def jtc_remarks(waypoints: Waypoints) -> tuple[str, ...]:
    """List what joint_trajectory_controller would not do with waypoints that are usable here.

    Parameters
    ----------
    waypoints : Waypoints
        As the controller would get them.

    Returns
    -------
    tuple of str
        Sentences, empty if there is nothing.
    """
    remarks = []
    moving = [
        f'{name} ({value:g})'
        for name, value in zip(waypoints.joint_names, waypoints.velocities[-1])
        if abs(value) > STANDSTILL
    ]
    if moving:
        remarks.append(
            f'The last waypoint has the velocity of {", ".join(moving)}; by default '
            'joint_trajectory_controller refuses trajectories that do not end at rest.'
        )
    undefined = segment_degrees(waypoints.velocities, waypoints.accelerations) == 0
    if np.any(undefined):
        remarks.append(
            f'Waypoints {np.argmax(undefined)} and {np.argmax(undefined) + 1} have accelerations '
            'but not both have velocities; joint_trajectory_controller does not interpolate '
            'between such points, it commands zero positions.'
        )
    return tuple(remarks)


def _checked_start(start: StartState, names: tuple[str, ...], needed: int) -> StartState:
    """State with zeros for what it leaves open; a motion in progress must have `needed` rows."""
    if not np.isfinite(start.time):
        raise TrajectoryError(
            f'The time of the start state is {start.time!r}, expected seconds.'
        )
    motion, known = checked_rows(
        start.motion, 'The motion of the start state', (ORDER, len(names)), names
    )
    lacking = [
        QUANTITIES[k] for k in range(needed if start.in_progress else 1) if not known[k]
    ]
    if lacking:
        raise TrajectoryError(
            f'The start state has no {listed(lacking)}, which '
            + (
                'a motion in progress needs to be continued.'
                if start.in_progress
                else 'it needs.'
            )
        )
    if not start.in_progress:
        if not known[1]:
            motion[1] = 0.0
        if np.all(np.abs(np.nan_to_num(motion[1:])) <= STANDSTILL):
            motion[1:] = 0.0
    return StartState(float(start.time), motion, bool(start.in_progress))


def check_joint_names(
    waypoints: Waypoints, names: tuple[str, ...], allow_partial: bool
) -> tuple[tuple[str, ...], list[int]]:
    """Joints that waypoints leave out, and the order that they have with these behind them.

    Parameters
    ----------
    waypoints : Waypoints
    names : tuple of str
        All joints in the order wanted.
    allow_partial : bool
        Whether some may be left out.

    Returns
    -------
    missing : tuple of str
    order : list of int
        See `joint_order`.

    Raises
    ------
    JointNameError
        If a name is repeated or unknown, or one is missing and that is not allowed.
    """
    missing = tuple(name for name in names if name not in waypoints.joint_names)
    added = missing if allow_partial else ()
    try:
        return missing, joint_order(waypoints.joint_names + added, names)
    except JointNameError as error:
        if not missing or allow_partial:
            raise
        raise JointNameError(
            f'{error} With allow_partial_joints, missing joints hold their position.'
        ) from error


def waypoints_in_order(waypoints: Waypoints, joint_names: Sequence[str]) -> Waypoints:
    """Waypoints with all their joints in the order wanted; JointNameError if they are others.

    Parameters
    ----------
    waypoints : Waypoints
        In any order.
    joint_names : sequence of str
        The same joints in the wanted order.

    Returns
    -------
    Waypoints

    Raises
    ------
    JointNameError
        If a name is missing, unknown or repeated.
    """
    order = joint_order(waypoints.joint_names, joint_names)
    rows = (row[:, order] for row in waypoints.rows)
    return Waypoints(tuple(joint_names), waypoints.times, *rows)


def _all_joints(
    waypoints: Waypoints,
    names: tuple[str, ...],
    start: StartState | None,
    allow_partial: bool,
) -> tuple[Waypoints, list[str]]:
    """Waypoints in the order of the joints, with those that are left out held; and a remark."""
    # Unknown and repeated names come first: they are mistakes, whatever is known of the robot.
    missing, order = check_joint_names(waypoints, names, allow_partial)
    if not missing:
        return waypoints_in_order(waypoints, names), []
    if start is None:
        raise TrajectoryError(
            f'The waypoints leave out {listed(missing)}, and where to hold them is not known; '
            'publish joint_states, send a start_state, or give waypoints for all joints.'
        )
    held, velocity = start.motion[:2, [names.index(name) for name in missing]]
    # As with joint_trajectory_controller, zero where the row is given, NaN where it is not.
    rows = [np.hstack((waypoints.positions, np.tile(held, (len(waypoints.times), 1))))]
    for row in (waypoints.velocities, waypoints.accelerations):
        rows.append(np.hstack((row, np.repeat(0.0 * row[:, :1], len(missing), axis=1))))
    complete = Waypoints(names, waypoints.times, *(row[:, order] for row in rows))
    remark = (
        f'Not in the waypoints and held where they are at the start: {listed(missing)}.'
    )
    moving = [name for name, v in zip(missing, velocity) if abs(v) > STANDSTILL]
    if moving:
        remark += f' Of these, {listed(moving)} move at the start and come back.'
    return complete, [remark]


def _knots(
    waypoints: Waypoints, start: StartState | None, near: float
) -> tuple[Waypoints, StartState | None, list[str]]:
    """Choose what the motion goes through, the start state if it begins there, and remarks.

    Parameters
    ----------
    waypoints : Waypoints
        Of all joints.
    start : StartState or None
        Where the robot is.
    near : float
        Share of the time to the waypoint behind, below which one is left out after a start
        in progress; zero: none is.

    Returns
    -------
    knots : Waypoints
    boundary : StartState or None
    remarks : list of str

    Raises
    ------
    TrajectoryError
        If all waypoints have passed, too little time is left, or there is only one and
        nowhere to begin.
    """
    times = waypoints.times
    if start is None:
        if len(times) == 1:
            raise TrajectoryError(
                'There is one waypoint, and where the motion begins is not known; publish '
                'joint_states, give the service a start_state, or give a first waypoint.'
            )
        return waypoints, None, []
    passed = int(np.sum(times <= start.time + _SAME_TIME))
    if not start.in_progress:
        if passed == 0:
            return _after_state(waypoints, start, 0), start, []
        return (waypoints, None, []) if len(times) > 1 else _hold(waypoints, start)
    if passed == len(times):
        raise TrajectoryError(
            f'All waypoints have passed: the last one lies at {times[-1]:g} s, the '
            f'motion in progress is continued from {start.time:g} s on. Send later waypoints.'
        )
    remaining = float(times[-1]) - start.time
    if near and remaining < _SHORTEST_JOIN:
        raise TrajectoryError(
            f'Until the last waypoint at {times[-1]:g} s there are only {1e3 * remaining:.3g} ms '
            f'from {start.time:g} s on, when the motion in progress can be continued; expected at '
            f'least {1e3 * _SHORTEST_JOIN:g} ms. Send later waypoints.'
        )
    remarks = [_remark_on_passed(waypoints, start, passed)] if passed else []
    # Waypoints so shortly behind the start that the spline would swing.
    close = times[:-1] - start.time < near * np.diff(times)
    first = passed + int(np.logical_and.accumulate(close[passed:]).sum())
    if first > passed:
        count = first - passed
        which = 'The next waypoint is' if count == 1 else f'The next {count} waypoints are'
        remarks.append(
            f'{which} left out too, since until there it takes less than {near:g} of the time to '
            'the waypoint behind.'
        )
    return _after_state(waypoints, start, first), start, remarks


def _remark_on_passed(waypoints: Waypoints, start: StartState, passed: int) -> str:
    """Remark on waypoints that have passed where a motion in progress is continued."""
    which = (
        'The first waypoint has' if passed == 1 else f'The first {passed} waypoints have'
    )
    remark = (
        f'{which} passed at {start.time:g} s and {"is" if passed == 1 else "are"} left out.'
    )
    distance = np.abs(waypoints.positions[passed - 1] - start.motion[0])
    at_start = abs(waypoints.times[passed - 1] - start.time) <= _SAME_TIME
    if at_start and np.any(distance > _NOTICEABLE):
        joints = _by_joint(distance, waypoints.joint_names, _NOTICEABLE)
        away = f'away from the motion in progress by {joints} rad or m.'
        remark += f' The one at this time is {away}'
    return remark


def _refuse_swing(knots: Waypoints, state: Array, extremes: Extremes) -> None:
    """Refuse to lead a motion in progress far away from where it is to go."""
    lowest, highest = knots.positions.min(axis=0), knots.positions.max(axis=0)
    # Where the motion would get to by itself is no surprise.
    carried = np.abs(taylor_weights(np.diff(knots.times[:2]), 1, ORDER)[0, 0, 1:]) @ np.abs(
        state[1:]
    )
    reach = highest - lowest + carried + _NOTICEABLE
    swing = np.maximum(extremes.highest - highest, lowest - extremes.lowest)
    if np.any(swing > _LARGEST_SWING * reach):
        joints = _by_joint(swing, knots.joint_names, _LARGEST_SWING * reach)
        raise TrajectoryError(
            'The motion in progress cannot be continued smoothly through these waypoints: it '
            f'would leave them by {joints} rad or m. Send waypoints that begin later, that are '
            'more evenly spaced in time, or that suit the motion in progress.'
        )


def _after_state(waypoints: Waypoints, start: StartState, first: int) -> Waypoints:
    """Put the start state before the waypoints from the given one on."""
    times = np.concatenate([[start.time], waypoints.times[first:]])
    pairs = zip(start.motion, waypoints.rows)
    rows = (np.concatenate([state[None], row[first:]]) for state, row in pairs)
    return Waypoints(waypoints.joint_names, times, *rows)


def _hold(waypoints: Waypoints, start: StartState) -> tuple[Waypoints, None, list[str]]:
    """Hold the only waypoint, which is not ahead, if the robot stands there."""
    time = float(waypoints.times[0])
    distance = np.abs(waypoints.positions[0] - start.motion[0])
    if start.time - time > _SAME_TIME:
        reason = f'lies at {time:g} s, before the start state at {start.time:g} s'
    elif np.any(np.abs(start.motion[1]) > _NOTICEABLE):
        reason = f'lies at {time:g} s, at the time of the start state, which moves'
    elif np.any(distance > _NOTICEABLE):
        jump = _by_joint(distance, waypoints.joint_names, _NOTICEABLE)
        reason = (
            f'lies at the time of the start state, {time:g} s, but not there ({jump} away)'
        )
    else:
        rows = np.zeros((2, len(waypoints.joint_names)))
        times = np.array([start.time, start.time + HOLD_DURATION])
        positions = np.repeat(waypoints.positions, 2, axis=0)
        remark = (
            'The robot stands at the only waypoint, which lies at the time of the start state; it '
            f'is held there, for {HOLD_DURATION:g} s of motion.'
        )
        return (
            Waypoints(waypoints.joint_names, times, positions, rows, rows),
            None,
            [remark],
        )
    raise TrajectoryError(
        f'The only waypoint {reason}: the robot would jump. Give a later time.'
    )


def _by_joint(values: Array, names: Sequence[str], threshold: float | Array) -> str:
    """List the joints with values above a threshold, with these values."""
    above = values > threshold
    return listed(
        f'{name} {value:.3g}' for name, value, shown in zip(names, values, above) if shown
    )
