"""Joint torques of rigid-body robots with their exact time derivatives.

A `RobotModel` comes from a robot description, `inverse_dynamics` gives joint efforts and their
derivatives, `forward_kinematics` poses and twists, and `HodynError` is what goes wrong. Each
package has more names of its own: `hodyn_ros.trajectory`, `hodyn_ros.retiming`,
`hodyn_ros.actuators` and so on. Only `hodyn_ros.ros` needs a ROS installation.

Names are imported when they are asked for, so that importing this package takes no time.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hodyn_ros import actuators
    from hodyn_ros.codegen import generate_code
    from hodyn_ros.dynamics import (
        Wrench,
        base_parameters,
        coriolis_matrix,
        floating_base_forward_dynamics,
        forward_dynamics,
        gravity_effort,
        hybrid_dynamics,
        inverse_dynamics,
        inverse_dynamics_derivatives,
        inverse_dynamics_from_link_motion,
        joint_regressor,
        kinetic_energy,
        mass_matrix,
        moving_base_inverse_dynamics,
        potential_energy,
        regressor,
    )
    from hodyn_ros.errors import HodynError
    from hodyn_ros.kinematics import (
        InverseKinematicsOptions,
        JointTask,
        LeastNorm,
        LinkMotion,
        forward_kinematics,
        inverse_kinematics,
        jacobian,
    )
    from hodyn_ros.model import Inertia, ModelWarning, RobotModel, friction, to_urdf

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
    'base_parameters',
    'coriolis_matrix',
    'floating_base_forward_dynamics',
    'forward_dynamics',
    'forward_kinematics',
    'friction',
    'generate_code',
    'gravity_effort',
    'hybrid_dynamics',
    'inverse_dynamics',
    'inverse_dynamics_derivatives',
    'inverse_dynamics_from_link_motion',
    'inverse_kinematics',
    'jacobian',
    'joint_regressor',
    'kinetic_energy',
    'mass_matrix',
    'moving_base_inverse_dynamics',
    'potential_energy',
    'regressor',
    'to_urdf',
]

_PACKAGES = (
    'actuators',
    'analysis',
    'checks',
    'codegen',
    'control',
    'datasets',
    'dynamics',
    'engine',
    'errors',
    'files',
    'identification',
    'kinematics',
    'lie',
    'model',
    'names',
    'plotting',
    'resources',
    'retiming',
    'simulation',
    'trajectory',
    'typing',
    'units',
)


def __getattr__(name: str) -> Any:
    if name == '__version__':
        return import_module(f'{__name__}.resources').package_version()
    if name in _PACKAGES:
        return import_module(f'{__name__}.{name}')
    if name in __all__:
        # One imports the next, so that nothing is loaded in vain.
        for package in ('errors', 'model', 'kinematics', 'dynamics', 'codegen'):
            names = vars(import_module(f'{__name__}.{package}'))
            if name in names:
                return globals().setdefault(name, names[name])
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES})
