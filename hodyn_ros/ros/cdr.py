"""What can be told of a serialized message before it is unpacked.

Unpacking makes a Python object of every point and every name; for some messages that costs seconds
and gigabytes. Their beginning says enough to refuse them. Source: OMG, DDS Interoperability Wire
Protocol, CDR encapsulation; plain CDR aligns every value to its size.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

_ENCAPSULATION = 4  # bytes before the content, from which alignment counts

# The joint names stand before the number of points. Nobody has so many joints.
MOST_NAMES = 4096


class TrajectoryHead(NamedTuple):
    """Beginning of a serialized trajectory_msgs/JointTrajectory."""

    seconds: int
    nanoseconds: int
    n_names: int
    n_points: int | None
    """None if there are too many names to look behind them."""


def trajectory_head(data: bytes) -> TrajectoryHead:
    """Read the stamp and the sizes of a serialized trajectory_msgs/JointTrajectory.

    Raises
    ------
    ValueError
        If the message is too short or has another encapsulation than plain CDR.
    """
    if len(data) < _ENCAPSULATION or data[0] != 0 or data[1] not in (0, 1):
        raise ValueError('the message is not in plain CDR')
    order = '<' if data[1] else '>'
    try:
        seconds, nanoseconds = struct.unpack_from(order + 'iI', data, _ENCAPSULATION)
        position = _behind_string(data, order, _ENCAPSULATION + 8)
        n_names, position = _count(data, order, position)
        if n_names > MOST_NAMES:
            return TrajectoryHead(seconds, nanoseconds, n_names, None)
        for _ in range(n_names):
            position = _behind_string(data, order, position)
        n_points, _ = _count(data, order, position)
    except struct.error as error:
        raise ValueError('the message is cut off') from error
    return TrajectoryHead(seconds, nanoseconds, n_names, n_points)


def _count(data: bytes, order: str, position: int) -> tuple[int, int]:
    """Aligned 32-bit number and the position behind it."""
    position += -(position - _ENCAPSULATION) % 4
    return struct.unpack_from(order + 'I', data, position)[0], position + 4


def _behind_string(data: bytes, order: str, position: int) -> int:
    length, position = _count(data, order, position)
    return position + length
