"""Parameters of the node: declared with descriptors, checked together, changed in one step."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.exceptions import ParameterNotDeclaredException
from rclpy.node import Node
from rclpy.parameter import Parameter

from hodyn_ros.analysis.limits import MotionLimits
from hodyn_ros.errors import ModelError
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed
from hodyn_ros.ros.drives import actuator_descriptor
from hodyn_ros.ros.settings import (
    ENTRIES,
    LIMIT_UNITS,
    Entry,
    Settings,
    find_problems,
    is_actuator,
    is_limit,
    limit_names,
    make_settings,
)

_NAMES = {entry.name for entry in ENTRIES}
_GROUPS = {
    'limits': 'limits.<joint>.<quantity> of the robot in use',
    'actuators': 'actuators.<joint>.<key> as given when the node starts',
}


def declare_robot_description(node: Node) -> str:
    """Declare the parameter `robot_description` and return its value."""
    node.declare_parameter(
        'robot_description',
        '',
        ParameterDescriptor(
            description='URDF of the robot as XML text. Empty: wait for the topic '
            'robot_description.',
            additional_constraints='URDF without document type declaration and entities',
        ),
    )
    return str(node.get_parameter('robot_description').value)


class Parameters:
    """Declares all parameters of a node but `robot_description` and keeps a snapshot of them.

    A change is checked together with everything that stays as it is. The snapshot is exchanged as
    a whole, once all that may object has agreed: whoever takes `settings` has a set of values that
    belong together, for as long as needed.

    Parameters
    ----------
    node : rclpy.node.Node
        Should have no other callbacks on parameters yet: before Iron, rclpy does not say when all
        of them have agreed, but the first one to be added is asked last.
    on_change : callable, optional
        Is called with the settings before and after every change, in the thread that makes it. It
        must not raise.
    check : callable, optional
        Is asked about settings before they come into force, and raises HodynError against those
        that do not fit what it knows, such as the links of the robot. Not asked at the start.
    on_set : callable, optional
        Is called with all parameters, settings or not, that have been set together, once nothing
        has objected, and before `on_change`.

    Raises
    ------
    ValueError
        If values that are given at the start cannot be used. The message names all of them.
    """

    def __init__(
        self,
        node: Node,
        on_change: Callable[[Settings, Settings], None] | None = None,
        check: Callable[[Settings], None] | None = None,
        on_set: Callable[[Sequence[Parameter]], None] | None = None,
    ) -> None:
        self._node = node
        self._on_change, self._check_further, self._on_set = on_change, check, on_set
        self._given = node._parameter_overrides
        self._declaring = False
        self._values: dict[str, Any] = {
            entry.name: self._start_value(entry.name, entry.default) for entry in ENTRIES
        }
        actuators = {
            name: parameter.value for name, parameter in self._given.items() if is_actuator(name)
        }
        self._values.update(actuators)
        self._settings = make_settings(self._values)
        for entry in ENTRIES:
            declare_entry(node, entry)
        for name, value in actuators.items():
            node.declare_parameter(name, value, actuator_descriptor(name))
        self._has_post_set = hasattr(node, 'add_post_set_parameters_callback')
        node.add_on_set_parameters_callback(self._check)
        if self._has_post_set:
            node.add_post_set_parameters_callback(self._exchange)
            node.add_pre_set_parameters_callback(self._refuse_unknown)

    @property
    def settings(self) -> Settings:
        """The values that hold now, as one snapshot."""
        return self._settings

    def limits_of(self, model: RobotModel) -> MotionLimits:
        """Limits of a model; declares its parameters ``limits.<joint>.<quantity>`` if need be.

        Declaring them does not call `on_change`.

        Raises
        ------
        ModelError
            If limits that were given at the start are not positive numbers.
        """
        new = [name for name in limit_names(model) if not self._node.has_parameter(name)]
        problems = find_problems({name: self._start_value(name, math.inf) for name in new})
        if problems:
            raise ModelError(' '.join(problems))
        self._declaring = True
        try:
            for name in new:
                self._node.declare_parameter(name, math.inf, _limit_descriptor(name))
        finally:
            self._declaring = False
        return self._settings.limits_of(model)

    def unused_limits(self, model: RobotModel) -> list[str]:
        """Names that were given for limits at the start but limit nothing of the model."""
        known = set(limit_names(model))
        return sorted(
            name for name in self._given if name.startswith('limits.') and name not in known
        )

    def unknown(self) -> list[str]:
        """Describe names that were given at the start but that no one has declared, mostly typos.

        To be asked when the node is complete. Limits are left to `unused_limits`, since they are
        declared with the robot.
        """
        return self._hints(name for name in sorted(self._given) if not name.startswith('limits.'))

    def _hints(self, names: Iterable[str]) -> list[str]:
        """Those of the names that are not declared, each with what may have been meant."""
        known = self._node.list_parameters([], 0).names
        return [_with_hints(name, known) for name in names if name not in known]

    def _refuse_unknown(self, parameters: list[Parameter]) -> list[Parameter]:
        unknown = self._hints(parameter.name for parameter in parameters)
        if unknown:
            raise ParameterNotDeclaredException(', '.join(unknown))
        return parameters

    def _start_value(self, name: str, default: Any) -> Any:
        return self._given[name].value if name in self._given else default

    def _check(self, parameters: Sequence[Parameter]) -> SetParametersResult:
        changes = _changes(parameters)
        try:
            if changes:
                settings = make_settings({**self._values, **changes})
                if self._check_further is not None and not self._declaring:
                    self._check_further(settings)
        except ValueError as error:  # and so every HodynError
            return SetParametersResult(successful=False, reason=str(error))
        if not self._has_post_set:
            self._exchange(parameters)
        return SetParametersResult(successful=True)

    def _exchange(self, parameters: Sequence[Parameter]) -> None:
        if self._on_set is not None and not self._declaring:
            self._on_set(parameters)
        changes = _changes(parameters)
        if not changes:
            return
        self._values = {**self._values, **changes}
        before, self._settings = self._settings, make_settings(self._values)
        if self._on_change is not None and not self._declaring and before != self._settings:
            self._on_change(before, self._settings)


def _changes(parameters: Iterable[Parameter]) -> dict[str, Any]:
    """Values of those parameters that are settings."""
    return {
        parameter.name: parameter.value
        for parameter in parameters
        if parameter.name in _NAMES or is_limit(parameter.name) or is_actuator(parameter.name)
    }


def declare_entry(node: Node, entry: Entry) -> None:
    """Declare a parameter with its default, range and meaning."""
    default = list(entry.default) if isinstance(entry.default, tuple) else entry.default
    node.declare_parameter(entry.name, default, _descriptor(entry))


def _descriptor(entry: Entry) -> ParameterDescriptor:
    descriptor = ParameterDescriptor(
        description=entry.description,
        additional_constraints=entry.constraints,
        read_only=entry.read_only,
        # So whole numbers need no decimal point, and find_problems says what is expected where
        # rclpy would name types by their numbers. It also checks ranges whatever the type.
        dynamic_typing=True,
    )
    if entry.low is None or entry.high is None:
        return descriptor
    if isinstance(entry.default, float):
        descriptor.floating_point_range = [
            FloatingPointRange(from_value=entry.low, to_value=entry.high)
        ]
    else:
        descriptor.integer_range = [IntegerRange(from_value=entry.low, to_value=entry.high)]
    return descriptor


def _limit_descriptor(name: str) -> ParameterDescriptor:
    joint, _, quantity = name.partition('.')[2].rpartition('.')
    return ParameterDescriptor(
        description=f'Limit of the {quantity} of joint {joint} [{LIMIT_UNITS[quantity]}].',
        additional_constraints='a number above 0; .inf: no limit',
        dynamic_typing=True,
    )


def _with_hints(name: str, known: Sequence[str]) -> str:
    group = name.partition('.')[0]
    members = sorted(other for other in known if other.startswith(f'{group}.'))
    hints = [f'did you mean {other}?' for other in difflib.get_close_matches(name, known, 1, 0.8)]
    if group in _GROUPS:
        hints.append(f'expected {_GROUPS[group]}')
    if members or group in _GROUPS:
        hints.append(f'{listed(members)} exist')
    return f'{name} ({"; ".join(hints)})' if hints else name
