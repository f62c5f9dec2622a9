"""Parquet files with many motions: a column says to which motion each row belongs.

The rows of a motion follow each other. Row groups are how such files are read in parts; where they
begin and end means nothing.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.batch.errors import BatchError
from hodyn_ros.resources import optional_import_module

Array = NDArray[np.float64]

# Rows that are read together; a row of a robot with 7 joints has some 300 bytes.
BLOCK = 1 << 14
_BUFFER = 1 << 18  # bytes of each column that are read ahead


def parquet() -> ModuleType:
    """Return the module of pyarrow that reads Parquet files.

    Raises
    ------
    BatchError
        If it is not installed.
    """
    need = 'A column of motion ids needs pyarrow'
    return optional_import_module('pyarrow.parquet', need, 'tables', BatchError)


def find_parts(path: Path, column: str, part_rows: int) -> Iterator[tuple[int, ...]]:
    """Share out the motions of a file among parts that end where row groups end, or soon after.

    A part that began within a row group would have to be read from the beginning of it.

    Parameters
    ----------
    path : pathlib.Path
        Of a Parquet file.
    column : str
        Holds the motion ids: integers or text.
    part_rows : int
        Rows from which on a part is large enough.

    Yields
    ------
    tuple of int
        First row of each motion of a part, and the row behind the last motion.

    Raises
    ------
    BatchError
        If the file or column cannot be read, or the rows of a motion do not follow each other.
    """
    with open_parquet(path, column) as file:
        groups = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        ends = np.cumsum(groups)
        bounds = [0]
        enough = _next_end(ends, part_rows)
        for row in _motion_ends(file, path, column):
            bounds.append(row)
            if row >= enough:
                yield tuple(bounds)
                bounds = [row]
                enough = _next_end(ends, row + part_rows)
    if len(bounds) > 1:
        yield tuple(bounds)


def _next_end(ends: NDArray[np.int64], row: int) -> int:
    """End of the first row group that reaches a row, or that row if none does."""
    place = int(np.searchsorted(ends, row))
    return int(ends[place]) if place < len(ends) else row


def _motion_ends(file: Any, path: Path, column: str) -> Iterator[int]:
    """Row behind the last one of each motion."""
    seen: set[Any] = set()
    row = 0
    current: Any = None
    for batch in file.iter_batches(batch_size=4 * BLOCK, columns=[column], use_threads=False):
        ids = batch_ids(batch, column, path)
        edges = np.flatnonzero(ids[1:] != ids[:-1]) + 1
        for first in (0, *edges.tolist()) if len(ids) else ():
            identity = ids[first]
            if row + first and identity == current:
                continue
            if identity in seen:
                raise BatchError(
                    f'{path}: the rows of motion {identity!s} do not follow each other (row '
                    f'{row + first} belongs to it again); sort the file by {column!r}.'
                )
            seen.add(identity)
            if row + first:
                yield row + first
            current = identity
        row += len(ids)
    if row:
        yield row


class Rows:
    """Some consecutive rows of a Parquet file, read in order and as many at a time as wanted.

    Parameters
    ----------
    file : pyarrow.parquet.ParquetFile
    path : pathlib.Path
    column : str
        With motion ids.
    titles : sequence of str
        Columns of numbers.
    start, stop : int
        First row, and the one behind the last.

    Raises
    ------
    BatchError
        If a column does not hold numbers.
    """

    def __init__(
        self, file: Any, path: Path, column: str, titles: Sequence[str], start: int, stop: int
    ) -> None:
        self._path, self._column, self._titles = path, column, tuple(titles)
        for title in self._titles:
            kind = file.schema_arrow.field(title).type
            if not np.issubdtype(kind.to_pandas_dtype(), np.number):
                raise BatchError(f'{path}: column {title!r} is of type {kind}, expected numbers.')
        groups = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        ends = np.cumsum(groups)
        first = int(np.searchsorted(ends, start, side='right'))
        last = int(np.searchsorted(ends, stop))
        self._skip = start - sum(groups[:first])
        self._batches = file.iter_batches(
            batch_size=BLOCK,
            row_groups=list(range(first, last + 1)),
            columns=[column, *titles],
            use_threads=False,
        )
        self._rest: list[tuple[Any, Array]] = []

    def take(self, count: int) -> tuple[Any, Array]:
        """Motion ids, shape (count,), and values, shape (count, columns), of the next rows."""
        have = sum(len(ids) for ids, _ in self._rest)
        while have < count or not self._rest:
            batch = next(self._batches)
            if self._skip:
                part = min(self._skip, batch.num_rows)
                self._skip -= part
                batch = batch.slice(part)
            ids = batch_ids(batch, self._column, self._path)
            values = np.empty((len(ids), len(self._titles)))
            for i, title in enumerate(self._titles):
                values[:, i] = batch.column(title).to_numpy(zero_copy_only=False)
            self._rest.append((ids, values))
            have += len(ids)
        ids, values = self._rest[0]
        if len(self._rest) > 1:
            ids = np.concatenate([ids for ids, _ in self._rest])
            values = np.concatenate([values for _, values in self._rest])
        self._rest = [(ids[count:], values[count:])]
        return ids[:count], values[:count]


def open_parquet(path: Path, column: str) -> Any:
    """Open a Parquet file that has a column.

    Raises
    ------
    BatchError
        If the file cannot be read or has no such column.
    """
    library = parquet()
    if path.suffix.lower() != '.parquet':
        raise BatchError(
            f'{path} is no Parquet file, and only those can have a column of motion ids; leave '
            'out motion_column for files with one motion each.'
        )
    try:
        # Page by page, since a row group may be as large as the file.
        file = library.ParquetFile(path, buffer_size=_BUFFER, pre_buffer=False)
    except (ValueError, OSError) as error:  # what pyarrow raises is one of these
        if isinstance(error, FileNotFoundError):
            raise
        raise BatchError(f'{path} cannot be read as a Parquet file: {error}') from error
    names = file.schema_arrow.names
    if column not in names:
        file.close()
        raise BatchError(
            f'{path} has no column {column!r} of motion ids; it has {", ".join(names)}.'
        )
    return file


def batch_ids(batch: Any, column: str, path: Path) -> Any:
    """Motion ids of some rows.

    Raises
    ------
    BatchError
        If one is missing or is neither an integer nor text.
    """
    values = batch.column(batch.schema.get_field_index(column))
    if values.null_count:
        raise BatchError(f'{path}: {values.null_count} rows have no motion id in {column!r}.')
    ids = np.asarray(values.to_numpy(zero_copy_only=False))
    if ids.dtype.kind not in 'iuO' or ids.dtype.kind == 'O' and not all(
        isinstance(item, str) for item in ids[:1]
    ):
        raise BatchError(
            f'{path}: the motion ids in {column!r} are of type {values.type}, expected integers '
            'or text.'
        )
    return ids


class PartWriter:
    """Writes results of many motions to one Parquet file, with the column of their ids.

    Parameters
    ----------
    path : pathlib.Path
    column : str
    rows : int
        Least number of rows of a row group: short motions share one.
    """

    def __init__(self, path: Path, column: str, rows: int) -> None:
        self._path, self._column, self._rows = path, column, rows
        self._titles: list[str] = []
        self._waiting: list[tuple[Any, Array]] = []
        self._writer: Any = None
        self._lines: dict[str, str] = {}

    def write(self, ids: Any, titles: list[str], values: Array, lines: dict[str, str]) -> None:
        """Append rows.

        Parameters
        ----------
        ids : array, shape (N,)
        titles : list of str
        values : ndarray, shape (N, columns)
        lines : dict of str to str
            Metadata of the table.

        Raises
        ------
        BatchError
            If the columns are others than before.
        """
        if not self._titles:
            self._titles, self._lines = titles, lines
        if titles != self._titles:
            odd = sorted(set(titles) ^ set(self._titles))
            raise BatchError(
                f'The result of this motion has other columns than those before it: '
                f'{", ".join(odd[:4])}. Expected the same orders for all motions of a file.'
            )
        self._waiting.append((ids, values))
        if sum(len(item) for item, _ in self._waiting) >= self._rows:
            self._flush()

    def _flush(self) -> None:
        arrow = importlib.import_module('pyarrow')
        ids = arrow.array(np.concatenate([item for item, _ in self._waiting]))
        values = np.concatenate([item for _, item in self._waiting])
        self._waiting = []
        if self._writer is None:
            fields = [arrow.field(self._column, ids.type)]
            fields += [arrow.field(title, arrow.float64()) for title in self._titles]
            metadata = {f'hodyn.{key}': value for key, value in self._lines.items()}
            # Motion ids repeat; floating-point numbers hardly ever do.
            self._writer = parquet().ParquetWriter(
                self._path,
                arrow.schema(fields, metadata=metadata),
                use_dictionary=[self._column],
                compression='zstd',
            )
        columns = [arrow.array(np.ascontiguousarray(column)) for column in values.T]
        self._writer.write_table(
            arrow.Table.from_arrays([ids, *columns], schema=self._writer.schema)
        )

    def close(self) -> None:
        """Finish the file."""
        if self._waiting:
            self._flush()
        if self._writer is not None:
            self._writer.close()
