"""What the motors do behind the joints: messages, the stream with its past, wanted stiffness."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from hodyn_msgs.msg import MotorReference, MotorTrajectory, StiffnessMotion
from numpy.typing import NDArray

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.limits import spring_deflections
from hodyn_ros.actuators.motors import MotorMotion, MotorState, motor_motion, motor_step
from hodyn_ros.dynamics.wrenches import continued
from hodyn_ros.errors import ActuatorError, JointNameError
from hodyn_ros.names import listed
from hodyn_ros.ros.base.conversions import along, check_finite, fill, flat, nanoseconds, read_rows
from hodyn_ros.streams.timeline import NANOSECONDS

Array = NDArray[np.float64]

POSITION_FIELDS = ('position', 'velocity', 'acceleration')
TORQUE_FIELDS = ('torque', 'torque_dot')

STIFFNESS_FIELDS = ('stiffness', 'stiffness_dot', 'stiffness_ddot')
MOST_CHANGE = 0.1  # of the stiffness, while it stops changing; as a part of it

# After a longer time without a sample the deflection of a joint with a damper is taken to have
# settled, as at the beginning of a motion.
LONGEST_STEP = 0.5  # s


class MotorStream:
    """Motor references of a stream of samples, one after the other."""

    def __init__(self, actuators: Actuators) -> None:
        self._actuators = actuators
        self._has_dampers = any(item.actuator.needs_times for item in actuators.driven)
        self._state: MotorState | None = None
        self._source: int | None = None
        self._begin = 0
        self._message = _motor_message(MotorReference, actuators)
        self._message.header.frame_id = actuators.model.base_link

    def reset(self) -> None:
        """Forget the samples so far."""
        self._state = None

    def motors(
        self,
        motion: Array,
        effort: Array,
        stamp: int,
        source: int,
        stiffness: Mapping[str, Array],
    ) -> MotorMotion:
        """Motion and torque of the motors, or HodynError if the actuators cannot do it.

        A stamp [ns] that is not behind the one before, and another source, begin a new motion. The
        stiffness is the series (3,) of every joint that can choose it.
        """
        if not self._has_dampers:
            return motor_motion(self._actuators, motion, effort, stiffness=stiffness, order=None)
        before, self._state = self._state, None  # unless all goes well
        time = (stamp - self._begin) / NANOSECONDS
        if (
            before is None
            or source != self._source
            or not 0.0 < time - before.time <= LONGEST_STEP
            or before.deflection.shape[-1] != len(effort) + 1
        ):
            before, time, self._begin, self._source = None, 0.0, stamp, source
        motors, self._state = motor_step(
            self._actuators, time, motion, before, effort, stiffness=stiffness, order=None
        )
        return motors

    def message(self, motors: MotorMotion, stamp: int, source: int) -> MotorReference:
        """Message that is valid until the next one is written."""
        message = self._message
        time = message.header.stamp
        time.sec, time.nanosec = divmod(stamp, NANOSECONDS)
        message.source = source
        _fill(message, self._actuators, motors)
        return message


def _motor_message(kind: type, actuators: Actuators) -> Any:
    joints = [actuators.model.joint_names[joint] for joint in actuators.joint_of_motor]
    return kind(motor_names=list(actuators.motor_names), joint_names=joints)


def _fill(message: Any, actuators: Actuators, motors: MotorMotion) -> None:
    """Write what the motors do at an instant, or at several ones, into a message."""
    fill(message, POSITION_FIELDS, motors.position.swapaxes(0, -2))
    fill(message, TORQUE_FIELDS, motors.torque.swapaxes(0, -2))
    message.deflection = flat(spring_deflections(actuators, motors)[..., 0, :])


def motor_trajectory_message(
    actuators: Actuators, times: Array, motors: MotorMotion
) -> MotorTrajectory:
    """Motors along a motion of N samples as a message."""
    message = _motor_message(MotorTrajectory, actuators)
    message.time_from_start = flat(times)
    _fill(message, actuators, motors)
    return message


def stiffness_from_message(message: StiffnessMotion, joints: Iterable[str]) -> dict[str, Array]:
    """Series (3,) of the stiffness of some of the joints that can choose it, or HodynError."""
    names, known = list(message.joint_names), list(joints)
    unknown = sorted(set(names) - set(known))
    repeated = sorted({name for name in names if names.count(name) > 1})
    if unknown or repeated or not names:
        what = 'has' if unknown else 'repeats' if repeated else 'is empty:'
        raise JointNameError(
            f'StiffnessMotion: joint_names {what} {listed(unknown or repeated)}; the joints of '
            f'variable stiffness are {listed(known)}.'
        )
    what = 'StiffnessMotion'
    values = read_rows(what, message, STIFFNESS_FIELDS, len(names), 1, error=ActuatorError)
    check_finite(what, STIFFNESS_FIELDS, names, values, ActuatorError)
    if not (values[0] > 0.0).all():
        joint = int((values[0] <= 0.0).argmax())
        raise ActuatorError(
            f'StiffnessMotion: stiffness of joint {names[joint]!r} is {values[0, joint]}, '
            'expected a number above zero.'
        )
    return dict(zip(names, values.T))


def requested_stiffness(
    messages: Sequence[StiffnessMotion], joints: Iterable[str], times: Array
) -> dict[str, Array]:
    """Series (N, 3) of the stiffness by joint along N samples; empty without messages.

    There is one message, which goes on by its derivatives, or one for each of the times (N,) [s];
    others are refused, see `stiffness_from_message`.
    """
    if not messages:
        return {}
    joints = tuple(joints)
    series = [stiffness_from_message(message, joints) for message in messages]
    names = list(series[0])
    for i, entry in enumerate(series):
        if entry.keys() != series[0].keys():
            raise JointNameError(
                f'Entry {i} of stiffness is about {listed(entry)}, the first one about '
                f'{listed(names)}; expected the same joints in all entries.'
            )
    given = [np.stack([entry[name] for name in names], axis=-1) for entry in series]
    values = along(given, times, 'entries of stiffness', ActuatorError)
    return {name: values[:, :, j] for j, name in enumerate(names)}


class Stiffness:
    """The latest wish for every joint of variable stiffness.

    A wish goes on by its derivatives for `timeout`, and then stops changing within `rest_time`, or
    sooner if the stiffness would change by more than a tenth until then.
    """

    def __init__(self) -> None:
        self._wanted: dict[str, tuple[int, Array]] = {}  # stamps and series (3, 1)

    def take(self, message: StiffnessMotion, joints: Iterable[str], now: int) -> bool:
        """Take a wish, stamped zero for now [ns]; return whether no newer one came before it."""
        values = stiffness_from_message(message, joints)
        stamp = nanoseconds(message.header.stamp) or now
        if any(name in self._wanted and self._wanted[name][0] > stamp for name in values):
            return False
        for name, series in values.items():
            self._wanted[name] = stamp, series[:, None]
        return True

    def at(
        self, stamp: int, timeout: float, rest_time: float, joints: Iterable[str]
    ) -> Mapping[str, Array]:
        """Series (3,) of what was wished for, by joint, at an instant [ns]."""
        found = {}
        for name in joints:
            if name in self._wanted:
                since, series = self._wanted[name]
                age = max((stamp - since) / NANOSECONDS, 0.0)
                values: Array = continued(series, np.array([min(age, timeout)]))[0, :, 0]
                is_over = age > timeout
                found[name] = _stopped(values, age - timeout, rest_time) if is_over else values
        return found

    def keep_only(self, joints: Iterable[str]) -> None:
        """Forget what concerns other joints."""
        self._wanted = {name: self._wanted[name] for name in joints if name in self._wanted}

    def clear(self) -> None:
        """Forget everything."""
        self._wanted.clear()


def _stopped(series: Array, time: float, longest: float) -> Array:
    """Value and derivatives (3,) a time after the beginning of a smooth stop.

    The rate falls to zero along a cubic: nothing jumps, and the value does not turn back.
    """
    value, rate, slope = series
    duration = longest
    while abs(rate) * duration / 2 + abs(slope) * duration**2 / 12 > MOST_CHANGE * abs(value):
        duration *= 0.5
    x = min(time / duration, 1.0)
    a, b = rate * duration, slope * duration**2
    return np.array(
        [
            value + a * (x - x**3 + 0.5 * x**4) + b * (x**2 / 2 - 2 * x**3 / 3 + x**4 / 4),
            (a * (1 - 3 * x**2 + 2 * x**3) + b * (x - 2 * x**2 + x**3)) / duration,
            (a * (6 * x**2 - 6 * x) + b * (1 - 4 * x + 3 * x**2)) / duration**2,
        ]
    )
