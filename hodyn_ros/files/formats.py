"""What a format of files is: how motions are read from it, and results written to it.

A format is a subclass of `Format` in a file of its own and a line in `hodyn_ros.files.files`.
Formats of tables are subclasses of `TableFormat`, which need no more than a `Table` and a writer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from hodyn_ros.checks import Array
from hodyn_ros.errors import FileError
from hodyn_ros.files.columns import (
    Metadata,
    TableColumns,
    columns_of,
    find_columns,
    metadata_of,
    parse_metadata,
)
from hodyn_ros.files.samples import Results, Samples
from hodyn_ros.names import listed

Item = TypeVar('Item')

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
        """Where a file that is to be at a path is written, and what of it is kept."""
        return path, path

    @abstractmethod
    def writer(self, path: Path, storage: str) -> Writer:
        """Begin to write results; `storage` is that of the folder of a bag."""


class Table(Protocol):
    """A table whose head is read at once, and its rows when asked for."""

    titles: list[str]
    lines: dict[str, str]
    """Metadata."""

    def blocks(self, columns: Sequence[int], chunk: int) -> Iterator[Array]:
        """Values of some columns, shape (up to chunk, columns)."""


class TableFormat(Format):
    """Tables with a column for each quantity of each joint; see doc/files.rst."""

    @abstractmethod
    def table(self, path: Path, joint_names: Sequence[str] | None = None) -> Table:
        """Open a table; joint names are for those that have none."""

    def motion(self, path: Path, wanted: Wanted) -> Iterator[Samples]:
        """Read a motion block by block."""
        return self._made(TableColumns.samples, path, wanted)

    def results(self, path: Path, chunk: int) -> Iterator[Results]:
        """Read results block by block."""
        return self._made(TableColumns.results, path, Wanted(chunk))

    def _made(
        self,
        make: Callable[[TableColumns, Array, Metadata, int], Item],
        path: Path,
        wanted: Wanted,
    ) -> Iterator[Item]:
        table = self.table(path, wanted.joint_names)
        columns, first = find_columns(table.titles, str(path)), 0
        metadata = parse_metadata(table.lines, str(path), wanted.expressed_in, wanted.acting)
        for values in table.blocks(columns.columns, wanted.chunk):
            yield make(columns, values, metadata, first)
            first += len(values)


class RowsWriter:
    """Results as the rows of a table, which is begun with the titles and metadata of the first.

    `make` takes the path, titles and metadata, and what it makes writes columns.
    """

    def __init__(self, path: Path, make: Callable[..., ColumnsWriter]) -> None:
        self._path, self._make = path, make
        self._titles: list[str] = []
        self._writer: ColumnsWriter | None = None

    def write(self, results: Results) -> None:
        """Append results."""
        titles, columns = columns_of(results)
        if self._writer is None:
            self._titles = titles
            self._writer = self._make(self._path, titles, metadata_of(results))
        if titles != self._titles:
            missing = [title for title in self._titles if title not in titles]
            more = [title for title in titles if title not in self._titles]
            raise FileError(
                f'{self._path}: a part of the results lacks {listed(missing)} and adds '
                f'{listed(more)}; expected the same columns in all parts.'
            )
        self._writer.write(columns)

    def close(self) -> None:
        """Finish the file."""
        if self._writer is not None:
            self._writer.close()


class ColumnsWriter(Protocol):
    """Writes a table block by block."""

    def write(self, columns: Sequence[Array]) -> None:
        """Append columns (N,)."""

    def close(self) -> None:
        """Finish the file."""


def side_file(path: Path) -> Path:
    """File beside a table in text that says when it begins and where it comes from."""
    return path.with_name(f'{path.name}.json')
