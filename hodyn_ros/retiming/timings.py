"""Another timing of a motion that keeps its limits: along its path, or of all of it by one factor.

`hodyn retime` and the service `~/retime` of the node do this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hodyn_ros.checks import check_choice
from hodyn_ros.display import shown
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import RequestError, TrajectoryError, UnlimitedError
from hodyn_ros.model.limits import MotionLimits
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.model.violations import motion_limits
from hodyn_ros.retiming.retiming import Retimed, retime
from hodyn_ros.retiming.scaling import (
    Limiting,
    TimedMotion,
    UniformScaling,
    knots_of,
    stretched,
    uniform_scaling,
)
from hodyn_ros.trajectory.jtc import JtcMotion, jtc_motion
from hodyn_ros.trajectory.waypoints import divided_times
from hodyn_ros.typing import Array

if TYPE_CHECKING:
    from hodyn_ros.actuators.assignment import Actuators
    from hodyn_ros.actuators.limits import MotorLimits

TIMINGS = ('path', 'uniform')
"""Ways to change the timing of a motion, see `new_timing`."""

# Samples of a motion that is stretched: their rate, at least, and how many there may be.
_RATE = 100.0
_MOST_SAMPLES = 500_000


@shown
class NewTiming(NamedTuple):
    """A motion with another timing that keeps its limits, and how it compares."""

    times: Array
    """Of its samples, from zero or from where the given ones begin, shape (N,) [s]."""
    samples: Array
    """Position and derivatives, shape (N, K, n) [rad/s^k] or [m/s^k]."""
    motion: JtcMotion | None
    """As joint_trajectory_controller executes the samples, which is what keeps the limits; None if
    that was not to be known."""
    duration: float
    """[s]"""
    duration_before: float
    """[s]"""
    limiting: Limiting | None
    """What would exceed its limit first if it were faster, in the new timing."""
    is_fastest: bool
    """Whether that is why it is no faster, and not the wish for nothing but a slower motion."""
    found: Retimed | UniformScaling
    """All that is known of the time law, or of the time factors."""
    limits: MotionLimits
    """That it keeps; along the path those of `Retimed.limits`."""
    factor: float | None = None
    """Of a motion that is stretched; 1 if it stays as it is, None along the path."""
    standstill: float = 0.0
    """Time for which it stands still where the path does, if it is not stretched [s]."""
    deviation: float = 0.0
    """Largest distance of a joint from the path [rad] or [m]."""


def new_timing(
    model: RobotModel,
    path: TimedMotion | None,
    limits: MotionLimits | None = None,
    *,
    timing: str = 'path',
    slower_only: bool = False,
    actuators: Actuators | None = None,
    motor_limits: MotorLimits | None = None,
    given: tuple[Array, Array] | None = None,
    wrench: Sequence[Wrench] = (),
    is_executed: bool = True,
    **options: Any,
) -> NewTiming:
    """Find another timing of a motion with which it keeps its limits.

    Parameters
    ----------
    model : RobotModel
    path : function of time
        Of class C4, such as the `MotionSpline` of `plan_motion`. With the timing 'uniform' and
        samples it may be None.
    limits : MotionLimits, optional
        By default those of the model.
    timing : {'path', 'uniform'}
        'path': a new time law along the path, each part as fast as the limits let it be, see
        `retime`. 'uniform': the motion is stretched, see `uniform_scaling`.
    slower_only : bool
        A motion that keeps its limits stays as it is; another one does not become shorter.
    actuators, motor_limits : Actuators and MotorLimits, optional
        Without damping.
    given : times (N,) and motion (N, K, n), optional
        What is stretched, or stays as it is; by default the knots of the path and as many samples
        between them as make 100 Hz.
    wrench : sequence of Wrench, optional
        At these samples; for a motion that is stretched.
    is_executed : bool
        Whether a controller executes the samples, so that limits hold between them too, and not
        only at them as with wrenches and measurements.
    **options
        For a new time law: intervals, rate, window, rise_time and keep_standstills of `retime`.

    Returns
    -------
    NewTiming

    Raises
    ------
    ScalingError
        If no timing keeps the limits; its `limiting` is what exceeds its limit at any speed.
    UnlimitedError
        If nothing limits the speed.
    TrajectoryError, MotionError, WrenchError, ActuatorError, RequestError
        If the motion, wrenches, actuators or options cannot be used.
    """
    check_choice('timing', timing, TIMINGS, RequestError)
    limits = motion_limits(model) if limits is None else limits
    drives: dict[str, Any] = {'actuators': actuators, 'motor_limits': motor_limits}
    if timing == 'uniform' or slower_only:
        times, samples = given or _sampled(path, 4 if actuators is None else 5)
        scaling, is_kept = _scaled(
            model, times, samples, limits, wrench, is_executed, drives
        )
        if timing == 'uniform' or is_kept:
            stays = slower_only and is_kept
            return _stretched(times, samples, limits, scaling, stays, is_executed)
    assert path is not None
    return _along(model, path, limits, slower_only, {**drives, **options})


def _along(
    model: RobotModel,
    path: TimedMotion,
    limits: MotionLimits,
    slower_only: bool,
    options: dict[str, Any],
) -> NewTiming:
    """New time law along the path, no shorter than it is where it may only be slower."""
    before = path.end_time - path.start_time
    shortest = before if slower_only else 0.0
    found = retime(model, path, limits, **options, shortest=shortest)
    times = found.motion.times
    return NewTiming(
        times,
        found.motion(times),
        found.motion,
        found.duration,
        before,
        found.limiting,
        not slower_only,
        found,
        found.limits,
        standstill=found.standstill,
        deviation=float(found.deviation.max()),
    )


def _scaled(
    model: RobotModel,
    times: Array,
    samples: Array,
    limits: MotionLimits,
    wrench: Sequence[Wrench],
    is_executed: bool,
    drives: dict[str, Any],
) -> tuple[UniformScaling, bool]:
    """Scaling of samples, and of what a controller executes, and whether both keep the limits.

    Returns
    -------
    scaling : UniformScaling
        The one with the larger factor.
    is_kept : bool
        Whether the motion keeps its limits as it is.
    """
    scalings = []
    if is_executed:  # which says when a limit is exceeded, so it comes first
        motion = jtc_motion(times, *(samples[:, k] for k in range(3)))
        scalings = [uniform_scaling(model, motion, limits, **drives)]
    scalings += [uniform_scaling(model, samples, limits, wrench=wrench or None, **drives)]
    slowest = max(reversed(scalings), key=lambda each: each.factor)
    return slowest, all(each.is_kept for each in scalings)


def _sampled(path: TimedMotion | None, highest_derivative: int) -> tuple[Array, Array]:
    """Times (N,) and samples (N, K, n) of a motion."""
    assert path is not None
    knots = knots_of(path)
    if knots is None:
        knots = np.array([path.start_time, path.end_time])
    if len(knots) + _RATE * (knots[-1] - knots[0]) > _MOST_SAMPLES:
        raise TrajectoryError(
            f'The motion of {knots[-1] - knots[0]:g} s has more than {_MOST_SAMPLES} samples at '
            f'{_RATE:g} Hz and {len(knots)} knots; cut it into parts.'
        )
    times = divided_times(knots, _RATE)
    return times, path(times, highest_derivative)


def _stretched(
    times: Array,
    samples: Array,
    limits: MotionLimits,
    scaling: UniformScaling,
    stays: bool,
    is_executed: bool,
) -> NewTiming:
    """Samples at the smallest time factor, or as they are.

    Parameters
    ----------
    times : ndarray, shape (N,)
        [s]
    samples : ndarray, shape (N, K, n)
        [rad/s^k] or [m/s^k].
    limits : MotionLimits
        For the result.
    scaling : UniformScaling
        Of the samples.
    stays : bool
        Whether the motion is to stay as it is.
    is_executed : bool
        Whether the motion of the controller is wanted too.

    Returns
    -------
    NewTiming

    Raises
    ------
    UnlimitedError
        If nothing limits the speed and the motion is not to stay.
    """
    if scaling.factor == 0.0 and not stays:
        raise UnlimitedError(
            'Nothing limits the speed of this motion; name limits, or ask for nothing but a '
            'slower one (--slower-only, slower_only).'
        )
    factor = 1.0 if stays else scaling.factor
    start, duration = times[0], float(times[-1] - times[0])
    limiting = scaling.limiting
    if limiting is not None:
        time = times[limiting.sample] if limiting.time is None else limiting.time
        limiting = limiting._replace(time=start + factor * (time - start))
    times, samples = start + factor * (times - start), stretched(samples, factor)
    motion = jtc_motion(times, *(samples[:, k] for k in range(3))) if is_executed else None
    return NewTiming(
        times,
        samples,
        motion,
        factor * duration,
        duration,
        limiting,
        not stays,
        scaling,
        limits,
        factor,
    )
