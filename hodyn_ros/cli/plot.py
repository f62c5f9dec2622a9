"""`hodyn plot`: pictures of a motion and its torques."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hodyn_ros.cli.options import limits_option, motion_options, robot_options

KINDS = ('efforts', 'motion', 'portraits', 'motors', 'energy')


@click.command()
@robot_options
@motion_options
@limits_option
@click.option(
    '--kind', type=click.Choice(KINDS), default='efforts', show_default=True,
    help='Torques and their derivatives; positions and theirs; torque over torque rate; motors; '
    'kinetic and potential energy.',
)
@click.option(
    '--joint', 'joints', multiple=True,
    help='Joint to draw; may be repeated; by default all, or the 12 nearest to their limits.',
)
@click.option(
    '-o', '--output', type=click.Path(path_type=Path), metavar='FILE',
    help='.png, .pdf or .svg; by default <motion>_<kind>.png.',
)
@click.option(
    '--dpi', type=click.IntRange(10, 2000), default=120, show_default=True,
    help='Pixels per inch of a .png.',
)
def command(
    choice: Any, given: Any, limits: str | None, kind: str, joints: tuple[str, ...],
    output: Path | None, dpi: int,
) -> None:  # fmt: skip
    """Draw torques of ROBOT along MOTION, with limits and where they are exceeded.

    MOTION is a file as for `hodyn compute`.

    For example
      hodyn plot panda motion.csv
      hodyn plot panda motion.csv --kind portraits -o portraits.pdf
      hodyn plot panda motion.csv --kind motors --actuators panda_sea.yaml
      hodyn plot panda motion.csv --kind motion --joint panda_joint4
    """
    from hodyn_ros.cli.drawing import draw

    path = output or Path(f'{given.motion.stem or "motion"}_{kind}.png')
    draw(choice, given, limits, kind, joints, path, dpi)
    click.echo(f'Written: {path}')
