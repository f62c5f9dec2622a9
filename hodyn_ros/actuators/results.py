"""Motions and torques of all motors of a robot are refused unless they are finite."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.finite import (
    at_sample,
    deflection_error,
    first_infinite,
    of_derivative,
    torque_error,
)

Array = NDArray[np.float64]


def check_motors(
    actuators: Actuators,
    effort: Array,
    stiffness: Mapping[int, Array],
    position: Array,
    torque: Array,
    deflection: Array,
) -> None:
    """Refuse motions and torques of motors that are not finite.

    Parameters
    ----------
    actuators : Actuators
    effort : ndarray, shape (..., E, n)
        Finite.
    stiffness : mapping of joint index to ndarray, shape (..., S)
    position, torque, deflection : ndarray
        See `MotorMotion`.

    Raises
    ------
    DeflectionError
        If a spring is.
    ActuatorError
        If inertia or friction of a motor is.
    """
    for what, array in (('deflection', deflection), ('motor position', position)):
        if not np.isfinite(array).all():
            *sample, order, column = first_infinite(array)
            joint = column if what == 'deflection' else int(actuators.joint_of_motor[column])
            batch = array.shape[:-2]
            causes = [('effort', np.broadcast_to(effort[..., joint], (*batch, effort.shape[-2])))]
            if joint in stiffness:
                series = stiffness[joint]
                causes.append(('stiffness', np.broadcast_to(series, (*batch, series.shape[-1]))))
            item = actuators.driven[joint]
            raise deflection_error(
                item.actuator,
                f'{what}{of_derivative(order)}{at_sample(sample)} is '
                f'{array[(*sample, order, column)]}',
                {name: series[tuple(sample)] for name, series in causes},
                tuple(sample),
                item.name,
            )
    if not np.isfinite(torque).all():
        *sample, order, motor = first_infinite(torque)
        item = actuators.driven[int(actuators.joint_of_motor[motor])]
        raise torque_error(
            item.actuator,
            motor - item.motors.start,
            f'torque of motor {actuators.motor_names[motor]!r}{of_derivative(order)}'
            f'{at_sample(sample)} is {torque[(*sample, order, motor)]}',
            position[..., motor][tuple(sample)][1:],
            item.name,
        )
