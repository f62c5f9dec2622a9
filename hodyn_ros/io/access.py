"""What all readers and writers share: options, errors that name the file, optional packages."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import TypeVar

import numpy as np

from hodyn_ros.errors import FileError, HodynError
from hodyn_ros.io.samples import Array, Samples, joined, times_from
from hodyn_ros.resources import optional_import_module

Item = TypeVar('Item')


@dataclass(frozen=True)
class Options:
    """What of a file is read, and how."""

    topic: str | None = None
    """Of a bag; None: the only one that suits."""
    joint_names: tuple[str, ...] | None = None
    """Joints to read, in this order; None: all."""
    index: int | None = None
    """Which of several trajectories; None: all of them in turn."""
    expressed_in: str | None = None
    """Of the wrenches; None: as the file says, or body."""
    acting: str | None = None
    """Of the wrenches; None: as the file says, or on_environment."""

    def selected(self, samples: Samples) -> Samples:
        """Choose the joints that are to be read."""
        if self.joint_names is None:
            return samples
        return samples.in_order(self.joint_names)[0]


def optional(module: str, extra: str, path: Path) -> ModuleType:
    """Import a package that is not always installed.

    Raises
    ------
    FileError
        If it cannot be imported.
    """
    need = f'{path}: files of this kind need {module.partition(".")[0]}'
    return optional_import_module(module, need, extra, FileError)


@contextmanager
def reading(path: Path, what: str) -> Iterator[None]:
    """Turn whatever goes wrong inside into a `FileError` that names the file.

    Parsers of foreign formats meet damaged files with errors of many kinds, none of which helps
    who has the file.
    """
    try:
        yield
    except HodynError:
        raise
    except FileNotFoundError as error:
        raise FileError(f'{path} does not exist; give the path of an existing file.') from error
    except (IsADirectoryError, PermissionError) as error:
        raise FileError(f'{path} cannot be opened: {error.strerror}.') from error
    except Exception as error:
        reason = str(error).strip().partition('\n')[0][:300].rstrip('.') or type(error).__name__
        if isinstance(error, MemoryError):
            reason = 'it claims to hold more than fits into memory'
        raise FileError(
            f'{path} cannot be read as {what}: {reason}. It may be damaged or cut off, or have '
            'the wrong suffix.'
        ) from error


def guarded(items: Iterable[Item], path: Path, what: str) -> Iterator[Item]:
    """Iterate over what a foreign parser yields, with its errors as in `reading`."""
    iterator = iter(items)
    while True:
        with reading(path, what):
            try:
                item = next(iterator)
            except StopIteration:
                return
        yield item


def checked_chunk(chunk: int) -> int:
    """Return the number of samples of a part, if it is one.

    Raises
    ------
    FileError
    """
    if isinstance(chunk, bool) or not isinstance(chunk, (int, np.integer)) or chunk < 1:
        raise FileError(f'chunk is {chunk!r}, expected a number of samples, at least 1.')
    return int(chunk)


def join_samples(parts: Sequence[Samples]) -> Samples:
    """Make one of the samples of consecutive parts of a motion; see `join_results`."""
    head = parts[0]
    if len(parts) == 1:
        return head

    def known(arrays: list[Array]) -> Array:
        fewest = min(array.shape[1] for array in arrays)
        return np.concatenate([array[:, :fewest] for array in arrays])

    return replace(
        head,
        times=np.concatenate([times_from(part, head.start) for part in parts]),
        motion=joined([part.motion for part in parts]),
        wrenches=tuple(
            replace(wrench, values=known([np.asarray(part.wrenches[i].values) for part in parts]))
            for i, wrench in enumerate(head.wrenches)
        ),
        stiffness={
            name: known([part.stiffness[name] for part in parts]) for name in head.stiffness
        },
    )


class Replacement:
    """A file or folder under construction, which takes its place only when it is complete.

    Parameters
    ----------
    path : pathlib.Path
        Where it is to be.
    """

    def __init__(self, path: Path) -> None:
        self._target = path
        with writing(path):
            if not path.parent.is_dir():
                raise FileError(f'{path} cannot be written: there is no folder {path.parent}.')
            self._folder = Path(tempfile.mkdtemp(prefix=f'.{path.name}.', dir=path.parent))
        self.path = self._folder / path.name
        """Where it is written meanwhile."""

    def finish(self, source: Path | None = None) -> None:
        """Put it in its place, replacing a file that is there.

        Parameters
        ----------
        source : pathlib.Path, optional
            What to put there, if not `path`.
        """
        with writing(self._target):
            os.replace(source or self.path, self._target)
        self.discard()

    def discard(self) -> None:
        """Leave nothing behind."""
        shutil.rmtree(self._folder, ignore_errors=True)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn whatever goes wrong inside into a `FileError` that names the file."""
    try:
        yield
    except HodynError:
        raise
    except OSError as error:
        raise FileError(f'{path} cannot be written: {error.strerror or error}.') from error
    except Exception as error:
        raise FileError(f'{path} cannot be written: {error}') from error
