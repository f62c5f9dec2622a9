"""Tables as text (CSV), in Apache Parquet and as arrays of NumPy (NPZ); see doc/files.rst.

A table has `titles`, `lines` of metadata and `blocks` of rows, shape (up to chunk, columns). All
are read and written block by block, so that a file may be larger than the memory.
"""

from __future__ import annotations

import csv
import json
import math
import shutil
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from importlib import import_module
from io import BytesIO
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import IO, Any, TextIO, Union

import numpy as np

from hodyn_ros.checks import Array
from hodyn_ros.errors import FileError
from hodyn_ros.files.columns import (
    DEFLECTION,
    EFFORT,
    EFFORT_STD,
    MOTION,
    MOTION_STD,
    MOTOR_MOTION,
    MOTOR_TORQUE,
    STIFFNESS,
    TIME,
    WRENCH,
    metadata_of,
    read_titles,
    text_titles,
)
from hodyn_ros.files.samples import DEVIATIONS, Results
from hodyn_ros.names import listed
from hodyn_ros.resources import optional_import_module

_DELIMITERS = ',;\t'
_LONGEST_LINE = 10_000_000  # characters; what is longer is no table
_PREFIX = 'hodyn.'  # of metadata in Parquet
_BUFFER = 1 << 20  # bytes of each column that are read ahead


