"""Series elastic actuators: a motor that drives its joint through a spring.

With the position q of the joint, theta of the motor and the joint torque Q:
Q = f(theta - q) + D (thetad - qd) and tau = B theta2d + Q + friction(thetad). The joint motion and
Q with its derivatives, from inverse dynamics, determine the motor; the spring must not move an
inertia of its own. Source: Palli, Melchiorri and De Luca 2008, "On the feedback linearization of
robots with variable joint stiffness", for the undamped joint as the special case of a constant
stiffness; De Luca and Book, "Robots with Flexible Elements", Handbook of Robotics.
"""

from __future__ import annotations

import reprlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.actuators.actuator import (
    Actuator,
    Motors,
    checked_friction,
    checked_number,
    motor_torque,
)
from hodyn_ros.actuators.damped import (
    deflection_from_state,
    follow_torque,
    next_deflection,
    slow_deflection,
)
from hodyn_ros.actuators.finite import finite_motors
from hodyn_ros.actuators.springs import LinearSpring, Spring
from hodyn_ros.errors import ActuatorError, MotionError
from hodyn_ros.model.friction import FrictionLaw

Array = NDArray[np.float64]

_LARGEST_DEFLECTION = 100.0  # rad or m, far beyond that of any spring


@dataclass(frozen=True)
class SeriesElastic(Actuator):
    """A motor, a spring and perhaps a damper beside it.

    Attributes
    ----------
    spring : Spring
        Given as a number, it is the stiffness of a linear spring [N m/rad] or [N/m].
    motor_inertia : float
        Inertia B of the motor as the spring sees it: gear ratio squared times rotor inertia
        [kg m^2] or [kg].
    damping : float
        D [N m s/rad] or [N s/m]. Without it, the motion of the motor is algebraic in that of the
        joint; with it, the deflection follows a differential equation of its own, and
        `motors_along` or `next_deflection` take the place of `motors`.
    friction : FrictionLaw, optional
        Friction of the motor, in terms of its velocity behind the gear.

    Raises
    ------
    ActuatorError
        If the spring is no spring or a parameter is not positive (the damping may be zero).
    """

    spring: Spring
    motor_inertia: float
    damping: float = 0.0
    friction: FrictionLaw | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.spring, Spring):
            stiffness = checked_number('SeriesElastic', 'spring', self.spring)
            object.__setattr__(self, 'spring', LinearSpring(stiffness))
        inertia = checked_number('SeriesElastic', 'motor_inertia', self.motor_inertia)
        damping = checked_number('SeriesElastic', 'damping', self.damping, positive=False)
        object.__setattr__(self, 'motor_inertia', inertia)
        object.__setattr__(self, 'damping', damping)
        checked_friction('SeriesElastic', self.friction)

    @property
    def motor_inertias(self) -> tuple[float, ...]:
        """Reflected inertia of the motor [kg m^2] or [kg]."""
        return (self.motor_inertia,)

    @property
    def needs_times(self) -> bool:
        """Whether there is a damper, so that the motor depends on the past of the joint."""
        return self.damping > 0.0

    def motors(self, q: Array, effort: Array, stiffness: Array | None = None) -> Motors:
        """Motion and torque of the motor; see `Actuator.motors`. R = E, for joints without damper.

        Raises
        ------
        MotionError
            If what is given is not finite.
        DeflectionError
            If the spring cannot have a torque, or its derivatives are too large to compute with.
        ActuatorError
            If the joint has a damper, or a motor torque is too large to compute with.
        """
        if self.needs_times:
            raise ActuatorError(
                f'The deflection of a joint with damping ({self.damping}) follows a differential '
                'equation; expected a motion with times: use motors_along, or next_deflection '
                'from sample to sample.'
            )
        q, effort = np.asarray(q, dtype=np.float64), np.asarray(effort, dtype=np.float64)
        effort = effort[..., : q.shape[-1]]
        with np.errstate(over='ignore', invalid='ignore', divide='ignore'):
            motors = self.motors_at(q, effort, self.spring.deflection_series(effort))
        return finite_motors(self, motors, q=q, effort=effort)

    def motors_at(self, q: Array, effort: Array, deflection: Array) -> Motors:
        """Motion and torque of the motor at a known deflection.

        Parameters
        ----------
        q : ndarray, shape (..., K)
        effort : ndarray, shape (..., E)
        deflection : ndarray, shape (..., R)
            R <= K and R <= E + 2.

        Returns
        -------
        Motors
        """
        position = q[..., : deflection.shape[-1]] + deflection
        torque = motor_torque(self.motor_inertia, self.friction, position, effort)
        return Motors(position[..., None, :], torque[..., None, :])

    def motors_along(
        self, times: ArrayLike, q: Array, effort: Array, initial_deflection: float | None = None
    ) -> Motors:
        """Motion and torque of the motor along a sampled motion, with or without a damper.

        Parameters
        ----------
        times : array-like, shape (N,)
            Strictly increasing [s].
        q : ndarray, shape (N, K)
        effort : ndarray, shape (N, E)
        initial_deflection : float, optional
            See `deflection_along`.

        Returns
        -------
        Motors
            R = E + 1 with a damper, E without.

        Raises
        ------
        DeflectionError, ActuatorError, MotionError
            See `deflection_along`.
        """
        q, effort = np.asarray(q, dtype=np.float64), np.asarray(effort, dtype=np.float64)
        with np.errstate(over='ignore', invalid='ignore', divide='ignore'):
            deflection = self.deflection_along(times, effort, initial_deflection)
            motors = self.motors_at(q, effort, deflection[..., : q.shape[-1]])
        return finite_motors(self, motors, q=q, effort=effort)

    def deflection_along(
        self, times: ArrayLike, effort: Array, initial_deflection: float | None = None
    ) -> Array:
        """Series of the deflection along a sampled joint torque.

        With a damper it satisfies Q = f(delta) + D deltad and its derivatives at every sample to
        rounding, and between samples an implicit formula of order 2 E - 1 (for E = 3, five) that
        is stable for all steps. Steps are divided, with Q interpolated from its derivatives at
        both ends, until each errs by less than about a millionth of the largest deflection.

        Parameters
        ----------
        times : array-like, shape (N,)
            Strictly increasing [s].
        effort : ndarray, shape (N, E)
        initial_deflection : float, optional
            At the first time [rad] or [m], for a joint with a damper. By default that of the slow
            motion, as if the torque had varied smoothly before, see `first_deflection`.

        Returns
        -------
        ndarray, shape (N, R)
            R = E + 1 with a damper, E without.

        Raises
        ------
        DeflectionError
            If the spring cannot have a torque, or a deflection leaves its range.
        MotionError
            If the times do not increase or do not fit.
        ActuatorError
            If no solution is found.
        """
        effort = np.asarray(effort, dtype=np.float64)
        if not self.needs_times:
            return self.spring.deflection_series(effort)
        instants = checked_times(times, effort.shape[:-1])
        first = self.first_deflection(effort[0], initial_deflection)
        return follow_torque(self.spring, self.damping, instants, effort, first)

    def first_deflection(self, effort: Array, deflection: float | None = None) -> Array:
        """Series of the deflection at the beginning of a motion.

        Parameters
        ----------
        effort : ndarray, shape (E,)
        deflection : float, optional
            The deflection, if it is known [rad] or [m]. By default that of the slow motion: its
            derivative of order E is taken as zero, which is exact at rest and otherwise wrong by
            about (D / f')^E delta^(E), an error that decays within a few D / f'.

        Returns
        -------
        ndarray, shape (R,)
            R = E + 1 with a damper, E without.

        Raises
        ------
        DeflectionError
            If the spring cannot have it.
        ActuatorError
            If it is no finite number.
        """
        if not self.needs_times:
            return self.spring.deflection_series(effort)
        if deflection is None:
            return slow_deflection(self.spring, self.damping, effort)
        deflection = checked_initial(deflection)
        return deflection_from_state(self.spring, self.damping, deflection, effort)

    def next_deflection(self, before: Array, effort: Array, time_step: float) -> Array:
        """Series of the deflection one sample later.

        Parameters
        ----------
        before : ndarray, shape (R,)
            Series of the deflection at the sample before.
        effort : ndarray, shape (E,)
            Series of the joint torque now.
        time_step : float
            Since the sample before [s].

        Returns
        -------
        ndarray, shape (R,)

        Raises
        ------
        DeflectionError, MotionError, ActuatorError
            See `deflection_along`.
        """
        if not self.needs_times:
            return self.spring.deflection_series(effort)
        checked_times((0.0, time_step), (2,))
        return next_deflection(self.spring, self.damping, time_step, effort, before)


