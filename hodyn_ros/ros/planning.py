"""Trajectories are planned and requests answered in threads beside the stream.

`Planning` runs either in the process of the node or, by default, in one of its own
(`planning_process.py`): unpacking a large message takes Python's lock for a tenth of a second and
more, and no stream of the same process would go on meanwhile.
"""

from __future__ import annotations

import queue
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, Union

from hodyn_msgs.msg import JointEffortTrajectory
from hodyn_msgs.srv import ComputeInverseDynamics
from rclpy.context import Context
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter

from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import HodynError
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.ros import qos
from hodyn_ros.ros.answers import Robot, answer
from hodyn_ros.ros.conversions import time_message
from hodyn_ros.ros.planner import Plan, Task, plan_trajectory, whole_answer
from hodyn_ros.ros.queued_service import QueuedService
from hodyn_ros.ros.settings import Settings
from hodyn_ros.ros.tally import refusal_kind
from hodyn_ros.ros.timeline import PlannedMotion

SERVICE = 'compute_inverse_dynamics'

Response = ComputeInverseDynamics.Response


_KINDS = {
    Response.INVALID_JOINTS: 'unknown joints',
    Response.INTERNAL_ERROR: 'internal',
    Response.BUSY: 'busy',
}


class Identity(NamedTuple):
    """How the planning appears in the graph of nodes."""

    node_name: str
    namespace: str
    domain_id: int
    service_name: str
    trajectory_topic: str
    qos_overrides: tuple[tuple[str, Any], ...]


class Served(NamedTuple):
    """A request has been answered."""

    error: str
    """Empty on success."""
    kind: str
    """Kind of the refusal."""
    waiting: int
    """How many requests wait."""


class Logged(NamedTuple):
    """Something for the log of the node."""

    text: str


class Asked(NamedTuple):
    """A process wants to know that it has got everything; to be answered by `echo`."""

    number: int


Event = Union[Plan, Served, Logged, Asked]  # noqa: UP007


class Planner(Protocol):
    """What plans trajectories and answers requests, wherever it runs."""

    def set_robot(self, robot: Robot | None, in_preparation: bool) -> None:
        """Use a robot from now on; whether requests wait for a first one."""

    def set_settings(self, settings: Settings) -> None:
        """Use other settings from now on."""

    def plan(self, task: Task) -> None:
        """Plan a trajectory; the plan is reported."""

    def accept(self, number: int, start: int) -> None:
        """Publish the whole answer to a plan that starts at a time [ns]."""

    def publish(self, planned: PlannedMotion, remark: str) -> None:
        """Compute and publish the whole answer to a motion."""

    def echo(self, number: int) -> None:
        """Answer `Asked`."""

    def close(self) -> None:
        """Finish what has been begun, but in another process not for long."""


