"""Motion of links: poses, twists and Jacobians with time derivatives, and the way back to joints.

All of them take and give derivatives of any order, in body, spatial or hybrid expression.
"""

from hodyn_ros.kinematics.closed_loops import complete_motion
from hodyn_ros.kinematics.forward import LinkMotion, forward_kinematics
from hodyn_ros.kinematics.inverse import (
    InverseKinematicsOptions,
    InverseKinematicsSolution,
    inverse_kinematics,
)
from hodyn_ros.kinematics.jacobian import jacobian
from hodyn_ros.kinematics.loop_states import (
    CompletedJointState,
    LoopSingularity,
    complete_joint_state,
    loop_singularity,
)
from hodyn_ros.kinematics.redundancy import JointTask, LeastNorm

__all__ = [
    'CompletedJointState',
    'InverseKinematicsOptions',
    'InverseKinematicsSolution',
    'JointTask',
    'LeastNorm',
    'LinkMotion',
    'LoopSingularity',
    'complete_joint_state',
    'complete_motion',
    'forward_kinematics',
    'inverse_kinematics',
    'jacobian',
    'loop_singularity',
]
