"""A service that is answered in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable

from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node


class ServiceThread:
    """A service of a node whose answers may take long without holding the node up.

    rclpy runs a service where its node is run. So the service belongs to a second node, which has
    nothing else, under the name that it would have at the first one.

    Parameters
    ----------
    node : rclpy.node.Node
        The node that the service seems to belong to.
    kind : type
        Service type.
    name : str
        Name as the node would give it.
    answer : callable
        Takes request and response and returns the response; runs in the thread.
    """

    def __init__(
        self, node: Node, kind: type, name: str, answer: Callable[[object, object], object]
    ) -> None:
        self._node = Node(
            f'{node.get_name()}_services',
            namespace=node.get_namespace(),
            context=node.context,
            use_global_arguments=False,  # they are for the first node, its name among them
            start_parameter_services=False,
            enable_rosout=False,
        )
        self._node.create_service(kind, node.resolve_service_name(name), answer)
        self._executor = SingleThreadedExecutor(context=node.context)
        self._executor.add_node(self._node)
        self._thread = threading.Thread(target=self._spin, name='service', daemon=True)
        self._thread.start()

    def _spin(self) -> None:
        try:
            self._executor.spin()
        except ExternalShutdownException:
            pass

    def close(self) -> None:
        """Finish the answer under way and end the service."""
        self._executor.shutdown()
        self._thread.join()
        self._node.destroy_node()
