"""`hodyn demo`: a motion of the Franka Panda from the model to files and a picture."""

from __future__ import annotations

from pathlib import Path

import click

from hodyn_ros.cli.options import debug_option


@click.command()
@click.option(
    '-o', '--output', type=click.Path(path_type=Path), default=Path('hodyn_demo'),
    show_default=True, metavar='FOLDER', help='Made if it does not exist.',
)
@debug_option
def command(output: Path) -> None:
    """Compute torques of the Franka Panda with their derivatives, and draw them.

    Needs no ROS. Writes into FOLDER

      motion.csv    positions to snap of eight seconds of motion, in its limits
      fast.csv      the same motion, too fast for some of them
      efforts.csv   torques and their first two derivatives along the first
      efforts.png   the same as a picture, if matplotlib is installed

    which the other commands read. The derivatives are compared with finite differences.
    """
    from hodyn_ros.cli.demonstration import demonstrate

    demonstrate(output)
