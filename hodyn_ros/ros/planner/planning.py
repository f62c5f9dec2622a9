"""Planning beside the stream: a process that the node starts, feeds through a pipe, starts again.

`PlanningClient` is the end in the node; `Planner`, a node of its own, that in the process.
"""

from __future__ import annotations

import os
import pickle
import signal
import struct
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import rclpy
from hodyn_msgs.msg import JointEffortTrajectory
from hodyn_msgs.srv import ComputeInverseDynamics, RetimeTrajectory
from rclpy.context import Context
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import serialize_message
from rclpy.task import Future
from trajectory_msgs.msg import JointTrajectory

from hodyn_ros.model.inertia import Payload
from hodyn_ros.ros.base import qos
from hodyn_ros.ros.base.conversions import time_message
from hodyn_ros.ros.base.diagnostics import (
    ENDED,
    RUNNING,
    SILENT,
    STARTING,
    ProcessHealth,
    processor_time,
    reason,
)
from hodyn_ros.ros.base.node import RobotNode
from hodyn_ros.ros.base.robot import Robot, robot_of
from hodyn_ros.ros.base.worker import Worker
from hodyn_ros.ros.planner.answers import (
    answer,
    exceeded_limits,
    leave_efforts_out,
    plan_chunk,
    plan_trajectory,
    prepare_chunks,
    refused_plan,
    whole_answer,
)
from hodyn_ros.ros.planner.controllers import planned_for_controller
from hodyn_ros.ros.planner.retiming import retimed
from hodyn_ros.streams.motion_stream import CHUNK, LEAD_IN, TRAJECTORY, Plan, Task
from hodyn_ros.streams.timeline import NANOSECONDS, PlannedMotion

if TYPE_CHECKING:
    from hodyn_ros.ros.base.node_settings import NodeSettings

CLOSING_TIME = 2.0  # s, until a process that has not ended by itself is killed
GRACE = 0.3  # s, for an answer that is under way when the node ends

# A process that is not ready within the first time is killed, up to four times that after
# restarts; so is one that has been silent for the second, which is said after the third [s].
_READY_TIME, SILENT_KILLED, SILENT_SAID = 30.0, 6.0, 1.0
# To unpack a large trajectory, for one, holds the interpreter, and with it the thread that gives
# signs: for so long it is enough that the process computes [s].
LONGEST_WORK = 60.0
# Between two signs of life, and between two looks for them [s].
_BEAT_PERIOD = 0.2
LOOK_PERIOD = 0.25
_LONGEST_LOOK = 4.0 * LOOK_PERIOD  # s, above which the node itself was held up
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 10.0  # s, before a restart
_LONG_LIFE = 30.0  # s, after which an end is no sign that the next one comes soon

# Between two trajectories for a controller [s]: a few of the cycles of any.
SPACING = 0.004

_ASKING_TIME = 1.0  # s, after which an answer goes on with what is known

# The middleware drops the oldest of more requests than these, and whoever sent it waits for ever.
# It also keeps the memory of as many responses, which may be large.
_DEPTH = 64

# What the process reports beside plans: that it takes tasks, that it wants an echo, behind all
# that it has been told before, and that it lives.
STARTED, ECHO, BEAT = 'started', 'echo', 'beat'

# Who shares the processor with the process goes first, from its imports on. An interrupt from the
# keyboard is not for it.
_START = (
    'import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); '
    'hasattr(os, "nice") and os.nice(5); sys.path[:] = sys.argv[1:]; '
    'from hodyn_ros.ros.planner.planning import serve; serve()'
)


class Service(NamedTuple):
    """How requests of a kind are answered."""

    name: str
    kind: Any
    answer: Callable[[Robot | None, Any, NodeSettings], Any]

    def refusal(self, error_code: int, message: str) -> Any:
        """Response to a request that is not answered."""
        return self.kind.Response(error_code=error_code, message=message)


