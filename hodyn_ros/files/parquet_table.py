"""Tables in Apache Parquet, read and written block by block; see doc/files.rst."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from hodyn_ros.checks import Array
from hodyn_ros.errors import FileError
from hodyn_ros.files.columns import TableFormat, columns_of, metadata_of
from hodyn_ros.files.samples import Samples
from hodyn_ros.resources import optional_import_module

_PREFIX = 'hodyn.'  # of metadata
_BUFFER = 1 << 20  # bytes of each column that are read ahead


class ParquetTable:
    """A table in Parquet; its head is read at once, its rows when asked for.

    Parameters
    ----------
    path : pathlib.Path
        The file; its metadata are the keys that begin with 'hodyn.'.

    Attributes
    ----------
    titles : list of str
        Without units.
    lines : dict of str to str
        Metadata, see `parse_metadata`.

    Raises
    ------
    FileError
        If pyarrow is not installed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with self.opened() as file:
            schema = file.schema_arrow
        self.titles, self._types = list(schema.names), list(schema.types)
        self.lines = {
            key.decode()[len(_PREFIX) :]: value.decode()
            for key, value in (schema.metadata or {}).items()
            if key.startswith(_PREFIX.encode())
        }

    def opened(self) -> Any:
        """Open the file with pyarrow, page by page, since a row group may be as large as it is.

        Returns
        -------
        pyarrow.parquet.ParquetFile
            To be used as a context, which closes it.

        Raises
        ------
        FileError
            If pyarrow is not installed.
        """
        parquet: Any = arrow('pyarrow.parquet', self._path)
        return parquet.ParquetFile(self._path, buffer_size=_BUFFER, pre_buffer=False)

    def blocks(
        self, columns: Sequence[int], chunk: int, row_groups: Sequence[int] | None = None
    ) -> Iterator[Array]:
        """Values of some columns.

        Parameters
        ----------
        columns : sequence of int
            Places among `titles`.
        chunk : int
            Largest number of rows of a block.
        row_groups : sequence of int, optional
            Those that are read; by default all.

        Yields
        ------
        ndarray, shape (up to chunk, columns)
            NaN where a value is null.

        Raises
        ------
        FileError
            If a column does not hold numbers.
        """
        types: Any = arrow('pyarrow.types', self._path)
        for column in columns:
            kind = self._types[column]
            if not (types.is_floating(kind) or types.is_integer(kind)):
                raise FileError(
                    f'{self._path}: column {self.titles[column]!r} is of type {kind}, expected '
                    'numbers.'
                )
        titles = [self.titles[column] for column in columns]
        with self.opened() as file:
            for batch in file.iter_batches(
                batch_size=chunk, row_groups=row_groups, columns=titles, use_threads=False
            ):
                values = np.empty((batch.num_rows, len(titles)), order='F')
                for i, title in enumerate(titles):
                    values[:, i] = batch.column(title).to_numpy(zero_copy_only=False)
                if len(values):
                    yield values


class ParquetWriter:
    """Writes a table in Parquet block by block, each a row group; one for each call.

    With the name of a column of motion ids, these stand in front of the others.

    Parameters
    ----------
    path : pathlib.Path
        File that is written.
    titles : sequence of str
        Of the columns of numbers, without units.
    lines : mapping of str to str
        Metadata, see `metadata_of`; written with the prefix 'hodyn.'.
    ids : str, optional
        Name of the column of motion ids.

    Raises
    ------
    FileError
        If pyarrow is not installed.
    """

    def __init__(
        self,
        path: Path,
        titles: Sequence[str],
        lines: Mapping[str, str],
        ids: str | None = None,
    ) -> None:
        self._table: Any = arrow('pyarrow', path).table
        self._make: Any = arrow('pyarrow.parquet', path).ParquetWriter
        self._path, self._titles, self._ids = path, titles, ids
        self._metadata = {f'{_PREFIX}{key}': value for key, value in lines.items()}
        self._writer: Any = None

    def write(self, columns: Sequence[Array], ids: Any = None) -> None:
        """Append columns (N,), and the motion ids of the rows, if there are.

        Parameters
        ----------
        columns : sequence of ndarray, shape (N,)
            In the order of the titles.
        ids : array of pyarrow, length N
            Needed if the writer has a column of motion ids.
        """
        table = self._table(dict(zip(self._titles, columns)), metadata=self._metadata)
        if self._ids is not None:
            table = table.add_column(0, self._ids, [ids])
        if self._writer is None:
            # Floating-point numbers hardly ever repeat, which is what a dictionary is for. Their
            # bytes apart, signs and exponents first, are what can be compressed of them.
            self._writer = self._make(
                self._path,
                table.schema,
                use_dictionary=False if self._ids is None else [self._ids],
                use_byte_stream_split=list(self._titles),
                compression='zstd',
            )
        self._writer.write_table(table)

    def close(self) -> None:
        """Finish the file.

        Without any columns there is no file.
        """
        if self._writer is not None:
            self._writer.close()


def arrow(module: str, path: Path) -> ModuleType:
    """Import a module of pyarrow, which is not always installed.

    Parameters
    ----------
    module : str
        Such as 'pyarrow.parquet'.
    path : pathlib.Path
        File that it is needed for, for the message.

    Returns
    -------
    module

    Raises
    ------
    FileError
        If it is not installed; the message says how to install it.
    """
    return optional_import_module(
        module, f'{path}: files of this kind need pyarrow', 'tables', FileError
    )


def _write(path: Path, results: Samples) -> None:
    titles, columns = columns_of(results)
    writer = ParquetWriter(path, titles, metadata_of(results))
    writer.write(columns)
    writer.close()


PARQUET = TableFormat(('.parquet',), lambda path, _: ParquetTable(path), _write)
"""Apache Parquet."""
