"""What all nodes are made of: their base, parameters, diagnostics, topics, messages, executor."""

from hodyn_ros.ros.base.life import main
from hodyn_ros.ros.base.node import RobotNode

__all__ = ['RobotNode', 'main']
