"""The node: topics and services on one side, models, motions and efforts on the other.

Wiring only. The callbacks of topics and timers run in the one thread of the executor and are
short; what takes long, making a robot ready, whole trajectories and the service, has a thread
each, so that nothing else waits. (The executor of rclpy with several threads loses messages from a
few hundred a second on.)
"""

from __future__ import annotations

import math
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from hodyn_msgs.msg import JointEffort, JointEffortTrajectory, JointMotion, WrenchMotion
from hodyn_msgs.srv import ComputeInverseDynamics
from numpy.typing import NDArray
from rcl_interfaces.msg import SetParametersResult
from rclpy.clock import Clock, ClockType, JumpThreshold, TimeJump
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.parameter import Parameter
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory

from hodyn_ros.analysis.limits import EXTRA_QUANTITIES, find_violations
from hodyn_ros.dynamics.inverse import chosen_algorithm, inverse_dynamics
from hodyn_ros.errors import HodynError, MotionError, TrajectoryError, WrenchError
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.model.urdf import parse_urdf
from hodyn_ros.names import listed
from hodyn_ros.ros import qos
from hodyn_ros.ros.answers import (
    Robot,
    answer,
    effort_trajectory,
    fit_waypoints,
    ready,
    sample_times,
)
from hodyn_ros.ros.conversions import (
    NANOSECONDS,
    joint_effort_message,
    motion_from_message,
    nanoseconds,
    waypoints_from_message,
    wrench_from_message,
)
from hodyn_ros.ros.diagnostics import Diagnostics, publisher_names
from hodyn_ros.ros.parameters import Parameters, declare_robot_description
from hodyn_ros.ros.preparation import Outcome, Preparation
from hodyn_ros.ros.process import run
from hodyn_ros.ros.service_thread import ServiceThread
from hodyn_ros.ros.settings import Settings
from hodyn_ros.ros.stream import LatestWrenches, PlannedMotion, TrajectoryStream

LOG_PERIOD = 1.0  # s
STREAMS = ('joint_motion', 'wrench_motion', 'joint_effort')
INPUTS = ('robot_description', 'joint_trajectory', 'joint_motion', 'wrench_motion')


