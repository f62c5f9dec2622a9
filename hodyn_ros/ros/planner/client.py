"""The end of planning in the node: it starts the process, feeds it by a pipe, starts it again."""

from __future__ import annotations

import os
import pickle
import subprocess
import threading
import time
from contextlib import suppress
from typing import IO, Any

from hodyn_ros.planning_start import started
from hodyn_ros.ros.base.node import StreamNode
from hodyn_ros.ros.base.worker import Worker
from hodyn_ros.ros.planner.controllers import ControllerOutput
from hodyn_ros.ros.planner.planner import (
    MOST_WAITING_REQUESTS,
    SERVICES,
    ForController,
    Graph,
)
from hodyn_ros.streams.health import StreamHealth, reason
from hodyn_ros.streams.motion_stream import LOST, Plan, Task
from hodyn_ros.streams.process_watch import (
    LOOK_PERIOD,
    RUNNING,
    SILENT,
    SILENT_KILLED,
    STARTING,
    ProcessWatch,
    processor_time,
)
from hodyn_ros.streams.robot_in_use import Robot
from hodyn_ros.streams.timeline import PlannedMotion

# A process that says nothing any more has this time to end by itself [s].
_LAST_TIME = 1.0

CLOSING_TIME = 2.0  # s, until a process that has not ended by itself is killed

# A process that is not ready within the time is killed, up to four times that after restarts [s].
_READY_TIME = 30.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 10.0  # s, before a restart
_LONG_LIFE = 30.0  # s, after which an end is no sign that the next one comes soon


