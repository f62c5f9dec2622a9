"""Limits of motors and springs, and where the motion of the motors exceeds them.

They are limits of what a motion asks for; that a spring cannot be deflected beyond its range is an
error of its own (`DeflectionError`).
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.actuators.assignment import Actuators, check_joint_names
from hodyn_ros.actuators.deflections import spring_deflections
from hodyn_ros.actuators.robot import MotorMotion
from hodyn_ros.analysis.limits import Violation
from hodyn_ros.errors import ActuatorError, MotionError

Array = NDArray[np.float64]

MOTOR_QUANTITIES = ('motor_velocity', 'motor_torque', 'motor_torque_rate', 'deflection')

# A value that reaches its limit by rounding alone does not exceed it, as in analysis/limits.py.
_ROUNDING = 1e-9


class MotorLimits(NamedTuple):
    """Largest magnitudes; infinite where there is no limit."""

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
    for what, table in (('limits are', given), *_tables(given)):
        if not isinstance(table, Mapping):
            raise ActuatorError(
                f'The {what} {reprlib.repr(table)}, expected a mapping, '
                "{joint: {'motor_torque': 5.0}}."
            )
    check_joint_names(actuators.model, given)
    sizes = (actuators.n_motors,) * 3 + (actuators.model.n_joints,)
    columns = {name: np.full(size, np.inf) for name, size in zip(MOTOR_QUANTITIES, sizes)}
    for item in actuators.driven:
        for quantity, value in given.get(item.name, {}).items():
            if quantity not in columns:
                raise ActuatorError(
                    f'Joint {item.name!r}: the limit {quantity!r} is unknown, expected one of '
                    f'{", ".join(MOTOR_QUANTITIES)}.'
                )
            count = 1 if quantity == 'deflection' else len(item.actuator.motor_suffixes)
            try:
                numbers = np.array(value, dtype=np.float64)
            except (TypeError, ValueError):
                numbers = np.array(np.nan)
            if numbers.shape not in ((), (1,), (count,)) or not np.all(numbers > 0.0):
                raise ActuatorError(
                    f'Joint {item.name!r}: the limit of {quantity} is {value!r}, expected a '
                    f'number above zero{f", or {count} of them" if count > 1 else ""}.'
                )
            where = item.joint if quantity == 'deflection' else item.motors
            columns[quantity][where] = numbers.reshape(-1) if numbers.size > 1 else numbers.item()
    return MotorLimits(**columns)


def _tables(limits: object) -> Iterator[tuple[str, object]]:
    if isinstance(limits, Mapping):
        for name, table in limits.items():
            yield f'limits of joint {name!r} are', table


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
    for name, array in zip(MotorMotion._fields, samples):
        if not np.isfinite(array).all():
            sample, order, column = (int(i) for i in np.argwhere(~np.isfinite(array))[0])
            raise MotionError(
                f'The limits of motors cannot be checked: in sample {sample} the {name} '
                f'(derivative {order}, column {column}) is {array[sample, order, column]}, '
                'expected finite numbers.'
            )
    position, torque, _ = samples
    deflection = _largest_deflections(actuators, MotorMotion(*samples))
    motors, joints = actuators.motor_names, actuators.model.joint_names
    checks: list[tuple[str, Array, int, Sequence[str], Array]] = [
        ('motor_velocity', position, 1, motors, limits.motor_velocity),
        ('motor_torque', torque, 0, motors, limits.motor_torque),
        ('motor_torque_rate', torque, 1, motors, limits.motor_torque_rate),
        ('deflection', deflection, 0, joints, limits.deflection),
    ]
    return tuple(
        violation
        for quantity, series, order, names, limit in checks
        if series.shape[-2] > order
        for violation in _worst(quantity, names, series[:, order], limit)
    )


def _largest_deflections(actuators: Actuators, motion: MotorMotion) -> Array:
    """Deflection (N, 1, n) of the most deflected spring of each joint."""
    own = spring_deflections(actuators, motion)[:, :1]
    if actuators.n_motors == actuators.model.n_joints:
        return own
    result = np.empty((*own.shape[:-1], actuators.model.n_joints))
    for item in actuators.driven:
        springs = own[..., item.motors]
        worst = np.abs(springs).argmax(axis=-1)[..., None]
        result[..., item.joint] = np.take_along_axis(springs, worst, axis=-1)[..., 0]
    return result


def _worst(
    quantity: str, names: Sequence[str], values: Array, limit: Array
) -> Iterator[Violation]:
    """Worst of the values (N, m) in every column that exceeds its limit (m,)."""
    magnitude = np.abs(values)
    slack = _ROUNDING * (np.where(np.isfinite(limit), limit, 0.0) + 1.0)
    for column in np.flatnonzero((magnitude - limit > slack).any(axis=0)).tolist():
        sample = int(magnitude[:, column].argmax())
        value = float(values[sample, column])
        bound = float(np.copysign(limit[column], value))
        yield Violation(quantity, names[column], value, bound, sample)
