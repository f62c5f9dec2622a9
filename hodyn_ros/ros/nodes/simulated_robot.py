"""A node that is a robot with elastic joints: MuJoCo behind the topics that a robot would have.

A sample follows the command that answers the one before (lock step), however long that takes.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from hodyn_msgs.msg import ElasticState
from rosgraph_msgs.msg import Clock as ClockMessage
from sensor_msgs.msg import JointState

from hodyn_ros.actuators.config import actuators_from_config
from hodyn_ros.errors import HodynError, ModelError, SimulationError, StaleError
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.model.urdf import parse_urdf
from hodyn_ros.names import joint_order, listed
from hodyn_ros.ros.base import qos
from hodyn_ros.ros.base.conversions import flat, time_message, values_of
from hodyn_ros.ros.base.diagnostics import publisher_names
from hodyn_ros.ros.base.life import main
from hodyn_ros.ros.base.node import RobotNode
from hodyn_ros.ros.base.node_settings import NodeSettings
from hodyn_ros.ros.base.parameters import (
    Entry,
    Triple,
    Values,
    entry,
    family,
    group,
    joint_values,
    per_joint,
    same,
)
from hodyn_ros.ros.base.subscription import Topic
from hodyn_ros.simulation.imperfections import Imperfections
from hodyn_ros.simulation.plant import ElasticPlant
from hodyn_ros.simulation.sampled import SampledPlant, Sensors
from hodyn_ros.streams.loop_inputs import ELASTIC_STATE
from hodyn_ros.streams.robot_in_use import DESCRIPTION, by_joint
from hodyn_ros.streams.timeline import NANOSECONDS, nanoseconds
from hodyn_ros.typing import Array

COMMAND, POSITION, STIFFNESS = 'motor_command', 'initial_position', 'initial_stiffness'
SLOW = 0.5  # of real time

# All parameters are given at the start and stay.
_entry = partial(entry, read_only=True)
_same = partial(same, NodeSettings, read_only=True)


@dataclass(frozen=True)
class SimulationSettings:
    """Parameters of the simulated robot."""

    base_link: str = _same('base_link')
    tip_link: str = _same('tip_link')
    gravity: Triple = _same('gravity')
    joint_friction: bool = _entry(
        False, 'The links have the friction of the robot description.'
    )
    sample_period: float = _entry(1e-3, 'Time between two samples [s].', 1e-5, 1.0)
    time_step: float = _entry(1e-4, 'Time step of the integration [s].', 1e-7, 0.1)
    start_time: float = _entry(1.0, 'Simulated time of the first sample [s].', 0.0, 1e9)
    publish_clock: bool = _entry(
        True,
        'The simulated time is published on /clock. A graph has one such time: '
        'for several robots remap /clock to another topic for the nodes of each, or let the '
        'controllers take the stamps as the time.',
    )
    command_timeout: float = _entry(
        1.0,
        'Without a command for this time [s] the last one is held for one sample more. The first '
        'command is waited for.',
        1e-3,
        3600.0,
    )
    command_delay: int = _entry(0, 'Samples after which a command takes effect.', 0, 1000)
    sensors: Sensors = group(Sensors)
    diagnostics_period: float = _same('diagnostics_period')
    initial_position: Values = per_joint(
        POSITION, 'Position at the start of joint {joint} [rad, m].', -1e6, 1e6
    )
    initial_stiffness: Values = per_joint(
        STIFFNESS, 'Stiffness at the start of joint {joint} [N m/rad, N/m].', 0.0, 1e12
    )
    actuators: Values = _same('actuators')
    imperfections: Values = family(
        'imperfections',
        {
            item.name: Entry(
                '', getattr(Imperfections, item.name), f'{item.metadata["meaning"]}.'
            )
            for item in fields(Imperfections)
        },
        of_all=True,
    )


class SimulatedRobot(RobotNode[SimulationSettings]):
    """Node that publishes elastic_state and joint_states and moves by what comes on motor_command.

    Parameters
    ----------
    **node_options
        Of `rclpy.node.Node`.
    """

    def __init__(self, **node_options: Any) -> None:
        super().__init__('simulated_robot', SimulationSettings, **node_options)
        settings = self.settings
        self._robot: SampledPlant | None = None
        self._simulated = self._failure = ''  # description, why the simulation has ended
        self._counts: Counter[str] = Counter()
        self._torque: Array | None = None
        self._reported = (0.0, 0)  # time and samples of the latest report
        self._last_command = 0.0
        self._start = 0  # time of the first sample [ns]
        self._period = round(settings.sample_period * NANOSECONDS)
        self._joint_publisher = self.advertise(JointState, 'joint_states')
        self._publisher = self.advertise(ElasticState, ELASTIC_STATE)
        self._clock_publisher = None
        if settings.publish_clock:
            self._clock_publisher = self.advertise(ClockMessage, '/clock')
        self._timer = self.every(settings.command_timeout, self._on_timer)
        self.open()

    def topics(self) -> tuple[Topic, ...]:
        """Inputs."""
        return (Topic(COMMAND, JointState, self._take_command, qos.INPUT),)

    # Robot

    def describe(self, xml: str) -> None:
        """Make the robot, which stays the same.

        Parameters
        ----------
        xml : str
            URDF.

        Raises
        ------
        HodynError
            If it cannot be simulated, or another one has come before.
        """
        if self._robot is not None:
            if xml != self._simulated:
                raise ModelError(
                    'Another robot description has come; the simulated robot keeps the first one. '
                    'Start the node again for another robot.'
                )
            return
        settings = self.settings
        # Refuses what is no XML text, which would be taken for the path of a file.
        parse_urdf(xml)
        links = settings.base_link or None, settings.tip_link or None
        model = RobotModel.from_urdf(
            xml, *links, settings.gravity, joint_friction=settings.joint_friction
        )
        actuators = actuators_from_config(model, by_joint(settings.actuators))
        imperfections = Imperfections.from_tables(by_joint(settings.imperfections))
        plant = ElasticPlant(
            model,
            actuators,
            settings.time_step,
            imperfections=imperfections,
            end_stops=True,
        )
        robot = SampledPlant(
            plant, settings.sample_period, settings.sensors, settings.command_delay
        )
        # By default a joint is where the plant begins, or at the limit that is closest to it.
        names, limits = model.joint_names, model.limits
        position = np.clip(plant.q, limits.lower, limits.upper)
        for joint, value in joint_values(
            POSITION, settings.initial_position, names
        ).items():
            position[names.index(joint)] = value
        stiffness = joint_values(STIFFNESS, settings.initial_stiffness, names)
        held = plant.holding_torque(position, stiffness)
        robot.reset(position, torque=held, stiffness=stiffness)
        self._robot, self._simulated = robot, xml
        self._start = round(settings.start_time * NANOSECONDS)
        self.get_logger().info(
            f'Simulating {model.name} with the motors {", ".join(plant.motor_names)}; waiting for '
            'the first command.'
        )
        self._publish(robot)

    # Samples

    def _stamp(self, robot: SampledPlant) -> int:
        """Of the latest sample [ns]."""
        return self._start + robot.count * self._period

    def _publish(self, robot: SampledPlant) -> None:
        stamp = time_message(self._stamp(robot))
        if self._clock_publisher is not None:
            self._clock_publisher.publish(ClockMessage(clock=stamp))
        measured, plant = robot.measurement, robot.plant
        joints = JointState(
            name=plant.joint_names,
            position=flat(measured.q),
            velocity=flat(measured.qd),
            effort=flat(measured.spring_torque),
        )
        state = ElasticState(
            joint_names=joints.name,
            position=joints.position,
            velocity=joints.velocity,
            spring_torque=joints.effort,
            motor_names=plant.motor_names,
            motor_position=flat(measured.theta),
            motor_velocity=flat(measured.thetad),
            motor_torque=flat(plant.mujoco_data.actuator_force),
        )
        for message, publisher in (
            (joints, self._joint_publisher),
            (state, self._publisher),
        ):
            message.header.stamp, message.header.frame_id = stamp, plant.model.base_link
            publisher.publish(message)

    def _advance(self, robot: SampledPlant) -> None:
        """Let one period pass with the latest torque, unless the simulation has ended."""
        if self._failure or self._torque is None:
            return
        try:
            robot.advance(self._torque)
        except HodynError as error:
            self._failure = str(error)
            self.get_logger().error(f'The simulation has ended: {error}')
            return
        self._publish(robot)
        self._timer.reset()

    def _on_timer(self) -> None:
        robot = self._robot
        if robot is None or self._failure:
            return
        if self._torque is None:
            self._publish(robot)  # its brakes hold the robot, and whoever comes sees it
        else:
            self._counts['samples without a command'] += 1
            self.get_logger().warning(
                f'No command for the sample at {self._stamp(robot) / NANOSECONDS:.6f} s within '
                f'{self.settings.command_timeout} s; the last one is held.',
                throttle_duration_sec=1.0,
            )
            self._advance(robot)

    # Commands

    def _take_command(self, message: JointState) -> None:
        """Take motor torques.

        Parameters
        ----------
        message : JointState
            Its efforts are those of all motors, its stamp is that of the states that it answers.

        Raises
        ------
        HodynError
            If they cannot be used.
        """
        robot = self._robot
        if robot is None or self._failure:
            raise SimulationError(self._failure or 'There is no robot yet.')
        names = robot.plant.motor_names
        joint_order(tuple(message.name), names)  # refuses unknown ones too
        effort = values_of(COMMAND, message, ('effort',), names)
        assert effort is not None
        torque = robot.plant.checked_torque(effort[0])
        stamp, expected = nanoseconds(message.header.stamp), self._stamp(robot)
        if stamp != expected:
            raise StaleError(
                f'it answers the sample at {stamp / NANOSECONDS:.9f} s, expected an answer to '
                f'that at {expected / NANOSECONDS:.9f} s: a command has the stamp of the states '
                'that it answers.'
            )
        self._torque = torque
        self._last_command = time.monotonic()
        self._counts['commands'] += 1
        self._advance(robot)

    # Health

    def statuses(self) -> list[DiagnosticStatus]:
        """Health of the simulation."""
        counts, robot = self._counts, self._robot
        inputs = {topic: self.diagnostics.input(topic) for topic in (DESCRIPTION, COMMAND)}
        values: dict[str, object] = {'commands': counts['commands']}
        factor = None
        if robot is not None:
            values['samples'] = robot.count
            values['simulated time [s]'] = self._stamp(robot) / NANOSECONDS
            factor = self._real_time_factor(robot)
            values['real-time factor'] = '' if factor is None else f'{factor:.3g}'
        values['samples without a command'] = counts['samples without a command']
        values['refused'] = sum(item.total['refused'] for item in inputs.values())
        values['last refusal'] = ' '.join(
            f'{topic}: {item.last_error}'
            for topic, item in inputs.items()
            if item.last_error
        )
        status = self.diagnostics.status('simulation', *self._level(factor), values)
        status.hardware_id = self.get_fully_qualified_name()
        return [status]

    def _real_time_factor(self, robot: SampledPlant) -> float | None:
        """Simulated time per real time since the report before; None while brakes hold."""
        (before, samples), now = self._reported, time.monotonic()
        self._reported = now, robot.count
        if not samples or self._torque is None:
            return None
        return (robot.count - samples) * robot.period / (now - before)

    def _level(self, factor: float | None) -> tuple[bytes, str]:
        if self._failure:
            return DiagnosticStatus.ERROR, f'The simulation has ended: {self._failure}'
        if self._clock_publisher is not None:
            topic = self._clock_publisher.topic_name
            own = Counter([self.get_fully_qualified_name()])
            others = Counter(publisher_names(self, topic)) - own
            if others:
                return DiagnosticStatus.ERROR, (
                    f'{listed(sorted(others))} publish(es) {topic} too: time goes back and forth '
                    'for all who follow it. Set publish_clock to false, or remap /clock for the '
                    'nodes of each robot.'
                )
        if self._robot is None:
            return DiagnosticStatus.WARN, 'Waiting for a robot description.'
        if self._torque is None:
            return DiagnosticStatus.OK, 'The brakes hold the robot until the first command.'
        silence = time.monotonic() - self._last_command
        if silence > self.settings.command_timeout:
            text = f'No command for {silence:.1f} s; the last one is held.'
            return DiagnosticStatus.STALE, text
        if factor is not None and factor < SLOW:
            return DiagnosticStatus.WARN, (
                f'The robot moves at {factor:.2g} of real time: every sample waits for its '
                'command.'
            )
        return DiagnosticStatus.OK, 'The robot moves as commanded.'


if __name__ == '__main__':
    sys.exit(main(SimulatedRobot))
