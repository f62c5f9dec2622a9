"""`hodyn compute`: torques of a motion with their derivatives, of one file or of many."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hodyn_ros.cli.output import progress, show, show_remarks, span
from hodyn_ros.cli.problem import ORDER, Given, Problem, load_problem
from hodyn_ros.display import Answer, Table
from hodyn_ros.errors import RequestError
from hodyn_ros.files import Samples, write_results
from hodyn_ros.files.files import check_output
from hodyn_ros.interrupts import raised
from hodyn_ros.names import number

if TYPE_CHECKING:
    from hodyn_ros.datasets import BatchSummary

# What a folder holds that is a bag.
_BAG = 'metadata.yaml'
_MOST_ERRORS = 5


def compute(
    given: Given, workers: str | None, resume: bool, output: Path | None, as_json: bool
) -> None:
    """Compute a file, or all of a folder or pattern; see `hodyn compute --help`.

    Parameters
    ----------
    given : Given
    workers : str or None
        Number of processes, or address of a Dask scheduler.
    resume : bool
    output : pathlib.Path or None
    as_json : bool

    Raises
    ------
    click.UsageError
        If an option for folders is given for a file.
    HodynError
        If something given cannot be used, or files of a folder failed.
    """
    path = given.motion
    is_pattern = not path.exists() and any(sign in str(path) for sign in '*?[')
    if is_pattern or (path.is_dir() and not (path / _BAG).is_file()):
        _compute_files(given, workers, resume, output, as_json)
        return
    if workers is not None or resume:
        raise click.UsageError(
            f'--workers and --resume are for folders, but {path} is none.'
        )
    if output is not None and output.exists() and output.samefile(path):
        raise RequestError(
            f'{output} is the motion itself; choose another name for the results.'
        )
    if output is not None:
        check_output(output)  # before the long work
    problem = load_problem(given)
    with progress('Computing'):
        results = problem.results()
        if output is not None:
            write_results(output, results)
    if output is not None and output.suffix in ('.yaml', '.yml'):
        remark = (
            f'{output} holds positions to accelerations. Whoever reads it makes jerk and snap of '
            'his own, which may exceed limits that are kept here; tables and bags hold all.'
        )
        show_remarks((remark,))
    problem.show(_answer(problem, results, output), as_json)


def _answer(problem: Problem, results: Samples, output: Path | None) -> Answer:
    """Largest torques of joints and motors along a motion."""
    motion = problem.given.motion
    has_motors = results.motor_torque is not None
    joints, motors = (
        results.largest(),
        results.largest('motor_torque') if has_motors else '',
    )
    parts: list[Table | str] = [
        f'{motion}: {span(results)}; largest values',
        joints,
        motors,
        '' if output is None else f'Written: {output}',
    ]
    data = {
        'motion': motion,
        'output': output,
        'samples': len(results),
        'start': results.times[0],
        'end': results.times[-1],
        'largest': joints,
        'largest_of_motors': motors or [],
        'remarks': results.remarks,
    }
    return Answer(parts, data)


def _compute_files(
    given: Given, workers: str | None, resume: bool, output: Path | None, as_json: bool
) -> None:
    """Compute many files into the folder `output`."""
    from hodyn_ros import datasets

    if output is None:
        raise RequestError(
            f'{given.motion} stands for many files: name a folder for the results with -o FOLDER.'
        )
    folder, suffix = output, '.parquet'
    if output.name.startswith('*.'):
        folder, suffix = output.parent, output.suffix
    topic, index = given.trajectory
    if index is not None:
        raise RequestError(
            f'--topic {given.topic} chooses one trajectory; it cannot be used for a folder of '
            'files.'
        )
    if folder.is_dir() and any(folder.iterdir()) and not resume:
        raise RequestError(
            f'{folder} is not empty. Go on with it with --resume, or choose another folder.'
        )
    problem = load_problem(given)
    processes = int(workers) if workers and workers.isdecimal() else None
    run = datasets.DatasetRun(
        problem.model,
        given.motion,
        folder,
        actuators=problem.actuators,
        reading={'topic': topic},
        computing={
            'order': ORDER,
            'derivatives': given.derivatives,
            'rate': given.rate,
            'interpolation': given.interpolation,
        },
        suffix=suffix,
        workers=processes,
        scheduler=workers if processes is None else None,
    )
    try:
        with raised(), progress('Computing') as update:
            summary = datasets.process_files(
                run, lambda state: update((state.done + state.failed) / max(state.total, 1))
            )
    except KeyboardInterrupt:
        show_remarks(('What is done is kept; the same command with --resume goes on.',))
        raise
    rate = number(summary.samples / max(summary.seconds, 1e-9), 3)
    text = (
        f'{folder}: {summary.computed} computed, {summary.kept} kept, {summary.failed} failed '
        f'of {summary.total}; {summary.samples} samples in {number(summary.seconds, 3)} s'
    ) + f' ({rate} per second)' * bool(summary.samples)
    show(Answer([text], {**vars(summary), 'output': folder}), as_json)
    if summary.failed:
        raise RequestError(_failures(summary))


def _failures(summary: BatchSummary) -> str:
    """How many files failed, and the first of them with their errors."""
    lines = [
        f'{summary.failed} of {summary.total} could not be computed; with --resume they are '
        'tried again.'
    ]
    if summary.errors is not None:
        with summary.errors.open(encoding='utf-8') as file:
            records = [json.loads(line) for line in islice(file, _MOST_ERRORS)]
        lines += [f'  {record["input"]}: {record["message"]}' for record in records]
        lines.append(f'All errors: {summary.errors}')
    return '\n'.join(lines)
