"""Trajectories are planned and requests answered in threads beside the stream.

`Planning` runs either in the process of the node or, by default, in one of its own
(`planning_process.py`): unpacking a large message takes Python's lock for a tenth of a second and
more, and no stream of the same process would go on meanwhile.
"""

from __future__ import annotations

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
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.ros import qos
from hodyn_ros.ros.answers import Robot, answer
from hodyn_ros.ros.conversions import time_message
from hodyn_ros.ros.planner import (
    Plan,
    Task,
    exceeded_limits,
    plan_trajectory,
    refused_plan,
    whole_answer,
)
from hodyn_ros.ros.queued_service import QueuedService
from hodyn_ros.ros.settings import Settings
from hodyn_ros.ros.timeline import PlannedMotion
from hodyn_ros.ros.worker import Worker, reason

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
            self._failed,
            self._busy,
            lambda: self._settings.max_waiting_requests,
            self._log,
        )
        self._executor = SingleThreadedExecutor(context=context)
        self._executor.add_node(self._node)
        self._worker = Worker('planning', self._log)
        self._thread = threading.Thread(target=self._spin, name='service', daemon=True)
        self._thread.start()

    def set_robot(self, robot: Robot | None, in_preparation: bool) -> None:
        """Use a robot from now on; whether requests wait for a first one."""
        with self._robots_lock:
            self._expects_first = robot is None and in_preparation
            self._unused_robots += robot is not None
            self._settle()
        if robot is not None:
            self._worker.put(lambda: self._use(robot))

    def set_settings(self, settings: Settings) -> None:
        """Use other settings from now on."""
        self._settings = settings

    def plan(self, task: Task) -> None:
        """Plan a trajectory; the plan is reported."""
        self._worker.put(
            lambda: self._plan(task), lambda error: self._report(refused_plan(task, error))
        )

    def accept(self, number: int, start: int) -> None:
        """Publish the whole answer to a plan that starts at a time [ns]."""
        self._worker.put(lambda: self._accept(number, start))

    def publish(self, planned: PlannedMotion, remark: str) -> None:
        """Compute and publish the whole answer to a motion."""
        self._worker.put(lambda: self._publish(planned, remark))

    def echo(self, number: int) -> None:
        """Answer `Asked`, which this class never reports."""

    def close(self, grace: float | None = None) -> None:
        """Finish what has been begun, up to a time [s]; None: however long it takes."""
        self._closed = True
        self._settled.set()
        self._executor.shutdown()
        end = None if grace is None else time.monotonic() + grace
        for close in (self._thread.join, self._service.close, self._worker.close):
            close(None if end is None else max(0.0, end - time.monotonic()))
        self._node.destroy_node()

    def _log(self, text: str) -> None:
        self._report(Logged(text))

    def _spin(self) -> None:
        while not self._closed:
            try:
                self._executor.spin()
                return
            except ExternalShutdownException:
                return
            except Exception:  # such as a request whose text is not UTF-8
                if not self._closed:
                    self._log(traceback.format_exc())
                    self._report(Served('The request cannot be unpacked.', 'invalid', 0))

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
        begin = time.perf_counter()
        plan, message = plan_trajectory(self._robot, task, self._settings)
        self._latest = task.number, message
        exceeded = exceeded_limits(message, 'effort_trajectory has all of them.')
        plan = plan._replace(warnings=(*plan.warnings, *exceeded))
        self._report(plan._replace(duration=time.perf_counter() - begin))

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
        return self._served(answer(self._robot, request, self._settings, self._expect_wrenches))

    def _failed(self, error: BaseException) -> Response:
        code = Response.INTERNAL_ERROR
        return self._served(Response(success=False, error_code=code, message=reason(error)))

    def _served(self, response: Response) -> Response:
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
