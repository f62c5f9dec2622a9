"""What `--config` says of a robot: files of parameters as nodes take them, and single values.

A later item goes before an earlier one: of a file whole tables of limits, friction or actuators,
``NAME:=VALUE`` only the value that it names.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from hodyn_ros.errors import RequestError
from hodyn_ros.files.yaml_files import yaml_documents
from hodyn_ros.names import did_you_mean, listed
from hodyn_ros.resources import share_file

# Similarity from which on one name is the other, mistyped: panda_jiont3, and no finger.
_MISTYPED = 0.8
_HERE = '--config'  # as a source: what the command line itself says

FAMILIES = ('limits', 'friction', 'actuators')
"""Parameters that have a table for each joint."""
MARGINS = 'margins'
"""Shares of limits that are left to feedback, by the quantity."""
DESCRIPTION = 'description'
"""Instead of limits: those of the robot description alone; of friction: that of it."""
_VALUES = {
    'base_link': str,
    'tip_link': str,
    'gravity': list,
    'loops': str,
    'allow_impossible_inertia': bool,
}
"""Other parameters of hodyn_node that are used, and their types."""


@dataclass
class Config:
    """Parameters of a robot, from files and the command line.

    Attributes
    ----------
    tables : dict of str to dict
        By the names in `FAMILIES`, then by the joint; families that nothing says are missing.
    sources : dict of str to str
        Where they come from.
    values : dict of str to object
        Parameters without joints, a table of `MARGINS`, and `DESCRIPTION` for a family.
    remarks : list of str
        On families that several files have.
    """

    tables: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    def has_file(self, family: str) -> bool:
        """Whether a file, or `DESCRIPTION`, says where a family comes from.

        Parameters
        ----------
        family : str

        Returns
        -------
        bool
        """
        return family in self.values or self.sources.get(family, _HERE) != _HERE

    def of_robot(
        self, family: str, robot: str, joints: Sequence[str]
    ) -> tuple[dict[str, dict[str, Any]], tuple[str, ...]]:
        """Tables of the joints of a robot, and a remark on those of other joints.

        One file serves a robot with and without its gripper. What seems to be a mistyped name of
        a joint for which there is no table is refused.

        Parameters
        ----------
        family : str
            One of `FAMILIES`.
        robot : str
            Name of the robot, for messages.
        joints : sequence of str
            Its joints.

        Returns
        -------
        tables : dict of str to dict
        remarks : tuple of str
            One, or none.

        Raises
        ------
        RequestError
            If no table is for a joint of the robot, or a name seems mistyped.
        """
        tables, source = self.tables.get(family, {}), self.sources.get(family, '')
        foreign = [joint for joint in tables if joint not in joints]
        without = [joint for joint in joints if joint not in tables]
        for joint in foreign:
            if hint := did_you_mean(joint, without, _MISTYPED):
                raise RequestError(
                    f'{source}: {family}.{joint}: {robot} has no joint {joint}{hint}; its joints '
                    f'without {family} in this file are {listed(without)}.'
                )
        if tables and len(foreign) == len(tables):
            raise RequestError(
                f'{source} holds {family} of {listed(tables)}, but {robot} has none of these '
                f'joints; they are {listed(joints)}.'
            )
        known = {joint: tables[joint] for joint in joints if joint in tables}
        remark = (
            f'{source}: {family} of {listed(foreign)}: not used, {robot} has no such joint.'
        )
        return known, (remark,) if foreign else ()


def read_config(items: Sequence[str]) -> Config:
    """Read what `--config` names, in its order.

    Parameters
    ----------
    items : sequence of str
        Files, names of files of this package, or NAME:=VALUE.

    Returns
    -------
    Config

    Raises
    ------
    RequestError
        If an item cannot be read, or says nothing of a robot.
    """
    config = Config()
    for item in items:
        name, is_value, text = item.partition(':=')
        source = _HERE if is_value else str(parameter_file(item))
        content = {name: _parsed(text)} if is_value else _document(Path(source))
        tables, values = _parameters(content, source)
        if not (tables or values):
            raise RequestError(_NOTHING.format(item if is_value else source))
        if not is_value or DESCRIPTION in values.values():
            _take_place(config, {*tables, *values}, source)
        for family, joints in tables.items():
            config.sources.setdefault(family, source)
            known = config.tables.setdefault(family, {})
            for joint, keys in joints.items():
                known[joint] = {**known.get(joint, {}), **keys}
        known_margins = config.values.get(MARGINS, {})
        config.values.update(values)
        if MARGINS in values:
            config.values[MARGINS] = {**known_margins, **values[MARGINS]}
    return config


def _take_place(config: Config, families: Container[str], source: str) -> None:
    """Forget what was read of families before, with a remark."""
    for family in FAMILIES:
        if family in families:
            config.tables.pop(family, None)
            if before := config.sources.pop(family, ''):
                config.remarks.append(f'{family}: what {source} says holds, not {before}.')


_NOTHING = (
    '{} holds no ' + ', '.join((*FAMILIES, MARGINS, *_VALUES)) + '; expected the layout of '
    'config/panda.yaml, config/panda_sea.yaml or config/generic.yaml: "limits:" and so on with a '
    'table for each joint, by itself or below "ros__parameters:".'
)


def _parameters(
    content: Any, source: str
) -> tuple[dict[str, dict[str, dict[str, Any]]], dict[str, Any]]:
    """Tables and other values of a document, wherever its layout has them."""
    tables: dict[str, dict[str, dict[str, Any]]] = {}
    values: dict[str, Any] = {}
    for (first, *names), value in _entries(content):
        where = '.'.join((first, *names))
        if first in FAMILIES and len(names) > 1:
            *joint, key = names
            tables.setdefault(first, {}).setdefault('.'.join(joint), {})[key] = value
        elif first in FAMILIES and not (value == DESCRIPTION and first != 'actuators'):
            raise RequestError(
                f'{source}: {where} is {value!r}, expected a table for each joint'
                + ('.' if first == 'actuators' else f', or {first}: {DESCRIPTION}.')
            )
        elif first in FAMILIES:
            values[first] = value
        elif first == MARGINS:
            if not names:
                raise RequestError(
                    f'{source}: {where} is {value!r}, expected a table of quantities, such as '
                    'margins: {torque_rate: 20%}.'
                )
            values.setdefault(MARGINS, {})['.'.join(names)] = value
        elif first in _VALUES and not names:
            if not isinstance(value, _VALUES[first]):
                expected = {str: 'a name', list: '[x, y, z]', bool: 'true or false'}
                raise RequestError(
                    f'{source}: {where} is {value!r}, expected {expected[_VALUES[first]]}.'
                )
            values[first] = value
    return tables, values


def _entries(content: Any, keys: tuple[str, ...] = ()) -> Iterator[tuple[list[str], Any]]:
    """Values with the names that lead to them, nodes left out."""
    if isinstance(content, Mapping):
        for key, value in content.items():
            inner = () if key == 'ros__parameters' else (*keys, *str(key).split('.'))
            yield from _entries(value, inner)
    elif keys:
        yield [*keys], content


def parameter_file(given: str) -> Path:
    """Path of a file, or of one that comes with this package, by its name.

    Parameters
    ----------
    given : str
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
            f'{path}{did_you_mean(path, bundled)} is no file, nor one that comes with hodyn_ros: '
            f'{listed(bundled)}.'
        )
    return bundled[path.name]


def _parsed(text: str) -> Any:
    """Value on the command line: YAML, in which 1e6 is a number as for ROS."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise RequestError(f'--config {text!r} is no value in YAML: {error}') from error


def _document(path: Path) -> Any:
    """Content of a YAML file of one document."""
    try:
        documents = yaml_documents(path)
    except OSError as error:
        raise RequestError(f'{path} cannot be read: {error.strerror}.') from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise RequestError(f'{path} is not YAML: {error}') from error
    if len(documents) > 1:
        raise RequestError(f'{path} holds {len(documents)} documents, expected one.')
    return documents[0] if documents else None
