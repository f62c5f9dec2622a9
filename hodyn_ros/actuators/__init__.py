"""Actuators between motors and joints: rigid drives, series elastic, variable stiffness.

A new law of springs goes into `springs`, a new mechanism of variable stiffness into `mechanisms`
and `kernels`; what they are called in parameters stands in `config`.
"""

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.config import actuators_from_config, motor_limits_from_config
from hodyn_ros.actuators.drives import (
    Actuator,
    Motors,
    RigidDrive,
    SeriesElastic,
    VariableStiffness,
)
from hodyn_ros.actuators.limits import (
    MotorLimits,
    find_motor_violations,
    motor_limits,
    spring_deflections,
)
from hodyn_ros.actuators.mechanisms import (
    AwasII,
    DlrBavs,
    Elastic,
    Qbmove,
    VsaModel,
    vsa_model,
)
from hodyn_ros.actuators.motors import MotorMotion, motor_motion
from hodyn_ros.actuators.springs import (
    CubicSpring,
    LinearSpring,
    PolynomialSpring,
    Spring,
    TableSpring,
)

__all__ = [
    'Actuator',
    'Actuators',
    'AwasII',
    'CubicSpring',
    'DlrBavs',
    'Elastic',
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