# The fields success, error_code and message, and the codes below, are those of all of them. The
# functions are looked up when they are called.
SERVICES = (
    Service('compute_inverse_dynamics', ComputeInverseDynamics, lambda *given: answer(*given)),
    Service('retime', RetimeTrajectory, lambda *given: retimed(*given)),
)
_Send = Callable[[Any, Any], None]
BUSY, INTERNAL_ERROR = RetimeTrajectory.Response.BUSY, RetimeTrajectory.Response.INTERNAL_ERROR
_KINDS = {
    RetimeTrajectory.Response.INVALID_JOINTS: 'unknown joints',
    INTERNAL_ERROR: 'internal',
    BUSY: 'busy',
}


class Identity(NamedTuple):
    """How the planner appears in the graph of nodes."""

    node_name: str  # of the node that it plans for
    namespace: str
    domain_id: int
    enclave: str
    service_names: tuple[str, ...]  # in the order of SERVICES
    trajectory_topic: str
    qos_overrides: tuple[tuple[str, Any], ...]


class Served(NamedTuple):
    """A request has been answered."""

    service: str
    error: str  # empty on success
    kind: str  # of the refusal
    waiting: int  # requests


class ForController(NamedTuple):
    """Points of a plan for a controller, which the node publishes when it decides on it."""

    number: int  # of the task
    data: bytes  # serialized JointTrajectory, whose stamp is left open
    offset: int  # from the start of the plan to the stamp [ns]
    since: float  # when it was sent to the node, of a steady clock [s]


class ProcessWatch:
    """State of a process that is to give signs of life; times are of a steady clock [s].

    ENDED, `begin`: STARTING, `hear`: RUNNING, for SILENT_SAID neither a sign nor work: SILENT, a
    sign or work: RUNNING. From all of them `end` leads to ENDED.
    """

    def __init__(self) -> None:
        self.state = ENDED
        self.silence = 0.0
        """For how long there has been no sign, at the latest look [s]."""
        self.overdue = ''
        """Why the process is to be killed; empty if it is not."""
        self._heard = self._worked = self._looked = self._ready_time = self._computed = 0.0

    def begin(self, now: float, ready_time: float) -> None:
        """A process has been started, and gives its first sign within a time."""
        self.state, self.silence, self.overdue = STARTING, 0.0, ''
        self._heard = self._worked = self._looked = now
        self._ready_time, self._computed = ready_time, 0.0

    def hear(self, now: float) -> None:
        """The process has given a sign of life."""
        if self.state != ENDED:
            self.state, self._heard, self.overdue = RUNNING, now, ''

    def end(self) -> None:
        """The process is no more."""
        self.state, self.silence = ENDED, 0.0

    def look(self, now: float, computed: float) -> None:
        """Bring `state`, `silence` and `overdue` up to date; to be called every LOOK_PERIOD.

        `computed` is how long the process has computed so far [s].
        """
        # While who looks is held up, signs wait unread.
        held_up = max(now - self._looked - _LONGEST_LOOK, 0.0)
        self._heard, self._looked = min(self._heard + held_up, now), now
        self._worked = now if computed > self._computed else min(self._worked + held_up, now)
        self._computed = max(computed, self._computed)
        self.silence = silence = 0.0 if self.state == ENDED else now - self._heard
        if self.state == STARTING:
            if silence > self._ready_time:
                self.overdue = f'it was not ready within {self._ready_time:g} s'
        elif self.state != ENDED:
            idle = min(silence, now - self._worked)
            is_silent = idle > SILENT_SAID or silence > LONGEST_WORK
            self.state = SILENT if is_silent else RUNNING
            if idle > SILENT_KILLED or silence > LONGEST_WORK:
                self.overdue = f'it did not answer for {silence:.1f} s'


