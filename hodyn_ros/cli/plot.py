"""`hodyn plot`: pictures of a motion and its torques."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hodyn_ros.cli.options import limits_option, motion_options, robot_options
from hodyn_ros.errors import RequestError

BY_JOINT = ('efforts', 'motion', 'portraits')
KINDS = (*BY_JOINT, 'motors', 'energy')
SUFFIXES = ('.png', '.pdf', '.svg')

_MOST_JOINTS = 12  # More of them on a picture cannot be read.


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
    from hodyn_ros import plotting
    from hodyn_ros.cli.motions import (
        compute_results,
        load_problem,
        show_remarks,
        violations_of,
    )
    from hodyn_ros.cli.outputs import check_writable, write_whole
    from hodyn_ros.plotting.checks import busiest_joints
    from hodyn_ros.plotting.source import checked_source

    path = output or Path(f'{given.motion.stem or "motion"}_{kind}.png')
    check_writable(path)
    if path.suffix.lower() not in SUFFIXES:
        raise RequestError(f'{path}: expected a name that ends with {" or ".join(SUFFIXES)}.')
    if joints and kind not in BY_JOINT:
        raise RequestError(f'--joint chooses joints, which a picture of the kind {kind} has not.')
    if kind == 'motors' and given.actuators is None:
        raise RequestError('A picture of motors needs to know them: --actuators FILE.')
    problem = load_problem(choice, given, limits)
    results = compute_results(problem, given)
    show_remarks(results.remarks)
    model, values = problem.model, problem.limits.values
    found, chosen = violations_of(problem, results), list(joints) or None
    if chosen is None and model.n_joints > _MOST_JOINTS and kind in BY_JOINT:
        chosen = busiest_joints(checked_source(results, model), values, _MOST_JOINTS)
        show_remarks((
            f'Of {model.n_joints} joints the {_MOST_JOINTS} are drawn that come nearest to one of '
            'their limits; --joint chooses others.',
        ))  # fmt: skip
    if kind in BY_JOINT:
        draw = getattr(plotting, f'plot_{kind}')
        figure = draw(results, model, values, chosen, found)
    elif kind == 'motors':
        motor_limits = problem.drives and problem.drives.limits
        figure = plotting.plot_motors(results, model, motor_limits, found)
    else:
        figure = plotting.plot_energy(results, model)
    write_whole(path, lambda target: figure.savefig(target, dpi=dpi))
    click.echo(f'Written: {path}')
