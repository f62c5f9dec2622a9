"""The end of planning in the node: it starts the process, feeds it by a pipe, starts it again."""

from __future__ import annotations

import os
import pickle
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any

from rclpy.serialization import serialize_message
from trajectory_msgs.msg import JointTrajectory

from hodyn_ros.ros.base import qos
from hodyn_ros.ros.base.node import RobotNode
from hodyn_ros.ros.base.node_settings import NodeSettings
from hodyn_ros.ros.base.worker import Worker
from hodyn_ros.ros.planner.controllers import planned_for_controller, to_stamp
from hodyn_ros.ros.planner.messages import (
    MOST_WAITING_REQUESTS,
    SERVICES,
    Begin,
    BeginElastic,
    Event,
    ForController,
    Ready,
    Served,
    Version,
)
from hodyn_ros.streams.health import ProcessHealth, StreamHealth, reason
from hodyn_ros.streams.motion_stream import (
    LOST,
    TRAJECTORY,
    Instant,
    MotionStream,
    Plan,
    Task,
)
from hodyn_ros.streams.process_watch import (
    RUNNING,
    SILENT,
    SILENT_KILLED,
    STARTING,
    ProcessWatch,
    processor_time,
)
from hodyn_ros.streams.robot import Robot
from hodyn_ros.streams.timeline import NANOSECONDS, PlannedMotion

# A process that says nothing any more has this time to end by itself [s].
_LAST_TIME = 1.0

CLOSING_TIME = 2.0  # s, until a process that has not ended by itself is killed

# A process that is not ready within the time is killed, up to four times that after restarts [s].
_READY_TIME = 30.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 10.0  # s, before a restart
_LONG_LIFE = 30.0  # s, after which an end is no sign that the next one comes soon

# Between two trajectories for a controller [s]: a few of the cycles of any.
SPACING = 0.004

# Who shares the processor with the process goes first, from its imports on. An interrupt from the
# keyboard is not for it. Where a node is killed, Linux kills it too (PR_SET_PDEATHSIG), even if it
# hangs or compiles; elsewhere it ends with its input.
_START = (
    'import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); '
    'hasattr(os, "nice") and os.nice(5); sys.path[:] = sys.argv[1:]; '
    'sys.platform == "linux" and __import__("ctypes").CDLL(None).prctl(1, signal.SIGKILL); '
    'from hodyn_ros.ros.planner.process import serve; serve()'
)


