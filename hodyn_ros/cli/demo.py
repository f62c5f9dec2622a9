"""`hodyn demo`: a motion of the Franka Panda from the model to files and a picture."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from hodyn_ros.analysis.limits import MotionLimits, find_violations
from hodyn_ros.cli.options import debug_option
from hodyn_ros.cli.outputs import write_whole
from hodyn_ros.cli.robots import Choice, load_model
from hodyn_ros.cli.settings import read_limits
from hodyn_ros.cli.tables import number, table
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.errors import HodynError
from hodyn_ros.io import Results, write_results
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.plotting import plot_efforts
from hodyn_ros.trajectory.references import panda_sinusoids

Array = NDArray[np.float64]

PERIOD = 0.001
"""Of the samples that are computed and compared [s]."""
EVERY = 5
"""One of so many samples is written."""
FASTER = 1.2
"""How much faster the motion in fast.csv is."""
TOLERANCES = (1e-9, 1e-7)
"""Of finite differences of order 1 and 2, relative to the largest value of the order."""

# Central differences of eighth order.
_DIFFERENCES = (
    np.array([3.0, -32.0, 168.0, -672.0, 0.0, 672.0, -168.0, 32.0, -3.0]) / 840.0,
    np.array([-9.0, 128.0, -1008.0, 8064.0, -14350.0, 8064.0, -1008.0, 128.0, -9.0]) / 5040.0,
)


@click.command()
@click.option(
    '-o', '--output', 'folder', type=click.Path(path_type=Path), default=Path('hodyn_demo'),
    show_default=True, metavar='FOLDER', help='Made if it does not exist.',
)
@debug_option
def command(folder: Path) -> None:
    """Compute torques of the Franka Panda with their derivatives, and draw them.

    Needs no ROS. Writes into FOLDER

      motion.csv    positions to snap of eight seconds of motion, in its limits
      fast.csv      the same motion, too fast for some of them
      efforts.csv   torques and their first two derivatives along the first
      efforts.png   the same as a picture, if matplotlib is installed

    which the other commands read. The derivatives are compared with finite differences.
    """
    model, source = load_model(Choice('panda'))
    limits = read_limits(model, None, source.limits).values
    reference = panda_sinusoids()
    times = np.linspace(0.0, reference.duration, round(reference.duration / PERIOD) + 1)
    motion = reference.motion(times)
    # Where the fading begins and ends, the fifth derivative of the motion jumps.
    jumps = (reference.ramp, reference.duration - reference.ramp)
    model.warm_up()
    effort = inverse_dynamics(model, motion)
    errors = [
        relative_difference(stencil, times, effort[:, 0], effort[:, order], order, jumps)
        for order, stencil in enumerate(_DIFFERENCES, start=1)
    ]
    _print(model, limits, times, effort, errors)
    _refuse_faults(model, limits, motion, effort, errors)
    folder.mkdir(parents=True, exist_ok=True)
    files = _write(folder, model, limits, times[::EVERY], motion[::EVERY], effort[::EVERY])
    click.echo(f'\nWritten: {", ".join(map(str, files))}')
    click.echo(
        '\nTry next:\n'
        f'  hodyn check panda {folder}/motion.csv\n'
        f'  hodyn check panda {folder}/fast.csv\n'
        f'  hodyn retime panda {folder}/fast.csv -o {folder}/retimed.csv\n'
        f'  hodyn report panda {folder}/motion.csv -o {folder}/report.html'
    )


def relative_difference(
    stencil: Array, times: Array, Q: Array, derivative: Array, order: int, jumps: Sequence[float]
) -> Array:
    """Compute the largest difference of a derivative to finite differences, of each joint.

    Parameters
    ----------
    stencil : ndarray
        Weights of neighbouring samples.
    times : ndarray, shape (N,)
        `PERIOD` apart [s].
    Q, derivative : ndarray, shape (N, n)
    order : int
        Of the derivative.
    jumps : sequence of float
        Times at which the next derivative jumps [s]: finite differences across them are no
        derivatives.

    Returns
    -------
    ndarray, shape (n,)
        Relative to the largest value of the joint.
    """
    half = len(stencil) // 2
    windows = np.lib.stride_tricks.sliding_window_view(Q, len(stencil), axis=0)
    difference = np.abs(windows @ stencil / PERIOD**order - derivative[half:-half])
    distance = np.abs(times[half:-half, None] - np.asarray(jumps)).min(axis=1)
    is_smooth = distance > (half + 0.5) * PERIOD
    largest: Array = difference[is_smooth].max(axis=0) / np.abs(derivative).max(axis=0)
    return largest


def _print(
    model: RobotModel, limits: MotionLimits, times: Array, effort: Array, errors: list[Array]
) -> None:
    """Table of the largest values."""
    peaks = np.abs(effort).max(axis=0)
    rows = [
        (
            name,
            f'{number(peaks[0, j])} of {number(limits.effort[j])}',
            f'{number(peaks[1, j])} of {number(limits.effort_dot[j])}',
            number(peaks[2, j]),
            f'{errors[0][j]:.0e}',
            f'{errors[1][j]:.0e}',
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


def _refuse_faults(
    model: RobotModel, limits: MotionLimits, motion: Array, effort: Array, errors: list[Array]
) -> None:
    for order, (error, tolerance) in enumerate(zip(errors, TOLERANCES), start=1):
        if not error.max() <= tolerance:
            raise HodynError(
                f'Derivative {order} differs from finite differences by {error.max():.1e} of its '
                f'largest value, expected at most {tolerance:.0e}.'
            )
    for violation in find_violations(model, limits, motion, effort):
        raise HodynError(f'The {violation.quantity} limit of {violation.joint_name} is exceeded.')


def _write(
    folder: Path, model: RobotModel, limits: MotionLimits, times: Array, motion: Array,
    effort: Array,
) -> list[Path]:  # fmt: skip
    """Write tables, and the picture if matplotlib is installed."""
    faster = motion * (FASTER ** np.arange(motion.shape[1]))[:, None]
    results = Results(
        model.joint_names, times, motion, effort, name='Franka Panda', source='given'
    )
    without = replace(results, effort=effort[:, :0])
    contents = {
        'motion.csv': without,
        'fast.csv': replace(without, times=times / FASTER, motion=faster),
        'efforts.csv': results,
    }
    for name, content in contents.items():
        write_results(folder / name, content)
    files = [folder / name for name in contents]
    if importlib.util.find_spec('matplotlib') is None:
        click.echo('No picture, since matplotlib is not installed: pip install hodyn_ros[plot]')
        return files
    picture = folder / 'efforts.png'
    figure = plot_efforts(results, model, limits)
    write_whole(picture, lambda path: figure.savefig(path, dpi=100))
    return [*files, picture]
