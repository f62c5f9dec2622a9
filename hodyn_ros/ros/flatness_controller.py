"""A node that lets a robot with elastic joints follow trajectories: one command a measurement."""

from __future__ import annotations

import sys
import time
import warnings
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue
from hodyn_msgs.msg import JointMotion
from numpy.typing import NDArray
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from hodyn_ros.actuators.config import actuators_from_config, motor_limits_from_config
from hodyn_ros.control.controller import Command, Controller, shifted, warm_up
from hodyn_ros.control.guard import Guard
from hodyn_ros.control.inputs import BEGIN_ANEW_AFTER, LINKS, MOTORS, Measured, Pairs, References
from hodyn_ros.control.laws import make_controller
from hodyn_ros.errors import (
    ControlError,
    HodynError,
    JointNameError,
    MotionError,
    StaleError,
    TrajectoryError,
)
from hodyn_ros.model.limits import motion_limits
from hodyn_ros.names import listed
from hodyn_ros.ros import qos
from hodyn_ros.ros.answers import exceeded_limits, plan_trajectory, refused_plan
from hodyn_ros.ros.base import RobotNode, main
from hodyn_ros.ros.conversions import MOTION_FIELDS, flat, motion_from_message, nanoseconds
from hodyn_ros.ros.flatness_settings import HOLD, ControlSettings
from hodyn_ros.ros.joint_states import check_age, values_of
from hodyn_ros.ros.robot import Drives, Robot, RobotPreparation, actuators_config, assemble
from hodyn_ros.ros.trajectories import TRAJECTORY, Plan, Task, TrajectoryInput, report_plan
from hodyn_ros.trajectory.timeline import NANOSECONDS, PlannedMotion, State

Array = NDArray[np.float64]

REFERENCE = '~/reference'

# The law that stops the robot needs no measurement of the links and no exact model; where a delay
# or another law asks for more than this bandwidth, it stays robust.
STOPPING_LAW, STOPPING_BANDWIDTH = 'feed_forward_2', 20.0  # rad/s


class _Loop(NamedTuple):
    """Everything that follows from the robot description; replaced as a whole."""

    robot: Robot
    controller: Controller
    stopping: Controller  # stops the robot, whatever the other one has made of it
    guard: Guard
    pairs: Pairs
    names: dict[str, tuple[str, ...]]  # in the measurements, by their topics
    command: JointState  # used again and again: making one costs more than the control law


