"""The efforts of many motions: all inputs of a data set, by all cores or a cluster, resumable.

A result ``a.npz`` has a record of what it was made from, ``_hodyn/records/a.npz.json``, which gets
its name after the result: a run that is killed leaves results without records at most.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import multiprocessing
import os
import pickle
import shutil
import signal
import time
import uuid
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import (
    AbstractContextManager,
    ExitStack,
    closing,
    contextmanager,
    nullcontext,
    suppress,
)
from dataclasses import dataclass, field, replace
from itertools import islice
from multiprocessing import forkserver, resource_tracker
from pathlib import Path
from typing import Any

from hodyn_ros.datasets.inputs import (
    MotionFile,
    digest_of,
    find_inputs,
    find_parts,
    input_digest,
    output_name,
)
from hodyn_ros.datasets.run import DatasetRun
from hodyn_ros.datasets.worker import (
    BatchJob,
    BatchTask,
    TaskResult,
    execute,
    execute_packed,
)
from hodyn_ros.errors import BatchError, HodynError
from hodyn_ros.files.files import guarded
from hodyn_ros.resources import optional_import_module

try:
    import fcntl
except ImportError:  # only POSIX has it; elsewhere, two runs at once are not noticed
    fcntl = None  # type: ignore[assignment]

# How long a cluster may be without a worker [s], and how long to try to reach its scheduler.
PATIENCE = 120.0
CONNECTING = 30.0
CLOSING = 10.0

# Of Dask on this machine: nobody looks at profiles and pages of it.
_SETTINGS: dict[str, Any] = {
    'distributed.worker.profile.enabled': False,
    'distributed.worker.http.routes': [],
    'distributed.scheduler.http.routes': [],
}
_HAS_FORKSERVER = 'forkserver' in multiprocessing.get_all_start_methods()  # on POSIX
_PRELOADED = [
    'distributed.nanny',
    'numba',
    'pyarrow.parquet',
    'hodyn_ros.engine.kernels',
    'hodyn_ros.datasets.worker',
]

_HIDDEN = '_hodyn'  # Readers of data sets leave out what begins with an underscore.

# Reasons to compute a result anew that are no change of robot or options.
_NOT_WHOLE = 'the result is not the one that was written'
_NO_CHANGES = ('the input changed', _NOT_WHOLE)


@dataclass(frozen=True)
class Progress:
    """How far a run is; tasks are files, or parts of files with many motions.

    Attributes
    ----------
    seconds : float
        Since the run began [s].
    """

    total: int
    """Tasks of this run, those of earlier runs included."""
    done: int
    """Tasks with a result, those of earlier runs included."""
    failed: int
    """Tasks with an error."""
    samples: int
    """Computed in this run."""
    bytes_read: int
    """Of inputs in this run."""
    seconds: float
    latest: str
    """The task that has just come to its end; empty at the beginning."""


@dataclass(frozen=True)
class BatchSummary:
    """What a run has come to; tasks are files, or parts of files with many motions.

    Attributes
    ----------
    total : int
        Tasks of this run, those of earlier runs included.
    samples : int
        Computed in this run.
    seconds : float
        Duration of the run [s].
    """

    total: int
    computed: int
    """Tasks that were computed in this run, without an error."""
    kept: int
    """Tasks whose results of an earlier run hold."""
    failed: int
    """Tasks with an error, of at least one motion."""
    samples: int
    motions: int
    """Computed in this run."""
    bytes_read: int
    """Of inputs in this run."""
    seconds: float
    peak_memory: dict[str, int]
    """Largest resident memory of each worker (host:process) [bytes]."""
    remarks: tuple[str, ...]
    """What was computed anew and why, and what else one should know."""
    errors: Path | None
    """File with one line of JSON for each error; None: there were none."""


def process_files(
    run: DatasetRun, progress: Callable[[Progress], object] | None = None
) -> BatchSummary:
    """Compute efforts and their derivatives for many files.

    Every input gives one output of the same name, see `output_name`. A run that was ended,
    however abruptly, goes on where it was when it is called again: what is done is kept, as long
    as input, robot, actuators and options are the same. A file with its final name is complete.

    Parameters
    ----------
    run : DatasetRun
        What is computed, how and where to.
    progress : callable, optional
        Called with a `Progress` at the beginning and after every task.

    Returns
    -------
    BatchSummary

    Raises
    ------
    BatchError
        If inputs or the output folder cannot be used, the workers are lost, or with
        `stop_on_error` a file has an error.
    """
    began = time.monotonic()
    output = run.output_folder
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BatchError(f'The output folder {output} cannot be made: {error}') from error
    robot = {'the robot': digest_of(run.model), 'the actuators': digest_of(run.actuators)}
    found = find_inputs(run.inputs, output, run.suffix)
    folder = _OutputFolder(output, run.made_with() | robot)
    with folder.locked():
        tasks, unreadable = _make_tasks(run, found)
        open_tasks, changes = folder.compare(tasks, unreadable)
        if run.on_change == 'refuse' and changes:
            raise BatchError(
                f'{output} holds results that were made otherwise: {"; ".join(changes)}. Choose '
                "another output folder, or have them computed anew: on_change='recompute'."
            )
        count = min(run.cores(), len(open_tasks))
        if run.scheduler is None and run.workers is None and count > 1 and not _has_dask():
            count = 1
            folder.remarks.append(
                'One process does all the work; for one on each core: pip install '
                'hodyn_ros[cluster].'
            )
        folder.begin()
        kept = len(tasks) - len(open_tasks)
        tally = _Tally(folder, began, len(tasks) + len(unreadable), kept, run.stop_on_error)
        for name, reason in unreadable.items():
            tally.add(name, 0, TaskResult().failed(reason))
        tell = progress or (lambda state: None)
        tell(tally.progress(''))
        job = BatchJob(replace(run, inputs=(), scheduler=None), str(folder.temporary))
        with closing(_results(job, open_tasks, count, run.scheduler)) as results:
            for task, result in results:
                if result.output_bytes >= 0:
                    folder.add(task, result)
                tally.add(task.key, task.size, result)
                tell(tally.progress(task.key))
    return tally.summary()


@dataclass
class _Tally:
    """What a run has come to so far."""

    folder: _OutputFolder
    """Where errors are recorded."""
    began: float
    """Time of the monotonic clock [s]."""
    total: int
    """Tasks, and inputs that cannot be read."""
    kept: int
    """Tasks whose results of an earlier run hold."""
    stop_on_error: bool
    """Whether the first error is raised."""
    sums: Counter[str] = field(
        default_factory=lambda: Counter(
            computed=0, failed=0, samples=0, motions=0, bytes_read=0
        )
    )
    memory: Counter[str] = field(default_factory=Counter)
    said: dict[str, list[str]] = field(default_factory=dict)

    def add(self, key: str, size: int, result: TaskResult) -> None:
        """Count a task that has come to its end, and record its errors.

        Parameters
        ----------
        key : str
            Of the task.
        size : int
            [bytes]
        result : TaskResult

        Raises
        ------
        BatchError
            With `stop_on_error`, if the task has an error.
        """
        self.folder.add_errors(key, result)
        self.sums['failed' if result.failures else 'computed'] += 1
        self.sums.update(samples=result.samples, motions=result.motions, bytes_read=size)
        for text in result.remarks:
            self.said.setdefault(text, []).append(key)
        if result.worker:
            self.memory |= {result.worker: result.peak_memory}  # the largest
        if result.failures and self.stop_on_error:
            raise BatchError(f'{key}: {result.failures[0]["message"]}')

    def progress(self, latest: str) -> Progress:
        """How far the run is after a task."""
        return Progress(
            self.total,
            self.kept + self.sums['computed'],
            **{what: self.sums[what] for what in ('failed', 'samples', 'bytes_read')},
            seconds=time.monotonic() - self.began,
            latest=latest,
        )

    def summary(self) -> BatchSummary:
        """What the run has come to."""
        remarks = [*self.folder.remarks]
        for text, keys in self.said.items():
            others = f' and {len(keys) - 1} more' if len(keys) > 1 else ''
            remarks.append(f'{keys[0]}{others}: {text}')
        return BatchSummary(
            total=self.total,
            kept=self.kept,
            **self.sums,
            seconds=time.monotonic() - self.began,
            peak_memory=dict(self.memory),
            remarks=tuple(remarks),
            errors=self.folder.errors if self.sums['failed'] else None,
        )


def _make_tasks(
    run: DatasetRun, inputs: Sequence[MotionFile]
) -> tuple[list[BatchTask], dict[str, Exception]]:
    """Tasks, and inputs that cannot be read.

    Parameters
    ----------
    run : DatasetRun
    inputs : sequence of MotionFile

    Returns
    -------
    tasks : list of BatchTask
    unreadable : dict of str to Exception
        By the name of the input.
    """
    tasks: list[BatchTask] = []
    unreadable: dict[str, Exception] = {}
    for path, name in inputs:
        output = output_name(name, run.suffix)
        try:
            digest = input_digest(path, run.fingerprint)
            whole = BatchTask(name, name, str(path), output, digest, int(digest['size']))
            if run.motion_column is None:
                tasks.append(whole)
                continue
            parts = list(guarded(find_parts(path, run.motion_column, run.part_rows), path))
            if not parts:
                raise BatchError(f'{path} holds no rows.')
        except (HodynError, OSError) as error:
            unreadable[name] = error
            continue
        lengths = [sum(length for _, length in motions) for _, motions in parts]
        for number, (first, motions) in enumerate(parts):
            tasks.append(
                replace(
                    whole,
                    key=f'{name}#{number}',
                    output=f'{output}/part-{number:05d}{run.suffix}',
                    size=round(whole.size * lengths[number] / sum(lengths)),
                    first_row=first,
                    motions=motions,
                )
            )
    return tasks, unreadable


class _OutputFolder:
    """The folder of the results, and beside them what each of them was made from.

    Parameters
    ----------
    path : pathlib.Path
    made_with : dict of str to str
        What results of this run depend on beside their inputs.

    Attributes
    ----------
    temporary : pathlib.Path
        Folder of unfinished results, of this run alone.
    errors : pathlib.Path
        File of errors.
    remarks : list of str
        On results of earlier runs.
    """

    def __init__(self, path: Path, made_with: dict[str, str]) -> None:
        self.path, self._made_with = path, made_with
        self._hidden = path / _HIDDEN
        self._records = self._hidden / 'records'
        self.temporary = self._hidden / 'runs' / uuid.uuid4().hex
        self.errors = self._hidden / 'errors.jsonl'
        self.remarks: list[str] = []
        self._stale: list[str] = []

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep others from using the folder, also when this process is killed at once.

        Raises
        ------
        BatchError
            If another run uses it.
        """
        self._hidden.mkdir(exist_ok=True)
        with open(self._hidden / 'lock', 'a+b') as lock:
            try:
                if fcntl is not None:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise BatchError(
                    f'{self.path} is in use by another run; wait for its end or choose another '
                    'output folder.'
                ) from error
            except OSError:
                pass  # a file system without locks
            try:
                yield
            finally:
                shutil.rmtree(self.temporary, ignore_errors=True)

    def compare(
        self, tasks: Sequence[BatchTask], unreadable: Mapping[str, Exception]
    ) -> tuple[list[BatchTask], list[str]]:
        """Tasks of which no result holds, and how robot or options differ from those before.

        Parameters
        ----------
        tasks : sequence of BatchTask
            All of the run.
        unreadable : mapping of str to Exception
            Inputs that cannot be read.

        Returns
        -------
        open_tasks : list of BatchTask
        changes : list of str
            Empty if only inputs have changed.
        """
        open_tasks: list[BatchTask] = []
        reasons: Counter[str] = Counter()
        for task in tasks:
            record, wanted = self._read(task.output), self._record(task)
            path = self.path / task.output
            is_whole = path.is_file() and path.stat().st_size == record.get('bytes')
            if is_whole and record == {**wanted, 'bytes': record['bytes']}:
                continue
            open_tasks.append(task)
            if record:
                self._stale.append(task.output)
                changed = _changed(record['made_with'], wanted['made_with'])
                if changed or not is_whole:
                    reasons[changed or _NOT_WHOLE] += 1
        for reason, count in reasons.items():
            which = '1 result is' if count == 1 else f'{count} results are'
            self.remarks.append(f'{which} computed anew: {reason}.')
        self._stale += self._useless(tasks, unreadable)
        return open_tasks, [reason for reason in reasons if reason not in _NO_CHANGES]

    def _useless(
        self, tasks: Sequence[BatchTask], unreadable: Mapping[str, Exception]
    ) -> set[str]:
        """Outputs of inputs of this run that none of its tasks makes any more."""
        # Of an input that cannot be reached at the moment, nobody knows whether it has changed.
        inputs = {task.name for task in tasks}
        inputs |= {name for name, e in unreadable.items() if not isinstance(e, OSError)}
        wanted = {task.output for task in tasks}
        recorded = (
            path.relative_to(self._records) for path in self._records.rglob('*.json')
        )
        others = {path.as_posix()[: -len('.json')] for path in recorded} - wanted
        # Their files have no such parts any more, or may never have been recorded at all.
        useless = {
            item for item in others if self._read(item).get('name') in {None, *inputs}
        }
        if absent := len(others - useless):
            which = '1 result belongs' if absent == 1 else f'{absent} results belong'
            self.remarks.append(
                f'{which} to inputs that are not among those of this run; left as they are.'
            )
        for folder in {(self.path / task.output).parent for task in tasks if task.motions}:
            parts = {
                path.relative_to(self.path).as_posix() for path in folder.glob('part-*')
            }
            useless |= parts - wanted
        return useless

    def begin(self) -> None:
        """Remove what does not hold any more, and what runs before this one have left unfinished.

        With it disappears the folder that workers of such a run need to finish anything.
        """
        for output in self._stale:
            # In this order: what has no record is made again.
            record = self._records / f'{output}.json'
            for root, path in ((self._records, record), (self.path, self.path / output)):
                path.unlink(missing_ok=True)
                for folder in path.parents:
                    if folder == root or not folder.is_dir() or any(folder.iterdir()):
                        break
                    folder.rmdir()
        shutil.rmtree(self._hidden / 'runs', ignore_errors=True)
        self.temporary.mkdir(parents=True)
        self.errors.unlink(missing_ok=True)

    def add(self, task: BatchTask, result: TaskResult) -> None:
        """Record a result that has its final name.

        Parameters
        ----------
        task : BatchTask
        result : TaskResult
            With a result.

        Raises
        ------
        BatchError
            If the record cannot be written.
        """
        place, new = self._records / f'{task.output}.json', self.temporary / 'record'
        record = self._record(task, len(result.failures)) | {'bytes': result.output_bytes}
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            # Should its content not survive a power failure, its result is made again.
            new.write_text(json.dumps(record))
            os.replace(new, place)
        except OSError as error:
            raise BatchError(
                f'{task.output}: its record cannot be written to {self._records}: {error}'
            ) from error

    def add_errors(self, key: str, result: TaskResult) -> None:
        """Write errors down; the file of errors exists only if there are any."""
        if result.failures:
            with open(self.errors, 'a') as file:
                file.writelines(
                    json.dumps({'input': key, **f}) + '\n' for f in result.failures
                )

    def _record(self, task: BatchTask, failures: int = 0) -> dict[str, Any]:
        """Return what is recorded of a result, but for its size."""
        rows = [task.first_row, sum(length for _, length in task.motions)]
        its_input = repr((sorted(task.digest.items()), rows))
        made_with = {
            **self._made_with,
            'the input': its_input,
            'the version of the records': '4',
        }
        return {'name': task.name, 'failures': failures, 'made_with': made_with}

    def _read(self, output: str) -> dict[str, Any]:
        """Record of a result; empty if there is none, or none that a run has written."""
        try:
            record = json.loads((self._records / f'{output}.json').read_bytes())
            is_ours = isinstance(record['made_with'], dict) and 'name' in record
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            is_ours = False
        return record if is_ours else {}


