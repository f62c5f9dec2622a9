"""Inverse kinematics of any order: joint motions from the motion of a link (public entry).

Sources: Mueller 2021, section IV and Algorithm 2 (corrected, see `inverse_orders`); remark 2 there
on redundant arms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.errors import HodynError, InverseKinematicsError, MotionError, SingularityError
from hodyn_ros.kinematics.forward import EXPRESSIONS, LinkMotion
from hodyn_ros.kinematics.inverse_orders import determined_orders, least_norm_orders
from hodyn_ros.kinematics.inverse_position import (
    PositionSolution,
    solve_position,
    starts,
    within,
)
from hodyn_ros.kinematics.jacobian import link_or_tip
from hodyn_ros.kinematics.least_norm import SampledPath, integrate
from hodyn_ros.kinematics.redundancy import (
    TASK_ROWS,
    Criterion,
    JointTask,
    LeastNorm,
    TaskSystem,
)
from hodyn_ros.lie import leibniz
from hodyn_ros.lie.so3 import cross
from hodyn_ros.model.robot import RobotModel

Array = NDArray[np.float64]

# Samples whose derivatives are computed together.
_BLOCK = 256


@dataclass(frozen=True)
class InverseKinematicsOptions:
    """Numerical settings of the inverse kinematics, seldom changed.

    Attributes
    ----------
    limits : bool
        Whether the joint positions must lie within the limits of the model.
    tolerance : float
        Largest residual of a solution, dimensionless. The iteration goes on to rounding, which is
        mostly far below.
    max_iterations : int
        For each start of the position iteration.
    restarts : int
        Random starts, after the guess, for samples that do not continue a trajectory.
    seed : int
        Of the random starts.
    singularity_threshold : float
        Smallest singular value of the dimensionless Jacobian from which derivatives are computed.
        Errors of the k-th derivative grow with its inverse to the power 2k - 1.
    damping : float
        Zero refuses derivatives near singularities. A positive number gives damped least-squares
        solutions instead: the joint derivatives then neither produce the given twists nor are they
        those of one motion q(t). In units of the singular values.
    length : float, optional
        Characteristic length [m] that makes errors and Jacobians dimensionless, by default the sum
        of the distances between successive joints up to the link.
    """

    limits: bool = True
    tolerance: float = 1e-10
    max_iterations: int = 100
    restarts: int = 30
    seed: int = 0
    singularity_threshold: float = 1e-4
    damping: float = 0.0
    length: float | None = None

    def __post_init__(self) -> None:
        for name, lowest in (
            ('tolerance', 0.0),
            ('max_iterations', 1),
            ('restarts', 0),
            ('singularity_threshold', 0.0),
            ('damping', 0.0),
        ):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= lowest):
                raise HodynError(f'{name} is {value!r}, expected a number from {lowest} on.')
        if self.length is not None and not (np.isfinite(self.length) and self.length > 0.0):
            raise HodynError(f'length is {self.length!r}, expected a positive number [m].')


class InverseKinematicsSolution(NamedTuple):
    """Joint motion that produces a link motion, and how well it is determined."""

    motion: Array
    """Joint positions and derivatives in model order, shape (..., K, n) [rad/s^k] or [m/s^k]."""
    iterations: NDArray[np.intp]
    """Iterations for the position, shape (...)."""
    residual: Array
    """Length of the remaining error of the pose and of the joint tasks, shape (...); angles in
    [rad], lengths divided by the characteristic length."""
    singular_value: Array
    """Smallest singular value of the dimensionless Jacobian of the task, shape (...)."""
    manipulability: Array
    """Product of all its singular values (Yoshikawa's measure), shape (...)."""


def inverse_kinematics(
    model: RobotModel,
    link_motion: LinkMotion | tuple[ArrayLike, ArrayLike],
    link: str | None = None,
    expressed_in: str = 'body',
    *,
    guess: ArrayLike | None = None,
    task: Sequence[str] = TASK_ROWS,
    redundancy: LeastNorm | JointTask | Sequence[LeastNorm | JointTask] = (),
    times: ArrayLike | None = None,
    options: InverseKinematicsOptions | None = None,
) -> InverseKinematicsSolution:
    """Joint positions and their time derivatives, of any order, from the motion of a link.

    Parameters
    ----------
    model : RobotModel
    link_motion : LinkMotion or (pose, twist)
        Pose of the link in the base link, shape (..., 4, 4) [m], and its twist (omega, v) with
        time derivatives, shape (..., K-1, 6) [rad/s^k] and [m/s^k], K >= 1, as
        `forward_kinematics` returns them. The last of the leading axes is the order in time of the
        samples of a trajectory; there may be several trajectories.
    link : str, optional
        By default the tip of the chain.
    expressed_in : {'body', 'spatial', 'hybrid'}
        Expression of the twist, as in `forward_kinematics`. The derivatives are those of its
        coordinates.
    guess : array-like, shape (n,) or (..., T or 1, n), optional
        Where the search for the joint positions starts; by default the middle of the limits. One
        for each trajectory (each further sample starts from the one before), or one for each of
        the T samples of a trajectory, which are then independent of each other. Joints that do not
        move the link stay there.
    task : sequence of str
        What of the motion is prescribed: rotation about (rx, ry, rz) and translation along (x, y,
        z) the axes of the base link. The other rows of the hybrid twist are ignored. A planar arm
        has ('x', 'y', 'rz') or ('x', 'y'). Of the rotations, all or none, except for arms that
        cannot turn the link about the axes left out.
    redundancy : JointTask, LeastNorm or a sequence of them
        What determines the joints if there are more of them than rows: prescribed motions of
        joints, which make each sample an algebraic problem of its own, and a weighted least norm
        of the velocities, the default.
    times : array-like, shape (T,), optional
        Times of the samples [s], increasing. Needed where a least norm decides and T > 1: the
        joint positions then solve a differential equation from the first sample on.
    options : InverseKinematicsOptions, optional

    Returns
    -------
    InverseKinematicsSolution
        The derivatives are those of one smooth motion q(t) through the position of the sample.

    Raises
    ------
    MotionError
        If an array has a wrong shape, holds NaN or infinite values, or a pose is not one.
    ModelError
        If the link does not exist or must be named.
    InverseKinematicsError
        If no solution within the limits was found.
    SingularityError
        If K > 1 and a configuration is close to singular.
    HodynError
        If a choice is unknown or contradicts the model.

    Notes
    -----
    A task without redundancy is solved exactly: Mueller 2021, Algorithm 2, with misprints
    corrected (see `inverse_orders`). Where a trajectory passes a sample with another solution
    nearby, close samples keep the iteration on the same branch.
    """
    options = InverseKinematicsOptions() if options is None else options
    link = link_or_tip(model, link)
    pose, V = _hybrid(link_motion, expressed_in)
    batch, K = pose.shape[:-2], V.shape[-2] + 1
    criteria, joint_tasks = _sorted(redundancy)
    system = TaskSystem.of(model, link, task, joint_tasks, options.length)
    criterion = None
    if system.redundancy > 0:
        criterion = Criterion.of(model, criteria[0] if criteria else LeastNorm())

    M, T = (int(np.prod(batch[:-1])), batch[-1]) if batch else (1, 1)
    c = _joint_task_values(joint_tasks, batch, K)
    problem = _Problem(
        model,
        system,
        criterion,
        options,
        batch,
        pose.reshape(M, T, 4, 4),
        V.reshape(M, T, K - 1, 6),
        c.reshape(M, T, K, len(joint_tasks)),
    )
    guesses = _guesses(model, guess, batch)
    problem.check_ignored_rotations()
    if criterion is not None and K > 1 and T > 1:
        q, iterations, residual = problem.least_norm_positions(
            _checked_times(times, T, system), guesses
        )
    else:
        q, iterations, residual = problem.positions(guesses)
    motion, singular_values = problem.derivatives(q)
    return InverseKinematicsSolution(
        motion.reshape(*batch, K, model.n_joints),
        iterations.reshape(batch),
        residual.reshape(batch),
        singular_values.min(axis=-1).reshape(batch),
        singular_values.prod(axis=-1).reshape(batch),
    )


class _Problem(NamedTuple):
    """A checked problem: M trajectories of T samples."""

    model: RobotModel
    system: TaskSystem
    criterion: Criterion | None
    options: InverseKinematicsOptions
    batch: tuple[int, ...]
    pose: Array
    V: Array
    c: Array

    def positions(self, guesses: Array) -> tuple[Array, NDArray[np.intp], Array]:
        """Positions, iterations and residuals, each sample from its guess or the one before."""
        M, T = self.pose.shape[:2]
        q = np.empty((M, T, self.model.n_joints))
        iterations, residual = np.zeros((M, T), dtype=np.intp), np.zeros((M, T))
        for i in range(M):
            for t in range(T):
                continued = t > 0 and guesses.shape[1] == 1
                guess = q[i, t - 1] if continued else guesses[i, t]
                solution = self.position(i, t, guess, fresh=not continued)
                q[i, t], iterations[i, t] = solution.q, solution.iterations
                residual[i, t] = solution.residual
        return q, iterations, residual

    def least_norm_positions(
        self, times: Array, guesses: Array
    ) -> tuple[Array, NDArray[np.intp], Array]:
        """Positions along the solution of the differential equation of the least norm."""
        assert self.criterion is not None
        if self.options.damping:
            raise HodynError(
                'damping and a least norm along times exclude each other: the joint positions '
                'would leave the path. Prescribe joints by a JointTask, or avoid the singularity.'
            )
        M, T = self.pose.shape[:2]
        q = np.empty((M, T, self.model.n_joints))
        iterations, residual = np.zeros((M, T), dtype=np.intp), np.zeros((M, T))
        lower, upper = self.limits()
        for i in range(M):
            path = SampledPath(times, self.pose[i], self.V[i], self.c[i])
            for t in range(T):
                if t == 0:
                    solution = self.position(i, 0, guesses[i, 0], fresh=True)
                else:
                    end = integrate(
                        self.system,
                        self.criterion,
                        path,
                        (times[t - 1], times[t]),
                        q[i, t - 1],
                        lambda matrix, i=i, t=t: self.check_singularity(  # type: ignore[misc]
                            float(np.linalg.svd(matrix, compute_uv=False)[-1]), i, t
                        ),
                    )
                    if end is None:
                        raise InverseKinematicsError(
                            f'The integration of the joint velocities of least norm failed before '
                            f'{self.sample_text(i, t)}: use samples that are closer in time.',
                            self.sample(i, t),
                        )
                    self.check_limits(end, lower, upper, i, t)
                    # Removes what rounding and the tolerance of the integration left.
                    solution = self.position(i, t, end, fresh=False)
                q[i, t], iterations[i, t] = solution.q, solution.iterations
                residual[i, t] = solution.residual
        return q, iterations, residual

    def position(self, i: int, t: int, guess: Array, fresh: bool) -> PositionSolution:
        """Position for one sample, or an error that says why there is none."""
        lower, upper = self.limits()
        best: PositionSolution | None = None
        spread = np.pi * self.system.joint_scale
        # A continued motion must not turn back, any other may leave the limits for a while.
        periodic = self.system.periodic(lower, upper) & fresh
        restarts = self.options.restarts if fresh else 0
        for start in starts(guess, lower, upper, spread, restarts, self.options.seed):
            solution = solve_position(
                self.system,
                self.pose[i, t],
                self.c[i, t, 0],
                start,
                np.where(periodic, -np.inf, lower),
                np.where(periodic, np.inf, upper),
                self.options.tolerance,
                self.options.max_iterations,
            )
            solution = solution._replace(q=within(solution.q, guess, lower, upper, periodic))
            if best is None or solution.residual < best.residual:
                best = solution
            if best.residual <= self.options.tolerance:
                break
        assert best is not None
        ignored = best.error[self.system.ignored_rotations]
        reached = best.residual <= self.options.tolerance
        if reached and np.all(np.abs(ignored) < 1e-6):
            return best
        if reached:
            raise InverseKinematicsError(
                f'The pose of {self.sample_text(i, t)} turns the link about axes about which its '
                f'joints cannot turn it: an angle of {np.linalg.norm(ignored):.3g} rad remains.',
                self.sample(i, t),
                float(np.linalg.norm(ignored)),
            )
        raise InverseKinematicsError(
            self.failure_text(best, i, t, lower, upper, restarts), self.sample(i, t), best.residual
        )

    def failure_text(
        self, best: PositionSolution, i: int, t: int, lower: Array, upper: Array, restarts: int
    ) -> str:
        """Say how far the best attempt came and what may help."""
        rows = self.system.rows
        error = np.zeros(6)
        error[rows] = best.error[rows]
        turn, way = np.linalg.norm(error[:3]), np.linalg.norm(error[3:])
        text = (
            f'No joint position found for the pose of {self.sample_text(i, t)}: the best of '
            f'{restarts + 1} attempts misses it by {turn:.3g} rad and {way:.3g} m'
        )
        if len(self.system.A):
            text += f' (with the joint tasks, the residual is {best.residual:.3g})'
        at_limits = [
            name
            for name, q, low, high in zip(self.model.joint_names, best.q, lower, upper)
            if q <= low or q >= high
        ]
        if at_limits:
            text += f', with {", ".join(at_limits)} at the limits'
        return (
            f'{text}. The pose may be out of reach: give a guess that is closer, more restarts or '
            'a smaller task, or check the base, the link and the units (m, rad).'
        )

    def derivatives(self, q: Array) -> tuple[Array, Array]:
        """Motions, shape (M T, K, n), and all singular values, shape (M T, m+p)."""
        M, T = self.pose.shape[:2]
        N, K, n = M * T, self.V.shape[2] + 1, self.model.n_joints
        samples, V = q.reshape(N, n), self.V.reshape(N, K - 1, 6)
        c = self.c.reshape(N, K, self.c.shape[-1])
        _, J = self.system.chain.pose_and_jacobian(samples)
        singular_values = np.asarray(
            np.linalg.svd(self.system.matrix(J), compute_uv=False), dtype=np.float64
        )
        motion = samples[:, None]
        if K > 1:
            for index, smallest in enumerate(singular_values.min(axis=-1)):
                self.check_singularity(float(smallest), *divmod(index, T))
            motion = np.empty((N, K, n))
            for first in range(0, N, _BLOCK):
                block = slice(first, first + _BLOCK)
                given = samples[block], V[block], c[block], self.options.damping
                motion[block] = (
                    determined_orders(self.model, self.system, *given)
                    if self.criterion is None
                    else least_norm_orders(self.model, self.system, self.criterion, *given)
                )
        return motion, singular_values

    def limits(self) -> tuple[Array, Array]:
        """Limits of the positions."""
        if self.options.limits:
            return self.model.limits.lower, self.model.limits.upper
        infinite = np.full(self.model.n_joints, np.inf)
        return -infinite, infinite

    def check_limits(self, q: Array, lower: Array, upper: Array, i: int, t: int) -> None:
        """Refuse positions beyond the limits by more than the integration leaves."""
        beyond = np.maximum(lower - q, q - upper)
        worst = int(np.argmax(beyond))
        if beyond[worst] > self.options.tolerance * self.system.joint_scale[worst]:
            raise InverseKinematicsError(
                f'The motion of least norm takes joint {self.model.joint_names[worst]!r} beyond '
                f'its limits ({lower[worst]:.6g} to {upper[worst]:.6g}) at '
                f'{self.sample_text(i, t)}, to {q[worst]:.6g}. Change the guess, the weights or '
                'the posture of LeastNorm, or prescribe joints by a JointTask.',
                self.sample(i, t),
            )

    def check_singularity(self, smallest: float, i: int, t: int) -> None:
        """Refuse derivatives near a singularity unless they are to be damped."""
        threshold = self.options.singularity_threshold
        if self.options.damping or smallest >= threshold:
            return
        raise SingularityError(
            f'The configuration at {self.sample_text(i, t)} is close to a singularity: the '
            f'smallest singular value of the Jacobian (lengths divided by {self.system.length:.3g}'
            f' m) is {smallest:.3g}, the threshold is {threshold:.3g}. The twist does not '
            'determine the joint velocities there. Change the path, the guess or the task, lower '
            'the option singularity_threshold, or accept inexact derivatives with the option '
            'damping.',
            self.sample(i, t),
            smallest,
            threshold,
        )

    def check_ignored_rotations(self) -> None:
        """Refuse angular velocities about axes about which the link cannot turn."""
        ignored = self.system.ignored_rotations
        if self.V.size and len(ignored):
            if np.abs(self.V[..., ignored]).max() > 1e-6 * max(1.0, np.abs(self.V).max()):
                raise MotionError(
                    'The twist turns the link about '
                    f'{", ".join(TASK_ROWS[row][1] for row in ignored)}, about which its joints '
                    'cannot turn it. Is the expression of the twist the right one?'
                )

    def sample(self, i: int, t: int) -> tuple[int, ...]:
        """Index of a sample in the leading axes."""
        if not self.batch:
            return ()
        flat = i * self.batch[-1] + t
        return tuple(int(index) for index in np.unravel_index(flat, self.batch))

    def sample_text(self, i: int, t: int) -> str:
        """Name of a sample in messages."""
        index = self.sample(i, t)
        if not index:
            return 'the sample'
        return f'sample {index[0] if len(index) == 1 else index}'


def _hybrid(
    link_motion: LinkMotion | tuple[ArrayLike, ArrayLike], expressed_in: str
) -> tuple[Array, Array]:
    """Check a link motion and bring its twist into the hybrid expression."""
    if expressed_in not in EXPRESSIONS:
        raise HodynError(
            f'expressed_in is {expressed_in!r}, expected one of {", ".join(EXPRESSIONS)}.'
        )
    if not isinstance(link_motion, (tuple, list)) or len(link_motion) != 2:
        raise MotionError(
            f'link_motion is of type {type(link_motion).__name__}, expected a LinkMotion or a '
            'pair of a pose of shape (..., 4, 4) and a twist of shape (..., K-1, 6).'
        )
    pose = _numbers(link_motion[0], 'pose', '(..., 4, 4)')
    V = _numbers(link_motion[1], 'twist', '(..., K-1, 6)')
    if pose.ndim < 2 or pose.shape[-2:] != (4, 4):
        raise MotionError(f'The pose has shape {pose.shape}, expected (..., 4, 4).')
    if V.ndim < 2 or V.shape[-1] != 6 or V.shape[:-2] != pose.shape[:-2]:
        expected = ', '.join([*map(str, pose.shape[:-2]), 'K-1', '6'])
        raise MotionError(
            f'The twist has shape {V.shape}, expected ({expected}): leading axes as those of the '
            f'pose, whose shape is {pose.shape}, and (omega, v) with derivatives.'
        )
    pose = _checked_pose(pose)
    if V.shape[-2] == 0 or expressed_in == 'hybrid':
        return pose, V
    omega, v = V[..., :3], V[..., 3:]
    if expressed_in == 'body':
        R_transposed = np.swapaxes(pose[..., :3, :3], -1, -2)
        parts = [leibniz.from_moving_frame(y, omega, cross) @ R_transposed for y in (omega, v)]
        return pose, np.concatenate(parts, axis=-1)
    # The velocity of the link origin is v + omega x r; its derivatives give those of r in turn.
    r = pose[..., None, :3, 3]
    for k in range(V.shape[-2]):
        turned = leibniz.bilinear(cross, omega, r, k + 1)[..., k, :]
        r = np.concatenate([r, (v[..., k, :] + turned)[..., None, :]], axis=-2)
    return pose, np.concatenate([omega, r[..., 1:, :]], axis=-1)


def _numbers(values: ArrayLike, what: str, shape: str) -> Array:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise MotionError(f'The {what} is not an array of numbers {shape}: {error}') from error
    if not np.all(np.isfinite(array)):
        where = tuple(int(index) for index in np.argwhere(~np.isfinite(array))[0])
        raise MotionError(
            f'The {what} holds {array[where]} at index {where}; all values must be finite.'
        )
    return array


def _checked_pose(pose: Array) -> Array:
    """Poses with exact rotations, refused if they are no poses."""
    R = pose[..., :3, :3]
    if not np.allclose(pose[..., 3, :], [0.0, 0.0, 0.0, 1.0], rtol=0.0, atol=1e-9):
        raise MotionError('The last row of a pose is not (0, 0, 0, 1).')
    deviation = np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(3)).max(axis=(-1, -2), initial=0.0)
    wrong = (deviation > 1e-6) | (np.linalg.det(R) < 0.0)
    if np.any(wrong):
        where = tuple(int(index) for index in np.argwhere(wrong)[0])
        raise MotionError(
            f'The rotation in the pose{f" at index {where}" if where else ""} is not orthogonal '
            f'and right-handed: transpose(R) R differs from the identity by {deviation[where]:.3g}'
            f', det(R) = {np.linalg.det(R)[where]:.6g}; expected at most 1e-6 and 1.'
        )
    # What rounding in a file left does not limit the accuracy of the joint positions.
    U, _, Vt = np.linalg.svd(R)
    pose = pose.copy()
    pose[..., :3, :3] = U @ Vt
    return pose


