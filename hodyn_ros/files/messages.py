"""Messages in bags: their definitions, without a ROS installation, and many of them at a time.

Along a recording only stamps and numbers change, so that those of all messages that look the same
are taken out of their bytes at once. Source: OMG, DDS Interoperability Wire Protocol (plain CDR).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.checks import Array
from hodyn_ros.errors import FileError, MessageError
from hodyn_ros.names import listed
from hodyn_ros.resources import optional_import_module, share_file

HODYN_MESSAGES = ('JointEffort', 'JointMotion', 'MotorReference')
"""Messages of hodyn_msgs that bags are written with; none of them holds another one of them."""

_ENCAPSULATION = 4  # bytes before the content, from which alignment counts
_STAMP = slice(_ENCAPSULATION, _ENCAPSULATION + 8)
_MOST_LAYOUTS = 32  # in a batch that are looked for together
_SECOND = 1_000_000_000

Fields = dict[str, str]
"""Type of each field, as in a definition, by its path: `points[].positions` is `float64[]`."""


def rosbags(module: str, path: Path) -> Any:
    """Import a module of rosbags, which is not always installed.

    Parameters
    ----------
    module : str
        Such as 'rosbag2' or 'typesys'.
    path : pathlib.Path
        File that it is needed for, for the message.

    Returns
    -------
    module

    Raises
    ------
    FileError
        If rosbags is not installed; the message says how to install it.
    """
    need = f'{path}: files of this kind need rosbags'
    return optional_import_module(f'rosbags.{module}', need, 'bags', FileError)


def definition(name: str) -> str:
    """Text of a message definition of hodyn_msgs, such as that of 'JointEffort'.

    Parameters
    ----------
    name : str
        Name of the message without its package.

    Returns
    -------
    str
        Content of the .msg file.
    """
    return share_file(f'hodyn_msgs/msg/{name}.msg').read_text(encoding='utf-8')


@cache
def typestore() -> Any:
    """Definitions that rosbags knows, with those of hodyn_msgs.

    Returns
    -------
    rosbags.typesys.store.Typestore
        That of ROS 2 Jazzy; made once.
    """
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    store = get_typestore(Stores.ROS2_JAZZY)
    for name in HODYN_MESSAGES:
        store.register(get_types_from_msg(definition(name), f'hodyn_msgs/msg/{name}'))
    return store


def fields_of(types: Any, kind: str, prefix: str = '') -> Fields:
    """Fields of a type with those of the types in it, in the order of their bytes.

    Parameters
    ----------
    types : mapping
        Definitions of types, as rosbags has them.
    kind : str
        Such as 'sensor_msgs/msg/JointState'.
    prefix : str
        Path of the field that is of this type, with a point at its end.

    Returns
    -------
    Fields
        Types of the fields by their paths; those that are of types of their own are
        resolved.
    """
    found: Fields = {}
    for name, (node, what) in types[kind][1]:
        array = ''
        if node.name in ('ARRAY', 'SEQUENCE'):
            array = f'[{what[1]}]' if node.name == 'ARRAY' else '[]'
            node, what = what[0]
        if node.name == 'NAME':
            found |= fields_of(types, str(what), f'{prefix}{name}{array}.')
        else:
            found[f'{prefix}{name}'] = f'{what[0]}{array}'
    return found


def refuse_other_version(path: Path, connection: Any) -> None:
    """Refuse messages of another version of their type than the known one.

    Parameters
    ----------
    path : pathlib.Path
        Of the bag, for messages.
    connection : rosbags Connection
        Of a known type. Without a definition, as in bags before ROS 2 Iron, the messages are
        taken for those of the known version.

    Raises
    ------
    FileError
        If the definition in the bag cannot be read or has other fields.
    """
    if connection.msgdef.format.name != 'MSG':
        return
    store, kind = typestore(), connection.msgtype
    where = f'{path}, topic {connection.topic}: the'
    text = connection.msgdef.data.replace('\r\n', '\n')
    try:
        types = rosbags('typesys', path).get_types_from_msg(text, kind)
        # What it leaves out is a type that everybody knows.
        found = fields_of({**store.fielddefs, **types}, kind)
    except Exception as error:
        raise FileError(
            f'{where} definition of {kind} in the bag cannot be read: {error}'
        ) from error
    known = fields_of(store.fielddefs, kind)
    if list(found.items()) != list(known.items()):
        have, expected = (
            listed(f'{what} {name}' for name, what in fields.items())
            for fields in (found, known)
        )
        raise FileError(
            f'{where} messages are of another version of {kind}, with the fields {have}; '
            f'expected {expected}. Convert the bag.'
        )


@dataclass(frozen=True, eq=False)
class DecodedMessages:
    """Messages of the same layout out of a batch.

    Attributes
    ----------
    rows : ndarray of int, shape (N,)
        Which of the batch they are.
    names : dict of str to tuple of str
        Names in the fields of strings, the same in all of them.
    stamps : ndarray of int, shape (N,)
        Of the headers [ns].
    values : dict of str to ndarray, shape (N, elements)
        Fields of floating-point numbers; 0 elements where a field is empty.
    """

    rows: NDArray[np.intp]
    names: dict[str, tuple[str, ...]]
    stamps: NDArray[np.int64]
    values: dict[str, Array]


def decode(kind: str, batch: Sequence[bytes], first: int = 0) -> list[DecodedMessages]:
    """Take messages apart that are a header, names and arrays; one group for each layout.

    They are serialized messages of a type that `typestore` knows; `first` messages came before
    them. A message that is cut off or in another encoding raises `MessageError`.

    Parameters
    ----------
    kind : str
        Type of the messages.
    batch : sequence of bytes
        Messages of this type in the order of the log.
    first : int
        Number of messages before them, for errors.

    Returns
    -------
    list of DecodedMessages
        In no particular order; `rows` say where they belong.

    Raises
    ------
    MessageError
        If a message is cut off, or not in plain CDR.
    """
    fields = fields_of(typestore().fielddefs, kind)
    results: list[DecodedMessages] = []
    lengths = np.array([len(data) for data in batch])
    rest = np.arange(len(batch))
    while len(rest):
        head = int(rest[0])
        try:
            names, places, varies = _layout(batch[head], fields)
        except ValueError as error:
            raise MessageError(f'message {first + head} is damaged: {error}') from error
        same = rest[lengths[rest] == lengths[head]]
        if len(results) >= _MOST_LAYOUTS:
            same = rest[:1]  # Every message another one: go through them once, not often.
        data = np.frombuffer(b''.join([batch[i] for i in same.tolist()]), dtype=np.uint8)
        data = data.reshape(len(same), -1)
        constant = np.flatnonzero(~varies)
        alike = (data[:, constant] == data[0, constant]).all(axis=1)
        rows, data = same[alike], data if alike.all() else data[alike]
        rest = np.setdiff1d(rest, rows, assume_unique=True)
        order = '<' if batch[head][1] else '>'
        # Nanoseconds are unsigned, but never that large.
        stamps = np.ascontiguousarray(data[:, _STAMP]).view(order + 'i4').astype(np.int64)
        values = {
            name: np.ascontiguousarray(data[:, place : place + 8 * count])
            .view(order + 'f8')
            .astype(np.float64)
            .reshape(len(data), count)
            for name, (place, count) in places.items()
        }
        results.append(DecodedMessages(rows, names, stamps @ (_SECOND, 1), values))
    return results


def encode(
    kind: str,
    stamps: NDArray[np.int64],
    frame_id: str,
    fields: dict[str, Any],
    before: int = 0,
) -> NDArray[np.uint8]:
    """Serialize messages of the same layout, with stamps (N,) [ns]; shape (N, bytes).

    Fields are names, arrays of shape (N, elements), or numbers that are the same in all messages;
    arrays that are left out are empty. So many bytes `before` each message are left open.

    Parameters
    ----------
    kind : str
        Type of the messages, with a header, that `typestore` knows.
    stamps : ndarray of int, shape (N,)
        Of the headers [ns].
    frame_id : str
        Of the headers.
    fields : dict of str to object
        Tuples of names, arrays (N, elements), or numbers.
    before : int
        Bytes left open before each message.

    Returns
    -------
    ndarray of uint8, shape (N, before + bytes)
        In little-endian plain CDR.
    """
    store = typestore()
    content: dict[str, Any] = {}
    for name, _ in store.fielddefs[kind][1]:
        item = fields.get(name, np.empty(0))
        content[name] = list(item) if isinstance(item, tuple) else item
        if isinstance(item, np.ndarray) and name in fields:
            content[name] = item[0]
    time = store.types['builtin_interfaces/msg/Time'](sec=0, nanosec=0)
    content['header'] = store.types['std_msgs/msg/Header'](stamp=time, frame_id=frame_id)
    template = bytes(store.serialize_cdr(store.types[kind](**content), kind))
    _, places, _ = _layout(template, fields_of(store.fielddefs, kind))
    records = np.empty((len(stamps), before + len(template)), dtype=np.uint8)
    data = records[:, before:]
    data[:] = np.frombuffer(template, dtype=np.uint8)
    data[:, _STAMP] = (
        np.stack(np.divmod(stamps, _SECOND), axis=1).astype('<u4').view(np.uint8)
    )
    for name, (place, count) in places.items():
        if count:
            raw = np.ascontiguousarray(fields[name], dtype='<f8').view(np.uint8)
            data[:, place : place + 8 * count] = raw
    return records


def _layout(
    data: bytes, fields: Fields
) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[int, int]], NDArray[np.bool_]]:
    """Names in a message, places and numbers of elements of its arrays, and bytes that vary.

    Parameters
    ----------
    data : bytes
        A message in plain CDR, little- or big-endian.
    fields : Fields
        Of its type, see `fields_of`.

    Returns
    -------
    names : dict of str to tuple of str
        Elements of the fields of strings.
    values : dict of str to (int, int)
        Place of the first byte and number of elements of each field of float64.
    varies : ndarray of bool, shape (bytes,)
        Bytes of numbers, stamps and padding, which may differ between messages of the same
        layout.

    Raises
    ------
    ValueError
        If it is cut off or in another encoding.
    """
    if len(data) < _STAMP.stop or data[0] != 0 or data[1] not in (0, 1):
        raise ValueError('it is not in plain CDR')
    place = _STAMP.stop
    names: dict[str, tuple[str, ...]] = {}
    values: dict[str, tuple[int, int]] = {}
    varies = np.zeros(len(data), dtype=np.bool_)
    varies[2:place] = True  # Options and stamp.

    def take(size: int, alignment: int = 1, varying: bool = False) -> int:
        """Place of the next bytes; before them is whatever was in the memory of the sender."""
        nonlocal place
        start = place + -(place - _ENCAPSULATION) % alignment
        if size > len(data) - start:
            raise ValueError('it is cut off')
        varies[place : start + size if varying else start] = True
        place = start + size
        return start

    def count() -> int:
        return int(struct.unpack_from('<I' if data[1] else '>I', data, take(4, 4))[0])

    def text() -> str:
        start = take(count())
        return data[start:place].rstrip(b'\x00').decode()

    text()  # frame_id
    for name, what in fields.items():
        if name.startswith('header.'):
            continue
        if what == 'string[]':
            names[name] = tuple(text() for _ in range(count()))
        elif what == 'float64[]':
            elements = count()
            values[name] = take(8 * elements, 8 if elements else 1, varying=True), elements
        else:
            size = np.dtype(what).itemsize
            take(size, size, varying=True)
    varies[place:] = True  # Padding at the end may hold anything.
    return names, values, varies
