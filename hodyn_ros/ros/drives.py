"""What moves the joints of the robot in use, from the parameters ``actuators.<joint>.<key>``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rcl_interfaces.msg import ParameterDescriptor
from rclpy.node import Node

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.config import (
    KEYS,
    actuators_from_config,
    motor_limits_from_config,
)
from hodyn_ros.actuators.limits import MotorLimits
from hodyn_ros.dynamics.continuation import ORDERS
from hodyn_ros.errors import ActuatorError
from hodyn_ros.model.robot import RobotModel

Array = NDArray[np.float64]

_KEYS = {key.name: key for key in KEYS}

START = 'actuators.'
STIFFNESS = 'stiffness'
"""Key that for a joint of variable stiffness holds what it has unless it is asked for another."""

Entries = Iterable[tuple[str, str, Any]]
"""Joint, key and value of parameters."""


class Drives(NamedTuple):
    """Actuators, their limits, and the stiffness that joints have unless asked for another."""

    actuators: Actuators
    limits: MotorLimits
    stiffness: Mapping[str, float]
    """Of every joint that can choose it, and no other [N m/rad]."""

    def default_stiffness(self, samples: tuple[int, ...] = ()) -> dict[str, Array]:
        """Series (..., 3) of the stiffness that is constant."""
        series = {}
        for name, value in self.stiffness.items():
            series[name] = np.zeros((*samples, ORDERS))
            series[name][..., 0] = value
        return series


def actuator_entry(name: str, value: Any) -> tuple[str, str, Any]:
    """Joint, key and plain value of a parameter."""
    joint, _, key = name[len(START) :].rpartition('.')
    if not isinstance(value, (str, bool, int, float)) and hasattr(value, '__len__'):
        value = tuple(value)
    return joint, key, value


def actuator_descriptor(name: str, **options: Any) -> ParameterDescriptor:
    """Descriptor of a parameter ``actuators.<joint>.<key>``."""
    joint, key, _ = actuator_entry(name, None)
    found = _KEYS.get(key)
    if found is None:
        return ParameterDescriptor(dynamic_typing=True, **options)
    unit = f' [{found.unit}]' if found.unit else ''
    return ParameterDescriptor(
        description=f'Joint {joint}{unit}: {found.description}',
        additional_constraints=f'one of {", ".join(found.choices)}' if found.choices else '',
        dynamic_typing=True,
        **options,
    )


def declare_actuators(node: Node) -> dict[str, dict[str, Any]]:
    """Declare all that is given of actuators, read-only, and return the tables of the joints."""
    given = sorted(node._parameter_overrides.items())
    values = {name: item.value for name, item in given if name.startswith(START)}
    for name, value in values.items():
        node.declare_parameter(name, value, actuator_descriptor(name, read_only=True))
    return config_of(actuator_entry(*item) for item in values.items())


def config_of(entries: Entries) -> dict[str, dict[str, Any]]:
    """Tables of the joints, as `actuators_from_config` takes them."""
    config: dict[str, dict[str, Any]] = {}
    for joint, key, value in entries:
        config.setdefault(joint, {})[key] = value
    return config


def drives_of(model: RobotModel, entries: Entries) -> Drives | None:
    """Assemble what moves the joints of a model; None if nothing is said of them.

    Raises
    ------
    JointNameError
        If a joint is unknown.
    ActuatorError
        If something is missing, does not fit or cannot be used.
    """
    if not entries:
        return None
    config = config_of(entries)
    actuators = actuators_from_config(model, config)
    stiffness = {}
    for item in actuators.driven:
        if item.actuator.needs_stiffness:
            value = config[item.name].get(STIFFNESS)
            if value is None:
                raise ActuatorError(
                    f'{START}{item.name}.{STIFFNESS} is missing; a joint of variable stiffness '
                    'needs the stiffness that it has unless it is asked for another [N m/rad].'
                )
            stiffness[item.name] = float(value)
    return Drives(actuators, motor_limits_from_config(actuators, config), stiffness)