def _sorted(
    redundancy: LeastNorm | JointTask | Sequence[LeastNorm | JointTask],
) -> tuple[list[LeastNorm], list[JointTask]]:
    listed = [redundancy] if isinstance(redundancy, (LeastNorm, JointTask)) else list(redundancy)
    criteria = [item for item in listed if isinstance(item, LeastNorm)]
    joint_tasks = [item for item in listed if isinstance(item, JointTask)]
    if len(criteria) > 1 or len(criteria) + len(joint_tasks) < len(listed):
        raise HodynError(
            f'redundancy holds {", ".join(type(item).__name__ for item in listed)}; expected '
            'JointTask and at most one LeastNorm.'
        )
    return criteria, joint_tasks


def _joint_task_values(joint_tasks: Sequence[JointTask], batch: tuple[int, ...], K: int) -> Array:
    """Values of all joint tasks, shape (*batch, K, p)."""
    c = np.zeros((*batch, K, len(joint_tasks)))
    for index, joint_task in enumerate(joint_tasks):
        values = np.asarray(joint_task.values)
        try:
            if values.shape[-1] != K:
                raise ValueError
            c[..., index] = np.broadcast_to(values, (*batch, K))
        except ValueError:
            raise MotionError(
                f'Joint task on {joint_task.joints!r}: the values have shape {values.shape}, '
                f'expected one that broadcasts to {(*batch, K)}: as many orders as the joint '
                'motion, one more than the twist.'
            ) from None
    return c


