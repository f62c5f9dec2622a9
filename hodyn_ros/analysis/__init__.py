"""What follows from a motion and its efforts: energies, exceeded limits, time laws, samples."""

from hodyn_ros.analysis.energy import kinetic_energy, potential_energy
from hodyn_ros.analysis.recorded_signals import Recorded, Signal
from hodyn_ros.analysis.retiming import Retimed, retime
from hodyn_ros.analysis.sampling import ControllerTrajectory, controller_trajectory
from hodyn_ros.analysis.scaling import (
    Limiting,
    StretchedMotion,
    UniformScaling,
    stretched,
    uniform_scaling,
)
from hodyn_ros.analysis.splicing import splice
from hodyn_ros.analysis.stops import (
    Excess,
    StopAnalysis,
    StopCause,
    Undecided,
    find_stop_causes,
)
from hodyn_ros.analysis.timings import NewTiming, new_timing
from hodyn_ros.analysis.unlimited import Unlimited, find_unlimited
from hodyn_ros.model.limits import (
    LimitCheck,
    MotionLimits,
    Violation,
    find_position_violations,
    find_violations,
    motion_limits,
)

__all__ = [
    'ControllerTrajectory', 'Excess', 'LimitCheck', 'Limiting', 'MotionLimits', 'NewTiming',
    'Recorded', 'Retimed', 'Signal', 'StopAnalysis', 'StopCause', 'StretchedMotion',
    'Undecided', 'UniformScaling', 'Unlimited', 'Violation', 'controller_trajectory',
    'find_position_violations', 'find_stop_causes', 'find_unlimited', 'find_violations',
    'kinetic_energy', 'motion_limits', 'new_timing', 'potential_energy', 'retime', 'splice',
    'stretched', 'uniform_scaling',
]  # fmt: skip
