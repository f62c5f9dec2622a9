"""The robot and the motion of the command line, with limits, friction and actuators."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.config import actuators_from_config, motor_limits_from_config
from hodyn_ros.actuators.limits import MotorLimits
from hodyn_ros.cli.config import DESCRIPTION, MARGINS, Config, read_config
from hodyn_ros.cli.output import show, show_remarks
from hodyn_ros.display import Answer
from hodyn_ros.errors import ActuatorError, AmbiguousNameError, ModelError, RequestError
from hodyn_ros.files import Samples, compute, read_motion
from hodyn_ros.files.files import SUFFIXES as MOTION_SUFFIXES
from hodyn_ros.model.friction import friction_from_config
from hodyn_ros.model.limits import MotionLimits
from hodyn_ros.model.margins import checked_margins, margins_in_words, with_margins
from hodyn_ros.model.robot import ModelWarning, RobotModel
from hodyn_ros.model.sources import RobotSource, find_robot, root_tag
from hodyn_ros.model.violations import motion_limits
from hodyn_ros.names import listed, name_of

ORDER = 2
"""Highest time derivative of the efforts, unless a motion gives more derivatives."""
_HIGHEST_ORDER = 4
_LANGUAGES: dict[str, tuple[Callable[..., RobotModel], tuple[str, ...], str]] = {
    'mujoco': (
        RobotModel.from_mjcf,
        ('base_link', 'allow_impossible_inertia'),
        'an MJCF, whose base is the world or the body that moves freely',
    ),
    'sdf': (
        RobotModel.from_sdf,
        ('allow_impossible_inertia',),
        'an SDF, whose inertias a body must have',
    ),
}
"""By the root element: how a description is read, parameters that it does not have, and why."""


@dataclass(frozen=True)
class Given:
    """What the command line says about a robot and a motion, as `hodyn compute --help` does.

    Attributes
    ----------
    gravity : (float, float, float) or None
        In the base frame [m/s^2].
    rate : float or None
        [Hz]
    margins : tuple of str
        Shares of limits that are left to feedback, QUANTITY=SHARE.
    """

    robot: str = ''
    config: tuple[str, ...] = ()
    tip_link: str | None = None
    gravity: tuple[float, float, float] | None = None
    xacro_arguments: tuple[tuple[str, str], ...] = ()
    motion: Path = Path()
    topic: str | None = None
    derivatives: str = 'auto'
    rate: float | None = None
    interpolation: str = 'spline'
    margins: tuple[str, ...] = ()

    @property
    def trajectory(self) -> tuple[str | None, int | None]:
        """Topic, and which of its trajectories: ``/plan:2``.

        Returns
        -------
        (str or None, int or None)
        """
        name, _, index = (self.topic or '').rpartition(':')
        return (name or None, int(index)) if index.isdecimal() else (self.topic, None)


@dataclass(frozen=True)
class Problem:
    """A robot with its limits and actuators, and the motion that is asked for.

    Attributes
    ----------
    model : RobotModel
        With the friction that was asked for.
    """

    given: Given
    config: Config
    model: RobotModel
    source: RobotSource
    limits: MotionLimits
    limits_from: str
    """For people."""
    actuators: Actuators | None
    motor_limits: MotorLimits | None
    margins: dict[str, float]
    """Shares of limits that are left to feedback, taken off all limits here."""
    remarks: tuple[str, ...]
    """On the configuration."""

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

    def show(self, answer: Answer, as_json: bool) -> None:
        """Print an answer on the robot, which programs get with its limits and provenance.

        Parameters
        ----------
        answer : Answer
        as_json : bool
            As `show` of `hodyn_ros.cli.output`.
        """
        robot = {
            'robot': self.model.name,
            'limits_from': self.limits_from,
            'margins': self.margins,
            'provenance': self.model.provenance.lines(),
        }
        show(Answer(answer.parts, {**robot, **answer.data}), as_json)

    def samples(self) -> Samples:
        """All samples of the motion.

        Returns
        -------
        Samples
        """
        topic, index = self.given.trajectory
        return read_motion(self.given.motion, topic=topic, index=index)

    def results(self) -> Samples:
        """Torques along the whole motion, and what the motors do.

        Returns
        -------
        Samples
            Of the second derivative of the torques; of higher ones if the motion gives what they
            need.
        """
        self.model.warm_up(ORDER)
        given, samples = self.given, self.samples()
        order = ORDER
        if given.derivatives in ('auto', 'given'):
            order = min(max(samples.motion.shape[1] - 3, ORDER), _HIGHEST_ORDER)
        return compute(
            self.model,
            samples,
            actuators=self.actuators,
            order=order,
            derivatives=given.derivatives,
            rate=given.rate,
            interpolation=given.interpolation,
        )


def load_problem(given: Given, quiet: bool = False, until_limits: bool = False) -> Problem:
    """Find the robot, with limits, friction and actuators.

    Parameters
    ----------
    given : Given
    quiet : bool
        Whether remarks, and doubts about the description, are left to the caller to show.
    until_limits : bool
        Whether margins do not count: a robot stops at its limits.

    Returns
    -------
    Problem

    Raises
    ------
    ModelError, RequestError, ActuatorError
        If the robot or its configuration cannot be found or used.
    """
    source, config = _found(given.robot, given.motion), read_config(given.config)
    model = _model(given, config, source)
    limits, limits_from, remarks = _limits(model, config, source.limits)
    margins = {} if until_limits else _margins(given, config)
    if idle := [name for name in margins if name in MotorLimits._fields]:
        if not config.tables.get('actuators'):
            margins = {name: x for name, x in margins.items() if name not in idle}
            remarks += (
                f'The margin of {listed(map(name_of, idle))} has no effect: no actuators are '
                'given.',
            )
    limits_from += margins_in_words(margins)
    friction, more = config.of_robot('friction', model.name, model.body_names)
    with _named(config.sources.get('friction')):
        model = model.with_friction(friction_from_config(friction))
    actuators = motor_limits = None
    if tables := config.tables.get('actuators'):
        with _named(config.sources['actuators']):
            actuators = actuators_from_config(model, tables)
            motor_limits = motor_limits_from_config(actuators, tables)
    remarks = (*config.remarks, *remarks, *more)
    if not quiet:
        if model.warnings:
            summary = (
                f'{len(model.warnings)} remarks on {source.path.name}: hodyn info '
                f'{given.robot}, with the same options, shows them'
            )
            text = model.warnings[0] if len(model.warnings) == 1 else summary
            warnings.warn(text, ModelWarning, stacklevel=2)
        show_remarks(remarks)
    return Problem(
        given,
        config,
        model,
        source,
        with_margins(limits, margins),
        limits_from,
        actuators,
        motor_limits and with_margins(motor_limits, margins),
        margins,
        remarks,
    )


def _margins(given: Given, config: Config) -> dict[str, float]:
    """Shares of limits that are left to feedback, of files and then of options."""
    asked: dict[str, float] = {}
    for text in given.margins:
        name, separator, share = text.partition('=')
        if not separator:
            raise RequestError(
                f'--margin {text!r} is not of the form QUANTITY=SHARE, as torque_rate=20%.'
            )
        checked = checked_margins({name: share})
        if checked.keys() & asked.keys():
            raise RequestError(f'--margin of {name_of(*checked)} is given twice.')
        asked.update(checked)
    return {**checked_margins(config.values.get(MARGINS, {})), **asked}


@contextmanager
def _named(source: str | None) -> Iterator[None]:
    """Name the source of parameters in errors on them."""
    try:
        yield
    except (ModelError, ActuatorError) as error:
        raise type(error)(f'{source}: {error}') from error


def _found(robot: str, motion: Path) -> RobotSource:
    """Where a robot comes from."""
    context = click.get_current_context(silent=True)
    command = 'hodyn' if context is None else context.command_path
    if Path(robot).suffix.lower() in MOTION_SUFFIXES:
        raise RequestError(
            f'{robot} is a motion, expected ROBOT, which comes first: {command} '
            f'{motion.name or "panda"} {robot}'
        )
    try:
        return find_robot(robot)
    except AmbiguousNameError as error:
        raise ModelError(f'{error}\nFor example: {command} {error.names[0]}') from error


def _model(given: Given, config: Config, source: RobotSource) -> RobotModel:
    """Model of a description in the language of its root element: MJCF, SDF or else URDF."""
    values = config.values
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        description = source.description(dict(given.xacro_arguments))
        options: dict[str, Any] = {
            'base_link': values.get('base_link') or None,
            'tip_link': given.tip_link or values.get('tip_link') or None,
            'joint_friction': values.get('friction') == DESCRIPTION,
            'loops': values.get('loops') or None,
            'allow_impossible_inertia': values.get('allow_impossible_inertia', False),
        }
        if gravity := given.gravity or values.get('gravity'):
            options['gravity'] = gravity
        of_urdf = RobotModel.from_urdf, (), ''
        read, foreign, why = _LANGUAGES.get(root_tag(description), of_urdf)
        for name in foreign:
            if options.pop(name):
                raise RequestError(f'{name} is not for {why}; leave it out of --config.')
        model = read(description, **options)
    # A xacro file is handed over as the text that it stands for.
    known = model.provenance
    return model.with_fields(provenance=replace(known, file=known.file or str(source.path)))


def _limits(
    model: RobotModel, config: Config, default: Path | None
) -> tuple[MotionLimits, str, tuple[str, ...]]:
    """Limits of the joints, where from, and remarks; by default those that ship with a robot."""
    names, tables = ['robot description'], dict[str, Any]()
    if default is not None and not config.has_file('limits'):
        names.append(f'{default.parent.name}/{default.name} of hodyn_ros')
        tables = read_config([str(default)]).tables['limits']
    given, remarks = config.of_robot('limits', model.name, model.joint_names)
    names += [config.sources['limits']] if given else []
    known = {
        joint: {**tables.get(joint, {}), **given.get(joint, {})}
        for joint in model.joint_names
        if joint in tables or joint in given
    }
    with _named(names[-1]):
        return motion_limits(model, known), ' and '.join(names), remarks
