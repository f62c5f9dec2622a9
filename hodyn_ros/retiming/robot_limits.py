"""A robot with all that is limited of its motion, and motions as functions of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.dynamics.inverse import friction_efforts, inverse_dynamics
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import ActuatorError, ScalingError
from hodyn_ros.model.limits import LIMITED, MotionLimits
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.model.violations import LimitedJoints, Violation, motion_limits
from hodyn_ros.trajectory.motion import position_extremes
from hodyn_ros.typing import Array

if TYPE_CHECKING:
    from hodyn_ros.actuators.assignment import Actuators
    from hodyn_ros.actuators.limits import MotorLimits


class TimedMotion(Protocol):
    """Motion of n joints as a function of time, such as a `MotionSpline`.

    Attributes
    ----------
    start_time, end_time : float
        [s]
    """

    @property
    def start_time(self) -> float:
        """Time at which it begins [s]."""

    @property
    def end_time(self) -> float:
        """Time at which it ends [s]."""

    def __call__(self, t: ArrayLike, highest_derivative: int = 4) -> Array:
        """Motion at times (...), shape (..., highest_derivative + 1, n).

        Parameters
        ----------
        t : array-like, shape (...)
            Times within the motion [s].
        highest_derivative : int
            Time derivatives that are wanted.

        Returns
        -------
        ndarray, shape (..., highest_derivative + 1, n)
            [rad/s^k] or [m/s^k].
        """


def knots_of(motion: TimedMotion) -> Array:
    """Read the times (N,) between which a motion is smooth: its `times`, or start and end [s].

    Parameters
    ----------
    motion : function of time

    Returns
    -------
    ndarray, shape (N,)
        Increasing, with start and end; only these if it has no array `times`.
    """
    times, ends = getattr(motion, 'times', None), (motion.start_time, motion.end_time)
    if not isinstance(times, np.ndarray) or times.dtype.kind not in 'fiu':
        return np.array(ends, dtype=np.float64)
    return np.unique(np.append(ends, times[(times > ends[0]) & (times < ends[1])]))


def at_rate(series: Array, s: float) -> Array:
    """Series of shape (..., K, n) of what is played at the rate s.

    Parameters
    ----------
    series : ndarray, shape (..., K, n)
        Values and their time derivatives.
    s : float
        Rate: 2 is twice as fast.

    Returns
    -------
    ndarray, shape (..., K, n)
        `[..., k, :]` times s^k.
    """
    return series * s ** np.arange(float(series.shape[-2]))[:, None]


class Limiting(NamedTuple):
    """What would exceed its limit first if the motion were faster.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.retiming import uniform_scaling
    >>> from hodyn_ros.trajectory import fit_spline
    >>> spline = fit_spline([0.0, 0.3], [[0.0, 0.0], [1.0, 0.0]])
    >>> limiting = uniform_scaling(RobotModel.from_urdf('two_link'), spline).limiting
    >>> limiting.quantity, limiting.name, round(limiting.value), limiting.limit, limiting.place
    ('effort', 'shoulder', 80, 80.0, '0.0925052 s')
    """

    quantity: str
    """As in `hodyn_ros.model.limits` and `hodyn_ros.actuators.limits`."""
    name: str
    """Name of the joint or motor."""
    sample: int | None
    """None of a function of time."""
    value: float
    """At the factor."""
    limit: float
    """With its sign."""
    time: float | None = None
    """Of a function of time [s]."""

    @property
    def place(self) -> str:
        """Sample or time, for messages."""
        return f'sample {self.sample}' if self.time is None else f'{self.time:.6g} s'


class UniformScaling(NamedTuple):
    """How much slower, or faster, a motion is to be played.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.retiming import uniform_scaling
    >>> from hodyn_ros.trajectory import fit_spline
    >>> spline = fit_spline([0.0, 0.3], [[0.0, 0.0], [1.0, 0.0]])
    >>> scaling = uniform_scaling(RobotModel.from_urdf('two_link'), spline)
    >>> scaling.is_kept, round(scaling.factor, 3), scaling.limiting.name
    (False, 3.541, 'shoulder')
    """

    factor: float
    """Smallest c such that q(t / c) and every slower motion keep the limits; zero if nothing
    limits the speed."""
    limiting: Limiting | None
    """None if nothing limits the speed."""

    @property
    def is_kept(self) -> bool:
        """Whether the motion keeps the limits as it is given."""
        return self.factor <= 1.0


@dataclass(frozen=True, eq=False)
class RobotLimits:
    """A robot and all that is limited of its motion."""

    model: RobotModel
    limits: MotionLimits
    actuators: Actuators | None = None
    motor_limits: MotorLimits | None = None

    @classmethod
    def of(
        cls,
        model: RobotModel,
        limits: MotionLimits | None = None,
        actuators: Actuators | None = None,
        motor_limits: MotorLimits | None = None,
    ) -> RobotLimits:
        """Limits as `uniform_scaling` and `retime` take them.

        Parameters
        ----------
        model : RobotModel
        limits : MotionLimits, optional
            By default those of the model.
        actuators, motor_limits : Actuators and MotorLimits, optional
            By default motors have no limits.

        Returns
        -------
        RobotLimits

        Raises
        ------
        ActuatorError
            If there are limits of motors without actuators.
        """
        limits = motion_limits(model) if limits is None else limits
        if actuators is None:
            if motor_limits is not None:
                raise ActuatorError('motor_limits are given without actuators.')
            return cls(model, limits)
        from hodyn_ros.actuators.limits import motor_limits as no_motor_limits

        return cls(model, limits, actuators, motor_limits or no_motor_limits(actuators))

    @cached_property
    def joints(self) -> LimitedJoints:
        """Joints whose motion is limited, also those that move with others."""
        return LimitedJoints(self.model, self.limits)

    @cached_property
    def order(self) -> int:
        """Highest derivative of the motion that limits of joints depend on, 2 at least."""
        orders = (
            order + 2 * (kind == 'effort')
            for quantity, kind, order in LIMITED
            if np.isfinite(getattr(self.joints.limits, quantity, np.inf)).any()
        )
        return max([2, *orders])


def rigid_efforts(
    model: RobotModel, motion: Array, wrenches: Sequence[Wrench] | None = None
) -> Array:
    """Efforts (N, K - 2, n) without friction along a motion (N, K, n).

    Parameters
    ----------
    model : RobotModel
    motion : ndarray, shape (N, K, n)
        [rad/s^k] or [m/s^k].
    wrenches : sequence of Wrench, optional
        With K - 2 orders at the same samples.

    Returns
    -------
    ndarray, shape (N, K - 2, n)
        [N m/s^m] or [N/s^m].
    """
    efforts = inverse_dynamics(model, motion, wrenches or None)
    if model.friction:
        # A model without it would be another one, for which nothing has been compiled.
        efforts -= friction_efforts(model, motion)
    return efforts


def out_of_range(worst: Violation, time: float | None) -> ScalingError:
    """Refusal of a position at a sample or time."""
    sample = worst.sample if time is None else None
    found = Limiting('position', worst.joint_name, sample, worst.value, worst.limit, time)
    return ScalingError(
        f'Joint {worst.joint_name!r} has the position {worst.value:.6g} at {found.place} beyond '
        f'its limit {worst.limit:.6g}: no time factor changes that; change the path.',
        limiting=found,
    )


def refuse_extremes(robot: RobotLimits, motion: TimedMotion) -> None:
    """Refuse a function of time that leaves its position limits anywhere, if it can tell.

    Parameters
    ----------
    robot : RobotLimits
        Those of positions are used, without those of joints that closed loops move.
    motion : function of time
        One with `expansions`, such as a `PiecewiseMotion`, is looked at between its samples
        too; others are not looked at.

    Raises
    ------
    ScalingError
        For the joint that leaves its range; `limiting` says where.
    """
    if hasattr(motion, 'expansions'):
        lowest, highest, *times = position_extremes(motion)  # type: ignore[arg-type]
        for worst, joint in robot.joints.beyond(lowest, highest):
            raise out_of_range(worst, float(times[worst.sample][joint]))
