"""Messages to arrays and back, and what the first bytes of a message say.

Here alone wrenches change from the order of the messages (force, torque) to (moment, force).
"""

from __future__ import annotations

import array
import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Wrench as WrenchMessage
from hodyn_msgs.msg import (
    JointEffort,
    JointEffortTrajectory,
    JointMotion,
    JointMotionTrajectory,
    LimitViolation,
    MotionEstimate,
    WrenchMotion,
)
from numpy.typing import NDArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from hodyn_ros.checks import first_not_finite
from hodyn_ros.errors import MotionError, TrajectoryError, WrenchError
from hodyn_ros.model.limits import Violation
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import joint_order
from hodyn_ros.trajectory.estimator import Estimate
from hodyn_ros.trajectory.piecewise import checked_times
from hodyn_ros.trajectory.planning import Waypoints
from hodyn_ros.trajectory.timeline import NANOSECONDS

Array = NDArray[np.float64]

MOTION_FIELDS = ('position', 'velocity', 'acceleration', 'jerk', 'snap')
EFFORT_FIELDS = ('effort', 'effort_dot', 'effort_ddot')
HIGHEST_EFFORT_ORDER = len(EFFORT_FIELDS) - 1
_FEWEST_MOTION_FIELDS = 3
TURN = 2.0 * np.pi

_EXPRESSIONS = {
    WrenchMotion.BODY: 'body',
    WrenchMotion.SPATIAL: 'spatial',
    WrenchMotion.HYBRID: 'hybrid',
}
_ACTINGS = {WrenchMotion.ON_ENVIRONMENT: 'on_environment', WrenchMotion.ON_ROBOT: 'on_robot'}

# Beyond it a motion of any length would leave the range of time messages (the year 2038).
_LATEST = (2**31 - 1 - 10**6) * NANOSECONDS


def nanoseconds(time: Time) -> int:
    """Time message as integer nanoseconds; MotionError if it is none that a motion can follow."""
    seconds, nanosec = time.sec, time.nanosec
    value: int = seconds * NANOSECONDS + nanosec
    if not (nanosec < NANOSECONDS and 0 <= value <= _LATEST):
        raise MotionError(
            f'The stamp is {seconds} s and {nanosec} ns; expected nanoseconds below 10^9 and a '
            f'time from 0 to {_LATEST // NANOSECONDS} s.'
        )
    return value


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
        raise MotionError(f'{what}: time_from_start is empty, expected the time of every sample.')
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
    N = samples or 1
    order = _order(tuple(message.joint_names), model.joint_names)
    n = len(model.joint_names)
    rows = []
    empty = ''
    for index, name in enumerate(MOTION_FIELDS):
        values = getattr(message, name)
        if len(values) == 0:
            if index < _FEWEST_MOTION_FIELDS:
                raise MotionError(
                    f'{what}: {name} is empty, expected {N * n} values (only jerk and snap may be '
                    'left empty).'
                )
            empty = empty or name
            continue
        if empty:
            raise MotionError(
                f'{what}: {name} is given but {empty} is empty; a derivative needs all lower ones.'
            )
        if len(values) != N * n:
            raise _wrong_length(what, name, len(values), n, N)
        rows.append(values)
    motion: Array = np.array(rows).reshape(-1, N, n).swapaxes(0, 1)
    if order is not None:
        motion = motion.take(order, axis=2)  # contiguous, as compiled code wants it
    if not np.isfinite(motion).all():
        sample = int(np.argmin(np.isfinite(motion).all(axis=(1, 2))))
        what = what if N == 1 else f'{what}, sample {sample}'
        raise MotionError(not_finite(what, MOTION_FIELDS, model.joint_names, motion[sample]))
    return motion[0] if samples is None else motion


def _wrong_length(what: str, name: str, given: int, n: int, N: int = 1) -> MotionError:
    samples = '' if N == 1 else f' in each of {N} samples'
    return MotionError(
        f'{what}: {name} has {given} values, expected {N * n}, one for each of joint_names'
        f'{samples}.'
    )


def not_finite(what: str, fields: Sequence[str], joints: Sequence[str], values: Array) -> str:
    """Sentence on the first value that is not finite, of fields (rows) and joints (columns)."""
    row, joint = first_not_finite(values) or (0, 0)
    return (
        f'{what}: {fields[row]} of joint {joints[joint]!r} is {values[row, joint]}; all values '
        'must be finite.'
    )


def state_from_message(model: RobotModel, message: JointMotion) -> Array:
    """State of shape (5, n) in model order; what is empty is zero, but the positions.

    HodynError as from `motion_from_message`.
    """
    order = model.joint_order(message.joint_names)
    state = np.zeros((len(MOTION_FIELDS), len(order)))
    for k, name in enumerate(MOTION_FIELDS):
        values = getattr(message, name)
        if len(values) == 0 and k > 0:
            continue
        if len(values) != len(order):
            raise _wrong_length('start_state', name, len(values), len(order))
        state[k] = np.asarray(values, dtype=np.float64)[order]
    if not np.isfinite(state).all():
        raise MotionError(not_finite('start_state', MOTION_FIELDS, model.joint_names, state))
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


