"""Controllers of the motor side: feed-forward, computed torque, PD with gravity.

None of them uses measurements of the links. Sources: De Luca and Book, "Robots with flexible
elements", Springer Handbook of Robotics; Tomei 1991, "A simple PD controller for robots with
elastic joints"; Spong 1987, "Modeling and control of elastic joint robots".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.control.controller import Controller, fill, per_joint, shifted
from hodyn_ros.control.drives import Drives
from hodyn_ros.control.gains import joint_gains
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.dynamics.matrices import gravity_effort, mass_matrix
from hodyn_ros.errors import ControlError
from hodyn_ros.model.robot import RobotModel

Array = NDArray[np.float64]


class MotorGains(NamedTuple):
    """Gains of the proportional and derivative control of motors."""

    proportional: Array
    """Shape (n,) [N m/rad] or [N/m]."""
    derivative: Array
    """Shape (n,) [N m s/rad] or [N s/m]."""


def motor_gains(
    model: RobotModel, actuators: Actuators, bandwidth: ArrayLike, position: ArrayLike
) -> MotorGains:
    """Gains that would put both poles of each joint at -bandwidth if it were rigid and alone.

    Parameters
    ----------
    model : RobotModel
    actuators : Actuators
    bandwidth : float or array-like, shape (n,)
        [rad/s]
    position : array-like, shape (n,)
        Where the inertia that each joint moves is taken from.

    Returns
    -------
    MotorGains
        w^2 (M_jj + B_j) and 2 w (M_jj + B_j). This is a rule for rigid joints: faster than its
        spring swings, a motor moves B_j alone, and the velocity loop has the bandwidth
        2 w (M_jj + B_j) / B_j, which delays and filters must leave room for.

    Raises
    ------
    ControlError
        If a bandwidth is not positive or the actuators cannot be used.
    MotionError
        If the position has a wrong shape or is not finite.
    """
    drives = Drives(model, actuators)
    n = model.n_joints
    w = per_joint('bandwidth', bandwidth, n)
    motion = np.empty((1, n))
    fill(motion[0], 'position', position)
    moved = np.diagonal(mass_matrix(model, motion)[0]) + drives.inertia
    with np.errstate(over='ignore', under='ignore'):
        gains = MotorGains(w**2 * moved, 2.0 * w * moved)
    for values in gains:
        wrong = ~((values > 0.0) & np.isfinite(values)) & (moved > 0.0)
        if wrong.any():
            j = int(np.argmax(wrong))
            raise ControlError(
                f'The bandwidth of joint {model.joint_names[j]!r}, {w[j]:.6g} rad/s, gives a gain '
                f'of {values[j]:.6g}, expected one that is neither infinite nor zero.'
            )
    return gains


class FeedForwardController(Controller):
    """Feed-forward of the motors' motion and torque, with proportional and derivative control.

    tau = B theta_d'' + Q + friction(theta_d') + P (theta_d - theta) + D (theta_d' - theta'), where
    Q and its derivatives are those of the reference. With `orders` = 2, theta_d, theta_d' and
    theta_d'' are the exact ones: q_d + delta, q_d' + delta' and q_d'' + delta'' with
    Q = f(delta). With 1, delta'' = 0 in their place, as if the second derivative of Q were not
    known; with 0, also delta' = 0, so that only the static deflection is compensated.

    Parameters
    ----------
    model : RobotModel
    actuators : Actuators
    gains : MotorGains
        Or a pair of proportional and derivative ones, each one for all joints or one for each.
    orders : int
        0, 1 or 2: highest derivative of Q that is used.
    torque_limits : float or array-like, shape (n,), optional
    lead : float
        See `Controller`. What is fed forward is that of the later time.

    Raises
    ------
    ControlError
        If the actuators, gains or `orders` cannot be used.
    """

    def __init__(
        self,
        model: RobotModel,
        actuators: Actuators,
        gains: MotorGains | tuple[ArrayLike, ArrayLike],
        orders: int = 2,
        torque_limits: ArrayLike | None = None,
        lead: float = 0.0,
    ) -> None:
        super().__init__(model, actuators, torque_limits, lead)
        is_whole = isinstance(orders, (int, np.integer)) and not isinstance(orders, bool)
        if not is_whole or orders not in (0, 1, 2):
            raise ControlError(f'orders is {orders!r}, expected 0, 1 or 2.')
        self.gains = _checked(gains, model.n_joints)
        self.orders = int(orders) + 3

    def _demand(self, reference: Array, state: Array) -> Array:
        drives = self.drives
        effort = inverse_dynamics(self.model, reference[: self.orders])
        motors = reference[:3].copy()
        motors[: len(effort)] += drives.deflections(effort)
        demand: Array = drives.inertia * motors[2] + effort[0] + drives.friction(motors[1])
        demand += _pd(self.gains, shifted(motors, -self.lead), state)
        return demand


class PDGravity(Controller):
    """Proportional and derivative control of the motors with the weight at the wanted position.

    tau = g(q_d) + P (theta_d - theta) + D (q_d' - theta') with the static deflection
    theta_d = q_d + f^-1(g(q_d)). Source: Tomei 1991; for a reference at rest it is his law, which
    is stable if P and the springs are stiff enough to hold the robot up.

    Parameters
    ----------
    model : RobotModel
    actuators : Actuators
    gains : MotorGains
        See `FeedForwardController`.
    torque_limits : float or array-like, shape (n,), optional
    lead : float
        See `Controller`. What is fed forward is that of the later time.

    Raises
    ------
    ControlError
        If the actuators or gains cannot be used.
    """

    orders = 2

    def __init__(
        self,
        model: RobotModel,
        actuators: Actuators,
        gains: MotorGains | tuple[ArrayLike, ArrayLike],
        torque_limits: ArrayLike | None = None,
        lead: float = 0.0,
    ) -> None:
        super().__init__(model, actuators, torque_limits, lead)
        self.gains = _checked(gains, model.n_joints)

    def _demand(self, reference: Array, state: Array) -> Array:
        weight = gravity_effort(self.model, reference[:1])
        # The weight changes little meanwhile.
        motors = shifted(reference[:2], -self.lead).copy()
        motors[:1] += self.drives.deflections(weight)
        demand: Array = weight[0] + _pd(self.gains, motors, state)
        return demand


class RigidComputedTorque(Controller):
    """Computed torque for a robot that is taken for rigid: the motors are where the links are.

    tau = (M(theta) + B) (q_d'' + k1 (q_d' - theta') + k0 (q_d - theta)) + h(theta, theta')
    + friction(theta'), measured at the motors only. The links are off by the deflection of the
    springs.

    Parameters
    ----------
    model : RobotModel
    actuators : Actuators
        Their motor inertias and friction; the springs are not looked at.
    poles : float, array-like or mapping
        Two for each joint or a bandwidth, see `hodyn_ros.control.gains.joint_gains`.
    torque_limits : float or array-like, shape (n,), optional
    lead : float
        See `Controller`. What is fed forward is that of the later time.

    Attributes
    ----------
    gains : ndarray, shape (2, n)
        k0 and k1.

    Raises
    ------
    ControlError
        If the actuators or poles cannot be used.
    """

    orders = 3

    def __init__(
        self,
        model: RobotModel,
        actuators: Actuators,
        poles: ArrayLike,
        torque_limits: ArrayLike | None = None,
        lead: float = 0.0,
    ) -> None:
        super().__init__(model, actuators, torque_limits, lead)
        self.gains = joint_gains(model.joint_names, [2] * model.n_joints, poles)

    def _demand(self, reference: Array, state: Array) -> Array:
        motion = np.empty((3, self.model.n_joints))
        motion[:2] = state[2:]
        error = shifted(reference[:3], -self.lead)[:2] - motion[:2]
        motion[2] = reference[2] + (self.gains * error).sum(axis=0)
        drives = self.drives
        effort = inverse_dynamics(self.model, motion)[0]
        demand: Array = drives.inertia * motion[2] + effort
        return demand + drives.friction(motion[1])


def _checked(gains: MotorGains | tuple[ArrayLike, ArrayLike], n: int) -> MotorGains:
    try:
        proportional, derivative = gains
    except (TypeError, ValueError):
        raise ControlError(
            f'The gains are {gains!r}, expected a pair of proportional and derivative ones.'
        ) from None
    return MotorGains(
        per_joint('proportional', proportional, n), per_joint('derivative', derivative, n)
    )


def _pd(gains: MotorGains, motors: Array, state: Array) -> Array:
    """Proportional and derivative torques about the wanted motion of the motors."""
    proportional, derivative = gains
    torque: Array = proportional * (motors[0] - state[2]) + derivative * (motors[1] - state[3])
    return torque
