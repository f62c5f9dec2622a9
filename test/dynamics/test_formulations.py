"""Every formulation at orders up to 8, and the first and second derivatives that papers print.

The printed expressions are written here as on the pages `doc/formulations`, with matrices for one
sample; the package has any order from the equations for one moment.
"""

import numpy as np
import pytest
from scipy.linalg import block_diag, expm
from support.oracles import taylor_terms
from support.random_trees import (
    random_gravity,
    random_motion,
    random_robot,
    random_screw_model,
    random_wrenches,
)

from hodyn_ros import RobotModel, Wrench, inverse_dynamics
from hodyn_ros.dynamics import FORMULATIONS
from hodyn_ros.lie import se3, so3

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')

ANY_ORDER = [name for name in FORMULATIONS if FORMULATIONS[name].highest_order is None]


@pytest.mark.parametrize('seeds', [range(2), range(2, 12)])
def test_all_orders_up_to_eight_match_power_series(seeds):
    for seed in seeds:
        tree = random_robot(seed)
        model = RobotModel.from_urdf(tree.xml, gravity=random_gravity(seed))
        motion = random_motion(seed, model.n_joints, 11, (1,))
        cases = random_wrenches(seed, tree.links[1:], 11)
        terms = taylor_terms(tree.xml, model.joint_names, model.gravity, motion, cases)
        wrenches = [Wrench(*case) for case in cases]
        scale = np.abs(terms).max(axis=(0, 1, 3))
        for algorithm in ANY_ORDER:
            found = inverse_dynamics(model, motion, wrenches, algorithm)
            error = np.abs(found - terms.sum(axis=0))[0].max(axis=1)
            # Rounding: 1.3e-12 of the eighth derivative were seen.
            assert (error <= 3e-12 * scale).all(), algorithm


def case(seed, K):
    """Tree of revolute, prismatic and helical joints, a motion, wrenches on some bodies."""
    model = random_screw_model(seed)
    applied = np.random.default_rng(seed).normal(size=(model.n_bodies, 1, K - 2, 6))
    coordinates = random_motion(seed, model.n_bodies, K, (1,))
    return model, coordinates, dict(enumerate(applied[::2]))


@pytest.mark.parametrize('seeds', [range(2), range(2, 12)])
def test_all_formulations_agree_on_helical_joints(seeds):
    for seed in seeds:
        arguments = case(seed, 11)
        expected = FORMULATIONS['lagrange'].body_efforts(*arguments)[0]
        scale = np.abs(expected).max(axis=1, keepdims=True)
        for name, formulation in FORMULATIONS.items():
            found = formulation.body_efforts(*arguments)[0]
            assert (np.abs(found - expected) <= 1e-12 * scale).all(), name


# --- What the papers print ----------------------------------------------------------------------


def poses_of(model, q):
    """Poses of the bodies in their parents and in the base, by the exponential of a matrix."""
    relative, poses = [], []
    for i, p in enumerate(model.parent):
        screw = np.zeros((4, 4))
        screw[:3, :3], screw[:3, 3] = so3.hat(model.X[i, :3]), model.X[i, 3:]
        relative.append(model.B[i] @ expm(q[i] * screw))
        poses.append(relative[i] if p < 0 else poses[p] @ relative[i])
    return relative, poses


