"""Tables of comma-separated values, read and written block by block; see doc/files.rst."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from importlib import import_module
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from hodyn_ros.checks import Array
from hodyn_ros.errors import FileError
from hodyn_ros.files.columns import (
    TableFormat,
    columns_of,
    metadata_of,
    read_titles,
    side_file,
    text_titles,
)
from hodyn_ros.files.quantities import TIME
from hodyn_ros.files.samples import Samples

_DELIMITERS = ',;\t '
_NUMBER = re.compile(r'[-+]?\d[\d.]*(?:[eE][-+]?\d+)?|nan')
_ENDS = 1 << 16  # bytes that tell a table from another one
_LONGEST_LINE = 10_000_000  # characters; what is longer is no table


class CsvTable:
    """A table of comma-separated values; its head is read at once, its rows when asked for.

    Parameters
    ----------
    path : pathlib.Path
        File in UTF-8. Lines that begin with # stand before the line of titles and may hold
        metadata as `# key: value`, or `# column THEIRS: OURS` for a title to be replaced by one
        of this package; the delimiter is a comma, semicolon or tab, else spaces.

    Attributes
    ----------
    titles : list of str
        Without units.
    lines : dict of str to str
        Metadata: of the file beside it, then of its first lines, then of its titles, which
        go last and override the others.

    Raises
    ------
    FileError
        If it is empty, has a line of 10 million characters, or a column in another unit.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.lines: dict[str, str] = {}
        comment = ''
        with path.open(encoding='utf-8-sig') as file:
            for self._head, line in enumerate(_lines(file, path), 1):
                if line.startswith('#'):
                    comment = line[1:]
                    key, colon, value = line[1:].partition(':')
                    if colon:
                        self.lines[key.strip()] = value.strip()
                elif line.strip():
                    break
            else:
                raise FileError(
                    f'{path} is empty; expected a line with the names of the columns.'
                )
        # Titles have spaces in them, too, so that these divide a line that nothing else does.
        others = max(_DELIMITERS[:-1], key=line.count)
        self._delimiter = others if others in line else _DELIMITERS[-1]
        if _are_numbers(self._cells(line)) and len(self._cells(comment)) == len(
            self._cells(line)
        ):
            line, self._head = comment, self._head - 1  # as NumPy writes titles
        names = {k[7:]: ours for k, ours in self.lines.items() if k.startswith('column ')}
        cells = [names.get(cell.strip(), cell) for cell in self._cells(line)]
        self.titles, said, factors = read_titles(cells, str(path))
        self._factors = np.array(factors)
        self.lines = {**_beside(path, json.loads(said['units'])), **self.lines, **said}

    def blocks(self, columns: Sequence[int], chunk: int) -> Iterator[Array]:
        """Values of some columns.

        Parameters
        ----------
        columns : sequence of int
            Places among `titles`.
        chunk : int
            Largest number of lines of a block; empty lines are left out.

        Yields
        ------
        ndarray, shape (up to chunk, columns)
            NaN where a cell is empty.

        Raises
        ------
        FileError
            If a line has another number of cells, or a cell is no number; the message names
            the line.
        """
        with self._path.open(encoding='utf-8-sig') as file:
            lines = islice(enumerate(_lines(file, self._path), 1), self._head, None)
            while batch := list(islice(lines, chunk)):
                if filled := [item for item in batch if not item[1].isspace()]:
                    values, factors = (
                        self._parsed(filled, columns),
                        self._factors[list(columns)],
                    )
                    yield values if (factors == 1.0).all() else values * factors

    def _cells(self, line: str) -> list[str]:
        """Cells of a line."""
        if self._delimiter == ' ':
            return line.split()
        return next(csv.reader([line], delimiter=self._delimiter))

    def _parsed(self, lines: list[tuple[int, str]], columns: Sequence[int]) -> Array:
        """Values of lines with their numbers.

        Shape (lines, columns). By pyarrow where it is installed; line by line if that
        fails, which tells where.
        """
        separators, library = len(self.titles) - 1, _arrow_csv()
        if library is not None and all(
            line.count(self._delimiter) == separators for _, line in lines
        ):
            names = [str(i) for i in range(len(self.titles))]
            try:
                table = library.read_csv(
                    BytesIO(''.join(line for _, line in lines).encode()),
                    library.ReadOptions(use_threads=False, column_names=names),
                    library.ParseOptions(delimiter=self._delimiter, quote_char=False),
                    library.ConvertOptions(
                        column_types=dict.fromkeys(names, 'float64'),
                        include_columns=[names[column] for column in columns],
                        null_values=[''],
                    ),
                )
                values = np.empty((len(lines), len(columns)), order='F')
                for place, column in enumerate(table.columns):
                    values[:, place] = column
                return values
            except ValueError:
                pass  # Quoted cells, or something that is to be named.
        return self._one_by_one(lines, columns)

    def _one_by_one(self, lines: list[tuple[int, str]], columns: Sequence[int]) -> Array:
        """Values of lines, in which the first that is no number is named."""
        rows = []
        for number, line in lines:
            cells = self._cells(line)
            if len(cells) != len(self.titles):
                raise FileError(
                    f'{self._path}, line {number}: {len(cells)} cells, expected '
                    f'{len(self.titles)}, one for each column.'
                )
            try:
                for column in columns:
                    rows.append(float(cells[column].strip() or 'nan'))
            except ValueError:
                comma = re.fullmatch(r'\s*-?\d+,\d+\s*', cells[column]) is not None
                raise FileError(
                    f'{self._path}, line {number}, column {self.titles[column]!r}: '
                    f'{cells[column][:80]!r}, expected a number'
                    f'{" with a point in place of the comma" * comma}.'
                ) from None
        return np.array(rows).reshape(len(lines), len(columns))


