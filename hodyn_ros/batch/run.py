"""The state of a run: which results of earlier runs hold, and what has come of the others."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hodyn_ros.batch.fingerprint import difference
from hodyn_ros.batch.job import job_difference
from hodyn_ros.batch.records import VERSION, OutputFolder, Record
from hodyn_ros.batch.tasks import Task
from hodyn_ros.batch.worker import Outcome

# On single inputs; a data set may have very many.
_MOST_REMARKS = 20


@dataclass(frozen=True)
class Progress:
    """How far a run is; tasks are files, or parts of files with many motions."""

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
    """What a run has come to."""

    total: int
    """Tasks: files, or parts of files with many motions."""
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


class Plan:
    """Which results of earlier runs hold, and what is to be done.

    Parameters
    ----------
    folder : OutputFolder
    job : dict
        See `job_record`.
    tasks : list of Task
    useless : iterable of str
        Names of inputs that cannot be shared out among tasks.

    Attributes
    ----------
    open : list of Task
        To be done.
    kept : int
        Number of tasks that are done.
    remarks : list of str
        What is done again and why.
    job_changes : list of str
        How the robot or the options differ from those of results that are there.
    """

    def __init__(
        self,
        folder: OutputFolder,
        job: Mapping[str, Any],
        tasks: list[Task],
        useless: Iterable[str] = (),
    ) -> None:
        self._folder = folder
        self.open: list[Task] = []
        self._stale: list[str] = []
        reasons: Counter[str] = Counter()
        changed: list[str] = []
        for task in tasks:
            record = folder.record(task.output)
            if record is not None:
                if record.job != job:
                    reasons[job_difference(record.job, job)] += 1
                elif reason := self._reason(task, record):
                    changed.append(f'{task.key} is computed anew: {reason}.')
                elif not record.failures:
                    continue
                self._stale.append(task.output)
            self.open.append(task)
        self.kept = len(tasks) - len(self.open)
        self.job_changes = list(reasons)
        self.remarks = changed[:_MOST_REMARKS]
        if len(changed) > _MOST_REMARKS:
            self.remarks.append(f'And {len(changed) - _MOST_REMARKS} more for such reasons.')
        self.remarks += [
            f'{"1 result is" if count == 1 else f"{count} results are"} computed anew: {reason}.'
            for reason, count in reasons.items()
        ]
        self._sort_out(tasks, useless)

    def _reason(self, task: Task, record: Record) -> str:
        """Why a result of the same job does not hold; empty if it does."""
        if changes := difference(record.input, task.input):
            return f'its input changed ({changes})'
        if record.rows != rows_of(task):
            return 'it holds other rows now'
        path = self._folder.path / task.output
        if not path.is_file():
            return 'its result is missing'
        if path.stat().st_size != record.output_bytes:
            return 'its result is not the one that was written'
        return ''

    def _sort_out(self, tasks: list[Task], useless: Iterable[str]) -> None:
        """Decide on results without a task in this run."""
        inputs = {task.name for task in tasks}.union(useless)
        wanted = {task.output for task in tasks}
        absent = 0
        for output in self._folder.outputs():
            if output not in wanted:
                record = self._folder.record(output)
                if record is None or record.name in inputs:  # its file has no such part any more
                    self._stale.append(output)
                else:
                    absent += 1
        if absent:
            which = '1 result belongs' if absent == 1 else f'{absent} results belong'
            self.remarks.append(
                f'{which} to inputs that are not among those of this run; left as they are.'
            )
        # A run that was killed may have finished parts that it could not record.
        root = self._folder.path
        for folder in {(root / task.output).parent for task in tasks if task.bounds}:
            parts = (path.relative_to(root).as_posix() for path in folder.glob('part-*'))
            self._stale += [part for part in parts if part not in wanted]

    def begin(self) -> None:
        """Remove results that do not hold any more."""
        for output in self._stale:
            self._folder.remove(output)
        self._folder.begin()


def rows_of(task: Task) -> list[int] | None:
    """First row of a task and the one behind its last, as they are recorded; None: all."""
    return [task.bounds[0], task.bounds[-1]] if task.bounds else None


class Run:
    """Counts and records what comes to its end."""

    def __init__(
        self,
        folder: OutputFolder,
        job: dict[str, Any],
        plan: Plan,
        began: float,
        progress: Callable[[Progress], object] | None,
    ) -> None:
        self._folder = folder
        self._job = job
        self._began = began
        self._progress = progress
        self._total = plan.kept + len(plan.open)
        self._kept = plan.kept
        self._computed = self._failed = self._samples = self._motions = self._read = 0
        self._memory: dict[str, int] = {}
        self._remarks = plan.remarks
        self._said: dict[str, tuple[str, int]] = {}

    def add_unreadable(self, name: str, error: Exception) -> None:
        """Count an input that could not even be shared out among tasks."""
        self._total += 1
        self._failed += 1
        self._folder.add_error(
            {'input': name, 'motion': None, 'error': type(error).__name__, 'message': str(error)}
        )

    def add(self, task: Task, outcome: Outcome) -> None:
        """Record what a task has come to."""
        for failure in outcome.failures:
            line = {
                'input': task.key,
                'motion': failure.motion,
                'error': failure.kind,
                'message': failure.message,
            }
            self._folder.add_error({**line, 'trace': failure.trace} if failure.trace else line)
        if outcome.failures:
            self._failed += 1
        else:
            self._computed += 1
        if outcome.output_bytes >= 0:
            self._folder.add(
                task.output,
                Record(
                    VERSION,
                    task.name,
                    rows_of(task),
                    task.input,
                    self._job,
                    outcome.output_bytes,
                    len(outcome.failures),
                ),
            )
        self._samples += outcome.samples
        self._motions += outcome.motions
        self._read += task.size
        if outcome.worker:
            before = self._memory.get(outcome.worker, 0)
            self._memory[outcome.worker] = max(before, outcome.peak_memory)
        for text in outcome.remarks:
            first, others = self._said.get(text, (task.key, -1))
            self._said[text] = first, others + 1
        self.report(task.key)

    def report(self, latest: str) -> None:
        """Call the function that shows progress."""
        if self._progress is not None:
            self._progress(
                Progress(
                    self._total,
                    self._kept + self._computed,
                    self._failed,
                    self._samples,
                    self._read,
                    time.monotonic() - self._began,
                    latest,
                )
            )

    def summary(self) -> BatchSummary:
        """Sum up what the run has come to."""
        said = (
            f'{first}{f" and {others} more" if others else ""}: {text}'
            for text, (first, others) in self._said.items()
        )
        return BatchSummary(
            total=self._total,
            computed=self._computed,
            kept=self._kept,
            failed=self._failed,
            samples=self._samples,
            motions=self._motions,
            bytes_read=self._read,
            seconds=time.monotonic() - self._began,
            peak_memory=dict(self._memory),
            remarks=(*self._remarks, *said),
            errors=self._folder.errors_path if self._failed else None,
        )
