"""An independent oracle for mechanisms with closed loops: power series and complex steps.

The loops are equations between points and directions of links, f(q(t)) = 0, written with the power
series of the links' poses. Their Jacobian along the motion is the imaginary part of f at q + i h.
Positions of dependent joints follow order by order from f, velocities per velocity of an
independent joint from the Jacobian, efforts by virtual work from those of the open tree, which
`oracles.taylor_rnea` computes. No twist, no screw, no formula for a derivative of L.
"""

from typing import NamedTuple

import numpy as np
from support.oracles import mimic_of, read_urdf, taylor_rnea

COMPLEX = np.clongdouble
STEP = 1e-60


class LoopEquation(NamedTuple):
    """A loop as its kind and the frames on both links, poses in the links."""

    kind: str
    link_a: str
    link_b: str
    pose_a: np.ndarray
    pose_b: np.ndarray
    axis: np.ndarray


class LoopOracle:
    """Efforts of a mechanism from the URDF of its tree and the equations of its loops."""

    def __init__(self, xml, joint_names, independent, equations, gravity):
        self.xml, self.names, self.gravity = xml, list(joint_names), gravity
        self.tree, self.equations = read_urdf(xml), equations
        self.u = [self.names.index(name) for name in independent]
        self.d = [j for j in range(len(self.names)) if j not in self.u]

    def __call__(self, motion, guess):
        """Motion of all joints (K, N) and efforts (K-2, n), from those of the independent ones.

        `guess` are positions (N,) of all joints near those that are meant.
        """
        K = len(motion)
        factorials = np.cumprod([1.0, *range(1, K)]).astype(np.longdouble)
        q = np.zeros((K, len(self.names)), dtype=np.longdouble)
        q[0] = guess
        q[:, self.u] = motion / factorials[:, None]
        for _ in range(30):
            q[0, self.d] -= self._least(
                self.jacobian(q[:1])[0], self.residual(q[:1])[0].real
            )
        for k in range(1, K):
            q[k, self.d] -= self._least(
                self.jacobian(q[:1])[0], self.residual(q[: k + 1])[k].real
            )
        whole = np.asarray(q * factorials[:, None], dtype=float)
        Q = (
            taylor_rnea(self.xml, self.names, self.gravity, whole)
            / factorials[: K - 2, None]
        )
        G = self.velocities(q[: K - 2])
        efforts = np.stack(
            [sum(G[i].T @ Q[k - i] for i in range(k + 1)) for k in range(K - 2)]
        )
        return whole, np.asarray(efforts * factorials[: K - 2, None], dtype=float)

    def _least(self, J, right):
        return np.linalg.lstsq(J[:, self.d].astype(float), right.astype(float), rcond=1e-9)[
            0
        ]

    def velocities(self, q):
        """Series of the velocities of all joints by those of the independent ones."""
        J, G = self.jacobian(q), []
        for k in range(len(q)):
            Gk = np.zeros((len(self.names), len(self.u)))
            if k == 0:
                Gk[self.u, np.arange(len(self.u))] = 1.0
            rest = J[k][:, self.u].astype(float)
            for i in range(1, k + 1):
                rest = rest + J[i][:, self.d].astype(float) @ G[k - i][self.d]
            Gk[self.d] = -self._least(J[0], rest)
            G.append(Gk)
        return G

    def jacobian(self, q):
        """Series of the Jacobian, by one complex step for each joint."""
        columns = []
        for j in range(len(self.names)):
            stepped = q.astype(COMPLEX)
            stepped[0, j] += 1j * STEP
            columns.append(self.residual(stepped).imag / STEP)
        return np.stack(columns, axis=-1)

    def residual(self, q):
        """Series of all equations."""
        position, rotation = self.poses(q.astype(COMPLEX))
        found = []
        for item in self.equations:
            p_a, R_a = _frame(position[item.link_a], rotation[item.link_a], item.pose_a)
            p_b, R_b = _frame(position[item.link_b], rotation[item.link_b], item.pose_b)
            apart = _times(_turned(R_a), (p_b - p_a)[..., None])[..., 0]
            relative = _times(_turned(R_a), R_b)
            across = np.linalg.svd(item.axis[None])[2][1:]
            if item.kind in ('weld', 'slider'):
                skew = relative - _turned(relative)
                found.append(np.stack([skew[:, 2, 1], skew[:, 0, 2], skew[:, 1, 0]], -1))
            elif item.kind == 'hinge':
                found.append((relative @ item.axis) @ across.T)
            found.append(apart @ across.T if item.kind == 'slider' else apart)
        return np.concatenate(found, axis=-1)

    def poses(self, q):
        """Series of positions and rotations of all links."""
        position = {self.tree.root: np.zeros((len(q), 3), dtype=COMPLEX)}
        rotation = {self.tree.root: _constant(np.eye(3), len(q))}
        for joint in self.tree.joints:
            R = rotation[joint.parent] @ joint.rotation
            p = position[joint.parent] + rotation[joint.parent] @ joint.translation
            if joint.type != 'fixed':
                name, multiplier, offset = mimic_of(joint, self.tree.joints)
                value = multiplier * q[:, self.names.index(name)]
                value[0] += offset
                if joint.type == 'prismatic':
                    along = R @ joint.axis
                    p = p + _times(along[..., None], value[:, None, None])[..., 0]
                else:
                    R = _times(R, _turn(joint.axis, value))
            position[joint.child], rotation[joint.child] = p, R
        return position, rotation


def oracle_of(model, xml):
    """Oracle of a model with closed loops, whose tree the URDF describes."""
    closure = model.closure
    equations = [
        LoopEquation(
            loop.kind, loop.link_a, loop.link_b, loop.pose_a, loop.pose_b, loop.axis
        )
        for loop in closure.loops
    ]
    return LoopOracle(
        xml, closure.tree.joint_names, model.joint_names, equations, closure.tree.gravity
    )


def _constant(value, K):
    series = np.zeros((K, *np.shape(value)), dtype=COMPLEX)
    series[0] = value
    return series


def _turned(matrices):
    return np.swapaxes(matrices, -1, -2)


def _times(a, b):
    return np.stack([sum(a[i] @ b[k - i] for i in range(k + 1)) for k in range(len(a))])


def _frame(p, R, pose):
    return p + R @ pose[:3, 3], R @ pose[:3, :3]


def _turn(axis, angle):
    """Series of exp(i angle) order by order, then Rodrigues' formula."""
    wave = np.zeros((2, len(angle)), dtype=COMPLEX)  # sine and cosine
    wave[:, 0] = np.sin(angle[0]), np.cos(angle[0])
    for k in range(1, len(angle)):
        for i in range(k):
            rate = (k - i) * angle[k - i] / k
            wave[:, k] += wave[1, i] * rate, -wave[0, i] * rate
    x, y, z = axis
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    R = wave[0][:, None, None] * cross - wave[1][:, None, None] * (cross @ cross)
    R[0] += np.eye(3) + cross @ cross
    return R
