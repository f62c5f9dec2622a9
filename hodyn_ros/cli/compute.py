"""`hodyn compute`: torques of a motion with their derivatives, of one file or of many."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hodyn_ros.cli.options import json_option, motion_options, robot_options


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
    from hodyn_ros.cli import batches, computation

    if batches.is_data_set(given.motion):
        batches.process(
            choice, given, output, workers, scheduler, resume, suffix, as_json
        )
        return
    for name, value in (('--workers', workers), ('--scheduler', scheduler), ('--resume', resume)):
        if value:
            raise click.UsageError(f'{name} is for folders, but {given.motion} is not one.')
    computation.compute_file(choice, given, output, as_json)
