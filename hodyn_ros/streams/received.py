"""Trajectories as they come, serialized: their head, and what has become of them."""

from __future__ import annotations

import struct
from typing import Any

from hodyn_ros.errors import MessageError, SizeError, TrajectoryError
from hodyn_ros.streams.health import LEFT_OUT
from hodyn_ros.streams.motion_stream import CHUNK, TRAJECTORY, Plan, Request
from hodyn_ros.streams.preparation import Host
from hodyn_ros.streams.timeline import NANOSECONDS, Stamp, nanoseconds

# Unpacking makes a Python object of every point and every name; for some messages that costs
# seconds and gigabytes. Their beginning says enough to refuse them. Source: OMG, DDS
# Interoperability Wire Protocol, CDR encapsulation; plain CDR aligns every value to its size.
_ENCAPSULATION = 4  # bytes before the content, from which alignment counts

# The joint names stand before the number of points. Nobody has so many joints.
MOST_NAMES = 4096


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
        stamp, n_points = _head(data)
    except struct.error as error:
        raise MessageError('The message cannot be unpacked: it is cut off.') from error
    if n_points > most_points:
        raise SizeError(
            f'JointTrajectory: it has {n_points} points, more than max_trajectory_points '
            f'({most_points}); send fewer points, or raise the parameter.'
        )
    if topic == CHUNK and not n_points:
        raise TrajectoryError(
            f'The chunk has no points; to stop, send an empty trajectory on {TRAJECTORY}.'
        )
    return Request(data if n_points else b'', nanoseconds(stamp), topic)


def _head(data: bytes) -> tuple[Stamp, int]:
    """Stamp and number of points of a serialized trajectory_msgs/JointTrajectory."""
    if len(data) < _ENCAPSULATION or data[0] or data[1] > 1:
        raise MessageError('The message cannot be unpacked: it is not in plain CDR.')
    order, place = '<' if data[1] else '>', _ENCAPSULATION

    def numbers(kinds: str) -> Any:
        nonlocal place
        place += -(place - _ENCAPSULATION) % 4
        found = struct.unpack_from(order + kinds, data, place)
        place += 4 * len(kinds)
        return found

    def skip_string() -> None:
        nonlocal place
        (length,) = numbers('I')
        place += length

    stamp = Stamp(*numbers('iI'))
    skip_string()
    (n_names,) = numbers('I')
    if n_names > MOST_NAMES:
        raise SizeError(
            f'JointTrajectory: it has {n_names} joint names, expected those of the robot, and no '
            f'more than {MOST_NAMES}.'
        )
    for _ in range(n_names):
        skip_string()
    (n_points,) = numbers('I')
    return stamp, n_points


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
