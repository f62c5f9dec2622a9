"""Who does the tasks of a run: this process, processes of this machine, or a Dask cluster.

All are executors of `concurrent.futures`, and a task makes one result, a whole file.
"""

from __future__ import annotations

import errno
import multiprocessing
import os
import pickle
import signal
import socket
import threading
import traceback
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from hodyn_ros.datasets.dataset import DatasetRun
from hodyn_ros.datasets.inputs import MotionFile, input_state
from hodyn_ros.errors import BatchError, HodynError
from hodyn_ros.files.compute import compute
from hodyn_ros.files.files import read_motion, write_results
from hodyn_ros.resources import optional_import_module

PATIENCE = 120.0
"""How long a cluster may be without a worker [s]."""

_FATAL = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}  # every other file would meet them, too
_HAS_FORKSERVER = 'forkserver' in multiprocessing.get_all_start_methods()  # on POSIX
_PRELOADED = ['numba', 'pyarrow.parquet', 'hodyn_ros.engine.kernels', __name__]


@dataclass(frozen=True)
class Job:
    """Work that all tasks of a run have in common."""

    run: DatasetRun
    """Without inputs and scheduler."""
    temporary: Path
    """Folder of unfinished results. Once another run has begun it is gone, and nothing of this
    run can get a final name any more."""


@dataclass(frozen=True)
class MotionTask:
    """A result that is to be made."""

    motion: MotionFile
    state: list[tuple[str, int, int]]
    """Of the input when the run began."""


@dataclass(frozen=True)
class Outcome:
    """A task that has come to its end."""

    samples: int = 0
    size: int = -1
    """Of the result [bytes]; negative: there is none."""
    remarks: tuple[str, ...] = ()
    error: dict[str, str] | None = None
    """Class and message of the error if there is no result."""

    @classmethod
    def failed(cls, error: Exception) -> Outcome:
        """No result; the traceback of errors of the program is kept."""
        record = {'error': type(error).__name__, 'message': str(error) or repr(error)}
        if not isinstance(error, (HodynError, OSError)):
            record['trace'] = ''.join(traceback.format_exception(error))
        return cls(error=record)


Outcomes = Generator[tuple[MotionTask, Outcome], None, None]


def outcomes(
    job: Job, tasks: Sequence[MotionTask], workers: int, scheduler: Any
) -> Outcomes:
    """Do tasks and yield their outcomes, in any order and each exactly once.

    Parameters
    ----------
    job : Job
    tasks : sequence of MotionTask
    workers : int
        Processes of this machine; up to one: this process does all.
    scheduler : str, distributed.Client or None
        Of a cluster that does the work instead.

    Yields
    ------
    task : MotionTask
    outcome : Outcome

    Raises
    ------
    BatchError
        If the job cannot be sent, a library is missing, the output cannot be written, or the
        workers are lost.
    """
    if scheduler is None and workers <= 1:
        _prepare(job)
        for task in tasks:
            yield task, execute(job, task)
        return
    try:
        packed = pickle.dumps(job)
    except Exception as error:  # whatever the classes of a user raise
        raise BatchError(
            f'The robot or its actuators cannot be sent to other processes ({error}); define '
            'classes and functions that they use in a module, or compute with workers=1.'
        ) from error
    if scheduler is None:
        yield from _by_processes(packed, tasks, workers)
    else:
        yield from _by_cluster(packed, tasks, scheduler)


