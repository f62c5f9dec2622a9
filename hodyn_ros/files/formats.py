"""What a format of files is: how motions are read from it, and results written to it.

A format is a subclass of `Format` in a file of its own and a line in `hodyn_ros.files.files`.
Formats of tables are a `TableFormat`, made of a `Table` and of what writes columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from hodyn_ros.checks import Array
from hodyn_ros.errors import FileError
from hodyn_ros.files.columns import (
    TableColumns,
    columns_of,
    find_columns,
    metadata_of,
    parse_metadata,
)
from hodyn_ros.files.samples import Part, Results, Samples
from hodyn_ros.names import listed

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


class Table(Protocol):
    """A table whose head is read at once, and its rows when asked for.

    Attributes
    ----------
    titles : list of str
        Of all columns, without units.
    lines : dict of str to str
        Metadata, see `parse_metadata`.
    """

    titles: list[str]
    lines: dict[str, str]
    """Metadata."""

    def blocks(self, columns: Sequence[int], chunk: int) -> Iterator[Array]:
        """Values of some columns, shape (up to chunk, columns).

        Parameters
        ----------
        columns : sequence of int
            Places among `titles`.
        chunk : int
            Largest number of rows of a block.

        Yields
        ------
        ndarray, shape (up to chunk, columns)
            NaN where a cell is empty.

        Raises
        ------
        FileError
            If a cell is no number, or the file is damaged.
        """


@dataclass
class RowsWriter:
    """Results as the rows of a table, which is begun with the titles and metadata of the first."""

    path: Path
    make: Callable[..., Any]
    """From the path, titles and metadata to what writes columns, each of shape (N,)."""
    _titles: Sequence[str] = ()
    _writer: Any = None

    def write(self, results: Results) -> None:
        """Append results.

        Parameters
        ----------
        results : Results
            Next part of a motion; the first determines titles and metadata.

        Raises
        ------
        FileError
            If it has other columns than the first part.
        """
        titles, columns = columns_of(results)
        if self._writer is None:
            self._titles = titles
            self._writer = self.make(self.path, titles, metadata_of(results))
        if titles != self._titles:
            missing = [title for title in self._titles if title not in titles]
            more = [title for title in titles if title not in self._titles]
            raise FileError(
                f'{self.path}: a part of the results lacks {listed(missing)} and adds '
                f'{listed(more)}; expected the same columns in all parts.'
            )
        self._writer.write(columns)

    def close(self) -> None:
        """Finish the file.

        Without any results there is no file.
        """
        if self._writer is not None:
            self._writer.close()


@dataclass(frozen=True)
class TableFormat(Format):
    """Tables with a column for each quantity of each joint; see doc/files.rst."""

    suffixes: tuple[str, ...]
    table: Callable[[Path, Sequence[str] | None], Table]
    """Opens a file, with joint names for those that have none."""
    begin: Callable[[Path], FormatWriter]
    """Begins a file."""

    def motion(self, path: Path, wanted: Wanted) -> Iterator[Samples]:
        """Read a motion block by block.

        Parameters
        ----------
        path : pathlib.Path
            The table.
        wanted : Wanted
            Joint names for tables without them, rows of a block, and how all wrenches are
            expressed.

        Yields
        ------
        Samples
            One for each block of rows.

        Raises
        ------
        FileError
            If the columns or the metadata make no motion, or a row cannot be read.
        """
        yield from self._parts(path, wanted, TableColumns.samples)

    def results(self, path: Path, chunk: int) -> Iterator[Results]:
        """Read results block by block.

        Parameters
        ----------
        path : pathlib.Path
            The table.
        chunk : int
            Largest number of rows of a block.

        Yields
        ------
        Results
            One for each block of rows.

        Raises
        ------
        FileError
            See `motion`; also if there are no efforts.
        """
        yield from self._parts(path, Wanted(chunk), TableColumns.results)

    def _parts(
        self, path: Path, wanted: Wanted, make: Callable[..., Part]
    ) -> Iterator[Part]:
        """Samples or results of each block of rows."""
        table, first = self.table(path, wanted.joint_names), 0
        columns = find_columns(table.titles, str(path))
        metadata = parse_metadata(
            table.lines, str(path), wanted.expressed_in, wanted.acting
        )
        for values in table.blocks(columns.columns, wanted.chunk):
            yield make(columns, values, metadata, first)
            first += len(values)

    def writer(self, path: Path, storage: str) -> FormatWriter:
        """Begin a table.

        Parameters
        ----------
        path : pathlib.Path
            File that is written.
        storage : str
            Of bags; not used.

        Returns
        -------
        FormatWriter
        """
        return self.begin(path)


def side_file(path: Path) -> Path:
    """File beside a table in text that says when it begins and where it comes from.

    Parameters
    ----------
    path : pathlib.Path
        Of the table.

    Returns
    -------
    pathlib.Path
        The same name with .json behind it.
    """
    return path.with_name(f'{path.name}.json')
