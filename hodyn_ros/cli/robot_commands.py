"""`hodyn generate` and `hodyn demo`: source code of a robot, and motions to begin with."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from hodyn_ros.cli.output import show_remarks
from hodyn_ros.cli.problem import Given, Problem, load_problem
from hodyn_ros.codegen.generate import generate_code
from hodyn_ros.codegen.statements import identifier
from hodyn_ros.control.tracking import tracking_controller
from hodyn_ros.errors import RequestError
from hodyn_ros.files import Samples, write_results
from hodyn_ros.retiming import retime
from hodyn_ros.trajectory.jtc import JtcMotion
from hodyn_ros.trajectory.references import panda_sinusoids, panda_swing

_DEMO_RATE = 500.0  # Hz


def generate(
    given: Given,
    output: Path | None,
    language: str,
    orders: tuple[int, ...],
    precision: str,
    name: str | None,
    wrench_links: tuple[str, ...],
    forward_dynamics: bool,
    ros2_control: Path | None,
    sample_period: float,
    delay: float,
    force: bool,
) -> None:
    """Write the dynamics of a robot as source code; see `hodyn generate --help`.

    Parameters
    ----------
    given : Given
    output : pathlib.Path or None
        Folder; None: named after the robot.
    language, precision, name, wrench_links, forward_dynamics
        See `generate_code`.
    orders : tuple of int
        Of the derivatives of the efforts; one is the highest, empty is 2.
    ros2_control : pathlib.Path or None
        Folder of a package with the tracking law, in place of `output`.
    sample_period, delay : float
        Of that law [s].
    force : bool
        Whether files that exist are replaced.

    Raises
    ------
    RequestError
        If something given cannot be used, or files exist.
    """
    problem, controller = load_problem(given), None
    actuators = problem.actuators
    if ros2_control is not None:
        if actuators is None:
            raise RequestError(
                '--ros2-control needs to know the drives: give --config FILE with actuators.'
            )
        controller = tracking_controller(actuators, sample_period, delay=delay)
    elif actuators is not None:
        show_remarks(('The actuators of --config are for --ros2-control alone.',))
    # Robots of different files may have the same name inside.
    robot = Path(given.robot.rpartition(':')[2]).stem
    folder = ros2_control or output or Path(f'{name or identifier(robot)}_dynamics')
    wanted = orders if len(orders) > 1 else (orders[0] if orders else 2)
    try:
        paths = generate_code(
            problem.model,
            folder,
            language,
            wanted,
            precision,
            name,
            wrench_links,
            force,
            controller,
            forward_dynamics,
            controller is not None,
        )
    except RequestError as error:
        raise RequestError(str(error).replace('overwrite=True', '--force')) from error
    for path in paths:
        click.echo(path)
    if controller is None:
        click.echo(
            f'Try it: cmake -S {folder} -B {folder}/build && cmake --build {folder}/build '
            f'&& ctest --test-dir {folder}/build',
            err=True,
        )


def demo(output: Path) -> None:
    """Write two motions of the Panda, and show commands that read them.

    Parameters
    ----------
    output : pathlib.Path
        Folder; made if needed.
    """
    problem = load_problem(Given('panda'))
    reference = panda_sinusoids()
    fast = _without_rates(problem)
    output.mkdir(parents=True, exist_ok=True)
    for name, duration, motion in (
        ('motion', reference.duration, reference.motion),
        ('fast', fast.times[-1], fast),
    ):
        times = np.linspace(0.0, duration, round(_DEMO_RATE * duration) + 1)
        results = Samples.of_model(
            problem.model,
            times,
            motion(times),
            name='Franka Panda',
            source='given',
        )
        write_results(output / f'{name}.csv', results)
    click.echo(
        f'Written: {output}/motion.csv, {output}/fast.csv\n\nTry next:\n'
        f'  hodyn check panda {output}/motion.csv\n'
        f'  hodyn check panda {output}/fast.csv\n'
        f'  hodyn retime panda {output}/fast.csv -o {output}/retimed.csv\n'
        "\nWith pictures, after: pip install 'hodyn_ros[plot,report,view]'\n"
        f'  hodyn view panda {output}/fast.csv {output}/retimed.csv\n'
        f'  hodyn plot panda {output}/motion.csv\n'
        f'  hodyn plot panda {output}/motion.csv -o {output}/report.html'
    )


def _without_rates(problem: Problem) -> JtcMotion:
    """Motion as fast as limits of velocity, acceleration and torque allow, as planners make it."""
    unlimited = np.full(problem.model.n_joints, np.inf)
    limits = problem.limits._replace(effort_dot=unlimited, jerk=unlimited)
    motion = retime(problem.model, panda_swing(), limits, rise_time=0.0).motion
    assert motion is not None  # along a path
    return motion
