"""Nodes for ROS 2: `hodyn_node` with its planner, a controller, a simulated robot, a demo.

The nodes are not imported here, since their modules are run as programs:
`hodyn_ros.ros.node.HodynNode` and so on. `RobotNode` is the base of all of them.
"""

from hodyn_ros.ros.base import RobotNode, main
from hodyn_ros.ros.node_settings import NodeSettings

__all__ = ['NodeSettings', 'RobotNode', 'main']
