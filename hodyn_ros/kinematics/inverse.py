"""Inverse kinematics of any order: joint motions from the motion of a link.

Positions come from a Levenberg-Marquardt iteration within the joint limits, each sample from the
one before, or along the differential equation of a least norm (see `redundancy`). The error is the
twist that would carry the link to the wanted pose: the rotation vector of R_wanted transpose(R) in
base axes and the way of the link origin. Taken apart like this, and not as one screw, its rows can
be chosen one by one. The transposed Jacobian times the error is the exact gradient of half its
square, since the rotation vector is an eigenvector of the derivative of the logarithm.

Derivatives come order by order. Source: Mueller 2021, section IV and Algorithm 2, with its
misprints corrected: the forward recursions run over all bodies, i = 1 ... n; the acceleration of
body i in step 3b builds on the acceleration of its parent (a dot is missing); the term of the jerk
in step 5a has the factor 3, which is binomial(3, 1). With Leibniz's rule the order is arbitrary:

    J q^(k) = V^(k-1) - sum over j = 1 ... k-1 of binomial(k-1, j) J^(j) q^(k-j).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.checks import checked_number, finite_array
from hodyn_ros.errors import (
    HodynError,
    InverseKinematicsError,
    MotionError,
    SingularityError,
)
from hodyn_ros.kinematics.forward import LinkMotion
from hodyn_ros.kinematics.motions import checked_link_motion, link_or_tip
from hodyn_ros.kinematics.poses import poses_along, twists_of
from hodyn_ros.kinematics.redundancy import (
    TASK_ROWS,
    JointTask,
    LeastNorm,
    LeastNormSystem,
    SampledPath,
    TaskSystem,
    joint_motions,
)
from hodyn_ros.lie import so3
from hodyn_ros.model.mechanism import Mechanism
from hodyn_ros.typing import Array

LONGEST_STEP = (
    0.8  # in units of the joints: 0.8 rad, or 0.8 times the characteristic length
)
SLOW_STEPS = 12  # so many steps without a gain of 0.1 % end at a local minimum
ROUNDING = 4.0 * np.finfo(np.float64).eps

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
        Largest residual of a solution, dimensionless; the iteration goes on to rounding.
    max_iterations, restarts, seed : int
        Iterations for each start, and random starts after the guess, for samples that do not
        continue a trajectory.
    singularity_threshold : float
        Smallest singular value of the dimensionless Jacobian from which derivatives are computed.
        Errors of the k-th derivative grow with its inverse to the power 2k - 1.
    damping : float
        Zero refuses derivatives near singularities. A positive number, in units of the singular
        values, gives damped least-squares solutions, which neither produce the given twists nor
        belong to one motion q(t).
    length : float, optional
        Characteristic length [m] that makes errors and Jacobians dimensionless, by default the sum
        of the distances between successive joints up to the link.

    Examples
    --------
    The elbow of this arm ends at 2.8 rad, which is to be ignored:

    >>> from hodyn_ros import RobotModel, forward_kinematics, inverse_kinematics
    >>> from hodyn_ros.kinematics import InverseKinematicsOptions
    >>> model = RobotModel.from_urdf('two_link')
    >>> wanted = forward_kinematics(model, [[0.4, 2.9]])
    >>> options = InverseKinematicsOptions(limits=False)
    >>> found = inverse_kinematics(
    ...     model, wanted, guess=[0.3, 2.5], task=('x', 'z'), options=options
    ... )
    >>> found.motion.round(3)
    array([[0.4, 2.9]])
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
        for name in ('tolerance', 'restarts', 'singularity_threshold', 'damping'):
            checked_number(name, getattr(self, name), HodynError, least=0.0)
        checked_number('max_iterations', self.max_iterations, HodynError, least=1.0)
        if self.length is not None:
            checked_number('length', self.length, HodynError, above=0.0, unit='m')


class InverseKinematicsSolution(NamedTuple):
    """Joint motion that produces a link motion, and how well it is determined.

    The leading axes are those of the link motion.

    Examples
    --------
    >>> from hodyn_ros import RobotModel, forward_kinematics, inverse_kinematics
    >>> model = RobotModel.from_urdf('two_link')
    >>> wanted = forward_kinematics(model, [[0.3, 1.0], [0.5, 0.0]])
    >>> found = inverse_kinematics(model, wanted, guess=[0.2, 0.8], task=('x', 'z'))
    >>> found.motion.round(3) + 0.0
    array([[0.3, 1. ],
           [0.5, 0. ]])
    >>> print(f'{found.residual < 1e-10} {found.manipulability:.3f}')
    True 0.205
    """

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
    model: Mechanism,
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
        Where the search for the joint positions starts; by default the middle of the limits, with
        closed loops the start of these. One for each trajectory (each further sample starts from
        the one before), or one for each of the T samples of a trajectory, which are then
        independent of each other (but a least norm along times starts from the first). Joints
        that do not move the link stay there.
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
    corrected (see `hodyn_ros.kinematics.inverse`). Where a trajectory passes a sample with another
    solution nearby, close samples keep the iteration on the same branch.

    Examples
    --------
    Joint positions, velocities and accelerations of a hand that moves with 0.1 m/s along x:

    >>> import numpy as np
    >>> from hodyn_ros import RobotModel, forward_kinematics, inverse_kinematics
    >>> model = RobotModel.from_urdf('two_link')
    >>> pose, _ = forward_kinematics(model, [[0.3, 1.0]])
    >>> twist = [[0.0, 0.0, 0.0, 0.1, 0.0, 0.0], np.zeros(6)]
    >>> found = inverse_kinematics(
    ...     model, (pose, twist), expressed_in='hybrid', guess=[0.2, 0.8], task=('x', 'z')
    ... )
    >>> found.motion.round(3)
    array([[ 0.3  ,  1.   ],
           [ 0.045, -0.272],
           [ 0.045, -0.082]])
    """
    options = InverseKinematicsOptions() if options is None else options
    problem = _checked_problem(
        model, link_motion, link, expressed_in, task, redundancy, options
    )
    guesses = _starting_positions(model, guess, problem.batch)
    instants = problem.checked_times(times) if problem.follows_path else None
    q, iterations, residual = problem.positions(guesses, instants)
    motion, singular_values = problem.derivatives(q)
    batch = problem.batch
    return InverseKinematicsSolution(
        motion.reshape(*batch, *motion.shape[1:]),
        iterations.reshape(batch),
        residual.reshape(batch),
        singular_values.min(axis=-1).reshape(batch),
        singular_values.prod(axis=-1).reshape(batch),
    )


