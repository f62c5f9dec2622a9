"""Trajectories, chunks of positions and samples: the motion that is planned, and its efforts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from hodyn_msgs.msg import (
    JointEffort,
    JointEffortTrajectory,
    JointMotion,
    LimitViolation,
    MotorTrajectory,
    StiffnessMotion,
    WrenchMotion,
)
from hodyn_msgs.srv import ComputeInverseDynamics, RetimeTrajectory
from rclpy.serialization import deserialize_message
from trajectory_msgs.msg import JointTrajectory

from hodyn_ros.actuators.limits import find_motor_violations
from hodyn_ros.actuators.motors import MotorMotion, motor_motion
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import (
    ActuatorError,
    HodynError,
    JointNameError,
    ModelError,
    MotionError,
    RequestError,
    ScalingError,
    TrajectoryError,
    WrenchError,
)
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.model.violations import LimitedJoints, find_violations_in_blocks
from hodyn_ros.names import listed
from hodyn_ros.retiming.splicing import splice
from hodyn_ros.ros.base.conversions import (
    EFFORT_FIELDS,
    MOTION_FIELDS,
    along,
    continuous_order,
    effort_trajectory_message,
    fill,
    flat,
    motion_from_message,
    motion_samples_from_message,
    requested_waypoints,
    state_from_message,
    violation_message,
    waypoints_from_message,
    wrench_from_message,
)
from hodyn_ros.ros.base.motor_messages import (
    motor_trajectory_message,
    requested_stiffness,
    stiffness_from_message,
)
from hodyn_ros.streams.joining import plan_from_state
from hodyn_ros.streams.motion_stream import CHUNK_STEP, Plan, Task
from hodyn_ros.streams.robot_in_use import Robot, ready
from hodyn_ros.streams.timeline import NANOSECONDS, PlannedMotion, nanoseconds, nearest_turn
from hodyn_ros.trajectory.motion import BLOCK, PiecewiseMotion
from hodyn_ros.trajectory.planning import (
    MotionPlan,
    StartState,
    plan_motion,
    waypoints_in_order,
)
from hodyn_ros.trajectory.waypoints import Waypoints, checked_times
from hodyn_ros.typing import Array

if TYPE_CHECKING:
    from hodyn_ros.ros.base.node_settings import NodeSettings

_Response = ComputeInverseDynamics.Response

# Parts of a segment between two waypoints at which a motion is compared with its limits too.
_LOOKS = (np.arange(16) + 0.5) / 16

MOST_SAMPLES = 100_000  # in one answer

AT_REST = (
    'The base moves (base_motion), but efforts and their limits here are for one at rest.'
)
LEFT_OUT = f'{AT_REST} Where they are left out, ~/joint_effort has them.'

# Fields of a request that go with a trajectory.
_OF_TRAJECTORIES = ('sample_times', 'sample_period', 'start_state', 'interpolation')

_ERROR_CODES = {
    ModelError: _Response.NO_MODEL,
    JointNameError: _Response.INVALID_JOINTS,
    WrenchError: _Response.INVALID_WRENCH,
    ActuatorError: _Response.INVALID_ACTUATION,
    RequestError: _Response.INVALID_REQUEST,
    ScalingError: RetimeTrajectory.Response.LIMITS_EXCEEDED,
    HodynError: _Response.INVALID_MOTION,  # any other one
}


def plan_trajectory(
    robot: Robot | None, task: Task, settings: NodeSettings
) -> tuple[Plan, JointEffortTrajectory]:
    """Plan of a trajectory, and its whole answer.

    Parameters
    ----------
    robot : Robot, optional
    task : Task
    settings : NodeSettings

    Returns
    -------
    plan : Plan
    message : JointEffortTrajectory
        Efforts every `trajectory_sample_period`, and the limits that they exceed.

    Raises
    ------
    ModelError
        If there is no robot.
    HodynError
        If the trajectory cannot be used: it is damaged, has ended, or there is no motion from
        where the robot is.
    """
    robot = ready(robot)
    message = unpacked(task)
    names, known = robot.model.joint_names, task.known
    waypoints = waypoints_from_message(message)
    del message  # it takes more memory than all that is made of it
    start = None
    if known is not None:
        motion = known.motion
        if not known.in_progress:
            motion = in_nearest_turn(robot.model, motion, waypoints)
        seconds = (task.known_time - task.start) / NANOSECONDS
        start = StartState(seconds, motion, known.in_progress)
    plan = plan_from_state(
        robot.model,
        robot.limits,
        waypoints,
        start=start,
        tolerance=settings.path_tolerance or np.inf,
        origin='' if known is None else known.origin,
        interpolation=settings.interpolation,
        allow_partial_joints=settings.allow_partial_joints,
    )
    planned = PlannedMotion(names, plan.motion, task.start, plan.continuous_derivative)
    if planned.last <= task.now:
        raise TrajectoryError(
            f'The trajectory ended {(task.now - planned.last) / NANOSECONDS:.3f} s ago; set the '
            'stamp to the time at which it starts, or to zero for now.'
        )
    # The whole answer first: a motion whose efforts cannot be computed never starts.
    whole = whole_answer(robot, planned, settings)
    _describe_plan(whole, plan, robot)
    if known is not None and start is not None and plan.motion.start_time == start.time:
        whole.remarks = [*whole.remarks, f'The start state is the one {known.origin}.']
    if settings.base_motion:
        leave_efforts_out(whole)
    return Plan(task.number, planned, plan.remarks, plan.warnings), whole


def unpacked(task: Task) -> JointTrajectory:
    """Trajectory of a task; TrajectoryError if it is damaged."""
    try:
        return deserialize_message(task.data, JointTrajectory)
    except Exception as error:
        raise TrajectoryError(f'The message cannot be unpacked: {error}') from error


def prepare_chunks() -> None:
    """Load what the first chunk would have to wait for."""
    from hodyn_ros.retiming.quadratic_program import program_of

    program_of(100)


def plan_chunk(robot: Robot | None, task: Task, settings: NodeSettings) -> Plan:
    """Plan of the motion that follows a chunk of positions, within the limits.

    Parameters
    ----------
    robot : Robot, optional
    task : Task
        Points without times are one `chunk.period` apart.
    settings : NodeSettings

    Returns
    -------
    Plan

    Raises
    ------
    HodynError
        If there is no robot, the chunk cannot be used, or there is no motion within the limits.
    """
    robot = ready(robot)
    names, join, options = robot.model.joint_names, task.known_time, settings.chunk
    # All times are those of the motion in progress.
    begin = join if task.current is None else task.current.start
    given = waypoints_from_message(unpacked(task), options.period)
    chunk = waypoints_in_order(given, names)
    chunk = replace(chunk, times=chunk.times + (task.start - begin) / NANOSECONDS)
    if task.current is not None:
        current = task.current.motion
    elif task.known is not None:
        current = task.known.motion[0]
    else:  # As a trajectory does, the motion begins at the first point that has not passed.
        current = chunk.positions[min(int(np.sum(chunk.times < 0.0)), len(chunk.times) - 1)]
    smooth = {'bandwidth': options.bandwidth, 'stop_duration': settings.stop_duration}
    start = (join - begin) / NANOSECONDS
    try:
        motion = splice(
            robot.model, robot.limits, chunk, current, start, step=CHUNK_STEP, **smooth
        )
    except TrajectoryError as error:
        raise TrajectoryError(' '.join((str(error), *settings.headroom()))) from error
    return Plan(
        task.number, PlannedMotion(names, motion, join, motion.continuous_derivative)
    )


def exceeded_limits(message: JointEffortTrajectory, hint: str) -> tuple[str, ...]:
    """How many limits a motion exceeds, and which one most, in words.

    Parameters
    ----------
    message : JointEffortTrajectory
    hint : str
        A sentence on what to do.

    Returns
    -------
    tuple of str
        One text; empty if all limits are kept.
    """
    violations = message.limit_violations
    if not violations:
        return ()
    worst = max(violations, key=lambda item: abs(item.value) / max(abs(item.limit), 1e-12))
    count = (
        'a limit' if len(violations) == 1 else f'{len(violations)} limits, most of all one'
    )
    return (
        f'The trajectory exceeds {count}: {worst.quantity} of {worst.joint_name} is '
        f'{worst.value:.6g} at {worst.time_from_start:.3f} s, its limit {worst.limit:.6g}. {hint}',
    )


def in_nearest_turn(model: RobotModel, motion: Array, waypoints: Waypoints) -> Array:
    """Motion whose continuous joints are in the turn nearest to the first waypoint.

    As with joint_trajectory_controller, such a joint takes the shorter way.

    Parameters
    ----------
    model : RobotModel
    motion : ndarray, shape (5, n)
    waypoints : Waypoints

    Returns
    -------
    ndarray, shape (5, n)
    """
    motion, first = motion.copy(), dict(zip(waypoints.joint_names, waypoints.positions[0]))
    near = [first.get(*item) for item in zip(model.joint_names, motion[0])]
    is_continuous = np.array(model.joint_types) == 'continuous'
    motion[0] = nearest_turn(motion[0], np.array(near), is_continuous)
    return motion


def whole_answer(
    robot: Robot, planned: PlannedMotion, settings: NodeSettings, *remarks: str
) -> JointEffortTrajectory:
    """Efforts along a motion, every `trajectory_sample_period`, without wrenches.

    Parameters
    ----------
    robot : Robot
    planned : PlannedMotion
    settings : NodeSettings
    *remarks : str
        Of the message.

    Returns
    -------
    JointEffortTrajectory

    Raises
    ------
    RequestError
        If it would have more than `MOST_SAMPLES`.
    HodynError
        If efforts or motors cannot be computed.
    """
    motion, source = planned.motion, JointEffort.SOURCE_JOINT_TRAJECTORY
    times = _sample_times(motion, settings.trajectory_sample_period)
    message = effort_trajectory(
        robot, times, motion(times), (), planned.start, source, motion
    )
    message.continuous_order = continuous_order(planned.continuous_derivative)
    message.remarks = [*remarks, *settings.headroom()]
    return message


def leave_efforts_out(message: JointEffortTrajectory) -> None:
    """Take out what a base at rest would need, where it moves."""
    fill(message, EFFORT_FIELDS, ())
    message.valid_order, message.continuous_order, message.motors = 0, -1, MotorTrajectory()
    message.limit_violations = [
        item for item in message.limit_violations if item.quantity in MOTION_FIELDS
    ]
    message.remarks = [*message.remarks, LEFT_OUT]


def _sample_times(motion: PiecewiseMotion, period: float) -> Array:
    """Times of the samples of a trajectory, the last one at its end.

    Parameters
    ----------
    motion : PiecewiseMotion
    period : float
        [s]
        More of them are refused by a RequestError.

    Returns
    -------
    ndarray, shape (N,)
        [s]
    """
    intervals = int(np.ceil(min(motion.duration / period * (1.0 - 1e-9), 1e15)))
    _check_count(intervals + 1)
    times = motion.start_time + period * np.arange(intervals + 1.0)
    times[-1] = motion.end_time
    return times


def _check_count(count: int) -> None:
    if count > MOST_SAMPLES:
        raise RequestError(
            f'The answer would have {count} samples, more than {MOST_SAMPLES}; '
            'choose a longer sample period, or split the motion.'
        )


def effort_trajectory(
    robot: Robot,
    times: Array,
    motion: Array,
    wrenches: Sequence[Wrench],
    stamp: int,
    source: int,
    curve: PiecewiseMotion | None = None,
    stiffness: Sequence[StiffnessMotion] = (),
) -> JointEffortTrajectory:
    """Efforts and violated limits of a motion at some times, as a message.

    Parameters
    ----------
    robot : Robot
    times : ndarray, shape (N,)
        [s]
    motion : ndarray, shape (N, K, n)
    wrenches : sequence of Wrench
        Along these times; empty: none.
    stamp : int
        Of the time zero [ns].
    source : int
        Constant of JointEffort that says where the motion is from.
    curve : PiecewiseMotion, optional
        From which it is sampled: its limits are looked at between the samples too.
    stiffness : sequence of StiffnessMotion
        One, or one for each time; what is not given is that of the parameters.

    Returns
    -------
    JointEffortTrajectory

    Raises
    ------
    HodynError
        If efforts or motors cannot be computed, or a stiffness is given that cannot be used.
    """
    effort = inverse_dynamics(robot.model, motion, wrenches)
    message = effort_trajectory_message(robot.model, times, motion, effort, stamp, source)
    in_motors: list[LimitViolation] = []
    if robot.drives is not None:
        drives, known = robot.drives, None if wrenches else curve
        motors = _motors(robot, times, motion, effort, known, stiffness)
        message.motors = motor_trajectory_message(drives.actuators, times, motors)
        found = find_motor_violations(drives.actuators, drives.limits, motors)
        in_motors = [violation_message(item, times[item.sample]) for item in found]
    elif stiffness:
        stiffness_from_message(stiffness[0], ())
    blocks: Iterable[tuple[Array, Array]] = [(motion, effort)]
    if curve is not None:
        further = curve.times[:-1, None] + _LOOKS * np.diff(curve.times)[:, None]
        times = np.append(times, further)
        blocks = chain(blocks, _between_samples(robot, curve, not wrenches))
    message.limit_violations = [
        violation_message(item, times[item.sample])
        for item in find_violations_in_blocks(robot.model, robot.limits, blocks)
    ] + in_motors
    return message


def _motors(
    robot: Robot,
    times: Array,
    motion: Array,
    effort: Array,
    curve: PiecewiseMotion | None,
    stiffness: Sequence[StiffnessMotion],
) -> MotorMotion:
    """Motors at some instants of a motion, which may be known in between.

    Parameters
    ----------
    robot : Robot
        With drives.
    times : ndarray, shape (N,)
        [s]
    motion : ndarray, shape (N, K, n)
    effort : ndarray, shape (N, K - 2, n)
    curve : PiecewiseMotion, optional
        The motion in between; None where the efforts do not follow from it alone.
    stiffness : sequence of StiffnessMotion

    Returns
    -------
    MotorMotion
        Rows (N, K, m).
    """
    drives = robot.drives
    assert drives is not None
    actuators = drives.actuators
    wanted = {
        **drives.default_stiffness((len(times),)),
        **requested_stiffness(stiffness, drives.stiffness, times),
    }
    order = None
    if curve is not None:  # with the fifth derivative the torques of the motors have a rate
        order, motion = 0, curve(times, len(MOTION_FIELDS))
        effort = inverse_dynamics(robot.model, motion)
    return motor_motion(actuators, motion, effort, stiffness=wanted, order=order)


def _describe_plan(message: JointEffortTrajectory, plan: MotionPlan, robot: Robot) -> None:
    """Add what is known of the motion as a whole, its farthest positions among it."""
    order = continuous_order(plan.continuous_derivative)
    message.interpolation = plan.interpolation
    message.continuous_order = min(order, message.valid_order)
    message.deviation_from_jtc = flat(plan.deviation_from_jtc)
    message.remarks = [*plan.remarks, *plan.warnings, *message.remarks]
    extremes, joints = plan.extremes, LimitedJoints(robot.model, robot.limits)
    times = np.stack([extremes.lowest_time, extremes.highest_time])
    known = robot.model.joint_names if robot.model.closure is not None else joints.names
    message.limit_violations = [
        *(
            violation_message(item, times[item.sample, joint])
            for item, joint in joints.beyond(extremes.lowest, extremes.highest)
        ),
        *(
            item
            for item in message.limit_violations
            if item.quantity != 'position' or item.joint_name not in known
        ),
    ]


def _between_samples(
    robot: Robot, curve: PiecewiseMotion, is_free: bool
) -> Iterator[tuple[Array, Array]]:
    """Motion and efforts at the `_LOOKS`; wrenches, if it is not free, are not known there."""
    segments, step = np.arange(len(curve.times) - 1), BLOCK // len(_LOOKS)
    for start in range(0, len(segments), step):
        motion = curve.within(segments[start : start + step], _LOOKS)
        # What has no effort exceeds no limit of one.
        yield (
            motion,
            inverse_dynamics(robot.model, motion) if is_free else np.zeros_like(motion),
        )


def error_code(error: HodynError) -> int:
    """Code of an error in the responses of services, a constant of theirs."""
    code: int = next(_ERROR_CODES[kind] for kind in _ERROR_CODES if isinstance(error, kind))
    return code


def answer(
    robot: Robot | None, request: ComputeInverseDynamics.Request, settings: NodeSettings
) -> ComputeInverseDynamics.Response:
    """Response to a request, whose waypoints are taken out; bad ones are answered, not raised.

    Parameters
    ----------
    robot : Robot, optional
    request : ComputeInverseDynamics.Request
    settings : NodeSettings

    Returns
    -------
    ComputeInverseDynamics.Response
    """
    try:
        robot = ready(robot)
        message, warnings = _requested(robot, request, settings)
        warnings += (AT_REST,) * settings.base_motion + settings.headroom()
    except HodynError as error:
        return _Response(success=False, error_code=error_code(error), message=str(error))
    return _Response(
        success=True,
        error_code=_Response.SUCCESS,
        effort_trajectory=message,
        warnings=[*robot.model.warnings, *warnings],
    )


def _requested(
    robot: Robot, request: ComputeInverseDynamics.Request, settings: NodeSettings
) -> tuple[JointEffortTrajectory, tuple[str, ...]]:
    """Efforts that a request asks for, and warnings.

    Raises
    ------
    HodynError
        If the request cannot be used.
    """
    points, samples = request.trajectory, request.motion_trajectory
    motions = {
        'trajectory': len(points.joint_names) + len(points.points),
        'motion': len(request.motion),
        'motion_trajectory': len(samples.joint_names) + len(samples.time_from_start),
    }
    given = [name for name, size in motions.items() if size]
    if len(given) != 1:
        raise RequestError(
            f'The request holds {" and ".join(given) or "no motion"}; fill exactly one of '
            'trajectory, motion and motion_trajectory.'
        )
    plan = curve = None
    if given == ['trajectory']:
        plan = _requested_plan(robot.model, request, settings)
        curve = plan.motion
        times = _requested_times(request, curve, settings)
        motion = curve(times)
        stamp = nanoseconds(request.trajectory.header.stamp)
        source = JointEffort.SOURCE_JOINT_TRAJECTORY
    else:
        others = [name for name in _OF_TRAJECTORIES if getattr(request, name)]
        if others:
            raise RequestError(
                f'{listed(others)}: for a trajectory; motion samples are computed as they are, '
                'leave it empty.'
            )
        _check_count(len(request.motion or samples.time_from_start))
        if request.motion:
            times, motion, stamp = _motion_samples(robot.model, request.motion)
        else:
            times, motion = motion_samples_from_message(robot.model, samples)
            stamp = nanoseconds(samples.header.stamp)
        source = JointEffort.SOURCE_JOINT_MOTION
    wrenches = _requested_wrenches(request.wrenches, times, motion.shape[1] - 2)
    message = effort_trajectory(
        robot, times, motion, wrenches, stamp, source, curve, request.stiffness
    )
    if plan is None:
        return message, ()
    _describe_plan(message, plan, robot)
    return message, plan.warnings


def _requested_plan(
    model: RobotModel, request: ComputeInverseDynamics.Request, settings: NodeSettings
) -> MotionPlan:
    waypoints = requested_waypoints(request.trajectory, settings.max_trajectory_points)
    start = None
    if request.start_state:
        state = state_from_message(model, request.start_state[0])
        start = StartState(0.0, state, in_progress=True)
    return plan_motion(
        waypoints,
        model.joint_names,
        start=start,
        interpolation=request.interpolation or settings.interpolation,
        allow_partial_joints=settings.allow_partial_joints or start is not None,
    )


def _requested_times(
    request: ComputeInverseDynamics.Request, motion: PiecewiseMotion, settings: NodeSettings
) -> Array:
    """Times at which a request wants the efforts of a trajectory, shape (N,) [s]."""
    if not len(request.sample_times):
        period = request.sample_period
        if not (np.isfinite(period) and period >= 0.0):
            raise RequestError(
                f'sample_period is {period}, expected a positive number or zero.'
            )
        period = period or settings.trajectory_sample_period
        return _sample_times(motion, period)
    if request.sample_period:
        raise RequestError('Give sample_period or sample_times, not both.')
    _check_count(len(request.sample_times))
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
    seconds = [(stamp - stamps[0]) / NANOSECONDS for stamp in stamps]
    times = checked_times(seconds, 1, 'stamps')
    return times, np.array(samples), stamps[0]


def _requested_wrenches(
    messages: Sequence[WrenchMotion], times: Array, orders: int
) -> list[Wrench]:
    """Wrenches along the samples of a motion.

    Parameters
    ----------
    messages : sequence of WrenchMotion
        Of each link and expression one, which goes on by its derivatives, or one for each sample.
    times : ndarray, shape (N,)
        Of the samples [s].
    orders : int
        Of the efforts.

    Returns
    -------
    list of Wrench
        With (N, orders, 6) values.
    """
    series: dict[tuple[str, str, str], list[Array]] = {}
    for message in messages:
        link, expressed_in, acting, values = wrench_from_message(message)
        series.setdefault((link, expressed_in, acting), []).append(values)
    wrenches = []
    # In the same order every time, since each order has its own compiled code.
    for (link, expressed_in, acting), given in sorted(series.items()):
        what = f'wrenches on {link!r} ({expressed_in}, {acting})'
        sampled = along(given, times, what, WrenchError)
        wrenches.append(Wrench(link, sampled[:, :orders], expressed_in, acting))
    return wrenches
