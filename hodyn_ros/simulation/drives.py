"""What stands between the motors and the link of one joint, as the simulation needs it.

A joint has m motors with the positions theta_i; each is coupled to the link by the deflection
d_i = theta_i - c_i q. The springs pull at motor i with the torque t_i(d_1 ... d_m), and at the
link with Q = sum of c_i t_i. A series elastic joint has one motor and c = 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.actuators.actuator import Actuator
from hodyn_ros.actuators.rigid import RigidDrive
from hodyn_ros.actuators.sea import SeriesElastic
from hodyn_ros.actuators.springs import LinearSpring
from hodyn_ros.actuators.vsa import VariableStiffness
from hodyn_ros.errors import SimulationError
from hodyn_ros.model.friction import FrictionLaw

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Drive:
    """Motors and springs of a joint, all in coordinates of the joint, behind the gear.

    Attributes
    ----------
    motors : tuple of str
        Names of the motors.
    inertias : tuple of float
        Reflected inertia of each motor [kg m^2], for a prismatic joint [kg].
    is_elastic : bool
        Whether the motors move on their own.
    stiffness : float
        Of a linear spring [N m/rad] or [N/m]; zero if there is none.
    damping : float
        Of a damper parallel to the spring [N m s/rad] or [N s/m].
    frictions : tuple of (FrictionLaw or None)
        Of each motor, by its velocity.
    law : callable or None
        Torques of nonlinear springs on the motors by the deflections, both of shape (m,).
    coupling : tuple of float
        The c_i.
    rest : callable or None
        Deflection at which the spring carries a torque; None if that does not determine it.
    range : tuple of float
        Smallest and largest deflection [rad] or [m].
    """

    motors: tuple[str, ...]
    inertias: tuple[float, ...]
    is_elastic: bool = True
    stiffness: float = 0.0
    damping: float = 0.0
    frictions: tuple[FrictionLaw | None, ...] = (None,)
    law: Callable[[Array], Array] | None = None
    coupling: tuple[float, ...] = (1.0,)
    rest: Callable[[float], float] | None = None
    range: tuple[float, float] = (-np.inf, np.inf)


def drive_of(joint: str, actuator: Actuator) -> Drive:
    """Describe an actuator for the simulation.

    Parameters
    ----------
    joint : str
    actuator : Actuator

    Raises
    ------
    SimulationError
        If it is of a kind that is not simulated.
    """
    motors = tuple(joint + suffix for suffix in actuator.motor_suffixes)
    inertias = actuator.motor_inertias
    if isinstance(actuator, RigidDrive):
        return Drive(motors, inertias, False, frictions=(actuator.friction,))
    if isinstance(actuator, SeriesElastic):
        spring = actuator.spring
        is_linear = type(spring) is LinearSpring
        return Drive(
            motors,
            inertias,
            stiffness=spring.stiffness if isinstance(spring, LinearSpring) else 0.0,
            damping=actuator.damping,
            frictions=(actuator.friction,),
            law=None if is_linear else lambda d: spring.derivatives(d, 0)[..., 0],
            rest=lambda torque: float(spring.deflection(np.asarray(torque))),
            range=spring.range,
        )
    if isinstance(actuator, VariableStiffness):
        friction, model = actuator.friction, actuator.model
        return Drive(
            motors,
            inertias,
            frictions=friction if isinstance(friction, tuple) else (friction, friction),
            law=lambda d: model.series(d[:, None]).motor_effort[:, 0],
            coupling=model.link_coupling,
        )
    raise SimulationError(
        f'Joint {joint!r}: an actuator of type {type(actuator).__name__} is not simulated, '
        'expected RigidDrive, SeriesElastic or VariableStiffness.'
    )
