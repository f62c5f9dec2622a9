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
    from hodyn_ros.cli.motions import compute_results, load_problem, violations_of
    from hodyn_ros.cli.outputs import check_writable, write_whole
    from hodyn_ros.plotting import html_report

    if output is not None and output.suffix.lower() not in ('.html', '.htm'):
        raise RequestError(
            f'{output} is not named as a report is: expected the suffix .html or .htm. A browser '
            'prints it as PDF.'
        )
    path = output or Path(f'{given.motion.stem or "motion"}_report.html')
    check_writable(path)
    problem = load_problem(choice, given, limits)
    results = compute_results(problem, given)
    violations, drives = violations_of(problem, results), problem.drives
    text = html_report(
        results,
        problem.model,
        problem.limits.values,
        actuators=drives.actuators if drives else None,
        motor_limits=drives.limits if drives else None,
        violations=violations,
        remarks=(f'Limits: {problem.limits.origin}.',),
        title=title,
        robot_file=problem.robot_file,
    )
    write_whole(path, lambda target: target.write_text(text, encoding='utf-8'))
    count = len(violations) + (results.continuous_order < 0)
    limits_text = f'{count} limit{"" if count == 1 else "s"} exceeded' if count else 'limits kept'
    click.echo(f'Written: {path} ({limits_text})')
    if show:
        click.launch(str(path))
