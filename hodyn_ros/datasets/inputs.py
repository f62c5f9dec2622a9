"""The inputs of a data set and the names of their results."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Union

from hodyn_ros.errors import BatchError
from hodyn_ros.files.files import SUFFIXES, PathLike

Inputs = Union[PathLike, Sequence[PathLike]]  # noqa: UP007

_HIDDEN = ('.', '_')  # as in data sets of Parquet files
_BAG = 'metadata.yaml'  # a folder with such a file is a bag, one input


class MotionFile(NamedTuple):
    """A file, or a folder that is a bag."""

    name: str
    """Path below the folder that was given, with slashes."""
    path: Path
    """Absolute and without links."""
    output: str
    """Path of the result below the output folder, with slashes."""


def find_inputs(inputs: Inputs, output_folder: Path, suffix: str = '') -> list[MotionFile]:
    """Find files of motions, each once, in the order of their names.

    Inputs are folders, which are searched with all folders below, files, bags, or patterns with
    `*`, `?`, `[...]` and `**`. Left out are files in the output folder, names with a dot or an
    underscore in front that are not named as such, and pipes, sockets and devices.

    Parameters
    ----------
    inputs : path-like or sequence of them
    output_folder : pathlib.Path
        Nothing in it is an input.
    suffix : str
        Of the results, in lower case with the dot: added to the name of an input with another
        one.

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
                result = name if name.lower().endswith(suffix) else name + suffix
                found.setdefault(resolved, MotionFile(name, resolved, result))
    if not found:
        what = (
            'all that was found lies in the output folder' if given else 'the list is empty'
        )
        raise BatchError(f'There are no inputs: {what}.')
    outputs: dict[str, MotionFile] = {}
    for motion in found.values():
        if (other := outputs.setdefault(motion.output, motion)) is not motion:
            is_same = other.name == motion.name
            remedy = (
                'name the folder above both'
                if is_same
                else 'choose another suffix for the results, or process them apart'
            )
            raise BatchError(
                f'{other.path} and {motion.path} would both be called {motion.output!r} in the '
                f'output folder; {remedy}.'
            )
    return sorted(found.values())


def input_state(path: Path) -> list[tuple[str, int, int]]:
    """Name, size [bytes] and time of the last change [ns] of each file of an input.

    Parameters
    ----------
    path : pathlib.Path
        File, or folder that is one input, as a recorded bag is.

    Returns
    -------
    list of tuple
        Other than before if the input has changed; empty if it cannot be reached.
    """
    try:
        files = sorted(filter(Path.is_file, path.rglob('*'))) if path.is_dir() else [path]
        states = [(file.name, file.stat()) for file in files]
    except OSError:
        return []
    return [(name, state.st_size, state.st_mtime_ns) for name, state in states]


def _expand(text: str) -> Iterator[tuple[Path, str]]:
    """Motions of a folder, file, bag or pattern, with their paths below what was named."""
    path = Path(text)
    if path.is_file() or (path / _BAG).is_file():
        yield path, path.resolve().name
        return
    pattern = Path(glob.escape(text), '**', '*') if path.is_dir() else path
    fixed = list(path.parts if path.is_dir() else path.parts[:-1])
    while not path.is_dir() and any(map(glob.has_magic, fixed)):
        fixed.pop()
    found = (
        (item, item.relative_to(Path(*fixed)))
        for item in map(Path, glob.iglob(str(pattern), recursive=True))
        if (item.is_file() and item.suffix.lower() in SUFFIXES) or (item / _BAG).is_file()
    )
    # The shortest first, of files that links lead to in several ways.
    for item, name in sorted(found, key=lambda pair: (len(pair[1].parts), pair[1])):
        is_hidden = any(part.startswith(_HIDDEN) for part in name.parts)
        if not is_hidden and not (item.parent / _BAG).is_file():
            yield item, name.as_posix()
