"""Efforts once more as sensor_msgs/JointState, which plotting tools show joint by joint."""

from __future__ import annotations

import array

from hodyn_msgs.msg import JointEffort
from rclpy.node import Node
from sensor_msgs.msg import JointState

from hodyn_ros.ros import qos
from hodyn_ros.ros.conversions import EFFORT_FIELDS


class Mirrors:
    """Publishes ``~/joint_effort/order_0`` to ``order_2``, each derivative in the field effort.

    Parameters
    ----------
    node : rclpy.node.Node
    """

    def __init__(self, node: Node) -> None:
        self._publishers = [
            qos.create_publisher(node, JointState, f'~/joint_effort/order_{order}', qos.OUTPUT)
            for order in range(len(EFFORT_FIELDS))
        ]

    def publish(self, message: JointEffort) -> None:
        """Publish the orders that a message holds."""
        for field, publisher in zip(EFFORT_FIELDS, self._publishers):
            values: array.array[float] = getattr(message, field)
            if len(values):
                publisher.publish(
                    JointState(header=message.header, name=message.joint_names, effort=values)
                )
