"""Motions through waypoints from where the robot is, and what one should know about them.

Where joint_trajectory_controller of ros2_controllers has a rule, it is followed: which waypoints
have passed, when the motion begins at the present state, and what joints do that are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.errors import JointNameError, TrajectoryError
from hodyn_ros.names import listed
from hodyn_ros.trajectory.extremes import Extremes, position_extremes
from hodyn_ros.trajectory.immutable import Immutable
from hodyn_ros.trajectory.jtc import JtcMotion, jtc_motion
from hodyn_ros.trajectory.spline import ORDER, QUANTITIES, STANDSTILL, MotionSpline, fit_spline
from hodyn_ros.trajectory.timeline import Flags, checked_rows
from hodyn_ros.trajectory.waypoints import (
    Waypoints,
    deviation_from_jtc,
    jtc_remarks,
    left_out,
    waypoints_in_order,
)

Array = NDArray[np.float64]

INTERPOLATIONS = ('spline', 'jtc')
"""Ways to move between waypoints: with class C4, or exactly as joint_trajectory_controller."""

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
    """Where the robot is, in the order of the joints of the model."""

    time: float
    """In the time of the waypoints: 0 is the start stamp of the trajectory [s]."""
    motion: Array
    """Position to snap, shape (5, n) [rad/s^k] or [m/s^k]; a row of NaN is not known."""
    in_progress: bool
    """True: the robot executes a motion, whose derivatives have to be continued; all of them are
    needed (for 'jtc' those up to the acceleration). False: it stands, or is known by measurement
    only. Then the position is needed, an unknown velocity is zero, and other unknown rows are zero
    if the robot stands and free if it moves."""


@dataclass(frozen=True, eq=False)
class MotionPlan(Immutable):
    """Motion through waypoints in the order of the model; immutable. Made by `plan_motion`."""

    motion: MotionSpline | JtcMotion
    """From the start state or the first waypoint to the last."""
    interpolation: str
    """'spline' or 'jtc'."""
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


class _Knots(NamedTuple):
    """What the motion goes through."""

    waypoints: Waypoints
    starts_at_state: bool
    remarks: tuple[str, ...] = ()


def plan_motion(
    waypoints: Waypoints,
    joint_names: Sequence[str],
    *,
    start: StartState | None = None,
    interpolation: str = 'spline',
    allow_partial_joints: bool = False,
) -> MotionPlan:
    """Motion through waypoints, from where the robot is.

    A motion in progress is continued from `start.time` on with all its derivatives, with 'jtc'
    with those up to the acceleration that the next waypoint has too; waypoints up to that time are
    left out. Otherwise the motion begins at the start state if the first waypoint lies later, and
    at the first waypoint if it does not or there is no start state.

    Parameters
    ----------
    waypoints : Waypoints
        Joints in any order; one waypoint is enough if there is a start state.
    joint_names : sequence of str
        The n joints in the order wanted, as that of a model.
    start : StartState, optional
    interpolation : str
        'spline' for a motion of class C4, 'jtc' for that of joint_trajectory_controller.
    allow_partial_joints : bool
        Whether joints may be missing in the waypoints; they hold their position at the start.

    Returns
    -------
    MotionPlan

    Raises
    ------
    JointNameError
        If a name of the waypoints is repeated or unknown, or one is missing and that is not
        allowed.
    TrajectoryError
        If there is no motion, since all waypoints have passed or there is only one; a start state
        is needed or unusable; or the interpolation is unknown or not possible.
    """
    names = tuple(joint_names)
    if interpolation not in INTERPOLATIONS:
        raise TrajectoryError(
            f'interpolation is {interpolation!r}, expected one of {listed(INTERPOLATIONS)}.'
        )
    if start is not None:
        start = _checked(start, names, needed=ORDER if interpolation == 'spline' else 3)
    held = left_out(waypoints, names)
    waypoints = _all_joints(waypoints, names, start, allow_partial_joints)
    knots = _knots(waypoints, start, _NEAR if interpolation == 'spline' else 0.0)
    boundary = start if knots.starts_at_state else None
    controlled = knots.waypoints if boundary is None else _as_controlled(knots.waypoints)

    motion: MotionSpline | JtcMotion
    if interpolation == 'jtc':
        rows = controlled.positions, controlled.velocities, controlled.accelerations
        motion = jtc_motion(controlled.times, *rows)
        extremes = position_extremes(motion)
        deviation = np.zeros(len(names))
        supplied = _say_continuity(motion.continuous_derivative)
        warnings: tuple[str, ...] = ()
    else:
        motion = _spline(knots.waypoints, boundary)
        extremes = position_extremes(motion)
        if boundary is not None and boundary.in_progress:
            _check_swing(knots.waypoints, boundary.motion, extremes)
        deviation = deviation_from_jtc(motion, controlled)
        supplied = _say_supplied(motion.given)
        warnings = _say_large_deviation(deviation, controlled)
    initial = motion(motion.start_time)
    in_progress = start is not None and start.in_progress
    begin = _say_beginning(motion.start_time, initial, boundary is not None, in_progress)
    joined = ORDER - 1
    if boundary is not None:
        joined = _joined(initial, boundary)
        warnings += _say_jump_at_start(joined, initial, boundary.motion, names)
    elif start is not None and motion.start_time <= start.time <= motion.end_time:
        distance = np.abs(motion(start.time, 0)[0] - start.motion[0])
        warnings += _say_away_from_motion(start.time, distance, names)
    return MotionPlan(
        motion=motion,
        interpolation=interpolation,
        continuous_derivative=min(motion.continuous_derivative, joined),
        deviation_from_jtc=deviation,
        extremes=extremes,
        remarks=(
            _say_given(waypoints),
            *knots.remarks,
            begin,
            *_say_held_joints(held, names, None if start is None else start.motion[1]),
            supplied,
        ),
        warnings=(*warnings, *jtc_remarks(controlled)),
    )


def _checked(start: StartState, names: tuple[str, ...], needed: int) -> StartState:
    """Fill in what the state leaves open, and refuse one that cannot be used.

    Parameters
    ----------
    start : StartState
    names : tuple of str
    needed : int
        How many rows a motion in progress must have.
    """
    if not np.isfinite(start.time):
        raise TrajectoryError(f'The time of the start state is {start.time!r}, expected seconds.')
    motion, known = checked_rows(
        start.motion, 'The motion of the start state', (ORDER, len(names)), names
    )
    lacking = [QUANTITIES[k] for k in range(needed if start.in_progress else 1) if not known[k]]
    if lacking:
        raise TrajectoryError(
            f'The start state has no {listed(lacking)}, which '
            + ('a motion in progress needs to be continued.' if start.in_progress else 'it needs.')
        )
    if not start.in_progress:
        if not known[1]:
            motion[1] = 0.0
        if np.all(np.abs(np.nan_to_num(motion[1:])) <= STANDSTILL):
            motion[1:] = 0.0
    return StartState(float(start.time), motion, bool(start.in_progress))


def _all_joints(
    waypoints: Waypoints, names: tuple[str, ...], start: StartState | None, allow_partial: bool
) -> Waypoints:
    """Bring waypoints into the order of the joints, and complete those that may be left out."""
    missing = left_out(waypoints, names)
    if not (missing and allow_partial):
        try:
            return waypoints_in_order(waypoints, names)
        except JointNameError as error:
            if not missing:
                raise
            raise JointNameError(
                f'{error} With allow_partial_joints, missing joints hold their position.'
            ) from error
    # Unknown and repeated names come first: they are mistakes, whatever is known of the robot.
    held = np.zeros(len(names)) if start is None else start.motion[0]
    complete = waypoints_in_order(waypoints, names, held)
    if start is None:
        raise TrajectoryError(
            f'The waypoints leave out {listed(missing)}, and where to hold them is not known; '
            'publish joint_states, send a start_state, or give waypoints for all joints.'
        )
    return complete


def _knots(waypoints: Waypoints, start: StartState | None, near: float) -> _Knots:
    """Choose the waypoints that lie ahead, with the start state before them where it belongs."""
    if start is None:
        if len(waypoints.times) == 1:
            raise TrajectoryError(
                'There is one waypoint, and where the motion begins is not known; publish '
                'joint_states, give the service a start_state, or give a first waypoint.'
            )
        return _Knots(waypoints, starts_at_state=False)
    passed = int(np.sum(waypoints.times <= start.time + _SAME_TIME))
    if start.in_progress:
        if passed == len(waypoints.times):
            raise TrajectoryError(
                f'All waypoints have passed: the last one lies at {waypoints.times[-1]:g} s, the '
                f'motion in progress is continued from {start.time:g} s on. Send later waypoints.'
            )
        remaining = float(waypoints.times[-1]) - start.time
        if near and remaining < _SHORTEST_JOIN:
            raise TrajectoryError(
                f'Until the last waypoint at {waypoints.times[-1]:g} s there are only '
                f'{1e3 * remaining:.3g} ms from {start.time:g} s on, when the motion in progress '
                f'can be continued; expected at least {1e3 * _SHORTEST_JOIN:g} ms. Send later '
                'waypoints.'
            )
        left_out = passed + _too_near(waypoints.times[passed:], start.time, near)
        return _Knots(
            _after_state(waypoints, start, left_out),
            starts_at_state=True,
            remarks=(
                *_say_passed(waypoints, passed, start.time, start.motion[0]),
                *_say_too_near(left_out - passed, near),
            ),
        )
    if passed == 0:
        return _Knots(_after_state(waypoints, start, 0), starts_at_state=True)
    if len(waypoints.times) > 1:
        return _Knots(waypoints, starts_at_state=False)
    return _hold(waypoints, start)


def _check_swing(knots: Waypoints, state: Array, extremes: Extremes) -> None:
    """Refuse to lead a motion in progress far away from where it is to go."""
    lowest, highest = knots.positions.min(axis=0), knots.positions.max(axis=0)
    # Where the motion would get to by itself is no surprise.
    first, carried, power = float(knots.times[1] - knots.times[0]), np.zeros(len(lowest)), 1.0
    for k in range(1, ORDER):
        power *= first / k
        carried += power * np.abs(state[k])
    reach = highest - lowest + carried + _NOTICEABLE
    swing = np.maximum(extremes.highest - highest, lowest - extremes.lowest)
    if np.any(swing > _LARGEST_SWING * reach):
        joints = _by_joint(swing, knots.joint_names, _LARGEST_SWING * reach)
        raise TrajectoryError(
            'The motion in progress cannot be continued smoothly through these waypoints: it '
            f'would leave them by {joints} rad or m. Send waypoints that begin later, that are '
            'more evenly spaced in time, or that suit the motion in progress.'
        )


def _too_near(times: Array, start_time: float, near: float) -> int:
    """Count the waypoints that lie so shortly behind the start that the spline would swing."""
    count = 0
    while (
        count < len(times) - 1
        and times[count] - start_time < near * (times[count + 1] - times[count])
    ):
        count += 1
    return count


def _after_state(waypoints: Waypoints, start: StartState, first: int) -> Waypoints:
    """Put the start state before the waypoints from the given one on."""
    return Waypoints(
        waypoints.joint_names,
        np.concatenate([[start.time], waypoints.times[first:]]),
        np.concatenate([start.motion[0:1], waypoints.positions[first:]]),
        np.concatenate([start.motion[1:2], waypoints.velocities[first:]]),
        np.concatenate([start.motion[2:3], waypoints.accelerations[first:]]),
    )


def _as_controlled(knots: Waypoints) -> Waypoints:
    """Make zero what the start state leaves open, as the controller does."""
    accelerations = knots.accelerations.copy()
    accelerations[0] = np.nan_to_num(accelerations[0])
    return replace(knots, accelerations=accelerations)


def _hold(waypoints: Waypoints, start: StartState) -> _Knots:
    """Hold the only waypoint, which is not ahead, if the robot stands there."""
    time = float(waypoints.times[0])
    distance = np.abs(waypoints.positions[0] - start.motion[0])
    stands = np.all(np.abs(start.motion[1]) <= _NOTICEABLE)
    if start.time - time > _SAME_TIME:
        reason = f'lies at {time:g} s, before the start state at {start.time:g} s'
    elif not stands:
        reason = f'lies at {time:g} s, at the time of the start state, which moves'
    elif np.any(distance > _NOTICEABLE):
        jump = _by_joint(distance, waypoints.joint_names, _NOTICEABLE)
        reason = f'lies at the time of the start state, {time:g} s, but not there ({jump} away)'
    else:
        rows = np.zeros((2, len(waypoints.joint_names)))
        times = np.array([start.time, start.time + HOLD_DURATION])
        positions = np.repeat(waypoints.positions, 2, axis=0)
        held = Waypoints(waypoints.joint_names, times, positions, rows, rows)
        remark = (
            'The robot stands at the only waypoint, which lies at the time of the start state; it '
            f'is held there, for {HOLD_DURATION:g} s of motion.'
        )
        return _Knots(held, starts_at_state=False, remarks=(remark,))
    raise TrajectoryError(f'The only waypoint {reason}: the robot would jump. Give a later time.')


def _spline(knots: Waypoints, start: StartState | None) -> MotionSpline:
    rows = knots.positions, knots.velocities, knots.accelerations
    boundary = None if start is None else start.motion[1:]
    return fit_spline(knots.times, *rows, start=boundary)


def _joined(initial: Array, start: StartState) -> int:
    """Find the highest derivative up to which the motion goes on as the start state."""
    unknown = np.isnan(start.motion)
    same = unknown | np.isclose(initial, start.motion, rtol=1e-9, atol=STANDSTILL)
    return int(np.sum(np.logical_and.accumulate(same.all(axis=1)))) - 1


# What one should know about a planned motion, in sentences.


def _by_joint(values: Array, names: Sequence[str], threshold: float | Array) -> str:
    """List the joints with values above a threshold, with these values."""
    above = values > threshold
    return listed(
        f'{name} {value:.3g}' for name, value, shown in zip(names, values, above) if shown
    )


def _say_given(waypoints: Waypoints) -> str:
    """Count what the waypoints hold."""
    N = len(waypoints.times)
    velocities, accelerations = (
        int(np.sum(~np.isnan(rows[:, 0])))
        for rows in (waypoints.velocities, waypoints.accelerations)
    )
    return (
        f'Given: {N} waypoint{"s" if N > 1 else ""} with positions, {velocities} with velocities, '
        f'{accelerations} with accelerations.'
    )


def _say_supplied(flags: Flags) -> str:
    """Count what the spline supplies, from the flags (N, 5) of what is given."""
    counts = np.sum(~flags[:, 1:], axis=0)
    what = ', '.join(f'{name} at {count}' for name, count in zip(QUANTITIES[1:], counts))
    return f'The spline of class C4 supplies, of {len(flags)} knots, {what}.'


def _say_large_deviation(deviation: Array, waypoints: Waypoints) -> tuple[str, ...]:
    """Warn of joints that leave the motion of the controller by a large part of their range."""
    limit = np.maximum(_LARGE_DEVIATION * np.ptp(waypoints.positions, axis=0), _NOTICEABLE)
    joints = _by_joint(deviation, waypoints.joint_names, limit)
    if not np.any(deviation > limit):
        return ()
    return (
        'Between the waypoints the motion leaves the interpolation of joint_trajectory_controller '
        f'by a large part of its range (largest difference: {joints} rad or m). Give waypoints '
        'that are denser or more evenly spaced in time.',
    )


def _say_continuity(derivative: int) -> str:
    """Say up to which derivative the motion of the controller is continuous."""
    text = 'The motion is that of joint_trajectory_controller'
    if derivative == ORDER - 1:
        return f'{text}, which here is continuous up to the snap.'
    return (
        f'{text}, which is continuous up to the {QUANTITIES[derivative]}; the '
        f'{QUANTITIES[derivative + 1]} and all that depends on it jumps at waypoints.'
    )


def _say_beginning(time: float, initial: Array, at_state: bool, in_progress: bool) -> str:
    """Say where a motion begins, at a state (5, n) that may be the start state, and how."""
    if at_state and in_progress:
        return f'The motion in progress is continued from {time:g} s on.'
    where = 'given start state' if at_state else 'first waypoint'
    rests = np.all(np.abs(initial[1:3]) <= STANDSTILL)
    return f'The motion begins at the {where}, at {time:g} s, {"at rest" if rests else "moving"}.'


def _say_jump_at_start(
    joined: int, initial: Array, state: Array, names: Sequence[str]
) -> tuple[str, ...]:
    """Say which derivative jumps at the start state (5, n); `joined` is the highest without."""
    if joined == ORDER - 1:
        return ()
    k = joined + 1
    jump = np.abs(initial[k] - state[k])
    unit = '/s' if k == 1 else f'/s^{k}'
    return (
        f'Where the motion begins, the {QUANTITIES[k]} jumps '
        f'({_by_joint(jump, names, STANDSTILL)} rad{unit} or m{unit}).',
    )


def _say_away_from_motion(time: float, distance: Array, names: Sequence[str]) -> tuple[str, ...]:
    """Say how far the robot is from a motion, distances (n,), that does not begin at its state."""
    if not np.any(distance > _NOTICEABLE):
        return ()
    joints = _by_joint(distance, names, _NOTICEABLE)
    return (
        f'At {time:g} s the robot is away from the motion by {joints} rad or m, since a waypoint '
        'lies there or before; the controller would jump.',
    )


def _say_passed(waypoints: Waypoints, count: int, time: float, position: Array) -> tuple[str, ...]:
    """Say that the first waypoints are left out, since a motion (n,) goes on later than they."""
    if not count:
        return ()
    which = 'The first waypoint has' if count == 1 else f'The first {count} waypoints have'
    text = f'{which} passed at {time:g} s and {"is" if count == 1 else "are"} left out.'
    distance = np.abs(waypoints.positions[count - 1] - position)
    at_start = abs(waypoints.times[count - 1] - time) <= _SAME_TIME
    if not (at_start and np.any(distance > _NOTICEABLE)):
        return (text,)
    joints = _by_joint(distance, waypoints.joint_names, _NOTICEABLE)
    return (
        f'{text} The one at this time is away from the motion in progress by {joints} rad or m.',
    )


def _say_too_near(count: int, near: float) -> tuple[str, ...]:
    """Say that waypoints are left out that lie too shortly behind the join."""
    if not count:
        return ()
    which = 'The next waypoint is' if count == 1 else f'The next {count} waypoints are'
    return (
        f'{which} left out too, since until there it takes less than {near:g} of the time to the '
        'waypoint behind.',
    )


def _say_held_joints(
    held: Sequence[str], names: Sequence[str], velocity: Array | None
) -> tuple[str, ...]:
    """Name joints that hold their position, and those that move at the start, velocity (n,)."""
    if not held:
        return ()
    text = f'Not in the waypoints and held where they are at the start: {listed(held)}.'
    moving = [
        name
        for name, v in zip(names, velocity if velocity is not None else ())
        if name in held and abs(v) > STANDSTILL
    ]
    if moving:
        text += f' Of these, {listed(moving)} move at the start and come back.'
    return (text,)
