"""The robot and the motion of the command line; limits, friction and actuators from files."""

from __future__ import annotations

import difflib
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import yaml

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.config import actuators_from_config, motor_limits_from_config
from hodyn_ros.actuators.limits import MotorLimits
from hodyn_ros.cli.output import show_remarks
from hodyn_ros.errors import AmbiguousNameError, ModelError, RequestError
from hodyn_ros.files import Samples, compute, read_motion
from hodyn_ros.files.derivatives import How
from hodyn_ros.files.files import SUFFIXES as MOTION_SUFFIXES
from hodyn_ros.files.yaml_documents import yaml_documents
from hodyn_ros.model.friction import friction_from_config
from hodyn_ros.model.limits import MotionLimits
from hodyn_ros.model.loops import Loop
from hodyn_ros.model.robot import ModelWarning, RobotModel
from hodyn_ros.model.sources import RobotSource, find_robot, root_tag
from hodyn_ros.model.violations import motion_limits
from hodyn_ros.names import listed
from hodyn_ros.resources import share_file

# Similarity from which on one name is the other, mistyped: panda_jiont3, and no finger.
_MISTYPED = 0.8

URDF_ALONE = 'urdf'
"""Instead of a file: the limits of the robot description and no others."""


@dataclass(frozen=True)
class Given:
    """What the command line says about a robot and a motion; see `hodyn compute --help`.

    Attributes
    ----------
    robot : str
        File, name of a robot, or package and path.
    base_link, tip_link : str or None
        Ends of the chain; None: as the description says.
    gravity : (float, float, float)
        In the base frame [m/s^2]; None: of an SDF or MJCF its own, else 9.81 against z.
    open_loops : bool
        Whether loops of the description are left open.
    joint_friction : bool
        Whether the friction of the description is used.
    friction, actuators : pathlib.Path or None
        Parameter files.
    xacro_arguments : tuple of (str, str)
        Names and values.
    allow_impossible_inertia : bool
        Whether bodies may have inertias that none has.
    limits : str or None
        File, name of one of this package, or `URDF_ALONE`; None: that of the robot.
    motion : pathlib.Path
    topic, index, expressed_in, acting
        See `read_motions`.
    derivatives, order, rate, interpolation
        See `compute`.
    """

    robot: str
    base_link: str | None = None
    tip_link: str | None = None
    gravity: tuple[float, float, float] | None = None
    open_loops: bool = False
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
        """Options of `read_motion` and `DatasetRun`."""
        return {name: getattr(self, name) for name in ('topic', 'expressed_in', 'acting')}

    @property
    def computing(self) -> dict[str, Any]:
        """Options of `compute` and `DatasetRun`."""
        names = ('derivatives', 'rate', 'interpolation')
        return {'order': self.order, **{name: getattr(self, name) for name in names}}


@dataclass(frozen=True)
class Problem:
    """A robot with its limits and actuators, and the motion that is asked for.

    Attributes
    ----------
    given : Given
    model : RobotModel
        With the friction that was asked for.
    source : RobotSource
        Where the model comes from.
    limits : MotionLimits
        Of the joints.
    limits_from : str
        Where they come from, for people.
    actuators, motor_limits : Actuators and MotorLimits, or None
    """

    given: Given
    model: RobotModel
    source: RobotSource
    limits: MotionLimits
    limits_from: str
    remarks: tuple[str, ...]
    """On the files of friction and limits."""
    actuators: Actuators | None
    motor_limits: MotorLimits | None

    @property
    def limiting(self) -> dict[str, Any]:
        """Limits and actuators, as functions of the library take them.

        Returns
        -------
        dict of str to object
            'limits', 'actuators' and 'motor_limits'.
        """
        names = ('limits', 'actuators', 'motor_limits')
        return {name: getattr(self, name) for name in names}

    def samples(self) -> Samples:
        """All samples of the motion.

        Returns
        -------
        Samples
            As `read_motion` reads them.
        """
        return read_motion(self.given.motion, index=self.given.index, **self.given.reading)

    def results(self) -> Samples:
        """Torques along the whole motion, and what the motors do.

        Returns
        -------
        Samples
        """
        self.model.warm_up(self.given.order)
        samples = self.samples()
        self._tell_unused_rate(samples)
        return compute(
            self.model, samples, actuators=self.actuators, **self.given.computing
        )

    def _tell_unused_rate(self, samples: Samples) -> None:
        """Say that only splines are evaluated at a rate, if one is asked for and there is none."""
        given = self.given
        how = How(given.derivatives, given.order + 3, given.interpolation, given.rate)
        if given.rate is not None and (choice := how.choose(samples)) != 'spline':
            show_remarks(
                (
                    f'--rate is not used: the derivatives of {given.motion} are '
                    f'{"given" if choice == "given" else "estimated"}, and only a spline has '
                    'values between its samples (--derivatives spline).',
                )
            )


