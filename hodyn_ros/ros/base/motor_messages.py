"""Motors and the stiffness of joints as messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from hodyn_msgs.msg import MotorTrajectory, StiffnessMotion

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.limits import spring_deflections
from hodyn_ros.actuators.motors import MotorMotion
from hodyn_ros.errors import ActuatorError, JointNameError
from hodyn_ros.names import listed
from hodyn_ros.ros.base.conversions import along, fill, flat, read_rows
from hodyn_ros.typing import Array

POSITION_FIELDS = ('position', 'velocity', 'acceleration')
TORQUE_FIELDS = ('torque', 'torque_dot')

STIFFNESS_FIELDS = ('stiffness', 'stiffness_dot', 'stiffness_ddot')


def motor_message(kind: type, actuators: Actuators, **fields: Any) -> Any:
    """Message about the motors of a robot, without values.

    Parameters
    ----------
    kind : type
        Of the message, with `motor_names` and `joint_names`.
    actuators : Actuators
    **fields
        Further ones of the message.
    """
    joints = [actuators.model.joint_names[joint] for joint in actuators.joint_of_motor]
    return kind(motor_names=actuators.motor_names, joint_names=joints, **fields)


def fill_motors(message: Any, actuators: Actuators, motors: MotorMotion) -> None:
    """Write what the motors do at an instant, or at several ones, into a message.

    Parameters
    ----------
    message : object
        With the fields of MotorReference.
    actuators : Actuators
    motors : MotorMotion
        Of one instant, (K, m), or of N of them, (N, K, m).
    """
    fill(message, POSITION_FIELDS, motors.position.swapaxes(0, -2))
    fill(message, TORQUE_FIELDS, motors.torque.swapaxes(0, -2))
    message.deflection = flat(spring_deflections(actuators, motors)[..., 0, :])


def motor_trajectory_message(
    actuators: Actuators, times: Array, motors: MotorMotion
) -> MotorTrajectory:
    """Motors along a motion as a message.

    Parameters
    ----------
    actuators : Actuators
    times : ndarray, shape (N,)
        [s]
    motors : MotorMotion
        At these times, (N, K, m).

    Returns
    -------
    MotorTrajectory
    """
    message = motor_message(MotorTrajectory, actuators, time_from_start=flat(times))
    fill_motors(message, actuators, motors)
    return message


def stiffness_from_message(
    message: StiffnessMotion, joints: Iterable[str]
) -> dict[str, Array]:
    """Stiffness of some of the joints that can choose it.

    Parameters
    ----------
    message : StiffnessMotion
    joints : iterable of str
        Joints that can choose it.

    Returns
    -------
    dict of str to ndarray, shape (3,)
        Stiffness and two time derivatives, by joint [N m/(rad s^k)].

    Raises
    ------
    JointNameError
        If there are no names, or they are unknown or repeated.
    ActuatorError
        If a field has the wrong length, a value is not finite, or a stiffness not above zero.
    """
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
    fields, error = STIFFNESS_FIELDS, ActuatorError
    values = read_rows(what, message, fields, names, needed=1, error=error)[0]
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
    """Stiffness by joint along the samples of a motion.

    Parameters
    ----------
    messages : sequence of StiffnessMotion
        One, which goes on by its derivatives, or one for each sample.
    joints : iterable of str
        Joints that can choose their stiffness.
    times : ndarray, shape (N,)
        Of the samples [s].

    Returns
    -------
    dict of str to ndarray, shape (N, 3)
        Empty without messages.

    Raises
    ------
    JointNameError, ActuatorError
        As of `stiffness_from_message`; also if the entries are about different joints, or their
        number is wrong.
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
