"""`hodyn bench`: how long the inverse dynamics of a robot takes on this machine."""

from __future__ import annotations

from typing import Any

import click

from hodyn_ros.cli.options import json_option, robot_options


@click.command()
@robot_options
@click.option(
    '--batch', type=click.IntRange(1, 10_000_000), default=2000, show_default=True,
    help='Samples in one call, beside calls with one sample.',
)
@click.option(
    '--threads', type=click.IntRange(1), default=1, show_default=True,
    help='Threads that share a batch.',
)
@click.option(
    '--seconds', type=click.FloatRange(0.0, min_open=True), default=3.0, show_default=True,
    help='How long to measure, about.',
)
@json_option
def command(choice: Any, batch: int, threads: int, seconds: float, as_json: bool) -> None:
    """Time the joint torques of ROBOT and their derivatives, beside Pinocchio if it is installed.

    Called from Python with one sample, and with many at once. Both libraries take turns in short
    bursts, and the median counts. Whether both agree is printed too. `make bench` in a checkout of
    hodyn_ros compares with more libraries.

    For example
      hodyn bench panda
      hodyn bench talos_reduced --seconds 10
      hodyn bench robot.urdf --batch 100000 --threads 4 --json
    """
    from hodyn_ros.cli.measurement import as_text, measure
    from hodyn_ros.cli.progress import progress
    from hodyn_ros.cli.robots import load_model
    from hodyn_ros.cli.tables import echo_json

    model, _ = load_model(choice)
    with progress('Timing') as update:
        data = measure(model, batch, threads, seconds, update)
    if as_json:
        echo_json(data)
    else:
        click.echo(as_text(data))
