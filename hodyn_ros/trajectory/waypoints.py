"""Waypoints as joint_trajectory_controller understands them.

The rules are those of ros2_controllers (`validate_trajectory_msg` and
`Trajectory::interpolate_between_points`), so that a trajectory that the controller accepts is
accepted here too, and so that it can be told how far two motions through them differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.errors import TrajectoryError
from hodyn_ros.names import joint_order
from hodyn_ros.trajectory.extremes import control_points, largest_values
from hodyn_ros.trajectory.immutable import Immutable
from hodyn_ros.trajectory.jtc import jtc_expansions, segment_degrees
from hodyn_ros.trajectory.piecewise import BLOCK
from hodyn_ros.trajectory.spline import STANDSTILL, MotionSpline
from hodyn_ros.trajectory.timeline import checked_positions, checked_rows, checked_times

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Waypoints(Immutable):
    """Points of a joint trajectory; immutable.

    Raises
    ------
    TrajectoryError
        If there is no joint or no point, shapes do not fit, times do not increase strictly, a
        point has no positions, or a value is infinite or NaN where its row is given.
    """

    joint_names: tuple[str, ...]
    """Names of the n joints, in the order of the columns."""
    times: Array
    """Times from the start of the N points, shape (N,) [s]."""
    positions: Array
    """Shape (N, n) [rad] or [m]."""
    velocities: Array = None  # type: ignore[assignment]
    """Shape (N, n) [rad/s] or [m/s]; rows of NaN where a point has none. None: no point has
    any."""
    accelerations: Array = None  # type: ignore[assignment]
    """Shape (N, n) [rad/s^2] or [m/s^2]; rows of NaN where a point has none. None: no point has
    any."""

    def __post_init__(self) -> None:
        names = tuple(self.joint_names)
        if not names:
            raise TrajectoryError('joint_names is empty, expected the name of at least one joint.')
        times = checked_times(self.times, fewest=1)
        shape = (len(times), len(names))
        fields = {
            'times': times,
            'positions': checked_positions(self.positions, len(times), names),
            'velocities': checked_rows(self.velocities, 'velocities', shape, names)[0],
            'accelerations': checked_rows(self.accelerations, 'accelerations', shape, names)[0],
        }
        object.__setattr__(self, 'joint_names', names)
        for field, array in fields.items():
            object.__setattr__(self, field, array)
        super().__post_init__()


def waypoints_in_order(
    waypoints: Waypoints, joint_names: Sequence[str], held: Array | None = None
) -> Waypoints:
    """Waypoints with their joints in another order, matched by name.

    Parameters
    ----------
    waypoints : Waypoints
    joint_names : sequence of str
        All joints of the waypoints in the order wanted, as that of a model.
    held : ndarray, shape (n,), optional
        Positions at which joints stay that the waypoints leave out, in the order of `joint_names`
        [rad] or [m]. As with joint_trajectory_controller, their velocities and accelerations are
        zero where the waypoints have any.

    Returns
    -------
    Waypoints

    Raises
    ------
    JointNameError
        If a name of the waypoints is repeated, or unknown, or one of `joint_names` is missing and
        there are no `held` positions.
    """
    wanted = tuple(joint_names)
    if held is not None:
        waypoints = _with_held_joints(waypoints, wanted, held)
    order = joint_order(waypoints.joint_names, wanted)
    return Waypoints(
        wanted,
        waypoints.times,
        waypoints.positions[:, order],
        waypoints.velocities[:, order],
        waypoints.accelerations[:, order],
    )


def left_out(waypoints: Waypoints, joint_names: Sequence[str]) -> tuple[str, ...]:
    """List those of `joint_names` that the waypoints do not have, in their order."""
    present = set(waypoints.joint_names)
    return tuple(name for name in joint_names if name not in present)


def _with_held_joints(waypoints: Waypoints, wanted: tuple[str, ...], held: Array) -> Waypoints:
    missing = left_out(waypoints, wanted)
    columns = [wanted.index(name) for name in missing]
    positions = np.tile(np.asarray(held)[columns], (len(waypoints.times), 1))
    # Zero where the row is given, NaN where it is not.
    velocities, accelerations = (
        np.repeat(0.0 * rows[:, :1], len(missing), axis=1)
        for rows in (waypoints.velocities, waypoints.accelerations)
    )
    return Waypoints(
        waypoints.joint_names + missing,
        waypoints.times,
        np.hstack([waypoints.positions, positions]),
        np.hstack([waypoints.velocities, velocities]),
        np.hstack([waypoints.accelerations, accelerations]),
    )


def jtc_remarks(waypoints: Waypoints) -> tuple[str, ...]:
    """List what joint_trajectory_controller would not do with waypoints that are usable here.

    Parameters
    ----------
    waypoints : Waypoints

    Returns
    -------
    tuple of str
        One sentence for each of: a velocity at the end, which the controller refuses unless
        `allow_nonzero_velocity_at_trajectory_end` is set; and accelerations without velocities,
        for which it has no interpolation and returns zero positions.
    """
    remarks = []
    velocity = waypoints.velocities[-1]
    moving = [
        f'{name} ({value:g})'
        for name, value in zip(waypoints.joint_names, velocity)
        if abs(value) > STANDSTILL
    ]
    if moving:
        remarks.append(
            f'The last waypoint has the velocity of {", ".join(moving)}; by default '
            'joint_trajectory_controller refuses trajectories that do not end at rest.'
        )
    undefined = _degrees(waypoints) == 0
    if np.any(undefined):
        remarks.append(
            f'Waypoints {np.argmax(undefined)} and {np.argmax(undefined) + 1} have accelerations '
            'but not both have velocities; joint_trajectory_controller does not interpolate '
            'between such points, it commands zero positions.'
        )
    return tuple(remarks)


def _degrees(waypoints: Waypoints) -> NDArray[np.intp]:
    return segment_degrees(
        ~np.isnan(waypoints.velocities[:, 0]), ~np.isnan(waypoints.accelerations[:, 0])
    )


def deviation_from_jtc(spline: MotionSpline, waypoints: Waypoints) -> Array:
    """How far a spline leaves the motion of joint_trajectory_controller.

    Parameters
    ----------
    spline : MotionSpline
        Through the waypoints, its joints in their order.
    waypoints : Waypoints

    Returns
    -------
    ndarray, shape (n,)
        Largest absolute difference of the positions of each joint at any time [rad] or [m]. NaN if
        there is a segment that the controller does not interpolate, see `jtc.jtc_motion`.

    Raises
    ------
    TrajectoryError
        If the spline has other times or another number of joints than the waypoints.
    """
    n = len(waypoints.joint_names)
    if spline.states.shape[-1] != n:
        raise TrajectoryError(
            f'The spline has {spline.states.shape[-1]} joints, the waypoints have {n}.'
        )
    if not np.array_equal(spline.times, waypoints.times):
        raise TrajectoryError(
            f'The spline has {len(spline.times)} waypoints from {spline.start_time!r} s to '
            f'{spline.end_time!r} s, the waypoints have other times.'
        )
    if np.any(_degrees(waypoints) == 0):
        return np.full(n, np.nan)
    both = largest_values(_differences(spline, waypoints)).value
    return np.maximum(both[:n], both[n:])


def _differences(spline: MotionSpline, waypoints: Waypoints) -> Iterator[Array]:
    """Control points of the difference and of its mirror image, block by block of segments."""
    durations = np.diff(waypoints.times)
    fields = waypoints.times, waypoints.positions, waypoints.velocities, waypoints.accelerations
    for start in range(0, len(durations), BLOCK):
        stop = min(start + BLOCK, len(durations))
        difference = spline.expansions[start:stop].copy()
        jtc = jtc_expansions(*(field[start : stop + 1] for field in fields))
        difference[:, :, : jtc.shape[2]] -= jtc
        points = control_points(durations[start:stop], difference)
        yield np.concatenate([points, -points], axis=-1)
