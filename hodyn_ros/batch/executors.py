"""Who works: this process, or Dask, on this machine or on a cluster.

Each runs tasks and yields what they come to, in any order and each task exactly once. Dask does a
task again, some times, whose worker has died on the way.
"""

from __future__ import annotations

import importlib.util
import logging
import signal
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from itertools import islice
from multiprocessing import resource_tracker
from types import ModuleType
from typing import Any

from hodyn_ros.batch.errors import BatchError
from hodyn_ros.batch.job import Job
from hodyn_ros.batch.tasks import Task
from hodyn_ros.batch.worker import Failure, Outcome, execute, execute_job
from hodyn_ros.errors import HodynError
from hodyn_ros.resources import optional_import_module

Outcomes = Generator[tuple[Task, Outcome], None, None]

# How long a cluster may take to have its first worker [s].
PATIENCE = 120.0
# How long to try to reach the scheduler [s].
CONNECTING = 30.0


def can_start_workers() -> bool:
    """Whether the packages are installed that worker processes on this machine need."""
    return all(importlib.util.find_spec(name) for name in ('distributed', 'cryptography'))


def run_here(job: Job, tasks: Iterable[Task]) -> Outcomes:
    """Run tasks one after the other in this process."""
    job.model.warm_up(job.options.orders)
    for task in tasks:
        yield task, execute_job(job, task)


def run_on_dask(
    packed: bytes, tasks: Iterable[Task], scheduler: Any, workers: int, run: str
) -> Outcomes:
    """Run tasks on a Dask cluster, whose workers see the same files under the same paths.

    Parameters
    ----------
    packed : bytes
        See `Job.packed`.
    tasks : iterable of Task
    scheduler : str, distributed.Client or None
        Address of the scheduler, as in ``tcp://host:8786``, or a client, which stays open. None:
        processes of this machine, which end with this one, however it ends.
    workers : int
        Number of these processes.
    run : str
        Name of the run, so that no other has tasks of the same names.

    Yields
    ------
    Task, Outcome

    Raises
    ------
    BatchError
        If the cluster cannot be reached, has no workers or is lost.
    """
    need = 'Worker processes need dask.distributed, and those of this machine cryptography'
    if scheduler is None:
        optional_import_module('cryptography', need, 'cluster', BatchError)
    library = optional_import_module('distributed', need, 'cluster', BatchError)
    with _client(library, scheduler, workers) as client:
        under_way: dict[str, tuple[Task, Any]] = {}
        # Several tasks for each thread let the scheduler of a cluster look ahead. Here it would
        # only put tasks under suspicion that wait at a worker that dies.
        ahead = 1 if scheduler is None else 4
        try:
            try:
                client.wait_for_workers(1, timeout=PATIENCE)
            except (TimeoutError, library.TimeoutError) as error:
                raise BatchError(
                    f'The Dask cluster has had no worker for {PATIENCE:.0f} s; start some.'
                ) from error
            source = enumerate(tasks)
            futures = library.as_completed(loop=client.loop)

            def refill() -> None:
                # Workers come and go.
                room = ahead * max(1, sum(client.nthreads().values())) - len(under_way)
                for number, task in islice(source, max(0, room)):
                    key = f'hodyn-{run}-{number}'
                    future = client.submit(execute, packed, task, key=key, pure=False)
                    under_way[key] = task, future
                    futures.add(future)

            refill()
            for future in futures:
                # Whoever has no future of it any more lets the cluster forget it.
                task, _ = under_way.pop(future.key)
                yield task, _outcome(library, future)
                refill()
        except OSError as error:
            raise BatchError(
                f'The connection to the Dask cluster was lost ({error}); run again to go on.'
            ) from error
        finally:
            if under_way:
                client.cancel([future for _, future in under_way.values()])


@contextmanager
def _client(library: ModuleType, scheduler: Any, workers: int) -> Iterator[Any]:
    if isinstance(scheduler, library.Client):
        if scheduler.asynchronous:
            raise BatchError(
                'The Dask client is asynchronous; give a synchronous one or an address.'
            )
        yield scheduler
    elif scheduler is None:
        with _interruptions_held():
            cluster = _local_cluster(library, workers)
        with cluster, library.Client(cluster, set_as_default=False) as client:
            yield client
    elif isinstance(scheduler, str):
        try:
            client = library.Client(scheduler, set_as_default=False, timeout=CONNECTING)
        except (OSError, ValueError) as error:
            raise BatchError(
                f'The Dask scheduler {scheduler!r} was not reached: {error}'
            ) from error
        with client:
            yield client
    else:
        raise BatchError(
            f'The scheduler is {scheduler!r}, expected an address such as tcp://host:8786 or a '
            'distributed.Client.'
        )


@contextmanager
def _interruptions_held() -> Iterator[None]:
    """Hold back SIGINT in this thread, and for good in threads and processes that it starts.

    Ctrl-C reaches the workers as well. They leave it to this process, which ends them.
    """
    if not hasattr(signal, 'pthread_sigmask'):  # not POSIX
        yield
        return
    # Else the thread that starts the first process would start it too, and not hold back any more.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _local_cluster(library: ModuleType, workers: int) -> Any:
    try:
        # Encrypted, since whoever can send to a scheduler can have anything executed, and other
        # users of the machine can reach its ports.
        return library.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            host='127.0.0.1',
            dashboard_address=None,
            memory_limit=0,
            security=True,
            silence_logs=logging.CRITICAL,
        )
    except RuntimeError as error:
        raise BatchError(
            f'The worker processes cannot be started ({error}); the error stream may say why. A '
            "script that starts them must do so below  if __name__ == '__main__':  because they "
            'import it. With workers=0 this process does the work.'
        ) from error


def _outcome(library: ModuleType, future: Any) -> Outcome:
    try:
        result: Outcome = future.result()
        return result
    except library.KilledWorker as error:
        message = (
            f'Worker processes died of this task ({error}). They may have run out of memory; try '
            'fewer workers.'
        )
        return Outcome(failures=(Failure(None, 'WorkerDied', message),))
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
