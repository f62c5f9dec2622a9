"""A node that is a robot with elastic joints: MuJoCo behind the topics that a robot would have.

It publishes what the encoders of the links and of the motors say, and takes motor torques. In lock
step a sample follows the command that answers the one before, so that a run over topics is the
same as one inside a single process, on whatever machine. In real time the samples follow the
clock.
"""

from __future__ import annotations

import array
import sys
import time
from collections import Counter

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from numpy.typing import NDArray
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rosgraph_msgs.msg import Clock as ClockMessage
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from hodyn_ros.actuators.config import actuators_from_config
from hodyn_ros.errors import HodynError, ModelError, MotionError, SimulationError, StaleError
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.model.urdf import parse_urdf
from hodyn_ros.names import joint_order, listed
from hodyn_ros.ros import qos
from hodyn_ros.ros.conversions import NANOSECONDS, nanoseconds, time_message
from hodyn_ros.ros.diagnostics import publisher_names, refusal_kind
from hodyn_ros.ros.drives import declare_actuators
from hodyn_ros.ros.inputs import Inputs
from hodyn_ros.ros.parameters import declare_robot_description
from hodyn_ros.ros.process import run
from hodyn_ros.ros.simulation_settings import (
    LOCK_STEP,
    declare_settings,
    initial_position,
    initial_stiffness,
    unknown_parameters,
)
from hodyn_ros.simulation.plant import ElasticPlant
from hodyn_ros.simulation.sampling import SampledPlant

Array = NDArray[np.float64]

LARGEST_DESCRIPTION = 64 * 2**20  # bytes
LOG_PERIOD = 1.0  # s
MOST_MADE_UP = 100  # samples at once
SLOW = 0.5  # of real time


