"""What all nodes have in common: description, parameters, guarded inputs, health, life and end.

Messages come as bytes: rclpy would drop uncounted what is not UTF-8, and unpack a million names.
"""

from __future__ import annotations

import math
import os
import queue
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rcl_interfaces.msg import ParameterDescriptor, SetParametersResult
from rclpy.clock import Clock, ClockChange, ClockType, JumpThreshold, TimeJump
from rclpy.duration import Duration
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message
from rclpy.signals import SignalHandlerOptions
from rclpy.subscription import Subscription
from std_msgs.msg import String

from hodyn_ros.errors import HodynError, MessageError, SizeError
from hodyn_ros.resources import share_file
from hodyn_ros.ros import qos
from hodyn_ros.ros.diagnostics import (
    LOST,
    Diagnostics,
    OutputHealth,
    publisher_names,
    reason,
    refusal_kind,
    unheard_publishers,
)
from hodyn_ros.ros.executor import StreamExecutor
from hodyn_ros.ros.parameters import Parameters

try:
    from rclpy.event_handler import SubscriptionEventCallbacks
except ImportError:  # ROS 2 Humble
    from rclpy.qos_event import SubscriptionEventCallbacks

S = TypeVar('S')

DESCRIPTION = 'robot_description'

LARGEST_SAMPLE = 256 * 1024  # bytes, about one instant: hundreds of joints with long names
MOST_AT_ONCE = 16  # messages that are taken before other topics have their turn
_LARGEST_MESSAGE = 64 * 2**20  # bytes, of nodes without a parameter for it

# Publishers whose latest number is known; of those that come and go, all are forgotten.
_MOST_PUBLISHERS = 64

_NO_COUNT = 2**31 - 1  # from here on, what the middleware says of lost messages is none

_LOG_PERIOD = 1.0  # s
_SWITCH_INTERVAL = 0.5e-3  # s
_LONGEST_WAIT = 0.1  # s, until it is seen that the process is to end
_PAUSE = 0.01  # s, after a failure, so that one that lasts does not take the whole processor


class Worker(ThreadPoolExecutor):
    """Does jobs in one thread, in the order in which they are put.

    The traceback of every error that is no HodynError, a fault of ours, is logged.
    """

    def __init__(self, name: str, log: Callable[[str], object]) -> None:
        super().__init__(1, name)
        self._log = log
        self.is_closed = False  # the job under way is to come to its end

    def put(
        self, job: Callable[[], object], failed: Callable[[BaseException], object] = repr
    ) -> None:
        """Have a job done, which reports its outcome itself, or `failed` what it has raised."""

        def run() -> None:
            try:
                if not self.is_closed:
                    job()
            except BaseException as error:  # also SystemExit: nobody else would notice
                if not isinstance(error, HodynError):
                    self._log(traceback.format_exc())
                failed(error)

        with suppress(RuntimeError):  # it has been closed: the job is dropped
            self.submit(run).add_done_callback(_raise_error)

    def close(self, timeout: float | None = None, drop: bool = True) -> None:
        """End the thread when the job under way is done; jobs that wait are dropped or not."""
        self.is_closed = drop
        with suppress(RuntimeError):  # it has been closed before
            wait([self.submit(int)], timeout)
        self.shutdown(wait=False, cancel_futures=True)


def _raise_error(done: Future[None]) -> None:
    """Have the error of one of those who are told logged; the next job may fare better."""
    if not done.cancelled():
        done.result()


