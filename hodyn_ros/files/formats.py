"""What a format of files is: how motions are read from it, and results written to it.

A format is a subclass of `Format` in a file of its own and a line in `hodyn_ros.files.files`.
Formats of tables are a `TableFormat` of `hodyn_ros.files.columns`, made of a `Table` and of what
writes columns.
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
    """What is read of a file; see `iterate_motion`.

    Attributes
    ----------
    chunk : int
        Largest number of samples of a part.
    topic : str or None
        Topic of a bag; None: the only one with a motion.
    joint_names : sequence of str or None
        Joints to read; None: all of the file.
    index : int or None
        Which of the trajectories of a topic, from 0; None: all of them.
    expressed_in, acting : str or None
        Of all wrenches, see `Wrench`; None: as the file says.
    """

    chunk: int = CHUNK
    topic: str | None = None
    joint_names: Sequence[str] | None = None
    index: int | None = None
    expressed_in: str | None = None
    acting: str | None = None


class FormatWriter(Protocol):
    """Writes results part by part."""

    def write(self, results: Results) -> None:
        """Append results.

        Parameters
        ----------
        results : Results
            Next part of a motion, with the joints and orders of the parts before it.

        Raises
        ------
        FileError
            If it does not fit to them, or the format cannot hold it.
        """

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
        """Read a motion part by part.

        Parameters
        ----------
        path : pathlib.Path
            File, or folder of a bag.
        wanted : Wanted
            What is read; a format passes over options that it has no use for.

        Yields
        ------
        Samples
            Consecutive parts of one motion, or one trajectory each.

        Raises
        ------
        FileError, JointNameError
            If the content makes no motion. Other errors become a `FileError` in
            `hodyn_ros.files.files.guarded`.
        """

    def results(self, path: Path, chunk: int) -> Iterator[Results]:
        """Read results part by part.

        Parameters
        ----------
        path : pathlib.Path
            The file.
        chunk : int
            Largest number of samples of a part.

        Yields
        ------
        Results
            Consecutive parts.

        Raises
        ------
        FileError
            If the format holds no results, as all but tables, or the content makes none.
        """
        raise FileError(f'{path}: results are read from .csv, .npz and .parquet.')

    def places(self, path: Path) -> tuple[Path, Path]:
        """Where a bag that is to be at a path is written, and what of it is kept.

        Parameters
        ----------
        path : pathlib.Path
            Where the bag is to be.

        Returns
        -------
        written : pathlib.Path
            What the writer is given.
        kept : pathlib.Path
            What takes its place at the end; for all but storage files of bags, the same.
        """
        return path, path

    @abstractmethod
    def writer(self, path: Path, storage: str) -> FormatWriter:
        """Begin to write results; `storage` is that of the folder of a bag.

        Parameters
        ----------
        path : pathlib.Path
            What is written; it does not exist.
        storage : {'mcap', 'sqlite3'}
            Of the folder of a bag; other formats have no use for it.

        Returns
        -------
        FormatWriter

        Raises
        ------
        FileError
            If a library is missing, or the storage is unknown.
        """
