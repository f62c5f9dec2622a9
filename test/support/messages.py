"""Messages of the two-link arm, and the numbers in messages."""

from __future__ import annotations

from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from hodyn_msgs.msg import JointMotion, JointMotionTrajectory
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

FIELDS = ('position', 'velocity', 'acceleration', 'jerk', 'snap')
EFFORTS = ('effort', 'effort_dot', 'effort_ddot')
GRAVITY = (0.0, 0.0, -9.81)
NAMES = ('shoulder', 'elbow')
MOTION = np.array([[0.3, -0.8], [1.1, 0.4], [-0.6, 2.0], [3.0, -1.0], [0.5, 7.0]])


def time_of(nanoseconds: int) -> Time:
    """Stamp of a number of nanoseconds."""
    return Time(sec=nanoseconds // 10**9, nanosec=nanoseconds % 10**9)


def nanoseconds(stamp: Time) -> int:
    """Stamp as a number."""
    return stamp.sec * 10**9 + stamp.nanosec


def stamp_of(message: Any) -> int:
    """Stamp in the header of a message [ns]."""
    return nanoseconds(message.header.stamp)


def joint_motion(
    motion: Any = MOTION, names: Any = NAMES, stamp: int = 0, **fields: Any
) -> JointMotion:
    """Sample with a stamp [ns]."""
    message = JointMotion(joint_names=list(names))
    message.header.stamp = time_of(stamp)
    for field, values in zip(FIELDS, motion):
        setattr(message, field, [float(value) for value in values])
    for field, value in fields.items():
        setattr(message, field, value)
    return message


def motion_trajectory(
    times: Any, motions: Any, names: Any = NAMES, stamp: int = 0
) -> JointMotionTrajectory:
    """Samples (N, K, n) in flat arrays, with a stamp [ns]."""
    message = JointMotionTrajectory(joint_names=list(names), time_from_start=list(times))
    message.header.stamp = time_of(stamp)
    for field, values in zip(FIELDS, np.moveaxis(np.asarray(motions), 1, 0)):
        setattr(message, field, values.ravel().tolist())
    return message


def joint_trajectory(
    positions: Any = ((0.0, 0.0), (0.5, -0.4), (0.0, 0.0)),
    times: Any = (0.0, 0.1, 0.2),
    names: Any = NAMES,
    stamp: int = 0,
) -> JointTrajectory:
    """Trajectory with positions alone; there and back, so that it can be sent again."""
    message = JointTrajectory(joint_names=list(names))
    message.header.stamp = time_of(stamp)
    for instant, position in zip(times, positions):
        point = JointTrajectoryPoint(positions=list(position))
        seconds, rest = divmod(round(instant * 1e9), 10**9)
        point.time_from_start.sec, point.time_from_start.nanosec = seconds, rest
        message.points.append(point)
    return message


def rows(message: Any, fields: Any = EFFORTS) -> np.ndarray:
    """What a message has of fields, one in a row; those that are empty are left out."""
    return np.array(
        [row for row in (getattr(message, field) for field in fields) if len(row)]
    )


def samples(message: Any, fields: Any = EFFORTS) -> np.ndarray:
    """What a message has of flat arrays, shape (N, K, n)."""
    found = rows(message, fields)
    return found.reshape(len(found), -1, len(message.joint_names)).swapaxes(0, 1)