def body_fixed(model, coordinates, applied):
    """Mueller 2021, Appendix B, differentiated once more for the jounce and the wrenches."""
    q, qd, q2d, q3d, q4d = coordinates
    ad, rest = se3.ad, np.zeros(6)
    A = [se3.Ad(np.linalg.inv(C)) for C in poses_of(model, q)[0]]
    V = {-1: (rest, np.r_[0, 0, 0, -model.gravity], rest, rest)}
    W = []
    for i, p in enumerate(model.parent):
        x, M = model.X[i], model.M_body[i]
        A0, A1, A2, A3 = (A[i] @ y for y in V[p])
        X = ad(x)
        V0 = A0 + x * qd[i]
        V1 = A1 - qd[i] * X @ V0 + x * q2d[i]
        V2 = A2 - qd[i] * X @ A1 - q2d[i] * X @ V0 - qd[i] * X @ V1 + x * q3d[i]
        V3 = A3 - 2 * qd[i] * X @ A2 - q2d[i] * X @ A1 + qd[i] ** 2 * X @ X @ A1
        V3 += x * q4d[i] - q3d[i] * X @ V0 - 2 * q2d[i] * X @ V1 - qd[i] * X @ V2
        V[i] = V0, V1, V2, V3
        P0, P1, P2, P3 = (M @ y for y in V[i])
        app = applied.get(i, np.zeros((3, 6)))
        W0 = P1 - ad(V0).T @ P0
        W1 = P2 - ad(V0).T @ P1 - ad(V1).T @ P0
        W2 = P3 - ad(V0).T @ P2 - 2 * ad(V1).T @ P1 - ad(V2).T @ P0
        W.append([W0 + app[0], W1 + app[1], W2 + app[2]])
    for i in reversed(range(model.n_bodies)):
        W0, W1, W2 = W[i]
        X = ad(model.X[i]).T
        W1 = W1 - qd[i] * X @ W0
        W2 = W2 - 2 * qd[i] * X @ W[i][1] - q2d[i] * X @ W0 + qd[i] ** 2 * X @ X @ W0
        if (p := model.parent[i]) >= 0:
            W[p] = [y + A[i].T @ z for y, z in zip(W[p], (W0, W1, W2))]
    return np.transpose([np.array(W[i]) @ model.X[i] for i in range(model.n_bodies)])


def spatial(model, coordinates, applied):
    """Mueller 2021, eqs. (9), (16), (19), (22), (23) to (25) with its sign corrected, (31)."""
    q, qd, q2d, q3d, q4d = coordinates
    ad, rest, G = se3.ad, np.zeros(6), np.r_[0, 0, 0, -model.gravity]
    V, S, W = {-1: (rest, rest, rest, rest)}, [], []
    for i, (p, C) in enumerate(zip(model.parent, poses_of(model, q)[1])):
        S0 = se3.Ad(C) @ model.X[i]
        V0 = V[p][0] + S0 * qd[i]
        a0 = ad(V0)
        S1 = a0 @ S0
        V1 = V[p][1] + S0 * q2d[i] + S1 * qd[i]
        a1 = ad(V1)
        S2 = (a1 + a0 @ a0) @ S0
        V2 = V[p][2] + S0 * q3d[i] + 2 * S1 * q2d[i] + S2 * qd[i]
        a2 = ad(V2)
        S3 = (a2 + 2 * a1 @ a0 + a0 @ a1 + a0 @ a0 @ a0) @ S0
        V3 = V[p][3] + S0 * q4d[i] + 3 * S1 * q3d[i] + 3 * S2 * q2d[i] + S3 * qd[i]
        V[i] = V0, V1, V2, V3
        S.append((S0, S1, S2))

        inverse = se3.Ad(np.linalg.inv(C))
        M = inverse.T @ model.M_body[i] @ inverse
        P0 = M @ V0
        P1 = M @ V1 - a0.T @ P0
        P2 = M @ (V2 - a0 @ V1) - 2 * a0.T @ P1 - (a1 + a0 @ a0).T @ P0
        P3 = M @ (V3 - 2 * a0 @ V2 + a0 @ a0 @ V1) - 3 * a0.T @ P2
        P3 -= 3 * (a1 + a0 @ a0).T @ P1
        P3 -= (a2 + 2 * a1 @ a0 + a0 @ a1 + a0 @ a0 @ a0).T @ P0
        K = M @ a0 @ a0 + a0.T @ M @ a0 - M @ a1
        b0, b1, b2 = applied.get(i, np.zeros((3, 6))) @ inverse
        W0 = b0
        W1 = b1 - a0.T @ W0
        W2 = b2 - a0.T @ b1 - a1.T @ W0 - a0.T @ W1
        W.append(
            [P1 + M @ G + W0, P2 - (M @ a0 + a0.T @ M) @ G + W1, P3 + (K + K.T) @ G + W2]
        )
    efforts = []
    for i in reversed(range(model.n_bodies)):
        (S0, S1, S2), (W0, W1, W2) = S[i], W[i]
        efforts.append([S0 @ W0, S0 @ W1 + S1 @ W0, S0 @ W2 + 2 * S1 @ W1 + S2 @ W0])
        if (p := model.parent[i]) >= 0:
            W[p] = [y + z for y, z in zip(W[p], W[i])]
    return np.transpose(efforts[::-1])


