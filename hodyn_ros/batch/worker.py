"""What happens in a worker: one task, from reading to the final name of its result.

Results are written to a temporary file and renamed when they are complete, so a file with a final
name is always a whole one, and making a result twice changes nothing.
"""

from __future__ import annotations

import errno
import os
import pickle
import socket
import sys
import threading
import time
import traceback
import uuid
from dataclasses import dataclass
from pathlib import Path

from hodyn_ros.batch.compute import compute_task
from hodyn_ros.batch.errors import BatchError
from hodyn_ros.batch.fingerprint import stamp
from hodyn_ros.batch.job import Job
from hodyn_ros.batch.tasks import Task
from hodyn_ros.errors import HodynError

# The next file would meet them as well.
_FATAL = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}


@dataclass(frozen=True)
class Failure:
    """A motion for which there is no result."""

    motion: str | None
    """Its id in a file with many; None: the only one, or all of them."""
    kind: str
    """Name of the class of the error."""
    message: str
    trace: str = ''
    """Where it happened, for errors that this package does not raise on purpose."""


@dataclass(frozen=True)
class Outcome:
    """What a task has come to."""

    samples: int = 0
    motions: int = 0
    """Those that are in the result."""
    output_bytes: int = -1
    """Negative: there is no result."""
    failures: tuple[Failure, ...] = ()
    remarks: tuple[str, ...] = ()
    worker: str = ''
    """Host and process."""
    seconds: float = 0.0
    peak_memory: int = 0
    """Largest resident memory of the process so far [bytes]; 0: not known."""


# Jobs that this process has unpacked, with their kernels; a cluster may serve several runs.
_PREPARED: dict[bytes, Job] = {}
_MOST_JOBS = 4
_LOCK = threading.Lock()


def prepared(packed: bytes) -> Job:
    """Unpack a job and compile its kernels, once in a process.

    Parameters
    ----------
    packed : bytes
        See `Job.packed`.

    Returns
    -------
    Job
        The same object for the same bytes, since the kernels are kept with its model.
    """
    with _LOCK:
        job = _PREPARED.pop(packed, None)
        if job is None:
            job = pickle.loads(packed)
            job.model.warm_up(job.options.orders)
        _PREPARED[packed] = job
        while len(_PREPARED) > _MOST_JOBS:
            del _PREPARED[next(iter(_PREPARED))]
        return job


def execute(packed: bytes, task: Task) -> Outcome:
    """Make the result of a task; what a pool or a cluster calls.

    Parameters
    ----------
    packed : bytes
    task : Task

    Returns
    -------
    Outcome
        Errors of the motions are in it.

    Raises
    ------
    BatchError
        If this worker cannot do any task of this run.
    """
    return execute_job(prepared(packed), task)


def execute_job(job: Job, task: Task) -> Outcome:
    """Make the result of a task; see `execute`."""
    began = time.monotonic()
    output_folder = Path(job.output_folder)
    temporary = output_folder / job.temporary
    if not temporary.is_dir():
        raise BatchError(
            f'{temporary} does not exist on {socket.gethostname()}: either another run has begun '
            'with the same output folder, or the workers do not share it.'
        )
    unfinished = temporary / f'{uuid.uuid4().hex}{job.options.suffix}'
    try:
        _refuse_changed(task)
        samples, motions, failures, remarks = compute_task(job, task, unfinished)
        _refuse_changed(task)
        found = tuple(_failure(error, motion) for motion, error in failures)
        size = -1
        if motions:
            size = _finish(unfinished, output_folder / task.output)
    except Exception as error:
        if not temporary.is_dir() or _is_fatal(error):
            raise BatchError(
                f'{task.key}: the result cannot be written to {output_folder}: {error}'
            ) from error
        samples, motions, size, remarks = 0, 0, -1, ()
        found = (_failure(error, None),)
    finally:
        unfinished.unlink(missing_ok=True)
    return Outcome(
        samples,
        motions,
        size,
        found,
        remarks,
        f'{socket.gethostname()}:{os.getpid()}',
        time.monotonic() - began,
        peak_memory(),
    )


def _is_fatal(error: BaseException | None) -> bool:
    """Whether an error, or what it came from, would meet every other task as well."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _FATAL:
            return True
        error = error.__cause__
    return False


def _refuse_changed(task: Task) -> None:
    size, instant = stamp(Path(task.path))
    if size != task.input['size'] or instant != task.input.get('time', instant):
        raise BatchError(f'{task.path} was changed during the run; run again.')


def _finish(unfinished: Path, final: Path) -> int:
    """Give a complete file its name; returns its size [bytes]."""
    final.parent.mkdir(parents=True, exist_ok=True)
    # Otherwise the name could survive a power failure that the content does not.
    with open(unfinished, 'rb') as file:
        os.fsync(file.fileno())
        size = os.fstat(file.fileno()).st_size
    os.replace(unfinished, final)
    return size


def _failure(error: Exception, motion: str | None) -> Failure:
    expected = isinstance(error, (HodynError, OSError))
    trace = '' if expected else ''.join(traceback.format_exception(error))
    return Failure(motion, type(error).__name__, str(error) or repr(error), trace)


def peak_memory() -> int:
    """Largest resident memory of this process so far [bytes]; 0 where it is not known."""
    try:
        # What getrusage says begins with the memory of the process that has started this one.
        status = Path('/proc/self/status').read_text()
        return 1024 * int(status.partition('VmHWM:')[2].split()[0])
    except (OSError, IndexError, ValueError):  # not Linux
        pass
    try:
        import resource
    except ImportError:  # not POSIX
        return 0
    unit = 1 if sys.platform == 'darwin' else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
