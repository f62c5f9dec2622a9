"""What the examples share: the motion of the papers, numerical differentiation, and drawing."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.polynomial import chebyshev

# Test trajectory of the example code of Kumar and Mueller, there named after equation (31) and
# Table I of Gaz et al. 2019: joint velocities A sin(2 pi t / T).
AMPLITUDES = np.array([2.21, -2.21, 1.2, -2.1, -2.3, 2.1, -2.5])  # A [rad/s]
PERIODS = np.array([3.68, 2.04, 2.98, 1.75, 4.43, 2.749, 1.06])  # T [s]
DURATION = 5.0  # s
GRAVITY = (0.0, 0.0, -9.80665)  # m/s^2

POINT = {'marker': 'o', 'ls': '', 'ms': 3.2, 'mfc': 'white', 'mew': 0.9}


def label(symbol: str, order: int) -> str:
    """Write the symbol of a time derivative of a torque, with its unit."""
    dotted = (symbol, rf'\dot {symbol}', rf'\ddot {symbol}')
    text = dotted[order] if order < len(dotted) else f'{symbol}^{{({order})}}'
    return f'${text}$ [{unit(order)}]'


def unit(order: int) -> str:
    """Name the unit of a time derivative of a torque."""
    return ('N m', 'N m/s')[order] if order < 2 else f'N m/s$^{order}$'


def validation_motion(times: np.ndarray, K: int) -> np.ndarray:
    """Joint positions q = -(A T / 2 pi) cos(2 pi t / T) and their derivatives, shape (N, K, 7).

    Without an offset, as in that code, it is a mathematical test signal: it leaves the position
    limits of joints 4 and 6 of the Panda and the speed limits of joints 1 and 2.
    """
    omega = 2.0 * np.pi / PERIODS
    k = np.arange(K)[:, None]
    phase = times[:, None, None] * omega + 0.5 * np.pi * k
    return -AMPLITUDES * omega ** (k - 1.0) * np.cos(phase)


def validation_wrench(times: np.ndarray, orders: int) -> np.ndarray:
    """10 sin(pi t) N m and N in all six components, with derivatives, shape (N, orders, 6)."""
    m = np.arange(orders)
    series = 10.0 * np.pi**m * np.sin(np.pi * times[:, None] + 0.5 * np.pi * m)
    return np.repeat(series[..., None], 6, axis=-1)


def differentiated(
    function: Callable[[np.ndarray], np.ndarray],
    times: np.ndarray,
    orders: int,
    half_width: float = 0.3,
    nodes: int = 32,
) -> np.ndarray:
    """Numerical time derivatives of a vector function of time, shape (N, orders, n).

    For each instant the function is interpolated at Chebyshev nodes of an interval around it, and
    the interpolation polynomial is differentiated at the centre. For an analytic function this is
    far more accurate than finite differences. The defaults suit `validation_motion`: there the
    interpolation is exact to rounding, which differentiation amplifies with each order.
    """
    points = chebyshev.chebpts1(nodes)
    values = function((times[:, None] + half_width * points).ravel())
    values = values.reshape(len(times), nodes, -1)
    to_coefficients = 2.0 / nodes * chebyshev.chebvander(points, nodes - 1).T
    to_coefficients[0] /= 2.0
    coefficients = to_coefficients @ values
    derivatives = [
        np.tensordot(_at_centre(nodes, m), coefficients, axes=(0, 1)) / half_width**m
        for m in range(orders)
    ]
    return np.stack(derivatives, axis=1)


def _at_centre(nodes: int, order: int) -> np.ndarray:
    """Differentiate each Chebyshev polynomial at 0, shape (nodes,)."""
    return chebyshev.chebval(0.0, chebyshev.chebder(np.eye(nodes), order))


def relative_errors(actual: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Largest difference of each order relative to its largest value, shape (orders,)."""
    axes = (0, 2)
    return np.abs(actual - expected).max(axis=axes) / np.abs(expected).max(axis=axes)


def arguments(
    description: str | None, samples: int, argv: Sequence[str] | None
) -> argparse.Namespace:
    """Command line of an example."""
    parser = argparse.ArgumentParser(description=(description or '').splitlines()[0])
    parser.add_argument(
        '--samples',
        type=int,
        default=samples,
        help='number of instants (default: %(default)s)',
    )
    parser.add_argument(
        '--picture', type=Path, metavar='FILE', help='draw the results into FILE'
    )
    return parser.parse_args(argv)


def new_figure(rows: int, columns: int, size: tuple[float, float]):
    """Figure and axes of a picture, all over the same time."""
    import matplotlib

    matplotlib.use('Agg')
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        rows, columns, figsize=size, sharex=True, squeeze=False, layout='constrained'
    )
    for axis in axes.flat:
        axis.grid(alpha=0.3)
        axis.margins(x=0.0)
    for axis in axes[-1]:
        axis.set_xlabel('time [s]')
    return figure, axes


def draw_joints(axis, times: np.ndarray, values: np.ndarray) -> list:
    """Draw one line a joint, shape of values (N, n)."""
    return [
        axis.plot(times, values[:, j], lw=1.3, color=f'C{j}', label=f'joint {j + 1}')[0]
        for j in range(values.shape[1])
    ]


def draw_points(axis, times: np.ndarray, values: np.ndarray, count: int = 26) -> None:
    """Draw some of the values as points over the lines of the joints."""
    some = _some(times, count)
    for j in range(values.shape[1]):
        axis.plot(times[some], values[some, j], mec=f'C{j}', **POINT)


def legend(figure, lines: list, points: str | None = None) -> None:
    """Name the joints, and what points of any colour stand for, below the picture."""
    from matplotlib.lines import Line2D

    handles = (
        [*lines, Line2D([], [], mec='black', label=points, **POINT)] if points else lines
    )
    figure.legend(handles=handles, loc='outside lower center', ncols=8, frameon=False)


def draw_differences(axis, times: np.ndarray, differences: dict[str, np.ndarray]) -> None:
    """Draw differences of shape (N, n), the largest over the joints, on a logarithmic scale."""
    some = _some(times, 201)
    for (name, values), color in zip(differences.items(), ('black', 'C8')):
        largest = np.abs(values[some]).max(axis=1)
        # A difference of exactly zero has no place on a logarithmic scale.
        visible = np.where(largest > 0.0, largest, np.nan)
        axis.semilogy(times[some], visible, '.', ms=4, color=color, label=name)


def _some(times: np.ndarray, count: int) -> np.ndarray:
    """Choose evenly spaced indices, at most count."""
    return np.unique(np.linspace(0, len(times) - 1, count).round().astype(int))


def save(figure, path: Path) -> None:
    """Write a picture."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    print(f'Picture: {path}')
