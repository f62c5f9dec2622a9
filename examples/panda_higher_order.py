"""Torques of the Franka Panda with six time derivatives against numerical differentiation.

Source: S. Kumar, A. Mueller, "Nth Order Analytical Time Derivatives of Inverse Dynamics in
Recursive and Closed Forms", IEEE ICRA, 2021, section IV-A with figures 2 to 5, which show orders
up to three. Motion and wrench are those of `panda_second_order`. As there, the recursive and the
closed form are compared with each other and with numerical differentiation: the torques alone,
computed by the Newton-Euler algorithm, which knows no derivatives, are interpolated.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import example_tools as tools
import numpy as np
from panda_second_order import efforts

from hodyn_ros import RobotModel
from hodyn_ros.dynamics.inverse import FORMULATIONS
from hodyn_ros.resources import share_file

ORDERS = 7
# Relative to the largest value of the order. The numerical derivatives are the limit: each
# differentiation of the interpolation polynomial amplifies its rounding.
TOLERANCES = (1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 5e-8)
FORMULATIONS_TOLERANCE = 1e-13


class Result(NamedTuple):
    """Torques and their time derivatives, each of shape (N, 7, 7)."""

    times: np.ndarray
    computed: np.ndarray
    """By the recursive formulation, nth_order."""
    others: dict[str, np.ndarray]
    """By the other formulations of any order."""
    numerical: np.ndarray


def compute(samples: int) -> Result:
    """Torques with exact and with numerical derivatives."""
    model = RobotModel.from_urdf(share_file('urdf/panda.urdf'), gravity=tools.GRAVITY)
    times = np.linspace(0.0, tools.DURATION, samples)
    numerical = tools.differentiated(
        lambda t: efforts(model, t, 1, 'newton_euler')[:, 0], times, ORDERS
    )
    computed = {
        name: efforts(model, times, ORDERS, name)
        for name, formulation in FORMULATIONS.items()
        if formulation.highest_order is None
    }
    return Result(times, computed.pop('nth_order'), computed, numerical)


def draw(result: Result, path: Path) -> None:
    """Draw all orders, with numerical derivatives as points, and the error of each order."""
    figure, axes = tools.new_figure(4, 2, (11.0, 11.0))
    panels = axes.ravel()
    for order, axis in enumerate(panels[:ORDERS]):
        lines = tools.draw_joints(axis, result.times, result.computed[:, order])
        tools.draw_points(axis, result.times, result.numerical[:, order])
        axis.set_ylabel(tools.label('Q', order))
        if order > 2:
            axis.ticklabel_format(axis='y', style='sci', scilimits=(0, 0), useMathText=True)
    panels[ORDERS].remove()
    last = figure.add_subplot(4, 2, 8)
    compared = {**result.others, 'numerical': result.numerical}
    for number, (name, values) in enumerate(reversed(compared.items())):
        errors = tools.relative_errors(values, result.computed)
        # Black and colours that no joint has.
        color = ('black', 'C8', 'C9')[number % 3]
        last.semilogy(
            errors, marker='o^s'[number % 3], ms=4, lw=1.0, color=color, label=name
        )
    last.legend(loc='upper left', fontsize='small')
    last.grid(alpha=0.3)
    last.set_xlabel('order of the derivative')
    last.set_ylabel('difference to\nnth_order, relative')
    panels[ORDERS - 2].set_xlabel('time [s]')
    panels[ORDERS - 2].tick_params(labelbottom=True)
    tools.legend(figure, lines, 'numerical')
    figure.suptitle('Franka Panda: torques and six time derivatives')
    tools.save(figure, path)


def main(argv: Sequence[str] | None = None) -> int:
    """Compute, print the differences and draw; return 0 if they are as small as expected."""
    arguments = tools.arguments(__doc__, 501, argv)
    result = compute(arguments.samples)
    errors = tools.relative_errors(result.numerical, result.computed)
    formulations = {
        name: tools.relative_errors(values, result.computed)
        for name, values in result.others.items()
    }
    print('Panda: largest values, and differences to nth_order relative to them')
    columns = {**formulations, 'numerical': errors}
    print(f'  {"order":6}{"largest":>12}' + ''.join(f'{name:>13}' for name in columns))
    for order in range(ORDERS):
        largest = np.abs(result.computed[:, order]).max()
        differences = ''.join(f'{column[order]:13.1e}' for column in columns.values())
        print(f'  {order:<6}{largest:12.4g}{differences}')
    if arguments.picture:
        draw(result, arguments.picture)
    agree = all(np.all(other <= FORMULATIONS_TOLERANCE) for other in formulations.values())
    return int(not agree or not np.all(errors <= TOLERANCES))


if __name__ == '__main__':
    sys.exit(main())
