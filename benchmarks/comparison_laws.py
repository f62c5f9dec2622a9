"""Control laws of elastic joints that are here to be compared with those of the package.

Sources: De Luca and Book, "Robots with flexible elements", Springer Handbook of Robotics; Tomei
1991, "A simple PD controller for robots with elastic joints".
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.actuators import Actuators
from hodyn_ros.control import (
    Controller,
    FeedForwardController,
    MotorGains,
    make_controller,
    motor_gains,
)
from hodyn_ros.control.controller import friction_of, joint_gains
from hodyn_ros.control.law import middle_of_range, shifted
from hodyn_ros.dynamics import gravity_effort, inverse_dynamics
from hodyn_ros.model.robot import RobotModel

Array = NDArray[np.float64]


class PDGravity(FeedForwardController):
    """Proportional and derivative control of the motors with the weight at the wanted position.

    tau = g(q_d) + P (theta_d - theta) + D (q_d' - theta') with the static deflection
    theta_d = q_d + f^-1(g(q_d)). Source: Tomei 1991; for a reference at rest it is his law, which
    is stable if P and the springs are stiff enough to hold the robot up.

    Parameters
    ----------
    gains : MotorGains
        See `FeedForwardController`.
    model, actuators, torque_limits, lead
        See `Controller`. What is fed forward is that of the later time.

    Raises
    ------
    ControlError
        If the actuators or gains cannot be used.
    """

    def __init__(
        self,
        model: RobotModel,
        actuators: Actuators,
        gains: MotorGains | tuple[ArrayLike, ArrayLike],
        torque_limits: ArrayLike | None = None,
        lead: float = 0.0,
    ) -> None:
        super().__init__(model, actuators, gains, 0, torque_limits, lead)
        self.orders = 2

    def _demand(self, reference: Array, state: Array) -> Array:
        weight = gravity_effort(self.model, reference[:1])
        # The weight changes little meanwhile.
        wanted = shifted(reference[:2], -self.lead).copy()
        wanted[:1] += self.motors.deflections(weight)
        proportional, derivative = self.gains
        feedback = proportional * (wanted[0] - state[2])
        feedback += derivative * (wanted[1] - state[3])
        return weight[0] + feedback


class RigidComputedTorque(Controller):
    """Computed torque for a robot that is taken for rigid: the motors are where the links are.

    tau = (M(theta) + B) (q_d'' + k1 (q_d' - theta') + k0 (q_d - theta)) + h(theta, theta')
    + friction(theta'), measured at the motors only. The links are off by the deflection of the
    springs.

    Parameters
    ----------
    poles : float, array-like or mapping
        Two for each joint or a bandwidth, see `FlatnessController`.
    model, actuators, torque_limits, lead
        See `Controller`; the springs are not looked at. What is fed forward is that of the later
        time.

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
        effort = inverse_dynamics(self.model, motion)[0]
        demand: Array = self.motors.inertia * motion[2] + effort
        return demand + friction_of(self.motors, motion[1])


def make_compared(
    model: RobotModel,
    kind: str,
    actuators: Actuators,
    bandwidth: ArrayLike,
    torque_limits: ArrayLike | None = None,
    lead: float = 0.0,
) -> Controller:
    """Make a law by its name: as `make_controller`, also rigid_computed_torque and pd_gravity.

    Parameters
    ----------
    model, kind, actuators, bandwidth, torque_limits, lead
        See `make_controller`.

    Raises
    ------
    ControlError
        If the law is unknown or something cannot be used.

    Returns
    -------
    Controller
    """
    options: Any = {'torque_limits': torque_limits, 'lead': lead}
    if kind == 'rigid_computed_torque':
        return RigidComputedTorque(model, actuators, bandwidth, **options)
    if kind == 'pd_gravity':
        gains = motor_gains(model, actuators, bandwidth, middle_of_range(model))
        return PDGravity(model, actuators, gains, **options)
    return make_controller(model, kind, actuators, bandwidth, **options)
