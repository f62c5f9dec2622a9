"""Messages to arrays and back, and what the first bytes of a message say.

Here alone wrenches change from the order of the messages (force, torque) to (moment, force).
"""

from __future__ import annotations

import array
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Wrench as WrenchMessage
from hodyn_msgs.msg import (
    BaseMotion,
    ElasticState,
    JointEffort,
    JointEffortTrajectory,
    JointMotion,
    JointMotionTrajectory,
    LimitViolation,
    MotionEstimate,
    WrenchMotion,
)
from hodyn_msgs.srv import SetPayload
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from hodyn_ros.checks import first_not_finite
from hodyn_ros.errors import (
    HodynError,
    JointNameError,
    MotionError,
    RequestError,
    TrajectoryError,
    WrenchError,
)
from hodyn_ros.kinematics.forward import LinkMotion
from hodyn_ros.lie import se3, so3
from hodyn_ros.model.inertia import Payload
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.model.violations import Violation
from hodyn_ros.names import joint_order, listed
from hodyn_ros.streams.signals import continued
from hodyn_ros.streams.timeline import NANOSECONDS
from hodyn_ros.trajectory.estimator import Estimate
from hodyn_ros.trajectory.waypoints import Waypoints, checked_times
from hodyn_ros.typing import Array

MOTION_FIELDS = ('position', 'velocity', 'acceleration', 'jerk', 'snap')
EFFORT_FIELDS = ('effort', 'effort_dot', 'effort_ddot')
HIGHEST_EFFORT_ORDER = len(EFFORT_FIELDS) - 1
_FEWEST_MOTION_FIELDS = 3
# Entries of a twist that are used.
_FEWEST_TWISTS, _MOST_TWISTS = (2, HIGHEST_EFFORT_ORDER + 2)
_OFF_UNIT = 1e-3  # of the length of a quaternion, which senders round

_EXPRESSIONS = {
    WrenchMotion.BODY: 'body',
    WrenchMotion.SPATIAL: 'spatial',
    WrenchMotion.HYBRID: 'hybrid',
}
_ACTINGS = {
    WrenchMotion.ON_ENVIRONMENT: 'on_environment',
    WrenchMotion.ON_ROBOT: 'on_robot',
}


