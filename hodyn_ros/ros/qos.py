"""Quality of service of the topics."""

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

ROBOT_DESCRIPTION = QoSProfile(
    depth=1,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)
"""As robot_state_publisher offers it: also those who come late get the description."""

INPUT = QoSProfile(depth=1000, reliability=ReliabilityPolicy.RELIABLE)
"""Motions and wrenches: what arrives while the node is busy waits, up to a second at 1 kHz."""

OUTPUT = QoSProfile(depth=1000, reliability=ReliabilityPolicy.RELIABLE)
"""Efforts: a burst reaches those who want all of it; others choose a smaller depth."""

EFFORT_TRAJECTORY = QoSProfile(
    depth=1,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)
"""The latest whole answer stays available."""