class PlanningClient:
    """Has a `Planner` plan; reports plans in the thread of the executor, which calls `look`."""

    def __init__(
        self,
        node: RobotNode[NodeSettings],
        report: Callable[[Plan], None],
        delivered: Callable[[float], None],
    ) -> None:
        self._node, self._report_plan, self._delivered = node, report, delivered
        self._watch = ProcessWatch()
        self._watched: subprocess.Popen[bytes] | None = None
        self._restarts, self._last_exit = -1, ''
        graph = node.get_node_names_and_namespaces_with_enclaves()
        names = node.get_name(), node.get_namespace()
        given = node.parameters.given.items()
        self._identity = Identity(
            *names,
            node.context.get_domain_id(),
            next((enclave for *others, enclave in graph if others == [*names]), '/'),
            tuple(node.resolve_service_name(f'~/{service.name}') for service in SERVICES),
            node.resolve_topic_name('~/effort_trajectory'),
            tuple(item for item in given if item[0].startswith('qos_overrides.')),
        )
        self._lock = threading.Lock()
        self._set_up: tuple[Any, ...] = '', False, node.settings, ()  # arguments of `use`
        self._controller = None
        if _hears_no_own_trajectories(node):
            self._controller = qos.create_publisher(
                node, JointTrajectory, '~/controller_trajectory', qos.EFFORT_TRAJECTORY
            )
        self._points: ForController | None = None  # of the latest plan
        self._published = 0.0  # when a controller was last sent something, of a steady clock [s]
        self._latest = 0  # number of the task that is perhaps not planned yet
        self._pipe: IO[bytes] | None = None
        self._closed = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._sender = Worker('sender', node.get_logger().error)
        self._thread = threading.Thread(target=self._run, name='planning process', daemon=True)
        self._thread.start()

    def set_up(self, robot: Robot | None, in_preparation: bool) -> None:
        """Plan with the robot in use from now on; for the first one in preparation, wait."""
        with self._lock:
            made_of = ('', ()) if robot is None else (robot.description, robot.payloads)
            self._set_up = made_of[0], in_preparation, self._node.settings, made_of[1]
            self._send('use', *self._set_up)

    def plan(self, task: Task) -> None:
        """Plan a trajectory; the plan is reported."""
        with self._lock:
            self._latest = task.number
            if not self._send('plan', task):
                self._refuse_latest()

    def accept(self, number: int, start: int) -> None:
        """Publish a plan for a controller at once, and have the whole answer to it published."""
        points, self._points = self._points, None
        if points is not None and points.number == number:
            self._publish(points.data, start + points.offset, points.since)
        with self._lock:
            self._send('accept', number, start)

    def publish(self, planned: PlannedMotion, remark: str) -> None:
        """Publish a motion to rest for a controller, and have the whole answer to it published.

        Its points are computed here: a robot is stopped whatever has become of the planner.
        """
        robot, since = self._node.robot, time.monotonic()
        if robot is not None and robot.model.joint_names == planned.joint_names:
            points, _, warning = planned_for_controller(robot, planned, self._node.settings)
            if warning:
                self._node.get_logger().error(warning)
            if points is not None:
                data = serialize_message(points)
                self._publish(data, planned.start + _to_stamp(planned), since)
        with self._lock:
            self._send('publish', planned, remark)

    def close(self) -> None:
        """End the process; what it has begun it finishes, but not for long."""
        with self._lock:
            self._closed.set()
            process, pipe = self._process, self._pipe
        if process is not None:
            self._sender.put(lambda: _close(pipe))
            process.terminate()  # which one that still imports heeds, and no other
            try:
                process.wait(CLOSING_TIME)
            except subprocess.TimeoutExpired:
                process.kill()
        self._thread.join()
        self._sender.close()

    def _send(self, command: str, *arguments: Any) -> bool:
        """Tell the planner something, if there is one; to be called with the lock."""
        pipe = self._pipe
        if pipe is not None:
            self._sender.put(lambda: _write(pipe, (command, arguments)))
        return pipe is not None

    def look(self, now: float) -> bool:
        """Look after the process at a time [s]; whether it plans what it is told."""
        watch, before, process = self._watch, self._watch.state, self._watched
        watch.look(now, 0.0 if process is None else processor_time(process.pid))
        if watch.state == SILENT != before:
            self._node.get_logger().error(
                f'Planning does not answer since {watch.silence:.1f} s: its process hangs or was '
                f'stopped. After {SILENT_KILLED:g} s it is started again; what is asked for waits.'
            )
        elif before == SILENT:
            self._tell_end_of_silence()
        if watch.overdue and process is not None:
            process.kill()
        self._note_process()
        return watch.state == RUNNING

    def _note_process(self) -> None:
        process, watch = self._watched, self._watch
        pid = None if process is None else process.pid
        self._node.diagnostics.process = ProcessHealth(
            watch.state, self._restarts, self._last_exit, pid, watch.silence
        )

    def _on_begin(self, process: subprocess.Popen[bytes], ready_time: float) -> None:
        self._watched = process
        self._restarts += 1
        self._watch.begin(time.monotonic(), ready_time)
        self._note_process()

    def _on_end(self, last_exit: str) -> None:
        self._watched, self._last_exit = None, self._watch.overdue or last_exit
        self._watch.end()
        self._note_process()
        self._node.get_logger().error(
            f'The planning process is started again: {self._last_exit}. Requests that it was '
            'answering are lost.'
        )

    def _publish(self, data: bytes, stamp: int, since: float) -> None:
        """Publish points, decided on at a time [s], with a stamp [ns] before which they arrive."""
        if self._controller is None:
            return
        # A controller that gets two in one of its cycles drops the first.
        time.sleep(max(self._published + SPACING - time.monotonic(), 0.0))
        order = '<' if data[1] & 1 else '>'
        # The stamp stands behind the four bytes that say how a message is encoded.
        at = struct.pack(f'{order}iI', *divmod(stamp, NANOSECONDS))
        self._controller.publish(data[:4] + at + data[4 + len(at) :])
        self._published = time.monotonic()
        self._delivered(self._published - since)

    def _on_event(self, event: Plan | Served | ForController | str) -> None:
        node, before = self._node, self._watch.state
        self._watch.hear(time.monotonic())
        if before == SILENT:
            self._tell_end_of_silence()
        elif before == STARTING and self._restarts:
            node.get_logger().info('The planning process is running again.')
        if before != self._watch.state:
            self._note_process()
        if isinstance(event, Plan):
            self._report_plan(event)
        elif isinstance(event, Served):
            self._on_served(event)
        elif isinstance(event, ForController):
            self._points = event

    def _tell_end_of_silence(self) -> None:
        if self._watch.state == RUNNING:
            self._node.get_logger().warning('Planning answers again.')

    def _on_served(self, event: Served) -> None:
        node = self._node
        node.diagnostics.waiting = event.waiting, node.settings.max_waiting_requests
        if event.error:
            node.diagnostics.refused(event.service, event.error, event.kind)
            node.log_error(event.service, f'{event.service} refused: {event.error}')
        else:
            node.diagnostics.received(event.service)

    def _run(self) -> None:
        restarts, pause = 0, _FIRST_PAUSE
        while True:
            begin = time.monotonic()
            last_exit = self._one_life(_READY_TIME * min(restarts + 1, 4))
            if self._closed.is_set():
                return
            self._node.soon(self._on_end, last_exit)
            self._refuse_latest()
            pause = _FIRST_PAUSE if time.monotonic() - begin > _LONG_LIFE else pause
            self._closed.wait(pause)
            restarts, pause = restarts + 1, min(2.0 * pause, _LONGEST_PAUSE)

    def _refuse_latest(self) -> None:
        """Refuse the latest task; who has its plan already takes no notice."""
        text = 'The process that planned it has ended.'
        self._node.soon(self._report_plan, Plan(self._latest, None, error=text, kind='internal'))

    def _one_life(self, ready_time: float) -> str:
        """Run a process until it ends; return why it has."""
        command = [sys.executable or 'python3', '-c', _START, *sys.path]
        with self._lock:
            if self._closed.is_set():
                return ''
            try:
                process = self._process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
                )
            except OSError as error:
                return f'it cannot be started: {error}'
            assert process.stdin is not None
            assert process.stdout is not None
            self._pipe = process.stdin
            self._send('', self._identity, self._node.settings)
            self._send('use', *self._set_up)
        # Some middleware waits for ever for memory that a killed process has left half made, hence
        # the time within which it is to be ready.
        self._node.soon(self._on_begin, process, ready_time)
        try:
            while True:
                event = pickle.load(process.stdout)
                if event == ECHO:
                    with self._lock:
                        self._send('echo')
                self._node.soon(self._on_event, event)
        except Exception:  # the end, or a pickle that is cut off, which raises errors of any class
            pass
        process.kill()
        code = process.wait()
        with self._lock:
            self._pipe = None
        self._sender.put(lambda: _close(process.stdin))
        process.stdout.close()
        return f'it has ended with exit code {code}'


