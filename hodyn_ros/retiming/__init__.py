"""How fast a motion may be: scaled by one factor, along its path, or led over to another one."""

from hodyn_ros.retiming.retiming import Retimed, retime
from hodyn_ros.retiming.scaling import (
    Limiting,
    StretchedMotion,
    UniformScaling,
    stretched,
    uniform_scaling,
)
from hodyn_ros.retiming.splicing import splice
from hodyn_ros.retiming.timings import NewTiming, new_timing

__all__ = [
    'Limiting',
    'NewTiming',
    'Retimed',
    'StretchedMotion',
    'UniformScaling',
    'new_timing',
    'retime',
    'splice',
    'stretched',
    'uniform_scaling',
]