def _checked_problem(
    model: Mechanism,
    link_motion: LinkMotion | tuple[ArrayLike, ArrayLike],
    link: str | None,
    expressed_in: str,
    task: Sequence[str],
    redundancy: LeastNorm | JointTask | Sequence[LeastNorm | JointTask],
    options: InverseKinematicsOptions,
) -> _Problem:
    """Problem from arguments of `inverse_kinematics`, checked, with the twist in hybrid form."""
    link = link_or_tip(model, link)
    pose, V = checked_link_motion(link_motion, expressed_in)
    if expressed_in != 'hybrid' and V.shape[-2]:
        V = twists_of(poses_along(pose, V, expressed_in), 'hybrid').array(-2)
    criteria, joint_tasks = _sorted_redundancy(redundancy)
    system = TaskSystem.of(model, link, task, joint_tasks, options.length)
    least_norm = None
    if system.redundancy > 0:
        least_norm = LeastNormSystem.of(system, criteria[0] if criteria else LeastNorm())
    batch, K = pose.shape[:-2], V.shape[-2] + 1
    c = _joint_task_values(joint_tasks, batch, K)
    N, n = prod(batch), model.n_joints
    arrays = pose.reshape(N, 4, 4), V.reshape(N, K - 1, 6), c.reshape(N, K, c.shape[-1])
    bounds = model.limits.lower, model.limits.upper
    if not options.limits:
        bounds = np.full(n, -np.inf), np.full(n, np.inf)
    problem = _Problem(system, least_norm, options, batch, *arrays, *bounds)
    problem.check_ignored_rotations()
    problem.check_joint_tasks()
    return problem


def _sorted_redundancy(
    redundancy: LeastNorm | JointTask | Sequence[LeastNorm | JointTask],
) -> tuple[list[LeastNorm], list[JointTask]]:
    """Tell the criteria, at most one, from the joint tasks."""
    listed = (
        [redundancy] if isinstance(redundancy, (LeastNorm, JointTask)) else list(redundancy)
    )
    criteria = [item for item in listed if isinstance(item, LeastNorm)]
    joint_tasks = [item for item in listed if isinstance(item, JointTask)]
    if len(criteria) > 1 or len(criteria) + len(joint_tasks) < len(listed):
        raise HodynError(
            f'redundancy holds {", ".join(type(item).__name__ for item in listed)}; expected '
            'JointTask and at most one LeastNorm.'
        )
    return criteria, joint_tasks