class FlatnessControllerNode(RobotNode[ControlSettings]):
    """Computes motor torques from measurements and references."""

    def __init__(self, **node_options: Any) -> None:
        super().__init__('flatness_controller', ControlSettings, **node_options)
        self._loop: _Loop | None = None
        self._preparation = RobotPreparation(
            self,
            lambda xml: partial(_built, xml, self.settings),
            self._use,
            lambda: self._trajectories.follow(self._preparation, self.get_logger().error),
            self._on_robot,
        )
        self._measured: Measured | None = None
        self._newest: Measured | None = None  # to be answered
        self._command: Command | None = None  # the latest, unless there was none for a measurement
        self._violations = 0  # of bounds, by measurements one after the other
        self._stopped = ''  # why the robot has been stopped
        self._stops = self._beyond = 0
        self._tracking = self._largest_tracking = 0.0
        self._trajectories = TrajectoryInput(
            self, self._time, lambda: self.settings.planning, self._start_state, self._on_planned
        )
        self._references = References(self._trajectories.timeline, self._end_trajectories)
        self._publisher = qos.create_publisher(self, JointState, '~/motor_command', qos.OUTPUT)
        for topic in (LINKS, MOTORS):
            take = partial(self._take, topic)
            self.listen(topic, JointState, take, qos.SENSOR_INPUT, then=self._control_newest)
        # References may come ahead of their time: none takes the place of another.
        self.listen(REFERENCE, JointMotion, self._take_reference, qos.as_series(qos.NEWEST))
        whole, profile = self._take_trajectory, qos.INPUT
        self.listen(TRAJECTORY, JointTrajectory, whole, profile, is_sample=False, as_bytes=True)
        self.open()

    def _time(self) -> int:
        """Time [ns]: of the clock, or of the latest measurement where stamps are the time."""
        if not self.settings.measurement_timeout and self._measured is not None:
            return self._measured.stamp
        return self.now()

    def _ready(self) -> _Loop:
        self._preparation.ready()
        assert self._loop is not None
        return self._loop

    # Robot and parameters

    def describe(self, xml: str) -> None:
        """Have a robot made ready; whether it can be used is reported later."""
        self._preparation.request(xml)

    def _use(self, xml: str, robot: Robot) -> Robot:
        """Control a robot from now on; HodynError if there is no controller for it."""
        loop, before, names = self._made(robot, self.settings), self._loop, robot.model.joint_names
        self.parameters.declare_joints(names)
        if before is not None and before.names == loop.names:
            loop = loop._replace(pairs=before.pairs)
        else:
            self._references.use_joints(names)
        self._loop, self._command = loop, None
        return robot

    def _on_robot(self, robot: Robot) -> None:
        law, joints = self.settings.controller, ', '.join(robot.model.joint_names)
        self.get_logger().info(f'Controlling {robot.model.name!r} by {law}: joints {joints}.')

    def _made(self, robot: Robot, settings: ControlSettings) -> _Loop:
        """Make what controls a robot; HodynError if there is no controller for it."""
        model, drives = robot.model, robot.drives
        assert drives is not None
        bandwidth = settings.of_joints('bandwidths', 'bandwidth', model.joint_names)
        limits = drives.limits.motor_torque if settings.limit_torques else None
        slower = np.minimum(bandwidth, STOPPING_BANDWIDTH)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter('always')
            law, stopping = (
                make_controller(kind, model, drives.actuators, poles, limits, settings.lead)
                for kind, poles in ((settings.controller, bandwidth), (STOPPING_LAW, slower))
            )
        for warning in caught:
            self.get_logger().warning(str(warning.message))
        guard = Guard(
            model,
            robot.limits,
            settings.of_joints('max_tracking_errors', 'max_tracking_error', model.joint_names),
            position_margin=settings.position_margin,
            velocity_margin=settings.velocity_margin,
            stop_duration=settings.stop_duration,
            allow_limit_violations=settings.allow_limit_violations,
        )
        names = {LINKS: model.joint_names, MOTORS: tuple(drives.actuators.motor_names)}
        pairs, command = Pairs(self.diagnostics.dropped), JointState(name=list(names[MOTORS]))
        return _Loop(robot, law, stopping, guard, pairs, names, command)

    def check_settings(self, settings: ControlSettings) -> None:
        """Refuse settings for which there is no controller."""
        if self._loop is not None:
            self._made(self._loop.robot, settings)

    def on_settings(self, before: ControlSettings) -> None:
        """Control with other settings from now on."""
        if self._loop is not None:
            loop = self._made(self._loop.robot, self.settings)
            self._loop = loop._replace(pairs=self._loop.pairs)

    # Planning, for the input of trajectories

    def plan(self, task: Task) -> None:
        """Plan a trajectory in the thread beside."""
        robot, settings = self._preparation.robot, self.settings
        self.worker.put(
            lambda: self.soon(self._trajectories.on_plan, _planned(robot, task, settings)),
            lambda error: self.soon(self._trajectories.on_plan, refused_plan(task, error)),
        )

    def accept(self, number: int, start: int) -> None:
        """Nothing is published but commands."""

    def publish(self, planned: PlannedMotion, remark: str) -> None:
        """Nothing is published but commands."""

    # References

    def _take_reference(self, message: JointMotion) -> None:
        loop = self._ready()
        if self._stopped:
            hint = 'A trajectory ends that, also an empty one.'
            raise ControlError(f'The robot has been stopped: {self._stopped} {hint}')
        given, orders = motion_from_message(loop.robot.model, message), loop.controller.orders
        if len(given) < orders:
            raise MotionError(
                f'JointMotion: {MOTION_FIELDS[len(given)]} is empty, but the control law needs '
                f'everything up to {MOTION_FIELDS[orders - 1]}.'
            )
        motion = np.zeros((5, given.shape[1]))
        motion[: len(given)] = given
        loop.guard.check_reference(motion)
        timeout = round(self.settings.reference_timeout * NANOSECONDS)
        oldest = 0 if self._measured is None else self._measured.stamp - timeout
        stamp = nanoseconds(message.header.stamp) or self._time()
        self._references.take(stamp, motion, oldest)

    def _end_trajectories(self) -> None:
        if self._trajectories.clear('A stream of references has taken its place.'):
            self.get_logger().warning('The motion gives way to a stream of references.')

    def _take_trajectory(self, data: bytes) -> None:
        if not self.settings.measurement_timeout and self._measured is None:
            raise StaleError('There is no measurement yet, whose stamps are the time.')
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
        if plan.planned is not None:
            self._references.end_stream()
        report_plan(self, plan)

    # Control

    def _take(self, topic: str, message: JointState) -> None:
        if self._loop is None and self._preparation.is_under_way:
            return
        loop = self._ready()
        stamp, names, pairs = nanoseconds(message.header.stamp), loop.names[topic], loop.pairs
        if not stamp:
            raise MotionError(f'{topic}: there is no stamp, by which links and motors are paired.')
        values = values_of(topic, message, ('position', 'velocity'), names)
        if values is None:
            raise JointNameError(f'{topic}: expected names {listed(names)}.')
        measured = pairs.take(topic, stamp, values)
        if measured is not None:
            if measured.begins_anew:
                self.get_logger().warning(
                    'The stamps of the measurements have gone back to '
                    f'{measured.stamp / NANOSECONDS:.6f} s; the control begins anew.'
                )
                self.diagnostics.time_jumped()
                self.on_time_jump('the stamps have gone back')
            if self._newest is not None:
                for name in (LINKS, MOTORS):
                    self.diagnostics.dropped(name)
            self._newest = measured
        elif pairs.behind:
            self.hold_back(
                'command',
                f'The stamps of the measurements lie {pairs.behind:.3f} s behind one that was '
                f'answered. If nothing newer comes for {BEGIN_ANEW_AFTER:.6g} s, the control '
                'begins anew.'
            )

    def _control_newest(self) -> None:
        """Answer the newest pair of those that waited: commands for others come too late."""
        measured, self._newest, loop = self._newest, None, self._loop
        if measured is None or loop is None:
            return
        begin = time.perf_counter()
        try:
            timeout = self.settings.measurement_timeout
            check_age('Measurement', measured.stamp, self.now(), timeout, 'measurement_timeout')
            self._measured = measured
            command, error = self._answer(loop, measured)
        except HodynError as refusal:
            self._command = None
            self.hold_back('command', refusal)
            return
        self._command = command
        message, stamp = loop.command, measured.stamp
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, NANOSECONDS)
        message.effort = flat(command.torque)
        self._publisher.publish(message)
        loop.pairs.answer(stamp)
        hits = [f'torque of {message.name[j]}' for j in command.is_limited.nonzero()[0]]
        self._tracking = float(abs(error).max())
        self._largest_tracking = max(self._largest_tracking, self._tracking)
        self.diagnostics.output.published(time.perf_counter() - begin, hits)

    def _answer(self, loop: _Loop, measured: Measured) -> tuple[Command, Array]:
        """Command for a measurement, and the tracking error; HodynError if there is none."""
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
            self._beyond += 1
            if self._violations < self.settings.violation_samples:
                if self._command is None:
                    raise ControlError(violation)
                return self._command, error
            self._stop(loop, measured, violation)
            reference, error = self._reference(loop, measured)
        law = loop.stopping if self._stopped else loop.controller
        return law.evaluate(reference, *measured.state), error

    def _reference(self, loop: _Loop, measured: Measured) -> tuple[Array, Array]:
        """Return the reference of a measurement, later by the lead, and the tracking error."""
        settings, lead = self.settings, loop.controller.lead
        reference = self._references.at(
            measured.stamp + round(lead * NANOSECONDS),
            measured.state[0],
            settings.reference_timeout,
            settings.stop_duration if settings.without_reference == HOLD else None,
        )
        return reference, shifted(reference, -lead)[0] - measured.state[0]

    def _stop(self, loop: _Loop, measured: Measured, violation: str) -> None:
        """Bring the robot to rest from where it is measured, and hold it."""
        self._stopped, self._violations, self._stops = violation, 0, self._stops + 1
        self.get_logger().error(f'The robot is being stopped: {violation}')
        self._trajectories.clear(f'The robot is being stopped: {violation}')
        motion = loop.guard.stopping(measured.state[:2])
        self._references.stop(motion, measured.stamp, loop.guard.max_error)

    def on_time_jump(self, why: str) -> None:
        """Begin anew: after time has gone back nothing of before is true any more."""
        self._measured = self._command = self._newest = None
        self._violations = 0
        self._references.clear()
        if self._loop is not None:
            self._loop.pairs.clear()
        if self._trajectories.clear(f'Dropped: {why}.'):
            self.get_logger().error(f'The running trajectory is stopped: {why}.')

    # Health

    def statuses(self) -> list[DiagnosticStatus]:
        """Health as that of the hodyn node, with commands for an output."""
        for topic in (LINKS, MOTORS):
            self.diagnostics.input(topic).timeout = self.settings.measurement_timeout
        self.diagnostics.input(REFERENCE).timeout = self.settings.reference_timeout
        values = {
            'controller': self.settings.controller,
            'reference': self._references.origin,
            'tracking error': f'{self._tracking:.3g}',
            'largest tracking error': f'{self._largest_tracking:.3g}',
            'stopped because': self._stopped,
            'stops': str(self._stops),
            'measurements beyond a bound': str(self._beyond),
        }
        self._largest_tracking = 0.0
        statuses = self.diagnostics.report(*self._preparation.state, {})
        output = next(item for item in statuses if item.name.endswith(': joint_effort'))
        output.name = output.name.replace(': joint_effort', ': motor_command')
        more = [KeyValue(key=key, value=value) for key, value in values.items()]
        output.values = [*output.values, *more]
        if self._stopped:  # it lasts
            output.level = DiagnosticStatus.ERROR
            output.message = f'the robot has been stopped: {self._stopped}'
        return statuses


