"""Planning of trajectories one after the other, for a node, and what both tell each other.

Both ends of the pipe send pairs: the name of a method of the other end, without its ``on_``, and
arguments. The first pair of the node is a `Graph`, or None, and its settings. A request of a
service takes another way than what the node sends: before it is answered, the planner sends
``version`` with a sequence number, and the node echoes it by ``know``. The order of the pipe
ensures that all earlier settings have been applied then.

Why no service: a motion of 10,000 waypoints that rclpy deserialises holds the stream up for
7 to 17 ms, by the pipe for 2 ms; one of 100,000 for 119 to 305 ms, by the pipe for 9 to 13 ms.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from hodyn_ros.model.inertia import Payload
from hodyn_ros.ros.base.worker import Worker
from hodyn_ros.streams.health import reason
from hodyn_ros.streams.motion_stream import Plan, Task
from hodyn_ros.streams.robot_in_use import Robot, warm_up
from hodyn_ros.streams.timeline import PlannedMotion

S = TypeVar('S')


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


class Planner(Generic[S]):
    """Makes the robot of a node and plans with it, in the order in which it is told to.

    Its methods are the commands of the node. A subclass overrides `planned`.

    Parameters
    ----------
    make_robot : callable
        Makes the robot of a description, without kernels, from that, settings and payloads.
    settings : object
        Of the node.
    report : callable
        Takes the name of an event and its arguments, from any thread.
    log : callable
        Takes the text of an error.
    """

    def __init__(
        self,
        make_robot: Callable[[str, S, tuple[Payload, ...]], Robot],
        settings: S,
        report: Callable[..., None],
        log: Callable[[str], object],
    ) -> None:
        self._make_robot = make_robot
        self.report: Callable[..., None] = report
        self.worker: Worker = Worker('planning', log)
        self._compiling = Worker('compiling', log)
        self.changed: threading.Condition = threading.Condition()  # lock of what follows
        self._robot: Robot | None = None
        self._settings = settings
        self._is_expected = False
        self._unused = 0  # robots that are still to be made

    def planned(
        self, robot: Robot | None, task: Task, settings: S
    ) -> tuple[Plan, ForController | None]:
        """Plan of a task, and messages on it for controllers.

        Raises
        ------
        HodynError
            If there is no plan.
        """
        raise NotImplementedError

    @property
    def is_settled(self) -> bool:
        """Whether no robot is being made, nor awaited for the first time."""
        return not self._unused and not (self._is_expected and self._robot is None)

    @property
    def in_use(self) -> tuple[Robot | None, S]:
        """Robot and settings that belong together."""
        with self.changed:
            return self._robot, self._settings

    def use(
        self,
        version: int,
        description: str,
        is_expected: bool,
        settings: S,
        payloads: tuple[Payload, ...] = (),
    ) -> None:
        """Use settings and a robot, once it is made.

        Parameters
        ----------
        version : int
            Number that is reported as ``ready`` when it is.
        description : str
            URDF; empty: there is no robot.
        is_expected : bool
            Whether one is being made ready; requests wait for the first one.
        settings : object
        payloads : tuple of Payload
            Of the robot.
        """

        def make() -> None:
            robot = None  # the one before is not to stay if this one fails
            try:
                if description:
                    robot = self._make_robot(description, settings, payloads)
            finally:
                with self.changed:
                    self._robot, self._settings = robot, settings
                    self._unused -= 1
                    self.changed.notify_all()
                self.report('ready', version)
            if robot is not None:  # which is of use before its kernels are there
                self._compiling.put(lambda: warm_up(robot))

        with self.changed:
            self._unused += 1
            self._is_expected = is_expected
            self.changed.notify_all()
        self.worker.put(make)

    def plan(self, task: Task) -> None:
        """Plan a trajectory; the plan is reported."""

        def plan() -> None:
            begin = time.perf_counter()
            made, sent = self.planned(self._robot, task, self._settings)
            made = made._replace(duration=time.perf_counter() - begin)
            self.report('planned', made, sent)

        def failed(error: BaseException) -> None:
            self.report('planned', Plan(task.number, None, error=reason(error)), None)

        self.worker.put(plan, failed)

    def know(self, version: int) -> None:
        """Note that all has come that the node had told when it was asked for a version."""

    def accept(self, number: int, start: int) -> None:
        """Publish what follows from a plan, if anything does."""

    def publish(self, planned: PlannedMotion, remark: str) -> None:
        """Publish what follows from a motion to rest, if anything does."""

    def close(self, grace: float) -> None:
        """Finish what has been begun within a time [s], and end."""
        self.worker.close(grace)
