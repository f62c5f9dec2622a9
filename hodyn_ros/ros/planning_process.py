"""The planning in a process of its own: started, fed through a pipe, and restarted if it ends."""

from __future__ import annotations

import os
import pickle
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import IO, Any, NamedTuple

import rclpy
from rclpy.context import Context
from rclpy.node import Node

from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.engine.engine import engine_of, unavailable
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.ros.answers import Robot
from hodyn_ros.ros.planner import Plan, Task
from hodyn_ros.ros.planning import SERVICE, Asked, Event, Identity, Planner, Planning
from hodyn_ros.ros.preparation import ORDERS
from hodyn_ros.ros.settings import Settings
from hodyn_ros.ros.timeline import PlannedMotion

# Who shares the processor with it goes first.
NICENESS = 5

GRACE = 0.3  # s, for an answer that is under way when the node ends
CLOSING_TIME = 2.0  # s, until a process that has not ended by itself is killed
ECHO_TIME = 1.0  # s, after which an answer goes on with what is known

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 10.0  # s, before a restart
_LONG_LIFE = 30.0  # s, after which an end is no sign that the next one comes soon

_START = (
    'import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); '
    'sys.path[:] = sys.argv[1:]; '
    'from hodyn_ros.ros.planning_process import serve; serve()'
)

_COMMANDS = ('set_robot', 'set_settings', 'plan', 'accept', 'publish')


class ProcessState(NamedTuple):
    """The process has started or ended."""

    running: bool
    starts: int
    error: str
    """Why it has ended, or the one before it."""
    pid: int | None = None


def new_planner(
    node: Node,
    settings: Settings,
    report: Callable[[Event | ProcessState], None],
    expect_wrenches: Callable[[RobotModel, Sequence[Wrench]], None],
) -> Planner:
    """Planner of a node, in a process of its own or in this one, as the settings want it.

    Parameters
    ----------
    node : rclpy.node.Node
        To which topics and services of the planner seem to belong.
    settings : Settings
    report : callable
        Is called with every event, in whatever thread.
    expect_wrenches : callable
        Called with a robot and the wrenches of a request, to compile its dynamics with them.
    """
    identity = Identity(
        node.get_name(),
        node.get_namespace(),
        node.context.get_domain_id(),
        node.resolve_service_name(f'~/{SERVICE}'),
        node.resolve_topic_name('~/effort_trajectory'),
        tuple(
            (name, parameter.value)
            for name, parameter in node._parameter_overrides.items()
            if name.startswith('qos_overrides.')
        ),
    )
    if settings.planning_process and sys.executable:
        return PlanningProcess(identity, settings, report)
    # Robots are compiled for the node already, and what it knows is known here.
    return Planning(
        identity,
        node.context,
        settings,
        report,
        lambda model: None,
        expect_wrenches,
        lambda: None,
    )


