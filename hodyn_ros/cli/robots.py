"""What the command line says about ROBOT, and the model of it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

import click

from hodyn_ros.errors import AmbiguousNameError, ModelError
from hodyn_ros.model.robot import ModelWarning, RobotModel
from hodyn_ros.model.sources import Source, find_robot


@dataclass(frozen=True)
class Choice:
    """What the command line says about the robot."""

    robot: str
    base_link: str | None = None
    tip_link: str | None = None
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)
    joint_friction: bool = False
    xacro_arguments: Mapping[str, str] = field(default_factory=dict)
    allow_impossible_inertia: bool = False


def load_model(choice: Choice, quiet: bool = False) -> tuple[RobotModel, Source]:
    """Find the robot and make its model.

    Parameters
    ----------
    choice : Choice
    quiet : bool
        Whether nothing is said about doubtful values, since the caller shows them.

    Returns
    -------
    RobotModel, Source

    Raises
    ------
    ModelError

    Warns
    -----
    ModelWarning
        Once, if the description has doubtful values.
    """
    try:
        source = find_robot(choice.robot)
    except AmbiguousNameError as error:
        context = click.get_current_context(silent=True)
        if context is None:
            raise
        line = f'{context.command_path} {error.names[0]}'
        raise ModelError(f'{error}\nFor example: {line}') from error
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        model = RobotModel.from_urdf(
            source.description(choice.xacro_arguments),
            choice.base_link,
            choice.tip_link,
            choice.gravity,
            joint_friction=choice.joint_friction,
            allow_impossible_inertia=choice.allow_impossible_inertia,
        )
    if model.warnings and not quiet:
        count = len(model.warnings)
        summary = (
            f'{count} remarks on {source.path.name}: hodyn info {choice.robot}, with the same '
            'options, shows them'
        )
        text = model.warnings[0] if count == 1 else summary
        warnings.warn(text, ModelWarning, stacklevel=2)
    return model, source
