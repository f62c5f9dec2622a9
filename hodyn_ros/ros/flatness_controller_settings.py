"""What the flatness controller can be told: its parameters, and controllers made from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.node import Node
from rclpy.parameter import Parameter

from hodyn_ros.actuators import Actuators
from hodyn_ros.actuators.config import KEYS
from hodyn_ros.control import (
    Controller,
    FeedForwardController,
    FlatnessController,
    PDGravity,
    RigidComputedTorque,
    motor_gains,
)
from hodyn_ros.errors import ControlError
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.ros import settings as shared
from hodyn_ros.ros.settings import Entry

CONTROLLERS = (
    'flatness',
    'feed_forward_2',
    'feed_forward_1',
    'feed_forward_0',
    'rigid_computed_torque',
    'pd_gravity',
)

POLICIES = ('stop', 'hold')

HOLD = 'hold'

ACTUATORS, BANDWIDTHS = 'actuators', 'bandwidths'
"""Groups of parameters of joints: ``actuators.<joint>.<key>`` and ``bandwidths.<joint>``."""

_BANDWIDTH_RANGE = (1e-2, 1e4)

_SHARED = (
    'base_link',
    'tip_link',
    'gravity',
    'diagnostics_period',
    'max_trajectory_points',
    'max_message_size',
    'allow_partial_joints',
)
"""Parameters that the hodyn node has as well; here they are all read-only."""

ENTRIES = (
    *(entry._replace(read_only=True) for entry in shared.ENTRIES if entry.name in _SHARED),
    Entry(
        'controller',
        'flatness',
        'Control law: flatness (exact linearisation), feed_forward_0 to 2 (with the joint torque '
        'and that many of its derivatives), rigid_computed_torque, or pd_gravity.',
        choices=CONTROLLERS,
    ),
    Entry(
        'bandwidth',
        25.0,
        'Where the poles of the error dynamics lie in the left half plane [rad/s], for joints '
        'without a bandwidths.<joint>.',
        *_BANDWIDTH_RANGE,
    ),
    Entry(
        'lead',
        0.0005,
        'How much later than the measurement the torque acts, in the mean: half of the period of '
        'the measurements plus all delays [s].',
        0.0,
        0.1,
    ),
    Entry(
        'limit_torques',
        True,
        'Torques are cut at the limits of the motors, max_motor_torque of the actuators, or '
        'else at the efforts of the robot description.',
    ),
    Entry(
        'measurement_timeout',
        0.1,
        'A measurement whose stamp is farther from now than this is not answered [s]; 0: any '
        'stamp is taken, and the stamps are the time.',
        0.0,
        1e6,
    ),
    Entry(
        'reference_timeout',
        0.05,
        'A reference is continued by its derivatives for this time at most [s].',
        1e-6,
        10.0,
    ),
    Entry(
        'without_reference',
        'stop',
        'What happens without a reference, or when the stream of references ends: stop (no '
        'command is sent) or hold (the robot is brought to rest and held).',
        choices=POLICIES,
    ),
    Entry(
        'stop_duration',
        0.5,
        'Time in which the motion is brought to rest by an empty trajectory, or by '
        'without_reference: hold [s].',
        0.01,
        60.0,
    ),
)

_BY_NAME = {entry.name: entry for entry in ENTRIES}

_ACTUATOR_KEYS = {key.name: key for key in KEYS}


class ControlSettings(NamedTuple):
    """All parameters at one instant. Units and meanings are those of `ENTRIES`."""

    base_link: str
    tip_link: str
    gravity: tuple[float, float, float]
    diagnostics_period: float
    max_trajectory_points: int
    max_message_size: int
    allow_partial_joints: bool
    controller: str
    bandwidth: float
    lead: float
    limit_torques: bool
    measurement_timeout: float
    reference_timeout: float
    without_reference: str
    stop_duration: float
    bandwidths: tuple[tuple[str, float], ...] = ()
    """Of single joints that have one of their own."""

    @property
    def planning(self) -> shared.Settings:
        """Settings for planning trajectories."""
        values = {name: getattr(self, name) for name in _SHARED}
        return shared.make_settings({**values, 'stop_duration': self.stop_duration})


def make_settings(values: Mapping[str, Any]) -> ControlSettings:
    """Make settings from values of parameters; those that are left out have their defaults.

    Raises
    ------
    ControlError
        If values are invalid. The message names all of them.
    """
    problems, fields, bandwidths = [], {}, []
    for name, value in sorted(values.items()):
        expected = _expectation(name, value)
        if expected:
            problems.append(f'Parameter {name} is {value!r}, expected {expected}.')
        elif is_bandwidth(name) and value:
            bandwidths.append((name.partition('.')[2], float(value)))
    if problems:
        raise ControlError(' '.join(problems))
    for entry in ENTRIES:
        value = values.get(entry.name, entry.default)
        if isinstance(entry.default, tuple):
            value = tuple(float(number) for number in value)
        elif isinstance(entry.default, float):
            value = float(value)
        fields[entry.name] = value
    return ControlSettings(**fields, bandwidths=tuple(bandwidths))


def make_controller(
    model: RobotModel,
    actuators: Actuators,
    settings: ControlSettings,
    motor_limits: NDArray | None = None,
) -> Controller:
    """Make the controller that the settings ask for.

    Parameters
    ----------
    model : RobotModel
    actuators : Actuators
    settings : ControlSettings
    motor_limits : ndarray, shape (n,), optional
        Largest torques of the motors; where it is infinite, the robot description has the limit.

    Raises
    ------
    HodynError
        If it cannot be made.
    """
    limits = None
    if settings.limit_torques:
        described = model.limits.effort
        described = np.where(described > 0.0, described, np.inf)
        limits = described
        if motor_limits is not None and motor_limits.shape == described.shape:
            limits = np.where(np.isfinite(motor_limits), motor_limits, described)
    own = dict(settings.bandwidths)
    unknown = sorted(set(own) - set(model.joint_names))
    if unknown:
        raise ControlError(
            f'There are bandwidths for {", ".join(unknown)}, expected some of the joints '
            f'{", ".join(model.joint_names)}.'
        )
    bandwidth = np.array([own.get(name, settings.bandwidth) for name in model.joint_names])
    options = {'torque_limits': limits, 'lead': settings.lead}
    kind = settings.controller
    if kind == 'flatness':
        return FlatnessController(model, actuators, bandwidth, **options)
    if kind == 'rigid_computed_torque':
        return RigidComputedTorque(model, actuators, bandwidth, **options)
    # A configuration that the robot can have.
    middle = 0.5 * (model.limits.lower + model.limits.upper)
    middle = np.where(np.isfinite(middle), middle, 0.0)
    gains = motor_gains(model, actuators, bandwidth, middle)
    if kind == 'pd_gravity':
        return PDGravity(model, actuators, gains, **options)
    return FeedForwardController(model, actuators, gains, int(kind[-1]), **options)


class Parameters:
    """Declares the parameters of the node and keeps a snapshot of them.

    Parameters
    ----------
    node : rclpy.node.Node
    change : callable
        Is called with settings that are about to come into force, and raises HodynError if it
        cannot follow; otherwise they are in force when it returns.

    Raises
    ------
    ControlError
        If values that are given at the start cannot be used.
    """

    def __init__(self, node: Node, change: Any) -> None:
        self._node, self._change = node, change
        given = node._parameter_overrides
        self._values = {
            entry.name: given[entry.name].value if entry.name in given else entry.default
            for entry in ENTRIES
        }
        own = {name: p.value for name, p in given.items() if is_bandwidth(name)}
        self.settings = make_settings({**self._values, **own})
        for entry in ENTRIES:
            default = list(entry.default) if isinstance(entry.default, tuple) else entry.default
            node.declare_parameter(entry.name, default, _descriptor(entry))
        self._values.update(own)
        for name in own:
            self._declare_bandwidth(name)
        self.actuators: dict[str, dict[str, Any]] = {}
        for name, parameter in sorted(given.items()):
            group, _, rest = name.partition('.')
            joint, _, key = rest.rpartition('.')
            if group == ACTUATORS:
                self.actuators.setdefault(joint, {})[key] = parameter.value
                node.declare_parameter(name, parameter.value, _actuator_descriptor(joint, key))
        node.add_on_set_parameters_callback(self._on_set)

    def declare_joints(self, model: RobotModel) -> None:
        """Declare the bandwidths of all joints of a robot."""
        for joint in model.joint_names:
            name = f'{BANDWIDTHS}.{joint}'
            if not self._node.has_parameter(name):
                self._declare_bandwidth(name)

    def unknown(self) -> list[str]:
        """Names that were given at the start but are no parameters."""
        return sorted(
            name
            for name in self._node._parameter_overrides
            if not self._node.has_parameter(name) and name not in _BY_NAME
        )

    def _declare_bandwidth(self, name: str) -> None:
        self._node.declare_parameter(
            name,
            0.0,
            ParameterDescriptor(
                description=f'Bandwidth of joint {name.partition(".")[2]} [rad/s]; 0: that of '
                'bandwidth.',
                floating_point_range=[
                    FloatingPointRange(from_value=0.0, to_value=_BANDWIDTH_RANGE[1])
                ],
                dynamic_typing=True,
            ),
        )

    def _on_set(self, parameters: list[Parameter]) -> SetParametersResult:
        changes = {
            parameter.name: parameter.value
            for parameter in parameters
            if parameter.name in _BY_NAME or is_bandwidth(parameter.name)
        }
        if changes:
            values = {**self._values, **changes}
            try:
                settings = make_settings(values)
                if settings != self.settings:
                    self._change(settings)
            except ValueError as error:  # and so every HodynError
                return SetParametersResult(successful=False, reason=str(error))
            self._values, self.settings = values, settings
        return SetParametersResult(successful=True)


def is_bandwidth(name: str) -> bool:
    """Whether a parameter is the bandwidth of a joint: ``bandwidths.<joint>``."""
    group, dot, joint = name.partition('.')
    return group == BANDWIDTHS and bool(dot and joint)


def _expectation(name: str, value: Any) -> str:
    """Say what is expected instead of a value; empty if it fits."""
    low, high = _BANDWIDTH_RANGE
    if is_bandwidth(name):
        fits = _is_number(value) and (value == 0.0 or low <= value <= high)
        return '' if fits else f'0 or a number from {low:.12g} to {high:.12g}'
    entry = _BY_NAME[name]
    default = entry.default
    if isinstance(default, bool):
        return '' if isinstance(value, bool) else 'true or false'
    if isinstance(default, str):
        fits = value in entry.choices if entry.choices else isinstance(value, str)
        return '' if fits else entry.constraints or 'text'
    if isinstance(default, tuple):
        is_list = hasattr(value, '__len__') and not isinstance(value, (str, bytes))
        fits = is_list and len(value) == 3 and all(_is_number(number) for number in value)
        return '' if fits and np.isfinite(list(value)).all() else entry.constraints
    whole = isinstance(default, int)
    fits = _is_number(value) and entry.low <= value <= entry.high
    if not fits or (whole and not isinstance(value, int)):
        return f'a {"whole " * whole}number from {entry.low:.12g} to {entry.high:.12g}'
    return ''


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _actuator_descriptor(joint: str, key: str) -> ParameterDescriptor:
    known = _ACTUATOR_KEYS.get(key)
    what = f'{key}, which is unknown.' if known is None else known.description
    unit = f' [{known.unit}]' if known is not None and known.unit else ''
    return ParameterDescriptor(
        description=f'Actuator of joint {joint}{unit}: {what}',
        read_only=True,
        dynamic_typing=True,
    )


def _descriptor(entry: Entry) -> ParameterDescriptor:
    descriptor = ParameterDescriptor(
        description=entry.description,
        additional_constraints=entry.constraints,
        read_only=entry.read_only,
        dynamic_typing=True,  # whole numbers need no decimal point
    )
    if entry.low is None:
        return descriptor
    if isinstance(entry.default, float):
        descriptor.floating_point_range = [
            FloatingPointRange(from_value=entry.low, to_value=entry.high)
        ]
    else:
        descriptor.integer_range = [IntegerRange(from_value=entry.low, to_value=entry.high)]
    return descriptor
