"""Robot models: a tree of bodies with joint screws and inertias, from a URDF, screws or a table.

`RobotModel` is made from a description or from joint screws, `friction` has laws for its joints,
`to_urdf` writes it back, and `motion_limits` and `find_violations` say what it may do.
"""

from hodyn_ros.model import friction
from hodyn_ros.model.friction import friction_from_config
from hodyn_ros.model.inertia import Inertia, Rotor
from hodyn_ros.model.limits import Limits, MotionLimits
from hodyn_ros.model.loops import Coupling, Loop
from hodyn_ros.model.mechanism import BASE, Closure, LinkFrame, Mechanism
from hodyn_ros.model.provenance import Provenance
from hodyn_ros.model.robot import ModelWarning, RobotModel
from hodyn_ros.model.screws import DHRow
from hodyn_ros.model.urdf_writer import to_urdf
from hodyn_ros.model.violations import (
    LimitCheck,
    Violation,
    find_position_violations,
    find_violations,
    motion_limits,
)

__all__ = [
    'BASE',
    'Closure',
    'Coupling',
    'DHRow',
    'Inertia',
    'LimitCheck',
    'Limits',
    'LinkFrame',
    'Loop',
    'Mechanism',
    'ModelWarning',
    'MotionLimits',
    'Provenance',
    'RobotModel',
    'Rotor',
    'Violation',
    'find_position_violations',
    'find_violations',
    'friction',
    'friction_from_config',
    'motion_limits',
    'to_urdf',
]
