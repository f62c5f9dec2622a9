"""Write config/generic.yaml, and the lists of pages, from the tables of parameters.

A parameter is a field of the settings of a node. In doc/parameters.rst its item goes behind that
of the field before it; the other nodes have a list in a file that their page includes.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import fields
from pathlib import Path
from typing import Any

import yaml

from hodyn_ros.actuators.config import KEYS, Key
from hodyn_ros.actuators.config import TYPES as TYPES_OF_ACTUATORS
from hodyn_ros.ros.base.node_settings import NodeSettings
from hodyn_ros.ros.base.parameters import Entry, entries
from hodyn_ros.ros.nodes.flatness_settings import ControlSettings
from hodyn_ros.ros.nodes.simulated_robot import SimulationSettings

ROOT = Path(__file__).resolve().parent.parent
TYPES = {
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

HEAD = """\
# Every parameter of hodyn_node with its default, for any robot: copy what you change.
# doc/parameters.rst says more. What is marked as fixed, and what is said of joints, is read when
# the node starts; all else can be changed while it runs.
/**:
  ros__parameters:
    # URDF as XML text. Empty: wait for the topic robot_description.
    robot_description: ''
"""
TAIL = """
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
    # doc/parameters.rst has all keys. These numbers are examples, not those of a robot.
    # actuators:
    #   <joint>: {type: sea, stiffness: 10000.0, motor_inertia: 0.5}  # N m/rad, kg m^2
"""

INCLUDES = {
    'flatness_parameters.inc': ControlSettings,
    'simulated_robot_parameters.inc': SimulationSettings,
}
INCLUDE_HEAD = """\
.. Written by doc/make_parameters.py from the table of the code.

"""

# Names of topics, parameters and frames, in a text.
_NAME = re.compile(r'(?<![\w/])(~?/\w+|~?/?[a-z]+(?:[._][a-z]+)+)(?![\w/])')


def bounds(entry: Entry) -> str:
    """Range or choices of a parameter; empty if there are none."""
    if entry.choices:
        return ', '.join(entry.choices)
    is_number = isinstance(entry.default, (int, float)) and not isinstance(
        entry.default, bool
    )
    return f'{entry.low:.12g} to {entry.high:.12g}' if is_number else ''


def default(entry: Entry) -> str:
    """Write the default as YAML does."""
    value = list(entry.default) if isinstance(entry.default, tuple) else entry.default
    return yaml.safe_dump(value, default_flow_style=True).removesuffix('...\n').strip()


def generic() -> str:
    """Text of config/generic.yaml."""
    text, last = HEAD, ''
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
    return text + TAIL


def item(name: str, facts: str, meaning: str) -> str:
    """Item of a definition list: name and facts of a parameter, below it what it means."""
    text = textwrap.fill(
        _NAME.sub(r'``\1``', meaning),
        110,
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


def page(text: str) -> str:
    """Text of doc/parameters.rst with the items of all parameters."""
    before = 'robot_description'
    items = {entry.name: item_of(entry) for entry in entries(NodeSettings)}
    items |= {f'actuators.<joint>.{key.name}': item_of_key(key) for key in KEYS}
    for name, made in items.items():
        pattern = _item_pattern(name)
        if not re.search(pattern, text, re.MULTILINE):
            place = re.search(_item_pattern(before), text, re.MULTILINE)
            assert place is not None, before
            text = text[: place.end()] + made + text[place.end() :]
        text = re.sub(pattern, lambda _, made=made: made, text, count=1, flags=re.MULTILINE)
        before = name
    return text


def _item_pattern(name: str) -> str:
    return rf'^``{re.escape(name)}`` \(.*\)\n(?:   .*\n)+'


def of_joints(kind: type[Any]) -> list[Entry]:
    """Parameters that every joint has, with the names <start>.<joint>; keys of joints are not."""
    found = []
    for item in fields(kind):
        family = item.metadata.get('family')
        if family is not None and '' in family.members:
            entry = family.members['']
            meaning = entry.description.format(joint='<joint>')
            name = f'{family.start}.<joint>'
            found.append(
                Entry(name, entry.default, meaning, entry.low, entry.high, read_only=True)
            )
    return found


def include(kind: type[Any]) -> str:
    """Text of a file with all parameters of a node."""
    items = ''.join(map(item_of, [*entries(kind), *of_joints(kind)]))
    return INCLUDE_HEAD + items.replace('``.<joint>', '.<joint>``')


def main() -> None:
    """Write all files."""
    for name, kind in INCLUDES.items():
        (ROOT / 'doc' / name).write_text(include(kind), encoding='utf-8')
    (ROOT / 'config' / 'generic.yaml').write_text(generic(), encoding='utf-8')
    path = ROOT / 'doc' / 'parameters.rst'
    path.write_text(page(path.read_text(encoding='utf-8')), encoding='utf-8')


if __name__ == '__main__':
    main()
