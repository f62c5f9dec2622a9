"""Tables in files: comma-separated values, arrays of NumPy, Apache Parquet; see doc/files.rst."""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from hodyn_ros.errors import FileError
from hodyn_ros.files.columns import TableFile, WrittenTable, samples_of, table_of
from hodyn_ros.files.formats import Format, Wanted
from hodyn_ros.files.memory import refuse_beyond_memory
from hodyn_ros.files.quantities import QUANTITIES, TIME, WORDS, Word
from hodyn_ros.files.samples import Samples
from hodyn_ros.names import listed
from hodyn_ros.resources import optional_import_module
from hodyn_ros.typing import Array

_NUMBER = re.compile(r'\s*(?:[-+]?\d[\d.]*(?:[eE][-+]?\d+)?|nan)\s*')
_DELIMITERS = ',;\t '
_LONGEST_LINE = 10_000_000  # characters; what is longer is no table
_PREFIX = 'hodyn.'  # of metadata of Parquet
_COPIES = 3  # of a table that are in memory while it is read


@dataclass(frozen=True)
class TableFormat(Format):
    """Tables with a column for each quantity of each joint."""

    suffixes: tuple[str, ...]
    read: Callable[[Path, Sequence[str] | None], TableFile]
    """Opens a file, with joint names for those that have none."""
    put: Callable[[Path, WrittenTable], None]
    """Writes a table."""
    library: str = ''
    """Without which it cannot be written."""

    def motions(self, path: Path, wanted: Wanted) -> Iterator[Samples]:
        """Read the motion of a table.

        Parameters
        ----------
        path : pathlib.Path
            The table.
        wanted : Wanted
            Joint names for tables without them, and how all wrenches are expressed.

        Yields
        ------
        Samples
            One.

        Raises
        ------
        FileError
            If the columns or the metadata make no motion, or a row cannot be read.
        """
        table = self.read(path, wanted.joint_names)
        yield samples_of(table, str(path), wanted.expressed_in, wanted.acting)

    def write(self, path: Path, results: Samples, storage: str) -> None:
        """Write a table.

        Parameters
        ----------
        path : pathlib.Path
            File that is written.
        results : Samples
        storage : str
            Of bags; not used.
        """
        self.put(path, table_of(results))


def _read_csv(path: Path, joint_names: Sequence[str] | None) -> TableFile:
    """Read the head of a table in UTF-8, after which its rows can be read.

    Lines that begin with # stand before the line of titles and may hold metadata as
    `# key: value`; the delimiter is a comma, semicolon or tab, else spaces.
    """
    lines: dict[str, str] = {}
    comment = ''
    with path.open(encoding='utf-8-sig') as file:
        head = 0
        for line in _lines(file, path):
            head += 1
            if line.startswith('#'):
                comment = line[1:]
                key, colon, value = line[1:].partition(':')
                if colon:
                    lines[key.strip()] = value.strip()
            elif line.strip():
                break
        else:
            raise FileError(
                f'{path} is empty; expected a line with the names of the columns.'
            )
        length = len(file.readline(_LONGEST_LINE))
    # Titles have spaces in them, too, so that these divide a line that nothing else does.
    others = max(_DELIMITERS[:-1], key=line.count)
    delimiter = others if others in line else None
    titles = _cells(line, delimiter)
    if all(map(_NUMBER.fullmatch, titles)) and len(_cells(comment, delimiter)) == len(
        titles
    ):
        titles, head = _cells(comment, delimiter), head - 1  # as NumPy writes them
    count = path.stat().st_size / max(length, 1)
    refuse_beyond_memory(str(path), 8.0 * _COPIES * count * len(titles))

    def columns(places: Sequence[int]) -> Sequence[Array]:
        for way in (_by_arrow, _by_numpy):
            try:
                return way(path, head, delimiter, len(titles), places)
            except (ImportError, ValueError):
                pass  # Quoted cells, empty ones, or something that is to be named.
        return _one_by_one(path, head, delimiter, titles, places)

    return TableFile(titles, lines, columns)


def _by_arrow(
    path: Path, head: int, delimiter: str | None, width: int, places: Sequence[int]
) -> Sequence[Array]:
    """Columns of a CSV by pyarrow, where it is installed."""
    library: Any = import_module('pyarrow.csv')
    names = [str(place) for place in range(width)]
    table = library.read_csv(
        path,
        library.ReadOptions(skip_rows=head, column_names=names),
        library.ParseOptions(delimiter=delimiter or ' ', quote_char=False),
        library.ConvertOptions(
            column_types=dict.fromkeys(names, 'float64'),
            include_columns=[names[place] for place in places],
            null_values=[''],
        ),
    )
    return list(map(_numbers, table.columns))