def _joint_task_values(
    joint_tasks: Sequence[JointTask], batch: tuple[int, ...], K: int
) -> Array:
    """Bring the values of all joint tasks together, shape (*batch, K, p)."""
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


def _starting_positions(
    model: Mechanism, guess: ArrayLike | None, batch: tuple[int, ...]
) -> Array:
    """Give each trajectory a guess, shape (M, 1, n), or each sample, shape (M, T, n)."""
    n = model.n_joints
    M, T = (prod(batch[:-1]), batch[-1]) if batch else (1, 1)
    if guess is None:
        lower, upper = model.limits.lower, model.limits.upper
        bounded = np.isfinite(lower) & np.isfinite(upper)
        middle = np.clip(0.0, lower, upper)
        middle[bounded] = 0.5 * (lower[bounded] + upper[bounded])
        if model.closure is not None:
            middle = np.clip(model.closure.start[model.closure.independent], lower, upper)
        return np.broadcast_to(middle, (M, 1, n))
    array = finite_array('The guess', guess, MotionError)
    samples = array.shape[-2] if array.ndim > 1 and batch else 1
    try:
        if samples not in (1, T) or (array.ndim > 1 and not batch):
            raise ValueError
        return np.broadcast_to(array, (*batch[:-1], samples, n)).reshape(M, samples, n)
    except ValueError:
        raise MotionError(
            f'The guess has shape {array.shape}, expected ({n},)'
            + (
                f' or one that broadcasts to {(*batch[:-1], f"{T} or 1", n)}.'
                if batch
                else '.'
            )
        ) from None