class PlanningClient:
    """Has a `TaskPlanner` plan; reports plans in the thread of the executor.

    It starts the process at once, and again whenever it has ended. `look_after` is to be called
    every LOOK_PERIOD.

    Parameters
    ----------
    node : RobotNode
    begin : callable
        Returns what the planner is told first: a `Begin` or `BeginElastic`.
    report : callable
        Called with every `Plan`.
    """

    def __init__(
        self,
        node: RobotNode[Any],
        begin: Callable[[], Begin | BeginElastic],
        report: Callable[[Plan], None],
    ) -> None:
        self._node, self._begin, self._report_plan = node, begin, report
        self._watch = ProcessWatch()
        self._watched: subprocess.Popen[bytes] | None = None
        self._starts, self._last_exit = 0, ''
        self._lock = threading.Lock()
        # Arguments of `use`; the last one numbers them, for it to say which robot is ready.
        self._set_up: tuple[Any, ...] = '', False, node.settings, (), 1
        self._ready = 0
        self._latest = 0  # number of the task that is perhaps not planned yet
        self._pipe: IO[bytes] | None = None
        self._closed = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._sender = Worker('sender', node.get_logger().error)
        self._thread = threading.Thread(
            target=self._run, name='planning process', daemon=True
        )
        self._thread.start()

    def set_up(self, robot: Robot | None, in_preparation: bool) -> None:
        """Plan with the robot in use and the settings of the node from now on.

        Parameters
        ----------
        robot : Robot, optional
        in_preparation : bool
            Whether one is being made ready; requests wait for the first one.
        """
        with self._lock:
            made_of = ('', ()) if robot is None else (robot.description, robot.payloads)
            number = self._set_up[-1] + 1
            self._set_up = (
                made_of[0],
                in_preparation,
                self._node.settings,
                made_of[1],
                number,
            )
            self._send('use', *self._set_up)

    def plan(self, task: Task) -> None:
        """Plan a trajectory.

        Parameters
        ----------
        task : Task
            Its plan is reported; without a process it is refused.
        """
        with self._lock:
            self._latest = task.number
            if not self._send('plan', task):
                self._refuse_latest()

    def accept(self, number: int, start: int) -> None:
        """Do nothing: who asks for the plan executes it."""

    def publish(self, planned: PlannedMotion, remark: str) -> None:
        """Do nothing: who stops the robot executes the stop."""

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

    def look_after(self, stream: MotionStream, at: Instant) -> None:
        """Look after the process, which is killed if it hangs, and what waits for it.

        Parameters
        ----------
        stream : MotionStream
            Whose trajectories are planned.
        at : Instant
        """
        watch, before, process = self._watch, self._watch.state, self._watched
        watch.look(at.steady, 0.0 if process is None else processor_time(process.pid))
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
        is_ready = watch.state == SILENT or (
            watch.state == RUNNING and self._ready == self._set_up[-1]
        )
        stream.drop_overdue(watch.state == RUNNING, at, is_ready)
        if text := stream.long_planning(at, is_ready):
            self._node.get_logger().warning(text)

    def note_stream(self, stream: MotionStream, at: Instant) -> None:
        """Have the diagnostics of the node say what waits to be planned."""
        diagnostics = self._node.diagnostics
        diagnostics.waiting_trajectories = stream.waiting(at)
        lost = stream.why_lost if stream.state == LOST else ''
        diagnostics.stream = StreamHealth(stream.state, lost, stream.leads.delivery)

    @property
    def _restarts(self) -> int:
        return max(self._starts - 1, 0)

    def _note_process(self) -> None:
        process, watch = self._watched, self._watch
        pid = None if process is None else process.pid
        self._node.diagnostics.process = ProcessHealth(
            watch.state, self._restarts, self._last_exit, pid, watch.silence
        )

    def _on_begin(self, process: subprocess.Popen[bytes], ready_time: float) -> None:
        self._watched = process
        self._starts += 1
        self._watch.begin(time.monotonic(), ready_time)
        self._note_process()

    def _on_end(self, last_exit: str) -> None:
        self._watched, self._last_exit = None, self._watch.overdue or last_exit
        self._ready = 0
        self._watch.end()
        self._note_process()
        self._node.get_logger().error(
            f'The planning process is started again: {self._last_exit}. Requests that it was '
            'answering are lost.'
        )

    def _on_event(self, event: Event) -> None:
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
        elif isinstance(event, Ready):
            self._ready = event.version

    def _tell_end_of_silence(self) -> None:
        if self._watch.state == RUNNING:
            self._node.get_logger().warning('Planning answers again.')

    def _run(self) -> None:
        """Run one process after the other, until the client is closed; in a thread of its own."""
        restarts, pause = 0, _FIRST_PAUSE
        while True:
            begin = time.monotonic()
            last_exit = self._one_life(_READY_TIME * min(restarts + 1, 4), restarts > 0)
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
        self._node.soon(self._report_plan, Plan(self._latest, None, error=text))

    def _one_life(self, ready_time: float, is_next: bool) -> str:
        """Run a process until it ends.

        Parameters
        ----------
        ready_time : float
            Within which it is to be ready [s].
        is_next : bool
            Whether another one has ended before.

        Returns
        -------
        str
            Why it has ended; empty if the client was closed before.
        """
        command = [sys.executable or 'python3', '-c', _START, *sys.path]
        environment = dict(os.environ)
        if is_next:
            # Through the shared memory of Fast DDS nobody may reach a process that follows one
            # that was killed while it hung: what that one held stays locked.
            environment.setdefault('FASTDDS_BUILTIN_TRANSPORTS', 'UDPv4')
        with self._lock:
            if self._closed.is_set():
                return ''
            try:
                process = self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    start_new_session=True,
                    env=environment,
                )
            except OSError as error:
                return f'it cannot be started: {error}'
            assert process.stdin is not None
            assert process.stdout is not None
            self._pipe = process.stdin
            self._send('', self._begin())
            self._send('use', *self._set_up)
        # Some middleware waits for ever for memory that a killed process has left half made, hence
        # the time within which it is to be ready.
        self._node.soon(self._on_begin, process, ready_time)
        why = ''
        try:
            while True:
                event = pickle.load(process.stdout)
                if isinstance(event, Version):
                    with self._lock:
                        self._send('know', event.number)
                self._node.soon(self._on_event, event)
        except EOFError:  # its end
            pass
        except Exception as error:  # of any class: a pickle that is cut off, or none
            why = f', after something that cannot be read ({reason(error)})'
        try:
            last_exit = f'it has ended with exit code {process.wait(_LAST_TIME)}{why}'
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            what = 'it sent' if why else 'it has closed its output and did not end'
            last_exit = f'{what}{why.replace(", after", "")}; it was killed'
        with self._lock:
            self._pipe = None
        self._sender.put(lambda: _close(process.stdin))
        process.stdout.close()
        return last_exit


