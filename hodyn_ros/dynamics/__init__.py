"""Inverse dynamics with time derivatives, one file a formulation, and terms of the equations."""

from hodyn_ros.dynamics.inverse import (
    ENGINE,
    FORMULATIONS,
    BodyEfforts,
    Formulation,
    LinkMotionEfforts,
    chosen_algorithm,
    inter_body_wrenches,
    inverse_dynamics,
    inverse_dynamics_from_link_motion,
)
from hodyn_ros.dynamics.matrices import coriolis_matrix, gravity_effort, mass_matrix
from hodyn_ros.dynamics.regressor import (
    BaseParameters,
    base_parameters,
    joint_regressor,
    regressor,
)
from hodyn_ros.dynamics.wrenches import Wrench, brought_to_rest, tool_weight, wrench_from_frame

__all__ = [
    'ENGINE', 'FORMULATIONS', 'BaseParameters', 'BodyEfforts', 'Formulation', 'LinkMotionEfforts',
    'Wrench', 'base_parameters', 'brought_to_rest', 'chosen_algorithm', 'coriolis_matrix',
    'gravity_effort', 'inter_body_wrenches', 'inverse_dynamics',
    'inverse_dynamics_from_link_motion', 'joint_regressor', 'mass_matrix', 'regressor',
    'tool_weight', 'wrench_from_frame',
]  # fmt: skip