def flat(values: Array) -> array.array[float]:
    """Array as the type in which messages hold float64[], copied without a loop."""
    return array.array('d', np.ascontiguousarray(values, dtype=np.float64).tobytes())


def continuous_order(continuous_derivative: int) -> int:
    """Highest derivative of the effort that is continuous, from that of the position; or -1."""
    return max(min(continuous_derivative - 2, HIGHEST_EFFORT_ORDER), -1)


class EffortWriter:
    """Writes efforts into one message again and again: making one costs more than they do."""

    def __init__(self, model: RobotModel) -> None:
        self._message = JointEffort(joint_names=list(model.joint_names))
        self._message.header.frame_id = model.base_link
        self._empty = array.array('d')

    def message(
        self,
        effort: Array,
        stamp: int,
        source: int,
        continuous: int,
        deviations: Array | None = None,
        delay: float = 0.0,
    ) -> JointEffort:
        """Message of efforts (orders, n) with deviations [ns, s], valid until the next one."""
        message, empty = self._message, self._empty
        time = message.header.stamp
        time.sec, time.nanosec = divmod(stamp, NANOSECONDS)
        orders = len(effort)
        for order, name in enumerate(EFFORT_FIELDS):
            is_there = order < orders
            setattr(message, name, flat(effort[order]) if is_there else empty)
            std = flat(deviations[order]) if is_there and deviations is not None else empty
            setattr(message, f'{name}_std', std)
        message.valid_order = orders - 1
        message.continuous_order = min(continuous, orders - 1)
        message.source = source
        message.delay = delay
        return message


def motion_estimate_message(model: RobotModel, estimate: Estimate) -> MotionEstimate:
    """Estimated motion as a message."""
    message = MotionEstimate()
    message.header.stamp = time_message(estimate.time)
    message.header.frame_id = model.base_link
    message.joint_names = list(model.joint_names)
    for name, values, deviations in zip(MOTION_FIELDS, estimate.motion, estimate.std):
        setattr(message, name, flat(values))
        setattr(message, f'{name}_std', flat(deviations))
    message.valid_order = estimate.valid_order
    message.delay = estimate.delay
    message.measurement_std = flat(estimate.noise)
    return message


def effort_trajectory_message(
    model: RobotModel, times: Array, motion: Array, effort: Array, stamp: int, source: int
) -> JointEffortTrajectory:
    """Motion (N, K, n) and efforts (N, K-2, n) as a message; `stamp` in nanoseconds."""
    message = JointEffortTrajectory()
    message.header.stamp = time_message(stamp)
    message.header.frame_id = model.base_link
    message.joint_names = list(model.joint_names)
    message.time_from_start = flat(times)
    for name, values in zip(MOTION_FIELDS, np.moveaxis(motion, 1, 0)):
        setattr(message, name, flat(values))
    for name, values in zip(EFFORT_FIELDS, np.moveaxis(effort, 1, 0)):
        setattr(message, name, flat(values))
    message.valid_order = effort.shape[1] - 1
    message.continuous_order = message.valid_order
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


# Unpacking makes a Python object of every point and every name; for some messages that costs
# seconds and gigabytes. Their beginning says enough to refuse them. Source: OMG, DDS
# Interoperability Wire Protocol, CDR encapsulation; plain CDR aligns every value to its size.
_ENCAPSULATION = 4  # bytes before the content, from which alignment counts

# The joint names stand before the number of points. Nobody has so many joints.
MOST_NAMES = 4096


class TrajectoryHead(NamedTuple):
    """Beginning of a serialized trajectory."""

    stamp: Time
    n_names: int
    n_points: int | None
    """None if there are too many names to look behind them."""


def trajectory_head(data: bytes) -> TrajectoryHead:
    """Read the stamp and the sizes of a serialized trajectory_msgs/JointTrajectory.

    ValueError if the message is too short or has another encapsulation than plain CDR.
    """
    if len(data) < _ENCAPSULATION or data[0] != 0 or data[1] not in (0, 1):
        raise ValueError('the message is not in plain CDR')
    order = '<' if data[1] else '>'
    try:
        sec, nanosec = struct.unpack_from(order + 'iI', data, _ENCAPSULATION)
        stamp = Time(sec=sec, nanosec=nanosec)
        position = _behind_string(data, order, _ENCAPSULATION + 8)
        n_names, position = _count(data, order, position)
        if n_names > MOST_NAMES:
            return TrajectoryHead(stamp, n_names, None)
        for _ in range(n_names):
            position = _behind_string(data, order, position)
        n_points, _ = _count(data, order, position)
    except struct.error as error:
        raise ValueError('the message is cut off') from error
    return TrajectoryHead(stamp, n_names, n_points)


def _count(data: bytes, order: str, position: int) -> tuple[int, int]:
    """Aligned 32-bit number and the position behind it."""
    position += -(position - _ENCAPSULATION) % 4
    return struct.unpack_from(order + 'I', data, position)[0], position + 4


def _behind_string(data: bytes, order: str, position: int) -> int:
    length, position = _count(data, order, position)
    return position + length
