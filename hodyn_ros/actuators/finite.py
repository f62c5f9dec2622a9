"""Results that are no numbers are refused: who commands motors must never get NaN or infinity.

Input is finite, but powers and quotients of it may be too large for floating-point numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.actuators.actuator import Actuator, Motors
from hodyn_ros.errors import ActuatorError, DeflectionError, MotionError

Array = NDArray[np.float64]

# So many numbers are quicker asked one by one than with two calls of NumPy.
_FEW = 64

def is_finite(*arrays: Array) -> bool:
    """Whether arrays hold finite numbers only."""
    return all(
        all(map(math.isfinite, array.ravel().tolist()))
        if array.size <= _FEW
        else bool(np.isfinite(array).all())
        for array in arrays
    )


def finite_motors(actuator: Actuator, motors: Motors, **series: Array | None) -> Motors:
    """Motors of one joint, refused unless they are finite.

    Parameters
    ----------
    actuator : Actuator
    motors : Motors
    **series : ndarray, shape (..., K)
        What they follow from, by its name.

    Returns
    -------
    Motors

    Raises
    ------
    MotionError
        If what is given is not finite.
    DeflectionError
        If the springs are the cause.
    ActuatorError
        If inertia or friction of a motor is.
    """
    if is_finite(*motors):
        return motors
    position, torque = motors
    given = {name: values for name, values in series.items() if values is not None}
    for name, values in given.items():
        if not np.isfinite(values).all():
            index = first_infinite(values)
            raise MotionError(
                f'The {name} is {values[tuple(index)]} at {tuple(index)}, expected finite numbers.'
            )
    if not np.isfinite(position).all():
        *sample, motor, order = first_infinite(position)
        batch = position.shape[:-2]
        raise deflection_error(
            actuator,
            f'position of motor {motor + 1}{of_derivative(order)}{at_sample(sample)} is '
            f'{position[(*sample, motor, order)]}',
            {
                name: np.broadcast_to(values, (*batch, values.shape[-1]))[tuple(sample)]
                for name, values in given.items()
            },
            tuple(sample),
        )
    *sample, motor, order = first_infinite(torque)
    raise torque_error(
        actuator,
        motor,
        f'torque of motor {motor + 1}{of_derivative(order)}{at_sample(sample)} is '
        f'{torque[(*sample, motor, order)]}',
        position[(*sample, motor)][1:],
    )


def deflection_error(
    actuator: Actuator,
    what: str,
    causes: Mapping[str, Array],
    sample: tuple[int, ...],
    joint: str = '',
) -> DeflectionError:
    """Say that springs are the cause; `what` is the quantity and its value."""
    given = ' and '.join(f'{name} {_short(series)}' for name, series in causes.items())
    return DeflectionError(
        f'{_of(joint)}the {what}, with {given} (and derivatives) for {actuator!r}. These are out '
        'of all proportion; expected smaller ones, or springs that fit them.',
        joint,
        sample,
    )


def torque_error(
    actuator: Actuator, motor: int, what: str, rates: Array, joint: str = ''
) -> ActuatorError:
    """Say that a motor is the cause, which has a velocity with the derivatives `rates`."""
    return ActuatorError(
        f'{_of(joint)}the {what}, with velocity {_short(rates)} (and derivatives) of a motor with '
        f'the inertia {actuator.motor_inertias[motor]:.6g}. Expected a slower motion, or a '
        'smaller inertia or friction.'
    )


def first_infinite(array: Array) -> tuple[int, ...]:
    """Index of the first number that is not finite."""
    return tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])


def _of(joint: str) -> str:
    return f'Joint {joint!r}: ' if joint else ''


def of_derivative(order: int) -> str:
    """Name the derivative for a message; nothing for the quantity itself."""
    return f' (derivative {order})' if order else ''


def at_sample(sample: Sequence[int]) -> str:
    """Name the sample for a message; nothing for a single one."""
    return f' in sample {tuple(sample)}' if sample else ''


def _short(series: Array) -> str:
    return '[' + ', '.join(f'{value:.6g}' for value in series) + ']'
