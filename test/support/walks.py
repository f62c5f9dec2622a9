"""The way of a call through the code: which functions of the package it passes, in which files."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import hodyn_ros

HOME = str(Path(hodyn_ros.__file__).parent)


class Walk(NamedTuple):
    """Functions, each counted once, as pairs of their file and name."""

    functions: set

    @property
    def files(self):
        return {file for file, _ in self.functions}

    def __str__(self):
        lines = sorted(f'{file}: {name}' for file, name in self.functions)
        head = f'{len(self.functions)} functions in {len(self.files)} files'
        return '\n  '.join([head, *lines])


@contextmanager
def walking() -> Iterator[Walk]:
    """Note what is called in this thread."""
    walk = Walk(set())

    def note(frame, event, _):
        code = frame.f_code
        # What is written within a function belongs to it, as do comprehensions.
        if (
            event == 'call'
            and code.co_filename.startswith(HOME)
            and '<' not in code.co_name
        ):
            name = getattr(code, 'co_qualname', code.co_name).split('.<locals>')[0]
            walk.functions.add((code.co_filename[len(HOME) + 1 :], name))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield walk
    finally:
        sys.setprofile(before)


def walk_of(call: Callable[[], object]) -> Walk:
    """Walk of a call that has been made before."""
    call()
    with walking() as walk:
        call()
    return walk