def _guesses(model: RobotModel, guess: ArrayLike | None, batch: tuple[int, ...]) -> Array:
    """Guesses of shape (M, 1, n) for trajectories or (M, T, n) for samples."""
    n = model.n_joints
    M, T = (int(np.prod(batch[:-1])), batch[-1]) if batch else (1, 1)
    if guess is None:
        lower, upper = model.limits.lower, model.limits.upper
        bounded = np.isfinite(lower) & np.isfinite(upper)
        middle = np.clip(0.0, lower, upper)
        middle[bounded] = 0.5 * (lower + upper)[bounded]
        return np.broadcast_to(middle, (M, 1, n))
    array = _numbers(guess, 'guess', f'(..., {n})')
    shape: tuple[int, ...] = (M, 1, n)
    if array.ndim > 1 and batch:
        samples = array.shape[-2]
        shape = (*batch[:-1], samples, n)
        usable = samples in (1, T)
    else:
        usable = array.ndim == 1
    try:
        if not usable:
            raise ValueError
        return np.broadcast_to(array, shape).reshape(M, shape[-2], n)
    except ValueError:
        raise MotionError(
            f'The guess has shape {array.shape}, expected ({n},)'
            + (f' or one that broadcasts to {(*batch[:-1], f"{T} or 1", n)}.' if batch else '.')
        ) from None


def _checked_times(times: ArrayLike | None, T: int, system: TaskSystem) -> Array:
    if times is None:
        raise HodynError(
            f'{len(system.unknown)} joints fulfil {system.n_rows} equations in many ways. Where a '
            'least norm of the velocities decides, the positions depend on the path: give the '
            f'times of the samples, shape ({T},), or a JointTask for each of the '
            f'{system.redundancy} open joints.'
        )
    array = _numbers(times, 'array of times', f'({T},)')
    if array.shape != (T,) or not np.all(np.diff(array) > 0.0):
        raise MotionError(
            f'The times have shape {array.shape}, expected ({T},), increasing [s]: one for each '
            'sample of a trajectory.'
        )
    return array
