"""What the node and its planning process tell each other, and nothing else.

The node sends a `Begin` or `BeginElastic`, which says what kind of planner it wants, and then
pairs: the name of one of its methods, and arguments. What it tells the planner by a pipe arrives
in order; a request of a service takes another way. So the planner asks with a `Version` when it
takes one, and the node says it back, behind all that it has told before; a version older than the
latest one is dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from hodyn_ros.streams.motion_stream import Plan

if TYPE_CHECKING:
    from hodyn_ros.ros.base.node_settings import NodeSettings
    from hodyn_ros.ros.nodes.flatness_settings import ControlSettings

STARTED, BEAT = 'started', 'beat'
"""What the process reports beside the rest: that it takes tasks, and that it lives."""


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


class Begin(NamedTuple):
    """How the planner appears in the graph of nodes, and the settings at the beginning.

    Attributes
    ----------
    node_name : str
        Of the node that it plans for.
    namespace : str
        Of that node.
    domain_id : int
        Of the middleware.
    enclave : str
        Of that node, for security.
    service_names : tuple of str
        In the order of SERVICES, resolved.
    trajectory_topic : str
        Of whole answers, resolved.
    qos_overrides : tuple of (str, object)
        Parameters ``qos_overrides.*`` of the node.
    settings : NodeSettings
    """

    node_name: str
    namespace: str
    domain_id: int
    enclave: str
    service_names: tuple[str, ...]
    trajectory_topic: str
    qos_overrides: tuple[tuple[str, Any], ...]
    settings: NodeSettings


class BeginElastic(NamedTuple):
    """Settings at the beginning, where trajectories of a robot under a law are planned.

    Attributes
    ----------
    settings : ControlSettings
    """

    settings: ControlSettings


class Ready(NamedTuple):
    """The robot is made with which tasks are planned.

    Attributes
    ----------
    version : int
        Of the robot and the settings, as the node has numbered them.
    """

    version: int


class Version(NamedTuple):
    """What the node has told is to be known before a request is answered.

    Attributes
    ----------
    number : int
        Of the request.
    """

    number: int


class Served(NamedTuple):
    """A request has been answered.

    Attributes
    ----------
    service : str
        One of SERVICES.
    error : str
        Why it is refused; empty on success.
    waiting : int
        Requests that wait now.
    """

    service: str
    error: str
    waiting: int


class ForController(NamedTuple):
    """Points of a plan for a controller, which the node publishes when it decides on it.

    Attributes
    ----------
    number : int
        Of the task.
    data : bytes
        Serialized JointTrajectory, whose stamp is left open.
    offset : int
        From the start of the plan to the stamp [ns]
    since : float
        When it was sent to the node, of a steady clock [s]
    """

    number: int
    data: bytes
    offset: int
    since: float


Event = Plan | Ready | Version | Served | ForController | str
