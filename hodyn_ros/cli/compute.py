"""`hodyn compute`: torques of a motion with their derivatives, of one file or of many."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from hodyn_ros.cli.output import echo_json, instant, number, progress, show_remarks, table
from hodyn_ros.cli.problem import Given, Problem, load_problem
from hodyn_ros.errors import RequestError
from hodyn_ros.files import Samples, write_results
from hodyn_ros.files.files import check_output
from hodyn_ros.files.quantities import EFFORT
from hodyn_ros.interrupts import raised
from hodyn_ros.plotting.labels import effort_label

Array = NDArray[np.float64]

TITLES = (
    'torque',
    'torque rate',
    'second derivative',
    'third derivative',
    'fourth derivative',
)

# What a folder holds that is a bag.
_BAG = 'metadata.yaml'
_MOST_ERRORS = 5


def compute(
    given: Given,
    output: Path | None,
    as_json: bool,
    **of_folder: Any,
) -> None:
    """Compute a file, or all of a folder or pattern.

    Parameters
    ----------
    given : Given
        Robot and motion, which may be a folder or a pattern.
    output : pathlib.Path or None
        File or folder of the results; None: the largest values are shown alone.
    as_json : bool
        Whether JSON is printed instead of tables.
    **of_folder
        For folders: 'workers', 'scheduler' and 'suffix' of `DatasetRun`, and 'resume', whether a
        folder that holds results is gone on with.

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
        _compute_files(given, output, as_json, **of_folder)
        return
    for name, value in of_folder.items():
        if value and name != 'suffix':
            raise click.UsageError(f'--{name} is for folders, but {path} is not one.')
    _compute_file(given, output, as_json)


def _compute_file(given: Given, output: Path | None, as_json: bool) -> None:
    """Compute one file into another, or show its largest values alone."""
    if output is not None and output.exists() and output.samefile(given.motion):
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
        show_remarks(
            (
                f'{output} holds positions to accelerations. Whoever reads it makes jerk and '
                'snap of his own, which may exceed limits that are kept here; tables and bags '
                'hold all.',
            )
        )
    if as_json:
        echo_json(_data(problem, output, results))
        return
    show_remarks(results.remarks)
    click.echo(
        f'{given.motion}: {len(results)} samples from {instant(results.times[0])} s to '
        f'{instant(results.times[-1])} s; largest values\n'
    )
    linear = sorted({kind == 'prismatic' for kind in problem.model.joint_types})
    click.echo(
        _table('joint', '', problem.model.joint_names, _largest(results.effort), linear)
    )
    if results.motor_torque is not None:
        torques = _largest(results.motor_torque)
        click.echo()
        click.echo(_table('motor', 'motor ', results.motor_names, torques, [False]))
    if output is not None:
        click.echo(f'\nWritten: {output}')


def _largest(values: Array) -> Array:
    """Largest magnitudes (K, n) of values (N, K, n); what is known nowhere stays NaN."""
    return np.asarray(np.fmax.reduce(np.abs(values), axis=0, initial=np.nan))


def _data(problem: Problem, output: Path | None, results: Samples) -> dict[str, Any]:
    """Everything for programs."""
    model, efforts = problem.model, _largest(results.effort)
    names = EFFORT[: len(efforts)]
    torques: Array = np.zeros((0, 0))
    if results.motor_torque is not None:
        torques = _largest(results.motor_torque)
    return {
        'robot': model.name,
        'motion': problem.given.motion,
        'output': output,
        'samples': len(results),
        'start': results.times[0],
        'end': results.times[-1],
        'largest': [
            {
                'name': name,
                'units': {
                    what: effort_label(order, kind == 'prismatic').plain_unit
                    for order, what in enumerate(names)
                },
                **dict(zip(names, efforts[:, j])),
            }
            for j, (name, kind) in enumerate(zip(model.joint_names, model.joint_types))
        ],
        'largest_of_motors': [
            {
                'name': name,
                **{
                    what.replace('effort', 'torque'): value
                    for what, value in zip(EFFORT, column)
                },
            }
            for name, column in zip(results.motor_names, torques.T)
        ],
        'remarks': list(results.remarks),
        'provenance': model.provenance.lines(),
    }


def _table(
    what: str, before: str, names: tuple[str, ...], values: Array, linear: list[bool]
) -> str:
    """Values (orders, names) with the units of joints of which some may be linear."""
    head = [what]
    for order, title in enumerate(TITLES[: len(values)]):
        units = ', '.join(effort_label(order, kind).plain_unit for kind in linear)
        head.append(f'{before}{title}\n[{units}]')
    return table(
        head, [(name, *map(number, column)) for name, column in zip(names, values.T)]
    )


def _compute_files(
    given: Given, output: Path | None, as_json: bool, resume: bool, **options: Any
) -> None:
    """Compute many files into the folder `output`."""
    from hodyn_ros import datasets

    if output is None:
        raise RequestError(
            f'{given.motion} stands for many files: name a folder for the results with -o FOLDER.'
        )
    if given.index is not None:
        raise RequestError(
            '--index chooses in one bag; it cannot be used for a folder of files.'
        )
    if output.is_dir() and any(output.iterdir()) and not resume:
        raise RequestError(
            f'{output} is not empty. Go on with it with --resume, or choose another folder.'
        )
    problem = load_problem(given)
    run = datasets.DatasetRun(
        problem.model,
        given.motion,
        output,
        actuators=problem.actuators,
        reading=given.reading,
        computing=given.computing,
        **options,
    )
    try:
        with raised(), progress('Computing') as update:
            summary = datasets.process_files(
                run, lambda state: update((state.done + state.failed) / max(state.total, 1))
            )
    except KeyboardInterrupt:
        show_remarks(('What is done is kept; the same command with --resume goes on.',))
        raise
    show_remarks(summary.remarks)
    if as_json:
        echo_json({**vars(summary), 'output': output})
    else:
        rate = summary.samples / max(summary.seconds, 1e-9)
        click.echo(
            f'{output}: {summary.computed} computed, {summary.kept} kept, {summary.failed} failed '
            f'of {summary.total}; {summary.samples} samples in {number(summary.seconds, 3)} s'
            + (f' ({number(rate, 3)} per second)' if summary.samples else '')
        )
    if summary.failed:
        lines = []
        if summary.errors is not None:
            with summary.errors.open(encoding='utf-8') as file:
                records = [json.loads(line) for line in islice(file, _MOST_ERRORS)]
            lines = [f'  {record["input"]}: {record["message"]}' for record in records]
            lines.append(f'All errors: {summary.errors}')
        raise RequestError(
            f'{summary.failed} of {summary.total} could not be computed; with --resume they are '
            'tried again.\n' + '\n'.join(lines)
        )
