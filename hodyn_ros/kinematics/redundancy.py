"""What determines the joints besides the motion of a link, and the equations that result.

The derivatives of joint positions are those of one smooth q(t) only if the criterion that resolves
a redundancy is differentiated, too. Two kinds of criteria are at hand: prescribed motions of
joints (joint space decomposition, Mueller 2021, remark 2), which are algebraic equations, and a
weighted least norm of the joint velocities, which makes q(t) the solution of a differential
equation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.errors import HodynError, JointNameError, MotionError
from hodyn_ros.kinematics.jacobian import LinkChain
from hodyn_ros.model.robot import RobotModel

Array = NDArray[np.float64]

TASK_ROWS = ('rx', 'ry', 'rz', 'x', 'y', 'z')
"""Rows of the hybrid twist: rotation about and translation along the axes of the base link."""


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
    """

    joints: str | Mapping[str, float]
    values: ArrayLike

    def __post_init__(self) -> None:
        given = {self.joints: 1.0} if isinstance(self.joints, str) else dict(self.joints)
        coefficients = np.array(list(given.values()), dtype=np.float64)
        if not np.any(coefficients) or not np.all(np.isfinite(coefficients)):
            raise MotionError(
                f'Joint task {given}: expected finite coefficients that are not all zero.'
            )
        try:
            values = np.array(self.values, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise MotionError(
                f'Joint task {list(given)}: the values are not an array of numbers: {error}'
            ) from error
        if values.ndim < 1 or not np.all(np.isfinite(values)):
            raise MotionError(
                f'Joint task {list(given)}: the values have shape {values.shape}, expected '
                '(..., K) and finite numbers: a position and its K-1 time derivatives.'
            )
        values.setflags(write=False)
        object.__setattr__(self, 'values', values)


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
    """

    weights: ArrayLike | None = None
    posture: ArrayLike | None = None
    rate: ArrayLike = 0.0


class Criterion(NamedTuple):
    """A `LeastNorm` with its defaults filled in, all of shape (n,) in model order."""

    weights: Array
    posture: Array
    rate: Array

    @classmethod
    def of(cls, model: RobotModel, given: LeastNorm) -> Criterion:
        """Check and complete the attributes.

        Raises
        ------
        HodynError
        """
        n = model.n_joints
        arrays = []
        for what, value, default in (
            ('weights', given.weights, 1.0),
            ('posture', given.posture, 0.0),
            ('rate', given.rate, 0.0),
        ):
            array = np.asarray(default if value is None else value, dtype=np.float64)
            if array.shape not in ((), (n,)) or not np.all(np.isfinite(array)):
                raise HodynError(
                    f'LeastNorm: {what} has shape {array.shape}, expected ({n},) and finite '
                    f'numbers, one for each of the joints {", ".join(model.joint_names)}.'
                )
            arrays.append(np.broadcast_to(array, (n,)))
        weights, _, rate = arrays
        if np.any(weights <= 0.0):
            raise HodynError(f'LeastNorm: the weights are {weights}, expected positive numbers.')
        if np.any(rate < 0.0):
            raise HodynError(f'LeastNorm: the rate is {rate}, expected no negative number.')
        if np.any(rate) and given.posture is None:
            raise HodynError('LeastNorm: a rate needs a posture towards which the joints move.')
        return cls(*arrays)


class TaskSystem(NamedTuple):
    """The linear equations for the unknown joints, made dimensionless.

    A linear row of the Jacobian is divided by the characteristic length, the column of a prismatic
    joint is multiplied by it, so that singular values do not depend on the unit of length.
    """

    chain: LinkChain
    joint_names: tuple[str, ...]
    rows: NDArray[np.intp]
    """The m rows of the hybrid twist that are prescribed."""
    unknown: NDArray[np.intp]
    """Indices of the u joints to solve for; the others do not move the link and stay."""
    row_scale: Array
    """Units of the m rows: 1 rad or the characteristic length."""
    joint_scale: Array
    """Units of all n joints: 1 rad or the characteristic length."""
    A: Array
    """Coefficients of the p joint tasks in units of the joints, rows of length 1, (p, n)."""
    A_scale: Array
    """Units of the joint tasks, shape (p,)."""
    length: float
    """The characteristic length [m]."""

    @classmethod
    def of(
        cls,
        model: RobotModel,
        link: str,
        task: Sequence[str],
        joint_tasks: Sequence[JointTask],
        length: float | None,
    ) -> TaskSystem:
        """Choose the rows and the unknowns.

        Raises
        ------
        HodynError
            If the task is unknown or asks for more than the joints can do.
        JointNameError
            If a joint task names an unknown joint.
        """
        chain = LinkChain.of(model, link)
        if len(chain.X) == 0:
            raise HodynError(
                f'No joint moves the link {link!r}, so its motion determines no joint motion.'
            )
        rows = _rows(task)
        length = chain.reach if length is None else float(length)
        prismatic = np.array([kind == 'prismatic' for kind in model.joint_types])
        joint_scale = np.where(prismatic, length, 1.0)
        A = np.zeros((len(joint_tasks), model.n_joints))
        for row, joint_task in zip(A, joint_tasks):
            named = joint_task.joints
            for name, value in ({named: 1.0} if isinstance(named, str) else named).items():
                if name not in model.joint_names:
                    raise JointNameError(
                        f'Joint task on {name!r}, which is no independent joint of the model; '
                        f'these are {", ".join(model.joint_names)}.'
                    )
                row[model.joint_names.index(name)] = value
        A = A * joint_scale
        A_scale = np.linalg.norm(A, axis=1)
        moving = np.zeros(model.n_joints, dtype=bool)
        moving[chain.coordinate] = True
        moving |= np.any(A != 0.0, axis=0)
        system = cls(
            chain=chain,
            joint_names=model.joint_names,
            rows=rows,
            unknown=np.flatnonzero(moving),
            row_scale=np.where(rows < 3, 1.0, length),
            joint_scale=joint_scale,
            A=A / A_scale[:, None],
            A_scale=A_scale,
            length=length,
        )
        system._check(link)
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
    def ignored_rotations(self) -> NDArray[np.intp]:
        """Rows of the rotations that are not prescribed while others are."""
        turning = self.rows[self.rows < 3]
        return np.setdiff1d(np.arange(3), turning) if len(turning) else turning

    def periodic(self, lower: Array, upper: Array) -> NDArray[np.bool_]:
        """Joints of which every angle lies within the limits, and a full turn changes nothing."""
        turns = np.zeros(self.chain.n_joints, dtype=bool)
        for i, j in enumerate(self.chain.coordinate):
            omega, v = self.chain.X[i, :3], self.chain.X[i, 3:]
            # A helical joint advances, a mimic joint of another ratio does not turn fully.
            pure = np.linalg.norm(omega) > 0.5 and abs(omega @ v) < 1e-12
            once = np.sum(self.chain.coordinate == j) == 1 and abs(self.chain.multiplier[i]) == 1.0
            turns[j] = pure and once and not np.any(self.A[:, j])
        return turns & (upper - lower >= 2.0 * np.pi)

    def matrix(self, J: Array) -> Array:
        """Matrix of the equations, shape (..., m+p, u), from J of shape (..., 6, n)."""
        of_link = J[..., self.rows, :] / self.row_scale[:, None] * self.joint_scale
        of_joints = np.broadcast_to(self.A, (*J.shape[:-2], *self.A.shape))
        return np.concatenate([of_link, of_joints], axis=-2)[..., self.unknown]

    def right_side(self, V: Array, c: Array) -> Array:
        """Right-hand side, shape (..., m+p), from a twist (..., 6) and joint tasks (..., p)."""
        return np.concatenate([V[..., self.rows] / self.row_scale, c / self.A_scale], axis=-1)

    def _check(self, link: str) -> None:
        names = [self.joint_names[j] for j in self.unknown]
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
            q = np.random.default_rng(0).uniform(-1.0, 1.0, (4, self.chain.n_joints))
            turning = np.abs(self.chain.pose_and_jacobian(q)[1][:, self.ignored_rotations])
            if turning.max() > 1e-9:
                raise HodynError(
                    f'The task prescribes {", ".join(TASK_ROWS[i] for i in self.rows if i < 3)}, '
                    f'but the joints turn the link {link!r} about '
                    f'{", ".join(TASK_ROWS[i][1] for i in self.ignored_rotations)}, too. Such '
                    'angular velocities do not determine an orientation: prescribe all of rx, ry, '
                    'rz or none.'
                )


def _rows(task: Sequence[str]) -> NDArray[np.intp]:
    names = list(task)
    if not names or len(set(names)) < len(names) or not set(names) <= set(TASK_ROWS):
        raise HodynError(
            f'task is {tuple(names)!r}, expected one or more of {", ".join(TASK_ROWS)}, each once.'
        )
    return np.array(sorted(TASK_ROWS.index(name) for name in names), dtype=np.intp)
