"""The efforts of many motions: all inputs of a data set, by all cores or a cluster, resumable.

A line of ``_hodyn/done.jsonl`` in the output folder says of a result what it was made from. It is
written after the result has got its name: a run that is killed leaves results without lines at
most, which are made again.
"""

from __future__ import annotations

import json
import os
import shutil
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hodyn_ros.datasets.dataset import DatasetRun
from hodyn_ros.datasets.inputs import find_inputs, input_state
from hodyn_ros.datasets.workers import Job, MotionTask, Outcome, outcomes
from hodyn_ros.errors import BatchError

try:
    import fcntl
except ImportError:  # only POSIX has it; elsewhere, two runs at once are not noticed
    fcntl = None  # type: ignore[assignment]

_HIDDEN = '_hodyn'  # Readers of data sets leave out what begins with an underscore.


@dataclass(frozen=True)
class Progress:
    """How far a run is.

    Attributes
    ----------
    total : int
        Files of this run.
    done : int
        Files with a result, those of earlier runs included.
    failed : int
        Files with an error.
    samples : int
        Computed in this run.
    seconds : float
        Since the run began [s].
    latest : str
        The file that has just come to its end; empty at the beginning.

    Examples
    --------
    >>> from hodyn_ros.datasets import DatasetRun, process_files
    >>> from hodyn_ros.files import Samples, write_results
    >>> samples = Samples(('shoulder', 'elbow'), [0.0, 0.1], [[[0.1, 0.2]] * 3] * 2)
    >>> write_results('motion.npz', samples)
    >>> run = DatasetRun('two_link', 'motion.npz', 'efforts', suffix='.npz', workers=0)
    >>> _ = process_files(run, lambda progress: print(f'{progress.done} of {progress.total}'))
    0 of 1
    1 of 1
    """

    total: int
    done: int
    failed: int
    samples: int
    seconds: float
    latest: str


@dataclass(frozen=True)
class BatchSummary:
    """Numbers of files of a run, and what there is to say of them.

    Attributes
    ----------
    total, computed, kept, failed : int
        All files, those that were computed in this run, those whose results of an earlier run
        hold, and those with an error.
    samples : int
        Computed in this run.
    seconds : float
        Duration of the run [s].
    remarks : tuple of str
        What was computed anew and why, and remarks on results.
    errors : pathlib.Path or None
        File with one line of JSON for each error; None: there were none.

    Examples
    --------
    >>> from hodyn_ros.datasets import DatasetRun, process_files
    >>> from hodyn_ros.files import Samples, write_results
    >>> samples = Samples(('shoulder', 'elbow'), [0.0, 0.1], [[[0.1, 0.2]] * 3] * 2)
    >>> write_results('motion.npz', samples)
    >>> run = DatasetRun('two_link', 'motion.npz', 'efforts', suffix='.npz', workers=0)
    >>> summary = process_files(run)
    >>> summary.computed, summary.failed, summary.samples
    (1, 0, 2)
    """

    total: int
    computed: int
    kept: int
    failed: int
    samples: int
    seconds: float
    remarks: tuple[str, ...]
    errors: Path | None


def process_files(
    run: DatasetRun, progress: Callable[[Progress], object] | None = None
) -> BatchSummary:
    """Compute efforts and their derivatives for many files.

    Every input gives one result of the same name. A run that was ended, however abruptly, goes on
    where it was when it is called again: results are kept as long as input, robot, actuators and
    options are the same. A file with its final name is complete.

    Parameters
    ----------
    run : DatasetRun
        What is computed, how and where to.
    progress : callable, optional
        Called with a `Progress` at the beginning and after every file.

    Returns
    -------
    BatchSummary

    Raises
    ------
    BatchError
        If inputs or the output folder cannot be used, or the workers are lost.

    Examples
    --------
    The second run finds the results of the first one:

    >>> from hodyn_ros.datasets import DatasetRun, process_files
    >>> from hodyn_ros.files import Samples, write_results
    >>> samples = Samples(('shoulder', 'elbow'), [0.0, 0.1], [[[0.1, 0.2]] * 3] * 2)
    >>> write_results('motion.npz', samples)
    >>> run = DatasetRun('two_link', 'motion.npz', 'efforts', suffix='.npz', workers=0)
    >>> for summary in (process_files(run), process_files(run)):
    ...     print(summary.computed, summary.kept)
    1 0
    0 1
    """
    began, output = time.monotonic(), run.output_folder
    try:
        (output / _HIDDEN).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BatchError(f'The output folder {output} cannot be made: {error}') from error
    found = find_inputs(run.inputs, output, run.suffix)
    with _locked(output):
        records = _Records(output, run.made_with())
        tasks = records.begin(
            [MotionTask(motion, input_state(motion.path)) for motion in found]
        )
        counts = Counter(kept=len(found) - len(tasks), computed=0, failed=0, samples=0)
        said: dict[str, list[str]] = {}

        def tell(latest: str) -> None:
            if progress is not None:
                done = counts['kept'] + counts['computed']
                seconds = time.monotonic() - began
                state = len(found), done, counts['failed'], counts['samples']
                progress(Progress(*state, seconds, latest))

        tell('')
        job = Job(replace(run, inputs=(), scheduler=None), records.temporary)
        workers = min(run.cores(), len(tasks))
        with closing(outcomes(job, tasks, workers, run.scheduler)) as results:
            for task, outcome in results:
                records.add(task, outcome)
                counts['computed' if outcome.error is None else 'failed'] += 1
                counts['samples'] += outcome.samples
                for text in outcome.remarks:
                    said.setdefault(text, []).append(task.motion.name)
                tell(task.motion.name)
    remarks = [
        f'{names[0]}{f" and {len(names) - 1} more" if len(names) > 1 else ""}: {text}'
        for text, names in said.items()
    ]
    return BatchSummary(
        total=len(found),
        **counts,
        seconds=time.monotonic() - began,
        remarks=(*records.remarks, *remarks),
        errors=records.errors if counts['failed'] else None,
    )