class _Problem(NamedTuple):
    """A checked problem: N samples, trajectories of T of them one behind the other."""

    system: TaskSystem
    least_norm: LeastNormSystem | None
    options: InverseKinematicsOptions
    batch: tuple[int, ...]  # leading axes of what was given, the last one of length T
    pose: Array  # shape (N, 4, 4)
    V: Array  # hybrid twist and derivatives, shape (N, K-1, 6)
    c: Array  # joint tasks and derivatives, shape (N, K, p)
    lower: Array  # limits of the positions, as `upper` of shape (n,)
    upper: Array

    @property
    def follows_path(self) -> bool:
        """Whether positions depend on those before, by the least norm on the way."""
        many = bool(self.batch) and self.batch[-1] > 1
        return self.least_norm is not None and self.c.shape[1] > 1 and many

    def checked_times(self, times: ArrayLike | None) -> Array:
        """Times of the T samples, which must be given and increase."""
        T, system = self.batch[-1], self.system
        if times is None:
            raise HodynError(
                f'{len(system.unknown)} joints fulfil {system.n_rows} equations in many ways. '
                'Where a least norm of the velocities decides, the positions depend on the path: '
                f'give the times of the samples, shape ({T},), or a JointTask for each of the '
                f'{system.redundancy} open joints.'
            )
        array = finite_array('The array of times', times, MotionError)
        if array.shape != (T,) or not np.all(np.diff(array) > 0.0):
            raise MotionError(
                f'The times have shape {array.shape}, expected ({T},), increasing [s]: one for '
                'each sample of a trajectory.'
            )
        return array

    def positions(
        self, guesses: Array, times: Array | None
    ) -> tuple[Array, NDArray[np.intp], Array]:
        """Positions, iterations and residuals, each sample from its guess or the one before.

        With times, from where the differential equation of the least norm leads.
        """
        N, T = len(self.pose), self.batch[-1] if self.batch else 1
        q = np.empty((N, self.system.model.n_joints))
        iterations, residual = np.zeros(N, dtype=np.intp), np.zeros(N)
        path: SampledPath | None = None
        for s in range(N):
            i, t = divmod(s, T)
            if t == 0 and times is not None:
                whole = slice(s, s + T)
                path = SampledPath(times, self.pose[whole], self.V[whole], self.c[whole])
            continued = t > 0 and (path is not None or guesses.shape[1] == 1)
            guess = q[s - 1] if continued else guesses[i, t]
            if continued and path is not None:
                # The iteration then removes what its tolerance and rounding left.
                guess = self.followed(path, guess, s, t)
            q[s], residual[s], iterations[s] = self.position(s, guess, not continued)
        return q, iterations, residual

    def followed(self, path: SampledPath, q: Array, s: int, t: int) -> Array:
        """Positions at sample s from those at the one before, by the least norm on the way."""
        assert self.least_norm is not None
        if self.options.damping:
            raise HodynError(
                'damping and a least norm along times exclude each other: the joint positions '
                'would leave the path. Prescribe joints by a JointTask, or avoid the singularity.'
            )

        def check(matrix: Array) -> None:
            smallest = np.linalg.svd(matrix, compute_uv=False)[-1]
            self.check_singularity(float(smallest), s, 'on the way to')

        end = self.least_norm.integrate(path, t, q, check)
        if end is None:
            raise InverseKinematicsError(
                f'The integration of the joint velocities of least norm failed before '
                f'{self.name(s)}: use samples that are closer in time.',
                sample=self.sample(s),
            )
        beyond = np.maximum(self.lower - end, end - self.upper)
        j = int(np.argmax(beyond))
        if beyond[j] > self.options.tolerance * self.system.joint_scale[j]:
            raise InverseKinematicsError(
                f'The motion of least norm takes joint {self.system.model.joint_names[j]!r} '
                f'beyond its limits ({self.lower[j]:.6g} to {self.upper[j]:.6g}) at '
                f'{self.name(s)}, to {end[j]:.6g}. Change the guess, the weights or the posture '
                'of LeastNorm, or prescribe joints by a JointTask.',
                sample=self.sample(s),
            )
        return end

    def position(self, s: int, guess: Array, fresh: bool) -> tuple[Array, float, int]:
        """Position for one sample, its residual and iterations, or an error that says why not."""
        options, lower, upper = self.options, self.lower, self.upper
        best: _Linearisation | None = None
        iterations = 0
        # A continued motion must not turn back, any other may leave the limits for a while.
        periodic = self.system.periodic(lower, upper) & fresh
        restarts = options.restarts if fresh else 0
        spread, wanted = np.pi * self.system.joint_scale, (self.pose[s], self.c[s, 0])
        bounds = np.where(periodic, -np.inf, lower), np.where(periodic, np.inf, upper)
        for start in _starts(guess, lower, upper, spread, restarts, options.seed):
            try:
                found, count = _solve_position(
                    self.system, *wanted, start, *bounds, options
                )
            except MotionError:  # loops do not close at this start
                if best is None:
                    raise
                continue
            if best is None or found.residual < best.residual:
                best, iterations = found, count
            if best.residual <= options.tolerance:
                break
        assert best is not None
        q = _within(best.q, guess, lower, upper, periodic)
        if best.residual > options.tolerance:
            raise InverseKinematicsError(
                self.failure_text(best._replace(q=q), s, restarts),
                sample=self.sample(s),
                residual=best.residual,
            )
        ignored = best.error[self.system.ignored_rotations]
        if np.any(np.abs(ignored) >= 1e-6):
            raise InverseKinematicsError(
                f'The pose of {self.name(s)} turns the link about axes about which its '
                f'joints cannot turn it: an angle of {np.linalg.norm(ignored):.3g} rad remains.',
                sample=self.sample(s),
                residual=float(np.linalg.norm(ignored)),
            )
        return q, best.residual, iterations

    def failure_text(self, best: _Linearisation, s: int, restarts: int) -> str:
        """Say how far the best attempt came and what may help."""
        error = np.zeros(6)
        error[self.system.rows] = best.error[self.system.rows]
        text = (
            f'No joint position found for the pose of {self.name(s)}: the best of '
            f'{restarts + 1} attempts misses it by {np.linalg.norm(error[:3]):.3g} rad and '
            f'{np.linalg.norm(error[3:]):.3g} m'
        )
        if len(self.system.A):
            text += f' (with the joint tasks, the residual is {best.residual:.3g})'
        stopped = (best.q <= self.lower) | (best.q >= self.upper)
        at_limits = [self.system.model.joint_names[j] for j in np.flatnonzero(stopped)]
        if at_limits:
            text += f', with {", ".join(at_limits)} at the limits'
        return (
            f'{text}. The pose may be out of reach: give a guess that is closer, more restarts or '
            'a smaller task, or check the base, the link and the units (m, rad).'
        )

    def derivatives(self, q: Array) -> tuple[Array, Array]:
        """Motions, shape (N, K, n), and all singular values, shape (N, m+p)."""
        matrix = self.system.at(q)[1]
        singular_values = np.asarray(np.linalg.svd(matrix, compute_uv=False))
        motion = np.empty((len(q), self.c.shape[1], q.shape[-1]))
        if motion.shape[1] > 1:
            for s, smallest in enumerate(singular_values.min(axis=-1)):
                self.check_singularity(float(smallest), s)
        for first in range(0, len(q), _BLOCK):
            block = slice(first, first + _BLOCK)
            motion[block] = joint_motions(
                self.system,
                self.least_norm,
                q[block],
                self.V[block],
                self.c[block],
                self.options.damping,
            )
        return motion, singular_values

    def check_singularity(self, smallest: float, s: int, where: str = 'at') -> None:
        """Refuse derivatives near a singularity unless they are to be damped."""
        threshold = self.options.singularity_threshold
        if self.options.damping or smallest >= threshold:
            return
        raise SingularityError(
            f'The configuration {where} {self.name(s)} is close to a singularity: the '
            f'smallest singular value of the Jacobian (lengths divided by {self.system.length:.3g}'
            f' m) is {smallest:.3g}, the threshold is {threshold:.3g}. The twist does not '
            'determine the joint velocities there. Change the path, the guess or the task, lower '
            'the option singularity_threshold, or accept inexact derivatives with the option '
            'damping.',
            sample=self.sample(s),
            singular_value=smallest,
            threshold=threshold,
        )

    def check_joint_tasks(self) -> None:
        """Refuse prescribed positions of single joints beyond their limits."""
        lower, upper = self.lower, self.upper
        for row, unit, values in zip(
            self.system.A, self.system.A_scale, np.moveaxis(self.c[..., 0, :], -1, 0)
        ):
            if np.count_nonzero(row) != 1 or values.size == 0:
                continue
            j = int(np.flatnonzero(row)[0])
            q = values / unit * self.system.joint_scale[j] / row[j]
            margin = self.options.tolerance * self.system.joint_scale[j]
            if q.min() < lower[j] - margin or q.max() > upper[j] + margin:
                name = self.system.model.joint_names[j]
                raise InverseKinematicsError(
                    f'A joint task takes joint {name!r} from {q.min():.6g} '
                    f'to {q.max():.6g}, its limits are {lower[j]:.6g} to {upper[j]:.6g}.'
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

    def sample(self, s: int) -> tuple[int, ...]:
        """Index of a sample in the leading axes."""
        return tuple(int(i) for i in np.unravel_index(s, self.batch)) if self.batch else ()

    def name(self, s: int) -> str:
        """Name of a sample in messages."""
        index = self.sample(s)
        if not index:
            return 'the sample'
        return f'sample {index[0] if len(index) == 1 else index}'


class _Linearisation(NamedTuple):
    """Linear equations for a step from positions towards a wanted pose."""

    q: Array  # joint positions, shape (n,)
    error: Array  # twist to the wanted pose, hybrid, shape (6,), [rad] and [m]
    e: Array  # right-hand side, dimensionless, shape (m+p,)
    M: Array  # matrix, dimensionless, shape (m+p, u)
    residual: float  # length of e

    @classmethod
    def at(cls, system: TaskSystem, C: Array, c: Array, q: Array) -> _Linearisation:
        """Equations at positions q for the wanted pose C and values c of the joint tasks."""
        pose, M = system.at(q[None])
        rotation = so3.log(C[:3, :3] @ pose[0, :3, :3].T)
        error = np.concatenate([rotation, C[:3, 3] - pose[0, :3, 3]])
        tasks = system.A_scale * (system.A @ (q / system.joint_scale))
        e = system.right_side(error, c - tasks)
        return cls(q, error, e, M[0], float(np.linalg.norm(e)))


def _solve_position(
    system: TaskSystem,
    C: Array,
    c: Array,
    guess: Array,
    lower: Array,
    upper: Array,
    options: InverseKinematicsOptions,
) -> tuple[_Linearisation, int]:
    """Iterate from a guess until rounding, or until nothing improves any more.

    C, shape (4, 4), is the wanted pose, c, shape (p,), the wanted values of the joint tasks. A
    joint at a limit is left out of a step that would take it beyond. The damping vanishes with the
    square of the residual, which keeps the convergence quadratic. Returned are the equations at
    the end, converged or not, and the iterations.
    """
    scale, unknown = system.scale, system.unknown
    lowest, highest = lower[unknown] / scale, upper[unknown] / scale

    def at(x: Array) -> _Linearisation:
        q = guess.copy()
        q[unknown] = np.clip(x * scale, lower[unknown], upper[unknown])
        return _Linearisation.at(system, C, c, q)

    x = np.clip(guess[unknown] / scale, lowest, highest)
    now = at(x)
    damping, iterations, slow_steps = 1e-2, 0, 0
    while now.residual > ROUNDING and iterations < options.max_iterations:
        iterations += 1
        blocked = x <= lowest, x >= highest
        step = _bounded_step(now.M, now.e, damping * now.residual**2, *blocked)
        longest = float(np.abs(step).max())
        if longest > LONGEST_STEP:
            step *= LONGEST_STEP / longest
        x_next = np.clip(x + step, lowest, highest)
        if np.array_equal(x_next, x):
            break
        try:
            then = at(x_next)
        except MotionError:  # loops do not close there: a shorter step
            damping *= 5.0
            continue
        stalled = now.residual <= options.tolerance and then.residual > 0.5 * now.residual
        slow_steps = slow_steps + 1 if then.residual > 0.999 * now.residual else 0
        if then.residual < now.residual:
            x, now, damping = x_next, then, max(0.2 * damping, 1e-6)
        else:
            damping *= 5.0
        if stalled or slow_steps == SLOW_STEPS:
            break
    return now, iterations


def _starts(
    guess: Array, lower: Array, upper: Array, spread: Array, restarts: int, seed: int
) -> Iterator[Array]:
    """Starts of the search, each of shape (n,): the guess, then random ones within the limits.

    Joints without limits are tried up to the distance `spread` (n,) from the guess. The same seed
    gives the same positions.
    """
    yield guess
    rng = np.random.default_rng(seed)
    bounded = np.isfinite(lower) & np.isfinite(upper)
    lowest = np.where(bounded, lower, np.maximum(guess - spread, lower))
    highest = np.where(bounded, upper, np.minimum(guess + spread, upper))
    for _ in range(restarts):
        yield rng.uniform(np.minimum(lowest, highest), np.maximum(lowest, highest))


def _within(
    q: Array, near: Array, lower: Array, upper: Array, periodic: NDArray[np.bool_]
) -> Array:
    """Positions (n,) with periodic joints turned fully into their limits, as near as possible.

    Near to the positions `near`; joints that are not `periodic` are returned as they are.
    """
    turn = 2.0 * np.pi
    turns = np.round((near - q) / turn)
    turns = np.clip(turns, np.ceil((lower - q) / turn), np.floor((upper - q) / turn))
    return np.where(periodic, np.clip(q + turn * turns, lower, upper), q)


def _bounded_step(
    M: Array,
    e: Array,
    damping: float,
    at_lower: NDArray[np.bool_],
    at_upper: NDArray[np.bool_],
) -> Array:
    """Damped least-squares step that does not push joints beyond limits at which they are.

    Parameters
    ----------
    M : ndarray, shape (m+p, u)
        Matrix of the equations.
    e : ndarray, shape (m+p,)
        Right-hand side.
    damping : float
        Added to the squares of the singular values.
    at_lower, at_upper : ndarray of bool, shape (u,)
        Joints that are at a limit.

    Returns
    -------
    ndarray, shape (u,)
        In units of the joints; zero for joints that are blocked.
    """
    free = np.ones(M.shape[1], dtype=bool)
    step = np.zeros(M.shape[1])
    while np.any(free):
        U, s, Vt = np.linalg.svd(M[:, free], full_matrices=False)
        # Directions without any gain only carry rounding.
        gain = np.where(s > ROUNDING * s[0], s / (s**2 + damping + 1e-300), 0.0)
        step[:] = 0.0
        step[free] = Vt.T @ (gain * (U.T @ e))
        blocked = free & ((at_lower & (step < 0.0)) | (at_upper & (step > 0.0)))
        if not np.any(blocked):
            break
        free &= ~blocked
        step[blocked] = 0.0
    return step
