"""The planning process: beside the stream, trajectories are planned and services are answered."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import rclpy
from hodyn_msgs.msg import JointEffortTrajectory
from hodyn_msgs.srv import ComputeInverseDynamics, RetimeTrajectory
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.context import Context
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import serialize_message
from rclpy.task import Future

from hodyn_ros.ros.base import qos
from hodyn_ros.ros.base.conversions import time_message
from hodyn_ros.ros.base.executor import ExecutorError, StreamExecutor
from hodyn_ros.ros.base.life import bound_memory
from hodyn_ros.ros.base.node_settings import NodeSettings
from hodyn_ros.ros.base.worker import Worker
from hodyn_ros.ros.planner.answers import (
    answer,
    exceeded_limits,
    leave_efforts_out,
    plan_chunk,
    plan_trajectory,
    prepare_chunks,
    whole_answer,
)
from hodyn_ros.ros.planner.controllers import planned_for_controller
from hodyn_ros.ros.planner.planner import (
    MOST_WAITING_REQUESTS,
    SERVICES,
    ForController,
    Graph,
    Planner,
)
from hodyn_ros.ros.planner.retiming import retimed
from hodyn_ros.streams.health import reason
from hodyn_ros.streams.motion_stream import CHUNK, Plan, Task
from hodyn_ros.streams.robot_in_use import Robot, robot_of
from hodyn_ros.streams.timeline import PlannedMotion

GRACE = 0.3  # s, for what is under way when the node ends

_BEAT_PERIOD = 0.2  # s, between two signs of life
_ASKING_TIME = 1.0  # s, after which an answer goes on with what is known

# The middleware drops the oldest of more requests than these, and whoever sent it waits for ever.
# It also keeps the memory of as many responses, which may be large.
_DEPTH = 64


class _EndError(Exception):
    """End of the thread that answers; no failure."""


class Service(NamedTuple):
    """How requests of a kind are answered.

    Attributes
    ----------
    name : str
    kind : type
        Of the service; its responses have the fields success, error_code and message.
    answer : callable
        Takes robot, request and settings, and returns the response.
    """

    name: str
    kind: Any
    answer: Callable[[Robot | None, Any, NodeSettings], Any]

    def refusal(self, error_code: int, message: str) -> Any:
        """Response to a request that is not answered.

        Parameters
        ----------
        error_code : int
            Constant of the response.
        message : str
            Why.
        """
        return self.kind.Response(error_code=error_code, message=message)


# Codes of all of them.
BUSY: int = RetimeTrajectory.Response.BUSY
INTERNAL_ERROR: int = RetimeTrajectory.Response.INTERNAL_ERROR


class ServingPlanner(Planner[NodeSettings]):
    """Plans trajectories, publishes what follows from them, and answers services.

    Trajectories have a thread, and so have requests, which are answered one after the other. They
    are taken in a third, so that whoever is refused knows it at once.

    Parameters
    ----------
    graph : Graph
    settings : NodeSettings
    report : callable
        See `Planner`.
    """

    def __init__(
        self, graph: Graph, settings: NodeSettings, report: Callable[..., None]
    ) -> None:
        # Whole answer to a plan.
        self._latest: tuple[int, JointEffortTrajectory] | None = None
        self._unanswered = 0  # requests, of which one has its turn
        self._closed = False
        self._asked = self._known = 0  # versions
        context = Context()
        enclave = ['--ros-args', '--enclave', graph.enclave]
        rclpy.init(args=enclave, context=context, domain_id=graph.domain_id)
        bound_memory()
        node = self._node = Node(
            f'{graph.node_name}_services',
            namespace=graph.namespace,
            context=context,
            start_parameter_services=False,  # its parameters are those of the node
            parameter_overrides=[
                Parameter(name, value=value) for name, value in graph.qos_overrides
            ],
        )
        self._publisher = qos.create_publisher(
            node, JointEffortTrajectory, graph.trajectory_topic, qos.EFFORT_TRAJECTORY
        )
        kinds = (ComputeInverseDynamics, answer), (RetimeTrajectory, retimed)
        for known, name, (kind, respond) in zip(SERVICES, graph.service_names, kinds):
            node.create_service(
                kind,
                name,
                partial(self._take, Service(known, kind, respond)),
                qos_profile=QoSProfile(
                    depth=_DEPTH, reliability=ReliabilityPolicy.RELIABLE
                ),
                callback_group=ReentrantCallbackGroup(),  # requests wait beside each other
            )
        self._executor = StreamExecutor(is_plain=True, context=context)
        self._executor.add_node(node)
        super().__init__(robot_of, settings, report, node.get_logger().error)
        self.worker.put(prepare_chunks)
        self._answering = Worker('answering', node.get_logger().error)
        self._thread = threading.Thread(target=self._spin, name='service', daemon=True)
        self._thread.start()

    # Trajectories

    def planned(
        self, robot: Robot | None, task: Task, settings: NodeSettings
    ) -> tuple[Plan, ForController | None]:
        """Plan of a task; its whole answer waits for `accept`."""
        if task.topic == CHUNK:  # There is no time for a whole answer.
            return plan_chunk(robot, task, settings), None
        plan, whole = plan_trajectory(robot, task, settings)
        exceeded = exceeded_limits(
            whole, ' '.join(('effort_trajectory has all of them.', *settings.headroom()))
        )
        assert robot is not None and plan.planned is not None
        made, *texts = planned_for_controller(robot, plan.planned, settings)
        remark, warning = ((text,) if text else () for text in texts)
        whole.remarks = [*whole.remarks, *remark, *warning]
        self._latest = task.number, whole
        remarks, warnings = (*plan.remarks, *remark), (*plan.warnings, *exceeded, *warning)
        return plan._replace(remarks=remarks, warnings=warnings), made

    def accept(self, number: int, start: int) -> None:
        """Publish the whole answer to a plan, unless a newer one is there.

        Parameters
        ----------
        number : int
            Of its task.
        start : int
            When its time is zero [ns].
        """

        def accept() -> None:
            latest, self._latest = self._latest, None
            if latest is not None and latest[0] == number:
                self._publish(latest[1], start)

        self.worker.put(accept)

    def publish(self, planned: PlannedMotion, remark: str) -> None:
        """Compute and publish the whole answer to a motion to rest.

        Parameters
        ----------
        planned : PlannedMotion
        remark : str
            In the answer.
        """

        def publish() -> None:
            robot, settings = self.in_use
            if robot is not None and robot.model.joint_names == planned.joint_names:
                whole = whole_answer(robot, planned, settings, remark)
                if settings.base_motion:
                    leave_efforts_out(whole)
                self._publish(whole, planned.start)

        self.worker.put(publish)

    def _publish(self, whole: JointEffortTrajectory, start: int) -> None:
        """Publish the whole answer to a motion whose time is zero at a time [ns]."""
        whole.header.stamp = time_message(start)
        self._publisher.publish(whole)

    # Services

    def know(self, version: int) -> None:
        """Note that all has come that the node had told when it was asked for a version."""
        with self.changed:
            self._known = version
            self.changed.notify_all()

    async def _take(self, service: Service, request: Any, _: Any) -> Any:
        """Response to a request when its turn has come, or a refusal at once."""
        waiting, response = self._waiting, None
        if self._closed:
            response = service.refusal(INTERNAL_ERROR, 'The node ends.')
        elif waiting >= MOST_WAITING_REQUESTS:
            text = f'{waiting} requests wait already, no more are taken; try again later.'
            response = service.refusal(BUSY, text)
        else:
            answered: Future[Any] = Future(executor=self._executor)
            with self.changed:
                self._unanswered += 1
            self._answering.put(lambda: self._reply(service, request, answered))
            response = await answered
            with self.changed:
                self._unanswered -= 1
                self.changed.notify_all()
        self.report('served', service.name, response.message, self._waiting)
        return response

    @property
    def _waiting(self) -> int:
        return max(self._unanswered - 1, 0)

    def _reply(self, service: Service, request: Any, answered: Future[Any]) -> None:
        """Compute a response; it is sent in the thread of the executor."""
        self._asked += 1
        self.report('version', self._asked)
        with self.changed:
            self.changed.wait_for(
                lambda: self._closed or self._known >= self._asked, _ASKING_TIME
            )
            self.changed.wait_for(lambda: self._closed or self.is_settled)
            robot, settings = self.in_use
        try:
            if self._closed:
                response = service.refusal(INTERNAL_ERROR, 'The node ends.')
            else:
                response = service.answer(robot, request, settings)
                _check_sendable(response)
        except BaseException as error:  # whoever has asked gets to know it
            self._node.get_logger().error(traceback.format_exc())
            response = service.refusal(INTERNAL_ERROR, reason(error))
        answered.set_result(response)
        self._executor.wake()

    # Life

    def close(self, grace: float) -> None:
        """Finish what has been begun.

        Parameters
        ----------
        grace : float
            Longest time for that [s].
        """
        with self.changed:
            self._closed = True
            self.changed.notify_all()
        end = time.monotonic() + grace
        for close in (
            partial(self._answering.close, drop=False),
            self._wait_until_answered,
            self._end_spinning,
            self.worker.close,
            self._executor.shutdown,
        ):
            close(max(0.0, end - time.monotonic()))
        self._node.destroy_node()

    def _wait_until_answered(self, timeout: float) -> None:
        with self.changed:
            self.changed.wait_for(lambda: not self._unanswered, timeout)

    def _end_spinning(self, timeout: float) -> None:
        def end() -> None:
            raise _EndError

        # After the answers, which are sent in the same thread.
        self._executor.create_task(end)
        self._thread.join(timeout)

    def _spin(self) -> None:
        logger = self._node.get_logger()
        while True:
            try:
                self._executor.spin()
                return
            except (_EndError, ExternalShutdownException):
                return
            except ExecutorError as error:  # the node starts another process
                logger.fatal(str(error))
                os._exit(1)
            except Exception:  # such as text that is not UTF-8
                logger.error(traceback.format_exc())
                name = getattr(self._executor.latest, 'srv_name', '').rpartition('/')[2]
                if name:
                    text = 'The request cannot be unpacked.'
                    self.report('served', name, text, self._waiting)


def _check_sendable(response: Any) -> None:
    """Raise what sending a response would raise, after which rclpy would lose it.

    Flat arrays can always be sent, and they are what is large: they are left out.
    """
    whole = getattr(response, 'effort_trajectory', None)
    if whole is not None:
        response, rest = copy.copy(response), copy.copy(whole)
        for name, kind in rest.get_fields_and_field_types().items():
            if kind == 'sequence<double>':
                setattr(rest, name, [])
        response.effort_trajectory = rest
    serialize_message(response)


def _planner_of(
    graph: Graph | None, settings: Any, report: Callable[..., None]
) -> Planner[Any]:
    if graph is None:
        # Laws take time to import, which the planner of a hodyn_node need not wait for.
        from hodyn_ros.ros.planner.elastic import ElasticPlanner

        return ElasticPlanner(settings, report, sys.stderr.write)
    return ServingPlanner(graph, settings, report)


def _beat(report: Callable[..., None]) -> None:
    """Give signs of life, also while the other threads compute."""
    with suppress(OSError, ValueError):  # the node is no more
        while True:
            report('beat')
            time.sleep(_BEAT_PERIOD)


def serve() -> None:
    """Plan what is asked for on the standard input; the process that is started.

    It reads pickled pairs, see `planner`, writes such to the standard output, and ends with its
    input.
    """
    inbox = sys.stdin.buffer
    outbox = os.fdopen(os.dup(1), 'wb')
    os.dup2(2, 1)  # whatever prints does not get into the answers
    lock = threading.Lock()

    def report(event: str, *arguments: Any) -> None:
        with lock:
            pickle.dump((event, arguments), outbox, pickle.HIGHEST_PROTOCOL)
            outbox.flush()

    planner: Planner[Any] | None = None
    code = 1
    # From here on the middleware is in use, and the end comes with that of the input.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with suppress(EOFError):  # the node is done with it, or is no more
            graph, settings = pickle.load(inbox)
            planner = _planner_of(graph, settings, report)
            threading.Thread(
                target=_beat, args=(report,), name='signs of life', daemon=True
            ).start()
            while True:
                command, arguments = pickle.load(inbox)
                getattr(planner, command)(*arguments)
        if planner is not None:
            planner.close(GRACE)  # with the node, nobody waits for the end of a long answer
        code = 0
    except BaseException:
        traceback.print_exc()
    os._exit(code)
