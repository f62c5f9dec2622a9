"""Quality of service of the topics."""

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

ROBOT_DESCRIPTION = QoSProfile(
    depth=1,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)
"""As robot_state_publisher offers it: also those who come late get the description."""

INPUT = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE)
"""Motions and wrenches: no sample may be lost."""

OUTPUT = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE)
"""Efforts."""

EFFORT_TRAJECTORY = QoSProfile(
    depth=1,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)
"""The latest whole answer stays available."""