@dataclass(eq=False)
class _Input:
    """A subscription that looks at a message before it unpacks it.

    `take` is called with every message; it raises HodynError against bad ones. A sample is about
    one instant, small therefore, and accepted when it has been taken; of others it is said later
    what has become of them. `then` is called when all messages that waited have been taken, and
    may raise as `take` may.
    """

    node: RobotNode[Any]
    topic: str
    kind: type
    take: Callable[[Any], None]
    profile: QoSProfile
    is_sample: bool = True
    as_bytes: bool = False
    then: Callable[[], object] = bool  # which does nothing

    def __post_init__(self) -> None:
        self._numbers: dict[bytes, int] = {}  # the latest of every publisher
        self._warned: set[str] = set()  # what is said of publishers that are there
        node, topic = self.node, self.topic
        self.health = node.diagnostics.input(topic)
        # Who counts what is lost watches publishers too: rclpy need not warn of those that do not
        # fit. (Every kind of event costs time with every message.)
        events = SubscriptionEventCallbacks(use_default_callbacks=False)
        if self.is_sample:
            events.message_lost = self.count_lost
        receive: Callable[..., None] = self.receive
        if not hasattr(Subscription, 'CallbackType'):  # ROS 2 Humble tells nothing of a message
            receive = partial(self.receive, info={})
        self.subscription = qos.create_subscription(
            node, self.kind, topic, receive, self.profile, raw=True, event_callbacks=events
        )

    def receive(self, data: bytes, info: Mapping[str, Any]) -> None:
        """Take a message and those that wait behind it: a turn each costs more than a message."""
        node, health, waiting = self.node, self.health, self.subscription.handle
        largest = getattr(node.settings, 'max_message_size', _LARGEST_MESSAGE)
        bound = 'max_message_size'
        if self.is_sample and largest > LARGEST_SAMPLE:
            largest, bound = LARGEST_SAMPLE, 'a message about one instant may have'
        for number in range(MOST_AT_ONCE):
            if number:
                following = waiting.take_message(self.kind, True)
                if following is None:
                    break
                data, info = following
            # 0: the middleware does not say.
            node.received = info.get('received_timestamp', 0)
            now = time.time_ns()
            late, left_out = max(now - (node.received or now), 0), 0
            # Other middleware does not number messages, and ROS 2 before Kilted is silent.
            count, publisher = info.get('publication_sequence_number'), info.get('publisher_gid')
            if count is not None and publisher is not None:
                left_out = max(count - self._numbers.get(publisher['data'], count) - 1, 0)
                if len(self._numbers) > _MOST_PUBLISHERS:
                    self._numbers.clear()
                self._numbers[publisher['data']] = count
            try:
                if len(data) > largest:
                    raise SizeError(
                        f'The message has {len(data)} bytes, expected no more than {bound} '
                        f'({largest}); send it in parts or with what is needed only.'
                    )
                try:
                    message = data if self.as_bytes else deserialize_message(data, self.kind)
                except Exception as error:  # of many classes
                    raise MessageError(f'The message cannot be unpacked: {error}') from error
                self.take(message)
            except Exception as error:  # a fault of ours must not end the node
                health.arrived(late, left_out, is_taken=False)
                node.refuse(self.topic, error, self.topic != 'joint_trajectory')
            else:
                health.arrived(late, left_out, self.is_sample)
        try:
            self.then()
        except Exception as error:
            node.refuse(self.topic, error)

    def count_lost(self, info: Any) -> None:
        """Count what the middleware reports as lost on its way."""
        # Fast DDS subtracts numbers without sign and cuts the difference at 2^31 - 1: so much is
        # lost where a message does not come behind the one before, and the next sum overflows.
        if info.total_count_change < _NO_COUNT:
            self.health.add(LOST, info.total_count_change)

    def watch_publishers(self) -> None:
        """Note who publishes, and warn of those who are not heard."""
        node, health = self.node, self.health
        unheard = unheard_publishers(node, self.subscription)
        for why in set(unheard) - self._warned:
            node.get_logger().warning(why)
        self._warned = set(unheard)  # of those that have gone, all is forgotten
        if self.topic != DESCRIPTION:
            health.publishers = publisher_names(node, self.topic)
            health.unheard = unheard


