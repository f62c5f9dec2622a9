"""Trajectories as they come, serialized: their head, and what has become of them."""

from __future__ import annotations

import struct
from typing import NamedTuple

from hodyn_ros.errors import MessageError, SizeError, TrajectoryError
from hodyn_ros.streams.health import LEFT_OUT
from hodyn_ros.streams.motion_stream import CHUNK, TRAJECTORY, Plan, Request
from hodyn_ros.streams.preparation import Host
from hodyn_ros.streams.timeline import NANOSECONDS, nanoseconds

# Unpacking makes a Python object of every point and every name; for some messages that costs
# seconds and gigabytes. Their beginning says enough to refuse them. Source: OMG, DDS
# Interoperability Wire Protocol, CDR encapsulation; plain CDR aligns every value to its size.
_ENCAPSULATION = 4  # bytes before the content, from which alignment counts

# The joint names stand before the number of points. Nobody has so many joints.
MOST_NAMES = 4096


class Stamp(NamedTuple):
    """Time of a message."""

    sec: int
    nanosec: int


class TrajectoryHead(NamedTuple):
    """Beginning of a serialized trajectory.

    Attributes
    ----------
    stamp : Stamp
    n_names : int
    n_points : int, optional
        None if there are too many names to look behind them.
    """

    stamp: Stamp
    n_names: int
    n_points: int | None


def trajectory_head(data: bytes) -> TrajectoryHead:
    """Stamp and sizes of a serialized trajectory_msgs/JointTrajectory.

    Parameters
    ----------
    data : bytes

    Returns
    -------
    TrajectoryHead

    Raises
    ------
    ValueError
        If the message is too short or has another encapsulation than plain CDR.
    """
    if len(data) < _ENCAPSULATION or data[0] != 0 or data[1] not in (0, 1):
        raise ValueError('the message is not in plain CDR')
    order = '<' if data[1] else '>'
    try:
        sec, nanosec = struct.unpack_from(order + 'iI', data, _ENCAPSULATION)
        stamp = Stamp(sec, nanosec)
        position = _behind_string(data, order, _ENCAPSULATION + 8)
        n_names, position = _count(data, order, position)
        if n_names > MOST_NAMES:
            return TrajectoryHead(stamp, n_names, None)
        for _ in range(n_names):
            position = _behind_string(data, order, position)
        n_points, _ = _count(data, order, position)
    except struct.error as error:
        raise ValueError('the message is cut off') from error
    return TrajectoryHead(stamp, n_names, n_points)


def _count(data: bytes, order: str, position: int) -> tuple[int, int]:
    """Aligned 32-bit number and the position behind it."""
    position += -(position - _ENCAPSULATION) % 4
    return struct.unpack_from(order + 'I', data, position)[0], position + 4


def _behind_string(data: bytes, order: str, position: int) -> int:
    """Position behind a string that begins at a position."""
    length, position = _count(data, order, position)
    return position + length


def request_of(data: bytes, most_points: int, topic: str = TRAJECTORY) -> Request:
    """Request of a serialized JointTrajectory, which is not unpacked yet.

    Parameters
    ----------
    data : bytes
    most_points : int
        Largest number of points.
    topic : str
        `TRAJECTORY` or `CHUNK`.

    Returns
    -------
    Request
        Without data if the trajectory has no points, which stops the motion.

    Raises
    ------
    MessageError
        If it is damaged.
    SizeError
        If it has more points than may be, or more joints than any robot.
    TrajectoryError
        If a chunk is empty.
    MotionError
        If no motion can follow its stamp.
    """
    try:
        head = trajectory_head(data)
    except ValueError as error:
        raise MessageError(f'The message cannot be unpacked: {error}.') from error
    if head.n_points is None:
        raise SizeError(
            f'JointTrajectory: it has {head.n_names} joint names, expected those of the '
            f'robot, and no more than {MOST_NAMES}.'
        )
    if head.n_points > most_points:
        raise SizeError(
            f'JointTrajectory: it has {head.n_points} points, more than '
            f'max_trajectory_points ({most_points}); send fewer points, or raise the parameter.'
        )
    if topic == CHUNK and not head.n_points:
        raise TrajectoryError(
            f'The chunk has no points; to stop, send an empty trajectory on {TRAJECTORY}.'
        )
    return Request(data if head.n_points else b'', nanoseconds(head.stamp), topic)


def report_plan(node: Host, plan: Plan) -> None:
    """Count and log what has become of a trajectory.

    Parameters
    ----------
    node : Host
    plan : Plan
        Of chunks, only refusals are logged.
    """
    logger, remarks = node.get_logger(), list(plan.remarks)
    is_chunk = plan.topic == CHUNK  # there are many
    if plan.error:
        node.diagnostics.refused(plan.topic, plan.error)
        node.log_error(plan.topic, f'{plan.topic} refused: {plan.error}', is_chunk)
        return
    if is_chunk and plan.planned is None:
        node.diagnostics.input(CHUNK).add(LEFT_OUT)
        return
    node.diagnostics.received(plan.topic)
    if is_chunk:
        return
    if plan.planned is not None:
        duration = (plan.planned.last - plan.planned.first) / NANOSECONDS
        what = (
            'Trajectory taken: a motion'
            if plan.number
            else 'The robot is stopped: a motion'
        )
        logger.info(f'{what} of {duration:.3f} s.')
    elif remarks:
        logger.info(remarks.pop(0))
    for remark in remarks:  # they come with the whole answer too
        logger.debug(remark)
    for text in plan.warnings:
        logger.warning(text)
