"""Whole answers: efforts along a trajectory or along given samples, for topic and service."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from hodyn_msgs.msg import (
    JointEffort,
    JointEffortTrajectory,
    JointMotion,
    LimitViolation,
    StiffnessMotion,
    WrenchMotion,
)
from hodyn_msgs.srv import ComputeInverseDynamics
from numpy.typing import NDArray

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.limits import find_motor_violations
from hodyn_ros.actuators.robot import MotorMotion, motor_motion
from hodyn_ros.analysis.limits import (
    MotionLimits,
    find_position_violations,
    find_violations,
)
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import (
    ActuatorError,
    HodynError,
    JointNameError,
    ModelError,
    MotionError,
    RequestError,
    WrenchError,
)
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.ros.conversions import (
    MOTION_FIELDS,
    NANOSECONDS,
    continuous_order,
    effort_trajectory_message,
    flat,
    motion_from_message,
    nanoseconds,
    state_from_message,
    violation_message,
    waypoints_from_message,
    wrench_from_message,
)
from hodyn_ros.ros.drives import Drives
from hodyn_ros.ros.motors import motor_trajectory_message
from hodyn_ros.ros.settings import Settings
from hodyn_ros.ros.stiffness import requested_stiffness, stiffness_from_message
from hodyn_ros.ros.wrenches import continued
from hodyn_ros.trajectory.piecewise import BLOCK, Motion
from hodyn_ros.trajectory.planning import MotionPlan, StartState, plan_motion

Array = NDArray[np.float64]

Response = ComputeInverseDynamics.Response

# Times in a segment between two waypoints at which at least a motion is compared with its limits.
_LOOKS = 16

# Longest step along which the deflection of a joint with a damper is followed [s].
_DAMPER_STEP = 0.01
_SHORTEST_STEP = 1e-6
_LEAST_STEPS = 4  # in a segment between two waypoints

_ERROR_CODES = (
    (ModelError, Response.NO_MODEL),
    (JointNameError, Response.INVALID_JOINTS),
    (WrenchError, Response.INVALID_WRENCH),
    (ActuatorError, Response.INVALID_ACTUATION),
    (RequestError, Response.INVALID_REQUEST),
    (HodynError, Response.INVALID_MOTION),
)


class Robot(NamedTuple):
    """Everything that follows from the robot description; replaced as a whole."""

    model: RobotModel
    limits: MotionLimits
    description: str
    drives: Drives | None = None


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


def sample_times(motion: Motion, period: float, max_samples: int) -> Array:
    """Place the samples of a trajectory in time, the last one at its end.

    Raises
    ------
    RequestError
        If there would be more than `max_samples`.
    """
    intervals = int(np.ceil(min(motion.duration / period * (1.0 - 1e-9), 1e15)))
    _check_count(intervals + 1, max_samples)
    times = motion.start_time + period * np.arange(intervals + 1)
    times[-1] = motion.end_time
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
    curve: Motion | None = None,
    stiffness: Sequence[StiffnessMotion] = (),
) -> JointEffortTrajectory:
    """Efforts and violated limits of a sampled motion (N, K, n) as a message.

    Parameters
    ----------
    robot : Robot
    times : ndarray, shape (N,)
        [s]
    motion : ndarray, shape (N, K, n)
    wrenches : sequence of Wrench
    stamp : int
        [ns]
    source : int
        One of JointEffort.SOURCE_*.
    curve : Motion, optional
        From which the motion is sampled; its limits are looked at between the samples too.
    stiffness : sequence of StiffnessMotion, optional
        Of joints that can choose it; what is not given is that of the parameters.
    """
    effort = inverse_dynamics(robot.model, motion, wrenches)
    message = effort_trajectory_message(robot.model, times, motion, effort, stamp, source)
    in_motors = _add_motors(message, robot, times, motion, effort, wrenches, curve, stiffness)
    if curve is not None:
        times, motion, effort = _with_more_looks(robot, curve, times, motion, effort, wrenches)
    violations = find_violations(robot.model, robot.limits, motion, effort)
    message.limit_violations = [
        violation_message(violation, times[violation.sample]) for violation in violations
    ] + in_motors
    return message


def _add_motors(
    message: JointEffortTrajectory,
    robot: Robot,
    times: Array,
    motion: Array,
    effort: Array,
    wrenches: Sequence[Wrench],
    curve: Motion | None,
    stiffness: Sequence[StiffnessMotion],
) -> list[LimitViolation]:
    """Say what the motors do, and return the limits that they exceed."""
    drives = robot.drives
    if drives is None:
        if stiffness:
            stiffness_from_message(stiffness[0], ())
        return []
    given = requested_stiffness(stiffness, drives.stiffness, times)
    wanted = {**drives.default_stiffness((len(times),)), **given}
    if curve is None or wrenches:
        motors = motor_motion(
            drives.actuators, motion, effort, stiffness=wanted, times=times, order=None
        )
    else:
        motors = _motors_on_curve(robot.model, drives.actuators, curve, times, wanted)
    message.motors = motor_trajectory_message(drives.actuators, times, motors)
    return [
        violation_message(violation, times[violation.sample])
        for violation in find_motor_violations(drives.actuators, drives.limits, motors)
    ]


def _motors_on_curve(
    model: RobotModel,
    actuators: Actuators,
    curve: Motion,
    times: Array,
    stiffness: Mapping[str, Array],
) -> MotorMotion:
    """Motors at some instants of a motion that is known in between."""
    instants, chosen = times, slice(None)
    if any(item.actuator.needs_times for item in actuators.driven):
        # Joints with dampers remember all of the motion, not only what is asked for.
        instants = _steps(curve, times)
        chosen = np.searchsorted(instants, times)
        stiffness = {
            name: np.stack([np.interp(instants, times, row) for row in series.T], axis=-1)
            for name, series in stiffness.items()
        }
    # With the fifth derivative the torques of the motors have a rate.
    motion = curve(instants, len(MOTION_FIELDS))
    motors = motor_motion(
        actuators,
        motion,
        inverse_dynamics(model, motion),
        stiffness=stiffness,
        times=instants,
    )
    return MotorMotion(*(values[chosen] for values in motors))


def _steps(curve: Motion, times: Array) -> Array:
    """Instants from the start of a motion to the last of `times`, which are among them."""
    knots = curve.times
    counts = np.ceil(np.diff(knots) / _DAMPER_STEP).clip(_LEAST_STEPS).astype(int)
    between = np.concatenate(
        [
            np.linspace(start, end, count, endpoint=False)
            for start, end, count in zip(knots, knots[1:], counts)
        ]
    )
    # What lies beside a wanted instant would only add its rounding.
    padded = np.concatenate([[-np.inf], times, [np.inf]])
    place = np.searchsorted(times, between)
    is_apart = np.minimum(between - padded[place], padded[place + 1] - between) > _SHORTEST_STEP
    between = between[is_apart & (between < times[-1])]
    return np.sort(np.concatenate([between, times]))


def describe_plan(message: JointEffortTrajectory, plan: MotionPlan, robot: Robot) -> None:
    """Add what is known of the motion as a whole, its farthest positions among it."""
    message.interpolation = plan.interpolation
    message.continuous_order = min(
        continuous_order(plan.continuous_derivative), message.valid_order
    )
    message.deviation_from_jtc = flat(plan.deviation_from_jtc)
    message.remarks = [*plan.remarks, *plan.warnings]
    extremes, names = plan.extremes, robot.model.joint_names
    times = np.stack([extremes.lowest_time, extremes.highest_time])
    farthest = find_position_violations(
        robot.model, robot.limits, np.stack([extremes.lowest, extremes.highest])
    )
    message.limit_violations = [
        *(
            violation_message(item, times[item.sample, names.index(item.joint_name)])
            for item in farthest
        ),
        *(item for item in message.limit_violations if item.quantity != 'position'),
    ]


def _with_more_looks(
    robot: Robot,
    curve: Motion,
    times: Array,
    motion: Array,
    effort: Array,
    wrenches: Sequence[Wrench],
) -> tuple[Array, Array, Array]:
    """Return times, motion and efforts with the worst of more samples in segments with few.

    They are looked at in blocks, of which only what exceeds a limit most is kept.
    """
    knots = curve.times
    few = np.flatnonzero(np.diff(np.searchsorted(times, knots)) < _LOOKS)
    x = (np.arange(_LOOKS) + 0.5) / _LOOKS
    found = [(times, motion, effort)]
    for start in range(0, len(few), BLOCK // _LOOKS):
        block = few[start : start + BLOCK // _LOOKS]
        further = (knots[block, None] + x * (knots[block + 1] - knots[block])[:, None]).ravel()
        motions = curve(further)
        if wrenches:
            # They are known at the samples alone; what has no effort exceeds no limit of one.
            efforts = np.zeros((len(further), *effort.shape[1:]))
        else:
            efforts = inverse_dynamics(robot.model, motions)
        violations = find_violations(robot.model, robot.limits, motions, efforts)
        worst = sorted({violation.sample for violation in violations})
        found.append((further[worst], motions[worst], efforts[worst]))
    times, motion, effort = (np.concatenate(each) for each in zip(*found))
    return times, motion, effort


def answer(
    robot: Robot | None,
    request: ComputeInverseDynamics.Request,
    settings: Settings,
    expect_wrenches: Callable[[RobotModel, Sequence[Wrench]], None],
) -> ComputeInverseDynamics.Response:
    """Return the response to a service request; bad requests are answered, never raised."""
    response = Response()
    try:
        robot = ready(robot)
        response.effort_trajectory, warnings = _requested(
            robot, request, settings, expect_wrenches
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
        response.warnings = [*robot.model.warnings, *warnings]
    return response


def _requested(
    robot: Robot,
    request: ComputeInverseDynamics.Request,
    settings: Settings,
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
    plan = None
    if has_trajectory:
        plan = _requested_plan(robot.model, request, settings)
        times = _requested_times(request, plan.motion, settings)
        motion = plan.motion(times)
        stamp = nanoseconds(request.trajectory.header.stamp)
        source = JointEffort.SOURCE_JOINT_TRAJECTORY
    else:
        _check_motion_alone(request)
        _check_count(len(request.motion), settings.max_samples)
        times, motion, stamp = _motion_samples(robot.model, request.motion)
        source = JointEffort.SOURCE_JOINT_MOTION
    wrenches = _requested_wrenches(request.wrenches, times, motion.shape[1] - 2)
    expect_wrenches(robot.model, wrenches)
    if plan is None:
        message = effort_trajectory(
            robot, times, motion, wrenches, stamp, source, stiffness=request.stiffness
        )
        return message, ()
    message = effort_trajectory(
        robot, times, motion, wrenches, stamp, source, plan.motion, request.stiffness
    )
    describe_plan(message, plan, robot)
    return message, plan.warnings


def _check_motion_alone(request: ComputeInverseDynamics.Request) -> None:
    if len(request.sample_times) or request.sample_period:
        raise RequestError(
            'sample_period and sample_times hold for a trajectory; motion samples are computed '
            'as they are, leave both empty.'
        )
    if request.start_state or request.interpolation:
        raise RequestError(
            'start_state and interpolation hold for a trajectory; leave both empty with motion '
            'samples.'
        )


def _requested_plan(
    model: RobotModel, request: ComputeInverseDynamics.Request, settings: Settings
) -> MotionPlan:
    n_points = len(request.trajectory.points)
    if n_points > settings.max_trajectory_points:
        raise RequestError(
            f'The trajectory has {n_points} points, more than max_trajectory_points '
            f'({settings.max_trajectory_points}).'
        )
    start = None
    if request.start_state:
        state = state_from_message(model, request.start_state[0])
        start = StartState(0.0, state, in_progress=True)
    return plan_motion(
        waypoints_from_message(request.trajectory),
        model.joint_names,
        start=start,
        interpolation=request.interpolation or settings.interpolation,
        allow_partial_joints=settings.allow_partial_joints or start is not None,
    )


def _requested_times(
    request: ComputeInverseDynamics.Request,
    motion: Motion,
    settings: Settings,
) -> Array:
    if not len(request.sample_times):
        period = request.sample_period
        if not (np.isfinite(period) and period >= 0.0):
            raise RequestError(f'sample_period is {period}, expected a positive number or zero.')
        return sample_times(
            motion, period or settings.trajectory_sample_period, settings.max_samples
        )
    if request.sample_period:
        raise RequestError('Give sample_period or sample_times, not both.')
    _check_count(len(request.sample_times), settings.max_samples)
    times = np.asarray(request.sample_times, dtype=np.float64)
    if not np.all(np.isfinite(times)) or np.any(np.diff(times) <= 0.0):
        raise RequestError('sample_times must be finite and increasing.')
    if times[0] < motion.start_time or times[-1] > motion.end_time:
        raise RequestError(
            f'sample_times run from {times[0]} s to {times[-1]} s, but the trajectory lasts from '
            f'{motion.start_time} s to {motion.end_time} s.'
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
