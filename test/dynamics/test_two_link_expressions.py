"""The planar arm with two links whose efforts a paper prints as explicit expressions.

Source: Mueller and Kumar 2021, "Closed-form time derivatives of the equations of motion of rigid
body systems", section 6.1: point masses at the ends of the links, joint axes along z, gravity
along -y. All six expressions hold as printed. In the inertia matrices printed there the entries
(1, 1) should be zero, as a point mass on the x axis has no inertia about it; they play no part in
a planar motion.
"""

import dataclasses

import numpy as np
import pytest
from support.robots import TWO_LINK

from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.dynamics.inverse import FORMULATIONS

# Each with the highest order that it computes, of the orders that are printed.
ALGORITHMS = {
    'auto': 2,
    **{
        name: 2 if formulation.highest_order is None else min(2, formulation.highest_order)
        for name, formulation in FORMULATIONS.items()
    },
}
SAMPLES = 200


def two_link_arm(L1, L2, m1, m2, g, printed_inertia=False):
    """The arm with the screws, zero poses and inertias of the paper."""

    def point_mass(m, L):
        M = np.diag([m * L**2 if printed_inertia else 0.0, m * L**2, m * L**2, m, m, m])
        M[2, 4] = M[4, 2] = m * L
        M[1, 5] = M[5, 1] = -m * L
        return M

    B = np.stack([np.eye(4), np.eye(4)])
    B[1, 0, 3] = L1
    return dataclasses.replace(
        RobotModel.from_urdf(TWO_LINK),
        gravity=np.array([0.0, -g, 0.0]),
        B=B,
        X=np.tile([0.0, 0.0, 1.0, 0.0, 0.0, 0.0], (2, 1)),
        M_body=np.stack([point_mass(m1, L1), point_mass(m2, L2)]),
    )