class ServingClient(PlanningClient):
    """Has a `Planner` plan, answer services, and publish whole answers under the name of a node.

    Parameters
    ----------
    node : RobotNode
        Its name, parameters and topics are those of the planner.
    report : callable
        Called with every `Plan`.
    delivered : callable
        Called with the time from the decision on a motion until a controller was sent it [s].
    """

    def __init__(
        self,
        node: RobotNode[NodeSettings],
        report: Callable[[Plan], None],
        delivered: Callable[[float], None],
    ) -> None:
        self._delivered = delivered
        graph = node.get_node_names_and_namespaces_with_enclaves()
        names = node.get_name(), node.get_namespace()
        given = node.parameters.given.items()
        begin = (
            *names,
            node.context.get_domain_id(),
            next((enclave for *others, enclave in graph if others == [*names]), '/'),
            tuple(node.resolve_service_name(f'~/{service}') for service in SERVICES),
            node.resolve_topic_name('~/effort_trajectory'),
            tuple(item for item in given if item[0].startswith('qos_overrides.')),
        )
        self._controller = None
        if _hears_no_own_trajectories(node):
            self._controller = qos.create_publisher(
                node, JointTrajectory, '~/controller_trajectory', qos.EFFORT_TRAJECTORY
            )
        # What a controller is sent waits beside, so that the stream does not.
        self._publishing = Worker('controller', node.get_logger().error)
        self._points: ForController | None = None  # of the latest plan
        # When a controller was last sent something, of a steady clock [s].
        self._published = 0.0
        super().__init__(node, lambda: Begin(*begin, node.settings), report)

    def accept(self, number: int, start: int) -> None:
        """Publish a plan for a controller at once, and have the whole answer to it published.

        Parameters
        ----------
        number : int
            Of the task.
        start : int
            When the time of the plan is zero [ns].
        """
        points, self._points = self._points, None
        if points is not None and points.number == number:
            stamp = start + points.offset
            self._put(lambda: self._publish(points.data, stamp, points.since))
        with self._lock:
            self._send('accept', number, start)

    def publish(self, planned: PlannedMotion, remark: str) -> None:
        """Publish a motion to rest for a controller, and have the whole answer to it published.

        Its points are computed here: a robot is stopped whatever has become of the planner.

        Parameters
        ----------
        planned : PlannedMotion
        remark : str
            In the answer.
        """
        robot, settings = self._node.robot, self._node.settings
        if robot is not None and robot.model.joint_names == planned.joint_names:
            since = time.monotonic()
            self._put(lambda: self._publish_stop(robot, planned, settings, since))
        with self._lock:
            self._send('publish', planned, remark)

    def close(self) -> None:
        """End the process; what it has begun it finishes, but not for long."""
        self._publishing.close(drop=False)
        super().close()

    def _put(self, job: Callable[[], object]) -> None:
        if self._controller is not None:
            self._publishing.put(job)

    def _publish_stop(
        self, robot: Robot, planned: PlannedMotion, settings: NodeSettings, since: float
    ) -> None:
        points, _, warning = planned_for_controller(robot, planned, settings)
        if warning:
            self._node.get_logger().error(warning)
        if points is not None:
            data = serialize_message(points)
            self._publish(data, planned.start + to_stamp(planned), since)

    def _publish(self, data: bytes, stamp: int, since: float) -> None:
        """Publish points for a controller.

        Parameters
        ----------
        data : bytes
            Serialized JointTrajectory, whose stamp is written anew.
        stamp : int
            Before it, the points arrive [ns].
        since : float
            When they were decided on, of a clock that never goes back [s].
        """
        assert self._controller is not None
        # A controller that gets two in one of its cycles drops the first.
        time.sleep(max(self._published + SPACING - time.monotonic(), 0.0))
        order = '<' if data[1] & 1 else '>'
        # The stamp stands behind the four bytes that say how a message is encoded.
        at = struct.pack(f'{order}iI', *divmod(stamp, NANOSECONDS))
        self._controller.publish(data[:4] + at + data[4 + len(at) :])
        self._published = time.monotonic()
        self._node.soon(self._delivered, self._published - since)

    def _on_event(self, event: Event) -> None:
        super()._on_event(event)
        if isinstance(event, Served):
            self._on_served(event)
        elif isinstance(event, ForController):
            self._points = event

    def _on_served(self, event: Served) -> None:
        node = self._node
        node.diagnostics.waiting = event.waiting, MOST_WAITING_REQUESTS
        if event.error:
            node.diagnostics.refused(event.service, event.error)
            node.log_error(event.service, f'{event.service} refused: {event.error}')
        else:
            node.diagnostics.received(event.service)


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
