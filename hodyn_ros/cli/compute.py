"""`hodyn compute`: torques of a motion with their derivatives, of one file or of many."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from numpy.typing import NDArray

from hodyn_ros.cli.options import json_option, motion_options, robot_options
from hodyn_ros.cli.progress import progress, status
from hodyn_ros.cli.tables import echo_json, instant, number, table
from hodyn_ros.errors import RequestError

if TYPE_CHECKING:
    from hodyn_ros.cli.motions import GivenMotion
    from hodyn_ros.cli.robots import Choice
    from hodyn_ros.io import Results
    from hodyn_ros.model.robot import RobotModel

Array = NDArray[np.float64]

EFFORTS = ('effort', 'effort_dot', 'effort_ddot', 'effort_d3', 'effort_d4')
TITLES = ('torque', 'torque rate', 'second derivative', 'third derivative', 'fourth derivative')

MOTOR_TORQUES = tuple(name.replace('effort', 'torque') for name in EFFORTS)

# What a folder holds that is a bag.
_BAG = 'metadata.yaml'
_MOST_ERRORS = 5


@click.command()
@robot_options
@motion_options
@click.option(
    '-o', '--output', type=click.Path(path_type=Path), metavar='OUT',
    help='File to be written, or folder if MOTION is one. Without it nothing is written: the '
    'largest values are shown.',
)
@click.option(
    '--workers', type=click.IntRange(0), metavar='N',
    help='Of a folder: processes; by default one for each core.',
)
@click.option(
    '--scheduler', metavar='ADDRESS',
    help='Of a folder: Dask scheduler whose workers compute, such as tcp://host:8786.',
)
@click.option(
    '--resume', is_flag=True,
    help='Of a folder: go on with an output folder that exists already.',
)
@click.option(
    '--suffix', type=click.Choice(['.parquet', '.npz', '.csv']), default='.parquet',
    show_default=True, help='Of a folder: format of the results.',
)
@json_option
def command(
    choice: Any, given: Any, output: Path | None, workers: int | None, scheduler: str | None,
    resume: bool, suffix: str, as_json: bool,
) -> None:  # fmt: skip
    """Compute the joint torques of ROBOT along MOTION, with their time derivatives.

    MOTION and OUT are files of these kinds, by their suffix:

      .csv .npz .parquet    tables: time, <joint>.position, <joint>.velocity, ...
      .yaml                 a trajectory, as trajectory_msgs/JointTrajectory
      .mcap .db3, a folder  a bag of ROS 2

    Columns <link>.wrench.force.x and so on are wrenches on links.

    If MOTION is a folder of such files, or a pattern in quotes, all of them are computed, by all
    cores or on a Dask cluster. What is done is kept if the command is interrupted, and --resume
    goes on.

    For example
      hodyn compute panda motion.csv -o efforts.csv
      hodyn compute panda waypoints.yaml -o efforts.mcap --actuators panda_sea.yaml
      hodyn compute robot.urdf recording/ --topic /joint_states -o efforts.parquet
      hodyn compute panda recordings/ -o results/ --workers 8 --resume
      hodyn compute panda 'recordings/*.csv' -o results/
    """
    if is_data_set(given.motion):
        _process(choice, given, output, workers, scheduler, resume, suffix, as_json)
        return
    for name, value in (('--workers', workers), ('--scheduler', scheduler), ('--resume', resume)):
        if value:
            raise click.UsageError(f'{name} is for folders, but {given.motion} is not one.')
    _compute_file(choice, given, output, as_json)


def is_data_set(path: Path) -> bool:
    """Whether a path stands for many files: a folder that is not a bag, or a pattern."""
    if path.is_dir():
        return not (path / _BAG).is_file()
    return not path.exists() and any(sign in str(path) for sign in '*?[')


def _compute_file(
    choice: Choice, given: GivenMotion, output: Path | None, as_json: bool
) -> None:
    """Compute one file into another, or show its largest values alone."""
    from hodyn_ros.cli.motions import load_problem, show_remarks, stream_results
    from hodyn_ros.cli.outputs import check_is_other, remarks_on_output
    from hodyn_ros.io import ResultsWriter

    if output is not None:
        check_is_other(output, given.motion)
    problem = load_problem(choice, given)
    peaks = Peaks()
    with status() as show:
        parts = stream_results(problem, given)
        if output is None:
            for results in parts:
                peaks.add(results)
                show(f'{peaks.samples} samples computed')
        else:
            with ResultsWriter(output) as writer:
                for results in parts:
                    writer.write(results)
                    peaks.add(results)
                    show(f'{peaks.samples} samples computed')
            show_remarks(remarks_on_output(output))
    if as_json:
        echo_json(_data(problem.model, given, output, peaks))
        return
    show_remarks(tuple(peaks.remarks))
    click.echo(
        f'{given.motion}: {peaks.samples} samples from {instant(peaks.first)} s to '
        f'{instant(peaks.last)} s; largest values\n'
    )
    click.echo(_text(problem.model, peaks))
    if output is not None:
        click.echo(f'\nWritten: {output}')


class Peaks:
    """Largest magnitudes of results that come part by part."""

    def __init__(self) -> None:
        self.samples = 0
        self.first = self.last = 0.0
        self.motor_names: tuple[str, ...] = ()
        self.efforts: Array = np.zeros((0, 0))
        self.motor_torques: Array = np.zeros((0, 0))
        self.remarks: dict[str, None] = {}

    def add(self, results: Results) -> None:
        """Take the next part."""
        if not self.samples:
            self.first = float(results.times[0])
            self.motor_names = results.motor_names
            self.efforts = np.full(results.effort.shape[1:], np.nan)
            if results.motors is not None:
                self.motor_torques = np.full(results.motors.torque.shape[1:], np.nan)
        self.samples += len(results)
        self.last = float(results.times[-1])
        self.efforts = _larger(self.efforts, results.effort)
        if results.motors is not None:
            self.motor_torques = _larger(self.motor_torques, results.motors.torque)
        self.remarks.update(dict.fromkeys(results.remarks))


def _larger(peaks: Array, values: Array) -> Array:
    # What is known nowhere stays NaN.
    largest: Array = np.fmax.reduce(np.abs(values), axis=0, initial=np.nan)
    orders = min(len(peaks), len(largest))
    return np.fmax(peaks[:orders], largest[:orders])


def _data(
    model: RobotModel, given: GivenMotion, output: Path | None, peaks: Peaks
) -> dict[str, Any]:
    from hodyn_ros.cli.robot_summary import unit

    joints = [
        {
            'name': name,
            'units': {what: unit(what, kind) for what in EFFORTS[: len(peaks.efforts)]},
            **dict(zip(EFFORTS, peaks.efforts[:, j])),
        }
        for j, (name, kind) in enumerate(zip(model.joint_names, model.joint_types))
    ]
    motors = [
        {'name': name, **dict(zip(MOTOR_TORQUES, column))}
        for name, column in zip(peaks.motor_names, peaks.motor_torques.T)
    ]
    return {
        'robot': model.name,
        'motion': given.motion,
        'output': output,
        'samples': peaks.samples,
        'start': peaks.first,
        'end': peaks.last,
        'largest': joints,
        'largest_of_motors': motors,
        'remarks': list(peaks.remarks),
    }


def _text(model: RobotModel, peaks: Peaks) -> str:
    from hodyn_ros.cli.robot_summary import unit

    kinds = sorted(set(model.joint_types), key=lambda kind: kind == 'prismatic')
    head = ['joint']
    for title, quantity in zip(TITLES, EFFORTS[: len(peaks.efforts)]):
        units = dict.fromkeys(unit(quantity, kind) for kind in kinds)
        head.append(f'{title}\n[{", ".join(units)}]')
    rows = [
        (name, *(number(value) for value in peaks.efforts[:, j]))
        for j, name in enumerate(model.joint_names)
    ]
    text = table(head, rows)
    if peaks.motor_names:
        titles = [
            f'motor {title}\n[{unit(effort, "revolute")}]'
            for title, effort in zip(TITLES, EFFORTS[: len(peaks.motor_torques)])
        ]
        rows = [
            (name, *(number(value) for value in peaks.motor_torques[:, i]))
            for i, name in enumerate(peaks.motor_names)
        ]
        text += '\n\n' + table(('motor', *titles), rows)
    return text


def _process(
    choice: Choice, given: GivenMotion, output: Path | None, workers: int | None,
    scheduler: str | None, resume: bool, suffix: str, as_json: bool,
) -> None:  # fmt: skip
    """Compute many files into the folder `output`."""
    from hodyn_ros.batch import Progress, process_files
    from hodyn_ros.cli.motions import load_problem, show_remarks

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
