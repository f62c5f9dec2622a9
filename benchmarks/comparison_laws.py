"""Control laws of elastic joints that are here to be compared with those of the package.

Sources: De Luca and Book, "Robots with flexible elements", Springer Handbook of Robotics; Tomei
1991, "A simple PD controller for robots with elastic joints".
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.actuators import Actuators
from hodyn_ros.control import (
    Controller,
    FeedForwardController,
    make_controller,
    motor_gains,
)
from hodyn_ros.control.controller import friction_of
from hodyn_ros.control.values import middle_of_range, shifted
from hodyn_ros.dynamics import gravity_effort, inverse_dynamics

Array = NDArray[np.float64]


class PDGravity(FeedForwardController):
    """Proportional and derivative control of the motors with the weight at the wanted position.

    tau = g(q_d) + P (theta_d - theta) + D (q_d' - theta') with the static deflection
    theta_d = q_d + f^-1(g(q_d)). Source: Tomei 1991; for a reference at rest it is his law, which
    is stable if P and the springs are stiff enough to hold the robot up.
    """

    def __init__(self, actuators: Actuators, gains: Any, **options: Any) -> None:
        super().__init__(actuators.model, actuators, gains, 0, **options)
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
    """

    orders = 3

    def __init__(self, actuators: Actuators, bandwidth: float, **options: Any) -> None:
        super().__init__(actuators.model, actuators, **options)
        self.gains = np.array([[bandwidth**2], [2.0 * bandwidth]])

    def _demand(self, reference: Array, state: Array) -> Array:
        motion = np.empty((3, self.model.n_joints))
        motion[:2] = state[2:]
        error = shifted(reference[:3], -self.lead)[:2] - motion[:2]
        motion[2] = reference[2] + (self.gains * error).sum(axis=0)
        effort = inverse_dynamics(self.model, motion)[0]
        demand: Array = self.motors.inertia * motion[2] + effort
        return demand + friction_of(self.motors, motion[1])


def make_compared(
    kind: str, actuators: Actuators, bandwidth: float, **options: Any
) -> Controller:
    """Make a law by its name: as `make_controller`, also rigid_computed_torque and pd_gravity."""
    model = actuators.model
    if kind == 'rigid_computed_torque':
        return RigidComputedTorque(actuators, bandwidth, **options)
    if kind == 'pd_gravity':
        gains = motor_gains(model, actuators, bandwidth, middle_of_range(model))
        return PDGravity(actuators, gains, **options)
    return make_controller(model, kind, actuators, bandwidth, **options)
