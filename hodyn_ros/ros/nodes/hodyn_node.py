"""The node: topics and services on one side, models, motions and efforts on the other.

All callbacks run in the one thread of the executor and are short. What takes long is done beside
it: a worker makes robots ready, a process plans trajectories and answers the service.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
from hodyn_msgs.msg import (
    BaseMotion,
    IdentifiedParameters,
    JointEffort,
    JointMotion,
    MotionEstimate,
    MotorReference,
    StiffnessMotion,
    WrenchMotion,
)
from hodyn_msgs.srv import SetFriction, SetPayload
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64, Float64MultiArray
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from hodyn_ros.actuators.limits import find_motor_violations
from hodyn_ros.actuators.motors import motor_motion
from hodyn_ros.dynamics.inverse import chosen_algorithm, inverse_dynamics
from hodyn_ros.errors import (
    HodynError,
    RequestError,
    StaleError,
    TrajectoryError,
    WrenchError,
)
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.model.violations import LimitCheck
from hodyn_ros.names import listed
from hodyn_ros.ros.base import qos
from hodyn_ros.ros.base.conversions import (
    HIGHEST_EFFORT_ORDER,
    continuous_order,
    fill,
    flat,
    moment_force,
    motion_estimate_message,
    motion_of_base,
    payload_of,
    read_rows,
    time_message,
    values_of,
    wrench_from_message,
)
from hodyn_ros.ros.base.life import main
from hodyn_ros.ros.base.motor_messages import (
    fill_motors,
    motor_message,
    stiffness_from_message,
)
from hodyn_ros.ros.base.node import StreamNode
from hodyn_ros.ros.base.node_settings import NodeSettings
from hodyn_ros.ros.base.serialized import EffortWriter, MotionReader
from hodyn_ros.ros.base.subscription import Topic
from hodyn_ros.ros.planner.client import PlanningClient
from hodyn_ros.ros.planner.controllers import ControllerOutput
from hodyn_ros.ros.planner.planner import SERVICES, health_of
from hodyn_ros.streams.acting_wrenches import check_target
from hodyn_ros.streams.health import AHEAD, MISSED, OFF_LOOPS, RESCALED
from hodyn_ros.streams.measured import MeasuredMotion, MechanismStates
from hodyn_ros.streams.motion_stream import (
    CHUNK,
    TRAJECTORY,
    MotionStream,
    Plan,
)
from hodyn_ros.streams.online_parameters import OnlineParameters, estimator_of
from hodyn_ros.streams.payloads import check_transition, law_from, with_payload
from hodyn_ros.streams.preparation import Compiled, CompiledRobots
from hodyn_ros.streams.process_watch import RUNNING
from hodyn_ros.streams.received import report_plan, request_of
from hodyn_ros.streams.robot_in_use import Robot, drives_of, without_limits
from hodyn_ros.streams.surroundings import (
    BASE_TIMEOUT,
    Circumstances,
    Surroundings,
    deviations,
)
from hodyn_ros.streams.timeline import (
    NANOSECONDS,
    ScaledClock,
    State,
    check_age,
    nanoseconds,
)
from hodyn_ros.trajectory.estimator import Estimate
from hodyn_ros.typing import Array

_FAR_AHEAD = 60 * NANOSECONDS  # a stamp, such as of another clock
_WARNING_PERIOD = 10.0  # s
_STATE = ('position', 'velocity')  # fields of JointState

# Time in which efforts pass over to those of another description with the same joints, if a motion
# is in progress [s].
DESCRIPTION_TRANSITION = 0.5

# How far measured joints may be from where closed loops have them [rad, m].
LOOP_TOLERANCE = 0.05


class HodynNode(StreamNode[NodeSettings]):
    """Node that computes joint efforts and their derivatives from the motions that it receives.

    Parameters
    ----------
    **node_options
        Of `rclpy.node.Node`.

    Attributes
    ----------
    robot : Robot, optional
        In use.
    stream : MotionStream
    """

    preparation: CompiledRobots

    def __init__(self, **node_options: Any) -> None:
        super().__init__('hodyn_node', NodeSettings, **node_options)
        settings = self.settings
        self.robot: Robot | None = None
        # What follows belongs to the robot in use.
        self._limit_check: LimitCheck | None = None
        self._writer: EffortWriter
        self._motors: MotorReference | None = None  # written again and again
        self._remark = ''  # why there is no compiled code
        self._unlimited: list[str] = []  # what has been said to have no limit
        self._estimate: Estimate | None = None  # of the joint states, not answered yet
        self._last_tick: int | None = None
        self._around = Surroundings(settings)
        self._measured = MeasuredMotion()
        self._motions = MotionReader()
        self._mechanism = MechanismStates()
        self._identification = OnlineParameters(self)

        self._effort_publisher = self.advertise(JointEffort, '~/joint_effort')
        self._state_publisher = self.advertise(JointState, '~/joint_states')
        self._estimate_publisher = self.advertise(MotionEstimate, '~/motion_estimate')
        self._parameter_publisher = self.advertise(
            IdentifiedParameters, '~/identified_parameters'
        )
        self._motor_publisher = self.advertise(MotorReference, '~/motor_reference')
        self._commands = self.advertise(Float64MultiArray, '~/commands')
        # It runs as long as there is a motion.
        period = 1.0 / settings.publish_rate
        self._stream_timer = self.create_timer(period, self._on_stream_timer)
        self._stream_timer.cancel()

        self.preparation = CompiledRobots(
            self, self._around.wrenches.latest, self._on_progress, self._on_robot
        )
        self._planning = PlanningClient(self, ControllerOutput(self))
        self.stream: MotionStream = MotionStream(
            self._planning,
            lambda: self.settings,
            self._measured_state,
            self._on_planned,
            has_controller=True,
        )
        self.create_service(SetPayload, '~/set_payload', self._set_payload)
        self.create_service(SetFriction, '~/set_friction', self._set_friction)
        retime = self.resolve_service_name(f'~/{SERVICES[1]}')
        self.create_service(Trigger, health_of(retime), self._tell_planning)
        self.open()

    def topics(self) -> Iterator[Topic]:
        """Yield the inputs."""
        receive, states = self._take_joint_motion, self._take_joint_states
        read, answer = self._read_joint_motion, self._answer_joint_states
        samples = [
            Topic('joint_motion', JointMotion, receive, qos.NEWEST, unpack=read),
            Topic('joint_states', JointState, states, qos.SENSOR_INPUT, answer),
        ]
        for name, kind, keep, profile in (
            ('wrench_motion', WrenchMotion, self._take_wrench_motion, qos.INPUT),
            ('wrench', WrenchStamped, self._take_wrench, qos.SENSOR_INPUT),
            ('stiffness_motion', StiffnessMotion, self._take_stiffness, qos.INPUT),
            ('base_motion', BaseMotion, self._take_base_motion, qos.SENSOR_INPUT),
        ):
            if name != 'base_motion' or self.settings.base_motion:
                take = partial(self._take_acting, name, keep)
                samples.append(Topic(name, kind, take, profile))
        if self.settings.speed_scaling:
            scale = self._take_speed_scaling
            samples.append(Topic('speed_scaling', Float64, scale, qos.SENSOR_INPUT))
        for topic in samples:
            series = topic._replace(profile=qos.as_series(topic.profile))
            yield series if self.settings.answer_all else topic
        for name, profile in ((TRAJECTORY, qos.INPUT), (CHUNK, qos.NEWEST)):
            give = partial(self._take_trajectory, topic=name)
            kind = JointTrajectory
            yield Topic(name, kind, give, profile, is_sample=False, unpack=bytes)

    # Parameters and the robot

    def describe(self, xml: str) -> None:
        """Have a robot made ready; until it is, the one in use stays in use."""
        self.preparation.request(xml)

    def check_description(self, xml: str) -> None:
        """Refuse a parameter that is no description of a robot."""
        if not self.preparation.is_latest(xml):
            self.preparation.check(xml)

    def check_settings(self, settings: NodeSettings) -> None:
        """Refusal of what does not suit the robot in use.

        Parameters
        ----------
        settings : NodeSettings

        Raises
        ------
        HodynError
            If the link of measured wrenches, actuators, commands or identification do not fit.
        """
        if self.robot is not None:
            check_target(settings.wrench, self.robot.model)
            drives_of(self.robot.model, settings.actuators)
            if settings.identification.enabled:
                estimator_of(self.robot.model, settings.identification)

    def on_settings(self, before: NodeSettings) -> None:
        """Bring changed parameters to those who do not look at them each time."""
        settings = self.settings
        if self.robot is not None:
            self._measure(self.robot.model)
        if settings.publish_rate != before.publish_rate:
            self._stream_timer.timer_period_ns = round(NANOSECONDS / settings.publish_rate)
            self._stream_timer.reset()  # or the old period would have to be over first
        has_other_commands = settings.command != before.command
        if has_other_commands or settings.friction != before.friction:
            self.preparation.update_robot()
            if has_other_commands:
                self._around.transitions.follow(self.preparation.with_payloads)
            self._on_progress()
        else:
            self._planning.set_up(self.robot, self.preparation.is_under_way)
            if self.robot is not None:
                self._identification.use(self.robot)

    def _measure(self, model: RobotModel) -> list[str]:
        """Measure a robot as the settings say; return the links whose wrench has no place."""
        self._measured.use(self.settings.estimator, model.joint_names, model.joint_types)
        return self._around.wrenches.use(self.settings, model)

    def _on_progress(self) -> None:
        """Follow what has become of robots: there is another one, or one is being made ready."""
        robot = self.preparation.robot
        settings = self.settings
        if robot is not None and robot is not self.robot:
            self._note_limit_hits()
            self._limit_check = LimitCheck(robot.model, robot.limits)
            self._writer = EffortWriter(robot.model)
            self._mechanism.use(robot.model)
            if self.robot is None or self.robot.model.base_link != robot.model.base_link:
                self._around.base.clear()
            self._motors = None
            if robot.drives is not None:
                self._motors = motor_message(MotorReference, robot.drives.actuators)
                self._motors.header.frame_id = robot.model.base_link
            self._pass_over_to(robot)
            self.robot = robot
            unlimited = without_limits(robot)
            if unlimited != self._unlimited:
                self._unlimited = unlimited
                for text in unlimited:
                    self.get_logger().info(f'{text} Motions are not checked for that.')
            self._identification.use(robot)
            try:
                check_target(settings.wrench, robot.model)
            except WrenchError as error:
                self.get_logger().error(f'No measured wrench is taken. {error}')
        self._planning.set_up(self.robot, self.preparation.is_under_way)
        if self.stream.follow(robot, self.preparation.is_under_way, self.instant()):
            text = 'The running trajectory is stopped: the new robot has other joints.'
            self.get_logger().error(text)

    def _pass_over_to(self, robot: Robot) -> None:
        """Have efforts pass over to those of another description amid a motion, without a step."""
        before = self.robot
        if before is None or before.description == robot.description:
            return
        if self.stream.timeline and before.model.joint_names == robot.model.joint_names:
            # Where so many changes wait already, nobody sees one more step.
            with suppress(RequestError):
                start = self._around.transitions.start(self.now())
                duration = DESCRIPTION_TRANSITION
                self._around.transitions.add(
                    before, robot, start, duration, keeps_past=False
                )
                self.get_logger().info(
                    'The motion in progress goes on with the new robot; its efforts take over '
                    f'within {duration:g} s.'
                )
                return
        self._around.transitions.follow(self.preparation.with_payloads)

    def _on_robot(self, made: Compiled) -> None:
        model, remark = made
        warnings = [
            f'The wrench on {link!r} is dropped: the new robot has no place for it.'
            for link in self._measure(model)
        ]
        self.preparation.request_wrenches()
        for start, names in (('limits', model.joint_names), ('friction', model.body_names)):
            others = {joint for joint, *_ in getattr(self.settings, start)} - {*names}
            if others:
                warnings.append(
                    f'Parameters of {start} for {listed(sorted(others))} have no effect: the '
                    f'joints of the robot are {listed(names)}.'
                )
        if remark and remark != self._remark:
            text = f'Efforts are computed without compiled code, which is slower: {remark}.'
            warnings.append(text)
        self._remark = remark
        for warning in warnings:
            self.get_logger().warning(warning)
        joints = ', '.join(model.joint_names)
        self.get_logger().info(f'Model {model.name!r} is ready: joints {joints}.')

    def _tell_planning(
        self, _: Trigger.Request, response: Trigger.Response
    ) -> Trigger.Response:
        """Say which process plans, or why none does."""
        watch = self.diagnostics.process
        assert watch is not None
        response.success = watch.state == RUNNING
        pid = str(watch.pid) * response.success
        response.message = pid or watch.fault or 'the process that plans is being started'
        return response

    def _set_payload(
        self, request: SetPayload.Request, response: SetPayload.Response
    ) -> SetPayload.Response:
        """Have a link carry something else from now on, or from the end of the last transition."""

        def change(robot: Robot) -> None:
            if request.use_identified:
                com = request.inertia.com
                link, mass, (com.x, com.y, com.z) = self._identification.payload(
                    request.link
                )
                request.link, request.inertia.m = link, mass
            allow_impossible = self.settings.allow_impossible_inertia
            payload = payload_of(request)
            payloads, response.warnings = with_payload(robot, payload, allow_impossible)
            self.preparation.update_robot(payloads)
            self._on_progress()

        return self._pass_over('set_payload', change, request, response)

    def _set_friction(
        self, request: SetFriction.Request, response: SetFriction.Response
    ) -> SetFriction.Response:
        """Have a joint rub in another way from now on, or from the end of the last transition."""

        def change(robot: Robot) -> None:
            law = law_from(request.joint, request.names, request.values, robot.model)
            start = f'friction.{request.joint}.'
            self.parameters.override(start, {start + name: law[name] for name in law})

        return self._pass_over('set_friction', change, request, response)

    def _pass_over(
        self, service: str, change: Callable[[Robot], None], request: Any, response: Any
    ) -> Any:
        """Change the robot, and have the efforts pass over to those of the new one.

        Parameters
        ----------
        service : str
            Its name.
        change : callable
            Takes the robot in use and makes another one the one in use, or raises HodynError.
        request : object
            With `transition_time` and `allow_step`.
        response : object
            With `success`, `message` and `start`.

        Returns
        -------
        object
            The response.
        """
        try:
            before = self.preparation.ready()
            check_transition(request.transition_time, request.allow_step)
            start = self._around.transitions.start(self.now())
            change(before)
        except HodynError as error:
            response.message = str(error)
            self.refuse(service, error)
            return response
        after = self.preparation.ready()
        self._around.transitions.add(before, after, start, request.transition_time)
        self.preparation.request_wrenches()
        self.diagnostics.received(service)
        response.success, response.start = True, time_message(start)
        return response

    # Single motions and measurements

    def _read_joint_motion(self, data: bytes) -> tuple[Robot, Array, int]:
        robot = self.robot or self.preparation.ready()
        return robot, *self._motions.read(data, robot.model)

    def _take_joint_motion(self, given: tuple[Robot, Array, int]) -> None:
        robot, motion, stamp = given
        stamp, arrival = self._timely('joint_motion', stamp, may_lead=True)
        if stamp - arrival > _FAR_AHEAD:
            self.diagnostics.input('joint_motion').add(AHEAD)
            self.get_logger().warning(
                f'joint_motion: the stamp lies {(stamp - arrival) / NANOSECONDS:.0f} s in the '
                'future. It is answered as it is; do sender and node use the same clock '
                '(use_sim_time)?',
                throttle_duration_sec=_WARNING_PERIOD,
            )
        source = JointEffort.SOURCE_JOINT_MOTION
        self._publish_effort(robot, motion, stamp, source, HIGHEST_EFFORT_ORDER)

    def _times_of_arrival(self) -> tuple[int, int]:
        """When the message that is being taken has arrived, and now, by the node's clock [ns]."""
        # The middleware tells the time of the system; what a simulation showed then is not known.
        now, is_simulated = self.now(), self.get_clock().ros_time_is_active
        return (now if is_simulated else min(self.received or now, now)), now

    def _timely(self, topic: str, stamp: int, *, may_lead: bool = False) -> tuple[int, int]:
        """Stamp (zero: the arrival) and arrival [ns] of the message that is being taken.

        StaleError if they are too far apart, or it has waited here for too long.
        """
        arrival, now = self._times_of_arrival()
        stamp = stamp or arrival
        if stamp < now or not may_lead:
            timeout, waited = self.settings.input_timeout, (now - arrival) / NANOSECONDS
            check_age(topic, stamp, now, timeout, 'input_timeout', waited)
        return stamp, arrival

    def _take_joint_states(self, message: JointState) -> None:
        has_loops = bool(self._mechanism.joint_names)
        is_used = self.settings.estimator.enabled or has_loops
        if self.preparation.is_awaited or not is_used:
            return
        self.preparation.ready()
        measured, state, topic = self._measured, message, 'joint_states'
        dropped, gaps = measured.counts
        stamp, arrival = self._timely(topic, nanoseconds(message.header.stamp))
        if has_loops:
            fields = _STATE[: 1 + bool(message.velocity)]
            given = read_rows(topic, message, fields, needed=len(fields), names='name')[0]
            motion = self._mechanism.take(message.name, given, arrival)
            if motion is None:
                return
            state = self._joint_state(motion, stamp)
            self._state_publisher.publish(state)
            self._compare_with_loops()
        values = values_of(topic, state, ('position',), measured.joint_names)
        estimate = None
        if values is not None:
            estimate = measured.take(values[0], stamp)
        self._take_efforts(message, stamp)
        self.diagnostics.dropped(topic, measured.counts[0] - dropped)
        if measured.counts[1] > gaps:
            self.diagnostics.input(topic).add('gaps')
        if estimate is not None:
            self._estimate = estimate
            if self.settings.answer_all:
                self._answer_joint_states()

    def _take_efforts(self, message: JointState, stamp: int) -> None:
        """Keep measured efforts, if something is identified from them."""
        identification = self._identification
        if identification.wants(stamp):
            try:
                names = identification.joint_names
                measured = values_of('joint_states', message, ('effort',), names)
            except HodynError as error:
                identification.problem = str(error)
                return
            if measured is not None:
                identification.take(measured[0], stamp)

    def _identify(self, motion: Array, stamp: int, wrenches: Any, std: Array) -> None:
        """Compare measured efforts with a motion; publish what is identified."""
        found = self._identification.compare(motion, stamp, wrenches, std)
        if found is not None:
            message = IdentifiedParameters(
                names=found.names,
                values=found.values,
                deviations=found.std,
                units=found.units,
                **self._identification.counts,
            )
            message.header.stamp = time_message(stamp)
            message.header.frame_id = self.settings.identification.payload_link
            self._parameter_publisher.publish(message)

    def _compare_with_loops(self) -> None:
        """Count and log joints that are measured where closed loops do not allow it."""
        for joint, off in self._mechanism.deviations.items():
            if abs(off) > LOOP_TOLERANCE:
                self.diagnostics.input('joint_states').add(OFF_LOOPS + joint)
                self.get_logger().warning(
                    f'joint_states: joint {joint!r} is measured {off:.3g} (rad, m) from where the '
                    'closed loops have it. Are the zeros of the '
                    'encoders right, and the loops of the description?',
                    throttle_duration_sec=_WARNING_PERIOD,
                )

    def _answer_joint_states(self) -> None:
        """Answer the latest of the joint states that have been taken."""
        estimate, self._estimate = self._estimate, None
        robot = self.robot
        if estimate is None or robot is None:
            return
        self._estimate_publisher.publish(motion_estimate_message(robot.model, estimate))
        self.diagnostics.estimate = estimate.valid_order, estimate.delay, estimate.noise
        if estimate.valid_order >= 2:
            kind = JointEffort.SOURCE_JOINT_STATES, HIGHEST_EFFORT_ORDER
            self._publish_effort(robot, estimate.motion, estimate.time, *kind, estimate)

    def _take_acting(
        self, topic: str, keep: Callable[[Any, Robot], bool], message: Any
    ) -> None:
        """Keep what acts on the robot, unless something newer has come."""
        if self.preparation.is_awaited and topic in ('wrench', 'base_motion'):
            return  # who measures early makes no mistake
        axes = self._around.wrenches.axes
        is_kept = keep(message, self.preparation.ready())
        if self._around.wrenches.axes != axes:
            self.preparation.request_wrenches()
        self.diagnostics.dropped(topic, not is_kept)

    def _take_wrench_motion(self, message: WrenchMotion, robot: Robot) -> bool:
        given, stamp = wrench_from_message(message), nanoseconds(message.header.stamp)
        now = self._times_of_arrival()[0]
        return self._around.wrenches.take_given(given, stamp, robot.model, now)

    def _take_wrench(self, message: WrenchStamped, robot: Robot) -> bool:
        values, header = np.array(moment_force(message.wrench)), message.header
        given = header.frame_id, values, nanoseconds(header.stamp)
        now = self._times_of_arrival()[0]
        return self._around.wrenches.take_measured(*given, robot.model, now)

    def _take_base_motion(self, message: BaseMotion, robot: Robot) -> bool:
        motion = motion_of_base(message, robot.model.base_link)
        stamp, _ = self._timely('base_motion', nanoseconds(message.header.stamp))
        return self._around.base.take(stamp, motion)

    def _take_stiffness(self, message: StiffnessMotion, robot: Robot) -> bool:
        joints = () if robot.drives is None else robot.drives.stiffness
        wanted = stiffness_from_message(message, joints)
        stamp = nanoseconds(message.header.stamp) or self._times_of_arrival()[0]
        return self._around.stiffness.take(stamp, wanted)

    def _publish_effort(
        self,
        robot: Robot,
        motion: Array,
        stamp: int,
        source: int,
        continuous: int,
        estimate: Estimate | None = None,
    ) -> None:
        """Compute and publish the efforts of an instant, with those of the motors.

        Parameters
        ----------
        robot : Robot
        motion : ndarray, shape (K, n)
        stamp : int
            [ns]
        source : int
            Constant of JointEffort that says where the motion is from.
        continuous : int
            Highest order of the efforts that is continuous.
        estimate : Estimate, optional
            From which the motion is.
        """
        begin, around, settings = time.perf_counter(), self._around, self.settings
        found = Circumstances(stamp, motion)
        if settings.base_motion or around.wrenches.sources or around.transitions.items:
            try:
                found = around.circumstances(robot, motion, stamp, settings)
            except (StaleError, WrenchError) as error:
                self.hold_back('effort', error)
                return
            motion, effort = found.motion, around.efforts(robot, found)
        else:  # the short way of most robots
            effort = inverse_dynamics(robot.model, motion)
        std, delay = None, 0.0
        if estimate is not None:
            delay, of_motion = estimate.delay, estimate.deviations(len(motion))
            std = deviations(robot.model, found, effort, of_motion)
            if std is not None:
                self._identify(motion, stamp, found.acting.wrenches or None, std)
        elif found.acting.deviations:
            std = deviations(robot.model, found, effort)
        message = self._writer.message(effort, stamp, source, continuous, std, delay)
        self._effort_publisher.publish(message)
        if self._mechanism.joint_names:
            self._publish_state(motion, stamp)
        taken = 1e3 * (time.perf_counter() - begin)
        self.diagnostics.output.published(taken, stamp, self.now())
        if self._limit_check is not None:
            self._limit_check.look(motion, effort)
        if self._motors is not None:
            self._publish_motors(robot, motion, effort, stamp, source)
        is_sent = source == JointEffort.SOURCE_JOINT_TRAJECTORY
        if is_sent and self._commands.get_subscription_count():
            is_whole = robot.sent is robot.model
            sent = effort if is_whole else around.efforts(robot, found, 1)
            self._commands.publish(Float64MultiArray(data=flat(sent[0])))

    def _publish_state(self, motion: Array, stamp: int) -> None:
        """Publish what closed loops make of a motion, unless states are measured."""
        timeout = self.settings.input_timeout
        state = self._mechanism.asked(motion, self.now(), timeout)
        if state is not None:
            self._state_publisher.publish(self._joint_state(state, stamp))

    def _joint_state(self, motion: Array, stamp: int) -> JointState:
        """Message on positions and velocities (K, N) of all joints at a time [ns]."""
        message = JointState(name=self._mechanism.joint_names)
        message.header.stamp = time_message(stamp)
        fill(message, _STATE, motion)
        return message

    def _publish_motors(
        self, robot: Robot, motion: Array, effort: Array, stamp: int, source: int
    ) -> None:
        """Publish what the motors do, or say why not."""
        message, drives = self._motors, robot.drives
        assert message is not None and drives is not None
        health = self.diagnostics.motors
        stiffness = drives.default_stiffness()
        stiffness |= self._around.stiffness.at(stamp, stiffness)
        try:
            motors = motor_motion(
                drives.actuators, motion, effort, stiffness=stiffness, order=None
            )
        except HodynError as error:
            self.hold_back('motor reference', error, health)
            return
        message.header.stamp, message.source = time_message(stamp), source
        fill_motors(message, drives.actuators, motors)
        self._motor_publisher.publish(message)
        violations = find_motor_violations(drives.actuators, drives.limits, motors)
        health.published()
        health.exceeded(
            Counter(f'{item.quantity} of {item.joint_name}' for item in violations)
        )

    # Trajectories

    def _take_trajectory(self, data: bytes, topic: str) -> None:
        request = request_of(data, self.settings.max_trajectory_points, topic)
        if not self.preparation.is_under_way:
            self.preparation.ready()
        now, stream = self.now(), self.stream
        if not stream.timeline and not stream.waiting(self.instant())[0]:
            self.clock.restart(now)
        if request.stamp:
            request = request._replace(stamp=request.stamp - self.clock.delay(now))
        if lost := stream.take(request, self.instant()):
            self.get_logger().error(lost)

    def _take_speed_scaling(self, message: Float64) -> None:
        self.clock.take(message.data, self._times_of_arrival()[0])

    def _measured_state(self, _: int) -> State | None:
        """Measured state near now, by the time of the stream."""
        state = self._measured.state(self.now(), self.settings.input_timeout)
        return state and state._replace(time=self.clock.at(state.time))

    def _on_stream_timer(self) -> None:
        now, at, robot = self.now(), self.instant(), self.robot
        timeline, clock = self.stream.timeline, self.clock
        if self._measured.latest is not None:
            position, measured_at = self._measured.latest
            if lost := self.stream.observe(position, clock.at(measured_at)):
                self.get_logger().error(lost)
        due = self.stream.sample(at)
        last, self._last_tick = self._last_tick, None if due is None else now
        if last is not None and due is not None:
            # A tick may come late by up to half a period without one being missed.
            period = self._stream_timer.timer_period_ns
            missed = (2 * (now - last) + period) // (2 * period) - 1
            if missed > 0:  # or time has run back
                self.diagnostics.output.add(MISSED, missed)
        if not timeline:
            self._stream_timer.cancel()
            self._last_tick = None
        if due is None or robot is None:
            return
        planned, moment = due
        stamp, source = moment + clock.delay(now), JointEffort.SOURCE_JOINT_TRAJECTORY
        continuous = continuous_order(planned.continuous_derivative)
        if last is not None and clock.since > last:
            continuous = -1
            self.diagnostics.output.add(RESCALED)
        try:
            if planned.joint_names != robot.model.joint_names:
                timeline.clear()
                raise TrajectoryError(
                    'The trajectory is for a robot that has been replaced.'
                )
            if self.settings.speed_scaling:
                clock.check(now, self.settings.input_timeout)
            motion = clock.executed(planned.at(moment))
            self._publish_effort(robot, motion, stamp, source, continuous)
        except Exception as error:  # also a fault of ours: no silence while all seems well
            self.hold_back('effort', error)

    def _on_planned(self, plan: Plan) -> None:
        if plan.planned is not None and self._stream_timer.is_canceled():
            self._stream_timer.reset()
        report_plan(self, plan)

    def on_time_jump(self, why: str) -> None:
        """Forget all but the robot."""
        self._around.clear()
        self._measured.reset()
        self._identification.clear()
        self._last_tick, self.clock = None, ScaledClock()
        if self.stream.clear(f'Dropped: {why}.'):
            self.get_logger().error(f'The running trajectory is stopped: {why}.')

    # Health

    def statuses(self) -> Sequence[DiagnosticStatus]:
        """Health of the node."""
        settings, diagnostics = self.settings, self.diagnostics
        self._note_limit_hits()
        scaled = ('speed_scaling',) * settings.speed_scaling
        for topic in ('joint_motion', 'joint_states', *scaled):
            diagnostics.input(topic).timeout = settings.input_timeout
        for topic in ('wrench_motion', 'wrench'):
            diagnostics.input(topic).timeout = settings.wrench.timeout
        if settings.base_motion:
            diagnostics.input('base_motion').timeout = BASE_TIMEOUT
        diagnostics.wrenches = self._around.wrenches.report(self.now())
        values = {} if self.robot is None else self._values(self.robot)
        reports = diagnostics.report(*self.preparation.state, values)
        identified = self._identification.report()
        if identified is not None:
            reports.append(diagnostics.status('identification', *identified))
        return reports

    def _note_limit_hits(self) -> None:
        if self._limit_check is not None:
            self.diagnostics.output.exceeded(self._limit_check.take_hits())

    def _values(self, robot: Robot) -> dict[str, str]:
        model = robot.model
        motion = np.zeros((5, model.n_joints))
        algorithms = {'algorithm': chosen_algorithm(model, motion)}
        wrenches = self._around.wrenches.latest()
        if self.settings.base_motion:
            algorithms['algorithm'] = 'moving base'
        elif wrenches:
            algorithms['algorithm with wrenches'] = chosen_algorithm(
                model, motion, wrenches
            )
        if self._remark:
            algorithms['no compiled code because'] = self._remark
        carried = {f'payload of {item.link}': str(item) for item in robot.payloads}
        laws = {f'friction of {joint}': str(law) for joint, law in model.friction.items()}
        limits = dict(zip(['limits'], self.settings.headroom()))
        if self.settings.speed_scaling:
            limits['speed of trajectories [%]'] = f'{100.0 * self.clock.speed:g}'
        return {**algorithms, **carried, **laws, **limits}


if __name__ == '__main__':
    sys.exit(main(HodynNode))
