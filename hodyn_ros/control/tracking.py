"""The recommended law for robots with elastic joints: full state feedback that bears wrong models.

It is a cascade in closed form. Computed torque asks for the spring torque that the links need, and
a loop of the spring torque provides it. With e = q_d - q, eQ = Q_d - r - Q and c = B / K,

    tau = tau_d - r - r_m + (M + B) V + w^2 c D M e' + c (w^2 + 2 w D) eQ + c (D + 2 w) eQ',
    V = w^2 e + 2 w e'.

If the model is exact, the error obeys (s^2 + N2 s + N) (s + w)^2 e = 0: N = M^-1 K (1 + B^-1 M) is
the robot's own matrix of free resonances, which stay where they are and get the damping
N2 = M^-1 D M. The rigid motion gets the poles -w, -w. One number is chosen, w. The damping
follows: D_j = min(1.4 W_j, 3 w) max(0, 1 - (2 / pi) W_j T), with the resonance W_j of each joint
and the sample time T. A rigid joint is the case c = 0, its motor part of the link. Torques that
the model lacks, r and r_m, and all velocities are those of `StateObserver`.

The feed-forward of flatness, Q_d, Q_d' and tau_d, is that of De Luca and Book, "Robots with
flexible elements", Springer Handbook of Robotics; in the limit of stiff springs the law is the
computed torque of a rigid robot.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.control.controller import warm_up
from hodyn_ros.control.guards import Guards
from hodyn_ros.control.law import ControlWarning
from hodyn_ros.control.margins import ControllerWithMargins, Margins, noise_rate
from hodyn_ros.control.observer import StateObserver
from hodyn_ros.control.observer_controller import GUARDS
from hodyn_ros.errors import ControlError

if TYPE_CHECKING:
    from hodyn_ros.codegen.c_source import Code

_MOST_SENSITIVITY, _FREQUENCIES = 3.0, 80
# Largest rate of torques at rest, standard deviation by the torque limit [1/s], and least decay of
# errors by the bandwidth, below which a law is practically undamped.
_MOST_NOISE, _LEAST_DECAY = 5.0, 0.05


class TrackingController(ControllerWithMargins):
    """The recommended law; see the module, and `tracking_controller`.

    A distance from what is wanted at the start goes to zero with at most half of the speeds and a
    third of the torques that the joints can have.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.actuators import Actuators, SeriesElastic
    >>> from hodyn_ros.control import tracking_controller
    >>> drives = Actuators(RobotModel.from_urdf('two_link'), {'elbow': SeriesElastic(2000.0, 0.5)})
    >>> law = tracking_controller(drives, 0.001)
    >>> law.orders, law.estimates, law.state
    (5, True, 'following')
    """

    def __init__(self, actuators: Actuators, sample_period: float, **options: Any) -> None:
        super().__init__(actuators, sample_period, **options)
        self.record.fill(
            {
                'approach_speed': 0.5 * self.record.speed,
                'approach_torque': 1.0 / 3.0,
                'fastest': 0.5 * self.bandwidth,
                'arrived_at': 1e-9,
            }
        )
        self.begin()

    def added_to(self, code: Code) -> Code:
        """Code of the dynamics and of this law; for `generate_code`."""
        from hodyn_ros.control.c_code import with_law

        return with_law(code, self)


def tracking_controller(
    actuators: Actuators,
    sample_period: float,
    *,
    bandwidth: float | None = None,
    torque_limits: ArrayLike | None = None,
    delay: float = 0.0,
    observer: StateObserver | None = None,
    resolution: tuple[ArrayLike, ArrayLike] | None = None,
    guards: Guards | None = GUARDS,
) -> TrackingController:
    """Make the recommended tracking law for a robot; see `ObserverController`.

    Its margins are looked at in the middle of the robot's range, unless joints choose their
    stiffness: then ask for `TrackingController.margins` with the stiffness in use.

    Raises
    ------
    ControlError
        If an argument cannot be used, or the robot would not be stable with a sensitivity of at
        most 3 at this bandwidth; the message names a bandwidth that would do.

    Examples
    --------
    A robot at rest where it is wanted gets the torques that hold it:

    >>> import numpy as np
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.actuators import Actuators, SeriesElastic, motor_motion
    >>> from hodyn_ros.control import tracking_controller
    >>> model = RobotModel.from_urdf('two_link')
    >>> drives = Actuators(model, {'elbow': SeriesElastic(2000.0, 0.5)})
    >>> law, rest = tracking_controller(drives, 0.001), np.zeros((5, 2))
    >>> measured = rest[0], None, motor_motion(drives, rest).position[0], None
    >>> for _ in range(100):
    ...     torque = law.command(rest, *measured)
    >>> torque.round(1)
    array([44.1,  9.8])
    """
    make = partial(
        TrackingController,
        actuators,
        sample_period,
        torque_limits=torque_limits,
        delay=delay,
        resolution=resolution,
        guards=guards,
    )
    law = make(bandwidth=bandwidth, observer=observer)
    warm_up(law.model, law.actuators)
    if law.observer.transmission.is_variable:
        return law
    if bandwidth is None and observer is None and not _is_calm(law):
        calm = _largest(law.bandwidth, lambda w: _is_calm(make(bandwidth=w)))
        law = make(bandwidth=calm or law.bandwidth)
    _check_margins(law, make)
    return law


def _check_margins(
    law: TrackingController, make: Callable[..., TrackingController]
) -> None:
    """Warning of a law that is practically undamped, error about one that is not stable.

    Parameters
    ----------
    law : TrackingController
    make : callable
        Makes the law with another bandwidth, for the message.
    """
    margins = law.margins(frequencies=_FREQUENCIES)
    if _holds(margins):
        if margins.decay < _LEAST_DECAY * law.bandwidth:
            warnings.warn(
                f'What rings on the springs decays at {margins.decay:.2g} 1/s only, with a '
                f'bandwidth of {law.bandwidth:.3g} rad/s: they are too stiff to be damped at this '
                'sample rate. Their own damping, which nobody knows here, has to do it.',
                ControlWarning,
                stacklevel=3,
            )
        return

    def would_do(w: float) -> bool:
        return _holds(make(bandwidth=w).margins(frequencies=_FREQUENCIES))

    best = _largest(law.bandwidth, would_do)
    advice = (
        f'{best:.2g} rad/s would do.'
        if best
        else 'None down to a twentieth of it would do.'
    )
    raise ControlError(
        f'With a bandwidth of {law.bandwidth:.3g} rad/s the robot would not be stable, or not by '
        f'much: its sensitivity would be above {_MOST_SENSITIVITY:g}. {advice}'
    )


def _largest(most: float, holds: Callable[[float], bool]) -> float:
    """Largest bandwidth from a twentieth of some on for which something holds; 0 if none does."""
    least = 0.05 * most
    if not holds(least):
        return 0.0
    for _ in range(6):
        middle = float(np.sqrt(least * most))
        least, most = (middle, most) if holds(middle) else (least, middle)
    return least


def _is_calm(law: TrackingController) -> bool:
    """Whether encoders of the stated resolution leave the torques at rest, or none is stated."""
    if law.resolution is None:
        return True
    return bool((noise_rate(law) <= _MOST_NOISE * law.torque_limits).all())


def _holds(margins: Margins) -> bool:
    """Whether a law is stable with a sensitivity of at most 3, in the middle of the range."""
    return margins.decay > 0.0 and float(margins.sensitivity.max()) <= _MOST_SENSITIVITY