def _hears_no_own_trajectories(node: RobotNode[NodeSettings]) -> bool:
    """Whether trajectories for a controller have another topic than those that the node takes."""
    topic: str = node.resolve_topic_name('~/controller_trajectory')
    if topic != node.resolve_topic_name(TRAJECTORY):
        return True
    node.get_logger().error(
        f'No trajectories for a controller are published: {topic} is where the node gets its own '
        'ones. Have planners send theirs to another topic (joint_trajectory).'
    )
    return False


def _write(pipe: IO[bytes], item: object) -> None:
    with suppress(OSError, ValueError):  # the process has ended, which its reader finds too
        pickle.dump(item, pipe, pickle.HIGHEST_PROTOCOL)
        pipe.flush()


def _close(pipe: IO[bytes] | None) -> None:
    with suppress(OSError):  # what was not written yet goes nowhere
        if pipe is not None:
            pipe.close()


class Planner:
    """Plans trajectories, publishes whole answers and answers the service, as a node of its own.

    Trajectories have a thread, and so have requests, which are answered one after the other. They
    are taken in a third, so that whoever is refused knows it at once.
    """

    def __init__(
        self,
        identity: Identity,
        settings: NodeSettings,
        report: Callable[[Plan | Served | ForController | str], None],
        context: Context,
    ) -> None:
        self._settings, self._report = settings, report
        self._robot: Robot | None = None
        self._latest: tuple[int, JointEffortTrajectory] | None = None  # whole answer to a plan
        self._changed = threading.Condition()  # of what requests wait for
        self._parts: tuple[Any, ...] = ('',)  # what the robot is made of
        self._is_expected = False
        self._unused = 0  # robots that are still to be made
        self._unanswered = 0  # requests, of which one has its turn
        self._closed = False
        self._asked = self._echoed = 0  # echoes, which come in order
        self._end: Future[None] = Future()  # of taking requests
        overrides = [Parameter(name, value=value) for name, value in identity.qos_overrides]
        node = self._node = Node(
            f'{identity.node_name}_services',
            namespace=identity.namespace,
            context=context,
            start_parameter_services=False,  # its parameters are those of the node
            parameter_overrides=overrides,
        )
        self._publisher = qos.create_publisher(
            node, JointEffortTrajectory, identity.trajectory_topic, qos.EFFORT_TRAJECTORY
        )
        for service, name in zip(SERVICES, identity.service_names):
            entity = node.create_service(
                service.kind,
                name,
                lambda request, response: request,
                qos_profile=QoSProfile(depth=_DEPTH, reliability=ReliabilityPolicy.RELIABLE),
            )
            # The executor sends what a callback returns as soon as it returns. So the callback
            # passes the request on to what the executor takes for the sending.
            entity.send_response = partial(self._take, service, entity.send_response)
        self._executor = SingleThreadedExecutor(context=context)
        self._executor.add_node(node)
        self._unpack = self._executor._take_service
        self._executor._take_service = self._take_readable
        self._worker = Worker('planning', node.get_logger().error)
        self._worker.put(prepare_chunks)
        self._answering = Worker('answering', node.get_logger().error)
        self._thread = threading.Thread(target=self._spin, name='service', daemon=True)
        self._thread.start()

    def use(
        self,
        description: str,
        is_expected: bool,
        settings: NodeSettings,
        payloads: tuple[Payload, ...],
    ) -> None:
        """Use settings and, once it is made, a robot; requests wait for it or an expected one."""
        parts = (
            description,
            payloads,
            settings.limits,
            settings.actuators,
            settings.friction,
            settings.command,
        )
        with self._changed:
            self._settings, self._is_expected = settings, is_expected
            is_other, self._parts = parts != self._parts, parts
            self._unused += is_other
            self._changed.notify_all()
        if is_other:
            self._worker.put(lambda: self._make_robot(description, settings, payloads))

    def echo(self) -> None:
        """Answer the wish for an echo."""
        with self._changed:
            self._echoed += 1
            self._changed.notify_all()

    def plan(self, task: Task) -> None:
        """Plan a trajectory; the plan is reported."""
        failed = partial(refused_plan, task)
        self._worker.put(lambda: self._plan(task), lambda error: self._report(failed(error)))

    def accept(self, number: int, start: int) -> None:
        """Publish the whole answer to a plan that starts at a time [ns]."""

        def accept() -> None:
            latest, self._latest = self._latest, None
            if latest is not None and latest[0] == number:
                self._publish(latest[1], start)

        self._worker.put(accept)

    def publish(self, planned: PlannedMotion, remark: str) -> None:
        """Compute the whole answer to a motion to rest."""

        def publish() -> None:
            robot = self._robot
            if robot is not None and robot.model.joint_names == planned.joint_names:
                whole = whole_answer(robot, planned, self._settings, remark)
                if self._settings.base_motion:
                    leave_efforts_out(whole)
                self._publish(whole, planned.start)

        self._worker.put(publish)

    def _publish(self, whole: JointEffortTrajectory, start: int) -> None:
        """Publish the whole answer to a motion that starts at a time [ns]."""
        whole.header.stamp = time_message(start)
        self._publisher.publish(whole)

    def close(self, grace: float) -> None:
        """Finish what has been begun, up to a time [s]."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._end.set_result(None)
        end = time.monotonic() + grace
        for close in (
            self._thread.join,
            partial(self._answering.close, drop=False),
            self._worker.close,
            self._executor.shutdown,
        ):
            close(max(0.0, end - time.monotonic()))
        self._node.destroy_node()

    def _spin(self) -> None:
        while not self._closed:
            try:
                self._executor.spin_until_future_complete(self._end)
                return
            except ExternalShutdownException:
                return
            except Exception:
                self._node.get_logger().error(traceback.format_exc())

    def _make_robot(
        self, description: str, settings: NodeSettings, payloads: tuple[Payload, ...]
    ) -> None:
        self._robot = None  # the one before is not to stay if this one fails
        try:
            self._robot = robot_of(description, settings, payloads)
        finally:
            with self._changed:
                self._unused -= 1
                self._changed.notify_all()

    def _plan(self, task: Task) -> None:
        begin = time.perf_counter()
        if task.topic == CHUNK:  # There is no time for a whole answer.
            plan = plan_chunk(self._robot, task, self._settings)
            self._report(plan._replace(duration=time.perf_counter() - begin))
            return
        plan, message = plan_trajectory(self._robot, task, self._settings)
        exceeded = exceeded_limits(message, 'effort_trajectory has all of them.')
        assert self._robot is not None and plan.planned is not None
        points, *texts = planned_for_controller(self._robot, plan.planned, self._settings)
        remark, warning = ((text,) if text else () for text in texts)
        message.remarks = [*message.remarks, *remark, *warning]
        self._latest = task.number, message
        if points is not None:
            data, offset = serialize_message(points), _to_stamp(plan.planned)
            self._report(ForController(task.number, data, offset, time.monotonic()))
        plan = plan._replace(
            remarks=(*plan.remarks, *remark), warnings=(*plan.warnings, *exceeded, *warning)
        )
        self._report(plan._replace(duration=time.perf_counter() - begin))

    def _take(self, service: Service, send: _Send, request: Any, header: Any) -> None:
        """Have a request answered when its turn comes, or refuse it at once."""
        waiting = self._waiting
        if waiting < self._settings.max_waiting_requests:
            with self._changed:
                self._unanswered += 1
            self._answering.put(lambda: self._reply(service, send, request, header))
            return
        text = (
            f'{waiting} requests wait already, as many as max_waiting_requests allows; try again '
            'later.'
        )
        self._respond(service, send, service.refusal(BUSY, text), header)

    def _take_readable(self, service: Any) -> Any:
        try:
            return self._unpack(service)
        except Exception:  # such as text that is not UTF-8; rclpy would take no more
            self._node.get_logger().error(traceback.format_exc())
            name = service.service_name.rpartition('/')[2]
            text = 'The request cannot be unpacked.'
            self._report(Served(name, text, 'invalid', self._waiting))
            return None

    @property
    def _waiting(self) -> int:
        return max(self._unanswered - 1, 0)

    def _reply(self, service: Service, send: _Send, request: Any, header: Any) -> None:
        # What was set at the node before the request may come after it: they go different ways.
        self._asked += 1
        self._report(ECHO)
        with self._changed:
            self._changed.wait_for(
                lambda: self._closed or self._echoed == self._asked, _ASKING_TIME
            )
            self._changed.wait_for(lambda: self._closed or self._is_settled())
        try:
            if self._closed:
                response = service.refusal(INTERNAL_ERROR, 'The node ends.')
            else:
                response = service.answer(self._robot, request, self._settings)
        except BaseException as error:  # whoever has asked gets to know it
            self._node.get_logger().error(traceback.format_exc())
            response = service.refusal(INTERNAL_ERROR, reason(error))
        with self._changed:
            self._unanswered -= 1
        self._respond(service, send, response, header)

    def _is_settled(self) -> bool:
        return not (self._unused or (self._is_expected and self._robot is None))

    def _respond(self, service: Service, send: _Send, response: Any, header: Any) -> None:
        try:
            send(response, header)
        except Exception as error:  # whoever has asked gets to know it
            self._node.get_logger().error(traceback.format_exc())
            response = service.refusal(INTERNAL_ERROR, reason(error))
            send(response, header)
        kind = _KINDS.get(response.error_code, 'invalid')
        self._report(Served(service.name, response.message, kind, self._waiting))


def _to_stamp(planned: PlannedMotion) -> int:
    """From the start of a motion to the stamp of what a controller gets of it [ns]."""
    return planned.first - planned.start - round(LEAD_IN * NANOSECONDS)


def _beat(report: Callable[[str], None]) -> None:
    """Give signs of life, also while the other threads compute."""
    with suppress(OSError, ValueError):  # the node is no more
        while True:
            report(BEAT)
            time.sleep(_BEAT_PERIOD)


def serve() -> None:
    """Plan what is asked for on the standard input; the process that is started."""
    inbox = sys.stdin.buffer
    outbox = os.fdopen(os.dup(1), 'wb')
    os.dup2(2, 1)  # whatever prints does not get into the answers
    lock = threading.Lock()

    def report(event: Plan | Served | ForController | str) -> None:
        with lock:
            pickle.dump(event, outbox, pickle.HIGHEST_PROTOCOL)
            outbox.flush()

    planner, code = None, 1
    # From here on the middleware is in use, and the end comes with that of the input.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with suppress(EOFError):  # the node is done with it, or is no more
            _, (identity, settings) = pickle.load(inbox)
            context = Context()
            enclave = ['--ros-args', '--enclave', identity.enclave]
            rclpy.init(args=enclave, context=context, domain_id=identity.domain_id)
            planner = Planner(identity, settings, report, context)
            report(STARTED)
            beat = partial(_beat, report)
            threading.Thread(target=beat, name='signs of life', daemon=True).start()
            while True:
                command, arguments = pickle.load(inbox)
                getattr(planner, command)(*arguments)
        if planner is not None:
            planner.close(GRACE)  # with the node, nobody waits for the end of a long answer
        code = 0
    except BaseException:
        traceback.print_exc()
    os._exit(code)
