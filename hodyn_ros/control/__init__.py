"""Tracking controllers of robots with elastic joints, all with the same call.

`FeedForwardController` with all derivatives is the one to begin with. `FlatnessController`
linearises a robot that is known exactly; the others are there to compare. All of them take a
reference (5, n), the motion of the links and that of the motors, and return the torques of the
motors.
"""

from hodyn_ros.control.controller import Command, Controller, gains_from_poles, warm_up
from hodyn_ros.control.laws import (
    ControlWarning,
    FeedForwardController,
    FlatnessController,
    MotorGains,
    PDGravity,
    RigidComputedTorque,
    make_controller,
    motor_gains,
)

__all__ = [
    'Command',
    'ControlWarning',
    'Controller',
    'FeedForwardController',
    'FlatnessController',
    'MotorGains',
    'PDGravity',
    'RigidComputedTorque',
    'gains_from_poles',
    'make_controller',
    'motor_gains',
    'warm_up',
]
