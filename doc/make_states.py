"""Draw states and what leads from one to another, from the tables of the code, into doc."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

from hodyn_ros.streams import motion_stream

FOLDER = Path(__file__).parent
Transitions = Mapping[tuple[str, str], str]

WIDTH, HEIGHT = 920, 460
# Of boxes: width of a character, both margins, height.
CHARACTER, MARGIN, TALL = (8.5, 36, 40)
LINE = 15  # height of a line of text
BEND = 50  # how far an arrow is drawn aside of the straight line between two states
LABEL = 0.37  # part of the way at which an arrow has its label

# Where the states stand: (across, down). Arrows that would cross a state are bent more.
STREAM = {
    'idle': (90, 230),
    'joining': (460, 50),
    'following': (460, 230),
    'stopping': (460, 410),
    'lost': (830, 230),
}
BENDS = {('joining', 'stopping'): 420}


def ways(transitions: Transitions) -> dict[tuple[str, str], list[str]]:
    """Events that lead from a state to another one."""
    found = defaultdict(list)
    for (before, event), after in transitions.items():
        if before != after:
            found[before, after].append(event)
    return found


def table(transitions: Transitions) -> str:
    """Table with a row for each state and event."""
    rows = [('state', 'event', 'then')]
    for state in dict.fromkeys(before for before, _ in transitions):
        own = [(key[1], after) for key, after in transitions.items() if key[0] == state]
        names = [state, *[r'\ '] * (len(own) - 1)]
        rows += [(name, *row) for name, row in zip(names, own)]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    rule = '  '.join('=' * width for width in widths)
    lines = [
        '  '.join(text.ljust(width) for text, width in zip(row, widths)) for row in rows
    ]
    body = '\n'.join(line.rstrip() for line in (rule, lines[0], rule, *lines[1:], rule))
    return f'.. Written by doc/make_states.py from the table of the code.\n\n{body}\n'


def picture(transitions: Transitions, places: Mapping[str, tuple[int, int]]) -> str:
    """Boxes for states and arrows for what leads from one to another, as SVG."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif">',
        '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0 10 5 0 10z" fill="#345"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    texts = []
    for (before, after), events in ways(transitions).items():
        (x0, y0), (x1, y1) = places[before], places[after]
        length = math.hypot(x1 - x0, y1 - y0)
        along = (x1 - x0) / length, (y1 - y0) / length
        aside = -along[1], along[0]  # to the right of who walks along
        bend = BENDS.get((before, after), BEND)
        middle = [(x0 + x1) / 2 + bend * aside[0], (y0 + y1) / 2 + bend * aside[1]]
        begin = leaving(places[before], middle, before)
        end = leaving(places[after], middle, after)
        parts.append(
            f'<path d="M{begin[0]:.0f} {begin[1]:.0f}Q{middle[0]:.0f} {middle[1]:.0f} '
            f'{end[0]:.0f} {end[1]:.0f}" fill="none" stroke="#345" marker-end="url(#tip)"/>'
        )
        # Labels stand in the first half, so that those of both directions keep apart.
        weights = (1.0 - LABEL) ** 2, 2.0 * LABEL * (1.0 - LABEL), LABEL**2
        x = sum(weight * value for weight, value in zip(weights, (x0, middle[0], x1)))
        y = sum(weight * value for weight, value in zip(weights, (y0, middle[1], y1)))
        y -= LINE * (len(events) - 1) / 2
        texts += [label(x, y + LINE * row, event) for row, event in enumerate(events)]
    for name, (x, y) in places.items():
        wide = width(name)
        parts.append(
            f'<rect x="{x - wide / 2}" y="{y - TALL / 2}" width="{wide}" '
            f'height="{TALL}" rx="10" fill="#e8eef6" stroke="#345"/>'
        )
        texts.append(label(x, y + 5, name, size=16))
    return '\n'.join([*parts, *texts, '</svg>']) + '\n'


def width(name: str) -> float:
    """Width of the box of a state."""
    return CHARACTER * len(name) + MARGIN


def leaving(place: tuple[int, int], towards: list[float], name: str) -> tuple[float, float]:
    """Point on the edge of the box of a state in a direction."""
    dx, dy = towards[0] - place[0], towards[1] - place[1]
    scale = min(
        width(name) / 2 / abs(dx) if dx else math.inf,
        TALL / 2 / abs(dy) if dy else math.inf,
    )
    return place[0] + scale * dx, place[1] + scale * dy


def label(x: float, y: float, text: str, size: int = 12) -> str:
    """Text around a point, with a white rim over what it crosses."""
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" text-anchor="middle" fill="#123" '
        f'stroke="white" stroke-width="3" paint-order="stroke">{escape(text)}</text>'
    )


def pages() -> dict[Path, str]:
    """What the files hold, by their paths."""
    transitions = motion_stream.TRANSITIONS
    drawn = {
        key: after for key, after in transitions.items() if key[1] != motion_stream.CLEARED
    }  # which leads from everywhere to idle
    return {
        FOLDER / 'stream_states.inc': table(transitions),
        FOLDER / 'images' / 'stream_states.svg': picture(drawn, STREAM),
    }


def main() -> None:
    """Write the files."""
    for path, text in pages().items():
        path.write_text(text, encoding='utf-8')


if __name__ == '__main__':
    main()