def _built(xml: str, settings: ControlSettings) -> Robot:
    model = assemble(xml, settings.base_link, settings.tip_link, settings.gravity)
    config = actuators_config(settings.actuators)
    actuators = actuators_from_config(model, config)
    limits = motor_limits_from_config(actuators, config)
    motion, torque = motion_limits(model), limits.motor_torque
    # Descriptions have zeros where somebody did not know a limit.
    velocity, effort = (np.where(x > 0.0, x, np.inf) for x in (motion.velocity, motion.effort))
    motion = motion._replace(velocity=velocity, effort=effort)
    if len(torque) == model.n_joints:  # where none is given, that of the robot description
        limits = limits._replace(motor_torque=np.where(np.isfinite(torque), torque, effort))
    warm_up(model)
    return Robot(model, motion, xml, Drives(actuators, limits, {}))


def _planned(robot: Robot | None, task: Task, settings: ControlSettings) -> Plan:
    begin = time.perf_counter()
    if robot is not None and task.known is not None:
        # Positions in which the robot is already, up to the margin, it may leave.
        limits, margin, q = robot.limits, settings.position_margin, task.known.motion[0]
        lower = np.minimum(limits.lower, np.maximum(q, limits.lower - margin))
        upper = np.maximum(limits.upper, np.minimum(q, limits.upper + margin))
        robot = robot._replace(limits=limits._replace(lower=lower, upper=upper))
    plan, whole = plan_trajectory(robot, task, settings.planning)
    exceeded = exceeded_limits(whole, 'allow_limit_violations has it executed all the same.')
    if exceeded and not settings.allow_limit_violations:
        raise TrajectoryError(exceeded[0])
    warnings = (*plan.warnings, *exceeded)
    return plan._replace(warnings=warnings, duration=time.perf_counter() - begin)


if __name__ == '__main__':
    sys.exit(main(FlatnessControllerNode))
