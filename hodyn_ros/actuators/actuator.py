"""What every actuator of a joint has in common, and the rigid drive, which has nothing else.

A series is an array whose last axis is the order of the derivative: entry k is the k-th time
derivative of a scalar, here of one joint. Motor positions, torques and inertias are reflected to
the joint: behind the gear, where the spring sees them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.checks import checked_number, first_not_finite
from hodyn_ros.errors import ActuatorError, DeflectionError, MotionError
from hodyn_ros.model.friction import FrictionLaw

Array = NDArray[np.float64]

# So many numbers are quicker asked one by one than with two calls of NumPy.
_FEW = 64


class Motors(NamedTuple):
    """Motion and torque of the m motors of one joint."""

    position: Array
    """Series of the positions, shape (..., m, R) [rad] or [m]."""
    torque: Array
    """Series of the torques, shape (..., m, T) [N m] or [N]; T = R - 2, or 0 if that is less."""


class Actuator(ABC):
    """What moves one joint; derive from it for an actuator of one's own.

    Actuators are immutable. All arrays may have leading axes.
    """

    motor_suffixes: tuple[str, ...] = ('',)
    """What the name of each motor adds to the name of the joint."""

    needs_stiffness: bool = False
    """Whether the stiffness of the joint is a second output that must be given."""

    @property
    @abstractmethod
    def motor_inertias(self) -> tuple[float, ...]:
        """Reflected inertia of each motor [kg m^2] or [kg]."""

    @property
    def turns_with_joint(self) -> tuple[bool, ...]:
        """Whether each motor drives the joint through a spring; one that sets a pivot does not."""
        return (True,) * len(self.motor_suffixes)

    @property
    def needs_times(self) -> bool:
        """Whether the motion of the motor depends on the past of the joint, not on one sample."""
        return False

    @abstractmethod
    def motors(self, q: Array, effort: Array, stiffness: Array | None = None) -> Motors:
        """Motion and torque of the motors that make the joint move so.

        Parameters
        ----------
        q : ndarray, shape (..., K)
            Series of the joint position [rad] or [m].
        effort : ndarray, shape (..., E)
            Series of the joint torque [N m] or [N], E = K - 2 as from `inverse_dynamics`.
        stiffness : ndarray, shape (..., S), optional
            Series of the joint stiffness [N m/rad] or [N/m], for actuators that can choose it.

        Returns
        -------
        Motors
            With as many orders R as the input determines.

        Raises
        ------
        DeflectionError
            If the springs cannot have the torque or stiffness.
        ActuatorError
            If the input does not suit the actuator.
        """

    def deflection(self, q: Array, motors: Motors) -> Array:
        """Deflection (..., R) of the joint's elasticity, from the motors and the joint (..., K).

        It is the mean position of the motors that turn with the joint, see `turns_with_joint`,
        less that of the joint.
        """
        turning = np.flatnonzero(self.turns_with_joint)
        deflection: Array = motors.position[..., turning, :].mean(axis=-2)
        return deflection - q[..., : deflection.shape[-1]]


@dataclass(frozen=True)
class RigidDrive(Actuator):
    """Motor and joint are one: theta = q, tau = Q + B q2d + friction(qd).

    Attributes
    ----------
    motor_inertia : float
        Inertia B of the motor as the joint sees it: gear ratio squared times rotor inertia
        [kg m^2] or [kg], not negative.
    friction : FrictionLaw, optional
        Friction of the motor, beside that of the model, which is part of Q.
    """

    motor_inertia: float = 0.0
    friction: FrictionLaw | None = None

    def __post_init__(self) -> None:
        inertia = checked_number(
            'RigidDrive: motor_inertia', self.motor_inertia, ActuatorError, least=0.0
        )
        object.__setattr__(self, 'motor_inertia', inertia)
        check_friction('RigidDrive', self.friction)

    @property
    def motor_inertias(self) -> tuple[float, ...]:
        """Reflected inertia of the motor [kg m^2] or [kg]."""
        return (self.motor_inertia,)

    def motors(self, q: Array, effort: Array, stiffness: Array | None = None) -> Motors:
        """Motion and torque of the motor; see `Actuator.motors`. R = K."""
        q, effort = np.asarray(q, dtype=np.float64), np.asarray(effort, dtype=np.float64)
        position = q[..., : min(q.shape[-1], effort.shape[-1] + 2)]
        with np.errstate(over='ignore', invalid='ignore'):
            torque = motor_torque(self.motor_inertia, self.friction, position, effort)
        motors = Motors(position[..., None, :], torque[..., None, :])
        return checked_finite(self, motors, q=q, effort=effort)


def motor_torque(
    inertia: float, friction: FrictionLaw | None, position: Array, effort: Array
) -> Array:
    """Torque (..., R - 2) of a motor: inertia * acceleration + friction(velocity) + load.

    Its position has R orders; the load is the effort, of the spring or of the joint.
    """
    T = max(position.shape[-1] - 2, 0)
    torque: Array = inertia * position[..., 2:] + effort[..., :T]
    if friction is not None and T:
        torque = torque + friction.effort(position[..., 1:-1])
    return torque


def is_finite(*arrays: Array) -> bool:
    """Whether arrays hold finite numbers only."""
    return all(
        all(map(math.isfinite, array.ravel().tolist()))
        if array.size <= _FEW
        else bool(np.isfinite(array).all())
        for array in arrays
    )


def checked_finite(actuator: Actuator, motors: Motors, **given: Array) -> Motors:
    """Motors of one joint, refused unless they are finite: powers and quotients may overflow.

    They follow from series (..., K) that are given by name: a `MotionError` if these are not
    finite, a `DeflectionError` if the springs are the cause, and else an `ActuatorError`.
    """
    if is_finite(*motors):
        return motors
    for name, values in given.items():
        index = first_not_finite(values)
        if index is not None:
            raise MotionError(
                f'The {name} is {values[index]} at {index}, expected finite numbers.'
            )
    is_spring = not is_finite(motors.position)
    what, wrong = ('position', motors.position) if is_spring else ('torque', motors.torque)
    *where, motor, order = first_not_finite(wrong) or ()
    sample, batch = tuple(where), wrong.shape[:-2]
    derivative = f' (derivative {order})' if order else ''
    at = f' in sample {sample}' if sample else ''
    causes = ' and '.join(
        f'{name} {_short(np.broadcast_to(values, (*batch, values.shape[-1]))[sample])}'
        for name, values in given.items()
    )
    text = repr(actuator)
    text = text if len(text) <= 200 else f'{text[:200]}...'  # without all of a long table
    message = (
        f'the {what} of motor {motor + 1}{derivative}{at} is {wrong[(*sample, motor, order)]}, '
        f'with {causes} (and derivatives) for {text}. These are out of all proportion; expected '
    )
    if is_spring:
        raise DeflectionError(f'{message}smaller ones, or springs that fit them.', sample=sample)
    raise ActuatorError(f'{message}a slower motion, or a smaller inertia or friction.')


def _short(series: Array) -> str:
    return '[' + ', '.join(f'{value:.6g}' for value in series) + ']'


def check_friction(owner: str, friction: object) -> None:
    """Refuse what is neither a friction law nor None, with an `ActuatorError`."""
    if friction is not None and not isinstance(friction, FrictionLaw):
        raise ActuatorError(
            f'{owner}: friction is {friction!r}, expected a friction law such as '
            'friction.Viscous(0.1), or None.'
        )
