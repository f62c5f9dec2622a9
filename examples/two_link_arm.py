"""The planar 2R arm of Mueller and Kumar against the expressions printed in their paper.

Source: A. Mueller, S. Kumar, "Closed-form time derivatives of the equations of motion of rigid
body systems", Multibody System Dynamics 53, 2021, section 6.1: joint screws, poses and the six
expressions of the torques and their first and second time derivatives. The masses sit at the ends
of the links (so the entries (1, 1) of the mass matrices M_1 and M_2, which are printed as L^2 m,
are zero; a planar motion does not feel them), and gravity acts along -y.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import example_tools as tools
import numpy as np

from hodyn_ros import RobotModel, inverse_dynamics

L1, L2 = 0.7, 0.5  # m
M1, M2 = 3.0, 2.0  # kg
G = 9.81  # m/s^2
DURATION = 4.0  # s
TOLERANCE = 1e-14  # of each order, relative to its largest value


class Result(NamedTuple):
    """Torques and their first two time derivatives, each of shape (N, 3, 2)."""

    times: np.ndarray
    computed: np.ndarray
    printed: np.ndarray


def two_link_arm() -> RobotModel:
    """Model from the screws, poses and point masses of the paper."""
    B = np.stack([np.eye(4), np.eye(4)])
    B[1, 0, 3] = L1
    return RobotModel.from_body_screws(
        X=[[0, 0, 1, 0, 0, 0], [0, 0, 1, 0, 0, 0]],
        B=B,
        inertias=[(M1, [L1, 0, 0], np.zeros((3, 3))), (M2, [L2, 0, 0], np.zeros((3, 3)))],
        gravity=(0.0, -G, 0.0),
    )


def swinging(times: np.ndarray) -> np.ndarray:
    """Sample a motion and its first four derivatives, shape (N, 5, 2)."""
    k = np.arange(5)[:, None]
    omega = np.array([1.7, 2.9])  # rad/s
    phase = times[:, None, None] * omega + 0.5 * np.pi * k
    motion = np.array([1.1, -0.9]) * omega**k * np.sin(phase)
    motion[:, 0] += [-0.6, 0.8]
    return motion


def printed_expressions(motion: np.ndarray) -> np.ndarray:
    """Evaluate the six expressions of the paper as they are printed, shape (N, 3, 2)."""
    (q1, q2), (qd1, qd2), (q2d1, q2d2), (q3d1, q3d2), (q4d1, q4d2) = np.moveaxis(
        motion, 0, -1
    )
    s1, s2, s12 = np.sin(q1), np.sin(q2), np.sin(q1 + q2)
    c1, c2, c12 = np.cos(q1), np.cos(q2), np.cos(q1 + q2)
    tau1 = (
        L1**2 * q2d1 * M1
        + L1**2 * q2d1 * M2
        + L2**2 * q2d1 * M2
        + L2**2 * q2d2 * M2
        + L2 * G * M2 * c12
        + L1 * G * M1 * c1
        + L1 * G * M2 * c1
        - L1 * L2 * qd2**2 * M2 * s2
        + 2 * L1 * L2 * q2d1 * M2 * c2
        + L1 * L2 * q2d2 * M2 * c2
        - 2 * L1 * L2 * qd1 * qd2 * M2 * s2
    )
    tau2 = L2 * M2 * (L1 * s2 * qd1**2 + L2 * q2d1 + L2 * q2d2 + G * c12 + L1 * q2d1 * c2)
    taud1 = (
        L1**2 * q3d1 * M1
        + L1**2 * q3d1 * M2
        + L2**2 * q3d1 * M2
        + L2**2 * q3d2 * M2
        - L2 * qd1 * G * M2 * s12
        - L2 * qd2 * G * M2 * s12
        + 2 * L1 * L2 * q3d1 * M2 * c2
        + L1 * L2 * q3d2 * M2 * c2
        - L1 * qd1 * G * M1 * s1
        - L1 * qd1 * G * M2 * s1
        - L1 * L2 * qd2**3 * M2 * c2
        - 4 * L1 * L2 * q2d1 * qd2 * M2 * s2
        - 2 * L1 * L2 * q2d2 * qd1 * M2 * s2
        - 3 * L1 * L2 * q2d2 * qd2 * M2 * s2
        - 2 * L1 * L2 * qd1 * qd2**2 * M2 * c2
    )
    taud2 = (
        L2
        * M2
        * (
            L2 * q3d1
            + L2 * q3d2
            - qd1 * G * s12
            - qd2 * G * s12
            + L1 * q3d1 * c2
            + 2 * L1 * q2d1 * qd1 * s2
            - L1 * q2d1 * qd2 * s2
            + L1 * qd1**2 * qd2 * c2
        )
    )
    tau2d1 = (
        L1**2 * q4d1 * M1
        + L1**2 * q4d1 * M2
        + L2**2 * q4d1 * M2
        + L2**2 * q4d2 * M2
        - 3 * L1 * L2 * q2d2**2 * M2 * s2
        + L1 * L2 * qd2**4 * M2 * s2
        - L1 * qd1**2 * G * M1 * c1
        - L1 * qd1**2 * G * M2 * c1
        - L2 * q2d1 * G * M2 * s12
        - L2 * q2d2 * G * M2 * s12
        + 2 * L1 * L2 * q4d1 * M2 * c2
        + L1 * L2 * q4d2 * M2 * c2
        - L1 * q2d1 * G * M1 * s1
        - L1 * q2d1 * G * M2 * s1
        - L2 * qd1**2 * G * M2 * c12
        - L2 * qd2**2 * G * M2 * c12
        - 6 * L1 * L2 * q2d1 * q2d2 * M2 * s2
        - 6 * L1 * L2 * q3d1 * qd2 * M2 * s2
        - 2 * L1 * L2 * q3d2 * qd1 * M2 * s2
        - 4 * L1 * L2 * q3d2 * qd2 * M2 * s2
        - 6 * L1 * L2 * q2d1 * qd2**2 * M2 * c2
        - 6 * L1 * L2 * q2d2 * qd2**2 * M2 * c2
        + 2 * L1 * L2 * qd1 * qd2**3 * M2 * s2
        - 2 * L2 * qd1 * qd2 * G * M2 * c12
        - 6 * L1 * L2 * q2d2 * qd1 * qd2 * M2 * c2
    )
    tau2d2 = (
        -L2
        * M2
        * (
            qd1**2 * G * c12
            - L2 * q4d2
            - L2 * q4d1
            + qd2**2 * G * c12
            - 2 * L1 * q2d1**2 * s2
            + q2d1 * G * s12
            + q2d2 * G * s12
            - L1 * q4d1 * c2
            + L1 * qd1**2 * qd2**2 * s2
            + 2 * qd1 * qd2 * G * c12
            + L1 * q2d1 * q2d2 * s2
            - 2 * L1 * q3d1 * qd1 * s2
            + 2 * L1 * q3d1 * qd2 * s2
            + L1 * q2d1 * qd2**2 * c2
            - L1 * q2d2 * qd1**2 * c2
            - 4 * L1 * q2d1 * qd1 * qd2 * c2
        )
    )
    return np.stack(
        [np.stack(pair, -1) for pair in ((tau1, tau2), (taud1, taud2), (tau2d1, tau2d2))],
        axis=1,
    )


def compute(samples: int) -> Result:
    """Torques by the package and by the printed expressions."""
    times = np.linspace(0.0, DURATION, samples)
    motion = swinging(times)
    return Result(
        times, inverse_dynamics(two_link_arm(), motion), printed_expressions(motion)
    )


def draw(result: Result, path: Path) -> None:
    """Draw torques and derivatives, and the difference between both ways."""
    figure, axes = tools.new_figure(3, 2, (10.0, 7.5))
    for order, (left, right) in enumerate(axes):
        lines = tools.draw_joints(left, result.times, result.computed[:, order])
        tools.draw_points(left, result.times, result.printed[:, order], 40)
        left.set_ylabel(tools.label(r'\tau', order))
        difference = result.computed[:, order] - result.printed[:, order]
        for j in range(2):
            right.plot(result.times, difference[:, j], '.', ms=2.5, color=f'C{j}')
        right.ticklabel_format(axis='y', style='sci', scilimits=(0, 0))
        right.set_ylabel(f'[{tools.unit(order)}]')
    axes[0, 0].set_title('torque and its time derivatives')
    axes[0, 1].set_title('difference to the printed expressions (rounding)')
    tools.legend(figure, lines, 'expressions printed in the paper')
    figure.suptitle('Planar 2R arm')
    tools.save(figure, path)


def main(argv: Sequence[str] | None = None) -> int:
    """Compute, print the differences and draw; return 0 if they are rounding only."""
    arguments = tools.arguments(__doc__, 801, argv)
    result = compute(arguments.samples)
    errors = tools.relative_errors(result.computed, result.printed)
    print('2R arm: difference to the printed expressions, relative to the largest value')
    for name, error in zip(('tau', 'taud', 'tau2d'), errors):
        print(f'  {name:6}{error:9.1e}')
    if arguments.picture:
        draw(result, arguments.picture)
    return int(not np.all(errors <= TOLERANCE))


if __name__ == '__main__':
    sys.exit(main())