class HodynNode(Node):
    """Computes joint efforts and their derivatives from the motions that it receives."""

    def __init__(self, **node_options: object) -> None:
        super().__init__('hodyn_node', **node_options)
        # What ends with the node, also if it comes no further than to its parameters.
        self._service: ServiceThread | None = None
        self._preparation: Preparation | None = None
        self._settled = threading.Event()  # whether waiting for a first robot makes no sense
        self._settled.set()
        self._planning = ThreadPoolExecutor(1, thread_name_prefix='planning')
        self._declared = Parameters(self, self._on_settings)
        self._settings = self._declared.settings
        self._robot: Robot | None = None
        self._wanted: str | None = None  # description that is being made ready
        self._description_error = ''
        self._remark = ''
        self._last_logged: dict[str, float] = {}
        self._stream = TrajectoryStream()
        self._wrenches = LatestWrenches(self._settings.wrench_timeout)
        self._diagnostics = Diagnostics(self.get_fully_qualified_name())
        self._outcomes: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        self._outcome_is_there = self.create_guard_condition(self._on_outcome)
        self._preparation = Preparation(self._assembled, self._hand_over)

        self._effort_publisher = qos.create_publisher(
            self, JointEffort, '~/joint_effort', qos.OUTPUT
        )
        self._trajectory_publisher = qos.create_publisher(
            self, JointEffortTrajectory, '~/effort_trajectory', qos.EFFORT_TRAJECTORY
        )
        self._diagnostics_publisher = qos.create_publisher(
            self, DiagnosticArray, '/diagnostics', qos.OUTPUT
        )

        description = declare_robot_description(self)
        if description:
            self._request_robot(description)
        self.add_on_set_parameters_callback(self._on_set_parameters)

        qos.create_subscription(
            self, String, 'robot_description', self._on_robot_description, qos.ROBOT_DESCRIPTION
        )
        for topic, kind, take in (
            ('joint_motion', JointMotion, self._take_joint_motion),
            ('wrench_motion', WrenchMotion, self._take_wrench_motion),
        ):
            qos.create_subscription(
                self, kind, topic, partial(self._take, topic, take), qos.INPUT
            )
        qos.create_subscription(
            self, JointTrajectory, 'joint_trajectory', self._on_joint_trajectory, qos.INPUT
        )
        self._service = ServiceThread(
            self,
            ComputeInverseDynamics,
            '~/compute_inverse_dynamics',
            self._on_compute_inverse_dynamics,
        )
        self._stream_timer = self.create_timer(
            1.0 / self._settings.publish_rate, self._on_stream_timer
        )
        # Health is reported in real time, also while simulated time stands still.
        self.create_timer(
            self._settings.diagnostics_period,
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
        if self._wanted is None:
            self.get_logger().info('Waiting for a robot description.')

    def destroy_node(self) -> None:
        """Finish what the workers have begun, drop what waits for them, and destroy the node."""
        self._settled.set()
        if self._preparation is not None:
            self._preparation.close()
        if self._service is not None:
            self._service.close()
        self._planning.shutdown(cancel_futures=True)
        super().destroy_node()

    def _on_settings(self, before: Settings, after: Settings) -> None:
        """Take up changed settings between two samples."""
        self._settings = after
        if after.publish_rate != before.publish_rate:
            self._stream_timer.timer_period_ns = round(NANOSECONDS / after.publish_rate)
        if after.limits != before.limits and self._robot is not None:
            self._robot = self._robot._replace(limits=after.limits_of(self._robot.model))

    # Model

    def _on_robot_description(self, message: String) -> None:
        self._request_robot(message.data)

    def _on_set_parameters(self, parameters: Sequence[Parameter]) -> SetParametersResult:
        for parameter in parameters:
            xml = parameter.value
            if parameter.name != 'robot_description' or xml == self._latest_description():
                continue
            try:
                model = self._assembled(xml)
                self._declared.limits_of(model)
            except HodynError as error:
                self._refuse_description(str(error))
                return SetParametersResult(successful=False, reason=str(error))
            self._request_robot(xml, model)
        return SetParametersResult(successful=True)

    def _latest_description(self) -> str | None:
        in_use = None if self._robot is None else self._robot.description
        return in_use if self._wanted is None else self._wanted

    def _assembled(self, xml: str) -> RobotModel:
        settings = self._settings
        return RobotModel.from_description(
            parse_urdf(xml), settings.base_link, settings.tip_link, settings.gravity
        )

    def _request_robot(self, xml: str, model: RobotModel | None = None) -> None:
        """Have a robot made ready; until it is, the one in use stays in use."""
        if self._robot is not None and xml == self._robot.description:
            self._wanted = None
            self._description_error = ''
            self._preparation.cancel()
        elif xml != self._wanted:
            self._wanted = xml
            if self._robot is None:
                self._settled.clear()
            self._preparation.request(
                xml, model, self._wrenches.latest(), in_other_process=self._robot is not None
            )

    def _hand_over(self, outcome: Outcome) -> None:
        """Bring an outcome from the thread of the preparation into that of the executor."""
        self._outcomes.put(outcome)
        self._outcome_is_there.trigger()

    def _on_outcome(self) -> None:
        while not self._outcomes.empty():
            outcome = self._outcomes.get()
            if self._wanted is None:
                continue  # the robot in use has been described once more in the meantime
            if outcome.description == self._wanted:
                self._wanted = None
            self._take_robot(outcome)
            if self._robot is not None or self._wanted is None:
                self._settled.set()

    def _take_robot(self, outcome: Outcome) -> None:
        """Use a robot that is ready; a description that cannot be used leaves the one before."""
        if outcome.model is None:
            self._refuse_description(outcome.error)
            return
        try:
            limits = self._declared.limits_of(outcome.model)
        except HodynError as error:
            self._refuse_description(str(error))
            return
        robot = Robot(outcome.model, limits, outcome.description)
        previous, self._robot = self._robot, robot
        self._description_error = ''
        self._diagnostics.received('robot_description')
        if previous is not None and previous.model.joint_names != robot.model.joint_names:
            if self._stream.clear():
                self.get_logger().error(
                    'The running trajectory is stopped: the new robot has other joints.'
                )
        for link in self._wrenches.keep_only(robot.model):
            self.get_logger().warning(
                f'The wrench on {link!r} is dropped: the new robot has no such link.'
            )
        self._preparation.request_wrenches(robot.model, self._wrenches.latest())
        for warning in robot.model.warnings:
            self.get_logger().warning(warning)
        for name in self._declared.unused_limits(robot.model):
            self.get_logger().warning(
                f'Parameter {name} limits nothing: expected limits.<joint>.<quantity> with one of '
                f'the joints {listed(robot.model.joint_names)} and one of the quantities '
                f'{listed(EXTRA_QUANTITIES)}.'
            )
        if outcome.remark and outcome.remark != self._remark:
            self.get_logger().warning(
                f'Efforts are computed without compiled code, which is slower: {outcome.remark}.'
            )
        self._remark = outcome.remark
        self.get_logger().info(
            f'Model {robot.model.name!r} is ready: joints {", ".join(robot.model.joint_names)}.'
        )

    def _refuse_description(self, reason: str) -> None:
        self._description_error = reason
        self._diagnostics.refused('robot_description', reason)
        self.get_logger().error(
            f'Robot description refused: {reason}'
            + (' The model before stays in use.' if self._robot is not None else '')
        )

    def _ready(self) -> Robot:
        return ready(self._robot, self._wanted is not None)

    def _awaited(self) -> Robot:
        """Return the robot in use, after a first one has been made ready; not for callbacks."""
        self._settled.wait()
        return self._ready()

    # Streams

    def _take(self, topic: str, take: Callable[[object], None], message: object) -> None:
        """Let a message be taken; one that cannot be is refused, whatever the reason."""
        try:
            take(message)
        except HodynError as error:
            self._refuse(topic, error)
        except Exception as error:  # a fault of ours must not end the node
            self.get_logger().error(traceback.format_exc(), throttle_duration_sec=1.0)
            self._refuse(topic, error)
        else:
            self._diagnostics.received(topic)

    def _take_joint_motion(self, message: JointMotion) -> None:
        robot = self._ready()
        motion = motion_from_message(robot.model, message)
        stamp = self._checked_stamp(nanoseconds(message.header.stamp))
        try:
            self._publish_effort(robot, motion, stamp, JointEffort.SOURCE_JOINT_MOTION)
        except WrenchError as error:
            self._hold_back(error)

    def _checked_stamp(self, stamp: int) -> int:
        now = self.get_clock().now().nanoseconds
        timeout = self._settings.input_timeout
        if not stamp:
            return now
        if timeout and now - stamp > timeout * NANOSECONDS:
            raise MotionError(
                f'The stamp lies {(now - stamp) / NANOSECONDS:.3f} s in the past, more than '
                f'input_timeout ({timeout} s). For recorded data, set use_sim_time and play the '
                'clock, or set input_timeout to 0.'
            )
        return stamp

    def _take_wrench_motion(self, message: WrenchMotion) -> None:
        link, expressed_in, acting, values = wrench_from_message(message)
        model = self._ready().model
        links = model.links
        if link not in links:
            raise WrenchError(
                f'Wrench on an unknown link: frame_id is {link!r}, the links are {listed(links)}.'
            )
        stamp = nanoseconds(message.header.stamp) or self.get_clock().now().nanoseconds
        self._wrenches.update(link, expressed_in, acting, values, stamp)
        self._preparation.request_wrenches(model, self._wrenches.latest())

    def _on_time_jump(self, jump: TimeJump) -> None:
        """After a jump back (a recording starts again) nothing of before is true any more."""
        self._diagnostics.time_jumped()
        self._wrenches.clear()
        if self._stream.clear():
            self.get_logger().error('The running trajectory is stopped: time jumped back.')

    def _on_stream_timer(self) -> None:
        due = self._stream.sample(self.get_clock().now().nanoseconds)
        if due is None or self._robot is None:
            return
        planned, stamp = due
        robot = self._robot
        try:
            if planned.joint_names != robot.model.joint_names:
                self._stream.clear()
                raise TrajectoryError('The trajectory is for a robot that has been replaced.')
            self._publish_effort(
                robot, planned.at(stamp), stamp, JointEffort.SOURCE_JOINT_TRAJECTORY
            )
        except HodynError as error:
            self._hold_back(error)

    def _publish_effort(
        self, robot: Robot, motion: NDArray, stamp: int, source: int
    ) -> None:
        begin = time.perf_counter()
        wrenches = self._wrenches.at(stamp, len(motion) - 2)
        effort = inverse_dynamics(robot.model, motion, wrenches)
        self._effort_publisher.publish(joint_effort_message(robot.model, effort, stamp, source))
        compute_time = time.perf_counter() - begin
        violations = find_violations(robot.model, robot.limits, motion[None], effort[None])
        self._diagnostics.published(
            compute_time, [f'{item.quantity} of {item.joint_name}' for item in violations]
        )

    # Whole trajectories

    def _on_joint_trajectory(self, message: JointTrajectory) -> None:
        now = self.get_clock().now().nanoseconds
        take = partial(self._take_joint_trajectory, now)
        self._planning.submit(self._take, 'joint_trajectory', take, message)

    def _take_joint_trajectory(self, now: int, message: JointTrajectory) -> None:
        robot = self._awaited()
        spline, remarks = fit_waypoints(robot.model, waypoints_from_message(message))
        start = nanoseconds(message.header.stamp) or now
        planned = PlannedMotion(robot.model.joint_names, spline, start)
        if planned.last <= now:
            raise TrajectoryError(
                f'The trajectory ended {(now - planned.last) / NANOSECONDS:.3f} s ago; set the '
                'stamp to the time at which it starts, or to zero for now.'
            )
        times = sample_times(
            spline, self._settings.trajectory_sample_period, self._settings.max_samples
        )
        # The whole answer first: a motion whose efforts cannot be computed never starts.
        whole = effort_trajectory(
            robot, times, spline(times), (), start, JointEffort.SOURCE_JOINT_TRAJECTORY
        )
        self._stream.start(planned, now)
        self._trajectory_publisher.publish(whole)
        for remark in remarks:
            self.get_logger().warning(remark)
        for violation in whole.limit_violations:
            self.get_logger().warning(
                f'The trajectory exceeds the {violation.quantity} limit of '
                f'{violation.joint_name}: {violation.value:.6g} at '
                f'{violation.time_from_start:.3f} s, limit {violation.limit:.6g}.'
            )

    def _on_compute_inverse_dynamics(
        self,
        request: ComputeInverseDynamics.Request,
        response: ComputeInverseDynamics.Response,
    ) -> ComputeInverseDynamics.Response:
        settings = self._settings
        self._settled.wait()
        try:
            answer(
                self._robot,
                request,
                response,
                settings.trajectory_sample_period,
                settings.max_samples,
                self._preparation.request_wrenches,
            )
        except Exception as error:  # a fault of ours must not leave the client without an answer
            self.get_logger().error(traceback.format_exc())
            response = ComputeInverseDynamics.Response(
                success=False,
                error_code=ComputeInverseDynamics.Response.INTERNAL_ERROR,
                message=f'Internal error: {error!r}',
            )
        if response.success:
            self._diagnostics.received('compute_inverse_dynamics')
        else:
            self._diagnostics.refused('compute_inverse_dynamics', response.message)
            self._log_error(
                'compute_inverse_dynamics', f'compute_inverse_dynamics refused: {response.message}'
            )
        return response

    # Health

    def _refuse(self, topic: str, error: Exception) -> None:
        self._diagnostics.refused(topic, str(error))
        self._log_error(topic, f'{topic} refused: {error}')

    def _hold_back(self, error: HodynError) -> None:
        self._diagnostics.stopped(str(error))
        self._log_error('joint_effort', f'No effort is published: {error}')

    def _log_error(self, subject: str, text: str) -> None:
        """Log an error; of every stream no more than one in LOG_PERIOD."""
        now = time.monotonic()
        if subject in STREAMS and now - self._last_logged.get(subject, -math.inf) < LOG_PERIOD:
            return
        self._last_logged[subject] = now
        self.get_logger().error(text)

    def _on_diagnostics_timer(self) -> None:
        for topic in INPUTS:
            self._diagnostics.publishers(topic, publisher_names(self, topic))
        for topic in ('joint_motion', 'wrench_motion'):
            self._diagnostics.watch(topic, self._settings.input_timeout)
        clock = self.get_clock()
        self._diagnostics.clock(clock.clock_type.name, clock.ros_time_is_active)
        message = self._diagnostics.report(
            self._robot,
            self._description_error,
            self._wanted is not None,
            {} if self._robot is None else self._algorithms(self._robot.model),
        )
        message.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics_publisher.publish(message)

    def _algorithms(self, model: RobotModel) -> dict[str, str]:
        motion = np.zeros((5, model.n_joints))
        algorithms = {'algorithm': chosen_algorithm(model, motion)}
        wrenches = self._wrenches.latest()
        if wrenches:
            algorithms['algorithm with wrenches'] = chosen_algorithm(model, motion, wrenches)
        if self._remark:
            algorithms['no compiled code because'] = self._remark
        return algorithms


def main(args: Sequence[str] | None = None) -> int:
    """Run the node until it is interrupted."""
    return run(HodynNode, args)


if __name__ == '__main__':
    sys.exit(main())
