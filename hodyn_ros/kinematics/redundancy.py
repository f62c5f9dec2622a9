"""What determines the joints besides the motion of a link, and the equations that result.

The derivatives of joint positions are those of one smooth q(t) only if the criterion that resolves
a redundancy is differentiated, too. Two kinds of criteria are at hand: prescribed motions of
joints (joint space decomposition, Mueller 2021, remark 2), which are algebraic equations, and a
weighted least norm of the joint velocities, which makes q(t) the solution of a differential
equation.

Between two samples of that equation, the origin and the quaternion of the link are the polynomials
that have the given derivatives at both ends (Hermite interpolation). At the samples its solution
has exactly the derivatives of `joint_motions`, whatever the distance of the samples is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.checks import finite_array
from hodyn_ros.errors import HodynError, JointNameError, MotionError
from hodyn_ros.kinematics.closed_loops import within_reach
from hodyn_ros.kinematics.jacobian import pose_and_jacobian
from hodyn_ros.lie import Jet, jets
from hodyn_ros.lie.so3 import cross
from hodyn_ros.model.mechanism import Mechanism
from hodyn_ros.names import did_you_mean, listed
from hodyn_ros.typing import Array

TASK_ROWS = ('rx', 'ry', 'rz', 'x', 'y', 'z')
"""Rows of the hybrid twist: rotation about and translation along the axes of the base link."""

# Of the integration along a sampled motion.
RELATIVE_TOLERANCE = 1e-12
ABSOLUTE_TOLERANCE = 1e-13


@dataclass(frozen=True, eq=False)
class JointTask:
    """Prescribed motion of a joint, or of a linear combination of joints.

    Attributes
    ----------
    joints : str or mapping of str to float
        Name of a joint, or coefficients a_j of joints by name.
    values : array-like, shape (..., K)
        sum of a_j q_j and its time derivatives, as many as the joint motion is to have; leading
        axes broadcast with those of the link motion. [rad/s^k] or [m/s^k] for a single joint.

    Raises
    ------
    MotionError
        If the values or coefficients are not finite numbers.

    Examples
    --------
    The third joint of the Panda stays where it is while the tip moves:

    >>> import numpy as np
    >>> from hodyn_ros import JointTask, RobotModel, forward_kinematics, inverse_kinematics
    >>> model = RobotModel.from_urdf('panda')
    >>> motion = np.array([[0.1, -0.4, 0.2, -2.0, 0.1, 1.8, 0.8], np.ones(7)])
    >>> wanted = forward_kinematics(model, motion)
    >>> fixed = JointTask('panda_joint3', [0.2, 0.0])
    >>> found = inverse_kinematics(model, wanted, guess=motion[0], redundancy=fixed)
    >>> found.motion[:, 2].round(3), found.motion[1].round(3)
    (array([0.2, 0. ]), array([2.282, 1.099, 0.   , 0.989, 0.525, 1.046, 1.383]))
    """

    joints: str | Mapping[str, float]
    values: ArrayLike

    def __post_init__(self) -> None:
        given = self.coefficients
        coefficients = np.array(list(given.values()), dtype=np.float64)
        if not np.any(coefficients) or not np.all(np.isfinite(coefficients)):
            raise MotionError(
                f'Joint task {given}: expected finite coefficients that are not all zero.'
            )
        what = f'Joint task {list(given)}: the array of values'
        values = finite_array(what, self.values, MotionError)
        if values.ndim < 1:
            raise MotionError(
                f'{what} has shape {values.shape}, expected (..., K): a position and its K-1 time '
                'derivatives.'
            )
        values.setflags(write=False)
        object.__setattr__(self, 'values', values)

    @property
    def coefficients(self) -> dict[str, float]:
        """Coefficients a_j by the names of the joints."""
        return {self.joints: 1.0} if isinstance(self.joints, str) else dict(self.joints)


@dataclass(frozen=True, eq=False)
class LeastNorm:
    """Of all joint velocities that produce the twist, those closest to a wanted velocity.

    At every instant qd minimises the sum of w_j ((qd_j - z_j) / l_j)^2 with the wanted velocity
    z = -rate (q - posture), where l_j is 1 rad, or for a prismatic joint the characteristic
    length. With rate = 0 this is the weighted pseudo-inverse, qd = J^# V.

    Attributes
    ----------
    weights : array-like, shape (n,), optional
        w_j > 0 in model order, by default 1. A joint with a large weight moves little.
    posture : array-like, shape (n,), optional
        Joint positions towards which the redundancy is used [rad] or [m].
    rate : float or array-like, shape (n,)
        How fast [1/s]; needs a posture unless it is zero.

    Notes
    -----
    The joint positions of this criterion depend on the path, not on the pose alone: the solution
    is that of a differential equation which starts at the first sample.

    Examples
    --------
    The first joint of the Panda moves as little as the task lets it:

    >>> import numpy as np
    >>> from hodyn_ros import LeastNorm, RobotModel, forward_kinematics, inverse_kinematics
    >>> model = RobotModel.from_urdf('panda')
    >>> motion = np.array([[0.1, -0.4, 0.2, -2.0, 0.1, 1.8, 0.8], np.ones(7)])
    >>> wanted = forward_kinematics(model, motion)
    >>> stiff = LeastNorm(weights=[100.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    >>> found = inverse_kinematics(model, wanted, guess=motion[0], redundancy=stiff)
    >>> found.motion[1].round(3)
    array([0.016, 0.924, 1.768, 1.008, 1.364, 0.965, 0.706])
    """

    weights: ArrayLike | None = None
    posture: ArrayLike | None = None
    rate: ArrayLike = 0.0


def _some_positions(model: Mechanism) -> Array:
    """Positions (4, n) that are in no way special [rad] or [m], of loops near their start."""
    rng = np.random.default_rng(0)
    if model.closure is None:
        return rng.uniform(-1.0, 1.0, (4, model.n_joints))
    start = model.closure.start[model.closure.independent]
    return within_reach(model, start + rng.uniform(-0.1, 0.1, (4, model.n_joints)))


def _reach(model: Mechanism, link: str) -> float:
    """Sum of the distances [m] between successive joints up to a link, 1 if it is zero."""
    tree = model if model.closure is None else model.closure.tree
    offsets = [*tree.B[tree.bodies_to(link), :3, 3], tree.link(link).pose[:3, 3]]
    return float(sum(np.linalg.norm(offset) for offset in offsets)) or 1.0


def _full_turns(model: Mechanism, link: str) -> NDArray[np.bool_]:
    """Joints (n,) of which a full turn changes nothing for a link.

    There are none with closed loops: these may be on another branch after a full turn.
    """
    turns = np.zeros(model.n_joints, dtype=bool)
    path = [] if model.closure is not None else model.bodies_to(link)
    for i in path:
        omega, v, j = model.X[i, :3], model.X[i, 3:], model.coordinate[i]
        # A helical joint advances, a mimic joint of another ratio does not turn fully.
        pure = np.linalg.norm(omega) > 0.5 and abs(omega @ v) < 1e-12
        once = np.sum(model.coordinate[path] == j) == 1 and abs(model.multiplier[i]) == 1.0
        turns[j] = pure and once
    return turns


class TaskSystem(NamedTuple):
    """The linear equations for the unknown joints, made dimensionless.

    A linear row of the Jacobian is divided by the characteristic length, the column of a prismatic
    joint is multiplied by it, so that singular values do not depend on the unit of length.
    """

    model: Mechanism
    link: str
    rows: NDArray[np.intp]  # the m rows of the hybrid twist that are prescribed
    # The u joints to solve for; others do not move the link and stay.
    unknown: NDArray[np.intp]
    row_scale: Array  # units of the m rows: 1 rad or the characteristic length
    joint_scale: Array  # units of all n joints: 1 rad or the characteristic length
    A: Array  # coefficients of the p joint tasks in units of the joints, rows of length 1, (p, n)
    A_scale: Array  # units of the joint tasks, shape (p,)
    length: float  # the characteristic length [m]

    @classmethod
    def of(
        cls,
        model: Mechanism,
        link: str,
        task: Sequence[str],
        joint_tasks: Sequence[JointTask],
        length: float | None,
    ) -> TaskSystem:
        """Equations of a task, with its rows and unknowns chosen.

        Parameters
        ----------
        model : RobotModel
        link : str
        task : sequence of str
            Of `TASK_ROWS`, each at most once, in any order.
        joint_tasks : sequence of JointTask
        length : float or None
            Characteristic length [m], by default the distances between the joints up to the link.

        Raises
        ------
        HodynError
            If no joint moves the link, if rows are unknown or repeated, if there are more
            equations than joints, or if some rotations are prescribed where the joints make
            others, too.
        JointNameError
            If a joint task names a joint that is not an independent one.
        """
        J = pose_and_jacobian(model, link, _some_positions(model)[:, None], 'hybrid')[1][
            :, 0
        ]
        moving = np.abs(J).max(axis=(0, 1)) > 1e-9
        if not moving.any():
            raise HodynError(
                f'No joint moves the link {link!r}, so its motion determines no joint motion.'
            )
        names = list(task)
        if not names or len(set(names)) < len(names) or not set(names) <= set(TASK_ROWS):
            raise HodynError(
                f'task is {tuple(names)!r}, expected one or more of {", ".join(TASK_ROWS)}, each '
                'once.'
            )
        rows = np.array(sorted(TASK_ROWS.index(name) for name in names), dtype=np.intp)
        length = _reach(model, link) if length is None else float(length)
        joint_scale = np.where(np.array(model.joint_types) == 'prismatic', length, 1.0)
        A = np.zeros((len(joint_tasks), model.n_joints))
        for row, joint_task in zip(A, joint_tasks):
            for name, value in joint_task.coefficients.items():
                if name not in model.joint_names:
                    raise JointNameError(
                        f'Joint task on {name!r}{did_you_mean(name, model.joint_names)}, which is '
                        'no independent joint of the model; these are '
                        f'{listed(model.joint_names)}.'
                    )
                row[model.joint_names.index(name)] = value
        A = A * joint_scale
        A_scale = np.linalg.norm(A, axis=1)
        unknown = np.flatnonzero(moving | np.any(A != 0.0, axis=0))
        scales = np.where(rows < 3, 1.0, length), joint_scale
        tasks = A / A_scale[:, None], A_scale
        system = cls(model, link, rows, unknown, *scales, *tasks, length)
        system._check(J)
        return system

    @property
    def n_rows(self) -> int:
        """Number m + p of equations."""
        return len(self.rows) + len(self.A)

    @property
    def redundancy(self) -> int:
        """Number of unknown joints that the equations leave open."""
        return len(self.unknown) - self.n_rows

    @property
    def scale(self) -> Array:
        """Units of the unknown joints, shape (u,)."""
        return self.joint_scale[self.unknown]

    @property
    def ignored_rotations(self) -> NDArray[np.intp]:
        """Rows of the rotations that are not prescribed while others are; may be empty."""
        turning = self.rows[self.rows < 3]
        return np.setdiff1d(np.arange(3), turning) if len(turning) else turning

    def periodic(self, lower: Array, upper: Array) -> NDArray[np.bool_]:
        """Joints of which every angle lies within the limits, and a full turn changes nothing.

        Parameters
        ----------
        lower, upper : ndarray, shape (n,)
            Limits of the positions [rad] or [m], infinite where there are none.

        Returns
        -------
        ndarray of bool, shape (n,)
        """
        free = _full_turns(self.model, self.link) & ~np.any(self.A, axis=0)
        return np.asarray(free & (upper - lower >= 2.0 * np.pi))

    def at(self, q: Array) -> tuple[Array, Array]:
        """Pose of the link (N, 4, 4) and matrix (N, m+p, u) at positions (N, n)."""
        pose, J = pose_and_jacobian(self.model, self.link, q[:, None], 'hybrid')
        return pose, self.matrix(Jet.along(J, 1))[0]

    def matrix(self, J: Jet) -> Jet:
        """Matrix of the equations, dimensionless.

        Parameters
        ----------
        J : Jet of ndarray, shape (..., 6, n)
            Hybrid Jacobian of the link.

        Returns
        -------
        Jet of ndarray, shape (..., m+p, u)
            Rows of the link first, then the joint tasks, whose coefficients are constant.
        """
        scale, A = self.row_scale[:, None], self.A[:, self.unknown]
        of_link = [x[..., self.rows, :][..., self.unknown] / scale * self.scale for x in J]
        shape = *of_link[0].shape[:-2], *A.shape
        of_joints = jets.constant(np.broadcast_to(A, shape), len(J))
        return Jet(np.concatenate(rows, axis=-2) for rows in zip(of_link, of_joints))

    def right_side(self, V: Array, c: Array) -> Array:
        """Right-hand side of the equations, dimensionless.

        Parameters
        ----------
        V : ndarray, shape (..., 6)
            Hybrid twist, or the twist to a wanted pose.
        c : ndarray, shape (..., p)
            Values of the joint tasks, of the same order.

        Returns
        -------
        ndarray, shape (..., m+p)
        """
        return np.concatenate(
            [V[..., self.rows] / self.row_scale, c / self.A_scale], axis=-1
        )

    def _check(self, J: Array) -> None:
        """Refusal of a task that asks for more than the joints can do, or for no orientation.

        From Jacobians (4, 6, n) at positions that are in no way special.
        """
        names = [self.model.joint_names[j] for j in self.unknown]
        if self.redundancy < 0:
            raise HodynError(
                f'The task has {len(self.rows)} rows ({", ".join(TASK_ROWS[i] for i in self.rows)}'
                f') and there are {len(self.A)} joint tasks, more than the {len(names)} joints '
                f'({", ".join(names)}) can fulfil. Leave out rows: task is any of '
                f'{", ".join(TASK_ROWS)}.'
            )
        if len(self.ignored_rotations):
            # Angular velocities about some axes alone are no derivatives of any orientation,
            # unless the link turns about these axes only.
            if np.abs(J[:, self.ignored_rotations]).max() > 1e-9:
                raise HodynError(
                    f'The task prescribes {", ".join(TASK_ROWS[i] for i in self.rows if i < 3)}, '
                    f'but the joints turn the link {self.link!r} about '
                    f'{", ".join(TASK_ROWS[i][1] for i in self.ignored_rotations)}, too. Such '
                    'angular velocities do not determine an orientation: prescribe all of rx, ry, '
                    'rz or none.'
                )


class LeastNormSystem(NamedTuple):
    """The equations of a task together with those of a least norm.

    The velocity x in units of the joints and the multipliers y of the equations M x = e fulfil

        [W  M^T] [x]   [W z]
        [M   0 ] [y] = [ e ],

    at all times, so that Leibniz's rule gives the derivatives of x from those of M, z and e.
    """

    system: TaskSystem
    weights: Array  # of the u unknown joints
    posture: Array  # of all n joints
    rate: Array  # of all n joints

    @classmethod
    def of(cls, system: TaskSystem, given: LeastNorm) -> LeastNormSystem:
        """Equations of a task and a criterion, whose attributes are checked and completed.

        Raises
        ------
        HodynError
            If an attribute has a wrong shape or is not finite, a weight is not positive, a rate is
            negative, or a rate is given without a posture.
        """
        n = system.model.n_joints
        arrays = []
        for what, value, default in (
            ('weights', given.weights, 1.0),
            ('posture', given.posture, 0.0),
            ('rate', given.rate, 0.0),
        ):
            array = finite_array(
                f'LeastNorm: {what}', default if value is None else value, HodynError
            )
            if array.shape not in ((), (n,)):
                raise HodynError(
                    f'LeastNorm: {what} has shape {array.shape}, expected ({n},), one number for '
                    f'each of the joints {listed(system.model.joint_names)}.'
                )
            arrays.append(np.broadcast_to(array, (n,)))
        weights, posture, rate = arrays
        if np.any(weights <= 0.0):
            raise HodynError(
                f'LeastNorm: the weights are {weights}, expected positive numbers.'
            )
        if np.any(rate < 0.0):
            raise HodynError(f'LeastNorm: the rate is {rate}, expected no negative number.')
        if np.any(rate) and given.posture is None:
            raise HodynError(
                'LeastNorm: a rate needs a posture towards which the joints move.'
            )
        return cls(system, weights[system.unknown], posture, rate)

    def integrate(
        self, path: SampledPath, t: int, q: Array, check: Callable[[Array], None]
    ) -> Array | None:
        """Joint positions at sample t of a path from those at the one before.

        None if the integration fails. Each matrix of the equations on the way is checked, which
        may raise.

        Parameters
        ----------
        path : SampledPath
        t : int
            Index of the sample, from 1 on.
        q : ndarray, shape (n,)
            Joint positions at sample t - 1 [rad] or [m].
        check : callable
            Called with each matrix, shape (m+p, u).

        Returns
        -------
        ndarray, shape (n,), or None
        """
        from scipy.integrate import solve_ivp

        system, unknown, scale = self.system, self.system.unknown, self.system.scale
        begin, finish = path.times[t - 1 : t + 1]

        def velocity(t: float, x: Array) -> Array:
            position = q.copy()
            position[unknown] = x * scale
            M = system.at(position[None])[1][0]
            check(M)
            right = self.right_side(position, 0, system.right_side(*path.rates(t)))
            (KKT,) = self.matrix(Jet([M]))
            return np.asarray(np.linalg.solve(KKT, right)[: len(unknown)])

        solution = solve_ivp(
            velocity,
            (begin, finish),
            q[unknown] / scale,
            method='DOP853',
            rtol=RELATIVE_TOLERANCE,
            atol=ABSOLUTE_TOLERANCE,
            # Samples are mostly so close that one step suffices.
            first_step=finish - begin,
        )
        if not solution.success:
            return None
        end = q.copy()
        end[unknown] = solution.y[:, -1] * scale
        return end

    def matrix(self, M: Jet, damping: float = 0.0) -> Jet:
        """Matrix of the optimality conditions, (..., u+m, u+m), from M (..., m, u)."""
        m, u = M[0].shape[-2:]
        conditions = []
        for k, rows in enumerate(M):
            KKT = np.zeros((*rows.shape[:-2], u + m, u + m))
            KKT[..., :u, u:] = np.swapaxes(rows, -1, -2)
            KKT[..., u:, :u] = rows
            if k == 0:
                KKT[..., :u, :u] = np.diag(self.weights)
                KKT[..., u:, u:] = -(damping**2) * np.eye(m)
            conditions.append(KKT)
        return Jet(conditions)

    def right_side(self, q: Array, order: int, e: Array) -> Array:
        """Derivative of (W z, e), shape (..., u+m).

        Parameters
        ----------
        q : ndarray, shape (..., n)
            The derivative of the joint positions of this order.
        order : int
            Zero for the positions, which the posture is subtracted from.
        e : ndarray, shape (..., m)
            The derivative of the right-hand side of M x = e.
        """
        way = q - self.posture if order == 0 else q
        z = -self.rate * way / self.system.joint_scale
        return np.concatenate([self.weights * z[..., self.system.unknown], e], axis=-1)


def joint_motions(
    system: TaskSystem,
    least_norm: LeastNormSystem | None,
    q: Array,
    V: Array,
    c: Array,
    damping: float,
) -> Array:
    """Joint motions with all derivatives, from positions where the task is fulfilled.

    The velocities x, with the multipliers of a least norm, fulfil a(q) x = b. Derivative k of the
    equations has one unknown, derivative k of x; the rest is known, see `jets.remainder`.

    Parameters
    ----------
    system : TaskSystem
    least_norm : LeastNormSystem or None
        What determines the joints if the system leaves some open.
    q : ndarray, shape (N, n)
    V : ndarray, shape (N, K-1, 6)
        Hybrid twists with derivatives.
    c : ndarray, shape (N, K, p)
        Joint tasks.
    damping : float
        Zero for exact solutions; see `InverseKinematicsOptions`.

    Returns
    -------
    ndarray, shape (N, K, n)
    """
    u, K = len(system.unknown), V.shape[1] + 1
    motion = np.zeros((len(q), K, q.shape[1]))
    motion[:, 0] = q
    x: list[Array] = []
    for k in range(K - 1):
        # Derivatives of the Jacobian above k are computed, too, from what is not known yet.
        _, J = pose_and_jacobian(system.model, system.link, motion[:, :-1], 'hybrid')
        a = system.matrix(Jet.along(J[:, : k + 1], 1))
        b = system.right_side(V[:, k], c[:, k + 1])
        if least_norm is not None:
            a = least_norm.matrix(a, damping)
            b = least_norm.right_side(motion[:, k], k, b)
        right = jets.remainder(b[..., None], a, x, k)
        matrix = a[0]
        if damping and least_norm is None:
            transposed = np.swapaxes(matrix, -1, -2)
            matrix, right = transposed @ matrix + damping**2 * np.eye(u), transposed @ right
        x.append(np.linalg.solve(matrix, right))
        motion[:, k + 1, system.unknown] = x[k][:, :u, 0] * system.scale
    return motion


class SampledPath:
    """Hybrid twist of a link and rates of the joint tasks at any time between samples.

    From times (T,), poses (T, 4, 4), twists with derivatives (T, K-1, 6), K >= 2, and joint tasks
    (T, K, p).
    """

    def __init__(self, times: Array, pose: Array, V: Array, c: Array) -> None:
        from scipy.interpolate import BPoly

        self.times = times
        quaternion = _quaternion_series(pose[:, :3, :3], V[..., :3])
        origin = np.concatenate([pose[:, None, :3, 3], V[..., 3:]], axis=1)
        series = np.concatenate([quaternion, origin, c], axis=-1)
        self._path = BPoly.from_derivatives(times, series)
        self._rate = self._path.derivative()

    def rates(self, t: float) -> tuple[Array, Array]:
        """Twist and rates of the joint tasks at a time.

        Parameters
        ----------
        t : float
            [s], between the first and the last time.

        Returns
        -------
        twist : ndarray, shape (6,)
            Hybrid: (omega, v) in base axes [rad/s] and [m/s].
        rates : ndarray, shape (p,)
        """
        p, rate = self._path(t)[:4], self._rate(t)
        # omega = 2 dp/dt conjugate(p) / |p|^2; the polynomial is of length 1 at its ends only.
        omega = _multiplied(rate[:4], np.concatenate([-p[:3], p[3:]]))[:3] * (2.0 / (p @ p))
        return np.concatenate([omega, rate[4:7]]), rate[7:]


def _quaternion_series(R: Array, omega: Array) -> Array:
    """Unit quaternions (x, y, z, w) of successive rotations (T, 3, 3), and derivatives: (T, K, 4).

    From the angular velocity in fixed axes and its derivatives (T, K-1, 3).
    """
    from scipy.spatial.transform import Rotation

    first = Rotation.from_matrix(R).as_quat()
    turned = np.sum(first[1:] * first[:-1], axis=1) < 0.0
    signs = np.concatenate([[1.0], np.cumprod(np.where(turned, -1.0, 1.0))])
    p = [first * signs[:, None]]
    half = np.concatenate([0.5 * omega, np.zeros((*omega.shape[:-1], 1))], axis=-1)
    for k in range(omega.shape[1]):
        # dp/dt = (omega / 2) p, differentiated k times.
        p.append(jets.leibniz(Jet.along(half, 1), p, k, _multiplied))
    return Jet(p).array(1)


def _multiplied(p: Array, r: Array) -> Array:
    """Product of quaternions (x, y, z, w), broadcasting."""
    vector = (
        p[..., 3:] * r[..., :3] + r[..., 3:] * p[..., :3] + cross(p[..., :3], r[..., :3])
    )
    scalar = p[..., 3:] * r[..., 3:] - np.sum(
        p[..., :3] * r[..., :3], axis=-1, keepdims=True
    )
    return np.concatenate([vector, scalar], axis=-1)
