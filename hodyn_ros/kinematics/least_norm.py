"""Joint positions of least-norm joint velocities along a sampled motion of a link.

Between two samples, the origin and the quaternion of the link are the polynomials that have the
given derivatives at both ends (Hermite interpolation). The joint positions are the solution of
the differential equation of the criterion along this path. At the samples it has exactly the
derivatives of `inverse_orders`, whatever the distance of the samples is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.interpolate import BPoly
from scipy.spatial.transform import Rotation

from hodyn_ros.kinematics.inverse_orders import kkt_matrix, wanted_velocity
from hodyn_ros.kinematics.redundancy import Criterion, TaskSystem
from hodyn_ros.lie import leibniz
from hodyn_ros.lie.so3 import cross

Array = NDArray[np.float64]

RELATIVE_TOLERANCE = 1e-12
ABSOLUTE_TOLERANCE = 1e-13


class SampledPath:
    """Hybrid twist of a link and rates of the joint tasks at any time between the samples.

    Parameters
    ----------
    times : ndarray, shape (T,)
        [s]
    pose : ndarray, shape (T, 4, 4)
    V : ndarray, shape (T, K-1, 6)
        Hybrid twist and derivatives, K >= 2.
    c : ndarray, shape (T, K, p)
        Joint tasks.
    """

    def __init__(self, times: Array, pose: Array, V: Array, c: Array) -> None:
        quaternion = quaternion_series(pose[:, :3, :3], V[..., :3])
        origin = np.concatenate([pose[:, None, :3, 3], V[..., 3:]], axis=1)
        series = np.concatenate([quaternion, origin, c], axis=-1)
        self._path = BPoly.from_derivatives(times, series)
        self._rate = self._path.derivative()

    def rates(self, t: float) -> tuple[Array, Array]:
        """Twist, shape (6,), and rates of the joint tasks, shape (p,), at a time."""
        p, rate = self._path(t)[:4], self._rate(t)
        # omega = 2 dp/dt conjugate(p) / |p|^2; the polynomial is of length 1 at its ends only.
        omega = _multiplied(rate[:4], np.concatenate([-p[:3], p[3:]]))[:3] * (2.0 / (p @ p))
        return np.concatenate([omega, rate[4:7]]), rate[7:]


def quaternion_series(R: Array, omega: Array) -> Array:
    """Differentiate the unit quaternions (x, y, z, w) of rotations.

    Parameters
    ----------
    R : ndarray, shape (T, 3, 3)
        In order of time: the signs are such that successive quaternions are close.
    omega : ndarray, shape (T, K-1, 3)
        Angular velocity in fixed axes and its derivatives.

    Returns
    -------
    ndarray, shape (T, K, 4)
    """
    first = Rotation.from_matrix(R).as_quat()
    turned = np.sum(first[1:] * first[:-1], axis=1) < 0.0
    signs = np.concatenate([[1.0], np.cumprod(np.where(turned, -1.0, 1.0))])
    series: Array = (first * signs[:, None])[:, None]
    half = np.concatenate([0.5 * omega, np.zeros((*omega.shape[:-1], 1))], axis=-1)
    for k in range(omega.shape[1]):
        # dp/dt = (omega / 2) p, differentiated k times.
        product = leibniz.bilinear(_multiplied, half, series, k + 1)
        series = np.concatenate([series, product[:, k:]], axis=1)
    return series


def integrate(
    system: TaskSystem,
    criterion: Criterion,
    path: SampledPath,
    interval: tuple[float, float],
    q: Array,
    check: Callable[[Array], None],
) -> Array | None:
    """Joint positions at the end of an interval.

    Parameters
    ----------
    system : TaskSystem
    criterion : Criterion
    path : SampledPath
    interval : (float, float)
        Begin and end [s].
    q : ndarray, shape (n,)
        Positions at the begin.
    check : callable
        Called with each matrix of the equations on the way; may raise.

    Returns
    -------
    ndarray, shape (n,)
        None if the integration fails.
    """
    unknown, scale = system.unknown, system.joint_scale[system.unknown]
    weights = criterion.weights[unknown]

    def velocity(t: float, x: Array) -> Array:
        position = q.copy()
        position[unknown] = x * scale
        M = system.matrix(system.chain.pose_and_jacobian(position[None])[1][0])
        check(M)
        V, cd = path.rates(t)
        right = np.concatenate(
            [weights * wanted_velocity(system, criterion, position), system.right_side(V, cd)]
        )
        return np.asarray(np.linalg.solve(kkt_matrix(M, weights), right)[: len(unknown)])

    solution = solve_ivp(
        velocity,
        interval,
        q[unknown] / scale,
        method='DOP853',
        rtol=RELATIVE_TOLERANCE,
        atol=ABSOLUTE_TOLERANCE,
        # Samples are mostly so close that one step suffices.
        first_step=interval[1] - interval[0],
    )
    if not solution.success:
        return None
    end = q.copy()
    end[unknown] = solution.y[:, -1] * scale
    return end


def _multiplied(p: Array, r: Array) -> Array:
    """Product of quaternions (x, y, z, w), broadcasting."""
    vector = p[..., 3:] * r[..., :3] + r[..., 3:] * p[..., :3] + cross(p[..., :3], r[..., :3])
    scalar = p[..., 3:] * r[..., 3:] - np.sum(p[..., :3] * r[..., :3], axis=-1, keepdims=True)
    return np.concatenate([vector, scalar], axis=-1)
