"""The efforts of many motions: all inputs of a data set, by all cores or a cluster, resumable."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.batch.errors import BatchError
from hodyn_ros.batch.executors import Outcomes, run_here, run_in_processes, run_on_dask
from hodyn_ros.batch.fingerprint import fingerprint_of
from hodyn_ros.batch.job import Job, Options, job_record
from hodyn_ros.batch.records import OutputFolder
from hodyn_ros.batch.run import BatchSummary, Plan, Progress, Run
from hodyn_ros.batch.tasks import (
    Input,
    Inputs,
    Task,
    find_inputs,
    make_tasks,
    refuse_same_outputs,
)
from hodyn_ros.io.files import SUFFIXES
from hodyn_ros.model.robot import RobotModel


def process_files(
    inputs: Inputs,
    robot: RobotModel | str | os.PathLike[str],
    output_folder: str | os.PathLike[str],
    *,
    actuators: Actuators | None = None,
    orders: int = 2,
    derivatives: str = 'auto',
    interpolation: str = 'spline',
    rate: float | None = None,
    estimator: Mapping[str, Any] | None = None,
    topic: str | None = None,
    joint_names: Sequence[str] | None = None,
    expressed_in: str | None = None,
    acting: str | None = None,
    motion_column: str | None = None,
    suffix: str = '.parquet',
    chunk: int = 10_000,
    part_rows: int = 100_000,
    workers: int | None = None,
    scheduler: Any = None,
    stop_on_error: bool = False,
    on_change: str = 'recompute',
    fingerprint: str = 'quick',
    progress: Callable[[Progress], object] | None = None,
) -> BatchSummary:
    """Compute efforts and their derivatives for many files.

    Every input gives one output of the same name, see `tasks.output_name`. A run that was ended,
    however abruptly, goes on where it was when it is called again: what is done is kept, as long
    as input, robot, actuators and options are the same. A file with its final name is complete.

    Parameters
    ----------
    inputs : path-like or sequence of path-like
        Folders, files, bags or patterns; see `find_inputs`.
    robot : RobotModel or path-like or str
        The robot, or what `RobotModel.from_urdf` takes.
    output_folder : path-like
        Made if needed. It also holds the folder `_hodyn` with records and errors.
    actuators : Actuators, optional
    orders : int
        Highest derivative of the efforts.
    derivatives, interpolation, rate, estimator
        See `hodyn_ros.io.to_motion`.
    topic, joint_names, expressed_in, acting
        See `hodyn_ros.io.read_motion`.
    motion_column : str, optional
        Column of motion ids, for Parquet files that hold many motions, each in consecutive rows.
        Their results are folders of Parquet files with the same column.
    suffix : str
        Format of the results: .parquet, .npz, .csv, .yaml, .mcap or .db3.
    chunk : int
        Samples that are read, computed and written together where the file gives all derivatives;
        otherwise a motion is read as a whole.
    part_rows : int
        Rows of a file with many motions that make one task.
    workers : int, optional
        Processes of this machine; by default one for each core that may be used. 0: this process.
    scheduler : str or distributed.Client, optional
        Of a Dask cluster that does the work instead; its workers must see inputs and output
        folder under the same paths.
    stop_on_error : bool
        Whether the first error of a file ends the run. By default errors are recorded, the other
        files are computed, and files with errors are tried again by the next run.
    on_change : {'recompute', 'refuse'}
        What happens if there are results of another robot, of other actuators or options.
    fingerprint : {'quick', 'content'}
        How a changed input is known; see `input_fingerprint`.
    progress : callable, optional
        Called with a `Progress` at the beginning and after every task.

    Returns
    -------
    BatchSummary

    Raises
    ------
    BatchError
        If inputs, options or the output folder cannot be used, the workers are lost, or with
        `stop_on_error` a file has an error.
    ModelError
        If the robot cannot be used.
    MotionError
        If derivatives, orders, interpolation, rate or estimator cannot be used.
    """
    began = time.monotonic()
    model = robot if isinstance(robot, RobotModel) else RobotModel.from_urdf(robot)
    options = Options(
        orders,
        derivatives,
        interpolation,
        rate,
        tuple(sorted((estimator or {}).items())),
        topic,
        None if joint_names is None else tuple(joint_names),
        expressed_in,
        acting,
        motion_column,
        suffix,
    )
    _check_options(options, chunk, part_rows, workers)
    for name, value, choices in (
        ('on_change', on_change, ('recompute', 'refuse')),
        ('fingerprint', fingerprint, ('quick', 'content')),
    ):
        if value not in choices:
            raise BatchError(f'{name} is {value!r}, expected one of {", ".join(choices)}.')
    _check_actuators(model, actuators)
    output = _output_folder(output_folder)
    special: list[Path] = []
    found = find_inputs(inputs, output, special)
    refuse_same_outputs(found, suffix)
    folder = OutputFolder(output)
    with folder.locked():
        tasks: list[Task] = []
        unreadable: list[tuple[Input, Exception]] = []
        for item in make_tasks(found, suffix, fingerprint, motion_column, part_rows):
            if isinstance(item, Task):
                tasks.append(item)
            else:
                unreadable.append(item)
        record = job_record(model, actuators, options)
        # Of one that cannot be reached at the moment, it is not known whether it has changed.
        useless = [entry.name for entry, error in unreadable if not isinstance(error, OSError)]
        plan = Plan(folder, record, tasks, useless)
        if on_change == 'refuse' and plan.job_changes:
            raise BatchError(
                f'{output} holds results that were made otherwise: {"; ".join(plan.job_changes)}. '
                "Choose another output folder, or have them computed anew: on_change='recompute'."
            )
        if special:
            others = f' and {len(special) - 1} more' if len(special) > 1 else ''
            plan.remarks.append(f'{special[0]}{others}: no regular file, left out.')
        plan.begin()
        run = Run(folder, record, plan, began, progress)
        job = Job(model, actuators, options, str(output), folder.temporary, chunk)
        for entry, error in unreadable:
            run.add_unreadable(entry.name, error)
            if stop_on_error:
                raise BatchError(f'{entry.name}: {error}')
        run.report('')
        outcomes = _outcomes(job, plan.open, workers, scheduler, folder.run)
        try:
            for task, outcome in outcomes:
                run.add(task, outcome)
                if outcome.failures and stop_on_error:
                    raise BatchError(f'{task.key}: {outcome.failures[0].message}')
        finally:
            outcomes.close()
        return run.summary()


def _outcomes(
    job: Job, tasks: list[Task], workers: int | None, scheduler: Any, run: str
) -> Outcomes:
    if not tasks or (scheduler is None and workers == 0):
        return run_here(job, tasks)
    if scheduler is not None:
        return run_on_dask(job.packed(), tasks, scheduler, run)
    return run_in_processes(job.packed(), tasks, min(workers or usable_cores(), len(tasks)))


def usable_cores() -> int:
    """Count the processor cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        return os.cpu_count() or 1


