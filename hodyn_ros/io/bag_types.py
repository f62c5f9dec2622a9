"""Message types as a bag defines them, and as this package knows them.

A type is known by its name, but a bag may hold another version of it. Its bytes would then be
taken for what they are not, so the definition in the bag is compared with the known one, and
messages of another version are translated field by field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hodyn_ros.errors import FileError
from hodyn_ros.io.access import optional, reading
from hodyn_ros.io.definitions import EXTRA, typestore
from hodyn_ros.names import listed

_OPTIONAL = (
    *('velocity', 'acceleration', 'jerk', 'snap'),
    *('points.velocities', 'points.accelerations'),
)
"""Fields that another version may lack: they are as good as empty."""

_UNUSED = ('effort', 'points.effort', 'header.frame_id')
"""Fields that nothing is read from: they may be whatever they are."""

_FLOATS = ('float32', 'float64')
_SEPARATOR = '=' * 80 + '\n'
_HASH = re.compile('RIHS01_[0-9a-f]{64}')
_NAME = re.compile('[A-Za-z][A-Za-z0-9_]*(/[A-Za-z][A-Za-z0-9_]*)*')

Translation = Callable[[bytes], bytes]
Convert = Callable[[Any], Any]
Type = tuple[Any, Any]
Types = dict[str, tuple[Any, list[tuple[str, Type]]]]


def translations(path: Path, reader: Any, connections: Sequence[Any]) -> dict[int, Any]:
    """Find the `translation` of each connection, by its number.

    Parameters
    ----------
    path : pathlib.Path
    reader : rosbags.rosbag2.Reader
        Open.
    connections : sequence of rosbags.interfaces.Connection
        Of one topic and one type.

    Returns
    -------
    dict of int to callable or None

    Raises
    ------
    FileError
        As `translation`, or if the files of a split bag have different definitions.
    """
    result = {}
    for item in connections:
        # The library shows one definition for all files of a folder.
        stored = {
            other.msgdef
            for storage in getattr(reader.storage, 'storages', ())
            for other in storage.connections
            if (other.topic, other.msgtype) == (item.topic, item.msgtype)
            and other.msgdef.format.name != 'NONE'
        }
        result[item.id] = translation(path, item)
        if len(stored) > 1:
            found = [translation(path, item._replace(msgdef=text)) for text in stored]
            if any(translate is not None for translate in found):
                raise FileError(
                    f'{path}, topic {item.topic}: the files of the bag hold several versions of '
                    f'{item.msgtype}. Give its storage files one by one.'
                )
    return result


def translation(path: Path, connection: Any) -> Translation | None:
    """Find how messages of a topic become those of the known definition of their type.

    Parameters
    ----------
    path : pathlib.Path
        Bag, for messages.
    connection : rosbags.interfaces.Connection
        Of a type that motions are read from.

    Returns
    -------
    callable or None
        None: the definitions agree, or the bag says nothing about its own.

    Raises
    ------
    FileError
        If the definitions differ in a field that is needed.
    """
    store = typestore(path)
    kind, digest = connection.msgtype, connection.digest or ''
    where = f'{path}, topic {connection.topic}'
    has_hash = _HASH.fullmatch(str(digest)) is not None
    same_hash = has_hash and digest == store.hash_rihs01(kind)
    if connection.msgdef.format.name == 'NONE':
        if has_hash and not same_hash:
            raise FileError(
                f'{where}: the messages are of another version of {kind}, with the hash {digest}, '
                f'expected {store.hash_rihs01(kind)}, and the bag does not hold its definition. '
                'Record or convert it again with the definitions in the bag.'
            )
        return None
    try:
        with reading(path, f'a bag with the definition of {kind} in topic {connection.topic}'):
            types = _definitions(path, connection, store)
            found = _Comparison(types, store.fielddefs, store.types)
            difference = found.difference(kind, kind)
    except FileError:
        if same_hash:
            return None
        raise
    if difference is None:
        return None
    try:
        convert = found.conversion(kind, kind)
    except _Incompatible as error:
        raise FileError(
            f'{where}: the messages are of another version of {kind}: {error}. The first '
            f'difference is: {difference}.'
        ) from error
    with reading(path, f'a bag with the definition of {kind} in topic {connection.topic}'):
        own = _store(path, types)

    def translate(data: bytes) -> bytes:
        with reading(path, f'a bag with messages of {kind} in topic {connection.topic}'):
            return bytes(store.serialize_cdr(convert(own.deserialize_cdr(data, kind)), kind))

    return translate


class _Incompatible(Exception):
    """A field that is needed is not there, or is something else."""


class _Comparison:
    """Types of a bag beside those that are known.

    Parameters
    ----------
    found, known : dict
        Fields of each type, as rosbags has them.
    classes : dict
        Classes of the known types.
    """

    def __init__(self, found: Types, known: Types, classes: dict[str, Any]) -> None:
        self._found, self._known, self._classes = found, known, classes

    def difference(self, found: str, known: str, prefix: str = '') -> str | None:
        """Say where two types first differ in what they look like as bytes."""
        ours, theirs = self._known[known][1], self._found[found][1]
        for i in range(max(len(ours), len(theirs))):
            if i >= len(theirs):
                return f'there is no {prefix}{ours[i][0]}'
            have = f'field {i + 1} is {prefix}{theirs[i][0]} ({_text(theirs[i][1])})'
            if i >= len(ours):
                return f'{have}, expected no more'
            if theirs[i][0] != ours[i][0] or _shape(theirs[i][1]) != _shape(ours[i][1]):
                return f'{have}, expected {prefix}{ours[i][0]} ({_text(ours[i][1])})'
            inner = _inner(theirs[i][1]), _inner(ours[i][1])
            if inner[1] is not None:
                assert inner[0] is not None
                text = self.difference(inner[0], inner[1], f'{prefix}{ours[i][0]}.')
                if text is not None:
                    return text
        return None

    def conversion(self, found: str, known: str, prefix: str = '') -> Convert:
        """Make what turns a message of the bag into one that is known."""
        theirs = dict(self._found[found][1])
        steps: dict[str, Convert] = {}
        for name, ours in self._known[known][1]:
            path = prefix + name
            if path in _UNUSED or (path in _OPTIONAL and name not in theirs):
                steps[name] = _nothing(ours)
            elif name not in theirs:
                raise _Incompatible(f'it lacks the field {path} among {listed(theirs)}')
            else:
                steps[name] = self._field(name, theirs[name], ours, path)
        build = self._classes[known]
        return lambda message: build(**{name: step(message) for name, step in steps.items()})

    def _field(self, name: str, found: Type, known: Type, path: str) -> Convert:
        have, want = _shape(found), _shape(known)
        inner = _inner(found), _inner(known)
        if want == ('SEQUENCE', 'float64') and have[0] != 'BASE' and have[1] in _FLOATS:
            return lambda message: np.asarray(getattr(message, name), dtype=np.float64)
        if want == ('SEQUENCE', 'string') and have[0] != 'BASE' and have[1] == 'string':
            return lambda message: list(getattr(message, name))
        if want[0] == 'BASE' and have[0] == 'BASE' and 'int' in have[1] and 'int' in want[1]:
            return lambda message: int(getattr(message, name))
        if inner[0] is not None and inner[1] is not None and have[0] == want[0]:
            convert = self.conversion(inner[0], inner[1], f'{path}.')
            if want[0] == 'NAME':
                return lambda message: convert(getattr(message, name))
            return lambda message: [convert(item) for item in getattr(message, name)]
        raise _Incompatible(f'the field {path} is {_text(found)}, expected {_text(known)}')


def _definitions(path: Path, connection: Any, store: Any) -> Types:
    """Definition in the bag, with those of the types in it."""
    typesys: Any = optional('rosbags.typesys', EXTRA, path)
    text = connection.msgdef.data.replace('\r\n', '\n')
    types: Types = {}
    if connection.msgdef.format.name == 'MSG':
        types.update(typesys.get_types_from_msg(text, connection.msgtype))
    elif text.startswith(f'{_SEPARATOR}IDL: '):
        for part in text.split(_SEPARATOR)[1:]:
            types.update(typesys.get_types_from_idl(part.partition('\n')[2]))
    else:
        types.update(typesys.get_types_from_idl(text))
    # What it leaves out is a type that everybody knows. Constants are not sent.
    found: Types = {}
    waiting = [connection.msgtype]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        _, fields = types[name] if name in types else store.fielddefs[name]
        # The library makes source code of the names.
        for word in (name, *(field for field, _ in fields)):
            if not _NAME.fullmatch(word):
                raise ValueError(f'{word!r} is no name')
        found[name] = [], list(fields)
        waiting.extend(inner for _, what in fields if (inner := _inner(what)) is not None)
    return found


def _store(path: Path, types: Types) -> Any:
    typesys: Any = optional('rosbags.typesys', EXTRA, path)
    store = typesys.get_typestore(typesys.Stores.EMPTY)
    store.register(types)
    return store


def _shape(what: Type) -> tuple[str, str]:
    """Kind of a type and what it consists of; bounds do not change the bytes."""
    node, value = what
    if node.name == 'BASE':
        return 'BASE', str(value[0])
    if node.name == 'NAME':
        return 'NAME', ''
    (element, content), size = value
    name = str(content[0]) if element.name == 'BASE' else ''
    return (node.name if node.name == 'SEQUENCE' else f'ARRAY of {size}'), name


def _inner(what: Type) -> str | None:
    """Name of the message type in a type, if there is one."""
    node, value = what
    if node.name in ('ARRAY', 'SEQUENCE'):
        node, value = value[0]
    return str(value) if node.name == 'NAME' else None


def _text(what: Type) -> str:
    """Write a type as in a definition."""
    node, value = what
    if node.name == 'BASE':
        return str(value[0])
    if node.name == 'NAME':
        return str(value).replace('/msg/', '/')
    return f'{_text(value[0])}[{value[1] if node.name == "ARRAY" else ""}]'


def _nothing(what: Type) -> Convert:
    """Make an empty array, list or text."""
    kind = _shape(what)
    if kind == ('SEQUENCE', 'float64'):
        return lambda _: np.empty(0)
    return lambda _: '' if kind[0] == 'BASE' else []
