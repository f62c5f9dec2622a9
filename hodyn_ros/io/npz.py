"""Arrays in one NumPy file: `time`, `joint_names`, `motion` and so on; see doc/files.rst.

Or one array for each column of a table, `time`, `<joint>.position` and so on.

The members of the file are read and written side by side and row by row, so that it may be larger
than the memory. Pickled objects are never loaded.
"""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.actuators.robot import MotorMotion
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import FileError, HodynError
from hodyn_ros.io.access import Options, reading, writing
from hodyn_ros.io.samples import QUANTITIES, SOURCES, Array, Results, Samples, times_from
from hodyn_ros.names import listed

_NAMES = ('joint_names', 'motor_names', 'motor_joints', 'stiffness_joints')
_WRENCH_NAMES = ('wrench_links', 'wrench_expressed_in', 'wrench_acting')
_TEXTS = ('source', 'base_link')
_SERIES = {
    'time': 1,
    'motion': 3,
    **{quantity: 2 for quantity in QUANTITIES},
    'effort': 3,
    'motor_position': 3,
    'motor_torque': 3,
    'deflection': 3,
    'wrenches': 4,
    'stiffness': 3,
}
"""Arrays with the samples along the first axis, and their number of axes."""

_LAYOUT = (
    "expected 'time' (N,), 'joint_names' (n,) and 'motion' (N, K, n) or 'position' (N, n), or an "
    "array (N,) for each column of a table: 'time', 'joint1.position' and so on"
)
_MOST_BYTES = 10_000_000  # of an array that is not read row by row