def _check_options(options: Options, chunk: int, part_rows: int, workers: int | None) -> None:
    for name, value, least in (
        ('orders', options.orders, 0),
        ('chunk', chunk, 1),
        ('part_rows', part_rows, 1),
        ('workers', 1 if workers is None else workers, 0),
    ):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise BatchError(f'{name} is {value!r}, expected a whole number from {least} on.')
    if options.suffix not in SUFFIXES:
        raise BatchError(
            f'suffix is {options.suffix!r}, expected one of {", ".join(SUFFIXES)}.'
        )
    if options.motion_column is not None and options.suffix != '.parquet':
        raise BatchError(
            f'suffix is {options.suffix!r}, but files with a column of motion ids give results '
            'with one, which are .parquet.'
        )
    options.how()  # refuses what no file could be computed with


def _check_actuators(model: RobotModel, actuators: Actuators | None) -> None:
    if actuators is None:
        return
    if not isinstance(actuators, Actuators):
        raise BatchError(
            f'The actuators are of type {type(actuators).__name__}, expected Actuators.'
        )
    if fingerprint_of(actuators.model) != fingerprint_of(model):
        raise BatchError(
            f'The actuators were made for {actuators.model!r}, which is not the robot {model!r} '
            'that is given; make them for this one.'
        )


def _output_folder(path: str | os.PathLike[str]) -> Path:
    output = Path(path).absolute()
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BatchError(f'The output folder {output} cannot be made: {error}') from error
    return output
