"""A checked problem of inverse kinematics: its positions, sample by sample, and their derivatives.

Positions come from the iteration of `inverse_position`, each from the one before, or along the
differential equation of `least_norm`; derivatives from `inverse_orders`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.errors import HodynError, InverseKinematicsError, MotionError, SingularityError
from hodyn_ros.kinematics.inverse_orders import determined_orders, least_norm_orders
from hodyn_ros.kinematics.inverse_position import (
    PositionSolution,
    solve_position,
    starts,
    within,
)
from hodyn_ros.kinematics.least_norm import SampledPath, integrate
from hodyn_ros.kinematics.redundancy import TASK_ROWS, Criterion, TaskSystem
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


class InverseProblem(NamedTuple):
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
                        partial(self.check_on_the_way, i, t),
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

    def check_on_the_way(self, i: int, t: int, matrix: Array) -> None:
        """Refuse to pass a singularity between two samples."""
        smallest = np.linalg.svd(matrix, compute_uv=False)[-1]
        self.check_singularity(float(smallest), i, t, 'on the way to')

    def check_singularity(self, smallest: float, i: int, t: int, where: str = 'at') -> None:
        """Refuse derivatives near a singularity unless they are to be damped."""
        threshold = self.options.singularity_threshold
        if self.options.damping or smallest >= threshold:
            return
        raise SingularityError(
            f'The configuration {where} {self.sample_text(i, t)} is close to a singularity: the '
            f'smallest singular value of the Jacobian (lengths divided by {self.system.length:.3g}'
            f' m) is {smallest:.3g}, the threshold is {threshold:.3g}. The twist does not '
            'determine the joint velocities there. Change the path, the guess or the task, lower '
            'the option singularity_threshold, or accept inexact derivatives with the option '
            'damping.',
            self.sample(i, t),
            smallest,
            threshold,
        )

    def check_joint_tasks(self) -> None:
        """Refuse prescribed positions of single joints beyond their limits."""
        lower, upper = self.limits()
        for row, unit, values in zip(
            self.system.A, self.system.A_scale, np.moveaxis(self.c[..., 0, :], -1, 0)
        ):
            if np.count_nonzero(row) != 1 or values.size == 0:
                continue
            j = int(np.flatnonzero(row)[0])
            q = values / unit * self.system.joint_scale[j] / row[j]
            margin = self.options.tolerance * self.system.joint_scale[j]
            if q.min() < lower[j] - margin or q.max() > upper[j] + margin:
                raise InverseKinematicsError(
                    f'A joint task takes joint {self.model.joint_names[j]!r} from {q.min():.6g} '
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