def _changed(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Say what a result is made with now and was not before; empty if there is nothing."""
    changed = [
        name
        if name.startswith('the ')
        else f'{name} ({before.get(name)} before, {value} now)'
        for name, value in now.items()
        if before.get(name) != value
    ]
    return f'{", ".join(changed)} changed' if changed else ''


_Results = Generator[tuple[BatchTask, TaskResult], None, None]


def _results(
    job: BatchJob, tasks: Sequence[BatchTask], workers: int, scheduler: Any
) -> _Results:
    """Run tasks and yield what they come to, in any order and each exactly once.

    Parameters
    ----------
    job : BatchJob
    tasks : sequence of BatchTask
    workers : int
        Processes of this machine; up to one: this process does all.
    scheduler : str, distributed.Client or None
        Of a cluster that does the work instead.

    Yields
    ------
    task : BatchTask
    result : TaskResult

    Raises
    ------
    BatchError
        If the job cannot be sent, the library is missing, or the workers are lost.
    """
    if not tasks or (scheduler is None and workers <= 1):
        if tasks:
            job.run.model.warm_up(job.run.order)
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
    if scheduler is None and _HAS_FORKSERVER:
        # One process imports what all need; without, each worker takes a second or two to do so.
        multiprocessing.set_forkserver_preload(_PRELOADED)
        with _interruptions_held():
            pass  # It has begun, and imports while this one does.
    need = 'Worker processes need dask.distributed'
    library = optional_import_module('distributed', need, 'cluster', BatchError)
    with _client(library, scheduler, workers) as client:
        yield from _on_cluster(
            library, client, packed, tasks, 4 if scheduler is not None else 1
        )


def _on_cluster(
    library: Any, client: Any, packed: bytes, tasks: Sequence[BatchTask], ahead: int
) -> _Results:
    """Run tasks on Dask, so many at a time for each thread of the workers.

    Several let the scheduler of a cluster look ahead. On one machine they would only put tasks
    under suspicion that wait at a worker that dies.

    Parameters
    ----------
    library : module
        `distributed`.
    client : distributed.Client
    packed : bytes
        The pickled job.
    tasks : sequence of BatchTask
    ahead : int
        Tasks for each thread.

    Yields
    ------
    task : BatchTask
    result : TaskResult

    Raises
    ------
    BatchError
        If there is no worker for two minutes, or the connection is lost.
    """
    source, run = iter(tasks), uuid.uuid4().hex
    under_way: dict[Any, BatchTask] = {}
    try:
        while True:
            threads = sum(client.nthreads().values())  # workers come and go
            for task in islice(source, max(0, ahead * max(1, threads) - len(under_way))):
                key = f'hodyn-{run}-{task.key}'
                future = client.submit(execute_packed, packed, task, key=key, pure=False)
                under_way[future] = task
            if not under_way:
                return
            try:
                if not threads:
                    client.wait_for_workers(1, timeout=PATIENCE)
                    continue
                with client.as_current():
                    done = library.wait(list(under_way), 1.0, return_when='FIRST_COMPLETED')
            except (TimeoutError, library.TimeoutError) as error:
                if threads:
                    continue
                raise BatchError(
                    f'The Dask cluster has had no worker for {PATIENCE:.0f} s; start some. '
                    'Workers may have been killed because the memory does not suffice.'
                ) from error
            for future in done.done:
                # Whoever has no future of it any more lets the cluster forget it.
                yield under_way.pop(future), _result(library, future)
    except OSError as error:
        raise BatchError(
            f'The connection to the Dask cluster was lost ({error}); run again to go on.'
        ) from error
    finally:
        if under_way:
            client.cancel(list(under_way))


def _result(library: Any, future: Any) -> TaskResult:
    """What a task on Dask has come to; that its worker died is an error of the task alone."""
    try:
        result: TaskResult = future.result()
    except library.KilledWorker as error:
        return TaskResult().failed(
            BatchError(
                f'Worker processes died of this task ({error}). They may have run out of memory; '
                'try fewer workers.'
            )
        )
    except CancelledError as error:
        raise BatchError(
            'The Dask cluster has dropped tasks, perhaps because its scheduler was started anew; '
            'run again to go on.'
        ) from error
    except HodynError:
        raise
    except Exception as error:  # such as a package that workers do not have
        raise BatchError(
            f'The workers of the Dask cluster cannot do the tasks: {type(error).__name__}: {error}'
        ) from error
    return result


def _has_dask() -> bool:
    """Whether processes of this machine can be started by Dask."""
    return all(importlib.util.find_spec(name) for name in ('distributed', 'cryptography'))


@contextmanager
def _client(library: Any, scheduler: Any, workers: int) -> Iterator[Any]:
    """Client of a cluster: by its address, as it is given, or of processes of this machine."""
    if isinstance(scheduler, library.Client) and not scheduler.asynchronous:
        yield scheduler
        return
    if not (scheduler is None or isinstance(scheduler, str)):
        raise BatchError(
            f'The scheduler is {scheduler!r}, expected an address such as tcp://host:8786 or a '
            'synchronous distributed.Client.'
        )
    with ExitStack() as stack:
        held: AbstractContextManager[None] = nullcontext()
        if scheduler is None:
            scheduler = stack.enter_context(_local_cluster(library, workers))
            held = _interruptions_held()
        try:
            # One that is interrupted while it connects is not closed for a minute.
            with held:
                client = library.Client(scheduler, set_as_default=False, timeout=CONNECTING)
        except (OSError, ValueError) as error:
            raise BatchError(
                f'The Dask scheduler {scheduler!r} was not reached: {error}'
            ) from error
        try:
            yield client
        finally:
            # After an interruption there may be nobody left who answers.
            with suppress(TimeoutError, library.TimeoutError):
                client.close(CLOSING)


@contextmanager
def _local_cluster(library: Any, workers: int) -> Iterator[Any]:
    """Start processes of this machine, which end with this one, however it ends."""
    import dask

    need = 'Worker processes on one machine need cryptography'
    optional_import_module('cryptography', need, 'cluster', BatchError)
    settings = dict(_SETTINGS)
    if _HAS_FORKSERVER:
        settings['distributed.worker.multiprocessing-method'] = 'forkserver'
    with dask.config.set(settings):
        with _interruptions_held():
            cluster = _started(library, workers)
        with cluster:
            yield cluster


def _started(library: Any, workers: int) -> Any:
    """Cluster of processes of this machine."""
    try:
        # Encrypted, since whoever can send to a scheduler can have anything executed, and
        # other users of the machine can reach its ports.
        return library.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            host='127.0.0.1',
            # Without an address it would be a port that another run may have.
            dashboard_address='127.0.0.1:0',
            scheduler_kwargs={'dashboard': False},
            memory_limit=0,
            security=True,
            silence_logs=logging.CRITICAL,
        )
    except RuntimeError as error:
        raise BatchError(
            f'The worker processes cannot be started ({error}); the error stream may say '
            "why. A script that starts them must do so below  if __name__ == '__main__':  "
            'because they import it. With workers=1 this process does the work.'
        ) from error


@contextmanager
def _interruptions_held() -> Iterator[None]:
    """Hold back SIGINT in this thread, and for good in threads and processes that it starts.

    Ctrl-C reaches the workers as well. They leave it to this process, which ends them.
    """
    if not _HAS_FORKSERVER:
        yield
        return
    # Else the thread that starts the first process would start it too, and not hold back any more.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
