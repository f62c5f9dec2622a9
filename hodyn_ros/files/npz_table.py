"""Arrays of NumPy (NPZ) as a table, read and written block by block; see doc/files.rst."""

from __future__ import annotations

import math
import shutil
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np

from hodyn_ros.checks import Array
from hodyn_ros.errors import FileError
from hodyn_ros.files.columns import TableFormat, metadata_of
from hodyn_ros.files.quantities import MOTION, QUANTITIES, TIME, Quantity
from hodyn_ros.files.samples import Samples
from hodyn_ros.names import listed

_ROWS = {name: Quantity((name,), 'rad', 'joint_names') for name in MOTION[:5]}
_SERIES = {'motion': QUANTITIES['motion'], **_ROWS, **QUANTITIES}
"""Arrays of numbers beside the time: those of each order of the motion, or of all orders."""
_AXES = {
    'effort': 'N, E, n',
    'effort_std': 'N, E, n',
    'motor_position': 'N, R, m',
    'motor_torque': 'N, T, m',
    'deflection': 'N, R, n',
    'stiffness': 'N, J, S',
    'wrenches': 'N, W, S, 6',
    **dict.fromkeys(_ROWS, 'N, n'),
}
"""Shapes; of all others N, K, n."""

# Is named; otherwise it is the last one.
_SECOND_AXIS = ('stiffness_joints', 'wrench_links')
_MOTOR_NAMES = ('motor_names', 'motor_joints')
_LINES = (
    'start',
    'source',
    'base_link',
    'units',
    'robot',
    'robot_file',
    'robot_digest',
    'robot_changes',
    'hodyn_ros',
)
_WRENCH_NAMES = ('wrench_links', 'wrench_expressed_in', 'wrench_acting')
_POSITIONS = {'motion', 'position'}
_LAYOUT = (
    "expected 'time' (N,), 'joint_names' (n,) and 'motion' (N, K, n) or 'position' (N, n), or an "
    "array (N,) for each column of a table: 'time', 'joint1.position' and so on"
)


def _series_of(have: Sequence[str]) -> tuple[list[str], bool]:
    """Arrays of numbers among those that a file has, and whether each is a column of a table."""
    columns = [name for name in have if '.' in name or name == TIME]
    if len(columns) > 1 and not _POSITIONS & set(have):
        return columns, True
    return [name for name in (TIME, *_SERIES) if name in have], False


