"""`hodyn report`: checks and plots of a motion as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hodyn_ros.cli.options import limits_option, motion_options, robot_options
from hodyn_ros.errors import RequestError


@click.command()
@robot_options
@motion_options
@limits_option
@click.option(
    '-o', '--output', type=click.Path(path_type=Path), metavar='FILE',
    help='By default <motion>_report.html.',
)
@click.option('--title', help='By default the names of robot and motion.')
@click.option('--open', 'show', is_flag=True, help='Open it in the browser.')
def command(
    choice: Any, given: Any, limits: str | None, output: Path | None, title: str | None,
    show: bool,
) -> None:  # fmt: skip
    """Write a report on MOTION: the robot, the limits, and interactive plots of all orders.

    The file needs nothing else, opens in any browser, and can be printed. MOTION is a file as for
    `hodyn compute`.

    For example
      hodyn report panda motion.csv -o report.html
      hodyn report panda motion.csv --actuators panda_sea.yaml --open
    """
    from hodyn_ros.cli.drawing import write_report

    if output is not None and output.suffix.lower() not in ('.html', '.htm'):
        raise RequestError(
            f'{output} is not named as a report is: expected the suffix .html or .htm. A browser '
            'prints it as PDF.'
        )
    path = output or Path(f'{given.motion.stem or "motion"}_report.html')
    count = write_report(choice, given, limits, path, title)
    limits_text = f'{count} limit{"" if count == 1 else "s"} exceeded' if count else 'limits kept'
    click.echo(f'Written: {path} ({limits_text})')
    if show:
        click.launch(str(path))
