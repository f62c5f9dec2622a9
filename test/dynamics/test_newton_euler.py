"""The iterative Newton-Euler algorithm against the notes that it comes from, term by term.

`literal_iteration` is the complete formulation of section 7 of the notes for one chain and one
instant, typed from equations (170) to (187) for Craig's frames, whose z axis is the joint axis;
it shares nothing with hodyn_ros. test_inverse_dynamics.py compares random trees with the oracles.
"""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from support.random_trees import (
    random_gravity,
    random_motion,
)
from support.robots import PANDA_INERTIALS

from hodyn_ros import HodynError, RobotModel, Wrench, inverse_dynamics
from hodyn_ros.dynamics.newton_euler import centroidal_inertias

PANDA = Path(__file__).resolve().parents[2] / 'urdf' / 'panda.urdf'

# Modified Denavit-Hartenberg parameters (a, d, quarter turns of alpha) of the Panda.
PANDA_FRAMES = [
    (0.0, 0.333, 0),
    (0.0, 0.0, -1),
    (0.0, 0.316, 1),
    (0.0825, 0.0, 1),
    (-0.0825, 0.384, -1),
    (0.0, 0.0, 1),
    (0.088, 0.0, 1),
]


def links_of(table):
    links = []
    for line in table.strip().splitlines():
        m, x, y, z, xx, xy, xz, yy, yz, zz = map(float, line.split())
        I_C = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        links.append(SimpleNamespace(m=m, P_C=np.array([x, y, z]), I_C=I_C))
    return links


def literal_iteration(frames, kinds, links, G, motion, n_tip, f_tip):
    """Efforts of a chain by equations (170) to (187), for revolute (R) and prismatic (P) joints.

    n_tip and f_tip are exerted by the last link, about the origin of its frame and in its axes.
    """
    number = len(frames)
    Z = np.array([0.0, 0.0, 1.0])
    q, qd, q2d = motion

    R, P = [], []  # R[i] takes components from the axes of link i+1 to those of link i
    for (a, d, quarter_turns), kind, value in zip(frames, kinds, q):
        theta, advance = (value, d) if kind == 'R' else (0.0, d + value)
        ca, sa = {0: (1, 0), 1: (0, 1), -1: (0, -1)}[quarter_turns]
        c, s = np.cos(theta), np.sin(theta)
        R.append(np.array([[c, -s, 0], [s * ca, c * ca, -sa], [s * sa, c * sa, ca]]))
        P.append(np.array([a, -sa * advance, ca * advance]))

    omega, omegad, vd = np.zeros(3), np.zeros(3), -np.asarray(G)  # (183) to (185)
    F, N = [], []
    for i in range(number):
        to_next = R[i].T
        carried = to_next @ (
            np.cross(omegad, P[i]) + np.cross(omega, np.cross(omega, P[i])) + vd
        )
        if kinds[i] == 'R':
            vd = carried  # (172)
            # (171)
            omegad = to_next @ omegad + np.cross(to_next @ omega, qd[i] * Z) + q2d[i] * Z
            omega = to_next @ omega + qd[i] * Z  # (170)
        else:
            omega, omegad = to_next @ omega, to_next @ omegad  # (173), (174)
            vd = carried + 2 * np.cross(omega, qd[i] * Z) + q2d[i] * Z  # (175)
        link = links[i]
        # (176)
        vd_C = vd + np.cross(omegad, link.P_C) + np.cross(omega, np.cross(omega, link.P_C))
        F.append(link.m * vd_C)  # (177)
        N.append(link.I_C @ omegad + np.cross(omega, link.I_C @ omega))  # (178)

    tau = np.zeros(number)
    # Of a frame N+1 that coincides with frame N.
    n, f = (np.asarray(n_tip), np.asarray(f_tip))
    R_next, P_next = np.eye(3), np.zeros(3)
    for i in reversed(range(number)):
        # (180)
        n = N[i] + R_next @ n + np.cross(links[i].P_C, F[i]) + np.cross(P_next, R_next @ f)
        f = R_next @ f + F[i]  # (179)
        tau[i] = n @ Z if kinds[i] == 'R' else f @ Z  # (181), (182)
        R_next, P_next = R[i], P[i]
    return tau


@pytest.mark.parametrize('seed', range(10))
def test_panda_matches_the_notes_typed_literally(seed):
    gravity = random_gravity(seed)
    motion = random_motion(seed, 7, 3)
    tip = 10.0 * np.random.default_rng(seed).standard_normal(6)
    expected = literal_iteration(
        PANDA_FRAMES,
        'RRRRRRR',
        links_of(PANDA_INERTIALS),
        gravity,
        motion,
        tip[:3],
        tip[3:],
    )
    model = RobotModel.from_urdf(PANDA, gravity=gravity)
    effort = inverse_dynamics(
        model, motion, Wrench('panda_link7', tip[None]), algorithm='newton_euler'
    )
    assert effort.shape == (1, 7)
    np.testing.assert_allclose(
        effort[0], expected, rtol=0, atol=1e-14 * np.abs(expected).max()
    )


@pytest.mark.parametrize('seed', range(20))
def test_chain_of_both_kinds_of_joints_matches_the_notes_typed_literally(seed):
    rng = np.random.default_rng(seed)
    number = int(rng.integers(1, 7))
    kinds = ''.join(rng.choice(['R', 'P'], number))
    frames = [
        (*rng.uniform(-0.5, 0.5, 2), turns)
        for turns in rng.integers(-1, 2, number).tolist()
    ]
    links = []
    for _ in range(number):
        half = 0.1 * rng.standard_normal((3, 3))
        moments = half @ half.T
        links.append(
            SimpleNamespace(
                m=rng.uniform(0.1, 5.0),
                P_C=rng.uniform(-0.3, 0.3, 3),
                I_C=np.trace(moments) * np.eye(3) - moments,
            )
        )
    gravity = random_gravity(seed)
    model = RobotModel.from_dh(
        [(a, turns * np.pi / 2, d, 0.0) for a, d, turns in frames],
        'modified',
        joint_types=['revolute' if kind == 'R' else 'prismatic' for kind in kinds],
        inertias=[(link.m, link.P_C, link.I_C) for link in links],
        gravity=gravity,
    )
    motion = random_motion(seed, number, 3)
    tip = 10.0 * rng.standard_normal(6)
    expected = literal_iteration(frames, kinds, links, gravity, motion, tip[:3], tip[3:])
    wrench = Wrench(model.tip_link, tip[None])
    effort = inverse_dynamics(model, motion, wrench, algorithm='newton_euler')[0]
    np.testing.assert_allclose(
        effort, expected, rtol=0, atol=1e-13 * np.abs(expected).max()
    )


def test_inertias_about_centres_of_mass_are_those_of_the_description():
    mass, P_C, I_C = centroidal_inertias(RobotModel.from_urdf(PANDA))
    for i, link in enumerate(links_of(PANDA_INERTIALS)):
        assert mass[i] == link.m
        np.testing.assert_allclose(P_C[i], link.P_C, rtol=0, atol=1e-14)
        np.testing.assert_allclose(I_C[i], link.I_C, rtol=0, atol=1e-14)


def test_derivatives_are_refused():
    with pytest.raises(HodynError, match='newton_euler computes orders up to 0'):
        inverse_dynamics(
            RobotModel.from_urdf(PANDA), np.zeros((4, 7)), algorithm='newton_euler'
        )
