"""Second-order inverse dynamics of the Franka Panda by all formulations of the package.

Source: the example of A. Mueller, "An O(n)-Algorithm for the Higher-Order Kinematics and Inverse
Dynamics of Serial Manipulators using Spatial Representation of Twists", IEEE Robotics and
Automation Letters 6(2), 2021, section VI with figure 2. The motion is the validation trajectory as
coded by Kumar and Mueller, see `example_tools.validation_motion`, without the offset that a real
Panda needs: a mathematical test signal. The last link exerts a wrench of 10 sin(pi t) N m and N in
all six components, in its own frame.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import example_tools as tools
import numpy as np

from hodyn_ros import RobotModel, Wrench, inverse_dynamics
from hodyn_ros.dynamics.inverse import FORMULATIONS
from hodyn_ros.resources import share_file

ORDERS = 3
# Of each order, relative to its largest value.
NUMERICAL_TOLERANCES = (1e-13, 1e-12, 2e-11)
FORMULATIONS_TOLERANCE = 1e-13


class Result(NamedTuple):
    """Torques and their first two time derivatives, each of shape (N, 3, 7)."""

    times: np.ndarray
    efforts: dict[str, np.ndarray]
    """By formulation; those of formulations without derivatives have fewer orders."""
    numerical: np.ndarray
    """From interpolation of the torques, which nth_order computes."""

    @property
    def reference(self) -> np.ndarray:
        """The formulation with which the others are compared."""
        return self.efforts['nth_order']


def efforts(
    model: RobotModel, times: np.ndarray, orders: int, algorithm: str
) -> np.ndarray:
    """Torques and derivatives along the motion, shape (N, orders, 7)."""
    wrench = Wrench('panda_link7', tools.validation_wrench(times, orders))
    motion = tools.validation_motion(times, orders + 2)
    return inverse_dynamics(model, motion, wrench, algorithm)


def compute(samples: int) -> Result:
    """Torques with derivatives by each formulation, and numerically."""
    model = RobotModel.from_urdf(share_file('urdf/panda.urdf'), gravity=tools.GRAVITY)
    times = np.linspace(0.0, tools.DURATION, samples)
    by_formulation = {}
    for name, formulation in FORMULATIONS.items():
        highest = formulation.highest_order
        orders = ORDERS if highest is None else min(ORDERS, highest + 1)
        by_formulation[name] = efforts(model, times, orders, name)
    numerical = tools.differentiated(
        lambda t: efforts(model, t, 1, 'nth_order')[:, 0], times, ORDERS
    )
    return Result(times, by_formulation, numerical)


def formulation_errors(result: Result) -> dict[str, np.ndarray]:
    """Largest difference of each formulation to the reference, by order and relative."""
    return {
        name: tools.relative_errors(values, result.reference[:, : values.shape[1]])
        for name, values in result.efforts.items()
        if values is not result.reference
    }


def draw(result: Result, path: Path) -> None:
    """Draw torques and derivatives, and the largest differences over the joints."""
    figure, axes = tools.new_figure(3, 2, (11.0, 8.5))
    for order, (left, right) in enumerate(axes):
        exact = result.reference[:, order]
        lines = tools.draw_joints(left, result.times, exact)
        left.set_ylabel(tools.label('Q', order))
        others = [
            np.abs(values[:, order] - exact).max(axis=1)
            for values in result.efforts.values()
            if values.shape[1] > order and values is not result.reference
        ]
        tools.draw_differences(
            right,
            result.times,
            {
                'numerical differentiation': result.numerical[:, order] - exact,
                'other formulations': np.stack(others, axis=1),
            },
        )
        right.set_ylabel(f'[{tools.unit(order)}]')
    tools.legend(figure, lines)
    axes[0, 0].set_title('torques and time derivatives')
    axes[0, 1].set_title('largest difference of all joints to nth_order')
    axes[0, 1].legend(loc='lower right', fontsize='small')
    figure.suptitle('Franka Panda, validation trajectory with a wrench at the last link')
    tools.save(figure, path)


def main(argv: Sequence[str] | None = None) -> int:
    """Compute, print the differences and draw; return 0 if they are as small as expected."""
    arguments = tools.arguments(__doc__, 1001, argv)
    result = compute(arguments.samples)
    numerical = tools.relative_errors(result.numerical, result.reference)
    formulations = formulation_errors(result)
    names = ('Q', 'Qd', 'Q2d')
    print('Panda: largest values, and differences to nth_order relative to them')
    print(f'  {"":28}' + ''.join(f'{name:>10}' for name in names))
    largest = np.abs(result.reference).max(axis=(0, 2))
    print(f'  {"largest value":28}' + ''.join(f'{value:10.1f}' for value in largest))
    for what, errors in {**formulations, 'numerical differentiation': numerical}.items():
        print(f'  {what:28}' + ''.join(f'{error:10.1e}' for error in errors))
    if arguments.picture:
        draw(result, arguments.picture)
    agree = all(
        np.all(errors <= FORMULATIONS_TOLERANCE) for errors in formulations.values()
    )
    return int(not agree or not np.all(numerical <= NUMERICAL_TOLERANCES))


if __name__ == '__main__':
    sys.exit(main())
