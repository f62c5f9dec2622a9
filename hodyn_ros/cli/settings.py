"""Limits and actuators from YAML files, in the layout of the parameters of the node."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.config import actuators_from_config, motor_limits_from_config
from hodyn_ros.actuators.limits import MotorLimits
from hodyn_ros.analysis.limits import MotionLimits, motion_limits
from hodyn_ros.errors import RequestError
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed
from hodyn_ros.resources import share_file

URDF_ALONE = 'urdf'
"""Instead of a file: the limits of the robot description and no others."""


_EXPONENT = re.compile(r'[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+')


class RobotLimits(NamedTuple):
    """Limits of the joints and where they come from."""

    values: MotionLimits
    origin: str
    remarks: tuple[str, ...] = ()


class Drives(NamedTuple):
    """Actuators with the limits of their motors."""

    actuators: Actuators
    limits: MotorLimits


def read_limits(model: RobotModel, given: str | None, default: Path | None) -> RobotLimits:
    """Limits of the joints: of the robot description, and those that it cannot hold.

    Parameters
    ----------
    model : RobotModel
    given : str, optional
        Path of a file with the layout of ``config/panda.yaml``, or name of one that comes with
        this package, or `URDF_ALONE`.
    default : pathlib.Path, optional
        File that belongs to the robot, if none is given.

    Returns
    -------
    RobotLimits

    Raises
    ------
    RequestError
        If the file cannot be read or holds no limits.
    ModelError
        If a limit is unknown or impossible.
    """
    path = default if given is None else (None if given == URDF_ALONE else _file(given))
    if path is None:
        return RobotLimits(motion_limits(model), 'robot description')
    table = _tables(path, 'limits')
    for joint, quantities in table.items():
        for quantity, limit in quantities.items():
            if isinstance(limit, bool) or not isinstance(limit, (int, float)):
                raise RequestError(
                    f'{path}: limits.{joint}.{quantity} is {limit!r}, expected a number.'
                )
    foreign = [joint for joint in table if joint not in model.joint_names]
    if given is not None and len(foreign) == len(table):
        raise RequestError(
            f'{path} limits {listed(table)}, but {model.name} has none of these joints; they are '
            f'{listed(model.joint_names)}.'
        )
    remarks = (f'{path}: {model.name} has no {listed(foreign)}.',) if given and foreign else ()
    name = str(path) if given else f'{path.parent.name}/{path.name} of hodyn_ros'
    return RobotLimits(motion_limits(model, table), f'robot description and {name}', remarks)


def read_actuators(model: RobotModel, path: str | os.PathLike[str] | None) -> Drives | None:
    """Actuators of the joints.

    Parameters
    ----------
    model : RobotModel
    path : str or path-like, optional
        File with the layout of ``config/panda_sea.yaml``, or name of one of this package.

    Returns
    -------
    Drives or None
        None if no file is given.

    Raises
    ------
    RequestError
        If the file cannot be read or holds no actuators.
    JointNameError, ActuatorError
        See `actuators_from_config`.
    """
    if path is None:
        return None
    config = _tables(_file(path), 'actuators')
    actuators = actuators_from_config(model, config)
    return Drives(actuators, motor_limits_from_config(actuators, config))


def _file(given: str | os.PathLike[str]) -> Path:
    """Path of a file, or of one that comes with this package, by its name."""
    path = Path(given)
    if path.exists() or path.suffix or len(path.parts) > 1:
        return path
    known = share_file('config/panda.yaml').parent.glob('*.yaml')
    bundled = {file.stem: file for file in sorted(known)}
    if path.name not in bundled:
        raise RequestError(
            f'{path} is no file, nor one that comes with hodyn_ros: {listed(bundled)}.'
        )
    return bundled[path.name]


def _tables(path: Path, name: str) -> dict[str, dict[str, Any]]:
    """Entries of all joints under a name, wherever the layout of a parameter file has it."""
    try:
        content = yaml.safe_load(path.read_text(encoding='utf-8'))
    except OSError as error:
        raise RequestError(f'{path} cannot be read: {error.strerror}.') from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise RequestError(f'{path} is not YAML: {error}') from error
    tables: dict[str, dict[str, Any]] = {}
    for parameters in _parameters(content):
        for key, value in parameters.items():
            first, *rest = str(key).split('.')
            if first == name:
                _merge(tables, rest, value, f'{path}: {key}')
    if not tables:
        raise RequestError(
            f'{path} holds no {name}; expected the layout of '
            f'config/{"panda" if name == "limits" else "panda_sea"}.yaml: '
            f'"{name}:" with a table for each joint, by itself or below "ros__parameters:".'
        )
    return tables


def _parameters(content: Any) -> Iterator[Mapping[Any, Any]]:
    """Tables of parameters of all nodes in a file, or the file itself."""
    if not isinstance(content, Mapping):
        return
    yield content
    for value in content.values():
        if isinstance(value, Mapping) and isinstance(value.get('ros__parameters'), Mapping):
            yield value['ros__parameters']


def _merge(tables: dict[str, dict[str, Any]], names: list[str], value: Any, where: str) -> None:
    """Put ``limits: {joint: {key: value}}`` or a part of it with dots into the tables."""
    if len(names) >= 2:
        tables.setdefault('.'.join(names[:-1]), {})[names[-1]] = _with_numbers(value)
        return
    if not isinstance(value, Mapping):
        raise RequestError(f'{where} is {value!r}, expected a table for each joint.')
    if names:
        tables.setdefault(names[0], {}).update(
            {key: _with_numbers(item) for key, item in value.items()}
        )
        return
    for joint, table in value.items():
        _merge(tables, [str(joint)], table, f'{where}.{joint}')


def _with_numbers(value: Any) -> Any:
    """Read 1e6 and 1.0e6 as the numbers that they are for ROS; PyYAML wants 1.0e+6."""
    if isinstance(value, list):
        return [_with_numbers(item) for item in value]
    if isinstance(value, str) and _EXPONENT.fullmatch(value):
        return float(value)
    return value
