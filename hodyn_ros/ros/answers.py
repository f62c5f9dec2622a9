"""Whole answers: efforts along a trajectory or along given samples, for topic and service."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from hodyn_msgs.msg import JointEffort, JointEffortTrajectory, JointMotion, WrenchMotion
from hodyn_msgs.srv import ComputeInverseDynamics
from numpy.typing import NDArray

from hodyn_ros.analysis.limits import MotionLimits, find_violations
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import (
    HodynError,
    JointNameError,
    ModelError,
    MotionError,
    RequestError,
    WrenchError,
)
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.ros.conversions import (
    NANOSECONDS,
    effort_trajectory_message,
    motion_from_message,
    nanoseconds,
    waypoints_from_message,
    wrench_from_message,
)
from hodyn_ros.ros.wrenches import continued
from hodyn_ros.trajectory.spline import MotionSpline, fit_spline
from hodyn_ros.trajectory.waypoints import (
    Waypoints,
    deviation_from_jtc,
    jtc_remarks,
    waypoints_in_order,
)

Array = NDArray[np.float64]

Response = ComputeInverseDynamics.Response

# Part of the range of a joint's waypoints from which on a deviation is worth a remark. Motions
# through positions alone, evenly spaced, stay below.
_LARGE_DEVIATION = 0.5

_ERROR_CODES = (
    (ModelError, Response.NO_MODEL),
    (JointNameError, Response.INVALID_JOINTS),
    (WrenchError, Response.INVALID_WRENCH),
    (RequestError, Response.INVALID_REQUEST),
    (HodynError, Response.INVALID_MOTION),
)


class Robot(NamedTuple):
    """Everything that follows from the robot description; replaced as a whole."""

    model: RobotModel
    limits: MotionLimits
    description: str


def ready(robot: Robot | None, in_preparation: bool = False) -> Robot:
    """Return the robot in use.

    Parameters
    ----------
    robot : Robot or None
    in_preparation : bool
        Whether one is being made ready.

    Raises
    ------
    ModelError
        If there is none yet.
    """
    if robot is None:
        raise ModelError(
            'There is no robot model yet; '
            + (
                'the robot of the description that has arrived is being made ready.'
                if in_preparation
                else 'publish a valid URDF on the topic robot_description or set the parameter '
                'robot_description.'
            )
        )
    return robot


class FittedMotion(NamedTuple):
    """Motion of class C4 in model order, and remarks on how it differs from a controller's."""

    spline: MotionSpline
    remarks: tuple[str, ...]


def fit_waypoints(model: RobotModel, waypoints: Waypoints) -> FittedMotion:
    """Fit a motion through waypoints that are in the order of a message."""
    ordered = waypoints_in_order(waypoints, model.joint_names)
    spline = fit_spline(
        ordered.times, ordered.positions, ordered.velocities, ordered.accelerations
    )
    remarks = list(jtc_remarks(ordered))
    deviation = deviation_from_jtc(spline, ordered)
    large = deviation > _LARGE_DEVIATION * np.ptp(ordered.positions, axis=0)
    if large.any():
        joints = ', '.join(
            f'{model.joint_names[j]} {deviation[j]:.3g}' for j in np.flatnonzero(large)
        )
        remarks.append(
            'Between the waypoints the motion leaves the interpolation of '
            'joint_trajectory_controller by a large part of its range (largest difference: '
            f'{joints} rad or m). Give waypoints that are denser or more evenly spaced in time.'
        )
    return FittedMotion(spline, tuple(remarks))


def sample_times(spline: MotionSpline, period: float, max_samples: int) -> Array:
    """Place the samples of a trajectory in time, the last one at its end.

    Raises
    ------
    RequestError
        If there would be more than `max_samples`.
    """
    intervals = int(np.ceil(min(spline.duration / period * (1.0 - 1e-9), 1e15)))
    _check_count(intervals + 1, max_samples)
    times = spline.start_time + period * np.arange(intervals + 1)
    times[-1] = spline.end_time
    return times


def _check_count(count: int, max_samples: int) -> None:
    if count > max_samples:
        raise RequestError(
            f'The answer would have {count} samples, more than max_samples ({max_samples}); '
            'choose a longer sample period, or split the motion.'
        )


def effort_trajectory(
    robot: Robot,
    times: Array,
    motion: Array,
    wrenches: Sequence[Wrench],
    stamp: int,
    source: int,
) -> JointEffortTrajectory:
    """Efforts and violated limits of a sampled motion (N, K, n) as a message."""
    effort = inverse_dynamics(robot.model, motion, wrenches)
    violations = find_violations(robot.model, robot.limits, motion, effort)
    return effort_trajectory_message(
        robot.model, times, motion, effort, violations, stamp, source
    )


