"""Parameters of the node: their types, defaults, ranges and descriptions, and reading them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from rcl_interfaces.msg import IntegerRange, ParameterDescriptor
from rclpy.node import Node

from hodyn_ros.analysis.limits import EXTRA_QUANTITIES, MotionLimits, motion_limits
from hodyn_ros.errors import ModelError
from hodyn_ros.model.robot import RobotModel

_UNITS = {
    'acceleration': 'rad/s^2 or m/s^2',
    'jerk': 'rad/s^3 or m/s^3',
    'effort_dot': 'N m/s or N/s',
}


@dataclass(frozen=True)
class Settings:
    """Values of the parameters that are fixed while the node runs."""

    base_link: str | None
    tip_link: str | None
    gravity: tuple[float, ...]
    publish_rate: float
    trajectory_sample_period: float
    max_samples: int
    input_timeout: float
    wrench_timeout: float
    diagnostics_period: float


def declare_robot_description(node: Node) -> str:
    """Declare the parameter `robot_description` and return its value."""
    node.declare_parameter(
        'robot_description',
        '',
        ParameterDescriptor(
            description='URDF of the robot as XML text. Empty: wait for the topic '
            'robot_description.',
        ),
    )
    return str(node.get_parameter('robot_description').value)


def declare_settings(node: Node) -> Settings:
    """Declare all parameters that are fixed while the node runs and return their values."""

    def text(name: str, description: str) -> str | None:
        descriptor = ParameterDescriptor(description=description, read_only=True)
        return node.declare_parameter(name, '', descriptor).value or None

    def number(name: str, default: float, low: float, high: float, description: str) -> float:
        value = _declared_number(node, name, default, f'{description} {low:g} to {high:g}.')
        if not low <= value <= high:
            raise ValueError(f'Parameter {name} is {value}, expected {low:g} to {high:g}.')
        return value

    gravity = node.declare_parameter(
        'gravity',
        [0.0, 0.0, -9.81],
        ParameterDescriptor(
            description='Gravitational acceleration in base link axes [m/s^2], three values.',
            read_only=True,
        ),
    ).value
    if gravity is None or len(gravity) != 3 or not all(math.isfinite(g) for g in gravity):
        raise ValueError(f'Parameter gravity is {gravity}, expected three finite numbers.')
    max_samples = node.declare_parameter(
        'max_samples',
        100_000,
        ParameterDescriptor(
            description='Largest number of samples in one answer to a trajectory.',
            read_only=True,
            integer_range=[IntegerRange(from_value=2, to_value=10_000_000)],
        ),
    ).value
    return Settings(
        base_link=text('base_link', 'First link of the chain; empty: the root link.'),
        tip_link=text('tip_link', 'Last link of the chain; empty: the whole tree.'),
        gravity=tuple(gravity),
        publish_rate=number(
            'publish_rate',
            100.0,
            0.01,
            10_000.0,
            'Rate at which a running trajectory is streamed on ~/joint_effort [Hz].',
        ),
        trajectory_sample_period=number(
            'trajectory_sample_period',
            0.01,
            1e-6,
            1e3,
            'Distance of the samples on ~/effort_trajectory, and default of the service [s].',
        ),
        max_samples=int(max_samples),
        input_timeout=number(
            'input_timeout',
            0.5,
            0.0,
            1e6,
            'A joint_motion whose stamp is older than this is refused [s]; 0: any age is taken.',
        ),
        wrench_timeout=number(
            'wrench_timeout',
            0.1,
            1e-6,
            1e6,
            'Without a new wrench_motion for this time on a link that carries a wrench, the '
            'output stops [s]. A message of zeros ends the wrench.',
        ),
        diagnostics_period=number(
            'diagnostics_period', 1.0, 0.01, 3600.0, 'Time between two diagnostic reports [s].'
        ),
    )


def read_limits(node: Node, model: RobotModel) -> MotionLimits:
    """Limits of a model, completed by the parameters `limits.<joint>.<quantity>`.

    Raises
    ------
    ModelError
        If a limit is not a positive number.
    """
    extra: dict[str, dict[str, float]] = {}
    for joint in model.joint_names:
        extra[joint] = {}
        for quantity in EXTRA_QUANTITIES:
            name = f'limits.{joint}.{quantity}'
            try:
                extra[joint][quantity] = _declared_number(
                    node,
                    name,
                    float('inf'),
                    f'Limit of the {quantity} of joint {joint} [{_UNITS[quantity]}].',
                )
            except ValueError as error:
                raise ModelError(str(error)) from error
    return motion_limits(model, extra)


def unused_limits(given: Iterable[str], model: RobotModel) -> list[str]:
    """Names of given parameters that look like limits but limit nothing of the model."""
    known = {
        f'limits.{joint}.{quantity}'
        for joint in model.joint_names
        for quantity in EXTRA_QUANTITIES
    }
    return sorted(name for name in given if name.startswith('limits.') and name not in known)


def _declared_number(node: Node, name: str, default: float, description: str) -> float:
    """Declare a parameter once and return its value; whole numbers need no decimal point."""
    if not node.has_parameter(name):
        descriptor = ParameterDescriptor(
            description=description, read_only=True, dynamic_typing=True
        )
        node.declare_parameter(name, default, descriptor)
    value = node.get_parameter(name).value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f'Parameter {name} is {value!r}, expected a number.')
    return float(value)
