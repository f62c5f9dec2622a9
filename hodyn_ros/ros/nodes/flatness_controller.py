"""A node that lets a robot with elastic joints follow trajectories: one command a measurement."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue
from geometry_msgs.msg import WrenchStamped
from hodyn_msgs.msg import JointMotion, ObservedState
from numpy.typing import NDArray
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.config import actuators_from_config, motor_limits_from_config
from hodyn_ros.control.controller import Command, Controller, shifted, warm_up
from hodyn_ros.control.interaction import (
    CartesianImpedance,
    GravityCompensation,
    JointImpedance,
)
from hodyn_ros.control.laws import make_controller
from hodyn_ros.control.tracking import (
    ObserverController,
    tracking_controller,
    without_dampers,
)
from hodyn_ros.errors import (
    ControlError,
    HodynError,
    JointNameError,
    MotionError,
    StaleError,
    TrajectoryError,
)
from hodyn_ros.kinematics.jacobian import jacobian
from hodyn_ros.model.limits import motion_limits
from hodyn_ros.names import listed
from hodyn_ros.ros.base import qos
from hodyn_ros.ros.base.conversions import (
    MOTION_FIELDS,
    flat,
    motion_from_message,
    nanoseconds,
    time_message,
)
from hodyn_ros.ros.base.joint_states import check_age, values_of
from hodyn_ros.ros.base.life import main
from hodyn_ros.ros.base.node import RobotNode
from hodyn_ros.ros.base.robot import Drives, Robot, RobotPreparation, actuators_config, assemble
from hodyn_ros.ros.base.trajectories import report_plan, request_of
from hodyn_ros.ros.nodes.flatness_settings import (
    CARTESIAN,
    FLOAT,
    FLOATING,
    HOLD,
    JOINT,
    MODES,
    TRACKING,
    ControlSettings,
)
from hodyn_ros.ros.planner.answers import exceeded_limits, plan_trajectory, refused_plan
from hodyn_ros.streams import supervisor
from hodyn_ros.streams.guard import Guard, SlowedMotion
from hodyn_ros.streams.inputs import BEGIN_ANEW_AFTER, LINKS, MOTORS, Measured, Pairs, References
from hodyn_ros.streams.motion_stream import TRAJECTORY, Instant, MotionStream, Plan, Task
from hodyn_ros.streams.supervisor import LEAVING, OFF_PATH, REPEAT, STOP, Seen, Supervisor, Watch
from hodyn_ros.streams.timeline import NANOSECONDS, PlannedMotion, State
from hodyn_ros.trajectory.piecewise import PiecewiseMotion
from hodyn_ros.trajectory.spline import stop_motion

Array = NDArray[np.float64]

REFERENCE = '~/reference'

# The law that stops the robot needs no measurement of the links and no exact model; where a delay
# or another law asks for more than this bandwidth, it stays robust.
STOPPING_LAW, STOPPING_BANDWIDTH = 'feed_forward_2', 20.0  # rad/s

# Fields of hodyn_msgs/ObservedState, in the order of control.ObservedState.
OBSERVED = (
    *('position', 'velocity', 'acceleration', 'jerk', 'motor_position', 'motor_velocity'),
    *('spring_torque', 'spring_torque_dot', 'external_torque', 'external_torque_dot'),
    'motor_friction',
)


class _Loop(NamedTuple):
    """Everything that follows from the robot description; replaced as a whole."""

    robot: Robot
    controller: Controller | ObserverController
    modes: dict[str, ObserverController | ControlError]  # that the law may be changed to
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
            self._on_progress,
            self._on_robot,
        )
        self._measured: Measured | None = None
        self._newest: Measured | None = None  # to be answered
        self._answered = 0  # stamp of the measurement that the observer has had [ns]
        self._command: Command | None = None  # the latest, unless there was none for a measurement
        self._early = b''  # trajectory that has come before the simulated time
        self.supervisor = Supervisor()
        self._tracking = self._largest_tracking = 0.0
        self.stream = MotionStream(
            self, lambda: self.settings.planning, self._start_state, self._on_planned
        )
        self._references = References(self.stream.timeline, self._end_trajectories)
        self._publisher = qos.create_publisher(self, JointState, '~/motor_command', qos.OUTPUT)
        self._observed = qos.create_publisher(self, ObservedState, '~/observed_state', qos.OUTPUT)
        self._wrench = qos.create_publisher(self, WrenchStamped, '~/external_wrench', qos.OUTPUT)
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

    def _instant(self) -> Instant:
        return Instant(self._time(), time.monotonic())

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

    def _on_progress(self) -> None:
        preparation = self._preparation
        if self.stream.follow(preparation.robot, preparation.is_under_way, self._instant()):
            text = 'The running trajectory is stopped: the new robot has other joints.'
            self.get_logger().error(text)

    def _on_robot(self, robot: Robot) -> None:
        law, joints = self.settings.controller, ', '.join(robot.model.joint_names)
        self.get_logger().info(f'Controlling {robot.model.name!r} by {law}: joints {joints}.')

    def _made(self, robot: Robot, settings: ControlSettings) -> _Loop:
        """Make what controls a robot; HodynError if there is no controller for it."""
        model, drives = robot.model, robot.drives
        assert drives is not None
        unlimited = np.full(drives.actuators.n_motors, np.inf)
        limits = drives.limits.motor_torque if settings.limit_torques else unlimited
        unknown = ~np.isfinite(np.asarray(limits))
        if settings.limit_torques and unknown.any():
            motor = drives.actuators.motor_names[int(unknown.argmax())]
            self.get_logger().warning(
                f'The largest torque of motor {motor} is not known: nothing cuts it, and its '
                'first measurement is not compared with it. Give max_motor_torque.'
            )
        bandwidth = settings.of_joints('bandwidths', 'bandwidth', model.joint_names)
        if settings.controller in MODES and settings.bandwidths:
            raise ControlError(
                f'{settings.controller} has one bandwidth; bandwidths.<joint> is of other laws.'
            )
        bandwidth = np.where(bandwidth > 0.0, bandwidth, STOPPING_BANDWIDTH)
        slower = np.minimum(bandwidth, STOPPING_BANDWIDTH)
        undamped, lead = without_dampers(drives.actuators), settings.lead
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter('always')
            stopping = make_controller(model, STOPPING_LAW, undamped, slower, limits, lead)
            law: Controller | ObserverController | ControlError
            modes: dict[str, ObserverController | ControlError] = {}
            if settings.controller in MODES:
                modes = laws_of(drives.actuators, settings, limits)
                law = modes[settings.controller]
                if isinstance(law, ControlError):
                    raise law
            else:
                law = make_controller(
                    model, settings.controller, drives.actuators, bandwidth, limits, lead
                )
        external = settings.of_joints(
            'max_external_torques', 'max_external_torque', model.joint_names
        )
        for warning in caught:
            self.get_logger().warning(str(warning.message))
        guard = Guard(
            model,
            robot.limits,
            settings.of_joints('max_tracking_errors', 'max_tracking_error', model.joint_names),
            np.where(external > 0.0, external, np.inf),
            position_margin=settings.position_margin,
            velocity_margin=settings.velocity_margin,
            stop_duration=settings.stop_duration,
            allow_limit_violations=settings.allow_limit_violations,
        )
        names = {LINKS: model.joint_names, MOTORS: tuple(drives.actuators.motor_names)}
        if settings.tool_link:
            model.link(settings.tool_link)
        pairs, command = Pairs(self.diagnostics.dropped), JointState(name=list(names[MOTORS]))
        command.header.frame_id = model.base_link
        return _Loop(robot, law, modes, stopping, guard, pairs, names, command)

    def check_settings(self, settings: ControlSettings) -> None:
        """Refuse settings for which there is no controller."""
        if self._loop is not None:
            self._changed(self._loop, self.settings, settings)
            changes = settings.controller, self.settings.controller
            if changes[0] != changes[1] and not set(MODES).isdisjoint(changes):
                self._check_change(self._loop)
                if self.settings.controller == FLOATING and settings.without_reference != HOLD:
                    raise ControlError(
                        'A robot that was led by hand has no reference: set without_reference to '
                        'hold first.'
                    )

    def on_settings(self, before: ControlSettings) -> None:
        """Control with other settings from now on."""
        if self._loop is None:
            return
        self._loop = loop = self._changed(self._loop, before, self.settings)
        law = loop.controller
        if self.settings.controller != before.controller and isinstance(law, ObserverController):
            if FLOATING in (before.controller, self.settings.controller):
                self._references.clear()  # it is held where it has been led to
            law.begin()

    def _changed(self, loop: _Loop, before: ControlSettings, after: ControlSettings) -> _Loop:
        """What controls with other settings; HodynError if nothing can."""
        law = loop.modes.get(after.controller)
        if law is None or replace(after, controller=before.controller) != before:
            return self._made(loop.robot, after)._replace(pairs=loop.pairs)
        if isinstance(law, ControlError):
            raise law
        return loop._replace(controller=law)

    def _check_change(self, loop: _Loop) -> None:
        """Refuse another law while the robot moves or has been stopped."""
        if self._measured is None:
            return
        why = self.supervisor.why and f'the robot has been stopped: {self.supervisor.why}'
        why = why or loop.guard.unrest(self._measured.state[:2])
        if why:
            raise ControlError(f'The control law is changed at rest, but {why}')

    # Planning, for the input of trajectories

    def plan(self, task: Task) -> None:
        """Plan a trajectory in the thread beside."""
        robot, settings = self._preparation.robot, self.settings
        self.worker.put(
            lambda: self.soon(self._on_plan, _planned(robot, task, settings)),
            lambda error: self.soon(self._on_plan, refused_plan(task, error)),
        )

    def _on_plan(self, plan: Plan) -> None:
        self.stream.on_plan(plan, self._instant())

    def accept(self, number: int, start: int) -> None:
        """Nothing is published but commands."""

    def publish(self, planned: PlannedMotion, remark: str) -> None:
        """Nothing is published but commands."""

    # References

    def _take_reference(self, message: JointMotion) -> None:
        loop = self._ready()
        self._check_led()
        if self.supervisor.has_stopped:
            hint = 'A trajectory ends that, also an empty one.'
            raise ControlError(f'The robot has been stopped: {self.supervisor.why} {hint}')
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
        if self.stream.clear('A stream of references has taken its place.'):
            self.get_logger().warning('The motion gives way to a stream of references.')

    def _check_led(self) -> None:
        """Refuse motions for a robot that is led by hand."""
        if self.settings.controller == FLOATING:
            raise ControlError('The robot is led by hand: set controller to another law first.')

    def _take_trajectory(self, data: bytes) -> None:
        self._check_led()
        if not self.settings.measurement_timeout and self._measured is None:
            raise StaleError('There is no measurement yet, whose stamps are the time.')
        if not self._time():  # simulated time has not begun, nor can the motion
            self._early = data
            return
        stopped = self.supervisor.why
        if stopped:
            why = 'the motion to rest is not over.'
            if self._measured and self._references.has_stopped(self._measured.stamp):
                why = self._ready().guard.unrest(self._measured.state[:2])
            if why:
                raise ControlError(
                    f'The robot has been stopped: {stopped} It does not move on yet: {why}'
                )
        request = request_of(data, self.settings.planning.max_trajectory_points)
        if not self._preparation.is_under_way:
            self._preparation.ready()
        self.stream.take(request, self._instant())
        if stopped:
            if self.supervisor.release():
                self._ready().controller.begin()  # type: ignore[union-attr]
            self._references.end_stop()
            self.get_logger().info('The stop is over: a trajectory has come.')

    def _take_early(self, data: bytes) -> None:
        try:
            self._take_trajectory(data)
        except HodynError as error:
            self.refuse(TRAJECTORY, error)

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
        if self._loop is None and self._preparation.is_awaited:
            return
        loop = self._ready()
        stamp, names, pairs = nanoseconds(message.header.stamp), loop.names[topic], loop.pairs
        if not stamp:
            raise MotionError(f'{topic}: there is no stamp, by which links and motors are paired.')
        fields = ['position', 'velocity']
        is_observed = isinstance(loop.controller, ObserverController)
        if is_observed and not message.velocity:
            fields.pop()
        if is_observed and self.settings.torque_sensors and topic == LINKS:
            fields.append('effort')
        values = values_of(topic, message, tuple(fields), names)
        if values is None:
            raise JointNameError(f'{topic}: expected names {listed(names)}.')
        if 'velocity' not in fields:
            values = np.insert(values, 1, np.nan, axis=0)
        measured = pairs.take(topic, stamp, values)
        if measured is not None:
            self._put_aside(measured)
        elif pairs.behind:
            self.hold_back(
                'command',
                f'The stamps of the measurements lie {pairs.behind:.3f} s behind one that was '
                f'answered. If nothing newer comes for {BEGIN_ANEW_AFTER:.6g} s, the control '
                'begins anew.',
            )

    def _put_aside(self, measured: Measured) -> None:
        """Keep a pair of measurements until it is its turn, in place of the one before."""
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

    def _control_newest(self) -> None:
        """Answer the newest pair of those that waited: commands for others come too late."""
        measured, self._newest, loop = self._newest, None, self._loop
        if measured is None or loop is None:
            return
        begin = time.perf_counter()
        try:
            timeout = self.settings.measurement_timeout
            check_age('Measurement', measured.stamp, self.now(), timeout, 'measurement_timeout')
            before, self._measured = self._measured, measured
            if self._early:
                data, self._early = self._early, b''
                self._take_early(data)
            if before is not None:
                self.supervisor.note_interval(measured.stamp - before.stamp)
            command, error = self._answer(loop, measured)
        except Exception as failure:  # also a fault of ours: no silence while all seems well
            self._command = None
            self.supervisor.note_silence()
            self.hold_back('command', failure)
            return
        self._command = command
        message, stamp = loop.command, measured.stamp
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, NANOSECONDS)
        message.effort = flat(command.torque)
        self._publisher.publish(message)
        loop.pairs.answer(stamp)
        is_limited = command.is_limited
        self.supervisor.note_command(stamp, bool(is_limited.any()))
        hits = [f'torque of {message.name[j]}' for j in is_limited.nonzero()[0]]
        self._tracking = float(abs(error).max())
        self._largest_tracking = max(self._largest_tracking, self._tracking)
        self.diagnostics.output.published(time.perf_counter() - begin, hits)
        try:
            self._publish_observed(loop, stamp)
        except Exception as failure:
            self.hold_back('observed state', failure)

    def _answer(self, loop: _Loop, measured: Measured) -> tuple[Command, Array]:
        """Command for a measurement, and the tracking error; HodynError if there is none."""
        law = loop.controller if isinstance(loop.controller, ObserverController) else None
        if law is not None:
            # Velocities that are not measured are those of the observer.
            for row, known in ((1, law.observer.links), (3, law.observer.motors)):
                if np.isnan(measured.state[row]).any():
                    measured.state[row] = known[1]
        judge = self.supervisor
        if judge.has_stopped and not self._references.is_stopping:
            judge.stop(OFF_PATH, judge.why)  # time or the robot is another one
            self._stop(loop, measured)
        try:
            reference, error = self._reference(loop, measured)
        except HodynError:
            judge.note_no_reference()
            raise
        seen = Seen(measured.stamp, measured.state[:2], reference, error)
        if law is not None and law.yields:
            seen = seen._replace(yields=True)
        elif law is not None and not law.observer.is_new:
            external = law.observer.present[0][3]
            lost = law.lost(measured.state[0], measured.state[2])
            seen = seen._replace(external=external, fault=lost)
        verdict = judge.judge(loop.guard, self._watch(loop), seen)
        if verdict == REPEAT:
            if self._command is None:
                raise ControlError(judge.doubt)
            return self._command, error
        if verdict == STOP:
            self._stop(loop, measured, reference)
            reference, error = self._reference(loop, measured)
        return self._evaluated(loop, law, measured, reference), error

    def _watch(self, loop: _Loop) -> Watch:
        settings = self.settings
        floating = settings.collision_reaction == FLOAT
        return Watch(
            settings.max_gap,
            settings.saturation_time,
            settings.violation_samples,
            settings.sample_period if settings.controller == TRACKING else None,
            floating and isinstance(loop.modes.get(FLOATING), ObserverController),
        )

    def _evaluated(
        self, loop: _Loop, law: ObserverController | None, measured: Measured, reference: Array
    ) -> Command:
        """Command of the law that the state of the supervisor asks for."""
        state = self.supervisor.state
        if law is None:
            plain = loop.stopping if state == LEAVING else loop.controller
            return plain.evaluate(reference, *measured.state)
        observer, (q, qd, theta, thetad) = law.observer, measured.state
        missing = (measured.stamp - self._answered) / NANOSECONDS
        if missing > self.settings.max_gap or missing <= 0.0:
            law.reset()
            missing = law.sample_period
        if state == LEAVING:
            observer.update(q, qd, theta, thetad, measured.spring_torque, elapsed=missing)
            command = loop.stopping.evaluate(reference, *measured.state)
            observer.apply(command.torque, 0.0)
        else:
            used = loop.modes[FLOATING] if state == supervisor.FLOATING else law
            assert isinstance(used, ObserverController)
            command = used.evaluate(
                reference, q, qd, theta, thetad, measured.spring_torque, elapsed=missing
            )
        self._answered = measured.stamp
        return command

    def _reference(self, loop: _Loop, measured: Measured) -> tuple[Array, Array]:
        """Return the reference of a measurement, later by the lead, and the tracking error."""
        settings, lead = self.settings, loop.controller.lead
        if isinstance(loop.controller, GravityCompensation) and not self.supervisor.has_stopped:
            reference = np.zeros((5, len(measured.state[0])))
            reference[0] = measured.state[0]
            return reference, reference[1]
        reference = self._references.at(
            measured.stamp + round(lead * NANOSECONDS),
            measured.state[0],
            settings.reference_timeout,
            settings.stop_duration if settings.without_reference == HOLD else None,
        )
        return reference, shifted(reference, -lead)[0] - measured.state[0]

    def _stop(self, loop: _Loop, measured: Measured, reference: Array | None = None) -> None:
        """Bring the robot to rest, and hold it, in the way that the supervisor has chosen.

        Along the path of its reference (5, n), or by another law from where it is measured.
        """
        state, why = self.supervisor.state, self.supervisor.why
        self.get_logger().error(f'The robot is being stopped: {why}')
        begin, duration = measured.stamp, self.settings.stop_duration
        motion: PiecewiseMotion | SlowedMotion = loop.guard.stopping(measured.state[:2])
        if reference is not None and state != LEAVING:
            begin += round(loop.controller.lead * NANOSECONDS)
            planned = self.stream.timeline.under_way(begin)
            if planned is None:
                motion = stop_motion(reference, duration)
            else:
                now = (begin - planned.start) / NANOSECONDS
                motion = SlowedMotion(planned.motion, now, duration)
        floating = loop.modes.get(FLOATING)
        if state == supervisor.FLOATING and isinstance(floating, ObserverController):
            floating.begin()
        self.stream.clear(f'The robot is being stopped: {why}')
        # What floats is followed, what has to rest keeps its distance.
        floats = state == supervisor.FLOATING
        most_ahead = np.zeros_like(loop.guard.max_error) if floats else loop.guard.max_error
        self._references.stop(motion, begin, most_ahead)

    def _publish_observed(self, loop: _Loop, stamp: int) -> None:
        law, link = loop.controller, self.settings.tool_link
        wanted = [self._observed.get_subscription_count() > 0]
        wanted.append(bool(link) and self._wrench.get_subscription_count() > 0)
        if not any(wanted) or not isinstance(law, ObserverController) or self._answered != stamp:
            return
        state, model = law.observer.state(), loop.robot.model
        if wanted[0]:
            message = ObservedState(
                joint_names=loop.names[LINKS],
                motor_names=loop.names[MOTORS],
                **{name: flat(values) for name, values in zip(OBSERVED, state)},
            )
            message.header.frame_id = model.base_link
            message.header.stamp = time_message(stamp)
            self._observed.publish(message)
        if wanted[1]:
            J = jacobian(model, state.position[None], link, 'body')[0]
            wrench = np.linalg.lstsq(J.T, state.external_torque, rcond=None)[0]
            made = WrenchStamped()
            made.header.frame_id, made.header.stamp = link, time_message(stamp)
            torque, force = made.wrench.torque, made.wrench.force
            torque.x, torque.y, torque.z, force.x, force.y, force.z = wrench.tolist()
            self._wrench.publish(made)

    def on_time_jump(self, why: str) -> None:
        """Begin anew: after time has gone back nothing of before is true any more."""
        self._measured = self._command = self._newest = None
        self._answered = 0
        self.supervisor.begin_anew()
        self._references.clear()
        if self._loop is not None:
            self._loop.pairs.clear()
        if self.stream.clear(f'Dropped: {why}.'):
            self.get_logger().error(f'The running trajectory is stopped: {why}.')

    # Health

    def _gated(self) -> int:
        law = None if self._loop is None else self._loop.controller
        return law.observer.gated if isinstance(law, ObserverController) else 0

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
            'state': self.supervisor.state,
            'stopped because': self.supervisor.why,
            'stops': str(self.supervisor.stops),
            'measurements beyond a bound': str(self.supervisor.beyond),
            'positions that cannot be true': str(self._gated()),
        }
        self._largest_tracking = 0.0
        statuses = self.diagnostics.report(*self._preparation.state, {})
        output = next(item for item in statuses if item.name.endswith(': joint_effort'))
        output.name = output.name.replace(': joint_effort', ': motor_command')
        more = [KeyValue(key=key, value=value) for key, value in values.items()]
        output.values = [*output.values, *more]
        if self.supervisor.has_stopped:  # it lasts
            output.level = DiagnosticStatus.ERROR
            output.message = f'the robot has been stopped: {self.supervisor.why}'
        return statuses


def laws_of(
    actuators: Actuators, settings: ControlSettings, limits: Array | None
) -> dict[str, ObserverController | ControlError]:
    """Laws that share an observer, or why they cannot be used."""
    T, model = settings.sample_period, actuators.model
    modes: dict[str, ObserverController | ControlError] = {}
    tracking = tracking_controller(
        actuators,
        T,
        bandwidth=settings.bandwidth or None,
        torque_limits=limits,
        delay=settings.delay,
        resolution=settings.resolution.pair,
        guards=None,
    )
    shared: dict[str, Any] = {
        'bandwidth': tracking.bandwidth,
        'torque_limits': limits,
        'observer': tracking.observer,
        'guards': None,
    }
    ratio = settings.damping_ratio
    joint = settings.of_joints('joint_stiffnesses', 'joint_stiffness', model.joint_names)
    tool = np.repeat([settings.rotational_stiffness, settings.translational_stiffness], 3)
    null, floating = settings.nullspace_stiffness, settings.floating_damping
    made: dict[str, Callable[[], ObserverController]] = {
        JOINT: lambda: JointImpedance(
            actuators, T, stiffness=joint, damping_ratio=ratio, **shared
        ),
        FLOATING: lambda: GravityCompensation(
            actuators, T, damping=floating, feeds_torque_back=settings.torque_sensors, **shared
        ),
    }
    if settings.tool_link:
        made[CARTESIAN] = lambda: CartesianImpedance(
            actuators,
            T,
            link=settings.tool_link,
            stiffness=tool,
            damping_ratio=ratio,
            nullspace_stiffness=null,
            **shared,
        )
    modes[TRACKING] = tracking
    modes[CARTESIAN] = ControlError('cartesian_impedance needs tool_link, the link that it holds.')
    for name, make in made.items():
        try:
            modes[name] = make()
        except ControlError as error:
            modes[name] = error
    return modes


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
    if settings.tool_link in model.links:  # of which external wrenches are published
        rest = np.zeros((1, model.n_joints))
        model.warm_up(0, lambda: jacobian(model, rest, settings.tool_link, 'body'))
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
