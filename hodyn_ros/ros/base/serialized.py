"""Motions and efforts of single instants as bytes: numbers are read and written where they stand.

Messages of a stream differ in stamp and numbers alone. The first one of a kind is unpacked or made
by rclpy, and says where the numbers are; that takes most of the time of a sample.
"""

from __future__ import annotations

import struct

import numpy as np
from hodyn_msgs.msg import JointEffort, JointMotion
from rclpy.serialization import deserialize_message, serialize_message

from hodyn_ros.model.robot import RobotModel
from hodyn_ros.ros.base.conversions import (
    MOTION_FIELDS,
    joint_indices,
    message_of_joints,
    motion_from_message,
    write_efforts,
)
from hodyn_ros.streams.timeline import NANOSECONDS, Stamp, nanoseconds
from hodyn_ros.typing import Array

_STAMP = struct.Struct('<iI')
_STAMP_AT, _HEAD_AT = 4, 12  # behind the four bytes that say how a message is encoded
_LITTLE = b'\x00\x01'  # plain CDR, little-endian


def _rows(data: bytes | bytearray, begin: int, count: int, n: int) -> Array:
    """Fields of n numbers each, one behind the other; eight bytes before each say how many."""
    return np.ndarray((count, n), '<f8', data, begin, (8 * (n + 1), 8))


class MotionReader:
    """Motions of serialized JointMotion messages."""

    def __init__(self) -> None:
        self._head = b''  # frame and names of the latest message with all fields
        self._model: RobotModel | None = None  # to which they have been compared
        self._order: list[int] | None = None

    def read(self, data: bytes, model: RobotModel) -> tuple[Array, int]:
        """Motion in model order, and stamp [ns].

        Parameters
        ----------
        data : bytes
            Serialized JointMotion.
        model : RobotModel

        Returns
        -------
        motion : ndarray, shape (K, n)
        stamp : int
            [ns]

        Raises
        ------
        HodynError
            As of `motion_from_message`, and of a stamp that cannot be used.
        """
        orders, n = len(MOTION_FIELDS), model.n_joints
        begin = len(data) - 8 * (orders * (n + 1) - 1)
        head = data[_HEAD_AT:begin]
        if model is self._model and head == self._head and data[:2] == _LITTLE:
            counts = np.ndarray(orders - 1, '<u4', data, begin + 8 * n, 8 * (n + 1))
            values = _rows(data, begin, orders, n)
            if (counts == n).all() and np.isfinite(values).all():
                motion = values.copy() if self._order is None else values[:, self._order]
                time = Stamp(*_STAMP.unpack_from(data, _STAMP_AT))
                return np.ascontiguousarray(motion), nanoseconds(time)
        message = deserialize_message(data, JointMotion)
        motion = motion_from_message(model, message)
        if len(motion) == orders:
            self._head, self._model = head, model
            self._order = joint_indices(tuple(message.joint_names), model.joint_names)
        return motion, nanoseconds(message.header.stamp)


class EffortWriter:
    """Messages about the efforts of a robot at single instants.

    Parameters
    ----------
    model : RobotModel
    """

    def __init__(self, model: RobotModel) -> None:
        self._message = message_of_joints(JointEffort, model)
        self._kept: dict[tuple[int, int, int], tuple[bytearray, Array] | None] = {}

    def message(
        self,
        effort: Array,
        stamp: int,
        source: int,
        continuous: int,
        deviations: Array | None = None,
        delay: float = 0.0,
    ) -> JointEffort | bytes:
        """Message, serialized if it has no deviations; arguments as of `write_efforts`."""
        key = len(effort), source, continuous
        if deviations is None and not delay:
            if key not in self._kept:
                self._kept[key] = self._serialized(effort.shape, key)
            if found := self._kept[key]:
                data, rows = found
                rows[:] = effort
                _STAMP.pack_into(data, _STAMP_AT, *divmod(stamp, NANOSECONDS))
                return bytes(data)
        write_efforts(self._message, effort, stamp, source, continuous, deviations, delay)
        return self._message

    def _serialized(
        self, shape: tuple[int, ...], key: tuple[int, int, int]
    ) -> tuple[bytearray, Array] | None:
        """Serialized message and its numbers; None if they are not where they should be."""
        count, n = shape
        marks = np.arange(1.0, 1.0 + count * n, dtype=np.float64).reshape(shape)
        write_efforts(self._message, marks, 0, *key[1:])
        data = bytearray(serialize_message(self._message))
        rows = _rows(data, data.find(marks[0].tobytes()), count, n)
        return (data, rows) if data[:2] == _LITTLE and (rows == marks).all() else None
