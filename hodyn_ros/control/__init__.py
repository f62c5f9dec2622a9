"""Tracking controllers of robots with elastic joints, all with the same call.

`tracking_controller` makes the recommended one, which bears wrong models and needs positions
alone. `FlatnessController` linearises a robot that is known exactly; the others are there to
compare. All of them take a reference (5, n), the motion of the links and that of the motors, and
return the torques of the motors. `StateObserver` estimates velocities and external torques.
"""

from hodyn_ros.control.controller import (
    Command,
    Controller,
    ControlWarning,
    gains_from_poles,
    warm_up,
)
from hodyn_ros.control.guards import Guards
from hodyn_ros.control.interaction import (
    CartesianImpedance,
    GravityCompensation,
    InteractionController,
    JointImpedance,
    TorqueControl,
)
from hodyn_ros.control.laws import (
    FeedForwardController,
    FlatnessController,
    MotorGains,
    PDGravity,
    RigidComputedTorque,
    make_controller,
    motor_gains,
)
from hodyn_ros.control.margins import Margins
from hodyn_ros.control.observer import ObservedState, StateObserver
from hodyn_ros.control.tracking import TrackingController, tracking_controller
from hodyn_ros.control.watching import DelaySeen, probing_motion

__all__ = [
    'CartesianImpedance',
    'Command',
    'ControlWarning',
    'Controller',
    'DelaySeen',
    'FeedForwardController',
    'FlatnessController',
    'GravityCompensation',
    'Guards',
    'InteractionController',
    'JointImpedance',
    'Margins',
    'MotorGains',
    'ObservedState',
    'PDGravity',
    'RigidComputedTorque',
    'StateObserver',
    'TorqueControl',
    'TrackingController',
    'gains_from_poles',
    'make_controller',
    'motor_gains',
    'probing_motion',
    'tracking_controller',
    'warm_up',
]
