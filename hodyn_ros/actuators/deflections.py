"""Deflection of the spring that each motor drives; with two motors a joint has two of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.robot import MotorMotion

Array = NDArray[np.float64]


def spring_deflections(actuators: Actuators, motors: MotorMotion) -> Array:
    """Deflections of the springs: positions of the motors less those of their joints.

    The deflection of a joint with two motors, `MotorMotion.deflection`, is the mean of both: with
    a torque of zero it is zero, however far the motors stretch the springs against each other.

    Parameters
    ----------
    actuators : Actuators
    motors : MotorMotion

    Returns
    -------
    ndarray, shape (..., R, m)
        In the order of `Actuators.motor_names`, with all derivatives [rad] or [m]. Zero for rigid
        joints, and for a motor that does not turn with the joint, such as that of a pivot.
    """
    deflection: Array = motors.deflection[..., actuators.joint_of_motor]
    for item in actuators.others:
        turning = np.array(item.actuator.turns_with_joint)
        if len(turning) == 1 and turning[0]:
            continue
        own = motors.position[..., item.motors]
        # The deflection of the joint is that of the mean, see `Actuator.deflection`.
        rest = own - own[..., turning].mean(axis=-1, keepdims=True) if turning.any() else own
        deflection[..., item.motors] = np.where(
            turning, deflection[..., item.motors] + rest, 0.0
        )
    return deflection
