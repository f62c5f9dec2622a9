"""What every actuator of a joint has in common, and the rigid drive, which has nothing else.

A series is an array whose last axis is the order of the derivative: entry k is the k-th time
derivative of a scalar, here of one joint. Motor positions, torques and inertias are reflected to
the joint: behind the gear, where the spring sees them.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import finite_array, first_not_finite, set_checked
from hodyn_ros.errors import ActuatorError, DeflectionError, MotionError
from hodyn_ros.model.friction import FrictionLaw
from hodyn_ros.typing import Array

if TYPE_CHECKING:
    from hodyn_ros.model.robot import RobotModel

# So many numbers are quicker asked one by one than with two calls of NumPy.
_FEW = 64


_ANGULAR_AND_LINEAR = (('N m/rad', 'N/m'), ('kg m^2', 'kg'), ('N m', 'N'), ('rad', 'm'))


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
        set_checked(self, ActuatorError, 'motor_inertia', least=0.0)
        check_friction('RigidDrive', self.friction)

    @property
    def motor_inertias(self) -> tuple[float, ...]:
        """Reflected inertia of the motor [kg m^2] or [kg]."""
        return (self.motor_inertia,)

    def motors(self, q: Array, effort: Array, stiffness: Array | None = None) -> Motors:
        """Motion and torque of the motor; see `Actuator.motors`. R = min(K, E + 2)."""
        q, effort = series_of('q', q), series_of('effort', effort)
        position = q[..., None, : min(q.shape[-1], effort.shape[-1] + 2)]
        return motors_at(self, position, effort[..., None, :], q=q, effort=effort)


def series_of(name: str, value: ArrayLike) -> Array:
    """Series (..., K) of finite numbers, K >= 1.

    Raises
    ------
    MotionError
        If it is none; the message begins with the name.
    """
    found = finite_array(name, value, MotionError)
    if found.ndim == 0 or found.shape[-1] == 0:
        raise MotionError(
            f'{name} has shape {found.shape}, expected (..., K): a last axis with the value and '
            'its time derivatives.'
        )
    return found


def motors_at(actuator: Any, position: Array, load: Array, **given: Array) -> Motors:
    """Motors at positions (..., m, R) with the torques that inertias, friction and loads need.

    Loads (..., m, E) are the efforts of the springs or of the joint; what is given by name is what
    errors name as their cause, see `checked_finite`.

    Parameters
    ----------
    actuator : Actuator
        One with an attribute friction.
    position : ndarray, shape (..., m, R)
        Series of the motor positions [rad] or [m].
    load : ndarray, shape (..., m, >= R-2)
        [N m] or [N]
    **given : ndarray, shape (..., K)

    Returns
    -------
    Motors
        T = R - 2, or 0 if that is less.

    Raises
    ------
    DeflectionError, ActuatorError
        See `checked_finite`.
    """
    T = max(position.shape[-1] - 2, 0)
    with np.errstate(over='ignore', invalid='ignore'):
        inertias = np.array(actuator.motor_inertias)[:, None]
        torque = inertias * position[..., 2:] + load[..., :T]
        for i, law in enumerate(friction_laws(actuator)):
            if law is not None and T:
                torque[..., i, :] += law.effort(position[..., i, 1:-1])
    return checked_finite(actuator, Motors(position, torque), **given)


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

    They follow from finite series (..., K) that are given by name. A `DeflectionError` is raised
    if the springs are the cause, and else an `ActuatorError`.
    """
    if is_finite(*motors):
        return motors
    is_spring = not is_finite(motors.position)
    what, wrong = ('position', motors.position) if is_spring else ('torque', motors.torque)
    *where, motor, order = first_not_finite(wrong) or ()
    sample, batch = tuple(where), wrong.shape[:-2]
    derivative = f' (derivative {order})' if order else ''
    at = f' in sample {sample}' if sample else ''
    causes = ' and '.join(
        f'{name} {np.broadcast_to(values, (*batch, values.shape[-1]))[sample].tolist()}'
        for name, values in given.items()
    )
    text = repr(actuator)
    text = text if len(text) <= 200 else f'{text[:200]}...'  # without all of a long table
    message = (
        f'the {what} of motor {motor + 1}{derivative}{at} is {wrong[(*sample, motor, order)]}, '
        f'with {causes} (and derivatives) for {text}. These are out of all proportion; expected '
    )
    if is_spring:
        raise DeflectionError(
            f'{message}smaller ones, or springs that fit them.', sample=sample
        )
    raise ActuatorError(f'{message}a slower motion, or a smaller inertia or friction.')


def friction_laws(actuator: Any) -> tuple[FrictionLaw | None, ...]:
    """Friction of each motor of a rigid drive, a series elastic one or of variable stiffness."""
    laws = actuator.friction
    return laws if isinstance(laws, tuple) else (laws,)


def check_friction(owner: str, friction: object) -> None:
    """Refusal of what is neither a friction law nor None, with an `ActuatorError`."""
    if friction is not None and not isinstance(friction, FrictionLaw):
        raise ActuatorError(
            f'{owner}: friction is {friction!r}, expected a friction law such as '
            'friction.Viscous(0.1), or None.'
        )


@contextmanager
def of_joint(model: RobotModel, joint: int, beginning: str | None = None) -> Iterator[None]:
    """Block whose errors get the name and the units of a joint; overflow inside does not warn.

    Parameters
    ----------
    model : RobotModel
    joint : int
        Index of the joint.
    beginning : str, optional
        Of the messages; by default the name of the joint.

    Raises
    ------
    DeflectionError, ActuatorError, MotionError
        Of the same kind as those raised inside; a `DeflectionError` gets the joint as attribute.
    """
    try:
        # Overflow is found in what comes out, and told in words.
        with np.errstate(over='ignore', invalid='ignore', divide='ignore'):
            yield
    except (ActuatorError, MotionError) as error:
        name = model.joint_names[joint]
        start = f'Joint {name!r}: ' if beginning is None else beginning
        message = start + in_units_of(model, joint, str(error))
        if isinstance(error, DeflectionError):
            raise DeflectionError(message, joint=name, sample=error.sample) from None
        raise type(error)(message) from None


def in_units_of(model: RobotModel, joint: int, text: str) -> str:
    """Text in the units of a joint; springs speak of angles, not knowing what they drive.

    For prismatic joints N m becomes N, rad m and kg m^2 kg.
    """
    if model.joint_types[joint] != 'prismatic':
        return text
    for angular, linear in _ANGULAR_AND_LINEAR:
        text = re.sub(rf'(?<!\w){re.escape(angular)}(?!\w)', linear, text)
    return text
