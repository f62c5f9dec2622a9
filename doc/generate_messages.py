"""Write messages.rst from the definitions in hodyn_msgs: python doc/generate_messages.py.

A definition is a sequence of groups that empty lines separate: comments, and below them the fields
or constants that they speak of. Groups of comments alone, before the first field, introduce the
message. A comment behind a field says its unit in brackets or something about this field alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / 'doc' / 'messages.rst'
DEFINITIONS = ROOT / 'hodyn_msgs'
WIDTHS = '34 66'

TITLE = 'Messages and the service'
INTRODUCTION = """\
All fields of the messages and of the service of ``hodyn_msgs``, from their definitions in
``hodyn_msgs/msg`` and ``hodyn_msgs/srv``. What the node does with them is on :doc:`node`; signs
and expressions are those of :doc:`conventions`. To see a definition as it is:
``ros2 interface show hodyn_msgs/msg/JointEffort``.

- Units are SI: rad and N m for revolute and continuous joints, m and N for prismatic ones. Both
  are given where both may occur.
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


def head(entry: Entry) -> str:
    """Name, type and unit of an entry."""
    if entry.value:
        return f'``{entry.name}`` = {entry.value}'
    return f'``{entry.name}``: {markup(entry.type)}' + (
        f' {entry.units}' if entry.units else ''
    )


def rows(group: Group) -> Iterable[tuple[list[str], str]]:
    """Rows of a table: what they speak of, and what they say."""
    if not any(entry.note for entry in group.entries):
        yield [head(entry) for entry in group.entries], group.comment
        return
    if group.comment:
        constants = all(entry.value for entry in group.entries)
        if constants or len(group.entries) > 1:
            yield ['*constants*'] if constants else [], group.comment
            for entry in group.entries:
                yield [head(entry)], entry.note
            return
    for entry in group.entries:
        yield [head(entry)], ' '.join(filter(None, (group.comment, entry.note)))


def table(groups: Iterable[Group]) -> str:
    """Fields and their meaning."""
    lines = [
        '.. list-table::',
        '   :header-rows: 1',
        f'   :widths: {WIDTHS}',
        '   :width: 100%',
        '',
        '   * - field',
        '     - meaning',
    ]
    for group in groups:
        for heads, comment in rows(group):
            first = [f'| {text}' for text in heads] if len(heads) > 1 else heads
            for mark, cell in (('*', first), (' ', markup(comment).splitlines())):
                begin = f'   {mark} - '
                for number, line in enumerate(cell or ['']):
                    lines.append(((begin if not number else ' ' * 7) + line).rstrip())
    return '\n'.join(lines)


def part_text(part: Part) -> str:
    """Introduction and table of a message, or of a half of a service."""
    return '\n\n'.join([*map(markup, part.introduction), table(part.groups)])


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
            + f'\n\n.. rubric:: Request\n\n{table(request.groups)}\n'
            + f'\n.. rubric:: Response\n\n{table(response.groups)}\n'
        )
    return '\n'.join(sections)


if __name__ == '__main__':
    PAGE.write_text(page(), encoding='utf-8')
