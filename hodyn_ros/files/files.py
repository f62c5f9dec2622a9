"""Reading motions from files and writing results to them; the suffix says which format."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, Union

import numpy as np

from hodyn_ros.checks import first_true
from hodyn_ros.errors import FileError, HodynError, JointNameError
from hodyn_ros.files.bags import BagFormat
from hodyn_ros.files.formats import Format, Wanted
from hodyn_ros.files.samples import Samples
from hodyn_ros.files.tables import CSV, NPZ, PARQUET
from hodyn_ros.files.yaml_files import YamlFormat
from hodyn_ros.interrupts import cleaned_up
from hodyn_ros.names import did_you_mean, listed

PathLike = Union[str, 'os.PathLike[str]']
Item = TypeVar('Item')

TABLES = CSV, NPZ, PARQUET
FORMATS: tuple[Format, ...] = (
    *TABLES,
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
    hint = did_you_mean(suffix, SUFFIXES, 0.7)
    raise FileError(
        f'{path}: the suffix {suffix!r} is unknown{hint}, expected one of {listed(SUFFIXES)}, or '
        f'{others}.'
    )


def read_motion(path: PathLike, **options: Any) -> Samples:
    r"""The motion in a file, and what was measured or computed beside it.

    Parameters
    ----------
    path : path-like
        See `read_motions`.
    **options
        Topic, joint names and so on, see `read_motions`.

    Returns
    -------
    Samples

    Raises
    ------
    FileError
        If the file cannot be read or does not hold one motion; the message says where.
    JointNameError
        If a joint is missing.

    Examples
    --------
    >>> from pathlib import Path
    >>> from hodyn_ros.files import read_motion
    >>> _ = Path('motion.csv').write_text('time,elbow.position\n0.0,0.1\n0.1,0.2\n')
    >>> samples = read_motion('motion.csv')
    >>> samples.joint_names, samples.motion.shape
    (('elbow',), (2, 1, 1))
    """
    found = read_motions(path, **options)
    if len(found) > 1:
        raise FileError(
            f'{path} holds {len(found)} trajectories; choose one with index=0 to '
            f'index={len(found) - 1} (hodyn: --topic NAME:0), or read all of them with '
            'read_motions.'
        )
    return found[0]


def read_motions(
    path: PathLike,
    *,
    topic: str | None = None,
    joint_names: Sequence[str] | None = None,
    index: int | None = None,
    expressed_in: str | None = None,
    acting: str | None = None,
) -> list[Samples]:
    """All motions in a file: one, or each trajectory of a topic of a bag.

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
        Which of the trajectories of a topic, from 0.
    expressed_in, acting : str, optional
        Of all wrenches, see `Wrench`; by default as the file says, or 'body' and
        'on_environment'.

    Returns
    -------
    list of Samples
        At least one.

    Raises
    ------
    FileError, JointNameError
        See `read_motion`.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros.files import Samples, read_motions, write_results
    >>> samples = Samples(('elbow',), [0.0, 0.1], [[[0.1]], [[0.2]]], effort=[[1.0], [2.0]])
    >>> write_results('motion.npz', samples)
    >>> [motion.times.tolist() for motion in read_motions('motion.npz')]
    [[0.0, 0.1]]
    """
    if isinstance(joint_names, str):
        raise FileError(f'joint_names is {joint_names!r}, expected a list of names.')
    file = Path(path)
    kind = format_of(file, file.is_dir(), 'the folder of a bag')
    if not kind.is_bag:
        if topic is not None:
            raise FileError(f'{path} is no bag and has no topics; leave topic out.')
        if index not in (None, 0):
            raise FileError('index is for the trajectories of a bag; leave it out.')
    wanted = Wanted(topic, joint_names, index, expressed_in, acting)

    def checked() -> Iterator[Samples]:
        for samples in kind.motions(file, wanted):
            samples.refuse_unknown_positions()
            if not samples.is_measured:  # which may come late
                _refuse_not_increasing(samples, samples.name)
            yield samples

    found = list(guarded(checked(), file))
    if not any(map(len, found)):
        raise FileError(f'{path} holds no samples.')
    if joint_names is None:
        return found
    return [samples.in_order(joint_names)[0] for samples in found]


def read_results(path: PathLike) -> Samples:
    """Results that were written to a table.

    Parameters
    ----------
    path : path-like
        .csv, .npz or .parquet.

    Returns
    -------
    Samples
        With the efforts and the provenance that the table holds.

    Raises
    ------
    FileError
        If the file cannot be read or holds no efforts, or one of its numbers is infinite.

    Examples
    --------
    >>> from hodyn_ros.files import Samples, read_results, write_results
    >>> samples = Samples(('elbow',), [0.0, 0.1], [[[0.1]], [[0.2]]], effort=[[1.0], [2.0]])
    >>> write_results('results.csv', samples)
    >>> read_results('results.csv').effort[:, 0, 0]
    array([1., 2.])
    """
    if format_of(Path(path), Path(path).is_dir(), 'the folder of a bag') not in TABLES:
        raise FileError(f'{path}: results are read from .csv, .npz and .parquet.')
    found = read_motion(path)
    if not found.effort.shape[1]:
        raise FileError(
            f'{path}: there are no efforts; expected columns such as '
            f"'{found.joint_names[0]}.effort'. Compute them first."
        )
    for what, values in found.arrays().items():
        if (place := first_true(np.isinf(values))) is not None:
            raise FileError(
                f'{path}: {what} is infinite at sample {place[0]}; expected a number, or none.'
            )
    return found


def write_results(path: PathLike, results: Samples, *, storage: str = 'mcap') -> None:
    """Write results to a file, which appears when it is complete, or not at all.

    Parameters
    ----------
    path : path-like
        .csv, .npz or .parquet for a table, .yaml or .yml for a trajectory, .mcap or .db3 for a
        storage file of a bag, no suffix for the folder of a bag. A file that exists is replaced, a
        folder is not.
    results : Samples
        Of any length but none, with what there is of efforts, motors and wrenches.
    storage : {'mcap', 'sqlite3'}
        Of the folder of a bag.

    Raises
    ------
    FileError
        If the file cannot be written, the suffix is unknown, or times in a table do not increase.

    Examples
    --------
    >>> from pathlib import Path
    >>> from hodyn_ros.files import Samples, write_results
    >>> samples = Samples(('elbow',), [0.5, 0.6], [[[0.1]], [[0.2]]], effort=[[1.5], [2.5]])
    >>> write_results('results.csv', samples)
    >>> print(Path('results.csv').read_text())
    time [s],elbow.position,elbow.effort
    0.5,0.1,1.5
    0.6,0.2,2.5
    """
    target = Path(path)
    kind = _output_format(target)
    if not len(results):
        raise FileError(f'{path}: there are no results to write.')
    if not kind.is_bag:
        _refuse_not_increasing(results, str(path))
    with replacing(target, kind.places) as meanwhile, writing(target, meanwhile):
        kind.write(meanwhile, results, storage)


def _refuse_not_increasing(samples: Samples, name: str) -> None:
    """Refuse times that do not increase strictly."""
    times = samples.times
    if (place := first_true(times[1:] <= times[:-1])) is not None:
        row = place[0] + 1
        raise FileError(
            f'{name}: times must increase, but sample {row} at {float(times[row])!r} s comes '
            f'after {float(times[row - 1])!r} s; sort the samples and leave out repeated ones.'
        )


def check_output(path: PathLike) -> Format:
    """Refuse a file that results cannot be written to, before they are computed.

    Parameters
    ----------
    path : path-like
        See `write_results`.

    Returns
    -------
    Format
        What it is going to be.

    Raises
    ------
    FileError
        If the suffix is unknown, a library is missing, there is such a folder, or nothing can be
        written there.
    """
    target = Path(path)
    kind = _output_format(target)
    with _folder_beside(target):
        return kind


def _output_format(target: Path) -> Format:
    """Format of a file that results are written to; refuses one that cannot be written."""
    kind = format_of(target, not target.suffix, 'none for the folder of a bag')
    if target.is_dir():
        raise FileError(f'{target} is a folder that exists already; give another name.')
    kind.require(target)
    return kind


@contextmanager
def replacing(
    path: Path, places: Callable[[Path], tuple[Path, Path]] = lambda path: (path, path)
) -> Iterator[Path]:
    """Write a file or folder elsewhere, which takes its place when it is complete, or not at all.

    Parameters
    ----------
    path : pathlib.Path
        Where it is going to be; its folder has to exist. A file that is there is replaced.
    places : callable
        What is written, and what of it is kept, of a path; see `Format.places`.

    Yields
    ------
    pathlib.Path
        Where it is written, in a folder that is removed at the end of the block, also if an
        interrupt ends the process.

    Raises
    ------
    FileError
        If there is no such folder, or nothing can be written there.
    """
    with _folder_beside(path) as folder:
        written, kept = places(folder / path.name)
        yield written
        with writing(path):
            os.replace(kept, path)


@contextmanager
def _folder_beside(path: Path) -> Iterator[Path]:
    """Folder with a random name beside a file that is going to be written."""
    folder = path.with_name(f'.{path.name}.{secrets.token_hex(4)}')
    with cleaned_up(partial(shutil.rmtree, folder, ignore_errors=True)):
        with writing(path):
            # The folder alone would decide otherwise whether it may be replaced.
            if path.is_file() and not path.stat().st_mode & 0o222:
                raise FileError(f'{path} cannot be written: permission denied.')
            if not path.parent.is_dir():
                raise FileError(
                    f'{path} cannot be written: there is no folder {path.parent}.'
                )
            folder.mkdir(0o700)
        yield folder


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
