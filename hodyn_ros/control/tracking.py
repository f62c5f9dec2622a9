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

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import expm

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.motors import motor_motion
from hodyn_ros.actuators.sea import SeriesElastic
from hodyn_ros.checks import checked_number
from hodyn_ros.control.controller import Command, fill, per_joint, warm_up
from hodyn_ros.control.kernels import approach, tracking_law
from hodyn_ros.control.margins import Margins, find_margins
from hodyn_ros.control.observer import StateObserver
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.errors import ControlError, MotionError

if TYPE_CHECKING:
    from hodyn_ros.codegen.c_source import Code

Array = NDArray[np.float64]

_BANDWIDTH, _MOST_BANDWIDTH = 0.05, 0.2  # by the sample time
# Damping of the resonances, by their frequency and by the bandwidth.
_DAMPING, _MOST_DAMPING = 1.4, 3.0
# Poles, by the bandwidth, with which a distance from the reference at the start goes to zero.
_APPROACH = 0.5
_ARRIVED = 1e-9  # rad, m
# What the first measurement may be: beyond a position limit [rad, m]; torque of a spring, and
# difference to that of a sensor, by the torque limit of the motors.
_OUTSIDE, _OVERLOAD, _CONTRADICTION = 1.0, 2.0, 0.25
_MOST_SENSITIVITY, _FREQUENCIES = 3.0, 80
_FADING = 0.25  # of the bandwidth, with which goes what is left of the torque of the law before