class PlanningClient:
    """Has a `Planner` in a process plan; reports plans in the thread of the executor.

    It starts the process at once, and again whenever it has ended, until the node is closed.

    Parameters
    ----------
    node : StreamNode
        Its stream gets every plan.
    output : ControllerOutput, optional
        With it the process plans for a `hodyn_node` and answers its services, and a controller is
        sent the motions; without it, it plans for a `flatness_controller`.
    """

    def __init__(
        self, node: StreamNode[Any], output: ControllerOutput | None = None
    ) -> None:
        self._node, self._output = node, output
        self._graph = None if output is None else graph_of(node)
        self._made: tuple[int, ForController | None] = 0, None  # of the latest plan
        self._watch = node.diagnostics.process = ProcessWatch()
        self._told = self._watch.state  # the last one that the log has
        node.diagnostics.stream = self._stream_health
        self._watched: subprocess.Popen[bytes] | None = None
        self._process: subprocess.Popen[bytes] | None = None  # perhaps not watched yet
        self._lock = threading.Lock()
        # Arguments of `use`; the first one numbers them, for it to say which robot is ready.
        self._set_up: tuple[Any, ...] = 1, '', False, node.settings
        self._ready = 0
        self._latest = 0  # number of the task that is perhaps not planned yet
        self._pipe: IO[bytes] | None = None
        self._closed = threading.Event()
        self._sender = Worker('sender', node.get_logger().error)
        self._thread = threading.Thread(
            target=self._run, name='planning process', daemon=True
        )
        self._thread.start()
        node.closing.append(self.close)
        node.every(LOOK_PERIOD, self._look_after)

    # What the node and its stream ask for

    def set_up(self, robot: Robot | None, in_preparation: bool) -> None:
        """Plan with the robot in use and the settings of the node from now on.

        Parameters
        ----------
        robot : Robot, optional
        in_preparation : bool
            Whether one is being made ready; requests wait for the first one.
        """
        xml, payloads = ('', ()) if robot is None else (robot.description, robot.payloads)
        with self._lock:
            number = self._set_up[0] + 1
            self._set_up = number, xml, in_preparation, self._node.settings, payloads
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
        """Send a plan to controllers at once, and have the whole answer to it published.

        Parameters
        ----------
        number : int
            Of the task.
        start : int
            When the time of the plan is zero, by the time of the stream [ns].
        """
        (planned, made), self._made = self._made, (0, None)
        if self._output is not None and made is not None and planned == number:
            self._output.send(made, start)
        with self._lock:
            self._send('accept', number, start + self._delay)

    def publish(self, planned: PlannedMotion, remark: str) -> None:
        """Send a motion to rest to controllers, and have the whole answer to it published.

        What they get is computed here: a robot is stopped whatever has become of the planner.

        Parameters
        ----------
        planned : PlannedMotion
            By the time of the stream.
        remark : str
            In the whole answer.
        """
        if self._output is not None:
            self._output.send_stop(planned)
        planned = planned._replace(start=planned.start + self._delay)
        with self._lock:
            self._send('publish', planned, remark)

    @property
    def _delay(self) -> int:
        """How far the time of the stream is behind that of the node [ns]."""
        return self._node.clock.delay(self._node.now())

    def close(self) -> None:
        """End the process; what it has begun it finishes, but not for long."""
        if self._output is not None:
            self._output.close()
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

    def _look_after(self) -> None:
        """Look after the process, which is killed if it hangs, and what waits for it."""
        watch, process, node = self._watch, self._watched, self._node
        node.preparation.tell_progress()
        at, stream = node.instant(), node.stream
        watch.look(at.steady, 0.0 if process is None else processor_time(process.pid))
        if watch.overdue and process is not None:
            process.kill()
        self._tell_state()
        is_ready = watch.state == SILENT or (
            watch.state == RUNNING and self._ready == self._set_up[0]
        )
        stream.drop_overdue(watch.state == RUNNING, at, is_ready)
        if text := stream.long_planning(at, is_ready):
            node.get_logger().warning(text)

    def _stream_health(self) -> StreamHealth:
        stream, at = self._node.stream, self._node.instant()
        lost = stream.why_lost if stream.state == LOST else ''
        return StreamHealth(stream.state, lost, stream.leads.delivery, *stream.waiting(at))

    # What the process reports

    def _on(self, event: str, arguments: tuple[Any, ...]) -> None:
        self._watch.hear(time.monotonic())
        self._tell_state()
        if event not in ('beat', 'version'):
            getattr(self, f'_on_{event}')(*arguments)

    def _report(self, plan: Plan) -> None:
        self._node.stream.on_plan(plan, self._node.instant())

    def _on_ready(self, version: int) -> None:
        self._ready = version

    def _on_planned(self, plan: Plan, made: ForController | None) -> None:
        self._made = plan.number, made
        self._report(plan)

    def _on_served(self, service: str, error: str, waiting: int) -> None:
        node = self._node
        node.diagnostics.waiting = waiting, MOST_WAITING_REQUESTS
        if error:
            node.diagnostics.refused(service, error)
            node.log_error(service, f'{service} refused: {error}')
        else:
            node.diagnostics.received(service)

    def _tell_state(self) -> None:
        """Have the log say what has become of the process."""
        watch, logger = self._watch, self._node.get_logger()
        before, self._told = self._told, watch.state
        if watch.state == SILENT != before:
            logger.error(
                f'Planning does not answer since {watch.silence:.1f} s: its process hangs or was '
                f'stopped. After {SILENT_KILLED:g} s it is started again; what is asked for waits.'
            )
        elif watch.state == RUNNING and before == SILENT:
            logger.warning('Planning answers again.')
        elif watch.state == RUNNING and before == STARTING and watch.restarts:
            logger.info('The planning process is running again.')

    # The process

    def _send(self, command: str, *arguments: Any) -> bool:
        """Tell the planner something, if there is one; to be called with the lock."""
        pipe = self._pipe
        if pipe is not None:
            self._sender.put(lambda: _write(pipe, (command, arguments)))
        return pipe is not None

    def _refuse_latest(self) -> None:
        """Refuse the latest task; who has its plan already takes no notice."""
        text = 'The process that planned it has ended.'
        self._node.soon(self._report, Plan(self._latest, None, error=text))

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

    def _on_begin(self, process: subprocess.Popen[bytes], ready_time: float) -> None:
        self._watched = process
        self._watch.begin(time.monotonic(), ready_time, process.pid)
        self._tell_state()

    def _on_end(self, last_exit: str) -> None:
        self._watched, self._ready = None, 0
        self._watch.end(last_exit)
        self._tell_state()
        self._node.get_logger().error(
            f'The planning process is started again: {self._watch.last_exit}. Requests that it '
            'was answering are lost.'
        )

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
        environment = dict(os.environ)
        if is_next:
            # Through the shared memory of Fast DDS nobody may reach a process that follows one
            # that was killed while it hung: what that one held stays locked.
            environment.setdefault('FASTDDS_BUILTIN_TRANSPORTS', 'UDPv4')
        with self._lock:
            if self._closed.is_set():
                return ''
            try:
                process = started(environment)
            except OSError as error:
                return f'it cannot be started: {error}'
            inbox, outbox = process.stdin, process.stdout
            assert inbox is not None and outbox is not None
            self._process, self._pipe = process, inbox
            begin = self._graph, self._node.settings
            self._sender.put(lambda: _write(inbox, begin))
            self._send('use', *self._set_up)
        # Some middleware waits for ever for memory that a killed process has left half made, hence
        # the time within which it is to be ready.
        self._node.soon(self._on_begin, process, ready_time)
        why = ''
        try:
            while True:
                event, arguments = pickle.load(outbox)
                if event == 'version':  # behind all that has been told
                    with self._lock:
                        self._send('know', *arguments)
                self._node.soon(self._on, event, arguments)
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
            self._process = self._pipe = None
        self._sender.put(lambda: _close(inbox))
        outbox.close()
        return last_exit


def graph_of(node: StreamNode[Any]) -> Graph:
    """How the planner of a node appears in the graph of nodes."""
    own = node.get_name(), node.get_namespace()
    graph = node.get_node_names_and_namespaces_with_enclaves()
    return Graph(
        *own,
        next((enclave for *others, enclave in graph if others == [*own]), '/'),
        node.context.get_domain_id(),
        tuple(node.resolve_service_name(f'~/{service}') for service in SERVICES),
        node.resolve_topic_name('~/effort_trajectory'),
        tuple(
            item
            for item in node.parameters.given.items()
            if item[0].startswith('qos_overrides.')
        ),
    )


def _write(pipe: IO[bytes], item: object) -> None:
    with suppress(OSError, ValueError):  # the process has ended, which its reader finds too
        pickle.dump(item, pipe, pickle.HIGHEST_PROTOCOL)
        pipe.flush()


def _close(pipe: IO[bytes] | None) -> None:
    with suppress(OSError):  # what was not written yet goes nowhere
        if pipe is not None:
            pipe.close()
