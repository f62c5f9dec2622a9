"""Trajectories as messages: what a stream of motions takes of them, what has become of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hodyn_ros.errors import MessageError, SizeError, TrajectoryError
from hodyn_ros.ros.base.conversions import MOST_NAMES, nanoseconds, trajectory_head
from hodyn_ros.ros.base.diagnostics import LEFT_OUT
from hodyn_ros.streams.motion_stream import CHUNK, TRAJECTORY, Plan, Request
from hodyn_ros.streams.timeline import NANOSECONDS

if TYPE_CHECKING:
    from hodyn_ros.ros.base.node import RobotNode


def request_of(data: bytes, most_points: int, topic: str = TRAJECTORY) -> Request:
    """Request of a serialized JointTrajectory, which is not unpacked yet.

    Raises
    ------
    MessageError
        If it is damaged.
    SizeError
        If it has more points than may be, or more joints than any robot.
    TrajectoryError
        If a chunk is empty.
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


def report_plan(node: RobotNode[Any], plan: Plan) -> None:
    """Count and log what has become of a trajectory."""
    logger, remarks = node.get_logger(), list(plan.remarks)
    is_chunk = plan.topic == CHUNK  # there are many
    if plan.error:
        node.diagnostics.refused(plan.topic, plan.error, plan.kind)
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
        what = 'Trajectory taken: a motion' if plan.number else 'The robot is stopped: a motion'
        logger.info(f'{what} of {duration:.3f} s.')
    elif remarks:
        logger.info(remarks.pop(0))
    for remark in remarks:  # they come with the whole answer too
        logger.debug(remark)
    for text in plan.warnings:
        logger.warning(text)
