"""Reading motions from files and writing results to them; the suffix says which format."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, Union

import numpy as np

from hodyn_ros.errors import FileError
from hodyn_ros.io.access import (
    Options,
    Replacement,
    checked_chunk,
    join_samples,
)
from hodyn_ros.io.bag_writer import BagWriter
from hodyn_ros.io.bags import read_bag
from hodyn_ros.io.columns import (
    columns_of,
    layout_of,
    metadata_of,
    parse_metadata,
    refuse_not_increasing,
    with_wrench_choices,
)
from hodyn_ros.io.csv_tables import CsvTable, CsvWriter
from hodyn_ros.io.npz import Npz, NpzWriter
from hodyn_ros.io.parquet_tables import ParquetTable, ParquetWriter
from hodyn_ros.io.samples import Results, Samples, join_results, times_from
from hodyn_ros.io.yaml_trajectory import YamlWriter, read_yaml
from hodyn_ros.names import listed

PathLike = Union[str, 'os.PathLike[str]']

_TableReader = type[CsvTable] | type[ParquetTable]
_TableMaker = type[CsvWriter] | type[ParquetWriter]

CHUNK = 10_000
"""Samples that are in memory at a time."""

TABLES: dict[str, tuple[_TableReader, _TableMaker]] = {
    '.csv': (CsvTable, CsvWriter),
    '.parquet': (ParquetTable, ParquetWriter),
}
BAGS = ('.mcap', '.db3')
SUFFIXES = ('.csv', '.npz', '.parquet', '.yaml', '.yml', *BAGS)


def read_motion(
    path: PathLike,
    *,
    topic: str | None = None,
    joint_names: Sequence[str] | None = None,
    index: int | None = None,
    expressed_in: str | None = None,
    acting: str | None = None,
) -> Samples:
    """All samples of a motion in a file.

    Parameters
    ----------
    path : path-like
        A table (.csv, .npz, .parquet), a trajectory (.yaml, .yml), a storage file of a bag (.mcap,
        .db3) or the folder of a bag.
    topic : str, optional
        Of a bag; needed if several hold a motion. sensor_msgs/JointState, hodyn_msgs/JointMotion
        and trajectory_msgs/JointTrajectory are read.
    joint_names : sequence of str, optional
        Joints to read, in this order; by default all of the file.
    index : int, optional
        Which of the trajectories of a topic, from 0; needed if it holds several.
    expressed_in, acting : str, optional
        Of all wrenches, see `Wrench`; by default as the file says, or 'body' and
        'on_environment'.

    Returns
    -------
    Samples

    Raises
    ------
    FileError
        If the file cannot be read or does not hold a motion; the message says where.
    JointNameError
        If a joint is missing.
    """
    options = _options(topic, joint_names, index, expressed_in, acting)
    parts = list(_source(Path(path), options, 10 * CHUNK))
    if not parts:
        raise FileError(f'{path} holds no samples.')
    if len(parts) > 1 and any(part.is_waypoints for part in parts):
        raise FileError(
            f'{path} holds {len(parts)} trajectories; choose one with index=0 to '
            f'index={len(parts) - 1}, or go through them with iterate_motion.'
        )
    return join_samples(parts)


def iterate_motion(
    path: PathLike,
    *,
    chunk: int = CHUNK,
    topic: str | None = None,
    joint_names: Sequence[str] | None = None,
    index: int | None = None,
    expressed_in: str | None = None,
    acting: str | None = None,
) -> Iterator[Samples]:
    """Read a motion in consecutive parts; memory does not grow with the file.

    Only YAML is read as a whole. The trajectories of a topic come one by one.

    Parameters
    ----------
    path : path-like
    chunk : int
        Largest number of samples of a part.
    topic, joint_names, index, expressed_in, acting
        See `read_motion`.

    Yields
    ------
    Samples

    Raises
    ------
    FileError, JointNameError
        See `read_motion`; on the way for what is wrong later in the file.
    """
    chunk = checked_chunk(chunk)
    options = _options(topic, joint_names, index, expressed_in, acting)
    empty = True
    for samples in _source(Path(path), options, chunk):
        empty = False
        yield samples
    if empty:
        raise FileError(f'{path} holds no samples.')


def read_results(path: PathLike) -> Results:
    """Results that were written to a table.

    Parameters
    ----------
    path : path-like
        .csv, .npz or .parquet.

    Returns
    -------
    Results

    Raises
    ------
    FileError
        If the file cannot be read or holds no efforts.
    """
    file = Path(path)
    suffix = file.suffix.lower()
    if suffix == '.npz':
        parts = list(Npz(file, Options()).results(10 * CHUNK))
    elif suffix in TABLES:
        table = TABLES[suffix][0](file)
        layout = layout_of(table.titles, str(file))
        metadata = parse_metadata(table.lines, str(file))
        blocks = table.blocks(layout.columns, 10 * CHUNK)
        parts = [layout.results(values, metadata) for values in blocks]
    else:
        raise FileError(f'{file}: results are read from .csv, .npz and .parquet.')
    if not parts:
        raise FileError(f'{file} holds no samples.')
    return join_results(parts)


def write_results(path: PathLike, results: Results, *, storage: str = 'mcap') -> None:
    """Write results to a file; see `ResultsWriter`."""
    with ResultsWriter(path, storage=storage) as writer:
        writer.write(results)


class _Writer(Protocol):
    def write(self, results: Results) -> None:
        """Append results."""

    def close(self) -> None:
        """Finish the file."""


class ResultsWriter:
    """Writes results part by part. The file appears when it is complete, or not at all.

    Parameters
    ----------
    path : path-like
        .csv, .npz or .parquet for a table, .yaml or .yml for a trajectory, .mcap or .db3 for a
        storage file of a bag, no suffix for the folder of a bag. A file that exists is replaced, a
        folder is not.
    storage : {'mcap', 'sqlite3'}
        Of the folder of a bag.

    Raises
    ------
    FileError
        If the file cannot be written, or the suffix is unknown.

    Examples
    --------
    >>> from hodyn_ros.io import ResultsWriter, compute_stream, iterate_motion
    >>> def convert(model, source, target):
    ...     with ResultsWriter(target) as writer:
    ...         for results in compute_stream(model, iterate_motion(source)):
    ...             writer.write(results)
    """

    def __init__(self, path: PathLike, *, storage: str = 'mcap') -> None:
        self._path = Path(path)
        suffix = self._path.suffix.lower()
        if suffix not in (*SUFFIXES, ''):
            raise FileError(
                f'{path}: the suffix {suffix!r} is unknown, expected one of {listed(SUFFIXES)}, '
                'or none for the folder of a bag.'
            )
        if self._path.is_dir():
            raise FileError(f'{path} is a folder that exists already; give another name.')
        self._replacement = Replacement(self._path)
        try:
            self._writer = _writer(self._path, self._replacement, suffix, storage)
        except BaseException:
            self._replacement.discard()
            raise
        self._first: Results | None = None
        self._is_bag = suffix in (*BAGS, '')
        self._last = -np.inf

    def write(self, results: Results) -> None:
        """Append results of the same joints, with the same orders.

        Parameters
        ----------
        results : Results
            The next part of the motion.

        Raises
        ------
        FileError
            If it does not fit what was written before.
        """
        first = self._first
        if first is None:
            self._first = results
        elif results.joint_names != first.joint_names or results.motor_names != first.motor_names:
            raise FileError(
                f'{self._path}: results of {listed(results.joint_names)} come after those of '
                f'{listed(first.joint_names)}; expected the same joints and motors in all parts.'
            )
        if len(results) and not self._is_bag:
            times = times_from(results, first.start if first else results.start)
            if times[0] <= self._last:
                raise FileError(
                    f'{self._path}: results from {times[0]:g} s on come after others until '
                    f'{self._last:g} s, but times in a table increase; write motions that overlap '
                    'to files of their own, or to a bag.'
                )
            self._last = float(times[-1])
        with self._named():
            self._writer.write(results)

    def close(self) -> None:
        """Finish the file and put it in its place."""
        try:
            if self._first is None:
                raise FileError(f'{self._path}: there are no results to write.')
            with self._named():
                self._writer.close()
            self._replacement.finish(getattr(self._writer, 'result', None))
        finally:
            self._replacement.discard()

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Name the file in errors by where it is going to be, not where it is meanwhile."""
        try:
            yield
        except FileError as error:
            message = str(error).replace(str(self._replacement.path), str(self._path))
            raise FileError(message) from error

    def __enter__(self) -> ResultsWriter:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.close()
            return
        try:
            self._writer.close()
        except FileError:
            pass  # It is thrown away anyway.
        finally:
            self._replacement.discard()


