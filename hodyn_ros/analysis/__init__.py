"""What follows from a motion and its efforts: exceeded limits, why a robot stopped, samples.

Names of `hodyn_ros.retiming` may be imported from here, too.
"""

from hodyn_ros.analysis.recorded_signals import Recorded, Signal
from hodyn_ros.analysis.sampling import ControllerTrajectory, controller_trajectory
from hodyn_ros.analysis.stops import (
    Excess,
    StopAnalysis,
    StopCause,
    Undecided,
    find_stop_causes,
)
from hodyn_ros.analysis.unlimited import Unlimited, find_unlimited
from hodyn_ros.model.limits import MotionLimits
from hodyn_ros.model.violations import (
    LimitCheck,
    Violation,
    find_position_violations,
    find_violations,
    motion_limits,
)
from hodyn_ros.retiming import (
    Limiting,
    NewTiming,
    Retimed,
    StretchedMotion,
    UniformScaling,
    new_timing,
    retime,
    splice,
    stretched,
    uniform_scaling,
)

__all__ = [
    'ControllerTrajectory',
    'Excess',
    'LimitCheck',
    'Limiting',
    'MotionLimits',
    'NewTiming',
    'Recorded',
    'Retimed',
    'Signal',
    'StopAnalysis',
    'StopCause',
    'StretchedMotion',
    'Undecided',
    'UniformScaling',
    'Unlimited',
    'Violation',
    'controller_trajectory',
    'find_position_violations',
    'find_stop_causes',
    'find_unlimited',
    'find_violations',
    'motion_limits',
    'new_timing',
    'retime',
    'splice',
    'stretched',
    'uniform_scaling',
]
