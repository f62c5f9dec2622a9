"""What follows from a motion and its efforts: use of limits, why a robot stopped, samples."""

from hodyn_ros.analysis.limits import Along, Unlimited, find_unlimited, limited
from hodyn_ros.analysis.recorded_signals import Recorded, Signal
from hodyn_ros.analysis.sampling import ControllerTrajectory, controller_trajectory
from hodyn_ros.analysis.stop_analysis import Excess, StopAnalysis, StopCause, Undecided
from hodyn_ros.analysis.stops import find_stop_causes
from hodyn_ros.model.limits import MotionLimits
from hodyn_ros.model.margins import checked_margins, with_margins
from hodyn_ros.model.violations import (
    LimitCheck,
    Quantity,
    Violation,
    find_position_violations,
    find_violations,
    motion_limits,
)

__all__ = [
    'Along',
    'ControllerTrajectory',
    'Excess',
    'LimitCheck',
    'MotionLimits',
    'Quantity',
    'Recorded',
    'Signal',
    'StopAnalysis',
    'StopCause',
    'Undecided',
    'Unlimited',
    'Violation',
    'checked_margins',
    'controller_trajectory',
    'find_position_violations',
    'find_stop_causes',
    'find_unlimited',
    'find_violations',
    'limited',
    'motion_limits',
    'with_margins',
]
