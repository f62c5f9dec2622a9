"""The node: topics and services on one side, models, motions and efforts on the other.

Wiring only. The callbacks of topics and timers run in the one thread of the executor and are
short. What takes long has threads or a process of its own: making a robot ready
(`preparation.py`), planning trajectories and answering the service (`planning.py`).
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import WrenchStamped
from hodyn_msgs.msg import (
    JointEffort,
    JointMotion,
    MotionEstimate,
    StiffnessMotion,
    WrenchMotion,
)
from numpy.typing import NDArray
from rcl_interfaces.msg import SetParametersResult
from rclpy.clock import Clock, ClockChange, ClockType, JumpThreshold, TimeJump
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory

from hodyn_ros.analysis.limits import EXTRA_QUANTITIES, LimitCheck
from hodyn_ros.dynamics.inverse import chosen_algorithm, inverse_dynamics
from hodyn_ros.errors import HodynError, StaleError, TrajectoryError, WrenchError
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed
from hodyn_ros.ros import qos
from hodyn_ros.ros.answers import Robot, ready
from hodyn_ros.ros.conversions import (
    EFFORT_FIELDS,
    HIGHEST_EFFORT_ORDER,
    NANOSECONDS,
    EffortWriter,
    continuous_order,
    motion_estimate_message,
    motion_from_message,
    nanoseconds,
)
from hodyn_ros.ros.descriptions import Descriptions
from hodyn_ros.ros.diagnostics import (
    Diagnostics,
    missed_ticks,
    publisher_names,
    refusal_kind,
    unheard_publishers,
)
from hodyn_ros.ros.inputs import Inputs
from hodyn_ros.ros.measured_motion import (
    MeasuredMotion,
    effort_deviations,
    is_wrench_estimated_alike,
    wrench_estimator,
)
from hodyn_ros.ros.motor_output import INPUT as STIFFNESS_INPUT
from hodyn_ros.ros.motor_output import MotorOutput
from hodyn_ros.ros.parameters import Parameters, declare_robot_description
from hodyn_ros.ros.planner import Plan
from hodyn_ros.ros.planning import SERVICE, Asked, Event, Logged, Planner, Served
from hodyn_ros.ros.planning_process import ProcessState, new_planner
from hodyn_ros.ros.process import run
from hodyn_ros.ros.settings import Settings
from hodyn_ros.ros.trajectories import TrajectoryInput
from hodyn_ros.ros.worker import Inbox
from hodyn_ros.ros.wrenches import Wrenches
from hodyn_ros.trajectory.estimator import Estimate

LOG_PERIOD = 1.0  # s


class HodynNode(Node):
    """Computes joint efforts and their derivatives from the motions that it receives."""

    def __init__(self, **node_options: object) -> None:
        super().__init__('hodyn_node', **node_options)
        # What ends with the node, also if it comes no further than to its parameters.
        self._planner: Planner | None = None
        self._descriptions: Descriptions | None = None
        self._declared = Parameters(
            self, self._on_settings, self._check_settings, self._on_parameters_set
        )
        settings = self._settings
        self._remark = ''
        self._limit_check: LimitCheck | None = None  # these two of the robot in use
        self._writer: EffortWriter
        self._estimate: Estimate | None = None  # of the joint states, not answered yet
        self._logged: dict[str, tuple[float, int]] = {}  # when, and how many were not since
        self._unheard: set[str] = set()  # publishers that have been warned of
        self._last_tick: int | None = None
        self._namesakes = 0
        self._checked: tuple[str, RobotModel | None] = '', None  # description about to be set
        self._diagnostics = Diagnostics(self.get_fully_qualified_name())
        self._wrenches = Wrenches(
            settings.wrench, lambda: wrench_estimator(self._settings)
        )
        self._measured = MeasuredMotion(settings.estimator)
        self._inbox = Inbox(self)

        self._effort_publisher = qos.create_publisher(
            self, JointEffort, '~/joint_effort', qos.OUTPUT
        )
        self._mirrors = [
            qos.create_publisher(self, JointState, f'~/joint_effort/order_{order}', qos.OUTPUT)
            for order in range(len(EFFORT_FIELDS) if settings.mirror_efforts else 0)
        ]
        self._estimate_publisher = qos.create_publisher(
            self, MotionEstimate, '~/motion_estimate', qos.OUTPUT
        )
        self._motors = MotorOutput(
            self, lambda: self._settings, self._diagnostics, self._log_error
        )
        self._diagnostics_publisher = qos.create_publisher(
            self, DiagnosticArray, '/diagnostics', qos.OUTPUT
        )

        description = declare_robot_description(self)
        self._planner = new_planner(
            self,
            settings,
            lambda event: self._inbox.put(self._on_event, event),
            lambda model, wrenches: self._descriptions.request_wrenches(model, wrenches),
        )
        self._trajectories = TrajectoryInput(
            self._planner,
            self._time,
            lambda: self._settings,
            lambda now: self._measured.state(now, self._settings.input_timeout),
            self._on_planned,
        )
        self._descriptions = Descriptions(
            self._inbox,
            self._declared,
            self._wrenches.latest,
            self._on_robot,
            self._on_refused_description,
            self._on_progress,
        )
        if description:
            self._descriptions.request(description)
        self.add_on_set_parameters_callback(self._on_set_parameters)

        self._create_inputs()
        # It runs as long as there is a motion.
        self._stream_timer = self.create_timer(
            1.0 / settings.publish_rate, self._on_stream_timer
        )
        self._stream_timer.cancel()
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
        if not description:
            self.get_logger().info('Waiting for a robot description.')

    def _create_inputs(self) -> None:
        inputs = self._inputs = Inputs(
            self,
            lambda: self._settings.max_message_size,
            self._diagnostics.received,
            self._refuse,
            self._diagnostics.arrived,
            self._diagnostics.lost,
        )
        is_series = self._settings.answer_all
        for topic, kind, take, profile in (
            ('joint_motion', JointMotion, self._take_joint_motion, qos.NEWEST),
            ('joint_states', JointState, self._take_joint_states, qos.SENSOR_INPUT),
            ('wrench_motion', WrenchMotion, self._take_wrench_motion, qos.INPUT),
            ('wrench', WrenchStamped, self._take_wrench, qos.SENSOR_INPUT),
            (STIFFNESS_INPUT, StiffnessMotion, self._take_stiffness_motion, qos.INPUT),
        ):
            then = self._answer_joint_states if topic == 'joint_states' else None
            profile = qos.as_series(profile) if is_series else profile
            inputs.subscribe(topic, kind, take, profile, then=then)
        inputs.subscribe(
            'robot_description',
            String,
            self._take_robot_description,
            qos.ROBOT_DESCRIPTION,
            is_sample=False,
            is_settled=False,
        )
        inputs.subscribe(
            'joint_trajectory',
            JointTrajectory,
            self._trajectories.take,
            qos.TRAJECTORY_INPUT,
            is_sample=False,
            as_bytes=True,
            is_settled=False,
        )

    def destroy_node(self) -> None:
        """Finish what the workers have begun, drop what waits for them, and destroy the node."""
        if self._descriptions is not None:
            self._descriptions.close()
        if self._planner is not None:
            self._planner.close()
        super().destroy_node()

    @property
    def _settings(self) -> Settings:
        return self._declared.settings

    @property
    def _robot(self) -> Robot | None:
        return self._descriptions.robot

    def _ready(self) -> Robot:
        return ready(self._robot, self._descriptions.in_preparation)

    def _awaits_robot(self) -> bool:
        """Whether there is nothing yet to measure, but soon will be."""
        return self._robot is None and self._descriptions.in_preparation

    def _time(self) -> int:
        return self.get_clock().now().nanoseconds

    # Parameters

    def _on_set_parameters(self, parameters: Sequence[Parameter]) -> SetParametersResult:
        for parameter in parameters:
            xml = parameter.value
            if parameter.name != 'robot_description' or self._descriptions.is_latest(xml):
                continue
            try:
                self._checked = xml, self._descriptions.check(xml)
            except HodynError as error:
                return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def _on_parameters_set(self, parameters: Sequence[Parameter]) -> None:
        """Take a description up once nothing objects to what is set together with it."""
        for parameter in parameters:
            xml = parameter.value
            if (
                parameter.name == 'robot_description'
                and self._descriptions is not None  # it is being declared
                and not self._descriptions.is_latest(xml)
            ):
                checked, model = self._checked
                self._descriptions.request(xml, model if checked == xml else None)

    def _check_settings(self, settings: Settings) -> None:
        """Refuse what does not suit the robot in use."""
        robot = self._robot
        link = settings.wrench.link
        if robot is not None:
            if link:
                robot.model.link(link)
            settings.drives_of(robot.model)

    def _on_settings(self, before: Settings, settings: Settings) -> None:
        """Bring changed parameters to those who do not look at them each time."""
        self._wrenches.settings = settings.wrench
        if not is_wrench_estimated_alike(settings, before):
            self._wrenches.restart_estimators()
        if settings.estimator != before.estimator:
            self._measured.settings = settings.estimator
        if settings.publish_rate != before.publish_rate:
            self._stream_timer.timer_period_ns = round(NANOSECONDS / settings.publish_rate)
            self._stream_timer.reset()  # or the old period would have to be over first
        self._planner.set_settings(settings)
        if (settings.limits, settings.actuators) != (before.limits, before.actuators):
            self._descriptions.update_robot()
            self._on_progress()

    # Robot

    def _take_robot_description(self, message: String) -> None:
        self._descriptions.request(message.data)

    def _on_progress(self) -> None:
        """Tell the planning which robot there is, or whether to wait for one."""
        robot = self._robot
        if robot is not None:
            self._note_limit_hits()
            self._limit_check = LimitCheck(robot.model, robot.limits)
            self._writer = EffortWriter(robot.model)
            self._motors.use(robot.drives)
        in_preparation = self._descriptions.in_preparation
        self._planner.set_robot(robot, in_preparation)
        names = None if robot is None else robot.model.joint_names
        if self._trajectories.use_joints(names, in_preparation):
            self.get_logger().error(
                'The running trajectory is stopped: the new robot has other joints.'
            )

    def _on_robot(self, before: Robot | None, remark: str) -> None:
        robot = self._robot
        self._diagnostics.received('robot_description')
        self._measured.use_joints(robot.model.joint_names, robot.model.joint_types)
        for link in self._wrenches.keep_only(robot.model):
            self.get_logger().warning(
                f'The wrench on {link!r} is dropped: the new robot has no place for it.'
            )
        self._descriptions.request_wrenches(robot.model, self._wrenches.latest())
        for warning in robot.model.warnings:
            self.get_logger().warning(warning)
        for name in self._declared.unused_limits(robot.model):
            self.get_logger().warning(
                f'Parameter {name} limits nothing: expected limits.<joint>.<quantity> with one of '
                f'the joints {listed(robot.model.joint_names)} and one of the quantities '
                f'{listed(EXTRA_QUANTITIES)}.'
            )
        if remark and remark != self._remark:
            self.get_logger().warning(
                f'Efforts are computed without compiled code, which is slower: {remark}.'
            )
        self._remark = remark
        self.get_logger().info(
            f'Model {robot.model.name!r} is ready: joints {", ".join(robot.model.joint_names)}.'
        )

    def _on_refused_description(self, reason: str) -> None:
        self._diagnostics.refused('robot_description', reason)
        self.get_logger().error(
            f'Robot description refused: {reason}'
            + (' The model before stays in use.' if self._robot is not None else '')
        )

    # Single motions and measurements

    def _take_joint_motion(self, message: JointMotion) -> None:
        robot = self._ready()
        motion = motion_from_message(robot.model, message)
        stamp, arrival = self._times(message)
        age, timeout = (arrival - stamp) / NANOSECONDS, self._settings.input_timeout
        if timeout and age > timeout:
            raise StaleError(
                f'The stamp lay {age:.3f} s in the past when the message arrived, more than '
                f'input_timeout ({timeout} s). The clocks of sender and node must agree. For '
                'recorded data, set use_sim_time and play the clock, or set input_timeout to 0.'
            )
        self._publish_effort(
            robot, motion, stamp, JointEffort.SOURCE_JOINT_MOTION, HIGHEST_EFFORT_ORDER
        )

    def _times(self, message: JointMotion | JointState) -> tuple[int, int]:
        """Stamp and arrival [ns] of the message that is being taken; a stamp of zero is arrival.

        Raises
        ------
        StaleError
            If it came in time, but has waited here for too long.
        """
        arrival, now = self._inputs.arrival, self._time()
        stamp = nanoseconds(message.header.stamp) or arrival
        timeout = self._settings.input_timeout
        if timeout and now - stamp > timeout * NANOSECONDS >= arrival - stamp:
            raise StaleError(
                f'The stamp lies {(now - stamp) / NANOSECONDS:.3f} s in the past, more than '
                f'input_timeout ({timeout} s), since the message has waited for the node for '
                f'{(now - arrival) / NANOSECONDS:.3f} s: the node or its machine has too much to '
                'do, or was held up.'
            )
        return stamp, arrival

    def _take_joint_states(self, message: JointState) -> None:
        if not self._settings.estimator.enabled or self._awaits_robot():
            return
        self._ready()
        measured = self._measured
        dropped = measured.dropped
        _, arrival = self._times(message)
        estimate = measured.update(message, arrival, self._settings.input_timeout)
        if measured.dropped > dropped:
            self._diagnostics.dropped('joint_states', measured.dropped - dropped)
        if measured.gap:
            self._diagnostics.gap('joint_states', measured.gap)
        if estimate is not None:
            self._estimate = estimate
            if self._settings.answer_all:
                self._answer_joint_states()

    def _answer_joint_states(self) -> None:
        """Answer the latest of the joint states that have been taken."""
        estimate, self._estimate = self._estimate, None
        robot = self._robot
        if estimate is None or robot is None:
            return
        self._estimate_publisher.publish(motion_estimate_message(robot.model, estimate))
        self._diagnostics.estimated(estimate.valid_order, estimate.delay, estimate.noise)
        if estimate.valid_order >= 2:
            self._publish_effort(
                robot,
                estimate.motion,
                estimate.time,
                JointEffort.SOURCE_JOINT_STATES,
                HIGHEST_EFFORT_ORDER,
                estimate,
            )

    def _take_wrench_motion(self, message: WrenchMotion) -> None:
        self._take_acting('wrench_motion', self._wrenches.take_motion, message)

    def _take_wrench(self, message: WrenchStamped) -> None:
        if not self._awaits_robot():
            self._take_acting('wrench', self._wrenches.take_stamped, message)

    def _take_stiffness_motion(self, message: StiffnessMotion) -> None:
        self._ready()
        self._motors.take_stiffness(message, self._inputs.arrival)

    def _take_acting(
        self, topic: str, take: Callable[[Any, RobotModel, int], bool], message: object
    ) -> None:
        model = self._ready().model
        dropped = self._wrenches.dropped
        if take(message, model, self._inputs.arrival):
            self._descriptions.request_wrenches(model, self._wrenches.latest())
        if self._wrenches.dropped > dropped:
            self._diagnostics.dropped(topic)

    def _publish_effort(
        self,
        robot: Robot,
        motion: NDArray,
        stamp: int,
        source: int,
        continuous: int,
        estimate: Estimate | None = None,
    ) -> None:
        begin = time.perf_counter()
        try:
            acting = self._wrenches.at(stamp, motion, robot.model)
        except WrenchError as error:
            self._hold_back(error)
            return
        motion = motion[: acting.order + 3]
        effort = inverse_dynamics(robot.model, motion, acting.wrenches or None)
        deviations = effort_deviations(
            robot.model,
            motion,
            effort,
            acting.wrenches,
            None if estimate is None else estimate.factor,
            acting.deviations,
        )
        delay = 0.0 if estimate is None else estimate.delay
        message = self._writer.message(effort, stamp, source, continuous, deviations, delay)
        self._effort_publisher.publish(message)
        for field, publisher in zip(EFFORT_FIELDS[: len(effort)], self._mirrors):
            values = getattr(message, field)
            publisher.publish(
                JointState(header=message.header, name=message.joint_names, effort=values)
            )
        compute_time = time.perf_counter() - begin
        self._diagnostics.published(compute_time)
        self._limit_check.look(motion, effort)
        self._motors.publish(motion, effort, stamp, source)

    # Trajectories and the service

    def _on_stream_timer(self) -> None:
        now = self._time()
        timeline = self._trajectories.timeline
        due = timeline.sample(now)
        self._count_missed(now, due is not None)
        if not timeline:
            self._stream_timer.cancel()
            self._last_tick = None
        robot = self._robot
        if due is None or robot is None:
            return
        planned, stamp = due
        try:
            if planned.joint_names != robot.model.joint_names:
                timeline.clear()
                raise TrajectoryError('The trajectory is for a robot that has been replaced.')
            self._publish_effort(
                robot,
                planned.at(stamp),
                stamp,
                JointEffort.SOURCE_JOINT_TRAJECTORY,
                continuous_order(planned.continuous_derivative),
            )
        except HodynError as error:
            self._hold_back(error)

    def _count_missed(self, now: int, is_streaming: bool) -> None:
        last, self._last_tick = self._last_tick, now if is_streaming else None
        if last is not None and is_streaming:
            missed = missed_ticks(last, now, self._stream_timer.timer_period_ns)
            if missed:
                self._diagnostics.missed_ticks(missed)

    def _on_event(self, event: Event | ProcessState) -> None:
        """Take what the planning reports."""
        if isinstance(event, Plan):
            self._trajectories.on_plan(event)
        elif isinstance(event, Served):
            self._diagnostics.waiting(event.waiting, self._settings.max_waiting_requests)
            if event.error:
                self._diagnostics.refused(SERVICE, event.error, event.kind)
                self._log_error(SERVICE, f'{SERVICE} refused: {event.error}')
            else:
                self._diagnostics.received(SERVICE)
        elif isinstance(event, Asked):
            self._planner.echo(event.number)
        elif isinstance(event, Logged):
            self.get_logger().error(event.text)
        elif event.running:
            self._diagnostics.process('running', event.starts - 1, event.error, event.pid)
            if event.starts > 1:
                self.get_logger().info('The planning process is running again.')
        else:
            self._diagnostics.process('ended', event.starts - 1, event.error)
            self.get_logger().error(
                f'The planning process is started again: {event.error}. Requests that it was '
                'answering are lost.'
            )

    def _on_planned(self, plan: Plan) -> None:
        topic = 'joint_trajectory'
        if plan.error:
            self._diagnostics.refused(topic, plan.error, plan.kind)
            self._log_error(topic, f'{topic} refused: {plan.error}')
            return
        self._diagnostics.received(topic)
        remarks = list(plan.remarks)
        if plan.planned is not None:
            if self._stream_timer.is_canceled():
                self._stream_timer.reset()
            duration = (plan.planned.last - plan.planned.first) / NANOSECONDS
            self.get_logger().info(f'Trajectory taken: a motion of {duration:.3f} s.')
        elif remarks:
            self.get_logger().info(remarks.pop(0))
        for remark in remarks:  # they come with the whole answer too
            self.get_logger().debug(remark)
        for text in plan.warnings:
            self.get_logger().warning(text)

    def _on_time_jump(self, jump: TimeJump) -> None:
        """After a jump back (a recording starts again) nothing of before is true any more."""
        self._diagnostics.time_jumped()
        self._wrenches.clear()
        self._motors.reset()
        self._measured.reset()
        self._last_tick = None
        changed = jump.clock_change in (
            ClockChange.ROS_TIME_ACTIVATED, ClockChange.ROS_TIME_DEACTIVATED
        )
        reason = 'the node follows another clock' if changed else 'time jumped back'
        if self._trajectories.clear(f'Dropped: {reason}.'):
            self.get_logger().error(f'The running trajectory is stopped: {reason}.')

    # Health

    def _refuse(self, topic: str, error: Exception) -> None:
        self._diagnostics.refused(topic, str(error), refusal_kind(error))
        self._log_error(topic, f'{topic} refused: {error}')

    def _hold_back(self, error: HodynError) -> None:
        self._diagnostics.stopped(str(error))
        self._log_error('joint_effort', f'No effort is published: {error}')

    def _log_error(self, subject: str, text: str = '') -> None:
        """Log an error; but for trajectories, one in LOG_PERIOD with the number of the others.

        Without a text, log that number alone, if there are any.
        """
        now = time.monotonic()
        before, left_out = self._logged.get(subject, (-math.inf, 0))
        if subject != 'joint_trajectory' and now - before < LOG_PERIOD:
            self._logged[subject] = before, left_out + bool(text)
        elif text or left_out:
            self._logged[subject] = now, 0
            more = f' ({left_out} more in the {now - before:.1f} s before)' * bool(left_out)
            self.get_logger().error((text or f'{subject}: further errors') + more)

    def _note_namesakes(self) -> None:
        before = self._namesakes
        names = publisher_names(self, '~/joint_effort')
        self._namesakes = max(names.count(self.get_fully_qualified_name()) - 1, 0)
        self._diagnostics.namesakes(self._namesakes)
        if self._namesakes > before:
            self.get_logger().warning(
                f'There is another node {self.get_fully_qualified_name()}: each input is answered '
                'by both. Stop one of them, or start it with another name (-r __node:=NAME) or '
                'namespace (-r __ns:=/NAMESPACE) and topics of its own.'
            )

    def _on_diagnostics_timer(self) -> None:
        self._note_namesakes()
        self._note_inputs()
        message = self._diagnostics.report(
            self._robot,
            self._descriptions.error,
            self._descriptions.in_preparation,
            {} if self._robot is None else self._algorithms(self._robot.model),
        )
        message.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics_publisher.publish(message)

    def _note_inputs(self) -> None:
        """Tell the diagnostics what can be known of the inputs without looking at messages."""
        settings = self._settings
        for subject in self._logged:
            self._log_error(subject)
        self._note_limit_hits()
        for topic, subscription in self._inputs.subscriptions.items():
            unheard = unheard_publishers(self, subscription)
            for reason in unheard:
                if reason not in self._unheard:
                    self.get_logger().warning(reason)
            self._unheard.update(unheard)
            if topic != 'robot_description':
                self._diagnostics.publishers(topic, publisher_names(self, topic), unheard)
        for topic in ('joint_motion', 'joint_states'):
            self._diagnostics.watch(topic, settings.input_timeout)
        for topic in ('wrench_motion', 'wrench'):
            self._diagnostics.watch(topic, settings.wrench.timeout)
        self._diagnostics.acting(self._wrenches.report(self._time()))
        clock = self.get_clock()
        self._diagnostics.clock(
            clock.clock_type.name, self.get_parameter('use_sim_time').value is True
        )

    def _note_limit_hits(self) -> None:
        if self._limit_check is not None:
            self._diagnostics.exceeded(self._limit_check.take_hits())

    def _algorithms(self, model: RobotModel) -> dict[str, str]:
        motion = np.zeros((5, model.n_joints))
        algorithms = {'algorithm': chosen_algorithm(model, motion)}
        wrenches = self._wrenches.latest()
        if wrenches:
            algorithms['algorithm with wrenches'] = chosen_algorithm(model, motion, wrenches)
        if self._remark:
            algorithms['no compiled code because'] = self._remark
        return algorithms


if __name__ == '__main__':
    sys.exit(run(HodynNode))
