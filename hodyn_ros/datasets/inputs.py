"""The inputs of a data set, and digests that tell them and the robot from others."""

from __future__ import annotations

import glob
import hashlib
import io
import os
import pickle
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from hodyn_ros.datasets.run import Inputs
from hodyn_ros.errors import BatchError
from hodyn_ros.files.files import SUFFIXES
from hodyn_ros.files.parquet_table import ParquetTable
from hodyn_ros.model.provenance import Provenance

_HIDDEN = ('.', '_')  # as in data sets of Parquet files
_BAG = 'metadata.yaml'  # a folder with such a file is a bag, one input
_BLOCK = 1 << 16  # rows that are read together


class MotionFile(NamedTuple):
    """A file, or a folder that is a bag.

    Attributes
    ----------
    path : pathlib.Path
        Resolved: absolute and without links.
    """

    path: Path
    name: str
    """Path below the folder that was named, with slashes."""


def find_inputs(inputs: Inputs, output_folder: Path, suffix: str = '') -> list[MotionFile]:
    """Find files of motions, each once, in the order of their names.

    Inputs are folders, which are searched with all folders below, files, bags, or patterns with
    `*`, `?`, `[...]` and `**`. Left out are what lies in the output folder, names with a dot or an
    underscore in front that are not named as such, and pipes, sockets and devices.

    Parameters
    ----------
    inputs : path-like or sequence of them
    output_folder : pathlib.Path
        Nothing in it is an input.
    suffix : str
        Of the results; empty: two inputs of the same name are refused.

    Returns
    -------
    list of MotionFile

    Raises
    ------
    BatchError
        If nothing is found, or the results of two inputs would have the same name.
    """
    given = [inputs] if isinstance(inputs, (str, os.PathLike)) else list(inputs)
    output = output_folder.resolve()
    found: dict[Path, MotionFile] = {}
    for item in given:
        motions = list(_expand(os.fspath(item)))
        if not motions:
            raise BatchError(
                f'{os.fspath(item)!r}: no motion was found there; expected an existing file, a '
                f'folder or a pattern of files with one of the suffixes {", ".join(SUFFIXES)}.'
            )
        for path, name in motions:
            resolved = path.resolve()
            if output not in (resolved, *resolved.parents):
                found.setdefault(resolved, MotionFile(resolved, name))
    if not found:
        what = (
            'all that was found lies in the output folder' if given else 'the list is empty'
        )
        raise BatchError(f'There are no inputs: {what}.')
    names: dict[str, MotionFile] = {}
    for motion in found.values():
        name = output_name(motion.name, suffix)
        if (other := names.setdefault(name, motion)) is not motion:
            remedy = 'choose another suffix for the results, or process them apart'
            remedy = 'name the folder above both' if other.name == motion.name else remedy
            raise BatchError(
                f'{other.path} and {motion.path} would both be called {name!r} in the output '
                f'folder; {remedy}.'
            )
    return sorted(found.values(), key=lambda item: item.name)


def output_name(name: str, suffix: str) -> str:
    """Name of the output of an input: with the same suffix the same name, else suffix added.

    Parameters
    ----------
    name : str
        Of the input.
    suffix : str
        Of the results, in lower case with the dot.

    Returns
    -------
    str
    """
    return name if name.lower().endswith(suffix) else name + suffix


def _expand(text: str) -> Iterator[tuple[Path, str]]:
    """Motions of a folder, file, bag or pattern, with their paths below what was named."""
    path = Path(text)
    if (path / _BAG).is_file():
        yield path, path.resolve().name
    elif path.is_dir():
        yield from ((file, file.relative_to(path).as_posix()) for file in _motions_in(path))
    elif path.is_file():
        yield path, path.name
    elif glob.has_magic(text):
        fixed = list(path.parts[:-1])
        while any(map(glob.has_magic, fixed)):
            fixed.pop()
        for item in map(Path, sorted(glob.glob(text, recursive=True))):
            name = item.relative_to(Path(*fixed))
            is_hidden = any(part.startswith(_HIDDEN) for part in name.parts)
            if _is_motion(item) and not (item.parent / _BAG).is_file() and not is_hidden:
                yield item, name.as_posix()


def _is_motion(path: Path) -> bool:
    """Whether a path is a file that can be read by its suffix, or a bag."""
    is_table = path.is_file() and path.suffix.lower() in SUFFIXES
    return is_table or (path / _BAG).is_file()


def _motions_in(folder: Path, above: tuple[Path, ...] = ()) -> Iterator[Path]:
    """Motions in a folder and those below, sorted; a link that leads in a circle is left out."""
    here = folder.resolve()
    if here in above:  # a link that leads in a circle
        return
    for item in sorted(folder.iterdir()):
        if item.name.startswith(_HIDDEN):
            continue
        if _is_motion(item):
            yield item
        elif item.is_dir():
            yield from _motions_in(item, (*above, here))


