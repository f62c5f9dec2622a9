"""From what a user names as inputs to tasks: one task makes one output file.

A file is one motion and one task. A Parquet file with a column of motion ids holds many: its rows
are shared out among tasks, whole motions each, so that one large file occupies all workers.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Union

from hodyn_ros.batch.errors import BatchError
from hodyn_ros.batch.fingerprint import input_fingerprint
from hodyn_ros.batch.motions import find_parts
from hodyn_ros.io.files import SUFFIXES

PathLike = Union[str, 'os.PathLike[str]']  # noqa: UP007
Inputs = Union[PathLike, Sequence[PathLike]]  # noqa: UP007

# As in data sets of Parquet files.
_HIDDEN = ('.', '_')
BAG = 'metadata.yaml'
"""A folder with such a file is a bag, one input."""


@dataclass(frozen=True)
class Input:
    """A file, or a folder that is a bag."""

    path: Path
    name: str
    """Path below the folder that was named, with slashes."""


@dataclass(frozen=True)
class Task:
    """What makes one output file."""

    key: str
    """Name of the input; with the number of the part if it has parts."""
    name: str
    """Name of the input."""
    path: str
    output: str
    """Path below the output folder, with slashes."""
    input: dict[str, Any]
    """Fingerprint."""
    size: int
    """What of the input belongs to the task [bytes]."""
    bounds: tuple[int, ...] = ()
    """First row of each of its motions in the file, and the row behind the last; empty: the whole
    file is one motion."""


def find_inputs(
    inputs: Inputs, output_folder: Path, special: list[Path] | None = None
) -> list[Input]:
    """Find files of motions.

    Parameters
    ----------
    inputs : path-like or sequence of path-like
        Folders, which are searched with all folders below, files, bags, or patterns with `*`,
        `?`, `[...]` and `**`. What lies in the output folder is left out, and so are names with
        a dot or an underscore in front that are not named as such.
    output_folder : pathlib.Path
    special : list of pathlib.Path, optional
        To it are added pipes, sockets and devices with a suffix of motions, which are no inputs.

    Returns
    -------
    list of Input
        In the order of their names; each file once.

    Raises
    ------
    BatchError
        If nothing is found, or two files of different folders have the same name.
    """
    given = [inputs] if isinstance(inputs, (str, os.PathLike)) else list(inputs)
    output = output_folder.resolve()
    found: dict[Path, Input] = {}
    for item in given:
        before = len(found)
        for path, name in _expand(os.fspath(item)):
            resolved = path.resolve()
            if _is_special(path):
                if special is not None and path not in special:
                    special.append(path)
            elif output not in (resolved, *resolved.parents):
                found.setdefault(resolved, Input(resolved, name))
        if len(found) == before and not any(_expand(os.fspath(item))):
            raise BatchError(
                f'{os.fspath(item)!r}: no motion was found there; expected an existing file, a '
                f'folder or a pattern of files with one of the suffixes {", ".join(SUFFIXES)}.'
            )
    if not found:
        what = 'all that was found lies in the output folder' if given else 'the list is empty'
        if special:
            what = f'{special[0]} is no regular file'
        raise BatchError(f'There are no inputs: {what}.')
    names: dict[str, Input] = {}
    for entry in found.values():
        other = names.setdefault(entry.name, entry)
        if other is not entry:
            raise BatchError(
                f'{other.path} and {entry.path} would both be called {entry.name!r} in the output '
                'folder; name the folder above both.'
            )
    return [names[name] for name in sorted(names)]


def _expand(text: str) -> Iterator[tuple[Path, str]]:
    path = Path(text)
    if path.is_dir():
        if (path / BAG).is_file():
            yield path, path.resolve().name
        else:
            yield from ((file, file.relative_to(path).as_posix()) for file in _motions_in(path))
    elif path.is_file() or (_is_special(path) and path.suffix.lower() in SUFFIXES):
        yield path, path.name
    elif glob.has_magic(text):
        root = _fixed_part(path)
        for match in sorted(glob.glob(text, recursive=True)):
            item = Path(match)
            name = item.relative_to(root)
            if (
                (
                    (item.is_file() or _is_special(item)) and item.suffix.lower() in SUFFIXES
                    or (item / BAG).is_file()
                )
                and not (item.parent / BAG).is_file()
                and not any(part.startswith(_HIDDEN) for part in name.parts)
            ):
                yield item, name.as_posix()


def _is_special(path: Path) -> bool:
    """Whether it is a pipe, a socket or a device; what is read from them may never end."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _fixed_part(pattern: Path) -> Path:
    """Folder in front of the first part of a pattern that stands for several names."""
    fixed: list[str] = []
    for part in pattern.parts[:-1]:
        if glob.has_magic(part):
            break
        fixed.append(part)
    return Path(*fixed)


def _motions_in(folder: Path, above: tuple[Path, ...] = ()) -> Iterator[Path]:
    here = folder.resolve()
    if here in above:  # a link that leads in a circle
        return
    for item in sorted(folder.iterdir()):
        if item.name.startswith(_HIDDEN):
            continue
        if item.is_dir():
            if (item / BAG).is_file():
                yield item
            else:
                yield from _motions_in(item, (*above, here))
        elif item.suffix.lower() in SUFFIXES:
            yield item


def output_name(name: str, suffix: str) -> str:
    """Name of the output of an input: with the same suffix the same name, else suffix added.

    No other input has the same, except one that was itself named so.
    """
    return name if name.lower().endswith(suffix) else name + suffix


def refuse_same_outputs(inputs: Iterable[Input], suffix: str) -> None:
    """Refuse inputs whose results would have the same name.

    Raises
    ------
    BatchError
    """
    outputs: dict[str, Input] = {}
    for item in inputs:
        name = output_name(item.name, suffix)
        other = outputs.setdefault(name, item)
        if other is not item:
            raise BatchError(
                f'{other.path} and {item.path} would both give {name}; choose another suffix for '
                'the results, or process them apart.'
            )


def make_tasks(
    inputs: Iterable[Input],
    suffix: str,
    fingerprint: str,
    motion_column: str | None = None,
    part_rows: int = 100_000,
) -> Iterator[Task | tuple[Input, Exception]]:
    """Make the tasks of some inputs.

    Parameters
    ----------
    inputs : iterable of Input
    suffix : str
        Of the outputs.
    fingerprint : {'quick', 'content'}
    motion_column : str, optional
        Column of Parquet files that holds motion ids.
    part_rows : int
        Rows from which on a task is large enough.

    Yields
    ------
    Task or (Input, Exception)
        The second for an input that cannot be read.
    """
    for item in inputs:
        try:
            found = input_fingerprint(item.path, fingerprint)
            size = int(found['size'])
            name = output_name(item.name, suffix)
            if motion_column is None:
                yield Task(item.name, item.name, str(item.path), name, found, size)
                continue
            parts = list(find_parts(item.path, motion_column, part_rows))
            if not parts:
                raise BatchError(f'{item.path} holds no rows.')
        except (BatchError, OSError) as error:
            yield item, error
            continue
        for number, bounds in enumerate(parts):
            yield Task(
                f'{item.name}#{number}',
                item.name,
                str(item.path),
                f'{name}/part-{number:05d}{suffix}',
                found,
                round(size * (bounds[-1] - bounds[0]) / parts[-1][-1]),
                bounds,
            )
