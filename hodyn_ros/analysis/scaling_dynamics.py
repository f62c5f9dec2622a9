"""What limits hold of a sampled motion, as functions of the rate at which it is played.

With q_new(t) = q(s t), the k-th derivative of the joint positions takes the factor s^k. The
efforts of rigid bodies, their m-th derivative Q^(m) = G_m + D_m at s = 1 split into what gravity
and wrenches ask for and what the motion does, become s^m G_m + s^(m+2) D_m. Both follow from
inverse dynamics at two rates; friction and motors are evaluated at every rate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.limits import MOTOR_QUANTITIES, MotorLimits
from hodyn_ros.actuators.robot import MotorMotion, motor_motion
from hodyn_ros.analysis.limits import MotionLimits
from hodyn_ros.analysis.stretching import at_rate
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import ActuatorError, MotionError
from hodyn_ros.kinematics.joints import independent_efforts
from hodyn_ros.model.friction import FrictionLaw, joint_friction
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed

Array = NDArray[np.float64]

SLOWEST = 1e-9
"""Rate at which joints and motors count as held still."""


class Quantity(NamedTuple):
    """A limited quantity of all C joints or motors at all N samples."""

    name: str
    columns: tuple[str, ...]
    """Names of the joints or motors."""
    limit: Array
    """Largest magnitude, shape (C,)."""
    values: Callable[[float], Array]
    """Values (N, C) at a rate s; raises DeflectionError where there are none."""


def friction_efforts(model: RobotModel, laws: Mapping[int, FrictionLaw], velocity: Array) -> Array:
    """Efforts of the independent joints against friction in the joints of the bodies.

    Parameters
    ----------
    model : RobotModel
    laws : mapping of int to FrictionLaw
        By the index of the body.
    velocity : ndarray, shape (N, E, n)
        Joint velocities and their derivatives.

    Returns
    -------
    ndarray, shape (N, E, n)
    """
    if not laws:
        return np.zeros_like(velocity)
    of_bodies = np.swapaxes(velocity[..., model.coordinate] * model.multiplier, -1, -2)
    return independent_efforts(model, np.swapaxes(joint_friction(laws, of_bodies), -1, -2))


class ScaledDynamics:
    """A sampled motion, its efforts and motors as functions of the rate s.

    Parameters
    ----------
    model : RobotModel
    motion : ndarray, shape (N, K, n)
    wrench : Wrench or sequence of Wrench, optional
        At s = 1; at other rates it is the same function of the place on the path.
    """

    def __init__(
        self, model: RobotModel, motion: Array, wrench: Wrench | Sequence[Wrench] | None = None
    ) -> None:
        self._model, self._motion = model, motion
        self._laws = {model.body_names.index(name): law for name, law in model.friction.items()}
        once = self._bodies(motion, wrench)
        wrenches = (wrench,) if isinstance(wrench, Wrench) else wrench or ()
        twice = [replace(item, values=at_rate(np.asarray(item.values), 2.0)) for item in wrenches]
        # At the rate 2, s^-m Q^(m) is G_m + 4 D_m.
        at_two = at_rate(self._bodies(at_rate(motion, 2.0), twice), 0.5)
        self._dynamic = (at_two - once) / 3.0
        self._static = once - self._dynamic
        # Several quantities are rows of the same result.
        self.effort = lru_cache(maxsize=2)(self._effort)
        """Efforts (N, K - 2, n) at a rate."""

    def _bodies(self, motion: Array, wrench: Wrench | Sequence[Wrench] | None) -> Array:
        """Efforts without friction, (N, E, n).

        What friction adds is taken away again, because a model without it would be another model,
        for which nothing has been compiled.
        """
        efforts = inverse_dynamics(self._model, motion, wrench)
        return efforts - friction_efforts(self._model, self._laws, motion[:, 1:-1])

    def motion(self, s: float) -> Array:
        """Motion (N, K, n) at a rate."""
        return at_rate(self._motion, s)

    def _effort(self, s: float) -> Array:
        result = at_rate(self._static + s * s * self._dynamic, s)
        # Held still, friction is what it is in slow motion.
        velocity = self.motion(max(s, SLOWEST))[:, 1:-1]
        return result + friction_efforts(self._model, self._laws, velocity)


def joint_quantities(
    dynamics: ScaledDynamics, model: RobotModel, limits: MotionLimits
) -> list[Quantity]:
    """Limited quantities of the joints but for their positions.

    Raises
    ------
    MotionError
        If a limit needs a derivative that the motion does not have.
    """
    K = dynamics.motion(1.0).shape[1]
    found = []
    orders = (
        ('velocity', 1, limits.velocity),
        ('acceleration', 2, limits.acceleration),
        ('jerk', 3, limits.jerk),
        ('effort', 0, limits.effort),
        ('effort_dot', 1, limits.effort_dot),
    )
    for name, order, limit in orders:
        if not np.isfinite(limit).any():
            continue
        of_efforts = name.startswith('effort')
        _refuse_low_order(name, K, order + (3 if of_efforts else 1))
        series = dynamics.effort if of_efforts else dynamics.motion
        found.append(Quantity(name, model.joint_names, limit, _row(series, order)))
    return found


def _row(series: Callable[[float], Array], order: int) -> Callable[[float], Array]:
    return lambda s: series(s)[:, order]


def _refuse_low_order(name: str, K: int, needed: int) -> None:
    if K < needed:
        raise MotionError(
            f'{name} is limited, which needs a motion with K >= {needed} derivatives (the zeroth '
            f'included), but K is {K}; give more derivatives, or limits without it.'
        )


def motor_quantities(
    dynamics: ScaledDynamics,
    actuators: Actuators,
    limits: MotorLimits,
    stiffness: Mapping[str, ArrayLike] | None = None,
) -> list[Quantity]:
    """Limited quantities of motors and springs.

    Springs cannot be deflected beyond their range, whether the limits say so or not.

    Parameters
    ----------
    dynamics : ScaledDynamics
    actuators : Actuators
    limits : MotorLimits
    stiffness : mapping of joint name to array-like, shape (..., S), optional
        At s = 1, see `motor_motion`; at other rates the same function of the place on the path.

    Raises
    ------
    MotionError
        If a limit needs a derivative that the motion does not have.
    ActuatorError
        If a joint has a damper.
    """
    dampers = [item.name for item in actuators.driven if item.actuator.needs_times]
    if dampers:
        raise ActuatorError(
            f'The deflection of joints with damping ({listed(dampers)}) depends on the past, so '
            'no factor scales it; expected actuators without damping.'
        )
    given = {
        name: np.asarray(values, dtype=np.float64) for name, values in (stiffness or {}).items()
    }

    @lru_cache(maxsize=2)
    def motors(s: float) -> MotorMotion:
        s = max(s, SLOWEST)
        scaled = {name: at_rate(values[..., None], s)[..., 0] for name, values in given.items()}
        return motor_motion(
            actuators, dynamics.motion(s), dynamics.effort(s), stiffness=scaled, order=None
        )

    found = []
    K = dynamics.motion(1.0).shape[1]
    position, torque, _ = (array.shape[1] for array in motors(0.0))
    available = (position, torque, torque, position)
    for name, order, orders in zip(MOTOR_QUANTITIES, (1, 0, 1, 0), available):
        limit = getattr(limits, name)
        if name != 'deflection' and not np.isfinite(limit).any():
            continue
        _refuse_low_order(name, K, K + order + 1 - orders)
        joints = actuators.model.joint_names
        columns = joints if name == 'deflection' else actuators.motor_names
        field = ('position', 'torque', 'torque', 'deflection')[MOTOR_QUANTITIES.index(name)]
        found.append(Quantity(name, columns, limit, _motor_row(motors, field, order)))
    return found


def _motor_row(
    motors: Callable[[float], MotorMotion], field: str, order: int
) -> Callable[[float], Array]:
    return lambda s: np.asarray(getattr(motors(s), field)[:, order])
