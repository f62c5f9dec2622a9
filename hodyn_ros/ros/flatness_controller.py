"""A node that lets a robot with elastic joints follow trajectories: one command a measurement.

Measurements of links and motors come in, paired by their stamps; every pair is answered with motor
torques that carry its stamp. Robots are made ready and trajectories planned in a thread beside.
"""

from __future__ import annotations

import math
import sys
import time
import traceback
import warnings
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from hodyn_msgs.msg import JointMotion
from rcl_interfaces.msg import SetParametersResult
from rclpy.clock import Clock, ClockType, JumpThreshold, TimeJump
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory

from hodyn_ros.control import Controller
from hodyn_ros.control.controller import Command, shifted
from hodyn_ros.errors import ControlError, HodynError, StaleError
from hodyn_ros.ros import qos
from hodyn_ros.ros.alarm import ERROR
from hodyn_ros.ros.answers import Robot, ready
from hodyn_ros.ros.conversions import NANOSECONDS, flat
from hodyn_ros.ros.diagnostics import Diagnostics, publisher_names, refusal_kind
from hodyn_ros.ros.flatness_controller_guard import Guard
from hodyn_ros.ros.flatness_controller_pairs import (
    BEGIN_ANEW_AFTER,
    LINKS,
    MOTORS,
    Measured,
    Pairs,
)
from hodyn_ros.ros.flatness_controller_references import References
from hodyn_ros.ros.flatness_controller_settings import (
    HOLD,
    ControlSettings,
    Parameters,
    make_controller,
    stopping_settings,
)
from hodyn_ros.ros.flatness_controller_worker import Background, Built
from hodyn_ros.ros.inputs import Inputs
from hodyn_ros.ros.parameters import declare_robot_description
from hodyn_ros.ros.planner import Plan
from hodyn_ros.ros.process import run
from hodyn_ros.ros.timeline import State
from hodyn_ros.ros.trajectories import TrajectoryInput
from hodyn_ros.ros.worker import Inbox, reason

LOG_PERIOD = 1.0  # s

REFERENCE, TRAJECTORY, DESCRIPTION = '~/reference', 'joint_trajectory', 'robot_description'


class _Loop(NamedTuple):
    """Everything that follows from the robot description; replaced as a whole."""

    robot: Robot
    controller: Controller
    stopping: Controller
    """Law that stops the robot, whatever the other one has made of it."""
    guard: Guard
    pairs: Pairs
    command: JointState
    """Message that is used again and again: making one costs more than the control law."""


