"""The robot and the motion of the command line; limits, friction and actuators from files."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import click
import numpy as np
import yaml

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.config import actuators_from_config, motor_limits_from_config
from hodyn_ros.actuators.limits import MotorLimits
from hodyn_ros.cli.output import show_remarks
from hodyn_ros.errors import AmbiguousNameError, ModelError, RequestError
from hodyn_ros.files import Results, Samples, compute, compute_stream, iterate_motion, read_motion
from hodyn_ros.files.derivatives import How
from hodyn_ros.model.friction import friction_from_config
from hodyn_ros.model.limits import MotionLimits, motion_limits
from hodyn_ros.model.robot import ModelWarning, RobotModel
from hodyn_ros.model.sources import RobotSource, find_robot
from hodyn_ros.names import listed
from hodyn_ros.resources import share_file

URDF_ALONE = 'urdf'
"""Instead of a file: the limits of the robot description and no others."""


@dataclass(frozen=True)
class Given:
    """What the command line says about a robot and a motion; see `hodyn compute --help`."""

    robot: str
    base_link: str | None = None
    tip_link: str | None = None
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)
    joint_friction: bool = False
    friction: Path | None = None
    xacro_arguments: tuple[tuple[str, str], ...] = ()
    allow_impossible_inertia: bool = False
    limits: str | None = None
    actuators: Path | None = None
    motion: Path = Path()
    topic: str | None = None
    index: int | None = None
    expressed_in: str | None = None
    acting: str | None = None
    derivatives: str = 'auto'
    order: int = 2
    rate: float | None = None
    interpolation: str = 'spline'

    @property
    def reading(self) -> dict[str, Any]:
        """Options of `read_motion`, `iterate_motion` and `process_files`."""
        return {name: getattr(self, name) for name in ('topic', 'expressed_in', 'acting')}

    @property
    def computing(self) -> dict[str, Any]:
        """Options of `compute`, `compute_stream` and `process_files`."""
        names = ('derivatives', 'rate', 'interpolation')
        return {'orders': self.order, **{name: getattr(self, name) for name in names}}


@dataclass(frozen=True)
class Problem:
    """A robot with its limits and actuators, and the motion that is asked for."""

    given: Given
    model: RobotModel
    source: RobotSource
    limits: MotionLimits
    limits_from: str
    remarks: tuple[str, ...]
    """On the limits."""
    actuators: Actuators | None
    motor_limits: MotorLimits | None

    @property
    def limiting(self) -> dict[str, Any]:
        """Limits and actuators, as functions of the library take them."""
        names = ('limits', 'actuators', 'motor_limits')
        return {name: getattr(self, name) for name in names}

    def samples(self) -> Samples:
        """All samples of the motion."""
        return read_motion(self.given.motion, index=self.given.index, **self.given.reading)

    def results(self) -> Results:
        """Torques along the whole motion, and what the motors do."""
        self.model.warm_up(self.given.order)
        samples = self.samples()
        self._tell_unused_rate(samples)
        return compute(self.model, samples, actuators=self.actuators, **self.given.computing)

    def stream(self) -> Iterator[Results]:
        """Yield the same part by part, in bounded memory where the motion allows it."""
        self.model.warm_up(self.given.order)
        given = self.given
        parts = iterate_motion(given.motion, index=given.index, **given.reading)
        if (first := next(parts, None)) is not None:
            self._tell_unused_rate(first)
            parts = chain((first,), parts)
        last = -np.inf
        for results in compute_stream(
            self.model, parts, actuators=self.actuators, **self.given.computing
        ):
            if len(results) and results.times[0] <= last:
                raise RequestError(
                    f'{results.name} holds several motions, one after the other; choose one with '
                    '--index 0, --index 1, and so on.'
                )
            yield results
            last = results.times[-1] if len(results) else last

    def _tell_unused_rate(self, samples: Samples) -> None:
        """Say that only splines are evaluated at a rate, if one is asked for and there is none."""
        given = self.given
        how = How(given.derivatives, given.order + 3, given.interpolation, given.rate)
        if given.rate is not None and (choice := how.choose(samples)) != 'spline':
            show_remarks((
                f'--rate is not used: the derivatives of {given.motion} are '
                f'{"given" if choice == "given" else "estimated"}, and only a spline has values '
                'between its samples (--derivatives spline).',
            ))  # fmt: skip


def load_problem(given: Given, quiet: bool = False) -> Problem:
    """Find the robot with its limits and actuators; quiet for who shows all remarks himself."""
    model, source = load_model(given, quiet)
    found = read_limits(model, given.limits, source.limits)
    if not quiet:
        show_remarks(found[-1])
    drives = (None, None) if given.actuators is None else read_actuators(model, given.actuators)
    return Problem(given, model, source, *found, *drives)


def load_model(given: Given, quiet: bool = False) -> tuple[RobotModel, RobotSource]:
    """Find the robot and make its model; not quiet, doubtful values are a `ModelWarning`."""
    try:
        source = find_robot(given.robot)
    except AmbiguousNameError as error:
        context = click.get_current_context(silent=True)
        if context is None:
            raise
        line = f'{context.command_path} {error.names[0]}'
        raise ModelError(f'{error}\nFor example: {line}') from error
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        model = RobotModel.from_urdf(
            source.description(dict(given.xacro_arguments)),
            given.base_link,
            given.tip_link,
            given.gravity,
            joint_friction=given.joint_friction,
            allow_impossible_inertia=given.allow_impossible_inertia,
        )
    # A xacro file is handed over as the text that it stands for.
    known = model.provenance
    model = replace(model, provenance=replace(known, file=known.file or str(source.path)))
    if given.friction is not None:
        path = _file(given.friction)
        try:
            model = model.with_friction(friction_from_config(_tables(path, 'friction')))
        except ModelError as error:
            raise ModelError(f'{path}: {error}') from error
    if model.warnings and not quiet:
        summary = (
            f'{len(model.warnings)} remarks on {source.path.name}: hodyn info {given.robot}, with '
            'the same options, shows them'
        )
        text = model.warnings[0] if len(model.warnings) == 1 else summary
        warnings.warn(text, ModelWarning, stacklevel=2)
    return model, source


def read_limits(
    model: RobotModel, given: str | None, default: Path | None
) -> tuple[MotionLimits, str, tuple[str, ...]]:
    """Limits of the joints, of the robot description and of a file, where from, and remarks.

    The file is `given`, one of this package by its name, or none (`URDF_ALONE`); by default the
    one that belongs to the robot.
    """
    path = default if given is None else (None if given == URDF_ALONE else _file(given))
    if path is None:
        return motion_limits(model), 'robot description', ()
    table = _tables(path, 'limits')
    foreign = [joint for joint in table if joint not in model.joint_names]
    if given is not None and len(foreign) == len(table):
        raise RequestError(
            f'{path} limits {listed(table)}, but {model.name} has none of these joints; they are '
            f'{listed(model.joint_names)}.'
        )
    remarks = (f'{path}: {model.name} has no {listed(foreign)}.',) if given and foreign else ()
    name = str(path) if given else f'{path.parent.name}/{path.name} of hodyn_ros'
    return motion_limits(model, table), f'robot description and {name}', remarks


def read_actuators(
    model: RobotModel, path: str | os.PathLike[str]
) -> tuple[Actuators, MotorLimits]:
    """Actuators of a file, or of one of this package by its name, and limits of their motors."""
    config = _tables(_file(path), 'actuators')
    actuators = actuators_from_config(model, config)
    return actuators, motor_limits_from_config(actuators, config)


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


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Reads 1e6 and 1.0e6 as the numbers that they are for ROS; PyYAML wants 1.0e+6."""


