"""Serialized messages that are a header, names and arrays, many of them at a time.

Along a recording only stamps and numbers change, the names and lengths between them stay. So the
first message is taken apart, and the numbers of all that look the same are taken out of their
bytes at once, or put in. Source: OMG, DDS Interoperability Wire Protocol, CDR encapsulation; plain
CDR aligns every value to its size.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.errors import MessageError
from hodyn_ros.io.samples import Array

_ENCAPSULATION = 4  # bytes before the content, from which alignment counts
_STAMP = slice(_ENCAPSULATION, _ENCAPSULATION + 8)
_HEAD = _ENCAPSULATION + 8
_MOST_LAYOUTS = 32  # in a batch that are looked for together
_SECOND = 1_000_000_000

NAMES, VALUES = 'names', 'values'

SCALARS = {'uint8': 'B', 'int8': 'b', 'float64': 'd'}

MESSAGES: dict[str, tuple[tuple[str, str], ...]] = {
    'sensor_msgs/msg/JointState': (
        ('name', NAMES),
        ('position', VALUES),
        ('velocity', VALUES),
        ('effort', VALUES),
    ),
    'hodyn_msgs/msg/JointMotion': (
        ('joint_names', NAMES),
        ('position', VALUES),
        ('velocity', VALUES),
        ('acceleration', VALUES),
        ('jerk', VALUES),
        ('snap', VALUES),
    ),
    'hodyn_msgs/msg/JointEffort': (
        ('joint_names', NAMES),
        ('effort', VALUES),
        ('effort_dot', VALUES),
        ('effort_ddot', VALUES),
        ('effort_std', VALUES),
        ('effort_dot_std', VALUES),
        ('effort_ddot_std', VALUES),
        ('valid_order', 'uint8'),
        ('continuous_order', 'int8'),
        ('delay', 'float64'),
        ('source', 'uint8'),
    ),
    'hodyn_msgs/msg/MotorReference': (
        ('motor_names', NAMES),
        ('joint_names', NAMES),
        ('position', VALUES),
        ('velocity', VALUES),
        ('acceleration', VALUES),
        ('torque', VALUES),
        ('torque_dot', VALUES),
        ('deflection', VALUES),
        ('source', 'uint8'),
    ),
}
"""Fields behind the header, by the type of the message."""


@dataclass(frozen=True, eq=False)
class Layout:
    """Where the numbers of a message stand, and what stands between them."""

    length: int
    """Bytes of the message."""
    order: str
    """'<' or '>'"""
    names: dict[str, tuple[str, ...]]
    values: dict[str, tuple[int, int]]
    """Place of the first byte and number of elements."""
    constant: NDArray[np.intp]
    """Places of the bytes that do not change."""
    bytes_there: NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Decoded:
    """Messages of the same layout out of a batch."""

    rows: NDArray[np.intp]
    """Which of the batch they are, (N,)."""
    names: dict[str, tuple[str, ...]]
    stamps: NDArray[np.int64]
    """Stamps of the headers, shape (N,) [ns]."""
    values: dict[str, Array]
    """Shape (N, number of elements)."""


class Decoder:
    """Takes the numbers out of serialized messages of one type.

    Parameters
    ----------
    kind : str
        A key of `MESSAGES`.
    """

    def __init__(self, kind: str) -> None:
        self._fields = MESSAGES[kind]

    def decode(self, batch: Sequence[bytes], first: int = 0) -> list[Decoded]:
        """Take messages apart.

        Parameters
        ----------
        batch : sequence of bytes
        first : int
            Number of messages before, for errors.

        Returns
        -------
        list of Decoded
            One for each layout.

        Raises
        ------
        MessageError
            If a message is cut off or in another encoding.
        """
        lengths = np.array([len(data) for data in batch], dtype=np.intp)
        rest = np.arange(len(batch), dtype=np.intp)
        results: list[Decoded] = []
        while len(rest):
            head = int(rest[0])
            try:
                layout = _layout(batch[head], self._fields)
            except (struct.error, ValueError) as error:
                reason = 'it is cut off' if isinstance(error, struct.error) else error
                raise MessageError(f'message {first + head} is damaged: {reason}') from error
            same = rest[lengths[rest] == lengths[head]]
            if len(results) >= _MOST_LAYOUTS:
                same = rest[:1]  # Every message another one: go through them once, not often.
            data = np.frombuffer(b''.join([batch[i] for i in same.tolist()]), dtype=np.uint8)
            data = data.reshape(len(same), -1)
            alike = (data[:, layout.constant] == layout.bytes_there).all(axis=1)
            rows = same[alike]
            results.append(_decoded(layout, rows, data if alike.all() else data[alike]))
            rest = np.setdiff1d(rest, rows, assume_unique=True)
        return results


def encode(
    kind: str,
    stamps: NDArray[np.int64],
    frame_id: str,
    fields: dict[str, Any],
) -> list[bytes]:
    """Serialize messages of the same layout.

    Parameters
    ----------
    kind : str
        A key of `MESSAGES`.
    stamps : ndarray of int, shape (N,)
        [ns]
    frame_id : str
    fields : dict
        By the name of the field: names, arrays of shape (N, elements), or a number that is the
        same in all messages. Arrays that are left out are empty.

    Returns
    -------
    list of bytes
    """
    template = bytearray(b'\x00\x01\x00\x00' + bytes(8))
    _add_string(template, frame_id)
    places: list[tuple[int, Array]] = []
    for name, what in MESSAGES[kind]:
        if what == NAMES:
            _align(template, 4)
            template += struct.pack('<I', len(fields[name]))
            for text in fields[name]:
                _add_string(template, text)
        elif what == VALUES:
            values = fields.get(name)
            count = 0 if values is None else values.shape[1]
            _align(template, 4)
            template += struct.pack('<I', count)
            if values is not None and count:
                _align(template, 8)
                places.append((len(template), values))
                template += bytes(8 * count)
        else:
            code = SCALARS[what]
            _align(template, struct.calcsize(code))
            template += struct.pack('<' + code, fields[name])
    data = np.empty((len(stamps), len(template)), dtype=np.uint8)
    data[:] = np.frombuffer(bytes(template), dtype=np.uint8)
    parts = np.empty((len(stamps), 2), dtype='<u4')
    parts[:, 0], parts[:, 1] = stamps // _SECOND, stamps % _SECOND
    data[:, _STAMP] = parts.view(np.uint8)
    for place, values in places:
        raw = np.ascontiguousarray(values, dtype='<f8').view(np.uint8)
        data[:, place : place + raw.shape[1]] = raw
    whole, length = data.tobytes(), len(template)
    return [whole[i : i + length] for i in range(0, len(whole), length)]


def _align(data: bytearray, size: int) -> None:
    data += bytes(-(len(data) - _ENCAPSULATION) % size)


def _add_string(data: bytearray, text: str) -> None:
    _align(data, 4)
    raw = text.encode() + b'\x00'
    data += struct.pack('<I', len(raw)) + raw


def _layout(data: bytes, fields: Sequence[tuple[str, str]]) -> Layout:
    """Walk through a message."""
    if len(data) < _HEAD or data[0] != 0 or data[1] not in (0, 1):
        raise ValueError('it is not in plain CDR')
    order = '<' if data[1] else '>'
    place = _HEAD
    names: dict[str, tuple[str, ...]] = {}
    values: dict[str, tuple[int, int]] = {}
    varies = np.zeros(len(data), dtype=np.bool_)
    varies[2:_HEAD] = True  # Options and stamp.

    def align(size: int) -> None:
        nonlocal place
        # What stands in between is whatever was in the memory of the sender.
        padding = -(place - _ENCAPSULATION) % size
        varies[place : place + padding] = True
        place += padding

    def count() -> int:
        nonlocal place
        align(4)
        (number,) = struct.unpack_from(order + 'I', data, place)
        place += 4
        if number > len(data) - place:
            raise ValueError('it is cut off')
        return int(number)

    def text() -> str:
        nonlocal place
        length = count()
        raw = data[place : place + length]
        place += length
        return raw.rstrip(b'\x00').decode()

    text()  # frame_id
    for name, what in fields:
        if what == NAMES:
            names[name] = tuple(text() for _ in range(count()))
        elif what == VALUES:
            elements = count()
            if elements:
                align(8)
            if 8 * elements > len(data) - place:
                raise ValueError('it is cut off')
            values[name] = place, elements
            varies[place : place + 8 * elements] = True
            place += 8 * elements
        else:
            size = struct.calcsize(SCALARS[what])
            align(size)
            if place + size > len(data):
                raise ValueError('it is cut off')
            varies[place : place + size] = True
            place += size
    # Padding at the end may hold anything.
    varies[place:] = True
    constant = np.flatnonzero(~varies)
    there = np.frombuffer(data, dtype=np.uint8)[constant]
    return Layout(len(data), order, names, values, constant, there)


def _decoded(layout: Layout, rows: NDArray[np.intp], data: NDArray[np.uint8]) -> Decoded:
    parts = np.ascontiguousarray(data[:, _STAMP]).view(layout.order + 'i4').astype(np.int64)
    # Nanoseconds are unsigned, but never that large.
    values = {
        name: np.ascontiguousarray(data[:, place : place + 8 * count])
        .view(layout.order + 'f8')
        .astype(np.float64)
        .reshape(len(data), count)
        for name, (place, count) in layout.values.items()
    }
    return Decoded(rows, layout.names, parts[:, 0] * _SECOND + parts[:, 1], values)