def _numbers(column: Any) -> Array:
    """Values of a column of Arrow, whose own way to NumPy imports pandas, which takes longer."""
    if column.null_count or str(column.type) != 'double' or not column.num_chunks:
        return np.asarray(column.to_numpy(), dtype=np.float64)
    parts = [
        np.frombuffer(chunk.buffers()[1], count=len(chunk), offset=8 * chunk.offset)
        for chunk in column.chunks
    ]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _by_numpy(
    path: Path, head: int, delimiter: str | None, width: int, places: Sequence[int]
) -> Sequence[Array]:
    """Columns of a CSV that hold nothing but numbers, beside others without quoted delimiters."""
    chosen = places if delimiter and len(places) < width else None  # which takes longer
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', UserWarning)  # of no rows, which are refused later
        values = np.loadtxt(
            path,
            delimiter=delimiter,
            comments=None,
            skiprows=head,
            usecols=chosen,
            ndmin=2,
            encoding='utf-8-sig',
        )
    counts = {values.shape[1]}
    if delimiter and chosen:  # the others are not looked at
        rows = path.read_bytes().split(b'\n', head)[-1].splitlines()
        counts = {1 + row.count(delimiter.encode()) for row in rows if row.strip()}
    if not counts <= {width}:
        raise ValueError('other cells than titles')
    return list(values.T if chosen else values.T[list(places)])


def _one_by_one(
    path: Path,
    head: int,
    delimiter: str | None,
    titles: Sequence[str],
    places: Sequence[int],
) -> Sequence[Array]:
    """Columns of a CSV cell by cell, in which the first that is no number is named."""
    rows: list[list[float]] = []
    with path.open(encoding='utf-8-sig') as file:
        for number, line in enumerate(_lines(file, path), 1):
            if number <= head or line.isspace():
                continue
            cells = _cells(line, delimiter)
            if len(cells) != len(titles):
                raise FileError(
                    f'{path}, line {number}: {len(cells)} cells, expected {len(titles)}, one for '
                    'each column.'
                )
            try:
                rows.append([])
                for place in places:
                    rows[-1].append(float(cells[place].strip() or 'nan'))
            except ValueError:
                comma = re.fullmatch(r'\s*-?\d+,\d+\s*', cells[place]) is not None
                title = titles[place].partition(' [')[0]
                raise FileError(
                    f'{path}, line {number}, column {title!r}: {cells[place][:80]!r}, expected a '
                    f'number{" with a point in place of the comma" * comma}.'
                ) from None
    return list(np.array(rows).reshape(-1, len(places)).T)


def _cells(line: str, delimiter: str | None) -> list[str]:
    """Cells of a line."""
    if delimiter is None:
        return line.split()
    return next(csv.reader([line], delimiter=delimiter))


def _lines(file: TextIO, path: Path) -> Iterator[str]:
    """Lines of a text, each with its end; refuses one that is too long for a table."""
    while line := file.readline(_LONGEST_LINE):
        if len(line) == _LONGEST_LINE:
            raise FileError(f'{path} has a line that is too long for a table.')
        yield line


def _write_csv(path: Path, table: WrittenTable) -> None:
    """Write lines and titles, then numbers with all digits that it takes to read them back."""
    with path.open('w', encoding='utf-8', newline='') as file:
        file.writelines(f'# {key}: {value}\n' for key, value in table.lines.items())
        csv.writer(file, lineterminator='\n').writerow(table.titles)
        try:
            library: Any = import_module('pyarrow.csv')
        except ImportError:
            rows = zip(*(column.tolist() for column in table.columns.values()))
            file.writelines(','.join(map(_as_arrow, row)) + '\n' for row in rows)
            return
        file.flush()
        columns = _arrow_columns(import_module('pyarrow'), table)
        library.write_csv(columns, file.buffer, library.WriteOptions(include_header=False))