class PlanningProcess:
    """Plans trajectories and answers requests in another process.

    Parameters
    ----------
    identity : Identity
    settings : Settings
    report : callable
        Is called with every event and every state of the process, in whatever thread.
    """

    def __init__(
        self,
        identity: Identity,
        settings: Settings,
        report: Callable[[Event | ProcessState], None],
    ) -> None:
        self._identity, self._settings, self._report = identity, settings, report
        self._lock = threading.Lock()
        self._robot: tuple[Robot | None, bool] = (None, False)
        self._open: set[int] = set()
        self._closed = threading.Event()
        self._outbox: queue.SimpleQueue[tuple[str, tuple[Any, ...]] | None] = queue.SimpleQueue()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._run, name='planning process', daemon=True)
        self._thread.start()

    def set_robot(self, robot: Robot | None, in_preparation: bool) -> None:
        """Use a robot from now on; whether requests wait for a first one."""
        with self._lock:
            self._robot = robot, in_preparation
            self._put('set_robot', robot, in_preparation)

    def set_settings(self, settings: Settings) -> None:
        """Use other settings from now on."""
        with self._lock:
            self._settings = settings
            self._put('set_settings', settings)

    def plan(self, task: Task) -> None:
        """Plan a trajectory; the plan is reported."""
        with self._lock:
            self._open.add(task.number)
            self._put('plan', task)

    def accept(self, number: int, start: int) -> None:
        """Publish the whole answer to a plan that starts at a time [ns]."""
        self._put('accept', number, start)

    def publish(self, planned: PlannedMotion, remark: str) -> None:
        """Compute and publish the whole answer to a motion."""
        self._put('publish', planned, remark)

    def echo(self, number: int) -> None:
        """Answer `Asked`, behind all that has been put before."""
        self._put('echo', number)

    def close(self) -> None:
        """Finish what has been begun, but not for long, and end the process."""
        with self._lock:
            self._closed.set()
            self._outbox.put(None)
            process = self._process
        if process is not None:
            try:
                process.wait(CLOSING_TIME)
            except subprocess.TimeoutExpired:
                process.kill()
        self._thread.join()

    def _put(self, command: str, *arguments: Any) -> None:
        self._outbox.put((command, arguments))

    def _run(self) -> None:
        starts, pause = 0, _FIRST_PAUSE
        error = ''
        while not self._closed.is_set():
            starts += 1
            begin = time.monotonic()
            error = self._one_life(starts, error)
            if self._closed.is_set():
                return
            self._report(ProcessState(False, starts, error))
            with self._lock:
                lost, self._open = self._open, set()
            self._refuse(lost)
            if time.monotonic() - begin > _LONG_LIFE:
                pause = _FIRST_PAUSE
            self._closed.wait(pause)
            pause = min(2.0 * pause, _LONGEST_PAUSE)

    def _refuse(self, numbers: set[int]) -> None:
        for number in sorted(numbers):
            reason = 'The process that planned it has ended.'
            self._report(Plan(number, None, error=reason, kind='internal'))

    def _one_life(self, starts: int, last_error: str) -> str:
        """Run a process until it ends; return why it has."""
        if not sys.executable:
            return 'there is no Python interpreter to start'
        with self._lock:
            if self._closed.is_set():
                return ''
            try:
                process = self._process = subprocess.Popen(
                    [sys.executable, '-c', _START, *sys.path],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    start_new_session=True,  # an interrupt from the keyboard is not for it
                )
            except OSError as error:
                return f'it cannot be started: {error}'
            lost = self._open  # those that came since the last process has ended
            self._open = set()
            outbox = self._outbox = queue.SimpleQueue()
            outbox.put(('', (self._identity, self._settings)))
            outbox.put(('set_robot', self._robot))
        self._refuse(lost)
        assert process.stdin is not None
        assert process.stdout is not None
        sender = threading.Thread(target=_send, args=(outbox, process.stdin), daemon=True)
        sender.start()
        try:
            while True:
                event = pickle.load(process.stdout)
                if isinstance(event, ProcessState):
                    event = ProcessState(True, starts, last_error, process.pid)
                elif isinstance(event, Plan):
                    with self._lock:
                        self._open.discard(event.number)
                self._report(event)
        except (EOFError, OSError, pickle.UnpicklingError):
            pass
        process.kill()
        code = process.wait()
        outbox.put(None)
        sender.join()
        process.stdout.close()
        return f'it has ended with exit code {code}'


def _send(
    outbox: queue.SimpleQueue[tuple[str, tuple[Any, ...]] | None], pipe: IO[bytes]
) -> None:
    try:
        with pipe:
            while (item := outbox.get()) is not None:
                pickle.dump(item, pipe, pickle.HIGHEST_PROTOCOL)
                pipe.flush()
    except OSError:  # the process has ended, which its reader finds too
        pass


class _Echo:
    """Waits until the node answers, behind everything that it has sent before.

    What is set at the node, such as a parameter, is then known here: a request that comes later
    may have overtaken it.
    """

    def __init__(self, report: Callable[[object], None]) -> None:
        self._report = report
        self._number = 0
        self._latest = 0
        self._changed = threading.Condition()

    def ask(self) -> None:
        with self._changed:
            self._number += 1
            number = self._number
        self._report(Asked(number))
        with self._changed:
            self._changed.wait_for(lambda: self._latest >= number, ECHO_TIME)

    def answer(self, number: int) -> None:
        with self._changed:
            self._latest = number
            self._changed.notify_all()


def serve() -> None:
    """Plan what is asked for on the standard input; the process that is started."""
    if hasattr(os, 'nice'):
        os.nice(NICENESS)
    inbox = sys.stdin.buffer
    outbox = os.fdopen(os.dup(1), 'wb')
    os.dup2(2, 1)  # whatever prints does not get into the answers
    lock = threading.Lock()

    def report(event: object) -> None:
        with lock:
            pickle.dump(event, outbox, pickle.HIGHEST_PROTOCOL)
            outbox.flush()

    planning = None
    try:
        _, (identity, settings) = pickle.load(inbox)
        context = Context()
        rclpy.init(args=[], context=context, domain_id=identity.domain_id)
        echo = _Echo(report)
        planning = Planning(
            identity, context, settings, report, _prepare, lambda model, wrenches: None, echo.ask
        )
        report(ProcessState(True, 0, ''))  # the other side knows the rest
        while True:
            command, arguments = pickle.load(inbox)
            if command == 'echo':
                echo.answer(*arguments)
            elif command in _COMMANDS:
                getattr(planning, command)(*arguments)
    except EOFError:  # the node is done with it, or is no more
        pass
    if planning is not None:
        # With the node, nobody waits for the end of a long answer.
        planning.close(GRACE)
    os._exit(0)


def _prepare(model: RobotModel) -> None:
    """Take up or make compiled code, without which NumPy computes the same."""
    try:
        engine = engine_of(model)
        if not unavailable():
            for order in ORDERS:
                if engine.form(order) is not None:
                    engine.prepare(order, ())
    except Exception:
        pass
