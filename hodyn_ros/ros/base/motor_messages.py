"""Motors and the stiffness of joints as messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from hodyn_msgs.msg import MotorReference, MotorTrajectory, StiffnessMotion

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.limits import spring_deflections
from hodyn_ros.actuators.motors import MotorMotion
from hodyn_ros.checks import Array
from hodyn_ros.errors import ActuatorError, JointNameError
from hodyn_ros.names import listed
from hodyn_ros.ros.base.conversions import along, check_finite, fill, flat, read_rows
from hodyn_ros.streams import motors as streams
from hodyn_ros.streams.timeline import NANOSECONDS

POSITION_FIELDS = ('position', 'velocity', 'acceleration')
TORQUE_FIELDS = ('torque', 'torque_dot')

STIFFNESS_FIELDS = ('stiffness', 'stiffness_dot', 'stiffness_ddot')


class MotorMessages(streams.MotorStream):
    """Motor references of a stream of samples, and the message that holds them."""

    def __init__(self, actuators: Actuators) -> None:
        super().__init__(actuators)
        self._message = motor_message(MotorReference, actuators)
        self._message.header.frame_id = actuators.model.base_link

    def message(self, motors: MotorMotion, stamp: int, source: int) -> MotorReference:
        """Message that is valid until the next one is written."""
        message = self._message
        time = message.header.stamp
        time.sec, time.nanosec = divmod(stamp, NANOSECONDS)
        message.source = source
        fill_motors(message, self._actuators, motors)
        return message


def motor_message(kind: type, actuators: Actuators) -> Any:
    """Message about the motors of a robot, without values."""
    joints = [actuators.model.joint_names[joint] for joint in actuators.joint_of_motor]
    return kind(motor_names=list(actuators.motor_names), joint_names=joints)


def fill_motors(message: Any, actuators: Actuators, motors: MotorMotion) -> None:
    """Write what the motors do at an instant, or at several ones, into a message."""
    fill(message, POSITION_FIELDS, motors.position.swapaxes(0, -2))
    fill(message, TORQUE_FIELDS, motors.torque.swapaxes(0, -2))
    message.deflection = flat(spring_deflections(actuators, motors)[..., 0, :])


def motor_trajectory_message(
    actuators: Actuators, times: Array, motors: MotorMotion
) -> MotorTrajectory:
    """Motors along a motion of N samples as a message."""
    message = motor_message(MotorTrajectory, actuators)
    message.time_from_start = flat(times)
    fill_motors(message, actuators, motors)
    return message


def stiffness_from_message(
    message: StiffnessMotion, joints: Iterable[str]
) -> dict[str, Array]:
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