def input_digest(path: Path, kind: str = 'quick') -> dict[str, Any]:
    """Digest of an input file, or of a folder that is one input, as a recorded bag is.

    Kind 'quick': names, size [bytes] and time of the last change [ns]; 'content': names, size and
    all bytes, so that a copy of a file is the same file.

    Parameters
    ----------
    path : pathlib.Path
        File or folder.
    kind : {'quick', 'content'}

    Returns
    -------
    dict
        'kind', 'size' [bytes], 'hash', and for 'quick' 'time' [ns].

    Raises
    ------
    OSError
        If it cannot be read.
    """
    files = sorted(f for f in path.rglob('*') if f.is_file()) if path.is_dir() else [path]
    states = [file.stat() for file in files]
    names = [file.relative_to(path).as_posix() for file in files]
    digest = hashlib.blake2b(repr(names).encode(), digest_size=16)
    for file in files if kind == 'content' else ():
        with open(file, 'rb') as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    found = {
        'kind': kind,
        'size': sum(s.st_size for s in states),
        'hash': digest.hexdigest(),
    }
    if kind == 'quick':
        found['time'] = max((s.st_mtime_ns for s in states), default=0)
    return found


def digest_of(value: Any) -> str:
    """Digest of all that a robot or its actuators hold, whatever has been computed with them.

    Parameters
    ----------
    value : object
        That can be pickled.

    Returns
    -------
    str
        32 hexadecimal digits.
    """
    file = io.BytesIO()
    pickler = _Plain(file, 4)
    pickler.fast = True  # the same object twice is as good as two equal ones
    pickler.dump(value)
    return hashlib.blake2b(file.getvalue(), digest_size=16).hexdigest()


class _Plain(pickle.Pickler):
    """Pickles classes and functions by their names, and no cached properties."""

    def persistent_id(self, value: Any) -> str | None:
        """Qualified name of a class or function; None for everything else, which is pickled."""
        is_code = isinstance(value, (type, FunctionType))
        return f'{value.__module__}.{value.__qualname__}' if is_code else None

    def reducer_override(self, value: Any) -> Any:
        """What pickle makes of an object, without cached properties and provenance."""
        reduced = value.__reduce_ex__(4)
        if len(reduced) < 3 or not isinstance(reduced[2], dict):
            return reduced
        state = {
            name: item
            for name, item in reduced[2].items()
            if not isinstance(getattr(type(value), name, None), cached_property)
            # The same robot from another file, or of another version, is the same robot.
            and not isinstance(item, Provenance)
        }
        return (*reduced[:2], state, *reduced[3:])


def find_parts(
    path: Path, column: str, part_rows: int
) -> Iterator[tuple[int, list[tuple[Any, int]]]]:
    """Share out the motions of a Parquet file among parts: first row, ids with numbers of rows.

    A column holds the motion ids, integers or text. Parts have so many rows at least, and end
    where row groups end, or soon after: a part that began within a row group would have to be read
    from the beginning of it.

    Parameters
    ----------
    path : pathlib.Path
        Of the Parquet file.
    column : str
        Of the motion ids.
    part_rows : int
        Rows of a part, at least, but for the last one.

    Yields
    ------
    first_row : int
    motions : list of (int or str, int)
        Ids with their numbers of rows, which follow each other.

    Raises
    ------
    BatchError
        If it is no Parquet file, has no such column, ids are missing or of another type, or
        the rows of a motion do not follow each other.
    """
    if path.suffix.lower() != '.parquet':
        raise BatchError(
            f'{path} is no Parquet file, and only those can have a column of motion ids; leave '
            'out motion_column for files with one motion each.'
        )
    table = ParquetTable(path)
    if column not in table.titles:
        raise BatchError(
            f'{path} has no column {column!r} of motion ids; it has {", ".join(table.titles)}.'
        )
    with table.opened() as file:
        ends = np.cumsum(
            [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        )
        motions: list[tuple[Any, int]] = []
        start = row = 0
        for identity, length in _runs_of_ids(file, path, column):
            motions.append((identity, length))
            row += length
            place = int(np.searchsorted(ends, start + part_rows))
            if row >= (int(ends[place]) if place < len(ends) else start + part_rows):
                yield start, motions
                start, motions = row, []
    if motions:
        yield start, motions


def _runs_of_ids(file: Any, path: Path, column: str) -> Iterator[tuple[Any, int]]:
    """Motion ids of a file with their numbers of rows."""
    seen: set[Any] = set()
    current: Any = None
    row = length = 0
    for batch in file.iter_batches(batch_size=_BLOCK, columns=[column], use_threads=False):
        values = batch.column(0)
        if values.null_count:
            raise BatchError(
                f'{path}: {values.null_count} rows have no motion id in {column!r}.'
            )
        ids = np.asarray(values.to_numpy(zero_copy_only=False))
        is_text = ids.dtype.kind == 'O' and all(isinstance(item, str) for item in ids[:1])
        if ids.dtype.kind not in 'iu' and not is_text:
            raise BatchError(
                f'{path}: the motion ids in {column!r} are of type {values.type}, expected '
                'integers or text.'
            )
        edges = [0, *(np.flatnonzero(ids[1:] != ids[:-1]) + 1).tolist(), len(ids)]
        for first, last in zip(edges, edges[1:] if len(ids) else ()):
            identity = ids[first]
            if not length or identity != current:
                if identity in seen:
                    raise BatchError(
                        f'{path}: the rows of motion {identity!s} do not follow each other (row '
                        f'{row + first} belongs to it again); sort the file by {column!r}.'
                    )
                if length:
                    yield current, length
                seen.add(identity)
                current, length = identity, 0
            length += last - first
        row += len(ids)
    if length:
        yield current, length
