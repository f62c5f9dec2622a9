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
    JointEffort,
    JointEffortTrajectory,
    JointMotion,
    JointMotionTrajectory,
    LimitViolation,
    MotionEstimate,
    WrenchMotion,
)
from hodyn_msgs.srv import SetPayload
from numpy.typing import NDArray
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from hodyn_ros.checks import first_not_finite
from hodyn_ros.dynamics.wrenches import continued
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
from hodyn_ros.model.limits import Violation
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import joint_order, listed
from hodyn_ros.streams.timeline import NANOSECONDS
from hodyn_ros.trajectory.estimator import Estimate
from hodyn_ros.trajectory.piecewise import checked_times
from hodyn_ros.trajectory.planning import Waypoints

Array = NDArray[np.float64]

MOTION_FIELDS = ('position', 'velocity', 'acceleration', 'jerk', 'snap')
EFFORT_FIELDS = ('effort', 'effort_dot', 'effort_ddot')
HIGHEST_EFFORT_ORDER = len(EFFORT_FIELDS) - 1
_FEWEST_MOTION_FIELDS = 3
_FEWEST_TWISTS, _MOST_TWISTS = (
    2,
    HIGHEST_EFFORT_ORDER + 2,
)  # entries of a twist that are used
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
    """Integer nanoseconds as a time message."""
    return Time(sec=nanoseconds // NANOSECONDS, nanosec=nanoseconds % NANOSECONDS)


# Streams use the same names in every message. What does not fit is not kept.
@lru_cache(maxsize=64)
def _order(names: tuple[str, ...], wanted: tuple[str, ...]) -> list[int] | None:
    """Find the indices that bring values from one order of names into another; None: the same."""
    return None if names == wanted else joint_order(names, wanted)


def motion_samples_from_message(
    model: RobotModel, message: JointMotionTrajectory
) -> tuple[Array, Array]:
    """Times (N,) [s] and motion (N, K, n) in model order; HodynError as from a single motion."""
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
    """Motion of shape (K, n) in model order, K from 3 to 5 as many orders as the message holds.

    Of several samples, whose values stand one after the other, (samples, K, n). HodynError if the
    names are not those of the model, a field has the wrong length, a needed one is empty or a
    value is not finite.
    """
    order = _order(tuple(message.joint_names), model.joint_names)
    n, N = len(model.joint_names), samples or 1
    rows = read_rows(what, message, MOTION_FIELDS, n, _FEWEST_MOTION_FIELDS, samples=N)
    given = [len(getattr(message, name)) > 0 for name in MOTION_FIELDS]
    orders = sum(given)
    if not all(given[:orders]):
        name, empty = (
            MOTION_FIELDS[given.index(True, orders)],
            MOTION_FIELDS[given.index(False)],
        )
        raise MotionError(
            f'{what}: {name} is given but {empty} is empty; a derivative needs all lower ones.'
        )
    motion: Array = rows[:orders].reshape(-1, N, n).swapaxes(0, 1)
    if order is not None:
        motion = motion.take(order, axis=2)  # contiguous, as compiled code wants it
    if samples is None:
        motion = motion[0]
    if not np.isfinite(motion).all():
        check_finite(what, MOTION_FIELDS, model.joint_names, motion)
    return motion


def read_rows(
    what: str,
    message: Any,
    fields: Sequence[str],
    n: int,
    n_needed: int,
    names: str = 'joint_names',
    samples: int = 1,
    error: type[HodynError] = MotionError,
) -> Array:
    """Fields of a message, shape (K, samples n), each with a value for every one of its names.

    After the first ones, which are needed, a field may be empty: zeros. `error` refuses others.
    """
    rows = np.zeros((len(fields), samples * n))
    for k, field in enumerate(fields):
        values = getattr(message, field)
        if len(values) == samples * n:
            rows[k] = values
        elif len(values) or k < n_needed:
            each = '' if samples == 1 else f' in each of {samples} samples'
            others = ' and '.join(fields[n_needed:])
            raise error(
                f'{what}: {field} has {len(values)} values, expected {samples * n}, one for each '
                f'of {names}{each}'
                + (f' (only {others} may be left empty).' if others else '.')
            )
    return rows


def check_finite(
    what: str,
    fields: Sequence[str],
    joints: Sequence[str],
    values: Array,
    error: type[HodynError] = MotionError,
) -> None:
    """Refuse fields (K, n), or (N, K, n) of several samples, with values that are not finite."""
    where = first_not_finite(values)
    if where is not None:
        *sample, row, joint = where
        at = f', sample {sample[0]}' if sample else ''
        raise error(
            f'{what}{at}: {fields[row]} of joint {joints[joint]!r} is {values[where]}; all values '
            'must be finite.'
        )


def values_of(
    topic: str, message: JointState, fields: tuple[str, ...], wanted: tuple[str, ...]
) -> Array | None:
    """Values (fields, names) of the wanted names, in their order; None if none of them is there.

    Further names are ignored. Raises JointNameError or MotionError if it cannot be used.
    """
    names = tuple(message.name)
    places = _places(topic, names, wanted)
    if not places:
        return None
    values = read_rows(topic, message, fields, len(names), len(fields), 'name')[:, places]
    check_finite(topic, fields, wanted, values)
    return values


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
    """Pose (4, 4) and twist (2 to 4, 6) of a message; MotionError if they cannot be used."""
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
    twist = np.array([[item.x, item.y, item.z] for pair in pairs for item in pair]).reshape(
        -1, 6
    )
    position, e, length = (
        [p.x, p.y, p.z],
        [q.x, q.y, q.z, q.w],
        math.hypot(q.x, q.y, q.z, q.w),
    )
    if not np.isfinite([*twist.flat, *position, *e]).all():
        raise MotionError('BaseMotion: all values must be finite.')
    if abs(length - 1.0) > _OFF_UNIT:
        raise MotionError(
            f'BaseMotion: the quaternion has length {length:.6g}, expected 1.'
        )
    hat, w = so3.hat(e[:3]) / length, q.w / length
    rotation = np.eye(3) + 2.0 * w * hat + 2.0 * hat @ hat
    return LinkMotion(se3.pose(rotation, position), twist)


def state_from_message(model: RobotModel, message: JointMotion) -> Array:
    """State (5, n) in model order, zero where it is empty; errors as of `motion_from_message`."""
    order = model.joint_order(message.joint_names)
    state = read_rows('start_state', message, MOTION_FIELDS, len(order), 1)[:, order]
    check_finite('start_state', MOTION_FIELDS, model.joint_names, state)
    return state


def waypoints_from_message(message: JointTrajectory) -> Waypoints:
    """Waypoints of a trajectory in the order of the message; TrajectoryError if they are none."""
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
    return Waypoints(names, seconds, **arrays)


def requested_waypoints(message: JointTrajectory, most: int) -> Waypoints:
    """Waypoints of a request, which are taken out of it; RequestError if they are too many."""
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
    """Link, expression, direction of action and values (3, 6) of a message, or WrenchError."""
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
    """Components of a wrench in the order of the mathematics."""
    torque, force = message.torque, message.force
    return [torque.x, torque.y, torque.z, force.x, force.y, force.z]


def write_wrench(message: WrenchMessage, wrench: Array) -> None:
    """Write a wrench (6,), (moment, force), into a message."""
    torque, force = message.torque, message.force
    torque.x, torque.y, torque.z, force.x, force.y, force.z = wrench.tolist()


def payload_of(request: SetPayload.Request) -> Payload:
    """Payload of a request."""
    given, center = request.inertia, request.inertia.com
    rows = (given.ixx, given.ixy, given.ixz), (given.ixy, given.iyy, given.iyz)
    inertia = *rows, (given.ixz, given.iyz, given.izz)
    return Payload(request.link, given.m, (center.x, center.y, center.z), inertia)


def flat(values: Array) -> array.array[float]:
    """Array as the type in which messages hold float64[], copied without a loop."""
    return array.array('d', np.ascontiguousarray(values, dtype=np.float64).tobytes())


def continuous_order(continuous_derivative: int) -> int:
    """Highest derivative of the effort that is continuous, from that of the position; or -1."""
    return max(min(continuous_derivative - 2, HIGHEST_EFFORT_ORDER), -1)


def fill(
    message: Any, fields: Sequence[str], rows: Sequence[Array] | Array, end: str = ''
) -> None:
    """Write rows into the first fields of a message, whose names have an end; empty the others."""
    values = np.asarray(rows, dtype=np.float64)[: len(fields)]
    for k, field in enumerate(fields):
        row = values[k].tobytes() if k < len(values) else b''
        setattr(message, field + end, array.array('d', row))


def along(
    given: Sequence[Array], times: Array, what: str, error: type[HodynError]
) -> Array:
    """Series (N, 3, c) of what goes on by its derivatives or is given for each time (N,) [s]."""
    if len(given) == 1:
        return continued(given[0], times - times[0])
    if len(given) != len(times):
        raise error(
            f'There are {len(given)} {what} for {len(times)} samples; expected one, or one per '
            'sample.'
        )
    return np.array(given)


def message_of_joints(kind: type, model: RobotModel, stamp: int = 0) -> Any:
    """Message about the joints of a model at a time [ns], without values."""
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
    """Write efforts (orders, n) with deviations [ns, s] into a message, used again and again."""
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
    """Motion (N, K, n) and efforts (N, K-2, n) as a message; `stamp` in nanoseconds."""
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
