"""Health of a node as diagnostic_msgs, and who publishes what it takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from diagnostic_msgs.msg import DiagnosticStatus, KeyValue
from rclpy.node import Node
from rclpy.qos import QoSCompatibility, qos_check_compatible
from rclpy.subscription import Subscription

from hodyn_ros.streams.health import NodeHealth

if TYPE_CHECKING:
    from hodyn_ros.streams.robot_in_use import Robot

# Name of a node that the middleware knows by its publishers only, for a moment.
_UNKNOWN = '_NODE_NAME_UNKNOWN_'


def _full_name(info: Any) -> str:
    return f'{info.node_namespace.rstrip("/")}/{info.node_name}'


def publisher_names(node: Node, topic: str) -> list[str]:
    """Fully qualified names of the nodes that publish a topic.

    Parameters
    ----------
    node : Node
    topic : str
        Before remapping.

    Returns
    -------
    list of str
        Sorted, one for each publisher.
    """
    infos = node.get_publishers_info_by_topic(node.resolve_topic_name(topic))
    return sorted(map(_full_name, infos))


def unheard_publishers(node: Node, subscription: Subscription) -> list[str]:
    """Why some publishers of a topic are not heard.

    Parameters
    ----------
    node : Node
    subscription : Subscription

    Returns
    -------
    list of str
        A sentence for each publisher of another type or with a quality of service that does not
        fit.
    """
    found, topic = [], subscription.topic_name
    package, part, *_ = subscription.msg_type.__module__.split('.')
    kind = f'{package}/{part}/{subscription.msg_type.__name__}'
    for info in node.get_publishers_info_by_topic(topic):
        fit, reason = qos_check_compatible(info.qos_profile, subscription.qos_profile)
        if info.topic_type != kind:
            reason = f'it sends {info.topic_type}, expected {kind}'
        elif fit != QoSCompatibility.ERROR:
            continue
        if info.node_name != _UNKNOWN:
            reason = reason.removeprefix('ERROR: ').rstrip('; ')
            found.append(f'{_full_name(info)} publishes {topic} unheard: {reason}')
    return found


class Diagnostics(NodeHealth):
    """Health of a node, which `report` turns into statuses.

    Parameters
    ----------
    name : str
        Of the node, fully qualified.
    **options
        Of `NodeHealth`.
    """

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(**options)
        self._name = name.lstrip('/')

    def report(
        self,
        robot: Robot | None,
        error: str,
        in_preparation: bool,
        algorithms: Mapping[str, str],
    ) -> list[DiagnosticStatus]:
        """Statuses of all parts of the node; a new interval starts.

        Parameters
        ----------
        robot : Robot, optional
            In use.
        error : str
            Why another description is refused; empty if none is.
        in_preparation : bool
            Whether a robot is being made ready.
        algorithms : mapping of str to str
            What computes the efforts, by names in the status of the model.

        Returns
        -------
        list of DiagnosticStatus
        """
        reports = self.reports(robot, error, in_preparation, algorithms)
        return [self.status(part, *report) for part, report in reports.items()]

    def status(
        self, part: str, level: bytes, message: str, values: Mapping[str, object]
    ) -> DiagnosticStatus:
        """Status of a part of the node.

        Parameters
        ----------
        part : str
            Its name, behind that of the node.
        level : bytes
            `OK`, `WARN`, `ERROR` or `STALE` of `streams.health`.
        message : str
        values : mapping of str to object

        Returns
        -------
        DiagnosticStatus
        """
        return DiagnosticStatus(
            name=f'{self._name}: {part}',
            hardware_id=self.robot_name,
            level=level,
            message=message,
            values=[KeyValue(key=key, value=str(value)) for key, value in values.items()],
        )
