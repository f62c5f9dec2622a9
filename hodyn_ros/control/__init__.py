"""Control laws of robots with elastic joints; each is a `Law`, and all are used alike.

`tracking_controller` makes the recommended one, which bears wrong models and needs positions
alone. `FeedForwardController` controls the motors along a motion, `FlatnessController` linearises
a robot that is known exactly, the others give way to what touches the robot. All of them take a
wanted motion (5, n), the motion of the links and that of the motors, and return the torques of the
motors. `StateObserver` estimates velocities and external torques.
"""

from hodyn_ros.control.controller import Controller, warm_up
from hodyn_ros.control.effort_follower import EffortFollower
from hodyn_ros.control.guarded import GuardedController
from hodyn_ros.control.guards import Guards
from hodyn_ros.control.interaction import (
    CartesianImpedance,
    GravityCompensation,
    InteractionController,
    JointImpedance,
    TorqueControl,
)
from hodyn_ros.control.law import Command, ControlWarning, Law
from hodyn_ros.control.laws import (
    FeedForwardController,
    FlatnessController,
    MotorGains,
    make_controller,
    motor_gains,
)
from hodyn_ros.control.margins import Margins
from hodyn_ros.control.observer import StateObserver
from hodyn_ros.control.tracking import TrackingController, tracking_controller
from hodyn_ros.control.values import ObservedState
from hodyn_ros.control.watching import DelaySeen, probing_motion

__all__ = [
    'CartesianImpedance',
    'Command',
    'ControlWarning',
    'Controller',
    'DelaySeen',
    'EffortFollower',
    'FeedForwardController',
    'FlatnessController',
    'GravityCompensation',
    'GuardedController',
    'Guards',
    'InteractionController',
    'JointImpedance',
    'Law',
    'Margins',
    'MotorGains',
    'ObservedState',
    'StateObserver',
    'TorqueControl',
    'TrackingController',
    'make_controller',
    'motor_gains',
    'probing_motion',
    'tracking_controller',
    'warm_up',
]
