"""Nodes for ROS 2: `hodyn_node` with its planner, a controller, a simulated robot, a demo.

The nodes are in `hodyn_ros.ros.nodes`, what they are made of in `hodyn_ros.ros.base`, planning
beside the stream in `hodyn_ros.ros.planner`.
"""

from hodyn_ros.ros.base.life import main
from hodyn_ros.ros.base.node import RobotNode
from hodyn_ros.ros.base.node_settings import NodeSettings

__all__ = ['NodeSettings', 'RobotNode', 'main']
