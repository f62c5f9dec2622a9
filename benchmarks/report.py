"""Tables as reStructuredText, and everything as JSON."""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.cases import ROOT
from benchmarks.sections import Row, Section, Table

ORDERS = ('Q', 'Qd', 'Q2d')


def options(
    arguments: Sequence[str] | None,
    name: str,
    description: str,
    sizes: Iterable[str],
    meaning: str,
    size: str = 'quick',
) -> argparse.Namespace:
    """Options of a benchmark that writes one file: how much it measures, and the file."""
    parser = argparse.ArgumentParser(
        prog=f'python -m benchmarks.{name}', description=description
    )
    parser.add_argument('--size', choices=sizes, default=size, help=meaning)
    file = ROOT / 'build' / 'bench' / f'{name}.inc'
    parser.add_argument('-o', '--output', type=Path, default=file, help='file to write to')
    return parser.parse_args(arguments)


def folder_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a benchmark that writes tables and more: see `write_tables`."""
    parser.add_argument(
        '--include',
        type=Path,
        metavar='FILE',
        help='write the tables for the documentation too',
    )
    parser.add_argument(
        '--folder',
        type=Path,
        default=ROOT / 'build' / 'bench',
        help='where results are written',
    )


def write_tables(text: str, name: str, options: argparse.Namespace) -> list[Path]:
    """Print tables, write them to the folder and for the documentation; the files."""
    print(text)
    options.folder.mkdir(parents=True, exist_ok=True)
    files = [options.folder / f'{name}.inc']
    if options.include:
        files.append(options.include)
    for file in files:
        file.write_text(text, encoding='utf-8')
    return files


def machine() -> dict[str, str | int]:
    """Return what a reader should know of the machine."""
    model = platform.processor()
    try:
        lines = Path('/proc/cpuinfo').read_text().splitlines()
        model = next(
            line.partition(':')[2].strip() for line in lines if 'model name' in line
        )
    except (OSError, StopIteration):
        pass
    return {
        'processor': model,
        'processors': os.cpu_count() or 0,
        'system': platform.system(),
        'python': platform.python_version(),
    }


def section_text(section: Section, tables: Sequence[Table]) -> str:
    """Tables of a section."""
    parts = [_heading(section.title, '=')]
    for table in tables:
        if len(tables) > 1:
            parts.append(_heading(table.case[0].upper() + table.case[1:], '-'))
        parts.append(table_text(table))
    if section.scaling:
        parts.insert(1, scaling_text(tables))
    return '\n'.join(parts)


def table_text(table: Table) -> str:
    """Contestants of a case: time of a sample, ratio to the yardstick, errors."""
    header = [
        '',
        'orders',
        'µs',
        'quartiles',
        'ratio',
        *(f'error {name}' for name in ORDERS),
        '',
    ]
    lines = [header, *(_cells(row) for row in table.rows)]
    text = grid(lines)
    if table.yardstick:
        text += f'\nRatios are to {table.yardstick}.\n'
    if table.absent:
        text += '\nNot measured:\n\n'
        text += ''.join(f'- {name}: {reason}\n' for name, reason in table.absent.items())
    return text


def scaling_text(tables: Sequence[Table]) -> str:
    """Format the times over the number of joints, with the ratios to the yardstick."""
    names = list(dict.fromkeys(row.name for table in tables for row in table.rows))
    lines = [['µs (ratio)', *(f'n = {table.n}' for table in tables)]]
    for name in names:
        line = [name]
        for table in tables:
            row = next((row for row in table.rows if row.name == name), None)
            line.append('-' if row is None else _time_and_ratio(row))
        lines.append(line)
    return grid(lines)


def grid(lines: Sequence[Sequence[str]]) -> str:
    """Format a simple table of reStructuredText, the first line as header."""
    # The first column of a simple table must not be empty, or its row continues the one before.
    cells = [
        [cell or ('\\' if i == 0 else '') for i, cell in enumerate(line)] for line in lines
    ]
    widths = [max(map(len, column)) for column in zip(*cells)]
    rule = '  '.join('=' * max(width, 1) for width in widths)
    rows = [
        '  '.join(cell.ljust(w) for cell, w in zip(line, widths)).rstrip() for line in cells
    ]
    return '\n'.join([rule, rows[0], rule, *rows[1:], rule, ''])


def write(
    folder: Path,
    sections: Mapping[str, Section],
    tables: Mapping[str, Sequence[Table]],
) -> list[Path]:
    """Write one text a section, and one JSON file.

    Parameters
    ----------
    folder : Path
    sections : mapping of str to Section
    tables : mapping of str to sequence of Table
        Of the sections that were measured.

    Returns
    -------
    list of Path
        The files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, found in tables.items():
        files.append(folder / f'{name}.rst')
        files[-1].write_text(section_text(sections[name], found), encoding='utf-8')
    files.append(folder / 'benchmarks.json')
    values = {
        'machine': machine(),
        'sections': {
            name: [asdict(table) for table in found] for name, found in tables.items()
        },
    }
    files[-1].write_text(json.dumps(values, indent=1) + '\n', encoding='utf-8')
    return files


def _cells(row: Row) -> list[str]:
    timing = row.timing
    notes = [row.note] if row.note else []
    if row.threads > 1 or timing.processors > 1.2:
        notes.append(f'{timing.processors:.1f} processors busy')
    errors = [f'{error:.0e}' for error in row.errors]
    return [
        row.name,
        '0' if row.order == 0 else f'0-{row.order}',
        _microseconds(timing.median),
        f'{_microseconds(timing.lower_quartile)}-{_microseconds(timing.upper_quartile)}',
        '' if row.ratio is None else f'{row.ratio:.2f}',
        *errors,
        *[''] * (len(ORDERS) - len(errors)),
        ', '.join(notes),
    ]


def _time_and_ratio(row: Row) -> str:
    time = _microseconds(row.timing.median)
    return time if row.ratio is None else f'{time} ({row.ratio:.2f})'


def _microseconds(seconds: float) -> str:
    value = seconds * 1e6
    return f'{value:.3f}' if value < 10.0 else f'{value:.1f}'


def _heading(title: str, underline: str) -> str:
    return f'{title}\n{underline * len(title)}\n'
