"""Parameters of the simulated robot: all are given at the start and stay."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

from rcl_interfaces.msg import ParameterDescriptor
from rclpy.node import Node

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.errors import SimulationError
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed
from hodyn_ros.ros.drives import START
from hodyn_ros.ros.parameters import declare_entry
from hodyn_ros.ros.settings import Entry, read_entries
from hodyn_ros.simulation.mjcf import INTEGRATORS
from hodyn_ros.simulation.sampling import Sensors

LOCK_STEP, REAL_TIME = 'lock_step', 'real_time'

INITIAL_POSITION = 'initial_position'
INITIAL_STIFFNESS = 'initial_stiffness'

_NOISE = {'low': 0.0, 'high': 1e6}

ENTRIES = (
    Entry('base_link', '', 'First link of the chain; empty: the root link.'),
    Entry('tip_link', '', 'Last link of the chain; empty: the whole tree.'),
    Entry('gravity', (0.0, 0.0, -9.81), 'Gravitational acceleration in base link axes [m/s^2].'),
    Entry('joint_friction', False, 'The links have the friction of the robot description.'),
    Entry(
        'mode',
        LOCK_STEP,
        'lock_step: the next sample follows the command that answers the latest one, however long '
        'that takes; real_time: samples follow the clock.',
        choices=(LOCK_STEP, REAL_TIME),
    ),
    Entry('sample_period', 1e-3, 'Time between two samples [s].', 1e-5, 1.0),
    Entry('time_step', 1e-4, 'Time step of the integration [s].', 1e-7, 0.1),
    Entry('integrator', 'RK4', 'Integrator of MuJoCo.', choices=INTEGRATORS),
    Entry(
        'start_time', 1.0, 'Simulated time of the first sample in lock step [s].', 0.0, 1e9
    ),
    Entry(
        'publish_clock',
        True,
        'In lock step the simulated time is published on /clock. A graph has one such time: for '
        'several robots remap /clock to another topic for the nodes of each, or let the '
        'controllers take the stamps as the time.',
    ),
    Entry(
        'command_timeout',
        1.0,
        'Without a command for this time [s] the last one is held: in lock step for one sample '
        'more, in real time it is only counted. The first command is waited for.',
        1e-3,
        3600.0,
    ),
    Entry('command_delay', 0, 'Samples after which a command takes effect.', 0, 1000),
    Entry('sensors.position_noise', 0.0, 'Standard deviation on q [rad, m].', **_NOISE),
    Entry('sensors.velocity_noise', 0.0, 'Standard deviation on dq/dt [rad/s, m/s].', **_NOISE),
    Entry('sensors.motor_position_noise', 0.0, 'Standard deviation on theta.', **_NOISE),
    Entry('sensors.motor_velocity_noise', 0.0, 'Standard deviation on dtheta/dt.', **_NOISE),
    Entry('sensors.resolution', 0.0, 'Step of the encoders of q; 0: none.', **_NOISE),
    Entry('sensors.motor_resolution', 0.0, 'Step of the encoders of theta; 0: none.', **_NOISE),
    Entry('sensors.delay', 0, 'Samples by which measurements are older than stamped.', 0, 1000),
    Entry('sensors.seed', 0, 'Seed of the noise.', 0, 2**31 - 1),
    Entry('sensors.velocity_filter', 0.0, 'Low pass of velocities by differences [s].', **_NOISE),
    Entry('diagnostics_period', 1.0, 'Time between two reports on /diagnostics [s].', 0.01, 3600),
)


def declare_settings(node: Node) -> SimpleNamespace:
    """Declare all parameters but those of joints and return their values, by their names.

    Raises
    ------
    SimulationError
        If values cannot be used. The message names all of them.
    """
    given = {name: parameter.value for name, parameter in node._parameter_overrides.items()}
    values, problems = read_entries(ENTRIES, given)
    if problems:
        raise SimulationError(' '.join(problems))
    for entry in ENTRIES:
        declare_entry(node, entry._replace(read_only=True))
    top = {name: value for name, value in values.items() if not name.startswith('sensors.')}
    top['base_link'] = top['base_link'] or None
    top['tip_link'] = top['tip_link'] or None
    sensors = {
        name.partition('.')[2]: value
        for name, value in values.items()
        if name.startswith('sensors.')
    }
    return SimpleNamespace(**top, sensors=Sensors(**sensors))


def unknown_parameters(node: Node) -> list[str]:
    """Names that were given at the start but belong to nothing, mostly typos."""
    groups = (INITIAL_POSITION, INITIAL_STIFFNESS)
    return [
        name
        for name in sorted(node._parameter_overrides)
        if name.partition('.')[0] not in groups and not node.has_parameter(name)
    ]


def initial_position(node: Node, model: RobotModel) -> list[float]:
    """Joint positions at the start from ``initial_position.<joint>``; declares them as well.

    By default a joint is at zero, or at the limit that is closest to zero.

    Raises
    ------
    SimulationError
        If a value is not a number or the joint does not exist.
    """
    given = _of_joints(node, model, INITIAL_POSITION, 'Position at the start [rad, m]')
    return [
        given.get(joint, float(min(max(0.0, lower), upper)))
        for joint, lower, upper in zip(model.joint_names, model.limits.lower, model.limits.upper)
    ]


def initial_stiffness(node: Node, actuators: Actuators) -> dict[str, float]:
    """Stiffness at the start of joints that can choose it, from ``initial_stiffness.<joint>``.

    Raises
    ------
    SimulationError
        If a value is not a number, or the joint does not exist or cannot choose its stiffness.
    """
    model, meaning = actuators.model, 'Stiffness at the start [N m/rad, N/m]'
    values = _of_joints(node, model, INITIAL_STIFFNESS, meaning)
    for joint in values:
        if not actuators[joint].needs_stiffness:
            raise SimulationError(
                f'Parameter {INITIAL_STIFFNESS}.{joint} is given, but the stiffness of this joint '
                f'is not chosen: {START}{joint}.type is not vsa.'
            )
    return values


def _of_joints(node: Node, model: RobotModel, group: str, meaning: str) -> dict[str, float]:
    """Values given as ``<group>.<joint>``; declares them as well."""
    values: dict[str, float] = {}
    for name, parameter in sorted(node._parameter_overrides.items()):
        start, _, joint = name.partition('.')
        if start != group:
            continue
        if joint not in model.joint_names:
            raise SimulationError(
                f'Parameter {name} is for no joint of the robot; its joints are '
                f'{listed(model.joint_names)}.'
            )
        if not _is_finite(parameter.value):
            raise SimulationError(
                f'Parameter {name} is {parameter.value!r}, expected a finite number.'
            )
        values[joint] = float(parameter.value)
        if not node.has_parameter(name):
            _declare(node, name, parameter.value, f'{meaning} of joint {joint}.')
    return values


def _declare(node: Node, name: str, value: Any, description: str) -> None:
    node.declare_parameter(
        name,
        value,
        ParameterDescriptor(description=description, read_only=True, dynamic_typing=True),
    )


def _is_finite(value: Any) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and math.isfinite(value)
