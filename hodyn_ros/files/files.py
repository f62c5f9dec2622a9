"""Reading motions from files and writing results to them; the suffix says which format."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, Union

import numpy as np

from hodyn_ros.checks import checked_number
from hodyn_ros.errors import FileError, HodynError, JointNameError
from hodyn_ros.files.bags import BagFormat
from hodyn_ros.files.columns import refuse_not_increasing, side_file
from hodyn_ros.files.csv_table import CSV
from hodyn_ros.files.formats import CHUNK, Format, Wanted
from hodyn_ros.files.npz_table import NPZ
from hodyn_ros.files.parquet_table import PARQUET
from hodyn_ros.files.samples import Results, Samples, join_results, times_from
from hodyn_ros.files.yaml_trajectory import YamlFormat
from hodyn_ros.interrupts import CLEANUPS
from hodyn_ros.names import listed

PathLike = Union[str, 'os.PathLike[str]']
Item = TypeVar('Item')

FORMATS: tuple[Format, ...] = (
    CSV,
    NPZ,
    PARQUET,
    YamlFormat(),
    BagFormat('mcap'),
    BagFormat('sqlite3'),
    BagFormat(),
)
"""A new format is one more."""

_BY_SUFFIX = {suffix: item for item in FORMATS for suffix in item.suffixes}
SUFFIXES = tuple(filter(None, _BY_SUFFIX))


def format_of(path: Path, is_folder: bool, others: str) -> Format:
    """Format by the suffix of a file, or that of a folder; `others` ends the error.

    Parameters
    ----------
    path : pathlib.Path
        File or folder.
    is_folder : bool
        Whether it is the folder of a bag; a file without a suffix is none.
    others : str
        What is allowed beside the suffixes, for the message.

    Returns
    -------
    Format

    Raises
    ------
    FileError
        If the suffix is unknown.
    """
    suffix = '' if is_folder else path.suffix.lower()
    if is_folder or suffix in SUFFIXES:
        return _BY_SUFFIX[suffix]
    raise FileError(
        f'{path}: the suffix {suffix!r} is unknown, expected one of {listed(SUFFIXES)}, or '
        f'{others}.'
    )


def read_motion(path: PathLike, **options: Any) -> Samples:
    """All samples of a motion in a file.

    Parameters
    ----------
    path : path-like
        A table (.csv, .npz, .parquet), a trajectory (.yaml, .yml), a storage file of a bag (.mcap,
        .db3) or the folder of a bag.
    **options
        Topic, joint names and so on, see `iterate_motion`.

    Returns
    -------
    Samples
        Of N samples, in one piece.

    Raises
    ------
    FileError
        If the file cannot be read or does not hold a motion; the message says where.
    JointNameError
        If a joint is missing.
    """
    parts = list(iterate_motion(path, **{'chunk': 10 * CHUNK, **options}))
    if len(parts) > 1 and any(part.is_waypoints for part in parts):
        raise FileError(
            f'{path} holds {len(parts)} trajectories; choose one with index=0 to '
            f'index={len(parts) - 1} (hodyn: --topic NAME:0), or go through them with '
            'iterate_motion.'
        )
    return join_results(parts)


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
        See `read_motion`.
    chunk : int
        Largest number of samples of a part.
    topic : str, optional
        Of a bag; needed if several hold a motion. sensor_msgs/JointState, hodyn_msgs/JointMotion
        and trajectory_msgs/JointTrajectory are read.
    joint_names : sequence of str, optional
        Joints to read, in this order; by default all of the file.
    index : int, optional
        Which of the trajectories of a topic, from 0.
    expressed_in, acting : str, optional
        Of all wrenches, see `Wrench`; by default as the file says, or 'body' and
        'on_environment'.

    Yields
    ------
    Samples

    Raises
    ------
    FileError, JointNameError
        See `read_motion`; on the way for what is wrong later in the file.
    """
    chunk = int(checked_number('chunk', chunk, FileError, least=1, whole=True))
    if isinstance(joint_names, str):
        raise FileError(f'joint_names is {joint_names!r}, expected a list of names.')
    file = Path(path)
    kind = format_of(file, file.is_dir(), 'the folder of a bag')
    if not kind.is_bag:
        if topic is not None:
            raise FileError(f'{path} is no bag and has no topics; leave topic out.')
        if index not in (None, 0):
            raise FileError('index is for the trajectories of a bag; leave it out.')
    wanted = Wanted(chunk, topic, joint_names, index, expressed_in, acting)
    parts = kind.motion(file, wanted)
    before: float | None = None
    empty = True
    for samples in guarded(parts, file):
        empty = False
        # Measurements may come late, and each trajectory of a bag has times of its own.
        if not samples.is_measured:
            before = None if kind.is_bag and samples.is_waypoints else before
            refuse_not_increasing(samples, before)
            before = float(samples.times[-1])
        yield samples if joint_names is None else samples.in_order(joint_names)[0]
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
        In one piece, with the provenance that the table holds.

    Raises
    ------
    FileError
        If the file cannot be read or holds no efforts.
    """
    file = Path(path)
    kind = format_of(file, file.is_dir(), 'the folder of a bag')
    found = list(guarded(kind.results(file, 10 * CHUNK), file))
    if not found:
        raise FileError(f'{file} holds no samples.')
    return join_results(found)


def write_results(path: PathLike, results: Results, *, storage: str = 'mcap') -> None:
    """Write results to a file; see `ResultsWriter`.

    Parameters
    ----------
    path : path-like
        See `ResultsWriter`.
    results : Results
        All of them.
    storage : {'mcap', 'sqlite3'}
        Of the folder of a bag.

    Raises
    ------
    FileError
        See `ResultsWriter`.
    """
    with ResultsWriter(path, storage=storage) as writer:
        writer.write(results)


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
    >>> from hodyn_ros.files import ResultsWriter, compute_stream, iterate_motion
    >>> def convert(model, source, target):
    ...     with ResultsWriter(target) as writer:
    ...         for results in compute_stream(model, iterate_motion(source)):
    ...             writer.write(results)
    """

    def __init__(self, path: PathLike, *, storage: str = 'mcap') -> None:
        self._path = Path(path)
        self._format = format_of(
            self._path, not self._path.suffix, 'none for the folder of a bag'
        )
        if self._path.is_dir():
            raise FileError(f'{path} is a folder that exists already; give another name.')
        self._first: Results | None = None
        self._last = -np.inf
        self._replacement = Replacement(self._path)
        self._meanwhile = self._replacement.path
        if self._format.is_bag:
            self._meanwhile, kept = self._format.places(self._meanwhile)
            self._replacement.path = kept
        try:
            with writing(self._path, self._meanwhile):
                self._writer = self._format.writer(self._meanwhile, storage)
        except BaseException:
            self._replacement.discard()
            raise

    def write(self, results: Results) -> None:
        """Append the next part of a motion, of the same joints and with the same orders.

        Parameters
        ----------
        results : Results
            In a table its times go on after those of the parts before it; bags may hold
            motions that overlap.

        Raises
        ------
        FileError
            If joints, motors or columns are others than before, times in a table do not
            increase, or it cannot be written.
        """
        first = results if self._first is None else self._first
        self._first = first
        if (
            results.joint_names != first.joint_names
            or results.motor_names != first.motor_names
        ):
            raise FileError(
                f'{self._path}: results of {listed(results.joint_names)} come after those of '
                f'{listed(first.joint_names)}; expected the same joints and motors in all parts.'
            )
        if len(results) and not self._format.is_bag:
            times = times_from(results, first.start)
            if times[0] <= self._last:
                raise FileError(
                    f'{self._path}: results from {times[0]:g} s on come after others until '
                    f'{self._last:g} s, but times in a table increase; write motions that overlap '
                    'to files of their own, or to a bag.'
                )
            self._last = float(times[-1])
            results = replace(results, times=times, start=first.start)
        with writing(self._path, self._meanwhile):
            self._writer.write(results)

    def close(self) -> None:
        """Finish the file and put it in its place.

        Raises
        ------
        FileError
            If nothing was written, or the file cannot be finished. What was written is then
            removed, and a file that was there stays.
        """
        try:
            if self._first is None:
                raise FileError(f'{self._path}: there are no results to write.')
            with writing(self._path, self._meanwhile):
                self._writer.close()
                self._replacement.finish()
        finally:
            self._replacement.discard()

    def __enter__(self) -> ResultsWriter:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.close()
            return
        try:
            self._writer.close()
        except Exception:
            pass  # It is thrown away anyway.
        finally:
            self._replacement.discard()


