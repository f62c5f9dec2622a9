"""Actuators between motors and joints: rigid drives, series elastic, variable stiffness.

A new law of springs goes into `springs`, a new mechanism of variable stiffness into
`vsa.mechanisms`; what they are called in parameters stands in `config`.
"""

from hodyn_ros.actuators.actuator import Actuator, Motors, RigidDrive
from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.config import actuators_from_config, motor_limits_from_config
from hodyn_ros.actuators.limits import (
    MotorLimits,
    find_motor_violations,
    motor_limits,
    spring_deflections,
)
from hodyn_ros.actuators.motors import MotorMotion, motor_motion
from hodyn_ros.actuators.sea import SeriesElastic
from hodyn_ros.actuators.springs import (
    CubicSpring,
    LinearSpring,
    PolynomialSpring,
    Spring,
    TableSpring,
)
from hodyn_ros.actuators.vsa.mechanisms import (
    AwasII,
    DlrBavs,
    HyperbolicPair,
    Qbmove,
    vsa_model,
)
from hodyn_ros.actuators.vsa.model import Elastic, VariableStiffness, VsaModel

__all__ = [
    'Actuator',
    'Actuators',
    'AwasII',
    'CubicSpring',
    'DlrBavs',
    'Elastic',
    'HyperbolicPair',
    'LinearSpring',
    'MotorLimits',
    'MotorMotion',
    'Motors',
    'PolynomialSpring',
    'Qbmove',
    'RigidDrive',
    'SeriesElastic',
    'Spring',
    'TableSpring',
    'VariableStiffness',
    'VsaModel',
    'actuators_from_config',
    'find_motor_violations',
    'motor_limits',
    'motor_limits_from_config',
    'motor_motion',
    'spring_deflections',
    'vsa_model',
]