def execute(job: Job, task: MotionTask) -> Outcome:
    """Make a result, or find out why there is none.

    Parameters
    ----------
    job : Job
    task : MotionTask

    Returns
    -------
    Outcome

    Raises
    ------
    BatchError
        If the folder of unfinished results is gone, or the output cannot be written at all.
    """
    final = job.run.output_folder / task.motion.output
    unfinished = job.temporary / f'{uuid.uuid4().hex}{job.run.suffix}'
    try:
        samples = read_motion(task.motion.path, **job.run.reading)
        options = job.run.computing
        results = compute(job.run.model, samples, actuators=job.run.actuators, **options)
        write_results(unfinished, results)
        if input_state(task.motion.path) != task.state:
            raise BatchError(f'{task.motion.path} was changed during the run; run again.')
        final.parent.mkdir(parents=True, exist_ok=True)
        # Otherwise the name could survive a power failure that the content does not.
        with open(unfinished, 'rb') as written:
            os.fsync(written.fileno())
            size = os.fstat(written.fileno()).st_size
        os.replace(unfinished, final)
    except Exception as error:
        if not job.temporary.is_dir():
            raise BatchError(
                f'{job.temporary} does not exist on {socket.gethostname()}: either another run '
                'has begun with the same output folder, or the workers do not share it.'
            ) from error
        if _is_fatal(error):
            raise BatchError(
                f'{task.motion.name}: the result cannot be written to {job.run.output_folder}: '
                f'{error}'
            ) from error
        return Outcome.failed(error)
    return Outcome(len(results), size, tuple(dict.fromkeys(results.remarks)))