def closed_form(model, coordinates, applied):
    """Mueller and Kumar 2021, eqs. (8) to (53), the first term of (43) corrected."""
    q, qd, q2d, q3d, q4d = coordinates
    n = model.n_bodies
    A = np.zeros((n, 6, n, 6))
    poses = poses_of(model, q)[1]
    for i in range(n):
        j = i
        while j >= 0:
            A[i, :, j] = se3.Ad(np.linalg.inv(poses[i]) @ poses[j])
            j = model.parent[j]
    A = A.reshape(6 * n, 6 * n)
    M, X = block_diag(*model.M_body), block_diag(*model.X[:, :, None])
    J = A @ X
    U = np.concatenate([se3.Ad(np.linalg.inv(C)) for C in poses])
    UG = U @ np.r_[0, 0, 0, -model.gravity]
    W0, W1, W2 = np.concatenate(
        [applied.get(i, np.zeros((3, 6))) for i in range(n)], axis=1
    )

    a, ad, a2d = (
        block_diag(*(x * se3.ad(y) for x, y in zip(r, model.X))) for r in (qd, q2d, q3d)
    )
    Aa, Aad, Aaa = A @ a, A @ ad, A @ a @ a
    V0 = J @ qd
    V1 = J @ q2d - Aa @ V0  # (15)
    V2 = J @ q3d - 2 * Aa @ J @ q2d + (2 * Aa @ Aa - Aaa - Aad) @ V0
    b, bd, b2d = (block_diag(*se3.ad(y.reshape(n, 6))) for y in (V0, V1, V2))
    MA, MAa, MAad = M @ A, M @ Aa, M @ Aad
    C0 = -MAa - b.T @ M  # (22)
    M1 = -MAa - MAa.T  # (30)
    C1 = -MAad - bd.T @ M + MAa @ Aa - MAa @ a - C0 @ Aa - Aa.T @ C0  # (34)
    M2 = -MAad + MAa @ Aa - MAa @ a - M1 @ Aa  # (43)
    M2 = M2 + M2.T
    C2 = -MA @ a2d - b2d.T @ M - 2 * C1 @ Aa - 2 * Aa.T @ C1  # (50)
    C2 -= C0 @ Aad + Aad.T @ C0 + 2 * Aa.T @ C0 @ Aa + C0 @ Aaa + Aaa.T @ C0
    C2 += MAad @ Aa + 2 * MAa @ Aad - 2 * MAa @ Aa @ Aa + 2 * MAa @ Aaa
    C2 -= 3 * MAa @ ad + MAa @ a @ a - MAa @ a @ Aa
    turned = 2 * Aa @ Aa - Aad - Aaa

    def reduced(matrix):
        return J.T @ matrix @ J

    Q0 = reduced(M) @ q2d + reduced(C0) @ qd + J.T @ (M @ UG + W0)  # (1)
    Q1 = reduced(M) @ q3d + reduced(M1 + C0) @ q2d + reduced(C1) @ qd  # (28)
    Q1 += J.T @ (M1 @ UG + W1 - Aa.T @ W0)  # (36), (37)
    Q2 = reduced(M) @ q4d + reduced(2 * M1 + C0) @ q3d + reduced(M2 + 2 * C1) @ q2d  # (38)
    Q2 += reduced(C2) @ qd + J.T @ (
        M2 @ UG + W2 - 2 * Aa.T @ W1 + turned.T @ W0
    )  # (52), (53)
    return np.array([Q0, Q1, Q2])


@pytest.mark.every_case
@pytest.mark.parametrize('printed', [body_fixed, spatial, closed_form])
def test_printed_derivatives_are_those_of_any_order(printed):
    for seed in range(3):
        model, coordinates, applied = case(seed, 5)
        found = FORMULATIONS[printed.__name__].body_efforts(model, coordinates, applied)[0]
        one = {i: W[0] for i, W in applied.items()}
        expected = printed(model, coordinates[0], one)
        scale = np.abs(expected).max(axis=1, keepdims=True)
        assert (np.abs(found - expected) <= 1e-12 * scale).all()
