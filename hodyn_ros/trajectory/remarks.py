"""What one should know about a planned motion, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.names import listed
from hodyn_ros.trajectory.spline import ORDER, QUANTITIES, STANDSTILL
from hodyn_ros.trajectory.timeline import Flags
from hodyn_ros.trajectory.waypoints import Waypoints

Array = NDArray[np.float64]

NOTICEABLE = 1e-3
"""Distance [rad] or [m] between where the robot is and where it should be that is worth a word."""

# Part of the range of a joint's waypoints from which on a deviation is worth a remark. Motions
# through positions alone, evenly spaced, mostly stay below.
_LARGE_DEVIATION = 0.5


def by_joint(values: Array, names: Sequence[str], threshold: float | Array) -> str:
    """List the joints with values above a threshold, with these values."""
    above = values > threshold
    return listed(
        f'{name} {value:.3g}' for name, value, shown in zip(names, values, above) if shown
    )


def given(waypoints: Waypoints) -> str:
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


def supplied(flags: Flags) -> str:
    """Count what the spline supplies, from the flags (N, 5) of what is given."""
    counts = np.sum(~flags[:, 1:], axis=0)
    what = ', '.join(f'{name} at {count}' for name, count in zip(QUANTITIES[1:], counts))
    return f'The spline of class C4 supplies, of {len(flags)} knots, {what}.'


def large_deviation(deviation: Array, waypoints: Waypoints) -> tuple[str, ...]:
    """Warn of joints that leave the motion of the controller by a large part of their range.

    Parameters
    ----------
    deviation : ndarray, shape (n,)
        See `hodyn_ros.trajectory.waypoints.deviation_from_jtc`.
    waypoints : Waypoints
        Of n joints.
    """
    limit = np.maximum(_LARGE_DEVIATION * np.ptp(waypoints.positions, axis=0), NOTICEABLE)
    joints = by_joint(deviation, waypoints.joint_names, limit)
    if not np.any(deviation > limit):
        return ()
    return (
        'Between the waypoints the motion leaves the interpolation of joint_trajectory_controller '
        f'by a large part of its range (largest difference: {joints} rad or m). Give waypoints '
        'that are denser or more evenly spaced in time.',
    )


def continuity(derivative: int) -> str:
    """Say up to which derivative the motion of the controller is continuous."""
    text = 'The motion is that of joint_trajectory_controller'
    if derivative == ORDER - 1:
        return f'{text}, which here is continuous up to the snap.'
    return (
        f'{text}, which is continuous up to the {QUANTITIES[derivative]}; the '
        f'{QUANTITIES[derivative + 1]} and all that depends on it jumps at waypoints.'
    )


def beginning(time: float, initial: Array, at_state: bool, in_progress: bool) -> str:
    """Say where a motion begins.

    Parameters
    ----------
    time : float
        [s]
    initial : ndarray, shape (5, n)
        State there.
    at_state : bool
        Whether it is the start state and not the first waypoint.
    in_progress : bool
        Whether that is a state of a motion in progress.
    """
    if at_state and in_progress:
        return f'The motion in progress is continued from {time:g} s on.'
    where = 'given start state' if at_state else 'first waypoint'
    rests = np.all(np.abs(initial[1:3]) <= STANDSTILL)
    return f'The motion begins at the {where}, at {time:g} s, {"at rest" if rests else "moving"}.'


def jump_at_start(
    joined: int, initial: Array, state: Array, names: Sequence[str]
) -> tuple[str, ...]:
    """Say which derivative jumps where the motion begins.

    Parameters
    ----------
    joined : int
        Highest derivative that does not.
    initial, state : ndarray, shape (5, n)
        First state of the motion, and the state that it continues.
    names : sequence of str
        Of the n joints.
    """
    if joined == ORDER - 1:
        return ()
    k = joined + 1
    jump = np.abs(initial[k] - state[k])
    unit = '/s' if k == 1 else f'/s^{k}'
    return (
        f'Where the motion begins, the {QUANTITIES[k]} jumps '
        f'({by_joint(jump, names, STANDSTILL)} rad{unit} or m{unit}).',
    )


def away_from_motion(time: float, distance: Array, names: Sequence[str]) -> tuple[str, ...]:
    """Say how far the robot is from a motion, distances (n,), that does not begin at its state."""
    if not np.any(distance > NOTICEABLE):
        return ()
    joints = by_joint(distance, names, NOTICEABLE)
    return (
        f'At {time:g} s the robot is away from the motion by {joints} rad or m, since a waypoint '
        'lies there or before; the controller would jump.',
    )


def passed(
    waypoints: Waypoints, count: int, time: float, position: Array, same_time: float
) -> tuple[str, ...]:
    """Say which waypoints are left out, since the motion in progress is continued later.

    Parameters
    ----------
    waypoints : Waypoints
    count : int
        How many, from the first.
    time : float
        From which the motion is continued [s].
    position : ndarray, shape (n,)
        Of the motion in progress at that time.
    same_time : float
        Difference up to which a waypoint lies at that time [s].
    """
    if not count:
        return ()
    which = 'The first waypoint has' if count == 1 else f'The first {count} waypoints have'
    text = f'{which} passed at {time:g} s and {"is" if count == 1 else "are"} left out.'
    distance = np.abs(waypoints.positions[count - 1] - position)
    at_start = abs(waypoints.times[count - 1] - time) <= same_time
    if not (at_start and np.any(distance > NOTICEABLE)):
        return (text,)
    joints = by_joint(distance, waypoints.joint_names, NOTICEABLE)
    return (
        f'{text} The one at this time is away from the motion in progress by {joints} rad or m.',
    )


def too_near(count: int, near: float) -> tuple[str, ...]:
    """Say that waypoints are left out that lie too shortly behind the join."""
    if not count:
        return ()
    which = 'The next waypoint is' if count == 1 else f'The next {count} waypoints are'
    return (
        f'{which} left out too, since until there it takes less than {near:g} of the time to the '
        'waypoint behind.',
    )


def held_joints(
    held: Sequence[str], names: Sequence[str], velocity: Array | None
) -> tuple[str, ...]:
    """Name joints that hold their position, and those of them that move at the start.

    Parameters
    ----------
    held, names : sequence of str
        The joints that hold their position, and all n joints.
    velocity : ndarray, shape (n,), or None
        At the start; None without a start state.
    """
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


def hold(duration: float) -> str:
    """Say that the robot stays where it is."""
    return (
        'The robot stands at the only waypoint, which lies at the time of the start state; it is '
        f'held there, for {duration:g} s of motion.'
    )