def checked_initial(deflection: object, unit: str = 'rad or m') -> float:
    """Refuse an initial deflection unless it is a number of a size that a spring may have.

    Raises
    ------
    ActuatorError
    """
    is_number = isinstance(deflection, (int, float, np.integer, np.floating))
    size = np.nan if isinstance(deflection, bool) or not is_number else abs(deflection)  # type: ignore[arg-type]
    if not size <= _LARGEST_DEFLECTION:  # written such that NaN is refused too
        raise ActuatorError(
            f'The initial deflection is {reprlib.repr(deflection)}, expected a number from '
            f'-{_LARGEST_DEFLECTION:g} to {_LARGEST_DEFLECTION:g} [{unit}].'
        )
    return float(deflection)  # type: ignore[arg-type]


def checked_times(times: ArrayLike, batch: tuple[int, ...]) -> Array:
    """Refuse times unless there is one for each sample and they increase.

    Parameters
    ----------
    times : array-like, shape (N,)
    batch : tuple of int
        Leading axes of what was sampled: (N,).

    Returns
    -------
    ndarray, shape (N,)

    Raises
    ------
    MotionError
    """
    try:
        instants = np.asarray(times, dtype=np.float64)
    except (TypeError, ValueError):
        instants = np.array(np.nan)
    if instants.ndim != 1 or instants.shape != batch or not instants.size:
        raise MotionError(
            f'The times have shape {instants.shape} and the samples {batch}, expected one time '
            'for each sample along one axis.'
        )
    steps = np.diff(instants)
    if not (np.all(np.isfinite(instants)) and np.all(steps > 0.0)):
        wrong = int(np.argmin(steps > 0.0)) if steps.size else 0
        raise MotionError(
            f'The times must be finite and increase strictly, but {instants[wrong]} s is followed '
            f'by {instants[min(wrong + 1, instants.size - 1)]} s (sample {wrong}).'
        )
    return instants
