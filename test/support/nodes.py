"""Nodes as users start them, in processes, and a client of their topics and services.

The client spins in a thread; waiting is done on a condition that every arriving message signals.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticStatus
from rcl_interfaces.msg import SetParametersResult
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.context import Context
from rclpy.exceptions import InvalidHandle
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription

# s, only ever reached by a failing test: kernels may have to be compiled first.
TIMEOUT = 240.0
QUEUE = QoSProfile(depth=1000, reliability=ReliabilityPolicy.RELIABLE)
LATCHED = QoSProfile(
    depth=1,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)

# Each of the processes that share the tests has domains that no other one has.
_WORKER = int(os.environ.get('PYTEST_XDIST_WORKER', 'gw0').removeprefix('gw'))
_WORKERS = int(os.environ.get('PYTEST_XDIST_WORKER_COUNT', '1'))
_OWN = np.arange(1, 100)[_WORKER::_WORKERS]
_DOMAINS = itertools.cycle(np.roll(_OWN, os.getpid()).tolist())


def next_domain() -> int:
    """Return a ROS domain in which nodes meet no others of this or another test process."""
    return next(_DOMAINS)


def spin_to_end(executor: SingleThreadedExecutor) -> None:
    """Spin until the end, at which rclpy may destroy what a callback is about to trigger."""
    ended, shutdown = threading.Event(), executor.shutdown

    def end(*given: Any, **options: Any) -> Any:
        ended.set()
        return shutdown(*given, **options)

    executor.shutdown = end
    try:
        executor.spin()
    except (InvalidHandle, AttributeError):
        if not ended.is_set():
            raise


def dict_of(status: DiagnosticStatus) -> dict[str, str]:
    """Values of a diagnostic status by key."""
    return {item.key: item.value for item in status.values}


class Client:
    """A node in a domain that publishes, listens and asks, and the messages that have come.

    Attributes
    ----------
    client : Node
    messages : dict
        By topic.
    """

    def __init__(self, domain: int | None = None, namespace: str | None = None) -> None:
        self.domain = next_domain() if domain is None else domain
        # Also in the same domain, another test process uses other names.
        self.namespace = namespace or f'test_{uuid.uuid4().hex}'
        self.messages: dict[str, list[Any]] = defaultdict(list)
        self.arrived = threading.Condition()
        self.context = Context()
        rclpy.init(context=self.context, domain_id=self.domain)
        name = f'client_{uuid.uuid4().hex}'
        self.client = Node(name, context=self.context, namespace=self.namespace)
        self.publishers: dict[str, Publisher] = {}
        self.subscriptions: dict[str, Subscription] = {}
        self._executor = SingleThreadedExecutor(context=self.context)
        self._executor.add_node(self.client)
        self._thread = threading.Thread(
            target=spin_to_end, args=(self._executor,), daemon=True
        )
        self._thread.start()

    def offer(self, kind: type, topic: str, profile: Any = QUEUE) -> Publisher:
        """Publisher of the client, the same each time."""
        if topic not in self.publishers:
            self.publishers[topic] = self.client.create_publisher(kind, topic, profile)
        return self.publishers[topic]

    def keep(self, kind: type, topic: str, profile: Any = QUEUE) -> list[Any]:
        """Keep the messages on a topic."""

        def keep(message: Any) -> None:
            with self.arrived:
                self.messages[topic].append(message)
                self.arrived.notify_all()

        made = self.client.create_subscription(kind, topic, keep, profile)
        self.subscriptions[topic] = made
        return self.messages[topic]

    def match(self) -> None:
        """Wait until everything that is offered is heard."""
        for topic, publisher in self.publishers.items():
            self.wait(publisher.get_subscription_count, f'match {topic}')

    def wait(self, condition: Callable[[], Any], what: str) -> Any:
        """Wait until the condition holds and return its value."""
        deadline = time.monotonic() + TIMEOUT
        with self.arrived:
            while not (value := condition()):
                # The bound covers conditions that no message signals.
                self.arrived.wait(0.02)
                assert time.monotonic() < deadline, f'timed out: {what}'
            return value

    def received(self, topic: str, count: int = 1) -> list[Any]:
        """Wait for messages on a topic, and return all that have come."""
        kept = self.messages[topic]
        return self.wait(lambda: len(kept) >= count and list(kept), f'{count} on {topic}')

    def forget(self) -> None:
        """Drop the messages received so far."""
        with self.arrived:
            for kept in self.messages.values():
                kept.clear()

    def status(
        self, node: str, part: str, condition: Callable[[DiagnosticStatus], Any] = bool
    ) -> DiagnosticStatus:
        """Wait for a diagnostic status of a part of a node that meets a condition."""
        name = f'{self.namespace}/{node}: {part}'

        def find() -> DiagnosticStatus | None:
            for message in self.messages['/diagnostics']:
                for status in message.status:
                    if status.name == name and condition(status):
                        return status
            return None

        return self.wait(find, f'diagnostics of {part}')

    def ask(self, kind: type, name: str, request: Any) -> Any:
        """Call a service, once it is there, and wait for the answer.

        An answer is lost if, on a busy machine, the server has not found the client in the tenth
        of a second that the middleware waits for it; then the call is made again.
        """
        client = self.client.create_client(kind, name)
        assert client.wait_for_service(TIMEOUT)
        calls, patience, again = [], 10.0, 0.0

        def answered():
            nonlocal again, patience
            if time.monotonic() > again:
                again, patience = time.monotonic() + patience, 2.0 * patience
                calls.append(client.call_async(request))
            return next((call for call in calls if call.done()), None)

        found = self.wait(answered, f'answer of {name}')
        self.client.destroy_client(client)
        return found.result()

    def set_of(self, node: str, **values: Any) -> SetParametersResult:
        """Set parameters of a node together; a double underscore stands for a dot."""
        made = [
            Parameter(name.replace('__', '.'), value=value).to_parameter_msg()
            for name, value in values.items()
        ]
        request = SetParametersAtomically.Request(parameters=made)
        name = f'{node}/set_parameters_atomically'
        return self.ask(SetParametersAtomically, name, request).result

    def close(self) -> None:
        """Leave the middleware."""
        self._executor.shutdown()
        self._thread.join(TIMEOUT)
        self.client.destroy_node()
        rclpy.shutdown(context=self.context)


def command_of(executable: str) -> list[str]:
    """Command that runs an installed executable."""
    path = Path(sys.executable).with_name(executable)
    if path.is_file():
        return [str(path)]
    code = f'import sys; from hodyn_ros.commands import {executable} as f; sys.exit(f())'
    return [sys.executable, '-c', code]


class Process:
    """An executable in a process of its own, restarted in the same place if wanted."""

    def __init__(
        self,
        executable: str,
        client: Client,
        parameters: dict[str, Any] | None = None,
        *arguments: str,
        environment: dict[str, str] | None = None,
    ) -> None:
        self._folder = tempfile.TemporaryDirectory()
        path = Path(self._folder.name) / 'parameters.yaml'
        path.write_text(json.dumps({'/**': {'ros__parameters': parameters or {}}}))
        own = ['--params-file', str(path), '-r', f'__ns:=/{client.namespace}']
        self._command = [*command_of(executable), '--ros-args', *arguments, *own]
        self._environment = {
            **(environment or os.environ),
            'PYTHONUNBUFFERED': '1',
            'RCUTILS_LOGGING_BUFFERED_STREAM': '0',
            'ROS_DOMAIN_ID': str(client.domain),
        }
        self._log = tempfile.TemporaryFile('w+')
        self.start()

    def start(self) -> None:
        """Start the process."""
        self.process = subprocess.Popen(
            self._command,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            env=self._environment,
        )

    @property
    def pid(self) -> int:
        """Process id."""
        return self.process.pid

    def log(self) -> str:
        """Return what has been said."""
        self._log.seek(0)
        return self._log.read()

    def kill(self) -> None:
        """End the process as a crash would."""
        self.process.kill()
        self.process.wait(TIMEOUT)

    def end(self, *signals: int) -> int:
        """Exit code after signals, if any."""
        for number in signals:
            self.process.send_signal(number)
        return self.process.wait(TIMEOUT)

    def close(self) -> None:
        """End the process in order; kill it if it does not end."""
        try:
            if self.process.poll() is None:
                assert self.end(signal.SIGINT) == 0, self.log()
        finally:
            self.process.kill()
            self._log.close()
            self._folder.cleanup()
