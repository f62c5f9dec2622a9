"""`hodyn info`: what is known of a robot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hodyn_ros.cli.options import actuators_option, json_option, limits_option, robot_options


@click.command()
@robot_options
@limits_option
@actuators_option
@json_option
def command(choice: Any, limits: str | None, actuators: Path | None, as_json: bool) -> None:
    """Show joints, limits and masses of ROBOT, and what is doubtful in its description.

    ROBOT is one of

      robot.urdf, robot.urdf.xacro     a file; xacro files need the package xacro
      panda, panda_with_hand, iiwa14, two_link
                                       robots that come with hodyn_ros
      ur5, talos_left_arm, ...         of the package example-robot-data
      ur5e, fr3, ...                   of the package robot_descriptions
      my_package/urdf/robot.urdf       of a ROS package; my_package if it has one only

    If several packages have a robot of the same name, put the package in front:
    example-robot-data:panda, robot_descriptions:panda or ros:panda_description.

    For example
      hodyn info panda
      hodyn info talos_left_arm --json
      hodyn info robot.urdf --tip-link tool0
    """
    from hodyn_ros.cli.robot_summary import as_data, as_text
    from hodyn_ros.cli.robots import load_model
    from hodyn_ros.cli.settings import read_actuators, read_limits
    from hodyn_ros.cli.tables import echo_json

    model, source = load_model(choice, quiet=True)
    known = read_limits(model, limits, source.limits)
    drives = read_actuators(model, actuators)
    if as_json:
        echo_json(as_data(model, source, known, drives))
    else:
        click.echo(as_text(model, source, known, drives))
