"""The names of the public interface, which `hodyn_ros` hands on; see there."""

import hodyn_ros.actuators as actuators
from hodyn_ros.analysis.energy import kinetic_energy, potential_energy
from hodyn_ros.dynamics.combined import inverse_dynamics_from_link_motion
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.dynamics.matrices import coriolis_matrix, gravity_effort, mass_matrix
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.engine.generate import generate_code
from hodyn_ros.errors import HodynError
from hodyn_ros.kinematics.forward import LinkMotion, forward_kinematics
from hodyn_ros.kinematics.inverse import InverseKinematicsOptions, inverse_kinematics
from hodyn_ros.kinematics.jacobian import jacobian
from hodyn_ros.kinematics.redundancy import JointTask, LeastNorm
from hodyn_ros.model import friction
from hodyn_ros.model.inertia import Inertia
from hodyn_ros.model.robot import ModelWarning, RobotModel
from hodyn_ros.model.urdf_writer import to_urdf

__all__ = [
    'HodynError',
    'Inertia',
    'InverseKinematicsOptions',
    'JointTask',
    'LeastNorm',
    'LinkMotion',
    'ModelWarning',
    'RobotModel',
    'Wrench',
    'actuators',
    'coriolis_matrix',
    'forward_kinematics',
    'friction',
    'generate_code',
    'gravity_effort',
    'inverse_dynamics',
    'inverse_dynamics_from_link_motion',
    'inverse_kinematics',
    'jacobian',
    'kinetic_energy',
    'mass_matrix',
    'potential_energy',
    'to_urdf',
]
