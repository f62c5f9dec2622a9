"""Quality of service of the topics: the profiles, and topics whose profile users may override."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from rcl_interfaces.msg import SetParametersResult
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import (
    DurabilityPolicy,
    HistoryPolicy,
    QoSPolicyKind,
    QoSProfile,
    ReliabilityPolicy,
)
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.subscription import Subscription

ROBOT_DESCRIPTION: QoSProfile = QoSProfile(
    depth=1,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)
"""As robot_state_publisher offers it: also those who come late get the description."""

NEWEST: QoSProfile = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
"""Motions of one instant: while the node is busy, a newer one takes the place of an older one."""

INPUT: QoSProfile = QoSProfile(depth=16, reliability=ReliabilityPolicy.RELIABLE)
"""Given in several messages, such as the wrenches on several links, and trajectories: the
middleware keeps the memory of as many large messages as may wait."""

SENSOR_INPUT: QoSProfile = QoSProfile(depth=16, reliability=ReliabilityPolicy.BEST_EFFORT)
"""Measurements: who asks for best effort is served by reliable publishers and by sensors."""

SERIES_DEPTH = 1000
"""Of an input of which every message is wanted: a second at 1 kHz."""

OUTPUT: QoSProfile = QoSProfile(depth=SERIES_DEPTH, reliability=ReliabilityPolicy.RELIABLE)
"""Efforts: a burst reaches those who want all of it; others choose a smaller depth."""

EFFORT_TRAJECTORY: QoSProfile = ROBOT_DESCRIPTION
"""The latest whole answer stays available likewise."""


def create_subscription(
    node: Node,
    kind: type,
    topic: str,
    callback: Callable[..., None],
    profile: QoSProfile,
    **options: Any,
) -> Subscription:
    """Subscription to a topic, with a profile that parameters may override.

    Parameters
    ----------
    node : Node
    kind : type
        Of the messages.
    topic : str
    callback : callable
    profile : QoSProfile
        Stays as it is.
    **options
        Of `rclpy.node.Node.create_subscription`.

    Returns
    -------
    Subscription
    """
    # rclpy writes overrides into the profile that it is given: other nodes would have them too.
    options['qos_overriding_options'] = _OVERRIDING
    return node.create_subscription(kind, topic, callback, copy.copy(profile), **options)


def create_publisher(node: Node, kind: type, topic: str, profile: QoSProfile) -> Publisher:
    """Publisher on a topic, with a profile that parameters may override.

    Parameters
    ----------
    node : Node
    kind : type
        Of the messages.
    topic : str
    profile : QoSProfile
        Stays as it is.

    Returns
    -------
    Publisher
    """
    profile = copy.copy(profile)
    return node.create_publisher(kind, topic, profile, qos_overriding_options=_OVERRIDING)


def as_series(profile: QoSProfile) -> QoSProfile:
    """Profile of an input that keeps the latest `SERIES_DEPTH` messages until they are taken.

    Parameters
    ----------
    profile : QoSProfile
        Stays as it is.

    Returns
    -------
    QoSProfile
    """
    kept = copy.copy(profile)
    kept.depth = SERIES_DEPTH
    return kept


def _checked(profile: QoSProfile) -> SetParametersResult:
    """Refuse what the middleware would take without keeping any message."""
    if profile.history == HistoryPolicy.KEEP_LAST and profile.depth < 1:
        return SetParametersResult(
            successful=False,
            reason=f'depth is {profile.depth}, expected 1 or more where history is keep_last',
        )
    return SetParametersResult(successful=True)


# The parameters ``qos_overrides.<topic>.<subscription|publisher>.<policy>`` set these policies.
_OVERRIDING = QoSOverridingOptions(
    (
        QoSPolicyKind.HISTORY,
        QoSPolicyKind.DEPTH,
        QoSPolicyKind.RELIABILITY,
        QoSPolicyKind.DURABILITY,
    ),
    callback=_checked,
)