class NpzTable:
    """A file of arrays as a table; joint names are needed if it has none.

    Parameters
    ----------
    path : pathlib.Path
        Arrays with the names and shapes of `_SERIES`, or one array for each column of a
        table; only those that are read are opened.
    joint_names : sequence of str, optional
        For a file without the array 'joint_names'.

    Attributes
    ----------
    titles : list of str
        Columns of the table that the arrays stand for.
    lines : dict of str to str
        Metadata, see `parse_metadata`.

    Raises
    ------
    FileError
        If time or positions are missing or there twice, or an array has another shape,
        holds no numbers, or is in Fortran order.
    """

    def __init__(self, path: Path, joint_names: Sequence[str] | None = None) -> None:
        self._path = path
        with path.open('rb') as file, np.load(file, allow_pickle=False) as archive:
            have = list(archive.files)
            self._series, is_table = _series_of(have)
            self._shapes = {
                name: self._opened(archive.zip, name)[1] for name in self._series
            }
            every = ('joint_names', 'stiffness_joints', *_MOTOR_NAMES, *_WRENCH_NAMES)
            self._owners = {name: self._names(archive, name) for name in every}
            self.lines = {n: str(archive[n].reshape(())) for n in _LINES if n in have}
        self._owners['joint_names'] = self._owners['joint_names'] or list(joint_names or ())
        self._refuse_layout(have, is_table)
        self.titles: list[str] = []
        for name in self._series:
            is_column = is_table or name == TIME
            self._refuse_shape(name, 'N,' if is_column else _AXES.get(name, 'N, K, n'))
            self.titles += [name] if is_column else self._titles(name)
        self.lines |= self._lines_of_names()

    def _refuse_layout(self, have: Sequence[str], is_table: bool) -> None:
        """Refuse a file without times or positions, or with two of them."""
        if TIME not in have or not (is_table or _POSITIONS & set(have)):
            lacks = "no array 'time' [s]"
            if TIME in have:
                lacks = "neither 'motion' of shape (N, K, n) nor 'position' of shape (N, n)"
            raise FileError(
                f'{self._path}: there is {lacks}; it holds {listed(have)}; {_LAYOUT}.'
            )
        twice = [quantity for quantity in MOTION[:5] if quantity in have]
        if 'motion' in have and twice:
            raise FileError(
                f"{self._path}: it holds both 'motion' and {listed(twice)}, which may say "
                "different things; expected either 'motion' or 'position' with its derivatives. "
                'Leave one of them out.'
            )

    def _lines_of_names(self) -> dict[str, str]:
        """Metadata of wrenches and motors."""
        links = self._owners['wrench_links']
        choices = [
            self._owners[what] or [default] * len(links)
            for what, default in zip(_WRENCH_NAMES[1:], ('body', 'on_environment'))
        ]
        if any(len(found) != len(links) for found in choices):
            raise FileError(
                f'{self._path}: {listed(_WRENCH_NAMES)} have different lengths.'
            )
        motors = zip(*(self._owners[what] for what in _MOTOR_NAMES))
        return {
            **{f'wrench {link}': ' '.join(words) for link, *words in zip(links, *choices)},
            **{f'motor {motor}': joint for motor, joint in motors},
        }

    def blocks(self, columns: Sequence[int], chunk: int) -> Iterator[Array]:
        """Values of some columns.

        Parameters
        ----------
        columns : sequence of int
            Places among `titles`.
        chunk : int
            Largest number of rows of a block.

        Yields
        ------
        ndarray, shape (up to chunk, columns)

        Raises
        ------
        FileError
            If the file is cut off.
        """
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

    def _refuse_shape(self, name: str, axes: str) -> None:
        """Refuse an array with other axes, such as 'N, W, S, 6', or another number of rows."""
        shape = self._shapes[name]
        fits = (
            len(shape) == len(axes.strip(',').split(','))
            and shape[0] == self._shapes[TIME][0]
        )
        if not fits or (axes.endswith('6') and shape[-1] != 6):
            raise FileError(
                f'{self._path}: {name!r} has shape {shape}, expected ({axes}) with as many rows '
                f'as time, which has shape {self._shapes[TIME]}.'
            )

    def _titles(self, name: str) -> list[str]:
        """Columns of the table that an array stands for."""
        shape = self._shapes[name]
        columns, _, named = _SERIES[name]
        owners = self._owners[named]
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
        """Names in an array of strings, empty if the file does not have it."""
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

    Parameters
    ----------
    path : pathlib.Path
        File that is written; the arrays of its members lie beside it meanwhile.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._first: Samples | None = None
        self._files: dict[str, tuple[IO[bytes], tuple[int, ...]]] = {}
        self._length = 0

    def write(self, results: Samples) -> None:
        """Append results.

        Parameters
        ----------
        results : Samples
            Next part of a motion; the first determines the arrays and their shapes.

        Raises
        ------
        FileError
            If an array has other axes than in the first part.
        """
        self._first = first = self._first or results
        series = {TIME: results.times, **results.arrays()}
        if results.wrenches:
            series['wrenches'] = np.stack(
                [np.asarray(w.values) for w in results.wrenches], axis=1
            )
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
        """Put the members together.

        Names and metadata are those of the first part. Without any results there is no
        file.
        """
        if (first := self._first) is None:
            return
        names = ('joint_names', *_MOTOR_NAMES) if first.motor_names else ('joint_names',)
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


def _write(path: Path, results: Samples) -> None:
    writer = NpzWriter(path)
    writer.write(results)
    writer.close()


NPZ = TableFormat(('.npz',), NpzTable, _write)
"""Arrays of NumPy."""