class SimulatedRobot(Node):
    """Publishes joint_states and motor_states and moves by what arrives on motor_command."""

    def __init__(self, **node_options: object) -> None:
        super().__init__('simulated_robot', **node_options)
        self._settings = settings = declare_settings(self)
        self._actuators = declare_actuators(self)
        self._robot: SampledPlant | None = None
        self._description = ''
        self._failure = ''
        self._counts: Counter[str] = Counter()
        self._last_refusal = ''
        self._torque: Array | None = None
        self._reported: tuple[int, int] | None = None  # time and samples of the latest report
        self._is_slow = False  # whether that has been said
        self._is_new = False  # whether the torque has come since the latest sample
        self._last_command = 0
        self._period = round(settings.sample_period * NANOSECONDS)
        self._steady = Clock(clock_type=ClockType.STEADY_TIME)

        self._joint_publisher = qos.create_publisher(self, JointState, 'joint_states', qos.OUTPUT)
        self._motor_publisher = qos.create_publisher(
            self, JointState, 'motor_states', qos.OUTPUT
        )
        self._diagnostics_publisher = qos.create_publisher(
            self, DiagnosticArray, '/diagnostics', qos.OUTPUT
        )
        self._clock_publisher = (
            qos.create_publisher(self, ClockMessage, '/clock', qos.OUTPUT)
            if settings.mode == LOCK_STEP and settings.publish_clock
            else None
        )
        inputs = Inputs(self, lambda: LARGEST_DESCRIPTION, self._on_accepted, self._refuse)
        inputs.subscribe('motor_command', JointState, self._take_command, qos.INPUT)
        inputs.subscribe(
            'robot_description',
            String,
            lambda message: self._describe(message.data),
            qos.ROBOT_DESCRIPTION,
            is_sample=False,
        )
        self.create_timer(settings.diagnostics_period, self._report, clock=self._steady)
        period = (
            settings.command_timeout if self._is_lock_step else self._period / NANOSECONDS
        )
        self._timer = self.create_timer(period, self._on_timer, clock=self._steady)
        description = declare_robot_description(self)
        unknown = unknown_parameters(self)
        if unknown:
            self.get_logger().warning(f'Unknown parameters are ignored: {", ".join(unknown)}.')
        if description:
            self._describe(description)
        else:
            self.get_logger().info('Waiting for a robot description.')

    @property
    def _is_lock_step(self) -> bool:
        return self._settings.mode == LOCK_STEP

    # Robot

    def _describe(self, xml: str) -> None:
        """Make the robot; it stays the same as long as the node runs.

        Raises
        ------
        HodynError
            If it cannot be simulated.
        """
        if self._robot is not None:
            if xml != self._description:
                raise ModelError(
                    'Another robot description has come; the simulated robot keeps the first one. '
                    'Start the node again for another robot.'
                )
            return
        settings = self._settings
        parse_urdf(xml)  # refuses what is no XML text, which would be taken for the path of a file
        model = RobotModel.from_urdf(
            xml,
            settings.base_link,
            settings.tip_link,
            settings.gravity,
            joint_friction=settings.joint_friction,
        )
        plant = ElasticPlant(
            model,
            actuators_from_config(model, self._actuators),
            settings.time_step,
            settings.integrator,
        )
        robot = SampledPlant(
            plant, settings.sample_period, settings.sensors, settings.command_delay
        )
        position = initial_position(self, model)
        stiffness = initial_stiffness(self, plant.actuators)
        held = plant.holding_torque(position, stiffness)
        robot.reset(position, torque=held, stiffness=stiffness)
        self._robot, self._description = robot, xml
        self._start = (
            round(settings.start_time * NANOSECONDS)
            if self._is_lock_step
            else self._now()
        )
        self.get_logger().info(
            f'Simulating {model.name} with the motors {", ".join(plant.motor_names)}; waiting for '
            'the first command.'
        )
        self._publish()

    # Samples

    def _now(self) -> int:
        return self.get_clock().now().nanoseconds

    @property
    def _stamp(self) -> int:
        """Of the latest sample [ns]."""
        return self._start + self._robot.count * self._period

    def _publish(self) -> None:
        robot = self._robot
        stamp = time_message(self._stamp)
        if self._clock_publisher is not None:
            self._clock_publisher.publish(ClockMessage(clock=stamp))
        measured = robot.measurement
        for publisher, names, position, velocity in (
            (self._motor_publisher, robot.plant.motor_names, measured.theta, measured.thetad),
            (self._joint_publisher, robot.plant.joint_names, measured.q, measured.qd),
        ):
            message = JointState(
                name=names,
                position=array.array('d', position.tobytes()),
                velocity=array.array('d', velocity.tobytes()),
            )
            message.header.stamp = stamp
            publisher.publish(message)

    def _advance(self) -> None:
        """Let one period pass with the latest torque, unless the simulation has ended."""
        if self._failure:
            return
        try:
            self._robot.advance(self._torque)
        except HodynError as error:
            self._failure = str(error)
            self.get_logger().error(f'The simulation has ended: {error}')
            return
        self._is_new = False
        self._publish()
        if self._is_lock_step:
            self._timer.reset()

    def _on_timer(self) -> None:
        if self._robot is None or self._failure:
            return
        if not self._is_lock_step:
            self._follow_clock()
        elif self._torque is None:
            self._publish()  # its brakes hold the robot, and whoever comes sees it
        else:
            self._counts['held'] += 1
            self.get_logger().warning(
                f'No command for the sample at {self._stamp / NANOSECONDS:.6f} s within '
                f'{self._settings.command_timeout} s; the last one is held.',
                throttle_duration_sec=LOG_PERIOD,
            )
            self._advance()

    def _follow_clock(self) -> None:
        """Simulate up to now, so that every stamp is the time at which it is published.

        What a busy machine cannot make up for is left out: the robot stands still meanwhile.
        """
        due = round((self._now() - self._stamp) / self._period)
        if self._torque is None:
            self._start += due * self._period  # its brakes hold the robot
            self._publish()
            return
        left_out = max(due - MOST_MADE_UP, 0) or min(due, 0)  # time may have gone back
        self._start += left_out * self._period
        self._counts['missed'] += max(due - 1, 0)
        self._counts['left out'] += max(left_out, 0)
        for _ in range(due - left_out):
            if not self._is_new:
                self._counts['held'] += 1
            self._advance()

    # Commands

    def _take_command(self, message: JointState) -> None:
        """Take motor torques.

        Raises
        ------
        HodynError
            If they cannot be used.
        """
        robot = self._robot
        if robot is None or self._failure:
            raise SimulationError(
                self._failure or 'There is no robot yet; it waits for its description.'
            )
        names = robot.plant.motor_names
        order = joint_order(tuple(message.name), names)
        if len(message.effort) != len(names):
            raise MotionError(
                f'effort has {len(message.effort)} values, expected {len(names)}, '
                'one for each of name.'
            )
        torque = np.array(message.effort)[order]
        if not np.isfinite(torque).all():
            worst = int(np.flatnonzero(~np.isfinite(torque))[0])
            raise MotionError(
                f'the effort of {names[worst]!r} is {torque[worst]}; all must be '
                'finite.'
            )
        robot.plant.checked_torque(torque)
        if self._is_lock_step:
            stamp = nanoseconds(message.header.stamp)
            if stamp != self._stamp:
                raise StaleError(
                    f'it answers the sample at {stamp / NANOSECONDS:.9f} s, '
                    f'expected an answer to that at {self._stamp / NANOSECONDS:.9f} s: in lock '
                    'step a command has the stamp of the states that it answers.'
                )
        self._torque, self._is_new = torque, True
        self._last_command = time.monotonic_ns()
        if self._is_lock_step:
            self._advance()

    def _on_accepted(self, topic: str) -> None:
        self._counts[topic] += 1

    def _refuse(self, topic: str, error: Exception) -> None:
        self._counts[f'refused: {refusal_kind(error)}'] += 1
        self._last_refusal = f'{topic}: {error}'
        self.get_logger().warning(
            f'Refused on {topic}: {error}', throttle_duration_sec=LOG_PERIOD
        )

    # Health

    def _report(self) -> None:
        status = DiagnosticStatus(
            name=f'{self.get_fully_qualified_name().lstrip("/")}: simulation',
            hardware_id=self.get_fully_qualified_name(),
        )
        status.level, status.message = self._level()
        values = {'mode': self._settings.mode, 'commands': self._counts['motor_command']}
        if self._robot is not None:
            values['samples'] = self._robot.count
            values['simulated time [s]'] = self._stamp / NANOSECONDS
            values['real-time factor'] = self._real_time_factor()
        values['samples without a command'] = self._counts['held']
        values['missed samples'] = self._counts['missed']
        values['samples left out'] = self._counts['left out']
        for kind, count in sorted(self._counts.items()):
            if kind.startswith('refused'):
                values[kind] = count
        values['last refusal'] = self._last_refusal
        status.values = [KeyValue(key=key, value=str(value)) for key, value in values.items()]
        message = DiagnosticArray(status=[status])
        message.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics_publisher.publish(message)

    def _real_time_factor(self) -> str:
        """Return simulated time per real time since the report before."""
        now, count = time.monotonic_ns(), self._robot.count
        before, self._reported = self._reported, (now, count)
        if before is None or not before[1]:
            return ''  # the brakes held the robot
        factor = (count - before[1]) * self._period / (now - before[0])
        if self._is_lock_step and factor < SLOW and not self._is_slow:
            self._is_slow = True
            self.get_logger().warning(
                f'The robot moves at {factor:.2g} of real time: in lock step every sample waits '
                'for its command. See real-time factor in the diagnostics.'
            )
        return f'{factor:.3g}'

    def _other_clocks(self) -> list[str]:
        """Names of other nodes that publish the time."""
        if self._clock_publisher is None:
            return []
        names = publisher_names(self, self._clock_publisher.topic_name)
        own = self.get_fully_qualified_name()
        return sorted(set(names) - {own}) + [own] * max(names.count(own) - 1, 0)

    def _level(self) -> tuple[bytes, str]:
        if self._failure:
            return DiagnosticStatus.ERROR, f'The simulation has ended: {self._failure}'
        others = self._other_clocks()
        if others:
            return DiagnosticStatus.ERROR, (
                f'{listed(others)} publish(es) {self._clock_publisher.topic_name} too: time goes '
                'back and forth for all who follow it. Set publish_clock to false, or remap '
                '/clock for the nodes of each robot.'
            )
        if self._robot is None:
            return DiagnosticStatus.WARN, 'Waiting for a robot description.'
        if self._torque is None:
            return DiagnosticStatus.OK, 'The brakes hold the robot until the first command.'
        silence = (time.monotonic_ns() - self._last_command) / NANOSECONDS
        if silence > self._settings.command_timeout:
            return DiagnosticStatus.STALE, f'No command for {silence:.1f} s; the last one is held.'
        return DiagnosticStatus.OK, 'The robot moves as commanded.'


if __name__ == '__main__':
    sys.exit(run(SimulatedRobot))