class ControlDiagnostics(Diagnostics):
    """Health as that of the hodyn node, with commands for an output."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.control: dict[str, str | int | float] = {
            'controller': '',
            'reference': '',
            'tracking error': 0.0,
            'largest tracking error': 0.0,
            'stopped because': '',
            'stops': 0,
            'measurements beyond a bound': 0,
        }
        """Values of the report on commands; of the thread of the executor."""

    def _output_status(self, interval: float, now: float) -> DiagnosticStatus:
        status = super()._output_status(interval, now)
        status.name = f'{self._name}: motor_command'
        reason = self.control['stopped because']
        if reason:  # it lasts
            status.level, status.message = ERROR, f'the robot has been stopped: {reason}'
        values = [
            KeyValue(key=key, value=f'{value:.3g}' if isinstance(value, float) else str(value))
            for key, value in self.control.items()
        ]
        status.values = [*status.values, *values]
        self.control['largest tracking error'] = 0.0
        return status


class FlatnessControllerNode(Node):
    """Computes motor torques from measurements and references."""

    def __init__(self, **node_options: object) -> None:
        super().__init__('flatness_controller', **node_options)
        self._worker: Background | None = None  # what ends with the node, however far it comes
        self._loop: _Loop | None = None
        self._wanted = self._error = ''  # description in preparation; why the latest was refused
        self._measured: Measured | None = None
        self._newest: Measured | None = None  # to be answered
        self._command: Command | None = None  # the latest, unless there was none for a measurement
        self._violations = 0  # of bounds, by measurements one after the other
        self._stopped = ''  # why the robot has been stopped
        self._last_logged: dict[str, float] = {}
        self._declared = Parameters(self, self._on_settings)
        settings = self._settings
        self._diagnostics = ControlDiagnostics(self.get_fully_qualified_name())
        inbox = Inbox(self)
        self._worker = Background(
            lambda: self._settings,
            lambda event: inbox.put(self._on_event, event),
            self.get_logger().error,
        )
        self._trajectories = TrajectoryInput(
            self._worker, self._time, lambda: self._settings.planning, self._start_state,
            self._on_planned,
        )
        self._references = References(self._trajectories.timeline, self._end_trajectories)
        self._publisher = qos.create_publisher(self, JointState, '~/motor_command', qos.OUTPUT)
        self._diagnostics_publisher = qos.create_publisher(
            self, DiagnosticArray, '/diagnostics', qos.OUTPUT
        )
        description = declare_robot_description(self)
        self._create_inputs()
        # Health is reported in real time, also while simulated time stands still.
        self.create_timer(
            settings.diagnostics_period,
            self._on_diagnostics_timer,
            clock=Clock(clock_type=ClockType.STEADY_TIME),
        )
        self._jump_handle = self.get_clock().create_jump_callback(
            JumpThreshold(
                min_forward=None, min_backward=Duration(nanoseconds=-1), on_clock_change=True
            ),
            post_callback=self._on_time_jump,
        )
        unknown = self._declared.unknown()
        if unknown:
            self.get_logger().warning(f'Unknown parameters are ignored: {", ".join(unknown)}.')
        if description:
            self._describe(description)
        else:
            self.get_logger().info('Waiting for a robot description.')
        self.add_on_set_parameters_callback(self._on_set_description)

    def _create_inputs(self) -> None:
        inputs = Inputs(
            self,
            lambda: self._settings.max_message_size,
            self._diagnostics.received,
            self._refuse,
            self._diagnostics.arrived,
        )
        for topic in (LINKS, MOTORS):
            take = partial(self._take, topic)
            inputs.subscribe(topic, JointState, take, qos.SENSOR_INPUT, then=self._control_newest)
        # References may come ahead of their time: none takes the place of another.
        inputs.subscribe(
            REFERENCE, JointMotion, self._take_reference, qos.as_series(qos.NEWEST)
        )
        inputs.subscribe(
            DESCRIPTION,
            String,
            lambda message: self._describe(message.data),
            qos.ROBOT_DESCRIPTION,
            is_sample=False,
            is_settled=False,
        )
        inputs.subscribe(
            TRAJECTORY,
            JointTrajectory,
            self._take_trajectory,
            qos.TRAJECTORY_INPUT,
            is_sample=False,
            as_bytes=True,
            is_settled=False,
        )

    def destroy_node(self) -> None:
        """Finish what the worker has begun and destroy the node."""
        if self._worker is not None:
            self._worker.close()
        super().destroy_node()

    @property
    def _settings(self) -> ControlSettings:
        return self._declared.settings

    def _time(self) -> int:
        """Time [ns]: of the clock, or of the latest measurement where stamps are the time."""
        if not self._settings.measurement_timeout and self._measured is not None:
            return self._measured.stamp
        return self.get_clock().now().nanoseconds

    def _ready(self) -> _Loop:
        ready(self._loop and self._loop.robot, bool(self._wanted))
        return self._loop

    # Robot and parameters

    def _describe(self, xml: str) -> None:
        in_use = '' if self._loop is None else self._loop.robot.description
        if xml != (self._wanted or in_use):
            self._wanted = xml
            self._worker.build(xml, self._declared.actuators)
            if self._loop is None:
                self._trajectories.use_joints(None, True)  # they wait for the robot

    def _on_set_description(self, parameters: Sequence[Parameter]) -> SetParametersResult:
        """Have a robot made ready; whether it can be used is reported later."""
        for parameter in parameters:
            if parameter.name == DESCRIPTION:
                self._describe(parameter.value)
        return SetParametersResult(successful=True)

    def _on_event(self, event: Built | Plan) -> None:
        if isinstance(event, Plan):
            self._trajectories.on_plan(event)
        else:
            self._on_built(event)

    def _on_built(self, built: Built) -> None:
        if built.description != self._wanted:
            return  # overtaken by a later one
        self._wanted, self._error = '', built.error
        if built.robot is not None:
            try:
                self._use(built.robot)
            except Exception as error:  # also a fault of ours: trajectories wait for the outcome
                if not isinstance(error, HodynError):
                    self.get_logger().error(traceback.format_exc())
                self._error = reason(error)
        if self._error:
            if self._loop is None:
                self._trajectories.use_joints(None, False)
            self._diagnostics.refused(DESCRIPTION, self._error)
            self.get_logger().error(
                f'Robot description refused: {self._error}'
                + (' The robot before stays in use.' if self._loop is not None else '')
            )

    def _use(self, robot: Robot) -> None:
        """Control a robot from now on.

        Raises
        ------
        HodynError
            If there is no controller for it.
        """
        names, motors = robot.model.joint_names, robot.drives.actuators.motor_names
        loop = self._made(robot, self._settings)
        before = self._loop
        is_alike = before is not None and list(before.command.name) == list(motors)
        is_alike = is_alike and before.robot.model.joint_names == names
        if is_alike:
            loop = loop._replace(pairs=before.pairs)
        self._declared.declare_joints(robot.model)
        self._loop, self._command = loop, None
        self._worker.set_robot(robot)
        if not is_alike:
            self._references.use_joints(names)
        if self._trajectories.use_joints(names, False):
            self.get_logger().error(
                'The running trajectory is stopped: the new robot has other joints.'
            )
        self._diagnostics.received(DESCRIPTION)
        for warning in robot.model.warnings:
            self.get_logger().warning(warning)
        self.get_logger().info(
            f'Controlling {robot.model.name!r} by {self._settings.controller}: joints '
            f'{", ".join(names)}.'
        )

    def _made(self, robot: Robot, settings: ControlSettings) -> _Loop:
        """Make what controls a robot.

        Raises
        ------
        HodynError
            If there is no controller for it.
        """
        model, (actuators, limits, _) = robot.model, robot.drives
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter('always')
            controller, stopping = (
                make_controller(model, actuators, which, limits.motor_torque)
                for which in (settings, stopping_settings(settings))
            )
        for warning in caught:
            self.get_logger().warning(str(warning.message))
        names, motors = model.joint_names, actuators.motor_names
        return _Loop(
            robot,
            controller,
            stopping,
            Guard(robot, settings),
            Pairs(names, motors),
            JointState(name=list(motors)),
        )

    def _on_settings(self, settings: ControlSettings) -> None:
        """Follow settings that are about to come into force."""
        if self._loop is not None:
            loop = self._made(self._loop.robot, settings)
            self._loop = loop._replace(pairs=self._loop.pairs)

    # References

    def _take_reference(self, message: JointMotion) -> None:
        loop = self._ready()
        if self._stopped:
            raise ControlError(
                f'The robot has been stopped: {self._stopped} A trajectory ends that, also an '
                'empty one.'
            )
        timeout = round(self._settings.reference_timeout * NANOSECONDS)
        oldest = 0 if self._measured is None else self._measured.stamp - timeout
        self._references.take(
            loop.robot.model,
            message,
            self._time(),
            oldest,
            loop.controller.orders,
            loop.guard.check_reference,
        )

    def _end_trajectories(self) -> None:
        if self._trajectories.clear('A stream of references has taken its place.'):
            self.get_logger().warning('The motion gives way to a stream of references.')

    def _take_trajectory(self, data: bytes) -> None:
        if not self._settings.measurement_timeout and self._measured is None:
            raise StaleError(
                'There is no measurement yet, whose stamps are the time (measurement_timeout is '
                '0).'
            )
        if self._stopped:
            why = 'the motion to rest is not over.'
            if self._measured and self._references.has_stopped(self._measured.stamp):
                why = self._ready().guard.unrest(self._measured.state[:2])
            if why:
                raise ControlError(
                    f'The robot has been stopped: {self._stopped} It does not move on yet: {why}'
                )
        self._trajectories.take(data)
        if self._stopped:
            self._stopped = ''
            self._diagnostics.control['stopped because'] = ''
            self._references.end_stop()
            self.get_logger().info('The stop is over: a trajectory has come.')

    def _start_state(self, now: int) -> State | None:
        """Where a trajectory starts that no other one precedes."""
        state = self._references.state(now)
        if state is None and self._measured is not None:
            q, qd = self._measured.state[:2]
            unknown = np.full((3, len(q)), np.nan)
            state = State(np.vstack((q, qd, unknown)), False, now, 'measured')
        return state

    def _on_planned(self, plan: Plan) -> None:
        if plan.error:
            self._diagnostics.refused(TRAJECTORY, plan.error, plan.kind)
            self._log_error(TRAJECTORY, f'{TRAJECTORY} refused: {plan.error}')
            return
        self._diagnostics.received(TRAJECTORY)
        if plan.planned is not None:
            self._references.end_stream()
            duration = (plan.planned.last - plan.planned.first) / NANOSECONDS
            self.get_logger().info(f'Trajectory taken: a motion of {duration:.3f} s.')
        for text in plan.warnings:
            self.get_logger().warning(text)

    # Control

    def _take(self, topic: str, message: JointState) -> None:
        if self._loop is None and self._wanted:
            return
        loop = self._ready()
        pairs = loop.pairs
        dropped = dict(pairs.dropped)
        measured = pairs.take(topic, message)
        if measured is not None:
            if measured.begins_anew:
                self.get_logger().warning(
                    'The stamps of the measurements have gone back to '
                    f'{measured.stamp / NANOSECONDS:.6f} s; the control begins anew.'
                )
                self._begin_anew()
            if self._newest is not None:
                for name in pairs.dropped:
                    self._diagnostics.dropped(name, 1)
            self._newest = measured
        elif pairs.behind:
            self._say_behind(pairs.behind)
        for name, count in pairs.dropped.items():
            if count > dropped[name]:
                self._diagnostics.dropped(name, count - dropped[name])

    def _control_newest(self) -> None:
        """Answer the newest pair of those that waited: commands for others come too late."""
        measured, self._newest = self._newest, None
        if measured is not None and self._loop is not None:
            self._control(self._loop, measured)

    def _control(self, loop: _Loop, measured: Measured) -> None:
        begin = time.perf_counter()
        try:
            self._check_age(measured.stamp)
            self._measured = measured
            command, error = self._answer(loop, measured)
        except HodynError as refusal:
            self._command = None
            self._diagnostics.stopped(str(refusal))
            self._log_error('command', f'No command is published: {refusal}')
            return
        self._command = command
        message, stamp = loop.command, measured.stamp
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, NANOSECONDS)
        message.effort = flat(command.torque)
        self._publisher.publish(message)
        loop.pairs.answer(stamp)
        limited = command.is_limited
        hits = [
            f'torque of {name}' for name, hit in zip(message.name, limited) if hit
        ] if limited.any() else ()
        values, farthest = self._diagnostics.control, float(abs(error).max())
        values['controller'] = self._settings.controller
        values['reference'] = self._references.origin
        values['tracking error'] = farthest
        values['largest tracking error'] = max(values['largest tracking error'], farthest)
        self._diagnostics.published(time.perf_counter() - begin, hits)

    def _answer(self, loop: _Loop, measured: Measured) -> tuple[Command, np.ndarray]:
        """Command for a measurement, and the tracking error.

        Raises
        ------
        HodynError
            If there is none.
        """
        if self._stopped and not self._references.is_stopping:
            self._stop(loop, measured, self._stopped)  # time or the robot is another one
        try:
            reference, error = self._reference(loop, measured)
        except HodynError:
            self._violations = 0  # they count one after the other
            raise
        violation = '' if self._stopped else loop.guard.violation(measured.state[:2], error)
        self._violations = self._violations + 1 if violation else 0
        if violation:
            self._diagnostics.control['measurements beyond a bound'] += 1
            if self._violations < self._settings.violation_samples:
                if self._command is None:
                    raise ControlError(violation)
                return self._command, error
            self._stop(loop, measured, violation)
            reference, error = self._reference(loop, measured)
        law = loop.stopping if self._stopped else loop.controller
        return law.evaluate(reference, *measured.state), error

    def _reference(self, loop: _Loop, measured: Measured) -> tuple[np.ndarray, np.ndarray]:
        """Return the reference of a measurement, later by the lead, and the tracking error."""
        settings, lead = self._settings, loop.controller.lead
        reference = self._references.at(
            measured.stamp + round(lead * NANOSECONDS),
            measured.state[0],
            settings.reference_timeout,
            settings.stop_duration if settings.without_reference == HOLD else None,
        )
        return reference, shifted(reference, -lead)[0] - measured.state[0]

    def _stop(self, loop: _Loop, measured: Measured, violation: str) -> None:
        """Bring the robot to rest from where it is measured, and hold it."""
        self._stopped, self._violations = violation, 0
        values = self._diagnostics.control
        values['stopped because'], values['stops'] = violation, values['stops'] + 1
        self.get_logger().error(f'The robot is being stopped: {violation}')
        self._trajectories.clear(f'The robot is being stopped: {violation}')
        motion = loop.guard.stopping(measured.state[:2])
        self._references.stop(motion, measured.stamp, loop.guard.max_error)

    def _check_age(self, stamp: int) -> None:
        timeout = self._settings.measurement_timeout
        if not timeout:
            return
        age = (self.get_clock().now().nanoseconds - stamp) / NANOSECONDS
        if abs(age) > timeout:
            when = 'past' if age > 0.0 else 'future'
            raise StaleError(
                f'The stamp of the measurement lies {abs(age):.3f} s in the {when}, more than '
                f'measurement_timeout ({timeout} s). For a simulated robot, set use_sim_time or '
                'set measurement_timeout to 0.'
            )

    def _say_behind(self, seconds: float) -> None:
        text = (
            f'The stamps of the measurements lie {seconds:.3f} s behind one that was answered. '
            f'If nothing newer comes for {BEGIN_ANEW_AFTER:.6g} s, the control begins anew.'
        )
        self._diagnostics.stopped(text)
        self._log_error('command', f'No command is published: {text}')

    def _on_time_jump(self, jump: TimeJump) -> None:
        self._begin_anew()

    def _begin_anew(self) -> None:
        """After time has gone back nothing of before is true any more."""
        self._diagnostics.time_jumped()
        self._measured = self._command = self._newest = None
        self._violations = 0
        self._references.clear()
        if self._loop is not None:
            self._loop.pairs.clear()
        if self._trajectories.clear('Dropped: time has jumped.'):
            self.get_logger().error('The running trajectory is stopped: time has jumped.')

    # Health

    def _refuse(self, topic: str, error: Exception) -> None:
        self._diagnostics.refused(topic, str(error), refusal_kind(error))
        self._log_error(topic, f'{topic} refused: {error}')

    def _log_error(self, subject: str, text: str) -> None:
        """Log an error; of every subject no more than one in LOG_PERIOD."""
        now = time.monotonic()
        if now - self._last_logged.get(subject, -math.inf) >= LOG_PERIOD:
            self._last_logged[subject] = now
            self.get_logger().error(text)

    def _on_diagnostics_timer(self) -> None:
        for topic in (LINKS, MOTORS, REFERENCE, TRAJECTORY):
            self._diagnostics.publishers(topic, publisher_names(self, topic))
        for topic in (LINKS, MOTORS):
            self._diagnostics.watch(topic, self._settings.measurement_timeout)
        self._diagnostics.watch(REFERENCE, self._settings.reference_timeout)
        self._diagnostics.clock(
            self.get_clock().clock_type.name, self.get_parameter('use_sim_time').value is True
        )
        robot = None if self._loop is None else self._loop.robot
        message = self._diagnostics.report(robot, self._error, bool(self._wanted), {})
        message.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics_publisher.publish(message)


if __name__ == '__main__':
    sys.exit(run(FlatnessControllerNode))