class RobotNode(Node, Generic[S]):
    """A node for one robot.

    A subclass overrides what concerns it: `describe`, `check_description`, `check_settings`,
    `on_settings`, `on_time_jump` and `statuses`; its initialiser ends with `open`.

    `kind` is the table of its parameters, see `hodyn_ros.ros.parameters`; ValueError names all
    values that cannot be used. The options are those of `rclpy.node.Node`.
    """

    def __init__(
        self, name: str, kind: type[S], *, is_described: bool = True, **node_options: Any
    ) -> None:
        # What ends with the node, also if it comes no further than to its parameters.
        self.closing: list[Callable[[], None]] = []
        # When the message that is being taken has arrived, by the system's clock; 0: unknown.
        self.received = 0
        node_options['automatically_declare_parameters_from_overrides'] = True
        super().__init__(name, **node_options)
        self._is_open = False
        self._inputs: list[_Input] = []
        self._logged: dict[str, tuple[float, int]] = {}  # when, and how many were not since
        self.parameters = Parameters(
            self, kind, self._exchange, self.check_settings, self._on_parameters_set
        )
        self.settings: S = self.parameters.settings  # replaced as a whole
        self.diagnostics = Diagnostics(self.get_fully_qualified_name())
        self._calls = queue.SimpleQueue[partial[None]]()
        self._has_calls = self.create_guard_condition(self._run_calls)
        self.worker = Worker('worker', self.get_logger().error)  # for what takes long
        self._diagnostics_publisher = qos.create_publisher(
            self, DiagnosticArray, '/diagnostics', qos.OUTPUT
        )
        self._given_description = ''
        if is_described:
            meaning = ParameterDescriptor(
                description='URDF of the robot as XML text. Empty: wait for the topic '
                'robot_description.',
                additional_constraints='URDF without document type declaration and entities',
            )
            self.declare_parameter(DESCRIPTION, '', meaning)
            self._given_description = str(self.get_parameter(DESCRIPTION).value)
        self._is_described = is_described

    def open(self) -> None:
        """Begin to work: the last step of making a node."""
        self._is_open = True
        # Health is reported in real time, also while simulated time stands still.
        real_time = Clock(clock_type=ClockType.STEADY_TIME)
        period = getattr(self.settings, 'diagnostics_period', 1.0)
        self.create_timer(period, self._report, clock=real_time)
        back = Duration(nanoseconds=-1)
        jump = JumpThreshold(min_forward=None, min_backward=back, on_clock_change=True)
        jumped = self.get_clock().create_jump_callback(jump, post_callback=self._on_time_jump)
        self._jump_handle = jumped  # or it would be forgotten
        if self._is_described:
            if self._given_description:
                self.describe(self._given_description)
            self.add_on_set_parameters_callback(self._check_parameters)
            take, profile = lambda message: self.describe(message.data), qos.ROBOT_DESCRIPTION
            self.listen(DESCRIPTION, String, take, profile, is_sample=False)
        unknown = self.parameters.unknown()
        if unknown:
            self.get_logger().warning(f'Unknown parameters are ignored: {", ".join(unknown)}.')
        if self._is_described and not self._given_description:
            self.get_logger().info('Waiting for a robot description.')

    # To be overridden

    def describe(self, xml: str) -> None:
        """Take a robot description; HodynError if it is plain that it cannot be used."""

    def check_description(self, xml: str) -> None:
        """Raise HodynError if a description that is about to be set cannot be used."""

    def check_settings(self, settings: S) -> None:
        """Raise ValueError (as every HodynError is) against settings that do not fit."""

    def on_settings(self, before: S) -> None:
        """Follow new settings; must not raise."""

    def on_time_jump(self, why: str) -> None:
        """Forget what belongs to another time."""

    def statuses(self) -> Sequence[DiagnosticStatus]:
        """Health of the node; is asked for every `diagnostics_period`."""
        return self.diagnostics.report(None, '', False, {})

    # For subclasses

    def now(self) -> int:
        """Time of the node [ns]."""
        return int(self.get_clock().now().nanoseconds)

    def times_of_arrival(self) -> tuple[int, int]:
        """When the message that is being taken has arrived, and now, by the node's clock [ns]."""
        # The middleware tells the time of the system; what a simulation showed then is not known.
        is_simulated = self.get_clock().ros_time_is_active
        now = self.now() if is_simulated else time.time_ns()
        return (now if is_simulated else min(self.received or now, now)), now

    def listen(
        self, topic: str, kind: type, take: Callable[[Any], None], profile: QoSProfile, **how: Any
    ) -> None:
        """Have `take` called with every message on a topic; how else is said by `_Input`."""
        self._inputs.append(_Input(self, topic, kind, take, profile, **how))

    def soon(self, call: Callable[..., None], *arguments: Any) -> None:
        """Have something called in the thread of the executor, in turn; from any thread."""
        self._calls.put(partial(call, *arguments))
        self._has_calls.trigger()

    def _run_calls(self) -> None:
        while not self._calls.empty():
            self._calls.get()()

    def refuse(self, topic: str, error: Exception, is_throttled: bool = True) -> None:
        """Count and log that a message cannot be used."""
        if not isinstance(error, HodynError):  # a fault of ours
            self._log_traceback()
        self.diagnostics.refused(topic, str(error), refusal_kind(error))
        self.log_error(topic, f'{topic} refused: {error}', is_throttled)

    def _log_traceback(self) -> None:
        self.get_logger().error(traceback.format_exc(), throttle_duration_sec=_LOG_PERIOD)

    def hold_back(self, what: str, why: object, health: OutputHealth | None = None) -> None:
        """Note and log that something is not published; by default the first output.

        An error that is no HodynError, a fault of ours, is logged with its place.
        """
        if isinstance(why, Exception):
            if not isinstance(why, HodynError):
                self._log_traceback()
            why = reason(why)
        (health or self.diagnostics.output).stopped(str(why))
        self.log_error(what, f'No {what} is published: {why}')

    def log_error(self, subject: str, text: str = '', is_throttled: bool = True) -> None:
        """Log an error; if it is throttled, of a subject one in a second, the others counted.

        Without a text, that count alone, if there are any.
        """
        now = time.monotonic()
        before, more = self._logged.get(subject, (-math.inf, 0))
        if is_throttled and now - before < _LOG_PERIOD:
            self._logged[subject] = before, more + bool(text)
        elif text or more:
            self._logged[subject] = now, 0
            counted = f' ({more} more in the {now - before:.1f} s before)' if more else ''
            self.get_logger().error((text or f'{subject}: further errors') + counted)

    # Life

    def destroy_node(self) -> None:
        """Finish what the workers have begun, drop what waits for them, and destroy the node."""
        for close in reversed(self.closing):
            close()
        if hasattr(self, 'worker'):
            self.worker.close()
        super().destroy_node()

    def _exchange(self, before: S, settings: S) -> None:
        self.settings = settings
        self.on_settings(before)

    def _check_parameters(self, parameters: Sequence[Parameter]) -> SetParametersResult:
        try:
            for parameter in parameters:
                if parameter.name == DESCRIPTION:
                    self.check_description(parameter.value)
        except HodynError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def _on_parameters_set(self, parameters: Sequence[Parameter]) -> None:
        """Take a description up once nothing objects to what is set together with it."""
        for parameter in parameters:
            if parameter.name == DESCRIPTION and self._is_open:
                try:
                    self.describe(parameter.value)
                except HodynError as error:
                    self.refuse(DESCRIPTION, error)

    def _on_time_jump(self, jump: TimeJump) -> None:
        """After a jump back (a recording starts again) nothing of before is true any more."""
        self.diagnostics.time_jumped()
        changes = (ClockChange.ROS_TIME_ACTIVATED, ClockChange.ROS_TIME_DEACTIVATED)
        is_other = jump.clock_change in changes
        self.on_time_jump('the node follows another clock' if is_other else 'time jumped back')

    def _report(self) -> None:
        for subject in list(self._logged):
            self.log_error(subject)
        self._note_namesakes()
        for item in self._inputs:
            item.watch_publishers()
        self.diagnostics.use_sim_time = self.get_parameter('use_sim_time').value is True
        message = DiagnosticArray(status=self.statuses())
        message.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics_publisher.publish(message)

    def _note_namesakes(self) -> None:
        before, own = self.diagnostics.namesakes, self.get_fully_qualified_name()
        count = max(publisher_names(self, '/parameter_events').count(own) - 1, 0)
        self.diagnostics.namesakes = count
        if count > before:
            self.get_logger().warning(
                f'There is another node {own}: each input is answered by both. Stop one of them, '
                'or start it with another name (-r __node:=NAME) or namespace '
                '(-r __ns:=/NAMESPACE) and topics of its own.'
            )


