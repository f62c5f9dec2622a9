"""What the flatness controller can be told: its parameters, and controllers made from them."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rcl_interfaces.msg import ParameterDescriptor, SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter

from hodyn_ros.actuators import Actuators
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
from hodyn_ros.ros.drives import declare_actuators
from hodyn_ros.ros.parameters import declare_entry
from hodyn_ros.ros.settings import Entry

Array = NDArray[np.float64]

CONTROLLERS = (
    'feed_forward_2',
    'feed_forward_1',
    'feed_forward_0',
    'flatness',
    'rigid_computed_torque',
    'pd_gravity',
)

POLICIES = ('stop', 'hold')

HOLD = 'hold'

JOINT_GROUPS = {'bandwidths': 'bandwidth', 'max_tracking_errors': 'max_tracking_error'}
"""Groups of parameters ``<group>.<joint>``, and the parameter of joints that have none."""

# The law that stops the robot needs no measurement of the links and no exact model; where a delay
# or another law asks for more than this bandwidth, it stays robust.
_STOPPING_LAW, _STOPPING_BANDWIDTH = 'feed_forward_2', 20.0  # rad/s

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
        'feed_forward_2',
        'Control law: feed_forward_0 to 2 (with the joint torque and that many of its '
        'derivatives), flatness (exact linearisation), rigid_computed_torque, or pd_gravity.',
        choices=CONTROLLERS,
    ),
    Entry(
        'bandwidth',
        20.0,
        'Where the poles of the error dynamics lie in the left half plane [rad/s], for joints '
        'without a bandwidths.<joint>.',
        1e-2,
        1e4,
    ),
    Entry(
        'lead',
        0.0005,
        'How much later than the measurement the torque acts, in the mean: half of the period of '
        'the measurements [s]. Delays are no part of it.',
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
    Entry(
        'allow_limit_violations',
        False,
        'Trajectories and references that exceed limits of the robot description are executed all '
        'the same.',
    ),
    Entry(
        'max_tracking_error',
        0.2,
        'The robot is stopped if a joint is farther than this from its reference [rad, m], for '
        'joints without a max_tracking_errors.<joint>.',
        1e-6,
        1e6,
    ),
    Entry(
        'velocity_margin',
        0.2,
        'The robot is stopped if a joint is faster than its limit by more than this share of it.',
        0.0,
        1e6,
    ),
    Entry(
        'position_margin',
        0.05,
        'The robot is stopped if a joint is beyond a limit of its position by more than this '
        '[rad, m].',
        0.0,
        1e6,
    ),
    Entry(
        'violation_samples',
        3,
        'How many measurements one after the other must exceed a bound until the robot is '
        'stopped; during those before, the torque stays as it is.',
        1,
        20,
    ),
)

_BY_NAME = {entry.name: entry for entry in ENTRIES}

class ControlSettings(namedtuple('ControlSettings', [*_BY_NAME, 'of_joints'])):
    """Values of `ENTRIES`, by their names, and of parameters of single joints.

    The latter are tuples of group, joint and value, see `JOINT_GROUPS`.
    """

    def per_joint(self, group: str, joint_names: tuple[str, ...]) -> Array:
        """Values of all joints, shape (n,).

        Raises
        ------
        ControlError
            If there are values for other joints.
        """
        own = {joint: value for kind, joint, value in self.of_joints if kind == group}
        unknown = sorted(set(own) - set(joint_names))
        if unknown:
            raise ControlError(
                f'There are {group} for {", ".join(unknown)}, expected some of the joints '
                f'{", ".join(joint_names)}.'
            )
        default = getattr(self, JOINT_GROUPS[group])
        return np.array([own.get(name, default) for name in joint_names])

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
    fields, problems = shared.read_entries(ENTRIES, values)
    of_joints = []
    for name, value in sorted(values.items()):
        group, _, joint = name.partition('.')
        if group in JOINT_GROUPS:
            is_left_out = type(value) in (int, float) and value == 0
            expected = '' if is_left_out else _BY_NAME[JOINT_GROUPS[group]].expectation(value)
            if expected:
                problems.append(shared.unfit(name, value, f'0 or {expected}'))
            elif value:
                of_joints.append((group, joint, float(value)))
    if problems:
        raise ControlError(' '.join(problems))
    return ControlSettings(**fields, of_joints=tuple(of_joints))


def make_controller(
    model: RobotModel,
    actuators: Actuators,
    settings: ControlSettings,
    motor_limits: Array,
) -> Controller:
    """Make the controller that the settings ask for.

    Parameters
    ----------
    model : RobotModel
    actuators : Actuators
    settings : ControlSettings
    motor_limits : ndarray, shape (n,)
        Largest torques of the motors; where it is infinite, the robot description has the limit.

    Raises
    ------
    HodynError
        If it cannot be made.
    """
    limits = torque_limits(model, motor_limits) if settings.limit_torques else None
    bandwidth = settings.per_joint('bandwidths', model.joint_names)
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


def torque_limits(model: RobotModel, given: Array) -> Array:
    """Largest torques of the motors; where none is given, those of the robot description."""
    if len(given) != model.n_joints:
        return given
    described = np.where(model.limits.effort > 0.0, model.limits.effort, np.inf)
    return np.where(np.isfinite(given), given, described)


def stopping_settings(settings: ControlSettings) -> ControlSettings:
    """Return settings of the law that stops the robot, whatever the other one has made of it."""
    slower = tuple(
        (group, joint, min(value, _STOPPING_BANDWIDTH))
        for group, joint, value in settings.of_joints
        if group == 'bandwidths'
    )
    bandwidth = min(settings.bandwidth, _STOPPING_BANDWIDTH)
    return settings._replace(controller=_STOPPING_LAW, bandwidth=bandwidth, of_joints=slower)


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
        given = {name: parameter.value for name, parameter in node._parameter_overrides.items()}
        self._values = {name: value for name, value in given.items() if _is_setting(name)}
        self.settings = make_settings(self._values)
        for entry in ENTRIES:
            declare_entry(node, entry)
        for name in self._values:
            if name not in _BY_NAME:
                self._declare_of_joint(name)
        self.actuators = declare_actuators(node)
        node.add_on_set_parameters_callback(self._on_set)

    def declare_joints(self, model: RobotModel) -> None:
        """Declare the parameters of all joints of a robot."""
        for name in (f'{group}.{joint}' for group in JOINT_GROUPS for joint in model.joint_names):
            if not self._node.has_parameter(name):
                self._declare_of_joint(name)

    def unknown(self) -> list[str]:
        """Names that were given at the start but are no parameters."""
        return sorted(
            name for name in self._node._parameter_overrides if not self._node.has_parameter(name)
        )

    def _declare_of_joint(self, name: str) -> None:
        group, _, joint = name.partition('.')
        meaning = f'{JOINT_GROUPS[group]} of joint {joint}; 0: that of all.'
        descriptor = ParameterDescriptor(description=meaning, dynamic_typing=True)
        self._node.declare_parameter(name, 0.0, descriptor)

    def _on_set(self, parameters: list[Parameter]) -> SetParametersResult:
        changes = {item.name: item.value for item in parameters if _is_setting(item.name)}
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


def _is_setting(name: str) -> bool:
    group, _, joint = name.partition('.')
    return name in _BY_NAME or (group in JOINT_GROUPS and bool(joint))
