"""Tables in Apache Parquet, through pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hodyn_ros.errors import FileError
from hodyn_ros.io.access import guarded, optional, reading, writing
from hodyn_ros.io.samples import Array

_EXTRA = 'tables'
_PREFIX = 'hodyn.'
_BUFFER = 1 << 20  # bytes of each column that are read ahead


class ParquetTable:
    """A table in Parquet; its head is read at once, its rows when asked for.

    Parameters
    ----------
    path : pathlib.Path

    Attributes
    ----------
    titles : list of str
    lines : dict of str to str
        Metadata.

    Raises
    ------
    FileError
        If pyarrow is missing or the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._file() as file, reading(path, 'Parquet'):
            self.titles = list(file.schema_arrow.names)
            self._types = list(file.schema_arrow.types)
            found = file.schema_arrow.metadata or {}
            self.lines = {
                key.decode()[len(_PREFIX) :]: value.decode()
                for key, value in found.items()
                if key.startswith(_PREFIX.encode())
            }

    def blocks(self, columns: Sequence[int], chunk: int) -> Iterator[Array]:
        """Values of some columns, blocks of rows of shape (up to chunk, columns).

        Raises
        ------
        FileError
            If a column does not hold numbers, or the file is damaged.
        """
        titles = [self.titles[column] for column in columns]
        arrow: Any = optional('pyarrow', _EXTRA, self._path)
        for column, title in zip(columns, titles):
            kind = self._types[column]
            if not (arrow.types.is_floating(kind) or arrow.types.is_integer(kind)):
                raise FileError(
                    f'{self._path}: column {title!r} is of type {kind}, expected numbers.'
                )
        with self._file() as file:
            with reading(self._path, 'Parquet'):
                batches = file.iter_batches(batch_size=chunk, columns=titles, use_threads=False)
            for batch in guarded(batches, self._path, 'Parquet'):
                with reading(self._path, 'Parquet'):
                    values = np.empty((batch.num_rows, len(titles)))
                    for i, title in enumerate(titles):
                        values[:, i] = batch.column(title).to_numpy(zero_copy_only=False)
                if len(values):
                    yield values

    def _file(self) -> Any:
        parquet = optional('pyarrow.parquet', _EXTRA, self._path)
        with reading(self._path, 'Parquet'):
            return parquet.ParquetFile(self._path, buffer_size=_BUFFER, pre_buffer=False)


class ParquetWriter:
    """Writes a table in Parquet block by block, each a row group; see `CsvWriter`."""

    def __init__(self, path: Path, titles: Sequence[str], lines: Mapping[str, str]) -> None:
        self._path = path
        self._arrow: Any = optional('pyarrow', _EXTRA, path)
        parquet: Any = optional('pyarrow.parquet', _EXTRA, path)
        with writing(path):
            metadata = {f'{_PREFIX}{key}': value for key, value in lines.items()}
            fields = [self._arrow.field(title, self._arrow.float64()) for title in titles]
            self._schema = self._arrow.schema(fields, metadata=metadata)
            # Floating-point numbers hardly ever repeat, which is what a dictionary is for.
            self._writer = parquet.ParquetWriter(
                path, self._schema, use_dictionary=False, compression='zstd'
            )

    def write(self, values: Array) -> None:
        """Append rows, shape (N, columns)."""
        with writing(self._path):
            columns = [np.ascontiguousarray(column) for column in values.T]
            table = self._arrow.Table.from_arrays(
                [self._arrow.array(column) for column in columns], schema=self._schema
            )
            self._writer.write_table(table)

    def close(self) -> None:
        """Finish the file."""
        with writing(self._path):
            self._writer.close()
