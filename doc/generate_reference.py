"""Write what is generated of the reference of the nodes: python doc/generate_reference.py.

The definitions in hodyn_msgs give messages.inc, the tables of parameters in the code the other
lists, and config/generic.yaml.

A definition is a sequence of groups that empty lines separate: comments, and below them the fields
or constants that they describe. Groups of comments alone, before the first field, introduce the
message. A comment behind a field gives its unit in brackets or describes this field alone.

A parameter is a field of the settings of a node.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from hodyn_ros.actuators.config import KEYS, Key
from hodyn_ros.actuators.config import TYPES as TYPES_OF_ACTUATORS
from hodyn_ros.ros.base.node_settings import NodeSettings
from hodyn_ros.ros.base.parameters import Entry, Family, entries
from hodyn_ros.ros.nodes.flatness_settings import ControlSettings
from hodyn_ros.ros.nodes.simulated_robot import SimulationSettings
from hodyn_ros.ros.nodes.trajectory_proxy import ProxySettings

ROOT = Path(__file__).resolve().parent.parent
DOC = ROOT / 'doc'
DEFINITIONS = ROOT / 'hodyn_msgs'
HEAD = '.. Written by doc/generate_reference.py.\n\n'
WIDTH = 110
UNBOUNDED = 2**31 - 1  # a range that ends here has no bound of its own
TYPES = {
    'anything': 'any',
    'switch': 'bool',
    'whole': 'int',
    'number': 'double',
    'text': 'string',
    'choice': 'string',
    'names': 'string[]',
    'numbers1': 'double[]',
    'numbers3': 'double[3]',
}
GROUPS = {
    item.name: item.metadata['group']
    for item in fields(NodeSettings)
    if 'group' in item.metadata
}


GENERIC_HEAD = """\
# Every parameter of hodyn_node with its default, for any robot: copy what you change.
# Reference: doc/node_reference.rst. Parameters that are marked as fixed, and those of joints, are
# read when the node starts; all others can be changed while it runs.
/**:
  ros__parameters:
    # URDF as XML text. Empty: wait for the topic robot_description.
    robot_description: ''
"""
GENERIC_TAIL = """
    # Limits of joints in place of those of the robot description, which may have none.
    # limits:
    #   <joint>: {acceleration: 10.0, jerk: 1000.0, effort_dot: 500.0}  # per s^2, s^3; N m/s, N/s
    #   <joint>: {effort_ddot: 25000.0}  # N m/s^2, N/s^2

    # Shares of limits that are left to feedback; planning and checks use the rest.
    # margins: {torque_rate: 20%}

    # Friction of joints (what a URDF says in <dynamics> is not used): what is proportional to the
    # velocity, what is constant against it, what is more at low velocities, the law identified on
    # the Panda (phi1, phi2, phi3), a constant effort.
    # friction:
    #   <joint>: {viscous: 0.5, coulomb: 1.0, smoothing: 0.1, offset: 0.0}  # N m s/rad, N m, rad/s
    #   <joint>: {stribeck: 0.5, stribeck_velocity: 0.1, smoothing: 0.01}  # N m, rad/s

    # What is between motors and joints, for ~/motor_reference; joints without an entry are rigid.
    # doc/node_reference.rst has all keys. These numbers are examples, not those of a robot.
    # actuators:
    #   <joint>: {type: sea, stiffness: 10000.0, motor_inertia: 0.5}  # N m/rad, kg m^2
"""

# Names of topics, parameters and frames, in a text.
_NAME = re.compile(r'(?<![\w/])(~?/\w+|~?/?[a-z]+(?:[._][a-z]+)+)(?![\w/])')


_UNITS = re.compile(r'(\[[^\]]+\](?:, )?)+')
_FIELD = re.compile(r'([\w/<=]+)(\[[<=\d]*\])?\s+(\w+)(?:\s*=\s*(-?\d+))?\s*(?:#\s*(.*))?')


class Field(NamedTuple):
    """A field or a constant."""

    type: str
    name: str
    value: str
    units: str
    note: str


class Group(NamedTuple):
    """Entries with the comment that describes all of them."""

    comment: str
    entries: list[Field]


class Part(NamedTuple):
    """A message, or the request or the response of a service."""

    introduction: list[str]
    groups: list[Group]


def read_part(text: str) -> Part:
    """Introduction and groups of a definition."""
    introduction: list[str] = []
    groups: list[Group] = []
    for block in re.split(r'\n\s*\n', text.strip()):
        comments: list[str] = []
        entries: list[Field] = []
        for line in block.splitlines():
            if not line.startswith('#'):
                entries.append(read_entry(line))
                continue
            if entries:  # a comment below a field begins a group
                groups.append(Group('\n'.join(comments), entries))
                comments, entries = [], []
            comments.append(line[1:].removeprefix(' '))
        if entries:
            groups.append(Group('\n'.join(comments), entries))
        elif groups:
            raise ValueError(f'A comment describes no field:\n{block}')
        else:
            introduction.append('\n'.join(comments))
    return Part(introduction, groups)


def read_entry(line: str) -> Field:
    """Field or constant of a line."""
    match = _FIELD.fullmatch(line.strip())
    if match is None:
        raise ValueError(f'This line of a definition was not understood: {line!r}')
    kind, many, name, value, comment = (group or '' for group in match.groups())
    is_unit = _UNITS.fullmatch(comment) is not None
    return Field(
        kind + many, name, value, comment if is_unit else '', '' if is_unit else comment
    )


def markup(comment: str) -> str:
    """Comment as reStructuredText."""
    text = re.sub(r'([*|\\]|(?<=\w)_(?!\w))', r'\\\1', comment)
    text = re.sub(r'`([^`]+)`', r'``\1``', text)
    return re.sub(r'\n(?=- )', '\n\n', text, count=1)


def head(entries: list[Field]) -> str:
    """Names, units and types of entries; a type that several have stands once."""
    parts = []
    for kind, group in groupby(entries, key=attrgetter('type')):
        names = (f'``{entry.name}`` {entry.units}'.rstrip() for entry in group)
        parts.append(f'{", ".join(names)}: {markup(kind)}'.replace('], [', ', '))
    return '; '.join(parts)


def field_item(entries: list[Field], meaning: str) -> str:
    """Item of a definition list."""
    if not meaning:
        raise ValueError(f'The definitions do not say what {entries[0].name} is.')
    return f'{head(entries)}\n{textwrap.indent(markup(meaning), "   ")}'


def blocks(group: Group) -> Iterable[str]:
    """Paragraphs and items of a group."""
    comment, entries = group
    if all(entry.value for entry in entries):
        values = [
            f'- ``{entry.name}`` = {entry.value}: {markup(entry.note)}' for entry in entries
        ]
        yield '\n\n'.join(filter(None, (markup(comment), '\n'.join(values)))) + '\n'
    elif not any(entry.note for entry in entries):
        yield field_item(entries, comment)
    else:
        for entry in entries:
            yield field_item([entry], ' '.join(filter(None, (comment, entry.note))))


def fields_text(groups: Iterable[Group]) -> str:
    """Fields and their meaning."""
    return '\n'.join(block for group in groups for block in blocks(group)).rstrip()


def part_text(part: Part) -> str:
    """Introduction and fields of a message."""
    return '\n\n'.join([*map(markup, part.introduction), fields_text(part.groups)])


def messages() -> str:
    """Text of messages.inc: every message and service."""
    sections = []
    for path in sorted(DEFINITIONS.glob('msg/*.msg')):
        part = read_part(path.read_text(encoding='utf-8'))
        sections.append(f'{path.stem}\n{"~" * len(path.stem)}\n\n{part_text(part)}\n')
    for path in sorted(DEFINITIONS.glob('srv/*.srv')):
        texts = path.read_text(encoding='utf-8').split('\n---\n')
        request, response = map(read_part, texts)
        sections.append(
            f'{path.stem}\n{"~" * len(path.stem)}\n\n'
            + '\n\n'.join(map(markup, request.introduction))
            + f'\n\n.. rubric:: Request\n\n{fields_text(request.groups)}\n'
            + f'\n.. rubric:: Response\n\n{fields_text(response.groups)}\n'
        )
    return HEAD + '\n'.join(sections)


def bounds(entry: Entry) -> str:
    """Range or choices of a parameter; empty if there are none."""
    if entry.choices:
        return ', '.join(entry.choices)
    is_number = isinstance(entry.default, (int, float)) and not isinstance(
        entry.default, bool
    )
    if not is_number or entry.low == -math.inf:
        return ''
    is_open = entry.high >= UNBOUNDED
    return f'{entry.low:.12g} {"or more" if is_open else f"to {entry.high:.12g}"}'


def default(entry: Entry) -> str:
    """Write the default as YAML does."""
    value = list(entry.default) if isinstance(entry.default, tuple) else entry.default
    return yaml.safe_dump(value, default_flow_style=True).removesuffix('...\n').strip()


def generic() -> str:
    """Text of config/generic.yaml."""
    text, last = GENERIC_HEAD, ''
    for entry in entries(NodeSettings):
        group, dot, name = entry.name.rpartition('.')
        indent = '    ' + '  ' * bool(dot)
        if group != last and group:
            meaning = (GROUPS[group].__doc__ or '').splitlines()[0]
            text += f'\n    # {meaning}\n    {group}:\n'
        else:
            text += '\n'
        last = group
        some = 'some' if isinstance(entry.default, tuple) else 'one'
        range_ = f'{some} of {bounds(entry)}' if entry.choices else bounds(entry)
        notes = '; '.join(filter(None, (range_, 'fixed' * entry.read_only)))
        meaning = entry.description.removesuffix('.') + (f' ({notes}).' if notes else '.')
        text += textwrap.fill(
            meaning, 99, initial_indent=f'{indent}# ', subsequent_indent=f'{indent}# '
        )
        text += f'\n{indent}{name}: {default(entry)}\n'
    return text + GENERIC_TAIL


def item(name: str, facts: str, meaning: str) -> str:
    """Item of a definition list: name and facts of a parameter, below it what it means."""
    text = textwrap.fill(
        _NAME.sub(r'``\1``', meaning),
        WIDTH,
        initial_indent='   ',
        subsequent_indent='   ',
        break_on_hyphens=False,
    )
    return f'``{name}`` ({facts})\n{text}\n'


def item_of(entry: Entry) -> str:
    """Item of a parameter: type, default and range."""
    facts = f'{TYPES[entry.kind]}{", fixed" * entry.read_only} = ``{default(entry)}``'
    choices = ', '.join(f'``{choice}``' for choice in entry.choices)
    range_ = f'one of {choices}' if choices else bounds(entry)
    return item(entry.name, '; '.join(filter(None, (facts, range_))), entry.description)


def item_of_key(key: Key) -> str:
    """Item of a key of actuators: type, unit, and the types of actuators that have it."""
    kind = key.kind + f' [{key.unit}]' * bool(key.unit)
    choices = f' One of {", ".join(key.choices)}.' * bool(key.choices)
    return item(
        f'actuators.<joint>.{key.name}',
        f'{kind}; {"all" if key.types == TYPES_OF_ACTUATORS else ", ".join(key.types)}',
        key.description + choices,
    )


def families(kind: type[Any]) -> list[Family]:
    """Families of parameters in the settings of a node."""
    found = (item.metadata.get('family') for item in fields(kind))
    return [family for family in found if family is not None]


def of_joints(family: Family) -> str:
    """Items of the parameters that each joint has."""
    return ''.join(
        item(
            family.pattern.replace('<key>', key),
            'double, fixed' + f'; {entry.low:g} or more' * (entry.low > -math.inf),
            entry.description.format(joint='<joint>'),
        )
        for key, entry in family.members.items()
    )


def margins(family: Family) -> str:
    """Item of the parameters that hold for a quantity of all joints."""
    quantities = ', '.join(family.members)
    meaning = (
        f'Share of the limits of a quantity that is left to feedback: one of {quantities}.'
    )
    return item(
        family.pattern, 'double from 0 to below 1, or a text such as 20%, fixed', meaning
    )


def parameters(kind: type[Any]) -> str:
    """Text of a file with the parameters of a node but those with a list of their own."""
    items = [item_of(entry) for entry in entries(kind)]
    for family in families(kind):
        members = family.members
        if '' in members:
            name, meaning = family.pattern, members[''].description
            entry = replace(members[''], name=name, description=meaning, read_only=True)
            items.append(item_of(entry))
    return HEAD + ''.join(items).replace('{joint}', '<joint>').replace(
        '``.<joint>', '.<joint>``'
    )


def joint_parameters() -> str:
    """Text of the file with the parameters of joints."""
    limits, shares, friction, _ = families(NodeSettings)
    keys = ''.join(map(item_of_key, KEYS))
    return HEAD + of_joints(limits) + margins(shares) + of_joints(friction) + keys


FILES: Mapping[Path, Callable[[], str]] = {
    DOC / 'messages.inc': messages,
    DOC / 'parameters.inc': partial(parameters, NodeSettings),
    DOC / 'joint_parameters.inc': joint_parameters,
    DOC / 'flatness_parameters.inc': partial(parameters, ControlSettings),
    DOC / 'simulated_robot_parameters.inc': partial(parameters, SimulationSettings),
    DOC / 'proxy_parameters.inc': partial(parameters, ProxySettings),
    ROOT / 'config' / 'generic.yaml': generic,
}


def main() -> None:
    """Write all files."""
    for path, text in FILES.items():
        path.write_text(text(), encoding='utf-8')


if __name__ == '__main__':
    main()