def answer(
    robot: Robot | None,
    request: ComputeInverseDynamics.Request,
    response: ComputeInverseDynamics.Response,
    sample_period: float,
    max_samples: int,
    expect_wrenches: Callable[[RobotModel, Sequence[Wrench]], None],
) -> ComputeInverseDynamics.Response:
    """Fill the response to a service request; bad requests are answered, never raised."""
    try:
        robot = ready(robot)
        response.effort_trajectory, remarks = _requested(
            robot, request, sample_period, max_samples, expect_wrenches
        )
    except HodynError as error:
        response.success = False
        response.error_code = next(
            code for kind, code in _ERROR_CODES if isinstance(error, kind)
        )
        response.message = str(error)
    else:
        response.success = True
        response.error_code = Response.SUCCESS
        response.warnings = [*robot.model.warnings, *remarks]
    return response


def _requested(
    robot: Robot,
    request: ComputeInverseDynamics.Request,
    sample_period: float,
    max_samples: int,
    expect_wrenches: Callable[[RobotModel, Sequence[Wrench]], None],
) -> tuple[JointEffortTrajectory, tuple[str, ...]]:
    has_trajectory = bool(request.trajectory.points or request.trajectory.joint_names)
    has_motion = bool(request.motion)
    if has_trajectory == has_motion:
        raise RequestError(
            'The request holds '
            + ('both a trajectory and motion samples' if has_motion else 'no motion')
            + '; fill exactly one of trajectory and motion.'
        )
    if has_trajectory:
        waypoints = waypoints_from_message(request.trajectory)
        spline, remarks = fit_waypoints(robot.model, waypoints)
        times = _requested_times(request, spline, sample_period, max_samples)
        motion = spline(times)
        stamp = nanoseconds(request.trajectory.header.stamp)
        source = JointEffort.SOURCE_JOINT_TRAJECTORY
    else:
        if len(request.sample_times) or request.sample_period:
            raise RequestError(
                'sample_period and sample_times hold for a trajectory; motion samples are '
                'computed as they are, leave both empty.'
            )
        _check_count(len(request.motion), max_samples)
        times, motion, stamp = _motion_samples(robot.model, request.motion)
        remarks = ()
        source = JointEffort.SOURCE_JOINT_MOTION
    wrenches = _requested_wrenches(request.wrenches, times, motion.shape[1] - 2)
    expect_wrenches(robot.model, wrenches)
    return effort_trajectory(robot, times, motion, wrenches, stamp, source), remarks


def _requested_times(
    request: ComputeInverseDynamics.Request,
    spline: MotionSpline,
    sample_period: float,
    max_samples: int,
) -> Array:
    if not len(request.sample_times):
        period = request.sample_period
        if not (np.isfinite(period) and period >= 0.0):
            raise RequestError(f'sample_period is {period}, expected a positive number or zero.')
        return sample_times(spline, period or sample_period, max_samples)
    if request.sample_period:
        raise RequestError('Give sample_period or sample_times, not both.')
    _check_count(len(request.sample_times), max_samples)
    times = np.asarray(request.sample_times, dtype=np.float64)
    if not np.all(np.isfinite(times)) or np.any(np.diff(times) <= 0.0):
        raise RequestError('sample_times must be finite and increasing.')
    if times[0] < spline.start_time or times[-1] > spline.end_time:
        raise RequestError(
            f'sample_times run from {times[0]} s to {times[-1]} s, but the trajectory lasts from '
            f'{spline.start_time} s to {spline.end_time} s.'
        )
    return times


def _motion_samples(
    model: RobotModel, messages: Sequence[JointMotion]
) -> tuple[Array, Array, int]:
    """Return times (N,), motion (N, K, n) and the stamp of the first sample [ns]."""
    samples = []
    for index, message in enumerate(messages):
        try:
            samples.append(motion_from_message(model, message))
        except HodynError as error:
            raise type(error)(f'Sample {index}: {error}') from error
        if samples[-1].shape != samples[0].shape:
            raise MotionError(
                f'Sample {index} holds {len(samples[-1])} orders of the motion, the first one '
                f'{len(samples[0])}; all samples must hold the same.'
            )
    stamps = [nanoseconds(message.header.stamp) for message in messages]
    times = np.array([(stamp - stamps[0]) / NANOSECONDS for stamp in stamps])
    if np.any(np.diff(times) <= 0.0):
        index = int((np.diff(times) <= 0.0).argmax()) + 1
        raise MotionError(
            f'The stamps of the motion samples do not increase: sample {index} lies '
            f'{times[index] - times[index - 1]} s behind the one before.'
        )
    return times, np.array(samples), stamps[0]


def _requested_wrenches(
    messages: Sequence[WrenchMotion], times: Array, orders: int
) -> list[Wrench]:
    series: dict[tuple[str, str, str], list[Array]] = {}
    for message in messages:
        *key, values = wrench_from_message(message)
        series.setdefault(tuple(key), []).append(values)
    wrenches = []
    # In the same order every time, since each order has its own compiled code.
    for (link, expressed_in, acting), values in sorted(series.items()):
        if len(values) == 1:
            sampled = continued(values[0], times - times[0])
        elif len(values) == len(times):
            sampled = np.array(values)
        else:
            raise WrenchError(
                f'There are {len(values)} wrenches on {link!r} ({expressed_in}, {acting}) for '
                f'{len(times)} samples; expected one, or one per sample.'
            )
        wrenches.append(Wrench(link, sampled[:, :orders], expressed_in, acting))
    return wrenches
