"""Inputs of a node: messages as bytes, looked at before they are unpacked, counted and watched.

rclpy would drop uncounted what is not UTF-8, and unpack a million names.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message
from rclpy.subscription import Subscription

from hodyn_ros.errors import MessageError, SizeError
from hodyn_ros.ros.base import qos
from hodyn_ros.ros.base.diagnostics import LOST, publisher_names, unheard_publishers

if TYPE_CHECKING:
    from hodyn_ros.ros.base.node import RobotNode

try:
    from rclpy.event_handler import SubscriptionEventCallbacks
except ImportError:  # ROS 2 Humble
    from rclpy.qos_event import SubscriptionEventCallbacks

DESCRIPTION = 'robot_description'

LARGEST_SAMPLE = 256 * 1024  # bytes, about one instant: hundreds of joints with long names
MOST_AT_ONCE = 16  # messages that are taken before other topics have their turn
_LARGEST_MESSAGE = 64 * 2**20  # bytes, of nodes without a parameter for it

# Publishers whose latest number is known; of those that come and go, all are forgotten.
_MOST_PUBLISHERS = 64

_NO_COUNT = 2**31 - 1  # from here on, what the middleware says of lost messages is none


@dataclass(eq=False)
class Input:
    """A subscription that looks at a message before it unpacks it.

    `take` is called with every message; it raises HodynError against bad ones. A sample is about
    one instant, small therefore, and accepted when it has been taken; of others it is said later
    what has become of them. `then` is called when all messages that waited have been taken, and
    may raise as `take` may.
    """

    node: RobotNode[Any]
    topic: str
    kind: type
    take: Callable[[Any], None]
    profile: QoSProfile
    is_sample: bool = True
    as_bytes: bool = False
    then: Callable[[], object] = bool  # which does nothing

    def __post_init__(self) -> None:
        self._numbers: dict[bytes, int] = {}  # the latest of every publisher
        self._warned: set[str] = set()  # what is said of publishers that are there
        node, topic = self.node, self.topic
        self.health = node.diagnostics.input(topic)
        # Who counts what is lost watches publishers too: rclpy need not warn of those that do not
        # fit. (Every kind of event costs time with every message.)
        events = SubscriptionEventCallbacks(use_default_callbacks=False)
        if self.is_sample:
            events.message_lost = self.count_lost
        receive: Callable[..., None] = self.receive
        if not hasattr(Subscription, 'CallbackType'):  # ROS 2 Humble tells nothing of a message
            receive = partial(self.receive, info={})
        self.subscription = qos.create_subscription(
            node, self.kind, topic, receive, self.profile, raw=True, event_callbacks=events
        )

    def receive(self, data: bytes, info: Mapping[str, Any]) -> None:
        """Take a message and those that wait behind it: a turn each costs more than a message."""
        node, health, waiting = self.node, self.health, self.subscription.handle
        largest = getattr(node.settings, 'max_message_size', _LARGEST_MESSAGE)
        bound = 'max_message_size'
        if self.is_sample and largest > LARGEST_SAMPLE:
            largest, bound = LARGEST_SAMPLE, 'a message about one instant may have'
        for number in range(MOST_AT_ONCE):
            if number:
                following = waiting.take_message(self.kind, True)
                if following is None:
                    break
                data, info = following
            # 0: the middleware does not say.
            node.received = info.get('received_timestamp', 0)
            now = time.time_ns()
            late, left_out = max(now - (node.received or now), 0), 0
            # Other middleware does not number messages, and ROS 2 before Kilted is silent.
            count, publisher = info.get('publication_sequence_number'), info.get('publisher_gid')
            if count is not None and publisher is not None:
                left_out = max(count - self._numbers.get(publisher['data'], count) - 1, 0)
                if len(self._numbers) > _MOST_PUBLISHERS:
                    self._numbers.clear()
                self._numbers[publisher['data']] = count
            try:
                if len(data) > largest:
                    raise SizeError(
                        f'The message has {len(data)} bytes, expected no more than {bound} '
                        f'({largest}); send it in parts or with what is needed only.'
                    )
                try:
                    message = data if self.as_bytes else deserialize_message(data, self.kind)
                except Exception as error:  # of many classes
                    raise MessageError(f'The message cannot be unpacked: {error}') from error
                self.take(message)
            except Exception as error:  # a fault of ours must not end the node
                health.arrived(late, left_out, is_taken=False)
                node.refuse(self.topic, error, self.topic != 'joint_trajectory')
            else:
                health.arrived(late, left_out, self.is_sample)
        try:
            self.then()
        except Exception as error:
            node.refuse(self.topic, error)

    def count_lost(self, info: Any) -> None:
        """Count what the middleware reports as lost on its way."""
        # Fast DDS subtracts numbers without sign and cuts the difference at 2^31 - 1: so much is
        # lost where a message does not come behind the one before, and the next sum overflows.
        if info.total_count_change < _NO_COUNT:
            self.health.add(LOST, info.total_count_change)

    def watch_publishers(self) -> None:
        """Note who publishes, and warn of those who are not heard."""
        node, health = self.node, self.health
        unheard = unheard_publishers(node, self.subscription)
        for why in set(unheard) - self._warned:
            node.get_logger().warning(why)
        self._warned = set(unheard)  # of those that have gone, all is forgotten
        if self.topic != DESCRIPTION:
            health.publishers = publisher_names(node, self.topic)
            health.unheard = unheard
