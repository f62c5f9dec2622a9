"""Who works: this process, processes of this machine, or a Dask cluster.

Each runs tasks and yields what they come to, in any order and each task exactly once, also when a
worker dies on the way: its task is done again by another.
"""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    CancelledError,
    Future,
    ProcessPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from types import ModuleType
from typing import Any

from hodyn_ros.batch.errors import BatchError
from hodyn_ros.batch.job import Job
from hodyn_ros.batch.spawning import Spawning, begin
from hodyn_ros.batch.tasks import Task
from hodyn_ros.batch.worker import Failure, Outcome, execute, execute_job
from hodyn_ros.errors import HodynError
from hodyn_ros.resources import optional_import_module

Outcomes = Generator[tuple[Task, Outcome], None, None]

# A task that ends its process so often while no other is under way is taken for the cause.
MOST_DEATHS = 2
# So often in succession may a process be killed before any of its pool has begun to work.
MOST_EARLY_DEATHS = 5
# How long a cluster may take to have its first worker [s].
PATIENCE = 120.0
# How long to try to reach the scheduler [s].
CONNECTING = 30.0


def run_here(job: Job, tasks: Iterable[Task]) -> Outcomes:
    """Run tasks one after the other in this process."""
    job.model.warm_up(job.options.orders)
    for task in tasks:
        yield task, execute_job(job, task)


def run_in_processes(packed: bytes, tasks: Iterable[Task], workers: int) -> Outcomes:
    """Run tasks in processes of this machine.

    They end with this process, however it ends. If one of them dies, all tasks that were under
    way are suspects, because nobody knows which process had which: they are done again, one at a
    time.

    Parameters
    ----------
    packed : bytes
        See `Job.packed`.
    tasks : iterable of Task
    workers : int

    Yields
    ------
    Task, Outcome

    Raises
    ------
    BatchError
        If no worker can work.
    """
    source: Iterator[Task] = iter(tasks)
    suspects: deque[Task] = deque()
    deaths: Counter[str] = Counter()
    early_deaths = 0
    pool = _Pool(packed, workers)
    try:
        while True:
            alone = bool(suspects)
            if alone:
                pool.submit(suspects.popleft())
            else:
                # Twice as many as workers, so that none waits for the next.
                for task in islice(source, 2 * workers - len(pool.under_way)):
                    pool.submit(task)
            if not pool.under_way:
                pool.is_idle = True
                return
            done, lost, error = pool.finished()
            yield from done
            if error is not None:
                raise error
            if not lost:
                continue
            early_deaths = early_deaths + 1 if pool.never_began() else 0
            pool.end()
            if early_deaths:
                if early_deaths == MOST_EARLY_DEATHS:
                    raise BatchError(
                        f'{early_deaths} times in succession worker processes were killed before '
                        'they did anything. The memory may not suffice; try fewer workers.'
                    )
                # It was none of their doing.
                if alone:
                    suspects.extendleft(lost)
                else:
                    source = chain(lost, source)
                lost = []
            for task in lost:
                deaths[task.key] += alone
                if deaths[task.key] < MOST_DEATHS:
                    suspects.append(task)
                else:
                    yield task, _deadly(deaths[task.key])
            pool = _Pool(packed, workers)
    finally:
        pool.end()


