"""The service ~/retime: another timing of a trajectory, with efforts for a controller."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hodyn_msgs.msg import JointLimit, LimitViolation
from hodyn_msgs.srv import RetimeTrajectory

from hodyn_ros.actuators.motors import motor_motion
from hodyn_ros.analysis.sampling import controller_trajectory
from hodyn_ros.checks import check_choice, checked_number
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.errors import HodynError, JointNameError, RequestError, ScalingError
from hodyn_ros.model.limits import MAGNITUDES, MotionLimits
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.model.violations import Violation
from hodyn_ros.names import did_you_mean, joint_order, listed
from hodyn_ros.retiming.robot_limits import Limiting
from hodyn_ros.retiming.timing import new_timing
from hodyn_ros.ros.base.conversions import requested_waypoints, violation_message
from hodyn_ros.ros.planner.answers import LEFT_OUT, MOST_SAMPLES, error_code
from hodyn_ros.ros.planner.controllers import controller_message
from hodyn_ros.streams.robot_in_use import Robot, ready, without_limits
from hodyn_ros.trajectory.planning import plan_motion
from hodyn_ros.typing import Array

if TYPE_CHECKING:
    from hodyn_ros.ros.base.node_settings import NodeSettings

_Response = RetimeTrajectory.Response

_TIMINGS = {
    RetimeTrajectory.Request.PATH: 'path',
    RetimeTrajectory.Request.UNIFORM: 'uniform',
}


def retimed(
    robot: Robot | None, request: RetimeTrajectory.Request, settings: NodeSettings
) -> RetimeTrajectory.Response:
    """Response to a request, whose waypoints are taken out; bad ones are answered, not raised.

    Parameters
    ----------
    robot : Robot, optional
    request : RetimeTrajectory.Request
    settings : NodeSettings

    Returns
    -------
    RetimeTrajectory.Response
        With the trajectory in the new timing, from its first waypoint on.
    """
    try:
        return _retimed(ready(robot), request, settings)
    except HodynError as error:
        exceeded = _limit_messages(getattr(error, 'limiting', None))
        headroom = settings.headroom() if isinstance(error, ScalingError) else ()
        text = ' '.join((str(error), *headroom))
        return _Response(error_code=error_code(error), message=text, limiting=exceeded)


def _retimed(
    robot: Robot, request: RetimeTrajectory.Request, settings: NodeSettings
) -> RetimeTrajectory.Response:
    """Response to a request of a robot.

    Raises
    ------
    HodynError
        If the request cannot be used, or there is no timing within the limits.
    """
    timing = _TIMINGS.get(request.timing)
    if timing is None:
        raise RequestError(f'timing is {request.timing}, expected 0 (PATH) or 1 (UNIFORM).')
    if timing == 'uniform' and request.drop_standstills:
        raise RequestError(
            'drop_standstills is for the timing PATH; leave it or UNIFORM out.'
        )
    tolerance = request.effort_tolerance or settings.command.spacing_tolerance
    what = 'effort_tolerance (0: the parameter command.effort_tolerance)'
    checked_number(what, tolerance, RequestError, above=0.0, unit='N m')
    shares = settings.shares()
    limits = requested_limits(robot.model, robot.limits, request.limits, shares)
    waypoints = requested_waypoints(request.trajectory, settings.max_trajectory_points)
    plan, drives = plan_motion(waypoints, robot.model.joint_names), robot.drives
    found = new_timing(
        robot.model,
        plan.motion,
        limits,
        timing=timing,
        slower_only=request.slower_only,
        actuators=None if drives is None else drives.actuators,
        motor_limits=None if drives is None else drives.limits,
        keep_standstills=not request.drop_standstills,
    )
    assert found.motion is not None
    start = found.times[0]
    points = controller_trajectory(
        robot.sent, found.motion, tolerance, max_points=MOST_SAMPLES
    )
    order = joint_order(robot.model.joint_names, waypoints.joint_names)
    motion, effort = points.motion[..., order], points.effort[..., order]
    ordered = points._replace(times=points.times - start, motion=motion, effort=effort)
    message = controller_message(waypoints.joint_names, ordered, 0)
    message.header = request.trajectory.header
    if settings.base_motion:
        for point in message.points:
            point.effort = []
    return _Response(
        success=True,
        trajectory=message,
        duration=found.duration,
        duration_before=found.duration_before,
        standstill=found.standstill,
        path_deviation=float(found.deviation.max()),
        effort_error=points.error,
        limiting=_limit_messages(found.limiting if found.is_fastest else None, start),
        warnings=[
            *robot.model.warnings,
            *plan.warnings,
            *settings.headroom(),
            *(LEFT_OUT,) * settings.base_motion,
            *without_limits(robot, found.limits, **_along(robot, found.samples)),
        ],
    )


def _along(robot: Robot, motion: Array) -> dict[str, Any]:
    """A motion (N, K, n) with its efforts, and what the motors do."""
    effort = inverse_dynamics(robot.model, motion)
    along: dict[str, Any] = {'motion': motion, 'effort': effort}
    if robot.drives is None:
        return along
    motors = motor_motion(robot.drives.actuators, motion, effort, order=None)
    return {**along, 'motors': motors}


def requested_limits(
    model: RobotModel,
    limits: MotionLimits,
    requested: list[JointLimit],
    shares: Mapping[str, float],
) -> MotionLimits:
    """Limits with those of a request in their place, which have the same margins.

    Parameters
    ----------
    model : RobotModel
    limits : MotionLimits
        Less the margins.
    requested : list of JointLimit
        Of one joint each, or of all where its name is empty; infinity takes a limit away.
    shares : mapping of str to float
        Of requested limits, by the quantity, that are left to feedback.

    Returns
    -------
    MotionLimits

    Raises
    ------
    RequestError, JointNameError
        If one cannot be used; the message names it.
    """
    changed = {quantity: getattr(limits, quantity).copy() for quantity in MAGNITUDES}
    for number, item in enumerate(requested):
        what, name = f'limits[{number}]', item.joint_name
        check_choice(f'{what}.quantity', item.quantity, MAGNITUDES, RequestError)
        limit = checked_number(
            f'{what}.limit', item.limit, RequestError, above=0.0, infinite=True
        )
        if name and name not in model.joint_names:
            raise JointNameError(
                f'{what}.joint_name is {name!r}{did_you_mean(name, model.joint_names)}, expected '
                f'one of {listed(model.joint_names)}, or an empty one for all of them.'
            )
        chosen = model.joint_names.index(name) if name else slice(None)
        changed[item.quantity][chosen] = (1.0 - shares.get(item.quantity, 0.0)) * limit
    return limits._replace(**changed)


def _limit_messages(item: Limiting | None, start: float = 0.0) -> list[LimitViolation]:
    """What limits a motion that begins at a time, if it is known."""
    if item is None:
        return []
    violation = Violation(item.quantity, item.name, item.value, item.limit, 0)
    time = item.time
    return [violation_message(violation, 0.0 if time is None else time - start)]
