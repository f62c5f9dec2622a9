"""Subscriptions that look at a message before they unpack it, and take all that waits at once.

Messages arrive as the bytes that were sent. What is too large or cannot be unpacked is refused
like any other bad message. (Left to rclpy, a text that is not UTF-8 would vanish uncounted, and a
million names would hold Python's lock for a second.)
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message
from rclpy.subscription import Subscription

from hodyn_ros.errors import HodynError, MessageError, SizeError
from hodyn_ros.ros import qos
from hodyn_ros.ros.conversions import NANOSECONDS

try:
    from rclpy.event_handler import SubscriptionEventCallbacks
except ImportError:  # ROS 2 Humble
    from rclpy.qos_event import SubscriptionEventCallbacks

# Of messages about one instant: hundreds of joints with long names.
LARGEST_SAMPLE = 256 * 1024

# Messages that are taken one after the other before other topics have their turn.
MOST_AT_ONCE = 16

# Publishers whose latest number is known; of those that come and go, all are forgotten.
_MOST_PUBLISHERS = 64


class _Input(NamedTuple):
    """How the messages of a topic are taken."""

    topic: str
    kind: type
    take: Callable[[Any], None]
    is_sample: bool
    as_bytes: bool
    is_settled: bool
    then: Callable[[], None] | None
    numbers: dict[bytes, int]
    """Latest number of every publisher, by its identity."""


class Inputs:
    """Makes the subscriptions of a node.

    Parameters
    ----------
    node : rclpy.node.Node
    largest : callable
        Returns the largest size that any message may have [bytes].
    accepted : callable
        Is called with the topic of every message that was taken.
    refused : callable
        Is called with the topic and the error of every message that was not.
    arrived : callable, optional
        Is called with the topic of every message, the time since it has arrived [s], and how many
        from the same publisher never came to the node between it and the one before.
    lost : callable, optional
        Is called with the topic of samples and how many of them the middleware says to have lost.
        Who counts these watches publishers too, see `unheard_publishers`: rclpy does not warn of
        those that do not fit then. (Every kind of event costs time with every message.)
    """

    def __init__(
        self,
        node: Node,
        largest: Callable[[], int],
        accepted: Callable[[str], None],
        refused: Callable[[str, Exception], None],
        arrived: Callable[[str, float, int], None] | None = None,
        lost: Callable[[str, int], None] | None = None,
    ) -> None:
        self._node, self._largest = node, largest
        self._accepted, self._refused = accepted, refused
        self._arrived, self._lost = arrived, lost
        self._received = 0
        self.subscriptions: dict[str, Subscription] = {}

    @property
    def arrival(self) -> int:
        """Time at which the message that is being taken has arrived, by the node's clock [ns]."""
        clock = self._node.get_clock()
        now: int = clock.now().nanoseconds
        # The middleware tells the time of the system; what a simulation showed then is not known.
        is_known = self._received > 0 and not clock.ros_time_is_active
        return min(self._received, now) if is_known else now

    def subscribe(
        self,
        topic: str,
        kind: type,
        take: Callable[[Any], None],
        profile: QoSProfile,
        is_sample: bool = True,
        as_bytes: bool = False,
        is_settled: bool = True,
        then: Callable[[], None] | None = None,
    ) -> None:
        """Subscribe to a topic.

        Parameters
        ----------
        topic : str
        kind : type
            Of its messages.
        take : callable
            Takes a message; raises HodynError if it cannot be used.
        profile : rclpy.qos.QoSProfile
        is_sample : bool
            Whether a message is about one instant, and small therefore.
        as_bytes : bool
            Whether `take` gets the message as it was sent.
        is_settled : bool
            Whether a message that `take` takes is accepted with that; otherwise others say later
            what became of it.
        then : callable, optional
            Is called when all messages that waited have been taken; may raise as `take` may.
        """
        entry = _Input(topic, kind, take, is_sample, as_bytes, is_settled, then, {})
        events = SubscriptionEventCallbacks(use_default_callbacks=self._lost is None)
        if is_sample and self._lost is not None:
            lost = self._lost
            events.message_lost = lambda info: lost(topic, info.total_count_change)

        def receive(data: bytes, info: Mapping[str, Any]) -> None:
            self._on_message(entry, data, info)

        # In ROS 2 Humble, callbacks are told nothing of a message.
        self.subscriptions[topic] = qos.create_subscription(
            self._node,
            kind,
            topic,
            receive if hasattr(Subscription, 'CallbackType') else lambda data: receive(data, {}),
            profile,
            raw=True,
            event_callbacks=events,
        )

    def _on_message(self, entry: _Input, data: bytes, info: Mapping[str, Any]) -> None:
        """Take a message and those that wait behind it.

        Each turn of the executor costs more than a message, so that one with a message each would
        let them pile up just when the node is late.
        """
        waiting = self.subscriptions[entry.topic].handle
        for number in range(MOST_AT_ONCE):
            if number:
                following = waiting.take_message(entry.kind, True)
                if following is None:
                    break
                data, info = following
            self._received = info.get('received_timestamp', 0)
            if self._arrived is not None:
                received = self._received or time.time_ns()  # 0: the middleware does not say
                late = max(time.time_ns() - received, 0) / NANOSECONDS
                self._arrived(entry.topic, late, _left_out(entry.numbers, info))
            if self._is_done(entry, self._take, entry, data) and entry.is_settled:
                self._accepted(entry.topic)
        if entry.then is not None:
            self._is_done(entry, entry.then)

    def _is_done(self, entry: _Input, call: Callable[..., None], *arguments: Any) -> bool:
        """Call something; what it raises is a refusal."""
        try:
            call(*arguments)
        except HodynError as error:
            self._refused(entry.topic, error)
        except Exception as error:  # a fault of ours must not end the node
            self._node.get_logger().error(traceback.format_exc(), throttle_duration_sec=1.0)
            self._refused(entry.topic, error)
        else:
            return True
        return False

    def _take(self, entry: _Input, data: bytes) -> None:
        largest = self._largest()
        if entry.is_sample:
            largest = min(largest, LARGEST_SAMPLE)
        if len(data) > largest:
            what = (
                'a message about one instant may have' if entry.is_sample else 'max_message_size'
            )
            raise SizeError(
                f'The message has {len(data)} bytes, expected no more than {what} '
                f'({largest}); send it in parts or with what is needed only.'
            )
        entry.take(data if entry.as_bytes else _unpacked(data, entry.kind))


def _left_out(numbers: dict[bytes, int], info: Mapping[str, Any]) -> int:
    """Count the messages of a publisher that never came, since its last one that did."""
    number, publisher = info.get('publication_sequence_number'), info.get('publisher_gid')
    if number is None or publisher is None:
        return 0  # other middleware does not number them, and ROS 2 before Kilted does not say
    identity = publisher['data']
    before = numbers.get(identity, number)
    if len(numbers) > _MOST_PUBLISHERS:
        numbers.clear()
    numbers[identity] = number
    return max(number - before - 1, 0)


def _unpacked(data: bytes, kind: type) -> Any:
    try:
        return deserialize_message(data, kind)
    except Exception as error:  # of many classes
        raise MessageError(f'The message cannot be unpacked: {error}') from error
