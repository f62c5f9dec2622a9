"""Tables as text: comma-separated values with a line of column names.

Lines before it that begin with `#` hold metadata, `# key: value`. Semicolons and tabulators
separate as well as commas.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TextIO

import numpy as np

from hodyn_ros.errors import FileError
from hodyn_ros.io.access import reading, writing
from hodyn_ros.io.samples import Array

_DELIMITERS = ',;\t'
_LONGEST_LINE = 10_000_000  # characters; what is longer is no table


class CsvTable:
    """A table of comma-separated values; its head is read at once, its rows when asked for.

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
        If there is no such file, or it has no line of column names.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.lines: dict[str, str] = {}
        with reading(path, 'CSV'), _opened(path) as file:
            for self._head, line in enumerate(_lines(file, path), 1):
                if line.startswith('#'):
                    key, colon, value = line[1:].partition(':')
                    if colon:
                        self.lines[key.strip()] = value.strip()
                elif line.strip():
                    break
            else:
                raise FileError(f'{path} is empty; expected a line with the names of the columns.')
            self._delimiter = max(_DELIMITERS, key=line.count)
            self.titles = next(csv.reader([line], delimiter=self._delimiter))
        self.titles = [title.strip() for title in self.titles]

    def blocks(self, columns: Sequence[int], chunk: int) -> Iterator[Array]:
        """Values of some columns, blocks of rows of shape (chunk, columns).

        Raises
        ------
        FileError
            If a row has too many or too few cells, or one that is no number.
        """
        with reading(self._path, 'CSV'):
            file = _opened(self._path)
        with file:
            lines = _lines(file, self._path)
            number = self._head
            for _ in islice(lines, number):
                pass
            while True:
                with reading(self._path, 'CSV'):
                    batch = list(islice(lines, chunk))
                    if not batch:
                        return
                    values = self._parsed(batch, columns, number + 1)
                number += len(batch)
                if len(values):
                    yield values

    def _parsed(self, lines: list[str], columns: Sequence[int], number: int) -> Array:
        """Values of lines, of which the first has the given number."""
        separators = len(self.titles) - 1
        filled = [line for line in lines if not line.isspace()]
        if not filled:
            return np.empty((0, len(columns)))
        if all(line.count(self._delimiter) == separators for line in filled):
            try:
                return np.loadtxt(
                    filled, delimiter=self._delimiter, usecols=columns, ndmin=2, comments=None
                )
            except ValueError:
                pass  # Empty or quoted cells, or something that is to be named.
        return np.array([
            self._row(line, columns, number + i)
            for i, line in enumerate(lines)
            if not line.isspace()
        ])  # fmt: skip

    def _row(self, line: str, columns: Sequence[int], number: int) -> list[float]:
        cells = next(csv.reader([line], delimiter=self._delimiter))
        if len(cells) != len(self.titles):
            raise FileError(
                f'{self._path}, line {number}: {len(cells)} cells, expected {len(self.titles)}, '
                'one for each column.'
            )
        return [self._number(cells[column], column, number) for column in columns]

    def _number(self, cell: str, column: int, number: int) -> float:
        text = cell.strip()
        try:
            return float(text) if text else np.nan
        except ValueError:
            raise FileError(
                f'{self._path}, line {number}, column {self.titles[column]!r}: {cell[:80]!r}, '
                'expected a number.'
            ) from None


class CsvWriter:
    """Writes a table of comma-separated values block by block.

    Parameters
    ----------
    path : pathlib.Path
    titles : sequence of str
    lines : mapping of str to str
        Metadata.
    """

    def __init__(self, path: Path, titles: Sequence[str], lines: Mapping[str, str]) -> None:
        self._path = path
        with writing(path):
            self._file = path.open('w', encoding='utf-8', newline='')
            for key, value in lines.items():
                self._file.write(f'# {key}: {value}\n')
            csv.writer(self._file, lineterminator='\n').writerow(titles)

    def write(self, values: Array) -> None:
        """Append rows, shape (N, columns); every number can be read back exactly."""
        with writing(self._path):
            self._file.writelines(
                ','.join(map(repr, row)) + '\n' for row in np.asarray(values).tolist()
            )

    def close(self) -> None:
        """Finish the file."""
        with writing(self._path):
            self._file.close()


def _opened(path: Path) -> TextIO:
    return path.open(encoding='utf-8-sig', newline=None)


def _lines(file: TextIO, path: Path) -> Iterator[str]:
    while line := file.readline(_LONGEST_LINE):
        if len(line) == _LONGEST_LINE:
            raise FileError(f'{path} has a line that is too long for a table.')
        yield line
