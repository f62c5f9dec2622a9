"""What a format of files is: how motions are read from it, and results written to it.

A format is a subclass of `Format` in a file of its own and a line in `hodyn_ros.files.files`.
Formats of tables are made of a `Table` and a writer, see `hodyn_ros.files.columns`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hodyn_ros.errors import FileError
from hodyn_ros.files.samples import Results, Samples

CHUNK = 10_000
"""Samples that are in memory at a time."""


@dataclass(frozen=True)
class Wanted:
    """What is read of a file; see `iterate_motion`."""

    chunk: int = CHUNK
    topic: str | None = None
    joint_names: Sequence[str] | None = None
    index: int | None = None
    expressed_in: str | None = None
    acting: str | None = None


class Writer(Protocol):
    """Writes results part by part."""

    def write(self, results: Results) -> None:
        """Append results."""

    def close(self) -> None:
        """Finish the file."""


class Format(ABC):
    """A kind of files, known by their suffix."""

    suffixes: tuple[str, ...]
    """In lower case, with the dot; an empty one is that of a folder."""
    is_bag = False
    """Whether it has topics, with several motions that may overlap."""

    @abstractmethod
    def motion(self, path: Path, wanted: Wanted) -> Iterator[Samples]:
        """Read a motion part by part."""

    def results(self, path: Path, chunk: int) -> Iterator[Results]:
        """Read results part by part."""
        raise FileError(f'{path}: results are read from .csv, .npz and .parquet.')

    def places(self, path: Path) -> tuple[Path, Path]:
        """Where a bag that is to be at a path is written, and what of it is kept."""
        return path, path

    @abstractmethod
    def writer(self, path: Path, storage: str) -> Writer:
        """Begin to write results; `storage` is that of the folder of a bag."""
