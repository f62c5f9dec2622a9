"""The smallest uniform time factor with which a motion keeps its limits.

Played with the factor c, a motion q(t) becomes q(t / c): the same path, c times as long. All that
is limited is a function of s = 1 / c, see `scaling_dynamics`, which needs inverse dynamics at two
rates only. So many rates are evaluated, and the edges between those that keep all limits and those
that do not are found by bisection.

A function of time is examined on every segment between its knots, see `scaling_in_time`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.limits import MotorLimits
from hodyn_ros.actuators.limits import motor_limits as no_motor_limits
from hodyn_ros.analysis.limits import MotionLimits, find_position_violations, motion_limits
from hodyn_ros.analysis.scaling_dynamics import (
    Quantity,
    ScaledDynamics,
    joint_quantities,
    motor_quantities,
)
from hodyn_ros.analysis.scaling_in_time import scaling_in_time, with_segments
from hodyn_ros.analysis.scaling_search import UniformScaling, scaling_of
from hodyn_ros.analysis.stretching import TimedMotion, WrenchFunction, knots_of
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import ActuatorError, MotionError, ScalingError, WrenchError
from hodyn_ros.kinematics.joints import checked_motion
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.trajectory.extremes import position_extremes
from hodyn_ros.trajectory.timeline import checked_times

Array = NDArray[np.float64]

SAMPLES = 2001
"""Equal steps at which a function of time is examined, besides its segments between knots."""


@dataclass(frozen=True)
class _Problem:
    """What limits a motion, whichever its samples are."""

    model: RobotModel
    limits: MotionLimits
    wrench: Wrench | Sequence[Wrench] | WrenchFunction | None
    actuators: Actuators | None
    motor_limits: MotorLimits | None
    stiffness: Mapping[str, ArrayLike] | None

    def quantities(self, samples: Array, times: Array | None = None) -> list[Quantity]:
        """Limited quantities at samples (N, K, n), refused if a position is outside."""
        refuse_positions(self.model, self.limits, samples[:, 0], times)
        wrench = self.wrench
        if callable(wrench):
            if times is None:
                raise WrenchError(
                    'The wrench is a function of time, but the motion is given as samples; give '
                    'the wrench at the samples, or the motion as a function of time.'
                )
            wrench = wrench(times, samples.shape[1] - 2)
        dynamics = ScaledDynamics(self.model, samples, wrench)
        found = joint_quantities(dynamics, self.model, self.limits)
        if self.actuators is not None:
            given = self.motor_limits or no_motor_limits(self.actuators)
            found += motor_quantities(dynamics, self.actuators, given, self.stiffness)
        return found

    @property
    def K(self) -> int:
        """Derivatives that a function of time is asked for, the zeroth included."""
        return 4 if self.actuators is None else 6


def uniform_scaling(
    model: RobotModel,
    motion: ArrayLike | TimedMotion,
    limits: MotionLimits | None = None,
    *,
    wrench: Wrench | Sequence[Wrench] | WrenchFunction | None = None,
    actuators: Actuators | None = None,
    motor_limits: MotorLimits | None = None,
    stiffness: Mapping[str, ArrayLike] | None = None,
    samples: int | ArrayLike = SAMPLES,
) -> UniformScaling:
    """Smallest uniform time factor with which a motion keeps its limits.

    Parameters
    ----------
    model : RobotModel
    motion : array-like, shape (N, K, n), or function of time
        Samples with their time derivatives, see `inverse_dynamics`; K >= 4 for limits of the jerk
        and of the torque rate, K >= 5 for the torque and K >= 6 for the torque rate of motors
        behind springs. A function of time is examined at equal steps, and if it has knots, an
        array `times` as `MotionSpline` and `JtcMotion` have, at 16 places of each segment between
        them; then at the peaks between all of these. Of a function without knots only what
        `samples` resolves is seen: what is shorter than the distance between two of them may stay
        unseen and exceed its limit.
    limits : MotionLimits, optional
        By default those of the model.
    wrench : Wrench or sequence of Wrench, or function of time, optional
        At these samples. It is taken as a function of the place on the path: where the motion is
        slower, it changes more slowly. For a motion that is a function of time it may be one, too:
        wrench(t, orders) with times (N,) gives wrenches with values (N, orders, 6).
    actuators : Actuators, optional
        Without damping.
    motor_limits : MotorLimits, optional
        Of these actuators.
    stiffness : mapping of joint name to array-like, shape (N, S), optional
        For actuators that choose it, see `motor_motion`; a function of the place on the path.
    samples : int or array-like, shape (N,)
        Number N of equal steps, from start to end, or the times themselves [s], at which a
        function of time is examined, besides its segments from the first to the last of them. With
        a wrench or stiffness that is known there only, what is between them is not looked at.

    Returns
    -------
    UniformScaling

    Raises
    ------
    ScalingError
        If no factor makes the motion keep its limits: a position limit is exceeded, or gravity and
        wrenches alone ask for too much torque.
    MotionError
        If the motion cannot be used, or a limit needs a derivative that it does not have.
    WrenchError, ActuatorError
        If wrench or actuators do not fit; joints with damping have no factor, because their
        deflection depends on the past.

    Notes
    -----
    The limits are evaluated at 120 rates over three decades, 6 % apart (along a function of time
    at its peaks, elsewhere at a quarter of them), and the edges found by bisection. The limits are
    kept at the factor; a narrower interval of factors may stay unseen.

    Excesses within the rounding of `find_violations` are none.
    """
    limits = motion_limits(model) if limits is None else limits
    if actuators is None and (motor_limits is not None or stiffness is not None):
        raise ActuatorError('motor_limits or stiffness are given without actuators.')
    problem = _Problem(model, limits, wrench, actuators, motor_limits, stiffness)
    if callable(motion):
        return _along(problem, motion, _times(motion, samples))
    return scaling_of(problem.quantities(_sampled(model, motion)))


def refuse_positions(
    model: RobotModel, limits: MotionLimits, positions: Array, times: Array | None = None
) -> None:
    """Refuse positions (N, n) beyond their limits.

    Raises
    ------
    ScalingError
    """
    found = find_position_violations(model, limits, positions)
    if found:
        worst = found[0]
        sample = worst.sample
        place = f'sample {sample}' if times is None else f'{times[sample]:.6g} s'
        raise ScalingError(
            f'Joint {worst.joint_name!r} has the position {worst.value:.6g} at {place} beyond its '
            f'limit {worst.limit:.6g}: no time factor changes that; change the path.'
        )


def refuse_extremes(model: RobotModel, limits: MotionLimits, motion: TimedMotion) -> None:
    """Refuse a function of time that leaves its position limits between samples, if it can tell.

    Raises
    ------
    ScalingError
    """
    if hasattr(motion, 'expansions'):
        extremes = position_extremes(motion)  # type: ignore[arg-type]
        for positions, times in (
            (extremes.lowest, extremes.lowest_time),
            (extremes.highest, extremes.highest_time),
        ):
            for worst in find_position_violations(model, limits, positions[None]):
                time = times[model.joint_names.index(worst.joint_name)]
                raise ScalingError(
                    f'Joint {worst.joint_name!r} has the position {worst.value:.6g} at {time:.6g} '
                    f's beyond its limit {worst.limit:.6g}: no time factor changes that; change '
                    'the path.'
                )


def _times(motion: TimedMotion, samples: int | ArrayLike) -> Array:
    """Choose the times at which a function of time is examined."""
    start, end = float(motion.start_time), float(motion.end_time)
    if np.ndim(samples) == 0:
        if isinstance(samples, bool) or not isinstance(samples, (int, np.integer)) or samples < 2:
            raise MotionError(f'samples is {samples!r}, expected an integer of at least 2.')
        return np.linspace(start, end, int(samples))
    times = checked_times(samples, 2)
    if times[0] < start or times[-1] > end:
        raise MotionError(
            f'The samples are from {times[0]:.6g} s to {times[-1]:.6g} s, expected times of the '
            f'motion, {start:.6g} s to {end:.6g} s.'
        )
    return times


def _along(problem: _Problem, motion: TimedMotion, times: Array) -> UniformScaling:
    """Scale a function of time."""
    refuse_extremes(problem.model, problem.limits, motion)

    def examined(t: Array) -> list[Quantity]:
        return problem.quantities(_sampled(problem.model, motion(t, problem.K - 1)), t)

    if _is_sampled(problem.wrench) or problem.stiffness is not None:
        quantities = examined(times)
        return scaling_of(quantities, [times] * len(quantities))
    result = scaling_in_time(examined, with_segments(times, knots_of(motion)))
    if result.limiting is None:
        return result
    assert result.limiting.time is not None
    nearest = int(np.abs(times - result.limiting.time).argmin())
    return result._replace(limiting=result.limiting._replace(sample=nearest))


def _is_sampled(wrench: Wrench | Sequence[Wrench] | WrenchFunction | None) -> bool:
    """Whether a wrench is known at the samples only, rather than constant or a function."""
    if wrench is None or callable(wrench):
        return False
    given = (wrench,) if isinstance(wrench, Wrench) else wrench
    return any(np.ndim(item.values) > 2 for item in given)


def _sampled(model: RobotModel, motion: ArrayLike) -> Array:
    """Check samples (N, K, n)."""
    samples = checked_motion(model, motion)
    if samples.ndim != 3 or not len(samples):
        raise MotionError(
            f'The motion has shape {samples.shape}, expected (N, K, {model.n_joints}) with N >= 1.'
        )
    return samples