class ObserverController(ABC):
    """A control law that estimates the state from positions, called once in a sample period.

    Parameters
    ----------
    actuators : Actuators
        With the model of the robot; rigid drives, series elastic ones and those of variable
        stiffness, mixed as the robot has them.
    sample_period : float
        T [s]; `evaluate` is called as often.
    bandwidth : float, optional
        w [rad/s]; by default 0.05 / T.
    torque_limits : float or array-like, shape (m,), optional
        Largest motor torque in both directions [N m] or [N]; infinite where there is none.
    delay : float
        From a measurement until its command acts [s], in whole samples; 0 if the command acts at
        once. The half sample for which it is held is known.
    observer : StateObserver, optional
        Of the same robot, if several laws share one.

    Attributes
    ----------
    lead : float
        How much later than the measurement the wanted motion is to be [s]: the delay and half a
        sample.
    observer : StateObserver
    yields : bool
        Whether the robot is to give way to what touches it.

    Raises
    ------
    ControlError
        If an argument cannot be used.
    """

    orders = 5
    yields = False

    def __init__(
        self,
        actuators: Actuators,
        sample_period: float,
        *,
        bandwidth: float | None = None,
        torque_limits: ArrayLike | None = None,
        delay: float = 0.0,
        observer: StateObserver | None = None,
    ) -> None:
        if not isinstance(actuators, Actuators):
            raise ControlError(
                f'The actuators are of type {type(actuators).__name__}, expected '
                'Actuators(model, {joint: actuator}).'
            )
        T = checked_number('sample_period', sample_period, ControlError, above=0.0, unit='s')
        if bandwidth is None:
            bandwidth = _BANDWIDTH / T
        most = _MOST_BANDWIDTH / T
        bandwidth = checked_number(
            'The bandwidth', bandwidth, ControlError, above=0.0, most=most, unit='rad/s'
        )
        self.actuators, self.model = actuators, actuators.model
        self._undamped = without_dampers(actuators)
        self.observer = observer or StateObserver(actuators, T, bandwidth, delay)
        self.bandwidth = bandwidth
        self.sample_period = T
        self.lead = (self.observer.delay_samples + 0.5) * T
        given = np.inf if torque_limits is None else torque_limits
        self.torque_limits = per_joint('torque_limits', given, actuators.n_motors, np.inf)
        self._desired = np.empty((self.orders, self.model.n_joints))
        t = self.observer.transmission
        turning = np.where(t.turns > 0.0, self.torque_limits, 0.0)
        self._limit = np.bincount(t.joint, turning, self.model.n_joints)
        self._begins, self._left = True, np.zeros(actuators.n_motors)
        self._fading = np.exp(-_FADING * bandwidth * T)

    def command(self, desired: ArrayLike, *measured: Any, **more: Any) -> Array:
        """Motor torques within the limits; see `evaluate`."""
        return self.evaluate(desired, *measured, **more).torque

    def evaluate(
        self,
        desired: ArrayLike,
        q: ArrayLike,
        qd: ArrayLike | None,
        theta: ArrayLike,
        thetad: ArrayLike | None,
        spring_torque: ArrayLike | None = None,
        stiffness: Mapping[str, ArrayLike] | None = None,
    ) -> Command:
        """Motor torques for a measurement; to be called once in every sample period.

        Parameters
        ----------
        desired : array-like, shape (5, n)
            Wanted position of the links and its first four time derivatives [rad/s^k] or [m/s^k],
            `lead` after the measurement.
        q, qd, theta, thetad, spring_torque
            See `StateObserver.update`; velocities may be None.
        stiffness : mapping of joint name to array-like, shape (3,), optional
            Wanted stiffness of each joint that can choose it and two derivatives [N m/rad].

        Returns
        -------
        Command
            Of the m motors.

        Raises
        ------
        MotionError
            If a shape is wrong or a value is not finite.
        DeflectionError
            If a spring is measured, or would have to be, outside of its range.
        ControlError
            If the first measurement cannot be one of this robot in rad, m, N m and N.
        """
        fill(self._desired, 'desired', desired)
        observer = self.observer
        is_new = observer.is_new
        wanted = self._desired[2] if self.orders == 5 else None
        observer.update(q, qd, theta, thetad, spring_torque, wanted)
        if is_new:
            reason = self._implausible(spring_torque)
            if reason:
                observer.reset()
                raise ControlError(reason)
        return self.answer(self._desired, stiffness)

    def _implausible(self, spring_torque: ArrayLike | None) -> str:
        """Say what cannot be true in the first measurement; empty if all of it can."""
        observer, limits, names = self.observer, self.model.limits, self.model.joint_names
        q = observer.measured[0]
        outside = np.maximum(limits.lower - q, q - limits.upper)
        j = int(outside.argmax())
        if outside[j] > _OUTSIDE:
            return (
                f'The position of joint {names[j]!r} is {q[j]:.6g}, far from its limits '
                f'{limits.lower[j]:.6g} to {limits.upper[j]:.6g}: is it in degrees?'
            )
        springs = observer.transmission.at(*observer.measured).torque
        j = int((np.abs(springs) / self._limit).argmax())
        if abs(springs[j]) > _OVERLOAD * self._limit[j]:
            return (
                f'The spring of joint {names[j]!r} would carry {springs[j]:.4g}, more than '
                f'{_OVERLOAD:g} times the torque of its motors ({self._limit[j]:.4g}): positions '
                'of joint and motor contradict each other. Motor positions are those behind the '
                'gear, in rad or m, and zero where the joint is zero and its spring relaxed.'
            )
        if spring_torque is not None:
            differs = np.abs(springs - observer.springs.torque) / self._limit
            j = int(differs.argmax())
            if differs[j] > _CONTRADICTION:
                return (
                    f'The torque sensor of joint {names[j]!r} says '
                    f'{observer.springs.torque[j]:.4g}, the deflection of its spring '
                    f'{springs[j]:.4g}: look at sign, unit and offset of the sensor, and at the '
                    'stiffness.'
                )
        return ''

    def answer(
        self, desired: Array, stiffness: Mapping[str, ArrayLike] | None = None
    ) -> Command:
        """Answer what the observer has taken; `evaluate` without a measurement of its own."""
        demand, friction = self._demand(desired, stiffness)
        if self._begins:
            self._begins = False
            self._left = self.observer.acting - demand
        demand += self._left
        self._left *= self._fading
        if not np.isfinite(demand).all():
            i = int(np.argmin(np.isfinite(demand)))
            raise MotionError(
                f'The torque of motor {self.actuators.motor_names[i]!r} would be {demand[i]}: the '
                'reference or the state is out of range.'
            )
        torque = np.minimum(np.maximum(demand, -self.torque_limits), self.torque_limits)
        self.observer.apply(torque, friction)
        return Command(torque, demand)

    def reset(self) -> None:
        """Forget everything; the next measurement begins anew."""
        self.observer.reset()
        self.begin()

    def resting(
        self, position: ArrayLike, stiffness: Mapping[str, ArrayLike] | None = None
    ) -> Array:
        """Motor positions (m,) at which the springs carry the weight of links at rest (n,)."""
        motion = np.zeros((5, self.model.n_joints))
        fill(motion[0], 'position', position)
        found: Array = motor_motion(self._undamped, motion, stiffness=stiffness).position[0]
        return found

    def begin(self) -> None:
        """Begin with what the observer knows, as when another law was used before.

        The difference to the torque of the law before fades out with the time constant 4 / w.
        """
        self._begins = True

    @abstractmethod
    def _demand(
        self, desired: Array, stiffness: Mapping[str, ArrayLike] | None
    ) -> tuple[Array, Array | float]:
        """Motor torques (m,) without limits, and the friction of the motors known in them."""


def without_dampers(actuators: Actuators) -> Actuators:
    """Copy the actuators, the series elastic ones without damping."""
    by_joint = dict(actuators.by_joint)
    for name, actuator in by_joint.items():
        if isinstance(actuator, SeriesElastic) and actuator.damping:
            by_joint[name] = replace(actuator, damping=0.0)
    return Actuators(actuators.model, by_joint)


