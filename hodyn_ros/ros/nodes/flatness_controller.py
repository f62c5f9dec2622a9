"""A node that lets a robot with elastic joints follow trajectories: one command a measurement."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue
from geometry_msgs.msg import WrenchStamped
from hodyn_msgs.msg import ElasticState, JointMotion, ObservedState
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from hodyn_ros.errors import MotionError
from hodyn_ros.ros.base import qos
from hodyn_ros.ros.base.conversions import (
    MOTION_FIELDS,
    flat,
    measured_of,
    message_of_joints,
    motion_from_message,
    time_message,
    write_wrench,
)
from hodyn_ros.ros.base.life import main
from hodyn_ros.ros.base.node import StreamNode
from hodyn_ros.ros.base.subscription import Topic
from hodyn_ros.ros.nodes.flatness_settings import ControlSettings
from hodyn_ros.ros.planner.client import PlanningClient
from hodyn_ros.streams.control_loop import ControlLoop, ControlStep
from hodyn_ros.streams.loop_inputs import ELASTIC_STATE
from hodyn_ros.streams.loop_laws import Laws, controlled_robot, make_laws
from hodyn_ros.streams.motion_stream import TRAJECTORY, Instant, MotionStream
from hodyn_ros.streams.preparation import RobotPreparation
from hodyn_ros.streams.timeline import nanoseconds

REFERENCE = '~/reference'

# Fields of hodyn_msgs/ObservedState, in the order of control.ObservedState.
OBSERVED = (
    *('position', 'velocity', 'acceleration', 'jerk', 'motor_position', 'motor_velocity'),
    *('spring_torque', 'spring_torque_dot', 'external_torque', 'external_torque_dot'),
    'motor_friction',
)


class FlatnessControllerNode(StreamNode[ControlSettings]):
    """Node that computes motor torques from measurements and references.

    Parameters
    ----------
    **node_options
        Of `rclpy.node.Node`.

    Attributes
    ----------
    control : ControlLoop
    stream : MotionStream
        Of the control loop.
    """

    def __init__(self, **node_options: Any) -> None:
        super().__init__('flatness_controller', ControlSettings, **node_options)
        planning = PlanningClient(self)
        self.control: ControlLoop = ControlLoop(
            self, planning, controlled_robot, make_laws, planning.set_up
        )
        self.stream: MotionStream = self.control.stream
        self.preparation: RobotPreparation[Any] = self.control.preparation
        self._message = JointState()
        self._named: Laws | None = None  # for which the message has its names
        self._publisher = self.advertise(JointState, '~/motor_command')
        self._observed = self.advertise(ObservedState, '~/observed_state')
        self._wrench = self.advertise(WrenchStamped, '~/external_wrench')
        self.open()

    def topics(self) -> Iterator[Topic]:
        """Yield the inputs."""
        then = self._control_newest
        yield Topic(ELASTIC_STATE, ElasticState, self._take, qos.SENSOR_INPUT, then=then)
        # References may come ahead of their time: none takes the place of another.
        yield Topic(REFERENCE, JointMotion, self._take_reference, qos.as_series(qos.NEWEST))
        take, whole = self.control.take_trajectory, JointTrajectory
        yield Topic(TRAJECTORY, whole, take, qos.INPUT, is_sample=False, unpack=bytes)

    def describe(self, xml: str) -> None:
        """Have a robot made ready; whether it can be used is reported later."""
        self.preparation.request(xml)

    def check_settings(self, settings: ControlSettings) -> None:
        """Refuse settings for which there is no controller."""
        self.control.check_settings(settings)

    def on_settings(self, before: ControlSettings) -> None:
        """Control with other settings from now on."""
        self.control.on_settings(before)

    def on_time_jump(self, why: str) -> None:
        """Begin anew."""
        self.control.begin_anew(why)

    def instant(self) -> Instant:
        """Time of the stream, which may be that of the measurements."""
        return self.control.instant()

    # Inputs and outputs

    def _take_reference(self, message: JointMotion) -> None:
        laws = self.control.check_reference()
        given, orders = (
            motion_from_message(laws.robot.model, message),
            laws.controller.orders,
        )
        if len(given) < orders:
            raise MotionError(
                f'JointMotion: {MOTION_FIELDS[len(given)]} is empty, but the control law needs '
                f'everything up to {MOTION_FIELDS[orders - 1]}.'
            )
        motion = np.zeros((5, given.shape[1]))
        motion[: len(given)] = given
        self.control.take_reference(motion, nanoseconds(message.header.stamp))

    def _take(self, message: ElasticState) -> None:
        control = self.control
        if control.laws is None and self.preparation.is_awaited:
            return
        laws = control.ready()
        names = laws.robot.model.joint_names, laws.motor_names
        given = measured_of(ELASTIC_STATE, message, *names)
        if why := control.take(nanoseconds(message.header.stamp), given):
            self.hold_back('command', why)

    def _control_newest(self) -> None:
        """Answer the newest measurement that has been taken."""
        begin = time.perf_counter()
        try:
            answer = self.control.answer_newest()
        # Also a fault of ours: no silence while all seems well.
        except Exception as failure:
            self.hold_back('command', failure)
            return
        if answer is None:
            return
        self._publish(answer)
        hits = self.control.note_sent(answer)
        taken = 1e3 * (time.perf_counter() - begin)
        self.diagnostics.output.published(taken, answer.stamp, self.now())
        self.diagnostics.output.exceeded(Counter(hits))
        try:
            self._publish_observed(answer.stamp)
        except Exception as failure:
            self.hold_back('observed state', failure)

    def _publish(self, answer: ControlStep) -> None:
        message, laws = self._message, self.control.ready()
        # A message again and again: making one takes longer.
        if self._named is not laws:
            self._named, message.name = laws, laws.motor_names
            message.header.frame_id = laws.robot.model.base_link
        message.header.stamp = time_message(answer.stamp)
        message.effort = flat(answer.command.torque)
        self._publisher.publish(message)

    def _publish_observed(self, stamp: int) -> None:
        link = self.settings.tool_link
        wants_state = self._observed.get_subscription_count() > 0
        wants_wrench = bool(link) and self._wrench.get_subscription_count() > 0
        state = self.control.observed(stamp) if wants_state or wants_wrench else None
        if state is None:
            return
        if wants_state:
            laws = self.control.ready()
            message = message_of_joints(ObservedState, laws.robot.model, stamp)
            message.motor_names = laws.motor_names
            for name, values in zip(OBSERVED, state):
                setattr(message, name, flat(values))
            self._observed.publish(message)
        if wants_wrench:
            made = WrenchStamped()
            made.header.frame_id, made.header.stamp = link, time_message(stamp)
            write_wrench(made.wrench, self.control.external_wrench(state, link))
            self._wrench.publish(made)

    def statuses(self) -> list[DiagnosticStatus]:
        """Health as that of the hodyn node, with commands for an output."""
        self.diagnostics.input(ELASTIC_STATE).timeout = self.settings.measurement_timeout
        self.diagnostics.input(REFERENCE).timeout = self.settings.reference_timeout
        statuses = self.diagnostics.report(*self.preparation.state, {})
        output = next(item for item in statuses if item.name.endswith(': joint_effort'))
        output.name = output.name.replace(': joint_effort', ': motor_command')
        values = self.control.report().items()
        output.values = [
            *output.values,
            *(KeyValue(key=key, value=text) for key, text in values),
        ]
        if self.control.why:  # it lasts
            output.level = DiagnosticStatus.ERROR
            output.message = f'the robot has been stopped: {self.control.why}'
        return statuses


if __name__ == '__main__':
    sys.exit(main(FlatnessControllerNode))
