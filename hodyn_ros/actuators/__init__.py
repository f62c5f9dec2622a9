"""Actuators between motors and joints: rigid drives, series elastic, variable stiffness."""

from hodyn_ros.actuators.actuator import Actuator, Motors
from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.config import actuators_from_config, motor_limits_from_config
from hodyn_ros.actuators.deflections import spring_deflections
from hodyn_ros.actuators.limits import MotorLimits, find_motor_violations, motor_limits
from hodyn_ros.actuators.rigid import RigidDrive
from hodyn_ros.actuators.robot import MotorMotion, MotorState, motor_motion, motor_step
from hodyn_ros.actuators.sea import SeriesElastic
from hodyn_ros.actuators.springs import CubicSpring, LinearSpring, PolynomialSpring, Spring
from hodyn_ros.actuators.table_spring import TableSpring
from hodyn_ros.actuators.vsa import VariableStiffness
from hodyn_ros.actuators.vsa_antagonistic import DlrBavs, HyperbolicPair, Qbmove
from hodyn_ros.actuators.vsa_lever import AwasII
from hodyn_ros.actuators.vsa_model import Elastic, VsaModel
from hodyn_ros.actuators.vsa_parameters import vsa_model

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
    'MotorState',
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
    'motor_step',
    'spring_deflections',
    'vsa_model',
]