class TrackingController(ObserverController):
    """The recommended law; see the module, and `tracking_controller`."""

    def __init__(self, actuators: Actuators, sample_period: float, **options: Any) -> None:
        super().__init__(actuators, sample_period, **options)
        self._work = np.empty((10, self.model.n_joints))
        p = _APPROACH * self.bandwidth
        chain = np.diag(np.ones(4), 1)
        chain[4] = -np.array([p**5, 5.0 * p**4, 10.0 * p**3, 10.0 * p**2, 5.0 * p])
        self.transition = expm(chain * self.sample_period)
        self.begin()

    def begin(self) -> None:
        """Begin where the robot is, and approach the wanted motion from there."""
        self._begins = self.observer.acting.size > 0
        self._distance = np.zeros((5, self.model.n_joints))
        self._departs = self._is_far = True

    def margins(
        self,
        position: ArrayLike | None = None,
        stiffness: Mapping[str, ArrayLike] | None = None,
        frequencies: int = 400,
    ) -> Margins:
        """By how much the loop of each motor may be wrong, before a robot is switched on.

        Parameters
        ----------
        position : array-like, shape (n,), optional
            Where the robot rests [rad] or [m]; by default in the middle of its range.
        stiffness : mapping of joint name to array-like, shape (3,), optional
            As for `evaluate`.
        frequencies : int
            Between 1 rad/s and half of the sampling frequency.

        Raises
        ------
        ControlError
            If an argument cannot be used.
        """
        return find_margins(self, position, stiffness, frequencies)

    def added_to(self, code: Code) -> Code:
        """Code of the dynamics and of this law; for `generate_code`."""
        from hodyn_ros.control.c_code import with_controller

        return with_controller(
            code, self, arrived=_ARRIVED, outside=_OUTSIDE, overload=_OVERLOAD,
            contradiction=_CONTRADICTION,
        )  # fmt: skip

    def _demand(
        self, desired: Array, stiffness: Mapping[str, ArrayLike] | None
    ) -> tuple[Array, Array | float]:
        observer = self.observer
        t, springs, (links, motors) = observer.transmission, observer.springs, observer.ahead
        # Torques act half a sample later than the state for which they are found.
        effort = inverse_dynamics(self.model, desired)
        motion = motor_motion(self._undamped, desired, effort, stiffness=stiffness)
        friction, demand = self._friction(motion.position), np.empty(len(t.joint))
        if self._departs:
            self._departs = False
            self._distance[:2] = desired[:2] - 0.5 * self.sample_period * desired[1:3] - links[:2]
        tracking_law(
            len(t.is_elastic), len(t.joint), self.sample_period, self.bandwidth, t.joint,
            t.is_elastic, t.turns, t.share, t.joint_inertia, t.damping, self._limit,
            observer.mass, springs.stiffness, springs.torque, springs.rate, *observer.measured,
            links, motors, desired, effort, self._distance, motion.torque[0], self._work, demand,
        )  # fmt: skip
        if self._is_far:
            self._is_far = (
                approach(len(t.is_elastic), self.transition, self._distance) > _ARRIVED
            )
            if not self._is_far:
                self._distance[:] = 0.0
        if t.is_variable:
            demand += self._spread(motion.position, motors)
        return demand, friction

    def _friction(self, position: Array) -> Array | float:
        """Friction of the motors along a wanted motion, as far as the model knows it."""
        single = self.actuators.single
        if not single.friction:
            return 0.0
        effort = np.zeros((1, position.shape[1]))
        single.add_friction(position[1:2], effort)
        torque: Array = effort[0]
        return torque

    def _spread(self, wanted: Array, motors: Array) -> Array:
        """Torques that hold the motors of one joint as far apart as the stiffness asks for."""
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

    def make(w: float | None) -> TrackingController:
        return TrackingController(
            actuators, sample_period, bandwidth=w, torque_limits=torque_limits, delay=delay,
            observer=observer,
        )  # fmt: skip

    law = make(bandwidth)
    warm_up(law.model)
    if law.observer.transmission.is_variable or _holds(law):
        return law
    least, most = 0.05 * law.bandwidth, law.bandwidth
    observer = None
    advice = 'None down to a twentieth of it would do.'
    if _holds(make(least)):
        for _ in range(6):
            middle = float(np.sqrt(least * most))
            least, most = (middle, most) if _holds(make(middle)) else (least, middle)
        advice = f'{least:.2g} rad/s would do.'
    raise ControlError(
        f'With a bandwidth of {law.bandwidth:.3g} rad/s the robot would not be stable, or not by '
        f'much: its sensitivity would be above {_MOST_SENSITIVITY:g}. {advice}'
    )


def _holds(law: TrackingController) -> bool:
    margins = law.margins(frequencies=_FREQUENCIES)
    return margins.decay > 0.0 and float(margins.sensitivity.max()) <= _MOST_SENSITIVITY