def _is_fatal(error: BaseException | None) -> bool:
    """Whether an error, or its cause, would meet every other task as well."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _FATAL:
            return True
        error = error.__cause__
    return False


def _prepare(job: Job) -> None:
    """Compile the kernels of a job, or read them from the cache on disk."""
    job.run.model.warm_up(job.run.computing.get('order', 2))


@lru_cache(4)  # a cluster may serve several runs
def _unpacked(packed: bytes) -> Job:
    """Job of a process, prepared once."""
    job: Job = pickle.loads(packed)
    _prepare(job)
    return job


def _execute_packed(packed: bytes, task: MotionTask | None) -> Outcome:
    """Make a result; without a task, only what is needed to do so."""
    job = _unpacked(packed)
    return Outcome() if task is None else execute(job, task)


def _shared(
    executor: Executor,
    packed: bytes,
    tasks: Iterable[MotionTask],
    width: Callable[[], int],
    deadly: type[Exception],
) -> Generator[tuple[MotionTask, Outcome], None, list[MotionTask]]:
    """Do tasks by an executor, up to `width()` at a time; tasks whose worker died are returned."""
    source, lost = iter(tasks), list[MotionTask]()
    under_way: dict[Future[Outcome], MotionTask] = {}
    while True:
        free = 0 if lost and deadly is BrokenExecutor else max(1, width()) - len(under_way)
        for task in islice(source, max(0, free)):
            try:
                under_way[executor.submit(_execute_packed, packed, task)] = task
            except deadly:
                lost.append(task)
                break
        if not under_way:
            return lost
        done, _ = wait(under_way, PATIENCE, FIRST_COMPLETED)
        if not done and not width():
            raise BatchError(
                f'The Dask cluster has had no worker for {PATIENCE:.0f} s; start some. Workers '
                'may have been killed because the memory does not suffice.'
            )
        for future in done:
            task = under_way.pop(future)
            try:
                outcome = future.result()
            except deadly:
                lost.append(task)
            else:
                yield task, outcome


def _died(task: MotionTask) -> tuple[MotionTask, Outcome]:
    """Outcome of a task that no worker survives."""
    text = 'Worker processes died of this file. They may have run out of memory; try fewer.'
    return task, Outcome.failed(BatchError(text))


def _by_processes(packed: bytes, tasks: Sequence[MotionTask], workers: int) -> Outcomes:
    """Tasks by processes of this machine, which end with this one, however it ends."""
    source = iter(tasks)
    while True:
        with _processes(workers, packed) as pool:
            lost = yield from _shared(pool, packed, source, lambda: workers, BrokenExecutor)
        if not lost:
            return
        # The death of one worker ends the pool. Each task that was under way gets a process of
        # its own now, which tells the one that is deadly from the others.
        for task in lost:
            with _processes(1, packed) as pool:
                again = yield from _shared(pool, packed, [task], lambda: 1, BrokenExecutor)
            if again:
                yield _died(task)


class _Pool(ProcessPoolExecutor):
    """Processes that are forked from one that has imported all already."""

    def submit(self, *arguments: Any, **named: Any) -> Future[Any]:
        """Submit, which starts processes until all are there; Ctrl-C waits meanwhile."""
        with _interruptions_held():
            if _HAS_FORKSERVER:
                multiprocessing.set_forkserver_preload(_PRELOADED)
                forkserver.ensure_running()
            return super().submit(*arguments, **named)


@contextmanager
def _interruptions_held() -> Iterator[None]:
    """Hold back SIGINT in this process for a block, and for good in processes that it starts.

    Ctrl-C reaches all of them. They leave it to this process, which ends them. Half started, they
    would be forgotten.
    """
    if not _HAS_FORKSERVER or threading.current_thread() is not threading.main_thread():
        yield
        return
    # Else the thread that starts the first process would start it, and unblock the signal.
    resource_tracker.ensure_running()
    came: list[object] = []
    # The mask is inherited, but other threads, such as those of BLAS, still take the signal.
    handler = signal.signal(signal.SIGINT, lambda *_: came.append(_))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, handler)
        if came:
            signal.raise_signal(signal.SIGINT)


@contextmanager
def _processes(count: int, packed: bytes) -> Iterator[_Pool]:
    """Pool whose processes end at once if the block ends with an error, or this process dies."""
    context = multiprocessing.get_context('forkserver' if _HAS_FORKSERVER else 'spawn')
    ours, theirs = context.Pipe()
    pool = _Pool(count, context, _end_with, (theirs,))
    try:
        try:
            # The first one compiles, the others take the code from the cache on disk.
            pool.submit(_execute_packed, packed, None).result()
        except BrokenExecutor as error:
            raise BatchError(
                f'The worker processes cannot be started ({error}); the error stream may say '
                "why. A script that starts them must do so below  if __name__ == '__main__':  "
                'because they import it. With workers=1 this process does the work.'
            ) from error
        yield pool
    except BaseException:
        ours.close()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        ours.close()
        theirs.close()


def _end_with(connection: Connection) -> None:
    """End this process, in the midst of its work, when the other end of a pipe is closed."""

    def watch() -> None:
        connection.poll(None)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _by_cluster(packed: bytes, tasks: Sequence[MotionTask], scheduler: Any) -> Outcomes:
    """Tasks by the workers of a Dask cluster, which may come and go."""
    need = 'A Dask cluster needs distributed'
    library = optional_import_module('distributed', need, 'cluster', BatchError)
    connect = partial(library.Client, set_as_default=False, timeout=30.0)
    is_given = isinstance(scheduler, library.Client) and not scheduler.asynchronous
    if not (is_given or isinstance(scheduler, str)):
        raise BatchError(
            f'The scheduler is {scheduler!r}, expected an address such as tcp://host:8786 or a '
            'synchronous distributed.Client.'
        )
    try:
        client = scheduler if is_given else connect(scheduler)
    except (OSError, ValueError) as error:
        raise BatchError(
            f'The Dask scheduler {scheduler!r} was not reached: {error}'
        ) from error
    executor = client.get_executor()
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
        lost = yield from _shared(
            executor,
            packed,
            tasks,
            # Several for each thread let the scheduler look ahead.
            lambda: 4 * sum(client.nthreads().values()),
            library.KilledWorker,
        )
        yield from map(_died, lost)
    except (OSError, CancelledError, library.TimeoutError) as error:
        raise BatchError(
            'The Dask cluster has no workers, or has dropped tasks or the connection '
            f'({type(error).__name__}: {error}); run again to go on.'
        ) from error
    finally:
        executor.shutdown(wait=False)  # tasks that are not done are cancelled
        if not is_given:
            client.close(10.0)
