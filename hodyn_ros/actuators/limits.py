"""Limits of motors and springs, and where the motion of the motors exceeds them.

They are limits of what a motion asks for; that a spring cannot be deflected beyond its range is an
error of its own (`DeflectionError`).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.actuators.assignment import Actuators, check_mapping
from hodyn_ros.checks import first_not_finite
from hodyn_ros.errors import ActuatorError, MotionError
from hodyn_ros.model.violations import Violation, worst_violations
from hodyn_ros.typing import Array

if TYPE_CHECKING:
    from hodyn_ros.actuators.motors import MotorMotion

MOTOR_QUANTITIES = ('motor_velocity', 'motor_torque', 'motor_torque_rate', 'deflection')


class MotorLimits(NamedTuple):
    """Largest magnitudes of what motors and springs do; infinite where there is no limit."""

    motor_velocity: Array
    """Of the m motors [rad/s] or [m/s]."""
    motor_torque: Array
    """Of the m motors [N m] or [N]."""
    motor_torque_rate: Array
    """Of the m motors [N m/s] or [N/s]."""
    deflection: Array
    """Of every spring of the n joints [rad] or [m]; a joint with two motors has two of them."""


def motor_limits(
    actuators: Actuators, limits: Mapping[str, Mapping[str, ArrayLike]] | None = None
) -> MotorLimits:
    """Limits of all motors and springs from those that are given.

    Parameters
    ----------
    actuators : Actuators
    limits : mapping of joint name to mapping of quantity to limit, optional
        Quantities are those of `MOTOR_QUANTITIES`. For a joint with several motors, the limits of
        its motors are one number for all or one for each.

    Returns
    -------
    MotorLimits

    Raises
    ------
    JointNameError
        If a joint is unknown.
    ActuatorError
        If a quantity is unknown, or a limit is not positive or not one for each motor.
    """
    given = {} if limits is None else limits
    check_mapping('The limits are', given, 'joint names to limits', actuators.model)
    sizes = (actuators.n_motors,) * 3 + (actuators.model.n_joints,)
    columns = {name: np.full(size, np.inf) for name, size in zip(MOTOR_QUANTITIES, sizes)}
    for name, own in given.items():
        check_mapping(f'The limits of joint {name!r} are', own, 'quantities to limits')
        item = actuators.driven[actuators.model.joint_names.index(name)]
        for quantity, value in own.items():
            if quantity not in columns:
                raise ActuatorError(
                    f'Joint {name!r}: the limit {quantity!r} is unknown, expected one of '
                    f'{", ".join(MOTOR_QUANTITIES)}.'
                )
            count = 1 if quantity == 'deflection' else len(item.actuator.motor_suffixes)
            try:
                numbers = np.array(value, dtype=np.float64)
            except (TypeError, ValueError):
                numbers = np.array(np.nan)
            if numbers.shape not in ((), (1,), (count,)) or not np.all(numbers > 0.0):
                raise ActuatorError(
                    f'Joint {name!r}: the limit of {quantity} is {value!r}, expected a '
                    f'number above zero{f", or {count} of them" if count > 1 else ""}.'
                )
            where = item.joint if quantity == 'deflection' else item.motors
            columns[quantity][where] = (
                numbers.reshape(-1) if numbers.size > 1 else numbers.item()
            )
    return MotorLimits(**columns)


def spring_deflections(actuators: Actuators, motors: MotorMotion) -> Array:
    """Deflections of the springs: positions of the motors less those of their joints.

    The deflection of a joint with two motors, `MotorMotion.deflection`, is the mean of both: with
    a torque of zero it is zero, however far the motors stretch the springs against each other.

    Returns
    -------
    ndarray, shape (..., R, m)
        In the order of `Actuators.motor_names`, with all derivatives [rad] or [m]. Zero for rigid
        joints, and for a motor that does not turn with the joint, such as that of a pivot.
    """
    deflection: Array = motors.deflection[..., actuators.joint_of_motor]
    for item in actuators.others:
        turning = np.array(item.actuator.turns_with_joint)
        own = motors.position[..., item.motors]
        # The deflection of the joint is that of the mean, see `Actuator.deflection`.
        rest = (
            own - own[..., turning].mean(axis=-1, keepdims=True) if turning.any() else own
        )
        deflection[..., item.motors] = np.where(
            turning, deflection[..., item.motors] + rest, 0.0
        )
    return deflection


def find_motor_violations(
    actuators: Actuators, limits: MotorLimits, motion: MotorMotion
) -> tuple[Violation, ...]:
    """Find the worst sample of every motor and quantity that exceeds its limit.

    Parameters
    ----------
    actuators : Actuators
    limits : MotorLimits
    motion : MotorMotion
        Of N samples, arrays of shape (N, ..., m), or of one. Quantities of orders that it does not
        have are not checked.

    Returns
    -------
    tuple of Violation
        Ordered by quantity, then by motor or joint. Their `joint_name` is the name of the motor,
        for deflections that of the joint, whose most deflected spring counts.

    Raises
    ------
    MotionError
        If the motion holds NaN or infinite values, of which no limit can be checked.
    """
    N = prod(motion.position.shape[:-2])
    samples = [array.reshape(N, *array.shape[-2:]) for array in motion]
    for name, array in zip(motion._fields, samples):
        where = first_not_finite(array)
        if where is not None:
            sample, order, column = where
            raise MotionError(
                f'The limits of motors cannot be checked: in sample {sample} the {name} '
                f'(derivative {order}, column {column}) is {array[where]}, '
                'expected finite numbers.'
            )
    whole = type(motion)(*samples)
    own = spring_deflections(actuators, whole)[:, 0]
    deflection = whole.deflection[:, :1].copy()
    for item in actuators.driven:
        # Of each joint, the most deflected spring.
        worst = item.motors.start + np.abs(own[:, item.motors]).argmax(axis=1)
        deflection[:, 0, item.joint] = own[np.arange(N), worst]
    motors, joints = actuators.motor_names, actuators.model.joint_names
    found: list[Violation] = []
    for quantity, values, order, names in (
        ('motor_velocity', whole.position, 1, motors),
        ('motor_torque', whole.torque, 0, motors),
        ('motor_torque_rate', whole.torque, 1, motors),
        ('deflection', deflection, 0, joints),
    ):
        if values.shape[1] > order:
            limit = getattr(limits, quantity)
            found += worst_violations(quantity, names, values[:, order], -limit, limit)
    return tuple(found)