class _TableWriter:
    """Results as the rows of a table."""

    def __init__(self, path: Path, target: Path, make: _TableMaker) -> None:
        self._path, self._target, self._make = path, target, make
        self._titles: list[str] = []
        self._start = 0
        self._writer: CsvWriter | ParquetWriter | None = None

    def write(self, results: Results) -> None:
        titles, values = columns_of(results)
        if self._writer is None:
            self._titles, self._start = titles, results.start
            self._writer = self._make(self._path, titles, metadata_of(results).lines())
        if titles != self._titles:
            missing = [title for title in self._titles if title not in titles]
            more = [title for title in titles if title not in self._titles]
            raise FileError(
                f'{self._target}: a part of the results lacks {listed(missing)} and adds '
                f'{listed(more)}; expected the same columns in all parts.'
            )
        values[:, 0] = times_from(results, self._start)
        self._writer.write(values)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


class _StorageFileWriter:
    """A bag of which only the storage file is kept."""

    def __init__(self, target: Path, replacement: Replacement, storage: str) -> None:
        folder = replacement.path.with_name(f'{target.stem}_bag')
        self._bag = BagWriter(folder, target, storage)
        self.result = self._bag.storage_file
        self.write, self.close = self._bag.write, self._bag.close


def _writer(path: Path, replacement: Replacement, suffix: str, storage: str) -> _Writer:
    if suffix in TABLES:
        return _TableWriter(replacement.path, path, TABLES[suffix][1])
    if suffix == '.npz':
        return NpzWriter(replacement.path)
    if suffix in ('.yaml', '.yml'):
        return YamlWriter(replacement.path)
    if suffix in BAGS:
        return _StorageFileWriter(path, replacement, 'mcap' if suffix == '.mcap' else 'sqlite3')
    return BagWriter(replacement.path, path, storage)