class CsvTable:
    """A table of comma-separated values; its head is read at once, its rows when asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.lines: dict[str, str] = {}
        with _opened(path) as file:
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
        cells = next(csv.reader([line], delimiter=self._delimiter))
        self.titles, said = read_titles(cells, str(path))
        self.lines = {**_beside(path, json.loads(said['units'])), **self.lines, **said}

    def blocks(self, columns: Sequence[int], chunk: int) -> Iterator[Array]:
        """Values of some columns."""
        with _opened(self._path) as file:
            lines = islice(enumerate(_lines(file, self._path), 1), self._head, None)
            while batch := list(islice(lines, chunk)):
                if filled := [item for item in batch if not item[1].isspace()]:
                    yield self._parsed(filled, columns)

    def _parsed(self, lines: list[tuple[int, str]], columns: Sequence[int]) -> Array:
        """Values of lines with their numbers."""
        separators = len(self.titles) - 1
        if all(line.count(self._delimiter) == separators for _, line in lines):
            texts = [line for _, line in lines]
            try:
                if (library := _arrow_csv()) is None:
                    return np.loadtxt(
                        texts, delimiter=self._delimiter, usecols=columns, ndmin=2, comments=None
                    )
                names = [str(i) for i in range(len(self.titles))]
                table = library.read_csv(
                    BytesIO(''.join(texts).encode()),
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
        rows = []
        for number, line in lines:
            cells = next(csv.reader([line], delimiter=self._delimiter))
            if len(cells) != len(self.titles):
                raise FileError(
                    f'{self._path}, line {number}: {len(cells)} cells, expected '
                    f'{len(self.titles)}, one for each column.'
                )
            try:
                for column in columns:
                    rows.append(float(cells[column].strip() or 'nan'))
            except ValueError:
                raise FileError(
                    f'{self._path}, line {number}, column {self.titles[column]!r}: '
                    f'{cells[column][:80]!r}, expected a number.'
                ) from None
        return np.array(rows).reshape(len(lines), len(columns))


class CsvWriter:
    """Writes a table of comma-separated values block by block."""

    def __init__(self, path: Path, titles: Sequence[str], lines: Mapping[str, str]) -> None:
        self._path, self._lines = path, dict(lines)
        self._file, self._library = path.open('w', encoding='utf-8', newline=''), _arrow_csv()
        csv.writer(self._file, lineterminator='\n').writerow(text_titles(titles, lines))
        self._file.flush()

    def write(self, columns: Sequence[Array]) -> None:
        """Append columns (N,); every number can be read back exactly."""
        if (library := self._library) is None:
            rows = zip(*(column.tolist() for column in columns))
            self._file.writelines(','.join(map(repr, row)) + '\n' for row in rows)
            return
        names = [str(i) for i in range(len(columns))]
        table = import_module('pyarrow').table(dict(zip(names, columns)))
        library.write_csv(table, self._file.buffer, library.WriteOptions(include_header=False))

    def close(self) -> None:
        """Finish the file, and write what belongs to it but not into a table beside it."""
        self._file.close()
        content = {**self._lines, 'units': json.loads(self._lines['units'])}
        text = json.dumps(content, indent=2, ensure_ascii=False)
        side_file(self._path).write_text(f'{text}\n', encoding='utf-8')


def side_file(path: Path) -> Path:
    """File beside a table in text that says when it begins and where it comes from."""
    return path.with_name(f'{path.name}.json')


def _beside(path: Path, units: Mapping[str, str]) -> dict[str, str]:
    """Lines of the file beside a table in text, if it is about columns with these units.

    What is left of an old table says nothing of another one that has taken its place.
    """
    try:
        content = json.loads(side_file(path).read_text(encoding='utf-8'))
    except (OSError, ValueError):
        return {}
    known = content.get('units') if isinstance(content, dict) else None
    same = units.items() & known.items() if isinstance(known, dict) else set()
    if all(column == TIME for column, _ in same):
        return {}
    return {key: value for key, value in content.items() if isinstance(value, str)}


def _arrow_csv() -> Any:
    """CSV of pyarrow; None where it is not installed."""
    try:
        return import_module('pyarrow.csv')
    except ImportError:
        return None


def _opened(path: Path) -> TextIO:
    return path.open(encoding='utf-8-sig', newline=None)


def _lines(file: TextIO, path: Path) -> Iterator[str]:
    while line := file.readline(_LONGEST_LINE):
        if len(line) == _LONGEST_LINE:
            raise FileError(f'{path} has a line that is too long for a table.')
        yield line


class ParquetTable:
    """A table in Parquet; its head is read at once, its rows when asked for."""

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
        """Open the file with pyarrow, page by page, since a row group may be as large as it is."""
        parquet: Any = arrow('pyarrow.parquet', self._path)
        return parquet.ParquetFile(self._path, buffer_size=_BUFFER, pre_buffer=False)

    def blocks(
        self, columns: Sequence[int], chunk: int, row_groups: Sequence[int] | None = None
    ) -> Iterator[Array]:
        """Values of some columns."""
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
    """Writes a table in Parquet block by block, each a row group; see `CsvWriter`.

    With the name of a column of motion ids, these stand in front of the others.
    """

    def __init__(
        self, path: Path, titles: Sequence[str], lines: Mapping[str, str], ids: str | None = None
    ) -> None:
        self._table: Any = arrow('pyarrow', path).table
        self._make: Any = arrow('pyarrow.parquet', path).ParquetWriter
        self._path, self._titles, self._ids = path, titles, ids
        self._metadata = {f'{_PREFIX}{key}': value for key, value in lines.items()}
        self._writer: Any = None

    def write(self, columns: Sequence[Array], ids: Any = None) -> None:
        """Append columns (N,), and the motion ids of the rows, if there are."""
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
        """Finish the file."""
        if self._writer is not None:
            self._writer.close()


def arrow(module: str, path: Path) -> ModuleType:
    """Import a module of pyarrow, which is not always installed."""
    return optional_import_module(
        module, f'{path}: files of this kind need pyarrow', 'tables', FileError
    )


_SERIES: dict[str, tuple[str, str, Sequence[str]]] = {
    'motion': ('N, K, n', 'joint_names', MOTION),
    **{quantity: ('N, n', 'joint_names', [quantity]) for quantity in MOTION[:5]},
    'effort': ('N, E, n', 'joint_names', EFFORT),
    'motion_std': ('N, K, n', 'joint_names', MOTION_STD),
    'effort_std': ('N, E, n', 'joint_names', EFFORT_STD),
    'motor_position': ('N, R, m', 'motor_names', MOTOR_MOTION),
    'motor_torque': ('N, T, m', 'motor_names', MOTOR_TORQUE),
    'deflection': ('N, R, n', 'joint_names', DEFLECTION),
    'stiffness': ('N, J, S', 'stiffness_joints', STIFFNESS),
    'wrenches': ('N, W, S, 6', 'wrench_links', WRENCH),
}
"""Arrays: their shape, the array that names what an axis is for, and titles without the names."""

_SECOND_AXIS = ('stiffness_joints', 'wrench_links')  # is named; otherwise it is the last one
_MOTOR_NAMES = ('motor_names', 'motor_joints')
_LINES = (
    'start', 'source', 'base_link', 'units', 'robot', 'robot_file', 'robot_digest',
    'robot_changes', 'hodyn_ros',
)  # fmt: skip
_WRENCH_NAMES = ('wrench_links', 'wrench_expressed_in', 'wrench_acting')
_LAYOUT = (
    "expected 'time' (N,), 'joint_names' (n,) and 'motion' (N, K, n) or 'position' (N, n), or an "
    "array (N,) for each column of a table: 'time', 'joint1.position' and so on"
)


class NpzTable:
    """A file of arrays as a table; joint names are needed if it has none."""

    def __init__(self, path: Path, joint_names: Sequence[str] | None = None) -> None:
        self._path = path
        with path.open('rb') as file, np.load(file, allow_pickle=False) as archive:
            have = list(archive.files)
            columns = [name for name in have if '.' in name or name == TIME]
            is_table = len(columns) > 1 and not {'motion', 'position'} & set(have)
            self._series = columns if is_table else [n for n in (TIME, *_SERIES) if n in have]
            self._shapes = {name: self._opened(archive.zip, name)[1] for name in self._series}
            every = ('joint_names', 'stiffness_joints', *_MOTOR_NAMES, *_WRENCH_NAMES)
            names = {name: self._names(archive, name) for name in every}
            self.lines = {
                name: str(archive[name].reshape(()))
                for name in _LINES if name in have
            }  # fmt: skip
        names['joint_names'] = names['joint_names'] or list(joint_names or ())
        if TIME not in have or not (is_table or {'motion', 'position'} & set(have)):
            lacks = (
                "neither 'motion' of shape (N, K, n) nor 'position' of shape (N, n)"
                if TIME in have else "no array 'time' [s]"
            )  # fmt: skip
            raise FileError(f'{path}: there is {lacks}; it holds {listed(have)}; {_LAYOUT}.')
        twice = [quantity for quantity in MOTION[:5] if quantity in have]
        if 'motion' in have and twice:
            raise FileError(
                f"{path}: it holds both 'motion' and {listed(twice)}, which may say different "
                "things; expected either 'motion' or 'position' with its derivatives. Leave one "
                'of them out.'
            )
        self.titles: list[str] = []
        for name in self._series:
            self.titles += self._titles(name, names, is_table or name == TIME)
        links = names['wrench_links']
        choices = [
            names[what] or [default] * len(links)
            for what, default in zip(_WRENCH_NAMES[1:], ('body', 'on_environment'))
        ]
        if any(len(found) != len(links) for found in choices):
            raise FileError(f'{path}: {listed(_WRENCH_NAMES)} have different lengths.')
        self.lines |= {f'wrench {link}': ' '.join(words) for link, *words in zip(links, *choices)}
        motors = zip(*(names[what] for what in _MOTOR_NAMES))
        self.lines |= {f'motor {motor}': joint for motor, joint in motors}

    def blocks(self, columns: Sequence[int], chunk: int) -> Iterator[Array]:
        """Values of some columns."""
        length = self._shapes[TIME][0]
        in_order = list(columns) == list(range(len(self.titles)))
        with zipfile.ZipFile(self._path) as archive, ExitStack() as stack:
            members = [self._opened(archive, name) for name in self._series]
            for file, _, _ in members:
                stack.enter_context(file)
            for first in range(0, length, chunk):
                rows, parts = min(chunk, length - first), []
                for file, shape, kind in members:
                    width = math.prod(shape[1:])
                    data = file.read(rows * width * kind.itemsize)
                    if len(data) != rows * width * kind.itemsize:
                        raise FileError(f'{self._path}: it is cut off.')
                    parts.append(np.frombuffer(data, kind).reshape(rows, width))
                values = np.concatenate(parts, axis=1, dtype=np.float64)
                yield values if in_order else values[:, list(columns)]

    def _titles(self, name: str, names: dict[str, list[str]], is_column: bool) -> list[str]:
        """Columns of the table that an array stands for."""
        shape = self._shapes[name]
        axes, named, columns = ('N,', '', ()) if is_column else _SERIES[name]
        if len(shape) != len(axes.strip(',').split(',')) or shape[0] != self._shapes[TIME][0] or (
            axes.endswith('6') and shape[-1] != 6
        ):
            raise FileError(
                f'{self._path}: {name!r} has shape {shape}, expected ({axes}) with as many rows '
                f'as time, which has shape {self._shapes[TIME]}.'
            )
        if is_column:
            return [name]
        owners = names[named]
        if named == 'joint_names' and not owners:
            raise FileError(
                f"{self._path}: there are no 'joint_names'; add them to the file, or give "
                f'joint_names; {_LAYOUT}.'
            )
        if shape[1 if named in _SECOND_AXIS else -1] != len(owners):
            raise FileError(
                f'{self._path}: {name!r} has shape {shape}, but there are {len(owners)} {named} '
                f'({listed(owners)}).'
            )
        size = math.prod(shape[1:]) // max(len(owners), 1)
        if size > len(columns):
            raise FileError(
                f'{self._path}: {name!r} has shape {shape}, which are more derivatives than any '
                'motion has.'
            )
        if named in _SECOND_AXIS:
            return [f'{owner}.{column}' for owner in owners for column in columns[:size]]
        return [f'{owner}.{column}' for column in columns[:size] for owner in owners]

    def _names(self, archive: Any, name: str) -> list[str]:
        array = archive[name] if name in archive.files else np.empty(0, dtype='U1')
        if array.ndim != 1 or array.dtype.kind not in 'US':
            raise FileError(
                f'{self._path}: {name!r} has shape {array.shape} and elements of type '
                f'{array.dtype}, expected a list of names.'
            )
        return [str(item) for item in array.astype(str)]

    def _opened(
        self, archive: zipfile.ZipFile, name: str
    ) -> tuple[IO[bytes], tuple[int, ...], np.dtype[Any]]:
        """Member behind its header, with its shape and type."""
        file = archive.open(f'{name}.npy')
        version = np.lib.format.read_magic(file)
        header: Any = getattr(np.lib.format, 'read_array_header_{}_{}'.format(*version))
        shape, is_fortran, kind = header(file)
        if kind.kind not in 'fiu':
            raise FileError(
                f'{self._path}: {name!r} has elements of type {kind}, expected numbers.'
            )
        if is_fortran and len(shape) > 1:
            raise FileError(
                f'{self._path}: {name!r} is in Fortran order, whose samples do not lie together; '
                'save numpy.ascontiguousarray of it.'
            )
        return file, shape, kind


class NpzWriter:
    """Writes results as arrays, part by part.

    The members of the file follow each other, so they are gathered beside it first.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._first: Results | None = None
        self._files: dict[str, tuple[IO[bytes], tuple[int, ...]]] = {}
        self._length = 0

    def write(self, results: Results) -> None:
        """Append results."""
        self._first = first = self._first or results
        series = {TIME: results.times, 'motion': results.motion, 'effort': results.effort}
        stds = ((name, getattr(results, name)) for name in DEVIATIONS)
        series |= {name: std for name, std in stds if std is not None}
        if results.motors is not None:
            series |= zip(('motor_position', 'motor_torque', 'deflection'), results.motors)
        if results.wrenches:
            series['wrenches'] = np.stack([np.asarray(w.values) for w in results.wrenches], axis=1)
        for name, values in series.items():
            if first is results:
                beside = self._path.with_name(f'{self._path.name}.{name}')
                self._files[name] = beside.open('w+b'), values.shape[1:]
            file, shape = self._files[name]
            if shape != values.shape[1:]:
                raise FileError(
                    f'{self._path}: {name} has the shape {values.shape[1:]} of a sample, '
                    f'expected {shape} as before.'
                )
            file.write(np.ascontiguousarray(values, dtype='<f8').tobytes())
        self._length += len(results)

    def close(self) -> None:
        """Put the members together."""
        if (first := self._first) is None:
            return
        names = ('joint_names',) if first.motors is None else ('joint_names', *_MOTOR_NAMES)
        whole: dict[str, Any] = {name: getattr(first, name) for name in names}
        lines = metadata_of(first)
        whole |= {name: lines[name] for name in _LINES if name in lines}
        whole['start'] = first.start
        chosen = [(w.link, w.expressed_in, w.acting) for w in first.wrenches]
        whole |= zip(_WRENCH_NAMES, zip(*chosen))
        with zipfile.ZipFile(self._path, 'w') as archive:
            for name, values in whole.items():
                with archive.open(f'{name}.npy', 'w') as member:
                    np.lib.format.write_array(member, np.array(values), allow_pickle=False)
            for name, (file, shape) in self._files.items():
                shape = self._length, *shape
                header = {'descr': '<f8', 'fortran_order': False, 'shape': shape}
                # Copied in pieces: mapped files would count as memory of the process.
                with file, archive.open(f'{name}.npy', 'w', force_zip64=True) as member:
                    np.lib.format.write_array_header_1_0(member, header)
                    file.seek(0)
                    shutil.copyfileobj(file, member)
                Path(file.name).unlink()


Table = Union[CsvTable, ParquetTable, NpzTable]  # noqa: UP007