class Npz:
    """A file of arrays; names are read at once, samples when asked for.

    Parameters
    ----------
    path : pathlib.Path
    options : Options

    Raises
    ------
    FileError
        If it cannot be read, or does not hold times and positions.

    Attributes
    ----------
    titles : list of str
        Of the columns, where the arrays are those of a table; else empty.
    lines : dict of str to str
        Metadata of the table.
    """

    def __init__(self, path: Path, options: Options) -> None:
        self._path, self._options = path, options
        with reading(path, 'NPZ'), zipfile.ZipFile(path) as archive:
            self._members = {
                info.filename[: -len('.npy')]: info
                for info in archive.infolist()
                if info.filename.endswith('.npy')
            }
            self._whole: dict[str, NDArray[Any]] = {
                name: self._small(archive, name)
                for name in (*_NAMES, *_WRENCH_NAMES, *_TEXTS, 'start')
                if name in self._members
            }
            columns = [name for name in self._members if '.' in name or name == 'time']
            is_table = len(columns) > 1 and not {'motion', 'position'} & set(self._members)
            self.titles = columns if is_table else []
            self._axes = dict.fromkeys(columns, 1) if is_table else _SERIES
            self._shapes = {
                name: self._opened(archive, name)[1]
                for name in self._axes
                if name in self._members
            }
        self.lines = {'start': str(self._whole['start'])} if 'start' in self._whole else {}
        self._check()

    def blocks(self, columns: Sequence[int], chunk: int) -> Iterator[Array]:
        """Values of some columns of a table, blocks of rows of shape (up to chunk, columns)."""
        for arrays in self.chunks(chunk):
            yield np.stack([arrays[self.titles[column]] for column in columns], axis=1)

    def chunks(self, chunk: int) -> Iterator[dict[str, Array]]:
        """Arrays of samples, up to `chunk` of them at a time."""
        names = list(self._shapes)
        length = next(iter(self._shapes.values()))[0]
        with ExitStack() as stack:
            with reading(self._path, 'NPZ'):
                archive = stack.enter_context(zipfile.ZipFile(self._path))
                files = [self._opened(archive, name) for name in names]
            for first in range(0, length, chunk):
                rows = min(chunk, length - first)
                with reading(self._path, 'NPZ'):
                    part = {
                        name: self._read(file, (rows, *shape[1:]), kind)
                        for name, (file, shape, kind) in zip(names, files)
                    }
                yield part

    def samples(self, chunk: int) -> Iterator[Samples]:
        """Yield samples, up to `chunk` of them at a time."""
        first = 0
        for arrays in self.chunks(chunk):
            try:
                yield Samples(
                    joint_names=self._joint_names,
                    times=arrays['time'],
                    motion=_motion(arrays),
                    wrenches=self._wrenches(arrays),
                    stiffness=self._stiffness(arrays),
                    name=str(self._path),
                    start=self._start,
                    first=first,
                )
            except HodynError as error:
                raise FileError(str(error)) from error
            first += len(arrays['time'])

    def results(self, chunk: int) -> Iterator[Results]:
        """Yield results, up to `chunk` samples of them at a time."""
        if 'effort' not in self._shapes:
            raise FileError(
                f"{self._path}: there is no array 'effort'; it holds {listed(self._members)}. "
                'Compute the efforts first.'
            )
        source = self._text('source')
        for arrays in self.chunks(chunk):
            motors = None
            if 'motor_position' in arrays:
                position = arrays['motor_position']
                n, m = len(self._joint_names), position.shape[2]
                torque = arrays.get('motor_torque', np.empty((len(position), 0, m)))
                none = np.full((len(position), position.shape[1], n), np.nan)
                motors = MotorMotion(position, torque, arrays.get('deflection', none))
            motor_names = self._names('motor_names')
            yield Results(
                joint_names=self._joint_names,
                times=arrays['time'],
                motion=_motion(arrays),
                effort=arrays['effort'],
                motors=motors,
                motor_names=motor_names,
                motor_joints=self._names('motor_joints') or motor_names,
                name=str(self._path),
                start=self._start,
                source=source if source in SOURCES else 'unknown',
                base_link=self._text('base_link'),
                wrenches=self._wrenches(arrays),
            )

    def _check(self) -> None:
        have = f'it holds {listed(self._members)}; {_LAYOUT}'
        if 'time' not in self._shapes:
            raise FileError(f"{self._path}: there is no array 'time' [s]; {have}.")
        if not self.titles and not {'motion', 'position'} & set(self._shapes):
            raise FileError(
                f"{self._path}: there is neither 'motion' of shape (N, K, n) nor 'position' of "
                f'shape (N, n); {have}.'
            )
        twice = [quantity for quantity in QUANTITIES if quantity in self._shapes]
        if 'motion' in self._shapes and twice:
            raise FileError(
                f"{self._path}: it holds both 'motion' and {listed(twice)}, which may say "
                "different things; expected either 'motion' or 'position' with its derivatives. "
                'Leave one of them out.'
            )
        length = self._shapes['time'][:1]
        for name, shape in self._shapes.items():
            if len(shape) != self._axes[name] or shape[:1] != length:
                axes = ', '.join(['N', *'????'[1 : self._axes[name]]])
                raise FileError(
                    f'{self._path}: {name!r} has shape {shape}, expected ({axes}) with as many '
                    f'rows as time, which has shape {self._shapes["time"]}.'
                )
        if self.titles:
            return  # what the columns are, the layout of tables says
        n = self._shapes.get('motion', self._shapes.get('position', ()))[-1]
        quantities = [quantity for quantity in QUANTITIES if quantity in self._shapes]
        if 'motion' not in self._shapes and quantities != list(QUANTITIES[: len(quantities)]):
            raise FileError(
                f'{self._path}: it holds {listed(quantities)}; expected the position and its '
                'derivatives without a gap.'
            )
        for name in (*quantities, 'effort', 'deflection'):
            if self._shapes.get(name, (n,))[-1] != n:
                raise FileError(
                    f'{self._path}: {name!r} has shape {self._shapes[name]}, but there '
                    f'are {n} joints.'
                )
        names = self._names('joint_names')
        if not names:
            names = self._options.joint_names or ()
            if not names:
                raise FileError(
                    f"{self._path}: there are no 'joint_names'; add them to the file, or give "
                    f'joint_names; {_LAYOUT}.'
                )
        if len(names) != n:
            raise FileError(
                f'{self._path}: there are {len(names)} joint names ({listed(names)}), but the '
                f'positions are those of {n} joints.'
            )
        self._joint_names = names
        start = self._whole.get('start', np.array(0))
        if start.dtype.kind not in 'iu' or start.size != 1 or int(start.reshape(())) < 0:
            raise FileError(f"{self._path}: 'start' is {start}, expected whole nanoseconds.")
        self._start = int(start.reshape(()))
        for which, axis, series in (
            ('wrench_links', 1, 'wrenches'),
            ('stiffness_joints', 1, 'stiffness'),
            ('motor_names', 2, 'motor_position'),
        ):
            if series in self._shapes and self._shapes[series][axis] != len(self._names(which)):
                raise FileError(
                    f'{self._path}: {series!r} has shape {self._shapes[series]}, but there are '
                    f'{len(self._names(which))} {which}.'
                )
        if 'wrenches' in self._shapes and self._shapes['wrenches'][3] != 6:
            raise FileError(
                f"{self._path}: 'wrenches' has shape {self._shapes['wrenches']}, expected "
                '(N, W, S, 6): moment and force of W wrenches and their derivatives.'
            )

    def _names(self, name: str) -> tuple[str, ...]:
        array = self._whole.get(name)
        if array is None:
            return ()
        if array.ndim != 1 or array.dtype.kind not in 'US':
            raise FileError(
                f'{self._path}: {name!r} has shape {array.shape} and elements of type '
                f'{array.dtype}, expected a list of names.'
            )
        return tuple(map(str, array.astype(str).tolist()))

    def _text(self, name: str) -> str:
        array = self._whole.get(name)
        return '' if array is None or array.size != 1 else str(array.reshape(()))

    def _wrenches(self, arrays: Mapping[str, Array]) -> tuple[Wrench, ...]:
        if 'wrenches' not in arrays:
            return ()
        links = self._names('wrench_links')
        expressions = self._names('wrench_expressed_in') or ('body',) * len(links)
        actings = self._names('wrench_acting') or ('on_environment',) * len(links)
        if len(expressions) != len(links) or len(actings) != len(links):
            raise FileError(
                f'{self._path}: wrench_links, wrench_expressed_in and wrench_acting have '
                'different lengths.'
            )
        return tuple(
            Wrench(
                link,
                arrays['wrenches'][:, i],
                self._options.expressed_in or expressions[i],
                self._options.acting or actings[i],
            )
            for i, link in enumerate(links)
        )

    def _stiffness(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        joints = self._names('stiffness_joints')
        return {name: arrays['stiffness'][:, i] for i, name in enumerate(joints)}

    def _small(self, archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
        if self._members[name].file_size > _MOST_BYTES:
            raise FileError(f'{self._path}: {name!r} is too large.')
        with archive.open(self._members[name]) as file:
            return np.asarray(np.lib.format.read_array(file, allow_pickle=False))

    def _opened(
        self, archive: zipfile.ZipFile, name: str
    ) -> tuple[IO[bytes], tuple[int, ...], np.dtype[Any]]:
        """Member behind its header, with its shape and type."""
        file = archive.open(self._members[name])
        version = np.lib.format.read_magic(file)
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }.get(version)
        if read is None:
            raise FileError(f'{self._path}: {name!r} is in version {version} of the format NPY.')
        shape, is_fortran, kind = read(file)
        if kind.kind not in 'fiu':
            raise FileError(
                f'{self._path}: {name!r} has elements of type {kind}, expected numbers.'
            )
        if is_fortran and len(shape) > 1:
            raise FileError(
                f'{self._path}: {name!r} is in Fortran order, whose samples do not lie together; '
                'save numpy.ascontiguousarray of it.'
            )
        return file, tuple(map(int, shape)), kind

    def _read(self, file: IO[bytes], shape: tuple[int, ...], kind: np.dtype[Any]) -> Array:
        size = int(np.prod(shape, dtype=object)) * kind.itemsize
        if size > self._path.stat().st_size * 2000:
            raise FileError(f'{self._path}: an array claims to be larger than it can be.')
        data = file.read(size)
        if len(data) != size:
            raise FileError(f'{self._path}: it is cut off.')
        return np.frombuffer(data, dtype=kind).reshape(shape).astype(np.float64)


class NpzWriter:
    """Writes results as arrays, part by part.

    The members of the file follow each other, so they are gathered beside it first.

    Parameters
    ----------
    path : pathlib.Path
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._files: dict[str, IO[bytes]] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._whole: dict[str, NDArray[Any]] = {}
        self._length = 0
        self._start = 0

    def write(self, results: Results) -> None:
        """Append results."""
        if not self._files:
            self._start = results.start
        series = {
            'time': times_from(results, self._start),
            'motion': results.motion,
            'effort': results.effort,
        }
        if results.motors is not None:
            series['motor_position'] = results.motors.position
            series['motor_torque'] = results.motors.torque
            series['deflection'] = results.motors.deflection
        if results.wrenches:
            series['wrenches'] = np.stack([np.asarray(w.values) for w in results.wrenches], axis=1)
        if not self._files:
            self._begin(results, series)
        with writing(self._path):
            for name, values in series.items():
                if self._shapes.get(name) != values.shape[1:]:
                    raise FileError(
                        f'{self._path}: {name} has the shape {values.shape[1:]} of a sample, '
                        f'expected {self._shapes.get(name)} as before.'
                    )
                self._files[name].write(np.ascontiguousarray(values, dtype='<f8').tobytes())
        self._length += len(results)

    def close(self) -> None:
        """Put the members together."""
        with writing(self._path), zipfile.ZipFile(self._path, 'w', allowZip64=True) as archive:
            for name, values in self._whole.items():
                with archive.open(f'{name}.npy', 'w') as member:
                    np.lib.format.write_array(member, values, allow_pickle=False)
            for name, file in self._files.items():
                shape = (self._length, *self._shapes[name])
                header = {'descr': '<f8', 'fortran_order': False, 'shape': shape}
                with archive.open(f'{name}.npy', 'w', force_zip64=True) as member:
                    np.lib.format.write_array_header_1_0(member, header)
                    file.seek(0)
                    shutil.copyfileobj(file, member)
                file.close()
                Path(file.name).unlink()

    def _begin(self, results: Results, series: Mapping[str, Array]) -> None:
        self._whole = {
            'joint_names': np.array(results.joint_names),
            'start': np.array(results.start),
            'source': np.array(results.source),
            'base_link': np.array(results.base_link),
        }
        if results.motors is not None:
            self._whole['motor_names'] = np.array(results.motor_names)
            self._whole['motor_joints'] = np.array(results.motor_joints)
        if results.wrenches:
            self._whole['wrench_links'] = np.array([w.link for w in results.wrenches])
            self._whole['wrench_expressed_in'] = np.array(
                [w.expressed_in for w in results.wrenches]
            )
            self._whole['wrench_acting'] = np.array([w.acting for w in results.wrenches])
        with writing(self._path):
            for name, values in series.items():
                self._shapes[name] = values.shape[1:]
                self._files[name] = self._path.with_name(f'{self._path.name}.{name}').open('w+b')


def _motion(arrays: Mapping[str, Array]) -> Array:
    if 'motion' in arrays:
        return arrays['motion']
    rows = []
    for quantity in QUANTITIES:
        if quantity not in arrays:
            break
        rows.append(arrays[quantity])
    return np.stack(rows, axis=1)