def load_problem(given: Given, quiet: bool = False) -> Problem:
    """Find the robot with its limits and actuators; quiet for who shows all remarks himself.

    Parameters
    ----------
    given : Given
    quiet : bool
        Whether warnings and remarks are not shown.

    Returns
    -------
    Problem

    Raises
    ------
    ModelError, RequestError, ActuatorError
        If the robot, or a file of limits, friction or actuators, cannot be found or used.
    """
    model, source, remarks = _load(given)
    limits, limits_from, more = read_limits(model, given.limits, source.limits)
    remarks += more
    if not quiet:
        _tell(given, model, source, remarks)
    drives = (
        (None, None) if given.actuators is None else read_actuators(model, given.actuators)
    )
    return Problem(given, model, source, limits, limits_from, remarks, *drives)


def load_model(given: Given) -> tuple[RobotModel, RobotSource]:
    """Find the robot and make its model; doubtful values are a `ModelWarning`.

    Parameters
    ----------
    given : Given

    Returns
    -------
    model : RobotModel
    source : RobotSource
        Where it comes from.

    Raises
    ------
    ModelError, RequestError
        If it, or a file of friction, cannot be found or used.
    """
    model, source, remarks = _load(given)
    _tell(given, model, source, remarks)
    return model, source


def _load(given: Given) -> tuple[RobotModel, RobotSource, tuple[str, ...]]:
    """Robot with its friction, where it comes from, and remarks on the file of friction."""
    if Path(given.robot).suffix.lower() in MOTION_SUFFIXES:
        context = click.get_current_context(silent=True)
        command = 'hodyn' if context is None else context.command_path
        raise RequestError(
            f'{given.robot} is a motion, expected ROBOT, which comes first: {command} '
            f'{given.motion.name or "panda"} {given.robot}'
        )
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
        description = source.description(dict(given.xacro_arguments))
        model = _read(given, description)
    # A xacro file is handed over as the text that it stands for.
    known = model.provenance
    model = model.changed(provenance=replace(known, file=known.file or str(source.path)))
    if given.friction is None:
        return model, source, ()
    path = parameter_file(given.friction)
    tables, remarks = _of_robot(path, 'friction', model.name, model.body_names)
    try:
        laws = friction_from_config(tables)
    except ModelError as error:
        raise ModelError(f'{path}: {error}') from error
    own = {joint: law for joint, law in laws.items() if joint in model.body_names}
    return model.with_friction(own), source, remarks


def _read(given: Given, description: str | Path) -> RobotModel:
    """Model of a description in the language of its root element: MJCF, SDF or else URDF."""
    language = root_tag(description)
    loops: tuple[Loop, ...] | None = () if given.open_loops else None
    options: dict[str, Any] = {
        'tip_link': given.tip_link,
        'joint_friction': given.joint_friction,
        'loops': loops,
    }
    if language == 'mujoco':
        if given.base_link is not None or given.allow_impossible_inertia:
            raise RequestError(
                '--base-link and --allow-impossible-inertia are not for an MJCF, whose base is '
                'the world or the body that moves freely; leave them out.'
            )
        return RobotModel.from_mjcf(description, gravity=given.gravity, **options)
    options['base_link'] = given.base_link
    if language == 'sdf':
        if given.allow_impossible_inertia:
            raise RequestError(
                '--allow-impossible-inertia is not for an SDF, whose inertias a body must have; '
                'leave it out.'
            )
        return RobotModel.from_sdf(description, gravity=given.gravity, **options)
    if given.gravity is not None:
        options['gravity'] = given.gravity
    impossible = given.allow_impossible_inertia
    return RobotModel.from_urdf(description, allow_impossible_inertia=impossible, **options)


def _tell(
    given: Given, model: RobotModel, source: RobotSource, remarks: tuple[str, ...]
) -> None:
    """Warn of a doubtful value, or of how many there are, and show remarks."""
    if model.warnings:
        summary = (
            f'{len(model.warnings)} remarks on {source.path.name}: hodyn info {given.robot}, with '
            'the same options, shows them'
        )
        text = model.warnings[0] if len(model.warnings) == 1 else summary
        warnings.warn(text, ModelWarning, stacklevel=3)
    show_remarks(remarks)


def read_limits(
    model: RobotModel, given: str | None, default: Path | None
) -> tuple[MotionLimits, str, tuple[str, ...]]:
    """Limits of the joints, of the robot description and of a file, where from, and remarks.

    The file is `given`, one of this package by its name, or none (`URDF_ALONE`); by default the
    one that belongs to the robot.

    Parameters
    ----------
    model : RobotModel
    given : str or None
        What the command line says.
    default : pathlib.Path or None
        File that belongs to the robot.

    Returns
    -------
    limits : MotionLimits
    limits_from : str
    remarks : tuple of str
        On joints of the file that the robot does not have.

    Raises
    ------
    RequestError
        If the file cannot be read, or is for other joints.
    """
    path = (
        default
        if given is None
        else (None if given == URDF_ALONE else parameter_file(given))
    )
    if path is None:
        return motion_limits(model), 'robot description', ()
    remarks: tuple[str, ...] = ()
    if given is None:
        limits_from = f'robot description and {path.parent.name}/{path.name} of hodyn_ros'
        tables = _tables(path, 'limits')
    else:
        limits_from = f'robot description and {path}'
        tables, remarks = _of_robot(path, 'limits', model.name, model.joint_names)
    # One file serves a robot with and without its gripper.
    known = {name: tables[name] for name in model.joint_names if name in tables}
    return motion_limits(model, known), limits_from, remarks