def time_message(nanoseconds: int) -> Time:
    """Integer nanoseconds as a time message.

    Parameters
    ----------
    nanoseconds : int
        From zero on [ns].
    """
    return Time(sec=nanoseconds // NANOSECONDS, nanosec=nanoseconds % NANOSECONDS)


# Streams use the same names in every message. What does not fit is not kept.
@lru_cache(maxsize=64)
def joint_indices(names: tuple[str, ...], wanted: tuple[str, ...]) -> list[int] | None:
    """Indices that bring values from one order of names into another; None: the same."""
    return None if names == wanted else joint_order(names, wanted)


def motion_samples_from_message(
    model: RobotModel, message: JointMotionTrajectory
) -> tuple[Array, Array]:
    """Samples of a motion in model order.

    Parameters
    ----------
    model : RobotModel
    message : JointMotionTrajectory

    Returns
    -------
    times : ndarray, shape (N,)
        Increasing [s].
    motion : ndarray, shape (N, K, n)
        K from 3 to 5.

    Raises
    ------
    MotionError
        If the times are missing or do not increase.
    HodynError
        As of `motion_from_message`.
    """
    what = 'JointMotionTrajectory'
    if not message.time_from_start:
        raise MotionError(
            f'{what}: time_from_start is empty, expected the time of every sample.'
        )
    times = checked_times(message.time_from_start, 1, 'time_from_start')
    return times, motion_from_message(model, message, what, len(times))


def motion_from_message(
    model: RobotModel,
    message: JointMotion | JointMotionTrajectory,
    what: str = 'JointMotion',
    samples: int | None = None,
) -> Array:
    """Motion in model order.

    Parameters
    ----------
    model : RobotModel
    message : JointMotion or JointMotionTrajectory
    what : str
        Kind of the message, for errors.
    samples : int, optional
        Number of samples, whose values stand one after the other in each field; None: a single
        motion.

    Returns
    -------
    ndarray, shape (K, n) or (samples, K, n)
        Position, velocity and acceleration, and as many of jerk and snap as the message holds:
        K from 3 to 5 [rad/s^k] or [m/s^k].

    Raises
    ------
    JointNameError
        If the names are not those of the model.
    MotionError
        If a field has the wrong length, a needed one is empty or a value is not finite.
    """
    order = joint_indices(tuple(message.joint_names), model.joint_names)
    given = [len(getattr(message, name)) > 0 for name in MOTION_FIELDS]
    orders = max(
        given.index(False) if False in given else len(given), _FEWEST_MOTION_FIELDS
    )
    if any(given[orders:]):
        name, empty = (
            MOTION_FIELDS[given.index(True, orders)],
            MOTION_FIELDS[given.index(False)],
        )
        raise MotionError(
            f'{what}: {name} is given but {empty} is empty; a derivative needs all lower ones.'
        )
    rows = read_rows(
        *(what, message, MOTION_FIELDS[:orders], model.joint_names, order),
        needed=_FEWEST_MOTION_FIELDS,
        samples=samples or 1,
    )
    return rows[0] if samples is None else rows


def read_rows(
    what: str,
    message: Any,
    fields: Sequence[str],
    wanted: Sequence[str] = (),
    places: Sequence[int] | None = None,
    *,
    needed: int = 0,
    names: str = 'joint_names',
    samples: int = 1,
    error: type[HodynError] = MotionError,
) -> Array:
    """Fields of a message, each with a value for every one of its names.

    Parameters
    ----------
    what : str
        Kind of the message, for errors.
    message : object
    fields : sequence of str
        K names of fields of numbers.
    wanted : sequence of str
        The n names of the values that are wanted, which must be finite; empty: any may be NaN.
    places : sequence of int, optional
        Where these are among the names of the message; None: those are the same.
    needed : int
        The first fields that must not be empty; others may be, and are zero then.
    names : str
        Field that holds the names.
    samples : int
        How many values each name has in a field.
    error : type
        Of what is raised.

    Returns
    -------
    ndarray, shape (samples, K, n)

    Raises
    ------
    error
        If a field has another number of values, or a wanted one is not finite; the message names
        the first one.
    """
    n = len(getattr(message, names))
    rows = np.zeros((len(fields), samples * n))
    for k, field in enumerate(fields):
        values = getattr(message, field)
        if len(values) == samples * n:
            rows[k] = values
        elif len(values) or k < needed:
            each = '' if samples == 1 else f' in each of {samples} samples'
            others = ' and '.join(fields[needed:])
            raise error(
                f'{what}: {field} has {len(values)} values, expected {samples * n}, one for each '
                f'of {names}{each}'
                + (f' (only {others} may be left empty).' if others else '.')
            )
    found: Array = rows.reshape(-1, samples, n).swapaxes(0, 1)
    if places is not None:
        found = found.take(places, axis=2)  # contiguous, as compiled code wants it
    if wanted and (where := first_not_finite(found)) is not None:
        sample, row, joint = where
        at = f', sample {sample}' if samples > 1 else ''
        raise error(
            f'{what}{at}: {fields[row]} of joint {wanted[joint]!r} is {found[where]}; all values '
            'must be finite.'
        )
    return found


def values_of(
    topic: str, message: JointState, fields: tuple[str, ...], wanted: tuple[str, ...]
) -> Array | None:
    """Values of the wanted names, in their order; further names are ignored.

    Parameters
    ----------
    topic : str
        For errors.
    message : JointState
    fields : tuple of str
        K fields of the message; all of them are needed.
    wanted : tuple of str
        n names.

    Returns
    -------
    ndarray, shape (K, n), optional
        None if the message has none of the names.

    Raises
    ------
    JointNameError
        If some of the names are missing or repeated.
    MotionError
        If a field has the wrong length or a value is not finite.
    """
    places = _places(topic, tuple(message.name), wanted)
    if not places:
        return None
    n = len(fields)
    rows = read_rows(topic, message, fields, wanted, places, needed=n, names='name')
    found: Array = rows[0]
    return found


def measured_of(
    topic: str, message: ElasticState, joints: tuple[str, ...], motors: tuple[str, ...]
) -> dict[str, Array]:
    """Fields of a measurement of links and motors that are not empty.

    Parameters
    ----------
    topic : str
        For errors.
    message : ElasticState
        Further names than the wanted ones are ignored.
    joints, motors : tuple of str
        Wanted names.

    Returns
    -------
    dict of str to ndarray, shape (n,) or (m,)
        In the order of the names; values need not be finite.

    Raises
    ------
    JointNameError
        If some of the names are missing or repeated.
    MotionError
        If a field has the wrong length.
    """
    found = dict[str, Array]()
    for field, wanted, of in (
        ('joint_names', joints, ('position', 'velocity', 'spring_torque')),
        ('motor_names', motors, ('motor_position', 'motor_velocity')),
    ):
        places = _places(topic, tuple(getattr(message, field)), wanted)
        if not places:
            raise JointNameError(f'{topic}: {field}: expected {listed(wanted)}.')
        rows = read_rows(topic, message, of, (), places, names=field)[0]
        found.update((name, row) for name, row in zip(of, rows) if getattr(message, name))
    return found


@lru_cache(maxsize=64)
def _places(topic: str, names: tuple[str, ...], wanted: tuple[str, ...]) -> list[int]:
    if set(names).isdisjoint(wanted):
        return []
    missing = [name for name in wanted if name not in names]
    repeated = [name for name in wanted if names.count(name) > 1]
    if missing or repeated:
        what = 'missing' if missing else 'repeated'
        raise JointNameError(
            f'{topic}: names do not fit ({what}: {listed(missing or repeated)}); expected each of '
            f'{listed(wanted)} once, in one message. Merge what several drivers send, or set '
            'tip_link to the end of the chain that is measured.'
        )
    return [names.index(name) for name in wanted]


def motion_of_base(message: BaseMotion, base_link: str) -> LinkMotion:
    """Motion of the base link.

    Parameters
    ----------
    message : BaseMotion
    base_link : str
        Whose motion it has to be.

    Returns
    -------
    LinkMotion
        Pose (4, 4) and twist (K, 6) with derivatives, (angular, linear), K from 2 to 4; further
        ones of the message are left out.

    Raises
    ------
    MotionError
        If the message is about another link, holds fewer than two twists, a value that is not
        finite, or a quaternion whose length is not 1 to 0.001.
    """
    if message.child_frame_id != base_link:
        raise MotionError(
            f'BaseMotion: child_frame_id is {message.child_frame_id!r}, expected the base link '
            f'{base_link!r}; bring the motion of another link there first.'
        )
    if len(message.twist) < _FEWEST_TWISTS:
        raise MotionError(
            f'BaseMotion: twist has {len(message.twist)} entries, expected the twist and its '
            'first derivative, and two more for derivatives of efforts. None is taken as zero.'
        )
    q, p = message.pose.orientation, message.pose.position
    pairs = [(item.angular, item.linear) for item in message.twist[:_MOST_TWISTS]]
    twist = np.array([[x.x, x.y, x.z] for pair in pairs for x in pair]).reshape(-1, 6)
    position, e = np.array([p.x, p.y, p.z]), np.array([q.x, q.y, q.z, q.w])
    if not np.isfinite([*twist.flat, *position, *e]).all():
        raise MotionError('BaseMotion: all values must be finite.')
    length = math.hypot(*e)  # which does not overflow
    if abs(length - 1.0) > _OFF_UNIT:
        raise MotionError(
            f'BaseMotion: the quaternion has length {length:.6g}, expected 1.'
        )
    hat = so3.hat(e[:3] / length)
    rotation = np.eye(3) + 2.0 * (e[3] / length * hat + hat @ hat)
    return LinkMotion(se3.pose(rotation, position), twist)


def state_from_message(model: RobotModel, message: JointMotion) -> Array:
    """State of the joints in model order.

    Parameters
    ----------
    model : RobotModel
    message : JointMotion

    Returns
    -------
    ndarray, shape (5, n)
        Zero where a field is empty, which that of the positions must not be.

    Raises
    ------
    JointNameError, MotionError
        As of `motion_from_message`.
    """
    names = model.joint_names
    order = joint_indices(tuple(message.joint_names), names)
    rows = read_rows('start_state', message, MOTION_FIELDS, names, order, needed=1)
    state: Array = rows[0]
    return state


def waypoints_from_message(message: JointTrajectory, period: float = 0.0) -> Waypoints:
    """Waypoints of a trajectory in the order of the message.

    Parameters
    ----------
    message : JointTrajectory
    period : float
        Between points if all their times are zero [s].

    Returns
    -------
    Waypoints
        With NaN for velocities and accelerations that a point does not have.

    Raises
    ------
    TrajectoryError
        If there are no names or points, a point has the wrong number of values, or one is not
        finite.
    """
    names, points = tuple(message.joint_names), message.points
    if not names:
        raise TrajectoryError('JointTrajectory: joint_names is empty.')
    if not points:
        raise TrajectoryError('JointTrajectory: it has no points, expected at least two.')
    arrays = {
        field: _rows(points, field, len(names), required=field == 'positions')
        for field in ('positions', 'velocities', 'accelerations')
    }
    times = [point.time_from_start for point in points]
    seconds = np.array([time.sec + time.nanosec / NANOSECONDS for time in times])
    if period and not seconds.any():
        seconds = period * np.arange(len(times))
    return Waypoints(names, seconds, **arrays)


def requested_waypoints(message: JointTrajectory, most: int) -> Waypoints:
    """Waypoints of a request, which are taken out of it.

    Parameters
    ----------
    message : JointTrajectory
        Has no points any more afterwards.
    most : int
        Largest number of points.

    Returns
    -------
    Waypoints

    Raises
    ------
    RequestError
        If there are more points.
    TrajectoryError
        As of `waypoints_from_message`.
    """
    count = len(message.points)
    if count > most:
        raise RequestError(
            f'The trajectory has {count} points, more than max_trajectory_points ({most}).'
        )
    waypoints = waypoints_from_message(message)
    message.points = []  # they take more memory than all that is made of them
    return waypoints


def _rows(
    points: Sequence[JointTrajectoryPoint], field: str, n_joints: int, required: bool
) -> Array:
    """One field of all points, shape (N, n); rows of NaN where it is empty."""
    values = [getattr(point, field) for point in points]
    counts = np.fromiter(map(len, values), dtype=np.intp, count=len(values))
    given = counts == n_joints
    unfit = ~given & (required | (counts > 0))
    if unfit.any():
        index = int(unfit.argmax())
        raise TrajectoryError(
            f'JointTrajectory: point {index} has {counts[index]} {field}, expected {n_joints}, '
            'one for each of joint_names' + ('.' if required else ', or none.')
        )
    rows = np.full((len(points), n_joints), np.nan)
    rows[given] = np.frombuffer(b''.join(values)).reshape(-1, n_joints)
    bad = given & ~np.isfinite(rows).all(axis=1)
    if bad.any():
        index = int(bad.argmax())
        raise TrajectoryError(
            f'JointTrajectory: the {field} of point {index} are {rows[index].tolist()}; all '
            'values must be finite.'
        )
    return rows


def wrench_from_message(message: WrenchMotion) -> tuple[str, str, str, Array]:
    """Wrench with two time derivatives.

    Parameters
    ----------
    message : WrenchMotion

    Returns
    -------
    link : str
    expressed_in : str
        body, spatial or hybrid.
    acting : str
        on_robot or on_environment.
    values : ndarray, shape (3, 6)
        (moment, force) [N m/s^k], [N/s^k].

    Raises
    ------
    WrenchError
        If a choice is unknown or a value is not finite.
    """
    link = message.header.frame_id
    for field, choices in (('expressed_in', _EXPRESSIONS), ('acting', _ACTINGS)):
        given = getattr(message, field)
        if given not in choices:
            names = ', '.join(f'{value} ({name})' for value, name in choices.items())
            raise WrenchError(
                f'WrenchMotion on {link!r}: {field} is {given}, expected one of {names}.'
            )
    wrenches = message.wrench, message.wrench_dot, message.wrench_ddot
    values = np.array([moment_force(wrench) for wrench in wrenches])
    if not np.all(np.isfinite(values)):
        raise WrenchError(f'WrenchMotion on {link!r}: all values must be finite.')
    return link, _EXPRESSIONS[message.expressed_in], _ACTINGS[message.acting], values


def moment_force(message: WrenchMessage) -> list[float]:
    """Components of a wrench in the order of the mathematics, (moment, force) [N m], [N]."""
    torque, force = message.torque, message.force
    return [torque.x, torque.y, torque.z, force.x, force.y, force.z]


def write_wrench(message: WrenchMessage, wrench: Array) -> None:
    """Write a wrench (6,), (moment, force), into a message."""
    torque, force = message.torque, message.force
    torque.x, torque.y, torque.z, force.x, force.y, force.z = wrench.tolist()


def payload_of(request: SetPayload.Request) -> Payload:
    """Payload of a request.

    Parameters
    ----------
    request : SetPayload.Request
        Its inertia [kg m^2] is that about the centre of mass [m], in the axes of the link.

    Returns
    -------
    Payload
    """
    given, center = request.inertia, request.inertia.com
    rows = (given.ixx, given.ixy, given.ixz), (given.ixy, given.iyy, given.iyz)
    inertia = *rows, (given.ixz, given.iyz, given.izz)
    return Payload(request.link, given.m, (center.x, center.y, center.z), inertia)


def flat(values: Array) -> array.array[float]:
    """Array as the type in which messages hold float64[], copied without a loop."""
    return array.array('d', np.ascontiguousarray(values, dtype=np.float64).tobytes())


def continuous_order(continuous_derivative: int) -> int:
    """Highest derivative of the effort that is continuous, from that of the position; or -1.

    Parameters
    ----------
    continuous_derivative : int
        Of the position; that of the effort is two lower, and no higher than
        `HIGHEST_EFFORT_ORDER`.
    """
    return max(min(continuous_derivative - 2, HIGHEST_EFFORT_ORDER), -1)


def fill(
    message: Any, fields: Sequence[str], rows: Sequence[Array] | Array, end: str = ''
) -> None:
    """Write rows into the first fields of a message, and empty the others.

    Parameters
    ----------
    message : object
    fields : sequence of str
        Names of fields of type float64[], without their end.
    rows : sequence of ndarray or ndarray, shape (K, ...)
        A row for each of the first K fields; those beyond the fields are left out.
    end : str
        Common end of the names of the fields, such as `_std`.
    """
    values = np.asarray(rows, dtype=np.float64)[: len(fields)]
    for k, field in enumerate(fields):
        row = values[k].tobytes() if k < len(values) else b''
        setattr(message, field + end, array.array('d', row))


def along(
    given: Sequence[Array], times: Array, what: str, error: type[HodynError]
) -> Array:
    """Series of what goes on by its derivatives or is given for each time.

    Parameters
    ----------
    given : sequence of ndarray, shape (3, c)
        One value with two derivatives, or one for each time.
    times : ndarray, shape (N,)
        [s]
    what : str
        What is given, for errors.
    error : type
        Of what is raised.

    Returns
    -------
    ndarray, shape (N, 3, c)

    Raises
    ------
    error
        If there are neither one nor N of them.
    """
    if len(given) == 1:
        return continued(given[0], times - times[0])
    if len(given) != len(times):
        raise error(
            f'There are {len(given)} {what} for {len(times)} samples; expected one, or one per '
            'sample.'
        )
    return np.array(given)


def message_of_joints(kind: type, model: RobotModel, stamp: int = 0) -> Any:
    """Message about the joints of a model at a time [ns], without values.

    Parameters
    ----------
    kind : type
        Of the message, with `header` and `joint_names`.
    model : RobotModel
    stamp : int
        [ns]
    """
    message = kind(joint_names=list(model.joint_names))
    message.header.stamp = time_message(stamp)
    message.header.frame_id = model.base_link
    return message


def write_efforts(
    message: JointEffort,
    effort: Array,
    stamp: int,
    source: int,
    continuous: int,
    deviations: Array | None = None,
    delay: float = 0.0,
) -> None:
    """Write efforts of an instant into a message that is used again and again.

    Parameters
    ----------
    message : JointEffort
    effort : ndarray, shape (orders, n)
        [N m/s^k] or [N/s^k]
    stamp : int
        [ns]
    source : int
        Constant of the message that says where the motion is from.
    continuous : int
        Highest order of the efforts that is continuous; orders that are not there do not count.
    deviations : ndarray, shape (K, n), K >= orders, optional
        Standard deviations of the efforts.
    delay : float
        How far the motion lies behind the latest measurement [s].
    """
    time = message.header.stamp
    time.sec, time.nanosec = divmod(stamp, NANOSECONDS)
    orders = len(effort)
    fill(message, EFFORT_FIELDS, effort)
    fill(message, EFFORT_FIELDS, () if deviations is None else deviations[:orders], '_std')
    message.valid_order = orders - 1
    message.continuous_order = min(continuous, orders - 1)
    message.source = source
    message.delay = delay


def motion_estimate_message(model: RobotModel, estimate: Estimate) -> MotionEstimate:
    """Estimated motion as a message."""
    message = message_of_joints(MotionEstimate, model, estimate.time)
    fill(message, MOTION_FIELDS, estimate.motion)
    fill(message, MOTION_FIELDS, estimate.std, '_std')
    message.valid_order = estimate.valid_order
    message.delay = estimate.delay
    message.measurement_std = flat(estimate.noise)
    return message


def effort_trajectory_message(
    model: RobotModel, times: Array, motion: Array, effort: Array, stamp: int, source: int
) -> JointEffortTrajectory:
    """Motion (N, K, n) and efforts (N, K-2, n) as a message; `stamp` in nanoseconds.

    Parameters
    ----------
    model : RobotModel
    times : ndarray, shape (N,)
        From the start of the motion [s].
    motion : ndarray, shape (N, K, n)
    effort : ndarray, shape (N, K - 2, n)
    stamp : int
        Of the time zero [ns].
    source : int
        Constant of JointEffort that says where the motion is from.

    Returns
    -------
    JointEffortTrajectory
    """
    message = message_of_joints(JointEffortTrajectory, model, stamp)
    message.time_from_start = flat(times)
    fill(message, MOTION_FIELDS, motion.swapaxes(0, 1))
    fill(message, EFFORT_FIELDS, effort.swapaxes(0, 1))
    message.valid_order = message.continuous_order = effort.shape[1] - 1
    message.source = source
    return message


def violation_message(violation: Violation, time: float) -> LimitViolation:
    """Violated limit as a message; `time` from the start of the motion [s]."""
    return LimitViolation(
        quantity=violation.quantity,
        joint_name=violation.joint_name,
        value=violation.value,
        limit=violation.limit,
        time_from_start=float(time),
    )
