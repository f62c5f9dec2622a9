"""Which robot is meant by ROBOT on the command line, and the model of it."""

from __future__ import annotations

import difflib
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hodyn_ros.cli import packages, xacro
from hodyn_ros.errors import ModelError
from hodyn_ros.model.robot import ModelWarning, RobotModel
from hodyn_ros.names import listed
from hodyn_ros.resources import share_file

BUNDLED = {
    'panda': 'config/panda.yaml',
    'panda_with_hand': 'config/panda.yaml',
    'iiwa14': 'config/iiwa14.yaml',
    'two_link': None,
}
"""Robots that come with this package, and the files with limits that a URDF cannot hold."""

PACKAGES = {
    packages.EXAMPLE_ROBOT_DATA: packages.find_example_robot,
    'robot_descriptions': packages.find_described_robot,
    'ros': packages.find_in_ros_package,
}
"""Where a name is looked for, in this order; ``package:name`` looks in one of them only."""


@dataclass(frozen=True)
class Source:
    """A robot description that was found."""

    path: Path
    origin: str
    """Where it comes from, for people."""
    limits: Path | None = None
    """File with limits that belong to it."""
    xacro_arguments: Mapping[str, str] = field(default_factory=dict)

    def description(self, arguments: Mapping[str, str] | None = None) -> str | Path:
        """URDF text of a xacro file, or the path of a URDF.

        Raises
        ------
        ModelError
            If there are arguments for a URDF, or xacro is missing or refuses the file.
        """
        if self.path.name.endswith('.xacro'):
            return xacro.expand(self.path, {**self.xacro_arguments, **(arguments or {})})
        if arguments:
            raise ModelError(
                f'{self.path} is not a xacro file, which alone takes arguments; given are '
                f'{listed(arguments)}.'
            )
        return self.path


def find_robot(name: str) -> Source:
    """Find a robot description.

    Parameters
    ----------
    name : str
        Path of a URDF or xacro file, name of a bundled robot, of one of a package in `PACKAGES`,
        or ``package:name``.

    Returns
    -------
    Source

    Raises
    ------
    ModelError
        If nothing or too much has this name.
    """
    path = Path(name).expanduser()
    if name not in BUNDLED and path.exists() and not path.is_dir():  # pipes are files too
        return Source(path, 'file')
    if name in BUNDLED:
        limits = BUNDLED[name]
        return Source(
            share_file(f'urdf/{name}.urdf'), 'bundled', share_file(limits) if limits else None
        )
    package, separator, rest = name.partition(':')
    if separator and package in PACKAGES:
        found = PACKAGES[package](rest)
    else:
        found = next((robot for find in PACKAGES.values() if (robot := find(name))), None)
    if found is None:
        raise ModelError(_not_found(name, path))
    return Source(found.path, found.package, None, found.xacro_arguments)


def _not_found(name: str, path: Path) -> str:
    if path.is_dir():
        return f'{name} is a folder, expected a URDF or xacro file, or the name of a robot.'
    if name.endswith(packages.SUFFIXES) or (os.sep in name and ':' not in name):
        return f'There is no file {name}.'
    examples = {key.partition('/')[2].removesuffix('_robot') for key in packages.example_robots()}
    close = difflib.get_close_matches(name.partition(':')[2] or name, {*BUNDLED, *examples}, 3)
    hint = f' Is {" or ".join(close)} meant?' if close else ''
    return (
        f'There is no robot {name!r}.{hint} Expected a URDF or xacro file, one of '
        f'{", ".join(BUNDLED)}, a robot of example-robot-data'
        f'{"" if examples else " (not installed)"}, one of '
        'robot_descriptions, or of a ROS package (package/path/robot.urdf).'
    )


@dataclass(frozen=True)
class Choice:
    """What the command line says about the robot."""

    robot: str
    base_link: str | None = None
    tip_link: str | None = None
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)
    joint_friction: bool = False
    xacro_arguments: Mapping[str, str] = field(default_factory=dict)


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
    source = find_robot(choice.robot)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        model = RobotModel.from_urdf(
            source.description(choice.xacro_arguments),
            choice.base_link,
            choice.tip_link,
            choice.gravity,
            joint_friction=choice.joint_friction,
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