class Replacement:
    """A file or folder under construction, which takes its place only when it is complete.

    Parameters
    ----------
    path : pathlib.Path
        Where it is going to be; its folder has to exist.

    Attributes
    ----------
    folder : pathlib.Path
        Folder beside the target, with a random name, that holds it meanwhile. It is removed
        when the process is interrupted.
    path : pathlib.Path
        Where it is written meanwhile.

    Raises
    ------
    FileError
        If there is no such folder, or nothing can be written there.
    """

    def __init__(self, path: Path) -> None:
        self._target = path
        with writing(path):
            # The folder alone would decide otherwise whether it may be replaced.
            if path.is_file() and not path.stat().st_mode & 0o222:
                raise FileError(f'{path} cannot be written: permission denied.')
            if not path.parent.is_dir():
                raise FileError(
                    f'{path} cannot be written: there is no folder {path.parent}.'
                )
            self.folder = path.with_name(f'.{path.name}.{secrets.token_hex(4)}')
            CLEANUPS.add(self.discard)
            self.folder.mkdir(0o700)
        self.path = self.folder / path.name
        """Where it is written meanwhile."""

    def finish(self) -> None:
        """Put it in its place, replacing a file that is there, and first what stands beside it.

        Raises
        ------
        FileError
            If the target cannot be replaced.
        """
        beside = side_file(self.path)
        with writing(self._target):
            if beside.exists():
                os.replace(beside, side_file(self._target))
            os.replace(self.path, self._target)
        self.discard()

    def discard(self) -> None:
        """Leave nothing behind.

        Does nothing where all is removed already.
        """
        shutil.rmtree(self.folder, ignore_errors=True)
        CLEANUPS.discard(self.discard)


