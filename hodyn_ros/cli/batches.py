"""Many motions: a folder of files is computed by all cores, or on a Dask cluster."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

import click

from hodyn_ros.cli.motions import GivenMotion, load_problem, show_remarks
from hodyn_ros.cli.progress import progress
from hodyn_ros.cli.robots import Choice
from hodyn_ros.cli.tables import echo_json, number
from hodyn_ros.errors import RequestError

# What a folder holds that is a bag.
_BAG = 'metadata.yaml'
_MOST_ERRORS = 5


def is_data_set(path: Path) -> bool:
    """Whether a path stands for many files: a folder that is not a bag, or a pattern."""
    if path.is_dir():
        return not (path / _BAG).is_file()
    return not path.exists() and any(sign in str(path) for sign in '*?[')


def process(
    choice: Choice,
    given: GivenMotion,
    output: Path | None,
    workers: int | None,
    scheduler: str | None,
    resume: bool,
    suffix: str,
    as_json: bool,
) -> None:
    """Compute all of them.

    Parameters
    ----------
    choice : Choice
    given : GivenMotion
        Its motion is the folder or pattern.
    output : pathlib.Path
        Folder for the results.
    workers : int, optional
        Processes; None: one for each core.
    scheduler : str, optional
        Address of a Dask scheduler.
    resume : bool
        Whether the output folder may hold results already, which are kept.
    suffix : str
        Format of the results.
    as_json : bool
        Whether the summary is shown for programs.

    Raises
    ------
    RequestError
        If the output folder is missing, or holds something and `resume` is not given; or if some
        of the files cannot be computed.
    """
    from hodyn_ros.batch import Progress, process_files

    if output is None:
        raise RequestError(
            f'{given.motion} stands for many files: name a folder for the results with -o FOLDER.'
        )
    if given.index is not None:
        raise RequestError('--index chooses in one bag; it cannot be used for a folder of files.')
    if output.is_dir() and any(output.iterdir()) and not resume:
        raise RequestError(
            f'{output} is not empty. Go on with it with --resume, or choose another folder.'
        )
    problem = load_problem(choice, given)
    try:
        with progress('Computing') as update:

            def show(state: Progress) -> None:
                update((state.done + state.failed) / max(state.total, 1))

            summary = process_files(
                given.motion,
                problem.model,
                output,
                actuators=problem.drives.actuators if problem.drives else None,
                topic=given.topic,
                expressed_in=given.expressed_in,
                acting=given.acting,
                suffix=suffix,
                workers=workers,
                scheduler=scheduler,
                progress=show,
                **given.computing,
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
        count = f'{summary.failed} of {summary.total}'
        raise RequestError(
            f'{count} could not be computed; with --resume they are tried again.\n'
            + '\n'.join(_first_errors(summary.errors))
        )


def _first_errors(path: Path | None) -> list[str]:
    """Say what is wrong with some of the files, and where all of it is."""
    if path is None:
        return []
    with path.open(encoding='utf-8') as file:
        records = [json.loads(line) for line in islice(file, _MOST_ERRORS)]
    lines = [f'  {record["input"]}: {record["message"]}' for record in records]
    return [*lines, f'All errors: {path}']
