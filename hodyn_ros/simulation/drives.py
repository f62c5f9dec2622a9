"""What stands between the motors and the link of one joint, as the simulation needs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.errors import SimulationError
from hodyn_ros.model.friction import FrictionLaw

Array = NDArray[np.float64]

SpringLaw = Callable[[float], float]


@dataclass(frozen=True)
class Drive:
    """Motor and spring of a joint, all in coordinates of the joint, behind the gear.

    Attributes
    ----------
    motor_inertia : float
        Reflected inertia of the motor [kg m^2], for a prismatic joint [kg].
    stiffness : float or None
        Of a linear spring [N m/rad] or [N/m]; None if there is none.
    spring : callable or None
        Torque of a nonlinear spring by its deflection, motor minus joint.
    deflection : callable or None
        Inverse of `spring`.
    max_deflection : float
        Largest deflection to either side [rad] or [m].
    damping : float
        Of a damper parallel to the spring [N m s/rad] or [N s/m].
    friction : FrictionLaw or None
        Of the motor, by its velocity.

    A joint without a spring is rigid: its motor moves with it.
    """

    motor_inertia: float = 0.0
    stiffness: float | None = None
    spring: SpringLaw | None = None
    deflection: SpringLaw | None = None
    max_deflection: float = np.inf
    damping: float = 0.0
    friction: FrictionLaw | None = None

    @property
    def is_elastic(self) -> bool:
        """Whether the motor moves on its own."""
        return self.stiffness is not None or self.spring is not None

    def deflection_at(self, torque: float) -> float:
        """Deflection at which the spring carries a torque."""
        if self.stiffness is not None:
            return torque / self.stiffness
        return self.deflection(torque) if self.deflection is not None else 0.0

    def check(self, joint: str) -> None:
        """Refuse what cannot be simulated.

        Raises
        ------
        SimulationError
        """
        if self.is_elastic and not self.motor_inertia > 0.0:
            raise SimulationError(
                f'Joint {joint!r}: the motor behind the spring has the inertia '
                f'{self.motor_inertia}; to be simulated it must be positive [kg m^2].'
            )
        if self.stiffness is not None and not self.stiffness > 0.0:
            raise SimulationError(
                f'Joint {joint!r}: the stiffness is {self.stiffness}, expected more than zero '
                '[N m/rad].'
            )
