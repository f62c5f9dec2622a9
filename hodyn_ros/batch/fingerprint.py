"""Fingerprints: what a result was made from, in few bytes, equal in every process at all times.

Results are kept from one run to the next as long as the fingerprints of their input, of the robot
and of the options are what they were.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from hodyn_ros.batch.errors import BatchError

# Read from both ends of a file: the head of most formats and the footer of Parquet, which changes
# with every value in the file, because it holds statistics and sizes.
END = 1 << 16
_BLOCK = 1 << 20


def fingerprint_of(value: Any) -> str:
    """Fingerprint of a robot, actuators or options: of all numbers and names that they hold.

    Parameters
    ----------
    value : object
        Plain values, arrays, containers, data classes, and instances of other classes, which are
        known by their attributes.

    Returns
    -------
    str
    """
    digest = hashlib.blake2b(digest_size=16)
    for piece in _pieces(value, ()):
        digest.update(len(piece).to_bytes(8, 'little'))
        digest.update(piece)
    return digest.hexdigest()


def _pieces(value: Any, around: tuple[int, ...]) -> Iterator[bytes]:
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        yield f'{type(value).__name__} {value!r}'.encode('utf-8', 'surrogatepass')
        return
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype != object:
        array = np.asarray(value)
        # -0.0 and 0.0 are the same number, but not the same bytes.
        plain = np.ascontiguousarray(array + 0.0 if array.dtype.kind in 'fc' else array)
        yield f'array {plain.dtype.str} {plain.shape}'.encode()
        yield plain.tobytes()
        return
    if isinstance(value, (type, *_FUNCTIONS)):
        yield f'name {value.__module__}.{value.__qualname__}'.encode()
        return
    if id(value) in around:
        yield b'cycle'
        return
    yield f'{type(value).__module__}.{type(value).__qualname__}'.encode()
    yield from _parts(value, (*around, id(value)))
    yield b'end'


def _parts(value: Any, around: tuple[int, ...]) -> Iterator[bytes]:
    if isinstance(value, Enum):
        yield value.name.encode()
    elif isinstance(value, Mapping):
        for _, key, item in sorted(
            ((fingerprint_of(key), key, item) for key, item in value.items()),
            key=lambda entry: entry[0],
        ):
            yield from _pieces(key, around)
            yield from _pieces(item, around)
    elif isinstance(value, (set, frozenset)):
        yield from (text.encode() for text in sorted(map(fingerprint_of, value)))
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _pieces(item, around)
    elif isinstance(value, np.ndarray):
        yield str(value.shape).encode()
        for item in value.ravel():
            yield from _pieces(item, around)
    elif isinstance(value, os.PathLike):
        yield os.fspath(value).encode()
    else:
        for name, item in sorted(_attributes(value), key=lambda entry: entry[0]):
            yield name.encode()
            yield from _pieces(item, around)


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield field.name, getattr(value, field.name)
        return
    state = getattr(value, '__dict__', None)
    if state is not None:
        for name, item in state.items():
            # Whether it has been asked for yet makes no difference.
            if not isinstance(getattr(type(value), name, None), cached_property):
                yield name, item
    for kind in type(value).__mro__:
        slots = kind.__dict__.get('__slots__', ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ('__dict__', '__weakref__') and hasattr(value, name):
                yield name, getattr(value, name)
    if state is None and not hasattr(type(value), '__slots__'):
        yield 'repr', repr(value)


def _function() -> None:
    """One of its kind."""


_FUNCTIONS = (type(_function), type(len))


def stamp(path: Path) -> list[int]:
    """Size [bytes] and time of the last change [ns] of a file, or of all files in a folder.

    Parameters
    ----------
    path : pathlib.Path

    Returns
    -------
    list of int
        Of a folder: the number of bytes of all its files, and the latest time.
    """
    files = [file.stat() for file in _files(path)]
    return [sum(s.st_size for s in files), max((s.st_mtime_ns for s in files), default=0)]


def input_fingerprint(path: Path, kind: str = 'quick') -> dict[str, Any]:
    """Fingerprint of an input file, or of a folder that is one input, as a recorded bag is.

    Parameters
    ----------
    path : pathlib.Path
    kind : {'quick', 'content'}
        quick: size, time of the last change and the bytes at both ends. content: size and all
        bytes; a copy of a file is then the same file.

    Returns
    -------
    dict
        For a file with JSON: size [bytes], hash, and for quick the time [ns].

    Raises
    ------
    BatchError
        If the kind is unknown, or the path that of a pipe, a socket or a device.
    OSError
        If the file cannot be read.
    """
    if kind not in ('quick', 'content'):
        raise BatchError(f"fingerprint is {kind!r}, expected 'quick' or 'content'.")
    size, time = stamp(path)
    digest = hashlib.blake2b(digest_size=16)
    for file in _files(path):
        digest.update(file.relative_to(path).as_posix().encode('utf-8', 'surrogateescape'))
        with open(file, 'rb') as stream:
            length = os.fstat(stream.fileno()).st_size
            digest.update(length.to_bytes(8, 'little'))
            if kind == 'content' or length <= 2 * END:
                while block := stream.read(_BLOCK):
                    digest.update(block)
            else:
                digest.update(stream.read(END))
                stream.seek(-END, os.SEEK_END)
                digest.update(stream.read(END))
    found: dict[str, Any] = {'kind': kind, 'size': size, 'hash': digest.hexdigest()}
    if kind == 'quick':
        found['time'] = time
    return found


def difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Say in words how two fingerprints of an input differ; empty if they do not."""
    if before == now:
        return ''
    if before.get('kind') != now.get('kind'):
        return 'another kind of fingerprint was asked for'
    if before.get('size') != now.get('size'):
        return f'{before.get("size")} bytes before, {now.get("size")} now'
    if before.get('hash') != now.get('hash'):
        return 'same size, other content'
    return 'same size, written again'


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.rglob('*') if file.is_file())
    if path.exists() and not path.is_file():
        raise BatchError(f'{path} is no regular file.')  # reading it might never end
    return [path]
