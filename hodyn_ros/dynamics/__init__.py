"""Inverse dynamics with time derivatives, one file a formulation, and terms of the equations."""

from hodyn_ros.dynamics.energy import kinetic_energy, potential_energy
from hodyn_ros.dynamics.formulations import FORMULATIONS, BodyEfforts, Formulation
from hodyn_ros.dynamics.forward import HybridDynamics, forward_dynamics, hybrid_dynamics
from hodyn_ros.dynamics.inverse import (
    ENGINE,
    LinkMotionEfforts,
    chosen_algorithm,
    inverse_dynamics,
    inverse_dynamics_from_link_motion,
)
from hodyn_ros.dynamics.loops import (
    LoopEfforts,
    distribute_efforts,
    inter_body_wrenches,
    loop_efforts,
)
from hodyn_ros.dynamics.matrices import coriolis_matrix, gravity_effort, mass_matrix
from hodyn_ros.dynamics.moving_base import (
    FloatingBaseMotion,
    MovingBaseEfforts,
    floating_base_forward_dynamics,
    moving_base_inverse_dynamics,
)
from hodyn_ros.dynamics.partial_derivatives import inverse_dynamics_derivatives
from hodyn_ros.dynamics.regressor import (
    BaseParameters,
    base_parameters,
    joint_regressor,
    parameter_names,
    regressor,
)
from hodyn_ros.dynamics.wrenches import (
    Wrench,
    tool_weight,
    wrench_from_frame,
)

__all__ = [
    'ENGINE',
    'FORMULATIONS',
    'BaseParameters',
    'BodyEfforts',
    'FloatingBaseMotion',
    'Formulation',
    'HybridDynamics',
    'LinkMotionEfforts',
    'LoopEfforts',
    'MovingBaseEfforts',
    'Wrench',
    'base_parameters',
    'chosen_algorithm',
    'coriolis_matrix',
    'distribute_efforts',
    'floating_base_forward_dynamics',
    'forward_dynamics',
    'gravity_effort',
    'hybrid_dynamics',
    'inter_body_wrenches',
    'inverse_dynamics',
    'inverse_dynamics_derivatives',
    'inverse_dynamics_from_link_motion',
    'joint_regressor',
    'kinetic_energy',
    'loop_efforts',
    'mass_matrix',
    'moving_base_inverse_dynamics',
    'parameter_names',
    'potential_energy',
    'regressor',
    'tool_weight',
    'wrench_from_frame',
]
