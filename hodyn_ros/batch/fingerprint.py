"""Fingerprints: what a result was made from, in few bytes, equal in every process at all times.

Results are kept from one run to the next as long as the fingerprints of their input, of the robot
and of the options are what they were.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from hodyn_ros.batch.errors import BatchError

_BLOCK = 1 << 20
_PLAIN = (type(None), bool, int, float, complex, str, bytes, os.PathLike)


def fingerprint_of(value: Any) -> str:
    """Fingerprint of a robot or actuators: of all numbers and names that they hold.

    Parameters
    ----------
    value : object
        Plain values, arrays, containers, and instances of other classes, which are known by their
        attributes.

    Returns
    -------
    str
    """
    digest = hashlib.blake2b(digest_size=16)
    for piece in _pieces(value):
        digest.update(len(piece).to_bytes(8, 'little'))
        digest.update(piece)
    return digest.hexdigest()


def _pieces(value: Any) -> Iterator[bytes]:
    kind = type(value)
    yield f'{kind.__module__}.{kind.__qualname__}'.encode()
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        # -0.0 and 0.0 are the same number, but not the same bytes.
        plain = np.ascontiguousarray(array + 0.0 if array.dtype.kind in 'fc' else array)
        yield f'{plain.dtype.str} {plain.shape}'.encode()
        yield plain.tobytes()
    elif isinstance(value, Mapping):
        yield from sorted(
            (fingerprint_of(key) + fingerprint_of(item)).encode() for key, item in value.items()
        )
    elif isinstance(value, (tuple, list, set, frozenset)):
        found = [fingerprint_of(item).encode() for item in value]
        yield from found if isinstance(value, (tuple, list)) else sorted(found)
    elif hasattr(value, '__qualname__'):  # a class or a function
        yield f'{value.__module__}.{value.__qualname__}'.encode()
    else:
        attributes = {} if isinstance(value, _PLAIN) else _attributes(value)
        for name, item in sorted(attributes.items()):
            yield name.encode()
            yield fingerprint_of(item).encode()
        if not attributes:
            yield repr(value).encode('utf-8', 'surrogatepass')


def _attributes(value: Any) -> dict[str, Any]:
    kind = type(value)
    names = {
        name
        for base in kind.__mro__
        for slots in [base.__dict__.get('__slots__', ())]
        for name in ((slots,) if isinstance(slots, str) else slots)
    }
    # Whether a cached property has been asked for yet makes no difference.
    names |= {
        name
        for name in getattr(value, '__dict__', ())
        if not isinstance(getattr(kind, name, None), cached_property)
    }
    return {
        name: getattr(value, name)
        for name in names - {'__dict__', '__weakref__'}
        if hasattr(value, name)
    }


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
        quick: names, size and time of the last change. content: names, size and all bytes; a copy
        of a file is then the same file.

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
        digest.update(file.stat().st_size.to_bytes(8, 'little'))
        if kind == 'content':
            with open(file, 'rb') as stream:
                while block := stream.read(_BLOCK):
                    digest.update(block)
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
