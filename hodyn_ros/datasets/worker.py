"""What a worker does: one task, from reading to the final name of its result, a whole file."""

from __future__ import annotations

import errno
import os
import pickle
import socket
import traceback
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from hodyn_ros.checks import Array
from hodyn_ros.datasets.inputs import input_digest
from hodyn_ros.datasets.run import DatasetRun
from hodyn_ros.errors import BatchError, HodynError
from hodyn_ros.files.columns import (
    columns_of,
    find_columns,
    metadata_of,
    parse_metadata,
    refuse_not_increasing,
    side_file,
)
from hodyn_ros.files.compute import compute
from hodyn_ros.files.files import guarded, read_motion, write_results
from hodyn_ros.files.parquet_table import ParquetTable, ParquetWriter
from hodyn_ros.files.samples import Samples

# The next file would meet them as well.
_FATAL = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}
# Rows that are read together; a row of a robot with 7 joints has some 300 bytes.
_BLOCK = 1 << 14
_KEPT_JOBS = 4  # a cluster may serve several runs


@dataclass(frozen=True)
class BatchJob:
    """What is done with every motion."""

    run: DatasetRun
    """Without inputs and scheduler."""
    temporary: str
    """Folder of unfinished results. Once another run has begun it is gone, and nothing of this
    run can get a final name any more."""


@dataclass(frozen=True)
class BatchTask:
    """What makes one output file.

    Attributes
    ----------
    path : str
        Absolute path of the input.
    first_row : int
        Row of the input with which the task begins.
    """

    key: str
    """Name of the input; with the number of the part if it has parts."""
    name: str
    """Name of the input."""
    path: str
    output: str
    """Path below the output folder, with slashes."""
    digest: dict[str, Any]
    """Of the input."""
    size: int
    """What of the input belongs to the task [bytes]."""
    first_row: int = 0
    motions: Sequence[tuple[Any, int]] = ()
    """Ids of the motions and their numbers of rows; empty: the whole file is one motion."""


@dataclass
class TaskResult:
    """What a task has come to.

    Attributes
    ----------
    samples : int
        That were computed.
    remarks : dict of str to None
        Remarks of the results, each once.
    """

    samples: int = 0
    motions: int = 0
    """Those that are in the result."""
    output_bytes: int = -1
    """Negative: there is no result."""
    failures: list[dict[str, str | None]] = field(default_factory=list)
    """Motions without result: its id in a file with many, the class of the error, the message."""
    remarks: dict[str, None] = field(default_factory=dict)
    worker: str = ''
    """Host and process."""
    peak_memory: int = 0
    """Largest resident memory of the process so far [bytes]; 0: not known."""

    def failed(self, error: Exception, motion: str | None = None) -> TaskResult:
        """Note that there is no result for a motion.

        Parameters
        ----------
        error : Exception
            Why; one that is no `HodynError` or `OSError` is noted with its traceback.
        motion : str, optional
            Its id in a file with many.

        Returns
        -------
        TaskResult
            This one.
        """
        failure = {
            'motion': motion,
            'error': type(error).__name__,
            'message': str(error) or repr(error),
        }
        if not isinstance(error, (HodynError, OSError)):
            failure['trace'] = ''.join(traceback.format_exception(error))
        self.failures.append(failure)
        return self

    def add(self, results: Samples) -> None:
        """Note results that are computed.

        Parameters
        ----------
        results : Samples
            Of a motion, or a part of one.
        """
        self.samples += len(results)
        self.remarks |= dict.fromkeys(results.remarks)


@lru_cache(_KEPT_JOBS)
def _prepared(packed: bytes) -> BatchJob:
    """Unpack a job and compile its kernels, once in a process."""
    job: BatchJob = pickle.loads(packed)
    job.run.model.warm_up(job.run.order)
    return job


def execute_packed(packed: bytes, task: BatchTask) -> TaskResult:
    """Make the result of a task of a pickled job; what workers of a cluster call.

    Parameters
    ----------
    packed : bytes
        A pickled `BatchJob`.
    task : BatchTask

    Returns
    -------
    TaskResult

    Raises
    ------
    BatchError
        See `execute`.
    """
    return execute(_prepared(packed), task)


def execute(job: BatchJob, task: BatchTask) -> TaskResult:
    """Make the result of a task, with the errors of its motions.

    Raises `BatchError` if no task of this run can be done.

    Parameters
    ----------
    job : BatchJob
    task : BatchTask

    Returns
    -------
    TaskResult
        With its error if there is no result.

    Raises
    ------
    BatchError
        If the folder of unfinished results is gone, or the output cannot be written at all.
    """
    temporary = Path(job.temporary)
    if not temporary.is_dir():
        raise BatchError(
            f'{temporary} does not exist on {socket.gethostname()}: either another run has begun '
            'with the same output folder, or the workers do not share it.'
        )
    unfinished = temporary / f'{uuid.uuid4().hex}{job.run.suffix}'
    result = TaskResult()
    try:
        _refuse_changed(task)
        (_compute_motions if task.motions else _compute_file)(
            job.run, task, unfinished, result
        )
        _refuse_changed(task)
        if result.motions:
            final = job.run.output_folder / task.output
            final.parent.mkdir(parents=True, exist_ok=True)
            # Otherwise the name could survive a power failure that the content does not.
            with open(unfinished, 'rb') as file:
                os.fsync(file.fileno())
                size = os.fstat(file.fileno()).st_size
            if side_file(unfinished).exists():
                os.replace(side_file(unfinished), side_file(final))
            os.replace(unfinished, final)
            result.output_bytes = size
    except Exception as error:
        if not temporary.is_dir() or _is_fatal(error):
            raise BatchError(
                f'{task.key}: the result cannot be written to {job.run.output_folder}: {error}'
            ) from error
        result = TaskResult().failed(error)
    finally:
        unfinished.unlink(missing_ok=True)
    result.worker = f'{socket.gethostname()}:{os.getpid()}'
    result.peak_memory = peak_memory()
    return result


