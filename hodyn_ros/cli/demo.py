"""`hodyn demo`: a motion of the Franka Panda from the model to files and a picture."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from hodyn_ros.cli.output import number, table, written
from hodyn_ros.cli.problem import Given, load_problem
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.errors import HodynError
from hodyn_ros.files import Results, write_results
from hodyn_ros.plotting.checks import all_violations
from hodyn_ros.plotting.figures import plot_efforts
from hodyn_ros.trajectory.references import panda_sinusoids

Array = NDArray[np.float64]

PERIOD = 0.001  # of the samples that are computed and compared [s]
EVERY = 5  # One of so many samples is written.
FASTER = 1.2  # the motion in fast.csv
TOLERANCES = (1e-9, 1e-7)  # of finite differences, relative to the largest value

# Central differences of eighth order.
_DIFFERENCES = (
    np.array([3.0, -32.0, 168.0, -672.0, 0.0, 672.0, -168.0, 32.0, -3.0]) / 840.0,
    np.array([-9.0, 128.0, -1008.0, 8064.0, -14350.0, 8064.0, -1008.0, 128.0, -9.0]) / 5040.0,
)


def demo(folder: Path) -> None:
    """Compute torques with their derivatives, compare them, and write what others read."""
    problem = load_problem(Given('panda'))
    model, limits = problem.model, problem.limits
    reference = panda_sinusoids()
    times = np.linspace(0.0, reference.duration, round(reference.duration / PERIOD) + 1)
    motion = reference.motion(times)
    model.warm_up()
    effort = inverse_dynamics(model, motion)
    # Where the fading begins and ends, the fifth derivative of the motion jumps.
    errors = _errors(times, effort, (reference.ramp, reference.duration - reference.ramp))
    peaks = np.abs(effort).max(axis=0)
    rows = [
        (
            name,
            f'{number(peaks[0, j])} of {number(limits.effort[j])}',
            f'{number(peaks[1, j])} of {number(limits.effort_dot[j])}',
            number(peaks[2, j]),
            *(f'{error[j]:.0e}' for error in errors),
        )
        for j, name in enumerate(model.joint_names)
    ]
    head = (
        'joint', 'torque\n[N m]', 'torque rate\n[N m/s]', 'second derivative\n[N m/s^2]',
        'difference\nof the rate', 'difference of\nthe second',
    )  # fmt: skip
    click.echo(
        f'Franka Panda, {times[-1]:.0f} s, {len(times)} samples: largest values, what the limits '
        'allow,\nand relative difference of both derivatives to finite differences of the torque\n'
    )
    click.echo(table(head, rows))
    for order, (error, tolerance) in enumerate(zip(errors, TOLERANCES), start=1):
        if not error.max() <= tolerance:
            raise HodynError(
                f'Derivative {order} differs from finite differences by {error.max():.1e} of its '
                f'largest value, expected at most {tolerance:.0e}.'
            )
    every = (array[::EVERY] for array in (times, motion, effort))
    results = Results.of_model(model, *every, name='Franka Panda', source='given')
    for violation in all_violations(results, problem.model, **problem.limiting):
        raise HodynError(f'The {violation.quantity} limit of {violation.joint_name} is exceeded.')
    folder.mkdir(parents=True, exist_ok=True)
    faster = results.motion * (FASTER ** np.arange(motion.shape[1]))[:, None]
    without = replace(results, effort=results.effort[:, :0])
    contents = {
        'motion.csv': without,
        'fast.csv': replace(without, times=results.times / FASTER, motion=faster),
        'efforts.csv': results,
    }
    for name, content in contents.items():
        write_results(folder / name, content)
    files = [folder / name for name in contents]
    if importlib.util.find_spec('matplotlib') is None:
        click.echo('No picture, since matplotlib is not installed: pip install hodyn_ros[plot]')
    else:
        files.append(folder / 'efforts.png')
        with written(files[-1]) as path:
            plot_efforts(model, results, limits).savefig(path, dpi=100)
    click.echo(f'\nWritten: {", ".join(map(str, files))}')
    click.echo(
        '\nTry next:\n'
        f'  hodyn check panda {folder}/motion.csv\n'
        f'  hodyn check panda {folder}/fast.csv\n'
        f'  hodyn retime panda {folder}/fast.csv -o {folder}/retimed.csv\n'
        f'  hodyn report panda {folder}/motion.csv -o {folder}/report.html'
    )


def _errors(times: Array, effort: Array, jumps: Sequence[float]) -> list[Array]:
    """Largest relative difference of both derivatives to finite differences, of each joint.

    Finite differences across `jumps` of a next derivative [s] are no derivatives and left out.
    """
    found = []
    for order, stencil in enumerate(_DIFFERENCES, start=1):
        half = len(stencil) // 2
        windows = np.lib.stride_tricks.sliding_window_view(effort[:, 0], len(stencil), axis=0)
        derivative = effort[:, order]
        difference = np.abs(windows @ stencil / PERIOD**order - derivative[half:-half])
        distance = np.abs(times[half:-half, None] - np.asarray(jumps)).min(axis=1)
        is_smooth = distance > (half + 0.5) * PERIOD
        found.append(difference[is_smooth].max(axis=0) / np.abs(derivative).max(axis=0))
    return found