# What the user can have said of profiles of Fast DDS: variables, files found by name.
USE_PROFILES = 'RMW_FASTRTPS_USE_QOS_FROM_XML'
PROFILES_FILE = {  # by the name of the library: Fast DDS 3 (ROS 2 Kilted) and 2 (Jazzy)
    'libfastdds.so': 'FASTDDS_DEFAULT_PROFILES_FILE',
    'libfastrtps.so': 'FASTRTPS_DEFAULT_PROFILES_FILE',
}
_CHOICES = (USE_PROFILES, 'RMW_FASTRTPS_PUBLICATION_MODE', *PROFILES_FILE.values())
_FILES = ('DEFAULT_FASTDDS_PROFILES.xml', 'DEFAULT_FASTRTPS_PROFILES.xml')
_LIBRARIES = Path('/proc/self/maps')


def bound_memory() -> bool:
    """Let Fast DDS keep no more memory than the messages that wait, if nobody has configured it.

    Version 3 also repeats lost messages sooner.

    To be called after `rclpy.init` and before the first node of the process; processes that are
    started later inherit the profile. Returns whether it is used.
    """
    if not rclpy.get_rmw_implementation_identifier().startswith('rmw_fastrtps'):
        return False
    if any(name in os.environ for name in _CHOICES) or any(map(os.path.exists, _FILES)):
        return False
    try:
        libraries = _LIBRARIES.read_text(encoding='utf-8', errors='replace')
    except OSError:  # no Linux
        return False
    for library, variable in PROFILES_FILE.items():
        if library in libraries:
            os.environ[variable] = str(share_file(f'config/{library[3:-3]}.xml'))
            os.environ[USE_PROFILES] = '1'
            return True
    return False


