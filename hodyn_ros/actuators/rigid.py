"""A drive without elasticity: the motor moves as the joint does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.actuators.actuator import (
    Actuator,
    Motors,
    checked_friction,
    checked_number,
    motor_torque,
)
from hodyn_ros.actuators.finite import finite_motors
from hodyn_ros.model.friction import FrictionLaw

Array = NDArray[np.float64]


@dataclass(frozen=True)
class RigidDrive(Actuator):
    """Motor and joint are one: theta = q, tau = Q + B q2d + friction(qd).

    Attributes
    ----------
    motor_inertia : float
        Inertia B of the motor as the joint sees it: gear ratio squared times rotor inertia
        [kg m^2] or [kg].
    friction : FrictionLaw, optional
        Friction of the motor, beside that of the model, which is part of Q.

    Raises
    ------
    ActuatorError
        If the inertia is negative or not finite, or the friction is no friction law.
    """

    motor_inertia: float = 0.0
    friction: FrictionLaw | None = None

    def __post_init__(self) -> None:
        inertia = checked_number('RigidDrive', 'motor_inertia', self.motor_inertia, positive=False)
        object.__setattr__(self, 'motor_inertia', inertia)
        checked_friction('RigidDrive', self.friction)

    @property
    def motor_inertias(self) -> tuple[float, ...]:
        """Reflected inertia of the motor [kg m^2] or [kg]."""
        return (self.motor_inertia,)

    def motors(self, q: Array, effort: Array, stiffness: Array | None = None) -> Motors:
        """Motion and torque of the motor; see `Actuator.motors`. R = K.

        Raises
        ------
        MotionError
            If what is given is not finite.
        ActuatorError
            If the motor torque is too large to compute with.
        """
        q, effort = np.asarray(q, dtype=np.float64), np.asarray(effort, dtype=np.float64)
        R = min(q.shape[-1], effort.shape[-1] + 2)
        position = q[..., :R]
        with np.errstate(over='ignore', invalid='ignore'):
            torque = motor_torque(self.motor_inertia, self.friction, position, effort)
        motors = Motors(position[..., None, :], torque[..., None, :])
        return finite_motors(self, motors, q=q, effort=effort)
