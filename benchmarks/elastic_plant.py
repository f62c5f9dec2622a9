"""A robot with elastic joints to be controlled, which shares no code with hodyn_ros.

The links are those of Pinocchio's articulated-body algorithm. Motors, springs, friction, drives,
the ground and the integration are written here:

    M(q) q'' + h(q, q') = Q + J^T f - friction,   B theta'' = tau - Q - friction,
    Q = K (theta - q) + z,   z' = s (d' - |d'| z / F),   d = theta - q.

z is Dahl's hysteresis of the springs, of the height F. Dry friction is, in every step, the torque
within its bounds that comes closest to stopping what it acts on, so that joints stick; its bounds
fall with the Gaussian of the speed from breakaway to sliding (Stribeck). The torque of a motor
follows what its drive is asked for at once, or by a current loop of the first order. A wall lies
under the tip: its force is that of a spring, without friction and damping.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pinocchio
from numpy.typing import NDArray

Array = NDArray[np.float64]

LINKS, SPEEDS, MOTORS, MOTOR_SPEEDS, HYSTERESIS, TORQUES = range(6)
"""Rows of a state (6, n): q, q', theta, theta', z and tau, in rad, rad/s and N m."""

_PRESLIDING = 1e-3  # rad, over which the hysteresis of a spring builds up
_STRIBECK = 0.05  # rad/s
_PIVOTS, _TOGETHER = 60, 10  # at most, and how many of them with all joints at once


class Friction(NamedTuple):
    """Dry friction of every motor or every link."""

    sliding: float = 0.0
    """[N m]"""
    breakaway: float = 0.0
    """At rest [N m]; not less than `sliding` if it is to count."""

    def bound(self, speed: Array) -> Array:
        """Largest torque at a speed (n,) [N m]."""
        fall = max(self.breakaway - self.sliding, 0.0)
        found: Array = self.sliding + fall * np.exp(-((speed / _STRIBECK) ** 2))
        return found

    def __bool__(self) -> bool:
        return self.sliding > 0.0 or self.breakaway > 0.0


@dataclass(frozen=True)
class Faults:
    """How the robot differs from what is known of it."""

    stiffness: float = 0.0
    """Relative error of the springs."""
    payload: float = 0.0
    """Point mass at the tip [kg]."""
    motor_friction: Friction = Friction()
    link_friction: Friction = Friction()
    hysteresis: float = 0.0
    """Height F of that of every spring [N m]."""
    current_loop: float = 0.0
    """Its bandwidth [Hz]; 0: torques act at once."""
    wall: tuple[float, float] | None = None
    """Height of its surface [m] and stiffness [N/m]."""


class ElasticPlant:
    """A robot whose joints all have a motor and a spring.

    Parameters
    ----------
    xml : str
        Robot description in the URDF.
    stiffness, inertia, limits : array-like, shape (n,)
        Of the springs as they are known [N m/rad], of the motors, reflected to the joints
        [kg m^2], and the largest torque that the drives give [N m].
    tip : str
        Link at which the payload is, and which is pushed and meets the wall.
    faults : Faults
    step : float
        Longest step of the integration [s].

    Attributes
    ----------
    force : ndarray, shape (3,)
        Push at the tip in the axes of the base [N], to be set.
    locked, is_on : bool
        Whether the brakes hold the motors, and whether the drives give any torque; to be set.
    """

    def __init__(
        self,
        xml: str,
        stiffness: Sequence[float] | Array,
        inertia: Sequence[float] | Array,
        limits: Sequence[float] | Array,
        tip: str,
        faults: Faults = Faults(),  # noqa: B008 - it is frozen
        step: float = 5e-4,
    ) -> None:
        self.model = model = pinocchio.buildModelFromXML(xml)
        self.n, self.faults, self.step = model.nv, faults, step
        self.stiffness = (1.0 + faults.stiffness) * np.array(stiffness, dtype=float)
        self.inertia, self.limits = (
            np.array(inertia, dtype=float),
            np.array(limits, dtype=float),
        )
        self._frame = model.getFrameId(tip)
        if faults.payload:
            frame = model.frames[self._frame]
            added = pinocchio.Inertia(
                faults.payload, frame.placement.translation, np.zeros((3, 3))
            )
            model.inertias[frame.parentJoint] += added
        self.data = model.createData()
        self.force, self.locked, self.is_on = np.zeros(3), False, True

    def weight(self, q: Array) -> Array:
        """Torques (n,) of the springs that hold the links at rest in q (n,) [N m]."""
        found: Array = pinocchio.computeGeneralizedGravity(self.model, self.data, q).copy()
        return found

    def at_rest(self, q: Array) -> Array:
        """State (6, n) in which springs and motors carry the weight of the links at q (n,)."""
        torque, none = self.weight(q), np.zeros(self.n)
        return np.array([q, none, q + torque / self.stiffness, none, none, torque])

    def tip(self, q: Array) -> tuple[Array, Array]:
        """Position (3,) [m] and Jacobian (3, n) [m/rad] of the tip at q (n,)."""
        axes = pinocchio.ReferenceFrame.LOCAL_WORLD_ALIGNED
        J = pinocchio.computeFrameJacobian(self.model, self.data, q, self._frame, axes)
        return self.data.oMf[self._frame].translation.copy(), J[:3]

    def wall_force(self, height: float) -> float:
        """Force of the wall, upwards, on a tip at a height [N]."""
        if self.faults.wall is None:
            return 0.0
        surface, stiffness = self.faults.wall
        return stiffness * max(surface - height, 0.0)

    def energy(self, state: Array) -> float:
        """Kinetic and potential energy of links, motors and springs (6, n) and the wall [J]."""
        q, qd, theta, thetad = state[:4]
        links = pinocchio.computeKineticEnergy(self.model, self.data, q, qd)
        links += pinocchio.computePotentialEnergy(self.model, self.data, q)
        motors = 0.5 * self.inertia @ thetad**2 + 0.5 * self.stiffness @ (theta - q) ** 2
        wall = 0.0
        if self.faults.wall is not None:
            wall = 0.5 * self.wall_force(self.tip(q)[0][2]) ** 2 / self.faults.wall[1]
        return float(links + motors + wall)

    def advance(self, state: Array, wanted: Array, duration: float) -> Array:
        """State (6, n) some time [s] later, in which the drives are asked for torques (n,)."""
        asked = np.clip(wanted, -self.limits, self.limits) * self.is_on
        count = max(int(np.ceil(duration / self.step - 1e-6)), 1)
        h, x = duration / count, state.copy()
        if self.locked:
            x[MOTOR_SPEEDS] = 0.0
        if not self.faults.current_loop or not self.is_on:
            x[TORQUES] = asked
        for _ in range(count):  # the classical method of Runge and Kutta
            dry = self._dry(x, asked, h)
            k1 = self._rate(x, asked, *dry)
            k2 = self._rate(x + 0.5 * h * k1, asked, *dry)
            k3 = self._rate(x + 0.5 * h * k2, asked, *dry)
            k4 = self._rate(x + h * k3, asked, *dry)
            x += h / 6.0 * (k1 + 2.0 * (k2 + k3) + k4)
        return x

    def _rate(
        self,
        x: Array,
        asked: Array,
        dry: Array | float = 0.0,
        link_dry: Array | float = 0.0,
    ) -> Array:
        """Time derivative of a state (6, n) with given friction (n,) of motors and links."""
        q, qd, theta, thetad, z, torque = x
        faults, rate = self.faults, np.zeros_like(x)
        turning = thetad - qd
        spring = self.stiffness * (theta - q) + z
        links = spring - link_dry
        if faults.wall is not None or self.force.any():
            place, J = self.tip(q)
            push = self.force.copy()
            push[2] += self.wall_force(place[2])
            links = links + J.T @ push
        rate[LINKS] = qd
        rate[SPEEDS] = pinocchio.aba(self.model, self.data, q, qd, links)
        if not self.locked:
            rate[MOTORS] = thetad
            rate[MOTOR_SPEEDS] = (torque - spring - dry) / self.inertia
        if faults.hysteresis:
            rise = faults.hysteresis / _PRESLIDING
            rate[HYSTERESIS] = rise * (turning - np.abs(turning) * z / faults.hysteresis)
        if faults.current_loop and self.is_on:
            rate[TORQUES] = 2.0 * np.pi * faults.current_loop * (asked - torque)
        return rate

    def _dry(self, x: Array, asked: Array, h: float) -> tuple[Array | float, Array | float]:
        """Dry friction (n,) of motors and of links in a step h [s] that begins at a state."""
        faults = self.faults
        dry: Array | float = 0.0
        link_dry: Array | float = 0.0
        if not (faults.motor_friction or faults.link_friction):
            return dry, link_dry
        after = x + h * self._rate(x, asked)
        if faults.motor_friction:
            bound = faults.motor_friction.bound(x[MOTOR_SPEEDS])
            dry = np.clip(self.inertia * after[MOTOR_SPEEDS] / h, -bound, bound)
        if faults.link_friction:
            link_dry = self._link_dry(x[LINKS], after[SPEEDS] / h, x[SPEEDS])
        return dry, link_dry

    def _link_dry(self, q: Array, after: Array, speed: Array) -> Array:
        """Friction (n,) of links that without it would have the speed h `after`.

        The links are coupled: which of them stick is found by principal pivoting. Those that do
        have no speed after the step, the others friction at its bound against their speed.
        """
        M = pinocchio.crba(self.model, self.data, q)
        A = np.linalg.inv(np.triu(M) + np.triu(M, 1).T)
        bound = self.faults.link_friction.bound(speed)
        sign = np.sign(after)
        found = bound * sign
        for pivot in range(_PIVOTS):
            found, sticks = bound * sign, np.flatnonzero(sign == 0.0)
            rest = after - A @ found
            found[sticks] = np.linalg.solve(A[np.ix_(sticks, sticks)], rest[sticks])
            rest -= A[:, sticks] @ found[sticks]
            slipping = np.where(
                (sign == 0.0) & (np.abs(found) > bound), np.sign(found), sign
            )
            changed = np.where((sign != 0.0) & (rest * sign < 0.0), 0.0, slipping)
            wrong = np.flatnonzero(changed != sign)
            if not len(wrong):
                break
            # All at once may go round in circles, one at a time does not.
            if pivot >= _TOGETHER:
                wrong = wrong[:1]
            sign[wrong] = changed[wrong]
        return np.clip(found, -bound, bound)