def _arrow_columns(pyarrow: Any, table: WrittenTable) -> Any:
    """Table of Arrow, by buffers: `pyarrow.table` would import pandas to look at the columns."""
    kind = pyarrow.float64()
    buffers = (pyarrow.py_buffer(np.ascontiguousarray(c)) for c in table.columns.values())
    columns = [
        pyarrow.Array.from_buffers(kind, each.size // 8, [None, each]) for each in buffers
    ]
    return pyarrow.Table.from_arrays(columns, names=list(table.columns))


def _as_arrow(value: float) -> str:
    """All digits of a number, in the form in which pyarrow writes it."""
    size = abs(value)
    if 1e-6 <= size < 1e-4:
        return np.format_float_positional(value, trim='-')
    if 0.0 < size < 1e-6 or 1e10 <= size < np.inf:
        return np.format_float_scientific(value, trim='-', exp_digits=1)
    return repr(value).removesuffix('.0')


def _read_npz(path: Path, joint_names: Sequence[str] | None) -> TableFile:
    """Read arrays (N,) under the titles of columns, or those of all joints under their words."""
    with path.open('rb') as opened, np.load(opened, allow_pickle=False) as file:
        size = sum(item.file_size for item in file.zip.infolist())
        refuse_beyond_memory(str(path), float(_COPIES * size))
        arrays: dict[str, Any] = dict(file)
    lines = {name: str(values) for name, values in arrays.items() if not values.ndim}
    joints = [str(name) for name in arrays.get('joint_names', joint_names or ())]
    columns: dict[str, Array] = {}
    for name, values in arrays.items():
        if values.ndim and values.dtype.kind in 'fiu':
            found = _columns_of(path, name, values, joints)
            if twice := columns.keys() & found:
                raise FileError(
                    f'{path}: {name!r} and another array hold {sorted(twice)[0]!r}; leave one out.'
                )
            columns |= found
    titles = list(columns)

    def numbers(place: int) -> Array:
        values = columns[titles[place]]
        if values.shape != arrays[TIME].shape:
            raise FileError(
                f'{path}: {titles[place]!r} has shape {values.shape}, but time has '
                f'{arrays[TIME].shape}; expected as many.'
            )
        return np.asarray(values, dtype=np.float64)

    return TableFile(titles, lines, lambda places: list(map(numbers, places)))


def _columns_of(
    path: Path, name: str, values: Array, joints: Sequence[str]
) -> dict[str, Array]:
    """Columns of an array: itself, or of (N, n) or (N, orders, n) those of each joint."""
    word = WORDS.get(name) or (Word(name, 0, '') if name in QUANTITIES else None)
    if values.ndim == 1 or word is None or QUANTITIES[word.field].owners != 'joint_names':
        return {name: values}
    names = QUANTITIES[word.field].names[word.order :]
    if values.ndim == 2:
        values = values[:, None]
    if values.ndim != 3 or values.shape[2] != len(joints) or len(names) < values.shape[1]:
        raise FileError(
            f'{path}: {name!r} has shape {values.shape}, expected (N, n) or (N, orders, n) with '
            f'n = {len(joints)} as there are joint_names: {listed(joints)}; add them to the file, '
            'or give joint_names.'
        )
    return {
        f'{joint}.{names[k]}': values[:, k, j]
        for k in range(values.shape[1])
        for j, joint in enumerate(joints)
    }


def _write_npz(path: Path, table: WrittenTable) -> None:
    """Write an array for each column, and one of a text for each line."""
    arrays: dict[str, Any] = {**table.columns, **table.lines, **table.said}
    np.savez(path, **arrays)


def _read_parquet(path: Path, joint_names: Sequence[str] | None) -> TableFile:
    """Read the schema, after which columns can be read."""
    library = _arrow('pyarrow.parquet', path)
    schema, count = library.read_schema(path), library.read_metadata(path).num_rows
    refuse_beyond_memory(str(path), 8.0 * _COPIES * count * len(schema.names))
    lines = {
        key.decode()[len(_PREFIX) :]: value.decode()
        for key, value in (schema.metadata or {}).items()
        if key.startswith(_PREFIX.encode())
    }
    types, titles = _arrow('pyarrow.types', path), list(schema.names)

    def columns(places: Sequence[int]) -> Sequence[Array]:
        for place in places:
            kind = schema.types[place]
            if not (types.is_floating(kind) or types.is_integer(kind)):
                raise FileError(
                    f'{path}: column {titles[place]!r} is of type {kind}, expected numbers.'
                )
        found = library.read_table(path, columns=[titles[place] for place in places])
        return list(map(_numbers, found.columns))

    return TableFile(titles, lines, columns)


def _write_parquet(path: Path, table: WrittenTable) -> None:
    """Write columns as they are packed best."""
    lines = {f'{_PREFIX}{key}': value for key, value in (table.lines | table.said).items()}
    # Floating-point numbers hardly ever repeat, which is what a dictionary is for. Their bytes
    # apart, signs and exponents first, are what can be compressed of them.
    _arrow('pyarrow.parquet', path).write_table(
        _arrow_columns(_arrow('pyarrow', path), table).replace_schema_metadata(lines),
        path,
        use_dictionary=False,
        use_byte_stream_split=list(table.columns),
        compression='zstd',
    )


def _arrow(module: str, path: Path) -> Any:
    """Import a module of pyarrow, which is not always installed."""
    text = f'{path}: files of this kind need pyarrow'
    return optional_import_module(module, text, 'tables', FileError)


CSV = TableFormat(('.csv',), _read_csv, _write_csv)
"""Comma-separated values."""
NPZ = TableFormat(('.npz',), _read_npz, _write_npz)
"""Arrays of NumPy."""
PARQUET = TableFormat(('.parquet',), _read_parquet, _write_parquet, 'pyarrow.parquet')
"""Apache Parquet."""