def main(make_node: Callable[[], Node], args: Sequence[str] | None = None) -> int:
    """Run a node until the process is interrupted.

    `make_node` makes it once rclpy is initialised with `args`, by default the command line. The
    exit code is 0 after SIGINT or SIGTERM, at whatever moment and however often they come; 1 if
    the node cannot start. A callback that fails is logged and the node goes on.
    """
    ends: list[int] = []
    # The handlers of rclpy invalidate everything under the feet of running callbacks. These only
    # ask for the end, so that it happens in order.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: ends.append(number))
    # While the worker compiles, the stream waits for the interpreter no longer than this.
    sys.setswitchinterval(_SWITCH_INTERVAL)
    logger = rclpy.logging.get_logger('hodyn_ros')
    try:
        rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
        bound_memory()
        node = make_node()
    except Exception as error:  # a bad command line, parameters out of range: many classes
        logger.fatal(f'The node cannot start: {error}')
        rclpy.try_shutdown()
        return 1
    executor = StreamExecutor()
    executor.add_node(node)
    while rclpy.ok() and not ends:
        try:
            executor.spin_once(_LONGEST_WAIT)
        except ExternalShutdownException:
            break
        except Exception:
            # Such as a request to one of rclpy's own services whose text is not UTF-8.
            logger.error(
                f'A callback has failed; the node goes on.\n{traceback.format_exc()}',
                throttle_duration_sec=_LOG_PERIOD,
            )
            time.sleep(_PAUSE)
    executor.shutdown()
    node.destroy_node()
    rclpy.try_shutdown()
    # While Python ends, it would take its own handlers back.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    return 0
