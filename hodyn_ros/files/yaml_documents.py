"""Documents of a YAML file as plain data, of a size that is bounded by that of the file.

An alias stands for all that its anchor holds, so that some lines can stand for any number of
entries. They are counted before anything is made of them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from hodyn_ros.errors import FileError

_LARGEST_FILE = 200_000_000  # bytes; the parser needs a hundred times as many
_MOST_REPEATED = 100_000  # entries


class _Loader(getattr(yaml, 'CSafeLoader', yaml.SafeLoader)):  # type: ignore[misc]
    """Reads 1e6 and 1.0e6 as the numbers that they are for ROS; PyYAML wants 1.0e+6."""


_Loader.add_implicit_resolver(
    'tag:yaml.org,2002:float',
    re.compile(r'[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$'),
    '-+.0123456789',
)


def yaml_documents(path: Path) -> list[Any]:
    """Contents of all documents that are not empty.

    Parameters
    ----------
    path : pathlib.Path
        File in UTF-8.

    Returns
    -------
    list
        Dictionaries, lists, numbers, strings and so on. 1e6 is a number, as for ROS.

    Raises
    ------
    FileError
        If the file is too large, or aliases repeat too much.
    OSError, UnicodeDecodeError, yaml.YAMLError
        If it cannot be read.
    """
    size = path.stat().st_size
    if size > _LARGEST_FILE:
        raise FileError(
            f'{path} has {size / 1e6:.0f} MB, expected at most {_LARGEST_FILE / 1e6:.0f}; write '
            'so many samples as Parquet or NPZ.'
        )
    text = path.read_text(encoding='utf-8')
    loader = _Loader(text)
    try:
        documents = []
        while loader.check_node():
            node = loader.get_node()
            if '*' in text:  # there may be aliases
                _refuse_repetition(path, node)
            documents.append(loader.construct_document(node))
    finally:
        loader.dispose()
    return [item for item in documents if item is not None]


def _refuse_repetition(path: Path, root: yaml.Node) -> None:
    """Raise an error against aliases that repeat too many entries, or what they are part of.

    Parameters
    ----------
    path : pathlib.Path
        For the message.
    root : yaml.Node
        Of a document, as it was composed, before anything is made of it.

    Raises
    ------
    FileError
        If aliases add more than `_MOST_REPEATED` entries, or a node is part of itself.
    """
    sizes: dict[
        int, int
    ] = {}  # with all that aliases repeat; 0: of a node that is under way
    stack = [root]
    while stack:
        node = stack[-1]
        parts = _parts(node)
        if id(node) not in sizes:
            sizes[id(node)] = 0
            new = [part for part in parts if sizes.get(id(part)) is None]
            if any(sizes.get(id(part)) == 0 for part in parts):
                line = node.start_mark.line + 1
                raise FileError(
                    f'{path}: in line {line} an alias is part of what it stands for.'
                )
            stack += new
            if new:
                continue
        stack.pop()
        if not sizes[id(node)]:
            sizes[id(node)] = 1 + sum(sizes[id(part)] for part in parts)
    if sizes[id(root)] > len(sizes) + _MOST_REPEATED:
        raise FileError(
            f'{path}: its {len(sizes)} entries stand for {sizes[id(root)]:.3g}, since aliases '
            f'repeat some of them; expected at most {_MOST_REPEATED} more. Write them out.'
        )


def _parts(node: yaml.Node) -> list[yaml.Node]:
    """Nodes that a node consists of: keys and values, or the elements of a sequence."""
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else []
