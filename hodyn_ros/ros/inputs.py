"""Subscriptions that look at a message before they unpack it.

Messages arrive as the bytes that were sent. What is too large or cannot be unpacked is refused
like any other bad message. (Left to rclpy, a text that is not UTF-8 would vanish uncounted, and a
million names would hold Python's lock for a second.)
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message

from hodyn_ros.errors import HodynError, MessageError, SizeError
from hodyn_ros.ros import qos

# Of messages about one instant: hundreds of joints with long names.
LARGEST_SAMPLE = 256 * 1024


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
    """

    def __init__(
        self,
        node: Node,
        largest: Callable[[], int],
        accepted: Callable[[str], None],
        refused: Callable[[str, Exception], None],
    ) -> None:
        self._node, self._largest = node, largest
        self._accepted, self._refused = accepted, refused

    def subscribe(
        self,
        topic: str,
        kind: type,
        take: Callable[[Any], None],
        profile: QoSProfile,
        is_sample: bool = True,
        as_bytes: bool = False,
        is_settled: bool = True,
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
        """
        qos.create_subscription(
            self._node,
            kind,
            topic,
            partial(
                self._on_message,
                topic,
                None if as_bytes else kind,
                take,
                is_sample,
                is_settled,
            ),
            profile,
            raw=True,
        )

    def _on_message(
        self,
        topic: str,
        kind: type | None,
        take: Callable[[Any], None],
        is_sample: bool,
        is_settled: bool,
        data: bytes,
    ) -> None:
        try:
            largest = self._largest()
            if is_sample:
                largest = min(largest, LARGEST_SAMPLE)
            if len(data) > largest:
                what = 'a message about one instant may have' if is_sample else 'max_message_size'
                raise SizeError(
                    f'The message has {len(data)} bytes, expected no more than {what} '
                    f'({largest}); send it in parts or with what is needed only.'
                )
            take(data if kind is None else _unpacked(data, kind))
        except HodynError as error:
            self._refused(topic, error)
        except Exception as error:  # a fault of ours must not end the node
            self._node.get_logger().error(traceback.format_exc(), throttle_duration_sec=1.0)
            self._refused(topic, error)
        else:
            if is_settled:
                self._accepted(topic)


def _unpacked(data: bytes, kind: type) -> Any:
    try:
        return deserialize_message(data, kind)
    except Exception as error:  # of many classes
        raise MessageError(f'The message cannot be unpacked: {error}') from error
