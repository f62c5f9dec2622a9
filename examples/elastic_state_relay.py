"""A node for drivers that publish links and motors as two JointState messages of equal stamps.

    python examples/elastic_state_relay.py

makes one hodyn_msgs/ElasticState of the topics joint_states and motor_states, for
flatness_controller. A driver that reads both at once does better to publish it itself.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import rclpy
from hodyn_msgs.msg import ElasticState
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState

TOPICS = ('joint_states', 'motor_states')
WAITING = 16  # measurements without their other half


class ElasticStateRelay(Node):
    """Node that publishes elastic_state.

    Parameters
    ----------
    **node_options
        Of `rclpy.node.Node`.
    """

    def __init__(self, **node_options: Any) -> None:
        super().__init__('elastic_state_relay', **node_options)
        self._publisher = self.create_publisher(ElasticState, 'elastic_state', 10)
        self._waiting: tuple[dict, dict] = {}, {}
        for half, topic in enumerate(TOPICS):
            take = partial(self._take, half)
            self.create_subscription(JointState, topic, take, qos_profile_sensor_data)

    def _take(self, half: int, message: JointState) -> None:
        stamp = message.header.stamp.sec, message.header.stamp.nanosec
        own, other = self._waiting[half], self._waiting[1 - half]
        own[stamp] = message
        if stamp in other:
            links, motors = (waiting.pop(stamp) for waiting in self._waiting)
            self._publisher.publish(
                ElasticState(
                    header=links.header,
                    joint_names=links.name,
                    position=links.position,
                    velocity=links.velocity,
                    spring_torque=links.effort,
                    motor_names=motors.name,
                    motor_position=motors.position,
                    motor_velocity=motors.velocity,
                    motor_torque=motors.effort,
                )
            )
        elif len(own) > WAITING:
            del own[next(iter(own))]


if __name__ == '__main__':
    rclpy.init()
    rclpy.spin(ElasticStateRelay())
