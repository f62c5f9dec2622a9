"""What must hold while a control law runs, and how a robot is held for which it does not.

The law that holds a robot is proportional and derivative control of its motors with the weight
that the links have where they are measured, and a damper of the springs. It needs no observer and
not their stiffness, and is passive (Tomei 1991, "A simple PD controller for robots with elastic
joints"), so that it also ends what a wrong model has begun. Without the stiffness it gives way:
what is left are the weight, the speed that falls to zero, and dampers, which never push back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import checked_number
from hodyn_ros.control.values import fastest, per_joint
from hodyn_ros.errors import ControlError
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed
from hodyn_ros.typing import Array

QUANTITIES = (
    ('position', 'position_margin'),
    ('velocity', 'velocity_margin'),
    ('tracking error', 'max_tracking_error'),
    ('external torque', 'max_external_torque'),
    ('drive error', 'max_drive_error'),
)
"""What is bounded, and the name of the bound."""

HOLD, FLOAT = 'hold', 'float'
"""What motors do that have come to rest: they are held where they are, or give way."""

BOUNDS = (*(name for _, name in QUANTITIES), 'measurements', 'saturation_time', 'max_gap')
"""What stops a robot: names of bounds, and positions that cannot be true."""
CONTACT = 'max_external_torque'
"""The bound of a robot that has met something."""

# Bounds of torques that are not given, by the largest torque of the motors of a joint.
EXTERNAL, DRIVE = 1.0, 0.5
AT_REST = 0.05  # rad/s, m/s


@dataclass(frozen=True)
class Guards:
    """Bounds of a law, beyond which it stops the robot; numbers for all joints or for each.

    Attributes
    ----------
    max_tracking_error : float or array-like, shape (n,)
        Largest distance from the wanted position [rad, m]; not for laws that give way to forces.
    max_external_torque : float or array-like, shape (n,), optional
        Largest torque on a link that the model lacks [N m, N]; by default that of its motors.
    max_drive_error : float or array-like, shape (n,), optional
        Largest difference between the torque that is commanded and that which moves the motor
        [N m, N], as with a brake that is closed, a drive that is off, friction, another torque
        constant or inertia; by default half of the largest torque.
    velocity_margin : float
        Share of its limit by which a joint may be faster.
    position_margin : float
        How far beyond a limit of its position a joint may be [rad, m].
    violation_samples : int
        Samples one after the other beyond a bound that stop the robot.
    saturation_time : float
        Longest time for which a motor may be at its torque limit, less half of the time for which
        it is not [s].
    max_gap : float
        Longest time without a measurement while the robot is to move [s].
    stop_duration : float
        Time in which the motors come to rest [s].
    reactions : mapping of str to str
        What motors do then, by what has stopped the robot: the name of a bound above, or
        'measurements' for positions that cannot be true. 'hold', the default: they are held where
        they are. 'float': they give way, with the weight of the measured pose and dampers, without
        any stiffness; for robots without variable stiffness.

    Examples
    --------
    >>> from hodyn_ros.control import Guards
    >>> guards = Guards(max_tracking_error=0.05, reactions={'max_external_torque': 'float'})
    >>> guards.floats('max_external_torque'), guards.floats('max_tracking_error')
    (True, False)
    """

    max_tracking_error: ArrayLike = 0.2
    max_external_torque: ArrayLike | None = None
    max_drive_error: ArrayLike | None = None
    velocity_margin: float = 0.2
    position_margin: float = 0.05
    violation_samples: int = 3
    saturation_time: float = 0.2
    max_gap: float = 0.05
    stop_duration: float = 0.1
    reactions: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ('velocity_margin', 'position_margin'):
            checked_number(name, getattr(self, name), ControlError, least=0.0)
        for name in ('saturation_time', 'max_gap', 'stop_duration'):
            checked_number(name, getattr(self, name), ControlError, above=0.0, unit='s')
        checked_number(
            'violation_samples', self.violation_samples, ControlError, least=1, whole=True
        )
        if not isinstance(self.reactions, Mapping):
            raise ControlError(
                f'reactions is {self.reactions!r}, expected a mapping of bounds to '
                f'{HOLD!r} or {FLOAT!r}.'
            )
        for bound, reaction in self.reactions.items():
            if bound not in BOUNDS or reaction not in (HOLD, FLOAT):
                raise ControlError(
                    f'The reaction to {bound!r} is {reaction!r}, expected {HOLD!r} or {FLOAT!r} '
                    f'to one of {listed(BOUNDS)}.'
                )

    def floats(self, bound: str) -> bool:
        """Whether the robot gives way that a bound has stopped.

        Parameters
        ----------
        bound : str
            One of `BOUNDS`; anything else is answered by holding.
        """
        return self.reactions.get(bound) == FLOAT


def bounds_of(
    model: RobotModel, guards: Guards, torque: Array, yields: bool
) -> tuple[Array, Array]:
    """Bounds of all `QUANTITIES` that a law keeps.

    Parameters
    ----------
    model : RobotModel
        Its limits of positions and velocities are bounds with the margins of the guards; a
        velocity limit of zero is none.
    guards : Guards
    torque : ndarray, shape (n,)
        Largest torque of the motors of each joint [N m] or [N]; bounds of torques that are not
        given are by default the whole of it (external torque) and half of it (drive error).
    yields : bool
        Whether the law gives way to forces: then the tracking error has no bound.

    Returns
    -------
    lowest, highest : ndarray, shape (K, n)
        Infinite where there is no bound; a row each of `QUANTITIES`, in their order.

    Raises
    ------
    ControlError
        If a bound of the guards is neither one nor n positive numbers.
    """
    n, limits, margin = model.n_joints, model.limits, guards.position_margin
    external, drive = guards.max_external_torque, guards.max_drive_error
    given = {
        'max_tracking_error': np.inf if yields else guards.max_tracking_error,
        'max_external_torque': EXTERNAL * torque if external is None else external,
        'max_drive_error': DRIVE * torque if drive is None else drive,
    }
    speed = (1.0 + guards.velocity_margin) * fastest(model)
    rows = [speed, *(per_joint(name, x, n, np.inf) for name, x in given.items())]
    return (
        np.vstack((limits.lower - margin, *(-row for row in rows))),
        np.vstack((limits.upper + margin, *rows)),
    )


def beyond(row: int, joint: str, value: float, lowest: float, highest: float) -> str:
    """What is beyond a bound, in words: a row of `QUANTITIES` of a joint."""
    quantity, parameter = QUANTITIES[row]
    return (
        f'The {quantity} of {joint} is {value:.6g}, expected {lowest:.6g} to {highest:.6g} '
        f'({parameter}).'
    )
