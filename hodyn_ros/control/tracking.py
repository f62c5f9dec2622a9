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
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.motors import MotorMotion, motor_motion
from hodyn_ros.control.controller import friction_of, warm_up
from hodyn_ros.control.guards import Guards
from hodyn_ros.control.kernels import approach, approach_pole, tracking_law
from hodyn_ros.control.law import ControlWarning
from hodyn_ros.control.margins import ControllerWithMargins, Margins, noise_rate
from hodyn_ros.control.observer import StateObserver
from hodyn_ros.control.observer_controller import GUARDS
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.errors import ControlError
from hodyn_ros.typing import Array

if TYPE_CHECKING:
    from hodyn_ros.codegen.c_source import Code

_MOST_SENSITIVITY, _FREQUENCIES = 3.0, 80
# Largest rate of torques at rest, standard deviation by the torque limit [1/s], and least decay of
# errors by the bandwidth, below which a law is practically undamped.
_MOST_NOISE, _LEAST_DECAY = 5.0, 0.05


class TrackingController(ControllerWithMargins):
    """The recommended law; see the module, and `tracking_controller`.

    Attributes
    ----------
    approach_speed : ndarray, shape (n,)
        Largest speed at which a distance from what is wanted at the start goes to zero: half of
        that which the joints can have [rad/s] or [m/s].
    approach_torque : float
        Share of the torque limits that this may take.
    fastest_approach : float
        Largest pole of this [1/s].
    arrived : float
        Distance at which it is over, also of its derivatives [rad/s^k] or [m/s^k].
    """

    approach_torque, arrived = 1.0 / 3.0, 1e-9

    def __init__(self, actuators: Actuators, sample_period: float, **options: Any) -> None:
        super().__init__(actuators, sample_period, **options)
        self._work = np.empty((8, self.model.n_joints))
        self.approach_speed = 0.5 * self.fastest
        self.fastest_approach = 0.5 * self.bandwidth
        self.begin()

    @property
    def _remaining(self) -> Array | None:
        return None if self._departs else self._distance

    def begin(self) -> None:
        """Begin where the robot is, and approach the wanted motion from there.

        The approach takes at most half of the speeds and a third of the torques that the joints
        can have.
        """
        self._begins = self.observer.acting.size > 0
        self._left[:] = 0.0
        self._distance = np.zeros((5, self.model.n_joints))
        self._departs = self._is_far = True

    def added_to(self, code: Code) -> Code:
        """Code of the dynamics and of this law; for `generate_code`."""
        from hodyn_ros.control.c_laws import with_tracking

        numbers = {
            'arrived': self.arrived,
            'fastest': self.fastest_approach,
            'approach_torque': self.approach_torque,
        }
        return with_tracking(code, self, self.approach_speed, numbers)

    def _demand(
        self, desired: Array, stiffness: Mapping[str, ArrayLike] | None
    ) -> tuple[Array, Array | float]:
        observer = self.observer
        t, springs, (links, motors) = (
            observer.transmission,
            observer.springs,
            observer.ahead,
        )
        # Torques act half a sample later than the state for which they are found.
        T, n = self.sample_period, self.model.n_joints
        if self._departs:
            self._departs = False
            self._distance[:2] = desired[:2] - 0.5 * T * desired[1:3] - links[:2]
            inertia = np.diagonal(observer.mass) + t.is_elastic * t.joint_inertia
            self._pole = approach_pole(
                n,
                self.fastest_approach,
                self.approach_speed,
                self.approach_torque * self._limit / inertia,
                self._distance,
            )
            approach(n, 0.5 * T, self._pole, self._distance)
        desired = desired - self._distance
        effort = inverse_dynamics(self.model, desired)
        motion = self._motor_motion(desired, effort, stiffness)
        friction = friction_of(self.actuators.arrays, motion.position[1])
        demand = np.empty(len(t.joint))
        tracking_law(
            n,
            len(t.joint),
            T,
            self.bandwidth,
            t.joint,
            t.is_elastic,
            t.turns,
            t.share,
            t.joint_inertia,
            t.damping,
            self._limit,
            observer.mass,
            springs.stiffness,
            springs.torque,
            springs.rate,
            *observer.measured,
            links,
            motors,
            desired,
            effort,
            motion.torque[0],
            self._work,
            demand,
        )
        if self._is_far:
            self._is_far = approach(n, T, self._pole, self._distance) > self.arrived
            if not self._is_far:
                self._distance[:] = 0.0
        if t.is_variable:
            demand += self._spread(motion.position, motors)
        return demand, friction

    def _motor_motion(
        self, desired: Array, effort: Array, stiffness: Mapping[str, ArrayLike] | None
    ) -> MotorMotion:
        """Wanted motion of the motors, with the nearest stiffness that the springs can have.

        Parameters
        ----------
        desired : ndarray, shape (5, n)
        effort : ndarray, shape (3, n)
            Of the wanted motion.
        stiffness : mapping, optional
            As for `evaluate`.

        Raises
        ------
        DeflectionError
            If no stiffness was given, or the nearest one does not help.
        """
        taken, self._remark = self._followable(stiffness, effort)
        return motor_motion(self._undamped, desired, effort, stiffness=taken)

    def _spread(self, wanted: Array, motors: Array) -> Array:
        """Torques that hold the motors of one joint as far apart as the stiffness asks for.

        Parameters
        ----------
        wanted : ndarray, shape (K, m), K >= 2
            Position and velocity in the first rows.
        motors : ndarray, shape (4, m)
            Estimated.

        Returns
        -------
        ndarray, shape (m,)
            [N m] or [N]; zero for joints with a single motor.
        """
        t, w = self.observer.transmission, self.bandwidth
        error = wanted[:2] - motors[:2]
        for row in error:
            row -= t.turns * t.by_joint(t.share * row)[t.joint]
        torque: Array = t.inertia * w * (w * error[0] + 2.0 * error[1])
        return np.where(t.is_single[t.joint] | (t.is_elastic[t.joint] == 0.0), 0.0, torque)


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
    margins = law.margins(frequencies=_FREQUENCIES)
    if _holds(margins):
        if margins.decay < _LEAST_DECAY * law.bandwidth:
            warnings.warn(
                f'What rings on the springs decays at {margins.decay:.2g} 1/s only, with a '
                f'bandwidth of {law.bandwidth:.3g} rad/s: they are too stiff to be damped at this '
                'sample rate. Their own damping, which nobody knows here, has to do it.',
                ControlWarning,
                stacklevel=2,
            )
        return law

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
