"""Write messages.rst from the definitions in hodyn_msgs: python doc/generate_messages.py.

A definition is a sequence of groups that empty lines separate: comments, and below them the fields
or constants that they speak of. Groups of comments alone, before the first field, introduce the
message. A comment behind a field says its unit in brackets or something about this field alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from textwrap import indent
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / 'doc' / 'messages.rst'
DEFINITIONS = ROOT / 'hodyn_msgs'

TITLE = 'Messages and the service'
INTRODUCTION = """\
All fields of the messages and services of ``hodyn_msgs``;
``ros2 interface show hodyn_msgs/msg/JointEffort`` prints a definition. What the node does with
them is on :doc:`node`; signs and expressions are those of :doc:`conventions`.

- Units are SI; where two are given, they are those of revolute and of prismatic joints.
- Arrays of several samples are flat, one sample after the other: in Python,
  ``numpy.reshape(message.effort, (-1, len(message.joint_names)))`` has a row for each.
- A list that may be unknown is empty then, never filled with zeros.

.. contents::
   :local:
   :depth: 1
"""

_UNITS = re.compile(r'(\[[^\]]+\](?:, )?)+')
_FIELD = re.compile(r'([\w/<=]+)(\[[<=\d]*\])?\s+(\w+)(?:\s*=\s*(-?\d+))?\s*(?:#\s*(.*))?')


class Entry(NamedTuple):
    """A field or a constant."""

    type: str
    name: str
    value: str
    units: str
    note: str


class Group(NamedTuple):
    """Entries with the comment that speaks of all of them."""

    comment: str
    entries: list[Entry]


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
        entries: list[Entry] = []
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
            raise ValueError(f'A comment speaks of nothing:\n{block}')
        else:
            introduction.append('\n'.join(comments))
    return Part(introduction, groups)


def read_entry(line: str) -> Entry:
    """Field or constant of a line."""
    match = _FIELD.fullmatch(line.strip())
    if match is None:
        raise ValueError(f'This line of a definition was not understood: {line!r}')
    kind, many, name, value, comment = (group or '' for group in match.groups())
    is_unit = _UNITS.fullmatch(comment) is not None
    return Entry(
        kind + many, name, value, comment if is_unit else '', '' if is_unit else comment
    )


def markup(comment: str) -> str:
    """Comment as reStructuredText."""
    text = re.sub(r'([*|\\]|(?<=\w)_(?!\w))', r'\\\1', comment)
    text = re.sub(r'`([^`]+)`', r'``\1``', text)
    return re.sub(r'\n(?=- )', '\n\n', text, count=1)


def head(entries: list[Entry]) -> str:
    """Names, units and types of entries; a type that several have stands once."""
    parts = []
    for kind, group in groupby(entries, key=attrgetter('type')):
        names = (f'``{entry.name}`` {entry.units}'.rstrip() for entry in group)
        parts.append(f'{", ".join(names)}: {markup(kind)}'.replace('], [', ', '))
    return '; '.join(parts)


def item(entries: list[Entry], meaning: str) -> str:
    """Item of a definition list."""
    if not meaning:
        raise ValueError(f'The definitions do not say what {entries[0].name} is.')
    return f'{head(entries)}\n{indent(markup(meaning), "   ")}'


def blocks(group: Group) -> Iterable[str]:
    """Paragraphs and items of a group."""
    comment, entries = group
    if all(entry.value for entry in entries):
        values = [
            f'- ``{entry.name}`` = {entry.value}: {markup(entry.note)}' for entry in entries
        ]
        yield '\n\n'.join(filter(None, (markup(comment), '\n'.join(values)))) + '\n'
    elif not any(entry.note for entry in entries):
        yield item(entries, comment)
    else:
        for entry in entries:
            yield item([entry], ' '.join(filter(None, (comment, entry.note))))


def fields_text(groups: Iterable[Group]) -> str:
    """Fields and their meaning."""
    return '\n'.join(block for group in groups for block in blocks(group)).rstrip()


def part_text(part: Part) -> str:
    """Introduction and fields of a message."""
    return '\n\n'.join([*map(markup, part.introduction), fields_text(part.groups)])


def page() -> str:
    """Text of the page."""
    sections = [f'{TITLE}\n{"=" * len(TITLE)}\n\n{INTRODUCTION}']
    for path in sorted(DEFINITIONS.glob('msg/*.msg')):
        part = read_part(path.read_text(encoding='utf-8'))
        sections.append(f'{path.stem}\n{"-" * len(path.stem)}\n\n{part_text(part)}\n')
    for path in sorted(DEFINITIONS.glob('srv/*.srv')):
        texts = path.read_text(encoding='utf-8').split('\n---\n')
        request, response = map(read_part, texts)
        sections.append(
            f'{path.stem}\n{"-" * len(path.stem)}\n\n'
            + '\n\n'.join(map(markup, request.introduction))
            + f'\n\n.. rubric:: Request\n\n{fields_text(request.groups)}\n'
            + f'\n.. rubric:: Response\n\n{fields_text(response.groups)}\n'
        )
    return '\n'.join(sections)


if __name__ == '__main__':
    PAGE.write_text(page(), encoding='utf-8')
