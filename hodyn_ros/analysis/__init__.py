"""What follows from a motion and its efforts: energies, exceeded limits, other time laws."""

from hodyn_ros.analysis.energy import kinetic_energy, potential_energy
from hodyn_ros.analysis.retiming import Retimed, retime
from hodyn_ros.analysis.scaling import (
    Limiting,
    StretchedMotion,
    UniformScaling,
    stretched,
    uniform_scaling,
)
from hodyn_ros.model.limits import (
    LimitCheck,
    MotionLimits,
    Violation,
    find_position_violations,
    find_violations,
    motion_limits,
)

__all__ = [
    'LimitCheck',
    'Limiting',
    'MotionLimits',
    'Retimed',
    'StretchedMotion',
    'UniformScaling',
    'Violation',
    'find_position_violations',
    'find_violations',
    'kinetic_energy',
    'motion_limits',
    'potential_energy',
    'retime',
    'stretched',
    'uniform_scaling',
]
