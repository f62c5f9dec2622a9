"""What every actuator of a joint has in common: from the joint's motion and torque to its motors.

A series is an array whose last axis is the order of the derivative: entry k is the k-th time
derivative of a scalar, here of one joint. Motor positions, torques and inertias are reflected to
the joint: behind the gear, where the spring sees them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.errors import ActuatorError
from hodyn_ros.model.friction import FrictionLaw

Array = NDArray[np.float64]


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
        """Deflection of the joint's elasticity: the mean motor position minus the joint position.

        The mean is that of the motors that turn with the joint, see `turns_with_joint`.

        Parameters
        ----------
        q : ndarray, shape (..., K)
        motors : Motors

        Returns
        -------
        ndarray, shape (..., R)
        """
        turning = np.flatnonzero(self.turns_with_joint)
        deflection: Array = motors.position[..., turning, :].mean(axis=-2)
        return deflection - q[..., : deflection.shape[-1]]


def motor_torque(
    inertia: float, friction: FrictionLaw | None, position: Array, effort: Array
) -> Array:
    """Torque of a motor, inertia * acceleration + friction(velocity) + load, with derivatives.

    Parameters
    ----------
    inertia : float
        Reflected inertia [kg m^2] or [kg].
    friction : FrictionLaw or None
        In terms of the velocity of the motor, reflected.
    position : ndarray, shape (..., R)
        Series of the motor position.
    effort : ndarray, shape (..., >= R - 2)
        Series of what the motor drives: the torque of the spring or of the joint.

    Returns
    -------
    ndarray, shape (..., T)
        T = R - 2, or 0 if that is less.
    """
    T = max(position.shape[-1] - 2, 0)
    torque: Array = inertia * position[..., 2:] + effort[..., :T]
    if friction is not None and T:
        torque = torque + friction.effort(position[..., 1:-1])
    return torque


def checked_number(
    owner: str, name: str, value: object, *, positive: bool = True, infinite: bool = False
) -> float:
    """Parameter as a float, refused unless it is positive (or, on request, not negative).

    Parameters
    ----------
    owner, name : str
        For the message.
    value : object
    positive : bool
        Whether zero is refused too.
    infinite : bool
        Whether infinity is accepted.

    Returns
    -------
    float

    Raises
    ------
    ActuatorError
    """
    wrong = isinstance(value, (bool, str, bytes))
    try:
        number = np.nan if wrong else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = np.nan
    is_large_enough = number > 0.0 if positive else number >= 0.0
    if not is_large_enough or (np.isinf(number) and not infinite):
        kind = 'number' if infinite else 'finite number'
        bound = 'above zero' if positive else 'that is not negative'
        raise ActuatorError(f'{owner}: {name} is {value!r}, expected a {kind} {bound}.')
    return number


def checked_friction(owner: str, friction: object) -> None:
    """Refuse what is neither a friction law nor None.

    Raises
    ------
    ActuatorError
    """
    if friction is not None and not isinstance(friction, FrictionLaw):
        raise ActuatorError(
            f'{owner}: friction is {friction!r}, expected a friction law such as '
            'friction.Viscous(0.1), or None.'
        )
