"""`hodyn check`: does a motion keep the limits of a robot."""

from __future__ import annotations

from typing import Any

import click

from hodyn_ros.cli.options import json_option, limits_option, motion_options, robot_options


@click.command()
@robot_options
@motion_options
@limits_option
@json_option
def command(choice: Any, given: Any, limits: str | None, as_json: bool) -> int:
    """Compare MOTION with the limits of ROBOT: where is which exceeded, and by how much.

    Position, velocity, acceleration, jerk, torque and torque rate of the joints, and with
    --actuators velocity, torque and torque rate of the motors and deflections. Limits come from
    the robot description and from --limits. All are compared at the samples; --rate makes them
    denser where the motion is a spline. MOTION is a file as for `hodyn compute`.

    A motion whose velocity or acceleration jumps at waypoints, as with --interpolation jtc, has
    no bound for what follows from it, and counts as one that exceeds a limit.

    The exit code is 0 if all limits are kept, 1 if one is exceeded, 2 if something is wrong.

    For example
      hodyn check panda motion.csv
      hodyn check robot.urdf waypoints.yaml --limits limits.yaml --json
      hodyn check panda motion.csv && echo "may be executed"
    """
    from hodyn_ros.cli.comparison import as_data, as_text, has_jumps
    from hodyn_ros.cli.main import OK, VIOLATION
    from hodyn_ros.cli.motions import (
        compute_results,
        load_problem,
        show_remarks,
        violations_of,
    )
    from hodyn_ros.cli.tables import echo_json

    problem = load_problem(choice, given, limits)
    results = compute_results(problem, given)
    violations = violations_of(problem, results)
    if as_json:
        echo_json(as_data(problem, results, violations))
    else:
        show_remarks(results.remarks)
        click.echo(as_text(problem, results, violations))
    return VIOLATION if violations or has_jumps(results) else OK