class Planning:
    """Plans trajectories and answers requests in threads of this process.

    Parameters
    ----------
    identity : Identity
    context : rclpy.context.Context
    settings : Settings
    report : callable
        Is called with every event, in whatever thread.
    prepare : callable
        Called with a robot before it is used, to compile its dynamics.
    expect_wrenches : callable
        Called with a robot and the wrenches of a request, to compile its dynamics with them.
    catch_up : callable
        Called before a request is answered; returns when everything is known here that was known
        to the node when the request came.
    """

    def __init__(
        self,
        identity: Identity,
        context: Context | None,
        settings: Settings,
        report: Callable[[Event], None],
        prepare: Callable[[RobotModel], None],
        expect_wrenches: Callable[[RobotModel, Sequence[Wrench]], None],
        catch_up: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._report, self._prepare, self._expect_wrenches = report, prepare, expect_wrenches
        self._catch_up = catch_up
        self._robot: Robot | None = None
        # Whether waiting for a robot makes no sense: none is expected, and all are in use that
        # have been set.
        self._settled = threading.Event()
        self._settled.set()
        self._robots_lock = threading.Lock()
        self._unused_robots, self._expects_first = 0, False
        self._closed = False
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._latest: tuple[int, JointEffortTrajectory] | None = None
        # rclpy runs a service where its node is run. So it belongs to a second node, under the
        # name that it would have at the first one.
        self._node = Node(
            f'{identity.node_name}_services',
            namespace=identity.namespace,
            context=context,
            use_global_arguments=False,  # they are for the first node, its name among them
            start_parameter_services=False,
            enable_rosout=False,
            parameter_overrides=[
                Parameter(name, value=value) for name, value in identity.qos_overrides
            ],
        )
        self._publisher = qos.create_publisher(
            self._node, JointEffortTrajectory, identity.trajectory_topic, qos.EFFORT_TRAJECTORY
        )
        self._service = QueuedService(
            self._node,
            ComputeInverseDynamics,
            identity.service_name,
            self._answer,
            self._busy,
            lambda: self._settings.max_waiting_requests,
        )
        self._executor = SingleThreadedExecutor(context=context)
        self._executor.add_node(self._node)
        self._threads = [
            threading.Thread(target=target, name=name, daemon=True)
            for name, target in (
                ('service', self._spin),
                ('answering', self._service.run),
                ('planning', self._run),
            )
        ]
        for thread in self._threads:
            thread.start()

    def set_robot(self, robot: Robot | None, in_preparation: bool) -> None:
        """Use a robot from now on; whether requests wait for a first one."""
        with self._robots_lock:
            self._expects_first = robot is None and in_preparation
            self._unused_robots += robot is not None
            self._settle()
        if robot is not None:
            self._jobs.put(lambda: self._use(robot))

    def set_settings(self, settings: Settings) -> None:
        """Use other settings from now on."""
        self._settings = settings

    def plan(self, task: Task) -> None:
        """Plan a trajectory; the plan is reported."""
        self._jobs.put(lambda: self._plan(task))

    def accept(self, number: int, start: int) -> None:
        """Publish the whole answer to a plan that starts at a time [ns]."""
        self._jobs.put(lambda: self._accept(number, start))

    def publish(self, planned: PlannedMotion, remark: str) -> None:
        """Compute and publish the whole answer to a motion."""
        self._jobs.put(lambda: self._publish(planned, remark))

    def echo(self, number: int) -> None:
        """Answer `Asked`, which this class never reports."""

    def close(self, grace: float | None = None) -> None:
        """Finish what has been begun, up to a time [s]; None: however long it takes."""
        self._closed = True
        self._settled.set()
        self._jobs.put(None)
        self._service.close()
        self._executor.shutdown()
        end = None if grace is None else time.monotonic() + grace
        for thread in self._threads:
            thread.join(None if end is None else max(0.0, end - time.monotonic()))
        self._node.destroy_node()

    def _spin(self) -> None:
        while not self._closed:
            try:
                self._executor.spin()
                return
            except ExternalShutdownException:
                return
            except Exception:  # such as a request whose text is not UTF-8
                if not self._closed:
                    self._report(Logged(traceback.format_exc()))
                    self._report(Served('The request cannot be unpacked.', 'invalid', 0))

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                job()
            except Exception:  # a fault of ours must not end the thread
                self._report(Logged(traceback.format_exc()))

    def _settle(self) -> None:
        if self._unused_robots or self._expects_first:
            self._settled.clear()
        else:
            self._settled.set()

    def _use(self, robot: Robot) -> None:
        before = self._robot
        try:
            if before is not None and before.description == robot.description:
                # Only its limits or actuators have changed.
                robot = robot._replace(model=before.model)
            else:
                self._prepare(robot.model)
            self._robot = robot
        finally:
            with self._robots_lock:
                self._unused_robots -= 1
                self._settle()

    def _plan(self, task: Task) -> None:
        robot, begin = self._robot, time.perf_counter()
        try:
            if robot is None:
                raise HodynError('There is no robot model yet.')
            plan, message = plan_trajectory(robot, task, self._settings)
            plan = plan._replace(duration=time.perf_counter() - begin)
            self._latest = task.number, message
        except HodynError as error:
            plan = Plan(task.number, None, error=str(error), kind=refusal_kind(error))
        except Exception as error:  # a fault of ours must be answered too
            self._report(Logged(traceback.format_exc()))
            reason = f'Internal error: {error!r}'
            plan = Plan(task.number, None, error=reason, kind='internal')
        self._report(plan)

    def _accept(self, number: int, start: int) -> None:
        latest, self._latest = self._latest, None
        if latest is not None and latest[0] == number:
            message = latest[1]
            message.header.stamp = time_message(start)
            self._publisher.publish(message)

    def _publish(self, planned: PlannedMotion, remark: str) -> None:
        robot = self._robot
        if robot is not None and robot.model.joint_names == planned.joint_names:
            self._publisher.publish(whole_answer(robot, planned, self._settings, remark))

    def _answer(self, request: ComputeInverseDynamics.Request) -> Response:
        self._catch_up()
        self._settled.wait()
        try:
            response = answer(self._robot, request, self._settings, self._expect_wrenches)
        except Exception as error:  # a fault of ours must not leave the client without an answer
            self._report(Logged(traceback.format_exc()))
            response = Response(
                success=False,
                error_code=Response.INTERNAL_ERROR,
                message=f'Internal error: {error!r}',
            )
        kind = _KINDS.get(response.error_code, 'invalid')
        self._report(Served(response.message, kind, self._service.waiting))
        return response

    def _busy(self, waiting: int) -> Response:
        response = Response(
            success=False,
            error_code=Response.BUSY,
            message=f'{waiting} requests wait already, as many as max_waiting_requests allows; '
            'try again later.',
        )
        self._report(Served(response.message, _KINDS[Response.BUSY], waiting))
        return response
