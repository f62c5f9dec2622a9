"""Series elastic actuators: a motor that drives its joint through a spring.

Q = f(theta - q) + D (thetad - qd), tau = B theta2d + Q + friction(thetad). Source: Spong 1987,
"Modeling and Control of Elastic Joint Robots"; De Luca and Book, "Robots with Flexible Elements".

A damper beside a linear spring is followed along a slow motion, without memory of the past: of the
equation k x + D x' = Q the solution that has forgotten its beginning is the series

    x = (Q - T Q' + T^2 Q'' - ...) / k,   T = D / k,

which is broken off where the orders of Q end, with an error of about T^E x^(E).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hodyn_ros.actuators.actuator import (
    Actuator,
    Motors,
    check_friction,
    motors_at,
    series_of,
)
from hodyn_ros.actuators.springs import LinearSpring, Spring
from hodyn_ros.checks import set_checked
from hodyn_ros.errors import ActuatorError
from hodyn_ros.model.friction import FrictionLaw
from hodyn_ros.typing import Array


@dataclass(frozen=True)
class SeriesElastic(Actuator):
    """A motor, a spring and perhaps a damper beside it.

    An `ActuatorError` is raised if the spring is no spring, a parameter is not positive (the
    damping may be zero) or a damper is to stand beside a spring that is not linear.

    Attributes
    ----------
    spring : Spring
        Given as a number, it is the stiffness of a linear spring [N m/rad] or [N/m].
    motor_inertia : float
        Inertia B of the motor as the spring sees it: gear ratio squared times rotor inertia
        [kg m^2] or [kg].
    damping : float
        D [N m s/rad] or [N s/m], of a damper beside a linear spring. The deflection is that of a
        slow motion, which changes little within D / k, see the module.
    friction : FrictionLaw, optional
        Friction of the motor, in terms of its velocity behind the gear.
    """

    spring: Spring
    motor_inertia: float
    damping: float = 0.0
    friction: FrictionLaw | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.spring, Spring):
            set_checked(self, ActuatorError, 'spring', above=0.0)
            object.__setattr__(self, 'spring', LinearSpring(float(self.spring)))
        set_checked(self, ActuatorError, 'motor_inertia', above=0.0)
        set_checked(self, ActuatorError, 'damping', least=0.0)
        if self.damping and not isinstance(self.spring, LinearSpring):
            raise ActuatorError(
                f'SeriesElastic: damping is {self.damping} beside a {type(self.spring).__name__}, '
                'expected a damper beside a linear spring: give LinearSpring(stiffness), or '
                'damping=0.'
            )
        check_friction('SeriesElastic', self.friction)

    @property
    def motor_inertias(self) -> tuple[float, ...]:
        """Reflected inertia of the motor [kg m^2] or [kg]."""
        return (self.motor_inertia,)

    def deflection_series(self, torque: Array) -> Array:
        """Deflection and its time derivatives (..., K) along a torque (..., K).

        A `DeflectionError` is raised where the spring cannot have it.
        """
        if self.damping:
            torque = torque.copy()
            for m in reversed(range(torque.shape[-1] - 1)):
                torque[..., m] -= self.damping / self.spring.stiffness * torque[..., m + 1]  # type: ignore[attr-defined]
        return self.spring.deflection_series(torque)

    def motors(self, q: Array, effort: Array, stiffness: Array | None = None) -> Motors:
        """Motion and torque of the motor; see `Actuator.motors`. R = min(K, E)."""
        q, effort = series_of('q', q), series_of('effort', effort)
        R = min(q.shape[-1], effort.shape[-1])
        with np.errstate(over='ignore', invalid='ignore', divide='ignore'):
            position = q[..., :R] + self.deflection_series(effort[..., :R])
        return motors_at(
            self, position[..., None, :], effort[..., None, :], q=q, effort=effort
        )
