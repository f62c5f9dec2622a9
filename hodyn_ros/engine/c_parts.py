"""Long functions in parts, since the time of a compiler grows with the square of their length.

A value that a later part needs is kept in an array, on the stack of the function that calls the
parts one after another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

# Up to about 10 joints a function stays in one part; longer ones are as fast in several.
LONGEST_FUNCTION = 2000
LENGTH_OF_PARTS = 1000

# A compiler that put the parts together again would take as long as without them.
SEPARATE = (
    '#ifdef __GNUC__',
    '#define SEPARATE __attribute__((noinline))',
    '#else',
    '#define SEPARATE',
    '#endif',
)

_NAME = re.compile(r'[A-Za-z_]\w*')


class Parts(NamedTuple):
    """Statements of the parts of a function, and the number of values in the array 'kept'."""

    parts: list[list[str]]
    n_kept: int


def in_parts(
    definitions: Sequence[tuple[str, str]],
    assignments: Sequence[str],
    real: str,
    longest: int = LONGEST_FUNCTION,
    length: int = LENGTH_OF_PARTS,
) -> Parts:
    """Divide a function that is too long.

    Parameters
    ----------
    definitions : sequence of (str, str)
        Names of constants and expressions for them, which use earlier ones.
    assignments : sequence of str
        Statements at the end of the function.
    real : str
        Type of the constants.
    longest : int
        A function with no more statements stays in one part.
    length : int
        Number of statements in a part.

    Returns
    -------
    Parts
    """
    steps = [*definitions, *(('', assignment) for assignment in assignments)]
    if len(steps) <= longest:
        length = max(len(steps), 1)
    defined = {name: i // length for i, (name, _) in enumerate(steps) if name}
    last_use = {
        name: i // length
        for i, (_, text) in enumerate(steps)
        for name in _NAME.findall(text)
        if name in defined
    }
    crossing = {name for name, part in last_use.items() if part > defined[name]}
    place: dict[str, int] = {}
    free: list[int] = []
    n_kept = 0
    parts = []
    for start in range(0, len(steps), length):
        part = start // length
        # Nobody needs these any more, so that others may take their places.
        free += [place.pop(name) for name in list(place) if last_use[name] < part]
        lines = []
        at_hand: set[str] = set()
        for name, text in steps[start : start + length]:
            for used in dict.fromkeys(_NAME.findall(text)):
                if used in crossing and defined[used] < part and used not in at_hand:
                    lines.append(f'const {real} {used} = kept[{place[used]}];')
                    at_hand.add(used)
            lines.append(f'const {real} {name} = {text};' if name else text)
            if name in crossing:
                if not free:
                    free.append(n_kept)
                    n_kept += 1
                place[name] = free.pop()
                lines.append(f'kept[{place[name]}] = {name};')
        parts.append(lines)
    return Parts(parts, n_kept)


def names_in(lines: Iterable[str]) -> set[str]:
    """Names that occur in statements."""
    return {name for line in lines for name in _NAME.findall(line)}
