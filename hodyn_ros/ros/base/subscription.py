"""Inputs of a node: messages as bytes, looked at before they are unpacked, counted and watched.

rclpy would drop uncounted what is not UTF-8, and unpack a million names.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message
from rclpy.subscription import Subscription

from hodyn_ros.errors import HodynError, MessageError, SizeError
from hodyn_ros.ros.base import qos
from hodyn_ros.ros.base.diagnostics import Diagnostics, publisher_names, unheard_publishers
from hodyn_ros.ros.base.executor import take_following
from hodyn_ros.streams.health import LEFT_OUT, LOST, InputHealth
from hodyn_ros.streams.robot_in_use import DESCRIPTION

try:
    from rclpy.event_handler import SubscriptionEventCallbacks
except ImportError:  # ROS 2 Humble
    from rclpy.qos_event import SubscriptionEventCallbacks

LARGEST_SAMPLE = 256 * 1024  # bytes, about one instant: hundreds of joints with long names
MOST_AT_ONCE = 16  # messages that are taken before other topics have their turn
_LARGEST_MESSAGE = 64 * 2**20  # bytes

# Publishers whose latest number is known; of those that come and go, all are forgotten.
_MOST_PUBLISHERS = 64

_NO_COUNT = 2**31 - 1  # from here on, what the middleware says of lost messages is none


class Topic(NamedTuple):
    """An input of a node: a row in the table of its topics.

    Attributes
    ----------
    name : str
        Of the topic, before remapping.
    kind : type
        Of the messages.
    take : callable
        Called with every message; raises HodynError against bad ones.
    profile : QoSProfile
    then : callable
        Called when all messages that waited have been taken; may raise as `take` may. By default
        it does nothing.
    is_sample : bool
        Whether a message is about one instant, small therefore, and accepted when it has been
        taken; of others it is said later what has become of them.
    unpack : callable, optional
        Makes of the serialized message what `take` gets; by default rclpy unpacks it.
    """

    name: str
    kind: type
    take: Callable[[Any], object]
    profile: QoSProfile
    then: Callable[[], object] = bool
    is_sample: bool = True
    unpack: Callable[[bytes], Any] | None = None


class ReceivingNode(Node):
    """What an input needs of its node.

    Attributes
    ----------
    settings : object
        Parameters in use.
    diagnostics : Diagnostics
    received : int
        When the message that is being taken has arrived, by the system's clock [ns]; 0: unknown.
    """

    settings: Any
    diagnostics: Diagnostics
    received: int

    @abstractmethod
    def refuse(self, topic: str, error: Exception, is_throttled: bool = True) -> None:
        """Count and log that a message cannot be used.

        Parameters
        ----------
        topic : str
        error : Exception
            Of one that is no HodynError, a fault of this package, the traceback is logged.
        is_throttled : bool
            Whether no more than one in a second is logged.
        """


class Input:
    """A subscription that looks at a message before it unpacks it.

    Parameters
    ----------
    node : ReceivingNode
    topic : Topic

    Attributes
    ----------
    health : InputHealth
    subscription : Subscription
    """

    def __init__(self, node: ReceivingNode, topic: Topic) -> None:
        self._node, self._topic = node, topic
        rclpy_unpacks = partial(deserialize_message, message_type=topic.kind)
        self._unpack: Callable[[bytes], Any] = topic.unpack or rclpy_unpacks
        self._numbers: dict[bytes, int] = {}  # the latest of every publisher
        self._warned: set[str] = set()  # what is said of publishers that are there
        self.health: InputHealth = node.diagnostics.input(topic.name)
        # Who counts what is lost watches publishers too: rclpy need not warn of those that do not
        # fit.
        events = SubscriptionEventCallbacks(use_default_callbacks=False)
        if topic.is_sample:
            events.message_lost = self.count_lost
        receive: Callable[..., None] = self.receive
        # ROS 2 Humble tells nothing of a message.
        if not hasattr(Subscription, 'CallbackType'):
            receive = partial(self.receive, info={})
        self.subscription: Any = qos.create_subscription(
            node,
            topic.kind,
            topic.name,
            receive,
            topic.profile,
            raw=True,
            event_callbacks=events,
        )

    def receive(self, data: bytes, info: Mapping[str, Any]) -> None:
        """Take a message and those that wait behind it: a turn each costs more than a message.

        At most `MOST_AT_ONCE` are taken; whatever they raise refuses them.

        Parameters
        ----------
        data : bytes
            Serialized.
        info : mapping of str to object
            What the middleware says of it, such as its number and when it was received.
        """
        node, topic = self._node, self._topic
        for number in range(MOST_AT_ONCE):
            if number:
                following = take_following(self.subscription)
                if following is None:
                    break
                data, info = following
            # 0: the middleware does not say.
            node.received = info.get('received_timestamp', 0)
            self._count_left_out(info)
            try:
                topic.take(self._unpacked(data))
            except Exception as error:  # a fault of ours must not end the node
                node.refuse(topic.name, error, topic.name != 'joint_trajectory')
            else:
                if topic.is_sample:
                    self.health.note('received')
        try:
            topic.then()
        except Exception as error:
            node.refuse(topic.name, error)

    def _count_left_out(self, info: Mapping[str, Any]) -> None:
        """Count messages of the same publisher that should have come in front of one."""
        # Other middleware does not number messages, and ROS 2 before Kilted is silent.
        count = info.get('publication_sequence_number')
        publisher = info.get('publisher_gid')
        if count is None or publisher is None:
            self.health.is_numbered = False
            return
        left_out = count - self._numbers.get(publisher['data'], count) - 1
        if left_out > 0:
            self.health.add(LEFT_OUT, left_out)
        if len(self._numbers) > _MOST_PUBLISHERS:
            self._numbers.clear()
        self._numbers[publisher['data']] = count

    def _unpacked(self, data: bytes) -> Any:
        """Message of serialized data; SizeError or MessageError if it is too large or damaged."""
        largest, bound = _LARGEST_MESSAGE, 'a message may have'
        if self._topic.is_sample and largest > LARGEST_SAMPLE:
            largest, bound = LARGEST_SAMPLE, 'a message about one instant may have'
        if len(data) > largest:
            raise SizeError(
                f'The message has {len(data)} bytes, expected no more than {bound} '
                f'({largest}); send it in parts or with what is needed only.'
            )
        try:
            return self._unpack(data)
        except HodynError:
            raise
        except Exception as error:  # of many classes
            raise MessageError(f'The message cannot be unpacked: {error}') from error

    def count_lost(self, info: Any) -> None:
        """Count what the middleware reports as lost on its way.

        Parameters
        ----------
        info : object
            With `total_count_change`, of the event of the middleware.
        """
        # Fast DDS subtracts numbers without sign and cuts the difference at 2^31 - 1: so much is
        # lost where a message does not come behind the one before, and the next sum overflows.
        if info.total_count_change < _NO_COUNT:
            self.health.add(LOST, info.total_count_change)

    def watch_publishers(self) -> None:
        """Note who publishes, and warn of those who are not heard."""
        node, health, name = self._node, self.health, self._topic.name
        unheard = unheard_publishers(node, self.subscription)
        for why in set(unheard) - self._warned:
            node.get_logger().warning(why)
        self._warned = set(unheard)  # of those that have gone, all is forgotten
        if name != DESCRIPTION:
            health.publishers = publisher_names(node, name)
            health.unheard = unheard