def _is_fatal(error: BaseException | None) -> bool:
    """Whether an error, or what it came from, would meet every other task as well."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _FATAL:
            return True
        error = error.__cause__
    return False


def _refuse_changed(task: BatchTask) -> None:
    """Refuse an input that has another size or time than when the run began."""
    now = input_digest(Path(task.path))
    if any(task.digest.get(what, now[what]) != now[what] for what in ('size', 'time')):
        raise BatchError(f'{task.path} was changed during the run; run again.')


def _compute_file(run: DatasetRun, task: BatchTask, path: Path, result: TaskResult) -> None:
    """Compute a file with one motion.

    Parameters
    ----------
    run : DatasetRun
    task : BatchTask
    path : pathlib.Path
        Where the result is written meanwhile.
    result : TaskResult
        Counts what is done.
    """
    samples = read_motion(task.path, **run.reading)
    results = compute(run.model, samples, actuators=run.actuators, **run.computing)
    write_results(path, results)
    result.add(results)
    result.motions = 1


def _compute_motions(
    run: DatasetRun, task: BatchTask, path: Path, result: TaskResult
) -> None:
    """Compute the motions of a part of a Parquet file, each on its own.

    Parameters
    ----------
    run : DatasetRun
    task : BatchTask
        With the ids of its motions.
    path : pathlib.Path
        Where the result is written meanwhile.
    result : TaskResult
        Counts what is done, and takes the errors of single motions.
    """
    source = Path(task.path)
    table = ParquetTable(source)
    columns = find_columns(table.titles, task.path)
    wanted = run.expressed_in, run.acting
    metadata = parse_metadata(table.lines, task.path, *wanted)
    lengths = [length for _, length in task.motions]
    rows = guarded(piecewise_rows(table, columns.columns, task.first_row, lengths), source)
    titles: list[str] = []
    done: list[tuple[Any, list[Array]]] = []  # short motions share a row group
    with ExitStack() as stack:
        for (identity, length), values in zip(task.motions, rows):
            try:
                named = replace(columns, name=f'{task.path}, motion {identity!s}')
                samples = named.samples(values, metadata)
                refuse_not_increasing(samples)
                if (names := run.joint_names) is not None:
                    samples = samples.in_order(names)[0]
                results = compute(
                    run.model, samples, actuators=run.actuators, **run.computing
                )
                found, computed = columns_of(results)
                if len(results) != length:
                    raise BatchError(
                        f'{results.name}: {len(results)} results for {length} rows; read such '
                        'motions from files of their own.'
                    )
                if not titles:
                    titles, lines = found, metadata_of(results)
                    writer = ParquetWriter(path, titles, lines, run.motion_column)
                    stack.enter_context(closing(writer))
                if found != titles:
                    odd = sorted(set(found) ^ set(titles))
                    raise BatchError(
                        'The result of this motion has other columns than those before it: '
                        f'{", ".join(odd[:4])}. Expected the same orders for all motions.'
                    )
            except HodynError as error:
                result.failed(error, str(identity))
                continue
            done.append((np.full(length, identity), computed))
            result.add(results)
            result.motions += 1
            if sum(len(ids) for ids, _ in done) >= run.chunk:
                _write(writer, done)
        if done:
            _write(writer, done)


def _write(writer: ParquetWriter, done: list[tuple[Any, list[Array]]]) -> None:
    """Write motions that are done, ids and columns of each, as a row group, and forget them."""
    ids, motions = zip(*done)
    writer.write([np.concatenate(column) for column in zip(*motions)], np.concatenate(ids))
    done.clear()


def piecewise_rows(
    table: ParquetTable, columns: Sequence[int], first: int, lengths: Sequence[int]
) -> Iterator[Array]:
    """Values (length, columns) of consecutive pieces of a table, from its row `first` on.

    Parameters
    ----------
    table : ParquetTable
    columns : sequence of int
        Places among its titles.
    first : int
        Row with which the first piece begins.
    lengths : sequence of int
        Rows of each piece.

    Yields
    ------
    ndarray, shape (length, columns)
    """
    with table.opened() as file:
        counts = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    group = int(np.searchsorted(np.cumsum(counts), first, side='right'))
    blocks = table.blocks(columns, _BLOCK, range(group, len(counts)))
    rest = np.empty((0, len(columns)))
    for number, length in enumerate([first - sum(counts[:group]), *lengths]):
        parts, have = [rest], len(rest)
        while have < length:
            parts.append(next(blocks))
            have += len(parts[-1])
        whole = np.concatenate(parts) if len(parts) > 1 else rest
        rest = whole[length:]
        if number:
            yield whole[:length]


def peak_memory() -> int:
    """Largest resident memory of this process so far [bytes]; 0 where it is not known.

    Returns
    -------
    int
        [bytes]
    """
    try:
        # What getrusage says begins with the memory of the process that has started this one.
        status = Path('/proc/self/status').read_text()
        return 1024 * int(status.partition('VmHWM:')[2].split()[0])
    except (OSError, IndexError, ValueError):  # not Linux
        return 0