def printed_efforts(L1, L2, m1, m2, g, motion):
    """The six expressions, term by term in the order in which they are printed."""
    (q1, q2), (qd1, qd2), (q2d1, q2d2), (q3d1, q3d2), (q4d1, q4d2) = np.moveaxis(
        motion, (-2, -1), (0, 1)
    )
    sin, cos = np.sin, np.cos
    tau1 = (
        L1**2 * q2d1 * m1
        + L1**2 * q2d1 * m2
        + L2**2 * q2d1 * m2
        + L2**2 * q2d2 * m2
        + L2 * g * m2 * cos(q1 + q2)
        + L1 * g * m1 * cos(q1)
        + L1 * g * m2 * cos(q1)
        - L1 * L2 * qd2**2 * m2 * sin(q2)
        + 2 * L1 * L2 * q2d1 * m2 * cos(q2)
        + L1 * L2 * q2d2 * m2 * cos(q2)
        - 2 * L1 * L2 * qd1 * qd2 * m2 * sin(q2)
    )
    tau2 = (
        L2
        * m2
        * (
            L1 * sin(q2) * qd1**2
            + L2 * q2d1
            + L2 * q2d2
            + g * cos(q1 + q2)
            + L1 * q2d1 * cos(q2)
        )
    )
    taud1 = (
        L1**2 * q3d1 * m1
        + L1**2 * q3d1 * m2
        + L2**2 * q3d1 * m2
        + L2**2 * q3d2 * m2
        - L2 * qd1 * g * m2 * sin(q1 + q2)
        - L2 * qd2 * g * m2 * sin(q1 + q2)
        + 2 * L1 * L2 * q3d1 * m2 * cos(q2)
        + L1 * L2 * q3d2 * m2 * cos(q2)
        - L1 * qd1 * g * m1 * sin(q1)
        - L1 * qd1 * g * m2 * sin(q1)
        - L1 * L2 * qd2**3 * m2 * cos(q2)
        - 4 * L1 * L2 * q2d1 * qd2 * m2 * sin(q2)
        - 2 * L1 * L2 * q2d2 * qd1 * m2 * sin(q2)
        - 3 * L1 * L2 * q2d2 * qd2 * m2 * sin(q2)
        - 2 * L1 * L2 * qd1 * qd2**2 * m2 * cos(q2)
    )
    taud2 = (
        L2
        * m2
        * (
            L2 * q3d1
            + L2 * q3d2
            - qd1 * g * sin(q1 + q2)
            - qd2 * g * sin(q1 + q2)
            + L1 * q3d1 * cos(q2)
            + 2 * L1 * q2d1 * qd1 * sin(q2)
            - L1 * q2d1 * qd2 * sin(q2)
            + L1 * qd1**2 * qd2 * cos(q2)
        )
    )
    tau2d1 = (
        L1**2 * q4d1 * m1
        + L1**2 * q4d1 * m2
        + L2**2 * q4d1 * m2
        + L2**2 * q4d2 * m2
        - 3 * L1 * L2 * q2d2**2 * m2 * sin(q2)
        + L1 * L2 * qd2**4 * m2 * sin(q2)
        - L1 * qd1**2 * g * m1 * cos(q1)
        - L1 * qd1**2 * g * m2 * cos(q1)
        - L2 * q2d1 * g * m2 * sin(q1 + q2)
        - L2 * q2d2 * g * m2 * sin(q1 + q2)
        + 2 * L1 * L2 * q4d1 * m2 * cos(q2)
        + L1 * L2 * q4d2 * m2 * cos(q2)
        - L1 * q2d1 * g * m1 * sin(q1)
        - L1 * q2d1 * g * m2 * sin(q1)
        - L2 * qd1**2 * g * m2 * cos(q1 + q2)
        - L2 * qd2**2 * g * m2 * cos(q1 + q2)
        - 6 * L1 * L2 * q2d1 * q2d2 * m2 * sin(q2)
        - 6 * L1 * L2 * q3d1 * qd2 * m2 * sin(q2)
        - 2 * L1 * L2 * q3d2 * qd1 * m2 * sin(q2)
        - 4 * L1 * L2 * q3d2 * qd2 * m2 * sin(q2)
        - 6 * L1 * L2 * q2d1 * qd2**2 * m2 * cos(q2)
        - 6 * L1 * L2 * q2d2 * qd2**2 * m2 * cos(q2)
        + 2 * L1 * L2 * qd1 * qd2**3 * m2 * sin(q2)
        - 2 * L2 * qd1 * qd2 * g * m2 * cos(q1 + q2)
        - 6 * L1 * L2 * q2d2 * qd1 * qd2 * m2 * cos(q2)
    )
    tau2d2 = (
        -L2
        * m2
        * (
            qd1**2 * g * cos(q1 + q2)
            - L2 * q4d2
            - L2 * q4d1
            + qd2**2 * g * cos(q1 + q2)
            - 2 * L1 * q2d1**2 * sin(q2)
            + q2d1 * g * sin(q1 + q2)
            + q2d2 * g * sin(q1 + q2)
            - L1 * q4d1 * cos(q2)
            + L1 * qd1**2 * qd2**2 * sin(q2)
            + 2 * qd1 * qd2 * g * cos(q1 + q2)
            + L1 * q2d1 * q2d2 * sin(q2)
            - 2 * L1 * q3d1 * qd1 * sin(q2)
            + 2 * L1 * q3d1 * qd2 * sin(q2)
            + L1 * q2d1 * qd2**2 * cos(q2)
            - L1 * q2d2 * qd1**2 * cos(q2)
            - 4 * L1 * q2d1 * qd1 * qd2 * cos(q2)
        )
    )
    pairs = [(tau1, tau2), (taud1, taud2), (tau2d1, tau2d2)]
    return np.stack([np.stack(pair, axis=-1) for pair in pairs], axis=-2)


@pytest.mark.parametrize('printed_inertia', [False, True])
@pytest.mark.parametrize('algorithm', ALGORITHMS)
def test_efforts_are_the_printed_expressions(algorithm, printed_inertia):
    rng = np.random.default_rng(2)
    for _ in range(5):
        parameters = rng.uniform(0.2, 3.0, 5)
        motion = rng.uniform(-3.0, 3.0, (SAMPLES, 5, 2))
        model = two_link_arm(*parameters, printed_inertia)
        order = ALGORITHMS[algorithm]
        effort = inverse_dynamics(model, motion[:, : order + 3], algorithm=algorithm)
        expected = printed_efforts(*parameters, motion)[:, : order + 1]
        scale = np.abs(expected).max(axis=(0, 2))
        assert np.all(np.abs(effort - expected).max(axis=(0, 2)) <= 1e-14 * scale)
