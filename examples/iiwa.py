"""Second-order inverse dynamics of the KUKA LBR iiwa 14 against numerical differentiation.

Source: A. Mueller, S. Kumar, "Closed-form time derivatives of the equations of motion of rigid
body systems", Multibody System Dynamics 53, 2021, section 6.2 with figures 3 and 4, and the code
that belongs to it: the inertias of Stuerz et al. 2017, the motion in
`example_tools.validation_motion` and a wrench of 10 sin(pi t) N m and N in all six components that
the last link exerts, in its own frame. As there, the derivatives are compared with differences of
the order before over 0.5 ms; since these are good for a few digits only, also with interpolation
of the torques.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import example_tools as tools
import numpy as np

from hodyn_ros import ModelWarning, RobotModel, Wrench, inverse_dynamics
from hodyn_ros.resources import share_file

STEP = 5e-4  # s, as in the code of the paper
# Of each order, relative to its largest value.
DIFFERENCES_TOLERANCE = 1e-5
INTERPOLATION_TOLERANCES = (1e-13, 1e-12, 2e-11)


class Result(NamedTuple):
    """Motion (N, 5, 7) and torques with their first two time derivatives, each (N, 3, 7)."""

    times: np.ndarray
    motion: np.ndarray
    computed: np.ndarray
    differences: np.ndarray
    """Central differences of the order before; the torque itself is the computed one."""
    interpolated: np.ndarray


def iiwa() -> RobotModel:
    """Model from the description; its doubtful inertias are printed by `main`."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        return RobotModel.from_urdf(share_file('urdf/iiwa14.urdf'), gravity=tools.GRAVITY)


def efforts(model: RobotModel, times: np.ndarray, orders: int) -> np.ndarray:
    """Torques and derivatives along the motion, shape (N, orders, 7)."""
    wrench = Wrench('iiwa_link_7', tools.validation_wrench(times, orders))
    return inverse_dynamics(model, tools.validation_motion(times, orders + 2), wrench)


def compute(samples: int) -> Result:
    """Torques with exact derivatives, with differences and with interpolation."""
    model = iiwa()
    times = np.linspace(0.0, tools.DURATION, samples)
    computed = efforts(model, times, 3)
    after, before = (efforts(model, times + shift, 2) for shift in (STEP, -STEP))
    differences = np.concatenate([computed[:, :1], (after - before) / (2.0 * STEP)], axis=1)
    interpolated = tools.differentiated(lambda t: efforts(model, t, 1)[:, 0], times, 3)
    return Result(
        times, tools.validation_motion(times, 5), computed, differences, interpolated
    )


def draw(result: Result, path: Path) -> None:
    """Draw motion, torques and derivatives, the latter with differences as points."""
    figure, axes = tools.new_figure(2, 2, (11.0, 7.0))
    panels = axes.ravel()
    lines = tools.draw_joints(panels[0], result.times, result.motion[:, 0])
    panels[0].set_ylabel('$q$ [rad]')
    for order, axis in enumerate(panels[1:]):
        tools.draw_joints(axis, result.times, result.computed[:, order])
        axis.set_ylabel(tools.label('Q', order))
        if order > 0:
            tools.draw_points(axis, result.times, result.differences[:, order])
    tools.legend(figure, lines, 'differences')
    figure.suptitle(
        'KUKA LBR iiwa 14: motion, torques and their first two time derivatives'
    )
    tools.save(figure, path)


def main(argv: Sequence[str] | None = None) -> int:
    """Compute, print the differences and draw; return 0 if they are as small as expected."""
    arguments = tools.arguments(__doc__, 1001, argv)
    for warning in iiwa().warnings:
        print(f'The model warns: {warning}')
    result = compute(arguments.samples)
    by_differences = tools.relative_errors(result.differences, result.computed)
    by_interpolation = tools.relative_errors(result.interpolated, result.computed)
    print('iiwa: numerical differentiation, difference relative to the largest value')
    print(f'  {"order":7}{"largest":>10}{"differences":>14}{"interpolation":>16}')
    for order, name in enumerate(('Q', 'Qd', 'Q2d')):
        largest = np.abs(result.computed[:, order]).max()
        difference = f'{by_differences[order]:14.1e}' if order else f'{"":14}'
        print(f'  {name:7}{largest:10.1f}{difference}{by_interpolation[order]:16.1e}')
    if arguments.picture:
        draw(result, arguments.picture)
    return int(
        not np.all(by_differences <= DIFFERENCES_TOLERANCE)
        or not np.all(by_interpolation <= INTERPOLATION_TOLERANCES)
    )


if __name__ == '__main__':
    sys.exit(main())