_Loader.add_implicit_resolver(
    'tag:yaml.org,2002:float', re.compile(r'[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$'), '-+.0123456789'
)


def _tables(path: Path, name: str) -> dict[str, dict[str, Any]]:
    """Entries of all joints under a name, wherever the layout of a parameter file has it."""
    try:
        content = yaml.load(path.read_text(encoding='utf-8'), _Loader)
    except OSError as error:
        raise RequestError(f'{path} cannot be read: {error.strerror}.') from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise RequestError(f'{path} is not YAML: {error}') from error
    tables: dict[str, dict[str, Any]] = {}
    entries: list[tuple[tuple[str, ...], Any]] = [((), content)]
    for keys, value in entries:  # which grow on the way
        if isinstance(value, Mapping):
            entries += [((*keys, str(key)), item) for key, item in value.items()]
            continue
        if 'ros__parameters' in keys:
            keys = keys[keys.index('ros__parameters') + 1 :]
        first, *names = '.'.join(keys).split('.')
        if first != name:
            continue
        if len(names) < 2:
            where = '.'.join((first, *names))
            raise RequestError(f'{path}: {where} is {value!r}, expected a table for each joint.')
        tables.setdefault('.'.join(names[:-1]), {})[names[-1]] = value
    if not tables:
        example = {'limits': 'panda', 'actuators': 'panda_sea'}.get(name, 'generic')
        raise RequestError(
            f'{path} holds no {name}; expected the layout of config/{example}.yaml: "{name}:" '
            'with a table for each joint, by itself or below "ros__parameters:".'
        )
    return tables