class _Pool:
    """A pool of processes and the tasks that are under way in it."""

    def __init__(self, packed: bytes, workers: int) -> None:
        self._context = Spawning()
        self._guard, self._hold = self._context.Pipe(duplex=False)
        self._packed = packed
        self.under_way: dict[Future[Outcome], Task] = {}
        self.is_idle = False
        self._executor = ProcessPoolExecutor(
            workers, mp_context=self._context, initializer=begin, initargs=(self._guard,)
        )
        try:
            self._first = self._executor.submit(os.getpid)
        except BaseException:  # such as an interruption
            self.end()
            raise

    def submit(self, task: Task) -> None:
        try:
            self.under_way[self._executor.submit(execute, self._packed, task)] = task
        except BrokenProcessPool as error:
            lost: Future[Outcome] = Future()
            lost.set_exception(error)
            self.under_way[lost] = task

    def finished(self) -> tuple[list[tuple[Task, Outcome]], list[Task], Exception | None]:
        """Wait until something happens.

        Returns
        -------
        done : list of (Task, Outcome)
        lost : list of Task
            Those whose process is gone.
        error : Exception or None
            What no task of the run can be done for.
        """
        done: list[tuple[Task, Outcome]] = []
        lost: list[Task] = []
        error = self._sort_out(wait(self.under_way, return_when=FIRST_COMPLETED).done, done, lost)
        if lost:
            # The others of a broken pool are about to fail as well, or have an outcome by now.
            error = self._sort_out(wait(self.under_way).done, done, lost) or error
        return done, lost, error

    def never_began(self) -> bool:
        """Whether a pool that has lost tasks had not even one worker that was ready for them.

        Raises
        ------
        BatchError
            If its workers ended by themselves, and would do so again.
        """
        if not isinstance(self._first.exception(), BrokenProcessPool):
            return False
        # It knows how all of them have ended when the others are ended, too, by a signal.
        self._executor.shutdown(wait=True, cancel_futures=True)
        if any(code >= 0 for code in self._context.exit_codes()):
            raise BatchError(
                'The worker processes end before they do anything; the error stream may say why. '
                "A script that starts them must do so below  if __name__ == '__main__':  because "
                'they import it.'
            )
        return True

    def _sort_out(
        self,
        futures: Iterable[Future[Outcome]],
        done: list[tuple[Task, Outcome]],
        lost: list[Task],
    ) -> Exception | None:
        error = None
        for future in futures:
            task = self.under_way.pop(future)
            try:
                done.append((task, future.result()))
            except BrokenProcessPool:
                lost.append(task)
            except Exception as raised:
                error = raised
        return error

    def end(self) -> None:
        """End all processes at once, also in the middle of a task."""
        # An interruption may come before a task is known to be under way, and leave the executor
        # in a state in which it waits for ever for workers that have nothing to do.
        if not self.is_idle:
            self._hold.close()
        self._executor.shutdown(wait=True, cancel_futures=True)
        self._hold.close()
        self._guard.close()


def _deadly(times: int, what: str = '') -> Outcome:
    return Outcome(
        failures=(
            Failure(
                None,
                'WorkerDied',
                f'{times} worker processes died of this task{what}. They may have run out of '
                'memory; try fewer workers.',
            ),
        )
    )


def dask() -> ModuleType:
    """Return the module of Dask that reaches a cluster.

    Raises
    ------
    BatchError
        If it is not installed.
    """
    need = 'A cluster needs dask.distributed'
    return optional_import_module('distributed', need, 'cluster', BatchError)


def run_on_dask(packed: bytes, tasks: Iterable[Task], scheduler: Any, run: str) -> Outcomes:
    """Run tasks on a Dask cluster, whose workers see the same files under the same paths.

    Parameters
    ----------
    packed : bytes
        See `Job.packed`.
    tasks : iterable of Task
    scheduler : str or distributed.Client
        Address of the scheduler, as in ``tcp://host:8786``, or a client, which stays open.
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
    library = dask()
    own = not isinstance(scheduler, library.Client)
    client = _client(library, scheduler) if own else scheduler
    if client.asynchronous:
        raise BatchError('The Dask client is asynchronous; give a synchronous one or an address.')
    under_way: dict[str, tuple[Task, Any]] = {}
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
            # Workers come and go. Several tasks for each thread let the scheduler look ahead.
            room = 4 * max(1, sum(client.nthreads().values())) - len(under_way)
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
        if own:
            client.close()


def _client(library: ModuleType, address: Any) -> Any:
    if not isinstance(address, str):
        raise BatchError(
            f'The scheduler is {address!r}, expected an address such as tcp://host:8786 or a '
            'distributed.Client.'
        )
    try:
        return library.Client(address, set_as_default=False, timeout=CONNECTING)
    except (OSError, ValueError) as error:
        raise BatchError(f'The Dask scheduler {address!r} was not reached: {error}') from error


def _outcome(library: ModuleType, future: Any) -> Outcome:
    try:
        result: Outcome = future.result()
        return result
    except library.KilledWorker as error:
        return _deadly(MOST_DEATHS, f' ({error})')
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
