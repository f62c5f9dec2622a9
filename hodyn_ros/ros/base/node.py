"""What all nodes have in common: description, parameters, topics, health."""

from __future__ import annotations

import math
import queue
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rcl_interfaces.msg import ParameterDescriptor, SetParametersResult
from rclpy.clock import Clock, ClockChange, ClockType, JumpThreshold, TimeJump
from rclpy.duration import Duration
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile
from rclpy.timer import Timer
from std_msgs.msg import String

from hodyn_ros.errors import HodynError
from hodyn_ros.ros.base import qos
from hodyn_ros.ros.base.diagnostics import Diagnostics, publisher_names
from hodyn_ros.ros.base.parameters import Parameters
from hodyn_ros.ros.base.subscription import Input, ReceivingNode, Topic
from hodyn_ros.ros.base.worker import Worker
from hodyn_ros.streams.health import OutputHealth, reason
from hodyn_ros.streams.motion_stream import Instant, MotionStream
from hodyn_ros.streams.preparation import RobotPreparation
from hodyn_ros.streams.robot_in_use import DESCRIPTION
from hodyn_ros.streams.timeline import ScaledClock

S = TypeVar('S')

LOG_PERIOD = 1.0  # s


class RobotNode(ReceivingNode, Generic[S]):
    """A node for one robot.

    A subclass overrides what concerns it: `topics`, `describe`, `check_description`,
    `check_settings`, `on_settings`, `on_time_jump` and `statuses`; its initialiser ends with
    `open`.

    Parameters
    ----------
    name : str
    kind : type
        Table of its parameters, see `base.parameters`.
    is_described : bool
        Whether it takes robot descriptions, from the parameter and the topic `robot_description`.
    **node_options
        Of `rclpy.node.Node`.

    Attributes
    ----------
    settings : object
        An instance of `kind` with the parameters in use; replaced as a whole.
    parameters : Parameters
    diagnostics : Diagnostics
    worker : Worker
        A thread for what takes long.
    closing : list of callable
        What ends with the node, called in reverse order.
    received : int
        When the message that is being taken has arrived, by the system's clock [ns]; 0: unknown.

    Raises
    ------
    ValueError
        If values of parameters cannot be used; it names all of them.
    """

    def __init__(
        self, name: str, kind: type[S], *, is_described: bool = True, **node_options: Any
    ) -> None:
        # Also if it comes no further than to its parameters.
        self.closing: list[Callable[[], None]] = []
        self.received = 0
        node_options['automatically_declare_parameters_from_overrides'] = True
        super().__init__(name, **node_options)
        self._is_open = False
        self._inputs: list[Input] = []
        self._logged: dict[str, tuple[float, int]] = {}  # when, and how many were not since
        self.parameters: Parameters[S] = Parameters(
            self, kind, self._exchange, self.check_settings, self._on_parameters_set
        )
        self.settings: S = self.parameters.settings
        self.diagnostics: Diagnostics = Diagnostics(self.get_fully_qualified_name())
        self._calls = queue.SimpleQueue[partial[None]]()
        self._has_calls = self.create_guard_condition(self._run_calls)
        self.worker: Worker = Worker('worker', self.get_logger().error)
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
        """Begin to work: the last step of making a node.

        It subscribes to the topics, begins to report health, and describes the robot if the
        parameter does.
        """
        self._is_open = True
        self._inputs += [Input(self, topic) for topic in self.topics()]
        self.every(getattr(self.settings, 'diagnostics_period', 1.0), self._report)
        back = Duration(nanoseconds=-1)
        jump = JumpThreshold(min_forward=None, min_backward=back, on_clock_change=True)
        jumped = self.get_clock().create_jump_callback(
            jump, post_callback=self._on_time_jump
        )
        self._jump_handle = jumped  # or it would be forgotten
        if self._is_described:
            if self._given_description:
                self.describe(self._given_description)
            self.add_on_set_parameters_callback(self._check_parameters)
            take, profile = (
                lambda message: self.describe(message.data),
                qos.ROBOT_DESCRIPTION,
            )
            topic = Topic(DESCRIPTION, String, take, profile, is_sample=False)
            self._inputs.append(Input(self, topic))
        unknown = self.parameters.unknown()
        if unknown:
            self.get_logger().warning(
                f'Unknown parameters are ignored: {", ".join(unknown)}.'
            )
        if self._is_described and not self._given_description:
            self.get_logger().info('Waiting for a robot description.')

    # To be overridden

    def describe(self, xml: str) -> None:
        """Take a robot description.

        Parameters
        ----------
        xml : str
            URDF.

        Raises
        ------
        HodynError
            If it is plain that it cannot be used.
        """

    def topics(self) -> Iterable[Topic]:
        """Inputs of the node, but for robot descriptions.

        Returns
        -------
        iterable of Topic
        """
        return ()

    def check_description(self, xml: str) -> None:
        """Refusal of a description that is about to be set as a parameter.

        Parameters
        ----------
        xml : str
            URDF.

        Raises
        ------
        HodynError
            If it cannot be used.
        """

    def check_settings(self, settings: S) -> None:
        """Refusal of settings that do not fit.

        Parameters
        ----------
        settings : object
            As they would be.

        Raises
        ------
        ValueError
            As every HodynError is.
        """

    def on_settings(self, before: S) -> None:
        """Follow new settings, which are those of the node already; must not raise.

        Parameters
        ----------
        before : object
            Settings until now.
        """

    def on_time_jump(self, why: str) -> None:
        """Forget what belongs to another time.

        Parameters
        ----------
        why : str
            For the log.
        """

    def statuses(self) -> Sequence[DiagnosticStatus]:
        """Health of the node; asked for every `diagnostics_period`.

        Returns
        -------
        sequence of DiagnosticStatus
        """
        return self.diagnostics.report(None, '', False, {})

    # For subclasses

    def now(self) -> int:
        """Time of the node's clock [ns]."""
        clock = self.get_clock()
        return int(clock.now().nanoseconds) if clock.ros_time_is_active else time.time_ns()

    def every(self, period: float, call: Callable[[], None]) -> Timer:
        """Timer with a period in real time [s], also while simulated time stands still."""
        clock = Clock(clock_type=ClockType.STEADY_TIME)
        return self.create_timer(period, call, clock=clock)

    def advertise(
        self, kind: type, topic: str, profile: QoSProfile = qos.OUTPUT
    ) -> Publisher:
        """Publisher of an output, with a profile that parameters may override.

        Parameters
        ----------
        kind : type
            Of the messages.
        topic : str
        profile : QoSProfile

        Returns
        -------
        Publisher
        """
        return qos.create_publisher(self, kind, topic, profile)

    def soon(self, call: Callable[..., None], *arguments: Any) -> None:
        """Have something called in the thread of the executor, in turn; from any thread.

        Parameters
        ----------
        call : callable
        *arguments
            With which it is called.
        """
        self._calls.put(partial(call, *arguments))
        self._has_calls.trigger()

    def _run_calls(self) -> None:
        while not self._calls.empty():
            self._calls.get()()

    def refuse(self, topic: str, error: Exception, is_throttled: bool = True) -> None:
        """Count and log that a message cannot be used; see `ReceivingNode.refuse`."""
        if not isinstance(error, HodynError):  # a fault of ours
            self._log_traceback()
        self.diagnostics.refused(topic, str(error))
        self.log_error(topic, f'{topic} refused: {error}', is_throttled)

    def _log_traceback(self) -> None:
        self.get_logger().error(traceback.format_exc(), throttle_duration_sec=LOG_PERIOD)

    def hold_back(self, what: str, why: object, health: OutputHealth | None = None) -> None:
        """Note and log that something is not published.

        Parameters
        ----------
        what : str
            What is not.
        why : object
            Text or error; of one that is no HodynError, a fault of this package, the traceback is
            logged.
        health : OutputHealth, optional
            Of the output, by default the first one.
        """
        if isinstance(why, Exception):
            if not isinstance(why, HodynError):
                self._log_traceback()
            why = reason(why)
        (health or self.diagnostics.output).stopped(str(why))
        self.log_error(what, f'No {what} is published: {why}')

    def log_error(self, subject: str, text: str = '', is_throttled: bool = True) -> None:
        """Log an error.

        Parameters
        ----------
        subject : str
            What it is about.
        text : str
            Without it, only the number of those that were not logged is, if there are any.
        is_throttled : bool
            Whether no more than one in a second is logged of a subject; the others are counted.
        """
        now = time.monotonic()
        before, more = self._logged.get(subject, (-math.inf, 0))
        if is_throttled and now - before < LOG_PERIOD:
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
        self.on_time_jump(
            'the node follows another clock' if is_other else 'time jumped back'
        )

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


class StreamNode(RobotNode[S]):
    """A node with a stream of motions, which a process plans.

    Attributes
    ----------
    clock : ScaledClock
        Time of the stream.
    stream : MotionStream
    preparation : RobotPreparation
    """

    stream: MotionStream
    preparation: RobotPreparation[Any]

    def __init__(self, name: str, kind: type[S], **node_options: Any) -> None:
        self.clock = ScaledClock()
        super().__init__(name, kind, **node_options)

    def instant(self) -> Instant:
        """Time of the stream."""
        return Instant(self.clock.at(self.now()), time.monotonic())
