"""What a node and its planning process tell each other, and nothing else.

Both ends of the pipe send pairs: the name of a method of the other end, without its ``on_``, and
arguments. The first pair of the node is a `Graph`, or None, and its settings. A request of a
service takes another way than what the node sends: before it is answered, the planner sends
``version`` with a sequence number, and the node echoes it by ``know``. The order of the pipe
ensures that all earlier settings have been applied then.

Why no service: a motion of 10,000 waypoints that rclpy deserialises holds the stream up for
7 to 17 ms, by the pipe for 2 ms; one of 100,000 for 119 to 305 ms, by the pipe for 9 to 13 ms.
"""

from __future__ import annotations

from typing import Any, NamedTuple

SERVICES = ('compute_inverse_dynamics', 'retime')
"""Names of the services that the process answers."""

MOST_WAITING_REQUESTS = 8
"""Requests of services that wait; more are refused as busy."""


def health_of(service: str) -> str:
    """Name of the service by which a node says whether the process behind another one lives.

    Parameters
    ----------
    service : str
        Resolved name of one of `SERVICES`.

    Returns
    -------
    str
        Of a std_srvs/srv/Trigger: success, with the number of the process, if it answers;
        otherwise the message is why it does not.
    """
    return f'{service}/health'


class Graph(NamedTuple):
    """How a planner with services appears in the graph of nodes.

    Attributes
    ----------
    node_name : str
        Of the node that it plans for.
    namespace : str
        Of that node.
    enclave : str
        Of that node, for security.
    domain_id : int
        Of the middleware.
    service_names : tuple of str
        In the order of SERVICES, resolved.
    trajectory_topic : str
        Of whole answers, resolved.
    qos_overrides : tuple of (str, object)
        Parameters ``qos_overrides.*`` of the node.
    """

    node_name: str
    namespace: str
    enclave: str
    domain_id: int
    service_names: tuple[str, ...]
    trajectory_topic: str
    qos_overrides: tuple[tuple[str, Any], ...]


class ForController(NamedTuple):
    """Messages on a motion for controllers, which the node publishes when it decides on it.

    Attributes
    ----------
    points : bytes
        Serialized JointTrajectory with efforts, whose stamp is left open; empty if there is none.
    motion : bytes
        Serialized JointMotionTrajectory likewise.
    offset : int
        From the time zero of the motion, the stamp of the latter, to that of the points [ns].
    since : float
        When they were sent to the node, of a steady clock [s]
    """

    points: bytes
    motion: bytes
    offset: int
    since: float