def _options(
    topic: str | None,
    joint_names: Sequence[str] | None,
    index: int | None,
    expressed_in: str | None,
    acting: str | None,
) -> Options:
    if isinstance(joint_names, str):
        raise FileError(f'joint_names is {joint_names!r}, expected a list of names.')
    names = None if joint_names is None else tuple(joint_names)
    return Options(topic, names, index, expressed_in, acting)


def _source(path: Path, options: Options, chunk: int) -> Iterator[Samples]:
    """Read a file, and check what is common to all formats."""
    suffix = path.suffix.lower()
    if not path.exists():
        raise FileError(f'{path} does not exist; give the path of an existing file.')
    if path.is_dir() or suffix in BAGS:
        return _ordered(read_bag(path, options, chunk))
    if options.topic is not None:
        raise FileError(f'{path} is no bag and has no topics; leave topic out.')
    if suffix in TABLES:
        return _checked(_table(TABLES[suffix][0](path), path, options, chunk), options)
    if suffix == '.npz':
        arrays = Npz(path, options)
        parts = _table(arrays, path, options, chunk) if arrays.titles else arrays.samples(chunk)
        return _checked(parts, options)
    if suffix in ('.yaml', '.yml'):
        return _checked(iter([read_yaml(path)]), options)
    raise FileError(
        f'{path}: the suffix {suffix!r} is unknown, expected one of {listed(SUFFIXES)}, or the '
        'folder of a bag.'
    )


def _table(
    table: CsvTable | ParquetTable | Npz, path: Path, options: Options, chunk: int
) -> Iterator[Samples]:
    layout = layout_of(table.titles, str(path))
    metadata = parse_metadata(table.lines, str(path))
    metadata = with_wrench_choices(metadata, layout, options.expressed_in, options.acting)
    first = 0
    for values in table.blocks(layout.columns, chunk):
        yield layout.samples(values, metadata, first)
        first += len(values)


def _ordered(parts: Iterator[Samples]) -> Iterator[Samples]:
    """Refuse exact samples that are not in order; measurements may come late."""
    before: float | None = None
    for samples in parts:
        if not samples.is_measured:
            refuse_not_increasing(samples, None if samples.is_waypoints else before)
            before = float(samples.times[-1])
        yield samples


def _checked(parts: Iterator[Samples], options: Options) -> Iterator[Samples]:
    if options.index not in (None, 0):
        raise FileError('index is for the trajectories of a bag; leave it out.')
    before: float | None = None
    for samples in parts:
        refuse_not_increasing(samples, before)
        before = float(samples.times[-1]) if len(samples) else before
        yield options.selected(samples)
