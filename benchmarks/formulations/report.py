"""Tables of the comparison as reStructuredText."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.formulations.measure import Row, Table
from benchmarks.report import grid

NAMES = ('Q', 'Q, Qd', 'Q, Qd, Q2d')
NOTE = (
    'Operations are multiplications and additions of a sample; sines and cosines come on top and\n'
    'are in the times. Ratios are to the engine, where all of Q, Qd and Q2d are computed.\n'
)


def text(tables: Sequence[Table]) -> str:
    """Format all tables: first what is common to the robots, then each robot."""
    parts = [_heading('The formulations compiled', '='), NOTE]
    if len(tables) > 1:
        parts += [_heading('Q, Qd and Q2d of all robots', '-'), _over_robots(tables)]
    for table in tables:
        parts.append(_heading(table.title, '-'))
        parts.append('Multiplications + additions = operations.\n')
        parts.append(grid([['', *NAMES, 'ratio', 'error'], *_operations(table)]))
        if _timed(table):
            parts.append(
                f'Microseconds a sample: one at a time, and {table.width} at a time.\n'
            )
            names = [f'{name} {suffix}' for suffix in (1, table.width) for name in NAMES]
            header = ['', *names[:3], 'ratio', *names[3:], 'ratio']
            parts.append(grid([header, *_times(table)]))
    return '\n'.join(parts)


def _operations(table: Table) -> list[list[str]]:
    engine = table.rows[0].operations[-1].total
    lines = []
    for row in table.rows:
        counts = [
            f'{o.multiplications} + {o.additions} = {o.total}' for o in row.operations
        ]
        ratio = row.operations[-1].total / engine
        lines.append([row.label, *counts, f'{ratio:.2f}', f'{row.error:.0e}'])
    return lines


def _times(table: Table) -> list[list[str]]:
    engine = table.rows[0]
    lines = []
    for row in table.rows:
        line = [row.label]
        for own, others in ((row.scalar, engine.scalar), (row.lanes, engine.lanes)):
            line += ['-' if time is None else f'{1e6 * time:.3f}' for time in own]
            first, last = others[-1], own[-1]
            line.append('-' if first is None or last is None else f'{last / first:.2f}')
        lines.append(line)
    return lines


def _over_robots(tables: Sequence[Table]) -> str:
    """Operations and times, with their ratios to the engine."""

    def total(row: Row) -> float | None:
        return row.operations[-1].total

    def one_at_a_time(row: Row) -> float | None:
        return row.scalar[-1]

    def in_lanes(row: Row) -> float | None:
        return row.lanes[-1]

    parts = [grid(_lines('operations', tables, total, lambda count: f'{count:.0f}'))]
    if any(_timed(table) for table in tables):
        for name, value in (('one at a time', one_at_a_time), ('in lanes', in_lanes)):
            lines = _lines(f'µs, {name}', tables, value, lambda time: f'{1e6 * time:.3f}')
            parts.append(grid(lines))
    return '\n'.join(parts)


def _lines(
    name: str,
    tables: Sequence[Table],
    value: Callable[[Row], float | None],
    shown: Callable[[float], str],
) -> list[list[str]]:
    lines = [[name, *(table.title for table in tables)]]
    for label in dict.fromkeys(row.label for table in tables for row in table.rows):
        line = [label]
        for table in tables:
            row = next((row for row in table.rows if row.label == label), None)
            found, engine = None if row is None else value(row), value(table.rows[0])
            if found is None or engine is None:
                line.append('-')
            else:
                line.append(f'{shown(found)} ({found / engine:.2f})')
        lines.append(line)
    return lines


def _timed(table: Table) -> bool:
    return table.rows[0].scalar[-1] is not None


def _heading(title: str, underline: str) -> str:
    return f'{title}\n{underline * len(title)}\n'
