"""The smallest uniform time factor with which a motion keeps its limits.

Played with the factor c, a motion q(t) becomes q(t / c): the same path, c times as long. All that
is limited is a function of s = 1 / c, mostly a polynomial, see `scaling_dynamics`, so the factors
that keep all limits are found exactly, as what the roots of these polynomials leave free.

Between samples of a function of time, limits are exceeded by a little more than at the samples. So
where a quantity nearly reaches its limit, the samples close in on its peak.
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
from hodyn_ros.analysis.scaling_search import UniformScaling, scaling_of
from hodyn_ros.analysis.stretching import TimedMotion, WrenchFunction
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import ActuatorError, MotionError, ScalingError, WrenchError
from hodyn_ros.kinematics.joints import checked_motion
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.trajectory.extremes import position_extremes
from hodyn_ros.trajectory.timeline import checked_times

Array = NDArray[np.float64]

SAMPLES = 2001
"""Times at which a function of time is examined at first."""

# Ratio to the limit from which on a peak is looked at, and how many of them at most.
_NEAR = 0.99
_MOST_PEAKS = 4000
# Samples to each side of a peak, and how often they close in on it by this factor.
_AROUND = 5
_ROUNDS = 5


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
        refuse_positions(self.model, self.limits, samples[:, 0])
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
        behind springs. A function of time such as a `MotionSpline` is examined at equal steps and
        at the peaks between them.
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
        function of time is examined. With a wrench or stiffness that is known there only, peaks
        between them are not looked for.

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
    Exact up to rounding for rigid joints and linear springs, with viscous and Coulomb friction.
    With other laws of friction, nonlinear springs and variable stiffness the limits are evaluated
    at 120 rates over three decades, 6 % apart, and the edge found by bisection: the limits are
    kept at the factor, but a narrower interval of factors may stay unseen.

    Excesses within the rounding of `find_violations` are none.
    """
    limits = motion_limits(model) if limits is None else limits
    if actuators is None and (motor_limits is not None or stiffness is not None):
        raise ActuatorError('motor_limits or stiffness are given without actuators.')
    problem = _Problem(model, limits, wrench, actuators, motor_limits, stiffness)
    if callable(motion):
        return _along(problem, motion, _times(motion, samples))
    return scaling_of(problem.quantities(_sampled(model, motion)))


def refuse_positions(model: RobotModel, limits: MotionLimits, positions: Array) -> None:
    """Refuse positions (N, n) beyond their limits.

    Raises
    ------
    ScalingError
    """
    found = find_position_violations(model, limits, positions)
    if found:
        worst = found[0]
        raise ScalingError(
            f'Joint {worst.joint_name!r} has the position {worst.value:.6g} at sample '
            f'{worst.sample} beyond its limit {worst.limit:.6g}: no time factor changes that; '
            'change the path.'
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

    coarse = examined(times)
    result = scaling_of(coarse)
    limiting = result.limiting
    if limiting is None:
        return result
    is_sampled = problem.wrench is not None and not callable(problem.wrench)
    if is_sampled or problem.stiffness is not None:
        return result._replace(limiting=limiting._replace(time=float(times[limiting.sample])))
    s = 1.0 / result.factor
    kind, column, sample = _peaks(coarse, s)
    if not len(kind):
        return result._replace(limiting=limiting._replace(time=float(times[limiting.sample])))
    offsets = np.linspace(-1.0, 1.0, 2 * _AROUND + 1)
    steps = np.concatenate(([0.0], np.diff(times), [0.0]))
    centre, width = times[sample], np.maximum(steps[sample], steps[sample + 1])
    for _ in range(_ROUNDS):
        around = np.clip(centre[:, None] + width[:, None] * offsets, times[0], times[-1])
        fine = examined(around.ravel())
        for number, item in enumerate(fine):
            rows = np.flatnonzero(kind == number)
            if len(rows):
                values = np.abs(item.values(s)).reshape(*around.shape, -1)
                best = values[rows, :, column[rows]].argmax(axis=1)
                centre[rows] = around[rows, best]
        width /= _AROUND
    peaks = np.unique(centre)
    result = scaling_of([*coarse, *examined(peaks)], [times] * len(coarse) + [peaks] * len(coarse))
    assert result.limiting is not None and result.limiting.time is not None
    nearest = int(np.abs(times - result.limiting.time).argmin())
    return result._replace(limiting=result.limiting._replace(sample=nearest))


def _peaks(quantities: Sequence[Quantity], s: float) -> tuple[NDArray[np.intp], ...]:
    """Quantity, column and index of the samples next to which a limit is nearly reached."""
    found = []
    for number, item in enumerate(quantities):
        ratio = np.abs(item.values(s)) / item.limit
        padded = np.pad(ratio, ((1, 1), (0, 0)))
        is_peak = (ratio > _NEAR) & (ratio >= padded[:-2]) & (ratio >= padded[2:])
        sample, column = np.nonzero(is_peak)
        kind = np.full(len(sample), number)
        found.append((kind, column, sample, ratio[sample, column]))
    kind, column, sample, ratios = (np.concatenate(each) for each in zip(*found))
    highest = np.argsort(-ratios, kind='stable')[:_MOST_PEAKS]
    return kind[highest], column[highest], sample[highest]


def _sampled(model: RobotModel, motion: ArrayLike) -> Array:
    """Check samples (N, K, n)."""
    samples = checked_motion(model, motion)
    if samples.ndim != 3 or not len(samples):
        raise MotionError(
            f'The motion has shape {samples.shape}, expected (N, K, {model.n_joints}) with N >= 1.'
        )
    return samples