@contextmanager
def _locked(output: Path) -> Iterator[None]:
    """Keep other runs from using a folder, also when this process is killed at once."""
    with open(output / _HIDDEN / 'lock', 'a+b') as lock:
        try:
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BatchError(
                f'{output} is in use by another run; wait for its end or choose another output '
                'folder.'
            ) from error
        except OSError:
            pass  # a file system without locks
        try:
            yield
        finally:
            shutil.rmtree(output / _HIDDEN / 'runs', ignore_errors=True)


class _Records:
    """Results of earlier runs and of this one, and what each of them was made from.

    Parameters
    ----------
    output : pathlib.Path
        Folder of the results.
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

    def __init__(self, output: Path, made_with: dict[str, str]) -> None:
        self._output, self._made_with = output, made_with
        hidden = output / _HIDDEN
        self._path, self.errors = hidden / 'done.jsonl', hidden / 'errors.jsonl'
        self.temporary = hidden / 'runs' / uuid.uuid4().hex
        self.remarks: list[str] = []

    def begin(self, tasks: list[MotionTask]) -> list[MotionTask]:
        """Tasks of which no result holds; what earlier runs have left of them is removed."""
        records, open_tasks = self._read(), list[MotionTask]()
        reasons: Counter[str] = Counter()
        for task in tasks:
            path, record = self._result(task), records.get(task.motion.output)
            size = path.stat().st_size if path.is_file() else -1
            if record and record == self._record(task, size):
                continue
            open_tasks.append(task)
            if record:
                del records[task.motion.output]
                reasons[_changed(record, self._record(task, size))] += 1
        for reason, count in reasons.items():
            which = '1 result is' if count == 1 else f'{count} results are'
            self.remarks.append(f'{which} computed anew: {reason}.')
        # With the folder disappears what workers of a run before this one need to finish anything.
        shutil.rmtree(self.temporary.parent, ignore_errors=True)
        self.temporary.mkdir(parents=True)
        self.errors.unlink(missing_ok=True)
        # In this order: a result without a record is made again.
        new = self.temporary / self._path.name
        new.write_text(''.join(json.dumps(record) + '\n' for record in records.values()))
        os.replace(new, self._path)
        for task in open_tasks:
            if task.state:  # else nobody knows at the moment whether the input has changed
                self._result(task).unlink(missing_ok=True)
        return open_tasks

    def add(self, task: MotionTask, outcome: Outcome) -> None:
        """Record a result that has its final name, or the error in its place."""
        path, record = self._path, self._record(task, outcome.size)
        if outcome.error is not None:
            path, record = self.errors, {'input': task.motion.name, **outcome.error}
        try:
            with open(path, 'a') as file:
                file.write(json.dumps(record) + '\n')
        except OSError as error:
            raise BatchError(
                f'{task.motion.output}: {path} cannot be written: {error}'
            ) from error

    def _result(self, task: MotionTask) -> Path:
        return self._output / task.motion.output

    def _record(self, task: MotionTask, size: int) -> dict[str, Any]:
        made_with = {**self._made_with, 'the input': repr(task.state)}
        return {'output': task.motion.output, 'bytes': size, 'made_with': made_with}

    def _read(self) -> dict[str, dict[str, Any]]:
        """Records by their outputs; a line that no run has written whole counts for nothing."""
        records: dict[str, dict[str, Any]] = {}
        for line in self._path.read_bytes().splitlines() if self._path.exists() else ():
            with suppress(ValueError, TypeError, KeyError, RecursionError):
                record = json.loads(line)
                records[str(record['output'])] = {
                    **record,
                    'made_with': {**record['made_with']},
                }
        return records


def _changed(record: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """How a result differs from the one that is wanted."""
    before, now = record['made_with'], wanted['made_with']
    changed = [
        name
        if name.startswith('the ')
        else f'{name} ({before.get(name, "default")} before, {now.get(name, "default")} now)'
        for name in {**before, **now}
        if before.get(name) != now.get(name)
    ]
    return f'{", ".join(changed or ["its file"])} changed'
