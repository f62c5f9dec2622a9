"""`hodyn retime`: another timing with which a motion keeps its limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from hodyn_ros.cli.options import json_option, limits_option, motion_options, robot_options


@click.command()
@robot_options
@motion_options
@limits_option
@click.option(
    '-o', '--output', type=click.Path(path_type=Path), metavar='OUT',
    help='File for the new motion and its torques, of a kind as for `hodyn compute`.',
)
@click.option(
    '--uniform', is_flag=True,
    help='Play the motion slower or faster as a whole, instead of a new timing along its path.',
)
@click.option(
    '--slower-only', is_flag=True,
    help='A motion that keeps its limits stays as it is; another one does not become shorter.',
)
@click.option(
    '--drop-standstills', is_flag=True,
    help='Leave out the time for which MOTION stands still, but for an instant of rest.',
)
@click.option(
    '--window', type=click.FloatRange(0.0), default=8.0, show_default=True, metavar='MS',
    help='Time over which the new motion is averaged: longer ones bound the second derivative of '
    'the torques more, and cost so much time.',
)
@click.option(
    '--intervals', type=click.IntRange(4, 10_000), default=128, show_default=True,
    help='Of the time law: more are slower to compute and give a faster motion.',
)
@json_option
def command(
    choice: Any, given: Any, limits: str | None, output: Path | None, uniform: bool,
    slower_only: bool, drop_standstills: bool, window: float, intervals: int, as_json: bool,
) -> None:  # fmt: skip
    """Find a fast timing of MOTION with which ROBOT keeps its limits.

    The path stays, and so does the time for which MOTION stands still. The new motion begins and
    ends at rest, is four times continuously differentiable, and keeps the limits of velocity,
    acceleration, jerk, torque and torque rate; with --actuators those of the motors too. With
    --uniform the motion is only stretched in time, by the smallest factor with which the limits
    are kept; this needs no path at rest and takes wrenches into account.

    The limits hold when joint_trajectory_controller executes OUT, which it does between samples
    from their positions, velocities and accelerations. --rate is that of the samples (1000 Hz).

    For example
      hodyn retime panda fast.csv -o retimed.csv
      hodyn retime panda fast.csv -o slower.csv --slower-only
      hodyn retime panda waypoints.yaml --uniform
    """
    from hodyn_ros.cli.retiming import Wish, retime_path, scale_uniformly

    wish = Wish(limits, output, slower_only, as_json)
    if uniform:
        source = click.get_current_context().get_parameter_source
        for name in ('drop_standstills', 'window', 'intervals'):
            if source(name) is not ParameterSource.DEFAULT:
                raise click.UsageError(
                    f'--{name.replace("_", "-")} is for a new timing along the path; leave it or '
                    '--uniform out.'
                )
        scale_uniformly(choice, given, wish)
    else:
        retime_path(choice, given, wish, intervals, 1e-3 * window, not drop_standstills)
