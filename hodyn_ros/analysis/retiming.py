"""The fastest smooth time law on a given path under limits up to jerk and torque rate.

The path q(sigma) stays; what is sought is sigma(t) of class C4, at rest at both ends with zero
acceleration, jerk and snap, so that the motor torques of elastic joints are continuous too. The
result is checked by inverse dynamics along the motion itself and scaled uniformly by what is
missing to the limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.limits import MotorLimits
from hodyn_ros.analysis.limits import MotionLimits, motion_limits
from hodyn_ros.analysis.retiming_limits import PathLimits
from hodyn_ros.analysis.retiming_path import RestingPath
from hodyn_ros.analysis.retiming_solver import fastest_law
from hodyn_ros.analysis.scaling import SAMPLES, refuse_extremes, uniform_scaling
from hodyn_ros.analysis.scaling_search import Limiting, UniformScaling
from hodyn_ros.analysis.stretching import (
    TimedMotion,
    WrenchFunction,
    at_rate,
    knots_of,
    wrenches_along,
)
from hodyn_ros.analysis.time_law import TimeLaw
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import ScalingError, TrajectoryError
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.trajectory.timeline import real_numbers

Array = NDArray[np.float64]

# Intervals between the knots of the time law by default: on any path, on each of its segments, and
# on very long paths.
_FEWEST_INTERVALS, _ON_SEGMENT, _MOST_INTERVALS = 128, 4, 512

# Places in an interval at which the limits are part of the optimisation, and how many times more
# samples are checked.
_DENSITY = 6
_FINER = 10
# Samples closer than this, relative to the duration, are one.
_CLOSEST = 1e-9


@dataclass(frozen=True)
class RetimedMotion:
    """Motion of class C4 on a path, at rest at both ends; immutable. Made by `retime`.

    Attributes
    ----------
    path : RestingPath
    law : TimeLaw
    factor : float
        Uniform time factor on top of the law.
    """

    path: RestingPath
    law: TimeLaw
    factor: float

    @property
    def start_time(self) -> float:
        """Time at which it begins: zero [s]."""
        return 0.0

    @property
    def end_time(self) -> float:
        """Time at which it ends [s]."""
        return self.duration

    @property
    def duration(self) -> float:
        """Time that it takes [s]."""
        return self.factor * self.law.duration

    @property
    def times(self) -> Array:
        """Times of the knots, of the law and of the path [s]; increasing, from start to end."""
        passed = self.law.time_at(self.path.knots())
        return self.factor * np.union1d(self.law.times, passed)

    @property
    def continuous_derivative(self) -> int:
        """Highest time derivative of the positions that is sure to be continuous: 4, the snap."""
        return 4

    def parameter(self, t: ArrayLike, highest_derivative: int = 4) -> Array:
        """Path parameter sigma at given times.

        Parameters
        ----------
        t : array-like, shape (...)
            From `start_time` to `end_time` [s].
        highest_derivative : int

        Returns
        -------
        ndarray, shape (..., highest_derivative + 1)

        Raises
        ------
        TrajectoryError
            If a time lies outside or the order is impossible.
        """
        return self.path.sigma(self._law_at(t, highest_derivative))

    def __call__(self, t: ArrayLike, highest_derivative: int = 4) -> Array:
        """Motion at given times.

        Parameters
        ----------
        t : array-like, shape (...)
            From `start_time` to `end_time` [s].
        highest_derivative : int
            Up to what the path gives. Up to the fourth they are continuous.

        Returns
        -------
        ndarray, shape (..., highest_derivative + 1, n)
            `[..., k, :]` is the k-th time derivative of the positions [rad/s^k] or [m/s^k].

        Raises
        ------
        TrajectoryError
            If a time lies outside or the order is impossible.
        """
        return self.path.along(self._law_at(t, highest_derivative))

    def _law_at(self, t: ArrayLike, highest_derivative: int) -> Array:
        if highest_derivative not in range(10):
            raise TrajectoryError(
                f'highest_derivative is {highest_derivative!r}, expected an integer from 0 to 9.'
            )
        time = real_numbers(t, 't')
        outside = ~((time >= 0.0) & (time <= self.duration))
        if outside.any():
            raise TrajectoryError(
                f'The time {time[outside].flat[0]!r} s lies outside of the motion, expected 0 to '
                f'{self.duration!r} s.'
            )
        u = self.law(np.minimum(time / self.factor, self.law.duration), highest_derivative + 1)
        return at_rate(u[..., None], 1.0 / self.factor)[..., 0]


class Retimed(NamedTuple):
    """A motion along a path that keeps its limits, and how it compares."""

    motion: RetimedMotion
    duration: float
    """[s]"""
    uniform_duration: float
    """Of the same path with a constant speed of the parameter, as fast as the limits allow [s]:
    where the path is itself a motion from rest to rest, of that motion scaled uniformly."""
    repair: float
    """Uniform time factor by which the law was scaled after the exact check. Where the constant
    law is the faster one, which takes 1 s before, this is its duration in seconds."""
    limiting: Limiting
    """What would exceed its limit first if the motion were scaled to be faster; its time is that
    of the motion."""


def retime(
    model: RobotModel,
    path: TimedMotion,
    limits: MotionLimits | None = None,
    *,
    wrench: WrenchFunction | None = None,
    actuators: Actuators | None = None,
    motor_limits: MotorLimits | None = None,
    intervals: int | None = None,
) -> Retimed:
    """Find a fast motion of class C4 along a path that keeps limits up to jerk and torque rate.

    Parameters
    ----------
    model : RobotModel
    path : function of the path parameter
        Such as a `MotionSpline`; its times are the parameter sigma. Of class C4.
    limits : MotionLimits, optional
        By default those of the model; see `motion_limits` for acceleration, jerk and torque rate.
    wrench : function of the path parameter, optional
        wrench(sigma, orders) with values (N,) of the parameter gives a Wrench or several with
        values of shape (N, orders, 6), derivatives with respect to the parameter.
    actuators : Actuators, optional
        Without damping.
    motor_limits : MotorLimits, optional
        Of these actuators. They are not part of the optimisation; the final uniform scaling makes
        the motion keep them.
    intervals : int, optional
        Between the knots of the time law: more are slower to compute and give a faster motion. By
        default 128, on a path of more than 32 segments four on each, up to 512.

    Returns
    -------
    Retimed

    Raises
    ------
    ScalingError
        If the path keeps its limits at no speed (positions, weight), or nothing limits its speed.
    TrajectoryError
        If the path does not move, is not of class C4 or does not suit the model.
    WrenchError
        If the wrench does not fit.
    ActuatorError
        If the actuators do not fit, see `uniform_scaling`.

    Notes
    -----
    The limits are checked by exact inverse dynamics at ten times as many places as were part of
    the optimisation, at 16 places of each interval of the law and of each segment of the path, and
    at the peaks between them; the motion is slowed down by what is missing. Of a path without
    knots, an array `times` as a `MotionSpline` has, only what these places resolve is seen: what
    is shorter may stay unseen and exceed its limit.

    The law is a local optimum among splines of the squared speed; it is never slower than the
    uniform one. Sharp Coulomb friction jumps where a joint turns back, and such a jump is part of
    no torque rate, see `Coulomb`.
    """
    limits = motion_limits(model) if limits is None else limits
    _check(model, path)
    intervals = _checked_intervals(path, intervals)
    refuse_extremes(model, limits, path)
    resting = RestingPath(path)
    steps = _FINER * _DENSITY * intervals
    uniform = TimeLaw.from_coefficients(np.array([0.0, 1.0]), np.ones(5))

    def scaled(law: TimeLaw, steps: int) -> UniformScaling:
        # Equal steps in time, and in u, which is fast where the motion begins and ends.
        even = np.linspace(0.0, 1.0, steps + 1)
        times = np.union1d(law.duration * even, law.time_at(even))
        times = times[np.diff(times, prepend=-np.inf) > _CLOSEST * law.duration]
        motion = RetimedMotion(resting, law, 1.0)

        def in_time(t: Array, orders: int) -> Sequence[Wrench]:
            assert wrench is not None
            return wrenches_along(wrench, motion.parameter(t, orders - 1))

        return uniform_scaling(
            model,
            motion,
            limits,
            wrench=None if wrench is None else in_time,
            actuators=actuators,
            motor_limits=motor_limits,
            samples=times,
        )

    by_constant = scaled(uniform, SAMPLES - 1)
    if by_constant.limiting is None:
        raise ScalingError(
            'Nothing limits the speed on this path; expected limits that the motion can reach, '
            'such as the velocities and efforts of the URDF.'
        )
    if not by_constant.slower_is_kept:
        raise ScalingError(
            'The path cannot be followed slowly: somewhere its weight alone exceeds an effort '
            f'limit. Uniform factors that keep the limits: {by_constant.intervals}.',
            by_constant.intervals,
        )
    law = fastest_law(
        lambda places: PathLimits(model, resting, limits, places, wrench),
        1.0 / by_constant.factor,
        intervals,
        _DENSITY,
    )
    found = scaled(law, steps)
    if found.factor * law.duration > by_constant.factor:
        law, found = uniform, by_constant
    motion = RetimedMotion(resting, law, found.factor)
    assert found.limiting is not None and found.limiting.time is not None
    limiting = found.limiting._replace(time=found.factor * found.limiting.time)
    return Retimed(motion, motion.duration, by_constant.factor, found.factor, limiting)


def _check(model: RobotModel, path: TimedMotion) -> None:
    if not callable(path):
        raise TrajectoryError(
            f'The path is of type {type(path).__name__}, expected a function such as the '
            'MotionSpline that fit_spline makes.'
        )
    smooth = getattr(path, 'continuous_derivative', 4)
    if smooth < 4:
        raise TrajectoryError(
            f'The path is continuous up to derivative {smooth} only, expected 4: otherwise the '
            'torque rate jumps or is infinite at any speed. Fit a spline through its waypoints.'
        )
    shape = np.shape(path(path.start_time, 0))
    if shape != (1, model.n_joints):
        raise TrajectoryError(
            f'The path has positions of shape {shape}, expected (1, {model.n_joints}) for the '
            f'joints of {model.name!r}.'
        )


def _checked_intervals(path: TimedMotion, intervals: int | None) -> int:
    if intervals is None:
        knots = knots_of(path)
        segments = 1 if knots is None else len(knots) - 1
        return int(np.clip(_ON_SEGMENT * segments, _FEWEST_INTERVALS, _MOST_INTERVALS))
    if (
        isinstance(intervals, bool)
        or not isinstance(intervals, (int, np.integer))
        or intervals < 1
    ):
        raise TrajectoryError(f'intervals is {intervals!r}, expected a positive integer.')
    return int(intervals)