def guarded(items: Iterable[Item], path: Path) -> Iterator[Item]:
    """Iterate over what is read from a file, with all errors of parsers as `FileError`.

    Parameters
    ----------
    items : iterable
        What reads from the file while it is iterated over.
    path : pathlib.Path
        Of the file, for messages.

    Yields
    ------
    object
        The items.

    Raises
    ------
    FileError, JointNameError
        As they are, or in place of any other error of reading.
    """
    try:
        _refuse_pointer(path)
        yield from items
    except (FileError, JointNameError):
        raise
    except HodynError as error:
        text = str(error)
        raise FileError(text if str(path) in text else f'{path}: {text}') from error
    except FileNotFoundError as error:
        raise FileError(f'{path} does not exist; give an existing file.') from error
    except (IsADirectoryError, PermissionError) as error:
        raise FileError(f'{path} cannot be opened: {error.strerror}.') from error
    except Exception as error:
        reason = str(error).strip().partition('\n')[0][:300].rstrip('.')
        if isinstance(error, MemoryError):
            reason = 'it claims to hold more than fits into memory'
        elif isinstance(error, UnicodeDecodeError):
            is_wide = b'\0' in _beginning(path)
            reason = f'its text is not UTF-8{" but UTF-16, save it as UTF-8" * is_wide}'
        elif 'allow_pickle' in reason:
            reason = 'it holds objects of Python, expected arrays of numbers (numpy.savez)'
        known = _BY_SUFFIX.get(path.suffix.lower())
        what = 'a bag' if known and known.is_bag else path.suffix[1:].upper()
        raise FileError(
            f'{path} cannot be read as {what}: {reason or type(error).__name__}. It may be '
            'damaged or cut off, or have the wrong suffix.'
        ) from error


def _beginning(path: Path) -> bytes:
    """First bytes of a file; none of a folder, or of what cannot be opened."""
    try:
        with path.open('rb') as file:
            return file.read(100)
    except OSError:
        return b''


def _refuse_pointer(path: Path) -> None:
    """Refuse what Git LFS has put in the place of a file that it has not fetched."""
    if _beginning(path).startswith(b'version https://git-lfs.github.com/spec/'):
        raise FileError(
            f'{path} is a pointer of Git LFS, not the file that it stands for; fetch that with '
            '"git lfs pull".'
        )


@contextmanager
def writing(path: Path, meanwhile: Path | None = None) -> Iterator[None]:
    """Turn whatever goes wrong inside into a `FileError` that names the file.

    It says where the file is going to be, not where it is meanwhile.

    Parameters
    ----------
    path : pathlib.Path
        Where the file is going to be.
    meanwhile : pathlib.Path, optional
        Where it is written, which is replaced by `path` in messages.

    Raises
    ------
    FileError
        In place of any other error than a `HodynError`.
    """
    try:
        yield
    except FileError as error:
        raise FileError(str(error).replace(str(meanwhile or path), str(path))) from error
    except HodynError:
        raise
    except Exception as error:
        reason = (error.strerror or error) if isinstance(error, OSError) else error
        raise FileError(f'{path} cannot be written: {str(reason).rstrip(".")}.') from error
