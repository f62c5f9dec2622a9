"""Tracking controllers of robots with elastic joints, all with the same call.

`FlatnessController` linearises the robot exactly; the others are what it is compared with. All of
them take a reference (5, n), the motion of the links and that of the motors, and return the
torques of the motors.
"""

from hodyn_ros.control.controller import Command, Controller, warm_up
from hodyn_ros.control.feed_forward import (
    FeedForwardController,
    MotorGains,
    PDGravity,
    RigidComputedTorque,
    motor_gains,
)
from hodyn_ros.control.flatness import FlatnessController
from hodyn_ros.control.gains import gains_from_poles

__all__ = [
    'Command',
    'Controller',
    'FeedForwardController',
    'FlatnessController',
    'MotorGains',
    'PDGravity',
    'RigidComputedTorque',
    'gains_from_poles',
    'motor_gains',
    'warm_up',
]
