"""How fast a motion may be: scaled by one factor, timed anew along its path, or spliced."""

from hodyn_ros.retiming.robot_limits import Limiting, UniformScaling
from hodyn_ros.retiming.scaling import stretched, uniform_scaling
from hodyn_ros.retiming.splicing import splice
from hodyn_ros.retiming.timing import NewTiming, new_timing, retime

__all__ = [
    'Limiting',
    'NewTiming',
    'UniformScaling',
    'new_timing',
    'retime',
    'splice',
    'stretched',
    'uniform_scaling',
]