def _of_robot(
    path: Path, what: str, robot: str, joints: Sequence[str]
) -> tuple[dict[str, dict[str, Any]], tuple[str, ...]]:
    """Tables of a file, and a remark on those that are for no joint of the robot.

    One file serves a robot with and without its gripper. What seems to be a mistyped name of a
    joint for which there is no table is refused.

    Parameters
    ----------
    path : pathlib.Path
    what : str
        'limits' or 'friction'.
    robot : str
        Name of the robot, for messages.
    joints : sequence of str
        Its joints.

    Returns
    -------
    tables : dict of str to dict
        All of the file.
    remarks : tuple of str
        One, or none.

    Raises
    ------
    RequestError
        If no table is for a joint of the robot, or a name seems mistyped.
    """
    tables = _tables(path, what)
    foreign = [joint for joint in tables if joint not in joints]
    without = [joint for joint in joints if joint not in tables]
    for joint in foreign:
        if close := difflib.get_close_matches(joint, without, 1, _MISTYPED):
            raise RequestError(
                f'{path}: {what}.{joint}: {robot} has no joint {joint}. Is {close[0]} meant? Its '
                f'joints without {what} in this file are {listed(without)}.'
            )
    if len(foreign) == len(tables):
        raise RequestError(
            f'{path} holds {what} of {listed(tables)}, but {robot} has none of these joints; they '
            f'are {listed(joints)}.'
        )
    remark = f'{path}: {what} of {listed(foreign)}: not used, {robot} has no such joint.'
    return tables, (remark,) if foreign else ()


def read_actuators(
    model: RobotModel, path: str | os.PathLike[str]
) -> tuple[Actuators, MotorLimits]:
    """Actuators of a file, or of one of this package by its name, and limits of their motors.

    Parameters
    ----------
    model : RobotModel
    path : path-like

    Returns
    -------
    actuators : Actuators
    motor_limits : MotorLimits

    Raises
    ------
    RequestError
        If the file cannot be read or has no actuators.
    ActuatorError
        If they cannot be used.
    """
    config = _tables(parameter_file(path), 'actuators')
    actuators = actuators_from_config(model, config)
    return actuators, motor_limits_from_config(actuators, config)


def parameter_file(given: str | os.PathLike[str]) -> Path:
    """Path of a file, or of one that comes with this package, by its name.

    Parameters
    ----------
    given : path-like
        A folder of that name hides nothing.

    Returns
    -------
    pathlib.Path

    Raises
    ------
    RequestError
        If there is neither.
    """
    path = Path(given)
    if (path.exists() and not path.is_dir()) or path.suffix or len(path.parts) > 1:
        return path
    known = share_file('config/panda.yaml').parent.glob('*.yaml')
    bundled = {file.stem: file for file in sorted(known)}
    if path.name not in bundled:
        raise RequestError(
            f'{path} is no file, nor one that comes with hodyn_ros: {listed(bundled)}.'
        )
    return bundled[path.name]


def _tables(path: Path, name: str) -> dict[str, dict[str, Any]]:
    """Entries of all joints under a name, wherever the layout of a parameter file has it.

    Parameters
    ----------
    path : pathlib.Path
        YAML with `ros__parameters` or without.
    name : str
        'limits', 'friction' or 'actuators'.

    Returns
    -------
    dict of str to dict
        By the joint.

    Raises
    ------
    RequestError
        If it cannot be read, or does not hold such tables.
    """
    try:
        documents = yaml_documents(path)
    except OSError as error:
        raise RequestError(f'{path} cannot be read: {error.strerror}.') from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise RequestError(f'{path} is not YAML: {error}') from error
    if len(documents) > 1:
        raise RequestError(f'{path} holds {len(documents)} documents, expected one.')
    content = documents[0] if documents else None
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
            raise RequestError(
                f'{path}: {where} is {value!r}, expected a table for each joint.'
            )
        tables.setdefault('.'.join(names[:-1]), {})[names[-1]] = value
    if not tables:
        example = {'limits': 'panda', 'actuators': 'panda_sea'}.get(name, 'generic')
        raise RequestError(
            f'{path} holds no {name}; expected the layout of config/{example}.yaml: "{name}:" '
            'with a table for each joint, by itself or below "ros__parameters:".'
        )
    return tables