class CsvWriter:
    """Writes a table of comma-separated values block by block.

    Parameters
    ----------
    path : pathlib.Path
        File that is written, in UTF-8 with commas.
    titles : sequence of str
        Without units; they are written with them.
    lines : mapping of str to str
        Metadata, see `metadata_of`.
    """

    def __init__(self, path: Path, titles: Sequence[str], lines: Mapping[str, str]) -> None:
        self._path, self._lines = path, dict(lines)
        self._file, self._library = (
            path.open('w', encoding='utf-8', newline=''),
            _arrow_csv(),
        )
        csv.writer(self._file, lineterminator='\n').writerow(text_titles(titles, lines))
        self._file.flush()

    def write(self, columns: Sequence[Array]) -> None:
        """Append columns (N,); every number can be read back exactly.

        Parameters
        ----------
        columns : sequence of ndarray, shape (N,)
            In the order of the titles.
        """
        if (library := self._library) is None:
            rows = zip(*(column.tolist() for column in columns))
            self._file.writelines(','.join(map(repr, row)) + '\n' for row in rows)
            return
        names = [str(i) for i in range(len(columns))]
        table = import_module('pyarrow').table(dict(zip(names, columns)))
        library.write_csv(
            table, self._file.buffer, library.WriteOptions(include_header=False)
        )

    def close(self) -> None:
        """Finish the file, and write what belongs to it but not into a table beside it."""
        self._file.close()
        content = {
            **self._lines,
            'table': _fingerprint(self._path),
            'units': json.loads(self._lines['units']),
        }
        text = json.dumps(content, indent=2, ensure_ascii=False)
        side_file(self._path).write_text(f'{text}\n', encoding='utf-8')


def _beside(path: Path, units: Mapping[str, str]) -> dict[str, str]:
    """Lines of the file beside a table in text, if it is about this table and these units.

    What is left of an old table says nothing of another one that has taken its place.
    """
    try:
        content = json.loads(side_file(path).read_text(encoding='utf-8'))
    except (OSError, ValueError):
        return {}
    known = content.get('units') if isinstance(content, dict) else None
    # Earlier versions did not say which table it stands beside.
    if known is None or content.get('table', _fingerprint(path)) != _fingerprint(path):
        return {}
    same = units.items() & known.items() if isinstance(known, dict) else set()
    if all(column == TIME for column, _ in same):
        return {}
    return {key: value for key, value in content.items() if isinstance(value, str)}


def _fingerprint(path: Path) -> str:
    """What tells a table from another one that takes its place: its size, beginning and end."""
    with path.open('rb') as file:
        first, size = file.read(_ENDS), path.stat().st_size
        file.seek(max(0, size - _ENDS))
        return sha256(b'%d %b %b' % (size, first, file.read())).hexdigest()


def _are_numbers(cells: Sequence[str]) -> bool:
    return all(_NUMBER.fullmatch(cell.strip()) for cell in cells)


def _arrow_csv() -> Any:
    """CSV of pyarrow; None where it is not installed."""
    try:
        return import_module('pyarrow.csv')
    except ImportError:
        return None


def _lines(file: TextIO, path: Path) -> Iterator[str]:
    """Lines of a text, each with its end; refuses one that is too long for a table."""
    while line := file.readline(_LONGEST_LINE):
        if len(line) == _LONGEST_LINE:
            raise FileError(f'{path} has a line that is too long for a table.')
        yield line


def _write(path: Path, results: Samples) -> None:
    titles, columns = columns_of(results)
    writer = CsvWriter(path, titles, metadata_of(results))
    writer.write(columns)
    writer.close()


CSV = TableFormat(('.csv',), lambda path, _: CsvTable(path), _write)
"""Comma-separated values."""
